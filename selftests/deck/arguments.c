// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Calls every public function with random arguments. Each call must return 0, a count, or an
 * error that deck.h names, and deck_done() must succeed in the end.
 */
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <deck.h>

#include "selftests/random.h"
#include "selftests/ranks.h"

#define CALLS	4000

static deck_mbox_t *own, *other;
static deck_msg_t *messages[3];
static char scratch[4096];

static int I(void)
{
	static const int some[] = { 0, 1, 2, 3, 4711, -1, -2, INT_MAX, INT_MIN };

	return some[random_below(ARRAY_LEN(some))];
}

static size_t Z(void)
{
	static const size_t some[] = {
		0, 1, 60, 63, 64, 1000, 4096, SIZE_MAX / 16, SIZE_MAX / 2, SIZE_MAX,
	};

	return some[random_below(ARRAY_LEN(some))];
}

/* Return a number of values that fit into scratch, or that fit into no message. */
static size_t N(void)
{
	return random_below(3) ? random_below(sizeof(scratch) / sizeof(long double _Complex)) :
				 SIZE_MAX - random_below(40);
}

static void *P(void)
{
	return random_below(4) ? scratch : NULL;
}

static deck_msg_t *M(void)
{
	return random_below(5) ? messages[random_below(ARRAY_LEN(messages))] : NULL;
}

static deck_mbox_t *B(void)
{
	return random_below(3) == 0 ? NULL : random_below(2) ? own : other;
}

/* Return the mail box of another process, or NULL if there is no other process. */
static deck_mbox_t *foreign(void)
{
	return other == own ? NULL : other;
}

static const char *name(void)
{
	static const char *const some[] = { NULL, "", "x",
		"a name of sixty-four bytes, which is one more than a name has...." };

	return some[random_below(ARRAY_LEN(some))];
}

static int create_message(void)
{
	deck_msg_t *m = NULL;
	int ret = deck_msg_create(random_below(4) ? &m : NULL, Z());

	return ret ? ret : deck_msg_destroy(m);
}

static int create_box(void)
{
	deck_mbox_t *b = NULL;
	int ret = deck_mbox_create(random_below(4) ? &b : NULL, name());

	return ret ? ret : deck_mbox_destroy(b);
}

static int find_box(void)
{
	deck_mbox_t *b = NULL;
	int ret = deck_mbox_find(random_below(4) ? &b : NULL, name(), 0);

	return ret ? ret : deck_mbox_destroy(b);
}

/* Return a random message to post, but no long one to another process, which may not retrieve. */
static deck_msg_t *to_post(void)
{
	deck_msg_t *m = M();

	return m == messages[2] && other != own ? messages[1] : m;
}

/* Retrieve into messages other than @m, so that a post of @m can end. */
static void make_room(const deck_msg_t *m)
{
	for (size_t i = 0; i < ARRAY_LEN(messages); i++)
		if (messages[i] != m)
			deck_mbox_tryretrv(own, messages[i]);
}

/* Make a request, cancel it, and wait for its end. */
static int request(bool post)
{
	deck_msg_t *m = post ? to_post() : M();
	deck_req_t *r = NULL;
	int ret = post ? deck_mbox_ipost(B(), m, random_below(4) ? &r : NULL) :
			 deck_mbox_iretrv(B(), m, random_below(4) ? &r : NULL);

	if (ret)
		return ret;
	deck_cancel(r);
	while ((ret = deck_wait(r, 0)) == -EAGAIN)
		make_room(m);
	return ret;
}

/* Post with a time limit. A long post in progress ends when the mail box retrieves it. */
static int timed_post(void)
{
	deck_msg_t *m = to_post();
	int ret = random_below(2) ? deck_mbox_trypost(B(), m) : deck_mbox_timedpost(B(), m, 1);

	if (ret != -EINPROGRESS)
		return ret;
	while ((ret = deck_msg_wait(m, 0)) == -EAGAIN)
		make_room(m);
	return ret;
}

#define VALUES(X)							\
	X(deck_pack_char(M(), P(), N())) X(deck_unpack_char(M(), P(), N()))	\
	X(deck_pack_int(M(), P(), N())) X(deck_unpack_int(M(), P(), N()))	\
	X(deck_pack_llong(M(), P(), N())) X(deck_unpack_llong(M(), P(), N()))	\
	X(deck_pack_double(M(), P(), N())) X(deck_unpack_double(M(), P(), N()))	\
	X(deck_pack_ldcomplex(M(), P(), N())) X(deck_unpack_ldcomplex(M(), P(), N())) \
	X(deck_msg_pack(M(), P(), N())) X(deck_msg_unpack(M(), P(), N()))	\
	X(deck_pack_string(M(), P())) X(deck_unpack_string(M(), P(), N() % sizeof(scratch)))

#define ALL(X)								\
	X(deck_node(I())) X(deck_init(NULL, NULL)) X(create_message()) X(create_box()) \
	X(find_box()) X(deck_msg_destroy(NULL)) X(deck_msg_set_length(M(), Z()))	\
	X(deck_msg_wait(M(), 0)) X(deck_mbox_destroy(NULL)) X(deck_mbox_owner(B()))	\
	X(deck_mbox_post(NULL, M())) X(deck_mbox_post(B(), NULL))		\
	X(deck_mbox_retrv(NULL, M())) X(deck_mbox_retrv(foreign(), M()))	\
	X(deck_mbox_retrv(B(), NULL)) X(timed_post()) X(timed_post())		\
	X(deck_mbox_tryretrv(B(), M())) X(deck_mbox_timedretrv(B(), M(), 1))	\
	X(request(true)) X(request(false)) X(deck_wait(NULL, I())) X(deck_cancel(NULL)) \
	X(deck_broadcast(NULL, I())) X(deck_thread_create(NULL, NULL, P()))	\
	X(deck_thread_join(NULL, P())) X(deck_thread_detach(NULL))		\
	X(deck_sem_create(NULL, 1)) X(deck_sem_destroy(NULL)) X(deck_sem_wait(NULL))	\
	X(deck_sem_timedwait(NULL, I())) X(deck_sem_post(NULL)) X(deck_sem_value(NULL)) \
	VALUES(X)

#define ONE(call) + 1
#define CASE(call) case __COUNTER__ - BASE: ret = call; what = #call; break;

enum { KINDS = 0 ALL(ONE) };

static bool documented(int ret)
{
	static const int errors[] = {
		EINVAL, EBUSY, EAGAIN, ETIMEDOUT, EMSGSIZE, ENOMEM, ENOSPC, EEXIST, ENOENT,
		ECANCELED, EALREADY,
	};

	for (size_t i = 0; i < ARRAY_LEN(errors); i++)
		if (ret == -errors[i])
			return true;
	return ret >= 0;
}

static void calls_at_random(void)
{
	const char *what = "";
	int ret;

	for (int i = 0; i < CALLS; i++) {
		enum { BASE = __COUNTER__ + 1 };

		ret = 0;
		switch (random_below(KINDS)) {
		ALL(CASE)
		}
		if (!documented(ret))
			FAIL("call %d, %s returns %d", i, what, ret);
		scratch[sizeof(scratch) - 1] = '\0';
	}
}

static void fuzz(void *arg)
{
	static const size_t sizes[] = { 0, 60, 3000 };
	char boxes[2][16];

	(void)arg;
	CHECK_EQ(deck_init(NULL, NULL), 0);
	random_seed((unsigned int)deck_rank());
	snprintf(boxes[0], sizeof(boxes[0]), "%d", deck_rank());
	snprintf(boxes[1], sizeof(boxes[1]), "%d", (deck_rank() + 1) % deck_size());
	CHECK_EQ(deck_mbox_create(&own, boxes[0]), 0);
	CHECK_EQ(deck_mbox_find(&other, boxes[1], TEST_WAIT_MS), 0);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		CHECK_EQ(deck_msg_create(&messages[i], sizes[i]), 0);
	calls_at_random();
	CHECK_EQ(deck_done(), -EBUSY);
	CHECK_EQ(deck_barrier(), 0);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		CHECK_EQ(deck_msg_destroy(messages[i]), 0);
	CHECK_EQ(deck_mbox_destroy(other), 0);
	CHECK_EQ(deck_mbox_destroy(own), 0);
	CHECK_EQ(deck_done(), 0);
	CHECK_EQ(deck_done(), -ENOTCONN);
}

TEST(arguments_at_random_of_1)
{
	ranks_run_arg(1, 1, fuzz, NULL, false);
}

TEST(arguments_at_random_of_4_on_1)
{
	ranks_run_arg(4, 1, fuzz, NULL, false);
}

TEST(arguments_at_random_of_4_on_4)
{
	ranks_run_arg(4, 4, fuzz, NULL, false);
}
