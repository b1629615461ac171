// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: writes with an immediate
 *
 * When the bytes of such a write have arrived, the initiator sends a message to a handler of this
 * layer. The tag of the message is the immediate, and the message has the length of the write. The
 * handler adds an event to the completion queue of the target.
 *
 * At most SCI_WRITE_EVENTS_MAX events of a peer are in the queue, so that a peer cannot fill the
 * target's memory. The initiator counts the events that the target has not returned. When the
 * target's program has taken half of this number, the target returns them in one message.
 */

#include "libsci/msg/proto/proto.h"

#include <errno.h>

/* Send the event of a write. Return -EAGAIN if too many events wait at the peer. */
int event_send(struct sci_req *req)
{
	const struct write_event e = { .len = req->len };
	const struct iovec iov = { (void *)&e, sizeof(e) };
	struct sci_peer *p = req->peer;
	int ret = p->events_sent < SCI_WRITE_EVENTS_MAX ? 0 : -EAGAIN;

	ret = ret ? ret : handler_send(p, HANDLER_WRITE_EVENT, req->imm, &iov, 1);
	p->events_sent += !ret;
	return ret;
}

/* Return the events of @p that the program has taken, if there are many of them. */
void events_return(struct sci_peer *p)
{
	const struct iovec none = { NULL, 0 };

	if (p->events_taken < SCI_WRITE_EVENTS_MAX / 2 || p->state != PEER_UP)
		return;
	p->events_queued -= p->events_taken;
	handler_answer(p, HANDLER_EVENTS_TAKEN, p->events_taken, &none, 1);
	p->events_taken = 0;
}

static void event_handle(void *arg, const struct sci_handled *m)
{
	const struct write_event *e = m->data;
	struct sci_peer *p = m->peer;
	struct sci_ep *ep = arg;
	struct sci_req *req;

	if (m->error || m->len != sizeof(*e) || !ep->write_events ||
	    p->events_queued >= SCI_WRITE_EVENTS_MAX) {
		peer_down(p, m->error ? m->error : -EPROTO);
		return;
	}
	p->events_queued++;
	if (p->leaving) {
		p->events_taken++;
		events_return(p);
		return;
	}
	req = req_new(ep, MSG_EVENT);
	if (!req) {
		peer_down(p, -ENOMEM);
		return;
	}
	req->queued = true;
	req->peer = p;
	p->known = true;
	req->status.flags = SCI_STATUS_WRITTEN | SCI_STATUS_IMM;
	req->status.len = e->len;
	req->status.imm = m->tag;
	req_done(req, 0);
}

static void event_handle_taken(void *arg, const struct sci_handled *m)
{
	struct sci_peer *p = m->peer;

	(void)arg;
	if (m->error || m->len || !m->tag || m->tag > p->events_sent) {
		peer_down(p, m->error ? m->error : -EPROTO);
		return;
	}
	p->events_sent -= (unsigned int)m->tag;
	peer_busy(p);
}

void events_init(struct sci_ep *ep)
{
	ep->handlers[HANDLER_WRITE_EVENT] = (struct msg_handler){ event_handle, ep };
	ep->handlers[HANDLER_EVENTS_TAKEN] = (struct msg_handler){ event_handle_taken, ep };
}
