// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Atomic operations. */

#include <string.h>

#include "libsci/shmem/internal.h"

/* Define atomics on a word of type T that loads and stores reach. */
#define WORD_ATOMIC(T, to)							\
	do {									\
		T *word_ = (to), was_ = (T)cond;				\
										\
		switch (op) {							\
		case SCI_ATOMIC_GET:						\
			return __atomic_load_n(word_, __ATOMIC_SEQ_CST);	\
		case SCI_ATOMIC_SET:						\
			return __atomic_exchange_n(word_, (T)value, __ATOMIC_SEQ_CST); \
		case SCI_ATOMIC_ADD:						\
			return __atomic_fetch_add(word_, (T)value, __ATOMIC_SEQ_CST); \
		case SCI_ATOMIC_AND:						\
			return __atomic_fetch_and(word_, (T)value, __ATOMIC_SEQ_CST); \
		case SCI_ATOMIC_OR:						\
			return __atomic_fetch_or(word_, (T)value, __ATOMIC_SEQ_CST); \
		case SCI_ATOMIC_XOR:						\
			return __atomic_fetch_xor(word_, (T)value, __ATOMIC_SEQ_CST); \
		default:							\
			__atomic_compare_exchange_n(word_, &was_, (T)value, false, \
						    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
			return was_;						\
		}								\
	} while (0)

static inline __attribute__((always_inline))
uint64_t word_op(void *to, unsigned int size, enum sci_atomic op, uint64_t value,
		 uint64_t cond)
{
	if (size == 4)
		WORD_ATOMIC(uint32_t, to);
	WORD_ATOMIC(uint64_t, to);
}

/* Make progress: the program may repeat an atomic until another PE has changed the word. */
static inline __attribute__((always_inline)) void word_serve_others(void)
{
	if (unlikely(shmem.serves))
		sci_team_progress(shmem.team);
}

/* Execute an atomic on a word that pe_ptr() does not find. @old: NULL: do not wait for the value */
static __attribute__((noinline, cold))
void word_slow(const char *call, void *dest, unsigned int size, enum sci_atomic op,
	       uint64_t value, uint64_t cond, uint64_t *old, int pe)
{
	void *to = pe_ptr_slow(call, dest, size, pe);

	if (!to) {
		shmem_ok(call, sci_team_atomic(shmem.team, dest, size, op, value, cond,
					       old, pe));
		return;
	}
	value = word_op(to, size, op, value, cond);
	if (old) {
		*old = value;
		word_serve_others();
	}
}

static inline __attribute__((always_inline))
uint64_t word_atomic(const char *call, void *dest, unsigned int size, enum sci_atomic op,
		     uint64_t value, uint64_t cond, int pe)
{
	void *to = pe_ptr(dest, pe);
	uint64_t old;

	if (likely(to)) {
		word_serve_others();
		return word_op(to, size, op, value, cond);
	}
	word_slow(call, dest, size, op, value, cond, &old, pe);
	return old;
}

static inline __attribute__((always_inline))
void word_change(const char *call, void *dest, unsigned int size, enum sci_atomic op,
		 uint64_t value, int pe)
{
	void *to = pe_ptr(dest, pe);

	if (likely(to))
		word_op(to, size, op, value, 0);
	else
		word_slow(call, dest, size, op, value, 0, NULL, pe);
}

/* ---- typed calls ---- */

#define DEFINE_WORDS(NAME, TYPE, a, b)						\
	static inline uint64_t NAME##_word(TYPE value)				\
	{									\
		uint64_t word = 0;						\
										\
		_Static_assert(sizeof(TYPE) == 4 || sizeof(TYPE) == 8, "a word"); \
		memcpy(&word, &value, sizeof(value));				\
		return word;							\
	}									\
	static inline TYPE NAME##_value(uint64_t word)				\
	{									\
		TYPE value;							\
										\
		memcpy(&value, &word, sizeof(value));				\
		return value;							\
	}
SHMEM_AMO_EXT_TYPES_(DEFINE_WORDS, 0, 0)

/*
 * Define three calls, each with a context and without one: @name changes a word, fetch_@name
 * returns the old value, and fetch_@name_nbi stores the old value. The third call waits for the old
 * value, which the standard permits.
 */
#define PARAMS(...)	, __VA_ARGS__
#define DEFINE_CHANGE(NAME, TYPE, name, params, op, value)			\
	EXPORT void shmem_##NAME##_atomic_##name(TYPE *dest params, int pe)	\
	{									\
		word_change(__func__, dest, sizeof(TYPE), op, NAME##_word(value), pe); \
	}									\
	EXPORT void shmem_ctx_##NAME##_atomic_##name(shmem_ctx_t ctx, TYPE *dest params, \
						     int pe)			\
	{									\
		word_change(__func__, dest, sizeof(TYPE), op, NAME##_word(value), \
			    ctx_pe(__func__, ctx, pe));				\
	}
#define DEFINE_FETCH(NAME, TYPE, CONST, name, params, op, value, cond)		\
	EXPORT TYPE shmem_##NAME##_atomic_##name(CONST TYPE *dest params, int pe) \
	{									\
		return NAME##_value(word_atomic(__func__, (void *)dest, sizeof(TYPE), op, \
						NAME##_word(value),		\
						NAME##_word(cond), pe));	\
	}									\
	EXPORT TYPE shmem_ctx_##NAME##_atomic_##name(shmem_ctx_t ctx,		\
						     CONST TYPE *dest params, int pe) \
	{									\
		return NAME##_value(word_atomic(__func__, (void *)dest, sizeof(TYPE), op, \
						NAME##_word(value), NAME##_word(cond), \
						ctx_pe(__func__, ctx, pe)));	\
	}									\
	EXPORT void shmem_##NAME##_atomic_##name##_nbi(TYPE *fetch, CONST TYPE *dest params, \
						       int pe)			\
	{									\
		*fetch = NAME##_value(word_atomic(__func__, (void *)dest, sizeof(TYPE), \
						  op, NAME##_word(value),	\
						  NAME##_word(cond), pe));	\
	}									\
	EXPORT void shmem_ctx_##NAME##_atomic_##name##_nbi(shmem_ctx_t ctx, TYPE *fetch, \
							   CONST TYPE *dest params, int pe) \
	{									\
		*fetch = NAME##_value(word_atomic(__func__, (void *)dest, sizeof(TYPE), \
						  op, NAME##_word(value),	\
						  NAME##_word(cond),		\
						  ctx_pe(__func__, ctx, pe)));	\
	}

#define DEFINE_EXT(NAME, TYPE, a, b)						\
	DEFINE_FETCH(NAME, TYPE, const, fetch, , SCI_ATOMIC_GET, 0, 0)		\
	DEFINE_CHANGE(NAME, TYPE, set, PARAMS(TYPE value), SCI_ATOMIC_SET, value) \
	DEFINE_FETCH(NAME, TYPE, , swap, PARAMS(TYPE value), SCI_ATOMIC_SET, value, 0)
#define DEFINE_STD(NAME, TYPE, a, b)						\
	DEFINE_CHANGE(NAME, TYPE, inc, , SCI_ATOMIC_ADD, 1)			\
	DEFINE_FETCH(NAME, TYPE, , fetch_inc, , SCI_ATOMIC_ADD, 1, 0)		\
	DEFINE_CHANGE(NAME, TYPE, add, PARAMS(TYPE value), SCI_ATOMIC_ADD, value) \
	DEFINE_FETCH(NAME, TYPE, , fetch_add, PARAMS(TYPE value), SCI_ATOMIC_ADD, value, 0) \
	DEFINE_FETCH(NAME, TYPE, , compare_swap, PARAMS(TYPE cond, TYPE value),	\
		     SCI_ATOMIC_CAS, value, cond)
#define DEFINE_BIT(NAME, TYPE, and, AND)					\
	DEFINE_CHANGE(NAME, TYPE, and, PARAMS(TYPE value), SCI_ATOMIC_##AND, value) \
	DEFINE_FETCH(NAME, TYPE, , fetch_##and, PARAMS(TYPE value), SCI_ATOMIC_##AND, \
		     value, 0)
SHMEM_AMO_EXT_TYPES_(DEFINE_EXT, 0, 0)
SHMEM_AMO_TYPES_(DEFINE_STD, 0, 0)
SHMEM_AMO_BIT_TYPES_(DEFINE_BIT, and, AND)
SHMEM_AMO_BIT_TYPES_(DEFINE_BIT, or, OR)
SHMEM_AMO_BIT_TYPES_(DEFINE_BIT, xor, XOR)

/* ---- deprecated names, from before OpenSHMEM 1.4 ---- */

#define DEFINE_OLD_EXT(NAME, TYPE, a, b)					\
	EXPORT TYPE shmem_##NAME##_fetch(const TYPE *source, int pe)		\
	{									\
		return shmem_##NAME##_atomic_fetch(source, pe);			\
	}									\
	EXPORT void shmem_##NAME##_set(TYPE *dest, TYPE value, int pe)		\
	{									\
		shmem_##NAME##_atomic_set(dest, value, pe);			\
	}									\
	EXPORT TYPE shmem_##NAME##_swap(TYPE *dest, TYPE value, int pe)		\
	{									\
		return shmem_##NAME##_atomic_swap(dest, value, pe);		\
	}
#define DEFINE_OLD(NAME, TYPE, a, b)						\
	EXPORT TYPE shmem_##NAME##_cswap(TYPE *dest, TYPE cond, TYPE value, int pe) \
	{									\
		return shmem_##NAME##_atomic_compare_swap(dest, cond, value, pe); \
	}									\
	EXPORT TYPE shmem_##NAME##_finc(TYPE *dest, int pe)			\
	{									\
		return shmem_##NAME##_atomic_fetch_inc(dest, pe);		\
	}									\
	EXPORT void shmem_##NAME##_inc(TYPE *dest, int pe)			\
	{									\
		shmem_##NAME##_atomic_inc(dest, pe);				\
	}									\
	EXPORT TYPE shmem_##NAME##_fadd(TYPE *dest, TYPE value, int pe)		\
	{									\
		return shmem_##NAME##_atomic_fetch_add(dest, value, pe);	\
	}									\
	EXPORT void shmem_##NAME##_add(TYPE *dest, TYPE value, int pe)		\
	{									\
		shmem_##NAME##_atomic_add(dest, value, pe);			\
	}
SHMEM_OLD_AMO_EXT_TYPES_(DEFINE_OLD_EXT, 0, 0)
SHMEM_OLD_AMO_TYPES_(DEFINE_OLD, 0, 0)

EXPORT long (shmem_swap)(long *dest, long value, int pe)
{
	return shmem_long_atomic_swap(dest, value, pe);
}
