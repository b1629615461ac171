// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: writing to a peer
 *
 * Where a store can be lost (on an adapter, or with SCI_FAULT), the sender keeps a copy of
 * each line until the line has arrived: see check.c. Stores to one line arrive in order,
 * whatever the link does (see sci_remote_line()). So an old line cannot overwrite a newer
 * line in its slot, nor an old status a newer one.
 */

#include "libsci/msg/conn/conn.h"

#include <errno.h>
#include <stdlib.h>

#include "libsci/base/cancel.h"

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
 * Load the peer's read position, and return whether the ring has room. Ignore an impossible
 * position. A line that the peer has read needs no retransmission.
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

/* Allocate the copies of lines before the first line is sent. Return false without memory. */
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

/*
 * Write a line as tx_put() does, to a peer where lines can be lost, need a flush, or use the net.
 */
void tx_put_careful(struct sci_peer *p, struct msg_tx *tx, uint32_t slot,
		    const struct line_head *head, const void *buf, size_t len,
		    uint64_t id, uint64_t last)
{
	struct msg_line line;

	if (p->stream) {
		line_ops.put(&line, head, buf, len, id, last);
		p->stream->put(p->line->outbox, &tx->slots[slot], &line, sizeof(line));
		return;
	}
	if (!p->lossy) {
		line_ops.put(&line, head, buf, len, id, last);
		sci_remote_line(&tx->slots[slot], &line, p->ep->link);
		return;
	}
	line_ops.put(&tx->shadow[slot], head, buf, len, id, last);
	p->awaited = true;
	mark_dirty(p);
	sci_remote_line(&tx->slots[slot], &tx->shadow[slot], p->line->link);
}

/* ---- the status line ---- */

__hot bool status_due(struct sci_peer *p)
{
	return lines_due(p) ||
	       p->status_next.ctl - p->status_sent.ctl >= CTL_LINES / 3 ||
	       ring_due(p, RING_EAGER, p->status_next.eager - p->status_sent.eager) ||
	       ring_due(p, RING_XFER, p->status_next.xfer - p->status_sent.xfer);
}

void status_store(struct sci_peer *p)
{
	struct msg_line l = { 0 };

	memcpy(&l, &p->status_next, sizeof(p->status_next));
	/* all reads of the ring come before the store that returns its space */
	sci_release_barrier();
	if (p->stream) {
		p->stream->put(p->line->outbox, p->status_line, &l, sizeof(l));
		p->stream->flush(p->line->outbox);
		return;
	}
	sci_remote_line(p->status_line, &l, p->line->link);
}

/* Return whether the next status line has credits that the peer does not have. */
static bool status_has_credits(const struct sci_peer *p)
{
	return p->status_next.data != p->status_sent.data ||
	       p->status_next.ctl != p->status_sent.ctl ||
	       p->status_next.eager != p->status_sent.eager ||
	       p->status_next.xfer != p->status_sent.xfer ||
	       p->status_next.rail != p->status_sent.rail;
}

static void status_put(struct sci_peer *p)
{
	if (p->lossy) {
		p->status_dirty = true;
		p->awaited |= status_has_credits(p);
		mark_dirty(p);
	}
	status_store(p);
	p->status_sent = p->status_next;
}

/*
 * Announce a sleep to the peer. Ring its bell only if a read position has changed, too: two
 * endpoints that go to sleep would otherwise wake each other for ever.
 */
void status_announce(struct sci_peer *p)
{
	p->status_next.sleeps++;
	if (status_has_credits(p)) {
		status_write(p);
	} else {
		p->status_next.rung = p->bell_rung;
		status_put(p);
	}
}

static int bell_ring(struct sci_peer *p)
{
	const struct sci_fabric_ops *ops = line_fabric(p)->ops;
	int ret;

	sci_cancel_hold();
	ret = p->line->bell ? ops->rintr.trigger(p->line->bell, NULL, 0) :
			      ops->ring(p->line->outbox);
	sci_cancel_release();
	return ret;
}

/* Limit for the sleeps that a peer announces during one call of status_write(). */
#define ANNOUNCED_MAX	8u

/*
 * Write the status line: the read positions, and the number of the peer's sleep for which the bell
 * rings. Then ring if the peer sleeps. The peer may find the line for which the bell rings before
 * it sleeps. Then only that number shows the peer that its announcement has been used, and that it
 * must announce its next sleep.
 *
 * The number of attempts is limited, so a peer that keeps announcing sleeps cannot keep this
 * function in its loop. After the last attempt the bell rings although the status names an earlier
 * sleep. The peer wakes up, and its latest announcement is still valid.
 */
__hot void status_write(struct sci_peer *p)
{
	unsigned int tries = ANNOUNCED_MAX;
	bool again;

	do {
		p->status_next.rung = peer_sleeps(p);
		status_put(p);
		if (p->fence)
			sci_full_barrier();
		again = peer_sleeps(p) != p->status_next.rung;
	} while (again && --tries);
	if ((!again && p->status_next.rung == p->bell_rung) || p->stream)
		return;
	if (bell_ring(p)) {
		/* the link is down: ring again when lost lines are repeated */
		p->resend = p->lossy;
		return;
	}
	p->bell_rung = p->status_next.rung;
	p->ep->stats.bells++;
}

/*
 * Return the credits for a copied block. If the link is not lossy, this happens before the next
 * block is copied, because the sender may be waiting for room.
 */
__hot void status_of_blocks(struct sci_peer *p)
{
	if (!p->lossy && p->state == PEER_UP && status_due(p))
		status_write(p);
}

/* ---- blocks ---- */

static void piece_store(struct sci_link_status *link, volatile uint8_t *dst,
			struct msg_cursor *at, size_t len)
{
	while (len) {
		size_t n;
		const void *src = msg_chunk(at, &n);

		n = n < len ? n : len;
		sci_remote_write(dst, src, n, link);
		msg_skip(at, n);
		dst += n;
		len -= n;
	}
}

/*
 * Store as piece_store() does, but in whole lines, each of them one packet. The last line is padded
 * with zeroes: a block has room for that. @dst is aligned to a line.
 */
static void lines_store(struct sci_link_status *link, volatile uint8_t *dst,
			struct msg_cursor *at, size_t len)
{
	while (len) {
		uint8_t line[LINE_BYTES] __attribute__((aligned(LINE_BYTES)));
		size_t n;
		const void *src = msg_chunk(at, &n);

		n = n < len ? n : len;
		n -= n % LINE_BYTES;
		if (n) {
			sci_remote_write(dst, src, n, link);
			msg_skip(at, n);
		} else {
			n = len < LINE_BYTES ? len : LINE_BYTES;
			memset(line, 0, sizeof(line));
			msg_gather(at, line, n);
			sci_remote_line(dst, line, link);
		}
		dst += n;
		len -= n;
	}
}

/* Store without a check. @block: the memory extends to the end of the last line. */
void rail_write(struct sci_link_status *link, volatile uint8_t *dst, struct msg_cursor *at,
		size_t len, bool block)
{
	(block ? lines_store : piece_store)(link, dst, at, len);
}

/*
 * Store @len bytes through a rail that can lose packets, and make sure that they arrive. After a
 * loss, store and check smaller pieces, down to one packet. @block: as in rail_write()
 *
 * Return: 0, or -EAGAIN if the link loses all packets; then *@at is unchanged.
 */
int rail_store(struct sci_ep *ep, const struct msg_rail *rail, volatile void *dst,
	       struct msg_cursor *at, size_t len, bool block)
{
	size_t step = len, done = 0;
	struct msg_cursor c = *at;
	unsigned int tries = 0;

	while (done < len) {
		size_t n = step < len - done ? step : len - done;
		uint32_t errors = sci_link_errors(rail->link);
		struct msg_cursor before = c;

		rail_write(rail->link, (volatile uint8_t *)dst + done, &c, n, block);
		sci_remote_barrier(rail->fabric, rail->seg);
		if (errors == sci_link_errors(rail->link)) {
			done += n;
			step *= 2;
			tries = 0;
			continue;
		}
		if (tries++ == rail->tries)
			return -EAGAIN;
		ep->stats.resent_blocks++;
		c = before;
		step = MSG_PAD(n / 4 > LINE_BYTES ? n / 4 : LINE_BYTES);
	}
	*at = c;
	return 0;
}

/**
 * rail_is_there() - check that bytes stored so far went to the peer's segment
 * @seg: the segment on @rail, RAIL_FIRST or RAIL_SECOND
 *
 * When the connection on one of two rails ends, its mappings may show other pages before the fabric
 * reports the end, and stores to these pages count no error. But the link's error count rises first.
 */
bool rail_is_there(struct sci_peer *p, unsigned int rail, struct sci_rseg *seg)
{
	struct sci_fabric *f = rail_fabric(p, rail);
	uint32_t errors = sci_link_errors(rail == RAIL_SECOND ? p->ep->rail_link : p->ep->link);
	void *addr = NULL;

	/* another segment may have been checked since this one has ended */
	if (atomic_load(&f->ops->rseg.status(seg)->gone))
		return false;
	if (errors == p->rails->there_errors[rail])
		return true;
	/* a packet was lost, maybe of another segment: if this segment has ended, mapping it fails */
	if (f->ops->rseg.map(seg, 0, 1, SCI_MAP_READONLY, &addr))
		return false;
	f->ops->unmap(f, addr, 1);
	p->rails->there_errors[rail] = errors;
	return true;
}

/* Store as remote_store() does, where stores can be lost. */
static int lossy_store(struct sci_peer *p, struct sci_rseg *seg, volatile void *dst,
		       struct msg_cursor *at, size_t len, bool block)
{
	struct sci_ep *ep = p->ep;
	const struct msg_rail rail = {
		.fabric = ep->fabric, .link = ep->link, .seg = seg, .tries = STORE_TRIES,
	};
	struct msg_cursor start = *at;
	int ret = rail_store(ep, &rail, dst, at, len, block);

	if (!p->rail_node)
		return ret;
	if (!ret && rail_is_there(p, RAIL_FIRST, seg)) {
		/* lines that use this rail arrive, too */
		if (p->line == &p->first)
			lines_arrive(p);
		return 0;
	}
	/* there may be no line that shows that lines do not arrive either */
	if (p->line == &p->first)
		lines_stuck(p);
	*at = start;
	return -EAGAIN;
}

/* Store @len bytes through the peer's fabric. Arguments and return value: as rail_store() */
int remote_store(struct sci_peer *p, struct sci_rseg *seg, volatile void *dst,
		 struct msg_cursor *at, size_t len, bool block)
{
	struct sci_ep *ep = p->ep;

	if (p->stream)
		return net_store(p, seg, dst, at, len);
	if (p->lossy)
		return lossy_store(p, seg, dst, at, len, block);
	piece_store(ep->link, dst, at, len);
	/* flush before the line that announces these bytes */
	if (p->stale)
		sci_link_flush(ep->link);
	return 0;
}

/* Return the checksum of a block. */
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
