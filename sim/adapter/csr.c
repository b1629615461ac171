// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Control and status registers: sections 3, 8 and 11 of the data sheet. */
#include "sim/adapter/model.h"

#define NO_LATCH	UINT32_MAX

/* ---- reading ---- */

static uint32_t csr_features(const struct sim_adapter *a)
{
	uint32_t f = SCI_PCI_FEAT_PREFETCH;

	if (a->config.direct)
		f |= SCI_PCI_FEAT_DIRECT;
	else
		f |= SCI_PCI_FEAT_LOCK | SCI_PCI_FEAT_INTERRUPT_MAPS;
	if (a->config.stream_size == 128)
		f |= SCI_PCI_FEAT_PACKET_128;
	return f;
}

static uint32_t status_bits(const struct sim_adapter *a)
{
	const struct ring *dma = &a->dma.ring;
	uint32_t s = 0;

	if (a->link_up)
		s |= SCI_PCI_STATUS_LINK_UP;
	if (transaction_any(a))
		s |= SCI_PCI_STATUS_OUTSTANDING;
	if (a->streams_gather)
		s |= SCI_PCI_STATUS_GATHERING;
	if (!dma->stopped && (a->dma.busy || dma->head != dma->tail))
		s |= SCI_PCI_STATUS_DMA_BUSY;
	if (dma->stopped || a->rx.stopped || a->exports.stopped ||
	    a->status.stopped || a->command.stopped)
		s |= SCI_PCI_STATUS_STOPPED;
	return s;
}

/* Read a register that describes the card; other nodes may read it, too. */
static uint32_t card_read(const struct sim_adapter *a, uint32_t offset)
{
	const struct sim_config *c = &a->config;

	switch (offset) {
	case SCI_PCI_ID:
		return SCI_PCI_ID_VALUE;
	case SCI_PCI_VERSION:
		return SCI_PCI_VERSION_VALUE;
	case SCI_PCI_FEATURES:
		return csr_features(a);
	case SCI_PCI_ATT_ENTRIES:
		return c->att_entries;
	case SCI_PCI_ATT_PAGE_SIZE:
		return c->att_page_size;
	case SCI_PCI_STREAMS:
		return c->streams | c->stream_size << 8;
	case SCI_PCI_OUTSTANDING_MAX:
		return c->outstanding;
	case SCI_PCI_EXPORTS_MAX:
		return c->exports;
	case SCI_PCI_DMA_MAX:
		return c->dma_max;
	case SCI_PCI_NODE_ID:
		return c->node;
	case SCI_PCI_SERIAL:
		return (uint32_t)c->serial;
	case SCI_PCI_SERIAL + 4:
		return (uint32_t)(c->serial >> 32);
	default:
		return 0;
	}
}

static uint32_t counter_read(const struct sim_adapter *a, uint32_t offset)
{
	uint32_t i = (offset - SCI_PCI_COUNTERS) / 8;

	return (uint32_t)(offset & 4 ? a->counter[i] >> 32 : a->counter[i]);
}

static bool csr_is_counter(uint32_t offset)
{
	return offset >= SCI_PCI_COUNTERS &&
	       offset < SCI_PCI_COUNTERS + 8u * SCI_PCI_COUNTERS_COUNT;
}

bool csr_public(const struct sim_adapter *a, uint32_t offset, uint32_t *value)
{
	if (offset & 3)
		return false;
	if (offset < SCI_PCI_CONTROL)
		*value = card_read(a, offset);
	else if (offset == SCI_PCI_STATUS)
		*value = status_bits(a);
	else if (csr_is_counter(offset))
		*value = counter_read(a, offset);
	else
		return false;
	return true;
}

static uint32_t control_read(const struct sim_adapter *a, uint32_t offset)
{
	switch (offset) {
	case SCI_PCI_CONTROL:
		return a->enabled ? SCI_PCI_CONTROL_ENABLE : 0;
	case SCI_PCI_INT_STATUS:
		return a->int_status;
	case SCI_PCI_INT_MASK:
		return a->int_mask;
	case SCI_PCI_TIMEOUT_US:
		return a->timeout_us;
	case SCI_PCI_RETRIES:
		return a->retries;
	case SCI_PCI_GATHER_NS:
		return a->gather_ns;
	case SCI_PCI_ERROR_CODE:
		return a->status.code;
	case SCI_PCI_ERROR_NODE:
		return a->status.node;
	case SCI_PCI_ERROR_ADDRESS:
		return (uint32_t)a->status.address;
	case SCI_PCI_ERROR_ADDRESS + 4:
		return (uint32_t)(a->status.address >> 32);
	default:
		return 0;
	}
}

static uint32_t rings_read(const struct sim_adapter *a, uint32_t offset)
{
	switch (offset) {
	case SCI_PCI_RX_BASE:
		return (uint32_t)a->rx.base;
	case SCI_PCI_RX_BASE + 4:
		return (uint32_t)(a->rx.base >> 32);
	case SCI_PCI_RX_ENTRIES:
		return a->rx.entries;
	case SCI_PCI_RX_HEAD:
		return a->rx.head;
	case SCI_PCI_STATUS_BASE:
		return (uint32_t)a->status.base;
	case SCI_PCI_STATUS_BASE + 4:
		return (uint32_t)(a->status.base >> 32);
	case SCI_PCI_EXPORT_BASE:
		return (uint32_t)a->exports.base;
	case SCI_PCI_EXPORT_BASE + 4:
		return (uint32_t)(a->exports.base >> 32);
	case SCI_PCI_EXPORT_ENTRIES:
		return a->exports.entries;
	case SCI_PCI_DMA_BASE:
		return (uint32_t)a->dma.ring.base;
	case SCI_PCI_DMA_BASE + 4:
		return (uint32_t)(a->dma.ring.base >> 32);
	case SCI_PCI_DMA_ENTRIES:
		return a->dma.ring.entries;
	case SCI_PCI_DMA_TAIL:
		return a->dma.ring.tail;
	case SCI_PCI_DMA_HEAD:
		return a->dma.ring.head;
	default:
		return control_read(a, offset);
	}
}

static uint32_t driver_read(const struct sim_adapter *a, uint32_t offset)
{
	uint32_t value;

	return csr_public(a, offset, &value) ? value : rings_read(a, offset);
}

static void csr_flush(struct sim_adapter *a)
{
	counter_add(a, SCI_PCI_CNT_FLUSHES);
	stream_flush(a);
	read_forget(a);
}

static uint32_t user_read(struct sim_adapter *a, uint32_t offset)
{
	uint32_t ticket;

	switch (offset) {
	case SCI_PCI_USER_ERRORS:
		return a->status.errors;
	case SCI_PCI_USER_DOWN:
		return !a->link_up;
	case SCI_PCI_USER_FATAL:
		return a->status.fatal;
	case SCI_PCI_USER_DONE:
		return status_done(a);
	case SCI_PCI_USER_BARRIER:
		csr_flush(a);
		ticket = status_barrier(a);
		adapter_settle(a);
		return ticket;
	case SCI_PCI_USER_CHECK:
		csr_flush(a);
		adapter_settle(a);
		return transaction_stores(a);
	default:
		return 0;
	}
}

static uint32_t command_read(const struct sim_adapter *a, uint32_t offset)
{
	uint32_t word;

	if (offset < SCI_PCI_MBOX_DATA + SCI_PCI_MBOX_SIZE) {
		memcpy(&word, a->command.mailbox + (offset - SCI_PCI_MBOX_DATA),
		       sizeof(word));
		return word;
	}
	switch (offset) {
	case SCI_PCI_MBOX_FREE:
		return mailbox_free(a);
	case SCI_PCI_CMD_NODE:
		return a->command.node;
	case SCI_PCI_CMD_ARG:
		return a->command.arg;
	case SCI_PCI_CMD_STATUS:
		return a->command.status;
	case SCI_PCI_CMD_RESULT:
		return a->command.result;
	default:
		return 0;
	}
}

static bool csr_is_64_ro(uint32_t offset)
{
	return csr_is_counter(offset) || offset == SCI_PCI_SERIAL ||
	       offset == SCI_PCI_ERROR_ADDRESS;
}

uint32_t sim_csr_read(struct sim_adapter *a, uint32_t offset)
{
	if (offset & 3 || offset >= SCI_PCI_CSR_SIZE)
		return UINT32_MAX;
	if (offset >= SCI_PCI_MBOX_DATA)
		return command_read(a, offset);
	if (offset >= SCI_PCI_USER)
		return user_read(a, offset);
	if (offset == a->latch_offset) {
		a->latch_offset = NO_LATCH;
		return a->latch;
	}
	if (!(offset & 4) && csr_is_64_ro(offset)) {
		a->latch_offset = offset + 4;
		a->latch = driver_read(a, offset + 4);
	}
	return driver_read(a, offset);
}

/* ---- writing ---- */

static void control_write(struct sim_adapter *a, uint32_t value)
{
	if (value & SCI_PCI_CONTROL_RESET)
		sim_adapter_reset(a, 0);
	else
		adapter_enable(a, value & SCI_PCI_CONTROL_ENABLE);
}

static void engine_write(struct sim_adapter *a, uint32_t offset, uint32_t value)
{
	switch (offset) {
	case SCI_PCI_CONTROL:
		control_write(a, value);
		break;
	case SCI_PCI_INT_STATUS:
		interrupt_clear(a, value);
		break;
	case SCI_PCI_INT_MASK:
		interrupt_mask(a, value);
		break;
	case SCI_PCI_TIMEOUT_US:
		a->timeout_us = value;
		break;
	case SCI_PCI_RETRIES:
		a->retries = value & SCI_PCI_RETRIES_MAX;
		break;
	case SCI_PCI_GATHER_NS:
		a->gather_ns = value;
		break;
	default:
		break;
	}
}

static void exports_write(struct sim_adapter *a, uint32_t entries)
{
	export_forget(a);
	ring_set_entries(a, &a->exports, entries, 1, a->config.exports);
}

static void driver_write(struct sim_adapter *a, uint32_t offset, uint32_t value)
{
	switch (offset) {
	case SCI_PCI_RX_BASE:
		a->rx.base_low = value;
		break;
	case SCI_PCI_RX_BASE + 4:
		ring_set_base(a, &a->rx, value);
		break;
	case SCI_PCI_RX_ENTRIES:
		rx_begin(a, value);
		break;
	case SCI_PCI_RX_HEAD:
		rx_consume(a, value);
		break;
	case SCI_PCI_STATUS_BASE:
		a->status.base_low = value;
		break;
	case SCI_PCI_STATUS_BASE + 4:
		status_set_base(a, value);
		break;
	case SCI_PCI_EXPORT_BASE:
		a->exports.base_low = value;
		break;
	case SCI_PCI_EXPORT_BASE + 4:
		ring_set_base(a, &a->exports, value);
		break;
	case SCI_PCI_EXPORT_ENTRIES:
		exports_write(a, value);
		break;
	case SCI_PCI_DMA_BASE:
		a->dma.ring.base_low = value;
		break;
	case SCI_PCI_DMA_BASE + 4:
		ring_set_base(a, &a->dma.ring, value);
		break;
	case SCI_PCI_DMA_ENTRIES:
		dma_begin(a, value);
		break;
	case SCI_PCI_DMA_TAIL:
		dma_doorbell(a, value);
		break;
	case SCI_PCI_DMA_CONTROL:
		if (value & SCI_PCI_DMA_ABORT)
			dma_abort(a);
		break;
	default:
		engine_write(a, offset, value);
	}
}

static void command_write(struct sim_adapter *a, uint32_t offset,
			  uint32_t value)
{
	if (offset < SCI_PCI_MBOX_DATA + SCI_PCI_MBOX_SIZE) {
		memcpy(a->command.mailbox + (offset - SCI_PCI_MBOX_DATA),
		       &value, sizeof(value));
		return;
	}
	switch (offset) {
	case SCI_PCI_MBOX_SEND:
		mailbox_send(a, value);
		break;
	case SCI_PCI_CMD_NODE:
		a->command.node = value;
		break;
	case SCI_PCI_CMD_ARG:
		a->command.arg = value;
		break;
	case SCI_PCI_CMD:
		command_start(a, value);
		break;
	default:
		break;
	}
}

void sim_csr_write(struct sim_adapter *a, uint32_t offset, uint32_t value)
{
	if (offset & 3 || offset >= SCI_PCI_CSR_SIZE)
		return;
	if (offset >= SCI_PCI_MBOX_DATA)
		command_write(a, offset, value);
	else if (offset == SCI_PCI_USER_FLUSH)
		csr_flush(a);
	else if (offset < SCI_PCI_USER)
		driver_write(a, offset, value);
	adapter_settle(a);
}
