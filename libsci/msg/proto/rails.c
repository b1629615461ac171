// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Long transfers between two endpoints that have two rails: conn/rail.c. The sender writes two parts
 * at a time, one through each rail, as long as both rails are usable: two blocks of a rendezvous, if
 * both rings have room, or two halves of a piece of a zero-copy message or of a one-sided write.
 */

#include "libsci/msg/conn/blocks.h"
#include "libsci/msg/proto/proto.h"

#include <assert.h>

/* A block that has room in a ring. */
struct planned {
	enum msg_ring ring;
	uint32_t start;
};

/* ---- the receiver ---- */

/* Return the credits for a block in the ring on the second rail that has been copied. */
void rail_taken(struct sci_peer *p, uint32_t end)
{
	p->status_next.rail = end;
	if (p->state == PEER_UP &&
	    ring_due(p, RING_RAIL, end - p->status_sent.rail))
		status_write(p);
}

/* ---- the sender ---- */

static struct msg_rail rail_of(struct sci_peer *p, enum msg_ring ring, struct sci_rseg *seg)
{
	return (struct msg_rail){
		.fabric = ring_fabric(p, ring),
		.link = ring == RING_RAIL ? p->ep->rail_link : p->ep->link,
		.seg = seg, .ring = ring, .tries = RAIL_TRIES,
	};
}

/* Count a part that has arrived, or note that its rail has failed. */
static void rail_count(struct sci_peer *p, const struct rail_part *part)
{
	struct sci_ep_stats *stats = &p->ep->stats;

	if (part->ret) {
		rail_fail(p, part->rail.ring);
		return;
	}
	ring_lent(p, part->rail.ring)->pause = 0;
	if (part->rail.ring == RING_RAIL) {
		stats->second_rail_bytes += part->len;
		return;
	}
	stats->first_rail_bytes += part->len;
	reroute_home(p);
}

/*
 * Store the next parts of @req at the same time. Return the number of parts that have arrived
 * before the first one that has not.
 */
static unsigned int parts_store(struct sci_req *req, struct rail_part *part, unsigned int n,
				bool block)
{
	unsigned int i;

	rails_store(req->peer, part, n, block);
	for (i = 0; i < n; i++) {
		rail_count(req->peer, &part[i]);
		if (part[i].ret)
			break;
	}
	return i;
}

static void part_skip(struct sci_req *req, const struct rail_part *part)
{
	msg_skip(&req->at, part->len);
	req->moved += part->len;
}

/* ---- blocks ---- */

/* Plan a block of @len bytes at @at. Return false if the ring has no room for it. */
static bool block_plan(struct sci_peer *p, enum msg_ring ring, const struct msg_cursor *at,
		       size_t len, struct planned *block, struct rail_part *part)
{
	struct msg_blocks *b = blocks_tx(p, ring);
	int64_t start = len ? blocks_room(p, b, at, len) : -1;

	if (start < 0)
		return false;
	*block = (struct planned){ .ring = ring, .start = (uint32_t)start };
	*part = (struct rail_part){
		.rail = rail_of(p, ring, b->seg), .at = *at, .len = len,
		.dst = b->base + (block->start & (b->size - 1)),
	};
	return true;
}

/* Plan the next one or two blocks of @req. Return their number. */
static unsigned int blocks_plan(struct sci_req *req, struct planned *block,
				struct rail_part *part)
{
	struct sci_peer *p = req->peer;
	size_t left = req->want - req->moved;
	struct msg_cursor at = req->at;
	unsigned int n = 0;

	if (rail_ready(p, RING_XFER) &&
	    block_plan(p, RING_XFER, &at, rndv_block_size(req, RING_XFER, left), &block[n],
		       &part[n])) {
		left -= part[n].len;
		msg_skip(&at, part[n].len);
		n++;
	}
	if (rail_ready(p, RING_RAIL))
		n += block_plan(p, RING_RAIL, &at, rndv_block_size(req, RING_RAIL, left),
				&block[n], &part[n]);
	return n;
}

/* Announce a block that has arrived. */
static void block_announce(struct sci_req *req, const struct planned *block,
			   const struct rail_part *part)
{
	struct sci_peer *p = req->peer;
	uint32_t end = block->start + (uint32_t)MSG_PAD(part->len);
	const struct msg_typed t = {
		.type = LINE_BLOCK,
		.block = {
			.to = req->their_id, .len = (uint32_t)part->len, .end = end,
			.crc = p->ep->crc ? blocks_crc(part->at, part->len) : 0,
			.offset = req->moved, .ring = (uint8_t)block->ring,
		},
	};

	blocks_tx(p, block->ring)->end = end;
	part_skip(req, part);
	send_ctl(p, &t);
}

/*
 * Write the next blocks. A block that its rail has lost is stored again, on the rail that the next
 * round chooses. Return -EAGAIN if there is no room, or if no rail works.
 */
int rails_push(struct sci_req *req)
{
	struct sci_peer *p = req->peer;

	while (req->moved < req->want) {
		struct rail_part part[2];
		struct planned block[2];
		unsigned int n;

		if (!tx_room(&p->ctl_tx) || !tx_prepare(p))
			return -EAGAIN;
		n = blocks_plan(req, block, part);
		if (!n) {
			/* no doorbell reports that a link is up */
			p->ep->retry |= !rail_ready(p, RING_XFER) && !rail_ready(p, RING_RAIL);
			return -EAGAIN;
		}
		n = parts_store(req, part, n, true);
		for (unsigned int i = 0; i < n; i++) {
			block_announce(req, &block[i], &part[i]);
			if (p->state == PEER_DOWN)
				return 0;
		}
	}
	rndv_blocks_end(req);
	return 0;
}

/* ---- memory of the peer ---- */

/* Bytes on a rail between two checks for lost packets. */
#define RAIL_STEP	(1u << 20)

/* Find the place of the next bytes on a rail. Return 0, -EAGAIN: not now, or another error. */
static int place_find(struct sci_req *req, size_t want, enum msg_ring ring, struct rail_part *part)
{
	struct sci_peer *p = req->peer;
	struct msg_import *im;
	int ret;

	/* start no import that may fail: the error of an import on the first rail waits for a transfer */
	if (ring == RING_XFER && !rail_may(p, ring) && !call_find(p, CALL_SEGMENT, req->segment))
		return -EAGAIN;
	im = ring == RING_RAIL ? rail_import(p, req->rail_segment, &ret) :
				 peer_import(p, req->segment, &ret);
	if (!im) {
		assert(ret);
		return ret;
	}
	if (req->offset > im->size || im->size - req->offset < want)
		return -ERANGE;
	*part = (struct rail_part){
		.rail = rail_of(p, ring, im->seg), .at = req->at,
		.dst = im->addr + req->offset + req->moved,
	};
	return rail_may(p, ring) ? 0 : -EAGAIN;
}

/*
 * Take the answer to an import on the second rail. A program that only writes makes no progress, as long
 * as the first rail carries all bytes.
 */
static void second_look(struct sci_req *req)
{
	struct msg_call *c = call_find(req->peer, CALL_RAIL, req->rail_segment);

	if (c && call_is_done(c))
		c->answered = true;
}

/* Share the next bytes of @left among the rails. Return the number of parts. */
static unsigned int bytes_share(struct sci_req *req, struct rail_part part[RAILS], unsigned int n,
				size_t left)
{
	size_t most = n * (size_t)RAIL_STEP, len = left < most ? left : most;

	if (n < RAILS || len < RAILS_MIN) {
		if (n == RAILS && req->peer->line != &req->peer->first)
			part[0] = part[1];
		part[0].len = len;
		return 1;
	}
	/* no line is shared: each store of a part of a line is a packet */
	part[0].len = MSG_PAD(len / 2) - (uintptr_t)part[0].dst % LINE_BYTES;
	part[1].len = len - part[0].len;
	part[1].dst += part[0].len;
	msg_skip(&part[1].at, part[0].len);
	return n;
}

/**
 * rails_write() - store bytes of @req into memory that the peer has exported on both rails
 * @want: bytes in total; those before @req->moved have arrived
 *
 * Both rails carry equal parts while both work. A part that its rail has lost is stored again, on
 * the rails that work then.
 *
 * Return: 0: all bytes have arrived; -EAGAIN: no rail works now; or the error of the import on the
 * rail that lines use.
 */
int rails_write(struct sci_req *req, size_t want)
{
	const struct sci_peer *p = req->peer;

	while (req->moved < want) {
		struct rail_part part[RAILS];
		int first = place_find(req, want, RING_XFER, &part[RAIL_FIRST]), second;
		unsigned int n;

		/* else earlier transfers may wait for the answer, too: they go first */
		if (!first)
			second_look(req);
		second = place_find(req, want, RING_RAIL, &part[first ? 0 : RAIL_SECOND]);
		n = !first + !second;

		if (!n) {
			/* no doorbell reports that a link is up */
			p->ep->retry = true;
			return p->line == &p->first ? first : second;
		}
		n = parts_store(req, part, bytes_share(req, part, n, want - req->moved), false);
		for (unsigned int i = 0; i < n; i++)
			part_skip(req, &part[i]);
	}
	return 0;
}
