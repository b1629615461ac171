// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Processes of virtual clusters that have no network in common, and gateways between
 * them.  Rank A is node 4 of cluster "a", rank B is node 8 of cluster "b".
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "libsci/msg/endpoint.h"
#include "selftests/net/exchange.h"

/* ---- gateways ---- */

struct site {
	unsigned int node;
	const char *clusters[3];	/* of a gateway; a rank is in the first one */
	const char *net;		/* SCI_NET: a kind of sockets, or "sci" */
	const char *peers;		/* entries of SCI_NET_PEERS with via: */
	unsigned int reached[2];	/* nodes that it reaches by sockets */
};

/* Names of clusters and addresses of this run. */
static void be_at(const struct site *s)
{
	char peers[1024], all[4096], text[16];
	size_t len;

	test_use_net(strcmp(s->net, "sci") ? s->net : "unix", s->node);
	snprintf(all, sizeof(all), "%s", getenv("SCI_NET_PEERS"));
	len = (size_t)snprintf(peers, sizeof(peers), "%s", s->peers);
	for (unsigned int i = 0; i < 2 && s->reached[i]; i++) {
		const char *at;

		/* node 4 is the first */
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

static void gateway(struct peer *proc, void *arg)
{
	const struct site *s = arg;
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
	peer_send(proc, "open");
	/* until it is killed, or is not needed any more */
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

/* ---- the ends ---- */

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

/* Ring, gateway, sockets, gateway, ring. */
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
