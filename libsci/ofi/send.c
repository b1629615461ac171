// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Sends, with tags or without. */
#include "libsci/ofi/onesided.h"

#include <errno.h>

/* Return whether @error is an error of the peer, which a completion reports. */
bool sfi_is_peers(int error)
{
	return error != -EINVAL && error != -ENOMEM && error != -ENOTSUP;
}

static int send_flags(const struct sfi_send *s)
{
	int flags = SCI_SEND_AT_ONCE;

	if (s->tagged)
		flags |= SCI_SEND_TAGGED;
	if (s->flags & FI_REMOTE_CQ_DATA)
		flags |= SCI_SEND_IMM;
	if (s->flags & (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE))
		flags |= SCI_SEND_SYNC;
	if (s->flags & FI_INJECT)
		flags |= SCI_SEND_COPY;
	return flags;
}

static uint64_t send_get_flags(const struct sfi_send *s)
{
	return FI_SEND | (s->tagged ? FI_TAGGED : FI_MSG);
}

/* Try to send the whole message at once. After an error, the caller uses sci_isendm(). */
static __always_inline int send_try(struct sci_peer *peer, bool tagged,
				    uint64_t tag, const uint64_t *imm,
				    const void *buf, size_t len)
{
	if (tagged)
		return sci_try_tsend(peer, SFI_TAGGED, tag, imm, buf, len);
	return imm ? -EAGAIN : sci_try_send(peer, buf, len);
}

static bool send_at_once(struct sfi_ep *ep, struct sci_peer *peer,
			 const struct sfi_send *s)
{
	const uint64_t *imm = s->flags & FI_REMOTE_CQ_DATA ? &s->data : NULL;
	struct sci_status st = { 0 };

	if (s->n != 1 || s->flags & (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE) ||
	    send_try(peer, s->tagged, s->tag, imm, s->iov->iov_base,
		     s->iov->iov_len))
		return false;
	st.len = s->iov->iov_len;
	sfi_tell(ep, &ep->tx, send_get_flags(s), s->flags, s->context, NULL, &st);
	return true;
}

/* Send a message. If the send completes at once, write its completion without an operation. */
static int send_op(struct sfi_ep *ep, struct sci_peer *peer,
		   const struct sfi_send *s)
{
	const struct sci_send m = {
		.iov = s->iov, .n = s->n, .tag = s->tag, .imm = s->data,
		.context = SFI_TAGGED, .flags = (uint32_t)send_flags(s),
	};
	struct sfi_op *op = sfi_op_new(ep);
	struct sci_status st = { 0 };
	uint64_t what = send_get_flags(s);

	if (!op)
		return -FI_ENOMEM;
	st.error = sci_isendm(peer, &m, &op->req);
	if (!st.error && !op->req) {
		sfi_op_free(op);
		st.len = sfi_length(s->iov, s->n);
		sfi_tell(ep, &ep->tx, what, s->flags, s->context, NULL, &st);
		return 0;
	}
	sfi_op_describe(op, &ep->tx, what, s->flags, s->context);
	if (st.error)
		return sfi_op_not_begun(op, st.error);
	sci_req_queue(op->req, op);
	return 0;
}

static int send_to_address(struct sfi_ep *ep, const struct sfi_send *s)
{
	struct sci_peer *peer;
	int ret = sfi_ep_known(ep, s->dest, &peer);

	if (ret || send_at_once(ep, peer, s))
		return ret;
	return send_op(ep, peer, s);
}

__hot ssize_t sfi_send(struct sfi_ep *ep, const struct sfi_send *s)
{
	ssize_t ret;

	if (s->n > SFI_IOV_MAX)
		return -FI_EINVAL;
	if (s->flags & FI_INJECT && sfi_length(s->iov, s->n) > SFI_INJECT_MAX)
		return -FI_EMSGSIZE;
	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	sfi_lock(&ep->lock);
	ret = send_to_address(ep, s);
	sfi_unlock(&ep->lock);
	return ret;
}

static __attribute__((noinline)) int
inject_by_request(struct sci_peer *peer, bool tagged, uint64_t tag,
		  const uint64_t *imm, const void *buf, size_t len)
{
	const struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	const struct sci_send m = {
		.iov = &iov, .n = 1, .tag = tag, .imm = imm ? *imm : 0,
		.context = SFI_TAGGED,
		.flags = SCI_SEND_COPY | SCI_SEND_AT_ONCE |
			 (tagged ? SCI_SEND_TAGGED : 0) |
			 (imm ? SCI_SEND_IMM : 0),
	};

	return sci_isendm(peer, &m, NULL);
}

/*
 * Send without a completion and without a request. A sender that is faster than its receiver
 * must wait: queued copies would only fill the cache.
 */
__hot ssize_t sfi_inject(struct sfi_ep *ep, fi_addr_t dest, bool tagged,
			 uint64_t tag, const uint64_t *imm, const void *buf,
			 size_t len)
{
	struct sci_peer *peer;
	int ret;

	if (len > SFI_INJECT_MAX)
		return -FI_EMSGSIZE;
	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	sfi_lock(&ep->lock);
	ret = sfi_ep_known(ep, dest, &peer);
	if (!ret && send_try(peer, tagged, tag, imm, buf, len))
		ret = inject_by_request(peer, tagged, tag, imm, buf, len);
	if (!ret && ep->tx.cntr)
		sfi_cntr_count(ep->tx.cntr, 0);
	sfi_unlock(&ep->lock);
	return ret;
}
