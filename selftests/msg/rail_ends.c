// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Endpoints with two rails while a rail fails: the ends of connections and of peers, one-sided
 * transfers, and reroutes that a hostile peer forges.
 */
#include <signal.h>

#include "selftests/msg/two_rails.h"

/* ---- one-sided transfers ---- */

/* One-sided transfers reach memory of the peer by one of the rails, or with the help of its owner. */
static void play_onesided(struct side *s)
{
	struct sci_peer *to = s->traffic.flow[0].peer;
	struct sci_ep *ep = s->traffic.ep;
	unsigned char *mem = NULL, bytes[5000], back[sizeof(bytes)];
	struct sci_key theirs;

	CHECK_EQ(sci_buf_alloc(ep, sizeof(bytes), (void **)&mem), 0);
	theirs = keys_swap(s, mem, sizeof(bytes));
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

/* Let lines move to the second rail. */
static void lines_move(struct side *s)
{
	run_until_second(s, 0);
	links_set(s, RAIL_FIRST, false);
	run_until(s, lines_use, RAIL_SECOND);
}

/* A write without the first rail needs no call of the owner of the memory. */
static void play_alone_on_second(struct side *s)
{
	struct sci_ep *ep = s->traffic.ep;
	struct sci_key theirs;
	uint64_t *mem = NULL;

	CHECK_EQ(sci_buf_alloc(ep, sizeof(*mem), (void **)&mem), 0);
	theirs = keys_swap(s, mem, sizeof(*mem));
	lines_move(s);
	meet_quiet(s, !s->first);
	if (s->first) {
		CHECK_EQ(sci_write(s->traffic.flow[0].peer, &theirs, 0, &s->stage->seed,
				   sizeof(*mem)), 0);
		atomic_store(&s->stage->wanted, 1);
	} else {
		WAIT_UNTIL(atomic_load(&s->stage->wanted) == 1, TEST_WAIT_MS);
		CHECK_EQ(*mem, s->stage->seed);
	}
	meet(ep, &s->stage->meeting, 2);
	links_set(s, RAIL_FIRST, true);
	CHECK_EQ(sci_buf_free(ep, mem), 0);
}

TEST(writes_on_the_second_rail_need_no_owner)
{
	stage_run(stage_new(play_alone_on_second, "loss=0"));
}

/* Writes whose pieces are more messages than a connection queues for requests to the owner. */
#define PIECES		1000u
#define PIECE_WRITES	8u

static void pieces_write(struct side *s, const struct sci_key *theirs, const uint64_t *bytes)
{
	struct sci_peer *p = s->traffic.flow[0].peer;
	struct sci_req *req[PIECE_WRITES] = { NULL };
	static struct iovec iov[PIECES];

	for (unsigned int i = 0; i < PIECE_WRITES; i++) {
		for (unsigned int k = 0; k < PIECES; k++)
			iov[k] = (struct iovec){ (void *)(bytes + i * PIECES + k), sizeof(*bytes) };
		CHECK_EQ(sci_iwritev(p, theirs, i * PIECES * sizeof(*bytes), iov, PIECES, &req[i]),
			 0);
	}
	CHECK_EQ(p->ours, SCI_DETACHED_MAX);
	link_set(s, RAIL_SECOND, false);
	link_set(s, RAIL_FIRST, true);
	atomic_store(&s->stage->wanted, 1);
	for (unsigned int i = 0; i < PIECE_WRITES; i++)
		CHECK_EQ(test_wait(req[i], NULL), 0);
}

/*
 * Lines return to the first rail when the owner has been asked to copy a part of a write. The key
 * names the memory on the first rail only.
 */
static void play_pieces(struct side *s)
{
	size_t len = sizeof(uint64_t) * PIECES * PIECE_WRITES;
	struct sci_ep *ep = s->traffic.ep;
	uint64_t *mem = NULL, *bytes = malloc(len);
	struct sci_key theirs;

	CHECK(bytes);
	message_write((unsigned char *)bytes, len, 1, s->stage->seed);
	CHECK_EQ(sci_buf_alloc(ep, len, (void **)&mem), 0);
	theirs = keys_swap(s, mem, len);
	theirs.rail = 0;
	run_until_second(s, 0);
	links_set(s, RAIL_FIRST, false);
	run_until(s, lines_use, RAIL_SECOND);
	meet_quiet(s, !s->first);
	if (s->first) {
		pieces_write(s, &theirs, bytes);
	} else {
		WAIT_UNTIL(atomic_load(&s->stage->wanted) == 1, TEST_WAIT_MS);
		link_set(s, RAIL_SECOND, false);
		link_set(s, RAIL_FIRST, true);
	}
	meet(ep, &s->stage->meeting, 2);
	CHECK(s->first || !memcmp(mem, bytes, len));
	links_set(s, RAIL_SECOND, true);
	free(bytes);
	CHECK_EQ(sci_buf_free(ep, mem), 0);
}

TEST(the_owner_copies_all_of_a_write_that_it_has_begun)
{
	test_needs_shm();
	stage_run(stage_new(play_pieces, "loss=0"));
}

/* ---- the end of a connection ---- */

/* Node 8 disconnects when its last message cannot use the first rail any more. */
static void play_leave(struct side *s)
{
	struct sci_peer *p = s->traffic.flow[0].peer;

	second_wait(s);
	if (s->first) {
		number_recv(s, 1);
		CHECK_EQ(p->rails->turn, 1);
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

	second_wait(s);
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
	if (mem) {
		CHECK_EQ(*mem, s->stage->seed);
		CHECK_EQ(sci_buf_free(ep, mem), 0);
	}
}

TEST(a_write_waits_for_the_second_rail)
{
	test_needs_shm();
	stage_run(stage_new(play_alone, "loss=0"));
}

/* ---- imports on both rails ---- */

/* The owner frees memory while lines use the second rail: a write to it ends. */
static void play_freed(struct side *s)
{
	struct sci_ep *ep = s->traffic.ep;
	struct sci_key theirs;
	uint64_t *mem = NULL;

	CHECK_EQ(sci_buf_alloc(ep, sizeof(*mem), (void **)&mem), 0);
	theirs = keys_swap(s, mem, sizeof(*mem));
	lines_move(s);
	CHECK_EQ(sci_buf_free(ep, mem), 0);
	meet(ep, &s->stage->meeting, 2);
	if (s->first)
		CHECK_EQ(sci_write(s->traffic.flow[0].peer, &theirs, 0, &s->stage->seed,
				   sizeof(*mem)), -ENOENT);
	meet(ep, &s->stage->meeting, 2);
	links_set(s, RAIL_FIRST, true);
}

TEST(a_write_to_freed_memory_ends_without_the_first_rail)
{
	test_needs_shm();
	stage_run(stage_new(play_freed, "loss=0"));
}

static int find_no_room(struct sci_fabric *f, const struct sci_rseg_param *p, struct sci_rseg **out)
{
	(void)f;
	(void)p;
	(void)out;
	return -ENOSPC;
}

/* The second rail has no room for an import: the owner copies the bytes of a write. */
static void play_no_room(struct side *s)
{
	struct sci_ep *ep = s->traffic.ep;
	const struct sci_fabric_ops *ops = ep->rail->ops;
	struct sci_fabric_ops full = *ops;
	struct sci_key theirs;
	uint64_t *mem = NULL;

	full.rseg.connect = find_no_room;
	CHECK_EQ(sci_buf_alloc(ep, sizeof(*mem), (void **)&mem), 0);
	theirs = keys_swap(s, mem, sizeof(*mem));
	lines_move(s);
	PROGRESS_UNTIL(ep, calls_are_done(s->traffic.flow[0].peer), TEST_WAIT_MS);
	msg_lock(&ep->lock);
	ep->rail->ops = &full;
	msg_unlock(&ep->lock);
	CHECK_EQ(sci_write(s->traffic.flow[0].peer, &theirs, 0, &s->stage->seed, sizeof(*mem)), 0);
	meet(ep, &s->stage->meeting, 2);
	CHECK_EQ(*mem, s->stage->seed);
	PROGRESS_UNTIL(ep, calls_are_done(s->traffic.flow[0].peer), TEST_WAIT_MS);
	msg_lock(&ep->lock);
	ep->rail->ops = ops;
	msg_unlock(&ep->lock);
	links_set(s, RAIL_FIRST, true);
	CHECK_EQ(sci_buf_free(ep, mem), 0);
}

TEST(the_owner_copies_if_the_second_rail_has_no_room)
{
	test_needs_shm();
	stage_run(stage_new(play_no_room, "loss=0"));
}

static _Atomic bool import_may_end;
static const struct sci_fabric_ops *import_ops;

static int import_slowly(struct sci_fabric *f, const struct sci_rseg_param *p, struct sci_rseg **out)
{
	WAIT_UNTIL(atomic_load(&import_may_end), TEST_WAIT_MS);
	return import_ops->rseg.connect(f, p, out);
}

/* The import on the first rail ends after the write that has used the second rail. */
static void play_late_import(struct side *s)
{
	struct sci_peer *p = s->traffic.flow[0].peer;
	struct sci_ep *ep = s->traffic.ep;
	struct sci_fabric_ops slow;
	unsigned char *mem = NULL, bytes[16384];
	struct sci_key theirs;

	memset(bytes, 1, sizeof(bytes));
	CHECK_EQ(sci_buf_alloc(ep, sizeof(bytes), (void **)&mem), 0);
	theirs = keys_swap(s, mem, sizeof(bytes));
	second_wait(s);
	PROGRESS_UNTIL(ep, list_empty(&p->calls), TEST_WAIT_MS);
	import_ops = ep->fabric->ops;
	slow = *import_ops;
	slow.rseg.connect = import_slowly;
	msg_lock(&ep->lock);
	ep->fabric->ops = &slow;
	msg_unlock(&ep->lock);
	CHECK_EQ(sci_write(p, &theirs, 0, bytes, sizeof(bytes)), 0);
	CHECK(!list_empty(&p->calls));
	atomic_store(&import_may_end, true);
	PROGRESS_UNTIL(ep, list_empty(&p->calls), TEST_WAIT_MS);
	msg_lock(&ep->lock);
	ep->fabric->ops = import_ops;
	msg_unlock(&ep->lock);
	meet(ep, &s->stage->meeting, 2);
	CHECK(!memcmp(mem, bytes, sizeof(bytes)));
	CHECK_EQ(sci_buf_free(ep, mem), 0);
}

TEST(an_import_that_no_write_waits_for_is_taken)
{
	test_needs_shm();
	stage_run(stage_new(play_late_import, "loss=0"));
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

#define DYING_AREA	(1u << 20)

/* Node 8 dies while node 4 writes into its memory through both rails. */
static void play_dying_owner(struct side *s)
{
	struct sci_peer *to = s->traffic.flow[0].peer;
	struct sci_ep *ep = s->traffic.ep;
	struct sci_key theirs;
	void *mem = NULL;
	uint64_t before;
	int ret = 0;

	second_wait(s);
	CHECK_EQ(sci_buf_alloc(ep, DYING_AREA, &mem), 0);
	theirs = keys_swap(s, mem, DYING_AREA);
	meet_quiet(s, !s->first);
	if (!s->first) {
		WAIT_UNTIL(atomic_load(&s->stage->wanted) == 1, TEST_WAIT_MS);
		raise(SIGKILL);
	}
	before = second_bytes(s);
	while (!ret) {
		ret = sci_write(to, &theirs, 0, mem, DYING_AREA);
		if (second_bytes(s) > before)
			atomic_store(&s->stage->wanted, 1);
	}
	CHECK_EQ(ret, -ECONNRESET);
	CHECK_EQ(sci_peer_state(to), -ECONNRESET);
	CHECK_EQ(sci_buf_free(ep, mem), 0);
}

TEST(the_owner_of_memory_dies_during_writes_through_both_rails)
{
	test_needs_shm();
	stage_run_dying(stage_new(play_dying_owner, "loss=0"), other_side);
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

/* ---- a reroute for a thread that sleeps ---- */

static _Thread_local bool watched;
static _Atomic bool sleeps_for_ever;	/* the watched thread sleeps without a limit */

/* Replace poll() in this program and in the library. */
int poll(struct pollfd *fds, nfds_t n, int ms)
{
	const struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };
	int ret;

	if (watched)
		atomic_store(&sleeps_for_ever, ms < 0);
	ret = ppoll(fds, n, ms < 0 ? NULL : &t, NULL);
	if (watched)
		atomic_store(&sleeps_for_ever, false);
	return ret;
}

static void *answer_wait(void *arg)
{
	struct side *s = arg;
	uint32_t got;

	watched = true;
	CHECK_EQ(sci_trecv(s->traffic.ep, s->traffic.flow[0].peer, 8, 0, 0, &got, sizeof(got),
			   NULL), 0);
	CHECK_EQ(got, 2);
	return NULL;
}

static bool reroute_has_begun(struct sci_peer *p)
{
	bool begun;

	msg_lock(&p->ep->lock);
	begun = p->rails->turn;
	msg_unlock(&p->ep->lock);
	return begun;
}

/*
 * A thread of node 4 sleeps. The link fails, and another thread sends a message without progress:
 * the sleeping thread must move the lines to the second rail. Node 8 must not begin that.
 */
static void play_sleeper(struct side *s)
{
	struct sci_peer *p = s->traffic.flow[0].peer;
	struct sci_ep *ep = s->traffic.ep;
	const uint32_t answer = 2;
	pthread_t thread;

	second_wait(s);
	/* the first message needs a request, whose completion would wake the thread */
	if (s->first)
		number_send(s, 0);
	else
		number_recv(s, 0);
	meet_quiet(s, !s->first);
	if (!s->first) {
		WAIT_UNTIL(atomic_load(&s->stage->wanted) == 1, TEST_WAIT_MS);
		number_recv(s, 1);
		CHECK_EQ(sci_tsend(p, 8, 0, &answer, sizeof(answer)), 0);
		return;
	}
	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_SPIN_US, 0), 0);
	CHECK_EQ(pthread_create(&thread, NULL, answer_wait, s), 0);
	WAIT_UNTIL(atomic_load(&sleeps_for_ever) && others_asleep(), TEST_WAIT_MS);
	link_set(s, RAIL_FIRST, false);
	number_send(s, 1);
	WAIT_UNTIL(reroute_has_begun(p), TEST_WAIT_MS);
	atomic_store(&s->stage->wanted, 1);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

TEST(a_sleeping_thread_moves_lines_to_the_second_rail)
{
	test_needs_shm();
	stage_run(stage_new(play_sleeper, "loss=0"));
}

/* ---- forged reroutes ---- */

/* Send a HELLO to the port of node 4 on the second rail. */
static void rail_say(struct side *s, const struct msg_hello *h)
{
	const struct sci_rintr_param param = {
		.node = 4 + RAIL_STEP, .number = MSG_NUMBERS + TEST_ID, .timeout = TEST_WAIT_MS,
		.data = true,
	};
	struct sci_fabric *f = s->traffic.ep->rail;
	struct sci_rintr *port = NULL;
	int ret;

	WAIT_UNTIL(!f->ops->rintr.connect(f, &param, &port), TEST_WAIT_MS);
	WAIT_UNTIL((ret = f->ops->rintr.trigger(port, h, sizeof(*h))) != -ENOBUFS, TEST_WAIT_MS);
	CHECK_EQ(ret, 0);
	f->ops->rintr.disconnect(port);
}

#define FORGED_TURN	3u		/* to the second rail */

/* Return a HELLO_REROUTE that is valid for node 4. */
static struct msg_hello reroute_hello(struct side *s, uint32_t turn)
{
	const struct sci_peer *p = s->traffic.flow[0].peer;
	struct msg_hello h = hello_make(s->traffic.ep, HELLO_REROUTE);

	h.to = p->nonce;
	h.turn = turn;
	h.data = p->data_rx.pos;
	h.ctl = p->ctl_rx.pos;
	h.answer = 1;
	return h;
}

/* Send HELLOs each of which has one wrong member. */
static void forge_all(struct side *s)
{
	struct msg_hello h = reroute_hello(s, FORGED_TURN);

	h.nonce++;
	rail_say(s, &h);
	h.nonce--;
	h.to++;
	rail_say(s, &h);
	h.to--;
	h.node += 4;
	rail_say(s, &h);
	h.node -= 4;
	h.id++;
	rail_say(s, &h);
	h.id--;
	h.turn = UINT32_MAX;
	rail_say(s, &h);
	h.turn = UINT32_MAX / 2;
	rail_say(s, &h);
}

/* Forged HELLOs do nothing. A genuine one comes after them: node 4 has handled all of them by then. */
static void play_forged(struct side *s)
{
	struct sci_ep *ep = s->traffic.ep;

	second_wait(s);
	if (!s->first) {
		forge_all(s);
		link_set(s, RAIL_FIRST, false);
	}
	run_until(s, lines_use, RAIL_SECOND);
	CHECK_EQ(s->traffic.flow[0].peer->rails->turn, 1);
	CHECK_EQ(test_ep_stats(ep).reroutes, 1);
	link_set(s, RAIL_FIRST, true);
}

TEST(forged_reroutes_have_no_effect)
{
	test_needs_shm();
	stage_run(stage_new(play_forged, "loss=0"));
}

/* Node 8 says that it has read lines that node 4 has not written. */
static void play_impossible(struct side *s)
{
	struct sci_peer *p = s->traffic.flow[0].peer;
	struct msg_hello h;

	second_wait(s);
	if (!s->first) {
		h = reroute_hello(s, 1);
		h.data += 2 * DATA_LINES;
		rail_say(s, &h);
	}
	PROGRESS_UNTIL(s->traffic.ep, sci_peer_state(p) < 0, TEST_WAIT_MS);
	if (s->first)
		CHECK_EQ(sci_peer_state(p), -EPROTO);
}

TEST(a_reroute_with_impossible_positions_ends_the_connection)
{
	test_needs_shm();
	stage_run(stage_new(play_impossible, "loss=0"));
}
