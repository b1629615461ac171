// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The whole card: creation, reset, link and timer. */
#include <stdlib.h>

#include "sim/adapter/model.h"

const struct sim_config sim_config_default = {
	.node = 4,
	.serial = 4,
	.att_entries = 8192,
	.att_page_size = 65536,
	.streams = 16,
	.stream_size = 128,
	.outstanding = 64,
	.exports = 1024,
	.dma_max = 1 << 20,
};

/* ---- life ---- */

static bool value_is_power_of_two(uint32_t v, uint32_t min, uint32_t max)
{
	return v >= min && v <= max && !(v & (v - 1));
}

static bool config_is_possible(const struct sim_config *c)
{
	return node_valid(c->node) &&
	       value_is_power_of_two(c->att_entries, 256, 65536) &&
	       value_is_power_of_two(c->att_page_size, 4096, 524288) &&
	       value_is_power_of_two(c->streams, 8, STREAMS_MAX) &&
	       value_is_power_of_two(c->stream_size, 64, PACKET_DATA_MAX) &&
	       c->outstanding >= 1 && c->outstanding <= SLOTS_MAX &&
	       value_is_power_of_two(c->exports, SCI_PCI_EXPORTS_MIN, 4096) &&
	       c->dma_max >= 4096;
}

static void adapter_zero(struct sim_adapter *a)
{
	a->enabled = false;
	a->link_up = false;
	a->int_status = 0;
	a->int_mask = 0;
	a->int_raised = 0;
	a->timeout_us = 20000;
	a->retries = 5;
	a->gather_ns = 10000;
	a->latch_offset = UINT32_MAX;
	a->deadline = SIM_NEVER;
	a->retry = false;
	a->rx = (struct ring){ 0 };
	a->rx_turn = 1;
	a->exports = (struct ring){ 0 };
	a->dma = (struct dma){ .run = a->dma.run + 1 };
	a->command = (struct command){ 0 };
	a->status = (struct status){ .ticket = 1 };
	memset(a->counter, 0, sizeof(a->counter));
	link_init(&a->order);
	link_init(&a->waiters);
	link_init(&a->own);
	stream_reset(a);
	read_reset(a);
	transaction_reset(a);
	export_forget(a);
	node_restart(a);
}

struct sim_adapter *sim_adapter_new(const struct sim_config *config,
				    const struct sim_host *host, void *ctx,
				    uint64_t epoch)
{
	struct sim_adapter *a;

	if (!config_is_possible(config))
		return NULL;
	a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->config = *config;
	a->host = host;
	a->ctx = ctx;
	a->epoch = epoch;
	a->window_size = (uint64_t)config->att_entries * config->att_page_size;
	a->page_shift = (unsigned int)__builtin_ctz(config->att_page_size);
	a->line_mask = config->stream_size - 1;
	a->deadline_told = SIM_NEVER;
	a->att = calloc(config->att_entries, sizeof(*a->att));
	a->att_used = calloc(config->att_entries / ATT_BLOCK, 1);
	a->slot = calloc(SLOTS_ALL, sizeof(*a->slot));
	if (!a->att || !a->att_used || !a->slot) {
		sim_adapter_free(a);
		return NULL;
	}
	adapter_zero(a);
	return a;
}

void sim_adapter_free(struct sim_adapter *a)
{
	if (!a)
		return;
	node_free(a);
	free(a->slot);
	free(a->att_used);
	free(a->att);
	free(a);
}

void sim_adapter_reset(struct sim_adapter *a, uint64_t epoch)
{
	bool connected = a->enabled;

	a->epoch = epoch > a->epoch ? epoch : a->epoch + 1;
	adapter_zero(a);
	att_reset(a);
	if (connected)
		a->host->connect(a->ctx, false);
	adapter_settle(a);
}

/* ---- work ---- */

void adapter_until(struct sim_adapter *a, uint64_t when)
{
	if (when < a->deadline)
		a->deadline = when;
}

static bool adapter_step(struct sim_adapter *a)
{
	bool did = transaction_run(a);

	did |= dma_run(a);
	did |= own_run(a);
	return did;
}

void adapter_settle(struct sim_adapter *a)
{
	a->budget = RUN_BUDGET;
	while (a->budget && adapter_step(a))
		a->budget -= a->budget > 0;
	if (!a->budget)
		adapter_until(a, a->host->now(a->ctx));
	status_settle(a);
	interrupt_settle(a);
	if (a->deadline != a->deadline_told) {
		a->deadline_told = a->deadline;
		a->host->deadline(a->ctx);
	}
}

/* ---- link ---- */

bool adapter_reaches(const struct sim_adapter *a, uint16_t node)
{
	return node == a->config.node ? a->enabled : a->link_up;
}

static void link_set(struct sim_adapter *a, bool up)
{
	if (a->link_up == up)
		return;
	a->link_up = up;
	a->retry = true;
	if (!up) {
		counter_add(a, SCI_PCI_CNT_LINK_DOWNS);
		transaction_fail(a, false);
		read_forget(a);
	}
	interrupt_raise(a, SCI_PCI_INT_LINK);
}

void sim_adapter_link(struct sim_adapter *a, bool up)
{
	if (!a->enabled)
		return;
	link_set(a, up);
	adapter_settle(a);
}

void adapter_enable(struct sim_adapter *a, bool enable)
{
	if (a->enabled == enable)
		return;
	a->enabled = enable;
	if (!enable) {
		link_set(a, false);
		transaction_fail(a, true);
		read_forget(a);
		a->retry = true;
	}
	a->host->connect(a->ctx, enable);
}

static bool packet_copy(struct sim_packet *p, const void *from, size_t len)
{
	if (len < PACKET_HEADER || len > sizeof(*p))
		return false;
	memcpy(p, from, len);
	return p->size == len && packet_crc(p) == p->crc;
}

static void adapter_request(struct sim_adapter *a, const struct sim_packet *p)
{
	struct sim_packet r;

	if (!responder_answer(a, p, &r))
		return;
	r.crc = packet_crc(&r);
	a->host->send(a->ctx, &r);
}

void sim_adapter_receive(struct sim_adapter *a, const void *packet, size_t len)
{
	struct sim_packet p;

	if (!a->link_up)
		return;
	if (!packet_copy(&p, packet, len) || p.target != a->config.node ||
	    p.source == a->config.node || !node_valid(p.source))
		counter_add(a, SCI_PCI_CNT_CRC_ERRORS);
	else if (p.kind & PACKET_RESPONSE)
		transaction_response(a, &p);
	else
		adapter_request(a, &p);
	adapter_settle(a);
}

void sim_adapter_no_node(struct sim_adapter *a, const void *packet, size_t len)
{
	struct sim_packet p;

	if (packet_copy(&p, packet, len) && p.source == a->config.node)
		transaction_no_node(a, &p);
	adapter_settle(a);
}

/* ---- time ---- */

uint64_t sim_adapter_deadline(const struct sim_adapter *a)
{
	return a->deadline;
}

/*
 * Flush stream buffers and end transactions that have expired. The deadline of the card is a
 * lower bound, because an answer in time does not change it.
 */
void sim_adapter_timer(struct sim_adapter *a)
{
	uint64_t now = a->host->now(a->ctx);

	a->deadline = SIM_NEVER;
	a->deadline_told = SIM_NEVER;
	stream_expire(a, now);
	transaction_expire(a, now);
	adapter_until(a, transaction_deadline(a));
	adapter_until(a, stream_deadline(a));
	adapter_settle(a);
}

/* ---- for the host ---- */

uint64_t sim_counter(const struct sim_adapter *a, enum sci_pci_counter c)
{
	return c < SCI_PCI_COUNTERS_COUNT ? a->counter[c] : 0;
}

void sim_export_table(const struct sim_adapter *a, uint64_t *base,
		      uint32_t *entries)
{
	*base = a->exports.base;
	*entries = a->exports.stopped ? 0 : a->exports.entries;
}
