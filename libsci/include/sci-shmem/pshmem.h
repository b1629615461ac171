/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the profiling interface of OpenSHMEM 1.5
 *
 * Each function of shmem.h has a second name that begins with pshmem_. A profiling library defines
 * functions with their first names, and calls the library by the second names. If a source file
 * includes this header before shmem.h, it has no inline calls, and can define all first names.
 */
#ifndef SCI_PSHMEM_H
#define SCI_PSHMEM_H

#ifndef SHMEM_NO_INLINE
#define SHMEM_NO_INLINE
#endif
#include "shmem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Declare the second name of a function, or those of a function and its variant with a context. */
#define PSHMEM_(name)		extern __typeof__(shmem_##name) pshmem_##name;
#define PSHMEM_CTX_(name)	PSHMEM_(name) PSHMEM_(ctx_##name)

/* ---- functions without a type in their names ---- */

PSHMEM_(init) PSHMEM_(init_thread) PSHMEM_(query_thread) PSHMEM_(finalize)
PSHMEM_(global_exit) PSHMEM_(my_pe) PSHMEM_(n_pes) PSHMEM_(pe_accessible)
PSHMEM_(addr_accessible) PSHMEM_(ptr) PSHMEM_(info_get_version) PSHMEM_(info_get_name)
PSHMEM_(pcontrol)
PSHMEM_(malloc) PSHMEM_(calloc) PSHMEM_(align) PSHMEM_(malloc_with_hints) PSHMEM_(realloc)
PSHMEM_(free)
PSHMEM_(team_my_pe) PSHMEM_(team_n_pes) PSHMEM_(team_get_config)
PSHMEM_(team_translate_pe) PSHMEM_(team_split_strided) PSHMEM_(team_split_2d)
PSHMEM_(team_destroy) PSHMEM_(team_create_ctx) PSHMEM_(team_sync) PSHMEM_(ctx_create)
PSHMEM_(ctx_destroy) PSHMEM_(ctx_get_team)
PSHMEM_(signal_fetch) PSHMEM_(signal_wait_until) PSHMEM_(barrier_all) PSHMEM_(sync_all)
PSHMEM_(barrier) PSHMEM_(sync) PSHMEM_(broadcastmem) PSHMEM_(collectmem)
PSHMEM_(fcollectmem) PSHMEM_(alltoallmem) PSHMEM_(alltoallsmem) PSHMEM_(set_lock)
PSHMEM_(clear_lock) PSHMEM_(test_lock)
PSHMEM_(swap) PSHMEM_(wait) PSHMEM_(wait_until) PSHMEM_(set_cache_inv)
PSHMEM_(clear_cache_inv) PSHMEM_(set_cache_line_inv) PSHMEM_(clear_cache_line_inv)
PSHMEM_(udcflush) PSHMEM_(udcflush_line)
PSHMEM_CTX_(fence) PSHMEM_CTX_(quiet)

#define PSHMEM_SIZE_(SIZE, BYTES, a, b)						\
	PSHMEM_CTX_(put##SIZE) PSHMEM_CTX_(get##SIZE)				\
	PSHMEM_CTX_(put##SIZE##_nbi) PSHMEM_CTX_(get##SIZE##_nbi)		\
	PSHMEM_CTX_(put##SIZE##_signal) PSHMEM_CTX_(put##SIZE##_signal_nbi)
#define PSHMEM_SIZE_STRIDED_(SIZE, BYTES, a, b)					\
	PSHMEM_CTX_(iput##SIZE) PSHMEM_CTX_(iget##SIZE)
#define PSHMEM_ACTIVE_SET_(SIZE)						\
	PSHMEM_(broadcast##SIZE) PSHMEM_(collect##SIZE)				\
	PSHMEM_(fcollect##SIZE) PSHMEM_(alltoall##SIZE)				\
	PSHMEM_(alltoalls##SIZE)
SHMEM_SIZES_(PSHMEM_SIZE_, 0, 0)
PSHMEM_SIZE_(mem, 1, 0, 0)
SHMEM_SIZES_(PSHMEM_SIZE_STRIDED_, 0, 0)
PSHMEM_ACTIVE_SET_(32)
PSHMEM_ACTIVE_SET_(64)

/* ---- typed functions ---- */

#define PSHMEM_RMA_(NAME, TYPE, a, b)						\
	PSHMEM_CTX_(NAME##_put) PSHMEM_CTX_(NAME##_get)				\
	PSHMEM_CTX_(NAME##_put_nbi) PSHMEM_CTX_(NAME##_get_nbi)			\
	PSHMEM_CTX_(NAME##_p) PSHMEM_CTX_(NAME##_g) PSHMEM_CTX_(NAME##_iput)	\
	PSHMEM_CTX_(NAME##_iget) PSHMEM_CTX_(NAME##_put_signal)			\
	PSHMEM_CTX_(NAME##_put_signal_nbi) PSHMEM_(NAME##_broadcast)		\
	PSHMEM_(NAME##_collect) PSHMEM_(NAME##_fcollect)			\
	PSHMEM_(NAME##_alltoall) PSHMEM_(NAME##_alltoalls)			\
	PSHMEM_(NAME##_min_reduce) PSHMEM_(NAME##_max_reduce)			\
	PSHMEM_(NAME##_sum_reduce) PSHMEM_(NAME##_prod_reduce)
#define PSHMEM_AMO_EXT_(NAME, TYPE, a, b)					\
	PSHMEM_CTX_(NAME##_atomic_fetch) PSHMEM_CTX_(NAME##_atomic_fetch_nbi)	\
	PSHMEM_CTX_(NAME##_atomic_set) PSHMEM_CTX_(NAME##_atomic_swap)		\
	PSHMEM_CTX_(NAME##_atomic_swap_nbi)
#define PSHMEM_AMO_(NAME, TYPE, a, b)						\
	PSHMEM_CTX_(NAME##_atomic_add) PSHMEM_CTX_(NAME##_atomic_fetch_add)	\
	PSHMEM_CTX_(NAME##_atomic_fetch_add_nbi)				\
	PSHMEM_CTX_(NAME##_atomic_inc) PSHMEM_CTX_(NAME##_atomic_fetch_inc)	\
	PSHMEM_CTX_(NAME##_atomic_fetch_inc_nbi)				\
	PSHMEM_CTX_(NAME##_atomic_compare_swap)					\
	PSHMEM_CTX_(NAME##_atomic_compare_swap_nbi)
#define PSHMEM_AMO_BIT_(NAME, TYPE, a, b)					\
	PSHMEM_CTX_(NAME##_atomic_and) PSHMEM_CTX_(NAME##_atomic_fetch_and)	\
	PSHMEM_CTX_(NAME##_atomic_fetch_and_nbi) PSHMEM_CTX_(NAME##_atomic_or)	\
	PSHMEM_CTX_(NAME##_atomic_fetch_or)					\
	PSHMEM_CTX_(NAME##_atomic_fetch_or_nbi) PSHMEM_CTX_(NAME##_atomic_xor)	\
	PSHMEM_CTX_(NAME##_atomic_fetch_xor)					\
	PSHMEM_CTX_(NAME##_atomic_fetch_xor_nbi)
#define PSHMEM_SYNC_(NAME, TYPE, a, b)						\
	PSHMEM_(NAME##_wait_until) PSHMEM_(NAME##_wait_until_all)		\
	PSHMEM_(NAME##_wait_until_any) PSHMEM_(NAME##_wait_until_some)		\
	PSHMEM_(NAME##_wait_until_all_vector)					\
	PSHMEM_(NAME##_wait_until_any_vector)					\
	PSHMEM_(NAME##_wait_until_some_vector) PSHMEM_(NAME##_test)		\
	PSHMEM_(NAME##_test_all) PSHMEM_(NAME##_test_any)			\
	PSHMEM_(NAME##_test_some) PSHMEM_(NAME##_test_all_vector)		\
	PSHMEM_(NAME##_test_any_vector) PSHMEM_(NAME##_test_some_vector)
#define PSHMEM_REDUCE_BIT_(NAME, TYPE, a, b)					\
	PSHMEM_(NAME##_and_reduce) PSHMEM_(NAME##_or_reduce)			\
	PSHMEM_(NAME##_xor_reduce)
#define PSHMEM_COMPLEX_(NAME, TYPE, a, b)					\
	PSHMEM_(NAME##_sum_reduce) PSHMEM_(NAME##_prod_reduce)			\
	PSHMEM_(NAME##_sum_to_all) PSHMEM_(NAME##_prod_to_all)
#define PSHMEM_TO_ALL_(NAME, TYPE, a, b)					\
	PSHMEM_(NAME##_min_to_all) PSHMEM_(NAME##_max_to_all)			\
	PSHMEM_(NAME##_sum_to_all) PSHMEM_(NAME##_prod_to_all)
#define PSHMEM_TO_ALL_BIT_(NAME, TYPE, a, b)					\
	PSHMEM_(NAME##_and_to_all) PSHMEM_(NAME##_or_to_all)			\
	PSHMEM_(NAME##_xor_to_all) PSHMEM_(NAME##_wait)
#define PSHMEM_OLD_AMO_EXT_(NAME, TYPE, a, b)					\
	PSHMEM_(NAME##_fetch) PSHMEM_(NAME##_set) PSHMEM_(NAME##_swap)
#define PSHMEM_OLD_AMO_(NAME, TYPE, a, b)					\
	PSHMEM_(NAME##_cswap) PSHMEM_(NAME##_finc) PSHMEM_(NAME##_inc)		\
	PSHMEM_(NAME##_fadd) PSHMEM_(NAME##_add)
SHMEM_RMA_TYPES_(PSHMEM_RMA_, 0, 0)
SHMEM_AMO_EXT_TYPES_(PSHMEM_AMO_EXT_, 0, 0)
SHMEM_AMO_TYPES_(PSHMEM_AMO_, 0, 0)
SHMEM_AMO_BIT_TYPES_(PSHMEM_AMO_BIT_, 0, 0)
SHMEM_SYNC_TYPES_(PSHMEM_SYNC_, 0, 0)
SHMEM_REDUCE_BIT_TYPES_(PSHMEM_REDUCE_BIT_, 0, 0)
SHMEM_COMPLEX_TYPES_(PSHMEM_COMPLEX_, 0, 0)
SHMEM_TO_ALL_TYPES_(PSHMEM_TO_ALL_, 0, 0)
SHMEM_TO_ALL_BIT_TYPES_(PSHMEM_TO_ALL_BIT_, 0, 0)
SHMEM_OLD_AMO_EXT_TYPES_(PSHMEM_OLD_AMO_EXT_, 0, 0)
SHMEM_OLD_AMO_TYPES_(PSHMEM_OLD_AMO_, 0, 0)

#ifdef __cplusplus
}
#endif

#endif
