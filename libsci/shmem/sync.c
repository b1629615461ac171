// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Waits and tests for words that other PEs change, and distributed locks. */

#include <errno.h>

#include "libsci/shmem/internal.h"

#define SPINS	64			/* loads of a word before a call to the team */

/* Translate SHMEM_CMP_* to SCI_CMP_* of the team. */
static unsigned int cmp_of(const char *call, int cmp, bool is_unsigned)
{
	static const unsigned char of[] = {
		[SHMEM_CMP_EQ] = SCI_CMP_EQ, [SHMEM_CMP_NE] = SCI_CMP_NE,
		[SHMEM_CMP_GT] = SCI_CMP_GT, [SHMEM_CMP_GE] = SCI_CMP_GE,
		[SHMEM_CMP_LT] = SCI_CMP_LT, [SHMEM_CMP_LE] = SCI_CMP_LE,
	};

	if (cmp < SHMEM_CMP_EQ || cmp > SHMEM_CMP_GE)
		shmem_die(call, "%d is no comparison", cmp);
	return of[cmp] | (is_unsigned ? SCI_CMP_UNSIGNED : 0);
}

#define CMP_TRUE(got, cmp, value)						\
	((cmp) == SHMEM_CMP_EQ ? (got) == (value) :				\
	 (cmp) == SHMEM_CMP_NE ? (got) != (value) :				\
	 (cmp) == SHMEM_CMP_GT ? (got) > (value) :				\
	 (cmp) == SHMEM_CMP_LE ? (got) <= (value) :				\
	 (cmp) == SHMEM_CMP_LT ? (got) < (value) :				\
	 (cmp) == SHMEM_CMP_GE && (got) >= (value))

/* Describe words of the same size. @values: a value for each word, or NULL */
static struct sci_words words_of(const char *call, const void *words, size_t n,
				 const int *status, int cmp, bool is_unsigned,
				 uint64_t value, const void *values, unsigned int size)
{
	symmetric_check(call, words, n * size);
	return (struct sci_words){
		.words = words, .n = n, .skip = status, .values = values, .value = value,
		.size = size, .cmp = cmp_of(call, cmp, is_unsigned),
	};
}

/*
 * Return whether a wait or test has succeeded. A failed test has -EAGAIN, and a call without words
 * -ENOENT. Other errors end all PEs.
 */
static bool words_ready(const char *call, int error)
{
	if (error == -EAGAIN || error == -ENOENT)
		return false;
	shmem_ok(call, error);
	return true;
}

static bool words_all(const char *call, const struct sci_words *w, int timeout)
{
	return words_ready(call, sci_team_wait_all(shmem.team, w, timeout));
}

static size_t words_any(const char *call, const struct sci_words *w, int timeout)
{
	size_t index;

	if (!words_ready(call, sci_team_wait_any(shmem.team, w, timeout, &index)))
		return SIZE_MAX;
	return index;
}

static size_t words_some(const char *call, const struct sci_words *w, int timeout,
			 size_t *indices)
{
	size_t found;

	if (!words_ready(call, sci_team_wait_some(shmem.team, w, timeout, indices, &found)))
		return 0;
	return found;
}

static __attribute__((noinline))
void word_wait(const char *call, const void *word, unsigned int size, int cmp,
	       bool is_unsigned, uint64_t value)
{
	symmetric_check(call, word, size);
	shmem_ok(call, sci_team_wait_until(shmem.team, word, size,
					   cmp_of(call, cmp, is_unsigned), value, -1));
}

static __attribute__((noinline))
bool word_test(const char *call, const void *word, unsigned int size, int cmp,
	       bool is_unsigned, uint64_t value)
{
	symmetric_check(call, word, size);
	return words_ready(call, sci_team_wait_until(shmem.team, word, size,
						     cmp_of(call, cmp, is_unsigned),
						     value, 0));
}

/*
 * Define waits for a word. Most words change soon: load the word a few times before the call to the
 * team, which makes progress and sleeps after a while.
 */
#define DEFINE_WAIT(NAME, TYPE, a, b)						\
	static inline void NAME##_wait_until(const char *call, TYPE *ivar, int cmp, \
					     TYPE value)			\
	{									\
		for (int i = 0; i < SPINS; i++) {				\
			TYPE got = __atomic_load_n(ivar, __ATOMIC_ACQUIRE);	\
										\
			if (likely(CMP_TRUE(got, cmp, value)))			\
				return;						\
		}								\
		word_wait(call, ivar, sizeof(TYPE), cmp, (TYPE)-1 > 0, (uint64_t)value); \
	}									\
	EXPORT void shmem_##NAME##_wait_until(TYPE *ivar, int cmp, TYPE cmp_value) \
	{									\
		NAME##_wait_until(__func__, ivar, cmp, cmp_value);		\
	}									\
	EXPORT int shmem_##NAME##_test(TYPE *ivar, int cmp, TYPE cmp_value)	\
	{									\
		TYPE got = __atomic_load_n(ivar, __ATOMIC_ACQUIRE);		\
										\
		return CMP_TRUE(got, cmp, cmp_value) ||				\
		       word_test(__func__, ivar, sizeof(TYPE), cmp, (TYPE)-1 > 0, \
				 (uint64_t)cmp_value);				\
	}
SHMEM_SYNC_TYPES_(DEFINE_WAIT, 0, 0)

/* Define waits and tests for several words, with one value for all or one for each. */
#define WORDS(TYPE, value, values)						\
	words_of(__func__, ivars, nelems, status, cmp, (TYPE)-1 > 0, (uint64_t)(value), \
		 values, sizeof(TYPE))
#define DEFINE_WAITS(NAME, TYPE, tail, params, value, values)			\
	EXPORT void shmem_##NAME##_wait_until_all##tail(TYPE *ivars, size_t nelems, \
							const int *status, int cmp, \
							params)			\
	{									\
		struct sci_words w = WORDS(TYPE, value, values);		\
										\
		words_all(__func__, &w, -1);					\
	}									\
	EXPORT size_t shmem_##NAME##_wait_until_any##tail(TYPE *ivars, size_t nelems, \
							  const int *status, int cmp, \
							  params)		\
	{									\
		struct sci_words w = WORDS(TYPE, value, values);		\
										\
		return words_any(__func__, &w, -1);				\
	}									\
	EXPORT size_t shmem_##NAME##_wait_until_some##tail(TYPE *ivars, size_t nelems, \
							   size_t *indices,	\
							   const int *status, int cmp, \
							   params)		\
	{									\
		struct sci_words w = WORDS(TYPE, value, values);		\
										\
		return words_some(__func__, &w, -1, indices);			\
	}									\
	EXPORT int shmem_##NAME##_test_all##tail(TYPE *ivars, size_t nelems,	\
						 const int *status, int cmp, params) \
	{									\
		struct sci_words w = WORDS(TYPE, value, values);		\
										\
		return words_all(__func__, &w, 0);				\
	}									\
	EXPORT size_t shmem_##NAME##_test_any##tail(TYPE *ivars, size_t nelems,	\
						    const int *status, int cmp, params) \
	{									\
		struct sci_words w = WORDS(TYPE, value, values);		\
										\
		return words_any(__func__, &w, 0);				\
	}									\
	EXPORT size_t shmem_##NAME##_test_some##tail(TYPE *ivars, size_t nelems, \
						     size_t *indices, const int *status, \
						     int cmp, params)		\
	{									\
		struct sci_words w = WORDS(TYPE, value, values);		\
										\
		return words_some(__func__, &w, 0, indices);			\
	}
#define DEFINE_WAITS_BOTH(NAME, TYPE, a, b)					\
	DEFINE_WAITS(NAME, TYPE, , TYPE cmp_value, cmp_value, NULL)		\
	DEFINE_WAITS(NAME, TYPE, _vector, TYPE *cmp_values, 0, cmp_values)
SHMEM_SYNC_TYPES_(DEFINE_WAITS_BOTH, 0, 0)

EXPORT uint64_t shmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t cmp_value)
{
	uint64_t got;

	/* another value may have been stored since: return a value that satisfies the condition */
	do {
		uint64_wait_until(__func__, sig_addr, cmp, cmp_value);
		got = __atomic_load_n(sig_addr, __ATOMIC_ACQUIRE);
	} while (!CMP_TRUE(got, cmp, cmp_value));
	return got;
}

/* ---- deprecated ---- */

#define DEFINE_OLD_WAIT(NAME, TYPE, a, b)					\
	EXPORT void shmem_##NAME##_wait(TYPE *ivar, TYPE cmp_value)		\
	{									\
		NAME##_wait_until(__func__, ivar, SHMEM_CMP_NE, cmp_value);	\
	}
SHMEM_TO_ALL_BIT_TYPES_(DEFINE_OLD_WAIT, 0, 0)

EXPORT void shmem_wait(long *ivar, long cmp_value)
{
	long_wait_until(__func__, ivar, SHMEM_CMP_NE, cmp_value);
}

EXPORT void (shmem_wait_until)(long *ivar, int cmp, long cmp_value)
{
	long_wait_until(__func__, ivar, cmp, cmp_value);
}

/* ---- locks ---- */

_Static_assert(sizeof(long) == sizeof(uint64_t), "the team's locks have 8 bytes");

static bool lock_take(const char *call, long *lock, int timeout)
{
	int err;

	symmetric_check(call, lock, sizeof(*lock));
	err = sci_team_lock(shmem.team, (uint64_t *)lock, timeout);
	if (err == -EAGAIN)
		return false;
	if (err == -EOWNERDEAD)
		shmem_die(call, "the PE that held the lock at %p has died", (void *)lock);
	shmem_ok(call, err);
	return true;
}

EXPORT void shmem_set_lock(long *lock)
{
	lock_take(__func__, lock, -1);
}

EXPORT int shmem_test_lock(long *lock)
{
	return !lock_take(__func__, lock, 0);
}

EXPORT void shmem_clear_lock(long *lock)
{
	int err;

	symmetric_check(__func__, lock, sizeof(*lock));
	err = sci_team_unlock(shmem.team, (uint64_t *)lock);
	if (err == -EPERM)
		shmem_die(__func__, "this PE does not hold the lock at %p", (void *)lock);
	shmem_ok(__func__, err);
}
