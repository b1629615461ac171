// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* One-sided reads and writes with a peer on the net: the net fabric transfers the bytes. */

#include "libsci/msg/proto/proto.h"

#include <errno.h>
#include <stdlib.h>

#define NET_STEP	(256u << 10)	/* bytes of a write that are sent in one piece */
#define READS		16u		/* pieces of a read that are requested at a time */

/* The pieces of a read that have not arrived, oldest first. */
struct net_reads {
	size_t asked;			/* bytes that were requested or have arrived */
	unsigned int first, n;
	struct sci_stream_get gets[READS];
};

/* Find the piece @at bytes after the start of @req. Return its length. */
static size_t piece_next(const struct sci_req *req, size_t at, struct iovec *local,
			 uint64_t *offset)
{
	if (req->form == FORM_STRIDED)
		return strided_piece(req, at, local, offset);
	local->iov_base = (void *)msg_chunk(&req->at, &local->iov_len);
	*offset = req->offset + at;
	return local->iov_len;
}

/* ---- writes ---- */

/*
 * Send the bytes of a write. @error: of the last piece_lend(). Return -EAGAIN until the peer confirms
 * that all bytes have arrived.
 */
static int net_confirm(struct sci_req *req, struct msg_import *im, int error)
{
	const struct sci_stream_ops *stream = req->peer->stream;
	int ret;

	if (!req->marked && !error)
		req->addr = stream->mark(im->seg);
	if (!req->marked)
		stream->flush(im->seg);
	if (error)
		return error;
	if (!req->marked)
		transfer_set(req, MSG_ARRIVING);
	req->marked = true;
	ret = stream->arrived(im->seg, req->addr);
	if (!ret)
		req->lent = false;
	return ret;
}

/* Lend the next bytes, which are in one piece. */
static int piece_lend(struct sci_req *req, struct msg_import *im)
{
	struct iovec local;
	uint64_t offset;
	size_t n = piece_next(req, req->moved, &local, &offset);
	int ret;

	n = n < NET_STEP ? n : NET_STEP;
	req->lent = true;
	ret = req->peer->stream->lend(im->seg, im->addr + offset, local.iov_base, n, req);
	if (ret)
		return ret;
	req->moved += n;
	if (req->form != FORM_STRIDED)
		msg_skip(&req->at, n);
	return 0;
}

int net_write(struct sci_req *req, struct msg_import *im)
{
	int ret = 0;

	while (!ret && req->moved < req->len)
		ret = piece_lend(req, im);
	return net_confirm(req, im, ret);
}

/* ---- reads ---- */

/* Request pieces, up to READS at a time. */
static int pieces_ask(struct sci_req *req, struct msg_import *im)
{
	struct net_reads *r = req->reads;
	struct iovec local;
	uint64_t offset;
	int ret;

	while (r->asked < req->len && r->n < READS) {
		struct sci_stream_get *g = &r->gets[(r->first + r->n) % READS];
		size_t n = piece_next(req, r->asked, &local, &offset);

		g->dst = local.iov_base;
		g->len = n < SCI_STREAM_GET ? n : SCI_STREAM_GET;
		ret = req->peer->stream->get(im->seg, offset, g);
		if (ret)
			return r->n && ret == -EAGAIN ? 0 : ret;
		r->n++;
		r->asked += g->len;
		if (req->form != FORM_STRIDED)
			msg_skip(&req->at, g->len);
	}
	return 0;
}

/* Count the oldest pieces that have arrived. */
static int pieces_take(struct sci_req *req)
{
	struct net_reads *r = req->reads;

	while (r->n) {
		struct sci_stream_get *g = &r->gets[r->first];

		if (!atomic_load_explicit(&g->done, memory_order_acquire))
			return 0;
		if (g->ret)
			return g->ret;
		req->moved += g->len;
		r->first = (r->first + 1) % READS;
		r->n--;
	}
	return 0;
}

/* Cancel the reads in flight. A later net_read() continues after the pieces that have arrived. */
static void read_forget(struct sci_req *req)
{
	struct net_reads *r = req->reads;

	for (; r->n; r->n--) {
		req->peer->stream->get_cancel(req->peer->fabric, &r->gets[r->first]);
		r->first = (r->first + 1) % READS;
	}
	free(r);
	req->reads = NULL;
	req->at = (struct msg_cursor){ .iov = req->iov, .n = req->iovs };
	msg_skip(&req->at, req->moved);
}

/* Make the fabric stop its accesses to the program's memory. */
void net_take_back(struct sci_req *req)
{
	req->lent = false;
	if (req->kind == MSG_READ)
		read_forget(req);
	else if (req->kind == MSG_RECV)
		target_end(req);
	else
		req->peer->stream->take_back(req->peer->fabric, req);
}

int net_read(struct sci_req *req, struct msg_import *im)
{
	int ret;

	if (!req->reads) {
		req->reads = calloc(1, sizeof(*req->reads));
		if (!req->reads)
			return -ENOMEM;
		req->reads->asked = req->moved;
		req->lent = true;
	}
	ret = pieces_take(req);
	ret = ret ? ret : pieces_ask(req, im);
	if (!ret && req->moved < req->len)
		return -EAGAIN;
	if (ret != -EAGAIN)
		net_take_back(req);
	return ret;
}
