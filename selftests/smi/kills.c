// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Kills a process at a random point of its calls, also while it starts.  The watchdog must
 * end the other processes, or their SMI_Init() must fail, and no segment or interrupt of
 * the job may be left.
 *
 * SCI_TEST_ROUNDS is the number of rounds, SCI_TEST_SEED repeats a choice of calls and times.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "selftests/random.h"
#include "selftests/smi/start.h"

#define VICTIM	1

struct round {
	unsigned int number;
	bool starting;			/* the timer starts before SMI_Init() */
	int *ended;			/* processes ended by watchdog or SMI_Init() */
};

static struct round *the_round;

static void note_end(void)
{
	__atomic_add_fetch(the_round->ended, 1, __ATOMIC_SEQ_CST);
	_exit(0);
}

static void one_region(void)
{
	static const int types[] = { SMI_SHM_UNDIVIDED, SMI_SHM_BLOCKED, SMI_SHM_SMP,
				     SMI_SHM_FRAGMENTED };
	smi_region_info_t info;
	void *at[RANKS_MAX];
	int id;

	SMI_Init_reginfo(&info, 100000, 0, (int)random_below((uint32_t)size),
			 SMI_ADPT_DEFAULT, 0, 0, NULL);
	if (!SMI_Create_shreg(types[random_below(ARRAY_LEN(types))], &info, &id, at)) {
		if (random_below(2))
			SMI_Switch_to_replication(id, SMI_REP_EVERYTHING, 0, 0, 0);
		SMI_Free_shreg(id);
	}
}

static void one_mutex(void)
{
	int id;

	if (SMI_Mutex_init(&id))
		return;
	if (!SMI_Mutex_lock(id))
		SMI_Mutex_unlock(id);
	SMI_Mutex_destroy(id);
}

static void one_message(void)
{
	char text[64] = "";

	if (rank % 2 == 0 && rank + 1 < size)
		SMI_Sendrecv(text, text + 32, 32, rank + 1);
	else if (rank % 2)
		SMI_Sendrecv(text, text + 32, 32, rank - 1);
}

static void one_loop(void)
{
	int id, status, low, high;

	if (SMI_Loop_init(&id, 1, 1000, SMI_PART_BLOCKED))
		return;
	while (!SMI_Get_iterations(id, &status, &low, &high) && status != SMI_LOOP_READY)
		;
	SMI_Loop_free(id);
}

/* All processes make the same calls until the watchdog ends them. */
static void live_on(void *arg)
{
	static void (*const calls[])(void) = {
		one_region, one_region, one_mutex, one_message, one_loop,
	};

	int err;

	the_round = arg;
	random_seed(the_round->number * 100 + 1);
	if (ranks_rank() == VICTIM && the_round->starting)
		random_death(random_below(40000));
	err = SMI_Init(NULL, NULL);
	smi_skip_sockets(err);
	if (err)
		note_end();
	CHECK_SMI(SMI_Proc_rank(&rank));
	CHECK_SMI(SMI_Proc_size(&size));
	SMI_Watchdog_callback(note_end);
	if (ranks_rank() == VICTIM && !the_round->starting)
		random_death(random_below(60000));
	/* all processes make the same calls */
	random_seed(the_round->number);
	for (;;)
		calls[random_below(ARRAY_LEN(calls))]();
}

static void rounds(unsigned int n, unsigned int on, bool starting)
{
	const char *wanted = getenv("SCI_TEST_ROUNDS");
	unsigned int count = wanted ? (unsigned int)atoi(wanted) : TEST_TSAN || TEST_ASAN || n > 8 ? 2 : 4;
	struct round r = { .starting = starting, .ended = test_shared(sizeof(int)) };

	for (; r.number < count; r.number++) {
		*r.ended = 0;
		ranks_run_arg(n, on, live_on, &r, true);
		CHECK_EQ(*r.ended, n - 1);
		WAIT_UNTIL(!ranks_resources_left(), TEST_WAIT_MS);
	}
}

TEST(killed_at_random_of_2) { rounds(2, 1, false); }
TEST(killed_at_random_of_4_on_4) { rounds(4, 4, false); }
TEST(killed_at_random_of_8_on_2) { rounds(8, 2, false); }
TEST(killed_at_random_of_16_on_4) { rounds(16, 4, false); }
TEST(killed_while_it_starts) { rounds(4, 2, true); }
