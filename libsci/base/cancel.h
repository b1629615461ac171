/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: pthread_cancel()
 *
 * A thread that is cancelled in the middle of a call would leave locks and
 * references behind.  Each public call therefore holds cancellation off, also
 * the asynchronous kind.  The waits of the interface are cancellation points:
 * the functions below allow deferred cancellation while they sleep.  A caller of
 * these functions pushes a cleanup handler for its locks and references first.
 */
#ifndef LIBSCI_CANCEL_H
#define LIBSCI_CANCEL_H

#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <time.h>

/**
 * sci_cancel_hold() - hold cancellation of this thread off
 *
 * Calls nest, in signal handlers too.  Each call needs its own sci_cancel_release().
 */
void sci_cancel_hold(void);
void sci_cancel_release(void);

/**
 * sci_poll_cancelable() - poll() that is a cancellation point
 *
 * In a call that has interrupted another call (from a signal handler), poll() is no
 * cancellation point, because the interrupted call may hold locks.  Without
 * sci_cancel_hold() this function is plain poll().
 */
int sci_poll_cancelable(struct pollfd *fds, nfds_t n, int ms);

/*
 * Call epoll_wait() as a cancellation point. The events must be level-triggered: cancellation would
 * lose edge-triggered events.
 */
int sci_epoll_cancelable(int epfd, struct epoll_event *events, int max, int ms);

/**
 * sci_cond_wait_cancelable() - sci_cond_wait() that is a cancellation point
 *
 * When the thread is cancelled, the function wakes another waiter and unlocks @lock.
 */
int sci_cond_wait_cancelable(pthread_cond_t *cond, pthread_mutex_t *lock,
			     uint32_t ms, const struct timespec *deadline);

#endif
