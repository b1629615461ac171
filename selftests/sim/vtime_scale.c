// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Test many nodes in virtual time: links, waits, and collective operations.
 * SCI_TEST_NODES is the number of nodes of the test of packets with the most nodes (256).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sci/msg.h>

#include "selftests/harness.h"
#include "sim/vtime/internal.h"
#include "sim/vtime/network.h"
#include "sim/vtime/scale.h"

/* Round figures make times recognisable: a byte takes 10 ns on a link. */
static const struct vt_profile profile = {
	.name = "test", .title = "test",
	.streams = 8, .stream_size = 64, .outstanding = 8,
	.gather = 10 * VT_US,
	.load_local = 30 * VT_NS, .copy_rate = 300000000,
	.line_take = 80 * VT_NS, .check = 30 * VT_NS,
	.bus_line = 700 * VT_NS, .bus_word = 80 * VT_NS,
	.bus_read = 400 * VT_NS,
	.mem_setup = 200 * VT_NS, .mem_rate = 100000000,
	.adapter_out = VT_US, .adapter_in = VT_US,
	.link_header = 16, .link_rate = 100000000, .link_hop = 100 * VT_NS,
	.interrupt = 20 * VT_US, .control = 100 * VT_US,
};

#define BYTE	(10u * VT_NS)
#define HOP	(100u * VT_NS)

static struct vt_sim *machine(unsigned int nodes, const char *topology)
{
	struct vt_sim *s = vt_new(&profile, nodes, topology, 1);

	CHECK(s != NULL);
	return s;
}

/* ---- links ---- */

/* Return the number of links between two nodes, from the time of a lone packet. */
static unsigned int hops(struct vt_sim *s, unsigned int from, unsigned int to)
{
	static uint64_t when;
	uint64_t time;

	when += VT_MS;
	time = network_pass(s->network, from, to, when, 80) - when - 80 * BYTE;
	CHECK_EQ(time % HOP, 0);
	return (unsigned int)(time / HOP);
}

TEST(ways_have_so_many_links)
{
	struct vt_sim *s = machine(8, "ring");

	CHECK_EQ(hops(s, 0, 1), 1);
	CHECK_EQ(hops(s, 1, 0), 7);
	CHECK_EQ(hops(s, 6, 3), 5);
	vt_free(s);
	/* packets leave a ring by the port behind its last node */
	s = machine(10, "rings:4");
	CHECK_EQ(hops(s, 0, 3), 3);
	CHECK_EQ(hops(s, 3, 0), 2);
	CHECK_EQ(hops(s, 1, 4), 3 + 1);
	CHECK_EQ(hops(s, 3, 7), 1 + 4);
	CHECK_EQ(hops(s, 9, 8), 4);
	CHECK_EQ(hops(s, 8, 2), 4 + 3);
	vt_free(s);
	s = machine(12, "torus:4x3");
	CHECK_EQ(hops(s, 0, 3), 3);
	CHECK_EQ(hops(s, 3, 0), 1);
	CHECK_EQ(hops(s, 0, 8), 2);
	CHECK_EQ(hops(s, 8, 0), 1);
	CHECK_EQ(hops(s, 5, 10), 1 + 1);
	CHECK_EQ(hops(s, 11, 0), 1 + 1);
	CHECK_EQ(hops(s, 6, 1), 3 + 2);
	vt_free(s);
}

TEST(neighbours_are_those_beside)
{
	struct vt_sim *s = machine(12, "torus:4x3");
	unsigned int out[4];

	CHECK_EQ(vt_network_neighbours(s, 4, out), 4);
	CHECK(out[0] == 5 && out[1] == 7 && out[2] == 8 && out[3] == 0);
	CHECK_EQ(vt_network_neighbours(s, 11, out), 4);
	CHECK(out[0] == 8 && out[1] == 10 && out[2] == 3 && out[3] == 7);
	vt_free(s);
	/* with two nodes in a row, predecessor and successor are the same */
	s = machine(6, "torus:2x3");
	CHECK_EQ(vt_network_neighbours(s, 0, out), 3);
	vt_free(s);
	s = machine(9, "rings:3");
	CHECK_EQ(vt_network_neighbours(s, 8, out), 2);
	CHECK(out[0] == 0 && out[1] == 7);
	vt_free(s);
	s = machine(2, NULL);
	CHECK_EQ(vt_network_neighbours(s, 1, out), 1);
	vt_free(s);
}

TEST(packets_wait_for_a_link)
{
	struct vt_sim *s = machine(8, "ring");
	struct vt_network *net = s->network;
	struct vt_network_load load;

	CHECK_EQ(network_pass(net, 0, 2, 0, 80), 2 * HOP + 80 * BYTE);
	/* the second packet waits for the first one at link 0, and nowhere else */
	CHECK_EQ(network_pass(net, 0, 2, 0, 16),
		 80 * BYTE + 2 * HOP + 16 * BYTE);
	CHECK_EQ(network_pass(net, 1, 2, 0, 1), HOP + BYTE);
	vt_network_load(s, &load);
	CHECK_EQ(load.links, 8);
	CHECK_EQ(load.packets, 3);
	CHECK_EQ(load.bytes, 97);
	CHECK_EQ(load.busiest, 97 * BYTE);
	CHECK_EQ(load.mean, (96 + 97) * BYTE / 8);
	vt_network_clear(s);
	vt_network_load(s, &load);
	CHECK_EQ(load.busiest + load.packets + load.bytes, 0);
	vt_free(s);
}

/* A packet that comes to a link later does not delay an earlier one. */
TEST(gaps_are_filled)
{
	struct vt_sim *s = machine(8, "ring");
	struct vt_network *net = s->network;

	network_pass(net, 0, 2, 1000 * BYTE, 80);
	/* link 1 is occupied from 1000 * BYTE + HOP on */
	CHECK_EQ(network_pass(net, 1, 2, 0, 80), HOP + 80 * BYTE);
	CHECK_EQ(network_pass(net, 1, 2, 0, 800), 80 * BYTE + HOP + 800 * BYTE);
	/* the gap before that is 120 * BYTE + HOP, which is 130 bytes */
	CHECK_EQ(network_pass(net, 1, 2, 0, 131), 1090 * BYTE + HOP + 131 * BYTE);
	CHECK_EQ(network_pass(net, 1, 2, 0, 130), 880 * BYTE + HOP + 130 * BYTE);
	CHECK_EQ(network_pass(net, 1, 2, 0, 16), 1221 * BYTE + HOP + 16 * BYTE);
	vt_free(s);
}

TEST(bad_topologies_are_refused)
{
	static const char *const bad[] = {
		"", "star", "rings", "ring2", "rings:", "rings:0", "rings:9",
		"rings:4x", "rings:-4", "torus:", "torus:8", "torus:3x3",
		"torus:0x8", "torus:2x4x1", "torus:-2x-4",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(vt_new(&profile, 8, bad[i], 1) == NULL);
	CHECK(vt_new(&profile, 0, NULL, 1) == NULL);
	CHECK(vt_new(&profile, VT_NODES_MAX + 1, NULL, 1) == NULL);
}

/* ---- programs ---- */

static void waits_for_ever(struct vt_node *n, void *arg)
{
	*(int *)arg += 1;
	vt_wait(n, vt_touches(n), VT_NEVER);
	*(int *)arg += 10;
}

static void touches_first(struct vt_node *n, void *arg)
{
	vt_busy(n, VT_US);
	vt_sync(n);
	vt_touch(vt_node(arg, 0));
}

TEST(a_program_that_waits_for_ever_is_told)
{
	struct vt_sim *s = machine(3, NULL);
	int steps = 0;

	vt_start(vt_node(s, 0), waits_for_ever, &steps);
	vt_start(vt_node(s, 1), waits_for_ever, &steps);
	vt_start(vt_node(s, 2), touches_first, s);
	CHECK(!vt_run(s));
	CHECK_EQ(steps, 12);
	CHECK_EQ(vt_clock(vt_node(s, 0)), VT_US);
	vt_free(s);
}

#define WAITS	1000u

static void waits_long(struct vt_node *n, void *arg)
{
	size_t most = 0;

	for (unsigned int i = 0; i < WAITS; i++) {
		vt_wait(n, vt_touches(n), vt_clock(n) + VT_MS);
		CHECK_EQ(vt_clock(n), (i + 1) * (uint64_t)VT_US);
		most = n->sim->events > most ? n->sim->events : most;
	}
	*(size_t *)arg = most;
	/* a limit before that of the last wait, which is queued, then one behind it */
	vt_wait(n, vt_touches(n), vt_clock(n) + VT_US);
	CHECK_EQ(vt_clock(n), (WAITS + 1) * (uint64_t)VT_US);
	vt_wait(n, vt_touches(n), vt_clock(n) + 5 * (uint64_t)VT_MS);
	CHECK_EQ(vt_clock(n), (WAITS + 1) * (uint64_t)VT_US +
				      5 * (uint64_t)VT_MS);
	/* a limit in the past and a touch already seen do not wait */
	vt_wait(n, vt_touches(n), vt_clock(n));
	vt_wait(n, vt_touches(n) - 1, VT_NEVER);
}

static void touches_often(struct vt_node *n, void *arg)
{
	for (unsigned int i = 0; i < WAITS; i++) {
		vt_busy(n, VT_US);
		vt_sync(n);
		vt_touch(vt_node(arg, 0));
	}
}

TEST(limits_of_waits_do_not_pile_up)
{
	struct vt_sim *s = machine(2, NULL);
	size_t most = 0;

	vt_start(vt_node(s, 0), waits_long, &most);
	vt_start(vt_node(s, 1), touches_often, s);
	CHECK(vt_run(s));
	CHECK(most < 20);
	vt_free(s);
}

static void tries_for_ever(struct vt_node *n, void *arg)
{
	for (;;) {
		*(unsigned int *)arg += 1;
		vt_wait(n, vt_touches(n), vt_clock(n) + VT_MS);
	}
}

TEST(a_program_that_tries_for_ever_is_given_up)
{
	struct vt_sim *s = machine(1, NULL);
	unsigned int tries = 0;

	vt_set_limit(s, 10 * (uint64_t)VT_MS + VT_US);
	vt_start(vt_node(s, 0), tries_for_ever, &tries);
	CHECK(!vt_run(s));
	CHECK_EQ(tries, 11);
	vt_free(s);
}

static void computes_for_ever(struct vt_node *n, void *arg)
{
	for (;;) {
		*(unsigned int *)arg += 1;
		vt_busy(n, VT_MS);
		vt_sync(n);
	}
}

static void ends_at_once(struct vt_node *n, void *arg)
{
	(void)n;
	(void)arg;
}

TEST(a_program_that_never_waits_is_given_up)
{
	struct vt_sim *s = machine(2, NULL);
	unsigned int steps = 0;

	vt_set_limit(s, 10 * (uint64_t)VT_MS);
	vt_start(vt_node(s, 0), computes_for_ever, &steps);
	vt_start(vt_node(s, 1), ends_at_once, NULL);
	CHECK(!vt_run(s));
	CHECK_EQ(steps, 11);
	/* a higher limit continues the program */
	vt_set_limit(s, 12 * (uint64_t)VT_MS);
	CHECK(!vt_run(s));
	CHECK_EQ(steps, 13);
	vt_free(s);
}

/* ---- collective operations ---- */

static void run(const struct scale_setup *setup, struct scale_result *r)
{
	if (!scale_run(setup, r))
		FAIL("%s of %u nodes, %zu bytes, %s, loss %u",
		     scale_name(setup->pattern), setup->nodes, setup->bytes,
		     setup->topology, setup->loss);
}

static void run_all(unsigned int nodes, const char *topology, size_t bytes,
		    uint32_t loss)
{
	for (int i = 0; i < SCALE_PATTERNS; i++) {
		const struct scale_setup setup = {
			.profile = &profile, .topology = topology,
			.pattern = (enum scale_pattern)i, .nodes = nodes,
			.bytes = bytes, .seed = 1, .loss = loss,
		};
		struct scale_result r;

		run(&setup, &r);
		/* these calls send no empty messages */
		if (!bytes && (i == SCALE_BROADCAST || i == SCALE_ALLTOALL))
			continue;
		CHECK(r.time && r.first);
		/* a connection takes longer than some packets */
		CHECK(r.first > r.time || loss || bytes > SCI_SHORT_MAX);
		CHECK(r.load.busiest && r.load.busiest >= r.load.mean);
	}
}

TEST(any_number_of_nodes)
{
	for (unsigned int n = 2; n <= 17; n++) {
		run_all(n, "ring", 8, 0);
		run_all(n, "rings:2", 8, 0);
		run_all(n, "torus", 8, 0);
	}
}

TEST(any_length)
{
	static const size_t bytes[] = { 0, 1, 62, 63, 1000, 9000, 40000 };

	for (size_t i = 0; i < ARRAY_LEN(bytes); i++)
		run_all(6, "torus:3x2", bytes[i], 0);
}

TEST(what_is_lost_comes_all_the_same)
{
	run_all(6, "ring", 200, 1000);
	run_all(6, "rings:3", 200, 50000);
	run_all(6, "torus:2x3", 9000, 50000);
}

/* Compare results, except the host's figures, which are the last members. */
static void check_same(const struct scale_result *a,
		       const struct scale_result *b)
{
	CHECK(!memcmp(a, b, offsetof(struct scale_result, host_bytes)));
}

TEST(the_same_again_is_the_same)
{
	struct scale_setup setup = {
		.profile = &profile, .topology = "torus:4x4", .nodes = 16,
		.pattern = SCALE_ALLTOALL, .bytes = 500, .seed = 3,
		.loss = 10000,
	};
	struct scale_result a, b;

	run(&setup, &a);
	run(&setup, &b);
	check_same(&a, &b);
	setup.seed = 4;
	run(&setup, &b);
	CHECK(a.time != b.time);
	setup.loss = 0;
	setup.bytes = 1;
	run(&setup, &a);
	run(&setup, &b);
	check_same(&a, &b);
}

TEST(peers_are_connected_on_demand)
{
	struct scale_setup setup = {
		.profile = &profile, .topology = "torus:4x4", .nodes = 16,
		.bytes = 8, .seed = 1,
	};
	static const struct {
		enum scale_pattern pattern;
		unsigned int most, all;
	} want[] = {
		{ SCALE_BARRIER, 7, 16 * 7 },	/* peers in distances 1, 2, 4 and 8 */
		{ SCALE_BROADCAST, 4, 15 * 2 },
		{ SCALE_ALLREDUCE, 4, 16 * 4 },
		{ SCALE_NEIGHBOURS, 4, 16 * 4 },
		{ SCALE_ALLTOALL, 7, 16 * 7 },	/* Bruck: as the barrier */
		{ SCALE_STAR, 15, 15 * 2 },
	};

	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		struct scale_result r;

		setup.pattern = want[i].pattern;
		run(&setup, &r);
		CHECK_EQ(r.peers, want[i].most);
		CHECK_EQ(r.all_peers, want[i].all);
		/* the peer's inbox and its bell */
		CHECK_EQ(r.att, 2 * r.peers);
		CHECK(r.receive >= r.peers * 4096);
		CHECK_EQ(r.receive * r.all_peers, r.all_receive * r.peers);
	}
}

/* Long data goes from one member to the next, in the order of the nodes. */
TEST(a_long_broadcast_goes_along_a_chain)
{
	struct scale_setup setup = {
		.profile = &profile, .topology = "ring", .nodes = 16,
		.pattern = SCALE_BROADCAST, .bytes = 65536, .seed = 1,
	};
	struct scale_result r;

	run(&setup, &r);
	CHECK_EQ(r.peers, 2);
	CHECK_EQ(r.all_peers, 2 * 15);
	setup.bytes--;
	run(&setup, &r);
	CHECK_EQ(r.peers, 4);
}

/* Very short parts go through other members, in log2 n rounds. */
TEST(an_all_to_all_of_short_parts_takes_few_messages)
{
	struct scale_setup setup = {
		.profile = &profile, .topology = "torus", .nodes = 16,
		.pattern = SCALE_ALLTOALL, .bytes = 1, .seed = 1,
	};
	struct scale_result r;

	/* a round sends 8 bytes from each to one other, a line and its answer */
	run(&setup, &r);
	CHECK_EQ(r.load.packets, 2 * 16 * 4);
	setup.bytes = 9;
	run(&setup, &r);
	CHECK_EQ(r.load.packets, 2 * 16 * 15);
	setup.bytes = 1;
	setup.nodes = 15;
	run(&setup, &r);
	CHECK_EQ(r.load.packets, 2 * 15 * 14);
}

/* A message of 8 bytes is one line, which the target acknowledges. */
static void packets_check(enum scale_pattern pattern, unsigned int nodes, uint64_t messages)
{
	struct scale_setup setup = {
		.profile = &profile, .topology = "torus", .pattern = pattern,
		.nodes = nodes, .bytes = 8, .seed = 1,
	};
	struct scale_result r;

	run(&setup, &r);
	if (r.load.packets != 2 * messages)
		FAIL("%s of %u nodes: %llu packets, not two for each of %llu messages",
		     scale_name(pattern), nodes, (unsigned long long)r.load.packets,
		     (unsigned long long)messages);
	CHECK_EQ(r.resent, 0);
}

static void packets_check_all(unsigned int n)
{
	unsigned int up = 0;

	while (1u << up < n)
		up++;
	packets_check(SCALE_BARRIER, n, n * up);
	packets_check(SCALE_BROADCAST, n, n - 1);
	/* recursive doubling, or a reduction to rank 0 and a broadcast */
	packets_check(SCALE_ALLREDUCE, n, n == 1u << up ? n * up : 2 * (n - 1));
}

TEST(operations_send_as_many_packets_as_they_must)
{
	static const unsigned int nodes[] = { 2, 3, 4, 6, 16, 23, 64 };

	for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
		packets_check_all(nodes[i]);
}

TEST(operations_of_many_nodes_send_as_many_packets_as_they_must)
{
	const char *nodes = getenv("SCI_TEST_NODES");

	packets_check_all(nodes ? (unsigned int)atoi(nodes) : 256);
}

/* Each peer of a node takes an entry of its export table. */
TEST(a_node_has_no_more_peers_than_exports)
{
	struct scale_setup setup = {
		.profile = &profile, .nodes = VT_EXPORTS + 1,
		.pattern = SCALE_STAR, .bytes = 8, .seed = 1,
	};
	struct scale_result r;

	if (TEST_ASAN)
		SKIP("a thousand nodes take long with the address sanitizer");
	run(&setup, &r);
	CHECK_EQ(r.peers, VT_EXPORTS);
	setup.nodes++;
	CHECK(!scale_run(&setup, &r));
}
