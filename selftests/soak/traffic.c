// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Tests messages between four nodes for a long time.  All protocols are in use at
 * once, and every byte is checked.  Between batches, parameters change, connections
 * end and begin again, and endpoints close and open.
 *
 *	SECONDS		duration in seconds (600)
 *	SCI_FAULT	faults on all nodes, such as "loss=0.01,reorder=0.01"
 *	SCI_TEST_SEED	repeats a run
 *
 * All nodes draw from the same seed, so they make the same changes without messages.
 */
#include "selftests/msg/traffic.h"

#define NODES		4u
#define BATCH		60u		/* messages of a flow */
#define REPORT_MS	10000u

struct soak {
	struct meeting meeting;
	uint64_t seed;
	uint64_t until_ms;
	char fault[128];
	_Atomic bool more;
	_Atomic uint64_t messages, bytes;	/* received, all nodes */
	_Atomic uint64_t way[WAYS];		/* sent, by protocol */
	_Atomic uint64_t lines, blocks;		/* retransmitted */
	_Atomic uint64_t sleeps, bells;
	_Atomic unsigned int batches;
};

static struct soak *soak;

struct node {
	unsigned int me;
	struct traffic t;
	struct sci_peer *peer[NODES];
	uint64_t state;			/* the same on all nodes */
	uint64_t generation;		/* counts node_flows() */
};

static unsigned int soak_seconds(void)
{
	const char *s = getenv("SECONDS");
	unsigned int n = s ? (unsigned int)strtoul(s, NULL, 0) : 0;

	return n ? n : 600;
}

/* Raise the harness's time limit, which is for short tests. It is read when a test begins. */
__attribute__((constructor))
static void raise_limit(void)
{
	char limit[16];

	snprintf(limit, sizeof(limit), "%u", soak_seconds() + 120);
	setenv("SCI_TEST_TIMEOUT", limit, 0);
}

/* ---- one node ---- */

static void node_open(struct node *n)
{
	n->t.ep = test_ep_open(TEST_ID, draw(&n->state, 4) ? 0 : SCI_EP_CRC);
	traffic_params(n->t.ep, WAY_ALL);
}

static void node_connect(struct node *n)
{
	/* the order differs by node: either end of a connection may be the first to connect */
	for (unsigned int k = 1; k < NODES; k++) {
		unsigned int other = (n->me + k) % NODES;

		n->peer[other] = test_ep_connect(n->t.ep, 4 * (other + 1),
						 TEST_ID);
	}
}

static void node_disconnect(struct node *n)
{
	for (unsigned int k = 0; k < NODES; k++) {
		if (n->peer[k])
			CHECK_EQ(sci_disconnect(n->peer[k]), 0);
		n->peer[k] = NULL;
	}
}

/* Begin flows with every other node: untagged and in two contexts, in both directions. */
static void node_flows(struct node *n)
{
	n->generation++;
	for (unsigned int k = 0; k < NODES * 6; k++) {
		unsigned int other = k / 6;
		struct flow f = {
			.peer = n->peer[other], .limit = BATCH,
			.seed = soak->seed + n->generation,
			.stream = k % 3, .ways = WAY_ALL,
			.sends = k / 3 & 1,
		};

		if (other == n->me)
			continue;
		f.source = 4 * ((f.sends ? n->me : other) + 1);
		f.dest = 4 * ((f.sends ? other : n->me) + 1);
		traffic_flow(&n->t, f);
	}
}

static void node_parameters(struct node *n)
{
	static const uint64_t sizes[] = {
		4096, 8192, 16384, 65536, 1u << 20
	};
	struct sci_ep *ep = n->t.ep;

	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_EAGER_MAX,
			    draw(&n->state, 16384)), 0);
	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_BLOCK,
			    64 + draw(&n->state, 65536)), 0);
	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_EAGER_RING,
			    sizes[draw(&n->state, ARRAY_LEN(sizes))]), 0);
	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_XFER_RING,
			    sizes[draw(&n->state, ARRAY_LEN(sizes))]), 0);
	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_SINGLE_COPY_MIN,
			    draw(&n->state, 2) ? UINT64_MAX :
			    draw(&n->state, 100000)), 0);
	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_ATTACH_AFTER,
			    draw(&n->state, 20000)), 0);
	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_UNEXPECTED_MAX,
			    draw(&n->state, 2) ? 64u << 20 : 65536), 0);
	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_SPIN_US,
			    draw(&n->state, 200)), 0);
}

static void node_count(struct node *n, struct sci_ep_stats *last)
{
	struct sci_ep_stats s = test_ep_stats(n->t.ep);
	const uint64_t ways[WAYS][2] = {
		[WAY_SHORT] = { s.sent_short, last->sent_short },
		[WAY_LINES] = { s.sent_lines, last->sent_lines },
		[WAY_EAGER] = { s.sent_eager, last->sent_eager },
		[WAY_RENDEZVOUS] = {
			s.sent_rendezvous, last->sent_rendezvous
		},
		[WAY_ZCOPY] = { s.sent_zcopy, last->sent_zcopy },
		[WAY_SINGLE_COPY] = {
			s.sent_single_copy, last->sent_single_copy
		},
	};

	for (unsigned int w = 0; w < WAYS; w++)
		atomic_fetch_add(&soak->way[w], ways[w][0] - ways[w][1]);
	atomic_fetch_add(&soak->lines, s.resent_lines - last->resent_lines);
	atomic_fetch_add(&soak->blocks, s.resent_blocks - last->resent_blocks);
	atomic_fetch_add(&soak->sleeps, s.sleeps - last->sleeps);
	atomic_fetch_add(&soak->bells, s.bells - last->bells);
	CHECK_EQ(s.crc_errors, 0);
	CHECK_EQ(s.unexpected, 0);
	CHECK_EQ(s.unexpected_bytes, 0);
	*last = s;
	for (unsigned int i = 0; i < n->t.n; i++) {
		struct flow *f = &n->t.flow[i];

		CHECK_EQ(f->done, f->limit);
		if (f->sends)
			continue;
		atomic_fetch_add(&soak->messages, f->done);
		atomic_fetch_add(&soak->bytes, f->bytes);
	}
}

static void report(uint64_t *next)
{
	if (test_now_ms() < *next)
		return;
	*next = test_now_ms() + REPORT_MS;
	test_note("%u batches, %llu messages, %llu MiB; %llu short, %llu "
		  "lines, %llu eager, %llu rendezvous, %llu zero-copy, %llu "
		  "single copy; sent again: %llu lines, %llu blocks; %llu "
		  "sleeps, %llu bells", atomic_load(&soak->batches),
		  (unsigned long long)soak->messages,
		  (unsigned long long)soak->bytes >> 20,
		  (unsigned long long)soak->way[WAY_SHORT],
		  (unsigned long long)soak->way[WAY_LINES],
		  (unsigned long long)soak->way[WAY_EAGER],
		  (unsigned long long)soak->way[WAY_RENDEZVOUS],
		  (unsigned long long)soak->way[WAY_ZCOPY],
		  (unsigned long long)soak->way[WAY_SINGLE_COPY],
		  (unsigned long long)soak->lines,
		  (unsigned long long)soak->blocks,
		  (unsigned long long)soak->sleeps,
		  (unsigned long long)soak->bells);
}

/* Return whether there is time for another batch. Node 4 decides for all nodes. */
static bool goes_on(struct node *n, uint64_t *next)
{
	bool more;

	if (!n->me) {
		atomic_fetch_add(&soak->batches, 1);
		atomic_store(&soak->more, test_now_ms() < soak->until_ms);
		report(next);
	}
	meet(n->t.ep, &soak->meeting, NODES);
	more = atomic_load(&soak->more);
	meet(n->t.ep, &soak->meeting, NODES);
	return more;
}

static void live(unsigned int me)
{
	static struct node n;
	struct sci_ep_stats last = { .peers = 0 };
	uint64_t next = test_now_ms() + REPORT_MS;
	unsigned int change;

	setenv("SCI_FAULT", soak->fault, 1);
	n.me = me;
	n.state = soak->seed;
	node_open(&n);
	node_connect(&n);
	for (;;) {
		node_flows(&n);
		traffic_run(&n.t);
		node_count(&n, &last);
		traffic_free(&n.t);
		if (!goes_on(&n, &next))
			break;
		change = (unsigned int)draw(&n.state, 16);
		node_parameters(&n);
		if (change >= 3)
			continue;
		/* all nodes must have disconnected before any node connects again */
		node_disconnect(&n);
		meet(n.t.ep, &soak->meeting, NODES);
		if (!change) {
			CHECK_EQ(sci_ep_close(n.t.ep), 0);
			memset(&last, 0, sizeof(last));
			node_open(&n);
		}
		node_connect(&n);
	}
	CHECK_EQ(sci_ep_close(n.t.ep), 0);
	next = 0;
	if (!me)
		report(&next);
}

static void other_node(struct peer *self, void *arg)
{
	(void)self;
	(void)arg;
	live((unsigned int)atoi(getenv("SCI_NODE")) / 4 - 1);
}

/* The harness removes SCI_FAULT from the environment of tests: save it. */
static char fault[128];

__attribute__((constructor))
static void keep_fault(void)
{
	const char *s = getenv("SCI_FAULT");

	if (s)
		snprintf(fault, sizeof(fault), "%s", s);
}

TEST(traffic)
{
	struct peer *p[NODES];

	soak = test_shared(sizeof(*soak));
	soak->seed = traffic_seed();
	soak->until_ms = test_now_ms() + soak_seconds() * 1000ull;
	snprintf(soak->fault, sizeof(soak->fault), "%s", fault);
	test_note("%u seconds, SCI_FAULT=%s, SCI_TEST_SEED=%#llx",
		  soak_seconds(), soak->fault, (unsigned long long)soak->seed);
	for (unsigned int k = 1; k < NODES; k++)
		p[k] = peer_spawn(4 * (k + 1), other_node, NULL);
	live(0);
	for (unsigned int k = 1; k < NODES; k++)
		peer_join(p[k]);
	for (unsigned int w = 0; w < WAYS; w++)
		if (!soak->way[w])
			FAIL("no message went as %s", way_lengths(w).name);
}
