// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Code that rings and tables share, and the receive ring: section 10 of the data sheet. */
#include "sim/adapter/model.h"

void ring_set_base(struct sim_adapter *a, struct ring *r, uint32_t high)
{
	uint64_t base = (uint64_t)high << 32 | r->base_low;

	if (r->stopped)
		return;
	if (r->entries || base & (SCI_PCI_PAGE - 1))
		status_stop(a, &r->stopped);
	else
		r->base = base;
}

/* Set the size, 0 or a power of two. Return false if the ring has stopped. */
bool ring_set_entries(struct sim_adapter *a, struct ring *r, uint32_t entries,
		      uint32_t min, uint32_t max)
{
	if (r->stopped)
		return false;
	if (entries & (entries - 1) ||
	    (entries && (entries < min || entries > max))) {
		status_stop(a, &r->stopped);
		return false;
	}
	r->entries = entries;
	r->head = 0;
	r->tail = 0;
	return true;
}

/* ---- the receive ring ---- */

void rx_begin(struct sim_adapter *a, uint32_t entries)
{
	if (ring_set_entries(a, &a->rx, entries, SCI_PCI_RX_ENTRIES_MIN,
			     SCI_PCI_RX_ENTRIES_MAX))
		a->rx_turn = 1;
}

void rx_consume(struct sim_adapter *a, uint32_t head)
{
	if (a->rx.stopped)
		return;
	if (a->rx.tail - head > a->rx.tail - a->rx.head)
		status_stop(a, &a->rx.stopped);
	else
		a->rx.head = head;
}

struct rx_entry {
	uint32_t turn;
	uint16_t kind;
	uint16_t source;
	uint32_t value;
	uint32_t reserved;
	uint8_t data[SCI_PCI_MBOX_SIZE];
};

static_assert(offsetof(struct rx_entry, kind) == SCI_PCI_RX_KIND &&
	      offsetof(struct rx_entry, source) == SCI_PCI_RX_SOURCE &&
	      offsetof(struct rx_entry, value) == SCI_PCI_RX_VALUE &&
	      offsetof(struct rx_entry, data) == SCI_PCI_RX_DATA,
	      "as in memory");

/* Write an entry, with the turn last: the turn makes the entry valid. */
static bool rx_write(struct sim_adapter *a, const struct rx_entry *e)
{
	uint64_t at = a->rx.base + (a->rx.tail & (a->rx.entries - 1)) *
		      (uint64_t)SCI_PCI_RX_ENTRY_SIZE;

	return a->host->dma_write(a->ctx, at + SCI_PCI_RX_KIND, &e->kind,
				  sizeof(*e) - SCI_PCI_RX_KIND) &&
	       a->host->dma_write(a->ctx, at, &e->turn, sizeof(e->turn));
}

static enum sci_pci_error rx_append(struct sim_adapter *a, struct rx_entry *e)
{
	if (a->rx.stopped || a->rx.tail - a->rx.head >= a->rx.entries)
		return SCI_PCI_ERR_BUSY;
	e->turn = a->rx_turn;
	if (!rx_write(a, e)) {
		status_error(a, SCI_PCI_ERR_BUS, e->source, 0);
		return SCI_PCI_ERR_BUSY;
	}
	a->rx.tail++;
	if (!++a->rx_turn)
		a->rx_turn = 1;
	interrupt_raise(a, SCI_PCI_INT_RX);
	return SCI_PCI_ERR_NONE;
}

enum sci_pci_error rx_put(struct sim_adapter *a, const struct sim_packet *p)
{
	bool mailbox = p->kind == PACKET_MAILBOX;
	struct rx_entry e = {
		.kind = mailbox ? SCI_PCI_RX_MAILBOX : SCI_PCI_RX_INTERRUPT,
		.source = p->source,
		.value = mailbox ? 0 : p->value,
	};

	if (mailbox)
		memcpy(e.data, p->data, sizeof(e.data));
	return rx_append(a, &e);
}

/*
 * Put a mailbox packet of this card back into its receive ring, because the target node does not
 * exist. If the ring is full, the packet is lost.
 */
void rx_return(struct sim_adapter *a, const struct sim_packet *p)
{
	struct rx_entry e = {
		.kind = SCI_PCI_RX_RETURNED,
		.source = p->target,
	};

	memcpy(e.data, p->data, sizeof(e.data));
	rx_append(a, &e);
}
