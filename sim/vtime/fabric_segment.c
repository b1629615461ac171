// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Segments and their imports. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/vtime/fabric.h"

/* ---- segments ---- */

static struct sci_lseg *segment_find(struct vt_fabric *f, uint32_t id)
{
	struct sci_lseg *s = f->segments[id % FABRIC_BUCKETS];

	while (s && s->id != id)
		s = s->next;
	return s;
}

static int lseg_take_id(struct vt_fabric *f, struct sci_lseg *s,
			const struct sci_lseg_param *p)
{
	struct sci_lseg **bucket;

	s->id = p->id;
	while (segment_find(f, s->id)) {
		if (!(p->flags & SCI_LSEG_AUTO_ID))
			return -EEXIST;
		s->id++;
	}
	bucket = &f->segments[s->id % FABRIC_BUCKETS];
	s->next = *bucket;
	*bucket = s;
	return 0;
}

void fabric_lseg_free(struct sci_lseg *s)
{
	if (s->own)
		node_pages_put(s->mem, s->size);
	fabric_export_free(s);
	fabric_listener_end(s->listener);
	free(s);
}

int fab_lseg_create(struct sci_fabric *base,
		    const struct sci_lseg_param *p,
		    struct sci_lseg **out)
{
	struct vt_fabric *f = fabric_cast(base);
	struct sci_lseg *s;
	int ret = -ENOSPC;

	if (p->flags & (SCI_LSEG_BROADCAST | SCI_LSEG_UNICAST))
		return -EOPNOTSUPP;
	s = calloc(1, sizeof(*s));
	if (!s)
		return ret;
	s->node = f->node;
	s->size = p->size;
	list_init(&s->importers);
	s->listener = fabric_listener(f->node, p->event, p->owner);
	s->own = !(p->flags & SCI_LSEG_EMPTY);
	if (s->own)
		s->mem = node_pages_get(s->size);
	if (s->listener && (s->mem || !s->own))
		ret = lseg_take_id(f, s, p);
	if (ret)
		fabric_lseg_free(s);
	else
		*out = s;
	return ret;
}

int fab_lseg_export(struct sci_lseg *s, unsigned int adapter)
{
	if (adapter)
		return -ENODEV;
	return s->exported ? 0 : fabric_export_begin(s);
}

static void importers_cut_off(struct sci_lseg *s)
{
	struct list *l;

	while ((l = list_pop(&s->importers))) {
		struct sci_rseg *r = container_of(l, struct sci_rseg, link);

		r->lseg = NULL;
		atomic_store(&r->status.gone, 1);
		fabric_tell(r->listener, SCI_EVENT_DISCONNECT, s->node->id,
			    -ENOTCONN);
	}
	s->n_importers = 0;
}

int fab_lseg_unexport(struct sci_lseg *s, enum sci_unexport how)
{
	struct list *pos, *n;
	struct sci_rseg *r;

	if (s->exported)
		fabric_export_end(s);
	if (how == SCI_UNEXPORT_FORCE) {
		importers_cut_off(s);
	} else if (how == SCI_UNEXPORT_NOTIFY) {
		list_for_each_safe(pos, n, &s->importers) {
			r = container_of(pos, struct sci_rseg, link);
			fabric_tell(r->listener, SCI_EVENT_DISCONNECT,
				    s->node->id, 0);
		}
	}
	return 0;
}

unsigned int fab_lseg_importers(struct sci_lseg *s)
{
	return s->n_importers;
}

void fab_lseg_destroy(struct sci_lseg *s)
{
	struct vt_fabric *f = s->node->fabric;
	struct sci_lseg **p = &f->segments[s->id % FABRIC_BUCKETS];

	vt_sync(s->node);
	if (s->exported)
		fabric_export_end(s);
	importers_cut_off(s);
	while (*p != s)
		p = &(*p)->next;
	*p = s->next;
	fabric_lseg_free(s);
}

uint32_t fab_lseg_id(struct sci_lseg *s)
{
	return s->id;
}

uint64_t fab_lseg_size(struct sci_lseg *s)
{
	return s->size;
}

int fab_lseg_map(struct sci_lseg *s, uint64_t off, size_t len,
		 unsigned int flags, void **addr)
{
	(void)len;
	if (flags & SCI_MAP_FIXED)
		return -EOPNOTSUPP;
	*addr = s->mem + off;
	return 0;
}

/* ---- imports ---- */

int fab_rseg_connect(struct sci_fabric *f,
		     const struct sci_rseg_param *p,
		     struct sci_rseg **out)
{
	struct vt_node *n = fabric_cast(f)->node;
	struct vt_node *target = fabric_node(n, p->node);
	struct sci_lseg *s;
	struct sci_rseg *r;

	if (p->adapter)
		return -ENODEV;
	if (!target)
		return -EHOSTUNREACH;
	fabric_ask(n);
	s = segment_find(target->fabric, p->id);
	if (!s || !s->exported)
		return -ENOENT;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOSPC;
	r->listener = fabric_listener(n, p->event, p->owner);
	if (!r->listener) {
		free(r);
		return -ENOSPC;
	}
	r->node = n;
	r->lseg = s;
	r->target = target->id;
	r->export_id = s->export_id;
	r->size = s->size;
	r->status.link = &fabric_cast(f)->link;
	list_add_tail(&r->link, &s->importers);
	s->n_importers++;
	fabric_tell(s->listener, SCI_EVENT_CONNECT, n->id, 0);
	*out = r;
	return 0;
}

void fab_cancel_connect(struct sci_fabric *f, const void *owner)
{
	(void)f;
	(void)owner;
}

void fab_rseg_disconnect(struct sci_rseg *r)
{
	vt_sync(r->node);
	if (r->lseg) {
		list_del(&r->link);
		r->lseg->n_importers--;
		fabric_tell(r->lseg->listener, SCI_EVENT_DISCONNECT,
			    r->node->id, 0);
	}
	fabric_listener_end(r->listener);
	free(r);
}

uint64_t fab_rseg_size(struct sci_rseg *r)
{
	return r->size;
}

bool fab_rseg_readonly(struct sci_rseg *r)
{
	(void)r;
	return false;
}

struct sci_rseg_status *fab_rseg_status(struct sci_rseg *r)
{
	return &r->status;
}

int fab_rseg_map(struct sci_rseg *r, uint64_t off, size_t len,
		 unsigned int flags, void **addr)
{
	struct vt_fabric *f = r->node->fabric;
	uint32_t pages = fabric_pages(off, len), first;

	if (flags & SCI_MAP_FIXED)
		return -EOPNOTSUPP;
	if (!r->lseg)
		return -ENOTCONN;
	vt_sync(r->node);
	first = fabric_entries_get(f, pages);
	if (first == UINT32_MAX)
		return -ENOSPC;
	for (uint32_t i = 0; i < pages; i++)
		fabric_entry_set(f, first + i, r->target, 0, r->export_id,
				 (off / VT_ATT_PAGE + i) * VT_ATT_PAGE);
	*addr = r->node->window + (size_t)first * VT_ATT_PAGE +
		off % VT_ATT_PAGE;
	return 0;
}

void fab_unmap(struct sci_fabric *base, void *addr, size_t len)
{
	struct vt_fabric *f = fabric_cast(base);
	uint64_t at = (uint64_t)((uintptr_t)addr - (uintptr_t)f->node->window);

	/* a map of a local segment is its memory itself */
	if (at >= (uint64_t)VT_ATT_ENTRIES * VT_ATT_PAGE)
		return;
	vt_sync(f->node);
	fabric_entries_put(f, (uint32_t)(at / VT_ATT_PAGE),
			   fabric_pages(at, len));
}
