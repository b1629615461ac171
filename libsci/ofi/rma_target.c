// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* One-sided transfers and atomics: the side of the target. */
#include "libsci/ofi/onesided.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Number of receives for requests. It is small, because the matching of messages passes them. */
#define SLOTS		4u

/* A receive for a request, and its buffer. */
struct sfi_slot {
	struct sfi_op op;
	bool idle;
	struct sfi_request head;
	/* bytes after the head; some of them are in @head if it has fewer places */
	char bytes[SFI_INLINE_MAX];
};

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
	bool has_data;
	struct sfi_mr *mr[SFI_RMA_IOV_MAX];
	struct iovec iov[SFI_RMA_IOV_MAX];
};

/* A request that waits for its SFI_BYTES, or for the end of its long reply. */
struct sfi_serving {
	struct sfi_op op;
	struct sfi_serving *next, **prev;
	struct sfi_mr *mr[SFI_RMA_IOV_MAX];
	unsigned int n;
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

/* Keep the regions from being closed until mr_unpin(). Context: the domain is locked. */
static void mr_pin(struct call *c)
{
	for (unsigned int i = 0; i < c->r->places; i++)
		c->mr[i]->users++;
}

static void mr_unpin(struct sfi_domain *d, struct sfi_mr *const *mr, unsigned int n)
{
	sfi_lock(&d->lock);
	for (unsigned int i = 0; i < n; i++)
		mr[i]->users--;
	sfi_unlock(&d->lock);
}

static void serving_free(struct sfi_serving *s)
{
	mr_unpin(s->op.ep->domain, s->mr, s->n);
	free(s);
}

static void serving_end(struct sfi_serving *s)
{
	*s->prev = s->next;
	if (s->next)
		s->next->prev = s->prev;
	serving_free(s);
}

/*
 * Allocate the state of a longer transfer. The state takes over the regions that @c has pinned.
 * After an @error there are no regions.
 */
static struct sfi_serving *serving_new(struct call *c, int error,
				       void (*done)(struct sfi_op *op,
						    const struct sci_status *st))
{
	struct sfi_serving *s = calloc(1, sizeof(*s));
	unsigned int n = error ? 0 : c->r->places;
	struct sfi_ep *ep = c->ep;

	if (!s) {
		mr_unpin(ep->domain, c->mr, n);
		return NULL;
	}
	s->op.ep = ep;
	s->op.done = done;
	s->id = c->id;
	s->data = c->data;
	s->has_data = c->has_data;
	s->total = c->total;
	s->error = error;
	s->n = n;
	memcpy(s->mr, c->mr, n * sizeof(struct sfi_mr *));
	s->prev = &ep->serving;
	s->next = ep->serving;
	if (s->next)
		s->next->prev = &s->next;
	ep->serving = s;
	return s;
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

/* Receive the SFI_BYTES of a write. The bytes of a refused write are received and dropped. */
static int bytes_receive(struct call *c, int error)
{
	struct sfi_serving *s = serving_new(c, error, bytes_handle);
	int ret;

	if (!s)
		return -FI_ENOMEM;
	ret = sci_itrecvv(c->ep->ep, c->peer, SFI_BYTES, c->id, 0, c->iov,
			  error ? 0 : c->r->places, &s->op.req);
	if (ret) {
		serving_end(s);
		return ret;
	}
	sci_req_queue(s->op.req, &s->op);
	return 0;
}

static void reply_sent(struct sfi_op *op, const struct sci_status *st)
{
	struct sfi_serving *s = (struct sfi_serving *)op;

	if (!st->error)
		read_count(op->ep, s->mr, s->n);
	serving_end(s);
}

static int reply_send_long(struct call *c)
{
	const struct sci_send m = {
		.iov = c->iov, .n = c->r->places, .tag = c->id,
		.context = SFI_REPLY, .flags = SCI_SEND_TAGGED,
	};
	struct sfi_serving *s = serving_new(c, 0, reply_sent);
	int ret;

	if (!s)
		return -FI_ENOMEM;
	ret = sci_isendm(c->peer, &m, &s->op.req);
	if (ret) {
		serving_end(s);
		return ret;
	}
	sci_req_queue(s->op.req, &s->op);
	return 0;
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
	rma_written(c->ep, c->peer, c->mr, c->r->places, FI_RMA, c->has_data, c->data,
		    c->total);
	return 0;
}

static int serve_write(struct call *c)
{
	struct sfi_domain *d = c->ep->domain;
	int ret;

	sfi_lock(&d->lock);
	ret = places_look_up(c, FI_REMOTE_WRITE);
	if (!ret && c->r->apart)
		mr_pin(c);
	else if (!ret)
		ret = bytes_copy_in(c);
	sfi_unlock(&d->lock);
	if (c->r->apart)
		return bytes_receive(c, ret);
	if (!ret)
		rma_reply(c->peer, c->id, 0, NULL, 0);
	return ret;
}

static int serve_read(struct call *c)
{
	struct sfi_domain *d = c->ep->domain;
	bool at_once = c->total <= SFI_INLINE_MAX;
	int ret;

	sfi_lock(&d->lock);
	ret = places_look_up(c, FI_REMOTE_READ);
	if (!ret && at_once) {
		rma_reply(c->peer, c->id, 0, c->iov, c->r->places);
		read_count(c->ep, c->mr, c->r->places);
	} else if (!ret) {
		mr_pin(c);
	}
	sfi_unlock(&d->lock);
	return ret || at_once ? ret : reply_send_long(c);
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
			    c->has_data, c->data, c->total);
	sfi_unlock(&d->lock);
	if (!ret)
		rma_reply(c->peer, c->id, 0, &back, fetches);
	return ret;
}

/* ---- receives for requests ---- */

static int request_serve(struct call *c)
{
	uint64_t what = c->r->verb <= SFI_READ ? FI_RMA : FI_ATOMIC;

	if (!(c->ep->caps & what) || !(c->ep->caps & SFI_SERVES)) {
		if (c->r->apart)
			return bytes_receive(c, -FI_EOPNOTSUPP);
		return -FI_EOPNOTSUPP;
	}
	switch (c->r->verb) {
	case SFI_WRITE:
		return serve_write(c);
	case SFI_READ:
		return serve_read(c);
	default:
		return serve_atomic(c);
	}
}

/* Parse a request. Return -EPROTO for a message that is not a request with a complete head. */
static int request_parse(const struct sfi_slot *slot, size_t len, struct call *c)
{
	const struct sfi_request *r = &slot->head;
	size_t head = offsetof(struct sfi_request, place);

	if (len < head || r->verb >= SFI_VERBS || !r->places ||
	    r->places > SFI_RMA_IOV_MAX || (r->apart && r->verb != SFI_WRITE))
		return -EPROTO;
	head += r->places * sizeof(struct sfi_place);
	if (len < head)
		return -EPROTO;
	for (unsigned int i = 0; i < r->places; i++)
		if (__builtin_add_overflow(c->total, r->place[i].len, &c->total))
			return -EPROTO;
	c->r = r;
	c->bytes = (const char *)r + head;
	c->len = len - head;
	return 0;
}

static void slot_post(struct sfi_slot *slot);

static void request_handle(struct sfi_op *op, const struct sci_status *st)
{
	struct sfi_slot *slot = (struct sfi_slot *)op;
	struct call c = {
		.ep = op->ep, .peer = st->peer, .id = st->tag, .data = st->imm,
		.has_data = st->flags & SCI_STATUS_IMM,
	};
	int ret = st->error == -EMSGSIZE ? -EPROTO : st->error;

	if (!ret)
		ret = request_parse(slot, st->len, &c);
	/* the peer is NULL if its address has been removed */
	if (!ret && c.peer)
		ret = request_serve(&c);
	if (ret && c.peer)
		rma_reply(c.peer, c.id, ret, NULL, 0);
	slot_post(slot);
}

static struct iovec slot_room(struct sfi_slot *slot)
{
	return (struct iovec){
		.iov_base = &slot->head,
		.iov_len = sizeof(*slot) - offsetof(struct sfi_slot, head),
	};
}

static void slot_post(struct sfi_slot *slot)
{
	struct sfi_ep *ep = slot->op.ep;
	struct iovec iov = slot_room(slot);

	slot->idle = true;
	if (ep->refuses)
		return;
	slot->idle = sci_itrecvv(ep->ep, NULL, SFI_REQUEST, 0, UINT64_MAX, &iov,
				 1, &slot->op.req);
	if (slot->idle)
		ep->not_posted++;
	else
		sci_req_queue(slot->op.req, &slot->op);
}

/*
 * Refuse requests on an endpoint without one-sided capabilities. Such an endpoint posts no receive
 * for requests, which would slow down messages, but probes for requests now and then.
 */
void sfi_refuse(struct sfi_ep *ep)
{
	struct sfi_slot *slot = ep->slots;
	struct iovec iov = slot_room(slot);
	struct sci_status st;
	struct sci_msg *msg;

	if (!slot->idle ||
	    sci_tmatch(ep->ep, NULL, SFI_REQUEST, 0, UINT64_MAX, 0, &msg, &st))
		return;
	if (sci_msg_recv(msg, &iov, 1, &slot->op.req)) {
		sci_msg_free(msg);
		return;
	}
	slot->idle = false;
	sci_req_queue(slot->op.req, &slot->op);
}

/* Post the receives for requests that could not be posted before, without memory. */
void sfi_serve_again(struct sfi_ep *ep)
{
	ep->not_posted = 0;
	for (unsigned int i = 0; i < ep->n_slots; i++)
		if (ep->slots[i].idle)
			slot_post(&ep->slots[i]);
}

int sfi_serve_begin(struct sfi_ep *ep)
{
	unsigned int n;

	ep->refuses = !(ep->caps & SFI_ONE_SIDED) || !(ep->caps & SFI_SERVES);
	n = ep->refuses ? 1 : SLOTS;
	ep->slots = calloc(n, sizeof(*ep->slots));
	if (!ep->slots)
		return -FI_ENOMEM;
	ep->n_slots = n;
	for (unsigned int i = 0; i < n; i++) {
		ep->slots[i].op.ep = ep;
		ep->slots[i].op.done = request_handle;
		slot_post(&ep->slots[i]);
	}
	return 0;
}

/* Free the unfinished requests. The endpoint of the message layer is closed already. */
void sfi_serve_end(struct sfi_ep *ep)
{
	struct sfi_serving *s;

	while ((s = ep->serving)) {
		ep->serving = s->next;
		serving_free(s);
	}
	free(ep->slots);
}
