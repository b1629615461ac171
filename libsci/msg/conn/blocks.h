/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Blocks of a message: their place in the peer's ring, and how they are written. */
#ifndef LIBSCI_MSG_BLOCKS_H
#define LIBSCI_MSG_BLOCKS_H

#include "libsci/msg/conn/conn.h"

#include <errno.h>

/* The rings of more peers than this do not fit the cache together. */
#define FEW_PEERS	2u

/*
 * The minimum distance of a block in a stream from its source, modulo 4 KiB. A CPU compares only
 * the lower 12 bits of addresses: if the destination is just behind the source, each load seems to
 * depend on the store before the load. Most buffers begin at a page boundary on both sides, so the
 * distance helps the receiver's copy, too. Shorter blocks gain too little, and rings below
 * GAPS_FROM have no room for gaps.
 */
#define ALIAS		4096u
#define ALIAS_APART	512u
#define GAPS_FROM	(64u << 10)

/* Return how many bytes to leave free before a block that could begin at @dst. */
static inline uint32_t blocks_gap(const volatile uint8_t *dst, const struct msg_cursor *at)
{
	uint32_t by;
	size_t n;

	by = (uint32_t)((uintptr_t)dst - (uintptr_t)msg_chunk(at, &n)) % ALIAS;
	return by < ALIAS_APART ? (uint32_t)MSG_PAD(ALIAS_APART - by) : 0;
}

/*
 * Return the position of the next block: after the last block, or at the start of the ring if the
 * rest of the ring is too short. With many peers, a block in an empty ring also begins at the
 * start, because these bytes are still in a cache. (Two processes that share a cache would be
 * slower with this rule: the receiver has only just read the bytes that the sender overwrites.)
 */
static inline uint32_t blocks_start(const struct sci_peer *p,
				    const struct msg_blocks *b,
				    const struct msg_cursor *at, size_t len)
{
	uint32_t offset = b->end & (b->size - 1), pad = (uint32_t)MSG_PAD(len);
	uint32_t here = 0, there = 0;

	if (len >= ALIAS && peer_streams(p) && !p->careful &&
	    b->size >= GAPS_FROM) {
		here = blocks_gap(b->base + offset, at);
		there = blocks_gap(b->base, at);
	}
	if (offset + here + pad > b->size ||
	    (p->ep->n_hot > FEW_PEERS && offset >= there + pad &&
	     sci_load_acquire(b->status) == b->end))
		return b->end + b->size - offset + there;
	return b->end + here;
}

/* Return the position up to which the peer has read. */
static inline uint32_t blocks_read(const struct sci_peer *p, const struct msg_blocks *b)
{
	peer_refresh(p, b->status, sizeof(*b->status));
	return sci_load_acquire(b->status);
}

/*
 * Update b->free for a block at @start, when the peer has read up to @read. In an empty ring the
 * bytes before @start hold no block: they need no credit. Ignore an impossible position.
 */
static inline void blocks_credit(struct msg_blocks *b, uint32_t start, uint32_t read)
{
	if (read == b->end)
		b->free = start;
	else if ((int32_t)(read - b->free) > 0 && (int32_t)(b->end - read) > 0)
		b->free = read;
}

/* Return the position of the next block, or -EAGAIN if the ring has no room for it. */
static inline int64_t blocks_room(const struct sci_peer *p, struct msg_blocks *b,
				  const struct msg_cursor *at, size_t len)
{
	uint32_t start = blocks_start(p, b, at, len);
	uint32_t end = start + (uint32_t)MSG_PAD(len);

	blocks_credit(b, start, blocks_read(p, b));
	return end - b->free > b->size ? -EAGAIN : (int64_t)start;
}

/* Return whether the ring has room for blocks of @len bytes together. */
static inline bool blocks_have_room(const struct sci_peer *p, struct msg_blocks *b, size_t len)
{
	/* each message can leave a gap of a quarter of the ring at its end: see block_limit() */
	size_t most = b->size - b->size / 4;

	blocks_credit(b, b->end, blocks_read(p, b));
	return len <= most && b->end - b->free <= most - len;
}

/* With fewer blocks, the receiver has too much left to copy when the last block arrives. */
#define BLOCKS_LEAST	8u

/*
 * Return the length of the blocks for a message of @len bytes. Small blocks let a waiting receiver
 * start early. In a stream the receiver has earlier blocks to copy, and large blocks take less
 * time.
 *
 * The limit is a quarter of the ring: up to one quarter is lost in the gap at the end of the ring,
 * and the receiver has not yet returned the credits for another quarter.
 */
static inline size_t block_limit(const struct sci_peer *p, size_t len)
{
	size_t max = p->params->value[SCI_PARAM_EAGER_BLOCK];
	size_t most = p->params->value[SCI_PARAM_BLOCK];
	size_t quarter = p->blocks_tx[RING_EAGER].size / 4;

	while (max < most && (peer_streams(p) || max * BLOCKS_LEAST < len))
		max = max * 2 < most ? max * 2 : most;
	return max < quarter ? max : quarter;
}

/* Return the block of @len bytes that ends at @end, or NULL if it is not in the ring. */
static inline const uint8_t *blocks_find(struct sci_peer *p, enum msg_ring ring,
					 uint32_t end, uint32_t len)
{
	const struct msg_blocks_rx *b = blocks_rx(p, ring);
	uint32_t offset;

	/* a length within the ring stays within it when MSG_PAD() rounds it up */
	if (len > b->size)
		return NULL;
	offset = (end - (uint32_t)MSG_PAD(len)) & (b->size - 1);
	if (b->size - offset < len)
		return NULL;
	peer_refresh(p, b->base + offset, len);
	return b->base + offset;
}

/*
 * Write a block to the position that blocks_room() returned. After the return, the block has
 * arrived, and the caller may send the line that announces it.
 *
 * Return: the end of the block, or -EAGAIN.
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
