// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Endpoints that are killed or closed at any point of any protocol.
 *
 *	test process	does not use the library; starts, kills, counts
 *	  survivor	node 8, lives through all rounds
 *	  third		node 12, exchanges messages with the survivor all the time
 *	  victim ...	node 16, one per round, always at the same address
 *
 * A victim connects or accepts, sends a hello, and then sends and receives
 * messages of one way until it is killed.  Every seventh victim closes its
 * endpoint instead.  SCI_TEST_ROUNDS is the number of rounds.  SCI_TEST_SEED
 * repeats the choices, but not the times of the kills.
 */
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "selftests/msg/traffic.h"

#define HELLO_CONTEXT	1000u
#define HELLOS		8u	/* connections of one round, at most */
#define ORDERLY_LIMIT	(20 / TRAFFIC_SLOW + 4)

enum { ROUND_VICTIM_CALLS = 1, ROUND_SURVIVOR_CALLS = 2 };

/* The behaviour of a victim, which its hello tells the survivor. */
struct round {
	uint64_t seed;
	uint32_t way;
	uint32_t directions;		/* 1: victim sends, 2: receives, 3: both */
	uint32_t calls;			/* ROUND_*: sides that connect */
	uint32_t orderly;
};

struct shared {
	_Atomic bool stop_third;	/* the survivor is done */
	_Atomic uint64_t died_ms;	/* 0: the victim lives */
	_Atomic unsigned int steps;	/* traffic steps of the victim */
	_Atomic unsigned int third;	/* messages of the third node */
	_Atomic unsigned int resets;	/* flows that ended with the victim */
	_Atomic unsigned int hellos;
	_Atomic bool reconnected;	/* the victim has ended a connection to connect again */
	struct round round;
};

static struct shared *shared;

/* ---- the victim ---- */

static void victim_flows(struct traffic *t, struct sci_peer *peer,
			 const struct round *r, bool is_victim)
{
	struct flow f = {
		.peer = peer, .seed = r->seed, .ways = 1u << r->way,
		.limit = r->orderly ? ORDERLY_LIMIT : UINT64_MAX,
		.may_die = !is_victim && !r->orderly,
	};

	for (unsigned int k = 0; k < 4; k++) {
		bool to_survivor = k & 1;

		if (!(r->directions & (to_survivor ? 1 : 2)))
			continue;
		f.stream = k / 2;
		f.source = to_survivor ? 16 : 8;
		f.dest = to_survivor ? 8 : 16;
		f.sends = to_survivor == is_victim;
		traffic_flow(t, f);
	}
}

static struct sci_peer *victim_greet(struct sci_ep *ep, const struct round *r)
{
	struct sci_peer *peer;
	int ret;

	for (;;) {
		if (r->calls & ROUND_VICTIM_CALLS)
			peer = test_ep_connect(ep, 8, TEST_ID);
		else
			peer = test_ep_accept(ep);
		ret = sci_tsend(peer, HELLO_CONTEXT, 0, r, sizeof(*r));
		if (!ret)
			return peer;
		/* the survivor's connect has timed out; it connects again */
		CHECK_EQ(ret, -ENOTCONN);
		atomic_store(&shared->reconnected, true);
		CHECK_EQ(sci_disconnect(peer), 0);
	}
}

__attribute__((noreturn))
static void victim(void)
{
	static struct traffic t;
	struct round r = shared->round;
	struct sci_peer *peer;

	t.ep = test_ep_open(TEST_ID, 0);
	traffic_params(t.ep, 1u << r.way);
	peer = victim_greet(t.ep, &r);
	victim_flows(&t, peer, &r, true);
	while (traffic_step(&t, TEST_WAIT_MS))
		atomic_fetch_add(&shared->steps, 1);
	/* only a victim that closes its endpoint comes here */
	CHECK_EQ(traffic_done(&t), t.n * ORDERLY_LIMIT);
	traffic_free(&t);
	CHECK_EQ(sci_ep_close(t.ep), 0);
	_exit(0);
}

static pid_t start_victim(void)
{
	pid_t parent = getpid(), pid = fork();

	CHECK(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	test_be_node(16);
	victim();
}

/* ---- the third node ---- */

static void third_flows(struct traffic *t, struct sci_peer *peer, bool is_third)
{
	struct flow f = {
		.peer = peer, .seed = 3, .ways = WAY_ALL & ~(1u << WAY_ZCOPY),
		.limit = UINT64_MAX,
	};

	for (unsigned int k = 0; k < 4; k++) {
		f.stream = k / 2;
		f.source = k & 1 ? 12 : 8;
		f.dest = k & 1 ? 8 : 12;
		f.sends = (k & 1) == is_third;
		traffic_flow(t, f);
	}
}

static void third(struct peer *self, void *arg)
{
	static struct traffic t;

	(void)arg;
	t.ep = test_ep_open(TEST_ID, 0);
	traffic_params(t.ep, WAY_ALL);
	third_flows(&t, test_ep_connect(t.ep, 8, TEST_ID), true);
	/* between two rounds the survivor makes no call */
	while (!atomic_load(&shared->stop_third)) {
		if (traffic_step(&t, 10))
			atomic_fetch_add(&shared->third, 1);
	}
	peer_send(self, "done");
}

/* ---- the survivor ---- */

/* One connection to a victim. */
struct link {
	struct sci_peer *peer;
	struct sci_req *hello;
	struct round round;
	struct traffic t;
	bool greeted;
};

struct survivor {
	struct sci_ep *ep;
	struct traffic third;
	struct link *link[HELLOS];
	unsigned int fds, maps;
};

static struct link *link_new(struct survivor *s, struct sci_peer *peer)
{
	struct link *l;
	unsigned int i;

	for (i = 0; i < HELLOS && s->link[i]; i++)
		CHECK(s->link[i]->peer != peer);
	CHECK(i < HELLOS);
	l = calloc(1, sizeof(*l));
	CHECK(l);
	l->peer = peer;
	l->t.ep = s->ep;
	if (sci_itrecv(s->ep, peer, HELLO_CONTEXT, 0, 0, &l->round,
		       sizeof(l->round), &l->hello))
		l->hello = NULL;
	return s->link[i] = l;
}

static struct link *link_of(struct survivor *s, struct sci_peer *peer)
{
	for (unsigned int i = 0; i < HELLOS; i++)
		if (s->link[i] && s->link[i]->peer == peer)
			return s->link[i];
	return NULL;
}

/* Every call to a dead peer fails at once. */
static void check_dead(struct survivor *s, struct link *l, int error)
{
	char c[100] = "";
	struct sci_status st;
	struct sci_addr addr;
	struct sci_req *req = NULL;
	int ret;

	CHECK_EQ(sci_peer_state(l->peer), error);
	CHECK_EQ(sci_peer_addr(l->peer, &addr), 0);
	CHECK(addr.node == 16 && addr.id == TEST_ID);
	CHECK_EQ(sci_send(l->peer, c, sizeof(c)), error);
	CHECK_EQ(sci_tsend(l->peer, 5, 5, c, 1), error);
	CHECK_EQ(sci_trecv(s->ep, l->peer, 99, 1, 0, c, sizeof(c), &st), error);
	ret = sci_isend(l->peer, c, sizeof(c), &req);
	CHECK_EQ(ret ? ret : test_wait(req, NULL), error);
	ret = sci_itrecv(s->ep, l->peer, 99, 1, 0, c, 1, &req);
	CHECK_EQ(ret ? ret : test_wait(req, NULL), error);
}

/* Return whether the victim may have ended this connection itself, to connect again. */
static bool may_be_left(const struct link *l)
{
	return !l->greeted && atomic_load(&shared->reconnected);
}

static void link_end(struct survivor *s, struct link *l)
{
	bool left = may_be_left(l) && sci_peer_state(l->peer) == -ENOTCONN;

	for (unsigned int i = 0; i < l->t.n; i++)
		atomic_fetch_add(&shared->resets, !!l->t.flow[i].error);
	check_dead(s, l, l->round.orderly || left ? -ENOTCONN : -ECONNRESET);
	traffic_free(&l->t);
	CHECK_EQ(sci_disconnect(l->peer), 0);
	for (unsigned int i = 0; i < HELLOS; i++)
		if (s->link[i] == l)
			s->link[i] = NULL;
	free(l);
}

/* Return false when no more messages can arrive on @l. */
static bool link_step(struct link *l)
{
	struct sci_status st;
	int ret;

	if (l->hello) {
		ret = sci_test(l->hello, &st);
		if (ret == -EAGAIN)
			return true;
		l->hello = NULL;
		if (!ret) {
			CHECK_EQ(st.len, sizeof(l->round));
			CHECK(l->round.way < WAYS);
			l->greeted = true;
			atomic_fetch_add(&shared->hellos, 1);
			victim_flows(&l->t, l->peer, &l->round, false);
		} else if (ret != -ENOTCONN || !may_be_left(l)) {
			CHECK_EQ(ret, -ECONNRESET);
		}
	}
	for (unsigned int i = 0; i < 16 && traffic_step(&l->t, 0); i++)
		;
	if (l->greeted && !traffic_idle(&l->t))
		return true;
	return sci_peer_state(l->peer) == 0;
}

static void survivor_accept(struct survivor *s)
{
	struct sci_peer *peer;

	while (!sci_accept(s->ep, 0, &peer))
		if (!link_of(s, peer))
			link_new(s, peer);
}

static void survivor_call(struct survivor *s)
{
	struct sci_addr addr = { 16, TEST_ID };
	struct sci_peer *peer;
	int ret;

	do {
		ret = sci_connect(s->ep, &addr, 200, &peer);
	} while (ret == -ETIMEDOUT && !atomic_load(&shared->died_ms));
	if (!ret && !link_of(s, peer))
		link_new(s, peer);
	/* a death during the connect gives only these errors */
	if (ret && ret != -ETIMEDOUT && ret != -ECONNRESET)
		FAIL("connect: %s", strerror(-ret));
}

static unsigned int links_alive(struct survivor *s)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < HELLOS; i++) {
		if (!s->link[i])
			continue;
		if (link_step(s->link[i]))
			n++;
		else
			link_end(s, s->link[i]);
	}
	return n;
}

static void survivor_step(struct survivor *s)
{
	survivor_accept(s);
	/* sleep for up to 1 ms if no request completes */
	for (unsigned int i = 0; i < 16; i++)
		if (!traffic_step(&s->third, i ? 0 : 1))
			break;
}

static bool is_clean(struct survivor *s)
{
	survivor_accept(s);
	return !links_alive(s) && count_fds() <= s->fds &&
	       count_shared_maps() <= s->maps;
}

static void survivor_round(struct survivor *s)
{
	uint64_t died, done;

	if (shared->round.calls & ROUND_SURVIVOR_CALLS)
		survivor_call(s);
	do {
		survivor_step(s);
		died = atomic_load(&shared->died_ms);
		if (died && test_now_ms() > died + NOTICE_MS &&
		    links_alive(s))
			FAIL("not told of a death within %u ms", NOTICE_MS);
	} while (links_alive(s) || !died);
	/* traffic with the third node goes on */
	done = traffic_done(&s->third);
	while (traffic_done(&s->third) < done + 20)
		CHECK(traffic_step(&s->third, TEST_WAIT_MS));
	WAIT_UNTIL(is_clean(s), NOTICE_MS);
}

static void survivor(struct peer *self, void *arg)
{
	static struct survivor s;
	unsigned int rounds = *(unsigned int *)arg;

	s.ep = test_ep_open(TEST_ID, 0);
	s.third.ep = s.ep;
	/* the survivor enables all ways; each victim enables its own */
	traffic_params(s.ep, WAY_ALL);
	third_flows(&s.third, test_ep_accept(s.ep), false);
	while (traffic_done(&s.third) < 200)
		CHECK(traffic_step(&s.third, TEST_WAIT_MS));
	peer_send(self, "ready");
	while (rounds--) {
		peer_expect(self, "run");
		/* by now the third node's exported buffers and rings exist */
		if (!s.fds) {
			s.fds = count_fds();
			s.maps = count_shared_maps();
		}
		survivor_round(&s);
		peer_send(self, "clean");
	}
	atomic_store(&shared->stop_third, true);
	peer_expect(self, "leave");
}

/* ---- rounds ---- */

static void kill_sometime(pid_t pid, uint64_t *state)
{
	unsigned int steps = (unsigned int)draw(state, 300 / TRAFFIC_SLOW);
	uint64_t until = test_now_ms() + 100;
	struct timespec ts = {
		0, (long)(draw(state, 30000) * TRAFFIC_SLOW) * 1000
	};

	if (draw(state, 2)) {
		while (atomic_load(&shared->steps) < steps &&
		       test_now_ms() < until)
			test_pause();
	} else {
		nanosleep(&ts, NULL);
	}
	CHECK_EQ(kill(pid, SIGKILL), 0);
}

static void one_round(struct peer *p, unsigned int i, uint64_t *state)
{
	struct round *r = &shared->round;
	int status;
	pid_t pid;

	r->seed = draw(state, UINT64_MAX);
	r->way = i % WAYS;
	r->directions = 1 + (i / WAYS) % 3;
	r->calls = 1 + (uint32_t)draw(state, 3);
	r->orderly = i % 7 == 6;
	atomic_store(&shared->died_ms, 0);
	atomic_store(&shared->steps, 0);
	atomic_store(&shared->reconnected, false);
	pid = start_victim();
	peer_send(p, "run");
	if (!r->orderly)
		kill_sometime(pid, state);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, r->orderly ? 0 : SIGKILL);
	atomic_store(&shared->died_ms, test_now_ms());
	peer_expect(p, "clean");
}

TEST(killed_at_any_time)
{
	const char *wanted = getenv("SCI_TEST_ROUNDS");
	unsigned int n = wanted ? (unsigned int)atoi(wanted) :
				  TRAFFIC_SLOW > 1 ? 20 : 90;
	uint64_t seed = traffic_seed(), state = seed;
	struct peer *p, *q;

	shared = test_shared(sizeof(*shared));
	test_note("%u rounds, SCI_TEST_SEED=%#llx", n,
		  (unsigned long long)seed);
	p = peer_spawn(8, survivor, &n);
	q = peer_spawn(12, third, NULL);
	peer_expect(p, "ready");
	for (unsigned int i = 0; i < n; i++)
		one_round(p, i, &state);
	peer_expect(q, "done");
	peer_join(q);
	peer_send(p, "leave");
	peer_join(p);
	test_note("%u victims said hello, %u flows were cut, %u messages with "
		  "the third", atomic_load(&shared->hellos),
		  atomic_load(&shared->resets), atomic_load(&shared->third));
	CHECK(atomic_load(&shared->hellos) > n / 8);
}

/* ---- one death at a time ---- */

#define LONG_LEN	(4u << 20)

static unsigned char *long_buf;

static void long_begin(struct sci_ep *ep)
{
	long_buf = malloc(LONG_LEN);
	CHECK(long_buf);
	memset(long_buf, 1, LONG_LEN);
	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_ATTACH_AFTER, 0), 0);
	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_SINGLE_COPY_MIN, UINT64_MAX), 0);
}

/* Actions of the doomed process before it ends, as bits. */
enum {
	DOOM_SHORT	= 1 << 0,	/* three short messages, 1, 2 and 3 */
	DOOM_EAGER	= 1 << 1,	/* two of 3000 bytes, 4 and 5 */
	DOOM_LONG	= 1 << 2,	/* a rendezvous, which needs its progress */
	DOOM_LATE	= 1 << 3,	/* a short message after that, 7 */
	DOOM_CLOSE	= 1 << 4,	/* closes its endpoint when told */
	DOOM_SILENT	= 1 << 5,	/* makes no call after its sends */
};

static void doomed_send(struct sci_peer *to, unsigned int what)
{
	struct sci_req *req;

	if (what & DOOM_SHORT)
		for (unsigned char i = 1; i <= 3; i++)
			CHECK_EQ(sci_send(to, &i, 1), 0);
	for (int i = 4; what & DOOM_EAGER && i <= 5; i++) {
		msg_fill(long_buf, 3000, i);
		CHECK_EQ(sci_send(to, long_buf, 3000), 0);
	}
	if (what & DOOM_LONG)
		CHECK_EQ(sci_isend(to, long_buf, LONG_LEN, &req), 0);
	if (what & DOOM_LATE) {
		static const unsigned char seven = 7;

		CHECK_EQ(sci_send(to, &seven, 1), 0);
	}
}

struct doom {
	unsigned int what;
	_Atomic bool sent;
	_Atomic bool told;
};

static void doomed(struct peer *self, void *arg)
{
	struct doom *d = arg;
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *to;

	long_begin(ep);
	to = test_ep_connect(ep, 4, TEST_ID);
	doomed_send(to, d->what);
	test_send_rows(ep);
	atomic_store(&d->sent, true);
	(void)self;
	while (d->what & DOOM_SILENT)
		pause();
	while (!atomic_load(&d->told)) {
		test_progress(ep);
		test_pause();
	}
	CHECK(d->what & DOOM_CLOSE);
	CHECK_EQ(sci_ep_close(ep), 0);
	free(long_buf);
}

struct scene {
	struct doom *d;
	struct peer *p;
	struct sci_ep *ep;
	struct sci_peer *from;
};

static struct scene scene_open(unsigned int what)
{
	struct scene s = { .d = test_shared(sizeof(*s.d)) };

	s.d->what = what;
	s.p = peer_spawn(8, doomed, s.d);
	s.ep = test_ep_open(TEST_ID, 0);
	long_begin(s.ep);
	s.from = test_ep_accept(s.ep);
	PROGRESS_UNTIL(s.ep, atomic_load(&s.d->sent), TEST_WAIT_MS);
	return s;
}

static void scene_end(struct scene *s)
{
	if (s->d->what & DOOM_CLOSE) {
		atomic_store(&s->d->told, true);
		peer_join(s->p);
	} else {
		peer_kill(s->p, SIGKILL);
	}
}

static void scene_close(struct scene *s)
{
	CHECK_EQ(sci_disconnect(s->from), 0);
	CHECK_EQ(sci_ep_close(s->ep), 0);
	free(long_buf);
}

static int scene_error(const struct scene *s)
{
	return s->d->what & DOOM_CLOSE ? -ENOTCONN : -ECONNRESET;
}

/* Receive until the end. Return the numbers of the messages as decimal digits. */
static unsigned int receive_all(struct scene *s)
{
	unsigned int got = 0, errors = 0;
	struct sci_status st;

	while (errors < 3) {
		struct sci_req *req;
		int ret = sci_irecv(s->ep, s->from, long_buf, LONG_LEN, &req);

		if (!ret)
			ret = sci_wait(req, NOTICE_MS, &st);
		if (ret) {
			CHECK_EQ(ret, scene_error(s));
			errors++;
			continue;
		}
		CHECK(st.peer == s->from);
		if (st.len == 3000) {
			unsigned int seed = got % 10 == 4 ? 5 : 4;

			CHECK_BYTES(long_buf, 3000, seed);
			got = got * 10 + seed;
		} else {
			CHECK_EQ(st.len, 1);
			got = got * 10 + long_buf[0];
		}
	}
	return got;
}

static void check_arrived(unsigned int what, unsigned int want)
{
	struct scene s = scene_open(what);

	scene_end(&s);
	CHECK_EQ(receive_all(&s), want);
	CHECK_EQ(sci_peer_state(s.from), scene_error(&s));
	scene_close(&s);
}

TEST(what_arrived_is_delivered_first)
{
	check_arrived(DOOM_SHORT | DOOM_EAGER | DOOM_SILENT, 12345);
}

TEST(what_arrived_around_a_long_one_is_delivered)
{
	check_arrived(DOOM_SHORT | DOOM_LONG | DOOM_LATE | DOOM_SILENT, 1237);
}

TEST(what_a_closed_peer_sent_is_delivered_first)
{
	check_arrived(DOOM_SHORT | DOOM_EAGER | DOOM_CLOSE, 12345);
}

TEST(close_with_a_long_one_under_way)
{
	check_arrived(DOOM_SHORT | DOOM_LONG | DOOM_LATE | DOOM_CLOSE, 1237);
}

TEST(a_matched_message_of_a_dead_peer)
{
	struct scene s = scene_open(DOOM_SHORT | DOOM_LONG);
	struct sci_msg *whole, *part;
	unsigned char c[8];

	CHECK_EQ(sci_match(s.ep, s.from, TEST_WAIT_MS, &whole, NULL), 0);
	CHECK_EQ(sci_recv(s.ep, s.from, c, 1, NULL), 0);
	CHECK_EQ(sci_recv(s.ep, s.from, c, 1, NULL), 0);
	CHECK_EQ(sci_match(s.ep, s.from, TEST_WAIT_MS, &part, NULL), 0);
	scene_end(&s);
	CHECK_EQ(sci_msg_copy(whole, 0, c, 1), 0);
	CHECK_EQ(c[0], 1);
	CHECK_EQ(sci_msg_copy(part, LONG_LEN / 2, c, 8), -ECONNRESET);
	sci_msg_free(part);
	sci_msg_free(whole);
	scene_close(&s);
}

TEST(a_zero_copy_buffer_of_a_dead_peer)
{
	struct scene s = scene_open(DOOM_LONG | DOOM_SILENT);
	struct sci_req *req;
	void *buf;

	CHECK_EQ(sci_buf_alloc(s.ep, LONG_LEN, &buf), 0);
	CHECK_EQ(sci_irecv(s.ep, s.from, buf, LONG_LEN, &req), 0);
	/* the receive is matched, and its sender makes no progress */
	for (int i = 0; i < 100; i++)
		CHECK_EQ(sci_test(req, NULL), -EAGAIN);
	CHECK_EQ(sci_buf_free(s.ep, buf), -EBUSY);
	scene_end(&s);
	CHECK_EQ(sci_wait(req, NOTICE_MS, NULL), -ECONNRESET);
	CHECK_EQ(sci_buf_free(s.ep, buf), 0);
	scene_close(&s);
}

/* ---- the end of a peer wakes sleepers ---- */

static void *receive_blocking(void *arg)
{
	struct scene *s = arg;
	char c;

	return (void *)(intptr_t)sci_recv(s->ep, s->from, &c, 1, NULL);
}

static void check_wakes_receive(unsigned int what)
{
	struct scene s = scene_open(what);
	pthread_t t;
	void *ret;

	CHECK_EQ(sci_ep_set(s.ep, SCI_PARAM_SPIN_US, 0), 0);
	CHECK_EQ(pthread_create(&t, NULL, receive_blocking, &s), 0);
	WAIT_UNTIL(others_asleep() && others_asleep(), TEST_WAIT_MS);
	scene_end(&s);
	CHECK_EQ(pthread_join(t, &ret), 0);
	CHECK_EQ((intptr_t)ret, scene_error(&s));
	scene_close(&s);
}

TEST(death_ends_a_blocking_receive)
{
	check_wakes_receive(0);
}

TEST(close_ends_a_blocking_receive)
{
	check_wakes_receive(DOOM_CLOSE);
}

static void check_wakes_poll(unsigned int what)
{
	struct scene s = scene_open(what);
	struct pollfd pfd = { .fd = sci_ep_fd(s.ep), .events = POLLIN };
	uint64_t until = 0;
	struct sci_req *req;
	bool ended = false;
	int ret;
	char c;

	CHECK_EQ(sci_irecv(s.ep, s.from, &c, 1, &req), 0);
	while ((ret = sci_test(req, NULL)) == -EAGAIN) {
		if (sci_ep_arm(s.ep))
			continue;
		/* the library now expects this process to sleep */
		if (!ended)
			scene_end(&s);
		ended = true;
		if (!until)
			until = test_now_ms() + NOTICE_MS;
		CHECK(test_now_ms() < until);
		poll(&pfd, 1, NOTICE_MS);
	}
	CHECK_EQ(ret, scene_error(&s));
	scene_close(&s);
}

TEST(death_is_seen_by_poll)
{
	check_wakes_poll(DOOM_SILENT);
}

TEST(close_is_seen_by_poll)
{
	check_wakes_poll(DOOM_CLOSE);
}

TEST(a_receive_from_any_source_waits_on)
{
	struct scene s = scene_open(DOOM_SILENT);
	struct sci_peer *other;
	struct sci_status st;
	struct sci_req *req;
	unsigned char c = 0;

	CHECK_EQ(sci_irecv(s.ep, NULL, &c, 1, &req), 0);
	scene_end(&s);
	PROGRESS_UNTIL(s.ep, sci_peer_state(s.from), NOTICE_MS);
	CHECK_EQ(sci_test(req, NULL), -EAGAIN);
	/* a live peer sends: this endpoint, to itself */
	other = test_ep_connect(s.ep, 4, TEST_ID);
	CHECK_EQ(sci_send(other, "x", 1), 0);
	CHECK_EQ(test_wait(req, &st), 0);
	CHECK(st.peer == other && c == 'x');
	CHECK_EQ(sci_disconnect(other), 0);
	scene_close(&s);
}

TEST(a_stopped_peer_is_not_dead)
{
	struct scene s = scene_open(DOOM_LONG);
	struct sci_req *send, *recv;

	peer_stop(s.p);
	CHECK_EQ(sci_irecv(s.ep, s.from, long_buf, LONG_LEN / 2, &recv), 0);
	CHECK_EQ(sci_isend(s.from, long_buf + LONG_LEN / 2, LONG_LEN / 2,
			   &send), 0);
	CHECK_EQ(sci_wait(recv, 300, NULL), -ETIMEDOUT);
	CHECK_EQ(sci_wait(send, 100, NULL), -ETIMEDOUT);
	CHECK_EQ(sci_peer_state(s.from), 0);
	peer_kill(s.p, SIGKILL);
	CHECK_EQ(sci_wait(recv, NOTICE_MS, NULL), -ECONNRESET);
	CHECK_EQ(sci_wait(send, NOTICE_MS, NULL), -ECONNRESET);
	scene_close(&s);
}
