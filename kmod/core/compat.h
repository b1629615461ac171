/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * The sources are written for the newest kernel. This header defines the features of newer
 * kernels that older ones, back to 6.1, lack. It tests for each feature and compares no
 * versions, because stable and distribution kernels have features of newer ones. Macros are
 * tested here. Kbuild looks for functions and variables in the kernel's headers, and defines
 * SCI_HAS_*.
 */
#ifndef SCI_COMPAT_H
#define SCI_COMPAT_H

#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/workqueue.h>

#ifndef SCI_HAS_VM_FLAGS_SET	/* before 6.3 */
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags &= ~flags;
}

static inline void vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set,
				vm_flags_t clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#endif

#ifndef SCI_HAS_SYSTEM_DFL_WQ	/* before 6.17 */
#define system_dfl_wq	system_unbound_wq
#endif

#ifndef SCI_HAS_DMA_BUF_VMAP_UNLOCKED	/* before 6.2 */
#define dma_buf_vmap_unlocked	dma_buf_vmap
#define dma_buf_vunmap_unlocked	dma_buf_vunmap
#endif

#ifndef SCI_HAS_NTB_GET_DMA_DEV	/* 6.12 lacks it, but later 6.1 have it */
#define ntb_get_dma_dev(ntb)	((ntb)->dev.parent)
#endif

#ifndef PCI_IRQ_INTX		/* before 6.8 */
#define PCI_IRQ_INTX	PCI_IRQ_LEGACY
#endif

/* The largest order of pages.  Before 6.4 MAX_ORDER was one more. */
#ifndef MAX_PAGE_ORDER		/* before 6.8 */
#define MAX_PAGE_ORDER	ilog2(MAX_ORDER_NR_PAGES)
#endif

#ifndef __counted_by		/* before 6.6 */
#define __counted_by(member)
#endif

#endif
