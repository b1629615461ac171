// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests each call of atomics, of waits and tests, and of locks. */

#include "selftests/shmem/check.h"

/*
 * Open MPI declares atomics of these names, but does not define all of them, and its fetching
 * atomics of 4 bytes store 8 bytes.
 */
#ifdef OSHMEM_MAJOR_VERSION
#define WORDS_OF_4(X)
#define SIZED_INTS(X)
#define SIZED_BITS(X)
#else
#define WORDS_OF_4(X)	X(int, int) X(uint, unsigned int)
#define SIZED_INTS(X)							\
	X(int32, int32_t) X(int64, int64_t) X(uint32, uint32_t)		\
	X(uint64, uint64_t) X(size, size_t) X(ptrdiff, ptrdiff_t)
#define SIZED_BITS(X)							\
	X(uint, unsigned int) X(int32, int32_t) X(int64, int64_t) X(uint32, uint32_t) X(uint64, uint64_t)
#endif
#define STD_TYPES(X)							\
	X(long, long) X(longlong, long long) X(ulong, unsigned long)	\
	X(ulonglong, unsigned long long) WORDS_OF_4(X) SIZED_INTS(X)
#define EXT_TYPES(X)	X(float, float) X(double, double) STD_TYPES(X)
#define BIT_TYPES(X)							\
	X(ulong, unsigned long) X(ulonglong, unsigned long long) SIZED_BITS(X)
#define WAIT_TYPES(X)	X(short, short) X(ushort, unsigned short) STD_TYPES(X)

/* ---- each PE changes its neighbour's word ---- */

#define EXT(NAME, TYPE)								\
	PES_TEST(fetch_set_swap_##NAME, 1)					\
	{									\
		TYPE *w = pes_calloc(1, sizeof(*w)), old;			\
		FROM_CONST TYPE *from = w;					\
										\
		shmem_##NAME##_atomic_set(w, 10, RIGHT);			\
		shmem_quiet();							\
		CHECK_EQ(shmem_##NAME##_atomic_fetch(w, RIGHT), 10);		\
		CHECK_EQ(shmem_##NAME##_atomic_swap(w, 11, RIGHT), 10);		\
		shmem_ctx_##NAME##_atomic_set(SHMEM_CTX_DEFAULT, w, 12, RIGHT);	\
		shmem_quiet();							\
		CHECK_EQ(shmem_ctx_##NAME##_atomic_fetch(SHMEM_CTX_DEFAULT, w, RIGHT), 12); \
		CHECK_EQ(shmem_ctx_##NAME##_atomic_swap(SHMEM_CTX_DEFAULT, w, 13, RIGHT), \
			 12);							\
		shmem_atomic_set(w, 14, RIGHT);					\
		shmem_quiet();							\
		CHECK_EQ(shmem_atomic_fetch(from, RIGHT), 14);			\
		CHECK_EQ(shmem_atomic_swap(SHMEM_CTX_DEFAULT, w, 15, RIGHT), 14); \
		EXT_NBI(NAME, TYPE)						\
		(void)old;							\
		shmem_barrier_all();						\
		shmem_free(w);							\
	}
#if HAS_TEAMS
#define EXT_NBI(NAME, TYPE)							\
	shmem_##NAME##_atomic_fetch_nbi(&old, w, RIGHT);			\
	shmem_quiet();								\
	CHECK_EQ(old, 15);							\
	shmem_##NAME##_atomic_swap_nbi(&old, w, 16, RIGHT);			\
	shmem_quiet();								\
	CHECK_EQ(old, 15);							\
	shmem_ctx_##NAME##_atomic_fetch_nbi(SHMEM_CTX_DEFAULT, &old, w, RIGHT);	\
	shmem_quiet();								\
	CHECK_EQ(old, 16);							\
	shmem_ctx_##NAME##_atomic_swap_nbi(SHMEM_CTX_DEFAULT, &old, w, 17, RIGHT); \
	shmem_quiet();								\
	CHECK_EQ(old, 16);							\
	shmem_atomic_fetch_nbi(&old, w, RIGHT);					\
	shmem_quiet();								\
	CHECK_EQ(old, 17);							\
	shmem_atomic_swap_nbi(&old, w, 18, RIGHT);				\
	shmem_quiet();								\
	CHECK_EQ(old, 17);
#else
#define EXT_NBI(NAME, TYPE)
#endif
EXT_TYPES(EXT)

#define STD(NAME, TYPE)								\
	PES_TEST(add_inc_cswap_##NAME, 1)					\
	{									\
		TYPE *w = pes_calloc(1, sizeof(*w)), old;			\
										\
		shmem_##NAME##_atomic_add(w, 5, RIGHT);				\
		shmem_ctx_##NAME##_atomic_add(SHMEM_CTX_DEFAULT, w, 5, RIGHT);	\
		shmem_atomic_add(w, 5, RIGHT);					\
		shmem_##NAME##_atomic_inc(w, RIGHT);				\
		shmem_ctx_##NAME##_atomic_inc(SHMEM_CTX_DEFAULT, w, RIGHT);	\
		shmem_atomic_inc(w, RIGHT);					\
		shmem_quiet();							\
		CHECK_EQ(shmem_##NAME##_atomic_fetch_add(w, 2, RIGHT), 18);	\
		CHECK_EQ(shmem_ctx_##NAME##_atomic_fetch_add(SHMEM_CTX_DEFAULT, w, 2, RIGHT), \
			 20);							\
		CHECK_EQ(shmem_atomic_fetch_add(w, 2, RIGHT), 22);		\
		CHECK_EQ(shmem_##NAME##_atomic_fetch_inc(w, RIGHT), 24);	\
		CHECK_EQ(shmem_ctx_##NAME##_atomic_fetch_inc(SHMEM_CTX_DEFAULT, w, RIGHT), 25); \
		CHECK_EQ(shmem_atomic_fetch_inc(w, RIGHT), 26);			\
		CHECK_EQ(shmem_##NAME##_atomic_compare_swap(w, 1, 2, RIGHT), 27); \
		CHECK_EQ(shmem_##NAME##_atomic_compare_swap(w, 27, 30, RIGHT), 27); \
		CHECK_EQ(shmem_ctx_##NAME##_atomic_compare_swap(SHMEM_CTX_DEFAULT, w, 30, 31, \
								RIGHT), 30);	\
		CHECK_EQ(shmem_atomic_compare_swap(w, 31, 32, RIGHT), 31);	\
		STD_NBI(NAME, TYPE)						\
		(void)old;							\
		shmem_barrier_all();						\
		shmem_free(w);							\
	}
#if HAS_TEAMS
#define STD_NBI(NAME, TYPE)							\
	shmem_##NAME##_atomic_fetch_add_nbi(&old, w, 2, RIGHT);			\
	shmem_quiet();								\
	CHECK_EQ(old, 32);							\
	shmem_ctx_##NAME##_atomic_fetch_inc_nbi(SHMEM_CTX_DEFAULT, &old, w, RIGHT); \
	shmem_quiet();								\
	CHECK_EQ(old, 34);							\
	shmem_##NAME##_atomic_compare_swap_nbi(&old, w, 35, 40, RIGHT);		\
	shmem_quiet();								\
	CHECK_EQ(old, 35);							\
	shmem_atomic_fetch_inc_nbi(&old, w, RIGHT);				\
	shmem_quiet();								\
	CHECK_EQ(old, 40);							\
	shmem_atomic_compare_swap_nbi(&old, w, 41, 42, RIGHT);			\
	shmem_quiet();								\
	CHECK_EQ(old, 41);							\
	shmem_atomic_fetch_add_nbi(SHMEM_CTX_DEFAULT, &old, w, 1, RIGHT);	\
	shmem_quiet();								\
	CHECK_EQ(old, 42);
#else
#define STD_NBI(NAME, TYPE)
#endif
STD_TYPES(STD)

#define BITS(NAME, TYPE)							\
	PES_TEST(and_or_xor_##NAME, 1)						\
	{									\
		TYPE *w = pes_calloc(1, sizeof(*w));				\
										\
		shmem_##NAME##_atomic_or(w, 0xff, RIGHT);			\
		shmem_ctx_##NAME##_atomic_and(SHMEM_CTX_DEFAULT, w, 0x3f, RIGHT); \
		shmem_##NAME##_atomic_xor(w, 0x1, RIGHT);			\
		shmem_quiet();							\
		CHECK_EQ(shmem_##NAME##_atomic_fetch_or(w, 0x100, RIGHT), 0x3e); \
		CHECK_EQ(shmem_##NAME##_atomic_fetch_and(w, 0x1ff, RIGHT), 0x13e); \
		CHECK_EQ(shmem_ctx_##NAME##_atomic_fetch_xor(SHMEM_CTX_DEFAULT, w, 0xf, RIGHT), \
			 0x13e);						\
		CHECK_EQ(shmem_##NAME##_atomic_fetch(w, RIGHT), 0x131);		\
		BITS_GENERIC(TYPE)						\
		shmem_barrier_all();						\
		shmem_free(w);							\
	}
#if HAS_TEAMS
#define BITS_GENERIC(TYPE)							\
	TYPE old;								\
										\
	shmem_atomic_and(w, 0xff, RIGHT);					\
	shmem_atomic_or(w, 0x200, RIGHT);					\
	shmem_atomic_xor(SHMEM_CTX_DEFAULT, w, 0x1, RIGHT);			\
	shmem_quiet();								\
	CHECK_EQ(shmem_atomic_fetch_and(w, 0xfff, RIGHT), 0x230);		\
	CHECK_EQ(shmem_atomic_fetch_or(w, 1, RIGHT), 0x230);			\
	CHECK_EQ(shmem_atomic_fetch_xor(w, 1, RIGHT), 0x231);			\
	shmem_atomic_fetch_and_nbi(&old, w, 0xff, RIGHT);			\
	shmem_quiet();								\
	CHECK_EQ(old, 0x230);							\
	shmem_atomic_fetch_or_nbi(&old, w, 1, RIGHT);				\
	shmem_quiet();								\
	CHECK_EQ(old, 0x30);							\
	shmem_atomic_fetch_xor_nbi(&old, w, 1, RIGHT);				\
	shmem_quiet();								\
	CHECK_EQ(old, 0x31);
#else
#define BITS_GENERIC(TYPE)
#endif
#ifndef OSHMEM_MAJOR_VERSION	/* Open MPI's fetch_or() does not change the word */
BIT_TYPES(BITS)
#endif

/* ---- all PEs change one word at once ---- */

#define TOGETHER(NAME, TYPE)							\
	PES_TEST(all_add_to_one_##NAME, 2)					\
	{									\
		TYPE *w = pes_calloc(1, sizeof(*w));				\
										\
		for (int i = 0; i < 200; i++) {					\
			shmem_##NAME##_atomic_add(w, 1, 0);			\
			shmem_##NAME##_atomic_fetch_inc(w, 0);			\
			for (;;) {						\
				TYPE was = shmem_##NAME##_atomic_fetch(w, 0);	\
										\
				if (shmem_##NAME##_atomic_compare_swap(w, was, \
						(TYPE)(was + 1), 0) == was)	\
					break;					\
			}							\
		}								\
		shmem_barrier_all();						\
		CHECK_EQ(shmem_##NAME##_atomic_fetch(w, 0), 600 * n_pes);	\
		shmem_barrier_all();						\
		shmem_free(w);							\
	}
#ifndef OSHMEM_MAJOR_VERSION
TOGETHER(int, int)
#endif
TOGETHER(long, long)

/* ---- the names before 1.4 ---- */

PES_TEST(old_names_of_atomics, 1)
{
	long *w = pes_calloc(1, sizeof(*w));
	double *d = pes_calloc(1, sizeof(*d));

	shmem_long_set(w, 5, RIGHT);
	shmem_quiet();
	CHECK_EQ(shmem_long_fetch(w, RIGHT), 5);
	CHECK_EQ(shmem_long_swap(w, 6, RIGHT), 5);
	CHECK_EQ(shmem_long_cswap(w, 6, 7, RIGHT), 6);
	CHECK_EQ(shmem_long_finc(w, RIGHT), 7);
	shmem_long_inc(w, RIGHT);
	shmem_quiet();
	CHECK_EQ(shmem_long_fadd(w, 3, RIGHT), 9);
	shmem_long_add(w, 4, RIGHT);
	shmem_quiet();
	CHECK_EQ(shmem_swap(w, 1, RIGHT), 16);
	CHECK_EQ(shmem_double_swap(d, 2.0, RIGHT), 0);
	shmem_barrier_all();
	shmem_free(d);
	shmem_free(w);
}

/* ---- waits and tests ---- */

#define WAIT(NAME, TYPE)							\
	PES_TEST(wait_and_test_##NAME, 1)					\
	{									\
		TYPE *w = pes_calloc(4, sizeof(*w));				\
										\
		CHECK(!shmem_##NAME##_test(w, SHMEM_CMP_NE, 0));		\
		shmem_barrier_all();						\
		shmem_##NAME##_p(w, 5, RIGHT);					\
		shmem_##NAME##_wait_until(w, SHMEM_CMP_NE, 0);			\
		shmem_##NAME##_wait_until(w, SHMEM_CMP_EQ, 5);			\
		shmem_##NAME##_wait_until(w, SHMEM_CMP_GT, 4);			\
		shmem_##NAME##_wait_until(w, SHMEM_CMP_GE, 5);			\
		shmem_##NAME##_wait_until(w, SHMEM_CMP_LT, 6);			\
		shmem_##NAME##_wait_until(w, SHMEM_CMP_LE, 5);			\
		CHECK(shmem_##NAME##_test(w, SHMEM_CMP_EQ, 5));			\
		CHECK(!shmem_##NAME##_test(w, SHMEM_CMP_GT, 5));		\
		CHECK(!shmem_##NAME##_test(w, SHMEM_CMP_LT, 5));		\
		CHECK(shmem_test(w, SHMEM_CMP_GE, 5));				\
		/* -1, or the greatest number: Open MPI takes all types as signed */ \
		w[1] = (TYPE)-1;						\
		CHECK_EQ(shmem_##NAME##_test(w + 1, SHMEM_CMP_LT, 0),		\
			 OPEN_MPI || (TYPE)-1 < 1);				\
		CHECK_EQ(shmem_test(w + 1, SHMEM_CMP_GT, 0), !OPEN_MPI && (TYPE)-1 > 1); \
		shmem_barrier_all();						\
		shmem_free(w);							\
	}
WAIT_TYPES(WAIT)

#if HAS_TEAMS
#define WAITS(NAME, TYPE)							\
	PES_TEST(waits_for_several_##NAME, 1)					\
	{									\
		TYPE *w = pes_calloc(4, sizeof(*w)), values[4] = { 1, 1, 9, 1 }; \
		int skip_2[4] = { 0, 0, 1, 0 }, skip[4] = { 1, 1, 1, 1 };	\
		size_t found[4];						\
										\
		CHECK_EQ(shmem_##NAME##_test_any(w, 4, NULL, SHMEM_CMP_NE, 0), SIZE_MAX); \
		CHECK_EQ(shmem_##NAME##_test_some(w, 4, found, NULL, SHMEM_CMP_NE, 0), 0); \
		CHECK(!shmem_##NAME##_test_all(w, 4, NULL, SHMEM_CMP_NE, 0));	\
		CHECK(shmem_##NAME##_test_all(w, 4, skip, SHMEM_CMP_NE, 0));	\
		CHECK_EQ(shmem_##NAME##_wait_until_any(w, 4, skip, SHMEM_CMP_NE, 0), SIZE_MAX); \
		CHECK_EQ(shmem_##NAME##_wait_until_some(w, 4, found, skip, SHMEM_CMP_NE, 0), 0); \
		CHECK_EQ(shmem_##NAME##_wait_until_any(w, 0, NULL, SHMEM_CMP_NE, 0), SIZE_MAX); \
		shmem_##NAME##_wait_until_all(w, 4, skip, SHMEM_CMP_NE, 0);	\
		CHECK(!shmem_##NAME##_test_all_vector(w, 4, NULL, SHMEM_CMP_EQ, values)); \
		CHECK_EQ(shmem_##NAME##_test_any_vector(w, 4, NULL, SHMEM_CMP_EQ, values), \
			 SIZE_MAX);						\
		CHECK_EQ(shmem_##NAME##_test_some_vector(w, 4, found, NULL, SHMEM_CMP_EQ, \
							 values), 0);		\
		shmem_barrier_all();						\
		shmem_##NAME##_p(w + 1, 1, RIGHT);				\
		CHECK_EQ(shmem_##NAME##_wait_until_any(w, 4, NULL, SHMEM_CMP_NE, 0), 1); \
		CHECK_EQ(shmem_##NAME##_wait_until_some(w, 4, found, NULL, SHMEM_CMP_NE, 0), 1); \
		CHECK_EQ(found[0], 1);						\
		CHECK_EQ(shmem_test_any(w, 4, NULL, SHMEM_CMP_EQ, 1), 1);	\
		CHECK_EQ(shmem_##NAME##_wait_until_any_vector(w, 4, NULL, SHMEM_CMP_EQ, values), \
			 1);							\
		CHECK_EQ(shmem_##NAME##_wait_until_some_vector(w, 4, found, NULL, SHMEM_CMP_EQ, \
							       values), 1);	\
		shmem_barrier_all();						\
		shmem_##NAME##_p(w, 1, RIGHT);					\
		shmem_##NAME##_p(w + 3, 1, RIGHT);				\
		shmem_##NAME##_wait_until_all(w, 4, skip_2, SHMEM_CMP_EQ, 1);	\
		shmem_##NAME##_wait_until_all_vector(w, 4, skip_2, SHMEM_CMP_EQ, values); \
		CHECK_EQ(shmem_test_some(w, 4, found, NULL, SHMEM_CMP_EQ, 1), 3); \
		CHECK_EQ(w[2], 0);						\
		shmem_barrier_all();						\
		shmem_##NAME##_p(w + 2, 9, RIGHT);				\
		shmem_wait_until_all_vector(w, 4, NULL, SHMEM_CMP_EQ, values);	\
		CHECK(shmem_test_all_vector(w, 4, NULL, SHMEM_CMP_EQ, values));	\
		CHECK(shmem_test_all(w, 4, NULL, SHMEM_CMP_GE, 1));		\
		CHECK(shmem_test_any_vector(w, 4, NULL, SHMEM_CMP_EQ, values) < 4); \
		CHECK_EQ(shmem_test_some_vector(w, 4, found, NULL, SHMEM_CMP_EQ, values), 4); \
		shmem_barrier_all();						\
		shmem_free(w);							\
	}
WAIT_TYPES(WAITS)
#endif

/* ---- locks ---- */

/*
 * Return a symmetric word that is 0. It is @fixed, except with Open MPI 4.1.4: there a PE
 * executes other PEs' atomics on its static words only in calls that wait for another PE. A PE
 * that tries a lock in its own static memory in a loop would block the other PEs for ever.
 */
static long *word_new(long *fixed)
{
	if (OPEN_MPI)
		return pes_calloc(1, sizeof(*fixed));
	*fixed = 0;
	shmem_barrier_all();
	return fixed;
}

PES_TEST(locks_exclude, 2)
{
	static long fixed[2];
	long *lock = word_new(&fixed[0]), *locked_sum = word_new(&fixed[1]);
	/* PEs of Open MPI never yield: with more PEs than CPUs, a lock changes its owner slowly */
	const int rounds = OPEN_MPI ? 10 : 50;

	for (int i = 0; i < rounds; i++) {
		long sum;

		if (i % 2)
			shmem_set_lock(lock);
		else
			while (shmem_test_lock(lock))
				;
		sum = shmem_long_g(locked_sum, 0);
		shmem_long_p(locked_sum, sum + 1, 0);
		shmem_quiet();
		shmem_clear_lock(lock);
	}
	shmem_barrier_all();
	CHECK_EQ(shmem_long_g(locked_sum, 0), rounds * n_pes);
	shmem_barrier_all();
}

PES_TEST(a_lock_that_is_held_is_busy, 2)
{
	static long fixed;
	long *lock = word_new(&fixed);

	if (!me)
		CHECK_EQ(shmem_test_lock(lock), 0);
	shmem_barrier_all();
	if (me)
		CHECK_EQ(shmem_test_lock(lock), 1);
	shmem_barrier_all();
	if (!me)
		shmem_clear_lock(lock);
	shmem_barrier_all();
}

/* The PE that has the word in its memory serves other PEs' atomics while it tries in a loop. */
PES_TEST(a_pe_that_only_tries_serves_the_others, 2)
{
	static long fixed[2];
	long *lock = word_new(&fixed[0]), *word = word_new(&fixed[1]);
	int last = n_pes - 1;

	if (me == last)
		shmem_set_lock(lock);
	shmem_barrier_all();
	if (me == last) {
		shmem_clear_lock(lock);
		shmem_long_atomic_inc(word, 0);
		shmem_long_atomic_inc(word, 0);
	} else if (!me) {
		while (shmem_test_lock(lock))
			;
		shmem_clear_lock(lock);
		while (!shmem_long_atomic_fetch(word, 0))
			;
		while (shmem_long_atomic_compare_swap(word, 2, 3, 0) != 2)
			;
	}
	shmem_barrier_all();
}

/* A PE that makes no call also serves other PEs' atomics. */
PES_TEST(a_pe_that_computes_serves_the_others, 2)
{
	static long fixed[2];
	long *word = word_new(&fixed[0]), *flag = word_new(&fixed[1]);

	if (me == n_pes - 1) {
		CHECK_EQ(shmem_long_atomic_fetch_add(word, 1, 0), 0);
		shmem_long_p(flag, 1, 0);
	} else if (!me) {
		while (!*(volatile long *)flag)
			;
		CHECK_EQ(*word, 1);
	}
	shmem_barrier_all();
}
