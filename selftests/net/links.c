// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Links whose sockets break.  A relay between the two nodes cuts, stalls and
 * truncates connections; messages arrive once and in order, or their sender
 * gets an error.
 *
 * Silent networks and stopped processes take 20 s in all: they last for longer than the time limits.
 */
#include <signal.h>
#include <sys/wait.h>

#include "selftests/net/relay.h"

#define MESSAGES	(TEST_TSAN || TEST_ASAN ? 300u : 1500u)
#define MESSAGE_MAX	100000u

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
