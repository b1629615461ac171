// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: the second rail
 *
 * An endpoint with SCI_RAIL has a second fabric with an adapter of its own: the second rail. Each
 * HELLO names the sender's node there. If both endpoints have a second rail, the receiver of a
 * rendezvous lends two transfer rings, one on each rail, and the sender stores the blocks of a
 * message to both rings in turn. All lines use the first rail, and so do all other messages.
 *
 * A line announces a block only after a check that the block has arrived, so no announced byte is
 * lost with a rail. When the second rail loses packets, its link is down, or its connection to the
 * ring has ended, the sender stores the block again through the first rail. It tries the second
 * rail again after a pause, and imports the ring again if necessary: the ring exists as long as the
 * connection.
 */

#include "libsci/msg/conn/conn.h"

#include <errno.h>
#include <stdlib.h>

#include "libsci/base/host.h"

#define PAUSE_LEAST_MS	8u
#define PAUSE_MOST_MS	1000u

/*
 * Bytes for one rail before the other rail gets bytes, where an adapter sends them. The stream
 * buffers of an adapter hold more, so that the adapter sends while the CPU stores to the other one.
 */
#define TURN		512u

/* ---- the endpoint ---- */

static int rail_node(const struct sci_fabric_place *first, uint32_t node, unsigned int *out)
{
	*out = node ? node : first->node;
	return node ? 0 : sci_env_number("SCI_RAIL_NODE", out, 10, SCI_NODE_STEP, SCI_NODE_MAX,
					 "want the number of a node");
}

/* Return 0 if the second rail is usable as the first rail is. */
static int rail_check(struct sci_ep *ep)
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
		return -EINVAL;
	return 0;
}

/**
 * rail_join() - open the second rail, if there is one
 * @first: fabric and node of the first rail
 * @spec: a value of SCI_FABRIC; NULL: the value of SCI_RAIL in the environment; "": no second rail
 * @node: node on the second rail; 0: the value of SCI_RAIL_NODE, or the node of the first rail
 *
 * Return: 0; -EINVAL: the two adapters are one adapter, or of different kinds; or an error of
 * sci_fabric_share().
 */
int rail_join(struct sci_ep *ep, const struct sci_fabric_place *first, const char *spec,
	      uint32_t node)
{
	struct sci_fabric_place at = { .spec = spec ? spec : getenv("SCI_RAIL") };
	int ret;

	if (!at.spec || !*at.spec)
		return 0;
	ret = rail_node(first, node, &at.node);
	ret = ret ? ret : sci_fabric_share(&ep->rail, &at);
	if (ret)
		return ret;
	ret = rail_check(ep);
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

/* ---- the ring on the second rail ---- */

/* Handle LINE_ATTACHED for RING_RAIL. An error of the peer leaves all blocks on the first rail. */
int rail_lent(struct sci_peer *p, const struct line_attached *a)
{
	if (!p->rail_node || p->rail_ring.size)
		return -EPROTO;
	if (a->status)
		return 0;
	if (!msg_number_is_valid(a->segment) || !a->size)
		return -EPROTO;
	p->rail_ring = *a;
	p->blocks_tx[RING_RAIL].status = &p->status->rail;
	/* begin to import the ring */
	rail_ready(p);
	return 0;
}

/* Stop using the second rail for a pause, which is longer after each failure. */
void rail_fail(struct sci_peer *p)
{
	p->rail_pause = p->rail_pause ? p->rail_pause * 2 : PAUSE_LEAST_MS;
	if (p->rail_pause > PAUSE_MOST_MS)
		p->rail_pause = PAUSE_MOST_MS;
	p->rail_ms = msg_now_ms() + p->rail_pause;
}

/* Return whether blocks can use the second rail now. Import the ring there if necessary. */
bool rail_ready(struct sci_peer *p)
{
	struct msg_blocks *b = &p->blocks_tx[RING_RAIL];
	int ret;

	if (!p->rail_ring.size || p->state != PEER_UP)
		return false;
	if (b->size && atomic_load(&p->ep->rail->ops->rseg.status(b->seg)->gone))
		ring_leave(p, RING_RAIL);
	/* take the result of an import also while the link is down */
	if (!b->size && call_find(p, CALL_RAIL, p->rail_ring.segment) == NULL &&
	    (sci_link_down(p->ep->rail_link) || msg_now_ms() < p->rail_ms))
		return false;
	ret = b->size ? 0 : ring_import(p, &p->rail_ring);
	if (ret && ret != -EAGAIN)
		rail_fail(p);
	return !ret && !sci_link_down(p->ep->rail_link) &&
	       (!p->rail_ms || msg_now_ms() >= p->rail_ms);
}

/* Return whether the ring on the second rail has no block that the peer has not read. */
bool rail_is_idle(struct sci_peer *p)
{
	const struct msg_blocks *b = &p->blocks_tx[RING_RAIL];

	return sci_load_acquire(b->status) == b->end &&
	       !call_find(p, CALL_RAIL, p->rail_ring.segment);
}

/* ---- stores ---- */

/* Store the parts again that a rail may have lost. */
static void part_check(struct sci_peer *p, struct rail_part *part, bool block)
{
	struct msg_cursor at = part->at;

	part->ret = 0;
	if (part->errors == sci_link_errors(part->rail.link))
		return;
	p->ep->stats.resent_blocks++;
	part->ret = rail_store(p->ep, &part->rail, part->dst, &at, part->len, block);
}

/**
 * rails_store() - store one or two parts of a message, each through its own rail
 * @block: as in rail_write()
 *
 * The rails send at the same time. part->ret is 0 if the part has arrived.
 */
void rails_store(struct sci_peer *p, struct rail_part part[2], unsigned int n, bool block)
{
	struct msg_cursor at[2] = { part[0].at, part[n - 1].at };
	size_t turn = p->lossy ? TURN : SIZE_MAX, left[2] = { part[0].len, part[n - 1].len };

	for (unsigned int i = 0; i < n; i++)
		part[i].errors = sci_link_errors(part[i].rail.link);
	for (unsigned int i = 0; left[0] || left[n - 1]; i = (i + 1) % n) {
		size_t len = left[i] < turn ? left[i] : turn;

		rail_write(part[i].rail.link, part[i].dst + (part[i].len - left[i]), &at[i], len,
			   block);
		left[i] -= len;
	}
	for (unsigned int i = 0; i < n; i++)
		sci_remote_barrier(part[i].rail.fabric, part[i].rail.seg);
	for (unsigned int i = 0; i < n; i++)
		part_check(p, &part[i], block);
}
