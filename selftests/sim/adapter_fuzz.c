// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Test random actions of drivers, memory and links: a card must not crash, hang or
 * lose count, and must work after a reset.
 */
#include "selftests/sim/adapter.h"
#include "sim/adapter/model.h"

#define STEPS		(TEST_ASAN ? 100000u : 250000u)
#define CALLS_MAX	20000u	/* calls of host functions in one call of the card */

/* ---- invariants ---- */

static unsigned int length(const struct link *list)
{
	unsigned int n = 0;

	for (const struct link *l = list->next; l != list; l = l->next) {
		CHECK(l->next->prev == l);
		CHECK(++n < 1000);
	}
	return n;
}

static unsigned int hashed(struct transaction *const *bucket, bool by_line)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < BUCKETS; i++)
		for (const struct transaction *t = bucket[i]; t;
		     t = by_line ? t->line_next : t->number_next)
			CHECK(++n < 1000);
	return n;
}

static unsigned int outstanding(const struct sim_adapter *a)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < NODES_FAN; i++)
		for (unsigned int j = 0; a->nodes[i] && j < NODES_FAN; j++)
			if (a->nodes[i]->node[j])
				n += length(&a->nodes[i]->node[j]->outstanding);
	return n;
}

static void check_streams(const struct sim_adapter *a)
{
	uint32_t all = (1u << a->config.streams) - 1;
	uint32_t leaving = all & ~a->streams_free & ~a->streams_gather;
	unsigned int waiting = 0;

	CHECK_EQ(a->streams_free & a->streams_gather, 0);
	CHECK_EQ((a->streams_free | a->streams_gather) & ~all, 0);
	for (unsigned int i = 0; i < SIM_INITIATORS; i++) {
		const struct stream *s = a->initiator[i].stream;

		waiting += a->initiator[i].read.state == READ_WAITS;
		if (s)
			CHECK(a->streams_gather >> (s - a->stream) & 1);
	}
	waiting += (unsigned int)__builtin_popcount(leaving);
	CHECK_EQ(length(&a->waiters), waiting);
	CHECK_EQ(length(&a->order),
		 a->stores + (unsigned int)__builtin_popcount(leaving));
}

static void check_transactions(const struct sim_adapter *a)
{
	unsigned int begun = a->config.outstanding -
		(unsigned int)__builtin_popcountll(a->slots_free);
	unsigned int special = SCI_PCI_MBOX_SLOTS + 1 -
		(unsigned int)__builtin_popcountll(a->special_free) -
		(unsigned int)__builtin_popcountll(a->special_wait);

	CHECK_EQ(a->special_free & a->special_wait, 0);
	CHECK_EQ(hashed(a->by_number, false), begun + special);
	CHECK_EQ(outstanding(a), begun + special);
	CHECK(hashed(a->by_line, true) <= begun);
	CHECK(length(&a->own) <= begun + special);
	CHECK(a->stores <= begun);
}

static void check_registers(struct card *c)
{
	int32_t ahead = (int32_t)(csr(c, SCI_PCI_USER_DONE) -
				  c->a->status.ticket);

	CHECK(ahead < 0);
	CHECK(csr(c, SCI_PCI_MBOX_FREE) <= SCI_PCI_MBOX_SLOTS);
	CHECK(csr(c, SCI_PCI_RETRIES) <= SCI_PCI_RETRIES_MAX);
	CHECK_EQ(c->pending, csr(c, SCI_PCI_INT_STATUS) &
			     csr(c, SCI_PCI_INT_MASK));
	CHECK(c->a->rx.tail - c->a->rx.head <= c->a->rx.entries);
	CHECK(c->a->dma.ring.tail - c->a->dma.ring.head <=
	      c->a->dma.ring.entries);
	if (c->a->status.writes && !c->no_write && !c->bus_master_off &&
	    c->a->status.base == AT_STATUS)
		CHECK_EQ(c->a->status.written[3], csr(c, SCI_PCI_USER_DONE));
	CHECK(c->calls < CALLS_MAX);
	c->calls = 0;
}

static void check_all(bool thorough)
{
	for (unsigned int i = 0; i < CARDS; i++) {
		struct card *c = &world.card[i];

		if (!c->a)
			continue;
		check_registers(c);
		check_streams(c->a);
		if (thorough)
			check_transactions(c->a);
	}
}

/* ---- drivers ---- */

static const uint32_t registers[] = {
	SCI_PCI_CONTROL, SCI_PCI_INT_STATUS, SCI_PCI_INT_MASK,
	SCI_PCI_TIMEOUT_US, SCI_PCI_RETRIES, SCI_PCI_GATHER_NS,
	SCI_PCI_RX_BASE, SCI_PCI_RX_BASE + 4, SCI_PCI_RX_ENTRIES,
	SCI_PCI_RX_HEAD, SCI_PCI_STATUS_BASE, SCI_PCI_STATUS_BASE + 4,
	SCI_PCI_EXPORT_BASE, SCI_PCI_EXPORT_BASE + 4, SCI_PCI_EXPORT_ENTRIES,
	SCI_PCI_DMA_BASE, SCI_PCI_DMA_BASE + 4, SCI_PCI_DMA_ENTRIES,
	SCI_PCI_DMA_TAIL, SCI_PCI_DMA_CONTROL, SCI_PCI_USER_FLUSH,
	SCI_PCI_MBOX_DATA, SCI_PCI_MBOX_SEND, SCI_PCI_CMD_NODE,
	SCI_PCI_CMD_ARG, SCI_PCI_CMD,
};

static uint32_t some_node(void)
{
	return below(10) ? 4 * below(CARDS + 2) : below(65536);
}

static uint32_t some_value(void)
{
	switch (below(8)) {
	case 0:
		return (uint32_t)any();
	case 1:
		return 1u << below(32);
	case 2:
		return below(MEMORY / 4096) * 4096;
	case 3:
		return some_node();
	case 4:
		return 0u - below(300);
	default:
		return below(20);
	}
}

static void drive(struct card *c)
{
	uint32_t offset = registers[below(ARRAY_LEN(registers))];

	if (offset == SCI_PCI_CONTROL && below(20))
		return;
	switch (below(6)) {
	case 0:
		csr(c, below(SCI_PCI_CSR_SIZE + 64));
		break;
	case 1:
		csr(c, SCI_PCI_USER_ERRORS + 4 * below(8));
		break;
	case 2:			/* tail and head close to the card's own */
		set(c, SCI_PCI_DMA_TAIL, csr(c, SCI_PCI_DMA_HEAD) + below(10));
		set(c, SCI_PCI_RX_HEAD, c->a->rx.tail - below(3));
		break;
	case 3:
		set(c, below(SCI_PCI_CSR_SIZE), some_value());
		break;
	default:
		set(c, offset, some_value());
	}
}

static void map_some(struct card *c)
{
	uint16_t attr = (uint16_t)any();

	if (below(3)) {
		map_entry(c, below(8), (uint16_t)some_node(),
			  below(2) ? 0 : attr, (uint16_t)below(8),
			  below(4) ? 0 : some_value());
		return;
	}
	sim_att_write(c->a, below(8 * 16 + 20), some_value());
	sim_att_read(c->a, (uint32_t)any());
}

static void scribble(struct card *c)
{
	uint64_t at = below(2) ? AT_DMA + below(64) * 8 :
				 AT_EXPORTS + below(256) * 8;

	switch (below(4)) {
	case 0:
		put64(c, at, any());
		break;
	case 1:
		put64(c, AT_LEAVES + below(8) * 4096 + below(16) * 8,
		      (uint64_t)some_value() << below(12));
		break;
	case 2:			/* a descriptor that is valid, or nearly */
		at = AT_DMA + below(DMA_ENTRIES) * SCI_PCI_DESC_SIZE;
		put64(c, at, AT_LOCAL + below(0x10000));
		put64(c, at + 8, (uint64_t)below(8) << 32 | below(0x10000));
		put32(c, at + 16, 1 + below(0x8000));
		put32(c, at + 20, some_node() | below(8) << 16);
		break;
	default:
		export_make(c, (uint16_t)below(8), below(0x10001), RIGHTS);
	}
}

static void access_window(struct card *c)
{
	uint64_t data[8] = { any() };
	uint64_t offset = below(8) * PAGE + below(512);
	size_t len = 1 + below(64);

	if (!below(50))
		offset = any();
	if (below(4)) {
		uint32_t mask = c->config.stream_size - 1;

		if (below(2)) {	/* whole lines fill slots */
			offset &= ~(uint64_t)63;
			len = 64;
		}
		if ((offset & mask) + len > mask + 1 && below(100))
			len = mask + 1 - (offset & mask);
		if (len > 64)
			len = 64;
		sim_window_write(c->a, below(70), offset, data, len);
		return;
	}
	sim_window_read(c->a, below(4), offset, data, 1 + below(8));
}

/* ---- links ---- */

static void receive_some(struct card *c)
{
	const struct card *from = &world.card[below(CARDS)];
	struct sim_packet p;
	uint8_t *bytes = (uint8_t *)&p;

	for (size_t i = 0; i < sizeof(p); i++)
		bytes[i] = (uint8_t)any();
	if (from->a && below(4))
		p = from->last;
	p.target = below(10) ? node_of(c) : p.target;
	p.source = (uint16_t)(below(4) ? some_node() : p.source);
	for (unsigned int i = below(3); i; i--)
		bytes[below(PACKET_HEADER)] = (uint8_t)any();
	if (below(2))
		p.number = p.floor + below(300);
	if (below(2))
		p.epoch = 100 + below(4);
	if (below(2))
		p.size = (uint16_t)(PACKET_HEADER + below(140));
	if (p.size > sizeof(p))
		p.size = sizeof(p);
	p.crc = packet_crc(&p) + !below(10);
	if (below(8))
		sim_adapter_receive(c->a, &p, below(20) ? p.size : below(176));
	else
		sim_adapter_no_node(c->a, &p, p.size);
}

static void link_some(struct card *c)
{
	sim_adapter_link(c->a, below(3));
	if (!below(4))
		c->bus_master_off = !c->bus_master_off;
	if (!below(4))
		c->no_write = below(2) ? below(MEMORY) : 0;
}

static void revive(struct card *c)
{
	c->bus_master_off = false;
	c->no_write = 0;
	if (below(2))
		sim_adapter_reset(c->a, 0);
	else
		set(c, SCI_PCI_CONTROL, SCI_PCI_CONTROL_RESET);
	card_start(c);
	export_make(c, 1, 0x10000, RIGHTS);
}

static void fuzz_step(struct card *c)
{
	switch (below(100)) {
	case 0:
		link_some(c);
		break;
	case 1:
		if (!below(3))
			revive(c);
		break;
	case 2 ... 9:
		map_some(c);
		break;
	case 10 ... 19:
		drive(c);
		break;
	case 20 ... 29:
		scribble(c);
		break;
	case 30 ... 44:
		receive_some(c);
		break;
	case 45 ... 49:
		sim_adapter_timer(c->a);
		break;
	case 50:
		sim_adapter_invalidated(c->a, (uint16_t)below(8));
		sim_adapter_unreachable(c->a, (uint32_t)below(8));
		break;
	case 51 ... 74:
		world_step();
		break;
	default:
		access_window(c);
	}
}

static void fuzz(uint64_t seed, uint32_t outstanding_max, uint32_t stream_size)
{
	struct sim_config config = sim_config_default;

	world.random = seed;
	world.jitter = 5000;
	world.lose = 50;
	world.twice = 50;
	world.spoil = 20;
	world.flap = 20;
	world.late = 50000;
	config.outstanding = outstanding_max;
	config.streams = stream_size / 8;
	config.stream_size = stream_size;
	for (unsigned int i = 0; i < CARDS; i++) {
		config.direct = i == CARDS - 1;
		card_start(card_new(i, &config));
		export_make(&world.card[i], 1, 0x10000, RIGHTS);
	}
	for (unsigned int i = 0; i < STEPS; i++) {
		fuzz_step(&world.card[below(CARDS)]);
		check_all(i % 16 == 0);
	}
}

/* Reset all cards after the fuzzing, and check that they work. */
static void check_works(void)
{
	struct card *c = &world.card[0], *t = &world.card[1];

	world.lose = world.twice = world.spoil = world.flap = 0;
	for (unsigned int i = 0; i < CARDS; i++) {
		world.card[i].bus_master_off = false;
		world.card[i].no_write = 0;
		set(&world.card[i], SCI_PCI_CONTROL, SCI_PCI_CONTROL_RESET);
	}
	world_settle();
	check_all(true);
	card_start(t);
	/* forged packets may have used higher epochs than a new card would use */
	sim_adapter_reset(c->a, UINT64_MAX);
	card_start(c);
	export_make(t, 1, 0x10000, RIGHTS);
	map_entry(c, 0, node_of(t), 0, 1, 0);
	store_run(c, 0, 0, 4096, 8, 3);
	CHECK_EQ(barrier(c), 0);
	CHECK(stored(t, 1, 0, 4096, 3));
	CHECK_EQ(load32(c, 0), 0x06050403);
	cards_free();
}

TEST(fuzz_1)
{
	fuzz(1, 64, 64);
	check_works();
}

TEST(fuzz_2)
{
	fuzz(2, 64, 128);
	check_works();
}

TEST(fuzz_3)
{
	fuzz(3, 2, 64);
	check_works();
}

TEST(fuzz_4)
{
	fuzz(4, 1, 128);
	check_works();
}

/* Memory stays within bounds for requests from every source. */
TEST(sources_are_bounded)
{
	struct card *t = card_up(0);

	export_make(t, 1, 0x10000, RIGHTS);
	for (uint32_t i = 0; i < 200000; i++) {
		struct sim_packet p = {
			.kind = PACKET_LOCK,
			.size = PACKET_HEADER,
			.source = (uint16_t)any(),
			.target = node_of(t),
			.epoch = any(),
			.number = i,
			.floor = i,
			.address = UINT64_C(1) << 32,
		};

		p.crc = packet_crc(&p);
		sim_adapter_receive(t->a, &p, p.size);
		world.flights = 0;
	}
	CHECK(COUNT(t, RECEIVED) > 20000);
	cards_free();
}
