// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Control packets between the nodes of a pool. */

#include "pool.h"

static bool mail_slot(const struct pool *p, u32 node, u32 *slot)
{
	*slot = node / POOL_NODE_STEP - 1;
	return node && !(node % POOL_NODE_STEP) && *slot < p->form.slots;
}

/* Return whether this node still has its slot, and the pool the layout that this node knows. */
static bool mail_may_store(const struct pool *p)
{
	return pool_get64(&pool_slot(p, p->slot)->word) == (p->generation | POOL_SLOT_ACTIVE);
}

/* Ring the bell. Several nodes may ring at once: it is enough that the count changes. */
static void mail_ring_bell(struct pool *p, u32 slot)
{
	__le32 *count = &pool_bell_line(p, slot)->count;

	if (p->form.incoherent)
		return;
	pool_full_barrier();
	pool_set32(count, pool_get32(count) + 1);
}

int pool_mail_send(struct pool *p, u32 node, const void *packet)
{
	struct pool_ring *ring;
	struct pool_mail *m;
	u32 slot, head;

	if (!mail_slot(p, node, &slot))
		return -EHOSTUNREACH;
	/* after an expulsion, the rings of this slot may have another sender */
	if (!mail_may_store(p))
		return -EHOSTUNREACH;
	ring = pool_ring(p, p->slot, slot);
	head = pool_get32(&ring->head);
	/* a receiver with an impossible tail gets no packets until it corrects the tail */
	if (head - pool_get32(&ring->tail) >= POOL_MAIL_SLOTS)
		return -EAGAIN;
	m = &ring->mail[head % POOL_MAIL_SLOTS];
	pool_put_bytes(m->packet, packet, POOL_PACKET);
	pool_set32(&m->crc, pool_crc(packet, POOL_PACKET));
	pool_set32(&ring->head, head + 1);
	mail_ring_bell(p, slot);
	return 0;
}

/* Take a packet. Return whether it is complete: two nodes may have written it. */
static bool mail_take(struct pool_ring *ring, u32 tail, void *packet)
{
	struct pool_mail *m = &ring->mail[tail % POOL_MAIL_SLOTS];
	u32 crc = pool_get32(&m->crc);

	pool_get_bytes(packet, m->packet, POOL_PACKET);
	/* the packet is read before the sender may write another one there */
	pool_full_barrier();
	pool_set32(&ring->tail, tail + 1);
	return pool_crc(packet, POOL_PACKET) == crc;
}

bool pool_mail_receive(struct pool *p, u32 node, void *packet)
{
	struct pool_ring *ring;
	u32 slot, head, tail, waiting;

	if (!mail_slot(p, node, &slot) || !mail_may_store(p))
		return false;
	ring = pool_ring(p, slot, p->slot);
	head = pool_get32(&ring->head);
	tail = pool_get32(&ring->tail);
	waiting = head - tail;
	if (waiting > POOL_MAIL_SLOTS) {
		p->corrupt++;
		pool_set32(&ring->tail, head);
		return false;
	}
	for (; waiting; waiting--, p->corrupt++)
		if (mail_take(ring, tail++, packet))
			return true;
	return false;
}

u32 pool_bell(struct pool *p)
{
	u32 slot, sum = 0;

	if (!p->form.incoherent)
		return pool_get32(&pool_bell_line(p, p->slot)->count);
	for (slot = 0; slot < p->form.slots; slot++)
		sum += pool_get32(&pool_ring(p, slot, p->slot)->head);
	return sum;
}
