// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Loads from the window, locks and prefetched lines: sections 4 and 6 of the data sheet. */
#include "sim/adapter/model.h"

/* ---- prefetched lines ---- */

static bool kept_find(struct sim_adapter *a, struct read *r)
{
	if (!a->kept_any)
		return false;
	for (unsigned int i = 0; i < KEPT_LINES; i++) {
		const struct kept *k = &a->kept[i];
		uint64_t at = r->address - k->address;

		/* r->address + r->len may be 2^64 */
		if (k->address == NO_LINE || r->address < k->address ||
		    at >= k->len || r->len > k->len - at)
			continue;
		if (a->host->now(a->ctx) >= k->until)
			return false;
		memcpy(r->data, k->data + at, r->len);
		return true;
	}
	return false;
}

static void kept_drop(struct sim_adapter *a, uint64_t line)
{
	if (!a->kept_any)
		return;
	for (unsigned int i = 0; i < KEPT_LINES; i++)
		if ((a->kept[i].address & ~(uint64_t)a->line_mask) == line)
			a->kept[i].address = NO_LINE;
}

static void kept_add(struct sim_adapter *a, uint64_t address,
		     const void *data, uint32_t len)
{
	struct kept *k;

	kept_drop(a, address & ~(uint64_t)a->line_mask);
	k = &a->kept[a->kept_next++ % KEPT_LINES];
	k->address = address;
	k->until = a->host->now(a->ctx) + a->gather_ns;
	k->len = len;
	memcpy(k->data, data, len);
	a->kept_any = true;
}

/* Drop older copies of a line that is about to be overwritten. */
void read_overtaken(struct sim_adapter *a, uint64_t line)
{
	kept_drop(a, line);
	for (unsigned int i = 0; a->reads && i < SIM_INITIATORS; i++)
		if (a->initiator[i].read.wait.line == line)
			a->initiator[i].read.keep = false;
}

void read_forget(struct sim_adapter *a)
{
	for (unsigned int i = 0; a->kept_any && i < KEPT_LINES; i++)
		a->kept[i].address = NO_LINE;
	a->kept_any = false;
	for (unsigned int i = 0; a->reads && i < SIM_INITIATORS; i++)
		a->initiator[i].read.keep = false;
}

/* ---- loads ---- */

static void read_set(struct sim_adapter *a, struct read *r,
		     enum read_state state)
{
	if (state == READ_NONE && r->state != READ_NONE)
		a->reads--;
	if (state != READ_NONE && r->state == READ_NONE)
		a->reads++;
	r->state = (uint8_t)state;
}

static void read_wait(struct sim_adapter *a, struct read *r)
{
	link_add(&r->wait.link, &a->waiters);
	read_set(a, r, READ_WAITS);
	a->retry = true;
}

static void read_start(struct sim_adapter *a, struct read *r, uint64_t offset,
		       size_t len)
{
	struct att e;

	r->offset = offset;
	r->len = (uint8_t)len;
	r->wait.line = NO_LINE;
	memset(r->data, 0xff, sizeof(r->data));
	read_set(a, r, READ_DONE);
	if (!att_lookup(a, offset, false, &e))
		return;
	if (e.attr & SCI_PCI_ATT_LOCK && (len != 4 || offset & 3)) {
		status_error(a, SCI_PCI_ERR_ATT, e.node, e.address);
		return;
	}
	r->address = e.address;
	r->attr = e.attr;
	r->exact = !(e.attr & SCI_PCI_ATT_PREFETCH);
	r->keep = true;
	r->wait.line = e.address & ~(uint64_t)a->line_mask;
	if (!(e.attr & SCI_PCI_ATT_LOCK) && !r->exact && kept_find(a, r))
		return;
	stream_flush_line(a, r->wait.line, SCI_PCI_COUNTERS_COUNT);
	read_wait(a, r);
}

/* Abandon a read whose initiator has stopped waiting. */
static void read_abandon(struct sim_adapter *a, struct read *r)
{
	if (r->state == READ_WAITS)
		link_del(&r->wait.link);
	if (r->state == READ_SENT)
		r->sent->initiator = SIM_INITIATORS;
	read_set(a, r, READ_NONE);
}

enum sim_bus sim_window_read(struct sim_adapter *a, unsigned int initiator,
			     uint64_t offset, void *data, size_t len)
{
	struct read *r = &a->initiator[initiator % SIM_INITIATORS].read;

	if (!len || len > 8 || (offset & a->line_mask) + len > a->line_mask + 1 ||
	    a->config.direct) {
		memset(data, 0xff, len);
		return SIM_BUS_DONE;
	}
	if (r->state != READ_NONE && (r->offset != offset || r->len != len))
		read_abandon(a, r);
	if (r->state == READ_NONE)
		read_start(a, r, offset, len);
	adapter_settle(a);
	if (r->state != READ_DONE)
		return SIM_BUS_WAIT;
	memcpy(data, r->data, len);
	read_set(a, r, READ_NONE);
	return SIM_BUS_DONE;
}

/* ---- transactions of loads ---- */

static void read_whole(const struct sim_adapter *a, const struct read *r,
		       struct sim_packet *p)
{
	uint32_t mask = r->attr & SCI_PCI_ATT_NO_128 ? 63 : a->line_mask;

	/* ask for the whole line if the load crosses from one half into the other */
	if ((r->address & mask) + r->len > mask + 1)
		mask = a->line_mask;
	p->address &= ~(uint64_t)mask;
	p->length = (uint16_t)(mask + 1);
}

void read_issue(struct sim_adapter *a, struct read *r)
{
	bool lock = r->attr & SCI_PCI_ATT_LOCK;
	uint16_t node = (uint16_t)(r->address >> 48);
	enum sci_pci_error error = transaction_reach(a, node);
	struct initiator *in = LINK_OF(r, struct initiator, read);
	struct transaction *t;

	if (!error && !transaction_ready(a, node, r->wait.line))
		return;
	link_del(&r->wait.link);
	if (error) {
		status_error(a, error, node, r->address);
		read_set(a, r, READ_DONE);
		return;
	}
	counter_add(a, lock ? SCI_PCI_CNT_LOCKS : SCI_PCI_CNT_READS);
	t = transaction_new(a, OWNER_READ, node,
			    lock ? PACKET_LOCK : PACKET_READ);
	t->packet.address = r->address & ADDRESS_BITS;
	t->packet.length = lock ? 0 : r->len;
	if (!lock && !r->exact)
		read_whole(a, r, &t->packet);
	t->initiator = (uint8_t)(in - a->initiator);
	r->sent = t;
	read_set(a, r, READ_SENT);
	transaction_begin(a, t, r->wait.line);
}

static void read_take(struct sim_adapter *a, struct read *r,
		      const struct sim_packet *request,
		      const struct sim_packet *response)
{
	uint64_t base = (r->address & ~ADDRESS_BITS) | request->address;

	if (request->kind == PACKET_LOCK) {
		memcpy(r->data, &response->value, sizeof(response->value));
		return;
	}
	memcpy(r->data, response->data + (r->address - base), r->len);
	if (!r->exact && r->keep)
		kept_add(a, base, response->data, request->length);
}

void read_end(struct sim_adapter *a, const struct transaction *t,
	      enum sci_pci_error error, const struct sim_packet *response)
{
	bool waits = t->initiator < SIM_INITIATORS;
	struct read *r = &a->initiator[t->initiator % SIM_INITIATORS].read;

	/* the whole line may exceed the export: ask for the exact bytes */
	if (waits && error == SCI_PCI_ERR_PROTECTION && !r->exact &&
	    t->packet.kind == PACKET_READ) {
		r->exact = true;
		read_wait(a, r);
		return;
	}
	if (error)
		status_error(a, error, t->packet.target, t->packet.address);
	if (!waits)
		return;
	if (!error)
		read_take(a, r, &t->packet, response);
	read_set(a, r, READ_DONE);
}

void read_reset(struct sim_adapter *a)
{
	for (unsigned int i = 0; i < SIM_INITIATORS; i++) {
		struct read *r = &a->initiator[i].read;

		*r = (struct read){ .wait.read = true, .wait.line = NO_LINE };
		link_init(&r->wait.link);
	}
	a->reads = 0;
	a->kept_any = true;
	read_forget(a);
}
