/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: OpenSHMEM 1.5
 *
 * The interface is the OpenSHMEM specification, version 1.5, which describes each function.
 * shmem_sci(7) describes the extensions and the limits of this implementation.
 *
 * Rules for all calls:
 *  - PEs are numbered 0 to shmem_n_pes() - 1. Counts are in elements, sizes are in bytes.
 *  - Memory that a call names on another PE must be symmetric: from shmem_malloc(), or a static
 *    variable of the program.
 *  - The shmem_init_thread() level says which threads may make calls. Signal handlers must not
 *    make any of these calls.
 *  - An invalid argument, or the death of a PE, ends the program with a message on standard error,
 *    unless the call can return an error.
 *
 * The header declares the typed functions from tables: a table of types calls a macro once for each
 * of its types. Names that end in an underscore belong to the header. C11 programs get the generic
 * interfaces; C89, C99 and C++ programs call the typed functions.
 */
#ifndef SCI_SHMEM_H
#define SCI_SHMEM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- constants ---- */

#define SHMEM_MAJOR_VERSION		1
#define SHMEM_MINOR_VERSION		5
#define SHMEM_MAX_NAME_LEN		64
#define SHMEM_VENDOR_STRING		"libsci OpenSHMEM"

#define SHMEM_THREAD_SINGLE		0
#define SHMEM_THREAD_FUNNELED		1
#define SHMEM_THREAD_SERIALIZED		2
#define SHMEM_THREAD_MULTIPLE		3

#define SHMEM_CMP_EQ			1
#define SHMEM_CMP_NE			2
#define SHMEM_CMP_GT			3
#define SHMEM_CMP_LE			4
#define SHMEM_CMP_LT			5
#define SHMEM_CMP_GE			6

#define SHMEM_SIGNAL_SET		0
#define SHMEM_SIGNAL_ADD		1

#define SHMEM_CTX_SERIALIZED		(1L << 0)
#define SHMEM_CTX_PRIVATE		(1L << 1)
#define SHMEM_CTX_NOSTORE		(1L << 2)

#define SHMEM_MALLOC_ATOMICS_REMOTE	(1L << 0)
#define SHMEM_MALLOC_SIGNAL_REMOTE	(1L << 1)

#define SHMEM_TEAM_NUM_CONTEXTS		(1L << 0)

/* Active-set collectives: initial value of pSync, and numbers of elements of pSync and pWrk. */
#define SHMEM_SYNC_VALUE		0L
#define SHMEM_SYNC_SIZE			8
#define SHMEM_BARRIER_SYNC_SIZE		SHMEM_SYNC_SIZE
#define SHMEM_BCAST_SYNC_SIZE		SHMEM_SYNC_SIZE
#define SHMEM_COLLECT_SYNC_SIZE		SHMEM_SYNC_SIZE
#define SHMEM_REDUCE_SYNC_SIZE		SHMEM_SYNC_SIZE
#define SHMEM_ALLTOALL_SYNC_SIZE	SHMEM_SYNC_SIZE
#define SHMEM_ALLTOALLS_SYNC_SIZE	SHMEM_SYNC_SIZE
#define SHMEM_REDUCE_MIN_WRKDATA_SIZE	1

/* Deprecated names of OpenSHMEM 1.0. */
#define _SHMEM_MAJOR_VERSION		SHMEM_MAJOR_VERSION
#define _SHMEM_MINOR_VERSION		SHMEM_MINOR_VERSION
#define _SHMEM_MAX_NAME_LEN		SHMEM_MAX_NAME_LEN
#define _SHMEM_VENDOR_STRING		SHMEM_VENDOR_STRING
#define _SHMEM_CMP_EQ			SHMEM_CMP_EQ
#define _SHMEM_CMP_NE			SHMEM_CMP_NE
#define _SHMEM_CMP_GT			SHMEM_CMP_GT
#define _SHMEM_CMP_LE			SHMEM_CMP_LE
#define _SHMEM_CMP_LT			SHMEM_CMP_LT
#define _SHMEM_CMP_GE			SHMEM_CMP_GE
#define _SHMEM_SYNC_VALUE		SHMEM_SYNC_VALUE
#define _SHMEM_BARRIER_SYNC_SIZE	SHMEM_BARRIER_SYNC_SIZE
#define _SHMEM_BCAST_SYNC_SIZE		SHMEM_BCAST_SYNC_SIZE
#define _SHMEM_COLLECT_SYNC_SIZE	SHMEM_COLLECT_SYNC_SIZE
#define _SHMEM_REDUCE_SYNC_SIZE		SHMEM_REDUCE_SYNC_SIZE
#define _SHMEM_ALLTOALL_SYNC_SIZE	SHMEM_ALLTOALL_SYNC_SIZE
#define _SHMEM_ALLTOALLS_SYNC_SIZE	SHMEM_ALLTOALLS_SYNC_SIZE
#define _SHMEM_REDUCE_MIN_WRKDATA_SIZE	SHMEM_REDUCE_MIN_WRKDATA_SIZE

/* ---- handles ---- */

typedef struct shmem_ctx_ *shmem_ctx_t;
typedef struct shmem_team_ *shmem_team_t;

typedef struct {
	int num_contexts;
} shmem_team_config_t;

/* Predefined handles are constants, so that programs can use them in initialisers. */
#define SHMEM_CTX_INVALID	((shmem_ctx_t)0)
#define SHMEM_CTX_DEFAULT	((shmem_ctx_t)1)
#define SHMEM_TEAM_INVALID	((shmem_team_t)0)
#define SHMEM_TEAM_WORLD	((shmem_team_t)1)
#define SHMEM_TEAM_SHARED	((shmem_team_t)2)

/* ---- tables of types: X(NAME, TYPE, a, b), with a and b as the caller likes ---- */

__extension__ typedef long long shmem_longlong_;
__extension__ typedef unsigned long long shmem_ulonglong_;
__extension__ typedef float _Complex shmem_complexf_;
__extension__ typedef double _Complex shmem_complexd_;

/* Types that are distinct in C. */
#define SHMEM_INT_TYPES_(X, a, b)			\
	X(int, int, a, b)				\
	X(long, long, a, b)				\
	X(longlong, shmem_longlong_, a, b)		\
	X(uint, unsigned int, a, b)			\
	X(ulong, unsigned long, a, b)			\
	X(ulonglong, shmem_ulonglong_, a, b)
#define SHMEM_SYNC_C_TYPES_(X, a, b)			\
	X(short, short, a, b)				\
	X(ushort, unsigned short, a, b)			\
	SHMEM_INT_TYPES_(X, a, b)
#define SHMEM_AMO_EXT_C_TYPES_(X, a, b)			\
	X(float, float, a, b)				\
	X(double, double, a, b)				\
	SHMEM_INT_TYPES_(X, a, b)
#define SHMEM_C_TYPES_(X, a, b)				\
	X(float, float, a, b)				\
	X(double, double, a, b)				\
	X(longdouble, long double, a, b)		\
	X(char, char, a, b)				\
	X(schar, signed char, a, b)			\
	X(uchar, unsigned char, a, b)			\
	SHMEM_SYNC_C_TYPES_(X, a, b)

/* Types that have another name in SHMEM_C_TYPES_, too. */
#define SHMEM_INT_ALIASES_(X, a, b)			\
	X(int32, int32_t, a, b)				\
	X(int64, int64_t, a, b)				\
	X(uint32, uint32_t, a, b)			\
	X(uint64, uint64_t, a, b)			\
	X(size, size_t, a, b)				\
	X(ptrdiff, ptrdiff_t, a, b)
#define SHMEM_SMALL_ALIASES_(X, a, b)			\
	X(int8, int8_t, a, b)				\
	X(int16, int16_t, a, b)				\
	X(uint8, uint8_t, a, b)				\
	X(uint16, uint16_t, a, b)

/* Standard RMA types, which are also the types of collectives, and of min and max reductions. */
#define SHMEM_RMA_TYPES_(X, a, b)			\
	SHMEM_C_TYPES_(X, a, b)				\
	SHMEM_SMALL_ALIASES_(X, a, b)			\
	SHMEM_INT_ALIASES_(X, a, b)
/* Types of standard AMOs, of extended AMOs, and of bitwise AMOs. */
#define SHMEM_AMO_TYPES_(X, a, b)			\
	SHMEM_INT_TYPES_(X, a, b)			\
	SHMEM_INT_ALIASES_(X, a, b)
#define SHMEM_AMO_EXT_TYPES_(X, a, b)			\
	SHMEM_AMO_EXT_C_TYPES_(X, a, b)			\
	SHMEM_INT_ALIASES_(X, a, b)
#define SHMEM_AMO_BIT_C_TYPES_(X, a, b)			\
	X(uint, unsigned int, a, b)			\
	X(ulong, unsigned long, a, b)			\
	X(ulonglong, shmem_ulonglong_, a, b)		\
	X(int32, int32_t, a, b)				\
	X(int64, int64_t, a, b)
#define SHMEM_AMO_BIT_TYPES_(X, a, b)			\
	SHMEM_AMO_BIT_C_TYPES_(X, a, b)			\
	X(uint32, uint32_t, a, b)			\
	X(uint64, uint64_t, a, b)
/* Types of waits and tests. */
#define SHMEM_SYNC_TYPES_(X, a, b)			\
	SHMEM_SYNC_C_TYPES_(X, a, b)			\
	SHMEM_INT_ALIASES_(X, a, b)
/* Types of "and", "or" and "xor" reductions, and more types for "sum" and "prod" reductions. */
#define SHMEM_REDUCE_BIT_C_TYPES_(X, a, b)		\
	X(uchar, unsigned char, a, b)			\
	X(ushort, unsigned short, a, b)			\
	X(int8, int8_t, a, b)				\
	X(int16, int16_t, a, b)				\
	SHMEM_AMO_BIT_C_TYPES_(X, a, b)
#define SHMEM_REDUCE_BIT_TYPES_(X, a, b)		\
	SHMEM_REDUCE_BIT_C_TYPES_(X, a, b)		\
	X(uint8, uint8_t, a, b)				\
	X(uint16, uint16_t, a, b)			\
	X(uint32, uint32_t, a, b)			\
	X(uint64, uint64_t, a, b)			\
	X(size, size_t, a, b)
#define SHMEM_COMPLEX_TYPES_(X, a, b)			\
	X(complexf, shmem_complexf_, a, b)		\
	X(complexd, shmem_complexd_, a, b)
/* Types of active-set reductions. */
#define SHMEM_TO_ALL_BIT_TYPES_(X, a, b)		\
	X(short, short, a, b)				\
	X(int, int, a, b)				\
	X(long, long, a, b)				\
	X(longlong, shmem_longlong_, a, b)
#define SHMEM_TO_ALL_TYPES_(X, a, b)			\
	SHMEM_TO_ALL_BIT_TYPES_(X, a, b)		\
	X(float, float, a, b)				\
	X(double, double, a, b)				\
	X(longdouble, long double, a, b)
/* Types of the atomics with names from before OpenSHMEM 1.4. */
#define SHMEM_OLD_AMO_TYPES_(X, a, b)			\
	X(int, int, a, b)				\
	X(long, long, a, b)				\
	X(longlong, shmem_longlong_, a, b)
#define SHMEM_OLD_AMO_EXT_TYPES_(X, a, b)		\
	SHMEM_OLD_AMO_TYPES_(X, a, b)			\
	X(float, float, a, b)				\
	X(double, double, a, b)

/* Sizes in the names of untyped functions: X(SIZE, BYTES, a, b). */
#define SHMEM_SIZES_(X, a, b)				\
	X(8, 1, a, b)					\
	X(16, 2, a, b)					\
	X(32, 4, a, b)					\
	X(64, 8, a, b)					\
	X(128, 16, a, b)

/* ---- start and end ---- */

/*
 * Start the library: all PEs call shmem_init() or shmem_init_thread(), and at the end
 * shmem_finalize(). shmem_init_thread() returns 0 and sets *@provided to the level of threads;
 * not 0: @requested is not a level. shmem_global_exit() ends all PEs.
 */
void shmem_init(void);
int shmem_init_thread(int requested, int *provided);
void shmem_query_thread(int *provided);
void shmem_finalize(void);
void shmem_global_exit(int status);

/* Return the number of the caller's PE, or the number of PEs. */
int shmem_my_pe(void);
int shmem_n_pes(void);

/* Return 1 if calls can reach the PE, or the symmetric address on the PE, else 0. */
int shmem_pe_accessible(int pe);
int shmem_addr_accessible(const void *addr, int pe);

/* Return a pointer to @dest on the PE; NULL: loads and stores do not reach it. */
void *shmem_ptr(const void *dest, int pe);

/* Get the version and the name of this library. @name has room for SHMEM_MAX_NAME_LEN bytes. */
void shmem_info_get_version(int *major, int *minor);
void shmem_info_get_name(char *name);

/* Do nothing. A profiling library may define this function, with its own arguments. */
void shmem_pcontrol(int level, ...);

/* ---- memory ---- */

/*
 * Allocate or free symmetric memory. All PEs must make these calls, with the same arguments, and
 * no call returns before all PEs have called. Return memory that belongs to the program until
 * shmem_free(); NULL: out of memory, or a size of 0.
 */
void *shmem_malloc(size_t size);
void *shmem_calloc(size_t count, size_t size);
void *shmem_align(size_t alignment, size_t size);
void *shmem_malloc_with_hints(size_t size, long hints);
void *shmem_realloc(void *ptr, size_t size);
void shmem_free(void *ptr);

/* ---- teams and contexts ---- */

/* Return a property of a team, or a rank in @dest_team; -1: the PE or the team is not valid. */
int shmem_team_my_pe(shmem_team_t team);
int shmem_team_n_pes(shmem_team_t team);
int shmem_team_get_config(shmem_team_t team, long config_mask,
			  shmem_team_config_t *config);
int shmem_team_translate_pe(shmem_team_t src_team, int src_pe,
			    shmem_team_t dest_team);

/*
 * Make teams of parts of a team. All PEs of the parent must make these calls. A PE that is in no
 * part gets SHMEM_TEAM_INVALID. Return 0, or another value after an error. The program frees a
 * team with shmem_team_destroy(), which all its PEs must call.
 */
int shmem_team_split_strided(shmem_team_t parent, int start, int stride, int size,
			     const shmem_team_config_t *config, long config_mask,
			     shmem_team_t *new_team);
int shmem_team_split_2d(shmem_team_t parent, int xrange,
			const shmem_team_config_t *xaxis_config, long xaxis_mask,
			shmem_team_t *xaxis_team,
			const shmem_team_config_t *yaxis_config, long yaxis_mask,
			shmem_team_t *yaxis_team);
void shmem_team_destroy(shmem_team_t team);

/*
 * Make a context, which orders the transfers that use it. Return 0, or another value after an
 * error. shmem_ctx_destroy() completes the transfers of the context and frees it.
 */
int shmem_ctx_create(long options, shmem_ctx_t *ctx);
int shmem_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t *ctx);
void shmem_ctx_destroy(shmem_ctx_t ctx);
int shmem_ctx_get_team(shmem_ctx_t ctx, shmem_team_t *team);

/* ---- order ---- */

/* Order transfers to each PE: earlier transfers arrive before later transfers. */
void shmem_fence(void);
void shmem_ctx_fence(shmem_ctx_t ctx);

/* Complete all transfers of the caller, or of a context: all PEs then see them. */
void shmem_quiet(void);
void shmem_ctx_quiet(shmem_ctx_t ctx);

/* ---- put and get ---- */

/*
 * Copy to, or from, a PE. When a call returns, the caller may reuse the local memory; after a
 * call with _nbi only when shmem_quiet() has returned. The bytes of a put have arrived after
 * shmem_quiet().
 */
#define SHMEM_DECLARE_PUT_(NAME, TYPE, put, b)				\
	void shmem_##NAME##_##put(TYPE *dest, const TYPE *source,	\
				  size_t nelems, int pe);		\
	void shmem_ctx_##NAME##_##put(shmem_ctx_t ctx, TYPE *dest,	\
				      const TYPE *source, size_t nelems, int pe);
SHMEM_RMA_TYPES_(SHMEM_DECLARE_PUT_, put, 0)
SHMEM_RMA_TYPES_(SHMEM_DECLARE_PUT_, get, 0)
SHMEM_RMA_TYPES_(SHMEM_DECLARE_PUT_, put_nbi, 0)
SHMEM_RMA_TYPES_(SHMEM_DECLARE_PUT_, get_nbi, 0)

#define SHMEM_DECLARE_P_(NAME, TYPE, a, b)				\
	void shmem_##NAME##_p(TYPE *dest, TYPE value, int pe);		\
	void shmem_ctx_##NAME##_p(shmem_ctx_t ctx, TYPE *dest, TYPE value, int pe); \
	TYPE shmem_##NAME##_g(const TYPE *source, int pe);		\
	TYPE shmem_ctx_##NAME##_g(shmem_ctx_t ctx, const TYPE *source, int pe);
SHMEM_RMA_TYPES_(SHMEM_DECLARE_P_, 0, 0)

/*
 * Inline shmem_TYPE_p() and shmem_TYPE_g() store and load directly if shmem_view_ says that the
 * PE's memory is mapped. The view is empty if the library must see each call: before shmem_init(),
 * after shmem_finalize(), with SHMEM_DEBUG, and under a profiling library. A program that defines
 * SHMEM_NO_INLINE before it includes this header has no inline calls.
 */
struct shmem_view_ {
	size_t base;
	size_t len;
	size_t ranks;
	const size_t *shift;
};
extern const struct shmem_view_ *shmem_view_;

#if defined(__GNUC__) && defined(__OPTIMIZE__) && !defined(SHMEM_NO_INLINE)
#define SHMEM_INLINE_	extern __inline__ __attribute__((__gnu_inline__, __always_inline__))

SHMEM_INLINE_ void *shmem_view_ptr_(const void *addr, int pe)
{
	const struct shmem_view_ *v = shmem_view_;
	size_t at = (size_t)addr, r = (size_t)pe;

	if (__builtin_expect(at - v->base < v->len && r < v->ranks && v->shift[r] != 1, 1))
		return (void *)(at + v->shift[r]);
	return NULL;
}

#define SHMEM_INLINE_P_(NAME, TYPE, a, b)				\
	void shmem_##NAME##_p_call_(TYPE *dest, TYPE value, int pe)	\
		__asm__("shmem_" #NAME "_p");				\
	TYPE shmem_##NAME##_g_call_(const TYPE *source, int pe)		\
		__asm__("shmem_" #NAME "_g");				\
	SHMEM_INLINE_ void shmem_##NAME##_p(TYPE *dest, TYPE value, int pe) \
	{								\
		volatile TYPE *to = (volatile TYPE *)shmem_view_ptr_(dest, pe); \
									\
		if (__builtin_expect(to != NULL, 1))			\
			*to = value;					\
		else							\
			shmem_##NAME##_p_call_(dest, value, pe);	\
	}								\
	SHMEM_INLINE_ TYPE shmem_##NAME##_g(const TYPE *source, int pe)	\
	{								\
		const volatile TYPE *from =				\
			(const volatile TYPE *)shmem_view_ptr_(source, pe); \
									\
		if (__builtin_expect(from != NULL, 1))			\
			return *from;					\
		return shmem_##NAME##_g_call_(source, pe);		\
	}
SHMEM_RMA_TYPES_(SHMEM_INLINE_P_, 0, 0)
#endif

/* Copy elements with strides, in elements: @dst in the memory of @dest, @sst in @source. */
#define SHMEM_DECLARE_IPUT_(NAME, TYPE, iput, b)			\
	void shmem_##NAME##_##iput(TYPE *dest, const TYPE *source, ptrdiff_t dst, \
				   ptrdiff_t sst, size_t nelems, int pe); \
	void shmem_ctx_##NAME##_##iput(shmem_ctx_t ctx, TYPE *dest,	\
				       const TYPE *source, ptrdiff_t dst, \
				       ptrdiff_t sst, size_t nelems, int pe);
SHMEM_RMA_TYPES_(SHMEM_DECLARE_IPUT_, iput, 0)
SHMEM_RMA_TYPES_(SHMEM_DECLARE_IPUT_, iget, 0)

#define SHMEM_DECLARE_PUTSIZE_(SIZE, BYTES, put, tail)			\
	void shmem_##put##SIZE##tail(void *dest, const void *source,	\
				     size_t nelems, int pe);		\
	void shmem_ctx_##put##SIZE##tail(shmem_ctx_t ctx, void *dest,	\
					 const void *source, size_t nelems, int pe);
#define SHMEM_DECLARE_IPUTSIZE_(SIZE, BYTES, iput, b)			\
	void shmem_##iput##SIZE(void *dest, const void *source, ptrdiff_t dst, \
				ptrdiff_t sst, size_t nelems, int pe);	\
	void shmem_ctx_##iput##SIZE(shmem_ctx_t ctx, void *dest,	\
				    const void *source, ptrdiff_t dst,	\
				    ptrdiff_t sst, size_t nelems, int pe);
#define SHMEM_DECLARE_PUTSIZE_NBI_(SIZE, BYTES, put, b)			\
	SHMEM_DECLARE_PUTSIZE_(SIZE, BYTES, put, _nbi)
#define SHMEM_DECLARE_PUTSIZE_ALL_(SIZE, BYTES, put, b)			\
	void shmem_##put##SIZE(void *dest, const void *source, size_t nelems, int pe); \
	void shmem_ctx_##put##SIZE(shmem_ctx_t ctx, void *dest,		\
				   const void *source, size_t nelems, int pe); \
	SHMEM_DECLARE_PUTSIZE_NBI_(SIZE, BYTES, put, b)
SHMEM_SIZES_(SHMEM_DECLARE_PUTSIZE_ALL_, put, 0)
SHMEM_SIZES_(SHMEM_DECLARE_PUTSIZE_ALL_, get, 0)
SHMEM_DECLARE_PUTSIZE_ALL_(mem, 1, put, 0)
SHMEM_DECLARE_PUTSIZE_ALL_(mem, 1, get, 0)
SHMEM_SIZES_(SHMEM_DECLARE_IPUTSIZE_, iput, 0)
SHMEM_SIZES_(SHMEM_DECLARE_IPUTSIZE_, iget, 0)

/* ---- put with signal ---- */

/* Put, then change the word at @sig_addr. A PE that sees the new word sees the elements. */
#define SHMEM_DECLARE_SIGNAL_(NAME, TYPE, put_signal, b)		\
	void shmem_##NAME##_##put_signal(TYPE *dest, const TYPE *source, \
					 size_t nelems, uint64_t *sig_addr, \
					 uint64_t signal, int sig_op, int pe); \
	void shmem_ctx_##NAME##_##put_signal(shmem_ctx_t ctx, TYPE *dest, \
					     const TYPE *source, size_t nelems, \
					     uint64_t *sig_addr, uint64_t signal, \
					     int sig_op, int pe);
SHMEM_RMA_TYPES_(SHMEM_DECLARE_SIGNAL_, put_signal, 0)
SHMEM_RMA_TYPES_(SHMEM_DECLARE_SIGNAL_, put_signal_nbi, 0)

#define SHMEM_DECLARE_SIGNAL_SIZE_(SIZE, BYTES, put, signal_nbi)	\
	void shmem_##put##SIZE##_##signal_nbi(void *dest, const void *source, \
					      size_t nelems, uint64_t *sig_addr, \
					      uint64_t signal, int sig_op, int pe); \
	void shmem_ctx_##put##SIZE##_##signal_nbi(shmem_ctx_t ctx, void *dest, \
						  const void *source, size_t nelems, \
						  uint64_t *sig_addr, \
						  uint64_t signal, int sig_op, int pe);
SHMEM_SIZES_(SHMEM_DECLARE_SIGNAL_SIZE_, put, signal)
SHMEM_SIZES_(SHMEM_DECLARE_SIGNAL_SIZE_, put, signal_nbi)
SHMEM_DECLARE_SIGNAL_SIZE_(mem, 1, put, signal)
SHMEM_DECLARE_SIGNAL_SIZE_(mem, 1, put, signal_nbi)

/* Return the value of a signal, at once or when "signal @cmp @cmp_value" is satisfied. */
uint64_t shmem_signal_fetch(const uint64_t *sig_addr);
uint64_t shmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t cmp_value);

/* ---- atomics ---- */

/* Change a word of a PE atomically. A call with a result returns the old value. */
#define SHMEM_DECLARE_AMO_EXT_(NAME, TYPE, a, b)			\
	TYPE shmem_##NAME##_atomic_fetch(const TYPE *source, int pe);	\
	TYPE shmem_ctx_##NAME##_atomic_fetch(shmem_ctx_t ctx,		\
					     const TYPE *source, int pe); \
	void shmem_##NAME##_atomic_fetch_nbi(TYPE *fetch, const TYPE *source, int pe); \
	void shmem_ctx_##NAME##_atomic_fetch_nbi(shmem_ctx_t ctx, TYPE *fetch, \
						 const TYPE *source, int pe); \
	void shmem_##NAME##_atomic_set(TYPE *dest, TYPE value, int pe);	\
	void shmem_ctx_##NAME##_atomic_set(shmem_ctx_t ctx, TYPE *dest,	\
					   TYPE value, int pe);		\
	TYPE shmem_##NAME##_atomic_swap(TYPE *dest, TYPE value, int pe); \
	TYPE shmem_ctx_##NAME##_atomic_swap(shmem_ctx_t ctx, TYPE *dest, \
					    TYPE value, int pe);	\
	void shmem_##NAME##_atomic_swap_nbi(TYPE *fetch, TYPE *dest,	\
					    TYPE value, int pe);	\
	void shmem_ctx_##NAME##_atomic_swap_nbi(shmem_ctx_t ctx, TYPE *fetch, \
						TYPE *dest, TYPE value, int pe);
SHMEM_AMO_EXT_TYPES_(SHMEM_DECLARE_AMO_EXT_, 0, 0)

/* Declare the three forms of an atomic with a value: without result, fetch, and fetch_nbi. */
#define SHMEM_DECLARE_AMO_OP_(NAME, TYPE, add, b)			\
	void shmem_##NAME##_atomic_##add(TYPE *dest, TYPE value, int pe); \
	void shmem_ctx_##NAME##_atomic_##add(shmem_ctx_t ctx, TYPE *dest, \
					     TYPE value, int pe);	\
	TYPE shmem_##NAME##_atomic_fetch_##add(TYPE *dest, TYPE value, int pe); \
	TYPE shmem_ctx_##NAME##_atomic_fetch_##add(shmem_ctx_t ctx, TYPE *dest, \
						   TYPE value, int pe);	\
	void shmem_##NAME##_atomic_fetch_##add##_nbi(TYPE *fetch, TYPE *dest, \
						     TYPE value, int pe); \
	void shmem_ctx_##NAME##_atomic_fetch_##add##_nbi(shmem_ctx_t ctx, \
							 TYPE *fetch, TYPE *dest, \
							 TYPE value, int pe);
SHMEM_AMO_TYPES_(SHMEM_DECLARE_AMO_OP_, add, 0)
SHMEM_AMO_BIT_TYPES_(SHMEM_DECLARE_AMO_OP_, and, 0)
SHMEM_AMO_BIT_TYPES_(SHMEM_DECLARE_AMO_OP_, or, 0)
SHMEM_AMO_BIT_TYPES_(SHMEM_DECLARE_AMO_OP_, xor, 0)

#define SHMEM_DECLARE_AMO_(NAME, TYPE, a, b)				\
	void shmem_##NAME##_atomic_inc(TYPE *dest, int pe);		\
	void shmem_ctx_##NAME##_atomic_inc(shmem_ctx_t ctx, TYPE *dest, int pe); \
	TYPE shmem_##NAME##_atomic_fetch_inc(TYPE *dest, int pe);	\
	TYPE shmem_ctx_##NAME##_atomic_fetch_inc(shmem_ctx_t ctx, TYPE *dest, int pe); \
	void shmem_##NAME##_atomic_fetch_inc_nbi(TYPE *fetch, TYPE *dest, int pe); \
	void shmem_ctx_##NAME##_atomic_fetch_inc_nbi(shmem_ctx_t ctx, TYPE *fetch, \
						     TYPE *dest, int pe); \
	TYPE shmem_##NAME##_atomic_compare_swap(TYPE *dest, TYPE cond,	\
						TYPE value, int pe);	\
	TYPE shmem_ctx_##NAME##_atomic_compare_swap(shmem_ctx_t ctx, TYPE *dest, \
						    TYPE cond, TYPE value, int pe); \
	void shmem_##NAME##_atomic_compare_swap_nbi(TYPE *fetch, TYPE *dest, \
						    TYPE cond, TYPE value, int pe); \
	void shmem_ctx_##NAME##_atomic_compare_swap_nbi(shmem_ctx_t ctx, \
							TYPE *fetch, TYPE *dest, \
							TYPE cond, TYPE value, int pe);
SHMEM_AMO_TYPES_(SHMEM_DECLARE_AMO_, 0, 0)

/* ---- waits and tests ---- */

/*
 * Wait for words of the caller's symmetric memory, or test them. The condition is "word @cmp
 * value". The calls skip words whose @status is not 0. Tests return 1 if the condition is
 * satisfied, else 0. Calls with "any" return the index of a word, or SIZE_MAX for no word. Calls
 * with "some" return the number of @indices that they have set.
 */
#define SHMEM_DECLARE_SYNC_(NAME, TYPE, a, b)				\
	void shmem_##NAME##_wait_until(TYPE *ivar, int cmp, TYPE cmp_value); \
	void shmem_##NAME##_wait_until_all(TYPE *ivars, size_t nelems,	\
					   const int *status, int cmp,	\
					   TYPE cmp_value);		\
	size_t shmem_##NAME##_wait_until_any(TYPE *ivars, size_t nelems, \
					     const int *status, int cmp, \
					     TYPE cmp_value);		\
	size_t shmem_##NAME##_wait_until_some(TYPE *ivars, size_t nelems, \
					      size_t *indices, const int *status, \
					      int cmp, TYPE cmp_value);	\
	void shmem_##NAME##_wait_until_all_vector(TYPE *ivars, size_t nelems, \
						  const int *status, int cmp, \
						  TYPE *cmp_values);	\
	size_t shmem_##NAME##_wait_until_any_vector(TYPE *ivars, size_t nelems, \
						    const int *status, int cmp, \
						    TYPE *cmp_values);	\
	size_t shmem_##NAME##_wait_until_some_vector(TYPE *ivars, size_t nelems, \
						     size_t *indices,	\
						     const int *status, int cmp, \
						     TYPE *cmp_values);	\
	int shmem_##NAME##_test(TYPE *ivar, int cmp, TYPE cmp_value);	\
	int shmem_##NAME##_test_all(TYPE *ivars, size_t nelems, const int *status, \
				    int cmp, TYPE cmp_value);		\
	size_t shmem_##NAME##_test_any(TYPE *ivars, size_t nelems,	\
				       const int *status, int cmp, TYPE cmp_value); \
	size_t shmem_##NAME##_test_some(TYPE *ivars, size_t nelems,	\
					size_t *indices, const int *status, \
					int cmp, TYPE cmp_value);	\
	int shmem_##NAME##_test_all_vector(TYPE *ivars, size_t nelems,	\
					   const int *status, int cmp,	\
					   TYPE *cmp_values);		\
	size_t shmem_##NAME##_test_any_vector(TYPE *ivars, size_t nelems, \
					      const int *status, int cmp, \
					      TYPE *cmp_values);	\
	size_t shmem_##NAME##_test_some_vector(TYPE *ivars, size_t nelems, \
					       size_t *indices, const int *status, \
					       int cmp, TYPE *cmp_values);
SHMEM_SYNC_TYPES_(SHMEM_DECLARE_SYNC_, 0, 0)

/* ---- collectives ---- */

/*
 * All PEs of the team must make these calls in the same order, with the same counts, except for
 * collect. @dest and @source are symmetric and must not overlap, except that a reduction may be in
 * place. Return 0, or another value after an error.
 */
void shmem_barrier_all(void);
void shmem_sync_all(void);
int shmem_team_sync(shmem_team_t team);

#define SHMEM_DECLARE_COLLECTIVES_(NAME, TYPE, a, b)			\
	int shmem_##NAME##_broadcast(shmem_team_t team, TYPE *dest,	\
				     const TYPE *source, size_t nelems,	\
				     int PE_root);			\
	int shmem_##NAME##_collect(shmem_team_t team, TYPE *dest,	\
				   const TYPE *source, size_t nelems);	\
	int shmem_##NAME##_fcollect(shmem_team_t team, TYPE *dest,	\
				    const TYPE *source, size_t nelems);	\
	int shmem_##NAME##_alltoall(shmem_team_t team, TYPE *dest,	\
				    const TYPE *source, size_t nelems);	\
	int shmem_##NAME##_alltoalls(shmem_team_t team, TYPE *dest,	\
				     const TYPE *source, ptrdiff_t dst,	\
				     ptrdiff_t sst, size_t nelems);
SHMEM_RMA_TYPES_(SHMEM_DECLARE_COLLECTIVES_, 0, 0)

int shmem_broadcastmem(shmem_team_t team, void *dest, const void *source,
		       size_t nelems, int PE_root);
int shmem_collectmem(shmem_team_t team, void *dest, const void *source, size_t nelems);
int shmem_fcollectmem(shmem_team_t team, void *dest, const void *source, size_t nelems);
int shmem_alltoallmem(shmem_team_t team, void *dest, const void *source, size_t nelems);
int shmem_alltoallsmem(shmem_team_t team, void *dest, const void *source,
		       ptrdiff_t dst, ptrdiff_t sst, size_t nelems);

#define SHMEM_DECLARE_REDUCE_(NAME, TYPE, sum, b)			\
	int shmem_##NAME##_##sum##_reduce(shmem_team_t team, TYPE *dest, \
					  const TYPE *source, size_t nreduce);
SHMEM_REDUCE_BIT_TYPES_(SHMEM_DECLARE_REDUCE_, and, 0)
SHMEM_REDUCE_BIT_TYPES_(SHMEM_DECLARE_REDUCE_, or, 0)
SHMEM_REDUCE_BIT_TYPES_(SHMEM_DECLARE_REDUCE_, xor, 0)
SHMEM_RMA_TYPES_(SHMEM_DECLARE_REDUCE_, min, 0)
SHMEM_RMA_TYPES_(SHMEM_DECLARE_REDUCE_, max, 0)
SHMEM_RMA_TYPES_(SHMEM_DECLARE_REDUCE_, sum, 0)
SHMEM_RMA_TYPES_(SHMEM_DECLARE_REDUCE_, prod, 0)
SHMEM_COMPLEX_TYPES_(SHMEM_DECLARE_REDUCE_, sum, 0)
SHMEM_COMPLEX_TYPES_(SHMEM_DECLARE_REDUCE_, prod, 0)

/* ---- locks ---- */

/*
 * Take or release a lock, a symmetric word that is 0 at first. shmem_test_lock() does not wait.
 * It returns 0 if the caller has got the lock, else 1.
 */
void shmem_set_lock(long *lock);
void shmem_clear_lock(long *lock);
int shmem_test_lock(long *lock);

/* ---- deprecated: active sets ---- */

void shmem_barrier(int PE_start, int logPE_stride, int PE_size, long *pSync);
void shmem_sync(int PE_start, int logPE_stride, int PE_size, long *pSync);

#define SHMEM_DECLARE_ACTIVE_SET_(SIZE, BYTES, a, b)			\
	void shmem_broadcast##SIZE(void *dest, const void *source, size_t nelems, \
				   int PE_root, int PE_start, int logPE_stride, \
				   int PE_size, long *pSync);		\
	void shmem_collect##SIZE(void *dest, const void *source, size_t nelems, \
				 int PE_start, int logPE_stride, int PE_size, \
				 long *pSync);				\
	void shmem_fcollect##SIZE(void *dest, const void *source, size_t nelems, \
				  int PE_start, int logPE_stride, int PE_size, \
				  long *pSync);				\
	void shmem_alltoall##SIZE(void *dest, const void *source, size_t nelems, \
				  int PE_start, int logPE_stride, int PE_size, \
				  long *pSync);				\
	void shmem_alltoalls##SIZE(void *dest, const void *source, ptrdiff_t dst, \
				   ptrdiff_t sst, size_t nelems, int PE_start, \
				   int logPE_stride, int PE_size, long *pSync);
SHMEM_DECLARE_ACTIVE_SET_(32, 4, 0, 0)
SHMEM_DECLARE_ACTIVE_SET_(64, 8, 0, 0)

#define SHMEM_DECLARE_TO_ALL_(NAME, TYPE, sum, b)			\
	void shmem_##NAME##_##sum##_to_all(TYPE *dest, const TYPE *source, \
					   int nreduce, int PE_start,	\
					   int logPE_stride, int PE_size, \
					   TYPE *pWrk, long *pSync);
SHMEM_TO_ALL_BIT_TYPES_(SHMEM_DECLARE_TO_ALL_, and, 0)
SHMEM_TO_ALL_BIT_TYPES_(SHMEM_DECLARE_TO_ALL_, or, 0)
SHMEM_TO_ALL_BIT_TYPES_(SHMEM_DECLARE_TO_ALL_, xor, 0)
SHMEM_TO_ALL_TYPES_(SHMEM_DECLARE_TO_ALL_, min, 0)
SHMEM_TO_ALL_TYPES_(SHMEM_DECLARE_TO_ALL_, max, 0)
SHMEM_TO_ALL_TYPES_(SHMEM_DECLARE_TO_ALL_, sum, 0)
SHMEM_TO_ALL_TYPES_(SHMEM_DECLARE_TO_ALL_, prod, 0)
SHMEM_COMPLEX_TYPES_(SHMEM_DECLARE_TO_ALL_, sum, 0)
SHMEM_COMPLEX_TYPES_(SHMEM_DECLARE_TO_ALL_, prod, 0)

/* ---- deprecated: names before 1.4, and functions for incoherent caches ---- */

#define SHMEM_DECLARE_OLD_AMO_EXT_(NAME, TYPE, a, b)			\
	TYPE shmem_##NAME##_fetch(const TYPE *source, int pe);		\
	void shmem_##NAME##_set(TYPE *dest, TYPE value, int pe);	\
	TYPE shmem_##NAME##_swap(TYPE *dest, TYPE value, int pe);
#define SHMEM_DECLARE_OLD_AMO_(NAME, TYPE, a, b)			\
	TYPE shmem_##NAME##_cswap(TYPE *dest, TYPE cond, TYPE value, int pe); \
	TYPE shmem_##NAME##_finc(TYPE *dest, int pe);			\
	void shmem_##NAME##_inc(TYPE *dest, int pe);			\
	TYPE shmem_##NAME##_fadd(TYPE *dest, TYPE value, int pe);	\
	void shmem_##NAME##_add(TYPE *dest, TYPE value, int pe);
#define SHMEM_DECLARE_OLD_WAIT_(NAME, TYPE, a, b)			\
	void shmem_##NAME##_wait(TYPE *ivar, TYPE cmp_value);
SHMEM_OLD_AMO_EXT_TYPES_(SHMEM_DECLARE_OLD_AMO_EXT_, 0, 0)
SHMEM_OLD_AMO_TYPES_(SHMEM_DECLARE_OLD_AMO_, 0, 0)
SHMEM_TO_ALL_BIT_TYPES_(SHMEM_DECLARE_OLD_WAIT_, 0, 0)
long shmem_swap(long *dest, long value, int pe);
void shmem_wait(long *ivar, long cmp_value);
void shmem_wait_until(long *ivar, int cmp, long cmp_value);

void start_pes(int npes);
int _my_pe(void);
int _num_pes(void);
void *shmalloc(size_t size);
void *shmemalign(size_t alignment, size_t size);
void *shrealloc(void *ptr, size_t size);
void shfree(void *ptr);

void shmem_set_cache_inv(void);
void shmem_clear_cache_inv(void);
void shmem_set_cache_line_inv(void *dest);
void shmem_clear_cache_line_inv(void *dest);
void shmem_udcflush(void);
void shmem_udcflush_line(void *dest);

/* ---- generic interfaces of C11 ---- */

#if !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L

#define SHMEM_CASE_(NAME, TYPE, pre, op)	, TYPE: shmem_##pre##NAME##_##op
/* Select the function of table @T for the type that @ptr points to. */
#define SHMEM_FUNCTION_(T, ptr, pre, op)	\
	_Generic(*(ptr) T(SHMEM_CASE_, pre, op))

/* Call the macro @name##n##_ for n arguments: a call with a context has one argument more. */
#define SHMEM_COUNT_(a1, a2, a3, a4, a5, a6, a7, a8, n, ...)	n
#define SHMEM_PASTE_(name, n)		name##n##_
#define SHMEM_PASTE2_(name, n)		SHMEM_PASTE_(name, n)
#define SHMEM_BY_COUNT_(name, ...) \
	SHMEM_PASTE2_(name, SHMEM_COUNT_(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0)) \
	(__VA_ARGS__)

#define SHMEM_RMA_(op, ptr, ...) \
	SHMEM_FUNCTION_(SHMEM_C_TYPES_, ptr, , op)(ptr, __VA_ARGS__)
#define SHMEM_RMA_CTX_(op, ctx, ptr, ...) \
	SHMEM_FUNCTION_(SHMEM_C_TYPES_, ptr, ctx_, op)(ctx, ptr, __VA_ARGS__)

#define shmem_put(...)		SHMEM_BY_COUNT_(SHMEM_PUT_, __VA_ARGS__)
#define SHMEM_PUT_4_(...)	SHMEM_RMA_(put, __VA_ARGS__)
#define SHMEM_PUT_5_(...)	SHMEM_RMA_CTX_(put, __VA_ARGS__)
#define shmem_get(...)		SHMEM_BY_COUNT_(SHMEM_GET_, __VA_ARGS__)
#define SHMEM_GET_4_(...)	SHMEM_RMA_(get, __VA_ARGS__)
#define SHMEM_GET_5_(...)	SHMEM_RMA_CTX_(get, __VA_ARGS__)
#define shmem_put_nbi(...)	SHMEM_BY_COUNT_(SHMEM_PUT_NBI_, __VA_ARGS__)
#define SHMEM_PUT_NBI_4_(...)	SHMEM_RMA_(put_nbi, __VA_ARGS__)
#define SHMEM_PUT_NBI_5_(...)	SHMEM_RMA_CTX_(put_nbi, __VA_ARGS__)
#define shmem_get_nbi(...)	SHMEM_BY_COUNT_(SHMEM_GET_NBI_, __VA_ARGS__)
#define SHMEM_GET_NBI_4_(...)	SHMEM_RMA_(get_nbi, __VA_ARGS__)
#define SHMEM_GET_NBI_5_(...)	SHMEM_RMA_CTX_(get_nbi, __VA_ARGS__)
#define shmem_p(...)		SHMEM_BY_COUNT_(SHMEM_P_, __VA_ARGS__)
#define SHMEM_P_3_(...)		SHMEM_RMA_(p, __VA_ARGS__)
#define SHMEM_P_4_(...)		SHMEM_RMA_CTX_(p, __VA_ARGS__)
#define shmem_g(...)		SHMEM_BY_COUNT_(SHMEM_G_, __VA_ARGS__)
#define SHMEM_G_2_(...)		SHMEM_RMA_(g, __VA_ARGS__)
#define SHMEM_G_3_(...)		SHMEM_RMA_CTX_(g, __VA_ARGS__)
#define shmem_iput(...)		SHMEM_BY_COUNT_(SHMEM_IPUT_, __VA_ARGS__)
#define SHMEM_IPUT_6_(...)	SHMEM_RMA_(iput, __VA_ARGS__)
#define SHMEM_IPUT_7_(...)	SHMEM_RMA_CTX_(iput, __VA_ARGS__)
#define shmem_iget(...)		SHMEM_BY_COUNT_(SHMEM_IGET_, __VA_ARGS__)
#define SHMEM_IGET_6_(...)	SHMEM_RMA_(iget, __VA_ARGS__)
#define SHMEM_IGET_7_(...)	SHMEM_RMA_CTX_(iget, __VA_ARGS__)
#define shmem_put_signal(...)	SHMEM_BY_COUNT_(SHMEM_PUT_SIGNAL_, __VA_ARGS__)
#define SHMEM_PUT_SIGNAL_7_(...) SHMEM_RMA_(put_signal, __VA_ARGS__)
#define SHMEM_PUT_SIGNAL_8_(...) SHMEM_RMA_CTX_(put_signal, __VA_ARGS__)
#define shmem_put_signal_nbi(...) SHMEM_BY_COUNT_(SHMEM_PUT_SIGNAL_NBI_, __VA_ARGS__)
#define SHMEM_PUT_SIGNAL_NBI_7_(...) SHMEM_RMA_(put_signal_nbi, __VA_ARGS__)
#define SHMEM_PUT_SIGNAL_NBI_8_(...) SHMEM_RMA_CTX_(put_signal_nbi, __VA_ARGS__)

#define SHMEM_AMO_(T, op, ptr, ...) \
	SHMEM_FUNCTION_(T, ptr, , atomic_##op)(ptr, __VA_ARGS__)
#define SHMEM_AMO_CTX_(T, op, ctx, ptr, ...) \
	SHMEM_FUNCTION_(T, ptr, ctx_, atomic_##op)(ctx, ptr, __VA_ARGS__)
#define SHMEM_EXT_(op, ...)	SHMEM_AMO_(SHMEM_AMO_EXT_C_TYPES_, op, __VA_ARGS__)
#define SHMEM_EXT_CTX_(op, ...)	SHMEM_AMO_CTX_(SHMEM_AMO_EXT_C_TYPES_, op, __VA_ARGS__)
#define SHMEM_STD_(op, ...)	SHMEM_AMO_(SHMEM_INT_TYPES_, op, __VA_ARGS__)
#define SHMEM_STD_CTX_(op, ...)	SHMEM_AMO_CTX_(SHMEM_INT_TYPES_, op, __VA_ARGS__)
#define SHMEM_BIT_(op, ...)	SHMEM_AMO_(SHMEM_AMO_BIT_C_TYPES_, op, __VA_ARGS__)
#define SHMEM_BIT_CTX_(op, ...)	SHMEM_AMO_CTX_(SHMEM_AMO_BIT_C_TYPES_, op, __VA_ARGS__)

#define shmem_atomic_fetch(...)	SHMEM_BY_COUNT_(SHMEM_FETCH_, __VA_ARGS__)
#define SHMEM_FETCH_2_(...)	SHMEM_EXT_(fetch, __VA_ARGS__)
#define SHMEM_FETCH_3_(...)	SHMEM_EXT_CTX_(fetch, __VA_ARGS__)
#define shmem_atomic_set(...)	SHMEM_BY_COUNT_(SHMEM_SET_, __VA_ARGS__)
#define SHMEM_SET_3_(...)	SHMEM_EXT_(set, __VA_ARGS__)
#define SHMEM_SET_4_(...)	SHMEM_EXT_CTX_(set, __VA_ARGS__)
#define shmem_atomic_swap(...)	SHMEM_BY_COUNT_(SHMEM_SWAP_, __VA_ARGS__)
#define SHMEM_SWAP_3_(...)	SHMEM_EXT_(swap, __VA_ARGS__)
#define SHMEM_SWAP_4_(...)	SHMEM_EXT_CTX_(swap, __VA_ARGS__)
#define shmem_atomic_compare_swap(...) SHMEM_BY_COUNT_(SHMEM_CSWAP_, __VA_ARGS__)
#define SHMEM_CSWAP_4_(...)	SHMEM_STD_(compare_swap, __VA_ARGS__)
#define SHMEM_CSWAP_5_(...)	SHMEM_STD_CTX_(compare_swap, __VA_ARGS__)
#define shmem_atomic_inc(...)	SHMEM_BY_COUNT_(SHMEM_INC_, __VA_ARGS__)
#define SHMEM_INC_2_(...)	SHMEM_STD_(inc, __VA_ARGS__)
#define SHMEM_INC_3_(...)	SHMEM_STD_CTX_(inc, __VA_ARGS__)
#define shmem_atomic_fetch_inc(...) SHMEM_BY_COUNT_(SHMEM_FINC_, __VA_ARGS__)
#define SHMEM_FINC_2_(...)	SHMEM_STD_(fetch_inc, __VA_ARGS__)
#define SHMEM_FINC_3_(...)	SHMEM_STD_CTX_(fetch_inc, __VA_ARGS__)
#define shmem_atomic_add(...)	SHMEM_BY_COUNT_(SHMEM_ADD_, __VA_ARGS__)
#define SHMEM_ADD_3_(...)	SHMEM_STD_(add, __VA_ARGS__)
#define SHMEM_ADD_4_(...)	SHMEM_STD_CTX_(add, __VA_ARGS__)
#define shmem_atomic_fetch_add(...) SHMEM_BY_COUNT_(SHMEM_FADD_, __VA_ARGS__)
#define SHMEM_FADD_3_(...)	SHMEM_STD_(fetch_add, __VA_ARGS__)
#define SHMEM_FADD_4_(...)	SHMEM_STD_CTX_(fetch_add, __VA_ARGS__)
#define shmem_atomic_and(...)	SHMEM_BY_COUNT_(SHMEM_AND_, __VA_ARGS__)
#define SHMEM_AND_3_(...)	SHMEM_BIT_(and, __VA_ARGS__)
#define SHMEM_AND_4_(...)	SHMEM_BIT_CTX_(and, __VA_ARGS__)
#define shmem_atomic_fetch_and(...) SHMEM_BY_COUNT_(SHMEM_FAND_, __VA_ARGS__)
#define SHMEM_FAND_3_(...)	SHMEM_BIT_(fetch_and, __VA_ARGS__)
#define SHMEM_FAND_4_(...)	SHMEM_BIT_CTX_(fetch_and, __VA_ARGS__)
#define shmem_atomic_or(...)	SHMEM_BY_COUNT_(SHMEM_OR_, __VA_ARGS__)
#define SHMEM_OR_3_(...)	SHMEM_BIT_(or, __VA_ARGS__)
#define SHMEM_OR_4_(...)	SHMEM_BIT_CTX_(or, __VA_ARGS__)
#define shmem_atomic_fetch_or(...) SHMEM_BY_COUNT_(SHMEM_FOR_, __VA_ARGS__)
#define SHMEM_FOR_3_(...)	SHMEM_BIT_(fetch_or, __VA_ARGS__)
#define SHMEM_FOR_4_(...)	SHMEM_BIT_CTX_(fetch_or, __VA_ARGS__)
#define shmem_atomic_xor(...)	SHMEM_BY_COUNT_(SHMEM_XOR_, __VA_ARGS__)
#define SHMEM_XOR_3_(...)	SHMEM_BIT_(xor, __VA_ARGS__)
#define SHMEM_XOR_4_(...)	SHMEM_BIT_CTX_(xor, __VA_ARGS__)
#define shmem_atomic_fetch_xor(...) SHMEM_BY_COUNT_(SHMEM_FXOR_, __VA_ARGS__)
#define SHMEM_FXOR_3_(...)	SHMEM_BIT_(fetch_xor, __VA_ARGS__)
#define SHMEM_FXOR_4_(...)	SHMEM_BIT_CTX_(fetch_xor, __VA_ARGS__)

#define shmem_atomic_fetch_nbi(...) SHMEM_BY_COUNT_(SHMEM_FETCH_NBI_, __VA_ARGS__)
#define SHMEM_FETCH_NBI_3_(...)	SHMEM_EXT_(fetch_nbi, __VA_ARGS__)
#define SHMEM_FETCH_NBI_4_(...)	SHMEM_EXT_CTX_(fetch_nbi, __VA_ARGS__)
#define shmem_atomic_swap_nbi(...) SHMEM_BY_COUNT_(SHMEM_SWAP_NBI_, __VA_ARGS__)
#define SHMEM_SWAP_NBI_4_(...)	SHMEM_EXT_(swap_nbi, __VA_ARGS__)
#define SHMEM_SWAP_NBI_5_(...)	SHMEM_EXT_CTX_(swap_nbi, __VA_ARGS__)
#define shmem_atomic_compare_swap_nbi(...) SHMEM_BY_COUNT_(SHMEM_CSWAP_NBI_, __VA_ARGS__)
#define SHMEM_CSWAP_NBI_5_(...)	SHMEM_STD_(compare_swap_nbi, __VA_ARGS__)
#define SHMEM_CSWAP_NBI_6_(...)	SHMEM_STD_CTX_(compare_swap_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_inc_nbi(...) SHMEM_BY_COUNT_(SHMEM_FINC_NBI_, __VA_ARGS__)
#define SHMEM_FINC_NBI_3_(...)	SHMEM_STD_(fetch_inc_nbi, __VA_ARGS__)
#define SHMEM_FINC_NBI_4_(...)	SHMEM_STD_CTX_(fetch_inc_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_add_nbi(...) SHMEM_BY_COUNT_(SHMEM_FADD_NBI_, __VA_ARGS__)
#define SHMEM_FADD_NBI_4_(...)	SHMEM_STD_(fetch_add_nbi, __VA_ARGS__)
#define SHMEM_FADD_NBI_5_(...)	SHMEM_STD_CTX_(fetch_add_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_and_nbi(...) SHMEM_BY_COUNT_(SHMEM_FAND_NBI_, __VA_ARGS__)
#define SHMEM_FAND_NBI_4_(...)	SHMEM_BIT_(fetch_and_nbi, __VA_ARGS__)
#define SHMEM_FAND_NBI_5_(...)	SHMEM_BIT_CTX_(fetch_and_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_or_nbi(...) SHMEM_BY_COUNT_(SHMEM_FOR_NBI_, __VA_ARGS__)
#define SHMEM_FOR_NBI_4_(...)	SHMEM_BIT_(fetch_or_nbi, __VA_ARGS__)
#define SHMEM_FOR_NBI_5_(...)	SHMEM_BIT_CTX_(fetch_or_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_xor_nbi(...) SHMEM_BY_COUNT_(SHMEM_FXOR_NBI_, __VA_ARGS__)
#define SHMEM_FXOR_NBI_4_(...)	SHMEM_BIT_(fetch_xor_nbi, __VA_ARGS__)
#define SHMEM_FXOR_NBI_5_(...)	SHMEM_BIT_CTX_(fetch_xor_nbi, __VA_ARGS__)

#define SHMEM_WAIT_(op, ptr, ...) \
	SHMEM_FUNCTION_(SHMEM_SYNC_C_TYPES_, ptr, , op)(ptr, __VA_ARGS__)
#define shmem_wait_until(...)			SHMEM_WAIT_(wait_until, __VA_ARGS__)
#define shmem_wait_until_all(...)		SHMEM_WAIT_(wait_until_all, __VA_ARGS__)
#define shmem_wait_until_any(...)		SHMEM_WAIT_(wait_until_any, __VA_ARGS__)
#define shmem_wait_until_some(...)		SHMEM_WAIT_(wait_until_some, __VA_ARGS__)
#define shmem_wait_until_all_vector(...)	SHMEM_WAIT_(wait_until_all_vector, __VA_ARGS__)
#define shmem_wait_until_any_vector(...)	SHMEM_WAIT_(wait_until_any_vector, __VA_ARGS__)
#define shmem_wait_until_some_vector(...)	SHMEM_WAIT_(wait_until_some_vector, __VA_ARGS__)
#define shmem_test(...)				SHMEM_WAIT_(test, __VA_ARGS__)
#define shmem_test_all(...)			SHMEM_WAIT_(test_all, __VA_ARGS__)
#define shmem_test_any(...)			SHMEM_WAIT_(test_any, __VA_ARGS__)
#define shmem_test_some(...)			SHMEM_WAIT_(test_some, __VA_ARGS__)
#define shmem_test_all_vector(...)		SHMEM_WAIT_(test_all_vector, __VA_ARGS__)
#define shmem_test_any_vector(...)		SHMEM_WAIT_(test_any_vector, __VA_ARGS__)
#define shmem_test_some_vector(...)		SHMEM_WAIT_(test_some_vector, __VA_ARGS__)

#define SHMEM_COLL_(T, op, team, dest, ...) \
	SHMEM_FUNCTION_(T, dest, , op)(team, dest, __VA_ARGS__)
#define shmem_broadcast(...)	SHMEM_COLL_(SHMEM_C_TYPES_, broadcast, __VA_ARGS__)
#define shmem_collect(...)	SHMEM_COLL_(SHMEM_C_TYPES_, collect, __VA_ARGS__)
#define shmem_fcollect(...)	SHMEM_COLL_(SHMEM_C_TYPES_, fcollect, __VA_ARGS__)
#define shmem_alltoall(...)	SHMEM_COLL_(SHMEM_C_TYPES_, alltoall, __VA_ARGS__)
#define shmem_alltoalls(...)	SHMEM_COLL_(SHMEM_C_TYPES_, alltoalls, __VA_ARGS__)
#define shmem_and_reduce(...)	SHMEM_COLL_(SHMEM_REDUCE_BIT_C_TYPES_, and_reduce, __VA_ARGS__)
#define shmem_or_reduce(...)	SHMEM_COLL_(SHMEM_REDUCE_BIT_C_TYPES_, or_reduce, __VA_ARGS__)
#define shmem_xor_reduce(...)	SHMEM_COLL_(SHMEM_REDUCE_BIT_C_TYPES_, xor_reduce, __VA_ARGS__)
#define shmem_min_reduce(...)	SHMEM_COLL_(SHMEM_C_TYPES_, min_reduce, __VA_ARGS__)
#define shmem_max_reduce(...)	SHMEM_COLL_(SHMEM_C_TYPES_, max_reduce, __VA_ARGS__)
#define SHMEM_SUM_TYPES_(X, a, b)	SHMEM_C_TYPES_(X, a, b) SHMEM_COMPLEX_TYPES_(X, a, b)
#define shmem_sum_reduce(...)	SHMEM_COLL_(SHMEM_SUM_TYPES_, sum_reduce, __VA_ARGS__)
#define shmem_prod_reduce(...)	SHMEM_COLL_(SHMEM_SUM_TYPES_, prod_reduce, __VA_ARGS__)

#define shmem_sync(...)		SHMEM_BY_COUNT_(SHMEM_SYNC_, __VA_ARGS__)
#define SHMEM_SYNC_1_(team)	shmem_team_sync(team)
#define SHMEM_SYNC_4_(...)	(shmem_sync)(__VA_ARGS__)

/* Deprecated. */
#define SHMEM_OLD_(T, op, ptr, ...)	SHMEM_FUNCTION_(T, ptr, , op)(ptr, __VA_ARGS__)
#define shmem_fetch(...)	SHMEM_OLD_(SHMEM_OLD_AMO_EXT_TYPES_, fetch, __VA_ARGS__)
#define shmem_set(...)		SHMEM_OLD_(SHMEM_OLD_AMO_EXT_TYPES_, set, __VA_ARGS__)
#define shmem_swap(...)		SHMEM_OLD_(SHMEM_OLD_AMO_EXT_TYPES_, swap, __VA_ARGS__)
#define shmem_cswap(...)	SHMEM_OLD_(SHMEM_OLD_AMO_TYPES_, cswap, __VA_ARGS__)
#define shmem_finc(...)		SHMEM_OLD_(SHMEM_OLD_AMO_TYPES_, finc, __VA_ARGS__)
#define shmem_inc(...)		SHMEM_OLD_(SHMEM_OLD_AMO_TYPES_, inc, __VA_ARGS__)
#define shmem_fadd(...)		SHMEM_OLD_(SHMEM_OLD_AMO_TYPES_, fadd, __VA_ARGS__)
#define shmem_add(...)		SHMEM_OLD_(SHMEM_OLD_AMO_TYPES_, add, __VA_ARGS__)

#endif /* C11 */

#ifdef __cplusplus
}
#endif

#endif
