// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: the log of a link
 *
 * The log has the bytes that the other side has not acknowledged. Most bytes are in a ring. Long
 * runs of bytes stay where the program has them: the program lends them to the log, and an extent
 * refers to them. So the position of a byte in the ring is its position in the stream, less the
 * number of lent bytes before it.
 *
 * A request of the program lends the bytes of a message or a write, and a segment those of an
 * answer to a read. When the owner ends before the bytes are acknowledged, it takes them back: the
 * extent gets a copy.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/fabric/net/net.h"

#define LOG_FIRST	(64u << 10)
/* Limit of unacknowledged bytes in the ring. More of them break the protocol. */
#define LOG_MAX		(16u << 20)

static struct net_extent *log_extent(struct net_log *log, uint32_t i)
{
	return &log->extents[i % NET_EXTENTS];
}

/*
 * Find the byte at @position of the stream, or its place if it is not written yet. *@len: the
 * number of bytes up to the end of the extent, or up to the next extent. Return the extent, or NULL
 * for bytes in the ring: their position in the ring is *@in_ring.
 */
static struct net_extent *log_find(struct net_log *log, uint64_t position, size_t *len,
				   uint64_t *in_ring)
{
	uint64_t end = log->written, lent = log->lent;

	for (uint32_t i = log->extents_end; i != log->extents_first; i--) {
		struct net_extent *e = log_extent(log, i - 1);

		if (position >= e->at + e->len)
			break;
		if (position >= e->at) {
			*len = (size_t)(e->at + e->len - position);
			return e;
		}
		end = e->at;
		lent = e->lent_before;
	}
	*len = (size_t)(end - position);
	*in_ring = position - lent;
	return NULL;
}

/* Return the position in the ring of the oldest unacknowledged byte. */
static uint64_t log_first(struct net_log *log)
{
	uint64_t in_ring = 0;
	size_t len;
	const struct net_extent *e = log_find(log, log->acked, &len, &in_ring);

	return e ? e->at - e->lent_before : in_ring;
}

static size_t log_at(const struct net_log *log, uint64_t in_ring)
{
	return in_ring & (log->size - 1);
}

/* Copy bytes into the ring, where they may wrap around. */
static void log_copy_in(struct net_log *log, uint64_t in_ring, const uint8_t *data, size_t len)
{
	size_t first = log->size - log_at(log, in_ring);

	first = first < len ? first : len;
	memcpy(log->buf + log_at(log, in_ring), data, first);
	memcpy(log->buf, data + first, len - first);
}

/* Make room for @len bytes behind those from @first to @end of the ring. */
static int log_grow(struct net_log *log, uint64_t first, uint64_t end, size_t len)
{
	const struct net_log old = *log;
	size_t size = log->size ? log->size : LOG_FIRST;

	while (size < end - first + len)
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
	while (first < end) {
		size_t n = old.size - log_at(&old, first);

		n = n < end - first ? n : (size_t)(end - first);
		log_copy_in(log, first, old.buf + log_at(&old, first), n);
		first += n;
	}
	free(old.buf);
	return 0;
}

int net_log_add(struct net_log *log, const void *data, size_t len)
{
	uint64_t end = log->written - log->lent;
	int ret = log_grow(log, log_first(log), end, len);

	if (ret)
		return ret;
	log_copy_in(log, end, data, len);
	log->written += len;
	return 0;
}

/* Change bytes of the ring that have not been sent. */
void net_log_change(struct net_log *log, uint64_t at, const void *data, size_t len)
{
	uint64_t in_ring = 0;
	size_t left;

	if (!log_find(log, at, &left, &in_ring))
		log_copy_in(log, in_ring, data, len);
}

/* ---- lent bytes ---- */

bool net_log_may_lend(const struct net_log *log)
{
	return log->extents_end - log->extents_first < NET_EXTENTS;
}

/*
 * Append bytes of @owner, which stay at @data. Return 0 or -ENOMEM. Context: net_log_may_lend() is
 * true.
 */
int net_log_lend(struct net_log *log, const void *owner, const void *data, size_t len)
{
	if (!log->extents)
		log->extents = malloc(NET_EXTENTS * sizeof(*log->extents));
	if (!log->extents)
		return -ENOMEM;
	*log_extent(log, log->extents_end++) = (struct net_extent){
		.at = log->written, .lent_before = log->lent, .data = data, .len = len,
		.owner = owner,
	};
	log->written += len;
	log->lent += len;
	return 0;
}

/* Copy the bytes that @owner has lent. After -ENOMEM nobody may read the log. */
int net_log_take_back(struct net_log *log, const void *owner)
{
	for (uint32_t i = log->extents_first; i != log->extents_end; i++) {
		struct net_extent *e = log_extent(log, i);

		if (e->owner != owner)
			continue;
		e->copy = malloc(e->len);
		if (!e->copy)
			return -ENOMEM;
		e->data = memcpy(e->copy, e->data, e->len);
		e->owner = NULL;
	}
	return 0;
}

static void log_drop_first(struct net_log *log)
{
	free(log_extent(log, log->extents_first++)->copy);
}

/* ---- sending ---- */

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
	while (log->extents_first != log->extents_end) {
		const struct net_extent *e = log_extent(log, log->extents_first);

		if (e->at + e->len > log->acked)
			break;
		log_drop_first(log);
	}
	return true;
}

/* Find unsent bytes. Return the number of pieces, NET_PIECES at most. */
size_t net_log_unsent(struct net_log *log, struct iovec iov[NET_PIECES])
{
	uint64_t at = log->sent;
	size_t n = 0;

	while (n < NET_PIECES && at < log->written) {
		uint64_t in_ring = 0;
		size_t len;
		struct net_extent *e = log_find(log, at, &len, &in_ring);
		const uint8_t *from = e ? e->data + (at - e->at) : log->buf + log_at(log, in_ring);

		if (!e && len > log->size - log_at(log, in_ring))
			len = log->size - log_at(log, in_ring);
		iov[n++] = (struct iovec){ (void *)from, len };
		at += len;
	}
	return n;
}

void net_log_free(struct net_log *log)
{
	while (log->extents_first != log->extents_end)
		log_drop_first(log);
	free(log->extents);
	free(log->buf);
	*log = (struct net_log){ 0 };
}
