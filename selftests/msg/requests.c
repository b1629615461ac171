// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Requests: test, wait and cancel. */
#include <stdlib.h>
#include <string.h>

#include <sci/msg.h>

#include "libsci/msg/proto/proto.h"
#include "selftests/harness.h"
#include "selftests/msg/peers.h"
#include "selftests/msg/servant.h"

#define SLOW	(TEST_ASAN || TEST_TSAN)
#define CONTEXT	1u

/* A length of each protocol: short, lines, eager, rendezvous. */
static const size_t lengths[] = { 20, 300, 3000, 100000 };

static const struct config blocks = { .n = 2, .set = { BLOCKS } };

static struct sci_req *post(struct pair *l, uint64_t tag, void *buf,
			    size_t len)
{
	struct sci_req *req = NULL;

	CHECK_EQ(sci_itrecv(l->ep, NULL, CONTEXT, tag, 0, buf, len, &req), 0);
	CHECK(req);
	return req;
}

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

/* ---- test and wait ---- */

TEST(test_and_wait)
{
	struct pair l = servant_begin(&blocks);
	static unsigned char buf[100000];

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		struct sci_req *req = post(&l, i, buf, sizeof(buf));
		struct sci_status st;
		int ret;

		CHECK_EQ(sci_test(req, NULL), -EAGAIN);
		CHECK_EQ(sci_wait(req, 0, NULL), -ETIMEDOUT);
		CHECK_EQ(sci_wait(req, 2, &st), -ETIMEDOUT);
		ask(&l, i, lengths[i]);
		if (i & 1)
			CHECK_EQ(test_wait(req, &st), 0);
		else
			while ((ret = sci_test(req, &st)) != 0)
				CHECK_EQ(ret, -EAGAIN);
		CHECK(st.peer == l.to);
		CHECK_EQ(st.len, lengths[i]);
		CHECK_EQ(st.tag, i);
		CHECK_EQ(st.context, CONTEXT);
		CHECK_EQ(st.error, 0);
		CHECK_BYTES(buf, st.len, i);
	}
	servant_end(&l);
}

TEST(waitall)
{
	struct pair l = servant_begin(&blocks);
	struct sci_req *req[5];
	struct sci_status st[5];
	unsigned char buf[4][20];

	CHECK_EQ(sci_waitall(NULL, 0, -1, NULL), 0);
	for (int i = 0; i < 4; i++)
		req[i] = post(&l, i, buf[i], i == 1 ? 10 : 20);
	req[4] = NULL;
	memset(st, 0x55, sizeof(st));
	ask(&l, 0, 0);
	ask(&l, 1, 20);
	tell_finish(&l);
	/* a timeout takes no request, not even a complete one */
	CHECK_EQ(sci_waitall(req, 5, 2, st), -ETIMEDOUT);
	for (int i = 0; i < 4; i++)
		CHECK(req[i]);
	for (size_t i = 0; i < sizeof(st); i++)
		CHECK_EQ(((unsigned char *)st)[i], 0x55);
	ask(&l, 3, 7);
	ask(&l, 2, 20);
	/* the error is that of the truncated message */
	CHECK_EQ(sci_waitall(req, 5, TEST_WAIT_MS, st), -EMSGSIZE);
	for (int i = 0; i < 5; i++)
		CHECK(!req[i]);
	CHECK_EQ(st[0].len, 0);
	CHECK_EQ(st[3].len, 7);
	CHECK_EQ(st[3].error, 0);
	CHECK_BYTES(buf[3], 7, 3);
	CHECK_BYTES(buf[1], 10, 1);
	CHECK_BYTES(buf[2], 20, 2);
	/* the status of a request that is NULL is not written */
	for (size_t i = 0; i < sizeof(st[4]); i++)
		CHECK_EQ(((unsigned char *)&st[4])[i], 0x55);
	CHECK_EQ(sci_waitall(req, 5, 0, NULL), 0);
	servant_end(&l);
}

/* Each status tells how its own request ended. */
TEST(waitall_and_one_that_failed)
{
	struct pair l = servant_begin(&blocks);
	struct sci_req *req[3];
	struct sci_status st[3];
	unsigned char buf[3][20];

	for (int i = 0; i < 3; i++)
		req[i] = post(&l, i, buf[i], 20);
	CHECK_EQ(sci_cancel(req[1]), 0);
	ask(&l, 2, 21);
	ask(&l, 0, 20);
	CHECK_EQ(sci_waitall(req, 3, TEST_WAIT_MS, st), -ECANCELED);
	CHECK_EQ(st[0].error, 0);
	CHECK_EQ(st[1].error, -ECANCELED);
	CHECK_EQ(st[2].error, -EMSGSIZE);
	servant_end(&l);
}

TEST(waitany)
{
	struct pair l = servant_begin(&blocks);
	struct sci_req *req[4];
	unsigned char buf[4][20];
	struct sci_status st;
	size_t i = 99;

	for (int k = 0; k < 4; k++)
		req[k] = post(&l, k, buf[k], 20);
	CHECK_EQ(sci_waitany(req, 4, 0, &i, &st), -ETIMEDOUT);
	CHECK_EQ(i, 4);
	CHECK_EQ(sci_waitany(req, 4, 2, &i, &st), -ETIMEDOUT);
	for (size_t k = 4; k-- > 0;) {
		ask(&l, k, k == 1 ? 21 : 20);
		CHECK_EQ(sci_waitany(req, 4, TEST_WAIT_MS, &i, &st),
			 k == 1 ? -EMSGSIZE : 0);
		CHECK_EQ(i, k);
		CHECK(!req[k]);
		CHECK_EQ(st.tag, k);
		CHECK_BYTES(buf[k], 20, k);
	}
	CHECK_EQ(sci_waitany(req, 4, TEST_WAIT_MS, &i, &st), -ENOENT);
	CHECK_EQ(i, 4);
	CHECK_EQ(sci_waitany(req, 0, TEST_WAIT_MS, &i, &st), -ENOENT);
	CHECK_EQ(i, 0);
	servant_end(&l);
}

/* Call sci_testany() until a request is done; waits are tested above. */
static int test_one(struct sci_req **req, size_t *i, struct sci_status *st)
{
	int ret;

	WAIT_UNTIL((ret = sci_testany(req, 4, i, st)) != -EAGAIN, TEST_WAIT_MS);
	return ret;
}

TEST(testany)
{
	struct pair l = servant_begin(&blocks);
	struct sci_req *req[4];
	unsigned char buf[4][20];
	struct sci_status st;
	size_t i = 99;

	for (int k = 0; k < 4; k++)
		req[k] = post(&l, k, buf[k], 20);
	CHECK_EQ(sci_testany(req, 4, &i, &st), -EAGAIN);
	CHECK_EQ(i, 4);
	for (size_t k = 4; k-- > 0;) {
		ask(&l, k, k == 1 ? 21 : 20);
		CHECK_EQ(test_one(req, &i, &st), k == 1 ? -EMSGSIZE : 0);
		CHECK_EQ(i, k);
		CHECK(!req[k]);
		CHECK_EQ(st.tag, k);
		CHECK_BYTES(buf[k], 20, k);
	}
	CHECK_EQ(sci_testany(req, 4, &i, &st), -ENOENT);
	CHECK_EQ(i, 4);
	CHECK_EQ(sci_testany(NULL, 4, &i, &st), -EINVAL);
	CHECK_EQ(sci_testany(req, 4, NULL, &st), -EINVAL);
	servant_end(&l);
}

TEST(testsome)
{
	struct pair l = servant_begin(&blocks);
	struct sci_req *req[5] = { NULL };
	unsigned char buf[5][20];
	struct sci_status st[5];
	size_t i[5], all = 0;

	for (int k = 1; k < 5; k++)
		req[k] = post(&l, k, buf[k], 20);
	CHECK_EQ(sci_testsome(req, 5, i, st), -EAGAIN);
	/* two requests are done before the call */
	CHECK_EQ(sci_cancel(req[3]), 0);
	ask(&l, 1, 21);
	WAIT_UNTIL((sci_progress(l.ep), atomic_load(&req[1]->done)),
		   TEST_WAIT_MS);
	CHECK_EQ(sci_testsome(req, 5, i, st), 2);
	CHECK_EQ(i[0], 1);
	CHECK_EQ(st[0].error, -EMSGSIZE);
	CHECK_EQ(st[0].tag, 1);
	CHECK_EQ(i[1], 3);
	CHECK_EQ(st[1].error, -ECANCELED);
	CHECK(!req[1] && !req[3] && req[2] && req[4]);
	ask(&l, 4, 20);
	ask(&l, 2, 20);
	while (all < 2) {
		int n;

		WAIT_UNTIL((n = sci_testsome(req, 5, i, st)) != -EAGAIN,
			   TEST_WAIT_MS);
		CHECK(n == 1 || n == 2);
		for (int k = 0; k < n; k++) {
			CHECK_EQ(st[k].error, 0);
			CHECK_EQ(st[k].tag, i[k]);
			CHECK_BYTES(buf[i[k]], 20, i[k]);
		}
		all += (size_t)n;
	}
	CHECK_EQ(sci_testsome(req, 5, i, st), -ENOENT);
	CHECK_EQ(sci_testsome(NULL, 5, i, st), -EINVAL);
	CHECK_EQ(sci_testsome(req, 5, NULL, st), -EINVAL);
	CHECK_EQ(sci_testsome(req, 5, i, NULL), -EINVAL);
	servant_end(&l);
}

/* ---- two endpoints of one process, which both make progress ---- */

#define PROGRESS_BOTH(t, cond)						\
	WAIT_UNTIL((sci_progress((t)->ep[0]), sci_progress((t)->ep[1]),	\
		    (cond)), TEST_WAIT_MS)
#define TWO_DONE(t)							\
	PROGRESS_BOTH(t, atomic_load(&(t)->req[0]->done) &&		\
			 atomic_load(&(t)->req[1]->done))

struct two {
	struct sci_ep *ep[2];
	struct sci_peer *to;		/* connection from ep[0] to ep[1] */
	struct sci_req *req[2];		/* a send of ep[0], a receive of ep[1] */
	unsigned char *out, *in;
	size_t len;
};

static struct two two_open(const struct config *c, size_t len)
{
	struct two t = { .len = len };
	struct sci_addr addr = { 4, TEST_ID + 1 };

	for (unsigned int i = 0; i < 2; i++)
		t.ep[i] = test_ep_config(TEST_ID + i, c);
	CHECK_EQ(sci_peer_open(t.ep[0], &addr, -1, &t.to), 0);
	/* an exchange completes the connection on both sides */
	CHECK_EQ(sci_isend(t.to, NULL, 0, &t.req[0]), 0);
	CHECK_EQ(sci_irecv(t.ep[1], NULL, NULL, 0, &t.req[1]), 0);
	TWO_DONE(&t);
	for (unsigned int i = 0; i < 2; i++)
		CHECK_EQ(sci_test(t.req[i], NULL), 0);
	t.out = malloc(len);
	t.in = calloc(1, len);
	msg_fill(t.out, len, 1);
	return t;
}

static void two_close(struct two *t)
{
	CHECK_EQ(sci_ep_close(t->ep[0]), 0);
	CHECK_EQ(sci_ep_close(t->ep[1]), 0);
	free(t->out);
	free(t->in);
}

static const struct sci_fabric_ops *real_ops;

static int no_segment(struct sci_fabric *f, const struct sci_lseg_param *param,
		      struct sci_lseg **out)
{
	(void)f;
	(void)param;
	(void)out;
	return -EAGAIN;
}

/*
 * The receiver cannot create its ring, with an error that means "not yet"
 * elsewhere. Both requests must end with another error.
 */
TEST(no_request_ends_with_not_yet)
{
	struct two t = two_open(&blocks, 100000);
	struct sci_fabric_ops ops = *t.ep[1]->ops;

	real_ops = t.ep[1]->ops;
	ops.lseg.create = no_segment;
	t.ep[1]->ops = &ops;
	t.ep[1]->fabric->ops = t.ep[1]->ops;
	CHECK_EQ(sci_irecv(t.ep[1], NULL, t.in, t.len, &t.req[1]), 0);
	CHECK_EQ(sci_isend(t.to, t.out, t.len, &t.req[0]), 0);
	TWO_DONE(&t);
	CHECK_EQ(sci_test(t.req[0], NULL), -ENOMEM);
	CHECK_EQ(sci_test(t.req[1], NULL), -ENOMEM);
	t.ep[1]->ops = real_ops;
	t.ep[1]->fabric->ops = t.ep[1]->ops;
	two_close(&t);
}

/* ---- a completed request whose peer the program closes ---- */

static void check_closed_source(int (*close)(struct sci_peer *peer))
{
	const struct sci_addr sender = { 4, TEST_ID };
	struct two t = two_open(&blocks, 20);
	struct sci_peer *from;
	struct sci_status st;

	CHECK_EQ(sci_peer_find(t.ep[1], &sender, &from), 0);
	CHECK_EQ(sci_irecv(t.ep[1], NULL, t.in, t.len, &t.req[1]), 0);
	CHECK_EQ(sci_isend(t.to, t.out, t.len, &t.req[0]), 0);
	TWO_DONE(&t);
	CHECK_EQ(close(from), 0);
	CHECK_EQ(sci_test(t.req[1], &st), 0);
	CHECK(!st.peer);
	CHECK_EQ(st.len, t.len);
	CHECK_BYTES(t.in, t.len, 1);
	CHECK_EQ(sci_test(t.req[0], &st), 0);
	CHECK(st.peer == t.to);
	two_close(&t);
}

TEST(a_status_names_no_peer_that_was_disconnected)
{
	check_closed_source(sci_disconnect);
}

TEST(a_status_names_no_peer_that_was_closed)
{
	check_closed_source(sci_peer_close);
}

static _Thread_local bool held;		/* this thread sleeps until @closed, also after a wake-up */
static _Atomic bool asleep, closed;

/* Replace poll() in this program and in the library. */
int poll(struct pollfd *fds, nfds_t n, int ms)
{
	const struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };
	int ret;

	if (held)
		atomic_store(&asleep, true);
	ret = ppoll(fds, n, ms < 0 ? NULL : &t, NULL);
	if (held)
		WAIT_UNTIL(atomic_load(&closed), TEST_WAIT_MS);
	return ret;
}

static void *receives(void *arg)
{
	struct two *t = arg;
	struct sci_status st;

	held = true;
	CHECK_EQ(sci_recv(t->ep[1], NULL, t->in, t->len, &st), 0);
	held = false;
	CHECK(!st.peer);
	CHECK_EQ(st.len, t->len);
	CHECK_BYTES(t->in, t->len, 1);
	return NULL;
}

static void check_closed_source_of_sleeper(int (*close)(struct sci_peer *peer))
{
	const struct sci_addr sender = { 4, TEST_ID };
	struct two t = two_open(&blocks, 20);
	uint64_t before = test_ep_stats(t.ep[1]).received;
	struct sci_peer *from;
	pthread_t thread;

	CHECK_EQ(sci_ep_set(t.ep[1], SCI_PARAM_SPIN_US, 0), 0);
	CHECK_EQ(sci_peer_find(t.ep[1], &sender, &from), 0);
	CHECK_EQ(pthread_create(&thread, NULL, receives, &t), 0);
	WAIT_UNTIL(atomic_load(&asleep), TEST_WAIT_MS);
	CHECK_EQ(sci_send(t.to, t.out, t.len), 0);
	WAIT_UNTIL((sci_progress(t.ep[1]), test_ep_stats(t.ep[1]).received > before),
		   TEST_WAIT_MS);
	CHECK_EQ(close(from), 0);
	atomic_store(&closed, true);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	two_close(&t);
}

TEST(a_blocking_receive_names_no_peer_that_was_disconnected)
{
	check_closed_source_of_sleeper(sci_disconnect);
}

TEST(a_blocking_receive_names_no_peer_that_was_closed)
{
	check_closed_source_of_sleeper(sci_peer_close);
}

/* A failed receive names its peer, of which the program learns only now. */
TEST(a_status_names_a_peer_that_has_ended_amid_its_first_message)
{
	const struct sci_addr addr = { 4, TEST_ID + 1 };
	static unsigned char out[100000], in[100000];
	struct sci_req *req[2];
	struct sci_peer *to, *gone;
	struct sci_status st;
	struct sci_ep *ep[2];
	int ret;

	for (unsigned int i = 0; i < 2; i++)
		ep[i] = test_ep_config(TEST_ID + i, &blocks);
	CHECK_EQ(sci_peer_open(ep[0], &addr, -1, &to), 0);
	CHECK_EQ(sci_isend(to, out, sizeof(out), &req[0]), 0);
	CHECK_EQ(sci_irecv(ep[1], NULL, in, sizeof(in), &req[1]), 0);
	WAIT_UNTIL((sci_progress(ep[0]), sci_progress(ep[1]), req[1]->state == MSG_HANDSHAKE),
		   TEST_WAIT_MS);
	CHECK_EQ(sci_ep_close(ep[0]), 0);
	while ((ret = sci_test(req[1], &st)) == -EAGAIN)
		;
	CHECK_EQ(ret, -ENOTCONN);
	CHECK(st.peer);
	CHECK_EQ(sci_peer_gone(ep[1], &gone), 0);
	CHECK(gone == st.peer);
	CHECK_EQ(sci_disconnect(gone), 0);
	CHECK_EQ(sci_ep_close(ep[1]), 0);
}

/* ---- cancel ---- */

TEST(cancel_receives)
{
	struct pair l = servant_begin(&blocks);
	unsigned char buf[5][20];
	struct sci_req *req[5];
	struct sci_status st;

	for (int i = 0; i < 5; i++) {
		memset(buf[i], GUARD, sizeof(buf[i]));
		req[i] = post(&l, 7, buf[i], 20);
	}
	/* first, middle and last */
	for (int i = 0; i < 5; i += 2) {
		CHECK_EQ(sci_cancel(req[i]), 0);
		CHECK_EQ(sci_wait(req[i], 0, &st), -ECANCELED);
		CHECK_EQ(st.error, -ECANCELED);
	}
	for (unsigned int i = 0; i < 3; i++)
		tell_send(&l, &(struct work){ .tagged = 1, .tag = 7,
					      .context = CONTEXT, .len = 20,
					      .seed = i });
	CHECK_EQ(test_wait(req[1], NULL), 0);
	CHECK_EQ(test_wait(req[3], NULL), 0);
	CHECK_BYTES(buf[1], 20, 0);
	CHECK_BYTES(buf[3], 20, 1);
	for (int i = 0; i < 5; i += 2)
		for (int k = 0; k < 20; k++)
			CHECK(buf[i][k] == GUARD);
	/* the third message waits for another receive */
	CHECK_EQ(sci_trecv(l.ep, NULL, CONTEXT, 7, 0, buf[0], 20, NULL), 0);
	CHECK_BYTES(buf[0], 20, 2);
	servant_end(&l);
}

TEST(cancel_comes_too_late)
{
	struct pair l = servant_begin(&blocks);
	unsigned char buf[20];
	struct sci_status st;
	struct sci_req *req;

	req = post(&l, 1, buf, 20);
	ask(&l, 1, 20);
	ask(&l, 2, 0);
	arrived(&l, 2);		/* message 1 has arrived before it */
	CHECK_EQ(sci_cancel(req), -EBUSY);
	CHECK_EQ(sci_test(req, &st), 0);
	CHECK_EQ(st.len, 20);
	CHECK_BYTES(buf, 20, 1);
	servant_end(&l);
}

/* A matched rendezvous may still be under way: it cannot be cancelled. */
TEST(cancel_a_long_one_that_is_matched)
{
	struct pair l = servant_begin(&blocks);
	static unsigned char buf[100000];
	struct sci_req *req;

	ask(&l, 1, sizeof(buf));
	arrived(&l, 1);
	req = post(&l, 1, buf, sizeof(buf));
	CHECK_EQ(sci_cancel(req), -EBUSY);
	CHECK_EQ(test_wait(req, NULL), 0);
	CHECK_BYTES(buf, sizeof(buf), 1);
	servant_end(&l);
}

#define QUEUED_LEN	4000u

/* Send until a message has to wait. Return the number of messages before it. */
static uint64_t send_until_stuck(struct pair *l, unsigned char *buf,
				 struct sci_req **stuck)
{
	for (uint64_t i = 0; i < 100000; i++) {
		int ret;

		msg_fill(buf, QUEUED_LEN, i);
		CHECK_EQ(sci_itsend(l->to, CONTEXT, i, buf, QUEUED_LEN,
				    stuck), 0);
		ret = sci_test(*stuck, NULL);
		if (ret == -EAGAIN)
			return i;
		CHECK_EQ(ret, 0);
	}
	FAIL("a node that is in no call took 400 MB");
}

TEST(cancel_a_send_that_is_queued)
{
	static const struct config c = {
		.n = 2, .set = { { SCI_PARAM_EAGER_MAX, 8192 },
				 { SCI_PARAM_EAGER_RING, 65536 } }
	};
	struct pair l = servant_begin(&c);
	unsigned char buf[QUEUED_LEN], none[100] = "", last[20];
	struct sci_req *stuck, *queued, *behind;
	uint64_t n;

	tell_pause(&l);
	/* part of the first waiting message may have gone, nothing of the others */
	n = send_until_stuck(&l, buf, &stuck) + 1;
	CHECK_EQ(sci_itsend(l.to, CONTEXT, n, none, sizeof(none), &queued), 0);
	msg_fill(last, sizeof(last), n);
	CHECK_EQ(sci_itsend(l.to, CONTEXT, n, last, sizeof(last), &behind),
		 0);
	CHECK_EQ(sci_cancel(queued), 0);
	CHECK_EQ(test_wait(queued, NULL), -ECANCELED);
	peer_send(l.proc, "go on");
	for (uint64_t i = 0; i < n; i++)
		tell_recv(&l, &(struct work){ .tagged = 1, .tag = i,
					      .context = CONTEXT, .seed = i,
					      .len = QUEUED_LEN });
	/* the cancelled message, which had the same tag, does not arrive */
	tell_recv(&l, &(struct work){ .tagged = 1, .context = CONTEXT,
				      .tag = n, .seed = n,
				      .len = sizeof(last) });
	CHECK_EQ(test_wait(stuck, NULL), 0);
	CHECK_EQ(test_wait(behind, NULL), 0);
	tell_finish(&l);
	servant_end(&l);
}

/* ---- many requests ---- */

#define MANY	(SLOW ? 1000u : 10000u)

TEST(thousands_of_receives)
{
	struct pair l = servant_begin(&blocks);
	unsigned char (*buf)[32] = malloc(MANY * 32);
	struct sci_req **req = malloc(MANY * sizeof(*req));

	for (uint64_t i = 0; i < MANY; i++)
		req[i] = post(&l, i, buf[i], 32);
	/* 7919 is prime: each message comes once, in another order */
	for (uint64_t i = 0; i < MANY; i++)
		ask(&l, i * 7919 % MANY, 32);
	CHECK_EQ(sci_waitall(req, MANY, TEST_WAIT_MS, NULL), 0);
	for (uint64_t i = 0; i < MANY; i++)
		CHECK_BYTES(buf[i], 32, i);
	free(buf);
	free(req);
	servant_end(&l);
}

/* Send to a peer that makes no calls. */
TEST(thousands_of_sends)
{
	struct pair l = servant_begin(&blocks);
	unsigned char (*buf)[100] = malloc(MANY * 100);
	struct sci_req **req = malloc(MANY * sizeof(*req));

	tell_pause(&l);
	for (uint64_t i = 0; i < MANY; i++) {
		msg_fill(buf[i], 100, i);
		CHECK_EQ(sci_itsend(l.to, CONTEXT, i, buf[i], 100, &req[i]),
			 0);
	}
	peer_send(l.proc, "go on");
	CHECK_EQ(sci_waitall(req, MANY, TEST_WAIT_MS, NULL), 0);
	for (uint64_t i = 0; i < MANY; i += 100)
		tell_recv(&l, &(struct work){ .tagged = 1, .tag = i,
					      .context = CONTEXT, .seed = i,
					      .len = 100 });
	tell_finish(&l);
	free(buf);
	free(req);
	servant_end(&l);
}

/* ---- sends that wait for their receive ---- */

static void sync_send(struct pair *l, uint64_t tag, size_t len)
{
	struct work w = { .tagged = 1, .context = CONTEXT, .tag = tag,
			  .len = len, .seed = tag };
	struct iovec iov = { malloc(len), len };
	struct sci_status st;
	struct sci_req *req;

	msg_fill(iov.iov_base, len, tag);
	CHECK_EQ(sci_itsendv(l->to, CONTEXT, tag, &iov, 1, SCI_SEND_SYNC,
			     &req), 0);
	/* the servant has answered, so it has seen the message */
	tell_finish(l);
	tell_finish(l);
	CHECK_EQ(sci_test(req, NULL), -EAGAIN);
	tell_recv(l, &w);
	CHECK_EQ(test_wait(req, &st), 0);
	CHECK_EQ(st.len, len);
	CHECK(st.peer == l->to);
	free(iov.iov_base);
}

TEST(synchronous_sends)
{
	struct pair l = servant_begin(&blocks);
	char b = 1;

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
		sync_send(&l, i, lengths[i]);
	/* other sends do not wait */
	CHECK_EQ(sci_tsend(l.to, CONTEXT, 99, &b, 1), 0);
	tell_finish(&l);
	servant_end(&l);
}

/* Post each receive before the peer sends. */
static void waits_first(struct peer *self, void *arg)
{
	struct pair l = pair_config(self, 4, arg);
	static unsigned char buf[100000];

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		struct sci_req *req = post(&l, i, buf, sizeof(buf));

		pair_meet(&l);
		CHECK_EQ(test_wait(req, NULL), 0);
		CHECK_BYTES(buf, lengths[i], i);
	}
	pair_close(&l);
}

TEST(synchronous_sends_to_one_who_waits)
{
	struct peer *p = peer_spawn(8, waits_first,
				    (void *)(uintptr_t)&blocks);
	struct pair l = pair_config(p, 8, &blocks);
	static unsigned char buf[100000];

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		struct iovec iov = { buf, lengths[i] };
		struct sci_req *req;

		msg_fill(buf, lengths[i], i);
		pair_meet(&l);
		CHECK_EQ(sci_itsendv(l.to, CONTEXT, i, &iov, 1, SCI_SEND_SYNC,
				     &req), 0);
		CHECK_EQ(test_wait(req, NULL), 0);
	}
	pair_close(&l);
	peer_join(p);
}

/* ---- ends with requests under way ---- */

static void post_everything(struct pair *l, unsigned char *buf,
			    struct sci_req **req)
{
	for (uint64_t i = 0; i < 10; i++)
		req[i] = post(l, i, buf, 100);
	CHECK_EQ(sci_irecv(l->ep, l->to, buf, 100, &req[10]), 0);
	for (uint64_t i = 11; i < 16; i++)
		CHECK_EQ(sci_itsend(l->to, CONTEXT, i, buf, 100000, &req[i]),
			 0);
}

TEST(close_with_requests_under_way)
{
	struct pair l = servant_begin(&blocks);
	unsigned char *buf = calloc(1, 100000);
	struct sci_req *req[16];
	struct sci_msg *msg;

	ask(&l, 50, 100000);
	ask(&l, 51, 100000);
	arrived(&l, 51);
	/* one message is matched, one is still queued */
	CHECK_EQ(sci_tmatch(l.ep, NULL, CONTEXT, 50, 0, 0, &msg, NULL), 0);
	post_everything(&l, buf, req);
	tell(&l, &(struct work){ 0 }, WORK_LEAVE);
	pair_meet(&l);
	CHECK_EQ(sci_ep_close(l.ep), 0);
	free(buf);
	peer_join(l.proc);
}

static void sees_the_end(struct peer *self, void *arg)
{
	struct pair l = pair_config(self, 4, &blocks);
	unsigned char *buf = calloc(1, 100000);
	struct sci_req *req[3];

	(void)arg;
	req[0] = post(&l, 1, buf, 100);
	CHECK_EQ(sci_cancel(req[0]), 0);
	CHECK_EQ(test_wait(req[0], NULL), -ECANCELED);
	CHECK_EQ(sci_irecv(l.ep, l.to, buf, 100, &req[0]), 0);
	CHECK_EQ(sci_isend(l.to, buf, 100000, &req[1]), 0);
	CHECK_EQ(sci_itrecv(l.ep, l.to, CONTEXT, 1, 1, buf, 9, &req[2]), 0);
	pair_meet(&l);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(test_wait(req[i], NULL), -ENOTCONN);
	CHECK_EQ(sci_peer_state(l.to), -ENOTCONN);
	CHECK_EQ(sci_disconnect(l.to), 0);
	CHECK_EQ(sci_ep_close(l.ep), 0);
	free(buf);
}

TEST(disconnect_with_requests_under_way)
{
	struct peer *p = peer_spawn(8, sees_the_end, NULL);
	struct pair l = pair_config(p, 8, &blocks);
	unsigned char *buf = calloc(1, 100000);
	struct sci_req *req[3];

	CHECK_EQ(sci_itrecv(l.ep, l.to, CONTEXT, 1, 0, buf, 100, &req[0]),
		 0);
	CHECK_EQ(sci_itsend(l.to, CONTEXT + 1, 1, buf, 100000, &req[1]), 0);
	CHECK_EQ(sci_itrecv(l.ep, NULL, CONTEXT, 1, 0, buf, 100, &req[2]), 0);
	pair_meet(&l);
	CHECK_EQ(sci_disconnect(l.to), 0);
	CHECK_EQ(test_wait(req[0], NULL), -ECANCELED);
	CHECK_EQ(test_wait(req[1], NULL), -ECANCELED);
	/* another peer may still match this receive */
	CHECK_EQ(sci_test(req[2], NULL), -EAGAIN);
	CHECK_EQ(sci_cancel(req[2]), 0);
	CHECK_EQ(test_wait(req[2], NULL), -ECANCELED);
	peer_join(p);
	CHECK_EQ(sci_ep_close(l.ep), 0);
	free(buf);
}

/* A synchronous send does not complete before all bytes are in the receive's buffer. */
static void check_delivery(const struct config *c, size_t len)
{
	struct two t = two_open(c, len);
	struct iovec iov = { t.out, len };
	struct sci_status st;

	CHECK_EQ(sci_irecv(t.ep[1], NULL, t.in, len, &t.req[1]), 0);
	CHECK_EQ(sci_isendv(t.to, &iov, 1, SCI_SEND_SYNC, &t.req[0]), 0);
	WAIT_UNTIL(({
		/* all that the sender can do, then one step of the receiver */
		for (unsigned int i = 0; i < 10; i++)
			sci_progress(t.ep[0]);
		if (atomic_load(&t.req[0]->done))
			CHECK_BYTES(t.in, len, 1);
		sci_progress(t.ep[1]);
		atomic_load(&t.req[0]->done);
	}), TEST_WAIT_MS);
	CHECK_EQ(sci_test(t.req[0], NULL), 0);
	CHECK_EQ(test_wait(t.req[1], &st), 0);
	CHECK_EQ(st.len, len);
	CHECK_EQ(test_ep_stats(t.ep[0]).sent_rendezvous, 1);
	two_close(&t);
}

TEST(a_synchronous_send_is_delivered)
{
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
		check_delivery(&blocks, lengths[i]);
	check_delivery(&blocks, 1 << 20);
}
