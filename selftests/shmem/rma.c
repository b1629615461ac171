// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests each call of memory, put, get and signals, with the right neighbour. */

#include "selftests/shmem/check.h"

#define N	40

/* Types of RMA. The header's table is not used, so that errors in it are found. */
#define TYPES(X)						\
	X(float, float) X(double, double) X(longdouble, long double) X(char, char)	\
	X(schar, signed char) X(short, short) X(int, int) X(long, long)	\
	X(longlong, long long) X(uchar, unsigned char) X(ushort, unsigned short)	\
	X(uint, unsigned int) X(ulong, unsigned long) X(ulonglong, unsigned long long) \
	X(int8, int8_t) X(int16, int16_t) X(int32, int32_t) X(int64, int64_t)	\
	X(uint8, uint8_t) X(uint16, uint16_t) X(uint32, uint32_t) X(uint64, uint64_t) \
	X(size, size_t) X(ptrdiff, ptrdiff_t)

/* ---- static variables are symmetric ---- */

static long zeroed;			/* .bss */
static long given = 4711;		/* .data */
static int table[1000] = { 1, 2, 3 };
long far_away[100000];

PES_TEST(static_variables_are_symmetric, 2)
{
	CHECK_EQ(given, 4711);
	CHECK_EQ(table[2], 3);
	CHECK_EQ(zeroed, 0);
	shmem_barrier_all();
	shmem_long_p(&zeroed, 100 + me, RIGHT);
	shmem_long_p(&given, 200 + me, RIGHT);
	shmem_int_p(&table[999], 300 + me, RIGHT);
	shmem_long_p(&far_away[99999], 400 + me, RIGHT);
	shmem_barrier_all();
	CHECK_EQ(zeroed, 100 + LEFT);
	CHECK_EQ(given, 200 + LEFT);
	CHECK_EQ(table[999], 300 + LEFT);
	CHECK_EQ(far_away[99999], 400 + LEFT);
	CHECK_EQ(shmem_long_g(&given, RIGHT), 200 + me);
	shmem_barrier_all();
	zeroed = 0;
	given = 4711;
}

/* ---- memory ---- */

PES_TEST(allocations_are_symmetric_and_keep_their_bytes, 1)
{
	long *a = shmem_malloc(N * sizeof(long)), *b, *c;

	CHECK(a);
	for (int i = 0; i < N; i++)
		a[i] = me * 1000 + i;
	b = shmem_align(4096, 100000);
	CHECK(b);
	CHECK_EQ((uintptr_t)b % 4096, 0);
	c = shmem_calloc(N, sizeof(*c));
	CHECK(c);
	for (int i = 0; i < N; i++)
		CHECK_EQ(c[i], 0);
	a = shmem_realloc(a, 100 * N * sizeof(long));
	CHECK(a);
	for (int i = 0; i < N; i++)
		CHECK_EQ(a[i], me * 1000 + i);
	shmem_barrier_all();
	for (int i = 0; i < N; i++)
		CHECK_EQ(shmem_long_g(&a[i], RIGHT), RIGHT * 1000 + i);
	CHECK(shmem_addr_accessible(a, RIGHT));
	CHECK(shmem_pe_accessible(RIGHT));
	CHECK(!shmem_pe_accessible(n_pes));
	CHECK_EQ(shmem_ptr(a, me) == a, 1);
	shmem_barrier_all();
	shmem_free(b);
	shmem_free(c);
	shmem_free(a);
#ifndef OSHMEM_MAJOR_VERSION	/* Open MPI returns memory */
	CHECK(!shmem_malloc(0));
#endif
	shmem_free(NULL);
}

PES_TEST(aligned_memory_has_the_same_place_everywhere, 2)
{
	for (size_t align = 8; align <= 2u << 20; align *= 8) {
		long *gap = shmem_malloc(8), *p = shmem_align(align, 8);

		CHECK(p);
		CHECK_EQ((uintptr_t)p % align, 0);
		shmem_long_p(p, 1000 + me, RIGHT);
		shmem_barrier_all();
		CHECK_EQ(*p, 1000 + LEFT);
		shmem_free(p);
		shmem_free(gap);
	}
	CHECK(!shmem_align(3, 8));
}

PES_TEST(old_names_of_memory, 1)
{
	long *a = shmalloc(N * sizeof(*a)), *b = shmemalign(1024, sizeof(*b));

	CHECK(a);
	CHECK(b);
	CHECK_EQ((uintptr_t)b % 1024, 0);
	for (int i = 0; i < N; i++)
		a[i] = me * 1000 + i;
	a = shrealloc(a, 100 * N * sizeof(*a));
	CHECK(a);
	shmem_barrier_all();
	for (int i = 0; i < N; i++)
		CHECK_EQ(shmem_long_g(&a[i], RIGHT), RIGHT * 1000 + i);
	shmem_long_p(b, 7 + me, RIGHT);
	shmem_barrier_all();
	CHECK_EQ(*b, 7 + LEFT);
	shfree(b);
	shfree(a);
}

#if HAS_TEAMS
PES_TEST(allocation_with_hints, 1)
{
	long *p = shmem_malloc_with_hints(64, SHMEM_MALLOC_ATOMICS_REMOTE |
					  SHMEM_MALLOC_SIGNAL_REMOTE);

	CHECK(p);
	shmem_free(p);
}
#endif

/* ---- typed calls ---- */

#define PUT_GET(NAME, TYPE)							\
	PES_TEST(put_get_##NAME, 1)						\
	{									\
		TYPE *s = shmem_malloc(N * sizeof(TYPE)), mine[N], got[N];	\
		shmem_ctx_t ctx;						\
										\
		CHECK_EQ(shmem_ctx_create(0, &ctx), 0);				\
		for (int i = 0; i < N; i++) {					\
			mine[i] = (TYPE)(me * 10 + i);				\
			s[i] = 0;						\
		}								\
		shmem_barrier_all();						\
		shmem_##NAME##_put(s, mine, 4, RIGHT);				\
		shmem_ctx_##NAME##_put(ctx, s + 4, mine + 4, 4, RIGHT);		\
		shmem_##NAME##_put_nbi(s + 8, mine + 8, 4, RIGHT);		\
		shmem_ctx_##NAME##_put_nbi(ctx, s + 12, mine + 12, 4, RIGHT);	\
		shmem_##NAME##_p(s + 16, mine[16], RIGHT);			\
		shmem_ctx_##NAME##_p(ctx, s + 17, mine[17], RIGHT);		\
		/* elements 20, 22, 24 get elements 18, 21, 24 */		\
		shmem_##NAME##_iput(s + 20, mine + 18, 2, 3, 3, RIGHT);		\
		shmem_ctx_##NAME##_iput(ctx, s + 30, mine + 18, 2, 3, 3, RIGHT); \
		shmem_ctx_quiet(ctx);						\
		shmem_barrier_all();						\
		for (int i = 0; i < 18; i++)					\
			CHECK_EQ(s[i], (TYPE)(LEFT * 10 + i));			\
		for (int i = 0; i < 3; i++) {					\
			CHECK_EQ(s[20 + 2 * i], (TYPE)(LEFT * 10 + 18 + 3 * i)); \
			CHECK_EQ(s[30 + 2 * i], (TYPE)(LEFT * 10 + 18 + 3 * i)); \
			CHECK_EQ(s[21 + 2 * i], 0);				\
		}								\
		memset(got, 0, sizeof(got));					\
		shmem_##NAME##_get(got, s, 4, RIGHT);				\
		shmem_ctx_##NAME##_get(ctx, got + 4, s + 4, 4, RIGHT);		\
		shmem_##NAME##_get_nbi(got + 8, s + 8, 4, RIGHT);		\
		shmem_ctx_##NAME##_get_nbi(ctx, got + 12, s + 12, 4, RIGHT);	\
		shmem_quiet();							\
		shmem_ctx_quiet(ctx);						\
		got[16] = shmem_##NAME##_g(s + 16, RIGHT);			\
		got[17] = shmem_ctx_##NAME##_g(ctx, s + 17, RIGHT);		\
		shmem_##NAME##_iget(got + 20, s, 3, 2, 3, RIGHT);		\
		shmem_ctx_##NAME##_iget(ctx, got + 30, s, 3, 2, 3, RIGHT);	\
		for (int i = 0; i < 18; i++)					\
			CHECK_EQ(got[i], (TYPE)(me * 10 + i));			\
		for (int i = 0; i < 3; i++) {					\
			CHECK_EQ(got[20 + 3 * i], (TYPE)(me * 10 + 2 * i));	\
			CHECK_EQ(got[30 + 3 * i], (TYPE)(me * 10 + 2 * i));	\
			CHECK_EQ(got[21 + 3 * i], 0);				\
		}								\
		shmem_ctx_destroy(ctx);						\
		shmem_free(s);							\
	}
TYPES(PUT_GET)

/* ---- calls with a size in their names ---- */

#define SIZED(SIZE, BYTES)							\
	PES_TEST(put_get_##SIZE, 1)						\
	{									\
		enum { B = BYTES };						\
		char *s = shmem_malloc(32 * B), mine[32 * B], got[32 * B];	\
										\
		memset(s, 0, 32 * B);						\
		for (int i = 0; i < 32 * B; i++)				\
			mine[i] = (char)(me + i);				\
		shmem_barrier_all();						\
		shmem_put##SIZE(s, mine, 8, RIGHT);				\
		shmem_ctx_put##SIZE(SHMEM_CTX_DEFAULT, s + 8 * B, mine + 8 * B, 8, RIGHT); \
		shmem_put##SIZE##_nbi(s + 16 * B, mine + 16 * B, 8, RIGHT);	\
		shmem_ctx_put##SIZE##_nbi(SHMEM_CTX_DEFAULT, s + 24 * B, mine + 24 * B, 8, \
					  RIGHT);				\
		shmem_barrier_all();						\
		for (int i = 0; i < 32 * B; i++)				\
			CHECK_EQ(s[i], (char)(LEFT + i));			\
		shmem_get##SIZE(got, s, 8, RIGHT);				\
		shmem_ctx_get##SIZE(SHMEM_CTX_DEFAULT, got + 8 * B, s + 8 * B, 8, RIGHT); \
		shmem_get##SIZE##_nbi(got + 16 * B, s + 16 * B, 8, RIGHT);	\
		shmem_ctx_get##SIZE##_nbi(SHMEM_CTX_DEFAULT, got + 24 * B, s + 24 * B, 8, \
					  RIGHT);				\
		shmem_quiet();							\
		CHECK(!memcmp(got, mine, sizeof(got)));				\
		shmem_barrier_all();						\
		shmem_free(s);							\
	}
SIZED(8, 1)
SIZED(16, 2)
SIZED(32, 4)
SIZED(64, 8)
SIZED(128, 16)
SIZED(mem, 1)

#define SIZED_STRIDED(SIZE, BYTES)						\
	PES_TEST(iput_iget_##SIZE, 1)						\
	{									\
		enum { B = BYTES };						\
		char *s = pes_calloc(32, B), mine[32 * B], got[32 * B];	\
										\
		for (int i = 0; i < 32 * B; i++)				\
			mine[i] = (char)(me + i);				\
		shmem_iput##SIZE(s, mine, 2, 3, 5, RIGHT);			\
		shmem_ctx_iput##SIZE(SHMEM_CTX_DEFAULT, s + 16 * B, mine, 2, 3, 5, RIGHT); \
		shmem_barrier_all();						\
		for (int i = 0; i < 5 * B; i++) {				\
			CHECK_EQ(s[i / B * 2 * B + i % B],			\
				 (char)(LEFT + i / B * 3 * B + i % B));		\
			CHECK_EQ(s[16 * B + i / B * 2 * B + i % B],		\
				 (char)(LEFT + i / B * 3 * B + i % B));		\
		}								\
		shmem_iget##SIZE(got, s, 3, 2, 5, RIGHT);			\
		shmem_ctx_iget##SIZE(SHMEM_CTX_DEFAULT, got + 16 * B, s, 3, 2, 5, RIGHT); \
		for (int i = 0; i < 5 * B; i++) {				\
			CHECK_EQ(got[i / B * 3 * B + i % B], mine[i / B * 3 * B + i % B]); \
			CHECK_EQ(got[16 * B + i / B * 3 * B + i % B],		\
				 mine[i / B * 3 * B + i % B]);			\
		}								\
		shmem_barrier_all();						\
		shmem_free(s);							\
	}
SIZED_STRIDED(8, 1)
SIZED_STRIDED(16, 2)
SIZED_STRIDED(32, 4)
SIZED_STRIDED(64, 8)
SIZED_STRIDED(128, 16)

/* ---- long transfers ---- */

/* SHMEM_TEST_LONGS: the number of longs, for links that lose many packets; default 1 MiB */
PES_TEST(long_data_goes_round, 1)
{
	const char *longs = getenv("SHMEM_TEST_LONGS");
	size_t n = longs ? strtoul(longs, NULL, 0) : 1 << 17;
	long *s = shmem_malloc(n * sizeof(long)), *mine = malloc(n * sizeof(long));

	for (size_t i = 0; i < n; i++)
		mine[i] = (long)i * (me + 1);
	shmem_long_put(s, mine, n, RIGHT);
	shmem_barrier_all();
	for (size_t i = 0; i < n; i++)
		CHECK_EQ(s[i], (long)i * (LEFT + 1));
	memset(mine, 0, n * sizeof(long));
	shmem_long_get_nbi(mine, s, n, RIGHT);
	shmem_quiet();
	for (size_t i = 0; i < n; i++)
		CHECK_EQ(mine[i], (long)i * (me + 1));
	shmem_barrier_all();
	free(mine);
	shmem_free(s);
}

/* ---- order: a flag after the data ---- */

PES_TEST(fence_orders_puts, 2)
{
	long *data = pes_calloc(1000, sizeof(long)), *flag = pes_calloc(1, sizeof(long));
	long mine[1000];

	for (long round = 1; round <= 50; round++) {
		for (int i = 0; i < 1000; i++)
			mine[i] = round * 1000 + me;
		shmem_long_put(data, mine, 1000, RIGHT);
		shmem_fence();
		shmem_long_p(flag, round, RIGHT);
		shmem_long_wait_until(flag, SHMEM_CMP_GE, round);
		for (int i = 0; i < 1000; i++)
			CHECK_EQ(data[i], round * 1000 + LEFT);
		shmem_barrier_all();
	}
	shmem_free(flag);
	shmem_free(data);
}

/* ---- old names of the start and of waits ---- */

PES_TEST(start_pes_after_the_start_changes_nothing, 1)
{
	long *p = pes_calloc(1, sizeof(*p));

	start_pes(0);
	CHECK_EQ(_my_pe(), me);
	CHECK_EQ(_num_pes(), n_pes);
	shmem_long_p(p, 7 + me, RIGHT);
	shmem_barrier_all();
	CHECK_EQ(*p, 7 + LEFT);
	shmem_free(p);
}

#define OLD_WAIT(NAME, TYPE, wait)						\
	PES_TEST(old_##wait, 1)							\
	{									\
		TYPE *word = pes_calloc(1, sizeof(*word));			\
										\
		for (TYPE round = 1; round <= 20; round++) {			\
			shmem_##NAME##_p(word, round, RIGHT);			\
			shmem_##wait(word, round - 1);				\
			CHECK_EQ(*word, round);					\
			shmem_barrier_all();					\
		}								\
		shmem_free(word);						\
	}
OLD_WAIT(short, short, short_wait)
OLD_WAIT(int, int, int_wait)
OLD_WAIT(long, long, long_wait)
OLD_WAIT(longlong, long long, longlong_wait)
OLD_WAIT(long, long, wait)

/* ---- generic calls of C11 ---- */

#define GENERIC(NAME, TYPE)							\
	PES_TEST(generic_##NAME, 1)						\
	{									\
		TYPE *s = pes_calloc(8, sizeof(TYPE)), mine[8] = { 1, 2, 3, 4 }, got[8]; \
		FROM_CONST TYPE *from = s;					\
										\
		shmem_put(s, mine, 2, RIGHT);					\
		shmem_put(SHMEM_CTX_DEFAULT, s + 2, mine + 2, 1, RIGHT);	\
		shmem_p(s + 3, mine[3], RIGHT);					\
		shmem_p(SHMEM_CTX_DEFAULT, s + 4, mine[3], RIGHT);		\
		shmem_put_nbi(s + 5, mine, 1, RIGHT);				\
		shmem_iput(s + 6, mine + 1, 1, 1, 2, RIGHT);			\
		shmem_barrier_all();						\
		shmem_get(got, from, 4, RIGHT);					\
		shmem_get_nbi(SHMEM_CTX_DEFAULT, got + 4, from + 4, 4, RIGHT);	\
		shmem_quiet();							\
		for (int i = 0; i < 4; i++)					\
			CHECK_EQ(got[i], i + 1);				\
		CHECK_EQ(got[4], 4);						\
		CHECK_EQ(got[5], 1);						\
		CHECK_EQ(got[6], 2);						\
		CHECK_EQ(shmem_g(from + 7, RIGHT), 3);				\
		CHECK_EQ(shmem_g(SHMEM_CTX_DEFAULT, from + 1, RIGHT), 2);	\
		shmem_barrier_all();						\
		shmem_free(s);							\
	}
TYPES(GENERIC)

/* ---- put with signal ---- */

#if HAS_TEAMS
#define SIGNAL(NAME, TYPE)							\
	PES_TEST(put_signal_##NAME, 1)						\
	{									\
		TYPE *s = pes_calloc(8, sizeof(TYPE)), mine[8];		\
		uint64_t *sig = pes_calloc(1, sizeof(*sig));			\
										\
		for (int i = 0; i < 8; i++)					\
			mine[i] = (TYPE)(me + i);				\
		shmem_##NAME##_put_signal(s, mine, 2, sig, 1, SHMEM_SIGNAL_ADD, RIGHT); \
		shmem_ctx_##NAME##_put_signal(SHMEM_CTX_DEFAULT, s + 2, mine + 2, 2, sig, \
					      1, SHMEM_SIGNAL_ADD, RIGHT);	\
		shmem_##NAME##_put_signal_nbi(s + 4, mine + 4, 2, sig, 1,	\
					      SHMEM_SIGNAL_ADD, RIGHT);		\
		shmem_ctx_##NAME##_put_signal_nbi(SHMEM_CTX_DEFAULT, s + 6, mine + 6, 2, \
						  sig, 1, SHMEM_SIGNAL_ADD, RIGHT); \
		CHECK_EQ(shmem_signal_wait_until(sig, SHMEM_CMP_EQ, 4), 4);	\
		CHECK_EQ(shmem_signal_fetch(sig), 4);				\
		for (int i = 0; i < 8; i++)					\
			CHECK_EQ(s[i], (TYPE)(LEFT + i));			\
		shmem_put_signal(s, mine, 1, sig, 77, SHMEM_SIGNAL_SET, me);	\
		CHECK_EQ(shmem_signal_wait_until(sig, SHMEM_CMP_GT, 70), 77);	\
		shmem_barrier_all();						\
		shmem_free(sig);						\
		shmem_free(s);							\
	}
TYPES(SIGNAL)

#define SIGNAL_SIZED(SIZE, BYTES)						\
	PES_TEST(put##SIZE##_signal, 1)						\
	{									\
		char *s = pes_calloc(4, BYTES), mine[4 * (BYTES)];		\
		uint64_t *sig = pes_calloc(1, sizeof(*sig));			\
										\
		memset(mine, me + 1, sizeof(mine));				\
		shmem_put##SIZE##_signal(s, mine, 2, sig, 1, SHMEM_SIGNAL_ADD, RIGHT); \
		shmem_put##SIZE##_signal_nbi(s + 2 * (BYTES), mine, 1, sig, 1,	\
					     SHMEM_SIGNAL_ADD, RIGHT);		\
		shmem_ctx_put##SIZE##_signal(SHMEM_CTX_DEFAULT, s + 3 * (BYTES), mine, 1, \
					     sig, 1, SHMEM_SIGNAL_ADD, RIGHT);	\
		CHECK_EQ(shmem_signal_wait_until(sig, SHMEM_CMP_GE, 3), 3);	\
		for (int i = 0; i < 4 * (BYTES); i++)				\
			CHECK_EQ(s[i], LEFT + 1);				\
		shmem_barrier_all();						\
		shmem_free(sig);						\
		shmem_free(s);							\
	}
SIGNAL_SIZED(8, 1)
SIGNAL_SIZED(16, 2)
SIGNAL_SIZED(32, 4)
SIGNAL_SIZED(64, 8)
SIGNAL_SIZED(128, 16)
SIGNAL_SIZED(mem, 1)
#endif

/* ---- contexts ---- */

/* After the quiet of a context, its puts have arrived. */
PES_TEST(contexts_complete_their_own_transfers, 2)
{
	enum { CONTEXTS = 4, WORDS = 1000 };
	static long from[CONTEXTS][WORDS], to[CONTEXTS][WORDS], got[CONTEXTS][WORDS];
	static const long options[CONTEXTS] = {
		0, SHMEM_CTX_SERIALIZED, SHMEM_CTX_PRIVATE, SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE,
	};
	shmem_ctx_t ctx[CONTEXTS];

	for (int c = 0; c < CONTEXTS; c++) {
		CHECK_EQ(shmem_ctx_create(options[c], &ctx[c]), 0);
		for (int i = 0; i < WORDS; i++) {
			from[c][i] = me * 10000 + c * WORDS + i;
			to[c][i] = got[c][i] = -1;
		}
	}
	shmem_barrier_all();
	for (int c = 0; c < CONTEXTS; c++)
		shmem_ctx_long_put_nbi(ctx[c], to[c], from[c], WORDS, RIGHT);
	for (int c = CONTEXTS - 1; c >= 0; c--) {
		shmem_ctx_quiet(ctx[c]);
		shmem_ctx_long_get_nbi(ctx[c], got[c], to[c], WORDS, RIGHT);
		shmem_ctx_quiet(ctx[c]);
		for (int i = 0; i < WORDS; i++)
			CHECK_EQ(got[c][i], from[c][i]);
	}
	/* destroying a context completes its puts */
	for (int c = 0; c < CONTEXTS; c++) {
		shmem_ctx_long_put_nbi(ctx[c], to[c] + 1, from[c], 1, RIGHT);
		shmem_ctx_destroy(ctx[c]);
	}
	shmem_barrier_all();
	for (int c = 0; c < CONTEXTS; c++)
		CHECK_EQ(to[c][1], LEFT * 10000 + c * WORDS);
	shmem_barrier_all();
}
