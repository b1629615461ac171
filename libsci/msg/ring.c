// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: writing to a peer
 *
 * Where a store can get lost (an adapter's window, or SCI_FAULT), a copy of
 * every line is kept until a store barrier has passed without the adapter's
 * error count having risen; if it has, every line since then is written again,
 * one by one (SCI-MPICH and SISCI: the sender checks, design rule 4). A line
 * written twice does no harm: its slot holds the same, or the receiver has
 * moved on. A slot is used again only when its last use has been checked, so
 * that no late copy of an old line can hide a new one.
 */

#include "libsci/msg/endpoint.h"

#include <errno.h>
#include <stdlib.h>

/* Attempts at a store before the caller does something else first. */
#define STORE_TRIES	64u

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

/* Has the peer read on? What it says is believed only where it can be. */
bool tx_room_slow(struct msg_tx *tx)
{
	uint32_t read = sci_load_acquire(tx->status);

	/* nor is a slot used again before its last use has been checked */
	if (tx->shadow && (int32_t)(read - tx->checked) > 0)
		read = tx->checked;
	if ((int32_t)(read - tx->read) > 0 && (int32_t)(tx->pos - read) >= 0)
		tx->read = read;
	return tx->pos - tx->read < tx->lines;
}

/* Memory for copies, with the first line; false: none. */
bool tx_prepare(struct sci_peer *p)
{
	struct msg_line *shadow;

	if (!p->ep->lossy || p->data_tx.shadow)
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

static void mark_dirty(struct sci_peer *p)
{
	if (list_empty(&p->dirty))
		list_add_tail(&p->dirty, &p->ep->dirty);
}

/*
 * Write the line that comes @ahead lines after the next one: there is room, and
 * memory (tx_room(), tx_prepare()). @type 0: a short message.
 */
void tx_put(struct sci_peer *p, struct msg_tx *tx, uint32_t ahead,
	    const struct line_head *head, const void *buf, size_t len,
	    enum msg_line_type type)
{
	uint64_t last = line_last(type, type ? LINE_TYPED : (unsigned int)len,
				  tx->pos + ahead);
	uint32_t slot = tx->slot + ahead;
	uint64_t id = tx->id;

	if (slot >= tx->lines) {
		slot -= tx->lines;
		id ^= LINE_ID;
	}
	if (!p->ep->lossy) {
		line_ops.put(&tx->slots[slot], head, buf, len, id, last);
		return;
	}
	line_ops.put(&tx->shadow[slot], head, buf, len, id, last);
	mark_dirty(p);
	sci_remote_line(&tx->slots[slot], &tx->shadow[slot], p->ep->link);
}

/* @n lines have been put. */
void tx_go(struct sci_peer *p, struct msg_tx *tx, uint32_t n)
{
	tx->pos += n;
	tx->slot += n;
	if (tx->slot >= tx->lines) {
		tx->slot -= tx->lines;
		tx->id ^= LINE_ID;
	}
	maybe_ring(p);
}

/* ---- the status line ---- */

static bool ring_due(const struct msg_blocks_rx *b, uint32_t read)
{
	return b->size && read >= b->size / 4;
}

bool status_due(const struct sci_peer *p)
{
	return p->now.data - p->told.data >= DATA_LINES / 4 ||
	       p->now.ctl - p->told.ctl >= CTL_LINES / 3 ||
	       ring_due(&p->blocks_rx[RING_EAGER],
			p->now.eager - p->told.eager) ||
	       ring_due(&p->blocks_rx[RING_XFER], p->now.xfer - p->told.xfer);
}

static void status_store(struct sci_peer *p)
{
	struct msg_line l;

	memcpy(&l, &p->now, sizeof(l));
	sci_remote_line(p->tell, &l, p->ep->link);
}

static void status_put(struct sci_peer *p)
{
	if (p->ep->lossy) {
		/* the one before must not arrive after this one */
		if (p->status_dirty)
			sci_remote_barrier(p->ep->fabric, p->outbox);
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

/*
 * Tell the peer how far we have read, and ring if it sleeps. It has to know
 * which sleep the bell was for: what we ring for it may have seen before it
 * went to sleep, and it would take that sleep for still announced.
 */
void status_write(struct sci_peer *p)
{
	do {
		p->now.rung = sci_load_relaxed(&p->status->sleeps);
		status_put(p);
		if (p->fence)
			sci_full_barrier();
	} while (sci_load_relaxed(&p->status->sleeps) != p->now.rung);
	if (p->now.rung == p->bell_rung)
		return;
	if (p->ep->ops->rintr_trigger(p->bell, NULL, 0)) {
		/* the link is down: to be done again, like all that is lost */
		p->resend = p->ep->lossy;
		return;
	}
	p->bell_rung = p->now.rung;
	p->ep->stats.bells++;
}

/* ---- what may have been lost ---- */

static bool arrived(struct sci_ep *ep, struct sci_peer *p)
{
	uint32_t errors;

	sci_remote_barrier(ep->fabric, p->outbox);
	errors = sci_link_errors(ep->link);
	if (errors == ep->errors)
		return true;
	ep->errors = errors;
	return false;
}

static bool resend_lines(struct sci_peer *p, struct msg_tx *tx)
{
	unsigned int tries = 0;

	while (tx->checked != tx->pos) {
		uint32_t back = tx->pos - tx->checked;
		uint32_t slot = (tx->slot + tx->lines - back) % tx->lines;

		if (tries++ == STORE_TRIES)
			return false;
		sci_remote_line(&tx->slots[slot], &tx->shadow[slot],
				p->ep->link);
		p->ep->stats.resent_lines++;
		if (arrived(p->ep, p)) {
			tx->checked++;
			tries = 0;
		}
	}
	return true;
}

static bool resend_status(struct sci_peer *p)
{
	for (unsigned int i = 0; p->status_dirty && i < STORE_TRIES; i++) {
		status_store(p);
		p->status_dirty = !arrived(p->ep, p);
	}
	return !p->status_dirty;
}

static void all_arrived(struct sci_peer *p)
{
	p->data_tx.checked = p->data_tx.pos;
	p->ctl_tx.checked = p->ctl_tx.pos;
	p->status_dirty = false;
}

static bool resend_all(struct sci_peer *p)
{
	return resend_lines(p, &p->data_tx) && resend_lines(p, &p->ctl_tx) &&
	       resend_status(p);
}

/* Returns whether all that @p has been written has arrived, by now. */
static bool check_peer(struct sci_peer *p, bool lost)
{
	/* whose it was nobody knows */
	p->resend |= lost;
	if (!p->resend)
		all_arrived(p);
	else if (!resend_all(p))
		return false;
	/* it may have gone to sleep before all of it was there */
	if (p->resend)
		p->bell_rung = sci_load_relaxed(&p->status->sleeps) - 1;
	p->resend = false;
	maybe_ring(p);
	return true;
}

/* Returns true if all that has been written has arrived. */
bool check_writes(struct sci_ep *ep)
{
	struct list work, *l;
	uint32_t errors;
	bool lost;

	if (list_empty(&ep->dirty))
		return true;
	sci_remote_barrier(ep->fabric, NULL);
	errors = sci_link_errors(ep->link);
	lost = errors != ep->errors;
	ep->errors = errors;
	/* ringing the bell writes again, which is for the next time */
	list_init(&work);
	list_move_all(&ep->dirty, &work);
	while ((l = list_pop(&work))) {
		struct sci_peer *p = container_of(l, struct sci_peer, dirty);

		if (!check_peer(p, lost))
			mark_dirty(p);
	}
	return list_empty(&ep->dirty);
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
 * Store and see that it arrives. The more is lost, the smaller the pieces
 * that are checked, down to one packet. -EAGAIN: the link loses everything,
 * @at is unchanged.
 */
int remote_store(struct sci_ep *ep, struct sci_rseg *seg, volatile void *dst,
		 struct msg_cursor *at, size_t len)
{
	size_t step = len, done = 0;
	struct msg_cursor c = *at;
	unsigned int tries = 0;

	if (!ep->lossy) {
		store_piece(ep, dst, at, len);
		return 0;
	}
	while (done < len) {
		size_t n = step < len - done ? step : len - done;
		uint32_t errors = sci_link_errors(ep->link);
		struct msg_cursor before = c;

		store_piece(ep, (volatile uint8_t *)dst + done, &c, n);
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
		step = n / 4 > LINE_BYTES ? n / 4 : LINE_BYTES;
	}
	*at = c;
	return 0;
}

/* With more peers than this their rings do not fit the caches together. */
#define FEW_PEERS	2u

/*
 * Where the next block begins: after the last one, or at the start of the ring
 * if there is no room before its end. With many peers also if nothing is in
 * it: what was used a short time ago is still in a cache. (Two that share one
 * are slower that way: what one writes the other has hardly read.)
 */
static uint32_t blocks_start(const struct sci_peer *p,
			     const struct msg_blocks *b, size_t len)
{
	uint32_t offset = b->end & (b->size - 1);
	bool again = p->ep->n_hot > FEW_PEERS && offset >= MSG_PAD(len) &&
		     sci_load_acquire(b->status) == b->end;

	return again || offset + MSG_PAD(len) > b->size ?
		       b->end + b->size - offset : b->end;
}

bool blocks_room(const struct sci_peer *p, const struct msg_blocks *b,
		 size_t len)
{
	uint32_t end = blocks_start(p, b, len) + (uint32_t)MSG_PAD(len);

	return end - sci_load_acquire(b->status) <= b->size;
}

/* Where a block of @len bytes is that ends at @end; NULL: not in the ring. */
const uint8_t *blocks_find(const struct msg_blocks_rx *b, uint32_t end,
			   uint32_t len)
{
	uint32_t offset;

	/* MSG_PAD() of what is no longer than the ring is no longer either */
	if (len > b->size)
		return NULL;
	offset = (end - (uint32_t)MSG_PAD(len)) & (b->size - 1);
	return b->size - offset < len ? NULL : b->base + offset;
}

static uint32_t crc_of(struct msg_cursor at, size_t len)
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

/*
 * Put a block in a ring with room for it. Returns where it ends, or -EAGAIN.
 * It has arrived when this returns: the line that announces it may go.
 */
int64_t blocks_put(struct sci_peer *p, struct msg_blocks *b,
		   struct msg_cursor *at, size_t len, uint32_t *crc)
{
	uint32_t start = blocks_start(p, b, len);
	int ret;

	*crc = p->ep->crc ? crc_of(*at, len) : 0;
	ret = remote_store(p->ep, b->seg,
			   b->base + (start & (b->size - 1)), at, len);
	if (ret)
		return ret;
	b->end = start + (uint32_t)MSG_PAD(len);
	return b->end;
}

void check_until_clean(struct sci_ep *ep)
{
	for (unsigned int i = 0; i < STORE_TRIES && !check_writes(ep); i++)
		;
}
