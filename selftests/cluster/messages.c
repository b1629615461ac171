// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Exchange messages of every protocol between two machines while the fabric has
 * faults. Both sides check every byte, the order, and that each message comes once:
 *
 *	CLUSTER_PEER=4 SCI_TEST_NODE=8 messages listener
 *	CLUSTER_PEER=8 SCI_TEST_NODE=4 messages talker
 *
 * Both send at the same time. If the connection is lost and CLUSTER_MAY_LOSE is
 * set, the talker makes another one, with new messages.
 */
#include "selftests/cluster/endure.h"
#include "selftests/msg/traffic.h"

#define LISTENER_ID	5u
#define TALK_CONTEXT	0x74616c6bu
#define STREAMS		3u		/* untagged, and two contexts */
#define TURN		16u		/* messages of each flow in a turn */

/* Messages come in turns. The talker says whether another turn follows. */
struct turn {
	uint64_t seed;
	uint64_t more;
};

struct side {
	struct traffic t;
	struct sci_peer *to;
	uint64_t turns, messages, bytes;
	bool talks;
};

static bool is_lost(int ret)
{
	if (ret == -ECONNRESET || ret == -ENOTCONN || ret == -EPIPE)
		return true;
	CHECK_EQ(ret, 0);
	return false;
}

static bool exchange_word(struct side *s, struct turn *w, bool sends)
{
	struct sci_req *req = NULL;
	int ret;

	if (sends)
		ret = sci_itsend(s->to, TALK_CONTEXT, 0, w, sizeof(*w), &req);
	else
		ret = sci_itrecv(s->t.ep, s->to, TALK_CONTEXT, 0, 0, w,
				 sizeof(*w), &req);
	if (!ret)
		ret = sci_wait(req, (int)RECOVERY_MS, NULL);
	return !is_lost(ret);
}

/* Exchange one turn. Return false if the connection is lost. */
static bool exchange_messages(struct side *s, uint64_t seed)
{
	unsigned int me = number_of("SCI_TEST_NODE", 4);
	unsigned int peer = number_of("CLUSTER_PEER", 8);
	uint64_t until = test_now_ms() + RECOVERY_MS;
	bool lost = false;

	for (unsigned int k = 0; k < 2 * STREAMS; k++)
		traffic_flow(&s->t, (struct flow){
			.peer = s->to, .limit = TURN, .seed = seed,
			.stream = k / 2, .ways = WAY_ALL, .sends = k & 1,
			.may_die = true, .source = k & 1 ? me : peer,
			.dest = k & 1 ? peer : me,
		});
	/* heavy loss makes turns slow, but some messages must still complete */
	while (!traffic_idle(&s->t) || !s->t.flow[0].next) {
		if (traffic_step(&s->t, 1000))
			until = test_now_ms() + RECOVERY_MS;
		else if (test_now_ms() > until)
			FAIL("messages hang");
	}
	for (unsigned int k = 0; k < s->t.n; k++) {
		struct flow *f = &s->t.flow[k];

		lost |= f->error || f->done < f->limit;
		if (f->sends)
			continue;
		s->messages += f->done;
		s->bytes += f->bytes;
	}
	traffic_free(&s->t);
	return !lost;
}

static void check_lost(const struct side *s)
{
	if (!may_lose_connections())
		FAIL("the connection is lost after %llu messages",
		     (unsigned long long)s->messages);
}

static void report(const struct side *s, unsigned int connections)
{
	struct sci_ep_stats st = test_ep_stats(s->t.ep);

	test_note("verified %llu messages %llu bytes; %u connections",
		  (unsigned long long)s->messages, (unsigned long long)s->bytes,
		  connections);
	test_note("%llu short, %llu lines, %llu eager, %llu rendezvous, %llu "
		  "zero-copy; sent again: %llu lines, %llu blocks",
		  (unsigned long long)st.sent_short,
		  (unsigned long long)st.sent_lines,
		  (unsigned long long)st.sent_eager,
		  (unsigned long long)st.sent_rendezvous,
		  (unsigned long long)st.sent_zcopy,
		  (unsigned long long)st.resent_lines,
		  (unsigned long long)st.resent_blocks);
}

/* Take turns until the talker ends. Return false if the connection is lost. */
static bool listen_once(struct side *s)
{
	struct turn w;

	while (exchange_word(s, &w, false)) {
		if (!w.more)
			return exchange_word(s, &w, true);
		if (!exchange_messages(s, w.seed))
			return false;
	}
	return false;
}

TEST(listener)
{
	uint64_t until = test_now_ms() + endure_seconds() * 1000ull +
			 RECOVERY_MS;
	unsigned int connections = 0;
	static struct side s;
	bool end = false;
	int ret;

	s.t.ep = test_ep_open(LISTENER_ID, 0);
	traffic_params(s.t.ep, WAY_ALL);
	while (!end) {
		ret = sci_accept(s.t.ep, 1000, &s.to);
		if (ret == -ETIMEDOUT) {
			if (test_now_ms() > until)
				FAIL("nobody calls");
			continue;
		}
		CHECK_EQ(ret, 0);
		connections++;
		end = listen_once(&s);
		if (!end)
			check_lost(&s);
		/* wait until the last answer has arrived */
		if (end)
			HAPPENS((test_progress(s.t.ep), sci_peer_state(s.to)),
				5000);
		CHECK_EQ(sci_disconnect(s.to), 0);
	}
	report(&s, connections);
	CHECK_EQ(sci_ep_close(s.t.ep), 0);
}

static bool talk_once(struct side *s, uint64_t *state, uint64_t until)
{
	struct turn w = { .more = 1 };

	while (test_now_ms() < until) {
		w.seed = draw(state, UINT64_MAX);
		if (!exchange_word(s, &w, true) ||
		    !exchange_messages(s, w.seed))
			return false;
	}
	w.more = 0;
	return exchange_word(s, &w, true) && exchange_word(s, &w, false);
}

static void call(struct side *s)
{
	struct sci_addr addr = { number_of("CLUSTER_PEER", 8), LISTENER_ID };
	uint64_t until = test_now_ms() + RECOVERY_MS;
	int ret;

	while ((ret = sci_connect(s->t.ep, &addr, 2000, &s->to))) {
		if (test_now_ms() > until)
			FAIL("no connection: %s", strerror(-ret));
		usleep(20000);
	}
}

TEST(talker)
{
	uint64_t until = test_now_ms() + endure_seconds() * 1000ull;
	uint64_t state = traffic_seed();
	unsigned int connections = 0;
	static struct side s;
	bool end = false;

	test_note("SCI_TEST_SEED=%#llx", (unsigned long long)state);
	s.t.ep = test_ep_open(LISTENER_ID + 1, 0);
	traffic_params(s.t.ep, WAY_ALL);
	while (!end) {
		call(&s);
		connections++;
		end = talk_once(&s, &state, until);
		if (!end)
			check_lost(&s);
		CHECK_EQ(sci_disconnect(s.to), 0);
	}
	report(&s, connections);
	CHECK_EQ(sci_ep_close(s.t.ep), 0);
}
