/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: simulated cards for tests
 *
 * Some cards share a clock and a link that loses, duplicates, delays and corrupts
 * packets. world_step() advances the clock to the next arriving packet or expiring
 * timer. Each test runs in a process of its own, so @world may be global.
 */
#ifndef SELFTESTS_SIM_ADAPTER_H
#define SELFTESTS_SIM_ADAPTER_H

#include <stdlib.h>
#include <string.h>

#include "selftests/harness.h"
#include "sim/adapter/adapter.h"

#define CARDS		4u
#define MEMORY		(2u << 20)	/* main memory behind each card */
#define FLIGHTS		4096u
#define PAGE		65536u		/* default page size of the window */

/* Addresses in main memory. */
#define AT_RX		0x10000u
#define AT_STATUS	0x20000u
#define AT_EXPORTS	0x30000u
#define AT_DMA		0x40000u
#define AT_ROOTS	0x50000u	/* one page for each export */
#define AT_LEAVES	0x80000u	/* one leaf page for each export */
#define AT_DATA		0x100000u
#define AT_LOCAL	0x180000u	/* local buffers of DMA */
#define EXPORT_ENTRIES	32u
#define RX_ENTRIES	16u
#define DMA_ENTRIES	8u

struct flight {
	uint64_t at;
	uint64_t order;
	size_t len;
	uint16_t to;		/* node of the card that receives it */
	bool no_node;		/* return to @to as undeliverable */
	struct sim_packet packet;
};

struct card {
	struct sim_adapter *a;
	struct sim_config config;
	uint8_t *memory;
	bool connected;
	unsigned int connects;
	uint32_t pending;	/* argument of the last interrupt() call */
	uint32_t raised;	/* raised bits of all interrupt() calls */
	unsigned int interrupts;
	unsigned int deadlines;
	unsigned int att_changes;
	uint32_t att_changed;
	unsigned int invalidates;
	uint16_t invalidated;
	unsigned int sent;
	unsigned int calls;	/* number of calls of dma_read, dma_write and send */
	struct sim_packet last;	/* last packet that the card sent */
	bool bus_master_off;
	uint64_t no_write;	/* a page that refuses writes, or 0 */
	uint64_t wrote;		/* address of the last write */
	size_t wrote_len;	/* its length */
	unsigned int crossed;	/* number of accesses across a page border */
};

struct world {
	uint64_t now;
	uint64_t order;
	uint64_t random;
	struct card card[CARDS];
	struct flight flight[FLIGHTS];
	unsigned int flights;
	unsigned int lost;
	/* properties of the link */
	uint64_t delay;		/* least time of a packet, in ns */
	uint64_t jitter;	/* largest random addition to @delay, in ns */
	unsigned int lose;	/* lost packets per 1000 */
	unsigned int twice;
	unsigned int spoil;
	unsigned int flap;	/* per 1000: delivered and reported as undeliverable */
	uint64_t late;		/* largest delay of a second copy, in ns */
	bool cut;		/* all packets are lost */
	bool (*filter)(const struct sim_packet *p);	/* true: lose the packet */
};

static struct world world = { .random = 1, .delay = 1000 };

static inline uint64_t any(void)
{
	world.random += 0x9e3779b97f4a7c15u;

	uint64_t z = world.random;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static inline uint32_t below(uint32_t n)
{
	return (uint32_t)(any() >> 32) % n;
}

static inline uint16_t node_of(const struct card *c)
{
	return c->config.node;
}

static inline struct card *card_at(uint16_t node)
{
	for (unsigned int i = 0; i < CARDS; i++)
		if (world.card[i].a && node_of(&world.card[i]) == node)
			return &world.card[i];
	return NULL;
}

/* ---- functions of the host that a card calls ---- */

static inline uint64_t host_now(void *ctx)
{
	(void)ctx;
	return world.now;
}

static inline bool host_there(const struct card *c, uint64_t addr, size_t len)
{
	return !c->bus_master_off && addr < MEMORY && len <= MEMORY - addr;
}

static inline bool host_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct card *c = ctx;

	c->calls++;
	c->crossed += addr % 4096 + len > 4096;
	if (!host_there(c, addr, len))
		return false;
	memcpy(buf, c->memory + addr, len);
	return true;
}

static inline bool host_write(void *ctx, uint64_t addr, const void *buf,
			      size_t len)
{
	struct card *c = ctx;

	c->calls++;
	if (!host_there(c, addr, len) || (c->no_write &&
					  addr / 4096 == c->no_write / 4096))
		return false;
	c->crossed += addr % 4096 + len > 4096;
	c->wrote = addr;
	c->wrote_len = len;
	memcpy(c->memory + addr, buf, len);
	return true;
}

static inline void host_interrupt(void *ctx, uint32_t pending, uint32_t raised)
{
	struct card *c = ctx;

	CHECK_EQ(raised & ~pending, 0);
	c->pending = pending;
	c->raised |= raised;
	c->interrupts++;
}

static inline bool deliverable(const struct sim_packet *p)
{
	struct card *to = card_at(p->target);

	return to && to->connected;
}

static inline void fly(const struct sim_packet *p, uint64_t at, bool spoil,
		       bool no_node)
{
	struct flight *f = &world.flight[world.flights];

	if (world.flights == FLIGHTS) {
		world.lost++;
		return;
	}
	world.flights++;
	f->at = at;
	f->order = world.order++;
	f->len = p->size;
	f->no_node = no_node;
	f->to = f->no_node ? p->source : p->target;
	memcpy(&f->packet, p, p->size);
	if (spoil)
		((uint8_t *)&f->packet)[below(p->size)] ^=
			(uint8_t)(1u << below(8));
}

static inline void host_send(void *ctx, const struct sim_packet *p)
{
	struct card *c = ctx;
	uint64_t at = world.now + world.delay;

	CHECK(p->size >= PACKET_HEADER && p->size <= sizeof(*p));
	CHECK_EQ(p->crc, packet_crc(p));
	CHECK_EQ(p->source, node_of(c));
	c->sent++;
	c->calls++;
	memcpy(&c->last, p, p->size);
	if (world.jitter)
		at += any() % world.jitter;
	if (below(1000) < world.flap && !(p->kind & PACKET_RESPONSE)) {
		fly(p, at + (world.late ? any() % world.late : 0), false, false);
		fly(p, at, false, true);
		return;
	}
	if (below(1000) < world.twice)
		fly(p, at + (world.late ? any() % world.late : 0), false,
		    !deliverable(p));
	if (world.cut || below(1000) < world.lose ||
	    (world.filter && world.filter(p)))
		world.lost++;
	else
		fly(p, at, below(1000) < world.spoil, !deliverable(p));
}

static inline void host_connect(void *ctx, bool enable)
{
	struct card *c = ctx;

	CHECK(c->connected != enable);
	c->connected = enable;
	c->connects++;
}

static inline void host_att_changed(void *ctx, uint32_t entry)
{
	struct card *c = ctx;

	c->att_changes++;
	c->att_changed = entry;
}

static inline void host_invalidate(void *ctx, uint16_t export_id)
{
	struct card *c = ctx;

	c->invalidates++;
	c->invalidated = export_id;
}

static inline void host_deadline(void *ctx)
{
	struct card *c = ctx;

	c->deadlines++;
}

#define HOST								\
	.now = host_now, .dma_read = host_read, .dma_write = host_write,\
	.interrupt = host_interrupt, .send = host_send,			\
	.connect = host_connect, .deadline = host_deadline

static const struct sim_host host = { HOST };
static const struct sim_host host_direct = {
	HOST,
	.att_changed = host_att_changed,
	.invalidate = host_invalidate,
};

/* ---- time ---- */

static inline struct flight *flight_first(void)
{
	struct flight *first = NULL;

	for (unsigned int i = 0; i < world.flights; i++) {
		struct flight *f = &world.flight[i];

		if (!first || f->at < first->at ||
		    (f->at == first->at && f->order < first->order))
			first = f;
	}
	return first;
}

static inline struct card *timer_first(void)
{
	struct card *first = NULL;

	for (unsigned int i = 0; i < CARDS; i++) {
		struct card *c = &world.card[i];

		if (c->a && sim_adapter_deadline(c->a) != SIM_NEVER &&
		    (!first || sim_adapter_deadline(c->a) <
			       sim_adapter_deadline(first->a)))
			first = c;
	}
	return first;
}

static inline void flight_land(struct flight *f)
{
	struct flight this = *f;
	struct card *to = card_at(this.to);

	*f = world.flight[--world.flights];
	if (!to)
		return;
	if (this.no_node)
		sim_adapter_no_node(to->a, &this.packet, this.len);
	else
		sim_adapter_receive(to->a, &this.packet, this.len);
}

/* Advance to the next event, not beyond @until. Return false if there is none. */
static inline bool world_step_until(uint64_t until)
{
	struct flight *f = flight_first();
	struct card *c = timer_first();
	uint64_t timer = c ? sim_adapter_deadline(c->a) : SIM_NEVER;
	uint64_t at = f && f->at <= timer ? f->at : timer;

	if (at == SIM_NEVER || at > until)
		return false;
	if (at > world.now)
		world.now = at;
	if (f && f->at <= timer)
		flight_land(f);
	else
		sim_adapter_timer(c->a);
	return true;
}

static inline bool world_step(void)
{
	return world_step_until(SIM_NEVER - 1);
}

/* Advance until no packet is under way and no timer runs. */
static inline void world_settle(void)
{
	unsigned int steps = 0;

	while (world_step())
		CHECK(++steps < 10000000);
}

static inline void world_pass(uint64_t ns)
{
	uint64_t until = world.now + ns;

	while (world_step_until(until))
		;
	world.now = until;
}

/* ---- registers and memory ---- */

static inline uint32_t csr(struct card *c, uint32_t offset)
{
	return sim_csr_read(c->a, offset);
}

static inline void set(struct card *c, uint32_t offset, uint32_t value)
{
	sim_csr_write(c->a, offset, value);
}

static inline void set64(struct card *c, uint32_t offset, uint64_t value)
{
	set(c, offset, (uint32_t)value);
	set(c, offset + 4, (uint32_t)(value >> 32));
}

static inline uint64_t csr64(struct card *c, uint32_t offset)
{
	uint64_t low = csr(c, offset);

	return low | (uint64_t)csr(c, offset + 4) << 32;
}

#define COUNT(c, name)	sim_counter((c)->a, SCI_PCI_CNT_##name)

static inline void put16(struct card *c, uint64_t at, uint16_t v)
{
	memcpy(c->memory + at, &v, sizeof(v));
}

static inline void put32(struct card *c, uint64_t at, uint32_t v)
{
	memcpy(c->memory + at, &v, sizeof(v));
}

static inline void put64(struct card *c, uint64_t at, uint64_t v)
{
	memcpy(c->memory + at, &v, sizeof(v));
}

static inline uint32_t get32(const struct card *c, uint64_t at)
{
	uint32_t v;

	memcpy(&v, c->memory + at, sizeof(v));
	return v;
}

static inline uint64_t get64(const struct card *c, uint64_t at)
{
	uint64_t v;

	memcpy(&v, c->memory + at, sizeof(v));
	return v;
}

/* ---- cards ---- */

/* A configuration with the stream buffers of the papers' cards: 64 bytes. */
static inline struct sim_config config_64(void)
{
	struct sim_config config = sim_config_default;

	config.streams = 8;
	config.stream_size = 64;
	return config;
}

/*
 * Create card @i with node id 4 * (i + 1), in its state after reset. NULL selects
 * config_64(), for which most tests count packets.
 */
static inline struct card *card_new(unsigned int i,
				    const struct sim_config *config)
{
	struct card *c = &world.card[i];

	c->config = config ? *config : config_64();
	c->config.node = (uint16_t)(4 * (i + 1));
	c->memory = calloc(1, MEMORY);
	CHECK(c->memory != NULL);
	c->a = sim_adapter_new(&c->config,
			       c->config.direct ? &host_direct : &host, c, 100);
	CHECK(c->a != NULL);
	return c;
}

static inline void card_free(struct card *c)
{
	sim_adapter_free(c->a);
	free(c->memory);
	memset(c, 0, sizeof(*c));
}

static inline void cards_free(void)
{
	for (unsigned int i = 0; i < CARDS; i++)
		if (world.card[i].a)
			card_free(&world.card[i]);
}

/* Set up the card as a driver does, and bring its link up. */
static inline void card_start(struct card *c)
{
	set64(c, SCI_PCI_RX_BASE, AT_RX);
	set(c, SCI_PCI_RX_ENTRIES, RX_ENTRIES);
	set64(c, SCI_PCI_STATUS_BASE, AT_STATUS);
	set64(c, SCI_PCI_EXPORT_BASE, AT_EXPORTS);
	set(c, SCI_PCI_EXPORT_ENTRIES, EXPORT_ENTRIES);
	set64(c, SCI_PCI_DMA_BASE, AT_DMA);
	set(c, SCI_PCI_DMA_ENTRIES, DMA_ENTRIES);
	set(c, SCI_PCI_CONTROL, SCI_PCI_CONTROL_ENABLE);
	sim_adapter_link(c->a, true);
}

static inline struct card *card_up(unsigned int i)
{
	struct card *c = card_new(i, NULL);

	card_start(c);
	return c;
}

#define RIGHTS	(SCI_PCI_EXPORT_READ | SCI_PCI_EXPORT_WRITE)

static inline uint64_t export_entry(uint16_t id)
{
	return AT_EXPORTS + id % EXPORT_ENTRIES * SCI_PCI_EXPORT_ENTRY_SIZE;
}

/* Return the bus address of a byte of an export, whose pages are in reverse order. */
static inline uint64_t export_at(uint16_t id, uint32_t offset)
{
	uint32_t slot = id % EXPORT_ENTRIES;

	return AT_DATA + slot * 0x10000 + (15 - offset / 4096) * 4096 +
	       offset % 4096;
}

/* Create an export of at most 64 KiB. Ids must be below 8 modulo EXPORT_ENTRIES. */
static inline void export_make(struct card *c, uint16_t id, uint64_t length,
			       uint16_t flags)
{
	uint64_t e = export_entry(id);
	uint32_t slot = id % EXPORT_ENTRIES;

	put64(c, e + SCI_PCI_EXPORT_LENGTH, length);
	put64(c, e + SCI_PCI_EXPORT_ROOT, AT_ROOTS + slot * 4096);
	put64(c, AT_ROOTS + slot * 4096, AT_LEAVES + slot * 4096);
	for (uint32_t i = 0; i < 16; i++)
		put64(c, AT_LEAVES + slot * 4096 + i * 8,
		      export_at(id, i * 4096));
	put16(c, e + SCI_PCI_EXPORT_ID, id);
	put16(c, e + SCI_PCI_EXPORT_FLAGS, flags | SCI_PCI_EXPORT_VALID);
}

static inline void map_entry(struct card *c, uint32_t entry, uint16_t node,
			     uint16_t attr, uint16_t export_id, uint64_t offset)
{
	sim_att_write(c->a, entry * 16, 0);
	sim_att_write(c->a, entry * 16 + 4, export_id);
	sim_att_write(c->a, entry * 16 + 8, (uint32_t)offset);
	sim_att_write(c->a, entry * 16 + 12, (uint32_t)(offset >> 32));
	sim_att_write(c->a, entry * 16,
		      (uint32_t)(attr | SCI_PCI_ATT_VALID) << 16 | node);
}

/* Return card 0. Page 0 of its window maps export 1 of card 1, which is @target. */
static inline struct card *pair_up(struct card **target)
{
	struct card *c = card_up(0);
	struct card *t = card_up(1);

	export_make(t, 1, 0x10000, RIGHTS);
	map_entry(c, 0, node_of(t), 0, 1, 0);
	*target = t;
	return c;
}

/* ---- accesses of a CPU ---- */

static inline void store(struct card *c, unsigned int initiator,
			 uint64_t offset, const void *data, size_t len)
{
	while (sim_window_write(c->a, initiator, offset, data, len) ==
	       SIM_BUS_WAIT)
		CHECK(world_step());
}

static inline void load(struct card *c, unsigned int initiator,
			uint64_t offset, void *data, size_t len)
{
	while (sim_window_read(c->a, initiator, offset, data, len) ==
	       SIM_BUS_WAIT)
		CHECK(world_step());
}

static inline uint32_t load32(struct card *c, uint64_t offset)
{
	uint32_t v;

	load(c, 0, offset, &v, sizeof(v));
	return v;
}

/* Store a pattern, @step bytes at a time. */
static inline void store_run(struct card *c, unsigned int initiator,
			     uint64_t offset, size_t len, size_t step,
			     uint8_t seed)
{
	for (size_t i = 0; i < len; i += step) {
		uint8_t data[64];

		for (size_t j = 0; j < step; j++)
			data[j] = (uint8_t)(seed + i + j);
		store(c, initiator, offset + i, data, step);
	}
}

static inline bool stored(const struct card *c, uint16_t id, uint32_t offset,
			  size_t len, uint8_t seed)
{
	for (size_t i = 0; i < len; i++)
		if (c->memory[export_at(id, offset + (uint32_t)i)] !=
		    (uint8_t)(seed + i))
			return false;
	return true;
}

static inline bool barrier_done(struct card *c, uint32_t ticket)
{
	return (int32_t)(csr(c, SCI_PCI_USER_DONE) - ticket) >= 0;
}

/* Do a store barrier and return the error count. */
static inline uint32_t barrier(struct card *c)
{
	uint32_t ticket = csr(c, SCI_PCI_USER_BARRIER);

	while (!barrier_done(c, ticket))
		CHECK(world_step());
	return csr(c, SCI_PCI_USER_ERRORS);
}

#endif
