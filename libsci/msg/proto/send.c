// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: sending
 *
 * A message is sent by the first of these protocols that can carry it:
 *
 *	short		one line
 *	chain		several lines; the receiver detects each of them like a short
 *			message. Up to SCI_PARAM_LINES_MAX bytes, and eager messages
 *			while the rings are not attached
 *	eager		up to SCI_PARAM_EAGER_MAX bytes, or SCI_PARAM_FAR_EAGER_MAX bytes
 *			to a far peer (handshake.c); but no message in one piece from
 *			SCI_PARAM_SINGLE_COPY_MIN on
 *	rendezvous	all other messages, and synchronous sends
 *
 * The messages to a peer enter its data ring in the order in which they were sent. A
 * message that finds no room waits in the peer's queue, and later messages wait behind it.
 */

#include "libsci/msg/proto/send.h"

#include <errno.h>
#include <stdlib.h>

void post_typed(struct sci_peer *p, struct msg_tx *tx,
		const struct msg_typed *line, enum msg_line_type type)
{
	tx_put(p, tx, 0, &no_head, line, LINE_BODY, type);
	tx_go(p, tx, 1);
}

/* ---- control lines ---- */

/*
 * Send a control line, in order. If the line has to wait and there is no memory to queue it, close
 * the connection: the peer may be DOWN afterwards.
 */
void send_ctl(struct sci_peer *p, const struct msg_typed *line)
{
	struct msg_typed l = *line;
	struct msg_ctl *c;

	if (p->state == PEER_DOWN)
		return;
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

/* Send the control lines that wait for room. Return false if some still wait. */
bool ctl_push(struct sci_peer *p)
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
 * Return the bytes of a short message: in place if they are in one piece (the usual case), else
 * gathered in @room. A load from a new copy would wait for the stores to the copy.
 */
const void *short_data(struct msg_cursor *at, void *room, size_t len)
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

static int short_send(struct sci_req *req)
{
	uint8_t room[SCI_SHORT_MAX];
	const void *data = short_data(&req->at, room, req->len);

	if (req->has_imm)
		short_imm_post(req->peer, req->context, req->tag, req->imm,
			       data, req->len);
	else
		short_post(req->peer, req->tagged, req->context, req->tag, data,
			   req->len);
	return 0;
}

/* ---- several lines ---- */

static inline struct msg_out out_make(const struct sci_req *req)
{
	return (struct msg_out){
		.at = req->at, .len = req->len, .tag = req->tag, .imm = req->imm,
		.context = req->context, .has_imm = req->has_imm,
	};
}

bool send_chain_whole(struct sci_peer *p, const struct msg_out *m)
{
	const void *buf;
	size_t n;

	buf = msg_chunk(&m->at, &n);
	return n >= m->len && chain_at_once(p, m, buf);
}

static void chain_send_line(struct sci_req *req)
{
	struct line_head head = { .len = 0 };
	enum msg_line_type type = LINE_SHORT;
	struct sci_peer *p = req->peer;
	uint8_t data[LINE_PAYLOAD];
	size_t n;

	if (!req->moved) {
		const struct msg_out m = out_make(req);

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

static int chain_send(struct sci_req *req)
{
	const struct msg_out m = out_make(req);
	struct sci_peer *p = req->peer;

	/*
	 * write all lines at once, except on an adapter: there the lines leave in order, and the
	 * receiver copies meanwhile
	 */
	if (!req->moved && !p->lossy && send_chain_whole(p, &m))
		return 0;
	do {
		if (!tx_room(&p->data_tx))
			return -EAGAIN;
		chain_send_line(req);
	} while (req->moved < req->len);
	p->chained += req->len;
	p->ep->stats.sent_lines++;
	return 0;
}

/* ---- eager ---- */

/* Build struct line_eager in registers: a load from memory would wait for the stores. */
static inline void eager_announce_first(struct sci_peer *p, const struct msg_out *m,
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

static void eager_announce_more(struct sci_peer *p, uint32_t len, uint32_t end,
				uint32_t crc)
{
	const struct msg_typed t = {
		.more = { .len = len, .end = end, .crc = crc },
	};

	post_typed(p, &p->data_tx, &t, LINE_MORE);
}

/* Write a block. @at: current position in @m. Return -EAGAIN if there is no room for the block. */
__hot int send_block(struct sci_peer *p, const struct msg_out *m,
		     struct msg_cursor *at, size_t moved, size_t n)
{
	struct msg_blocks *b = &p->blocks_tx[RING_EAGER];
	int64_t room, end;
	uint32_t crc;

	if (!tx_room(&p->data_tx))
		return -EAGAIN;
	room = blocks_room(p, b, at, n);
	if (room < 0)
		return (int)room;
	lines_prefetch_write(p, m->len);
	end = blocks_put(p, b, room, at, n, &crc);
	if (end < 0)
		return (int)end;
	if (moved)
		eager_announce_more(p, (uint32_t)n, (uint32_t)end, crc);
	else
		eager_announce_first(p, m, (uint32_t)n, (uint32_t)end, crc);
	if (moved + n == m->len) {
		p->ep->stats.sent_eager++;
		p->last_block_pos = p->data_rx.pos;
	}
	return 0;
}

/* Send in blocks: the receiver copies a block while the sender writes the next block. */
static int eager_send(struct sci_req *req)
{
	const struct msg_out m = out_make(req);
	struct sci_peer *p = req->peer;

	do {
		size_t left = req->len - req->moved;
		size_t n = block_limit(p, req->len);
		int ret;

		n = n < left ? n : left;
		ret = send_block(p, &m, &req->at, req->moved, n);
		if (ret)
			return ret;
		req->moved += n;
		req->in_blocks = true;
	} while (req->moved < req->len);
	return 0;
}

/* ---- rendezvous: request to send ---- */

/* Describe the buffer in the RTS if it is in one piece, for a receiver that can read the buffer. */
static void buffer_offer(struct sci_req *req, struct line_rts *rts)
{
	const uint8_t *addr;
	struct msg_buf *buf;
	size_t n;

	if (!req->len)
		return;
	addr = msg_chunk(&req->at, &n);
	if (n < req->len)
		return;
	if (req->len >= req->peer->params->value[SCI_PARAM_SINGLE_COPY_MIN]) {
		rts->addr = (uintptr_t)addr;
		rts->flags |= RTS_PRIVATE;
	}
	buf = buf_find(req->ep, addr, req->len);
	if (!buf)
		return;
	rts->segment = req->ep->ops->lseg.id(buf->seg);
	rts->offset = (uint64_t)(addr - buf->addr);
	rts->flags |= RTS_EXPORTED;
}

static int rts_send(struct sci_req *req)
{
	struct sci_peer *p = req->peer;
	struct msg_typed t = {
		.rts = { .len = req->len, .tag = req->tag,
			 .context = req->context,
			 .imm = req->imm,
			 .flags = (req->ep->crc ? RTS_CRC : 0) |
				  (req->has_imm ? RTS_IMM : 0) |
				  (req->sync ? RTS_SYNC : 0) },
	};

	if (req_id_get(req))
		return -ENOMEM;
	t.rts.id = req->id;
	buffer_offer(req, &t.rts);
	req->state = MSG_HANDSHAKE;
	list_add_tail(&req->link, &p->sending);
	peer_expect_ctl(p);
	handshake_begin(req);
	post_typed(p, &p->data_tx, &t, LINE_RTS);
	return 0;
}

/* ---- choice of the protocol ---- */

static bool send_wants_ring(const struct sci_req *req)
{
	const struct sci_peer *p = req->peer;
	uint64_t after = req->peer->params->value[SCI_PARAM_ATTACH_AFTER];

	return !p->blocks_tx[RING_EAGER].size && !p->waiting_attach &&
	       !p->attach_failed && p->chained + req->len > after &&
	       (!p->rail_node || first_rail_works(p));
}

/*
 * Return whether the eager ring can carry the message. It is on the first rail. With two rails an
 * eager message is one block, so that none is incomplete when the first rail fails.
 */
static bool ring_carries(const struct sci_req *req)
{
	struct sci_peer *p = req->peer;

	return p->blocks_tx[RING_EAGER].size &&
	       (!p->rail_node || (first_rail_works(p) && !ring_has_ended(p) &&
				  req->len <= block_limit(p, req->len)));
}

static void ring_ask(struct sci_peer *p)
{
	struct msg_typed t = {
		.attach.size = (uint32_t)p->params->value[SCI_PARAM_EAGER_RING],
	};

	p->waiting_attach = true;
	peer_expect_ctl(p);
	post_typed(p, &p->data_tx, &t, LINE_ATTACH);
}

/* A message longer than this waits for the eager ring that the sender has requested. */
#define CHAIN_WORTH	2048u

/*
 * Return whether the message is in exported memory and long enough for zero-copy: the receiver may
 * read it with one copy, or the sender stores it straight into the receiver's exported buffer.
 */
static bool message_is_exported(const struct sci_req *req)
{
	const void *addr;
	size_t n;

	if (list_empty(&req->ep->bufs) ||
	    req->len < req->peer->params->value[SCI_PARAM_ZCOPY_MIN] || !req->len)
		return false;
	addr = msg_chunk(&req->at, &n);
	return n >= req->len && buf_find(req->ep, addr, req->len);
}

static bool prefers_handshake(const struct sci_req *req)
{
	return req_is_long(req) || (!req->wants_copy && message_is_exported(req));
}

/*
 * Return whether the message is eager because the peer is far away. The ring must have room for the
 * whole message: waiting for credits takes as long as a handshake.
 */
static bool far_eager_pays(struct sci_req *req)
{
	struct sci_peer *p = req->peer;

	if (!handshake_takes_longer(req))
		return false;
	if (send_wants_ring(req) && tx_free(&p->data_tx) > 1)
		ring_ask(p);
	return ring_carries(req) && blocks_have_room(p, &p->blocks_tx[RING_EAGER], req->len);
}

static int far_eager_send(struct sci_req *req)
{
	int ret = eager_send(req);

	if (req->moved)
		handshake_leave_out(req->peer);
	return ret;
}

/* Return 0 if the message is sent, or its RTS; -EAGAIN if it has to wait. */
static int send_try(struct sci_req *req)
{
	struct sci_peer *p = req->peer;
	size_t line = short_limit(req->tagged, req->has_imm);
	const uint64_t *params = req->peer->params->value;

	if (!tx_room(&p->data_tx) || !tx_prepare(p))
		return -EAGAIN;
	if (req->moved)
		return req->in_blocks ? eager_send(req) : chain_send(req);
	if (!req->sync && req->len <= line)
		return short_send(req);
	if (req->sync || prefers_handshake(req)) {
		if (!req->sync && far_eager_pays(req))
			return far_eager_send(req);
		if (p->xfer_unused)
			xfer_return(p);
		return tx_room(&p->data_tx) ? rts_send(req) : -EAGAIN;
	}
	if (req->len > params[SCI_PARAM_LINES_MAX] && send_wants_ring(req)) {
		ring_ask(p);
		if (!tx_room(&p->data_tx))
			return -EAGAIN;
	}
	/* wait for the ring: a chain of this length takes longer than attaching the ring */
	if (p->waiting_attach && req->len > CHAIN_WORTH)
		return -EAGAIN;
	if (req->len > params[SCI_PARAM_LINES_MAX] && ring_carries(req))
		return eager_send(req);
	return chain_send(req);
}

/* Remove @req from the queue and send it. On -EAGAIN the caller puts it back. */
static int queued_request_send(struct sci_req *req)
{
	int ret;

	list_del(&req->link);
	ret = send_try(req);
	if (ret == -EAGAIN)
		return ret;
	if (ret || req->state == MSG_QUEUED)
		req_done(req, ret);
	return 0;
}

static void send_requeue(struct sci_req *req)
{
	struct list *q = &req->peer->sendq;

	/* put the request back to the head of the queue */
	req->link.next = q->next;
	req->link.prev = q;
	q->next->prev = &req->link;
	q->next = &req->link;
}

/* Send the messages that wait for room. Return false if some still wait. */
bool queue_push(struct sci_peer *p)
{
	while (!list_empty(&p->sendq)) {
		struct sci_req *req = container_of(p->sendq.next,
						   struct sci_req, link);

		if (queued_request_send(req)) {
			send_requeue(req);
			return false;
		}
	}
	return true;
}

/* Copy the unsent bytes, so that the program may reuse its buffer. */
int copy_rest(struct sci_req *req)
{
	size_t len = req->len, left = len - req->moved;
	struct iovec iov = { .iov_len = left };

	req->wants_copy = false;
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

/* Send @req or queue it. Return 0 if @req is accepted; it may have completed already. */
int send_start(struct sci_req *req)
{
	struct sci_peer *p = req->peer;
	int ret = 0;

	if (p->state == PEER_DOWN)
		return peer_error(p);
	req->state = MSG_QUEUED;
	list_init(&req->link);
	if (list_empty(&p->sendq) && p->state == PEER_UP && !queued_request_send(req))
		return 0;
	if (req->wants_copy)
		ret = copy_rest(req);
	if (ret && !req->moved)
		return ret;
	list_add_tail(&req->link, &p->sendq);
	peer_busy(p);
	/* no doorbell reports that blocks can be stored again: a sleeping thread must try again soon */
	if (p->lossy)
		wake_all(p->ep);
	/* a part of the message has been sent, and the rest cannot be sent */
	if (ret)
		peer_down(p, ret);
	return 0;
}

/* ---- at once: without a request ---- */

static __hot __attribute__((noinline)) bool
block_send_buffer(struct sci_peer *p, uint32_t context, uint64_t tag, const uint64_t *imm,
		  const void *buf, size_t len)
{
	const struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct msg_out m = {
		.at = { .iov = &iov, .n = 1 }, .len = len, .tag = tag,
		.imm = imm ? *imm : 0, .context = context, .has_imm = imm,
	};

	return block_at_once(p, &m, false);
}

/* Send a buffer in one piece, without a request. A chain needs no struct msg_out in memory. */
__hot bool buffer_at_once(struct sci_peer *p, uint32_t context, uint64_t tag,
			  const uint64_t *imm, const void *buf, size_t len)
{
	const struct msg_out m = {
		.len = len, .tag = tag, .imm = imm ? *imm : 0,
		.context = context, .has_imm = imm,
	};

	if (p->lossy || len > p->params->eager_limit)
		return false;
	if (len > p->params->value[SCI_PARAM_LINES_MAX])
		return block_send_buffer(p, context, tag, imm, buf, len);
	return chain_at_once(p, &m, buf);
}
