// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test stream buffers and barriers of the simulated card. */
#include "selftests/sim/adapter.h"

#define GATHER	10000u		/* default of GATHER_NS */

TEST(a_full_line_leaves_at_once_as_one_packet)
{
	struct card *t, *c = pair_up(&t);

	for (unsigned int i = 0; i < 7; i++)
		store_run(c, 0, 8 * i, 8, 8, (uint8_t)(8 * i));
	CHECK_EQ(c->sent, 0);
	CHECK_EQ(csr(c, SCI_PCI_STATUS),
		 SCI_PCI_STATUS_LINK_UP | SCI_PCI_STATUS_GATHERING);
	store_run(c, 0, 56, 8, 8, 56);
	CHECK_EQ(c->sent, 1);
	CHECK_EQ(c->last.kind, PACKET_WRITE);
	CHECK_EQ(c->last.size, PACKET_HEADER + 64);
	CHECK_EQ(c->last.address, UINT64_C(1) << 32);
	CHECK_EQ(csr(c, SCI_PCI_STATUS),
		 SCI_PCI_STATUS_LINK_UP | SCI_PCI_STATUS_OUTSTANDING);
	world_settle();
	CHECK(stored(t, 1, 0, 64, 0));
	CHECK_EQ(csr(c, SCI_PCI_STATUS), SCI_PCI_STATUS_LINK_UP);
	CHECK_EQ(COUNT(c, WRITES_64), 1);
	CHECK_EQ(COUNT(c, STORE_BYTES), 64);
	CHECK_EQ(COUNT(t, RECEIVED), 1);
	CHECK_EQ(COUNT(t, RECEIVED_BYTES), 64);
	cards_free();
}

TEST(any_width_of_store_gathers)
{
	struct card *t, *c = pair_up(&t);

	for (size_t step = 1; step <= 64; step *= 2) {
		store_run(c, 0, 4096, 64, step, (uint8_t)step);
		world_settle();
		CHECK(stored(t, 1, 4096, 64, (uint8_t)step));
	}
	CHECK_EQ(COUNT(c, WRITES_64), 7);
	CHECK_EQ(COUNT(c, WRITES_16), 0);
	cards_free();
}

TEST(sixty_bytes_cost_four_packets)
{
	struct card *t, *c = pair_up(&t);

	store_run(c, 0, 0, 60, 4, 1);
	CHECK_EQ(c->sent, 0);
	CHECK_EQ(barrier(c), 0);
	CHECK_EQ(COUNT(c, WRITES_16), 4);
	CHECK_EQ(COUNT(c, WRITES_64), 0);
	CHECK_EQ(c->sent, 4);
	CHECK(stored(t, 1, 0, 60, 1));
	CHECK_EQ(COUNT(t, RECEIVED_BYTES), 60);
	CHECK_EQ(t->memory[export_at(1, 60)], 0);
	cards_free();
}

/* These packets have no byte in common. A later store to the same line waits. */
TEST(packets_of_one_buffer_do_not_wait_for_each_other)
{
	struct card *t, *c = pair_up(&t);

	store_run(c, 0, 0, 60, 4, 1);
	set(c, SCI_PCI_USER_FLUSH, 1);
	CHECK_EQ(c->sent, 4);
	store_run(c, 0, 0, 64, 64, 2);
	CHECK_EQ(c->sent, 4);
	CHECK_EQ(barrier(c), 0);
	CHECK_EQ(c->sent, 5);
	CHECK(stored(t, 1, 0, 64, 2));
	cards_free();
}

/* Store with every start and length in a line: no other byte changes. */
TEST(masks_say_which_bytes_count)
{
	struct card *t, *c = pair_up(&t);

	for (unsigned int at = 0; at < 64; at++) {
		for (unsigned int len = 1; at + len <= 64; len++) {
			uint8_t *line = t->memory + export_at(1, 64);

			memset(line - 64, 0xee, 192);
			store_run(c, 0, 64 + at, len, 1, 3);
			CHECK_EQ(barrier(c), 0);
			CHECK(stored(t, 1, 64 + at, len, 3));
			for (unsigned int i = 0; i < 192; i++)
				if (i < 64 + at || i >= 64 + at + len)
					CHECK_EQ(line[(int)i - 64], 0xee);
		}
	}
	cards_free();
}

TEST(a_store_elsewhere_flushes)
{
	struct card *t, *c = pair_up(&t);

	store_run(c, 0, 0, 8, 8, 1);
	store_run(c, 0, 16, 8, 8, 2);		/* behind a gap */
	CHECK_EQ(COUNT(c, GATHER_BROKEN), 1);
	CHECK_EQ(c->sent, 1);
	store_run(c, 0, 16, 8, 8, 3);		/* the same bytes again */
	CHECK_EQ(COUNT(c, GATHER_BROKEN), 2);
	store_run(c, 0, 4096, 8, 8, 4);
	CHECK_EQ(COUNT(c, GATHER_BROKEN), 3);
	CHECK_EQ(barrier(c), 0);
	CHECK(stored(t, 1, 0, 8, 1));
	CHECK(stored(t, 1, 16, 8, 3));
	CHECK(stored(t, 1, 4096, 8, 4));
	CHECK_EQ(COUNT(c, WRITES_16), 4);
	cards_free();
}

TEST(the_next_line_is_elsewhere)
{
	struct card *t, *c = pair_up(&t);

	store_run(c, 0, 48, 32, 8, 9);
	CHECK_EQ(COUNT(c, GATHER_BROKEN), 1);
	CHECK_EQ(c->sent, 1);
	CHECK_EQ(barrier(c), 0);
	CHECK(stored(t, 1, 48, 32, 9));
	cards_free();
}

TEST(what_gathers_too_long_leaves)
{
	struct card *t, *c = pair_up(&t);

	store_run(c, 0, 0, 16, 8, 1);
	world_pass(GATHER - 1);
	CHECK_EQ(c->sent, 0);
	world_pass(1);
	CHECK_EQ(c->sent, 1);
	CHECK_EQ(COUNT(c, GATHER_TIMEOUTS), 1);
	/* the time starts with the first store */
	store_run(c, 0, 64, 8, 8, 1);
	world_pass(GATHER / 2);
	store_run(c, 0, 72, 8, 8, 9);
	world_pass(GATHER / 2);
	CHECK_EQ(COUNT(c, GATHER_TIMEOUTS), 2);
	set(c, SCI_PCI_GATHER_NS, 100);
	store_run(c, 0, 128, 8, 8, 1);
	world_pass(100);
	CHECK_EQ(COUNT(c, GATHER_TIMEOUTS), 3);
	world_settle();
	CHECK(stored(t, 1, 64, 16, 1));
	cards_free();
}

TEST(initiators_gather_for_themselves)
{
	struct card *t, *c = pair_up(&t);

	for (unsigned int i = 0; i < 64; i += 8)
		for (unsigned int k = 0; k < 8; k++)
			store_run(c, k, 64 * k + i, 8, 8, (uint8_t)(k + i));
	CHECK_EQ(COUNT(c, WRITES_64), 8);
	CHECK_EQ(COUNT(c, GATHER_BROKEN), 0);
	CHECK_EQ(COUNT(c, GATHER_EVICTED), 0);
	world_settle();
	for (uint8_t k = 0; k < 8; k++)
		CHECK(stored(t, 1, 64 * k, 64, k));
	cards_free();
}

TEST(another_initiator_in_the_line_flushes)
{
	struct card *t, *c = pair_up(&t);

	map_entry(c, 1, node_of(t), 0, 1, 0);	/* maps the same memory again */
	store_run(c, 0, 0, 8, 8, 1);
	store_run(c, 1, 0, 8, 8, 2);
	store_run(c, 2, PAGE, 8, 8, 3);
	CHECK_EQ(COUNT(c, GATHER_BROKEN), 2);
	store_run(c, 0, 8, 8, 8, 4);		/* consecutive, but not gathered */
	CHECK_EQ(barrier(c), 0);
	CHECK(stored(t, 1, 0, 8, 3));
	CHECK(stored(t, 1, 8, 8, 4));
	cards_free();
}

TEST(eight_buffers_are_a_pipeline)
{
	struct card *t, *c = pair_up(&t);
	uint64_t begin = world.now;

	store_run(c, 0, 0, 512, 8, 5);
	CHECK_EQ(c->sent, 8);
	CHECK_EQ(COUNT(c, STALLS), 0);
	CHECK_EQ(barrier(c), 0);
	CHECK_EQ(world.now - begin, 2 * world.delay);	/* all in parallel */
	CHECK(stored(t, 1, 0, 512, 5));
	cards_free();
}

TEST(the_oldest_buffer_is_evicted)
{
	struct card *t, *c = pair_up(&t);

	for (unsigned int k = 0; k < 9; k++)
		store_run(c, k, 64 * k, 8, 8, (uint8_t)k);
	CHECK_EQ(COUNT(c, GATHER_EVICTED), 1);
	CHECK_EQ(c->sent, 1);
	CHECK_EQ(c->last.address, UINT64_C(1) << 32);
	CHECK_EQ(COUNT(c, STALLS), 0);
	CHECK_EQ(barrier(c), 0);
	for (uint8_t k = 0; k < 9; k++)
		CHECK(stored(t, 1, 64 * k, 8, k));
	cards_free();
}

/* ---- slots ---- */

TEST(no_more_than_the_slots_are_outstanding)
{
	struct card *t, *c = pair_up(&t);
	uint64_t data[8] = { 7 };

	for (unsigned int i = 0; i < 72; i++)	/* 64 slots and 8 buffers */
		CHECK_EQ(sim_window_write(c->a, 0, 64 * i, data, 64),
			 SIM_BUS_DONE);
	CHECK_EQ(c->sent, 64);
	CHECK_EQ(csr(c, SCI_PCI_USER_CHECK), 72);
	CHECK_EQ(sim_window_write(c->a, 0, 72 * 64, data, 64), SIM_BUS_WAIT);
	CHECK_EQ(sim_window_write(c->a, 0, 72 * 64, data, 64), SIM_BUS_WAIT);
	CHECK_EQ(COUNT(c, STALLS), 1);
	CHECK_EQ(COUNT(c, STORE_BYTES), 72 * 64);
	CHECK(world_step());
	CHECK_EQ(sim_window_write(c->a, 0, 72 * 64, data, 64), SIM_BUS_WAIT);
	while (csr(c, SCI_PCI_USER_CHECK) == 72)
		CHECK(world_step());
	CHECK_EQ(sim_window_write(c->a, 0, 72 * 64, data, 64), SIM_BUS_DONE);
	CHECK_EQ(barrier(c), 0);
	CHECK_EQ(csr(c, SCI_PCI_USER_CHECK), 0);
	CHECK_EQ(COUNT(c, WRITES_64), 73);
	CHECK_EQ(COUNT(t, RECEIVED), 73);
	cards_free();
}

TEST(one_slot_is_enough)
{
	struct sim_config config = config_64();
	struct card *c, *t = card_up(1);

	config.outstanding = 1;
	c = card_new(0, &config);
	card_start(c);
	export_make(t, 1, 0x10000, RIGHTS);
	map_entry(c, 0, node_of(t), 0, 1, 0);
	store_run(c, 0, 0, 4096, 8, 1);
	store_run(c, 0, 8192, 60, 4, 2);
	CHECK_EQ(barrier(c), 0);
	CHECK(stored(t, 1, 0, 4096, 1));
	CHECK(stored(t, 1, 8192, 60, 2));
	CHECK(COUNT(c, STALLS) > 0);
	CHECK_EQ(load32(c, 8192), 0x05040302);
	cards_free();
}

TEST(a_line_waits_for_its_transaction)
{
	struct card *t, *c = pair_up(&t);

	store_run(c, 0, 0, 64, 64, 1);
	store_run(c, 0, 0, 64, 64, 2);
	store_run(c, 0, 64, 64, 64, 3);		/* a store to another line passes */
	store_run(c, 0, 0, 64, 64, 4);
	CHECK_EQ(c->sent, 2);
	CHECK_EQ(csr(c, SCI_PCI_USER_CHECK), 4);
	CHECK_EQ(barrier(c), 0);
	CHECK_EQ(c->sent, 4);
	CHECK(stored(t, 1, 0, 64, 4));
	CHECK(stored(t, 1, 64, 64, 3));
	cards_free();
}

/* ---- barriers ---- */

TEST(tickets_are_done_in_order)
{
	struct card *t, *c = pair_up(&t);
	uint32_t first, second, third;

	first = csr(c, SCI_PCI_USER_BARRIER);
	CHECK(barrier_done(c, first));
	store_run(c, 0, 0, 8, 8, 1);
	second = csr(c, SCI_PCI_USER_BARRIER);
	CHECK_EQ(c->sent, 1);			/* reading BARRIER flushes */
	store_run(c, 0, 0, 8, 8, 2);		/* has to wait for a slot */
	third = csr(c, SCI_PCI_USER_BARRIER);
	CHECK(!barrier_done(c, second));
	CHECK_EQ((int32_t)(get32(c, AT_STATUS + 12) - first), 0);
	while (!barrier_done(c, second))
		CHECK(world_step());
	CHECK(stored(t, 1, 0, 8, 1));
	CHECK(!barrier_done(c, third));
	CHECK_EQ(get32(c, AT_STATUS + 12), second);
	while (!barrier_done(c, third))
		CHECK(world_step());
	CHECK(stored(t, 1, 0, 8, 2));
	CHECK_EQ(get32(c, AT_STATUS + 12), csr(c, SCI_PCI_USER_DONE));
	CHECK_EQ(COUNT(c, BARRIERS), 3);
	CHECK_EQ(COUNT(c, FLUSHES), 3);
	cards_free();
}

/* A store that waits is older than the store that overtook it. */
TEST(a_barrier_covers_what_waits)
{
	struct card *t, *c = pair_up(&t);
	uint32_t ticket;

	store_run(c, 0, 0, 64, 64, 1);
	store_run(c, 0, 0, 64, 64, 2);		/* waits for the line */
	ticket = csr(c, SCI_PCI_USER_BARRIER);
	store_run(c, 0, 64, 64, 64, 3);
	csr(c, SCI_PCI_USER_BARRIER);
	world.delay *= 3;
	while (!barrier_done(c, ticket))
		CHECK(world_step());
	CHECK(stored(t, 1, 0, 64, 2));
	CHECK_EQ(csr(c, SCI_PCI_USER_CHECK), 0);
	cards_free();
}

TEST(a_barrier_waits_for_the_slowest_store)
{
	struct card *t, *c = pair_up(&t);
	uint32_t ticket;

	world.cut = true;
	store_run(c, 0, 0, 64, 64, 1);
	ticket = csr(c, SCI_PCI_USER_BARRIER);
	world.cut = false;
	for (unsigned int i = 1; i < 100; i++) {
		store_run(c, 0, 64 * i, 64, 64, 1);
		csr(c, SCI_PCI_USER_BARRIER);
	}
	world_pass(1000000);
	CHECK(!barrier_done(c, ticket));
	world_settle();
	CHECK(barrier_done(c, ticket));
	CHECK_EQ(csr(c, SCI_PCI_USER_DONE), ticket + 99);
	CHECK_EQ(COUNT(c, RETRIES), 1);
	CHECK_EQ(csr(c, SCI_PCI_USER_ERRORS), 0);
	cards_free();
}

/* ERRORS is written to memory before the DONE value that covers it. */
TEST(errors_are_there_before_done)
{
	struct card *t, *c = pair_up(&t);
	uint32_t ticket, errors = 0;

	for (unsigned int i = 0; i < 40; i++) {
		/* every third store goes beyond an export */
		map_entry(c, i, node_of(t), 0, i % 3 ? 1 : 2, 0);
		store_run(c, 0, (uint64_t)i * PAGE, 64, 64, 1);
		errors += i % 3 == 0;
		ticket = csr(c, SCI_PCI_USER_BARRIER);
		while ((int32_t)(get32(c, AT_STATUS + 12) - ticket) < 0)
			CHECK(world_step());
		CHECK_EQ(get32(c, AT_STATUS), errors);
		CHECK_EQ(get32(c, AT_STATUS + 8), errors);
		CHECK_EQ(get32(c, AT_STATUS + 4), 0);
	}
	CHECK_EQ(COUNT(c, ERRORS_PROTECTION), errors);
	CHECK_EQ(COUNT(t, REFUSED), errors);
	cards_free();
}

TEST(status_words_follow_their_base)
{
	struct card *t, *c = pair_up(&t);

	CHECK_EQ(get32(c, AT_STATUS + 4), 0);
	sim_adapter_link(c->a, false);
	CHECK_EQ(get32(c, AT_STATUS + 4), 1);
	memset(c->memory + AT_STATUS + 64, 0xff, 32);
	set64(c, SCI_PCI_STATUS_BASE, AT_STATUS + 64);
	CHECK_EQ(get32(c, AT_STATUS + 64), 0);
	CHECK_EQ(get32(c, AT_STATUS + 68), 1);
	CHECK_EQ(get32(c, AT_STATUS + 80), UINT32_MAX);
	set64(c, SCI_PCI_STATUS_BASE, 0);
	sim_adapter_link(c->a, true);
	CHECK_EQ(get32(c, AT_STATUS + 68), 1);
	set64(c, SCI_PCI_STATUS_BASE, MEMORY);	/* no memory there */
	CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE), SCI_PCI_ERR_BUS);
	CHECK_EQ(csr(c, SCI_PCI_USER_FATAL), 1);
	csr(c, SCI_PCI_USER_BARRIER);
	CHECK_EQ(csr(c, SCI_PCI_USER_FATAL), 1);
	set64(c, SCI_PCI_STATUS_BASE, AT_STATUS);
	CHECK_EQ(get32(c, AT_STATUS + 8), 1);
	cards_free();
}

/* ---- pages ---- */

TEST(ending_a_page_flushes_it_and_no_other)
{
	struct card *t, *c = pair_up(&t);

	map_entry(c, 1, node_of(t), 0, 1, 0);
	store_run(c, 0, 0, 8, 8, 1);
	store_run(c, 1, PAGE + 4096, 8, 8, 2);
	sim_att_write(c->a, 0, 0);
	CHECK_EQ(c->sent, 1);
	store_run(c, 0, 8, 8, 8, 1);		/* the page was ended */
	CHECK_EQ(csr(c, SCI_PCI_USER_ERRORS), 1);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE), SCI_PCI_ERR_ATT);
	CHECK_EQ(csr64(c, SCI_PCI_ERROR_ADDRESS), 8);
	CHECK_EQ(barrier(c), 1);
	CHECK(stored(t, 1, 0, 8, 1));
	CHECK(stored(t, 1, 4096, 8, 2));
	CHECK_EQ(t->memory[export_at(1, 8)], 0);
	cards_free();
}

/* Packets sent before a page changes go to the page's old target. */
TEST(a_page_that_turns_takes_nothing_along)
{
	struct card *t, *c = pair_up(&t);

	export_make(t, 2, 0x10000, RIGHTS);
	for (unsigned int i = 0; i < 80; i++) {
		map_entry(c, 0, node_of(t), 0, i & 1 ? 2 : 1, 0);
		store_run(c, 0, 64 * i, 32, 8, (uint8_t)i);
	}
	CHECK_EQ(barrier(c), 0);
	for (unsigned int i = 0; i < 80; i++) {
		CHECK(stored(t, i & 1 ? 2 : 1, 64 * i, 32, (uint8_t)i));
		CHECK_EQ(t->memory[export_at(i & 1 ? 1 : 2, 64 * i + 1)], 0);
	}
	cards_free();
}

TEST(no_gather_sends_each_store)
{
	struct card *t, *c = pair_up(&t);

	map_entry(c, 0, node_of(t), SCI_PCI_ATT_NO_GATHER, 1, 0);
	store_run(c, 0, 0, 8, 4, 1);
	CHECK_EQ(csr(c, SCI_PCI_USER_CHECK), 2);
	CHECK_EQ(csr(c, SCI_PCI_STATUS) & SCI_PCI_STATUS_GATHERING, 0);
	store_run(c, 0, 64, 64, 64, 1);
	CHECK_EQ(barrier(c), 0);
	CHECK_EQ(COUNT(c, WRITES_16), 2);
	CHECK_EQ(COUNT(c, WRITES_64), 1);
	CHECK_EQ(COUNT(c, GATHER_BROKEN), 0);
	CHECK(stored(t, 1, 0, 8, 1));
	cards_free();
}

/* ---- cards with buffers of 128 bytes ---- */

static struct card *pair_128(struct card **target)
{
	struct card *c = card_new(0, &sim_config_default);

	card_start(c);
	*target = card_up(1);
	export_make(*target, 1, 0x10000, RIGHTS);
	map_entry(c, 0, node_of(*target), 0, 1, 0);
	map_entry(c, 1, node_of(*target), SCI_PCI_ATT_NO_128, 1, 0);
	return c;
}

TEST(buffers_of_128_bytes)
{
	struct card *t, *c = pair_128(&t);

	store_run(c, 0, 0, 128, 8, 1);
	CHECK_EQ(COUNT(c, WRITES_128), 1);
	CHECK_EQ(c->last.size, PACKET_HEADER + 128);
	store_run(c, 0, 256, 80, 8, 2);		/* a full half line and a piece */
	store_run(c, 0, 512 + 32, 96, 32, 3);	/* across the middle of a line */
	store_run(c, 0, PAGE + 1024, 128, 8, 4);	/* NO_128 */
	CHECK_EQ(barrier(c), 0);
	CHECK_EQ(COUNT(c, WRITES_128), 1);
	CHECK_EQ(COUNT(c, WRITES_64), 1 + 1 + 2);
	CHECK_EQ(COUNT(c, WRITES_16), 1 + 2);
	CHECK(stored(t, 1, 0, 128, 1));
	CHECK(stored(t, 1, 256, 80, 2));
	CHECK(stored(t, 1, 512 + 32, 96, 3));
	CHECK(stored(t, 1, 1024, 128, 4));
	cards_free();
}

TEST(sixteen_buffers_of_128_bytes)
{
	struct card *t, *c = pair_128(&t);

	for (unsigned int k = 0; k < 16; k++)
		store_run(c, k, 128 * k, 64, 64, (uint8_t)k);
	CHECK_EQ(c->sent, 0);
	store_run(c, 16, 128 * 16, 64, 64, 16);
	CHECK_EQ(COUNT(c, GATHER_EVICTED), 1);
	CHECK_EQ(barrier(c), 0);
	for (uint8_t k = 0; k <= 16; k++)
		CHECK(stored(t, 1, 128 * k, 64, k));
	cards_free();
}

/* ---- errors ---- */

TEST(stores_fail_with_their_code)
{
	struct card *t, *c = pair_up(&t);

	map_entry(c, 1, 16, 0, 1, 0);		/* node 16 does not exist */
	map_entry(c, 2, 6, 0, 1, 0);		/* 6 is not a node id */
	map_entry(c, 3, node_of(t), 0, 9, 0);	/* no such export */
	store_run(c, 0, PAGE, 64, 64, 1);
	CHECK_EQ(barrier(c), 1);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE), SCI_PCI_ERR_NODE);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_NODE), 16);
	store_run(c, 0, 2 * PAGE, 64, 64, 1);
	CHECK_EQ(barrier(c), 2);
	CHECK_EQ(COUNT(c, ERRORS_NODE), 2);
	CHECK_EQ(csr(c, SCI_PCI_USER_FATAL), 0);
	store_run(c, 0, 3 * PAGE + 64, 64, 64, 1);
	CHECK_EQ(barrier(c), 3);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE), SCI_PCI_ERR_PROTECTION);
	CHECK_EQ(csr64(c, SCI_PCI_ERROR_ADDRESS), UINT64_C(9) << 32 | 64);
	CHECK_EQ(csr(c, SCI_PCI_USER_FATAL), 1);
	world.cut = true;
	store_run(c, 0, 128, 8, 8, 1);
	CHECK_EQ(barrier(c), 4);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE), SCI_PCI_ERR_TIMEOUT);
	CHECK_EQ(COUNT(c, RETRIES), 5);
	CHECK_EQ(COUNT(c, TIMEOUTS), 1);
	CHECK_EQ(COUNT(c, WRITES_16), 1);	/* repetitions are not counted */
	cards_free();
}

TEST(timeouts_double)
{
	struct card *t, *c = pair_up(&t);
	uint64_t begin = world.now;

	world.cut = true;
	set(c, SCI_PCI_TIMEOUT_US, 10);
	set(c, SCI_PCI_RETRIES, 3);
	store_run(c, 0, 0, 64, 64, 1);
	CHECK_EQ(barrier(c), 1);
	CHECK_EQ(world.now - begin, (10 + 20 + 40 + 80) * 1000);
	CHECK_EQ(c->sent, 4);
	set(c, SCI_PCI_TIMEOUT_US, 0);		/* has the effect of 1 */
	set(c, SCI_PCI_RETRIES, 0);
	begin = world.now;
	store_run(c, 0, 0, 64, 64, 1);
	CHECK_EQ(barrier(c), 2);
	CHECK_EQ(world.now - begin, 1000);
	CHECK_EQ(sim_adapter_deadline(c->a), SIM_NEVER);
	cards_free();
}

TEST(a_link_that_goes_down_fails_what_is_outstanding)
{
	struct card *t, *c = pair_up(&t);
	uint64_t data[8] = { 0 };
	uint32_t ticket;

	for (unsigned int i = 0; i < 72; i++)
		CHECK_EQ(sim_window_write(c->a, 0, 64 * i, data, 64),
			 SIM_BUS_DONE);
	CHECK_EQ(sim_window_write(c->a, 0, 8192, data, 8), SIM_BUS_WAIT);
	ticket = csr(c, SCI_PCI_USER_BARRIER);
	sim_adapter_link(c->a, false);
	CHECK(barrier_done(c, ticket));
	CHECK_EQ(COUNT(c, ERRORS_LINK), 72);
	CHECK_EQ(COUNT(c, WRITES_64), 64);	/* the others were not sent */
	CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE), SCI_PCI_ERR_LINK);
	/* stores that gather fail when they are sent */
	CHECK_EQ(sim_window_write(c->a, 0, 8192, data, 8), SIM_BUS_DONE);
	CHECK_EQ(csr(c, SCI_PCI_USER_ERRORS), 72);
	CHECK_EQ(barrier(c), 73);
	CHECK_EQ(csr(c, SCI_PCI_USER_FATAL), 0);
	store_run(c, 0, 4096, 8, 8, 7);
	sim_adapter_link(c->a, true);
	CHECK_EQ(barrier(c), 73);
	CHECK(stored(t, 1, 4096, 8, 7));
	cards_free();
}

TEST(disabling_fails_everything)
{
	struct card *t, *c = pair_up(&t);

	map_entry(c, 1, node_of(c), 0, 1, 0);
	export_make(c, 1, 4096, RIGHTS);
	store_run(c, 0, 0, 64, 64, 1);
	set(c, SCI_PCI_CONTROL, 0);
	CHECK_EQ(csr(c, SCI_PCI_USER_ERRORS), 1);
	CHECK_EQ(load32(c, 0), UINT32_MAX);
	CHECK_EQ(load32(c, PAGE), UINT32_MAX);	/* loop-back fails, too */
	CHECK_EQ(csr(c, SCI_PCI_USER_ERRORS), 3);
	store_run(c, 0, PAGE, 64, 64, 1);
	CHECK_EQ(barrier(c), 4);
	CHECK_EQ(COUNT(c, ERRORS_LINK), 4);
	cards_free();
}

TEST(a_reset_empties_everything)
{
	struct card *t, *c = pair_up(&t);

	store_run(c, 0, 0, 64, 64, 1);
	store_run(c, 0, 64, 8, 8, 1);
	store_run(c, 1, 128, 8, 8, 1);
	set(c, SCI_PCI_CONTROL, SCI_PCI_CONTROL_RESET);
	CHECK_EQ(csr(c, SCI_PCI_STATUS), 0);
	CHECK_EQ(csr(c, SCI_PCI_USER_CHECK), 0);
	CHECK_EQ(sim_adapter_deadline(c->a), SIM_NEVER);
	world_settle();
	CHECK_EQ(csr(c, SCI_PCI_USER_ERRORS), 0);
	CHECK_EQ(t->memory[export_at(1, 129)], 0);
	/* after the reset the card works */
	card_start(c);
	map_entry(c, 0, node_of(t), 0, 1, 0);
	store_run(c, 0, 0, 64, 64, 9);
	store_run(c, 1, 128, 8, 8, 9);
	CHECK_EQ(barrier(c), 0);
	CHECK(stored(t, 1, 0, 64, 9));
	CHECK(stored(t, 1, 128, 8, 9));
	cards_free();
}
