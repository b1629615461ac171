// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The calls that end connections or ask for the state of a peer. */

#include "libsci/msg/api/api.h"

#include <errno.h>

static bool peer_is_flushed(const struct sci_peer *p)
{
	return p->state == PEER_DOWN ||
	       (list_empty(&p->dirty) && !p->rerouting && list_empty(&p->ctlq) && !p->detached);
}

static int peer_test_flushed(void *arg)
{
	struct sci_peer *p = arg;

	check_writes(p->ep);
	return peer_is_flushed(p) ? 0 : -EAGAIN;
}

static int peers_test_flushed(void *arg)
{
	struct sci_ep *ep = arg;
	struct list *pos, *n;

	check_writes(ep);
	list_for_each_safe(pos, n, &ep->peers)
		if (!peer_is_flushed(container_of(pos, struct sci_peer, link)))
			return -EAGAIN;
	return 0;
}

/* Time limit for flushing the last lines over a bad link, in ms. */
#define LINGER_MS	2000
#define LINGER_LOOK_MS	5
#define CLOSE_TURNS	64u		/* progress calls between checks for lost stores */

/* Wait until all stores and detached sends have arrived, also those to connecting peers. */
void peers_flush(struct sci_ep *ep)
{
	msg_wait_often(ep, peers_test_flushed, ep, LINGER_MS, LINGER_LOOK_MS);
}

static int calls_test(void *arg)
{
	return calls_give_up(arg) ? 0 : -EAGAIN;
}

int sci_disconnect(struct sci_peer *peer)
{
	struct sci_ep *ep;

	if (!peer)
		return -EINVAL;
	ep = peer->ep;
	if (!ep_lock(ep))
		return -ENOTCONN;
	msg_wait_often(ep, peer_test_flushed, peer, LINGER_MS, LINGER_LOOK_MS);
	/*
	 * Wait for the calls to the peer: the fabric reports the end of this side to the peer only
	 * after these calls have ended.
	 */
	peer->leaving = true;
	peer_down(peer, -ECANCELED);
	msg_wait_often(ep, calls_test, peer, LINGER_MS, LINGER_LOOK_MS);
	reqs_forget(peer);
	peer_drop(peer);
	msg_unlock(&ep->lock);
	return 0;
}

/* ---- closing in the background: sci_peer_close() ---- */

/* End the closing peers that are flushed or whose time limit has passed. Return their number. */
int closings_poll(struct sci_ep *ep)
{
	struct list *pos;
	int done = 0;

	if (list_empty(&ep->closing))
		return 0;
	/* the check waits for the adapter, so do not make it in each round */
	if (ep->turns % CLOSE_TURNS == 0)
		check_writes(ep);
	for (pos = ep->closing.next; pos != &ep->closing;) {
		struct sci_peer *p = container_of(pos, struct sci_peer, closing);

		pos = pos->next;
		if (!peer_is_flushed(p) && msg_now_ms() < p->close_ms)
			continue;
		/* this also frees other peers of the list that are DOWN: start over */
		peer_drop(p);
		pos = ep->closing.next;
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
	if (!ep_lock(ep))
		return -ENOTCONN;
	check_writes(ep);
	reqs_forget(peer);
	if (peer_is_flushed(peer)) {
		peer_drop(peer);
	} else if (list_empty(&peer->closing)) {
		/* no call may return this peer to the program any more */
		peer->leaving = true;
		peer->known = false;
		list_del(&peer->accept_link);
		completions_forget(peer);
		peer->close_ms = msg_now_ms() + LINGER_MS;
		list_add_tail(&peer->closing, &ep->closing);
		ep->n_suspect++;
		events_return(peer);
		wake_all(ep);
	}
	msg_unlock(&ep->lock);
	return 0;
}

/* Return the first ended peer all of whose messages have been received, or NULL. */
static struct sci_peer *gone_find_next(struct sci_ep *ep)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &ep->ended) {
		struct sci_peer *p = container_of(pos, struct sci_peer, link);

		if (p->dialers || p->leaving || sci_match_msg_of(&ep->match, p))
			continue;
		if (p->known)
			return p;
		/* the peer's messages were dropped, so the program has no pointer to this peer */
		peer_free(p);
	}
	return NULL;
}

int sci_peer_gone(struct sci_ep *ep, struct sci_peer **peer)
{
	struct sci_peer *p;

	if (!ep || !peer)
		return -EINVAL;
	if (!ep_lock(ep))
		return -ENOTCONN;
	p = gone_find_next(ep);
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
	if (!ep_lock(peer->ep))
		return -ENOTCONN;
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

const char *sci_peer_network(struct sci_peer *peer)
{
	const char *name;

	if (!peer || !ep_lock(peer->ep))
		return NULL;
	name = peer->fabric->ops->name;
	msg_unlock(&peer->ep->lock);
	return name;
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
