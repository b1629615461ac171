// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Collective calls of teams, and the deprecated collective calls of active sets.
 *
 * In their first call on an active set, the members make a team of the set, which they keep for
 * later calls. The library does not need pSync and pWrk for synchronisation.
 */

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/shmem/internal.h"

/* ---- calls on a team of libsci ---- */

static void coll_broadcast(const char *call, struct sci_team *team, void *dest,
			   const void *source, size_t len, int root)
{
	if (root < 0 || root >= sci_team_size(team))
		shmem_die(call, "root %d of %d PEs", root, sci_team_size(team));
	shmem_ok(call, sci_team_bcast(team, root, sci_team_rank(team) == root ?
				      (void *)source : dest, len));
}

static void coll_collect(const char *call, struct sci_team *team, void *dest,
			 const void *source, size_t len)
{
	size_t n = (size_t)sci_team_size(team), *lens = malloc(n * sizeof(*lens));

	if (!lens)
		shmem_die(call, "out of memory");
	shmem_ok(call, sci_team_allgather(team, &len, sizeof(len), lens));
	shmem_ok(call, sci_team_allgatherv(team, source, dest, lens, NULL));
	free(lens);
}

/*
 * Each PE stores its elements at their places in the dest arrays of all PEs. By the standard, the
 * program must allow these stores before the first PE makes the call.
 */
static void coll_alltoalls(const char *call, struct sci_team *team, char *dest,
			   const char *source, ptrdiff_t dst, ptrdiff_t sst, size_t size,
			   size_t n)
{
	int me = sci_team_rank(team), pes = sci_team_size(team);

	if (dst < 1 || sst < 1)
		shmem_die(call, "strides of %td and %td: at least 1", dst, sst);
	dst *= (ptrdiff_t)size;
	sst *= (ptrdiff_t)size;
	dest += me * (ptrdiff_t)n * dst;
	for (int i = 1; i <= pes; i++) {
		int pe = (me + i) % pes;

		shmem_ok(call, sci_team_put_strided(team, dest, dst,
						    source + pe * (ptrdiff_t)n * sst, sst,
						    size, n, pe));
	}
	shmem_ok(call, sci_team_quiet(team));
	shmem_ok(call, sci_team_barrier(team));
}

/* ---- teams ---- */

EXPORT void shmem_sync_all(void)
{
	shmem_running(__func__);
	shmem_ok(__func__, sci_team_barrier(shmem.team));
}

EXPORT void shmem_barrier_all(void)
{
	shmem_running(__func__);
	shmem_ok(__func__, sci_team_quiet(shmem.team));
	shmem_ok(__func__, sci_team_barrier(shmem.team));
}

EXPORT int shmem_team_sync(shmem_team_t team)
{
	struct shmem_team_ *t = team_of(team);

	if (!t)
		return -1;
	shmem_ok(__func__, sci_team_barrier(t->team));
	return 0;
}

static int team_broadcast(const char *call, shmem_team_t team, void *dest,
			  const void *source, size_t len, int root)
{
	struct shmem_team_ *t = team_of(team);

	if (!t)
		return -1;
	symmetric_check(call, dest, len);
	symmetric_check(call, source, len);
	coll_broadcast(call, t->team, dest, source, len, root);
	/* by the standard, the root's dest gets the bytes in calls of teams, not of active sets */
	if (t->my_pe == root && dest != source)
		memmove(dest, source, len);
	return 0;
}

static int team_collect(const char *call, shmem_team_t team, void *dest,
			const void *source, size_t len)
{
	struct shmem_team_ *t = team_of(team);

	if (!t)
		return -1;
	coll_collect(call, t->team, dest, source, len);
	return 0;
}

static int team_fcollect(const char *call, shmem_team_t team, void *dest,
			 const void *source, size_t len)
{
	struct shmem_team_ *t = team_of(team);

	if (!t)
		return -1;
	symmetric_check(call, dest, len * (size_t)t->n_pes);
	symmetric_check(call, source, len);
	shmem_ok(call, sci_team_allgather(t->team, source, len, dest));
	return 0;
}

static int team_alltoall(const char *call, shmem_team_t team, void *dest,
			 const void *source, size_t len)
{
	struct shmem_team_ *t = team_of(team);

	if (!t)
		return -1;
	symmetric_check(call, dest, len * (size_t)t->n_pes);
	symmetric_check(call, source, len * (size_t)t->n_pes);
	shmem_ok(call, sci_team_alltoall(t->team, source, dest, len));
	return 0;
}

static int team_alltoalls(const char *call, shmem_team_t team, void *dest,
			  const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t size,
			  size_t n)
{
	struct shmem_team_ *t = team_of(team);

	if (!t)
		return -1;
	coll_alltoalls(call, t->team, dest, source, dst, sst, size, n);
	return 0;
}

#define DEFINE_COLLECTIVES(pre, post, TYPE, SIZE)				\
	EXPORT int shmem_##pre##broadcast##post(shmem_team_t team, TYPE *dest,	\
						const TYPE *source, size_t nelems, \
						int PE_root)			\
	{									\
		return team_broadcast(__func__, team, dest, source, nelems * (SIZE), \
				      PE_root);					\
	}									\
	EXPORT int shmem_##pre##collect##post(shmem_team_t team, TYPE *dest,	\
					      const TYPE *source, size_t nelems) \
	{									\
		return team_collect(__func__, team, dest, source, nelems * (SIZE)); \
	}									\
	EXPORT int shmem_##pre##fcollect##post(shmem_team_t team, TYPE *dest,	\
					       const TYPE *source, size_t nelems) \
	{									\
		return team_fcollect(__func__, team, dest, source, nelems * (SIZE)); \
	}									\
	EXPORT int shmem_##pre##alltoall##post(shmem_team_t team, TYPE *dest,	\
					       const TYPE *source, size_t nelems) \
	{									\
		return team_alltoall(__func__, team, dest, source, nelems * (SIZE)); \
	}									\
	EXPORT int shmem_##pre##alltoalls##post(shmem_team_t team, TYPE *dest,	\
						const TYPE *source, ptrdiff_t dst, \
						ptrdiff_t sst, size_t nelems)	\
	{									\
		return team_alltoalls(__func__, team, dest, source, dst, sst, SIZE, \
				      nelems);					\
	}
#define DEFINE_TYPED(NAME, TYPE, a, b)	DEFINE_COLLECTIVES(NAME##_, , TYPE, sizeof(TYPE))
SHMEM_RMA_TYPES_(DEFINE_TYPED, 0, 0)
DEFINE_COLLECTIVES(, mem, void, 1)

/* ---- reductions ---- */

_Static_assert(sizeof(long) == 8 && sizeof(long long) == 8, "the table of types");

#define TYPE_OF(TYPE)								\
	_Generic((TYPE)0,							\
		 char: CHAR_MIN ? SCI_TYPE_INT8 : SCI_TYPE_UINT8,		\
		 signed char: SCI_TYPE_INT8,	unsigned char: SCI_TYPE_UINT8,	\
		 short: SCI_TYPE_INT16,		unsigned short: SCI_TYPE_UINT16, \
		 int: SCI_TYPE_INT32,		unsigned int: SCI_TYPE_UINT32,	\
		 long: SCI_TYPE_INT64,		unsigned long: SCI_TYPE_UINT64,	\
		 long long: SCI_TYPE_INT64,	unsigned long long: SCI_TYPE_UINT64, \
		 float: SCI_TYPE_FLOAT,		double: SCI_TYPE_DOUBLE,	\
		 long double: SCI_TYPE_LONG_DOUBLE,				\
		 float _Complex: SCI_TYPE_FLOAT_COMPLEX,			\
		 double _Complex: SCI_TYPE_DOUBLE_COMPLEX)

static int team_reduce(const char *call, shmem_team_t team, void *dest,
		       const void *source, size_t n, enum sci_op_kind kind,
		       enum sci_type type)
{
	struct shmem_team_ *t = team_of(team);

	if (!t)
		return -1;
	symmetric_check(call, dest, n * sci_type_size(type));
	symmetric_check(call, source, n * sci_type_size(type));
	shmem_ok(call, sci_team_allreduce(t->team, source, dest, n, sci_op(kind, type)));
	return 0;
}

#define DEFINE_REDUCE(NAME, TYPE, op, OP)					\
	EXPORT int shmem_##NAME##_##op##_reduce(shmem_team_t team, TYPE *dest,	\
						const TYPE *source, size_t nreduce) \
	{									\
		return team_reduce(__func__, team, dest, source, nreduce,	\
				   SCI_OP_##OP, TYPE_OF(TYPE));			\
	}
SHMEM_REDUCE_BIT_TYPES_(DEFINE_REDUCE, and, BAND)
SHMEM_REDUCE_BIT_TYPES_(DEFINE_REDUCE, or, BOR)
SHMEM_REDUCE_BIT_TYPES_(DEFINE_REDUCE, xor, BXOR)
SHMEM_RMA_TYPES_(DEFINE_REDUCE, min, MIN)
SHMEM_RMA_TYPES_(DEFINE_REDUCE, max, MAX)
SHMEM_RMA_TYPES_(DEFINE_REDUCE, sum, SUM)
SHMEM_RMA_TYPES_(DEFINE_REDUCE, prod, PROD)
SHMEM_COMPLEX_TYPES_(DEFINE_REDUCE, sum, SUM)
SHMEM_COMPLEX_TYPES_(DEFINE_REDUCE, prod, PROD)

/* ---- active sets ---- */

struct active_set {
	int start;
	int log_stride;
	int size;
	struct sci_team *team;
	struct active_set *next;
};

static struct active_set *active_sets;

static struct sci_team *active_set_new(const char *call, int start, int log_stride, int size)
{
	struct active_set *s = malloc(sizeof(*s));
	int *ranks = malloc((size_t)size * sizeof(*ranks));

	if (!s || !ranks)
		shmem_die(call, "out of memory");
	for (int i = 0; i < size; i++)
		ranks[i] = start + (i << log_stride);
	*s = (struct active_set){ start, log_stride, size, NULL, active_sets };
	shmem_ok(call, sci_team_create(shmem.team, ranks, size, &s->team));
	free(ranks);
	active_sets = s;
	return s->team;
}

/*
 * Return the team of PEs @start, @start + 2^@log_stride, ... Making the team is a collective call.
 */
static struct sci_team *active_set(const char *call, int start, int log_stride, int size)
{
	int at = shmem.my_pe - start;

	shmem_running(call);
	if (start == 0 && !log_stride && size == shmem.n_pes)
		return shmem.team;
	for (struct active_set *s = active_sets; s; s = s->next)
		if (s->start == start && s->log_stride == log_stride && s->size == size)
			return s->team;
	if (start < 0 || log_stride < 0 || log_stride > 30 || size < 1 ||
	    start + ((long)(size - 1) << log_stride) >= shmem.n_pes)
		shmem_die(call, "no such PEs: %d from PE %d on, each 2^%d-th, of %d", size,
			  start, log_stride, shmem.n_pes);
	if (at < 0 || at >> log_stride >= size || at & ((1 << log_stride) - 1))
		shmem_die(call, "the calling PE is none of the %d PEs from PE %d on, each "
			  "2^%d-th", size, start, log_stride);
	return active_set_new(call, start, log_stride, size);
}

void active_sets_exit(void)
{
	while (active_sets) {
		struct active_set *s = active_sets;

		active_sets = s->next;
		sci_team_close(s->team);
		free(s);
	}
}

#define ACTIVE_SET	active_set(__func__, PE_start, logPE_stride, PE_size)

EXPORT void (shmem_sync)(int PE_start, int logPE_stride, int PE_size, long *pSync)
{
	(void)pSync;
	shmem_ok(__func__, sci_team_barrier(ACTIVE_SET));
}

EXPORT void shmem_barrier(int PE_start, int logPE_stride, int PE_size, long *pSync)
{
	struct sci_team *team = ACTIVE_SET;

	(void)pSync;
	shmem_ok(__func__, sci_team_quiet(team));
	shmem_ok(__func__, sci_team_barrier(team));
}

#define DEFINE_ACTIVE_SET(SIZE, BYTES, a, b)					\
	EXPORT void shmem_broadcast##SIZE(void *dest, const void *source, size_t nelems, \
					  int PE_root, int PE_start, int logPE_stride, \
					  int PE_size, long *pSync)		\
	{									\
		(void)pSync;							\
		coll_broadcast(__func__, ACTIVE_SET, dest, source, nelems * (BYTES), \
			       PE_root);					\
	}									\
	EXPORT void shmem_collect##SIZE(void *dest, const void *source, size_t nelems, \
					int PE_start, int logPE_stride, int PE_size, \
					long *pSync)				\
	{									\
		(void)pSync;							\
		coll_collect(__func__, ACTIVE_SET, dest, source, nelems * (BYTES)); \
	}									\
	EXPORT void shmem_fcollect##SIZE(void *dest, const void *source, size_t nelems, \
					 int PE_start, int logPE_stride, int PE_size, \
					 long *pSync)				\
	{									\
		(void)pSync;							\
		shmem_ok(__func__, sci_team_allgather(ACTIVE_SET, source,	\
						      nelems * (BYTES), dest));	\
	}									\
	EXPORT void shmem_alltoall##SIZE(void *dest, const void *source, size_t nelems, \
					 int PE_start, int logPE_stride, int PE_size, \
					 long *pSync)				\
	{									\
		(void)pSync;							\
		shmem_ok(__func__, sci_team_alltoall(ACTIVE_SET, source, dest,	\
						     nelems * (BYTES)));	\
	}									\
	EXPORT void shmem_alltoalls##SIZE(void *dest, const void *source, ptrdiff_t dst, \
					  ptrdiff_t sst, size_t nelems, int PE_start, \
					  int logPE_stride, int PE_size, long *pSync) \
	{									\
		(void)pSync;							\
		coll_alltoalls(__func__, ACTIVE_SET, dest, source, dst, sst, BYTES, \
			       nelems);						\
	}
DEFINE_ACTIVE_SET(32, 4, 0, 0)
DEFINE_ACTIVE_SET(64, 8, 0, 0)

#define DEFINE_TO_ALL(NAME, TYPE, op, OP)					\
	EXPORT void shmem_##NAME##_##op##_to_all(TYPE *dest, const TYPE *source, \
						 int nreduce, int PE_start,	\
						 int logPE_stride, int PE_size,	\
						 TYPE *pWrk, long *pSync)	\
	{									\
		(void)pWrk;							\
		(void)pSync;							\
		shmem_ok(__func__, sci_team_allreduce(ACTIVE_SET, source, dest,	\
						      (size_t)(nreduce > 0 ? nreduce : 0), \
						      sci_op(SCI_OP_##OP, TYPE_OF(TYPE)))); \
	}
SHMEM_TO_ALL_BIT_TYPES_(DEFINE_TO_ALL, and, BAND)
SHMEM_TO_ALL_BIT_TYPES_(DEFINE_TO_ALL, or, BOR)
SHMEM_TO_ALL_BIT_TYPES_(DEFINE_TO_ALL, xor, BXOR)
SHMEM_TO_ALL_TYPES_(DEFINE_TO_ALL, min, MIN)
SHMEM_TO_ALL_TYPES_(DEFINE_TO_ALL, max, MAX)
SHMEM_TO_ALL_TYPES_(DEFINE_TO_ALL, sum, SUM)
SHMEM_TO_ALL_TYPES_(DEFINE_TO_ALL, prod, PROD)
SHMEM_COMPLEX_TYPES_(DEFINE_TO_ALL, sum, SUM)
SHMEM_COMPLEX_TYPES_(DEFINE_TO_ALL, prod, PROD)
