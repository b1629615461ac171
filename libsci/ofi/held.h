/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: held receives
 *
 * If no receive is posted, an endpoint holds a new receive in its struct sfi_held, and does not
 * post the receive to the message layer. An endpoint may hold several receives for messages of the
 * same peer and kind. Progress polls the ring for the held receives, in order, and copies the
 * messages from the ring to their buffers. This is faster than posting, matching and completing
 * each receive.
 *
 * sfi_held_post() posts all held receives, in order, when they cannot stay held: the program posts
 * a receive of another kind, the next message is for another receive, or a thread is going to
 * sleep.
 *
 * Context: the endpoint is locked.
 */
#ifndef LIBSCI_OFI_HELD_H
#define LIBSCI_OFI_HELD_H

#include <errno.h>

#include "libsci/ofi/ofi.h"

static inline bool sfi_has_held(const struct sfi_ep *ep)
{
	return ep->held.end != ep->held.first;
}

static __always_inline int sfi_try(struct sfi_ep *ep, struct sci_peer *peer,
				   bool tagged, struct sci_try_recv *t, int n)
{
	return tagged ? sci_try_trecvs(ep->ep, peer, SFI_TAGGED, t, n) :
			sci_try_recvs(ep->ep, peer, t, n);
}

static __always_inline void sfi_tell_received(struct sfi_ep *ep,
					      const struct sci_try_recv *t, bool tagged,
					      uint64_t flags, void *context)
{
	sfi_tell(ep, &ep->rx, FI_RECV | (tagged ? FI_TAGGED : FI_MSG), flags,
		 context, t->buf, &t->status);
}

/*
 * Return whether a receive may be held. A posted receive excludes held receives, because it matches
 * messages first. Several receives are held only for the same peer and kind, because progress polls
 * only for the first held receive.
 */
static __always_inline bool sfi_may_be_held(const struct sfi_ep *ep,
					    const struct sci_peer *peer,
					    bool tagged)
{
	const struct sfi_held *h = &ep->held;

	return !ep->receives &&
	       (h->end == h->first ||
		(h->peer == peer && h->tagged == tagged && !ep->has_waiter &&
		 h->end - h->first < SFI_HELD_MAX));
}

static __always_inline void sfi_held_add(struct sfi_ep *ep, struct sci_peer *peer,
					 bool tagged, void *buf, size_t len,
					 uint64_t tag, uint64_t ignore,
					 uint64_t flags, void *context)
{
	struct sfi_held *h = &ep->held;
	unsigned int at = h->end++ % SFI_HELD_MAX;
	struct sci_try_recv *t = &h->t[at];

	h->peer = peer;
	h->tagged = tagged;
	t->buf = buf;
	t->size = len;
	t->tag = tag;
	t->ignore = ignore;
	h->flags[at] = flags;
	h->context[at] = context;
}

/* Hold a receive with its arguments in registers. Return false if sfi_recv() must handle it. */
static __always_inline bool sfi_recv_held(struct sfi_ep *ep, fi_addr_t src,
					  bool tagged, void *buf, size_t len,
					  uint64_t tag, uint64_t ignore,
					  void *context)
{
	bool any = !ep->directed || src == FI_ADDR_UNSPEC, held = false;
	uint64_t flags = ep->rx.op_flags;
	struct sci_peer *peer = NULL;

	if (!ep->enabled || flags & FI_MULTI_RECV)
		return false;
	sfi_lock(&ep->lock);
	if (!any && src < ep->n_peers)
		peer = ep->peers[src];
	if ((any || peer) && !ep->has_waiter &&
	    sfi_may_be_held(ep, peer, tagged)) {
		sfi_held_add(ep, peer, tagged, buf, len, tag, ignore, flags,
			     context);
		held = true;
	}
	sfi_unlock(&ep->lock);
	return held;
}

/* Remove the first @n held receives. A single held receive always has the same slot. */
static inline void sfi_held_remove(struct sfi_ep *ep, unsigned int n)
{
	ep->held.first += n;
	if (ep->held.first == ep->held.end)
		ep->held.first = ep->held.end = 0;
}

/* Return how many held receives one poll handles: contiguous ones, at most SFI_BATCH. */
static inline unsigned int sfi_held_row(const struct sfi_held *h)
{
	unsigned int n = h->end - h->first;
	unsigned int row = SFI_HELD_MAX - h->first % SFI_HELD_MAX;

	n = n < row ? n : row;
	return n < SFI_BATCH ? n : SFI_BATCH;
}

/* Poll for the messages of held receives. Return true if a message was received. */
static __always_inline bool sfi_held_try(struct sfi_ep *ep)
{
	struct sfi_held *h = &ep->held;
	unsigned int at = h->first % SFI_HELD_MAX;
	int ret = sfi_try(ep, h->peer, h->tagged, &h->t[at],
			  (int)sfi_held_row(h));

	if (ret > 0)
		sfi_held_remove(ep, (unsigned int)ret);
	else if (ret != -EAGAIN)
		sfi_held_post(ep);
	for (int i = 0; i < ret; i++, at++)
		sfi_tell_received(ep, &h->t[at], h->tagged, h->flags[at],
				  h->context[at]);
	return ret > 0;
}

#endif
