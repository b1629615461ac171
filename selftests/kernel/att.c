// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test the address translation table (ATT): entries that maps take and give back. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sci_test.h"

/* Number of equal maps that fill the table. */
#define WINDOWS		128u
#define WINDOWS_MAX	(2 * WINDOWS)

/* An import, which is mapped if @map is set. */
struct import {
	int local, remote;
	void *map;
};

/* The table of adapter 0, and the adapters and ids of the imports of this test. */
struct table {
	int importer, exporter;
	__u32 node, page_size, next_id;
	long long entries, used;
};

static long long used(void)
{
	return sysfs_number(0, "att/used");
}

static long long largest_free(void)
{
	return sysfs_number(0, "att/largest_free");
}

static struct table table_of(void)
{
	unsigned int far = adapters() > 1 ? 1 : 0;
	struct table t = { .node = adapter_node(far) };
	struct sci_ioc_query q;

	t.importer = OK(adapter_open(0));
	t.exporter = OK(adapter_open(far));
	OK(adapter_query(t.importer, &q));
	t.page_size = q.out_att_page_size;
	t.entries = q.out_att_entries;
	t.used = used();
	return t;
}

/* Create a segment and connect to it, without a map. */
static struct import add(struct table *t, size_t length)
{
	__u32 id = t->next_id++;
	struct import i = {
		.local = OK(segment_exported(t->exporter, id, length)),
		.remote = OK(remote_connect(t->importer, t->node, id)),
	};

	return i;
}

static void map(struct import *i, size_t length)
{
	i->map = (void *)MAP(i->remote, 0, length, RW);
}

/*
 * Maps of one import. Each begins one page of the table behind the one before, so
 * no map covers another, and each takes entries of its own.
 */
struct windows {
	struct table t;
	struct import of;
	unsigned int per_map, n;	/* entries of one map; number of maps */
	size_t length;			/* of one map */
	void *map[WINDOWS_MAX];
};

static int map_window(struct windows *w, unsigned int i)
{
	long long ret = sci_map(w->of.remote, (__u64)i * w->t.page_size,
				w->length, RW);

	if (ret < 0)
		return (int)ret;
	w->map[i] = (void *)(uintptr_t)ret;
	return 0;
}

static void unmap_window(struct windows *w, unsigned int i)
{
	OK(sci_unmap(w->map[i], w->length));
	w->map[i] = NULL;
}

/* Add maps until the table has less room than one map needs. */
static void fill_table(struct windows *w)
{
	int ret;

	w->t = table_of();
	w->per_map = (w->t.entries + WINDOWS - 1) / WINDOWS;
	w->length = (size_t)w->per_map * w->t.page_size;
	w->of = add(&w->t, w->length + (size_t)WINDOWS_MAX * w->t.page_size);
	for (w->n = 0; w->n < WINDOWS_MAX; w->n++) {
		ret = map_window(w, w->n);
		if (ret)
			break;
	}
	if (w->n == WINDOWS_MAX)
		SKIP("%u windows do not fill the table", w->n);
	EQ(ret, -ENOSPC);
}

static void unmap_all(struct windows *w)
{
	for (unsigned int i = 0; i < WINDOWS_MAX; i++)
		if (w->map[i])
			unmap_window(w, i);
}

/* ---- entries that a map takes ---- */

TEST(a_map_takes_entries_and_gives_them_back)
{
	struct table t = table_of();
	struct import i = add(&t, 3 * PAGE);

	EQ(used(), t.used);
	map(&i, 3 * PAGE);
	CHECK(used() > t.used);
	OK(sci_unmap(i.map, 3 * PAGE));
	EQ(used(), t.used);
	map(&i, 3 * PAGE);
	CHECK(used() > t.used);
	/* an unmapped import without a descriptor holds no entries */
	close(i.remote);
	EQ(used(), t.used);
	WORD(i.map, 0) = 1;
	OK(sci_unmap(i.map, 3 * PAGE));
	EQ(used(), t.used);
}

TEST(a_larger_map_takes_more)
{
	struct table t = table_of();
	const unsigned int pages[] = { 1, 2, 4, 16 };

	for (unsigned int i = 0; i < ARRAY_SIZE(pages); i++) {
		size_t length = (size_t)pages[i] * t.page_size;
		struct import im = add(&t, length);

		map(&im, length);
		EQ(used() - t.used, pages[i]);
		close(im.remote);
		OK(sci_unmap(im.map, length));
	}
	EQ(used(), t.used);
}

TEST(a_map_of_a_part_takes_less)
{
	struct table t = table_of();
	struct import i = add(&t, 8ul * t.page_size);
	void *p;

	p = (void *)MAP(i.remote, 3ul * t.page_size + PAGE, PAGE, RW);
	EQ(used() - t.used, 1);
	OK(sci_unmap(p, PAGE));
	/* a map across a border between two pages of the table */
	if (t.page_size > PAGE) {
		MAP(i.remote, t.page_size - PAGE, 2 * PAGE, RW);
		EQ(used() - t.used, 2);
	}
}

TEST(importers_share_entries)
{
	struct table t = table_of();
	struct import first = add(&t, 4 * PAGE), second = first;
	long long one;

	map(&first, 4 * PAGE);
	one = used();
	second.remote = OK(remote_connect(t.importer, t.node, 0));
	map(&second, 4 * PAGE);
	EQ(used(), one);
	OK(sci_map(first.remote, 0, 4 * PAGE, RW));
	EQ(used(), one);
	close(first.remote);
	WORD(second.map, 0) = 1;
	EQ(used(), one);
	close(second.remote);
	EQ(used(), t.used);
}

TEST(a_fork_takes_nothing_more)
{
	struct table t = table_of();
	struct import i = add(&t, 4 * PAGE);
	long long one;
	pid_t pid;

	map(&i, 4 * PAGE);
	one = used();
	pid = ksft_fork();
	if (pid == 0)
		_exit(used() != one);
	EQ(ksft_wait(pid), 0);
	EQ(used(), one);
	OK(sci_unmap(i.map, 4 * PAGE));
	EQ(used(), t.used);
}

TEST(parts_keep_the_whole)
{
	struct table t = table_of();
	struct import i = add(&t, 4ul * t.page_size);
	size_t part = t.page_size;
	char *p;

	map(&i, 4 * part);
	p = i.map;
	OK(sci_unmap(p + part, 2 * part));
	p[0] = 1;
	p[3 * part] = 2;
	CHECK(used() > t.used);
	OK(sci_unmap(p, part));
	p[3 * part] = 3;
	OK(sci_unmap(p + 3 * part, part));
	EQ(used(), t.used);
}

TEST(an_import_that_is_lost_gives_back)
{
	struct table t = table_of();
	struct import i = add(&t, 4 * PAGE);

	map(&i, 4 * PAGE);
	OK(segment_unexport(i.local, SCI_UNEXPORT_HOW_FORCE));
	EV(i.remote, SCI_EV_LOST);
	EQ(used(), t.used);
	WORD(i.map, 0) = 1;
}

/* ---- a full table ---- */

TEST(a_full_table_is_ENOSPC)
{
	struct sci_ioc_counters a, b;
	static struct windows w;
	unsigned int maps;
	long long full;

	fill_table(&w);
	OK(adapter_counters(w.t.importer, &a));
	full = used();
	maps = ksft_count_maps();
	ksft_note("%u maps of %zu bytes fill %lld entries", w.n, w.length,
		  w.t.entries);
	CHECK(full <= w.t.entries);
	CHECK(largest_free() < w.per_map);
	/* a map that fails changes nothing but the counter */
	for (unsigned int i = 0; i < 3; i++)
		FAILS(map_window(&w, w.n), ENOSPC);
	EQ(used(), full);
	EQ(ksft_count_maps(), maps);
	OK(adapter_counters(w.t.importer, &b));
	EQ(b.out_att_full, a.out_att_full + 3);
	/* the other maps still work */
	for (unsigned int i = 0; i < w.n; i++)
		WORD(w.map[i], 0) = i;

	unmap_window(&w, 0);
	EQ(used(), full - w.per_map);
	OK(map_window(&w, w.n));
	EQ(used(), full);
	unmap_all(&w);
	EQ(used(), w.t.used);
}

TEST(what_is_mapped_is_mapped_in_whole)
{
	static struct windows w;
	struct import large;
	size_t length;
	long long full;

	fill_table(&w);
	unmap_window(&w, w.n / 2);
	full = used();
	/* one entry more than the largest free range */
	length = (size_t)(largest_free() + 1) * w.t.page_size;
	large = add(&w.t, length);
	FAILS(sci_map(large.remote, 0, length, RW), ENOSPC);
	EQ(used(), full);
	map(&large, length - w.t.page_size);
}

TEST(a_table_in_pieces)
{
	static struct windows w;
	struct import large;
	long long half;
	size_t length;

	fill_table(&w);
	for (unsigned int i = 0; i < w.n; i += 2)
		unmap_window(&w, i);
	half = used();
	CHECK(half < w.t.entries * 3 / 4);
	CHECK(largest_free() >= w.per_map);
	CHECK(largest_free() <= w.t.entries - half);

	/* a map as large as the largest free range */
	length = (size_t)largest_free() * w.t.page_size;
	large = add(&w.t, length);
	map(&large, length);
	EQ(used(), half + (long long)(length / w.t.page_size));

	/* after the last unmap the free entries are one range again */
	OK(sci_unmap(large.map, length));
	unmap_all(&w);
	EQ(used(), w.t.used);
	if (!w.t.used)
		EQ(largest_free(), w.t.entries);
}

static void fill_and_wait(struct peer *self, void *arg)
{
	static struct windows w;

	(void)arg;
	peer_expect(self, "fill");
	fill_table(&w);
	peer_send(self, "full");
	peer_expect(self, "nothing");
}

TEST(whoever_filled_it_is_killed)
{
	struct peer *p = peer_spawn(fill_and_wait, NULL);
	struct counts was = counts_of(0);
	struct import i;
	struct table t;

	peer_send(p, "fill");
	peer_expect(p, "full");
	t = table_of();
	CHECK(t.used > was.att_used);
	peer_kill(p);
	EQ(used(), was.att_used);
	i = add(&t, PAGE);
	map(&i, PAGE);
}

/* ---- several threads ---- */

static struct table common;
static struct import imports[8];

static void *map_at_random(void *arg)
{
	uint64_t seed = (uintptr_t)arg;

	for (unsigned int i = 0; i < 200; i++) {
		struct import *one = &imports[ksft_below(&seed, 8)];
		size_t length = (1 + ksft_below(&seed, 3)) * common.page_size;
		long map = OK(sci_map(one->remote, 0, length, RW));

		WORD((void *)map, 0) = i;
		OK(sci_unmap((void *)map, length));
	}
	return NULL;
}

TEST(threads_map_and_unmap_at_once)
{
	pthread_t thread[4];

	common = table_of();
	for (unsigned int i = 0; i < ARRAY_SIZE(imports); i++)
		imports[i] = add(&common, 3ul * common.page_size);
	for (uintptr_t i = 0; i < ARRAY_SIZE(thread); i++)
		EQ(pthread_create(&thread[i], NULL, map_at_random,
				  (void *)(i + 1)), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(thread); i++)
		EQ(pthread_join(thread[i], NULL), 0);
	EQ(used(), common.used);
}
