// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * The arithmetic of atomics, as fi_atomic(3) defines it. Integers have all operations, real numbers
 * have no bitwise operations, and complex numbers have no bitwise and no ordered operations.
 */
#include "libsci/ofi/onesided.h"

#include <complex.h>
#include <errno.h>
#include <string.h>

#include "libsci/base/barrier.h"

/* ---- types ---- */

#define TYPES(INT, REAL, COMPLEX)				\
	INT(FI_INT8, int8_t)					\
	INT(FI_UINT8, uint8_t)					\
	INT(FI_INT16, int16_t)					\
	INT(FI_UINT16, uint16_t)				\
	INT(FI_INT32, int32_t)					\
	INT(FI_UINT32, uint32_t)				\
	INT(FI_INT64, int64_t)					\
	INT(FI_UINT64, uint64_t)				\
	REAL(FI_FLOAT, float)					\
	REAL(FI_DOUBLE, double)					\
	COMPLEX(FI_FLOAT_COMPLEX, float complex)		\
	COMPLEX(FI_DOUBLE_COMPLEX, double complex)		\
	REAL(FI_LONG_DOUBLE, long double)			\
	COMPLEX(FI_LONG_DOUBLE_COMPLEX, long double complex)

/* Return the size of a type, or 0 if there is no such type. */
size_t sfi_atomic_size(enum fi_datatype type)
{
#define SIZE(name, c) case name: return sizeof(c);
	switch ((int)type) {
	TYPES(SIZE, SIZE, SIZE)
	default:
		return 0;
	}
#undef SIZE
}

size_t sfi_atomic_align(enum fi_datatype type)
{
#define ALIGN(name, c) case name: return _Alignof(c);
	switch ((int)type) {
	TYPES(ALIGN, ALIGN, ALIGN)
	default:
		return 1;
	}
#undef ALIGN
}

/* ---- valid operations ---- */

enum kind { NONE, INTEGER, REAL, COMPLEX };

static enum kind atomic_kind(enum fi_datatype type)
{
#define IS_INTEGER(name, c) case name: return INTEGER;
#define IS_REAL(name, c) case name: return REAL;
#define IS_COMPLEX(name, c) case name: return COMPLEX;
	switch ((int)type) {
	TYPES(IS_INTEGER, IS_REAL, IS_COMPLEX)
	default:
		return NONE;
	}
}

static bool op_of_verb(enum sfi_verb verb, enum fi_op op)
{
	switch (verb) {
	case SFI_ATOMIC:
		return op <= FI_ATOMIC_WRITE && op != FI_ATOMIC_READ;
	case SFI_FETCH:
		return op <= FI_ATOMIC_WRITE;
	case SFI_COMPARE:
		return op >= FI_CSWAP && op <= FI_MSWAP;
	default:
		return false;
	}
}

static bool type_has_bits(enum fi_op op)
{
	return op == FI_BOR || op == FI_BAND || op == FI_BXOR || op == FI_MSWAP;
}

static bool type_has_order(enum fi_op op)
{
	return op == FI_MIN || op == FI_MAX ||
	       (op >= FI_CSWAP_LE && op <= FI_CSWAP_GT);
}

bool sfi_atomic_valid(enum sfi_verb verb, enum fi_datatype type, enum fi_op op)
{
	enum kind kind = atomic_kind(type);

	return kind != NONE && op_of_verb(verb, op) &&
	       (kind == INTEGER || !type_has_bits(op)) &&
	       (kind != COMPLEX || !type_has_order(op));
}

/* ---- arithmetic ---- */

#define EACH(statement)							\
	for (size_t i = 0; i < n; i++)					\
		statement;						\
	return 0

/*
 * @t: the target; @o: the operand; @c: the comparand. A sum that overflows wraps, so it is
 * computed in the unsigned type @u.
 */
#define ANY_KIND(u)							\
	case FI_SUM:		EACH(t[i] = (u)t[i] + (u)o[i]);		\
	case FI_PROD:		EACH(t[i] = (u)t[i] * (u)o[i]);		\
	case FI_LOR:		EACH(t[i] = t[i] != 0 || o[i] != 0);	\
	case FI_LAND:		EACH(t[i] = t[i] != 0 && o[i] != 0);	\
	case FI_LXOR:		EACH(t[i] = (t[i] != 0) != (o[i] != 0)); \
	case FI_ATOMIC_READ:	return 0;				\
	case FI_ATOMIC_WRITE:	EACH(t[i] = o[i]);			\
	case FI_CSWAP:		EACH(if (c[i] == t[i]) t[i] = o[i]);	\
	case FI_CSWAP_NE:	EACH(if (c[i] != t[i]) t[i] = o[i])

#define ORDERED								\
	case FI_MIN:		EACH(if (o[i] < t[i]) t[i] = o[i]);	\
	case FI_MAX:		EACH(if (o[i] > t[i]) t[i] = o[i]);	\
	case FI_CSWAP_LE:	EACH(if (c[i] <= t[i]) t[i] = o[i]);	\
	case FI_CSWAP_LT:	EACH(if (c[i] < t[i]) t[i] = o[i]);	\
	case FI_CSWAP_GE:	EACH(if (c[i] >= t[i]) t[i] = o[i]);	\
	case FI_CSWAP_GT:	EACH(if (c[i] > t[i]) t[i] = o[i])

#define OF_BITS								\
	case FI_BOR:		EACH(t[i] |= o[i]);			\
	case FI_BAND:		EACH(t[i] &= o[i]);			\
	case FI_BXOR:		EACH(t[i] ^= o[i]);			\
	case FI_MSWAP:		EACH(t[i] = (o[i] & c[i]) | (t[i] & ~c[i]))

#define FUNCTION(name, type, cases)					\
	static int apply_##name(enum fi_op op, type *t, const type *o,	\
				const type *c, size_t n)		\
	{								\
		switch ((int)op) {					\
		cases;							\
		default:						\
			return -EOPNOTSUPP;				\
		}							\
	}

#define JOIN(...) __VA_ARGS__
#define INT_FUNCTION(name, type) \
	FUNCTION(name, type, JOIN(ANY_KIND(uint64_t); ORDERED; OF_BITS))
#define REAL_FUNCTION(name, type) \
	FUNCTION(name, type, JOIN(ANY_KIND(type); ORDERED))
#define COMPLEX_FUNCTION(name, type) \
	FUNCTION(name, type, JOIN(ANY_KIND(type)))

TYPES(INT_FUNCTION, REAL_FUNCTION, COMPLEX_FUNCTION)

static int value_apply(enum fi_datatype type, enum fi_op op, void *target,
		       const void *operand, const void *compare, size_t n)
{
#define APPLY(name, c) \
	case name: return apply_##name(op, target, operand, compare, n);
	switch ((int)type) {
	TYPES(APPLY, APPLY, APPLY)
	default:
		return -EOPNOTSUPP;
	}
}

/* A value of any type. */
struct value {
	_Alignas(long double) char bytes[sizeof(long double complex)];
};

/*
 * Change values of 4 and 8 bytes by locked instructions: peers with direct access may change the
 * same values. An 8-byte value at half its alignment is a complex number of two floats. No peer
 * changes that type directly, so it needs no lock.
 */
#define LOCKED(bits)							\
	static int apply_##bits(enum fi_datatype type, enum fi_op op,	\
				uint##bits##_t *target, const void *operand, \
				const void *compare, void *before)	\
	{								\
		uint##bits##_t old = sci_load_acquire(target), new;	\
		struct value v;						\
		int ret;						\
									\
		do {							\
			memcpy(v.bytes, &old, sizeof(old));		\
			ret = value_apply(type, op, v.bytes, operand, compare, 1); \
			memcpy(&new, v.bytes, sizeof(new));		\
		} while (!ret && new != old &&				\
			 !sci_compare_exchange(target, &old, new));	\
		memcpy(before, &old, sizeof(old));			\
		return ret;						\
	}

LOCKED(32)
LOCKED(64)

/**
 * sfi_atomic_apply() - apply an atomic to @n values of @target
 * @target, @operand, @compare: aligned; the last two may be invalid if the operation does
 *	not use them
 * @before: receives the values before the operation
 *
 * Return: 0; -EOPNOTSUPP: sfi_atomic_valid() is false for this operation.
 */
int sfi_atomic_apply(enum fi_datatype type, enum fi_op op, void *target,
		     const void *operand, const void *compare, void *before,
		     size_t n)
{
	size_t size = sfi_atomic_size(type), i;
	bool locked = (size == 4 || size == 8) && !((uintptr_t)target % size);
	int ret = 0;

	if (!locked) {
		memcpy(before, target, n * size);
		return value_apply(type, op, target, operand, compare, n);
	}
	for (i = 0; i < n * size && !ret; i += size) {
		void *t = (char *)target + i, *b = (char *)before + i;
		const void *o = (const char *)operand + i;
		const void *c = (const char *)compare + i;

		ret = size == 4 ? apply_32(type, op, t, o, c, b) :
				  apply_64(type, op, t, o, c, b);
	}
	return ret;
}

/* ---- atomics that the message layer executes directly ---- */

static bool direct_type(enum fi_datatype type, enum sci_rmw_type *out)
{
	static const struct {
		enum fi_datatype type;
		enum sci_rmw_type rmw;
	} types[] = {
		{ FI_INT32, SCI_RMW_INT32 }, { FI_UINT32, SCI_RMW_UINT32 },
		{ FI_INT64, SCI_RMW_INT64 }, { FI_UINT64, SCI_RMW_UINT64 },
		{ FI_FLOAT, SCI_RMW_FLOAT }, { FI_DOUBLE, SCI_RMW_DOUBLE },
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (types[i].type == type) {
			*out = types[i].rmw;
			return true;
		}
	return false;
}

/*
 * Convert @op. Return false for a compare-and-swap of real numbers, which compares numbers, not
 * bits: +0 equals -0, and no NaN equals itself.
 */
static bool direct_op(enum fi_op op, bool real, enum sci_rmw_op *out)
{
	static const struct {
		enum fi_op op;
		enum sci_rmw_op rmw;
	} ops[] = {
		{ FI_MIN, SCI_RMW_MIN }, { FI_MAX, SCI_RMW_MAX },
		{ FI_SUM, SCI_RMW_ADD }, { FI_BOR, SCI_RMW_OR },
		{ FI_BAND, SCI_RMW_AND }, { FI_BXOR, SCI_RMW_XOR },
		{ FI_ATOMIC_READ, SCI_RMW_READ }, { FI_ATOMIC_WRITE, SCI_RMW_SWAP },
		{ FI_CSWAP, SCI_RMW_COMPARE_SWAP },
	};

	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++)
		if (ops[i].op == op) {
			*out = ops[i].rmw;
			return !real || op != FI_CSWAP;
		}
	return false;
}

/**
 * sfi_atomic_direct() - convert an atomic on one value to an atomic of the message layer
 * @operand, @compare: NULL if the operation has none
 * @rmw: is set on success
 *
 * Return: false if the message layer has no such atomic.
 */
bool sfi_atomic_direct(enum fi_datatype type, enum fi_op op, const void *operand,
		       const void *compare, struct sci_rmw *rmw)
{
	size_t size = sfi_atomic_size(type);

	*rmw = (struct sci_rmw){ .op = SCI_RMW_READ };
	if (!direct_type(type, &rmw->type) ||
	    !direct_op(op, type == FI_FLOAT || type == FI_DOUBLE, &rmw->op))
		return false;
	if (operand)
		memcpy(&rmw->operand, operand, size);
	if (compare)
		memcpy(&rmw->compare, compare, size);
	return true;
}
