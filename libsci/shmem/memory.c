// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The symmetric heap: the heap of the team, with the calls and rules of OpenSHMEM. */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/shmem/internal.h"

/* An allocation. The list of allocations is sorted by address, for checks of accesses. */
struct block {
	char *addr;
	size_t len;
};

static struct {
	struct block *blocks;
	size_t n;
	size_t room;
} heap;

/* This lock protects @heap: all threads check their accesses, while one allocates or frees. */
static pthread_mutex_t heap_lock = PTHREAD_MUTEX_INITIALIZER;

/* Return the index of the first block behind @addr. Context: heap_lock is held. */
static size_t block_after(const void *addr)
{
	size_t low = 0, high = heap.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if ((uintptr_t)heap.blocks[mid].addr <= (uintptr_t)addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Return the block that begins at @addr, or NULL. Context: heap_lock is held. */
static struct block *block_find(const void *addr)
{
	size_t i = block_after(addr);

	return i && heap.blocks[i - 1].addr == addr ? &heap.blocks[i - 1] : NULL;
}

static void block_add(const char *call, void *addr, size_t len)
{
	size_t i;

	pthread_mutex_lock(&heap_lock);
	i = block_after(addr);
	if (heap.n == heap.room) {
		size_t room = heap.room ? 2 * heap.room : 64;
		struct block *more = realloc(heap.blocks, room * sizeof(*more));

		if (!more)
			shmem_die(call, "out of memory");
		heap.blocks = more;
		heap.room = room;
	}
	memmove(&heap.blocks[i + 1], &heap.blocks[i], (heap.n - i) * sizeof(*heap.blocks));
	heap.blocks[i] = (struct block){ addr, len };
	heap.n++;
	pthread_mutex_unlock(&heap_lock);
}

/* Remove the block at @addr from the list. If there is none, end all PEs. */
static void block_remove(const char *call, const void *addr)
{
	struct block *b;

	pthread_mutex_lock(&heap_lock);
	b = block_find(addr);
	if (b)
		memmove(b, b + 1, (size_t)(heap.blocks + --heap.n - b) * sizeof(*b));
	pthread_mutex_unlock(&heap_lock);
	if (!b)
		shmem_die(call, "%p is not from shmem_malloc(), or has been freed", addr);
}

/* Return the length of the block at @addr. If there is none, end all PEs. */
static size_t block_len(const char *call, const void *addr)
{
	size_t len = 0;
	struct block *b;

	pthread_mutex_lock(&heap_lock);
	b = block_find(addr);
	if (b)
		len = b->len;
	pthread_mutex_unlock(&heap_lock);
	if (!b)
		shmem_die(call, "%p is not from shmem_malloc(), or has been freed", addr);
	return len;
}

/* Return the number of bytes from @addr to the end of its block, or 0 if @addr is in no block. */
size_t memory_left(const void *addr)
{
	size_t i, at, left = 0;

	pthread_mutex_lock(&heap_lock);
	i = block_after(addr);
	if (i) {
		const struct block *b = &heap.blocks[i - 1];

		at = (size_t)((const char *)addr - b->addr);
		left = at < b->len ? b->len - at : 0;
	}
	pthread_mutex_unlock(&heap_lock);
	return left;
}

void memory_exit(void)
{
	free(heap.blocks);
	memset(&heap, 0, sizeof(heap));
}

/*
 * Allocate symmetric memory. This is a collective call: the team compares the arguments, and no PE
 * returns before all PEs have made the call. Return NULL on all PEs if there is no memory.
 */
static void *memory_alloc(const char *call, size_t align, size_t size)
{
	void *addr;
	int err;

	shmem_running(call);
	if (!size)
		return NULL;
	shmem_ok(call, sci_team_quiet(shmem.team));
	err = sci_team_alloc(shmem.team, size, align, &addr);
	if (err == -ENOMEM || err == -ENOSPC)
		return NULL;
	if (err == -EINVAL)
		shmem_die(call, "the PEs ask for different sizes, this one for %zu bytes",
			  size);
	shmem_ok(call, err);
	block_add(call, addr, size);
	return addr;
}

EXPORT void *shmem_malloc(size_t size)
{
	return memory_alloc(__func__, 0, size);
}

EXPORT void *shmem_calloc(size_t count, size_t size)
{
	size_t len;
	void *p;

	if (__builtin_mul_overflow(count, size, &len))
		return NULL;
	p = memory_alloc(__func__, 0, len);
	if (!p)
		return NULL;
	memset(p, 0, len);
	/* the zeroes must be stored before another PE's put arrives */
	shmem_barrier_all();
	return p;
}

EXPORT void *shmem_align(size_t alignment, size_t size)
{
	if (!alignment || alignment & (alignment - 1) || alignment > SCI_TEAM_ALIGN_MAX)
		return NULL;
	return memory_alloc(__func__, alignment < 64 ? 64 : alignment, size);
}

/* Ignore the hints: atomics and signals are fast on all symmetric memory. */
EXPORT void *shmem_malloc_with_hints(size_t size, long hints)
{
	if (hints & ~(SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE))
		return NULL;
	return memory_alloc(__func__, 0, size);
}

static void memory_free(const char *call, void *ptr)
{
	shmem_running(call);
	block_remove(call, ptr);
	shmem_ok(call, sci_team_quiet(shmem.team));
	shmem_ok(call, sci_team_free(shmem.team, ptr));
}

EXPORT void shmem_free(void *ptr)
{
	if (ptr)
		memory_free(__func__, ptr);
}

EXPORT void *shmem_realloc(void *ptr, size_t size)
{
	size_t len;
	void *new;

	if (!ptr)
		return memory_alloc(__func__, 0, size);
	if (!size) {
		memory_free(__func__, ptr);
		return NULL;
	}
	len = block_len(__func__, ptr);
	new = memory_alloc(__func__, 0, size);
	if (!new)
		return NULL;
	memcpy(new, ptr, len < size ? len : size);
	/* memory_free() waits until all PEs have copied */
	memory_free(__func__, ptr);
	return new;
}

EXPORT void *shmalloc(size_t size)
{
	return shmem_malloc(size);
}

EXPORT void *shmemalign(size_t alignment, size_t size)
{
	return shmem_align(alignment, size);
}

EXPORT void *shrealloc(void *ptr, size_t size)
{
	return shmem_realloc(ptr, size);
}

EXPORT void shfree(void *ptr)
{
	shmem_free(ptr);
}
