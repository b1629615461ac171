// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The heap: blocks do not overlap, and what is freed is used again. */

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

/* Random blocks, each filled with its number, until all are freed. */
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
	/* the same once more: needs hardly more room; a slab of each size stays */
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


/* Frees what another process has allocated. */
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
