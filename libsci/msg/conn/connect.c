// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: connecting
 *
 * An endpoint sends a HELLO to the port (a data interrupt) of another endpoint. The HELLO
 * names the segment that the sender made as its inbox for that peer. The receiver imports
 * this inbox and answers with its own HELLO, unless it has sent one already. So two
 * endpoints that connect to each other at the same time make one connection.
 *
 * The sender repeats a HELLO that is not answered: the receiver may have died, or it may
 * have received the HELLO before the end of an earlier connection. Only the fabric reports
 * the end of a connection, so a forged HELLO cannot end one.
 *
 * Each step that needs an answer of another process is a call (call.c): progress starts the call,
 * and a later round takes the result.
 */

#include "libsci/msg/conn/conn.h"

#include <errno.h>
#include <stdlib.h>

/* ---- HELLO ---- */

/* most refusals in flight at the same time */
#define REFUSALS_MAX	64u

/*
 * Return whether to repeat a HELLO that ended with @error. The error may come from an
 * earlier process with this address, the machine is too busy to answer in time, or the link
 * is down and may come up again.
 */
bool hello_again(int error)
{
	return error == -ENOENT || error == -ETIMEDOUT || error == -ENOBUFS ||
	       error == -ENOTCONN || error == -ECONNRESET || error == -ENETDOWN;
}

/* Send a HELLO unless a HELLO to @p is in flight. calls_check() takes its result. */
int hello_send(struct sci_peer *p)
{
	struct msg_hello hello = hello_make(p->ep, HELLO_CONNECT);

	if (call_find(p, CALL_HELLO, 0))
		return 0;
	hello.inbox = inbox_id(p);
	if (p->rails && p->rails->second.inbox)
		hello.rail_inbox = p->ep->rail->ops->lseg.id(p->rails->second.inbox);
	hello.to = p->state == PEER_UP ? p->nonce : 0;
	hello.yours = p->state == PEER_UP ? p->their_inbox : 0;
	return call_hello(p->ep, p->fabric, p, &p->addr, &hello);
}

static void hello_refuse(struct sci_ep *ep, struct sci_fabric *fabric,
			 const struct sci_addr *to, uint64_t nonce, uint32_t inbox, int error)
{
	struct msg_hello hello = hello_make(ep, HELLO_REFUSE);

	/* a peer without an answer repeats its HELLO */
	if (ep->n_refusals >= REFUSALS_MAX)
		return;
	hello.to = nonce;
	hello.inbox = inbox;
	hello.status = error;
	call_hello(ep, fabric, NULL, to, &hello);
}

static void peer_store_hello(struct sci_peer *p, const struct msg_hello *h)
{
	p->nonce = h->nonce;
	p->their_inbox = h->inbox;
	p->sums = h->flags & HELLO_CRC;
	p->takes_events = h->flags & HELLO_WRITE_EVENTS;
	if (p->rails) {
		p->rail_node = h->rail;
		p->rails->inbox = h->rail ? h->rail_inbox : 0;
	}
	p->fence = p->stream || !(p->ep->wake_barrier && h->flags & HELLO_WAKE_BARRIER);
}

/* Handle the failure of an import of @p's inbox, or of a HELLO to @p. */
static void accept_handle_failure(struct sci_peer *p, int error)
{
	if (!hello_again(error)) {
		hello_refuse(p->ep, p->fabric, &p->addr, p->nonce, p->their_inbox, error);
	} else if (!p->incoming || p->dialers || p->state == PEER_UP) {
		/*
		 * Keep the peer: it will repeat its HELLO. If either side has imported the inbox of
		 * the other side, only the answer of this endpoint is missing. Otherwise this HELLO
		 * was old, or the other node cannot be reached now. If the program also connects to
		 * the peer, dial.c sends HELLOs and decides when to give up.
		 */
		if (p->state == PEER_CONNECTING) {
			p->nonce = 0;
			p->incoming = false;
		}
		return;
	}
	peer_down(p, error);
}

static void inbox_handle(struct sci_peer *p, struct msg_call *c)
{
	int ret = c->ret;

	if (p->state != PEER_CONNECTING)
		return;
	/* a newer HELLO of this peer has arrived during the call */
	if (c->id != p->their_inbox)
		ret = peer_ask_inbox(p);
	else if (!ret)
		ret = peer_take_inbox(p, c);
	if (!ret && p->state == PEER_UP && !p->asked)
		ret = hello_send(p);
	if (ret)
		accept_handle_failure(p, ret);
	msg_changed(p->ep);
}

static void hello_handle_result(struct sci_peer *p, struct msg_call *c)
{
	p->hello_ret = c->ret;
	p->hello_ms = c->ms;
	if (!c->ret)
		p->asked = true;
	/* dial.c handles errors of peers that the program connects to */
	else if (!p->dialers && p->state == PEER_UP && !p->asked)
		accept_handle_failure(p, c->ret);
}

/*
 * Take the results of the calls that make the connection, and mark the calls for segments as
 * answered. Return how many calls have ended.
 */
int calls_check(struct sci_peer *p)
{
	struct list *pos, *n;
	int ended = 0;

	list_for_each_safe(pos, n, &p->calls) {
		struct msg_call *c = container_of(pos, struct msg_call, link);

		if (c->answered || !call_is_done(c))
			continue;
		c->answered = true;
		ended++;
		if (c->kind == CALL_SEGMENT || c->kind == CALL_RAIL) {
			rail_answered(p, c);
			continue;
		}
		/* inbox_handle() may start another call */
		list_del(&c->link);
		if (c->kind == CALL_INBOX)
			inbox_handle(p, c);
		else if (c->kind == CALL_ROUTE)
			route_take(p, c);
		else if (c->kind == CALL_HELLO)
			hello_handle_result(p, c);
		call_end(c);
	}
	return ended;
}

static void accept_hello(struct sci_ep *ep, struct sci_fabric *fabric,
			 const struct sci_addr *from, const struct msg_hello *h)
{
	struct sci_peer *p = peer_find(ep, from);
	int ret;

	if (p && fabric == ep->fabric)
		peer_follow(p);
	/* the other side moves to the fabric, as above, or one configuration is wrong */
	if (p && p->state != PEER_DOWN && p->fabric != fabric)
		return;
	/* this HELLO answers a connection that has ended */
	if (h->yours && (!p || p->state == PEER_DOWN ||
			 h->yours != inbox_id(p)))
		return;
	if (p && p->state == PEER_UP && p->nonce == h->nonce &&
	    p->their_inbox == h->inbox) {
		/* the HELLO of this endpoint to the peer was lost or never sent */
		if (!p->asked || !h->to)
			hello_send(p);
		return;
	}
	if (p && p->state == PEER_UP)
		peer_event_check(p);
	/*
	 * an old or forged HELLO: a genuine peer repeats its HELLO after the
	 * connection has ended
	 */
	if (p && p->state == PEER_UP && p->imported)
		return;
	/* a peer that never imported this endpoint's inbox must not block a new connection */
	if (p && p->state == PEER_UP)
		peer_end(p, -ENOTCONN);
	if (!p || p->state == PEER_DOWN) {
		ret = peer_new(ep, fabric, from, &p);
		if (ret) {
			hello_refuse(ep, fabric, from, h->nonce, h->inbox, ret);
			return;
		}
		/* this HELLO may be old: accept the peer only after it has imported the inbox */
		p->incoming = true;
	}
	/* when the import for the earlier HELLO ends, inbox_handle() uses the new HELLO */
	peer_store_hello(p, h);
	ret = call_find(p, CALL_INBOX, 0) ? 0 : peer_ask_inbox(p);
	if (ret)
		accept_handle_failure(p, ret);
}

static void peer_refused(struct sci_ep *ep, const struct sci_addr *from,
			 const struct msg_hello *h)
{
	struct sci_peer *p = peer_find(ep, from);

	if (p && p->state == PEER_CONNECTING && h->to == ep->nonce &&
	    h->inbox == inbox_id(p))
		peer_down(p, h->status < 0 ? -ECONNREFUSED : -EPROTO);
}

static int port_poll(struct sci_ep *ep, struct sci_fabric *fabric, struct sci_lintr *port)
{
	const struct sci_lintr_ops *ops = &fabric->ops->lintr;
	struct msg_hello h;
	int n;

	for (n = 0;; n++) {
		size_t len = sizeof(h);
		struct sci_addr from;
		int ret;

		ret = ops->wait(port, &h, &len, 0);
		if (ret == -EMSGSIZE && len <= SCI_DATA_INTR_MAX) {
			/* not a HELLO: discard it */
			void *junk = malloc(len);

			if (!junk)
				return n;
			ops->wait(port, junk, &len, 0);
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
		if (h.type == HELLO_CONNECT && fabric != ep->rail && (!h.to || h.to == ep->nonce))
			accept_hello(ep, fabric, &from, &h);
		else if (h.type == HELLO_REFUSE)
			peer_refused(ep, &from, &h);
		else if (h.type == HELLO_REROUTE && h.to == ep->nonce)
			reroute_handle(ep, &from, &h);
	}
}

/* Handle the HELLOs at the endpoint's ports. Return their number. */
int hello_poll(struct sci_ep *ep)
{
	int n = port_poll(ep, ep->fabric, ep->port);

	if (ep->rail)
		n += port_poll(ep, ep->rail, ep->rail_port);
	return ep->net ? n + port_poll(ep, ep->net, ep->net_port) : n;
}
