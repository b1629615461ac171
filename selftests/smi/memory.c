// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests that collective calls fail in all processes, and do not hang, if one has no memory. */
#include <stdlib.h>
#include <sys/resource.h>

#include "selftests/smi/start.h"

static void limit(rlim_t bytes)
{
	struct rlimit r;

	CHECK_EQ(getrlimit(RLIMIT_AS, &r), 0);
	r.rlim_cur = bytes;
	CHECK_EQ(setrlimit(RLIMIT_AS, &r), 0);
}

/* Allocate all memory.  Return: a list of the blocks. */
static void **memory_take(void)
{
	void **list = NULL, **block;

	limit(0);
	for (size_t len = 1u << 20; len >= sizeof(*block); len /= 2)
		while ((block = malloc(len))) {
			*block = list;
			list = block;
		}
	return list;
}

static void memory_give(void **list)
{
	void **next;

	limit(RLIM_INFINITY);
	for (; list; list = next) {
		next = *list;
		free(list);
	}
}

static int create(int type)
{
	smi_region_info_t info;
	void *at[RANKS_MAX];
	int id;

	CHECK_SMI(SMI_Init_reginfo(&info, 100000, 0, 0, SMI_ADPT_DEFAULT, 0, 0, NULL));
	info.partner = size - 1;
	return SMI_Create_shreg(type, &info, &id, at);
}

static void without_memory(void)
{
	int region, loop, split, low = 0, high = 999, status;
	double speeds[RANKS_MAX];
	void **taken = NULL, *block;

	smi_start();
	smi_region(SMI_SHM_BLOCKED, 100000, 0, &region);
	CHECK_SMI(SMI_Init_shregMMU(region));
	CHECK_SMI(SMI_Loop_init(&loop, low, high, SMI_PART_BLOCKED));
	CHECK_SMI(SMI_Loop_split_init(&split));
	CHECK_SMI(SMI_Loop_index_range(split, &low, &high, SMI_LOOP_SET_GLOBAL));
	CHECK_SMI(SMI_Barrier());
	if (rank == size - 1)
		taken = memory_take();
	CHECK_EQ(create(SMI_SHM_UNDIVIDED), SMI_ERR_NOMEM);
	CHECK_EQ(create(SMI_SHM_BLOCKED), SMI_ERR_NOMEM);
	CHECK_EQ(create(SMI_SHM_SMP), SMI_ERR_NOMEM);
	CHECK_EQ(create(SMI_SHM_FRAGMENTED), SMI_ERR_NOMEM);
	if (!rank || rank == size - 1)
		CHECK_EQ(create(SMI_SHM_PT2PT), SMI_ERR_NOMEM);
	CHECK_EQ(SMI_Evaluate_speed(speeds), SMI_ERR_NOMEM);
	CHECK_EQ(SMI_Switch_to_replication(region, SMI_REP_EVERYTHING, 0, 0, 0),
		 SMI_ERR_NOMEM);
	CHECK_EQ(SMI_Switch_to_replication(region, SMI_REP_EVERYTHING | SMI_REP_ONE_PER_NODE,
					   0, 0, 0), SMI_ERR_NOMEM);
	/* these calls need no memory */
	CHECK_SMI(SMI_Cmalloc(1000, region, &block));
	CHECK_SMI(SMI_Get_iterations(loop, &status, &low, &high));
	CHECK_SMI(SMI_Loop_balance_index_range(split));
	CHECK_SMI(SMI_Barrier());
	memory_give(taken);
	CHECK_SMI(create(SMI_SHM_BLOCKED));
	smi_stop();
}

static void memory_of_one(unsigned int n, unsigned int on)
{
	if (TEST_ASAN || TEST_TSAN)
		SKIP("the sanitizer needs address space");
	ranks_run(n, on, without_memory);
}

TEST(memory_is_short_in_one_process_of_2) { memory_of_one(2, 1); }
TEST(memory_is_short_in_one_process_of_4_on_2) { memory_of_one(4, 2); }
TEST(memory_is_short_in_one_process_of_16_on_4) { memory_of_one(16, 4); }
