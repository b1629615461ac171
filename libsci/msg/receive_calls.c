// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * The receiving calls. A blocking one that finds nothing queued takes its
 * message straight off the ring, without a request and without matching.
 */

#include "libsci/msg/endpoint.h"

#include <errno.h>

/* Looks at the ring before a blocking receive takes the long way. */
#define QUICK_LOOKS	400u
/* ... and before the CPU is left to a sibling thread between them. */
#define KEEN_LOOKS	100u
/* The longest chain taken that way. */
#define QUICK_CHAIN	1024u

/* ---- the short way ---- */

/* What a receive wants, and where it goes; then what it got. */
struct quick {
	struct sci_peer *p;
	uint32_t context;
	uint64_t tag;
	uint64_t ignore;
	void *buf;
	size_t size;
	size_t len;
	uint64_t imm;
	bool has_imm;
};

/* Takes the tag if it does. */
static inline bool quick_fits(struct quick *q, uint32_t context, uint64_t tag,
			      uint64_t len)
{
	if (context != q->context || (tag ^ q->tag) & ~q->ignore ||
	    len > q->size)
		return false;
	q->tag = tag;
	q->ignore = 0;
	q->len = len;
	return true;
}

static inline void quick_imm(struct quick *q, uint64_t imm)
{
	q->has_imm = true;
	q->imm = imm;
}

static bool quick_eager(struct quick *q, const struct line_eager *e)
{
	struct sci_peer *p = q->p;
	const uint8_t *data;

	if (p->sums || !e->len || e->first != e->len)
		return false;
	data = blocks_find(&p->blocks_rx[RING_EAGER], e->end, e->len);
	if (!data || !quick_fits(q, e->context, e->tag, e->len))
		return false;
	msg_copy(q->buf, data, e->len);
	p->now.eager = e->end;
	if (e->has_imm)
		quick_imm(q, e->imm);
	rx_advance(&p->data_rx);
	return true;
}

/*
 * All lines of it have to be there soon: there is no way back.  @first bytes
 * are in the first one.
 */
static bool quick_chain(struct quick *q, const uint8_t *data, size_t first)
{
	struct msg_rx rx = q->p->data_rx;
	size_t at = q->len < first ? q->len : first;
	struct msg_line l;

	line_copy(q->buf, data, at);
	for (rx_advance(&rx); at < q->len; rx_advance(&rx)) {
		unsigned int looks = 0, n;

		while (!line_ops.get(&rx.slots[rx.slot], rx.id, &l))
			if (++looks == QUICK_LOOKS)
				return false;
		n = line_kind(&l);
		if (line_seq(&l) != (rx.pos & 3) || n == LINE_TYPED || !n ||
		    n > q->len - at)
			return false;
		line_copy((uint8_t *)q->buf + at, &l, n);
		at += n;
	}
	q->p->data_rx = rx;
	return true;
}

static bool quick_plain_chain(struct quick *q, const struct line_chain *c)
{
	return c->len <= QUICK_CHAIN &&
	       quick_fits(q, c->context, c->tag, c->len) &&
	       quick_chain(q, c->data, CHAIN_HEAD);
}

static bool quick_imm_chain(struct quick *q, const struct line_chain_imm *c)
{
	quick_imm(q, c->imm);
	return c->len <= QUICK_CHAIN &&
	       quick_fits(q, c->context, c->tag, c->len) &&
	       quick_chain(q, c->data, CHAIN_IMM_HEAD);
}

static inline bool quick_tagged(struct quick *q, const struct line_tagged *t)
{
	if (t->len > SCI_TAGGED_SHORT_MAX ||
	    !quick_fits(q, t->context, t->tag, t->len))
		return false;
	line_copy(q->buf, t->data, t->len);
	rx_advance(&q->p->data_rx);
	return true;
}

static inline bool quick_tagged_imm(struct quick *q,
				    const struct line_tagged_imm *t)
{
	if (t->len > SCI_IMM_SHORT_MAX ||
	    !quick_fits(q, t->context, t->tag, t->len))
		return false;
	line_copy(q->buf, t->data, t->len);
	quick_imm(q, t->imm);
	rx_advance(&q->p->data_rx);
	return true;
}

static inline bool quick_line(struct quick *q, const struct msg_line *l)
{
	const struct msg_typed *t = (const struct msg_typed *)l;
	unsigned int kind = line_kind(l);

	if (kind != LINE_TYPED) {
		if (!quick_fits(q, MSG_UNTAGGED, 0, kind))
			return false;
		line_copy(q->buf, l, kind);
		rx_advance(&q->p->data_rx);
		return true;
	}
	switch (t->type) {
	case LINE_TAGGED:
		return quick_tagged(q, &t->tagged);
	case LINE_TAGGED_IMM:
		return quick_tagged_imm(q, &t->tagged_imm);
	case LINE_EAGER:
		return quick_eager(q, &t->eager);
	case LINE_CHAIN:
		return quick_plain_chain(q, &t->chain);
	case LINE_CHAIN_IMM:
		return quick_imm_chain(q, &t->chain_imm);
	default:
		return false;
	}
}

/*
 * What may come with the line: its second one, or the next eager block. It is
 * written before the line that announces it, so it is here by then.
 */
static inline void prefetch_next(const struct sci_peer *p)
{
	const struct msg_blocks_rx *b = &p->blocks_rx[RING_EAGER];
	const struct msg_rx *rx = &p->data_rx;
	uint32_t next = rx->slot + 1 < rx->lines ? rx->slot + 1 : 0;

	__builtin_prefetch((const void *)&rx->slots[next]);
	if (b->size)
		__builtin_prefetch(b->base + (p->now.eager & (b->size - 1)));
}

/*
 * The next line, which has come, is the message. Returns false if the long way
 * has to be taken; nothing has been taken off the ring then.
 */
static inline bool quick_take(struct quick *q, struct sci_status *status)
{
	struct sci_peer *p = q->p;
	struct msg_rx *rx = &p->data_rx;
	struct msg_line l;

	if (!line_ops.get(&rx->slots[rx->slot], rx->id, &l) ||
	    line_seq(&l) != (rx->pos & 3) || !quick_line(q, &l))
		return false;
	p->now.data = rx->pos;
	p->idle = 0;
	p->announced = false;
	p->known = true;
	p->ep->stats.received++;
	if (status_due(p))
		status_write(p);
	if (status) {
		*status = (struct sci_status){
			.peer = p, .imm = q->imm,
			.flags = q->has_imm ? SCI_STATUS_IMM : 0,
		};
		status_of_message(status, q->context, q->tag, q->len);
	}
	return true;
}

/* The same for a line that may come soon. */
static inline bool quick_wait(struct quick *q, struct sci_status *status)
{
	const struct msg_rx *rx = &q->p->data_rx;
	unsigned int looks = 0;

	while (!line_peek(&rx->slots[rx->slot], rx->id)) {
		prefetch_next(q->p);
		if (++looks == QUICK_LOOKS)
			return false;
		if (looks > KEEN_LOOKS)
			sci_cpu_relax();
	}
	return quick_take(q, status);
}

/* Nothing is queued that would have to be looked at first. */
static inline bool may_be_quick(const struct sci_ep *ep,
				const struct sci_peer *p, uint32_t context)
{
	return p && sci_match_none_of(&ep->match, context) &&
	       !ep->match.unexpected &&
	       !p->chain_left && p->state == PEER_UP && !ep->lossy &&
	       list_empty(&ep->busy);
}

/* ---- without waiting, and without a request ---- */

/* -EAGAIN: nothing has come of @p's; -EBUSY: something else comes first. */
static inline int look_at(const struct sci_ep *ep, const struct sci_peer *p,
			  uint32_t context)
{
	const struct msg_rx *rx = &p->data_rx;

	if (!may_be_quick(ep, p, context))
		return -EBUSY;
	return line_peek(&rx->slots[rx->slot], rx->id) ? 0 : -EAGAIN;
}

/* From anyone: the first who has sent something. */
static int look_at_all(const struct sci_ep *ep, struct sci_peer **from,
		       uint32_t context)
{
	int ret = -EAGAIN;

	for (const struct list *l = ep->hot.next; l != &ep->hot; l = l->next) {
		*from = container_of(l, struct sci_peer, hot);
		ret = look_at(ep, *from, context);
		if (ret != -EAGAIN)
			break;
	}
	return ret;
}

/* Most looks are in vain: nothing is got ready for a message before. */
static inline int try_recv(struct sci_ep *ep, struct sci_peer *peer,
			   uint32_t context, uint64_t tag, uint64_t ignore,
			   void *buf, size_t size, struct sci_status *status)
{
	int ret;

	if (!ep || (peer && peer->ep != ep) || (!buf && size))
		return -EINVAL;
	if (!msg_usable(ep))
		return -ENOTCONN;
	msg_lock(&ep->lock);
	ret = peer ? look_at(ep, peer, context) : look_at_all(ep, &peer, context);
	if (!ret) {
		struct quick q = {
			.p = peer, .context = context, .tag = tag,
			.ignore = ignore, .buf = buf, .size = size,
		};

		ret = quick_take(&q, status) ? 0 : -EBUSY;
	}
	msg_unlock(&ep->lock);
	return ret;
}

int sci_try_recv(struct sci_ep *ep, struct sci_peer *peer, void *buf,
		 size_t size, struct sci_status *status)
{
	return try_recv(ep, peer, MSG_UNTAGGED, 0, 0, buf, size, status);
}

int sci_try_trecv(struct sci_ep *ep, struct sci_peer *peer, uint32_t context,
		  uint64_t tag, uint64_t ignore, void *buf, size_t size,
		  struct sci_status *status)
{
	if (context > SCI_CONTEXT_MAX)
		return -EINVAL;
	return try_recv(ep, peer, context, tag, ignore, buf, size, status);
}

/* ---- the calls ---- */

static void describe(struct sci_req *req, struct sci_peer *peer, bool tagged,
		     uint32_t context, uint64_t tag, uint64_t ignore)
{
	req->peer = peer;
	req->tagged = tagged;
	req->match.source = peer;
	req->match.context = tagged ? context : MSG_UNTAGGED;
	req->match.tag = tagged ? tag : 0;
	req->match.ignore = tagged ? ignore : 0;
}

/* A message that is here already completes its request at once. */
static bool take_now(struct sci_req *req)
{
	struct sci_peer *p = req->peer;
	struct quick q = {
		.p = p, .context = req->match.context, .tag = req->match.tag,
		.ignore = req->match.ignore,
	};
	const struct msg_rx *rx;

	if (req->iovs != 1 || !may_be_quick(req->ep, p, q.context))
		return false;
	rx = &p->data_rx;
	q.buf = req->iov->iov_base;
	q.size = req->len;
	if (!line_peek(&rx->slots[rx->slot], rx->id) ||
	    !quick_take(&q, &req->status))
		return false;
	req_done(req, 0);
	return true;
}

static int irecvv(struct sci_ep *ep, struct sci_peer *peer, bool tagged,
		  uint32_t context, uint64_t tag, uint64_t ignore,
		  const struct iovec *iov, size_t n, struct sci_req **out)
{
	struct sci_req *req;
	int ret = -ENOMEM;

	msg_lock(&ep->lock);
	req = req_new(ep, MSG_RECV);
	if (req) {
		ret = req_iov(req, iov, n);
		describe(req, peer, tagged, context, tag, ignore);
		if (!ret && !take_now(req))
			ret = recv_start(req);
		if (ret)
			req_free(req);
	}
	msg_unlock(&ep->lock);
	if (!ret)
		*out = req;
	return ret;
}

static int check_recv(struct sci_ep *ep, struct sci_peer *peer,
		      uint32_t context, const struct iovec *iov, size_t n)
{
	if (!ep || (peer && peer->ep != ep) || context > SCI_CONTEXT_MAX ||
	    (!iov && n) || n > SCI_IOV_MAX)
		return -EINVAL;
	if (!msg_iov_good(iov, n))
		return -EINVAL;
	return msg_usable(ep) ? 0 : -ENOTCONN;
}

int sci_irecvv(struct sci_ep *ep, struct sci_peer *peer,
	       const struct iovec *iov, size_t n, struct sci_req **req)
{
	int ret = req ? check_recv(ep, peer, 0, iov, n) : -EINVAL;

	return ret ? ret : irecvv(ep, peer, false, 0, 0, 0, iov, n, req);
}

int sci_itrecvv(struct sci_ep *ep, struct sci_peer *peer, uint32_t context,
		uint64_t tag, uint64_t ignore, const struct iovec *iov,
		size_t n, struct sci_req **req)
{
	int ret = req ? check_recv(ep, peer, context, iov, n) : -EINVAL;

	return ret ? ret : irecvv(ep, peer, true, context, tag, ignore, iov, n,
				  req);
}

int sci_irecv(struct sci_ep *ep, struct sci_peer *peer, void *buf, size_t size,
	      struct sci_req **req)
{
	const struct iovec iov = { .iov_base = buf, .iov_len = size };

	return sci_irecvv(ep, peer, &iov, 1, req);
}

int sci_itrecv(struct sci_ep *ep, struct sci_peer *peer, uint32_t context,
	       uint64_t tag, uint64_t ignore, void *buf, size_t size,
	       struct sci_req **req)
{
	const struct iovec iov = { .iov_base = buf, .iov_len = size };

	return sci_itrecvv(ep, peer, context, tag, ignore, &iov, 1, req);
}

static int recv_is_done(void *arg)
{
	struct sci_req *req = arg;

	return atomic_load_explicit(&req->done, memory_order_relaxed) ? 0 :
								-EAGAIN;
}

static int recv_wait(struct sci_ep *ep, struct sci_req *req, void *buf,
		     size_t size, struct sci_status *status)
{
	const struct iovec iov = { .iov_base = buf, .iov_len = size };
	int ret;

	req_iov(req, &iov, 1);
	ret = recv_start(req);
	if (!ret)
		ret = msg_wait(ep, recv_is_done, req, -1);
	if (ret)
		return ret;
	if (req->status.peer)
		req->status.peer->known = true;
	if (status)
		*status = req->status;
	return req->status.error;
}

int sci_recv(struct sci_ep *ep, struct sci_peer *peer, void *buf, size_t size,
	     struct sci_status *status)
{
	struct quick q = {
		.p = peer, .context = MSG_UNTAGGED, .buf = buf, .size = size,
	};
	struct sci_req req;
	int ret = 0;

	if (!ep || (peer && peer->ep != ep) || (!buf && size))
		return -EINVAL;
	if (!msg_usable(ep))
		return -ENOTCONN;
	msg_lock(&ep->lock);
	if (!may_be_quick(ep, peer, q.context) || !quick_wait(&q, status)) {
		req_init(&req, ep, MSG_RECV);
		describe(&req, peer, false, 0, 0, 0);
		ret = recv_wait(ep, &req, buf, size, status);
	}
	msg_unlock(&ep->lock);
	return ret;
}

int sci_trecv(struct sci_ep *ep, struct sci_peer *peer, uint32_t context,
	      uint64_t tag, uint64_t ignore, void *buf, size_t size,
	      struct sci_status *status)
{
	struct quick q = {
		.p = peer, .context = context, .tag = tag, .ignore = ignore,
		.buf = buf, .size = size,
	};
	struct sci_req req;
	int ret = 0;

	if (!ep || (peer && peer->ep != ep) || (!buf && size) ||
	    context > SCI_CONTEXT_MAX)
		return -EINVAL;
	if (!msg_usable(ep))
		return -ENOTCONN;
	msg_lock(&ep->lock);
	if (!may_be_quick(ep, peer, q.context) || !quick_wait(&q, status)) {
		req_init(&req, ep, MSG_RECV);
		describe(&req, peer, true, context, tag, ignore);
		ret = recv_wait(ep, &req, buf, size, status);
	}
	msg_unlock(&ep->lock);
	return ret;
}
