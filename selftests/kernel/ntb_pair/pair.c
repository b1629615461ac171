// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Two non-transparent bridges that one cable connects within this machine. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dma-map-ops.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/sizes.h>

#include "pair.h"

static unsigned int windows = 2;
module_param(windows, uint, 0444);
MODULE_PARM_DESC(windows, "Memory windows in each direction (1 to 4, default 2)");

static unsigned int size = 16;
module_param(size, uint, 0444);
MODULE_PARM_DESC(size, "MiB of a window (power of two from 4 to 256, default 16)");

module_param_named(other, pair_other, bool, 0444);
MODULE_PARM_DESC(other, "Buffers lie behind the window after that asked for (N)");

static unsigned int spads = PAIR_SPADS;
module_param(spads, uint, 0444);
MODULE_PARM_DESC(spads, "Scratchpads of a bridge (0 to 16, default 16)");

static unsigned int msgs = PAIR_MSGS;
module_param(msgs, uint, 0444);
MODULE_PARM_DESC(msgs, "Message registers of a bridge (0 to 4, default 4)");

static bool trans = true;
module_param(trans, bool, 0444);
MODULE_PARM_DESC(trans, "A bridge leads its own inbound windows to memory, not those of its peer (Y)");

module_param_named(fail, pair_fail, uint, 0644);
MODULE_PARM_DESC(fail, "Sum of calls that fail: 1 no memory for the last window, 2 no memory is aligned, 4 no window opens, 8 no window closes (0)");

module_param_named(failed, pair_failed, uint, 0444);
MODULE_PARM_DESC(failed, "Number of calls that have failed");

module_param_named(taken, pair_taken, uint, 0444);
MODULE_PARM_DESC(taken, "Number of windows with memory");

static unsigned int messages;
module_param(messages, uint, 0444);
MODULE_PARM_DESC(messages, "Number of messages that have been sent");

struct pair_bridge pair_bridges[2];
DEFINE_SPINLOCK(pair_lock);
static bool pair_cable = true;

static struct pair_bridge *bridge_of(struct ntb_dev *ntb)
{
	return container_of(ntb, struct pair_bridge, ntb);
}

/* ---- interrupts: each reads the pending bits again ---- */

static bool bridge_pending(const u64 *bits, const u64 *mask)
{
	unsigned long flags;
	bool pending;

	spin_lock_irqsave(&pair_lock, flags);
	pending = *bits & ~*mask;
	spin_unlock_irqrestore(&pair_lock, flags);
	return pending;
}

static void bridge_db_irq(struct irq_work *work)
{
	struct pair_bridge *b = container_of(work, struct pair_bridge, db_irq);

	if (bridge_pending(&b->db, &b->db_mask))
		ntb_db_event(&b->ntb, 0);
}

static void bridge_msg_irq(struct irq_work *work)
{
	struct pair_bridge *b = container_of(work, struct pair_bridge, msg_irq);

	if (bridge_pending(&b->sts, &b->sts_mask))
		ntb_msg_event(&b->ntb);
}

static void bridge_link_irq(struct irq_work *work)
{
	struct pair_bridge *b = container_of(work, struct pair_bridge, link_irq);

	ntb_link_event(&b->ntb);
}

/* A bridge without a driver has no interrupts. */
static void bridge_raise(struct pair_bridge *b, struct irq_work *irq)
{
	lockdep_assert_held(&pair_lock);
	if (b->pdev)
		irq_work_queue(irq);
}

/* ---- link ---- */

static bool pair_link_is_up(void)
{
	lockdep_assert_held(&pair_lock);
	return pair_cable && pair_bridges[0].enabled && pair_bridges[1].enabled;
}

/* Change @what, and tell both clients if that has changed the state of the link. */
static void pair_link_change(bool *what, bool value)
{
	unsigned long flags;
	bool before;

	spin_lock_irqsave(&pair_lock, flags);
	before = pair_link_is_up();
	*what = value;
	if (pair_link_is_up() != before) {
		bridge_raise(&pair_bridges[0], &pair_bridges[0].link_irq);
		bridge_raise(&pair_bridges[1], &pair_bridges[1].link_irq);
	}
	spin_unlock_irqrestore(&pair_lock, flags);
}

static u64 bridge_link_is_up(struct ntb_dev *ntb, enum ntb_speed *speed,
			     enum ntb_width *width)
{
	unsigned long flags;
	bool up;

	spin_lock_irqsave(&pair_lock, flags);
	up = pair_link_is_up();
	spin_unlock_irqrestore(&pair_lock, flags);
	if (speed)
		*speed = up ? NTB_SPEED_GEN3 : NTB_SPEED_NONE;
	if (width)
		*width = up ? NTB_WIDTH_8 : NTB_WIDTH_NONE;
	return up;
}

static int bridge_link_enable(struct ntb_dev *ntb, enum ntb_speed max_speed,
			      enum ntb_width max_width)
{
	pair_link_change(&bridge_of(ntb)->enabled, true);
	return 0;
}

static int bridge_link_disable(struct ntb_dev *ntb)
{
	pair_link_change(&bridge_of(ntb)->enabled, false);
	return 0;
}

static int pair_cable_set(const char *val, const struct kernel_param *kp)
{
	bool plugged;
	int ret = kstrtobool(val, &plugged);

	if (!ret)
		pair_link_change(&pair_cable, plugged);
	return ret;
}

static const struct kernel_param_ops pair_cable_ops = {
	.set = pair_cable_set,
	.get = param_get_bool,
};
module_param_cb(cable, &pair_cable_ops, &pair_cable, 0644);
MODULE_PARM_DESC(cable, "The cable is plugged in (Y)");

/* ---- memory windows ---- */

bool pair_fails(enum pair_call call)
{
	unsigned long flags;
	bool fails;

	spin_lock_irqsave(&pair_lock, flags);
	fails = pair_fail & call;
	pair_failed += fails;
	spin_unlock_irqrestore(&pair_lock, flags);
	return fails;
}

static int bridge_mw_count(struct ntb_dev *ntb, int pidx)
{
	return pidx ? -EINVAL : pair_windows;
}

static int bridge_mw_get_align(struct ntb_dev *ntb, int pidx, int widx,
			       resource_size_t *addr_align,
			       resource_size_t *size_align, resource_size_t *size_max)
{
	if (pidx || widx < 0 || widx >= pair_windows)
		return -EINVAL;
	WRITE_ONCE(bridge_of(ntb)->asked, widx);
	if (addr_align)
		*addr_align = pair_fails(PAIR_ALIGN) ? BIT_ULL(62) : pair_window_size;
	if (size_align)
		*size_align = PAGE_SIZE;
	if (size_max)
		*size_max = pair_window_size;
	return 0;
}

static int bridge_translate(struct pair_window *w, dma_addr_t addr,
			    resource_size_t bytes)
{
	int ret = -EINVAL;

	if (!bytes || bytes > pair_window_size)
		return ret;
	spin_lock_irq(&pair_lock);
	if (w->taken && addr == w->bus) {
		w->translated = true;
		ret = 0;
	}
	spin_unlock_irq(&pair_lock);
	return ret;
}

static int bridge_mw_clear_trans(struct ntb_dev *ntb, int pidx, int widx)
{
	if (pidx || widx < 0 || widx >= pair_windows)
		return -EINVAL;
	if (pair_fails(PAIR_CLOSE))
		return -EINTR;
	spin_lock_irq(&pair_lock);
	bridge_of(ntb)->window[widx].translated = false;
	spin_unlock_irq(&pair_lock);
	return 0;
}

static int bridge_mw_set_trans(struct ntb_dev *ntb, int pidx, int widx,
			       dma_addr_t addr, resource_size_t bytes)
{
	if (pidx || widx < 0 || widx >= pair_windows)
		return -EINVAL;
	if (!addr && !bytes)
		return bridge_mw_clear_trans(ntb, pidx, widx);
	if (pair_fails(PAIR_OPEN))
		return -EIO;
	return bridge_translate(&bridge_of(ntb)->window[widx], addr, bytes);
}

static int bridge_peer_mw_set_trans(struct ntb_dev *ntb, int pidx, int widx, u64 addr,
				    resource_size_t bytes)
{
	return bridge_mw_set_trans(&bridge_of(ntb)->peer->ntb, pidx, widx, addr, bytes);
}

static int bridge_peer_mw_count(struct ntb_dev *ntb)
{
	return pair_windows;
}

static int bridge_peer_mw_get_addr(struct ntb_dev *ntb, int widx, phys_addr_t *base,
				   resource_size_t *bytes)
{
	if (widx < 0 || widx >= pair_windows)
		return -EINVAL;
	if (base)
		*base = pair_window_phys(&bridge_of(ntb)->peer->window[widx]);
	if (bytes)
		*bytes = pair_window_size;
	return 0;
}

/* ---- doorbells ---- */

static u64 bridge_db_valid_mask(struct ntb_dev *ntb)
{
	return PAIR_DB_MASK;
}

static u64 bridge_db_read(struct ntb_dev *ntb)
{
	return READ_ONCE(bridge_of(ntb)->db);
}

static u64 bridge_db_read_mask(struct ntb_dev *ntb)
{
	return READ_ONCE(bridge_of(ntb)->db_mask);
}

/* Set and clear bits of @bits; raise @irq if one that is not masked is set then. */
static void bridge_bits(struct pair_bridge *b, u64 *bits, u64 set, u64 clear,
			const u64 *state, const u64 *mask, struct irq_work *irq)
{
	unsigned long flags;

	spin_lock_irqsave(&pair_lock, flags);
	*bits = (*bits | set) & ~clear;
	if (*state & ~*mask)
		bridge_raise(b, irq);
	spin_unlock_irqrestore(&pair_lock, flags);
}

static int bridge_db_change(struct pair_bridge *b, u64 *bits, u64 set, u64 clear)
{
	if ((set | clear) & ~PAIR_DB_MASK)
		return -EINVAL;
	bridge_bits(b, bits, set, clear, &b->db, &b->db_mask, &b->db_irq);
	return 0;
}

static int bridge_db_set(struct ntb_dev *ntb, u64 bits)
{
	return bridge_db_change(bridge_of(ntb), &bridge_of(ntb)->db, bits, 0);
}

static int bridge_db_clear(struct ntb_dev *ntb, u64 bits)
{
	return bridge_db_change(bridge_of(ntb), &bridge_of(ntb)->db, 0, bits);
}

static int bridge_db_set_mask(struct ntb_dev *ntb, u64 bits)
{
	return bridge_db_change(bridge_of(ntb), &bridge_of(ntb)->db_mask, bits, 0);
}

static int bridge_db_clear_mask(struct ntb_dev *ntb, u64 bits)
{
	return bridge_db_change(bridge_of(ntb), &bridge_of(ntb)->db_mask, 0, bits);
}

static u64 bridge_peer_db_read(struct ntb_dev *ntb)
{
	return bridge_db_read(&bridge_of(ntb)->peer->ntb);
}

static int bridge_peer_db_set(struct ntb_dev *ntb, u64 bits)
{
	return bridge_db_set(&bridge_of(ntb)->peer->ntb, bits);
}

static int bridge_peer_db_clear(struct ntb_dev *ntb, u64 bits)
{
	return bridge_db_clear(&bridge_of(ntb)->peer->ntb, bits);
}

/* ---- scratchpads ---- */

static int bridge_spad_count(struct ntb_dev *ntb)
{
	return spads;
}

static u32 bridge_spad_read(struct ntb_dev *ntb, int sidx)
{
	return sidx < 0 || sidx >= spads ? 0 : READ_ONCE(bridge_of(ntb)->spad[sidx]);
}

static int bridge_spad_write(struct ntb_dev *ntb, int sidx, u32 val)
{
	if (sidx < 0 || sidx >= spads)
		return -EINVAL;
	WRITE_ONCE(bridge_of(ntb)->spad[sidx], val);
	return 0;
}

static u32 bridge_peer_spad_read(struct ntb_dev *ntb, int pidx, int sidx)
{
	return pidx ? 0 : bridge_spad_read(&bridge_of(ntb)->peer->ntb, sidx);
}

static int bridge_peer_spad_write(struct ntb_dev *ntb, int pidx, int sidx, u32 val)
{
	return pidx ? -EINVAL : bridge_spad_write(&bridge_of(ntb)->peer->ntb, sidx, val);
}

/* ---- messages ---- */

static int bridge_msg_count(struct ntb_dev *ntb)
{
	return msgs;
}

static u64 bridge_msg_inbits(struct ntb_dev *ntb)
{
	return BIT_ULL(msgs) - 1;
}

static u64 bridge_msg_outbits(struct ntb_dev *ntb)
{
	return (BIT_ULL(msgs) - 1) << PAIR_MSGS;
}

static u64 bridge_msg_read_sts(struct ntb_dev *ntb)
{
	return READ_ONCE(bridge_of(ntb)->sts);
}

static int bridge_sts_change(struct pair_bridge *b, u64 *bits, u64 set, u64 clear)
{
	bridge_bits(b, bits, set, clear, &b->sts, &b->sts_mask, &b->msg_irq);
	return 0;
}

static int bridge_msg_clear_sts(struct ntb_dev *ntb, u64 bits)
{
	return bridge_sts_change(bridge_of(ntb), &bridge_of(ntb)->sts, 0, bits);
}

static int bridge_msg_set_mask(struct ntb_dev *ntb, u64 bits)
{
	return bridge_sts_change(bridge_of(ntb), &bridge_of(ntb)->sts_mask, bits, 0);
}

static int bridge_msg_clear_mask(struct ntb_dev *ntb, u64 bits)
{
	return bridge_sts_change(bridge_of(ntb), &bridge_of(ntb)->sts_mask, 0, bits);
}

/* A register that is not full has no message: its value means nothing. */
static u32 bridge_msg_read(struct ntb_dev *ntb, int *pidx, int midx)
{
	struct pair_bridge *b = bridge_of(ntb);

	if (midx < 0 || midx >= msgs)
		return 0;
	if (pidx)
		*pidx = 0;
	return READ_ONCE(b->sts) & BIT_ULL(midx) ? READ_ONCE(b->msg[midx]) : ~0u;
}

/* Deliver a message unless the register still holds an earlier one. */
static bool bridge_msg_put(struct pair_bridge *to, int midx, u32 msg)
{
	unsigned long flags;
	bool room;

	spin_lock_irqsave(&pair_lock, flags);
	room = !(to->sts & BIT_ULL(midx));
	if (room)
		to->msg[midx] = msg;
	messages++;
	spin_unlock_irqrestore(&pair_lock, flags);
	return room;
}

static int bridge_peer_msg_write(struct ntb_dev *ntb, int pidx, int midx, u32 msg)
{
	struct pair_bridge *b = bridge_of(ntb);

	if (pidx || midx < 0 || midx >= msgs)
		return -EINVAL;
	if (bridge_msg_put(b->peer, midx, msg))
		return bridge_sts_change(b->peer, &b->peer->sts, BIT_ULL(midx), 0);
	return bridge_sts_change(b, &b->sts, BIT_ULL(PAIR_MSGS + midx), 0);
}

static struct ntb_dev_ops bridge_ops = {
	.link_is_up		= bridge_link_is_up,
	.link_enable		= bridge_link_enable,
	.link_disable		= bridge_link_disable,
	.mw_count		= bridge_mw_count,
	.mw_get_align		= bridge_mw_get_align,
	.mw_set_trans		= bridge_mw_set_trans,
	.mw_clear_trans		= bridge_mw_clear_trans,
	.peer_mw_count		= bridge_peer_mw_count,
	.peer_mw_get_addr	= bridge_peer_mw_get_addr,
	.db_valid_mask		= bridge_db_valid_mask,
	.db_read		= bridge_db_read,
	.db_set			= bridge_db_set,
	.db_clear		= bridge_db_clear,
	.db_read_mask		= bridge_db_read_mask,
	.db_set_mask		= bridge_db_set_mask,
	.db_clear_mask		= bridge_db_clear_mask,
	.peer_db_read		= bridge_peer_db_read,
	.peer_db_set		= bridge_peer_db_set,
	.peer_db_clear		= bridge_peer_db_clear,
	.spad_count		= bridge_spad_count,
	.spad_read		= bridge_spad_read,
	.spad_write		= bridge_spad_write,
	.peer_spad_read		= bridge_peer_spad_read,
	.peer_spad_write	= bridge_peer_spad_write,
	.msg_count		= bridge_msg_count,
	.msg_inbits		= bridge_msg_inbits,
	.msg_outbits		= bridge_msg_outbits,
	.msg_read_sts		= bridge_msg_read_sts,
	.msg_clear_sts		= bridge_msg_clear_sts,
	.msg_set_mask		= bridge_msg_set_mask,
	.msg_clear_mask		= bridge_msg_clear_mask,
	.msg_read		= bridge_msg_read,
	.peer_msg_write		= bridge_peer_msg_write,
};

/* ---- PCI driver ---- */

/* Put a bridge into its state after a reset. Its windows keep their memory. */
static void bridge_reset(struct pair_bridge *b, struct pci_dev *pdev)
{
	spin_lock_irq(&pair_lock);
	memset(&b->ntb, 0, sizeof(b->ntb));
	b->ntb.pdev = pdev;
	b->ntb.topo = b == &pair_bridges[0] ? NTB_TOPO_B2B_USD : NTB_TOPO_B2B_DSD;
	b->ntb.ops = &bridge_ops;
	memset(b->spad, 0, sizeof(b->spad));
	b->sts = 0;
	b->sts_mask = 0;
	b->db = 0;
	b->db_mask = 0;
	b->pdev = pdev;
	spin_unlock_irq(&pair_lock);
}

/* On return no interrupt runs or begins. */
static void bridge_quiesce(struct pair_bridge *b)
{
	spin_lock_irq(&pair_lock);
	b->pdev = NULL;
	spin_unlock_irq(&pair_lock);
	irq_work_sync(&b->db_irq);
	irq_work_sync(&b->msg_irq);
	irq_work_sync(&b->link_irq);
}

static int pair_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct pair_bridge *b = &pair_bridges[PCI_SLOT(pdev->devfn)];
	int ret;

	pci_set_drvdata(pdev, b);
	set_dma_ops(&pdev->dev, &pair_dma_ops);
	ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (ret)
		return ret;
	pci_set_master(pdev);
	bridge_reset(b, pdev);
	ret = ntb_register_device(&b->ntb);
	if (ret)
		bridge_quiesce(b);
	return ret;
}

static void pair_remove(struct pci_dev *pdev)
{
	struct pair_bridge *b = pci_get_drvdata(pdev);

	/* like a bridge that is pulled out: the peer's link goes down first */
	pair_link_change(&b->enabled, false);
	ntb_unregister_device(&b->ntb);
	bridge_quiesce(b);
	set_dma_ops(&pdev->dev, NULL);
}

static const struct pci_device_id pair_ids[] = {
	{ PCI_DEVICE(PAIR_VENDOR, PAIR_DEVICE) },
	{ }
};

static struct pci_driver pair_driver = {
	.name = KBUILD_MODNAME,
	.id_table = pair_ids,
	.probe = pair_probe,
	.remove = pair_remove,
};

/* ---- module ---- */

static int __init pair_check_params(void)
{
	if (!windows || windows > PAIR_WINDOWS || size < 4 || size > 256 ||
	    !is_power_of_2(size) || spads > PAIR_SPADS || msgs > PAIR_MSGS) {
		pr_err("windows=%u size=%u spads=%u msgs=%u: one is out of range\n",
		       windows, size, spads, msgs);
		return -EINVAL;
	}
	if (!trans) {
		bridge_ops.mw_set_trans = NULL;
		bridge_ops.mw_clear_trans = NULL;
		bridge_ops.peer_mw_set_trans = bridge_peer_mw_set_trans;
	}
	pair_windows = windows;
	pair_window_size = (unsigned long)size * SZ_1M;
	return 0;
}

static void __init pair_bridge_init(struct pair_bridge *b, struct pair_bridge *peer)
{
	b->peer = peer;
	b->db_irq = IRQ_WORK_INIT_HARD(bridge_db_irq);
	b->msg_irq = IRQ_WORK_INIT_HARD(bridge_msg_irq);
	b->link_irq = IRQ_WORK_INIT_HARD(bridge_link_irq);
}

static int __init pair_init(void)
{
	int ret = pair_check_params();

	if (ret)
		return ret;
	pair_bridge_init(&pair_bridges[0], &pair_bridges[1]);
	pair_bridge_init(&pair_bridges[1], &pair_bridges[0]);
	ret = pair_windows_create();
	if (ret)
		return ret;
	ret = pci_register_driver(&pair_driver);
	if (ret)
		goto err_windows;
	ret = pair_bus_create();
	if (ret)
		goto err_driver;
	return 0;

err_driver:
	pci_unregister_driver(&pair_driver);
err_windows:
	pair_windows_destroy();
	return ret;
}

static void __exit pair_exit(void)
{
	pair_bus_destroy();
	pci_unregister_driver(&pair_driver);
	pair_windows_destroy();
}

module_init(pair_init);
module_exit(pair_exit);
MODULE_AUTHOR("The libsci authors");
MODULE_DESCRIPTION("Two non-transparent bridges in one kernel, for tests");
MODULE_LICENSE("GPL");
