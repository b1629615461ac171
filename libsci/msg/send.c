// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: sending
 *
 * A message goes by the first of these that can take it:
 *
 *	short		it fits a line
 *	chain		several lines, each of which the receiver knows when it
 *			sees it, like a short one: up to SCI_PARAM_LINES_MAX,
 *			and eager messages while the rings are not attached
 *	eager		at most SCI_PARAM_EAGER_MAX
 *	rendezvous	anything else, and what waits for its receive
 *
 * A peer's messages are put in its data ring in the order they were sent; what
 * finds no room waits in its queue and keeps those after it waiting.
 */

#include "libsci/msg/endpoint.h"

#include <errno.h>
#include <stdlib.h>

void peer_busy(struct sci_peer *p)
{
	if (list_empty(&p->busy))
		list_add_tail(&p->busy, &p->ep->busy);
}

/* Longer messages take so long that the peer has time to look again meanwhile. */
#define OWN_MAX		512u

/*
 * The lines that a message of @len bytes is going to be written to were read by the
 * peer last, and come back from it one by one, as stores are in order.  Asked for
 * just ahead of the first store they come together; any sooner, and the next look
 * of the peer's takes them away again.
 */
static inline void own_lines(const struct sci_peer *p, size_t len)
{
	const struct msg_blocks *b = &p->blocks_tx[RING_EAGER];
	const struct msg_tx *tx = &p->data_tx;

	if (p->ep->lossy || p->state != PEER_UP || len > OWN_MAX)
		return;
	sci_prefetch_write(&tx->slots[tx->slot]);
	if (len <= SCI_IMM_SHORT_MAX)
		return;
	if (len <= p->ep->params[SCI_PARAM_LINES_MAX]) {
		if (tx->slot + 1 < tx->lines)
			sci_prefetch_write(&tx->slots[tx->slot + 1]);
		return;
	}
	for (size_t at = 0; b->size && at < len; at += LINE_BYTES)
		sci_prefetch_write(b->base + ((b->end + at) & (b->size - 1)));
}

static const struct line_head no_head;

static void post_typed(struct sci_peer *p, struct msg_tx *tx,
		       const struct msg_typed *line, enum msg_line_type type)
{
	tx_put(p, tx, 0, &no_head, line, LINE_BODY, type);
	tx_go(p, tx, 1);
}

/* A message that fits a line, with its tag or without. */
static inline void post_short(struct sci_peer *p, bool tagged, uint32_t context,
			      uint64_t tag, const void *buf, size_t len)
{
	const struct line_head head = {
		.w = { tag, (uint64_t)len << 32 | context },
		.len = offsetof(struct line_tagged, data),
	};

	if (tagged)
		tx_put(p, &p->data_tx, 0, &head, buf, len, LINE_TAGGED);
	else
		tx_put(p, &p->data_tx, 0, &no_head, buf, len, LINE_SHORT);
	tx_go(p, &p->data_tx, 1);
	p->ep->stats.sent_short++;
}

/* The same with its immediate, which begins in the middle of a word. */
static inline void post_short_imm(struct sci_peer *p, uint32_t context,
				  uint64_t tag, uint64_t imm, const void *buf,
				  size_t len)
{
	const struct line_head head = {
		.w = { tag, imm << 40 | (uint64_t)len << 32 | context, imm >> 24 },
		.len = offsetof(struct line_tagged_imm, data),
	};

	tx_put(p, &p->data_tx, 0, &head, buf, len, LINE_TAGGED_IMM);
	tx_go(p, &p->data_tx, 1);
	p->ep->stats.sent_short++;
}

/* ---- control lines ---- */

/* In order; without memory for one that has to wait, the peer is given up. */
void send_ctl(struct sci_peer *p, const struct msg_typed *line)
{
	struct msg_typed l = *line;
	struct msg_ctl *c;

	if (list_empty(&p->ctlq) && tx_room(&p->ctl_tx) && tx_prepare(p)) {
		post_typed(p, &p->ctl_tx, &l, l.type);
		return;
	}
	c = malloc(sizeof(*c));
	if (!c) {
		peer_down(p, -ENOMEM);
		return;
	}
	c->line = *line;
	list_add_tail(&c->link, &p->ctlq);
	peer_busy(p);
}

static bool push_ctl(struct sci_peer *p)
{
	while (!list_empty(&p->ctlq)) {
		struct msg_ctl *c = container_of(p->ctlq.next, struct msg_ctl,
						 link);

		if (!tx_room(&p->ctl_tx) || !tx_prepare(p))
			return false;
		post_typed(p, &p->ctl_tx, &c->line, c->line.type);
		list_del(&c->link);
		free(c);
	}
	return true;
}

/* ---- one line ---- */

/*
 * The bytes of a short message: where they lie, or in @room.  They are in one
 * piece mostly, and a copy that was just made would be waited for.
 */
static const void *short_data(struct msg_cursor *at, void *room, size_t len)
{
	const void *buf = room;
	size_t n = 0;

	if (at->n)
		buf = msg_chunk(at, &n);
	if (n >= len)
		return buf;
	msg_gather(at, room, len);
	return room;
}

static int send_short(struct sci_req *req)
{
	uint8_t room[SCI_SHORT_MAX];
	const void *data = short_data(&req->at, room, req->len);

	if (req->has_imm)
		post_short_imm(req->peer, req->context, req->tag, req->imm,
			       data, req->len);
	else
		post_short(req->peer, req->tagged, req->context, req->tag, data,
			   req->len);
	return 0;
}

/* ---- several lines ---- */

/* A message that goes out, whether a request remembers it or not. */
struct msg_out {
	struct msg_cursor at;
	size_t len;
	uint64_t tag;
	uint64_t imm;
	uint32_t context;
	bool has_imm;
};

static inline struct msg_out out_of(const struct sci_req *req)
{
	return (struct msg_out){
		.at = req->at, .len = req->len, .tag = req->tag, .imm = req->imm,
		.context = req->context, .has_imm = req->has_imm,
	};
}

/* Of the first line; what it leaves room for. */
static size_t chain_head(const struct msg_out *m, struct line_head *h,
			 enum msg_line_type *type)
{
	size_t room = m->has_imm ? CHAIN_IMM_HEAD : CHAIN_HEAD;

	*h = (struct line_head){
		.w = { m->len, m->tag, m->context },
		.len = offsetof(struct line_chain, data),
	};
	*type = LINE_CHAIN;
	if (m->has_imm) {
		h->w[2] |= m->imm << 32;
		h->w[3] = m->imm >> 32;
		h->len = offsetof(struct line_chain_imm, data);
		*type = LINE_CHAIN_IMM;
	}
	return m->len < room ? m->len : room;
}

/* How many it takes. */
static uint32_t chain_lines(bool has_imm, size_t len)
{
	size_t first = has_imm ? CHAIN_IMM_HEAD : CHAIN_HEAD;

	if (len <= first)
		return 1;
	return 1 + (uint32_t)((len - first + LINE_PAYLOAD - 1) / LINE_PAYLOAD);
}

/*
 * All of it at once, and the first line last: when the receiver sees that one
 * it does not have to wait for the others, nor look for them while they come.
 */
static bool send_chain_whole(struct sci_peer *p, const struct msg_out *m)
{
	uint32_t lines = chain_lines(m->has_imm, m->len), k;
	enum msg_line_type type;
	struct line_head head;
	const uint8_t *buf;
	size_t n, at, first;

	buf = msg_chunk(&m->at, &n);
	if (n < m->len)
		return false;
	if (tx_free(&p->data_tx) < lines &&
	    (!tx_room_slow(&p->data_tx) || tx_free(&p->data_tx) < lines))
		return false;
	own_lines(p, m->len);
	first = chain_head(m, &head, &type);
	for (k = 1, at = first; at < m->len; k++, at += n) {
		n = m->len - at < LINE_PAYLOAD ? m->len - at : LINE_PAYLOAD;
		tx_put(p, &p->data_tx, k, &no_head, buf + at, n, LINE_SHORT);
	}
	tx_put(p, &p->data_tx, 0, &head, buf, first, type);
	tx_go(p, &p->data_tx, lines);
	p->chained += m->len;
	p->ep->stats.sent_lines++;
	return true;
}

static void send_chain_line(struct sci_req *req)
{
	struct line_head head = { .len = 0 };
	enum msg_line_type type = LINE_SHORT;
	struct sci_peer *p = req->peer;
	uint8_t data[LINE_PAYLOAD];
	size_t n;

	if (!req->moved) {
		const struct msg_out m = out_of(req);

		n = chain_head(&m, &head, &type);
	} else {
		n = req->len - req->moved;
		n = n < LINE_PAYLOAD ? n : LINE_PAYLOAD;
	}
	msg_gather(&req->at, data, n);
	tx_put(p, &p->data_tx, 0, &head, data, n, type);
	tx_go(p, &p->data_tx, 1);
	req->moved += n;
}

static int send_chain(struct sci_req *req)
{
	const struct msg_out m = out_of(req);
	struct sci_peer *p = req->peer;

	/* on the way to an adapter in order: the receiver copies meanwhile */
	if (!req->moved && !p->ep->lossy && send_chain_whole(p, &m))
		return 0;
	do {
		if (!tx_room(&p->data_tx))
			return -EAGAIN;
		send_chain_line(req);
	} while (req->moved < req->len);
	p->chained += req->len;
	p->ep->stats.sent_lines++;
	return 0;
}

/* ---- eager ---- */

/*
 * A quarter of the ring at most: a quarter may be lost to the gap at its end,
 * and of another the receiver has not told yet that it is free.
 */
static size_t block_limit(const struct sci_peer *p, size_t left)
{
	size_t max = p->ep->params[SCI_PARAM_EAGER_BLOCK];
	size_t quarter = p->blocks_tx[RING_EAGER].size / 4;

	max = max < quarter ? max : quarter;
	return left < max ? left : max;
}

/* struct line_eager; as words, as the line would wait for what is in memory. */
static void announce_first(struct sci_peer *p, const struct msg_out *m,
			   uint32_t len, uint32_t end, uint32_t crc)
{
	const struct line_head head = {
		.w = { m->tag, (uint64_t)m->len << 32 | m->context,
		       (uint64_t)end << 32 | len, m->imm << 32 | crc,
		       (uint64_t)m->has_imm << 32 | m->imm >> 32 },
		.len = sizeof(struct line_eager),
	};

	tx_put(p, &p->data_tx, 0, &head, NULL, 0, LINE_EAGER);
	tx_go(p, &p->data_tx, 1);
}

static void announce_more(struct sci_peer *p, uint32_t len, uint32_t end,
			  uint32_t crc)
{
	const struct msg_typed t = {
		.more = { .len = len, .end = end, .crc = crc },
	};

	post_typed(p, &p->data_tx, &t, LINE_MORE);
}

/* @at: where @m has got to; -EAGAIN: no room for more */
static int send_block(struct sci_peer *p, const struct msg_out *m,
		      struct msg_cursor *at, size_t moved, size_t n)
{
	struct msg_blocks *b = &p->blocks_tx[RING_EAGER];
	uint32_t crc;
	int64_t end;

	if (!tx_room(&p->data_tx) || !blocks_room(p, b, n))
		return -EAGAIN;
	own_lines(p, m->len);
	end = blocks_put(p, b, at, n, &crc);
	if (end < 0)
		return (int)end;
	if (moved)
		announce_more(p, (uint32_t)n, (uint32_t)end, crc);
	else
		announce_first(p, m, (uint32_t)n, (uint32_t)end, crc);
	p->ep->stats.sent_eager += moved + n == m->len;
	return 0;
}

/* In blocks, so that the receiver copies one while we fill the next. */
static int send_eager(struct sci_req *req)
{
	const struct msg_out m = out_of(req);
	struct sci_peer *p = req->peer;

	do {
		size_t n = block_limit(p, req->len - req->moved);
		int ret = send_block(p, &m, &req->at, req->moved, n);

		if (ret)
			return ret;
		req->moved += n;
		req->in_blocks = true;
	} while (req->moved < req->len);
	return 0;
}

/* ---- rendezvous: the first line of it ---- */

/* The buffer, if it is one piece: receivers that can read get it from there. */
static void offer_buffer(struct sci_req *req, struct line_rts *rts)
{
	const uint8_t *addr;
	struct msg_buf *buf;
	size_t n;

	if (!req->len)
		return;
	addr = msg_chunk(&req->at, &n);
	if (n < req->len)
		return;
	rts->addr = (uintptr_t)addr;
	rts->flags |= RTS_PRIVATE;
	buf = buf_find(req->ep, addr, req->len);
	if (!buf)
		return;
	rts->segment = req->ep->ops->lseg_id(buf->seg);
	rts->offset = (uint64_t)(addr - buf->addr);
	rts->flags |= RTS_EXPORTED;
}

static int send_rts(struct sci_req *req)
{
	struct sci_peer *p = req->peer;
	struct msg_typed t = {
		.rts = { .len = req->len, .tag = req->tag,
			 .context = req->context,
			 .imm = req->imm,
			 .flags = (req->ep->crc ? RTS_CRC : 0) |
				  (req->has_imm ? RTS_IMM : 0) },
	};

	if (req_id_get(req))
		return -ENOMEM;
	t.rts.id = req->id;
	offer_buffer(req, &t.rts);
	req->state = MSG_HANDSHAKE;
	list_add_tail(&req->link, &p->sending);
	peer_expect_ctl(p);
	post_typed(p, &p->data_tx, &t, LINE_RTS);
	return 0;
}

/* ---- which of them ---- */

static bool wants_ring(const struct sci_req *req)
{
	const struct sci_peer *p = req->peer;
	uint64_t after = req->ep->params[SCI_PARAM_ATTACH_AFTER];

	return !p->blocks_tx[RING_EAGER].size && !p->waiting_attach &&
	       !p->attach_failed && p->chained + req->len > after;
}

static void ask_for_ring(struct sci_peer *p)
{
	struct msg_typed t = {
		.attach.size = (uint32_t)p->ep->params[SCI_PARAM_EAGER_RING],
	};

	p->waiting_attach = true;
	peer_expect_ctl(p);
	post_typed(p, &p->data_tx, &t, LINE_ATTACH);
}

/* Longer messages wait for a ring that has been asked for. */
#define CHAIN_WORTH	2048u

/*
 * Memory that receivers may read on their own, with no copy but theirs; or of a
 * program that has its messages in such memory on the other side too.
 */
static bool is_exported(const struct sci_req *req)
{
	const void *addr;
	size_t n;

	if (list_empty(&req->ep->bufs) ||
	    req->len < req->ep->params[SCI_PARAM_ZCOPY_MIN] || !req->len)
		return false;
	addr = msg_chunk(&req->at, &n);
	return n >= req->len && buf_find(req->ep, addr, req->len);
}

static bool is_long(const struct sci_req *req)
{
	return req->len > LINE_PAYLOAD &&
	       req->len > req->ep->params[SCI_PARAM_EAGER_MAX];
}

static size_t short_max(bool tagged, bool has_imm)
{
	if (has_imm)
		return SCI_IMM_SHORT_MAX;
	return tagged ? SCI_TAGGED_SHORT_MAX : SCI_SHORT_MAX;
}

/* 0: out of the queue, and completed unless it is a rendezvous; -EAGAIN. */
static int try_send(struct sci_req *req)
{
	struct sci_peer *p = req->peer;
	size_t line = short_max(req->tagged, req->has_imm);
	const uint64_t *params = req->ep->params;

	if (!tx_room(&p->data_tx) || !tx_prepare(p))
		return -EAGAIN;
	if (req->moved)
		return req->in_blocks ? send_eager(req) : send_chain(req);
	if (!req->sync && req->len <= line)
		return send_short(req);
	if (req->sync || is_long(req) || (!req->lent && is_exported(req)))
		return send_rts(req);
	if (req->len > params[SCI_PARAM_LINES_MAX] && wants_ring(req)) {
		ask_for_ring(p);
		if (!tx_room(&p->data_tx))
			return -EAGAIN;
	}
	/* the ring is here sooner than so many lines */
	if (p->waiting_attach && req->len > CHAIN_WORTH)
		return -EAGAIN;
	if (p->blocks_tx[RING_EAGER].size &&
	    req->len > params[SCI_PARAM_LINES_MAX])
		return send_eager(req);
	return send_chain(req);
}

/* Takes @req out of the queue if it has been sent. */
static int send_one(struct sci_req *req)
{
	int ret;

	list_del(&req->link);
	ret = try_send(req);
	if (ret == -EAGAIN)
		return ret;
	if (ret || req->state == MSG_QUEUED)
		req_done(req, ret);
	return 0;
}

static void requeue(struct sci_req *req)
{
	struct list *q = &req->peer->sendq;

	/* at the head, where it came from */
	req->link.next = q->next;
	req->link.prev = q;
	q->next->prev = &req->link;
	q->next = &req->link;
}

static bool push_queue(struct sci_peer *p)
{
	while (!list_empty(&p->sendq)) {
		struct sci_req *req = container_of(p->sendq.next,
						   struct sci_req, link);

		if (send_one(req)) {
			requeue(req);
			return false;
		}
	}
	return true;
}

static bool push_transfers(struct sci_peer *p)
{
	bool blocks = true, onesided = true;
	struct list *pos, *n;

	list_for_each_safe(pos, n, &p->sending) {
		struct sci_req *req = container_of(pos, struct sci_req, link);

		if (req->state != MSG_MOVING)
			continue;
		/* blocks of one message at a time; who takes none keeps out no other */
		if (req->kind != MSG_SEND)
			onesided &= !onesided_push(req);
		else if (blocks)
			blocks = !rndv_push(req);
		if (p->state == PEER_DOWN)
			return false;
	}
	return blocks && onesided;
}

static uint32_t moves(const struct sci_peer *p)
{
	return p->ctl_tx.pos + p->data_tx.pos + p->blocks_tx[RING_XFER].end;
}

/* Everything of @p that waits for room. Returns whether anything found some. */
int send_push(struct sci_peer *p)
{
	uint32_t before = moves(p);
	unsigned int completions = p->ep->completions;
	bool idle = push_ctl(p);

	if (p->state == PEER_UP)
		idle &= push_transfers(p);
	if (p->state == PEER_UP)
		idle &= push_queue(p);
	if (p->state == PEER_UP && p->ep->lossy && status_due(p))
		status_write(p);
	/* transfers may have left control lines there */
	if ((idle && list_empty(&p->ctlq)) || p->state == PEER_DOWN)
		list_del(&p->busy);
	return moves(p) != before ||
	       p->ep->completions != completions;
}

/* What has not gone yet goes from a copy: the caller wants its buffer back. */
static int copy_rest(struct sci_req *req)
{
	size_t len = req->len, left = len - req->moved;
	struct iovec iov = { .iov_len = left };

	req->lent = false;
	if (!left)
		return 0;
	req->copy = malloc(left);
	if (!req->copy)
		return -ENOMEM;
	iov.iov_base = req->copy;
	msg_gather(&req->at, req->copy, left);
	if (req->iov != req->inline_iov)
		free(req->iov);
	req->iov = req->inline_iov;
	req_iov(req, &iov, 1);
	req->len = len;
	return 0;
}

/* 0: accepted; it may have completed already. */
int send_start(struct sci_req *req)
{
	struct sci_peer *p = req->peer;
	int ret = 0;

	if (p->state == PEER_DOWN)
		return p->error;
	req->state = MSG_QUEUED;
	list_init(&req->link);
	if (list_empty(&p->sendq) && p->state == PEER_UP && !send_one(req))
		return 0;
	if (req->lent)
		ret = copy_rest(req);
	if (ret && !req->moved)
		return ret;
	list_add_tail(&req->link, &p->sendq);
	peer_busy(p);
	/* a part of a message is out, and the rest is lost */
	if (ret)
		peer_down(p, ret);
	return 0;
}

/* ---- the calls ---- */

static void describe(struct sci_req *req, struct sci_peer *peer, bool tagged,
		     uint32_t context, uint64_t tag)
{
	req->peer = peer;
	req->tagged = tagged;
	req->context = tagged ? context : MSG_UNTAGGED;
	req->tag = tag;
	req->status.tag = tag;
	req->status.context = tagged ? context : 0;
	req->status.len = req->len;
}

static int isendv(struct sci_peer *peer, bool tagged, uint32_t context,
		  uint64_t tag, const struct iovec *iov, size_t n,
		  unsigned int flags, struct sci_req **out)
{
	struct sci_ep *ep = peer->ep;
	struct sci_req *req;
	int ret = -ENOMEM;

	msg_lock(&ep->lock);
	req = req_new(ep, MSG_SEND);
	if (req) {
		ret = req_iov(req, iov, n);
		describe(req, peer, tagged, context, tag);
		req->sync = flags & SCI_SEND_SYNC;
		ret = ret ? ret : send_start(req);
		if (ret)
			req_free(req);
	}
	msg_unlock(&ep->lock);
	if (!ret)
		*out = req;
	return ret;
}

static int check_send(struct sci_peer *peer, uint32_t context,
		      const struct iovec *iov, size_t n, unsigned int flags)
{
	if (!peer || context > SCI_CONTEXT_MAX || (!iov && n) ||
	    n > SCI_IOV_MAX || flags & ~SCI_SEND_SYNC)
		return -EINVAL;
	if (!msg_iov_good(iov, n))
		return -EINVAL;
	return msg_usable(peer->ep) ? 0 : -ENOTCONN;
}

int sci_isendv(struct sci_peer *peer, const struct iovec *iov, size_t n,
	       unsigned int flags, struct sci_req **req)
{
	int ret = req ? check_send(peer, 0, iov, n, flags) : -EINVAL;

	return ret ? ret : isendv(peer, false, 0, 0, iov, n, flags, req);
}

int sci_itsendv(struct sci_peer *peer, uint32_t context, uint64_t tag,
		const struct iovec *iov, size_t n, unsigned int flags,
		struct sci_req **req)
{
	int ret = req ? check_send(peer, context, iov, n, flags) : -EINVAL;

	return ret ? ret :
		     isendv(peer, true, context, tag, iov, n, flags, req);
}

int sci_isend(struct sci_peer *peer, const void *buf, size_t len,
	      struct sci_req **req)
{
	const struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return sci_isendv(peer, &iov, 1, 0, req);
}

int sci_itsend(struct sci_peer *peer, uint32_t context, uint64_t tag,
	       const void *buf, size_t len, struct sci_req **req)
{
	const struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return sci_itsendv(peer, context, tag, &iov, 1, 0, req);
}

static int send_is_done(void *arg)
{
	struct sci_req *req = arg;

	return atomic_load_explicit(&req->done, memory_order_relaxed) ? 0 :
								-EAGAIN;
}

/* The long way of a blocking send: whatever does not go at once. */
static int send_wait(struct sci_peer *peer, bool tagged, uint32_t context,
		     uint64_t tag, const void *buf, size_t len)
{
	const struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct sci_req req;
	int ret;

	req_init(&req, peer->ep, MSG_SEND);
	req_iov(&req, &iov, 1);
	describe(&req, peer, tagged, context, tag);
	ret = send_start(&req);
	if (!ret)
		ret = msg_wait(peer->ep, send_is_done, &req, -1);
	return ret ? ret : req.status.error;
}

static inline bool goes_at_once(struct sci_peer *peer)
{
	return peer->state == PEER_UP && list_empty(&peer->sendq) &&
	       tx_room(&peer->data_tx) &&
	       (!peer->ep->lossy || peer->data_tx.shadow);
}

int sci_send(struct sci_peer *peer, const void *buf, size_t len)
{
	struct sci_ep *ep;
	int ret = 0;

	if (!peer || (!buf && len))
		return -EINVAL;
	ep = peer->ep;
	if (!msg_usable(ep))
		return -ENOTCONN;
	msg_lock(&ep->lock);
	if (len <= SCI_SHORT_MAX && goes_at_once(peer)) {
		own_lines(peer, len);
		post_short(peer, false, 0, 0, buf, len);
	} else {
		ret = send_wait(peer, false, 0, 0, buf, len);
	}
	msg_unlock(&ep->lock);
	return ret;
}

int sci_tsend(struct sci_peer *peer, uint32_t context, uint64_t tag,
	      const void *buf, size_t len)
{
	struct sci_ep *ep;
	int ret = 0;

	if (!peer || (!buf && len) || context > SCI_CONTEXT_MAX)
		return -EINVAL;
	ep = peer->ep;
	if (!msg_usable(ep))
		return -ENOTCONN;
	msg_lock(&ep->lock);
	if (len <= SCI_TAGGED_SHORT_MAX && goes_at_once(peer)) {
		own_lines(peer, len);
		post_short(peer, true, context, tag, buf, len);
	} else {
		ret = send_wait(peer, true, context, tag, buf, len);
	}
	msg_unlock(&ep->lock);
	return ret;
}

static int check_sendm(struct sci_peer *peer, const struct sci_send *send,
		       struct sci_req *const *req)
{
	uint32_t flags = SCI_SEND_SYNC | SCI_SEND_TAGGED | SCI_SEND_COPY |
			 SCI_SEND_IMM | SCI_SEND_AT_ONCE;

	if (!send || send->flags & ~flags ||
	    (!req && !(send->flags & SCI_SEND_COPY)))
		return -EINVAL;
	return check_send(peer, send->flags & SCI_SEND_TAGGED ? send->context : 0,
			  send->iov, send->n, 0);
}

static inline void short_at_once(struct sci_peer *p, const struct sci_send *send,
				 bool tagged, size_t len)
{
	struct msg_cursor at = { .iov = send->iov, .n = send->n };
	uint8_t room[SCI_SHORT_MAX];
	const void *data;

	own_lines(p, len);
	msg_skip(&at, 0);
	data = short_data(&at, room, len);
	if (send->flags & SCI_SEND_IMM)
		post_short_imm(p, tagged ? send->context : MSG_UNTAGGED,
			       tagged ? send->tag : 0, send->imm, data, len);
	else
		post_short(p, tagged, send->context, send->tag, data, len);
}

/* In one block; of what may be in exported memory a request knows more. */
static bool block_at_once(struct sci_peer *p, const struct sci_send *send,
			  struct msg_out *m)
{
	return p->blocks_tx[RING_EAGER].size &&
	       m->len <= block_limit(p, m->len) &&
	       (send->flags & SCI_SEND_COPY || list_empty(&p->ep->bufs)) &&
	       !send_block(p, m, &m->at, 0, m->len);
}

static bool long_at_once(struct sci_peer *p, const struct sci_send *send,
			 bool tagged, size_t len)
{
	const uint64_t *params = p->ep->params;
	struct msg_out m = {
		.at = { .iov = send->iov, .n = send->n }, .len = len,
		.tag = tagged ? send->tag : 0, .imm = send->imm,
		.context = tagged ? send->context : MSG_UNTAGGED,
		.has_imm = send->flags & SCI_SEND_IMM,
	};

	if (p->ep->lossy || len > params[SCI_PARAM_EAGER_MAX])
		return false;
	msg_skip(&m.at, 0);
	if (len > params[SCI_PARAM_LINES_MAX])
		return block_at_once(p, send, &m);
	return send_chain_whole(p, &m);
}

/* What goes at once, whole, and needs no request to be remembered. */
static inline bool sendm_at_once(struct sci_peer *p, const struct sci_send *send,
				 size_t len)
{
	bool tagged = send->flags & SCI_SEND_TAGGED;

	if (send->flags & SCI_SEND_SYNC || !goes_at_once(p))
		return false;
	if (len > short_max(tagged, send->flags & SCI_SEND_IMM))
		return long_at_once(p, send, tagged, len);
	short_at_once(p, send, tagged, len);
	return true;
}

/* Would it be queued, and not as the first?  Who is gone has to be told of. */
static bool would_wait(struct sci_peer *p, const struct sci_send *send,
		       size_t len)
{
	const struct msg_blocks *b = &p->blocks_tx[RING_EAGER];
	const uint64_t *params = p->ep->params;
	uint32_t lines = 1;

	if (p->state == PEER_DOWN)
		return false;
	if (!list_empty(&p->sendq))
		return true;
	if (p->state == PEER_CONNECTING)
		return false;
	if (!tx_room(&p->data_tx) || !tx_prepare(p))
		return true;
	if (b->size && len > params[SCI_PARAM_LINES_MAX])
		return !blocks_room(p, b, block_limit(p, len));
	if (len <= params[SCI_PARAM_LINES_MAX])
		lines = chain_lines(send->flags & SCI_SEND_IMM, len);
	/* the peer may keep as many to itself, see status_due(): longer ones begin */
	if (lines > DATA_LINES / 2)
		lines = DATA_LINES / 2;
	return tx_free(&p->data_tx) < lines &&
	       (!tx_room_slow(&p->data_tx) || tx_free(&p->data_tx) < lines);
}

static int sendm_request(struct sci_peer *peer, const struct sci_send *send,
			 struct sci_req **out)
{
	bool tagged = send->flags & SCI_SEND_TAGGED;
	struct sci_req *req;
	int ret;

	/* who never looks would not learn that the peer is gone, either */
	if (!out && peer->unwatched >= SCI_UNWATCHED_MAX)
		return -EAGAIN;
	req = req_new(peer->ep, MSG_SEND);
	if (!req)
		return -ENOMEM;
	ret = req_iov(req, send->iov, send->n);
	describe(req, peer, tagged, send->context, tagged ? send->tag : 0);
	req->sync = send->flags & SCI_SEND_SYNC;
	req->has_imm = send->flags & SCI_SEND_IMM;
	req->imm = send->imm;
	req->lent = send->flags & SCI_SEND_COPY;
	/* its receiver comes for it, or says where it goes */
	if (!ret && req->lent && (req->sync || is_long(req)))
		ret = copy_rest(req);
	req->unwatched = !out;
	peer->unwatched += !out;
	ret = ret ? ret : send_start(req);
	if (!ret && out)
		*out = req;
	if (!ret)
		return 0;
	peer->unwatched -= !out;
	req_free(req);
	return ret;
}

/* Its request, if there has to be one. */
static int sendm_or_request(struct sci_peer *peer, const struct sci_send *send,
			    struct sci_req **req)
{
	bool at_once = send->flags & SCI_SEND_AT_ONCE;
	size_t len = msg_iov_len(send->iov, send->n);
	int ret;

	if ((!req || at_once) && sendm_at_once(peer, send, len)) {
		if (req)
			*req = NULL;
		return 0;
	}
	if (!req && at_once && would_wait(peer, send, len))
		return -EAGAIN;
	ret = sendm_request(peer, send, req);
	if (!ret && req && at_once && (*req)->state == MSG_DONE &&
	    !(*req)->status.error) {
		req_free(*req);
		*req = NULL;
	}
	return ret;
}

int sci_isendm(struct sci_peer *peer, const struct sci_send *send,
	       struct sci_req **req)
{
	int ret = check_sendm(peer, send, req);

	if (ret)
		return ret;
	msg_lock(&peer->ep->lock);
	ret = sendm_or_request(peer, send, req);
	msg_unlock(&peer->ep->lock);
	return ret;
}
