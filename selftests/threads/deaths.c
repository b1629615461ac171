// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * A node dies while threads run on all nodes: the program ends with the node's status, one message
 * names the node, and no process remains. program_run() waits for the end of all processes.
 *
 * SCI_KILLS: the number of kills in nodes_are_killed_anywhere (default 12).
 */

#include "selftests/threads/run.h"

static void dies(const char *node, const char *how, const char *seed, int status,
		 const char *message)
{
	const char *const argv[] = { node, how, seed, NULL };
	static struct result r;

	skip_sanitizers();
	program_run(&r, PROGRAMS "dies", 4, argv);
	if (strcmp(r.text, message))
		FAIL("%s of node %s: '%s' instead of '%s'", how, node, r.text, message);
	CHECK_EQ(r.status, status);
}

static void killed(int node, const char *how, const char *seed)
{
	char number[16], message[100];

	snprintf(number, sizeof(number), "%d", node);
	if (node == 4)
		snprintf(message, sizeof(message),
			 "sci: node 4 has died: the program ends\n");
	else
		snprintf(message, sizeof(message),
			 "sci: node %d was ended by signal 9 (Killed): the program ends\n", node);
	dies(number, how, seed, SIGKILL, message);
}

TEST(the_first_node_is_killed) { killed(4, "kill", "0"); }
TEST(another_node_is_killed) { killed(12, "kill", "0"); }
TEST(the_first_node_is_killed_with_a_lock) { killed(4, "locked", "0"); }
TEST(another_node_is_killed_with_a_lock) { killed(16, "locked", "0"); }

TEST(nodes_are_killed_anywhere)
{
	const char *kills = getenv("SCI_KILLS");
	uint32_t seed = 4242;

	for (unsigned int i = 0; i < (kills ? (unsigned int)atoi(kills) : test_calls(12)); i++) {
		char late[16];

		seed = seed * 1664525 + 1013904223;
		snprintf(late, sizeof(late), "%u", (seed >> 8) % 8000);
		killed(4 * (int)(i % 4 + 1), "late", late);
	}
}

TEST(another_node_aborts)
{
	dies("8", "abort", "0", SIGABRT,
	     "sci: node 8 was ended by signal 6 (Aborted): the program ends\n");
}

TEST(another_node_faults)
{
	dies("8", "fault", "0", SIGSEGV,
	     "sci: node 8 was ended by signal 11 (Segmentation fault): the program ends\n");
}

TEST(exit_on_another_node_is_no_death)
{
	dies("8", "exit", "0", 3 << 8, "");
}
