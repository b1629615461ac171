/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Wrappers for the threads of the library. */
#ifndef LIBSCI_THREAD_H
#define LIBSCI_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

/**
 * sci_thread_start() - start a thread that receives no signals of the program
 * @name: at most 15 characters
 *
 * Signals to the process are for the program's own threads, some of which sleep in
 * sigsuspend(). The new thread receives only signals that it causes itself.
 *
 * Return: 0 or -errno.
 */
static inline int sci_thread_start(pthread_t *thread, void *(*run)(void *),
				   void *arg, const char *name)
{
	sigset_t block, old;
	int ret;

	sigfillset(&block);
	sigdelset(&block, SIGSEGV);
	sigdelset(&block, SIGBUS);
	sigdelset(&block, SIGFPE);
	sigdelset(&block, SIGILL);
	sigdelset(&block, SIGTRAP);
	sigdelset(&block, SIGSYS);
	pthread_sigmask(SIG_SETMASK, &block, &old);
	ret = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!ret)
		pthread_setname_np(*thread, name);
	return -ret;
}

/* Make a condition whose timed waits follow the monotonic clock. */
static inline void sci_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

/* Return the end of a wait of @ms milliseconds that begins now. */
static inline struct timespec sci_deadline(uint32_t ms)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_sec += ms / 1000;
	ts.tv_nsec += (long)(ms % 1000) * 1000000;
	ts.tv_sec += ts.tv_nsec / 1000000000;
	ts.tv_nsec %= 1000000000;
	return ts;
}

/*
 * Wait until @deadline, or without limit if @ms is UINT32_MAX. Return 0 or ETIMEDOUT; wake-ups may
 * be spurious.
 */
static inline int sci_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock,
				uint32_t ms, const struct timespec *deadline)
{
	return ms == UINT32_MAX ? pthread_cond_wait(cond, lock) :
				  pthread_cond_timedwait(cond, lock, deadline);
}

#endif
