// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Exports: segments of this process, and the links that import them. */

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "libsci/fabric/net/net.h"

#define IMPORTERS_MAX	65536u		/* importers of all segments, per link */

static struct sci_lseg *lseg_find(struct net *net, uint32_t id)
{
	struct hash_node *node = hash_find(&net->segments, id);

	return node ? container_of(node, struct sci_lseg, by_id) : NULL;
}

/* ---- importers ---- */

struct net_importer *net_importer_find(struct net_link *l, uint32_t id)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &l->importers) {
		struct net_importer *i = container_of(pos, struct net_importer, of_link);

		if (i->seg->id == id)
			return i;
	}
	return NULL;
}

static void lseg_notify_importers(struct sci_lseg *s, unsigned int node, enum sci_event_type type)
{
	const struct sci_event ev = { .type = type, .node = node };

	s->event(s->owner, &ev);
}

/* Bytes from @node have arrived in a segment with a bell. */
void net_lseg_rang(struct sci_lseg *s, unsigned int node)
{
	lseg_notify_importers(s, node, SCI_EVENT_RANG);
}

int net_importer_add(struct net_link *l, uint32_t id, uint64_t *size)
{
	struct sci_lseg *s = lseg_find(l->net, id);
	struct net_importer *i;

	if (!s || !s->exported)
		return -ENOENT;
	if (l->n_importers >= IMPORTERS_MAX)
		return -ENOSPC;
	i = calloc(1, sizeof(*i));
	if (!i)
		return -ENOMEM;
	i->by = l;
	i->seg = s;
	l->n_importers++;
	list_add_tail(&i->of_link, &l->importers);
	list_add_tail(&i->of_seg, &s->importers);
	*size = s->size;
	lseg_notify_importers(s, l->node, SCI_EVENT_CONNECT);
	return 0;
}

static void importer_free(struct net_importer *i)
{
	i->by->n_importers--;
	list_del(&i->of_link);
	list_del(&i->of_seg);
	free(i);
}

void net_importer_end(struct net_importer *i, enum sci_event_type type)
{
	struct sci_lseg *s = i->seg;
	unsigned int node = i->by->node;

	importer_free(i);
	lseg_notify_importers(s, node, type);
}

/* ---- operations of the fabric ---- */

int net_lseg_create(struct sci_fabric *f, const struct sci_lseg_param *p,
		       struct sci_lseg **out)
{
	struct net *net = net_of(f);
	struct sci_lseg *s;
	int ret = 0;

	if (p->flags & SCI_LSEG_BROADCAST)
		return -EOPNOTSUPP;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->net = net;
	s->id = p->id;
	s->size = p->size;
	s->rings = p->bell;
	s->event = p->event;
	s->owner = p->owner;
	list_init(&s->importers);
	if (!(p->flags & SCI_LSEG_EMPTY)) {
		void *addr = mmap(NULL, s->size, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

		if (addr == MAP_FAILED)
			goto err;
		s->addr = addr;
		s->owned = true;
	}
	pthread_mutex_lock(&net->svc.lock);
	while (p->flags & SCI_LSEG_AUTO_ID && lseg_find(net, s->id))
		s->id++;
	ret = lseg_find(net, s->id) ? -EEXIST : hash_add(&net->segments, &s->by_id, s->id);
	pthread_mutex_unlock(&net->svc.lock);
	if (ret)
		goto err;
	*out = s;
	return 0;

err:
	if (s->owned)
		munmap(s->addr, s->size);
	free(s);
	return ret ? ret : -ENOSPC;
}

int net_lseg_export(struct sci_lseg *s, unsigned int adapter)
{
	if (adapter)
		return -ENODEV;
	pthread_mutex_lock(&s->net->svc.lock);
	s->exported = true;
	pthread_mutex_unlock(&s->net->svc.lock);
	return 0;
}

/* End all imports of the segment and notify the importers. */
static void lseg_disconnect_importer(struct sci_lseg *s)
{
	while (!list_empty(&s->importers)) {
		struct net_importer *i = container_of(s->importers.next,
						      struct net_importer, of_seg);
		struct net_frame f = { .type = NET_GONE, .object = s->id };

		net_link_send(i->by, &f, NULL);
		net_link_flush(i->by);
		importer_free(i);
	}
}

int net_lseg_unexport(struct sci_lseg *s, enum sci_unexport how)
{
	pthread_mutex_lock(&s->net->svc.lock);
	s->exported = false;
	if (how != SCI_UNEXPORT_QUIET)
		lseg_disconnect_importer(s);
	pthread_mutex_unlock(&s->net->svc.lock);
	return 0;
}

unsigned int net_lseg_importers(struct sci_lseg *s)
{
	struct list *pos, *n;
	unsigned int count = 0;

	pthread_mutex_lock(&s->net->svc.lock);
	list_for_each_safe(pos, n, &s->importers)
		count++;
	pthread_mutex_unlock(&s->net->svc.lock);
	return count;
}

void net_lseg_destroy(struct sci_lseg *s)
{
	pthread_mutex_lock(&s->net->svc.lock);
	lseg_disconnect_importer(s);
	/* answers to reads */
	net_links_take_back(s->net, s);
	hash_del(&s->net->segments, &s->by_id);
	pthread_mutex_unlock(&s->net->svc.lock);
	/* this memory is also the program's mapping of the segment */
	if (s->owned)
		munmap(s->addr, s->size);
	free(s);
}

uint32_t net_lseg_id(struct sci_lseg *s)
{
	return s->id;
}

uint64_t net_lseg_size(struct sci_lseg *s)
{
	return s->size;
}

/* Return the segment's only mapping, which exists as long as the segment. */
int net_lseg_map(struct sci_lseg *s, uint64_t off, size_t len, unsigned int flags,
		    void **addr)
{
	(void)len;
	if (flags & SCI_MAP_FIXED || !s->addr)
		return -EOPNOTSUPP;
	*addr = s->addr + off;
	return 0;
}

/* Use memory of the program for a segment. It may have any size and alignment. */
int net_lseg_register(struct sci_lseg *s, void *addr, size_t len)
{
	if (s->owned || s->addr || len != s->size)
		return -EINVAL;
	pthread_mutex_lock(&s->net->svc.lock);
	s->addr = addr;
	pthread_mutex_unlock(&s->net->svc.lock);
	return 0;
}
