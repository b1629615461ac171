// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Progress calls send_push() for each peer with lines, blocks or transfers that wait for room. */

#include "libsci/msg/proto/send.h"

static bool transfers_push(struct sci_peer *p)
{
	bool blocks = true, onesided = true;
	struct list *pos, *n;

	list_for_each_safe(pos, n, &p->sending) {
		struct sci_req *req = container_of(pos, struct sci_req, link);

		if (req->state != MSG_MOVING)
			continue;
		/*
		 * write blocks of one message at a time; one-sided transfers do not wait for
		 * messages
		 */
		if (req->kind != MSG_SEND)
			onesided &= !onesided_push(req);
		else if (blocks)
			blocks = !rndv_push(req);
		if (p->state == PEER_DOWN)
			return false;
	}
	return (!p->stream || rndv_arrive(p)) && blocks && onesided;
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
