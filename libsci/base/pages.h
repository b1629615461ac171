/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * These functions put other pages under memory of the program, which keeps its addresses and
 * contents. Other threads see one step, but stores between the copy of the contents and that step
 * are lost. The copy does without the address sanitizer, which poisons the gaps between static
 * variables.
 */
#ifndef LIBSCI_PAGES_H
#define LIBSCI_PAGES_H

#include <stddef.h>

/*
 * Replace private anonymous memory, whole pages, by the start of the file @fd. @inode: is set to
 * the inode in /proc/self/maps, before the memory changes. Return: 0; -EFAULT: the memory is of
 * another kind; -errno: the file cannot be mapped, or /proc cannot be read.
 */
int sci_pages_adopt(int fd, void *addr, size_t len, unsigned long *inode);

/*
 * Make memory private again that sci_pages_adopt() replaced, but not pages that the program has
 * unmapped or replaced since. Without memory for a private copy the pages stay shared: with
 * processes that still map them, and with children that are forked later.
 */
void sci_pages_return(void *addr, size_t len, unsigned long inode);

/* Replace private memory, whole pages, by anonymous memory. Return: 0 or -ENOMEM. */
int sci_pages_make_anonymous(void *addr, size_t len);

#endif
