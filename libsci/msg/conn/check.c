// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: retransmission
 *
 * The adapter counts lost packets in an error counter, and a store barrier waits until
 * the counter is up to date (SCI-MPICH III, SISCI's sequences; design rule 4). A barrier
 * costs a round trip, so the sender does not execute one for each message. Instead it
 * keeps a copy of each line until the peer has read past the line, or until a barrier
 * has passed and the counter is unchanged. A peer with such lines is dirty.
 *
 * While a thread is in a call, it reads the counter without a barrier, which is cheap. When the
 * counter has risen, it executes a barrier and writes every unconfirmed line again, one by one.
 * Writing a line twice is harmless: its slot holds the same line, or the receiver is already past
 * it. There is also a barrier before an endpoint sleeps and before a connection ends. If the
 * program makes no call for a while, the thread in retransmit.c checks.
 *
 * A receiver that is about to sleep may see a delayed line too late, and the sender may see the
 * receiver's announcement too late. So until a line is confirmed, the sender keeps checking whether
 * the receiver sleeps. The same holds for credits. A receiver does not wait for the other members
 * of the status line: if the sender rang the bell for them, two idle endpoints would wake each other
 * for ever.
 */

#include "libsci/msg/conn/conn.h"

/* Mark @p as dirty: it has unconfirmed stores. Called before the first such store. */
void mark_dirty(struct sci_peer *p)
{
	if (!list_empty(&p->dirty))
		return;
	/* losses before this moment do not affect the stores that follow */
	if (list_empty(&p->ep->dirty))
		p->ep->errors = ep_errors(p->ep);
	list_add_tail(&p->dirty, &p->ep->dirty);
	retransmit_wake(p->ep);
}

/* Execute a barrier. Return true if the error count is still *@errors; else update *@errors. */
static bool lines_arrived(struct sci_peer *p, uint32_t *errors)
{
	uint32_t now;

	sci_remote_barrier(line_fabric(p), p->line->outbox);
	now = ep_errors(p->ep);
	if (now == *errors)
		return true;
	*errors = now;
	return false;
}

static bool lines_resend(struct sci_peer *p, struct msg_tx *tx,
			 uint32_t *errors)
{
	unsigned int tries = 0;

	while (tx->checked != tx->pos) {
		uint32_t back = tx->pos - tx->checked;
		uint32_t slot = (tx->slot + tx->lines - back) % tx->lines;

		if (tries++ == STORE_TRIES)
			return false;
		sci_remote_line(&tx->slots[slot], &tx->shadow[slot],
				p->line->link);
		p->ep->stats.resent_lines++;
		if (lines_arrived(p, errors)) {
			tx->checked++;
			tries = 0;
		}
	}
	return true;
}

static bool status_resend(struct sci_peer *p, uint32_t *errors)
{
	for (unsigned int i = 0; p->status_dirty && i < STORE_TRIES; i++) {
		status_store(p);
		p->status_dirty = !lines_arrived(p, errors);
	}
	return !p->status_dirty;
}

static void peer_confirm_stores(struct sci_peer *p)
{
	p->data_tx.checked = p->data_tx.pos;
	p->ctl_tx.checked = p->ctl_tx.pos;
	p->status_dirty = false;
}

static bool peer_resend(struct sci_peer *p, uint32_t *errors)
{
	return lines_resend(p, &p->data_tx, errors) &&
	       lines_resend(p, &p->ctl_tx, errors) && status_resend(p, errors);
}

/* Confirm or repeat the stores to @p. Return true if all of them have arrived. */
static bool peer_check_writes(struct sci_peer *p, bool lost, uint32_t *errors)
{
	bool awaited;

	/* the error count does not show which peer's stores were lost */
	p->resend |= lost;
	if (!p->resend)
		peer_confirm_stores(p);
	else if (!peer_resend(p, errors))
		return false;
	/* the peer may have gone to sleep before the repeated lines arrived: ring again */
	if (p->resend)
		p->bell_rung = peer_sleeps(p) - 1;
	awaited = p->awaited || p->resend;
	p->awaited = false;
	p->resend = false;
	if (awaited)
		bell_ring_sleeper(p);
	return true;
}

/*
 * Note that stores to @p, which has two rails, do not arrive, so that progress calls reroute_poll().
 * A thread that sleeps without a limit must make this progress.
 */
void lines_stuck(struct sci_peer *p)
{
	if (!p->rails->stuck_ms)
		p->rails->stuck_ms = msg_now_ms();
	peer_attend(p);
	atomic_store(&p->ep->attention, 1);
	wake_all(p->ep);
}

/**
 * check_writes() - wait until all stores have arrived, and repeat lost stores
 *
 * Return: true if all stores have arrived.
 */
bool check_writes(struct sci_ep *ep)
{
	struct list work, *l;
	uint32_t errors;
	bool lost;

	if (list_empty(&ep->dirty))
		return true;
	sci_remote_barrier(ep->fabric, NULL);
	if (ep->rail)
		sci_remote_barrier(ep->rail, NULL);
	ep->stats.checks++;
	errors = ep_errors(ep);
	lost = errors != ep->errors;
	ep->errors = errors;
	/* ringing a bell makes a peer dirty again: leave that to the next check */
	list_init(&work);
	list_move_all(&ep->dirty, &work);
	while ((l = list_pop(&work))) {
		struct sci_peer *p = container_of(l, struct sci_peer, dirty);

		/* a peer that is rerouted becomes dirty at the end of that */
		if (p->rerouting)
			continue;
		if (peer_check_writes(p, lost, &errors)) {
			lines_arrive(p);
			continue;
		}
		mark_dirty(p);
		if (p->rail_node)
			lines_stuck(p);
	}
	return list_empty(&ep->dirty);
}

static bool lines_are_confirmed(struct sci_peer *p)
{
	tx_room_slow(&p->data_tx);
	tx_room_slow(&p->ctl_tx);
	return !p->status_dirty && p->data_tx.checked == p->data_tx.pos &&
	       p->ctl_tx.checked == p->ctl_tx.pos;
}

/*
 * Check for lost stores and for peers that may sleep over a delayed store, without a barrier.
 * Progress calls this regularly while a peer is dirty.
 */
void watch_writes(struct sci_ep *ep)
{
	bool check = sci_remote_errors(ep->link) +
		     (ep->rail ? sci_link_errors(ep->rail_link) : 0) != ep->errors;
	struct list *pos, *n;

	list_for_each_safe(pos, n, &ep->dirty) {
		struct sci_peer *p = container_of(pos, struct sci_peer, dirty);

		check |= p->resend || (p->awaited && peer_sleeps(p) != p->bell_rung);
		if (check)
			break;
		if (!lines_are_confirmed(p))
			continue;
		p->awaited = false;
		lines_arrive(p);
		list_del(&p->dirty);
	}
	if (check)
		check_writes(ep);
}
