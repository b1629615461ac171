/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * An endpoint's lock: held for a few hundred nanoseconds at a time, taken
 * twice per message. One atomic operation to take it, none to release it,
 * which a mutex has not; whoever finds it taken for long gives up the CPU,
 * since its holder may be waiting for that.
 */
#ifndef LIBSCI_MSG_LOCK_H
#define LIBSCI_MSG_LOCK_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "libsci/base/barrier.h"

struct msg_lock {
	uint32_t taken;
	bool none;			/* one thread only: no locking */
	const void *handler;		/* a thread is in a handler: msg_lock_enter() */
};

#define MSG_LOCK_SPINS	64u

/* handler.c */
void msg_lock_wait(struct msg_lock *l);

/* For calls that handlers may make. False: this thread is in one, which has the lock. */
bool msg_lock_enter(struct msg_lock *l);

static inline void msg_lock(struct msg_lock *l)
{
	unsigned int spins = 0;

	if (l->none)
		return;
	while (sci_exchange(&l->taken, 1)) {
		while (sci_load_relaxed(&l->taken)) {
			if (++spins < MSG_LOCK_SPINS)
				sci_cpu_relax();
			else
				msg_lock_wait(l);
		}
	}
}

static inline void msg_unlock(struct msg_lock *l)
{
	if (!l->none)
		sci_store_release(&l->taken, 0);
}

#endif
