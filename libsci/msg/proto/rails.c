// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * The blocks of a rendezvous between two endpoints that have two rails: conn/rail.c. The sender
 * writes two blocks at a time, one to each rail, as long as both rings have room and the second
 * rail is usable.
 */

#include "libsci/msg/conn/blocks.h"
#include "libsci/msg/proto/proto.h"

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

static struct msg_rail rail_of(struct sci_peer *p, enum msg_ring ring)
{
	return (struct msg_rail){
		.fabric = ring_fabric(p, ring),
		.link = ring == RING_RAIL ? p->ep->rail_link : p->ep->link,
		.seg = blocks_tx(p, ring)->seg,
		.tries = RAIL_TRIES,
	};
}

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
		.rail = rail_of(p, ring), .at = *at, .len = len,
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
	msg_skip(&req->at, part->len);
	req->moved += part->len;
	send_ctl(p, &t);
}

/* Count a block that has arrived, or note that its rail has failed. */
static void rail_count(struct sci_peer *p, enum msg_ring ring, const struct rail_part *part)
{
	struct sci_ep_stats *stats = &p->ep->stats;

	if (part->ret) {
		rail_fail(p, ring);
		return;
	}
	ring_lent(p, ring)->pause = 0;
	if (ring == RING_RAIL) {
		stats->second_rail_bytes += part->len;
		return;
	}
	stats->first_rail_bytes += part->len;
	reroute_home(p);
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
		rails_store(p, part, n, true);
		for (unsigned int i = 0; i < n; i++) {
			rail_count(p, block[i].ring, &part[i]);
			if (part[i].ret)
				break;
			block_announce(req, &block[i], &part[i]);
			if (p->state == PEER_DOWN)
				return 0;
		}
	}
	rndv_blocks_end(req);
	return 0;
}
