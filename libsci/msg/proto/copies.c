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

/* Copy @len bytes of a strided transfer, after those already moved, to or from @bytes. */
static void blocks_copy(const struct sci_req *req, uint8_t *bytes, size_t len, bool to_bytes)
{
	struct iovec local;
	uint64_t offset;

	for (size_t done = 0; done < len; done += local.iov_len) {
		strided_piece(req, req->moved + done, &local, &offset);
		if (local.iov_len > len - done)
			local.iov_len = len - done;
		msg_copy(to_bytes ? bytes + done : local.iov_base,
			 to_bytes ? local.iov_base : bytes + done, local.iov_len);
	}
}

/* Return the next piece: contiguous bytes, or several blocks of a strided transfer. */
static struct copy_request piece_describe(const struct sci_req *req)
{
	const struct msg_strides *s = &req->strides;
	struct copy_request r = { .segment = req->segment };
	size_t left = req->len - req->moved, n;
	struct iovec local;

	if (req->form != FORM_STRIDED) {
		msg_chunk(&req->at, &n);
		r.offset = req->offset + req->moved;
	} else {
		n = strided_piece(req, req->moved, &local, &r.offset);
		r.stride = s->stride;
	}
	r.block = (uint32_t)(n < PIECE ? n : PIECE);
	r.len = r.block;
	if (req->form == FORM_STRIDED && n == s->len)
		r.len = (uint32_t)((left < PIECE ? left : PIECE) / n * n);
	if (!r.len)
		r.len = r.block;
	r.last = r.len == left;
	return r;
}

static int piece_ask(struct sci_req *req, const struct copy_request *r)
{
	struct iovec iov[2] = { { (void *)r, sizeof(*r) }, { NULL, r->len } };
	uint64_t tag = req->id | (r->last ? COPY_LAST : 0);
	uint8_t bytes[PIECE];
	size_t n;

	if (req->kind == MSG_READ)
		return handler_send(req->peer, HANDLER_READ, req->id, iov, 1);
	iov[1].iov_base = req->form == FORM_STRIDED ? bytes : (void *)msg_chunk(&req->at, &n);
	if (req->form == FORM_STRIDED)
		blocks_copy(req, bytes, r->len, true);
	return handler_send(req->peer, HANDLER_WRITE, tag, iov, 2);
}

static void piece_skip(struct sci_req *req, size_t len)
{
	if (req->form != FORM_STRIDED)
		msg_skip(&req->at, len);
	req->moved += len;
}

/*
 * Send the rest of a write, or request the next piece of a read. The owner answers the
 * last piece of a write, and each piece of a read: see onesided_copied(). A message that
 * is sent later arrives after all pieces. A write that has sent a piece does not end before the
 * answer to its last piece: an answer to an earlier piece must not find another request.
 *
 * Requests use at most half of the room for messages of this layer: the other half is for answers to
 * the peer.
 */
int copy_ask(struct sci_req *req)
{
	int ret;

	do {
		const struct copy_request r = piece_describe(req);

		if (req->peer->ours >= SCI_DETACHED_MAX)
			return -EAGAIN;
		ret = piece_ask(req, &r);
		req->want = r.len;
		if (ret == -ENOMEM && req->kind == MSG_WRITE && req->moved) {
			req->ep->retry = true;
			return -EAGAIN;
		}
		if (ret || req->kind == MSG_READ)
			break;
		piece_skip(req, r.len);
	} while (req->moved < req->len);
	return ret;
}

/* Take a piece of a read, which the owner has sent. */
void copy_take(struct sci_req *req, const void *data, size_t len)
{
	size_t n;

	if (req->form == FORM_STRIDED)
		blocks_copy(req, (void *)data, len, false);
	else
		msg_copy((void *)msg_chunk(&req->at, &n), data, len);
	piece_skip(req, len);
}

/* ---- the owner ---- */

/*
 * Copy the request of a message: the peer can still change a message in its ring. Return 0, or the
 * error of a message that is shorter than a request.
 */
static int request_take(const struct sci_handled *m, struct copy_request *r)
{
	*r = (struct copy_request){ 0 };
	if (m->error || m->len < sizeof(*r))
		return m->error ? m->error : -EPROTO;
	handled_copy(r, m->data, sizeof(*r));
	return 0;
}

/* Return the first block that a peer names, or NULL and an error. */
static uint8_t *piece_find(struct sci_ep *ep, const struct copy_request *r, int *error)
{
	struct msg_buf *b = buf_by_segment(ep, r->segment);
	uint64_t below, span;

	if (!msg_number_is_valid(r->segment) || !r->len || !r->block || r->len % r->block)
		*error = -EPROTO;
	else if (!b)
		*error = -ENOENT;
	else if (!stride_span(r->stride, r->block, r->len / r->block, &below, &span) ||
		 r->offset < below || r->offset - below > b->len ||
		 b->len - (r->offset - below) < span)
		*error = -ERANGE;
	return *error ? NULL : b->addr + r->offset;
}

/* Return the block that has byte @at of the piece. */
static uint8_t *block_find(uint8_t *first, const struct copy_request *r, uint32_t at)
{
	return (uint8_t *)((uintptr_t)first + at / r->block * r->stride);
}

static void copy_answer(const struct sci_handled *m, int status, const void *data, size_t len)
{
	struct copy_reply r = { .status = status };
	const struct iovec iov[2] = { { &r, sizeof(r) }, { (void *)data, len } };

	handler_answer(m->peer, HANDLER_COPY_REPLY, m->tag, iov, len ? 2 : 1);
}

static void copy_handle_write(void *arg, const struct sci_handled *m)
{
	const uint8_t *bytes = (const uint8_t *)m->data + sizeof(struct copy_request);
	struct copy_request r;
	int error = request_take(m, &r);
	uint8_t *to = NULL;

	if (!error && m->len - sizeof(r) != r.len)
		error = -EPROTO;
	if (!error)
		to = piece_find(arg, &r, &error);
	for (uint32_t at = 0; to && at < r.len; at += r.block)
		msg_copy(block_find(to, &r, at), bytes + at, r.block);
	if (error || r.last)
		copy_answer(m, error, NULL, 0);
}

static void copy_handle_read(void *arg, const struct sci_handled *m)
{
	struct copy_request r;
	uint8_t *from = NULL;
	uint8_t bytes[PIECE];
	int error = request_take(m, &r);

	if (!error && (m->len != sizeof(r) || r.len > PIECE))
		error = -EPROTO;
	if (!error)
		from = piece_find(arg, &r, &error);
	if (!from || r.block == r.len) {
		copy_answer(m, error, from, from ? r.len : 0);
		return;
	}
	for (uint32_t at = 0; at < r.len; at += r.block)
		msg_copy(bytes + at, block_find(from, &r, at), r.block);
	copy_answer(m, 0, bytes, r.len);
}

static void copy_handle_reply(void *arg, const struct sci_handled *m)
{
	const size_t head = sizeof(struct copy_reply);
	struct copy_reply r = { .status = -EPROTO };

	(void)arg;
	if (!m->error && m->len >= head)
		handled_copy(&r, m->data, head);
	if (m->error || m->len < head || r.status > 0)
		onesided_copied(m->peer, m->tag, m->error ? m->error : -EPROTO, NULL, 0);
	else
		onesided_copied(m->peer, m->tag, r.status, (const uint8_t *)m->data + head,
				m->len - head);
}

void copies_init(struct sci_ep *ep)
{
	ep->handlers[HANDLER_WRITE] = (struct msg_handler){ copy_handle_write, ep };
	ep->handlers[HANDLER_READ] = (struct msg_handler){ copy_handle_read, ep };
	ep->handlers[HANDLER_COPY_REPLY] = (struct msg_handler){ copy_handle_reply, ep };
}
