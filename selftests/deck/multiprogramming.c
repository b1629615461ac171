// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests threads and semaphores, which do not need deck_init(). */
#include <errno.h>
#include <limits.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include <deck.h>

#include "selftests/harness.h"

#define THREADS	6u
#define TURNS	500u

static void *add_one(void *arg)
{
	return (void *)((uintptr_t)arg + 1);
}

TEST(threads_are_joined_with_their_result)
{
	deck_thread_t *t[THREADS];
	void *result;

	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK_EQ(deck_thread_create(&t[i], add_one, (void *)i), 0);
	for (uintptr_t i = 0; i < THREADS; i++) {
		CHECK_EQ(deck_thread_join(t[i], &result), 0);
		CHECK_EQ((uintptr_t)result, i + 1);
	}
	CHECK_EQ(deck_thread_create(NULL, add_one, NULL), -EINVAL);
	CHECK_EQ(deck_thread_create(&t[0], NULL, NULL), -EINVAL);
	CHECK_EQ(deck_thread_join(NULL, NULL), -EINVAL);
}

static void *exits(void *arg)
{
	deck_thread_yield();
	deck_thread_exit(arg);
	return NULL;
}

TEST(threads_exit)
{
	deck_thread_t *t;
	void *result;
	int i;

	CHECK_EQ(deck_thread_create(&t, exits, &i), 0);
	CHECK_EQ(deck_thread_join(t, &result), 0);
	CHECK(result == &i);
}

static void *posts(void *arg)
{
	deck_sem_post(arg);
	return NULL;
}

TEST(threads_are_detached)
{
	deck_thread_t *t;
	deck_sem_t *s;

	CHECK_EQ(deck_sem_create(&s, 0), 0);
	CHECK_EQ(deck_thread_create(&t, posts, s), 0);
	CHECK_EQ(deck_thread_detach(t), 0);
	CHECK_EQ(deck_sem_timedwait(s, TEST_WAIT_MS), 0);
	CHECK_EQ(deck_sem_destroy(s), 0);
}

/* A buffer of two values between producers and consumers. */
struct buffer {
	deck_sem_t *room, *filled, *lock;
	unsigned int values[2];
	unsigned int in, out;
	uint64_t sum;
};

static void *produce(void *arg)
{
	struct buffer *b = arg;

	for (unsigned int i = 1; i <= TURNS; i++) {
		CHECK_EQ(deck_sem_wait(b->room), 0);
		CHECK_EQ(deck_sem_wait(b->lock), 0);
		b->values[b->in++ % 2] = i;
		CHECK_EQ(deck_sem_post(b->lock), 0);
		CHECK_EQ(deck_sem_post(b->filled), 0);
	}
	return NULL;
}

static void *consume(void *arg)
{
	struct buffer *b = arg;

	for (unsigned int i = 1; i <= TURNS; i++) {
		CHECK_EQ(deck_sem_wait(b->filled), 0);
		CHECK_EQ(deck_sem_wait(b->lock), 0);
		b->sum += b->values[b->out++ % 2];
		CHECK_EQ(deck_sem_post(b->lock), 0);
		CHECK_EQ(deck_sem_post(b->room), 0);
	}
	return NULL;
}

TEST(semaphores_order_threads)
{
	struct buffer b = { 0 };
	deck_thread_t *t[THREADS];

	CHECK_EQ(deck_sem_create(&b.room, 2), 0);
	CHECK_EQ(deck_sem_create(&b.filled, 0), 0);
	CHECK_EQ(deck_sem_create(&b.lock, 1), 0);
	for (unsigned int i = 0; i < THREADS; i++)
		CHECK_EQ(deck_thread_create(&t[i], i % 2 ? produce : consume, &b), 0);
	for (unsigned int i = 0; i < THREADS; i++)
		CHECK_EQ(deck_thread_join(t[i], NULL), 0);
	CHECK_EQ(b.sum, (uint64_t)THREADS / 2 * TURNS * (TURNS + 1) / 2);
	CHECK_EQ(deck_sem_value(b.room), 2);
	CHECK_EQ(deck_sem_value(b.filled), 0);
	CHECK_EQ(deck_sem_destroy(b.room), 0);
	CHECK_EQ(deck_sem_destroy(b.filled), 0);
	CHECK_EQ(deck_sem_destroy(b.lock), 0);
}

static void nothing(int sig)
{
	(void)sig;
}

TEST(semaphores_leave_errno_and_survive_signals)
{
	struct sigaction sa = { .sa_handler = nothing };
	deck_sem_t *s;

	CHECK_EQ(deck_sem_create(&s, 0), 0);
	errno = 77;
	CHECK_EQ(deck_sem_timedwait(s, 0), -EAGAIN);
	CHECK_EQ(deck_sem_timedwait(s, 1), -ETIMEDOUT);
	CHECK_EQ(errno, 77);
	sigaction(SIGALRM, &sa, NULL);
	ualarm(1000, 1000);
	CHECK_EQ(deck_sem_timedwait(s, 30), -ETIMEDOUT);
	ualarm(0, 0);
	CHECK_EQ(deck_sem_destroy(s), 0);
	CHECK_EQ(deck_sem_create(&s, SEM_VALUE_MAX), 0);
	CHECK_EQ(deck_sem_post(s), -EOVERFLOW);
	CHECK_EQ(deck_sem_destroy(s), 0);
}

TEST(semaphore_arguments)
{
	deck_sem_t *s;

	CHECK_EQ(deck_sem_create(NULL, 0), -EINVAL);
	CHECK_EQ(deck_sem_create(&s, (unsigned int)SEM_VALUE_MAX + 1), -EINVAL);
	CHECK_EQ(deck_sem_wait(NULL), -EINVAL);
	CHECK_EQ(deck_sem_post(NULL), -EINVAL);
	CHECK_EQ(deck_sem_value(NULL), -EINVAL);
	CHECK_EQ(deck_sem_destroy(NULL), 0);
}
