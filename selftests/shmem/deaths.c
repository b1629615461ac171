// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Kills one PE in a random call: all other PEs must end by themselves.
 * SCI_KILLS is the number of kills (100).
 */

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <sci-shmem/shmem.h>

#include "selftests/ranks.h"

#define MOST_US	30000u

struct setting {
	unsigned int n;
	unsigned int nodes;
	const char *memory;
	unsigned int seed;
};

static long words[8], lock, sums[2];
static uint64_t signal_word;
static char block[2][4096];

static void call(unsigned int i, int me, int n)
{
	int right = (me + 1) % n;
	void *p;

	switch (i % 9) {
	case 0:
		shmem_long_p(&words[0], i, right);
		break;
	case 1:
		shmem_barrier_all();
		break;
	case 2:
		shmem_putmem(block[0], block[1], sizeof(block[0]), right);
		shmem_quiet();
		break;
	case 3:
		shmem_long_atomic_fetch_add(&words[1], 1, right);
		break;
	case 4:
		shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sums[0], &sums[1], 1);
		break;
	case 5:
		shmem_broadcastmem(SHMEM_TEAM_WORLD, block[0], block[1], sizeof(block[0]),
				   (int)(i % (unsigned int)n));
		break;
	case 6:
		shmem_set_lock(&lock);
		shmem_clear_lock(&lock);
		break;
	case 7:
		shmem_putmem_signal(block[0], block[1], 100, &signal_word, 1,
				    SHMEM_SIGNAL_ADD, right);
		shmem_signal_wait_until(&signal_word, SHMEM_CMP_GE, i / 9 + 1);
		break;
	default:
		p = shmem_malloc(1000 + i % 50000);
		CHECK(p);
		shmem_free(p);
	}
}

static void pe_run(void *arg)
{
	const struct setting *s = arg;
	setenv("SCI_TEAM_MEMORY", s->memory, 1);
	setenv("SHMEM_SYMMETRIC_SIZE", "256K", 1);
	dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
	shmem_init();
	/* before the team exists, only the launcher could end the other PEs */
	shmem_barrier_all();
	if (ranks_rank() == s->seed % s->n)
		ranks_die_in(s->seed * 104729 % MOST_US);
	for (unsigned int i = 0;; i++)
		call(i, shmem_my_pe(), shmem_n_pes());
}

static void kills(unsigned int n, unsigned int nodes, const char *memory, unsigned int share)
{
	const char *all = getenv("SCI_KILLS");
	unsigned int times = test_calls(all ? (unsigned int)atoi(all) : 100) / share;
	struct setting s = { n, nodes, memory, 0 };

	for (; s.seed < times; s.seed++) {
		/* a PE that has lost another PE ends the program with status 1 */
		CHECK_EQ(ranks_run_apart(n, nodes, pe_run, &s), 1);
		ranks_death_over();
	}
	ranks_deaths_note("the end of the program");
}

TEST(near_pes_die)
{
	kills(4, 1, "all", 2);
}

TEST(pes_on_nodes_die)
{
	kills(4, 2, "node", 4);
}

TEST(far_pes_die)
{
	kills(3, 1, "none", 4);
}
