/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: receives in hand
 *
 * Receives from one peer stay in hand, while none of the program's is posted: progress
 * tries them in their order, as many as there are messages, which go straight from
 * their ring to the buffers.  That takes less time than to post each, to match it and
 * to be told.  If something else is in the way of that, or what comes would be for
 * another one, or somebody sleeps, all of them are posted, in their order:
 * sfi_hand_post().
 *
 * The endpoint is locked.
 */
#ifndef LIBSCI_OFI_HAND_H
#define LIBSCI_OFI_HAND_H

#include <errno.h>

#include "libsci/ofi/ofi.h"

static inline bool sfi_in_hand(const struct sfi_ep *ep)
{
	return ep->hand.end != ep->hand.first;
}

static __always_inline int sfi_try(struct sfi_ep *ep, struct sci_peer *peer,
				   bool tagged, struct sci_try *t, int n)
{
	return tagged ? sci_try_trecvs(ep->ep, peer, SFI_TAGGED, t, n) :
			sci_try_recvs(ep->ep, peer, t, n);
}

static __always_inline void sfi_tell_received(struct sfi_ep *ep,
					      const struct sci_try *t, bool tagged,
					      uint64_t flags, void *context)
{
	sfi_tell(ep, &ep->rx, FI_RECV | (tagged ? FI_TAGGED : FI_MSG), flags,
		 context, t->buf, &t->status);
}

static inline void sfi_hand_add(struct sfi_ep *ep, const struct sfi_recv *r,
				struct sci_peer *peer)
{
	unsigned int at = ep->hand.end++ % SFI_HELD_MAX;
	struct sci_try *t = &ep->hand.t[at];

	ep->hand.peer = peer;
	ep->hand.tagged = r->tagged;
	t->buf = r->iov->iov_base;
	t->size = r->iov->iov_len;
	t->tag = r->tag;
	t->ignore = r->ignore;
	ep->hand.flags[at] = r->flags;
	ep->hand.context[at] = r->context;
}

/* The first @n have ended.  Who has one at a time has it in the same place. */
static inline void sfi_hand_remove(struct sfi_ep *ep, unsigned int n)
{
	ep->hand.first += n;
	if (ep->hand.first == ep->hand.end)
		ep->hand.first = ep->hand.end = 0;
}

/* How many of them are tried together; they lie in a row. */
static inline unsigned int sfi_hand_row(const struct sfi_hand *h)
{
	unsigned int n = h->end - h->first;
	unsigned int row = SFI_HELD_MAX - h->first % SFI_HELD_MAX;

	n = n < row ? n : row;
	return n < SFI_BATCH ? n : SFI_BATCH;
}

/* Progress for them: true if any message was there. */
static __always_inline bool sfi_hand_try(struct sfi_ep *ep)
{
	struct sfi_hand *h = &ep->hand;
	unsigned int at = h->first % SFI_HELD_MAX;
	int ret = sfi_try(ep, h->peer, h->tagged, &h->t[at],
			  (int)sfi_hand_row(h));

	if (ret > 0)
		sfi_hand_remove(ep, (unsigned int)ret);
	else if (ret != -EAGAIN)
		sfi_hand_post(ep);
	for (int i = 0; i < ret; i++, at++)
		sfi_tell_received(ep, &h->t[at], h->tagged, h->flags[at],
				  h->context[at]);
	return ret > 0;
}

#endif
