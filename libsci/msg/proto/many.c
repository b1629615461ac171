// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: one buffer for several messages
 *
 * A receive of sci_irecv_many() keeps its place in the match list. Each accepted message gets a
 * separate request, a part, for the next bytes of the buffer. So no such message can match a
 * receive that was posted later. When the buffer is full, the receive leaves the match list, and
 * the part that completes last returns the buffer to the program.
 */

#include "libsci/msg/proto/proto.h"

/* Return a request for a message of @len bytes, for the first free bytes of the buffer. */
static struct sci_req *many_take(struct sci_req *whole, size_t len)
{
	struct iovec *left = whole->iov, iov = *left;
	struct sci_req *part = whole->part;

	iov.iov_len = len < iov.iov_len ? len : iov.iov_len;
	left->iov_base = (char *)left->iov_base + iov.iov_len;
	left->iov_len -= iov.iov_len;
	req_iov(part, &iov, 1);
	part->queued = true;
	part->data = whole->data;
	part->whole = whole;
	whole->parts++;
	/* without memory for the next part, this part is the last one */
	whole->part = left->iov_len && left->iov_len >= whole->min ?
			      req_new(whole->ep, MSG_RECV) : NULL;
	if (!whole->part)
		whole->state = MSG_DONE;
	return part;
}

/* End a receive that is not in the match list. An unfinished part returns the buffer. */
static void many_end(struct sci_req *whole, int error)
{
	req_free(whole->part);
	whole->part = NULL;
	whole->state = MSG_DONE;
	whole->status.flags = SCI_STATUS_RETURNED;
	if (!whole->parts)
		req_done(whole, error);
}

/* Return the receive for a message of @p, or NULL. */
struct sci_req *recv_for(struct sci_peer *p, uint32_t context, uint64_t tag, size_t len)
{
	struct sci_match_recv *r = sci_match_arrive(&p->ep->match, p, tag, context);
	struct sci_req *req, *part;

	if (!r)
		return NULL;
	req = container_of(r, struct sci_req, match);
	if (req->kind != MSG_RECV_MANY)
		return req;
	part = many_take(req, len);
	if (!req->part)
		sci_match_recv_remove(&p->ep->match, r);
	return part;
}

/* End a posted receive with @error. */
void recv_withdraw(struct sci_req *req, int error)
{
	sci_match_recv_remove(&req->ep->match, &req->match);
	if (req->kind == MSG_RECV_MANY)
		many_end(req, error);
	else
		req_done(req, error);
}

/* Receive the messages that have arrived, and post the rest of the buffer. */
void recv_many_start(struct sci_req *whole)
{
	struct sci_match *m = &whole->ep->match;
	struct sci_match_msg *found;

	while (whole->part && (found = sci_match_find(m, &whole->match))) {
		struct sci_msg *msg = container_of(found, struct sci_msg, match);

		sci_match_msg_remove(m, found);
		recv_message(many_take(whole, msg->len), msg);
	}
	if (!whole->part)
		return;
	if (whole->peer && whole->peer->state == PEER_DOWN) {
		many_end(whole, whole->peer->error);
		return;
	}
	whole->state = MSG_POSTED;
	sci_match_post(m, &whole->match);
	held_back_wake(whole->ep);
}
