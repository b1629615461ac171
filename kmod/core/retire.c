// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Mappings and exports that a work gives back to the adapter: see retire.h. */

#include <linux/sched.h>
#include <linux/slab.h>

#include "retire.h"

static void retired_init(struct sci_retired *r)
{
	INIT_LIST_HEAD(&r->mappings);
	INIT_LIST_HEAD(&r->exposures);
	INIT_LIST_HEAD(&r->calls);
}

/* Give mappings and memory back, which may take long. Context: no locks are held. */
static void retired_give_back(struct sci_adapter *a, struct sci_retired *r)
{
	struct sci_exposure *x, *next_x;
	struct sci_mapping *m, *next_m;

	list_for_each_entry_safe(x, next_x, &r->exposures, link) {
		list_del(&x->link);
		a->desc.ops->hide(a, x->base);
		kfree(x);
	}
	list_for_each_entry_safe(m, next_m, &r->mappings, link) {
		list_del(&m->link);
		a->desc.ops->unmap(a, m);
		kfree(m);
	}
}

static void retired_call(struct sci_retired *r)
{
	struct sci_retired_call *call, *next;

	list_for_each_entry_safe(call, next, &r->calls, link) {
		list_del(&call->link);
		call->fn(call);
	}
}

static void retire_work(struct work_struct *work)
{
	struct sci_adapter *a = container_of(work, struct sci_adapter,
					     retire_work);
	struct sci_retired r;

	retired_init(&r);
	mutex_lock(&a->lock);
	list_splice_init(&a->retired.mappings, &r.mappings);
	list_splice_init(&a->retired.exposures, &r.exposures);
	list_splice_init(&a->retired.calls, &r.calls);
	a->retire_busy = true;
	mutex_unlock(&a->lock);
	retired_give_back(a, &r);
	mutex_lock(&a->lock);
	retired_call(&r);
	a->retire_busy = false;
	mutex_unlock(&a->lock);
}

void sci_retire_init(struct sci_adapter *a)
{
	retired_init(&a->retired);
	INIT_WORK(&a->retire_work, retire_work);
}

static void retire_soon(struct sci_adapter *a)
{
	lockdep_assert_held(&a->lock);
	a->retired.count++;
	queue_work(a->wq, &a->retire_work);
}

void sci_retire_mapping(struct sci_mapping *m)
{
	list_add_tail(&m->link, &m->adapter->retired.mappings);
	retire_soon(m->adapter);
}

void sci_retire_exposure(struct sci_adapter *a, struct sci_exposure *x)
{
	list_add_tail(&x->link, &a->retired.exposures);
	retire_soon(a);
}

unsigned int sci_retire_count(struct sci_adapter *a)
{
	lockdep_assert_held(&a->lock);
	return a->retired.count;
}

bool sci_retire_pending(struct sci_adapter *a)
{
	const struct sci_retired *r = &a->retired;

	lockdep_assert_held(&a->lock);
	return a->retire_busy || !list_empty(&r->mappings) ||
	       !list_empty(&r->exposures) || !list_empty(&r->calls);
}

void sci_retire_call(struct sci_adapter *a, struct sci_retired_call *call)
{
	list_add_tail(&call->link, &a->retired.calls);
	retire_soon(a);
}

void sci_retire_flush(struct sci_adapter *a)
{
	if (!(current->flags & PF_KTHREAD))
		flush_work(&a->retire_work);
}
