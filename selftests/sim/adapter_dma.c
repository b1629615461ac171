// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test the DMA engine of the simulated card. */
#include "selftests/sim/adapter.h"

#define IRQ	SCI_PCI_DESC_IRQ
#define CHAIN	SCI_PCI_DESC_CHAIN
#define PULL	SCI_PCI_DESC_PULL

static uint64_t desc_at(uint32_t i)
{
	return AT_DMA + i % DMA_ENTRIES * SCI_PCI_DESC_SIZE;
}

static void desc(struct card *c, uint32_t i, uint64_t local, uint16_t id,
		 uint32_t offset, uint32_t length, uint16_t node,
		 uint16_t flags)
{
	uint64_t d = desc_at(i);

	memset(c->memory + d, 0, SCI_PCI_DESC_SIZE);
	put64(c, d + SCI_PCI_DESC_LOCAL, local);
	put64(c, d + SCI_PCI_DESC_REMOTE, (uint64_t)id << 32 | offset);
	put32(c, d + SCI_PCI_DESC_LENGTH, length);
	put16(c, d + SCI_PCI_DESC_NODE, node);
	put16(c, d + SCI_PCI_DESC_FLAGS, flags);
}

static uint32_t status_of(struct card *c, uint32_t i)
{
	return get32(c, desc_at(i) + SCI_PCI_DESC_STATUS);
}

static uint32_t done_of(struct card *c, uint32_t i)
{
	return get32(c, desc_at(i) + SCI_PCI_DESC_DONE);
}

static void ring_to(struct card *c, uint32_t tail)
{
	set(c, SCI_PCI_DMA_TAIL, tail);
	while (csr(c, SCI_PCI_STATUS) & SCI_PCI_STATUS_DMA_BUSY)
		CHECK(world_step());
}

static void fill(struct card *c, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		c->memory[AT_LOCAL + i] = (uint8_t)(i * 7 + 1);
}

static bool same(struct card *c, uint32_t local, struct card *t, uint16_t id,
		 uint32_t offset, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		if (c->memory[AT_LOCAL + local + i] !=
		    t->memory[export_at(id, offset + i)])
			return false;
	return true;
}

TEST(push_and_pull)
{
	struct card *t, *c = pair_up(&t);

	fill(c, 0x10000);
	set(c, SCI_PCI_INT_STATUS, SCI_PCI_INT_ALL);
	desc(c, 0, AT_LOCAL, 1, 0, 0x8000, node_of(t), 0);
	set(c, SCI_PCI_DMA_TAIL, 1);
	CHECK_EQ(csr(c, SCI_PCI_STATUS),
		 SCI_PCI_STATUS_LINK_UP | SCI_PCI_STATUS_OUTSTANDING |
		 SCI_PCI_STATUS_DMA_BUSY);
	CHECK_EQ(c->sent, 64);
	CHECK_EQ(csr(c, SCI_PCI_USER_CHECK), 0);	/* DMA is no store */
	ring_to(c, 1);
	CHECK_EQ(status_of(c, 0), SCI_PCI_DESC_OK);
	CHECK_EQ(done_of(c, 0), 0x8000);
	CHECK_EQ(csr(c, SCI_PCI_DMA_HEAD), 1);
	CHECK(same(c, 0, t, 1, 0, 0x8000));
	CHECK_EQ(csr(c, SCI_PCI_INT_STATUS), 0);	/* no IRQ flag */
	CHECK_EQ(COUNT(c, DMA_WRITES), 0x8000 / 64);
	CHECK_EQ(COUNT(c, DMA_BYTES), 0x8000);

	desc(c, 1, AT_LOCAL + 0x10000, 1, 0, 0x8000, node_of(t), PULL | IRQ);
	ring_to(c, 2);
	CHECK_EQ(status_of(c, 1), SCI_PCI_DESC_OK);
	CHECK(same(c, 0x10000, t, 1, 0, 0x8000));
	CHECK_EQ(csr(c, SCI_PCI_INT_STATUS), SCI_PCI_INT_DMA);
	CHECK_EQ(COUNT(c, DMA_READS), 0x8000 / 64);
	CHECK_EQ(COUNT(c, DMA_BYTES), 0x10000);
	CHECK_EQ(COUNT(c, WRITES_64) + COUNT(c, READS), 0);
	cards_free();
}

TEST(any_alignment_and_length)
{
	struct card *t, *c = pair_up(&t);

	for (uint32_t i = 0; i < 600; i++) {
		uint32_t local = below(9000), offset = below(9000);
		uint32_t len = 1 + below(i % 2 ? 200 : 9000);
		uint16_t flags = i & 4 ? PULL : 0;

		memset(t->memory + AT_DATA, (int)i, 0x80000);
		fill(c, 0x10000);
		desc(c, i, AT_LOCAL + local, 1, offset, len, node_of(t),
		     flags);
		ring_to(c, i + 1);
		CHECK_EQ(status_of(c, i), SCI_PCI_DESC_OK);
		CHECK_EQ(done_of(c, i), len);
		CHECK(same(c, local, t, 1, offset, len));
		CHECK_EQ(t->memory[export_at(1, offset + len)], (uint8_t)i);
		if (offset)
			CHECK_EQ(t->memory[export_at(1, offset - 1)],
				 (uint8_t)i);
		CHECK_EQ(c->memory[AT_LOCAL + local + len],
			 (uint8_t)((local + len) * 7 + 1));
	}
	CHECK_EQ(csr(c, SCI_PCI_DMA_HEAD), 600);	/* the ring has wrapped */
	CHECK_EQ(c->crossed + t->crossed, 0);
	CHECK_EQ(csr(c, SCI_PCI_USER_ERRORS), 0);
	cards_free();
}

TEST(dma_survives_a_bad_link)
{
	struct card *t, *c = pair_up(&t);

	world.lose = 100;
	world.twice = 200;
	world.spoil = 50;
	world.jitter = 10000;
	world.late = 100000;
	set(c, SCI_PCI_TIMEOUT_US, 30);
	set(c, SCI_PCI_RETRIES, 7);
	for (uint32_t i = 0; i < 10; i++) {
		fill(c, 0x8000);
		c->memory[AT_LOCAL] = (uint8_t)i;
		desc(c, i, AT_LOCAL + (i & 3), 1, i * 5, 0x4000, node_of(t), 0);
		ring_to(c, i + 1);
		CHECK_EQ(status_of(c, i), SCI_PCI_DESC_OK);
		CHECK(same(c, i & 3, t, 1, i * 5, 0x4000));
	}
	CHECK(COUNT(c, RETRIES) > 100);
	CHECK(COUNT(t, CRC_ERRORS) > 10);
	cards_free();
}

TEST(dma_to_the_own_node_does_not_hold_the_caller)
{
	struct card *c = card_up(0);
	unsigned int calls = 0;

	export_make(c, 1, 0x10000, RIGHTS);
	fill(c, 0x10000);
	for (uint32_t i = 0; i < DMA_ENTRIES; i++)
		desc(c, i, AT_LOCAL, 1, 0, 0x10000, node_of(c), 0);
	set(c, SCI_PCI_DMA_TAIL, DMA_ENTRIES);
	CHECK(csr(c, SCI_PCI_STATUS) & SCI_PCI_STATUS_DMA_BUSY);
	while (csr(c, SCI_PCI_STATUS) & SCI_PCI_STATUS_DMA_BUSY) {
		CHECK(sim_adapter_deadline(c->a) <= world.now);
		calls++;
		c->deadlines = 0;
		sim_adapter_timer(c->a);
		CHECK(c->deadlines || !timer_first());
	}
	CHECK(calls > 10 && calls < 1000);
	CHECK(same(c, 0, c, 1, 0, 0x10000));
	CHECK_EQ(COUNT(c, DMA_BYTES), DMA_ENTRIES * 0x10000);
	CHECK_EQ(c->sent, 0);
	cards_free();
}

TEST(disabling_ends_dma_to_the_own_node)
{
	struct card *c = card_up(0);
	uint64_t received;

	export_make(c, 1, 0x10000, RIGHTS);
	desc(c, 0, AT_LOCAL, 1, 0, 0x10000, node_of(c), 0);
	set(c, SCI_PCI_DMA_TAIL, 1);
	CHECK(csr(c, SCI_PCI_STATUS) & SCI_PCI_STATUS_OUTSTANDING);
	received = COUNT(c, RECEIVED);
	set(c, SCI_PCI_CONTROL, 0);
	CHECK_EQ(csr(c, SCI_PCI_STATUS), 0);
	CHECK_EQ(COUNT(c, RECEIVED), received);
	CHECK_EQ(status_of(c, 0), SCI_PCI_DESC_FAILED + SCI_PCI_ERR_LINK);
	CHECK(same(c, 0, c, 1, 0, done_of(c, 0)));
	cards_free();
}

/* ---- errors and aborts ---- */

TEST(an_error_says_how_far_it_came)
{
	struct card *t, *c = pair_up(&t);

	export_make(t, 2, 5000, RIGHTS);
	fill(c, 0x10000);
	desc(c, 0, AT_LOCAL, 2, 0, 0x8000, node_of(t), 0);
	ring_to(c, 1);
	CHECK_EQ(status_of(c, 0), SCI_PCI_DESC_FAILED + SCI_PCI_ERR_PROTECTION);
	CHECK_EQ(done_of(c, 0), 5000 / 64 * 64);
	CHECK(same(c, 0, t, 2, 0, done_of(c, 0)));
	CHECK_EQ(csr(c, SCI_PCI_INT_STATUS) & SCI_PCI_INT_DMA,
		 SCI_PCI_INT_DMA);
	CHECK_EQ(COUNT(c, DMA_ERRORS), 1);
	CHECK_EQ(csr(c, SCI_PCI_USER_ERRORS), 1);	/* for the whole transfer */
	CHECK_EQ(csr(c, SCI_PCI_USER_FATAL), 1);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE), SCI_PCI_ERR_PROTECTION);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_NODE), node_of(t));
	CHECK_EQ(csr64(c, SCI_PCI_ERROR_ADDRESS),
		 (UINT64_C(2) << 32) + done_of(c, 0));
	cards_free();
}

TEST(dma_fails_with_its_code)
{
	struct card *t, *c = pair_up(&t);

	desc(c, 0, AT_LOCAL, 1, 0, 100, 16, 0);
	desc(c, 1, MEMORY - 64, 1, 0, 128, node_of(t), 0);
	desc(c, 2, MEMORY - 64, 1, 0, 128, node_of(t), PULL);
	desc(c, 3, UINT64_MAX - 10, 1, 0, 128, node_of(t), 0);
	desc(c, 4, AT_LOCAL, 1, UINT32_MAX - 10, 12, node_of(t), 0);
	desc(c, 5, AT_LOCAL, 1, 0, 64, 7, 0);
	put64(c, desc_at(6), AT_LOCAL);
	put64(c, desc_at(6) + 8, UINT64_C(1) << 48);
	put32(c, desc_at(6) + 16, 64);
	put16(c, desc_at(6) + 20, node_of(t));
	ring_to(c, 7);
	CHECK_EQ(status_of(c, 0), SCI_PCI_DESC_FAILED + SCI_PCI_ERR_NODE);
	CHECK_EQ(done_of(c, 0), 0);
	CHECK_EQ(status_of(c, 1), SCI_PCI_DESC_FAILED + SCI_PCI_ERR_BUS);
	CHECK_EQ(done_of(c, 1), 64);
	CHECK_EQ(status_of(c, 2), SCI_PCI_DESC_FAILED + SCI_PCI_ERR_BUS);
	CHECK_EQ(done_of(c, 2), 64);
	CHECK_EQ(status_of(c, 3), SCI_PCI_DESC_FAILED + SCI_PCI_ERR_BUS);
	CHECK_EQ(status_of(c, 4), SCI_PCI_DESC_FAILED + SCI_PCI_ERR_PROTECTION);
	CHECK_EQ(status_of(c, 5), SCI_PCI_DESC_FAILED + SCI_PCI_ERR_NODE);
	CHECK_EQ(status_of(c, 6), SCI_PCI_DESC_FAILED + SCI_PCI_ERR_PROTECTION);
	CHECK_EQ(COUNT(c, DMA_ERRORS), 7);
	world.cut = true;
	desc(c, 7, AT_LOCAL, 1, 0, 64, node_of(t), PULL);
	ring_to(c, 8);
	CHECK_EQ(status_of(c, 7), SCI_PCI_DESC_FAILED + SCI_PCI_ERR_TIMEOUT);
	sim_adapter_link(c->a, false);
	desc(c, 8, AT_LOCAL, 1, 0, 64, node_of(t), PULL);
	ring_to(c, 9);
	CHECK_EQ(status_of(c, 8), SCI_PCI_DESC_FAILED + SCI_PCI_ERR_LINK);
	cards_free();
}

TEST(a_link_that_goes_down_ends_dma)
{
	struct card *t, *c = pair_up(&t);

	desc(c, 0, AT_LOCAL, 1, 0, 0x8000, node_of(t), CHAIN);
	desc(c, 1, AT_LOCAL, 1, 0, 0x8000, node_of(t), 0);
	desc(c, 2, AT_LOCAL, 1, 0, 0x8000, node_of(t), 0);
	set(c, SCI_PCI_DMA_TAIL, 3);
	world_pass(2500);
	sim_adapter_link(c->a, false);
	CHECK_EQ(csr(c, SCI_PCI_DMA_HEAD), 3);
	CHECK_EQ(status_of(c, 0), SCI_PCI_DESC_FAILED + SCI_PCI_ERR_LINK);
	CHECK_EQ(done_of(c, 0), 64 * 64);
	CHECK_EQ(status_of(c, 1), SCI_PCI_DESC_FAILED + SCI_PCI_ERR_ABORTED);
	CHECK_EQ(status_of(c, 2), SCI_PCI_DESC_FAILED + SCI_PCI_ERR_LINK);
	CHECK_EQ(csr(c, SCI_PCI_USER_ERRORS), 2);
	cards_free();
}

TEST(an_error_aborts_the_rest_of_its_chain)
{
	struct card *t, *c = pair_up(&t);

	desc(c, 0, AT_LOCAL, 1, 0, 64, node_of(t), CHAIN);
	desc(c, 1, AT_LOCAL, 9, 0, 64, node_of(t), CHAIN);	/* no such export */
	desc(c, 2, AT_LOCAL, 1, 0, 64, node_of(t), CHAIN);
	ring_to(c, 3);
	CHECK_EQ(status_of(c, 0), SCI_PCI_DESC_OK);
	CHECK_EQ(status_of(c, 1), SCI_PCI_DESC_FAILED + SCI_PCI_ERR_PROTECTION);
	CHECK_EQ(status_of(c, 2), SCI_PCI_DESC_FAILED + SCI_PCI_ERR_ABORTED);
	CHECK_EQ(done_of(c, 2), 0);
	/* the engine goes on with descriptors behind the old tail */
	desc(c, 3, AT_LOCAL, 1, 0, 64, node_of(t), 0);
	desc(c, 4, AT_LOCAL, 1, 0, 64, node_of(t), 0);
	ring_to(c, 5);
	CHECK_EQ(status_of(c, 3), SCI_PCI_DESC_FAILED + SCI_PCI_ERR_ABORTED);
	CHECK_EQ(status_of(c, 4), SCI_PCI_DESC_OK);
	CHECK_EQ(csr(c, SCI_PCI_USER_ERRORS), 1);
	CHECK_EQ(COUNT(c, DMA_ERRORS), 3);
	cards_free();
}

TEST(abort_ends_what_was_handed_over)
{
	struct card *t, *c = pair_up(&t);

	fill(c, 0x10000);
	for (uint32_t i = 0; i < 4; i++)
		desc(c, i, AT_LOCAL, 1, 0, 0x8000, node_of(t), 0);
	set(c, SCI_PCI_DMA_TAIL, 3);
	world_pass(2500);
	CHECK_EQ(c->sent, 128);
	set(c, SCI_PCI_DMA_CONTROL, SCI_PCI_DMA_ABORT);
	CHECK(csr(c, SCI_PCI_STATUS) & SCI_PCI_STATUS_DMA_BUSY);
	CHECK_EQ(status_of(c, 0), 0);		/* not before all responses */
	ring_to(c, 4);
	CHECK_EQ(status_of(c, 0), SCI_PCI_DESC_FAILED + SCI_PCI_ERR_ABORTED);
	CHECK_EQ(done_of(c, 0), 128 * 64);
	CHECK(same(c, 0, t, 1, 0, 128 * 64));
	for (uint32_t i = 1; i < 3; i++) {
		CHECK_EQ(status_of(c, i),
			 SCI_PCI_DESC_FAILED + SCI_PCI_ERR_ABORTED);
		CHECK_EQ(done_of(c, i), 0);
	}
	CHECK_EQ(status_of(c, 3), SCI_PCI_DESC_OK);
	CHECK_EQ(csr(c, SCI_PCI_USER_ERRORS), 0);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE), 0);
	set(c, SCI_PCI_DMA_CONTROL, SCI_PCI_DMA_ABORT);	/* no descriptor is pending */
	desc(c, 4, AT_LOCAL, 1, 0, 64, node_of(t), 0);
	ring_to(c, 5);
	CHECK_EQ(status_of(c, 4), SCI_PCI_DESC_OK);
	cards_free();
}

TEST(a_bad_length_stops_the_engine)
{
	static const uint32_t bad[] = { 0, (1 << 20) + 1, UINT32_MAX };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct card *t, *c = pair_up(&t);

		desc(c, 0, AT_LOCAL, 1, 0, bad[i], node_of(t), 0);
		desc(c, 1, AT_LOCAL, 1, 0, 64, node_of(t), 0);
		ring_to(c, 2);
		CHECK_EQ(status_of(c, 0),
			 SCI_PCI_DESC_FAILED + SCI_PCI_ERR_DRIVER);
		CHECK_EQ(status_of(c, 1), 0);
		CHECK_EQ(csr(c, SCI_PCI_DMA_HEAD), 1);
		CHECK(csr(c, SCI_PCI_STATUS) & SCI_PCI_STATUS_STOPPED);
		CHECK_EQ(csr(c, SCI_PCI_USER_FATAL), 1);
		CHECK_EQ(csr(c, SCI_PCI_USER_ERRORS), 0);
		cards_free();
	}
}

TEST(the_largest_length_works)
{
	struct sim_config config = sim_config_default;
	struct card *c, *t = card_up(1);

	config.dma_max = 4096;
	c = card_new(0, &config);
	card_start(c);
	export_make(t, 1, 0x10000, RIGHTS);
	desc(c, 0, AT_LOCAL, 1, 0, 4096, node_of(t), 0);
	desc(c, 1, AT_LOCAL, 1, 0, 4097, node_of(t), 0);
	ring_to(c, 2);
	CHECK_EQ(status_of(c, 0), SCI_PCI_DESC_OK);
	CHECK_EQ(status_of(c, 1), SCI_PCI_DESC_FAILED + SCI_PCI_ERR_DRIVER);
	cards_free();
}

TEST(packets_of_128_bytes)
{
	struct card *c = card_new(0, &sim_config_default), *t = card_up(1);

	card_start(c);
	export_make(t, 1, 0x10000, RIGHTS);
	fill(c, 0x10000);
	desc(c, 0, AT_LOCAL, 1, 0, 0x8000, node_of(t), 0);
	desc(c, 1, AT_LOCAL + 1000, 1, 9, 4000, node_of(t), 0);
	ring_to(c, 1);
	CHECK_EQ(COUNT(c, DMA_WRITES), 0x8000 / 128);
	CHECK(same(c, 0, t, 1, 0, 0x8000));
	ring_to(c, 2);
	CHECK(same(c, 1000, t, 1, 9, 4000));
	cards_free();
}

TEST(a_ring_that_is_not_there)
{
	struct card *t, *c = pair_up(&t);

	set(c, SCI_PCI_DMA_ENTRIES, 0);
	set64(c, SCI_PCI_DMA_BASE, MEMORY);
	set(c, SCI_PCI_DMA_ENTRIES, 4096);
	set(c, SCI_PCI_DMA_TAIL, 4096);
	while (csr(c, SCI_PCI_STATUS) & SCI_PCI_STATUS_DMA_BUSY)
		CHECK(world_step());
	CHECK_EQ(csr(c, SCI_PCI_DMA_HEAD), 4096);
	CHECK_EQ(COUNT(c, DMA_ERRORS), 4096);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE), SCI_PCI_ERR_BUS);
	set(c, SCI_PCI_DMA_ENTRIES, 0);
	set64(c, SCI_PCI_DMA_BASE, AT_DMA);
	set(c, SCI_PCI_DMA_ENTRIES, DMA_ENTRIES);
	desc(c, 0, AT_LOCAL, 1, 0, 64, node_of(t), 0);
	ring_to(c, 1);
	CHECK_EQ(status_of(c, 0), SCI_PCI_DESC_OK);
	cards_free();
}

TEST(what_was_handed_over_is_not_taken_back)
{
	struct card *t, *c = pair_up(&t);

	desc(c, 0, AT_LOCAL, 1, 0, 64, node_of(t), 0);
	set(c, SCI_PCI_DMA_TAIL, 1);
	set(c, SCI_PCI_DMA_TAIL, 1);
	CHECK_EQ(csr(c, SCI_PCI_STATUS) & SCI_PCI_STATUS_STOPPED, 0);
	set(c, SCI_PCI_DMA_TAIL, 0);
	CHECK_EQ(csr(c, SCI_PCI_STATUS) &
		 (SCI_PCI_STATUS_STOPPED | SCI_PCI_STATUS_DMA_BUSY),
		 SCI_PCI_STATUS_STOPPED);
	world_settle();
	CHECK_EQ(csr(c, SCI_PCI_DMA_HEAD), 0);
	CHECK_EQ(status_of(c, 0), 0);
	cards_free();
}

/* Responses to requests of an old ring must not reach the new ring's memory. */
TEST(a_new_ring_forgets_the_old_one)
{
	struct card *t, *c = pair_up(&t);

	memset(t->memory + AT_DATA, 0x77, 0x80000);
	desc(c, 0, AT_LOCAL, 1, 0, 0x1000, node_of(t), PULL);
	set(c, SCI_PCI_DMA_TAIL, 1);
	set(c, SCI_PCI_DMA_ENTRIES, DMA_ENTRIES);
	CHECK_EQ(csr(c, SCI_PCI_STATUS) & SCI_PCI_STATUS_DMA_BUSY, 0);
	CHECK_EQ(csr(c, SCI_PCI_DMA_TAIL), 0);
	desc(c, 0, AT_LOCAL + 0x2000, 1, 0x800, 0x100, node_of(t), PULL);
	ring_to(c, 1);
	world_settle();
	CHECK_EQ(status_of(c, 0), SCI_PCI_DESC_OK);
	CHECK_EQ(get32(c, AT_LOCAL), 0);
	CHECK_EQ(get32(c, AT_LOCAL + 0x2000), 0x77777777);
	CHECK_EQ(get32(c, AT_LOCAL + 0x2100), 0);
	CHECK_EQ(COUNT(c, DMA_BYTES), 0x100);
	cards_free();
}

TEST(a_status_that_cannot_be_written)
{
	struct card *t, *c = pair_up(&t);

	desc(c, 0, AT_LOCAL, 1, 0, 64, node_of(t), 0);
	c->no_write = AT_DMA;
	ring_to(c, 1);
	CHECK_EQ(csr(c, SCI_PCI_DMA_HEAD), 1);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE), SCI_PCI_ERR_BUS);
	CHECK_EQ(csr(c, SCI_PCI_USER_FATAL), 1);
	cards_free();
}

/* Stores have priority over DMA. */
TEST(dma_leaves_room_for_stores)
{
	struct card *t, *c = pair_up(&t);
	uint64_t begin;

	for (uint32_t i = 0; i < 7; i++)
		desc(c, i, AT_LOCAL, 1, 0x4000, 0xc000, node_of(t), 0);
	set(c, SCI_PCI_DMA_TAIL, 7);
	world_pass(10500);
	begin = world.now;
	store_run(c, 0, 0, 512, 64, 1);
	CHECK_EQ(barrier(c), 0);
	CHECK(world.now - begin < 5 * world.delay);
	CHECK(csr(c, SCI_PCI_STATUS) & SCI_PCI_STATUS_DMA_BUSY);
	CHECK(stored(t, 1, 0, 512, 1));
	ring_to(c, 7);
	cards_free();
}
