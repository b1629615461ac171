// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: strided transfers
 *
 * A strided transfer moves blocks of one length that begin at regular distances, in local memory and
 * in the peer's memory. It is one request, with one confirmation for all blocks of a write. Its
 * position is the number of bytes moved: the place of a block follows from it.
 */

#include "libsci/msg/proto/proto.h"

#include <errno.h>

#define STORE_STEP	(64u << 10)	/* bytes of a block that are stored in one piece */

/**
 * stride_span() - get the memory that the blocks cover
 * @stride: distance of two blocks, which wraps: a large number is a negative distance
 * @len, @n: length and number of blocks, both at least 1
 * @below: is set to the number of bytes below the first block
 * @span: is set to the number of bytes from the lowest to the end of the highest block
 *
 * Return: false if the numbers overflow.
 */
bool stride_span(uint64_t stride, size_t len, size_t n, uint64_t *below, uint64_t *span)
{
	bool down = (int64_t)stride < 0;
	uint64_t all;

	if (__builtin_mul_overflow(down ? -stride : stride, n - 1, &all) ||
	    __builtin_add_overflow(all, len, span))
		return false;
	*below = down ? all : 0;
	return true;
}

/*
 * Find the piece of a strided transfer after the first @at bytes: the rest of a block. Return its
 * length, which is also in @local. @offset: is set to its offset in the segment
 */
size_t strided_piece(const struct sci_req *req, size_t at, struct iovec *local,
		     uint64_t *offset)
{
	const struct msg_strides *s = &req->strides;
	size_t block = at / s->len, in = at % s->len;

	local->iov_base = (void *)((uintptr_t)s->buf + block * s->buf_stride + in);
	local->iov_len = s->len - in;
	*offset = s->first + block * s->stride + in;
	return local->iov_len;
}

static int blocks_store(struct sci_req *req, struct msg_import *im)
{
	struct iovec local;
	struct msg_cursor at;
	uint64_t offset;
	size_t n;
	int ret;

	while (req->moved < req->len) {
		n = strided_piece(req, req->moved, &local, &offset);
		n = n < STORE_STEP ? n : STORE_STEP;
		at = (struct msg_cursor){ .iov = &local, .n = 1 };
		ret = remote_store(req->peer, im->seg, im->addr + offset, &at, n, false);
		if (ret)
			return ret;
		req->moved += n;
	}
	return 0;
}

static int blocks_load(struct sci_req *req, struct msg_import *im)
{
	struct iovec local;
	struct msg_cursor at;
	uint64_t offset;
	int ret = 0;

	while (!ret && req->moved < req->len) {
		strided_piece(req, req->moved, &local, &offset);
		at = (struct msg_cursor){ .iov = &local, .n = 1 };
		ret = req_load(req, &at, im->addr + offset, local.iov_len);
	}
	sci_load_barrier();
	return ret;
}

/* Advance a strided transfer. Return -EAGAIN if it has to wait. */
int strided_move(struct sci_req *req, struct msg_import *im)
{
	struct sci_peer *p = req->peer;
	int ret;

	if (req->kind == MSG_READ)
		return blocks_load(req, im);
	ret = blocks_store(req, im);
	if (!ret && !p->lossy)
		p->fabric->ops->rseg.store_barrier(p->fabric, im->seg);
	return ret;
}
