// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The log of a link: the bytes that the other side has not acknowledged. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/fabric/net/net.h"

#define LOG_FIRST	(64u << 10)
/* Limit of unacknowledged bytes. More of them break the protocol. */
#define LOG_MAX		(16u << 20)

static size_t log_at(const struct net_log *log, uint64_t position)
{
	return position & (log->size - 1);
}

/* Copy bytes into the ring, where they may wrap around. */
static void log_copy_in(struct net_log *log, uint64_t at, const uint8_t *data, size_t len)
{
	size_t first = log->size - log_at(log, at);

	first = first < len ? first : len;
	memcpy(log->buf + log_at(log, at), data, first);
	memcpy(log->buf, data + first, len - first);
}

static int log_grow(struct net_log *log, size_t need)
{
	struct net_log old = *log;
	size_t size = log->size ? log->size : LOG_FIRST;
	uint64_t at = log->acked;

	while (size < need)
		size *= 2;
	if (size == old.size)
		return 0;
	if (size > LOG_MAX)
		return -ENOBUFS;
	log->buf = malloc(size);
	if (!log->buf) {
		log->buf = old.buf;
		return -ENOMEM;
	}
	log->size = size;
	while (at < log->written) {
		size_t n = old.size - log_at(&old, at);

		n = n < log->written - at ? n : (size_t)(log->written - at);
		log_copy_in(log, at, old.buf + log_at(&old, at), n);
		at += n;
	}
	free(old.buf);
	return 0;
}

int net_log_add(struct net_log *log, const void *data, size_t len)
{
	int ret = log_grow(log, (size_t)(log->written - log->acked) + len);

	if (ret)
		return ret;
	log_copy_in(log, log->written, data, len);
	log->written += len;
	return 0;
}

/* Change bytes that have not been sent. */
void net_log_change(struct net_log *log, uint64_t at, const void *data, size_t len)
{
	log_copy_in(log, at, data, len);
}

/* Free the acknowledged bytes before @position. Return false if @position was never written. */
bool net_log_acked(struct net_log *log, uint64_t position)
{
	if (position > log->written)
		return false;
	/* a position below an earlier one is harmless */
	if (position > log->acked)
		log->acked = position;
	if (log->sent < log->acked)
		log->sent = log->acked;
	return true;
}

/* Find the unsent bytes: up to two pieces. Return the number of pieces. */
size_t net_log_unsent(struct net_log *log, struct iovec iov[2])
{
	size_t left = (size_t)(log->written - log->sent), first;

	if (!left)
		return 0;
	first = log->size - log_at(log, log->sent);
	first = first < left ? first : left;
	iov[0] = (struct iovec){ log->buf + log_at(log, log->sent), first };
	iov[1] = (struct iovec){ log->buf, left - first };
	return left > first ? 2 : 1;
}

void net_log_free(struct net_log *log)
{
	free(log->buf);
	*log = (struct net_log){ 0 };
}
