// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Three nodes use a pool at the same time. At each store, a random node continues. Nodes die at a
 * store, or hang at a store for longer than their lease. Memory that a node gets has no other
 * owner and no mapper. When all nodes are gone, all memory is free.
 *
 * In a pool that is not coherent, each node has a cache of its own.
 *
 * SCI_TEST_ROUNDS: number of schedules (default 2000; a quarter of them for a pool that is not
 * coherent).
 */
#include <stdio.h>
#include <ucontext.h>

#include "selftests/unit/pool_model.h"

#define SIZE	(512u << 10)
#define COHERENT_SIZE (160u << 10)
#define NODES	MODEL_SLOTS
#define HELD	6		/* most allocations, and most maps, per node */
#define STACK	(64u << 10)
#define SWITCHES 1500		/* per schedule */

/**
 * struct allocation - memory of a node
 * @length: chunks; 0: none
 * @base: its name after pool_expose(); 0: not exposed
 */
struct allocation {
	u32 first;
	u32 length;
	u64 base;
};

/**
 * struct model_node - a machine
 * @where: context of its program
 * @until: end of a hang; 0: none
 * @dead: until it boots again
 * @maps: first chunks and lengths
 */
struct model_node {
	struct pool p;
	ucontext_t where;
	u64 until;
	bool dead;
	struct allocation held[HELD];
	struct { u32 first, length; } maps[HELD];
};

static struct model_node nodes[NODES];
static char stacks[NODES][STACK] __attribute__((aligned(64)));
static ucontext_t scheduler;
static struct model_node *running;
static void *mem;
static u64 size;
static bool incoherent;
static u64 now;
static uint64_t rng;
static unsigned long deaths, hangs, switches, maps_made, allocations, expelled;

/* The true owner and number of maps of each chunk, independent of the pool. */
static int owner[SIZE / MODEL_CHUNK];
static unsigned int mappers[SIZE / MODEL_CHUNK];

static uint32_t pick(uint32_t below)
{
	return model_random(&rng, below);
}

static void yield_hook(void)
{
	struct model_node *n = running;

	if (n)
		swapcontext(&n->where, &scheduler);
}

/* ---- actions of a node ---- */

static void own(struct model_node *n, u32 first, u32 length, bool it_is)
{
	u32 c;

	for (c = first; c < first + length; c++) {
		if (it_is) {
			CHECK_EQ(owner[c], -1);
			CHECK_EQ(mappers[c], 0);
		}
		owner[c] = it_is ? (int)(n - nodes) : -1;
	}
}

static void map_counted(u32 first, u32 length, int change)
{
	u32 c;

	for (c = first; c < first + length; c++)
		mappers[c] += change;
}

static void node_alloc(struct model_node *n, struct allocation *a)
{
	int length = pool_alloc(&n->p, (1 + pick(5)) * MODEL_CHUNK, &a->first, now);

	if (length < 0)
		return;
	own(n, a->first, length, true);
	a->length = length;
	a->base = 0;
	allocations++;
}

static void node_free(struct model_node *n, struct allocation *a)
{
	u32 length = a->length;

	if (a->base)
		pool_hide(&n->p, a->first, length);
	own(n, a->first, length, false);
	a->length = 0;
	pool_free(&n->p, a->first, length, now);
}

/* Map another node's allocation, whose name a message would carry. */
static void node_map(struct model_node *n, unsigned int i)
{
	struct model_node *other = &nodes[pick(NODES)];
	u64 base = other->held[pick(HELD)].base;
	u32 first, length, c;

	if (!base || !other->p.generation)
		return;
	if (pool_map(&n->p, pool_slot_node(other->p.slot), base, &first, &length))
		return;
	/* chunks of a dead owner have none; otherwise all have the same owner */
	for (c = first; c < first + length; c++)
		CHECK(owner[c] == -1 || owner[c] == owner[first]);
	map_counted(first, length, 1);
	n->maps[i].first = first;
	n->maps[i].length = length;
	maps_made++;
}

static void node_unmap(struct model_node *n, unsigned int i)
{
	map_counted(n->maps[i].first, n->maps[i].length, -1);
	n->maps[i].length = 0;
	pool_unmap(&n->p, n->maps[i].first);
}

static void node_drop_all(struct model_node *n)
{
	unsigned int i;

	for (i = 0; i < HELD; i++) {
		if (n->maps[i].length)
			node_unmap(n, i);
		if (n->held[i].length)
			node_free(n, &n->held[i]);
	}
}

static void node_step(struct model_node *n)
{
	unsigned int i = pick(HELD);
	struct allocation *a = &n->held[i];

	switch (pick(6)) {
	case 0:
		if (a->length)
			node_free(n, a);
		else
			node_alloc(n, a);
		break;
	case 1:
		if (a->length && !a->base)
			a->base = pool_expose(&n->p, a->first, a->length,
					      pick(1u << 31));
		break;
	case 2:
		if (!a->base || !a->length)
			break;
		a->base = 0;
		pool_hide(&n->p, a->first, a->length);
		break;
	case 3:
		if (n->maps[i].length)
			node_unmap(n, i);
		else
			node_map(n, i);
		break;
	case 4:
		pool_scrub(&n->p, now);
		break;
	case 5:
		yield_hook();
		break;
	}
}

static void node_live(void)
{
	struct model_node *n = running;
	unsigned int i;

	for (;;) {
		while (pool_join(&n->p, pick(2) ? pool_slot_node(n - nodes) : 0, 0,
				 "model", now))
			yield_hook();
		for (;;) {
			if (pool_beat(&n->p, now)) {
				expelled++;
				break;
			}
			if (!pick(40))
				break;
			for (i = 0; i < 3; i++)
				node_step(n);
		}
		node_drop_all(n);
		pool_leave(&n->p);
	}
}

/* ---- the schedule ---- */

static void node_boot(struct model_node *n)
{
	unsigned int i = n - nodes;

	memset(n->held, 0, sizeof(n->held));
	memset(n->maps, 0, sizeof(n->maps));
	model_open(&n->p, mem, size);
	n->dead = false;
	n->until = 0;
	getcontext(&n->where);
	n->where.uc_stack.ss_sp = stacks[i];
	n->where.uc_stack.ss_size = STACK;
	n->where.uc_link = NULL;
	makecontext(&n->where, node_live, 0);
}

/* The machine loses its allocations and maps. */
static void node_die(struct model_node *n)
{
	unsigned int i;
	u32 c;

	for (c = 0; c < ARRAY_LEN(owner); c++)
		if (owner[c] == n - nodes)
			owner[c] = -1;
	for (i = 0; i < HELD; i++)
		map_counted(n->maps[i].first, n->maps[i].length, -1);
	model_close(&n->p);
	memset(&n->p, 0, sizeof(n->p));
	memset(n->held, 0, sizeof(n->held));
	memset(n->maps, 0, sizeof(n->maps));
	n->dead = true;
	deaths++;
}

static void schedule_step(void)
{
	struct model_node *n = &nodes[pick(NODES)];

	now += pick(MODEL_LEASE / 200);
	if (n->dead) {
		if (!pick(100))
			node_boot(n);
		return;
	}
	if (n->until > now)
		return;
	n->until = 0;
	if (!pick(400)) {
		node_die(n);
		return;
	}
	if (!pick(300) && now - n->p.looked < MODEL_LEASE) {
		/* the node still acts after the hang: leave a part of the quarantine for that */
		n->until = now + pick(1000) * (MODEL_QUAR / 2000);
		hangs++;
		return;
	}
	switches++;
	running = n;
	swapcontext(&scheduler, &n->where);
	running = NULL;
}

/* A node finds all memory free that it can allocate. */
static void last_node(struct model_node *n, u32 node)
{
	unsigned int i;

	model_open(&n->p, mem, size);
	for (i = 0; pool_join(&n->p, node, 0, "last", now); i++) {
		CHECK(i < 100);
		now += MODEL_LEASE / 4;
	}
	for (i = 0; i < 4 * (2 + MODEL_QUAR_MS / MODEL_LEASE_MS); i++) {
		now += MODEL_LEASE / 4;
		CHECK_EQ(pool_beat(&n->p, now), 0);
	}
	pool_scrub(&n->p, now);
}

static void schedule_end(void)
{
	unsigned int i, last = incoherent ? NODES : 1;

	for (i = 0; i < NODES; i++)
		if (!nodes[i].dead)
			node_die(&nodes[i]);
	for (i = 0; i < last; i++)
		last_node(&nodes[i], incoherent ? pool_slot_node(i) : 0);
	CHECK_EQ(model_count_used(&nodes[0].p), 0);
	for (i = 0; i < ARRAY_LEN(owner); i++)
		CHECK_EQ(mappers[i], 0);
	for (i = 0; i < last; i++)
		model_close(&nodes[i].p);
}

static void schedule_run(uint64_t seed)
{
	unsigned int i;

	rng = seed;
	now = 1 + pick(1000);
	memset(owner, -1, sizeof(owner));
	CHECK_EQ(model_format(mem, size), 0);
	for (i = 0; i < NODES; i++)
		node_boot(&nodes[i]);
	/* where caches are not coherent, a slot is free later */
	for (i = 0; i < (incoherent ? 4 : 1) * SWITCHES; i++)
		schedule_step();
	schedule_end();
}

static void schedules_run(unsigned long n)
{
	unsigned long i;

	if (TEST_TSAN)
		SKIP("switches stacks");
	size = incoherent ? SIZE : COHERENT_SIZE;
	model_flags = incoherent ? POOL_INCOHERENT : 0;
	mem = model_memory(size);
	pool_store_hook = yield_hook;
	for (i = 0; i < n; i++)
		schedule_run(i);
	pool_store_hook = NULL;
	test_note("%lu schedules, %lu switches, %lu allocations, %lu maps, %lu deaths, "
		  "%lu hangs, %lu expelled", n, switches, allocations, maps_made, deaths,
		  hangs, expelled);
	CHECK(n < 100 || (allocations > n && maps_made > n && expelled));
	free(mem);
}

static unsigned long rounds(unsigned long usual)
{
	const char *n = getenv("SCI_TEST_ROUNDS");

	return n ? strtoul(n, NULL, 10) : usual;
}

TEST(random_schedules_of_three_nodes)
{
	schedules_run(rounds(2000));
}

TEST(random_schedules_where_caches_are_not_coherent)
{
	incoherent = true;
	schedules_run(rounds(2000) / 4);
}
