// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The send calls. A message that is sent at once needs no request. */

#include "libsci/msg/api/api.h"
#include "libsci/msg/proto/send.h"

#include <errno.h>

static int send_post(struct sci_peer *peer, bool tagged, uint32_t context,
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
		send_describe(req, peer, tagged, context, tag);
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

static int send_check(struct sci_peer *peer, uint32_t context,
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
	int ret = req ? send_check(peer, 0, iov, n, flags) : -EINVAL;

	return ret ? ret : send_post(peer, false, 0, 0, iov, n, flags, req);
}

int sci_itsendv(struct sci_peer *peer, uint32_t context, uint64_t tag,
		const struct iovec *iov, size_t n, unsigned int flags,
		struct sci_req **req)
{
	int ret = req ? send_check(peer, context, iov, n, flags) : -EINVAL;

	return ret ? ret :
		     send_post(peer, true, context, tag, iov, n, flags, req);
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

/* Send with a request and wait for it: the slow path of a blocking send. */
static int send_wait(struct sci_peer *peer, bool tagged, uint32_t context,
		     uint64_t tag, const void *buf, size_t len)
{
	const struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct sci_req req;
	int ret;

	req_init(&req, peer->ep, MSG_SEND);
	req_iov(&req, &iov, 1);
	send_describe(&req, peer, tagged, context, tag);
	ret = send_start(&req);
	if (!ret)
		ret = msg_wait(peer->ep, send_is_done, &req, -1);
	return ret ? ret : req.status.error;
}

static __always_inline int send_try_whole(struct sci_peer *peer, bool tagged,
					  uint32_t context, uint64_t tag,
					  const uint64_t *imm, const void *buf,
					  size_t len)
{
	bool sent;

	if (!peer || (!buf && len) || context > SCI_CONTEXT_MAX)
		return -EINVAL;
	if (!ep_lock(peer->ep))
		return -ENOTCONN;
	sent = send_goes_whole(peer, tagged, context, tag, imm, buf, len);
	msg_unlock(&peer->ep->lock);
	return sent ? 0 : -EAGAIN;
}

__hot int sci_try_send(struct sci_peer *peer, const void *buf, size_t len)
{
	return send_try_whole(peer, false, 0, 0, NULL, buf, len);
}

__hot int sci_try_tsend(struct sci_peer *peer, uint32_t context, uint64_t tag,
			const uint64_t *imm, const void *buf, size_t len)
{
	return send_try_whole(peer, true, context, tag, imm, buf, len);
}

__hot int sci_send(struct sci_peer *peer, const void *buf, size_t len)
{
	struct sci_ep *ep;
	int ret = 0;

	if (!peer || (!buf && len))
		return -EINVAL;
	ep = peer->ep;
	if (!ep_lock(ep))
		return -ENOTCONN;
	if (!send_goes_whole(peer, false, 0, 0, NULL, buf, len))
		ret = send_wait(peer, false, 0, 0, buf, len);
	msg_unlock(&ep->lock);
	return ret;
}

__hot int sci_tsend(struct sci_peer *peer, uint32_t context, uint64_t tag,
		    const void *buf, size_t len)
{
	struct sci_ep *ep;
	int ret = 0;

	if (!peer || (!buf && len) || context > SCI_CONTEXT_MAX)
		return -EINVAL;
	ep = peer->ep;
	if (!ep_lock(ep))
		return -ENOTCONN;
	if (!send_goes_whole(peer, true, context, tag, NULL, buf, len))
		ret = send_wait(peer, true, context, tag, buf, len);
	msg_unlock(&ep->lock);
	return ret;
}

static int sendm_check(struct sci_peer *peer, const struct sci_send *send,
		       struct sci_req *const *req)
{
	uint32_t flags = SCI_SEND_SYNC | SCI_SEND_TAGGED | SCI_SEND_COPY |
			 SCI_SEND_IMM | SCI_SEND_AT_ONCE;

	if (!send || send->flags & ~flags ||
	    (!req && !(send->flags & SCI_SEND_COPY)))
		return -EINVAL;
	return send_check(peer, send->flags & SCI_SEND_TAGGED ? send->context : 0,
			  send->iov, send->n, 0);
}

static inline void short_at_once(struct sci_peer *p, const struct sci_send *send,
				 bool tagged, size_t len)
{
	struct msg_cursor at = { .iov = send->iov, .n = send->n };
	uint8_t room[SCI_SHORT_MAX];
	const void *data;

	lines_prefetch_write(p, len);
	msg_skip(&at, 0);
	data = short_data(&at, room, len);
	line_post(p, tagged, tagged ? send->context : MSG_UNTAGGED,
		  tagged ? send->tag : 0,
		  send->flags & SCI_SEND_IMM ? &send->imm : NULL, data, len);
}

/* The variant of send_goes_whole() for a vector. */
static inline bool sendm_at_once(struct sci_peer *p, const struct sci_send *send,
				 size_t len)
{
	bool tagged = send->flags & SCI_SEND_TAGGED;
	struct msg_out m = {
		.at = { .iov = send->iov, .n = send->n }, .len = len,
		.tag = tagged ? send->tag : 0, .imm = send->imm,
		.context = tagged ? send->context : MSG_UNTAGGED,
		.has_imm = send->flags & SCI_SEND_IMM,
	};

	if (send->flags & SCI_SEND_SYNC || !peer_takes_now(p))
		return false;
	if (len > short_limit(tagged, m.has_imm)) {
		msg_skip(&m.at, 0);
		return long_at_once(p, &m, send->flags & SCI_SEND_COPY);
	}
	short_at_once(p, send, tagged, len);
	return true;
}

/*
 * Return true if the send would wait for room or behind another send. A send to a peer that is DOWN
 * never waits: it must report the error. The first send to a CONNECTING peer counts as not waiting.
 */
static bool send_would_wait(struct sci_peer *p, const struct sci_send *send,
			    size_t len)
{
	struct msg_cursor at = { .iov = send->iov, .n = send->n };
	struct msg_blocks *b = &p->blocks_tx[RING_EAGER];
	const uint64_t *params = p->params->value;
	uint32_t lines = 1;
	size_t most;

	if (p->state == PEER_DOWN)
		return false;
	if (!list_empty(&p->sendq))
		return true;
	if (p->state == PEER_CONNECTING)
		return false;
	if (!tx_room(&p->data_tx) || !tx_prepare(p))
		return true;
	if (b->size && len > params[SCI_PARAM_LINES_MAX]) {
		msg_skip(&at, 0);
		most = block_limit(p, len);
		return blocks_room(p, b, &at, len < most ? len : most) < 0;
	}
	if (len <= params[SCI_PARAM_LINES_MAX])
		lines = chain_lines(send->flags & SCI_SEND_IMM, len);
	/* the peer may delay credits for half of the ring (status_due()), so half must be enough */
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

	/* a program that never calls progress would not notice the peer's end: limit its sends */
	if (!out && peer->detached >= SCI_DETACHED_MAX)
		return -EAGAIN;
	req = req_new(peer->ep, MSG_SEND);
	if (!req)
		return -ENOMEM;
	ret = req_iov(req, send->iov, send->n);
	send_describe(req, peer, tagged, send->context, tagged ? send->tag : 0);
	req->sync = send->flags & SCI_SEND_SYNC;
	req->has_imm = send->flags & SCI_SEND_IMM;
	req->imm = send->imm;
	req->wants_copy = send->flags & SCI_SEND_COPY;
	/* copy the bytes now: without room, or after an RTS, they are read or stored later */
	if (!ret && req->wants_copy && (req->sync || req_is_long(req)))
		ret = copy_rest(req);
	req->detached = !out;
	peer->detached += !out;
	ret = ret ? ret : send_start(req);
	if (!ret && out)
		*out = req;
	if (!ret)
		return 0;
	peer->detached -= !out;
	req_free(req);
	return ret;
}

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
	if (!req && at_once && send_would_wait(peer, send, len))
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
	int ret = sendm_check(peer, send, req);
	bool locked = true;

	if (ret)
		return ret;
	/* a handler may send a message without a request */
	if (req)
		msg_lock(&peer->ep->lock);
	else
		locked = msg_lock_enter(&peer->ep->lock);
	ret = sendm_or_request(peer, send, req);
	if (locked)
		msg_unlock(&peer->ep->lock);
	return ret;
}
