// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: connecting
 *
 * HELLO goes to the other endpoint's port, a data interrupt, and names the
 * segment that was made to be its inbox for us. Whoever gets one imports that
 * inbox, and answers with its own HELLO unless it has sent one already: so two
 * that connect to each other at the same time make one connection. One that is
 * not answered is sent again: its receiver may have died with it, or it may have
 * come before the end of the connection before. Only the fabric tells of ends:
 * a HELLO in a peer's name does not harm it.
 */

#include "libsci/msg/endpoint.h"

#include <errno.h>
#include <stdlib.h>

/* ---- HELLO ---- */

static int port_send(struct sci_ep *ep, const struct sci_addr *to,
		     const struct msg_hello *hello)
{
	struct sci_rintr_param param = {
		.node = to->node, .number = MSG_NUMBERS + to->id,
		.timeout = 1000, .data = true,
	};
	struct sci_rintr *port;
	int ret;

	ret = ep->ops->rintr.connect(ep->fabric, &param, &port);
	if (ret)
		return ret;
	ret = ep->ops->rintr.trigger(port, hello, sizeof(*hello));
	ep->ops->rintr.disconnect(port);
	return ret;
}

static struct msg_hello hello_from(struct sci_ep *ep, enum msg_hello_type type)
{
	return (struct msg_hello){
		.magic = MSG_MAGIC, .version = MSG_VERSION,
		.type = (uint16_t)type, .node = ep->addr.node,
		.id = ep->addr.id, .nonce = ep->nonce,
		.flags = (ep->wake_barrier ? HELLO_WAKE_BARRIER : 0u) |
			 (ep->crc ? HELLO_CRC : 0u),
	};
}

int hello_send(struct sci_peer *p)
{
	struct msg_hello hello = hello_from(p->ep, HELLO_CONNECT);
	int ret;

	hello.inbox = p->ep->ops->lseg.id(p->inbox);
	hello.to = p->nonce;
	hello.yours = p->state == PEER_UP ? p->their_inbox : 0;
	ret = port_send(p->ep, &p->addr, &hello);
	if (!ret)
		p->asked = true;
	return ret;
}

static void refuse(struct sci_ep *ep, const struct sci_addr *to,
		   const struct msg_hello *why, int error)
{
	struct msg_hello hello = hello_from(ep, HELLO_REFUSE);

	hello.to = why->nonce;
	hello.inbox = why->inbox;
	hello.status = error;
	port_send(ep, to, &hello);
}

static void came_to_life(struct sci_peer *p, const struct msg_hello *h)
{
	p->nonce = h->nonce;
	p->their_inbox = h->inbox;
	p->sums = h->flags & HELLO_CRC;
	p->fence = !(p->ep->wake_barrier && h->flags & HELLO_WAKE_BARRIER);
}

static void accept_hello(struct sci_ep *ep, const struct sci_addr *from,
			 const struct msg_hello *h)
{
	struct sci_peer *p = peer_find(ep, from);
	bool fresh = false;
	int ret;

	/* the answer to a connection that is over */
	if (h->yours && (!p || p->state == PEER_DOWN ||
			 h->yours != ep->ops->lseg.id(p->inbox)))
		return;
	if (p && p->state == PEER_UP && p->nonce == h->nonce &&
	    p->their_inbox == h->inbox) {
		/* it does not know us yet: ours was lost, or never sent */
		if (!p->asked || !h->to)
			hello_send(p);
		return;
	}
	if (p && p->state == PEER_UP)
		peer_event_check(p);
	/* an old HELLO, or somebody else's; a true one will come again */
	if (p && p->state == PEER_UP && p->imported)
		return;
	/* ... but one who never came keeps nobody out */
	if (p && p->state == PEER_UP)
		peer_end(p, -ENOTCONN);
	if (!p || p->state == PEER_DOWN) {
		ret = peer_new(ep, from, &p);
		if (ret) {
			refuse(ep, from, h, ret);
			return;
		}
		fresh = true;
	}
	came_to_life(p, h);
	ret = peer_import_inbox(p, h->inbox);
	if (!ret && !p->asked)
		ret = hello_send(p);
	/* it is to be accepted when it has our inbox: this may be an old HELLO */
	p->incoming = fresh;
	msg_changed(ep);
	if (!ret)
		return;
	if (ret != -ENETDOWN && !hello_again(ret)) {
		refuse(ep, from, h, ret);
	} else if (!fresh) {
		/*
		 * Another HELLO will come. If its inbox is imported, only our
		 * answer is missing; else this HELLO was old, or there is no
		 * way to the other node.
		 */
		if (p->state == PEER_CONNECTING)
			p->nonce = 0;
		return;
	}
	peer_down(p, ret);
	if (fresh)
		peer_free(p);
}

static void refused(struct sci_ep *ep, const struct sci_addr *from,
		    const struct msg_hello *h)
{
	struct sci_peer *p = peer_find(ep, from);

	if (p && p->state == PEER_CONNECTING && h->to == ep->nonce &&
	    h->inbox == ep->ops->lseg.id(p->inbox))
		peer_down(p, h->status < 0 ? -ECONNREFUSED : -EPROTO);
}

/* Take what has come to our port. Returns how many. */
int hello_poll(struct sci_ep *ep)
{
	struct msg_hello h;
	int n;

	for (n = 0;; n++) {
		size_t len = sizeof(h);
		struct sci_addr from;
		int ret;

		ret = ep->ops->lintr.wait(ep->port, &h, &len, 0);
		if (ret == -EMSGSIZE && len <= SCI_DATA_INTR_MAX) {
			/* nothing of ours: away with it */
			void *junk = malloc(len);

			if (!junk)
				return n;
			ep->ops->lintr.wait(ep->port, junk, &len, 0);
			free(junk);
			continue;
		}
		if (ret)
			return n;
		from = (struct sci_addr){ .node = h.node, .id = h.id };
		if (len != sizeof(h) || h.magic != MSG_MAGIC ||
		    h.version != MSG_VERSION || !h.node || !h.id ||
		    h.id > SCI_EP_ID_MAX)
			continue;
		if (h.type == HELLO_CONNECT && (!h.to || h.to == ep->nonce))
			accept_hello(ep, &from, &h);
		else if (h.type == HELLO_REFUSE)
			refused(ep, &from, &h);
	}
}

/* ---- the calls; those that ask are in dial.c ---- */

static int look_fresh(void *arg)
{
	struct sci_ep *ep = arg;

	return list_empty(&ep->fresh) ? -EAGAIN : 0;
}

int sci_accept(struct sci_ep *ep, int timeout, struct sci_peer **peer)
{
	struct sci_peer *p;
	int ret;

	if (!ep || !peer)
		return -EINVAL;
	if (!msg_usable(ep))
		return -ENOTCONN;
	msg_lock(&ep->lock);
	ret = msg_wait(ep, look_fresh, ep, timeout);
	if (!ret) {
		p = container_of(ep->fresh.next, struct sci_peer, fresh);
		list_del(&p->fresh);
		p->known = true;
		*peer = p;
	}
	msg_unlock(&ep->lock);
	return ret;
}

int sci_peer_find(struct sci_ep *ep, const struct sci_addr *addr,
		  struct sci_peer **peer)
{
	struct sci_peer *p;

	if (!ep || !addr || !peer)
		return -EINVAL;
	if (!msg_usable(ep))
		return -ENOTCONN;
	msg_lock(&ep->lock);
	p = peer_find(ep, addr);
	if (p && p->state != PEER_UP)
		p = NULL;
	if (p) {
		p->known = true;
		*peer = p;
	}
	msg_unlock(&ep->lock);
	return p ? 0 : -ENOENT;
}

static int look_flushed(void *arg)
{
	struct sci_peer *p = arg;

	if (p->state == PEER_UP)
		check_writes(p->ep);
	return p->state == PEER_DOWN ||
	       (list_empty(&p->dirty) && list_empty(&p->ctlq) &&
		!p->unwatched) ? 0 : -EAGAIN;
}

/* How long the last lines may take to get past a bad link. */
#define LINGER_MS	2000
#define LINGER_LOOK_MS	5

void peer_flush(struct sci_peer *p)
{
	msg_wait_often(p->ep, look_flushed, p, LINGER_MS, LINGER_LOOK_MS);
}

int sci_disconnect(struct sci_peer *peer)
{
	struct sci_ep *ep;

	if (!peer)
		return -EINVAL;
	ep = peer->ep;
	if (!msg_usable(ep))
		return -ENOTCONN;
	msg_lock(&ep->lock);
	peer_flush(peer);
	peer->leaving = true;
	peer_down(peer, -ECANCELED);
	peer->known = false;
	if (!peer->dialers)	/* else the last of them does it */
		peer_free(peer);
	msg_unlock(&ep->lock);
	return 0;
}

int sci_peer_state(struct sci_peer *peer)
{
	int ret;

	if (!peer)
		return -EINVAL;
	if (!msg_usable(peer->ep))
		return -ENOTCONN;
	msg_lock(&peer->ep->lock);
	if (atomic_load(&peer->events))
		peer_event_check(peer);
	if (peer->state == PEER_DOWN)
		ret = peer->error;
	else
		ret = peer->state == PEER_UP ? 0 : -EINPROGRESS;
	msg_unlock(&peer->ep->lock);
	return ret;
}

int sci_peer_addr(struct sci_peer *peer, struct sci_addr *addr)
{
	if (!peer || !addr)
		return -EINVAL;
	if (!msg_usable(peer->ep))
		return -ENOTCONN;
	*addr = peer->addr;
	return 0;
}

struct sci_ep *sci_peer_ep(struct sci_peer *peer)
{
	return peer ? peer->ep : NULL;
}

void sci_peer_set_data(struct sci_peer *peer, void *data)
{
	if (peer)
		peer->data = data;
}

void *sci_peer_data(struct sci_peer *peer)
{
	return peer ? peer->data : NULL;
}
