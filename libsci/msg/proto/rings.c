// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: lending rings
 *
 * An endpoint lends memory to the peers that send it longer messages: rings of blocks. All
 * its rings together have SCI_PARAM_RINGS_MAX bytes, shared equally: with more peers, the
 * rings are smaller. When a new ring would exceed the limit, the endpoint recalls the rings
 * that no peer has written to since the last time that this happened. Until they are back,
 * a new ring gets what is left, and at least RING_LEAST bytes: no peer waits for another
 * one, and the limit is exceeded by two such rings for each peer at most.
 *
 * The sender has the last word, because it alone knows whether it will write: it detaches
 * its ring if all blocks have been read and no message is under way.
 */

#include "libsci/msg/proto/proto.h"

#include <errno.h>

/* The smallest ring. Blocks of a quarter of it are still worth their line. */
#define RING_LEAST	(8u << 10)
/*
 * Rings per peer that the memory is divided by: twice as many as there are, because older rings are
 * larger until they are recalled.
 */
#define RING_SHARES	(2u * MSG_RINGS)

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

/* Recall unused rings of @want bytes together. */
static void rings_recall(struct sci_ep *ep, uint64_t want)
{
	uint64_t found = 0;
	struct list *pos, *n;

	list_for_each_safe(pos, n, &ep->peers) {
		struct sci_peer *p = container_of(pos, struct sci_peer, link);

		for (unsigned int i = 0; i < MSG_RINGS && found < want; i++) {
			struct msg_blocks_rx *b = &p->blocks_rx[i];
			uint32_t read = *ring_read(p, i);
			bool used = b->looked != read;

			if (!b->size || p->state != PEER_UP)
				continue;
			b->looked = read;
			if (used || !peer_may_write_line(p))
				continue;
			/*
			 * the next call takes the ring for used: only the call after that recalls
			 * it again
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
	uint64_t max = ep->params[SCI_PARAM_RINGS_MAX];
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
 * ring_attach() - lend a ring to a peer, and tell it
 * @want: its size in bytes, as the parameters want it
 *
 * Return: 0, or -errno of the fabric: the peer has been told that it gets none.
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
		t.attached.segment = p->fabric->ops->lseg.id(p->blocks_rx[which].seg);
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
	/* a peer that takes no answers must not fill our memory with them */
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
	if (!p->blocks_rx[which].size)
		return -EPROTO;
	ring_free(p, which);
	if (which == RING_EAGER)
		p->attach_asked = false;
	return 0;
}

/* ---- the sender ---- */

/*
 * Handle the peer's answer: it has lent a ring, or it has none. Return -EAGAIN until the ring
 * is imported.
 */
int ring_attached(struct sci_peer *p, const struct line_attached *a)
{
	int ret = a->status;

	if (a->ring >= MSG_RINGS || !status_is_valid(a->status) ||
	    (a->ring == RING_EAGER && !p->waiting_attach))
		return -EPROTO;
	if (!ret)
		ret = ring_import(p, a);
	if (!a->status && import_is_gone(ret)) {
		peer_doubt(p);
		p->ep->retry = true;
		return -EAGAIN;
	}
	if (!a->status && import_later(p, ret))
		return -EAGAIN;
	if (a->ring == RING_XFER) {
		p->xfer_error = ret;
		return 0;
	}
	p->waiting_attach = false;
	p->expects--;
	p->attach_failed = ret;
	peer_busy(p);
	return 0;
}

/* Return whether we shall write no block to the ring before a new RTS, or a new message. */
static bool ring_is_idle(const struct sci_peer *p, enum msg_ring which)
{
	const struct msg_blocks *b = &p->blocks_tx[which];

	if (which == RING_XFER && !list_empty(&p->sending))
		return false;
	peer_refresh(p, b->status, sizeof(*b->status));
	return sci_load_acquire(b->status) == b->end;
}

static void ring_recalled(struct sci_peer *p, enum msg_ring which)
{
	const struct msg_typed t = { .ring.ring = (uint8_t)which };

	/* sendq also has a message that is partly in blocks */
	if (!p->blocks_tx[which].size || !peer_may_write_line(p) || !ring_is_idle(p, which))
		return;
	ring_leave(p, which);
	p->chained = 0;
	post_typed(p, &p->data_tx, &t, LINE_DETACH);
}

/* Handle a line of the data ring that is about a ring. */
int rings_line(struct sci_peer *p, const struct msg_typed *t)
{
	if (t->type == LINE_ATTACH)
		return ring_asked(p, &t->attach);
	if (t->ring.ring >= MSG_RINGS)
		return -EPROTO;
	if (t->type == LINE_DETACH)
		return ring_detached(p, t->ring.ring);
	ring_recalled(p, t->ring.ring);
	return 0;
}
