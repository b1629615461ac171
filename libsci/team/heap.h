/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the allocator of symmetric memory
 *
 * First fit over a list of blocks in ascending order.  The same calls in the same
 * order give the same offsets in all processes: it depends on nothing else.  The list
 * of blocks lies outside of the memory, so that a program that writes beyond its
 * block does not damage it.
 */
#ifndef LIBSCI_TEAM_HEAP_H
#define LIBSCI_TEAM_HEAP_H

#include <stddef.h>
#include <stdint.h>

#include "libsci/base/list.h"

struct team_heap {
	struct list blocks;		/* in use, ascending */
	size_t len;
};

void heap_init(struct team_heap *h, size_t len);

/* -ENOSPC: no room; -ENOMEM. @align is a power of two. */
int heap_alloc(struct team_heap *h, size_t len, size_t align, size_t *offset);

/* -EINVAL: nothing begins there. */
int heap_free(struct team_heap *h, size_t offset);

/* Bytes of the block that begins at @offset; 0: none does. */
size_t heap_size(const struct team_heap *h, size_t offset);

/* Forgets all blocks. */
void heap_clear(struct team_heap *h);

#endif
