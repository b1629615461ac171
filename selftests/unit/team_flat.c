// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Collective calls through shared memory: two members in one process, after many epochs. */

#include "libsci/team/flat.h"

#include <limits.h>
#include <stdlib.h>

#include "selftests/harness.h"

#define MEMBERS	2

static struct team_world world = { .single_copy_min = UINT_MAX };
static struct team_member members[MEMBERS];
static struct sci_team teams[MEMBERS];	/* the team of each member */

/* Make a team whose members have finished epoch @done. */
static void team_begin(uint32_t done)
{
	for (int i = 0; i < MEMBERS; i++) {
		struct sci_team *t = &teams[i];

		*t = (struct sci_team){
			.world = &world, .members = members, .rank = i, .size = MEMBERS, .flat = true,
		};
		CHECK_EQ(flat_open(t), 0);
		t->area = members[i].area = calloc(1, flat_area_size(t));
		CHECK(t->area);
		t->area->done = done;
		t->epoch = done + 1;
		t->min_done = done;
	}
}

static void team_end(void)
{
	for (int i = 0; i < MEMBERS; i++)
		free(members[i].area);
}

/* Step a new call of member @rank with root 0. Return: 0 or -EAGAIN. */
static int call_step(int rank, enum coll_kind kind, const uint32_t *src, uint32_t *dst)
{
	struct sci_coll c = {
		.team = &teams[rank], .kind = kind, .src = (const uint8_t *)src,
		.dst = (uint8_t *)dst, .len = sizeof(*src),
	};

	CHECK_EQ(flat_start(&c), 0);
	return flat_step(&c);
}

/* A member that only receives for more than 2^31 epochs must still wait for a slow root. */
TEST(a_member_that_has_only_received_waits_for_the_root)
{
	uint32_t v = 7, got[MEMBERS] = { 0 }, n = 0;

	team_begin(0x800000ff);
	/* as after more than 2^31 broadcasts of the root */
	teams[1].min_done = 0;
	CHECK_EQ(call_step(0, COLL_BCAST, &v, &v), 0);
	CHECK_EQ(call_step(1, COLL_BCAST, got, got), 0);
	CHECK_EQ(got[0], 7);
	while (n <= SLOTS && !call_step(1, COLL_GATHER, &n, NULL))
		n++;
	CHECK_EQ(n, SLOTS);
	for (uint32_t i = 0; i < n; i++) {
		CHECK_EQ(call_step(0, COLL_GATHER, &v, got), 0);
		CHECK_EQ(got[0], 7);
		CHECK_EQ(got[1], i);
	}
	team_end();
}
