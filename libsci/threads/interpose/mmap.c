// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Memory that the program maps. A private mapping is a block of the global heap. A shared mapping
 * of a file replaces such a block, at the same address on all nodes.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "interpose.h"

#define PAGE	4096u

struct mapping {
	void *addr, *hint;
	size_t len;
	int prot, flags, fd, advice;
	off_t offset;
	int err;
};

/* A length near SIZE_MAX stays as it is: no memory is so large. */
static size_t len_round_up(size_t len)
{
	return len > SIZE_MAX - PAGE ? len : (len + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static void range_map_here(void *arg)
{
	struct mapping *m = arg;

	if (REAL(mmap)(m->addr, m->len, m->prot, m->flags | MAP_FIXED, m->fd, m->offset) ==
	    MAP_FAILED)
		m->err = errno;
}

static void range_protect_here(void *arg)
{
	struct mapping *m = arg;

	if (REAL(mprotect)(m->addr, m->len, m->prot))
		m->err = errno;
}

static int nodes_run_all(void (*fn)(void *arg), struct mapping *m)
{
	node_call_all(fn, m);
	errno = m->err ? m->err : errno;
	return m->err ? -1 : 0;
}

/* Map anonymous memory, before the first thread: a file may be mapped there. */
static int range_renew(const struct mapping *m)
{
	if (REAL(mmap)(m->addr, m->len, m->prot,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		return -1;
	REAL(madvise)(m->addr, m->len, MADV_NOHUGEPAGE);	/* as all global memory */
	return 0;
}

/* Discard memory, which may be protected, then protect it with @m->prot. */
static int range_discard(struct mapping *m)
{
	int prot = m->prot;

	if (!world_spans())
		return range_renew(m);
	m->prot = PROT_READ | PROT_WRITE;
	if (nodes_run_all(range_protect_here, m))
		return -1;
	memory_discard(m->addr, len_round_up(m->len));
	m->prot = prot;
	return prot == (PROT_READ | PROT_WRITE) ? 0 : nodes_run_all(range_protect_here, m);
}

static void *block_get(size_t len)
{
	void *p = heap_alloc(&world->heap, self_node * HEAP_NODE_ARENAS, len > HEAP_SMALL ? len : HEAP_SMALL + 1, PAGE,
			     true);

	if (p)
		heap_map(&world->heap, p, len);
	else
		errno = ENOMEM;
	return p;
}

/* mmap() and madvise() are no cancellation points. Return the old state. */
static int cancel_disable(void)
{
	int state;

	REAL(pthread_setcancelstate)(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

/* Read a part of a file into a zeroed block. Bytes beyond the end of the file stay 0. */
static bool block_read(char *p, size_t len, int fd, off_t offset)
{
	int state = cancel_disable();
	ssize_t n = 1;

	while (len && (n = pread(fd, p, len, offset)) > 0) {
		p += n;
		offset += n;
		len -= (size_t)n;
	}
	REAL(pthread_setcancelstate)(state, NULL);
	return n >= 0;
}

static void *map_private(struct mapping *m)
{
	void *p;

	m->len = len_round_up(m->len);	/* the last page is zero, or of the file, as a whole */
	p = block_get(m->len);
	if (!p)
		return MAP_FAILED;
	m->addr = p;
	if (!(m->flags & MAP_ANONYMOUS) && !block_read(p, m->len, m->fd, m->offset))
		m->err = errno;
	if (!m->err && m->prot != (PROT_READ | PROT_WRITE))
		nodes_run_all(range_protect_here, m);
	if (!m->err)
		return p;
	heap_unmap(&world->heap, p, m->len);
	errno = m->err;
	return MAP_FAILED;
}

/* Make a shared mapping on all nodes. Nodes that start later inherit it. */
static void *mapping_share(struct mapping *m)
{
	void *p;

	if (!world_spans())
		return REAL(mmap)(NULL, m->len, m->prot, m->flags, m->fd, m->offset);
	if (m->flags & MAP_ANONYMOUS) {
		m->flags = MAP_PRIVATE | MAP_ANONYMOUS;
		return map_private(m);
	}
	/* a call that fails must not take a block: it cannot be freed when the file is mapped there */
	p = REAL(mmap)(NULL, m->len, m->prot, m->flags & ~MAP_POPULATE, m->fd, m->offset);
	if (p == MAP_FAILED)
		return p;
	REAL(munmap)(p, m->len);
	p = block_get(m->len);
	if (!p)
		return MAP_FAILED;
	heap_mark(&world->heap, p, m->len);
	m->addr = p;
	return nodes_run_all(range_map_here, m) ? MAP_FAILED : p;
}

/*
 * Map memory between machines: a copy of the file, where another node cannot map the file. Return
 * false if range_map() has to map, else set *@p.
 */
static bool hosts_map(struct mapping *m, void **p)
{
	bool fixed = m->flags & (MAP_FIXED | MAP_FIXED_NOREPLACE);
	bool file = !(m->flags & MAP_ANONYMOUS);

	if (thread_is_alone())
		*p = REAL(mmap)(m->hint, m->len, m->prot, m->flags, m->fd, m->offset);
	else if (!m->len || m->flags & MAP_GROWSDOWN)
		return false;
	else if (!fixed && !(file && (m->flags & MAP_TYPE) != MAP_PRIVATE && m->prot & PROT_WRITE))
		*p = map_private(m);
	else if (!world_spans() || (!file && is_global(m->hint)))
		return false;
	else {
		world_say("mmap(): only copies of files can be mapped on several machines");
		errno = ENODEV;
		*p = MAP_FAILED;
	}
	return true;
}

/* Replace memory by private memory: zeroes, or a copy of a file. */
static void *range_replace(struct mapping *m)
{
	int prot = m->prot;

	m->prot = PROT_READ | PROT_WRITE;
	if (range_discard(m))
		return MAP_FAILED;
	if (!(m->flags & MAP_ANONYMOUS) && !block_read(m->addr, m->len, m->fd, m->offset))
		return MAP_FAILED;
	m->prot = prot;
	if (prot != (PROT_READ | PROT_WRITE) && nodes_run_all(range_protect_here, m))
		return MAP_FAILED;
	return m->addr;
}

static void *range_map_fixed(struct mapping *m)
{
	bool block = is_global(m->addr) && heap_has(&world->heap, m->addr);
	size_t len = len_round_up(m->len);

	if (!is_global(m->addr) ||
	    (!(m->flags & MAP_ANONYMOUS) && (m->flags & MAP_TYPE) != MAP_PRIVATE)) {
		if (nodes_run_all(range_map_here, m))
			return MAP_FAILED;
		/* munmap() must not discard pages of the file */
		if (block)
			heap_mark(&world->heap, m->addr, len);
		return m->addr;
	}
	if (block && (heap_marked(&world->heap, m->addr) ||
		      heap_marked_alike(&world->heap, m->addr, len) < len)) {
		world_say("mmap(): private memory cannot replace a file's memory");
		errno = ENODEV;
		return MAP_FAILED;
	}
	m->len = len;
	return range_replace(m);
}

static void *range_map(void *hint, struct mapping *m)
{
	void *p;

	m->hint = hint;
	if (world_active() && hosts_on && hosts_map(m, &p))
		return p;
	if (!world_active() || !m->len || m->flags & MAP_GROWSDOWN ||
	    (m->flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) && !world_spans()))
		return REAL(mmap)(hint, m->len, m->prot, m->flags, m->fd, m->offset);
	if (m->flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) {
		if (m->flags & MAP_FIXED_NOREPLACE && is_global(hint)) {
			errno = EEXIST;		/* all global memory is mapped */
			return MAP_FAILED;
		}
		m->addr = hint;
		return range_map_fixed(m);
	}
	if ((m->flags & MAP_TYPE) == MAP_PRIVATE &&
	    (m->flags & MAP_ANONYMOUS || m->prot & PROT_WRITE || world_spans()))
		return map_private(m);
	return mapping_share(m);
}

/* Map memory at a fixed address in the heap: unmapped memory becomes a mapping again. */
static void *block_map_fixed(void *hint, struct mapping *m)
{
	size_t len = m->len;
	int freed = heap_map_freed(&world->heap, hint, len);
	void *p;

	if (freed < 0) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	p = range_map(hint, m);
	if (p != MAP_FAILED)
		heap_map_again(&world->heap, p, len);
	else if (freed)
		heap_unmap(&world->heap, hint, len);
	return p;
}

/* Map memory for the program. */
static void *program_map(void *hint, struct mapping *m)
{
	if (m->len && m->flags & MAP_FIXED && world_active() && !thread_is_alone() &&
	    is_global(hint) && heap_has(&world->heap, hint))
		return block_map_fixed(hint, m);
	return range_map(hint, m);
}

EXPORT void *mmap(void *hint, size_t len, int prot, int flags, int fd, off_t offset)
{
	struct mapping m = { .len = len, .prot = prot, .flags = flags, .fd = fd,
			     .offset = offset };

	if (memory_is_libsci(__builtin_return_address(0)))
		return REAL(mmap)(hint, len, prot, flags, fd, offset);
	return program_map(hint, &m);
}

EXPORT void *mmap64(void *hint, size_t len, int prot, int flags, int fd, off_t offset)
{
	struct mapping m = { .len = len, .prot = prot, .flags = flags, .fd = fd,
			     .offset = offset };

	if (memory_is_libsci(__builtin_return_address(0)))
		return REAL(mmap64)(hint, len, prot, flags, fd, offset);
	return program_map(hint, &m);
}

static void range_unmap_here(void *arg)
{
	struct mapping *m = arg;

	if (REAL(munmap)(m->addr, m->len))
		m->err = errno;
}

/* Unmap memory that is all of one kind: of a file, or of none. */
static int part_unmap(void *p, size_t len)
{
	struct mapping m = { .addr = p, .len = len, .prot = PROT_READ | PROT_WRITE };

	if (heap_marked(&world->heap, p))
		return nodes_run_all(range_unmap_here, &m);
	if (range_discard(&m))
		return -1;
	heap_unmap(&world->heap, p, len);
	return 0;
}

/*
 * Unmap memory. The pages are freed at once, and the addresses of a block when all of its pages are
 * unmapped. After the first thread, the addresses of a file's memory are not used again.
 */
EXPORT int munmap(void *p, size_t len)
{
	char *at = p, *end;

	if (!world || !is_global(p) || !heap_has(&world->heap, p))
		return REAL(munmap)(p, len);
	for (end = at + len_round_up(len); at < end;) {
		size_t part = heap_marked_alike(&world->heap, at, (size_t)(end - at));

		if (part_unmap(at, part))
			return -1;
		at += part;
	}
	return 0;
}

EXPORT int mprotect(void *p, size_t len, int prot)
{
	struct mapping m = { .addr = p, .len = len, .prot = prot };

	if (!world_spans() || (hosts_on && !self_thread))
		return REAL(mprotect)(p, len, prot);
	return nodes_run_all(range_protect_here, &m);
}

/*
 * Find the protection of the memory at @m->addr, and how much of @m->len has it. Do not allocate:
 * the caller may be a malloc() of the program.
 */
static void prot_find(struct mapping *m)
{
	int state = cancel_disable();
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	uintptr_t at = (uintptr_t)m->addr, from, to;
	char buf[4096], *line = buf, *next;
	size_t have = 0;
	ssize_t n;

	m->prot = PROT_READ | PROT_WRITE;
	while (fd >= 0 && (n = read(fd, buf + have, sizeof(buf) - 1 - have)) > 0) {
		buf[have + (size_t)n] = '\0';
		for (line = buf; (next = strchr(line, '\n')); line = next + 1) {
			from = strtoul(line, &line, 16);
			to = strtoul(line + 1, &line, 16);
			if (at < from || at >= to)
				continue;
			m->prot = (line[1] == 'r' ? PROT_READ : 0) |
				  (line[2] == 'w' ? PROT_WRITE : 0) |
				  (line[3] == 'x' ? PROT_EXEC : 0);
			m->len = to - at < m->len ? to - at : m->len;
		}
		have = strlen(line);
		memmove(buf, line, have);
	}
	if (fd >= 0)
		close(fd);
	REAL(pthread_setcancelstate)(state, NULL);
}

/* Discard memory of the heap, and keep its protection. */
static int range_not_needed(char *p, size_t len)
{
	if (!hosts_on && !REAL(madvise)(p, len, MADV_REMOVE))
		return 0;
	for (char *at = p; at < p + len;) {
		struct mapping m = { .addr = at, .len = (size_t)(p + len - at) };

		prot_find(&m);
		if (m.prot & PROT_WRITE)
			memory_discard(at, m.len);
		else if (range_discard(&m))
			return -1;
		at += m.len;
	}
	return 0;
}

/* Advise on memory that is all of one kind: of a file, or of none. */
static int part_advise(char *p, size_t len, int advice)
{
	if (heap_has(&world->heap, p) && heap_marked(&world->heap, p))
		return REAL(madvise)(p, len, advice);
	return advice == MADV_DONTNEED ? range_not_needed(p, len) : 0;
}

EXPORT int madvise(void *p, size_t len, int advice)
{
	char *at = p, *end = at + len_round_up(len);
	size_t part;

	if (!world_spans() || !is_global(p))
		return REAL(madvise)(p, len, advice);
	for (; at < end; at += part) {
		part = (size_t)(end - at);
		if (heap_has(&world->heap, at))
			part = heap_marked_alike(&world->heap, at, part);
		if (part_advise(at, part, advice))
			return -1;
	}
	return 0;
}

/*
 * Grow a mapping in its place, with the protection of its last page. Return false if that is not
 * possible.
 */
static bool mapping_grow(void *p, size_t len, size_t new_len)
{
	struct mapping m = { .addr = (char *)p + len - PAGE, .len = PAGE };

	/* if more is mapped than @len, the pages behind @len are in use */
	if (heap_mapped(&world->heap, p) != len || !heap_resize(&world->heap, p, new_len))
		return false;
	heap_map(&world->heap, p, new_len);
	memory_discard((char *)p + len, new_len - len);	/* the heap may have used it before */
	prot_find(&m);
	m.addr = (char *)p + len;
	m.len = new_len - len;
	if (m.prot == (PROT_READ | PROT_WRITE) || !nodes_run_all(range_protect_here, &m))
		return true;
	part_unmap(m.addr, m.len);
	return false;
}

/* Copy a mapping to a longer one, with its protection. */
static int mapping_copy(char *to, char *from, size_t len, size_t new_len)
{
	for (size_t at = 0, part; at < len; at += part) {
		struct mapping m = { .addr = from + at, .len = len - at };
		int prot;

		prot_find(&m);
		part = m.len;
		prot = m.prot;
		m.prot = PROT_READ;
		if (!(prot & PROT_READ) && nodes_run_all(range_protect_here, &m))
			return -1;
		memcpy(to + at, from + at, part);
		m.addr = to + at;
		m.len = at + part < len ? part : new_len - at;
		m.prot = prot;
		if (prot != (PROT_READ | PROT_WRITE) && nodes_run_all(range_protect_here, &m))
			return -1;
	}
	return 0;
}

static void *mapping_move(void *old, size_t len, size_t new_len)
{
	void *p = block_get(new_len);

	if (!p)
		return MAP_FAILED;
	if (mapping_copy(p, old, len, new_len)) {
		munmap(p, new_len);
		return MAP_FAILED;
	}
	munmap(old, len);
	return p;
}

/* Resize a mapping of the heap. */
static void *block_remap(void *old, size_t len, size_t new_len, int flags)
{
	if (flags & ~MREMAP_MAYMOVE) {
		errno = ENOMEM;		/* MREMAP_FIXED and MREMAP_DONTUNMAP are not supported */
		return MAP_FAILED;
	}
	len = len_round_up(len);
	new_len = len_round_up(new_len);
	if (new_len < len)
		return munmap((char *)old + new_len, len - new_len) ? MAP_FAILED : old;
	if (new_len == len)
		return old;
	if (heap_marked(&world->heap, old) || heap_marked_alike(&world->heap, old, len) < len) {
		errno = ENOMEM;		/* the file is not known */
		return MAP_FAILED;
	}
	if (mapping_grow(old, len, new_len))
		return old;
	if (flags & MREMAP_MAYMOVE)
		return mapping_move(old, len, new_len);
	errno = ENOMEM;
	return MAP_FAILED;
}

EXPORT void *mremap(void *old, size_t len, size_t new_len, int flags, ...)
{
	void *at = NULL;

	if (flags & MREMAP_FIXED) {
		va_list ap;

		va_start(ap, flags);
		at = va_arg(ap, void *);
		va_end(ap);
	}
	if (world && new_len && is_global(old) && heap_has(&world->heap, old))
		return block_remap(old, len, new_len, flags);
	/* each node has inherited the mapping: it would grow or move on this node only */
	if (world_spans() && (new_len > len || flags & ~MREMAP_MAYMOVE) &&
	    !memory_is_libsci(__builtin_return_address(0))) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return REAL(mremap)(old, len, new_len, flags, at);
}

/* Open a library. After the other nodes have started, a new library is on this node only: warn. */
EXPORT void *dlopen(const char *file, int flags)
{
	void *h;

	if (!world_spans() || !file)
		return REAL(dlopen)(file, flags);
	h = REAL(dlopen)(file, flags | RTLD_NOLOAD);
	if (h || flags & RTLD_NOLOAD)
		return h;
	world_say("dlopen(): %s is loaded on node %u only (preload it, or open it before the first thread)",
		  file, node_id(self_node));
	return REAL(dlopen)(file, flags);
}

/*
 * Close a library. While several nodes run, the library stays: the dynamic linker of each node has its
 * data, which is global memory, in a private list.
 */
EXPORT int dlclose(void *handle)
{
	return world_spans() && is_global(handle) ? 0 : REAL(dlclose)(handle);
}
