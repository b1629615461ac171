// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: SCI-MPICH
 *
 * Worringen, Bemmerl: MPICH for SCI-connected Clusters; III.B.
 *
 *  - A control packet is 64 bytes: 12 of header, 47 of payload, 4 that align, 1
 *    of identifier.  Packets go through a ring; the sender reads the receiver's
 *    count (a remote read) when the ring seems to be full.  After each packet
 *    and each block the sender reads the error counter, a register of the adapter.
 *  - Remote stores are the FPU's, 8 bytes at a time (IV.B): the profile's
 *    bus_fpu.
 *  - Short: a control packet.  Eager: the message, then a control packet; the
 *    receiver returns the buffer's pointer.  Rendezvous: the receiver offers a
 *    buffer for each part of the message, and copies each block while the sender
 *    stores the next block.
 *  - The layer above (MPIR) takes about 2.5 us per message: IV.B.2, measured on
 *    the 450 MHz CPU of profile A.  The model uses this time on all profiles.
 *
 * The model assumes: a store barrier before a control packet that announces data,
 * since packets have no order (III.A: "must be taken into account"); blocks of 8 kB,
 * where the local copy is fastest (IV.B.2), and a buffer of 512 kB; half of MPIR's
 * time in each process; 64 places in a ring.
 *
 * The 7.26 us that DECK (IV.A) measured for SCI-MPICH on profile B are of another
 * operating system and a later release.  The CPU of B is faster than the CPU
 * of A, and no other part of B is slower, so the model stays 10 % below 7.26 us.
 */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "sim/vtime/papers_mpich.h"
#include "sim/vtime/papers_run.h"

#define MPIR		(2500u * VT_NS)
#define SHORT_MAX	47u
#define SLOTS		64u

struct packet {
	uint32_t length;
	uint32_t kind;
	uint32_t more;
	uint8_t payload[SHORT_MAX];
	uint8_t align[4];
	uint8_t id;
};

/* Memory to which the other process stores. The other process also reads @count. */
struct shared {
	struct packet ring[SLOTS];
	_Alignas(PAPER_LINE) uint32_t count;	/* packets taken */
	_Alignas(PAPER_LINE) uint32_t returned;	/* eager buffers */
	_Alignas(PAPER_LINE) uint8_t data[];
};

static_assert(sizeof(struct packet) == PAPER_LINE, "a packet is a line");

/* Store by the FPU. The bus takes bursts of a line; the FPU's loop takes longer than the bus. */
static void mpich_store(struct paper_side *s, volatile void *to, const void *from,
			size_t len)
{
	const struct vt_profile *p = s->profile;
	uint64_t more = p->bus_fpu > p->bus_line ? p->bus_fpu - p->bus_line : 0;

	for (size_t at = 0; at < len; at += PAPER_LINE) {
		size_t k = len - at < PAPER_LINE ? len - at : PAPER_LINE;

		vt_busy(s->node, k == PAPER_LINE ? more : 0);
		vt_store(s->node, (volatile uint8_t *)to + at,
			 (const uint8_t *)from + at, k);
	}
}

static void errors_check(struct paper_side *s)
{
	vt_register(s->node, SCI_PCI_USER_ERRORS);
}

static void mpich_put_packet(struct paper_side *s, const void *payload, size_t len)
{
	volatile struct shared *far = s->far;
	struct packet packet = {
		.length = (uint32_t)s->size, .id = paper_id(s->sent),
	};

	/* when all slots seem to be full, read the receiver's count: the only remote read */
	while (s->sent - s->more_got >= SLOTS)
		vt_load(s->node, &s->more_got, &far->count,
			sizeof(s->more_got));
	memcpy(packet.payload, payload, len);
	vt_busy(s->node, s->profile->line_put);
	mpich_store(s, &far->ring[s->sent % SLOTS], &packet, sizeof(packet));
	s->sent++;
	errors_check(s);
}

/* Take a packet from the only ring, that of the other process. */
static const struct packet *mpich_take_packet(struct paper_side *s)
{
	struct shared *near = s->near;
	const struct packet *packet = &near->ring[s->got % SLOTS];

	paper_poll(s, &packet->id, paper_id(s->got), 0);
	vt_busy(s->node, s->profile->line_take);
	return packet;
}

static void packet_taken(struct paper_side *s)
{
	struct shared *near = s->near;

	near->count = ++s->got;
}

/* Add the time of MPIR in one of the two processes. */
static void mpich_take_mpir_time(struct paper_side *s)
{
	vt_busy(s->node, MPIR / 2);
}

/* ---- short ---- */

static size_t short_memory(size_t bytes)
{
	(void)bytes;
	return sizeof(struct shared);
}

static void short_send(struct paper_side *s)
{
	mpich_take_mpir_time(s);
	mpich_put_packet(s, s->buf, s->size);
}

static const uint8_t *short_recv(struct paper_side *s)
{
	const struct packet *packet = mpich_take_packet(s);

	if (packet->length)
		vt_copy(s->node, s->buf, packet->payload, packet->length);
	packet_taken(s);
	mpich_take_mpir_time(s);
	return s->buf;
}

/* ---- eager ---- */

static size_t eager_memory(size_t bytes)
{
	return sizeof(struct shared) + paper_lines(bytes);
}

/* Store, and wait until the stores have arrived, because the next packet announces them. */
static void mpich_store_and_wait(struct paper_side *s, volatile void *to,
				 const void *from, size_t len)
{
	mpich_store(s, to, from, len);
	vt_barrier(s->node);
	errors_check(s);
}

static void eager_send(struct paper_side *s)
{
	volatile struct shared *far = s->far;

	mpich_take_mpir_time(s);
	mpich_store_and_wait(s, far->data, s->buf, s->size);
	mpich_put_packet(s, "", 0);
}

static const uint8_t *eager_recv(struct paper_side *s)
{
	volatile struct shared *far = s->far;
	struct shared *near = s->near;

	mpich_take_packet(s);
	vt_copy(s->node, s->buf, near->data, s->size);
	packet_taken(s);
	vt_store(s->node, &far->returned, &s->got, sizeof(s->got));
	mpich_take_mpir_time(s);
	return s->buf;
}

/* ---- rendezvous ---- */

static size_t mpich_min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t rendezvous_memory(size_t bytes)
{
	return sizeof(struct shared) + paper_lines(mpich_min_size(bytes, MPICH_BUFFER));
}

static void part_send(struct paper_side *s, const uint8_t *from, size_t len)
{
	volatile struct shared *far = s->far;

	mpich_take_packet(s);				/* the buffer's address */
	packet_taken(s);
	for (size_t at = 0; at < len; at += MPICH_BLOCK) {
		mpich_store_and_wait(s, far->data + at, from + at,
				     mpich_min_size(len - at, MPICH_BLOCK));
		mpich_put_packet(s, "", 0); /* BLOCK_READY, or the end */
	}
}

static void part_recv(struct paper_side *s, uint8_t *to, size_t len)
{
	struct shared *near = s->near;

	mpich_put_packet(s, "", 0);
	for (size_t at = 0; at < len; at += MPICH_BLOCK) {
		mpich_take_packet(s);
		packet_taken(s);
		vt_copy(s->node, to + at, near->data + at,
			mpich_min_size(len - at, MPICH_BLOCK));
	}
}

static void rendezvous_send(struct paper_side *s)
{
	mpich_take_mpir_time(s);
	mpich_put_packet(s, "", 0); /* the request */
	for (size_t at = 0; at < s->size; at += MPICH_BUFFER)
		part_send(s, s->buf + at, mpich_min_size(s->size - at, MPICH_BUFFER));
}

static const uint8_t *rendezvous_recv(struct paper_side *s)
{
	mpich_take_packet(s);
	packet_taken(s);
	for (size_t at = 0; at < s->size; at += MPICH_BUFFER)
		part_recv(s, s->buf + at, mpich_min_size(s->size - at, MPICH_BUFFER));
	mpich_take_mpir_time(s);
	return s->buf;
}

const struct paper_protocol mpich_short = {
	short_memory, SHORT_MAX, short_send, short_recv,
};
const struct paper_protocol mpich_eager = {
	eager_memory, SIZE_MAX, eager_send, eager_recv,
};
const struct paper_protocol mpich_rendezvous = {
	rendezvous_memory, SIZE_MAX, rendezvous_send, rendezvous_recv,
};
