/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: rails and ways
 *
 * A rail is this process's endpoint in one network of the session. A thread that waits on a
 * rail polls the other rails from time to time: small messages may wait there until the receiver
 * has room for them.
 *
 * A direct fragment is a message whose context is the channel and whose tag is the
 * sub-channel.  A fragment for a process in another network travels a way, which is a path
 * through gateways.  The fragment is cut into blocks, whose tag names the channel, the sender,
 * the receiver and the sub-channel.  On the last hop the context of a block is the channel, as
 * for direct fragments.  On earlier hops the context is CONTEXT_FORWARD, in which gateways
 * receive all messages.  Blocks have no header.
 *
 * Gateways never wait for a receiver: they always have posted receives, and keep each block
 * until the next hop has taken it.  Credits bound the memory of gateways: a sender has at most
 * WAY_WINDOW blocks of a way in flight.  The last gateway returns a credit each time that the
 * receiver has taken WAY_CREDIT blocks.  So a slow receiver delays only its senders, and a
 * program deadlocks only if it would also deadlock with direct connections.
 */
#ifndef LIBSCI_MADELEINE_RAIL_H
#define LIBSCI_MADELEINE_RAIL_H

#include <stdatomic.h>

#include "libsci/madeleine/internal.h"

#define WAY_WINDOW	8u
#define WAY_CREDIT	4u
#define WAY_BLOCK	131072u		/* default bytes of a block (MAD_FORWARD_BLOCK) */
#define WAY_BLOCK_MIN	4096u		/* a gathered fragment is one block */

#define CONTEXT_FORWARD	0x7fffff00u
#define CONTEXT_CREDIT	0x7fffff01u
#define CONTEXT_STOP	0x7fffff02u	/* no message has this context */

struct gateway;

struct rail {
	struct mad_world *w;
	const struct network *network;	/* NULL: there is no session file */
	struct sci_ep *ep;
	struct sci_addr *addr;		/* by rank; node 0: not in this network */
	struct sci_peer **peer;		/* by rank; NULL: not connected */
	bool forwards;
	struct gateway *gateway;
	_Atomic unsigned int sending;	/* blocks of gateways that @ep is sending */
};

struct rails {
	int n;
	int open;			/* rails with an endpoint */
	_Atomic bool queued;		/* a small message had to wait in an endpoint */
	struct rail *rail;
	size_t block;			/* bytes of a block */
};

static inline struct rails *rails_of(struct mad_world *w)
{
	return w->net_state;
}

static inline uint32_t rail_context(uint32_t channel)
{
	return channel + 1;
}

int rail_rank(struct rail *r, struct sci_peer *peer);

void rails_progress(struct mad_world *w);
/* Return the time until a thread that waits must call rails_progress(), in milliseconds. */
int rails_poll_ms(struct rails *n);
/* Wait for a request of a rail. Return: as for sci_wait(). */
int rails_wait(struct mad_world *w, struct sci_req *req, struct sci_status *st);

/* ---- tags of ways: credit 1, channel 23, receiver 16, sender 16, sub-channel 8 bits ---- */

#define TAG_SUB		0xffull
#define TAG_CREDIT	(1ull << 63)

static inline uint64_t tag_of_way(uint32_t channel, int from, int to, uint32_t sub)
{
	return (uint64_t)(channel & 0x7fffffu) << 40 | (uint64_t)(to & 0xffff) << 24 |
	       (uint64_t)(from & 0xffff) << 8 | (sub & TAG_SUB);
}

static inline bool tag_is_way(uint64_t tag)
{
	return tag >> 8;		/* not 0: sender and receiver differ */
}

static inline int tag_from(uint64_t tag)
{
	return (int)(tag >> 8 & 0xffff);
}

static inline int tag_to(uint64_t tag)
{
	return (int)(tag >> 24 & 0xffff);
}

static inline uint32_t tag_channel(uint64_t tag)
{
	return (uint32_t)(tag >> 40 & 0x7fffffu);
}

/* ---- ways: as the operations of struct mad_net ---- */

int way_send(struct mad_world *w, struct mad_link *l, const void *buf, size_t len);
int way_isend(struct mad_world *w, struct mad_link *l, const void *buf, size_t len);
int way_flush(struct mad_world *w, struct mad_link *l);
int way_irecv(struct mad_world *w, struct mad_link *l, void *buf, size_t len, void **req);
int way_wait(struct mad_world *w, void *req);

/* ---- gateways ---- */

/* Post the receives of a rail that forwards. */
int gateway_open(struct rail *r);
/*
 * Forward the blocks that have arrived. @timeout: limit of the wait for a completion, as for
 * sci_completions(). Return: the number of completions; -ECANCELED: gateway_stop() has been
 * called.
 */
int gateway_step(struct rail *r, int timeout);
/* Open the gateway, and call gateway_step() in a thread of the rail. */
int gateway_start(struct rail *r);
void gateway_stop(struct rail *r);
void gateway_free(struct rail *r);
long gateway_first(struct mad_world *w, struct mad_inbox *in, void *buf, size_t size,
		   bool wait, int *rank);

#endif
