// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Broadcast groups: see group.h. */

#include <linux/slab.h>

#include "compat.h"
#include "group.h"
#include "segment.h"

struct sci_domain *sci_domain_create(void)
{
	struct sci_domain *d = kzalloc(sizeof(*d), GFP_KERNEL);

	if (!d)
		return NULL;
	mutex_init(&d->lock);
	INIT_LIST_HEAD(&d->groups);
	return d;
}
EXPORT_SYMBOL_GPL(sci_domain_create);

void sci_domain_destroy(struct sci_domain *d)
{
	if (!d)
		return;
	WARN_ON(!list_empty(&d->groups));
	mutex_destroy(&d->lock);
	kfree(d);
}
EXPORT_SYMBOL_GPL(sci_domain_destroy);

static struct sci_group *group_find(struct sci_domain *d, u32 id)
{
	struct sci_group *g;

	lockdep_assert_held(&d->lock);
	list_for_each_entry(g, &d->groups, link)
		if (g->id == id)
			return g;
	return NULL;
}

static struct sci_group *group_found(struct sci_domain *d,
				     struct sci_segment *s)
{
	struct sci_group *g = kzalloc(sizeof(*g), GFP_KERNEL_ACCOUNT);

	if (!g)
		return NULL;
	g->id = s->id;
	g->serial = ++d->founded;
	g->length = s->length;
	g->owner = s->owner;
	g->pages = sci_pages_get(s->pages);
	INIT_LIST_HEAD(&g->exported);
	list_add_tail(&g->link, &d->groups);
	return g;
}

int sci_group_join(struct sci_segment *s)
{
	struct sci_domain *d = s->obj.adapter->desc.domain;
	struct sci_pages *old = NULL;
	struct sci_group *g;
	int ret = 0;

	mutex_lock(&d->lock);
	g = group_find(d, s->id);
	if (!g) {
		g = group_found(d, s);
		if (!g)
			ret = -ENOMEM;
	} else if (g->length != s->length) {
		ret = -EMSGSIZE;
	} else {
		ret = sci_owner_permits_current(&g->owner) == 6 ? 0 : -EACCES;
		if (!ret) {
			old = s->pages;
			s->pages = sci_pages_get(g->pages);
		}
	}
	if (!ret) {
		g->members++;
		s->group = g;
	}
	mutex_unlock(&d->lock);
	if (old)
		sci_pages_put(old);
	return ret;
}

void sci_group_leave(struct sci_segment *s)
{
	struct sci_domain *d = s->obj.adapter->desc.domain;
	struct sci_group *g = s->group;

	if (!g)
		return;
	s->group = NULL;
	mutex_lock(&d->lock);
	list_del_init(&s->group_link);
	if (!--g->members)
		list_del(&g->link);
	else
		g = NULL;
	mutex_unlock(&d->lock);
	if (g) {
		sci_pages_put(g->pages);
		kfree(g);
	}
}

void sci_group_export(struct sci_segment *s)
{
	struct sci_domain *d = s->obj.adapter->desc.domain;

	if (!s->group)
		return;
	mutex_lock(&d->lock);
	if (list_empty(&s->group_link))
		list_add_tail(&s->group_link, &s->group->exported);
	mutex_unlock(&d->lock);
}

void sci_group_unexport(struct sci_segment *s)
{
	struct sci_domain *d = s->obj.adapter->desc.domain;

	if (!s->group)
		return;
	mutex_lock(&d->lock);
	list_del_init(&s->group_link);
	mutex_unlock(&d->lock);
}

int sci_group_member(struct sci_adapter *a, u32 id, u64 serial, u32 *node,
		     u64 *base)
{
	struct sci_domain *d = a->desc.domain;
	struct sci_segment *s;
	struct sci_group *g;
	int ret = -ENOENT;

	if (!d)
		return -EHOSTUNREACH;
	mutex_lock(&d->lock);
	g = group_find(d, id);
	if (g && (!serial || g->serial == serial)) {
		s = list_first_entry_or_null(&g->exported, struct sci_segment,
					     group_link);
		if (s) {
			*node = s->obj.adapter->desc.node;
			*base = s->base;
			ret = 0;
		}
	}
	mutex_unlock(&d->lock);
	return ret;
}
