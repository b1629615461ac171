// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: dialing
 *
 * A dial says HELLO to an address until there is a connection, for a thread in
 * sci_connect(), a request of sci_iconnect(), or the peer of sci_peer_open().
 * Several may share a peer. Each progress call of the endpoint looks after all
 * of them.
 */

#include "libsci/msg/endpoint.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

/* A HELLO is repeated after this, and later each time ... */
#define AGAIN_MS	100u
#define AGAIN_MAX_MS	3200u
/* ... and so are looks for an endpoint that is not there. */
#define RETRY_MS	2u
#define RETRY_MAX_MS	64u

struct msg_dial {
	struct list link;		/* ep->dials */
	struct sci_ep *ep;
	struct sci_addr addr;
	struct sci_peer *p;		/* counts us among its dialers */
	struct sci_req *req;		/* NULL: of a thread in sci_connect() ... */
	bool open;			/* ... or of @p, which the program has */
	bool asking;			/* a HELLO of @p's is on its way */
	uint64_t again;			/* when to say HELLO next */
	uint64_t until;			/* when to give up, with -ETIME */
	int timeout;
	uint32_t pause;			/* ms, since it was said last */
	int ret;			/* -EAGAIN: it goes on */
};

/*
 * Such an end may be that of an earlier life, or come before the next; or a machine
 * is so busy that its answer takes too long.
 */
bool hello_again(int error)
{
	return error == -ENOENT || error == -ETIMEDOUT || error == -ENOBUFS ||
	       error == -ENOTCONN || error == -ECONNRESET;
}

static void dial_drop(struct msg_dial *d)
{
	struct sci_peer *p = d->p;

	if (p && !--p->dialers && !p->known && p->state == PEER_DOWN)
		peer_forget(p);
	d->p = NULL;
}

/* The connection that is there, or is being made, or a new one. */
static int dial_pick(struct msg_dial *d)
{
	struct sci_peer *p = peer_find(d->ep, &d->addr);

	d->again = 0;
	d->asking = false;
	if (!p || p->state == PEER_DOWN) {
		int ret = peer_new(d->ep, net_choose(d->ep, d->addr.node), &d->addr, &p);

		if (ret)
			return ret;
	}
	p->dialers++;
	d->p = p;
	return 0;
}

/*
 * A peer that does not answer may be overloaded, and each HELLO adds to its load:
 * many endpoints that connect to each other at the same time would never finish.
 */
static uint32_t back_off(uint32_t pause, uint32_t first, uint32_t most)
{
	if (pause < first)
		return first;
	return pause < most / 2 ? 2 * pause : most;
}

/* A HELLO has gone, or found no way. The longer that took, the later the next. */
static int dial_asked(struct msg_dial *d)
{
	int ret = d->p->hello_ret;

	d->asking = false;
	d->pause = ret ? back_off(d->pause, RETRY_MS, RETRY_MAX_MS) :
			 back_off(d->pause, AGAIN_MS, AGAIN_MAX_MS);
	d->again = msg_now_ms() + d->pause + 3 * d->p->hello_ms;
	/* it is there, and busy with something else */
	if (!ret && d->open && d->timeout >= 0)
		d->until = d->again + (uint64_t)d->timeout;
	return ret;
}

/* -EAGAIN: not connected yet. */
static int dial_step(struct msg_dial *d)
{
	uint64_t now = msg_now_ms();
	int ret;

	if (d->p->state == PEER_DOWN) {
		ret = d->p->error;
		dial_drop(d);
		/* what the program has asked of that peer has failed with it */
		if (!hello_again(ret) || d->open)
			return ret ? ret : -ECONNRESET;
		ret = dial_pick(d);
		if (ret)
			return ret;
	}
	/* it may still begin anew until it has our inbox, too */
	if (d->p->state == PEER_UP && d->p->imported)
		return 0;
	if (d->asking && !call_find(d->p, CALL_HELLO, 0)) {
		ret = dial_asked(d);
		if (ret && !hello_again(ret))
			return ret;
	}
	if (now >= d->until)
		return -ETIME;
	if (d->asking || now < d->again)
		return -EAGAIN;
	ret = hello_send(d->p);
	d->asking = !ret;
	return ret ? ret : -EAGAIN;
}

/* @d is not looked after any more. Returns the connection, or NULL. */
static struct sci_peer *dial_end(struct msg_dial *d, int ret)
{
	struct sci_peer *p = d->p;

	d->ret = ret;
	list_del(&d->link);
	if (!ret) {
		/* that of sci_peer_open() may be closing by now */
		if (!d->open)
			peer_keep(p);
		p->incoming = false;
		list_del(&p->fresh);
	} else if (p && p->dialers == 1 && p->state == PEER_CONNECTING) {
		peer_down(p, ret);
	}
	dial_drop(d);
	return ret ? NULL : p;
}

/* It is gone then, unless it is a thread's. */
static void dial_done(struct msg_dial *d, int ret)
{
	struct sci_req *req = d->req;
	struct sci_peer *p = dial_end(d, ret);

	if (!req && !d->open) {
		d->p = p;
		msg_changed(d->ep);
		return;
	}
	free(d);
	if (!req)
		return;
	req->dial = NULL;
	req->peer = p;
	req_done(req, ret);
}

/* Looks after all of them. Returns how many have come to an end. */
int dials_poll(struct sci_ep *ep)
{
	struct list *pos, *n;
	int done = 0;

	list_for_each_safe(pos, n, &ep->dials) {
		struct msg_dial *d = container_of(pos, struct msg_dial, link);
		int ret = dial_step(d);

		if (ret == -EAGAIN)
			continue;
		dial_done(d, ret);
		done++;
	}
	return done;
}

/* In so many ms they want to be looked after; INT_MAX: there are none. */
int dials_due(struct sci_ep *ep)
{
	uint64_t now, due = UINT64_MAX;
	struct list *pos, *n;

	if (list_empty(&ep->dials))
		return INT_MAX;
	list_for_each_safe(pos, n, &ep->dials) {
		struct msg_dial *d = container_of(pos, struct msg_dial, link);
		uint64_t at = d->until;

		if (!d->asking && d->again < at)
			at = d->again;

		due = at < due ? at : due;
	}
	now = msg_now_ms();
	if (due <= now)
		return 0;
	return due - now < INT_MAX ? (int)(due - now) : INT_MAX;
}

static void dial_init(struct msg_dial *d, struct sci_ep *ep,
		      const struct sci_addr *addr, int timeout)
{
	*d = (struct msg_dial){
		.ep = ep, .addr = *addr, .ret = -EAGAIN, .timeout = timeout,
		.until = timeout < 0 ? UINT64_MAX :
				       msg_now_ms() + (uint64_t)timeout,
	};
}

/* It has a peer. -EAGAIN: it is looked after until dial_end(). */
static int dial_start(struct msg_dial *d)
{
	list_add_tail(&d->link, &d->ep->dials);
	return dial_step(d);
}

/* The caller ends the request. */
void dial_cancel(struct sci_req *req)
{
	dial_end(req->dial, -ECANCELED);
	free(req->dial);
	req->dial = NULL;
}

/* The endpoint is about to go. */
void dials_cancel(struct sci_ep *ep)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &ep->dials)
		dial_done(container_of(pos, struct msg_dial, link), -ECANCELED);
}

/* ---- the calls ---- */

static int look_dialed(void *arg)
{
	struct msg_dial *d = arg;

	return d->ret;
}

static int connect_peer(struct sci_ep *ep, const struct sci_addr *addr,
			int timeout, struct sci_peer **out)
{
	struct msg_dial d;
	int ret;

	/* the wait has the time */
	dial_init(&d, ep, addr, -1);
	ret = dial_pick(&d);
	if (ret)
		return ret;
	ret = dial_start(&d);
	if (ret == -EAGAIN)
		ret = msg_wait(ep, look_dialed, &d, timeout);
	if (d.ret == -EAGAIN)
		d.p = dial_end(&d, ret);
	if (!d.ret)
		*out = d.p;
	return d.ret;
}

static bool addr_good(const struct sci_addr *addr)
{
	return addr && addr->id && addr->id <= SCI_EP_ID_MAX;
}

int sci_connect(struct sci_ep *ep, const struct sci_addr *addr, int timeout,
		struct sci_peer **peer)
{
	int ret;

	if (!ep || !addr_good(addr) || !peer)
		return -EINVAL;
	if (!msg_usable(ep))
		return -ENOTCONN;
	msg_lock(&ep->lock);
	ret = connect_peer(ep, addr, timeout, peer);
	msg_unlock(&ep->lock);
	return ret;
}

static int connect_request(struct sci_ep *ep, const struct sci_addr *addr,
			   int timeout, struct sci_req **out)
{
	struct sci_req *req = req_new(ep, MSG_CONNECT);
	struct msg_dial *d = calloc(1, sizeof(*d));
	int ret = -ENOMEM;

	if (!req || !d)
		goto err;
	dial_init(d, ep, addr, timeout);
	d->req = req;
	req->dial = d;
	req->state = MSG_DIALING;
	ret = dial_pick(d);
	if (ret)
		goto err;
	ret = dial_start(d);
	if (ret != -EAGAIN)
		dial_done(d, ret);
	/* who sleeps does so until others were due */
	wake_all(ep);
	*out = req;
	return 0;

err:
	free(d);
	if (req)
		req_free(req);
	return ret;
}

int sci_iconnect(struct sci_ep *ep, const struct sci_addr *addr, int timeout,
		 struct sci_req **req)
{
	int ret;

	if (!ep || !addr_good(addr) || !req)
		return -EINVAL;
	if (!msg_usable(ep))
		return -ENOTCONN;
	msg_lock(&ep->lock);
	ret = connect_request(ep, addr, timeout, req);
	msg_unlock(&ep->lock);
	return ret;
}

static bool is_opened(struct sci_peer *p)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &p->ep->dials) {
		struct msg_dial *d = container_of(pos, struct msg_dial, link);

		if (d->open && d->p == p)
			return true;
	}
	return false;
}

static int open_peer(struct sci_ep *ep, const struct sci_addr *addr,
		     int timeout, struct sci_peer **out)
{
	struct sci_peer *p = peer_find(ep, addr);
	struct msg_dial *d;
	int ret;

	if (p && p->state != PEER_DOWN && (p->state == PEER_UP || is_opened(p))) {
		peer_keep(p);
		*out = p;
		return 0;
	}
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	dial_init(d, ep, addr, timeout);
	d->open = true;
	ret = dial_pick(d);
	if (ret) {
		free(d);
		return ret;
	}
	*out = d->p;
	peer_keep(d->p);
	ret = dial_start(d);
	if (ret != -EAGAIN)
		dial_done(d, ret);
	wake_all(ep);
	return 0;
}

int sci_peer_open(struct sci_ep *ep, const struct sci_addr *addr, int timeout,
		  struct sci_peer **peer)
{
	int ret;

	if (!ep || !addr_good(addr) || !peer)
		return -EINVAL;
	if (!msg_usable(ep))
		return -ENOTCONN;
	msg_lock(&ep->lock);
	ret = open_peer(ep, addr, timeout, peer);
	msg_unlock(&ep->lock);
	return ret;
}
