// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: what may have been lost
 *
 * A packet that is lost raises the adapter's error count: the sender checks
 * (SCI-MPICH III, SISCI's sequences; design rule 4). To wait for the answers
 * first, at a store barrier, costs a round trip, so nobody does that for each
 * message. A line is kept until the peer has read past it, or until a barrier
 * has passed without the count having risen; meanwhile its peer is dirty.
 *
 * While a thread is in a call it looks at the count, which costs nothing. When
 * that has risen there is a barrier, and all that is not known to have arrived
 * is written again, one by one: a line written twice does no harm, its slot
 * holds the same, or the receiver has moved on. There is a barrier also before
 * an endpoint sleeps and before a connection ends; and keeper.c has one when
 * the program has left something unchecked and does not come back.
 *
 * A line that is under way is seen late by a receiver that is going to sleep,
 * and its announcement late by us: until the line has arrived for certain, the
 * sender looks whether the receiver sleeps.
 */

#include "libsci/msg/endpoint.h"

/* Before the first store that nobody knows to have arrived. */
void mark_dirty(struct sci_peer *p)
{
	if (!list_empty(&p->dirty))
		return;
	/* what was lost before is nobody's any more */
	if (list_empty(&p->ep->dirty))
		p->ep->errors = sci_link_errors(p->ep->link);
	list_add_tail(&p->dirty, &p->ep->dirty);
	keeper_wake(p->ep);
}

/* @errors: the count at the last look, of whatever kind. */
static bool arrived(struct sci_peer *p, uint32_t *errors)
{
	uint32_t now;

	sci_remote_barrier(p->ep->fabric, p->outbox);
	now = sci_link_errors(p->ep->link);
	if (now == *errors)
		return true;
	*errors = now;
	return false;
}

static bool resend_lines(struct sci_peer *p, struct msg_tx *tx,
			 uint32_t *errors)
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
		if (arrived(p, errors)) {
			tx->checked++;
			tries = 0;
		}
	}
	return true;
}

static bool resend_status(struct sci_peer *p, uint32_t *errors)
{
	for (unsigned int i = 0; p->status_dirty && i < STORE_TRIES; i++) {
		status_store(p);
		p->status_dirty = !arrived(p, errors);
	}
	return !p->status_dirty;
}

static void all_arrived(struct sci_peer *p)
{
	p->data_tx.checked = p->data_tx.pos;
	p->ctl_tx.checked = p->ctl_tx.pos;
	p->status_dirty = false;
}

static bool resend_all(struct sci_peer *p, uint32_t *errors)
{
	return resend_lines(p, &p->data_tx, errors) &&
	       resend_lines(p, &p->ctl_tx, errors) && resend_status(p, errors);
}

/* Returns whether all that @p has been written has arrived, by now. */
static bool check_peer(struct sci_peer *p, bool lost, uint32_t *errors)
{
	/* whose it was nobody knows */
	p->resend |= lost;
	if (!p->resend)
		all_arrived(p);
	else if (!resend_all(p, errors))
		return false;
	/* it may have gone to sleep before all of it was there */
	if (p->resend)
		p->bell_rung = peer_sleeps(p) - 1;
	p->resend = false;
	maybe_ring(p);
	return true;
}

/**
 * check_writes() - wait for the answers to all that has been written
 *
 * What was lost is written again. Returns true if all of it has arrived.
 */
bool check_writes(struct sci_ep *ep)
{
	struct list work, *l;
	uint32_t errors;
	bool lost;

	if (list_empty(&ep->dirty))
		return true;
	sci_remote_barrier(ep->fabric, NULL);
	ep->stats.checks++;
	errors = sci_link_errors(ep->link);
	lost = errors != ep->errors;
	ep->errors = errors;
	/* ringing the bell writes again, which is for the next time */
	list_init(&work);
	list_move_all(&ep->dirty, &work);
	while ((l = list_pop(&work))) {
		struct sci_peer *p = container_of(l, struct sci_peer, dirty);

		if (!check_peer(p, lost, &errors))
			mark_dirty(p);
	}
	return list_empty(&ep->dirty);
}

static bool known_to_be_there(struct sci_peer *p)
{
	tx_room_slow(&p->data_tx);
	tx_room_slow(&p->ctl_tx);
	return !p->status_dirty && p->data_tx.checked == p->data_tx.pos &&
	       p->ctl_tx.checked == p->ctl_tx.pos;
}

/* The same without waiting for anything: to be called while there is something. */
void watch_writes(struct sci_ep *ep)
{
	bool lost = sci_remote_errors(ep->link) != ep->errors;
	struct list *pos, *n;

	list_for_each_safe(pos, n, &ep->dirty) {
		struct sci_peer *p = container_of(pos, struct sci_peer, dirty);

		lost |= p->resend;
		if (lost)
			break;
		maybe_ring(p);
		if (known_to_be_there(p))
			list_del(&p->dirty);
	}
	if (lost)
		check_writes(ep);
}
