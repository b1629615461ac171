// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * The number of messages in a collective call: one member of each node sends and receives the short
 * data of the whole node. colls.c checks the data.
 */

#include <sci/team.h>

#include <stdlib.h>
#include <string.h>

#include "selftests/ranks.h"

#define MOST	(64u << 10)		/* bytes of the longest part */

static struct sci_team *team;
static int me, members;
static uint8_t *src, *dst;

/* The lengths and offsets of equal parts. */
static size_t lens[RANKS_MAX];

static uint64_t messages_sent(void)
{
	struct sci_ep_stats s = { .size = sizeof(s) };

	CHECK_EQ(sci_ep_stats(sci_team_ep(team), &s), 0);
	return s.sent_short + s.sent_lines + s.sent_eager + s.sent_rendezvous + s.sent_zcopy +
	       s.sent_single_copy;
}

/* ---- calls with parts of @len bytes; the root is the last rank ---- */

static int call_scan(size_t len)
{
	return sci_team_scan(team, src, dst, len, sci_op(SCI_OP_SUM, SCI_TYPE_UINT8));
}

static int call_exscan(size_t len)
{
	return sci_team_exscan(team, src, dst, len, sci_op(SCI_OP_SUM, SCI_TYPE_UINT8));
}

static int call_gather(size_t len)
{
	return sci_team_gather(team, members - 1, src, len, dst);
}

static int call_gatherv(size_t len)
{
	return sci_team_gatherv(team, members - 1, src, len, dst, lens, NULL);
}

static int call_allgather(size_t len)
{
	return sci_team_allgather(team, src, len, dst);
}

static int call_allgatherv(size_t len)
{
	(void)len;
	return sci_team_allgatherv(team, src, dst, lens, NULL);
}

static int call_scatter(size_t len)
{
	return sci_team_scatter(team, members - 1, src, dst, len);
}

static int call_scatterv(size_t len)
{
	return sci_team_scatterv(team, members - 1, src, lens, NULL, dst, len);
}

static int call_alltoall(size_t len)
{
	return sci_team_alltoall(team, src, dst, len);
}

static int call_alltoallv(size_t len)
{
	(void)len;
	return sci_team_alltoallv(team, src, lens, NULL, dst, lens, NULL);
}

static int call_reduce_scatter(size_t len)
{
	return sci_team_reduce_scatter(team, src, dst, len, sci_op(SCI_OP_SUM, SCI_TYPE_UINT8));
}

/* Return the number of messages of all members in a call. */
static int messages_of(int (*call)(size_t len), size_t len)
{
	int64_t sent, all = 0;

	for (int i = 0; i < members; i++)
		lens[i] = len;
	CHECK_EQ(sci_team_barrier(team), 0);
	sent = (int64_t)messages_sent();
	CHECK_EQ(call(len), 0);
	sent = (int64_t)messages_sent() - sent;
	CHECK_EQ(sci_team_allreduce(team, &sent, &all, 1, sci_op(SCI_OP_SUM, SCI_TYPE_INT64)), 0);
	return (int)all;
}

/* Expected messages: @levels with parts of 8 bytes, @direct with parts of MOST bytes. */
static void expect(const char *name, int (*call)(size_t len), int levels, int direct)
{
	int few = messages_of(call, 8), many = messages_of(call, MOST);

	if (!me)
		test_note("%s: %d messages for 8 bytes, %d for %u bytes", name, few, many, MOST);
	if (few != levels || many != direct)
		FAIL("%s: %d messages for 8 bytes and %d for %u, not %d and %d", name, few, many,
		     MOST, levels, direct);
}

/* Expect the messages of all calls. @in_order: each node has consecutive ranks */
static void expect_all(int nodes, bool in_order, int scans)
{
	int n = members;

	expect("scan", call_scan, scans, scans);
	expect("exscan", call_exscan, scans, scans);
	expect("gather", call_gather, nodes - 1, n - 1);
	expect("gatherv", call_gatherv, nodes - 1, n - 1);
	expect("allgather", call_allgather, nodes * (nodes - 1), nodes * (nodes - 1));
	expect("allgatherv", call_allgatherv, nodes * (nodes - 1), nodes * (nodes - 1));
	expect("scatter", call_scatter, nodes - 1, n - 1);
	expect("scatterv", call_scatterv, nodes - 1, n - 1);
	expect("alltoall", call_alltoall, nodes * (nodes - 1), n * (n - 1));
	expect("alltoallv", call_alltoallv, nodes * (nodes - 1), n * (n - 1));
	if (in_order)
		expect("reduce_scatter", call_reduce_scatter, 2 * (nodes - 1), nodes * (nodes - 1));
	else
		expect("reduce_scatter", call_reduce_scatter, n - 1 + nodes - 1, 2 * (n - 1));
}

/* Return the number of messages of a scan by recursive doubling among @n. */
static int doubling_messages(int n)
{
	int sum = 0;

	for (int d = 1; d < n; d *= 2)
		sum += n - d;
	return sum;
}

static void counts(void)
{
	struct sci_team *all, *mixed;
	int nodes;

	setenv("SCI_TEAM_MEMORY", "node", 1);
	CHECK_EQ(sci_team_open(&all, NULL), 0);
	team = all;
	members = sci_team_size(all);
	me = sci_team_rank(all);
	nodes = sci_team_nodes(all);
	src = calloc((size_t)members, MOST);
	dst = calloc((size_t)members, MOST);
	CHECK(src && dst);
	expect_all(nodes, true, doubling_messages(nodes));
	/* in this team, the order of ranks is not the order of nodes */
	CHECK_EQ(sci_team_split(all, 0, me * 5 % members, &mixed), 0);
	team = mixed;
	me = sci_team_rank(mixed);
	expect_all(nodes, false, doubling_messages(members));
	CHECK_EQ(sci_team_close(mixed), 0);
	free(src);
	free(dst);
	CHECK_EQ(sci_team_close(all), 0);
}

TEST(sixteen_members_on_four_nodes)
{
	ranks_run(16, 4, counts);
}

/* Nodes have 3, 2 and 2 members. */
TEST(seven_members_on_three_nodes)
{
	ranks_run(7, 3, counts);
}
