// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests several threads in each PE that make calls at once. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <sci-shmem/shmem.h>

#include "selftests/ranks.h"

#define THREADS	4
#define ROUNDS	300

static long sum, slots[THREADS], answers[THREADS];

static void *thread_main(void *arg)
{
	long nr = (long)(intptr_t)arg;
	int other = (shmem_my_pe() + 1) % shmem_n_pes();
	shmem_ctx_t ctx;

	CHECK_EQ(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx), 0);
	for (long i = 1; i <= ROUNDS; i++) {
		shmem_ctx_long_atomic_inc(ctx, &sum, 0);
		shmem_ctx_long_atomic_set(ctx, &slots[nr], i, other);
		shmem_ctx_quiet(ctx);
		shmem_long_wait_until(&slots[nr], SHMEM_CMP_GE, i);
		answers[nr] = shmem_ctx_long_atomic_fetch(ctx, &slots[nr], other);
		CHECK_EQ(answers[nr] >= i, 1);
	}
	shmem_ctx_destroy(ctx);
	return NULL;
}

static void threads_pe(void *memory)
{
	pthread_t t[THREADS];
	int provided;

	setenv("SCI_TEAM_MEMORY", memory, 1);
	CHECK_EQ(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided), 0);
	CHECK_EQ(provided, SHMEM_THREAD_MULTIPLE);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, thread_main, (void *)(intptr_t)i), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	shmem_barrier_all();
	CHECK_EQ(shmem_long_g(&sum, 0), (long)THREADS * ROUNDS * shmem_n_pes());
	shmem_barrier_all();
	shmem_finalize();
}

/* ---- checks of accesses ---- */

static shmem_team_t first_team;
static long *first_block;
static atomic_bool stop;

static void *check_main(void *arg)
{
	long nr = (long)(intptr_t)arg;
	int other = (shmem_my_pe() + 1) % shmem_n_pes();

	while (!atomic_load(&stop)) {
		shmem_long_p(&first_block[nr], nr, other);
		CHECK_EQ(shmem_team_my_pe(first_team), shmem_my_pe());
		test_pause();
	}
	return NULL;
}

/* One thread allocates, and makes teams. With SHMEM_DEBUG the other threads walk the same lists. */
static void checks_pe(void *memory)
{
	pthread_t t[THREADS];
	shmem_team_t team;
	int provided;
	void *p;

	setenv("SCI_TEAM_MEMORY", memory, 1);
	setenv("SHMEM_DEBUG", "1", 1);
	CHECK_EQ(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided), 0);
	first_block = shmem_malloc(THREADS * sizeof(*first_block));
	CHECK(first_block);
	CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), NULL, 0,
					  &first_team), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, check_main, (void *)(intptr_t)i), 0);
	for (int i = 0; i < 100; i++) {
		p = shmem_malloc(64);
		CHECK(p);
		CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), NULL, 0,
						  &team), 0);
		shmem_team_destroy(team);
		shmem_free(p);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	shmem_team_destroy(first_team);
	shmem_free(first_block);
	shmem_finalize();
}

TEST(threads_check_accesses_while_one_allocates)
{
	ranks_run_arg(2, 1, checks_pe, (void *)"all", false);
}

TEST(threads_of_two_pes)
{
	ranks_run_arg(2, 1, threads_pe, (void *)"all", false);
}

TEST(threads_of_two_pes_that_share_no_memory)
{
	ranks_run_arg(2, 2, threads_pe, (void *)"none", false);
}
