// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Imports: segments of other processes. */

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "libsci/fabric/net/net.h"

static void rseg_end(const struct net_link *l, struct sci_rseg *r, enum sci_event_type type)
{
	const struct sci_event ev = {
		.type = type, .node = l->node, .status = -ENOTCONN,
	};

	atomic_store(&r->status.gone, 1);
	list_del(&r->link);
	r->of = NULL;
	r->acked = l->log.acked;
	r->event(r->owner, &ev);
}

/* End the import of a segment that its owner has destroyed. */
void net_segment_gone(struct net_link *l, uint32_t id)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &l->imports) {
		struct sci_rseg *r = container_of(pos, struct sci_rseg, link);

		if (r->id == id)
			rseg_end(l, r, SCI_EVENT_DISCONNECT);
	}
}

void net_imports_lost(struct net_link *l)
{
	while (!list_empty(&l->imports))
		rseg_end(l, container_of(l->imports.next, struct sci_rseg, link),
			 SCI_EVENT_LOST);
}

int net_rseg_connect(struct sci_fabric *f, const struct sci_rseg_param *p,
			struct sci_rseg **out)
{
	struct net *net = net_of(f);
	struct sci_rseg *r;
	struct net_link *l;
	int ret;

	if (p->adapter)
		return -ENODEV;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	*r = (struct sci_rseg){
		.net = net, .id = p->id, .event = p->event, .owner = p->owner,
		.status.link = &net->status,
	};
	list_init(&r->link);
	*out = r;
	pthread_mutex_lock(&net->svc.lock);
	ret = net_reach(net, p->node, p->port, p->timeout, &l);
	if (!ret)
		ret = net_ask(l, p->timeout, p->owner, r);
	pthread_mutex_unlock(&net->svc.lock);
	if (ret) {
		*out = NULL;
		free(r);
	}
	return ret;
}

void net_rseg_disconnect(struct sci_rseg *r)
{
	struct net_frame f = { .type = NET_LEAVE, .object = r->id };

	pthread_mutex_lock(&r->net->svc.lock);
	if (r->of) {
		list_del(&r->link);
		net_link_send(r->of, &f, NULL);
		net_link_flush(r->of);
	}
	pthread_mutex_unlock(&r->net->svc.lock);
	free(r);
}

uint64_t net_rseg_size(struct sci_rseg *r)
{
	return r->size;
}

bool net_rseg_readonly(struct sci_rseg *r)
{
	(void)r;
	return false;
}

struct sci_rseg_status *net_rseg_status(struct sci_rseg *r)
{
	return &r->status;
}

/* Reserve addresses for puts to the segment. A load or store to these addresses faults. */
int net_rseg_map(struct sci_rseg *r, uint64_t off, size_t len, unsigned int flags,
		    void **addr)
{
	void *p;

	if (off || flags & SCI_MAP_FIXED)
		return -EOPNOTSUPP;
	p = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return -errno;
	r->addr = p;
	*addr = p;
	return 0;
}

void net_unmap(struct sci_fabric *f, void *addr, size_t len)
{
	struct net *net = net_of(f);
	struct hash_node *i = NULL;
	bool local = false;

	/* keep the mapping of a segment of this process: it exists as long as the segment */
	pthread_mutex_lock(&net->svc.lock);
	while (!local && (i = hash_walk(&net->segments, i)))
		local = container_of(i, struct sci_lseg, by_id)->addr == addr;
	pthread_mutex_unlock(&net->svc.lock);
	if (!local)
		munmap(addr, len);
}

/* Do nothing for a store barrier: frames arrive in order. */
void net_store_barrier(struct sci_fabric *f, struct sci_rseg *r)
{
	(void)f;
	(void)r;
}
