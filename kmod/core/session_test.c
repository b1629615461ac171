// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/*
 * Sessions over a network that loses, doubles and reorders packets, in simulated time.
 *
 * The test checks the messages that a node takes: all messages that were posted since the last
 * end of a session, in order, once; no message of an earlier life; and none of a new life
 * before the end of the old one was reported.
 */

#include <kunit/test.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/time64.h>

/* session.c is built into this test module too, for its static functions */
#include "session.c"

#define MESSAGES	256	/* messages posted and not done, per node */
#define IN_FLIGHT	2048
#define TAPE		1024
#define STEPS_MAX	2000000

static unsigned int seed = 1;
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "of the random numbers (1)");

struct body {
	__le32 life;		/* life of the sender */
	__le32 epoch;		/* number of sessions that ended in this life */
	__le32 index;		/* number of messages posted in this epoch */
	u8 fill[SCI_MESSAGE_SIZE - 12];
};

static_assert(sizeof(struct body) == SCI_MESSAGE_SIZE);

struct post {
	struct sci_message m;
	struct node *node;
	bool busy;
};

struct node {
	struct sci_session s;
	struct net *net;
	int id;
	u32 life;
	u32 epoch;
	u32 posted;
	u32 done;
	u32 taken;		/* messages taken in this life, or since a test cleared it */
	u32 told;		/* ends of sessions that were reported */
	u32 replies;		/* number of taken messages that the node still replies to */
	struct body last;
	bool fresh;		/* an end was reported since @last, or nothing was taken yet */
	bool careless;		/* the session was not always watched since @last */
	bool joins;		/* the next message makes the node watch the session */
	struct post posts[MESSAGES];
};

struct flight {
	struct sci_packet packet;
	u64 at;
	int to;
};

struct net {
	struct kunit *test;
	struct rnd_state rnd;
	u64 now;
	u32 loss;		/* lost packets per thousand */
	u32 dup;		/* doubled packets per thousand */
	u64 jitter;		/* ns */
	u64 drop_mask;		/* bit i: packet i of the first 64 packets is lost */
	bool cut;
	bool nobody;		/* send() reports that there is no such node */
	bool absent;		/* packets come back: neither node is there for the other */
	bool taping;
	u32 sent;
	u32 resent;
	u32 flights;
	u32 taped;
	struct node nodes[2];
	struct flight flight[IN_FLIGHT];
	struct flight tape[TAPE];
};

static const struct sci_session_times usual = {
	.retry = 20 * NSEC_PER_MSEC,
	.retry_max = 500 * NSEC_PER_MSEC,
	.heartbeat = 500 * NSEC_PER_MSEC,
	.connect = 1000 * NSEC_PER_MSEC,
	.dead = 5000ULL * NSEC_PER_MSEC,
	.absent = 250 * NSEC_PER_MSEC,
};

/* Times for networks that lose so much that a node may seem dead. */
static const struct sci_session_times patient = {
	.retry = 20 * NSEC_PER_MSEC,
	.retry_max = 500 * NSEC_PER_MSEC,
	.heartbeat = 500 * NSEC_PER_MSEC,
	.connect = 600 * NSEC_PER_SEC,
	.dead = 600 * NSEC_PER_SEC,
	.absent = 600 * NSEC_PER_SEC,
};

/* ---- the network ---- */

static u32 rnd_below(struct net *net, u32 n)
{
	return prandom_u32_state(&net->rnd) % n;
}

static bool rnd_hit(struct net *net, u32 per_thousand)
{
	return per_thousand && rnd_below(net, 1000) < per_thousand;
}

static void net_packet_send(struct net *net, const struct sci_packet *packet, int to)
{
	struct flight *f;

	if (net->flights == IN_FLIGHT)
		return;
	f = &net->flight[net->flights++];
	f->packet = *packet;
	f->to = to;
	f->at = net->now + 10 * NSEC_PER_USEC;
	if (net->jitter)
		f->at += rnd_below(net, (u32)(net->jitter / NSEC_PER_USEC)) *
			 NSEC_PER_USEC;
}

static void net_packet_record(struct net *net, const struct sci_packet *packet, int to)
{
	if (!net->taping || net->taped == TAPE)
		return;
	net->tape[net->taped].packet = *packet;
	net->tape[net->taped++].to = to;
}

static int net_send(struct sci_session *s, const struct sci_packet *packet,
		    bool again)
{
	struct node *n = container_of(s, struct node, s);
	struct net *net = n->net;
	u32 nr = net->sent++;

	KUNIT_EXPECT_TRUE(net->test, sci_packet_valid(packet));
	net->resent += again;
	if (net->nobody)
		return -EHOSTUNREACH;
	net_packet_record(net, packet, !n->id);
	if (net->cut || rnd_hit(net, net->loss))
		return 0;
	if (nr < 64 && net->drop_mask & BIT_ULL(nr))
		return -EIO;
	net_packet_send(net, packet, !n->id);
	if (rnd_hit(net, net->dup))
		net_packet_send(net, packet, !n->id);
	return 0;
}

static void net_changed(struct sci_session *s, enum sci_session_state old)
{
	struct node *n = container_of(s, struct node, s);

	KUNIT_EXPECT_NE(n->net->test, (int)s->state, (int)old);
	if (s->state == SCI_SESSION_GONE || s->state == SCI_SESSION_IDLE)
		n->epoch += old != SCI_SESSION_GONE;
}

static const struct sci_session_ops net_ops = {
	.send = net_send,
	.changed = net_changed,
};

/* ---- nodes ---- */

static void post_done(struct sci_message *m)
{
	struct post *post = container_of(m, struct post, m);

	KUNIT_EXPECT_TRUE(post->node->net->test, post->busy);
	post->busy = false;
	post->node->done++;
}

static void node_start(struct node *n, const struct sci_session_times *times)
{
	n->life++;
	n->epoch = 0;
	n->posted = 0;
	n->done = 0;
	n->taken = 0;
	n->told = 0;
	n->fresh = true;
	sci_session_init(&n->s, &net_ops, times,
			 prandom_u32_state(&n->net->rnd));
}

/* Restart a node as after a power failure. */
static void node_restart(struct node *n)
{
	struct sci_session_times times = n->s.times;

	session_finish_all(&n->s);
	node_start(n, &times);
}

static void node_post(struct node *n)
{
	struct body *body;
	struct post *post;
	int i;

	for (i = 0; i < MESSAGES && n->posts[i].busy; i++)
		;
	if (i == MESSAGES)
		return;
	post = &n->posts[i];
	post->node = n;
	post->busy = true;
	post->m.done = post_done;
	body = (struct body *)post->m.body;
	body->life = cpu_to_le32(n->life);
	body->epoch = cpu_to_le32(n->epoch);
	body->index = cpu_to_le32(++n->posted);
	memset(body->fill, n->posted, sizeof(body->fill));
	sci_session_post(&n->s, &post->m, n->net->now);
}

static void node_post_many(struct node *n, int count)
{
	while (count--)
		node_post(n);
}

static void node_watch(struct node *n, bool watched)
{
	if (!watched)
		n->careless = true;
	sci_session_watch(&n->s, watched, n->net->now);
}

static void node_check(struct node *n, const struct body *body)
{
	struct kunit *test = n->net->test;
	u32 last_life = le32_to_cpu(n->last.life);
	u32 life = le32_to_cpu(body->life);
	u32 epoch = le32_to_cpu(body->epoch);
	u32 index = le32_to_cpu(body->index);

	KUNIT_EXPECT_TRUE(test, !memchr_inv(body->fill, (u8)index,
					    sizeof(body->fill)));
	KUNIT_EXPECT_GE(test, life, last_life);
	if (life == last_life)
		KUNIT_EXPECT_GE(test, epoch, le32_to_cpu(n->last.epoch));
	if (n->fresh)
		return;
	if (life == last_life && epoch == le32_to_cpu(n->last.epoch))
		KUNIT_EXPECT_EQ(test, index, le32_to_cpu(n->last.index) + 1);
	else
		KUNIT_EXPECT_TRUE(test, n->careless);
}

static void node_take(struct node *n)
{
	struct body body;

	while (sci_session_take(&n->s, &body)) {
		node_check(n, &body);
		n->last = body;
		n->fresh = false;
		n->careless = !n->s.watched;
		n->taken++;
		if (n->joins)
			node_watch(n, true);
		n->joins = false;
		if (n->replies) {
			n->replies--;
			node_post(n);
		}
	}
}

static void node_settle(struct node *n)
{
	node_take(n);
	if (n->s.state == SCI_SESSION_GONE) {
		KUNIT_EXPECT_LT(n->net->test, n->s.error, 0);
		KUNIT_EXPECT_EQ(n->net->test, n->s.nr_sent, 0u);
		n->told++;
		n->fresh = true;
		sci_session_revive(&n->s, n->net->now);
	}
	sci_session_settle(&n->s);
	KUNIT_EXPECT_LE(n->net->test, n->s.nr_sent, SCI_SESSION_WINDOW);
}

static int node_receive(struct node *n, const struct sci_packet *packet)
{
	int ret = sci_session_receive(&n->s, packet, n->net->now);

	node_settle(n);
	return ret;
}

static void node_tick(struct node *n)
{
	sci_session_tick(&n->s, n->net->now);
	node_settle(n);
}

/* ---- time ---- */

static struct flight *net_next(struct net *net)
{
	struct flight *first = NULL;
	u32 i;

	for (i = 0; i < net->flights; i++)
		if (!first || net->flight[i].at < first->at)
			first = &net->flight[i];
	return first;
}

static struct flight net_packet_arrive(struct net *net, struct flight *f)
{
	struct flight landed = *f;

	*f = net->flight[--net->flights];
	net->now = max(net->now, landed.at);
	return landed;
}

/* Execute the next event that is due before @until. Return false if there is none. */
static bool net_step(struct net *net, u64 until)
{
	struct flight *f = net_next(net);
	struct node *n = &net->nodes[0];
	u64 due = sci_session_deadline(&n->s);

	if (sci_session_deadline(&net->nodes[1].s) < due) {
		n = &net->nodes[1];
		due = sci_session_deadline(&n->s);
	}
	if (min(due, f ? f->at : SCI_SESSION_NEVER) > until)
		return false;
	if (f && f->at <= due) {
		struct flight landed = net_packet_arrive(net, f);

		if (net->absent)
			sci_session_returned(&net->nodes[!landed.to].s, net->now);
		else
			node_receive(&net->nodes[landed.to], &landed.packet);
	} else {
		net->now = max(net->now, due);
		node_tick(n);
	}
	return true;
}

static void net_run(struct net *net, u64 ns)
{
	u64 until = net->now + ns;
	u32 steps = 0;

	while (net_step(net, until) && ++steps < STEPS_MAX)
		;
	KUNIT_ASSERT_LT(net->test, steps, (u32)STEPS_MAX);
	net->now = until;
}

/* Run until all messages are done. Return false if that takes longer than @ns. */
static bool net_quiet(struct net *net, u64 ns)
{
	u64 until = net->now + ns;

	while (session_has_messages(&net->nodes[0].s) || session_has_messages(&net->nodes[1].s))
		if (!net_step(net, until))
			return false;
	return true;
}

static struct net *net_create(struct kunit *test,
			      const struct sci_session_times *times)
{
	struct net *net = kunit_kzalloc(test, sizeof(*net), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, net);
	net->test = test;
	net->now = NSEC_PER_SEC;
	prandom_seed_state(&net->rnd, seed);
	for (i = 0; i < 2; i++) {
		net->nodes[i].net = net;
		net->nodes[i].id = i;
		node_start(&net->nodes[i], times);
	}
	return net;
}

/* Make two nodes with a session that both nodes watch. */
static struct net *net_up(struct kunit *test)
{
	struct net *net = net_create(test, &usual);

	node_watch(&net->nodes[0], true);
	node_watch(&net->nodes[1], true);
	node_post(&net->nodes[0]);
	node_post(&net->nodes[1]);
	net_run(net, NSEC_PER_MSEC);
	KUNIT_ASSERT_EQ(test, (int)net->nodes[0].s.state, SCI_SESSION_UP);
	KUNIT_ASSERT_EQ(test, (int)net->nodes[1].s.state, SCI_SESSION_UP);
	KUNIT_ASSERT_EQ(test, net->nodes[0].taken, 1u);
	KUNIT_ASSERT_EQ(test, net->nodes[1].taken, 1u);
	return net;
}

static void net_expect_all_taken(struct net *net)
{
	struct node *a = &net->nodes[0], *b = &net->nodes[1];

	KUNIT_EXPECT_EQ(net->test, a->done, a->posted);
	KUNIT_EXPECT_EQ(net->test, b->done, b->posted);
	KUNIT_EXPECT_EQ(net->test, b->taken, a->posted);
	KUNIT_EXPECT_EQ(net->test, a->taken, b->posted);
	KUNIT_EXPECT_EQ(net->test, a->told, 0u);
	KUNIT_EXPECT_EQ(net->test, b->told, 0u);
}

/* Send a few messages in both directions, @rounds times; all must arrive. */
static void net_traffic(struct net *net, int rounds)
{
	int i;

	for (i = 0; i < rounds; i++) {
		node_post_many(&net->nodes[0], rnd_below(net, 80));
		node_post_many(&net->nodes[1], rnd_below(net, 80));
		net->nodes[0].replies += rnd_below(net, 20);
		KUNIT_EXPECT_TRUE(net->test, net_quiet(net, 600 * NSEC_PER_SEC));
	}
	net->nodes[0].replies = 0;
	net_expect_all_taken(net);
}

/* ---- faults of networks ---- */

static void test_in_order(struct kunit *test)
{
	struct net *net = net_create(test, &usual);

	net_traffic(net, 30);
	KUNIT_EXPECT_EQ(test, net->resent, 0u);
	/* sequence numbers have wrapped */
	KUNIT_EXPECT_LT(test, net->nodes[0].s.tx_seq, SCI_SESSION_FIRST);
	KUNIT_EXPECT_LT(test, net->nodes[1].s.tx_seq, SCI_SESSION_FIRST);
}

static void test_loss(struct kunit *test)
{
	static const u32 per_thousand[] = { 10, 100, 500 };
	struct net *net;
	int i;

	for (i = 0; i < ARRAY_SIZE(per_thousand); i++) {
		net = net_create(test, &patient);
		net->loss = per_thousand[i];
		net_traffic(net, 10);
	}
}

static void test_duplicates(struct kunit *test)
{
	struct net *net = net_create(test, &usual);

	net->dup = 500;
	net_traffic(net, 20);
}

static void test_reordering(struct kunit *test)
{
	struct net *net = net_create(test, &usual);

	net->jitter = 2 * NSEC_PER_MSEC;
	net_traffic(net, 10);
	/* packets may arrive after their retransmissions */
	net->jitter = 100 * NSEC_PER_MSEC;
	net_traffic(net, 10);
}

static void test_everything(struct kunit *test)
{
	struct net *net = net_create(test, &patient);

	net->loss = 200;
	net->dup = 200;
	net->jitter = 50 * NSEC_PER_MSEC;
	net_traffic(net, 10);
}

/* Check that a node has at most one window of unacknowledged messages. */
static void test_window(struct kunit *test)
{
	struct net *net = net_up(test);
	u32 sent = net->sent;

	net->cut = true;
	node_post_many(&net->nodes[0], 200);
	KUNIT_EXPECT_EQ(test, net->sent - sent, (u32)SCI_SESSION_WINDOW);
	net_run(net, NSEC_PER_SEC);
	net->cut = false;
	KUNIT_EXPECT_TRUE(test, net_quiet(net, NSEC_PER_SEC));
	net_expect_all_taken(net);
}

/* Check that a message and its reply need only one more packet, an ACK. */
static void test_economy(struct kunit *test)
{
	struct net *net = net_up(test);
	u32 sent;

	net_run(net, 10 * NSEC_PER_MSEC);
	sent = net->sent;
	node_post(&net->nodes[0]);
	net->nodes[1].replies = 1;
	net_run(net, 10 * NSEC_PER_MSEC);
	/* three packets: the message, the reply with an ACK, its ACK */
	KUNIT_EXPECT_EQ(test, net->sent - sent, 3u);
	net_expect_all_taken(net);
}

/* Check that a packet that is acknowledged in time is not sent again. */
static void test_steady(struct kunit *test)
{
	struct net *net = net_up(test);
	int i;

	for (i = 0; i < 1000; i++) {
		node_post(&net->nodes[0]);
		net_run(net, NSEC_PER_MSEC);
	}
	KUNIT_EXPECT_EQ(test, net->resent, 0u);
	net_expect_all_taken(net);
}

/* ---- beginning ---- */

static void test_simultaneous(struct kunit *test)
{
	struct net *net = net_create(test, &usual);
	struct sci_session *a = &net->nodes[0].s, *b = &net->nodes[1].s;

	node_post(&net->nodes[0]);
	node_post(&net->nodes[1]);
	net_run(net, NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, a->own, b->peer);
	KUNIT_EXPECT_EQ(test, b->own, a->peer);
	KUNIT_EXPECT_EQ(test, a->tx_id, b->rx_id);
	KUNIT_EXPECT_EQ(test, b->tx_id, a->rx_id);
	KUNIT_EXPECT_NE(test, a->tx_id, a->rx_id);
	net_expect_all_taken(net);
}

/* Lose each combination of the first ten packets. */
static void test_lost_handshakes(struct kunit *test)
{
	struct net *net = net_create(test, &patient);
	int i;

	for (i = 0; i < 1 << 11; i++) {
		node_restart(&net->nodes[0]);
		node_restart(&net->nodes[1]);
		net->sent = 0;
		net->drop_mask = i >> 1;
		node_post_many(&net->nodes[0], 2);
		if (i & 1)
			node_post(&net->nodes[1]);
		KUNIT_ASSERT_TRUE(test, net_quiet(net, 10 * NSEC_PER_SEC));
		net_expect_all_taken(net);
	}
}

static void test_nobody_answers(struct kunit *test)
{
	struct net *net = net_create(test, &usual);
	struct node *a = &net->nodes[0];

	net->cut = true;
	node_post_many(a, 5);
	net_run(net, usual.connect - NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, a->told, 0u);
	net_run(net, 2 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, a->told, 1u);
	KUNIT_EXPECT_EQ(test, a->done, 5u);
	KUNIT_EXPECT_EQ(test, sci_session_deadline(&a->s), SCI_SESSION_NEVER);
	/* the earlier error does not affect the next message */
	net->cut = false;
	node_post(a);
	KUNIT_EXPECT_TRUE(test, net_quiet(net, NSEC_PER_SEC));
	KUNIT_EXPECT_EQ(test, net->nodes[1].taken, 1u);
}

static void test_no_such_node(struct kunit *test)
{
	struct net *net = net_create(test, &usual);
	struct node *a = &net->nodes[0];

	net->nobody = true;
	node_post(a);
	/* post() does not call done() itself */
	KUNIT_EXPECT_EQ(test, a->done, 0u);
	KUNIT_EXPECT_EQ(test, sci_session_deadline(&a->s), 0ull);
	net_run(net, 0);
	KUNIT_EXPECT_EQ(test, a->done, 1u);
	KUNIT_EXPECT_EQ(test, a->told, 1u);
}

static void test_no_such_node_any_more(struct kunit *test)
{
	struct net *net = net_up(test);
	struct node *a = &net->nodes[0];

	net->nobody = true;
	node_post(a);
	net_run(net, 0);
	KUNIT_EXPECT_EQ(test, a->done, a->posted);
	KUNIT_EXPECT_EQ(test, a->told, 1u);
}

/* Report that a packet came back, some time after it was sent. */
static void test_returned(struct kunit *test)
{
	struct net *net = net_create(test, &usual);
	struct node *a = &net->nodes[0];

	node_post(a);
	net->flights = 0;
	KUNIT_EXPECT_NE(test, sci_session_deadline(&a->s), 0ull);
	sci_session_returned(&a->s, net->now);
	KUNIT_EXPECT_EQ(test, sci_session_deadline(&a->s), 0ull);
	net_run(net, 0);
	KUNIT_EXPECT_EQ(test, a->done, 1u);
	KUNIT_EXPECT_EQ(test, a->told, 1u);
}

/* Check that a node that is away for less than times.absent loses nothing, each time. */
static void test_returned_for_a_moment(struct kunit *test)
{
	struct net *net = net_up(test);
	struct node *a = &net->nodes[0];
	int i;

	for (i = 0; i < 10; i++) {
		net->absent = true;
		node_post_many(a, 10);
		net_run(net, usual.absent - NSEC_PER_MSEC);
		net->absent = false;
		KUNIT_EXPECT_TRUE(test, net_quiet(net, NSEC_PER_SEC));
	}
	KUNIT_EXPECT_EQ(test, a->told, 0u);
	net_expect_all_taken(net);
}

/* Check that a node that is away counts as dead long before one that is only silent. */
static void test_returned_while_up(struct kunit *test)
{
	struct net *net = net_up(test);
	struct node *a = &net->nodes[0];
	u64 heard = a->s.heard;

	net->absent = true;
	net_run(net, heard + usual.heartbeat + usual.absent - net->now);
	KUNIT_EXPECT_EQ(test, a->told, 0u);
	net_run(net, usual.absent);
	KUNIT_EXPECT_EQ(test, a->told, 1u);
}

/* Check that a packet without an answer proves nothing when it comes back. */
static void test_returned_ack(struct kunit *test)
{
	struct net *net = net_up(test);
	struct node *a = &net->nodes[0];

	sci_session_returned(&a->s, net->now);
	net_run(net, usual.heartbeat - 1);
	sci_session_returned(&a->s, net->now);
	KUNIT_EXPECT_NE(test, sci_session_deadline(&a->s), 0ull);
	net_run(net, NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, a->told, 0u);
}

/* Check that a new life of the other node ends the session even while the link is down. */
static void test_lost(struct kunit *test)
{
	struct net *net = net_up(test);
	struct node *a = &net->nodes[0];

	sci_session_watch(&a->s, true, net->now);
	sci_session_pause(&a->s);
	net->flights = 0;
	sci_session_lost(&a->s);
	KUNIT_EXPECT_EQ(test, sci_session_deadline(&a->s), 0ull);
	net_run(net, 0);
	KUNIT_EXPECT_EQ(test, a->told, 1u);
}

/* ---- end ---- */

static void test_silence(struct kunit *test)
{
	struct net *net = net_up(test);
	struct node *a = &net->nodes[0];
	u64 heard;

	net_run(net, 60 * NSEC_PER_SEC);
	heard = a->s.heard;
	KUNIT_EXPECT_LE(test, net->now - heard, 2 * usual.heartbeat);
	net_expect_all_taken(net);
	net->cut = true;
	net_run(net, heard + usual.dead - net->now - 1);
	KUNIT_EXPECT_EQ(test, a->told, 0u);
	node_post_many(a, 100);
	net_run(net, NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, a->told, 1u);
	KUNIT_EXPECT_EQ(test, a->done, a->posted);
}

/* Check that a session that is not watched sends no heartbeat. */
static void test_quiet(struct kunit *test)
{
	struct net *net = net_create(test, &usual);
	u32 sent;

	net_traffic(net, 1);
	net_run(net, NSEC_PER_SEC);
	sent = net->sent;
	net_run(net, 1000 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, net->sent, sent);
	/* the session still works after a long silence */
	net_traffic(net, 1);
}

static void test_link_pause(struct kunit *test)
{
	struct net *net = net_up(test);
	struct node *a = &net->nodes[0], *b = &net->nodes[1];

	net->cut = true;
	sci_session_pause(&a->s);
	sci_session_pause(&b->s);
	node_post_many(a, 100);
	net_run(net, 1000 * NSEC_PER_SEC);
	node_post_many(b, 100);
	net->cut = false;
	sci_session_resume(&a->s, net->now);
	sci_session_resume(&b->s, net->now);
	/* the packets are sent again at once, not when the backoff ends */
	KUNIT_EXPECT_TRUE(test, net_quiet(net, 5 * NSEC_PER_MSEC));
	net_expect_all_taken(net);
}

/* Check that the time without a link is not part of the silence after it. */
static void test_link_pause_silence(struct kunit *test)
{
	struct net *net = net_up(test);
	struct node *a = &net->nodes[0];

	net->cut = true;
	sci_session_pause(&a->s);
	net_run(net, usual.dead - 100 * NSEC_PER_MSEC);
	sci_session_resume(&a->s, net->now);
	net_run(net, usual.dead - NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, a->told, 0u);
	net_run(net, 2 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, a->told, 1u);
}

/* Stop this machine for a minute, while answers wait to be received. */
static void test_tick_late(struct kunit *test)
{
	struct net *net = net_up(test);
	struct node *a = &net->nodes[0];

	node_post(a);
	net->now += 60 * NSEC_PER_SEC;
	node_tick(a);
	net_run(net, NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, a->told, 0u);
	net_expect_all_taken(net);
}

static void test_bye(struct kunit *test)
{
	struct net *net = net_up(test);
	struct node *a = &net->nodes[0], *b = &net->nodes[1];

	net->taping = true;
	sci_session_close(&a->s);
	KUNIT_EXPECT_EQ(test, net->taped, 1u);
	net_run(net, NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, b->told, 1u);
	KUNIT_EXPECT_EQ(test, (int)b->s.state, SCI_SESSION_IDLE);
	/* post() to a closed session calls done() */
	node_post(a);
	KUNIT_EXPECT_EQ(test, a->done, a->posted);

	/* in the next life the BYE of the earlier life is ignored */
	node_restart(a);
	node_watch(a, true);
	node_post(a);
	KUNIT_EXPECT_TRUE(test, net_quiet(net, NSEC_PER_SEC));
	KUNIT_EXPECT_EQ(test, node_receive(b, &net->tape[0].packet), -ESTALE);
	KUNIT_EXPECT_EQ(test, (int)b->s.state, SCI_SESSION_UP);
	KUNIT_EXPECT_EQ(test, b->told, 1u);
}

static void test_close(struct kunit *test)
{
	struct net *net = net_up(test);
	struct node *a = &net->nodes[0];

	net->cut = true;
	node_post_many(a, MESSAGES);
	sci_session_close(&a->s);
	KUNIT_EXPECT_EQ(test, a->done, a->posted);
	KUNIT_EXPECT_EQ(test, a->told, 0u);
	KUNIT_EXPECT_EQ(test, sci_session_deadline(&a->s), SCI_SESSION_NEVER);
	net->cut = false;
	net_run(net, 10 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, (int)a->s.state, SCI_SESSION_CLOSED);
}

/* ---- lives ---- */

/* Restart a node at a random time: the other node must report the end of the session. */
static void net_restart_in_use(struct net *net)
{
	struct node *a = &net->nodes[0], *b = &net->nodes[1];

	node_post_many(a, 10);
	node_post_many(b, 10);
	net_run(net, 1 + rnd_below(net, 200) * NSEC_PER_USEC);
	node_restart(b);
	net_run(net, 6 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(net->test, a->told, 1u);
	KUNIT_EXPECT_EQ(net->test, a->done, a->posted);
	a->told = 0;
	a->taken = 0;
	b->taken = 0;
	a->posted = 0;
	a->done = 0;
	b->posted = 0;
	b->done = 0;
	a->last.life = 0;
}

static void test_restart_up(struct kunit *test)
{
	int i;

	for (i = 0; i < 20; i++) {
		struct net *net = net_up(test);
		struct node *a = &net->nodes[0], *b = &net->nodes[1];

		/* both nodes send here: a node that sends nothing may not notice a new life */
		net_restart_in_use(net);
		node_watch(a, true);
		node_watch(b, true);
		net_traffic(net, 2);
		kunit_kfree(test, net);
	}
}

/* Check that a restart is noticed at once, no matter which node sends first. */
static void test_restart_noticed(struct kunit *test)
{
	int speaker;

	for (speaker = 0; speaker < 2; speaker++) {
		struct net *net = net_up(test);
		struct node *a = &net->nodes[0], *b = &net->nodes[1];

		node_restart(b);
		node_post(&net->nodes[speaker]);
		net_run(net, NSEC_PER_MSEC);
		KUNIT_EXPECT_EQ(test, a->told, 1u);
		KUNIT_EXPECT_EQ(test, a->done, a->posted);
		/* then messages of the new life arrive */
		net_run(net, 100 * NSEC_PER_MSEC);
		KUNIT_EXPECT_EQ(test, a->taken, 1u + speaker);
		KUNIT_EXPECT_EQ(test, b->done, b->posted);
	}
}

static void test_restart_hello(struct kunit *test)
{
	struct net *net = net_create(test, &usual);

	net->cut = true;
	node_post(&net->nodes[0]);
	node_post(&net->nodes[1]);
	net_run(net, 100 * NSEC_PER_MSEC);
	node_restart(&net->nodes[1]);
	net->cut = false;
	net_traffic(net, 2);
}

/* Restart a node while the end of its last life is being reported. */
static void test_restart_gone(struct kunit *test)
{
	struct net *net = net_up(test);
	struct node *a = &net->nodes[0], *b = &net->nodes[1];

	node_restart(b);
	node_post(b);
	while (a->s.state != SCI_SESSION_GONE) {
		struct flight f;

		KUNIT_ASSERT_NOT_NULL(test, net_next(net));
		f = net_packet_arrive(net, net_next(net));
		if (f.to == 0)
			sci_session_receive(&a->s, &f.packet, net->now);
		else
			node_receive(b, &f.packet);
	}
	/* no message of a new life is taken until the end of the last life was reported */
	node_restart(b);
	node_post(b);
	node_post(a);
	KUNIT_EXPECT_FALSE(test, sci_session_take(&a->s, &a->last));
	KUNIT_EXPECT_EQ(test, a->done, a->posted - 1);
	net_run(net, NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, a->done, a->posted);
	KUNIT_EXPECT_EQ(test, b->done, b->posted);
	KUNIT_EXPECT_EQ(test, b->taken, 1u);
}

/* Check that messages posted while the end is reported are sent in the next session. */
static void test_post_gone(struct kunit *test)
{
	struct net *net = net_up(test);
	struct node *a = &net->nodes[0];
	struct sci_packet p = {
		.version = SCI_SESSION_VERSION,
		.type = SCI_PACKET_ANSWER,
		.from = cpu_to_le32(1),
	};
	u32 sent;

	session_end(&a->s, -EHOSTUNREACH);
	sent = net->sent;
	node_post(a);
	p.to = cpu_to_le32(a->s.next);
	KUNIT_EXPECT_EQ(test, sci_session_receive(&a->s, &p, net->now),
			-ESTALE);
	KUNIT_EXPECT_EQ(test, (int)a->s.state, SCI_SESSION_GONE);
	KUNIT_EXPECT_EQ(test, net->sent, sent);
	node_settle(a);
	KUNIT_EXPECT_EQ(test, a->told, 1u);
	KUNIT_EXPECT_EQ(test, (int)a->s.state, SCI_SESSION_HELLO);
	KUNIT_EXPECT_TRUE(test, net_quiet(net, NSEC_PER_SEC));
	KUNIT_EXPECT_EQ(test, a->done, a->posted);
	KUNIT_EXPECT_EQ(test, net->nodes[1].taken, 2u);
}

/* Check that a restart is noticed, whichever of the first packets are lost. */
static void test_restart_lost(struct kunit *test)
{
	int i;

	for (i = 0; i < 1 << 9; i++) {
		struct net *net = net_up(test);
		struct node *a = &net->nodes[0], *b = &net->nodes[1];

		node_restart(b);
		node_post(&net->nodes[i & 1]);
		net->sent = 0;
		net->drop_mask = i >> 1;
		net_run(net, 3 * NSEC_PER_SEC);
		KUNIT_EXPECT_EQ(test, a->told, 1u);
		KUNIT_EXPECT_EQ(test, b->done, b->posted);
		KUNIT_EXPECT_EQ(test, a->taken, 1 + b->posted);
		kunit_kfree(test, net);
	}
}

/*
 * Lose the ANSWER with which the restarted node begins a session. It has nothing to send, and
 * the other node still uses the old session.
 */
static void test_half_open(struct kunit *test)
{
	struct net *net = net_up(test);
	struct node *a = &net->nodes[0], *b = &net->nodes[1];

	node_restart(b);
	session_begin(&b->s, a->s.next, net->now);
	net->flights = 0;
	node_post(a);
	net_run(net, NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, a->told, 1u);
}

/* Check that messages arrive after a restart of a node that no connection watches. */
static void test_restart_unnoticed(struct kunit *test)
{
	struct net *net = net_create(test, &usual);
	int i;

	for (i = 0; i < 20; i++) {
		struct node *n = &net->nodes[rnd_below(net, 2)];

		if (i & 1)
			node_watch(&net->nodes[!n->id], true);
		net_traffic(net, 1);
		net_run(net, rnd_below(net, 2000) * NSEC_PER_MSEC);
		if (i & 1)
			node_watch(&net->nodes[!n->id], false);
		node_restart(n);
		net->nodes[!n->id].posted = 0;
		net->nodes[!n->id].done = 0;
		net->nodes[!n->id].taken = 0;
	}
}

/* Restart the importer before the exporter has answered. */
static void test_restart_early(struct kunit *test)
{
	struct net *net = net_create(test, &usual);
	struct node *a = &net->nodes[0], *b = &net->nodes[1];

	b->joins = true;
	node_post(a);
	while (!b->taken)
		KUNIT_ASSERT_TRUE(test, net_step(net, SCI_SESSION_NEVER));
	net->flights = 0;
	node_restart(a);
	node_post(a);
	net_run(net, NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, b->told, 1u);
	KUNIT_EXPECT_EQ(test, b->taken, 2u);
}

/* Check that a node that stops watching its session does not take a message twice. */
static void test_careless(struct kunit *test)
{
	struct net *net = net_create(test, &usual);
	struct node *a = &net->nodes[0], *b = &net->nodes[1];

	b->joins = true;
	node_post(a);
	while (!b->taken)
		KUNIT_ASSERT_TRUE(test, net_step(net, SCI_SESSION_NEVER));
	net->flights = 0;
	net->cut = true;
	sci_session_pause(&a->s);
	net_run(net, usual.heartbeat + NSEC_PER_MSEC);
	KUNIT_EXPECT_TRUE(test, b->s.probing);
	node_watch(b, false);
	/* send() of the ACK for a repeated message fails: no such node */
	net->nobody = true;
	b->s.ack_due = true;
	sci_session_settle(&b->s);
	net_run(net, 2 * usual.dead);
	net->nobody = false;
	net->cut = false;
	sci_session_resume(&a->s, net->now);
	KUNIT_EXPECT_TRUE(test, net_quiet(net, NSEC_PER_SEC));
	KUNIT_EXPECT_EQ(test, b->told, 0u);
	KUNIT_EXPECT_EQ(test, b->taken, 1u);
}

/* Replay packets of earlier lives at random times in the next lives. */
static void test_replay(struct kunit *test)
{
	struct net *net = net_up(test);
	struct node *a = &net->nodes[0], *b = &net->nodes[1];
	int i;

	net->taping = true;
	net_restart_in_use(net);
	node_watch(a, true);
	node_watch(b, true);
	net_traffic(net, 2);
	net->taping = false;
	node_restart(a);
	node_restart(b);
	node_watch(a, true);
	node_watch(b, true);
	for (i = 0; i < 50; i++) {
		u32 count = rnd_below(net, 20);

		while (count--) {
			struct flight *f = &net->tape[rnd_below(net, net->taped)];

			net_packet_send(net, &f->packet, f->to);
		}
		node_post_many(a, rnd_below(net, 5));
		node_post_many(b, rnd_below(net, 5));
		net_run(net, rnd_below(net, 50) * NSEC_PER_USEC);
	}
	KUNIT_EXPECT_TRUE(test, net_quiet(net, NSEC_PER_SEC));
	net_expect_all_taken(net);
}

/* Replay all packets in the same lives, after both nodes have reported the end of the session. */
static void test_replay_same_life(struct kunit *test)
{
	struct net *net = net_up(test);
	struct node *a = &net->nodes[0], *b = &net->nodes[1];
	u32 i;

	net->taping = true;
	node_post_many(a, 20);
	node_post_many(b, 20);
	KUNIT_EXPECT_TRUE(test, net_quiet(net, NSEC_PER_SEC));
	net->cut = true;
	net->taping = false;
	net_run(net, 2 * usual.dead);
	net->cut = false;
	KUNIT_EXPECT_EQ(test, a->told, 1u);
	KUNIT_EXPECT_EQ(test, b->told, 1u);
	node_post(a);
	node_post(b);
	KUNIT_EXPECT_TRUE(test, net_quiet(net, NSEC_PER_SEC));
	KUNIT_EXPECT_EQ(test, a->taken, b->posted);
	KUNIT_EXPECT_EQ(test, b->taken, a->posted);
	for (i = 0; i < net->taped; i++)
		KUNIT_EXPECT_EQ(test, node_receive(&net->nodes[net->tape[i].to],
						   &net->tape[i].packet),
				-ESTALE);
}

/* ---- hostility ---- */

static void expect_bad(struct node *n, const struct sci_packet *good,
		       size_t offset, u8 flip)
{
	struct sci_packet p = *good;

	((u8 *)&p)[offset] ^= flip;
	KUNIT_EXPECT_EQ_MSG(n->net->test, node_receive(n, &p), -EBADMSG,
			    "type %u offset %zu", good->type, offset);
}

static void test_malformed(struct kunit *test)
{
	struct net *net = net_up(test);
	struct node *a = &net->nodes[0];
	struct sci_packet p = { .version = SCI_SESSION_VERSION };
	size_t i;

	p.session = cpu_to_le32(a->s.rx_id);
	p.ack = cpu_to_le32(a->s.tx_seq);
	for (p.type = SCI_PACKET_ACK; p.type <= SCI_PACKET_BYE; p.type++) {
		expect_bad(a, &p, 0, 1);
		expect_bad(a, &p, 1, 0x40);
		for (i = 2; i < 4; i++)
			expect_bad(a, &p, i, 1);
		for (i = 8; i < 12; i++)
			expect_bad(a, &p, i, 1);
		for (i = 16; i < sizeof(p); i++)
			expect_bad(a, &p, i, 0x80);
	}
	memset(&p, 0, sizeof(p));
	p.version = SCI_SESSION_VERSION;
	p.from = cpu_to_le32(a->s.peer);
	p.type = SCI_PACKET_HELLO;
	for (i = 4; i < sizeof(p); i++)
		if (i < 16 || i >= 20)
			expect_bad(a, &p, i, 1);
	p.type = SCI_PACKET_ANSWER;
	KUNIT_EXPECT_EQ(test, node_receive(a, &p), -EBADMSG);
	p.type = SCI_PACKET_HELLO;
	p.from = 0;
	KUNIT_EXPECT_EQ(test, node_receive(a, &p), -EBADMSG);
	KUNIT_EXPECT_EQ(test, a->taken, 1u);
}

static void test_out_of_window(struct kunit *test)
{
	struct net *net = net_up(test);
	struct node *a = &net->nodes[0];
	struct sci_packet p = {
		.version = SCI_SESSION_VERSION,
		.type = SCI_PACKET_DATA,
		.session = cpu_to_le32(a->s.rx_id),
		.seq = cpu_to_le32(a->s.rx_seq + SCI_SESSION_WINDOW),
		.ack = cpu_to_le32(a->s.tx_seq),
	};

	KUNIT_EXPECT_EQ(test, node_receive(a, &p), -EBADMSG);
	/* the packet acknowledges a message that was not sent */
	p.seq = cpu_to_le32(a->s.rx_seq + 1);
	p.ack = cpu_to_le32(a->s.tx_seq + 1);
	KUNIT_EXPECT_EQ(test, node_receive(a, &p), -EBADMSG);
	KUNIT_EXPECT_EQ(test, a->s.received, 0u);
	/* the packet is inside the window, but the message before it is missing */
	p.seq = cpu_to_le32(a->s.rx_seq + SCI_SESSION_WINDOW - 1);
	p.ack = cpu_to_le32(a->s.tx_seq);
	KUNIT_EXPECT_EQ(test, node_receive(a, &p), 0);
	KUNIT_EXPECT_EQ(test, a->taken, 1u);
	/* a packet that was sent comes back to its sender */
	p.session = cpu_to_le32(a->s.tx_id);
	p.seq = cpu_to_le32(a->s.rx_seq);
	KUNIT_EXPECT_EQ(test, node_receive(a, &p), -ESTALE);
}

/* Make a random packet; the larger the random number sense, the more fields are valid. */
static void net_garbage(struct net *net, struct sci_packet *p)
{
	u32 sense = rnd_below(net, 5);

	prandom_bytes_state(&net->rnd, p, sizeof(*p));
	if (sense > 0)
		p->version = SCI_SESSION_VERSION;
	if (sense > 1)
		p->type = rnd_below(net, SCI_PACKET_BYE + 2);
	if (sense > 2)
		p->reserved = 0;
	if (sense > 3)
		memset(p->body + 8, 0, sizeof(p->body) - 8);
}

static void net_fuzz(struct net *net, int count)
{
	struct node *a = &net->nodes[0];
	enum sci_session_state state = a->s.state;
	struct sci_packet p;
	int ret;

	while (count--) {
		net_garbage(net, &p);
		ret = sci_session_receive(&a->s, &p, net->now);
		if (ret)
			KUNIT_EXPECT_TRUE(net->test,
					  ret == -EBADMSG || ret == -ESTALE);
		else
			KUNIT_EXPECT_EQ(net->test, (int)p.type,
					SCI_PACKET_HELLO);
		KUNIT_EXPECT_EQ(net->test, a->s.received, 0u);
		sci_session_settle(&a->s);
		net->flights = 0;
	}
	KUNIT_EXPECT_EQ(net->test, (int)a->s.state, (int)state);
}

static void test_garbage(struct kunit *test)
{
	struct net *net = net_create(test, &usual);
	struct node *a = &net->nodes[0];

	net_fuzz(net, 25000);
	net->cut = true;
	node_post(a);
	net_fuzz(net, 25000);
	session_end(&a->s, -EHOSTUNREACH);
	net_fuzz(net, 25000);
	sci_session_revive(&a->s, net->now);
	net->cut = false;
	node_post(a);
	KUNIT_EXPECT_TRUE(test, net_quiet(net, NSEC_PER_SEC));
	KUNIT_EXPECT_EQ(test, (int)a->s.state, SCI_SESSION_UP);
	net_fuzz(net, 25000);
	node_post(a);
	KUNIT_EXPECT_TRUE(test, net_quiet(net, NSEC_PER_SEC));
	KUNIT_EXPECT_EQ(test, net->nodes[1].taken, 2u);
}

/* Receive random packets that have the id of the session. */
static void test_traitor(struct kunit *test)
{
	struct net *net = net_up(test);
	struct node *a = &net->nodes[0];
	struct sci_packet p;
	u8 body[SCI_MESSAGE_SIZE];
	int i;

	for (i = 0; i < 100000; i++) {
		net_garbage(net, &p);
		p.session = cpu_to_le32(a->s.rx_id);
		if (rnd_below(net, 2))
			p.seq = cpu_to_le32(a->s.rx_seq - 40 + rnd_below(net, 80));
		if (rnd_below(net, 2))
			p.ack = cpu_to_le32(a->s.tx_seq - 40 + rnd_below(net, 80));
		if (rnd_below(net, 4) == 0)
			node_post(a);
		sci_session_receive(&a->s, &p, net->now);
		while (sci_session_take(&a->s, body))
			;
		node_settle(a);
		KUNIT_EXPECT_LE(test, a->done, a->posted);
		net->flights = 0;
		if (a->s.state != SCI_SESSION_UP)
			session_begin(&a->s, prandom_u32_state(&net->rnd), net->now);
	}
	sci_session_close(&a->s);
	KUNIT_EXPECT_EQ(test, a->done, a->posted);
}

/* ---- random events ---- */

static void net_event(struct net *net)
{
	struct node *n = &net->nodes[rnd_below(net, 2)];

	switch (rnd_below(net, 16)) {
	case 0:
		node_restart(n);
		break;
	case 1:
		net->cut = !net->cut;
		break;
	case 2:
		sci_session_pause(&n->s);
		break;
	case 3:
		sci_session_resume(&n->s, net->now);
		break;
	case 4:
		node_watch(n, true);
		break;
	case 5:
		node_watch(n, false);
		break;
	case 6:
		sci_session_close(&n->s);
		node_restart(n);
		break;
	case 7:
		net->loss = rnd_below(net, 300);
		net->dup = rnd_below(net, 300);
		net->jitter = (1 + rnd_below(net, 3000)) * NSEC_PER_USEC;
		break;
	case 8:
		net_run(net, rnd_below(net, 7000) * NSEC_PER_MSEC);
		break;
	default:
		node_post_many(n, rnd_below(net, 4));
		n->replies = rnd_below(net, 3);
	}
	net_run(net, rnd_below(net, 300) * NSEC_PER_USEC);
}

static void net_heal(struct net *net)
{
	int i;

	net->cut = false;
	net->loss = 0;
	net->jitter = 0;
	for (i = 0; i < 2; i++) {
		sci_session_resume(&net->nodes[i].s, net->now);
		node_watch(&net->nodes[i], true);
		net->nodes[i].replies = 0;
	}
}

static void test_anything(struct kunit *test)
{
	struct net *net = net_create(test, &usual);
	struct node *a = &net->nodes[0], *b = &net->nodes[1];
	int i;

	for (i = 0; i < 2000; i++)
		net_event(net);
	net_heal(net);
	net_run(net, 20 * NSEC_PER_SEC);
	KUNIT_EXPECT_FALSE(test, session_has_messages(&a->s) || session_has_messages(&b->s));
	KUNIT_EXPECT_EQ(test, a->done, a->posted);
	KUNIT_EXPECT_EQ(test, b->done, b->posted);
	/* the session works again */
	a->taken = 0;
	b->taken = 0;
	node_post_many(a, 50);
	node_post_many(b, 50);
	KUNIT_EXPECT_TRUE(test, net_quiet(net, NSEC_PER_SEC));
	KUNIT_EXPECT_EQ(test, a->taken, 50u);
	KUNIT_EXPECT_EQ(test, b->taken, 50u);
}

static struct kunit_case session_cases[] = {
	KUNIT_CASE(test_in_order),
	KUNIT_CASE(test_loss),
	KUNIT_CASE(test_duplicates),
	KUNIT_CASE(test_reordering),
	KUNIT_CASE(test_everything),
	KUNIT_CASE(test_window),
	KUNIT_CASE(test_economy),
	KUNIT_CASE(test_steady),
	KUNIT_CASE(test_simultaneous),
	KUNIT_CASE(test_lost_handshakes),
	KUNIT_CASE(test_nobody_answers),
	KUNIT_CASE(test_no_such_node),
	KUNIT_CASE(test_no_such_node_any_more),
	KUNIT_CASE(test_returned),
	KUNIT_CASE(test_returned_for_a_moment),
	KUNIT_CASE(test_returned_while_up),
	KUNIT_CASE(test_returned_ack),
	KUNIT_CASE(test_lost),
	KUNIT_CASE(test_silence),
	KUNIT_CASE(test_quiet),
	KUNIT_CASE(test_link_pause),
	KUNIT_CASE(test_link_pause_silence),
	KUNIT_CASE(test_tick_late),
	KUNIT_CASE(test_bye),
	KUNIT_CASE(test_close),
	KUNIT_CASE(test_restart_up),
	KUNIT_CASE(test_restart_noticed),
	KUNIT_CASE(test_restart_hello),
	KUNIT_CASE(test_restart_gone),
	KUNIT_CASE(test_post_gone),
	KUNIT_CASE(test_restart_lost),
	KUNIT_CASE(test_half_open),
	KUNIT_CASE(test_restart_unnoticed),
	KUNIT_CASE(test_restart_early),
	KUNIT_CASE(test_careless),
	KUNIT_CASE(test_replay),
	KUNIT_CASE(test_replay_same_life),
	KUNIT_CASE(test_malformed),
	KUNIT_CASE(test_out_of_window),
	KUNIT_CASE(test_garbage),
	KUNIT_CASE(test_traitor),
	KUNIT_CASE(test_anything),
	{}
};

static struct kunit_suite session_suite = {
	.name = "sci_session",
	.test_cases = session_cases,
};

kunit_test_suite(session_suite);

MODULE_DESCRIPTION("Tests of sci sessions");
MODULE_LICENSE("GPL");
