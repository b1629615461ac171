// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* SCI_THREADS_MEMORY: the heap's pages are on the nodes that the policy names. */

#include "selftests/threads/run.h"

#define NODES	3

/* Run the program "pages" with a policy. @mib: receives the MiB of the heap on each node. */
static void pages_run(const char *policy, unsigned long mib[NODES])
{
	static struct result r;
	const char *const argv[] = { NULL }, *line;

	skip_sanitizers();
	setenv("SCI_THREADS_MEMORY", policy, 1);
	setenv("SCI_THREADS_REPORT", "1", 1);
	program_run(&r, PROGRAMS "pages", NODES, argv);
	if (r.status)
		test_note("%s", r.text);
	CHECK_EQ(r.status, 0);
	for (int i = 0; i < NODES; i++) {
		char want[40];

		snprintf(want, sizeof(want), "thread %d: 0 errors\n", i);
		CHECK(strstr(r.text, want));
		snprintf(want, sizeof(want), "sci: node %d: ", 4 * (i + 1));
		line = strstr(r.text, want);
		/* the first line of a node is about its threads */
		line = line ? strstr(line + 1, want) : NULL;
		CHECK(line);
		CHECK_EQ(sscanf(line + strlen(want), "%lu MiB of the heap", &mib[i]), 1);
	}
}

TEST(pages_live_on_the_node_that_allocates)
{
	unsigned long mib[NODES];

	pages_run("local", mib);
	for (int i = 0; i < NODES; i++)
		CHECK(mib[i] >= 16 && mib[i] <= 24);
}

TEST(pages_live_on_all_nodes_in_turn)
{
	unsigned long mib[NODES];

	pages_run("round", mib);
	CHECK(mib[0] >= 16 && mib[0] <= 24);
	CHECK(mib[1] == mib[0] && mib[2] == mib[0]);
}

TEST(pages_live_on_one_node)
{
	unsigned long mib[NODES];

	pages_run("8", mib);
	CHECK(mib[1] >= 48 && mib[1] <= 64);
	CHECK(!mib[0] && !mib[2]);
}

/* Check that a program with a policy prints the same as natively. */
static void same_by(const char *policy, const char *name, const char *arg)
{
	static struct result native, spread;
	const char *const argv[] = { arg, NULL };

	skip_sanitizers();
	setenv("SCI_THREADS_MEMORY", policy, 1);
	program_run(&native, name, 0, argv);
	program_run(&spread, name, NODES, argv);
	CHECK(native.len && !strcmp(native.text, spread.text));
	CHECK_EQ(spread.status, native.status);
}

TEST(basics_with_local_pages)
{
	same_by("local", PROGRAMS "basics", NULL);
}

TEST(basics_with_pages_on_all_nodes)
{
	same_by("round", PROGRAMS "basics", NULL);
}

TEST(streams_with_local_pages)
{
	same_by("local", PROGRAMS "streams", NULL);
}

TEST(a_hash_table_with_local_pages)
{
	same_by("local", PROGRAMS "compute", "hash");
}

TEST(a_policy_that_does_not_exist_is_refused)
{
	static struct result r;
	const char *const argv[] = { NULL };

	skip_sanitizers();
	setenv("SCI_THREADS_MEMORY", "16", 1);
	program_run(&r, PROGRAMS "pages", NODES, argv);
	CHECK(WIFEXITED(r.status) && WEXITSTATUS(r.status) == 2);
	CHECK(strstr(r.text, "SCI_THREADS_MEMORY"));
}
