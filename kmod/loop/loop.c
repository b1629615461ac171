// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: sci_loop.ko: virtual adapters that connect nodes in this machine
 *
 * All nodes are in one kernel, in any number: imports are the exporter's pages, control
 * packets go through a list, and remote interrupts are function calls.  The module is for
 * programs without a card, and for tests.  Files in debugfs sci/sciN/fault/ lose, double,
 * delay and withhold control packets, damage the messages in them, break DMA, take the
 * link down and report errors.  Files sci_loop/remove and sci_loop/add remove and add nodes.
 *
 * Nodes find each other in loop_nodes under loop_srcu.  Removal of a node erases it from
 * the table first.  After a grace period no other node calls into it any more.  Readers may
 * wait for locks of the core, so a thread that waits for readers holds none of these locks:
 * exposed memory has a lock of its own.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/debugfs.h>
#include <linux/highmem.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/srcu.h>

#include "core/att.h"
#include "core/compat.h"
#include "core/group.h"
#include "core/pages.h"
#include "loop.h"

#define NODES_MAX	64
#define ENTRIES_MAX	65536
#define INBOX_MAX	1024		/* limit of waiting packets; later packets are lost */
#define STREAMS		16		/* as many as newer cards have */
#define STREAM_SIZE	128
#define DMA_MAX		SZ_64M
#define DMA_BURST	SZ_64K

static unsigned int nodes = 2;
module_param(nodes, uint, 0444);
MODULE_PARM_DESC(nodes, "Nodes, with ids 4, 8, 12... (1 to 64, default 2)");

static unsigned int att_entries = 8192;
module_param(att_entries, uint, 0444);
MODULE_PARM_DESC(att_entries,
		 "Entries of each address translation table (1 to 65536, default 8192)");

static unsigned int att_page_size = SZ_64K;
module_param(att_page_size, uint, 0444);
MODULE_PARM_DESC(att_page_size,
		 "Bytes one entry maps (power of two from 4096 to 524288, default 65536)");

static unsigned int max_segment = 1024;
module_param(max_segment, uint, 0444);
MODULE_PARM_DESC(max_segment,
		 "MiB of the largest segment (1 to 1048576, default 1024)");

static bool doorbells = true;
module_param(doorbells, bool, 0644);
MODULE_PARM_DESC(doorbells,
		 "Nodes that are added from now on have remote interrupts; else these go in control packets (Y)");

/**
 * struct loop_packet - control packet in an inbox
 * @link: entry in an inbox
 * @from: sending node
 * @data: the packet of the core
 */
struct loop_packet {
	struct list_head link;
	u32 from;
	u8 data[SCI_PACKET_SIZE] __aligned(4);
};

/**
 * struct loop_map - sci_mapping.priv
 * @pages: the pages that are mapped; this structure holds a reference
 * @first: first entry of the ATT
 * @entries: number of entries of the ATT
 */
struct loop_map {
	struct sci_pages *pages;
	u32 first;
	u32 entries;
};

DEFINE_STATIC_SRCU(loop_srcu);
static DEFINE_XARRAY(loop_nodes);		/* by node id */
static DEFINE_MUTEX(loop_lock);			/* held to add or remove a node */
static atomic64_t loop_bases;			/* number of bases handed out so far */
static struct sci_domain *loop_domain;
static struct workqueue_struct *loop_wq;
static struct dentry *loop_debugfs;

static u32 loop_node_id(const struct loop_node *n)
{
	return sci_adapter_desc(n->adapter)->node;
}

/* Find a node. Context: under loop_srcu, so that the node is not freed. */
static struct loop_node *loop_find(u32 node)
{
	lockdep_assert(srcu_read_lock_held(&loop_srcu));
	return xa_load(&loop_nodes, node);
}

/* ---- control packets ---- */

static void loop_inbox_append(struct loop_node *to, struct loop_packet *p)
{
	lockdep_assert_held(&to->inbox_lock);
	if (to->inbox_count == INBOX_MAX) {
		kfree(p);
		return;
	}
	list_add_tail(&p->link, &to->inbox);
	to->inbox_count++;
}

static void loop_inbox_put(struct loop_node *to, struct loop_packet *p,
			   bool hold)
{
	spin_lock(&to->inbox_lock);
	if (hold && !to->held) {
		to->held = p;
	} else {
		loop_inbox_append(to, p);
		if (to->held)
			loop_inbox_append(to, to->held);
		to->held = NULL;
	}
	spin_unlock(&to->inbox_lock);
}

static struct loop_packet *loop_inbox_take(struct loop_node *n)
{
	struct loop_packet *p;

	spin_lock(&n->inbox_lock);
	p = list_first_entry_or_null(&n->inbox, struct loop_packet, link);
	if (p) {
		list_del(&p->link);
		n->inbox_count--;
	}
	spin_unlock(&n->inbox_lock);
	return p;
}

static void loop_inbox_free(struct loop_node *n)
{
	struct loop_packet *p;

	while ((p = loop_inbox_take(n)))
		kfree(p);
	kfree(n->held);
}

static void loop_work(struct work_struct *work)
{
	struct loop_node *n = container_of(work, struct loop_node, work);
	struct loop_packet *p;

	while ((p = loop_inbox_take(n))) {
		if (loop_link_up(n))
			sci_adapter_receive(n->adapter, p->from, p->data);
		kfree(p);
		cond_resched();
	}
}

static int loop_post(struct loop_node *from, struct loop_node *to,
		     const void *packet)
{
	struct loop_packet *p = kmalloc(sizeof(*p), GFP_KERNEL);

	if (!p)
		return -ENOMEM;
	p->from = loop_node_id(from);
	memcpy(p->data, packet, SCI_PACKET_SIZE);
	loop_damage(from, (struct sci_packet *)p->data);
	loop_inbox_put(to, p, loop_chance(from, &from->fault.reorder));
	queue_work(loop_wq, &to->work);
	return 0;
}

static int loop_transmit(struct loop_node *from, struct loop_node *to,
			 const void *packet)
{
	int ret;

	if (!loop_link_up(to) || loop_chance(from, &from->fault.loss) ||
	    loop_withholds(from, packet))
		return 0;
	ret = loop_post(from, to, packet);
	if (!ret && loop_chance(from, &from->fault.duplicate))
		ret = loop_post(from, to, packet);
	return ret;
}

static int loop_send(struct sci_adapter *a, u32 node, const void *packet)
{
	struct loop_node *from = sci_adapter_priv(a), *to;
	int idx, ret = -EHOSTUNREACH;

	if (!loop_link_up(from))
		return -ENETDOWN;
	idx = srcu_read_lock(&loop_srcu);
	to = loop_find(node);
	if (to)
		ret = loop_transmit(from, to, packet);
	srcu_read_unlock(&loop_srcu, idx);
	return ret;
}

/* ---- exposed memory ---- */

/* Expose memory. Bases are counted up, so that a stale base never names other memory. */
static int loop_expose(struct sci_adapter *a, struct sci_pages *pages,
		       u64 *base)
{
	struct loop_node *n = sci_adapter_priv(a);
	u64 next = atomic64_inc_return(&loop_bases);
	int ret;

	down_write(&n->exposed_lock);
	ret = xa_insert(&n->exposed, next, pages, GFP_KERNEL);
	if (!ret)
		sci_pages_get(pages);
	up_write(&n->exposed_lock);
	if (!ret)
		*base = next;
	return ret;
}

static void loop_hide(struct sci_adapter *a, u64 base)
{
	struct loop_node *n = sci_adapter_priv(a);
	struct sci_pages *pages;

	/* the lock waits for copies that have begun */
	down_write(&n->exposed_lock);
	pages = xa_erase(&n->exposed, base);
	up_write(&n->exposed_lock);
	if (!WARN_ON(!pages))
		sci_pages_put(pages);
}

static struct sci_pages *loop_exposed_find(struct loop_node *n, u64 base)
{
	lockdep_assert_held(&n->exposed_lock);
	return xa_load(&n->exposed, base);
}

/* Return a reference to the memory that @node exposes as @base, or NULL. */
static struct sci_pages *loop_exposed_get(u32 node, u64 base)
{
	int idx = srcu_read_lock(&loop_srcu);
	struct loop_node *n = loop_find(node);
	struct sci_pages *pages = NULL;

	if (n) {
		down_read(&n->exposed_lock);
		pages = loop_exposed_find(n, base);
		if (pages)
			sci_pages_get(pages);
		up_read(&n->exposed_lock);
	}
	srcu_read_unlock(&loop_srcu, idx);
	return pages;
}

/* ---- maps ---- */

static int loop_map(struct sci_adapter *a, struct sci_mapping *m)
{
	u64 entries = div_u64(m->length, sci_adapter_desc(a)->att_page_size);
	struct loop_map *map;
	int ret;

	if (entries > ENTRIES_MAX)
		return -ENOSPC;
	map = kzalloc(sizeof(*map), GFP_KERNEL);
	if (!map)
		return -ENOMEM;
	map->pages = loop_exposed_get(m->node, m->base);
	if (!map->pages) {
		ret = -ENOENT;
		goto err_map;
	}
	map->entries = entries;
	ret = sci_att_alloc(sci_adapter_desc(a)->att, entries, m->node, &map->first);
	if (ret)
		goto err_pages;
	m->priv = map;
	return 0;

err_pages:
	sci_pages_put(map->pages);
err_map:
	kfree(map);
	return ret;
}

static void loop_unmap(struct sci_adapter *a, struct sci_mapping *m)
{
	struct loop_map *map = m->priv;

	loop_unmap_hold(sci_adapter_priv(a));
	m->priv = NULL;
	sci_att_free(sci_adapter_desc(a)->att, map->first, map->entries);
	sci_pages_put(map->pages);
	kfree(map);
}

static int loop_mapping_pfn(struct sci_adapter *a, struct sci_mapping *m,
			    u64 offset, unsigned long *pfn)
{
	struct loop_map *map = m->priv;
	u64 page = offset >> PAGE_SHIFT;

	if (offset < m->offset || offset - m->offset >= m->length ||
	    page >= map->pages->count)
		return -EFAULT;
	*pfn = page_to_pfn(map->pages->page[page]);
	return 0;
}

/* ---- remote interrupts ---- */

static int loop_trigger(struct sci_adapter *a, u32 node, u32 handle)
{
	struct loop_node *from = sci_adapter_priv(a), *to;
	int idx, ret = -EHOSTUNREACH;

	if (!loop_link_up(from))
		return -ENETDOWN;
	idx = srcu_read_lock(&loop_srcu);
	to = loop_find(node);
	if (to && loop_link_up(to)) {
		sci_adapter_interrupt(to->adapter, loop_node_id(from), handle);
		ret = 0;
	}
	srcu_read_unlock(&loop_srcu, idx);
	return ret;
}

/* ---- DMA ---- */

static bool loop_pages_contain(const struct sci_pages *pages, u64 offset,
			       u32 length)
{
	u64 size = (u64)pages->count << PAGE_SHIFT;

	return length <= size && offset <= size - length;
}

static void loop_pages_copy(struct sci_pages *dst, u64 to,
			    struct sci_pages *src, u64 from, u32 length)
{
	while (length) {
		u32 n = min3(length, (u32)(PAGE_SIZE - offset_in_page(to)),
			     (u32)(PAGE_SIZE - offset_in_page(from)));

		memcpy_page(dst->page[to >> PAGE_SHIFT], offset_in_page(to),
			    src->page[from >> PAGE_SHIFT],
			    offset_in_page(from), n);
		to += n;
		from += n;
		length -= n;
		cond_resched();
	}
}

/* Copy the next @length bytes of the piece, of which @done are copied already. */
static int loop_copy(struct loop_node *to, const struct sci_dma_piece *p,
		     u32 done, u32 length)
{
	struct sci_pages *remote;

	lockdep_assert_held_read(&to->exposed_lock);
	remote = loop_exposed_find(to, p->base);
	if (!remote)
		return -ENOTCONN;
	if (!loop_pages_contain(remote, p->remote, p->length) ||
	    !loop_pages_contain(p->pages, p->local, p->length))
		return -EFAULT;
	if (p->pull)
		loop_pages_copy(p->pages, p->local + done, remote,
				p->remote + done, length);
	else
		loop_pages_copy(remote, p->remote + done, p->pages,
				p->local + done, length);
	return 0;
}

static int loop_dma_burst(struct loop_node *from, const struct sci_dma_piece *p,
			  u32 done, u32 length)
{
	struct loop_node *to;
	int idx, ret = -EIO;

	idx = srcu_read_lock(&loop_srcu);
	to = loop_find(p->node);
	if (to && loop_link_up(to) && loop_link_up(from)) {
		down_read(&to->exposed_lock);
		ret = loop_copy(to, p, done, length);
		up_read(&to->exposed_lock);
	}
	srcu_read_unlock(&loop_srcu, idx);
	return ret;
}

/*
 * Copy in bursts, so that hide() and removal need not wait for the whole piece. An
 * injected error loses the second half.
 */
static int loop_dma_copy(struct sci_adapter *a, const struct sci_dma_piece *p)
{
	struct loop_node *from = sci_adapter_priv(a);
	bool fail = loop_chance(from, &from->fault.dma_errors);
	u32 length = fail ? p->length / 2 : p->length;
	u32 done, burst;
	int ret;

	for (done = 0; done < length; done += burst) {
		burst = min_t(u32, length - done, DMA_BURST);
		ret = loop_dma_burst(from, p, done, burst);
		if (ret)
			return ret;
	}
	return fail ? -EIO : 0;
}

static const struct sci_adapter_ops loop_ops = {
	.owner		= THIS_MODULE,
	.send		= loop_send,
	.expose		= loop_expose,
	.hide		= loop_hide,
	.map		= loop_map,
	.unmap		= loop_unmap,
	.mapping_pfn	= loop_mapping_pfn,
	.trigger	= loop_trigger,
	.dma_copy	= loop_dma_copy,
};

/* Operations of an adapter without remote interrupts: triggers are messages. */
static const struct sci_adapter_ops loop_ops_by_message = {
	.owner		= THIS_MODULE,
	.send		= loop_send,
	.expose		= loop_expose,
	.hide		= loop_hide,
	.map		= loop_map,
	.unmap		= loop_unmap,
	.mapping_pfn	= loop_mapping_pfn,
	.dma_copy	= loop_dma_copy,
};

/* ---- nodes ---- */

void loop_set_link(struct loop_node *n, bool up)
{
	mutex_lock(&n->link_lock);
	WRITE_ONCE(n->link, up);
	sci_adapter_set_link(n->adapter, up);
	mutex_unlock(&n->link_lock);
}

static int loop_adapter_create(struct loop_node *n, u32 node)
{
	struct sci_adapter_desc desc = {
		.ops = doorbells ? &loop_ops : &loop_ops_by_message,
		.type = "loop",
		.node = node,
		.caps = SCI_CAP_MEMORY | SCI_CAP_DMA | SCI_CAP_BROADCAST |
			SCI_CAP_REGISTER,
		.serial = node,
		.att_page_size = att_page_size,
		.streams = STREAMS,
		.stream_size = STREAM_SIZE,
		.dma_max = DMA_MAX,
		.dma_align = 1,
		.mcast_groups = U16_MAX,
		.max_segment = (u64)max_segment << 20,
		.domain = loop_domain,
		.priv = n,
	};

	desc.att = sci_att_create(att_entries);
	if (!desc.att)
		return -ENOMEM;
	n->adapter = sci_adapter_alloc(NULL, &desc);
	if (!n->adapter) {
		sci_att_destroy(desc.att);
		return -ENOMEM;
	}
	return 0;
}

static struct loop_node *loop_node_alloc(u32 node)
{
	struct loop_node *n = kzalloc(sizeof(*n), GFP_KERNEL);

	if (!n)
		return NULL;
	if (loop_adapter_create(n, node)) {
		kfree(n);
		return NULL;
	}
	mutex_init(&n->link_lock);
	spin_lock_init(&n->inbox_lock);
	INIT_LIST_HEAD(&n->inbox);
	INIT_WORK(&n->work, loop_work);
	init_rwsem(&n->exposed_lock);
	xa_init(&n->exposed);
	loop_fault_init(n, node);
	return n;
}

static void loop_node_free(struct loop_node *n)
{
	loop_inbox_free(n);
	WARN_ON(!xa_empty(&n->exposed));
	mutex_destroy(&n->link_lock);
	sci_att_destroy(sci_adapter_desc(n->adapter)->att);
	sci_adapter_put(n->adapter);
	kfree(n);
}

/* Add a node. Other nodes find it once it is complete; xa_store() then needs no memory. */
static int loop_node_add(u32 node)
{
	struct loop_node *n;
	int ret;

	lockdep_assert_held(&loop_lock);
	ret = xa_insert(&loop_nodes, node, NULL, GFP_KERNEL);
	if (ret)
		return ret == -EBUSY ? -EEXIST : ret;
	n = loop_node_alloc(node);
	if (!n) {
		ret = -ENOMEM;
		goto err_reserved;
	}
	ret = sci_adapter_register(n->adapter);
	if (ret)
		goto err_node;
	xa_store(&loop_nodes, node, n, GFP_KERNEL);
	loop_fault_add(n);
	loop_set_link(n, true);
	return 0;

err_node:
	loop_node_free(n);
err_reserved:
	xa_release(&loop_nodes, node);
	return ret;
}

/* Remove a node. sci_adapter_unregister() sends a BYE to its peers. */
static void loop_node_remove(struct loop_node *n)
{
	lockdep_assert_held(&loop_lock);
	loop_fault_remove(n);
	xa_erase(&loop_nodes, loop_node_id(n));
	synchronize_srcu(&loop_srcu);
	cancel_work_sync(&n->work);
	sci_adapter_unregister(n->adapter);
	loop_node_free(n);
}

static void loop_remove_all(void)
{
	struct loop_node *n;
	unsigned long node;

	mutex_lock(&loop_lock);
	xa_for_each(&loop_nodes, node, n)
		loop_node_remove(n);
	mutex_unlock(&loop_lock);
}

static int loop_add_all(void)
{
	unsigned int i;
	int ret = 0;

	mutex_lock(&loop_lock);
	for (i = 1; !ret && i <= nodes; i++)
		ret = loop_node_add(i * SCI_IOC_NODE_STEP);
	mutex_unlock(&loop_lock);
	if (ret)
		loop_remove_all();
	return ret;
}

static int loop_add_set(void *data, u64 val)
{
	int ret;

	if (!val || val > SCI_IOC_NODE_MAX || val % SCI_IOC_NODE_STEP)
		return -EINVAL;
	mutex_lock(&loop_lock);
	ret = loop_node_add(val);
	mutex_unlock(&loop_lock);
	return ret;
}
DEFINE_DEBUGFS_ATTRIBUTE(loop_add_fops, NULL, loop_add_set, "%llu\n");

static int loop_remove_set(void *data, u64 val)
{
	struct loop_node *n;

	if (val > SCI_IOC_NODE_MAX)
		return -EINVAL;
	mutex_lock(&loop_lock);
	n = xa_load(&loop_nodes, val);
	if (n)
		loop_node_remove(n);
	mutex_unlock(&loop_lock);
	return n ? 0 : -ENOENT;
}
DEFINE_DEBUGFS_ATTRIBUTE(loop_remove_fops, NULL, loop_remove_set, "%llu\n");

/* ---- module ---- */

static int __init loop_check_param(const char *name, unsigned int val,
				   unsigned int low, unsigned int high)
{
	if (val >= low && val <= high)
		return 0;
	pr_err("%s=%u is not between %u and %u\n", name, val, low, high);
	return -EINVAL;
}

static int __init loop_check_params(void)
{
	unsigned int page_min = max_t(unsigned int, SZ_4K, PAGE_SIZE);

	if (loop_check_param("nodes", nodes, 1, NODES_MAX) ||
	    loop_check_param("att_entries", att_entries, 1, ENTRIES_MAX) ||
	    loop_check_param("att_page_size", att_page_size, page_min,
			     SZ_512K) ||
	    loop_check_param("max_segment", max_segment, 1, SZ_1M))
		return -EINVAL;
	if (!is_power_of_2(att_page_size)) {
		pr_err("att_page_size=%u is not a power of two\n",
		       att_page_size);
		return -EINVAL;
	}
	return 0;
}

static int __init loop_init(void)
{
	int ret = loop_check_params();

	if (ret)
		return ret;
	loop_domain = sci_domain_create();
	if (!loop_domain)
		return -ENOMEM;
	loop_wq = alloc_workqueue("sci_loop", WQ_UNBOUND, 0);
	if (!loop_wq) {
		ret = -ENOMEM;
		goto err_domain;
	}
	ret = loop_add_all();
	if (ret)
		goto err_wq;
	loop_debugfs = debugfs_create_dir("sci_loop", NULL);
	debugfs_create_file("add", 0200, loop_debugfs, NULL, &loop_add_fops);
	debugfs_create_file("remove", 0200, loop_debugfs, NULL,
			    &loop_remove_fops);
	return 0;

err_wq:
	destroy_workqueue(loop_wq);
err_domain:
	sci_domain_destroy(loop_domain);
	return ret;
}

static void __exit loop_exit(void)
{
	debugfs_remove_recursive(loop_debugfs);
	loop_remove_all();
	destroy_workqueue(loop_wq);
	sci_domain_destroy(loop_domain);
}

module_init(loop_init);
module_exit(loop_exit);
MODULE_AUTHOR("The libsci authors");
MODULE_DESCRIPTION("SCI adapters whose cables end in this machine");
MODULE_LICENSE("GPL");
