// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests barriers, mutexes and progress counters, between processes and their threads. */

#include <limits.h>
#include <stdlib.h>

#include "selftests/smi/start.h"

#define ROUNDS	50

static void mutexes(void)
{
	static const int algorithms[] = { L_MUTEX, BL_MUTEX, SCH_MUTEX };
	int id[3], got, region, where;
	long volatile *count;

	smi_start();
	count = smi_region(SMI_SHM_UNDIVIDED, 4096, 0, &region);
	CHECK_EQ(SMI_MUTEX_INIT(&id[0], 3, -1), SMI_ERR_PARAM);
	CHECK_EQ(SMI_MUTEX_INIT(&id[0], BL_MUTEX, size), SMI_ERR_PARAM);
	for (int i = 0; i < 3; i++) {
		CHECK_SMI(SMI_MUTEX_INIT(&id[i], algorithms[i], i ? size - 1 : -1));
		CHECK_EQ(id[i], i);
	}
	CHECK_SMI(SMI_Location_of_mutex(id[1], &where));
	CHECK_EQ(where, size - 1);
	CHECK_SMI(SMI_Mutex_init_with_locality(&got, size / 2));
	CHECK_SMI(SMI_Location_of_mutex(got, &where));
	CHECK_EQ(where, size / 2);
	for (int i = 0; i < ROUNDS; i++)
		for (int k = 0; k < 3; k++) {
			int flag = i & 1 ? NOCONSISTENCY : 0;

			CHECK_SMI(SMI_Mutex_lock(id[k] | flag));
			if (flag)
				CHECK_SMI(SMI_Flush_read(SMI_FLUSH_ALL));
			count[SPREAD(k)]++;
			if (flag)
				CHECK_SMI(SMI_Flush_write(SMI_FLUSH_ALL));
			CHECK_SMI(SMI_Mutex_unlock(id[k] | flag));
		}
	CHECK_SMI(SMI_Barrier());
	for (int k = 0; k < 3; k++)
		CHECK_EQ(count[SPREAD(k)], (long)ROUNDS * size);
	CHECK_SMI(SMI_Barrier());
	/* while one process holds the mutex, trylock fails in the others */
	if (!rank)
		CHECK_SMI(SMI_Mutex_lock(id[0]));
	CHECK_SMI(SMI_Barrier());
	CHECK_SMI(SMI_Mutex_trylock(id[0], &got));
	CHECK_EQ(got, size == 1);
	CHECK_SMI(SMI_Barrier());
	if (!rank)
		CHECK_SMI(SMI_Mutex_unlock(id[0]));
	CHECK_SMI(SMI_Barrier());
	CHECK_SMI(SMI_Mutex_destroy(id[1]));
	CHECK_EQ(SMI_Mutex_lock(id[1]), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Mutex_unlock(-1), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Mutex_destroy(1024), SMI_ERR_PARAM);
	smi_stop();
}

TEST_SIZES(mutexes, mutexes)

static void counters(void)
{
	int id, other, val, next, ranks[RANKS_MAX], region;
	int volatile *data;

	smi_start();
	next = (rank + 1) % size;
	data = smi_region(SMI_SHM_BLOCKED, 4096u * (unsigned int)size, 0, &region);
	CHECK_SMI(SMI_Init_PC(&id));
	CHECK_SMI(SMI_Init_PC(&other));
	CHECK_EQ(id, 0);
	CHECK_EQ(other, 1);
	for (int i = 1; i <= ROUNDS; i++) {
		data[SPREAD(rank)] = i;
		CHECK_SMI(SMI_Increment_PC(id, 1));
		if (size > 1 && i % 3)
			CHECK_SMI(SMI_Wait_individual_PC(id, next, i & 1 ? SMI_OWNPC : i));
		do
			CHECK_SMI(SMI_Get_PC(id, next, &val));
		while (val < i);
		CHECK(data[SPREAD(next)] >= i);
		CHECK_SMI(SMI_Wait_collective_PC(id, i));
		CHECK_SMI(SMI_Get_PC(id, next, &val));
		CHECK(val >= i);
	}
	CHECK_EQ(SMI_Wait_collective_PC(id, ROUNDS + 1), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Wait_individual_PC(id, rank, 1), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Get_PC(2, 0, &val), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Get_PC(id, size, &val), SMI_ERR_PARAM);
	CHECK_SMI(SMI_Get_PC(other | NOCONSISTENCY, rank, &val));
	CHECK_EQ(val, 0);
	CHECK_SMI(SMI_Reset_PC(id));
	CHECK_SMI(SMI_Get_PC(id, next, &val));
	CHECK_EQ(val, 0);
	CHECK_SMI(SMI_Barrier());
	CHECK_SMI(SMI_Increment_PC(id | NOCONSISTENCY, 7));
	CHECK_EQ(SMI_Increment_PC(id, INT_MAX), SMI_ERR_PARAM);
	for (int i = 0; i < size; i++)
		ranks[i] = i;
	CHECK_SMI(SMI_Wait_individual_set_PC(id, ranks, size, 7));
	smi_stop();
}

TEST_SIZES(counters, counters)

static void barriers(void)
{
	int id, region;
	int volatile *data;

	smi_start();
	data = smi_region(SMI_SHM_UNDIVIDED, 4096, 0, &region);
	CHECK_SMI(SMI_BARRIER_INIT(&id, SCHULZ_BARRIER, 1));
	CHECK(id > 0);
	for (int i = 1; i <= ROUNDS; i++) {
		data[SPREAD(rank)] = i;
		CHECK_SMI(i & 1 ? SMI_Barrier() : SMI_BARRIER(id));
		for (int k = 0; k < size; k++)
			CHECK_EQ(data[SPREAD(k)], i);
		CHECK_SMI(SMI_Barrier());
	}
	CHECK_SMI(SMI_BARRIER_DESTROY(id));
	CHECK_EQ(SMI_BARRIER(id), SMI_ERR_PARAM);
	CHECK_EQ(SMI_BARRIER_DESTROY(0), SMI_ERR_PARAM);
	smi_stop();
}

TEST_SIZES(barriers, barriers)

/* ---- threads ---- */

#define THREADS	3

static struct shared_work {
	int mutex, counter;
	long *count;
} work;

static void *thread_work(void *arg)
{
	void *mem = SMI_Nodemem_alloc(64);

	(void)arg;
	CHECK(mem);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_SMI(SMI_Mutex_lock(work.mutex));
		++*work.count;
		CHECK_SMI(SMI_Mutex_unlock(work.mutex));
		CHECK_SMI(SMI_Increment_PC(work.counter, 1));
	}
	CHECK_SMI(SMI_Nodemem_free(mem));
	return NULL;
}

static void threads(void)
{
	pthread_t t[THREADS];
	int region;

	smi_start();
	work.count = smi_region(SMI_SHM_UNDIVIDED, 4096, 0, &region);
	CHECK_SMI(SMI_Mutex_init(&work.mutex));
	CHECK_SMI(SMI_Init_PC(&work.counter));
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, thread_work, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_SMI(SMI_Wait_collective_PC(work.counter, THREADS * ROUNDS));
	CHECK_EQ(*work.count, (long)THREADS * ROUNDS * size);
	smi_stop();
}

TEST(threads_of_several_processes_share_a_mutex)
{
	ranks_run(4, 2, threads);
}

/* ---- where teams share no memory ---- */

/* The process that has the mutex in its memory sleeps, while the others lock it. */
static void home_asleep(void)
{
	int mutex;

	smi_start();
	CHECK_SMI(SMI_Mutex_init(&mutex));
	CHECK_SMI(SMI_Barrier());
	for (int i = 1; !rank && i < size; i++)
		CHECK_SMI(SMI_Signal_wait(i));
	if (rank) {
		CHECK_SMI(SMI_Mutex_lock(mutex));
		CHECK_SMI(SMI_Mutex_unlock(mutex));
		CHECK_SMI(SMI_Signal_send(0));
	}
	smi_stop();
}

TEST(mutexes_of_processes_that_sleep)
{
	setenv("SCI_TEAM_MEMORY", "none", 1);
	ranks_run(4, 4, home_asleep);
}

TEST(mutexes_without_shared_memory)
{
	setenv("SCI_TEAM_MEMORY", "none", 1);
	ranks_run(4, 2, mutexes);
}

TEST(counters_without_shared_memory)
{
	setenv("SCI_TEAM_MEMORY", "none", 1);
	ranks_run(4, 2, counters);
}
