// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Memory that an adapter lends to segments. */

#include <linux/file.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "adapter_private.h"
#include "compat.h"
#include "core.h"
#include "lent.h"
#include "object.h"
#include "pages.h"

/**
 * struct sci_lent - memory that an adapter has lent
 * @pages: the memory, as the segment sees it
 * @adapter: reference to the lender
 * @link: entry in sci_adapter.lent, until the memory is given back
 * @life: references: of @pages, of @file, of the list, and of a thread that revokes
 * @revoke: page faults hold it for reading while they insert pages
 * @revoked: the adapter has the memory back
 * @private_page: the page that replaces the memory in maps when it is @revoked
 * @file: backs the maps; NULL: the last map and the segment have ended
 */
struct sci_lent {
	struct sci_pages pages;
	struct sci_adapter *adapter;
	struct list_head link;
	struct kref life;
	struct rw_semaphore revoke;
	bool revoked;
	struct page *private_page;
	struct file *file;
};

static struct sci_lent *lent_of(struct sci_pages *p)
{
	return container_of(p, struct sci_lent, pages);
}

static void lent_free(struct kref *life)
{
	struct sci_lent *l = container_of(life, struct sci_lent, life);

	sci_pages_end(&l->pages);
	if (l->private_page)
		__free_page(l->private_page);
	sci_adapter_put(l->adapter);
	kfree(l);
}

static void lent_give_back(struct sci_lent *l)
{
	struct sci_adapter *a = l->adapter;

	down_write(&l->revoke);
	if (!l->revoked) {
		l->revoked = true;
		if (l->file)
			unmap_mapping_range(l->file->f_mapping, 0, 0, 1);
		a->desc.ops->free(a, l->pages.page[0], l->pages.count);
		mutex_lock(&a->lent_lock);
		list_del(&l->link);
		mutex_unlock(&a->lent_lock);
		/* the caller has a reference, too */
		kref_put(&l->life, lent_free);
	}
	up_write(&l->revoke);
}

/* Give the memory back: its last map and its segment have ended. */
static int lent_file_release(struct inode *inode, struct file *file)
{
	struct sci_lent *l = file->private_data;
	struct sci_adapter *a;
	int idx;

	if (!l)		/* the adapter had no memory to lend */
		return 0;
	a = l->adapter;
	down_write(&l->revoke);
	l->file = NULL;
	up_write(&l->revoke);
	/* an adapter that is removed takes the memory back itself */
	if (!sci_adapter_enter(a, &idx)) {
		lent_give_back(l);
		sci_adapter_exit(a, idx);
	}
	kref_put(&l->life, lent_free);
	return 0;
}

static const struct file_operations lent_fops = {
	.owner = THIS_MODULE,
	.release = lent_file_release,
};

static void lent_pages_release(struct sci_pages *p)
{
	struct sci_lent *l = lent_of(p);

	fput(l->file);
	kref_put(&l->life, lent_free);
}

/* ---- alloc ---- */

static int lent_borrow(struct sci_lent *l)
{
	struct sci_adapter *a = l->adapter;
	unsigned long i;
	struct page *first;
	int ret;

	ret = a->desc.ops->alloc(a, l->pages.count, &first);
	if (ret)
		return ret;
	for (i = 0; i < l->pages.count; i++) {
		/* the removal of the adapter waits for this call */
		if (fatal_signal_pending(current) || sci_adapter_is_dead(a)) {
			a->desc.ops->free(a, first, l->pages.count);
			return -ENODEV;
		}
		l->pages.page[i] = first + i;
		clear_highpage(first + i);
		cond_resched();
	}
	kref_get(&l->life);
	mutex_lock(&a->lent_lock);
	list_add_tail(&l->link, &a->lent);
	mutex_unlock(&a->lent_lock);
	return 0;
}

static struct sci_lent *lent_new(struct sci_adapter *a, unsigned long count)
{
	struct sci_lent *l = kzalloc(sizeof(*l), GFP_KERNEL_ACCOUNT);
	int ret = -ENOMEM;

	if (!l)
		return ERR_PTR(ret);
	l->private_page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!l->private_page)
		goto err_free;
	ret = sci_pages_begin(&l->pages, count);
	if (ret)
		goto err_page;
	l->pages.release = lent_pages_release;
	kref_init(&l->life);
	init_rwsem(&l->revoke);
	l->adapter = a;
	sci_adapter_get(a);
	return l;

err_page:
	__free_page(l->private_page);
err_free:
	kfree(l);
	return ERR_PTR(ret);
}

struct sci_pages *sci_lent_alloc(struct sci_adapter *a, u64 length)
{
	struct sci_lent *l = lent_new(a, DIV_ROUND_UP_ULL(length, PAGE_SIZE));
	int ret;

	if (IS_ERR(l))
		return ERR_CAST(l);
	l->file = sci_file_create("[sci-segment]", &lent_fops);
	if (IS_ERR(l->file)) {
		ret = PTR_ERR(l->file);
		goto err_put;
	}
	ret = lent_borrow(l);
	if (ret)
		goto err_file;
	l->file->private_data = l;
	kref_get(&l->life);
	return &l->pages;

err_file:
	fput(l->file);
err_put:
	kref_put(&l->life, lent_free);
	return ERR_PTR(ret);
}

/* ---- maps ---- */

static vm_fault_t lent_insert(struct sci_lent *l, struct vm_fault *vmf)
{
	if (vmf->pgoff >= l->pages.count)
		return VM_FAULT_SIGBUS;
	if (l->revoked)
		return vmf_insert_pfn_prot(vmf->vma, vmf->address & PAGE_MASK,
					   page_to_pfn(l->private_page),
					   vm_get_page_prot(vmf->vma->vm_flags));
	return vmf_insert_pfn(vmf->vma, vmf->address & PAGE_MASK,
			      page_to_pfn(l->pages.page[vmf->pgoff]));
}

static vm_fault_t lent_vm_fault(struct vm_fault *vmf)
{
	struct sci_lent *l = vmf->vma->vm_file->private_data;
	vm_fault_t ret;

	down_read(&l->revoke);
	ret = lent_insert(l, vmf);
	up_read(&l->revoke);
	return ret;
}

/* Copy up to the end of a page for ptrace(2) and /proc/PID/mem. */
static int lent_vm_access(struct vm_area_struct *vma, unsigned long addr,
			  void *buf, int len, int write)
{
	struct sci_lent *l = vma->vm_file->private_data;
	pgoff_t at = linear_page_index(vma, addr);
	struct page *page;
	void *kaddr;

	if (at >= l->pages.count || (write && !(vma->vm_flags & VM_WRITE)))
		return -EIO;
	len = min_t(int, len, PAGE_SIZE - offset_in_page(addr));
	down_read(&l->revoke);
	page = l->revoked ? l->private_page : l->pages.page[at];
	kaddr = kmap_local_page(page) + offset_in_page(addr);
	if (write)
		memcpy(kaddr, buf, len);
	else
		memcpy(buf, kaddr, len);
	kunmap_local(kaddr);
	up_read(&l->revoke);
	return len;
}

static const struct vm_operations_struct lent_vm_ops = {
	.fault = lent_vm_fault,
	.access = lent_vm_access,
	.mprotect = sci_vma_mprotect,
};

void sci_lent_mmap(struct sci_pages *p, struct vm_area_struct *vma)
{
	vma_set_file(vma, lent_of(p)->file);
	vm_flags_set(vma, VM_PFNMAP | VM_IO | VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_ops = &lent_vm_ops;
}

int sci_lent_cache(struct sci_adapter *a, struct vm_area_struct *vma,
		   unsigned long addr, unsigned int length, bool drop)
{
	pgoff_t at = linear_page_index(vma, addr);
	struct sci_lent *l;

	if (vma->vm_ops != &lent_vm_ops)
		return -EFAULT;
	l = vma->vm_file->private_data;
	if (l->adapter != a)
		return -EFAULT;
	down_read(&l->revoke);
	if (!l->revoked && at < l->pages.count)
		a->desc.ops->cache(a, page_to_pfn(l->pages.page[at]),
				   offset_in_page(addr), length, drop);
	up_read(&l->revoke);
	return 0;
}

/* ---- removal of the adapter ---- */

static struct sci_lent *lent_first(struct sci_adapter *a)
{
	struct sci_lent *l;

	mutex_lock(&a->lent_lock);
	l = list_first_entry_or_null(&a->lent, struct sci_lent, link);
	if (l)
		kref_get(&l->life);
	mutex_unlock(&a->lent_lock);
	return l;
}

void sci_lent_revoke(struct sci_adapter *a)
{
	struct sci_lent *l;

	while ((l = lent_first(a))) {
		lent_give_back(l);
		kref_put(&l->life, lent_free);
	}
}
