// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: one-sided reads and writes
 *
 * Stores to exported memory of a peer's, and loads from it, without its doing:
 * what these adapters are made for. A write has arrived when its request
 * completes: other writes may overtake it, a later message may not. Reads are
 * loads, for which the processor waits, a packet at a time where memory is not
 * shared: for a few bytes, or for those who cannot be asked.
 *
 * They are in peer->sending with the transfers of messages, and do not wait for
 * those.
 */

#include "libsci/msg/endpoint.h"

#include <errno.h>

#define READ_STEP	(64u << 10)	/* bytes that are checked together */
#define READ_TRIES	64u		/* before something else is done first */

int sci_buf_key(struct sci_ep *ep, const void *addr, size_t len,
		struct sci_key *key)
{
	struct msg_buf *b;

	if (!ep || !addr || !len || !key)
		return -EINVAL;
	if (!msg_usable(ep))
		return -ENOTCONN;
	msg_lock(&ep->lock);
	b = buf_find(ep, addr, len);
	if (b)
		*key = (struct sci_key){
			.segment = ep->ops->lseg.id(b->seg),
			.offset = (uint64_t)((const uint8_t *)addr - b->addr),
			.len = len,
		};
	msg_unlock(&ep->lock);
	return b ? 0 : -EINVAL;
}

/* ---- moving bytes ---- */

static int write_all(struct sci_req *req, struct msg_import *im)
{
	struct sci_ep *ep = req->ep;
	int ret;

	ret = remote_store(ep, im->seg, im->addr + req->offset, &req->at,
			   req->len, false);
	if (!ret && !ep->lossy)
		ep->ops->rseg.store_barrier(ep->fabric, im->seg);
	return ret;
}

static void load_piece(struct sci_ep *ep, struct msg_cursor *at,
		       const volatile uint8_t *src, size_t len)
{
	while (len) {
		size_t n;
		void *dst = (void *)msg_chunk(at, &n);

		n = n < len ? n : len;
		sci_pio_read(dst, src, n, ep->link->map);
		msg_skip(at, n);
		src += n;
		len -= n;
	}
}

/* What a lost packet should have brought is not there: load it again. */
static int read_all(struct sci_req *req, struct msg_import *im)
{
	struct sci_ep *ep = req->ep;
	unsigned int tries = 0;

	while (req->moved < req->len) {
		size_t left = req->len - req->moved;
		size_t n = left < READ_STEP ? left : READ_STEP;
		struct msg_cursor before = req->at;
		uint32_t errors = sci_link_errors(ep->link);

		load_piece(ep, &req->at, im->addr + req->offset + req->moved,
			   n);
		sci_load_barrier();
		if (!ep->lossy || errors == sci_link_errors(ep->link)) {
			req->moved += n;
			continue;
		}
		req->at = before;
		if (tries++ == READ_TRIES)
			return -EAGAIN;
	}
	return 0;
}

static int move(struct sci_req *req)
{
	struct sci_peer *p = req->peer;
	struct msg_import *im;
	int ret;

	im = peer_import(p, req->segment, &ret);
	if (!im && import_later(p, ret))
		return -EAGAIN;
	if (!im && import_is_gone(ret))
		return import_missing(p, &req->doubt_ms);
	if (!im)
		return ret;
	if (req->offset > im->size || im->size - req->offset < req->len)
		return -ERANGE;
	ret = req->kind == MSG_WRITE ? write_all(req, im) : read_all(req, im);
	if (ret || import_is_there(p, im))
		return ret;
	/* it went away meanwhile: all of it again, if it comes back */
	req->at = (struct msg_cursor){ .iov = req->iov, .n = req->iovs };
	msg_skip(&req->at, 0);
	req->moved = 0;
	return import_missing(p, &req->doubt_ms);
}

/* -EAGAIN: later. */
int onesided_push(struct sci_req *req)
{
	int ret = move(req);

	if (ret == -EAGAIN)
		return ret;
	if (!ret && req->kind == MSG_WRITE)
		req->ep->stats.writes++;
	else if (!ret)
		req->ep->stats.reads++;
	list_del(&req->link);
	req_done(req, ret);
	return 0;
}

/* ---- the calls ---- */

static int start(struct sci_peer *p, enum msg_kind kind,
		 const struct sci_key *key, uint64_t offset,
		 const struct iovec *iov, size_t n, struct sci_req **out)
{
	struct sci_req *req;
	int ret;

	if (p->state == PEER_DOWN)
		return p->error;
	req = req_new(p->ep, kind);
	if (!req)
		return -ENOMEM;
	ret = req_iov(req, iov, n);
	if (ret) {
		req_free(req);
		return ret;
	}
	req->peer = p;
	req->segment = key->segment;
	req->offset = key->offset + offset;
	req->status.len = req->len;
	req->state = MSG_MOVING;
	list_add_tail(&req->link, &p->sending);
	*out = req;
	/* one that is not there yet gets it when it is */
	if (p->state == PEER_CONNECTING)
		return 0;
	peer_busy(p);
	send_push(p);
	return 0;
}

static int onesided(struct sci_peer *peer, enum msg_kind kind,
		    const struct sci_key *key, uint64_t offset,
		    const struct iovec *iov, size_t n, struct sci_req **req)
{
	int ret;

	if (!peer || !key || (!iov && n) || n > SCI_IOV_MAX || !req ||
	    !msg_iov_good(iov, n))
		return -EINVAL;
	if (key->reserved || key->offset + key->len < key->offset)
		return -EINVAL;
	if (offset > key->len || key->len - offset < msg_iov_len(iov, n))
		return -ERANGE;
	if (!msg_usable(peer->ep))
		return -ENOTCONN;
	msg_lock(&peer->ep->lock);
	ret = start(peer, kind, key, offset, iov, n, req);
	msg_unlock(&peer->ep->lock);
	return ret;
}

int sci_iwritev(struct sci_peer *peer, const struct sci_key *key,
		uint64_t offset, const struct iovec *iov, size_t n,
		struct sci_req **req)
{
	return onesided(peer, MSG_WRITE, key, offset, iov, n, req);
}

int sci_ireadv(struct sci_peer *peer, const struct sci_key *key,
	       uint64_t offset, const struct iovec *iov, size_t n,
	       struct sci_req **req)
{
	return onesided(peer, MSG_READ, key, offset, iov, n, req);
}

int sci_write(struct sci_peer *peer, const struct sci_key *key,
	      uint64_t offset, const void *buf, size_t len)
{
	const struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct sci_req *req = NULL;
	int ret = sci_iwritev(peer, key, offset, &iov, 1, &req);

	return ret ? ret : sci_wait(req, -1, NULL);
}

int sci_read(struct sci_peer *peer, const struct sci_key *key,
	     uint64_t offset, void *buf, size_t len)
{
	const struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct sci_req *req = NULL;
	int ret = sci_ireadv(peer, key, offset, &iov, 1, &req);

	return ret ? ret : sci_wait(req, -1, NULL);
}
