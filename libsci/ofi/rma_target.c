// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * One-sided transfers and atomics: the side of the target. A handler of the message layer executes
 * requests. It runs in progress, with the endpoint locked.
 */
#include "libsci/ofi/onesided.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/base/barrier.h"

/**
 * struct call - a request that is being executed
 * @bytes, @len: the bytes after the head
 * @total: length of all places, in bytes
 */
struct call {
	struct sfi_ep *ep;
	struct sci_peer *peer;
	uint64_t id;
	const struct sfi_request *r;
	const char *bytes;
	size_t len;
	uint64_t total;
	uint64_t data;
	struct sfi_mr *mr[SFI_RMA_IOV_MAX];
	struct iovec iov[SFI_RMA_IOV_MAX];
};

/*
 * A request that waits for its SFI_BYTES, or for the end of its long reply. The handler makes it,
 * and the endpoint's progress starts its transfer.
 */
struct sfi_serving {
	struct sfi_op op;
	struct sfi_serving *next, **prev;
	struct sci_peer *peer;		/* until the transfer has been started, then NULL */
	struct sfi_mr *mr[SFI_RMA_IOV_MAX];
	struct iovec iov[SFI_RMA_IOV_MAX];
	unsigned int n;
	bool reads;
	uint64_t id;
	uint64_t data;
	uint64_t total;
	bool has_data;
	int error;
};

/* ---- replies ---- */

/*
 * Send a reply. A dead peer needs no reply. Without memory, or after SFI_ASKING_MAX replies that
 * the peer has not received, the request stays open.
 */
static void rma_reply(struct sci_peer *peer, uint64_t id, int error,
		      const struct iovec *iov, size_t n)
{
	const struct sci_send m = {
		.iov = iov, .n = n, .tag = id, .imm = (uint64_t)-error,
		.context = SFI_REPLY,
		.flags = SCI_SEND_TAGGED | SCI_SEND_COPY |
			 (error ? (uint32_t)SCI_SEND_IMM : 0),
	};

	sci_isendm(peer, &m, NULL);
}

/* Count a write or an atomic, and report its FI_REMOTE_CQ_DATA. */
static void rma_written(struct sfi_ep *ep, struct sci_peer *peer,
			struct sfi_mr *const *mr, size_t n, uint64_t flags,
			bool has_data, uint64_t data, uint64_t total)
{
	struct fi_cq_tagged_entry e = {
		.flags = flags | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
		.len = total, .data = data,
	};

	sfi_cntr_count(ep->remote_writes, 0);
	for (size_t i = 0; i < n; i++)
		sfi_cntr_count(mr[i]->writes, 0);
	if (has_data && ep->rx.cq)
		sfi_cq_push(ep->rx.cq, &e, sfi_ep_source(ep, peer));
}

/* Report a direct write with FI_REMOTE_CQ_DATA. */
void sfi_write_event(struct sfi_ep *ep, const struct sci_status *st)
{
	rma_written(ep, st->peer, NULL, 0, FI_RMA, true, st->imm, st->len);
}

static void read_count(struct sfi_ep *ep, struct sfi_mr *const *mr, size_t n)
{
	sfi_cntr_count(ep->remote_reads, 0);
	for (size_t i = 0; i < n; i++)
		sfi_cntr_count(mr[i]->reads, 0);
}

/* ---- transfers that take longer ---- */

static void serving_free(struct sfi_serving *s)
{
	struct sfi_domain *d = s->op.ep->domain;

	sfi_lock(&d->lock);
	for (unsigned int i = 0; i < s->n; i++)
		s->mr[i]->users--;
	sfi_unlock(&d->lock);
	free(s);
}

static void serving_end(struct sfi_serving *s)
{
	*s->prev = s->next;
	if (s->next)
		s->next->prev = s->prev;
	serving_free(s);
}

static void bytes_handle(struct sfi_op *op, const struct sci_status *st)
{
	struct sfi_serving *s = (struct sfi_serving *)op;
	int error = s->error;

	/* an error if the peer has sent more or fewer bytes than its request announced */
	if (!error && (st->error || st->len != s->total))
		error = st->error && st->error != -EMSGSIZE ? st->error : -EPROTO;
	if (!error)
		rma_written(op->ep, st->peer, s->mr, s->n, FI_RMA, s->has_data,
			    s->data, s->total);
	if (st->peer)
		rma_reply(st->peer, s->id, error, NULL, 0);
	serving_end(s);
}

static void reply_sent(struct sfi_op *op, const struct sci_status *st)
{
	struct sfi_serving *s = (struct sfi_serving *)op;

	if (!st->error)
		read_count(op->ep, s->mr, s->n);
	serving_end(s);
}

/*
 * Receive the SFI_BYTES of a write, or send the long reply of a read. The bytes of a write that is
 * refused with @error are received and dropped. Pin the regions until the end.
 * Context: the domain is locked.
 */
static int serving_new(struct call *c, int error)
{
	struct sfi_serving *s = calloc(1, sizeof(*s));
	struct sfi_ep *ep = c->ep;

	if (!s)
		return -FI_ENOMEM;
	s->op.ep = ep;
	s->reads = c->r->verb == SFI_READ;
	s->op.done = s->reads ? reply_sent : bytes_handle;
	s->peer = c->peer;
	s->id = c->id;
	s->data = c->data;
	s->has_data = c->r->has_data;
	s->total = c->total;
	s->error = error;
	s->n = error ? 0 : c->r->places;
	for (unsigned int i = 0; i < s->n; i++) {
		s->iov[i] = c->iov[i];
		s->mr[i] = c->mr[i];
		s->mr[i]->users++;
	}
	s->prev = &ep->serving;
	s->next = ep->serving;
	if (s->next)
		s->next->prev = &s->next;
	ep->serving = s;
	ep->starting = true;
	return 0;
}

static void serving_start(struct sfi_ep *ep, struct sfi_serving *s)
{
	const struct sci_send m = {
		.iov = s->iov, .n = s->n, .tag = s->id, .context = SFI_REPLY,
		.flags = SCI_SEND_TAGGED,
	};
	struct sci_peer *peer = s->peer;
	int ret;

	s->peer = NULL;
	if (s->reads)
		ret = sci_isendm(peer, &m, &s->op.req);
	else
		ret = sci_itrecvv(ep->ep, peer, SFI_BYTES, s->id, 0, s->iov, s->n, &s->op.req);
	if (!ret) {
		sci_req_queue(s->op.req, &s->op);
		return;
	}
	rma_reply(peer, s->id, ret, NULL, 0);
	serving_end(s);
}

/* Start the transfers of the requests that have arrived. Context: the endpoint is locked. */
void sfi_serve_transfers(struct sfi_ep *ep)
{
	struct sfi_serving *s, *next;

	ep->starting = false;
	for (s = ep->serving; s; s = next) {
		next = s->next;
		if (s->peer)
			serving_start(ep, s);
	}
}

/* ---- requests ---- */

/* Look up the memory that a request names. Context: the domain is locked. */
static int places_look_up(struct call *c, uint64_t access)
{
	struct sfi_domain *d = c->ep->domain;
	int ret = 0;

	for (unsigned int i = 0; i < c->r->places && !ret; i++) {
		c->iov[i].iov_len = c->r->place[i].len;
		ret = sfi_mr_find(d, &c->r->place[i], access, &c->mr[i],
				  &c->iov[i].iov_base);
	}
	return ret;
}

static int bytes_copy_in(struct call *c)
{
	const char *from = c->bytes;

	if (c->len != c->total)
		return -EPROTO;
	for (unsigned int i = 0; i < c->r->places; i++) {
		if (c->iov[i].iov_len)
			memcpy(c->iov[i].iov_base, from, c->iov[i].iov_len);
		from += c->iov[i].iov_len;
	}
	rma_written(c->ep, c->peer, c->mr, c->r->places, FI_RMA, c->r->has_data, c->data,
		    c->total);
	return 0;
}

static int serve_write(struct call *c)
{
	struct sfi_domain *d = c->ep->domain;
	int ret;

	sfi_lock(&d->lock);
	ret = places_look_up(c, FI_REMOTE_WRITE);
	if (c->r->apart)
		ret = serving_new(c, ret);
	else if (!ret)
		ret = bytes_copy_in(c);
	sfi_unlock(&d->lock);
	if (!ret && !c->r->apart)
		rma_reply(c->peer, c->id, 0, NULL, 0);
	return ret;
}

static int serve_read(struct call *c)
{
	struct sfi_domain *d = c->ep->domain;
	int ret;

	sfi_lock(&d->lock);
	ret = places_look_up(c, FI_REMOTE_READ);
	if (!ret && c->total <= SFI_INLINE_MAX) {
		rma_reply(c->peer, c->id, 0, c->iov, c->r->places);
		read_count(c->ep, c->mr, c->r->places);
	} else if (!ret) {
		ret = serving_new(c, 0);
	}
	sfi_unlock(&d->lock);
	return ret;
}

/* ---- atomics ---- */

/* Operands of any type, aligned. */
struct values {
	_Alignas(long double) char bytes[SFI_ATOMIC_MAX];
};

/* Apply an atomic to one place after the other. @before: receives the old values */
static int places_apply(struct call *c, const struct values *operands,
			const struct values *compare, struct values *before)
{
	const enum fi_datatype type = c->r->type;
	size_t size = sfi_atomic_size(type), at = 0;
	int ret = 0;

	for (unsigned int i = 0; i < c->r->places; i++)
		if (c->iov[i].iov_len % size ||
		    (uintptr_t)c->iov[i].iov_base % sfi_atomic_align(type))
			return -EINVAL;
	for (unsigned int i = 0; i < c->r->places && !ret; i++) {
		ret = sfi_atomic_apply(type, c->r->op, c->iov[i].iov_base,
				       operands->bytes + at, compare->bytes + at,
				       before->bytes + at,
				       c->iov[i].iov_len / size);
		at += c->iov[i].iov_len;
	}
	return ret;
}

/* Copy the operands, then the comparands. Return -EPROTO if bytes are missing or left over. */
static int operands_take(const struct call *c, struct values *operands,
			 struct values *compare)
{
	bool reads = c->r->op == FI_ATOMIC_READ;
	size_t n = c->r->verb == SFI_COMPARE ? 2 : reads ? 0 : 1;

	if (c->total > SFI_ATOMIC_MAX || c->len != n * c->total)
		return -EPROTO;
	if (n)
		memcpy(operands->bytes, c->bytes, c->total);
	if (n == 2)
		memcpy(compare->bytes, c->bytes + c->total, c->total);
	return 0;
}

static int serve_atomic(struct call *c)
{
	bool fetches = c->r->verb != SFI_ATOMIC;
	uint64_t access = FI_REMOTE_WRITE | (fetches ? FI_REMOTE_READ : 0);
	struct sfi_domain *d = c->ep->domain;
	struct values operands, compare, before;
	struct iovec back = { .iov_base = before.bytes, .iov_len = c->total };
	int ret = operands_take(c, &operands, &compare);

	if (c->r->op == FI_ATOMIC_READ)
		access = FI_REMOTE_READ;
	if (!ret && !sfi_atomic_valid(c->r->verb, c->r->type, c->r->op))
		ret = -FI_EOPNOTSUPP;
	if (ret)
		return ret;
	sfi_lock(&d->lock);
	ret = places_look_up(c, access);
	if (!ret)
		ret = places_apply(c, &operands, &compare, &before);
	if (!ret && fetches)
		read_count(c->ep, c->mr, c->r->places);
	if (!ret && !fetches)
		rma_written(c->ep, c->peer, c->mr, c->r->places, FI_ATOMIC,
			    c->r->has_data, c->data, c->total);
	sfi_unlock(&d->lock);
	if (!ret)
		rma_reply(c->peer, c->id, 0, &back, fetches);
	return ret;
}

/* ---- the handler ---- */

/* Without the capability, receive and drop the bytes of a long write. */
static int request_refuse(struct call *c)
{
	struct sfi_domain *d = c->ep->domain;
	int ret;

	if (!c->r->apart)
		return -FI_EOPNOTSUPP;
	sfi_lock(&d->lock);
	ret = serving_new(c, -FI_EOPNOTSUPP);
	sfi_unlock(&d->lock);
	return ret;
}

static int request_serve(struct call *c)
{
	uint64_t what = c->r->verb <= SFI_READ ? FI_RMA : FI_ATOMIC;

	if (!(c->ep->caps & what) || !(c->ep->caps & SFI_SERVES))
		return request_refuse(c);
	switch (c->r->verb) {
	case SFI_WRITE:
		return serve_write(c);
	case SFI_READ:
		return serve_read(c);
	default:
		return serve_atomic(c);
	}
}

/*
 * Parse a request. @r: receives a copy of the head, because the peer can still change the message.
 * Return -EPROTO for a message that is not a request with a complete head.
 */
static int request_parse(const struct sci_handled *m, struct sfi_request *r, struct call *c)
{
	size_t head = offsetof(struct sfi_request, place);

	if (m->len < head)
		return -EPROTO;
	memcpy(r, m->data, m->len < sizeof(*r) ? m->len : sizeof(*r));
	/* parse the copy */
	sci_compiler_barrier();
	if (r->verb >= SFI_VERBS || !r->places || r->places > SFI_RMA_IOV_MAX ||
	    (r->apart && r->verb != SFI_WRITE))
		return -EPROTO;
	head += r->places * sizeof(struct sfi_place);
	c->bytes = (const char *)m->data + head;
	head += r->has_data ? sizeof(c->data) : 0;
	if (m->len < head)
		return -EPROTO;
	for (unsigned int i = 0; i < r->places; i++)
		if (__builtin_add_overflow(c->total, r->place[i].len, &c->total))
			return -EPROTO;
	if (r->has_data)
		memcpy(&c->data, c->bytes, sizeof(c->data));
	c->bytes = (const char *)m->data + head;
	c->len = m->len - head;
	return 0;
}

static void request_handle(void *arg, const struct sci_handled *m)
{
	struct sfi_request r;
	struct call c = { .ep = arg, .peer = m->peer, .id = m->tag, .r = &r };
	int ret = m->error ? m->error : request_parse(m, &r, &c);

	if (!ret)
		ret = request_serve(&c);
	if (ret)
		rma_reply(c.peer, c.id, ret, NULL, 0);
}

void sfi_serve_begin(struct sfi_ep *ep)
{
	ep->refuses = !(ep->caps & SFI_ONE_SIDED) || !(ep->caps & SFI_SERVES);
	sci_handler_set(ep->ep, SFI_HANDLER, request_handle, ep);
}

/* Drop later requests: the queues and counters of the endpoint are about to be closed. */
void sfi_serve_end(struct sfi_ep *ep)
{
	sci_handler_set(ep->ep, SFI_HANDLER, NULL, NULL);
}

/* Free the unfinished requests. The endpoint of the message layer is closed already. */
void sfi_serve_free(struct sfi_ep *ep)
{
	struct sfi_serving *s;

	while ((s = ep->serving)) {
		ep->serving = s->next;
		serving_free(s);
	}
}
