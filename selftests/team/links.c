// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * The link is down for a while when ranks open a team. Each test tries several moments.
 * SCI_LINKDOWN: the first moment, in ms (default 0).
 */

#include <sci/team.h>

#include <stdio.h>
#include <stdlib.h>

#include "selftests/ranks.h"

static void opens_a_team(void)
{
	struct sci_team *t;

	CHECK_EQ(sci_team_open(&t, NULL), 0);
	CHECK_EQ(sci_team_barrier(t), 0);
	CHECK_EQ(sci_team_close(t), 0);
}

static void link_downs(const char *memory, unsigned int ms)
{
	const char *s = getenv("SCI_LINKDOWN");
	unsigned int first = s ? (unsigned int)atoi(s) : 0;

	setenv("SCI_TEAM_MEMORY", memory, 1);
	setenv("SCI_SYMMETRIC_SIZE", "64K", 1);
	for (unsigned int at = 0; at < 50; at += 10) {
		char fault[64];

		snprintf(fault, sizeof(fault), "linkdown=%u:%u", first + at, ms);
		setenv("SCI_FAULT", fault, 1);
		ranks_run(8, 4, opens_a_team);
	}
}

TEST(a_link_is_down_for_long_at_start_up)
{
	link_downs("all", 400);
}

TEST(a_link_is_down_for_a_moment_at_start_up)
{
	link_downs("all", 10);
}

TEST(a_link_of_nodes_is_down_at_start_up)
{
	link_downs("node", 100);
}

TEST(a_link_of_far_members_is_down_at_start_up)
{
	link_downs("none", 100);
}
