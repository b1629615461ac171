/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the heap
 *
 * The heap is one range of addresses, divided into units of 64 KiB. A run of units is free, or one
 * large block, or a slab: blocks of one size. The table of units is separate from the
 * blocks. Each slab belongs to an arena, and a thread allocates from one arena, so that
 * nodes seldom share a page. Any thread may free a block: the block returns to its slab.
 *
 * The arena's lock protects the lists of its slabs. A thread has a cache of free blocks of its
 * arena, at most 132 KiB, so most calls take no lock. The slab counts a block in a cache as
 * used. Blocks of other arenas do not enter the cache, so a thread does not get memory of
 * another node.
 *
 * The program's mappings are large blocks. The table counts the mapped pages of such a block, and
 * heap_unmap() frees the block when the program has unmapped all of them, in any order.
 *
 * While @grow is set, each node has its own free runs. If a node has none, the heap calls @grow
 * before it takes a run of node 0 or memory that was never used.
 *
 * The heap is in memory that all nodes share, and its locks work between processes.
 */
#ifndef LIBSCI_THREADS_HEAP_H
#define LIBSCI_THREADS_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lock.h"

#define HEAP_UNIT	((size_t)64 << 10)
#define HEAP_PAGE	((size_t)4 << 10)
#define HEAP_CLASSES	84u
#define HEAP_SMALL	((size_t)32 << 10)	/* a larger block is a run of units */
#define HEAP_NODES	64u
#define HEAP_NODE_ARENAS	4u
#define HEAP_ARENAS	(HEAP_NODES * HEAP_NODE_ARENAS)	/* node 0 has arenas 0 to 3 */
#define HEAP_BINS	32u
#define HEAP_CACHED	((size_t)512)	/* largest block in a cache, in bytes */
#define HEAP_CACHE_CLASSES	32u
#define HEAP_CACHE_BLOCKS	16u	/* limit for each size */

struct heap_slab;

struct heap_arena {
	struct lock lock;
	struct heap_slab *slabs[HEAP_CLASSES];	/* slabs that have a free block */
} __attribute__((aligned(64)));

enum heap_kind {
	HEAP_FREE,
	HEAP_BLOCK,
	HEAP_SLAB
};

/* The first unit of a run describes the run. The last unit of a free run has @len, too. */
struct heap_unit {
	uint32_t len;				/* units */
	union {
		uint32_t next;			/* a free run: neighbour in a bin; 0: none */
		uint32_t first;			/* each unit of a mapping: its first unit */
	};
	union {
		uint32_t prev;			/* a free run: neighbour in a bin; 0: none */
		uint32_t mapped;		/* the first unit of a mapping: mapped pages */
	};
	uint16_t pages;				/* each unit of a mapping: bit i: page i is mapped */
	uint8_t kind;
	uint8_t back;				/* in a slab: distance to its first unit */
	uint8_t zero : 1;			/* a free run: all bytes are 0 */
	uint8_t marked : 1;
	uint8_t node;				/* the node of the run */
};

struct heap {
	struct lock lock;			/* protects units, bins and top */
	char *base;
	uint32_t nunits;
	uint32_t top;				/* units from here to @limit were never used */
	uint32_t limit;				/* units from here on come from @grow only */
	uint32_t bins[HEAP_NODES][HEAP_BINS];	/* free runs of 2^i units and more */
	void (*discard)(void *p, size_t len);	/* free pages: they then read as 0 */
	/*
	 * Get @len bytes of zeroes, in units beyond @limit, for the node of the calling thread.
	 * Return NULL if there is no memory. Context: @lock is held. NULL: the heap cannot grow.
	 */
	void *(*grow)(size_t len);
	size_t growth;			/* bytes; the @len of @grow is a multiple */
	struct heap_unit *units;		/* unit 0 is not used */
	struct heap_arena arenas[HEAP_ARENAS];
};

/*
 * Set up a heap in zeroed memory. @units is a zeroed array with an element for each unit of @len
 * bytes. @base is aligned to HEAP_UNIT, and its memory is zeroed.
 */
void heap_init(struct heap *h, char *base, size_t len, struct heap_unit *units,
	       void (*discard)(void *p, size_t len));

/* The cache of a thread. It is zeroed except @arena, which is less than HEAP_ARENAS. */
struct heap_cache {
	unsigned int arena;
	uint32_t n[HEAP_CACHE_CLASSES];
	void *first[HEAP_CACHE_CLASSES];	/* blocks, linked through their first word */
};

/**
 * heap_alloc() - allocate a block
 * @arena: number of an arena, modulo HEAP_ARENAS
 * @align: a power of two; less than 16 means 16
 * @zero: clear the block
 *
 * Return: the block; NULL: no memory is left.
 */
void *heap_alloc(struct heap *h, unsigned int arena, size_t size, size_t align, bool zero);
/* Free the block at @p, an address in the heap. Return false if no block begins at @p. */
bool heap_free(struct heap *h, void *p);
/* Allocate and free blocks with @c, the cache of the calling thread. */
void *heap_cache_alloc(struct heap *h, struct heap_cache *c, size_t size, size_t align,
		       bool zero);
bool heap_cache_free(struct heap *h, struct heap_cache *c, void *p);
/* Return all blocks in the cache to their slabs. */
void heap_cache_flush(struct heap *h, struct heap_cache *c);
/* Return the number of bytes that the block at @p can hold; 0: @p is not in a block. */
size_t heap_size(const struct heap *h, const void *p);
/* Grow or shrink a large block without moving it. Return false if that is not possible. */
bool heap_resize(struct heap *h, void *p, size_t size);

/*
 * Make the large block at @p a mapping, if it is none, and record that its pages in @p[0..@len] are
 * mapped. @len: at most the size of the block.
 */
void heap_map(struct heap *h, void *p, size_t len);
/*
 * Make a mapping of the units of @p[0..@len], if all of them are free. @p: an address in the heap. @len: not
 * 0. Return: 1: @p[0..@len] is mapped; 0: none of the units is free; -1: a part of them is free, or was
 * never used.
 */
int heap_map_freed(struct heap *h, void *p, size_t len);
/* Record that pages are mapped again. Memory that is not in a mapping is ignored. */
void heap_map_again(struct heap *h, void *p, size_t len);
/* Record that pages are not mapped. Free each mapping that has no mapped page left. */
void heap_unmap(struct heap *h, void *p, size_t len);
/* Return the number of mapped bytes in the mapping that begins at @p; 0: there is no such mapping. */
size_t heap_mapped(const struct heap *h, const void *p);

/*
 * Mark the units of a part of a large block: a file is mapped there. The caller of heap_unmap() leaves out
 * marked units, so a mapping with marked units is never freed, and the marks last.
 */
static inline void heap_mark(struct heap *h, void *p, size_t len)
{
	size_t at = (size_t)((char *)p - h->base);

	for (size_t u = at / HEAP_UNIT; u * HEAP_UNIT < at + len; u++)
		h->units[u].marked = 1;
}

/* Return true if the address is in a marked unit. */
static inline bool heap_marked(const struct heap *h, const void *p)
{
	return h->units[(size_t)((const char *)p - h->base) / HEAP_UNIT].marked;
}

/* Return how many of @p[0..@len] from the first on are all in marked units, or all in others. */
static inline size_t heap_marked_alike(const struct heap *h, const char *p, size_t len)
{
	size_t n = HEAP_UNIT - (size_t)(p - h->base) % HEAP_UNIT;

	while (n < len && heap_marked(h, p + n) == heap_marked(h, p))
		n += HEAP_UNIT;
	return n < len ? n : len;
}

static inline bool heap_has(const struct heap *h, const void *p)
{
	return (size_t)((const char *)p - h->base) < h->nunits * HEAP_UNIT;
}

#endif
