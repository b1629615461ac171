// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Adapters: allocation, callers inside an adapter, error counts and times of the link. */

#include <linux/idr.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "core.h"
#include "retire.h"
#include "trace.h"

static DEFINE_IDA(sci_ida);

int sci_adapter_enter(struct sci_adapter *a, int *idx)
{
	*idx = srcu_read_lock(&a->srcu);
	/* for sparse: sci_adapter_exit() releases the lock, not this function */
	__release(&a->srcu);
	if (!sci_adapter_is_dead(a))
		return 0;
	sci_adapter_exit(a, *idx);
	return -ENODEV;
}

void sci_adapter_exit(struct sci_adapter *a, int idx)
{
	__acquire(&a->srcu);
	srcu_read_unlock(&a->srcu, idx);
}

/* ---- life ---- */

static void sci_adapter_release(struct device *dev)
{
	struct sci_adapter *a = container_of(dev, struct sci_adapter, dev);

	if (a->index >= 0)
		ida_free(&sci_ida, a->index);
	if (a->status_page)
		put_page(a->status_page);
	WARN_ON(!xa_empty(&a->holders));
	mutex_destroy(&a->lent_lock);
	mutex_destroy(&a->lock);
	cleanup_srcu_struct(&a->srcu);
	kfree(a);
}

static void adapter_init(struct sci_adapter *a)
{
	mutex_init(&a->lock);
	mutex_init(&a->lent_lock);
	spin_lock_init(&a->error_lock);
	xa_init_flags(&a->segments, XA_FLAGS_ALLOC);
	xa_init_flags(&a->handles, XA_FLAGS_ALLOC1);
	xa_init_flags(&a->intrs, XA_FLAGS_ALLOC);
	xa_init_flags(&a->data_intrs, XA_FLAGS_ALLOC);
	xa_init(&a->peers);
	xa_init(&a->holders);
	INIT_LIST_HEAD(&a->objects);
	INIT_LIST_HEAD(&a->mappings);
	INIT_LIST_HEAD(&a->barrier_maps);
	INIT_LIST_HEAD(&a->lent);
	INIT_LIST_HEAD(&a->probes);
	sci_retire_init(a);
	init_waitqueue_head(&a->wait);
	a->link_changed = ktime_get();
}

struct sci_adapter *sci_adapter_alloc(struct device *parent,
				      const struct sci_adapter_desc *desc)
{
	struct sci_adapter *a = kzalloc(sizeof(*a), GFP_KERNEL);

	if (!a)
		return NULL;
	if (init_srcu_struct(&a->srcu)) {
		kfree(a);
		return NULL;
	}
	a->desc = *desc;
	a->index = -1;
	device_initialize(&a->dev);
	device_set_pm_not_required(&a->dev);
	a->dev.parent = parent;
	a->dev.groups = desc->groups;
	a->dev.release = sci_adapter_release;
	adapter_init(a);
	a->status_page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (!a->status_page) {
		sci_adapter_put(a);
		return NULL;
	}
	a->status = page_address(a->status_page);
	a->status->down = 1;
	return a;
}
EXPORT_SYMBOL_GPL(sci_adapter_alloc);

void sci_adapter_get(struct sci_adapter *a)
{
	get_device(&a->dev);
}
EXPORT_SYMBOL_GPL(sci_adapter_get);

void sci_adapter_put(struct sci_adapter *a)
{
	put_device(&a->dev);
}
EXPORT_SYMBOL_GPL(sci_adapter_put);

const struct sci_adapter_desc *sci_adapter_desc(const struct sci_adapter *a)
{
	return &a->desc;
}
EXPORT_SYMBOL_GPL(sci_adapter_desc);

const char *sci_adapter_name(const struct sci_adapter *a)
{
	return dev_name(&a->dev);
}
EXPORT_SYMBOL_GPL(sci_adapter_name);

struct sci_adapter *sci_adapter_of_device(struct device *dev)
{
	return container_of(dev, struct sci_adapter, dev);
}
EXPORT_SYMBOL_GPL(sci_adapter_of_device);

struct sci_status_page *sci_adapter_status(const struct sci_adapter *a)
{
	return a->status;
}
EXPORT_SYMBOL_GPL(sci_adapter_status);

struct dentry *sci_adapter_debugfs(const struct sci_adapter *a)
{
	return a->debugfs;
}
EXPORT_SYMBOL_GPL(sci_adapter_debugfs);

int sci_adapter_number(struct sci_adapter *a)
{
	int index = ida_alloc_max(&sci_ida, SCI_ADAPTERS_MAX - 1, GFP_KERNEL);

	if (index < 0)
		return index;
	a->index = index;
	return 0;
}

/* ---- errors and link ---- */

void sci_adapter_error(struct sci_adapter *a, bool fatal)
{
	struct sci_status_page *st = a->status;
	unsigned long flags;

	/* users read the error counts without the lock */
	spin_lock_irqsave(&a->error_lock, flags);
	WRITE_ONCE(st->errors, st->errors + 1);
	if (fatal)
		WRITE_ONCE(st->fatal, st->fatal + 1);
	spin_unlock_irqrestore(&a->error_lock, flags);
	trace_sci_error(a, fatal);
}
EXPORT_SYMBOL_GPL(sci_adapter_error);

void sci_adapter_hw_error(struct sci_adapter *a)
{
	u32 errors = le32_to_cpu(READ_ONCE(a->status->hw_errors));
	u32 fatal = le32_to_cpu(READ_ONCE(a->status->hw_fatal));

	if (errors != a->hw_errors || fatal != a->hw_fatal)
		trace_sci_error(a, fatal != a->hw_fatal);
	a->hw_errors = errors;
	a->hw_fatal = fatal;
}
EXPORT_SYMBOL_GPL(sci_adapter_hw_error);

u64 sci_adapter_link_up_ms(struct sci_adapter *a)
{
	u64 ms = 0;

	mutex_lock(&a->lock);
	if (a->link_up)
		ms = ktime_ms_delta(ktime_get(), a->link_changed);
	mutex_unlock(&a->lock);
	return ms;
}

u64 sci_adapter_link_down_ms(struct sci_adapter *a)
{
	u64 ns;

	mutex_lock(&a->lock);
	ns = a->link_down_ns;
	if (!a->link_up)
		ns += ktime_to_ns(ktime_sub(ktime_get(), a->link_changed));
	mutex_unlock(&a->lock);
	return div_u64(ns, NSEC_PER_MSEC);
}
