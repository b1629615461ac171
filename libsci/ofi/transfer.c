// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Sends and receives, with tags or without. */
#include "libsci/ofi/onesided.h"

#include <errno.h>

/* Whatever a peer's end is called, it is told by a completion. */
bool sfi_is_peers(int error)
{
	return error != -EINVAL && error != -ENOMEM && error != -ENOTSUP;
}

static void describe(struct sfi_op *op, const struct sfi_side *s, bool tagged,
		     uint64_t what, uint64_t flags, void *context)
{
	op->cq = s->cq;
	op->cntr = s->cntr;
	op->context = context;
	op->flags = what | (tagged ? FI_TAGGED : FI_MSG);
	op->silent = s->selective && !(flags & FI_COMPLETION);
	op->done = NULL;
	op->many = false;
	op->waits = false;
	op->buf = NULL;
	op->room = 0;
}

/* sfi_ep_peer(), of whom it knows mostly. */
static inline int peer_of(struct sfi_ep *ep, fi_addr_t n, struct sci_peer **peer)
{
	if (n >= ep->n_peers || !ep->peers[n])
		return sfi_ep_peer(ep, n, peer);
	*peer = ep->peers[n];
	return 0;
}

/* ---- sends ---- */

static int send_flags(const struct sfi_send *s)
{
	int flags = SCI_SEND_AT_ONCE;

	if (s->tagged)
		flags |= SCI_SEND_TAGGED;
	if (s->flags & FI_REMOTE_CQ_DATA)
		flags |= SCI_SEND_IMM;
	if (s->flags & (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE))
		flags |= SCI_SEND_SYNC;
	if (s->flags & FI_INJECT)
		flags |= SCI_SEND_COPY;
	return flags;
}

static int send_op(struct sfi_ep *ep, struct sci_peer *peer,
		   const struct sci_send *m, const struct sfi_send *s)
{
	struct sfi_op *op = sfi_op_new(ep);
	struct sci_status st = { 0 };

	if (!op)
		return -FI_ENOMEM;
	describe(op, &ep->tx, s->tagged, FI_SEND, s->flags, s->context);
	st.error = sci_isendm(peer, m, &op->req);
	if (!st.error && op->req) {
		sci_req_queue(op->req, op);
		return 0;
	}
	st.len = sfi_length(s->iov, s->n);
	if (!st.error)
		sfi_op_told(op, &st, 0);
	else if (sfi_is_peers(st.error))
		sfi_op_failed(op, &st);
	sfi_op_free(op);
	return sfi_is_peers(st.error) ? 0 : st.error;
}

static int send_to(struct sfi_ep *ep, const struct sfi_send *s)
{
	struct sci_send m = {
		.iov = s->iov, .n = s->n, .tag = s->tag, .imm = s->data,
		.context = SFI_TAGGED, .flags = (uint32_t)send_flags(s),
	};
	struct sci_peer *peer;
	int ret = peer_of(ep, s->dest, &peer);

	if (ret)
		return ret;
	return send_op(ep, peer, &m, s);
}

ssize_t sfi_send(struct sfi_ep *ep, const struct sfi_send *s)
{
	ssize_t ret;

	if (s->n > SFI_IOV_MAX)
		return -FI_EINVAL;
	if (s->flags & FI_INJECT && sfi_length(s->iov, s->n) > SFI_INJECT_MAX)
		return -FI_EMSGSIZE;
	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	sfi_lock(&ep->lock);
	ret = send_to(ep, s);
	sfi_unlock(&ep->lock);
	return ret;
}

/*
 * Nobody hears of its end, and nothing of it is remembered.  Who is faster than its
 * receiver has to wait: copies that queue up would only fill the cache.
 */
ssize_t sfi_inject(struct sfi_ep *ep, fi_addr_t dest, struct sci_send *m)
{
	struct sci_peer *peer;
	int ret;

	if (m->iov->iov_len > SFI_INJECT_MAX)
		return -FI_EMSGSIZE;
	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	m->flags |= SCI_SEND_COPY | SCI_SEND_AT_ONCE;
	sfi_lock(&ep->lock);
	ret = peer_of(ep, dest, &peer);
	if (!ret)
		ret = sci_isendm(peer, m, NULL);
	sfi_unlock(&ep->lock);
	if (!ret)
		sfi_cntr_count(ep->tx.cntr, 0);
	return ret;
}

/* ---- receives ---- */

static int post(struct sfi_op *op, const struct sfi_recv *r)
{
	struct sfi_ep *ep = op->ep;

	if (r->tagged)
		return sci_itrecvv(ep->ep, op->peer, SFI_TAGGED, r->tag,
				   r->ignore, r->iov, r->n, &op->req);
	return sci_irecvv(ep->ep, op->peer, r->iov, r->n, &op->req);
}

static int recv_op(struct sfi_ep *ep, const struct sfi_recv *r)
{
	struct sfi_op *op = sfi_op_new(ep);
	struct sci_status st = { 0 };

	if (!op)
		return -FI_ENOMEM;
	describe(op, &ep->rx, r->tagged, FI_RECV, r->flags, r->context);
	op->buf = r->n ? r->iov[0].iov_base : NULL;
	op->room = sfi_length(r->iov, r->n);
	op->many = !r->tagged && r->flags & FI_MULTI_RECV;
	op->peer = NULL;
	if (ep->directed && r->src != FI_ADDR_UNSPEC)
		st.error = peer_of(ep, r->src, &op->peer);
	if (!st.error && op->many && sfi_many_before(ep, op->peer)) {
		op->waits = true;
		sfi_op_pending(op);
		return 0;
	}
	if (!st.error)
		st.error = post(op, r);
	if (!st.error) {
		sfi_op_pending(op);
		sci_req_queue(op->req, op);
		return 0;
	}
	if (sfi_is_peers(st.error)) {
		sfi_op_failed(op, &st);
		st.error = 0;
	}
	sfi_op_free(op);
	return st.error;
}

ssize_t sfi_recv(struct sfi_ep *ep, const struct sfi_recv *r)
{
	ssize_t ret;

	if (r->n > SFI_IOV_MAX || (r->flags & FI_MULTI_RECV && r->n != 1))
		return -FI_EINVAL;
	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	sfi_lock(&ep->lock);
	ret = recv_op(ep, r);
	sfi_unlock(&ep->lock);
	return ret;
}

/* ---- matching apart from receiving ---- */

static void tell(struct sfi_ep *ep, const struct sfi_recv *r,
		 struct sci_status *st)
{
	struct sfi_op op = { .ep = ep };

	describe(&op, &ep->rx, r->tagged, FI_RECV, r->flags, r->context);
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
	describe(op, &ep->rx, r->tagged, FI_RECV, r->flags, r->context);
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
	ret = r->flags & FI_PEEK ? peek(ep, r) : claim(ep, r);
	sfi_unlock(&ep->lock);
	return ret;
}
