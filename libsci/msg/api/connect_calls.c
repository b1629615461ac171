// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The calls that make connections or find them. */

#include "libsci/msg/api/api.h"

#include <errno.h>
#include <stdlib.h>

static int accept_test(void *arg)
{
	struct sci_ep *ep = arg;

	return list_empty(&ep->accept_queue) ? -EAGAIN : 0;
}

int sci_accept(struct sci_ep *ep, int timeout, struct sci_peer **peer)
{
	struct sci_peer *p;
	int ret;

	if (!ep || !peer)
		return -EINVAL;
	if (!ep_lock(ep))
		return -ENOTCONN;
	ret = msg_wait(ep, accept_test, ep, timeout);
	if (!ret) {
		p = container_of(ep->accept_queue.next, struct sci_peer, accept_link);
		list_del(&p->accept_link);
		p->known = true;
		*peer = p;
	}
	msg_unlock(&ep->lock);
	return ret;
}

int sci_peer_find(struct sci_ep *ep, const struct sci_addr *addr,
		  struct sci_peer **peer)
{
	struct sci_peer *p;

	if (!ep || !addr || !peer)
		return -EINVAL;
	if (!ep_lock(ep))
		return -ENOTCONN;
	p = peer_find_kept(ep, addr);
	if (p && p->state != PEER_UP)
		p = NULL;
	if (p) {
		peer_keep(p);
		*peer = p;
	}
	msg_unlock(&ep->lock);
	return p ? 0 : -ENOENT;
}

/* ---- dialing ---- */

/* Set the result for the thread in sci_connect(), which has the dial on its stack. */
static void dial_done_connect(struct msg_dial *d, struct sci_peer *p)
{
	d->p = p;
	msg_changed(d->ep);
}

static void dial_done_request(struct msg_dial *d, struct sci_peer *p)
{
	struct sci_req *req = d->owner;
	int ret = d->ret;

	free(d);
	req->dial = NULL;
	req->peer = p;
	req_done(req, ret);
}

static void dial_done_open(struct msg_dial *d, struct sci_peer *p)
{
	(void)p;
	free(d);
}

static int dial_test(void *arg)
{
	struct msg_dial *d = arg;

	return d->ret;
}

static int dial_wait(struct sci_ep *ep, const struct sci_addr *addr,
		     int timeout, struct sci_peer **out)
{
	struct msg_dial d;
	int ret;

	/* msg_wait() has the timeout, so the dial needs no time limit */
	dial_init(&d, ep, addr, -1);
	d.done = dial_done_connect;
	ret = dial_pick(&d);
	if (ret)
		return ret;
	ret = dial_start(&d);
	if (ret == -EAGAIN)
		ret = msg_wait(ep, dial_test, &d, timeout);
	if (d.ret == -EAGAIN)
		d.p = dial_end(&d, ret);
	if (!d.ret)
		*out = d.p;
	return d.ret;
}

static bool addr_is_valid(const struct sci_addr *addr)
{
	return addr && addr->id && addr->id <= SCI_EP_ID_MAX;
}

int sci_connect(struct sci_ep *ep, const struct sci_addr *addr, int timeout,
		struct sci_peer **peer)
{
	int ret;

	if (!ep || !addr_is_valid(addr) || !peer)
		return -EINVAL;
	if (!ep_lock(ep))
		return -ENOTCONN;
	ret = dial_wait(ep, addr, timeout, peer);
	msg_unlock(&ep->lock);
	return ret;
}

static int request_connect(struct sci_ep *ep, const struct sci_addr *addr,
			   int timeout, struct sci_req **out)
{
	struct sci_req *req = req_new(ep, MSG_CONNECT);
	struct msg_dial *d = calloc(1, sizeof(*d));
	int ret = -ENOMEM;

	if (!req || !d)
		goto err;
	dial_init(d, ep, addr, timeout);
	d->done = dial_done_request;
	d->owner = req;
	req->dial = d;
	req->state = MSG_DIALING;
	ret = dial_pick(d);
	if (ret)
		goto err;
	ret = dial_start(d);
	if (ret != -EAGAIN)
		dial_done(d, ret);
	/* a sleeping thread has computed its timeout without this dial */
	wake_all(ep);
	*out = req;
	return 0;

err:
	free(d);
	if (req)
		req_free(req);
	return ret;
}

/* Cancel the dial of @req. The caller ends the request. */
void connect_cancel(struct sci_req *req)
{
	dial_end(req->dial, -ECANCELED);
	free(req->dial);
	req->dial = NULL;
}

int sci_iconnect(struct sci_ep *ep, const struct sci_addr *addr, int timeout,
		 struct sci_req **req)
{
	int ret;

	if (!ep || !addr_is_valid(addr) || !req)
		return -EINVAL;
	if (!ep_lock(ep))
		return -ENOTCONN;
	ret = request_connect(ep, addr, timeout, req);
	msg_unlock(&ep->lock);
	return ret;
}

static int peer_open(struct sci_ep *ep, const struct sci_addr *addr,
		     int timeout, struct sci_peer **out)
{
	struct sci_peer *p = peer_find_kept(ep, addr);
	struct msg_dial *d;
	int ret;

	if (p && p->state != PEER_DOWN && (p->state == PEER_UP || dial_is_open(p))) {
		peer_keep(p);
		*out = p;
		return 0;
	}
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	dial_init(d, ep, addr, timeout);
	d->done = dial_done_open;
	d->open = true;
	ret = dial_pick(d);
	if (ret) {
		free(d);
		return ret;
	}
	*out = d->p;
	peer_keep(d->p);
	ret = dial_start(d);
	if (ret != -EAGAIN)
		dial_done(d, ret);
	wake_all(ep);
	return 0;
}

int sci_peer_open(struct sci_ep *ep, const struct sci_addr *addr, int timeout,
		  struct sci_peer **peer)
{
	int ret;

	if (!ep || !addr_is_valid(addr) || !peer)
		return -EINVAL;
	if (!ep_lock(ep))
		return -ENOTCONN;
	ret = peer_open(ep, addr, timeout, peer);
	msg_unlock(&ep->lock);
	return ret;
}
