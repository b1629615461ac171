// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Non-blocking connects: sci_iconnect() and sci_peer_open(). */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sci/msg.h>

#include "libsci/msg/proto/proto.h"
#include "selftests/harness.h"
#include "selftests/msg/peers.h"
#include "selftests/msg/unanswered.h"

static const struct sci_addr node8 = { 8, TEST_ID }, nobody = { 4, 99 };

/* Make the endpoint and its fabric use @ops. */
static void use_ops(struct sci_ep *ep, const struct sci_fabric_ops *ops)
{
	ep->ops = ops;
	ep->fabric->ops = ops;
}

static struct sci_req *dial(struct sci_ep *ep, const struct sci_addr *addr,
			    int timeout)
{
	struct sci_req *req = NULL;

	CHECK_EQ(sci_iconnect(ep, addr, timeout, &req), 0);
	CHECK(req);
	return req;
}

static struct sci_peer *dialed(struct sci_req *req)
{
	struct sci_status st;

	CHECK_EQ(test_wait(req, &st), 0);
	CHECK_EQ(st.error, 0);
	CHECK(st.peer);
	return st.peer;
}

static void talk(struct pair *l)
{
	struct sci_req *req;
	uint32_t out = 4711, in = 0;

	CHECK_EQ(sci_isend(l->to, &out, sizeof(out), &req), 0);
	CHECK_EQ(sci_recv(l->ep, l->to, &in, sizeof(in), NULL), 0);
	CHECK_EQ(test_wait(req, NULL), 0);
	CHECK_EQ(in, out);
}

static void accepts(struct peer *self, void *arg)
{
	struct pair l = pair_open(self, 8, 0);

	(void)arg;
	talk(&l);
	pair_close(&l);
}

TEST(a_request_connects)
{
	struct peer *p = peer_spawn(8, accepts, NULL);
	struct pair l = { .proc = p, .ep = test_ep_open(TEST_ID, 0) };
	struct sci_peer *again;

	l.to = dialed(dial(l.ep, &node8, TEST_WAIT_MS));
	CHECK_EQ(sci_peer_state(l.to), 0);
	talk(&l);
	/* an existing connection is found at once */
	CHECK_EQ(sci_test(dial(l.ep, &node8, 0), NULL), 0);
	CHECK_EQ(sci_peer_find(l.ep, &node8, &again), 0);
	CHECK(again == l.to);
	CHECK_EQ(sci_accept(l.ep, 0, &again), -ETIMEDOUT);
	pair_close(&l);
	peer_join(p);
}

static void opens_late(struct peer *self, void *arg)
{
	peer_expect(self, "open");
	accepts(self, arg);
}

TEST(one_that_opens_late_is_waited_for)
{
	struct peer *p = peer_spawn(8, opens_late, NULL);
	struct pair l = { .proc = p, .ep = test_ep_open(TEST_ID, 0) };
	struct sci_req *req = dial(l.ep, &node8, -1);

	for (int i = 0; i < 10; i++)
		CHECK_EQ(sci_test(req, NULL), -EAGAIN);
	peer_send(p, "open");
	l.to = dialed(req);
	talk(&l);
	pair_close(&l);
	peer_join(p);
}

/* No doorbell announces the next attempt: the endpoint must wake itself. */
TEST(one_that_opens_late_wakes_a_sleeper)
{
	struct peer *p = peer_spawn(8, opens_late, NULL);
	struct pair l = { .proc = p, .ep = test_ep_open(TEST_ID, 0) };
	struct pollfd pfd = { .fd = sci_ep_fd(l.ep), .events = POLLIN };
	struct sci_completion done;
	int ret;

	CHECK_EQ(sci_req_queue(dial(l.ep, &node8, -1), &l), 0);
	peer_send(p, "open");
	while ((ret = sci_completions(l.ep, 0, &done, 1)) == -EAGAIN)
		if (!sci_ep_arm(l.ep))
			CHECK_EQ(poll(&pfd, 1, TEST_WAIT_MS), 1);
	CHECK_EQ(ret, 1);
	CHECK(done.data == &l);
	CHECK_EQ(done.status.error, 0);
	l.to = done.status.peer;
	talk(&l);
	pair_close(&l);
	peer_join(p);
}

static void *take_one(void *arg)
{
	uint32_t in;

	CHECK_EQ(sci_recv(arg, NULL, &in, sizeof(in), NULL), 0);
	return NULL;
}

static void opens_late_and_sends(struct peer *self, void *arg)
{
	struct pair l;
	uint32_t out = 1;

	(void)arg;
	peer_expect(self, "open");
	l = pair_open(self, 8, 0);
	CHECK_EQ(sci_send(l.to, &out, sizeof(out)), 0);
	pair_close(&l);
}

/* The thread sleeps before another thread begins to connect. */
TEST(another_threads_dial_wakes_a_sleeper)
{
	struct peer *p = peer_spawn(8, opens_late_and_sends, NULL);
	struct pair l = { .proc = p, .ep = test_ep_open(TEST_ID, 0) };
	struct sci_req *req;
	pthread_t thread;

	CHECK_EQ(sci_ep_set(l.ep, SCI_PARAM_SPIN_US, 0), 0);
	CHECK_EQ(pthread_create(&thread, NULL, take_one, l.ep), 0);
	WAIT_UNTIL(others_asleep(), TEST_WAIT_MS);
	req = dial(l.ep, &node8, -1);
	peer_send(p, "open");
	CHECK_EQ(pthread_join(thread, NULL), 0);
	l.to = dialed(req);
	pair_close(&l);
	peer_join(p);
}

TEST(two_that_dial_each_other_make_one_connection)
{
	struct sci_ep *ep[2] = { test_ep_open(1, 0), test_ep_open(2, 0) };
	static const struct sci_addr addr[2] = { { 4, 1 }, { 4, 2 } };
	struct sci_req *req[2];
	struct sci_status st[2];
	bool there[2] = { false, false };
	struct sci_peer *more;

	for (int i = 0; i < 2; i++)
		req[i] = dial(ep[i], &addr[!i], -1);
	while (!there[0] || !there[1])
		for (int i = 0; i < 2; i++)
			if (!there[i])
				there[i] = sci_test(req[i], &st[i]) != -EAGAIN;
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(st[i].error, 0);
		CHECK_EQ(sci_accept(ep[i], 0, &more), -ETIMEDOUT);
		CHECK_EQ(test_ep_stats(ep[i]).peers, 1);
	}
	for (int i = 0; i < 2; i++)
		CHECK_EQ(sci_ep_close(ep[i]), 0);
}

#define SHARED	20u

TEST(dials_to_one_address_share_a_connection)
{
	struct peer *p = peer_spawn(8, opens_late, NULL);
	struct pair l = { .proc = p, .ep = test_ep_open(TEST_ID, 0) };
	struct sci_req *req[SHARED];

	for (unsigned int i = 0; i < SHARED; i++)
		req[i] = dial(l.ep, &node8, -1);
	CHECK_EQ(sci_cancel(req[0]), 0);
	CHECK_EQ(test_wait(req[0], NULL), -ECANCELED);
	peer_send(p, "open");
	l.to = test_ep_connect(l.ep, 8, TEST_ID);
	for (unsigned int i = 1; i < SHARED; i++)
		CHECK(dialed(req[i]) == l.to);
	talk(&l);
	pair_close(&l);
	peer_join(p);
}

/* ---- peers used before they are connected ---- */

#define EARLY	30u

/* Receive the words that were sent before this side opened; send each back. */
static void opens_late_and_echoes(struct peer *self, void *arg)
{
	struct pair l;

	(void)arg;
	peer_expect(self, "open");
	l = pair_open(self, 8, 0);
	for (uint32_t i = 0; i < EARLY; i++) {
		uint32_t in = 0;

		CHECK_EQ(sci_recv(l.ep, l.to, &in, sizeof(in), NULL), 0);
		CHECK_EQ(in, i);
		CHECK_EQ(sci_send(l.to, &in, sizeof(in)), 0);
	}
	pair_close(&l);
}

TEST(an_opened_peer_is_talked_to_before_it_is_there)
{
	struct peer *p = peer_spawn(8, opens_late_and_echoes, NULL);
	struct pair l = { .proc = p, .ep = test_ep_open(TEST_ID, 0) };
	struct sci_req *out[EARLY], *in[EARLY];
	uint32_t word[EARLY], echo[EARLY];
	struct sci_peer *same;

	CHECK_EQ(sci_peer_open(l.ep, &node8, -1, &l.to), 0);
	CHECK_EQ(sci_peer_open(l.ep, &node8, 0, &same), 0);
	CHECK(same == l.to);
	CHECK_EQ(sci_peer_state(l.to), -EINPROGRESS);
	for (uint32_t i = 0; i < EARLY; i++) {
		word[i] = i;
		CHECK_EQ(sci_isend(l.to, &word[i], 4, &out[i]), 0);
		CHECK_EQ(sci_irecv(l.ep, l.to, &echo[i], 4, &in[i]), 0);
	}
	CHECK_EQ(sci_cancel(in[EARLY - 1]), 0);
	CHECK_EQ(test_wait(in[EARLY - 1], NULL), -ECANCELED);
	peer_send(p, "open");
	for (uint32_t i = 0; i < EARLY; i++)
		CHECK_EQ(test_wait(out[i], NULL), 0);
	CHECK_EQ(sci_recv(l.ep, NULL, &echo[EARLY - 1], 4, NULL), 0);
	for (uint32_t i = 0; i + 1 < EARLY; i++)
		CHECK_EQ(test_wait(in[i], NULL), 0);
	CHECK(!memcmp(word, echo, sizeof(word)));
	CHECK_EQ(sci_peer_state(l.to), 0);
	CHECK_EQ(sci_peer_open(l.ep, &node8, -1, &same), 0);
	CHECK(same == l.to);
	CHECK_EQ(test_ep_stats(l.ep).peers, 1);
	pair_close(&l);
	peer_join(p);
}

/* Node 4 opens this endpoint, which only makes progress until the write arrives. */
static void exports_late(struct peer *self, void *arg)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_key key;
	char *buf;

	(void)arg;
	CHECK_EQ(sci_buf_alloc(ep, 4096, (void **)&buf), 0);
	CHECK_EQ(sci_buf_key(ep, buf, 4096, &key), 0);
	PEER_PUT(self, key);
	peer_expect(self, "asked");
	WAIT_UNTIL((sci_progress(ep), *(volatile char *)buf), TEST_WAIT_MS);
	CHECK_EQ(buf[0], 'w');
	peer_expect(self, "bye");
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(an_opened_peer_is_written_to_before_it_is_there)
{
	struct peer *p = peer_spawn(8, exports_late, NULL);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	const struct iovec out = { .iov_base = (char[]){ "w" }, .iov_len = 1 };
	struct sci_key key;
	struct sci_req *req[2];
	struct sci_peer *to;
	char word = 0;
	const struct iovec in = { .iov_base = &word, .iov_len = 1 };

	PEER_GET(p, key);
	CHECK_EQ(sci_peer_open(ep, &node8, -1, &to), 0);
	CHECK_EQ(sci_peer_state(to), -EINPROGRESS);
	CHECK_EQ(sci_iwritev(to, &key, 0, &out, 1, &req[0]), 0);
	CHECK_EQ(sci_ireadv(to, &key, 1, &in, 1, &req[1]), 0);
	CHECK_EQ(sci_test(req[0], NULL), -EAGAIN);
	peer_send(p, "asked");
	CHECK_EQ(test_wait(req[0], NULL), 0);
	CHECK_EQ(test_wait(req[1], NULL), 0);
	peer_send(p, "bye");
	CHECK_EQ(sci_ep_close(ep), 0);
	peer_join(p);
}

TEST(an_opened_peer_connects_itself)
{
	struct sci_ep *ep[2] = { test_ep_open(1, 0), test_ep_open(2, 0) };
	static const struct sci_addr addr[2] = { { 4, 1 }, { 4, 2 } };
	struct sci_peer *to[2];
	struct sci_req *req[2];
	uint32_t out = 47, in[2];

	for (int i = 0; i < 2; i++) {
		CHECK_EQ(sci_peer_open(ep[i], &addr[!i], -1, &to[i]), 0);
		CHECK_EQ(sci_irecv(ep[i], to[i], &in[i], 4, &req[i]), 0);
	}
	for (int i = 0; i < 2; i++) {
		struct sci_req *sent;

		CHECK_EQ(sci_isend(to[i], &out, 4, &sent), 0);
		WAIT_UNTIL((sci_progress(ep[!i]), sci_test(sent, NULL)) == 0,
			   TEST_WAIT_MS);
	}
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(test_wait(req[i], NULL), 0);
		CHECK_EQ(in[i], out);
		CHECK_EQ(test_ep_stats(ep[i]).peers, 1);
	}
	for (int i = 0; i < 2; i++)
		CHECK_EQ(sci_ep_close(ep[i]), 0);
}

static void opens_and_never_calls(struct peer *self, void *arg)
{
	(void)arg;
	test_ep_open(TEST_ID, 0);
	peer_send(self, "open");
	pause();
}

/* A live peer that makes no calls is waited for; its death ends the wait. */
TEST(an_opened_peer_that_does_not_answer)
{
	struct peer *p = peer_spawn(8, opens_and_never_calls, NULL);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_req *req;
	struct sci_peer *to;
	uint32_t word = 0;

	peer_expect(p, "open");
	/* the limit passes before the first HELLO, and between two */
	CHECK_EQ(sci_peer_open(ep, &node8, 0, &to), 0);
	CHECK_EQ(sci_isend(to, &word, 4, &req), 0);
	CHECK_EQ(sci_wait(req, 600, NULL), -ETIMEDOUT);
	peer_kill(p, SIGKILL);
	CHECK_EQ(test_wait(req, NULL), -ETIME);
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(an_opened_peer_that_never_comes)
{
	static const struct sci_addr nowhere = { 4096, 1 };
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *to, *in_vain;
	struct sci_req *out, *in;
	uint32_t word = 0;

	CHECK_EQ(sci_peer_open(ep, &nobody, 30, &to), 0);
	CHECK_EQ(sci_isend(to, &word, 4, &out), 0);
	CHECK_EQ(sci_irecv(ep, to, &word, 4, &in), 0);
	CHECK_EQ(test_wait(out, NULL), -ETIME);
	CHECK_EQ(test_wait(in, NULL), -ETIME);
	CHECK_EQ(sci_peer_state(to), -ETIME);
	CHECK_EQ(sci_isend(to, &word, 4, &out), -ETIME);
	CHECK_EQ(sci_disconnect(to), 0);

	/* the peer's error is that of sci_connect() */
	CHECK_EQ(sci_peer_open(ep, &nowhere, -1, &to), 0);
	CHECK_EQ(sci_irecv(ep, to, &word, 4, &in), 0);
	CHECK(test_wait(in, NULL) < 0);
	CHECK_EQ(sci_peer_state(to),
		 sci_connect(ep, &nowhere, TEST_WAIT_MS, &in_vain));
	CHECK_EQ(sci_disconnect(to), 0);

	/* disconnect a peer, and close an endpoint, during a connect */
	CHECK_EQ(sci_peer_open(ep, &nobody, -1, &to), 0);
	CHECK_EQ(sci_irecv(ep, to, &word, 4, &in), 0);
	CHECK_EQ(sci_disconnect(to), 0);
	CHECK_EQ(test_wait(in, NULL), -ECANCELED);
	CHECK_EQ(sci_peer_open(ep, &nobody, -1, &to), 0);
	CHECK_EQ(sci_isend(to, &word, 4, &out), 0);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* ---- connects that fail ---- */

TEST(a_dial_times_out)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	uint64_t begin = test_now_ms();
	struct sci_req *req;
	struct sci_status st;

	/* a wait that times out does not end the connect */
	req = dial(ep, &nobody, -1);
	CHECK_EQ(sci_wait(req, 0, NULL), -ETIMEDOUT);
	CHECK_EQ(sci_wait(req, 0, NULL), -ETIMEDOUT);
	CHECK_EQ(sci_cancel(req), 0);
	CHECK_EQ(test_wait(req, NULL), -ECANCELED);

	req = dial(ep, &nobody, 30);
	CHECK_EQ(test_wait(req, &st), -ETIME);
	CHECK_EQ(st.error, -ETIME);
	CHECK(!st.peer);
	CHECK(test_now_ms() - begin + 1 >= 30);
	CHECK_EQ(test_wait(dial(ep, &nobody, 0), NULL), -ETIME);
	CHECK_EQ(test_ep_stats(ep).peers, 0);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* ---- a link that is down ---- */

/* Attempts to connect that find the link down. The last one brings the link up. */
#define DOWN_ATTEMPTS	3u

static struct {
	const struct sci_fabric_ops *real;
	struct sci_fabric_ops ops;
	struct sci_link_status *link;
	_Atomic unsigned int refused;
} down;

/* Count an attempt with result @ret. */
static int down_count(int ret)
{
	if (ret == -ENETDOWN && atomic_fetch_add(&down.refused, 1) + 1 == DOWN_ATTEMPTS)
		atomic_store(&down.link->down, 0);
	return ret;
}

static int down_rseg_connect(struct sci_fabric *f, const struct sci_rseg_param *p,
			     struct sci_rseg **out)
{
	return down_count(down.real->rseg.connect(f, p, out));
}

static int down_rintr_connect(struct sci_fabric *f, const struct sci_rintr_param *p,
			      struct sci_rintr **out)
{
	return down_count(down.real->rintr.connect(f, p, out));
}

static struct sci_ep *down_open(void)
{
	struct sci_ep *ep;

	setenv("SCI_FAULT", "linkdown=0", 1);
	ep = test_ep_open(TEST_ID, 0);
	down.link = ep->ops->query.link(ep->fabric, 0);
	/* the link goes down after the endpoint has opened */
	WAIT_UNTIL(atomic_load(&down.link->down), TEST_WAIT_MS);
	down.real = ep->ops;
	down.ops = *ep->ops;
	down.ops.rseg.connect = down_rseg_connect;
	down.ops.rintr.connect = down_rintr_connect;
	use_ops(ep, &down.ops);
	return ep;
}

static void down_close(struct pair *l)
{
	CHECK(atomic_load(&down.refused) >= DOWN_ATTEMPTS);
	pair_meet(l);
	use_ops(l->ep, down.real);
	CHECK_EQ(sci_ep_close(l->ep), 0);
}

TEST(a_connect_waits_until_the_link_is_up)
{
	struct peer *p = peer_spawn(8, accepts, NULL);
	struct pair l = { .proc = p, .ep = down_open() };

	l.to = test_ep_connect(l.ep, 8, TEST_ID);
	talk(&l);
	down_close(&l);
	peer_join(p);
}

TEST(an_opened_peer_waits_until_the_link_is_up)
{
	struct peer *p = peer_spawn(8, accepts, NULL);
	struct pair l = { .proc = p, .ep = down_open() };

	CHECK_EQ(sci_peer_open(l.ep, &node8, TEST_WAIT_MS, &l.to), 0);
	talk(&l);
	down_close(&l);
	peer_join(p);
}

TEST(the_link_stays_down)
{
	struct sci_peer *to;
	struct sci_req *req;
	struct sci_ep *ep;
	uint32_t word = 0;

	setenv("SCI_FAULT", "linkdown=0", 1);
	ep = test_ep_open(TEST_ID, 0);
	/* the link goes down after the endpoint has opened */
	WAIT_UNTIL(sci_connect(ep, &node8, 20, &to) == -ENETDOWN, TEST_WAIT_MS);
	CHECK_EQ(test_wait(dial(ep, &node8, 20), NULL), -ENETDOWN);
	CHECK_EQ(sci_peer_open(ep, &node8, 20, &to), 0);
	CHECK_EQ(sci_isend(to, &word, 4, &req), 0);
	CHECK_EQ(test_wait(req, NULL), -ENETDOWN);
	CHECK_EQ(sci_peer_state(to), -ENETDOWN);
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(a_dial_is_cancelled_and_made_again)
{
	struct peer *p = peer_spawn(8, opens_late, NULL);
	struct pair l = { .proc = p, .ep = test_ep_open(TEST_ID, 0) };
	struct sci_completion done;
	struct sci_req *req;

	for (unsigned int i = 0; i < 10; i++) {
		req = dial(l.ep, &node8, -1);
		CHECK_EQ(sci_req_queue(req, &l), 0);
		sci_progress(l.ep);
		CHECK_EQ(sci_cancel(req), 0);
		CHECK_EQ(sci_completions(l.ep, 0, &done, 1), 1);
		CHECK_EQ(done.status.error, -ECANCELED);
		CHECK(!done.status.peer);
	}
	peer_send(p, "open");
	l.to = dialed(dial(l.ep, &node8, -1));
	talk(&l);
	pair_close(&l);
	peer_join(p);
}

/* Connect to node 4, which gets the HELLO, but never reach its inbox. */
static void dials_in_vain(struct peer *self, void *arg)
{
	static const struct sci_addr node4 = { 4, TEST_ID };
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_req *req;

	(void)arg;
	peer_expect(self, "dial");
	unanswered_begin(ep, UNANSWERED_SEGMENTS, UINT_MAX, -ETIMEDOUT);
	req = dial(ep, &node4, -1);
	/* until this process is killed */
	CHECK_EQ(sci_wait(req, -1, NULL), 0);
}

TEST(a_peer_is_disconnected_while_it_is_dialed)
{
	struct peer *p = peer_spawn(8, dials_in_vain, NULL);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *to;
	struct sci_req *req;

	peer_send(p, "dial");
	WAIT_UNTIL((sci_progress(ep), sci_peer_find(ep, &node8, &to)) == 0,
		   TEST_WAIT_MS);
	/* another HELLO of node 8 would make a new peer */
	peer_stop(p);
	sci_progress(ep);
	req = dial(ep, &node8, -1);
	CHECK_EQ(sci_test(req, NULL), -EAGAIN);
	CHECK_EQ(sci_disconnect(to), 0);
	CHECK_EQ(test_wait(req, NULL), -ECANCELED);
	CHECK_EQ(test_ep_stats(ep).peers, 0);
	peer_kill(p, SIGKILL);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* Return the error of sci_iconnect() or of its request. */
static int outcome(struct sci_ep *ep, const struct sci_addr *addr, int timeout)
{
	struct sci_req *req;
	int ret = sci_iconnect(ep, addr, timeout, &req);

	ret = ret ? ret : test_wait(req, NULL);
	return ret == -ETIME ? -ETIMEDOUT : ret;
}

/* ---- an answer that cannot be sent at first ---- */

/* Failed answers: enough of them for the peer to repeat its HELLO. */
#define MUTE_HELLOS	10u

static struct {
	const struct sci_fabric_ops *real;
	struct sci_fabric_ops ops;
	bool hellos;			/* HELLOs fail, else doorbells */
	unsigned int left, refused;
} mute;

static int connect_bell(struct sci_fabric *f, const struct sci_rintr_param *p,
			struct sci_rintr **out)
{
	if (p->data != mute.hellos || mute.refused == mute.left)
		return mute.real->rintr.connect(f, p, out);
	mute.refused++;
	return -ETIMEDOUT;
}

static void mute_begin(struct sci_ep *ep, bool hellos, unsigned int n)
{
	mute.real = ep->ops;
	mute.ops = *ep->ops;
	mute.ops.rintr.connect = connect_bell;
	if (!hellos)
		mute.ops.ring = NULL;	/* so that a doorbell is an interrupt */
	mute.hellos = hellos;
	mute.left = n;
	use_ops(ep, &mute.ops);
}

static void mute_end(struct sci_ep *ep)
{
	CHECK_EQ(mute.refused, mute.left);
	use_ops(ep, mute.real);
}

static void calls_the_mute(struct peer *self, void *arg)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *to = test_ep_connect(ep, 4, TEST_ID);
	char c;

	(void)self;
	(void)arg;
	CHECK_EQ(sci_recv(ep, to, &c, 1, NULL), 0);
	CHECK_EQ(sci_send(to, &c, 1), 0);
	CHECK_EQ(sci_recv(ep, to, &c, 1, NULL), -ENOTCONN);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* The peer's HELLO arrives, and arrives again, before ours reaches it. */
TEST(an_opened_peer_that_is_answered_late)
{
	const struct sci_addr addr = { 8, TEST_ID };
	struct peer *p = peer_spawn(8, calls_the_mute, NULL);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *to;
	char c = 1;

	mute_begin(ep, true, MUTE_HELLOS);
	CHECK_EQ(sci_peer_open(ep, &addr, TEST_WAIT_MS, &to), 0);
	CHECK_EQ(sci_send(to, &c, 1), 0);
	CHECK_EQ(sci_recv(ep, to, &c, 1, NULL), 0);
	mute_end(ep);
	CHECK_EQ(sci_ep_close(ep), 0);
	peer_join(p);
}

/* Node 8 has our inbox, but cannot finish its side of the connection at first. */
static void answers_late(struct peer *self, void *arg)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *to;
	struct sci_status st;
	char c;

	mute_begin(ep, *(bool *)arg, 2);
	peer_send(self, "open");
	CHECK_EQ(sci_recv(ep, NULL, &c, 1, &st), 0);
	to = st.peer;
	CHECK_EQ(sci_send(to, &c, 1), 0);
	CHECK_EQ(sci_recv(ep, to, &c, 1, NULL), -ENOTCONN);
	mute_end(ep);
	CHECK_EQ(sci_ep_close(ep), 0);
}

static void open_one_that_answers_late(bool hellos)
{
	struct peer *p = peer_spawn(8, answers_late, &hellos);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *to;
	char c = 1;

	peer_expect(p, "open");
	CHECK_EQ(sci_peer_open(ep, &node8, -1, &to), 0);
	CHECK_EQ(sci_send(to, &c, 1), 0);
	CHECK_EQ(sci_recv(ep, to, &c, 1, NULL), 0);
	CHECK_EQ(sci_ep_close(ep), 0);
	peer_join(p);
}

TEST(an_opened_peer_that_gets_our_doorbell_late) { open_one_that_answers_late(false); }

TEST(an_opened_peer_whose_answer_is_late) { open_one_that_answers_late(true); }

/* ---- the peer's inbox cannot be reached at first ---- */

static void opens_too(struct peer *self, void *arg)
{
	static const struct sci_addr node4 = { 4, TEST_ID };
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *to;
	char c;

	(void)arg;
	peer_expect(self, "open");
	CHECK_EQ(sci_peer_open(ep, &node4, TEST_WAIT_MS, &to), 0);
	CHECK_EQ(sci_recv(ep, to, &c, 1, NULL), 0);
	CHECK_EQ(sci_send(to, &c, 1), 0);
	CHECK_EQ(sci_recv(ep, to, &c, 1, NULL), -ENOTCONN);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* Both sides open each other. Node 4 has the HELLO of node 8 before its inbox. */
TEST(an_opened_peer_whose_inbox_comes_late)
{
	struct peer *p = peer_spawn(8, opens_too, NULL);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *to;
	char c = 1;

	unanswered_begin(ep, UNANSWERED_SEGMENTS, 3, -ETIMEDOUT);
	unanswered.ms = 50;
	peer_send(p, "open");
	WAIT_UNTIL((sci_progress(ep), unanswered.calls) == 1, TEST_WAIT_MS);
	/* node 8 maps our inbox only after our attempts to map its own have failed */
	peer_stop(p);
	CHECK_EQ(sci_peer_open(ep, &node8, TEST_WAIT_MS, &to), 0);
	WAIT_UNTIL((sci_progress(ep), unanswered.ended), TEST_WAIT_MS);
	for (int i = 0; i < 100; i++, test_pause())
		sci_progress(ep);
	peer_continue(p);
	CHECK_EQ(sci_send(to, &c, 1), 0);
	CHECK_EQ(sci_recv(ep, to, &c, 1, NULL), 0);
	CHECK_EQ(unanswered.calls, 3);
	unanswered_end(ep);
	CHECK_EQ(sci_ep_close(ep), 0);
	peer_join(p);
}

/* ---- the peer's inbox is imported, but its fabric call has not returned ---- */

static struct {
	const struct sci_fabric_ops *real;
	struct sci_fabric_ops ops;
	unsigned int fast;		/* calls before the slow one */
	atomic_uint calls;
	atomic_bool go;
} slow;

/* One call returns when slow.go is set. Both endpoints of this process use the same fabric. */
static int connect_slowly(struct sci_fabric *f, const struct sci_rseg_param *p,
			  struct sci_rseg **out)
{
	int ret = slow.real->rseg.connect(f, p, out);

	if (atomic_fetch_add(&slow.calls, 1) == slow.fast)
		while (!atomic_load(&slow.go))
			test_pause();
	return ret;
}

static int both_progress(struct sci_ep *const ep[2])
{
	return sci_progress(ep[0]) + sci_progress(ep[1]);
}

/*
 * Two endpoints connect to each other. The connect of the first times out when the second is
 * connected already: the first gets the connection by sci_accept().
 */
TEST(a_connect_that_times_out_ends_no_connection)
{
	static const struct sci_addr addr[2] = { { 4, 1 }, { 4, 2 } };
	struct sci_ep *ep[2] = { test_ep_open(1, 0), test_ep_open(2, 0) };
	struct sci_peer *hasty, *patient;
	struct sci_status st, late;
	struct sci_req *req, *more;
	int ret = -EAGAIN;
	char c = 1;

	slow.real = ep[0]->ops;
	slow.ops = *ep[0]->ops;
	slow.ops.rseg.connect = connect_slowly;
	use_ops(ep[0], &slow.ops);
	req = dial(ep[1], &addr[0], -1);
	WAIT_UNTIL((both_progress(ep), atomic_load(&slow.calls)), TEST_WAIT_MS);
	for (int timeout = 50; ret == -EAGAIN; timeout *= 2) {
		more = dial(ep[0], &addr[1], timeout);
		while (sci_test(more, &late) == -EAGAIN)
			if (ret == -EAGAIN)
				ret = sci_test(req, &st);
		CHECK_EQ(late.error, -ETIME);
	}
	CHECK_EQ(ret, 0);
	patient = st.peer;
	sci_progress(ep[1]);
	CHECK_EQ(sci_peer_state(patient), 0);
	atomic_store(&slow.go, true);
	CHECK_EQ(sci_accept(ep[0], TEST_WAIT_MS, &hasty), 0);
	CHECK_EQ(sci_isend(hasty, &c, 1, &more), 0);
	CHECK_EQ(sci_irecv(ep[1], patient, &c, 1, &req), 0);
	WAIT_UNTIL((both_progress(ep), sci_test(req, &st)) != -EAGAIN, TEST_WAIT_MS);
	CHECK_EQ(st.error, 0);
	CHECK_EQ(test_wait(more, NULL), 0);
	use_ops(ep[0], slow.real);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(sci_ep_close(ep[i]), 0);
}

/*
 * The connect times out when the peer has imported the inbox of this endpoint, and this endpoint has
 * not imported the peer's. No later import of the peer reports the connection.
 */
TEST(a_connect_that_times_out_after_the_import_is_accepted)
{
	static const struct sci_addr addr[2] = { { 4, 1 }, { 4, 2 } };
	struct sci_ep *ep[2] = { test_ep_open(1, 0), test_ep_open(2, 0) };
	struct sci_peer *p, *from;
	struct sci_status st;
	struct sci_req *req;

	slow.real = ep[0]->ops;
	slow.ops = *ep[0]->ops;
	slow.ops.rseg.connect = connect_slowly;
	/* the peer imports first */
	slow.fast = 1;
	use_ops(ep[0], &slow.ops);
	req = dial(ep[0], &addr[1], -1);
	p = req->dial->p;
	WAIT_UNTIL((both_progress(ep), p->imported && atomic_load(&slow.calls) > 1),
		   TEST_WAIT_MS);
	req->dial->until = 0;
	WAIT_UNTIL((both_progress(ep), sci_test(req, &st)) != -EAGAIN, TEST_WAIT_MS);
	CHECK_EQ(st.error, -ETIME);
	CHECK_EQ(p->state, PEER_CONNECTING);
	atomic_store(&slow.go, true);
	CHECK_EQ(sci_accept(ep[0], TEST_WAIT_MS, &from), 0);
	CHECK_EQ((uintptr_t)from, (uintptr_t)p);
	CHECK_EQ(sci_peer_state(from), 0);
	use_ops(ep[0], slow.real);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(sci_ep_close(ep[i]), 0);
}

/* The program gets a peer from the status of a message, and closes it before sci_accept(). */
TEST(a_closed_peer_is_not_accepted)
{
	static const struct sci_addr addr = { 4, 1 };
	struct sci_ep *ep[2] = { test_ep_open(1, 0), test_ep_open(2, 0) };
	struct sci_peer *to, *p;
	struct sci_req *req;
	struct sci_status st;
	struct sci_key key;
	void *buf, *map;
	char c = 1;

	if (!(sci_ep_traits(ep[0]) & SCI_TRAIT_SHARED_MEMORY))
		SKIP("no shared memory");
	CHECK_EQ(sci_buf_alloc(ep[1], 4096, &buf), 0);
	CHECK_EQ(sci_buf_key(ep[1], buf, 4096, &key), 0);
	CHECK_EQ(sci_peer_open(ep[1], &addr, TEST_WAIT_MS, &to), 0);
	CHECK_EQ(sci_isend(to, &c, 1, &req), 0);
	WAIT_UNTIL((both_progress(ep), sci_test(req, NULL)) != -EAGAIN, TEST_WAIT_MS);
	CHECK_EQ(sci_recv(ep[0], NULL, &c, 1, &st), 0);
	slow.real = ep[0]->ops;
	slow.ops = *ep[0]->ops;
	slow.ops.rseg.connect = connect_slowly;
	use_ops(ep[0], &slow.ops);
	CHECK(sci_peer_map(st.peer, &key, 0, &map) < 0);
	WAIT_UNTIL(atomic_load(&slow.calls), TEST_WAIT_MS);
	CHECK_EQ(sci_peer_close(st.peer), 0);
	CHECK_EQ(sci_accept(ep[0], 0, &p), -ETIMEDOUT);
	atomic_store(&slow.go, true);
	use_ops(ep[0], slow.real);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(sci_ep_close(ep[i]), 0);
}

TEST(errors_are_those_of_connect)
{
	static const struct sci_addr no_node[] = { { 4096, 1 }, { 0, 1 } };
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *peer;

	for (size_t i = 0; i < ARRAY_LEN(no_node); i++) {
		int ret = sci_connect(ep, &no_node[i], TEST_WAIT_MS, &peer);

		CHECK(ret < 0 && ret != -ETIMEDOUT);
		CHECK_EQ(outcome(ep, &no_node[i], TEST_WAIT_MS), ret);
	}
	CHECK_EQ(sci_connect(ep, &nobody, 50, &peer), -ETIMEDOUT);
	CHECK_EQ(outcome(ep, &nobody, 50), -ETIMEDOUT);
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(arguments_that_make_no_sense)
{
	static const struct sci_addr bad[] = { { 4, 0 }, { 4, 0x1000000 } };
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *peer;
	struct sci_req *req;

	CHECK_EQ(sci_peer_open(NULL, &node8, 0, &peer), -EINVAL);
	CHECK_EQ(sci_peer_open(ep, NULL, 0, &peer), -EINVAL);
	CHECK_EQ(sci_peer_open(ep, &bad[0], 0, &peer), -EINVAL);
	CHECK_EQ(sci_peer_open(ep, &node8, 0, NULL), -EINVAL);
	CHECK_EQ(sci_iconnect(NULL, &node8, 0, &req), -EINVAL);
	CHECK_EQ(sci_iconnect(ep, NULL, 0, &req), -EINVAL);
	CHECK_EQ(sci_iconnect(ep, &node8, 0, NULL), -EINVAL);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_EQ(sci_iconnect(ep, &bad[i], 0, &req), -EINVAL);
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(close_with_dials_under_way)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);

	for (unsigned int i = 0; i < 10; i++)
		dial(ep, i & 1 ? &nobody : &node8, -1);
	CHECK_EQ(sci_req_queue(dial(ep, &nobody, -1), ep), 0);
	CHECK_EQ(sci_ep_close(ep), 0);
}

static int no_segment(struct sci_fabric *f, const struct sci_lseg_param *param,
		      struct sci_lseg **out)
{
	(void)f;
	(void)param;
	(void)out;
	return -EAGAIN;
}

/* The other endpoint closes during the connect, and then no memory can be locked for a new inbox. */
TEST(a_dial_that_finds_no_memory_to_begin_again)
{
	const struct sci_addr addr = { 4, 2 };
	struct sci_ep *a = test_ep_open(1, 0), *b = test_ep_open(2, 0);
	struct sci_req *req = dial(a, &addr, -1);
	struct sci_peer *p = container_of(a->peers.next, struct sci_peer, link);
	const struct sci_fabric_ops *real = a->ops;
	struct sci_fabric_ops ops = *real;

	WAIT_UNTIL((sci_progress(b), test_ep_stats(b).peers), TEST_WAIT_MS);
	CHECK_EQ(sci_ep_close(b), 0);
	WAIT_UNTIL(atomic_load(&p->events) & (PEER_LEFT | PEER_LOST), TEST_WAIT_MS);
	ops.lseg.create = no_segment;
	use_ops(a, &ops);
	CHECK_EQ(test_wait(req, NULL), -ENOMEM);
	use_ops(a, real);
	CHECK_EQ(sci_ep_close(a), 0);
}

TEST(a_child_has_no_dials)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_req *req = dial(ep, &nobody, -1), *more;
	int status;
	pid_t pid;

	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(sci_test(req, NULL) != -ENOTCONN ||
		      sci_iconnect(ep, &nobody, 0, &more) != -ENOTCONN);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(sci_cancel(req), 0);
	CHECK_EQ(test_wait(req, NULL), -ECANCELED);
	CHECK_EQ(sci_ep_close(ep), 0);
}
