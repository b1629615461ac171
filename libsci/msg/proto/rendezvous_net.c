// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: rendezvous on the net
 *
 * The receiver makes its buffer a target of the net fabric, and the CTS names the target. So the
 * bytes go from the socket to the buffer. The sender puts the bytes and then the FIN into one
 * stream, so they have arrived before the FIN. The target ends with the receive: the fabric drops
 * the bytes that arrive later.
 *
 * The sender lends its memory to the fabric, which copies nothing. So the send completes when the
 * fabric of the receiver has acknowledged the bytes, or with the connection. Then the fabric gives
 * the memory back.
 *
 * A message with checksums uses blocks. So does a message into several pieces of memory.
 */

#include "libsci/msg/proto/proto.h"

#include <stdlib.h>

#define FILL_STEP	(256u << 10)	/* bytes of a frame */

/* Make the buffer of the receive @req a target, and name it in @cts. Return false if it is none. */
bool target_offer(struct sci_req *req, struct line_cts *cts)
{
	struct sci_peer *p = req->peer;
	struct sci_stream_target *t;
	const void *addr;
	size_t n;

	if (!p->stream || req->rts_flags & RTS_CRC)
		return false;
	addr = msg_chunk(&req->at, &n);
	if (n < req->want)
		return false;
	t = malloc(sizeof(*t));
	if (!t)
		return false;
	t->addr = (uint8_t *)addr;
	t->len = req->want;
	if (p->stream->target(p->first.outbox, t)) {
		free(t);
		return false;
	}
	cts->mode = CTS_TARGET;
	cts->segment = t->id;
	req->mode = CTS_TARGET;
	req->target = t;
	req->lent = true;
	return true;
}

void target_end(struct sci_req *req)
{
	req->peer->stream->target_end(req->peer->fabric, req->target);
	free(req->target);
}

/* Lend the next bytes to the fabric, and mark the last ones. Return -EAGAIN if it has no room. */
int target_fill(struct sci_req *req)
{
	const struct sci_stream_ops *stream = req->peer->stream;
	struct sci_rseg *to = req->peer->first.outbox;
	int ret = 0;

	req->lent = true;
	while (!ret && req->moved < req->want) {
		size_t left = req->want - req->moved, n;
		const void *src = msg_chunk(&req->at, &n);

		n = n < left ? n : left;
		n = n < FILL_STEP ? n : FILL_STEP;
		ret = stream->fill(to, req->segment, req->moved, src, n, req);
		if (ret)
			break;
		msg_skip(&req->at, n);
		req->moved += n;
	}
	if (ret)
		stream->flush(to);
	else
		req->addr = stream->mark(to);
	return ret;
}

/* Return 0 if all bytes have arrived: the loan has ended. Otherwise return -EAGAIN or -ENOTCONN. */
int target_arrived(struct sci_req *req)
{
	int ret = req->peer->stream->arrived(req->peer->first.outbox, req->addr);

	if (!ret)
		req->lent = false;
	return ret;
}
