// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * The network of libsci's messages. A channel is a context, a sub-channel a tag, and a
 * fragment a message.
 */
#include <errno.h>

#include "libsci/madeleine/internal.h"

#define CONNECT_MS	30000

struct msg_net {
	struct sci_ep *ep;
	struct sci_addr *addr;		/* by rank */
	struct sci_peer **peer;		/* by rank; NULL: not connected */
};

static struct msg_net *net_of(struct mad_world *w)
{
	return w->net_state;
}

static uint32_t context(uint32_t channel)
{
	return channel + 1;
}

static int net_open(struct mad_world *w)
{
	struct msg_net *n = tbx_alloc(1, sizeof(*n));
	struct sci_addr mine;
	int ret;

	n->addr = tbx_alloc((size_t)w->size, sizeof(*n->addr));
	n->peer = tbx_alloc((size_t)w->size, sizeof(struct sci_peer *));
	ret = sci_ep_open(&n->ep, 0, 0);
	ret = ret ? ret : sci_ep_addr(n->ep, &mine);
	ret = ret ? ret : mad_world_exchange(w, &mine, sizeof(mine), n->addr);
	w->net_state = n;
	return ret;
}

static void net_close(struct mad_world *w)
{
	struct msg_net *n = net_of(w);

	sci_ep_close(n->ep);
	free(n->addr);
	free(n->peer);
	free(n);
}

static void set_rank(struct sci_peer *peer, int rank)
{
	sci_peer_set_data(peer, (void *)((intptr_t)rank + 1));
}

static int net_connect(struct mad_world *w, int rank)
{
	struct msg_net *n = net_of(w);
	int ret = 0;

	if (!n->peer[rank]) {
		ret = sci_connect(n->ep, &n->addr[rank], CONNECT_MS, &n->peer[rank]);
		if (!ret)
			set_rank(n->peer[rank], rank);
	}
	return ret;
}

/* Also of a process that has connected to this one first. */
static int rank_of(struct msg_net *n, int size, struct sci_peer *peer)
{
	int rank = peer ? (int)(intptr_t)sci_peer_data(peer) - 1 : -1;
	struct sci_addr a;

	if (rank >= 0 || !peer || sci_peer_addr(peer, &a))
		return rank;
	for (rank = 0; rank < size; rank++)
		if (n->addr[rank].node == a.node && n->addr[rank].id == a.id) {
			set_rank(peer, rank);
			return rank;
		}
	return -1;
}

static struct sci_peer *peer_of(struct msg_net *n, struct mad_link *l)
{
	if (!l->peer)
		l->peer = n->peer[l->rank];
	return l->peer;
}

static int net_send(struct mad_world *w, struct mad_link *l, const void *buf, size_t len)
{
	struct sci_peer *peer = peer_of(net_of(w), l);
	const struct iovec iov = { (void *)buf, len };
	const struct sci_send s = {
		.iov = &iov, .n = 1, .tag = l->sub, .context = context(l->channel),
		.flags = SCI_SEND_TAGGED | SCI_SEND_COPY,
	};
	int ret;

	ret = sci_try_tsend(peer, s.context, s.tag, NULL, buf, len);
	if (ret == -EAGAIN)
		ret = sci_isendm(peer, &s, NULL);
	return ret == -EAGAIN ? sci_tsend(peer, s.context, s.tag, buf, len) : ret;
}

static int net_isend(struct mad_world *w, struct mad_link *l, const void *buf, size_t len,
		     void **req)
{
	struct sci_req *r = NULL;
	int ret = sci_itsend(peer_of(net_of(w), l), context(l->channel), l->sub, buf, len, &r);

	*req = r;
	return ret;
}

static long net_first(struct mad_world *w, uint32_t channel, uint32_t sub, void *buf,
		      size_t size, bool wait, int *rank)
{
	struct msg_net *n = net_of(w);
	struct sci_status st;
	int ret = 0;

	if (!wait)
		ret = sci_tprobe(n->ep, NULL, context(channel), sub, 0, 0, NULL);
	ret = ret ? ret : sci_trecv(n->ep, NULL, context(channel), sub, 0, buf, size, &st);
	if (ret)
		return ret;
	*rank = rank_of(n, w->size, st.peer);
	return (long)st.len;
}

static long net_recv(struct mad_world *w, struct mad_link *l, void *buf, size_t size)
{
	struct msg_net *n = net_of(w);
	struct sci_status st;
	int ret = sci_trecv(n->ep, peer_of(n, l), context(l->channel), l->sub, 0, buf, size,
			    &st);

	return ret ? ret : (long)st.len;
}

static int net_irecv(struct mad_world *w, struct mad_link *l, void *buf, size_t len,
		     void **req)
{
	struct msg_net *n = net_of(w);
	struct sci_req *r = NULL;
	int ret = sci_itrecv(n->ep, peer_of(n, l), context(l->channel), l->sub, 0, buf, len,
			     &r);

	*req = r;
	return ret;
}

static int net_wait(struct mad_world *w, void *req, size_t len)
{
	struct sci_status st;
	int ret = sci_wait(req, -1, &st);

	(void)w;
	if (!ret && len != SIZE_MAX && st.len != len)
		return -EPROTO;
	return ret;
}

static void net_progress(struct mad_world *w)
{
	sci_progress(net_of(w)->ep);
}

const struct mad_net mad_net_msg = {
	.name = "msg",
	.open = net_open,
	.close = net_close,
	.connect = net_connect,
	.send = net_send,
	.isend = net_isend,
	.first = net_first,
	.recv = net_recv,
	.irecv = net_irecv,
	.wait = net_wait,
	.progress = net_progress,
};
