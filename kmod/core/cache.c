// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Flushes of an adapter's simulated cache, for programs: SCI_IOC_CACHE. */

#include <linux/mm.h>
#include <linux/sched/signal.h>

#include "cache.h"
#include "core.h"
#include "import.h"
#include "lent.h"

/* Flush lines of one page. The locks of the map keep its memory, even if the adapter is removed. */
static int cache_flush_page(struct sci_adapter *a, unsigned long addr,
			    unsigned int length, bool drop)
{
	struct vm_area_struct *vma;
	int ret = -EFAULT;

	if (mmap_read_lock_killable(current->mm))
		return -EINTR;
	vma = vma_lookup(current->mm, addr);
	if (vma)
		ret = sci_import_cache(a, vma, addr, length, drop);
	if (vma && ret)
		ret = sci_lent_cache(a, vma, addr, length, drop);
	mmap_read_unlock(current->mm);
	return ret;
}

int sci_cache(struct sci_object *obj, void *cmd, struct sci_new_file *nf)
{
	struct sci_adapter *a = obj->adapter;
	struct sci_ioc_cache *c = cmd;
	bool drop = c->flags & SCI_CACHE_DROP;
	u64 done, n;
	int ret = 0;

	if (!(a->desc.caps & SCI_CAP_CHECKED))
		return -EOPNOTSUPP;
	if (c->addr > ULONG_MAX || c->length > ULONG_MAX - c->addr)
		return -EFAULT;
	for (done = 0; !ret && done < c->length; done += n) {
		if (fatal_signal_pending(current))
			return -EINTR;
		n = min_t(u64, c->length - done,
			  PAGE_SIZE - offset_in_page(c->addr + done));
		ret = cache_flush_page(a, c->addr + done, n, drop);
		cond_resched();
	}
	return ret;
}
