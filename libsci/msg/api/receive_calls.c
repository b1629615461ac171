// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * The receive calls. If no message is queued, a blocking receive polls the ring and takes
 * its message from there: this fast path needs no request and no matching.
 */

#include "libsci/msg/api/api.h"
#include "libsci/msg/conn/blocks.h"

#include <errno.h>

/* Polls of the fast path, before a blocking receive posts a request; one if CPUs are shared. */
#define QUICK_LOOKS	400u
/* Number of polls after which the CPU relaxes between polls, in favour of a sibling thread. */
#define KEEN_LOOKS	100u
/* The longest chain on the fast path, in bytes. */
#define QUICK_CHAIN	1024u

/* ---- the fast path ---- */

/* A receive on the fast path: the peer, the context, the buffer and tag, the status. */
struct quick {
	struct sci_peer *p;
	uint32_t context;
	const struct sci_try_recv *t;
	struct sci_status *st;
};

static __always_inline bool recv_fits(const struct quick *q, uint32_t context,
				      uint64_t tag, uint64_t len)
{
	const struct sci_try_recv *t = q->t;

	return context == q->context && len <= t->size &&
	       (!((tag ^ t->tag) & ~t->ignore) || context == MSG_UNTAGGED);
}

/* Fill the status field by field: a struct copy would wait for stores that were just made. */
static __always_inline void quick_status(const struct quick *q, uint64_t tag, size_t len)
{
	q->st->peer = q->p;
	q->st->error = 0;
	q->st->imm = 0;
	q->st->flags = 0;
	status_of_message(q->st, q->context, tag, len);
}

static inline void quick_status_imm(const struct quick *q, uint64_t imm)
{
	q->st->imm = imm;
	q->st->flags = SCI_STATUS_IMM;
}

static __hot bool quick_eager(const struct quick *q, const struct line_eager *e)
{
	struct sci_peer *p = q->p;
	const uint8_t *data;

	if (p->sums || !e->len || e->first != e->len)
		return false;
	data = blocks_find(p, RING_EAGER, e->end, e->len);
	if (!data || !recv_fits(q, e->context, e->tag, e->len))
		return false;
	msg_copy(q->t->buf, data, e->len);
	quick_status(q, e->tag, e->len);
	if (e->has_imm)
		quick_status_imm(q, e->imm);
	p->status_next.eager = e->end;
	rx_advance(&p->data_rx);
	if (ring_due(p, RING_EAGER, p->status_next.eager - p->status_sent.eager)) {
		p->status_next.data = p->data_rx.pos;
		status_write(p);
	}
	return true;
}

/*
 * Receive a chain, with @first of its @len bytes in the first line. The other lines must
 * arrive soon: otherwise return false, and the slow path receives the whole chain.
 */
static __hot bool quick_chain(const struct quick *q, uint32_t context,
			      uint64_t tag, uint64_t len, const uint8_t *data,
			      size_t first)
{
	struct msg_rx *rx = &q->p->data_rx;
	uint32_t slot = rx->slot, pos = rx->pos;
	size_t at = len < first ? len : first;
	uint64_t id = rx->id;
	struct msg_line l;

	if (len > QUICK_CHAIN || !recv_fits(q, context, tag, len))
		return false;
	line_copy(q->t->buf, data, at);
	for (;;) {
		unsigned int looks = 0, n;

		pos++;
		if (++slot == rx->lines) {
			slot = 0;
			id ^= LINE_ID;
		}
		if (at == len)
			break;
		while (!line_ops.get(&rx->slots[slot], id, &l))
			if (++looks == QUICK_LOOKS)
				return false;
		n = line_kind(&l);
		if (line_seq(&l) != (pos & 3) || n == LINE_TYPED || !n ||
		    n > len - at)
			return false;
		line_copy((uint8_t *)q->t->buf + at, &l, n);
		at += n;
	}
	rx->slot = slot;
	rx->pos = pos;
	rx->id = id;
	quick_status(q, tag, len);
	return true;
}

static inline bool quick_plain_chain(const struct quick *q,
				     const struct line_chain *c)
{
	return quick_chain(q, c->context, c->tag, c->len, c->data, CHAIN_HEAD);
}

static inline bool quick_imm_chain(const struct quick *q,
				   const struct line_chain_imm *c)
{
	if (!quick_chain(q, c->context, c->tag, c->len, c->data, CHAIN_IMM_HEAD))
		return false;
	quick_status_imm(q, c->imm);
	return true;
}

static __always_inline bool quick_tagged(const struct quick *q,
					 const struct line_tagged *m)
{
	if (m->len > SCI_TAGGED_SHORT_MAX || !recv_fits(q, m->context, m->tag, m->len))
		return false;
	line_copy(q->t->buf, m->data, m->len);
	quick_status(q, m->tag, m->len);
	rx_advance(&q->p->data_rx);
	return true;
}

static __always_inline bool quick_tagged_imm(const struct quick *q,
					     const struct line_tagged_imm *m)
{
	if (m->len > SCI_IMM_SHORT_MAX || !recv_fits(q, m->context, m->tag, m->len))
		return false;
	line_copy(q->t->buf, m->data, m->len);
	quick_status(q, m->tag, m->len);
	quick_status_imm(q, m->imm);
	rx_advance(&q->p->data_rx);
	return true;
}

static bool quick_untagged(const struct quick *q, const struct msg_line *l)
{
	size_t len = line_kind(l);

	if (!recv_fits(q, MSG_UNTAGGED, 0, len))
		return false;
	line_copy(q->t->buf, l, len);
	quick_status(q, 0, len);
	rx_advance(&q->p->data_rx);
	return true;
}

static __always_inline bool quick_line(const struct quick *q,
				       const struct msg_line *l)
{
	const struct msg_typed *m = (const struct msg_typed *)l;

	if (line_kind(l) != LINE_TYPED)
		return quick_untagged(q, l);
	switch (m->type) {
	case LINE_TAGGED:
		return quick_tagged(q, &m->tagged);
	case LINE_TAGGED_IMM:
		return quick_tagged_imm(q, &m->tagged_imm);
	case LINE_EAGER:
		return quick_eager(q, &m->eager);
	case LINE_CHAIN:
		return quick_plain_chain(q, &m->chain);
	case LINE_CHAIN_IMM:
		return quick_imm_chain(q, &m->chain_imm);
	default:
		return false;
	}
}

/*
 * Prefetch memory of the next message: its second line, or the next eager block. The sender writes
 * both before the line that announces the message, so they arrive before that line.
 */
static inline void line_prefetch_next(const struct sci_peer *p)
{
	const struct msg_blocks_rx *b = &p->blocks_rx[RING_EAGER];
	const struct msg_rx *rx = &p->data_rx;
	uint32_t next = rx->slot + 1 < rx->lines ? rx->slot + 1 : 0;

	__builtin_prefetch((const void *)&rx->slots[next]);
	if (b->size)
		__builtin_prefetch(b->base + (p->status_next.eager & (b->size - 1)));
}

/*
 * Receive the message of the next line, which has arrived. Return false, with the line still in
 * the ring, if the slow path has to receive it.
 */
static __always_inline bool quick_take(const struct quick *q)
{
	struct sci_peer *p = q->p;
	struct msg_rx *rx = &p->data_rx;
	struct msg_line l;

	if (!line_ops.get(&rx->slots[rx->slot], rx->id, &l) ||
	    line_seq(&l) != (rx->pos & 3) || !quick_line(q, &l))
		return false;
	p->status_next.data = rx->pos;
	p->idle = 0;
	p->announced = false;
	p->known = true;
	p->ep->stats.received++;
	if (lines_due(p))
		status_write(p);
	return true;
}

static inline bool quick_has_line(const struct sci_peer *p)
{
	return line_peek(&p->data_rx.slots[p->data_rx.slot], p->data_rx.id);
}

/*
 * Return whether the caller had better yield: other processes ran on this CPU in recent yields. A
 * wait that ends before its yield counts, too, so that this state ends when they no longer run.
 */
static inline bool cpu_is_shared(struct sci_ep *ep)
{
	if (!ep->crowded)
		return false;
	ep->crowded--;
	return true;
}

/* Poll up to QUICK_LOOKS times for the next line, and receive its message as quick_take() does. */
static __always_inline bool quick_wait(const struct quick *q)
{
	unsigned int looks = 0;

	while (!quick_has_line(q->p)) {
		line_prefetch_next(q->p);
		if (++looks == QUICK_LOOKS || cpu_is_shared(q->p->ep))
			return false;
		if (looks > KEEN_LOOKS)
			sci_cpu_relax();
	}
	return quick_take(q);
}

/* Return whether the fast path is possible: no queued message or send must come first. */
static inline bool quick_is_possible(const struct sci_ep *ep,
				     const struct sci_peer *p, uint32_t context)
{
	return p && sci_match_none_of(&ep->match, context) &&
	       !ep->match.unexpected &&
	       !p->chain_left && p->state == PEER_UP && !p->careful &&
	       list_empty(&ep->busy);
}

/* ---- receives from any peer ---- */

/* After a message of @p, poll the other hot peers first: none of them must wait for ever. */
static inline void hot_turn(struct sci_ep *ep, struct sci_peer *p)
{
	if (ep->hot.prev == &p->hot || list_empty(&p->hot))
		return;
	list_del(&p->hot);
	list_add_tail(&p->hot, &ep->hot);
}

/* Return the first hot peer that has sent a line, after QUICK_LOOKS polls at most; or NULL. */
static __attribute__((noinline)) struct sci_peer *hot_wait(struct sci_ep *ep)
{
	for (unsigned int looks = 0; looks < QUICK_LOOKS && !list_empty(&ep->hot);) {
		for (struct list *l = ep->hot.next; l != &ep->hot; l = l->next, looks++) {
			struct sci_peer *p = container_of(l, struct sci_peer, hot);

			if (!quick_has_line(p))
				continue;
			/* the status must not name a peer that the program has closed */
			if (p->leaving)
				return NULL;
			hot_turn(ep, p);
			return p;
		}
		if (cpu_is_shared(ep))
			return NULL;
		if (looks > KEEN_LOOKS)
			sci_cpu_relax();
	}
	return NULL;
}

/* ---- sci_try_recvs(): without waiting, and without a request ---- */

/* Receive the messages that are in the ring, in order. Return their number. */
static __always_inline int quick_recvs(struct sci_peer *p, uint32_t context,
				       struct sci_try_recv *t, int n)
{
	int i;

	if (!quick_is_possible(p->ep, p, context))
		return -EBUSY;
	for (i = 0; i < n; i++) {
		const struct quick q = { p, context, &t[i], &t[i].status };

		if (!t[i].buf && t[i].size)
			return i ? i : -EINVAL;
		if (!quick_has_line(p))
			return i ? i : -EAGAIN;
		if (!quick_take(&q))
			return i ? i : -EBUSY;
	}
	return i;
}

/* Receive the next messages of the first hot peer that has sent a message. */
static __attribute__((noinline)) int
quick_recvs_from_any(struct sci_ep *ep, uint32_t context, struct sci_try_recv *t, int n)
{
	int ret = -EAGAIN;

	for (const struct list *l = ep->hot.next; l != &ep->hot; l = l->next) {
		struct sci_peer *p = container_of(l, struct sci_peer, hot);

		/* the status must not name a peer that the program has closed */
		ret = p->leaving && quick_has_line(p) ? -EBUSY :
						       quick_recvs(p, context, t, n);
		if (ret != -EAGAIN) {
			hot_turn(ep, p);
			break;
		}
	}
	/* the sender of an unexpected message may have disconnected: then it is not hot */
	return ret == -EAGAIN && ep->match.unexpected ? -EBUSY : ret;
}

static __always_inline int recvs_try(struct sci_ep *ep, struct sci_peer *peer,
				     uint32_t context, struct sci_try_recv *t, int n)
{
	int ret;

	if (!ep || (peer && peer->ep != ep) || !t || n <= 0)
		return -EINVAL;
	if (!ep_lock(ep))
		return -ENOTCONN;
	ret = peer ? quick_recvs(peer, context, t, n) : quick_recvs_from_any(ep, context, t, n);
	msg_unlock(&ep->lock);
	return ret;
}

__hot int sci_try_recvs(struct sci_ep *ep, struct sci_peer *peer,
			struct sci_try_recv *t, int n)
{
	return recvs_try(ep, peer, MSG_UNTAGGED, t, n);
}

__hot int sci_try_trecvs(struct sci_ep *ep, struct sci_peer *peer,
			 uint32_t context, struct sci_try_recv *t, int n)
{
	return context > SCI_CONTEXT_MAX ? -EINVAL :
					   recvs_try(ep, peer, context, t, n);
}

/* ---- calls of the program ---- */

static void recv_describe(struct sci_req *req, struct sci_peer *peer, bool tagged,
			  uint32_t context, uint64_t tag, uint64_t ignore)
{
	req->peer = peer;
	req->tagged = tagged;
	req->match.source = peer;
	req->match.context = tagged ? context : MSG_UNTAGGED;
	req->match.tag = tagged ? tag : 0;
	req->match.ignore = tagged ? ignore : 0;
	req->match.stays = req->kind == MSG_RECV_MANY;
	req->match.count = wanted_counter(req->ep, peer);
}

/* If the message of @req is in the ring already, receive it and complete @req at once. */
static bool recv_take_now(struct sci_req *req)
{
	struct sci_try_recv t = {
		.size = req->len, .tag = req->match.tag,
		.ignore = req->match.ignore,
	};
	const struct quick q = {
		req->peer, req->match.context, &t, &req->status,
	};

	if (req->iovs != 1 || !quick_is_possible(req->ep, q.p, q.context) ||
	    !quick_has_line(q.p))
		return false;
	t.buf = req->iov->iov_base;
	if (!quick_take(&q))
		return false;
	req_done(req, 0);
	return true;
}

static int recv_post(struct sci_ep *ep, struct sci_peer *peer, bool tagged,
		     uint32_t context, uint64_t tag, uint64_t ignore,
		     const struct iovec *iov, size_t n, struct sci_req **out)
{
	struct sci_req *req;
	int ret = -ENOMEM;

	msg_lock(&ep->lock);
	req = req_new(ep, MSG_RECV);
	if (req) {
		ret = req_iov(req, iov, n);
		recv_describe(req, peer, tagged, context, tag, ignore);
		if (!ret && !recv_take_now(req))
			ret = recv_start(req);
		if (ret)
			req_free(req);
	}
	msg_unlock(&ep->lock);
	if (!ret)
		*out = req;
	return ret;
}

static int recv_check(struct sci_ep *ep, struct sci_peer *peer,
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
	int ret = req ? recv_check(ep, peer, 0, iov, n) : -EINVAL;

	return ret ? ret : recv_post(ep, peer, false, 0, 0, 0, iov, n, req);
}

int sci_itrecvv(struct sci_ep *ep, struct sci_peer *peer, uint32_t context,
		uint64_t tag, uint64_t ignore, const struct iovec *iov,
		size_t n, struct sci_req **req)
{
	int ret = req ? recv_check(ep, peer, context, iov, n) : -EINVAL;

	return ret ? ret : recv_post(ep, peer, true, context, tag, ignore, iov, n,
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

int sci_irecv_many(struct sci_ep *ep, struct sci_peer *peer, void *buf, size_t size,
		   size_t min, void *data, struct sci_req **out)
{
	const struct iovec iov = { .iov_base = buf, .iov_len = size };
	int ret = out && size ? recv_check(ep, peer, 0, &iov, 1) : -EINVAL;
	struct sci_req *req, *part;

	if (ret)
		return ret;
	msg_lock(&ep->lock);
	req = req_new(ep, MSG_RECV_MANY);
	part = req ? req_new(ep, MSG_RECV) : NULL;
	if (part) {
		req_iov(req, &iov, 1);
		recv_describe(req, peer, false, 0, 0, 0);
		req->min = min;
		req->part = part;
		req->queued = true;
		req->data = data;
		*out = req;
		recv_many_start(req);
	} else if (req) {
		req_free(req);
	}
	msg_unlock(&ep->lock);
	return part ? 0 : -ENOMEM;
}

static int recv_is_done(void *arg)
{
	struct sci_req *req = arg;

	return atomic_load_explicit(&req->done, memory_order_relaxed) ? 0 :
								-EAGAIN;
}

static int recv_wait(struct sci_ep *ep, struct msg_blocked *b, void *buf,
		     size_t size, struct sci_status *status)
{
	const struct iovec iov = { .iov_base = buf, .iov_len = size };
	struct sci_req *req = &b->req;
	int ret;

	req_iov(req, &iov, 1);
	list_add_tail(&b->link, &ep->blocked);
	ret = recv_start(req);
	if (!ret)
		ret = msg_wait(ep, recv_is_done, req, -1);
	list_del(&b->link);
	if (ret)
		return ret;
	if (status)
		*status = req->status;
	return req->status.error;
}

/* Receive the next message of @p on the fast path. Return false if the slow path has to do it. */
static __always_inline bool recv_quick(struct sci_ep *ep, struct sci_peer *p, uint32_t context,
				       const struct sci_try_recv *t, struct sci_status *status)
{
	const struct quick q = { p, context, t, status };

	return quick_is_possible(ep, p, context) && quick_wait(&q);
}

static __attribute__((noinline)) bool
recv_quick_any(struct sci_ep *ep, uint32_t context, const struct sci_try_recv *t,
	       struct sci_status *status)
{
	struct sci_peer *p = hot_wait(ep);

	return p && recv_quick(ep, p, context, t, status);
}

static __always_inline int recv_call(struct sci_ep *ep, struct sci_peer *peer,
				     uint32_t context, const struct sci_try_recv *t,
				     struct sci_status *status)
{
	struct sci_status unasked;
	struct msg_blocked b;
	bool done;
	int ret = 0;

	if (!ep || (peer && peer->ep != ep) || (!t->buf && t->size))
		return -EINVAL;
	if (!ep_lock(ep))
		return -ENOTCONN;
	if (peer)
		done = recv_quick(ep, peer, context, t, status ? status : &unasked);
	else
		done = recv_quick_any(ep, context, t, status ? status : &unasked);
	if (!done) {
		req_init(&b.req, ep, MSG_RECV);
		recv_describe(&b.req, peer, context != MSG_UNTAGGED, context, t->tag,
			      t->ignore);
		ret = recv_wait(ep, &b, t->buf, t->size, status);
	}
	msg_unlock(&ep->lock);
	return ret;
}

__hot int sci_recv(struct sci_ep *ep, struct sci_peer *peer, void *buf, size_t size,
	     struct sci_status *status)
{
	const struct sci_try_recv t = { .buf = buf, .size = size };

	return recv_call(ep, peer, MSG_UNTAGGED, &t, status);
}

__hot int sci_trecv(struct sci_ep *ep, struct sci_peer *peer, uint32_t context,
	      uint64_t tag, uint64_t ignore, void *buf, size_t size,
	      struct sci_status *status)
{
	const struct sci_try_recv t = {
		.buf = buf, .size = size, .tag = tag, .ignore = ignore,
	};

	return context > SCI_CONTEXT_MAX ? -EINVAL :
					   recv_call(ep, peer, context, &t, status);
}
