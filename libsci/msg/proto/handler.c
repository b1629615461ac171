// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: handlers
 *
 * A message to a handler is a tagged message with the context 0xffffff80 + id of the handler. No
 * receive can name such a context. The message is sent as a short, chained or eager message, in
 * order with the other messages of its peer. Progress calls the handler instead of matching a
 * receive. The bytes of a short message, or of a single block, are passed in place in the ring.
 * Several lines or blocks are assembled first. There is no rendezvous, so the length is limited
 * (SCI_HANDLER_MAX).
 *
 * A handler runs with the endpoint locked. ep->lock.handler identifies the thread that runs a
 * handler: calls that handlers may make do not lock again.
 */

#include "libsci/msg/proto/send.h"

#include <errno.h>

/**
 * handler_run() - call the handler of a message
 * @context: a context for which context_is_handler() is true
 * @error: 0, or -EBADMSG for a wrong checksum
 */
void handler_run(struct sci_peer *p, uint32_t context, uint64_t tag,
		 const void *data, size_t len, int error)
{
	struct sci_ep *ep = p->ep;
	const struct msg_handler *h = &ep->handlers[handler_id(context)];
	const struct sci_handled m = {
		.peer = p, .tag = tag, .data = data, .len = len, .error = error,
	};

	/* after sci_peer_close(), the program must not get a pointer to the peer any more */
	if (!h->fn || (p->leaving && handler_id(context) >= SCI_HANDLER_LIBRARY)) {
		ep->stats.unhandled++;
		p->dropped = p->leaving;
		return;
	}
	/* the handlers of this layer give no pointer to the program: event_handle() says so itself */
	p->known |= handler_id(context) >= SCI_HANDLER_LIBRARY;
	msg_lock_handler(&ep->lock, true);
	h->fn(h->arg, &m);
	msg_lock_handler(&ep->lock, false);
	ep->stats.handled++;
	/* the handler may have made the condition of a wait true */
	msg_changed(ep);
}

/* ---- messages to handlers ---- */

/* Queue a copy of the message to be sent later. The caller may reuse its buffers. */
static int handler_request(struct sci_peer *peer, uint32_t context, uint64_t tag,
			   const struct iovec *iov, size_t n)
{
	/* programs cannot use up the room for messages of this layer, of which half is for answers */
	bool ours = handler_id(context) < SCI_HANDLER_LIBRARY;
	struct sci_req *req;
	int ret;

	if (ours ? peer->ours >= 2 * SCI_DETACHED_MAX : peer->detached >= SCI_DETACHED_MAX)
		return -EAGAIN;
	req = req_new(peer->ep, MSG_SEND);
	if (!req)
		return -ENOMEM;
	ret = req_iov(req, iov, n);
	send_describe(req, peer, true, context, tag);
	ret = ret ? ret : copy_rest(req);
	req->detached = true;
	req->ours = ours;
	peer->detached++;
	peer->ours += ours;
	ret = ret ? ret : send_start(req);
	if (ret) {
		peer->detached--;
		peer->ours -= ours;
		req_free(req);
	}
	return ret;
}

/* Send a message to a handler, now or later. Context: the endpoint is locked. */
int handler_send(struct sci_peer *peer, unsigned int id, uint64_t tag,
		 const struct iovec *iov, size_t n)
{
	uint32_t context = MSG_HANDLERS + id;

	if (n == 1 && send_goes_whole(peer, true, context, tag, NULL, iov->iov_base,
				      iov->iov_len))
		return 0;
	return handler_request(peer, context, tag, iov, n);
}

/*
 * Send an answer for which the peer waits. If that fails, close the connection: there is no memory,
 * or the peer has sent more requests than this layer sends.
 */
void handler_answer(struct sci_peer *peer, unsigned int id, uint64_t tag,
		    const struct iovec *iov, size_t n)
{
	int ret = handler_send(peer, id, tag, iov, n);

	if (ret)
		peer_down(peer, ret == -EAGAIN ? -EPROTO : ret);
}
