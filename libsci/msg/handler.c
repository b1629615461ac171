// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: handlers
 *
 * A message to a handler is a tagged message in a context of its own, 0xffffff80
 * and the handler's id, which no receive can name. It takes the ways of short, chained and
 * eager messages, and arrives in the order of its peer's messages. Where they would
 * look for a receive, progress calls the handler instead: a short message and one
 * that is all in a block are where they have come, one of several lines or blocks is
 * put together first. So no rendezvous, and a limit to its length.
 *
 * A handler runs with the endpoint locked. ep->lock.handler says which thread is in
 * one: calls that handlers may make do not lock again.
 */

#include "libsci/msg/endpoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Its address is that of one thread. */
static __thread char self;

bool msg_lock_enter(struct msg_lock *l)
{
	if (sci_load_relaxed(&l->handler) == &self)
		return false;
	msg_lock(l);
	return true;
}

/* Somebody has it for long: that may be this thread. */
void msg_lock_wait(struct msg_lock *l)
{
	if (sci_load_relaxed(&l->handler) == &self) {
		fputs("libsci: a handler has called a function that is not for handlers: see sci_handler_set()\n",
		      stderr);
		abort();
	}
	sched_yield();
}

/**
 * handler_run() - call the handler that a message is for
 * @context: is_handler()
 * @error: 0, or -EBADMSG
 */
void handler_run(struct sci_peer *p, uint32_t context, uint64_t tag,
		 const void *data, size_t len, int error)
{
	struct sci_ep *ep = p->ep;
	const struct msg_handler *h = &ep->handlers[handler_id(context)];
	const struct sci_handled m = {
		.peer = p, .tag = tag, .data = data, .len = len, .error = error,
	};

	/* the program has given up a peer that is leaving */
	if (!h->fn || (p->leaving && handler_id(context) >= SCI_HANDLER_LIBRARY)) {
		ep->stats.unhandled++;
		return;
	}
	p->known = true;
	sci_store_relaxed(&ep->lock.handler, (const void *)&self);
	h->fn(h->arg, &m);
	sci_store_relaxed(&ep->lock.handler, (const void *)NULL);
	ep->stats.handled++;
	/* what a wait looks for may be so by now */
	msg_changed(ep);
}

/* Where a message of several lines or blocks is put together; NULL: no memory. */
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

/* ---- the calls ---- */

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

	sci_store_relaxed(&u->ep->lock.handler, (const void *)&self);
	ret = u->fn(u->arg);
	sci_store_relaxed(&u->ep->lock.handler, (const void *)NULL);
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
