// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Matching without copying: probes, and messages that the program takes off the queue. */

#include "libsci/msg/api/api.h"

#include <errno.h>
#include <stdlib.h>

struct seek {
	struct sci_ep *ep;
	struct sci_match_recv want;
	struct sci_msg *found;
};

static int message_seek(void *arg)
{
	struct seek *s = arg;
	struct sci_match_msg *m = sci_match_find(&s->ep->match, &s->want);
	struct sci_peer *p = s->want.source;

	if (!m)
		return p && p->state == PEER_DOWN ? peer_error(p) : -EAGAIN;
	s->found = container_of(m, struct sci_msg, match);
	return 0;
}

static void seek_describe(const struct sci_msg *msg, struct sci_status *st)
{
	bool tagged = msg->match.context != MSG_UNTAGGED;

	msg->peer->known = true;
	if (!st)
		return;
	*st = (struct sci_status){
		.peer = msg->peer->leaving ? NULL : msg->peer,
		.tag = tagged ? msg->match.tag : 0,
		.context = tagged ? msg->match.context : 0,
		.len = msg->len,
		.flags = msg->has_imm ? SCI_STATUS_IMM : 0,
		.imm = msg->imm,
	};
}

/* Move @s->found from the unexpected queue to the messages that the program has taken. */
static void seek_take(struct seek *s)
{
	sci_match_msg_remove(&s->ep->match, &s->found->match);
	s->found->matched = true;
	list_add_tail(&s->found->link, &s->found->peer->matched);
}

static int seek_run(struct seek *s, int timeout, struct sci_msg **msg,
		    struct sci_status *st)
{
	struct sci_ep *ep = s->ep;
	size_t *wanted;
	int ret;

	if (!ep || (s->want.source &&
		    ((struct sci_peer *)s->want.source)->ep != ep))
		return -EINVAL;
	if (!ep_lock(ep))
		return -ENOTCONN;
	wanted = wanted_counter(ep, s->want.source);
	++*wanted;
	ret = msg_look(ep, message_seek, s, timeout);
	--*wanted;
	if (!ret && s->found) {
		seek_describe(s->found, st);
		if (msg) {
			seek_take(s);
			*msg = s->found;
		}
	}
	msg_unlock(&ep->lock);
	return ret;
}

static struct seek seek_untagged(struct sci_ep *ep, struct sci_peer *peer)
{
	return (struct seek){
		.ep = ep,
		.want = { .source = peer, .context = MSG_UNTAGGED },
	};
}

static struct seek seek_tagged(struct sci_ep *ep, struct sci_peer *peer,
			       uint32_t context, uint64_t tag, uint64_t ignore)
{
	struct seek s = {
		.ep = ep,
		.want = { .source = peer, .context = context, .tag = tag },
	};

	s.want.ignore = ignore;
	return s;
}

int sci_probe(struct sci_ep *ep, struct sci_peer *peer, int timeout,
	      struct sci_status *status)
{
	struct seek s = seek_untagged(ep, peer);

	return seek_run(&s, timeout, NULL, status);
}

int sci_tprobe(struct sci_ep *ep, struct sci_peer *peer, uint32_t context,
	       uint64_t tag, uint64_t ignore, int timeout,
	       struct sci_status *status)
{
	struct seek s = seek_tagged(ep, peer, context, tag, ignore);

	return context > SCI_CONTEXT_MAX ? -EINVAL :
					   seek_run(&s, timeout, NULL, status);
}

int sci_match(struct sci_ep *ep, struct sci_peer *peer, int timeout,
	      struct sci_msg **msg, struct sci_status *status)
{
	struct seek s = seek_untagged(ep, peer);

	return msg ? seek_run(&s, timeout, msg, status) : -EINVAL;
}

int sci_tmatch(struct sci_ep *ep, struct sci_peer *peer, uint32_t context,
	       uint64_t tag, uint64_t ignore, int timeout,
	       struct sci_msg **msg, struct sci_status *status)
{
	struct seek s = seek_tagged(ep, peer, context, tag, ignore);

	return !msg || context > SCI_CONTEXT_MAX ?
		       -EINVAL :
		       seek_run(&s, timeout, msg, status);
}

/* ---- messages that the program has taken ---- */

static void message_give_back(struct sci_msg *msg)
{
	list_del(&msg->link);
	msg->matched = false;
}

int sci_msg_recv(struct sci_msg *msg, const struct iovec *iov, size_t n,
		 struct sci_req **req)
{
	struct sci_req *r;
	struct sci_ep *ep;
	int ret = -ENOMEM;

	if (!msg || !req || (!iov && n) || n > SCI_IOV_MAX ||
	    !msg_iov_good(iov, n))
		return -EINVAL;
	ep = msg->ep;
	if (!ep_lock(ep))
		return -ENOTCONN;
	r = req_new(ep, MSG_RECV);
	if (r) {
		ret = req_iov(r, iov, n);
		if (ret)
			req_free(r);
	}
	if (!ret) {
		message_give_back(msg);
		recv_message(r, msg);
		*req = r;
	}
	msg_unlock(&ep->lock);
	return ret;
}

static int message_test_complete(void *arg)
{
	struct sci_msg *msg = arg;

	return msg->error ? msg->error : msg->have == msg->len ? 0 : -EAGAIN;
}

static int req_test_done(void *arg)
{
	struct sci_req *req = arg;

	return atomic_load(&req->done) ? 0 : -EAGAIN;
}

/* Receive the whole message of a rendezvous into a buffer, which the program reads in parts. */
static int msg_fetch(struct sci_msg *msg)
{
	struct sci_ep *ep = msg->ep;
	struct iovec iov = { .iov_len = msg->len };
	struct sci_req req;
	int ret;

	iov.iov_base = malloc(msg->len ? msg->len : 1);
	if (!iov.iov_base)
		return -ENOMEM;
	req_init(&req, ep, MSG_RECV);
	req_iov(&req, &iov, 1);
	msg->rendezvous = false;
	rndv_accept(&req, msg->peer, &msg->rts);
	ret = msg_wait(ep, req_test_done, &req, -1);
	ret = ret ? ret : req.status.error;
	if (ret) {
		free(iov.iov_base);
		msg->error = ret;
	} else {
		msg->kept += msg->len;
		ep->unexpected_bytes += msg->len;
		msg->data = iov.iov_base;
		msg->have = msg->len;
	}
	/* another thread may wait for this message, and not for the request */
	msg_changed(ep);
	return ret;
}

static int msg_complete(struct sci_msg *msg)
{
	if (msg->error)
		return msg->error;
	return msg->rendezvous ? msg_fetch(msg) :
				 msg_wait(msg->ep, message_test_complete, msg, -1);
}

int sci_msg_data(struct sci_msg *msg, const void **data)
{
	int ret;

	if (!msg || !data)
		return -EINVAL;
	if (!msg_usable(msg->ep))
		return -ENOTCONN;
	msg_lock(&msg->ep->lock);
	ret = msg_complete(msg);
	if (!ret)
		*data = msg->data;
	msg_unlock(&msg->ep->lock);
	return ret;
}

int sci_msg_copy(struct sci_msg *msg, size_t offset, void *buf, size_t len)
{
	struct sci_ep *ep;
	int ret;

	if (!msg || (!buf && len))
		return -EINVAL;
	if (offset > msg->len || len > msg->len - offset)
		return -ERANGE;
	ep = msg->ep;
	if (!ep_lock(ep))
		return -ENOTCONN;
	ret = msg_complete(msg);
	if (!ret && len)
		memcpy(buf, msg->data + offset, len);
	msg_unlock(&ep->lock);
	return ret;
}

void sci_msg_free(struct sci_msg *msg)
{
	struct sci_ep *ep;

	if (!msg || !msg_usable(msg->ep))
		return;
	ep = msg->ep;
	msg_lock(&ep->lock);
	message_give_back(msg);
	if (msg->rendezvous && !msg->error && msg->peer) {
		/* the sender waits for an answer: receive 0 bytes of the message, which completes at once */
		struct sci_req req;

		req_init(&req, ep, MSG_RECV);
		req_iov(&req, NULL, 0);
		rndv_accept(&req, msg->peer, &msg->rts);
	}
	if (!msg->rendezvous && msg->have < msg->len && msg->peer &&
	    msg->peer->chain_msg == msg)
		msg->peer->chain_msg = NULL;
	msg_unexpected_free(msg);
	msg_unlock(&ep->lock);
}
