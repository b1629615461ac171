// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/*
 * Control packets.  The sender stores a packet into the next slot of the receiver's
 * window, and rings the doorbell. It does not read the window: a packet that the receiver does
 * not take in time is overwritten, and the core sends it again. A packet is complete if its crc
 * is right.
 */

#include <linux/crc32.h>
#include <linux/io.h>
#include <linux/sched.h>

#include "sci_ntb.h"

static u32 mail_crc(const void *packet, __le32 number)
{
	return crc32_le(crc32_le(~0, packet, SCI_PACKET_SIZE), (u8 *)&number,
			sizeof(number));
}

/* Store a packet into a ring that begins at @slot. */
static void mail_put(struct ntb_node *n, struct ntb_mail __iomem *slot,
		     const void *packet)
{
	__le32 number;

	lockdep_assert_held(&n->send_lock);
	number = cpu_to_le32(++n->sent);
	slot += n->sent % NTB_MAIL_SLOTS;
	memcpy_toio(slot->packet, packet, SCI_PACKET_SIZE);
	writel(le32_to_cpu(number), &slot->number);
	writel(mail_crc(packet, number), &slot->crc);
}

static void mail_send_self(struct ntb_node *n, const void *packet)
{
	spin_lock(&n->send_lock);
	mail_put(n, (struct ntb_mail __iomem __force *)n->self, packet);
	spin_unlock(&n->send_lock);
	queue_work(n->wq, &n->mail);
}

int ntb_mail_send(struct ntb_node *n, u32 node, const void *packet)
{
	if (node == n->node) {
		mail_send_self(n, packet);
		return 0;
	}
	if (node != n->peer)
		return -EHOSTUNREACH;
	if (!ntb_node_is_up(n))
		return -ENETDOWN;
	spin_lock(&n->send_lock);
	mail_put(n, ntb_peer_mail(n), packet);
	/* the window is write-combining: the packet leaves before the doorbell rings */
	wmb();
	spin_unlock(&n->send_lock);
	return ntb_peer_db_set(n->ntb, n->db);
}

/* Copy the packet of slot @i if it is new and complete. */
static bool mail_take(struct ntb_mailbox *box, u32 i, void *packet)
{
	struct ntb_mail *slot = &box->slot[i];
	__le32 number = READ_ONCE(slot->number);
	u32 crc = le32_to_cpu(READ_ONCE(slot->crc));

	if (le32_to_cpu(number) == box->seen[i])
		return false;
	dma_rmb();
	memcpy(packet, slot->packet, SCI_PACKET_SIZE);
	if (mail_crc(packet, number) != crc)
		return false;
	box->seen[i] = le32_to_cpu(number);
	return true;
}

/*
 * Deliver the packets that have arrived, in the order of the slots, which is the order of
 * sending.
 */
static void mail_receive(struct ntb_node *n, struct ntb_mailbox *box, u32 from)
{
	u8 packet[SCI_PACKET_SIZE] __aligned(8);
	u32 i, slot, next = box->next;

	for (i = 0; i < NTB_MAIL_SLOTS; i++) {
		slot = (next + i) % NTB_MAIL_SLOTS;
		if (!mail_take(box, slot, packet))
			continue;
		box->next = (slot + 1) % NTB_MAIL_SLOTS;
		sci_adapter_receive(n->adapter, from, packet);
		cond_resched();
	}
}

void ntb_mail_work(struct work_struct *work)
{
	struct ntb_node *n = container_of(work, struct ntb_node, mail);

	if (!n->adapter)
		return;
	mail_receive(n, &n->from_self, n->node);
	if (ntb_node_is_up(n))
		mail_receive(n, &n->from_peer, n->peer);
}
