/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: two nodes with two rails
 *
 * Nodes 4 and 8 each open an endpoint, connect, and play: stage_run() calls @play of the stage on
 * both nodes. Node 4 is the test process.
 *
 * On shm the second rail is a second cluster. With SCI_TEST_FABRIC=dev it is another adapter, whose
 * node has a number that is RAIL_STEP higher.
 */
#ifndef SELFTESTS_MSG_TWO_RAILS_H
#define SELFTESTS_MSG_TWO_RAILS_H

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <termios.h>

#include "libsci/msg/conn/conn.h"
#include "selftests/msg/traffic.h"

#define RAIL_STEP	8u
#define MESSAGES	(48u / TRAFFIC_SLOW)
#define WAY_TWO		(WAY_ALL & ~(1u << WAY_SINGLE_COPY))

struct side;

/* State that both nodes share. */
struct stage {
	const char *fault;		/* SCI_FAULT */
	unsigned int flags;		/* flags of sci_ep_open() */
	unsigned int ways;
	void (*play)(struct side *s);
	uint64_t seed;
	struct meeting meeting;
	_Atomic uint64_t wanted;	/* of node 4, for node 8 */
};

struct side {
	struct stage *stage;
	bool first;			/* node 4, which accepts */
	struct traffic traffic;
};

/* ---- the two rails ---- */

/* Name the second rail of node @node. */
static inline void rail_name(unsigned int node)
{
	char text[128];

	snprintf(text, sizeof(text), "shm:%srail", test_cluster());
	setenv("SCI_RAIL", test_on_shm() ? text : "dev", 1);
	snprintf(text, sizeof(text), "%u", node + RAIL_STEP);
	setenv("SCI_RAIL_NODE", text, 1);
}

static inline struct sci_link_status *link_of(struct side *s, unsigned int rail)
{
	return rail == RAIL_SECOND ? s->traffic.ep->rail_link : s->traffic.ep->link;
}

/* Wait for the answer of the switch to a command. */
static inline void switch_answer(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char answer[256];
	size_t n = 0;

	do {
		ssize_t got;

		CHECK(poll(&p, 1, TEST_WAIT_MS) == 1);
		got = read(fd, answer + n, sizeof(answer) - 1 - n);
		CHECK(got > 0);
		n += (size_t)got;
		answer[n] = 0;
	} while (!strchr(answer, '\n'));
	if (strcmp(answer, "ok\n"))
		FAIL("the switch says: %s", answer);
}

/*
 * Set the link of a card of a virtual machine. SCI_SWITCH is a terminal with the control socket of
 * the switch.
 */
static inline void card_link_set(unsigned int node, bool up)
{
	const char *path = getenv("SCI_SWITCH");
	struct termios t;
	char text[64];
	int fd, n;

	if (!path)
		SKIP("SCI_SWITCH does not name the switch");
	fd = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK_EQ(flock(fd, LOCK_EX), 0);
	CHECK_EQ(tcgetattr(fd, &t), 0);
	cfmakeraw(&t);
	CHECK_EQ(tcsetattr(fd, TCSANOW, &t), 0);
	n = snprintf(text, sizeof(text), "link %s %u\n", up ? "up" : "down", node);
	CHECK_EQ(write(fd, text, (size_t)n), n);
	switch_answer(fd);
	close(fd);
}

/* Set the link of one of this node's adapters. Skip where a test cannot do that. */
static inline void link_set(struct side *s, unsigned int rail, bool up)
{
	struct sci_fabric *fabric = rail == RAIL_SECOND ? s->traffic.ep->rail :
							  s->traffic.ep->fabric;
	struct sci_adapter_info info;
	char path[128];
	FILE *f;

	if (test_on_shm()) {
		atomic_store(&link_of(s, rail)->down, !up);
		atomic_fetch_add(&link_of(s, rail)->errors, !up);
		return;
	}
	CHECK_EQ(fabric->ops->query.adapter(fabric, 0, &info), 0);
	if (!strcmp(info.type, "pci")) {
		card_link_set(info.node, up);
		return;
	}
	snprintf(path, sizeof(path), "/sys/kernel/debug/sci%s/fault/link",
		 strrchr(info.device, '/'));
	f = fopen(path, "w");
	if (!f)
		SKIP("no %s", path);
	CHECK(fprintf(f, "%d", up) > 0);
	CHECK_EQ(fclose(f), 0);
}

static inline bool link_is(struct side *s, unsigned int rail, bool up)
{
	return sci_link_down(link_of(s, rail)) == !up;
}

/* Set the links of both nodes. */
static inline void links_set(struct side *s, unsigned int rail, bool up)
{
	link_set(s, rail, up);
	PROGRESS_UNTIL(s->traffic.ep, link_is(s, rail, up), TEST_WAIT_MS);
	meet(s->traffic.ep, &s->stage->meeting, 2);
}

/* ---- traffic ---- */

static inline void flows_add(struct side *s, struct sci_peer *peer)
{
	for (unsigned int k = 0; k < 2; k++)
		traffic_flow(&s->traffic, (struct flow){
			.peer = peer, .seed = s->stage->seed, .ways = s->stage->ways,
			.source = k ? 8 : 4, .dest = k ? 4 : 8, .sends = k == !s->first,
		});
}

static inline const struct flow *flow_sent(const struct side *s)
{
	return &s->traffic.flow[s->first ? 0 : 1];
}

/* Send @n messages in each direction. */
static inline void run(struct side *s, unsigned int n)
{
	for (unsigned int i = 0; i < s->traffic.n; i++)
		s->traffic.flow[i].limit += n;
	traffic_run(&s->traffic);
	meet(s->traffic.ep, &s->stage->meeting, 2);
}

static inline uint64_t second_bytes(const struct side *s)
{
	return test_ep_stats(s->traffic.ep).second_rail_bytes;
}

/* Run until @done() holds on both sides. */
static inline void run_until(struct side *s, bool (*done)(struct side *s, uint64_t arg), uint64_t arg)
{
	struct stage *st = s->stage;
	uint64_t want;

	do {
		run(s, MESSAGES / 4 + 1);
		atomic_fetch_add(&st->wanted, !done(s, arg));
		meet(s->traffic.ep, &st->meeting, 2);
		want = atomic_load(&st->wanted);
		meet(s->traffic.ep, &st->meeting, 2);
		if (s->first)
			atomic_store(&st->wanted, 0);
		meet(s->traffic.ep, &st->meeting, 2);
	} while (want);
}

static inline bool second_is_used(struct side *s, uint64_t before)
{
	return second_bytes(s) != before;
}

/* Run until both sides have sent on the second rail since @before. */
static inline void run_until_second(struct side *s, uint64_t before)
{
	run_until(s, second_is_used, before);
}

static inline bool lines_use(struct side *s, uint64_t rail)
{
	return s->traffic.flow[0].peer->rails->turn % RAILS == rail &&
	       !s->traffic.flow[0].peer->rerouting;
}

/* Open the endpoint with the second link down: it does not import the peer's inbox there. */
static bool second_link_is_late;

static inline void side_play(struct stage *st, bool first)
{
	static struct side s;
	const struct sci_addr addr = { 4, TEST_ID };
	struct sci_peer *peer = NULL;

	setenv("SCI_FAULT", st->fault, 1);
	s = (struct side){ .stage = st, .first = first };
	s.traffic.ep = test_ep_open(TEST_ID, st->flags);
	traffic_params(s.traffic.ep, st->ways);
	if (second_link_is_late)
		link_set(&s, RAIL_SECOND, false);
	if (first)
		peer = test_ep_accept(s.traffic.ep);
	else
		CHECK_EQ(sci_connect(s.traffic.ep, &addr, TEST_WAIT_MS, &peer), 0);
	flows_add(&s, peer);
	st->play(&s);
	traffic_free(&s.traffic);
	meet(s.traffic.ep, &st->meeting, 2);
	CHECK_EQ(sci_ep_close(s.traffic.ep), 0);
}

static inline void other_side(struct peer *self, void *arg)
{
	(void)self;
	rail_name(8);
	side_play(arg, false);
}

static inline struct stage *stage_new(void (*play)(struct side *s), const char *fault)
{
	struct stage *st = test_shared(sizeof(*st));

	st->play = play;
	st->fault = fault;
	st->ways = 1u << WAY_RENDEZVOUS;
	st->seed = traffic_seed();
	test_note("SCI_TEST_SEED=%#llx", (unsigned long long)st->seed);
	return st;
}

static inline void stage_run(struct stage *st)
{
	struct peer *p = peer_spawn(8, other_side, st);

	rail_name(4);
	side_play(st, true);
	peer_join(p);
}

/* ---- memory of the other node ---- */

/* Give the other node the key of @len exported bytes, and get the key of its bytes. */
static inline struct sci_key keys_swap(struct side *s, const void *mem, size_t len)
{
	struct sci_peer *to = s->traffic.flow[0].peer;
	struct sci_req *req = NULL;
	struct sci_key mine, theirs;

	CHECK_EQ(sci_buf_key(s->traffic.ep, mem, len, &mine), 0);
	CHECK_EQ(sci_itrecv(s->traffic.ep, to, 7, 0, 0, &theirs, sizeof(theirs), &req), 0);
	CHECK_EQ(sci_tsend(to, 7, 0, &mine, sizeof(mine)), 0);
	CHECK_EQ(test_wait(req, NULL), 0);
	return theirs;
}

/* ---- single messages ---- */

/* Wait until this side has imported the peer's inbox on the second rail, and meet the other side. */
static inline void second_wait(struct side *s)
{
	PROGRESS_UNTIL(s->traffic.ep, s->traffic.flow[0].peer->rails->second.outbox, TEST_WAIT_MS);
	meet(s->traffic.ep, &s->stage->meeting, 2);
}

static inline void number_send(struct side *s, uint32_t n)
{
	CHECK_EQ(sci_send(s->traffic.flow[0].peer, &n, sizeof(n)), 0);
}

static inline void number_recv(struct side *s, uint32_t n)
{
	uint32_t got = ~n;

	CHECK_EQ(sci_recv(s->traffic.ep, s->traffic.flow[0].peer, &got, sizeof(got), NULL), 0);
	CHECK_EQ(got, n);
}

/* Meet. Then one node makes no progress any more, and the other one goes on. */
static inline void meet_quiet(struct side *s, bool quiet)
{
	_Atomic uint64_t *wanted = &s->stage->wanted;

	meet(s->traffic.ep, &s->stage->meeting, 2);
	if (quiet)
		atomic_store(wanted, UINT64_MAX);
	else
		PROGRESS_UNTIL(s->traffic.ep, atomic_load(wanted) == UINT64_MAX, TEST_WAIT_MS);
}

#endif
