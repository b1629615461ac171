// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests each call of teams, of contexts of teams, of active sets, and each collective call. */

#include <complex.h>

#include "selftests/shmem/check.h"

#define N	20
#define PES	16			/* greatest number of PEs */

#define BIT_TYPES(X)							\
	X(uchar, unsigned char) X(ushort, unsigned short) X(uint, unsigned int)	\
	X(ulong, unsigned long) X(ulonglong, unsigned long long) X(int8, int8_t)	\
	X(int16, int16_t) X(int32, int32_t) X(int64, int64_t) X(uint8, uint8_t)	\
	X(uint16, uint16_t) X(uint32, uint32_t) X(uint64, uint64_t) X(size, size_t)
#define TYPES(X)							\
	X(float, float) X(double, double) X(longdouble, long double) X(char, char)	\
	X(schar, signed char) X(short, short) X(int, int) X(long, long)	\
	X(longlong, long long) X(ptrdiff, ptrdiff_t) BIT_TYPES(X)
#define SET_TYPES(X)	X(short, short) X(int, int) X(long, long) X(longlong, long long)
#define SET_ALL_TYPES(X)						\
	X(float, float) X(double, double) X(longdouble, long double) SET_TYPES(X)

static long sync_words[SHMEM_COLLECT_SYNC_SIZE + SHMEM_ALLTOALL_SYNC_SIZE +
		       SHMEM_REDUCE_SYNC_SIZE + SHMEM_BCAST_SYNC_SIZE];

/* Return a pSync array that all PEs have initialised. */
static long *psync(void)
{
	shmem_barrier_all();
	for (size_t i = 0; i < ARRAY_LEN(sync_words); i++)
		sync_words[i] = SHMEM_SYNC_VALUE;
	shmem_barrier_all();
	return sync_words;
}

PES_TEST(version_and_name, 1)
{
	char name[SHMEM_MAX_NAME_LEN];
	int major, minor, level;

	shmem_info_get_version(&major, &minor);
	CHECK_EQ(major, SHMEM_MAJOR_VERSION);
	CHECK_EQ(minor, SHMEM_MINOR_VERSION);
	shmem_info_get_name(name);
	CHECK(!strcmp(name, SHMEM_VENDOR_STRING));
	shmem_query_thread(&level);
	CHECK(level >= SHMEM_THREAD_SINGLE && level <= SHMEM_THREAD_MULTIPLE);
	CHECK_EQ(_my_pe(), me);
	CHECK_EQ(_num_pes(), n_pes);
	shmem_set_cache_inv();
	shmem_clear_cache_inv();
	shmem_set_cache_line_inv(sync_words);
	shmem_clear_cache_line_inv(sync_words);
	shmem_udcflush();
	shmem_udcflush_line(sync_words);
	shmem_sync_all();
}

/* ---- active sets ---- */

#define SET(SIZE, TYPE)								\
	PES_TEST(active_set_calls_##SIZE, 1)					\
	{									\
		TYPE *s = shmem_malloc(2 * N * PES * sizeof(TYPE));		\
		TYPE *d = shmem_malloc(2 * N * PES * sizeof(TYPE));		\
										\
		for (int i = 0; i < 2 * N * PES; i++) {				\
			s[i] = (TYPE)(me * 1000 + i);				\
			d[i] = (TYPE)-1;					\
		}								\
		shmem_broadcast##SIZE(d, s, N, 0, 0, 0, n_pes, psync());	\
		shmem_barrier_all();						\
		for (int i = 0; i < N; i++)					\
			CHECK_EQ(d[i], me ? (TYPE)i : (TYPE)-1);		\
		shmem_fcollect##SIZE(d, s, N, 0, 0, n_pes, psync());		\
		for (int i = 0; i < N * n_pes; i++)				\
			CHECK_EQ(d[i], (TYPE)(i / N * 1000 + i % N));		\
		/* PE i gives i + 1 elements */					\
		shmem_collect##SIZE(d, s, (size_t)me + 1, 0, 0, n_pes, psync()); \
		for (int pe = 0, at = 0; pe < n_pes; pe++)			\
			for (int i = 0; i <= pe; i++)				\
				CHECK_EQ(d[at++], (TYPE)(pe * 1000 + i));	\
		shmem_alltoall##SIZE(d, s, 3, 0, 0, n_pes, psync());		\
		for (int i = 0; i < 3 * n_pes; i++)				\
			CHECK_EQ(d[i], (TYPE)(i / 3 * 1000 + me * 3 + i % 3));	\
		shmem_barrier_all();						\
		for (int i = 0; i < 2 * N * PES; i++)				\
			d[i] = (TYPE)-1;					\
		shmem_alltoalls##SIZE(d, s, 2, 3, 2, 0, 0, n_pes, psync());	\
		for (int i = 0; i < 2 * n_pes; i++) {				\
			CHECK_EQ(d[2 * i], (TYPE)(i / 2 * 1000 + (2 * me + i % 2) * 3)); \
			CHECK_EQ(d[2 * i + 1], (TYPE)-1);			\
		}								\
		shmem_barrier_all();						\
		shmem_free(d);							\
		shmem_free(s);							\
	}
SET(32, int32_t)
SET(64, int64_t)

#define TO_ALL(NAME, TYPE, op, first, step)					\
	do {									\
		TYPE *s = shmem_malloc(N * sizeof(TYPE)), want = first(0);	\
		TYPE *d = shmem_malloc(N * sizeof(TYPE));			\
		TYPE *work = shmem_malloc((N + SHMEM_REDUCE_MIN_WRKDATA_SIZE) * sizeof(TYPE)); \
										\
		for (int pe = 1; pe < n_pes; pe++)				\
			want = step(want, first(pe));				\
		for (int i = 0; i < N; i++)					\
			s[i] = first(me);					\
		shmem_##NAME##_##op##_to_all(d, s, N, 0, 0, n_pes, work, psync()); \
		for (int i = 0; i < N; i++)					\
			CHECK_EQ(d[i], want);					\
		shmem_barrier_all();						\
		shmem_free(work);						\
		shmem_free(d);							\
		shmem_free(s);							\
	} while (0)
#define VALUE(pe)	((pe) + 1)
#define FACTOR(pe)	((pe) % 4 == 1 ? 3 : 1)		/* products of 16 PEs fit all types */
#define MASK(pe)	(0x7 ^ (pe))
#define AND(a, b)	((a) & (b))
#define OR(a, b)	((a) | (b))
#define XOR(a, b)	((a) ^ (b))
#define ADD(a, b)	((a) + (b))
#define MUL(a, b)	((a) * (b))
#define LESS(a, b)	((a) < (b) ? (a) : (b))
#define MORE(a, b)	((a) > (b) ? (a) : (b))

#define TO_ALL_BITS(NAME, TYPE)							\
	PES_TEST(bits_to_all_##NAME, 1)						\
	{									\
		TO_ALL(NAME, TYPE, and, MASK, AND);				\
		TO_ALL(NAME, TYPE, or, MASK, OR);				\
		TO_ALL(NAME, TYPE, xor, MASK, XOR);				\
	}
SET_TYPES(TO_ALL_BITS)
#define TO_ALL_NUMBERS(NAME, TYPE)						\
	PES_TEST(numbers_to_all_##NAME, 1)					\
	{									\
		TO_ALL(NAME, TYPE, sum, VALUE, ADD);				\
		TO_ALL(NAME, TYPE, prod, FACTOR, MUL);				\
		TO_ALL(NAME, TYPE, min, VALUE, LESS);				\
		TO_ALL(NAME, TYPE, max, VALUE, MORE);				\
	}
SET_ALL_TYPES(TO_ALL_NUMBERS)
PES_TEST(complex_to_all, 1)
{
	TO_ALL(complexd, double complex, sum, VALUE, ADD);
	TO_ALL(complexf, float complex, prod, FACTOR, MUL);
}

PES_TEST(every_second_pe_is_an_active_set, 2)
{
	long *s = shmem_malloc(sizeof(long)), *d = pes_calloc(PES, sizeof(long));
	long *sync = psync();
	int size = (n_pes + 1) / 2;

	*s = me;
	shmem_barrier_all();
	if (me % 2 == 0) {
		shmem_barrier(0, 1, size, sync);
		shmem_fcollect64(d, s, 1, 0, 1, size, sync + SHMEM_BARRIER_SYNC_SIZE);
		for (int i = 0; i < size; i++)
			CHECK_EQ(d[i], 2 * i);
#if HAS_TEAMS
		shmem_sync(0, 1, size, sync);
#endif
	}
	shmem_barrier_all();
	shmem_free(d);
	shmem_free(s);
}

/* ---- teams ---- */

#if HAS_TEAMS
PES_TEST(predefined_teams, 1)
{
	CHECK_EQ(shmem_team_my_pe(SHMEM_TEAM_WORLD), me);
	CHECK_EQ(shmem_team_n_pes(SHMEM_TEAM_WORLD), n_pes);
	CHECK_EQ(shmem_team_my_pe(SHMEM_TEAM_INVALID), -1);
	CHECK_EQ(shmem_team_n_pes(SHMEM_TEAM_INVALID), -1);
	CHECK(shmem_team_n_pes(SHMEM_TEAM_SHARED) >= 1);
	CHECK_EQ(shmem_team_translate_pe(SHMEM_TEAM_SHARED,
					 shmem_team_my_pe(SHMEM_TEAM_SHARED),
					 SHMEM_TEAM_WORLD), me);
	for (int pe = 0; pe < n_pes; pe++)
		CHECK_EQ(shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe,
						 SHMEM_TEAM_SHARED) >= 0,
			 shmem_ptr(sync_words, pe) != NULL);
	CHECK_EQ(shmem_team_sync(SHMEM_TEAM_WORLD), 0);
	CHECK_EQ(shmem_sync(SHMEM_TEAM_SHARED), 0);
	CHECK(shmem_team_sync(SHMEM_TEAM_INVALID) != 0);
	shmem_team_destroy(SHMEM_TEAM_INVALID);
}

PES_TEST(a_strided_team, 2)
{
	shmem_team_config_t config = { .num_contexts = 3 };
	shmem_team_t odd, none;
	int size = n_pes / 2;

	CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 2, size, &config,
					  SHMEM_TEAM_NUM_CONTEXTS, &odd), 0);
	CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 2, n_pes + 1, NULL, 0,
				       &none) != 0);
	CHECK_EQ(none == SHMEM_TEAM_INVALID, 1);
	CHECK_EQ(odd != SHMEM_TEAM_INVALID, me % 2);
	if (me % 2) {
		shmem_team_config_t got = { 0 };

		CHECK_EQ(shmem_team_my_pe(odd), me / 2);
		CHECK_EQ(shmem_team_n_pes(odd), size);
		CHECK_EQ(shmem_team_get_config(odd, SHMEM_TEAM_NUM_CONTEXTS, &got), 0);
		CHECK_EQ(got.num_contexts, 3);
		CHECK_EQ(shmem_team_translate_pe(odd, 0, SHMEM_TEAM_WORLD), 1);
		CHECK_EQ(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, odd), -1);
		shmem_team_sync(odd);
	}
	shmem_team_destroy(odd);
}

PES_TEST(teams_of_two_dimensions, 1)
{
	shmem_team_t row, column;
	int width = n_pes > 2 ? 2 : 1;

	CHECK_EQ(shmem_team_split_2d(SHMEM_TEAM_WORLD, width, NULL, 0, &row, NULL, 0,
				     &column), 0);
	CHECK_EQ(shmem_team_my_pe(row), me % width);
	CHECK_EQ(shmem_team_my_pe(column), me / width);
	CHECK_EQ(shmem_team_translate_pe(column, 0, SHMEM_TEAM_WORLD), me % width);
	shmem_team_destroy(row);
	shmem_team_destroy(column);
}

PES_TEST(a_context_of_a_team_numbers_its_pes, 2)
{
	long *w = pes_calloc(1, sizeof(long));
	shmem_team_t back, of;
	shmem_ctx_t ctx;

	/* a team of the same PEs in reverse order */
	CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, n_pes - 1, -1, n_pes, NULL, 0,
					  &back), 0);
	CHECK_EQ(shmem_team_my_pe(back), n_pes - 1 - me);
	CHECK_EQ(shmem_team_create_ctx(back, SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE, &ctx), 0);
	CHECK_EQ(shmem_ctx_get_team(ctx, &of), 0);
	CHECK_EQ(of == back, 1);
	shmem_ctx_long_p(ctx, w, 100 + me, me);
	shmem_ctx_fence(ctx);
	shmem_ctx_quiet(ctx);
	shmem_barrier_all();
	CHECK_EQ(*w, 100 + n_pes - 1 - me);
	CHECK_EQ(shmem_ctx_long_g(ctx, w, 0), 100);
	shmem_barrier_all();
	shmem_ctx_destroy(ctx);
	CHECK(shmem_team_create_ctx(SHMEM_TEAM_INVALID, 0, &ctx) != 0);
	CHECK_EQ(ctx == SHMEM_CTX_INVALID, 1);
	CHECK_EQ(shmem_ctx_get_team(SHMEM_CTX_DEFAULT, &of), 0);
	CHECK_EQ(of == SHMEM_TEAM_WORLD, 1);
	shmem_team_destroy(back);
	shmem_free(w);
}

/* ---- collective calls of teams ---- */

#define TEAM_CALLS(NAME, TYPE, pre, post, SIZE)					\
	PES_TEST(team_calls_##NAME, 1)						\
	{									\
		shmem_team_t team = SHMEM_TEAM_WORLD;				\
		TYPE *s = shmem_malloc(2 * N * PES * sizeof(TYPE));		\
		TYPE *d = shmem_malloc(2 * N * PES * sizeof(TYPE));		\
										\
		for (int i = 0; i < 2 * N * PES; i++) {				\
			s[i] = (TYPE)(me * 7 + i);				\
			d[i] = 99;						\
		}								\
		shmem_barrier_all();						\
		CHECK_EQ(shmem_##pre##broadcast##post(team, d, s, N * (SIZE), n_pes - 1), 0); \
		for (int i = 0; i < N; i++)					\
			CHECK_EQ(d[i], (TYPE)((n_pes - 1) * 7 + i));		\
		CHECK_EQ(shmem_##pre##fcollect##post(team, d, s, N * (SIZE)), 0); \
		for (int i = 0; i < N * n_pes; i++)				\
			CHECK_EQ(d[i], (TYPE)(long)(i / N * 7 + i % N));	\
		CHECK_EQ(shmem_##pre##collect##post(team, d, s,			\
						    ((size_t)me + 1) * (SIZE)), 0); \
		for (int pe = 0, at = 0; pe < n_pes; pe++)			\
			for (int i = 0; i <= pe; i++)				\
				CHECK_EQ(d[at++], (TYPE)(pe * 7 + i));		\
		CHECK_EQ(shmem_##pre##alltoall##post(team, d, s, 3 * (SIZE)), 0); \
		for (int i = 0; i < 3 * n_pes; i++)				\
			CHECK_EQ(d[i], (TYPE)(long)(i / 3 * 7 + me * 3 + i % 3)); \
		shmem_barrier_all();						\
		if ((SIZE) == 1) {						\
			CHECK_EQ(shmem_##pre##alltoalls##post(team, d, s, 2, 3, 2), 0); \
			for (int i = 0; i < 2 * n_pes; i++)			\
				CHECK_EQ(d[2 * i],				\
					 (TYPE)(long)(i / 2 * 7 + (2 * me + i % 2) * 3)); \
		}								\
		shmem_barrier_all();						\
		shmem_free(d);							\
		shmem_free(s);							\
	}
#define TEAM_TYPED(NAME, TYPE)	TEAM_CALLS(NAME, TYPE, NAME##_, , 1)
TYPES(TEAM_TYPED)
TEAM_CALLS(mem, long, , mem, sizeof(long))

#define REDUCE(NAME, TYPE, op, first, step)					\
	do {									\
		TYPE *s = shmem_malloc(N * sizeof(TYPE)), want = (TYPE)(first(0)); \
		TYPE *d = shmem_malloc(N * sizeof(TYPE));			\
										\
		for (int pe = 1; pe < n_pes; pe++)				\
			want = (TYPE)(step(want, (TYPE)(first(pe))));		\
		for (int i = 0; i < N; i++)					\
			s[i] = (TYPE)(first(me));				\
		shmem_barrier_all();						\
		CHECK_EQ(shmem_##NAME##_##op##_reduce(SHMEM_TEAM_WORLD, d, s, N), 0); \
		for (int i = 0; i < N; i++)					\
			CHECK_EQ(d[i], want);					\
		/* in place */							\
		CHECK_EQ(shmem_##op##_reduce(SHMEM_TEAM_WORLD, s, s, N), 0);	\
		for (int i = 0; i < N; i++)					\
			CHECK_EQ(s[i], want);					\
		shmem_barrier_all();						\
		shmem_free(d);							\
		shmem_free(s);							\
	} while (0)
#define REDUCE_BITS(NAME, TYPE)							\
	PES_TEST(reduce_bits_##NAME, 1)						\
	{									\
		REDUCE(NAME, TYPE, and, MASK, AND);				\
		REDUCE(NAME, TYPE, or, MASK, OR);				\
		REDUCE(NAME, TYPE, xor, MASK, XOR);				\
	}
BIT_TYPES(REDUCE_BITS)
/* The first value is -1, or the greatest value of an unsigned type. */
#define DOWN(pe)	((pe) - 1)
#define REDUCE_NUMBERS(NAME, TYPE)						\
	PES_TEST(reduce_numbers_##NAME, 1)					\
	{									\
		REDUCE(NAME, TYPE, sum, VALUE, ADD);				\
		REDUCE(NAME, TYPE, prod, FACTOR, MUL);				\
		REDUCE(NAME, TYPE, min, DOWN, LESS);				\
		REDUCE(NAME, TYPE, max, DOWN, MORE);				\
	}
TYPES(REDUCE_NUMBERS)
PES_TEST(reduce_complex, 1)
{
	REDUCE(complexd, double complex, prod, FACTOR, MUL);
	REDUCE(complexf, float complex, sum, VALUE, ADD);
}

PES_TEST(generic_collectives, 1)
{
	long *s = pes_calloc(PES, sizeof(long)), *d = pes_calloc(PES, sizeof(long));

	*s = me;
	CHECK_EQ(shmem_broadcast(SHMEM_TEAM_WORLD, d, s, 1, 0), 0);
	CHECK_EQ(*d, 0);
	CHECK_EQ(shmem_fcollect(SHMEM_TEAM_WORLD, d, s, 1), 0);
	CHECK_EQ(d[n_pes - 1], n_pes - 1);
	CHECK_EQ(shmem_collect(SHMEM_TEAM_WORLD, d, s, 1), 0);
	CHECK_EQ(d[n_pes - 1], n_pes - 1);
	CHECK_EQ(shmem_alltoall(SHMEM_TEAM_WORLD, d, s, 1), 0);
	CHECK_EQ(d[n_pes - 1], me ? 0 : n_pes - 1);
	shmem_barrier_all();
	CHECK_EQ(shmem_alltoalls(SHMEM_TEAM_WORLD, d, s, 1, 1, 1), 0);
	CHECK_EQ(d[n_pes - 1], me ? 0 : n_pes - 1);
	shmem_barrier_all();
	shmem_free(d);
	shmem_free(s);
}
#endif
