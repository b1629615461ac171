// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: one-sided reads and writes
 *
 * The CPU stores to exported memory of a peer, or loads from it, without work of the peer: SCI
 * adapters are made for this. When the request of a write completes, its bytes have arrived. Other
 * writes may overtake a write; a later message cannot. A read consists of loads, and without shared
 * memory the processor waits for each packet. So reads are for a few bytes, or for peers that
 * cannot send the bytes themselves.
 *
 * One-sided transfers and the transfers of messages do not wait for each other: push.c.
 *
 * Where caches are not coherent, and where there is no room for an import, the owner copies the
 * bytes: see copies.c. Between endpoints with two rails, the bytes of a long write are shared among
 * the rails: rails.c. A read is not: the processor waits for the answer to each load before the
 * next one, so a second rail would not save time.
 *
 * Atomics work in the same way where imports are coherent memory. Elsewhere the request
 * goes to the owner of the word, and completes with the owner's answer: see atomic.c. An
 * atomic may follow a write as its signal: when the bytes have arrived, the request of the
 * write becomes an atomic. An event may follow in the same way: see write_event.c.
 */

#include "libsci/msg/proto/proto.h"

#include <errno.h>

#define ASKED_MAX	(SCI_DETACHED_MAX / 2)	/* requests to the owner in flight */

static __always_inline int transfer_write(struct sci_req *req, struct msg_import *im)
{
	struct sci_peer *p = req->peer;
	int ret;

	ret = remote_store(p, im->seg, im->addr + req->offset, &req->at,
			   req->len, false);
	if (!ret && !p->lossy)
		p->fabric->ops->rseg.store_barrier(p->fabric, im->seg);
	return ret;
}

static int transfer_read(struct sci_req *req, struct msg_import *im)
{
	int ret = req_load(req, &req->at, im->addr + req->offset + req->moved,
			   req->len - req->moved);

	sci_load_barrier();
	return ret;
}

static int transfer_import(struct sci_req *req, struct msg_import **im)
{
	struct sci_peer *p = req->peer;
	int ret;

	*im = peer_import(p, req->segment, &ret);
	if (!*im && import_later(p, ret))
		return -EAGAIN;
	if (!*im && import_is_gone(ret))
		return import_missing(p, &req->doubt_ms);
	return *im ? 0 : ret;
}

/* Find the import that has @len bytes at the offset of @req. */
static __always_inline int transfer_reach(struct sci_req *req, uint64_t len,
					  struct msg_import **im)
{
	int ret = transfer_import(req, im);

	if (!*im)
		return ret;
	return req->offset > (*im)->size || (*im)->size - req->offset < len ?
		       -ERANGE : 0;
}

/* Send the request to the owner. Return -EINPROGRESS: the owner's reply completes the request. */
static int owner_ask(struct sci_req *req, int (*ask)(struct sci_req *req))
{
	int ret = req->peer->answers < ASKED_MAX ? 0 : -EAGAIN;

	if (!ret && req->id == UINT32_MAX)
		ret = req_id_get(req);
	ret = ret ? ret : ask(req);
	if (ret)
		return ret;
	req->peer->answers++;
	transfer_set(req, MSG_HANDSHAKE);
	return -EINPROGRESS;
}

/*
 * A write continues in this way also when the first rail works again: a piece that the owner has not
 * copied yet would arrive after the completion.
 */
static int transfer_by_owner(struct sci_req *req)
{
	req->by_owner |= req->kind == MSG_WRITE;
	return req->moved < req->len ? owner_ask(req, copy_ask) : 0;
}

/*
 * Move the bytes of a transfer through both rails or with the help of the owner, if necessary. Return
 * false if they go the plain way.
 */
static __attribute__((noinline)) bool transfer_detour(struct sci_req *req, bool strided, int *ret)
{
	struct sci_peer *p = req->peer;

	if (!req->by_owner && req->kind == MSG_WRITE && !strided && rails_reach(req, req->len)) {
		*ret = rails_write(req, req->len);
		req->by_owner = import_has_no_room(p, *ret);
		if (import_later(p, *ret))
			*ret = -EAGAIN;
		else if (import_is_gone(*ret))
			*ret = import_missing(p, &req->doubt_ms);
		if (!req->by_owner)
			return true;
	}
	if (!req->by_owner && !p->stale && p->line == &p->first)
		return false;
	*ret = transfer_by_owner(req);
	return true;
}

static __always_inline int transfer_move_bytes(struct sci_req *req, bool strided)
{
	struct sci_peer *p = req->peer;
	struct msg_import *im;
	int ret;

	if ((p->detour || req->by_owner) && transfer_detour(req, strided, &ret))
		return ret;
	ret = transfer_reach(req, strided ? req->strides.span : req->len, &im);
	if (import_has_no_room(p, ret)) {
		req->by_owner = true;
		return transfer_by_owner(req);
	}
	if (ret)
		return ret;
	if (p->stream)
		ret = req->kind == MSG_WRITE ? net_write(req, im) : net_read(req, im);
	else if (strided)
		ret = strided_move(req, im);
	else
		ret = req->kind == MSG_WRITE ? transfer_write(req, im) : transfer_read(req, im);
	/* the net reports by these errors that the segment or the peer has ended */
	if (ret && import_is_gone(ret))
		return import_missing(p, &req->doubt_ms);
	if (ret || import_is_there(p, im))
		return ret;
	/* the segment ended during the copy: start over if it can be imported again */
	req->at = (struct msg_cursor){ .iov = req->iov, .n = req->iovs };
	msg_skip(&req->at, 0);
	req->moved = 0;
	if (req->marked)
		transfer_set(req, MSG_MOVING);
	req->marked = false;
	return import_missing(p, &req->doubt_ms);
}

/* ---- atomics ---- */

static int word_change(struct sci_req *req)
{
	struct msg_import *im;
	uint64_t old;
	int ret = transfer_reach(req, req->len, &im);

	if (ret)
		return ret;
	old = atomic_apply(im->addr + req->offset, &req->word.rmw);
	/* the word belonged to a dead peer: the change had no effect */
	if (!import_is_there(req->peer, im))
		return import_missing(req->peer, &req->doubt_ms);
	atomic_result(req->word.before, &req->word.rmw, old);
	return 0;
}

static int word_ask(struct sci_req *req)
{
	return atomic_ask(req->peer, req->id, req->segment, req->offset, &req->word.rmw);
}

static int word_move(struct sci_req *req)
{
	struct sci_peer *p = req->peer;
	int ret = p->may_read ? word_change(req) : 0;

	return !p->may_read || import_has_no_room(p, ret) ? owner_ask(req, word_ask) : ret;
}

/* Turn a write whose bytes have arrived into the atomic or the event that follows. */
static void follower_begin(struct sci_req *req)
{
	req->kind = req->form == FORM_SIGNAL ? MSG_ATOMIC : MSG_WRITE_EVENT;
	if (req->state == MSG_ARRIVING)
		transfer_set(req, MSG_MOVING);
	if (req->kind != MSG_ATOMIC)
		return;
	req->ep->stats.writes++;
	req->segment = req->word.segment;
	req->offset = req->word.offset;
	req->len = atomic_size(&req->word.rmw);
	req->doubt_ms = 0;
}

/* Advance a transfer that is not plain. */
static __attribute__((noinline)) int transfer_move_formed(struct sci_req *req)
{
	int ret = 0;

	if (req->form == FORM_STRIDED)
		return transfer_move_bytes(req, true);
	if (req->form == FORM_EVENT && !req->peer->takes_events)
		return -EOPNOTSUPP;
	if (req->kind == MSG_WRITE) {
		ret = transfer_move_bytes(req, false);
		if (!ret)
			follower_begin(req);
	}
	if (ret)
		return ret;
	return req->kind == MSG_ATOMIC ? word_move(req) : event_send(req);
}

static int transfer_move(struct sci_req *req)
{
	if (req->form)
		return transfer_move_formed(req);
	return req->kind == MSG_ATOMIC ? word_move(req) : transfer_move_bytes(req, false);
}

static void transfer_finish(struct sci_req *req, int error)
{
	struct sci_ep_stats *stats = &req->ep->stats;

	if (!error)
		++*(req->kind == MSG_READ ? &stats->reads :
		    req->kind == MSG_ATOMIC ? &stats->atomics : &stats->writes);
	list_del(&req->link);
	req_done(req, error);
}

/* Advance a one-sided request. Return -EAGAIN if it has to wait. */
int onesided_push(struct sci_req *req)
{
	int ret = transfer_move(req);

	if (ret == -EAGAIN)
		return ret;
	if (ret != -EINPROGRESS)
		transfer_finish(req, ret);
	return 0;
}

/* Complete the atomic with this @id, if it exists, after the reply of the owner. */
void onesided_answer(struct sci_peer *p, uint64_t id, int error, uint64_t before)
{
	struct sci_req *req = id > UINT32_MAX ? NULL :
			      req_by_id(p, (uint32_t)id, MSG_ATOMIC);

	if (!req || req->state != MSG_HANDSHAKE)
		return;
	p->answers--;
	if (!error)
		atomic_result(req->word.before, &req->word.rmw, before);
	transfer_finish(req, error);
}

/*
 * Return the request that the owner's reply with @tag continues or ends. The first error of a write is
 * kept until the reply to its last piece.
 */
static struct sci_req *copied_find(struct sci_peer *p, uint64_t tag, int error)
{
	uint64_t id = tag & ~COPY_LAST;
	struct sci_req *req = NULL;

	if (id <= UINT32_MAX)
		req = req_by_id(p, (uint32_t)id, MSG_WRITE);
	if (req && !req->status.error)
		req->status.error = error;
	if (req && !(tag & COPY_LAST))
		return NULL;
	if (id <= UINT32_MAX && !req)
		req = req_by_id(p, (uint32_t)id, MSG_READ);
	return req && req->state == MSG_HANDSHAKE ? req : NULL;
}

/* Continue a request after the owner has copied a piece. @data: the bytes of a read */
void onesided_copied(struct sci_peer *p, uint64_t tag, int error, const void *data,
		     size_t len)
{
	struct sci_req *req = copied_find(p, tag, error);

	if (!req)
		return;
	p->answers--;
	if (req->status.error)
		error = req->status.error;
	if (!error && len != (req->kind == MSG_READ ? req->want : 0))
		error = -EPROTO;
	if (error) {
		transfer_finish(req, error);
		return;
	}
	if (req->kind == MSG_READ)
		copy_take(req, data, len);
	transfer_set(req, MSG_MOVING);
	peer_busy(p);
}
