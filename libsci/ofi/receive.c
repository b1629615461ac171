// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Receives: held (held.h) or posted. */
#include "libsci/ofi/held.h"
#include "libsci/ofi/onesided.h"

#include <errno.h>

static uint64_t recv_get_flags(const struct sfi_recv *r)
{
	return FI_RECV | (r->tagged ? FI_TAGGED : FI_MSG);
}

/* ---- posted receives ---- */

static int recv_post(struct sfi_op *op, const struct sfi_recv *r, struct sci_peer *peer)
{
	struct sfi_ep *ep = op->ep;

	if (op->many)
		return sci_irecv_many(ep->ep, peer, op->buf, op->room,
				      ep->min_multi_recv, op, &op->req);
	if (r->tagged)
		return sci_itrecvv(ep->ep, peer, SFI_TAGGED, r->tag, r->ignore, r->iov,
				   r->n, &op->req);
	return sci_irecvv(ep->ep, peer, r->iov, r->n, &op->req);
}

/* Post a receive. @error: not 0 if its peer cannot be reached */
static int op_post(struct sfi_ep *ep, const struct sfi_recv *r,
		   struct sci_peer *peer, int error)
{
	struct sfi_op *op = sfi_op_new(ep);

	if (!op)
		return -FI_ENOMEM;
	sfi_op_describe(op, &ep->rx, recv_get_flags(r), r->flags, r->context);
	op->buf = r->n ? r->iov[0].iov_base : NULL;
	op->room = sfi_length(r->iov, r->n);
	op->many = !r->tagged && r->flags & FI_MULTI_RECV;
	if (!error)
		error = recv_post(op, r, peer);
	if (error)
		return sfi_op_not_begun(op, error);
	sfi_op_pending(op);
	if (!op->many)
		sci_req_queue(op->req, op);
	return 0;
}

/* ---- held receives ---- */

/* Return held receive @i with the arguments that the program passed. */
static struct sfi_recv held_recv(const struct sfi_ep *ep, unsigned int i,
				 struct iovec *iov)
{
	unsigned int at = i % SFI_HELD_MAX;
	const struct sci_try_recv *t = &ep->held.t[at];

	*iov = (struct iovec){ .iov_base = t->buf, .iov_len = t->size };
	return (struct sfi_recv){
		.iov = iov, .n = 1, .tag = t->tag, .ignore = t->ignore,
		.flags = ep->held.flags[at], .context = ep->held.context[at],
		.tagged = ep->held.tagged,
	};
}

/* Report the error of a held receive by a completion: its call has returned success already. */
static void recv_fail(struct sfi_ep *ep, const struct sfi_recv *r, int error)
{
	const struct sci_status st = { .error = error };
	struct sfi_op op = { .ep = ep };

	sfi_op_describe(&op, &ep->rx, recv_get_flags(r), r->flags, r->context);
	op.buf = r->iov->iov_base;
	sfi_op_failed(&op, &st);
}

/* Post all held receives, in order. Context: the endpoint is locked. */
void sfi_held_post(struct sfi_ep *ep)
{
	while (sfi_has_held(ep)) {
		struct iovec iov;
		struct sfi_recv r = held_recv(ep, ep->held.first, &iov);
		int ret;

		sfi_held_remove(ep, 1);
		ret = op_post(ep, &r, ep->held.peer, 0);
		if (ret)
			recv_fail(ep, &r, ret);
	}
}

/* Cancel the held receive with @context. Return false if there is no such receive. */
bool sfi_held_cancel(struct sfi_ep *ep, const void *context)
{
	struct sfi_held *h = &ep->held;
	struct sfi_recv r;
	struct iovec iov;
	unsigned int i;

	for (i = h->first; i != h->end; i++)
		if (h->context[i % SFI_HELD_MAX] == context)
			break;
	if (i == h->end)
		return false;
	r = held_recv(ep, i, &iov);
	for (; i != h->first; i--) {
		unsigned int to = i % SFI_HELD_MAX, from = (i - 1) % SFI_HELD_MAX;

		h->t[to] = h->t[from];
		h->flags[to] = h->flags[from];
		h->context[to] = h->context[from];
	}
	sfi_held_remove(ep, 1);
	recv_fail(ep, &r, -ECANCELED);
	return true;
}

/*
 * Poll for the message of a new receive, if threads may sleep for completions: a message that has
 * arrived must wake them. The progress thread may sleep, too: after it has taken the message as
 * unexpected, it does not poll for a held receive. Other programs poll soon anyway, and an early
 * poll costs the sender a cache miss if the sender is writing the same line.
 */
static inline int recv_try_now(struct sfi_ep *ep, const struct sfi_recv *r,
			       struct sci_peer *peer)
{
	struct sci_try_recv t = {
		.buf = r->iov->iov_base, .size = r->iov->iov_len,
		.tag = r->tag, .ignore = r->ignore,
	};
	int ret = sfi_try(ep, peer, r->tagged, &t, 1);

	if (ret <= 0)
		return ret;
	sfi_tell_received(ep, &t, r->tagged, r->flags, r->context);
	sfi_ep_at_once(ep);
	return ret;
}

static int recv_call(struct sfi_ep *ep, const struct sfi_recv *r)
{
	struct sci_peer *peer = NULL;
	int error = 0, ret;

	if (ep->directed && r->src != FI_ADDR_UNSPEC)
		error = sfi_ep_known(ep, r->src, &peer);
	if (!error && r->n == 1 && !(r->flags & FI_MULTI_RECV) &&
	    sfi_may_be_held(ep, peer, r->tagged)) {
		ret = ep->has_waiter ? recv_try_now(ep, r, peer) : -EAGAIN;
		if (ret > 0)
			return 0;
		if (ret == -EAGAIN) {
			sfi_held_add(ep, peer, r->tagged, r->iov->iov_base,
				     r->iov->iov_len, r->tag, r->ignore, r->flags,
				     r->context);
			return 0;
		}
	}
	sfi_held_post(ep);
	return op_post(ep, r, peer, error);
}

ssize_t sfi_recv(struct sfi_ep *ep, const struct sfi_recv *r)
{
	ssize_t ret;

	if (r->n > SFI_IOV_MAX || (r->flags & FI_MULTI_RECV && r->n != 1))
		return -FI_EINVAL;
	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	sfi_lock(&ep->lock);
	ret = recv_call(ep, r);
	sfi_unlock(&ep->lock);
	return ret;
}

/* ---- FI_PEEK and FI_CLAIM ---- */

static void recv_report(struct sfi_ep *ep, const struct sfi_recv *r,
			struct sci_status *st)
{
	struct sfi_op op = { .ep = ep };

	sfi_op_describe(&op, &ep->rx, recv_get_flags(r), r->flags, r->context);
	op.cntr = NULL;
	op.silent = false;
	if (st->error)
		sfi_op_failed(&op, st);
	else
		sfi_op_told(&op, st, r->flags & (FI_PEEK | FI_CLAIM | FI_DISCARD));
}

static int recv_find_message(struct sfi_ep *ep, const struct sfi_recv *r,
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

static int recv_peek(struct sfi_ep *ep, const struct sfi_recv *r)
{
	struct sci_status st = { 0 };
	struct sci_peer *peer = NULL;
	struct sci_msg *msg = NULL;
	int ret = 0;

	if (ep->directed && r->src != FI_ADDR_UNSPEC)
		ret = sfi_ep_peer(ep, r->src, &peer);
	if (ret)
		return ret;
	st.error = recv_find_message(ep, r, peer, &msg, &st);
	if (st.error == -EAGAIN)
		st.error = -FI_ENOMSG;
	else if (!st.error && r->flags & FI_DISCARD)
		sci_msg_free(msg);
	else if (!st.error && r->flags & FI_CLAIM)
		((struct fi_context *)r->context)->internal[0] = msg;
	recv_report(ep, r, &st);
	return 0;
}

/* Receive the message that FI_PEEK with FI_CLAIM has found. */
static int recv_claim(struct sfi_ep *ep, const struct sfi_recv *r)
{
	struct sci_msg *msg = ((struct fi_context *)r->context)->internal[0];
	struct sci_status st = { 0 };
	struct sfi_op *op;
	int ret;

	if (r->flags & FI_DISCARD) {
		sci_msg_free(msg);
		recv_report(ep, r, &st);
		return 0;
	}
	op = sfi_op_new(ep);
	if (!op)
		return -FI_ENOMEM;
	sfi_op_describe(op, &ep->rx, recv_get_flags(r), r->flags, r->context);
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
	sfi_held_post(ep);
	ret = r->flags & FI_PEEK ? recv_peek(ep, r) : recv_claim(ep, r);
	sfi_unlock(&ep->lock);
	return ret;
}
