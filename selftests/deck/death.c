// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests that the death of processes becomes an error in the others, which then go on. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include <deck.h>

#include "selftests/ranks.h"

#define READERS	3u
#define MESSAGES	8

struct shared {
	_Atomic int ready;		/* processes that are ready, or the step of a test */
};

static void die(void)
{
	kill(getpid(), SIGKILL);
}

static deck_mbox_t *box_of(int rank, int owner)
{
	deck_mbox_t *box;
	char name[16];

	snprintf(name, sizeof(name), "%d", owner);
	if (rank == owner)
		CHECK_EQ(deck_mbox_create(&box, name), 0);
	else
		CHECK_EQ(deck_mbox_find(&box, name, TEST_WAIT_MS), 0);
	return box;
}

static void begin(int rank, deck_mbox_t **own)
{
	CHECK_EQ(deck_init(NULL, NULL), 0);
	*own = box_of(rank, rank);
	CHECK_EQ(deck_barrier(), 0);
}

/* End a living process. deck_done() reports the death, too. */
static void end(deck_mbox_t *own)
{
	CHECK_EQ(deck_mbox_destroy(own), 0);
	CHECK_EQ(deck_done(), -ECONNRESET);
}

/* Retrieve a message from each other rank, and an error after the message of the dead rank. */
static void retrieve_all(deck_mbox_t *own, deck_msg_t *m, int dead)
{
	bool from_dead = false, error = false;

	for (int i = 0; i < dead + 1; i++) {
		int ret = deck_mbox_retrv(own, m);

		if (ret) {
			CHECK_EQ(ret, -ECONNRESET);
			CHECK(from_dead && !error);
			error = true;
		} else if (deck_msg_source(m) == dead) {
			CHECK(!from_dead);
			from_dead = true;
		}
	}
	CHECK(from_dead && error);
}

/* The last rank posts and dies. Its message is retrieved before the death is reported. */
static void retrieve_then_error(void *arg)
{
	int rank = (int)ranks_rank();
	int last;
	deck_mbox_t *own, *to;
	deck_msg_t *m;

	(void)arg;
	begin(rank, &own);
	last = deck_size() - 1;
	CHECK_EQ(deck_msg_create(&m, 100), 0);
	if (rank == last) {
		for (int r = 0; r < last; r++) {
			to = box_of(rank, r);
			CHECK_EQ(deck_pack_int(m, &r, 1), 0);
			CHECK_EQ(deck_mbox_post(to, m), 0);
			deck_msg_clear(m);
		}
		die();
	}
	if (rank) {
		CHECK_EQ(deck_mbox_retrv(own, m), 0);
		CHECK_EQ(deck_msg_source(m), last);
		CHECK_EQ(deck_mbox_retrv(own, m), -ECONNRESET);
		CHECK_EQ(deck_msg_length(m), 0);
		CHECK_EQ(deck_msg_source(m), -1);
		/* living processes go on */
		to = box_of(rank, 0);
		CHECK_EQ(deck_mbox_post(to, m), 0);
		CHECK_EQ(deck_mbox_destroy(to), 0);
	} else {
		retrieve_all(own, m, last);
	}
	CHECK_EQ(deck_msg_destroy(m), 0);
	end(own);
}

static void run(unsigned int n, unsigned int nodes, void (*fn)(void *arg))
{
	ranks_run_arg(n, nodes, fn, test_shared(sizeof(struct shared)), true);
}

TEST(what_has_arrived_comes_before_the_death)
{
	run(4, 2, retrieve_then_error);
}

/* Messages that arrive after a death, but before it is reported, are retrieved first. */
static void messages_then_error(void *arg)
{
	int rank = (int)ranks_rank(), got = 0, ret;
	struct shared *s = arg;
	deck_mbox_t *own, *to = NULL;
	deck_msg_t *m;

	begin(rank, &own);
	if (rank == 1)
		to = box_of(rank, 0);
	CHECK_EQ(deck_barrier(), 0);
	if (rank == 2)
		die();
	CHECK_EQ(deck_msg_create(&m, 100), 0);
	if (rank == 1) {
		WAIT_UNTIL(atomic_load(&s->ready) == 1, TEST_WAIT_MS);
		for (int i = 0; i < MESSAGES; i++)
			CHECK_EQ(deck_mbox_post(to, m), 0);
		CHECK_EQ(deck_mbox_destroy(to), 0);
		atomic_store(&s->ready, 2);
		CHECK_EQ(deck_mbox_retrv(own, m), -ECONNRESET);
	} else {
		/* before the process dies, its box is found */
		while (!(ret = deck_mbox_find(&to, "2", TEST_WAIT_MS)))
			CHECK_EQ(deck_mbox_destroy(to), 0);
		CHECK_EQ(ret, -ECONNRESET);
		WAIT_UNTIL(others_asleep(), TEST_WAIT_MS);
		atomic_store(&s->ready, 1);
		WAIT_UNTIL(atomic_load(&s->ready) == 2, TEST_WAIT_MS);
		while (!(ret = deck_mbox_retrv(own, m)))
			got++;
		CHECK_EQ(ret, -ECONNRESET);
		CHECK_EQ(got, MESSAGES);
	}
	CHECK_EQ(deck_msg_destroy(m), 0);
	end(own);
}

TEST(a_death_comes_behind_messages)
{
	run(3, 2, messages_then_error);
}

static void *wait_for_death(void *arg)
{
	deck_msg_t *m;

	CHECK_EQ(deck_msg_create(&m, 100), 0);
	CHECK_EQ(deck_mbox_retrv(arg, m), -ECONNRESET);
	CHECK_EQ(deck_msg_destroy(m), 0);
	return NULL;
}

/* Several threads and a request wait for messages of one mail box. */
static void all_that_wait(void *arg)
{
	int rank = (int)ranks_rank();
	struct shared *s = arg;
	deck_thread_t *t[READERS];
	deck_mbox_t *own;
	deck_req_t *req;
	deck_msg_t *m;

	begin(rank, &own);
	if (rank) {
		WAIT_UNTIL(atomic_load(&s->ready), TEST_WAIT_MS);
		die();
	}
	CHECK_EQ(deck_msg_create(&m, 100), 0);
	CHECK_EQ(deck_mbox_iretrv(own, m, &req), 0);
	for (unsigned int i = 0; i < READERS; i++)
		CHECK_EQ(deck_thread_create(&t[i], wait_for_death, own), 0);
	WAIT_UNTIL(others_asleep(), TEST_WAIT_MS);
	atomic_store(&s->ready, 1);
	for (unsigned int i = 0; i < READERS; i++)
		CHECK_EQ(deck_thread_join(t[i], NULL), 0);
	CHECK_EQ(deck_wait(req, TEST_WAIT_MS), -ECONNRESET);
	CHECK_EQ(deck_mbox_tryretrv(own, m), -EAGAIN);
	CHECK_EQ(deck_msg_destroy(m), 0);
	end(own);
}

TEST(every_retrieve_that_waits_ends)
{
	run(2, 2, all_that_wait);
}

/* A post waits for a retrieve when the owner dies; other posts begin after the death. */
static void posts_end(void *arg)
{
	int rank = (int)ranks_rank();
	struct shared *s = arg;
	deck_mbox_t *own, *to;
	deck_req_t *req;
	deck_msg_t *m;
	int ret;

	begin(rank, &own);
	if (rank == 1) {
		WAIT_UNTIL(atomic_load(&s->ready) == 2, TEST_WAIT_MS);
		die();
	}
	to = box_of(rank, 1);
	CHECK_EQ(deck_msg_create(&m, 1 << 20), 0);
	CHECK_EQ(deck_msg_set_length(m, 1 << 20), 0);
	CHECK_EQ(deck_mbox_ipost(to, m, &req), 0);
	atomic_fetch_add(&s->ready, 1);
	CHECK_EQ(deck_wait(req, TEST_WAIT_MS), -ECONNRESET);
	CHECK_EQ(deck_mbox_post(to, m), -ECONNRESET);
	CHECK_EQ(deck_mbox_trypost(to, m), -ECONNRESET);
	CHECK_EQ(deck_msg_set_length(m, 1), 0);
	CHECK_EQ(deck_mbox_post(to, m), -ECONNRESET);
	CHECK_EQ(deck_mbox_destroy(to), 0);
	/* a find fails, too, whether or not the dead process was the home of the name */
	ret = deck_mbox_find(&to, "1", TEST_WAIT_MS);
	CHECK_EQ(ret, -ECONNRESET);
	CHECK_EQ(deck_msg_destroy(m), 0);
	end(own);
}

TEST(posts_to_the_dead_end)
{
	run(3, 3, posts_end);
}

/* Two neighbours and another process die at the same time. */
static void many_die(void *arg)
{
	int rank = (int)ranks_rank();
	struct shared *s = arg;
	deck_mbox_t *own;
	deck_msg_t *m;

	begin(rank, &own);
	/* a process that dies too early has not sent its last message of the barrier */
	atomic_fetch_add(&s->ready, 1);
	if (rank == 2 || rank == 3 || rank == 5) {
		WAIT_UNTIL(atomic_load(&s->ready) == deck_size(), TEST_WAIT_MS);
		die();
	}
	CHECK_EQ(deck_msg_create(&m, 100), 0);
	CHECK_EQ(deck_mbox_retrv(own, m), -ECONNRESET);
	CHECK_EQ(deck_msg_destroy(m), 0);
	end(own);
}

TEST(several_die_of_7)
{
	run(7, 4, many_die);
}

TEST(several_die_of_16)
{
	run(16, 4, many_die);
}
