/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: memory ordering
 *
 * All barriers of libsci are in this file and in the store engines of libsci/pio,
 * and so is all inline assembly.  There are four needs:
 *
 * - words shared between threads and processes through cacheable memory: the
 *   C11 memory model, sci_load_acquire() paired with sci_store_release();
 * - several words of one cache line, each of which returns a buffer to the peer:
 *   sci_release_barrier() before the words, sci_load_acquire() of each at the peer;
 * - stores that the C11 model does not know, to write-combining maps of an
 *   adapter and non-temporal ones: sci_store_barrier();
 * - the store-then-load pattern "announce the sleep, then check for work again":
 *   sci_full_barrier() in the thread that sleeps and in the thread that posts work.
 *
 * The macros take a pointer to a plain (not _Atomic) integer or pointer
 * object, naturally aligned, of at most the size of a pointer or 8 bytes,
 * volatile or not: structures that two processes or the kernel share can so
 * be described with fixed-width types. Every access that another process or the
 * kernel may race with uses one of these macros.  Objects that only the threads of
 * one process share may be _Atomic instead, with the operations of <stdatomic.h>.
 */
#ifndef LIBSCI_BARRIER_H
#define LIBSCI_BARRIER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Load or store a value that announces no other data: hints, statistics, polls before an acquire.
 */
#define sci_load_relaxed(p)	__atomic_load_n((p), __ATOMIC_RELAXED)
#define sci_store_relaxed(p, v)	__atomic_store_n((p), (v), __ATOMIC_RELAXED)

/*
 * Load a flag, before the data that the flag announces. With a relaxed load, a weakly ordered
 * CPU reads the data first (the silent corruption that MPI libraries saw on Arm).
 */
#define sci_load_acquire(p)	__atomic_load_n((p), __ATOMIC_ACQUIRE)

/*
 * Store a flag, after the data that the flag announces. The macro orders ordinary stores only:
 * after write-combining stores, call sci_store_barrier() first.
 */
#define sci_store_release(p, v)	__atomic_store_n((p), (v), __ATOMIC_RELEASE)

/**
 * sci_release_barrier() - keep every access so far before every later store
 *
 * Use it before a line of several words, each of which reports to the peer that some memory has
 * been read and is free. Without the barrier, a weakly ordered CPU may read that memory after the
 * peer has seen the word and stored the next block there.
 */
static inline void sci_release_barrier(void)
{
#if defined(__x86_64__)
	/* x86-64 keeps a store behind earlier loads and stores */
	__asm__ __volatile__("" ::: "memory");
#elif defined(__aarch64__)
	__asm__ __volatile__("dmb ish" ::: "memory");
#else
	atomic_thread_fence(memory_order_release);
#endif
}

/**
 * sci_acquire_barrier() - keep every load so far before every later access
 *
 * A reader loads a word, then data, and then the word again, to see whether the data was still
 * valid. This barrier comes before the second load of the word.
 */
static inline void sci_acquire_barrier(void)
{
#if defined(__x86_64__)
	/* x86-64 keeps loads in order */
	__asm__ __volatile__("" ::: "memory");
#elif defined(__aarch64__)
	__asm__ __volatile__("dmb ishld" ::: "memory");
#else
	atomic_thread_fence(memory_order_acquire);
#endif
}

/*
 * Read-modify-write of words with several writers, such as reference counts and claims
 * of a slot. Each acquires and releases: the new holder must see the previous holder's stores.
 */
#define sci_exchange(p, v)	__atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)
#define sci_fetch_add(p, v)	__atomic_fetch_add((p), (v), __ATOMIC_ACQ_REL)
#define sci_fetch_and(p, v)	__atomic_fetch_and((p), (v), __ATOMIC_ACQ_REL)
#define sci_fetch_or(p, v)	__atomic_fetch_or((p), (v), __ATOMIC_ACQ_REL)
#define sci_fetch_xor(p, v)	__atomic_fetch_xor((p), (v), __ATOMIC_ACQ_REL)

/*
 * Return true if *p was *expected, and store v then. Otherwise set *expected to the value
 * found. Both outcomes acquire.
 */
#define sci_compare_exchange(p, expected, v)				\
	__atomic_compare_exchange_n((p), (expected), (v), 0,		\
				    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)

/**
 * sci_store_barrier() - order and drain all stores so far
 *
 * Stores to write-combining memory and non-temporal stores wait in buffers
 * that the C11 model does not order, and a release store may pass them. After
 * this call all these stores have left the CPU, before any later store. Only the adapter's
 * store barrier register shows whether they have reached the other node.
 */
static inline void sci_store_barrier(void)
{
#if defined(__x86_64__)
	__asm__ __volatile__("sfence" ::: "memory");
#elif defined(__aarch64__)
	__asm__ __volatile__("dsb st" ::: "memory");
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/**
 * sci_load_barrier() - keep every later load behind all earlier loads
 *
 * Use it between loads of write-combining memory, which even x86 performs out of order: the
 * data that an adapter announces, then its status word. For cacheable words use
 * sci_load_acquire().
 */
static inline void sci_load_barrier(void)
{
#if defined(__x86_64__)
	__asm__ __volatile__("lfence" ::: "memory");
#elif defined(__aarch64__)
	__asm__ __volatile__("dsb ld" ::: "memory");
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/**
 * sci_full_barrier() - keep every access so far before every later one
 *
 * Only this barrier keeps a load behind an earlier store. One thread announces its sleep and
 * then checks for work, another thread posts work and then checks for announced sleeps: at least
 * one of the threads must see the other's store. The barrier also covers write-combining memory,
 * which a locked instruction does not.
 */
static inline void sci_full_barrier(void)
{
#if defined(__x86_64__)
	__asm__ __volatile__("mfence" ::: "memory");
#elif defined(__aarch64__)
	__asm__ __volatile__("dsb sy" ::: "memory");
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/*
 * Keep the compiler from reordering accesses, such as vector stores, that the CPU itself keeps
 * in order.
 */
static inline void sci_compiler_barrier(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

/**
 * sci_cpu_relax() - pause in a loop that polls
 *
 * The pause leaves the core to its sibling thread and avoids the pipeline flush at the end of a
 * speculated polling loop. The pause does not order accesses of the CPU, but the compiler reads
 * memory again after it.
 */
static inline void sci_cpu_relax(void)
{
#if defined(__x86_64__)
	__asm__ __volatile__("pause" ::: "memory");
#elif defined(__aarch64__)
	__asm__ __volatile__("yield" ::: "memory");
#else
	atomic_signal_fence(memory_order_seq_cst);
#endif
}

/* Return the size of the smallest data cache line of any core of the machine. */
static inline size_t sci_cache_line(void)
{
#if defined(__aarch64__)
	uint64_t ctr;

	__asm__("mrs %0, ctr_el0" : "=r"(ctr));
	return (size_t)4 << ((ctr >> 16) & 15);
#else
	return 64;
#endif
}

/**
 * sci_cache_flush() - write back and drop the cached copy of a range
 * @p:   first byte, any alignment
 * @len: bytes
 *
 * The write-back has completed on return. On architectures other than x86-64 and AArch64, whose
 * caches libsci takes to be coherent, the call is only a full barrier.
 */
static inline void sci_cache_flush(const volatile void *p, size_t len)
{
	uintptr_t line = sci_cache_line();
	uintptr_t a = (uintptr_t)p & ~(line - 1);
	uintptr_t end = (uintptr_t)p + len;

	sci_full_barrier();
	for (; len && a < end; a += line) {
#if defined(__x86_64__)
		__asm__ __volatile__("clflush (%0)" :: "r"(a) : "memory");
#elif defined(__aarch64__)
		__asm__ __volatile__("dc civac, %0" :: "r"(a) : "memory");
#endif
	}
	sci_full_barrier();
}

/*
 * Prefetch a cache line for a store that follows soon, without any ordering. By default GCC does
 * not use prefetchw, which is newer than the x86-64 baseline; older CPUs ignore the instruction.
 */
#if defined(__x86_64__)
#define sci_prefetch_write(p)	__asm__ volatile("prefetchw %0" : : "m"(*(p)))
#else
#define sci_prefetch_write(p)	__builtin_prefetch((const void *)(p), 1)
#endif

#endif
