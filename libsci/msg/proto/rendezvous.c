// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: rendezvous
 *
 *	sender			receiver
 *	RTS len, buffer	  ->
 *				a receive accepts it; then one of:
 *			  <-	CTS blocks
 *	blocks, BLOCK ... ->	copies each out of the transfer ring
 *			 (<-)	FIN if the send is synchronous
 *			or
 *			  <-	CTS zero-copy: segment, offset
 *	stores, FIN	  ->
 *			or
 *			  <-	CTS target: number of a target of the net
 *	bytes, FIN	  ->
 *			or	reads the sender's buffer itself
 *			  <-	FIN
 *
 * The first variant is SCI-MPICH's (III.B.3) with its write-read interleave: the receiver empties
 * one block while the sender fills the next block. The second variant is DECK/SCI's protocol 3. The
 * third variant is for peers on the net: see rendezvous_net.c. The fourth variant is for fabrics
 * within one host, where a read costs no round trip.
 */

#include "libsci/msg/conn/blocks.h"
#include "libsci/msg/proto/proto.h"

#include <errno.h>
#include <stdlib.h>

/*
 * Zero-copy: bytes between two checks for lost packets. After a loss, the sender stores
 * them again.
 */
#define ZCOPY_STEP	(1u << 20)

static void fin_send(struct sci_peer *p, uint32_t id, int status, bool receiver)
{
	struct msg_typed t = {
		.type = LINE_FIN,
		.fin = { .id = id, .status = status, .receiver = receiver },
	};

	send_ctl(p, &t);
}

/* Send a FIN to the sender after the receiver has read the bytes that it wants. @how: FIN_* */
static void fin_send_read(struct sci_peer *p, uint32_t id, uint8_t how)
{
	struct msg_typed t = {
		.type = LINE_FIN, .fin = { .id = id, .how = how },
	};

	send_ctl(p, &t);
}

/* ---- the receiver ---- */

/* Complete a receive, and remove it from peer->receiving if it is in that list. */
static void receive_done(struct sci_req *req, int error)
{
	list_del(&req->link);
	msg_finish(req, error ? error : req->crc_error);
}

static int receive_start(struct sci_req *req, struct sci_peer *p,
			 struct msg_typed *cts)
{
	int ret = req_id_get(req);

	if (ret)
		return ret;
	cts->type = LINE_CTS;
	cts->cts.to = req->id;
	cts->cts.len = req->want;
	req->state = MSG_HANDSHAKE;
	list_add_tail(&req->link, &p->receiving);
	peer_expect_ctl(p);
	send_ctl(p, cts);
	return 0;
}

/* Return the exported buffer that contains @len bytes of the receive in one piece, or NULL. */
static struct msg_buf *exported_target(struct sci_req *req, size_t len,
				       uint64_t *offset)
{
	struct msg_buf *buf;
	const uint8_t *addr;
	size_t n;

	if (list_empty(&req->ep->bufs))
		return NULL;
	addr = msg_chunk(&req->at, &n);
	if (n < len)
		return NULL;
	buf = buf_find(req->ep, addr, len);
	if (buf)
		*offset = (uint64_t)(addr - buf->addr);
	return buf;
}

/* Send the CTS, unless @error says that the receive has failed. */
static void receive_begin(struct sci_req *req, struct sci_peer *p, struct msg_typed *cts,
			  int error)
{
	if (!error)
		error = receive_start(req, p, cts);
	if (!error)
		return;
	fin_send(p, cts->cts.id, error, false);
	receive_done(req, error);
}

/* Lend a ring on the second rail, if there are two rails. */
static void rail_lend(struct sci_peer *p)
{
	struct msg_rails *rails = p->rails;

	if (p->rail_node && !rails->error && !rails->blocks_rx.size)
		rails->error = ring_attach(p, RING_RAIL,
					   (uint32_t)p->params->value[SCI_PARAM_XFER_RING]);
}

/*
 * Offer memory on the second rail, too. If it is not exported there, the sender needs the ring when
 * the first rail fails amid the message. Return false if the sender cannot reach the memory now.
 */
static __attribute__((noinline)) bool rail_offer(struct sci_peer *p, const struct msg_buf *buf,
						 struct msg_typed *cts)
{
	cts->cts.rail_segment = buf_rail(p->ep, buf);
	if (cts->cts.rail_segment)
		return true;
	rail_lend(p);
	return p->line == &p->first;
}

static bool zcopy_offer(struct sci_req *req, struct sci_peer *p, struct msg_typed *cts)
{
	struct msg_buf *buf;
	uint64_t offset;

	/*
	 * a cache line at the buffer's ends may contain other data, which a flush would overwrite;
	 * on the net, the buffer was no target because blocks have checksums
	 */
	if (p->stale || p->stream || req->want < p->params->value[SCI_PARAM_ZCOPY_MIN])
		return false;
	buf = exported_target(req, req->want, &offset);
	if (!buf || (p->rails && !rail_offer(p, buf, cts)))
		return false;
	req->mode = CTS_ZCOPY;
	cts->cts.mode = CTS_ZCOPY;
	cts->cts.segment = req->ep->ops->lseg.id(buf->seg);
	cts->cts.offset = offset;
	return true;
}

/*
 * Read the bytes from the sender's exported buffer. Return 0; -EAGAIN until the buffer is imported;
 * another error: the caller must receive in another way.
 */
static int exported_read(struct sci_req *req, struct sci_peer *p,
			 const struct line_rts *rts)
{
	struct msg_cursor start = req->at;
	struct msg_import *im;
	int error;

	if (!(rts->flags & RTS_EXPORTED) || !p->may_read || !req->want ||
	    req->want < p->params->value[SCI_PARAM_ZCOPY_MIN])
		return -EOPNOTSUPP;
	im = peer_import(p, rts->segment, &error);
	if (!im)
		return error;
	if (rts->offset > im->size || im->size - rts->offset < req->want)
		return -ERANGE;
	msg_scatter(&req->at, im->addr + rts->offset, req->want);
	if (import_is_there(p, im))
		return 0;
	req->at = start;
	return -ENOTCONN;
}

/* Queue the receive until the sender's buffer is imported. */
static void import_wait(struct sci_req *req, struct sci_peer *p,
			const struct line_rts *rts)
{
	req->state = MSG_IMPORTING;
	req->their_id = rts->id;
	req->segment = rts->segment;
	req->offset = rts->offset;
	req->addr = rts->addr;
	list_add_tail(&req->link, &p->receiving);
	p->importing++;
	peer_busy(p);
	/* no doorbell reports the end of a pause after a failed import */
	if (p->ep->retry)
		wake_all(p->ep);
}

static struct line_rts rts_get_awaited(const struct sci_req *req)
{
	return (struct line_rts){
		.len = req->status.len, .tag = req->status.tag,
		.context = req->status.context, .id = req->their_id,
		.addr = req->addr, .offset = req->offset,
		.segment = req->segment, .flags = req->rts_flags,
	};
}

/* Longer messages exceed a cache of 2 MiB, and have taken a fifth less time in blocks. */
#define SINGLE_COPY_MAX	(1u << 20)

static int private_read_pieces(struct sci_req *req, struct sci_peer *p,
			       uint64_t addr)
{
	size_t left = req->want;

	while (left) {
		size_t n;
		void *dst = (void *)msg_chunk(&req->at, &n);
		int ret;

		n = n < left ? n : left;
		ret = sci_peer_read(p->fabric, p->first.outbox, dst, addr, n);
		if (ret)
			return ret;
		msg_skip(&req->at, n);
		addr += n;
		left -= n;
	}
	return 0;
}

static bool private_read(struct sci_req *req, struct sci_peer *p,
			 const struct line_rts *rts)
{
	struct msg_cursor start = req->at;
	int ret;

	if (!(rts->flags & RTS_PRIVATE) || p->stream || p->unreadable ||
	    req->want > SINGLE_COPY_MAX || req->want < p->params->value[SCI_PARAM_SINGLE_COPY_MIN])
		return false;
	ret = private_read_pieces(req, p, rts->addr);
	if (ret) {
		/* do not try again */
		p->unreadable = ret == -EOPNOTSUPP;
		req->at = start;
		return false;
	}
	return true;
}

static void blocks_accept(struct sci_req *req, struct sci_peer *p, struct msg_typed *cts)
{
	int ret = 0;

	/* the line that lends the ring uses the control ring, as the CTS does, and arrives first */
	if (!p->blocks_rx[RING_XFER].size)
		ret = ring_attach(p, RING_XFER, (uint32_t)p->params->value[SCI_PARAM_XFER_RING]);
	if (!ret)
		rail_lend(p);
	cts->cts.mode = CTS_BLOCKS;
	req->mode = CTS_BLOCKS;
	if (p->state == PEER_DOWN)
		ret = p->error;
	receive_begin(req, p, cts, ret);
}

/* Receive the message that @rts announces into @req. */
void rndv_accept(struct sci_req *req, struct sci_peer *p,
		 const struct line_rts *rts)
{
	struct msg_typed cts = { .cts.id = rts->id };
	uint8_t how = FIN_NOTHING;
	int ret;

	req->peer = p;
	req->status.len = rts->len;
	req->status.tag = rts->context == MSG_UNTAGGED ? 0 : rts->tag;
	req->status.context = rts->context == MSG_UNTAGGED ? 0 : rts->context;
	req->rts_flags = rts->flags;
	req->their_id = rts->id;
	req->want = rts->len < req->len ? rts->len : req->len;
	list_init(&req->link);
	if (p->state == PEER_DOWN) {
		receive_done(req, p->error);
		return;
	}
	ret = exported_read(req, p, rts);
	if (ret == -EAGAIN) {
		import_wait(req, p, rts);
		return;
	}
	if (!ret) {
		how = FIN_EXPORTED;
	} else if (req->want) {
		if (target_offer(req, &cts.cts) || zcopy_offer(req, p, &cts)) {
			receive_begin(req, p, &cts, p->state == PEER_DOWN ? p->error : 0);
			return;
		}
		if (!private_read(req, p, rts)) {
			blocks_accept(req, p, &cts);
			return;
		}
		how = FIN_PRIVATE;
	}
	fin_send_read(p, rts->id, how);
	receive_done(req, 0);
}

/* Continue the receives that wait for an import. Return false if some still wait. */
bool rndv_accept_later(struct sci_peer *p)
{
	struct list *pos, *n;
	bool all = true;

	if (!p->importing)
		return true;
	list_for_each_safe(pos, n, &p->receiving) {
		struct sci_req *req = container_of(pos, struct sci_req, link);
		struct line_rts rts = rts_get_awaited(req);
		int error = 0;

		if (req->state != MSG_IMPORTING)
			continue;
		if (!peer_import(p, rts.segment, &error)) {
			if (error == -EAGAIN) {
				all = false;
				continue;
			}
			/* do not wait for the import again: receive in another way */
			rts.flags &= (uint8_t)~RTS_EXPORTED;
		}
		list_del(&req->link);
		p->importing--;
		rndv_accept(req, p, &rts);
		if (p->state == PEER_DOWN)
			break;
	}
	return all;
}

/* Copy a block out of the transfer ring into the buffer of its receive. */
static int block_handle(struct sci_peer *p, const struct line_block *b)
{
	bool rail = b->ring == RING_RAIL && p->rails;
	struct sci_req *req = req_by_id(p, b->to, MSG_RECV);
	const uint8_t *src = blocks_find(p, rail ? RING_RAIL : RING_XFER, b->end, b->len);

	if (!req || !src || (req->mode != CTS_BLOCKS && !p->rail_node) || !b->len ||
	    (!rail && b->ring != RING_XFER) ||
	    b->offset != req->moved || b->len > req->want - req->moved)
		return -EPROTO;
	msg_scatter(&req->at, src, b->len);
	if (req->rts_flags & RTS_CRC && sci_pio_crc32c(0, src, b->len) != b->crc) {
		req->crc_error = -EBADMSG;
		p->ep->stats.crc_errors++;
	}
	if (rail) {
		rail_taken(p, b->end);
	} else {
		p->status_next.xfer = b->end;
		status_of_blocks(p);
	}
	req->moved += b->len;
	if (req->moved < req->want)
		return 0;
	p->expects--;
	list_del(&req->link);
	if (req->rts_flags & RTS_SYNC)
		fin_send(p, req->their_id, req->crc_error, false);
	receive_done(req, 0);
	return 0;
}

/* ---- the sender ---- */

static void transfer_done(struct sci_req *req, int error)
{
	list_del(&req->link);
	req_done(req, error);
}

/*
 * Complete the send @req with @error and send @status to the receiver. If there is no memory for
 * that line, close the connection, which completes @req, too.
 */
static void transfer_end(struct sci_req *req, int status, int error)
{
	struct sci_peer *p = req->peer;

	fin_send(p, req->their_id, status, true);
	if (p->state != PEER_DOWN)
		transfer_done(req, error);
}

/* Return whether the peer has lent a ring on one of two rails. */
static bool rails_are_lent(struct sci_peer *p)
{
	return p->rail_node && (ring_lent(p, RING_XFER)->ring.size ||
				ring_lent(p, RING_RAIL)->ring.size);
}

static int rndv_cleared(struct sci_peer *p, const struct line_cts *cts)
{
	struct sci_req *req = req_by_id(p, cts->id, MSG_SEND);

	if (!req || req->state != MSG_HANDSHAKE || cts->len > req->len ||
	    (cts->mode != CTS_BLOCKS && cts->mode != (p->stream ? CTS_TARGET : CTS_ZCOPY)))
		return -EPROTO;
	/* the peer has left: the send fails when its connection ends */
	if (p->draining)
		return 0;
	p->expects--;
	handshake_end(req);
	req->their_id = cts->to;
	if (cts->mode == CTS_BLOCKS && !p->blocks_tx[RING_XFER].size && !rails_are_lent(p)) {
		transfer_end(req, -ENOMEM,
			     p->xfer_error ? p->xfer_error : -EPROTO);
		return 0;
	}
	req->mode = cts->mode == CTS_BLOCKS && p->rail_node ? MODE_RAILS : cts->mode;
	req->want = cts->len;
	req->segment = cts->segment;
	req->rail_segment = cts->rail_segment;
	req->offset = cts->offset;
	transfer_set(req, MSG_MOVING);
	peer_busy(p);
	return 0;
}

#define BLOCK_LEAST	4096u
#define BLOCK_SHARE	4u

/*
 * Return the size of the next block in @ring, of @left bytes: at most a quarter of the ring, as in
 * block_limit(). A larger block could wait for room for ever. On a lossy link the sender waits until
 * each block has arrived. Large blocks mean fewer waits, and a small last block leaves the receiver
 * less to copy at the end. So a block is a share of the remaining bytes.
 */
size_t rndv_block_size(const struct sci_req *req, enum msg_ring ring, size_t left)
{
	size_t share = MSG_PAD(left / BLOCK_SHARE);
	size_t max = req->peer->params->value[SCI_PARAM_BLOCK];
	size_t quarter = blocks_tx(req->peer, ring)->size / 4;

	max = max < quarter ? max : quarter;
	share = share > BLOCK_LEAST ? share : BLOCK_LEAST;
	if (req->peer->lossy && share < max)
		max = share;
	return left < max ? left : max;
}

/* All blocks of @req are announced. */
void rndv_blocks_end(struct sci_req *req)
{
	struct sci_peer *p = req->peer;

	p->last_block_pos = p->data_rx.pos;
	if (req->sync) {
		transfer_set(req, MSG_MOVED);
		peer_expect_ctl(p);
		return;
	}
	p->ep->stats.sent_rendezvous++;
	transfer_done(req, 0);
}

static int blocks_push(struct sci_req *req)
{
	struct sci_peer *p = req->peer;
	struct msg_blocks *b = &p->blocks_tx[RING_XFER];
	struct msg_typed t = { .type = LINE_BLOCK };

	while (req->moved < req->want) {
		size_t n = rndv_block_size(req, RING_XFER, req->want - req->moved);
		int64_t room, end;
		uint32_t crc;

		if (!tx_room(&p->ctl_tx) || !tx_prepare(p))
			return -EAGAIN;
		room = blocks_room(p, b, &req->at, n);
		if (room < 0)
			return (int)room;
		end = blocks_put(p, b, room, &req->at, n, &crc);
		if (end < 0)
			return (int)end;
		t.block = (struct line_block){
			.to = req->their_id, .len = (uint32_t)n,
			.end = (uint32_t)end, .crc = crc, .offset = req->moved,
			.ring = RING_XFER,
		};
		req->moved += n;
		send_ctl(p, &t);
		if (p->state == PEER_DOWN)
			return 0;
	}
	rndv_blocks_end(req);
	return 0;
}

static int target_push(struct sci_req *req)
{
	int ret = target_fill(req);

	if (ret == -ENOTCONN) {
		transfer_set(req, MSG_HANDSHAKE);
		peer_suspect(req->peer);
		return 0;
	}
	if (ret)
		return ret;
	fin_send(req->peer, req->their_id, 0, true);
	/* otherwise the end of the connection has completed the send */
	if (req->peer->state != PEER_DOWN)
		transfer_set(req, MSG_ARRIVING);
	return 0;
}

/* Complete a send whose bytes the net has delivered. Return -EAGAIN if they are on their way. */
int rndv_arrive(struct sci_req *req)
{
	if (target_arrived(req) == -EAGAIN)
		return -EAGAIN;
	if (!req->lent) {
		req->ep->stats.sent_zcopy++;
		transfer_done(req, 0);
	}
	return 0;
}

/* The first rail is lost: send the message from its start in blocks on the other rail. */
static int zcopy_turn_to_blocks(struct sci_req *req)
{
	req->mode = MODE_RAILS;
	req->moved = 0;
	req->at = (struct msg_cursor){ .iov = req->iov, .n = req->iovs };
	msg_skip(&req->at, 0);
	return rails_push(req);
}

/* Store the message through the first rail. Return 0, -EAGAIN if not now, or another error. */
static int zcopy_store(struct sci_req *req)
{
	struct sci_peer *p = req->peer;
	struct msg_import *im;
	int ret;

	im = peer_import(p, req->segment, &ret);
	if (!im)
		return ret;
	if (req->offset > im->size || im->size - req->offset < req->want)
		return -EPROTO;
	while (req->moved < req->want) {
		size_t n = req->want - req->moved;

		n = n < ZCOPY_STEP ? n : ZCOPY_STEP;
		ret = remote_store(p, im->seg,
				   im->addr + req->offset + req->moved,
				   &req->at, n, false);
		if (ret)
			return ret;
		req->moved += n;
	}
	/* the bytes must leave before the FIN; on lossy links they have arrived already */
	if (!p->lossy)
		p->fabric->ops->rseg.store_barrier(p->fabric, im->seg);
	return 0;
}

/* Handle an error of a zero-copy message. Return -EAGAIN if it can continue later. */
static int zcopy_fail(struct sci_req *req, int error)
{
	struct sci_peer *p = req->peer;

	if (import_later(p, error))
		return -EAGAIN;
	if (p->rail_node && p->line != &p->first && import_has_no_room(p, error)) {
		/* no block can carry the message: it waits for room, or for the first rail */
		p->ep->retry = true;
		return -EAGAIN;
	}
	if (!import_is_gone(error)) {
		transfer_end(req, error, error);
		return 0;
	}
	if (p->rail_node) {
		/* the first rail may be lost: a reroute or the end of the peer follows */
		p->ep->retry = true;
		return -EAGAIN;
	}
	transfer_set(req, MSG_HANDSHAKE);
	peer_suspect(p);
	return 0;
}

static int zcopy_push(struct sci_req *req)
{
	struct sci_peer *p = req->peer;
	bool both = rails_reach(req, req->want);
	int ret;

	if (!both && p->line != &p->first && ring_lent(p, RING_RAIL)->ring.size)
		return zcopy_turn_to_blocks(req);
	ret = both ? rails_write(req, req->want) : zcopy_store(req);
	if (ret)
		return zcopy_fail(req, ret);
	p->ep->stats.sent_zcopy++;
	transfer_end(req, 0, 0);
	return 0;
}

/* Write the next bytes of a transfer. Return -EAGAIN if there is no room for more bytes. */
int rndv_push(struct sci_req *req)
{
	switch (req->mode) {
	case CTS_TARGET:
		return target_push(req);
	case CTS_ZCOPY:
		return zcopy_push(req);
	case MODE_RAILS:
		return rails_push(req);
	default:
		return blocks_push(req);
	}
}

static void read_count(struct sci_ep *ep, const struct line_fin *fin)
{
	if (fin->how == FIN_EXPORTED)
		ep->stats.sent_zcopy++;
	else if (fin->how == FIN_PRIVATE)
		ep->stats.sent_single_copy++;
	else
		ep->stats.sent_rendezvous++;
}

static int rndv_finished(struct sci_peer *p, const struct line_fin *fin)
{
	enum msg_kind kind = fin->receiver ? MSG_RECV : MSG_SEND;
	struct sci_req *req = req_by_id(p, fin->id, kind);

	if (!req || !status_is_valid(fin->status) ||
	    (req->state != MSG_HANDSHAKE && req->state != MSG_MOVED))
		return -EPROTO;
	p->expects--;
	if (kind == MSG_SEND)
		read_count(p->ep, fin);
	if (kind == MSG_RECV)
		receive_done(req, fin->status);
	else
		transfer_done(req, fin->status);
	return 0;
}

/* Handle a line of the control ring. */
int rndv_ctl(struct sci_peer *p, const struct msg_typed *line)
{
	switch (line->type) {
	case LINE_ATTACHED:
		return ring_attached(p, &line->attached);
	case LINE_CTS:
		return rndv_cleared(p, &line->cts);
	case LINE_BLOCK:
		return block_handle(p, &line->block);
	case LINE_FIN:
		return rndv_finished(p, &line->fin);
	default:
		return -EPROTO;
	}
}
