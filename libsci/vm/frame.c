// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Frames: memory for pages whose home is this member, in chunks that peers can map. The
 * allocator takes the first free piece that is large enough for a frame or a run of frames.
 */
#include "libsci/vm/internal.h"

#include <stdlib.h>

#define CHUNK_MIN	(1ull << 20)
#define CHUNK_MAX	(64ull << 20)

struct extent {
	size_t at;
	size_t len;
};

struct chunk {
	struct list link;
	uint8_t *base;
	size_t len;
	struct sci_key key;
	size_t used_to;			/* memory beyond this has never been used: zeroes */
	size_t room;			/* free bytes */
	struct extent *free;		/* sorted by offset; room for all possible pieces */
	size_t n;
};

/* Set up a chunk. It has at most one free piece for two pages, plus one while pieces are joined. */
static int chunk_init(struct chunk *c, void *base, size_t len)
{
	c->base = base;
	c->len = len;
	c->room = len;
	c->free = malloc((len / VM_PAGE_MIN / 2 + 2) * sizeof(*c->free));
	if (!c->free)
		return -ENOMEM;
	c->free[0] = (struct extent){ 0, len };
	c->n = 1;
	return 0;
}

/* Allocate a chunk of a quarter of @bytes, the size of all others, so that there are few chunks. */
static struct chunk *chunk_new(struct sci_vm *vm, size_t len, uint64_t bytes)
{
	uint64_t want = bytes / 4;
	struct chunk *c = calloc(1, sizeof(*c));
	void *base;
	int ret;

	if (!c)
		return NULL;
	want = want < CHUNK_MIN ? CHUNK_MIN : want > CHUNK_MAX ? CHUNK_MAX :
	       want & ~(VM_ALIGN - 1);
	want = want < len ? len : want;
	ret = sci_buf_alloc(vm->ep, want, &base);
	if (ret && want > len) {
		want = len;
		ret = sci_buf_alloc(vm->ep, want, &base);
	}
	if (ret)
		goto err_free;
	if (chunk_init(c, base, want) || sci_buf_key(vm->ep, base, want, &c->key))
		goto err_buf;
	return c;

err_buf:
	free(c->free);
	sci_buf_free(vm->ep, base);
err_free:
	free(c);
	return NULL;
}

static void *chunk_take(struct chunk *c, size_t len)
{
	for (size_t i = 0; c->room >= len && i < c->n; i++) {
		struct extent *e = &c->free[i];
		size_t at = e->at;

		if (e->len < len)
			continue;
		e->at += len;
		e->len -= len;
		if (!e->len)
			memmove(e, e + 1, (--c->n - i) * sizeof(*e));
		c->room -= len;
		if (at < c->used_to)
			memset(c->base + at, 0, len < c->used_to - at ? len : c->used_to - at);
		if (at + len > c->used_to)
			c->used_to = at + len;
		return c->base + at;
	}
	return NULL;
}

static void chunk_give(struct chunk *c, size_t at, size_t len)
{
	size_t i = 0;

	while (i < c->n && c->free[i].at < at)
		i++;
	c->room += len;
	if (i && c->free[i - 1].at + c->free[i - 1].len == at) {
		c->free[--i].len += len;
	} else {
		memmove(&c->free[i + 1], &c->free[i], (c->n++ - i) * sizeof(*c->free));
		c->free[i] = (struct extent){ at, len };
	}
	if (i + 1 < c->n && c->free[i].at + c->free[i].len == c->free[i + 1].at) {
		c->free[i].len += c->free[i + 1].len;
		memmove(&c->free[i + 1], &c->free[i + 2], (--c->n - i - 1) * sizeof(*c->free));
	}
}

static void *frames_take(struct sci_vm *vm, size_t len)
{
	struct list *pos, *n;
	void *frame;

	list_for_each_safe(pos, n, &vm->chunks) {
		frame = chunk_take(container_of(pos, struct chunk, link), len);
		if (frame)
			return frame;
	}
	return NULL;
}

/**
 * vm_frames_alloc() - allocate @len bytes of frames, zeroed
 *
 * Context: no lock of the memory is held. Return: 0 or -ENOMEM.
 */
int vm_frames_alloc(struct sci_vm *vm, size_t len, void **frame)
{
	struct chunk *c = NULL;
	uint64_t bytes;

	pthread_mutex_lock(&vm->serve_lock);
	*frame = frames_take(vm, len);
	bytes = vm->chunk_bytes;
	pthread_mutex_unlock(&vm->serve_lock);
	if (*frame)
		return 0;
	c = chunk_new(vm, len, bytes);
	if (!c)
		return -ENOMEM;
	pthread_mutex_lock(&vm->serve_lock);
	list_add_tail(&c->link, &vm->chunks);
	vm->chunk_bytes += c->len;
	*frame = chunk_take(c, len);
	pthread_mutex_unlock(&vm->serve_lock);
	return 0;
}

static struct chunk *chunk_of(struct sci_vm *vm, const void *frame)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &vm->chunks) {
		struct chunk *c = container_of(pos, struct chunk, link);

		if ((size_t)((const uint8_t *)frame - c->base) < c->len)
			return c;
	}
	return NULL;
}

void vm_frames_free(struct sci_vm *vm, void *frame, size_t len)
{
	struct chunk *c = chunk_of(vm, frame);

	if (c)
		chunk_give(c, (size_t)((uint8_t *)frame - c->base), len);
}

/*
 * Get the key of the chunk that contains @frame, and the offset of @frame in the chunk. Return
 * false if there is no such chunk. Context: vm->serve_lock is held.
 */
bool vm_frame_key(struct sci_vm *vm, const void *frame, struct sci_key *chunk,
		  uint64_t *offset)
{
	struct chunk *c = chunk_of(vm, frame);

	if (!c)
		return false;
	*chunk = c->key;
	*offset = (uint64_t)((const uint8_t *)frame - c->base);
	return true;
}

/* Free the records of all chunks. sci_ep_close() frees their buffers. */
void vm_chunks_free(struct sci_vm *vm)
{
	struct list *l;

	while ((l = list_pop(&vm->chunks))) {
		struct chunk *c = container_of(l, struct chunk, link);

		free(c->free);
		free(c);
	}
}
