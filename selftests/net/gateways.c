// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Processes of virtual clusters that have no network in common, and gateways between
 * them.  Rank A is node 4 of cluster "a", rank B is node 8 of cluster "b".
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
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

static void rank_b(struct peer *proc, void *arg)
{
	struct pair l = { .proc = proc };

	(void)arg;
	be_at(site_b);
	l.ep = test_ep_open(TEST_ID, 0);
	peer_send(proc, "there");
	l.to = test_ep_accept(l.ep);
	CHECK(l.to->stream);
	exchange(l.ep, l.to, 1);
	exchange_memory(&l);
	pair_close(&l);
}

static void run_pair(const struct site *a, const struct site *b)
{
	struct peer *p;
	struct pair l;

	site_b = b;
	p = peer_spawn(b->node, rank_b, NULL);
	peer_expect(p, "there");
	be_at(a);
	l.proc = p;
	l.ep = test_ep_open(TEST_ID, 0);
	l.to = test_ep_connect(l.ep, b->node, TEST_ID);
	CHECK(l.to->stream);
	exchange(l.ep, l.to, 1);
	exchange_memory(&l);
	pair_close(&l);
	peer_join(p);
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

/* Exchange numbered messages of all lengths; @victim dies half-way. */
static void traffic(struct pair *l, struct peer *victim)
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
		if (victim && i == ROUNDS / 2)
			CHECK_EQ(kill(peer_pid(victim), SIGKILL), 0);
		CHECK_EQ(sci_itrecv(l->ep, l->to, 7, i, 0, in, ROUND_MAX, &reqs[1]), 0);
		CHECK_EQ(sci_waitall(reqs, 2, TEST_WAIT_MS, st), 0);
		CHECK_EQ(st[1].len, len);
		CHECK_BYTES(in, len, i);
	}
	free(out);
	free(in);
}

static _Atomic bool *b_done;

static void rank_b_bereft(struct peer *proc, void *arg)
{
	struct pair l = { .proc = proc };
	char c;

	(void)arg;
	be_at(site_b);
	l.ep = test_ep_open(TEST_ID, 0);
	peer_send(proc, "there");
	l.to = test_ep_accept(l.ep);
	traffic(&l, NULL);
	atomic_store(b_done, true);
	CHECK_EQ(sci_recv(l.ep, l.to, &c, 1, NULL), -ECONNRESET);
	peer_send(proc, "told");
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

/* One of two gateways may die without a loss; the death of both ends the connection. */
TEST(another_gateway_takes_over)
{
	static const struct site a = { 4, { "a" }, "sci", "8=via:12,8=via:16", { 0 } };
	static const struct site b = { 8, { "b" }, "sci", "4=via:12,4=via:16", { 0 } };
	static const struct site g1 = { 12, { "a", "b" }, "sci", "", { 0 } };
	static const struct site g2 = { 16, { "a", "b" }, "sci", "", { 0 } };
	struct peer *first = gateway_start(&g1), *second = gateway_start(&g2), *p;
	struct pair l;
	char c;

	b_done = test_shared(sizeof(*b_done));
	site_b = &b;
	p = peer_spawn(b.node, rank_b_bereft, NULL);
	peer_expect(p, "there");
	be_at(&a);
	l.proc = p;
	l.ep = test_ep_open(TEST_ID, 0);
	l.to = test_ep_connect(l.ep, b.node, TEST_ID);
	/* node 4 begins with the second gateway */
	traffic(&l, second);
	WAIT_UNTIL((sci_progress(l.ep), atomic_load(b_done)), TEST_WAIT_MS);
	CHECK_EQ(kill(peer_pid(first), SIGKILL), 0);
	CHECK_EQ(sci_recv(l.ep, l.to, &c, 1, NULL), -ECONNRESET);
	peer_expect(p, "told");
	CHECK_EQ(sci_ep_close(l.ep), 0);
	peer_join(p);
}

static void rank_b_traffic(struct peer *proc, void *arg)
{
	struct pair l = { .proc = proc };

	(void)arg;
	be_at(site_b);
	l.ep = test_ep_open(TEST_ID, 0);
	peer_send(proc, "there");
	l.to = test_ep_accept(l.ep);
	traffic(&l, NULL);
	pair_close(&l);
}

TEST(processes_fork_meanwhile)
{
	static const struct site a = { 4, { "a" }, "sci", "8=via:12", { 0 } };
	static const struct site b = { 8, { "b" }, "sci", "4=via:12", { 0 } };
	static const struct site g = { 12, { "a", "b" }, "sci", "", { 0 } };
	struct peer *gate = gateway_start(&g), *p;
	struct pair l;

	forks = true;
	site_b = &b;
	p = peer_spawn(b.node, rank_b_traffic, NULL);
	peer_expect(p, "there");
	be_at(&a);
	l.proc = p;
	l.ep = test_ep_open(TEST_ID, 0);
	l.to = test_ep_connect(l.ep, b.node, TEST_ID);
	traffic(&l, NULL);
	pair_close(&l);
	peer_join(p);
	gateway_end(gate);
}

/* ---- polling ---- */

#define PINGS		2000u
#define RARE_MISSES	5u	/* at least 2^5 turns with bytes come before the next poll */
#define QUIET_MS	300u

enum { GAUGE_END, GAUGE_REST, GAUGE_QUIET };

struct gauge {
	uint64_t polls;
	uint64_t now_ms;
	unsigned int busy;		/* relays that are polled */
	unsigned int misses;		/* greatest number of a relay */
};

static struct gauge gauge_read(struct net *net)
{
	struct gauge g;

	pthread_mutex_lock(&net->svc.lock);
	g = (struct gauge){ net->svc.polls, net->now_ms, net->n_busy, 0 };
	for (struct list *pos = net->forwards.next; pos != &net->forwards; pos = pos->next) {
		const struct net_forward *f = container_of(pos, struct net_forward, link);

		g.misses = f->misses > g.misses ? f->misses : g.misses;
	}
	pthread_mutex_unlock(&net->svc.lock);
	return g;
}

static void gateway_watched(struct peer *proc, void *arg)
{
	struct sci_fabric *f = gateway_open(arg);
	int command;

	peer_send(proc, "open");
	while (PEER_GET(proc, command), command != GAUGE_END) {
		struct gauge g, later;

		WAIT_UNTIL((g = gauge_read(net_of(f))).busy == 0, TEST_WAIT_MS);
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
	struct pair l = { .proc = proc };
	char c;

	(void)arg;
	be_at(site_b);
	l.ep = test_ep_open(TEST_ID, 0);
	peer_send(proc, "there");
	l.to = test_ep_accept(l.ep);
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
	struct peer *gate = peer_spawn(site.node, gateway_watched, (void *)(uintptr_t)&site), *p;
	struct gauge before, after;
	unsigned int sent = 0;
	struct pair l;
	char c = 1;

	peer_expect(gate, "open");
	site_b = &b;
	p = peer_spawn(b.node, rank_b_pings, NULL);
	peer_expect(p, "there");
	be_at(&a);
	l.proc = p;
	l.ep = test_ep_open(TEST_ID, 0);
	l.to = test_ep_connect(l.ep, b.node, TEST_ID);
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
	peer_join(p);
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
