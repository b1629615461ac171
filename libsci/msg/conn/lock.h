/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * An endpoint's lock. It is held for a few hundred nanoseconds at a time and taken twice
 * per message. Unlike a mutex, it needs one atomic operation to lock and none to unlock. A
 * thread that waits for long yields the CPU, because the holder may need that CPU.
 */
#ifndef LIBSCI_MSG_LOCK_H
#define LIBSCI_MSG_LOCK_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsci/base/barrier.h"

struct msg_lock {
	uint32_t taken;
	bool none;			/* only one thread uses the endpoint: do not lock */
	const void *handler;		/* the thread that runs a handler: msg_lock_enter() */
};

#define MSG_LOCK_SPINS	64u

/* lock.c */
void msg_lock_wait(struct msg_lock *l);

/* The address of this variable identifies a thread. */
extern __thread char msg_thread __attribute__((visibility("hidden")));

/* Record whether this thread, which holds the lock, runs a handler. */
static inline void msg_lock_handler(struct msg_lock *l, bool runs)
{
	sci_store_relaxed(&l->handler, runs ? (const void *)&msg_thread : NULL);
}

/* Lock, in a call that handlers may make. Return false if this thread holds the lock already. */
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
