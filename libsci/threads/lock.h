/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Futexes and a lock on them, for memory that several processes share. */
#ifndef LIBSCI_THREADS_LOCK_H
#define LIBSCI_THREADS_LOCK_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef _Atomic uint32_t futex_t;

/*
 * Between machines, futexes in memory of the program are not the kernel's: see hosts.h. Return
 * true if @f is such a futex.
 */
bool futex_is_far(const futex_t *f);
/*
 * The operations FUTEX_WAIT, FUTEX_WAIT_BITSET and FUTEX_WAKE of futex(2) on a far futex.
 * Return: 0, or -errno. The program ends if the operation is another one.
 */
long hosts_futex(futex_t *f, int op, uint32_t value, const struct timespec *timeout,
		 uint32_t bits);

/* If *@f is @value, sleep until a wake-up, or less. May set errno. No cancellation point. */
static inline void futex_wait(futex_t *f, uint32_t value)
{
	if (futex_is_far(f))
		hosts_futex(f, FUTEX_WAIT, value, NULL, 0);
	else
		syscall(SYS_futex, f, FUTEX_WAIT, value, NULL, NULL, 0);
}

static inline void futex_wake(futex_t *f, int n)
{
	if (futex_is_far(f))
		hosts_futex(f, FUTEX_WAKE, (uint32_t)n, NULL, 0);
	else
		syscall(SYS_futex, f, FUTEX_WAKE, n, NULL, NULL, 0);
}

/* A lock. @word is 0: free; 1: taken; 2: taken, and a thread may sleep until it is free. */
struct lock {
	futex_t word;
};

void lock_slow(struct lock *l);

static inline void lock_take(struct lock *l)
{
	uint32_t free = 0;

	if (!atomic_compare_exchange_strong_explicit(&l->word, &free, 1, memory_order_acquire,
						     memory_order_relaxed))
		lock_slow(l);
}

static inline void lock_give(struct lock *l)
{
	if (atomic_exchange_explicit(&l->word, 0, memory_order_release) == 2)
		futex_wake(&l->word, 1);
}

#endif
