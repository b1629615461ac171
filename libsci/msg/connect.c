// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: connecting
 *
 * HELLO goes to the other endpoint's port, a data interrupt, and names the
 * segment that was made to be its inbox for us. The receiver of a HELLO imports that
 * inbox, and answers with its own HELLO unless it has sent one already: so two
 * that connect to each other at the same time make one connection. A HELLO
 * without an answer is sent again: its receiver may have died with it, or it may have
 * come before the end of the connection before. Only the fabric tells of ends:
 * a HELLO in a peer's name does not harm it.
 *
 * All that another process has to answer is a call (call.c): progress begins it,
 * and a later round takes the result.
 */

#include "libsci/msg/endpoint.h"

#include <errno.h>
#include <stdlib.h>

/* ---- HELLO ---- */

/* Under way at the same time. */
#define REFUSALS_MAX	64u

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

/* Say HELLO, unless one is on its way. calls_check() hears what came of it. */
int hello_send(struct sci_peer *p)
{
	struct msg_hello hello = hello_from(p->ep, HELLO_CONNECT);

	if (call_find(p, CALL_HELLO, 0))
		return 0;
	hello.inbox = p->fabric->ops->lseg.id(p->inbox);
	hello.to = p->state == PEER_UP ? p->nonce : 0;
	hello.yours = p->state == PEER_UP ? p->their_inbox : 0;
	return call_hello(p->ep, p->fabric, p, &p->addr, &hello);
}

static void refuse(struct sci_ep *ep, struct sci_fabric *fabric,
		   const struct sci_addr *to, uint64_t nonce, uint32_t inbox, int error)
{
	struct msg_hello hello = hello_from(ep, HELLO_REFUSE);

	/* those that find no answer ask again */
	if (ep->n_refusals >= REFUSALS_MAX)
		return;
	hello.to = nonce;
	hello.inbox = inbox;
	hello.status = error;
	call_hello(ep, fabric, NULL, to, &hello);
}

static void came_to_life(struct sci_peer *p, const struct msg_hello *h)
{
	p->nonce = h->nonce;
	p->their_inbox = h->inbox;
	p->sums = h->flags & HELLO_CRC;
	p->fence = p->stream || !(p->ep->wake_barrier && h->flags & HELLO_WAKE_BARRIER);
}

/* There is no connection, or not yet: @error says why. */
static void accept_failed(struct sci_peer *p, int error)
{
	if (error != -ENETDOWN && !hello_again(error)) {
		refuse(p->ep, p->fabric, &p->addr, p->nonce, p->their_inbox, error);
	} else if (!p->incoming) {
		/*
		 * Another HELLO will come. If its inbox is imported, only our
		 * answer is missing; else this HELLO was old, or there is no
		 * way to the other node.
		 */
		if (p->state == PEER_CONNECTING)
			p->nonce = 0;
		return;
	}
	peer_down(p, error);
}

static void inbox_came(struct sci_peer *p, struct msg_call *c)
{
	int ret = c->ret;

	if (p->state != PEER_CONNECTING)
		return;
	/* another life has said HELLO meanwhile */
	if (c->id != p->their_inbox)
		ret = peer_ask_inbox(p);
	else if (!ret)
		ret = peer_take_inbox(p, c);
	if (!ret && p->state == PEER_UP && !p->asked)
		ret = hello_send(p);
	if (ret)
		accept_failed(p, ret);
	msg_changed(p->ep);
}

static void hello_went(struct sci_peer *p, struct msg_call *c)
{
	p->hello_ret = c->ret;
	p->hello_ms = c->ms;
	if (!c->ret)
		p->asked = true;
	/* dial.c decides about those that the program has asked for */
	else if (!p->dialers && p->state == PEER_UP && !p->asked)
		accept_failed(p, c->ret);
}

/*
 * Take the results of calls that make the connection, and let those of segments be
 * taken. Returns how many ended.
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
		if (c->kind == CALL_SEGMENT)
			continue;
		/* inbox_came() may begin another */
		list_del(&c->link);
		if (c->kind == CALL_INBOX)
			inbox_came(p, c);
		else
			hello_went(p, c);
		call_end(c);
	}
	return ended;
}

static void accept_hello(struct sci_ep *ep, struct sci_fabric *fabric,
			 const struct sci_addr *from, const struct msg_hello *h)
{
	struct sci_peer *p = peer_find(ep, from);
	bool asking;
	int ret;

	/* the two sides have chosen different networks: one of them is wrong */
	if (p && p->state != PEER_DOWN && p->fabric != fabric)
		return;
	/* the answer to a connection that is over */
	if (h->yours && (!p || p->state == PEER_DOWN ||
			 h->yours != p->fabric->ops->lseg.id(p->inbox)))
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
		ret = peer_new(ep, fabric, from, &p);
		if (ret) {
			refuse(ep, fabric, from, h->nonce, h->inbox, ret);
			return;
		}
		/* to be accepted when it has our inbox: this may be an old HELLO */
		p->incoming = true;
	}
	/* the call for an earlier HELLO of it sees that there is another */
	asking = call_find(p, CALL_INBOX, 0);
	came_to_life(p, h);
	ret = asking ? 0 : peer_ask_inbox(p);
	if (ret)
		accept_failed(p, ret);
}

static void refused(struct sci_ep *ep, const struct sci_addr *from,
		    const struct msg_hello *h)
{
	struct sci_peer *p = peer_find(ep, from);

	if (p && p->state == PEER_CONNECTING && h->to == ep->nonce &&
	    h->inbox == p->fabric->ops->lseg.id(p->inbox))
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
			/* nothing of ours: away with it */
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
		if (h.type == HELLO_CONNECT && (!h.to || h.to == ep->nonce))
			accept_hello(ep, fabric, &from, &h);
		else if (h.type == HELLO_REFUSE)
			refused(ep, &from, &h);
	}
}

/* Take what has come to our ports. Returns how many. */
int hello_poll(struct sci_ep *ep)
{
	int n = port_poll(ep, ep->fabric, ep->port);

	return ep->net ? n + port_poll(ep, ep->net, ep->net_port) : n;
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
		peer_keep(p);
		*peer = p;
	}
	msg_unlock(&ep->lock);
	return p ? 0 : -ENOENT;
}

static bool is_flushed(const struct sci_peer *p)
{
	return p->state == PEER_DOWN ||
	       (list_empty(&p->dirty) && list_empty(&p->ctlq) && !p->unwatched);
}

static int look_flushed(void *arg)
{
	struct sci_peer *p = arg;

	check_writes(p->ep);
	return is_flushed(p) ? 0 : -EAGAIN;
}

static int look_all_flushed(void *arg)
{
	struct sci_ep *ep = arg;
	struct list *pos, *n;

	check_writes(ep);
	list_for_each_safe(pos, n, &ep->peers)
		if (!is_flushed(container_of(pos, struct sci_peer, link)))
			return -EAGAIN;
	return 0;
}

/* How long the last lines may take to get past a bad link. */
#define LINGER_MS	2000
#define LINGER_LOOK_MS	5
#define CLOSE_TURNS	64u		/* progress calls between looks at what has arrived */

/* Also detached sends, some of them made before there was a connection. */
void peers_flush(struct sci_ep *ep)
{
	msg_wait_often(ep, look_all_flushed, ep, LINGER_MS, LINGER_LOOK_MS);
}

static int look_calls(void *arg)
{
	return calls_give_up(arg) ? 0 : -EAGAIN;
}

/* End the connection and let go of @p. Data that has not arrived is lost. */
void peer_drop(struct sci_peer *p)
{
	p->leaving = true;
	peer_down(p, -ECANCELED);
	p->known = false;
	if (!p->dialers)	/* else the last of them does it */
		peer_forget(p);
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
	msg_wait_often(ep, look_flushed, peer, LINGER_MS, LINGER_LOOK_MS);
	/*
	 * While a thread makes a call, even one that has been answered, the peer would not
	 * learn of the end before our next progress, which may never come.
	 */
	peer->leaving = true;
	peer_down(peer, -ECANCELED);
	msg_wait_often(ep, look_calls, peer, LINGER_MS, LINGER_LOOK_MS);
	peer_drop(peer);
	msg_unlock(&ep->lock);
	return 0;
}

/* ---- ends that nobody waits for ---- */

void peer_closing_end(struct sci_peer *p)
{
	if (list_empty(&p->closing))
		return;
	list_del(&p->closing);
	p->ep->n_gone--;
}

/* The program has asked for @p again, and has a pointer to it. */
void peer_keep(struct sci_peer *p)
{
	p->known = true;
	if (list_empty(&p->closing))
		return;
	peer_closing_end(p);
	p->leaving = false;
}

/* End what has been flushed, or has had its time. Returns how many. */
int closings_poll(struct sci_ep *ep)
{
	struct list *pos, *n;
	int done = 0;

	if (list_empty(&ep->closing))
		return 0;
	/* a wait for answers: not each time */
	if (ep->turns % CLOSE_TURNS == 0)
		check_writes(ep);
	list_for_each_safe(pos, n, &ep->closing) {
		struct sci_peer *p = container_of(pos, struct sci_peer, closing);

		if (!is_flushed(p) && msg_now_ms() < p->close_ms)
			continue;
		peer_closing_end(p);
		peer_drop(p);
		done++;
	}
	return done;
}

int sci_peer_close(struct sci_peer *peer)
{
	struct sci_ep *ep;

	if (!peer)
		return -EINVAL;
	ep = peer->ep;
	if (!msg_usable(ep))
		return -ENOTCONN;
	msg_lock(&ep->lock);
	check_writes(ep);
	if (is_flushed(peer)) {
		peer_drop(peer);
	} else if (list_empty(&peer->closing)) {
		/* nothing names it any more */
		peer->leaving = true;
		peer->known = false;
		list_del(&peer->fresh);
		completions_forget(peer);
		peer->close_ms = msg_now_ms() + LINGER_MS;
		list_add_tail(&peer->closing, &ep->closing);
		ep->n_gone++;
		wake_all(ep);
	}
	msg_unlock(&ep->lock);
	return 0;
}

/* The first peer that has ended and whose messages have all been received. */
static struct sci_peer *next_gone(struct sci_ep *ep)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &ep->ended) {
		struct sci_peer *p = container_of(pos, struct sci_peer, link);

		if (p->dialers || p->leaving || sci_match_msg_of(&ep->match, p))
			continue;
		if (p->known)
			return p;
		/* its messages were dropped: the program does not know it */
		peer_free(p);
	}
	return NULL;
}

int sci_peer_gone(struct sci_ep *ep, struct sci_peer **peer)
{
	struct sci_peer *p;

	if (!ep || !peer)
		return -EINVAL;
	if (!msg_usable(ep))
		return -ENOTCONN;
	msg_lock(&ep->lock);
	p = next_gone(ep);
	if (p) {
		list_del(&p->link);
		list_add_tail(&p->link, &ep->former);
		*peer = p;
	}
	msg_unlock(&ep->lock);
	return p ? 0 : -ENOENT;
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
		sci_store_release(&peer->data, data);
}

void *sci_peer_data(struct sci_peer *peer)
{
	return peer ? sci_load_acquire(&peer->data) : NULL;
}
