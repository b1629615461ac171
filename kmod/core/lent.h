/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * An adapter with memory of its own lends it to segments.
 *
 * Maps insert this memory as page frames, without references to pages. So the adapter can take
 * the memory back from all maps, which then show a private page.
 */
#ifndef SCI_LENT_H
#define SCI_LENT_H

#include <linux/types.h>

struct sci_adapter;
struct sci_pages;
struct vm_area_struct;

/*
 * Allocate zeroed memory for a segment, and charge it as sci_pages_alloc() does.
 *
 * Return: the memory, or an ERR_PTR: -ENOMEM.
 */
struct sci_pages *sci_lent_alloc(struct sci_adapter *a, u64 length);

/* Map lent memory into @vma, which is within @p. */
void sci_lent_mmap(struct sci_pages *p, struct vm_area_struct *vma);

/*
 * Flush the lines of @length bytes at @addr, within a page, if @vma is a map of memory that @a has
 * lent. Return: 0, also if the memory is revoked; -EFAULT: it is another map.
 */
int sci_lent_cache(struct sci_adapter *a, struct vm_area_struct *vma,
		   unsigned long addr, unsigned int length, bool drop);

/* Take back all memory that the adapter has lent. Then no operation for it is called any more. */
void sci_lent_revoke(struct sci_adapter *a);

#endif
