// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The queue of completed requests: they are in no other, so it needs no room. */

#include "libsci/msg/endpoint.h"

#include <errno.h>
#include <limits.h>

/* @req has completed. */
void completion_queue(struct sci_req *req)
{
	struct sci_ep *ep = req->ep;

	list_add_tail(&req->link, &ep->completed);
	wake_all(ep);
}

/* @p is about to be freed: completions that are not taken yet do not name it. */
void completions_forget(const struct sci_peer *p)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &p->ep->completed) {
		struct sci_req *req = container_of(pos, struct sci_req, link);

		if (req->status.peer == p)
			req->status.peer = NULL;
	}
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

/* -EAGAIN: there are none. */
static int take(struct sci_ep *ep, struct sci_completion *done, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n && !list_empty(&ep->completed); i++) {
		struct list *l = list_pop(&ep->completed);
		struct sci_req *req = container_of(l, struct sci_req, link);

		done[i].data = req->data;
		done[i].status = req->status;
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
	ret = ret ? ret : take(ep, done, n);
	msg_unlock(&ep->lock);
	return ret;
}
