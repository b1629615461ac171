// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Errors, barriers and the status words of users: sections 8 and 9 of the data sheet. */
#include "sim/adapter/model.h"

enum { WORD_ERRORS, WORD_DOWN, WORD_FATAL, WORD_DONE };

/* ---- errors ---- */

static void error_count(struct sim_adapter *a, enum sci_pci_error code)
{
	switch (code) {
	case SCI_PCI_ERR_TIMEOUT:
		counter_add(a, SCI_PCI_CNT_TIMEOUTS);
		break;
	case SCI_PCI_ERR_LINK:
		counter_add(a, SCI_PCI_CNT_ERRORS_LINK);
		break;
	case SCI_PCI_ERR_NODE:
		counter_add(a, SCI_PCI_CNT_ERRORS_NODE);
		break;
	case SCI_PCI_ERR_PROTECTION:
		counter_add(a, SCI_PCI_CNT_ERRORS_PROTECTION);
		break;
	case SCI_PCI_ERR_ATT:
		counter_add(a, SCI_PCI_CNT_ERRORS_ATT);
		break;
	default:
		break;
	}
}

/* Count and record an error, and raise the interrupt ERROR. */
void status_error(struct sim_adapter *a, enum sci_pci_error code,
		  uint16_t node, uint64_t address)
{
	struct status *s = &a->status;

	error_count(a, code);
	if (code != SCI_PCI_ERR_BUS && code != SCI_PCI_ERR_DRIVER)
		s->errors++;
	if (code == SCI_PCI_ERR_PROTECTION || code == SCI_PCI_ERR_ATT ||
	    code == SCI_PCI_ERR_BUS || code == SCI_PCI_ERR_DRIVER)
		s->fatal++;
	s->code = code;
	s->node = node;
	s->address = address & ADDRESS_BITS;
	interrupt_raise(a, SCI_PCI_INT_ERROR);
}

void status_stop(struct sim_adapter *a, bool *stopped)
{
	*stopped = true;
	status_error(a, SCI_PCI_ERR_DRIVER, 0, 0);
}

/* ---- barriers ---- */

uint32_t status_done(const struct sim_adapter *a)
{
	if (link_empty(&a->order))
		return a->status.ticket - 1;
	return LINK_OF(a->order.next, struct order, link)->ticket - 1;
}

/* Begin a barrier and return its ticket. Context: the stream buffers have been flushed. */
uint32_t status_barrier(struct sim_adapter *a)
{
	counter_add(a, SCI_PCI_CNT_BARRIERS);
	return a->status.ticket++;
}

/* ---- in main memory ---- */

static void words_put(struct sim_adapter *a, const uint32_t *words,
		      unsigned int first, unsigned int n)
{
	struct status *s = &a->status;

	if (!s->writes)
		return;
	memcpy(s->written + first, words + first, n * sizeof(*words));
	if (a->host->dma_write(a->ctx, s->base + first * sizeof(*words),
			       words + first, n * sizeof(*words)))
		return;
	s->writes = false;
	status_error(a, SCI_PCI_ERR_BUS, a->config.node, 0);
}

static void words_get(const struct sim_adapter *a, uint32_t words[4])
{
	words[WORD_ERRORS] = a->status.errors;
	words[WORD_DOWN] = !a->link_up;
	words[WORD_FATAL] = a->status.fatal;
	words[WORD_DONE] = status_done(a);
}

/* Write the status words that have changed, DONE last: its reader must see the other words. */
void status_settle(struct sim_adapter *a)
{
	const uint32_t *written = a->status.written;
	uint32_t words[4];

	if (!a->status.writes)
		return;
	words_get(a, words);
	if (memcmp(words, written, WORD_DONE * sizeof(*words)))
		words_put(a, words, 0, WORD_DONE);
	if (words[WORD_DONE] != written[WORD_DONE])
		words_put(a, words, WORD_DONE, 1);
}

void status_set_base(struct sim_adapter *a, uint32_t high)
{
	struct status *s = &a->status;
	uint32_t words[4];

	if (s->stopped)
		return;
	s->base = (uint64_t)high << 32 | s->base_low;
	s->writes = s->base && !(s->base & 63);
	if (s->base & 63)
		status_stop(a, &s->stopped);
	words_get(a, words);
	words_put(a, words, 0, 4);
}
