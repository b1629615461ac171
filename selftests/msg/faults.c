// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * A fabric that loses, reorders and duplicates packets, or whose link goes down
 * for a while: every byte of every message arrives once and in order, and no
 * call hangs.
 *
 * Both nodes have the faults. They meet in shared memory, which has none.
 */
#include <signal.h>

#include "libsci/fabric/core/fault.h"
#include "libsci/msg/endpoint.h"
#include "selftests/msg/traffic.h"

/* Return a number of messages that takes many packets. */
static uint64_t way_count(enum way way)
{
	static const unsigned int count[WAYS] = {
		[WAY_SHORT] = 800, [WAY_LINES] = 160, [WAY_EAGER] = 80,
		[WAY_RENDEZVOUS] = 16, [WAY_ZCOPY] = 16,
		[WAY_SINGLE_COPY] = 40,
	};

	return count[way] / TRAFFIC_SLOW + 4;
}

/* State that both nodes share. */
struct stage {
	const char *fault;
	unsigned int flags;		/* flags of sci_ep_open() */
	unsigned int directions;	/* 1: from node 4, 2: from 8, 3: both */
	uint64_t seed;
	uint64_t run_ms;		/* least duration of a case */
	struct meeting meeting;
	_Atomic bool more;
	_Atomic uint64_t lines, blocks;	/* resent in all cases */
	_Atomic uint64_t resent[WAYS];	/* resent by each way */
	_Atomic uint64_t messages;
	struct sci_fault_counts faults;	/* injected in all cases */
	_Atomic uint64_t down_ms;	/* time that the link was down */
};

struct act {
	uint32_t number;		/* id of the endpoint */
	unsigned int ways;
	unsigned int streams;		/* bits: 1 untagged, 2 tagged */
	uint64_t count;
};

static struct sci_peer *act_connect(struct sci_ep *ep, bool first,
				    uint32_t number)
{
	struct sci_addr addr = { 4, number };
	struct sci_peer *peer = NULL;

	if (first)
		return test_ep_accept(ep);
	CHECK_EQ(sci_connect(ep, &addr, TEST_WAIT_MS, &peer), 0);
	return peer;
}

static void act_flows(struct stage *st, const struct act *a, struct traffic *t,
		      struct sci_peer *peer, bool first)
{
	for (unsigned int k = 0; k < 4; k++) {
		struct flow f = {
			.peer = peer, .seed = st->seed + a->number,
			.ways = a->ways, .stream = k / 2, .limit = 0,
			.source = k & 1 ? 8 : 4, .dest = k & 1 ? 4 : 8,
			.sends = (k & 1) == !first,
		};

		if (a->streams & 1u << k / 2 && st->directions & 1u << (k & 1))
			traffic_flow(t, f);
	}
}

/* Return true if another batch follows. The first node decides for both. */
static bool act_goes_on(struct stage *st, struct sci_ep *ep, bool first,
			uint64_t until)
{
	bool more;

	if (first)
		atomic_store(&st->more, test_now_ms() < until);
	meet(ep, &st->meeting, 2);
	more = atomic_load(&st->more);
	meet(ep, &st->meeting, 2);
	return more;
}

static void faults_add(struct sci_fault_counts *sum)
{
	const struct sci_fault_counts *c = &sci_fault_counts;

	atomic_fetch_add(&sum->lost, c->lost);
	atomic_fetch_add(&sum->cut, c->cut);
	atomic_fetch_add(&sum->late, c->late);
	atomic_fetch_add(&sum->copies, c->copies);
}

static uint64_t link_down_ms(struct sci_ep *ep)
{
	struct sci_adapter_info info;

	CHECK_EQ(ep->ops->query.adapter(ep->fabric, 0, &info), 0);
	return info.link_down_ms;
}

/* Add what the endpoint of @t has counted. @down_ms: link_down_ms() at its open */
static void act_count(struct stage *st, const struct act *a, struct traffic *t, uint64_t down_ms)
{
	struct sci_ep_stats s = test_ep_stats(t->ep);

	atomic_fetch_add(&st->lines, s.resent_lines);
	atomic_fetch_add(&st->blocks, s.resent_blocks);
	for (unsigned int w = 0; w < WAYS; w++)
		if (a->ways == 1u << w)
			atomic_fetch_add(&st->resent[w], s.resent_lines +
					 s.resent_blocks);
	atomic_fetch_add(&st->messages, traffic_done(t));
	faults_add(&st->faults);
	atomic_fetch_add(&st->down_ms, link_down_ms(t->ep) - down_ms);
	CHECK_EQ(s.crc_errors, 0);
}

static bool has_loss(const struct stage *st)
{
	return strstr(st->fault, "loss=0.");
}

/*
 * Return whether a fault has had no effect yet: few packets may all arrive, and on a busy machine
 * the link may be up again too early.
 */
static bool lacks_faults(const struct stage *st)
{
	const struct sci_fault_counts *c = &st->faults;

	return (strstr(st->fault, "linkdown") && !c->cut) ||
	       (strstr(st->fault, "reorder") && !c->late) ||
	       (strstr(st->fault, "dup") && !c->copies) ||
	       (has_loss(st) && (!c->lost || !st->lines || !st->blocks));
}

/* Return whether to repeat the case. */
static bool act(struct stage *st, const struct act *a, bool first)
{
	static struct traffic t;
	uint64_t until, down_ms;
	bool again;

	setenv("SCI_FAULT", st->fault, 1);
	until = test_now_ms() + st->run_ms;
	t.ep = test_ep_open(a->number, st->flags);
	down_ms = link_down_ms(t.ep);
	traffic_params(t.ep, a->ways);
	act_flows(st, a, &t, act_connect(t.ep, first, a->number), first);
	do {
		for (unsigned int i = 0; i < t.n; i++)
			t.flow[i].limit += a->count;
		traffic_run(&t);
	} while (act_goes_on(st, t.ep, first, until));
	act_count(st, a, &t, down_ms);
	traffic_free(&t);
	meet(t.ep, &st->meeting, 2);
	again = lacks_faults(st);
	CHECK_EQ(sci_ep_close(t.ep), 0);
	return again;
}

/* Run each way alone, tagged and untagged. */
static void play_ways(struct stage *st, bool first)
{
	for (unsigned int k = 0; k < 2 * WAYS; k++) {
		struct act a = {
			.number = k + 1, .ways = 1u << k / 2,
			.streams = 1u << (k & 1), .count = way_count(k / 2),
		};

		act(st, &a, first);
	}
}

/* Run all ways side by side. */
static void play_mixed(struct stage *st, bool first)
{
	struct act a = {
		.number = 100, .ways = WAY_ALL, .streams = 3,
		.count = 60 / TRAFFIC_SLOW,
	};

	while (act(st, &a, first))
		a.number++;
}

static void ways_peer(struct peer *self, void *arg)
{
	(void)self;
	play_ways(arg, false);
}

static void mixed_peer(struct peer *self, void *arg)
{
	(void)self;
	play_mixed(arg, false);
}

static struct stage *stage_new(const char *fault)
{
	struct stage *st = test_shared(sizeof(*st));

	st->fault = fault;
	st->directions = 3;
	st->seed = traffic_seed();
	return st;
}

/* Check that the faults of st->fault were injected, and no others. */
static void check_faults(struct stage *st)
{
	const struct sci_fault_counts *c = &st->faults;
	bool loss = has_loss(st), down = strstr(st->fault, "linkdown");

	test_note("%llu messages, sent again: %llu lines, %llu blocks; %llu packets lost, %llu by the link, %llu late, %llu twice",
		  (unsigned long long)st->messages, (unsigned long long)st->lines,
		  (unsigned long long)st->blocks, (unsigned long long)c->lost,
		  (unsigned long long)c->cut, (unsigned long long)c->late,
		  (unsigned long long)c->copies);
	CHECK_EQ(c->lost > 0, loss);
	CHECK_EQ(c->cut > 0, down);
	CHECK_EQ(st->down_ms > 0, down);
	CHECK_EQ(c->late > 0, !!strstr(st->fault, "reorder"));
	CHECK_EQ(c->copies > 0, !!strstr(st->fault, "dup"));
	if (loss) {
		CHECK(st->lines > 0);
		CHECK(st->blocks > 0);
	}
}

static void run_ways(struct stage *st)
{
	struct peer *p = peer_spawn(8, ways_peer, st);

	test_note("SCI_TEST_SEED=%#llx", (unsigned long long)st->seed);
	play_ways(st, true);
	peer_join(p);
	check_faults(st);
	/* single copies are so few packets that none may get lost */
	for (unsigned int w = 0; w < WAY_SINGLE_COPY && st->faults.lost; w++)
		if (!st->resent[w])
			FAIL("no %s message lost a packet",
			     way_lengths(w).name);
}

static void run_mixed(struct stage *st)
{
	struct peer *p = peer_spawn(8, mixed_peer, st);

	test_note("SCI_TEST_SEED=%#llx", (unsigned long long)st->seed);
	play_mixed(st, true);
	peer_join(p);
	check_faults(st);
}

/* ---- packets ---- */

TEST(no_faults)
{
	run_ways(stage_new("loss=0"));
}

TEST(packets_are_lost)
{
	run_ways(stage_new("loss=0.1"));
}

TEST(packets_overtake)
{
	run_ways(stage_new("reorder=0.1"));
}

TEST(packets_come_twice)
{
	run_ways(stage_new("dup=0.1"));
}

TEST(packets_do_all_of_that)
{
	run_ways(stage_new("loss=0.1,reorder=0.1,dup=0.1"));
}

TEST(a_third_of_all_packets_is_lost)
{
	run_ways(stage_new("loss=0.3"));
}

TEST(all_ways_at_once)
{
	run_mixed(stage_new("loss=0.05,reorder=0.05,dup=0.05"));
}

TEST(all_ways_at_once_with_check_sums)
{
	struct stage *st = stage_new("loss=0.05,reorder=0.05,dup=0.05");

	st->flags = SCI_EP_CRC;
	run_mixed(st);
}

TEST(one_direction)
{
	struct stage *st = stage_new("loss=0.1,reorder=0.1,dup=0.1");

	/* node 8 sends back control lines only */
	st->directions = 1;
	run_mixed(st);
}

TEST(the_other_direction)
{
	struct stage *st = stage_new("loss=0.1,reorder=0.1,dup=0.1");

	st->directions = 2;
	run_mixed(st);
}

/* ---- the link ---- */

static void run_linkdown(const char *fault, uint64_t run_ms)
{
	struct stage *st = stage_new(fault);

	st->run_ms = run_ms;
	run_mixed(st);
}

TEST(the_link_goes_down)
{
	run_linkdown("linkdown=100:200", 500);
}

TEST(the_link_flaps)
{
	run_linkdown("linkdown=50:50,linkdown=150:50,linkdown=250:50,"
		     "linkdown=350:50,linkdown=450:300", 1000);
}

TEST(the_link_goes_down_and_loses_packets)
{
	run_linkdown("linkdown=100:200,linkdown=400:100,loss=0.05,reorder=0.05",
		     700);
}

/* ---- closes and deaths ---- */

#define CLOSE_ROUNDS	(TRAFFIC_SLOW > 1 ? 4u : 12u)
#define FIRST_ID	100u		/* the sender's endpoint in round i has the id FIRST_ID + i */

static unsigned int close_ways(unsigned int round)
{
	static const unsigned int ways[] = {
		1u << WAY_SHORT, 1u << WAY_LINES, 1u << WAY_EAGER,
		1u << WAY_SHORT | 1u << WAY_EAGER | 1u << WAY_RENDEZVOUS,
	};

	return ways[round % ARRAY_LEN(ways)];
}

static struct flow close_flow(const struct stage *st, struct sci_peer *peer,
			      unsigned int round, bool sends)
{
	return (struct flow) {
		.peer = peer, .seed = st->seed + round, .source = 8, .dest = 4,
		.sends = sends, .ways = close_ways(round), .limit = 30,
	};
}

/* Send, wait until the sends have completed, and close at once. */
static void closes_at_once(struct peer *self, void *arg)
{
	static struct traffic t;
	struct stage *st = arg;

	(void)self;
	setenv("SCI_FAULT", st->fault, 1);
	for (unsigned int i = 0; i < CLOSE_ROUNDS; i++) {
		struct sci_peer *to;

		t.ep = test_ep_open(FIRST_ID + i, 0);
		traffic_params(t.ep, close_ways(i));
		to = test_ep_connect(t.ep, 4, TEST_ID);
		traffic_flow(&t, close_flow(st, to, i, true));
		traffic_run(&t);
		traffic_free(&t);
		CHECK_EQ(sci_ep_close(t.ep), 0);
	}
}

static void run_close(const char *fault)
{
	static struct traffic t;
	struct stage *st = stage_new(fault);
	struct peer *p = peer_spawn(8, closes_at_once, st);
	unsigned int seen = 0;

	setenv("SCI_FAULT", st->fault, 1);
	t.ep = test_ep_open(TEST_ID, 0);
	traffic_params(t.ep, WAY_ALL & ~(1u << WAY_SINGLE_COPY));
	for (unsigned int i = 0; i < CLOSE_ROUNDS; i++) {
		struct sci_peer *from = test_ep_accept(t.ep);
		struct sci_addr addr;
		char c;

		/* a connection may be accepted before an older one */
		CHECK_EQ(sci_peer_addr(from, &addr), 0);
		CHECK(addr.id - FIRST_ID < CLOSE_ROUNDS && !(seen >> (addr.id - FIRST_ID) & 1));
		seen |= 1u << (addr.id - FIRST_ID);
		traffic_flow(&t, close_flow(st, from, addr.id - FIRST_ID, false));
		traffic_run(&t);
		traffic_free(&t);
		CHECK_EQ(sci_recv(t.ep, from, &c, 1, NULL), -ENOTCONN);
		CHECK_EQ(sci_disconnect(from), 0);
	}
	CHECK_EQ(sci_ep_close(t.ep), 0);
	peer_join(p);
}

TEST(close_after_the_last_send)
{
	run_close("");
}

TEST(close_after_the_last_send_with_losses)
{
	run_close("loss=0.2,reorder=0.1,dup=0.1");
}

/* A peer dies while packets get lost: every delivered message is whole. */
static void sends_for_ever(struct peer *self, void *arg)
{
	static struct traffic t;
	struct stage *st = arg;
	struct sci_peer *to;

	(void)self;
	setenv("SCI_FAULT", st->fault, 1);
	t.ep = test_ep_open(TEST_ID, 0);
	traffic_params(t.ep, WAY_ALL);
	to = test_ep_connect(t.ep, 4, TEST_ID);
	traffic_flow(&t, (struct flow) {
		.peer = to, .seed = st->seed, .source = 8, .dest = 4,
		.sends = true, .ways = WAY_ALL, .limit = UINT64_MAX,
	});
	traffic_run(&t);
}

TEST(death_with_losses)
{
	static struct traffic t;
	struct stage *st = stage_new("loss=0.1,reorder=0.1,dup=0.1");
	struct peer *p[4];
	struct flow *f;

	for (size_t i = 0; i < ARRAY_LEN(p); i++)
		p[i] = peer_spawn(8 + 4 * (unsigned int)i, sends_for_ever, st);
	setenv("SCI_FAULT", st->fault, 1);
	t.ep = test_ep_open(TEST_ID, 0);
	traffic_params(t.ep, WAY_ALL);
	for (size_t i = 0; i < ARRAY_LEN(p); i++) {
		f = traffic_flow(&t, (struct flow) {
			.peer = test_ep_accept(t.ep), .seed = st->seed,
			.source = 8, .dest = 4, .ways = WAY_ALL,
			.limit = UINT64_MAX, .may_die = true,
		});
		while (f->done < 20)
			CHECK(traffic_step(&t, TEST_WAIT_MS));
	}
	for (size_t i = 0; i < ARRAY_LEN(p); i++)
		peer_kill(p[i], SIGKILL);
	traffic_run(&t);
	for (unsigned int i = 0; i < t.n; i++) {
		CHECK_EQ(t.flow[i].error, -ECONNRESET);
		flow_free(t.ep, &t.flow[i]);
		CHECK_EQ(sci_disconnect(t.flow[i].peer), 0);
	}
	CHECK_EQ(sci_ep_close(t.ep), 0);
}

/* ---- senders that make no calls ---- */

#define ALONE_ROUNDS	100

/*
 * Send a message, and make no call until the receiver has it: a thread of the
 * library retransmits lost lines and wakes a sleeping receiver.
 */
static void sends_and_goes_away(struct peer *self, void *arg)
{
	static const struct config c = {
		.n = 1, .set = { { SCI_PARAM_CHECK_MS, 1 } },
	};
	struct stage *st = arg;
	struct sci_ep_stats s;
	struct pair l;

	setenv("SCI_FAULT", st->fault, 1);
	l = pair_config(self, 4, &c);
	for (int i = 0; i < ALONE_ROUNDS; i++) {
		CHECK_EQ(sci_send(l.to, &i, sizeof(i)), 0);
		peer_expect(self, "got it");
	}
	s = test_ep_stats(l.ep);
	test_note("%llu barriers, %llu lines sent again, %llu bells",
		  (unsigned long long)s.checks,
		  (unsigned long long)s.resent_lines,
		  (unsigned long long)s.bells);
	atomic_fetch_add(&st->lines, s.resent_lines);
	pair_meet(&l);
	pair_close(&l);
}

static void run_alone(const char *fault, uint64_t spin_us)
{
	struct config c = {
		.n = 1, .set = { { SCI_PARAM_SPIN_US, spin_us } },
	};
	struct stage *st = stage_new(fault);
	struct peer *p = peer_spawn(8, sends_and_goes_away, st);
	struct pair l;

	setenv("SCI_FAULT", "seed=1", 1);
	l = pair_config(p, 8, &c);
	for (int i = 0; i < ALONE_ROUNDS; i++) {
		int got = -1;

		CHECK_EQ(sci_recv(l.ep, l.to, &got, sizeof(got), NULL), 0);
		CHECK_EQ(got, i);
		peer_send(p, "got it");
	}
	pair_meet(&l);
	pair_close(&l);
	peer_join(p);
	if (strstr(fault, "loss"))
		CHECK(atomic_load(&st->lines) > 0);
}

TEST(a_sender_that_does_not_call_again)
{
	run_alone("loss=0.4,reorder=0.4", 1000000);
}

TEST(a_sender_that_does_not_call_again_and_a_sleeper)
{
	run_alone("loss=0.4,reorder=0.4", 0);
	run_alone("reorder=1", 0);
}

/* Answer two of three messages. Without losses no side needs a barrier. */
static void takes_and_answers(struct peer *self, void *arg)
{
	static const struct config c = {
		.n = 2, .set = { { SCI_PARAM_SPIN_US, 60000000 },
				 { SCI_PARAM_CHECK_MS, 60000 } },
	};
	uint64_t before;
	struct pair l;

	(void)arg;
	setenv("SCI_FAULT", "seed=1", 1);
	l = pair_config(self, 4, &c);
	pair_meet(&l);
	before = test_ep_stats(l.ep).checks;
	for (int i = 0; i < 10000; i++) {
		int got = -1;

		CHECK_EQ(sci_recv(l.ep, l.to, &got, sizeof(got), NULL), 0);
		CHECK_EQ(got, i);
		if (i % 3)
			CHECK_EQ(sci_send(l.to, &got, sizeof(got)), 0);
	}
	CHECK_EQ(test_ep_stats(l.ep).checks, before);
	pair_meet(&l);
	pair_close(&l);
}

TEST(no_barrier_while_nothing_is_lost)
{
	static const struct config c = {
		.n = 2, .set = { { SCI_PARAM_SPIN_US, 60000000 },
				 { SCI_PARAM_CHECK_MS, 60000 } },
	};
	struct peer *p = peer_spawn(8, takes_and_answers, NULL);
	uint64_t before;
	struct pair l;

	setenv("SCI_FAULT", "seed=1", 1);
	l = pair_config(p, 8, &c);
	pair_meet(&l);
	before = test_ep_stats(l.ep).checks;
	for (int i = 0; i < 10000; i++) {
		int got = -1;

		CHECK_EQ(sci_send(l.to, &i, sizeof(i)), 0);
		if (!(i % 3))
			continue;
		CHECK_EQ(sci_recv(l.ep, l.to, &got, sizeof(got), NULL), 0);
		CHECK_EQ(got, i);
	}
	CHECK_EQ(test_ep_stats(l.ep).checks, before);
	pair_meet(&l);
	pair_close(&l);
	peer_join(p);
}
