// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * fork() in a process that has endpoints: they stay the parent's.  In the child
 * every call on them returns -ENOTCONN.  The child disturbs nothing, keeps
 * nothing alive, and may open endpoints of its own.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "selftests/msg/traffic.h"

#define LONG_LEN	(1u << 20)
#define BUF_LEN		65536u

/* ---- an endpoint with one of everything ---- */

struct world {
	struct sci_ep *ep;
	struct sci_peer *to;
	struct sci_req *recv, *send;	/* pending */
	struct sci_msg *msg, *part;	/* msg: complete; part: no byte is here */
	void *exported;
	void *registered;
	struct sci_key key;		/* of @exported */
	unsigned char *long_buf;
	struct meeting *meeting;
};

enum { TAG_PENDING = 1, TAG_SHORT, TAG_LONG, TAG_NEVER, TAG_END };

static void world_peer(struct peer *self, void *arg)
{
	static unsigned char got[LONG_LEN];
	unsigned char *buf = malloc(LONG_LEN);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *to = test_ep_connect(ep, 4, TEST_ID);
	struct sci_req *req;

	(void)self;
	msg_fill(buf, LONG_LEN, TAG_LONG);
	CHECK_EQ(sci_send(to, "hello", 5), 0);
	CHECK_EQ(sci_itsend(to, 0, TAG_LONG, buf, LONG_LEN, &req), 0);
	meet(ep, arg, 2);
	/* the parent has forked and goes on */
	meet(ep, arg, 2);
	CHECK_EQ(sci_tsend(to, 0, TAG_PENDING, "pending", 7), 0);
	CHECK_EQ(sci_trecv(ep, to, 0, TAG_NEVER, 0, got, LONG_LEN, NULL), 0);
	CHECK_BYTES(got, LONG_LEN, TAG_NEVER);
	CHECK_EQ(test_wait(req, NULL), 0);
	meet(ep, arg, 2);
	CHECK_EQ(sci_ep_close(ep), 0);
	free(buf);
}

static void world_open(struct world *w)
{
	static char pending[16];

	w->ep = test_ep_open(TEST_ID, 0);
	CHECK_EQ(sci_ep_set(w->ep, SCI_PARAM_SINGLE_COPY_MIN, UINT64_MAX), 0);
	w->to = test_ep_accept(w->ep);
	w->long_buf = malloc(LONG_LEN);
	msg_fill(w->long_buf, LONG_LEN, TAG_NEVER);
	CHECK_EQ(sci_itrecv(w->ep, w->to, 0, TAG_PENDING, 0, pending,
			    sizeof(pending), &w->recv), 0);
	CHECK_EQ(sci_itsend(w->to, 0, TAG_NEVER, w->long_buf, LONG_LEN,
			    &w->send), 0);
	CHECK_EQ(sci_match(w->ep, NULL, TEST_WAIT_MS, &w->msg, NULL), 0);
	CHECK_EQ(sci_tmatch(w->ep, NULL, 0, TAG_LONG, 0, TEST_WAIT_MS,
			    &w->part, NULL), 0);
	CHECK_EQ(sci_buf_alloc(w->ep, BUF_LEN, &w->exported), 0);
	memset(w->exported, 0x5a, BUF_LEN);
	CHECK_EQ(sci_buf_key(w->ep, w->exported, BUF_LEN, &w->key), 0);
	meet(w->ep, w->meeting, 2);
}

/* Check that all objects of the parent work as before. */
static void world_check(struct world *w)
{
	unsigned char *buf = malloc(LONG_LEN);
	struct iovec iov = { buf, LONG_LEN };
	struct sci_status st;
	struct sci_req *req;
	char hello[5];

	meet(w->ep, w->meeting, 2);
	CHECK_EQ(sci_peer_state(w->to), 0);
	CHECK_EQ(test_wait(w->recv, &st), 0);
	CHECK_EQ(st.len, 7);
	CHECK_EQ(test_wait(w->send, NULL), 0);
	CHECK_EQ(sci_msg_copy(w->msg, 0, hello, 5), 0);
	CHECK(!memcmp(hello, "hello", 5));
	sci_msg_free(w->msg);
	CHECK_EQ(sci_msg_recv(w->part, &iov, 1, &req), 0);
	CHECK_EQ(test_wait(req, &st), 0);
	CHECK_EQ(st.len, LONG_LEN);
	CHECK_BYTES(buf, LONG_LEN, TAG_LONG);
	for (unsigned int i = 0; i < BUF_LEN; i++)
		CHECK_EQ(((unsigned char *)w->exported)[i], 0x5a);
	CHECK_EQ(sci_buf_free(w->ep, w->exported), 0);
	meet(w->ep, w->meeting, 2);
	CHECK_EQ(sci_ep_close(w->ep), 0);
	free(w->long_buf);
	free(buf);
}

/* ---- children ---- */

static pid_t fork_child(void)
{
	pid_t parent = getpid(), pid = test_fork();

	CHECK(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	return pid;
}

static void reap(pid_t pid, int want)
{
	int status;
	pid_t got = 0;

	WAIT_UNTIL((got = waitpid(pid, &status, WNOHANG)), TEST_WAIT_MS);
	CHECK_EQ(got, pid);
	CHECK_EQ(status, want);
}

/* Reap the child while the parent makes progress. */
static void reap_with_progress(struct sci_ep *ep, pid_t pid)
{
	int status;
	pid_t got = 0;

	PROGRESS_UNTIL(ep, (got = waitpid(pid, &status, WNOHANG)),
		       2 * TEST_WAIT_MS);
	CHECK_EQ(got, pid);
	CHECK_EQ(status, 0);
}

TEST(the_child_has_no_descriptors)
{
	unsigned int fds = count_fds();
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	pid_t pid;

	CHECK(sci_ep_fd(ep) >= 0);
	pid = test_fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(count_fds() != fds);
	reap(pid, 0);
	CHECK(sci_ep_fd(ep) >= 0);
	CHECK_EQ(sci_ep_close(ep), 0);
	CHECK_EQ(count_fds(), fds);
}

static void handler(void *arg, const struct sci_handled *m)
{
	(void)arg;
	(void)m;
}

static int never(void *arg)
{
	(void)arg;
	return 0;
}

static void check_ep_calls(struct world *w)
{
	struct sci_ep_stats stats = { .size = sizeof(stats) };
	struct sci_addr addr = { 8, TEST_ID };
	struct sci_completion done;
	struct sci_peer *peer;
	struct sci_req *req;
	struct sci_key key;
	uint64_t value;
	void *buf;

	CHECK_EQ(sci_ep_addr(w->ep, &addr), -ENOTCONN);
	CHECK_EQ(sci_ep_set(w->ep, SCI_PARAM_SPIN_US, 1), -ENOTCONN);
	CHECK_EQ(sci_ep_get(w->ep, SCI_PARAM_SPIN_US, &value), -ENOTCONN);
	CHECK_EQ(sci_ep_stats(w->ep, &stats), -ENOTCONN);
	CHECK_EQ(sci_connect(w->ep, &addr, 0, &peer), -ENOTCONN);
	CHECK_EQ(sci_accept(w->ep, 0, &peer), -ENOTCONN);
	CHECK_EQ(sci_iconnect(w->ep, &addr, 0, &req), -ENOTCONN);
	CHECK_EQ(sci_peer_open(w->ep, &addr, 0, &peer), -ENOTCONN);
	CHECK_EQ(sci_peer_find(w->ep, &addr, &peer), -ENOTCONN);
	CHECK_EQ(sci_peer_gone(w->ep, &peer), -ENOTCONN);
	CHECK_EQ(sci_buf_alloc(w->ep, BUF_LEN, &buf), -ENOTCONN);
	CHECK_EQ(sci_buf_free(w->ep, w->exported), -ENOTCONN);
	CHECK_EQ(sci_buf_register(w->ep, w->registered, BUF_LEN), -ENOTCONN);
	CHECK_EQ(sci_buf_unregister(w->ep, w->registered, BUF_LEN), -ENOTCONN);
	CHECK_EQ(sci_buf_key(w->ep, w->exported, BUF_LEN, &key), -ENOTCONN);
	CHECK_EQ(sci_completions(w->ep, 0, &done, 1), -ENOTCONN);
	CHECK_EQ(sci_handler_set(w->ep, SCI_HANDLER_USER, handler, NULL), -ENOTCONN);
	CHECK_EQ(sci_wait_until(w->ep, never, NULL, 0), -ENOTCONN);
	CHECK_EQ(sci_progress(w->ep), -ENOTCONN);
	CHECK_EQ(sci_ep_fd(w->ep), -ENOTCONN);
	CHECK_EQ(sci_ep_arm(w->ep), -ENOTCONN);
}

static void check_peer_calls(struct world *w)
{
	struct sci_addr addr;
	struct sci_req *req;
	struct iovec iov = { &addr, sizeof(addr) };
	struct sci_send send = { .iov = &iov, .n = 1 };
	uint64_t value;

	CHECK_EQ(sci_peer_state(w->to), -ENOTCONN);
	CHECK_EQ(sci_peer_addr(w->to, &addr), -ENOTCONN);
	CHECK_EQ(sci_send(w->to, "x", 1), -ENOTCONN);
	CHECK_EQ(sci_tsend(w->to, 0, 9, "x", 1), -ENOTCONN);
	CHECK_EQ(sci_send(w->to, w->long_buf, LONG_LEN), -ENOTCONN);
	CHECK_EQ(sci_isend(w->to, "x", 1, &req), -ENOTCONN);
	CHECK_EQ(sci_itsend(w->to, 0, 9, "x", 1, &req), -ENOTCONN);
	CHECK_EQ(sci_isendv(w->to, &iov, 1, 0, &req), -ENOTCONN);
	CHECK_EQ(sci_itsendv(w->to, 0, 9, &iov, 1, 0, &req), -ENOTCONN);
	CHECK_EQ(sci_isendm(w->to, &send, &req), -ENOTCONN);
	CHECK_EQ(sci_try_send(w->to, "x", 1), -ENOTCONN);
	CHECK_EQ(sci_try_tsend(w->to, 0, 9, NULL, "x", 1), -ENOTCONN);
	CHECK_EQ(sci_handler_send(w->to, SCI_HANDLER_USER, 0, "x", 1), -ENOTCONN);
	CHECK_EQ(sci_handler_sendv(w->to, SCI_HANDLER_USER, 0, &iov, 1), -ENOTCONN);
	CHECK_EQ(sci_peer_set(w->to, SCI_PARAM_SPIN_US, 1), -ENOTCONN);
	CHECK_EQ(sci_peer_get(w->to, SCI_PARAM_SPIN_US, &value), -ENOTCONN);
	CHECK_EQ(sci_disconnect(w->to), -ENOTCONN);
	CHECK_EQ(sci_peer_close(w->to), -ENOTCONN);
}

static void check_onesided_calls(struct world *w)
{
	char c[8];
	struct iovec iov = { c, sizeof(c) };
	struct sci_rmw rmw = { SCI_RMW_ADD, SCI_RMW_UINT64, 1, 0 };
	struct sci_write_signal signal = { w->key, 8, rmw };
	struct sci_strided s = { .buf = c, .buf_stride = 4, .stride = 4, .len = 4, .n = 2 };
	struct sci_key *key = &w->key;
	struct sci_req *req;
	void *addr;

	CHECK_EQ(sci_iwritev(w->to, key, 0, &iov, 1, &req), -ENOTCONN);
	CHECK_EQ(sci_ireadv(w->to, key, 0, &iov, 1, &req), -ENOTCONN);
	CHECK_EQ(sci_iwrite_strided(w->to, key, &s, &req), -ENOTCONN);
	CHECK_EQ(sci_iread_strided(w->to, key, &s, &req), -ENOTCONN);
	CHECK_EQ(sci_write(w->to, key, 0, c, 8), -ENOTCONN);
	CHECK_EQ(sci_read(w->to, key, 0, c, 8), -ENOTCONN);
	CHECK_EQ(sci_irmw(w->to, key, 0, &rmw, NULL, &req), -ENOTCONN);
	CHECK_EQ(sci_rmw(w->to, key, 0, &rmw, c), -ENOTCONN);
	CHECK_EQ(sci_iwrite_signal(w->to, key, 0, &iov, 1, &signal, &req), -ENOTCONN);
	CHECK_EQ(sci_iwrite_imm(w->to, key, 0, &iov, 1, 1, &req), -ENOTCONN);
	CHECK_EQ(sci_write_imm(w->to, key, 0, c, 8, 1), -ENOTCONN);
	CHECK_EQ(sci_flush(w->to, 0), -ENOTCONN);
	CHECK_EQ(sci_peer_map(w->to, key, 0, &addr), -ENOTCONN);
	CHECK_EQ(sci_peer_unmap(w->to, w->exported), -ENOTCONN);
	CHECK_EQ(sci_peer_read_private(w->to, c, (uintptr_t)c, 8), -ENOTCONN);
}

static void check_recv_calls(struct world *w)
{
	struct sci_status st;
	struct sci_msg *msg;
	struct sci_req *req;
	const void *data;
	char c[8];
	struct iovec iov = { c, sizeof(c) };
	struct sci_try_recv try = { .buf = c, .size = sizeof(c) };

	CHECK_EQ(sci_recv(w->ep, NULL, c, 8, &st), -ENOTCONN);
	CHECK_EQ(sci_trecv(w->ep, w->to, 0, 0, 0, c, 8, &st), -ENOTCONN);
	CHECK_EQ(sci_irecv(w->ep, w->to, c, 8, &req), -ENOTCONN);
	CHECK_EQ(sci_itrecv(w->ep, NULL, 0, 0, 0, c, 8, &req), -ENOTCONN);
	CHECK_EQ(sci_irecvv(w->ep, NULL, &iov, 1, &req), -ENOTCONN);
	CHECK_EQ(sci_itrecvv(w->ep, NULL, 0, 0, 0, &iov, 1, &req), -ENOTCONN);
	CHECK_EQ(sci_irecv_many(w->ep, NULL, c, 8, 1, NULL, &req), -ENOTCONN);
	CHECK_EQ(sci_try_recvs(w->ep, NULL, &try, 1), -ENOTCONN);
	CHECK_EQ(sci_try_trecvs(w->ep, NULL, 0, &try, 1), -ENOTCONN);
	CHECK_EQ(sci_probe(w->ep, NULL, 0, &st), -ENOTCONN);
	CHECK_EQ(sci_tprobe(w->ep, NULL, 0, 0, 0, 0, &st), -ENOTCONN);
	CHECK_EQ(sci_match(w->ep, NULL, -1, &msg, &st), -ENOTCONN);
	CHECK_EQ(sci_tmatch(w->ep, NULL, 0, 0, 0, -1, &msg, &st), -ENOTCONN);
	CHECK_EQ(sci_msg_copy(w->msg, 0, c, 1), -ENOTCONN);
	CHECK_EQ(sci_msg_copy(w->part, 0, c, 1), -ENOTCONN);
	CHECK_EQ(sci_msg_data(w->msg, &data), -ENOTCONN);
	CHECK_EQ(sci_msg_recv(w->part, &iov, 1, &req), -ENOTCONN);
	sci_msg_free(w->part);
}

static void check_req_calls(struct world *w)
{
	struct sci_req *reqs[2] = { w->recv, w->send };
	struct sci_status st[2];
	size_t index, indices[2];

	CHECK_EQ(sci_cancel(w->recv), -ENOTCONN);
	CHECK_EQ(sci_test(w->recv, st), -ENOTCONN);
	CHECK_EQ(sci_wait(w->send, -1, st), -ENOTCONN);
	CHECK_EQ(sci_req_queue(w->recv, NULL), -ENOTCONN);
	CHECK_EQ(sci_testany(reqs, 2, &index, st), -ENOTCONN);
	CHECK_EQ(sci_testsome(reqs, 2, indices, st), -ENOTCONN);
	CHECK_EQ(sci_waitany(reqs, 2, -1, &index, st), -ENOTCONN);
	reqs[0] = w->recv;
	reqs[1] = w->send;
	CHECK_EQ(sci_waitall(reqs, 2, -1, st), -ENOTCONN);
}

static void check_has_nothing(struct world *w)
{
	check_ep_calls(w);
	check_peer_calls(w);
	check_onesided_calls(w);
	check_recv_calls(w);
	check_req_calls(w);
	CHECK_EQ(sci_ep_close(w->ep), -ENOTCONN);
}

static struct peer *world_begin(struct world *w)
{
	struct peer *p;

	*w = (struct world){ .meeting = test_shared(sizeof(struct meeting)) };
	w->registered = aligned_alloc(BUF_LEN, BUF_LEN);
	p = peer_spawn(8, world_peer, w->meeting);
	world_open(w);
	return p;
}

TEST(the_child_has_nothing)
{
	struct world w;
	struct peer *p = world_begin(&w);
	pid_t pid = fork_child();

	if (!pid) {
		check_has_nothing(&w);
		_exit(0);
	}
	reap(pid, 0);
	world_check(&w);
	peer_join(p);
	free(w.registered);
}

/* ---- the parent's endpoint survives the end of a child ---- */

static void check_child_end(void (*end)(void), int status)
{
	struct world w;
	struct peer *p = world_begin(&w);
	pid_t pid = fork_child();

	if (!pid)
		end();
	reap(pid, status);
	world_check(&w);
	peer_join(p);
	free(w.registered);
}

static void end_by_exit(void)
{
	exit(0);
}

static void end_by_kill(void)
{
	raise(SIGKILL);
}

static void end_by_exec(void)
{
	execl("/bin/true", "true", (char *)NULL);
	_exit(1);
}

TEST(the_child_exits)
{
	check_child_end(end_by_exit, 0);
}

TEST(the_child_is_killed)
{
	check_child_end(end_by_kill, SIGKILL);
}

TEST(the_child_runs_a_program)
{
	check_child_end(end_by_exec, 0);
}

/* ---- forks in the midst of traffic ---- */

#define MESSAGES	(600u / TRAFFIC_SLOW)

static void busy_flows(struct traffic *t, struct sci_peer *peer, bool first)
{
	for (unsigned int k = 0; k < 4; k++)
		traffic_flow(t, (struct flow) {
			.peer = peer, .seed = 5, .stream = k / 2,
			.source = k & 1 ? 8 : 4, .dest = k & 1 ? 4 : 8,
			.sends = (k & 1) != first, .ways = WAY_ALL,
			.limit = MESSAGES,
		});
}

static void busy_peer(struct peer *self, void *arg)
{
	static struct traffic t;

	(void)self;
	t.ep = test_ep_open(TEST_ID, 0);
	traffic_params(t.ep, WAY_ALL);
	busy_flows(&t, test_ep_connect(t.ep, 4, TEST_ID), false);
	traffic_run(&t);
	traffic_free(&t);
	meet(t.ep, arg, 2);
	CHECK_EQ(sci_ep_close(t.ep), 0);
}

/* Make calls on the parent's endpoint, then end. */
__attribute__((noreturn))
static void meddle(struct traffic *t, unsigned int how)
{
	struct sci_req *req;
	char c[100] = "";

	for (int i = 0; i < 20; i++) {
		CHECK_EQ(sci_progress(t->ep), -ENOTCONN);
		CHECK_EQ(sci_isend(t->flow[0].peer, c, sizeof(c), &req),
			 -ENOTCONN);
	}
	if (how % 3 == 0)
		CHECK_EQ(sci_disconnect(t->flow[0].peer), -ENOTCONN);
	if (how % 3 == 1)
		CHECK_EQ(sci_ep_close(t->ep), -ENOTCONN);
	if (how % 2)
		exit(0);
	_exit(0);
}

TEST(children_of_a_busy_parent)
{
	static struct traffic t;
	struct meeting *m = test_shared(sizeof(*m));
	struct peer *p = peer_spawn(8, busy_peer, m);
	unsigned int forks = 0;
	pid_t pid = 0;

	t.ep = test_ep_open(TEST_ID, 0);
	traffic_params(t.ep, WAY_ALL);
	busy_flows(&t, test_ep_accept(t.ep), true);
	while (traffic_step(&t, TEST_WAIT_MS)) {
		if (pid && waitpid(pid, NULL, WNOHANG) == pid)
			pid = 0;
		if (pid || traffic_done(&t) % 16)
			continue;
		pid = fork_child();
		if (!pid)
			meddle(&t, forks);
		forks++;
	}
	CHECK_EQ(traffic_done(&t), 4 * MESSAGES);
	CHECK(forks > 0);
	test_note("%u children", forks);
	if (pid)
		reap(pid, 0);
	traffic_free(&t);
	meet(t.ep, m, 2);
	CHECK_EQ(sci_ep_close(t.ep), 0);
	peer_join(p);
}

static void says_nothing(struct peer *self, void *arg)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);

	(void)arg;
	peer_send(self, "open");
	peer_expect(self, "done");
	CHECK_EQ(sci_ep_close(ep), 0);
}

/*
 * The child lacks the thread that waits for the peer's answer, but must still
 * refer to its import: the address sanitizer looks for leaks when the child
 * exits.
 */
TEST(a_child_while_the_peer_says_nothing)
{
	struct peer *p = peer_spawn(8, says_nothing, NULL);
	struct sci_addr addr = { 8, TEST_ID };
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *to;
	pid_t pid;

	peer_expect(p, "open");
	peer_stop(p);
	CHECK_EQ(sci_connect(ep, &addr, 20, &to), -ETIMEDOUT);
	pid = fork_child();
	if (!pid)
		exit(0);
	reap(pid, 0);
	peer_continue(p);
	CHECK_EQ(sci_ep_close(ep), 0);
	peer_send(p, "done");
	peer_join(p);
}

/* ---- the child as a node ---- */

static void child_node(const char *node, struct world *w)
{
	struct sci_ep *ep, *old = w->ep;
	struct sci_status st;
	struct sci_addr addr;
	struct sci_peer *to;
	char buf[16];

	setenv("SCI_NODE", node, 1);
	ep = test_ep_open(7, 0);
	CHECK_EQ(sci_ep_addr(ep, &addr), 0);
	CHECK_EQ(addr.node, atoi(node));
	to = test_ep_connect(ep, 4, TEST_ID);
	CHECK_EQ(sci_tsend(to, 3, 3, "child", 5), 0);
	CHECK_EQ(sci_recv(ep, to, buf, sizeof(buf), &st), 0);
	CHECK(st.len == 6 && !memcmp(buf, "parent", 6));
	/* the child's own endpoint does not bring back the parent's */
	CHECK_EQ(sci_progress(old), -ENOTCONN);
	CHECK_EQ(sci_send(w->to, "x", 1), -ENOTCONN);
	CHECK_EQ(sci_ep_close(ep), 0);
}

static void check_child_node(const char *node)
{
	struct sci_status st;
	struct world w;
	struct peer *p;
	char buf[16];
	pid_t pid;

	if (TEST_TSAN)
		SKIP("the thread sanitizer allows no threads in the child");
	p = world_begin(&w);
	pid = fork_child();
	if (!pid) {
		child_node(node, &w);
		_exit(0);
	}
	CHECK_EQ(sci_trecv(w.ep, NULL, 3, 3, 0, buf, sizeof(buf), &st), 0);
	CHECK(st.len == 5 && !memcmp(buf, "child", 5));
	CHECK_EQ(sci_send(st.peer, "parent", 6), 0);
	reap_with_progress(w.ep, pid);
	world_check(&w);
	peer_join(p);
	free(w.registered);
}

TEST(the_child_becomes_another_node)
{
	check_child_node("12");
}

TEST(the_child_becomes_the_same_node)
{
	check_child_node("4");
}

/* ---- the parent ends, the child lives ---- */

struct family {
	_Atomic pid_t child;
	_Atomic bool leave;
};

static void parent_of_one(struct peer *self, void *arg)
{
	struct family *f = arg;
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *to = test_ep_connect(ep, 4, TEST_ID);
	static unsigned char buf[LONG_LEN];
	struct sci_req *req;
	pid_t pid;

	(void)self;
	CHECK_EQ(sci_isend(to, buf, LONG_LEN, &req), 0);
	CHECK_EQ(sci_isend(to, "x", 1, &req), 0);
	pid = test_fork();
	CHECK(pid >= 0);
	if (!pid) {
		/* the child outlives the parent; the test kills it */
		atomic_store(&f->child, getpid());
		for (;;)
			pause();
	}
	while (!atomic_load(&f->leave)) {
		test_progress(ep);
		test_pause();
	}
	CHECK_EQ(sci_ep_close(ep), 0);
}

static void check_parent_goes(bool killed)
{
	struct family *f = test_shared(sizeof(*f));
	struct peer *p = peer_spawn(8, parent_of_one, f);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	int want = killed ? -ECONNRESET : -ENOTCONN;
	struct sci_peer *from;
	struct sci_req *req;
	char c;

	from = test_ep_accept(ep);
	PROGRESS_UNTIL(ep, atomic_load(&f->child), TEST_WAIT_MS);
	CHECK_EQ(sci_itrecv(ep, from, 0, 0, 0, &c, 1, &req), 0);
	CHECK_EQ(sci_test(req, NULL), -EAGAIN);
	if (killed)
		peer_kill(p, SIGKILL);
	atomic_store(&f->leave, true);
	CHECK_EQ(sci_wait(req, NOTICE_MS, NULL), want);
	CHECK_EQ(sci_peer_state(from), want);
	CHECK_EQ(sci_send(from, "x", 1), want);
	CHECK_EQ(kill(atomic_load(&f->child), 0), 0);
	CHECK_EQ(sci_disconnect(from), 0);
	if (!killed)
		peer_join(p);
	/* the child does not keep the endpoint's address in use */
	CHECK_EQ(sci_connect(ep, &(struct sci_addr){ 8, TEST_ID }, 100, &from),
		 -ETIMEDOUT);
	CHECK_EQ(kill(atomic_load(&f->child), SIGKILL), 0);
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(the_parent_dies_and_the_child_lives)
{
	check_parent_goes(true);
}

TEST(the_parent_closes_and_the_child_lives)
{
	check_parent_goes(false);
}
