// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Kills a process at a random point of its calls. The other processes must get an error from a
 * post, a retrieve or a find, and end, and no segment or interrupt of the job may be left.
 *
 * SCI_TEST_ROUNDS is the number of rounds, SCI_TEST_SEED repeats a choice of calls and times.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <deck.h>

#include "selftests/random.h"
#include "selftests/ranks.h"

#define VICTIM	1
#define LARGEST	20000u

static const size_t lengths[] = { 0, 62, 64, 1000, LARGEST };

struct round {
	unsigned int number;
	int *ended;
};

static deck_mbox_t *own, *other;
static deck_msg_t *in, *out;

/* Return whether @ret is the error of a peer that has died, or has left after the death. */
static bool is_end(int ret)
{
	return ret == -ECONNRESET || ret == -ENOTCONN || ret == -ECONNREFUSED;
}

static int exchange(void)
{
	deck_req_t *r;
	int ret, end;

	deck_msg_set_length(out, lengths[random_below(ARRAY_LEN(lengths))]);
	ret = deck_mbox_ipost(other, out, &r);
	if (ret)
		return ret;
	ret = deck_mbox_retrv(own, in);
	/* the neighbour may wait for our retrieve until it gets the error */
	end = deck_wait(r, -1);
	return ret ? ret : end;
}

static int find_and_forget(void)
{
	deck_mbox_t *b;
	char name[16];
	int ret;

	snprintf(name, sizeof(name), "%u", random_below((unsigned int)deck_size()));
	ret = deck_mbox_find(&b, name, 1000);
	/* the owner may have left after a death that this process does not know yet */
	if (ret == -ETIMEDOUT || ret == -ENOENT)
		return 0;
	return ret ? ret : deck_mbox_destroy(b);
}

static void live_on(void *arg)
{
	struct round *r = arg;
	char names[2][16];
	int ret;

	CHECK_EQ(deck_init(NULL, NULL), 0);
	snprintf(names[0], sizeof(names[0]), "%d", deck_rank());
	snprintf(names[1], sizeof(names[1]), "%d", (deck_rank() + 1) % deck_size());
	CHECK_EQ(deck_msg_create(&in, LARGEST), 0);
	CHECK_EQ(deck_msg_create(&out, LARGEST), 0);
	CHECK_EQ(deck_mbox_create(&own, names[0]), 0);
	CHECK_EQ(deck_mbox_find(&other, names[1], TEST_WAIT_MS), 0);
	CHECK_EQ(deck_barrier(), 0);
	random_seed(r->number * 100 + (unsigned int)deck_rank());
	if (deck_rank() == VICTIM)
		random_death(random_below(40000));
	do
		ret = random_below(8) ? exchange() : find_and_forget();
	while (!ret);
	if (!is_end(ret))
		FAIL("round %u: %d", r->number, ret);
	CHECK_EQ(deck_mbox_destroy(other), 0);
	CHECK_EQ(deck_mbox_destroy(own), 0);
	CHECK_EQ(deck_msg_destroy(in), 0);
	CHECK_EQ(deck_msg_destroy(out), 0);
	CHECK_EQ(deck_done(), -ECONNRESET);
	__atomic_add_fetch(r->ended, 1, __ATOMIC_SEQ_CST);
}

static void rounds(unsigned int n, unsigned int nodes)
{
	const char *wanted = getenv("SCI_TEST_ROUNDS");
	unsigned int count = wanted ? (unsigned int)atoi(wanted) : TEST_TSAN || TEST_ASAN || n > 8 ? 2 : 4;
	struct round r = { .ended = test_shared(sizeof(int)) };

	for (; r.number < count; r.number++) {
		*r.ended = 0;
		ranks_run_arg(n, nodes, live_on, &r, true);
		CHECK_EQ(*r.ended, n - 1);
		WAIT_UNTIL(!ranks_resources_left(), TEST_WAIT_MS);
	}
}

TEST(killed_at_random_of_2) { rounds(2, 1); }
TEST(killed_at_random_of_4_on_4) { rounds(4, 4); }
TEST(killed_at_random_of_8_on_2) { rounds(8, 2); }
TEST(killed_at_random_of_16_on_4) { rounds(16, 4); }
