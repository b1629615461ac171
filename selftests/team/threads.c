// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Several threads of each member make calls at the same time. */

#include <sci/team.h>

#include <stdlib.h>
#include <string.h>

#include "selftests/ranks.h"

#define THREADS	3

static struct sci_team *team, *teams[THREADS];
static uint64_t *count, *box;
static _Atomic bool stop;

static void *worker(void *arg)
{
	int i = (int)(size_t)arg, n = sci_team_size(team), me = sci_team_rank(team);
	struct sci_team *t = teams[i];
	const struct sci_op *sum = sci_op(SCI_OP_SUM, SCI_TYPE_INT64);
	struct sci_coll *coll;

	for (int64_t round = 0; round < (int64_t)test_calls(100); round++) {
		int to = (me + 1) % n;
		int64_t in = round + me, out;
		uint64_t v = (uint64_t)round * 8 + (uint64_t)i, got;

		/* each thread has its own words; all threads add to the same count */
		CHECK_EQ(sci_team_put(team, &box[i], &v, 8, to), 0);
		CHECK_EQ(sci_team_quiet(team), 0);
		CHECK_EQ(sci_team_get(team, &got, &box[i], 8, to), 0);
		CHECK_EQ(got, v);
		CHECK_EQ(sci_team_atomic(team, count, 8, SCI_ATOMIC_ADD, 1, 0, &got, 0), 0);
		CHECK_EQ(sci_team_atomic_nbi(team, count, 8, SCI_ATOMIC_ADD, 1, 0, NULL, 1), 0);
		if (round % 2) {
			CHECK_EQ(sci_team_allreduce(t, &in, &out, 1, sum), 0);
		} else {
			CHECK_EQ(sci_team_iallreduce(t, &in, &out, 1, sum, &coll), 0);
			CHECK_EQ(sci_coll_wait(coll, -1), 0);
		}
		CHECK_EQ(out, n * round + n * (n - 1) / 2);
	}
	CHECK_EQ(sci_team_quiet(team), 0);
	return NULL;
}

static void *progress(void *arg)
{
	(void)arg;
	while (!stop) {
		CHECK_EQ(sci_team_progress(team), 0);
		/* no block begins there: this looks at all blocks */
		CHECK_EQ(sci_team_alloc_size(team, box), 0);
		test_pause();
	}
	return NULL;
}

static void rank_main(void *memory)
{
	pthread_t threads[THREADS], mover;
	void *p;
	int me;

	setenv("SCI_TEAM_MEMORY", memory, 1);
	setenv("SCI_SYMMETRIC_SIZE", "64K", 1);
	CHECK_EQ(sci_team_open(&team, NULL), 0);
	me = sci_team_rank(team);
	CHECK_EQ(sci_team_alloc(team, 64, 0, &p), 0);
	memset(p, 0, 64);
	count = p;
	box = count + 1;
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(sci_team_split(team, 0, i % 2 ? me : -me, &teams[i]), 0);
	CHECK_EQ(pthread_create(&mover, NULL, progress, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, worker, (void *)(size_t)i), 0);
	for (unsigned int i = 0; i < test_calls(100); i++) {
		CHECK_EQ(sci_team_alloc(team, 64, 0, &p), 0);
		CHECK_EQ(sci_team_free(team, p), 0);
	}
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK_EQ(sci_team_barrier(team), 0);
	stop = true;
	CHECK_EQ(pthread_join(mover, NULL), 0);
	if (me < 2)
		CHECK_EQ(*count, THREADS * test_calls(100) * (unsigned int)sci_team_size(team));
	CHECK_EQ(sci_team_close(team), 0);
}

TEST(threads_of_near_members)
{
	ranks_run_arg(3, 1, rank_main, (void *)"all", false);
}

TEST(threads_of_members_on_nodes)
{
	ranks_run_arg(4, 2, rank_main, (void *)"node", false);
}

TEST(threads_of_far_members)
{
	ranks_run_arg(2, 1, rank_main, (void *)"none", false);
}
