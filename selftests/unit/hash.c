// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The hash table finds the same elements as a search through an array. */
#include <stdlib.h>

#include "libsci/base/hash.h"
#include "selftests/harness.h"

#define N	2000
#define KEYS	300		/* fewer than elements: several elements have the same key */

struct element {
	struct hash_node node;
	uint64_t key;
	unsigned int age;	/* step at which it was added; 0: not in the table */
};

static struct element elements[N];

static uint64_t rng_state = 7;

static uint32_t rng(uint32_t below)
{
	rng_state = rng_state * 6364136223846793005 + 1442695040888963407;
	return (uint32_t)((rng_state >> 33) % below);
}

/* Search the array for the element with @key that was added last. */
static struct hash_node *newest(uint64_t key)
{
	struct element *best = NULL;

	for (size_t i = 0; i < N; i++) {
		struct element *e = &elements[i];

		if (e->age && e->key == key && (!best || e->age > best->age))
			best = e;
	}
	return best ? &best->node : NULL;
}

static size_t count_walk(const struct hash *h)
{
	struct hash_node *node = NULL;
	size_t n = 0;

	while ((node = hash_walk(h, node))) {
		CHECK(container_of(node, struct element, node)->age > 0);
		n++;
	}
	return n;
}

TEST(an_empty_table_has_nothing)
{
	struct hash h = { 0 };

	CHECK(!hash_find(&h, 0));
	CHECK(!hash_walk(&h, NULL));
	hash_free(&h);
}

TEST(elements_are_found_newest_first)
{
	struct hash h = { 0 };
	size_t in = 0;

	for (unsigned int step = 1; step <= 20000; step++) {
		struct element *e = &elements[rng(N)];

		if (e->age) {
			hash_del(&h, &e->node);
			e->age = 0;
			in--;
		} else {
			/* some keys differ in high bits only */
			e->key = (uint64_t)rng(KEYS) << (step % 2 ? 0 : 44);
			e->age = step;
			CHECK_EQ(hash_add(&h, &e->node, e->key), 0);
			in++;
		}
		CHECK(hash_find(&h, e->key) == newest(e->key));
		if (step % 500 == 0)
			CHECK_EQ(count_walk(&h), in);
	}
	CHECK(in > KEYS);
	CHECK_EQ(h.n, in);
	hash_free(&h);
	CHECK(!hash_walk(&h, NULL));
}

TEST(keys_spread_over_the_slots)
{
	struct hash h = { 0 };
	size_t used = 0;

	/* real keys are addresses of pages, and numbers in steps of 4 */
	for (size_t i = 0; i < N; i++)
		CHECK_EQ(hash_add(&h, &elements[i].node, i % 2 ? i << 12 : i << 34), 0);
	for (size_t i = 0; i < h.n_slots; i++)
		used += h.slots[i] != NULL;
	CHECK(used > h.n_slots / 3);
	hash_free(&h);
}
