// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: dialing
 *
 * A dial is a connection attempt: it repeats the HELLO to an address until the connection is
 * established. A dial belongs to a thread in sci_connect(), to a request of sci_iconnect(), or to
 * the peer of sci_peer_open(). Several dials may share a peer. Each progress call advances all
 * dials of the endpoint.
 */

#include "libsci/msg/conn/conn.h"

#include <errno.h>
#include <limits.h>

/* Interval between HELLOs to a peer that does not answer; doubled each time. */
#define AGAIN_MS	100u
#define AGAIN_MAX_MS	3200u
/* Interval between attempts to reach an endpoint that does not exist; doubled each time. */
#define RETRY_MS	2u
#define RETRY_MAX_MS	64u

static void dial_drop(struct msg_dial *d)
{
	struct sci_peer *p = d->p;

	if (p && !--p->dialers && !p->known && p->state == PEER_DOWN)
		peer_forget(p);
	d->p = NULL;
}

/* Set d->p to the existing connection, or to a new peer. */
int dial_pick(struct msg_dial *d)
{
	struct sci_peer *p = peer_find_kept(d->ep, &d->addr);

	d->again = 0;
	d->asking = false;
	if (!p || p->state == PEER_DOWN) {
		int ret = peer_new(d->ep, net_choose(d->ep, d->addr.node), &d->addr, &p);

		/* -EAGAIN would let the dial go on without a peer */
		if (ret)
			return error_for_request(ret);
	}
	p->dialers++;
	d->p = p;
	return 0;
}

/*
 * Return the next interval. A peer that does not answer may be overloaded, and each HELLO adds to
 * its load: without a back-off, many endpoints that connect to each other would never finish.
 */
static uint32_t dial_back_off(uint32_t pause, uint32_t first, uint32_t most)
{
	if (pause < first)
		return first;
	return pause < most / 2 ? 2 * pause : most;
}

/* Schedule the next HELLO after one has ended. A slow HELLO makes the interval longer. */
static int dial_handle_answer(struct msg_dial *d)
{
	int ret = d->p->hello_ret;

	d->asking = false;
	d->absent = ret;
	d->pause = ret ? dial_back_off(d->pause, RETRY_MS, RETRY_MAX_MS) :
			 dial_back_off(d->pause, AGAIN_MS, AGAIN_MAX_MS);
	d->again = msg_now_ms() + d->pause + 3 * d->p->hello_ms;
	/* the endpoint exists but is busy: the timeout starts again */
	if (!ret && d->open && d->timeout >= 0)
		d->until = d->again + (uint64_t)d->timeout;
	return ret;
}

/*
 * Return whether the timeout may end @d now. It does not end a dial of sci_peer_open() while the
 * endpoint may exist: this process may have been too slow to send or to finish a HELLO.
 */
static bool dial_is_limited(const struct msg_dial *d)
{
	return !d->open || (d->absent && !d->asking);
}

/* Advance a dial. Return 0 when connected, -EAGAIN to continue, or another -errno. */
static int dial_step(struct msg_dial *d)
{
	uint64_t now = msg_now_ms();
	int ret;

	if (d->p->state == PEER_DOWN) {
		ret = d->p->error;
		dial_drop(d);
		/* the requests to an opened peer have failed, too: do not connect the peer again */
		if (!hello_again(ret) || d->open)
			return ret ? ret : -ECONNRESET;
		ret = dial_pick(d);
		if (ret)
			return ret;
	}
	/* until the peer has imported this endpoint's inbox, it may still start over */
	if (d->p->state == PEER_UP && d->p->imported)
		return 0;
	if (d->asking && !call_find(d->p, CALL_HELLO, 0)) {
		ret = dial_handle_answer(d);
		if (ret && !hello_again(ret))
			return ret;
	}
	if (now >= d->until && dial_is_limited(d))
		return -ETIME;
	if (d->asking || now < d->again)
		return -EAGAIN;
	ret = hello_send(d->p);
	d->asking = !ret;
	return ret ? ret : -EAGAIN;
}

/* Handle the timeout @ret of @d. Return 0 if the connection is established, or the error. */
static int dial_time_out(struct msg_dial *d, int ret)
{
	struct sci_peer *p = d->p;

	if (p->state == PEER_UP && p->imported)
		return 0;
	/*
	 * The peer has sent a HELLO: its program may have the connection already. Another connect
	 * or an accept of this endpoint gets it when it is established.
	 */
	if (p->state != PEER_DOWN && p->nonce && !p->known)
		p->incoming = true;
	return p->hello_ret == -ENETDOWN ? -ENETDOWN : ret;
}

/* Remove @d from ep->dials. Return the connection, or NULL if @ret is an error. */
struct sci_peer *dial_end(struct msg_dial *d, int ret)
{
	struct sci_peer *p = d->p;

	if (p && (ret == -ETIME || ret == -ETIMEDOUT))
		ret = dial_time_out(d, ret);
	d->ret = ret;
	list_del(&d->link);
	if (!ret) {
		/* the program may be closing an opened peer by now */
		if (!d->open)
			peer_keep(p);
		p->incoming = false;
		list_del(&p->accept_link);
	} else if (p && p->dialers == 1 && p->state == PEER_CONNECTING && !p->incoming) {
		peer_down(p, ret);
	}
	dial_drop(d);
	return ret ? NULL : p;
}

/* End @d with @ret and call d->done(), which may free @d. */
void dial_done(struct msg_dial *d, int ret)
{
	d->done(d, dial_end(d, ret));
}

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

/* Return in how many ms a dial needs the next step, or INT_MAX if there is no dial. */
int dials_due(struct sci_ep *ep)
{
	uint64_t now, due = UINT64_MAX;
	struct list *pos, *n;

	if (list_empty(&ep->dials))
		return INT_MAX;
	now = msg_now_ms();
	list_for_each_safe(pos, n, &ep->dials) {
		struct msg_dial *d = container_of(pos, struct msg_dial, link);
		/* the end of its call wakes the endpoint */
		uint64_t at = d->asking ? UINT64_MAX : d->again;

		if (d->until < at && dial_is_limited(d))
			at = d->until;
		due = at < due ? at : due;
	}
	if (due <= now)
		return 0;
	return due - now < INT_MAX ? (int)(due - now) : INT_MAX;
}

void dial_init(struct msg_dial *d, struct sci_ep *ep,
	       const struct sci_addr *addr, int timeout)
{
	*d = (struct msg_dial){
		.ep = ep, .addr = *addr, .ret = -EAGAIN, .timeout = timeout,
		.until = timeout < 0 ? UINT64_MAX :
				       msg_now_ms() + (uint64_t)timeout,
	};
}

/* Start @d, which has a peer. Return -EAGAIN if the dial goes on until dial_end(). */
int dial_start(struct msg_dial *d)
{
	list_add_tail(&d->link, &d->ep->dials);
	return dial_step(d);
}

bool dial_is_open(struct sci_peer *p)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &p->ep->dials) {
		struct msg_dial *d = container_of(pos, struct msg_dial, link);

		if (d->open && d->p == p)
			return true;
	}
	return false;
}

void dials_cancel(struct sci_ep *ep)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &ep->dials)
		dial_done(container_of(pos, struct msg_dial, link), -ECANCELED);
}
