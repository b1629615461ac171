// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Completion queues: sci_req_queue() and sci_completions(). */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <sci/msg.h>

#include "selftests/harness.h"
#include "selftests/msg/peers.h"
#include "selftests/msg/servant.h"

#define SLOW	(TEST_ASAN || TEST_TSAN)
#define CONTEXT	1u

/* A length of each protocol: short, lines, eager, rendezvous. */
static const size_t lengths[] = { 20, 300, 3000, 100000 };

static const struct config blocks = { .n = 2, .set = { BLOCKS } };

/* Post a receive of the message with this tag, and queue its request. */
static struct sci_req *queue_recv(struct pair *l, uint64_t tag, void *buf,
				  size_t len, void *data)
{
	struct sci_req *req = NULL;

	CHECK_EQ(sci_itrecv(l->ep, l->to, CONTEXT, tag, 0, buf, len, &req), 0);
	CHECK_EQ(sci_req_queue(req, data), 0);
	return req;
}

static void ask(struct pair *l, uint64_t tag, size_t len)
{
	tell_send(l, &(struct work){ .tagged = 1, .context = CONTEXT,
				     .tag = tag, .len = len, .seed = tag });
}

static void no_more(struct pair *l)
{
	struct sci_completion done;

	CHECK_EQ(sci_completions(l->ep, 0, &done, 1), -EAGAIN);
	CHECK_EQ(sci_completions(l->ep, 2, &done, 1), -ETIMEDOUT);
}

TEST(receives_are_told_of_in_the_order_in_which_they_completed)
{
	struct pair l = servant_begin(&blocks);
	static unsigned char buf[ARRAY_LEN(lengths)][100000];

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
		queue_recv(&l, i, buf[i], sizeof(buf[i]), buf[i]);
	no_more(&l);
	for (size_t i = ARRAY_LEN(lengths); i-- > 0;) {
		struct sci_completion done;

		ask(&l, i, lengths[i]);
		done = next_completion(&l);
		CHECK(done.data == buf[i]);
		CHECK(done.status.peer == l.to);
		CHECK_EQ(done.status.error, 0);
		CHECK_EQ(done.status.tag, i);
		CHECK_EQ(done.status.context, CONTEXT);
		CHECK_EQ(done.status.len, lengths[i]);
		CHECK_BYTES(buf[i], lengths[i], i);
	}
	no_more(&l);
	servant_end(&l);
}

TEST(sends_are_told_of)
{
	struct pair l = servant_begin(&blocks);
	static unsigned char buf[ARRAY_LEN(lengths)][100000];
	bool seen[ARRAY_LEN(lengths)] = { false };

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		struct sci_req *req;

		msg_fill(buf[i], lengths[i], i);
		CHECK_EQ(sci_itsend(l.to, CONTEXT, i, buf[i], lengths[i],
				    &req), 0);
		CHECK_EQ(sci_req_queue(req, &seen[i]), 0);
		tell_recv(&l, &(struct work){ .tagged = 1, .tag = i,
					      .context = CONTEXT, .seed = i,
					      .len = lengths[i] });
	}
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		struct sci_completion done = next_completion(&l);
		bool *one = done.data;

		CHECK_EQ(done.status.error, 0);
		CHECK(one >= seen && one < seen + ARRAY_LEN(seen) && !*one);
		*one = true;
	}
	no_more(&l);
	servant_end(&l);
}

TEST(what_has_completed_already_is_told_of_at_once)
{
	struct pair l = servant_begin(&blocks);
	struct sci_completion done[8];
	struct sci_req *req[5];
	unsigned char b[5];

	for (uint64_t i = 0; i < 5; i++)
		CHECK_EQ(sci_itrecv(l.ep, l.to, CONTEXT, i, 0, &b[i], 1,
				    &req[i]), 0);
	for (uint64_t i = 0; i < 5; i++)
		ask(&l, i, 1);
	/* messages arrive in order: with the answer, all are here */
	tell_finish(&l);
	no_more(&l);
	for (size_t i = 0; i < 5; i++)
		CHECK_EQ(sci_req_queue(req[i], &b[i]), 0);
	CHECK_EQ(sci_completions(l.ep, 0, done, 2), 2);
	CHECK(done[0].data == &b[0] && done[1].data == &b[1]);
	CHECK_EQ(sci_completions(l.ep, 0, done, 8), 3);
	for (size_t i = 0; i < 3; i++)
		CHECK(done[i].data == &b[2 + i] && done[i].status.len == 1);
	no_more(&l);
	servant_end(&l);
}

TEST(arguments_that_make_no_sense)
{
	struct pair l = servant_begin(&blocks);
	struct sci_completion done;
	struct sci_req *req;
	char b;

	CHECK_EQ(sci_req_queue(NULL, &b), -EINVAL);
	CHECK_EQ(sci_completions(NULL, 0, &done, 1), -EINVAL);
	CHECK_EQ(sci_completions(l.ep, 0, NULL, 1), -EINVAL);
	CHECK_EQ(sci_completions(l.ep, 0, &done, 0), -EINVAL);
	CHECK_EQ(sci_completions(l.ep, 0, &done, 0x80000000), -EINVAL);
	req = queue_recv(&l, 1, &b, 1, NULL);
	CHECK_EQ(sci_req_queue(req, &b), -EINVAL);
	ask(&l, 1, 1);
	done = next_completion(&l);
	CHECK(!done.data);
	servant_end(&l);
}

/* ---- other ends ---- */

TEST(cancelled_requests_are_told_of)
{
	struct pair l = servant_begin(&blocks);
	struct sci_completion done;
	struct sci_req *req[2];
	char b[2];

	for (uint64_t i = 0; i < 2; i++)
		req[i] = queue_recv(&l, i, &b[i], 1, &b[i]);
	CHECK_EQ(sci_cancel(req[1]), 0);
	CHECK_EQ(sci_cancel(req[1]), -EBUSY);
	done = next_completion(&l);
	CHECK(done.data == &b[1]);
	CHECK_EQ(done.status.error, -ECANCELED);
	no_more(&l);
	ask(&l, 0, 1);
	CHECK(next_completion(&l).data == &b[0]);
	servant_end(&l);
}

TEST(errors_are_told_of)
{
	struct pair l = servant_begin(&blocks);
	struct sci_completion done;
	char b[8];

	queue_recv(&l, 1, b, 8, b);
	ask(&l, 1, 20);
	done = next_completion(&l);
	CHECK(done.data == b);
	CHECK_EQ(done.status.error, -EMSGSIZE);
	CHECK_EQ(done.status.len, 20);
	CHECK_BYTES(b, 8, 1);
	servant_end(&l);
}

TEST(death_is_told_of_by_each_request)
{
	struct pair l = servant_begin(&blocks);
	char b[10];

	for (uint64_t i = 0; i < 10; i++)
		queue_recv(&l, i, &b[i], 1, &b[i]);
	peer_kill(l.proc, SIGKILL);
	for (size_t i = 0; i < 10; i++) {
		struct sci_completion done = next_completion(&l);

		CHECK((char *)done.data >= b && (char *)done.data < b + 10);
		CHECK_EQ(done.status.error, -ECONNRESET);
		*(char *)done.data = 'd';
	}
	for (size_t i = 0; i < 10; i++)
		CHECK_EQ(b[i], 'd');
	no_more(&l);
	CHECK_EQ(sci_disconnect(l.to), 0);
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

TEST(a_completion_does_not_name_a_peer_that_is_disconnected)
{
	struct pair l = servant_begin(&blocks);
	struct sci_completion done;
	char b;

	ask(&l, 0, 1);
	tell_finish(&l);
	/* the message is here: the receive completes, and its completion stays queued */
	queue_recv(&l, 0, &b, 1, &b);
	tell_leave(&l);
	CHECK_EQ(sci_disconnect(l.to), 0);
	done = next_completion(&l);
	CHECK(done.data == &b);
	CHECK_EQ(done.status.error, 0);
	CHECK(!done.status.peer);
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

TEST(close_with_completions_not_taken)
{
	struct pair l = servant_begin(&blocks);
	char b[2];

	queue_recv(&l, 0, &b[0], 1, &b[0]);
	queue_recv(&l, 1, &b[1], 1, &b[1]);
	ask(&l, 0, 1);
	servant_end(&l);
}

/* ---- many, and threads ---- */

#define MANY	(SLOW ? 1000u : 10000u)

TEST(thousands)
{
	struct pair l = servant_begin(&blocks);
	unsigned char (*buf)[32] = malloc(MANY * 32);
	struct sci_completion done[16];
	unsigned int got = 0;

	CHECK(buf);
	for (uint64_t i = 0; i < MANY; i++)
		queue_recv(&l, i, buf[i], 32, buf[i]);
	/* 7919 is prime: each message comes once, in another order */
	for (uint64_t i = 0; i < MANY; i++)
		ask(&l, i * 7919 % MANY, 32);
	while (got < MANY) {
		int n = sci_completions(l.ep, TEST_WAIT_MS, done, 16);

		CHECK(n > 0 && n <= 16);
		for (int i = 0; i < n; i++, got++) {
			uint64_t tag = (uint64_t)got * 7919 % MANY;

			CHECK(done[i].data == buf[tag]);
			CHECK_EQ(done[i].status.error, 0);
			CHECK_BYTES(buf[tag], 32, tag);
		}
	}
	no_more(&l);
	free(buf);
	servant_end(&l);
}

struct share {
	struct pair *l;
	_Atomic unsigned int *taken;
	_Atomic unsigned int *told;	/* completions of each request */
};

static void *take_some(void *arg)
{
	struct share *s = arg;

	while (atomic_load(s->taken) < MANY) {
		struct sci_completion done[4];
		int n = sci_completions(s->l->ep, 1, done, 4);

		CHECK(n > 0 || n == -ETIMEDOUT);
		for (int i = 0; i < n; i++)
			atomic_fetch_add((_Atomic unsigned int *)done[i].data,
					 1);
		if (n > 0)
			atomic_fetch_add(s->taken, (unsigned int)n);
	}
	return NULL;
}

TEST(threads_that_share_the_queue_get_each_once)
{
	static _Atomic unsigned int told[10000];
	static unsigned char buf[10000];
	_Atomic unsigned int taken = 0;
	struct pair l = servant_begin(&blocks);
	struct share s = { .l = &l, .taken = &taken, .told = told };
	pthread_t thread[3];

	for (uint64_t i = 0; i < MANY; i++)
		queue_recv(&l, i, &buf[i], 1, &told[i]);
	for (size_t i = 0; i < ARRAY_LEN(thread); i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, take_some, &s), 0);
	for (uint64_t i = 0; i < MANY; i++)
		ask(&l, i, 1);
	for (size_t i = 0; i < ARRAY_LEN(thread); i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
	CHECK_EQ(atomic_load(&taken), MANY);
	for (size_t i = 0; i < MANY; i++)
		CHECK_EQ(atomic_load(&told[i]), 1);
	no_more(&l);
	servant_end(&l);
}

/* ---- sleep ---- */

static int look_queued(void *ep)
{
	return sci_completions_queued(ep) ? 0 : -EAGAIN;
}

/* A completion that is queued before the wait begins ends it, too. */
TEST(a_wait_for_anything_sees_queued_completions)
{
	struct pair l = servant_begin(&blocks);
	struct sci_completion done;
	unsigned char buf[20];

	CHECK_EQ(sci_completions_queued(NULL), 0);
	CHECK_EQ(sci_wait_until(l.ep, look_queued, l.ep, 1), -ETIMEDOUT);
	queue_recv(&l, 1, buf, sizeof(buf), NULL);
	ask(&l, 1, sizeof(buf));
	for (int i = 0; i < 2; i++)
		CHECK_EQ(sci_wait_until(l.ep, look_queued, l.ep, TEST_WAIT_MS), 0);
	CHECK_EQ(sci_completions(l.ep, 0, &done, 1), 1);
	CHECK_EQ(sci_wait_until(l.ep, look_queued, l.ep, 1), -ETIMEDOUT);
	servant_end(&l);
}

TEST(nobody_sleeps_over_completions)
{
	struct pair l = servant_begin(&blocks);
	struct sci_req *req;
	char b;

	req = queue_recv(&l, 1, &b, 1, &b);
	CHECK_EQ(sci_cancel(req), 0);
	CHECK_EQ(sci_ep_arm(l.ep), -EAGAIN);
	CHECK(next_completion(&l).data == &b);
	servant_end(&l);
}

static void *cancel_one(void *arg)
{
	return (void *)(intptr_t)sci_cancel(arg);
}

/* The thread that cancels is not the thread that sleeps. */
TEST(a_completion_by_another_thread_wakes)
{
	struct pair l = servant_begin(&blocks);
	struct pollfd pfd = { .fd = sci_ep_fd(l.ep), .events = POLLIN };
	struct sci_req *req;
	pthread_t thread;
	void *ret;
	char b;

	for (unsigned int i = 0; i < 20; i++) {
		req = queue_recv(&l, 1, &b, 1, &b);
		arm_for_sure(l.ep);
		CHECK_EQ(pthread_create(&thread, NULL, cancel_one, req), 0);
		CHECK_EQ(poll(&pfd, 1, TEST_WAIT_MS), 1);
		CHECK_EQ(pthread_join(thread, &ret), 0);
		CHECK_EQ((intptr_t)ret, 0);
		CHECK(next_completion(&l).data == &b);
	}
	servant_end(&l);
}

static void *wait_for_one(void *arg)
{
	next_completion(arg);
	return NULL;
}

TEST(a_wait_for_completions_sleeps_and_is_woken)
{
	struct pair l = servant_begin(&blocks);
	uint64_t before = test_ep_stats(l.ep).sleeps;
	pthread_t thread;
	char b;

	CHECK_EQ(sci_ep_set(l.ep, SCI_PARAM_SPIN_US, 0), 0);
	queue_recv(&l, 1, &b, 1, &b);
	CHECK_EQ(pthread_create(&thread, NULL, wait_for_one, &l), 0);
	WAIT_UNTIL(test_ep_stats(l.ep).sleeps > before, TEST_WAIT_MS);
	ask(&l, 1, 1);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	servant_end(&l);
}
