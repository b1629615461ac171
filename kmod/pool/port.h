/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * Types and atomic accesses for the pool's protocol, in the kernel and in programs.
 *
 * Every access to memory of the pool goes through this file.  Other machines may
 * change that memory at any time: a value is loaded once, then checked.  Where caches
 * are not coherent, pool_flush() brings each line up to date before a load or a store, and to
 * memory after a store.  In a program each store first calls pool_store_hook(), where a test
 * may end the program.
 */
#ifndef SCI_POOL_PORT_H
#define SCI_POOL_PORT_H

#ifdef __KERNEL__

#include <asm/barrier.h>
#include <asm/byteorder.h>
#include <linux/atomic.h>
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/jump_label.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/types.h>

/* Other machines take part, so the barriers have to work on a machine with one processor, too. */
#define pool_full_barrier()	virt_mb()
#define pool_load_acquire(p)	virt_load_acquire(p)
#define pool_store_release(p, v) virt_store_release(p, v)
#ifdef CONFIG_X86
/* with a single processor, the kernel removes the lock prefix of cmpxchg() */
#define pool_swap_if(p, old, new) (sync_cmpxchg(p, old, new) == (old))
#else
#define pool_swap_if(p, old, new) (cmpxchg(p, old, new) == (old))
#endif

static inline void pool_storing(void)
{
}

/* Long loops call this function: the kernel may do something else meanwhile. */
static inline void pool_pause(void)
{
	cond_resched();
}

/* Some pool of this machine is not coherent. */
DECLARE_STATIC_KEY_FALSE(pool_incoherent);

/* Write lines back to memory and drop them. */
void pool_cache_flush(const void *p, size_t n);

static inline void pool_flush(const void *p, size_t n)
{
	if (static_branch_unlikely(&pool_incoherent))
		pool_cache_flush(p, n);
}

#else

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;

#define __force
#define U32_MAX			UINT32_MAX
#define cpu_to_le32(v)		((__le32)htole32(v))
#define cpu_to_le64(v)		((__le64)htole64(v))
#define le32_to_cpu(v)		le32toh(v)
#define le64_to_cpu(v)		le64toh(v)

/* gcc refuses __atomic_thread_fence() with the thread sanitizer */
#define pool_full_barrier()	__sync_synchronize()
#define pool_load_acquire(p)	__atomic_load_n(p, __ATOMIC_ACQUIRE)
#define pool_store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define pool_swap_if(p, old, new)					\
	({								\
		__typeof__(*(p)) old_ = (old);				\
									\
		__atomic_compare_exchange_n(p, &old_, new, 0,		\
					    __ATOMIC_SEQ_CST,		\
					    __ATOMIC_SEQ_CST);		\
	})

/* A function to call before each store and each compare-and-swap, or NULL. */
extern void (*pool_store_hook)(void);

static inline void pool_storing(void)
{
	if (pool_store_hook)
		pool_store_hook();
}

static inline void pool_pause(void)
{
}

/* A function that writes lines back to memory and drops them; NULL: caches are coherent. */
extern void (*pool_cache_hook)(const void *p, size_t n);

static inline void pool_flush(const void *p, size_t n)
{
	if (pool_cache_hook)
		pool_cache_hook(p, n);
}

#endif

static inline u32 pool_get32(const __le32 *p)
{
	pool_flush(p, sizeof(*p));
	return le32_to_cpu((__force __le32)pool_load_acquire((const u32 __force *)p));
}

static inline u64 pool_get64(const __le64 *p)
{
	pool_flush(p, sizeof(*p));
	return le64_to_cpu((__force __le64)pool_load_acquire((const u64 __force *)p));
}

static inline void pool_set32(__le32 *p, u32 v)
{
	pool_flush(p, sizeof(*p));
	pool_storing();
	pool_store_release((u32 __force *)p, (u32 __force)cpu_to_le32(v));
	pool_flush(p, sizeof(*p));
}

static inline void pool_set64(__le64 *p, u64 v)
{
	pool_flush(p, sizeof(*p));
	pool_storing();
	pool_store_release((u64 __force *)p, (u64 __force)cpu_to_le64(v));
	pool_flush(p, sizeof(*p));
}

/* Return whether *@p was @old and is @new now. */
static inline bool pool_cas32(__le32 *p, u32 old, u32 new)
{
	bool done;

	pool_flush(p, sizeof(*p));
	pool_storing();
	done = pool_swap_if((u32 __force *)p, (u32 __force)cpu_to_le32(old),
			    (u32 __force)cpu_to_le32(new));
	pool_flush(p, sizeof(*p));
	return done;
}

static inline bool pool_cas64(__le64 *p, u64 old, u64 new)
{
	bool done;

	pool_flush(p, sizeof(*p));
	pool_storing();
	done = pool_swap_if((u64 __force *)p, (u64 __force)cpu_to_le64(old),
			    (u64 __force)cpu_to_le64(new));
	pool_flush(p, sizeof(*p));
	return done;
}

/* Copy into the pool, and out of it.  Another machine may store at the same time. */
static inline void pool_put_bytes(void *to, const void *from, size_t n)
{
	pool_flush(to, n);
	pool_storing();
	memcpy(to, from, n);
	pool_flush(to, n);
}

static inline void pool_get_bytes(void *to, const void *from, size_t n)
{
	pool_flush(from, n);
	memcpy(to, from, n);
}

#endif
