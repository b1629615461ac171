// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test mailbox, receive ring and commands of the simulated card. */
#include "selftests/sim/adapter.h"
#include "sim/adapter/model.h"

#define ONES	UINT32_MAX

static void mail(struct card *c, uint32_t node, uint32_t first)
{
	for (uint32_t i = 0; i < 16; i++)
		set(c, SCI_PCI_MBOX_DATA + 4 * i, first + i);
	set(c, SCI_PCI_MBOX_SEND, node);
}

/* Take an entry from the receive ring, as software does. False: the ring is empty. */
static bool receive(struct card *c, uint32_t *head, uint32_t turn, uint32_t *v)
{
	uint64_t e = AT_RX + *head % RX_ENTRIES * 128;
	bool mailbox = (get32(c, e + 4) & 0xffff) == SCI_PCI_RX_MAILBOX;

	if (get32(c, e) != turn)
		return false;
	*v = get32(c, e + (mailbox ? SCI_PCI_RX_DATA : SCI_PCI_RX_VALUE));
	set(c, SCI_PCI_RX_HEAD, ++*head);
	return true;
}

TEST(mail_arrives_whole)
{
	struct card *t, *c = pair_up(&t);

	memset(t->memory + AT_RX, 0xee, 256);
	set(t, SCI_PCI_INT_MASK, SCI_PCI_INT_RX);
	mail(c, node_of(t), 100);
	CHECK_EQ(csr(c, SCI_PCI_MBOX_FREE), 31);
	world_settle();
	CHECK_EQ(csr(c, SCI_PCI_MBOX_FREE), 32);
	CHECK_EQ(t->raised, SCI_PCI_INT_RX);
	CHECK_EQ(t->wrote, AT_RX);		/* the turn is written last */
	CHECK_EQ(t->wrote_len, 4);
	CHECK_EQ(get32(t, AT_RX), 1);
	CHECK_EQ(get32(t, AT_RX + 4), node_of(c) << 16 | SCI_PCI_RX_MAILBOX);
	CHECK_EQ(get32(t, AT_RX + 8), 0);
	CHECK_EQ(get32(t, AT_RX + 12), 0);
	for (uint32_t i = 0; i < 16; i++)
		CHECK_EQ(get32(t, AT_RX + 16 + 4 * i), 100 + i);
	for (uint32_t i = 80; i < 256; i += 4)
		CHECK_EQ(get32(t, AT_RX + i), 0xeeeeeeee);
	CHECK_EQ(COUNT(c, MBOX_SENT), 1);
	CHECK_EQ(COUNT(t, MBOX_RECEIVED), 1);
	CHECK_EQ(csr(c, SCI_PCI_USER_DONE), 0);	/* mail is not a store */
	cards_free();
}

TEST(mail_to_the_own_node)
{
	struct card *c = card_up(0);

	mail(c, node_of(c), 5);
	CHECK_EQ(get32(c, AT_RX), 1);
	CHECK_EQ(get32(c, AT_RX + 16), 5);
	CHECK_EQ(csr(c, SCI_PCI_MBOX_FREE), 32);
	cards_free();
}

TEST(mail_beyond_the_room_is_dropped)
{
	struct card *t, *c = pair_up(&t);

	for (uint32_t i = 0; i < 40; i++)
		mail(c, node_of(t), i);
	CHECK_EQ(csr(c, SCI_PCI_MBOX_FREE), 0);
	CHECK_EQ(c->sent, 32);
	CHECK_EQ(csr(c, SCI_PCI_USER_CHECK), 0);
	world_settle();
	CHECK_EQ(COUNT(c, MBOX_SENT), 32);
	CHECK_EQ(COUNT(c, MBOX_FAILED), 16);	/* no room in the target's ring */
	CHECK_EQ(COUNT(t, MBOX_RECEIVED), 16);
	CHECK_EQ(COUNT(t, MBOX_BUSY), 16);
	cards_free();
}

TEST(mail_for_nobody_comes_back)
{
	struct card *t, *c = pair_up(&t);

	memset(c->memory + AT_RX, 0xee, 256);
	set(c, SCI_PCI_INT_MASK, SCI_PCI_INT_RX);
	mail(c, 16, 200);		/* node 16 does not exist */
	world_settle();
	CHECK_EQ(COUNT(c, MBOX_FAILED), 1);
	CHECK_EQ(c->raised, SCI_PCI_INT_RX);
	CHECK_EQ(get32(c, AT_RX), 1);
	CHECK_EQ(get32(c, AT_RX + 4), 16u << 16 | SCI_PCI_RX_RETURNED);
	CHECK_EQ(get32(c, AT_RX + 8), 0);
	CHECK_EQ(get32(c, AT_RX + 12), 0);
	for (uint32_t i = 0; i < 16; i++)
		CHECK_EQ(get32(c, AT_RX + 16 + 4 * i), 200 + i);
	CHECK_EQ(get32(c, AT_RX + 128), 0xeeeeeeee);
	/* a full ring drops returned mail: its entries are for mail of other nodes */
	for (uint32_t i = 0; i < RX_ENTRIES; i++) {
		mail(c, 16, i);
		world_settle();
	}
	CHECK_EQ(COUNT(c, MBOX_FAILED), RX_ENTRIES + 1);
	CHECK_EQ(csr(c, SCI_PCI_MBOX_FREE), 32);
	/* mail that fails for another reason is not returned */
	set(c, SCI_PCI_RX_HEAD, RX_ENTRIES);
	world.cut = true;
	mail(c, node_of(t), 0);
	world_settle();
	CHECK_EQ(get32(c, AT_RX), 1);
	cards_free();
}

TEST(mail_that_fails_is_counted_and_no_error)
{
	struct card *t, *c = pair_up(&t);

	set(c, SCI_PCI_INT_STATUS, SCI_PCI_INT_ALL);
	mail(c, 16, 0);			/* node 16 does not exist */
	mail(c, 7, 0);			/* 7 is not a node id */
	mail(c, 0x10008, 0);
	world_settle();
	CHECK_EQ(COUNT(c, MBOX_FAILED), 3);
	world.cut = true;
	mail(c, node_of(t), 0);
	world_settle();
	CHECK_EQ(COUNT(c, MBOX_FAILED), 4);
	sim_adapter_link(c->a, false);
	mail(c, node_of(t), 0);
	CHECK_EQ(COUNT(c, MBOX_FAILED), 5);
	CHECK_EQ(csr(c, SCI_PCI_MBOX_FREE), 32);
	CHECK_EQ(csr(c, SCI_PCI_USER_ERRORS), 0);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE), 0);
	CHECK_EQ(csr(c, SCI_PCI_INT_STATUS),
		 SCI_PCI_INT_LINK | SCI_PCI_INT_RX);
	CHECK_EQ(COUNT(c, TIMEOUTS) + COUNT(c, ERRORS_NODE) +
		 COUNT(c, ERRORS_LINK), 0);
	cards_free();
}

TEST(mail_arrives_once)
{
	struct card *t, *c = pair_up(&t);
	bool seen[500] = { false };
	uint32_t head = 0, got = 0, v;

	world.lose = 100;
	world.twice = 300;
	world.jitter = 5000;
	world.late = 100000;
	set(c, SCI_PCI_TIMEOUT_US, 20);
	for (uint32_t i = 0; i < 500; i++) {
		while (csr(c, SCI_PCI_MBOX_FREE) < 20)
			CHECK(world_step());
		mail(c, node_of(t), i);
		while (receive(t, &head, head + 1, &v)) {
			CHECK(v < 500 && !seen[v]);
			seen[v] = true;
			got++;
		}
	}
	world_settle();
	while (receive(t, &head, head + 1, &v)) {
		CHECK(v < 500 && !seen[v]);
		seen[v] = true;
		got++;
	}
	CHECK_EQ(got, COUNT(t, MBOX_RECEIVED));
	CHECK_EQ(got + COUNT(c, MBOX_FAILED), 500);
	CHECK(COUNT(t, DUPLICATES) > 50);
	cards_free();
}

/* ---- receive ring ---- */

TEST(a_full_ring_answers_busy)
{
	struct card *t, *c = pair_up(&t);
	uint32_t head = 0, v;

	set(c, SCI_PCI_CMD_NODE, node_of(t));
	for (uint32_t i = 0; i < 100; i++) {
		set(c, SCI_PCI_CMD_ARG, 1000 + i);
		set(c, SCI_PCI_CMD, SCI_PCI_CMD_INTERRUPT);
		CHECK_EQ(csr(c, SCI_PCI_CMD_STATUS), SCI_PCI_CMD_BUSY);
		world_settle();
		CHECK_EQ(csr(c, SCI_PCI_CMD_STATUS),
			 i % 20 < RX_ENTRIES ? SCI_PCI_CMD_DONE :
			 SCI_PCI_CMD_FAILED + SCI_PCI_ERR_BUSY);
		if (i % 20 != 19)
			continue;
		for (uint32_t k = 0; k < RX_ENTRIES; k++) {
			CHECK(receive(t, &head, head + 1, &v));
			CHECK_EQ(v, 1000 + i - 19 + k);
		}
		CHECK(!receive(t, &head, head + 1, &v));
	}
	CHECK_EQ(csr(c, SCI_PCI_USER_ERRORS), 0);
	CHECK_EQ(COUNT(t, INTERRUPTS_RECEIVED), 80);
	CHECK_EQ(COUNT(t, MBOX_BUSY), 20);
	cards_free();
}

TEST(turns_leave_out_zero)
{
	struct card *c = card_up(0);
	uint32_t head = ONES - 5, turn = ONES - 5, v;

	/* the state after so many entries */
	c->a->rx.head = head;
	c->a->rx.tail = head;
	c->a->rx_turn = turn;
	for (uint32_t i = 0; i < 12; i++) {
		mail(c, node_of(c), i);
		CHECK(receive(c, &head, turn, &v));
		CHECK_EQ(v, i);
		turn += turn == ONES ? 2 : 1;
	}
	CHECK_EQ(head, 6);
	CHECK_EQ(turn, 7);
	CHECK_EQ(csr(c, SCI_PCI_STATUS) & SCI_PCI_STATUS_STOPPED, 0);
	cards_free();
}

TEST(writing_rx_entries_begins_anew)
{
	struct card *c = card_up(0);
	uint32_t head = 0, v;

	mail(c, node_of(c), 1);
	mail(c, node_of(c), 2);
	CHECK(receive(c, &head, 1, &v));
	set(c, SCI_PCI_RX_ENTRIES, 0);
	CHECK_EQ(csr(c, SCI_PCI_RX_HEAD), 0);
	mail(c, node_of(c), 3);
	CHECK_EQ(COUNT(c, MBOX_BUSY), 1);
	set64(c, SCI_PCI_RX_BASE, AT_RX);
	set(c, SCI_PCI_RX_ENTRIES, RX_ENTRIES);
	mail(c, node_of(c), 4);
	head = 0;
	CHECK(receive(c, &head, 1, &v));
	CHECK_EQ(v, 4);
	cards_free();
}

TEST(a_ring_that_is_not_there_is_busy)
{
	struct card *c = card_up(0);

	c->no_write = AT_RX;
	mail(c, node_of(c), 1);
	CHECK_EQ(COUNT(c, MBOX_FAILED), 1);
	CHECK_EQ(csr(c, SCI_PCI_ERROR_CODE), SCI_PCI_ERR_BUS);
	CHECK_EQ(csr(c, SCI_PCI_USER_FATAL), 1);
	c->no_write = 0;
	mail(c, node_of(c), 2);
	CHECK_EQ(get32(c, AT_RX), 1);
	set(c, SCI_PCI_RX_HEAD, 77);		/* an invalid value stops the engine */
	mail(c, node_of(c), 3);
	CHECK_EQ(COUNT(c, MBOX_FAILED), 2);
	CHECK_EQ(COUNT(c, MBOX_BUSY), 2);
	cards_free();
}

/* ---- commands ---- */

static uint32_t command(struct card *c, uint32_t kind, uint32_t node,
			uint32_t arg)
{
	set(c, SCI_PCI_INT_STATUS, SCI_PCI_INT_COMMAND);
	set(c, SCI_PCI_CMD_NODE, node);
	set(c, SCI_PCI_CMD_ARG, arg);
	set(c, SCI_PCI_CMD, kind);
	while (csr(c, SCI_PCI_CMD_STATUS) == SCI_PCI_CMD_BUSY)
		CHECK(world_step());
	CHECK(csr(c, SCI_PCI_INT_STATUS) & SCI_PCI_INT_COMMAND);
	return csr(c, SCI_PCI_CMD_STATUS);
}

static bool others_may_read(uint32_t offset)
{
	if (offset & 3)
		return false;
	return offset < 0x30 || offset == SCI_PCI_STATUS ||
	       (offset >= 0x100 && offset < 0x100 + 8 * SCI_PCI_COUNTERS_COUNT);
}

TEST(others_read_some_registers)
{
	struct card *t, *c = pair_up(&t);

	store_run(t, 0, 0, 64, 64, 0);		/* makes ERRORS_ATT of the target 1 */
	for (uint32_t o = 0; o < 0x3000; o++) {
		bool may = others_may_read(o);
		uint32_t status;

		status = command(c, SCI_PCI_CMD_READ_CSR, node_of(t), o);
		CHECK_EQ(status, may ? SCI_PCI_CMD_DONE :
			 SCI_PCI_CMD_FAILED + SCI_PCI_ERR_PROTECTION);
		if (!may)
			CHECK_EQ(csr(c, SCI_PCI_CMD_RESULT), 0);
		else if (o < 0x100)
			CHECK_EQ(csr(c, SCI_PCI_CMD_RESULT), csr(t, o));
	}
	command(c, SCI_PCI_CMD_READ_CSR, node_of(t),
		0x100 + 8 * SCI_PCI_CNT_ERRORS_ATT);
	CHECK_EQ(csr(c, SCI_PCI_CMD_RESULT), 1);
	CHECK_EQ(command(c, SCI_PCI_CMD_READ_CSR, node_of(t), ONES - 3),
		 SCI_PCI_CMD_FAILED + SCI_PCI_ERR_PROTECTION);
	CHECK_EQ(csr(c, SCI_PCI_USER_ERRORS), 0);
	CHECK_EQ(command(c, SCI_PCI_CMD_READ_CSR, node_of(c), SCI_PCI_NODE_ID),
		 SCI_PCI_CMD_DONE);
	CHECK_EQ(csr(c, SCI_PCI_CMD_RESULT), node_of(c));
	cards_free();
}

TEST(commands_fail_with_their_code)
{
	struct card *t, *c = pair_up(&t);

	CHECK_EQ(command(c, SCI_PCI_CMD_INTERRUPT, 16, 0),
		 SCI_PCI_CMD_FAILED + SCI_PCI_ERR_NODE);
	CHECK_EQ(COUNT(c, ERRORS_NODE), 1);
	CHECK_EQ(command(c, SCI_PCI_CMD_READ_CSR, 16, 0),
		 SCI_PCI_CMD_FAILED + SCI_PCI_ERR_NODE);
	CHECK_EQ(command(c, SCI_PCI_CMD_READ_CSR, ONES, 0),
		 SCI_PCI_CMD_FAILED + SCI_PCI_ERR_NODE);
	world.cut = true;
	CHECK_EQ(command(c, SCI_PCI_CMD_INTERRUPT, node_of(t), 0),
		 SCI_PCI_CMD_FAILED + SCI_PCI_ERR_TIMEOUT);
	CHECK_EQ(COUNT(c, TIMEOUTS), 1);
	set(c, SCI_PCI_CMD, SCI_PCI_CMD_READ_CSR);
	CHECK_EQ(csr(c, SCI_PCI_CMD_STATUS), SCI_PCI_CMD_BUSY);
	sim_adapter_link(c->a, false);
	CHECK_EQ(csr(c, SCI_PCI_CMD_STATUS),
		 SCI_PCI_CMD_FAILED + SCI_PCI_ERR_LINK);
	CHECK_EQ(csr(c, SCI_PCI_USER_ERRORS), 2);
	CHECK_EQ(command(c, SCI_PCI_CMD_INVALIDATE, 0, 1), SCI_PCI_CMD_DONE);
	CHECK_EQ(command(c, 9, 0, 1), SCI_PCI_CMD_FAILED + SCI_PCI_ERR_DRIVER);
	cards_free();
}

TEST(one_command_at_a_time)
{
	struct card *t, *c = pair_up(&t);

	set(c, SCI_PCI_CMD_NODE, node_of(t));
	set(c, SCI_PCI_CMD_ARG, SCI_PCI_SERIAL);
	set(c, SCI_PCI_CMD, SCI_PCI_CMD_READ_CSR);
	set(c, SCI_PCI_CMD_ARG, 5);
	set(c, SCI_PCI_CMD, SCI_PCI_CMD_INTERRUPT);
	set(c, SCI_PCI_CMD, 99);
	CHECK_EQ(c->sent, 1);
	world_settle();
	CHECK_EQ(csr(c, SCI_PCI_CMD_STATUS), SCI_PCI_CMD_DONE);
	CHECK_EQ(csr(c, SCI_PCI_CMD_RESULT), 4);
	CHECK_EQ(COUNT(t, INTERRUPTS_RECEIVED), 0);
	CHECK_EQ(csr(c, SCI_PCI_STATUS), SCI_PCI_STATUS_LINK_UP);
	cards_free();
}

TEST(mailbox_and_commands_need_no_slot_of_stores)
{
	struct card *t, *c = pair_up(&t);
	uint64_t data[8] = { 0 };

	for (unsigned int i = 0; i < 72; i++)
		CHECK_EQ(sim_window_write(c->a, 0, 64 * i, data, 64),
			 SIM_BUS_DONE);
	mail(c, node_of(t), 1);
	set(c, SCI_PCI_CMD_NODE, node_of(t));
	set(c, SCI_PCI_CMD, SCI_PCI_CMD_INTERRUPT);
	CHECK_EQ(c->sent, 66);
	world_settle();
	CHECK_EQ(COUNT(t, MBOX_RECEIVED), 1);
	CHECK_EQ(COUNT(t, INTERRUPTS_RECEIVED), 1);
	cards_free();
}
