// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include "libsci/team/heap.h"

#include <errno.h>
#include <stdlib.h>

struct heap_block {
	struct list link;
	size_t offset;
	size_t len;
};

void heap_init(struct team_heap *h, size_t len)
{
	list_init(&h->blocks);
	h->len = len;
	h->phase = 0;
}

static void block_insert(struct heap_block *b, struct list *next)
{
	list_add_tail(&b->link, next);
}

int heap_alloc(struct team_heap *h, size_t len, size_t align, size_t *offset)
{
	struct heap_block *b;
	struct list *pos;
	size_t from = 0, at = 0;

	if (len > h->len)
		return -ENOSPC;
	for (pos = h->blocks.next; ; pos = pos->next) {
		size_t to = h->len;

		b = container_of(pos, struct heap_block, link);
		if (pos != &h->blocks)
			to = b->offset;
		at = ((from + h->phase + align - 1) & ~(align - 1)) - h->phase;
		if (at >= from && at <= to && len <= to - at)
			break;
		if (pos == &h->blocks)
			return -ENOSPC;
		from = b->offset + b->len;
	}
	b = malloc(sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->offset = at;
	b->len = len;
	block_insert(b, pos);
	*offset = at;
	return 0;
}

static struct heap_block *heap_block_find(const struct team_heap *h, size_t offset)
{
	for (struct list *pos = h->blocks.next; pos != &h->blocks; pos = pos->next) {
		struct heap_block *b = container_of(pos, struct heap_block, link);

		if (b->offset == offset)
			return b;
	}
	return NULL;
}

int heap_free(struct team_heap *h, size_t offset)
{
	struct heap_block *b = heap_block_find(h, offset);

	if (!b)
		return -EINVAL;
	list_del(&b->link);
	free(b);
	return 0;
}

size_t heap_size(const struct team_heap *h, size_t offset)
{
	const struct heap_block *b = heap_block_find(h, offset);

	return b ? b->len : 0;
}

void heap_clear(struct team_heap *h)
{
	struct list *l;

	while ((l = list_pop(&h->blocks)))
		free(container_of(l, struct heap_block, link));
}
