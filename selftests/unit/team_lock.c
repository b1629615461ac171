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

static int take(uint64_t *word, int member)
{
	return lock_try(&world, &(struct lock_wait){ .word = word, .member = member });
}

TEST(the_last_ticket_is_given_back)
{
	struct lock_wait a, b;
	uint64_t word = 0;

	lock_wait_begin(&a, &word, 0);
	lock_wait_begin(&b, &word, 1);
	lock_wait_cancel(&b);
	CHECK_EQ(lock_wait_step(&world, &a), 0);
	CHECK_EQ(take(&word, 1), -EAGAIN);
	CHECK_EQ(lock_release(&word, 0), 0);
	CHECK_EQ(take(&word, 1), 0);
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
	CHECK_EQ(take(&word, 2), 0);
	CHECK_EQ(lock_release(&word, 2), 0);
	CHECK_EQ(take(&word, 0), 0);
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

/* The word is as before: each member that takes the lock learns that its owner is dead. */
TEST(a_lock_is_given_back_to_its_dead_owner)
{
	struct lock_wait a = { .member = 1 }, b;
	uint64_t word = 0;

	a.word = &word;
	CHECK_EQ(take(&word, 0), 0);
	ranks[0].dead = -ECONNRESET;
	CHECK_EQ(lock_try(&world, &a), -EOWNERDEAD);
	CHECK_EQ(take(&word, 2), -EAGAIN);
	lock_give_back(&a);
	lock_wait_begin(&b, &word, 2);
	CHECK_EQ(lock_wait_step(&world, &b), -EOWNERDEAD);
	lock_give_back(&b);
	CHECK_EQ(take(&word, 1), -EOWNERDEAD);
	CHECK_EQ(lock_release(&word, 1), 0);
	CHECK_EQ(take(&word, 1), 0);
}
