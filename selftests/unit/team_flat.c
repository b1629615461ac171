// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Collective calls through shared memory: members in one process, after many epochs. */

#include "libsci/team/flat.h"

#include <limits.h>
#include <stdlib.h>

#include "selftests/harness.h"

#define MEMBERS	2
#define MANY	1025

static struct team_world world = { .single_copy_min = UINT_MAX };
static struct team_member members[MANY];
static struct sci_team teams[MANY];	/* the team of each member */

/* Make a team of @n members that have finished epoch @done. */
static void team_begin(int n, uint32_t done)
{
	for (int i = 0; i < n; i++) {
		struct sci_team *t = &teams[i];

		*t = (struct sci_team){
			.world = &world, .members = members, .rank = i, .size = n, .flat = true,
		};
		CHECK_EQ(flat_open(t), 0);
		t->area = members[i].area = calloc(1, flat_area_size(t));
		CHECK(t->area);
		t->area->done = done;
		t->epoch = done + 1;
		t->min_done = done;
	}
}

static void team_end(int n)
{
	for (int i = 0; i < n; i++) {
		free(members[i].area);
		free(teams[i].share);
	}
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

	team_begin(MEMBERS, 0x800000ff);
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
	team_end(MEMBERS);
}

/* ---- more members than the bytes of the usual piece of a chunk ---- */

#define PART	20u		/* bytes: more than a piece */

static uint8_t part_byte(int from, int to, size_t i)
{
	return (uint8_t)(from * 7 + to * 13 + (int)i);
}

static void parts_fill(uint8_t *src, int from)
{
	for (int to = 0; to < MANY; to++)
		for (size_t i = 0; i < PART; i++)
			src[(size_t)to * PART + i] = part_byte(from, to, i);
}

static void parts_check(const uint8_t *dst, int to)
{
	for (int from = 0; from < MANY; from++)
		for (size_t i = 0; i < PART; i++)
			CHECK_EQ(dst[(size_t)from * PART + i], part_byte(from, to, i));
}

static void alltoall_many(enum coll_kind kind)
{
	static size_t lens[MANY], offsets[MANY];
	static struct sci_coll calls[MANY];
	size_t all = MANY * (size_t)PART;
	uint8_t *src = malloc(MANY * all), *dst = calloc(MANY, all);
	bool v = kind == COLL_ALLTOALLV;
	int ret;

	CHECK(src && dst);
	team_begin(MANY, 0);
	for (int i = 0; i < MANY; i++) {
		lens[i] = PART;
		offsets[i] = (size_t)i * PART;
		parts_fill(src + (size_t)i * all, i);
	}
	for (int i = 0; i < MANY; i++) {
		calls[i] = (struct sci_coll){
			.team = &teams[i], .kind = kind, .src = src + (size_t)i * all,
			.dst = dst + (size_t)i * all, .len = v ? 0 : PART,
			.lens = v ? lens : NULL, .offsets = v ? offsets : NULL,
			.src_lens = v ? lens : NULL, .src_offsets = v ? offsets : NULL,
		};
		CHECK_EQ(flat_start(&calls[i]), 0);
	}
	do {
		ret = 0;
		for (int i = 0; i < MANY; i++) {
			int step = flat_step(&calls[i]);

			CHECK(!step || step == -EAGAIN);
			ret = step ? step : ret;
		}
	} while (ret);
	for (int i = 0; i < MANY; i++)
		parts_check(dst + (size_t)i * all, i);
	team_end(MANY);
	free(src);
	free(dst);
}

TEST(an_alltoall_of_many_members)
{
	alltoall_many(COLL_ALLTOALL);
}

TEST(an_alltoallv_of_many_members)
{
	alltoall_many(COLL_ALLTOALLV);
}
