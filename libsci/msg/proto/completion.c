// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The queue of completed requests. A request contains its link, so the queue has no limit. */

#include "libsci/msg/proto/proto.h"

#include <errno.h>

/* Count a part of a receive of several messages, see many.c. The last part returns the buffer. */
static void recv_part_ended(struct sci_req *part)
{
	struct sci_req *whole = part->whole;

	if (!--whole->parts && whole->state == MSG_DONE)
		part->status.flags |= SCI_STATUS_RETURNED;
}

void completion_queue(struct sci_req *req)
{
	struct sci_ep *ep = req->ep;

	if (req->kind == MSG_RECV && req->whole)
		recv_part_ended(req);
	list_add_tail(&req->link, &ep->completed);
	wake_all(ep);
}

/*
 * Remove @p from the completions that the program has not taken, and drop @p's events: the program
 * has closed @p, or @p is about to be freed.
 */
void completions_forget(struct sci_peer *p)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &p->ep->completed) {
		struct sci_req *req = container_of(pos, struct sci_req, link);

		if (req->status.peer != p)
			continue;
		req->status.peer = NULL;
		if (req->kind != MSG_EVENT)
			continue;
		if (req->status.flags & SCI_STATUS_WRITTEN)
			p->events_taken++;
		list_del(pos);
		req_free(req);
	}
}

/* ---- events of peers ---- */

/* Allocate the events of @p in advance, so that no event is lost when there is no memory. */
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

/* Queue the event "connected" when messages can be sent in both directions. */
void peer_came(struct sci_peer *p)
{
	if (p->came && !p->leaving && p->state == PEER_UP && p->imported)
		event_queue(p, &p->came, SCI_STATUS_PEER_UP, 0);
}

/* Queue the event "disconnected" if the program has a pointer to @p or its "connected" event. */
void peer_went(struct sci_peer *p, int error)
{
	if (p->went && !p->leaving && (p->known || !p->came))
		event_queue(p, &p->went, SCI_STATUS_PEER_DOWN, error);
}
