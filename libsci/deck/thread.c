// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "libsci/deck/internal.h"

struct deck_thread {
	pthread_t id;
};

int deck_thread_create(deck_thread_t **out, void *(*fn)(void *arg), void *arg)
{
	struct deck_thread *t;
	int ret;

	if (!out || !fn)
		return -EINVAL;
	t = malloc(sizeof(*t));
	if (!t)
		return -ENOMEM;
	ret = pthread_create(&t->id, NULL, fn, arg);
	if (ret) {
		free(t);
		return -ret;
	}
	*out = t;
	return 0;
}

int deck_thread_join(deck_thread_t *thread, void **result)
{
	int ret;

	if (!thread)
		return -EINVAL;
	ret = pthread_join(thread->id, result);
	if (!ret)
		free(thread);
	return -ret;
}

int deck_thread_detach(deck_thread_t *thread)
{
	int ret;

	if (!thread)
		return -EINVAL;
	ret = pthread_detach(thread->id);
	free(thread);
	return -ret;
}

void deck_thread_exit(void *result)
{
	pthread_exit(result);
}

void deck_thread_yield(void)
{
	sched_yield();
}
