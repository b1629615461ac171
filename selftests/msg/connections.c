// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Endpoints: identifiers, parameters, connections and refused arguments. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sci/msg.h>

#include "selftests/harness.h"
#include "selftests/msg/peers.h"
#include "selftests/msg/unanswered.h"

#define SLOW	(TEST_ASAN || TEST_TSAN)
#define CONTEXT	3u

/* Lengths that use all protocols. */
static const size_t lengths[] = {
	0, 1, 48, 49, 62, 63, 500, 5000, 20000, 70000, 1 << 20,
};

static unsigned int node_of(struct sci_peer *peer)
{
	struct sci_addr addr;

	CHECK_EQ(sci_peer_addr(peer, &addr), 0);
	CHECK_EQ(addr.id, TEST_ID);
	return addr.node;
}

/* ---- endpoints ---- */

static void taken(struct peer *self, void *arg)
{
	struct sci_ep *ep = (void *)1;

	(void)arg;
	peer_expect(self, "open");
	CHECK_EQ(sci_ep_open(&ep, 77, 0), -EEXIST);
	peer_send(self, "taken");
	peer_expect(self, "open");
	CHECK_EQ(sci_ep_open(&ep, 77, 0), 0);
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(ids_are_taken_and_given_back)
{
	struct peer *p = peer_spawn(4, taken, NULL);
	struct sci_ep *ep = test_ep_open(77, 0), *other;

	CHECK_EQ(sci_ep_open(&other, 77, 0), -EEXIST);
	peer_send(p, "open");
	peer_expect(p, "taken");
	CHECK_EQ(sci_ep_close(ep), 0);
	peer_send(p, "open");
	peer_join(p);
	CHECK_EQ(sci_ep_close(test_ep_open(77, 0)), 0);
}

/* ---- descriptors of an idle peer ---- */

#define CROWD	20u
/* on shm: one connection, for the peer's inbox and for ours */
#define PEER_FDS	1u

/* Count after progress: completed connects may still hold descriptors. */
static unsigned int crowd_fds(struct sci_ep **ep, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		sci_progress(ep[i]);
	return count_fds();
}

static void many_endpoints(struct peer *self, void *arg)
{
	_Atomic bool *counted = arg;
	struct sci_ep *ep[CROWD];
	unsigned int before;

	for (unsigned int i = 0; i < CROWD; i++)
		ep[i] = test_ep_open(TEST_ID + i, 0);
	before = count_fds();
	peer_send(self, "open");
	for (unsigned int i = 0; i < CROWD; i++)
		test_ep_accept(ep[i]);
	WAIT_UNTIL((crowd_fds(ep, CROWD), atomic_load(counted)), 2 * TEST_WAIT_MS);
	WAIT_UNTIL(crowd_fds(ep, CROWD) == before + PEER_FDS * CROWD, TEST_WAIT_MS);
	peer_send(self, "counted");
	peer_expect(self, "leave");
	for (unsigned int i = 0; i < CROWD; i++)
		CHECK_EQ(sci_ep_close(ep[i]), 0);
}

TEST(a_quiet_peer_costs_one_descriptor)
{
	_Atomic bool *counted = test_shared(sizeof(*counted));
	struct peer *p = peer_spawn(8, many_endpoints, (void *)counted);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	unsigned int before = count_fds();

	if (strcmp(sci_ep_fabric(ep), "shm"))
		SKIP("other fabrics have descriptors of their own");
	peer_expect(p, "open");
	for (unsigned int i = 0; i < CROWD; i++)
		test_ep_connect(ep, 8, TEST_ID + i);
	WAIT_UNTIL(crowd_fds(&ep, 1) == before + PEER_FDS * CROWD, TEST_WAIT_MS);
	atomic_store(counted, true);
	peer_expect(p, "counted");
	peer_send(p, "leave");
	CHECK_EQ(sci_ep_close(ep), 0);
	peer_join(p);
}

static void same_id(struct peer *self, void *arg)
{
	struct sci_ep *ep;

	(void)arg;
	peer_expect(self, "open");
	ep = test_ep_open(77, 0);
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(ids_of_different_nodes_are_different)
{
	struct peer *p = peer_spawn(8, same_id, NULL);
	struct sci_ep *ep = test_ep_open(77, 0);

	peer_send(p, "open");
	peer_join(p);
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(the_library_picks_free_ids)
{
	struct sci_ep *ep[20];
	struct sci_addr addr[20];

	for (int i = 0; i < 20; i++) {
		ep[i] = test_ep_open(i == 10 ? SCI_EP_ID_MAX : 0, 0);
		CHECK_EQ(sci_ep_addr(ep[i], &addr[i]), 0);
		CHECK_EQ(addr[i].node, 4);
		CHECK(addr[i].id >= 1 && addr[i].id <= SCI_EP_ID_MAX);
		for (int j = 0; j < i; j++)
			CHECK(addr[i].id != addr[j].id);
	}
	CHECK_EQ(addr[10].id, SCI_EP_ID_MAX);
	for (int i = 0; i < 20; i++)
		CHECK_EQ(sci_ep_close(ep[i]), 0);
}

TEST(open_refuses)
{
	struct sci_ep *ep;

	CHECK_EQ(sci_ep_open(NULL, 1, 0), -EINVAL);
	CHECK_EQ(sci_ep_open(&ep, SCI_EP_ID_MAX + 1, 0), -EINVAL);
	CHECK_EQ(sci_ep_open(&ep, UINT32_MAX, 0), -EINVAL);
	CHECK_EQ(sci_ep_open(&ep, 1, 1u << 31), -EINVAL);
	CHECK_EQ(sci_ep_open(&ep, 1, SCI_EP_WRITE_EVENTS << 1), -EINVAL);
	CHECK_EQ(sci_ep_close(NULL), -EINVAL);
	/* an unknown fabric in the environment is a bad argument */
	setenv("SCI_FABRIC", "nonesuch", 1);
	CHECK_EQ(sci_ep_open(&ep, 1, 0), -EINVAL);
}

TEST(open_and_close_leave_nothing)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *me = test_ep_connect(ep, 4, TEST_ID);

	/* the first connection allocates what the process keeps */
	CHECK_EQ(sci_send(me, "", 1), 0);
	CHECK_EQ(sci_ep_close(ep), 0);
	leak_check_begin();
	for (int i = 0; i < 10; i++) {
		ep = test_ep_open(TEST_ID, i & 1 ? SCI_EP_CRC : 0);
		test_ep_connect(ep, 4, TEST_ID);
		CHECK_EQ(sci_ep_close(ep), 0);
	}
	leak_check_end();
}

/* ---- parameters ---- */

TEST(parameters_have_names)
{
	static const char *const names[SCI_PARAMS] = {
		[SCI_PARAM_LINES_MAX] = "lines_max",
		[SCI_PARAM_EAGER_MAX] = "eager_max",
		[SCI_PARAM_EAGER_BLOCK] = "eager_block",
		[SCI_PARAM_EAGER_RING] = "eager_ring",
		[SCI_PARAM_BLOCK] = "block",
		[SCI_PARAM_XFER_RING] = "xfer_ring",
		[SCI_PARAM_RINGS_MAX] = "rings_max",
		[SCI_PARAM_ZCOPY_MIN] = "zcopy_min",
		[SCI_PARAM_SINGLE_COPY_MIN] = "single_copy_min",
		[SCI_PARAM_ATTACH_AFTER] = "attach_after",
		[SCI_PARAM_UNEXPECTED_MAX] = "unexpected_max",
		[SCI_PARAM_SPIN_US] = "spin_us",
		[SCI_PARAM_CHECK_MS] = "check_ms",
		[SCI_PARAM_FAR_EAGER_MAX] = "far_eager_max",
	};

	for (int i = 0; i < SCI_PARAMS; i++) {
		CHECK(names[i] && sci_param_name(i));
		CHECK(!strcmp(sci_param_name(i), names[i]));
	}
	CHECK(!sci_param_name(SCI_PARAMS));
	CHECK(!sci_param_name((enum sci_param)-1));
}

TEST(parameters_are_cut_to_what_is_possible)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	uint64_t v;

	for (int i = 0; i < SCI_PARAMS; i++) {
		CHECK_EQ(sci_ep_set(ep, i, UINT64_MAX), 0);
		CHECK_EQ(sci_ep_get(ep, i, &v), 0);
		/* a value that was read can be set unchanged */
		CHECK_EQ(sci_ep_set(ep, i, v), 0);
		CHECK_EQ(test_ep_get(ep, i), v);
		CHECK_EQ(sci_ep_set(ep, i, 0), 0);
		CHECK_EQ(sci_ep_get(ep, i, &v), 0);
		CHECK_EQ(sci_ep_set(ep, i, v), 0);
		CHECK_EQ(test_ep_get(ep, i), v);
	}
	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_SINGLE_COPY_MIN, UINT64_MAX), 0);
	CHECK_EQ(test_ep_get(ep, SCI_PARAM_SINGLE_COPY_MIN), UINT64_MAX);
	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_EAGER_MAX, 5000), 0);
	CHECK_EQ(test_ep_get(ep, SCI_PARAM_EAGER_MAX), 5000);
	CHECK_EQ(sci_ep_set(ep, SCI_PARAMS, 1), -EINVAL);
	CHECK_EQ(sci_ep_set(ep, (enum sci_param)-1, 1), -EINVAL);
	CHECK_EQ(sci_ep_get(ep, SCI_PARAMS, &v), -EINVAL);
	CHECK_EQ(sci_ep_get(ep, SCI_PARAM_BLOCK, NULL), -EINVAL);
	CHECK_EQ(sci_ep_set(NULL, SCI_PARAM_BLOCK, 4096), -EINVAL);
	CHECK_EQ(sci_ep_get(NULL, SCI_PARAM_BLOCK, &v), -EINVAL);
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(parameters_from_the_environment)
{
	struct sci_ep *ep;

	setenv("SCI_MSG_EAGER_MAX", "5000", 1);
	ep = test_ep_open(TEST_ID, 0);
	CHECK_EQ(test_ep_get(ep, SCI_PARAM_EAGER_MAX), 5000);
	CHECK_EQ(sci_ep_close(ep), 0);
	setenv("SCI_MSG_EAGER_MAX", "plenty", 1);
	CHECK_EQ(sci_ep_open(&ep, TEST_ID, 0), -EINVAL);
	unsetenv("SCI_MSG_EAGER_MAX");
	setenv("SCI_MSG_TABLE", "/nonexistent/table", 1);
	CHECK(sci_ep_open(&ep, TEST_ID, 0) < 0);
	unsetenv("SCI_MSG_TABLE");
	CHECK_EQ(sci_ep_close(test_ep_open(TEST_ID, 0)), 0);
}

/* ---- what is refused ---- */

static void refused_of_endpoints(struct sci_ep *ep)
{
	struct sci_addr addr = { 4, TEST_ID };
	struct sci_peer *peer;

	CHECK_EQ(sci_ep_addr(NULL, &addr), -EINVAL);
	CHECK_EQ(sci_ep_addr(ep, NULL), -EINVAL);
	CHECK(!sci_ep_fabric(NULL));
	CHECK_EQ(sci_ep_traits(NULL), 0);
	CHECK_EQ(sci_peer_gone(NULL, &peer), -EINVAL);
	CHECK_EQ(sci_peer_gone(ep, NULL), -EINVAL);
	CHECK_EQ(sci_peer_gone(ep, &peer), -ENOENT);
	CHECK_EQ(sci_connect(NULL, &addr, 0, &peer), -EINVAL);
	CHECK_EQ(sci_connect(ep, NULL, 0, &peer), -EINVAL);
	CHECK_EQ(sci_connect(ep, &addr, 0, NULL), -EINVAL);
	addr.id = 0;
	CHECK_EQ(sci_connect(ep, &addr, 0, &peer), -EINVAL);
	addr.id = SCI_EP_ID_MAX + 1;
	CHECK_EQ(sci_connect(ep, &addr, 0, &peer), -EINVAL);
	CHECK_EQ(sci_accept(NULL, 0, &peer), -EINVAL);
	CHECK_EQ(sci_accept(ep, 0, NULL), -EINVAL);
	CHECK_EQ(sci_peer_find(NULL, &addr, &peer), -EINVAL);
	CHECK_EQ(sci_peer_find(ep, NULL, &peer), -EINVAL);
	CHECK_EQ(sci_peer_find(ep, &addr, NULL), -EINVAL);
	CHECK_EQ(sci_disconnect(NULL), -EINVAL);
	CHECK_EQ(sci_peer_state(NULL), -EINVAL);
	CHECK_EQ(sci_peer_addr(NULL, &addr), -EINVAL);
	CHECK_EQ(sci_progress(NULL), -EINVAL);
	CHECK_EQ(sci_ep_fd(NULL), -EINVAL);
	CHECK_EQ(sci_ep_arm(NULL), -EINVAL);
	CHECK_EQ(sci_ep_stats(ep, NULL), -EINVAL);
}

static void refused_of_sends(struct sci_peer *to)
{
	char b = 0;
	const struct iovec bad = { NULL, 1 };
	const struct iovec wrap[2] = { { &b, SIZE_MAX }, { &b, 1 } };
	const uint32_t high = SCI_CONTEXT_MAX + 1;
	static struct iovec many[SCI_IOV_MAX + 1];
	struct sci_req *req;

	CHECK_EQ(sci_send(NULL, &b, 1), -EINVAL);
	CHECK_EQ(sci_send(to, NULL, 1), -EINVAL);
	CHECK_EQ(sci_tsend(NULL, 1, 1, &b, 1), -EINVAL);
	CHECK_EQ(sci_tsend(to, 1, 1, NULL, 1), -EINVAL);
	CHECK_EQ(sci_tsend(to, high, 1, &b, 1), -EINVAL);
	CHECK_EQ(sci_isend(NULL, &b, 1, &req), -EINVAL);
	CHECK_EQ(sci_isend(to, NULL, 1, &req), -EINVAL);
	CHECK_EQ(sci_isend(to, &b, 1, NULL), -EINVAL);
	CHECK_EQ(sci_itsend(to, high, 1, &b, 1, &req), -EINVAL);
	CHECK_EQ(sci_isendv(to, NULL, 1, 0, &req), -EINVAL);
	CHECK_EQ(sci_isendv(to, &bad, 1, 0, &req), -EINVAL);
	CHECK_EQ(sci_isendv(to, many, SCI_IOV_MAX + 1, 0, &req), -EINVAL);
	CHECK_EQ(sci_isendv(to, many, 1, SCI_SEND_SYNC << 1, &req), -EINVAL);
	CHECK_EQ(sci_isendv(to, wrap, 2, 0, &req), -EINVAL);
	CHECK_EQ(sci_itsendv(to, high, 1, many, 1, 0, &req), -EINVAL);
}

static void refused_of_receives(struct sci_ep *ep)
{
	const uint32_t high = SCI_CONTEXT_MAX + 1;
	static struct iovec many[SCI_IOV_MAX + 1];
	const struct iovec bad = { NULL, 1 };
	struct sci_req *req;
	struct sci_msg *msg;
	char b;

	CHECK_EQ(sci_recv(NULL, NULL, &b, 1, NULL), -EINVAL);
	CHECK_EQ(sci_recv(ep, NULL, NULL, 1, NULL), -EINVAL);
	CHECK_EQ(sci_trecv(ep, NULL, high, 0, 0, &b, 1, NULL), -EINVAL);
	CHECK_EQ(sci_irecv(ep, NULL, &b, 1, NULL), -EINVAL);
	CHECK_EQ(sci_irecv(ep, NULL, NULL, 1, &req), -EINVAL);
	CHECK_EQ(sci_itrecv(ep, NULL, high, 0, 0, &b, 1, &req), -EINVAL);
	CHECK_EQ(sci_irecvv(ep, NULL, NULL, 1, &req), -EINVAL);
	CHECK_EQ(sci_irecvv(ep, NULL, &bad, 1, &req), -EINVAL);
	CHECK_EQ(sci_irecvv(ep, NULL, many, SCI_IOV_MAX + 1, &req), -EINVAL);
	CHECK_EQ(sci_probe(NULL, NULL, 0, NULL), -EINVAL);
	CHECK_EQ(sci_tprobe(ep, NULL, high, 0, 0, 0, NULL), -EINVAL);
	CHECK_EQ(sci_match(ep, NULL, 0, NULL, NULL), -EINVAL);
	CHECK_EQ(sci_tmatch(ep, NULL, high, 0, 0, 0, &msg, NULL), -EINVAL);
	CHECK_EQ(sci_msg_recv(NULL, many, 1, &req), -EINVAL);
	CHECK_EQ(sci_msg_copy(NULL, 0, &b, 1), -EINVAL);
	CHECK_EQ(sci_test(NULL, NULL), -EINVAL);
	CHECK_EQ(sci_wait(NULL, 0, NULL), -EINVAL);
	CHECK_EQ(sci_waitall(NULL, 1, 0, NULL), -EINVAL);
	CHECK_EQ(sci_cancel(NULL), -EINVAL);
	sci_msg_free(NULL);
}

TEST(bad_arguments_are_refused)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0), *ep2;
	struct sci_peer *me = test_ep_connect(ep, 4, TEST_ID);
	struct sci_peer *stranger;
	struct sci_req *req;
	char b = 7;

	ep2 = test_ep_open(TEST_ID + 1, 0);
	stranger = test_ep_connect(ep2, 4, TEST_ID + 1);
	refused_of_endpoints(ep);
	refused_of_sends(me);
	refused_of_receives(ep);
	/* a connection of another endpoint */
	CHECK_EQ(sci_irecv(ep, stranger, &b, 1, &req), -EINVAL);
	/* no refused call has left anything behind */
	CHECK_EQ(sci_send(me, &b, 1), 0);
	b = 0;
	CHECK_EQ(sci_recv(ep, me, &b, 1, NULL), 0);
	CHECK_EQ(b, 7);
	CHECK_EQ(sci_probe(ep, NULL, 0, NULL), -EAGAIN);
	CHECK_EQ(sci_ep_close(ep2), 0);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* ---- one process ---- */

static void to_itself(struct sci_ep *ep, struct sci_peer *me, size_t len,
		      bool posted)
{
	struct guarded from = guarded_alloc(len, 3), to = guarded_alloc(len, 5);
	struct sci_req *req[2];
	struct sci_status st[2];

	msg_fill(from.p, len, len);
	if (posted)
		CHECK_EQ(sci_itrecv(ep, me, CONTEXT, 5, 0, to.p, len, &req[0]),
			 0);
	CHECK_EQ(sci_itsend(me, CONTEXT, 5, from.p, len, &req[1]), 0);
	if (!posted)
		CHECK_EQ(sci_itrecv(ep, NULL, CONTEXT, 5, 0, to.p, len,
				    &req[0]), 0);
	CHECK_EQ(sci_waitall(req, 2, TEST_WAIT_MS, st), 0);
	CHECK(st[0].peer == me);
	CHECK_EQ(st[0].len, len);
	CHECK_EQ(st[0].tag, 5);
	CHECK_BYTES(to.p, len, len);
	guarded_free(&from);
	guarded_free(&to);
}

static void itself(unsigned int flags, uint64_t single_copy_min)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, flags);
	struct sci_peer *me;
	char b[8] = "";

	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_SINGLE_COPY_MIN, single_copy_min),
		 0);
	me = test_ep_connect(ep, 4, TEST_ID);
	CHECK(test_ep_connect(ep, 4, TEST_ID) == me);
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		to_itself(ep, me, lengths[i], true);
		to_itself(ep, me, lengths[i], false);
	}
	CHECK_EQ(sci_send(me, "itself", 7), 0);
	CHECK_EQ(sci_recv(ep, NULL, b, sizeof(b), NULL), 0);
	CHECK(!strcmp(b, "itself"));
	/* the endpoint asked for the connection itself: there is none to accept */
	CHECK_EQ(sci_accept(ep, 0, &me), -ETIMEDOUT);
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(an_endpoint_connected_to_itself)
{
	itself(0, UINT64_MAX);
	itself(0, 1);
	itself(SCI_EP_CRC, UINT64_MAX);
	itself(SCI_EP_SINGLE_THREAD, UINT64_MAX);
}

static void *accept_one(void *ep)
{
	return test_ep_accept(ep);
}

/* Wait for @req. This thread makes progress on both endpoints. */
static void finish(struct sci_req *req, struct sci_ep *other)
{
	int ret;

	while ((ret = sci_test(req, NULL)) == -EAGAIN)
		CHECK(sci_progress(other) >= 0);
	CHECK_EQ(ret, 0);
}

static void between(struct sci_ep *a, struct sci_peer *ab, struct sci_ep *b,
		    struct sci_peer *ba, size_t len)
{
	struct guarded from = guarded_alloc(len, 0), to = guarded_alloc(len, 9);
	struct sci_req *in, *out;

	msg_fill(from.p, len, len);
	CHECK_EQ(sci_isend(ab, from.p, len, &out), 0);
	CHECK_EQ(sci_irecv(b, ba, to.p, len, &in), 0);
	finish(in, a);
	CHECK_BYTES(to.p, len, len);
	finish(out, b);
	guarded_free(&from);
	guarded_free(&to);
}

TEST(two_endpoints_in_one_process)
{
	struct sci_ep *a = test_ep_open(1, 0), *b = test_ep_open(2, 0);
	struct sci_peer *ab;
	pthread_t t;
	void *ba;

	CHECK_EQ(pthread_create(&t, NULL, accept_one, b), 0);
	ab = test_ep_connect(a, 4, 2);
	CHECK_EQ(pthread_join(t, &ba), 0);
	CHECK(sci_peer_ep(ab) == a);
	CHECK(sci_peer_ep(ba) == b);
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		between(a, ab, b, ba, lengths[i]);
		between(b, ba, a, ab, lengths[i]);
	}
	CHECK_EQ(sci_ep_close(a), 0);
	CHECK_EQ(sci_ep_close(b), 0);
}

/* ---- connections ---- */

TEST(connect_to_one_that_is_absent)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_addr addr = { 4, 99 };
	struct sci_peer *peer;
	int ret;

	CHECK_EQ(sci_connect(ep, &addr, 0, &peer), -ETIMEDOUT);
	CHECK_EQ(sci_connect(ep, &addr, 50, &peer), -ETIMEDOUT);
	CHECK_EQ(sci_peer_find(ep, &addr, &peer), -ENOENT);
	CHECK_EQ(sci_accept(ep, 0, &peer), -ETIMEDOUT);
	CHECK_EQ(sci_accept(ep, 5, &peer), -ETIMEDOUT);
	CHECK_EQ(test_ep_stats(ep).peers, 0);
	/* a node that may still appear, and a node that cannot exist */
	addr.node = 200;
	ret = sci_connect(ep, &addr, 20, &peer);
	CHECK(ret == -ETIMEDOUT || ret == -EHOSTUNREACH);
	addr.node = UINT32_MAX;
	ret = sci_connect(ep, &addr, TEST_WAIT_MS, &peer);
	CHECK(ret == -EINVAL || ret == -EHOSTUNREACH);
	CHECK_EQ(sci_ep_close(ep), 0);
}

static void opens_late(struct peer *self, void *arg)
{
	struct pair l = { .proc = self };

	(void)arg;
	peer_expect(self, "open");
	l.ep = test_ep_open(TEST_ID, 0);
	l.to = test_ep_accept(l.ep);
	pair_close(&l);
}

TEST(connect_waits_for_one_that_opens_late)
{
	struct peer *p = peer_spawn(8, opens_late, NULL);
	struct pair l = { .proc = p, .ep = test_ep_open(TEST_ID, 0) };

	peer_send(p, "open");
	l.to = test_ep_connect(l.ep, 8, TEST_ID);
	pair_close(&l);
	peer_join(p);
}

/* ---- a machine that is so busy that requests to it time out ---- */

static void connects(struct peer *self, void *arg)
{
	struct pair l = { .proc = self };

	(void)arg;
	peer_expect(self, "connect");
	l.ep = test_ep_open(TEST_ID, 0);
	l.to = test_ep_connect(l.ep, 4, TEST_ID);
	pair_close(&l);
}

/* Accept a connection while @n requests (@what: UNANSWERED_*) of node 4 time out. */
static void check_busy(unsigned int n, unsigned int what)
{
	struct peer *p = peer_spawn(8, connects, NULL);
	struct pair l = { .proc = p, .ep = test_ep_open(TEST_ID, 0) };

	unanswered_begin(l.ep, what, n, -ETIMEDOUT);
	peer_send(p, "connect");
	l.to = test_ep_accept(l.ep);
	CHECK_EQ(unanswered.left, 0);
	unanswered_end(l.ep);
	pair_close(&l);
	peer_join(p);
}

TEST(a_busy_machine_refuses_nobody)
{
	check_busy(1, UNANSWERED_SEGMENTS);
	check_busy(3, UNANSWERED_SEGMENTS);
	/* the doorbell's connect fails, then also that of the answer */
	check_busy(1, UNANSWERED_INTERRUPTS);
	check_busy(2, UNANSWERED_INTERRUPTS);
	check_busy(4, UNANSWERED_SEGMENTS | UNANSWERED_INTERRUPTS);
}

/* Retries come after 2, 4, 8 ... ms; retries each 2 ms would be 150 in 300 ms. */
TEST(who_does_not_answer_is_asked_less_and_less)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_addr addr = { 4, 99 };
	struct sci_peer *peer;

	unanswered_begin(ep, UNANSWERED_INTERRUPTS, 1000, -ETIMEDOUT);
	CHECK_EQ(sci_connect(ep, &addr, 300, &peer), -ETIMEDOUT);
	CHECK(unanswered.calls);
	CHECK(unanswered.calls < 15);
	unanswered_end(ep);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* A request blocks the endpoint: the pause after it is at least twice as long. */
TEST(who_takes_long_to_answer_is_asked_seldom)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_addr addr = { 4, 99 };
	struct sci_peer *peer;

	unanswered_begin(ep, UNANSWERED_INTERRUPTS, 1000, -ETIMEDOUT);
	unanswered.ms = 80;
	while (unanswered.calls < 3)
		CHECK_EQ(sci_connect(ep, &addr, 1000, &peer), -ETIMEDOUT);
	CHECK(unanswered.rest >= 2);
	unanswered_end(ep);
	CHECK_EQ(sci_ep_close(ep), 0);
}

static void check_peer(struct pair *l, unsigned int node)
{
	struct sci_addr addr = { node, TEST_ID };
	struct sci_peer *found = NULL;
	int mine;

	CHECK_EQ(node_of(l->to), node);
	CHECK(sci_peer_ep(l->to) == l->ep);
	CHECK_EQ(sci_peer_state(l->to), 0);
	CHECK_EQ(sci_peer_find(l->ep, &addr, &found), 0);
	CHECK(found == l->to);
	/* the accepting side finds the same connection */
	CHECK(test_ep_connect(l->ep, node, TEST_ID) == l->to);
	CHECK(!sci_peer_data(l->to));
	sci_peer_set_data(l->to, &mine);
	CHECK(sci_peer_data(found) == &mine);
	CHECK_EQ(sci_accept(l->ep, 0, &found), -ETIMEDOUT);
	CHECK_EQ(test_ep_stats(l->ep).peers, 1);
	/* a cluster of the harness is always on shm */
	CHECK(!strcmp(test_cluster(), "") ||
	      !strcmp(sci_ep_fabric(l->ep), "shm"));
	CHECK(!strcmp(test_cluster(), "") ||
	      sci_ep_traits(l->ep) == (SCI_TRAIT_FAST_READS |
				       SCI_TRAIT_REGISTER_COPIES |
				       SCI_TRAIT_SHARED_MEMORY |
				       SCI_TRAIT_VIRTUAL_NODES));
}

static void addressed(struct peer *self, void *arg)
{
	struct pair l = pair_open(self, 4, 0);

	(void)arg;
	check_peer(&l, 4);
	pair_close(&l);
}

TEST(connections_are_found_by_address)
{
	struct peer *p = peer_spawn(8, addressed, NULL);
	struct pair l = pair_open(p, 8, 0);
	struct sci_addr addr;

	CHECK_EQ(sci_ep_addr(l.ep, &addr), 0);
	CHECK_EQ(addr.node, 4);
	CHECK_EQ(addr.id, TEST_ID);
	check_peer(&l, 8);
	pair_close(&l);
	peer_join(p);
}

/* Many rounds: a connection may end during the call that began it. */
#define COMINGS	(SLOW ? 5 : 40)

/* Node 8: connect, send and leave, again and again. All messages arrive. */
static void comes_and_goes(struct peer *self, void *arg)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);

	(void)arg;
	for (int i = 0; i < COMINGS; i++) {
		struct sci_peer *to = test_ep_connect(ep, 4, TEST_ID);
		struct sci_addr addr = { 4, TEST_ID };

		for (int j = 0; j < 20; j++)
			CHECK_EQ(sci_send(to, &j, sizeof(j)), 0);
		CHECK_EQ(sci_disconnect(to), 0);
		CHECK_EQ(sci_peer_find(ep, &addr, &to), -ENOENT);
		CHECK_EQ(test_ep_stats(ep).peers, 0);
		peer_expect(self, "again");
	}
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(disconnect_and_connect_again)
{
	struct peer *p = peer_spawn(8, comes_and_goes, NULL);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_status st;

	for (int i = 0; i < COMINGS; i++) {
		struct sci_peer *from = test_ep_accept(ep);
		int got;

		for (int j = 0; j < 20; j++) {
			CHECK_EQ(sci_recv(ep, from, &got, sizeof(got), &st),
				 0);
			CHECK(st.peer == from);
			CHECK_EQ(got, j);
		}
		CHECK_EQ(sci_recv(ep, from, &got, sizeof(got), NULL),
			 -ENOTCONN);
		CHECK_EQ(sci_peer_state(from), -ENOTCONN);
		CHECK_EQ(sci_send(from, &got, sizeof(got)), -ENOTCONN);
		CHECK_EQ(node_of(from), 8);
		CHECK_EQ(sci_disconnect(from), 0);
		CHECK_EQ(test_ep_stats(ep).peers, 0);
		peer_send(p, "again");
	}
	peer_join(p);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* Both sides connect at the same moment and get one connection. */
static void meet_halfway(struct peer *proc, unsigned int node)
{
	unsigned int rounds = SLOW ? 10 : 40;
	unsigned char buf[200];

	for (unsigned int i = 1; i <= rounds; i++) {
		struct pair l = { .proc = proc, .ep = test_ep_open(i, 0) };
		struct sci_peer *none;

		peer_send(proc, "opened");
		peer_expect(proc, "opened");
		l.to = test_ep_connect(l.ep, node, i);
		msg_fill(buf, sizeof(buf), i);
		CHECK_EQ(sci_send(l.to, buf, sizeof(buf)), 0);
		memset(buf, 0, sizeof(buf));
		CHECK_EQ(sci_recv(l.ep, l.to, buf, sizeof(buf), NULL), 0);
		CHECK_BYTES(buf, sizeof(buf), i);
		CHECK_EQ(test_ep_stats(l.ep).peers, 1);
		CHECK_EQ(sci_accept(l.ep, 0, &none), -ETIMEDOUT);
		pair_close(&l);
	}
}

static void halfway(struct peer *self, void *arg)
{
	(void)arg;
	meet_halfway(self, 4);
}

TEST(both_sides_connect_at_once)
{
	struct peer *p = peer_spawn(8, halfway, NULL);

	meet_halfway(p, 8);
	peer_join(p);
}

/* ---- three nodes ---- */

enum { NODES = 3, ROUNDS = SLOW ? 22 : 60, TRIANGLE_MAX = 2 << 20 };

static const unsigned int nodes[NODES] = { 4, 8, 12 };

/* Return the offset of message @i to node @to in the sender's bytes. */
static size_t part_of(unsigned int to, unsigned int i)
{
	return to * 1000 + i * 7;
}

static void triangle_send(struct sci_peer *to, unsigned int node,
			  const unsigned char *src, struct sci_req **req)
{
	for (unsigned int i = 0; i < ROUNDS; i++)
		CHECK_EQ(sci_isend(to, src + part_of(node, i),
				   lengths[i % ARRAY_LEN(lengths)], &req[i]),
			 0);
}

static void triangle_recv(struct sci_ep *ep, unsigned int me,
			  unsigned int *count, unsigned char *dst)
{
	struct sci_status st;
	unsigned int from, i;

	CHECK_EQ(sci_recv(ep, NULL, dst, TRIANGLE_MAX, &st), 0);
	from = node_of(st.peer);
	CHECK(from != me);
	i = count[from / 4 - 1]++;
	CHECK_EQ(st.len, lengths[i % ARRAY_LEN(lengths)]);
	CHECK_EQ(msg_differs(dst, part_of(me, i), st.len, from), -1);
}

/* All nodes connect to all; each sends to both others and receives from any. */
static void triangle(unsigned int me)
{
	unsigned char *src = malloc(TRIANGLE_MAX), *dst = malloc(TRIANGLE_MAX);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	static struct sci_req *req[NODES][ROUNDS];
	unsigned int count[NODES] = { 0 };
	struct sci_peer *to[NODES];

	msg_fill(src, TRIANGLE_MAX, me);
	for (int k = 0; k < NODES; k++)
		if (nodes[k] != me)
			to[k] = test_ep_connect(ep, nodes[k], TEST_ID);
	for (int k = 0; k < NODES; k++)
		if (nodes[k] != me)
			triangle_send(to[k], nodes[k], src, req[k]);
	for (int i = 0; i < (NODES - 1) * ROUNDS; i++)
		triangle_recv(ep, me, count, dst);
	CHECK_EQ(sci_waitall(&req[0][0], NODES * ROUNDS, TEST_WAIT_MS, NULL),
		 0);
	/* the other nodes may have closed already */
	CHECK_EQ(sci_ep_close(ep), 0);
	free(src);
	free(dst);
}

static void corner(struct peer *self, void *arg)
{
	(void)self;
	triangle((unsigned int)(uintptr_t)arg);
}

TEST(three_nodes)
{
	struct peer *p[2];

	p[0] = peer_spawn(8, corner, (void *)(uintptr_t)8);
	p[1] = peer_spawn(12, corner, (void *)(uintptr_t)12);
	triangle(4);
	peer_join(p[0]);
	peer_join(p[1]);
}
