// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: memory of segments
 *
 * A segment is a memfd. All its pages are reserved at creation, so a store never fails for lack
 * of memory. The memfd is sealed, so an exporter cannot shrink it under its importers. The memfd
 * has the segment's mode, so a reader cannot open its descriptor again for writing.
 */

#include "libsci/fabric/shm/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef SCI_HAVE_NUMA
#include <numa.h>
#endif

#ifndef MFD_HUGE_SHIFT
#define MFD_HUGE_SHIFT 26
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* A signal undoes a whole fallocate(): reserve memory in steps of this size. */
#define RESERVE_STEP	(16u << 20)
/* Check the free memory only for segments of this size and more. */
#define LOOK_FROM	(16u << 20)
#define SEALS		(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static uint64_t number_read(const char *path)
{
	uint64_t v = UINT64_MAX;
	FILE *f = sci_open_kernel_file(path);

	if (!f)
		return v;
	if (fscanf(f, "%lu", (unsigned long *)&v) != 1)
		v = UINT64_MAX;		/* "max" */
	fclose(f);
	return v;
}

/* Return the memory that this process's control group and its parent groups still allow. */
static uint64_t cgroup_room(void)
{
	char group[PATH_MAX] = "", path[PATH_MAX + 64], line[PATH_MAX];
	uint64_t room = UINT64_MAX, max, now;
	FILE *f = sci_open_kernel_file("/proc/self/cgroup");
	char *slash;

	if (!f)
		return room;
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, "0::", 3)) {
			line[strcspn(line, "\n")] = '\0';
			snprintf(group, sizeof(group), "%s", line + 3);
		}
	fclose(f);
	while ((slash = strrchr(group, '/'))) {
		snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max",
			 group);
		max = number_read(path);
		snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.current",
			 group);
		now = max == UINT64_MAX ? 0 : number_read(path);
		if (max != UINT64_MAX && now != UINT64_MAX)
			room = max <= now ? 0 :
			       max - now < room ? max - now : room;
		*slash = '\0';
	}
	return room;
}

static uint64_t machine_room(void)
{
	unsigned long kib, avail = ULONG_MAX, swap = 0;
	FILE *f = sci_open_kernel_file("/proc/meminfo");
	char line[128];

	/* no descriptors are left: assume no memory either */
	if (!f)
		return errno == EMFILE || errno == ENFILE ? 0 : UINT64_MAX;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "MemAvailable: %lu", &kib) == 1)
			avail = kib;
		else if (sscanf(line, "SwapFree: %lu", &kib) == 1)
			swap = kib;
	}
	fclose(f);
	return avail == ULONG_MAX ? UINT64_MAX :
				    ((uint64_t)avail + swap) * 1024;
}

/*
 * Check the free memory before a reservation: the kernel kills a process to reserve
 * memory that it does not have. Memory that other processes take meanwhile is not considered.
 */
static int memory_is_enough(uint64_t length)
{
	struct rlimit rl;

	/* past this limit ftruncate() would raise SIGXFSZ */
	if (!getrlimit(RLIMIT_FSIZE, &rl) && rl.rlim_cur != RLIM_INFINITY &&
	    length > rl.rlim_cur)
		return -ENOSPC;
	if (length < LOOK_FROM)
		return 0;
	return length > machine_room() || length > cgroup_room() ? -ENOSPC : 0;
}

/* Place pages as SCI_NUMA says: the number of a node, "local" or "interleave". */
static void pages_place(int fd, size_t length)
{
#ifdef SCI_HAVE_NUMA
	const char *where = getenv("SCI_NUMA");
	char *end;
	void *p;
	long node;

	if (!where || !*where || numa_available() < 0)
		return;
	p = mmap(NULL, length, PROT_NONE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return;
	/* the policy of a shared file belongs to the pages, not to this map */
	node = strtol(where, &end, 10);
	if (end != where && !*end && node >= 0 && node <= numa_max_node())
		numa_tonode_memory(p, length, (int)node);
	else if (!strcmp(where, "interleave"))
		numa_interleave_memory(p, length, numa_all_nodes_ptr);
	else if (!strcmp(where, "local"))
		numa_setlocal_memory(p, length);
	munmap(p, length);
#else
	(void)fd;
	(void)length;
#endif
}

static int pages_reserve(int fd, uint64_t length)
{
	uint64_t at = 0;

	while (at < length) {
		uint64_t n = length - at;

		if (n > RESERVE_STEP)
			n = RESERVE_STEP;
		if (!fallocate(fd, 0, (off_t)at, (off_t)n))
			at += n;
		else if (errno != EINTR)
			return errno == EFBIG ? -ENOSPC : -errno;
	}
	return 0;
}

static int memory_create(struct shm *shm, const char *name, size_t huge)
{
	unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd, ret;

	if (huge)
		flags |= MFD_HUGETLB | (unsigned int)__builtin_ctzl(huge)
					       << MFD_HUGE_SHIFT;
	pthread_mutex_lock(&shm->svc.lock);
	do {
		fd = memfd_create(name, flags);
	} while (fd < 0 && errno == EMFILE && !sci_raise_fd_limit());
	ret = fd < 0 ? -errno : sci_fd_track(&shm->svc, fd);
	pthread_mutex_unlock(&shm->svc.lock);
	return ret ? ret : fd;
}

static int memory_fill(struct shm *shm, int fd, size_t length)
{
	int ret;

	if (ftruncate(fd, (off_t)length) || fchmod(fd, shm->mode))
		return -errno;
	pages_place(fd, length);
	ret = pages_reserve(fd, length);
	if (!ret && fcntl(fd, F_ADD_SEALS, SEALS))
		ret = -errno;
	return ret;
}

static int memory_try(struct shm *shm, const char *name, uint64_t size,
		      size_t page, size_t huge, int *memfd, size_t *length)
{
	int fd, ret;

	if (size > (uint64_t)SSIZE_MAX - page)
		return -ENOSPC;
	*length = (size_t)((size + page - 1) & ~((uint64_t)page - 1));
	/* huge pages come from a separate pool */
	ret = huge ? 0 : memory_is_enough(*length);
	if (ret)
		return ret;
	fd = memory_create(shm, name, huge);
	if (fd < 0)
		return fd;
	ret = memory_fill(shm, fd, *length);
	if (ret) {
		pthread_mutex_lock(&shm->svc.lock);
		sci_fd_close(&shm->svc, fd);
		pthread_mutex_unlock(&shm->svc.lock);
		return ret;
	}
	*memfd = fd;
	return 0;
}

/**
 * shm_memory_alloc() - get zeroed memory for a segment
 * @huge: size of a huge page, if the segment may have them; else 0
 * @length: receives @size in whole pages
 * @page: receives the page size: @huge if @size fills a page and the pool has enough
 *
 * Context: svc.lock is not held. Return: 0; -ENOSPC, -ENOMEM, -EMFILE or another error.
 */
int shm_memory_alloc(struct shm *shm, const char *name, uint64_t size,
		     size_t huge, int *memfd, size_t *length, size_t *page)
{
	*page = huge;
	if (huge && size >= huge &&
	    !memory_try(shm, name, size, huge, huge, memfd, length))
		return 0;
	*page = sci_page_size();
	return memory_try(shm, name, size, *page, 0, memfd, length);
}

/**
 * shm_memory_check() - check a peer's descriptor against its message
 *
 * Return: 0; -EPROTO: they differ, or the memory could shrink under this process's maps.
 */
int shm_memory_check(int memfd, const struct shm_msg *msg, size_t *length,
		     size_t *page)
{
	int seals = fcntl(memfd, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(memfd, &st) ||
	    !msg->size || (uint64_t)st.st_size < msg->size)
		return -EPROTO;
	*length = (size_t)st.st_size;
	*page = msg->flags & SHM_F_HUGE ? (size_t)st.st_blksize :
					  sci_page_size();
	/* other code needs a power of two as the page size, and whole pages */
	return *page & (*page - 1) || *length & (*page - 1) ? -EPROTO : 0;
}

static bool maps_copy;			/* mremap() copies a shared mapping */

static void map_copy_try(void)
{
	size_t page = sci_page_size();
	void *p, *q;

	p = mmap(NULL, page, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return;
	q = mremap(p, 0, page, MREMAP_MAYMOVE);
	maps_copy = q != MAP_FAILED;
	if (maps_copy)
		munmap(q, page);
	munmap(p, page);
}

/*
 * Return true if shm_map_copy() works for a mapping with pages of @page bytes. It does not work
 * for huge pages, and not under qemu-user. Such segments keep a descriptor.
 */
bool shm_can_map_copy(size_t page)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (page > sci_page_size())
		return false;
	pthread_once(&once, map_copy_try);
	return maps_copy;
}

/**
 * shm_map_copy() - map a range of a shared mapping a second time
 *
 * An import then needs no descriptor of its own. Programs with thousands of segments run out of
 * descriptors first.
 */
int shm_map_copy(void *base, uint64_t off, size_t len, unsigned int flags,
		 void **addr)
{
	size_t page = sci_page_size();
	size_t delta = (size_t)(off & (page - 1));
	size_t length = (len + delta + page - 1) & ~(page - 1);
	char *from = (char *)base + (off - delta);
	char *want = NULL, *p;

	if (flags & SCI_MAP_FIXED) {
		want = (char *)*addr - delta;
		if (((uintptr_t)*addr & (page - 1)) != delta ||
		    (uintptr_t)*addr < page)
			return -EADDRNOTAVAIL;
		/* reserve the addresses first: mremap() would replace an existing map */
		p = mmap(want, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS |
			 MAP_FIXED_NOREPLACE, -1, 0);
		if (p != MAP_FAILED && p != want) {
			munmap(p, length);
			p = MAP_FAILED;
		}
		if (p == MAP_FAILED)
			return -EADDRNOTAVAIL;
		p = sci_map_move(from, 0, length, want);
	} else {
		p = mremap(from, 0, length, MREMAP_MAYMOVE);
	}
	if (p == MAP_FAILED) {
		int ret = -errno;

		if (want)
			munmap(want, length);
		return ret;
	}
	if (flags & SCI_MAP_READONLY && mprotect(p, length, PROT_READ)) {
		int ret = -errno;

		munmap(p, length);
		return ret;
	}
	*addr = p + delta;
	return 0;
}

/* ---- maps in use ---- */

struct shm_map {
	struct hash_node node;		/* by @addr */
	struct sci_rseg *rseg;		/* NULL: map of a local segment */
	void *addr;			/* the address that the user has */
	char *start;
	size_t length;
};

/**
 * shm_map_add() - add a map to the table of maps
 *
 * On an error the range is unmapped. Context: svc.lock is held.
 */
int shm_map_add(struct shm *shm, void *addr, size_t len, size_t page,
		struct sci_rseg *r)
{
	size_t delta = (uintptr_t)addr & (page - 1);
	size_t length = (len + delta + page - 1) & ~(page - 1);
	struct shm_map *map = malloc(sizeof(*map));

	if (!map || hash_add(&shm->maps, &map->node, (uintptr_t)addr)) {
		free(map);
		shm_copy_unmap(shm, addr);
		munmap((char *)addr - delta, length);
		return -ENOMEM;
	}
	map->rseg = r;
	map->addr = addr;
	map->start = (char *)addr - delta;
	map->length = length;
	return 0;
}

void shm_unmap(struct sci_fabric *f, void *addr, size_t len)
{
	struct shm *shm = container_of(f, struct shm, base);
	struct hash_node *node;

	(void)len;
	pthread_mutex_lock(&shm->svc.lock);
	node = hash_find(&shm->maps, (uintptr_t)addr);
	if (node) {
		struct shm_map *map = container_of(node, struct shm_map, node);

		shm_copy_unmap(shm, addr);
		munmap(map->start, map->length);
		hash_del(&shm->maps, node);
		free(map);
	}
	pthread_mutex_unlock(&shm->svc.lock);
}

static void pages_make_private(void *start, size_t length)
{
	/* mmap() replaces an existing map here, so it cannot fail for lack of a mapping */
	(void)!mmap(start, length, PROT_READ | PROT_WRITE, MAP_FIXED |
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/*
 * Replace the maps of an import by private memory, in one step for the threads that use them:
 * the owner has disconnected this process, whose later stores must not reach the segment.
 * Context: svc.lock is held.
 */
void shm_map_revoke(struct shm *shm, struct sci_rseg *r)
{
	struct hash_node *node = NULL;

	pages_make_private(r->base, r->length);
	if (r->copy && r->copy->imported)
		pages_make_private(r->copy->memory, r->length);
	while ((node = hash_walk(&shm->maps, node))) {
		struct shm_map *map = container_of(node, struct shm_map, node);

		if (map->rseg == r)
			pages_make_private(map->start, map->length);
	}
}
