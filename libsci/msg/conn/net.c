// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: peers beyond the fabric
 *
 * An endpoint with SCI_NET has a second fabric (libsci/fabric/net). A peer is on one of the two:
 * peer->fabric. Rings, matching, rendezvous and handlers are the same for both. Where the library
 * would store into an import, peer->stream->put sends the bytes. The receiver needs no doorbell:
 * the thread of the net fabric wakes the endpoint when bytes arrive while no thread polls.
 *
 * The net may hold a message back until the next progress call, to send it together with later
 * messages: stream->push.
 *
 * Bytes in a peer's inbox are also an event of the peer, PEER_RANG: peers_attend() makes it hot.
 *
 * A waiting thread polls the net every NET_TURNS progress calls while bytes arrive. After NET_LOOKS
 * polls without bytes, or when the waiting thread sleeps, the net's own thread polls instead. So a
 * silent network costs nothing.
 */

#include "libsci/msg/conn/conn.h"

#include <errno.h>
#include <stdlib.h>

#define NET_TURNS	4u
#define NET_LOOKS	4096u

/* ---- the endpoint ---- */

static void net_handle_news(void *owner)
{
	struct sci_ep *ep = owner;

	atomic_store(&ep->net_news, 1);
	atomic_store(&ep->attention, 1);
	wake_self(ep);
}

int net_join(struct sci_ep *ep, const struct sci_fabric_place *at, const char *spec,
	     const char *peers)
{
	const struct sci_fabric_place here = {
		.spec = at->spec, .node = ep->addr.node, .peers = peers,
	};

	if (!spec)
		spec = getenv("SCI_NET");
	if (!spec || !*spec)
		return 0;
	return sci_net_fabric.open(&ep->net, &here, spec);
}

static void net_port_event(void *owner, const struct sci_event *ev)
{
	(void)ev;
	net_handle_news(owner);
}

int net_port_make(struct sci_ep *ep, uint32_t id)
{
	struct sci_lintr_param param = {
		.number = MSG_NUMBERS + id, .flags = SCI_INTR_FIXED | SCI_INTR_DATA,
		.event = net_port_event, .owner = ep,
	};
	int ret;

	if (!ep->net)
		return 0;
	ep->net->ops->stream->news(ep->net, net_handle_news, ep);
	ret = ep->net->ops->lintr.create(ep->net, &param, &ep->net_port);
	if (ret)
		return ret;
	ret = ep->net->ops->stream->below(ep->net, ep->fabric, ep->adapter);
	if (ret)
		ep->net->ops->lintr.destroy(ep->net_port);
	return ret;
}

void net_port_end(struct sci_ep *ep)
{
	if (ep->net)
		ep->net->ops->lintr.destroy(ep->net_port);
}

void net_leave(struct sci_ep *ep)
{
	if (ep->net)
		ep->net->ops->close(ep->net);
	ep->net = NULL;
}

/*
 * Return the fabric for a node: the net if only the net reaches the node, or if one of the net's
 * ways to the node is ep->fabric; else ep->fabric.
 */
struct sci_fabric *net_choose(struct sci_ep *ep, uint32_t node)
{
	if (!ep->net || node == ep->addr.node || ep->net->ops->query.probe(ep->net, 0, node))
		return ep->fabric;
	return ep->net->ops->stream->covers(ep->net, node) ||
	       ep->ops->query.probe(ep->fabric, ep->adapter, node) ? ep->net : ep->fabric;
}

/* ---- polling ---- */

/* Poll the net. Return true if bytes have arrived. */
bool net_look(struct sci_ep *ep)
{
	if (ep->turns % NET_TURNS && !ep->net_held)
		return false;
	ep->net_held = false;
	if (ep->net->ops->stream->poll(ep->net)) {
		ep->net_looks = NET_LOOKS;
		return true;
	}
	if (!--ep->net_looks)
		ep->net->ops->stream->rest(ep->net);
	return false;
}

/* Poll again if the net's thread has reported bytes. */
void net_news_take(struct sci_ep *ep)
{
	if (atomic_exchange(&ep->net_news, 0))
		ep->net_looks = NET_LOOKS;
}

void net_sleep(struct sci_ep *ep)
{
	ep->net_looks = 0;
	ep->net_held = false;
	ep->net->ops->stream->rest(ep->net);
}

/* ---- moving bytes ---- */

/* Send the last line of a message to a peer, or let the next progress call send it. */
void net_push(struct sci_peer *p)
{
	struct sci_ep *ep = p->ep;

	if (!p->stream->push(p->line->outbox))
		return;
	ep->net_held = true;
	if (!ep->net_looks)
		ep->net_looks = 1;
}

/* Store as remote_store() does. On -EAGAIN, *@at is unchanged. */
int net_store(struct sci_peer *p, struct sci_rseg *seg, volatile uint8_t *dst,
	      struct msg_cursor *at, size_t len)
{
	struct msg_cursor c = *at;

	while (len) {
		size_t n;
		const void *src = msg_chunk(&c, &n);
		int ret;

		n = n < len ? n : len;
		ret = p->stream->put(seg, dst, src, n);
		if (ret)
			return -EAGAIN;
		msg_skip(&c, n);
		dst += n;
		len -= n;
	}
	*at = c;
	return 0;
}
