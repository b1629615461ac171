/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: lines
 *
 * A line is 64 bytes of a ring in the receiver's memory: 62 bytes of payload, and two
 * bytes that show the receiver that the line is complete:
 *
 *	byte 62	bits 0-5  length of a short message (0-62), or 63: typed line
 *		bits 6-7  sequence number: position in the ring's life, mod 4
 *	byte 63	bits 0-6  original values of bit 63 of words 0-6
 *		bit 7	  identifier
 *
 * Bit 63 of each of the eight words contains the identifier: the lap number, mod 2. So the
 * identifier of a slot changes with each use. A line is complete when all eight words have the
 * identifier of the current lap. The words may arrive in any order and with any delay: a mix of old
 * and new words is never taken for a line. (An adapter whose gathering buffer is flushed half-way
 * sends four 16-byte packets, in any order.) On SCI one packet carries a whole line, so this costs
 * no extra transaction. DECK/SCI III.A and SCI-MPICH III.B.1 have one identifier in the last byte,
 * and rely on the packet being whole.
 *
 * The memory of a new ring is zero: the first lap's identifier is 1.
 */
#ifndef LIBSCI_MSG_LINE_H
#define LIBSCI_MSG_LINE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "libsci/base/barrier.h"

#define LINE_BYTES	64u
#define LINE_WORDS	8u
#define LINE_PAYLOAD	62u
#define LINE_TYPED	63u		/* in place of a length */
#define LINE_ID		(1ull << 63)	/* the identifier's bit in each word */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "lines are little-endian");

struct msg_line {
	uint64_t w[LINE_WORDS];
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct msg_line) == LINE_BYTES, "one packet");

/**
 * line_seal() - make the payload in @l a line
 * @id: LINE_ID or 0
 * @kind: bytes of a short message, or LINE_TYPED
 * @seq: position of the line in the ring's life
 */
static inline void line_seal(struct msg_line *l, uint64_t id, unsigned int kind,
			     uint32_t seq)
{
	uint64_t moved = 0;
	unsigned int i;

	for (i = 0; i < LINE_WORDS - 1; i++) {
		moved |= l->w[i] >> 63 << i;
		l->w[i] = (l->w[i] & ~LINE_ID) | id;
	}
	l->w[i] = (l->w[i] & 0xffffffffffffull) |
		  (uint64_t)(kind | (seq & 3) << 6) << 48 | moved << 56 | id;
}

/* Return whether a line may be complete: a polling loop loads only one word. */
static inline bool line_peek(const volatile struct msg_line *slot, uint64_t id)
{
	return !((sci_load_relaxed(&slot->w[LINE_WORDS - 1]) ^ id) & LINE_ID);
}

/**
 * line_take() - copy a line, with its payload as it was before sealing
 * @id: the expected identifier
 *
 * Return: false if the line is not complete.
 */
static inline bool line_take(const volatile struct msg_line *slot, uint64_t id,
			     struct msg_line *out)
{
	uint64_t last = sci_load_acquire(&slot->w[LINE_WORDS - 1]);
	uint64_t other = last ^ id;
	unsigned int i;

	if (other & LINE_ID)
		return false;
	for (i = 0; i < LINE_WORDS - 1; i++) {
		out->w[i] = sci_load_relaxed(&slot->w[i]);
		other |= out->w[i] ^ id;
	}
	if (other & LINE_ID)
		return false;
	for (i = 0; i < LINE_WORDS - 1; i++)
		out->w[i] = (out->w[i] & ~LINE_ID) | last >> (56 + i) << 63;
	out->w[i] = last;
	return true;
}

static inline unsigned int line_kind(const struct msg_line *l)
{
	return l->w[LINE_WORDS - 1] >> 48 & 63;
}

static inline unsigned int line_seq(const struct msg_line *l)
{
	return l->w[LINE_WORDS - 1] >> 54 & 3;
}

/* Copy @len bytes, up to one line, in a few moves, without a call of memcpy(). */
static inline void line_copy(void *dst, const void *src, size_t len)
{
	char *d = dst;
	const char *s = src;

	if (len >= 32) {
		memcpy(d, s, 32);
		memcpy(d + len - 32, s + len - 32, 32);
	} else if (len >= 16) {
		memcpy(d, s, 16);
		memcpy(d + len - 16, s + len - 16, 16);
	} else if (len >= 8) {
		memcpy(d, s, 8);
		memcpy(d + len - 8, s + len - 8, 8);
	} else if (len >= 4) {
		memcpy(d, s, 4);
		memcpy(d + len - 4, s + len - 4, 4);
	} else if (len) {
		d[0] = s[0];
		d[len / 2] = s[len / 2];
		d[len - 1] = s[len - 1];
	}
}

/* The first bytes of a typed line, up to 40, before its payload. Unused bytes are 0. */
struct line_head {
	uint64_t w[5];
	unsigned int len;
};

/**
 * struct line_ops - how this CPU writes and reads lines
 * @put: write a line: @head, then @len bytes from @buf, then @last (the part of the last word that
 *	is not payload, without the identifier and the bits it replaces). Write as many bytes at
 *	once as the CPU can: if a poller sees half of a line, its load takes the cache line from the
 *	writer before the other half is written.
 * @get: as line_take()
 */
struct line_ops {
	void (*put)(volatile struct msg_line *slot, const struct line_head *head,
		    const void *buf, size_t len, uint64_t id, uint64_t last);
	bool (*get)(const volatile struct msg_line *slot, uint64_t id,
		    struct msg_line *out);
};

extern struct line_ops line_ops __attribute__((visibility("hidden")));

/* Choose the functions for this CPU and for SCI_PIO. The first call decides. */
void line_init(void);

static inline uint64_t line_last(unsigned int type, unsigned int kind,
				 uint32_t seq)
{
	return (uint64_t)type << 40 | (uint64_t)(kind | (seq & 3) << 6) << 48;
}

#endif
