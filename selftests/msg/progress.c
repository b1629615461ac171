// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* sci_progress(), sleeping on the descriptor of an endpoint, and the counters. */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <sci/msg.h>

#include "libsci/msg/proto/proto.h"
#include "selftests/harness.h"
#include "selftests/msg/couple.h"
#include "selftests/msg/crowd.h"
#include "selftests/msg/peers.h"
#include "selftests/msg/servant.h"

#define CONTEXT	1u

/* A length of each protocol: short, lines, eager, rendezvous. */
static const size_t lengths[] = { 20, 300, 3000, 100000 };

static const struct config blocks = { .n = 2, .set = { BLOCKS } };

static void ask(struct pair *l, uint64_t tag, size_t len)
{
	tell_send(l, &(struct work){ .tagged = 1, .context = CONTEXT,
				     .tag = tag, .len = len, .seed = tag });
}

/* Wait until a message with this tag has arrived and has no receive. */
static void arrived(struct pair *l, uint64_t tag)
{
	CHECK_EQ(sci_tprobe(l->ep, l->to, CONTEXT, tag, 0, TEST_WAIT_MS,
			    NULL), 0);
}

/* ---- progress ---- */

#define LONG	(4u << 20)

/* Send a message, and report its completion in shared memory. */
static void sends_and_tells(struct peer *self, void *arg)
{
	struct pair l = pair_config(self, 4, &blocks);
	static unsigned char buf[LONG];
	atomic_int *done = arg;

	msg_fill(buf, sizeof(buf), 1);
	CHECK_EQ(sci_send(l.to, buf, sizeof(buf)), 0);
	atomic_store(done, 1);
	pair_close(&l);
}

TEST(progress_moves_things)
{
	atomic_int *done = test_shared(sizeof(*done));
	struct peer *p = peer_spawn(8, sends_and_tells, done);
	struct pair l = pair_config(p, 8, &blocks);
	static unsigned char buf[LONG];
	struct sci_req *req;
	int moved = 0;

	CHECK_EQ(sci_irecv(l.ep, NULL, buf, sizeof(buf), &req), 0);
	while (!atomic_load(done)) {
		int n = sci_progress(l.ep);

		CHECK(n >= 0);
		moved += n;
	}
	/* the message is longer than the transfer ring */
	CHECK(moved > 0);
	CHECK_EQ(test_wait(req, NULL), 0);
	CHECK_BYTES(buf, sizeof(buf), 1);
	pair_close(&l);
	peer_join(p);
}

/* ---- sleeping on the descriptor ---- */

/* Sleep as an event loop does. */
static void sleep_once(struct sci_ep *ep)
{
	struct pollfd pfd = { .fd = sci_ep_fd(ep), .events = POLLIN };
	int ret = sci_ep_arm(ep);

	CHECK(pfd.fd >= 0);
	if (ret == -EAGAIN) {
		CHECK(sci_progress(ep) >= 0);
		return;
	}
	CHECK_EQ(ret, 0);
	CHECK_EQ(poll(&pfd, 1, TEST_WAIT_MS), 1);
	CHECK_EQ(pfd.revents, POLLIN);
	CHECK(sci_progress(ep) >= 0);
}

static void stays(struct peer *self, void *arg)
{
	struct pair l = pair_open(self, 4, 0);

	(void)arg;
	peer_expect(self, "leave");
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

/*
 * Part of a peer is gone: for half a second the peer may turn out to be dead.
 * The endpoint must sleep meanwhile, not poll.
 */
static void wait_in_doubt(bool by_poll)
{
	struct peer *p = peer_spawn(8, stays, NULL);
	struct pair l = pair_open(p, 8, 0);
	struct sci_req *req;
	uint32_t turns;
	char c;

	CHECK_EQ(sci_ep_set(l.ep, SCI_PARAM_SPIN_US, 0), 0);
	CHECK_EQ(sci_irecv(l.ep, l.to, &c, 1, &req), 0);
	turns = l.ep->turns;
	peer_suspect(l.to);
	if (by_poll) {
		while (!req->done)
			sleep_once(l.ep);
	}
	CHECK_EQ(test_wait(req, NULL), -ECONNRESET);
	CHECK(l.ep->turns - turns < 1000);
	peer_send(p, "leave");
	peer_join(p);
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

TEST(a_wait_for_a_peer_in_doubt_sleeps)
{
	wait_in_doubt(false);
}

TEST(a_poll_for_a_peer_in_doubt_sleeps)
{
	wait_in_doubt(true);
}

/* Send a message for each token that comes from the harness. */
static void sends_when_told(struct peer *self, void *arg)
{
	struct pair l = pair_config(self, 4, arg);
	static unsigned char buf[100000];

	for (size_t i = 0; i < 20; i++) {
		size_t len = lengths[i % ARRAY_LEN(lengths)];

		msg_fill(buf, len, i);
		peer_expect(self, "send");
		CHECK_EQ(sci_send(l.to, buf, len), 0);
	}
	pair_close(&l);
}

TEST(a_message_wakes_a_sleeper)
{
	struct peer *p = peer_spawn(8, sends_when_told,
				    (void *)(uintptr_t)&blocks);
	struct pair l = pair_config(p, 8, &blocks);
	struct pollfd pfd = { .fd = sci_ep_fd(l.ep), .events = POLLIN };
	static unsigned char buf[100000];

	for (size_t i = 0; i < 20; i++) {
		size_t len = lengths[i % ARRAY_LEN(lengths)];
		struct sci_req *req;
		int ret;

		if (i & 1)
			CHECK_EQ(sci_irecv(l.ep, NULL, buf, len, &req), 0);
		arm_for_sure(l.ep);
		peer_send(p, "send");
		CHECK_EQ(poll(&pfd, 1, TEST_WAIT_MS), 1);
		if (!(i & 1))
			CHECK_EQ(sci_irecv(l.ep, NULL, buf, len, &req), 0);
		while ((ret = sci_test(req, NULL)) == -EAGAIN)
			sleep_once(l.ep);
		CHECK_EQ(ret, 0);
		CHECK_BYTES(buf, len, i);
	}
	pair_close(&l);
	peer_join(p);
}

static void connects_when_told(struct peer *self, void *arg)
{
	struct pair l = { .proc = self, .ep = test_ep_open(TEST_ID, 0) };

	(void)arg;
	peer_expect(self, "connect");
	l.to = test_ep_connect(l.ep, 4, TEST_ID);
	pair_close(&l);
}

TEST(a_connect_wakes_a_sleeper)
{
	struct peer *p = peer_spawn(8, connects_when_told, NULL);
	struct pair l = { .proc = p, .ep = test_ep_open(TEST_ID, 0) };
	struct pollfd pfd = { .fd = sci_ep_fd(l.ep), .events = POLLIN };
	int ret;

	arm_for_sure(l.ep);
	peer_send(p, "connect");
	CHECK_EQ(poll(&pfd, 1, TEST_WAIT_MS), 1);
	while ((ret = sci_accept(l.ep, 0, &l.to)) == -ETIMEDOUT)
		sleep_once(l.ep);
	CHECK_EQ(ret, 0);
	pair_close(&l);
	peer_join(p);
}

TEST(a_death_wakes_a_sleeper)
{
	struct pair l = servant_begin(&blocks);
	struct sci_req *req;
	char b;
	int ret;

	CHECK_EQ(sci_irecv(l.ep, l.to, &b, 1, &req), 0);
	arm_for_sure(l.ep);
	peer_kill(l.proc, SIGKILL);
	while ((ret = sci_test(req, NULL)) == -EAGAIN)
		sleep_once(l.ep);
	CHECK_EQ(ret, -ECONNRESET);
	CHECK_EQ(sci_peer_state(l.to), -ECONNRESET);
	CHECK_EQ(sci_disconnect(l.to), 0);
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

TEST(arming_with_something_to_do)
{
	struct pair l = servant_begin(&blocks);
	struct pollfd pfd = { .fd = sci_ep_fd(l.ep), .events = POLLIN };
	char b;

	arm_for_sure(l.ep);
	ask(&l, 1, 1);
	/* tell_pause() has disarmed it: arming fails, or the descriptor wakes the sleeper */
	tell_pause(&l);
	if (sci_ep_arm(l.ep) == 0)
		CHECK_EQ(poll(&pfd, 1, TEST_WAIT_MS), 1);
	CHECK_EQ(sci_trecv(l.ep, NULL, CONTEXT, 1, 0, &b, 1, NULL), 0);
	peer_send(l.proc, "go on");
	servant_end(&l);
}

/* Blocking calls sleep and are woken, too. */
TEST(sleepers_are_counted_and_rung)
{
	static const struct config c = {
		.n = 1, .set = { { SCI_PARAM_SPIN_US, 0 } }
	};
	struct pair l = servant_begin(&c);
	struct sci_ep_stats here = { 0 }, there = { 0 };

	/* where answers are fast, a message often arrives before its receiver sleeps */
	for (unsigned int i = 0; i < 10000 && !(here.bells + there.bells); i++) {
		tell_finish(&l);
		here = test_ep_stats(l.ep);
		there = tell_stats(&l);
	}
	CHECK(here.sleeps + there.sleeps > 0);
	CHECK(here.bells + there.bells > 0);
	servant_end(&l);
}

#define IDLE_MS	300

/* Wait in vain, like the other side. Return the number of sleeps and doorbells. */
static uint64_t wait_idly(struct pair *l)
{
	struct sci_ep_stats before, after;
	struct sci_req *req;
	char b;

	CHECK_EQ(sci_irecv(l->ep, l->to, &b, 1, &req), 0);
	pair_meet(l);
	before = test_ep_stats(l->ep);
	CHECK_EQ(sci_wait(req, IDLE_MS, NULL), -ETIMEDOUT);
	after = test_ep_stats(l->ep);
	CHECK_EQ(sci_cancel(req), 0);
	CHECK_EQ(test_wait(req, NULL), -ECANCELED);
	return after.sleeps - before.sleeps + after.bells - before.bells;
}

static void idles(struct peer *self, void *arg)
{
	struct pair l = pair_open(self, 4, 0);

	(void)arg;
	PEER_PUT(self, wait_idly(&l));
	pair_close(&l);
}

/* A side that goes to sleep does not ring for the other side. */
TEST(two_that_wait_let_each_other_sleep)
{
	struct peer *p = peer_spawn(8, idles, NULL);
	struct pair l = pair_open(p, 8, 0);
	uint64_t here = wait_idly(&l), there;

	PEER_GET(p, there);
	CHECK(here < 50 && there < 50);
	pair_close(&l);
	peer_join(p);
}

/* ---- memory for messages ---- */

static size_t no_memory_for;		/* malloc() of this size fails */

#if !TEST_ASAN && !TEST_TSAN
void *__libc_malloc(size_t size);

void *malloc(size_t size)
{
	return size == no_memory_for ? NULL : __libc_malloc(size);
}
#endif

/* No doorbell reports that there is memory again. */
TEST(nobody_sleeps_over_a_message_without_memory)
{
	enum { LEN = 1000 };
	static unsigned char buf[LEN];
	struct sci_req *req;
	struct pair l;
	char b;

	if (TEST_ASAN || TEST_TSAN)
		SKIP("the sanitizers have a malloc() of their own");
	l = servant_begin(&blocks);
	CHECK_EQ(sci_itrecv(l.ep, l.to, CONTEXT, 2, 0, &b, 1, &req), 0);
	no_memory_for = LEN;
	ask(&l, 1, LEN);
	ask(&l, 2, 1);
	tell_pause(&l);
	for (unsigned int i = 0; i < 10; i++)
		CHECK_EQ(sci_ep_arm(l.ep), -EAGAIN);
	CHECK_EQ(sci_test(req, NULL), -EAGAIN);
	no_memory_for = 0;
	CHECK_EQ(test_wait(req, NULL), 0);
	CHECK_EQ(sci_trecv(l.ep, l.to, CONTEXT, 1, 0, buf, LEN, NULL), 0);
	CHECK_BYTES(buf, LEN, 1);
	peer_send(l.proc, "go on");
	servant_end(&l);
}

/* ---- idle endpoints on a lossy link ---- */

static void arm_soon(struct sci_ep *ep)
{
	int ret;

	while ((ret = sci_ep_arm(ep)) == -EAGAIN)
		;
	CHECK_EQ(ret, 0);
}

#define ROUNDS	100u
#define FEW	(ROUNDS / 4)		/* doorbells for the last lines and credits */

TEST(two_sleepers_on_a_lossy_link_come_to_rest)
{
	struct couple c = couple_open("loss=0");

	for (unsigned int i = 0; i < ROUNDS; i++) {
		arm_soon(c.ep[0]);
		arm_soon(c.ep[1]);
	}
	CHECK(test_ep_stats(c.ep[0]).bells + test_ep_stats(c.ep[1]).bells < FEW);
	couple_close(&c);
}

/* The poller need not confirm its last credits: a sleeper gets a few doorbells for them. */
TEST(a_poller_on_a_lossy_link_lets_its_peer_sleep)
{
	enum { N = 40 };	/* the receiver returns credits for half of a ring */
	struct couple c = couple_open("loss=0");
	struct sci_req *req[N];
	uint64_t bells;
	char b[N];

	for (unsigned int i = 0; i < N; i++)
		CHECK_EQ(sci_irecv(c.ep[0], c.to[0], &b[i], 1, &req[i]), 0);
	for (unsigned int i = 0; i < N; i++)
		CHECK_EQ(sci_send(c.to[1], "x", 1), 0);
	CHECK_EQ(sci_waitall(req, N, TEST_WAIT_MS, NULL), 0);
	bells = test_ep_stats(c.ep[0]).bells;
	for (unsigned int i = 0; i < ROUNDS; i++) {
		arm_soon(c.ep[1]);
		for (unsigned int k = 0; k < 40; k++)
			CHECK(sci_progress(c.ep[0]) >= 0);
	}
	CHECK(test_ep_stats(c.ep[0]).bells - bells < FEW);
	couple_close(&c);
}

/* ---- work that no doorbell reports ---- */

/* Set the link that both endpoints use. */
static void link_set(const struct couple *c, bool up)
{
	atomic_store(&c->ep[0]->link->down, !up);
	atomic_fetch_add(&c->ep[0]->link->errors, !up);
}

/* Export a word of the second endpoint, and let the first one import it. */
static struct sci_key word_make(struct couple *c)
{
	struct sci_key key;
	uint64_t b = 0;
	void *mem;

	CHECK_EQ(sci_buf_alloc(c->ep[1], sizeof(b), &mem), 0);
	CHECK_EQ(sci_buf_key(c->ep[1], mem, sizeof(b), &key), 0);
	CHECK_EQ(sci_write(c->to[0], &key, 0, &b, sizeof(b)), 0);
	return key;
}

TEST(a_poller_sleeps_until_a_write_can_be_stored)
{
	const struct iovec iov = { &(uint64_t){ 7 }, 8 };
	struct sci_key key;
	struct sci_req *req;
	struct couple c;
	int ret;

	test_needs_shm();
	c = couple_open("loss=0");
	key = word_make(&c);
	/* announce a sleep now: an announcement that is lost would prevent the sleep */
	arm_for_sure(c.ep[0]);
	link_set(&c, false);
	CHECK_EQ(sci_iwritev(c.to[0], &key, 0, &iov, 1, &req), 0);
	for (unsigned int i = 0; i < 20; i++) {
		CHECK_EQ(sci_test(req, NULL), -EAGAIN);
		sleep_once(c.ep[0]);
	}
	link_set(&c, true);
	while ((ret = sci_test(req, NULL)) == -EAGAIN)
		sleep_once(c.ep[0]);
	CHECK_EQ(ret, 0);
	couple_close(&c);
}

/* A thread that sleeps until a request completes, a completion is queued, or a handler runs. */
struct sleeper {
	struct sci_ep *ep;
	bool by_handler;
	bool handled;
	struct sci_req *req;		/* NULL: any completion */
	int error;			/* error of the request */
	_Atomic bool done;
	pthread_t thread;
};

static void sleeper_handle(void *arg, const struct sci_handled *m)
{
	struct sleeper *s = arg;

	(void)m;
	s->handled = true;
}

static int look_handled(void *arg)
{
	struct sleeper *s = arg;

	return s->handled ? 0 : -EAGAIN;
}

static void *sleeps(void *arg)
{
	struct sleeper *s = arg;
	struct sci_completion done;
	int error;

	if (s->by_handler) {
		error = sci_wait_until(s->ep, look_handled, s, -1);
	} else if (s->req) {
		error = sci_wait(s->req, -1, NULL);
	} else {
		CHECK_EQ(sci_completions(s->ep, -1, &done, 1), 1);
		error = done.status.error;
	}
	CHECK_EQ(error, s->error);
	atomic_store(&s->done, true);
	return NULL;
}

static void sleeper_start(struct sleeper *s)
{
	struct sci_ep *ep = s->ep;
	uint64_t before = test_ep_stats(ep).sleeps;

	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_SPIN_US, 0), 0);
	CHECK_EQ(pthread_create(&s->thread, NULL, sleeps, s), 0);
	WAIT_UNTIL(test_ep_stats(ep).sleeps > before && others_asleep(), TEST_WAIT_MS);
}

static void sleeper_begin_for(struct sleeper *s, struct sci_ep *ep, struct sci_req *req)
{
	*s = (struct sleeper){ .ep = ep, .req = req };
	sleeper_start(s);
}

static void sleeper_begin(struct sleeper *s, struct sci_ep *ep)
{
	sleeper_begin_for(s, ep, NULL);
}

static void sleeper_begin_handler(struct sleeper *s, struct sci_ep *ep)
{
	*s = (struct sleeper){ .ep = ep, .by_handler = true };
	CHECK_EQ(sci_handler_set(ep, SCI_HANDLER_USER, sleeper_handle, s), 0);
	sleeper_start(s);
}

static void sleeper_end(struct sleeper *s)
{
	WAIT_UNTIL(atomic_load(&s->done), TEST_WAIT_MS);
	CHECK_EQ(pthread_join(s->thread, NULL), 0);
}

TEST(a_sleeper_sees_a_write_that_cannot_be_stored_yet)
{
	const struct iovec iov = { &(uint64_t){ 7 }, 8 };
	struct sci_key key;
	struct sci_req *req;
	struct sleeper s;
	struct couple c;

	test_needs_shm();
	c = couple_open("loss=0");
	key = word_make(&c);
	sleeper_begin(&s, c.ep[0]);
	link_set(&c, false);
	CHECK_EQ(sci_iwritev(c.to[0], &key, 0, &iov, 1, &req), 0);
	CHECK_EQ(sci_req_queue(req, NULL), 0);
	link_set(&c, true);
	sleeper_end(&s);
	couple_close(&c);
}

/* The receiver may not import the sender's buffer yet: the import before has failed. */
TEST(a_sleeper_sees_the_end_of_a_pause_between_imports)
{
	enum { LEN = 100000 };
	static unsigned char in[LEN];
	struct sci_req *sent, *req;
	struct sleeper s;
	struct couple c;
	void *out;

	test_needs_shm();
	c = couple_open(NULL);
	for (unsigned int i = 0; i < 2; i++)
		CHECK_EQ(sci_ep_set(c.ep[i], SCI_PARAM_ZCOPY_MIN, 8192), 0);
	CHECK_EQ(sci_buf_alloc(c.ep[1], LEN, &out), 0);
	msg_fill(out, LEN, 1);
	CHECK_EQ(sci_isend(c.to[1], out, LEN, &sent), 0);
	WAIT_UNTIL(sci_progress(c.ep[0]) >= 0 && c.ep[0]->match.unexpected, TEST_WAIT_MS);
	sleeper_begin(&s, c.ep[0]);
	c.to[0]->import_ms = test_now_ms() + 100;
	CHECK_EQ(sci_irecv(c.ep[0], c.to[0], in, LEN, &req), 0);
	CHECK_EQ(sci_req_queue(req, NULL), 0);
	sleeper_end(&s);
	CHECK_BYTES(in, LEN, 1);
	CHECK_EQ(test_wait(sent, NULL), 0);
	couple_close(&c);
}

/* Send messages until the receiver keeps no more of them: the last one stays in the ring. */
static void unexpected_fill(struct couple *c)
{
	uint64_t before;

	do {
		before = c->ep[0]->unexpected_bytes;
		CHECK_EQ(sci_tsend(c->to[1], CONTEXT + 1, 0, NULL, 0), 0);
		for (unsigned int i = 0; i < 2 * DEFER_POLLS; i++)
			CHECK(sci_progress(c->ep[0]) >= 0);
	} while (c->ep[0]->unexpected_bytes > before);
}

TEST(a_sleeper_sees_a_message_that_found_no_room)
{
	struct couple c = couple_open(NULL);
	struct sci_req *req;
	struct sleeper s;
	char b;

	CHECK_EQ(sci_ep_set(c.ep[0], SCI_PARAM_UNEXPECTED_MAX, 0), 0);
	unexpected_fill(&c);
	for (unsigned int i = 0; i < 2; i++) {
		CHECK_EQ(sci_tsend(c.to[1], CONTEXT, i, "x", 1), 0);
		sleeper_begin(&s, c.ep[0]);
		CHECK_EQ(sci_itrecv(c.ep[0], NULL, CONTEXT, i, 0, &b, 1, &req), 0);
		CHECK_EQ(sci_req_queue(req, NULL), 0);
		sleeper_end(&s);
	}
	CHECK_EQ(sci_send(c.to[1], "x", 1), 0);
	sleeper_begin(&s, c.ep[0]);
	CHECK_EQ(sci_irecv_many(c.ep[0], NULL, &b, 1, 0, NULL, &req), 0);
	sleeper_end(&s);
	couple_close(&c);
}

/* A message stays in the ring, and a message to a handler is behind it. */
TEST(a_sleeper_sees_that_there_is_room_again)
{
	struct couple c = couple_open(NULL);
	struct sci_msg *msg = NULL;
	struct sci_req *req;
	struct sleeper s;

	CHECK_EQ(sci_ep_set(c.ep[0], SCI_PARAM_UNEXPECTED_MAX, 4096), 0);
	for (unsigned int i = 0; i < 2; i++) {
		unexpected_fill(&c);
		CHECK_EQ(sci_handler_send(c.to[1], SCI_HANDLER_USER, 0, NULL, 0), 0);
		if (i)
			CHECK_EQ(sci_tmatch(c.ep[0], c.to[0], CONTEXT + 1, 0, 0, 0, &msg, NULL), 0);
		sleeper_begin_handler(&s, c.ep[0]);
		if (i)
			sci_msg_free(msg);
		else
			CHECK_EQ(sci_itrecv(c.ep[0], c.to[0], CONTEXT + 1, 0, 0, NULL, 0, &req), 0);
		sleeper_end(&s);
	}
	CHECK_EQ(test_wait(req, NULL), 0);
	couple_close(&c);
}

static struct sci_req *any_recv(struct sci_ep *ep)
{
	static char b;
	struct sci_req *req;

	CHECK_EQ(sci_irecv(ep, NULL, &b, 1, &req), 0);
	return req;
}

/* The thread that sleeps on the descriptors is cancelled: the other one must not wait for it. */
TEST(a_sleeper_that_is_cancelled)
{
	struct couple c = couple_open(NULL);
	struct sci_req *req[2];
	struct sleeper s[2];
	char b[2];

	for (unsigned int i = 0; i < 2; i++)
		CHECK_EQ(sci_itrecv(c.ep[0], c.to[0], CONTEXT, i, 0, &b[i], 1, &req[i]), 0);
	sleeper_begin_for(&s[0], c.ep[0], req[0]);
	CHECK_EQ(pthread_cancel(s[0].thread), 0);
	s[1] = (struct sleeper){ .ep = c.ep[0], .req = req[1] };
	CHECK_EQ(pthread_create(&s[1].thread, NULL, sleeps, &s[1]), 0);
	WAIT_UNTIL(others_asleep(), TEST_WAIT_MS);
	for (unsigned int i = 2; i--;) {
		CHECK_EQ(sci_tsend(c.to[1], CONTEXT, i, "x", 1), 0);
		sleeper_end(&s[i]);
	}
	couple_close(&c);
}

static void sleeper_cancel(struct sleeper *s)
{
	s->error = -ECANCELED;
	CHECK_EQ(sci_cancel(s->req), 0);
}

TEST(arming_leaves_a_sleeper_its_wake_up)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sleeper s;

	for (unsigned int i = 0; i < 20; i++) {
		sleeper_begin_for(&s, ep, any_recv(ep));
		sleeper_cancel(&s);
		sci_ep_arm(ep);
		sleeper_end(&s);
	}
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(a_sleeper_leaves_an_event_loop_its_wake_up)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct pollfd pfd = { .fd = sci_ep_fd(ep), .events = POLLIN };
	struct sci_req *queued = any_recv(ep);
	struct sci_completion done;
	struct sleeper s;
	uint64_t before;

	CHECK_EQ(sci_req_queue(queued, NULL), 0);
	sleeper_begin_for(&s, ep, any_recv(ep));
	arm_for_sure(ep);
	before = test_ep_stats(ep).sleeps;
	CHECK_EQ(sci_cancel(queued), 0);
	WAIT_UNTIL(test_ep_stats(ep).sleeps > before && others_asleep(), TEST_WAIT_MS);
	CHECK_EQ(poll(&pfd, 1, 0), 1);
	CHECK_EQ(sci_completions(ep, 0, &done, 1), 1);
	sleeper_cancel(&s);
	sleeper_end(&s);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* ---- counters ---- */

static const size_t counters[] = {
	offsetof(struct sci_ep_stats, sent_short),
	offsetof(struct sci_ep_stats, sent_lines),
	offsetof(struct sci_ep_stats, sent_eager),
	offsetof(struct sci_ep_stats, sent_rendezvous),
	offsetof(struct sci_ep_stats, sent_zcopy),
	offsetof(struct sci_ep_stats, sent_single_copy),
};

static uint64_t counter(const struct sci_ep_stats *st, size_t offset)
{
	return *(const uint64_t *)((const char *)st + offset);
}

/* Return the counter that has grown, by one. */
static size_t moved(const struct sci_ep_stats *before,
		    const struct sci_ep_stats *after)
{
	size_t which = 0;

	for (size_t i = 0; i < ARRAY_LEN(counters); i++) {
		if (counter(before, counters[i]) ==
		    counter(after, counters[i]))
			continue;
		CHECK_EQ(counter(after, counters[i]),
			 counter(before, counters[i]) + 1);
		CHECK(!which);
		which = counters[i];
	}
	return which;
}

/* Send @len bytes. Return which of the sender's counters of messages has grown. */
static size_t counted(struct pair *l, uint64_t tag, size_t len)
{
	struct work w = { .tagged = tag != 0, .context = CONTEXT, .tag = tag,
			  .len = len };
	struct sci_ep_stats before, after;
	unsigned char *buf = malloc(len + 1);
	struct sci_req *req;

	msg_fill(buf, len, 0);
	before = test_ep_stats(l->ep);
	if (tag)
		CHECK_EQ(sci_itsend(l->to, CONTEXT, tag, buf, len, &req), 0);
	else
		CHECK_EQ(sci_isend(l->to, buf, len, &req), 0);
	tell_recv(l, &w);		/* sends another short message */
	CHECK_EQ(test_wait(req, NULL), 0);
	after = test_ep_stats(l->ep);
	free(buf);
	after.sent_short--;
	return moved(&before, &after);
}

#define COUNTED(l, tag, len, field)					\
	CHECK_EQ(counted(l, tag, len),					\
		 offsetof(struct sci_ep_stats, sent_##field))

TEST(messages_are_counted_by_protocol)
{
	static const struct config c = {
		.n = 4, .set = { BLOCKS, { SCI_PARAM_ATTACH_AFTER, 0 },
				 { SCI_PARAM_LINES_MAX, 200 } }
	};
	struct pair l = servant_begin(&c);

	COUNTED(&l, 0, 0, short);
	COUNTED(&l, 0, SCI_SHORT_MAX, short);
	COUNTED(&l, 1, SCI_TAGGED_SHORT_MAX, short);
	CHECK(counted(&l, 0, SCI_SHORT_MAX + 1) !=
	      offsetof(struct sci_ep_stats, sent_short));
	CHECK(counted(&l, 1, SCI_TAGGED_SHORT_MAX + 1) !=
	      offsetof(struct sci_ep_stats, sent_short));
	/*
	 * the first message asks for the ring, which is there some time later;
	 * a send that completes at once makes no progress
	 */
	WAIT_UNTIL((sci_progress(l.ep), counted(&l, 0, 201)) ==
		   offsetof(struct sci_ep_stats, sent_eager), TEST_WAIT_MS);
	tell_finish(&l);
	WAIT_UNTIL((sci_progress(l.ep), l.to->blocks_tx[RING_EAGER].size),
		   TEST_WAIT_MS);
	COUNTED(&l, 0, 200, lines);
	COUNTED(&l, 1, 201, eager);
	COUNTED(&l, 0, 4096, eager);
	COUNTED(&l, 1, 4096, eager);
	COUNTED(&l, 0, 4097, rendezvous);
	COUNTED(&l, 1, 1 << 20, rendezvous);
	servant_end(&l);
}

TEST(single_copies_are_counted)
{
	static const struct config c = {
		.n = 2, .set = { { SCI_PARAM_EAGER_MAX, 4096 },
				 { SCI_PARAM_SINGLE_COPY_MIN, 5000 } }
	};
	struct pair l = servant_begin(&c);
	size_t which = counted(&l, 0, 100000);

	/* the fabric or the kernel may not allow single copies */
	if (which == offsetof(struct sci_ep_stats, sent_rendezvous))
		test_note("no single copies here");
	else
		COUNTED(&l, 0, 100000, single_copy);
	COUNTED(&l, 1, 4999, rendezvous);
	servant_end(&l);
}

TEST(messages_of_idle_pairs_are_counted_as_lines)
{
	static const struct config c = {
		.n = 3, .set = { BLOCKS, { SCI_PARAM_ATTACH_AFTER, 1 << 30 } }
	};
	struct pair l = servant_begin(&c);
	uint64_t idle = test_ep_stats(l.ep).peer_bytes;

	CHECK(idle > 0);
	COUNTED(&l, 0, 63, lines);
	COUNTED(&l, 1, 63, lines);
	COUNTED(&l, 0, 300, lines);
	/* no ring was attached for them */
	CHECK_EQ(test_ep_stats(l.ep).peer_bytes, idle);
	servant_end(&l);
}

TEST(what_nobody_asked_for_is_counted)
{
	struct pair l = servant_begin(&blocks);
	struct sci_ep_stats st, before;
	char buf[300];

	before = test_ep_stats(l.ep);
	CHECK_EQ(before.peers, 1);
	CHECK_EQ(before.unexpected, 0);
	CHECK_EQ(before.unexpected_bytes, 0);
	for (unsigned int i = 1; i <= 5; i++) {
		ask(&l, i, 300);
		arrived(&l, i);
	}
	st = test_ep_stats(l.ep);
	CHECK_EQ(st.unexpected, 5);
	CHECK(st.unexpected_bytes >= 5 * 300);
	CHECK_EQ(st.received, before.received);
	for (unsigned int i = 1; i <= 5; i++)
		CHECK_EQ(sci_trecv(l.ep, NULL, CONTEXT, i, 0, buf, 300, NULL),
			 0);
	st = test_ep_stats(l.ep);
	CHECK_EQ(st.unexpected, 0);
	CHECK_EQ(st.unexpected_bytes, 0);
	CHECK_EQ(st.received, before.received + 5);
	CHECK_EQ(st.crc_errors, 0);
	CHECK_EQ(st.resent_lines, 0);
	CHECK_EQ(st.resent_blocks, 0);
	/* a program that knows fewer counters gets no more */
	memset(&st, 0x55, sizeof(st));
	st.size = offsetof(struct sci_ep_stats, peer_bytes);
	CHECK_EQ(sci_ep_stats(l.ep, &st), 0);
	CHECK_EQ(st.peers, 1);
	CHECK_EQ(st.peer_bytes, 0x5555555555555555);
	servant_end(&l);
}

/* ---- sleeping, with membarrier() and with fences ---- */

#define ROUND_TRIPS	(TEST_TSAN || TEST_ASAN ? 300 : 3000)

static void wake_me(struct peer *self, void *arg)
{
	struct pair l = pair_config(self, 4, arg);
	char c = 0;

	for (int i = 0; i < ROUND_TRIPS; i++) {
		CHECK_EQ(sci_recv(l.ep, l.to, &c, 1, NULL), 0);
		CHECK_EQ(sci_send(l.to, &c, 1), 0);
	}
	pair_close(&l);
}

/* Run on one CPU, so that each side must sleep before the other can answer. */
static void share_a_cpu(void)
{
	cpu_set_t all, one;
	int cpu = 0;

	CHECK_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CHECK_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
}

static void wake_each_other(void)
{
	static const struct config c = {
		.n = 1, .set = { { SCI_PARAM_SPIN_US, 0 } }
	};
	char byte = 7, got = 0;
	struct peer *p;
	struct pair l;

	share_a_cpu();
	p = peer_spawn(8, wake_me, (void *)(uintptr_t)&c);
	l = pair_config(p, 8, &c);
	for (int i = 0; i < ROUND_TRIPS; i++) {
		CHECK_EQ(sci_send(l.to, &byte, 1), 0);
		CHECK_EQ(sci_recv(l.ep, l.to, &got, 1, NULL), 0);
		CHECK_EQ(got, byte);
	}
	CHECK(test_ep_stats(l.ep).sleeps > 0);
	CHECK(test_ep_stats(l.ep).bells > 0);
	pair_close(&l);
	peer_join(p);
}

TEST(sleepers_wake_each_other)
{
	wake_each_other();
}

TEST(sleepers_wake_each_other_with_fences)
{
	setenv("SCI_MEMBARRIER", "0", 1);
	wake_each_other();
}

/* ---- parked peers ---- */

static void crowd(struct peer *proc, void *arg)
{
	crowd_call(proc, arg, CROWD);
}

/* Let this process read or write the inboxes of the parked peers other than @but, or not. */
static void inboxes_protect(struct sci_ep *ep, const struct sci_peer *but, int prot)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &ep->peers) {
		struct sci_peer *p = container_of(pos, struct sci_peer, link);

		if (p != but && list_empty(&p->hot))
			CHECK_EQ(mprotect(p->first.inbox_map, INBOX_BYTES, prot), 0);
	}
}

/*
 * A ring of the doorbell costs a look at the peer that rang, not at all parked peers: a look at
 * another one ends this test with SIGSEGV.
 */
TEST(a_ring_leads_to_the_peer_that_rang)
{
	struct crowd *shared = test_shared(sizeof(*shared));
	struct peer *proc = peer_spawn(8, crowd, shared);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *from[CROWD];

	crowd_accept(ep, from);
	if (!ep->ops->ring)
		SKIP("the doorbell of this fabric does not say who rang");
	for (unsigned int n = 0; n < CROWD; n++) {
		unsigned int got;

		WAIT_UNTIL(sci_progress(ep) >= 0 && ep->n_hot < CROWD / 2 &&
			   list_empty(&from[n]->hot), TEST_WAIT_MS);
		CHECK_EQ(sci_ep_set(ep, SCI_PARAM_SPIN_US, n & 1 ? 1000000 : 0), 0);
		inboxes_protect(ep, from[n], PROT_NONE);
		atomic_store(&shared->asked, n + 1);
		CHECK_EQ(sci_recv(ep, NULL, &got, sizeof(got), NULL), 0);
		CHECK_EQ(got, n);
		inboxes_protect(ep, from[n], PROT_READ | PROT_WRITE);
	}
	peer_send(proc, "leave");
	peer_join(proc);
	CHECK_EQ(sci_ep_close(ep), 0);
}
