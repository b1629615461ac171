// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Rings and buffers that cannot be imported at once, because the link is down
 * or the other side does not answer in time: messages that need them go later.
 * Non-blocking calls do not wait for an import.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include <sci/msg.h>

#include "selftests/harness.h"
#include "selftests/msg/peers.h"
#include "selftests/msg/unanswered.h"

#define MESSAGES	20u

/* ---- messages that need an import ---- */

struct way {
	struct config config;
	size_t len;
	bool exported;			/* the receiver's buffer is exported */
	size_t counted;			/* offset in struct sci_ep_stats */
};

static void takes(struct peer *self, void *arg)
{
	const struct way *w = arg;
	struct pair l = pair_config(self, 4, &w->config);
	void *buf = NULL;

	if (w->exported)
		CHECK_EQ(sci_buf_alloc(l.ep, w->len, &buf), 0);
	else
		buf = calloc(1, w->len);
	CHECK(buf);
	for (unsigned int i = 0; i < MESSAGES; i++) {
		struct sci_status status;

		CHECK_EQ(sci_recv(l.ep, l.to, buf, w->len, &status), 0);
		CHECK_EQ(status.len, w->len);
		CHECK_BYTES(buf, w->len, i);
	}
	pair_close(&l);
	if (!w->exported)
		free(buf);
}

static void send_all(struct pair *l, const struct way *w)
{
	unsigned char *buf = malloc(w->len);

	CHECK(buf);
	for (unsigned int i = 0; i < MESSAGES; i++) {
		struct sci_req *req;

		msg_fill(buf, w->len, i);
		CHECK_EQ(sci_isend(l->to, buf, w->len, &req), 0);
		CHECK_EQ(test_wait(req, NULL), 0);
	}
	free(buf);
}

static void check_late(struct way *w, int error, unsigned int times)
{
	struct peer *p = peer_spawn(8, takes, w);
	struct pair l = pair_config(p, 8, &w->config);
	struct sci_ep_stats stats;

	unanswered_begin(l.ep, UNANSWERED_SEGMENTS, times, error);
	/* a sleeping sender must retry the import, too */
	CHECK_EQ(sci_ep_set(l.ep, SCI_PARAM_SPIN_US, 0), 0);
	send_all(&l, w);
	CHECK_EQ(unanswered.left, 0);
	unanswered_end(l.ep);
	stats = test_ep_stats(l.ep);
	CHECK(*(const uint64_t *)((const char *)&stats + w->counted));
	pair_close(&l);
	peer_join(p);
}

static void check_way(struct way *w)
{
	check_late(w, -ETIMEDOUT, 1);
	check_late(w, -ETIMEDOUT, 5);
	check_late(w, -ENETDOWN, 100);
}

TEST(an_eager_ring_that_is_imported_late)
{
	struct way w = {
		.config = { .n = 2, .set = {
			{ SCI_PARAM_LINES_MAX, 0 },
			{ SCI_PARAM_ATTACH_AFTER, 0 },
		} },
		.len = 4096,
		.counted = offsetof(struct sci_ep_stats, sent_eager),
	};

	check_way(&w);
}

TEST(a_transfer_ring_that_is_imported_late)
{
	struct way w = {
		.config = { .n = 2, .set = {
			{ SCI_PARAM_EAGER_MAX, 4096 },
			{ SCI_PARAM_SINGLE_COPY_MIN, UINT64_MAX },
		} },
		.len = 100000,
		.counted = offsetof(struct sci_ep_stats, sent_rendezvous),
	};

	check_way(&w);
}

TEST(a_buffer_that_is_imported_late)
{
	struct way w = {
		.config = { .n = 3, .set = {
			{ SCI_PARAM_EAGER_MAX, 4096 },
			{ SCI_PARAM_ZCOPY_MIN, 8192 },
			{ SCI_PARAM_SINGLE_COPY_MIN, UINT64_MAX },
		} },
		.len = 100000,
		.exported = true,
		.counted = offsetof(struct sci_ep_stats, sent_zcopy),
	};

	check_way(&w);
}

/* ---- a peer that is stopped, and so does not answer ---- */

/* So many calls take longer than a test may, if each waits for the fabric. */
#define CALLS		200u
#define BIG		100000u

static const struct config rings_at_once = { .n = 2, .set = {
	{ SCI_PARAM_LINES_MAX, 0 },
	{ SCI_PARAM_ATTACH_AFTER, 0 },
} };

static const struct config zcopy = { .n = 2, .set = {
	{ SCI_PARAM_EAGER_MAX, 4096 },
	{ SCI_PARAM_ZCOPY_MIN, 8192 },
} };

static _Atomic bool *ready;		/* the peer can be stopped */

static struct {
	const struct sci_fabric_ops *real;
	struct sci_fabric_ops ops;
	pthread_t program;
} watch;

/* Connects wait for another process: the program's thread must not make them. */
static int watched_rseg_connect(struct sci_fabric *f,
				const struct sci_rseg_param *p,
				struct sci_rseg **out)
{
	CHECK(!pthread_equal(pthread_self(), watch.program));
	return watch.real->rseg.connect(f, p, out);
}

static int watched_rintr_connect(struct sci_fabric *f,
				 const struct sci_rintr_param *p,
				 struct sci_rintr **out)
{
	CHECK(!pthread_equal(pthread_self(), watch.program));
	return watch.real->rintr.connect(f, p, out);
}

static struct sci_ep *open_watched(void)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);

	watch.real = ep->ops;
	watch.ops = *ep->ops;
	watch.ops.rseg.connect = watched_rseg_connect;
	watch.ops.rintr.connect = watched_rintr_connect;
	watch.program = pthread_self();
	ep->ops = &watch.ops;
	ep->fabric->ops = ep->ops;
	return ep;
}

static void check_not_blocking(struct sci_req *req)
{
	for (unsigned int i = 0; i < CALLS; i++)
		CHECK_EQ(sci_test(req, NULL), -EAGAIN);
	CHECK_EQ(sci_wait(req, 100, NULL), -ETIMEDOUT);
}

static void stop_when_ready(struct peer *p)
{
	WAIT_UNTIL(atomic_load(ready), TEST_WAIT_MS);
	peer_stop(p);
}

static void makes_a_ring(struct peer *self, void *arg)
{
	struct pair l = pair_config(self, 4, &rings_at_once);
	unsigned char buf[4096];

	(void)arg;
	WAIT_UNTIL((sci_progress(l.ep), l.to->blocks_rx[RING_EAGER].size),
		   TEST_WAIT_MS);
	atomic_store(ready, true);
	CHECK_EQ(sci_recv(l.ep, l.to, buf, sizeof(buf), NULL), 0);
	CHECK_BYTES(buf, sizeof(buf), 1);
	pair_close(&l);
}

TEST(a_ring_of_a_stopped_peer)
{
	unsigned char buf[4096];
	struct sci_req *req;
	struct peer *p;
	struct pair l;

	/* on other fabrics the kernel answers */
	test_needs_shm();
	ready = test_shared(sizeof(*ready));
	p = peer_spawn(8, makes_a_ring, NULL);
	l = (struct pair){ .proc = p, .ep = open_watched() };
	CHECK_EQ(sci_ep_set(l.ep, SCI_PARAM_LINES_MAX, 0), 0);
	CHECK_EQ(sci_ep_set(l.ep, SCI_PARAM_ATTACH_AFTER, 0), 0);
	pair_join(&l, 8);
	msg_fill(buf, sizeof(buf), 1);
	CHECK_EQ(sci_isend(l.to, buf, sizeof(buf), &req), 0);
	stop_when_ready(p);
	check_not_blocking(req);
	peer_continue(p);
	CHECK_EQ(test_wait(req, NULL), 0);
	CHECK(test_ep_stats(l.ep).sent_eager);
	pair_close(&l);
	peer_join(p);
}

static void sends_a_buffer(struct peer *self, void *arg)
{
	struct pair l = pair_config(self, 4, &zcopy);
	struct sci_req *req;
	void *buf;

	(void)arg;
	CHECK_EQ(sci_buf_alloc(l.ep, BIG, &buf), 0);
	msg_fill(buf, BIG, 2);
	CHECK_EQ(sci_isend(l.to, buf, BIG, &req), 0);
	atomic_store(ready, true);
	CHECK_EQ(test_wait(req, NULL), 0);
	pair_close(&l);
}

TEST(a_buffer_of_a_stopped_peer)
{
	static unsigned char buf[BIG];
	struct sci_req *req;
	struct peer *p;
	struct pair l;

	/* on other fabrics the kernel answers */
	test_needs_shm();
	ready = test_shared(sizeof(*ready));
	p = peer_spawn(8, sends_a_buffer, NULL);
	l = (struct pair){ .proc = p, .ep = open_watched() };
	pair_join(&l, 8);
	stop_when_ready(p);
	CHECK_EQ(sci_irecv(l.ep, l.to, buf, BIG, &req), 0);
	check_not_blocking(req);
	peer_continue(p);
	CHECK_EQ(test_wait(req, NULL), 0);
	CHECK_BYTES(buf, BIG, 2);
	pair_close(&l);
	peer_join(p);
}

static void opens(struct peer *self, void *arg)
{
	struct pair l = { .proc = self, .ep = test_ep_open(TEST_ID, 0) };

	(void)arg;
	atomic_store(ready, true);
	l.to = test_ep_accept(l.ep);
	pair_close(&l);
}

TEST(a_connect_to_a_stopped_peer)
{
	const struct sci_addr addr = { 8, TEST_ID };
	struct sci_status st;
	struct sci_req *req;
	struct peer *p;
	struct pair l;

	/* on other fabrics the kernel answers */
	test_needs_shm();
	ready = test_shared(sizeof(*ready));
	p = peer_spawn(8, opens, NULL);
	l = (struct pair){ .proc = p, .ep = open_watched() };
	stop_when_ready(p);
	CHECK_EQ(sci_iconnect(l.ep, &addr, -1, &req), 0);
	check_not_blocking(req);
	peer_continue(p);
	CHECK_EQ(test_wait(req, &st), 0);
	l.to = st.peer;
	pair_close(&l);
	peer_join(p);
}

static void connects(struct peer *self, void *arg)
{
	const struct sci_addr addr = { 4, TEST_ID };
	struct pair l = { .proc = self, .ep = test_ep_open(TEST_ID, 0) };
	struct sci_status st;
	struct sci_peer *to;
	struct sci_req *req;

	(void)arg;
	CHECK_EQ(sci_iconnect(l.ep, &addr, -1, &req), 0);
	to = container_of(l.ep->peers.next, struct sci_peer, link);
	/* the HELLO has reached the port of node 4 */
	WAIT_UNTIL((sci_progress(l.ep), to->asked), TEST_WAIT_MS);
	atomic_store(ready, true);
	CHECK_EQ(test_wait(req, &st), 0);
	l.to = st.peer;
	pair_close(&l);
}

TEST(a_stopped_peer_that_connects)
{
	struct peer *p;
	struct pair l;

	/* on other fabrics the kernel answers */
	test_needs_shm();
	ready = test_shared(sizeof(*ready));
	p = peer_spawn(8, connects, NULL);
	l = (struct pair){ .proc = p, .ep = open_watched() };
	stop_when_ready(p);
	for (unsigned int i = 0; i < CALLS; i++)
		CHECK(sci_progress(l.ep) >= 0);
	CHECK_EQ(sci_accept(l.ep, 100, &l.to), -ETIMEDOUT);
	peer_continue(p);
	l.to = test_ep_accept(l.ep);
	pair_close(&l);
	peer_join(p);
}

static void connects_in_vain(struct peer *self, void *arg)
{
	const struct sci_addr addr = { 4, TEST_ID };
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_req *req;
	struct sci_peer *to;

	(void)self;
	(void)arg;
	CHECK_EQ(sci_iconnect(ep, &addr, -1, &req), 0);
	to = container_of(ep->peers.next, struct sci_peer, link);
	WAIT_UNTIL((sci_progress(ep), to->asked), TEST_WAIT_MS);
	atomic_store(ready, true);
	/* stopped here, until node 4 has closed its endpoint */
	WAIT_UNTIL((sci_progress(ep), !atomic_load(ready)), TEST_WAIT_MS);
	CHECK_EQ(sci_ep_close(ep), 0);
}

static bool call_runs(struct sci_ep *ep)
{
	bool runs;

	pthread_mutex_lock(&ep->callers.lock);
	runs = !list_empty(&ep->callers.running);
	pthread_mutex_unlock(&ep->callers.lock);
	return runs;
}

/* A close cancels the import of a stopped peer's inbox, which waits for a minute. */
TEST(a_close_during_the_call_to_a_stopped_peer)
{
	struct sci_ep *ep, *other;
	struct peer *p;

	/* on other fabrics the kernel answers */
	test_needs_shm();
	ready = test_shared(sizeof(*ready));
	p = peer_spawn(8, connects_in_vain, NULL);
	ep = test_ep_open(TEST_ID, 0);
	/* it shares the fabric, whose other connects go on */
	other = test_ep_open(TEST_ID + 1, 0);
	stop_when_ready(p);
	WAIT_UNTIL((sci_progress(ep), call_runs(ep)), TEST_WAIT_MS);
	CHECK_EQ(sci_ep_close(ep), 0);
	atomic_store(ready, false);
	peer_continue(p);
	peer_join(p);
	CHECK(test_ep_connect(other, 4, TEST_ID + 1));
	CHECK_EQ(sci_ep_close(other), 0);
}

#define STOPPED		12u		/* more than the threads that make calls */

/* Let many peers say HELLO to @ep and stop. */
static void stopped_begin(struct sci_ep *ep, struct peer *stopped[STOPPED])
{
	for (unsigned int i = 0; i < STOPPED; i++) {
		atomic_store(ready, false);
		stopped[i] = peer_spawn(8 + 4 * i, connects_in_vain, NULL);
		stop_when_ready(stopped[i]);
	}
	for (unsigned int i = 0; i < CALLS; i++)
		CHECK(sci_progress(ep) >= 0);
}

static void stopped_end(struct peer *stopped[STOPPED])
{
	atomic_store(ready, false);
	for (unsigned int i = 0; i < STOPPED; i++) {
		peer_continue(stopped[i]);
		peer_join(stopped[i]);
	}
}

/* Another peer can still connect. */
TEST(stopped_peers_do_not_hold_up_others)
{
	struct peer *stopped[STOPPED], *p;
	struct sci_ep *ep;
	struct pair l;

	/* on other fabrics the kernel answers */
	test_needs_shm();
	ep = test_ep_open(TEST_ID, 0);
	ready = test_shared(sizeof(*ready));
	stopped_begin(ep, stopped);
	p = peer_spawn(8 + 4 * STOPPED, connects, NULL);
	l = (struct pair){ .proc = p, .ep = ep };
	l.to = test_ep_accept(ep);
	pair_close(&l);
	peer_join(p);
	stopped_end(stopped);
}

#define EAGER_LEN	3000u

static void takes_eager(struct peer *self, void *arg)
{
	struct pair l = pair_open(self, 4, 0);
	char buf[EAGER_LEN];

	(void)arg;
	CHECK_EQ(sci_recv(l.ep, l.to, buf, sizeof(buf), NULL), 0);
	pair_close(&l);
}

/* A connected peer lends a ring. Its import has no thread before the other calls count as slow. */
TEST(stopped_peers_do_not_hold_up_the_import_of_a_ring)
{
	struct peer *stopped[STOPPED], *p;
	static char buf[EAGER_LEN];
	struct sci_req *req;
	struct pair l;

	/* on other fabrics the kernel answers */
	test_needs_shm();
	p = peer_spawn(8 + 4 * STOPPED, takes_eager, NULL);
	l = pair_open(p, 8 + 4 * STOPPED, 0);
	ready = test_shared(sizeof(*ready));
	stopped_begin(l.ep, stopped);
	CHECK_EQ(sci_isend(l.to, buf, sizeof(buf), &req), 0);
	CHECK_EQ(test_wait(req, NULL), 0);
	pair_close(&l);
	peer_join(p);
	stopped_end(stopped);
}
