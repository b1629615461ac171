// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests both loop interfaces: exactly one process runs each iteration. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "selftests/smi/start.h"

#define LOW	-17
#define HIGH	600
#define COUNT	(HIGH - LOW + 1)

/* Run a chunk, which must be in the range. With a @step above 1, it has gaps. */
static int run_chunk(int *done, int low, int high, int step)
{
	int n = 0;

	CHECK(low >= LOW && high <= HIGH);
	for (int i = low; i <= high; i += step, n++)
		__atomic_add_fetch(&done[i - LOW], 1, __ATOMIC_RELAXED);
	return n;
}

/* Run the loop once, with a slow last process. @others counts the chunks of other processes. */
static int run(int id, int mode, int *done, int *others)
{
	int status, low, high, n = 0, step = mode == SMI_PART_CYCLIC ? size : 1;

	*others = 0;
	do {
		CHECK_SMI(SMI_Get_iterations(id, &status, &low, &high));
		if (status == SMI_LOOP_READY && mode != SMI_PART_TIMED_BLOCKED)
			CHECK(low > high);
		if (low <= high)
			n += run_chunk(done, low, high, step);
		if (status == SMI_LOOP_REMOTE)
			++*others;
		if (rank == size - 1)
			usleep(200);
	} while (status != SMI_LOOP_READY);
	return n;
}

static void schedulers(void)
{
	int id, region, others;
	int *done;

	smi_start();
	done = smi_region(SMI_SHM_UNDIVIDED, COUNT * sizeof(int), 0, &region);
	for (int mode = SMI_PART_BLOCKED; mode <= SMI_PART_TIMED_BLOCKED; mode++) {
		if (!rank)
			memset(done, 0, COUNT * sizeof(int));
		CHECK_SMI(SMI_Loop_init(&id, LOW, HIGH, mode));
		CHECK_EQ(id, 0);
		for (int i = 1; i <= 5; i++) {
			if (i == 3)
				CHECK_SMI(SMI_Set_loop_param(id, 2.0, 3, 1, 50, 20));
			if (i == 4)
				CHECK_SMI(SMI_Loop_k_adaption_mode(id, SMI_ADAPT_EXPO, 2));
			if (i == 5)
				CHECK_SMI(SMI_Set_loop_help_param(id, 0));
			run(id, mode, done, &others);
			if (i == 5 || mode == SMI_PART_TIMED_BLOCKED)
				CHECK_EQ(others, 0);
			CHECK_SMI(SMI_Barrier());
			for (int k = 0; k < COUNT; k++)
				CHECK_EQ(done[k], i);
			CHECK_SMI(SMI_Barrier());
		}
		CHECK_SMI(SMI_Loop_free(id));
	}
	CHECK_EQ(SMI_Get_iterations(id, &others, &others, &others), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Loop_init(&id, 0, 1, 5), SMI_ERR_PARAM);
	smi_stop();
}

TEST_SIZES(schedulers, schedulers)

/*
 * Each process counts in its own word: an addition of a processor is not atomic in memory of
 * another machine. Return: the sum of the words.
 */
static int sum_of(const int *words)
{
	int sum = 0;

	for (int i = 0; i < size; i++)
		sum += words[i];
	return sum;
}

/*
 * The last process takes a chunk and then no other one until the loop is over: other processes
 * run its share.
 */
static void helped(void)
{
	int id, region, status, low, high, others;
	int *done, (*help)[RANKS_MAX];

	smi_start();
	done = smi_region(SMI_SHM_UNDIVIDED, COUNT * sizeof(int), 0, &region);
	help = smi_region(SMI_SHM_UNDIVIDED, 4096, 0, &region);
	for (int mode = SMI_PART_BLOCKED; mode < SMI_PART_TIMED_BLOCKED; mode++) {
		CHECK_SMI(SMI_Loop_init(&id, LOW, HIGH, mode));
		if (size > 1 && rank == size - 1) {
			CHECK_SMI(SMI_Get_iterations(id, &status, &low, &high));
			if (status == SMI_LOOP_REMOTE)
				help[mode][rank]++;
			run_chunk(done, low, high, mode == SMI_PART_CYCLIC ? size : 1);
			CHECK_SMI(SMI_Barrier());
			/* all iterations may be gone already at the first call */
			if (status != SMI_LOOP_READY)
				CHECK_SMI(SMI_Get_iterations(id, &status, &low, &high));
			CHECK_EQ(status, SMI_LOOP_READY);
		} else {
			run(id, mode, done, &others);
			help[mode][rank] += others;
			if (size > 1)
				CHECK_SMI(SMI_Barrier());
		}
		CHECK_SMI(SMI_Barrier());
		CHECK_EQ(sum_of(help[mode]) > 0, size > 1);
		for (int k = 0; k < COUNT; k++)
			CHECK_EQ(done[k], mode - SMI_PART_BLOCKED + 1);
		CHECK_SMI(SMI_Loop_free(id));
	}
	smi_stop();
}

TEST_SIZES(helped, helped)

/* Loops without an iteration, and with fewer iterations than processes. */
static void few(void)
{
	int id, status, low, high, n, region;
	int (*sum)[RANKS_MAX];

	smi_start();
	sum = smi_region(SMI_SHM_UNDIVIDED, 4096, 0, &region);
	for (int mode = SMI_PART_BLOCKED; mode <= SMI_PART_TIMED_BLOCKED; mode++) {
		CHECK_SMI(SMI_Loop_init(&id, 0, -1, mode));
		CHECK_SMI(SMI_Get_iterations(id, &status, &low, &high));
		CHECK_EQ(status, SMI_LOOP_READY);
		CHECK(low > high);
		CHECK_SMI(SMI_Loop_free(id));
		CHECK_SMI(SMI_Loop_init(&id, 5, 6, mode));
		for (int i = 0; i < 3; i++) {
			n = 0;
			do {
				CHECK_SMI(SMI_Get_iterations(id, &status, &low, &high));
				for (int k = low; k <= high;
				     k += mode == SMI_PART_CYCLIC ? size : 1, n++)
					CHECK(k == 5 || k == 6);
			} while (status != SMI_LOOP_READY);
			sum[mode][rank] += n;
		}
		CHECK_SMI(SMI_Barrier());
		CHECK_EQ(sum_of(sum[mode]), 6);
		CHECK_SMI(SMI_Loop_free(id));
	}
	smi_stop();
}

TEST_SIZES(few, few)

/* A process's share of a run is the number of iterations that it did in the run before. */
static void adapted(void)
{
	int id, region, others, mine[3];
	int *done;
	double speed[RANKS_MAX];

	smi_start();
	done = smi_region(SMI_SHM_UNDIVIDED, COUNT * sizeof(int), 0, &region);
	CHECK_SMI(SMI_Loop_init(&id, LOW, HIGH, SMI_PART_ADAPTED_BLOCKED));
	CHECK_EQ(SMI_Use_evaluated_speed(id), SMI_ERR_PARAM);
	CHECK_SMI(SMI_Evaluate_speed(speed));
	for (int i = 0; i < size; i++)
		CHECK(speed[i] >= 1.0);
	CHECK_SMI(SMI_Set_loop_param(id, 1.0, 1, 1, 4, 4));
	for (int i = 0; i < 3; i++)
		mine[i] = run(id, SMI_PART_ADAPTED_BLOCKED, done, &others);
	/* without help, each process does exactly its share */
	CHECK_SMI(SMI_Set_loop_help_param(id, 0));
	CHECK(abs(run(id, SMI_PART_ADAPTED_BLOCKED, done, &others) - mine[2]) <= size);
	CHECK_SMI(SMI_Barrier());
	for (int k = 0; k < COUNT; k++)
		CHECK_EQ(done[k], 4);
	CHECK_SMI(SMI_Use_evaluated_speed(id));
	smi_stop();
}

TEST_SIZES(adapted, adapted)

/* ---- the split interface ---- */

static int ranges[RANKS_MAX][2];

/* Check that the ranges of all processes, in order of ranks, cover @low to @high. */
static void check_cover(int id, int low, int high, int *table)
{
	int l, h, next = low;

	CHECK_SMI(SMI_Loop_index_range(id, &l, &h, SMI_LOOP_GET_LOCAL));
	table[2 * rank] = l;
	table[2 * rank + 1] = h;
	CHECK_SMI(SMI_Barrier());
	for (int i = 0; i < size; i++) {
		ranges[i][0] = table[2 * i];
		ranges[i][1] = table[2 * i + 1];
		if (ranges[i][0] > ranges[i][1])
			continue;
		CHECK_EQ(ranges[i][0], next);
		next = ranges[i][1] + 1;
	}
	CHECK_EQ(next, high + 1);
	CHECK_SMI(SMI_Barrier());
}

static void split(void)
{
	int id, low = 3, high = 1000, region, data, l, h;
	int *table;

	smi_start();
	table = smi_region(SMI_SHM_UNDIVIDED, 4096, 0, &region);
	CHECK_SMI(SMI_Loop_split_init(&id));
	CHECK_SMI(SMI_Loop_index_range(id, &low, &high, SMI_LOOP_SET_GLOBAL));
	CHECK_SMI(SMI_Determine_loop_splitting(id, SMI_SPLIT_REGULAR, 0, 0));
	check_cover(id, 3, 1000, table);
	for (int i = 0; i < 3; i++) {
		CHECK_SMI(SMI_Loop_time_start(id));
		usleep(rank ? 1000 : 3000);
		CHECK_SMI(SMI_Loop_time_stop(id));
		CHECK_SMI(SMI_Loop_balance_index_range(id));
		check_cover(id, 3, 1000, table);
	}
	/* each process gets the indices whose elements are on its node */
	smi_region(SMI_SHM_BLOCKED, 4096u * 4 * (unsigned int)size, 0, &data);
	low = 0;
	high = 4096 * 4 * size / 12 - 1;
	CHECK_SMI(SMI_Loop_index_range(id, &low, &high, SMI_LOOP_SET_GLOBAL));
	CHECK_SMI(SMI_Determine_loop_splitting(id, SMI_SPLIT_OWNER, 12, data));
	check_cover(id, 0, high, table);
	/* with an undivided region, only processes of the owner's node get indices */
	CHECK_SMI(SMI_Free_shreg(data));
	smi_region(SMI_SHM_UNDIVIDED, 8192, 0, &data);
	high = 2047;
	CHECK_SMI(SMI_Loop_index_range(id, &low, &high, SMI_LOOP_SET_GLOBAL));
	CHECK_SMI(SMI_Determine_loop_splitting(id, SMI_SPLIT_OWNER, 4, data));
	check_cover(id, 0, 2047, table);
	CHECK_SMI(SMI_Loop_index_range(id, &l, &h, SMI_LOOP_GET_LOCAL));
	if (node)
		CHECK(l == 0 && h == -1);
	CHECK_EQ(SMI_Loop_index_range(id, &l, &h, 9), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Determine_loop_splitting(id, SMI_SPLIT_OWNER, 4, 99), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Loop_time_stop(id), SMI_ERR_PARAM);
	smi_stop();
}

TEST_SIZES(split, split)
