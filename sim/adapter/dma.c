// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The DMA engine: section 13 of the data sheet. Its ring may contain any bytes. */
#include "sim/adapter/model.h"

struct descriptor {
	uint64_t local;
	uint64_t remote;
	uint32_t length;
	uint16_t node;
	uint16_t flags;
	uint32_t status;
	uint32_t done;
	uint8_t unused[32];
};

static_assert(sizeof(struct descriptor) == SCI_PCI_DESC_SIZE &&
	      offsetof(struct descriptor, remote) == SCI_PCI_DESC_REMOTE &&
	      offsetof(struct descriptor, length) == SCI_PCI_DESC_LENGTH &&
	      offsetof(struct descriptor, node) == SCI_PCI_DESC_NODE &&
	      offsetof(struct descriptor, flags) == SCI_PCI_DESC_FLAGS &&
	      offsetof(struct descriptor, status) == SCI_PCI_DESC_STATUS &&
	      offsetof(struct descriptor, done) == SCI_PCI_DESC_DONE,
	      "as in memory");

/* ---- registers ---- */

static void dma_stop(struct sim_adapter *a)
{
	status_stop(a, &a->dma.ring.stopped);
	a->dma.run++;
	a->dma.busy = false;
}

void dma_begin(struct sim_adapter *a, uint32_t entries)
{
	struct dma *d = &a->dma;

	if (ring_set_entries(a, &d->ring, entries, SCI_PCI_DMA_ENTRIES_MIN,
			     SCI_PCI_DMA_ENTRIES_MAX)) {
		d->chain = false;
		d->abort = false;
	}
	d->run++;
	d->busy = false;
	d->outstanding = 0;
}

void dma_doorbell(struct sim_adapter *a, uint32_t tail)
{
	struct ring *r = &a->dma.ring;

	if (r->stopped)
		return;
	if (tail - r->head > r->entries || tail - r->head < r->tail - r->head)
		dma_stop(a);
	else
		r->tail = tail;
}

void dma_abort(struct sim_adapter *a)
{
	struct dma *d = &a->dma;

	if (d->ring.stopped || d->ring.head == d->ring.tail)
		return;
	d->abort = true;
	d->abort_tail = d->ring.tail;
}

/* ---- descriptors ---- */

static uint64_t descriptor_at(const struct dma *d)
{
	return d->ring.base + (uint64_t)(d->ring.head & (d->ring.entries - 1)) *
	       SCI_PCI_DESC_SIZE;
}

static void error_first(struct dma *d, enum sci_pci_error error, uint32_t at)
{
	if (!d->error)
		d->error = error;
	if (at < d->good)
		d->good = at;
}

static void descriptor_check(const struct sim_adapter *a, struct dma *d)
{
	if (!d->length || d->length > a->config.dma_max)
		error_first(d, SCI_PCI_ERR_DRIVER, 0);
	else if (d->remote & ~ADDRESS_BITS ||
		 (d->remote & UINT32_MAX) + d->length - 1 > UINT32_MAX)
		error_first(d, SCI_PCI_ERR_PROTECTION, 0);
	else if (d->local + d->length - 1 < d->local)
		error_first(d, SCI_PCI_ERR_BUS, 0);
}

static void descriptor_fetch(struct sim_adapter *a)
{
	struct dma *d = &a->dma;
	struct descriptor x = { 0 };
	bool there = a->host->dma_read(a->ctx, descriptor_at(d), &x, sizeof(x));

	d->busy = true;
	d->local = x.local;
	d->remote = x.remote;
	d->length = x.length;
	d->node = x.node;
	d->flags = there ? x.flags : 0;
	d->issued = 0;
	d->good = UINT32_MAX;
	d->outstanding = 0;
	d->error = SCI_PCI_ERR_NONE;
	if (!there)
		error_first(d, SCI_PCI_ERR_BUS, 0);
	else if (d->chain || d->abort)
		error_first(d, SCI_PCI_ERR_ABORTED, 0);
	else
		descriptor_check(a, d);
}

static void descriptor_report(struct sim_adapter *a)
{
	struct dma *d = &a->dma;
	uint32_t words[2] = {
		d->error ? SCI_PCI_DESC_FAILED + d->error : SCI_PCI_DESC_OK,
		d->good < d->issued ? d->good : d->issued,
	};

	if (d->error)
		counter_add(a, SCI_PCI_CNT_DMA_ERRORS);
	if (d->error && d->error != SCI_PCI_ERR_ABORTED &&
	    d->error != SCI_PCI_ERR_DRIVER)
		status_error(a, d->error, d->node, d->remote + words[1]);
	if (!a->host->dma_write(a->ctx, descriptor_at(d) + SCI_PCI_DESC_STATUS,
				words, sizeof(words)))
		status_error(a, SCI_PCI_ERR_BUS, d->node, d->remote);
}

static void descriptor_end(struct sim_adapter *a)
{
	struct dma *d = &a->dma;

	descriptor_report(a);
	d->busy = false;
	d->chain = d->error && d->flags & SCI_PCI_DESC_CHAIN;
	d->ring.head++;
	if (d->ring.head == d->abort_tail)
		d->abort = false;
	if (d->error || d->flags & SCI_PCI_DESC_IRQ)
		interrupt_raise(a, SCI_PCI_INT_DMA);
	if (d->error == SCI_PCI_ERR_DRIVER)
		dma_stop(a);
}

/* ---- requests ---- */

static uint32_t length_min(uint32_t x, uint64_t y)
{
	return y < x ? (uint32_t)y : x;
}

/* Return the bytes of the next request: it crosses no remote line and no local page. */
static uint32_t piece_len(const struct sim_adapter *a, const struct dma *d)
{
	uint64_t local = d->local + d->issued;
	uint64_t remote = d->remote + d->issued;
	uint32_t len = d->length - d->issued;

	len = length_min(len, a->line_mask + 1 - (remote & a->line_mask));
	return length_min(len, SCI_PCI_PAGE - (local & (SCI_PCI_PAGE - 1)));
}

static bool piece_push(struct sim_adapter *a, struct transaction *t,
		       uint32_t len)
{
	t->packet.size = (uint16_t)(PACKET_HEADER + len);
	t->packet.mask = len == UNIT ? 0xffff : 0;
	return a->host->dma_read(a->ctx, a->dma.local + a->dma.issued,
				 t->packet.data, len);
}

/* Send the next request of the descriptor. Return false if the request has to wait. */
static bool piece_send(struct sim_adapter *a)
{
	struct dma *d = &a->dma;
	bool pull = d->flags & SCI_PCI_DESC_PULL;
	uint64_t address = d->remote + d->issued;
	uint64_t line = ((uint64_t)d->node << 48 | address) &
			~(uint64_t)a->line_mask;
	enum sci_pci_error error = transaction_reach(a, d->node);
	uint32_t len = piece_len(a, d);
	struct transaction *t;

	if (error) {
		error_first(d, error, d->issued);
		return true;
	}
	if (!transaction_ready(a, d->node, line))
		return false;
	t = transaction_new(a, OWNER_DMA, d->node,
			    pull ? PACKET_READ : PACKET_WRITE);
	t->packet.address = address;
	t->packet.length = pull ? (uint16_t)len : 0;
	t->dma_run = d->run;
	t->dma_offset = d->issued;
	if (!pull && !piece_push(a, t, len)) {
		transaction_cancel(a, t);
		error_first(d, SCI_PCI_ERR_BUS, d->issued);
		return true;
	}
	counter_add(a, pull ? SCI_PCI_CNT_DMA_READS : SCI_PCI_CNT_DMA_WRITES);
	d->issued += len;
	d->outstanding++;
	transaction_begin(a, t, line);
	return true;
}

static uint32_t piece_done(const struct transaction *t)
{
	if (t->packet.kind == PACKET_READ)
		return t->packet.length;
	return t->packet.size - (uint32_t)PACKET_HEADER;
}

void dma_end(struct sim_adapter *a, const struct transaction *t,
	     enum sci_pci_error error, const struct sim_packet *response)
{
	struct dma *d = &a->dma;
	uint32_t len = piece_done(t);

	if (t->dma_run != d->run)
		return;
	d->outstanding--;
	if (!error && t->packet.kind == PACKET_READ &&
	    !a->host->dma_write(a->ctx, d->local + t->dma_offset,
				response->data, len))
		error = SCI_PCI_ERR_BUS;
	if (error)
		error_first(d, error, t->dma_offset);
	else
		a->counter[SCI_PCI_CNT_DMA_BYTES] += len;
}

/* ---- the engine ---- */

static bool dma_step(struct sim_adapter *a)
{
	struct dma *d = &a->dma;

	if (!d->busy) {
		if (d->ring.head == d->ring.tail)
			return false;
		descriptor_fetch(a);
		return true;
	}
	if (!d->error && !d->abort && d->issued < d->length)
		return piece_send(a);
	if (d->outstanding)
		return false;
	if (!d->error && d->issued < d->length)
		d->error = SCI_PCI_ERR_ABORTED;
	descriptor_end(a);
	return true;
}

bool dma_run(struct sim_adapter *a)
{
	bool did = false;

	while (a->budget && !a->dma.ring.stopped && dma_step(a)) {
		a->budget--;
		did = true;
	}
	return did;
}
