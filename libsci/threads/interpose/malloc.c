// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * malloc() and its relatives. Memory of libsci, and memory that the dynamic linker allocates
 * before libc is ready, comes from libc's heap, which belongs to one process.
 */

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/threads/threads.h"

/* Call the heap of libc, which exports these functions. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *p);

/*
 * Return true if the calling thread may use the global heap. While the heap grows, libsci runs in
 * the calling thread and waits for its own threads: neither may allocate from the heap. While
 * libsci is loaded, no memory may be global: the dynamic linker's data about libsci is private.
 * Between machines a thread of this library must not touch global memory, see hosts.h.
 */
static bool thread_may_allocate(void)
{
	const struct thread *t = self_thread;

	return t ? !t->grows : !home_loads && !hosts_alone && !world->heap.grow;
}

/* True if the caller of the function that uses this macro gets memory of the global heap. */
#define FOR_PROGRAM()	(world_active() && thread_may_allocate() &&			\
			 !memory_is_libsci(__builtin_return_address(0)))

static void *global_alloc(size_t size, size_t align, bool zero)
{
	struct thread *t = self_thread;
	void *p = t ? heap_cache_alloc(&world->heap, &t->cache, size, align, zero) :
		      heap_alloc(&world->heap, 0, size, align, zero);

	if (!p)
		errno = ENOMEM;
	return p;
}

static bool global_free(void *p)
{
	struct thread *t = self_thread;

	if (!t)
		return frees_nothing || heap_free(&world->heap, p);
	return heap_cache_free(&world->heap, &t->cache, p);
}

EXPORT void *malloc(size_t size)
{
	return FOR_PROGRAM() ? global_alloc(size, 16, false) : __libc_malloc(size);
}

EXPORT void *calloc(size_t n, size_t size)
{
	size_t all;

	if (!FOR_PROGRAM())
		return __libc_calloc(n, size);
	if (__builtin_mul_overflow(n, size, &all)) {
		errno = ENOMEM;
		return NULL;
	}
	return global_alloc(all, 16, true);
}

EXPORT void free(void *p)
{
	static const char text[] = "sci: free(): invalid pointer\n";

	if (!is_global(p)) {
		__libc_free(p);
		return;
	}
	if (heap_has(&world->heap, p) && global_free(p))
		return;
	if (write(2, text, sizeof(text) - 1))
		abort();
	abort();
}

static void *global_realloc(void *p, size_t size)
{
	size_t have = heap_size(&world->heap, p);
	void *new;

	if ((size <= have && size >= have / 2) || heap_resize(&world->heap, p, size))
		return p;
	new = global_alloc(size, 16, false);
	if (!new)
		return NULL;
	memcpy(new, p, size < have ? size : have);
	global_free(p);
	return new;
}

EXPORT void *realloc(void *p, size_t size)
{
	if (p && !is_global(p))
		return __libc_realloc(p, size);
	if (!p)
		return FOR_PROGRAM() ? global_alloc(size, 16, false) : __libc_malloc(size);
	if (!size) {
		free(p);
		return NULL;
	}
	return global_realloc(p, size);
}

EXPORT void *memalign(size_t align, size_t size)
{
	if (align & (align - 1) || align > (size_t)1 << 40) {
		errno = EINVAL;
		return NULL;
	}
	return FOR_PROGRAM() ? global_alloc(size, align, false) : __libc_memalign(align, size);
}

EXPORT void *aligned_alloc(size_t align, size_t size)
{
	if (!align || align & (align - 1)) {
		errno = EINVAL;
		return NULL;
	}
	return FOR_PROGRAM() ? global_alloc(size, align, false) : __libc_memalign(align, size);
}

EXPORT int posix_memalign(void **out, size_t align, size_t size)
{
	int err = errno;
	void *p;

	if (!align || align % sizeof(void *) || align & (align - 1))
		return EINVAL;
	p = FOR_PROGRAM() ? global_alloc(size, align, false) : __libc_memalign(align, size);
	errno = err;
	if (!p)
		return ENOMEM;
	*out = p;
	return 0;
}

EXPORT void *valloc(size_t size)
{
	return FOR_PROGRAM() ? global_alloc(size, 4096, false) : __libc_memalign(4096, size);
}

EXPORT void *pvalloc(size_t size)
{
	size = (size + 4095) & ~(size_t)4095;
	return FOR_PROGRAM() ? global_alloc(size, 4096, false) : __libc_memalign(4096, size);
}

EXPORT size_t malloc_usable_size(void *p)
{
	/* a block outside of the global range is libc's own, and its header has the size */
	if (p && !is_global(p))
		return REAL(malloc_usable_size)(p);
	return p ? heap_size(&world->heap, p) : 0;
}
