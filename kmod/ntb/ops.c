// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* The operations of an adapter, over a bridge. */

#include <linux/io.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "core/pages.h"
#include "sci_ntb.h"

#define DMA_BURST	SZ_64K

static int ntb_send(struct sci_adapter *a, u32 node, const void *packet)
{
	return ntb_mail_send(sci_adapter_priv(a), node, packet);
}

static int ntb_alloc_pages(struct sci_adapter *a, unsigned long count,
			   struct page **first)
{
	return ntb_memory_alloc(sci_adapter_priv(a), count, first);
}

static void ntb_free_pages(struct sci_adapter *a, struct page *first,
			   unsigned long count)
{
	ntb_memory_free(sci_adapter_priv(a), first, count);
}

static int ntb_expose_pages(struct sci_adapter *a, struct sci_pages *pages, u64 *base)
{
	return ntb_expose(sci_adapter_priv(a), pages, base);
}

static void ntb_hide_pages(struct sci_adapter *a, u64 base)
{
	ntb_hide(sci_adapter_priv(a), base);
}

/* ---- maps ---- */

static int ntb_map(struct sci_adapter *a, struct sci_mapping *m)
{
	struct ntb_view *v = kzalloc(sizeof(*v), GFP_KERNEL);
	int ret;

	if (!v)
		return -ENOMEM;
	ret = ntb_view_open(sci_adapter_priv(a), m->node, m->base, v);
	if (ret) {
		kfree(v);
		return ret;
	}
	m->priv = v;
	return 0;
}

static void ntb_unmap(struct sci_adapter *a, struct sci_mapping *m)
{
	struct ntb_view *v = m->priv;

	m->priv = NULL;
	ntb_view_close(sci_adapter_priv(a), v);
	kfree(v);
}

static int ntb_mapping_pfn(struct sci_adapter *a, struct sci_mapping *m, u64 offset,
			   unsigned long *pfn)
{
	struct ntb_node *n = sci_adapter_priv(a);
	struct ntb_view *v = m->priv;

	if (offset < m->offset || offset - m->offset >= m->length || offset >= v->size)
		return -EFAULT;
	if (v->pages)
		*pfn = page_to_pfn(v->pages->page[offset >> PAGE_SHIFT]);
	else
		*pfn = PHYS_PFN(n->out[v->window].phys + v->offset + offset);
	return 0;
}

/*
 * Return whether all stores have arrived.  A read from the peer does not overtake the
 * stores before it.  It returns all ones if there is no link.  The bridge does not count
 * lost stores.
 */
static bool ntb_stores_arrived(struct ntb_node *n)
{
	/* stores leave the write-combining buffers before the read */
	mb();
	return ntb_node_is_up(n) && readl(n->out[0].virt) != ~0u;
}

static void ntb_flush(struct sci_adapter *a)
{
	if (!ntb_stores_arrived(sci_adapter_priv(a)))
		sci_adapter_error(a, false);
}

/* ---- DMA, by the CPU ---- */

static bool ntb_contains(u64 size, u64 offset, u32 length)
{
	return length <= size && offset <= size - length;
}

static void ntb_copy(struct ntb_node *n, const struct ntb_view *v, u64 remote,
		     void *local, u32 length, bool pull)
{
	u8 __iomem *peer;
	void *own;

	if (v->pages) {
		own = page_address(v->pages->page[0]) + remote;
		memmove(pull ? local : own, pull ? own : local, length);
		return;
	}
	peer = n->out[v->window].virt + v->offset + remote;
	if (pull)
		memcpy_fromio(local, peer, length);
	else
		memcpy_toio(peer, local, length);
}

/* Copy in bursts, so that the copy ends early if the link goes down. */
static int ntb_copy_all(struct ntb_node *n, const struct ntb_view *v,
			const struct sci_dma_piece *p)
{
	void *local = page_address(p->pages->page[0]) + p->local;
	u32 done, burst;

	for (done = 0; done < p->length; done += burst) {
		burst = min_t(u32, p->length - done, DMA_BURST);
		if (!v->pages && !ntb_node_is_up(n))
			return -EIO;
		ntb_copy(n, v, p->remote + done, local + done, burst, p->pull);
		cond_resched();
	}
	return v->pages || ntb_stores_arrived(n) ? 0 : -EIO;
}

static int ntb_dma_copy(struct sci_adapter *a, const struct sci_dma_piece *p)
{
	struct ntb_node *n = sci_adapter_priv(a);
	struct ntb_view v = { };
	int ret;

	if (p->node != n->node && !ntb_node_is_up(n))
		return -EIO;
	if (ntb_view_open(n, p->node, p->base, &v))
		return -ENOTCONN;
	ret = -EFAULT;
	if (ntb_contains(v.size, p->remote, p->length) &&
	    ntb_contains((u64)p->pages->count << PAGE_SHIFT, p->local, p->length))
		ret = ntb_copy_all(n, &v, p);
	ntb_view_close(n, &v);
	return ret;
}

const struct sci_adapter_ops sci_ntb_ops = {
	.owner		= THIS_MODULE,
	.send		= ntb_send,
	.expose		= ntb_expose_pages,
	.hide		= ntb_hide_pages,
	.map		= ntb_map,
	.unmap		= ntb_unmap,
	.mapping_pfn	= ntb_mapping_pfn,
	.flush		= ntb_flush,
	.alloc		= ntb_alloc_pages,
	.free		= ntb_free_pages,
	.dma_copy	= ntb_dma_copy,
};
