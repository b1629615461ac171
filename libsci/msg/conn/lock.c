// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The slow paths of an endpoint's lock: a taken lock, and a thread in a handler. */

#include "libsci/msg/conn/lock.h"

#include <stdio.h>
#include <stdlib.h>

__thread char msg_thread;

bool msg_lock_enter(struct msg_lock *l)
{
	if (sci_load_relaxed(&l->handler) == &msg_thread)
		return false;
	msg_lock(l);
	return true;
}

/* Wait for the lock. If this thread holds it, in a handler, abort with a message. */
void msg_lock_wait(struct msg_lock *l)
{
	if (sci_load_relaxed(&l->handler) == &msg_thread) {
		fputs("libsci: a handler has called a function that is not for handlers: see sci_handler_set()\n",
		      stderr);
		abort();
	}
	sched_yield();
}
