// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Networks over the message layer of libsci. A channel is a context, a sub-channel a tag, and a
 * fragment a message; see rail.h.
 */
#include <assert.h>
#include <errno.h>
#include <sys/random.h>

#include "libsci/madeleine/rail.h"

#define CONNECT_MS	30000
#define DEATH_MS	100		/* milliseconds between checks for dead senders */
#define QUEUED_MS	1		/* milliseconds between polls of rails with queued messages */
#define NET_PARAMETER	256

/* ---- endpoints ---- */

/* Values that all processes take from rank 0. */
struct agreed {
	uint64_t number;		/* part of the sockets' names */
	uint64_t block;
};

/* Return the description of process @rank. Context: there is a session file. */
static p_ntbx_process_t rail_process(const struct rail *r, int rank)
{
	assert(r->w->session);
	return tbx_slist_index_get(r->w->session->processes, rank);
}

static int sockets_address(struct rail *r, uint64_t number, int rank, char *text, size_t size)
{
	p_ntbx_process_t p = rail_process(r, rank);
	const char *parameter = mad_session_parameter(r->network, p->host);
	const char *port = parameter ? strrchr(parameter, ':') : NULL;

	if (!parameter)
		return snprintf(text, size, "unix:@madeleine-%016llx-%d-%d+1",
				(unsigned long long)number, r->network->index, rank);
	if (!port || strncmp(parameter, "tcp:", 4) || port == parameter + 3)
		tbx_failuref("the network %s has the parameter \"%s\" for %s: "
			     "want tcp:ADDRESS:PORT", r->network->name, parameter, p->host);
	return snprintf(text, size, "%.*s:%d+1", (int)(port - parameter), parameter,
			atoi(port + 1) + rank);
}

/*
 * Open an endpoint that reaches its peers only by sockets. Each process is the only node of its own
 * virtual cluster.
 */
static int rail_open_sockets(struct rail *r, uint64_t number, uint32_t flags)
{
	struct mad_world *w = r->w;
	size_t size = (size_t)w->size * (NET_PARAMETER + 16), n = 0;
	char cluster[64], net[NET_PARAMETER], *peers = tbx_alloc(1, size);
	struct sci_ep_attr attr = {
		.size = sizeof(attr), .fabric = cluster, .node = 4 * (uint32_t)(w->rank + 1),
		.flags = flags, .net = net, .net_peers = peers,
	};
	int ret;

	for (int i = 0; i < w->size; i++) {
		sockets_address(r, number, i, net, sizeof(net));
		if (i != w->rank)
			n += (size_t)snprintf(peers + n, size - n, "%s%d=%s", n ? "," : "",
					      4 * (i + 1), net);
	}
	sockets_address(r, number, w->rank, net, sizeof(net));
	snprintf(cluster, sizeof(cluster), "shm:mad%llx-%d-%d", (unsigned long long)number,
		 r->network->index, w->rank);
	ret = sci_ep_open_attr(&r->ep, &attr);
	free(peers);
	return ret;
}

static int rail_open_sci(struct rail *r, uint32_t flags)
{
	struct sci_ep_attr attr = { .size = sizeof(attr), .flags = flags };

	if (r->network)
		attr.fabric = mad_session_parameter(r->network,
						    rail_process(r, r->w->rank)->host);
	return sci_ep_open_attr(&r->ep, &attr);
}

/* Open a rail. Collective; @inside: whether this process is in the network. */
static int rail_open(struct rail *r, uint64_t number, bool inside)
{
	uint32_t flags = r->forwards ? SCI_EP_PEER_EVENTS : 0;
	struct sci_addr mine = { 0 };
	int ret = 0;

	r->addr = tbx_alloc((size_t)r->w->size, sizeof(*r->addr));
	r->peer = tbx_alloc((size_t)r->w->size, sizeof(struct sci_peer *));
	if (inside) {
		ret = r->network && r->network->sockets ? rail_open_sockets(r, number, flags) :
							  rail_open_sci(r, flags);
		ret = ret ? ret : sci_ep_addr(r->ep, &mine);
		rails_of(r->w)->open++;
	}
	return ret ? ret : mad_world_exchange(r->w, &mine, sizeof(mine), r->addr);
}

static uint64_t networks_of(const struct def *d, p_ntbx_process_t me)
{
	uint64_t networks = 0;

	if (d->kind == DEF_CHANNEL)
		return mad_session_member(d, me) ? 1ull << d->network->index : 0;
	for (p_tbx_slist_element_t e = d->parts->head; e; e = e->next)
		networks |= networks_of(e->object, me);
	return networks;
}

static bool networks_are_several(uint64_t networks)
{
	return networks & (networks - 1);
}

static int ranks_agree(struct mad_world *w, struct rails *n, uint64_t *number)
{
	const char *block = getenv("MAD_FORWARD_BLOCK");
	struct agreed mine = { .block = WAY_BLOCK }, *all;
	int ret;

	if (block)
		mine.block = strtoull(block, NULL, 0);
	if (mine.block < WAY_BLOCK_MIN || mine.block > 1u << 30)
		tbx_failuref("MAD_FORWARD_BLOCK=%s: want bytes from %u to 1073741824", block,
			     WAY_BLOCK_MIN);
	if (getrandom(&mine.number, sizeof(mine.number), 0) < 0)
		return -errno;
	all = tbx_alloc((size_t)w->size, sizeof(*all));
	ret = mad_world_exchange(w, &mine, sizeof(mine), all);
	n->block = all[0].block;
	*number = all[0].number;
	free(all);
	return ret;
}

static int rails_open(struct mad_world *w, struct rails *n)
{
	p_ntbx_process_t me = tbx_slist_index_get(w->session->processes, w->rank);
	uint64_t used = 0, inside = 0, joined = 0, number = 0;
	int ret = ranks_agree(w, n, &number);

	for (p_tbx_slist_element_t e = w->session->order->head; e; e = e->next) {
		const struct def *d = e->object;
		uint64_t mine = networks_of(d, me);

		if (d->kind == DEF_CHANNEL)
			used |= 1ull << d->network->index;
		inside |= mine;
		joined |= !d->user && networks_are_several(mine) ? mine : 0;
	}
	for (int i = 0; i < n->n && !ret; i++) {
		struct rail *r = &n->rail[i];

		r->w = w;
		r->network = tbx_slist_index_get(w->session->networks, i);
		r->forwards = joined >> i & 1;
		if (used >> i & 1)
			ret = rail_open(r, number, inside >> i & 1);
		if (ret)
			fprintf(stderr, "madeleine: network %s: %s%s\n", r->network->name,
				strerror(-ret), r->network->sockets && !getenv("SCI_NET_KEY") ?
				" (SCI_NET_KEY is not set)" : "");
	}
	return ret;
}

static int net_open(struct mad_world *w)
{
	struct rails *n = tbx_alloc(1, sizeof(*n));

	w->net_state = n;
	n->n = w->session ? (int)w->session->networks->length : 1;
	if (n->n > 64)
		tbx_failuref("a session has at most 64 networks");
	n->rail = tbx_alloc((size_t)n->n, sizeof(*n->rail));
	n->block = WAY_BLOCK;
	if (w->session)
		return rails_open(w, n);
	n->rail->w = w;
	return rail_open(n->rail, 0, true);
}

static void net_close(struct mad_world *w)
{
	struct rails *n = rails_of(w);

	/* the gateway of one rail has blocks that the endpoint of another one sends */
	for (int i = 0; i < n->n; i++)
		if (n->rail[i].ep)
			sci_ep_close(n->rail[i].ep);
	for (int i = 0; i < n->n; i++) {
		struct rail *r = &n->rail[i];

		gateway_free(r);
		free(r->addr);
		free(r->peer);
	}
	free(n->rail);
	free(n);
}

/* ---- peers ---- */

static void peer_set_rank(struct sci_peer *peer, int rank)
{
	sci_peer_set_data(peer, (void *)((intptr_t)rank + 1));
}

static int net_connect(struct mad_world *w, int network, int rank)
{
	struct rail *r = &rails_of(w)->rail[network];
	int ret = 0;

	if (!r->peer[rank]) {
		ret = sci_connect(r->ep, &r->addr[rank], CONNECT_MS, &r->peer[rank]);
		if (!ret)
			peer_set_rank(r->peer[rank], rank);
	}
	return ret;
}

/*
 * Return the rank of a peer; -1: unknown. A peer that has connected first is found by its address.
 */
int rail_rank(struct rail *r, struct sci_peer *peer)
{
	int rank = peer ? (int)(intptr_t)sci_peer_data(peer) - 1 : -1;
	struct sci_addr a;

	if (rank >= 0 || !peer || sci_peer_addr(peer, &a))
		return rank;
	for (rank = 0; rank < r->w->size; rank++)
		if (r->addr[rank].node == a.node && r->addr[rank].id == a.id) {
			peer_set_rank(peer, rank);
			return rank;
		}
	return -1;
}

static struct rail *rail_of(struct mad_world *w, struct mad_link *l)
{
	struct rail *r = &rails_of(w)->rail[l->network];

	if (!l->peer)
		l->peer = r->peer[l->way ? l->way->via : l->rank];
	return r;
}

static int net_start(struct mad_world *w)
{
	struct rails *n = rails_of(w);
	int ret = 0;

	for (int i = 0; i < n->n && !ret; i++)
		if (n->rail[i].forwards)
			ret = gateway_start(&n->rail[i]);
	return ret;
}

static void net_stop(struct mad_world *w)
{
	struct rails *n = rails_of(w);

	for (int i = 0; i < n->n; i++)
		if (n->rail[i].forwards)
			gateway_stop(&n->rail[i]);
}

/* ---- waits ---- */

void rails_progress(struct mad_world *w)
{
	struct rails *n = rails_of(w);

	for (int i = 0; i < n->n; i++)
		if (n->rail[i].ep)
			sci_progress(n->rail[i].ep);
}

int rails_poll_ms(struct rails *n)
{
	return n->open > 1 && atomic_load(&n->queued) ? QUEUED_MS : DEATH_MS;
}

int rails_wait(struct mad_world *w, struct sci_req *req, struct sci_status *st)
{
	struct rails *n = rails_of(w);
	int ret;

	if (n->open == 1)
		return sci_wait(req, -1, st);
	while ((ret = sci_wait(req, rails_poll_ms(n), st)) == -ETIMEDOUT)
		rails_progress(w);
	return ret;
}

/* ---- fragments ---- */

static int net_send(struct mad_world *w, struct mad_link *l, const void *buf, size_t len)
{
	const struct iovec iov = { (void *)buf, len };
	const struct sci_send s = {
		.iov = &iov, .n = 1, .tag = l->sub, .context = rail_context(l->channel),
		.flags = SCI_SEND_TAGGED | SCI_SEND_COPY,
	};
	struct sci_req *req;
	int ret;

	rail_of(w, l);
	if (l->way)
		return way_send(w, l, buf, len);
	ret = sci_try_tsend(l->peer, s.context, s.tag, NULL, buf, len);
	if (ret != -EAGAIN)
		return ret;
	atomic_store(&rails_of(w)->queued, true);
	ret = sci_isendm(l->peer, &s, NULL);
	if (ret != -EAGAIN)
		return ret;
	ret = sci_itsend(l->peer, s.context, s.tag, buf, len, &req);
	return ret ? ret : rails_wait(w, req, NULL);
}

static int net_isend(struct mad_world *w, struct mad_link *l, const void *buf, size_t len,
		     void **req)
{
	struct sci_req *r = NULL;
	int ret;

	rail_of(w, l);
	if (l->way)
		ret = way_isend(w, l, buf, len);
	else
		ret = sci_itsend(l->peer, rail_context(l->channel), l->sub, buf, len, &r);
	*req = r;
	return ret;
}

static int net_flush(struct mad_world *w, struct mad_link *l)
{
	return l->way ? way_flush(w, l) : 0;
}

/* Return the error of a dead process; 0: the process lives, or is not connected. */
static int rank_get_error(struct rail *r, int rank)
{
	int error = r->peer[rank] ? sci_peer_state(r->peer[rank]) : 0;

	return error == -EINPROGRESS ? 0 : error;
}

/* Return the rank of a dead peer; -1: there is none. */
static int rank_find_dead(struct rail *r, int *error)
{
	for (int i = 0; i < r->w->size; i++)
		if ((*error = rank_get_error(r, i)))
			return i;
	return -1;
}

/*
 * Test for a first fragment. Each call checks only one process, in turn: programs call this often.
 * The check comes first, because messages that arrive before a death come before the error.
 */
static int first_probe(struct rail *r, struct mad_inbox *in, uint64_t ignore, int *rank)
{
	int next = (int)(in->next++ % (unsigned int)r->w->size);
	int error = rank_get_error(r, next), ret;

	ret = sci_tprobe(r->ep, NULL, rail_context(in->channel), in->sub, ignore, 0, NULL);
	if (ret != -EAGAIN || !error)
		return ret;
	*rank = next;
	return error;
}

/*
 * Wait for a first fragment, and check for dead senders: a receive from any sender does not end
 * when a sender dies.
 */
static int first_wait(struct rail *r, struct sci_req *req, struct sci_status *st, int *rank)
{
	struct rails *n = rails_of(r->w);
	int ret, error = 0;

	while ((ret = sci_wait(req, rails_poll_ms(n), st)) == -ETIMEDOUT) {
		if (n->open > 1)
			rails_progress(r->w);
		*rank = rank_find_dead(r, &error);
		if (*rank < 0 || sci_cancel(req))
			continue;
		ret = sci_wait(req, -1, st);
		return ret == -ECANCELED ? error : ret;
	}
	return ret;
}

static long net_first(struct mad_world *w, struct mad_inbox *in, void *buf, size_t size,
		      bool wait, int *rank)
{
	struct rails *n = rails_of(w);
	struct rail *r = &n->rail[in->networks ? __builtin_ctzll(in->networks) : 0];
	uint32_t context = rail_context(in->channel);
	uint64_t ignore = in->ways ? ~TAG_SUB : 0;
	struct sci_req *req;
	struct sci_status st;
	int ret = 0;

	if (!wait && n->open > 1 && atomic_load(&n->queued))
		rails_progress(w);
	if (networks_are_several(in->networks))
		return gateway_first(w, in, buf, size, wait, rank);
	if (!wait)
		ret = first_probe(r, in, ignore, rank);
	ret = ret ? ret : sci_itrecv(r->ep, NULL, context, in->sub, ignore, buf, size, &req);
	ret = ret ? ret : first_wait(r, req, &st, rank);
	if (ret)
		return ret;
	*rank = tag_is_way(st.tag) ? tag_from(st.tag) : rail_rank(r, st.peer);
	return (long)st.len;
}

static long net_recv(struct mad_world *w, struct mad_link *l, void *buf, size_t size)
{
	struct rail *r = rail_of(w, l);
	uint64_t tag = l->way ? l->way->tag : l->sub;
	struct sci_status st;
	struct sci_req *req;
	int ret = sci_itrecv(r->ep, l->peer, rail_context(l->channel), tag, 0, buf, size, &req);

	ret = ret ? ret : rails_wait(w, req, &st);
	return ret ? ret : (long)st.len;
}

static int net_irecv(struct mad_world *w, struct mad_link *l, void *buf, size_t len,
		     void **req)
{
	struct rail *rail = rail_of(w, l);
	struct sci_req *r = NULL;
	int ret;

	if (l->way)
		return way_irecv(w, l, buf, len, req);
	ret = sci_itrecv(rail->ep, l->peer, rail_context(l->channel), l->sub, 0, buf, len, &r);
	*req = r;
	return ret;
}

static int net_wait(struct mad_world *w, void *req, size_t len)
{
	struct sci_status st;
	int ret;

	if (!req)
		return 0;
	if ((uintptr_t)req & 1)
		return way_wait(w, req);
	ret = rails_wait(w, req, &st);
	if (!ret && len != SIZE_MAX && st.len != len)
		return -EPROTO;
	return ret;
}

const struct mad_net mad_net_msg = {
	.name = "msg",
	.open = net_open,
	.close = net_close,
	.connect = net_connect,
	.start = net_start,
	.stop = net_stop,
	.send = net_send,
	.isend = net_isend,
	.flush = net_flush,
	.first = net_first,
	.recv = net_recv,
	.irecv = net_irecv,
	.wait = net_wait,
	.progress = rails_progress,
};
