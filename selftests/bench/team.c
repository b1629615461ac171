// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Measure calls of sci/team.h by size, in microseconds, with RANKS (2) processes on
 * NODES (1) virtual nodes. With SYMMETRIC=1 the buffers of collective calls are in
 * symmetric memory.
 */

#include <sci/team.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libsci/base/barrier.h"
#include "selftests/ranks.h"

static struct sci_team *team;
static uint8_t *mem, *local;
static int me, members;

#define MOST	(4u << 20)

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static void put_quiet(size_t len)
{
	sci_team_put(team, mem, local, len, (me + 1) % members);
	sci_team_quiet(team);
}

static void get(size_t len)
{
	sci_team_get(team, local, mem, len, (me + 1) % members);
}

static void plain_copy(size_t len)
{
	memcpy(local, local + MOST, len);
	sci_compiler_barrier();
}

static void fetch_add(size_t len)
{
	uint64_t old;

	sci_team_atomic(team, mem, len < 8 ? 4 : 8, SCI_ATOMIC_ADD, 1, 0, &old, (me + 1) % members);
}

static void barrier(size_t len)
{
	(void)len;
	sci_team_barrier(team);
}

static void bcast(size_t len)
{
	sci_team_bcast(team, 0, local, len);
}

static void allreduce(size_t len)
{
	sci_team_allreduce(team, local, local + MOST, len / 8,
			   sci_op(SCI_OP_SUM, SCI_TYPE_DOUBLE));
}

static void reduce(size_t len)
{
	sci_team_reduce(team, 0, local, local + MOST, len / 8,
			sci_op(SCI_OP_SUM, SCI_TYPE_DOUBLE));
}

static void allgather(size_t len)
{
	sci_team_allgather(team, local, len / (size_t)members,
			   local + MOST);
}

static void alltoall(size_t len)
{
	sci_team_alltoall(team, local, local + MOST, len / (size_t)members);
}

/* Measure one way, from a put with signal to the end of the wait for it. */
static void ping_pong(size_t len)
{
	uint64_t *signal = (uint64_t *)(void *)(mem + MOST);
	static uint64_t round;

	round++;
	if (me > 1)
		return;
	if (me)
		sci_team_wait_until(team, signal, 8, SCI_CMP_GE, round, -1);
	sci_team_put_signal(team, mem, local, len, signal, round, SCI_SIGNAL_SET, !me);
	if (!me)
		sci_team_wait_until(team, signal, 8, SCI_CMP_GE, round, -1);
}

static const struct {
	const char *name;
	void (*call)(size_t len);
	size_t least, most;
	int divide;
} rows[] = {
	{ "put+quiet", put_quiet, 8, MOST, 1 },
	{ "get", get, 8, MOST, 1 },
	{ "memcpy", plain_copy, 8, MOST, 1 },
	{ "fetch-add", fetch_add, 8, 8, 1 },
	{ "ping-pong", ping_pong, 8, 8192, 2 },
	{ "barrier", barrier, 8, 8, 1 },
	{ "bcast", bcast, 8, MOST, 1 },
	{ "reduce", reduce, 8, MOST, 1 },
	{ "allreduce", allreduce, 8, MOST, 1 },
	{ "allgather", allgather, 64, MOST, 1 },
	{ "alltoall", alltoall, 64, MOST, 1 },
};

/* Return the best of several rounds: the cost of the call when nothing else runs. */
static double measure(size_t row, size_t len)
{
	double best = 1e99;

	for (int round = 0; round < 7; round++) {
		unsigned int n = len < 1024 ? 2000 : len < 65536 ? 300 : 10;
		double t;

		sci_team_barrier(team);
		t = now_us();
		for (unsigned int i = 0; i < n; i++)
			rows[row].call(len);
		t = (now_us() - t) / n;
		best = t < best ? t : best;
	}
	return best / rows[row].divide;
}

static void rank_main(void)
{
	struct sci_team_attr attr = { .size = sizeof(attr), .symmetric_size = 32u << 20 };
	void *p;

	CHECK_EQ(sci_team_open(&team, &attr), 0);
	CHECK_EQ(sci_team_alloc(team, MOST + 64, 64, &p), 0);
	mem = p;
	memset(mem, 0, MOST + 64);
	me = sci_team_rank(team);
	members = sci_team_size(team);
	if (getenv("SYMMETRIC"))
		CHECK_EQ(sci_team_alloc(team, 2 * (MOST + 64), 64, &p), 0);
	else
		p = calloc(2, MOST + 64);
	local = p;
	CHECK(local);
	memset(local, 1, 2 * MOST);
	for (size_t row = 0; row < ARRAY_LEN(rows); row++) {
		if (!me)
			printf("%-10s", rows[row].name);
		for (size_t len = rows[row].least; len <= rows[row].most; len *= 8) {
			double us = measure(row, len);

			if (!me)
				printf("  %zu: %.3f", len, us);
		}
		if (!me)
			printf("\n");
		fflush(stdout);
	}
	if (!getenv("SYMMETRIC"))
		free(local);
	CHECK_EQ(sci_team_close(team), 0);
}

TEST(times)
{
	const char *n = getenv("RANKS"), *nodes = getenv("NODES");

	ranks_run(n ? (unsigned int)atoi(n) : 2, nodes ? (unsigned int)atoi(nodes) : 1,
		  rank_main);
}
