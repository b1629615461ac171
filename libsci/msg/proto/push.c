// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Progress calls send_push() for each peer with lines, blocks or transfers that wait for room. */

#include "libsci/msg/proto/send.h"

/*
 * Limit for the one-sided transfers that one call tries in vain: those behind wait for the first
 * ones. It is above the number of reads that a link of the net has in flight (NET_GETS).
 */
#define VAIN_MAX	128u

/* Write the bytes of one message after the other. Return whether none is left. */
static bool sends_push(struct sci_peer *p)
{
	while (!list_empty(&p->moving))
		if (rndv_push(container_of(p->moving.next, struct sci_req, link)) ||
		    p->state == PEER_DOWN)
			return false;
	return true;
}

/* Advance one-sided transfers. Return whether none is left. */
static bool onesided_push_all(struct sci_peer *p)
{
	unsigned int vain = 0;
	struct list *pos, *n;

	list_for_each_safe(pos, n, &p->onesided) {
		vain += !!onesided_push(container_of(pos, struct sci_req, link));
		if (vain == VAIN_MAX || p->state == PEER_DOWN)
			break;
	}
	return !vain;
}

/*
 * Complete the transfers whose bytes the net has delivered. They arrive in the order of the list.
 * Return whether none is left. A transfer that has to begin again, or whose atomic or event has to
 * wait, is left in another list.
 */
bool transfers_arrive(struct sci_peer *p)
{
	bool is_down = p->state == PEER_DOWN, idle = true;
	struct sci_req *req, *n;

	list_for_each_entry_safe(req, n, &p->arriving, link) {
		bool waits = false;

		if (req->kind == MSG_SEND)
			waits = rndv_arrive(req);
		else if (!is_down)
			waits = onesided_push(req);
		/* the end of the connection has freed the transfers */
		if (!is_down && p->state == PEER_DOWN)
			return false;
		if (waits && req->state == MSG_ARRIVING)
			return false;
		idle &= !waits;
	}
	return idle;
}

/* Advance the transfers that need no answer of the peer. Neither kind waits for the other one. */
static bool transfers_push(struct sci_peer *p)
{
	bool idle = sends_push(p);

	if (p->state == PEER_UP)
		idle &= onesided_push_all(p);
	if (p->state == PEER_UP && p->stream)
		idle &= transfers_arrive(p);
	return idle;
}

/* Return a number that each sent line changes. A line announces each block. */
static uint32_t positions_sum(const struct sci_peer *p)
{
	return p->ctl_tx.pos + p->data_tx.pos;
}

/* Send the lines, blocks and transfers that wait for room. Return whether anything was sent. */
int send_push(struct sci_peer *p)
{
	uint32_t before = positions_sum(p);
	unsigned int completions = p->ep->completions;
	bool idle = ctl_push(p);

	if (p->state == PEER_UP)
		idle &= transfers_push(p);
	if (p->state == PEER_UP)
		idle &= rndv_accept_later(p);
	if (p->state == PEER_UP)
		idle &= queue_push(p);
	if (p->state == PEER_UP && p->lossy && status_due(p))
		status_write(p);
	/* transfers may have queued control lines */
	if ((idle && list_empty(&p->ctlq)) || p->state == PEER_DOWN)
		list_del(&p->busy);
	return positions_sum(p) != before ||
	       p->ep->completions != completions;
}
