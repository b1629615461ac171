/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the allocator of symmetric memory
 *
 * The allocator is first fit over a list of blocks in ascending order. The result depends only on
 * the calls before: the same calls in the same order give the same offsets in all processes. The
 * list is outside of the symmetric memory, so a program that writes beyond its block does not
 * damage the list.
 */
#ifndef LIBSCI_TEAM_HEAP_H
#define LIBSCI_TEAM_HEAP_H

#include <stddef.h>
#include <stdint.h>

#include "libsci/base/list.h"

struct team_heap {
	struct list blocks;		/* blocks in use, ascending */
	size_t len;
	size_t phase;			/* distance of offset 0 from an aligned address */
};

void heap_init(struct team_heap *h, size_t len);

/*
 * Allocate @len bytes. @align: a power of two; the sum of the offset and the heap's phase is a
 * multiple of it. Return 0, -ENOSPC (no room) or -ENOMEM.
 */
int heap_alloc(struct team_heap *h, size_t len, size_t align, size_t *offset);

/* Free a block. Return: 0; -EINVAL: no block begins at @offset. */
int heap_free(struct team_heap *h, size_t offset);

/* Return the length of the block that begins at @offset, or 0. */
size_t heap_size(const struct team_heap *h, size_t offset);

void heap_clear(struct team_heap *h);

#endif
