// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Opening and closing an endpoint. */

#include "libsci/msg/api/api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "libsci/base/attr.h"

static struct sci_ep *ep_new(const struct sci_ep_attr *attr)
{
	struct sci_ep *ep = calloc(1, sizeof(*ep));

	if (!ep)
		return NULL;
	ep->lock.none = attr->flags & SCI_EP_SINGLE_THREAD;
	ep->crc = attr->flags & SCI_EP_CRC;
	ep->peer_events = attr->flags & SCI_EP_PEER_EVENTS;
	ep->write_events = attr->flags & SCI_EP_WRITE_EVENTS;
	ep->adapter = attr->adapter;
	snprintf(ep->name, sizeof(ep->name), "%s", attr->name ? attr->name : "");
	ep->fork_gen = atomic_load(&msg_fork_gen);
	ep->free_id = UINT32_MAX;
	ep->up = &msg_protocols;
	list_init(&ep->hot);
	list_init(&ep->busy);
	list_init(&ep->dirty);
	list_init(&ep->peers);
	list_init(&ep->attend);
	list_init(&ep->down);
	list_init(&ep->ended);
	list_init(&ep->former);
	list_init(&ep->accept_queue);
	list_init(&ep->closing);
	list_init(&ep->dials);
	list_init(&ep->bufs);
	list_init(&ep->peerless);
	list_init(&ep->refusals);
	callers_init(ep);
	list_init(&ep->completed);
	list_init(&ep->blocked);
	sci_match_init(&ep->match);
	atomics_init(ep);
	copies_init(ep);
	events_init(ep);
	ep->nonce = msg_nonce();
	ep->next_segment = (uint32_t)(ep->nonce >> 32);
	/* make requests now: a few messages can then be sent and received without more memory */
	if (reqs_more(ep)) {
		free(ep);
		return NULL;
	}
	return ep;
}

static void port_event(void *owner, const struct sci_event *ev)
{
	struct sci_ep *ep = owner;

	(void)ev;
	atomic_store(&ep->attention, 1);
	wake_self(ep);
}

/* Create the bell and wake_fd, before the port: port_event() writes to wake_fd. */
static int bell_make(struct sci_ep *ep, uint32_t id)
{
	struct sci_lintr_param param = {
		.adapter = ep->adapter, .number = MSG_NUMBERS + id,
		.flags = SCI_INTR_FIXED,
	};
	int ret = ep->ops->lintr.create(ep->fabric, &param, &ep->bell);

	if (ret)
		return ret;
	ret = wake_init(ep);
	if (ret)
		ep->ops->lintr.destroy(ep->bell);
	return ret;
}

static int port_make(struct sci_ep *ep, uint32_t id)
{
	struct sci_lintr_param param = {
		.adapter = ep->adapter, .number = MSG_NUMBERS + id,
		.flags = SCI_INTR_FIXED | SCI_INTR_DATA,
		.event = port_event, .owner = ep,
	};

	return ep->ops->lintr.create(ep->fabric, &param, &ep->port);
}

static int id_take(struct sci_ep *ep, uint32_t id)
{
	int ret = bell_make(ep, id);

	if (ret)
		return ret;
	ret = port_make(ep, id);
	if (ret) {
		wake_fini(ep);
		ep->ops->lintr.destroy(ep->bell);
		return ret;
	}
	ret = rail_bell_make(ep, id);
	if (ret)
		goto err_port;
	if (ep->net)
		ret = net_port_make(ep, id);
	if (ret)
		goto err_rail;
	ep->addr.id = id;
	return 0;

err_rail:
	rail_bell_end(ep);
err_port:
	ep->ops->lintr.destroy(ep->port);
	wake_fini(ep);
	ep->ops->lintr.destroy(ep->bell);
	return ret;
}

/* Choose a free id from the upper half: programs choose small ids. */
static int id_take_any(struct sci_ep *ep)
{
	uint32_t half = (SCI_EP_ID_MAX + 1) / 2;
	uint32_t id = (uint32_t)(ep->nonce % half);
	int ret = -EEXIST;

	for (uint32_t i = 0; i < 1000 && ret == -EEXIST; i++)
		ret = id_take(ep, half + (id + i) % half);
	return ret;
}

static int ep_join(struct sci_ep *ep, const struct sci_ep_attr *attr)
{
	const struct sci_fabric_place at = {
		.spec = attr->fabric, .node = attr->node,
	};
	struct sci_adapter_info info;
	int ret;

	ret = sci_fabric_share(&ep->fabric, &at);
	if (ret)
		return ret;
	ep->ops = ep->fabric->ops;
	ret = ep->ops->query.adapter(ep->fabric, ep->adapter, &info);
	if (ret) {
		sci_fabric_close(ep->fabric);
		return ret;
	}
	line_init();
	ep->link = ep->ops->query.link(ep->fabric, ep->adapter);
	ep->addr.node = info.node;
	ep->wake_barrier = info.wake_barrier;
	ep->register_copies = info.register_copies;
	ep->may_read = ep->link->map == SCI_PIO_MAP_CACHED && !ep->link->cache;
	ep->lossy = ep->link->map != SCI_PIO_MAP_CACHED ||
		    atomic_load(&sci_fault_enabled);
	ret = rail_join(ep, &at, attr->rail, attr->rail_node);
	if (ret)
		goto err_fabric;
	/* a reroute needs copies of the lines, and a thread that finds lines that do not arrive */
	ep->lossy |= !!ep->rail;
	ep->errors = ep_errors(ep);
	ret = net_join(ep, &at, attr->net, attr->net_peers);
	if (ret)
		goto err_rail;
	return 0;

err_rail:
	rail_leave(ep);
err_fabric:
	sci_fabric_close(ep->fabric);
	return ret;
}

static int ep_open_at(struct sci_ep **out, const struct sci_ep_attr *attr)
{
	struct sci_ep *ep;
	int ret;

	if (attr->id > SCI_EP_ID_MAX ||
	    attr->flags & ~(uint32_t)(SCI_EP_SINGLE_THREAD | SCI_EP_CRC |
				      SCI_EP_PEER_EVENTS | SCI_EP_WRITE_EVENTS))
		return -EINVAL;
	wake_fork_init();
	ep = ep_new(attr);
	if (!ep)
		return -ENOMEM;
	ret = ep_join(ep, attr);
	if (ret)
		goto err_free;
	ret = params_init(ep);
	ret = ret ? ret : retransmit_start(ep);
	if (ret)
		goto err_leave;
	ret = attr->id ? id_take(ep, attr->id) : id_take_any(ep);
	if (ret)
		goto err_retransmit;
	*out = ep;
	return 0;

err_retransmit:
	retransmit_stop(ep);
err_leave:
	net_leave(ep);
	rail_leave(ep);
	sci_fabric_close(ep->fabric);
err_free:
	slabs_free(ep);
	callers_fini(ep);
	free(ep);
	return ret;
}

int sci_ep_open_attr(struct sci_ep **ep, const struct sci_ep_attr *from)
{
	struct sci_ep_attr attr = { 0 };
	int ret = -EINVAL;

	if (ep && from)
		ret = attr_copy(&attr, sizeof(attr), from, offsetof(struct sci_ep_attr, fabric));
	return ret ? ret : ep_open_at(ep, &attr);
}

int sci_ep_open(struct sci_ep **ep, uint32_t id, unsigned int flags)
{
	const struct sci_ep_attr attr = { .id = id, .flags = flags };

	return ep ? ep_open_at(ep, &attr) : -EINVAL;
}

/* ---- closing ---- */

static void receives_drop(struct sci_ep *ep)
{
	struct sci_match_recv *r;

	while ((r = sci_match_recv_any(&ep->match)))
		recv_withdraw(container_of(r, struct sci_req, match), -ECANCELED);
}

static void peerless_drop(struct sci_ep *ep)
{
	struct list *l;

	while ((l = list_pop(&ep->peerless)))
		msg_unexpected_free(container_of(l, struct sci_msg, link));
}

static void peers_close(struct sci_ep *ep)
{
	while (!list_empty(&ep->peers))
		peer_drop(container_of(ep->peers.next, struct sci_peer, link));
	callers_stop(ep);
	peers_release(ep);
	while (!list_empty(&ep->ended))
		peer_free(container_of(ep->ended.next, struct sci_peer, link));
	while (!list_empty(&ep->former))
		peer_free(container_of(ep->former.next, struct sci_peer, link));
}

int sci_ep_close(struct sci_ep *ep)
{
	if (!ep)
		return -EINVAL;
	if (!ep_lock(ep))
		return -ENOTCONN;
	peers_flush(ep);
	dials_cancel(ep);
	peers_close(ep);
	msg_unlock(&ep->lock);
	retransmit_stop(ep);
	receives_drop(ep);
	peerless_drop(ep);
	bufs_free(ep);
	ep->ops->lintr.destroy(ep->port);
	net_port_end(ep);
	net_leave(ep);
	rail_bell_end(ep);
	rail_leave(ep);
	wake_fini(ep);
	ep->ops->lintr.destroy(ep->bell);
	sci_fabric_close(ep->fabric);
	sci_match_fini(&ep->match);
	slabs_free(ep);
	hash_free(&ep->by_addr);
	free(ep->ids);
	callers_fini(ep);
	free(ep);
	return 0;
}

/* ---- queries ---- */

int sci_ep_addr(struct sci_ep *ep, struct sci_addr *addr)
{
	if (!ep || !addr)
		return -EINVAL;
	if (!msg_usable(ep))
		return -ENOTCONN;
	*addr = ep->addr;
	return 0;
}

const char *sci_ep_name(struct sci_ep *ep)
{
	return ep ? ep->name : NULL;
}

const char *sci_ep_fabric(struct sci_ep *ep)
{
	return ep ? ep->ops->name : NULL;
}

unsigned int sci_ep_traits(struct sci_ep *ep)
{
	if (!ep)
		return 0;
	return (ep->may_read ? SCI_TRAIT_FAST_READS | SCI_TRAIT_SHARED_MEMORY : 0u) |
	       (ep->lossy ? SCI_TRAIT_LOSSY : 0u) |
	       (ep->register_copies ? SCI_TRAIT_REGISTER_COPIES : 0u) |
	       (ep->ops->virtual_nodes ? SCI_TRAIT_VIRTUAL_NODES : 0u) |
	       (ep->link->cache ? SCI_TRAIT_INCOHERENT : 0u);
}

int sci_ep_stats(struct sci_ep *ep, struct sci_ep_stats *stats)
{
	struct sci_ep_stats now;

	if (!ep || !stats || stats->size < sizeof(size_t))
		return -EINVAL;
	if (!ep_lock(ep))
		return -ENOTCONN;
	now = ep->stats;
	now.size = stats->size < sizeof(now) ? stats->size : sizeof(now);
	now.unexpected = ep->match.unexpected;
	now.unexpected_bytes = ep->unexpected_bytes;
	msg_unlock(&ep->lock);
	memcpy(stats, &now, now.size);
	return 0;
}
