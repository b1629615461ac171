// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Processes of virtual clusters that have no network in common, and gateways between
 * them.  Rank A is node 4 of cluster "a", rank B is node 8 of cluster "b".
 *
 * Tests of outages and silence take 20 s: a link breaks after 5 s without a byte.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libsci/fabric/net/net.h"
#include "libsci/msg/endpoint.h"
#include "selftests/net/exchange.h"

/* ---- gateways ---- */

struct site {
	unsigned int node;
	const char *clusters[3];	/* clusters of a gateway; a rank joins the first */
	const char *net;		/* SCI_NET: a kind of sockets, or "sci" */
	const char *peers;		/* entries of SCI_NET_PEERS with via: */
	unsigned int reached[2];	/* nodes that it reaches by sockets */
};

/* Set the environment of a process of @s. */
static void be_at(const struct site *s)
{
	char peers[1024], all[4096], text[16];
	size_t len;

	test_use_net(strcmp(s->net, "sci") ? s->net : "unix", s->node);
	snprintf(all, sizeof(all), "%s", getenv("SCI_NET_PEERS"));
	len = (size_t)snprintf(peers, sizeof(peers), "%s", s->peers);
	for (unsigned int i = 0; i < 2 && s->reached[i]; i++) {
		const char *at;

		/* node 4 is the first entry */
		snprintf(text, sizeof(text), ",%u=", s->reached[i]);
		at = strstr(all, text);
		at = at ? at + 1 : all;
		len += (size_t)snprintf(peers + len, sizeof(peers) - len, "%s%.*s",
					len ? "," : "", (int)strcspn(at, ","), at);
	}
	setenv("SCI_NET_PEERS", peers, 1);
	if (!strcmp(s->net, "sci"))
		setenv("SCI_NET", "sci", 1);
	setenv("SCI_NET_RETRY", "10", 1);
	test_use_cluster(s->clusters[0]);
}

static struct sci_fabric *gateway_open(const struct site *s)
{
	char names[3][64];
	const char *fabrics[3];
	struct sci_fabric *g;
	unsigned int n = 0;

	be_at(s);
	for (; n < 3 && s->clusters[n]; n++) {
		test_use_cluster(s->clusters[n]);
		snprintf(names[n], sizeof(names[n]), "%s", getenv("SCI_FABRIC"));
		fabrics[n] = names[n];
	}
	CHECK_EQ(sci_gateway_open(&g, fabrics, n, s->node, getenv("SCI_NET")), 0);
	return g;
}

static void gateway(struct peer *proc, void *arg)
{
	struct sci_fabric *g = gateway_open(arg);

	peer_send(proc, "open");
	/* until the gateway is killed, or is not needed any more */
	peer_expect(proc, "end");
	g->ops->close(g);
}

static struct peer *gateway_start(const struct site *s)
{
	struct peer *p = peer_spawn(s->node, gateway, (void *)(uintptr_t)s);

	peer_expect(p, "open");
	return p;
}

static void gateway_end(struct peer *p)
{
	peer_send(p, "end");
	peer_join(p);
}

/* ---- the ranks ---- */

static const struct site *site_b;

static struct pair pair_start(const struct site *a, const struct site *b,
			      void (*fn)(struct peer *proc, void *arg))
{
	struct pair l;

	site_b = b;
	l.proc = peer_spawn(b->node, fn, NULL);
	peer_expect(l.proc, "there");
	be_at(a);
	l.ep = test_ep_open(TEST_ID, 0);
	l.to = test_ep_connect(l.ep, b->node, TEST_ID);
	CHECK(l.to->stream);
	return l;
}

static struct pair pair_accept(struct peer *proc)
{
	struct pair l = { .proc = proc };

	be_at(site_b);
	l.ep = test_ep_open(TEST_ID, 0);
	peer_send(proc, "there");
	l.to = test_ep_accept(l.ep);
	CHECK(l.to->stream);
	return l;
}

static void rank_b(struct peer *proc, void *arg)
{
	struct pair l = pair_accept(proc);

	(void)arg;
	exchange(l.ep, l.to, 1);
	exchange_memory(&l);
	pair_close(&l);
}

static void run_pair(const struct site *a, const struct site *b)
{
	struct pair l = pair_start(a, b, rank_b);

	exchange(l.ep, l.to, 1);
	exchange_memory(&l);
	pair_close(&l);
	peer_join(l.proc);
}

TEST(a_gateway_between_two_rings)
{
	static const struct site a = { 4, { "a" }, "sci", "8=via:12", { 0 } };
	static const struct site b = { 8, { "b" }, "sci", "4=via:12", { 0 } };
	static const struct site g = { 12, { "a", "b" }, "sci", "", { 0 } };
	struct peer *gate = gateway_start(&g);

	run_pair(&a, &b);
	gateway_end(gate);
}

TEST(a_gateway_between_a_ring_and_sockets)
{
	static const struct site a = { 4, { "a" }, "sci", "8=via:12", { 0 } };
	static const struct site b = { 8, { "b" }, "unix", "", { 0 } };
	static const struct site g = { 12, { "a" }, "unix", "", { 8 } };
	struct peer *gate = gateway_start(&g);

	run_pair(&a, &b);
	gateway_end(gate);
}

/* The way is ring, gateway, sockets, gateway, ring. */
TEST(two_gateways_in_a_row)
{
	static const struct site a = { 4, { "a" }, "sci", "8=via:12", { 0 } };
	static const struct site b = { 8, { "b" }, "sci", "4=via:16", { 0 } };
	static const struct site g1 = { 12, { "a" }, "unix", "8=via:16", { 16 } };
	static const struct site g2 = { 16, { "b" }, "unix", "4=via:12", { 12 } };
	struct peer *first = gateway_start(&g1), *second = gateway_start(&g2);

	run_pair(&a, &b);
	gateway_end(first);
	gateway_end(second);
}

static void no_event(void *owner, const struct sci_event *ev)
{
	(void)owner;
	(void)ev;
}

TEST(a_net_refuses_broadcast_groups)
{
	static const struct site site = { 12, { "a" }, "sci", "", { 0 } };
	const struct sci_lseg_param param = {
		.id = 1, .size = 4096, .flags = SCI_LSEG_BROADCAST, .event = no_event,
	};
	struct sci_fabric *f = gateway_open(&site);
	struct sci_lseg *s;

	CHECK_EQ(f->ops->lseg.create(f, &param, &s), -EOPNOTSUPP);
	f->ops->close(f);
}

/* ---- where a node is ---- */

static struct sci_fabric_ops counting;
static int (*real_probe)(struct sci_fabric *f, unsigned int adapter, unsigned int node);
static unsigned int probes;

static int probe_counted(struct sci_fabric *f, unsigned int adapter, unsigned int node)
{
	probes++;
	return real_probe(f, adapter, node);
}

/* Find @node. Return the number of fabrics that were probed; 0: no fabric reaches the node. */
static unsigned int find(struct net *net, unsigned int node)
{
	struct net_under *u;

	probes = 0;
	pthread_mutex_lock(&net->svc.lock);
	u = net_under_find(net, node);
	pthread_mutex_unlock(&net->svc.lock);
	return u ? probes : 0;
}

static void be_in_last_cluster(struct peer *proc, void *arg)
{
	const struct site *s = arg;
	struct sci_ep *ep;

	be_at(s);
	ep = test_ep_open(TEST_ID, 0);
	peer_send(proc, "there");
	peer_expect(proc, "end");
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* It takes long to find that a fabric does not reach a node. A gateway remembers where a node is. */
TEST(a_gateway_remembers_the_fabric_of_a_node)
{
	static const struct site b = { 8, { "b" }, "sci", "4=via:12", { 0 } };
	static const struct site g = { 12, { "a", "c", "b" }, "sci", "", { 0 } };
	struct peer *p = peer_spawn(8, be_in_last_cluster, (void *)(uintptr_t)&b);
	struct sci_fabric *f;
	struct net *net;

	peer_expect(p, "there");
	f = gateway_open(&g);
	net = net_of(f);
	counting = *net->under[0].fabric->ops;
	real_probe = counting.query.probe;
	counting.query.probe = probe_counted;
	for (unsigned int i = 0; i < net->n_under; i++)
		net->under[i].fabric->ops = &counting;
	CHECK_EQ(find(net, 8), 3);
	CHECK_EQ(find(net, 8), 1);
	CHECK_EQ(find(net, 16), 0);
	CHECK_EQ(find(net, UINT32_MAX), 0);
	peer_send(p, "end");
	peer_join(p);
	f->ops->close(f);
}

/* ---- gateways that die ---- */

#define ROUNDS		(TEST_TSAN || TEST_ASAN ? 60u : 200u)
#define ROUND_MAX	100000u

/* fork() locks the net and the fabric of its pipes. */
static void fork_once(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		_exit(0);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

static bool forks;

#define VICTIMS		2u

static int victim_signal = SIGKILL;

/* Exchange numbered messages of all lengths; the victims get a signal one after the other. */
static void traffic(struct pair *l, struct peer *const victims[VICTIMS])
{
	unsigned char *out = malloc(ROUND_MAX), *in = malloc(ROUND_MAX);
	uint64_t state = 7;

	CHECK(out && in);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		size_t len = msg_random(&state, i % 4 ? 300 : ROUND_MAX);
		struct sci_req *reqs[2];
		struct sci_status st[2];

		msg_fill(out, len, i);
		CHECK_EQ(sci_itsend(l->to, 7, i, out, len, &reqs[0]), 0);
		if (forks && i % 4 == 0)
			fork_once();
		for (unsigned int v = 0; victims && v < VICTIMS; v++)
			if (victims[v] && i == ROUNDS * (v + 1) / (VICTIMS + 1))
				CHECK_EQ(kill(peer_pid(victims[v]), victim_signal), 0);
		CHECK_EQ(sci_itrecv(l->ep, l->to, 7, i, 0, in, ROUND_MAX, &reqs[1]), 0);
		CHECK_EQ(sci_waitall(reqs, 2, TEST_WAIT_MS, st), 0);
		CHECK_EQ(st[1].len, len);
		CHECK_BYTES(in, len, i);
	}
	free(out);
	free(in);
}

static void rank_b_traffic(struct peer *proc, void *arg)
{
	struct pair l = pair_accept(proc);

	(void)arg;
	traffic(&l, NULL);
	pair_close(&l);
}

static _Atomic bool *b_done;

static void rank_b_bereft(struct peer *proc, void *arg)
{
	struct pair l = pair_accept(proc);
	char c;

	(void)arg;
	traffic(&l, NULL);
	atomic_store(b_done, true);
	CHECK_EQ(sci_recv(l.ep, l.to, &c, 1, NULL), -ECONNRESET);
	peer_send(proc, "told");
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

static void rank_b_echo(struct peer *proc, void *arg)
{
	struct pair l = pair_accept(proc);
	char c;

	(void)arg;
	do {
		CHECK_EQ(sci_recv(l.ep, l.to, &c, 1, NULL), 0);
		CHECK_EQ(sci_send(l.to, &c, 1), 0);
	} while (c != 's');
	pair_close(&l);
}

/* The ranks' adapters have no link for a while: messages wait, and the gateway counts as alive. */
static void ring_down(const char *fault)
{
	static const struct site a = { 4, { "a" }, "sci", "8=via:12", { 0 } };
	static const struct site b = { 8, { "b" }, "sci", "4=via:12", { 0 } };
	static const struct site g = { 12, { "a", "b" }, "sci", "", { 0 } };
	struct peer *gate = gateway_start(&g);
	struct sci_adapter_info info;
	struct pair l;
	char c;

	setenv("SCI_FAULT", fault, 1);
	l = pair_start(&a, &b, rank_b_echo);
	do {
		CHECK_EQ(l.ep->fabric->ops->query.adapter(l.ep->fabric, 0, &info), 0);
		c = info.link_up && info.link_down_ms ? 's' : 'g';
		CHECK_EQ(sci_send(l.to, &c, 1), 0);
		CHECK_EQ(sci_recv(l.ep, l.to, &c, 1, NULL), 0);
	} while (c != 's');
	pair_close(&l);
	peer_join(l.proc);
	gateway_end(gate);
}

TEST(a_ring_that_is_down_for_a_while)
{
	ring_down("linkdown=1000:1000");
}

/* The connections break after 5 s, and are made again after 7 s. */
TEST(a_ring_that_is_down_for_longer)
{
	ring_down("linkdown=1000:7000");
}

/* One of two gateways may die without a loss; the death of both ends the connection. */
TEST(another_gateway_takes_over)
{
	static const struct site a = { 4, { "a" }, "sci", "8=via:12,8=via:16", { 0 } };
	static const struct site b = { 8, { "b" }, "sci", "4=via:12,4=via:16", { 0 } };
	static const struct site g1 = { 12, { "a", "b" }, "sci", "", { 0 } };
	static const struct site g2 = { 16, { "a", "b" }, "sci", "", { 0 } };
	struct peer *first = gateway_start(&g1), *second = gateway_start(&g2);
	struct pair l;
	char c;

	b_done = test_shared(sizeof(*b_done));
	l = pair_start(&a, &b, rank_b_bereft);
	/* node 4 begins with the second gateway */
	traffic(&l, (struct peer *const[VICTIMS]){ second });
	WAIT_UNTIL((sci_progress(l.ep), atomic_load(b_done)), TEST_WAIT_MS);
	CHECK_EQ(kill(peer_pid(first), SIGKILL), 0);
	CHECK_EQ(sci_recv(l.ep, l.to, &c, 1, NULL), -ECONNRESET);
	peer_expect(l.proc, "told");
	CHECK_EQ(sci_ep_close(l.ep), 0);
	peer_join(l.proc);
}

/* Two gateways end at each end of the sockets. Kill one of each two, in all combinations. */
TEST(another_gateway_takes_over_in_each_row)
{
	static const struct site a = { 4, { "a" }, "sci", "8=via:12,8=via:16", { 0 } };
	static const struct site b = { 8, { "b" }, "sci", "4=via:20,4=via:24", { 0 } };
	static const struct site rows[2][2] = {
		{ { 12, { "a" }, "unix", "8=via:20,8=via:24", { 20, 24 } },
		  { 16, { "a" }, "unix", "8=via:20,8=via:24", { 20, 24 } } },
		{ { 20, { "b" }, "unix", "4=via:12,4=via:16", { 12, 16 } },
		  { 24, { "b" }, "unix", "4=via:12,4=via:16", { 12, 16 } } },
	};

	for (unsigned int i = 0; i < 4; i++) {
		struct peer *g[2][2], *victims[VICTIMS];
		struct pair l;

		for (unsigned int k = 0; k < 4; k++)
			g[k / 2][k % 2] = gateway_start(&rows[k / 2][k % 2]);
		victims[0] = g[0][i % 2];
		victims[1] = g[1][i / 2];
		l = pair_start(&a, &b, rank_b_traffic);
		traffic(&l, victims);
		pair_close(&l);
		peer_join(l.proc);
		for (unsigned int k = 0; k < 2; k++) {
			peer_kill(victims[k], SIGKILL);
			gateway_end(victims[k] == g[k][0] ? g[k][1] : g[k][0]);
		}
	}
}

/* A gateway does not answer, as after a loss of power: each of the two gateways once. */
TEST(another_gateway_takes_over_from_a_silent_one)
{
	static const struct site a = { 4, { "a" }, "sci", "8=via:12,8=via:16", { 0 } };
	static const struct site b = { 8, { "b" }, "sci", "4=via:12,4=via:16", { 0 } };
	static const struct site site[] = {
		{ 12, { "a", "b" }, "sci", "", { 0 } }, { 16, { "a", "b" }, "sci", "", { 0 } },
	};

	victim_signal = SIGSTOP;
	for (unsigned int i = 0; i < 2; i++) {
		struct peer *g[2] = { gateway_start(&site[0]), gateway_start(&site[1]) };
		struct pair l = pair_start(&a, &b, rank_b_traffic);

		traffic(&l, (struct peer *const[VICTIMS]){ g[i] });
		pair_close(&l);
		peer_join(l.proc);
		peer_continue(g[i]);
		gateway_end(g[0]);
		gateway_end(g[1]);
	}
}

/* Refuse connections from now on. */
static void listener_end(struct sci_ep *ep)
{
	struct net *net = net_of(ep->net);

	pthread_mutex_lock(&net->svc.lock);
	sci_fd_close(&net->svc, net->listen_fd);
	pthread_mutex_unlock(&net->svc.lock);
}

/* End the sockets of the only link of @ep, and refuse new ones. */
static void sockets_end(struct sci_ep *ep)
{
	struct net *net = net_of(ep->net);
	struct net_link *l;

	listener_end(ep);
	pthread_mutex_lock(&net->svc.lock);
	CHECK(!list_empty(&net->links));
	l = container_of(net->links.next, struct net_link, link);
	/* the other side may take as long as after a silence */
	l->silent = true;
	CHECK_EQ(shutdown(l->socket->fd, SHUT_RDWR), 0);
	pthread_mutex_unlock(&net->svc.lock);
}

/* Node 8's second endpoint, in slot 1, loses its sockets after the first message. */
static void rank_b_second(struct peer *proc, void *arg)
{
	struct sci_ep *first;
	struct pair l;

	(void)arg;
	be_at(site_b);
	first = test_ep_open(TEST_ID + 1, 0);
	l = pair_accept(proc);
	exchange(l.ep, l.to, 1);
	sockets_end(l.ep);
	traffic(&l, NULL);
	pair_close(&l);
	CHECK_EQ(sci_ep_close(first), 0);
}

/* Accept one connection at the address of @ep, which refused connections before. */
static void connection_accept(struct sci_ep *ep)
{
	struct net *net = net_of(ep->net);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), one;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	CHECK(fd >= 0);
	CHECK_EQ(bind(fd, (struct sockaddr *)&net->listen.sa, net->listen.len), 0);
	CHECK_EQ(listen(fd, 1), 0);
	CHECK_EQ(poll(&p, 1, TEST_WAIT_MS), 1);
	one = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	CHECK(one >= 0);
	close(fd);
	pthread_mutex_lock(&net->svc.lock);
	net_accept(net, one, NULL);
	pthread_mutex_unlock(&net->svc.lock);
}

/* Node 8's second endpoint refuses connections to its slot 1, and then accepts one. */
static void rank_b_late(struct peer *proc, void *arg)
{
	struct sci_ep *first;
	struct pair l;

	(void)arg;
	be_at(site_b);
	first = test_ep_open(TEST_ID + 1, 0);
	l.ep = test_ep_open(TEST_ID, 0);
	listener_end(first);
	listener_end(l.ep);
	peer_send(proc, "there");
	l.to = test_ep_accept(l.ep);
	exchange(l.ep, l.to, 1);
	connection_accept(l.ep);
	traffic(&l, NULL);
	pair_close(&l);
	CHECK_EQ(sci_ep_close(first), 0);
}

/* Exchange messages between nodes 4 and 8. A gateway joins them. @rank: the program of node 8 */
static void take_over(void (*rank)(struct peer *self, void *arg))
{
	static const struct site a = { 4, { "a" }, "sci", "8=via:12", { 8 } };
	static const struct site b = { 8, { "b" }, "unix", "4=via:12", { 0 } };
	static const struct site g = { 12, { "a", "b" }, "sci", "", { 0 } };
	struct peer *gate = gateway_start(&g);
	struct pair l = pair_start(&a, &b, rank);

	exchange(l.ep, l.to, 1);
	traffic(&l, NULL);
	pair_close(&l);
	peer_join(l.proc);
	gateway_end(gate);
}

/* A link begins through a gateway, which finds the process by memory, and returns to sockets. */
TEST(sockets_take_over_from_a_gateway)
{
	take_over(rank_b_late);
}

/* A gateway takes over from sockets. It finds the process in slot 1 by memory. */
TEST(a_gateway_takes_over_from_sockets)
{
	take_over(rank_b_second);
}

#define ADDS		64u

static void rank_b_memory(struct peer *proc, void *arg)
{
	struct pair l = pair_accept(proc);
	struct sci_key key;
	void *memory;

	(void)arg;
	CHECK_EQ(sci_buf_alloc(l.ep, LEN_MAX + 8, &memory), 0);
	CHECK_EQ(sci_buf_key(l.ep, memory, LEN_MAX + 8, &key), 0);
	CHECK_EQ(sci_tsend(l.to, 9, 0, &key, sizeof(key)), 0);
	pair_meet(&l);
	CHECK_EQ(*(uint64_t *)memory, ADDS);
	CHECK_BYTES((unsigned char *)memory + 8, LEN_MAX, 77);
	pair_close(&l);
}

/* A gateway dies during one-sided calls: no byte is lost, and each atomic is executed once. */
TEST(another_gateway_takes_over_one_sided_calls)
{
	static const struct site a = { 4, { "a" }, "sci", "8=via:12,8=via:16", { 0 } };
	static const struct site b = { 8, { "b" }, "sci", "4=via:12,4=via:16", { 0 } };
	static const struct site g[] = {
		{ 12, { "a", "b" }, "sci", "", { 0 } }, { 16, { "a", "b" }, "sci", "", { 0 } },
	};
	static const struct sci_rmw add = {
		.op = SCI_RMW_ADD, .type = SCI_RMW_UINT64, .operand = 1,
	};
	struct peer *first = gateway_start(&g[0]), *second = gateway_start(&g[1]);
	struct pair l = pair_start(&a, &b, rank_b_memory);
	unsigned char *out = malloc(LEN_MAX), *in = malloc(LEN_MAX);
	struct iovec iov = { out, LEN_MAX };
	struct sci_req *reqs[ADDS + 1];
	struct sci_key key;

	CHECK(out && in);
	msg_fill(out, LEN_MAX, 77);
	CHECK_EQ(sci_trecv(l.ep, l.to, 9, 0, 0, &key, sizeof(key), NULL), 0);
	CHECK_EQ(sci_iwritev(l.to, &key, 8, &iov, 1, &reqs[ADDS]), 0);
	for (unsigned int i = 0; i < ADDS; i++)
		CHECK_EQ(sci_irmw(l.to, &key, 0, &add, NULL, &reqs[i]), 0);
	/* node 4 begins with the second gateway */
	CHECK_EQ(kill(peer_pid(second), SIGKILL), 0);
	CHECK_EQ(sci_waitall(reqs, ADDS + 1, TEST_WAIT_MS, NULL), 0);
	CHECK_EQ(sci_read(l.to, &key, 8, in, LEN_MAX), 0);
	CHECK_BYTES(in, LEN_MAX, 77);
	pair_meet(&l);
	pair_close(&l);
	peer_join(l.proc);
	gateway_end(first);
	free(out);
	free(in);
}

TEST(processes_fork_meanwhile)
{
	static const struct site a = { 4, { "a" }, "sci", "8=via:12", { 0 } };
	static const struct site b = { 8, { "b" }, "sci", "4=via:12", { 0 } };
	static const struct site g = { 12, { "a", "b" }, "sci", "", { 0 } };
	struct peer *gate = gateway_start(&g);
	struct pair l;

	forks = true;
	l = pair_start(&a, &b, rank_b_traffic);
	traffic(&l, NULL);
	pair_close(&l);
	peer_join(l.proc);
	gateway_end(gate);
}

/* ---- polling ---- */

#define PINGS		2000u
#define RARE_MISSES	5u	/* at least 2^5 turns with bytes come before the next poll */
#define QUIET_MS	300u

enum { GAUGE_END, GAUGE_REST, GAUGE_QUIET, GAUGE_NOW, GAUGE_CPU };

struct gauge {
	uint64_t polls;
	uint64_t now_ms;
	unsigned int busy;		/* relays that are polled */
	unsigned int misses;		/* greatest number of a relay */
	uint64_t held;			/* bytes that wait for room */
	uint64_t cpu_ms;		/* CPU time of QUIET_MS */
};

static struct gauge gauge_read(struct net *net)
{
	struct gauge g;

	pthread_mutex_lock(&net->svc.lock);
	g = (struct gauge){
		.polls = net->svc.polls, .now_ms = net->now_ms, .busy = net->n_busy,
	};
	for (struct list *pos = net->forwards.next; pos != &net->forwards; pos = pos->next) {
		const struct net_forward *f = container_of(pos, struct net_forward, link);

		g.misses = f->misses > g.misses ? f->misses : g.misses;
		for (int i = 0; i < 2; i++)
			g.held += f->bytes[i].to - f->bytes[i].from;
	}
	pthread_mutex_unlock(&net->svc.lock);
	return g;
}

/* Return the CPU time in ms that this process uses in QUIET_MS. */
static uint64_t cpu_measure(void)
{
	clock_t before = clock();

	poll(NULL, 0, QUIET_MS);
	return (uint64_t)(clock() - before) * 1000 / CLOCKS_PER_SEC;
}

static void gateway_watched(struct peer *proc, void *arg)
{
	struct sci_fabric *f = gateway_open(arg);
	int command;

	peer_send(proc, "open");
	while (PEER_GET(proc, command), command != GAUGE_END) {
		struct gauge g, later;

		WAIT_UNTIL((g = gauge_read(net_of(f))).busy == 0 || command == GAUGE_NOW,
			   TEST_WAIT_MS);
		if (command == GAUGE_CPU)
			g.cpu_ms = cpu_measure();
		if (command == GAUGE_QUIET) {
			WAIT_UNTIL((later = gauge_read(net_of(f))).now_ms >= g.now_ms + QUIET_MS,
				   TEST_WAIT_MS);
			CHECK_EQ(later.polls, g.polls);
		}
		PEER_PUT(proc, g);
	}
	f->ops->close(f);
}

static struct gauge gauge_ask(struct peer *gate, int command)
{
	struct gauge g;

	peer_put(gate, &command, sizeof(command));
	PEER_GET(gate, g);
	return g;
}

static void rank_b_pings(struct peer *proc, void *arg)
{
	struct pair l = pair_accept(proc);
	char c;

	(void)arg;
	for (unsigned int i = 0; i < PINGS; i++) {
		CHECK_EQ(sci_recv(l.ep, l.to, &c, 1, NULL), 0);
		CHECK_EQ(sci_send(l.to, &c, 1), 0);
	}
	do {
		CHECK_EQ(sci_recv(l.ep, l.to, &c, 1, NULL), 0);
		peer_send(proc, "received");
	} while (c != 'e');
	pair_close(&l);
}

/* Send a message, and wait until node 8 has it and the gateway polls no relay. */
static struct gauge send_alone(struct pair *l, struct peer *gate, char c)
{
	CHECK_EQ(sci_send(l->to, &c, 1), 0);
	peer_expect(l->proc, "received");
	return gauge_ask(gate, GAUGE_REST);
}

/*
 * A gateway polls while messages follow each other, and sleeps while nothing comes. For
 * messages that are far apart it polls less and less often.
 */
TEST(a_gateway_polls_while_it_is_busy)
{
	static const struct site a = { 4, { "a" }, "sci", "8=via:12", { 0 } };
	static const struct site b = { 8, { "b" }, "sci", "4=via:12", { 0 } };
	static const struct site site = { 12, { "a", "b" }, "sci", "", { 0 } };
	struct peer *gate = peer_spawn(site.node, gateway_watched, (void *)(uintptr_t)&site);
	struct gauge before, after;
	unsigned int sent = 0;
	struct pair l;
	char c = 1;

	peer_expect(gate, "open");
	l = pair_start(&a, &b, rank_b_pings);
	before = gauge_ask(gate, GAUGE_QUIET);
	for (unsigned int i = 0; i < PINGS; i++) {
		CHECK_EQ(sci_send(l.to, &c, 1), 0);
		CHECK_EQ(sci_recv(l.ep, l.to, &c, 1, NULL), 0);
	}
	after = gauge_ask(gate, GAUGE_QUIET);
	test_note("polls while it is busy: %llu", (unsigned long long)(after.polls - before.polls));
	CHECK(after.polls > before.polls);
	WAIT_UNTIL((sent++, after = send_alone(&l, gate, 's')).misses >= RARE_MISSES,
		   TEST_WAIT_MS);
	test_note("rare polls after %u messages that are far apart", sent);
	before = after;
	after = send_alone(&l, gate, 'e');
	CHECK_EQ(after.polls, before.polls);
	pair_close(&l);
	peer_join(l.proc);
	peer_put(gate, &(int){ GAUGE_END }, sizeof(int));
	peer_join(gate);
}

/* ---- a side that has died ---- */

#define FLOOD_LEN	(4u << 20)

static const struct site *site_a;
static _Atomic unsigned int *floods;	/* number of messages that node 8 has received */

static void rank_a_flood(struct peer *proc, void *arg)
{
	void *out = calloc(1, FLOOD_LEN);
	struct sci_peer *to;
	struct sci_ep *ep;

	(void)arg;
	be_at(site_a);
	ep = test_ep_open(TEST_ID, 0);
	to = test_ep_connect(ep, 8, TEST_ID);
	peer_send(proc, "connected");
	/* until it is killed */
	for (;;)
		sci_send(to, out, FLOOD_LEN);
}

static void rank_b_flooded(struct peer *proc, void *arg)
{
	struct pair l = pair_accept(proc);
	void *in = malloc(FLOOD_LEN);
	int ret;

	(void)arg;
	do {
		ret = sci_recv(l.ep, l.to, in, FLOOD_LEN, NULL);
		atomic_fetch_add(floods, 1);
	} while (!ret);
	CHECK_EQ(ret, -ECONNRESET);
	free(in);
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

/* Stop node 8 while a message is on the way, so that the gateway has bytes for it. */
static void flood_stop(struct peer *b, struct peer *gate)
{
	unsigned int tries = 0;

	do {
		unsigned int before = atomic_load(floods);

		peer_continue(b);
		WAIT_UNTIL(atomic_load(floods) != before, TEST_WAIT_MS);
		CHECK_EQ(kill(peer_pid(b), SIGSTOP), 0);
		WAIT_UNTIL(test_process(peer_pid(b)).state == 'T', TEST_WAIT_MS);
		for (unsigned int i = 0; i < 20 && !gauge_ask(gate, GAUGE_NOW).held; i++)
			test_pause();
	} while (!gauge_ask(gate, GAUGE_NOW).held && tries++ < 1000);
}

/* Node 4 dies while the gateway has bytes for node 8, which is stopped. The gateway sleeps. */
TEST(a_relay_whose_client_has_died_sleeps)
{
	static const struct site a = { 4, { "a" }, "unix", "8=via:12", { 12 } };
	static const struct site b = { 8, { "b" }, "unix", "4=via:12", { 12 } };
	static const struct site site = { 12, { "c" }, "unix", "", { 4, 8 } };
	struct peer *gate = peer_spawn(site.node, gateway_watched, (void *)(uintptr_t)&site);
	struct peer *ranks[2];
	struct gauge g;

	peer_expect(gate, "open");
	site_a = &a;
	site_b = &b;
	floods = test_shared(sizeof(*floods));
	ranks[1] = peer_spawn(8, rank_b_flooded, NULL);
	peer_expect(ranks[1], "there");
	ranks[0] = peer_spawn(4, rank_a_flood, NULL);
	peer_expect(ranks[0], "connected");
	flood_stop(ranks[1], gate);
	peer_kill(ranks[0], SIGKILL);
	g = gauge_ask(gate, GAUGE_CPU);
	test_note("%llu ms of the CPU in %u ms", (unsigned long long)g.cpu_ms, QUIET_MS);
	CHECK(g.held);
	CHECK(g.cpu_ms < QUIET_MS / 10);
	peer_continue(ranks[1]);
	peer_join(ranks[1]);
	CHECK_EQ(gauge_ask(gate, GAUGE_REST).held, 0);
	peer_put(gate, &(int){ GAUGE_END }, sizeof(int));
	peer_join(gate);
}

TEST(without_a_gateway_there_is_no_way)
{
	static const struct site a = { 4, { "a" }, "sci", "8=via:12,8=via:16", { 0 } };
	struct sci_addr addr = { 8, TEST_ID };
	struct sci_peer *to;
	struct sci_ep *ep;

	be_at(&a);
	ep = test_ep_open(TEST_ID, 0);
	CHECK_EQ(sci_connect(ep, &addr, TEST_WAIT_MS, &to), -EHOSTUNREACH);
	CHECK_EQ(sci_ep_close(ep), 0);
}
