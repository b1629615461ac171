// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test the harness: peers on another machine behave like peers on this machine. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "selftests/harness.h"
#include "selftests/remote.h"

static void needs_machines(void)
{
	if (!remote_machines())
		SKIP("SCI_TEST_PEERS is not set: all nodes are on one machine");
}

struct question {
	const char *word;	/* a constant has the same address on all machines */
	unsigned int numbers[64];
	unsigned int (*sum)(const struct question *q);
};

static unsigned int add_up(const struct question *q)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < ARRAY_LEN(q->numbers); i++)
		n += q->numbers[i];
	return n;
}

static void answers(struct peer *self, void *arg)
{
	struct question *q = arg;
	char name[64] = "";

	CHECK_EQ(gethostname(name, sizeof(name)), 0);
	peer_send(self, name);
	peer_send(self, q->word);
	PEER_PUT(self, q->sum(q));
	peer_send(self, getenv("SCI_NODE"));
	peer_send(self, getenv("MACHINES_TEST"));
}

TEST(a_peer_is_elsewhere_with_what_it_was_given)
{
	struct question q = { .word = "hello", .sum = add_up };
	unsigned int sum;
	struct peer *p;

	needs_machines();
	for (unsigned int i = 0; i < ARRAY_LEN(q.numbers); i++)
		q.numbers[i] = i * i;
	setenv("MACHINES_TEST", "of the test", 1);
	p = peer_spawn(8, answers, &q);
	peer_expect(p, "node8");
	peer_expect(p, "hello");
	PEER_GET(p, sum);
	CHECK_EQ(sum, add_up(&q));
	peer_expect(p, "8");
	peer_expect(p, "of the test");
	peer_join(p);
}

static void echoes(struct peer *self, void *arg)
{
	unsigned char data[4096];

	(void)arg;
	for (unsigned int i = 1; i <= sizeof(data); i = i * 3 / 2 + 1) {
		peer_get(self, data, i);
		CHECK(test_filled(data, i, i));
		test_fill(data, i, i + 1);
		peer_put(self, data, i);
	}
	peer_expect(self, "end");
}

TEST(messages_keep_their_bytes_and_limits)
{
	unsigned char data[4096];
	struct peer *p;

	needs_machines();
	p = peer_spawn(8, echoes, NULL);
	for (unsigned int i = 1; i <= sizeof(data); i = i * 3 / 2 + 1) {
		test_fill(data, i, i);
		peer_put(p, data, i);
		peer_get(p, data, i);
		CHECK(test_filled(data, i, i + 1));
	}
	peer_send(p, "end");
	peer_join(p);
}

static void counts(struct peer *self, void *arg)
{
	(void)arg;
	for (unsigned int i = 0;; i++) {
		PEER_PUT(self, i);
		usleep(10000);
	}
}

TEST(a_stopped_peer_is_silent_until_it_continues)
{
	unsigned int i, last = 0;
	struct peer *p;

	needs_machines();
	p = peer_spawn(8, counts, NULL);
	do {
		PEER_GET(p, i);
	} while (i < 3);
	peer_stop(p);
	usleep(500000);
	peer_continue(p);
	last = i;
	for (unsigned int n = 0; n < 20; n++) {
		PEER_GET(p, i);
		CHECK_EQ(i, ++last);
	}
	/* messages sent before the stop arrive, and no later ones */
	CHECK(last < 60);
	peer_kill(p, SIGKILL);
}

TEST(a_signal_ends_a_peer_as_it_does_here)
{
	static const int sigs[] = { SIGKILL, SIGTERM, SIGSEGV, SIGABRT };

	needs_machines();
	for (unsigned int i = 0; i < ARRAY_LEN(sigs); i++) {
		struct peer *p = peer_spawn(8, counts, NULL);
		unsigned int n;

		PEER_GET(p, n);
		CHECK_EQ(n, 0);
		peer_kill(p, sigs[i]);
	}
}

static void leaves(struct peer *self, void *arg)
{
	peer_expect(self, "leave");
	exit((int)(intptr_t)arg);
}

TEST(an_exit_is_seen_at_once)
{
	struct peer *p;

	needs_machines();
	p = peer_spawn(8, leaves, (void *)0);
	peer_send(p, "leave");
	peer_join(p);
}

static void exports(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();

	(void)arg;
	test_segment(sd, 7, 4096, 0);
	peer_send(self, "ready");
	peer_expect(self, "never");
}

TEST(objects_there_are_counted_and_go_with_the_peer)
{
	unsigned int before, during;
	struct peer *p;

	needs_machines();
	before = remote_objects();
	p = peer_spawn(8, exports, NULL);
	peer_expect(p, "ready");
	during = remote_objects();
	CHECK(during > before);
	peer_kill(p, SIGKILL);
	WAIT_UNTIL(remote_objects() == before, TEST_WAIT_MS);
}
