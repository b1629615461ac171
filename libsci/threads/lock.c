// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include <errno.h>

#include "lock.h"

#define SPINS	100

/*
 * Take a lock that another thread holds. The holder may be in another process, and holds the lock
 * for a few hundred instructions.
 */
void lock_slow(struct lock *l)
{
	int err = errno;

	for (unsigned int i = 0; i < SPINS; i++) {
		uint32_t free = 0;

		if (!atomic_load_explicit(&l->word, memory_order_relaxed) &&
		    atomic_compare_exchange_strong_explicit(&l->word, &free, 1,
							    memory_order_acquire,
							    memory_order_relaxed))
			return;
	}
	while (atomic_exchange_explicit(&l->word, 2, memory_order_acquire))
		futex_wait(&l->word, 2);
	errno = err;
}
