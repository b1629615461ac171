// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* The operations of an adapter, over a pool. */

#include <linux/io.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "core/att.h"
#include "core/pages.h"
#include "sci_pool.h"

#define IVSHMEM_DOORBELL	12
#define DMA_BURST		SZ_64K

/**
 * struct pool_view - sci_mapping.priv
 * @first: first chunk of the exposed memory
 * @size: bytes of the exposed memory
 * @entry: first entry of the ATT
 * @entries: number of entries
 */
struct pool_view {
	u32 first;
	u64 size;
	u32 entry;
	u32 entries;
};

/* ---- control packets ---- */

static void pool_ring_doorbell(struct pool_node *n, u32 node)
{
	int doorbell = n->doorbells ? pool_node_doorbell(&n->pool, node) : -1;

	if (doorbell >= 0)
		writel((u32)doorbell << 16, n->doorbells + IVSHMEM_DOORBELL);
}

static int pool_send(struct sci_adapter *a, u32 node, const void *packet)
{
	struct pool_node *n = sci_adapter_priv(a);
	int ret;

	if (!pool_node_is_active(&n->pool, node))
		return -EHOSTUNREACH;
	spin_lock(&n->send_lock);
	ret = pool_mail_send(&n->pool, node, packet);
	spin_unlock(&n->send_lock);
	if (!ret)
		pool_ring_doorbell(n, node);
	return ret;
}

/* ---- memory of segments ---- */

static u32 pool_chunks_of(const struct pool_node *n, unsigned long pages)
{
	return DIV_ROUND_UP_ULL((u64)pages << PAGE_SHIFT, n->pool.form.chunk_size);
}

static u32 pool_chunk_of(const struct pool_node *n, struct page *page)
{
	u64 at = PFN_PHYS(page_to_pfn(page)) - n->start;

	return div_u64(at - n->pool.form.data_at, n->pool.form.chunk_size);
}

static unsigned long pool_pfn(const struct pool_node *n, u32 chunk, u64 offset)
{
	return PHYS_PFN(n->start + pool_chunk_offset(&n->pool, chunk) + offset);
}

static void *pool_address(const struct pool_node *n, u32 chunk, u64 offset)
{
	return n->virt + pool_chunk_offset(&n->pool, chunk) + offset;
}

static void pool_flush_bytes(const struct pool_node *n, u32 chunk, u64 at, u64 bytes)
{
	u64 end = at + bytes;

	for (; n->flushes && at < end; at += DMA_BURST) {
		pool_flush(pool_address(n, chunk, at), min_t(u64, end - at, DMA_BURST));
		cond_resched();
	}
}

/*
 * Flush the memory of a segment. A line that stays in the cache may otherwise reach
 * memory when the memory has another owner, and an old line may hide the bytes of the owner.
 */
static void pool_flush_chunks(const struct pool_node *n, u32 chunk, u64 bytes)
{
	pool_flush_bytes(n, chunk, 0, bytes);
}

static int pool_alloc_pages(struct sci_adapter *a, unsigned long count,
			    struct page **first)
{
	struct pool_node *n = sci_adapter_priv(a);
	u32 chunk;
	int ret;

	mutex_lock(&n->lock);
	ret = pool_alloc(&n->pool, (u64)count << PAGE_SHIFT, &chunk, pool_now());
	mutex_unlock(&n->lock);
	if (ret < 0)
		return -ENOMEM;
	pool_flush_chunks(n, chunk, (u64)count << PAGE_SHIFT);
	*first = pfn_to_page(pool_pfn(n, chunk, 0));
	return 0;
}

/* A map of this node's own segment may still store: its end flushes again. */
static void pool_check_free(struct pool_node *n, u32 chunk, u64 bytes)
{
	bool mapped;

	mutex_lock(&n->lock);
	mapped = n->pool.mapped[chunk].count;
	mutex_unlock(&n->lock);
	if (!mapped)
		pool_check_clean(pool_address(n, chunk, 0), bytes);
}

static void pool_free_pages(struct sci_adapter *a, struct page *first,
			    unsigned long count)
{
	struct pool_node *n = sci_adapter_priv(a);

	pool_flush_chunks(n, pool_chunk_of(n, first), (u64)count << PAGE_SHIFT);
	if (n->check)
		pool_check_free(n, pool_chunk_of(n, first), (u64)count << PAGE_SHIFT);
	mutex_lock(&n->lock);
	pool_free(&n->pool, pool_chunk_of(n, first), pool_chunks_of(n, count),
		  pool_now());
	mutex_unlock(&n->lock);
}

static int pool_expose_pages(struct sci_adapter *a, struct sci_pages *pages, u64 *base)
{
	struct pool_node *n = sci_adapter_priv(a);
	u32 first = pool_chunk_of(n, pages->page[0]);
	int ret;

	pool_flush_chunks(n, first, (u64)pages->count << PAGE_SHIFT);
	mutex_lock(&n->lock);
	ret = xa_insert(&n->exposed, first, pages, GFP_KERNEL);
	if (!ret) {
		sci_pages_get(pages);
		*base = pool_expose(&n->pool, first, pool_chunks_of(n, pages->count),
				    get_random_u32());
	}
	mutex_unlock(&n->lock);
	/* the memory's last exposure is being given back: the caller waits for that and tries again */
	return ret == -EBUSY ? -ENOSPC : ret;
}

static void pool_hide_pages(struct sci_adapter *a, u64 base)
{
	struct pool_node *n = sci_adapter_priv(a);
	struct sci_pages *pages;

	mutex_lock(&n->lock);
	pages = xa_erase(&n->exposed, (u32)base);
	if (!WARN_ON(!pages))
		pool_hide(&n->pool, (u32)base, pool_chunks_of(n, pages->count));
	mutex_unlock(&n->lock);
	if (pages)
		sci_pages_put(pages);
}

/* ---- maps ---- */

static int pool_view_open(struct pool_node *n, u32 node, u64 base, struct pool_view *v)
{
	u32 chunks;
	int ret;

	mutex_lock(&n->lock);
	ret = pool_map(&n->pool, node, base, &v->first, &chunks);
	mutex_unlock(&n->lock);
	if (!ret)
		v->size = (u64)chunks * n->pool.form.chunk_size;
	return ret;
}

static void pool_view_close(struct pool_node *n, const struct pool_view *v)
{
	mutex_lock(&n->lock);
	pool_unmap(&n->pool, v->first);
	mutex_unlock(&n->lock);
}

/* Flush the part of the segment that the map shows, which may end behind the segment. */
static void pool_flush_view(struct pool_node *n, const struct sci_mapping *m,
			    const struct pool_view *v)
{
	if (m->offset < v->size)
		pool_flush_bytes(n, v->first, m->offset, min(m->length, v->size - m->offset));
}

static int pool_map_view(struct sci_adapter *a, struct sci_mapping *m)
{
	u64 entries = div_u64(m->length, sci_adapter_desc(a)->att_page_size);
	struct pool_node *n = sci_adapter_priv(a);
	struct pool_view *v;
	int ret;

	if (entries > U32_MAX)
		return -ENOSPC;
	v = kzalloc(sizeof(*v), GFP_KERNEL);
	if (!v)
		return -ENOMEM;
	v->entries = entries;
	ret = pool_view_open(n, m->node, m->base, v);
	if (ret)
		goto err_free;
	ret = sci_att_alloc(sci_adapter_desc(a)->att, entries, m->node, &v->entry);
	if (ret)
		goto err_view;
	pool_flush_view(n, m, v);
	m->priv = v;
	return 0;

err_view:
	pool_view_close(n, v);
err_free:
	kfree(v);
	return ret;
}

static void pool_unmap_view(struct sci_adapter *a, struct sci_mapping *m)
{
	struct pool_node *n = sci_adapter_priv(a);
	struct pool_view *v = m->priv;

	m->priv = NULL;
	sci_att_free(sci_adapter_desc(a)->att, v->entry, v->entries);
	pool_flush_view(n, m, v);
	pool_view_close(n, v);
	kfree(v);
}

static int pool_mapping_pfn(struct sci_adapter *a, struct sci_mapping *m,
			    u64 offset, unsigned long *pfn)
{
	struct pool_view *v = m->priv;

	if (offset < m->offset || offset - m->offset >= m->length || offset >= v->size)
		return -EFAULT;
	*pfn = pool_pfn(sci_adapter_priv(a), v->first, offset);
	return 0;
}

/* A program flushes lines of the simulated cache. */
static void pool_cache(struct sci_adapter *a, unsigned long pfn, unsigned int offset,
		       unsigned int length, bool drop)
{
	struct pool_node *n = sci_adapter_priv(a);

	pool_check_flush(n->virt + (PFN_PHYS(pfn) - n->start) + offset, length, drop);
}

/* ---- DMA ---- */

/* Where caches are not coherent, the copy keeps the bytes beside it in its first and last line. */
static void pool_copy(void *to, const void *from, u32 length)
{
	u32 done, burst;

	for (done = 0; done < length; done += burst) {
		burst = min_t(u32, length - done, DMA_BURST);
		pool_flush(from + done, burst);
		pool_flush(to + done, burst);
		memcpy(to + done, from + done, burst);
		pool_flush(to + done, burst);
		cond_resched();
	}
}

static int pool_dma_copy(struct sci_adapter *a, const struct sci_dma_piece *p)
{
	struct pool_node *n = sci_adapter_priv(a);
	u64 local_size = (u64)p->pages->count << PAGE_SHIFT;
	void *local, *remote;
	struct pool_view v;
	int ret;

	if (p->length > local_size || p->local > local_size - p->length)
		return -EFAULT;
	ret = pool_view_open(n, p->node, p->base, &v);
	if (ret)
		return -ENOTCONN;
	ret = -EFAULT;
	if (p->length > v.size || p->remote > v.size - p->length)
		goto out;
	local = page_address(p->pages->page[0]) + p->local;
	remote = pool_address(n, v.first, p->remote);
	if (p->pull)
		pool_copy(local, remote, p->length);
	else
		pool_copy(remote, local, p->length);
	ret = 0;
out:
	pool_view_close(n, &v);
	return ret;
}

const struct sci_adapter_ops sci_pool_ops = {
	.owner		= THIS_MODULE,
	.send		= pool_send,
	.expose		= pool_expose_pages,
	.hide		= pool_hide_pages,
	.map		= pool_map_view,
	.unmap		= pool_unmap_view,
	.mapping_pfn	= pool_mapping_pfn,
	.alloc		= pool_alloc_pages,
	.free		= pool_free_pages,
	.cache		= pool_cache,
	.dma_copy	= pool_dma_copy,
};
