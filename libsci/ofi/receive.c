// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: receives
 *
 * A receive whose message is probably here is tried at once: it goes straight from
 * its ring to the buffer, and nothing has to be remembered.  Those that have to wait,
 * from one peer, while no receive of the program's is posted, stay in hand: progress
 * tries the first of them, which takes less time than to post it, to match it and to
 * be told.  If something else is in the way of that, or what comes would be for
 * another one, or somebody sleeps, all of them are posted, in their order:
 * sfi_hand_post().
 */
#include "libsci/ofi/onesided.h"

#include <errno.h>

static uint64_t what_of(const struct sfi_recv *r)
{
	return FI_RECV | (r->tagged ? FI_TAGGED : FI_MSG);
}

/* ---- posted ---- */

static int post(struct sfi_op *op, const struct sfi_recv *r)
{
	struct sfi_ep *ep = op->ep;

	if (r->tagged)
		return sci_itrecvv(ep->ep, op->peer, SFI_TAGGED, r->tag,
				   r->ignore, r->iov, r->n, &op->req);
	return sci_irecvv(ep->ep, op->peer, r->iov, r->n, &op->req);
}

/* @error: why its peer is not known */
static int post_op(struct sfi_ep *ep, const struct sfi_recv *r,
		   struct sci_peer *peer, int error)
{
	struct sfi_op *op = sfi_op_new(ep);

	if (!op)
		return -FI_ENOMEM;
	sfi_op_describe(op, &ep->rx, what_of(r), r->flags, r->context);
	op->buf = r->n ? r->iov[0].iov_base : NULL;
	op->room = sfi_length(r->iov, r->n);
	op->many = !r->tagged && r->flags & FI_MULTI_RECV;
	op->peer = peer;
	op->waits = !error && op->many && sfi_many_before(ep, peer);
	if (!error && !op->waits)
		error = post(op, r);
	if (error)
		return sfi_op_not_begun(op, error);
	sfi_op_pending(op);
	if (!op->waits)
		sci_req_queue(op->req, op);
	return 0;
}

/* ---- at once, or in hand ---- */

static inline int try(struct sfi_ep *ep, const struct sfi_recv *r,
		      struct sci_peer *peer)
{
	void *buf = r->iov->iov_base;
	size_t len = r->iov->iov_len;
	struct sci_status st;
	int ret;

	if (r->tagged)
		ret = sci_try_trecv(ep->ep, peer, SFI_TAGGED, r->tag, r->ignore,
				    buf, len, &st);
	else
		ret = sci_try_recv(ep->ep, peer, buf, len, &st);
	if (!ret)
		sfi_tell(ep, &ep->rx, what_of(r), r->flags, r->context, buf, &st);
	return ret;
}

/*
 * Is it here already?  A look at a line that its sender is about to write costs the
 * sender a transfer, 0.1 us where the CPUs are far apart, and in an exchange both
 * sides would look just then.  So there is none until two messages in a row were
 * here when first looked for, as in streams whose receiver is the slower one; but
 * where somebody may be asleep, who has to be woken by what is here, there always is.
 */
#define HERE	2u

static inline void looked(struct sfi_ep *ep, bool was_here)
{
	if (!was_here)
		ep->hand.here = 0;
	else if (ep->hand.here < HERE)
		ep->hand.here++;
}

/* The one after so many others. */
static inline struct sfi_held *held(struct sfi_ep *ep, unsigned int i)
{
	struct sfi_held *h = ep->hand.first + i;

	return h < ep->held + SFI_HELD_MAX ? h : h - SFI_HELD_MAX;
}

/* Word by word: copies of more at once would wait for what was stored just now. */
static inline void put(struct sfi_held *h, const struct sfi_recv *r,
		       const struct iovec *iov, struct sci_peer *peer)
{
	h->r.iov = &h->iov;
	h->r.n = r->n;
	h->r.src = r->src;
	h->r.tag = r->tag;
	h->r.ignore = r->ignore;
	h->r.flags = r->flags;
	h->r.context = r->context;
	h->r.tagged = r->tagged;
	h->iov = *iov;
	h->peer = peer;
}

static inline void hold(struct sfi_ep *ep, const struct sfi_recv *r,
			struct sci_peer *peer)
{
	/* who has one at a time has it in the same place */
	if (!ep->hand.n)
		ep->hand.first = ep->held;
	put(held(ep, ep->hand.n++), r, r->iov, peer);
}

static inline void release_first(struct sfi_ep *ep)
{
	ep->hand.first = held(ep, 1);
	ep->hand.n--;
}

/* The program has been told that it is posted. */
static void fail(struct sfi_ep *ep, const struct sfi_recv *r, int error)
{
	const struct sci_status st = { .error = error };
	struct sfi_op op = { .ep = ep };

	sfi_op_describe(&op, &ep->rx, what_of(r), r->flags, r->context);
	op.buf = r->iov->iov_base;
	sfi_op_failed(&op, &st);
}

/* The endpoint is locked, here and below. */
void sfi_hand_post(struct sfi_ep *ep)
{
	while (ep->hand.n) {
		struct sfi_held h;
		int ret;

		put(&h, &ep->hand.first->r, &ep->hand.first->iov,
		    ep->hand.first->peer);
		release_first(ep);
		ret = post_op(ep, &h.r, h.peer, 0);
		if (ret)
			fail(ep, &h.r, ret);
	}
}

/* False: none of them has this context. */
bool sfi_hand_cancel(struct sfi_ep *ep, const void *context)
{
	struct sfi_held h, *next;
	unsigned int i;

	for (i = 0; i < ep->hand.n && held(ep, i)->r.context != context; i++)
		;
	if (i == ep->hand.n)
		return false;
	put(&h, &held(ep, i)->r, &held(ep, i)->iov, NULL);
	for (; i + 1 < ep->hand.n; i++) {
		next = held(ep, i + 1);
		put(held(ep, i), &next->r, &next->iov, next->peer);
	}
	ep->hand.n--;
	fail(ep, &h.r, -ECANCELED);
	return true;
}

/* Progress for the first one in hand: true if its message was there. */
bool sfi_hand_try(struct sfi_ep *ep)
{
	const struct sfi_held *h = ep->hand.first;
	int ret = try(ep, &h->r, h->peer);

	if (ep->hand.fresh)
		looked(ep, !ret);
	ep->hand.fresh = false;
	if (!ret)
		release_first(ep);
	else if (ret != -EAGAIN)
		sfi_hand_post(ep);
	return !ret;
}

/* None that is posted could come before it. */
static inline bool may_be_held(const struct sfi_ep *ep, const struct sfi_recv *r)
{
	return r->n == 1 && !(r->flags & FI_MULTI_RECV) && !ep->receives;
}

/*
 * Behind others?  From the same peer only: another's messages are not looked for
 * while the first one waits.  Sleepers have to be woken by what is here.
 */
static inline bool may_queue(struct sfi_ep *ep, const struct sci_peer *peer)
{
	return ep->hand.n < SFI_HELD_MAX && ep->hand.first->peer == peer &&
	       !ep->may_sleep;
}

/* 0, or -EAGAIN: it is in hand; others: it has to be posted. */
static inline int try_or_hold(struct sfi_ep *ep, const struct sfi_recv *r,
			      struct sci_peer *peer)
{
	bool looks = ep->hand.here == HERE || ep->may_sleep;
	int ret = -EAGAIN;

	if (looks) {
		ret = try(ep, r, peer);
		looked(ep, !ret);
	}
	if (ret == -EAGAIN) {
		ep->hand.fresh = !looks;
		hold(ep, r, peer);
	} else if (!ret) {
		sfi_ep_at_once(ep);
	}
	return ret;
}

static int receive(struct sfi_ep *ep, const struct sfi_recv *r)
{
	struct sci_peer *peer = NULL;
	int error = 0, ret;

	if (ep->directed && r->src != FI_ADDR_UNSPEC)
		error = sfi_ep_known(ep, r->src, &peer);
	if (!error && may_be_held(ep, r)) {
		if (ep->hand.n && may_queue(ep, peer)) {
			hold(ep, r, peer);
			return 0;
		}
		ret = ep->hand.n ? -EBUSY : try_or_hold(ep, r, peer);
		if (!ret || ret == -EAGAIN)
			return 0;
	}
	sfi_hand_post(ep);
	return post_op(ep, r, peer, error);
}

ssize_t sfi_recv(struct sfi_ep *ep, const struct sfi_recv *r)
{
	ssize_t ret;

	if (r->n > SFI_IOV_MAX || (r->flags & FI_MULTI_RECV && r->n != 1))
		return -FI_EINVAL;
	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	sfi_lock(&ep->lock);
	ret = receive(ep, r);
	sfi_unlock(&ep->lock);
	return ret;
}

/* ---- matching apart from receiving ---- */

static void tell(struct sfi_ep *ep, const struct sfi_recv *r,
		 struct sci_status *st)
{
	struct sfi_op op = { .ep = ep };

	sfi_op_describe(&op, &ep->rx, what_of(r), r->flags, r->context);
	op.cntr = NULL;
	op.silent = false;
	if (st->error)
		sfi_op_failed(&op, st);
	else
		sfi_op_told(&op, st, r->flags & (FI_PEEK | FI_CLAIM | FI_DISCARD));
}

static int look(struct sfi_ep *ep, const struct sfi_recv *r,
		struct sci_peer *peer, struct sci_msg **msg,
		struct sci_status *st)
{
	bool takes = r->flags & (FI_CLAIM | FI_DISCARD);

	if (r->tagged && takes)
		return sci_tmatch(ep->ep, peer, SFI_TAGGED, r->tag, r->ignore, 0,
				  msg, st);
	if (r->tagged)
		return sci_tprobe(ep->ep, peer, SFI_TAGGED, r->tag, r->ignore, 0,
				  st);
	return takes ? sci_match(ep->ep, peer, 0, msg, st) :
		       sci_probe(ep->ep, peer, 0, st);
}

static int peek(struct sfi_ep *ep, const struct sfi_recv *r)
{
	struct sci_status st = { 0 };
	struct sci_peer *peer = NULL;
	struct sci_msg *msg = NULL;
	int ret = 0;

	if (ep->directed && r->src != FI_ADDR_UNSPEC)
		ret = sfi_ep_peer(ep, r->src, &peer);
	if (ret)
		return ret;
	st.error = look(ep, r, peer, &msg, &st);
	if (st.error == -EAGAIN)
		st.error = -FI_ENOMSG;
	else if (!st.error && r->flags & FI_DISCARD)
		sci_msg_free(msg);
	else if (!st.error && r->flags & FI_CLAIM)
		((struct fi_context *)r->context)->internal[0] = msg;
	tell(ep, r, &st);
	return 0;
}

/* What a look with FI_CLAIM has found. */
static int claim(struct sfi_ep *ep, const struct sfi_recv *r)
{
	struct sci_msg *msg = ((struct fi_context *)r->context)->internal[0];
	struct sci_status st = { 0 };
	struct sfi_op *op;
	int ret;

	if (r->flags & FI_DISCARD) {
		sci_msg_free(msg);
		tell(ep, r, &st);
		return 0;
	}
	op = sfi_op_new(ep);
	if (!op)
		return -FI_ENOMEM;
	sfi_op_describe(op, &ep->rx, what_of(r), r->flags, r->context);
	op->room = sfi_length(r->iov, r->n);
	ret = sci_msg_recv(msg, r->iov, r->n, &op->req);
	if (ret) {
		sfi_op_free(op);
		return ret;
	}
	sci_req_queue(op->req, op);
	return 0;
}

ssize_t sfi_look(struct sfi_ep *ep, const struct sfi_recv *r)
{
	ssize_t ret;

	if (r->n > SFI_IOV_MAX || (r->flags & FI_CLAIM && !r->context))
		return -FI_EINVAL;
	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	sfi_lock(&ep->lock);
	sfi_hand_post(ep);
	ret = r->flags & FI_PEEK ? peek(ep, r) : claim(ep, r);
	sfi_unlock(&ep->lock);
	return ret;
}
