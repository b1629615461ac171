// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Memory windows: inbound memory, exposed memory in it, and maps of the peer's memory. */

#include <linux/dma-map-ops.h>
#include <linux/io.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "core/att.h"
#include "core/compat.h"
#include "core/pages.h"
#include "sci_ntb.h"

#define INBOUND_MIN	SZ_1M

/* The result of sci_adapter_ops.expose(): serial << 32 | window << 24 | first chunk */
#define BASE_WINDOW_SHIFT	24
#define BASE_SERIAL_SHIFT	32
#define CHUNKS_MAX		BIT(BASE_WINDOW_SHIFT)

/**
 * struct ntb_limbo - freed memory that the peer has not unmapped
 * @link: entry in ntb_node.limbo
 * @window: inbound window
 * @first: first chunk of the memory
 * @count: number of chunks
 */
struct ntb_limbo {
	struct list_head link;
	u32 window;
	u32 first;
	u32 count;
};

static u64 base_make(u32 window, u32 first, u32 serial)
{
	return (u64)serial << BASE_SERIAL_SHIFT | window << BASE_WINDOW_SHIFT | first;
}

static u32 base_window(u64 base)
{
	return (u32)base >> BASE_WINDOW_SHIFT;
}

static u32 base_first(u64 base)
{
	return (u32)base & (CHUNKS_MAX - 1);
}

/* Return the form of a window of @size bytes, which is at least INBOUND_MIN. */
static struct ntb_form window_form(u64 size)
{
	u64 chunks = min_t(u64, (size - NTB_CHUNKS_AT - PAGE_SIZE) /
			   (PAGE_SIZE + sizeof(struct ntb_chunk)), CHUNKS_MAX);

	return (struct ntb_form){
		.chunks = chunks,
		.data = PAGE_ALIGN(NTB_CHUNKS_AT + chunks * sizeof(struct ntb_chunk)),
	};
}

/* ---- inbound memory ---- */

static struct ntb_chunk *inbound_chunk(const struct ntb_inbound *in, u32 chunk)
{
	return (struct ntb_chunk *)(page_address(in->page) + NTB_CHUNKS_AT) + chunk;
}

/* Allocate consecutive memory. If there is not enough, try half the size each time. */
static int inbound_alloc(struct ntb_node *n, struct ntb_inbound *in, u64 size)
{
	struct device *dev = ntb_get_dma_dev(n->ntb);

	for (; size >= INBOUND_MIN; size /= 2) {
		in->page = dma_alloc_pages(dev, size, &in->dma, DMA_BIDIRECTIONAL,
					   GFP_KERNEL | __GFP_NOWARN);
		if (in->page) {
			in->size = size;
			return 0;
		}
	}
	return -ENOMEM;
}

static void inbound_free(struct ntb_node *n, struct ntb_inbound *in)
{
	if (!in->page)
		return;
	sci_att_destroy(in->att);
	in->att = NULL;
	kvfree(in->serials);
	in->serials = NULL;
	/* the peer can still store into a window that could not be closed: lose the memory */
	if (!in->open)
		dma_free_pages(ntb_get_dma_dev(n->ntb), in->size, in->page, in->dma,
			       DMA_BIDIRECTIONAL);
	in->page = NULL;
}

static int inbound_create(struct ntb_node *n, unsigned int w, u64 limit)
{
	resource_size_t addr_align, size_align, size_max;
	struct ntb_inbound *in = &n->in[w];
	int ret;

	ret = ntb_mw_get_align(n->ntb, NTB_PEER, w, &addr_align, &size_align, &size_max);
	if (ret)
		return ret;
	if (min_t(u64, size_max, limit) < INBOUND_MIN)
		return -EINVAL;
	ret = inbound_alloc(n, in, rounddown_pow_of_two(min_t(u64, size_max, limit)));
	if (ret)
		return ret;
	if (!IS_ALIGNED(in->dma, addr_align) || !IS_ALIGNED(in->size, size_align)) {
		if (n->error != -EINVAL)
			dev_err(&n->ntb->dev, "window %u wants memory aligned to %pa bytes\n", w,
				&addr_align);
		return -EINVAL;
	}
	memset(page_address(in->page), 0, in->size);
	in->form = window_form(in->size);
	in->att = sci_att_create(in->form.chunks);
	in->serials = kvcalloc(in->form.chunks, sizeof(*in->serials), GFP_KERNEL);
	return in->att && in->serials ? 0 : -ENOMEM;
}

int ntb_inbound_create(struct ntb_node *n, u64 limit)
{
	unsigned int w;
	int ret;

	/* the core maps the memory as cached, so DMA must be coherent */
	if (!dev_is_dma_coherent(ntb_get_dma_dev(n->ntb)))
		return -EOPNOTSUPP;
	for (w = 0; w < n->windows; w++) {
		ret = inbound_create(n, w, limit);
		if (ret) {
			ntb_inbound_destroy(n);
			return ret;
		}
	}
	return 0;
}

static void limbo_destroy(struct ntb_node *n)
{
	struct ntb_limbo *l, *next;

	list_for_each_entry_safe(l, next, &n->limbo, link) {
		sci_att_free(n->in[l->window].att, l->first, l->count);
		kfree(l);
	}
	INIT_LIST_HEAD(&n->limbo);
}

void ntb_inbound_destroy(struct ntb_node *n)
{
	unsigned int w;

	limbo_destroy(n);
	for (w = 0; w < n->windows; w++)
		inbound_free(n, &n->in[w]);
}

int ntb_inbound_open(struct ntb_node *n)
{
	struct ntb_inbound *in;
	unsigned int w;
	int ret;

	for (w = 0; w < n->windows; w++) {
		in = &n->in[w];
		/* a call that fails may have opened the window */
		in->open = true;
		ret = ntb_mw_set_trans(n->ntb, NTB_PEER, w, in->dma, in->size);
		if (ret)
			return ret;
	}
	return 0;
}

void ntb_inbound_close(struct ntb_node *n)
{
	unsigned int w;
	int ret;

	for (w = 0; w < n->windows; w++) {
		if (!n->in[w].open)
			continue;
		ret = ntb_mw_clear_trans(n->ntb, NTB_PEER, w);
		n->in[w].open = ret;
		if (ret)
			dev_err(&n->ntb->dev, "cannot close window %u: %pe: its memory is lost\n",
				w, ERR_PTR(ret));
	}
}

void ntb_inbound_forget_marks(struct ntb_node *n)
{
	unsigned int w;
	u32 i;

	for (w = 0; w < n->windows; w++)
		for (i = 0; i < n->in[w].form.chunks; i++)
			WRITE_ONCE(inbound_chunk(&n->in[w], i)->mapped, 0);
	ntb_memory_scrub(n);
}

/* ---- memory of segments ---- */

static bool memory_is_mapped(const struct ntb_inbound *in, u32 first)
{
	return READ_ONCE(inbound_chunk(in, first)->mapped);
}

static void chunks_scrub(struct ntb_node *n)
{
	struct ntb_limbo *l, *next;

	lockdep_assert_held(&n->lock);
	list_for_each_entry_safe(l, next, &n->limbo, link) {
		if (memory_is_mapped(&n->in[l->window], l->first))
			continue;
		sci_att_free(n->in[l->window].att, l->first, l->count);
		list_del(&l->link);
		kfree(l);
	}
}

void ntb_memory_scrub(struct ntb_node *n)
{
	mutex_lock(&n->lock);
	chunks_scrub(n);
	mutex_unlock(&n->lock);
}

static int chunks_take(struct ntb_node *n, unsigned long count, struct page **page)
{
	struct ntb_inbound *in;
	u32 first;

	lockdep_assert_held(&n->lock);
	for (in = n->in; in < n->in + n->windows; in++) {
		if (count > in->form.chunks || sci_att_alloc(in->att, count, n->node, &first))
			continue;
		*page = in->page + PHYS_PFN(in->form.data) + first;
		return 0;
	}
	return -ENOMEM;
}

int ntb_memory_alloc(struct ntb_node *n, unsigned long count, struct page **first)
{
	int ret;

	mutex_lock(&n->lock);
	chunks_scrub(n);
	ret = chunks_take(n, count, first);
	mutex_unlock(&n->lock);
	return ret;
}

/* Return the window of a page of chunks_take(), and set *@first to the page's chunk. */
static u32 chunk_find(const struct ntb_node *n, const struct page *page, u32 *first)
{
	const struct ntb_inbound *in = n->in;
	unsigned long pfn = page_to_pfn(page);

	while (pfn - page_to_pfn(in->page) >= PHYS_PFN(in->size))
		in++;
	*first = pfn - page_to_pfn(in->page) - PHYS_PFN(in->form.data);
	return in - n->in;
}

void ntb_memory_free(struct ntb_node *n, struct page *page, unsigned long count)
{
	struct ntb_limbo *l = kmalloc(sizeof(*l), GFP_KERNEL | __GFP_NOFAIL);

	l->count = count;
	l->window = chunk_find(n, page, &l->first);
	mutex_lock(&n->lock);
	list_add_tail(&l->link, &n->limbo);
	chunks_scrub(n);
	mutex_unlock(&n->lock);
}

int ntb_expose(struct ntb_node *n, struct sci_pages *pages, u64 *base)
{
	u32 first, window = chunk_find(n, pages->page[0], &first);
	struct ntb_chunk *c = inbound_chunk(&n->in[window], first);
	u32 serial = get_random_u32() | 1;
	int ret;

	*base = base_make(window, first, serial);
	mutex_lock(&n->lock);
	ret = xa_insert(&n->exposed, (u32)*base, pages, GFP_KERNEL);
	if (!ret) {
		sci_pages_get(pages);
		n->in[window].serials[first] = serial;
		WRITE_ONCE(c->count, cpu_to_le32(pages->count));
		/* the peer's bridge reads the serial number before the count */
		dma_wmb();
		WRITE_ONCE(c->serial, cpu_to_le32(serial));
	}
	mutex_unlock(&n->lock);
	/* the last exposure is being given back: the caller waits for that and tries again */
	return ret == -EBUSY ? -ENOSPC : ret;
}

void ntb_hide(struct ntb_node *n, u64 base)
{
	struct sci_pages *pages;

	mutex_lock(&n->lock);
	pages = xa_erase(&n->exposed, (u32)base);
	WRITE_ONCE(inbound_chunk(&n->in[base_window(base)], base_first(base))->serial, 0);
	/*
	 * Pairs with the barrier in view_claim(): ntb_memory_free() reads the mark after it. The
	 * peer's bridge takes part, so smp_mb() is not enough.
	 */
	mb();
	mutex_unlock(&n->lock);
	if (!WARN_ON(!pages))
		sci_pages_put(pages);
}

/* ---- outbound ---- */

static int outbound_create(struct ntb_node *n, unsigned int w)
{
	struct ntb_outbound *out = &n->out[w];
	resource_size_t size;
	int ret;

	ret = ntb_peer_mw_get_addr(n->ntb, w, &out->phys, &size);
	if (ret)
		return ret;
	if (size < INBOUND_MIN || !PAGE_ALIGNED(out->phys))
		return -EINVAL;
	out->size = size;
	out->virt = ioremap_wc(out->phys, size);
	out->views = kvcalloc(window_form(size).chunks, sizeof(*out->views), GFP_KERNEL);
	return out->virt && out->views ? 0 : -ENOMEM;
}

int ntb_outbound_create(struct ntb_node *n)
{
	unsigned int w;
	int ret;

	for (w = 0; w < n->windows; w++) {
		ret = outbound_create(n, w);
		if (ret) {
			ntb_outbound_destroy(n);
			return ret;
		}
	}
	return 0;
}

void ntb_outbound_destroy(struct ntb_node *n)
{
	struct ntb_outbound *out;

	for (out = n->out; out < n->out + n->windows; out++) {
		if (out->virt)
			iounmap(out->virt);
		kvfree(out->views);
		memset(out, 0, sizeof(*out));
	}
}

int ntb_outbound_set_form(struct ntb_node *n, unsigned int w, u32 pages)
{
	struct ntb_outbound *out = &n->out[w];
	u64 size = (u64)pages << PAGE_SHIFT;

	if (size < INBOUND_MIN || size > out->size)
		return -EPROTO;
	mutex_lock(&n->lock);
	out->form = window_form(size);
	mutex_unlock(&n->lock);
	return 0;
}

static struct ntb_chunk __iomem *outbound_chunk(const struct ntb_outbound *out, u32 chunk)
{
	return (struct ntb_chunk __iomem *)(out->virt + NTB_CHUNKS_AT) + chunk;
}

void ntb_outbound_mark_again(struct ntb_node *n)
{
	const struct ntb_outbound *out;
	u32 i;

	mutex_lock(&n->lock);
	for (out = n->out; out < n->out + n->windows; out++)
		for (i = 0; i < out->form.chunks; i++) {
			writel(!!out->views[i], &outbound_chunk(out, i)->mapped);
			cond_resched();
		}
	/* the owner waits for these stores: do not leave them in a buffer */
	wmb();
	mutex_unlock(&n->lock);
}

/* ---- views ---- */

/*
 * Mark the memory at @first as mapped, then check that it is exposed. The read does not
 * overtake the mark: so either this node sees the withdrawal, or the owner sees the mark.
 */
static bool view_claim(struct ntb_outbound *out, u32 first, u32 serial, u32 *count)
{
	struct ntb_chunk __iomem *c = outbound_chunk(out, first);
	bool exposed;

	if (!out->views[first])
		writel(1, &c->mapped);
	/* the mark leaves the write-combining buffers before the read */
	mb();
	exposed = readl(&c->serial) == serial;
	*count = readl(&c->count);
	if (exposed && *count && *count <= out->form.chunks - first) {
		out->views[first]++;
		return true;
	}
	if (!out->views[first])
		writel(0, &c->mapped);
	return false;
}

static int view_open_peer(struct ntb_node *n, u64 base, struct ntb_view *v)
{
	struct ntb_outbound *out;
	u32 count;

	lockdep_assert_held(&n->lock);
	if (base_window(base) >= n->windows || !ntb_node_is_up(n))
		return -ENOENT;
	out = &n->out[base_window(base)];
	v->window = base_window(base);
	v->first = base_first(base);
	if (v->first >= out->form.chunks ||
	    !view_claim(out, v->first, base >> BASE_SERIAL_SHIFT, &count))
		return -ENOENT;
	n->views++;
	v->offset = out->form.data + ((u64)v->first << PAGE_SHIFT);
	v->size = (u64)count << PAGE_SHIFT;
	return 0;
}

static int view_open_own(struct ntb_node *n, u64 base, struct ntb_view *v)
{
	struct sci_pages *pages = xa_load(&n->exposed, (u32)base);

	lockdep_assert_held(&n->lock);
	if (!pages || n->in[base_window(base)].serials[base_first(base)] !=
	    base >> BASE_SERIAL_SHIFT)
		return -ENOENT;
	v->pages = sci_pages_get(pages);
	v->size = (u64)v->pages->count << PAGE_SHIFT;
	return 0;
}

int ntb_view_open(struct ntb_node *n, u32 node, u64 base, struct ntb_view *v)
{
	int ret = -ENOENT;

	mutex_lock(&n->lock);
	if (node == n->node)
		ret = view_open_own(n, base, v);
	else if (node == n->peer)
		ret = view_open_peer(n, base, v);
	mutex_unlock(&n->lock);
	return ret;
}

void ntb_view_close(struct ntb_node *n, struct ntb_view *v)
{
	struct ntb_outbound *out = &n->out[v->window];

	if (v->pages) {
		sci_pages_put(v->pages);
		return;
	}
	mutex_lock(&n->lock);
	n->views--;
	if (!--out->views[v->first]) {
		/* all stores to the memory come before the owner may use it again */
		mb();
		writel(0, &outbound_chunk(out, v->first)->mapped);
		/* the owner waits for this store: do not leave it in a buffer */
		wmb();
	}
	mutex_unlock(&n->lock);
}
