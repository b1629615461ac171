// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test loads, prefetch, locks, interrupt maps, page attributes and loop-back. */
#include "selftests/sim/adapter.h"

#define ONES	UINT32_MAX

/* ---- loads ---- */

TEST(a_load_is_a_round_trip)
{
	struct card *t, *c = pair_up(&t);
	uint64_t begin = world.now, value;

	put64(t, export_at(1, 4096 + 8), UINT64_C(0x1122334455667788));
	for (size_t len = 1; len <= 8; len *= 2) {
		value = 0;
		load(c, 0, 4096 + 8, &value, len);
		CHECK(value == (UINT64_C(0x1122334455667788) &
				UINT64_MAX >> (64 - 8 * len)));
	}
	CHECK_EQ(world.now - begin, 4 * 2 * world.delay);
	CHECK_EQ(COUNT(c, READS), 4);
	CHECK_EQ(COUNT(t, RECEIVED), 4);
	CHECK_EQ(COUNT(t, RECEIVED_BYTES), 0);
	cards_free();
}

TEST(a_load_holds_the_bus)
{
	struct card *t, *c = pair_up(&t);
	uint32_t v, w;

	put32(t, export_at(1, 0), 7);
	put32(t, export_at(1, 64), 8);
	CHECK_EQ(sim_window_read(c->a, 0, 0, &v, 4), SIM_BUS_WAIT);
	CHECK_EQ(sim_window_read(c->a, 0, 0, &v, 4), SIM_BUS_WAIT);
	CHECK_EQ(sim_window_read(c->a, 1, 64, &w, 4), SIM_BUS_WAIT);
	CHECK_EQ(c->sent, 2);
	world_settle();
	CHECK_EQ(sim_window_read(c->a, 0, 0, &v, 4), SIM_BUS_DONE);
	CHECK_EQ(sim_window_read(c->a, 1, 64, &w, 4), SIM_BUS_DONE);
	CHECK_EQ(v, 7);
	CHECK_EQ(w, 8);
	cards_free();
}

TEST(a_load_sees_the_stores_before_it)
{
	struct card *t, *c = pair_up(&t);

	for (uint32_t i = 1; i < 100; i++) {
		uint64_t at = i * 16 % 512;

		store(c, i % 3, at, &i, 4);
		CHECK_EQ(load32(c, at), i);
	}
	CHECK_EQ(csr(c, SCI_PCI_USER_ERRORS), 0);
	cards_free();
}

TEST(a_load_flushes_no_other_line)
{
	struct card *t, *c = pair_up(&t);

	store_run(c, 0, 0, 8, 8, 1);
	load32(c, 64);
	CHECK_EQ(COUNT(c, WRITES_16), 0);
	load32(c, 32);
	CHECK_EQ(COUNT(c, WRITES_16), 1);
	cards_free();
}

TEST(a_load_that_fails_reads_ones)
{
	struct card *t, *c = pair_up(&t);

	memset(t->memory + AT_DATA, 0x55, 0x80000);
	export_make(t, 2, 100, SCI_PCI_EXPORT_WRITE);
	map_entry(c, 1, 16, 0, 1, 0);
	map_entry(c, 2, node_of(t), 0, 2, 0);
	CHECK_EQ(load32(c, PAGE), ONES);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE), SCI_PCI_ERR_NODE);
	CHECK_EQ(load32(c, 2 * PAGE), ONES);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE), SCI_PCI_ERR_PROTECTION);
	CHECK_EQ(load32(c, 3 * PAGE), ONES);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE), SCI_PCI_ERR_ATT);
	CHECK_EQ(load32(c, 8192ull * PAGE), ONES);
	world.cut = true;
	CHECK_EQ(load32(c, 0), ONES);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE), SCI_PCI_ERR_TIMEOUT);
	sim_adapter_link(c->a, false);
	CHECK_EQ(load32(c, 0), ONES);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE), SCI_PCI_ERR_LINK);
	CHECK_EQ(csr(c, SCI_PCI_USER_ERRORS), 6);
	CHECK_EQ(csr(c, SCI_PCI_USER_FATAL), 3);
	CHECK_EQ(COUNT(c, ERRORS_ATT), 2);
	cards_free();
}

TEST(a_load_may_be_given_up)
{
	struct card *t, *c = pair_up(&t);
	uint32_t v;

	put32(t, export_at(1, 0), 7);
	put32(t, export_at(1, 128), 9);
	CHECK_EQ(sim_window_read(c->a, 0, 0, &v, 4), SIM_BUS_WAIT);
	CHECK_EQ(load32(c, 128), 9);	/* already sent */
	CHECK_EQ(sim_window_read(c->a, 0, 0, &v, 4), SIM_BUS_WAIT);
	CHECK_EQ(sim_window_read(c->a, 0, 4, &v, 4), SIM_BUS_WAIT);
	CHECK_EQ(sim_window_read(c->a, 0, 8, &v, 4), SIM_BUS_WAIT);
	set(c, SCI_PCI_CONTROL, SCI_PCI_CONTROL_RESET);
	CHECK_EQ(sim_window_read(c->a, 0, 8, &v, 4), SIM_BUS_DONE);
	CHECK_EQ(v, ONES);
	world_settle();
	cards_free();
}

/* ---- prefetch ---- */

static struct card *prefetch_pair(struct card **t)
{
	struct card *c = pair_up(t);

	map_entry(c, 0, node_of(*t), SCI_PCI_ATT_PREFETCH, 1, 0);
	map_entry(c, 1, node_of(*t), 0, 1, 0);
	for (uint32_t i = 0; i < 1024; i++)
		put32(*t, export_at(1, 4 * i), i);
	set(c, SCI_PCI_GATHER_NS, 1000000);
	return c;
}

TEST(prefetch_fetches_a_line)
{
	struct card *t, *c = prefetch_pair(&t);

	for (uint32_t i = 0; i < 16 * 8; i++)
		CHECK_EQ(load32(c, 4 * i), i);
	CHECK_EQ(COUNT(c, READS), 8);
	CHECK_EQ(c->last.length, 64);
	for (uint32_t i = 0; i < 16 * 8; i++)	/* eight lines are cached */
		CHECK_EQ(load32(c, 4 * i), i);
	CHECK_EQ(COUNT(c, READS), 8);
	CHECK_EQ(load32(c, 4 * 128), 128);	/* replaces a cached line */
	CHECK_EQ(load32(c, 0), 0);
	CHECK_EQ(COUNT(c, READS), 10);
	cards_free();
}

TEST(kept_lines_end)
{
	struct card *t, *c = prefetch_pair(&t);
	uint32_t v = 1000;

	load32(c, 0);
	put32(t, export_at(1, 0), 99);
	CHECK_EQ(load32(c, 0), 0);
	set(c, SCI_PCI_USER_FLUSH, 0);			/* a flush drops the line */
	CHECK_EQ(load32(c, 0), 99);
	put32(t, export_at(1, 0), 100);
	world_pass(999999 - 2 * world.delay);
	CHECK_EQ(load32(c, 0), 99);
	world_pass(2 * world.delay + 1);		/* the line expires */
	CHECK_EQ(load32(c, 0), 100);
	store(c, 1, 4, &v, 4);				/* a store drops the line */
	CHECK_EQ(load32(c, 4), 1000);
	v++;
	store(c, 1, PAGE + 8, &v, 4);			/* a store by another page */
	CHECK_EQ(load32(c, 8), 1001);
	put32(t, export_at(1, 0), 101);
	sim_att_write(c->a, 16 * 16, 0);		/* a change of the ATT entry */
	CHECK_EQ(load32(c, 0), 101);
	put32(t, export_at(1, 0), 102);
	sim_adapter_link(c->a, false);			/* a change of the link */
	sim_adapter_link(c->a, true);
	CHECK_EQ(load32(c, 0), 102);
	cards_free();
}

/* A store overtakes the response to a prefetch. The cached line must not hide it. */
TEST(a_store_during_a_prefetch_is_not_hidden)
{
	struct card *t, *c = prefetch_pair(&t);
	uint32_t v = 1000, w;

	CHECK_EQ(sim_window_read(c->a, 0, 0, &w, 4), SIM_BUS_WAIT);
	store(c, 1, PAGE + 4, &v, 4);
	load(c, 0, 0, &w, 4);
	CHECK_EQ(w, 0);
	CHECK_EQ(barrier(c), 0);
	CHECK_EQ(load32(c, 4), 1000);
	CHECK_EQ(sim_window_read(c->a, 0, 128, &w, 4), SIM_BUS_WAIT);
	set(c, SCI_PCI_USER_FLUSH, 0);
	load(c, 0, 128, &w, 4);
	put32(t, export_at(1, 128), 5);
	CHECK_EQ(load32(c, 128), 5);
	cards_free();
}

TEST(prefetch_stops_short_of_the_end)
{
	struct card *t, *c = prefetch_pair(&t);

	export_make(t, 2, 100, RIGHTS);
	map_entry(c, 0, node_of(t), SCI_PCI_ATT_PREFETCH, 2, 0);
	put32(t, export_at(2, 96), 1234);
	CHECK_EQ(load32(c, 96), 1234);
	CHECK_EQ(csr(c, SCI_PCI_USER_ERRORS), 0);
	CHECK_EQ(load32(c, 100), ONES);
	CHECK_EQ(csr(c, SCI_PCI_USER_ERRORS), 1);
	CHECK_EQ(COUNT(t, REFUSED), 3);
	cards_free();
}

/* The load ends at address 2^64 of the fabric: no cached line contains it. */
TEST(a_load_at_the_end_of_all_addresses_misses_the_cached_lines)
{
	struct card *t, *c = prefetch_pair(&t);
	uint64_t v = 0;

	map_entry(c, 1, 0xffff, SCI_PCI_ATT_PREFETCH, 0xffff, (UINT64_C(1) << 32) - PAGE);
	load32(c, 0);
	load(c, 0, 2 * PAGE - 8, &v, 8);
	CHECK(v == UINT64_MAX);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE), SCI_PCI_ERR_NODE);
	cards_free();
}

/* ---- locks ---- */

static struct card *lock_pair(struct card **t)
{
	struct card *c = pair_up(t);

	map_entry(c, 1, node_of(*t), SCI_PCI_ATT_LOCK, 1, 0);
	return c;
}

TEST(a_lock_adds_one)
{
	struct card *t, *c = lock_pair(&t);

	put32(t, export_at(1, 8), ONES - 1);
	CHECK_EQ(load32(c, PAGE + 8), ONES - 1);
	CHECK_EQ(load32(c, PAGE + 8), ONES);
	CHECK_EQ(load32(c, PAGE + 8), 0);
	CHECK_EQ(get32(t, export_at(1, 8)), 1);
	CHECK_EQ(get32(t, export_at(1, 12)), 0);
	CHECK_EQ(COUNT(c, LOCKS), 3);
	CHECK_EQ(COUNT(c, READS), 0);
	cards_free();
}

TEST(locks_want_four_aligned_bytes_and_both_rights)
{
	struct card *t, *c = lock_pair(&t);
	uint64_t v = 0;

	load(c, 0, PAGE, &v, 8);
	CHECK(v == UINT64_MAX);
	load(c, 0, PAGE + 2, &v, 4);
	load(c, 0, PAGE, &v, 2);
	CHECK_EQ(COUNT(c, ERRORS_ATT), 3);
	store(c, 0, PAGE, &v, 4);
	CHECK_EQ(COUNT(c, ERRORS_ATT), 4);
	export_make(t, 2, 4096, SCI_PCI_EXPORT_READ);
	map_entry(c, 2, node_of(t), SCI_PCI_ATT_LOCK, 2, 0);
	CHECK_EQ(load32(c, 2 * PAGE), ONES);
	export_make(t, 3, 4096, SCI_PCI_EXPORT_WRITE);
	map_entry(c, 2, node_of(t), SCI_PCI_ATT_LOCK, 3, 0);
	CHECK_EQ(load32(c, 2 * PAGE), ONES);
	CHECK_EQ(COUNT(c, ERRORS_PROTECTION), 2);
	CHECK_EQ(get32(t, export_at(1, 0)), 0);
	cards_free();
}

/* Each lock returns a number once, on a link that loses and duplicates packets. */
TEST(locks_happen_exactly_once)
{
	struct card *t, *c = lock_pair(&t);

	world.lose = 150;
	world.twice = 300;
	world.jitter = 3000;
	world.late = 50000;
	set(c, SCI_PCI_TIMEOUT_US, 10);
	for (uint32_t i = 0; i < 3000; i++) {
		uint32_t v = load32(c, PAGE + 8);

		if (csr(c, SCI_PCI_USER_ERRORS))
			FAIL("lock %u timed out", i);
		CHECK_EQ(v, i);
	}
	CHECK_EQ(get32(t, export_at(1, 8)), 3000);
	CHECK(COUNT(t, DUPLICATES) > 100);
	CHECK(COUNT(c, RETRIES) > 100);
	cards_free();
}

/* ---- interrupt maps ---- */

TEST(a_store_to_an_interrupt_map_raises_it)
{
	struct card *t, *c = pair_up(&t);
	uint64_t data = 99;

	map_entry(c, 1, node_of(t), SCI_PCI_ATT_INTERRUPT, 0, 0xabcd1234);
	store(c, 0, PAGE + 3, &data, 1);
	store(c, 0, PAGE + 4, &data, 8);	/* does not gather */
	CHECK_EQ(barrier(c), 0);
	CHECK_EQ(COUNT(c, INTERRUPTS_SENT), 2);
	CHECK_EQ(COUNT(t, INTERRUPTS_RECEIVED), 2);
	for (uint32_t i = 0; i < 2; i++) {
		uint64_t e = AT_RX + i * 128;

		CHECK_EQ(get32(t, e), i + 1);
		CHECK_EQ(get32(t, e + 4), node_of(c) << 16 | 2);
		CHECK_EQ(get32(t, e + 8), 0xabcd1234);
	}
	CHECK_EQ(load32(c, PAGE), ONES);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE), SCI_PCI_ERR_ATT);
	CHECK_EQ(csr(c, SCI_PCI_USER_ERRORS), 1);
	cards_free();
}

/* The value and the place of the store do not add up to an address of another node. */
TEST(an_interrupt_map_may_have_any_value)
{
	struct card *t, *c = pair_up(&t);
	uint32_t v = 0;

	map_entry(c, 1, node_of(t), SCI_PCI_ATT_INTERRUPT, 0xffff, 0xfffffff0);
	store(c, 0, PAGE + 64, &v, 4);
	CHECK_EQ(barrier(c), 0);
	CHECK_EQ(COUNT(t, INTERRUPTS_RECEIVED), 1);
	CHECK_EQ(get32(t, AT_RX + 8), 0xfffffff0);
	cards_free();
}

TEST(an_interrupt_that_finds_no_room_is_an_error)
{
	struct card *t, *c = pair_up(&t);
	uint32_t v = 0;

	map_entry(c, 1, node_of(t), SCI_PCI_ATT_INTERRUPT, 0, 1);
	for (unsigned int i = 0; i < RX_ENTRIES + 3; i++)
		store(c, 0, PAGE, &v, 4);
	CHECK_EQ(barrier(c), 3);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE), SCI_PCI_ERR_BUSY);
	CHECK_EQ(csr(c, SCI_PCI_USER_FATAL), 0);
	CHECK_EQ(COUNT(t, MBOX_BUSY), 3);
	CHECK_EQ(COUNT(t, INTERRUPTS_RECEIVED), RX_ENTRIES);
	cards_free();
}

/* ---- page attributes ---- */

TEST(read_only_pages_are_read)
{
	struct card *t, *c = pair_up(&t);

	map_entry(c, 1, node_of(t), SCI_PCI_ATT_READ_ONLY, 1, 0);
	put32(t, export_at(1, 4), 44);
	CHECK_EQ(load32(c, PAGE + 4), 44);
	store_run(c, 0, PAGE + 4, 4, 4, 1);
	CHECK_EQ(barrier(c), 1);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE), SCI_PCI_ERR_ATT);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_NODE), node_of(t));
	CHECK_EQ(csr64(c, SCI_PCI_ERROR_ADDRESS), UINT64_C(1) << 32 | 4);
	CHECK_EQ(COUNT(c, STORE_BYTES), 0);
	CHECK_EQ(get32(t, export_at(1, 4)), 44);
	cards_free();
}

TEST(pages_begin_on_a_page_below_4_gib)
{
	static const uint64_t bad[] = {
		1, 4096, PAGE / 2, UINT64_C(1) << 32, UINT64_MAX,
		(UINT64_C(1) << 32) + PAGE,
	};
	struct card *t, *c = pair_up(&t);

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		map_entry(c, 1, node_of(t), 0, 1, bad[i]);
		CHECK_EQ(load32(c, PAGE), ONES);
		store_run(c, 0, PAGE, 64, 64, 1);
		CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE), SCI_PCI_ERR_ATT);
		CHECK_EQ(COUNT(c, ERRORS_ATT), 2 * (i + 1));
	}
	CHECK_EQ(c->sent, 0);
	map_entry(c, 1, node_of(t), 0, 1, (UINT64_C(1) << 32) - PAGE);
	CHECK_EQ(load32(c, 2 * PAGE - 4), ONES);
	CHECK_EQ(csr64(c, SCI_PCI_ERROR_ADDRESS), UINT64_C(0x1fffffffc));
	CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE), SCI_PCI_ERR_PROTECTION);
	cards_free();
}

/* ---- loop-back ---- */

TEST(loop_back_needs_no_cable)
{
	struct card *c = card_up(0);

	sim_adapter_link(c->a, false);
	export_make(c, 1, 0x10000, RIGHTS);
	map_entry(c, 0, node_of(c), 0, 1, 0);
	map_entry(c, 1, node_of(c), SCI_PCI_ATT_LOCK, 1, 0);
	map_entry(c, 2, node_of(c), SCI_PCI_ATT_INTERRUPT, 0, 5);
	map_entry(c, 3, node_of(c), 0, 2, 0);
	store_run(c, 0, 0, 0x10000, 64, 1);
	store_run(c, 0, 100, 60, 4, 2);
	CHECK_EQ(barrier(c), 0);
	CHECK(stored(c, 1, 200, 4000, 201));
	CHECK(stored(c, 1, 100, 60, 2));
	CHECK_EQ(load32(c, 100), 0x05040302);
	CHECK_EQ(load32(c, PAGE + 100), 0x05040302);
	CHECK_EQ(load32(c, 100), 0x05040303);
	store_run(c, 0, 2 * PAGE, 4, 4, 0);
	CHECK_EQ(get32(c, AT_RX + 8), 5);
	store_run(c, 0, 3 * PAGE, 64, 64, 0);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE), SCI_PCI_ERR_PROTECTION);
	CHECK_EQ(COUNT(c, REFUSED), 1);
	CHECK_EQ(COUNT(c, ERRORS_PROTECTION), 1);
	CHECK_EQ(c->sent, 0);
	CHECK_EQ(COUNT(c, RECEIVED), COUNT(c, WRITES_16) + COUNT(c, WRITES_64) -
				     1 + COUNT(c, READS) + COUNT(c, LOCKS) + 1);
	cards_free();
}

TEST(no_loopback_means_no_loopback)
{
	struct card *t, *c = pair_up(&t);

	export_make(c, 1, 4096, RIGHTS);
	map_entry(c, 1, node_of(c), SCI_PCI_ATT_NO_LOOPBACK, 1, 0);
	map_entry(c, 2, node_of(t), SCI_PCI_ATT_NO_LOOPBACK, 1, 0);
	store_run(c, 0, PAGE, 64, 64, 1);
	CHECK_EQ(load32(c, PAGE), ONES);
	CHECK_EQ(csr(c, SCI_PCI_USER_ERRORS), 2);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE), SCI_PCI_ERR_ATT);
	store_run(c, 0, 2 * PAGE, 64, 64, 1);
	CHECK_EQ(barrier(c), 2);
	CHECK(stored(t, 1, 0, 64, 1));
	cards_free();
}
