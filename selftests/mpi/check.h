/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: tests of MPI programs
 *
 *	TEST(a_token_goes_round, 2)
 *	{
 *		...
 *		CHECK_EQ(token, ranks);
 *	}
 *
 *	TEST_MAIN(MPI_THREAD_SINGLE)
 *
 * A file of tests is one program, which mpirun starts.  `program` runs all of
 * them in the order of the file, `program NAME...` (shell patterns) some.  Every
 * rank runs every test, and rank 0 prints TAP.  A test that needs more ranks than
 * there are is skipped.  The first check that fails aborts all ranks.
 */
#ifndef SELFTESTS_MPI_CHECK_H
#define SELFTESTS_MPI_CHECK_H

#include <fnmatch.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_LEN(a)	((int)(sizeof(a) / sizeof((a)[0])))
#define WORLD		MPI_COMM_WORLD

static int rank, ranks;

/* ---- checks ---- */

__attribute__((noreturn, format(printf, 4, 5)))
static inline void check_fail(const char *file, int line, const char *expr,
			      const char *fmt, ...)
{
	char what[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	/* one call, because other ranks may write too */
	fprintf(stderr, "%s:%d: %s: %s [rank %d]\n", file, line, expr, what,
		rank);
	MPI_Abort(WORLD, 1);
	abort();
}

#define CHECK(cond)							\
	do {								\
		if (!(cond))						\
			check_fail(__FILE__, __LINE__, #cond,		\
				   "expected true, got false");		\
	} while (0)

/* Integers of any kind, or doubles that hold integers. */
#define CHECK_EQ(got, want)						\
	do {								\
		long long got_ = (long long)(got);			\
		long long want_ = (long long)(want);			\
		if (got_ != want_)					\
			check_fail(__FILE__, __LINE__, #got,		\
				   "expected %lld, got %lld", want_,	\
				   got_);				\
	} while (0)

/* ---- patterns ---- */

static inline uint8_t pattern_byte(uint32_t seed, size_t at)
{
	uint32_t x = ((uint32_t)at ^ seed * 0x9e3779b1u) * 0x85ebca6bu;

	x ^= x >> 15;
	return (uint8_t)(x * 0xc2b2ae35u >> 24);
}

static inline void pattern_fill(void *buf, size_t len, uint32_t seed)
{
	uint8_t *b = buf;

	for (size_t i = 0; i < len; i++)
		b[i] = pattern_byte(seed, i);
}

static inline void pattern_check(const char *file, int line, const char *expr,
				 const void *buf, size_t len, uint32_t seed)
{
	const uint8_t *b = buf;

	for (size_t i = 0; i < len; i++) {
		uint8_t want = pattern_byte(seed, i);

		if (b[i] != want)
			check_fail(file, line, expr, "expected %#x, got %#x "
				   "at byte %zu of %zu, seed %u", want, b[i],
				   i, len, seed);
	}
}

#define CHECK_PATTERN(buf, len, seed)					\
	pattern_check(__FILE__, __LINE__, #buf, buf, len, seed)

static inline void bytes_check(const char *file, int line, const char *expr,
			       const void *buf, const void *want, size_t len)
{
	const uint8_t *b = buf, *w = want;

	for (size_t i = 0; i < len; i++)
		if (b[i] != w[i])
			check_fail(file, line, expr, "expected %#x, got %#x "
				   "at byte %zu of %zu", w[i], b[i], i, len);
}

#define CHECK_BYTES(buf, want, len)					\
	bytes_check(__FILE__, __LINE__, #buf, buf, want, len)

/* ---- buffers that notice stores beyond either end ---- */

#define GUARD		64
#define BLANK		0xa5

/* Return @len bytes of memory, all BLANK. */
static inline void *buffer_new(size_t len)
{
	uint8_t *mem = malloc(len + 2 * GUARD);

	CHECK(mem);
	memset(mem, BLANK, len + 2 * GUARD);
	memcpy(mem, &len, sizeof(len));
	return mem + GUARD;
}

static inline void *buffer_filled(size_t len, uint32_t seed)
{
	void *buf = buffer_new(len);

	pattern_fill(buf, len, seed);
	return buf;
}

static inline bool is_blank(const void *buf, size_t len)
{
	const uint8_t *b = buf;

	while (len && b[len - 1] == BLANK)
		len--;
	return !len;
}

static inline void buffer_free(void *buf)
{
	uint8_t *mem = (uint8_t *)buf - GUARD;
	size_t len;

	memcpy(&len, mem, sizeof(len));
	CHECK(is_blank(mem + sizeof(len), GUARD - sizeof(len)));
	CHECK(is_blank(mem + GUARD + len, GUARD));
	free(mem);
}

/* ---- tests ---- */

struct test {
	const char *name;
	int needs;
	void (*fn)(void);
	struct test *next;
};

static struct test *tests, **tests_end = &tests;
static const char *skip_why;

static inline void test_register(struct test *t)
{
	*tests_end = t;
	tests_end = &t->next;
}

#define TEST(test_name, ranks_needed)					\
	static void test_##test_name(void);				\
	__attribute__((constructor)) static void reg_##test_name(void)	\
	{								\
		static struct test t = { #test_name, ranks_needed,	\
					 test_##test_name, NULL };	\
									\
		test_register(&t);					\
	}								\
	static void test_##test_name(void)

/* End the test as skipped, on all ranks. */
#define SKIP(why)							\
	do {								\
		skip_why = why;						\
		return;							\
	} while (0)

static inline bool test_chosen(const struct test *t, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!fnmatch(argv[i], t->name, 0))
			return true;
	return argc < 2;
}

static inline void test_run(const struct test *t, int nr)
{
	char needs[32];
	int left;

	skip_why = NULL;
	if (ranks < t->needs) {
		snprintf(needs, sizeof(needs), "needs %d ranks", t->needs);
		skip_why = needs;
	} else {
		t->fn();
	}
	MPI_Barrier(WORLD);
	MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &left,
		   MPI_STATUS_IGNORE);
	CHECK_EQ(left, 0);
	/* wait before any rank sends messages of the next test */
	MPI_Barrier(WORLD);
	if (rank)
		return;
	printf("ok %d - %s%s%s\n", nr, t->name, skip_why ? " # SKIP " : "",
	       skip_why ? skip_why : "");
	fflush(stdout);
}

static inline int test_main(int argc, char **argv, int level)
{
	int given, n = 0, nr = 0;

	MPI_Init_thread(&argc, &argv, level, &given);
	MPI_Comm_rank(WORLD, &rank);
	MPI_Comm_size(WORLD, &ranks);
	for (struct test *t = tests; t; t = t->next)
		n += test_chosen(t, argc, argv);
	if (!rank) {
		printf("TAP version 13\n1..%d\n", n);
		fflush(stdout);
	}
	for (struct test *t = tests; t; t = t->next)
		if (test_chosen(t, argc, argv))
			test_run(t, ++nr);
	MPI_Finalize();
	return 0;
}

/* Define main(). The tests need thread level @level of MPI_Init_thread(). */
#define TEST_MAIN(level)						\
	int main(int argc, char **argv)					\
	{								\
		return test_main(argc, argv, level);			\
	}

#endif
