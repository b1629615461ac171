// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Put, get, put with signal, fence and quiet. */

#include <string.h>

#include "libsci/shmem/internal.h"

/* ---- contiguous blocks ---- */

typedef int (*put_fn)(struct sci_team *, void *, const void *, size_t, int);

/* Put a block to memory that pe_ptr() does not find: another region, or a PE on another node. */
static __attribute__((noinline, cold))
void put_slow(const char *call, void *dest, const void *source, size_t len, int pe,
	      put_fn put)
{
	void *to = pe_ptr_slow(call, dest, len, pe);

	if (to)
		memmove(to, source, len);
	else
		shmem_ok(call, put(shmem.team, dest, source, len, pe));
}

static __attribute__((noinline, cold))
void get_slow(const char *call, void *dest, const void *source, size_t len, int pe,
	      put_fn get)
{
	const void *from = pe_ptr_slow(call, source, len, pe);

	if (from)
		memmove(dest, from, len);
	else
		shmem_ok(call, get(shmem.team, dest, source, len, pe));
}

#define DEFINE_PUT(put)								\
	static inline void block_##put(const char *call, void *dest,		\
				       const void *source, size_t len, int pe)	\
	{									\
		void *to = pe_ptr(dest, pe);					\
										\
		if (likely(to))							\
			memmove(to, source, len);				\
		else								\
			put_slow(call, dest, source, len, pe, sci_team_##put);	\
	}
#define DEFINE_GET(get)								\
	static inline void block_##get(const char *call, void *dest,		\
				       const void *source, size_t len, int pe)	\
	{									\
		const void *from = pe_ptr(source, pe);				\
										\
		if (likely(from))						\
			memmove(dest, from, len);				\
		else								\
			get_slow(call, dest, source, len, pe, sci_team_##get);	\
	}
DEFINE_PUT(put)
DEFINE_PUT(put_nbi)
DEFINE_GET(get)
DEFINE_GET(get_nbi)

/* ---- strided elements ---- */

/* Return the number of bytes from the start of the first to the end of the last element. */
static size_t span_len(ptrdiff_t stride, size_t size, size_t n)
{
	return n ? ((n - 1) * (size_t)stride + 1) * size : 0;
}

static inline void copy_strided(char *to, ptrdiff_t to_stride, const char *from,
				ptrdiff_t from_stride, size_t size, size_t n)
{
	for (; n; n--, to += to_stride, from += from_stride)
		memcpy(to, from, size);
}

static inline void block_iput(const char *call, void *dest, const void *source,
			      ptrdiff_t dst, ptrdiff_t sst, size_t size, size_t n, int pe)
{
	void *to;

	if (unlikely(dst < 1 || sst < 1))
		shmem_die(call, "strides of %td and %td: at least 1", dst, sst);
	to = pe_ptr_of(call, dest, span_len(dst, size, n), pe);
	dst *= (ptrdiff_t)size;
	sst *= (ptrdiff_t)size;
	if (likely(to))
		copy_strided(to, dst, source, sst, size, n);
	else
		shmem_ok(call, sci_team_put_strided(shmem.team, dest, dst, source, sst,
						    size, n, pe));
}

static inline void block_iget(const char *call, void *dest, const void *source,
			      ptrdiff_t dst, ptrdiff_t sst, size_t size, size_t n, int pe)
{
	const void *from;

	if (unlikely(dst < 1 || sst < 1))
		shmem_die(call, "strides of %td and %td: at least 1", dst, sst);
	from = pe_ptr_of(call, source, span_len(sst, size, n), pe);
	dst *= (ptrdiff_t)size;
	sst *= (ptrdiff_t)size;
	if (likely(from))
		copy_strided(dest, dst, from, sst, size, n);
	else
		shmem_ok(call, sci_team_get_strided(shmem.team, dest, dst, source, sst,
						    size, n, pe));
}

/* ---- put with signal ---- */

static void block_put_signal(const char *call, void *dest, const void *source, size_t len,
			     uint64_t *sig_addr, uint64_t signal, int sig_op, int pe,
			     bool nbi)
{
	enum sci_signal how = sig_op == SHMEM_SIGNAL_ADD ? SCI_SIGNAL_ADD : SCI_SIGNAL_SET;
	uint64_t *word = pe_ptr_of(call, sig_addr, sizeof(*sig_addr), pe);
	void *to = pe_ptr_of(call, dest, len, pe);

	if (unlikely(sig_op != SHMEM_SIGNAL_ADD && sig_op != SHMEM_SIGNAL_SET))
		shmem_die(call, "%d is no operation of signals", sig_op);
	if (likely(word && to)) {
		memmove(to, source, len);
		if (how == SCI_SIGNAL_ADD)
			__atomic_fetch_add(word, signal, __ATOMIC_RELEASE);
		else
			__atomic_store_n(word, signal, __ATOMIC_RELEASE);
		return;
	}
	shmem_ok(call, (nbi ? sci_team_put_signal_nbi : sci_team_put_signal)
		 (shmem.team, dest, source, len, sig_addr, signal, how, pe));
}

EXPORT uint64_t shmem_signal_fetch(const uint64_t *sig_addr)
{
	symmetric_check(__func__, sig_addr, sizeof(*sig_addr));
	return __atomic_load_n(sig_addr, __ATOMIC_ACQUIRE);
}

/* ---- typed calls ---- */

#define DEFINE_BLOCK(NAME, TYPE, op, b)						\
	EXPORT void shmem_##NAME##_##op(TYPE *dest, const TYPE *source,		\
					size_t nelems, int pe)			\
	{									\
		block_##op(__func__, dest, source, nelems * sizeof(TYPE), pe);	\
	}									\
	EXPORT void shmem_ctx_##NAME##_##op(shmem_ctx_t ctx, TYPE *dest,	\
					    const TYPE *source, size_t nelems, int pe) \
	{									\
		block_##op(__func__, dest, source, nelems * sizeof(TYPE),	\
			   ctx_pe(__func__, ctx, pe));				\
	}
SHMEM_RMA_TYPES_(DEFINE_BLOCK, put, 0)
SHMEM_RMA_TYPES_(DEFINE_BLOCK, get, 0)
SHMEM_RMA_TYPES_(DEFINE_BLOCK, put_nbi, 0)
SHMEM_RMA_TYPES_(DEFINE_BLOCK, get_nbi, 0)

/* Define the put and the get of one element, whose size the compiler knows. */
#define DEFINE_P(NAME, TYPE, a, b)						\
	static inline void NAME##_p(const char *call, TYPE *dest, TYPE value, int pe) \
	{									\
		volatile TYPE *to = pe_ptr(dest, pe);				\
										\
		if (likely(to)) {						\
			*to = value;						\
		} else {							\
			TYPE bytes = value;					\
										\
			put_slow(call, dest, &bytes, sizeof(bytes), pe, sci_team_put); \
		}								\
	}									\
	static inline TYPE NAME##_g(const char *call, const TYPE *source, int pe) \
	{									\
		const volatile TYPE *from = pe_ptr(source, pe);			\
		TYPE value;							\
										\
		if (likely(from))						\
			return *from;						\
		get_slow(call, &value, source, sizeof(value), pe, sci_team_get); \
		return value;							\
	}									\
	EXPORT void shmem_##NAME##_p(TYPE *dest, TYPE value, int pe)		\
	{									\
		NAME##_p(__func__, dest, value, pe);				\
	}									\
	EXPORT void shmem_ctx_##NAME##_p(shmem_ctx_t ctx, TYPE *dest, TYPE value, \
					 int pe)				\
	{									\
		NAME##_p(__func__, dest, value, ctx_pe(__func__, ctx, pe));	\
	}									\
	EXPORT TYPE shmem_##NAME##_g(const TYPE *source, int pe)		\
	{									\
		return NAME##_g(__func__, source, pe);				\
	}									\
	EXPORT TYPE shmem_ctx_##NAME##_g(shmem_ctx_t ctx, const TYPE *source, int pe) \
	{									\
		return NAME##_g(__func__, source, ctx_pe(__func__, ctx, pe));	\
	}
SHMEM_RMA_TYPES_(DEFINE_P, 0, 0)

#define DEFINE_STRIDED(NAME, TYPE, op, b)					\
	EXPORT void shmem_##NAME##_##op(TYPE *dest, const TYPE *source, ptrdiff_t dst, \
					ptrdiff_t sst, size_t nelems, int pe)	\
	{									\
		block_##op(__func__, dest, source, dst, sst, sizeof(TYPE), nelems, pe); \
	}									\
	EXPORT void shmem_ctx_##NAME##_##op(shmem_ctx_t ctx, TYPE *dest,	\
					    const TYPE *source, ptrdiff_t dst,	\
					    ptrdiff_t sst, size_t nelems, int pe) \
	{									\
		block_##op(__func__, dest, source, dst, sst, sizeof(TYPE), nelems, \
			   ctx_pe(__func__, ctx, pe));				\
	}
SHMEM_RMA_TYPES_(DEFINE_STRIDED, iput, 0)
SHMEM_RMA_TYPES_(DEFINE_STRIDED, iget, 0)

#define DEFINE_SIGNAL(NAME, TYPE, op, nbi)					\
	EXPORT void shmem_##NAME##_##op(TYPE *dest, const TYPE *source, size_t nelems, \
					uint64_t *sig_addr, uint64_t signal,	\
					int sig_op, int pe)			\
	{									\
		block_put_signal(__func__, dest, source, nelems * sizeof(TYPE),	\
				 sig_addr, signal, sig_op, pe, nbi);		\
	}									\
	EXPORT void shmem_ctx_##NAME##_##op(shmem_ctx_t ctx, TYPE *dest,	\
					    const TYPE *source, size_t nelems,	\
					    uint64_t *sig_addr, uint64_t signal, \
					    int sig_op, int pe)			\
	{									\
		block_put_signal(__func__, dest, source, nelems * sizeof(TYPE),	\
				 sig_addr, signal, sig_op,			\
				 ctx_pe(__func__, ctx, pe), nbi);		\
	}
SHMEM_RMA_TYPES_(DEFINE_SIGNAL, put_signal, false)
SHMEM_RMA_TYPES_(DEFINE_SIGNAL, put_signal_nbi, true)

/* ---- calls with an element size in their names ---- */

#define DEFINE_SIZED(name, op, BYTES)						\
	EXPORT void shmem_##name(void *dest, const void *source, size_t nelems, int pe) \
	{									\
		block_##op(__func__, dest, source, nelems * (BYTES), pe);	\
	}									\
	EXPORT void shmem_ctx_##name(shmem_ctx_t ctx, void *dest, const void *source, \
				     size_t nelems, int pe)			\
	{									\
		block_##op(__func__, dest, source, nelems * (BYTES),		\
			   ctx_pe(__func__, ctx, pe));				\
	}
#define DEFINE_SIZED_STRIDED(name, op, BYTES)					\
	EXPORT void shmem_##name(void *dest, const void *source, ptrdiff_t dst,	\
				 ptrdiff_t sst, size_t nelems, int pe)		\
	{									\
		block_##op(__func__, dest, source, dst, sst, BYTES, nelems, pe); \
	}									\
	EXPORT void shmem_ctx_##name(shmem_ctx_t ctx, void *dest, const void *source, \
				     ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) \
	{									\
		block_##op(__func__, dest, source, dst, sst, BYTES, nelems,	\
			   ctx_pe(__func__, ctx, pe));				\
	}
#define DEFINE_SIZED_SIGNAL(name, BYTES, nbi)					\
	EXPORT void shmem_##name(void *dest, const void *source, size_t nelems,	\
				 uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) \
	{									\
		block_put_signal(__func__, dest, source, nelems * (BYTES),	\
				 sig_addr, signal, sig_op, pe, nbi);		\
	}									\
	EXPORT void shmem_ctx_##name(shmem_ctx_t ctx, void *dest, const void *source, \
				     size_t nelems, uint64_t *sig_addr,		\
				     uint64_t signal, int sig_op, int pe)	\
	{									\
		block_put_signal(__func__, dest, source, nelems * (BYTES),	\
				 sig_addr, signal, sig_op,			\
				 ctx_pe(__func__, ctx, pe), nbi);		\
	}
#define DEFINE_SIZE(SIZE, BYTES, a, b)						\
	DEFINE_SIZED(put##SIZE, put, BYTES)					\
	DEFINE_SIZED(get##SIZE, get, BYTES)					\
	DEFINE_SIZED(put##SIZE##_nbi, put_nbi, BYTES)				\
	DEFINE_SIZED(get##SIZE##_nbi, get_nbi, BYTES)				\
	DEFINE_SIZED_SIGNAL(put##SIZE##_signal, BYTES, false)			\
	DEFINE_SIZED_SIGNAL(put##SIZE##_signal_nbi, BYTES, true)
#define DEFINE_SIZE_STRIDED(SIZE, BYTES, a, b)					\
	DEFINE_SIZED_STRIDED(iput##SIZE, iput, BYTES)				\
	DEFINE_SIZED_STRIDED(iget##SIZE, iget, BYTES)
SHMEM_SIZES_(DEFINE_SIZE, 0, 0)
SHMEM_SIZES_(DEFINE_SIZE_STRIDED, 0, 0)
DEFINE_SIZE(mem, 1, 0, 0)

/* ---- fence and quiet ---- */

EXPORT void shmem_fence(void)
{
	shmem_ok(__func__, sci_team_fence(shmem.team));
}

EXPORT void shmem_quiet(void)
{
	shmem_ok(__func__, sci_team_quiet(shmem.team));
}

/* Order the transfers of all contexts: the team has no contexts. Ignore an invalid context. */
EXPORT void shmem_ctx_fence(shmem_ctx_t ctx)
{
	if (ctx != SHMEM_CTX_INVALID)
		shmem_fence();
}

EXPORT void shmem_ctx_quiet(shmem_ctx_t ctx)
{
	if (ctx != SHMEM_CTX_INVALID)
		shmem_quiet();
}
