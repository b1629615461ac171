// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Notifiers and the thread pool: order of events, independence of objects, and shutdown. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "libsci/sisci/library.h"
#include "libsci/sisci/notify.h"
#include "selftests/harness.h"

#define MANY	1000		/* below the number of events that an object keeps */

/* A listener. Its callback may block. */
struct ear {
	struct sci_notifier *n;
	_Atomic unsigned int heard;
	_Atomic unsigned int counted;
	_Atomic bool inside, overlap, disorder;
	_Atomic bool block;
	_Atomic unsigned int blocked;
	_Atomic int last;
	bool once;			/* the callback cancels further calls after the first */
	bool suicide;			/* the callback frees the notifier */
};

static void any_callback(void)
{
}

static bool hear(const struct sci_listener *to, const struct sci_note *note)
{
	struct ear *e = to->priv;

	if (atomic_exchange(&e->inside, true))
		atomic_store(&e->overlap, true);
	if (note->reason <= atomic_load(&e->last))
		atomic_store(&e->disorder, true);
	atomic_store(&e->last, note->reason);
	atomic_fetch_add(&e->counted, note->count);
	if (atomic_load(&e->block)) {
		atomic_fetch_add(&e->blocked, 1);
		while (atomic_load(&e->block))
			test_pause();
	}
	if (e->suicide)
		sci_notifier_free(e->n);
	atomic_store(&e->inside, false);
	atomic_fetch_add(&e->heard, 1);
	return !e->once;
}

static void make_ear(struct ear *e, bool callback)
{
	const struct sci_listener to = {
		.deliver = hear, .priv = e, .cb = callback ? any_callback : NULL,
	};

	atomic_store(&e->last, -1);
	e->n = sci_notifier_new(&to);
	CHECK(e->n != NULL);
}

/* A joined thread stays in /proc for a moment. The thread sanitizer has its own thread. */
static void check_no_threads(void)
{
	WAIT_UNTIL(TEST_TSAN || count_tasks() == 1, TEST_WAIT_MS);
}

static void tell(struct ear *e, int reason, enum sci_merge merge)
{
	const struct sci_note note = { .reason = reason, .count = 1 };

	sci_notify(e->n, &note, merge);
}

static sci_error_t wait_for(struct ear *e, int *reason, unsigned int ms)
{
	struct sci_note note = { .reason = -1 };
	sci_error_t err = sci_notifier_wait(e->n, &note, ms);

	if (reason)
		*reason = note.reason;
	return err;
}

/* ---- waiters ---- */

TEST(waiters_get_events_in_order)
{
	struct ear e = { 0 };
	int reason;

	make_ear(&e, false);
	CHECK_EQ(wait_for(&e, NULL, 0), SCI_ERR_TIMEOUT);
	for (int i = 0; i < MANY; i++)
		tell(&e, i, SCI_MERGE_NO);
	for (int i = 0; i < MANY; i++) {
		CHECK_EQ(wait_for(&e, &reason, 0), SCI_ERR_OK);
		CHECK_EQ(reason, i);
	}
	CHECK_EQ(wait_for(&e, NULL, 0), SCI_ERR_TIMEOUT);
	sci_notifier_free(e.n);
	sci_notifier_free(NULL);
	sci_notifier_quiesce(NULL);
}

TEST(waits_end_in_time)
{
	static const unsigned int times[] = { 0, 1, 10, 100, 999, 1001 };
	struct ear e = { 0 };

	make_ear(&e, false);
	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		uint64_t began = test_now_ms();

		CHECK_EQ(wait_for(&e, NULL, times[i]), SCI_ERR_TIMEOUT);
		CHECK(test_now_ms() - began + 1 >= times[i]);
		CHECK(test_now_ms() - began < times[i] + 5000);
	}
	sci_notifier_free(e.n);
}

TEST(one_who_has_a_callback_does_not_wait)
{
	struct ear e = { 0 };

	make_ear(&e, true);
	CHECK_EQ(wait_for(&e, NULL, SCI_INFINITE_TIMEOUT),
		 SCI_ERR_ILLEGAL_OPERATION);
	sci_notifier_free(e.n);
	sci_pool_stop();
}

TEST(merging)
{
	struct ear e = { 0 };
	struct sci_note note;

	make_ear(&e, false);
	tell(&e, 1, SCI_MERGE_ONCE);
	tell(&e, 1, SCI_MERGE_ONCE);
	tell(&e, 2, SCI_MERGE_COUNT);
	tell(&e, 2, SCI_MERGE_COUNT);
	tell(&e, 2, SCI_MERGE_COUNT);
	tell(&e, 1, SCI_MERGE_ONCE);
	tell(&e, 1, SCI_MERGE_NO);
	CHECK_EQ(sci_notifier_wait(e.n, &note, 0), SCI_ERR_OK);
	CHECK_EQ(note.reason, 1);
	CHECK_EQ(note.count, 1);
	CHECK_EQ(sci_notifier_wait(e.n, &note, 0), SCI_ERR_OK);
	CHECK_EQ(note.reason, 2);
	CHECK_EQ(note.count, 3);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(sci_notifier_wait(e.n, &note, 0), SCI_ERR_OK);
		CHECK_EQ(note.reason, 1);
	}
	CHECK_EQ(wait_for(&e, NULL, 0), SCI_ERR_TIMEOUT);
	sci_notifier_free(e.n);
}

/* Events beyond the limit displace the oldest ones, and no others. */
TEST(more_events_than_are_kept)
{
	struct ear e = { 0 };
	int reason, first, n = 1;

	make_ear(&e, false);
	for (int i = 0; i < 100000; i++)
		tell(&e, i, SCI_MERGE_NO);
	CHECK_EQ(wait_for(&e, &first, 0), SCI_ERR_OK);
	while (!wait_for(&e, &reason, 0))
		CHECK_EQ(reason, first + n++);
	CHECK_EQ(first + n, 100000);
	CHECK(n >= 256);
	sci_notifier_free(e.n);
}

#define WAITERS	8

struct crowd {
	struct ear e;
	_Atomic unsigned int got, cancelled, waiting;
};

static void *wait_on(void *arg)
{
	struct crowd *c = arg;
	sci_error_t err;

	atomic_fetch_add(&c->waiting, 1);
	while (!(err = wait_for(&c->e, NULL, SCI_INFINITE_TIMEOUT)))
		atomic_fetch_add(&c->got, 1);
	CHECK_EQ(err, SCI_ERR_CANCELLED);
	atomic_fetch_add(&c->cancelled, 1);
	return NULL;
}

TEST(many_waiters)
{
	struct crowd c = { 0 };
	pthread_t t[WAITERS];

	make_ear(&c.e, false);
	for (int i = 0; i < WAITERS; i++)
		CHECK(!pthread_create(&t[i], NULL, wait_on, &c));
	/* each event wakes one waiter */
	for (unsigned int i = 1; i <= MANY; i++) {
		tell(&c.e, 1, SCI_MERGE_NO);
		if (i % 100 == 0)
			WAIT_UNTIL(atomic_load(&c.got) == i, TEST_WAIT_MS);
	}
	WAIT_UNTIL(atomic_load(&c.waiting) == WAITERS && others_asleep(),
		   TEST_WAIT_MS);
	sci_notifier_cancel(c.e.n);
	for (int i = 0; i < WAITERS; i++)
		pthread_join(t[i], NULL);
	CHECK_EQ(atomic_load(&c.got), MANY);
	CHECK_EQ(atomic_load(&c.cancelled), WAITERS);
	sci_notifier_free(c.e.n);
}

TEST(cancel_drops_what_is_queued)
{
	struct ear e = { 0 };

	make_ear(&e, false);
	tell(&e, 1, SCI_MERGE_NO);
	sci_notifier_cancel(e.n);
	CHECK_EQ(wait_for(&e, NULL, 0), SCI_ERR_CANCELLED);
	tell(&e, 2, SCI_MERGE_NO);
	CHECK_EQ(wait_for(&e, NULL, SCI_INFINITE_TIMEOUT), SCI_ERR_CANCELLED);
	sci_notifier_cancel(e.n);
	sci_notifier_free(e.n);
}

/* ---- callbacks ---- */

TEST(callbacks_come_one_by_one_in_order)
{
	struct ear e = { 0 };

	make_ear(&e, true);
	for (int i = 0; i < MANY; i++)
		tell(&e, i, SCI_MERGE_NO);
	WAIT_UNTIL(atomic_load(&e.heard) == MANY, TEST_WAIT_MS);
	CHECK(!atomic_load(&e.overlap));
	CHECK(!atomic_load(&e.disorder));
	sci_notifier_free(e.n);
	sci_pool_stop();
	check_no_threads();
}

/* Events are delivered even if the process has no memory for further threads. */
TEST(callbacks_without_memory_for_threads)
{
	struct ear e = { 0 };
	struct rlimit none = { 0, RLIM_INFINITY }, all;

	if (TEST_ASAN || TEST_TSAN)
		SKIP("the sanitizer needs address space");
	make_ear(&e, true);
	CHECK_EQ(getrlimit(RLIMIT_AS, &all), 0);
	CHECK_EQ(setrlimit(RLIMIT_AS, &none), 0);
	for (int i = 0; i < 3; i++) {
		tell(&e, i, SCI_MERGE_NO);
		WAIT_UNTIL(atomic_load(&e.heard) == (unsigned int)i + 1, TEST_WAIT_MS);
	}
	CHECK_EQ(setrlimit(RLIMIT_AS, &all), 0);
	sci_notifier_free(e.n);
}

TEST(merged_events_are_all_delivered)
{
	struct ear e = { 0 };

	make_ear(&e, true);
	atomic_store(&e.block, true);
	tell(&e, 0, SCI_MERGE_COUNT);
	WAIT_UNTIL(atomic_load(&e.blocked), TEST_WAIT_MS);
	for (int i = 0; i < 100 * MANY; i++)
		tell(&e, 1, SCI_MERGE_COUNT);
	atomic_store(&e.block, false);
	WAIT_UNTIL(atomic_load(&e.counted) == 100 * MANY + 1, TEST_WAIT_MS);
	CHECK(!atomic_load(&e.overlap));
	sci_notifier_free(e.n);
	sci_pool_stop();
}

/* An event that arrives during a callback causes another callback. */
TEST(an_event_during_a_callback_makes_another)
{
	struct ear e = { 0 };

	make_ear(&e, true);
	for (unsigned int i = 0; i < 200; i++) {
		unsigned int heard = atomic_load(&e.heard);

		atomic_store(&e.last, -1);
		atomic_store(&e.blocked, 0);
		atomic_store(&e.block, true);
		tell(&e, 0, SCI_MERGE_ONCE);
		WAIT_UNTIL(atomic_load(&e.blocked), TEST_WAIT_MS);
		tell(&e, 1, SCI_MERGE_ONCE);
		tell(&e, 1, SCI_MERGE_ONCE);
		atomic_store(&e.block, false);
		WAIT_UNTIL(atomic_load(&e.heard) == heard + 2, TEST_WAIT_MS);
	}
	CHECK(!atomic_load(&e.disorder));
	sci_notifier_free(e.n);
	sci_pool_stop();
}

TEST(after_the_last_callback_there_is_none)
{
	struct ear e = { .once = true };

	make_ear(&e, true);
	for (int i = 0; i < 100; i++)
		tell(&e, i, SCI_MERGE_NO);
	WAIT_UNTIL(atomic_load(&e.heard) && others_asleep(), TEST_WAIT_MS);
	CHECK_EQ(atomic_load(&e.heard), 1);
	tell(&e, 200, SCI_MERGE_NO);
	sci_notifier_free(e.n);
	sci_pool_stop();
	CHECK_EQ(atomic_load(&e.heard), 1);
}

/* ---- callbacks that block ---- */

static void check_blocked(unsigned int n)
{
	struct ear *blocked = calloc(n, sizeof(*blocked));
	struct ear free_one = { 0 };

	for (unsigned int i = 0; i < n; i++) {
		make_ear(&blocked[i], true);
		atomic_store(&blocked[i].block, true);
		tell(&blocked[i], 0, SCI_MERGE_NO);
		/* a second event of the same object blocks no second thread */
		tell(&blocked[i], 1, SCI_MERGE_NO);
	}
	for (unsigned int i = 0; i < n; i++)
		WAIT_UNTIL(atomic_load(&blocked[i].blocked), TEST_WAIT_MS);
	make_ear(&free_one, true);
	for (int i = 0; i < MANY; i++)
		tell(&free_one, i, SCI_MERGE_NO);
	WAIT_UNTIL(atomic_load(&free_one.heard) == MANY, TEST_WAIT_MS);
	for (unsigned int i = 0; i < n; i++)
		atomic_store(&blocked[i].block, false);
	for (unsigned int i = 0; i < n; i++) {
		WAIT_UNTIL(atomic_load(&blocked[i].heard) == 2, TEST_WAIT_MS);
		CHECK(!atomic_load(&blocked[i].overlap));
		sci_notifier_free(blocked[i].n);
	}
	sci_notifier_free(free_one.n);
	sci_pool_stop();
	check_no_threads();
	free(blocked);
}

TEST(one_that_blocks_holds_nobody_up)
{
	check_blocked(1);
}

TEST(sixty_that_block_hold_nobody_up)
{
	check_blocked(60);
}

TEST(two_hundred_that_block_hold_nobody_up)
{
	check_blocked(200);
}

/* Many objects with many events: all of them make progress. */
TEST(a_busy_object_leaves_room_for_others)
{
	enum { EARS = 200 };
	static struct ear ears[EARS];

	for (int i = 0; i < EARS; i++)
		make_ear(&ears[i], true);
	for (int k = 0; k < 500; k++)
		for (int i = 0; i < EARS; i++)
			tell(&ears[i], k, SCI_MERGE_NO);
	for (int i = 0; i < EARS; i++) {
		WAIT_UNTIL(atomic_load(&ears[i].heard) == 500, TEST_WAIT_MS);
		CHECK(!atomic_load(&ears[i].overlap));
		CHECK(!atomic_load(&ears[i].disorder));
		sci_notifier_free(ears[i].n);
	}
	sci_pool_stop();
	check_no_threads();
}

/* ---- shutdown ---- */

struct freeing {
	struct ear e;
	_Atomic bool begun, freed;
};

static void *free_it(void *arg)
{
	struct freeing *f = arg;

	atomic_store(&f->begun, true);
	sci_notifier_free(f->e.n);
	CHECK(!atomic_load(&f->e.inside));
	atomic_store(&f->freed, true);
	return NULL;
}

TEST(freeing_waits_for_the_callback)
{
	struct freeing f = { 0 };
	pthread_t t;

	make_ear(&f.e, true);
	atomic_store(&f.e.block, true);
	for (int i = 0; i < 10; i++)
		tell(&f.e, i, SCI_MERGE_NO);
	WAIT_UNTIL(atomic_load(&f.e.blocked), TEST_WAIT_MS);
	CHECK(!pthread_create(&t, NULL, free_it, &f));
	WAIT_UNTIL(atomic_load(&f.begun) && !atomic_load(&f.freed),
		   TEST_WAIT_MS);
	atomic_store(&f.e.block, false);
	pthread_join(t, NULL);
	sci_pool_stop();
	/* the queued event is not delivered */
	CHECK_EQ(atomic_load(&f.e.heard), 1);
}

TEST(cancel_does_not_wait_for_the_callback)
{
	struct ear e = { 0 };

	make_ear(&e, true);
	atomic_store(&e.block, true);
	tell(&e, 0, SCI_MERGE_NO);
	tell(&e, 1, SCI_MERGE_NO);
	WAIT_UNTIL(atomic_load(&e.blocked), TEST_WAIT_MS);
	sci_notifier_cancel(e.n);
	atomic_store(&e.block, false);
	sci_notifier_quiesce(e.n);
	CHECK_EQ(atomic_load(&e.heard), 1);
	sci_notifier_free(e.n);
	sci_pool_stop();
	CHECK_EQ(atomic_load(&e.heard), 1);
}

TEST(freed_by_its_own_callback)
{
	for (int k = 0; k < 200; k++) {
		struct ear e = { .suicide = true };

		make_ear(&e, true);
		atomic_store(&e.block, true);
		tell(&e, 0, SCI_MERGE_NO);
		WAIT_UNTIL(atomic_load(&e.blocked), TEST_WAIT_MS);
		tell(&e, 1, SCI_MERGE_NO);
		atomic_store(&e.block, false);
		WAIT_UNTIL(atomic_load(&e.heard) == 1, TEST_WAIT_MS);
		sci_pool_stop();
		CHECK_EQ(atomic_load(&e.heard), 1);
	}
}

TEST(freed_amid_events)
{
	for (int k = 0; k < 2000 / (TEST_TSAN ? 10 : 1); k++) {
		struct ear e = { 0 };

		make_ear(&e, true);
		for (int i = 0; i < k % 20; i++)
			tell(&e, i, SCI_MERGE_NO);
		sci_notifier_free(e.n);
		CHECK(!atomic_load(&e.inside));
	}
	sci_pool_stop();
	check_no_threads();
}

static void *tell_much(void *arg)
{
	struct ear *e = arg;

	for (int i = 0; i < 5000; i++)
		tell(e, 1, SCI_MERGE_COUNT);
	return NULL;
}

TEST(many_who_tell)
{
	struct ear e = { 0 };
	pthread_t t[4];

	make_ear(&e, true);
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&t[i], NULL, tell_much, &e));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	WAIT_UNTIL(atomic_load(&e.counted) == 20000, TEST_WAIT_MS);
	CHECK(!atomic_load(&e.overlap));
	sci_notifier_free(e.n);
	sci_pool_stop();
}

/* ---- the thread pool ---- */

struct errand {
	struct sci_job job;
	_Atomic unsigned int *done, *due;
	unsigned int again;
};

static void run_errand(struct sci_job *job)
{
	struct errand *e = (struct errand *)(void *)job;

	CHECK(sci_pool_thread());
	atomic_fetch_add(e->done, 1);
	if (!e->again)
		return;
	e->again--;
	/* a stopping pool may refuse a job, but runs each job that it accepts */
	if (!sci_pool_submit(job))
		atomic_fetch_add(e->due, 1);
}

TEST(jobs_are_done_before_the_pool_stops)
{
	static struct errand errands[MANY];
	_Atomic unsigned int done = 0;

	CHECK(!sci_pool_thread());
	for (int round = 0; round < 20; round++) {
		atomic_store(&done, 0);
		for (int i = 0; i < MANY; i++) {
			errands[i] = (struct errand) {
				.job.run = run_errand, .done = &done,
			};
			CHECK_EQ(sci_pool_submit(&errands[i].job), 0);
		}
		sci_pool_stop();
		CHECK_EQ(atomic_load(&done), MANY);
		check_no_threads();
	}
	sci_pool_stop();
}

/* Jobs submit jobs while the pool stops. */
TEST(jobs_that_come_while_the_pool_stops)
{
	static struct errand errands[8];
	_Atomic unsigned int done, due;

	for (int round = 0; round < 50; round++) {
		atomic_store(&done, 0);
		atomic_store(&due, 8);
		for (int i = 0; i < 8; i++) {
			errands[i] = (struct errand) {
				.job.run = run_errand, .done = &done,
				.due = &due, .again = 200,
			};
			CHECK_EQ(sci_pool_submit(&errands[i].job), 0);
		}
		sci_pool_stop();
		CHECK_EQ(atomic_load(&done), atomic_load(&due));
		check_no_threads();
	}
}
