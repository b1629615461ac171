// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Several threads at once, on one endpoint and with an endpoint each.  The
 * thread sanitizer must not find a race.
 */
#include <sched.h>

#include "selftests/msg/traffic.h"

#define THREADS		4u
#define MESSAGES	(240u / TRAFFIC_SLOW)

struct thread {
	pthread_t id;
	unsigned int number;
	void *arg;
};

static void start_all(struct thread *t, unsigned int n, void *(*fn)(void *),
		      void *arg)
{
	for (unsigned int i = 0; i < n; i++) {
		t[i].number = i;
		t[i].arg = arg;
		CHECK_EQ(pthread_create(&t[i].id, NULL, fn, &t[i]), 0);
	}
}

static void join_all(struct thread *t, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		CHECK_EQ(pthread_join(t[i].id, NULL), 0);
}

/* ---- a stream for each thread, all over one connection ---- */

struct shared_ep {
	struct sci_ep *ep;
	struct sci_peer *peer;
	bool first;			/* node 4 */
	bool sleepy;			/* waits do not spin */
	bool helped;			/* another thread only makes progress */
	_Atomic bool stop;
	struct meeting *meeting;
};

static void *run_streams(void *arg)
{
	struct shared_ep *s = ((struct thread *)arg)->arg;
	unsigned int number = ((struct thread *)arg)->number;
	struct traffic *t = calloc(1, sizeof(*t));

	CHECK(t);
	t->ep = s->ep;
	for (unsigned int k = 0; k < 2; k++)
		traffic_flow(t, (struct flow) {
			.peer = s->peer, .seed = 17, .stream = number + 1,
			.source = k ? 8 : 4, .dest = k ? 4 : 8,
			.sends = !k == s->first, .ways = WAY_ALL,
			.limit = MESSAGES,
		});
	traffic_run(t);
	traffic_free(t);
	free(t);
	return NULL;
}

static void *only_progress(void *arg)
{
	struct shared_ep *s = ((struct thread *)arg)->arg;

	while (!atomic_load(&s->stop)) {
		test_progress(s->ep);
		sched_yield();
	}
	return NULL;
}

static void share_endpoint(struct shared_ep *s)
{
	struct thread t[THREADS], helper;

	s->ep = test_ep_open(TEST_ID, 0);
	traffic_params(s->ep, WAY_ALL);
	if (s->sleepy)
		CHECK_EQ(sci_ep_set(s->ep, SCI_PARAM_SPIN_US, 0), 0);
	s->peer = s->first ? test_ep_accept(s->ep) :
			     test_ep_connect(s->ep, 4, TEST_ID);
	atomic_store(&s->stop, false);
	if (s->helped)
		start_all(&helper, 1, only_progress, s);
	start_all(t, THREADS, run_streams, s);
	join_all(t, THREADS);
	atomic_store(&s->stop, true);
	if (s->helped)
		join_all(&helper, 1);
	meet(s->ep, s->meeting, 2);
	CHECK_EQ(sci_ep_close(s->ep), 0);
}

static void share_endpoint_peer(struct peer *self, void *arg)
{
	(void)self;
	share_endpoint(arg);
}

static void check_shared(bool sleepy, bool helped)
{
	struct shared_ep s = {
		.sleepy = sleepy, .helped = helped,
		.meeting = test_shared(sizeof(struct meeting)),
	};
	struct peer *p = peer_spawn(8, share_endpoint_peer, &s);

	s.first = true;
	share_endpoint(&s);
	peer_join(p);
}

TEST(threads_share_an_endpoint)
{
	check_shared(false, false);
}

/* A thread finds the message that another thread sleeps for. */
TEST(threads_share_an_endpoint_and_sleep)
{
	check_shared(true, false);
}

TEST(a_thread_makes_progress_for_all)
{
	check_shared(true, true);
}

TEST(a_thread_makes_progress_beside_spinning_ones)
{
	check_shared(false, true);
}

/* ---- any source, many receivers ---- */

struct note {
	uint32_t sender;
	uint32_t number;
};

struct crowd {
	struct sci_ep *ep;
	struct sci_peer *to;		/* all threads send to this peer */
	_Atomic unsigned int claimed;
	_Atomic unsigned char seen[THREADS][MESSAGES * 4];
	struct meeting *meeting;
};

#define NOTES	(MESSAGES * 4)

/* Write a note of a random length. Its bytes depend on sender and number. */
static size_t note_make(unsigned char *buf, uint32_t sender, uint32_t number)
{
	struct note n = { sender, number };
	uint64_t key = mix64((uint64_t)sender << 32 | number);
	size_t len = sizeof(n) + (key % 8 ? key >> 8 & 127 : key >> 8 & 16383);

	memcpy(buf, &n, sizeof(n));
	msg_fill(buf + sizeof(n), len - sizeof(n), key);
	return len;
}

static struct note note_check(const unsigned char *buf, size_t len)
{
	static _Thread_local unsigned char want[20000];
	struct note n;

	CHECK(len >= sizeof(n));
	memcpy(&n, buf, sizeof(n));
	CHECK(n.sender < THREADS && n.number < NOTES);
	CHECK_EQ(len, note_make(want, n.sender, n.number));
	CHECK(!memcmp(buf, want, len));
	return n;
}

static void *receive_any(void *arg)
{
	static _Thread_local unsigned char buf[20000];
	struct crowd *c = ((struct thread *)arg)->arg;

	while (atomic_fetch_add(&c->claimed, 1) < THREADS * NOTES) {
		struct sci_status st;
		struct note n;

		CHECK_EQ(sci_recv(c->ep, NULL, buf, sizeof(buf), &st), 0);
		CHECK(st.peer != NULL);
		n = note_check(buf, st.len);
		CHECK_EQ(atomic_fetch_add(&c->seen[n.sender][n.number], 1), 0);
	}
	return NULL;
}

static void *send_notes(void *arg)
{
	static _Thread_local unsigned char buf[20000];
	unsigned int number = ((struct thread *)arg)->number;
	struct crowd *c = ((struct thread *)arg)->arg;

	for (unsigned int i = 0; i < NOTES; i++)
		CHECK_EQ(sci_send(c->to, buf, note_make(buf, number, i)), 0);
	return NULL;
}

static void *send_from_own(void *arg)
{
	struct crowd *c = ((struct thread *)arg)->arg, own = *c;
	unsigned int number = ((struct thread *)arg)->number;
	struct thread self = { .number = number, .arg = &own };

	own.ep = test_ep_open(number + 1, 0);
	own.to = test_ep_connect(own.ep, 4, TEST_ID);
	send_notes(&self);
	meet(own.ep, c->meeting, THREADS + 1);
	CHECK_EQ(sci_ep_close(own.ep), 0);
	return NULL;
}

static void crowd_of_endpoints(struct peer *self, void *arg)
{
	struct thread t[THREADS];

	(void)self;
	start_all(t, THREADS, send_from_own, arg);
	join_all(t, THREADS);
}

static void crowd_of_threads(struct peer *self, void *arg)
{
	struct crowd *c = arg;
	struct thread t[THREADS];

	(void)self;
	c->ep = test_ep_open(TEST_ID, 0);
	c->to = test_ep_connect(c->ep, 4, TEST_ID);
	start_all(t, THREADS, send_notes, c);
	join_all(t, THREADS);
	meet(c->ep, c->meeting, 2);
	CHECK_EQ(sci_ep_close(c->ep), 0);
}

static struct crowd *crowd_new(void)
{
	struct crowd *c = calloc(1, sizeof(*c));

	CHECK(c);
	c->meeting = test_shared(sizeof(*c->meeting));
	return c;
}

TEST(receives_from_any_source)
{
	struct crowd *c = crowd_new();
	struct peer *p = peer_spawn(8, crowd_of_endpoints, c);
	struct thread t[THREADS];

	c->ep = test_ep_open(TEST_ID, 0);
	start_all(t, THREADS, receive_any, c);
	join_all(t, THREADS);
	meet(c->ep, c->meeting, THREADS + 1);
	CHECK_EQ(sci_ep_close(c->ep), 0);
	peer_join(p);
	free(c);
}

/* Messages of one thread arrive in the order of its sends. */
TEST(sends_over_one_connection)
{
	static unsigned char buf[20000];
	struct crowd *c = crowd_new();
	struct peer *p = peer_spawn(8, crowd_of_threads, c);
	unsigned int next[THREADS] = { 0 };

	c->ep = test_ep_open(TEST_ID, 0);
	for (unsigned int i = 0; i < THREADS * NOTES; i++) {
		struct sci_status st;
		struct note n;

		CHECK_EQ(sci_recv(c->ep, NULL, buf, sizeof(buf), &st), 0);
		n = note_check(buf, st.len);
		CHECK_EQ(n.number, next[n.sender]++);
	}
	meet(c->ep, c->meeting, 2);
	CHECK_EQ(sci_ep_close(c->ep), 0);
	peer_join(p);
	free(c);
}

/* ---- requests that any thread may test ---- */

#define POOL	32u

struct pool {
	struct crowd *c;
	struct pool_entry {
		_Atomic(struct sci_req *) req;
		unsigned char buf[20000];
	} entry[POOL];
	_Atomic unsigned int posted;
	_Atomic unsigned int left;
};

static void pool_post(struct pool *p, struct pool_entry *e)
{
	struct sci_req *req;

	if (atomic_fetch_add(&p->posted, 1) >= THREADS * NOTES)
		return;
	CHECK_EQ(sci_irecv(p->c->ep, NULL, e->buf, sizeof(e->buf), &req), 0);
	atomic_store(&e->req, req);
}

static void *test_whatever_is_there(void *arg)
{
	struct pool *p = ((struct thread *)arg)->arg;
	unsigned int i = ((struct thread *)arg)->number;

	while (atomic_load(&p->left)) {
		struct pool_entry *e = &p->entry[i++ % POOL];
		struct sci_req *req = atomic_exchange(&e->req, NULL);
		struct sci_status st;
		struct note n;
		int ret;

		if (!req) {
			sched_yield();
			continue;
		}
		ret = i % 3 ? sci_test(req, &st) : sci_wait(req, 1, &st);
		if (ret == -EAGAIN || ret == -ETIMEDOUT) {
			atomic_store(&e->req, req);
			continue;
		}
		CHECK_EQ(ret, 0);
		n = note_check(e->buf, st.len);
		CHECK_EQ(atomic_fetch_add(&p->c->seen[n.sender][n.number], 1),
			 0);
		atomic_fetch_sub(&p->left, 1);
		pool_post(p, e);
	}
	return NULL;
}

TEST(requests_are_tested_by_any_thread)
{
	static struct pool pool;
	struct crowd *c = crowd_new();
	struct peer *p = peer_spawn(8, crowd_of_threads, c);
	struct thread t[THREADS];

	c->ep = test_ep_open(TEST_ID, 0);
	pool.c = c;
	atomic_store(&pool.left, THREADS * NOTES);
	for (unsigned int i = 0; i < POOL; i++)
		pool_post(&pool, &pool.entry[i]);
	start_all(t, THREADS, test_whatever_is_there, &pool);
	join_all(t, THREADS);
	meet(c->ep, c->meeting, 2);
	CHECK_EQ(sci_ep_close(c->ep), 0);
	peer_join(p);
	free(c);
}

/* ---- connections come and go ---- */

#define VISITS	(TRAFFIC_SLOW > 1 ? 8u : 40u)

struct house {
	_Atomic bool stop;
	_Atomic unsigned int open;	/* doors that are open */
};

struct doors {
	struct sci_ep *ep;
	struct house *house;
};

/* Echo all messages of all visitors. */
static void *keep_door(void *arg)
{
	struct doors *d = ((struct thread *)arg)->arg;
	struct sci_ep *ep;

	ep = test_ep_open(((struct thread *)arg)->number + 1, 0);
	atomic_fetch_add(&d->house->open, 1);
	while (!atomic_load(&d->house->stop)) {
		struct sci_status st;
		struct sci_peer *from;
		unsigned char buf[3000];

		if (sci_accept(ep, 20, &from))
			continue;
		while (!sci_recv(ep, from, buf, sizeof(buf), &st))
			CHECK_EQ(sci_send(from, buf, st.len), 0);
		CHECK_EQ(sci_peer_state(from), -ENOTCONN);
		CHECK_EQ(sci_disconnect(from), 0);
	}
	CHECK_EQ(sci_ep_close(ep), 0);
	return NULL;
}

static void keep_doors(struct peer *self, void *arg)
{
	struct doors d = { .house = arg };
	struct thread t[THREADS];

	(void)self;
	start_all(t, THREADS, keep_door, &d);
	join_all(t, THREADS);
}

static void *visit(void *arg)
{
	struct doors *d = ((struct thread *)arg)->arg;
	unsigned int number = ((struct thread *)arg)->number;
	unsigned char out[3000], in[3000];

	for (unsigned int i = 0; i < VISITS; i++) {
		struct sci_peer *to = test_ep_connect(d->ep, 8, number + 1);
		size_t len = mix64(i << 8 | number) % sizeof(out);
		struct sci_status st;

		sci_peer_set_data(to, out);
		msg_fill(out, len, i);
		CHECK_EQ(sci_send(to, out, len), 0);
		CHECK_EQ(sci_recv(d->ep, to, in, sizeof(in), &st), 0);
		CHECK_EQ(st.len, len);
		CHECK(!memcmp(in, out, len));
		CHECK(sci_peer_data(to) == out);
		CHECK_EQ(sci_disconnect(to), 0);
	}
	return NULL;
}

TEST(threads_connect_and_disconnect)
{
	struct house *house = test_shared(sizeof(*house));
	struct peer *p = peer_spawn(8, keep_doors, house);
	struct thread t[THREADS];
	struct doors d;

	WAIT_UNTIL(atomic_load(&house->open) == THREADS, TEST_WAIT_MS);
	for (unsigned int i = 0; i < 2; i++) {
		/* the C library keeps stacks and heaps of the first threads */
		if (i)
			leak_check_begin();
		d.ep = test_ep_open(TEST_ID, 0);
		start_all(t, THREADS, visit, &d);
		join_all(t, THREADS);
		CHECK_EQ(test_ep_stats(d.ep).peers, 0);
		CHECK_EQ(sci_ep_close(d.ep), 0);
	}
	leak_check_end();
	atomic_store(&house->stop, true);
	peer_join(p);
}

/* Threads that connect to one address at once get the same connection. */
struct same {
	struct sci_ep *ep;
	struct sci_peer *peer[THREADS];
};

static void *connect_once(void *arg)
{
	struct same *s = ((struct thread *)arg)->arg;
	unsigned int number = ((struct thread *)arg)->number;

	s->peer[number] = test_ep_connect(s->ep, 8, TEST_ID);
	return NULL;
}

TEST(threads_connect_to_one_endpoint)
{
	struct house *house = test_shared(sizeof(*house));
	struct peer *p = peer_spawn(8, keep_doors, house);
	struct same s;

	s.ep = test_ep_open(TEST_ID, 0);
	for (unsigned int i = 0; i < VISITS; i++) {
		struct thread t[THREADS];

		start_all(t, THREADS, connect_once, &s);
		join_all(t, THREADS);
		for (unsigned int k = 1; k < THREADS; k++)
			CHECK(s.peer[k] == s.peer[0]);
		CHECK_EQ(test_ep_stats(s.ep).peers, 1);
		CHECK_EQ(sci_disconnect(s.peer[0]), 0);
		CHECK_EQ(test_ep_stats(s.ep).peers, 0);
	}
	CHECK_EQ(sci_ep_close(s.ep), 0);
	atomic_store(&house->stop, true);
	peer_join(p);
}

/* Wait for a peer that another thread disconnects. */
static void *wait_for_nothing(void *arg)
{
	struct shared_ep *s = ((struct thread *)arg)->arg;
	char c;

	CHECK_EQ(sci_recv(s->ep, s->peer, &c, 1, NULL), -ECANCELED);
	return NULL;
}

TEST(disconnect_ends_a_wait)
{
	struct house *house = test_shared(sizeof(*house));
	struct peer *p = peer_spawn(8, keep_doors, house);
	struct shared_ep s = { .ep = NULL };
	struct thread t[THREADS];

	s.ep = test_ep_open(TEST_ID, 0);
	s.peer = test_ep_connect(s.ep, 8, TEST_ID);
	start_all(t, THREADS, wait_for_nothing, &s);
	WAIT_UNTIL(others_asleep() && others_asleep(), TEST_WAIT_MS);
	CHECK_EQ(sci_disconnect(s.peer), 0);
	join_all(t, THREADS);
	CHECK_EQ(sci_ep_close(s.ep), 0);
	atomic_store(&house->stop, true);
	peer_join(p);
}

/* ---- an endpoint for each thread ---- */

struct circle {
	struct meeting meeting;
	unsigned int flags;
};

static void *own_endpoint(void *arg)
{
	struct circle *c = ((struct thread *)arg)->arg;
	unsigned int number = ((struct thread *)arg)->number;
	unsigned int last = (number + THREADS - 1) % THREADS;
	struct sci_addr before = { 4, last + 1 };
	struct traffic *t = calloc(1, sizeof(*t));
	struct sci_peer *next, *prev;

	CHECK(t);
	t->ep = test_ep_open(number + 1, c->flags);
	traffic_params(t->ep, WAY_ALL);
	next = test_ep_connect(t->ep, 4, (number + 1) % THREADS + 1);
	PROGRESS_UNTIL(t->ep, !sci_peer_find(t->ep, &before, &prev),
		       TEST_WAIT_MS);
	for (unsigned int k = 0; k < 4; k++)
		traffic_flow(t, (struct flow) {
			.peer = k & 1 ? next : prev, .seed = k / 2,
			.source = k & 1 ? number : last, .dest = k / 2,
			.stream = k / 2, .sends = k & 1, .ways = WAY_ALL,
			.limit = MESSAGES / 4,
		});
	traffic_run(t);
	traffic_free(t);
	meet(t->ep, &c->meeting, THREADS);
	CHECK_EQ(sci_ep_close(t->ep), 0);
	free(t);
	return NULL;
}

static void check_circle(unsigned int flags)
{
	struct thread t[THREADS];

	for (unsigned int i = 0; i < 4; i++) {
		struct circle c = { .flags = flags };

		/* the C library keeps stacks and heaps of the first threads */
		if (i == 1)
			leak_check_begin();
		start_all(t, THREADS, own_endpoint, &c);
		join_all(t, THREADS);
	}
	leak_check_end();
}

TEST(an_endpoint_for_each_thread)
{
	check_circle(0);
}

TEST(an_endpoint_without_locks_for_each_thread)
{
	check_circle(SCI_EP_SINGLE_THREAD);
}

static void *open_and_close(void *arg)
{
	for (unsigned int i = 0; i < VISITS; i++) {
		struct sci_ep *ep;
		struct sci_addr a;
		int ret = sci_ep_open(&ep, i & 1 ? 0 : 7, 0);

		/* every other time all threads want the same id */
		CHECK(!ret || (ret == -EEXIST && !(i & 1)));
		if (ret)
			continue;
		CHECK_EQ(sci_ep_addr(ep, &a), 0);
		CHECK(a.node == 4 && a.id > 0 && a.id <= SCI_EP_ID_MAX);
		CHECK_EQ(sci_ep_close(ep), 0);
	}
	return arg;
}

TEST(threads_open_and_close)
{
	struct thread t[THREADS];

	leak_check_begin();
	start_all(t, THREADS, open_and_close, NULL);
	join_all(t, THREADS);
	leak_check_end();
}

/* ---- cancel against arrival ---- */

static void send_in_order(struct peer *self, void *arg)
{
	struct meeting *m = arg;
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *to = test_ep_connect(ep, 4, TEST_ID);
	static unsigned char buf[20000];

	(void)self;
	for (unsigned int i = 0; i < NOTES; i++)
		CHECK_EQ(sci_send(to, buf, note_make(buf, 0, i)), 0);
	meet(ep, m, 2);
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(cancel_against_arrival)
{
	struct meeting *m = test_shared(sizeof(*m));
	struct peer *p = peer_spawn(8, send_in_order, m);
	static unsigned char buf[20000];
	unsigned int got = 0, cancelled = 0, late = 0;
	uint64_t state = traffic_seed();
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);

	while (got < NOTES) {
		struct sci_status st;
		struct sci_req *req;
		int ret = 0;

		CHECK_EQ(sci_irecv(ep, NULL, buf, sizeof(buf), &req), 0);
		for (uint64_t n = draw(&state, 4); n; n--)
			sched_yield();
		if (draw(&state, 2)) {
			ret = sci_cancel(req);
			CHECK(!ret || ret == -EBUSY);
			late += ret == -EBUSY;
		}
		ret = test_wait(req, &st);
		if (ret == -ECANCELED) {
			cancelled++;
			continue;
		}
		CHECK_EQ(ret, 0);
		CHECK_EQ(note_check(buf, st.len).number, got++);
	}
	test_note("%u received, %u cancelled, %u too late", got, cancelled,
		  late);
	meet(ep, m, 2);
	CHECK_EQ(sci_ep_close(ep), 0);
	peer_join(p);
}
