// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Tests the link of `sci bench` when fork() fails. The program includes the source file, so that
 * fork() can fail and kill() cannot reach a process.
 */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "selftests/harness.h"

static unsigned int kills;

static pid_t fork_fail(void)
{
	errno = EAGAIN;
	return -1;
}

static int kill_count(pid_t pid, int sig)
{
	(void)pid;
	(void)sig;
	kills++;
	return 0;
}

#define fork()		fork_fail()
#define kill(pid, sig)	kill_count(pid, sig)
#include "libsci/tools/bench_link.c"	/* NOLINT(bugprone-suspicious-include) */
#undef fork
#undef kill

/* ---- the rest of the command ---- */

int tool_error(const char *fmt, ...)
{
	(void)fmt;
	return TOOL_FAILED;
}

int tool_fabric_error(int err)
{
	(void)err;
	return TOOL_FAILED;
}

uint64_t tool_now_ns(void)
{
	return 0;
}

int tool_join(sci_desc_t *sd)
{
	(void)sd;
	return TOOL_FAILED;
}

int tool_resolve_node(const char *s, unsigned int *node)
{
	(void)s;
	(void)node;
	return TOOL_FAILED;
}

bool tool_parse_number(const char *s, uint64_t min, uint64_t max, uint64_t *out)
{
	(void)s;
	(void)min;
	(void)max;
	(void)out;
	return false;
}

bool tool_parse_node(const char *s, unsigned int *node)
{
	(void)s;
	(void)node;
	return false;
}

int bench_serve_run(struct bench_link *l, const struct bench_order *o)
{
	(void)l;
	(void)o;
	return -ENOTCONN;
}

int bench_serve_memory(struct bench_link *l, uint64_t n)
{
	(void)l;
	(void)n;
	return -ENOTCONN;
}

TEST(a_fork_that_fails_leaves_no_child_and_no_socket)
{
	struct bench_link l = { 0 };
	unsigned int fds = count_fds();

	CHECK_EQ(bench_link_open(&l), TOOL_FAILED);
	CHECK_EQ(l.child, 0);
	bench_link_close(&l);
	CHECK_EQ(kills, 0);
	CHECK_EQ(count_fds(), fds);
}
