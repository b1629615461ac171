// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Semaphores of one process. DECK calls return a negative errno, but sem_*() set errno. */
#include <errno.h>
#include <limits.h>
#include <semaphore.h>
#include <stdlib.h>

#include "libsci/base/thread.h"
#include "libsci/deck/internal.h"

struct deck_sem {
	sem_t sem;
};

int deck_sem_create(deck_sem_t **out, unsigned int value)
{
	struct deck_sem *s;

	if (!out || value > SEM_VALUE_MAX)
		return -EINVAL;
	s = malloc(sizeof(*s));
	if (!s)
		return -ENOMEM;
	sem_init(&s->sem, 0, value);
	*out = s;
	return 0;
}

int deck_sem_destroy(deck_sem_t *sem)
{
	if (sem)
		sem_destroy(&sem->sem);
	free(sem);
	return 0;
}

int deck_sem_wait(deck_sem_t *sem)
{
	return deck_sem_timedwait(sem, -1);
}

int deck_sem_timedwait(deck_sem_t *sem, int timeout)
{
	struct timespec until = { 0 };
	int saved = errno, ret;

	if (!sem)
		return -EINVAL;
	if (timeout > 0)
		until = sci_deadline((uint32_t)timeout);
	do {
		if (timeout < 0)
			ret = sem_wait(&sem->sem);
		else
			ret = timeout ? sem_clockwait(&sem->sem, CLOCK_MONOTONIC, &until) :
					sem_trywait(&sem->sem);
	} while (ret && errno == EINTR);
	ret = ret ? -errno : 0;
	errno = saved;
	return ret;
}

int deck_sem_post(deck_sem_t *sem)
{
	int saved = errno, ret;

	if (!sem)
		return -EINVAL;
	ret = sem_post(&sem->sem) ? -errno : 0;
	errno = saved;
	return ret;
}

int deck_sem_value(deck_sem_t *sem)
{
	int value;

	if (!sem)
		return -EINVAL;
	sem_getvalue(&sem->sem, &value);
	return value;
}
