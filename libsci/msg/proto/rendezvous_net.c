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
 * A message with checksums uses blocks. So does a message into several pieces of memory.
 */

#include "libsci/msg/proto/proto.h"

#include <stdlib.h>

#define FILL_STEP	(64u << 10)	/* bytes that are sent in one piece */

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
	if (p->stream->target(p->outbox, t)) {
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

/* Put the next bytes. Return -EAGAIN if there is no room for more bytes. */
int target_fill(struct sci_req *req)
{
	const struct sci_stream_ops *stream = req->peer->stream;
	struct sci_rseg *to = req->peer->outbox;

	while (req->moved < req->want) {
		size_t left = req->want - req->moved, n;
		const void *src = msg_chunk(&req->at, &n);
		int ret;

		n = n < left ? n : left;
		n = n < FILL_STEP ? n : FILL_STEP;
		ret = stream->fill(to, req->segment, req->moved, src, n);
		if (ret)
			return ret;
		stream->flush(to);
		msg_skip(&req->at, n);
		req->moved += n;
	}
	return 0;
}
