// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * The queue of completed requests. A request is linked by itself, so the queue has no
 * limit.
 */

#include "libsci/msg/endpoint.h"

#include <errno.h>
#include <limits.h>

/* Append @req, which has completed. */
void completion_queue(struct sci_req *req)
{
	struct sci_ep *ep = req->ep;

	list_add_tail(&req->link, &ep->completed);
	wake_all(ep);
}

/*
 * Remove @p from the completions that the program has not taken, and drop @p's events: it
 * is about to be freed.
 */
void completions_forget(const struct sci_peer *p)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &p->ep->completed) {
		struct sci_req *req = container_of(pos, struct sci_req, link);

		if (req->status.peer != p)
			continue;
		req->status.peer = NULL;
		if (req->kind == MSG_EVENT) {
			list_del(pos);
			req_free(req);
		}
	}
}

/* ---- events of peers ---- */

/* Allocate the events of @p in advance, so that no event is lost for want of memory. */
int peer_events_init(struct sci_peer *p)
{
	if (!p->ep->peer_events)
		return 0;
	p->came = req_new(p->ep, MSG_EVENT);
	p->went = req_new(p->ep, MSG_EVENT);
	if (p->came && p->went)
		return 0;
	peer_events_fini(p);
	return -ENOMEM;
}

void peer_events_fini(struct sci_peer *p)
{
	if (p->came)
		req_free(p->came);
	if (p->went)
		req_free(p->went);
	p->came = NULL;
	p->went = NULL;
}

static void event_queue(struct sci_peer *p, struct sci_req **event, uint32_t flag,
			int error)
{
	struct sci_req *req = *event;

	*event = NULL;
	req->queued = true;
	req->peer = p;
	req->status.flags = flag;
	req_done(req, error);
}

/* Queue the event "connected": messages can go both ways. */
void peer_came(struct sci_peer *p)
{
	if (p->came && !p->leaving && p->state == PEER_UP && p->imported)
		event_queue(p, &p->came, SCI_STATUS_PEER_UP, 0);
}

/* Queue the event "disconnected", unless the program never learned of @p. */
void peer_went(struct sci_peer *p, int error)
{
	if (p->went && !p->leaving && (p->known || !p->came))
		event_queue(p, &p->went, SCI_STATUS_PEER_DOWN, error);
}

int sci_req_queue(struct sci_req *req, void *data)
{
	struct sci_ep *ep;
	int ret = 0;

	if (!req)
		return -EINVAL;
	ep = req->ep;
	if (!msg_usable(ep))
		return -ENOTCONN;
	msg_lock(&ep->lock);
	if (req->queued) {
		ret = -EINVAL;
	} else {
		req->queued = true;
		req->data = data;
		if (req->state == MSG_DONE)
			completion_queue(req);
	}
	msg_unlock(&ep->lock);
	return ret;
}

static int look_completed(void *arg)
{
	struct sci_ep *ep = arg;

	return list_empty(&ep->completed) ? -EAGAIN : 0;
}

/* Take up to @n completions. Return their number, or -EAGAIN if there are none. */
static int completions_take(struct sci_ep *ep, struct sci_completion *done, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n && !list_empty(&ep->completed); i++) {
		struct list *l = list_pop(&ep->completed);
		struct sci_req *req = container_of(l, struct sci_req, link);

		done[i].data = req->data;
		done[i].status = req->status;
		if (req->kind == MSG_EVENT) {
			done[i].data = sci_load_acquire(&req->peer->data);
			req->peer->known = true;
		}
		req_free(req);
	}
	return i ? (int)i : -EAGAIN;
}

int sci_completions(struct sci_ep *ep, int timeout, struct sci_completion *done,
		    unsigned int n)
{
	int ret = 0;

	if (!ep || !done || !n || n > INT_MAX)
		return -EINVAL;
	if (!msg_usable(ep))
		return -ENOTCONN;
	msg_lock(&ep->lock);
	if (list_empty(&ep->completed))
		msg_progress(ep);
	if (list_empty(&ep->completed))
		ret = timeout ? msg_wait(ep, look_completed, ep, timeout) :
				-EAGAIN;
	ret = ret ? ret : completions_take(ep, done, n);
	msg_unlock(&ep->lock);
	return ret;
}
