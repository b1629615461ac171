// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: lending rings
 *
 * An endpoint lends memory to the peers that send it longer messages: rings of blocks. All its
 * rings together have SCI_PARAM_RINGS_MAX bytes, shared equally: with more peers, the rings are
 * smaller. Two endpoints with two rails have one ring more: rail.c. When a new ring would exceed the
 * limit, the endpoint recalls the rings to which no peer has written since the last recall. Until
 * these rings are detached, a new ring gets the remaining bytes, and at least RING_LEAST bytes: no
 * peer waits for the ring of another peer, and the limit is exceeded by at most MSG_RINGS such rings
 * for each peer.
 *
 * The sender decides, because only the sender knows whether it will write: it detaches its ring if
 * all blocks have been read and no message is in flight.
 */

#include "libsci/msg/conn/blocks.h"
#include "libsci/msg/proto/proto.h"

#include <errno.h>

/*
 * Bytes of the smallest ring. A block of a quarter of this size still saves more time than its line
 * takes.
 */
#define RING_LEAST	(8u << 10)
/*
 * The memory is divided by this number for each peer: twice the number of rings on one rail, because
 * older rings are larger until they are recalled.
 */
#define RING_SHARES	(2u * RING_RAIL)

/* ---- the owner ---- */

/* Return whether a line may be written to the peer now, between two messages. */
static bool peer_may_write_line(struct sci_peer *p)
{
	return list_empty(&p->sendq) && tx_room(&p->data_tx) && tx_prepare(p);
}

static void ring_recall(struct sci_peer *p, enum msg_ring which)
{
	const struct msg_typed t = { .ring.ring = (uint8_t)which };

	post_typed(p, &p->data_tx, &t, LINE_RECALL);
}

/* Recall unused rings with @want bytes in total. */
static void rings_recall(struct sci_ep *ep, uint64_t want)
{
	uint64_t found = 0;
	struct list *pos, *n;

	list_for_each_safe(pos, n, &ep->peers) {
		struct sci_peer *p = container_of(pos, struct sci_peer, link);

		for (unsigned int i = 0; i < peer_rings(p) && found < want; i++) {
			struct msg_blocks_rx *b = blocks_rx(p, i);
			uint32_t read = *ring_read(p, i);
			bool used = b->looked != read;

			if (!b->size || p->state != PEER_UP)
				continue;
			b->looked = read;
			if (used || !peer_may_write_line(p))
				continue;
			/*
			 * the next call treats the ring as used: only the call after that recalls
			 * the ring again
			 */
			b->looked = read - 1;
			ring_recall(p, i);
			found += b->size;
		}
	}
}

/* Return the size of a new ring for a sender that wants @want bytes. */
static uint32_t ring_share(struct sci_ep *ep, uint32_t want)
{
	uint64_t max = ep->params.value[SCI_PARAM_RINGS_MAX];
	uint64_t peers = ep->stats.peers ? ep->stats.peers : 1;
	uint32_t size = ring_size(want);

	while (size > max / (RING_SHARES * peers) && size > RING_LEAST)
		size /= 2;
	if (ep->ring_bytes + size > max)
		rings_recall(ep, size);
	while (ep->ring_bytes + size > max && size > RING_LEAST)
		size /= 2;
	return size;
}

/**
 * ring_attach() - lend a ring to a peer, and send LINE_ATTACHED
 * @want: the size in bytes that the parameters ask for
 *
 * Return: 0, or -errno of the fabric, which LINE_ATTACHED reports to the peer.
 */
int ring_attach(struct sci_peer *p, enum msg_ring which, uint32_t want)
{
	struct msg_typed t = {
		.type = LINE_ATTACHED, .attached.ring = (uint8_t)which,
	};
	uint32_t size = ring_share(p->ep, want);
	int ret = ring_make(p, which, size);

	/* try a smaller ring, which is slower; without any ring the message fails */
	while ((ret == -ENOSPC || ret == -ENOMEM) && size > RING_LEAST)
		ret = ring_make(p, which, size /= 2);
	t.attached.status = ret;
	if (!ret) {
		t.attached.segment = p->fabric->ops->lseg.id(blocks_rx(p, which)->seg);
		t.attached.size = size;
	}
	send_ctl(p, &t);
	return ret;
}

/*
 * Handle a peer's request for an eager ring. A peer asks once for each ring, and gets the ring
 * or an error.
 */
static int ring_asked(struct sci_peer *p, const struct line_attach *want)
{
	if (p->attach_asked)
		return -EPROTO;
	/* the peer has left: do not keep the lines behind from their receives */
	if (p->draining)
		return 0;
	/* a peer that reads no control lines must not fill memory with queued lines */
	if (!list_empty(&p->ctlq)) {
		p->ep->retry = true;
		return -EAGAIN;
	}
	p->attach_asked = true;
	ring_attach(p, RING_EAGER, want->size);
	return 0;
}

static int ring_detached(struct sci_peer *p, enum msg_ring which)
{
	if (!blocks_rx(p, which)->size)
		return -EPROTO;
	ring_free(p, which);
	if (which == RING_EAGER)
		p->attach_asked = false;
	return 0;
}

/* ---- the sender ---- */

/*
 * Handle LINE_ATTACHED: the peer has lent a ring, or reports an error. Return -EAGAIN until the
 * ring is imported.
 */
int ring_attached(struct sci_peer *p, const struct line_attached *a)
{
	int ret = a->status;

	if (a->ring >= peer_rings(p) || !status_is_valid(a->status) ||
	    (a->ring == RING_EAGER && !p->waiting_attach))
		return -EPROTO;
	/* the peer has left: do not keep the lines behind from their receives */
	if (p->draining)
		return 0;
	if (a->ring == RING_RAIL || (a->ring == RING_XFER && p->rail_node))
		return rail_lent(p, a);
	if (!ret)
		ret = ring_import(p, a);
	/* with two rails, do without the ring rather than wait for the first rail */
	if (!p->rail_node && !a->status && import_is_gone(ret)) {
		peer_suspect(p);
		p->ep->retry = true;
		return -EAGAIN;
	}
	if (!a->status && (p->rail_node ? ret == -EAGAIN : import_later(p, ret)))
		return -EAGAIN;
	if (a->ring == RING_XFER) {
		p->xfer_error = ret;
		p->xfer_unused = !a->status && !p->blocks_tx[RING_XFER].size;
		return 0;
	}
	p->waiting_attach = false;
	p->expects--;
	p->attach_failed = ret;
	peer_busy(p);
	return 0;
}

/* Return whether the peer has lent this ring as a ring of one of two rails: rail.c. */
static bool ring_is_rail(struct sci_peer *p, enum msg_ring which)
{
	return p->rail_node && which != RING_EAGER && ring_lent(p, which)->ring.size;
}

/* Return whether all blocks are read, and none follows before a new RTS or a new message. */
static bool ring_is_idle(struct sci_peer *p, enum msg_ring which)
{
	const struct msg_blocks *b = blocks_tx(p, which);

	if (which != RING_EAGER && peer_has_transfers(p))
		return false;
	return ring_is_rail(p, which) ? rail_is_idle(p, which) : blocks_read(p, b) == b->end;
}

/* Drop the import of a ring, and return the ring to its owner. */
static void ring_detach(struct sci_peer *p, enum msg_ring which)
{
	const struct msg_typed t = { .ring.ring = (uint8_t)which };

	ring_leave(p, which);
	if (p->rails && which != RING_EAGER)
		ring_lent(p, which)->ring.size = 0;
	p->chained = 0;
	post_typed(p, &p->data_tx, &t, LINE_DETACH);
}

/*
 * Return whether the import of the peer's eager ring has ended, as the first of two rails was lost.
 * Then detach the ring as soon as it is empty, to ask for another one.
 */
bool ring_has_ended(struct sci_peer *p)
{
	const struct msg_blocks *b = &p->blocks_tx[RING_EAGER];

	if (!atomic_load(&p->fabric->ops->rseg.status(b->seg)->gone))
		return false;
	if (tx_room(&p->data_tx) && tx_prepare(p) && ring_is_idle(p, RING_EAGER))
		ring_detach(p, RING_EAGER);
	return true;
}

/*
 * Return a transfer ring that this endpoint could not import. For the next RTS the owner lends another
 * ring, whose import may succeed. The sends to which the owner has answered with the old ring fail
 * before the line that lends the other ring.
 */
void xfer_return(struct sci_peer *p)
{
	p->xfer_unused = false;
	ring_detach(p, RING_XFER);
}

static void ring_recalled(struct sci_peer *p, enum msg_ring which)
{
	if (which == RING_XFER && p->xfer_unused && peer_may_write_line(p)) {
		xfer_return(p);
		return;
	}
	/* an empty sendq shows that no message is partly sent in blocks */
	if ((!blocks_tx(p, which)->size && !ring_is_rail(p, which)) || !peer_may_write_line(p) ||
	    !ring_is_idle(p, which))
		return;
	ring_detach(p, which);
}

/* Handle a line of the type LINE_ATTACH, LINE_RECALL or LINE_DETACH. */
int rings_line(struct sci_peer *p, const struct msg_typed *t)
{
	if (t->type == LINE_ATTACH)
		return ring_asked(p, &t->attach);
	if (t->ring.ring >= peer_rings(p))
		return -EPROTO;
	if (t->type == LINE_DETACH)
		return ring_detached(p, t->ring.ring);
	ring_recalled(p, t->ring.ring);
	return 0;
}
