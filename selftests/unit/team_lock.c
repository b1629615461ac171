// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The word of a lock of teams: tickets that are skipped and given back. */

#include "libsci/team/lock.h"

#include <errno.h>

#include "selftests/harness.h"

/* Let the next step of @l skip the current ticket: its member has not used it for a long time. */
static void wait_long(struct lock_wait *l)
{
	l->since_ms = 0;
}

static struct team_rank ranks[3];
static struct team_world world = { .size = 3, .ranks = ranks };

TEST(the_last_ticket_is_given_back)
{
	struct lock_wait a, b;
	uint64_t word = 0;

	lock_wait_begin(&a, &word, 0);
	lock_wait_begin(&b, &word, 1);
	lock_wait_cancel(&b);
	CHECK_EQ(lock_wait_step(&world, &a), 0);
	CHECK_EQ(lock_try(&world, &word, 1), -EAGAIN);
	CHECK_EQ(lock_release(&word, 0), 0);
	CHECK_EQ(lock_try(&world, &word, 1), 0);
	CHECK_EQ(lock_release(&word, 1), 0);
	CHECK_EQ(lock_release(&word, 1), -EPERM);
}

TEST(a_ticket_that_was_skipped_is_not_given_back)
{
	struct lock_wait a, b;
	uint64_t word = 0;

	lock_wait_begin(&a, &word, 0);
	lock_wait_begin(&b, &word, 1);
	wait_long(&b);
	CHECK_EQ(lock_wait_step(&world, &b), -EAGAIN);
	lock_wait_cancel(&b);
	lock_wait_cancel(&a);
	CHECK_EQ(lock_try(&world, &word, 2), 0);
	CHECK_EQ(lock_release(&word, 2), 0);
	CHECK_EQ(lock_try(&world, &word, 0), 0);
}

TEST(a_member_whose_ticket_was_skipped_takes_another)
{
	struct lock_wait a, b;
	uint64_t word = 0;

	lock_wait_begin(&a, &word, 0);
	lock_wait_begin(&b, &word, 1);
	wait_long(&b);
	CHECK_EQ(lock_wait_step(&world, &b), -EAGAIN);
	CHECK_EQ(lock_wait_step(&world, &b), 0);
	CHECK_EQ(lock_wait_step(&world, &a), -EAGAIN);
	CHECK_EQ(lock_wait_step(&world, &a), -EAGAIN);
	CHECK_EQ(lock_release(&word, 1), 0);
	CHECK_EQ(lock_wait_step(&world, &a), 0);
}
