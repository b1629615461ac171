// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: post and retrieve
 *
 * A post is a send from the port to the mail box's endpoint. A retrieve is a receive by that
 * endpoint from any connection. The message layer chooses the protocol: a line, several lines,
 * blocks, or stores into the exported buffer of the retrieving message.
 *
 * A receive from any connection does not end when a process dies. So the service sends empty
 * messages to each mail box: one for each waiting retrieve, and at least one. The retrieve that
 * gets an empty message looks for another message, and reports the death if there is none.
 * Otherwise it returns the other message and sends the empty message again: a later retrieve
 * reports the death.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/deck/internal.h"

#define PROGRESS_EVERY	16u	/* posts of more than a line between polls of the port */
#define LOOKS		1000u	/* polls of all endpoints before a wait sleeps */
#define IDLE_MS		100	/* milliseconds of a wait while no requests are under way */
#define QUICK_LOOKS	400u	/* polls of a mail box before a retrieve posts a receive */

/* ---- connections ---- */

void deck_peer_set_rank(struct sci_peer *peer, int rank)
{
	sci_peer_set_data(peer, (void *)((intptr_t)rank + 1));
}

int deck_mbox_open(struct deck_world *w, const char *name, struct deck_mbox **out)
{
	struct deck_mbox *box = calloc(1, sizeof(*box));
	int ret;

	if (!box)
		return -ENOMEM;
	strcpy(box->name, name);
	box->owner = w->rank;
	box->refs = 1;
	ret = sci_ep_open(&box->ep, 0, 0);
	ret = ret ? ret : sci_ep_addr(box->ep, &box->addr);
	pthread_mutex_lock(&w->lock);
	ret = ret ? ret : deck_bufs_share(w, box->ep);
	if (!ret)
		list_add_tail(&box->link, &w->boxes);
	pthread_mutex_unlock(&w->lock);
	if (!ret) {
		*out = box;
		return 0;
	}
	if (box->ep)
		sci_ep_close(box->ep);
	free(box);
	return ret;
}

void deck_mbox_close(struct deck_world *w, struct deck_mbox *box)
{
	pthread_mutex_lock(&w->lock);
	list_del(&box->link);
	deck_connects_end(w, box);
	pthread_mutex_unlock(&w->lock);
	if (box->ep)
		sci_ep_close(box->ep);
	free(box);
}

/*
 * Get the connection to post on. The connection to a mail box of this process is made on first use.
 */
static inline int mbox_connection(struct deck_mbox *box, struct sci_peer **to)
{
	*to = atomic_load_explicit(&box->to, memory_order_acquire);
	return *to ? 0 : deck_mbox_reach(box, to);
}

/* ---- retrieved messages ---- */

/*
 * Set the rank of a port that the service has not identified: the service may have found the port's
 * earlier connection, and the mail box has accepted the next one while a thread retrieved.
 */
static __attribute__((noinline)) void *peer_identify(struct sci_peer *peer)
{
	const struct deck_world *w = deck_world();
	struct sci_addr a;

	if (sci_peer_addr(peer, &a))
		return NULL;
	for (int r = 0; r < w->size; r++)
		if (w->ends[r].port.node == a.node && w->ends[r].port.id == a.id)
			deck_peer_set_rank(peer, r);
	return sci_peer_data(peer);
}

static inline bool message_set_status(struct deck_msg *msg, int error, const struct sci_status *st)
{
	void *known = st->peer ? sci_peer_data(st->peer) : NULL;

	if (st->peer && !known)
		known = peer_identify(st->peer);
	msg->at = 0;
	if (error && error != -EMSGSIZE) {
		msg->length = 0;
		msg->source = -1;
		return false;
	}
	msg->length = st->len < msg->size ? st->len : msg->size;
	msg->source = (int)(intptr_t)known - 1;
	return known == MBOX_CONTROL;
}

/*
 * Free the connections of ports that have disconnected. A retrieve reads the connection of its
 * message: as long as one is under way, keep the connections for the end of the last retrieve.
 * sci_peer_gone() returns connections without messages, so no later retrieve gets one of them.
 * Context: world.lock is held.
 */
void deck_mbox_free_gone(struct deck_mbox *box)
{
	while (box->gone || !sci_peer_gone(box->ep, &box->gone)) {
		atomic_store(&box->has_gone, true);
		if (atomic_load(&box->waiting))
			return;
		sci_disconnect(box->gone);
		box->gone = NULL;
	}
	atomic_store(&box->has_gone, false);
}

static inline void retrieve_begin(struct deck_mbox *box)
{
	atomic_fetch_add_explicit(&box->waiting, 1, memory_order_relaxed);
}

static void mbox_free_gone_later(struct deck_mbox *box)
{
	struct deck_world *w = deck_world();

	pthread_mutex_lock(&w->lock);
	deck_mbox_free_gone(box);
	pthread_mutex_unlock(&w->lock);
}

static inline void retrieve_done(struct deck_mbox *box)
{
	if (atomic_fetch_sub(&box->waiting, 1) == 1 && atomic_load(&box->has_gone))
		mbox_free_gone_later(box);
}

/* Send an empty message to @box on the service's connection, which is made at the first death. */
int deck_mbox_tell_death(struct deck_mbox *box)
{
	const struct sci_send s = { .flags = SCI_SEND_COPY };

	return sci_isendm(atomic_load_explicit(&box->control, memory_order_acquire), &s, NULL);
}

static void endpoints_progress(struct deck_world *w)
{
	struct deck_mbox *box, *n;

	sci_progress(w->port);
	pthread_mutex_lock(&w->lock);
	list_for_each_entry_safe(box, n, &w->boxes, link)
		sci_progress(box->ep);
	pthread_mutex_unlock(&w->lock);
}

/*
 * Return whether requests are under way on endpoints other than the one whose requests @own counts;
 * with @own NULL, on any endpoint.
 * Then a waiting thread must make progress on all endpoints: otherwise two processes that each
 * begin a long post and wait for each other's message would wait for ever.
 */
static inline bool endpoints_have_requests(const struct deck_world *w,
					   const _Atomic unsigned int *own)
{
	return atomic_load_explicit(&w->requests, memory_order_relaxed) !=
	       (own ? atomic_load_explicit(own, memory_order_relaxed) : 0);
}

/*
 * Make progress on all endpoints if requests are under way on endpoints other than the own one.
 * Return for how many ms the caller may wait until the next call. Another thread may begin a
 * request at any time, so that no wait may last longer.
 */
int deck_requests_poll(struct deck_world *w, const _Atomic unsigned int *own, unsigned int *looks)
{
	if (!endpoints_have_requests(w, own))
		return IDLE_MS;
	endpoints_progress(w);
	return ++*looks > LOOKS;
}

static int request_wait_progress(struct sci_req *req, const _Atomic unsigned int *own, int timeout,
				 struct sci_status *st)
{
	struct deck_world *w = deck_world();
	unsigned int looks = 0;
	int ret, ms = 0;

	do {
		ret = ms ? sci_wait(req, ms, st) : sci_test(req, st);
		if (ret != -EAGAIN && ret != -ETIMEDOUT)
			return ret;
		timeout -= timeout > 0 ? ms : 0;
		ms = deck_requests_poll(w, own, &looks);
		if (timeout > 0 && ms > timeout)
			ms = timeout;
	} while (timeout);
	return -EAGAIN;
}

/*
 * Wait for @req, and cancel it when the time is over.
 * Return: the error of @req; -ECANCELED: it was cancelled before a message arrived.
 */
static int request_wait_or_cancel(struct deck_mbox *box, struct sci_req *req, int timeout,
				  struct sci_status *st)
{
	int ret = request_wait_progress(req, &box->requests, timeout, st);

	if (ret != -EAGAIN && ret != -ETIMEDOUT)
		return ret;
	sci_cancel(req);
	return request_wait_progress(req, &box->requests, -1, st);
}

static int retrieve_wait(struct deck_mbox *box, struct deck_msg *msg, int timeout,
			 struct sci_status *st)
{
	struct sci_req *req;
	int ret = sci_irecv(box->ep, NULL, msg->buf, msg->size, &req);

	return ret ? ret : request_wait_or_cancel(box, req, timeout, st);
}

/*
 * Retrieve a message without waiting. @told: set to whether it is the service's report of a death.
 */
static int retrieve_try(struct deck_mbox *box, struct deck_msg *msg, bool *told)
{
	struct sci_status st = { 0 };
	int ret = retrieve_wait(box, msg, 0, &st);

	*told = message_set_status(msg, ret, &st);
	return ret;
}

/*
 * Retrieve a message after a death. If there is none, report the death. Send the empty messages of
 * unreported deaths again: other retrieves report these deaths.
 */
static int retrieve_after_death(struct deck_mbox *box, struct deck_msg *msg)
{
	unsigned int owed = 0;
	bool told;
	int ret;

	do {
		ret = retrieve_try(box, msg, &told);
		owed++;
	} while (told);
	if (ret == -EAGAIN || ret == -ECANCELED) {
		msg->length = 0;
		msg->source = -1;
		ret = -ECONNRESET;
		owed--;
	}
	while (owed--)
		deck_mbox_tell_death(box);
	return ret;
}

static int retrieve_end(struct deck_mbox *box, struct deck_msg *msg, int error,
			const struct sci_status *st)
{
	if (message_set_status(msg, error, st))
		error = retrieve_after_death(box, msg);
	retrieve_done(box);
	return error;
}

/* ---- the calls ---- */

/*
 * Poll the port after every PROGRESS_EVERY posts of more than a line. A port never receives, so no
 * other code polls it for its peers' answers. One of the answers attaches the ring for longer
 * messages.
 */
static void port_progress(struct deck_mbox *box, struct sci_peer *to)
{
	unsigned int n = atomic_fetch_add_explicit(&box->longer, 1, memory_order_relaxed);

	if (n % PROGRESS_EVERY == PROGRESS_EVERY - 1)
		sci_progress(sci_peer_ep(to));
}

static int post_wait(struct sci_peer *to, const struct deck_msg *msg)
{
	struct sci_req *req;
	int ret = sci_isend(to, msg->buf, msg->length, &req);

	return ret ? ret : request_wait_progress(req, &deck_world()->posts, -1, NULL);
}

__hot int deck_mbox_post(deck_mbox_t *box, deck_msg_t *msg)
{
	struct sci_peer *to;
	int ret;

	if (!box || !msg)
		return -EINVAL;
	if (msg->busy)
		return -EBUSY;
	ret = mbox_connection(box, &to);
	if (ret)
		return ret;
	if (msg->length > SCI_SHORT_MAX)
		port_progress(box, to);
	ret = sci_try_send(to, msg->buf, msg->length);
	return ret == -EAGAIN ? post_wait(to, msg) : ret;
}

/* Poll for the next message and retrieve it. Return false if a receive must be posted. */
static inline bool retrieve_quick(struct deck_mbox *box, struct deck_msg *msg,
				  struct sci_status *st)
{
	struct sci_try_recv t = { .buf = msg->buf, .size = msg->size };
	int ret = -EAGAIN;

	for (unsigned int looks = 0; ret == -EAGAIN && looks < QUICK_LOOKS; looks++)
		ret = sci_try_recvs(box->ep, NULL, &t, 1);
	*st = t.status;
	return ret == 1;
}

__hot int deck_mbox_retrv(deck_mbox_t *box, deck_msg_t *msg)
{
	struct sci_status st;
	int ret = 0;

	if (!box || !msg || !box->ep)
		return -EINVAL;
	if (msg->busy)
		return -EBUSY;
	retrieve_begin(box);
	if (!retrieve_quick(box, msg, &st))
		ret = retrieve_wait(box, msg, -1, &st);
	return retrieve_end(box, msg, ret, &st);
}

int deck_mbox_timedretrv(deck_mbox_t *box, deck_msg_t *msg, int timeout)
{
	struct sci_status st = { 0 };
	int ret;

	if (!box || !msg || !box->ep)
		return -EINVAL;
	if (msg->busy)
		return -EBUSY;
	retrieve_begin(box);
	ret = retrieve_wait(box, msg, timeout, &st);
	ret = retrieve_end(box, msg, ret, &st);
	if (ret == -ECANCELED)
		return timeout ? -ETIMEDOUT : -EAGAIN;
	return ret;
}

int deck_mbox_tryretrv(deck_mbox_t *box, deck_msg_t *msg)
{
	return deck_mbox_timedretrv(box, msg, 0);
}

/* ---- requests ---- */

static _Atomic unsigned int *request_get_counter(const struct deck_req *r)
{
	return r->retrieve ? &r->box->requests : &deck_world()->posts;
}

static int request_begin(struct deck_mbox *box, struct deck_msg *msg, bool retrieve,
			 struct deck_req **out)
{
	struct deck_req *r = malloc(sizeof(*r));
	struct sci_peer *to;
	int ret;

	if (!r)
		return -ENOMEM;
	*r = (struct deck_req){ .box = box, .msg = msg, .retrieve = retrieve };
	if (retrieve) {
		ret = sci_irecv(box->ep, NULL, msg->buf, msg->size, &r->req);
	} else {
		ret = mbox_connection(box, &to);
		ret = ret ? ret : sci_isend(to, msg->buf, msg->length, &r->req);
	}
	if (ret) {
		free(r);
		return ret;
	}
	if (retrieve)
		retrieve_begin(box);
	atomic_fetch_add_explicit(request_get_counter(r), 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&deck_world()->requests, 1, memory_order_relaxed);
	msg->busy = true;
	*out = r;
	return 0;
}

int deck_mbox_ipost(deck_mbox_t *box, deck_msg_t *msg, deck_req_t **req)
{
	if (!box || !msg || !req)
		return -EINVAL;
	return msg->busy ? -EBUSY : request_begin(box, msg, false, req);
}

int deck_mbox_iretrv(deck_mbox_t *box, deck_msg_t *msg, deck_req_t **req)
{
	if (!box || !msg || !req || !box->ep)
		return -EINVAL;
	return msg->busy ? -EBUSY : request_begin(box, msg, true, req);
}

int deck_wait(deck_req_t *req, int timeout)
{
	struct sci_status st = { 0 };
	int ret;

	if (!req)
		return -EINVAL;
	ret = request_wait_progress(req->req, request_get_counter(req), timeout, &st);
	if (ret == -EAGAIN || ret == -ETIMEDOUT)
		return timeout ? -ETIMEDOUT : -EAGAIN;
	atomic_fetch_sub_explicit(request_get_counter(req), 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&deck_world()->requests, 1, memory_order_relaxed);
	req->msg->busy = false;
	if (req->retrieve)
		ret = retrieve_end(req->box, req->msg, ret, &st);
	free(req);
	return ret;
}

int deck_cancel(deck_req_t *req)
{
	return req ? sci_cancel(req->req) : -EINVAL;
}

/* ---- timed posts ---- */

int deck_mbox_timedpost(deck_mbox_t *box, deck_msg_t *msg, int timeout)
{
	deck_req_t *r;
	int now, ret = deck_mbox_ipost(box, msg, &r);

	if (ret)
		return ret;
	ret = deck_wait(r, timeout);
	if (ret != -EAGAIN && ret != -ETIMEDOUT)
		return ret;
	if (!deck_cancel(r)) {
		deck_wait(r, -1);
		return ret;
	}
	now = deck_wait(r, 0);
	if (now != -EAGAIN)
		return now;
	/* the mail box may be reading the message until it answers: keep the request */
	msg->posted = r;
	return -EINPROGRESS;
}

int deck_mbox_trypost(deck_mbox_t *box, deck_msg_t *msg)
{
	return deck_mbox_timedpost(box, msg, 0);
}

int deck_msg_wait(deck_msg_t *msg, int timeout)
{
	int ret;

	if (!msg)
		return -EINVAL;
	if (!msg->posted)
		return -ENOENT;
	ret = deck_wait(msg->posted, timeout);
	if (ret != -EAGAIN && ret != -ETIMEDOUT)
		msg->posted = NULL;
	return ret;
}
