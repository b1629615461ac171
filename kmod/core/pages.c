// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Memory of segments: see pages.h. */

#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/slab.h>

#include "compat.h"
#include "pages.h"

/* The largest order of pages taken at once: 2 MiB on x86. */
#define ORDER_MAX	min_t(unsigned int, 9, MAX_PAGE_ORDER)

/* Charge the caller's user, whose processes share one limit. */
static int pages_user_charge(struct user_struct *user, unsigned long count)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	long locked = atomic_long_read(&user->locked_vm);

	/* a charge that is refused must not show: it would make those of other processes fail */
	do {
		if (count > limit || locked > (long)(limit - count))
			return -ENOMEM;
	} while (!atomic_long_try_cmpxchg(&user->locked_vm, &locked, locked + count));
	return 0;
}

/*
 * Charge pages to RLIMIT_MEMLOCK, like other memory that cannot be swapped out.  The user is
 * charged, and not the process: a process that passes its descriptor to another
 * one and exits would take its charge along. CAP_IPC_LOCK has no limit. The status of the
 * process only shows the pages (VmPin).
 */
static int pages_charge(struct sci_pages *p)
{
	struct mm_struct *mm = current->mm;
	int ret;

	if (!capable(CAP_IPC_LOCK)) {
		ret = pages_user_charge(current_user(), p->count);
		if (ret)
			return ret;
		p->user = get_uid(current_user());
	}
	atomic64_add(p->count, &mm->pinned_vm);
	mmgrab(mm);
	p->mm = mm;
	return 0;
}

static void pages_uncharge(struct sci_pages *p)
{
	if (p->user) {
		atomic_long_sub(p->count, &p->user->locked_vm);
		free_uid(p->user);
	}
	atomic64_sub(p->count, &p->mm->pinned_vm);
	mmdrop(p->mm);
}

int sci_pages_begin(struct sci_pages *p, unsigned long count)
{
	int ret;

	kref_init(&p->ref);
	p->count = count;
	ret = pages_charge(p);
	if (ret)
		return ret;
	/* The array may be larger than kvmalloc() allows: a user's mistake is not logged. */
	p->page = kvcalloc(count, sizeof(*p->page),
			   GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (p->page)
		return 0;
	pages_uncharge(p);
	return -ENOMEM;
}

void sci_pages_end(struct sci_pages *p)
{
	pages_uncharge(p);
	kvfree(p->page);
}

static struct sci_pages *pages_new(unsigned long count)
{
	struct sci_pages *p = kzalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!p)
		return ERR_PTR(-ENOMEM);
	ret = sci_pages_begin(p, count);
	if (!ret)
		return p;
	kfree(p);
	return ERR_PTR(ret);
}

static void pages_free(struct sci_pages *p)
{
	sci_pages_end(p);
	kfree(p);
}

/* Allocate up to @want consecutive pages. Return the number of pages. */
static unsigned long pages_take_chunk(struct page **page, unsigned long want,
				      int numa_node)
{
	unsigned int order = min_t(unsigned int, ilog2(want), ORDER_MAX);
	struct page *first;
	unsigned long i;
	gfp_t gfp;

	do {
		gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;
		if (order)
			gfp |= __GFP_NORETRY;
		first = alloc_pages_node(numa_node, gfp, order);
	} while (!first && order--);
	if (!first)
		return 0;
	if (order)
		split_page(first, order);
	for (i = 0; i < 1ul << order; i++)
		page[i] = first + i;
	return 1ul << order;
}

struct sci_pages *sci_pages_alloc(u64 length, int numa_node, const bool *stop)
{
	unsigned long count = DIV_ROUND_UP_ULL(length, PAGE_SIZE), got, n;
	struct sci_pages *p = pages_new(count);

	if (IS_ERR(p))
		return p;
	for (got = 0; got < count; got += n) {
		n = fatal_signal_pending(current) || READ_ONCE(*stop) ?
			    0 :
			    pages_take_chunk(p->page + got, count - got,
					     numa_node);
		if (!n)
			goto err_pages;
		cond_resched();
	}
	return p;

err_pages:
	while (got) {
		__free_page(p->page[--got]);
		cond_resched();
	}
	pages_free(p);
	return ERR_PTR(-ENOMEM);
}

/*
 * Return whether remote nodes may write to a page: it is private, or of tmpfs or hugetlbfs. Other
 * file systems must be told of each write.
 */
static bool page_is_memory(struct page *page)
{
	struct folio *folio = page_folio(page);

	return folio_test_anon(folio) || folio_test_swapbacked(folio) ||
	       folio_test_hugetlb(folio);
}

static bool pages_all_memory(struct sci_pages *p)
{
	unsigned long i;

	for (i = 0; i < p->count; i++) {
		if (!page_is_memory(p->page[i]))
			return false;
		cond_resched();
	}
	return true;
}

struct sci_pages *sci_pages_pin(unsigned long addr, u64 length)
{
	struct sci_pages *p = pages_new(length >> PAGE_SHIFT);
	unsigned long got = 0;
	int n, ret;

	if (IS_ERR(p))
		return p;
	while (got < p->count) {
		n = pin_user_pages_fast(addr + (got << PAGE_SHIFT),
					min_t(unsigned long, p->count - got,
					      INT_MAX),
					FOLL_WRITE | FOLL_LONGTERM,
					p->page + got);
		if (n <= 0) {
			ret = n ? n : -EFAULT;
			goto err_unpin;
		}
		got += n;
	}
	p->pinned = true;
	ret = -EFAULT;
	if (pages_all_memory(p))
		return p;

err_unpin:
	unpin_user_pages(p->page, got);
	pages_free(p);
	return ERR_PTR(ret);
}

/* ---- maps ---- */

/*
 * Insert a page again: mmap() inserted all pages of the kernel's memory, but madvise() may have
 * removed some.
 */
static vm_fault_t pages_vm_fault(struct vm_fault *vmf)
{
	struct sci_pages *p = vmf->vma->vm_private_data;

	if (vmf->pgoff >= p->count)
		return VM_FAULT_SIGBUS;
	if (p->pinned)
		return vmf_insert_pfn(vmf->vma, vmf->address & PAGE_MASK,
				      page_to_pfn(p->page[vmf->pgoff]));
	vmf->page = p->page[vmf->pgoff];
	get_page(vmf->page);
	return 0;
}

static const struct vm_operations_struct pages_vm_ops = {
	.fault = pages_vm_fault,
};

bool sci_pages_cover(const struct sci_pages *p, struct vm_area_struct *vma)
{
	return vma->vm_pgoff < p->count &&
	       vma_pages(vma) <= p->count - vma->vm_pgoff;
}

int sci_pages_mmap(struct sci_pages *p, struct vm_area_struct *vma)
{
	unsigned long n = vma_pages(vma);

	if (!sci_pages_cover(p, vma))
		return -EINVAL;
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_private_data = p;
	vma->vm_ops = &pages_vm_ops;
	if (!p->pinned)
		return vm_insert_pages(vma, vma->vm_start,
				       p->page + vma->vm_pgoff, &n);
	vm_flags_set(vma, VM_PFNMAP);
	return 0;
}

/* ---- release ---- */

void sci_pages_release(struct kref *ref)
{
	struct sci_pages *p = container_of(ref, struct sci_pages, ref);
	unsigned long i;

	if (p->release) {
		p->release(p);
		return;
	}
	if (p->pinned)
		unpin_user_pages_dirty_lock(p->page, p->count, true);
	else
		for (i = 0; i < p->count; i++) {
			__free_page(p->page[i]);
			cond_resched();
		}
	pages_free(p);
}
EXPORT_SYMBOL_GPL(sci_pages_release);
