// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* One-sided transfers and atomics: the side of the initiator. */
#include "libsci/ofi/onesided.h"

#include <errno.h>
#include <string.h>

size_t sfi_length(const struct iovec *iov, size_t n)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i++)
		len += iov[i].iov_len;
	return len;
}

/* ---- completion ---- */

static int rma_refusal(uint64_t imm)
{
	return imm && imm < 4096 ? -(int)imm : -EPROTO;
}

/*
 * Return the error of a reply, a send or a direct transfer. A reply of the wrong length is a
 * protocol error. A direct transfer to a closed region finds no segment.
 */
static int reply_get_error(const struct sci_status *st)
{
	int error = st->flags & SCI_STATUS_IMM ? rma_refusal(st->imm) : st->error;

	if (error == -ENOENT)
		return -FI_ENOKEY;
	return error == -EMSGSIZE ? -EPROTO : error;
}

/* Handle the completion of a message of @op: of the reply, or of the bytes of a long write. */
static void part_complete(struct sfi_op *op, const struct sci_status *st)
{
	struct sci_status all = { 0 };
	int error = reply_get_error(st);

	/* the reply to a write has no bytes */
	if (!error && !(op->flags & FI_WRITE) && st->len != op->room)
		error = -EPROTO;
	/* keep the target's refusal, which is the cause of the other errors */
	if (!op->error || st->flags & SCI_STATUS_IMM)
		op->error = error;
	if (--op->parts)
		return;
	op->ep->asking--;
	all.error = op->error;
	if (op->error)
		sfi_op_failed(op, &all);
	else
		sfi_op_told(op, &all, 0);
	sfi_op_free(op);
}

/* ---- requests ---- */

static uint64_t ask_get_flags(const struct sfi_ask *a)
{
	switch (a->verb) {
	case SFI_WRITE:
		return FI_RMA | FI_WRITE;
	case SFI_READ:
		return FI_RMA | FI_READ;
	case SFI_ATOMIC:
		return FI_ATOMIC | FI_WRITE;
	default:
		return FI_ATOMIC | FI_READ;
	}
}

static struct sfi_op *ask_op_new(struct sfi_ep *ep, const struct sfi_ask *a)
{
	struct sfi_op *op = sfi_op_new(ep);

	if (!op)
		return NULL;
	op->cq = ep->tx.cq;
	op->flags = ask_get_flags(a);
	op->cntr = op->flags & FI_WRITE ? ep->writes : ep->reads;
	op->context = a->context;
	op->silent = a->untold ||
		     (ep->tx.selective && !(a->flags & FI_COMPLETION));
	op->many = false;
	op->buf = NULL;
	op->done = part_complete;
	op->parts = 1;
	op->error = 0;
	op->room = sfi_length(a->in, a->n_in);
	ep->asking++;
	return op;
}

static size_t request_fill(struct sfi_request *r, const struct sfi_ask *a)
{
	*r = (struct sfi_request){
		.verb = (uint8_t)a->verb, .type = (uint8_t)a->type,
		.op = (uint8_t)a->op, .places = (uint8_t)a->n_places,
		.apart = a->verb == SFI_WRITE &&
			 sfi_length(a->out, a->n_out) > SFI_INLINE_MAX,
		.has_data = !!(a->flags & FI_REMOTE_CQ_DATA),
	};
	memcpy(r->place, a->places, a->n_places * sizeof(*a->places));
	return offsetof(struct sfi_request, place) +
	       a->n_places * sizeof(*a->places);
}

static size_t pieces_copy(char *to, const struct iovec *iov, size_t n)
{
	size_t len = 0;

	for (; n; n--, iov++) {
		if (iov->iov_len)
			memcpy(to + len, iov->iov_base, iov->iov_len);
		len += iov->iov_len;
	}
	return len;
}

static int request_send(struct sci_peer *peer, const struct sfi_ask *a,
			uint64_t id, const struct sfi_request *r, size_t len)
{
	char buf[SFI_REQUEST_MAX];

	memcpy(buf, r, len);
	if (r->has_data) {
		memcpy(buf + len, &a->data, sizeof(a->data));
		len += sizeof(a->data);
	}
	if (!r->apart) {
		len += pieces_copy(buf + len, a->out, a->n_out);
		len += pieces_copy(buf + len, a->compare, a->n_compare);
	}
	return sci_handler_send(peer, SFI_HANDLER, id, buf, len);
}

/* Send the bytes of a long write. The operation completes after its reply and these bytes. */
static int bytes_send(struct sci_peer *peer, const struct sfi_ask *a,
		      uint64_t id, struct sfi_op *op)
{
	const struct sci_send m = {
		.iov = a->out, .n = a->n_out, .tag = id,
		.context = SFI_BYTES, .flags = SCI_SEND_TAGGED,
	};
	struct sci_req *req;
	int ret = sci_isendm(peer, &m, &req);

	if (ret)
		return ret;
	op->parts++;
	return sci_req_queue(req, op);
}

static int op_cancel_begin(struct sfi_op *op, int error)
{
	op->ep->asking--;
	return sfi_op_not_begun(op, error);
}

/* Send a request. The receive for its reply is posted first, so the reply is never unexpected. */
static int ask_by_message(struct sfi_ep *ep, const struct sfi_ask *a,
			  struct sci_peer *peer, struct sfi_op *op)
{
	struct sfi_request r;
	size_t len = request_fill(&r, a);
	uint64_t id = ep->next_id;
	int ret = sci_itrecvv(ep->ep, peer, SFI_REPLY, id, 0, a->in, a->n_in,
			      &op->req);

	if (ret)
		return op_cancel_begin(op, ret);
	ep->next_id++;
	sci_req_queue(op->req, op);
	ret = request_send(peer, a, id, &r, len);
	if (!ret && r.apart)
		ret = bytes_send(peer, a, id, op);
	if (!ret)
		return 0;
	/* the cancelled receive reports the error, except for -EAGAIN, which this call returns */
	op->error = ret;
	if (ret == -EAGAIN) {
		op->silent = true;
		op->cq = NULL;
		op->cntr = NULL;
	}
	sci_cancel(op->req);
	return ret == -EAGAIN ? ret : 0;
}

/* ---- direct access to exported regions ---- */

/* Return whether this endpoint can access the target's region directly. */
static bool region_is_exported(const struct sfi_ep *ep, const struct sfi_ask *a)
{
	const struct sfi_domain *d = ep->domain;

	return d->own_keys && !d->by_address && a->n_places == 1 &&
	       a->places->key & SFI_KEY_EXPORTED;
}

/*
 * Return whether to transfer directly. Each load through an adapter waits for a packet: for more
 * than 64 bytes, a request to the target is faster.
 */
static bool ask_is_direct(const struct sfi_ep *ep, const struct sfi_ask *a)
{
	return a->verb <= SFI_READ && region_is_exported(ep, a) &&
	       !(a->flags & FI_INJECT) &&
	       (a->verb == SFI_WRITE || ep->traits & SCI_TRAIT_FAST_READS ||
		a->places->len <= 64);
}

/* Return whether this atomic can be direct: one value, each operand in one piece. Set *@rmw. */
static bool ask_is_direct_atomic(const struct sfi_ep *ep, const struct sfi_ask *a,
			     struct sci_rmw *rmw)
{
	size_t size = sfi_atomic_size(a->type);

	return a->verb > SFI_READ && region_is_exported(ep, a) &&
	       !(a->flags & FI_REMOTE_CQ_DATA) &&
	       a->places->len == size && !(a->places->addr % size) &&
	       a->n_out <= 1 && a->n_compare <= 1 && a->n_in <= 1 &&
	       sfi_atomic_direct(a->type, a->op, a->n_out ? a->out->iov_base : NULL,
				 a->n_compare ? a->compare->iov_base : NULL, rmw);
}

/* Begin a direct transfer. @rmw: the operation of an atomic, or NULL */
static int ask_directly(const struct sfi_ask *a, struct sci_peer *peer,
			struct sfi_op *op, const struct sci_rmw *rmw)
{
	/* the fabric checks the segment's length */
	const struct sci_key key = {
		.segment = SFI_KEY_SEGMENT(a->places->key), .len = UINT64_MAX,
	};
	uint64_t at = a->places->addr;
	int ret;

	if (rmw)
		ret = sci_irmw(peer, &key, at, rmw, a->n_in ? a->in->iov_base : NULL,
			       &op->req);
	else if (a->verb == SFI_WRITE && a->flags & FI_REMOTE_CQ_DATA)
		ret = sci_iwrite_imm(peer, &key, at, a->out, a->n_out, a->data, &op->req);
	else if (a->verb == SFI_WRITE)
		ret = sci_iwritev(peer, &key, at, a->out, a->n_out, &op->req);
	else
		ret = sci_ireadv(peer, &key, at, a->in, a->n_in, &op->req);
	if (ret)
		return op_cancel_begin(op, ret);
	sci_req_queue(op->req, op);
	return 0;
}

static int rma_ask(struct sfi_ep *ep, const struct sfi_ask *a)
{
	struct sci_peer *peer;
	struct sci_rmw rmw;
	struct sfi_op *op;
	int ret = sfi_ep_peer(ep, a->peer, &peer);

	if (ret)
		return ret;
	if (ep->asking >= SFI_ASKING_MAX)
		return -FI_EAGAIN;
	op = ask_op_new(ep, a);
	if (!op)
		return -FI_ENOMEM;
	if (ask_is_direct(ep, a))
		return ask_directly(a, peer, op, NULL);
	if (ask_is_direct_atomic(ep, a, &rmw))
		return ask_directly(a, peer, op, &rmw);
	return ask_by_message(ep, a, peer, op);
}

static bool ask_fits(const struct sfi_ask *a)
{
	bool gives = a->verb != SFI_READ && a->op != FI_ATOMIC_READ;
	uint64_t there = 0;

	if (!a->n_places || a->n_places > SFI_RMA_IOV_MAX ||
	    a->n_out > SFI_IOV_MAX || a->n_in > SFI_IOV_MAX ||
	    a->n_compare > SFI_IOV_MAX)
		return false;
	for (size_t i = 0; i < a->n_places; i++)
		if (__builtin_add_overflow(there, a->places[i].len, &there))
			return false;
	return (a->verb == SFI_ATOMIC || a->verb == SFI_WRITE ||
		sfi_length(a->in, a->n_in) == there) &&
	       sfi_length(a->out, a->n_out) == (gives ? there : 0) &&
	       (a->verb != SFI_COMPARE ||
		sfi_length(a->compare, a->n_compare) == there);
}

ssize_t sfi_ask(struct sfi_ep *ep, const struct sfi_ask *a)
{
	uint64_t what = a->verb <= SFI_READ ? FI_RMA : FI_ATOMIC;
	ssize_t ret;

	if (!(ep->caps & what))
		return -FI_EOPNOTSUPP;
	if (!ask_fits(a) || a->flags & FI_FENCE)
		return -FI_EINVAL;
	if (a->flags & FI_INJECT &&
	    sfi_length(a->out, a->n_out) > SFI_INJECT_MAX)
		return -FI_EMSGSIZE;
	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	sfi_lock(&ep->lock);
	ret = rma_ask(ep, a);
	sfi_unlock(&ep->lock);
	return ret;
}
