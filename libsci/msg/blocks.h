/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Blocks: where they go in a peer's ring, and how they get there. */
#ifndef LIBSCI_MSG_BLOCKS_H
#define LIBSCI_MSG_BLOCKS_H

#include "libsci/msg/endpoint.h"

#include <errno.h>

/* With more peers than this their rings do not fit the caches together. */
#define FEW_PEERS	2u

/*
 * How far a block of a stream should begin behind its source, modulo the 4 KiB of
 * which a CPU compares addresses: a copy to just behind where it comes from takes
 * every load for one of what it has just stored.  Buffers are at the start of a page
 * mostly, on both sides, so that this holds for the receiver's copy, too.  Blocks
 * shorter than that are over too soon, and smaller rings have no room for gaps.
 */
#define ALIAS		4096u
#define ALIAS_APART	512u
#define GAPS_FROM	(64u << 10)

/* The bytes to leave free before a block that could begin at @dst. */
static inline uint32_t gap(const volatile uint8_t *dst, const struct msg_cursor *at)
{
	uint32_t by;
	size_t n;

	by = (uint32_t)((uintptr_t)dst - (uintptr_t)msg_chunk(at, &n)) % ALIAS;
	return by < ALIAS_APART ? (uint32_t)MSG_PAD(ALIAS_APART - by) : 0;
}

/*
 * Where the next block begins: after the last one, or at the start of the ring
 * if there is no room before its end. With many peers also if nothing is in
 * it: what was used a short time ago is still in a cache. (Two that share one
 * are slower that way: what one writes the other has hardly read.)
 */
static inline uint32_t blocks_start(const struct sci_peer *p,
				    const struct msg_blocks *b,
				    const struct msg_cursor *at, size_t len)
{
	uint32_t offset = b->end & (b->size - 1), pad = (uint32_t)MSG_PAD(len);
	uint32_t here = 0, there = 0;

	if (len >= ALIAS && peer_streams(p) && !p->careful &&
	    b->size >= GAPS_FROM) {
		here = gap(b->base + offset, at);
		there = gap(b->base, at);
	}
	if (offset + here + pad > b->size ||
	    (p->ep->n_hot > FEW_PEERS && offset >= there + pad &&
	     sci_load_acquire(b->status) == b->end))
		return b->end + b->size - offset + there;
	return b->end + here;
}

/* Where that is, if there is room for it now, or -EAGAIN. */
static inline int64_t blocks_room(const struct sci_peer *p,
				  const struct msg_blocks *b,
				  const struct msg_cursor *at, size_t len)
{
	uint32_t start = blocks_start(p, b, at, len);
	uint32_t end = start + (uint32_t)MSG_PAD(len);

	peer_refresh(p, b->status, sizeof(*b->status));
	if (end - sci_load_acquire(b->status) > b->size)
		return -EAGAIN;
	return start;
}

/* In fewer the receiver has too much left to copy when the last one has come. */
#define BLOCKS_LEAST	8u

/*
 * How long the blocks of a message of @len are.  A waiting receiver should soon have
 * something to copy.  In a stream the peer has that already, and large blocks take
 * less time to copy.
 *
 * A quarter of the ring at most: a quarter may be lost to the gap at its end,
 * and of another the receiver has not told yet that it is free.
 */
static inline size_t block_limit(const struct sci_peer *p, size_t len)
{
	size_t max = p->ep->params[SCI_PARAM_EAGER_BLOCK];
	size_t most = p->ep->params[SCI_PARAM_BLOCK];
	size_t quarter = p->blocks_tx[RING_EAGER].size / 4;

	while (max < most && (peer_streams(p) || max * BLOCKS_LEAST < len))
		max = max * 2 < most ? max * 2 : most;
	return max < quarter ? max : quarter;
}

/* Where a block of @len bytes is that ends at @end; NULL: not in the ring. */
static inline const uint8_t *blocks_find(const struct sci_peer *p, enum msg_ring ring,
					 uint32_t end, uint32_t len)
{
	const struct msg_blocks_rx *b = &p->blocks_rx[ring];
	uint32_t offset;

	/* MSG_PAD() of what is no longer than the ring is no longer either */
	if (len > b->size)
		return NULL;
	offset = (end - (uint32_t)MSG_PAD(len)) & (b->size - 1);
	if (b->size - offset < len)
		return NULL;
	peer_refresh(p, b->base + offset, len);
	return b->base + offset;
}

/*
 * Put a block where blocks_room() has found some. Returns where it ends, or -EAGAIN.
 * It has arrived when this returns: the line that announces it may go.
 */
static inline int64_t blocks_put(struct sci_peer *p, struct msg_blocks *b,
				 int64_t room, struct msg_cursor *at, size_t len,
				 uint32_t *crc)
{
	uint32_t start = (uint32_t)room;
	volatile uint8_t *dst = b->base + (start & (b->size - 1));
	const void *src;
	size_t n;
	int ret;

	*crc = p->ep->crc ? blocks_crc(*at, len) : 0;
	src = msg_chunk(at, &n);
	if (n >= len && !p->careful) {
		msg_copy((void *)dst, src, len);
		msg_skip(at, len);
	} else {
		ret = remote_store(p, b->seg, dst, at, len, true);
		if (ret)
			return ret;
	}
	b->end = start + (uint32_t)MSG_PAD(len);
	return b->end;
}

#endif
