// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: DECK/SCI
 *
 * de Oliveira, Avila, Barreto, Navaux: Low-latency and zero-copy message
 * passing protocols for SCI-based clusters; III.A to C.  The paper says:
 *
 *  - all remote stores are MMX bursts of multiples of 64 bytes;
 *  - a receiver polls a ring for each process, and for protocol 2 a control packet
 *    for each process; with 4 nodes (II.A) the receiver polls 8 places;
 *  - a receiver that has taken a message writes its read position to the sender,
 *    which does not wait for the position.  Its 4 bytes stay in a stream buffer until the
 *    next store to another line, which in a ping-pong is the answer;
 *  - all operations are thread-safe: each has a lock and an unlock, of one locked
 *    instruction each;
 *  - the latency is the same from 0 to 62 bytes, so all 62 bytes are always copied.
 *
 * The model assumes: protocol 3 begins with a control packet in the place of protocol 2's
 * control packets, and a process in protocol 3 polls only one place.
 *
 * Figures from which the model differs by more than a tenth (profile B):
 *
 *  - Largest bandwidth of protocol 2: +11 %.  The model copies received bytes at
 *    334 MB/s, SCI-MPICH's figure for its best block, of 8 kB.  Copies at 218 MB/s would
 *    give the published 62.54, because large blocks do not come from a cache.  No paper
 *    has such a raw figure, so the profile has none.
 *
 *  - Smallest latency of protocol 3: +59 %.  Request, answer, data, the answer to the
 *    data and the end are five packets, one after the other.  The published 9.82 us are
 *    protocol 2's 8.56 us and 1.26 us for two more packets.  But the paper's own remote
 *    write takes 2 to 3 us (I), and a packet of protocol 1 takes 4.66 us.  The authors
 *    cannot have measured the protocol that they describe.  Perhaps the sender asked for
 *    the address ahead, or only once.
 */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "sim/vtime/papers_run.h"

#define SHORT_MAX	62u
#define SLOTS		16u	/* of a ring; the paper does not give the number */
#define HEADER		8u	/* header of protocol 2: the size */
#define PROCESSES	4u
#define PLACES		(2 * PROCESSES)

struct packet {
	uint8_t data[SHORT_MAX];
	uint8_t sequence;
	uint8_t id;
};

/* Memory of this side to which the other side stores. */
struct mailbox {
	struct packet ring[SLOTS];
	struct packet control;
	struct packet answer;
	_Alignas(PAPER_LINE) uint32_t position;	/* read position of the other side */
	_Alignas(PAPER_LINE) uint8_t data[];
};

static_assert(sizeof(struct packet) == PAPER_LINE, "a packet is a line");

static void deck_lock(struct paper_side *s)
{
	vt_busy(s->node, s->profile->atomic);
}

static void deck_unlock(struct paper_side *s)
{
	vt_busy(s->node, s->profile->atomic);
}

static void deck_put_packet(struct paper_side *s, volatile struct packet *to,
			    const void *data, size_t len, uint32_t number)
{
	struct packet packet = {
		.sequence = (uint8_t)number, .id = paper_id(number),
	};

	memcpy(packet.data, data, len);
	vt_busy(s->node, s->profile->line_put);
	vt_store(s->node, to, &packet, sizeof(packet));
}

static void deck_take_packet(struct paper_side *s, const struct packet *from,
			     uint32_t number, unsigned int others)
{
	paper_poll(s, &from->id, paper_id(number), others);
	vt_busy(s->node, s->profile->line_take);
}

/* Wait until fewer than @most of the sent packets are unread. */
static void room_await(struct paper_side *s, uint32_t most)
{
	struct mailbox *near = s->near;
	const volatile uint32_t *position = &near->position;

	for (;;) {
		uint64_t seen = vt_touches(s->node);

		vt_busy(s->node, s->profile->load_local);
		vt_sync(s->node);
		if (s->sent - *position < most)
			return;
		vt_wait(s->node, seen, VT_NEVER);
	}
}

static void position_send(struct paper_side *s)
{
	volatile struct mailbox *far = s->far;

	s->got++;
	vt_store(s->node, &far->position, &s->got, sizeof(s->got));
}

/* ---- protocol 1 ---- */

static size_t protocol1_memory(size_t bytes)
{
	(void)bytes;
	return sizeof(struct mailbox);
}

static void protocol1_send(struct paper_side *s)
{
	volatile struct mailbox *far = s->far;

	deck_lock(s);
	room_await(s, SLOTS);
	deck_put_packet(s, &far->ring[s->sent % SLOTS], s->buf, s->size, s->sent);
	s->sent++;
	deck_unlock(s);
}

static const uint8_t *protocol1_recv(struct paper_side *s)
{
	struct mailbox *near = s->near;
	const struct packet *packet = &near->ring[s->got % SLOTS];

	deck_lock(s);
	deck_take_packet(s, packet, s->got, PLACES - 1);
	vt_copy(s->node, s->buf, packet->data, SHORT_MAX);
	position_send(s);
	deck_unlock(s);
	return s->buf;
}

/* ---- protocol 2 ---- */

static size_t protocol2_memory(size_t bytes)
{
	return sizeof(struct mailbox) + paper_lines(HEADER + bytes);
}

static void protocol2_send(struct paper_side *s)
{
	volatile struct mailbox *far = s->far;
	uint8_t line[PAPER_LINE] = { 0 };
	size_t first = PAPER_LINE - HEADER;

	deck_lock(s);
	room_await(s, 1);
	/* store the header and the message as one block */
	memcpy(line, &s->size, sizeof(s->size));
	memcpy(line + HEADER, s->buf, s->size < first ? s->size : first);
	vt_store(s->node, far->data, line, sizeof(line));
	if (s->size > first)
		vt_store(s->node, far->data + PAPER_LINE, s->buf + first,
			 paper_lines(s->size - first));
	vt_barrier(s->node);
	deck_put_packet(s, &far->control, "", 0, s->sent);
	s->sent++;
	deck_unlock(s);
}

static const uint8_t *protocol2_recv(struct paper_side *s)
{
	struct mailbox *near = s->near;
	size_t size;

	deck_lock(s);
	deck_take_packet(s, &near->control, s->got, PLACES - 1);
	vt_busy(s->node, s->profile->load_local);
	memcpy(&size, near->data, sizeof(size));
	vt_copy(s->node, s->buf, near->data + HEADER, size);
	position_send(s);
	deck_unlock(s);
	return s->buf;
}

/* ---- protocol 3 ---- */

static size_t protocol3_memory(size_t bytes)
{
	return sizeof(struct mailbox) + paper_lines(bytes);
}

static void protocol3_send(struct paper_side *s)
{
	volatile struct mailbox *far = s->far;
	struct mailbox *near = s->near;

	deck_lock(s);
	deck_put_packet(s, &far->control, "", 0, s->sent++);
	deck_take_packet(s, &near->answer, s->more_got++, 0);
	vt_store(s->node, far->data, s->buf, paper_lines(s->size));
	vt_barrier(s->node);
	deck_put_packet(s, &far->control, "", 0, s->sent++);
	deck_unlock(s);
}

static const uint8_t *protocol3_recv(struct paper_side *s)
{
	volatile struct mailbox *far = s->far;
	struct mailbox *near = s->near;

	deck_lock(s);
	deck_take_packet(s, &near->control, s->got++, PLACES - 1);
	deck_put_packet(s, &far->answer, "", 0, s->more_sent++);
	deck_take_packet(s, &near->control, s->got++, 0);
	deck_unlock(s);
	return near->data;
}

const struct paper_protocol deck_1 = { protocol1_memory, SHORT_MAX, protocol1_send, protocol1_recv };
const struct paper_protocol deck_2 = { protocol2_memory, SIZE_MAX, protocol2_send, protocol2_recv };
const struct paper_protocol deck_3 = { protocol3_memory, SIZE_MAX, protocol3_send, protocol3_recv };
