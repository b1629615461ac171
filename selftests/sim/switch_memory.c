// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test sci-switch without memory, by its functions: the linker wraps calloc() and realloc(). */
#include <stdlib.h>

#include "selftests/harness.h"
#include "sim/switch/fabric.h"
#include "sim/switch/node.h"

static unsigned int allocations, fail_at;

void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	return ++allocations == fail_at ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return ++allocations == fail_at ? NULL : __real_realloc(old, size);
}

/* Add a node, and let allocation number @fail fail. */
static struct node *join(struct fabric *f, uint16_t id, unsigned int fail)
{
	struct node *n;

	allocations = 0;
	fail_at = fail;
	n = node_join_default(f, id);
	fail_at = 0;
	return n;
}

/* Return the number of links from a node to another. */
static unsigned int hops(struct fabric *f, uint16_t from, uint16_t to)
{
	const struct station *at = node_find(f, from)->station;
	unsigned int n;

	for (n = 0; at != node_find(f, to)->station; n++) {
		struct link *l = topology_next(f, at, node_find(f, to)->station);

		CHECK(l);
		at = l->to;
	}
	return n;
}

/* Add @id, whose allocations fail one after the other. Return how many failed. */
static unsigned int join_at_last(struct fabric *f, uint16_t id)
{
	const struct topology before = f->topology;
	unsigned int failed;

	for (failed = 0; !join(f, id, failed + 1); failed++) {
		CHECK(!node_find(f, id));
		CHECK_EQ(f->topology.stations, before.stations);
		CHECK_EQ(f->topology.links, before.links);
		if (before.rings)
			CHECK_EQ(f->topology.ring[0]->links, before.links);
		if (before.links)
			CHECK_EQ(hops(f, 100, 100) + hops(f, 100, 200) + hops(f, 200, 100), 2);
	}
	return failed;
}

/* A node that could not attach leaves no trace; others attach as before. */
TEST(nodes_join_without_memory)
{
	struct fabric *f = calloc(1, sizeof(*f));

	CHECK(f);
	CHECK_EQ(fabric_open(f), 0);
	CHECK(join_at_last(f, 100) > 5);
	CHECK(join(f, 200, 0));
	CHECK(join_at_last(f, 152) > 3);
	CHECK(join(f, 300, 0));
	CHECK_EQ(hops(f, 100, 152), 1);
	CHECK_EQ(hops(f, 152, 200), 1);
	CHECK_EQ(hops(f, 200, 100), 2);
	fabric_close(f);
	free(f);
}
