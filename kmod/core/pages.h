/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Memory of a segment: pages of the kernel, of a process, of a dma-buf or of an adapter. */
#ifndef SCI_PAGES_H
#define SCI_PAGES_H

#include <linux/kref.h>
#include <linux/mm_types.h>
#include <linux/types.h>

struct user_struct;
struct vm_area_struct;

/**
 * struct sci_pages - memory of a segment
 * @ref: references
 * @count: number of pages
 * @page: the pages; constant while there is a reference
 * @pinned: the pages belong to a process or to a dma-buf: maps insert page frames
 * @user: the user who is charged; NULL: none, because of CAP_IPC_LOCK
 * @mm: the process whose status shows the pages
 * @release: frees the pages and this structure; NULL: pages.c does
 */
struct sci_pages {
	struct kref ref;
	unsigned long count;
	struct page **page;
	bool pinned;
	struct user_struct *user;
	struct mm_struct *mm;
	void (*release)(struct sci_pages *p);
};

/**
 * sci_pages_alloc() - allocate zeroed memory, and charge it to the caller's user
 * @length: bytes, > 0
 * @numa_node: the NUMA node, or NUMA_NO_NODE
 * @stop: ends the allocation when it becomes true
 *
 * Return: the memory, or an ERR_PTR: -ENOMEM, also for RLIMIT_MEMLOCK and @stop.
 */
struct sci_pages *sci_pages_alloc(u64 length, int numa_node, const bool *stop);

/**
 * sci_pages_pin() - pin memory of the caller, and charge it to the caller's user
 * @addr: page aligned
 * @length: bytes, whole pages
 *
 * Context: takes mmap_lock.
 * Return: the memory, or an ERR_PTR: -EFAULT: not writable, or a page of a file that is not
 * in tmpfs or hugetlbfs; -ENOMEM.
 */
struct sci_pages *sci_pages_pin(unsigned long addr, u64 length);

/*
 * Initialize @p, which is zeroed, for memory of another source, and charge @count pages to the
 * caller's user. The caller fills in .page[] and .release. Return: 0 or -ENOMEM.
 */
int sci_pages_begin(struct sci_pages *p, unsigned long count);
void sci_pages_end(struct sci_pages *p);

/**
 * sci_pages_mmap() - map the machine's memory, not an adapter's
 * @p: the memory; the file of @vma holds a reference
 * @vma: a shared map
 *
 * Return: 0; -EINVAL: @vma is not within @p; or another error.
 */
int sci_pages_mmap(struct sci_pages *p, struct vm_area_struct *vma);

/* Return whether the area of a map is within @p. */
bool sci_pages_cover(const struct sci_pages *p, struct vm_area_struct *vma);

void sci_pages_release(struct kref *ref);

static inline struct sci_pages *sci_pages_get(struct sci_pages *p)
{
	kref_get(&p->ref);
	return p;
}

/* Drop a reference. Context: may sleep. */
static inline void sci_pages_put(struct sci_pages *p)
{
	kref_put(&p->ref, sci_pages_release);
}

#endif
