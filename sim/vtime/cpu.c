// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Costs of a program's accesses to memory. The times of stores add up: the next instruction
 * begins when the bus has taken the store. The host bridges of the papers behave like this,
 * because their few buffers are always full in a stream.
 */
#include <assert.h>
#include <string.h>

#include "sim/vtime/internal.h"

#define LINE	64u

static uint64_t window_offset(const struct vt_node *n, const volatile void *addr)
{
	uint64_t offset = (uint64_t)((uintptr_t)addr - (uintptr_t)n->window);

	assert(offset < (uint64_t)VT_ATT_ENTRIES * VT_ATT_PAGE);
	return offset;
}

static void bus_use(struct vt_node *n, uint64_t time)
{
	vt_sync(n);
	n->clock = node_bus(n, n->clock, time);
	vt_sync(n);
}

static void piece_store(struct vt_node *n, uint64_t offset, const void *src,
			size_t len)
{
	for (;;) {
		uint64_t seen = vt_touches(n);

		if (sim_window_write(n->adapter, 0, offset, src, len) ==
		    SIM_BUS_DONE)
			return;
		vt_wait(n, seen, VT_NEVER);
	}
}

static size_t piece_copy(uint64_t offset, size_t len, size_t max)
{
	size_t n = max - offset % max;

	return n < len ? n : len;
}

void vt_store(struct vt_node *n, volatile void *dst, const void *src,
	      size_t len)
{
	const struct vt_profile *p = &n->sim->profile;
	uint64_t offset = window_offset(n, dst);
	const uint8_t *from = src;

	while (len) {
		size_t k = piece_copy(offset, len, LINE);

		bus_use(n, k == LINE ? p->bus_line :
				       (k + 3) / 4 * p->bus_word);
		piece_store(n, offset, from, k);
		offset += k;
		from += k;
		len -= k;
	}
}

void vt_store_words(struct vt_node *n, volatile void *dst, const void *src,
		    size_t len)
{
	uint64_t offset = window_offset(n, dst);
	const uint8_t *from = src;

	while (len) {
		size_t k = piece_copy(offset, len, 4);

		bus_use(n, n->sim->profile.bus_word);
		piece_store(n, offset, from, k);
		offset += k;
		from += k;
		len -= k;
	}
}

void vt_load(struct vt_node *n, void *dst, const volatile void *src,
	     size_t len)
{
	uint64_t offset = window_offset(n, src);
	uint8_t *to = dst;

	while (len) {
		size_t k = piece_copy(offset, len, 8);

		bus_use(n, n->sim->profile.bus_word);
		for (;;) {
			uint64_t seen = vt_touches(n);

			if (sim_window_read(n->adapter, 0, offset, to, k) ==
			    SIM_BUS_DONE)
				break;
			vt_wait(n, seen, VT_NEVER);
		}
		offset += k;
		to += k;
		len -= k;
	}
}

void vt_flush(struct vt_node *n)
{
	bus_use(n, n->sim->profile.bus_word);
	sim_csr_write(n->adapter, SCI_PCI_USER_FLUSH, 1);
}

void vt_barrier(struct vt_node *n)
{
	const volatile uint32_t *done = &n->words->done;
	uint32_t ticket;

	bus_use(n, n->sim->profile.bus_read);
	ticket = sim_csr_read(n->adapter, SCI_PCI_USER_BARRIER);
	for (;;) {
		uint64_t seen = vt_touches(n);

		if ((int32_t)(*done - ticket) >= 0)
			break;
		vt_wait(n, seen, VT_NEVER);
	}
	vt_busy(n, n->sim->profile.load_local);
}

void vt_copy(struct vt_node *n, void *dst, const void *src, size_t len)
{
	const struct vt_profile *p = &n->sim->profile;

	vt_sync(n);
	memcpy(dst, src, len);
	vt_busy(n, p->copy_setup + vt_transfer(len, p->copy_rate));
}

uint32_t vt_register(struct vt_node *n, uint32_t offset)
{
	bus_use(n, n->sim->profile.bus_read);
	return sim_csr_read(n->adapter, offset);
}

void vt_poll(struct vt_node *n, const volatile uint8_t *byte, uint8_t value)
{
	for (;;) {
		uint64_t seen = vt_touches(n);

		vt_busy(n, n->sim->profile.load_local);
		vt_sync(n);
		if (*byte == value)
			return;
		vt_wait(n, seen, VT_NEVER);
	}
}

void vt_check(struct vt_node *n)
{
	vt_busy(n, n->sim->profile.check);
	vt_sync(n);
}
