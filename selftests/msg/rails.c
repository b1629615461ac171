// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Endpoints with two rails: long messages use both adapters, and every message arrives while one
 * of the adapters works.
 *
 * On shm the second rail is a second cluster. With SCI_TEST_FABRIC=dev it is another adapter, whose
 * node has a number that is RAIL_STEP higher.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <termios.h>

#include "libsci/msg/conn/conn.h"
#include "selftests/msg/traffic.h"

#define RAIL_STEP	8u
#define MESSAGES	(48u / TRAFFIC_SLOW)

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
static void rail_name(unsigned int node)
{
	char text[128];

	snprintf(text, sizeof(text), "shm:%srail", test_cluster());
	setenv("SCI_RAIL", test_on_shm() ? text : "dev", 1);
	snprintf(text, sizeof(text), "%u", node + RAIL_STEP);
	setenv("SCI_RAIL_NODE", text, 1);
}

static struct sci_link_status *link_of(struct side *s, unsigned int rail)
{
	return rail == RAIL_SECOND ? s->traffic.ep->rail_link : s->traffic.ep->link;
}

/* Wait for the answer of the switch to a command. */
static void switch_answer(int fd)
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
static void card_link_set(unsigned int node, bool up)
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
static void link_set(struct side *s, unsigned int rail, bool up)
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

static bool link_is(struct side *s, unsigned int rail, bool up)
{
	return sci_link_down(link_of(s, rail)) == !up;
}

/* Set the links of both nodes. */
static void links_set(struct side *s, unsigned int rail, bool up)
{
	link_set(s, rail, up);
	PROGRESS_UNTIL(s->traffic.ep, link_is(s, rail, up), TEST_WAIT_MS);
	meet(s->traffic.ep, &s->stage->meeting, 2);
}

/* ---- traffic ---- */

static void flows_add(struct side *s, struct sci_peer *peer)
{
	for (unsigned int k = 0; k < 2; k++)
		traffic_flow(&s->traffic, (struct flow){
			.peer = peer, .seed = s->stage->seed, .ways = s->stage->ways,
			.source = k ? 8 : 4, .dest = k ? 4 : 8, .sends = k == !s->first,
		});
}

static const struct flow *flow_sent(const struct side *s)
{
	return &s->traffic.flow[s->first ? 0 : 1];
}

/* Send @n messages in each direction. */
static void run(struct side *s, unsigned int n)
{
	for (unsigned int i = 0; i < s->traffic.n; i++)
		s->traffic.flow[i].limit += n;
	traffic_run(&s->traffic);
	meet(s->traffic.ep, &s->stage->meeting, 2);
}

static uint64_t second_bytes(const struct side *s)
{
	return test_ep_stats(s->traffic.ep).second_rail_bytes;
}

/* Run until @done() holds on both sides. */
static void run_until(struct side *s, bool (*done)(struct side *s, uint64_t arg), uint64_t arg)
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

static bool second_is_used(struct side *s, uint64_t before)
{
	return second_bytes(s) != before;
}

/* Run until both sides have sent on the second rail since @before. */
static void run_until_second(struct side *s, uint64_t before)
{
	run_until(s, second_is_used, before);
}

static bool lines_use(struct side *s, uint64_t rail)
{
	return s->traffic.flow[0].peer->rails->turn % RAILS == rail &&
	       !s->traffic.flow[0].peer->rerouting;
}

/* Open the endpoint with the second link down: it does not import the peer's inbox there. */
static bool second_link_is_late;

static void side_play(struct stage *st, bool first)
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

static void other_side(struct peer *self, void *arg)
{
	(void)self;
	rail_name(8);
	side_play(arg, false);
}

static struct stage *stage_new(void (*play)(struct side *s), const char *fault)
{
	struct stage *st = test_shared(sizeof(*st));

	st->play = play;
	st->fault = fault;
	st->ways = 1u << WAY_RENDEZVOUS;
	st->seed = traffic_seed();
	test_note("SCI_TEST_SEED=%#llx", (unsigned long long)st->seed);
	return st;
}

static void stage_run(struct stage *st)
{
	struct peer *p = peer_spawn(8, other_side, st);

	rail_name(4);
	side_play(st, true);
	peer_join(p);
}

/* ---- both rails work ---- */

static void play_both(struct side *s)
{
	struct sci_ep_stats stats;

	run(s, MESSAGES);
	run_until_second(s, 0);
	stats = test_ep_stats(s->traffic.ep);
	test_note("%llu and %llu bytes", (unsigned long long)stats.first_rail_bytes,
		  (unsigned long long)stats.second_rail_bytes);
	CHECK(stats.first_rail_bytes);
	CHECK(stats.second_rail_bytes);
	CHECK_EQ(stats.first_rail_bytes + stats.second_rail_bytes, flow_sent(s)->bytes);
}

TEST(both_rails_carry_a_message)
{
	stage_run(stage_new(play_both, ""));
}

TEST(both_rails_carry_a_message_with_check_sums)
{
	struct stage *st = stage_new(play_both, "");

	st->flags = SCI_EP_CRC;
	stage_run(st);
}

TEST(both_rails_lose_packets)
{
	stage_run(stage_new(play_both, "loss=0.01,reorder=0.05,dup=0.05"));
}

/* ---- the second rail fails ---- */

/* Let the second link go down and come back during the traffic. */
static void play_link(struct side *s)
{
	uint64_t before;

	run_until_second(s, 0);
	links_set(s, RAIL_SECOND, false);
	before = second_bytes(s);
	run(s, MESSAGES);
	CHECK_EQ(second_bytes(s), before);
	links_set(s, RAIL_SECOND, true);
	run_until_second(s, before);
}

TEST(the_second_link_goes_down_and_returns)
{
	stage_run(stage_new(play_link, ""));
}

TEST(the_second_link_of_a_lossy_fabric_goes_down_and_returns)
{
	stage_run(stage_new(play_link, "loss=0.01"));
}

/* A store barrier that finds that packets were lost. */
static void barrier_of_losses(struct sci_fabric *f, struct sci_rseg *r)
{
	sci_shm_fabric.rseg.store_barrier(f, r);
	if (r)
		atomic_fetch_add(&f->ops->rseg.status(r)->link->errors, 1);
}

/* The second link stays up, but loses packets in each block. */
static void play_losses(struct side *s)
{
	struct sci_ep *ep = s->traffic.ep;
	const struct sci_fabric_ops *ops = ep->rail->ops;
	struct sci_fabric_ops broken = *ops;
	uint64_t before;

	broken.rseg.store_barrier = barrier_of_losses;
	run_until_second(s, 0);
	before = second_bytes(s);
	ep->rail->ops = &broken;
	run(s, MESSAGES);
	CHECK_EQ(second_bytes(s), before);
	CHECK(test_ep_stats(ep).resent_blocks);
	ep->rail->ops = ops;
	run_until_second(s, before);
}

TEST(the_second_rail_loses_all_packets_for_a_time)
{
	test_needs_shm();
	stage_run(stage_new(play_losses, ""));
}

/* The import of the ring on the second rail ends. The sender imports the ring again. */
static void play_lost(struct side *s)
{
	struct sci_peer *p = s->traffic.flow[0].peer;
	struct sci_rseg *seg;

	for (unsigned int i = 0; i < 4; i++) {
		run_until_second(s, second_bytes(s));
		seg = p->rails->blocks_tx.seg;
		atomic_store(&s->traffic.ep->rail->ops->rseg.status(seg)->gone, 1);
		meet(s->traffic.ep, &s->stage->meeting, 2);
	}
	run_until_second(s, second_bytes(s));
}

TEST(the_ring_on_the_second_rail_is_imported_again)
{
	stage_run(stage_new(play_lost, ""));
}

/* ---- the first rail fails ---- */

/* Skip on cards, of which one node's link goes down before the other's in some tests. */
static void needs_patient_adapters(void)
{
	if (getenv("SCI_SWITCH"))
		SKIP("the driver gives a card up after many stores to a node that does not answer");
}

#define WAY_TWO		(WAY_ALL & ~(1u << WAY_SINGLE_COPY))

/* Let the first link go down and come back during the traffic. */
static void play_first_link(struct side *s)
{
	run_until_second(s, 0);
	links_set(s, RAIL_FIRST, false);
	run_until(s, lines_use, RAIL_SECOND);
	run(s, MESSAGES);
	links_set(s, RAIL_FIRST, true);
	run_until(s, lines_use, RAIL_FIRST);
	run(s, MESSAGES);
	CHECK(test_ep_stats(s->traffic.ep).reroutes >= 2);
}

static void run_first_link(const char *fault)
{
	struct stage *st = stage_new(play_first_link, fault);

	st->ways = WAY_TWO;
	stage_run(st);
}

TEST(the_first_link_goes_down_and_returns)
{
	run_first_link("loss=0");
}

TEST(the_first_link_of_a_lossy_fabric_goes_down_and_returns)
{
	run_first_link("loss=0.01,reorder=0.05,dup=0.05");
}

/* Only one node notices that its link is down: the other one follows. */
static void play_one_link(struct side *s)
{
	for (unsigned int i = 0; i < 2; i++) {
		run_until_second(s, second_bytes(s));
		if (s->first == i)
			link_set(s, RAIL_FIRST, false);
		meet(s->traffic.ep, &s->stage->meeting, 2);
		run_until(s, lines_use, RAIL_SECOND);
		run(s, MESSAGES);
		link_set(s, RAIL_FIRST, true);
		meet(s->traffic.ep, &s->stage->meeting, 2);
		run_until(s, lines_use, RAIL_FIRST);
	}
}

TEST(the_first_link_of_one_node_goes_down)
{
	struct stage *st = stage_new(play_one_link, "loss=0");

	needs_patient_adapters();
	st->ways = WAY_TWO;
	stage_run(st);
}

/* Each link goes down in turn while the other one works. */
static void play_turns(struct side *s)
{
	run_until_second(s, 0);
	for (unsigned int i = 0; i < 6; i++) {
		links_set(s, i % RAILS, false);
		run_until(s, lines_use, 1 - i % RAILS);
		run(s, MESSAGES / 4);
		links_set(s, i % RAILS, true);
		run(s, MESSAGES / 4);
	}
}

TEST(both_links_go_down_in_turn)
{
	struct stage *st = stage_new(play_turns, "loss=0.01");

	st->ways = WAY_TWO;
	stage_run(st);
}

/* The first link goes down in the middle of messages. */
static void play_amid(struct side *s)
{
	for (unsigned int i = 0; i < 8; i++) {
		for (unsigned int k = 0; k < s->traffic.n; k++)
			s->traffic.flow[k].limit += MESSAGES;
		for (unsigned int n = 0; n < i + 2; n++)
			traffic_step(&s->traffic, 0);
		link_set(s, i % RAILS, false);
		traffic_run(&s->traffic);
		link_set(s, i % RAILS, true);
		meet(s->traffic.ep, &s->stage->meeting, 2);
	}
}

TEST(links_go_down_amid_messages)
{
	struct stage *st = stage_new(play_amid, "loss=0");

	needs_patient_adapters();
	st->ways = WAY_TWO;
	stage_run(st);
}

/* ---- the two sides disagree ---- */

static void number_send(struct side *s, uint32_t n)
{
	CHECK_EQ(sci_send(s->traffic.flow[0].peer, &n, sizeof(n)), 0);
}

static void number_recv(struct side *s, uint32_t n)
{
	uint32_t got = ~n;

	CHECK_EQ(sci_recv(s->traffic.ep, s->traffic.flow[0].peer, &got, sizeof(got), NULL), 0);
	CHECK_EQ(got, n);
}

/* Meet. Then one node makes no progress any more, and the other one goes on. */
static void meet_quiet(struct side *s, bool quiet)
{
	_Atomic uint64_t *wanted = &s->stage->wanted;

	meet(s->traffic.ep, &s->stage->meeting, 2);
	if (quiet)
		atomic_store(wanted, UINT64_MAX);
	else
		PROGRESS_UNTIL(s->traffic.ep, atomic_load(wanted) == UINT64_MAX, TEST_WAIT_MS);
}

#define AHEAD	30u			/* lines: less than a ring, and enough for a status line */

/* Be two reroutes ahead of node 8, and return credits for lines that it writes before it follows. */
static void be_ahead(struct side *s)
{
	struct sci_peer *p = s->traffic.flow[0].peer;
	struct sci_ep *ep = s->traffic.ep;
	uint32_t read = p->data_rx.pos;

	link_set(s, RAIL_FIRST, false);
	number_send(s, 0);
	PROGRESS_UNTIL(ep, p->rails->turn == 1, TEST_WAIT_MS);
	link_set(s, RAIL_FIRST, true);
	PROGRESS_UNTIL(ep, p->rails->turn == 2, TEST_WAIT_MS);
	/* no third reroute */
	link_set(s, RAIL_SECOND, false);
	atomic_store(&s->stage->wanted, 1);
	for (uint32_t i = 0; i < AHEAD; i++)
		number_recv(s, i);
	PROGRESS_UNTIL(ep, p->status_sent.data - read >= DATA_LINES / 2, TEST_WAIT_MS);
	atomic_store(&s->stage->wanted, 2);
	for (uint32_t i = 0; i < AHEAD; i++)
		number_recv(s, AHEAD + i);
	CHECK_EQ(p->rails->turn, 2);
	link_set(s, RAIL_SECOND, true);
}

static void play_ahead(struct side *s)
{
	meet_quiet(s, !s->first);
	if (s->first) {
		be_ahead(s);
	} else {
		WAIT_UNTIL(atomic_load(&s->stage->wanted) == 1, TEST_WAIT_MS);
		for (uint32_t i = 0; i < AHEAD; i++)
			number_send(s, i);
		WAIT_UNTIL(atomic_load(&s->stage->wanted) == 2, TEST_WAIT_MS);
		for (uint32_t i = 0; i < AHEAD; i++)
			number_send(s, AHEAD + i);
		CHECK_EQ(s->traffic.flow[0].peer->rails->turn, 0);
		number_recv(s, 0);
		CHECK_EQ(s->traffic.flow[0].peer->rails->turn, 2);
	}
	meet(s->traffic.ep, &s->stage->meeting, 2);
}

TEST(a_peer_is_two_reroutes_ahead)
{
	test_needs_shm();
	stage_run(stage_new(play_ahead, "loss=0"));
}

/* Node 4 cannot use the rail to which node 8 has moved the lines. The first rail works again. */
static void play_unusable(struct side *s)
{
	struct sci_peer *p = s->traffic.flow[0].peer;
	struct sci_ep *ep = s->traffic.ep;

	PROGRESS_UNTIL(ep, p->rails->second.outbox, TEST_WAIT_MS);
	meet(ep, &s->stage->meeting, 2);
	p->rails->lost[RAIL_SECOND] = s->first;
	meet(ep, &s->stage->meeting, 2);
	if (!s->first) {
		link_set(s, RAIL_FIRST, false);
		number_send(s, 1);
		PROGRESS_UNTIL(ep, lines_use(s, RAIL_SECOND), TEST_WAIT_MS);
		link_set(s, RAIL_FIRST, true);
		number_recv(s, 2);
	} else {
		number_recv(s, 1);
		CHECK(p->rails->turn);
		number_send(s, 2);
		PROGRESS_UNTIL(ep, !p->rerouting, TEST_WAIT_MS);
	}
	CHECK(lines_use(s, RAIL_FIRST));
	p->rails->lost[RAIL_SECOND] = false;
	meet(ep, &s->stage->meeting, 2);
}

TEST(only_one_side_can_use_the_second_rail)
{
	test_needs_shm();
	stage_run(stage_new(play_unusable, "loss=0"));
}

static struct sci_rseg *outbox_kept;

static void disconnect_later(struct sci_rseg *r)
{
	if (r != outbox_kept)
		sci_shm_fabric.rseg.disconnect(r);
}

/* The import of the inbox to which lines go has ended. The lines use the next one. */
static void play_renewed(struct side *s)
{
	struct sci_peer *p = s->traffic.flow[0].peer;
	struct sci_ep *ep = s->traffic.ep;
	const struct sci_fabric_ops *ops = ep->fabric->ops;
	struct sci_fabric_ops kept = *ops;

	PROGRESS_UNTIL(ep, p->rails->second.outbox, TEST_WAIT_MS);
	meet(ep, &s->stage->meeting, 2);
	if (s->first) {
		outbox_kept = p->first.outbox;
		kept.rseg.disconnect = disconnect_later;
		msg_lock(&ep->lock);
		ep->fabric->ops = &kept;
		atomic_store(&ops->rseg.status(p->first.outbox)->gone, 1);
		p->rails->route_ms = 0;
		route_ask(p, RAIL_FIRST);
		msg_unlock(&ep->lock);
		PROGRESS_UNTIL(ep, p->first.outbox != outbox_kept, TEST_WAIT_MS);
		msg_lock(&ep->lock);
		ep->fabric->ops = ops;
		msg_unlock(&ep->lock);
	}
	run(s, MESSAGES);
	CHECK(lines_use(s, RAIL_FIRST));
	if (s->first)
		ops->rseg.disconnect(outbox_kept);
}

TEST(the_inbox_of_the_lines_is_imported_again)
{
	struct stage *st = stage_new(play_renewed, "loss=0");

	test_needs_shm();
	st->ways = WAY_TWO;
	stage_run(st);
}

static bool has_eager_ring(struct side *s, uint64_t arg)
{
	const struct msg_blocks *b = &s->traffic.flow[0].peer->blocks_tx[RING_EAGER];

	(void)arg;
	return b->size && !atomic_load(&s->traffic.ep->ops->rseg.status(b->seg)->gone);
}

/* The import of the eager ring ends. The sender gets another ring. */
static void play_eager_ring(struct side *s)
{
	const struct msg_blocks *b = &s->traffic.flow[0].peer->blocks_tx[RING_EAGER];

	run_until(s, has_eager_ring, 0);
	atomic_store(&s->traffic.ep->ops->rseg.status(b->seg)->gone, 1);
	run_until(s, has_eager_ring, 0);
	run(s, MESSAGES);
}

TEST(an_eager_ring_whose_import_has_ended_is_replaced)
{
	struct stage *st = stage_new(play_eager_ring, "loss=0");

	st->ways = 1u << WAY_EAGER;
	stage_run(st);
}

/* One-sided transfers reach memory of the peer by the first rail, or with the help of its owner. */
static void play_onesided(struct side *s)
{
	struct sci_peer *to = s->traffic.flow[0].peer;
	struct sci_ep *ep = s->traffic.ep;
	unsigned char *mem = NULL, bytes[5000], back[sizeof(bytes)];
	struct sci_key mine, theirs;
	struct sci_req *req = NULL;

	CHECK_EQ(sci_buf_alloc(ep, sizeof(bytes), (void **)&mem), 0);
	CHECK_EQ(sci_buf_key(ep, mem, sizeof(bytes), &mine), 0);
	CHECK_EQ(sci_itrecv(ep, to, 7, 0, 0, &theirs, sizeof(theirs), &req), 0);
	CHECK_EQ(sci_tsend(to, 7, 0, &mine, sizeof(mine)), 0);
	CHECK_EQ(test_wait(req, NULL), 0);
	for (unsigned int i = 0; i < 8; i++) {
		if (i == 2)
			links_set(s, RAIL_FIRST, false);
		if (i == 4)
			run_until(s, lines_use, RAIL_SECOND);
		if (i == 6) {
			links_set(s, RAIL_FIRST, true);
			run_until(s, lines_use, RAIL_FIRST);
		}
		memset(bytes, (int)i + 16 * s->first + 1, sizeof(bytes));
		CHECK_EQ(sci_write(to, &theirs, 0, bytes, sizeof(bytes)), 0);
		meet(ep, &s->stage->meeting, 2);
		CHECK_EQ(mem[0], i + 16 * !s->first + 1);
		CHECK_EQ(mem[sizeof(bytes) - 1], i + 16 * !s->first + 1);
		memset(back, 0, sizeof(back));
		CHECK_EQ(sci_read(to, &theirs, 0, back, sizeof(back)), 0);
		CHECK(!memcmp(back, bytes, sizeof(bytes)));
		meet(ep, &s->stage->meeting, 2);
	}
	meet(ep, &s->stage->meeting, 2);
	CHECK_EQ(sci_buf_free(ep, mem), 0);
}

TEST(one_sided_transfers_without_the_first_rail)
{
	stage_run(stage_new(play_onesided, "loss=0"));
}

/* ---- the end of a connection ---- */

/* Node 8 disconnects when its last message cannot use the first rail any more. */
static void play_leave(struct side *s)
{
	struct sci_peer *p = s->traffic.flow[0].peer;
	struct sci_ep *ep = s->traffic.ep;

	PROGRESS_UNTIL(ep, p->rails->second.outbox, TEST_WAIT_MS);
	meet(ep, &s->stage->meeting, 2);
	if (s->first) {
		number_recv(s, 1);
		return;
	}
	link_set(s, RAIL_FIRST, false);
	number_send(s, 1);
	CHECK_EQ(sci_disconnect(p), 0);
}

TEST(the_last_message_uses_the_second_rail)
{
	test_needs_shm();
	stage_run(stage_new(play_leave, "loss=0"));
}

/*
 * Node 8 sends its last messages on the first rail and disconnects, and never follows the reroute of
 * node 4. @turns: reroutes of node 4 before the last message
 */
static void last_words(struct side *s, uint32_t turns)
{
	struct sci_peer *p = s->traffic.flow[0].peer;
	_Atomic uint64_t *step = &s->stage->wanted;
	struct sci_ep *ep = s->traffic.ep;

	PROGRESS_UNTIL(ep, p->rails->second.outbox, TEST_WAIT_MS);
	meet_quiet(s, !s->first);
	if (!s->first) {
		WAIT_UNTIL(atomic_load(step) == 1, TEST_WAIT_MS);
		number_send(s, 1);
		atomic_store(step, 2);
		WAIT_UNTIL(atomic_load(step) == 3, TEST_WAIT_MS);
		number_send(s, 2);
		CHECK_EQ(p->rails->turn, 0);
		CHECK_EQ(sci_disconnect(p), 0);
		return;
	}
	link_set(s, RAIL_FIRST, false);
	number_send(s, 0);
	PROGRESS_UNTIL(ep, p->rails->turn == 1, TEST_WAIT_MS);
	atomic_store(step, 1);
	PROGRESS_UNTIL(ep, atomic_load(step) == 2, TEST_WAIT_MS);
	link_set(s, RAIL_FIRST, turns > 1);
	PROGRESS_UNTIL(ep, p->rails->turn >= turns, TEST_WAIT_MS);
	atomic_store(step, 3);
	number_recv(s, 1);
	number_recv(s, 2);
}

static void play_last_words(struct side *s)
{
	last_words(s, 1);
}

static void play_last_words_later(struct side *s)
{
	last_words(s, 2);
}

TEST(a_peer_leaves_without_a_reroute)
{
	test_needs_shm();
	stage_run(stage_new(play_last_words, "loss=0"));
}

TEST(a_peer_leaves_without_two_reroutes)
{
	test_needs_shm();
	stage_run(stage_new(play_last_words_later, "loss=0"));
}

/* ---- transfers that wait ---- */

static _Atomic unsigned int imports_refused;

static int refuse_import(struct sci_fabric *f, const struct sci_rseg_param *p, struct sci_rseg **out)
{
	(void)f;
	(void)p;
	(void)out;
	atomic_fetch_add(&imports_refused, 1);
	return -ENOTCONN;
}

/* Return whether no call to @p is in flight. */
static bool calls_are_done(const struct sci_peer *p)
{
	for (const struct list *l = p->calls.next; l != &p->calls; l = l->next)
		if (!call_is_done(container_of(l, const struct msg_call, link)))
			return false;
	return true;
}

/*
 * Write to memory of node 8 without the first rail, while node 8 makes no call for longer than the
 * time after which memory counts as missing.
 */
static void write_alone(struct side *s, const struct sci_key *key)
{
	const struct iovec iov = { .iov_base = &s->stage->seed, .iov_len = sizeof(uint64_t) };
	struct sci_peer *p = s->traffic.flow[0].peer;
	struct sci_ep *ep = s->traffic.ep;
	const struct sci_fabric_ops *ops = ep->fabric->ops;
	struct sci_fabric_ops broken = *ops;
	uint64_t until = test_now_ms() + 1500;
	struct sci_req *req = NULL;

	broken.rseg.connect = refuse_import;
	msg_lock(&ep->lock);
	ep->fabric->ops = &broken;
	p->rails->lost[RAIL_FIRST] = true;
	msg_unlock(&ep->lock);
	CHECK_EQ(sci_iwritev(p, key, 0, &iov, 1, &req), 0);
	PROGRESS_UNTIL(ep, atomic_load(&imports_refused) > 1 && test_now_ms() > until,
		       TEST_WAIT_MS);
	atomic_store(&s->stage->wanted, 1);
	CHECK_EQ(test_wait(req, NULL), 0);
	CHECK(lines_use(s, RAIL_SECOND));
	PROGRESS_UNTIL(ep, calls_are_done(p), TEST_WAIT_MS);
	msg_lock(&ep->lock);
	ep->fabric->ops = ops;
	p->rails->lost[RAIL_FIRST] = false;
	msg_unlock(&ep->lock);
}

static void play_alone(struct side *s)
{
	struct sci_peer *p = s->traffic.flow[0].peer;
	struct sci_ep *ep = s->traffic.ep;
	struct sci_key key;
	uint64_t *mem = NULL;

	PROGRESS_UNTIL(ep, p->rails->second.outbox, TEST_WAIT_MS);
	meet(ep, &s->stage->meeting, 2);
	if (!s->first) {
		CHECK_EQ(sci_buf_alloc(ep, sizeof(*mem), (void **)&mem), 0);
		CHECK_EQ(sci_buf_key(ep, mem, sizeof(*mem), &key), 0);
		CHECK_EQ(sci_send(p, &key, sizeof(key)), 0);
		WAIT_UNTIL(atomic_load(&s->stage->wanted), TEST_WAIT_MS);
	} else {
		CHECK_EQ(sci_recv(ep, p, &key, sizeof(key), NULL), 0);
		write_alone(s, &key);
	}
	meet(ep, &s->stage->meeting, 2);
	if (!s->first) {
		CHECK_EQ(*mem, s->stage->seed);
		CHECK_EQ(sci_buf_free(ep, mem), 0);
	}
}

TEST(a_write_waits_for_the_second_rail)
{
	test_needs_shm();
	stage_run(stage_new(play_alone, "loss=0"));
}

/* ---- the end of a peer ---- */

static void side_dies(struct side *s)
{
	run_until_second(s, 0);
	links_set(s, RAIL_FIRST, false);
	run_until(s, lines_use, RAIL_SECOND);
	if (!s->first)
		raise(SIGKILL);
	PROGRESS_UNTIL(s->traffic.ep,
		       sci_peer_state(s->traffic.flow[0].peer) == -ECONNRESET, NOTICE_MS);
}

/* Run @st on node 4. Node 8, which runs @other, dies. */
static void stage_run_dying(struct stage *st, void (*other)(struct peer *self, void *arg))
{
	static struct side s;
	struct peer *p;

	p = peer_spawn(8, other, st);
	rail_name(4);
	setenv("SCI_FAULT", st->fault, 1);
	s = (struct side){ .stage = st, .first = true };
	s.traffic.ep = test_ep_open(TEST_ID, 0);
	traffic_params(s.traffic.ep, st->ways);
	flows_add(&s, test_ep_accept(s.traffic.ep));
	st->play(&s);
	peer_kill(p, SIGKILL);
	CHECK_EQ(sci_ep_close(s.traffic.ep), 0);
}

TEST(a_peer_dies_on_the_second_rail)
{
	test_needs_shm();
	stage_run_dying(stage_new(side_dies, "loss=0"), other_side);
}

/*
 * Node 8 imports the inbox on the second rail late, and dies. Node 4 sees the events of both only
 * afterwards, together.
 */
static void play_late_death(struct side *s)
{
	struct sci_peer *p = s->traffic.flow[0].peer;
	const unsigned int lost = PEER_LOST | PEER_RAIL_LOST;
	struct sci_ep *ep = s->traffic.ep;

	if (s->first)
		PROGRESS_UNTIL(ep, p->rails->second.outbox, TEST_WAIT_MS);
	meet_quiet(s, s->first);
	if (!s->first) {
		CHECK(!p->rails->second.outbox);
		link_set(s, RAIL_SECOND, true);
		msg_lock(&ep->lock);
		route_ask(p, RAIL_SECOND);
		msg_unlock(&ep->lock);
		PROGRESS_UNTIL(ep, p->rails->second.outbox, TEST_WAIT_MS);
		raise(SIGKILL);
	}
	WAIT_UNTIL((atomic_load(&p->events) & lost) == lost, TEST_WAIT_MS);
	CHECK(atomic_load(&p->events) & PEER_RAIL_CAME);
	PROGRESS_UNTIL(ep, sci_peer_state(p) == -ECONNRESET, NOTICE_MS);
}

static void late_side(struct peer *self, void *arg)
{
	(void)self;
	rail_name(8);
	second_link_is_late = true;
	side_play(arg, false);
}

TEST(a_peer_dies_after_a_late_import)
{
	test_needs_shm();
	stage_run_dying(stage_new(play_late_death, "loss=0"), late_side);
}

/* ---- one rail ---- */

static void play_first_only(struct side *s)
{
	run(s, MESSAGES);
	CHECK_EQ(second_bytes(s), 0);
}

static void side_without_rail(struct peer *self, void *arg)
{
	(void)self;
	unsetenv("SCI_RAIL");
	side_play(arg, false);
}

TEST(only_one_side_has_two_rails)
{
	struct stage *st = stage_new(play_first_only, "");
	struct peer *p = peer_spawn(8, side_without_rail, st);

	rail_name(4);
	side_play(st, true);
	peer_join(p);
}

static void side_elsewhere(struct peer *self, void *arg)
{
	char text[128];

	(void)self;
	rail_name(8);
	snprintf(text, sizeof(text), "shm:%sother", test_cluster());
	setenv("SCI_RAIL", text, 1);
	side_play(arg, false);
}

TEST(the_second_rails_are_not_connected)
{
	struct stage *st = stage_new(play_first_only, "");
	struct peer *p;

	test_needs_shm();
	p = peer_spawn(8, side_elsewhere, st);
	rail_name(4);
	side_play(st, true);
	peer_join(p);
}

TEST(both_rails_must_be_different_adapters)
{
	struct sci_ep *ep = NULL;

	setenv("SCI_RAIL", getenv("SCI_FABRIC"), 1);
	CHECK_EQ(sci_ep_open(&ep, TEST_ID, 0), -EINVAL);
	setenv("SCI_RAIL", "nothing", 1);
	CHECK_EQ(sci_ep_open(&ep, TEST_ID, 0), -EINVAL);
	setenv("SCI_RAIL", "", 1);
	CHECK_EQ(sci_ep_open(&ep, TEST_ID, 0), 0);
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(attributes_name_the_second_rail)
{
	char text[128];
	struct sci_ep_attr attr = {
		.size = sizeof(attr), .rail = text, .rail_node = 4 + RAIL_STEP,
	};
	struct sci_ep *ep = NULL;

	snprintf(text, sizeof(text), "shm:%srail", test_cluster());
	if (!test_on_shm())
		snprintf(text, sizeof(text), "dev");
	CHECK_EQ(sci_ep_open_attr(&ep, &attr), 0);
	CHECK(ep->rail);
	CHECK_EQ(ep->rail_node, 4 + RAIL_STEP);
	CHECK_EQ(sci_ep_close(ep), 0);
	/* "" hides the variable in the environment */
	rail_name(4);
	attr.rail = "";
	CHECK_EQ(sci_ep_open_attr(&ep, &attr), 0);
	CHECK(!ep->rail);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* ---- wrong values ---- */

/* Check that an open fails, and that its message begins with @text. */
static void open_fails(const struct sci_ep_attr *attr, const char *text)
{
	int keep = dup(STDERR_FILENO), fd = memfd_create("stderr", MFD_CLOEXEC);
	struct sci_ep *ep = NULL;
	char said[512] = "";

	CHECK(keep >= 0 && fd >= 0);
	CHECK(dup2(fd, STDERR_FILENO) >= 0);
	CHECK_EQ(sci_ep_open_attr(&ep, attr), -EINVAL);
	CHECK(dup2(keep, STDERR_FILENO) >= 0);
	CHECK(pread(fd, said, sizeof(said) - 1, 0) >= 0);
	close(keep);
	close(fd);
	if (strncmp(said, text, strlen(text)))
		FAIL("\"%s\" does not begin with \"%s\"", said, text);
}

TEST(a_message_names_the_wrong_variable)
{
	const struct sci_ep_attr attr = { .size = sizeof(attr) };

	setenv("SCI_RAIL", "nothing", 1);
	open_fails(&attr, "libsci: SCI_RAIL=nothing: want auto, dev,");
	setenv("SCI_RAIL", "shm:a/b", 1);
	open_fails(&attr, "libsci: SCI_RAIL=shm:a/b: want shm:CLUSTER,");
	setenv("SCI_RAIL", getenv("SCI_FABRIC"), 1);
	open_fails(&attr, "libsci: SCI_RAIL=");
	setenv("SCI_RAIL_NODE", "5", 1);
	open_fails(&attr, "libsci: SCI_RAIL_NODE=5: want a node id, a multiple of 4");
	setenv("SCI_RAIL_NODE", "x", 1);
	open_fails(&attr, "libsci: SCI_RAIL_NODE=x: want a node id, a multiple of 4");
}

TEST(a_message_names_the_wrong_attribute)
{
	struct sci_ep_attr attr = { .size = sizeof(attr), .rail = "nothing" };

	open_fails(&attr, "libsci: rail=nothing: want auto, dev,");
	attr.rail = test_on_shm() ? "shm" : "dev";
	attr.rail_node = 5;
	open_fails(&attr, "libsci: rail_node=5: want a node id, a multiple of 4");
	attr = (struct sci_ep_attr){ .size = sizeof(attr), .fabric = "nothing" };
	open_fails(&attr, "libsci: fabric=nothing: want auto, dev,");
}
