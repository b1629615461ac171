// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Operations of reductions. Macros make the functions and their table from a list of types
 * and a list of operations. @in comes from lower ranks: inout = in OP inout.
 */

/* export the functions of the public header; all other functions are hidden */
#pragma GCC visibility push(default)
#include "libsci/include/sci/team.h"
#pragma GCC visibility pop

#include <complex.h>

#define INTEGERS(X)							\
	X(INT8, int8_t) X(INT16, int16_t) X(INT32, int32_t) X(INT64, int64_t) \
	X(UINT8, uint8_t) X(UINT16, uint16_t) X(UINT32, uint32_t) X(UINT64, uint64_t)
#define REALS(X)							\
	X(FLOAT, float) X(DOUBLE, double) X(LONG_DOUBLE, long double)
#define COMPLEX(X)							\
	X(FLOAT_COMPLEX, float complex) X(DOUBLE_COMPLEX, double complex) \
	X(LONG_DOUBLE_COMPLEX, long double complex)
#define PAIRS(X)							\
	X(INT16_INT, int16_t) X(INT32_INT, int32_t) X(INT64_INT, int64_t) \
	X(FLOAT_INT, float) X(DOUBLE_INT, double) X(LONG_DOUBLE_INT, long double)

/* Integers wrap around: they are added and multiplied as unsigned integers. */
#define OP_SUM(in, io)	((in) + (io))
#define OP_PROD(in, io)	((in) * (io))
#define OP_MIN(in, io)	((in) < (io) ? (in) : (io))
#define OP_MAX(in, io)	((in) > (io) ? (in) : (io))
#define OP_LAND(in, io)	((in) && (io))
#define OP_LOR(in, io)	((in) || (io))
#define OP_LXOR(in, io)	(!(in) != !(io))
#define OP_BAND(in, io)	((in) & (io))
#define OP_BOR(in, io)	((in) | (io))
#define OP_BXOR(in, io)	((in) ^ (io))

#define FUNCTION(op, name, type, as)					\
	static void op##_##name(void *inout, const void *in, size_t n, void *arg) \
	{								\
		const type *a = in;					\
		type *b = inout;					\
									\
		(void)arg;						\
		for (size_t i = 0; i < n; i++)				\
			b[i] = (type)OP_##op((as)a[i], (as)b[i]);	\
	}

#define ARITHMETIC_INT(name, type)					\
	FUNCTION(SUM, name, type, uint64_t) FUNCTION(PROD, name, type, uint64_t)
#define ORDERED(name, type)						\
	FUNCTION(MIN, name, type, type) FUNCTION(MAX, name, type, type)
#define ARITHMETIC(name, type)						\
	FUNCTION(SUM, name, type, type) FUNCTION(PROD, name, type, type)
#define BITS(name, type)						\
	FUNCTION(LAND, name, type, type) FUNCTION(LOR, name, type, type) \
	FUNCTION(LXOR, name, type, type) FUNCTION(BAND, name, type, type) \
	FUNCTION(BOR, name, type, type) FUNCTION(BXOR, name, type, type)

#define LOCATION(op, name, less)					\
	static void op##_##name(void *inout, const void *in, size_t n, void *arg) \
	{								\
		const struct name *a = in;				\
		struct name *b = inout;					\
									\
		(void)arg;						\
		for (size_t i = 0; i < n; i++)				\
			if (a[i].value less b[i].value ||		\
			    (a[i].value == b[i].value && a[i].index < b[i].index)) \
				b[i] = a[i];				\
	}
#define PAIR(name, type)						\
	struct name { type value; int index; };				\
	LOCATION(MINLOC, name, <) LOCATION(MAXLOC, name, >)

INTEGERS(ARITHMETIC_INT)
INTEGERS(ORDERED)
INTEGERS(BITS)
REALS(ARITHMETIC)
REALS(ORDERED)
COMPLEX(ARITHMETIC)
PAIRS(PAIR)

#define ENTRY(op, name, type)						\
	[SCI_OP_##op][SCI_TYPE_##name] = { sizeof(type), op##_##name, NULL },
#define ENTRIES_ARITHMETIC(name, type) ENTRY(SUM, name, type) ENTRY(PROD, name, type)
#define ENTRIES_ORDERED(name, type) ENTRY(MIN, name, type) ENTRY(MAX, name, type)
#define ENTRIES_BITS(name, type)					\
	ENTRY(LAND, name, type) ENTRY(LOR, name, type) ENTRY(LXOR, name, type) \
	ENTRY(BAND, name, type) ENTRY(BOR, name, type) ENTRY(BXOR, name, type)
#define ENTRIES_PAIR(name, type)					\
	ENTRY(MINLOC, name, struct name) ENTRY(MAXLOC, name, struct name)

static const struct sci_op ops[SCI_OPS][SCI_TYPES] = {
	INTEGERS(ENTRIES_ARITHMETIC) INTEGERS(ENTRIES_ORDERED) INTEGERS(ENTRIES_BITS)
	REALS(ENTRIES_ARITHMETIC) REALS(ENTRIES_ORDERED)
	COMPLEX(ENTRIES_ARITHMETIC) PAIRS(ENTRIES_PAIR)
};

#define SIZE(name, type)	[SCI_TYPE_##name] = sizeof(type),
#define SIZE_PAIR(name, type)	[SCI_TYPE_##name] = sizeof(struct name),

static const size_t sizes[SCI_TYPES] = {
	INTEGERS(SIZE) REALS(SIZE) COMPLEX(SIZE) PAIRS(SIZE_PAIR)
};

const struct sci_op *sci_op(enum sci_op_kind kind, enum sci_type type)
{
	if ((unsigned int)kind >= SCI_OPS || (unsigned int)type >= SCI_TYPES ||
	    !ops[kind][type].fn)
		return NULL;
	return &ops[kind][type];
}

size_t sci_type_size(enum sci_type type)
{
	return (unsigned int)type < SCI_TYPES ? sizes[type] : 0;
}
