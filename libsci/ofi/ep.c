// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Endpoints, and their peers by address number. */
#include "libsci/ofi/onesided.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Time limit for connecting to a peer, in ms. */
#define PATIENCE_MS	5000
/*
 * Two ranks that exchange buffers which they have just changed, as in an allreduce, have taken 1.4
 * times as long with single copies of 16 and 32 KiB.
 */
#define SINGLE_COPY_MIN	65536

/* ---- peers ---- */

static int peers_grow(struct sfi_ep *ep, fi_addr_t n)
{
	size_t room = ep->n_peers ? ep->n_peers : 16;
	struct sci_peer **peers;

	while (room <= n)
		room *= 2;
	peers = realloc(ep->peers, room * sizeof(struct sci_peer *));
	if (!peers)
		return -FI_ENOMEM;
	memset(peers + ep->n_peers, 0,
	       (room - ep->n_peers) * sizeof(struct sci_peer *));
	ep->peers = peers;
	ep->n_peers = room;
	return 0;
}

/* Return the peer of number @n; connect to it at first use. Context: the endpoint is locked. */
int sfi_ep_peer(struct sfi_ep *ep, fi_addr_t n, struct sci_peer **peer)
{
	struct sci_addr addr;
	int ret;

	if (n < ep->n_peers && ep->peers[n]) {
		*peer = ep->peers[n];
		return 0;
	}
	ret = sfi_av_address(ep->av, n, &addr);
	if (!ret && n >= ep->n_peers)
		ret = peers_grow(ep, n);
	if (!ret)
		ret = sci_peer_open(ep->ep, &addr, ep->patience, peer);
	if (!ret)
		ep->peers[n] = *peer;
	return ret;
}

/* Close the connection to @p, which has no number. Context: the endpoint is locked. */
static void peer_end(struct sfi_ep *ep, struct sci_peer *p)
{
	sfi_held_post(ep);
	if (ep->starting)
		sfi_serve_transfers(ep);
	sci_peer_close(p);
}

/*
 * Remove the peer of number @n, which was removed from the address vector. Close the connection
 * with the last number of its address. @heir: another number of the address, or FI_ADDR_NOTAVAIL
 */
void sfi_ep_forget(struct sfi_ep *ep, fi_addr_t n, fi_addr_t heir)
{
	struct sci_peer *p, **to = NULL;

	sfi_lock(&ep->lock);
	if (heir != FI_ADDR_NOTAVAIL &&
	    (heir < ep->n_peers || !peers_grow(ep, heir)))
		to = &ep->peers[heir];
	p = n < ep->n_peers ? ep->peers[n] : NULL;
	if (p) {
		ep->peers[n] = NULL;
		if (to && !*to)
			*to = p;
		if (!to || *to != p)
			peer_end(ep, p);
	}
	sfi_unlock(&ep->lock);
}

static bool peer_is_numbered(const struct sfi_ep *ep, const struct sci_peer *p)
{
	for (size_t n = 0; n < ep->n_peers; n++)
		if (ep->peers[n] == p)
			return true;
	return false;
}

/*
 * Disconnect peers that have died or closed and have no number: the program cannot remove them.
 * Context: the endpoint is locked.
 */
void sfi_ep_forget_strangers(struct sfi_ep *ep)
{
	struct sci_peer *p;

	while (!sci_peer_gone(ep->ep, &p))
		if (!peer_is_numbered(ep, p))
			peer_end(ep, p);
}

/*
 * Return the number of a message's sender. If this endpoint has not sent to the peer yet, add the
 * peer to ep->peers, so that the removal of its number also disconnects it. The number is cached in
 * the peer's data, and is valid while ep->peers has the peer at this number.
 */
fi_addr_t sfi_ep_source(struct sfi_ep *ep, struct sci_peer *peer)
{
	struct sci_addr addr;
	uintptr_t known;
	fi_addr_t n;

	if (!peer)
		return FI_ADDR_NOTAVAIL;
	known = (uintptr_t)sci_peer_data(peer);
	if (known && ep->peers[known - 1] == peer)
		return known - 1;
	sci_peer_addr(peer, &addr);
	n = sfi_av_number(ep->av, &addr);
	if (n == FI_ADDR_NOTAVAIL || (n >= ep->n_peers && peers_grow(ep, n)))
		return n;
	if (!ep->peers[n])
		ep->peers[n] = peer;
	sci_peer_set_data(peer, (void *)(uintptr_t)(n + 1));
	return n;
}

/* ---- names ---- */

static int ep_getname(fid_t fid, void *addr, size_t *len)
{
	struct sfi_ep *ep = (struct sfi_ep *)fid;
	struct sci_addr a;
	size_t room = *len;
	int ret = sci_ep_addr(ep->ep, &a);

	if (ret)
		return ret;
	*len = sizeof(a);
	if (!addr && room)
		return -FI_EINVAL;
	if (addr)
		memcpy(addr, &a, room < sizeof(a) ? room : sizeof(a));
	return room < sizeof(a) ? -FI_ETOOSMALL : 0;
}

static struct fi_ops_cm cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = sfi_no_setname,
	.getname = ep_getname,
	.getpeer = sfi_no_getpeer,
	.connect = sfi_no_connect,
	.listen = sfi_no_listen,
	.accept = sfi_no_accept,
	.reject = sfi_no_reject,
	.shutdown = sfi_no_shutdown,
	.join = sfi_no_join,
};

/* ---- options ---- */

static int ep_getopt(fid_t fid, int level, int name, void *value, size_t *len)
{
	struct sfi_ep *ep = (struct sfi_ep *)fid;

	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (*len < sizeof(size_t))
		return -FI_ETOOSMALL;
	*(size_t *)value = ep->min_multi_recv;
	*len = sizeof(size_t);
	return 0;
}

static int ep_setopt(fid_t fid, int level, int name, const void *value,
		     size_t len)
{
	struct sfi_ep *ep = (struct sfi_ep *)fid;

	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (len != sizeof(size_t))
		return -FI_EINVAL;
	ep->min_multi_recv = *(const size_t *)value;
	return 0;
}

/* Return a constant: the provider has no send or receive queues of a fixed size. */
static ssize_t ep_size_left(struct fid_ep *ep)
{
	(void)ep;
	return SFI_ASKING_MAX;
}

static struct fi_ops_ep ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = sfi_cancel,
	.getopt = ep_getopt,
	.setopt = ep_setopt,
	.tx_ctx = sfi_no_tx_ctx,
	.rx_ctx = sfi_no_rx_ctx,
	.rx_size_left = ep_size_left,
	.tx_size_left = ep_size_left,
};

/* ---- bindings ---- */

static int ep_bind_cq(struct sfi_ep *ep, struct sfi_cq *cq, uint64_t flags)
{
	bool selective = flags & FI_SELECTIVE_COMPLETION;
	int ret;

	if (flags & ~(uint64_t)(FI_SEND | FI_RECV | FI_SELECTIVE_COMPLETION) ||
	    !(flags & (FI_SEND | FI_RECV)))
		return -FI_EBADFLAGS;
	if ((flags & FI_SEND && ep->tx.cq) || (flags & FI_RECV && ep->rx.cq))
		return -FI_EINVAL;
	ret = sfi_eps_add(&cq->eps, &cq->wait, ep);
	if (ret)
		return ret;
	sfi_lock(&ep->lock);
	if (flags & FI_SEND) {
		ep->tx.cq = cq;
		ep->tx.selective = selective;
		cq->users++;
	}
	if (flags & FI_RECV) {
		ep->rx.cq = cq;
		ep->rx.selective = selective;
		cq->users++;
	}
	sfi_unlock(&ep->lock);
	return 0;
}

/* Return the address of the endpoint's counter for one kind of operation. */
static struct sfi_cntr **ep_get_counter(struct sfi_ep *ep, uint64_t flag)
{
	switch (flag) {
	case FI_SEND:
		return &ep->tx.cntr;
	case FI_RECV:
		return &ep->rx.cntr;
	case FI_WRITE:
		return &ep->writes;
	case FI_READ:
		return &ep->reads;
	case FI_REMOTE_WRITE:
		return &ep->remote_writes;
	default:
		return &ep->remote_reads;
	}
}

static const uint64_t counted[] = {
	FI_SEND, FI_RECV, FI_WRITE, FI_READ, FI_REMOTE_WRITE, FI_REMOTE_READ,
};

#define N_COUNTED	(sizeof(counted) / sizeof(*counted))

static int ep_bind_cntr(struct sfi_ep *ep, struct sfi_cntr *c, uint64_t flags)
{
	uint64_t rest = flags;
	int ret;

	for (size_t i = 0; i < N_COUNTED; i++) {
		if (flags & counted[i] && *ep_get_counter(ep, counted[i]))
			return -FI_EINVAL;
		rest &= ~counted[i];
	}
	if (rest || !flags)
		return -FI_EBADFLAGS;
	ret = sfi_eps_add(&c->eps, &c->wait, ep);
	if (ret)
		return ret;
	sfi_lock(&ep->lock);
	for (size_t i = 0; i < N_COUNTED; i++) {
		if (!(flags & counted[i]))
			continue;
		*ep_get_counter(ep, counted[i]) = c;
		c->users++;
	}
	sfi_unlock(&ep->lock);
	return 0;
}

/* Queues and counters may be bound to an enabled endpoint, too: later operations use them. */
static int ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct sfi_ep *ep = (struct sfi_ep *)fid;

	switch (bfid->fclass) {
	case FI_CLASS_AV:
		if (ep->enabled)
			return -FI_EOPBADSTATE;
		if (ep->av)
			return -FI_EINVAL;
		sfi_av_attach((struct sfi_av *)bfid, ep);
		return 0;
	case FI_CLASS_CQ:
		return ep_bind_cq(ep, (struct sfi_cq *)bfid, flags);
	case FI_CLASS_CNTR:
		return ep_bind_cntr(ep, (struct sfi_cntr *)bfid, flags);
	case FI_CLASS_EQ:
		return 0;
	default:
		return -FI_EINVAL;
	}
}

/* Get or set the default flags. *@flags contains FI_TRANSMIT or FI_RECV to name the side. */
static int ep_get_op_flags(struct sfi_ep *ep, bool set, uint64_t *flags)
{
	uint64_t which, known;
	struct sfi_side *s;

	if (!flags)
		return -FI_EINVAL;
	which = *flags & (FI_TRANSMIT | FI_RECV);
	if (which != FI_TRANSMIT && which != FI_RECV)
		return -FI_EINVAL;
	s = which == FI_TRANSMIT ? &ep->tx : &ep->rx;
	known = which == FI_TRANSMIT ? SFI_TX_FLAGS : SFI_RX_FLAGS;
	if (set && *flags & ~which & ~known)
		return -FI_EBADFLAGS;
	sfi_lock(&ep->lock);
	if (set)
		s->op_flags = *flags & ~which;
	else
		*flags = s->op_flags;
	sfi_unlock(&ep->lock);
	return 0;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct sfi_ep *ep = (struct sfi_ep *)fid;
	int ret;

	if (command == FI_GETOPSFLAG || command == FI_SETOPSFLAG)
		return ep_get_op_flags(ep, command == FI_SETOPSFLAG, arg);
	if (command != FI_ENABLE)
		return -FI_ENOSYS;
	if (ep->enabled)
		return 0;
	if (!ep->av)
		return -FI_ENOAV;
	if (!ep->tx.cq && !ep->tx.cntr && !ep->rx.cq && !ep->rx.cntr)
		return -FI_ENOCQ;
	sfi_serve_begin(ep);
	ret = sfi_domain_join(ep);
	if (ret)
		return ret;
	sfi_lock(&ep->lock);
	ep->enabled = true;
	sfi_unlock(&ep->lock);
	sfi_mr_exporter(ep);
	return 0;
}

/* ---- open and close ---- */

static void ep_unbind_cq(struct sfi_ep *ep, struct sfi_cq *cq)
{
	if (!cq)
		return;
	sfi_eps_remove(&cq->eps, ep);
	cq->users--;
}

static void ep_unbind(struct sfi_ep *ep)
{
	ep_unbind_cq(ep, ep->tx.cq);
	ep_unbind_cq(ep, ep->rx.cq);
	for (size_t i = 0; i < N_COUNTED; i++) {
		struct sfi_cntr *c = *ep_get_counter(ep, counted[i]);

		if (!c)
			continue;
		sfi_eps_remove(&c->eps, ep);
		c->users--;
	}
}

static int ep_close(struct fid *fid)
{
	struct sfi_ep *ep = (struct sfi_ep *)fid;

	sfi_serve_end(ep);
	ep_unbind(ep);
	sfi_domain_leave(ep);
	if (ep->av)
		sfi_av_detach(ep->av, ep);
	sfi_mr_no_exporter(ep);
	sci_ep_close(ep->ep);
	sfi_serve_free(ep);
	ep->domain->users--;
	sfi_lock_fini(&ep->lock);
	sfi_ops_fini(ep);
	free(ep->peers);
	free(ep);
	return 0;
}

static struct fi_ops ep_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = ep_close,
	.bind = ep_bind,
	.control = ep_control,
	.ops_open = sfi_no_ops_open,
};

/* Return the endpoint id in the source address of @info; 0: any id. */
static uint32_t info_wanted_id(const struct fi_info *info)
{
	struct sci_addr a;

	if (!info->src_addr || info->src_addrlen != sizeof(a))
		return 0;
	memcpy(&a, info->src_addr, sizeof(a));
	return a.id;
}

static void params_take(struct sfi_ep *ep)
{
	int ms;

	ep->patience = PATIENCE_MS;
	if (!fi_param_get_int(&sfi_provider, "connect_ms", &ms))
		ep->patience = ms;
}

/*
 * Make single copies instead of eager messages: users of libfabric do not expect that a long send
 * completes before the receive.
 */
static void single_copies_set(struct sci_ep *ep)
{
	uint64_t min;

	if (!getenv("SCI_MSG_SINGLE_COPY_MIN") && !getenv("SCI_MSG_TABLE") &&
	    !sci_ep_get(ep, SCI_PARAM_SINGLE_COPY_MIN, &min) && min != UINT64_MAX)
		sci_ep_set(ep, SCI_PARAM_SINGLE_COPY_MIN, SINGLE_COPY_MIN);
}

int sfi_ep_open(struct fid_domain *domain, struct fi_info *info,
		struct fid_ep **out, void *context)
{
	struct sfi_domain *d = (struct sfi_domain *)domain;
	struct sfi_ep *ep;
	int ret;

	if (!info || !info->ep_attr || !info->tx_attr || !info->rx_attr ||
	    info->ep_attr->type != FI_EP_RDM)
		return -FI_EINVAL;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	ret = sci_ep_open(&ep->ep, info_wanted_id(info),
			  SCI_EP_WRITE_EVENTS | (d->shared ? 0 : SCI_EP_SINGLE_THREAD));
	if (ret) {
		free(ep);
		return ret == -EEXIST ? -FI_EADDRINUSE : ret;
	}
	single_copies_set(ep->ep);
	ep->late = true;
	ep->fid.fid.fclass = FI_CLASS_EP;
	ep->fid.fid.context = context;
	ep->fid.fid.ops = &ep_fid_ops;
	ep->fid.ops = &ep_ops;
	ep->fid.cm = &cm_ops;
	ep->fid.msg = &sfi_msg_ops;
	ep->fid.rma = &sfi_rma_ops;
	ep->fid.atomic = &sfi_atomic_ops;
	ep->fid.tagged = &sfi_tagged_ops;
	ep->domain = d;
	d->users++;
	ep->caps = info->caps;
	ep->traits = sci_ep_traits(ep->ep);
	ep->directed = info->caps & FI_DIRECTED_RECV;
	ep->has_waiter = d->automatic.runs;
	ep->tx.op_flags = info->tx_attr->op_flags;
	ep->rx.op_flags = info->rx_attr->op_flags;
	ep->min_multi_recv = 64;
	params_take(ep);
	sfi_lock_init(&ep->lock, d->shared);
	*out = &ep->fid;
	return 0;
}
