// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: handlers
 *
 * A message to a handler is a tagged message with the context 0xffffff80 + id of the
 * handler. No receive can name such a context. The message travels as a short, chained or
 * eager message and keeps the order of its peer's messages. Progress calls the handler
 * instead of looking for a receive. A short message, and one in a single block, is
 * passed where it lies in the ring. Several lines or blocks are put together first. There
 * is no rendezvous, so the length is limited (SCI_HANDLER_MAX).
 *
 * A handler runs with the endpoint locked. ep->lock.handler tells which thread runs it:
 * calls that handlers may make do not lock again.
 */

#include "libsci/msg/endpoint.h"

#include <errno.h>
#include <stdlib.h>

/**
 * handler_run() - call the handler of a message
 * @context: is_handler() is true for it
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

	/* after sci_peer_close(), the program must not see the peer any more */
	if (!h->fn || (p->leaving && handler_id(context) >= SCI_HANDLER_LIBRARY)) {
		ep->stats.unhandled++;
		return;
	}
	p->known = true;
	msg_lock_handler(&ep->lock, true);
	h->fn(h->arg, &m);
	msg_lock_handler(&ep->lock, false);
	ep->stats.handled++;
	/* the handler may have made the condition of a wait true */
	msg_changed(ep);
}

/* Allocate memory to put a message of several lines or blocks together. NULL: no memory. */
struct sci_msg *handler_message(struct sci_peer *p, uint32_t context,
				uint64_t tag, size_t len)
{
	struct sci_msg *msg = calloc(1, sizeof(*msg));

	if (!msg)
		return NULL;
	msg->data = len <= sizeof(msg->small) ? msg->small : malloc(len);
	if (!msg->data) {
		free(msg);
		return NULL;
	}
	list_init(&msg->link);
	msg->ep = p->ep;
	msg->peer = p;
	msg->len = len;
	msg->match.tag = tag;
	msg->match.context = context;
	return msg;
}

/* ---- calls of the program ---- */

int sci_handler_set(struct sci_ep *ep, unsigned int id, sci_handler_fn fn, void *arg)
{
	bool locked;

	if (!ep || id < SCI_HANDLER_LIBRARY || id >= SCI_HANDLERS)
		return -EINVAL;
	if (!msg_usable(ep))
		return -ENOTCONN;
	locked = msg_lock_enter(&ep->lock);
	ep->handlers[id] = (struct msg_handler){ fn, arg };
	if (locked)
		msg_unlock(&ep->lock);
	return 0;
}

struct until {
	struct sci_ep *ep;
	int (*fn)(void *arg);
	void *arg;
};

static int look_until(void *arg)
{
	struct until *u = arg;
	int ret;

	msg_lock_handler(&u->ep->lock, true);
	ret = u->fn(u->arg);
	msg_lock_handler(&u->ep->lock, false);
	return ret;
}

int sci_wait_until(struct sci_ep *ep, int (*fn)(void *arg), void *arg, int timeout)
{
	struct until u = { .ep = ep, .fn = fn, .arg = arg };
	int ret;

	if (!ep || !fn)
		return -EINVAL;
	if (!msg_usable(ep))
		return -ENOTCONN;
	msg_lock(&ep->lock);
	ret = msg_wait(ep, look_until, &u, timeout);
	msg_unlock(&ep->lock);
	return ret;
}
