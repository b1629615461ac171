// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include <string.h>

#include "heap.h"

#define DISCARD_UNITS	512u		/* free the pages of blocks of 32 MiB and more */
#define SLAB_HEADER	64u

struct heap_slab {
	struct heap_slab *next, *prev;	/* in the arena's list; NULL prev: first */
	void *free;			/* freed blocks, linked through their first word */
	uint32_t size;			/* of a block, in bytes */
	_Atomic uint32_t fresh;		/* no block from here on was ever used */
	uint32_t total, used;
	uint16_t class, arena;
	uint32_t first;			/* offset of block 0: a multiple of @size */
};

_Static_assert(sizeof(struct heap_slab) <= SLAB_HEADER, "blocks begin behind the header");

/* ---- sizes ---- */

/* Return the class of a size. Classes: 16, 32, ... 1024, then four for each power of two. */
static unsigned int size_class(size_t size)
{
	unsigned int log;

	if (size <= 1024)
		return size ? (unsigned int)((size - 1) / 16) : 0;
	log = 63u - (unsigned int)__builtin_clzll(size - 1);
	return 64 + (log - 10) * 4 + (unsigned int)(((size - 1) >> (log - 2)) & 3);
}

static size_t class_size(unsigned int class)
{
	unsigned int log;

	if (class < 64)
		return (class + 1) * 16u;
	log = 10 + (class - 64) / 4;
	return ((size_t)1 << log) + ((size_t)((class - 64) % 4 + 1) << (log - 2));
}

static uint32_t class_units(unsigned int class)
{
	return class_size(class) > 2048 ? 4 : 1;
}

/* ---- runs; the caller has the heap's lock ---- */

static unsigned int run_bin(uint32_t len)
{
	return 31u - (unsigned int)__builtin_clz(len);
}

static void run_unlink(struct heap *h, uint32_t u)
{
	struct heap_unit *r = &h->units[u];

	if (r->prev)
		h->units[r->prev].next = r->next;
	else
		h->bins[r->node][run_bin(r->len)] = r->next;
	if (r->next)
		h->units[r->next].prev = r->prev;
}

static void run_link(struct heap *h, uint32_t u, uint32_t len, bool zero, uint8_t node)
{
	struct heap_unit *r = &h->units[u];
	uint32_t *bin = &h->bins[node][run_bin(len)];

	*r = (struct heap_unit){ .len = len, .next = *bin, .kind = HEAP_FREE, .zero = zero,
				 .node = node };
	h->units[u + len - 1].len = len;
	h->units[u + len - 1].kind = HEAP_FREE;
	if (*bin)
		h->units[*bin].prev = u;
	*bin = u;
}

/* Return true if a free run of the node begins at @first. */
static bool run_joins(const struct heap *h, uint32_t first, uint8_t node)
{
	return h->units[first].kind == HEAP_FREE && h->units[first].len &&
	       h->units[first].node == node;
}

/* Free a run of a node: join it with free neighbours. */
static void run_put(struct heap *h, uint32_t u, uint32_t len, bool zero, uint8_t node)
{
	uint32_t before = h->units[u - 1].kind == HEAP_FREE ? h->units[u - 1].len : 0;

	if (before && run_joins(h, u - before, node)) {
		run_unlink(h, u - before);
		zero &= h->units[u - before].zero;
		u -= before;
		len += before;
	}
	if (u + len < h->nunits && run_joins(h, u + len, node)) {
		run_unlink(h, u + len);
		zero &= h->units[u + len].zero;
		len += h->units[u + len].len;
	}
	run_link(h, u, len, zero, node);
}

/* Find a free run and cut it to @len units. Return its first unit; 0: there is none. */
static uint32_t run_find(struct heap *h, uint8_t node, uint32_t len, bool *zero)
{
	uint32_t u = 0, have;

	for (unsigned int b = run_bin(len); b < HEAP_BINS && !u; b++)
		for (u = h->bins[node][b]; u && h->units[u].len < len; )
			u = h->units[u].next;
	if (!u)
		return 0;
	have = h->units[u].len;
	*zero = h->units[u].zero;
	run_unlink(h, u);
	if (have > len)
		run_link(h, u + len, have - len, *zero, node);
	return u;
}

/*
 * Find the free run that has units [@u, @u + @len). Return its first unit; 0: there is none. Set *@part
 * if some of the units are free.
 */
static uint32_t run_around(const struct heap *h, uint32_t u, uint32_t len, bool *part)
{
	*part = u < h->limit && u + len > h->top;
	for (unsigned int b = 0; b < HEAP_NODES * HEAP_BINS; b++)
		for (uint32_t r = h->bins[b / HEAP_BINS][b % HEAP_BINS]; r; r = h->units[r].next) {
			if (u >= r && u + len <= r + h->units[r].len)
				return r;
			*part |= u < r + h->units[r].len && r < u + len;
		}
	return 0;
}

/* Make a block of units [@u, @u + @len) of free run @r. */
static void run_cut(struct heap *h, uint32_t r, uint32_t u, uint32_t len)
{
	struct heap_unit run = h->units[r];
	uint32_t end = r + run.len;

	run_unlink(h, r);
	h->units[u] = (struct heap_unit){ .len = len, .kind = HEAP_BLOCK, .node = run.node };
	h->units[u + len - 1].kind = HEAP_BLOCK;
	if (u > r)
		run_link(h, r, u - r, run.zero, run.node);
	if (end > u + len)
		run_link(h, u + len, end - (u + len), run.zero, run.node);
}

/* Get more memory for the node of the calling thread. Return false if there is none. */
static bool heap_grow(struct heap *h, uint8_t node, uint32_t len)
{
	size_t want;
	char *p;

	if (!h->grow)
		return false;
	want = (len * HEAP_UNIT + h->growth - 1) / h->growth * h->growth;
	p = h->grow(want);
	if (!p)
		return false;
	run_put(h, (uint32_t)((size_t)(p - h->base) / HEAP_UNIT), (uint32_t)(want / HEAP_UNIT),
		true, node);
	return true;
}

/* Take a free run of @len units for the node of @arena. Return its first unit; 0: none. */
static uint32_t run_get(struct heap *h, unsigned int arena, uint32_t len, enum heap_kind kind,
			bool *zero)
{
	uint8_t node = h->grow ? (uint8_t)(arena % HEAP_ARENAS / HEAP_NODE_ARENAS) : 0;
	uint32_t u = run_find(h, node, len, zero);

	if (!u && heap_grow(h, node, len))
		u = run_find(h, node, len, zero);
	if (!u && node) {
		node = 0;
		u = run_find(h, node, len, zero);
	}
	if (!u) {
		if (len > h->limit - h->top)
			return 0;
		u = h->top;
		h->top += len;
		*zero = true;
	}
	h->units[u] = (struct heap_unit){ .len = len, .kind = kind, .node = node };
	h->units[u + len - 1].kind = kind;
	return u;
}

static void *unit_address(const struct heap *h, uint32_t u)
{
	return h->base + u * HEAP_UNIT;
}

static uint32_t unit_of(const struct heap *h, const void *p)
{
	uint32_t u = (uint32_t)((size_t)((const char *)p - h->base) / HEAP_UNIT);

	return h->units[u].kind == HEAP_SLAB ? u - h->units[u].back : u;
}

/* ---- large blocks ---- */

static uint32_t units_for(size_t size)
{
	return (uint32_t)((size + HEAP_UNIT - 1) / HEAP_UNIT);
}

static void *block_alloc(struct heap *h, unsigned int arena, size_t size, size_t align,
			 bool clear)
{
	uint32_t len = units_for(size), skip = 0, u, extra;
	uint8_t node;
	bool zero;

	if (size > h->nunits * HEAP_UNIT || align > h->nunits * HEAP_UNIT)
		return NULL;
	len += !len;
	extra = align > HEAP_UNIT ? (uint32_t)(align / HEAP_UNIT) : 0;
	lock_take(&h->lock);
	u = run_get(h, arena, len + extra, HEAP_BLOCK, &zero);
	if (u && extra) {
		node = h->units[u].node;
		skip = (uint32_t)(-(uintptr_t)unit_address(h, u) / HEAP_UNIT) & (extra - 1);
		h->units[u + skip] = (struct heap_unit){ .len = len, .kind = HEAP_BLOCK,
							 .node = node };
		h->units[u + skip + len - 1].kind = HEAP_BLOCK;
		if (skip)
			run_put(h, u, skip, zero, node);
		run_put(h, u + skip + len, extra - skip, zero, node);
	}
	lock_give(&h->lock);
	if (!u)
		return NULL;
	if (clear && !zero)
		memset(unit_address(h, u + skip), 0, size);
	return unit_address(h, u + skip);
}

static bool block_free(struct heap *h, void *p, uint32_t u)
{
	uint32_t len;
	bool zero;

	lock_take(&h->lock);
	if (h->units[u].kind != HEAP_BLOCK || unit_address(h, u) != p || !h->units[u].len) {
		lock_give(&h->lock);
		return false;
	}
	len = h->units[u].len;
	h->units[u].len = 0;		/* no free run and no block while pages are freed */
	lock_give(&h->lock);
	zero = len >= DISCARD_UNITS;
	if (zero)
		h->discard(p, len * HEAP_UNIT);
	lock_take(&h->lock);
	run_put(h, u, len, zero, h->units[u].node);
	lock_give(&h->lock);
	return true;
}

bool heap_resize(struct heap *h, void *p, size_t size)
{
	uint32_t u = unit_of(h, p), len, want = units_for(size);
	uint8_t node = h->units[u].node;
	bool zero = true, ok = true;

	if (h->units[u].kind != HEAP_BLOCK || size <= HEAP_SMALL || size > h->nunits * HEAP_UNIT)
		return false;
	lock_take(&h->lock);
	len = h->units[u].len;
	if (want < len) {
		/* run_put() reads the unit before the run, whose kind may be an old HEAP_FREE */
		h->units[u + want - 1].kind = HEAP_BLOCK;
		run_put(h, u + want, len - want, false, node);
	} else if (want > len && u + len == h->top) {
		ok = want - len <= h->limit - h->top;
		h->top += ok ? want - len : 0;
	} else if (want > len) {
		uint32_t after = u + len, have = h->units[after].len;

		ok = after < h->nunits && run_joins(h, after, node) && have >= want - len;
		if (ok) {
			zero = h->units[after].zero;
			run_unlink(h, after);
			if (have > want - len)
				run_link(h, u + want, have - (want - len), zero, node);
		}
	}
	if (ok) {
		h->units[u].len = want;
		h->units[u + want - 1].kind = HEAP_BLOCK;
	}
	lock_give(&h->lock);
	return ok;
}

/* ---- mappings ---- */

/*
 * Return the first unit of the mapping that unit @u is in; 0: none. A unit may still name a first
 * unit that was freed: then the latter is free, or has length 0, or does not name itself.
 */
static uint32_t mapping_of(const struct heap *h, uint32_t u)
{
	uint32_t first = h->units[u].first;
	const struct heap_unit *f = &h->units[first];

	return h->units[u].kind == HEAP_BLOCK && f->kind == HEAP_BLOCK && f->first == first &&
	       u - first < f->len ? first : 0;
}

/*
 * Change the pages of one unit that are in [@from, @to). Return the first unit of the mapping, if
 * the last mapped page was removed, else 0.
 */
static uint32_t unit_pages_set(struct heap *h, const char *from, const char *to, bool mapped)
{
	size_t at = (size_t)(from - h->base), n = (size_t)(to - from) / HEAP_PAGE;
	uint32_t mask = ((1u << n) - 1) << at % HEAP_UNIT / HEAP_PAGE, first, old, new;
	struct heap_unit *r = &h->units[at / HEAP_UNIT];

	lock_take(&h->lock);
	first = mapping_of(h, (uint32_t)(at / HEAP_UNIT));
	old = r->pages;
	new = mapped ? old | mask : old & ~mask;
	if (first) {
		r->pages = (uint16_t)new;
		h->units[first].mapped += (uint32_t)__builtin_popcount(new);
		h->units[first].mapped -= (uint32_t)__builtin_popcount(old);
	}
	if (mapped || new == old || h->units[first].mapped)
		first = 0;
	lock_give(&h->lock);
	return first;
}

static void pages_set(struct heap *h, void *p, size_t len, bool mapped)
{
	char *from = p, *end = from + (len + HEAP_PAGE - 1) / HEAP_PAGE * HEAP_PAGE, *to;

	for (; from < end && heap_has(h, from); from = to) {
		uint32_t free;

		to = from + HEAP_UNIT - (size_t)(from - h->base) % HEAP_UNIT;
		to = to < end ? to : end;
		free = unit_pages_set(h, from, to, mapped);
		if (free)
			block_free(h, unit_address(h, free), free);
	}
}

void heap_map(struct heap *h, void *p, size_t len)
{
	uint32_t u = unit_of(h, p);

	lock_take(&h->lock);
	for (uint32_t i = 1; i < h->units[u].len; i++)
		if (mapping_of(h, u + i) != u)
			h->units[u + i] = (struct heap_unit){ .first = u, .kind = HEAP_BLOCK };
	h->units[u].first = u;
	lock_give(&h->lock);
	pages_set(h, p, len, true);
}

int heap_map_freed(struct heap *h, void *p, size_t len)
{
	size_t at = (size_t)((char *)p - h->base);
	uint32_t u = (uint32_t)(at / HEAP_UNIT), first, n, r = 0;
	bool part = false;

	if (len > h->nunits * HEAP_UNIT - at)
		return -1;
	n = units_for(at % HEAP_UNIT + len);
	lock_take(&h->lock);
	first = mapping_of(h, u);
	if (!first || mapping_of(h, u + n - 1) != first)
		r = run_around(h, u, n, &part);
	if (r)
		run_cut(h, r, u, n);
	lock_give(&h->lock);
	if (r)
		heap_map(h, p, len);
	return r ? 1 : part ? -1 : 0;
}

void heap_map_again(struct heap *h, void *p, size_t len)
{
	pages_set(h, p, len, true);
}

void heap_unmap(struct heap *h, void *p, size_t len)
{
	pages_set(h, p, len, false);
}

size_t heap_mapped(const struct heap *h, const void *p)
{
	uint32_t u = unit_of(h, p);

	return mapping_of(h, u) == u && unit_address(h, u) == p ? h->units[u].mapped * HEAP_PAGE : 0;
}

/* ---- slabs; the caller has the arena's lock ---- */

static void slab_link(struct heap_arena *a, struct heap_slab *s)
{
	struct heap_slab **list = &a->slabs[s->class];

	s->prev = NULL;
	s->next = *list;
	if (*list)
		(*list)->prev = s;
	*list = s;
}

static void slab_unlink(struct heap_arena *a, struct heap_slab *s)
{
	if (s->prev)
		s->prev->next = s->next;
	else
		a->slabs[s->class] = s->next;
	if (s->next)
		s->next->prev = s->prev;
}

static struct heap_slab *slab_new(struct heap *h, struct heap_arena *a, unsigned int class)
{
	uint32_t n = class_units(class), size = (uint32_t)class_size(class);
	struct heap_slab *s;
	uint32_t u;
	bool zero;

	lock_take(&h->lock);
	u = run_get(h, (unsigned int)(a - h->arenas), n, HEAP_SLAB, &zero);
	for (uint32_t i = 0; u && i < n; i++) {
		h->units[u + i].kind = HEAP_SLAB;
		h->units[u + i].back = (uint8_t)i;
	}
	lock_give(&h->lock);
	if (!u)
		return NULL;
	s = unit_address(h, u);
	*s = (struct heap_slab){ .size = size, .class = (uint16_t)class,
				 .arena = (uint16_t)(a - h->arenas) };
	s->first = (SLAB_HEADER + size - 1) / size * size;
	s->total = (uint32_t)(n * HEAP_UNIT - s->first) / size;
	slab_link(a, s);
	return s;
}

static void slab_drop(struct heap *h, struct heap_slab *s)
{
	uint32_t u = (uint32_t)((size_t)((char *)s - h->base) / HEAP_UNIT);
	uint32_t n = h->units[u].len;

	lock_take(&h->lock);
	for (uint32_t i = 0; i < n; i++)
		h->units[u + i].back = 0;
	run_put(h, u, n, false, h->units[u].node);
	lock_give(&h->lock);
}

static void *slab_take(struct heap_arena *a, struct heap_slab *s)
{
	uint32_t fresh = atomic_load_explicit(&s->fresh, memory_order_relaxed);
	void *p = s->free;

	if (p) {
		s->free = *(void **)p;
	} else {
		p = (char *)s + s->first + fresh * (size_t)s->size;
		atomic_store_explicit(&s->fresh, fresh + 1, memory_order_relaxed);
	}
	if (++s->used == s->total)
		slab_unlink(a, s);
	return p;
}

/* Take a block from a slab that has a free block, or from a new slab. */
static void *slabs_take(struct heap *h, struct heap_arena *a, unsigned int class)
{
	struct heap_slab *s = a->slabs[class];

	if (!s)
		s = slab_new(h, a, class);
	return s ? slab_take(a, s) : NULL;
}

/* Return true if a block of the slab begins at @p, used or free. The function takes no lock. */
static bool slab_has(const struct heap_slab *s, const void *p)
{
	size_t at = (size_t)((const char *)p - (const char *)s);

	return at >= s->first && (at - s->first) % s->size == 0 &&
	       (at - s->first) / s->size <
		       atomic_load_explicit(&s->fresh, memory_order_relaxed);
}

/* Free a block. An empty slab stays if it is the only one of its size. */
static void slab_put(struct heap *h, struct heap_arena *a, struct heap_slab *s, void *p)
{
	if (s->used-- == s->total)
		slab_link(a, s);
	*(void **)p = s->free;
	s->free = p;
	if (s->used || (!s->prev && !s->next))
		return;
	slab_unlink(a, s);
	slab_drop(h, s);
}

static void *slab_alloc(struct heap *h, unsigned int arena, unsigned int class)
{
	struct heap_arena *a = &h->arenas[arena % HEAP_ARENAS];
	void *p;

	lock_take(&a->lock);
	p = slabs_take(h, a, class);
	lock_give(&a->lock);
	return p;
}

static bool slab_free(struct heap *h, struct heap_slab *s, void *p)
{
	struct heap_arena *a = &h->arenas[s->arena];
	bool ok;

	lock_take(&a->lock);
	ok = s->used && slab_has(s, p);
	if (ok)
		slab_put(h, a, s, p);
	lock_give(&a->lock);
	return ok;
}

/* ---- caches ---- */

static void cache_push(struct heap_cache *c, unsigned int class, void *p)
{
	*(void **)p = c->first[class];
	c->first[class] = p;
	c->n[class]++;
}

static void *cache_pop(struct heap_cache *c, unsigned int class)
{
	void *p = c->first[class];

	c->first[class] = *(void **)p;
	c->n[class]--;
	return p;
}

/* Fill an empty class of a cache to half of its limit. Return false if no memory is left. */
static bool cache_fill(struct heap *h, struct heap_cache *c, unsigned int class)
{
	struct heap_arena *a = &h->arenas[c->arena];
	void *p = NULL;

	lock_take(&a->lock);
	do {
		p = slabs_take(h, a, class);
		if (p)
			cache_push(c, class, p);
	} while (a->slabs[class] && c->n[class] < HEAP_CACHE_BLOCKS / 2);
	lock_give(&a->lock);
	return c->n[class];
}

/* Return blocks of a class to their slabs until @keep are left. */
static void cache_spill(struct heap *h, struct heap_cache *c, unsigned int class, uint32_t keep)
{
	struct heap_arena *a = &h->arenas[c->arena];

	lock_take(&a->lock);
	while (c->n[class] > keep) {
		void *p = cache_pop(c, class);

		slab_put(h, a, unit_address(h, unit_of(h, p)), p);
	}
	lock_give(&a->lock);
}

void heap_cache_flush(struct heap *h, struct heap_cache *c)
{
	for (unsigned int class = 0; class < HEAP_CACHE_CLASSES; class++)
		if (c->n[class])
			cache_spill(h, c, class, 0);
}

/* ---- the calls ---- */

void heap_init(struct heap *h, char *base, size_t len, struct heap_unit *units,
	       void (*discard)(void *p, size_t len))
{
	h->base = base;
	h->nunits = (uint32_t)(len / HEAP_UNIT);
	h->limit = h->nunits;
	h->top = 1;
	h->units = units;
	h->discard = discard;
	units[0].kind = HEAP_BLOCK;
}

/*
 * Round @size up so that a slab's blocks of this size have the alignment: blocks whose size is a
 * power of two are aligned to it.
 */
static size_t size_aligned(size_t size, size_t align)
{
	if (align <= 16)
		return size;
	size = size > align ? size : align;
	return size & (size - 1) ? (size_t)1 << (64 - __builtin_clzll(size)) : size;
}

void *heap_alloc(struct heap *h, unsigned int arena, size_t size, size_t align, bool zero)
{
	void *p;

	if (size <= HEAP_SMALL && align <= HEAP_SMALL)
		size = size_aligned(size, align);
	if (size > HEAP_SMALL || align > HEAP_SMALL)
		return block_alloc(h, arena, size, align, zero);
	p = slab_alloc(h, arena, size_class(size));
	return zero && p ? memset(p, 0, size) : p;
}

void *heap_cache_alloc(struct heap *h, struct heap_cache *c, size_t size, size_t align,
		       bool zero)
{
	unsigned int class;
	void *p;

	if (size > HEAP_CACHED || align > HEAP_CACHED)
		return heap_alloc(h, c->arena, size, align, zero);
	size = size_aligned(size, align);
	class = size_class(size);
	if (!c->n[class] && !cache_fill(h, c, class))
		return NULL;
	p = cache_pop(c, class);
	return zero ? memset(p, 0, size) : p;
}

bool heap_free(struct heap *h, void *p)
{
	uint32_t u = unit_of(h, p);

	if (h->units[u].kind == HEAP_SLAB)
		return slab_free(h, unit_address(h, u), p);
	return block_free(h, p, u);
}

bool heap_cache_free(struct heap *h, struct heap_cache *c, void *p)
{
	uint32_t u = unit_of(h, p);
	struct heap_slab *s = unit_address(h, u);

	if (h->units[u].kind != HEAP_SLAB || s->arena != c->arena ||
	    s->class >= HEAP_CACHE_CLASSES)
		return heap_free(h, p);
	/* the first block of the cache's list is free already: reject a double free */
	if (!slab_has(s, p) || p == c->first[s->class])
		return false;
	if (c->n[s->class] == HEAP_CACHE_BLOCKS)
		cache_spill(h, c, s->class, HEAP_CACHE_BLOCKS / 2);
	cache_push(c, s->class, p);
	return true;
}

size_t heap_size(const struct heap *h, const void *p)
{
	uint32_t u = unit_of(h, p);

	if (h->units[u].kind == HEAP_SLAB)
		return ((struct heap_slab *)unit_address(h, u))->size;
	return h->units[u].kind == HEAP_BLOCK ? h->units[u].len * HEAP_UNIT : 0;
}
