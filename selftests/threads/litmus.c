// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Threads on several nodes see loads and stores in an order that the memory model allows.
 *
 * SCI_TEST_ROUNDS: rounds of each test (default 8192).
 */

#include "selftests/threads/run.h"

static void litmus(const char *kind, int nodes)
{
	const char *const argv[] = { kind, NULL };
	static struct result r;
	unsigned int lines = 0;

	skip_sanitizers();
	program_run(&r, PROGRAMS "litmus", nodes, argv);
	for (const char *at = r.text; (at = strstr(at, ": 0 forbidden outcomes in ")); at++)
		lines++;
	if (r.status || lines != 4)
		FAIL("status %#x: %s", (unsigned int)r.status, r.text);
}

TEST(atomics_on_two_nodes) { litmus("atomics", 2); }
TEST(atomics_on_four_nodes) { litmus("atomics", 4); }
TEST(locks_on_two_nodes) { litmus("locks", 2); }
TEST(locks_on_four_nodes) { litmus("locks", 4); }
TEST(barriers_on_two_nodes) { litmus("barriers", 2); }
TEST(barriers_on_four_nodes) { litmus("barriers", 4); }
