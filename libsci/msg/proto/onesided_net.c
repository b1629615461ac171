// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* One-sided reads and writes with a peer on the net: the net fabric transfers the bytes. */

#include "libsci/msg/proto/proto.h"

#include <errno.h>
#include <stdlib.h>

#define NET_STEP	(64u << 10)	/* bytes of a write that are sent in one piece */

/* Send a write. Return -EAGAIN until the peer confirms that all bytes have arrived. */
int net_write(struct sci_req *req, struct msg_import *im)
{
	const struct sci_stream_ops *stream = req->peer->stream;

	while (req->moved < req->len) {
		size_t n = req->len - req->moved;
		int ret;

		n = n < NET_STEP ? n : NET_STEP;
		ret = net_store(req->peer, im->seg, im->addr + req->offset + req->moved,
				&req->at, n);
		stream->flush(im->seg);
		if (ret)
			return ret;
		req->moved += n;
	}
	if (!req->marked)
		req->addr = stream->mark(im->seg);
	req->marked = true;
	return stream->arrived(im->seg, req->addr);
}

static int piece_read(struct sci_req *req, struct msg_import *im)
{
	const struct sci_stream_ops *stream = req->peer->stream;
	struct sci_stream_get *g = req->get;
	size_t n;
	int ret;

	if (!g) {
		g = calloc(1, sizeof(*g));
		if (!g)
			return -ENOMEM;
		g->dst = (void *)msg_chunk(&req->at, &n);
		g->len = n < SCI_STREAM_GET ? n : SCI_STREAM_GET;
		ret = stream->get(im->seg, req->offset + req->moved, g);
		if (!ret)
			req->get = g;
		else
			free(g);
		return ret ? ret : -EAGAIN;
	}
	if (!atomic_load_explicit(&g->done, memory_order_acquire))
		return -EAGAIN;
	ret = g->ret;
	if (!ret) {
		msg_skip(&req->at, g->len);
		req->moved += g->len;
	}
	free(g);
	req->get = NULL;
	return ret;
}

int net_read(struct sci_req *req, struct msg_import *im)
{
	int ret = 0;

	while (!ret && req->moved < req->len)
		ret = piece_read(req, im);
	return ret;
}

/* Cancel the outstanding part of a read whose request ends. */
void net_read_forget(struct sci_req *req)
{
	req->peer->stream->get_cancel(req->peer->fabric, req->get);
	free(req->get);
	req->get = NULL;
}
