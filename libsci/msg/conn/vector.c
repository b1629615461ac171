// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Copies through vectors. */

#include "libsci/msg/conn/conn.h"

#include <limits.h>

/* The variant of msg_iov_good() for any number of pieces. */
bool msg_iov_good_many(const struct iovec *iov, size_t n)
{
	size_t left = SSIZE_MAX;

	for (; n; n--, iov++) {
		if ((!iov->iov_base && iov->iov_len) || iov->iov_len > left)
			return false;
		left -= iov->iov_len;
	}
	return true;
}

size_t msg_iov_len(const struct iovec *iov, size_t n)
{
	size_t len = 0;

	while (n--)
		len += iov++->iov_len;
	return len;
}

void msg_gather(struct msg_cursor *at, void *dst, size_t len)
{
	while (len) {
		size_t n;
		const void *src = msg_chunk(at, &n);

		n = n < len ? n : len;
		memcpy(dst, src, n);
		msg_skip(at, n);
		dst = (char *)dst + n;
		len -= n;
	}
}

void msg_scatter(struct msg_cursor *at, const void *src, size_t len)
{
	while (len && at->n) {
		size_t n;
		void *dst = (void *)msg_chunk(at, &n);

		n = n < len ? n : len;
		msg_copy(dst, src, n);
		msg_skip(at, n);
		src = (const char *)src + n;
		len -= n;
	}
}
