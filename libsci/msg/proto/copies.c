// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: one-sided transfers by the owner
 *
 * Without coherent caches, a peer must not store into memory that its owner uses, too. The owner's
 * cache may contain a modified copy of the line and write it back over the new bytes, and the owner
 * may load old bytes from its cache. So the peer sends requests, as for atomics, and the owner's
 * CPU copies the bytes in a message handler, piece by piece. A peer without room for an import
 * sends the same requests.
 */

#include "libsci/msg/proto/proto.h"

#include <errno.h>

#define PIECE	(SCI_HANDLER_MAX - sizeof(struct copy_request))

_Static_assert(sizeof(struct copy_reply) <= sizeof(struct copy_request), "a piece fits");

static int piece_ask(struct sci_req *req, size_t n)
{
	bool write = req->kind == MSG_WRITE;
	struct copy_request r = {
		.offset = req->offset + req->moved, .segment = req->segment,
		.len = (uint32_t)n, .last = req->moved + n == req->len,
	};
	const struct iovec iov[2] = {
		{ &r, sizeof(r) }, { (void *)msg_chunk(&req->at, &n), r.len },
	};

	return handler_send(req->peer, write ? HANDLER_WRITE : HANDLER_READ, req->id, iov,
			    write ? 2 : 1);
}

/*
 * Send the rest of a write, or request the next piece of a read. The owner answers the
 * last piece of a write, and each piece of a read: see onesided_copied(). A message that
 * is sent later arrives after all pieces.
 */
int copy_ask(struct sci_req *req)
{
	size_t n;
	int ret;

	do {
		msg_chunk(&req->at, &n);
		n = n < PIECE ? n : PIECE;
		ret = piece_ask(req, n);
		req->want = n;
		if (ret || req->kind == MSG_READ)
			break;
		msg_skip(&req->at, n);
		req->moved += n;
	} while (req->moved < req->len);
	return ret;
}

static uint8_t *piece_find(struct sci_ep *ep, const struct copy_request *r, int *error)
{
	struct msg_buf *b = buf_by_segment(ep, r->segment);

	*error = !msg_number_is_valid(r->segment) ? -EPROTO : !b ? -ENOENT :
		 r->offset > b->len || b->len - r->offset < r->len ? -ERANGE : 0;
	return *error ? NULL : b->addr + r->offset;
}

static void copy_answer(const struct sci_handled *m, int status, const void *data, size_t len)
{
	struct copy_reply r = { .status = status };
	const struct iovec iov[2] = { { &r, sizeof(r) }, { (void *)data, len } };

	handler_answer(m->peer, HANDLER_COPY_REPLY, m->tag, iov, len ? 2 : 1);
}

static void copy_handle_write(void *arg, const struct sci_handled *m)
{
	const struct copy_request *r = m->data;
	int error = m->error;
	uint8_t *to = NULL;

	if (!error && (m->len < sizeof(*r) || m->len - sizeof(*r) != r->len))
		error = -EPROTO;
	if (!error)
		to = piece_find(arg, r, &error);
	if (to)
		msg_copy(to, r + 1, r->len);
	if (error || r->last)
		copy_answer(m, error, NULL, 0);
}

static void copy_handle_read(void *arg, const struct sci_handled *m)
{
	const struct copy_request *r = m->data;
	const uint8_t *from = NULL;
	int error = m->error;

	if (!error && (m->len != sizeof(*r) || r->len > PIECE))
		error = -EPROTO;
	if (!error)
		from = piece_find(arg, r, &error);
	copy_answer(m, error, from, from ? r->len : 0);
}

static void copy_handle_reply(void *arg, const struct sci_handled *m)
{
	const struct copy_reply *r = m->data;

	(void)arg;
	if (m->error || m->len < sizeof(*r) || r->status > 0)
		onesided_copied(m->peer, m->tag, m->error ? m->error : -EPROTO, NULL, 0);
	else
		onesided_copied(m->peer, m->tag, r->status, r + 1, m->len - sizeof(*r));
}

void copies_init(struct sci_ep *ep)
{
	ep->handlers[HANDLER_WRITE] = (struct msg_handler){ copy_handle_write, ep };
	ep->handlers[HANDLER_READ] = (struct msg_handler){ copy_handle_read, ep };
	ep->handlers[HANDLER_COPY_REPLY] = (struct msg_handler){ copy_handle_reply, ep };
}
