// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: receiving
 *
 * The receiver takes lines off a peer's rings in order. A message goes to the posted receive that
 * accepts it. Otherwise it is copied to the unexpected queue, up to SCI_PARAM_UNEXPECTED_MAX bytes
 * in all. Beyond that limit it stays in the ring, and when the ring is full, later messages stay
 * with the sender. While a receive is posted for this peer, or for any peer, there is no limit: the
 * message for that receive may be behind other messages. Receives of service contexts are always
 * posted and do not count.
 *
 * While no such receive is posted, a message stays in the ring for DEFER_POLLS polls. A
 * receive that is posted soon takes the message from the ring, with one copy. A sender that is
 * faster than its receiver finds the ring full, and does not fill the receiver's memory.
 *
 * The receiver checks all contents of a line. It closes the connection of a peer that violates the
 * protocol (-EPROTO); this does not affect other peers.
 */

#include "libsci/msg/conn/blocks.h"
#include "libsci/msg/proto/proto.h"

#include <errno.h>
#include <stdlib.h>

/* most lines of one peer that are handled before the next peer is polled */
#define BUDGET		32u
/* The longest chain. For a longer message the sender would attach rings. */
#define CHAIN_MAX	(64u << 20)

/* ---- immediates ---- */

static void imm_note(struct sci_peer *p, uint64_t imm)
{
	p->has_imm = true;
	p->imm = imm;
}

/* Put the immediate of the current message of @p into the status. */
static void imm_take(struct sci_peer *p, struct sci_status *st)
{
	if (!p->has_imm)
		return;
	st->flags |= SCI_STATUS_IMM;
	st->imm = p->imm;
}

/* ---- unexpected messages ---- */

/* Return whether a receive or probe may wait for a message behind the next message of @p. */
static bool peer_is_wanted(const struct sci_peer *p)
{
	return p->wanted || p->ep->wanted || p->draining;
}

static bool message_may_keep(struct sci_peer *p, size_t len)
{
	struct sci_ep *ep = p->ep;

	return ep->unexpected_bytes + len <=
		       ep->params.value[SCI_PARAM_UNEXPECTED_MAX] ||
	       peer_is_wanted(p);
}

static bool message_may_stay(struct sci_peer *p)
{
	if (peer_is_wanted(p) || p->defer_polls >= DEFER_POLLS)
		return false;
	p->defer_polls++;
	return true;
}

/* Allocate a message with room for @len bytes. Return NULL if there is no memory. */
static struct sci_msg *message_new(struct sci_peer *p, uint32_t context, uint64_t tag,
				   size_t len)
{
	struct sci_msg *msg = calloc(1, sizeof(*msg));

	if (msg)
		msg->data = len <= sizeof(msg->small) ? msg->small : malloc(len);
	if (!msg || !msg->data) {
		/* the line stays in the ring, and no doorbell reports that there is memory again */
		p->ep->retry = true;
		free(msg);
		return NULL;
	}
	list_init(&msg->link);
	msg->ep = p->ep;
	msg->peer = p;
	msg->len = len;
	msg->match.source = p;
	msg->match.tag = tag;
	msg->match.context = context;
	return msg;
}

static struct sci_msg *unexpected_keep(struct sci_peer *p, uint32_t context, uint64_t tag,
				       size_t len)
{
	struct sci_ep *ep = p->ep;
	struct sci_msg *msg;

	if (message_may_stay(p))
		return NULL;
	if (!message_may_keep(p, len + sizeof(*msg))) {
		ep->held_back = true;
		return NULL;
	}
	msg = message_new(p, context, tag, len);
	if (!msg)
		return NULL;
	msg->has_imm = p->has_imm;
	msg->imm = p->has_imm ? p->imm : 0;
	sci_match_unexpected(&ep->match, &msg->match);
	msg->kept = len + sizeof(*msg);
	ep->unexpected_bytes += msg->kept;
	/* a probe may be waiting for this message */
	msg_changed(ep);
	return msg;
}

void msg_unexpected_free(struct sci_msg *msg)
{
	msg->ep->unexpected_bytes -= msg->kept;
	if (msg->kept)
		held_back_wake(msg->ep);
	if (msg->data != msg->small)
		free(msg->data);
	free(msg);
}

/* ---- complete messages ---- */

static bool sum_is_bad(struct sci_peer *p, const void *data, size_t len,
		       uint32_t crc)
{
	if (!p->sums || sci_pio_crc32c(0, data, len) == crc)
		return false;
	p->ep->stats.crc_errors++;
	return true;
}

/* Pass a message to its handler, aligned to 8 bytes unless it is long. */
static int message_to_handler(struct sci_peer *p, uint32_t context, uint64_t tag,
			      const void *data, size_t len, const uint32_t *crc)
{
	uint64_t room[LINE_WORDS];

	if (len > SCI_HANDLER_MAX)
		return -EPROTO;
	if ((uintptr_t)data % sizeof(*room) && len <= sizeof(room)) {
		line_copy(room, data, len);
		data = room;
	}
	handler_run(p, context, tag, data, len,
		    crc && sum_is_bad(p, data, len, *crc) ? -EBADMSG : 0);
	return 0;
}

/* Deliver a message. @crc: checksum of @data, to be checked when the message is taken; or NULL. */
static int msg_deliver(struct sci_peer *p, uint32_t context, uint64_t tag,
		       const void *data, size_t len, const uint32_t *crc)
{
	struct sci_req *req = recv_for(p, context, tag, len);
	struct sci_msg *msg;

	if (!req && context_is_handler(context))
		return message_to_handler(p, context, tag, data, len, crc);
	if (!req) {
		msg = unexpected_keep(p, context, tag, len);
		if (!msg)
			return -EAGAIN;
		memcpy(msg->data, data, len);
		msg->have = len;
		if (crc && sum_is_bad(p, data, len, *crc))
			msg->error = -EBADMSG;
		return 0;
	}
	req->peer = p;
	status_of_message(&req->status, context, tag, len);
	imm_take(p, &req->status);
	msg_scatter_line(&req->at, data, len);
	msg_finish(req, crc && sum_is_bad(p, data, len, *crc) ? -EBADMSG : 0);
	return 0;
}

/* ---- messages in several lines ---- */

static void chain_data(struct sci_peer *p, const void *data, size_t len)
{
	if (p->chain_req) {
		msg_scatter_line(&p->chain_req->at, data, len);
	} else if (p->chain_msg) {
		memcpy(p->chain_msg->data + p->chain_msg->have, data, len);
		p->chain_msg->have += len;
	}
	p->chain_left -= len;
}

static void chain_end(struct sci_peer *p)
{
	struct sci_req *req = p->chain_req;
	struct sci_msg *msg = p->chain_msg;
	int error = p->chain_error;

	p->chain_req = NULL;
	p->chain_msg = NULL;
	p->chain_error = 0;
	msg_changed(p->ep);
	if (msg)
		msg->error = error;
	if (req) {
		msg_finish(req, error);
	} else if (msg && context_is_handler(msg->match.context)) {
		handler_run(p, msg->match.context, msg->match.tag, msg->data,
			    msg->len, error);
		msg_unexpected_free(msg);
	} else if (msg && msg->req) {
		req = msg->req;
		msg->req = NULL;
		recv_message(req, msg);
	}
}

/* Begin a message that continues in later lines or blocks. */
static int chain_begin(struct sci_peer *p, uint32_t context, uint64_t tag,
		       uint64_t len)
{
	if (len > (context_is_handler(context) ? SCI_HANDLER_MAX : CHAIN_MAX))
		return -EPROTO;
	p->chain_req = recv_for(p, context, tag, len);
	if (p->chain_req) {
		p->chain_req->state = MSG_CHAINED;
		p->chain_req->peer = p;
		status_of_message(&p->chain_req->status, context, tag, len);
		imm_take(p, &p->chain_req->status);
	} else {
		p->chain_msg = context_is_handler(context) ?
				       message_new(p, context, tag, len) :
				       unexpected_keep(p, context, tag, len);
		if (!p->chain_msg)
			return -EAGAIN;
	}
	p->chain_left = len;
	return 0;
}

static void chain_piece(struct sci_peer *p, const void *data, size_t len)
{
	chain_data(p, data, len);
	if (!p->chain_left)
		chain_end(p);
}

static int chain_handle(struct sci_peer *p, const struct line_chain *c)
{
	int ret = chain_begin(p, c->context, c->tag, c->len);

	if (!ret)
		chain_piece(p, c->data,
			    c->len < CHAIN_HEAD ? c->len : CHAIN_HEAD);
	return ret;
}

static int chain_handle_imm(struct sci_peer *p, const struct line_chain_imm *c)
{
	int ret;

	imm_note(p, c->imm);
	ret = chain_begin(p, c->context, c->tag, c->len);
	if (!ret)
		chain_piece(p, c->data,
			    c->len < CHAIN_IMM_HEAD ? c->len : CHAIN_IMM_HEAD);
	return ret;
}

/* ---- eager messages ---- */

static int eager_handle(struct sci_peer *p, const struct line_eager *e)
{
	const uint8_t *data = blocks_find(p, RING_EAGER, e->end,
					  e->first);
	int ret;

	if (!data || !e->first || e->first > e->len)
		return -EPROTO;
	if (e->has_imm)
		imm_note(p, e->imm);
	if (e->first == e->len) {
		const uint32_t crc = e->crc;

		ret = msg_deliver(p, e->context, e->tag, data, e->len, &crc);
	} else {
		ret = chain_begin(p, e->context, e->tag, e->len);
		if (!ret && sum_is_bad(p, data, e->first, e->crc))
			p->chain_error = -EBADMSG;
		if (!ret)
			chain_piece(p, data, e->first);
	}
	if (ret)
		return ret;
	p->status_next.eager = e->end;
	status_of_blocks(p);
	return 0;
}

static int eager_handle_more(struct sci_peer *p, const struct line_more *m)
{
	const uint8_t *data = blocks_find(p, RING_EAGER, m->end,
					  m->len);

	if (!data || !m->len || m->len > p->chain_left)
		return -EPROTO;
	if (sum_is_bad(p, data, m->len, m->crc))
		p->chain_error = -EBADMSG;
	chain_piece(p, data, m->len);
	p->status_next.eager = m->end;
	status_of_blocks(p);
	return 0;
}

/* Continue an incomplete message: the next line must belong to it. */
static int chain_continue(struct sci_peer *p, const struct msg_line *l)
{
	const struct msg_typed *t = (const struct msg_typed *)l;
	size_t n = line_kind(l);

	if (n == LINE_TYPED && t->type == LINE_MORE)
		return eager_handle_more(p, &t->more);
	if (n == LINE_TYPED || !n || n > p->chain_left)
		return -EPROTO;
	chain_piece(p, l, n);
	return 0;
}

/* ---- rendezvous: a request to send ---- */

static int rts_handle(struct sci_peer *p, const struct line_rts *rts)
{
	struct sci_req *req;
	struct sci_msg *msg;

	if (context_is_handler(rts->context))
		return -EPROTO;
	if (rts->flags & RTS_IMM)
		imm_note(p, rts->imm);
	req = recv_for(p, rts->context, rts->tag, rts->len);
	if (req) {
		imm_take(p, &req->status);
		rndv_accept(req, p, rts);
		return 0;
	}
	msg = unexpected_keep(p, rts->context, rts->tag, 0);
	if (!msg)
		return -EAGAIN;
	msg->rendezvous = true;
	msg->rts = *rts;
	msg->len = rts->len;
	return 0;
}

/* ---- lines ---- */

static int tagged_imm_handle(struct sci_peer *p, const struct line_tagged_imm *t)
{
	if (t->len > sizeof(t->data))
		return -EPROTO;
	imm_note(p, t->imm);
	return msg_deliver(p, t->context, t->tag, t->data, t->len, NULL);
}

static int data_line(struct sci_peer *p, const struct msg_line *l)
{
	const struct msg_typed *t = (const struct msg_typed *)l;
	unsigned int kind = line_kind(l);

	if (p->chain_left)
		return chain_continue(p, l);
	p->has_imm = false;
	if (kind != LINE_TYPED)
		return msg_deliver(p, MSG_UNTAGGED, 0, l, kind, NULL);
	switch (t->type) {
	case LINE_TAGGED:
		if (t->tagged.len > sizeof(t->tagged.data) ||
		    t->tagged.context == MSG_UNTAGGED)
			return -EPROTO;
		return msg_deliver(p, t->tagged.context, t->tagged.tag,
				   t->tagged.data, t->tagged.len, NULL);
	case LINE_TAGGED_IMM:
		return tagged_imm_handle(p, &t->tagged_imm);
	case LINE_CHAIN_IMM:
		return chain_handle_imm(p, &t->chain_imm);
	case LINE_CHAIN:
		return chain_handle(p, &t->chain);
	case LINE_EAGER:
		return eager_handle(p, &t->eager);
	case LINE_RTS:
		return rts_handle(p, &t->rts);
	case LINE_ATTACH:
	case LINE_RECALL:
	case LINE_DETACH:
		return rings_line(p, t);
	default:
		return -EPROTO;
	}
}

static int ring_poll(struct sci_peer *p, struct msg_rx *rx,
		     int (*handle)(struct sci_peer *p,
				   const struct msg_line *l))
{
	struct msg_line l;
	unsigned int n;
	int ret;

	for (n = 0; n < BUDGET; n++) {
		if (!peer_line_peek(p, rx) ||
		    !line_ops.get(&rx->slots[rx->slot], rx->id, &l))
			break;
		ret = line_seq(&l) == (rx->pos & 3) ? handle(p, &l) : -EPROTO;
		if (ret == -EAGAIN || (ret && p->draining))
			break;
		if (ret || p->state == PEER_DOWN) {
			peer_down(p, -EPROTO);
			return (int)n + 1;
		}
		rx_advance(rx);
	}
	return (int)n;
}

static int ctl_line(struct sci_peer *p, const struct msg_line *l)
{
	return line_kind(l) == LINE_TYPED ?
		       rndv_ctl(p, (const struct msg_typed *)l) :
		       -EPROTO;
}

/* Take lines off the rings of @p. Return their number. */
int receive_poll(struct sci_peer *p)
{
	int n = 0;

	if (p->expects) {
		n = ring_poll(p, &p->ctl_rx, ctl_line);
		p->status_next.ctl = p->ctl_rx.pos;
	}
	if (p->state != PEER_UP)
		return n;
	n += ring_poll(p, &p->data_rx, data_line);
	p->status_next.data = p->data_rx.pos;
	if (!n) {
		p->idle++;
		return 0;
	}
	p->idle = 0;
	p->defer_polls = 0;
	p->announced = false;
	/* on an adapter, the status line costs a packet: send queued data to the same peer first */
	if (p->state == PEER_UP && status_due(p) &&
	    (!p->lossy || list_empty(&p->busy)))
		status_write(p);
	return n;
}

/* ---- receives ---- */

/* Receive @msg, which is in no queue, into @req: now, or when all its bytes have arrived. */
void recv_message(struct sci_req *req, struct sci_msg *msg)
{
	req->peer = msg->peer;
	req->status.flags = msg->has_imm ? SCI_STATUS_IMM : 0;
	req->status.imm = msg->imm;
	if (msg->rendezvous && !msg->error) {
		struct line_rts rts = msg->rts;

		msg_unexpected_free(msg);
		rndv_accept(req, req->peer, &rts);
		return;
	}
	status_of_message(&req->status, msg->match.context, msg->match.tag, msg->len);
	if (!msg->error && msg->have < msg->len) {
		req->state = MSG_CHAINED;
		msg->req = req;
		return;
	}
	if (!msg->rendezvous && msg->have == msg->len)
		msg_scatter(&req->at, msg->data, msg->len);
	msg_finish(req, msg->error);
	msg_unexpected_free(msg);
}

int recv_start(struct sci_req *req)
{
	struct sci_match *m = &req->ep->match;
	struct sci_match_msg *found = sci_match_find(m, &req->match);

	if (found) {
		sci_match_msg_remove(m, found);
		recv_message(req, container_of(found, struct sci_msg, match));
		return 0;
	}
	if (req->peer && req->peer->state == PEER_DOWN)
		return peer_error(req->peer);
	req->state = MSG_POSTED;
	sci_match_post(m, &req->match);
	held_back_wake(req->ep);
	return 0;
}
