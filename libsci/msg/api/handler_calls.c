// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The calls that set handlers, send messages to handlers or wait for their effects. */

#include "libsci/msg/api/api.h"

#include <errno.h>

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

static int condition_test(void *arg)
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
	if (!ep_lock(ep))
		return -ENOTCONN;
	ret = msg_wait(ep, condition_test, &u, timeout);
	msg_unlock(&ep->lock);
	return ret;
}

int sci_handler_sendv(struct sci_peer *peer, unsigned int id, uint64_t tag,
		      const struct iovec *iov, size_t n)
{
	bool locked;
	int ret;

	if (!peer || id < SCI_HANDLER_LIBRARY || id >= SCI_HANDLERS || (!iov && n) ||
	    n > SCI_IOV_MAX || !msg_iov_good(iov, n))
		return -EINVAL;
	if (msg_iov_len(iov, n) > SCI_HANDLER_MAX)
		return -EMSGSIZE;
	if (!msg_usable(peer->ep))
		return -ENOTCONN;
	locked = msg_lock_enter(&peer->ep->lock);
	ret = handler_send(peer, id, tag, iov, n);
	if (locked)
		msg_unlock(&peer->ep->lock);
	return ret;
}

int sci_handler_send(struct sci_peer *peer, unsigned int id, uint64_t tag,
		     const void *buf, size_t len)
{
	const struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return sci_handler_sendv(peer, id, tag, &iov, 1);
}
