// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: the protocols and the life of a peer
 *
 * The files in conn/ have no requests and messages: conn/peer.c calls the functions of this file
 * when a peer connects and disconnects.
 */

#include "libsci/msg/proto/proto.h"

static void reqs_fail(struct list *queue, int error)
{
	struct list *l;

	while ((l = list_pop(queue)))
		req_done(container_of(l, struct sci_req, link), error);
}

static void posted_fail(struct sci_peer *p, int error)
{
	struct sci_match_recv *r;

	while ((r = sci_match_recv_of(&p->ep->match, p)))
		recv_withdraw(container_of(r, struct sci_req, match), error);
}

static void chain_fail(struct sci_peer *p, int error)
{
	struct sci_msg *msg = p->chain_msg;

	if (p->chain_req)
		req_done(p->chain_req, error);
	if (msg && context_is_handler(msg->match.context)) {
		msg_unexpected_free(msg);
	} else if (msg) {
		msg->error = error;
		if (msg->req)
			recv_message(msg->req, msg);
	}
	p->chain_req = NULL;
	p->chain_msg = NULL;
	p->chain_left = 0;
	p->chain_error = 0;
}

static void matched_fail(struct sci_peer *p, int error)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &p->matched) {
		struct sci_msg *msg = container_of(pos, struct sci_msg, link);

		if (msg->rendezvous || msg->have < msg->len)
			msg->error = error;
	}
}

/* Remove the unexpected messages that can never be completed: no receive may match them. */
static void peer_drop_incomplete(struct sci_peer *p)
{
	struct sci_match *m = &p->ep->match;
	struct list *pos, *n;

	list_for_each_safe(pos, n, &m->msgs.order) {
		struct sci_match_msg *mm = container_of(pos,
							struct sci_match_msg,
							order);
		struct sci_msg *msg = container_of(mm, struct sci_msg, match);

		if (msg->peer != p ||
		    (!msg->rendezvous && msg->have == msg->len))
			continue;
		sci_match_msg_remove(m, mm);
		msg_unexpected_free(msg);
	}
}

/* Complete all requests that depend on @p, which is DOWN, with @error. */
static void life_handle_end(struct sci_peer *p, int error)
{
	/* the status of a receive that fails now names @p */
	p->known |= p->chain_req || !list_empty(&p->receiving);
	chain_fail(p, error);
	matched_fail(p, error);
	peer_drop_incomplete(p);
	/* the peer may have received the messages before it left */
	transfers_arrive(p);
	reqs_fail(&p->sendq, error);
	reqs_fail(&p->sending, error);
	reqs_fail(&p->moving, error);
	reqs_fail(&p->onesided, error);
	reqs_fail(&p->arriving, error);
	reqs_fail(&p->receiving, error);
	p->importing = 0;
	posted_fail(p, error);
	peer_went(p, error);
}

/* Return whether the program may still receive messages of @p. */
static bool life_holds(struct sci_peer *p)
{
	return sci_match_msg_of(&p->ep->match, p);
}

/* Free the unexpected messages of @p. Remove @p from the messages that the program has taken. */
static void life_dropped(struct sci_peer *p)
{
	struct sci_match *m = &p->ep->match;
	struct sci_match_msg *mm;
	struct list *l;

	while ((mm = sci_match_msg_of(m, p))) {
		sci_match_msg_remove(m, mm);
		msg_unexpected_free(container_of(mm, struct sci_msg, match));
	}
	while ((l = list_pop(&p->matched))) {
		struct sci_msg *msg = container_of(l, struct sci_msg, link);

		list_add_tail(&msg->link, &p->ep->peerless);
		msg->peer = NULL;
	}
	completions_forget(p);
}

const struct msg_upper msg_protocols = {
	.created = peer_events_init,
	.freed = peer_events_fini,
	.poll = receive_poll,
	.came = peer_came,
	.ended = life_handle_end,
	.holds = life_holds,
	.dropped = life_dropped,
};
