// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test every register of the card: value after reset, kind of access, limits. */
#include "selftests/sim/adapter.h"

#define ONES	UINT32_MAX

/* A register, its value after reset, and its value after writing all ones. */
struct reg {
	uint32_t offset;
	uint32_t reset;
	uint32_t ones;		/* value after writing ONES */
};

#define RO(offset, value)	{ offset, value, value }

static const struct reg regs[] = {
	RO(SCI_PCI_ID, 0x31494353),
	RO(SCI_PCI_VERSION, 0x00010000),
	RO(SCI_PCI_FEATURES, SCI_PCI_FEAT_PREFETCH | SCI_PCI_FEAT_LOCK |
			     SCI_PCI_FEAT_INTERRUPT_MAPS),
	RO(SCI_PCI_ATT_ENTRIES, 8192),
	RO(SCI_PCI_ATT_PAGE_SIZE, 65536),
	RO(SCI_PCI_STREAMS, 8 | 64 << 8),
	RO(SCI_PCI_OUTSTANDING_MAX, 64),
	RO(SCI_PCI_EXPORTS_MAX, 1024),
	RO(SCI_PCI_DMA_MAX, 1 << 20),
	RO(SCI_PCI_NODE_ID, 4),
	RO(SCI_PCI_SERIAL, 4),
	RO(SCI_PCI_SERIAL + 4, 0),
	RO(SCI_PCI_STATUS, 0),
	RO(SCI_PCI_INT_STATUS, 0),
	{ SCI_PCI_INT_MASK, 0, SCI_PCI_INT_ALL },
	{ SCI_PCI_TIMEOUT_US, 20000, ONES },
	{ SCI_PCI_RETRIES, 5, SCI_PCI_RETRIES_MAX },
	{ SCI_PCI_GATHER_NS, 10000, ONES },
	{ 0x04c, 0, 0 },
	{ SCI_PCI_RX_BASE, 0, 0 },
	{ SCI_PCI_STATUS_BASE, 0, 0 },
	{ SCI_PCI_EXPORT_BASE, 0, 0 },
	{ 0x074, 0, 0 },
	{ 0x078, 0, 0 },
	{ SCI_PCI_DMA_BASE, 0, 0 },
	RO(SCI_PCI_DMA_HEAD, 0),
	RO(SCI_PCI_DMA_CONTROL, 0),
	RO(SCI_PCI_ERROR_CODE, 0),
	RO(SCI_PCI_ERROR_NODE, 0),
	RO(SCI_PCI_ERROR_ADDRESS, 0),
	RO(SCI_PCI_ERROR_ADDRESS + 4, 0),
	{ 0x0b0, 0, 0 },
	RO(SCI_PCI_COUNTERS, 0),
	RO(SCI_PCI_COUNTERS + 8 * SCI_PCI_COUNTERS_COUNT, 0),
	RO(SCI_PCI_USER_ERRORS, 0),
	RO(SCI_PCI_USER_DOWN, 1),
	RO(SCI_PCI_USER_FATAL, 0),
	RO(SCI_PCI_USER_DONE, 0),
	{ 0x101c, 0, 0 },
	{ SCI_PCI_MBOX_DATA, 0, ONES },
	{ SCI_PCI_MBOX_DATA + 60, 0, ONES },
	RO(SCI_PCI_MBOX_FREE, 32),
	{ SCI_PCI_CMD_NODE, 0, ONES },
	{ SCI_PCI_CMD_ARG, 0, ONES },
	RO(SCI_PCI_CMD_STATUS, 0),
	RO(SCI_PCI_CMD_RESULT, 0),
	{ 0x7ffc, 0, 0 },
};

static void check_reset(struct card *c)
{
	for (size_t i = 0; i < ARRAY_LEN(regs); i++)
		if (csr(c, regs[i].offset) != regs[i].reset)
			FAIL("%#x reads %#x after reset", regs[i].offset,
			     csr(c, regs[i].offset));
	CHECK_EQ(csr(c, SCI_PCI_CONTROL), 0);
	CHECK_EQ(csr(c, SCI_PCI_RX_ENTRIES), 0);
	CHECK_EQ(csr(c, SCI_PCI_RX_HEAD), 0);
	CHECK_EQ(csr(c, SCI_PCI_EXPORT_ENTRIES), 0);
	CHECK_EQ(csr(c, SCI_PCI_DMA_ENTRIES), 0);
	CHECK_EQ(csr(c, SCI_PCI_DMA_TAIL), 0);
	for (unsigned int i = 0; i < SCI_PCI_COUNTERS_COUNT; i++)
		CHECK_EQ(csr64(c, SCI_PCI_COUNTERS + 8 * i), 0);
}

TEST(registers_read_their_reset_values)
{
	struct card *c = card_new(0, NULL);

	check_reset(c);
	cards_free();
}

TEST(registers_keep_what_they_have_room_for)
{
	struct card *c = card_new(0, NULL);

	for (size_t i = 0; i < ARRAY_LEN(regs); i++) {
		set(c, regs[i].offset, ONES);
		if (csr(c, regs[i].offset) != regs[i].ones)
			FAIL("%#x reads %#x after ones", regs[i].offset,
			     csr(c, regs[i].offset));
	}
	CHECK_EQ(csr(c, SCI_PCI_STATUS), 0);
	sim_adapter_reset(c->a, 0);
	check_reset(c);
	set(c, SCI_PCI_TIMEOUT_US, 1);
	set(c, SCI_PCI_CMD_ARG, 1);
	set(c, SCI_PCI_CONTROL, SCI_PCI_CONTROL_RESET | SCI_PCI_CONTROL_ENABLE);
	check_reset(c);
	CHECK_EQ(c->connects, 0);
	cards_free();
}

TEST(reserved_registers_read_zero_and_the_rest_ones)
{
	struct card *c = card_new(0, NULL);

	for (uint32_t o = 0x200 + 8 * SCI_PCI_COUNTERS_COUNT; o < 0x1000; o += 4)
		CHECK_EQ(csr(c, o), 0);
	for (uint32_t o = 0x2094; o < SCI_PCI_CSR_SIZE; o += 4)
		CHECK_EQ(csr(c, o), 0);
	CHECK_EQ(csr(c, SCI_PCI_CSR_SIZE), ONES);
	CHECK_EQ(csr(c, ONES - 3), ONES);
	for (uint32_t o = 1; o < 4; o++)
		CHECK_EQ(csr(c, o), ONES);
	set(c, SCI_PCI_TIMEOUT_US + 2, 7);
	set(c, SCI_PCI_CSR_SIZE + SCI_PCI_TIMEOUT_US, 7);
	CHECK_EQ(csr(c, SCI_PCI_TIMEOUT_US), 20000);
	cards_free();
}

TEST(bases_take_effect_with_their_high_half)
{
	static const uint32_t bases[] = {
		SCI_PCI_RX_BASE, SCI_PCI_EXPORT_BASE, SCI_PCI_DMA_BASE,
		SCI_PCI_STATUS_BASE,
	};
	struct card *c = card_new(0, NULL);

	for (size_t i = 0; i < ARRAY_LEN(bases); i++) {
		set64(c, bases[i], UINT64_C(0x1234567000));
		CHECK_EQ(csr64(c, bases[i]), UINT64_C(0x1234567000));
		set(c, bases[i], 0x1000);
		CHECK_EQ(csr64(c, bases[i]), UINT64_C(0x1234567000));
		set(c, bases[i] + 4, 0);
		CHECK_EQ(csr64(c, bases[i]), 0x1000);
	}
	CHECK_EQ(csr(c, SCI_PCI_STATUS), 0);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE),
		 SCI_PCI_ERR_BUS);	/* no memory for status words */
	cards_free();
}

/* ---- an invalid value stops the engine until a reset ---- */

struct nonsense {
	uint32_t offset;
	uint64_t value;
	bool base;		/* a 64-bit register */
	bool running;		/* the card has been started */
};

static const struct nonsense nonsense[] = {
	{ SCI_PCI_RX_BASE, AT_RX, true, true },
	{ SCI_PCI_EXPORT_BASE, AT_EXPORTS, true, true },
	{ SCI_PCI_DMA_BASE, AT_DMA, true, true },
	{ SCI_PCI_RX_BASE, AT_RX + 8, true, false },
	{ SCI_PCI_EXPORT_BASE, AT_EXPORTS + 2048, true, false },
	{ SCI_PCI_DMA_BASE, AT_DMA + 64, true, false },
	{ SCI_PCI_STATUS_BASE, AT_STATUS + 16, true, false },
	{ SCI_PCI_RX_ENTRIES, 8, false, false },
	{ SCI_PCI_RX_ENTRIES, 17, false, false },
	{ SCI_PCI_RX_ENTRIES, 8192, false, true },
	{ SCI_PCI_RX_ENTRIES, ONES, false, false },
	{ SCI_PCI_EXPORT_ENTRIES, 3, false, false },
	{ SCI_PCI_EXPORT_ENTRIES, 2048, false, true },
	{ SCI_PCI_DMA_ENTRIES, 1, false, false },
	{ SCI_PCI_DMA_ENTRIES, 6, false, true },
	{ SCI_PCI_DMA_ENTRIES, 8192, false, false },
	{ SCI_PCI_DMA_TAIL, 1, false, false },
	{ SCI_PCI_DMA_TAIL, DMA_ENTRIES + 1, false, true },
	{ SCI_PCI_DMA_TAIL, ONES, false, true },
	{ SCI_PCI_RX_HEAD, 1, false, false },
	{ SCI_PCI_RX_HEAD, 1, false, true },
	{ SCI_PCI_RX_HEAD, ONES, false, true },
	{ SCI_PCI_CMD, 0, false, true },
	{ SCI_PCI_CMD, 4, false, false },
	{ SCI_PCI_CMD, ONES, false, false },
};

static void check_stops(const struct nonsense *n)
{
	struct card *c = card_new(0, NULL);

	if (n->running)
		card_start(c);
	if (n->base)
		set64(c, n->offset, n->value);
	else
		set(c, n->offset, (uint32_t)n->value);
	if (!(csr(c, SCI_PCI_STATUS) & SCI_PCI_STATUS_STOPPED))
		FAIL("%#x = %#llx does not stop", n->offset,
		     (unsigned long long)n->value);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE), SCI_PCI_ERR_DRIVER);
	CHECK_EQ(csr(c, SCI_PCI_USER_FATAL), 1);
	CHECK_EQ(csr(c, SCI_PCI_USER_ERRORS), 0);
	CHECK(csr(c, SCI_PCI_INT_STATUS) & SCI_PCI_INT_ERROR);
	/* valid values do not restart the engine */
	set64(c, n->offset & ~7u, 0);
	set(c, n->offset, 0);
	CHECK(csr(c, SCI_PCI_STATUS) & SCI_PCI_STATUS_STOPPED);
	CHECK_EQ(csr(c, SCI_PCI_USER_FATAL), 1);
	set(c, SCI_PCI_CONTROL, SCI_PCI_CONTROL_RESET);
	CHECK_EQ(csr(c, SCI_PCI_STATUS), 0);
	card_start(c);
	CHECK_EQ(csr(c, SCI_PCI_STATUS), SCI_PCI_STATUS_LINK_UP);
	cards_free();
}

TEST(nonsense_stops_an_engine)
{
	for (size_t i = 0; i < ARRAY_LEN(nonsense); i++)
		check_stops(&nonsense[i]);
}

TEST(good_values_do_not_stop)
{
	struct card *c = card_up(0);

	set(c, SCI_PCI_RX_HEAD, 0);
	for (uint32_t n = 16; n <= 4096; n *= 2)
		set(c, SCI_PCI_RX_ENTRIES, n);
	for (uint32_t n = 1; n <= 1024; n *= 2)
		set(c, SCI_PCI_EXPORT_ENTRIES, n);
	for (uint32_t n = 2; n <= 4096; n *= 2)
		set(c, SCI_PCI_DMA_ENTRIES, n);
	set(c, SCI_PCI_RX_ENTRIES, 0);
	set64(c, SCI_PCI_RX_BASE, 0x2000);
	set(c, SCI_PCI_DMA_ENTRIES, 0);
	set(c, SCI_PCI_DMA_TAIL, 0);
	CHECK_EQ(csr(c, SCI_PCI_STATUS), SCI_PCI_STATUS_LINK_UP);
	cards_free();
}

/* ---- address translation table ---- */

TEST(att_keeps_what_exists)
{
	struct card *c = card_new(0, NULL);
	uint32_t last = (8192 - 1) * 16;

	for (uint32_t o = 0; o < 16; o += 4)
		CHECK_EQ(sim_att_read(c->a, last + o), 0);
	for (uint32_t o = 0; o < 16; o += 4)
		sim_att_write(c->a, last + o, ONES);
	CHECK_EQ(sim_att_read(c->a, last), 0x807fffff);
	CHECK_EQ(sim_att_read(c->a, last + 4), 0xffff);
	CHECK_EQ(sim_att_read(c->a, last + 8), ONES);
	CHECK_EQ(sim_att_read(c->a, last + 12), ONES);
	CHECK_EQ(sim_att_read(c->a, last + 16), ONES);
	CHECK_EQ(sim_att_read(c->a, 2), ONES);
	sim_att_write(c->a, last + 16, 0);
	sim_att_write(c->a, last + 1, 0);
	CHECK_EQ(sim_att_read(c->a, last), 0x807fffff);
	set(c, SCI_PCI_CONTROL, SCI_PCI_CONTROL_RESET);
	for (uint32_t o = 0; o < 16; o += 4)
		CHECK_EQ(sim_att_read(c->a, last + o), 0);
	cards_free();
}

/* ---- valid configurations ---- */

static bool possible(const struct sim_config *config)
{
	struct sim_adapter *a = sim_adapter_new(config, &host, &world, 1);

	sim_adapter_free(a);
	return a != NULL;
}

#define POSSIBLE(field, value)						\
	({								\
		struct sim_config config_ = sim_config_default;		\
		config_.field = (value);				\
		possible(&config_);					\
	})

TEST(impossible_cards_are_refused)
{
	CHECK(POSSIBLE(node, 0xfffc));
	CHECK(!POSSIBLE(node, 0));
	CHECK(!POSSIBLE(node, 6));
	CHECK(POSSIBLE(att_entries, 256));
	CHECK(POSSIBLE(att_entries, 65536));
	CHECK(!POSSIBLE(att_entries, 128));
	CHECK(!POSSIBLE(att_entries, 131072));
	CHECK(!POSSIBLE(att_entries, 1000));
	CHECK(POSSIBLE(att_page_size, 4096));
	CHECK(POSSIBLE(att_page_size, 524288));
	CHECK(!POSSIBLE(att_page_size, 2048));
	CHECK(!POSSIBLE(att_page_size, 1048576));
	CHECK(POSSIBLE(streams, 16));
	CHECK(!POSSIBLE(streams, 0));
	CHECK(!POSSIBLE(streams, 32));
	CHECK(POSSIBLE(stream_size, 128));
	CHECK(!POSSIBLE(stream_size, 32));
	CHECK(POSSIBLE(outstanding, 1));
	CHECK(!POSSIBLE(outstanding, 0));
	CHECK(!POSSIBLE(outstanding, 65));
	CHECK(!POSSIBLE(exports, 8));
	CHECK(!POSSIBLE(exports, 8192));
	CHECK(!POSSIBLE(dma_max, 4095));
}

TEST(features_say_what_the_card_is)
{
	struct sim_config config = sim_config_default;
	struct card *c;

	config.serial = UINT64_C(0x123456789abcdef0);
	c = card_new(0, &config);
	CHECK(csr(c, SCI_PCI_FEATURES) & SCI_PCI_FEAT_PACKET_128);
	CHECK_EQ(SCI_PCI_STREAMS_COUNT(csr(c, SCI_PCI_STREAMS)), 16);
	CHECK_EQ(SCI_PCI_STREAMS_SIZE(csr(c, SCI_PCI_STREAMS)), 128);
	CHECK_EQ(csr64(c, SCI_PCI_SERIAL), UINT64_C(0x123456789abcdef0));
	cards_free();

	c = card_new(0, NULL);
	CHECK(!(csr(c, SCI_PCI_FEATURES) & SCI_PCI_FEAT_PACKET_128));
	CHECK_EQ(SCI_PCI_STREAMS_COUNT(csr(c, SCI_PCI_STREAMS)), 8);
	CHECK_EQ(SCI_PCI_STREAMS_SIZE(csr(c, SCI_PCI_STREAMS)), 64);
	cards_free();
}

/* ---- a window that the host accesses directly ---- */

TEST(direct_windows_are_left_to_the_host)
{
	struct sim_config config = sim_config_default;
	struct sim_att_entry e;
	uint64_t base, data = 5;
	uint32_t entries;
	struct card *c;

	config.direct = true;
	c = card_new(0, &config);
	card_start(c);
	CHECK_EQ(csr(c, SCI_PCI_FEATURES) &
		 (SCI_PCI_FEAT_DIRECT | SCI_PCI_FEAT_LOCK |
		  SCI_PCI_FEAT_INTERRUPT_MAPS), SCI_PCI_FEAT_DIRECT);
	map_entry(c, 77, 8, SCI_PCI_ATT_READ_ONLY, 3, 0x20000);
	CHECK_EQ(c->att_changes, 1);
	CHECK_EQ(c->att_changed, 77);
	sim_att_get(c->a, 77, &e);
	CHECK_EQ(e.node, 8);
	CHECK_EQ(e.attr, SCI_PCI_ATT_READ_ONLY | SCI_PCI_ATT_VALID);
	CHECK_EQ(e.export_id, 3);
	CHECK_EQ(e.offset, 0x20000);
	sim_export_table(c->a, &base, &entries);
	CHECK_EQ(base, AT_EXPORTS);
	CHECK_EQ(entries, EXPORT_ENTRIES);
	CHECK_EQ(sim_window_read(c->a, 0, 77 * PAGE, &data, 8), SIM_BUS_DONE);
	CHECK(data == UINT64_MAX);
	CHECK_EQ(sim_window_write(c->a, 0, 77 * PAGE, &data, 8), SIM_BUS_DONE);
	CHECK_EQ(barrier(c), 0);
	CHECK_EQ(COUNT(c, STORE_BYTES), 0);
	set(c, SCI_PCI_CONTROL, SCI_PCI_CONTROL_RESET);
	CHECK_EQ(c->att_changes, 2);
	cards_free();
}

TEST(direct_windows_are_asked_to_invalidate)
{
	struct sim_config config = sim_config_default;
	struct card *c;

	config.direct = true;
	c = card_new(0, &config);
	card_start(c);
	set(c, SCI_PCI_CMD_ARG, 9);
	set(c, SCI_PCI_CMD, SCI_PCI_CMD_INVALIDATE);
	CHECK_EQ(c->invalidates, 1);
	CHECK_EQ(c->invalidated, 9);
	CHECK_EQ(csr(c, SCI_PCI_CMD_STATUS), SCI_PCI_CMD_BUSY);
	set(c, SCI_PCI_CMD_ARG, 10);	/* argument of the next command */
	set(c, SCI_PCI_CMD, SCI_PCI_CMD_INVALIDATE);
	CHECK_EQ(c->invalidates, 1);
	sim_adapter_invalidated(c->a, 10);
	CHECK_EQ(csr(c, SCI_PCI_CMD_STATUS), SCI_PCI_CMD_BUSY);
	sim_adapter_invalidated(c->a, 9);
	CHECK_EQ(csr(c, SCI_PCI_CMD_STATUS), SCI_PCI_CMD_DONE);
	CHECK_EQ(csr(c, SCI_PCI_INT_STATUS) & SCI_PCI_INT_COMMAND,
		 SCI_PCI_INT_COMMAND);
	sim_adapter_invalidated(c->a, 9);
	CHECK_EQ(csr(c, SCI_PCI_CMD_STATUS), SCI_PCI_CMD_DONE);
	cards_free();
}

TEST(direct_stores_to_nodes_that_are_not_there)
{
	struct sim_config config = sim_config_default;
	struct card *c;

	config.direct = true;
	c = card_new(0, &config);
	card_start(c);
	map_entry(c, 77, 8, 0, 3, 0x20000);
	sim_adapter_unreachable(c->a, 77);
	CHECK_EQ(csr(c, SCI_PCI_USER_ERRORS), 1);
	CHECK_EQ(csr(c, SCI_PCI_USER_FATAL), 0);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE), SCI_PCI_ERR_NODE);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_NODE), 8);
	CHECK_EQ(csr64(c, SCI_PCI_ERROR_ADDRESS), 3ull << 32 | 0x20000);
	CHECK_EQ(COUNT(c, ERRORS_NODE), 1);
	CHECK_EQ(csr(c, SCI_PCI_INT_STATUS) & SCI_PCI_INT_ERROR,
		 SCI_PCI_INT_ERROR);
	cards_free();

	/* a card without direct windows ignores the call */
	c = card_new(0, NULL);
	card_start(c);
	sim_adapter_unreachable(c->a, 77);
	CHECK_EQ(csr(c, SCI_PCI_USER_ERRORS), 0);
	cards_free();
}

/* ---- interrupts ---- */

/* Raise the cause COMMAND. */
static void command(struct card *c)
{
	set(c, SCI_PCI_CMD, SCI_PCI_CMD_INVALIDATE);
}

TEST(messages_are_sent_when_a_cause_appears)
{
	struct card *c = card_new(0, NULL);

	command(c);
	CHECK_EQ(csr(c, SCI_PCI_INT_STATUS), SCI_PCI_INT_COMMAND);
	CHECK_EQ(c->interrupts, 0);
	set(c, SCI_PCI_INT_MASK, SCI_PCI_INT_ALL);	/* unmask a pending cause */
	CHECK_EQ(c->raised, SCI_PCI_INT_COMMAND);
	CHECK_EQ(c->pending, SCI_PCI_INT_COMMAND);
	CHECK_EQ(c->interrupts, 1);
	command(c);			/* the cause is already pending */
	CHECK_EQ(c->interrupts, 1);
	set(c, SCI_PCI_INT_STATUS, SCI_PCI_INT_RX);	/* clear another cause */
	CHECK_EQ(c->pending, SCI_PCI_INT_COMMAND);
	set(c, SCI_PCI_INT_STATUS, SCI_PCI_INT_COMMAND);
	CHECK_EQ(c->pending, 0);
	CHECK_EQ(c->interrupts, 2);	/* to lower INTA#; sends no message */
	c->raised = 0;
	command(c);
	CHECK_EQ(c->raised, SCI_PCI_INT_COMMAND);
	c->raised = 0;
	set(c, SCI_PCI_INT_MASK, SCI_PCI_INT_RX);
	CHECK_EQ(c->pending, 0);
	CHECK_EQ(c->raised, 0);
	set(c, SCI_PCI_INT_MASK, SCI_PCI_INT_ALL);
	CHECK_EQ(c->raised, SCI_PCI_INT_COMMAND);
	set(c, SCI_PCI_CONTROL, SCI_PCI_CONTROL_RESET);
	CHECK_EQ(c->pending, 0);
	cards_free();
}

/* ---- link ---- */

TEST(link_up_follows_cable_and_enable)
{
	struct card *c = card_new(0, NULL);

	set(c, SCI_PCI_INT_MASK, SCI_PCI_INT_ALL);
	sim_adapter_link(c->a, true);		/* not enabled */
	CHECK_EQ(csr(c, SCI_PCI_STATUS), 0);
	set(c, SCI_PCI_CONTROL, SCI_PCI_CONTROL_ENABLE);
	CHECK(c->connected);
	CHECK_EQ(csr(c, SCI_PCI_USER_DOWN), 1);
	sim_adapter_link(c->a, true);
	CHECK_EQ(c->raised, SCI_PCI_INT_LINK);
	CHECK_EQ(csr(c, SCI_PCI_USER_DOWN), 0);
	CHECK_EQ(csr(c, SCI_PCI_STATUS), SCI_PCI_STATUS_LINK_UP);
	set(c, SCI_PCI_INT_STATUS, SCI_PCI_INT_LINK);
	c->raised = 0;
	sim_adapter_link(c->a, true);
	CHECK_EQ(c->raised, 0);
	sim_adapter_link(c->a, false);
	CHECK_EQ(c->raised, SCI_PCI_INT_LINK);
	CHECK_EQ(COUNT(c, LINK_DOWNS), 1);
	sim_adapter_link(c->a, true);
	set(c, SCI_PCI_CONTROL, 0);
	CHECK(!c->connected);
	CHECK_EQ(COUNT(c, LINK_DOWNS), 2);
	CHECK_EQ(csr(c, SCI_PCI_USER_DOWN), 1);
	set(c, SCI_PCI_CONTROL, SCI_PCI_CONTROL_ENABLE);
	set(c, SCI_PCI_CONTROL, SCI_PCI_CONTROL_RESET);
	CHECK(!c->connected);
	cards_free();
}

TEST(halves_of_a_counter_belong_together)
{
	struct card *c = card_new(0, NULL);
	uint32_t offset = SCI_PCI_COUNTERS + 8 * SCI_PCI_CNT_FLUSHES;

	set(c, SCI_PCI_USER_FLUSH, 0);
	CHECK_EQ(csr64(c, offset), 1);
	CHECK_EQ(csr(c, offset + 4), 0);
	CHECK_EQ(csr(c, offset), 1);
	CHECK_EQ(csr(c, offset), 1);
	CHECK_EQ(csr64(c, offset), 1);
	cards_free();
}
