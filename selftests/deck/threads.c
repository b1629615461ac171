// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Tests several threads of several processes with several mail boxes, of which each has
 * several retrieves at a time. The thread sanitizer must report no race.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "libsci/deck/internal.h"
#include "selftests/ranks.h"

#define SLOW		(TEST_ASAN || TEST_TSAN)
#define RANKS		3
#define BOXES		3u		/* of each process */
#define POSTERS		3u		/* threads of each process; each posts to all boxes */
#define READERS		2u		/* of each mail box */
#define MESSAGES	(SLOW ? 12u : 60u)	/* from a thread to a mail box */
#define LARGEST		20000u

struct node {
	deck_mbox_t *own[BOXES];
	deck_mbox_t *box[RANKS * BOXES];
	_Atomic unsigned int left[BOXES];	/* messages that are still to be retrieved */
	_Atomic uint64_t sum[BOXES];
};

struct worker {
	struct node *n;
	unsigned int number;
	deck_thread_t *thread;
};

static size_t length_of(unsigned int i)
{
	return i % 5 == 4 ? 12 + i * 331 % (LARGEST - 12) : 12 + i % 80;
}

static void *post_all(void *arg)
{
	struct worker *w = arg;
	deck_msg_t *m;

	CHECK_EQ(deck_msg_create(&m, LARGEST), 0);
	for (unsigned int i = 0; i < MESSAGES; i++)
		for (unsigned int b = 0; b < RANKS * BOXES; b++) {
			unsigned int head[3] = {
				(unsigned int)deck_rank(), w->number, i,
			};
			size_t more = length_of(i) - sizeof(head);

			deck_msg_clear(m);
			CHECK_EQ(deck_pack_uint(m, head, 3), 0);
			test_fill((char *)deck_msg_address(m) + sizeof(head), more,
				  i + b);
			CHECK_EQ(deck_msg_set_length(m, length_of(i)), 0);
			CHECK_EQ(deck_mbox_post(w->n->box[b], m), 0);
		}
	CHECK_EQ(deck_msg_destroy(m), 0);
	return NULL;
}

static void *retrieve_all(void *arg)
{
	struct worker *w = arg;
	unsigned int b = w->number / READERS, head[3];
	deck_msg_t *m;
	unsigned int box = (unsigned int)deck_rank() * BOXES + b;

	CHECK_EQ(deck_msg_create(&m, LARGEST), 0);
	/* a reader that decrements the count retrieves one message */
	for (;;) {
		unsigned int left = atomic_load(&w->n->left[b]);

		if (!left)
			break;
		if (!atomic_compare_exchange_weak(&w->n->left[b], &left, left - 1))
			continue;
		CHECK_EQ(deck_mbox_retrv(w->n->own[b], m), 0);
		CHECK_EQ(deck_unpack_uint(m, head, 3), 0);
		CHECK_EQ(head[0], deck_msg_source(m));
		CHECK_EQ(deck_msg_length(m), length_of(head[2]));
		CHECK(test_filled((char *)deck_msg_address(m) + sizeof(head),
				  deck_msg_left(m), head[2] + box));
		atomic_fetch_add(&w->n->sum[b], (uint64_t)head[2] + 1);
	}
	CHECK_EQ(deck_msg_destroy(m), 0);
	return NULL;
}

static void *find_and_create(void *arg)
{
	struct worker *w = arg;
	deck_mbox_t *a, *b;
	char name[32];

	for (unsigned int i = 0; i < (SLOW ? 3 : 10); i++) {
		snprintf(name, sizeof(name), "%d.%u.%u", deck_rank(), w->number, i);
		CHECK_EQ(deck_mbox_create(&a, name), 0);
		snprintf(name, sizeof(name), "box %u", (w->number + i) % (RANKS * BOXES));
		CHECK_EQ(deck_mbox_find(&b, name, TEST_WAIT_MS), 0);
		CHECK_EQ(deck_mbox_destroy(b), 0);
		CHECK_EQ(deck_mbox_destroy(a), 0);
	}
	return NULL;
}

static void start(struct worker *w, struct node *n, unsigned int number, void *(*fn)(void *))
{
	w->n = n;
	w->number = number;
	CHECK_EQ(deck_thread_create(&w->thread, fn, w), 0);
}

static void many(void *arg)
{
	int rank = (int)ranks_rank();
	struct worker readers[BOXES * READERS], posters[POSTERS], finders[2];
	struct node n = { 0 };
	char name[16];

	(void)arg;
	CHECK_EQ(deck_init(NULL, NULL), 0);
	for (unsigned int b = 0; b < BOXES; b++) {
		snprintf(name, sizeof(name), "box %u", (unsigned int)rank * BOXES + b);
		CHECK_EQ(deck_mbox_create(&n.own[b], name), 0);
		atomic_init(&n.left[b], RANKS * POSTERS * MESSAGES);
	}
	for (unsigned int b = 0; b < RANKS * BOXES; b++) {
		snprintf(name, sizeof(name), "box %u", b);
		CHECK_EQ(deck_mbox_find(&n.box[b], name, TEST_WAIT_MS), 0);
	}
	for (unsigned int i = 0; i < ARRAY_LEN(readers); i++)
		start(&readers[i], &n, i, retrieve_all);
	for (unsigned int i = 0; i < POSTERS; i++)
		start(&posters[i], &n, i, post_all);
	for (unsigned int i = 0; i < ARRAY_LEN(finders); i++)
		start(&finders[i], &n, i, find_and_create);
	for (unsigned int i = 0; i < POSTERS; i++)
		CHECK_EQ(deck_thread_join(posters[i].thread, NULL), 0);
	for (unsigned int i = 0; i < ARRAY_LEN(readers); i++)
		CHECK_EQ(deck_thread_join(readers[i].thread, NULL), 0);
	for (unsigned int i = 0; i < ARRAY_LEN(finders); i++)
		CHECK_EQ(deck_thread_join(finders[i].thread, NULL), 0);
	CHECK_EQ(deck_barrier(), 0);
	for (unsigned int b = 0; b < BOXES; b++)
		CHECK_EQ(atomic_load(&n.sum[b]),
			 (uint64_t)RANKS * POSTERS * MESSAGES * (MESSAGES + 1) / 2);
	for (unsigned int b = 0; b < RANKS * BOXES; b++)
		CHECK_EQ(deck_mbox_destroy(n.box[b]), 0);
	for (unsigned int b = 0; b < BOXES; b++)
		CHECK_EQ(deck_mbox_destroy(n.own[b]), 0);
	CHECK_EQ(deck_done(), 0);
}

TEST(threads_by_mail_boxes)
{
	ranks_run_arg(RANKS, RANKS, many, NULL, false);
}

TEST(threads_by_mail_boxes_on_one_node)
{
	ranks_run_arg(RANKS, 1, many, NULL, false);
}

/* ---- a request that begins while another thread waits ---- */

#define QUEUED	200u	/* messages, more than the ring of a mail box has room for */

struct waiter {
	deck_mbox_t *box;
	deck_sem_t *done;
};

static void *retrieve_one(void *arg)
{
	struct waiter *w = arg;
	deck_msg_t *m;

	CHECK_EQ(deck_msg_create(&m, 8), 0);
	CHECK_EQ(deck_mbox_retrv(w->box, m), 0);
	CHECK_EQ(deck_msg_destroy(m), 0);
	CHECK_EQ(deck_sem_post(w->done), 0);
	return NULL;
}

static bool retrieve_sleeps(deck_mbox_t *box)
{
	struct sci_ep_stats stats = { .size = sizeof(stats) };

	CHECK_EQ(sci_ep_stats(box->ep, &stats), 0);
	return stats.sleeps;
}

/* Begin posts while another thread sleeps in a retrieve. Only that thread can make progress. */
static void post_beside(deck_mbox_t *own, deck_mbox_t *other, deck_msg_t **m)
{
	struct waiter w = { .box = own };
	deck_req_t *reqs[QUEUED];
	deck_thread_t *thread;

	CHECK_EQ(deck_sem_create(&w.done, 0), 0);
	CHECK_EQ(deck_thread_create(&thread, retrieve_one, &w), 0);
	WAIT_UNTIL(retrieve_sleeps(own), TEST_WAIT_MS);
	for (unsigned int i = 0; i < QUEUED; i++)
		CHECK_EQ(deck_mbox_ipost(other, m[i], &reqs[i]), 0);
	CHECK_EQ(deck_sem_wait(w.done), 0);
	for (unsigned int i = 0; i < QUEUED; i++)
		CHECK_EQ(deck_wait(reqs[i], TEST_WAIT_MS), 0);
	CHECK_EQ(deck_thread_join(thread, NULL), 0);
	CHECK_EQ(deck_sem_destroy(w.done), 0);
}

static void beside(void *arg)
{
	deck_mbox_t *own, *other;
	deck_msg_t *m[QUEUED];

	(void)arg;
	CHECK_EQ(deck_init(NULL, NULL), 0);
	CHECK_EQ(deck_mbox_create(&own, deck_rank() ? "1" : "0"), 0);
	CHECK_EQ(deck_mbox_find(&other, deck_rank() ? "0" : "1", TEST_WAIT_MS), 0);
	for (unsigned int i = 0; i < QUEUED; i++)
		CHECK_EQ(deck_msg_create(&m[i], 8), 0);
	if (!deck_rank()) {
		post_beside(own, other, m);
	} else {
		for (unsigned int i = 0; i < QUEUED; i++)
			CHECK_EQ(deck_mbox_retrv(own, m[i]), 0);
		CHECK_EQ(deck_mbox_post(other, m[0]), 0);
	}
	CHECK_EQ(deck_barrier(), 0);
	for (unsigned int i = 0; i < QUEUED; i++)
		CHECK_EQ(deck_msg_destroy(m[i]), 0);
	CHECK_EQ(deck_mbox_destroy(other), 0);
	CHECK_EQ(deck_mbox_destroy(own), 0);
	CHECK_EQ(deck_done(), 0);
}

TEST(a_thread_that_sleeps_makes_progress_for_later_requests)
{
	ranks_run_arg(2, 1, beside, NULL, false);
}

/* ---- connections that end while several threads retrieve ---- */

#define VISITS	(SLOW ? 20u : 100u)	/* of a thread */

static void *visit(void *arg)
{
	deck_mbox_t *box;
	deck_msg_t *m;
	int rank = deck_rank();

	(void)arg;
	CHECK_EQ(deck_msg_create(&m, sizeof(rank)), 0);
	CHECK_EQ(deck_pack_int(m, &rank, 1), 0);
	for (unsigned int i = 0; i < VISITS; i++) {
		CHECK_EQ(deck_mbox_find(&box, "visited", TEST_WAIT_MS), 0);
		CHECK_EQ(deck_mbox_post(box, m), 0);
		CHECK_EQ(deck_mbox_destroy(box), 0);
	}
	CHECK_EQ(deck_msg_destroy(m), 0);
	return NULL;
}

/* Retrieve as many messages as one thread of each other process posts. */
static void *receive_visits(void *arg)
{
	deck_mbox_t *box = arg;
	deck_msg_t *m;
	int rank;

	CHECK_EQ(deck_msg_create(&m, sizeof(rank)), 0);
	for (unsigned int i = 0; i < VISITS * (RANKS - 1); i++) {
		CHECK_EQ(deck_mbox_retrv(box, m), 0);
		CHECK_EQ(deck_unpack_int(m, &rank, 1), 0);
		CHECK_EQ(deck_msg_source(m), rank);
	}
	CHECK_EQ(deck_msg_destroy(m), 0);
	return NULL;
}

static void visits(void *arg)
{
	deck_thread_t *thread[READERS];
	deck_mbox_t *box = NULL;

	(void)arg;
	CHECK_EQ(deck_init(NULL, NULL), 0);
	if (!deck_rank())
		CHECK_EQ(deck_mbox_create(&box, "visited"), 0);
	for (unsigned int i = 0; i < READERS; i++)
		CHECK_EQ(deck_thread_create(&thread[i], box ? receive_visits : visit, box), 0);
	for (unsigned int i = 0; i < READERS; i++)
		CHECK_EQ(deck_thread_join(thread[i], NULL), 0);
	CHECK_EQ(deck_barrier(), 0);
	CHECK_EQ(deck_mbox_destroy(box), 0);
	CHECK_EQ(deck_done(), 0);
}

TEST(connections_end_while_threads_retrieve)
{
	ranks_run_arg(RANKS, 1, visits, NULL, false);
}

/* ---- a thread that joins itself ---- */

struct itself {
	deck_thread_t *_Atomic thread;
};

static void *join_itself(void *arg)
{
	struct itself *t = arg;

	WAIT_UNTIL(t->thread, TEST_WAIT_MS);
	CHECK_EQ(deck_thread_join(t->thread, NULL), -EDEADLK);
	return t;
}

TEST(a_thread_cannot_join_itself)
{
	struct itself t = { NULL };
	deck_thread_t *thread;
	void *result;

	CHECK_EQ(deck_thread_create(&thread, join_itself, &t), 0);
	t.thread = thread;
	CHECK_EQ(deck_thread_join(thread, &result), 0);
	CHECK(result == &t);
}
