// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: the second rail
 *
 * An endpoint with SCI_RAIL has a second fabric with an adapter of its own: the second rail. Each
 * HELLO names the sender's node there. If both endpoints have a second rail, the receiver of a
 * rendezvous lends two transfer rings, one on each rail, and the sender stores the blocks of a
 * message to both rings in turn. Buffers are exported on both rails: keys and the CTS of a zero-copy
 * message name both segments, and the sender stores half of the bytes through each rail. Lines use
 * one of the two rails: reroute.c. All other bytes use the first rail while it works.
 *
 * A line announces bytes, and a write completes, only after a check that the bytes have arrived, so
 * no announced byte is lost with a rail. When a rail loses packets, its link is down, or its
 * connection to a segment has ended, the sender stores the bytes again through the other rail. It
 * tries the first one again after a pause, and imports the segment again if necessary.
 *
 * A rail that has failed must not bring a byte later, when the program uses the memory for something
 * else. So a store barrier follows the stores of a part, on the rail of the part, before
 * rails_store() returns, also after a failure. When the barrier returns, each packet has arrived or
 * is lost: see sci_remote_barrier().
 */

#include "libsci/msg/conn/conn.h"

#include <errno.h>
#include <stdlib.h>

#include "libsci/base/host.h"
#include "libsci/fabric/core/common.h"

#define PAUSE_LEAST_MS	8u
#define PAUSE_MOST_MS	1000u

/*
 * Bytes for one rail before the other rail gets bytes, where an adapter sends them. The stream
 * buffers of an adapter hold more, so that the adapter sends while the CPU stores to the other one.
 */
#define TURN		512u

/* ---- the endpoint ---- */

static int rail_node(const struct sci_fabric_place *first, uint32_t node,
		     struct sci_fabric_place *at)
{
	const char *env = getenv("SCI_RAIL_NODE");

	at->node = node ? node : first->node;
	at->node_from = node ? "rail_node" : "node";
	if (node || !env || !*env)
		return 0;
	at->node_from = "SCI_RAIL_NODE";
	return sci_env_number("SCI_RAIL_NODE", &at->node, 10, SCI_NODE_STEP, SCI_NODE_MAX,
			      sci_want_node);
}

/* Return 0 if the second rail is usable as the first rail is. */
static int rail_check(struct sci_ep *ep, const struct sci_fabric_place *at)
{
	struct sci_adapter_info first, info;
	int ret = ep->ops->query.adapter(ep->fabric, ep->adapter, &first);

	ret = ret ? ret : ep->rail->ops->query.adapter(ep->rail, 0, &info);
	if (ret)
		return ret;
	ep->rail_node = info.node;
	ep->rail_link = ep->rail->ops->query.link(ep->rail, 0);
	if ((first.serial == info.serial && first.node == info.node) ||
	    ep->rail_link->map != ep->link->map || ep->rail_link->cache || ep->link->cache)
		return sci_place_bad(at, "want a second adapter, of the kind of the first one");
	return 0;
}

/**
 * rail_join() - open the second rail, if there is one
 * @first: fabric and node of the first rail
 * @spec: a value of SCI_FABRIC; NULL: the value of SCI_RAIL in the environment; "": no second rail
 * @node: node on the second rail; 0: the value of SCI_RAIL_NODE, or the node of the first rail
 *
 * Return: 0; -EINVAL, after a message: the two adapters are one adapter, or of different kinds; or
 * an error of sci_fabric_share().
 */
int rail_join(struct sci_ep *ep, const struct sci_fabric_place *first, const char *spec,
	      uint32_t node)
{
	struct sci_fabric_place at = {
		.spec = spec ? spec : getenv("SCI_RAIL"), .spec_from = spec ? "rail" : "SCI_RAIL",
	};
	int ret;

	if (!at.spec || !*at.spec)
		return 0;
	ret = rail_node(first, node, &at);
	ret = ret ? ret : sci_fabric_share(&ep->rail, &at);
	if (ret)
		return ret;
	ret = rail_check(ep, &at);
	if (ret)
		rail_leave(ep);
	return ret;
}

void rail_leave(struct sci_ep *ep)
{
	if (ep->rail)
		sci_fabric_close(ep->rail);
	ep->rail = NULL;
	ep->rail_node = 0;
}

/* ---- the bell and the port on the second rail ---- */

static void rail_port_event(void *owner, const struct sci_event *ev)
{
	struct sci_ep *ep = owner;

	(void)ev;
	atomic_store(&ep->attention, 1);
	wake_self(ep);
}

static void rail_bell_event(void *owner, const struct sci_event *ev)
{
	struct sci_ep *ep = owner;

	atomic_store(&ep->rail_rang, 1);
	rail_port_event(ep, ev);
}

/* Create the doorbell and the port on the second rail. A thread of the fabric waits for both. */
int rail_bell_make(struct sci_ep *ep, uint32_t id)
{
	struct sci_lintr_param bell = {
		.number = MSG_NUMBERS + id, .flags = SCI_INTR_FIXED,
		.event = rail_bell_event, .owner = ep,
	};
	struct sci_lintr_param port = {
		.number = MSG_NUMBERS + id, .flags = SCI_INTR_FIXED | SCI_INTR_DATA,
		.event = rail_port_event, .owner = ep,
	};
	int ret;

	if (!ep->rail)
		return 0;
	ret = ep->rail->ops->lintr.create(ep->rail, &bell, &ep->rail_bell);
	if (ret)
		return ret;
	ret = ep->rail->ops->lintr.create(ep->rail, &port, &ep->rail_port);
	if (ret)
		ep->rail->ops->lintr.destroy(ep->rail_bell);
	return ret;
}

void rail_bell_end(struct sci_ep *ep)
{
	if (!ep->rail)
		return;
	ep->rail->ops->lintr.destroy(ep->rail_port);
	ep->rail->ops->lintr.destroy(ep->rail_bell);
}

/* ---- the rings on the rails ---- */

/*
 * Handle LINE_ATTACHED for a transfer ring of a peer with two rails. An error of the peer leaves all
 * blocks on the other rail.
 */
int rail_lent(struct sci_peer *p, const struct line_attached *a)
{
	struct msg_lent *lent;

	if (!p->rail_node)
		return -EPROTO;
	lent = ring_lent(p, a->ring);
	if (lent->ring.size)
		return -EPROTO;
	if (a->status)
		return 0;
	if (!msg_number_is_valid(a->segment) || !a->size)
		return -EPROTO;
	lent->ring = *a;
	blocks_tx(p, a->ring)->status = ring_status(p, a->ring);
	/* begin to import the ring */
	rail_ready(p, a->ring);
	return 0;
}

/* Stop using a rail for blocks for a pause, which is longer after each failure. */
void rail_fail(struct sci_peer *p, enum msg_ring ring)
{
	struct msg_lent *lent = ring_lent(p, ring);

	lent->pause = lent->pause ? lent->pause * 2 : PAUSE_LEAST_MS;
	if (lent->pause > PAUSE_MOST_MS)
		lent->pause = PAUSE_MOST_MS;
	lent->ms = msg_now_ms() + lent->pause;
}

static struct msg_call *ring_call(struct sci_peer *p, enum msg_ring ring)
{
	return call_find(p, ring == RING_RAIL ? CALL_RAIL : CALL_SEGMENT,
			 ring_lent(p, ring)->ring.segment);
}

/* Return whether bytes may use the rail of @ring now: its link is up, and no pause goes on. */
bool rail_may(struct sci_peer *p, enum msg_ring ring)
{
	const struct msg_lent *lent = ring_lent(p, ring);

	return !sci_link_down(ring == RING_RAIL ? p->ep->rail_link : p->ep->link) &&
	       (!lent->ms || msg_now_ms() >= lent->ms);
}

/* Return whether blocks can use the rail of @ring now. Import the ring if necessary. */
bool rail_ready(struct sci_peer *p, enum msg_ring ring)
{
	const struct sci_fabric_ops *ops = ring_fabric(p, ring)->ops;
	struct msg_blocks *b = blocks_tx(p, ring);
	struct msg_lent *lent = ring_lent(p, ring);
	bool may = rail_may(p, ring);
	int ret;

	if (!lent->ring.size || p->state != PEER_UP)
		return false;
	if (b->size && atomic_load(&ops->rseg.status(b->seg)->gone))
		ring_leave(p, ring);
	/* take the result of an import also while the link is down */
	if (!b->size && !may && !ring_call(p, ring))
		return false;
	ret = b->size ? 0 : ring_import(p, &lent->ring);
	if (ret && ret != -EAGAIN)
		rail_fail(p, ring);
	return !ret && may;
}

/*
 * Take the result of @c, which ends the call, if it is the import of a ring on a rail or of memory.
 * The transfer that started the import may have used the other rail, and need the memory no more. The
 * error of an import on the first rail remains for the transfer that waits for it.
 */
void rail_answered(struct sci_peer *p, const struct msg_call *c)
{
	enum msg_ring ring = c->kind == CALL_RAIL ? RING_RAIL : RING_XFER;
	const struct line_attached *a = p->rails ? &ring_lent(p, ring)->ring : NULL;
	int error;

	if (a && a->size && a->segment == c->id)
		rail_ready(p, ring);
	else if (c->kind == CALL_RAIL && p->state == PEER_UP)
		rail_import(p, c->id, &error);
	else if (a && c->memory && !c->ret && p->state == PEER_UP)
		peer_import(p, c->id, &error);
}

/* Return whether a ring has no block that the peer has not read. */
bool rail_is_idle(struct sci_peer *p, enum msg_ring ring)
{
	const struct msg_blocks *b = blocks_tx(p, ring);

	return sci_load_acquire(b->status) == b->end && !ring_call(p, ring);
}

/* ---- stores ---- */

/* Store the parts again that a rail may have lost. */
static void part_check(struct sci_peer *p, struct rail_part *part, bool block)
{
	struct msg_cursor at = part->at;

	part->ret = 0;
	if (part->errors != sci_link_errors(part->rail.link)) {
		p->ep->stats.resent_blocks++;
		part->ret = rail_store(p->ep, &part->rail, part->dst, &at, part->len, block);
	}
	if (!part->ret &&
	    !rail_is_there(p, part->rail.ring == RING_RAIL ? RAIL_SECOND : RAIL_FIRST,
			   part->rail.seg))
		part->ret = -EAGAIN;
}

/* Store at most @turn bytes of a part. Return whether more are left. */
static bool part_turn(struct rail_part *part, size_t turn, bool block)
{
	size_t len = part->left < turn ? part->left : turn;

	rail_write(part->rail.link, part->dst + (part->len - part->left), &part->next, len, block);
	part->left -= len;
	return part->left;
}

/**
 * rails_store() - store one or two parts of a message, each through its own rail
 * @block: as in rail_write()
 *
 * The rails send at the same time. part->ret is 0 if the part has arrived.
 */
void rails_store(struct sci_peer *p, struct rail_part part[2], unsigned int n, bool block)
{
	size_t turn = p->lossy ? TURN : SIZE_MAX;
	bool more = true;

	for (unsigned int i = 0; i < n; i++) {
		part[i].errors = sci_link_errors(part[i].rail.link);
		part[i].next = part[i].at;
		part[i].left = part[i].len;
	}
	while (more) {
		more = false;
		for (unsigned int i = 0; i < n; i++)
			more |= part_turn(&part[i], turn, block);
	}
	for (unsigned int i = 0; i < n; i++)
		sci_remote_barrier(part[i].rail.fabric, part[i].rail.seg);
	for (unsigned int i = 0; i < n; i++)
		part_check(p, &part[i], block);
}
