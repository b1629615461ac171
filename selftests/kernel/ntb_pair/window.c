// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Memory windows: their memory, and the DMA operations that allocate it. */

#include <linux/dma-map-ops.h>
#include <linux/mm.h>
#include <linux/set_memory.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "pair.h"

#ifndef PAIR_HAS_ALLOC_PAGES_OP	/* before 6.10 */
#define alloc_pages_op	alloc_pages
#endif

#define BLOCK		SZ_4M			/* largest block of the page allocator */
#define BLOCKS_MAX	512u
#define BUS_BASE	0x5c100000000ull

unsigned int pair_windows = 2;
unsigned long pair_window_size = SZ_16M;
bool pair_other;
unsigned int pair_fail;
unsigned int pair_failed;
unsigned int pair_taken;
static struct page *pair_memory;		/* all windows, contiguous */
static unsigned int pair_blocks;

/* ---- contiguous memory ---- */

static void block_free(struct page *block)
{
	__free_pages(block, get_order(BLOCK));
}

/* Insert @block, sorted by address, and return its index. */
static unsigned int block_insert(struct page **blocks, unsigned int count,
				 struct page *block)
{
	unsigned int i = count;

	for (; i && blocks[i - 1] > block; i--)
		blocks[i] = blocks[i - 1];
	blocks[i] = block;
	return i;
}

static bool block_follows(struct page *const *blocks, unsigned int i)
{
	return page_to_pfn(blocks[i]) == page_to_pfn(blocks[i - 1]) + BLOCK / PAGE_SIZE;
}

/* Return whether block @i is in a run of @wanted blocks that begins at @first. */
static bool block_run(struct page *const *blocks, unsigned int count, unsigned int i,
		      unsigned int wanted, unsigned int *first)
{
	unsigned int end = i + 1;

	while (i && block_follows(blocks, i))
		i--;
	while (end < count && block_follows(blocks, end))
		end++;
	*first = i;
	return end - i >= wanted;
}

/* Allocate blocks until @wanted of them are contiguous; free the others. */
static struct page *blocks_alloc(unsigned int wanted)
{
	struct page **blocks = kcalloc(BLOCKS_MAX, sizeof(*blocks), GFP_KERNEL);
	unsigned int count = 0, first = 0, i;
	struct page *block, *run = NULL;

	while (blocks && !run && count < BLOCKS_MAX) {
		block = alloc_pages(GFP_KERNEL | __GFP_NOWARN | __GFP_NORETRY,
				    get_order(BLOCK));
		if (!block)
			break;
		i = block_insert(blocks, count, block);
		if (block_run(blocks, ++count, i, wanted, &first))
			run = blocks[first];
	}
	for (i = 0; i < count; i++)
		if (!run || i < first || i >= first + wanted)
			block_free(blocks[i]);
	kfree(blocks);
	return run;
}

int pair_windows_create(void)
{
	unsigned long pages, i;
	struct pair_window *w;
	struct page *page;

	pair_blocks = 2 * pair_windows * pair_window_size / BLOCK;
	pair_memory = blocks_alloc(pair_blocks);
	if (!pair_memory)
		return -ENOMEM;
	/* ioremap() works only on memory that the kernel does not use */
	pages = pair_blocks * (BLOCK / PAGE_SIZE);
	for (i = 0; i < pages; i++)
		SetPageReserved(pair_memory + i);
	page = pair_memory;
	for (i = 0; i < 2 * pair_windows; i++) {
		w = &pair_bridges[i / pair_windows].window[i % pair_windows];
		w->page = page;
		w->bus = BUS_BASE + i * pair_window_size;
		page += pair_window_size / PAGE_SIZE;
	}
	return 0;
}

void pair_windows_destroy(void)
{
	unsigned long pages = pair_blocks * (BLOCK / PAGE_SIZE), i;

	/* ioremap_wc() has also changed the kernel's own map */
	set_memory_wb((unsigned long)page_address(pair_memory), pages);
	for (i = 0; i < pages; i++)
		ClearPageReserved(pair_memory + i);
	for (i = 0; i < pair_blocks; i++)
		block_free(pair_memory + i * (BLOCK / PAGE_SIZE));
}

/* ---- DMA operations ---- */

static struct pair_bridge *pair_of(struct device *dev)
{
	return pci_get_drvdata(to_pci_dev(dev));
}

static struct pair_window *window_take(struct pair_bridge *b, size_t size)
{
	struct pair_window *w;
	bool taken = true;

	if (size > pair_window_size ||
	    (b->asked == pair_windows - 1 && pair_fails(PAIR_MEMORY)))
		return NULL;
	spin_lock_irq(&pair_lock);
	w = &b->window[pair_other ? (b->asked + 1) % pair_windows : b->asked];
	swap(w->taken, taken);
	pair_taken += !taken;
	spin_unlock_irq(&pair_lock);
	return taken ? NULL : w;
}

static void window_put(struct pair_bridge *b, dma_addr_t bus)
{
	unsigned int i;

	spin_lock_irq(&pair_lock);
	for (i = 0; i < pair_windows; i++)
		if (b->window[i].bus == bus) {
			WARN_ON(!b->window[i].taken || b->window[i].translated);
			b->window[i].taken = false;
			pair_taken--;
		}
	spin_unlock_irq(&pair_lock);
}

static struct page *pair_alloc_pages(struct device *dev, size_t size, dma_addr_t *bus,
				     enum dma_data_direction dir, gfp_t gfp)
{
	struct pair_window *w = window_take(pair_of(dev), size);

	if (!w)
		return NULL;
	memset(page_address(w->page), 0, size);
	*bus = w->bus;
	return w->page;
}

static void pair_free_pages(struct device *dev, size_t size, struct page *page,
			    dma_addr_t bus, enum dma_data_direction dir)
{
	window_put(pair_of(dev), bus);
}

static void *pair_alloc(struct device *dev, size_t size, dma_addr_t *bus, gfp_t gfp,
			unsigned long attrs)
{
	struct page *page = pair_alloc_pages(dev, size, bus, DMA_BIDIRECTIONAL, gfp);

	return page ? page_address(page) : NULL;
}

static void pair_free(struct device *dev, size_t size, void *virt, dma_addr_t bus,
		      unsigned long attrs)
{
	window_put(pair_of(dev), bus);
}

const struct dma_map_ops pair_dma_ops = {
	.alloc		= pair_alloc,
	.free		= pair_free,
	.alloc_pages_op	= pair_alloc_pages,
	.free_pages	= pair_free_pages,
};
