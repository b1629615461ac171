// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <string.h>

#include "sim/switch/fault.h"
#include "sim/switch/flight.h"
#include "sim/switch/point.h"

#define FLIPS_MAX	3u	/* a CRC-32 always detects up to so many flipped bits */
/* bits of a packet's size, which corruption never changes, so that the frame stays valid */
#define SIZE_BITS	16u
#define SIZE_AT		(8 * offsetof(struct sim_packet, size)) /* the CRC */

/* Salts of the generator. The key of a fault is its salt. */
enum { SALT_JITTER = KEYS, SALT_FLIPS, SALT_FLIP, SALT_DAMAGE,
       SALT_GARBLE };

static bool fault_chance(const struct point *pt, enum key k)
{
	uint64_t ppm = pt->value[k];

	return ppm && (point_draw(pt, k) >> 32) * PPM >> 32 < ppm;
}

static bool packet_is_swallowed(const struct point *pt, const struct flight *p)
{
	/* flight_deliver() handles KEY_STUCK of a node, which drops responses to the node. */
	return pt->value[KEY_DOWN] ||
	       (pt->value[KEY_STUCK] && !pt->is_node && p->response);
}

static void packet_flip(struct flight *p, unsigned int bit)
{
	unsigned char *byte = (unsigned char *)&p->frame.packet;

	if (bit >= SIZE_AT)
		bit += SIZE_BITS;
	byte[bit / 8] ^= (unsigned char)(1u << bit % 8);
}

/* Corrupt a packet at most once: a second corruption might undo the first. */
static void packet_corrupt(struct point *pt, struct flight *p)
{
	unsigned int bits = 8u * p->frame.packet.size - SIZE_BITS;
	unsigned int flips = 1 + point_draw(pt, SALT_FLIPS) % FLIPS_MAX;
	unsigned int bit = point_draw(pt, SALT_FLIP) % bits, i;

	pt->counter[COUNT_CORRUPTED]++;
	if (p->corrupted)
		return;
	p->corrupted = true;
	for (i = 0; i < flips; i++)
		packet_flip(p, (bit + i * (bits / FLIPS_MAX)) % bits);
}

/* Replace the data of a valid mailbox packet by random bytes. */
static void packet_garble(struct point *pt, struct flight *p)
{
	struct sim_packet *s = &p->frame.packet;
	size_t i, size = s->size - PACKET_HEADER;

	if (s->kind != PACKET_MAILBOX || s->crc != packet_crc(s) ||
	    !fault_chance(pt, KEY_GARBLE))
		return;
	for (i = 0; i < size; i++)
		s->data[i] = (uint8_t)point_draw(pt, SALT_GARBLE + (unsigned int)i);
	s->crc = packet_crc(s);
	pt->counter[COUNT_GARBLED]++;
}

static bool packet_has_message(const struct sim_packet *s)
{
	return s->kind == PACKET_MAILBOX && s->crc == packet_crc(s) &&
	       s->size == PACKET_HEADER + MESSAGE_AT + MESSAGE_SIZE &&
	       s->data[CONTROL_TYPE] == CONTROL_DATA;
}

/* Change the type, a byte or a word of a message, or repeat the previous message. */
static void message_change(struct point *pt, uint8_t *m)
{
	static const uint32_t words[] = {
		0, 1, 2, 3, 4096, INT32_MAX, UINT32_C(1) << 31, UINT32_MAX,
	};
	uint64_t r = point_draw(pt, SALT_DAMAGE);
	uint32_t at = (uint32_t)(r >> 8) & 0xffff;

	switch (r % 4) {
	case 0:		/* any type, also 0 and a type that does not exist */
		m[0] = (uint8_t)(at % (MESSAGE_TYPES + 2));
		break;
	case 1:
		m[at % MESSAGE_SIZE] = (uint8_t)(r >> 32);
		break;
	case 2:
		memcpy(m + at % (MESSAGE_SIZE / 4) * 4,
		       &words[(r >> 32) % (sizeof(words) / sizeof(*words))], 4);
		break;
	case 3:
		memcpy(m, pt->message, MESSAGE_SIZE);
		break;
	}
}

/* Damage the message in a valid packet, so that the receiver has to check it. */
static void packet_damage(struct point *pt, struct flight *p)
{
	struct sim_packet *s = &p->frame.packet;
	uint8_t *m = s->data + MESSAGE_AT, sent[MESSAGE_SIZE];

	if (!packet_has_message(s))
		return;
	memcpy(sent, m, sizeof(sent));
	if (fault_chance(pt, KEY_DAMAGE)) {
		message_change(pt, m);
		s->crc = packet_crc(s);
		pt->counter[COUNT_DAMAGED]++;
	}
	memcpy(pt->message, sent, sizeof(sent));
}

static uint64_t packet_delay(const struct point *pt)
{
	uint64_t jitter = pt->value[KEY_JITTER];

	if (jitter)
		jitter = point_draw(pt, SALT_JITTER) % (jitter + 1);
	return pt->value[KEY_DELAY] + jitter;
}

/* Count a packet that has passed, and release a held packet that has waited long enough. */
static void packet_overtaken(struct point *pt)
{
	if (pt->held && !--pt->hold_left)
		flight_release(pt);
}

static bool packet_hold_back(struct point *pt, const struct flight *p)
{
	if (pt->held || !fault_chance(pt, KEY_REORDER) || !flight_hold(pt, p))
		return false;
	pt->counter[COUNT_REORDERED]++;
	return true;
}

bool fault_pass(struct point *pt, struct flight *p)
{
	if (packet_is_swallowed(pt, p) || fault_chance(pt, KEY_LOSS)) {
		pt->counter[COUNT_LOST]++;
		return false;
	}
	p->delay += packet_delay(pt);	/* also of the copy, which does not pass @pt again */
	if (fault_chance(pt, KEY_DUPLICATE) && flight_copy(p)) {
		pt->counter[COUNT_DUPLICATED]++;
		pt->counter[COUNT_FORWARDED]++;
		pt->counter[COUNT_BYTES] += p->frame.packet.size;
	}
	if (pt->value[KEY_GARBLE])
		packet_garble(pt, p);
	if (pt->value[KEY_DAMAGE])
		packet_damage(pt, p);
	if (fault_chance(pt, KEY_CORRUPT))
		packet_corrupt(pt, p);
	if (packet_hold_back(pt, p))
		return false;
	packet_overtaken(pt);
	return true;
}
