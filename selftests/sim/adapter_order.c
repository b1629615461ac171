// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Test the order of stores on links that lose, duplicate, delay, reorder and
 * corrupt packets, with nodes that seem to be gone, links that go down, and resets.
 * If the error count has risen, software repeats its stores. After that memory
 * holds the last stored data, and no earlier packet overwrites it.
 */
#include "selftests/sim/adapter.h"

#define SPAN		2048u		/* bytes that all stores go to */
#define INITIATORS	5u
#define STORES		24u		/* number between two barriers */
#define RUNS		(TEST_ASAN ? 150u : 500u)

struct fight {
	struct card *c;
	struct card *t;
	uint8_t want[SPAN];
	uint32_t errors;
	bool again;		/* a reset has lost stores */
	bool map;		/* use three pages in turn */
};

static void fight_map(struct fight *f)
{
	map_entry(f->c, 0, node_of(f->t), 0, 1, 0);
	map_entry(f->c, 1, node_of(f->t), SCI_PCI_ATT_NO_GATHER, 1, 0);
	map_entry(f->c, 2, node_of(f->t), SCI_PCI_ATT_PREFETCH, 1, 0);
}

static void fight_store(struct fight *f, uint32_t at, uint32_t len)
{
	uint8_t data[64];
	uint32_t page = f->map ? below(3) * PAGE : 0;

	for (uint32_t i = 0; i < len; i++)
		data[i] = (uint8_t)any();
	memcpy(f->want + at, data, len);
	store(f->c, below(INITIATORS), page + at, data, len);
}

static void fight_some(struct fight *f)
{
	uint32_t at = below(SPAN / 64) * 64;
	uint32_t len;

	switch (below(4)) {
	case 0:
		fight_store(f, at, 64);
		break;
	case 1:			/* consecutive stores, cut at a random place */
		for (uint32_t i = 0; i < 64 && below(12); i += 8)
			fight_store(f, at + i, 8);
		break;
	default:
		len = 1 + below(64);
		fight_store(f, at + below(65 - len), len);
	}
}

/* Store everything again: software does not know which stores have arrived. */
static void fight_again(struct fight *f)
{
	f->again = false;
	set(f->c, SCI_PCI_TIMEOUT_US, 20);
	set(f->c, SCI_PCI_RETRIES, 7);
	for (uint32_t i = 0; i < SPAN; i += 64)
		store(f->c, i / 64 % INITIATORS, i, f->want + i, 64);
}

static bool fight_clean(struct fight *f)
{
	uint32_t before = f->errors;

	f->errors = barrier(f->c);
	return f->errors == before && !f->again;
}

static void fight_check(const struct fight *f)
{
	for (uint32_t i = 0; i < SPAN; i++)
		if (f->t->memory[export_at(1, i)] != f->want[i])
			FAIL("byte %u is %#x, not %#x", i,
			     f->t->memory[export_at(1, i)], f->want[i]);
}

static void reset(struct fight *f)
{
	set(f->c, SCI_PCI_CONTROL, SCI_PCI_CONTROL_RESET);
	card_start(f->c);
	fight_map(f);
	f->errors = 0;
	f->again = true;
}

static void disturb(struct fight *f)
{
	switch (below(8)) {
	case 0:
		sim_adapter_link(f->c->a, false);
		world_pass(below(3000));
		sim_adapter_link(f->c->a, true);
		break;
	case 1:
		reset(f);
		break;
	case 2:			/* later stores time out before earlier ones */
		set(f->c, SCI_PCI_TIMEOUT_US, 1 + below(60));
		set(f->c, SCI_PCI_RETRIES, below(3));
		break;
	case 3:
		load32(f->c, 2 * PAGE + below(SPAN / 4) * 4);
		break;
	default:
		break;
	}
}

static void fight(struct fight *f, unsigned int disturbances)
{
	for (unsigned int run = 0; run < RUNS; run++) {
		unsigned int tries = 0;

		for (unsigned int i = 0; i < STORES; i++) {
			fight_some(f);
			if (below(1000) < disturbances)
				disturb(f);
		}
		while (!fight_clean(f)) {
			CHECK(++tries < 1000);
			fight_again(f);
		}
		fight_check(f);
		if (below(2))		/* late packets of this run meet the next run */
			continue;
		world_pass(below(20000));
		fight_check(f);
	}
	world_settle();
	fight_check(f);
}

static struct fight begin(void)
{
	struct fight f = { 0 };

	f.c = pair_up(&f.t);
	fight_map(&f);
	set(f.c, SCI_PCI_TIMEOUT_US, 10);
	return f;
}

TEST(a_good_link_makes_no_errors)
{
	struct fight f = begin();

	f.map = true;
	world.jitter = 5000;
	fight(&f, 0);
	CHECK_EQ(csr(f.c, SCI_PCI_USER_ERRORS), 0);
	cards_free();
}

TEST(a_link_that_delays)
{
	struct fight f = begin();

	world.jitter = 30000;
	set(f.c, SCI_PCI_RETRIES, 7);
	fight(&f, 0);
	CHECK(COUNT(f.c, RETRIES) > 0);
	CHECK(COUNT(f.t, DUPLICATES) > 0);
	cards_free();
}

TEST(a_link_that_loses)
{
	struct fight f = begin();

	world.lose = 200;
	set(f.c, SCI_PCI_RETRIES, 1);
	fight(&f, 0);
	CHECK(COUNT(f.c, TIMEOUTS) > 10);
	cards_free();
}

TEST(a_link_that_doubles_and_is_late)
{
	struct fight f = begin();

	world.twice = 500;
	world.late = 60000;
	world.jitter = 3000;
	fight(&f, 0);
	CHECK(COUNT(f.t, DUPLICATES) > 100);
	cards_free();
}

TEST(a_link_that_spoils)
{
	struct fight f = begin();

	world.spoil = 300;
	set(f.c, SCI_PCI_RETRIES, 7);
	fight(&f, 0);
	CHECK(COUNT(f.t, CRC_ERRORS) > 100);
	CHECK(COUNT(f.c, CRC_ERRORS) > 100);
	cards_free();
}

TEST(a_node_that_seems_to_be_gone)
{
	struct fight f = begin();

	world.flap = 100;
	world.late = 60000;
	world.jitter = 4000;
	fight(&f, 0);
	CHECK(COUNT(f.c, ERRORS_NODE) > 100);
	cards_free();
}

static void worst(unsigned int seed)
{
	struct fight f = begin();

	world.random = seed;
	f.map = true;
	world.lose = 100;
	world.twice = 300;
	world.spoil = 30;
	world.flap = 20;
	world.late = 100000;
	world.jitter = 8000;
	fight(&f, 30);
	cards_free();
}

TEST(the_worst_of_all_links_1)
{
	worst(1);
}

TEST(the_worst_of_all_links_2)
{
	worst(2);
}

TEST(the_worst_of_all_links_3)
{
	worst(3);
}

/* ---- single cases ---- */

static bool lose_all(const struct sim_packet *p)
{
	return !(p->kind & PACKET_RESPONSE);
}

static void store_value(struct card *c, uint32_t at, uint8_t value)
{
	uint8_t data[64];

	memset(data, value, sizeof(data));
	store(c, 0, at, data, sizeof(data));
}

/*
 * A request is given up while an older one is outstanding. The floor cannot pass
 * the older one. Without a wait, a late packet could overwrite the repeated store.
 */
TEST(what_was_given_up_never_comes_after)
{
	struct card *t, *c = pair_up(&t);
	struct sim_packet old;

	world.filter = lose_all;
	set(c, SCI_PCI_RETRIES, 7);
	store_value(c, 64, 1);			/* stays outstanding */
	store_value(c, 0, 2);
	old = c->last;
	sim_adapter_no_node(c->a, &old, old.size);
	CHECK_EQ(csr(c, SCI_PCI_USER_ERRORS), 1);
	world.filter = NULL;
	store_value(c, 0, 3);			/* has to wait for the older request */
	CHECK_EQ(c->sent, 2);
	CHECK_EQ(barrier(c), 1);
	CHECK_EQ(t->memory[export_at(1, 0)], 3);
	sim_adapter_receive(t->a, &old, old.size);
	CHECK_EQ(t->memory[export_at(1, 0)], 3);
	CHECK_EQ(t->memory[export_at(1, 64)], 1);
	cards_free();
}

TEST(a_packet_from_before_a_reset_does_nothing)
{
	struct card *t, *c = pair_up(&t);
	struct sim_packet old;

	world.filter = lose_all;
	store_value(c, 0, 1);
	old = c->last;
	world.filter = NULL;
	set(c, SCI_PCI_CONTROL, SCI_PCI_CONTROL_RESET);
	card_start(c);
	map_entry(c, 0, node_of(t), 0, 1, 0);
	store_value(c, 0, 2);
	CHECK_EQ(barrier(c), 0);
	sim_adapter_receive(t->a, &old, old.size);
	CHECK_EQ(t->memory[export_at(1, 0)], 2);
	CHECK_EQ(COUNT(t, DUPLICATES), 1);
	/* a response from before the reset does not complete a new request */
	store_value(c, 64, 3);
	old.kind |= PACKET_RESPONSE;
	old.source = node_of(t);
	old.target = node_of(c);
	old.size = PACKET_HEADER;
	old.number = c->last.number;
	old.crc = packet_crc(&old);
	sim_adapter_receive(c->a, &old, old.size);
	CHECK_EQ(csr(c, SCI_PCI_USER_CHECK), 1);
	cards_free();
}

TEST(epochs_rise)
{
	struct card *t, *c = pair_up(&t);

	store_value(c, 0, 1);
	CHECK(c->last.epoch == 100);
	sim_adapter_reset(c->a, 50);
	card_start(c);
	map_entry(c, 0, node_of(t), 0, 1, 0);
	store_value(c, 0, 1);
	CHECK(c->last.epoch == 101);
	sim_adapter_reset(c->a, 5000);
	card_start(c);
	map_entry(c, 0, node_of(t), 0, 1, 0);
	store_value(c, 0, 1);
	CHECK(c->last.epoch == 5000);
	cards_free();
}

static bool lose_first(const struct sim_packet *p)
{
	return !(p->kind & PACKET_RESPONSE) && p->number == 1;
}

TEST(one_lost_packet_holds_256_at_most)
{
	struct card *t, *c = pair_up(&t);
	uint64_t data[8] = { 0 };
	unsigned int n = 0;

	world.filter = lose_first;
	while (n < 1000) {
		if (sim_window_write(c->a, 0, 64 * n, data, 64) ==
		    SIM_BUS_DONE)
			n++;
		else if (world.now < 1000000)
			CHECK(world_step());
		else
			break;
	}
	CHECK_EQ(n, 256 + 8);			/* eight wait in stream buffers */
	CHECK_EQ(COUNT(c, WRITES_64), 256);
	world.filter = NULL;
	CHECK_EQ(barrier(c), 0);
	CHECK_EQ(COUNT(t, RECEIVED), n);
	cards_free();
}
