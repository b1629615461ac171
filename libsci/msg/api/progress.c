// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: progress
 *
 * A hot peer is polled in each progress call. When there are many peers, an endpoint parks silent
 * peers: it announces a sleep to them and does not poll them any more. The next message of a parked
 * peer rings the bell.
 *
 * The bell also ends sleeps. A receiver that is going to sleep announces the sleep in the memory of
 * every hot peer (status->sleeps), executes a barrier, and polls once more. A sender stores its
 * line and then checks whether the receiver sleeps. So at least one of the two sees the other's
 * store. On fabrics with a wake barrier, the receiver's barrier also orders the sender's accesses,
 * and the sender needs no barrier. On other fabrics both execute a barrier (p->fence). Each
 * announcement allows one ring of the bell.
 */

#include "libsci/msg/api/api.h"

#include <errno.h>

#include "libsci/base/cancel.h"

#define HOT_MAX		16u		/* with more hot peers, idle peers are parked */
#define COOL_AFTER	2000u		/* polls without a new line before a peer may be parked */
#define COOL_TURNS	1024u		/* progress calls between attempts to park peers */
#define BELL_TURNS	64u		/* progress calls between polls of the bell */
#define CHECK_TURNS	16u		/* progress calls between watch_writes(), in a stream */

/* ---- sleep and doorbells ---- */

/*
 * Return whether the last announcement to @p is still valid: @p has not rung the bell for it. The
 * net's thread wakes this endpoint without an announcement.
 */
static bool peer_is_announced(struct sci_peer *p)
{
	if (p->announced)
		peer_refresh(p, p->status, sizeof(*p->status));
	if (p->announced &&
	    sci_load_relaxed(&p->status->rung) == p->status_next.sleeps)
		p->announced = false;
	return p->announced || p->stream;
}

static bool peer_announce(struct sci_peer *p)
{
	if (peer_is_announced(p))
		return false;
	status_announce(p);
	p->announced = true;
	return true;
}

static void sleep_barrier(struct sci_ep *ep)
{
	check_writes(ep);
	if (ep->wake_barrier)
		ep->ops->wake_barrier(ep->fabric);
	sci_full_barrier();
}

/* Announce a sleep to all hot peers. Return false if there is work to do. */
bool msg_announce_sleep(struct sci_ep *ep)
{
	struct list *pos, *n;
	bool any = false;

	if (ep->net_looks)
		net_sleep(ep);

	list_for_each_safe(pos, n, &ep->hot) {
		struct sci_peer *p = container_of(pos, struct sci_peer, hot);

		/*
		 * no thread polls during the sleep: at the next poll, copy a message out of the
		 * ring
		 */
		p->defer_polls = DEFER_POLLS;
		any |= peer_announce(p);
	}
	/* where lines are lost, the last announcement may not have arrived yet */
	if (any || ep->lossy)
		sleep_barrier(ep);
	return !msg_progress(ep);
}

static void peer_warm_up(struct sci_peer *p)
{
	if (p->state == PEER_UP && list_empty(&p->hot) &&
	    (p->expects || peer_line_peek(p, &p->data_rx) || !peer_is_announced(p)))
		peer_heat(p);
}

/* Make the parked peers hot that may have rung the doorbell. */
static void peers_warm_up(struct sci_ep *ep)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &ep->peers)
		peer_warm_up(container_of(pos, struct sci_peer, link));
}

static void announcements_forget(struct sci_ep *ep)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &ep->peers)
		container_of(pos, struct sci_peer, link)->announced = false;
}

/*
 * Clear the doorbell and make the parked peers that may have rung it hot. Return true if the bell
 * had been rung: a line may be in a ring that was polled before.
 */
static bool doorbell_handle(struct sci_ep *ep)
{
	int ret;

	sci_cancel_hold();
	ret = ep->ops->lintr.wait(ep->bell, NULL, NULL, 0);
	sci_cancel_release();
	if (ret)
		return false;
	/* the bell may overtake the status line with the number of the sleep */
	if (ep->lossy)
		announcements_forget(ep);
	/* the bell of a segment says which peer has rung */
	if (ep->cooled && ep->ops->ring)
		peers_attend(ep);
	else if (ep->cooled)
		peers_warm_up(ep);
	return true;
}

/* Handle the doorbell on the second rail as doorbell_handle() handles the other one. */
static void rail_bell_handle(struct sci_ep *ep)
{
	announcements_forget(ep);
	if (ep->cooled)
		peers_warm_up(ep);
}

static bool peer_may_cool(const struct sci_peer *p)
{
	return p->idle > COOL_AFTER && !p->expects && !p->chain_left &&
	       list_empty(&p->busy) && list_empty(&p->dirty);
}

static void peer_cool_down(struct sci_ep *ep)
{
	struct list *pos, *n, cold;

	check_writes(ep);
	list_init(&cold);
	list_for_each_safe(pos, n, &ep->hot) {
		struct sci_peer *p = container_of(pos, struct sci_peer, hot);

		if (!peer_may_cool(p))
			continue;
		peer_announce(p);
		list_del(&p->hot);
		list_add_tail(&p->hot, &cold);
	}
	if (list_empty(&cold))
		return;
	sleep_barrier(ep);
	list_for_each_safe(pos, n, &cold) {
		list_del(pos);
		ep->n_hot--;
		peer_warm_up(container_of(pos, struct sci_peer, hot));
	}
	ep->cooled = true;
}

/* ---- progress ---- */

/* Do the rare work of progress: events of the fabric, and connections. */
static int ep_attend(struct sci_ep *ep)
{
	unsigned int seen = ep->completions;
	int done = hello_poll(ep) + closings_poll(ep);

	refusals_end(ep);
	callers_check(ep);
	if (ep->net)
		net_news_take(ep);
	if (ep->rail && atomic_exchange(&ep->rail_rang, 0))
		rail_bell_handle(ep);
	done += peers_attend(ep);
	peers_release(ep);
	/* count completions, too: a thread that is about to sleep may wait for the end of a peer */
	return done + (ep->completions != seen);
}

/* Return whether a poll of @p would find no line. This is the most frequent case: keep it short. */
static inline bool peer_is_silent(const struct sci_peer *p)
{
	return !p->expects && !peer_line_peek(p, &p->data_rx) &&
	       p->state == PEER_UP;
}

/*
 * Make one round of progress. Return the amount of work that was done. If 0, there is no work until
 * a peer rings the bell.
 */
int msg_progress(struct sci_ep *ep)
{
	struct list *pos, *n;
	int done = 0;

	ep->turns++;
	ep->retry = false;
	if (ep->net_looks && net_look(ep) && ep->cooled)
		peers_attend(ep);
	list_for_each_safe(pos, n, &ep->hot) {
		struct sci_peer *p = container_of(pos, struct sci_peer, hot);

		if (peer_is_silent(p))
			p->idle++;
		else
			done += receive_poll(p);
	}
	if (!list_empty(&ep->busy)) {
		list_for_each_safe(pos, n, &ep->busy)
			done += send_push(container_of(pos, struct sci_peer,
						       busy));
	}
	/* receive first: retransmission can wait for a few progress calls */
	if (!list_empty(&ep->dirty) && (!done || ep->turns % CHECK_TURNS == 0))
		watch_writes(ep);
	if (atomic_load_explicit(&ep->attention, memory_order_relaxed) ||
	    ep->n_suspect) {
		atomic_store(&ep->attention, 0);
		done += ep_attend(ep);
	}
	if (!list_empty(&ep->dials))
		done += dials_poll(ep);
	if (ep->cooled && ep->turns % BELL_TURNS == 0 && doorbell_handle(ep)) {
		/* the bell is cleared: a thread that polls its descriptor would miss it */
		wake_all(ep);
		done++;
	}
	if (ep->n_hot > HOT_MAX && ep->turns % COOL_TURNS == 0)
		peer_cool_down(ep);
	return done;
}

/* Handle the doorbell after a sleep. */
void msg_woken(struct sci_ep *ep)
{
	doorbell_handle(ep);
}

/* Wait as msg_wait() does, but with @timeout 0 return -EAGAIN after one round of progress. */
int msg_look(struct sci_ep *ep, int (*fn)(void *arg), void *arg, int timeout)
{
	int ret = fn(arg);

	if (ret != -EAGAIN)
		return ret;
	msg_progress(ep);
	return timeout ? msg_wait(ep, fn, arg, timeout) : fn(arg);
}

int sci_progress(struct sci_ep *ep)
{
	int ret;

	if (!ep)
		return -EINVAL;
	if (!ep_lock(ep))
		return -ENOTCONN;
	ret = msg_progress(ep);
	msg_unlock(&ep->lock);
	return ret;
}
