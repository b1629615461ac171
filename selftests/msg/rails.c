// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Endpoints with two rails: long messages use both adapters, and every message arrives while one
 * of the adapters works.
 */
#include <sys/mman.h>

#include "selftests/msg/two_rails.h"

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

/* ---- bytes that go straight into memory of the other node ---- */

/* More than both rails carry between two checks for lost packets. */
#define AREA		(3u << 20)

/* Exported memory of this node, and the key of the other node's. */
struct area {
	unsigned char *mem;
	struct sci_key theirs;
	bool registered;
};

static void area_make(struct side *s, struct area *a)
{
	struct sci_ep *ep = s->traffic.ep;

	if (a->registered) {
		a->mem = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			      -1, 0);
		CHECK(a->mem != MAP_FAILED);
		CHECK_EQ(sci_buf_register(ep, a->mem, AREA), 0);
	} else {
		CHECK_EQ(sci_buf_alloc(ep, AREA, (void **)&a->mem), 0);
	}
	a->theirs = keys_swap(s, a->mem, AREA);
	CHECK(a->theirs.rail);
	second_wait(s);
}

static void area_free(struct side *s, struct area *a)
{
	if (!a->registered) {
		CHECK_EQ(sci_buf_free(s->traffic.ep, a->mem), 0);
		return;
	}
	CHECK_EQ(sci_buf_unregister(s->traffic.ep, a->mem, AREA), 0);
	CHECK_EQ(munmap(a->mem, AREA), 0);
}

enum { BY_WRITE, BY_MESSAGE };

/* Fill the area of node 8 once: @how. @n changes the bytes. */
static void area_fill(struct side *s, struct area *a, int how, uint64_t n)
{
	struct sci_peer *peer = s->traffic.flow[0].peer;
	struct sci_ep *ep = s->traffic.ep;
	struct sci_req *req = NULL;
	unsigned char *bytes;

	if (!s->first) {
		memset(a->mem, 0, AREA);
		if (how == BY_MESSAGE)
			CHECK_EQ(sci_irecv(ep, peer, a->mem, AREA, &req), 0);
		meet(ep, &s->stage->meeting, 2);
		if (req)
			CHECK_EQ(test_wait(req, NULL), 0);
		meet(ep, &s->stage->meeting, 2);
		CHECK_EQ(message_differs(a->mem, AREA, n, s->stage->seed + n), -1);
		return;
	}
	bytes = malloc(AREA);
	CHECK(bytes);
	message_write(bytes, AREA, n, s->stage->seed + n);
	meet(ep, &s->stage->meeting, 2);
	if (how == BY_WRITE)
		CHECK_EQ(sci_write(peer, &a->theirs, 0, bytes, AREA), 0);
	else
		CHECK_EQ(sci_send(peer, bytes, AREA), 0);
	/* nothing that the rails still hold may arrive from now on */
	memset(bytes, 0xff, AREA);
	meet(ep, &s->stage->meeting, 2);
	free(bytes);
}

/* Fill the area of node 8 until both rails have carried a good part of the bytes. */
static void area_fill_by_both(struct side *s, struct area *a, int how)
{
	struct sci_ep *ep = s->traffic.ep;
	struct sci_ep_stats was, is;
	uint64_t n = 0;
	bool both;

	do {
		was = test_ep_stats(ep);
		area_fill(s, a, how, ++n);
		is = test_ep_stats(ep);
		both = is.first_rail_bytes - was.first_rail_bytes > AREA / 3 &&
		       is.second_rail_bytes - was.second_rail_bytes > AREA / 3;
		if (s->first) {
			CHECK_EQ(is.first_rail_bytes + is.second_rail_bytes, n * AREA);
			CHECK_EQ(how == BY_WRITE ? is.writes : is.sent_zcopy, n);
			atomic_store(&s->stage->wanted, both);
		}
		meet(ep, &s->stage->meeting, 2);
	} while (!atomic_load(&s->stage->wanted));
}

static void play_write(struct side *s)
{
	struct area a = { 0 };
	int ret = 0;

	area_make(s, &a);
	area_fill_by_both(s, &a, BY_WRITE);
	if (!s->first)
		area_free(s, &a);
	meet(s->traffic.ep, &s->stage->meeting, 2);
	if (s->first) {
		/* the memory is freed, and both imports end soon */
		while (!ret)
			ret = sci_write(s->traffic.flow[0].peer, &a.theirs, 0, a.mem, AREA);
		CHECK_EQ(ret, -ENOENT);
		area_free(s, &a);
	}
	meet(s->traffic.ep, &s->stage->meeting, 2);
}

TEST(both_rails_carry_a_write)
{
	stage_run(stage_new(play_write, ""));
}

TEST(both_rails_lose_packets_of_a_write)
{
	stage_run(stage_new(play_write, "loss=0.001,reorder=0.05,dup=0.05"));
}

static void play_write_registered(struct side *s)
{
	struct area a = { .registered = true };

	area_make(s, &a);
	area_fill_by_both(s, &a, BY_WRITE);
	area_free(s, &a);
}

TEST(both_rails_carry_a_write_into_registered_memory)
{
	stage_run(stage_new(play_write_registered, ""));
}

static void play_zero_copy(struct side *s)
{
	struct area a = { 0 };

	area_make(s, &a);
	area_fill_by_both(s, &a, BY_MESSAGE);
	area_free(s, &a);
}

TEST(both_rails_carry_a_zero_copy_message)
{
	stage_run(stage_new(play_zero_copy, ""));
}

TEST(both_rails_lose_packets_of_a_zero_copy_message)
{
	stage_run(stage_new(play_zero_copy, "loss=0.001,reorder=0.05,dup=0.05"));
}

/* The rail that fails, and the number of store barriers before that. */
static struct {
	struct side *side;
	unsigned int rail;
	unsigned int left;
} failure;

/* From the last of these barriers on, the rail loses all packets, and its link is down. */
static void barrier_of_failure(struct sci_fabric *f, struct sci_rseg *r)
{
	sci_shm_fabric.rseg.store_barrier(f, r);
	if (!r || (failure.left && --failure.left))
		return;
	link_set(failure.side, failure.rail, false);
}

/* Fill the area while one rail of node 4 fails. Then no byte of it may arrive. */
static void area_fill_amid(struct side *s, struct area *a, int how, unsigned int rail,
			   unsigned int barriers)
{
	struct sci_ep *ep = s->traffic.ep;
	struct sci_fabric *f = rail == RAIL_SECOND ? ep->rail : ep->fabric;
	const struct sci_fabric_ops *ops = f->ops;
	struct sci_fabric_ops broken = *ops;

	broken.rseg.store_barrier = barrier_of_failure;
	failure.side = s;
	failure.rail = rail;
	failure.left = barriers;
	msg_lock(&ep->lock);
	f->ops = s->first ? &broken : ops;
	msg_unlock(&ep->lock);
	area_fill(s, a, how, barriers);
	if (!s->first)
		memset(a->mem, GUARD, AREA);
	/* later lines of node 4 bring what its rails still hold */
	run(s, MESSAGES / 4 + 1);
	if (!s->first)
		for (size_t i = 0; i < AREA; i++)
			if (a->mem[i] != GUARD)
				FAIL("byte %zu was written late", i);
	msg_lock(&ep->lock);
	f->ops = ops;
	msg_unlock(&ep->lock);
	link_set(s, rail, true);
	run_until(s, lines_use, RAIL_FIRST);
}

static void fill_amid(struct side *s, int how)
{
	struct area a = { 0 };

	area_make(s, &a);
	area_fill_by_both(s, &a, how);
	for (unsigned int i = 0; i < 4; i++)
		area_fill_amid(s, &a, how, i % RAILS, i / RAILS + 1);
	if (s->first)
		CHECK(test_ep_stats(s->traffic.ep).resent_blocks);
	area_free(s, &a);
}

static void play_write_amid(struct side *s)
{
	fill_amid(s, BY_WRITE);
}

static void play_zero_copy_amid(struct side *s)
{
	fill_amid(s, BY_MESSAGE);
}

TEST(a_rail_fails_amid_a_write)
{
	test_needs_shm();
	stage_run(stage_new(play_write_amid, "loss=0,reorder=0.05"));
}

TEST(a_rail_fails_amid_a_zero_copy_message)
{
	test_needs_shm();
	stage_run(stage_new(play_zero_copy_amid, "loss=0,reorder=0.05"));
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
	CHECK(test_ep_stats(s->traffic.ep).reroutes);
}

TEST(links_go_down_amid_messages)
{
	struct stage *st = stage_new(play_amid, "loss=0");

	needs_patient_adapters();
	st->ways = WAY_TWO;
	stage_run(st);
}

/* ---- the two sides disagree ---- */

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

	second_wait(s);
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
		PROGRESS_UNTIL(ep, lines_use(s, RAIL_FIRST), TEST_WAIT_MS);
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

	second_wait(s);
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

/* ---- an answer that takes long ---- */

#define ANSWER_MS	2000		/* time that an import on the second rail seems to take */

/* Import as a node does whose answer takes ANSWER_MS: only patient importers get it. */
static int connect_slowly(struct sci_fabric *f, const struct sci_rseg_param *p,
			  struct sci_rseg **out)
{
	return p->timeout < ANSWER_MS ? -ETIMEDOUT : sci_shm_fabric.rseg.connect(f, p, out);
}

/* Node 8 imports the inbox on the second rail when the link there is up. The answer takes long. */
static void play_slow_answer(struct side *s)
{
	struct sci_peer *p = s->traffic.flow[0].peer;
	struct sci_ep *ep = s->traffic.ep;
	const struct sci_fabric_ops *ops = ep->rail->ops;
	struct sci_fabric_ops slow = *ops;

	if (!s->first) {
		slow.rseg.connect = connect_slowly;
		CHECK(!p->rails->second.outbox);
		link_set(s, RAIL_SECOND, true);
		msg_lock(&ep->lock);
		ep->rail->ops = &slow;
		route_ask(p, RAIL_SECOND);
		msg_unlock(&ep->lock);
		PROGRESS_UNTIL(ep, list_empty(&p->calls), TEST_WAIT_MS);
		CHECK(p->rails->second.outbox);
		msg_lock(&ep->lock);
		ep->rail->ops = ops;
		msg_unlock(&ep->lock);
	}
	run_until_second(s, 0);
}

static void late_side(struct peer *self, void *arg)
{
	(void)self;
	rail_name(8);
	second_link_is_late = true;
	side_play(arg, false);
}

TEST(the_import_of_an_inbox_waits_for_a_slow_answer)
{
	struct stage *st = stage_new(play_slow_answer, "loss=0");
	struct peer *p;

	test_needs_shm();
	p = peer_spawn(8, late_side, st);
	rail_name(4);
	side_play(st, true);
	peer_join(p);
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

static struct sci_key key_of(struct sci_ep *ep, const void *mem)
{
	struct sci_key key;

	CHECK_EQ(sci_buf_key(ep, mem, 1, &key), 0);
	return key;
}

/* An endpoint offers a buffer of another one on the rails that both have. */
TEST(a_shared_buffer_is_on_both_rails)
{
	struct sci_ep *owner, *with, *without;
	void *mem = NULL;

	rail_name(4);
	owner = test_ep_open(TEST_ID, 0);
	with = test_ep_open(TEST_ID + 1, 0);
	setenv("SCI_RAIL", "", 1);
	without = test_ep_open(TEST_ID + 2, 0);
	CHECK_EQ(sci_buf_alloc(owner, 4096, &mem), 0);
	CHECK_EQ(sci_buf_share(with, owner, mem), 0);
	CHECK_EQ(sci_buf_share(without, owner, mem), 0);
	CHECK(key_of(owner, mem).rail);
	CHECK_EQ(key_of(with, mem).rail, key_of(owner, mem).rail);
	CHECK_EQ(key_of(without, mem).rail, 0);
	CHECK_EQ(key_of(without, mem).segment, key_of(owner, mem).segment);
	CHECK_EQ(sci_ep_close(without), 0);
	CHECK_EQ(sci_buf_free(with, mem), 0);
	CHECK_EQ(sci_ep_close(with), 0);
	CHECK_EQ(sci_buf_free(owner, mem), 0);
	CHECK_EQ(sci_ep_close(owner), 0);
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
