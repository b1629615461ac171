// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Many processes on few CPUs, and one endpoint with hundreds of peers: idle
 * peers cost little memory and no time, and their messages are noticed.
 */
#include <sched.h>
#include <sys/resource.h>

#include "libsci/msg/endpoint.h"
#include "selftests/msg/traffic.h"

/* ---- all to all ---- */

#define NODES		(TRAFFIC_SLOW > 1 ? 8u : 16u)
#define NODES_MAX	16u

struct town {
	struct meeting meeting;
	unsigned int rounds;
};

#define TOWN_MAX	300000u		/* a rendezvous */

static const size_t town_sizes[] = { 0, 48, 62, 1000, 8000, TOWN_MAX };

struct citizen {
	unsigned int me;		/* on node 4 * (me + 1) */
	struct sci_ep *ep;
	struct sci_peer *peer[NODES_MAX];
	unsigned char *in[NODES_MAX], *out;
};

/* Every node connects to all others, so each pair connects from both sides at once. */
static void citizen_open(struct citizen *c)
{
	c->ep = test_ep_open(TEST_ID, 0);
	for (unsigned int k = 1; k < NODES; k++) {
		unsigned int other = (c->me + k) % NODES;

		c->peer[other] = test_ep_connect(c->ep, 4 * (other + 1),
						 TEST_ID);
	}
	CHECK_EQ(test_ep_stats(c->ep).peers, NODES - 1);
	for (unsigned int k = 0; k < NODES; k++)
		c->in[k] = malloc(TOWN_MAX);
	c->out = malloc(TOWN_MAX);
}

static uint64_t town_seed(unsigned int from, size_t len, unsigned int round)
{
	return (uint64_t)round << 40 | (uint64_t)from << 32 | len;
}

static void all_to_all(struct citizen *c, size_t len, unsigned int round)
{
	struct sci_req *reqs[2 * NODES_MAX] = { NULL };
	struct sci_status st[2 * NODES_MAX];

	msg_fill(c->out, len, town_seed(c->me, len, round));
	for (unsigned int k = 1; k < NODES; k++) {
		unsigned int other = (c->me + k) % NODES;

		CHECK_EQ(sci_irecv(c->ep, c->peer[other], c->in[other], len,
				   &reqs[other]), 0);
		CHECK_EQ(sci_isend(c->peer[other], c->out, len,
				   &reqs[NODES_MAX + other]), 0);
	}
	CHECK_EQ(sci_waitall(reqs, 2 * NODES_MAX, TEST_WAIT_MS, st), 0);
	for (unsigned int k = 1; k < NODES; k++) {
		unsigned int other = (c->me + k) % NODES;

		CHECK_EQ(st[other].len, len);
		CHECK(st[other].peer == c->peer[other]);
		CHECK_BYTES(c->in[other], len, town_seed(other, len, round));
	}
}

static void live(struct citizen *c, struct town *town)
{
	citizen_open(c);
	for (unsigned int i = 0; i < town->rounds; i++)
		for (size_t s = 0; s < ARRAY_LEN(town_sizes); s++)
			all_to_all(c, town_sizes[s], i);
	meet(c->ep, &town->meeting, NODES);
	CHECK_EQ(sci_ep_close(c->ep), 0);
	for (unsigned int k = 0; k < NODES; k++)
		free(c->in[k]);
	free(c->out);
}

static void citizen(struct peer *self, void *arg)
{
	struct citizen c = {
		.me = (unsigned int)atoi(getenv("SCI_NODE")) / 4 - 1,
	};

	(void)self;
	live(&c, arg);
}

TEST(all_to_all)
{
	struct town *town = test_shared(sizeof(*town));
	struct citizen c = { .me = 0 };
	struct peer *p[NODES_MAX];

	town->rounds = TRAFFIC_SLOW > 1 ? 2 : 5;
	for (unsigned int k = 1; k < NODES; k++)
		p[k] = peer_spawn(4 * (k + 1), citizen, town);
	live(&c, town);
	for (unsigned int k = 1; k < NODES; k++)
		peer_join(p[k]);
}

/* ---- many processes on one node ---- */

#define CITY_ID		1000u
#define CITY_BYTES	65536u
#define CITY_MAX	250u

struct city {
	unsigned int n;
	_Atomic unsigned int born, open, done;
};

/* Each process opens connections to all others at the same time, and exchanges a message with each. */
static void city_live(struct city *c, unsigned int me)
{
	struct sci_status *st = calloc(2 * c->n, sizeof(*st));
	struct sci_req **reqs = calloc(2 * c->n, sizeof(struct sci_req *));
	struct sci_ep *ep = test_ep_open(CITY_ID + me, 0);
	unsigned char *in = malloc(CITY_BYTES), *out = calloc(1, CITY_BYTES);
	struct sci_peer *peer;

	atomic_fetch_add(&c->open, 1);
	WAIT_UNTIL(atomic_load(&c->open) == c->n, TEST_WAIT_MS);
	for (unsigned int k = 0; k < c->n; k++) {
		const struct sci_addr addr = { 4, CITY_ID + k };

		if (k == me)
			continue;
		CHECK_EQ(sci_peer_open(ep, &addr, -1, &peer), 0);
		CHECK_EQ(sci_irecv(ep, peer, in, CITY_BYTES, &reqs[2 * k]), 0);
		CHECK_EQ(sci_isend(peer, out, CITY_BYTES, &reqs[2 * k + 1]), 0);
	}
	CHECK_EQ(sci_waitall(reqs, 2 * c->n, -1, st), 0);
	for (unsigned int k = 0; k < c->n; k++)
		CHECK_EQ(st[2 * k].len, k == me ? 0 : CITY_BYTES);
	atomic_fetch_add(&c->done, 1);
	while (atomic_load(&c->done) < c->n)
		sci_accept(ep, 10, &peer);
	CHECK_EQ(sci_ep_close(ep), 0);
	free(in);
	free(out);
	free(reqs);
	free(st);
}

static void inhabitant(struct peer *self, void *arg)
{
	struct city *c = arg;

	(void)self;
	city_live(c, atomic_fetch_add(&c->born, 1));
}

/* SCI_TEST_PROCESSES: the number of processes, at most CITY_MAX. */
TEST(all_to_all_of_many_processes)
{
	const char *wanted = getenv("SCI_TEST_PROCESSES");
	struct city *c = test_shared(sizeof(*c));
	struct peer *p[CITY_MAX] = { NULL };

	c->n = wanted ? (unsigned int)atoi(wanted) : TRAFFIC_SLOW > 1 ? 12 : 32;
	CHECK(c->n > 0 && c->n <= CITY_MAX);
	c->born = 1;
	for (unsigned int k = 1; k < c->n; k++)
		p[k] = peer_spawn(4, inhabitant, c);
	city_live(c, 0);
	for (unsigned int k = 1; k < c->n; k++)
		peer_join(p[k]);
}

/* ---- hundreds of peers of one endpoint ---- */

#define CROWDS		4u		/* processes with many endpoints each */
#define PER_CROWD	(TRAFFIC_SLOW > 1 ? 20u : 75u)
#define PEERS		(CROWDS * PER_CROWD)
#define PEER_BYTES	8192u

struct hub {
	struct meeting meeting;
	_Atomic unsigned int step;	/* step that the crowds take */
	_Atomic unsigned int stepped;	/* crowds that have taken it */
};

struct crowd {
	struct hub *hub;
	unsigned int number;
	struct sci_ep *ep[128];
	struct sci_peer *to[128];
};

enum { STEP_FIRST = 1, STEP_ALL, STEP_ECHO, STEP_LONG, STEP_CLOSE };

#define LONG_LEN	50000u

/* Raise the limit of descriptors to the most that this process may have. */
static void raise_limit(void)
{
	struct rlimit lim;

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &lim), 0);
	lim.rlim_cur = lim.rlim_max;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &lim), 0);
}

static bool limit_is_low(void)
{
	struct rlimit lim;

	raise_limit();
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &lim), 0);
	return lim.rlim_cur < 16 * PEERS;
}

struct word {
	uint32_t node;
	uint32_t id;
	uint32_t n;
};

static void say(struct crowd *c, unsigned int i, uint32_t n)
{
	struct word w = { 8 + 4 * c->number, i + 1, n };

	CHECK_EQ(sci_tsend(c->to[i], 0, w.n, &w, sizeof(w)), 0);
}

static void say_long(struct crowd *c, unsigned int i)
{
	static unsigned char buf[LONG_LEN];
	uint64_t seed = (uint64_t)(8 + 4 * c->number) << 32 | (i + 1);

	msg_fill(buf, LONG_LEN, seed);
	CHECK_EQ(sci_tsend(c->to[i], 1, 0, buf, LONG_LEN), 0);
}

static void echo(struct crowd *c, unsigned int i)
{
	struct sci_status st;
	char buf[64];

	CHECK_EQ(sci_trecv(c->ep[i], c->to[i], 0, 5, 0, buf, sizeof(buf), &st),
		 0);
	CHECK_EQ(sci_tsend(c->to[i], 0, 6, buf, st.len), 0);
}

static void crowd_step(struct crowd *c, unsigned int step)
{
	for (unsigned int k = 0; k < PER_CROWD; k++) {
		/* in another order than that of the connects */
		unsigned int i = (unsigned int)((k * 37ull + 11) % PER_CROWD);

		switch (step) {
		case STEP_FIRST:
			if (i % 10 == c->number)
				say(c, i, 1);
			break;
		case STEP_ALL:
			for (uint32_t n = 0; n < 10; n++)
				say(c, i, 100 + n);
			break;
		case STEP_ECHO:
			echo(c, i);
			break;
		case STEP_LONG:
			say_long(c, i);
			break;
		case STEP_CLOSE:
			CHECK_EQ(sci_ep_close(c->ep[i]), 0);
			break;
		}
	}
}

static void crowd(struct peer *self, void *arg)
{
	static struct crowd c;
	unsigned int step = 0;

	(void)self;
	raise_limit();
	c.hub = arg;
	c.number = (unsigned int)atoi(getenv("SCI_NODE")) / 4 - 2;
	for (unsigned int i = 0; i < PER_CROWD; i++) {
		c.ep[i] = test_ep_open(i + 1, 0);
		c.to[i] = test_ep_connect(c.ep[i], 4, TEST_ID);
	}
	while (step < STEP_CLOSE) {
		atomic_fetch_add(&c.hub->stepped, 1);
		/* idle: these endpoints make no progress */
		WAIT_UNTIL(atomic_load(&c.hub->step) > step, 2 * TEST_WAIT_MS);
		crowd_step(&c, ++step);
	}
}

/* Let the crowds take @step. Do not wait for them. */
static void hub_next(struct hub *hub, unsigned int step)
{
	atomic_store(&hub->stepped, 0);
	atomic_store(&hub->step, step);
}

static void hub_settle(struct hub *hub, struct sci_ep *ep)
{
	PROGRESS_UNTIL(ep, atomic_load(&hub->stepped) == CROWDS,
		       2 * TEST_WAIT_MS);
}

static unsigned int hear(struct sci_ep *ep, uint32_t want)
{
	struct sci_status st;
	struct sci_addr addr;
	struct sci_req *req;
	struct word w;

	CHECK_EQ(sci_itrecv(ep, NULL, 0, want, 0, &w, sizeof(w), &req), 0);
	CHECK_EQ(test_wait(req, &st), 0);
	CHECK_EQ(st.len, sizeof(w));
	CHECK_EQ(sci_peer_addr(st.peer, &addr), 0);
	CHECK(addr.node == w.node && addr.id == w.id && w.n == want);
	return (w.node - 8) / 4 * PER_CROWD + w.id - 1;
}

/* Receive each number once from each peer. */
static void hear_all(struct sci_ep *ep)
{
	for (uint32_t n = 100; n < 110; n++) {
		unsigned char seen[CROWDS * 128] = { 0 };

		for (unsigned int i = 0; i < PEERS; i++)
			CHECK_EQ(seen[hear(ep, n)]++, 0);
	}
}

static void hear_first(struct sci_ep *ep, unsigned int heard)
{
	unsigned int want = 0;

	for (unsigned int i = 0; i < PER_CROWD; i++)
		want += i % 10 < CROWDS;
	while (heard++ < want)
		hear(ep, 1);
}

/* Return the connection to endpoint @i of the crowds. */
static struct sci_peer *hub_peer(struct sci_ep *ep, unsigned int i)
{
	struct sci_addr addr = {
		8 + 4 * (i / PER_CROWD), i % PER_CROWD + 1
	};
	struct sci_peer *peer = NULL;

	CHECK_EQ(sci_peer_find(ep, &addr, &peer), 0);
	return peer;
}

static void echo_all(struct sci_ep *ep)
{
	for (unsigned int i = 0; i < PEERS; i++) {
		struct sci_peer *to = hub_peer(ep, i);
		struct sci_addr addr;

		CHECK_EQ(sci_peer_addr(to, &addr), 0);
		CHECK_EQ(sci_tsend(to, 0, 5, &addr, sizeof(addr)), 0);
	}
	for (unsigned int i = 0; i < PEERS; i++) {
		struct sci_addr addr, got;
		struct sci_status st;

		CHECK_EQ(sci_trecv(ep, NULL, 0, 6, 0, &got, sizeof(got), &st),
			 0);
		CHECK_EQ(sci_peer_addr(st.peer, &addr), 0);
		CHECK(addr.node == got.node && addr.id == got.id);
	}
}

static void hear_long(struct sci_ep *ep)
{
	static unsigned char buf[LONG_LEN];

	for (unsigned int i = 0; i < PEERS; i++) {
		struct sci_status st;
		struct sci_addr addr;

		CHECK_EQ(sci_trecv(ep, NULL, 1, 0, 0, buf, LONG_LEN, &st), 0);
		CHECK_EQ(st.len, LONG_LEN);
		CHECK_EQ(sci_peer_addr(st.peer, &addr), 0);
		CHECK_BYTES(buf, LONG_LEN, (uint64_t)addr.node << 32 | addr.id);
	}
}

static void check_idle_bytes(struct sci_ep *ep)
{
	struct sci_ep_stats s = test_ep_stats(ep);

	CHECK_EQ(s.peers, PEERS);
	CHECK(s.peer_bytes > 0);
	test_note("%llu bytes for each of %u idle peers, %u descriptors, "
		  "%u maps", (unsigned long long)(s.peer_bytes / s.peers),
		  PEERS, count_fds(), count_maps());
	CHECK(s.peer_bytes / s.peers <= PEER_BYTES);
}

static struct sci_ep *hub_open(struct hub **hub, struct peer *p[CROWDS])
{
	struct sci_ep *ep;

	if (limit_is_low())
		SKIP("too few descriptors");
	*hub = test_shared(sizeof(**hub));
	for (unsigned int i = 0; i < CROWDS; i++)
		p[i] = peer_spawn(8 + 4 * i, crowd, *hub);
	ep = test_ep_open(TEST_ID, 0);
	hub_settle(*hub, ep);
	return ep;
}

static void hub_close(struct sci_ep *ep, struct hub *hub,
		      struct peer *p[CROWDS])
{
	struct sci_peer *from[CROWDS * 128];

	for (unsigned int i = 0; i < PEERS; i++)
		from[i] = hub_peer(ep, i);
	hub_next(hub, STEP_CLOSE);
	for (unsigned int i = 0; i < PEERS; i++) {
		char c;

		CHECK_EQ(sci_recv(ep, from[i], &c, 1, NULL), -ENOTCONN);
		CHECK_EQ(sci_disconnect(from[i]), 0);
	}
	for (unsigned int i = 0; i < CROWDS; i++)
		peer_join(p[i]);
	CHECK_EQ(test_ep_stats(ep).peers, 0);
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(hundreds_of_peers)
{
	struct peer *p[CROWDS];
	struct sci_ep *ep;
	struct hub *hub;

	ep = hub_open(&hub, p);
	check_idle_bytes(ep);
	hub_next(hub, STEP_FIRST);
	hear_first(ep, 0);
	hub_settle(hub, ep);
	hub_next(hub, STEP_ALL);
	hear_all(ep);
	hub_settle(hub, ep);
	/* short messages have cost no memory that stays */
	check_idle_bytes(ep);
	hub_next(hub, STEP_ECHO);
	echo_all(ep);
	hub_settle(hub, ep);
	hub_next(hub, STEP_LONG);
	hear_long(ep);
	hub_settle(hub, ep);
	hub_close(ep, hub, p);
}

/* ---- waits sleep ---- */

TEST(waits_with_idle_peers_sleep)
{
	struct peer *p[CROWDS];
	struct sci_status st;
	uint64_t sleeps;
	struct sci_req *req;
	struct sci_ep *ep;
	struct hub *hub;
	struct word w;

	ep = hub_open(&hub, p);
	CHECK_EQ(sci_itrecv(ep, NULL, 0, 1, 0, &w, sizeof(w), &req), 0);
	/* on a busy machine it may take long until the endpoint stops polling */
	sleeps = test_ep_stats(ep).sleeps;
	for (int ms = 100; test_ep_stats(ep).sleeps == sleeps; ms *= 2) {
		CHECK(ms < TEST_WAIT_MS);
		CHECK_EQ(sci_wait(req, ms, &st), -ETIMEDOUT);
	}
	sleeps = test_ep_stats(ep).sleeps;
	for (int ms = 100; test_ep_stats(ep).sleeps == sleeps; ms *= 2) {
		CHECK(ms < TEST_WAIT_MS);
		CHECK_EQ(sci_probe(ep, NULL, ms, &st), -ETIMEDOUT);
	}
	/* the peer that sends first wakes the endpoint */
	hub_next(hub, STEP_FIRST);
	CHECK_EQ(sci_wait(req, TEST_WAIT_MS, &st), 0);
	hear_first(ep, 1);
	hub_settle(hub, ep);
	hub_next(hub, STEP_ALL);
	hear_all(ep);
	hub_settle(hub, ep);
	hub_next(hub, STEP_ECHO);
	echo_all(ep);
	hub_settle(hub, ep);
	hub_next(hub, STEP_LONG);
	hear_long(ep);
	hub_settle(hub, ep);
	hub_close(ep, hub, p);
}

/* ---- a token that goes round many sleepers ---- */

#define RING_LAPS	(TRAFFIC_SLOW > 1 ? 20u : 100u)

static void pass_on(unsigned int me, struct town *town)
{
	unsigned int next = (me + 1) % NODES, last = (me + NODES - 1) % NODES;
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *to, *from;
	uint64_t token = 0;

	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_SPIN_US, 0), 0);
	to = test_ep_connect(ep, 4 * (next + 1), TEST_ID);
	from = test_ep_connect(ep, 4 * (last + 1), TEST_ID);
	for (unsigned int i = 0; i < RING_LAPS; i++) {
		if (!me)
			CHECK_EQ(sci_send(to, &token, sizeof(token)), 0);
		CHECK_EQ(sci_recv(ep, from, &token, sizeof(token), NULL), 0);
		token++;
		if (me)
			CHECK_EQ(sci_send(to, &token, sizeof(token)), 0);
	}
	if (!me)
		CHECK_EQ(token, RING_LAPS * NODES);
	/* all processes but one sleep */
	CHECK(test_ep_stats(ep).sleeps > 0);
	meet(ep, &town->meeting, NODES);
	CHECK_EQ(sci_ep_close(ep), 0);
}

static void passes_on(struct peer *self, void *arg)
{
	(void)self;
	pass_on((unsigned int)atoi(getenv("SCI_NODE")) / 4 - 1, arg);
}

TEST(a_token_wakes_one_after_the_other)
{
	struct town *town = test_shared(sizeof(*town));
	struct peer *p[NODES_MAX];

	for (unsigned int k = 1; k < NODES; k++)
		p[k] = peer_spawn(4 * (k + 1), passes_on, town);
	pass_on(0, town);
	for (unsigned int k = 1; k < NODES; k++)
		peer_join(p[k]);
}

/* ---- one sleeper, woken by each of many peers in turn ---- */

#define CALLERS		48u
#define WAKES		(TRAFFIC_SLOW > 1 ? 2000u : 10000u)
/* Rounds of progress between two messages, after which most callers are not polled. */
#define PAUSE_ROUNDS	150u

struct bedroom {
	_Atomic unsigned int connected;
	_Atomic unsigned int asked;	/* messages wanted so far */
	_Atomic unsigned int sent;
};

static struct {
	struct bedroom *room;
	const struct sci_fabric_ops *real;
	struct sci_fabric_ops ops;
	unsigned int wanted;
} bed;

static void caller(struct peer *self, void *arg)
{
	struct sci_peer *to[CALLERS];
	struct sci_ep *ep[CALLERS];
	struct bedroom *room = arg;

	for (unsigned int i = 0; i < CALLERS; i++) {
		ep[i] = test_ep_open(i + 1, 0);
		to[i] = test_ep_connect(ep[i], 4, TEST_ID);
	}
	atomic_store(&room->connected, 1);
	for (unsigned int n = 0; n < WAKES; n++) {
		uint64_t until = test_now_ms() + TEST_WAIT_MS;

		while (atomic_load(&room->asked) <= n) {
			if (test_now_ms() > until)
				FAIL("message %u did not wake", n - 1);
			sched_yield();
		}
		CHECK_EQ(sci_send(to[n % CALLERS], &n, sizeof(n)), 0);
		atomic_fetch_add(&room->sent, 1);
	}
	peer_expect(self, "leave");
	for (unsigned int i = 0; i < CALLERS; i++)
		CHECK_EQ(sci_ep_close(ep[i]), 0);
}

/*
 * The endpoint has announced its sleep and will look once more: let the message
 * arrive in between.
 */
static int barrier_and_message(struct sci_fabric *f)
{
	struct bedroom *room = bed.room;

	if (atomic_load(&room->asked) != bed.wanted) {
		atomic_store(&room->asked, bed.wanted);
		while (atomic_load(&room->sent) != bed.wanted)
			sched_yield();
	}
	return bed.real->wake_barrier(f);
}

static void bed_make(struct sci_ep *ep, struct bedroom *room)
{
	bed.room = room;
	bed.real = ep->fabric->ops;
	bed.ops = *ep->fabric->ops;
	bed.ops.wake_barrier = barrier_and_message;
	/* progress may use either pointer */
	ep->fabric->ops = &bed.ops;
	ep->ops = &bed.ops;
	ep->fabric->ops = ep->ops;
}

TEST(each_of_many_peers_wakes_a_sleeper)
{
	struct bedroom *room = test_shared(sizeof(*room));
	struct peer *p = peer_spawn(8, caller, room);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);

	if (!ep->wake_barrier || ep->lossy)
		SKIP("no wake barrier");
	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_SPIN_US, 0), 0);
	PROGRESS_UNTIL(ep, atomic_load(&room->connected), TEST_WAIT_MS);
	bed_make(ep, room);
	for (unsigned int n = 0; n < WAKES; n++) {
		unsigned int got;

		/* at times the last round of progress takes the doorbell */
		for (unsigned int i = 0; i < PAUSE_ROUNDS + n % 64; i++)
			test_progress(ep);
		bed.wanted = n + 1;
		CHECK_EQ(sci_recv(ep, NULL, &got, sizeof(got), NULL), 0);
		CHECK_EQ(got, n);
	}
	CHECK(test_ep_stats(ep).sleeps > 0);
	ep->fabric->ops = bed.real;
	ep->ops = bed.real;
	ep->fabric->ops = ep->ops;
	peer_send(p, "leave");
	peer_join(p);
	CHECK_EQ(sci_ep_close(ep), 0);
}
