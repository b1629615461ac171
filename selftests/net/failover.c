// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Links with two ways to the other node: the fabric of both, and TCP.  Messages arrive once and in
 * order when a link changes its way.  Node 4 connects to node 8.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "libsci/fabric/net/net.h"
#include "libsci/msg/endpoint.h"
#include "selftests/msg/peers.h"

#define LEN_MAX		200000u

/* Set the environment of @node. @fault: the value of SCI_FAULT, or NULL */
static void be_on_two_ways(unsigned int node, const char *retry, const char *fault)
{
	char peers[4096];
	const char *all;
	int len;

	test_use_net("tcp", node);
	test_use_cluster("both");
	all = getenv("SCI_NET_PEERS");
	len = snprintf(peers, sizeof(peers), "4=sci,8=sci,%s", all);
	CHECK(len > 0 && (size_t)len < sizeof(peers));
	setenv("SCI_NET_PEERS", peers, 1);
	setenv("SCI_NET_RETRY", retry, 1);
	if (fault)
		setenv("SCI_FAULT", fault, 1);
}

/* ---- the way that the only link takes ---- */

enum way { NO_WAY, FABRIC, SOCKETS };

static enum way way_of(struct sci_ep *ep)
{
	struct net *net = net_of(ep->net);
	enum way way = NO_WAY;

	pthread_mutex_lock(&net->svc.lock);
	if (!list_empty(&net->links)) {
		const struct net_link *l = container_of(net->links.next, struct net_link, link);

		if (l->state == LINK_UP)
			way = l->socket->pipe ? FABRIC : SOCKETS;
	}
	pthread_mutex_unlock(&net->svc.lock);
	return way;
}

/* ---- messages ---- */

enum { GO_ON = 1, STOP };

/* Exchange one message of each side. Return the first byte of the other side's message. */
static unsigned char exchange_one(struct pair *l, uint64_t *state, unsigned char word)
{
	static unsigned char out[LEN_MAX], in[LEN_MAX];
	size_t len = 1 + msg_random(state, msg_random(state, 8) ? 300 : LEN_MAX - 1);
	uint64_t seed = *state;
	struct sci_req *reqs[2];
	struct sci_status st[2];

	msg_fill(out, len, seed);
	out[0] = word;
	CHECK_EQ(sci_isend(l->to, out, len, &reqs[0]), 0);
	CHECK_EQ(sci_irecv(l->ep, l->to, in, sizeof(in), &reqs[1]), 0);
	CHECK_EQ(sci_waitall(reqs, 2, TEST_WAIT_MS, st), 0);
	CHECK_EQ(st[1].len, len);
	out[0] = in[0];
	CHECK(!memcmp(in, out, len));
	return in[0];
}

/* Exchange messages until the link takes @way. */
static void exchange_until(struct pair *l, uint64_t *state, enum way way)
{
	uint64_t limit = sci_now_ms() + TEST_WAIT_MS;

	while (way_of(l->ep) != way) {
		if (sci_now_ms() > limit)
			FAIL("the link does not take way %d", way);
		exchange_one(l, state, GO_ON);
	}
}

/* Node 8: exchange messages until node 4 stops. Its endpoint is the second one of the node. */
static void echo(struct peer *proc, void *arg)
{
	struct pair l = { .proc = proc };
	struct sci_ep *first;
	uint64_t state = 5;

	be_on_two_ways(8, "10", arg);
	first = test_ep_open(TEST_ID + 1, 0);
	l.ep = test_ep_open(TEST_ID, 0);
	peer_send(proc, "open");
	l.to = test_ep_accept(l.ep);
	CHECK(l.to->stream);
	while (exchange_one(&l, &state, GO_ON) != STOP)
		;
	pair_close(&l);
	CHECK_EQ(sci_ep_close(first), 0);
}

/* The link of one side, or of both sides, is down @times times. */
static void outages(const char *fault4, const char *fault8, int times)
{
	struct pair l;
	uint64_t state = 5;

	l.proc = peer_spawn(8, echo, (void *)(uintptr_t)fault8);
	peer_expect(l.proc, "open");
	be_on_two_ways(4, "10", fault4);
	l.ep = test_ep_open(TEST_ID, 0);
	l.to = test_ep_connect(l.ep, 8, TEST_ID);
	CHECK(l.to->stream);
	for (int i = 0; i < times; i++) {
		exchange_until(&l, &state, SOCKETS);
		exchange_until(&l, &state, FABRIC);
	}
	exchange_one(&l, &state, STOP);
	pair_close(&l);
	peer_join(l.proc);
}

/* The link is down again and again, so that it does not matter when an exchange begins. */
#define OUTAGE	"linkdown=500:1000,linkdown=4500:1000,linkdown=8500:1000,linkdown=12500:1000," \
		"linkdown=16500:1000,linkdown=20500:1000,linkdown=24500:1000,linkdown=28500:1000"

TEST(sockets_take_over_when_this_side_has_no_link)
{
	outages(OUTAGE, NULL, 1);
}

TEST(sockets_take_over_when_the_other_side_has_no_link)
{
	outages(NULL, OUTAGE, 1);
}

TEST(sockets_take_over_when_both_sides_have_no_link)
{
	outages(OUTAGE, OUTAGE, 1);
}

TEST(sockets_take_over_twice_and_packets_are_lost)
{
	outages(OUTAGE ",loss=0.01", "loss=0.01", 2);
}

TEST(a_link_that_begins_with_sockets_changes_to_the_fabric)
{
	outages("linkdown=0:1000", NULL, 1);
}

/* ---- death ---- */

static void wait_for_death(struct peer *proc, void *arg)
{
	struct pair l = { .proc = proc };
	uint64_t state = 5;

	(void)arg;
	be_on_two_ways(8, "3600", NULL);
	l.ep = test_ep_open(TEST_ID, 0);
	peer_send(proc, "open");
	l.to = test_ep_accept(l.ep);
	for (;;)
		exchange_one(&l, &state, GO_ON);
}

/* The death of node 8 is noticed although the time limit is an hour. */
static void death(const char *fault, enum way way)
{
	static unsigned char buf[LEN_MAX];
	struct pair l;
	uint64_t state = 5;
	int ret;

	l.proc = peer_spawn(8, wait_for_death, NULL);
	peer_expect(l.proc, "open");
	be_on_two_ways(4, "3600", fault);
	l.ep = test_ep_open(TEST_ID, 0);
	l.to = test_ep_connect(l.ep, 8, TEST_ID);
	for (int i = 0; i < 10; i++)
		exchange_one(&l, &state, GO_ON);
	CHECK_EQ(way_of(l.ep), way);
	CHECK_EQ(kill(peer_pid(l.proc), SIGKILL), 0);
	/* the next message may have arrived before */
	do {
		ret = sci_recv(l.ep, l.to, buf, sizeof(buf), NULL);
	} while (!ret);
	CHECK_EQ(ret, -ECONNRESET);
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

TEST(a_death_is_noticed_through_the_fabric)
{
	death(NULL, FABRIC);
}

TEST(a_death_is_noticed_by_sockets_while_the_fabric_has_no_link)
{
	death("linkdown=0", SOCKETS);
}

/* ---- silence ---- */

static struct {
	struct sci_fabric_ops ops;
	struct sci_link_status *link;
	unsigned int calls;
} silent;

/* The store barrier while the other node does not answer: it takes long, and packets are lost. */
static void silent_store_barrier(struct sci_fabric *f, struct sci_rseg *r)
{
	(void)f;
	(void)r;
	silent.calls++;
	for (uint64_t end = sci_now_ms() + 150; sci_now_ms() < end;)
		test_pause();
	atomic_fetch_add(&silent.link->errors, 1);
}

/* Let the service thread stop and resume all pipes of @net. Return the number of slow writes. */
static unsigned int pipes_resume_silent(struct net *net)
{
	struct sci_fabric *f = net->under[0].fabric;
	const struct sci_fabric_ops *ops = f->ops;
	struct list *pos, *n;
	unsigned int pipes = 0;

	silent.ops = *ops;
	silent.ops.rseg.store_barrier = silent_store_barrier;
	silent.link = ops->query.link(f, 0);
	pthread_mutex_lock(&net->svc.lock);
	f->ops = &silent.ops;
	list_for_each_safe(pos, n, &net->links) {
		struct net_socket *s = container_of(pos, struct net_link, link)->socket;

		CHECK(s->pipe);
		net_wire_pause(s, true);
		net_wire_pause(s, false);
		pipes++;
	}
	f->ops = ops;
	pthread_mutex_unlock(&net->svc.lock);
	CHECK_EQ(pipes, 2);
	return silent.calls;
}

static void accept_two(struct peer *proc, void *arg)
{
	struct sci_ep *ep[2];

	(void)arg;
	be_on_two_ways(8, "10", NULL);
	for (uint32_t i = 0; i < 2; i++)
		ep[i] = test_ep_open(TEST_ID + i, 0);
	peer_send(proc, "open");
	for (uint32_t i = 0; i < 2; i++)
		test_ep_accept(ep[i]);
	peer_expect(proc, "end");
	for (uint32_t i = 0; i < 2; i++)
		CHECK_EQ(sci_ep_close(ep[i]), 0);
}

/* Two pipes lead to one node. Only one of them waits for an answer of the silent node. */
TEST(a_silent_node_delays_one_write)
{
	struct peer *proc = peer_spawn(8, accept_two, NULL);
	struct sci_ep *ep;

	peer_expect(proc, "open");
	be_on_two_ways(4, "10", "loss=0.0001");
	ep = test_ep_open(TEST_ID, 0);
	for (uint32_t i = 0; i < 2; i++)
		test_ep_connect(ep, 8, TEST_ID + i);
	CHECK_EQ(pipes_resume_silent(net_of(ep->net)), 1);
	peer_send(proc, "end");
	peer_join(proc);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* ---- many processes that open pipes at the same time ---- */

#define CALLS		100u

/* The message to a data interrupt that asks for a pipe, see wire.c. */
struct call {
	uint32_t magic;
	uint32_t node;
	uint64_t number;
};

static _Atomic uint32_t *port;		/* the interrupt of node 8's net */

/* Take all calls at once: they arrive while the service thread is held up. */
static void accept_pipes(struct peer *proc, void *arg)
{
	struct sci_ep *ep;
	struct net *net;

	(void)arg;
	be_on_two_ways(8, "10", NULL);
	ep = test_ep_open(TEST_ID, 0);
	net = net_of(ep->net);
	pthread_mutex_lock(&net->svc.lock);
	atomic_store(port, net_port(net) + NET_PIPE_PORT);
	peer_send(proc, "held up");
	peer_expect(proc, "called");
	pthread_mutex_unlock(&net->svc.lock);
	peer_expect(proc, "end");
	CHECK_EQ(sci_ep_close(ep), 0);
}

static void no_event(void *owner, const struct sci_event *ev)
{
	(void)owner;
	(void)ev;
}

static void call_pipes(struct sci_fabric *f, struct sci_pipe pipes[CALLS])
{
	const struct sci_rintr_param param = {
		.node = 8, .number = atomic_load(port), .timeout = TEST_WAIT_MS, .data = true,
	};
	struct sci_rintr *to;

	CHECK_EQ(f->ops->rintr.connect(f, &param, &to), 0);
	for (unsigned int i = 0; i < CALLS; i++) {
		struct call c = { .magic = 0x50494353u, .node = 4 };

		CHECK_EQ(sci_pipe_begin(&pipes[i], f, 0, no_event, NULL), 0);
		c.number = sci_pipe_number(&pipes[i]);
		CHECK_EQ(f->ops->rintr.trigger(to, &c, sizeof(c)), 0);
	}
	f->ops->rintr.disconnect(to);
}

TEST(all_calls_for_pipes_are_answered)
{
	static struct sci_pipe pipes[CALLS];
	const struct sci_fabric_place at = { .node = 4 };
	struct sci_fabric *f;
	struct peer *proc;

	port = test_shared(sizeof(*port));
	proc = peer_spawn(8, accept_pipes, NULL);
	peer_expect(proc, "held up");
	be_on_two_ways(4, "10", NULL);
	CHECK_EQ(sci_fabric_open_at(&f, &at), 0);
	call_pipes(f, pipes);
	peer_send(proc, "called");
	for (unsigned int i = 0; i < CALLS; i++)
		WAIT_UNTIL(sci_pipe_answered(&pipes[i]), TEST_WAIT_MS);
	peer_send(proc, "end");
	peer_join(proc);
	for (unsigned int i = 0; i < CALLS; i++)
		sci_pipe_end(&pipes[i]);
	sci_fabric_close(f);
}
