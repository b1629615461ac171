/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: tests of SHMEM programs
 *
 *	PES_TEST(a_token_goes_round, 2)
 *	{
 *		...
 *		CHECK_EQ(token, n_pes);
 *	}
 *
 * All PEs run all tests of a file in order. A test that needs more PEs than exist is left
 * out. The sources use only <shmem.h>, and are built in two ways:
 *
 *  - As a test of this tree they are linked with the harness, which runs them with
 *    different numbers of PEs and nodes.
 *  - With -DSHMEM_PLAIN they are an ordinary SHMEM program, whose PE 0 prints TAP.
 */
#ifndef SELFTESTS_SHMEM_CHECK_H
#define SELFTESTS_SHMEM_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SHMEM_PLAIN
#include <sci-shmem/shmem.h>
#include "libsci/fabric/core/fault.h"
#include "selftests/ranks.h"
#undef CHECK
#undef CHECK_EQ
#else
#include <shmem.h>
#define ARRAY_LEN(a)	(sizeof(a) / sizeof((a)[0]))
#endif

/* Open MPI's generic calls take no pointers to const, unlike the standard's. */
#ifdef OSHMEM_MAJOR_VERSION
#define FROM_CONST
#define OPEN_MPI	1
#else
#define FROM_CONST	const
#define OPEN_MPI	0
#endif

/* The library has the calls that are new in OpenSHMEM 1.5. */
#define HAS_TEAMS	(SHMEM_MAJOR_VERSION > 1 || SHMEM_MINOR_VERSION >= 5)

static int me, n_pes;

#define RIGHT		((me + 1) % n_pes)
#define LEFT		((me + n_pes - 1) % n_pes)

static inline void check_fail(const char *file, int line, const char *expr,
			      long long want, long long got)
{
	fprintf(stderr, "%s:%d: %s: expected %lld, got %lld [PE %d of %d]\n", file, line,
		expr, want, got, me, n_pes);
	shmem_global_exit(1);
	abort();	/* some libraries do not declare that shmem_global_exit() never returns */
}

/* Compare integers, or floating point numbers with integer values. */
#define CHECK_EQ(got, want)						\
	do {								\
		long long got_ = (long long)(got);			\
		long long want_ = (long long)(want);			\
									\
		if (got_ != want_)					\
			check_fail(__FILE__, __LINE__, #got, want_, got_); \
	} while (0)
#define CHECK(cond)	CHECK_EQ(!!(cond), 1)

/* Open MPI's shmem_calloc() does not wait until all PEs have zeroed their memory. */
static inline void *pes_calloc(size_t count, size_t size)
{
	void *p = shmem_calloc(count, size);

	CHECK(p);
	shmem_barrier_all();
	return p;
}

/* ---- tests ---- */

struct pes_test {
	const char *name;
	int needs;
	void (*fn)(void);
	struct pes_test *next;
};

static struct pes_test *pes_tests, **pes_tests_end = &pes_tests;

#define PES_TEST(test_name, pes_needed)					\
	static void pes_##test_name(void);				\
	__attribute__((constructor)) static void reg_pes_##test_name(void) \
	{								\
		static struct pes_test t = { #test_name, pes_needed,	\
					     pes_##test_name, NULL };	\
									\
		*pes_tests_end = &t;					\
		pes_tests_end = &t.next;				\
	}								\
	static void pes_##test_name(void)

static inline void pes_run_all(bool tap)
{
	int n = 0, nr = 0;

	shmem_init();
	me = shmem_my_pe();
	n_pes = shmem_n_pes();
	for (struct pes_test *t = pes_tests; t; t = t->next)
		n++;
	if (tap && !me)
		printf("TAP version 13\n1..%d\n", n);
	for (struct pes_test *t = pes_tests; t; t = t->next) {
		nr++;
		if (n_pes >= t->needs) {
			shmem_barrier_all();
			t->fn();
			shmem_barrier_all();
		}
		if (tap && !me)
			printf("ok %d - %s%s\n", nr, t->name,
			       n_pes < t->needs ? " # SKIP needs more PEs" : "");
		fflush(stdout);
	}
	shmem_finalize();
}

#ifdef SHMEM_PLAIN
int main(void)
{
	pes_run_all(true);
	return 0;
}
#else
static inline void pes_fn(void *memory)
{
	setenv("SCI_TEAM_MEMORY", memory, 1);
	pes_run_all(false);
}

TEST(one_pe)
{
	ranks_run_arg(1, 1, pes_fn, (void *)"all", false);
}

TEST(two_pes)
{
	ranks_run_arg(2, 1, pes_fn, (void *)"all", false);
}

TEST(four_pes)
{
	ranks_run_arg(4, 1, pes_fn, (void *)"all", false);
}

TEST(four_pes_on_four_nodes)
{
	ranks_run_arg(4, 4, pes_fn, (void *)"all", false);
}

TEST(sixteen_pes_on_four_nodes)
{
	ranks_run_arg(16, 4, pes_fn, (void *)"node", false);
}

TEST(four_pes_on_two_nodes_that_share_no_memory)
{
	ranks_run_arg(4, 2, pes_fn, (void *)"node", false);
}

TEST(three_pes_that_share_no_memory)
{
	ranks_run_arg(3, 1, pes_fn, (void *)"none", false);
}

static inline void pes_lossy_fn(void *memory)
{
	setenv("SCI_FAULT", "loss=0.1,seed=25", 1);
	pes_fn(memory);
	if (!sci_fault_counts.lost)
		FAIL("PE %d has lost no packet", me);
}

TEST(three_pes_that_lose_packets)
{
	ranks_run_arg(3, 3, pes_lossy_fn, (void *)"none", false);
}
#endif

#endif
