// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Requests of other nodes, each executed at most once: section 6 of the data sheet.
 *
 * The responder stores three things for each source: the epoch; the number below which the source
 * has no outstanding request (the floor); and the answers to PACKET_WINDOW numbers from the floor
 * on. Reads change nothing, so the responder executes every copy of a read.
 */
#include <stdlib.h>

#include "sim/adapter/model.h"

/* ---- executed requests ---- */

static unsigned int request_executed(const struct node *p, uint32_t number)
{
	return p->executed[number % PACKET_WINDOW / 2] >> number % 2 * 4 & 0xf;
}

static void executed_set(struct node *p, uint32_t number, unsigned int what)
{
	uint8_t *e = &p->executed[number % PACKET_WINDOW / 2];
	unsigned int shift = number % 2 * 4;

	*e = (uint8_t)((*e & ~(0xfu << shift)) | what << shift);
}

static void floor_raise(struct node *p, uint32_t floor)
{
	if (floor - p->floor >= PACKET_WINDOW)
		memset(p->executed, 0, sizeof(p->executed));
	else
		for (uint32_t n = p->floor; n != floor; n++)
			executed_set(p, n, 0);
	p->floor = floor;
}

/* Take over epoch and floor of a request. Return whether the request may still be executed. */
static bool source_admits(struct sim_adapter *a, struct node *p,
			  const struct sim_packet *q)
{
	if (p->known && q->epoch < p->epoch) {
		counter_add(a, SCI_PCI_CNT_DUPLICATES);
		return false;
	}
	if (q->number - q->floor >= PACKET_WINDOW) {
		counter_add(a, SCI_PCI_CNT_CRC_ERRORS);
		return false;
	}
	if (!p->known || q->epoch > p->epoch) {
		memset(p->executed, 0, sizeof(p->executed));
		p->known = true;
		p->epoch = q->epoch;
		p->floor = q->floor;
	}
	if ((int32_t)(q->floor - p->floor) > 0)
		floor_raise(p, q->floor);
	if (q->number - p->floor < PACKET_WINDOW)
		return true;
	counter_add(a, SCI_PCI_CNT_DUPLICATES);
	return false;
}

/* ---- memory ---- */

static uint16_t data_len(const struct sim_packet *q)
{
	return (uint16_t)(q->size - PACKET_HEADER);
}

/* Write the bytes that the mask of a 16-byte packet names, run by run. */
static bool bytes_write_masked(struct sim_adapter *a, const struct sim_packet *q,
			       uint64_t bus)
{
	unsigned int mask = q->mask;

	while (mask) {
		unsigned int at = (unsigned int)__builtin_ctz(mask);
		unsigned int len = (unsigned int)__builtin_ctz(~(mask >> at));

		if (!a->host->dma_write(a->ctx, bus + at, q->data + at, len))
			return false;
		mask &= ~(((1u << len) - 1) << at);
	}
	return true;
}

static enum sci_pci_error responder_write(struct sim_adapter *a,
					  const struct sim_packet *q)
{
	uint16_t len = data_len(q);
	uint64_t bus;
	bool done;

	if (!export_find(a, q->address, len, SCI_PCI_EXPORT_WRITE, &bus))
		return SCI_PCI_ERR_PROTECTION;
	if (len == UNIT)
		done = bytes_write_masked(a, q, bus);
	else
		done = a->host->dma_write(a->ctx, bus, q->data, len);
	if (!done)
		return SCI_PCI_ERR_PROTECTION;
	a->counter[SCI_PCI_CNT_RECEIVED_BYTES] += len == UNIT ?
		(unsigned int)__builtin_popcount(q->mask) : len;
	return SCI_PCI_ERR_NONE;
}

static enum sci_pci_error responder_read(struct sim_adapter *a,
					 const struct sim_packet *q,
					 struct sim_packet *r)
{
	uint64_t bus;

	if (!export_find(a, q->address, q->length, SCI_PCI_EXPORT_READ, &bus) ||
	    !a->host->dma_read(a->ctx, bus, r->data, q->length))
		return SCI_PCI_ERR_PROTECTION;
	r->size = (uint16_t)(PACKET_HEADER + q->length);
	return SCI_PCI_ERR_NONE;
}

static enum sci_pci_error responder_lock(struct sim_adapter *a, struct node *p,
					 const struct sim_packet *q)
{
	uint32_t old;
	uint32_t new;
	uint64_t bus;

	if (q->address & 3 ||
	    !export_find(a, q->address, sizeof(old),
			 SCI_PCI_EXPORT_READ | SCI_PCI_EXPORT_WRITE, &bus) ||
	    !a->host->dma_read(a->ctx, bus, &old, sizeof(old)))
		return SCI_PCI_ERR_PROTECTION;
	new = old + 1;
	if (!a->host->dma_write(a->ctx, bus, &new, sizeof(new)))
		return SCI_PCI_ERR_PROTECTION;
	p->values[q->number % PACKET_WINDOW] = old;
	return SCI_PCI_ERR_NONE;
}

static enum sci_pci_error responder_ring(struct sim_adapter *a,
					 const struct sim_packet *q)
{
	enum sci_pci_error error = rx_put(a, q);

	if (error)
		counter_add(a, SCI_PCI_CNT_MBOX_BUSY);
	else if (q->kind == PACKET_MAILBOX)
		counter_add(a, SCI_PCI_CNT_MBOX_RECEIVED);
	else
		counter_add(a, SCI_PCI_CNT_INTERRUPTS_RECEIVED);
	return error;
}

/* ---- requests ---- */

static bool request_valid(const struct sim_packet *q)
{
	uint16_t len = data_len(q);

	switch (q->kind) {
	case PACKET_WRITE:
		return len && (len == UNIT || !q->mask);
	case PACKET_READ:
		return !len && q->length && q->length <= PACKET_DATA_MAX;
	case PACKET_MAILBOX:
		return len == SCI_PCI_MBOX_SIZE;
	case PACKET_LOCK:
	case PACKET_INTERRUPT:
	case PACKET_READ_CSR:
		return !len;
	default:
		return false;
	}
}

static enum sci_pci_error request_execute(struct sim_adapter *a, struct node *p,
					  const struct sim_packet *q,
					  struct sim_packet *r)
{
	switch (q->kind) {
	case PACKET_WRITE:
		return responder_write(a, q);
	case PACKET_READ:
		return responder_read(a, q, r);
	case PACKET_LOCK:
		return responder_lock(a, p, q);
	case PACKET_READ_CSR:
		if (q->address <= UINT32_MAX &&
		    csr_public(a, (uint32_t)q->address, &r->value))
			return SCI_PCI_ERR_NONE;
		return SCI_PCI_ERR_PROTECTION;
	default:
		return responder_ring(a, q);
	}
}

static void request_respond(struct sim_adapter *a, struct node *p,
			    const struct sim_packet *q, struct sim_packet *r)
{
	unsigned int before = request_executed(p, q->number);
	enum sci_pci_error error;

	if (before) {
		counter_add(a, SCI_PCI_CNT_DUPLICATES);
		r->status = (uint8_t)(before - 1);
	} else {
		error = request_execute(a, p, q, r);
		if (!error)
			counter_add(a, SCI_PCI_CNT_RECEIVED);
		if (error == SCI_PCI_ERR_PROTECTION)
			counter_add(a, SCI_PCI_CNT_REFUSED);
		r->status = (uint8_t)error;
		if (q->kind != PACKET_READ && q->kind != PACKET_READ_CSR)
			executed_set(p, q->number, error + 1u);
	}
	if (q->kind == PACKET_LOCK && !r->status)
		r->value = p->values[q->number % PACKET_WINDOW];
}

/* Execute @q and fill in @r, except its check sum. Return false if there is no answer. */
bool responder_answer(struct sim_adapter *a, const struct sim_packet *q,
		      struct sim_packet *r)
{
	struct node *p;

	if (!request_valid(q)) {
		counter_add(a, SCI_PCI_CNT_CRC_ERRORS);
		return false;
	}
	p = node_get(a, q->source);
	if (!p || !source_admits(a, p, q))
		return false;
	if (q->kind == PACKET_LOCK && !p->values)
		p->values = calloc(PACKET_WINDOW, sizeof(*p->values));
	if (q->kind == PACKET_LOCK && !p->values)
		return false;
	memset(r, 0, PACKET_HEADER);
	r->kind = q->kind | PACKET_RESPONSE;
	r->size = PACKET_HEADER;
	r->source = a->config.node;
	r->target = q->source;
	r->epoch = q->epoch;
	r->number = q->number;
	request_respond(a, p, q, r);
	return true;
}
