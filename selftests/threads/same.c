// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* A program prints and returns the same on several nodes as natively. */

#include "selftests/threads/run.h"

static void same(const char *name, int nodes, const char *arg)
{
	static struct result native, spread;

	const char *const argv[] = { arg, NULL };

	skip_sanitizers();
	program_run(&native, name, 0, argv);
	program_run(&spread, name, nodes, argv);
	text_compare(native.text, spread.text);
	CHECK_EQ(spread.status, native.status);
	CHECK(native.len > 0);
}

TEST(basics_on_two_nodes)
{
	same(PROGRAMS "basics", 2, NULL);
}

TEST(basics_on_four_nodes)
{
	same(PROGRAMS "basics", 4, NULL);
}

TEST(streams_on_two_nodes)
{
	same(PROGRAMS "streams", 2, NULL);
}

TEST(streams_on_three_nodes)
{
	same(PROGRAMS "streams", 3, NULL);
}

TEST(a_stream_that_libraries_keep)
{
	same(PROGRAMS "ends", 3, "stream");
}

TEST(threads_of_all_nodes_create_threads)
{
	same(PROGRAMS "nested", 2, NULL);
	same(PROGRAMS "nested", 4, NULL);
}

TEST(parts_of_mappings_on_two_nodes)
{
	same(PROGRAMS "mappings", 2, "parts");
}

TEST(new_memory_on_two_nodes_is_zero)
{
	same(PROGRAMS "mappings", 2, "zero");
}

TEST(fixed_mappings_on_two_nodes)
{
	same(PROGRAMS "mappings", 2, "fixed");
}

TEST(parts_of_shared_mappings_on_two_nodes)
{
	same(PROGRAMS "mappings", 2, "shared");
}

TEST(mappings_of_another_node)
{
	same(PROGRAMS "mappings", 2, "passed");
}

TEST(cancelled_threads_map_memory_on_two_nodes)
{
	same(PROGRAMS "mappings", 2, "cancel");
}

TEST(mappings_that_fail_on_two_nodes)
{
	same(PROGRAMS "mappings", 2, "limit");
}

/* libc frees blocks from before the first thread on each node. */
TEST(localtime_on_three_nodes)
{
	unsetenv("TZ");
	same(PROGRAMS "libc", 3, "time");
	setenv("TZ", "CET-1CEST", 1);
	same(PROGRAMS "libc", 3, "time");
	same(PROGRAMS "libc", 3, "cleared");
}

TEST(setlocale_on_three_nodes)
{
	same(PROGRAMS "libc", 3, "locale");
}

/* All slots for stacks are in use. */
TEST(exit_on_another_node_without_slots)
{
	same(PROGRAMS "ends", 2, "full");
}

TEST(a_node_flushes_a_stream_that_another_one_reads)
{
	same(PROGRAMS "ends", 3, "flush");
}

TEST(threads_are_cancelled_in_a_destructor)
{
	same(PROGRAMS "ends", 2, "destructor");
}

TEST(main_ends_first_on_the_only_node)
{
	const char *const argv[] = { "early", NULL };
	static struct result r;

	skip_sanitizers();
	program_run(&r, PROGRAMS "ends", 2, argv);
	text_compare("sci: a library has started threads before main(): all threads stay on node "
		     "4\njoined 0\n", r.text);
	CHECK_EQ(r.status, 0);
}

TEST(threads_with_large_stacks)
{
	same(PROGRAMS "ends", 2, "large");
}

/* As root, or no call changes the user. */
TEST(all_nodes_change_the_user)
{
	same(PROGRAMS "ends", 3, "user");
}

TEST(the_first_node_is_killed_after_it_has_changed_the_user)
{
	const char *const argv[] = { "orphan", NULL };
	static struct result r;

	skip_sanitizers();
	program_run(&r, PROGRAMS "ends", 3, argv);
	if (!strstr(r.text, "sci: node 4 has died: the program ends\n"))
		FAIL("'%s'", r.text);
	CHECK_EQ(r.status, SIGKILL);
}

TEST(protected_mappings_grow_on_two_nodes)
{
	same(PROGRAMS "mappings", 2, "protected");
}

TEST(mappings_from_before_the_first_thread)
{
	same(PROGRAMS "mappings", 2, "inherited");
}

#define COMPUTES(program)						\
TEST(program##_on_two_and_four_nodes)					\
{									\
	same(PROGRAMS "compute", 2, #program);				\
	same(PROGRAMS "compute", 4, #program);				\
}

COMPUTES(sort)
COMPUTES(lu)
COMPUTES(nbody)
COMPUTES(hash)
COMPUTES(queue)
COMPUTES(fft)
COMPUTES(barnes)
