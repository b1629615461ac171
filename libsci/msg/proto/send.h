/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* The inline code for sends, with a request and without. */
#ifndef LIBSCI_MSG_SEND_H
#define LIBSCI_MSG_SEND_H

#include "libsci/msg/conn/blocks.h"
#include "libsci/msg/proto/proto.h"

/* Longest message with prefetches, in bytes: during a longer one, a poll takes the lines back. */
#define OWN_MAX		512u

/*
 * Prefetch the cache lines for a message of @len bytes. The peer has read these lines last, so each
 * store would fetch one line, and stores are executed in order. Prefetches just before the first
 * store fetch all lines together. Earlier prefetches would have no effect: the peer's next poll
 * moves the lines back to its cache.
 */
static inline void lines_prefetch_write(const struct sci_peer *p, size_t len)
{
	const struct msg_blocks *b = &p->blocks_tx[RING_EAGER];
	const struct msg_tx *tx = &p->data_tx;

	if (p->careful || p->state != PEER_UP || len > OWN_MAX)
		return;
	sci_prefetch_write(&tx->slots[tx->slot]);
	if (len <= SCI_IMM_SHORT_MAX)
		return;
	if (len <= p->params->value[SCI_PARAM_LINES_MAX]) {
		if (tx->slot + 1 < tx->lines)
			sci_prefetch_write(&tx->slots[tx->slot + 1]);
		return;
	}
	for (size_t at = 0; b->size && at < len; at += LINE_BYTES)
		sci_prefetch_write(b->base + ((b->end + at) & (b->size - 1)));
}

static const struct line_head no_head;

/* Write a message that fits into a line. An untagged message has no tag in the line. */
static __always_inline void short_post(struct sci_peer *p, bool tagged,
				       uint32_t context, uint64_t tag,
				       const void *buf, size_t len)
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

/* Write a short message with an immediate. The immediate begins in the middle of a word. */
static __always_inline void short_imm_post(struct sci_peer *p, uint32_t context,
					   uint64_t tag, uint64_t imm,
					   const void *buf, size_t len)
{
	const struct line_head head = {
		.w = { tag, imm << 40 | (uint64_t)len << 32 | context, imm >> 24 },
		.len = offsetof(struct line_tagged_imm, data),
	};

	tx_put(p, &p->data_tx, 0, &head, buf, len, LINE_TAGGED_IMM);
	tx_go(p, &p->data_tx, 1);
	p->ep->stats.sent_short++;
}

/* A message to be sent, with a request or without. */
struct msg_out {
	struct msg_cursor at;
	size_t len;
	uint64_t tag;
	uint64_t imm;
	uint32_t context;
	bool has_imm;
};

/* ---- chains: messages in several lines ---- */

/* Build the header of a chain's first line. Return the number of payload bytes in this line. */
static __always_inline size_t chain_head(const struct msg_out *m,
					 struct line_head *h,
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

static inline uint32_t chain_lines(bool has_imm, size_t len)
{
	size_t first = has_imm ? CHAIN_IMM_HEAD : CHAIN_HEAD;

	if (len <= first)
		return 1;
	return 1 + (uint32_t)((len - first + LINE_PAYLOAD - 1) / LINE_PAYLOAD);
}

/*
 * Write all lines of a chain, the first line last. When the receiver sees the first line, the other
 * lines have arrived already, and the receiver has not polled them meanwhile.
 */
static __always_inline bool chain_at_once(struct sci_peer *p,
					  const struct msg_out *m,
					  const uint8_t *buf)
{
	uint32_t lines = chain_lines(m->has_imm, m->len), k;
	struct msg_tx *tx = &p->data_tx;
	enum msg_line_type type;
	struct line_head head;
	size_t n, at, first;

	if (tx_free(tx) < lines && (!tx_room_slow(tx) || tx_free(tx) < lines))
		return false;
	first = chain_head(m, &head, &type);
	lines_prefetch_write(p, m->len);
	for (k = 1, at = first; at < m->len; k++, at += n) {
		n = m->len - at < LINE_PAYLOAD ? m->len - at : LINE_PAYLOAD;
		tx_put(p, tx, k, &no_head, buf + at, n, LINE_SHORT);
	}
	tx_put(p, tx, 0, &head, buf, first, type);
	tx_go(p, tx, lines);
	p->chained += m->len;
	p->ep->stats.sent_lines++;
	return true;
}

/*
 * Return whether a message has a handshake because of its length. A message of up to EAGER_MAX
 * bytes has one only if a single copy is possible.
 */
static inline bool req_is_long(const struct sci_req *req)
{
	const struct msg_params *params = req->peer->params;

	return req->len > LINE_PAYLOAD && req->len > params->eager_limit &&
	       !context_is_handler(req->context) &&
	       (req->len > params->value[SCI_PARAM_EAGER_MAX] ||
		(req->at.n == 1 && !req->wants_copy));
}

static inline size_t short_limit(bool tagged, bool has_imm)
{
	if (has_imm)
		return SCI_IMM_SHORT_MAX;
	return tagged ? SCI_TAGGED_SHORT_MAX : SCI_SHORT_MAX;
}

static inline void send_describe(struct sci_req *req, struct sci_peer *peer, bool tagged,
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

/* send.c */
bool ctl_push(struct sci_peer *p);
bool queue_push(struct sci_peer *p);
const void *short_data(struct msg_cursor *at, void *room, size_t len);
bool send_chain_whole(struct sci_peer *p, const struct msg_out *m);
int send_block(struct sci_peer *p, const struct msg_out *m,
	       struct msg_cursor *at, size_t moved, size_t n);
int copy_rest(struct sci_req *req);
bool buffer_at_once(struct sci_peer *p, uint32_t context, uint64_t tag,
		    const uint64_t *imm, const void *buf, size_t len);

/* ---- at once: without a request ---- */

static inline bool peer_takes_now(struct sci_peer *peer)
{
	return peer->state == PEER_UP && list_empty(&peer->sendq) &&
	       tx_room(&peer->data_tx) &&
	       (!peer->lossy || peer->data_tx.shadow);
}

static __always_inline void line_post(struct sci_peer *peer, bool tagged,
				      uint32_t context, uint64_t tag,
				      const uint64_t *imm, const void *buf,
				      size_t len)
{
	if (imm)
		short_imm_post(peer, context, tag, *imm, buf, len);
	else
		short_post(peer, tagged, context, tag, buf, len);
}

/*
 * Send in one eager block. Return false if the receiver may read the bytes from exported memory
 * instead, which needs a request. @copied: the program may reuse its buffer at once, so always use
 * a block.
 */
static __always_inline bool block_at_once(struct sci_peer *p, struct msg_out *m,
					  bool copied)
{
	const struct sci_ep *ep = p->ep;

	return m->len <= block_limit(p, m->len) &&
	       (copied || m->len < p->params->value[SCI_PARAM_ZCOPY_MIN] ||
		list_empty(&ep->bufs)) &&
	       !send_block(p, m, &m->at, 0, m->len);
}

/* Send a message that is longer than a line. */
static __always_inline bool long_at_once(struct sci_peer *p, struct msg_out *m,
					 bool copied)
{
	const uint64_t *params = p->params->value;

	if (p->lossy || m->len > p->params->eager_limit)
		return false;
	return m->len > params[SCI_PARAM_LINES_MAX] ? block_at_once(p, m, copied) :
						      send_chain_whole(p, m);
}

/* Send the whole message at once, without a request. Return false if that is impossible. */
static __always_inline bool send_goes_whole(struct sci_peer *peer, bool tagged,
					    uint32_t context, uint64_t tag,
					    const uint64_t *imm, const void *buf,
					    size_t len)
{
	if (!peer_takes_now(peer))
		return false;
	if (len > short_limit(tagged, imm))
		return buffer_at_once(peer, tagged ? context : MSG_UNTAGGED, tag,
				      imm, buf, len);
	lines_prefetch_write(peer, len);
	line_post(peer, tagged, context, tag, imm, buf, len);
	return true;
}

#endif
