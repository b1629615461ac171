// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * The command "garbage": packets that no adapter would send, with a valid CRC. The source in these
 * packets is a node that does not exist. The packets would use up the numbers of a node that is
 * attached or attaches again, and the target would drop the node's own requests. (fault.c garbles
 * packets of attached nodes.)
 */
#include <string.h>
#include <time.h>

#include "sim/switch/answer.h"
#include "sim/switch/command.h"
#include "sim/switch/conn.h"
#include "sim/switch/fabric.h"
#include "sim/switch/node.h"
#include "sim/switch/words.h"

#define COUNT_MAX	1000000u
#define MAILBOX_DATA	64u

static uint32_t garbage_random(struct fabric *f)
{
	/* xorshift64*, continued from the seed */
	uint64_t x = f->garbage ? f->garbage : f->seed ^ UINT64_C(0x5c10);

	x = x ? x : 1;
	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	f->garbage = x;
	return (uint32_t)(x * UINT64_C(2685821657736338717) >> 32);
}

static void garbage_fill(struct fabric *f, void *p, size_t size)
{
	unsigned char *byte = p;

	while (size--)
		*byte++ = (unsigned char)garbage_random(f);
}

/*
 * Return an epoch that is higher than all earlier epochs, also of an earlier daemon. Adapters use
 * the same clock.
 */
static uint64_t epoch_next(struct fabric *f)
{
	struct timespec ts;

	if (!f->garbage_epoch) {
		clock_gettime(CLOCK_BOOTTIME, &ts);
		f->garbage_epoch = (uint64_t)ts.tv_sec * NSEC_PER_SEC +
				   (uint64_t)ts.tv_nsec;
	}
	return f->garbage_epoch++;
}

/* Make a valid mailbox request with random data. */
static void mailbox_make(struct fabric *f, struct sim_packet *s)
{
	s->kind = PACKET_MAILBOX;
	s->size = PACKET_HEADER + MAILBOX_DATA;
	s->epoch = epoch_next(f);
	s->number = s->floor = garbage_random(f);
	garbage_fill(f, s->data, MAILBOX_DATA);
}

static void malformed_make(struct fabric *f, struct sim_packet *s)
{
	uint16_t source = s->source, target = s->target;

	garbage_fill(f, s, sizeof(*s));
	s->source = source;
	s->target = target;
	s->size = (uint16_t)(PACKET_HEADER + garbage_random(f) % (PACKET_DATA_MAX + 1));
	if (garbage_random(f) % 2)
		s->kind = (uint8_t)(garbage_random(f) % (PACKET_READ_CSR + 2));
}

/* Make a frame. Return its size, which sometimes differs from the size in the packet. */
static size_t frame_make(struct fabric *f, struct node *to, uint16_t from,
			 struct frame_packet *frame)
{
	struct sim_packet *s = &frame->packet;
	size_t size;

	memset(frame, 0, sizeof(*frame));
	frame->head = (struct frame){ .kind = FRAME_PACKET, .node = to->id };
	s->source = from;
	s->target = to->id;
	if (garbage_random(f) % 2)
		mailbox_make(f, s);
	else
		malformed_make(f, s);
	size = sizeof(frame->head) + s->size;
	if (garbage_random(f) % 16 == 0)
		s->size = (uint16_t)garbage_random(f);
	s->crc = packet_crc(s);
	return size;
}

/* Return the highest id that no node has; 0: there is none. */
static uint16_t node_find_free_id(struct fabric *f)
{
	uint16_t id = NODE_ID_MAX;

	while (id && node_find(f, id))
		id -= 4;
	return id;
}

static bool source_parse(struct fabric *f, struct words *w, uint16_t *from, struct answer *a)
{
	if (w->count < 4) {
		*from = node_find_free_id(f);
		return *from || answer_fail(a, "no node id is free");
	}
	if (!node_id_parse(w->word[3], from))
		return answer_fail(a, "%.40s: " NODE_ID_RULE, w->word[3]);
	if (node_find(f, *from))
		return answer_fail(a, "node %u exists: see garble", *from);
	return true;
}

bool command_garbage(struct fabric *f, struct words *w, struct answer *a)
{
	struct node *to = command_node(f, w->word[1], a);
	struct frame_packet frame;
	uint64_t count;
	uint16_t from;

	if (!to)
		return false;
	if (!parse_number(w->word[2], COUNT_MAX, &count))
		return answer_fail(a, "%.40s: up to %u packets", w->word[2],
				   COUNT_MAX);
	if (!source_parse(f, w, &from, a))
		return false;
	while (count--) {
		size_t size = frame_make(f, to, from, &frame);

		node_count(to, conn_send_packet(to->conn, &frame, size) ?
				       COUNT_DELIVERED : COUNT_OVERFLOW);
	}
	return true;
}
