// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Matching of messages and receives gives the same results as a search through an array. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "libsci/msg/proto/match.h"
#include "selftests/harness.h"

#define ANY	(~UINT64_C(0))
#define MANY	100000
#define LONG	64		/* length of a queue that is hashed */

static char peers[256][64];	/* their addresses are the sources of messages */

static uint64_t rng_state = 1;

static uint32_t rng(uint32_t below)
{
	rng_state = rng_state * 6364136223846793005 + 1442695040888963407;
	return (uint32_t)((rng_state >> 33) % below);
}

static size_t counted;		/* number of posted receives */

static struct sci_match *new_match(void)
{
	struct sci_match *m = malloc(sizeof(*m));

	CHECK(m != NULL);
	CHECK_EQ(sci_match_init(m), 0);
	return m;
}

static void delete_match(struct sci_match *m)
{
	CHECK_EQ(m->posted, 0);
	CHECK_EQ(counted, 0);
	CHECK_EQ(m->unexpected, 0);
	CHECK(!sci_match_recv_any(m));
	CHECK(!sci_match_msg_any(m));
	sci_match_fini(m);
	free(m);
}

/* Allocate each receive separately: the address sanitizer sees accesses beyond it. */
static struct sci_match_recv *new_recv(void *source, uint64_t tag,
				       uint64_t ignore, uint32_t context)
{
	struct sci_match_recv *r = malloc(sizeof(*r));

	CHECK(r != NULL);
	memset(r, 0xa5, sizeof(*r));	/* the caller need not clear it */
	r->source = source;
	r->tag = tag;
	r->ignore = ignore;
	r->stays = false;
	r->context = context;
	r->count = &counted;
	return r;
}

static struct sci_match_msg *new_msg(void *source, uint64_t tag,
				     uint32_t context)
{
	struct sci_match_msg *msg = malloc(sizeof(*msg));

	CHECK(msg != NULL);
	memset(msg, 0xa5, sizeof(*msg));
	msg->source = source;
	msg->tag = tag;
	msg->context = context;
	return msg;
}

static struct sci_match_recv *post(struct sci_match *m, void *source,
				   uint64_t tag, uint64_t ignore,
				   uint32_t context)
{
	struct sci_match_recv *r = new_recv(source, tag, ignore, context);

	sci_match_post(m, r);
	CHECK_EQ(counted, m->posted);
	return r;
}

static struct sci_match_msg *unexpected(struct sci_match *m, void *source,
					uint64_t tag, uint32_t context)
{
	struct sci_match_msg *msg = new_msg(source, tag, context);

	sci_match_unexpected(m, msg);
	return msg;
}

static void cancel(struct sci_match *m, struct sci_match_recv *r)
{
	sci_match_recv_remove(m, r);
	free(r);
}

static void drop(struct sci_match *m, struct sci_match_msg *msg)
{
	sci_match_msg_remove(m, msg);
	free(msg);
}

/* A message arrives. The match must be the receive @want. */
static void arrives_at(struct sci_match *m, struct sci_match_recv *want,
		       void *source, uint64_t tag, uint32_t context)
{
	struct sci_match_recv *r = sci_match_arrive(m, source, tag, context);

	CHECK(r == want);
	free(r);
}

static struct sci_match_msg *find(struct sci_match *m, void *source,
				  uint64_t tag, uint64_t ignore,
				  uint32_t context)
{
	struct sci_match_recv want = {
		.source = source, .tag = tag, .ignore = ignore,
		.context = context,
	};

	return sci_match_find(m, &want);
}

/* Add nodes that no test matches, so that both queues are long. */
static void lengthen(struct sci_match *m)
{
	for (unsigned int i = 0; i < LONG; i++) {
		post(m, peers[255], i / 2, 0, 255);
		unexpected(m, peers[255], i / 2, 255);
	}
	CHECK(m->recvs.hashed);
	CHECK(m->msgs.hashed);
}

static void close_match(struct sci_match *m)
{
	struct sci_match_recv *r;
	struct sci_match_msg *msg;

	while ((r = sci_match_recv_any(m)))
		cancel(m, r);
	while ((msg = sci_match_msg_any(m)))
		drop(m, msg);
	delete_match(m);
}

/* Run a test of few nodes with short queues and with long ones. */
#define TEST_SHORT_AND_LONG(name)					\
	static void name(struct sci_match *m);				\
	TEST(name)							\
	{								\
		struct sci_match *m = new_match();			\
									\
		name(m);						\
		lengthen(m);						\
		name(m);						\
		close_match(m);						\
	}								\
	static void name(struct sci_match *m)

/* ---- matching rules ---- */

TEST(nothing_queued)
{
	struct sci_match *m = new_match();

	CHECK(!sci_match_arrive(m, peers[0], 0, 0));
	CHECK(!find(m, peers[0], 0, 0, 0));
	CHECK(!find(m, NULL, 0, ANY, 0));
	CHECK(!sci_match_recv_of(m, peers[0]));
	CHECK(!sci_match_msg_of(m, peers[0]));
	delete_match(m);
}

static const struct {
	int source;			/* of the receive; -1: any */
	uint64_t tag, ignore;
	uint32_t context;
	int from;			/* of the message */
	uint64_t sent;
	uint32_t in;
	bool accepted;
} rules[] = {
	{ 1, 5, 0, 3,		1, 5, 3,	true },
	{ 1, 5, 0, 3,		2, 5, 3,	false },
	{ 1, 5, 0, 3,		1, 4, 3,	false },
	{ 1, 5, 0, 3,		1, 5, 2,	false },
	{ 1, 0, 0, 0,		1, 0, 0,	true },
	{ 1, ANY, 0, UINT32_MAX, 1, ANY, UINT32_MAX, true },
	{ 1, 0, 0, 0,		1, UINT64_C(1) << 63, 0, false },
	{ 1, 0, 0, 0,		1, 0, UINT32_C(1) << 31, false },
	{ -1, 5, 0, 3,		2, 5, 3,	true },
	{ -1, 5, 0, 3,		2, 4, 3,	false },
	{ -1, 5, 0, 3,		2, 5, 2,	false },
	{ 1, 5, ANY, 3,		1, 999, 3,	true },
	{ 1, 5, ANY, 3,		2, 5, 3,	false },
	{ 1, 5, ANY, 3,		1, 5, 4,	false },
	{ -1, 5, ANY, 3,	7, ANY, 3,	true },
	{ -1, 5, ANY, 3,	7, 5, 4,	false },
	{ 1, 0x120, 0xff, 3,	1, 0x1ff, 3,	true },
	{ 1, 0x120, 0xff, 3,	1, 0x220, 3,	false },
	{ 1, 1, ~UINT64_C(1), 3, 1, ANY, 3,	true },
	{ 1, 1, ~UINT64_C(1), 3, 1, ANY - 1, 3,	false },
	{ 1, 0, UINT64_C(1) << 63, 3, 1, UINT64_C(1) << 63, 3, true },
};

TEST_SHORT_AND_LONG(rules_for_one)
{
	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		char *source = rules[i].source < 0 ? NULL :
			       peers[rules[i].source];
		struct sci_match_recv *r = post(m, source, rules[i].tag,
						rules[i].ignore,
						rules[i].context), *got;
		struct sci_match_msg *msg;

		got = sci_match_arrive(m, peers[rules[i].from], rules[i].sent,
				       rules[i].in);
		if (got != (rules[i].accepted ? r : NULL))
			FAIL("rule %zu of a posted receive", i);
		if (!got)
			sci_match_recv_remove(m, r);
		msg = unexpected(m, peers[rules[i].from], rules[i].sent,
				 rules[i].in);
		if (sci_match_find(m, r) != (rules[i].accepted ? msg : NULL))
			FAIL("rule %zu of an unexpected message", i);
		drop(m, msg);
		free(r);
	}
}

/* ---- order ---- */

TEST_SHORT_AND_LONG(oldest_receive_first)
{
	struct sci_match_recv *r[6];

	r[0] = post(m, peers[0], 1, 0, 0);
	r[1] = post(m, NULL, 1, 0, 0);
	r[2] = post(m, peers[0], 1, 0, 0);
	r[3] = post(m, peers[0], 9, ANY, 0);
	r[4] = post(m, NULL, 9, ANY, 0);
	r[5] = post(m, peers[0], 1, 0, 0);
	arrives_at(m, r[0], peers[0], 1, 0);
	arrives_at(m, r[1], peers[0], 1, 0);
	arrives_at(m, r[4], peers[1], 1, 0);
	arrives_at(m, r[2], peers[0], 1, 0);
	arrives_at(m, r[3], peers[0], 1, 0);
	arrives_at(m, NULL, peers[1], 1, 0);
	arrives_at(m, r[5], peers[0], 1, 0);
	arrives_at(m, NULL, peers[0], 1, 0);
}

TEST_SHORT_AND_LONG(oldest_message_first)
{
	struct sci_match_msg *msg[4];

	msg[0] = unexpected(m, peers[0], 1, 0);
	msg[1] = unexpected(m, peers[1], 1, 0);
	msg[2] = unexpected(m, peers[0], 2, 0);
	msg[3] = unexpected(m, peers[0], 1, 0);
	CHECK(find(m, peers[0], 1, 0, 0) == msg[0]);
	CHECK(find(m, peers[0], 1, 0, 0) == msg[0]);	/* it remained */
	CHECK(find(m, peers[0], 2, 0, 0) == msg[2]);
	CHECK(find(m, peers[1], 0, ANY, 0) == msg[1]);
	CHECK(find(m, NULL, 0, ANY, 0) == msg[0]);
	drop(m, msg[0]);
	CHECK(find(m, peers[0], 1, 0, 0) == msg[3]);
	CHECK(find(m, NULL, 1, 0, 0) == msg[1]);
	CHECK(find(m, peers[0], 0, ANY, 0) == msg[2]);
	CHECK(find(m, NULL, 2, 0, 0) == msg[2]);
	drop(m, msg[1]);
	drop(m, msg[2]);
	CHECK(find(m, NULL, 0, ANY, 0) == msg[3]);
	drop(m, msg[3]);
	CHECK(!find(m, NULL, 0, ANY, 0));
}

/* Cancel the oldest, the newest and other nodes of one key, and wildcards. */
TEST_SHORT_AND_LONG(cancelled)
{
	struct sci_match_recv *r[7];
	struct sci_match_msg *msg[5];

	for (unsigned int i = 0; i < 5; i++)
		r[i] = post(m, peers[0], 1, 0, 0);
	r[5] = post(m, NULL, 1, 0, 0);
	r[6] = post(m, NULL, 1, 0, 0);
	cancel(m, r[2]);
	cancel(m, r[0]);
	cancel(m, r[4]);
	cancel(m, r[5]);
	arrives_at(m, r[1], peers[0], 1, 0);
	arrives_at(m, r[3], peers[0], 1, 0);
	arrives_at(m, r[6], peers[0], 1, 0);
	arrives_at(m, NULL, peers[0], 1, 0);
	for (unsigned int i = 0; i < 5; i++)
		msg[i] = unexpected(m, peers[0], 1, 0);
	drop(m, msg[2]);
	drop(m, msg[0]);
	drop(m, msg[4]);
	CHECK(find(m, peers[0], 1, 0, 0) == msg[1]);
	drop(m, msg[1]);
	CHECK(find(m, peers[0], 1, 0, 0) == msg[3]);
	drop(m, msg[3]);
	CHECK(!find(m, peers[0], 1, 0, 0));
}

/* The table grows several times between receives of one key. */
TEST(order_outlives_growth)
{
	struct sci_match_recv *wild, **r = calloc(MANY, sizeof(*r));
	struct sci_match *m = new_match();

	CHECK(r != NULL);
	wild = post(m, NULL, 3, 0, 0);
	for (unsigned int i = 0; i < MANY; i++)
		r[i] = post(m, peers[i & 1], i % (MANY / 4), 0, 0);
	arrives_at(m, wild, peers[1], 3, 0);
	for (unsigned int i = 0; i < MANY; i++)
		arrives_at(m, r[i], peers[i & 1], i % (MANY / 4), 0);
	delete_match(m);
	free(r);
}

/* ---- cost: nodes visited ---- */

static unsigned long steps_of(const struct sci_match *m)
{
	return m->recvs.steps + m->msgs.steps;
}

/* Ways in which programs number tags, contexts and sources. */
struct numbering {
	const char *name;
	unsigned int sources;
	unsigned int shift;		/* left shift of tags */
	bool by_context;
};

static const struct numbering numberings[] = {
	{ "tags", 1, 0, false },
	{ "tags times 64", 1, 6, false },
	{ "tags times 4096", 1, 12, false },
	{ "tags in the upper half", 1, 32, false },
	{ "tags in the last bits", 1, 48, false },
	{ "contexts", 1, 0, true },
	{ "16 sources, tags", 16, 0, false },
	{ "256 sources, tags", 256, 0, false },
	{ "256 sources, tags times 64", 256, 6, false },
	{ "256 sources, tags in the last bits", 256, 48, false },
	{ "256 sources, contexts", 256, 0, true },
};

static void key_of(const struct numbering *by, unsigned int i, void **source,
		   uint64_t *tag, uint32_t *context)
{
	*source = peers[i % by->sources];
	i /= by->sources;
	*tag = by->by_context ? 5 : (uint64_t)i << by->shift;
	*context = by->by_context ? i : 5;
}

/* Return the steps per call if @n nodes are queued and then matched in another order. */
static double exact_cost(const struct numbering *by, unsigned int n)
{
	struct sci_match *m = new_match();
	unsigned long before = steps_of(m);
	struct sci_match_msg *msg;
	struct sci_match_recv *r;
	uint32_t context;
	uint64_t tag;
	void *source;

	for (unsigned int i = 0; i < n; i++) {
		key_of(by, i, &source, &tag, &context);
		post(m, source, tag, 0, context);
		unexpected(m, source, tag, context);
	}
	for (unsigned int i = 0, k = 0; i < n; i++) {
		k = (k + 40503) % n;	/* no factor in common with n */
		key_of(by, k, &source, &tag, &context);
		r = sci_match_arrive(m, source, tag, context);
		CHECK(r && r->source == source && r->tag == tag);
		msg = sci_match_find(m, r);
		CHECK(msg && msg->tag == tag && msg->context == context);
		drop(m, msg);
		free(r);
	}
	before = steps_of(m) - before;
	delete_match(m);
	return (double)before / (4.0 * n);
}

TEST(cost_of_exact_matches_does_not_grow)
{
	static const unsigned int counts[] = { 8, 10, 100, 1000, 10000, 65536 };

	for (size_t by = 0; by < ARRAY_LEN(numberings); by++)
		for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
			double cost = exact_cost(&numberings[by], counts[i]);

			if (cost > 3)
				FAIL("%s: %.1f steps with %u queued",
				     numberings[by].name, cost, counts[i]);
			if (i == ARRAY_LEN(counts) - 1)
				test_note("%s: %.2f steps",
					  numberings[by].name, cost);
		}
}

TEST(cost_with_many_queued)
{
	double cost = exact_cost(&numberings[0], MANY);

	if (cost > 3)
		FAIL("%.1f steps with %u queued", cost, MANY);
}

/* Few bins with many nodes of one key make neither this key nor other keys slow. */
TEST(long_run_of_one_key)
{
	struct sci_match *m = new_match();
	unsigned long before, most = 0;

	for (unsigned int i = 0; i < MANY; i++) {
		post(m, peers[0], 7, 0, 0);
		unexpected(m, peers[0], 7, 0);
	}
	for (unsigned int i = 1; i <= 30; i++)
		if (i != 7) {
			post(m, peers[0], i, 0, 0);
			unexpected(m, peers[0], i, 0);
		}
	for (unsigned int i = 1; i <= 30; i++) {
		before = steps_of(m);
		CHECK(find(m, peers[0], i, 0, 0) != NULL);
		free(sci_match_arrive(m, peers[0], i, 0));
		if (steps_of(m) - before > most)
			most = steps_of(m) - before;
	}
	CHECK(most <= 16);
	before = steps_of(m);
	for (unsigned int i = 1; i < MANY; i++) {
		struct sci_match_recv *r = sci_match_arrive(m, peers[0], 7, 0);

		CHECK(r != NULL);
		free(r);
	}
	CHECK(steps_of(m) - before <= 8 * MANY);
	CHECK_EQ(m->posted, 0);
	close_match(m);
}

/* Wildcards that are younger than the matching exact receive are not visited. */
TEST(younger_wildcards_cost_nothing)
{
	struct sci_match *m = new_match();
	struct sci_match_recv *r[LONG];
	unsigned long before;

	for (unsigned int i = 0; i < LONG; i++)
		r[i] = post(m, peers[0], i, 0, 0);
	for (unsigned int i = 0; i < MANY; i++)
		post(m, NULL, MANY + i, 0, 0);
	before = steps_of(m);
	for (unsigned int i = 0; i < LONG; i++)
		arrives_at(m, r[i], peers[0], i, 0);
	CHECK(steps_of(m) - before <= 8 * LONG);
	close_match(m);
}

/* The number of bins depends on the nodes in the queue, not on those that ever were there. */
TEST(bins_for_those_queued)
{
	struct sci_match *m = new_match();

	lengthen(m);
	for (unsigned int i = 0; i < MANY; i++) {
		post(m, peers[0], i, 0, 0);
		drop(m, unexpected(m, peers[0], i, 0));
		free(sci_match_arrive(m, peers[0], i, 0));
	}
	CHECK_EQ(m->posted, LONG);
	CHECK_EQ(m->unexpected, LONG);
	CHECK(m->recvs.limit <= LONG);
	CHECK(m->msgs.limit <= LONG);
	close_match(m);
}

/* After a burst, a short queue is as fast as before. */
TEST(short_again_after_a_burst)
{
	struct sci_match *m = new_match();
	unsigned long before;

	for (unsigned int burst = 0; burst < 3; burst++) {
		for (unsigned int i = 0; i < 1000; i++)
			post(m, peers[0], i, 0, 0);
		CHECK(m->recvs.hashed);
		for (unsigned int i = 1000; i-- > 0;)
			free(sci_match_arrive(m, peers[0], i, 0));
		CHECK_EQ(m->posted, 0);
		CHECK(!m->recvs.hashed);
		before = steps_of(m);
		for (unsigned int i = 0; i < 1000; i++)
			arrives_at(m, post(m, peers[0], i, 0, 0), peers[0], i,
				   0);
		CHECK_EQ(steps_of(m) - before, 1000);
	}
	delete_match(m);
}

/* ---- oldest node of a source, and of all ---- */

TEST_SHORT_AND_LONG(of_a_source_oldest_first)
{
	struct sci_match_recv *r[4];
	struct sci_match_msg *msg[3];

	r[0] = post(m, peers[1], 1, 0, 0);
	r[1] = post(m, peers[0], 1, 0, 0);
	r[2] = post(m, NULL, 1, 0, 0);
	r[3] = post(m, peers[0], 1, ANY, 7);
	msg[0] = unexpected(m, peers[1], 1, 0);
	msg[1] = unexpected(m, peers[0], 1, 0);
	msg[2] = unexpected(m, peers[0], 2, 9);
	CHECK(sci_match_recv_of(m, peers[0]) == r[1]);
	CHECK(sci_match_recv_of(m, peers[1]) == r[0]);
	CHECK(sci_match_recv_of(m, peers[0]) == r[1]);
	cancel(m, r[1]);
	CHECK(sci_match_recv_of(m, peers[0]) == r[3]);
	cancel(m, r[0]);		/* a receive that the search has passed */
	CHECK(sci_match_recv_of(m, peers[0]) == r[3]);
	cancel(m, r[3]);
	CHECK(!sci_match_recv_of(m, peers[0]));
	r[0] = post(m, peers[0], 1, 0, 0);
	CHECK(sci_match_recv_of(m, peers[0]) == r[0]);
	CHECK(sci_match_msg_of(m, peers[0]) == msg[1]);
	drop(m, msg[0]);
	drop(m, msg[1]);
	CHECK(sci_match_msg_of(m, peers[0]) == msg[2]);
	CHECK(!sci_match_msg_of(m, peers[1]));
	drop(m, msg[2]);
	cancel(m, r[0]);
	cancel(m, r[2]);
}

/* Wildcards of another context that are never matched do not make a queue long. */
TEST(short_again_above_what_stays)
{
	struct sci_match *m = new_match();
	struct sci_match_recv *stays[4];
	unsigned long before;

	for (unsigned int i = 0; i < 4; i++)
		stays[i] = post(m, NULL, 0, ANY, 7);
	for (unsigned int burst = 0; burst < 3; burst++) {
		for (unsigned int i = 0; i < 100; i++)
			post(m, i & 1 ? NULL : peers[0], i, 0, 0);
		CHECK(m->recvs.hashed);
		CHECK(!sci_match_none_of(m, 0));
		for (unsigned int i = 0; i < 100; i++)
			free(sci_match_arrive(m, peers[0], i, 0));
		CHECK_EQ(m->posted, 4);
		CHECK(!m->recvs.hashed);
		CHECK(sci_match_none_of(m, 0));
		before = steps_of(m);
		CHECK(!sci_match_arrive(m, peers[0], 1, 0));
		CHECK_EQ(steps_of(m), before);
	}
	for (unsigned int i = 0; i < 4; i++) {
		CHECK(sci_match_arrive(m, peers[0], i, 7) == stays[i]);
		free(stays[i]);
	}
	delete_match(m);
}

TEST(a_source_among_many_is_passed_once)
{
	struct sci_match *m = new_match();
	unsigned long before;

	for (unsigned int i = 0; i < MANY; i++) {
		post(m, peers[i < MANY / 2], i, i & 1 ? ANY : 0, 0);
		unexpected(m, peers[i < MANY / 2], i, 0);
	}
	before = steps_of(m);
	for (unsigned int i = 0; i < MANY / 2; i++) {
		cancel(m, sci_match_recv_of(m, peers[0]));
		drop(m, sci_match_msg_of(m, peers[0]));
	}
	CHECK(!sci_match_recv_of(m, peers[0]));
	CHECK(!sci_match_msg_of(m, peers[0]));
	CHECK(steps_of(m) - before <= 4 * MANY);
	CHECK_EQ(m->posted, MANY / 2);
	CHECK_EQ(m->unexpected, MANY / 2);
	close_match(m);
}

/* ---- without memory ---- */

/* Take all memory that malloc() can return without asking the kernel. */
static void *take_all(void)
{
	void **taken = NULL, **more;

	while ((more = malloc(64))) {
		*more = taken;
		taken = more;
	}
	return taken;
}

static void give_back(void *taken)
{
	while (taken) {
		void *next = *(void **)taken;

		free(taken);
		taken = next;
	}
}

TEST(without_memory)
{
	struct sci_match_recv *r[600], *none[400];
	struct sci_match *m;
	struct rlimit rl;
	void *taken;

	if (TEST_ASAN || TEST_TSAN)
		SKIP("the sanitizer needs memory itself");
	m = new_match();
	for (unsigned int i = 0; i < ARRAY_LEN(r); i++)
		r[i] = new_recv(i % 5 ? peers[0] : NULL, i, 0, 0);
	CHECK_EQ(getrlimit(RLIMIT_AS, &rl), 0);
	CHECK_EQ(setrlimit(RLIMIT_AS, &(struct rlimit){ 0, rl.rlim_max }), 0);
	taken = take_all();
	for (unsigned int i = 0; i < 400; i++)
		sci_match_post(m, r[i]);
	for (unsigned int i = 0; i < 400; i++)
		none[i] = sci_match_arrive(m, peers[1], i, 0);
	CHECK_EQ(setrlimit(RLIMIT_AS, &rl), 0);
	give_back(taken);
	CHECK(!m->recvs.hashed);
	for (unsigned int i = 0; i < 400; i++)
		CHECK(none[i] == (i % 5 ? NULL : r[i]));
	for (unsigned int i = 400; i < 600; i++)
		sci_match_post(m, r[i]);
	for (unsigned int i = 0; i < 400; i += 5)
		sci_match_post(m, r[i]);
	CHECK(m->recvs.hashed);		/* after memory is available again */
	for (unsigned int i = 0; i < 600; i++)
		arrives_at(m, r[i], peers[0], i, 0);
	delete_match(m);
}

/* If a larger table cannot be allocated, chains become longer until there is memory. */
TEST(without_memory_to_grow)
{
	struct sci_match_recv *r[900];
	struct sci_match *m;
	struct rlimit rl;
	void *taken;

	if (TEST_ASAN || TEST_TSAN)
		SKIP("the sanitizer needs memory itself");
	m = new_match();
	for (unsigned int i = 0; i < ARRAY_LEN(r); i++)
		r[i] = new_recv(peers[0], i, 0, 0);
	for (unsigned int i = 0; i < 20; i++)
		sci_match_post(m, r[i]);
	CHECK(m->recvs.hashed);
	CHECK_EQ(m->recvs.limit, 32);
	CHECK_EQ(getrlimit(RLIMIT_AS, &rl), 0);
	CHECK_EQ(setrlimit(RLIMIT_AS, &(struct rlimit){ 0, rl.rlim_max }), 0);
	taken = take_all();
	for (unsigned int i = 20; i < 300; i++)
		sci_match_post(m, r[i]);
	CHECK_EQ(setrlimit(RLIMIT_AS, &rl), 0);
	give_back(taken);
	CHECK_EQ(m->recvs.shift, 64 - 5);
	for (unsigned int i = 300; i < 900; i++)
		sci_match_post(m, r[i]);
	CHECK_EQ(m->recvs.shift, 64 - 10);
	for (unsigned int i = 0; i < 900; i++)
		arrives_at(m, r[i], peers[0], i, 0);
	delete_match(m);
}

/* ---- random operations, compared with arrays ---- */

#define QUEUE_MAX	600

/* Parameters of a random run. */
struct profile {
	unsigned int sources, tags, contexts;
	unsigned int wild;		/* percentage of receives */
	unsigned int length;		/* approximate length of a queue */
	bool protocol;			/* never queue a pair that would match */
};

static const struct profile profiles[] = {
	{ 1, 1, 1, 0, 4, false },
	{ 1, 1, 1, 50, 12, false },
	{ 2, 2, 2, 30, 10, false },
	{ 3, 4, 2, 30, 40, false },
	{ 4, 300, 2, 0, 300, false },
	{ 4, 300, 2, 5, 300, false },
	{ 2, 3, 1, 10, 500, false },
	{ 8, 16, 3, 100, 60, false },
	{ 2, 2, 2, 20, 20, true },
	{ 4, 64, 1, 10, 100, true },
};

/* The same queues as arrays, oldest node first. */
struct oracle {
	struct sci_match *m;
	struct sci_match_recv *recv[QUEUE_MAX];
	struct sci_match_msg *msg[QUEUE_MAX];
	size_t recvs, msgs;
};

static bool agree(const struct sci_match_recv *r, const void *source,
		  uint64_t tag, uint32_t context)
{
	if (r->source && r->source != source)
		return false;
	for (unsigned int bit = 0; bit < 64; bit++)
		if (!(r->ignore >> bit & 1) &&
		    (r->tag >> bit & 1) != (tag >> bit & 1))
			return false;
	return r->context == context;
}

static void *forget(void *array, size_t *count, size_t i)
{
	void **at = (void **)array + i, *found = *at;

	memmove(at, at + 1, (--*count - i) * sizeof(*at));
	return found;
}

static uint64_t random_tag(const struct profile *p)
{
	uint64_t n = rng(p->tags);

	return n * UINT64_C(0x0001000000010001);
}

static uint64_t random_ignore(void)
{
	switch (rng(5)) {
	case 0:
		return ANY;
	case 1:
		return 0xff;
	case 2:
		return ~UINT64_C(3);
	case 3:
		return UINT64_C(1) << rng(64);
	default:
		return (uint64_t)rng(UINT32_MAX) << 33 ^ rng(UINT32_MAX);
	}
}

static struct sci_match_recv *random_recv(const struct profile *p)
{
	struct sci_match_recv *r = new_recv(peers[rng(p->sources)],
					    random_tag(p), 0,
					    rng(p->contexts));
	unsigned int how = rng(100) < p->wild ? 1 + rng(3) : 0;

	if (how & 1)
		r->source = NULL;
	if (how & 2)
		r->ignore = random_ignore();
	return r;
}

/* A message arrives. It is queued if no receive matches, or without a search. */
static void random_arrival(struct oracle *o, const struct profile *p,
			   bool search)
{
	char *source = peers[rng(p->sources)];
	uint32_t context = rng(p->contexts);
	uint64_t tag = random_tag(p);
	struct sci_match_recv *r;
	size_t i = 0;

	if (search) {
		while (i < o->recvs && !agree(o->recv[i], source, tag, context))
			i++;
		r = sci_match_arrive(o->m, source, tag, context);
		CHECK(r == (i < o->recvs ? o->recv[i] : NULL));
		if (r) {
			free(forget(o->recv, &o->recvs, i));
			return;
		}
		if (!p->protocol)
			return;
	}
	if (o->msgs < QUEUE_MAX)
		o->msg[o->msgs++] = unexpected(o->m, source, tag, context);
}

/* Make a receive. It is posted if no message matches, or without a search. */
static void random_receive(struct oracle *o, const struct profile *p,
			   bool search)
{
	struct sci_match_recv *r = random_recv(p);
	struct sci_match_msg *msg = NULL;
	size_t i = 0;

	if (search) {
		while (i < o->msgs && !agree(r, o->msg[i]->source,
					     o->msg[i]->tag,
					     o->msg[i]->context))
			i++;
		msg = sci_match_find(o->m, r);
		CHECK(msg == (i < o->msgs ? o->msg[i] : NULL));
		if (msg)
			drop(o->m, forget(o->msg, &o->msgs, i));
	}
	if (msg || (search && !p->protocol) || o->recvs == QUEUE_MAX) {
		free(r);
		return;
	}
	sci_match_post(o->m, r);
	o->recv[o->recvs++] = r;
}

static void random_cancel(struct oracle *o)
{
	if (o->recvs && rng(2))
		cancel(o->m, forget(o->recv, &o->recvs,
				    rng((uint32_t)o->recvs)));
	else if (o->msgs)
		drop(o->m, forget(o->msg, &o->msgs, rng((uint32_t)o->msgs)));
}

/* Find the oldest nodes of a source. With @take, remove them. */
static void random_source(struct oracle *o, const struct profile *p, bool take)
{
	char *source = peers[rng(p->sources)];
	struct sci_match_recv *r = sci_match_recv_of(o->m, source);
	struct sci_match_msg *msg = sci_match_msg_of(o->m, source);
	size_t i = 0;

	while (i < o->recvs && o->recv[i]->source != source)
		i++;
	CHECK(r == (i < o->recvs ? o->recv[i] : NULL));
	if (r && take)
		cancel(o->m, forget(o->recv, &o->recvs, i));
	for (i = 0; i < o->msgs && o->msg[i]->source != source;)
		i++;
	CHECK(msg == (i < o->msgs ? o->msg[i] : NULL));
	if (msg && take)
		drop(o->m, forget(o->msg, &o->msgs, i));
}

static void random_step(struct oracle *o, const struct profile *p)
{
	/* without a search, the queues fill up to about p->length */
	bool fill = !p->protocol && rng(2);
	unsigned int what = rng(100);

	if (what < 40)
		random_arrival(o, p, !fill || o->msgs > rng(2 * p->length));
	else if (what < 80)
		random_receive(o, p, !fill || o->recvs > rng(2 * p->length));
	else if (what < 90)
		random_source(o, p, false);
	else if (what < 92)
		random_source(o, p, true);
	else if (what < 98 || rng(40))
		random_cancel(o);
	else
		while (o->recvs + o->msgs)	/* empty both queues */
			random_cancel(o);
	CHECK_EQ(o->m->posted, o->recvs);
	CHECK_EQ(o->m->unexpected, o->msgs);
}

static void random_run(const struct profile *p, uint64_t seed)
{
	struct oracle o = { .m = new_match() };

	rng_state = seed * 2654435761 + 1;
	for (unsigned int i = 0; i < 3000; i++)
		random_step(&o, p);
	while (o.recvs) {
		CHECK(sci_match_recv_any(o.m) == o.recv[0]);
		cancel(o.m, forget(o.recv, &o.recvs, 0));
	}
	while (o.msgs) {
		CHECK(sci_match_msg_any(o.m) == o.msg[0]);
		drop(o.m, forget(o.msg, &o.msgs, 0));
	}
	delete_match(o.m);
}

TEST(random_operations)
{
	uint64_t seeds = TEST_ASAN || TEST_TSAN ? 20 : 60;

	for (uint64_t seed = 1; seed <= seeds; seed++)
		for (size_t i = 0; i < ARRAY_LEN(profiles); i++)
			random_run(&profiles[i], seed << 8 | i);
}
