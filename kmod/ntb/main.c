// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* The client of the kernel's NTB API: probe, link and first contact. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/random.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "core/att.h"
#include "sci_ntb.h"

#define TICK_CONTACT	(HZ / 50 + 1)	/* until both nodes are ready */
#define TICK_UPKEEP	HZ
#define DMA_MAX		SZ_64M
#define STREAMS		16
#define STREAM_SIZE	128

static unsigned int window = 64;
module_param(window, uint, 0444);
MODULE_PARM_DESC(window, "MiB of an inbound window at most (1 to 65536, default 64)");

/* ---- words ---- */

static void word_send(struct ntb_node *n, unsigned int i, u32 value)
{
	if (!n->messages) {
		ntb_peer_spad_write(n->ntb, NTB_PEER, i, value);
		return;
	}
	/* a message that the bridge refuses is sent again at the next tick */
	ntb_msg_clear_sts(n->ntb, ntb_msg_outbits(n->ntb));
	ntb_peer_msg_write(n->ntb, NTB_PEER, i, value);
}

static u32 word_receive(struct ntb_node *n, unsigned int i)
{
	return n->messages ? READ_ONCE(n->theirs[i]) : ntb_spad_read(n->ntb, i);
}

/* Forget the words of the peer: they are not valid for the next time that the link is up. */
static void words_forget(struct ntb_node *n)
{
	unsigned int i;

	for (i = 0; i < NTB_WORD_SIZE + n->windows; i++) {
		WRITE_ONCE(n->theirs[i], 0);
		if (!n->messages)
			ntb_spad_write(n->ntb, i, 0);
	}
}

static void words_send(struct ntb_node *n)
{
	unsigned int w;

	for (w = 0; w < n->windows; w++)
		word_send(n, NTB_WORD_SIZE + w, (n->generation & 0xfu) << 28 |
			  (u32)PHYS_PFN(n->in[w].size));
	word_send(n, NTB_WORD_STATE, n->acked << 16 | PAGE_SHIFT << 8 | n->open);
	word_send(n, NTB_WORD_LIFE, NTB_MAGIC << 16 | n->generation);
}

/* ---- first contact ---- */

static void node_set_up(struct ntb_node *n, bool up)
{
	if (n->up == up)
		return;
	if (up)
		ntb_outbound_mark_again(n);
	WRITE_ONCE(n->up, up);
	sci_adapter_set_link(n->adapter, up);
	if (up)
		queue_work(n->wq, &n->mail);
}

/* Begin a new life of the peer: forget the state of its earlier life. */
static void contact_new_life(struct ntb_node *n, u16 generation)
{
	node_set_up(n, false);
	if (n->peer_generation)
		sci_adapter_lost(n->adapter, n->peer);
	n->peer_generation = generation;
	ntb_inbound_forget_marks(n);
}

/* Acknowledge the peer's life when no memory of its earlier life is mapped any more. */
static void contact_acknowledge(struct ntb_node *n)
{
	mutex_lock(&n->lock);
	if (!n->views)
		n->acked = n->peer_generation;
	mutex_unlock(&n->lock);
}

/* Read the sizes of the peer's windows. */
static int contact_sizes(struct ntb_node *n)
{
	unsigned int w;
	u32 word;
	int ret;

	for (w = 0; w < n->windows; w++) {
		word = word_receive(n, NTB_WORD_SIZE + w);
		if (word >> 28 != (n->peer_generation & 0xf))
			return -EAGAIN;
		ret = ntb_outbound_set_form(n, w, word & GENMASK(27, 0));
		if (ret)
			return ret;
	}
	return 0;
}

/* Report a failure to set up or to open the windows, unless it was the last one, too. */
static void node_report(struct ntb_node *n, int error)
{
	if (error && error != n->error)
		dev_err(&n->ntb->dev, "cannot set up its windows: %pe: trying again\n",
			ERR_PTR(error));
	n->error = error;
}

static void contact_open(struct ntb_node *n)
{
	int ret = ntb_inbound_open(n);

	node_report(n, ret);
	n->open = !ret;
}

/* Advance the first contact. Return whether packets and stores may go to the peer. */
static bool contact_advance(struct ntb_node *n)
{
	u32 life = word_receive(n, NTB_WORD_LIFE), state;

	if (life >> 16 != NTB_MAGIC || !(u16)life)
		return false;
	if ((u16)life != n->peer_generation)
		contact_new_life(n, life);
	if (n->acked != n->peer_generation)
		contact_acknowledge(n);
	state = word_receive(n, NTB_WORD_STATE);
	if (state >> 16 != n->generation || (state >> 8 & 0xff) != PAGE_SHIFT)
		return false;
	if (!n->open)
		contact_open(n);
	return n->open && state & 1 && n->acked == n->peer_generation &&
	       (n->up || !contact_sizes(n));
}

/* ---- the adapter ---- */

static u64 node_max_segment(const struct ntb_node *n)
{
	u64 chunks = 0;
	unsigned int w;

	for (w = 0; w < n->windows; w++)
		chunks = max_t(u64, chunks, n->in[w].form.chunks);
	return chunks << PAGE_SHIFT;
}

static int node_adapter_create(struct ntb_node *n)
{
	struct sci_adapter_desc desc = {
		.ops = &sci_ntb_ops,
		.type = "ntb",
		.node = n->node,
		.caps = SCI_CAP_DMA,
		.att_page_size = PAGE_SIZE,
		.streams = STREAMS,
		.stream_size = STREAM_SIZE,
		.dma_max = DMA_MAX,
		.dma_align = 1,
		.bdf = pci_dev_id(n->ntb->pdev),
		.pci_domain = pci_domain_nr(n->ntb->pdev->bus),
		.max_segment = node_max_segment(n),
		.priv = n,
	};
	struct sci_adapter *a = sci_adapter_alloc(&n->ntb->dev, &desc);
	int ret;

	if (!a)
		return -ENOMEM;
	n->adapter = a;
	ret = sci_adapter_register(a);
	if (ret) {
		n->adapter = NULL;
		sci_adapter_put(a);
	}
	return ret;
}

/* Start the node. The windows' limits are known when the link is up. */
static int node_start(struct ntb_node *n)
{
	int ret = ntb_inbound_create(n, (u64)window * SZ_1M);

	if (ret)
		return ret;
	n->from_peer.slot = ntb_own_mail(n);
	n->from_self.slot = n->self;
	ret = node_adapter_create(n);
	if (ret)
		ntb_inbound_destroy(n);
	return ret;
}

static bool node_link_is_up(struct ntb_node *n)
{
	return ntb_link_is_up(n->ntb, NULL, NULL) & BIT_ULL(NTB_PEER);
}

static void node_link_down(struct ntb_node *n)
{
	if (n->adapter)
		node_set_up(n, false);
	words_forget(n);
}

static void node_tick(struct work_struct *work)
{
	struct ntb_node *n = container_of(to_delayed_work(work), struct ntb_node, tick);
	bool up;
	int ret;

	/* ntb_on_link() queues this work again when the link is up */
	if (!node_link_is_up(n)) {
		node_link_down(n);
		return;
	}
	if (!n->adapter) {
		ret = node_start(n);
		node_report(n, ret);
		if (ret) {
			queue_delayed_work(n->wq, &n->tick, TICK_UPKEEP);
			return;
		}
	}
	up = contact_advance(n);
	words_send(n);
	node_set_up(n, up);
	/* a doorbell may have been lost while the link was down */
	queue_work(n->wq, &n->mail);
	ntb_memory_scrub(n);
	queue_delayed_work(n->wq, &n->tick, up ? TICK_UPKEEP : TICK_CONTACT);
}

/* ---- events: atomic context ---- */

static void ntb_on_link(void *ctx)
{
	struct ntb_node *n = ctx;

	mod_delayed_work(n->wq, &n->tick, 0);
}

static void ntb_on_doorbell(void *ctx, int vector)
{
	struct ntb_node *n = ctx;

	ntb_db_clear(n->ntb, n->db);
	queue_work(n->wq, &n->mail);
}

/*
 * Only a full register has a word of the peer's present life. Each tick of the peer sends all
 * words: only words that have changed need a tick here.
 */
static void ntb_on_message(void *ctx)
{
	struct ntb_node *n = ctx;
	u64 inbits = ntb_msg_inbits(n->ntb), full = ntb_msg_read_sts(n->ntb) & inbits;
	bool changed = false;
	unsigned int i;
	int pidx;
	u32 word;

	/* the lowest bit of inbits is that of register i */
	for (i = 0; i < NTB_WORD_SIZE + n->windows; i++, inbits &= inbits - 1) {
		if (!(full & inbits & -inbits))
			continue;
		word = ntb_msg_read(n->ntb, &pidx, i);
		changed |= word != word_receive(n, i);
		WRITE_ONCE(n->theirs[i], word);
	}
	ntb_msg_clear_sts(n->ntb, full);
	if (changed)
		mod_delayed_work(n->wq, &n->tick, 0);
}

static const struct ntb_ctx_ops ntb_events = {
	.link_event = ntb_on_link,
	.db_event = ntb_on_doorbell,
	.msg_event = ntb_on_message,
};

/* ---- probe ---- */

/* Count the windows of both directions, limited by the words that announce them. */
static int node_count_windows(struct ntb_node *n)
{
	int words = ntb_spad_count(n->ntb);
	int windows = min(ntb_mw_count(n->ntb, NTB_PEER), ntb_peer_mw_count(n->ntb));

	if (words <= NTB_WORD_SIZE) {
		words = ntb_msg_count(n->ntb);
		n->messages = true;
	}
	n->windows = clamp(min(windows, words - NTB_WORD_SIZE), 0, NTB_WINDOWS);
	return n->windows ? 0 : -ENODEV;
}

static int node_identify(struct ntb_node *n)
{
	u64 doorbells = ntb_db_valid_mask(n->ntb);
	int own = ntb_port_number(n->ntb);
	int peer = ntb_peer_port_number(n->ntb, NTB_PEER);

	if (ntb_peer_port_count(n->ntb) != 1 || own < 0 || peer < 0 || own == peer ||
	    !doorbells)
		return -ENODEV;
	/* ntb_mw_set_trans() does nothing then: only the peer can open the windows of this node */
	if (!n->ntb->ops->mw_set_trans)
		return -ENODEV;
	n->node = SCI_IOC_NODE_STEP * (own + 1);
	n->peer = SCI_IOC_NODE_STEP * (peer + 1);
	n->db = BIT_ULL(__ffs64(doorbells));
	return node_count_windows(n);
}

static void node_free(struct ntb_node *n)
{
	if (n->wq)
		destroy_workqueue(n->wq);
	mutex_destroy(&n->lock);
	kfree(n);
}

/* The scratchpads may still have what the peer knows of the last life of this node. */
static void node_set_generation(struct ntb_node *n)
{
	u16 last = n->messages ? 0 : ntb_spad_read(n->ntb, NTB_WORD_STATE) >> 16;

	do
		n->generation = get_random_u32();
	while (!n->generation || n->generation == last);
}

static struct ntb_node *node_alloc(struct ntb_dev *ntb)
{
	struct ntb_node *n = kzalloc(sizeof(*n), GFP_KERNEL);

	if (!n)
		return NULL;
	n->ntb = ntb;
	mutex_init(&n->lock);
	spin_lock_init(&n->send_lock);
	xa_init(&n->exposed);
	INIT_LIST_HEAD(&n->limbo);
	INIT_DELAYED_WORK(&n->tick, node_tick);
	INIT_WORK(&n->mail, ntb_mail_work);
	n->sent = get_random_u32();
	n->wq = alloc_ordered_workqueue("sci_ntb", WQ_HIGHPRI);
	if (n->wq)
		return n;
	node_free(n);
	return NULL;
}

/* Stop the node. Until sci_adapter_unregister() returns, the core can send BYE to the peer. */
static void node_stop(struct ntb_node *n)
{
	ntb_db_set_mask(n->ntb, n->db);
	ntb_clear_ctx(n->ntb);
	cancel_delayed_work_sync(&n->tick);
	cancel_work_sync(&n->mail);
	if (!n->adapter)
		return;
	sci_adapter_unregister(n->adapter);
	sci_adapter_put(n->adapter);
	ntb_inbound_close(n);
	WARN_ON(!xa_empty(&n->exposed));
	ntb_inbound_destroy(n);
}

/* Unmask only the doorbell and the messages of this driver, and enable the link. */
static int node_listen(struct ntb_node *n)
{
	int ret;

	ntb_db_set_mask(n->ntb, ntb_db_valid_mask(n->ntb));
	ntb_db_clear(n->ntb, n->db);
	if (n->messages) {
		ntb_msg_set_mask(n->ntb, ntb_msg_outbits(n->ntb));
		ntb_msg_clear_sts(n->ntb, ntb_msg_inbits(n->ntb));
	}
	node_set_generation(n);
	words_forget(n);
	ret = ntb_set_ctx(n->ntb, n, &ntb_events);
	if (ret)
		return ret;
	ntb_db_clear_mask(n->ntb, n->db);
	if (n->messages)
		ntb_msg_clear_mask(n->ntb, ntb_msg_inbits(n->ntb));
	ret = ntb_link_enable(n->ntb, NTB_SPEED_AUTO, NTB_WIDTH_AUTO);
	/* -EINVAL: the hardware lets only the other side enable the link */
	if (ret && ret != -EINVAL) {
		/* the other side may have enabled the link: the node may have started */
		node_stop(n);
		return ret;
	}
	ntb_link_event(n->ntb);
	return 0;
}

static int sci_ntb_probe(struct ntb_client *client, struct ntb_dev *ntb)
{
	struct ntb_node *n = node_alloc(ntb);
	int ret;

	if (!n)
		return -ENOMEM;
	ret = node_identify(n);
	if (ret) {
		dev_info(&ntb->dev, "not a bridge to one other node with windows that this node can open, and with scratchpads or messages\n");
		goto err_free;
	}
	ret = ntb_outbound_create(n);
	if (ret)
		goto err_free;
	ret = node_listen(n);
	if (ret)
		goto err_outbound;
	return 0;

err_outbound:
	ntb_outbound_destroy(n);
err_free:
	node_free(n);
	return ret;
}

static void sci_ntb_remove(struct ntb_client *client, struct ntb_dev *ntb)
{
	struct ntb_node *n = ntb->ctx;

	node_stop(n);
	ntb_link_disable(ntb);
	ntb_outbound_destroy(n);
	node_free(n);
}

static struct ntb_client sci_ntb_client = {
	.ops = {
		.probe = sci_ntb_probe,
		.remove = sci_ntb_remove,
	},
};

static int __init sci_ntb_init(void)
{
	if (!window || window > SZ_64K) {
		pr_err("window=%u is not between 1 and 65536\n", window);
		return -EINVAL;
	}
	return ntb_register_client(&sci_ntb_client);
}

static void __exit sci_ntb_exit(void)
{
	ntb_unregister_client(&sci_ntb_client);
}

module_init(sci_ntb_init);
module_exit(sci_ntb_exit);
MODULE_AUTHOR("The libsci authors");
MODULE_DESCRIPTION("SCI adapters over non-transparent bridges");
MODULE_LICENSE("GPL");
