// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Links whose sockets break.  A relay between the two nodes cuts, stalls and
 * truncates connections; messages arrive once and in order, or their sender
 * gets an error.
 *
 * Silent networks and stopped processes take 20 s in all: they last for longer than the time limits.
 */
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "selftests/msg/peers.h"

#define MESSAGES	(TEST_TSAN || TEST_ASAN ? 300u : 1500u)
#define MESSAGE_MAX	100000u

/* ---- the relay ---- */

/* Behaviour of the relay, shared with its process. */
struct relay {
	uint16_t port;			/* port of the relay */
	uint16_t target;		/* port of node 4 */
	_Atomic unsigned int cut_after;	/* bytes, on average; 0: never */
	_Atomic bool stalled;		/* bytes wait, and connections stay open */
	_Atomic bool closed;		/* all connections are cut */
	_Atomic unsigned int cuts;
	_Atomic unsigned int connections;
	_Atomic uint64_t bytes;
};

#define PAIRS_MAX	32

struct relay_pair {
	int fd[2];
	uint64_t left;			/* bytes until the cut */
};

static int tcp_socket(uint16_t *port)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(*port),
	};
	socklen_t len = sizeof(a);
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
	CHECK_EQ(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	*port = ntohs(a.sin_port);
	return fd;
}

static int tcp_connect(uint16_t port)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(port),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	if (!connect(fd, (struct sockaddr *)&a, sizeof(a)))
		return fd;
	close(fd);
	return -1;
}

/* Cut a connection, every other time with a reset, which loses bytes under way. */
static void relay_cut(struct relay *r, struct relay_pair *p)
{
	const struct linger hard = { .l_onoff = 1 };

	for (int i = 0; i < 2; i++) {
		if (atomic_load(&r->cuts) % 2)
			setsockopt(p->fd[i], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
		close(p->fd[i]);
		p->fd[i] = -1;
	}
	atomic_fetch_add(&r->cuts, 1);
}

static void relay_limit(struct relay *r, struct relay_pair *p, uint64_t *state)
{
	unsigned int after = atomic_load(&r->cut_after);

	p->left = after ? 1 + msg_random(state, 2 * after) : UINT64_MAX;
}

static void relay_move(struct relay *r, struct relay_pair *p, int from)
{
	char buf[4096];
	size_t room = p->left < sizeof(buf) ? (size_t)p->left : sizeof(buf);
	ssize_t n = recv(p->fd[from], buf, room, MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n > 0 && send(p->fd[!from], buf, (size_t)n, MSG_NOSIGNAL) == n) {
		atomic_fetch_add(&r->bytes, (uint64_t)n);
		p->left -= (uint64_t)n;
		if (p->left)
			return;
	}
	relay_cut(r, p);
}

static void relay_accept(struct relay *r, int listener, struct relay_pair *p,
			 uint64_t *state)
{
	p->fd[0] = accept(listener, NULL, NULL);
	if (p->fd[0] < 0)
		return;
	p->fd[1] = tcp_connect(r->target);
	if (p->fd[1] < 0) {
		close(p->fd[0]);
		p->fd[0] = -1;
		return;
	}
	atomic_fetch_add(&r->connections, 1);
	relay_limit(r, p, state);
}

__attribute__((noreturn))
static void relay_run(struct relay *r, int listener)
{
	struct relay_pair pairs[PAIRS_MAX];
	uint64_t state = 4711;

	memset(pairs, 0xff, sizeof(pairs));
	for (;;) {
		struct pollfd fds[2 * PAIRS_MAX + 1];
		int free_pair = -1;

		for (int i = 0; i < PAIRS_MAX; i++) {
			if (pairs[i].fd[0] < 0)
				free_pair = i;
			else if (atomic_load(&r->closed))
				relay_cut(r, &pairs[i]);
			for (int k = 0; k < 2; k++)
				fds[2 * i + k] = (struct pollfd){ pairs[i].fd[k], POLLIN, 0 };
		}
		fds[2 * PAIRS_MAX] = (struct pollfd){ listener, POLLIN, 0 };
		if (atomic_load(&r->stalled)) {
			poll(NULL, 0, 5);
			continue;
		}
		poll(fds, 2 * PAIRS_MAX + 1, 5);
		for (int i = 0; i < 2 * PAIRS_MAX; i++)
			if (fds[i].revents && pairs[i / 2].fd[0] >= 0)
				relay_move(r, &pairs[i / 2], i % 2);
		if (fds[2 * PAIRS_MAX].revents && free_pair >= 0)
			relay_accept(r, listener, &pairs[free_pair], &state);
	}
}

static struct relay *relay;
static pid_t relay_pid;

/* Start the relay, before the first call of the library. */
static void relay_start(void)
{
	int listener, spare;

	relay = test_shared(sizeof(*relay));
	spare = tcp_socket(&relay->target);
	listener = tcp_socket(&relay->port);
	CHECK_EQ(listen(listener, 64), 0);
	relay_pid = fork();
	CHECK(relay_pid >= 0);
	if (!relay_pid) {
		close(spare);
		relay_run(relay, listener);
	}
	close(listener);
	close(spare);
}

/* Node 4 listens behind the relay; node 8 does not listen. */
static void be_behind_relay(unsigned int node, const char *retry)
{
	char text[64];

	test_use_net("tcp", node);
	snprintf(text, sizeof(text), "tcp:127.0.0.1:%u+1", relay->target);
	setenv("SCI_NET", node == 4 ? text : "tcp", 1);
	snprintf(text, sizeof(text), "4=127.0.0.1:%u+1", relay->port);
	setenv("SCI_NET_PEERS", text, 1);
	setenv("SCI_NET_RETRY", retry, 1);
}

/* ---- traffic ---- */

static void (*half_way)(void);		/* called during a message of traffic(); or NULL */

/* Exchange numbered messages of all lengths. */
static void traffic(struct pair *l, uint64_t seed)
{
	unsigned char *out = malloc(MESSAGE_MAX), *in = malloc(MESSAGE_MAX);
	uint64_t state = 99;

	CHECK(out && in);
	for (unsigned int i = 0; i < MESSAGES; i++) {
		size_t len = msg_random(&state, i % 8 ? 300 : MESSAGE_MAX);
		struct sci_req *reqs[2];
		struct sci_status st[2];

		msg_fill(out, len, seed + i);
		CHECK_EQ(sci_itsend(l->to, 7, i, out, len, &reqs[0]), 0);
		if (half_way && i == MESSAGES / 2)
			half_way();
		CHECK_EQ(sci_itrecv(l->ep, l->to, 7, i, 0, in, MESSAGE_MAX, &reqs[1]), 0);
		CHECK_EQ(sci_waitall(reqs, 2, TEST_WAIT_MS, st), 0);
		CHECK_EQ(st[1].len, len);
		CHECK_BYTES(in, len, seed + i);
	}
	free(out);
	free(in);
}

static void client(struct peer *proc, void *arg)
{
	struct pair l = { .proc = proc };

	be_behind_relay(8, arg);
	l.ep = test_ep_open(TEST_ID, 0);
	l.to = test_ep_connect(l.ep, 4, TEST_ID);
	traffic(&l, 1);
	pair_meet(&l);
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

TEST(connections_are_cut_again_and_again)
{
	struct pair l;
	struct peer *p;

	relay_start();
	atomic_store(&relay->cut_after, 200000);
	p = peer_spawn(8, client, (void *)(uintptr_t)"10");
	be_behind_relay(4, "10");
	l.proc = p;
	l.ep = test_ep_open(TEST_ID, 0);
	l.to = test_ep_accept(l.ep);
	traffic(&l, 1);
	pair_meet(&l);
	test_note("%u connections, %u cut, %llu bytes", atomic_load(&relay->connections),
		  atomic_load(&relay->cuts), (unsigned long long)atomic_load(&relay->bytes));
	CHECK(atomic_load(&relay->cuts) > 5);
	CHECK_EQ(sci_ep_close(l.ep), 0);
	peer_join(p);
}

/* ---- several ways to a node ---- */

/* Node 8 reaches node 4 through the relay, or else at its own port. */
static void client_of_two_ways(struct peer *proc, void *arg)
{
	struct pair l = { .proc = proc };
	char text[96];

	be_behind_relay(8, arg);
	snprintf(text, sizeof(text), "4=127.0.0.1:%u+1,4=127.0.0.1:%u+1", relay->port,
		 relay->target);
	setenv("SCI_NET_PEERS", text, 1);
	/* if node 4 does not listen yet, the relay refuses, and the other way is the first */
	peer_expect(proc, "node 4 listens");
	l.ep = test_ep_open(TEST_ID, 0);
	l.to = test_ep_connect(l.ep, 4, TEST_ID);
	traffic(&l, 1);
	pair_close(&l);
}

static void two_ways(void (*fail)(void))
{
	struct pair l;

	relay_start();
	l.proc = peer_spawn(8, client_of_two_ways, (void *)(uintptr_t)"10");
	be_behind_relay(4, "10");
	l.ep = test_ep_open(TEST_ID, 0);
	peer_send(l.proc, "node 4 listens");
	l.to = test_ep_accept(l.ep);
	half_way = fail;
	traffic(&l, 1);
	CHECK_EQ(atomic_load(&relay->connections), 1);
	pair_close(&l);
	peer_join(l.proc);
}

static void relay_stall(void)
{
	atomic_store(&relay->stalled, true);
}

TEST(another_way_takes_over_from_a_silent_one)
{
	two_ways(relay_stall);
}

static void relay_kill(void)
{
	CHECK_EQ(kill(relay_pid, SIGKILL), 0);
}

TEST(another_way_takes_over_from_a_refused_one)
{
	two_ways(relay_kill);
}

/* ---- the end of a link ---- */

static void quiet_client(struct peer *proc, void *arg)
{
	struct pair l = { .proc = proc };
	char c;

	be_behind_relay(8, arg);
	l.ep = test_ep_open(TEST_ID, 0);
	l.to = test_ep_connect(l.ep, 4, TEST_ID);
	CHECK_EQ(sci_send(l.to, "x", 1), 0);
	/* until the other side dies, or this process is killed */
	CHECK_EQ(sci_recv(l.ep, l.to, &c, 1, NULL), -ECONNRESET);
	peer_send(proc, "told");
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

#define ECHO_LEN	100000u

/* Receive a message and send it back. */
static void echo_client(struct peer *proc, void *arg)
{
	static unsigned char buf[ECHO_LEN];
	struct pair l = { .proc = proc };

	be_behind_relay(8, arg);
	l.ep = test_ep_open(TEST_ID, 0);
	l.to = test_ep_connect(l.ep, 4, TEST_ID);
	CHECK_EQ(sci_send(l.to, "x", 1), 0);
	CHECK_EQ(sci_recv(l.ep, l.to, buf, sizeof(buf), NULL), 0);
	CHECK_EQ(sci_send(l.to, buf, sizeof(buf)), 0);
	pair_close(&l);
}

static struct pair begin(void (*fn)(struct peer *, void *), const char *retry, struct peer **p)
{
	struct pair l;
	char c;

	relay_start();
	*p = peer_spawn(8, fn, (void *)(uintptr_t)retry);
	be_behind_relay(4, retry);
	l.proc = *p;
	l.ep = test_ep_open(TEST_ID, 0);
	l.to = test_ep_accept(l.ep);
	CHECK_EQ(sci_recv(l.ep, l.to, &c, 1, NULL), 0);
	return l;
}

TEST(a_peer_that_dies_is_named)
{
	struct peer *p;
	struct pair l = begin(quiet_client, "3600", &p);
	char c;

	/* the kernel closes the peer's socket: the hour for retries does not matter */
	CHECK_EQ(kill(peer_pid(p), SIGKILL), 0);
	CHECK_EQ(sci_recv(l.ep, l.to, &c, 1, NULL), -ECONNRESET);
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

TEST(a_network_that_falls_silent_ends_both_sides)
{
	struct peer *p;
	struct pair l = begin(quiet_client, "1", &p);
	char c;

	atomic_store(&relay->stalled, true);
	CHECK_EQ(sci_recv(l.ep, l.to, &c, 1, NULL), -ECONNRESET);
	peer_expect(p, "told");
	CHECK_EQ(sci_ep_close(l.ep), 0);
	peer_join(p);
}

TEST(a_network_that_is_down_for_a_while_loses_nothing)
{
	static unsigned char out[ECHO_LEN], in[ECHO_LEN];
	struct sci_req *req;
	struct peer *p;
	struct pair l = begin(echo_client, "60", &p);

	atomic_store(&relay->closed, true);
	WAIT_UNTIL(atomic_load(&relay->cuts) > 0, TEST_WAIT_MS);
	msg_fill(out, sizeof(out), 7);
	CHECK_EQ(sci_isend(l.to, out, sizeof(out), &req), 0);
	CHECK_EQ(sci_progress(l.ep), 0);
	CHECK_EQ(sci_peer_state(l.to), 0);
	atomic_store(&relay->closed, false);
	CHECK_EQ(sci_recv(l.ep, l.to, in, sizeof(in), NULL), 0);
	CHECK_BYTES(in, sizeof(in), 7);
	CHECK_EQ(sci_wait(req, TEST_WAIT_MS, NULL), 0);
	pair_close(&l);
	peer_join(p);
}

/* ---- processes that are stopped ---- */

static void pause_ms(uint64_t ms)
{
	for (uint64_t end = test_now_ms() + ms; test_now_ms() < end;)
		test_pause();
}

/* Stop two processes for 3 s. The second one continues later than the first one. */
static void stop_both(pid_t first, pid_t second)
{
	CHECK_EQ(kill(second, SIGSTOP), 0);
	CHECK_EQ(kill(first, SIGSTOP), 0);
	pause_ms(3000);
	atomic_store(&relay->closed, false);
	CHECK_EQ(kill(first, SIGCONT), 0);
	pause_ms(400);
	CHECK_EQ(kill(second, SIGCONT), 0);
}

/*
 * Both sides are stopped for longer than SCI_NET_RETRY. No side takes the other one for dead.
 * @broken: before, the network cuts the connection; it works again when the sides continue
 */
static void stop(bool broken)
{
	static unsigned char out[ECHO_LEN], in[ECHO_LEN];
	struct peer *p;
	struct pair l = begin(echo_client, "2", &p);
	pid_t self = getpid(), pid;
	int status;

	atomic_store(&relay->closed, broken);
	WAIT_UNTIL(!broken || atomic_load(&relay->cuts) > 0, TEST_WAIT_MS);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		stop_both(self, peer_pid(p));
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	msg_fill(out, sizeof(out), 7);
	CHECK_EQ(sci_send(l.to, out, sizeof(out)), 0);
	CHECK_EQ(sci_recv(l.ep, l.to, in, sizeof(in), NULL), 0);
	CHECK(!memcmp(in, out, sizeof(in)));
	pair_close(&l);
	peer_join(p);
}

TEST(two_sides_that_are_stopped_go_on)
{
	stop(false);
}

TEST(two_sides_that_are_stopped_while_the_network_is_down_go_on)
{
	stop(true);
}
