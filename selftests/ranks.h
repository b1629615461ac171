/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: tests of jobs
 *
 *	#include "selftests/ranks.h"
 *
 *	static void rank_main(void)
 *	{
 *		struct sci_boot *boot;
 *
 *		CHECK_EQ(sci_boot_open(&boot, NULL), 0);
 *		...
 *		sci_boot_close(boot);
 *	}
 *
 *	TEST(four_ranks_on_two_nodes)
 *	{
 *		ranks_run(4, 2, rank_main);
 *	}
 *
 * Ranks are peers of the test (harness.h). The test serves them with the launcher's own code
 * (libsci/team/boot_server.h) until all ranks have ended. Call ranks_run() before the first
 * call of the library.
 *
 * If each node is a machine (remote.h), ranks of several nodes are spread over the machines that
 * there are. Jobs of one node are skipped, and jobs with an argument that is a variable.
 */
#ifndef SELFTESTS_RANKS_H
#define SELFTESTS_RANKS_H

#include "selftests/harness.h"

#define RANKS_MAX	64

/**
 * ranks_run() - run a function in several ranks of a job
 * @n: number of ranks, up to RANKS_MAX
 * @nodes: number of nodes: 4, 8, 12 and so on. Consecutive ranks share a node.
 * @fn: the main function of each rank. Return is exit(0).
 *
 * Fails the test if one of the ranks fails.
 */
void ranks_run(unsigned int n, unsigned int nodes, void (*fn)(void));

/*
 * ranks_run() with an argument. With @may_die, SIGKILL may end ranks; the others must
 * exit by themselves.
 */
void ranks_run_arg(unsigned int n, unsigned int nodes, void (*fn)(void *arg), void *arg,
		   bool may_die);

/*
 * ranks_run_arg() with @may_die, in a process of its own: a test has a limited number of peers.
 * Return ranks_aborted() of that process.
 */
int ranks_run_apart(unsigned int n, unsigned int nodes, void (*fn)(void *arg), void *arg);

/* In a rank: return its number, 0 to @n - 1, also before sci_boot_open(). */
unsigned int ranks_rank(void);

/* In a rank: send SIGKILL to this process in @us microseconds. */
void ranks_die_in(unsigned int us);

/*
 * In a rank or the test: the other ranks have ended or continue after the last ranks_die_in(). Keep
 * the time since that death if it is the longest one. Ranks on other machines do nothing.
 */
void ranks_death_over(void);

/* Print the longest time from a death to ranks_death_over(). @end: the event at its end */
void ranks_deaths_note(const char *end);

/* With @may_die: return the exit status that a rank has passed to its abort; 0: no abort. */
int ranks_aborted(void);

/*
 * Count the ranks' resources in the kernel: sockets of the test's cluster, or with
 * SCI_TEST_FABRIC segments, imports and descriptors of all adapters.
 */
unsigned int ranks_resources_left(void);

#endif
