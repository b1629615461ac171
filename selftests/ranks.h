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
 * Ranks are forked from the test as peers (harness.h).  The test serves them through
 * the launcher's own code (libsci/team/boot_server.h) until all have ended.  Call it
 * before the first call of the library.
 */
#ifndef SELFTESTS_RANKS_H
#define SELFTESTS_RANKS_H

#include "selftests/harness.h"

#define RANKS_MAX	64

/**
 * ranks_run() - run a function in several ranks of a job
 * @n: ranks, up to RANKS_MAX
 * @nodes: nodes of the test's cluster, 4, 8, 12 and so on; ranks that follow one another
 *	are on the same node
 * @fn: what each rank runs; returning is exit(0)
 *
 * Fails the test if one of the ranks fails.
 */
void ranks_run(unsigned int n, unsigned int nodes, void (*fn)(void));

/*
 * The same with an argument.  @may_die: ranks that SIGKILL ends do not fail the test; the
 * others have to end by themselves.
 */
void ranks_run_arg(unsigned int n, unsigned int nodes, void (*fn)(void *arg), void *arg,
		   bool may_die);

/* In a rank: the number of ranks_run(), for tests that do not open anything. */
unsigned int ranks_rank(void);

/* In a rank: SIGKILL ends it in @us microseconds, wherever it is then. */
void ranks_die_in(unsigned int us);

/* The exit status that a rank has asked for by an abort, 0: none has (@may_die only). */
int ranks_aborted(void);

/*
 * Return what the ranks have left in the kernel: sockets of the test's cluster; with
 * SCI_TEST_FABRIC segments, imports and descriptors of all adapters.
 */
unsigned int ranks_resources_left(void);

#endif
