// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: caches that are not coherent, for tests
 *
 * SCI_SHM_CHECK=1 makes this fabric behave like memory that several hosts map through
 * caches that are not coherent.  Each process has a copy of each segment that it maps:
 * the cache.  The segment itself is the memory.  Only the library moves a line: a
 * write-back followed by a fence stores the line to memory, a refresh loads it.  No line
 * is written back or dropped by itself, so a flush that is missing in the library or in
 * a program shows as data that never arrives, or as old data.
 *
 * As on a CPU, a line is written back as a whole, a refresh of a changed line writes
 * it back first, and write-backs pass each other until the fence: a fence ends them in
 * the reverse order.  Processes of one node do not share a cache here.
 */

#include "libsci/fabric/shm/shm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "libsci/base/barrier.h"
#include "libsci/base/host.h"

#define LINE		64u
#define WORDS		(LINE / sizeof(uint64_t))

struct shm_range {
	const char *addr;
	size_t length;
	struct shm_copy *copy;
	size_t off;			/* offset of @addr in the copy */
};

/* A line whose write-back has started. */
struct shm_line {
	struct shm_copy *copy;
	size_t off;
};

/* ---- lines; callers of all of these hold the lock ---- */

static uint64_t *word_of(char *base, size_t off, size_t i)
{
	return (uint64_t *)(void *)(base + off) + i;
}

static bool line_changed(const struct shm_copy *c, size_t off)
{
	size_t i;

	for (i = 0; i < WORDS; i++)
		if (sci_load_relaxed(word_of(c->cache, off, i)) !=
		    *word_of(c->clean, off, i))
			return true;
	return false;
}

static void line_store(struct shm_copy *c, size_t off)
{
	size_t i;

	if (!line_changed(c, off))
		return;
	for (i = 0; i < WORDS; i++) {
		uint64_t w = sci_load_acquire(word_of(c->cache, off, i));

		sci_store_release(word_of(c->memory, off, i), w);
		*word_of(c->clean, off, i) = w;
	}
}

/* Load a line from memory. A word that the program stores meanwhile keeps the program's value. */
static void line_load(struct shm_copy *c, size_t off)
{
	size_t i;

	line_store(c, off);
	for (i = 0; i < WORDS; i++) {
		uint64_t *clean = word_of(c->clean, off, i), old = *clean;

		*clean = sci_load_acquire(word_of(c->memory, off, i));
		if (*clean != old)
			sci_compare_exchange(word_of(c->cache, off, i), &old, *clean);
	}
}

static void lines_end(struct shm_check *check)
{
	while (check->n_lines) {
		struct shm_line *l = &check->lines[--check->n_lines];

		line_store(l->copy, l->off);
	}
}

static void line_start(struct shm_check *check, struct shm_copy *c, size_t off)
{
	size_t max = check->max_lines ? 2 * check->max_lines : 256;
	struct shm_line *lines;

	if (check->n_lines == check->max_lines) {
		lines = realloc(check->lines, max * sizeof(*lines));
		if (!lines) {
			line_store(c, off);
			return;
		}
		check->lines = lines;
		check->max_lines = max;
	}
	check->lines[check->n_lines++] = (struct shm_line){ c, off };
}

/* ---- maps ---- */

/* Return the index of the last range that begins at @addr or below, plus 1. */
static size_t range_after(const struct shm_check *check, const char *addr)
{
	size_t low = 0, high = check->n_ranges;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (check->ranges[mid].addr <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int range_add(struct shm_check *check, const struct shm_range *r)
{
	size_t max = check->max_ranges ? 2 * check->max_ranges : 16;
	struct shm_range *ranges;
	size_t at;

	if (check->n_ranges == check->max_ranges) {
		ranges = realloc(check->ranges, max * sizeof(*ranges));
		if (!ranges)
			return -ENOMEM;
		check->ranges = ranges;
		check->max_ranges = max;
	}
	at = range_after(check, r->addr);
	memmove(&check->ranges[at + 1], &check->ranges[at],
		(check->n_ranges++ - at) * sizeof(*r));
	check->ranges[at] = *r;
	r->copy->users++;
	return 0;
}

static void copy_free(struct shm_copy *c)
{
	if (c->cache)
		munmap(c->cache, c->length);
	if (c->clean)
		munmap(c->clean, c->length);
	if (c->memory)
		munmap(c->memory, c->length);
	free(c);
}

static void copy_put(struct shm_check *check, struct shm_copy *c)
{
	if (--c->users)
		return;
	lines_end(check);
	copy_free(c);
}

static void range_del(struct shm_check *check, const char *addr)
{
	size_t at = range_after(check, addr);
	struct shm_copy *c;

	if (!at || check->ranges[at - 1].addr != addr)
		return;
	c = check->ranges[at - 1].copy;
	memmove(&check->ranges[at - 1], &check->ranges[at],
		(--check->n_ranges - (at - 1)) * sizeof(check->ranges[0]));
	copy_put(check, c);
}

/* Call @fn for each mapped line of [@addr, @addr + @len). */
static void lines_each(struct shm_check *check, const volatile void *addr, size_t len,
		       void (*fn)(struct shm_check *check, struct shm_copy *c, size_t off))
{
	const char *from = (const char *)(uintptr_t)addr;
	size_t at = range_after(check, from), off, end;
	const struct shm_range *r;

	r = at && len ? &check->ranges[at - 1] : NULL;
	if (!r || (size_t)(from - r->addr) >= r->length)
		return;
	off = r->off + (size_t)(from - r->addr);
	end = len < r->length - (size_t)(from - r->addr) ? off + len : r->off + r->length;
	for (off -= off % LINE; off < end; off += LINE)
		fn(check, r->copy, off);
}

/* ---- struct sci_cache_ops ---- */

static struct shm_check *check_lock(struct sci_link_status *link)
{
	struct shm_check *check = &container_of(link, struct shm, link)->check;

	pthread_mutex_lock(&check->lock);
	return check;
}

static void check_write_back(struct sci_link_status *link, const volatile void *addr,
			     size_t len)
{
	struct shm_check *check = check_lock(link);

	lines_each(check, addr, len, line_start);
	pthread_mutex_unlock(&check->lock);
}

static void check_fence(struct sci_link_status *link)
{
	struct shm_check *check = check_lock(link);

	lines_end(check);
	pthread_mutex_unlock(&check->lock);
}

static void line_refresh(struct shm_check *check, struct shm_copy *c, size_t off)
{
	(void)check;
	line_load(c, off);
}

static void check_refresh(struct sci_link_status *link, const volatile void *addr,
			  size_t len)
{
	struct shm_check *check = check_lock(link);

	lines_each(check, addr, len, line_refresh);
	pthread_mutex_unlock(&check->lock);
}

static const struct sci_cache_ops check_ops = {
	.write_back = check_write_back,
	.fence = check_fence,
	.refresh = check_refresh,
};

/* ---- copies ---- */

static void *copy_map_anonymous(size_t length, int how)
{
	void *p = mmap(NULL, length, PROT_READ | PROT_WRITE, how | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/**
 * shm_copy_new() - make a cache between this process and a segment
 * @base: a map of the whole segment
 * @imported: true: the segment is not a segment of this process
 *
 * The cache begins as a copy of the memory.
 */
int shm_copy_new(struct shm *shm, void *base, size_t length, bool imported,
		 struct shm_copy **out)
{
	struct shm_copy *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	*c = (struct shm_copy){ .shm = shm, .length = length, .imported = imported,
				.users = 1 };
	c->memory = mremap(base, 0, length, MREMAP_MAYMOVE);
	if (c->memory == MAP_FAILED)
		c->memory = NULL;
	c->cache = copy_map_anonymous(length, MAP_SHARED);
	c->clean = copy_map_anonymous(length, MAP_PRIVATE);
	if (!c->memory || !c->cache || !c->clean) {
		copy_free(c);
		return -ENOMEM;
	}
	memcpy(c->clean, c->memory, length);
	memcpy(c->cache, c->clean, length);
	*out = c;
	return 0;
}

struct shm_copy *shm_copy_get(struct shm_copy *c)
{
	pthread_mutex_lock(&c->shm->check.lock);
	c->users++;
	pthread_mutex_unlock(&c->shm->check.lock);
	return c;
}

void shm_copy_put(struct shm_copy *c)
{
	struct shm_check *check;

	if (!c)
		return;
	check = &c->shm->check;
	pthread_mutex_lock(&check->lock);
	copy_put(check, c);
	pthread_mutex_unlock(&check->lock);
}

/* Map the copy, as lseg.map and rseg.map of struct sci_fabric_ops do. */
int shm_copy_map(struct shm_copy *c, uint64_t off, size_t len, unsigned int flags,
		 void **addr)
{
	size_t page = sci_page_size();
	size_t delta;
	int ret = shm_map_copy(c->cache, off, len, flags, addr);

	if (ret)
		return ret;
	delta = (uintptr_t)*addr & (page - 1);
	pthread_mutex_lock(&c->shm->check.lock);
	ret = range_add(&c->shm->check, &(struct shm_range){ *addr, len, c, off });
	pthread_mutex_unlock(&c->shm->check.lock);
	if (ret)
		munmap((char *)*addr - delta, (len + delta + page - 1) & ~(page - 1));
	return ret;
}

/* Map the copy at @addr, over the memory that is mapped there. The cache begins as a copy of it. */
int shm_copy_cover(struct shm_copy *c, void *addr, size_t len)
{
	int ret;

	memcpy(c->clean, addr, len);
	memcpy(c->cache, addr, len);
	if (sci_map_move(c->cache, 0, len, addr) == MAP_FAILED)
		return -errno;
	pthread_mutex_lock(&c->shm->check.lock);
	ret = range_add(&c->shm->check, &(struct shm_range){ addr, len, c, 0 });
	pthread_mutex_unlock(&c->shm->check.lock);
	return ret;
}

/* With SCI_SHM_CHECK, end the check of one map. */
void shm_copy_unmap(struct shm *shm, const void *addr)
{
	if (!shm->link.cache)
		return;
	pthread_mutex_lock(&shm->check.lock);
	range_del(&shm->check, addr);
	pthread_mutex_unlock(&shm->check.lock);
}

int shm_check_init(struct shm *shm)
{
	unsigned int on = 0;
	int ret = sci_env_number("SCI_SHM_CHECK", &on, 10, 0, 1, "want 0 or 1");

	pthread_mutex_init(&shm->check.lock, NULL);
	if (ret || !on)
		return ret;
	shm->link.cache = &check_ops;
	shm->wake_barrier = false;
	/* the copies cannot have huge pages */
	shm->huge = 0;
	return 0;
}

void shm_check_fini(struct shm *shm)
{
	free(shm->check.ranges);
	free(shm->check.lines);
	pthread_mutex_destroy(&shm->check.lock);
}
