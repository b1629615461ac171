// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: writing to a peer
 *
 * Where a store can get lost (an adapter's window, or SCI_FAULT), a copy of
 * every line is kept until it is known to have arrived: see check.c. Stores to
 * one line arrive in their order, whatever the link does (see sci_remote_line()),
 * so that no old line can hide a new one of its slot, nor an old status a newer
 * one.
 */

#include "libsci/msg/endpoint.h"

#include <errno.h>
#include <stdlib.h>

void tx_init(struct msg_tx *tx, volatile struct msg_line *slots,
	     uint32_t lines, const volatile uint32_t *status)
{
	*tx = (struct msg_tx){
		.slots = slots,
		.lines = lines,
		.status = status,
		.id = LINE_ID,
	};
}

void rx_init(struct msg_rx *rx, const volatile struct msg_line *slots,
	     uint32_t lines)
{
	*rx = (struct msg_rx){ .slots = slots, .lines = lines, .id = LINE_ID };
}

/*
 * Has the peer read on? A read position that is impossible is ignored. Data that the
 * peer has read has arrived.
 */
bool tx_room_slow(struct msg_tx *tx)
{
	uint32_t read;

	if (tx->stale)
		sci_link_refresh(tx->stale, tx->status, sizeof(*tx->status));
	read = sci_load_acquire(tx->status);

	if ((int32_t)(read - tx->read) > 0 && (int32_t)(tx->pos - read) >= 0) {
		tx->read = read;
		if ((int32_t)(read - tx->checked) > 0)
			tx->checked = read;
	}
	return tx->pos - tx->read < tx->lines;
}

/* Memory for copies, with the first line; false: none. */
bool tx_prepare(struct sci_peer *p)
{
	struct msg_line *shadow;

	if (!p->lossy || p->data_tx.shadow)
		return true;
	shadow = aligned_alloc(LINE_BYTES, INBOX_BYTES);
	if (!shadow)
		return false;
	p->data_tx.shadow = shadow;
	p->ctl_tx.shadow = shadow + DATA_LINES;
	return true;
}

void tx_drop(struct sci_peer *p)
{
	free(p->data_tx.shadow);
	p->data_tx.shadow = NULL;
	p->ctl_tx.shadow = NULL;
}

/* tx_put() where lines can be lost, have to be flushed, or are no stores. */
void tx_put_careful(struct sci_peer *p, struct msg_tx *tx, uint32_t slot,
		    const struct line_head *head, const void *buf, size_t len,
		    uint64_t id, uint64_t last)
{
	struct msg_line line;

	if (p->stream) {
		line_ops.put(&line, head, buf, len, id, last);
		p->stream->put(p->outbox, &tx->slots[slot], &line, sizeof(line));
		return;
	}
	if (!p->lossy) {
		line_ops.put(&line, head, buf, len, id, last);
		sci_remote_line(&tx->slots[slot], &line, p->ep->link);
		return;
	}
	line_ops.put(&tx->shadow[slot], head, buf, len, id, last);
	mark_dirty(p);
	sci_remote_line(&tx->slots[slot], &tx->shadow[slot], p->ep->link);
}

/* ---- the status line ---- */

__hot bool status_due(const struct sci_peer *p)
{
	return lines_due(p) ||
	       p->now.ctl - p->told.ctl >= CTL_LINES / 3 ||
	       ring_due(p, RING_EAGER, p->now.eager - p->told.eager) ||
	       ring_due(p, RING_XFER, p->now.xfer - p->told.xfer);
}

void status_store(struct sci_peer *p)
{
	struct msg_line l;

	memcpy(&l, &p->now, sizeof(l));
	/* what the credits give back has been read */
	sci_release_barrier();
	if (p->stream) {
		p->stream->put(p->outbox, p->tell, &l, sizeof(l));
		p->stream->flush(p->outbox);
		return;
	}
	sci_remote_line(p->tell, &l, p->ep->link);
}

static void status_put(struct sci_peer *p)
{
	if (p->lossy) {
		p->status_dirty = true;
		mark_dirty(p);
	}
	status_store(p);
	p->told = p->now;
}

/*
 * Tell the peer that we are going to sleep. Unless it hears more than that,
 * it may sleep itself: two that wait would wake each other for ever.
 */
void status_announce(struct sci_peer *p)
{
	p->now.sleeps++;
	if (p->now.data != p->told.data || p->now.ctl != p->told.ctl ||
	    p->now.eager != p->told.eager || p->now.xfer != p->told.xfer) {
		status_write(p);
	} else {
		p->now.rung = p->bell_rung;
		status_put(p);
	}
}

/* Sleeps that a peer announces while we write one status line. */
#define ANNOUNCED_MAX	8u

/*
 * Tell the peer how far we have read, and ring if it sleeps. It has to know
 * which sleep the bell was for: what we ring for it may have seen before it
 * went to sleep, and it would take that sleep for still announced.
 *
 * A peer that announces sleeps without end does not keep us here: after some of
 * them the bell is rung, and the status names an earlier sleep.  The peer wakes all
 * the same, and knows that the later one is still announced.
 */
__hot void status_write(struct sci_peer *p)
{
	unsigned int tries = ANNOUNCED_MAX;
	bool again;

	do {
		p->now.rung = peer_sleeps(p);
		status_put(p);
		if (p->fence)
			sci_full_barrier();
		again = peer_sleeps(p) != p->now.rung;
	} while (again && --tries);
	if ((!again && p->now.rung == p->bell_rung) || !p->bell)
		return;
	if (p->fabric->ops->rintr.trigger(p->bell, NULL, 0)) {
		/* the link is down: to be done again, like all that is lost */
		p->resend = p->lossy;
		return;
	}
	p->bell_rung = p->now.rung;
	p->ep->stats.bells++;
}

/*
 * A block has been read.  Where telling costs little the sender hears of it before
 * we copy the next one, as it may be waiting.
 */
__hot void status_of_blocks(struct sci_peer *p)
{
	if (!p->lossy && p->state == PEER_UP && status_due(p))
		status_write(p);
}

/* ---- blocks ---- */

static void store_piece(struct sci_ep *ep, volatile uint8_t *dst,
			struct msg_cursor *at, size_t len)
{
	while (len) {
		size_t n;
		const void *src = msg_chunk(at, &n);

		n = n < len ? n : len;
		sci_remote_write(dst, src, n, ep->link);
		msg_skip(at, n);
		dst += n;
		len -= n;
	}
}

/*
 * The same in whole lines, each of them one packet: the last one ends in zeroes,
 * for which blocks have room. @dst is the start of one.
 */
static void store_lines(struct sci_ep *ep, volatile uint8_t *dst,
			struct msg_cursor *at, size_t len)
{
	while (len) {
		uint8_t line[LINE_BYTES] __attribute__((aligned(LINE_BYTES)));
		size_t n;
		const void *src = msg_chunk(at, &n);

		n = n < len ? n : len;
		n -= n % LINE_BYTES;
		if (n) {
			sci_remote_write(dst, src, n, ep->link);
			msg_skip(at, n);
		} else {
			n = len < LINE_BYTES ? len : LINE_BYTES;
			memset(line, 0, sizeof(line));
			msg_gather(at, line, n);
			sci_remote_line(dst, line, ep->link);
		}
		dst += n;
		len -= n;
	}
}

/*
 * Store and see that it arrives. The more is lost, the smaller the pieces
 * that are checked, down to one packet. @block: there is room up to the end of
 * the last line. -EAGAIN: the link loses everything, @at is unchanged.
 */
int remote_store(struct sci_peer *p, struct sci_rseg *seg, volatile void *dst,
		 struct msg_cursor *at, size_t len, bool block)
{
	struct sci_ep *ep = p->ep;
	size_t step = len, done = 0;
	struct msg_cursor c = *at;
	unsigned int tries = 0;

	if (p->stream)
		return net_store(p, seg, dst, at, len);
	if (!p->lossy) {
		store_piece(ep, dst, at, len);
		/* before the line that announces it */
		if (p->stale)
			sci_link_flush(ep->link);
		return 0;
	}
	while (done < len) {
		size_t n = step < len - done ? step : len - done;
		uint32_t errors = sci_link_errors(ep->link);
		struct msg_cursor before = c;

		(block ? store_lines : store_piece)(
			ep, (volatile uint8_t *)dst + done, &c, n);
		sci_remote_barrier(ep->fabric, seg);
		if (errors == sci_link_errors(ep->link)) {
			done += n;
			step *= 2;
			tries = 0;
			continue;
		}
		if (tries++ == STORE_TRIES)
			return -EAGAIN;
		ep->stats.resent_blocks++;
		c = before;
		step = MSG_PAD(n / 4 > LINE_BYTES ? n / 4 : LINE_BYTES);
	}
	*at = c;
	return 0;
}

/* The check sum of a block. */
uint32_t blocks_crc(struct msg_cursor at, size_t len)
{
	uint32_t crc = 0;

	while (len) {
		size_t n;
		const void *src = msg_chunk(&at, &n);

		n = n < len ? n : len;
		crc = sci_pio_crc32c(crc, src, n);
		msg_skip(&at, n);
		len -= n;
	}
	return crc;
}
