// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test the export table of the simulated card, and its handling of forged packets. */
#include "selftests/sim/adapter.h"

#define ONES	UINT32_MAX
#define LENGTH	10000u

struct target {
	struct card *c;
	struct card *t;
	uint64_t entry;
};

/* Create export 1 of LENGTH bytes, all 0x5a. */
static struct target target(void)
{
	struct target x;

	x.c = pair_up(&x.t);
	x.entry = export_entry(1);
	export_make(x.t, 1, LENGTH, RIGHTS);
	memset(x.t->memory + AT_DATA, 0x5a, 0x80000);
	return x;
}

static void invalidate(struct card *c, uint16_t id)
{
	set(c, SCI_PCI_CMD_ARG, id);
	set(c, SCI_PCI_CMD, SCI_PCI_CMD_INVALIDATE);
	CHECK_EQ(csr(c, SCI_PCI_CMD_STATUS), SCI_PCI_CMD_DONE);
}

static bool readable(struct target *x, uint32_t offset)
{
	uint32_t errors = csr(x->c, SCI_PCI_USER_ERRORS);
	uint64_t refused = COUNT(x->t, REFUSED);
	uint32_t v = load32(x->c, offset);

	if (v == 0x5a5a5a5a) {
		CHECK_EQ(csr(x->c, SCI_PCI_USER_ERRORS), errors);
		return true;
	}
	CHECK_EQ(v, ONES);
	CHECK_EQ(csr(x->c, SCI_PCI_USER_ERRORS), errors + 1);
	CHECK_EQ(csr(x->c, SCI_PCI_ERROR_CODE), SCI_PCI_ERR_PROTECTION);
	CHECK_EQ(COUNT(x->t, REFUSED), refused + 1);
	return false;
}

static bool writable(struct target *x, uint32_t offset)
{
	uint32_t errors = csr(x->c, SCI_PCI_USER_ERRORS);
	uint32_t v = 0x5a5a5a5a;

	store(x->c, 0, offset, &v, 4);
	return barrier(x->c) == errors;
}

TEST(each_right_is_asked_for)
{
	struct target x = target();

	CHECK(readable(&x, 0) && writable(&x, 0));
	export_make(x.t, 1, LENGTH, SCI_PCI_EXPORT_READ);
	invalidate(x.t, 1);
	CHECK(readable(&x, 0) && !writable(&x, 0));
	export_make(x.t, 1, LENGTH, SCI_PCI_EXPORT_WRITE);
	invalidate(x.t, 1);
	CHECK(!readable(&x, 0) && writable(&x, 0));
	export_make(x.t, 1, LENGTH, 0);
	invalidate(x.t, 1);
	CHECK(!readable(&x, 0) && !writable(&x, 0));
	cards_free();
}

/* Clearing VALID takes effect at INVALIDATE, setting VALID at once. */
TEST(an_export_ends_with_invalidate)
{
	struct target x = target();

	CHECK(readable(&x, 0));
	put16(x.t, x.entry + SCI_PCI_EXPORT_FLAGS, RIGHTS);
	invalidate(x.t, 1);
	CHECK(!readable(&x, 0) && !writable(&x, 0));
	put16(x.t, x.entry + SCI_PCI_EXPORT_FLAGS,
	      RIGHTS | SCI_PCI_EXPORT_VALID);
	CHECK(readable(&x, 0) && writable(&x, 0));
	cards_free();
}

TEST(a_stale_id_names_nothing)
{
	struct target x = target();

	put16(x.t, x.entry + SCI_PCI_EXPORT_ID, 1 + EXPORT_ENTRIES);
	CHECK(!readable(&x, 0));
	map_entry(x.c, 0, node_of(x.t), 0, 1 + EXPORT_ENTRIES, 0);
	CHECK(readable(&x, 0));
	map_entry(x.c, 0, node_of(x.t), 0, 1, 0);
	CHECK(!readable(&x, 0));
	cards_free();
}

TEST(nothing_beyond_the_length)
{
	struct target x = target();
	static const uint64_t lengths[] = { 1, 3, 4, 64, 4095, 4096, 4097,
					    0x10000 - 1, 0x10000 };

	CHECK(readable(&x, LENGTH - 4));
	CHECK(!readable(&x, LENGTH - 2));
	CHECK(!readable(&x, LENGTH));
	CHECK(!readable(&x, LENGTH + 4096));
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		export_make(x.t, 1, lengths[i], RIGHTS);
		invalidate(x.t, 1);
		for (uint32_t o = 0; o < 0x10000; o += 1020)
			CHECK_EQ(readable(&x, o & ~3u),
				 (o & ~3u) + 4 <= lengths[i]);
	}
	export_make(x.t, 1, 0, RIGHTS);
	invalidate(x.t, 1);
	CHECK(!readable(&x, 0));
	export_make(x.t, 1, UINT64_C(1) << 32, RIGHTS);
	invalidate(x.t, 1);
	CHECK(readable(&x, 0));
	export_make(x.t, 1, (UINT64_C(1) << 32) + 1, RIGHTS);
	invalidate(x.t, 1);
	CHECK(!readable(&x, 0));
	export_make(x.t, 1, UINT64_MAX, RIGHTS);
	invalidate(x.t, 1);
	CHECK(!readable(&x, 0));
	cards_free();
}

TEST(lists_that_lie_are_refused)
{
	struct target x = target();
	uint64_t root = AT_ROOTS + 4096, leaf = AT_LEAVES + 4096;
	static const uint64_t nowhere[] = {
		MEMORY, MEMORY + 4096, UINT64_MAX - 4095, UINT64_C(1) << 63,
	};

	for (size_t i = 0; i < ARRAY_LEN(nowhere); i++) {
		put64(x.t, x.entry + SCI_PCI_EXPORT_ROOT, nowhere[i]);
		invalidate(x.t, 1);
		CHECK(!readable(&x, 0) && !writable(&x, 0));
		export_make(x.t, 1, LENGTH, RIGHTS);
		put64(x.t, root, nowhere[i]);
		invalidate(x.t, 1);
		CHECK(!readable(&x, 0) && !writable(&x, 0));
		export_make(x.t, 1, LENGTH, RIGHTS);
		put64(x.t, leaf, nowhere[i]);
		invalidate(x.t, 1);
		CHECK(!readable(&x, 0) && !writable(&x, 0));
		CHECK(readable(&x, 4096) && writable(&x, 4096));
		export_make(x.t, 1, LENGTH, RIGHTS);
	}
	put64(x.t, leaf, AT_DATA + 8);		/* not the address of a page */
	invalidate(x.t, 1);
	CHECK(!readable(&x, 0));
	export_make(x.t, 1, LENGTH, RIGHTS);
	put64(x.t, root, leaf + 8);
	invalidate(x.t, 1);
	CHECK(!readable(&x, 0));
	CHECK_EQ(csr(x.t, SCI_PCI_USER_FATAL), 0);
	cards_free();
}

TEST(a_table_that_is_not_there_exports_nothing)
{
	struct target x = target();

	CHECK(readable(&x, 0));
	set(x.t, SCI_PCI_EXPORT_ENTRIES, 0);
	CHECK(!readable(&x, 0));
	set64(x.t, SCI_PCI_EXPORT_BASE, MEMORY);
	set(x.t, SCI_PCI_EXPORT_ENTRIES, EXPORT_ENTRIES);
	CHECK(!readable(&x, 0));
	set(x.t, SCI_PCI_EXPORT_ENTRIES, 0);
	set64(x.t, SCI_PCI_EXPORT_BASE, AT_EXPORTS);
	set(x.t, SCI_PCI_EXPORT_ENTRIES, EXPORT_ENTRIES);
	CHECK(readable(&x, 0));
	x.t->bus_master_off = true;
	CHECK(!readable(&x, 0) && !writable(&x, 0));
	x.t->bus_master_off = false;
	CHECK(readable(&x, 0));
	x.t->no_write = export_at(1, 0);
	CHECK(!writable(&x, 0) && readable(&x, 0) && writable(&x, 4096));
	set(x.t, SCI_PCI_EXPORT_ENTRIES, 3);	/* an invalid value stops the engine */
	CHECK(!readable(&x, 0));
	cards_free();
}

TEST(a_lock_that_cannot_write_is_refused)
{
	struct target x = target();

	x.t->no_write = export_at(1, 0);
	map_entry(x.c, 0, node_of(x.t), SCI_PCI_ATT_LOCK, 1, 0);
	CHECK(!readable(&x, 0));
	x.t->no_write = 0;
	CHECK(readable(&x, 0));		/* the lock counts from 0x5a5a5a5a */
	CHECK_EQ(get32(x.t, export_at(1, 0)), 0x5a5a5a5b);
	cards_free();
}

/* ---- forged requests ---- */

static struct sim_packet request(const struct target *x, enum packet_kind kind)
{
	return (struct sim_packet){
		.kind = (uint8_t)kind,
		.size = PACKET_HEADER,
		.source = 12,
		.target = node_of(x->t),
		.epoch = 5,
		.number = 1,
		.floor = 1,
		.address = UINT64_C(1) << 32,
	};
}

static void deliver(struct card *c, struct sim_packet *p)
{
	p->crc = packet_crc(p);
	sim_adapter_receive(c->a, p, p->size);
}

/* Deliver a request and return the status of the response, or -1 without a response. */
static int answer(const struct target *x, struct sim_packet *p)
{
	unsigned int sent = x->t->sent;

	deliver(x->t, p);
	world.flights = 0;	/* drop the response */
	if (x->t->sent == sent)
		return -1;
	CHECK_EQ(x->t->sent, sent + 1);
	CHECK_EQ(x->t->last.kind, p->kind | PACKET_RESPONSE);
	CHECK_EQ(x->t->last.number, p->number);
	CHECK(x->t->last.epoch == p->epoch);
	CHECK_EQ(x->t->last.target, p->source);
	return x->t->last.status;
}

static int write_value(const struct target *x, uint64_t epoch, uint32_t number,
		       uint32_t floor, uint8_t value)
{
	struct sim_packet p = request(x, PACKET_WRITE);

	p.size += 8;
	p.epoch = epoch;
	p.number = number;
	p.floor = floor;
	memset(p.data, value, 8);
	return answer(x, &p);
}

static uint8_t byte(const struct target *x)
{
	return x->t->memory[export_at(1, 0)];
}

TEST(a_request_is_executed_once)
{
	struct target x = target();

	CHECK_EQ(write_value(&x, 5, 1, 1, 10), 0);
	CHECK_EQ(byte(&x), 10);
	CHECK_EQ(write_value(&x, 5, 1, 1, 11), 0);	/* duplicate, not executed */
	CHECK_EQ(byte(&x), 10);
	CHECK_EQ(COUNT(x.t, DUPLICATES), 1);
	CHECK_EQ(write_value(&x, 5, 3, 1, 12), 0);
	CHECK_EQ(write_value(&x, 5, 2, 1, 13), 0);	/* overtaken by 3 */
	CHECK_EQ(write_value(&x, 5, 3, 1, 14), 0);
	CHECK_EQ(byte(&x), 13);
	CHECK_EQ(write_value(&x, 5, 5, 5, 15), 0);
	CHECK_EQ(write_value(&x, 5, 4, 4, 16), -1);	/* below the floor */
	CHECK_EQ(write_value(&x, 5, 3, 1, 17), -1);
	CHECK_EQ(byte(&x), 15);
	CHECK_EQ(COUNT(x.t, DUPLICATES), 4);
	CHECK_EQ(COUNT(x.t, RECEIVED), 4);
	cards_free();
}

TEST(an_old_epoch_counts_as_nothing)
{
	struct target x = target();

	CHECK_EQ(write_value(&x, 5, 7, 7, 10), 0);
	CHECK_EQ(write_value(&x, 6, 1, 1, 11), 0);
	CHECK_EQ(write_value(&x, 5, 8, 8, 12), -1);
	CHECK_EQ(write_value(&x, 5, 2, 2, 12), -1);
	CHECK_EQ(byte(&x), 11);
	CHECK_EQ(write_value(&x, 6, 2, 2, 13), 0);
	CHECK_EQ(byte(&x), 13);
	/* a reset of the target does not revive an old epoch */
	set(x.t, SCI_PCI_CONTROL, SCI_PCI_CONTROL_RESET);
	card_start(x.t);
	CHECK_EQ(write_value(&x, 5, 9, 9, 14), -1);
	CHECK_EQ(write_value(&x, 6, 2, 2, 14), 0);	/* executed before the reset */
	CHECK_EQ(byte(&x), 13);
	CHECK_EQ(write_value(&x, 6, 3, 2, 15), 0);
	CHECK_EQ(byte(&x), 15);
	cards_free();
}

TEST(what_was_refused_stays_refused)
{
	struct target x = target();

	put16(x.t, x.entry + SCI_PCI_EXPORT_FLAGS, 0);
	CHECK_EQ(write_value(&x, 5, 1, 1, 10), SCI_PCI_ERR_PROTECTION);
	export_make(x.t, 1, LENGTH, RIGHTS);
	CHECK_EQ(write_value(&x, 5, 1, 1, 10), SCI_PCI_ERR_PROTECTION);
	CHECK_EQ(byte(&x), 0x5a);
	CHECK_EQ(COUNT(x.t, REFUSED), 1);
	CHECK_EQ(write_value(&x, 5, 2, 1, 10), 0);
	cards_free();
}

TEST(numbers_wrap_around)
{
	struct target x = target();

	for (uint32_t i = 0; i < 600; i++) {
		uint32_t n = ONES - 300 + i;
		uint32_t floor = n - 255;

		CHECK_EQ(write_value(&x, 5, n, floor, (uint8_t)i), 0);
		CHECK_EQ(byte(&x), (uint8_t)i);
		CHECK_EQ(write_value(&x, 5, n, floor, 1), 0);
		CHECK_EQ(byte(&x), (uint8_t)i);
		CHECK_EQ(write_value(&x, 5, floor - 1, floor - 1, 1), -1);
		CHECK_EQ(write_value(&x, 5, n + 1, floor, 1), -1);
		CHECK_EQ(byte(&x), (uint8_t)i);
		/* the first 255 of these numbers are new, the others duplicates */
		CHECK_EQ(write_value(&x, 5, floor, floor, 1), 0);
		CHECK_EQ(byte(&x), i < 255 ? 1 : (uint8_t)i);
	}
	cards_free();
}

TEST(each_source_counts_for_itself)
{
	struct target x = target();

	for (uint32_t s = 16; s < 65536; s += 4) {
		struct sim_packet p = request(&x, PACKET_LOCK);

		p.source = (uint16_t)s;
		CHECK_EQ(answer(&x, &p), 0);
		CHECK_EQ(x.t->last.value, 0x5a5a5a5a + (s - 16) / 4);
	}
	for (uint32_t s = 16; s < 65536; s += 4) {	/* all sources are remembered */
		struct sim_packet p = request(&x, PACKET_LOCK);

		p.source = (uint16_t)s;
		CHECK_EQ(answer(&x, &p), 0);
		CHECK_EQ(x.t->last.value, 0x5a5a5a5a + (s - 16) / 4);
	}
	CHECK_EQ(get32(x.t, export_at(1, 0)), 0x5a5a5a5a + (65536 - 16) / 4);
	cards_free();
}

TEST(packets_that_make_no_sense_are_counted)
{
	struct target x = target();
	struct sim_packet p = request(&x, PACKET_WRITE);
	uint64_t n = 0;

#define NONSENSE(...)							\
	do {								\
		struct sim_packet q_ = p;				\
		struct sim_packet *q = &q_;				\
		__VA_ARGS__;						\
		CHECK_EQ(answer(&x, q), -1);				\
		CHECK_EQ(COUNT(x.t, CRC_ERRORS), ++n);			\
	} while (0)
	p.size += 8;
	NONSENSE(q->target = 16);
	NONSENSE(q->source = node_of(x.t));
	NONSENSE(q->source = 0);
	NONSENSE(q->source = 13);
	NONSENSE(q->kind = 0);
	NONSENSE(q->kind = 7);
	NONSENSE(q->kind = 0x7f);
	NONSENSE(q->size = PACKET_HEADER);
	NONSENSE(q->mask = 1);
	NONSENSE(q->kind = PACKET_READ);
	NONSENSE(q->kind = PACKET_MAILBOX);
	NONSENSE(q->kind = PACKET_LOCK);
	NONSENSE(q->kind = PACKET_INTERRUPT);
	NONSENSE(q->kind = PACKET_READ_CSR);
	NONSENSE(q->kind = PACKET_READ, q->size = PACKET_HEADER);
	NONSENSE(q->kind = PACKET_READ, q->size = PACKET_HEADER,
		 q->length = 129);
	NONSENSE(q->kind = PACKET_READ, q->size = PACKET_HEADER,
		 q->length = 65535);
	NONSENSE(q->number = 257);
	NONSENSE(q->number = 0);
	p.crc = packet_crc(&p) ^ 1;
	sim_adapter_receive(x.t->a, &p, p.size);
	CHECK_EQ(COUNT(x.t, CRC_ERRORS), ++n);
	p.crc = packet_crc(&p);
	for (size_t len = 0; len < 300; len++) {
		uint8_t buf[300] = { 0 };

		if (len == p.size)
			continue;
		memcpy(buf, &p, sizeof(p));
		sim_adapter_receive(x.t->a, buf, len);
		CHECK_EQ(COUNT(x.t, CRC_ERRORS), ++n);
	}
	CHECK_EQ(x.t->sent, 0);
	CHECK_EQ(byte(&x), 0x5a);
	CHECK_EQ(answer(&x, &p), 0);
	sim_adapter_link(x.t->a, false);
	CHECK_EQ(write_value(&x, 5, 2, 2, 1), -1);
	cards_free();
}

TEST(requests_stay_in_a_page)
{
	struct target x = target();
	struct sim_packet p = request(&x, PACKET_WRITE);

	p.size += 128;
	p.address += 4096 - 128;
	CHECK_EQ(answer(&x, &p), 0);
	p.number++;
	p.address++;
	CHECK_EQ(answer(&x, &p), SCI_PCI_ERR_PROTECTION);
	p.number++;
	p.address = UINT64_MAX;
	CHECK_EQ(answer(&x, &p), SCI_PCI_ERR_PROTECTION);
	p.number++;
	p.address = UINT64_C(1) << 48 | UINT64_C(1) << 32;
	CHECK_EQ(answer(&x, &p), SCI_PCI_ERR_PROTECTION);
	p = request(&x, PACKET_LOCK);
	p.number = 10;
	p.address += 2;
	CHECK_EQ(answer(&x, &p), SCI_PCI_ERR_PROTECTION);
	cards_free();
}

/* ---- forged responses ---- */

static struct sim_packet response(const struct sim_packet *q, uint8_t status)
{
	struct sim_packet r = {
		.kind = q->kind | PACKET_RESPONSE,
		.status = status,
		.size = PACKET_HEADER,
		.source = q->target,
		.target = q->source,
		.epoch = q->epoch,
		.number = q->number,
	};

	return r;
}

TEST(answers_that_lie_are_dropped)
{
	struct target x = target();
	struct sim_packet q, r;
	uint32_t v;

	CHECK_EQ(sim_window_read(x.c->a, 0, 0, &v, 4), SIM_BUS_WAIT);
	q = x.c->last;
	for (unsigned int status = 0; status < 256; status++) {
		if (status == SCI_PCI_ERR_NODE ||
		    status == SCI_PCI_ERR_PROTECTION)
			continue;
		r = response(&q, (uint8_t)status);	/* lacks the data */
		deliver(x.c, &r);
	}
	r = response(&q, 0);
	r.size += 8;
	deliver(x.c, &r);
	r = response(&q, 0);
	r.size += 4;
	r.epoch++;
	deliver(x.c, &r);
	r.epoch--;
	r.number++;
	deliver(x.c, &r);
	r.number--;
	r.source = 16;
	deliver(x.c, &r);
	r.source = q.target;
	r.kind = PACKET_RESPONSE | PACKET_WRITE;
	deliver(x.c, &r);
	CHECK_EQ(sim_window_read(x.c->a, 0, 0, &v, 4), SIM_BUS_WAIT);
	r.kind = PACKET_RESPONSE | PACKET_READ;
	memcpy(r.data, "abcd", 4);
	deliver(x.c, &r);
	CHECK_EQ(sim_window_read(x.c->a, 0, 0, &v, 4), SIM_BUS_DONE);
	CHECK(!memcmp(&v, "abcd", 4));
	CHECK_EQ(COUNT(x.c, CRC_ERRORS), 256);
	CHECK_EQ(csr(x.c, SCI_PCI_USER_ERRORS), 0);
	deliver(x.c, &r);			/* a duplicate */
	world_settle();
	cards_free();
}

TEST(only_the_own_requests_are_undeliverable)
{
	struct target x = target();
	struct sim_packet q;

	store_run(x.c, 0, 0, 64, 64, 1);
	q = x.c->last;
	q.number++;
	q.crc = packet_crc(&q);
	sim_adapter_no_node(x.c->a, &q, q.size);
	q = x.c->last;
	q.crc++;
	sim_adapter_no_node(x.c->a, &q, q.size);
	sim_adapter_no_node(x.c->a, &q, 3);
	q = x.c->last;
	q.kind = PACKET_READ;
	q.crc = packet_crc(&q);
	sim_adapter_no_node(x.c->a, &q, q.size);
	q = x.c->last;
	q.epoch--;
	q.crc = packet_crc(&q);
	sim_adapter_no_node(x.c->a, &q, q.size);
	CHECK_EQ(csr(x.c, SCI_PCI_USER_CHECK), 1);
	sim_adapter_no_node(x.c->a, &x.c->last, x.c->last.size);
	CHECK_EQ(csr(x.c, SCI_PCI_USER_CHECK), 0);
	CHECK_EQ(csr(x.c, SCI_PCI_ERROR_CODE), SCI_PCI_ERR_NODE);
	CHECK_EQ(COUNT(x.c, ERRORS_NODE), 1);
	world_settle();
	CHECK_EQ(csr(x.c, SCI_PCI_USER_ERRORS), 1);
	cards_free();
}

TEST(the_check_sum_is_that_of_zlib)
{
	struct sim_packet p = { .size = PACKET_HEADER + 5 };
	uint8_t *bytes = (uint8_t *)&p + 4;
	uint32_t crc;

	/* compute the CRC bit by bit, for all lengths */
	for (unsigned int i = 0; i < sizeof(p) - 4; i++)
		bytes[i] = (uint8_t)any();
	for (size_t size = 12; size <= sizeof(p); size++) {
		p.size = (uint16_t)size;
		crc = ONES;
		for (unsigned int i = 0; i < size - 4; i++) {
			crc ^= bytes[i];
			for (unsigned int b = 0; b < 8; b++)
				crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
		}
		CHECK_EQ(packet_crc(&p), ~crc);
	}
}
