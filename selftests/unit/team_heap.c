// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The allocator of symmetric memory: blocks never overlap, and depend only on the calls. */

#include "libsci/team/heap.h"

#include <errno.h>
#include <stdlib.h>

#include "selftests/harness.h"

#define LEN	100000u
#define BLOCKS	60

struct block {
	size_t at;
	size_t len;
};

static void check_apart(const struct block *b, int n)
{
	for (int i = 0; i < n; i++)
		for (int k = 0; k < i; k++)
			CHECK(!b[i].len || !b[k].len || b[i].at + b[i].len <= b[k].at ||
			      b[k].at + b[k].len <= b[i].at);
}

TEST(blocks_do_not_overlap)
{
	struct block b[BLOCKS] = { { 0, 0 } };
	struct team_heap h, twin;
	size_t at, same;

	heap_init(&h, LEN);
	heap_init(&twin, LEN);
	srand(7);
	for (int round = 0; round < 20000; round++) {
		struct block *x = &b[rand() % BLOCKS];
		size_t len = (size_t)(1 + rand() % 5000), align = (size_t)1 << rand() % 13;
		int ret;

		if (x->len) {
			CHECK_EQ(heap_size(&h, x->at), x->len);
			CHECK_EQ(heap_free(&h, x->at), 0);
			CHECK_EQ(heap_free(&twin, x->at), 0);
			CHECK_EQ(heap_free(&h, x->at), -EINVAL);
			x->len = 0;
			continue;
		}
		ret = heap_alloc(&h, len, align, &at);
		CHECK_EQ(heap_alloc(&twin, len, align, &same), ret);
		if (ret) {
			CHECK_EQ(ret, -ENOSPC);
			continue;
		}
		CHECK_EQ(same, at);
		CHECK_EQ(at % align, 0);
		CHECK(at + len <= LEN);
		*x = (struct block){ at, len };
		if (!(round % 50))
			check_apart(b, BLOCKS);
	}
	heap_clear(&h);
	heap_clear(&twin);
}

TEST(all_of_it_can_be_had_again)
{
	struct team_heap h;
	size_t at;

	heap_init(&h, LEN);
	for (int round = 0; round < 3; round++) {
		CHECK_EQ(heap_alloc(&h, LEN, 1, &at), 0);
		CHECK_EQ(at, 0);
		CHECK_EQ(heap_alloc(&h, 1, 1, &at), -ENOSPC);
		CHECK_EQ(heap_free(&h, 0), 0);
	}
	CHECK_EQ(heap_alloc(&h, LEN + 1, 1, &at), -ENOSPC);
	CHECK_EQ(heap_alloc(&h, SIZE_MAX, 4096, &at), -ENOSPC);
}
