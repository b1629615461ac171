// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The heap: blocks do not overlap, and freed memory is used again. */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "libsci/threads/heap.h"
#include "selftests/harness.h"

#define HEAP_LEN	((size_t)1 << 30)
#define BLOCKS		2000

static struct heap *heap;
static _Atomic unsigned long discarded;

static void discard(void *p, size_t len)
{
	discarded++;
	CHECK(!madvise(p, len, MADV_REMOVE));
}

static void *map(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static void heap_open(void)
{
	uintptr_t base = (uintptr_t)map(HEAP_LEN + HEAP_UNIT);

	heap = map(sizeof(*heap));
	heap_init(heap, (char *)((base + HEAP_UNIT - 1) & ~(HEAP_UNIT - 1)), HEAP_LEN,
		  map((HEAP_LEN / HEAP_UNIT + 1) * sizeof(struct heap_unit)), discard);
}

static unsigned int draw(unsigned int *seed, unsigned int n)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 8) % n;
}

static size_t draw_size(unsigned int *seed)
{
	return draw(seed, 8) ? draw(seed, 1u << (4 + draw(seed, 12))) : draw(seed, 1u << 20);
}

static bool holds(const unsigned char *p, size_t n, unsigned char value)
{
	for (size_t i = 0; i < n; i += n < 4096 ? 1 : 509)
		if (p[i] != value)
			return false;
	return true;
}

/* Allocate and free random blocks, each filled with its number. At the end, free all blocks. */
static void blocks_use(unsigned int arena, unsigned int rounds)
{
	struct {
		unsigned char *p;
		size_t size;
	} b[BLOCKS] = { 0 };
	unsigned int seed = arena + 1;

	for (unsigned int r = 0; r < rounds; r++) {
		unsigned int i = draw(&seed, BLOCKS);
		size_t align = (size_t)1 << (4 + (draw(&seed, 10) ? 0 : draw(&seed, 14)));
		bool zero = draw(&seed, 4) == 0;

		if (b[i].p) {
			CHECK(holds(b[i].p, b[i].size, (unsigned char)i));
			CHECK(heap_free(heap, b[i].p));
		}
		b[i].size = draw_size(&seed);
		b[i].p = heap_alloc(heap, arena, b[i].size, align, zero);
		CHECK(b[i].p);
		CHECK_EQ((uintptr_t)b[i].p % align, 0);
		CHECK(heap_size(heap, b[i].p) >= b[i].size);
		if (zero)
			CHECK(holds(b[i].p, b[i].size, 0));
		memset(b[i].p, (int)i, b[i].size);
	}
	for (unsigned int i = 0; i < BLOCKS; i++)
		if (b[i].p) {
			CHECK(holds(b[i].p, b[i].size, (unsigned char)i));
			CHECK(heap_free(heap, b[i].p));
		}
}

TEST(random_blocks)
{
	uint32_t top;

	heap_open();
	blocks_use(0, 20000);
	top = heap->top;
	/* the same again needs no more room, except for the slabs that each size keeps */
	blocks_use(0, 20000);
	CHECK(heap->top < top + 2 * HEAP_CLASSES);
}

TEST(each_size)
{
	heap_open();
	for (size_t size = 0; size < 70000; size += size < 2000 ? 1 : 777) {
		unsigned char *p = heap_alloc(heap, 3, size, 16, false);
		unsigned char *q = heap_alloc(heap, 3, size, 16, false);

		memset(p, 1, size);
		memset(q, 2, size);
		CHECK(holds(p, size, 1));
		CHECK(heap_size(heap, p) >= size);
		CHECK(heap_size(heap, p) < 2 * size + 65536);
		CHECK(heap_free(heap, p));
		CHECK(heap_free(heap, q));
	}
}

TEST(what_is_no_block_is_refused)
{
	char *p, *large;

	heap_open();
	p = heap_alloc(heap, 0, 100, 16, false);
	large = heap_alloc(heap, 0, 1 << 20, 16, false);
	CHECK(!heap_free(heap, p + 16));
	CHECK(!heap_free(heap, p + heap_size(heap, p)));
	CHECK(!heap_free(heap, large + HEAP_UNIT));
	CHECK(heap_free(heap, large));
	CHECK(!heap_free(heap, large));
	CHECK(heap_free(heap, p));
	CHECK(!heap_alloc(heap, 0, HEAP_LEN, 16, false));
	CHECK(!heap_alloc(heap, 0, SIZE_MAX - 5, 16, false));
}

TEST(large_blocks_grow_in_their_place)
{
	char *p, *next;

	heap_open();
	p = heap_alloc(heap, 0, 10 * HEAP_UNIT, 16, false);
	CHECK(heap_resize(heap, p, 20 * HEAP_UNIT));
	CHECK_EQ(heap_size(heap, p), 20 * HEAP_UNIT);
	next = heap_alloc(heap, 0, 10 * HEAP_UNIT, 16, false);
	CHECK(!heap_resize(heap, p, 21 * HEAP_UNIT));
	CHECK(heap_free(heap, next));
	CHECK(heap_resize(heap, p, 25 * HEAP_UNIT));
	CHECK(heap_resize(heap, p, 1 * HEAP_UNIT));
	CHECK_EQ(heap_size(heap, p), 1 * HEAP_UNIT);
	CHECK(heap_alloc(heap, 0, 29 * HEAP_UNIT, 16, false) == p + HEAP_UNIT);
}

/* The last unit of the shrunk block was the last unit of a free run before. */
TEST(a_shrunk_block_keeps_its_units)
{
	char *a, *b, *end, *block, *next;

	heap_open();
	a = heap_alloc(heap, 0, 10 * HEAP_UNIT, 16, false);
	b = heap_alloc(heap, 0, 10 * HEAP_UNIT, 16, false);
	end = heap_alloc(heap, 0, 1 * HEAP_UNIT, 16, false);
	CHECK(heap_free(heap, a));
	CHECK(heap_free(heap, b));
	block = heap_alloc(heap, 0, 20 * HEAP_UNIT, 16, false);
	CHECK(block == a);
	CHECK(heap_resize(heap, block, 10 * HEAP_UNIT));
	CHECK_EQ(heap_size(heap, block), 10 * HEAP_UNIT);
	next = heap_alloc(heap, 0, 10 * HEAP_UNIT, 16, false);
	CHECK(next == b);
	CHECK(heap_free(heap, block));
	CHECK(heap_free(heap, next));
	CHECK(heap_free(heap, end));
}

TEST(pages_of_huge_blocks_go_back)
{
	char *p;

	heap_open();
	p = heap_alloc(heap, 0, 64 << 20, 16, false);
	memset(p, 1, 64 << 20);
	CHECK(heap_free(heap, p));
	CHECK_EQ(discarded, 1);
	CHECK(heap_alloc(heap, 0, 64 << 20, 16, true) == p);
	CHECK(holds((unsigned char *)p, 64 << 20, 0));
}

/* ---- mappings ---- */

TEST(a_mapping_is_freed_with_its_last_page)
{
	char *p, *q;

	heap_open();
	p = heap_alloc(heap, 0, 3 * HEAP_UNIT, 16, false);
	heap_map(heap, p, 2 * HEAP_UNIT + 5 * HEAP_PAGE);
	CHECK_EQ(heap_mapped(heap, p), 2 * HEAP_UNIT + 5 * HEAP_PAGE);
	heap_unmap(heap, p, HEAP_UNIT + HEAP_PAGE);
	heap_unmap(heap, p, HEAP_UNIT + HEAP_PAGE);
	heap_unmap(heap, p + 2 * HEAP_UNIT, 5 * HEAP_PAGE);
	CHECK_EQ(heap_mapped(heap, p), HEAP_UNIT - HEAP_PAGE);
	heap_map_again(heap, p + 3 * HEAP_PAGE, 1);
	heap_unmap(heap, p + HEAP_UNIT, HEAP_UNIT);
	CHECK_EQ(heap_mapped(heap, p), HEAP_PAGE);
	q = heap_alloc(heap, 0, 3 * HEAP_UNIT, 16, false);
	CHECK(q && q != p);
	heap_unmap(heap, p, 3 * HEAP_UNIT);
	CHECK(!heap_mapped(heap, p) && !heap_free(heap, p));
	CHECK(heap_alloc(heap, 0, 3 * HEAP_UNIT, 16, false) == p);
	/* the block is no mapping now */
	heap_unmap(heap, p, 3 * HEAP_UNIT);
	CHECK(heap_free(heap, p));
}

TEST(a_freed_mapping_is_mapped_again)
{
	char *p, *q, *end;

	heap_open();
	p = heap_alloc(heap, 0, 8 * HEAP_UNIT, 16, false);
	end = heap_alloc(heap, 0, 1 * HEAP_UNIT, 16, false);
	heap_map(heap, p, 8 * HEAP_UNIT);
	CHECK_EQ(heap_map_freed(heap, p, 8 * HEAP_UNIT), 0);
	CHECK_EQ(heap_map_freed(heap, p + 7 * HEAP_UNIT, 2 * HEAP_UNIT), 0);
	/* the memory behind the last block was never used */
	CHECK_EQ(heap_map_freed(heap, end, HEAP_UNIT + 1), -1);
	CHECK_EQ(heap_map_freed(heap, p, HEAP_LEN), -1);
	CHECK_EQ(heap_map_freed(heap, p, SIZE_MAX), -1);
	heap_unmap(heap, p, 8 * HEAP_UNIT);
	CHECK_EQ(heap_map_freed(heap, p + 7 * HEAP_UNIT, 2 * HEAP_UNIT), -1);
	/* pages of two units in the middle of the free run */
	q = p + 3 * HEAP_UNIT - HEAP_PAGE;
	CHECK_EQ(heap_map_freed(heap, q, 2 * HEAP_PAGE), 1);
	CHECK_EQ(heap_map_freed(heap, q, 2 * HEAP_PAGE), 0);
	CHECK_EQ(heap_map_freed(heap, p, 8 * HEAP_UNIT), -1);
	CHECK(heap_alloc(heap, 0, 4 * HEAP_UNIT, 16, false) == p + 4 * HEAP_UNIT);
	CHECK(heap_alloc(heap, 0, 2 * HEAP_UNIT, 16, false) == p);
	heap_unmap(heap, q, HEAP_PAGE);
	CHECK((char *)heap_alloc(heap, 0, 2 * HEAP_UNIT, 16, false) > end);
	heap_unmap(heap, q + HEAP_PAGE, HEAP_PAGE);
	CHECK(heap_alloc(heap, 0, 2 * HEAP_UNIT, 16, false) == p + 2 * HEAP_UNIT);
}

TEST(a_mapping_grows)
{
	char *p;

	heap_open();
	p = heap_alloc(heap, 0, 2 * HEAP_UNIT, 16, false);
	heap_map(heap, p, 2 * HEAP_UNIT);
	heap_unmap(heap, p, HEAP_UNIT);
	CHECK(heap_resize(heap, p, 4 * HEAP_UNIT));
	heap_map(heap, p, 4 * HEAP_UNIT);
	CHECK_EQ(heap_mapped(heap, p), 4 * HEAP_UNIT);
	for (size_t at = 4 * HEAP_UNIT - HEAP_PAGE; at; at -= HEAP_PAGE)
		heap_unmap(heap, p + at, HEAP_PAGE);
	CHECK_EQ(heap_mapped(heap, p), HEAP_PAGE);
	heap_unmap(heap, p, HEAP_PAGE);
	CHECK(heap_alloc(heap, 0, 4 * HEAP_UNIT, 16, false) == p);
}

#define MAPPINGS	60u
#define MAPPING_PAGES	50u

struct pages {
	unsigned char *p;
	unsigned int n, left;
	bool mapped[MAPPING_PAGES];
};

static void pages_map(struct pages *m, unsigned int n, int value)
{
	m->p = heap_alloc(heap, 0, HEAP_SMALL + n * HEAP_PAGE, HEAP_PAGE, false);
	CHECK(m->p);
	heap_map(heap, m->p, n * HEAP_PAGE);
	memset(m->p, value, n * HEAP_PAGE);
	m->n = m->left = n;
	memset(m->mapped, true, n);
}

/* Check that pages [@from, @to) have their contents, if they are mapped, and unmap them. */
static void pages_unmap(struct pages *m, unsigned int from, unsigned int to, int value)
{
	for (unsigned int i = from; i < to; i++) {
		CHECK(!m->mapped[i] || holds(m->p + i * HEAP_PAGE, HEAP_PAGE, (unsigned char)value));
		m->left -= m->mapped[i];
		m->mapped[i] = false;
	}
	heap_unmap(heap, m->p + from * HEAP_PAGE, (to - from) * HEAP_PAGE);
}

TEST(random_pages_of_mappings)
{
	static struct pages m[MAPPINGS];
	unsigned int seed = 1, i, from;

	heap_open();
	for (unsigned int r = 0; r < 20000; r++) {
		i = draw(&seed, MAPPINGS);
		if (!m[i].left)
			pages_map(&m[i], 1 + draw(&seed, MAPPING_PAGES), (int)i);
		from = draw(&seed, m[i].n);
		pages_unmap(&m[i], from, from + 1 + draw(&seed, m[i].n - from), (int)i);
	}
	for (i = 0; i < MAPPINGS; i++)
		if (m[i].left)
			pages_unmap(&m[i], 0, m[i].n, (int)i);
	CHECK(heap->top < MAPPINGS * 10);
	/* all units are free again, as one run */
	CHECK(heap_alloc(heap, 0, (heap->top - 1) * HEAP_UNIT, 16, false) == heap->base + HEAP_UNIT);
}

static void *thread_blocks(void *arg)
{
	blocks_use((unsigned int)(long)arg, 4000);
	return NULL;
}

TEST(threads_of_the_same_and_of_other_arenas)
{
	pthread_t t[4];

	heap_open();
	for (long i = 0; i < 4; i++)
		CHECK(!pthread_create(&t[i], NULL, thread_blocks, (void *)(i / 2)));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

/* Free blocks that another process has allocated. */
static void taker(struct peer *self, void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < 20000; i++) {
		unsigned char *p;

		peer_get(self, &p, sizeof(p));
		if (!p)
			break;
		CHECK(holds(p, 100, 7));
		CHECK(heap_free(heap, p));
		peer_put(self, &p, sizeof(p));
	}
}

TEST(another_process_frees)
{
	unsigned char *p, *back;
	struct peer *peer;
	uint32_t top = 0;

	heap_open();
	peer = peer_spawn(8, taker, NULL);
	for (unsigned int i = 0; i < 2000; i++) {
		p = heap_alloc(heap, 0, 100 + i, 16, false);
		memset(p, 7, 100 + i);
		peer_put(peer, &p, sizeof(p));
		peer_get(peer, &back, sizeof(back));
		if (i == 1000)
			top = heap->top;
	}
	CHECK(top > 0 && heap->top < top + 64);
	p = NULL;
	peer_put(peer, &p, sizeof(p));
	peer_join(peer);
}

/* ---- caches ---- */

#define CLASS_64	3u		/* the size class of 64-byte blocks */

static bool is_among(void *p, void *const *list, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (list[i] == p)
			return true;
	return false;
}

TEST(a_cache_is_bounded_and_gives_its_blocks_back)
{
	struct heap_cache c = { .arena = 5 };
	enum { N = 6 * HEAP_CACHE_BLOCKS };	/* a multiple of the cache's size */
	void *p[N], *q;

	heap_open();
	for (unsigned int i = 0; i < N; i++) {
		p[i] = heap_cache_alloc(heap, &c, 64, 16, false);
		CHECK(p[i] && !is_among(p[i], p, i));
		CHECK(c.n[CLASS_64] < HEAP_CACHE_BLOCKS);
	}
	for (unsigned int i = 0; i < N; i++) {
		CHECK(heap_cache_free(heap, &c, p[i]));
		CHECK(c.n[CLASS_64] <= HEAP_CACHE_BLOCKS);
	}
	CHECK(c.n[CLASS_64] > 0);
	heap_cache_flush(heap, &c);
	CHECK_EQ(c.n[CLASS_64], 0);
	/* the slab has all blocks again: it returns each of them once, and no other block */
	for (unsigned int i = 0; i < N; i++) {
		q = heap_alloc(heap, 5, 64, 16, false);
		CHECK(is_among(q, p, N));
		for (unsigned int k = 0; k < N; k++)
			p[k] = p[k] == q ? NULL : p[k];
	}
}

TEST(a_cache_takes_no_blocks_of_other_arenas_and_no_large_ones)
{
	struct heap_cache c = { .arena = 5 };
	void *other, *large;

	heap_open();
	other = heap_alloc(heap, 6, 64, 16, false);
	large = heap_cache_alloc(heap, &c, HEAP_CACHED + 1, 16, false);
	CHECK(heap_cache_free(heap, &c, other));
	CHECK(heap_cache_free(heap, &c, large));
	for (unsigned int i = 0; i < HEAP_CACHE_CLASSES; i++)
		CHECK_EQ(c.n[i], 0);
	CHECK(heap_alloc(heap, 6, 64, 16, false) == other);
}

TEST(a_cache_aligns_clears_and_refuses_what_is_no_block)
{
	struct heap_cache c = { .arena = 0 };
	unsigned char *p, *q;

	heap_open();
	for (size_t align = 16; align <= 4096; align *= 2)
		for (size_t size = 1; size <= 1024; size = 3 * size / 2 + 1) {
			p = heap_cache_alloc(heap, &c, size, align, false);
			CHECK_EQ((uintptr_t)p % align, 0);
			CHECK(heap_size(heap, p) >= size);
			memset(p, 9, size);
			CHECK(heap_cache_free(heap, &c, p));
			q = heap_cache_alloc(heap, &c, size, align, true);
			CHECK(holds(q, size, 0));
			CHECK(heap_cache_free(heap, &c, q));
		}
	p = heap_cache_alloc(heap, &c, 100, 16, false);
	CHECK(!heap_cache_free(heap, &c, p + 16));
	CHECK(heap_cache_free(heap, &c, p));
	CHECK(!heap_cache_free(heap, &c, p));
}

#define SLOTS	64u
#define MOVERS	8

static void *_Atomic slots[SLOTS];

/* Put new blocks into slots, and free the blocks that other threads have put there. */
static void *move_blocks(void *arg)
{
	struct heap_cache c = { .arena = (unsigned int)(uintptr_t)arg / 2 };
	unsigned int seed = (unsigned int)(uintptr_t)arg + 1;

	for (unsigned int i = 0; i < 20000; i++) {
		unsigned int n = 1 + draw(&seed, 600);
		unsigned char *p = heap_cache_alloc(heap, &c, n + 4, 16, false), *old;

		CHECK(p);
		memcpy(p, &n, 4);
		memset(p + 4, (int)n, n);
		old = atomic_exchange(&slots[draw(&seed, SLOTS)], p);
		if (!old)
			continue;
		memcpy(&n, old, 4);
		CHECK(holds(old + 4, n, (unsigned char)n));
		CHECK(heap_cache_free(heap, &c, old));
	}
	heap_cache_flush(heap, &c);
	return NULL;
}

TEST(threads_free_blocks_of_each_other)
{
	pthread_t t[MOVERS];
	uint32_t top = 0;

	heap_open();
	for (unsigned int round = 0; round < 3; round++) {
		for (uintptr_t i = 0; i < MOVERS; i++)
			CHECK(!pthread_create(&t[i], NULL, move_blocks, (void *)i));
		for (int i = 0; i < MOVERS; i++)
			pthread_join(t[i], NULL);
		for (unsigned int i = 0; i < SLOTS; i++) {
			void *p = atomic_exchange(&slots[i], NULL);

			CHECK(!p || heap_free(heap, p));
		}
		/* each arena keeps a slab of each size; all other memory is free */
		CHECK(heap->top < 4 * 4 * HEAP_CLASSES);
		CHECK(!round || heap->top < top + HEAP_CLASSES);
		top = heap->top;
	}
}

/* ---- memory of nodes ---- */

static size_t grown, grown_max;

/* Return the next part of the heap beyond its limit. */
static void *grow(size_t len)
{
	char *p = heap->base + heap->limit * HEAP_UNIT + grown;

	CHECK_EQ(len % heap->growth, 0);
	if (grown + len > grown_max)
		return NULL;
	grown += len;
	return p;
}

static bool is_grown(const void *p)
{
	return (const char *)p >= heap->base + heap->limit * HEAP_UNIT;
}

TEST(each_node_has_memory_of_its_own)
{
	unsigned int arena[] = { 1 * HEAP_NODE_ARENAS, 2 * HEAP_NODE_ARENAS + 3 };
	char *p, *q, *small;

	heap_open();
	p = heap_alloc(heap, 0, 8 * HEAP_UNIT, 16, false);
	heap->limit /= 2;
	heap->growth = 16 * HEAP_UNIT;
	heap->grow = grow;
	grown_max = 48 * HEAP_UNIT;
	CHECK(heap_free(heap, p));
	/* node 1 does not take the free run of node 0 */
	p = heap_alloc(heap, arena[0], 8 * HEAP_UNIT, 16, true);
	CHECK(is_grown(p) && grown == 16 * HEAP_UNIT);
	CHECK(heap_free(heap, p));
	/* node 2 does not take the free run of node 1 */
	q = heap_alloc(heap, arena[1], 9 * HEAP_UNIT, 16, true);
	CHECK(is_grown(q) && q != p && grown == 32 * HEAP_UNIT);
	small = heap_alloc(heap, arena[1], 40, 16, true);
	CHECK(is_grown(small) && grown == 32 * HEAP_UNIT);
	CHECK(heap_alloc(heap, arena[0], 16 * HEAP_UNIT, 16, true) == p);
	CHECK(!heap_resize(heap, p, 17 * HEAP_UNIT));
	/* a node that cannot grow takes memory below the limit */
	p = heap_alloc(heap, arena[0], 17 * HEAP_UNIT, 16, true);
	CHECK(p && !is_grown(p) && grown == 32 * HEAP_UNIT);
	CHECK(heap_free(heap, p));
	CHECK(heap_free(heap, q));
	CHECK(heap_free(heap, small));
}
