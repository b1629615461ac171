// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * A node: the operations that its adapter calls. Main memory of the node is memory of this
 * process, so bus addresses are pointers. The CPU's stores and the adapter's accesses to main
 * memory share one bus.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim/vtime/internal.h"

#define RX_BYTES	(VT_RX_ENTRIES * SCI_PCI_RX_ENTRY_SIZE)
#define EXPORTS_BYTES	(VT_EXPORTS * SCI_PCI_EXPORT_ENTRY_SIZE)

struct vt_packet {
	struct vt_packet *next;		/* in vt_sim.spare */
	struct vt_packet *all;		/* next in vt_sim.packets */
	struct vt_sim *sim;
	struct vt_node *target;		/* NULL: the node does not exist */
	uint64_t taken;			/* time at which main memory takes its address */
	struct sim_packet packet;
};

/* Reserve the bus for @time, from @from on or when the bus is free. Return the end. */
uint64_t node_bus(struct vt_node *n, uint64_t from, uint64_t time)
{
	uint64_t start = n->bus_free > from ? n->bus_free : from;

	n->bus_free = start + time;
	return n->bus_free;
}

void vt_two_buses(struct vt_node *n)
{
	n->two_buses = true;
}

static uint64_t node_bus_in(struct vt_node *n, uint64_t from, uint64_t time)
{
	uint64_t start = n->bus_in_free > from ? n->bus_in_free : from;

	if (!n->two_buses)
		return node_bus(n, from, time);
	n->bus_in_free = start + time;
	return n->bus_in_free;
}

/* ---- packets ---- */

static struct vt_packet *packet_new(struct vt_sim *s)
{
	struct vt_packet *p = s->spare;

	if (p) {
		s->spare = p->next;
		return p;
	}
	p = malloc(sizeof(*p));
	if (!p) {
		fprintf(stderr, "sci-model: out of memory for packets\n");
		abort();
	}
	p->sim = s;
	p->all = s->packets;
	s->packets = p;
	return p;
}

static void packet_free(struct vt_packet *p)
{
	p->next = p->sim->spare;
	p->sim->spare = p;
}

void node_free_packets(struct vt_sim *s)
{
	while (s->packets) {
		struct vt_packet *p = s->packets;

		s->packets = p->all;
		free(p);
	}
}

static void packet_receive(void *arg)
{
	struct vt_packet *p = arg;
	struct vt_node *n = p->target;

	n->taken = p->taken;
	sim_adapter_receive(n->adapter, &p->packet, p->packet.size);
	vt_touch(n);
	packet_free(p);
}

/* Return the number of bytes that a packet reads or writes in the target's main memory. */
static uint64_t memory_bytes(const struct sim_packet *p)
{
	switch (p->kind) {
	case PACKET_WRITE:
	case PACKET_MAILBOX:
		return p->size - PACKET_HEADER;
	case PACKET_READ:
		return p->length;
	case PACKET_LOCK:
	case PACKET_INTERRUPT:
		return 16;
	default:
		return 0;
	}
}

static void packet_handle(void *arg)
{
	struct vt_packet *p = arg;
	const struct vt_profile *prof = &p->sim->profile;
	uint64_t bytes = memory_bytes(&p->packet);
	uint64_t time = prof->mem_setup + vt_transfer(bytes, prof->mem_rate);
	uint64_t end;

	if (!bytes) {
		packet_receive(p);
		return;
	}
	end = node_bus_in(p->target, p->sim->now, time);
	p->taken = end - time + prof->mem_setup;
	vt_at(p->sim, end + prof->mem_latency, packet_receive, p);
}

static void packet_return(void *arg)
{
	struct vt_packet *p = arg;
	struct vt_node *n = &p->sim->node[p->packet.source / 4 - 1];

	sim_adapter_no_node(n->adapter, &p->packet, p->packet.size);
	vt_touch(n);
	packet_free(p);
}

/* ---- struct sim_host ---- */

static uint64_t host_now(void *ctx)
{
	struct vt_node *n = ctx;

	return n->sim->now / VT_NS;
}

static bool host_dma_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	(void)ctx;
	memcpy(buf, (void *)(uintptr_t)addr, len);
	return true;
}

static bool host_dma_write(void *ctx, uint64_t addr, const void *buf,
			   size_t len)
{
	(void)ctx;
	memcpy((void *)(uintptr_t)addr, buf, len);
	return true;
}

/* The answer to a posted store starts before the bytes are in memory. */
#define STORE_ANSWER	(PACKET_WRITE | PACKET_RESPONSE)

static void host_send(void *ctx, const struct sim_packet *packet)
{
	struct vt_node *n = ctx;
	struct vt_sim *s = n->sim;
	const struct vt_profile *prof = &s->profile;
	uint64_t when = prof->adapter_out + (packet->kind == STORE_ANSWER ?
					     n->taken : s->now);
	unsigned int target = packet->target / 4u - 1;
	struct vt_packet *p;

	if (s->loss && vt_random(s) % 1000000 < s->loss)
		return;
	p = packet_new(s);
	memcpy(&p->packet, packet, packet->size);
	if (target >= s->nodes) {
		vt_at(s, when, packet_return, p);
		return;
	}
	p->target = &s->node[target];
	when = network_pass(s->network, n->index, target, when,
			    prof->link_header + packet->size - PACKET_HEADER);
	vt_at(s, when + prof->adapter_in, packet_handle, p);
}

static void link_set_up(void *arg)
{
	struct vt_node *n = arg;

	sim_adapter_link(n->adapter, true);
}

static void host_connect(void *ctx, bool enable)
{
	struct vt_node *n = ctx;

	if (enable)
		vt_at(n->sim, n->sim->now, link_set_up, n);
}

/* ---- the adapter's timer ---- */

static void node_timer(void *arg);

static void timer_set(struct vt_node *n)
{
	uint64_t ns = sim_adapter_deadline(n->adapter);

	if (ns == SIM_NEVER || ns * VT_NS >= n->timer)
		return;
	n->timer = ns * VT_NS;
	vt_at(n->sim, n->timer, node_timer, n);
}

static void node_timer(void *arg)
{
	struct vt_node *n = arg;

	/* timer_set() has set an earlier event, which has set n->timer again */
	if (n->sim->now < n->timer)
		return;
	n->timer = VT_NEVER;
	sim_adapter_timer(n->adapter);
	timer_set(n);
	vt_touch(n);
}

static void host_deadline(void *ctx)
{
	struct vt_node *n = ctx;

	/* the adapter is NULL in sim_adapter_new() */
	if (n->adapter)
		timer_set(n);
}

/* ---- the adapter's interrupts ---- */

static uint32_t le32_read(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static void node_interrupts(void *arg)
{
	struct vt_node *n = arg;

	n->interrupt = false;
	sim_csr_write(n->adapter, SCI_PCI_INT_STATUS, SCI_PCI_INT_ALL);
	for (;;) {
		const uint8_t *e = n->rx + n->rx_head % VT_RX_ENTRIES *
						   SCI_PCI_RX_ENTRY_SIZE;

		if (le32_read(e + SCI_PCI_RX_TURN) != n->rx_head + 1)
			break;
		if ((le32_read(e + SCI_PCI_RX_KIND) & 0xffff) ==
		    SCI_PCI_RX_INTERRUPT)
			fabric_interrupt(n, le32_read(e + SCI_PCI_RX_VALUE));
		n->rx_head++;
	}
	sim_csr_write(n->adapter, SCI_PCI_RX_HEAD, n->rx_head);
	vt_touch(n);
}

static void host_interrupt(void *ctx, uint32_t pending, uint32_t raised)
{
	struct vt_node *n = ctx;

	(void)raised;
	if (!pending || n->interrupt)
		return;
	n->interrupt = true;
	vt_at(n->sim, n->sim->now + n->sim->profile.interrupt, node_interrupts, n);
}

static const struct sim_host host = {
	.now = host_now,
	.dma_read = host_dma_read,
	.dma_write = host_dma_write,
	.interrupt = host_interrupt,
	.send = host_send,
	.connect = host_connect,
	.deadline = host_deadline,
};

/* ---- begin and end ---- */

static void node_write64(struct vt_node *n, uint32_t offset, const void *p)
{
	uint64_t v = (uintptr_t)p;

	sim_csr_write(n->adapter, offset, (uint32_t)v);
	sim_csr_write(n->adapter, offset + 4, (uint32_t)(v >> 32));
}

static void node_set_up(struct vt_node *n)
{
	struct sim_adapter *a = n->adapter;

	node_write64(n, SCI_PCI_RX_BASE, n->rx);
	sim_csr_write(a, SCI_PCI_RX_ENTRIES, VT_RX_ENTRIES);
	node_write64(n, SCI_PCI_EXPORT_BASE, n->exports);
	sim_csr_write(a, SCI_PCI_EXPORT_ENTRIES, VT_EXPORTS);
	node_write64(n, SCI_PCI_STATUS_BASE, &n->words->link.hw_errors);
	sim_csr_write(a, SCI_PCI_GATHER_NS,
		      (uint32_t)(n->sim->profile.gather / VT_NS));
	sim_csr_write(a, SCI_PCI_INT_MASK, SCI_PCI_INT_RX);
	sim_csr_write(a, SCI_PCI_CONTROL, SCI_PCI_CONTROL_ENABLE);
}

/*
 * Map zeroed pages, which take memory only when they are used. The nodes have very many blocks,
 * so headers of a heap would take too much memory.
 */
uint8_t *node_pages_get(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void node_pages_put(uint8_t *p, size_t size)
{
	if (p)
		munmap(p, size);
}

static void *zeroed_alloc(size_t align, size_t size)
{
	void *p = aligned_alloc(align, size);

	return p ? memset(p, 0, size) : NULL;
}

bool node_init(struct vt_sim *s, struct vt_node *n, unsigned int index)
{
	const struct vt_profile *p = &s->profile;
	struct sim_config config = sim_config_default;

	n->sim = s;
	n->index = index;
	n->id = (uint16_t)(4 * (index + 1));
	n->timer = VT_NEVER;
	n->limit = VT_NEVER;
	config.node = n->id;
	config.serial = n->id;
	config.att_entries = VT_ATT_ENTRIES;
	config.att_page_size = VT_ATT_PAGE;
	config.streams = (uint32_t)p->streams;
	config.stream_size = (uint32_t)p->stream_size;
	config.outstanding = (uint32_t)p->outstanding;
	config.exports = VT_EXPORTS;
	n->words = zeroed_alloc(64, 2 * 64);
	n->rx = node_pages_get(RX_BYTES);
	n->exports = node_pages_get(EXPORTS_BYTES);
	n->adapter = sim_adapter_new(&config, &host, n, index + 1);
	if (!n->words || !n->rx || !n->exports || !n->adapter ||
	    !fabric_init(n)) {
		fprintf(stderr, "sci-model: node %u: out of memory, or not a card that there can be\n",
			n->id);
		return false;
	}
	node_set_up(n);
	return true;
}

void node_fini(struct vt_node *n)
{
	fabric_fini(n);
	sim_adapter_free(n->adapter);
	node_pages_put(n->exports, EXPORTS_BYTES);
	node_pages_put(n->rx, RX_BYTES);
	free(n->words);
}

unsigned int vt_index(const struct vt_node *n)
{
	return n->index;
}

uint16_t vt_id(const struct vt_node *n)
{
	return n->id;
}

struct vt_sim *vt_sim_of(const struct vt_node *n)
{
	return n->sim;
}

const struct vt_profile *vt_profile_of(const struct vt_node *n)
{
	return &n->sim->profile;
}

struct sim_adapter *vt_adapter(const struct vt_node *n)
{
	return n->adapter;
}

void vt_set_limit(struct vt_sim *s, uint64_t ps)
{
	s->limit = ps;
}

void vt_set_loss(struct vt_sim *s, uint32_t of_a_million)
{
	s->loss = of_a_million;
}
