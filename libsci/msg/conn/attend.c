// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The peers that have events, calls to other nodes in flight, or are suspected. */

#include "libsci/msg/conn/conn.h"

/*
 * Handle the events of all peers, the results of their calls, and the suspects. Return the amount
 * of work that was done.
 */
int peers_attend(struct sci_ep *ep)
{
	struct list *l, now;
	int done = 0;

	news_collect(ep);
	list_init(&now);
	list_move_all(&ep->attend, &now);
	while ((l = list_pop(&now))) {
		struct sci_peer *p = container_of(l, struct sci_peer, attend);
		unsigned int events;

		done += calls_check(p);
		events = atomic_load(&p->events) & ~PEER_LISTED;
		/* the ring of a hot peer is no work: progress polls the peer */
		done += events & ~PEER_RANG || (events && list_empty(&p->hot));
		if (events || p->suspect_ms)
			peer_event_check(p);
		reroute_poll(p);
		if (p->suspect_ms || p->rerouting || !list_empty(&p->calls))
			peer_attend(p);
	}
	return done;
}
