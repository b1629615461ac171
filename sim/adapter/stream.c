// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Stream buffers: section 5 of the data sheet. A buffer is free, gathers the stores of one
 * initiator, or leaves: its packets wait to become transactions.
 */
#include "sim/adapter/model.h"

static uint32_t stream_bit(const struct sim_adapter *a, const struct stream *s)
{
	return 1u << (s - a->stream);
}

static struct stream *stream_first(struct sim_adapter *a, uint32_t bits)
{
	return &a->stream[__builtin_ctz(bits)];
}

/* ---- gathering ---- */

static void stream_fill(struct stream *s, unsigned int at, const void *data,
			size_t len)
{
	uint64_t bits = UINT64_MAX >> (64 - len);

	memcpy(s->data + at, data, len);
	s->filled[at / 64] |= bits << at % 64;
	if (at % 64 + len > 64)
		s->filled[1] |= bits >> (64 - at % 64);
}

static bool stream_is_half_full(const struct stream *s, unsigned int half)
{
	return s->filled[half] == UINT64_MAX;
}

static bool stream_full(const struct sim_adapter *a, const struct stream *s)
{
	return stream_is_half_full(s, 0) && (a->line_mask < 64 || stream_is_half_full(s, 1));
}

static uint8_t stream_units(const struct stream *s)
{
	unsigned int units = 0;

	for (unsigned int i = 0; i < PACKET_DATA_MAX / UNIT; i++)
		if (s->filled[i / 4] >> i % 4 * UNIT & 0xffff)
			units |= 1u << i;
	return (uint8_t)units;
}

static void stream_leave(struct sim_adapter *a, struct stream *s)
{
	struct initiator *in = &a->initiator[s->initiator];

	if (in->stream == s)
		in->stream = NULL;
	a->streams_gather &= ~stream_bit(a, s);
	s->todo = s->attr & SCI_PCI_ATT_INTERRUPT ? 1 : stream_units(s);
	s->begun = false;
	s->order.ticket = a->status.ticket;
	link_add(&s->order.link, &a->order);
	link_add(&s->wait.link, &a->waiters);
	a->retry = true;
}

static struct stream *stream_oldest(struct sim_adapter *a)
{
	struct stream *oldest = NULL;

	for (uint32_t bits = a->streams_gather; bits; bits &= bits - 1) {
		struct stream *s = stream_first(a, bits);

		if (!oldest || s->age < oldest->age)
			oldest = s;
	}
	return oldest;
}

static struct stream *stream_take(struct sim_adapter *a)
{
	struct stream *s;

	if (!a->streams_free)
		transaction_run(a);
	while (!a->streams_free && a->streams_gather) {
		counter_add(a, SCI_PCI_CNT_GATHER_EVICTED);
		stream_leave(a, stream_oldest(a));
		transaction_run(a);
	}
	if (!a->streams_free)
		return NULL;
	s = stream_first(a, a->streams_free);
	a->streams_free &= ~stream_bit(a, s);
	return s;
}

static void stream_open(struct sim_adapter *a, struct stream *s,
			const struct att *e, unsigned int initiator)
{
	s->address = e->address & ~(uint64_t)a->line_mask;
	s->wait.line = e->attr & SCI_PCI_ATT_INTERRUPT ? NO_LINE : s->address;
	s->filled[0] = 0;
	s->filled[1] = 0;
	s->age = a->stream_age++;
	s->page = e->page;
	s->value = e->value;
	s->attr = e->attr;
	s->initiator = (uint8_t)initiator;
	a->streams_gather |= stream_bit(a, s);
}

static void stream_wait(struct sim_adapter *a, struct stream *s,
			struct initiator *in)
{
	in->stream = s;
	s->deadline = a->host->now(a->ctx) + a->gather_ns;
	adapter_until(a, s->deadline);
}

/* Store @len bytes into a new buffer, as the store does not continue the last one. */
static enum sim_bus window_begin(struct sim_adapter *a, unsigned int initiator,
				 uint64_t offset, const void *data, size_t len)
{
	struct initiator *in = &a->initiator[initiator];
	struct stream *s;
	struct att e;
	bool gathers;

	if (in->stream) {
		counter_add(a, SCI_PCI_CNT_GATHER_BROKEN);
		stream_leave(a, in->stream);
	}
	if (!att_lookup(a, offset, true, &e)) {
		in->stalled = false;
		return SIM_BUS_DONE;
	}
	gathers = !(e.attr & (SCI_PCI_ATT_INTERRUPT | SCI_PCI_ATT_NO_GATHER));
	if (!(e.attr & SCI_PCI_ATT_INTERRUPT)) {
		uint64_t line = e.address & ~(uint64_t)a->line_mask;

		stream_flush_line(a, line, SCI_PCI_CNT_GATHER_BROKEN);
		read_overtaken(a, line);
	}
	s = stream_take(a);
	if (!s) {
		if (!in->stalled)
			counter_add(a, SCI_PCI_CNT_STALLS);
		in->stalled = true;
		return SIM_BUS_WAIT;
	}
	in->stalled = false;
	in->next = offset + len;
	stream_open(a, s, &e, initiator);
	stream_fill(s, (unsigned int)(offset & a->line_mask), data, len);
	if (gathers && !stream_full(a, s))
		stream_wait(a, s, in);
	else
		stream_leave(a, s);
	a->counter[SCI_PCI_CNT_STORE_BYTES] += len;
	return SIM_BUS_DONE;
}

enum sim_bus sim_window_write(struct sim_adapter *a, unsigned int initiator,
			      uint64_t offset, const void *data, size_t len)
{
	struct initiator *in = &a->initiator[initiator % SIM_INITIATORS];
	unsigned int at = (unsigned int)(offset & a->line_mask);
	struct stream *s = in->stream;
	enum sim_bus bus = SIM_BUS_DONE;

	if (!len || len > 64 || at + len > a->line_mask + 1 ||
	    a->config.direct)
		return SIM_BUS_DONE;
	if (s && offset == in->next && at) {
		stream_fill(s, at, data, len);
		in->next += len;
		a->counter[SCI_PCI_CNT_STORE_BYTES] += len;
		if (!stream_full(a, s))
			return SIM_BUS_DONE;
		stream_leave(a, s);
	} else {
		bus = window_begin(a, initiator % SIM_INITIATORS, offset, data,
				   len);
	}
	adapter_settle(a);
	return bus;
}

/* ---- leaving ---- */

struct piece {
	unsigned int at;
	unsigned int len;
	unsigned int units;
	uint16_t mask;
};

/* Return the next packet of a buffer. */
static struct piece stream_piece(const struct sim_adapter *a,
				 const struct stream *s)
{
	unsigned int unit = (unsigned int)__builtin_ctz(s->todo);

	if (s->todo == 0xff && stream_full(a, s) && a->line_mask > 63 &&
	    !(s->attr & SCI_PCI_ATT_NO_128))
		return (struct piece){ .len = 128, .units = 0xff };
	if (unit % 4 == 0 && stream_is_half_full(s, unit / 4))
		return (struct piece){ .at = unit * UNIT, .len = 64,
				       .units = 0xfu << unit };
	return (struct piece){
		.at = unit * UNIT,
		.len = UNIT,
		.units = 1u << unit,
		.mask = (uint16_t)(s->filled[unit / 4] >> unit % 4 * UNIT),
	};
}

static void stream_write(struct sim_adapter *a, struct transaction *t,
			 const struct stream *s, const struct piece *p)
{
	t->packet.size = (uint16_t)(PACKET_HEADER + p->len);
	t->packet.mask = p->mask;
	t->packet.address = (s->address & ADDRESS_BITS) + p->at;
	memcpy(t->packet.data, s->data + p->at, p->len);
	counter_add(a, p->len == UNIT ? SCI_PCI_CNT_WRITES_16 :
		    p->len == 64 ? SCI_PCI_CNT_WRITES_64 : SCI_PCI_CNT_WRITES_128);
}

static void stream_send(struct sim_adapter *a, struct stream *s,
			const struct piece *p)
{
	bool interrupt = s->attr & SCI_PCI_ATT_INTERRUPT;
	struct transaction *t;

	t = transaction_new(a, OWNER_STORE, (uint16_t)(s->address >> 48),
			    interrupt ? PACKET_INTERRUPT : PACKET_WRITE);
	if (interrupt) {
		t->packet.value = s->value;
		counter_add(a, SCI_PCI_CNT_INTERRUPTS_SENT);
	} else {
		stream_write(a, t, s, p);
	}
	t->order.ticket = s->order.ticket;
	link_add(&t->order.link, &s->order.link);
	transaction_begin(a, t, s->wait.line);
}

/*
 * Make transactions of the buffer's packets, as far as possible now. Packets of one buffer share
 * no bytes, so only the first packet waits for older packets of its line.
 */
void stream_issue(struct sim_adapter *a, struct stream *s)
{
	uint16_t node = (uint16_t)(s->address >> 48);

	while (s->todo) {
		struct piece p = stream_piece(a, s);
		enum sci_pci_error error = transaction_reach(a, node);

		if (error)
			status_error(a, error, node, s->address + p.at);
		else if (transaction_ready(a, node,
					   s->begun ? NO_LINE : s->wait.line))
			stream_send(a, s, &p);
		else
			return;
		s->begun = true;
		s->todo &= (uint8_t)~p.units;
	}
	link_del(&s->wait.link);
	link_del(&s->order.link);
	a->streams_free |= stream_bit(a, s);
}

/* ---- reasons to leave before a buffer is full ---- */

void stream_flush(struct sim_adapter *a)
{
	while (a->streams_gather)
		stream_leave(a, stream_oldest(a));
}

void stream_flush_page(struct sim_adapter *a, uint32_t page)
{
	for (uint32_t bits = a->streams_gather; bits; bits &= bits - 1) {
		struct stream *s = stream_first(a, bits);

		if (s->page == page)
			stream_leave(a, s);
	}
}

void stream_flush_line(struct sim_adapter *a, uint64_t line,
		       enum sci_pci_counter counter)
{
	for (uint32_t bits = a->streams_gather; bits; bits &= bits - 1) {
		struct stream *s = stream_first(a, bits);

		if (s->address != line)
			continue;
		if (counter != SCI_PCI_COUNTERS_COUNT)
			counter_add(a, counter);
		stream_leave(a, s);
	}
}

void stream_expire(struct sim_adapter *a, uint64_t now)
{
	for (uint32_t bits = a->streams_gather; bits; bits &= bits - 1) {
		struct stream *s = stream_first(a, bits);

		if (s->deadline > now)
			continue;
		counter_add(a, SCI_PCI_CNT_GATHER_TIMEOUTS);
		stream_leave(a, s);
	}
}

uint64_t stream_deadline(const struct sim_adapter *a)
{
	uint64_t first = SIM_NEVER;

	for (uint32_t bits = a->streams_gather; bits; bits &= bits - 1) {
		const struct stream *s = &a->stream[__builtin_ctz(bits)];

		if (s->deadline < first)
			first = s->deadline;
	}
	return first;
}

void stream_reset(struct sim_adapter *a)
{
	a->streams_free = (1u << a->config.streams) - 1;
	a->streams_gather = 0;
	for (unsigned int i = 0; i < STREAMS_MAX; i++) {
		a->stream[i].wait.read = false;
		link_init(&a->stream[i].wait.link);
		link_init(&a->stream[i].order.link);
	}
	for (unsigned int i = 0; i < SIM_INITIATORS; i++) {
		a->initiator[i].stream = NULL;
		a->initiator[i].stalled = false;
	}
}
