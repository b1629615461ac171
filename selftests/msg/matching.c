// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Matching: which receive gets which message. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <sci/msg.h>

#include "selftests/harness.h"
#include "selftests/msg/peers.h"
#include "selftests/msg/servant.h"

#define SLOW	(TEST_ASAN || TEST_TSAN)

/* A length of each protocol: short, lines, eager, rendezvous or single copy. */
static const size_t lengths[] = { 20, 300, 3000, 100000 };

#define BY_BLOCKS							\
	.n = 2, .set = { { SCI_PARAM_EAGER_MAX, 4096 },			\
			 { SCI_PARAM_SINGLE_COPY_MIN, UINT64_MAX } }
#define BY_SINGLE_COPY							\
	.n = 2, .set = { { SCI_PARAM_EAGER_MAX, 4096 },			\
			 { SCI_PARAM_SINGLE_COPY_MIN, 5000 } }

/* ---- an endpoint, and servants on nodes 8 and 12 ---- */

#define SENDERS	2

struct world {
	struct sci_ep *ep;
	struct pair from[SENDERS];
};

static void world_run(const struct config *c, void (*fn)(struct world *w))
{
	struct world w = { .ep = NULL };

	for (unsigned int i = 0; i < SENDERS; i++)
		w.from[i].proc = peer_spawn(8 + 4 * i, servant,
					    (void *)(uintptr_t)c);
	w.ep = test_ep_config(TEST_ID, c);
	for (unsigned int i = 0; i < SENDERS; i++) {
		struct sci_peer *to = test_ep_accept(w.ep);
		struct sci_addr addr;

		CHECK_EQ(sci_peer_addr(to, &addr), 0);
		CHECK(addr.node == 8 || addr.node == 12);
		w.from[addr.node / 4 - 2].ep = w.ep;
		w.from[addr.node / 4 - 2].to = to;
	}
	fn(&w);
	for (unsigned int i = 0; i < SENDERS; i++)
		tell_leave(&w.from[i]);
	CHECK_EQ(sci_ep_close(w.ep), 0);
}

/* Define a test of rendezvous in blocks and a test of single copies. */
#define MATCH_TEST(name)						\
static void name(struct world *w);					\
TEST(name)								\
{									\
	static const struct config c = { BY_BLOCKS };			\
									\
	world_run(&c, name);						\
}									\
TEST(name##_single_copy)						\
{									\
	static const struct config c = { BY_SINGLE_COPY };		\
									\
	world_run(&c, name);						\
}									\
static void name(struct world *w)

/* ---- messages, receives, and the expected matches ---- */

struct arrival {
	unsigned int from;
	struct work m;
	bool given;
};

struct taking {
	int from;			/* -1: any source */
	bool tagged;
	uint32_t context;
	uint64_t tag, ignore;
	size_t gets;			/* index of its message */
	size_t room;
	struct guarded g;
	struct sci_req *req;
};

struct scene {
	struct world *w;
	size_t n;			/* messages, and receives */
	struct arrival *a;
	struct taking *t;
	size_t told, posted, settled;
};

static bool accepts(const struct taking *t, const struct arrival *a)
{
	if (t->from >= 0 && (unsigned int)t->from != a->from)
		return false;
	if (t->tagged != a->m.tagged)
		return false;
	return !t->tagged || (t->context == a->m.context &&
			      !((t->tag ^ a->m.tag) & ~t->ignore));
}

/*
 * The oracle. Return the message that @t gets: the first one that it accepts
 * and that no earlier receive gets. Times of arrival do not matter, because no
 * receive of a scene accepts messages of several senders.
 */
static size_t oracle(struct arrival *a, size_t n, const struct taking *t)
{
	for (size_t i = 0; i < n; i++) {
		if (a[i].given || !accepts(t, &a[i]))
			continue;
		a[i].given = true;
		return i;
	}
	FAIL("the test is wrong: no message for a receive");
}

static void scene_tell(struct scene *s)
{
	struct arrival *a = &s->a[s->told++];

	tell_send(&s->w->from[a->from], &a->m);
}

static void scene_post(struct scene *s)
{
	struct taking *t = &s->t[s->posted++];
	struct sci_peer *from = NULL;

	if (t->from >= 0)
		from = s->w->from[t->from].to;
	t->g = guarded_alloc(t->room, s->posted % 64);
	if (t->tagged)
		CHECK_EQ(sci_itrecv(s->w->ep, from, t->context, t->tag,
				    t->ignore, t->g.p, t->room, &t->req), 0);
	else
		CHECK_EQ(sci_irecv(s->w->ep, from, t->g.p, t->room, &t->req),
			 0);
}

static void check_taken(struct scene *s, struct taking *t,
			const struct sci_status *st)
{
	const struct arrival *a = &s->a[t->gets];
	size_t len = t->room < a->m.len ? t->room : a->m.len;

	CHECK(st->peer == s->w->from[a->from].to);
	CHECK_EQ(st->len, a->m.len);
	CHECK_EQ(st->tag, a->m.tagged ? a->m.tag : 0);
	CHECK_EQ(st->context, a->m.tagged ? a->m.context : 0);
	CHECK_EQ(st->error, len < a->m.len ? -EMSGSIZE : 0);
	CHECK_BYTES(t->g.p, len, a->m.seed);
	CHECK(guarded_intact(&t->g, len));
}

static void scene_settle(struct scene *s)
{
	struct taking *t = &s->t[s->settled++];
	struct sci_status st = { .error = 1 };
	int ret = test_wait(t->req, &st);

	check_taken(s, t, &st);
	CHECK_EQ(ret, st.error);
	guarded_free(&t->g);
}

/* Wait until message @i has arrived, and leave it there. */
static void scene_probe(struct scene *s, size_t i)
{
	const struct arrival *a = &s->a[i];
	struct pair *l = &s->w->from[a->from];
	struct sci_status st;

	if (a->m.tagged)
		CHECK_EQ(sci_tprobe(l->ep, l->to, a->m.context, a->m.tag, 0,
				    TEST_WAIT_MS, &st), 0);
	else
		CHECK_EQ(sci_probe(l->ep, l->to, TEST_WAIT_MS, &st), 0);
	CHECK(st.peer == l->to);
}

enum when { UNEXPECTED, POSTED, HALF, WHENS };

static void scene_play(struct scene *s, enum when when)
{
	size_t first = when == POSTED ? s->n : when == HALF ? s->n / 2 : 0;

	s->told = s->posted = s->settled = 0;
	for (size_t i = 0; i < s->n; i++) {
		s->a[i].given = false;
		s->a[i].m.seed = i + 1;
	}
	for (size_t i = 0; i < s->n; i++) {
		s->t[i].gets = oracle(s->a, s->n, &s->t[i]);
		s->t[i].room = s->a[s->t[i].gets].m.len + i % 3;
	}
	while (s->posted < first)
		scene_post(s);
	while (s->told < s->n)
		scene_tell(s);
	for (size_t i = 0; i < s->n && when == UNEXPECTED; i++)
		scene_probe(s, i);
	while (s->posted < s->n)
		scene_post(s);
	while (s->settled < s->n)
		scene_settle(s);
	for (unsigned int i = 0; i < SENDERS; i++)
		tell_finish(&s->w->from[i]);
}

/* Play the scene in all orders, with each protocol in each place. */
static void scene_all(struct world *w, struct arrival *a, struct taking *t,
		      size_t n)
{
	struct scene s = { .w = w, .n = n, .a = a, .t = t };

	for (int when = 0; when < WHENS; when++)
		for (size_t shift = 0; shift < ARRAY_LEN(lengths); shift++) {
			for (size_t i = 0; i < n; i++)
				a[i].m.len = lengths[(i + shift) %
						     ARRAY_LEN(lengths)];
			scene_play(&s, when);
		}
}

#define MSG(src, ctx, t)	{ .from = src, .m = { .tagged = 1,	\
					.context = ctx, .tag = t } }
#define PLAIN(src)		{ .from = src }
#define TAKE(src, ctx, t, ign)	{ .from = src, .tagged = true,		\
				  .context = ctx, .tag = t, .ignore = ign }
#define TAKE_PLAIN(src)		{ .from = src }

/* ---- tags, contexts, sources ---- */

MATCH_TEST(tags)
{
	const uint64_t high = 1ull << 63;
	struct arrival a[] = {
		MSG(0, 1, 1), MSG(0, 1, 2), MSG(0, 1, 3), MSG(0, 1, high),
		MSG(0, 1, high | 1), MSG(0, 1, UINT64_MAX), MSG(0, 1, 0),
		MSG(0, 1, 1ull << 32),
	};
	struct taking t[] = {
		TAKE(0, 1, 1ull << 32, 0), TAKE(0, 1, 0, 0),
		TAKE(0, 1, UINT64_MAX, 0), TAKE(0, 1, high | 1, 0),
		TAKE(0, 1, high, 0), TAKE(0, 1, 3, 0), TAKE(0, 1, 2, 0),
		TAKE(0, 1, 1, 0),
	};

	scene_all(w, a, t, ARRAY_LEN(a));
}

MATCH_TEST(order_of_one_tag)
{
	struct arrival a[12];
	struct taking t[12];

	for (size_t i = 0; i < 12; i++) {
		a[i] = (struct arrival)MSG(0, 1, 7);
		t[i] = (struct taking)TAKE(i % 2 ? 0 : -1, 1, 7, 0);
	}
	scene_all(w, a, t, ARRAY_LEN(a));
}

MATCH_TEST(ignored_bits)
{
	struct arrival a[] = {
		MSG(0, 1, 0x101), MSG(0, 1, 0x202), MSG(0, 1, 0x103),
		MSG(0, 1, 0x204), MSG(0, 1, 0x305), MSG(0, 1, 0x106),
	};
	struct taking t[] = {
		TAKE(0, 1, 0x200, 0xff), TAKE(0, 1, 6, ~0xffull),
		TAKE(-1, 1, 0x3ff, 0xff), TAKE(0, 1, 0x204, 0),
		TAKE(0, 1, 0xdead, UINT64_MAX), TAKE(-1, 1, 0, UINT64_MAX),
	};

	scene_all(w, a, t, ARRAY_LEN(a));
}

/* The older receive gets the message, even if it accepts more tags. */
MATCH_TEST(older_receives_first)
{
	struct arrival a[] = {
		MSG(0, 1, 5), MSG(0, 1, 5), MSG(0, 1, 5), MSG(0, 1, 5),
		MSG(0, 1, 6), MSG(0, 1, 5),
	};
	struct taking t[] = {
		TAKE(-1, 1, 0, UINT64_MAX), TAKE(0, 1, 5, 0),
		TAKE(0, 1, 0, 7), TAKE(-1, 1, 5, 0),
		TAKE(0, 1, 5, 0), TAKE(0, 1, 0, UINT64_MAX),
	};

	scene_all(w, a, t, ARRAY_LEN(a));
}

MATCH_TEST(contexts)
{
	struct arrival a[] = {
		MSG(0, 0, 5), MSG(0, 1, 5), MSG(0, SCI_CONTEXT_MAX, 5),
		MSG(0, 2, 5), MSG(0, 1, 6), MSG(0, 0, 6),
	};
	struct taking t[] = {
		TAKE(0, 2, 0, UINT64_MAX), TAKE(0, 1, 6, 0),
		TAKE(-1, SCI_CONTEXT_MAX, 5, UINT64_MAX),
		TAKE(0, 0, 0, UINT64_MAX), TAKE(0, 0, 6, 0), TAKE(0, 1, 5, 0),
	};

	scene_all(w, a, t, ARRAY_LEN(a));
}

/* An untagged message is not one with tag 0 in context 0. */
MATCH_TEST(untagged_ones_are_apart)
{
	struct arrival a[] = {
		MSG(0, 0, 0), PLAIN(0), PLAIN(0), MSG(0, 0, 0), PLAIN(0),
		MSG(0, 0, 0),
	};
	struct taking t[] = {
		TAKE_PLAIN(0), TAKE(-1, 0, 0, UINT64_MAX), TAKE_PLAIN(-1),
		TAKE_PLAIN(0), TAKE(0, 0, 0, 0), TAKE(-1, 0, 0, 0),
	};

	scene_all(w, a, t, ARRAY_LEN(a));
}

MATCH_TEST(sources)
{
	struct arrival a[] = {
		MSG(0, 1, 5), MSG(1, 1, 5), PLAIN(0), PLAIN(1), MSG(1, 1, 5),
		MSG(0, 1, 5), PLAIN(1), PLAIN(0),
	};
	struct taking t[] = {
		TAKE(1, 1, 5, 0), TAKE(0, 1, 5, 0), TAKE_PLAIN(1),
		TAKE_PLAIN(0), TAKE_PLAIN(0), TAKE_PLAIN(1),
		TAKE(1, 1, 0, UINT64_MAX), TAKE(0, 1, 0, UINT64_MAX),
	};

	scene_all(w, a, t, ARRAY_LEN(a));
}

/* Both senders send at once: only the order of messages of one sender is fixed. */
MATCH_TEST(any_source)
{
	enum { N = 20 };
	unsigned int next[SENDERS] = { 0 };
	static unsigned char buf[100000];
	struct sci_status st;

	for (unsigned int i = 0; i < N; i++)
		for (unsigned int k = 0; k < SENDERS; k++)
			tell_send(&w->from[k], &(struct work){
				.len = lengths[i % ARRAY_LEN(lengths)],
				.seed = 100 * k + i });
	for (unsigned int i = 0; i < N * SENDERS; i++) {
		unsigned int k, j;

		CHECK_EQ(sci_recv(w->ep, NULL, buf, sizeof(buf), &st), 0);
		k = st.peer == w->from[1].to;
		CHECK(st.peer == w->from[k].to);
		j = next[k]++;
		CHECK_EQ(st.len, lengths[j % ARRAY_LEN(lengths)]);
		CHECK_BYTES(buf, st.len, 100 * k + j);
	}
	CHECK_EQ(next[0], N);
	CHECK_EQ(next[1], N);
}

struct turns {
	_Atomic unsigned int go;
	_Atomic unsigned int sent;
};

#define TURNS	16u			/* they fit into a ring */

static void sends_turns(struct peer *proc, void *arg)
{
	struct turns *shared = arg;
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *to = test_ep_connect(ep, 4, TEST_ID);

	WAIT_UNTIL(atomic_load(&shared->go), TEST_WAIT_MS);
	for (unsigned int i = 0; i < TURNS; i++)
		CHECK_EQ(sci_send(to, &i, sizeof(i)), 0);
	atomic_fetch_add(&shared->sent, 1);
	peer_expect(proc, "leave");
	CHECK_EQ(sci_ep_close(ep), 0);
}

/*
 * A sender whose messages are always there does not keep another one waiting. On shm all messages
 * are there when the senders have sent them; over a link, those of one sender may arrive first.
 */
TEST(senders_take_turns)
{
	struct turns *shared = test_shared(sizeof(*shared));
	unsigned int next[SENDERS] = { 0 };
	struct peer *proc[SENDERS];
	struct sci_ep *ep;

	for (unsigned int k = 0; k < SENDERS; k++)
		proc[k] = peer_spawn(8 + 4 * k, sends_turns, shared);
	ep = test_ep_open(TEST_ID, 0);
	for (unsigned int k = 0; k < SENDERS; k++)
		test_ep_accept(ep);
	atomic_store(&shared->go, 1);
	/* both rings are filled while this process polls neither */
	WAIT_UNTIL(atomic_load(&shared->sent) == SENDERS, TEST_WAIT_MS);
	for (unsigned int i = 0; i < SENDERS * TURNS; i++) {
		struct sci_status st;
		struct sci_addr addr;
		unsigned int n;

		CHECK_EQ(sci_recv(ep, NULL, &n, sizeof(n), &st), 0);
		CHECK_EQ(sci_peer_addr(st.peer, &addr), 0);
		CHECK_EQ(n, next[addr.node / 4 - 2]++);
		if (i == TURNS - 1 && test_on_shm() && !getenv("SCI_NET"))
			CHECK(next[0] >= TURNS / 4 && next[1] >= TURNS / 4);
	}
	for (unsigned int k = 0; k < SENDERS; k++) {
		peer_send(proc[k], "leave");
		peer_join(proc[k]);
	}
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* ---- buffers too short ---- */

static void cut_off(struct world *w, struct taking *t, size_t len, size_t room,
		    bool posted)
{
	struct arrival a = {
		.m = { .tagged = t->tagged, .context = 1, .tag = 5,
		       .len = len, .seed = len },
	};
	struct scene s = { .w = w, .n = 1, .a = &a, .t = t };

	t->room = room;
	if (posted)
		scene_post(&s);
	scene_tell(&s);
	if (!posted) {
		scene_probe(&s, 0);
		scene_post(&s);
	}
	scene_settle(&s);
	/* the sender sees no error */
	tell_finish(&w->from[0]);
}

MATCH_TEST(messages_too_long)
{
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		size_t len = lengths[i];
		const size_t rooms[] = { 0, 1, len / 2, len - 65, len - 1 };

		for (size_t k = 0; k < 4 * ARRAY_LEN(rooms); k++) {
			struct taking t = TAKE(0, 1, 5, 0);

			t.tagged = k & 1;
			if (rooms[k / 4] < len)
				cut_off(w, &t, len, rooms[k / 4], k & 2);
		}
	}
}

/* ---- random messages and receives, against the oracle ---- */

#define RANDOM_N	(SLOW ? 150u : 600u)

static void random_arrival(struct arrival *a, uint64_t *rnd)
{
	static const size_t most[] = { 48, 62, 62, 300, 4096, 20000 };

	*a = (struct arrival){ .from = msg_random(rnd, SENDERS) };
	a->m.len = msg_random(rnd, most[msg_random(rnd, 6)] + 1);
	a->m.tagged = msg_random(rnd, 8) != 0;
	/* no context has messages of both senders */
	a->m.context = a->from * 3 + msg_random(rnd, 3);
	a->m.tag = msg_random(rnd, 8) * 0x100000001ull;
}

/* Draw a receive that accepts at least one of the first messages that are left. */
static void random_taking(struct scene *s, struct taking *t, uint64_t *rnd)
{
	size_t skip = msg_random(rnd, 20), i = 0, last = 0;
	const struct arrival *a;

	for (; i < s->n; i++) {
		if (s->a[i].given)
			continue;
		last = i;
		if (!skip--)
			break;
	}
	a = &s->a[last];
	*t = (struct taking){ .from = a->from, .tagged = a->m.tagged,
			      .context = a->m.context, .tag = a->m.tag };
	if (t->tagged && msg_random(rnd, 2))
		t->from = -1;
	if (t->tagged && !msg_random(rnd, 3))
		t->ignore = msg_random(rnd, 3) ? msg_random(rnd, 8) :
						 UINT64_MAX;
	t->tag ^= t->ignore & *rnd;
	t->gets = oracle(s->a, s->n, t);
	t->room = s->a[t->gets].m.len + msg_random(rnd, 9);
	if (!msg_random(rnd, 20))
		t->room /= 2;
}

static void random_step(struct scene *s, uint64_t *rnd)
{
	switch (msg_random(rnd, 4)) {
	case 0:
		if (s->told < s->n)
			scene_tell(s);
		break;
	case 1:
		if (s->posted < s->n && s->posted < s->settled + 64)
			scene_post(s);
		break;
	case 2:
		CHECK(sci_progress(s->w->ep) >= 0);
		break;
	default:
		if (s->settled < s->posted &&
		    s->t[s->settled].gets < s->told)
			scene_settle(s);
	}
}

MATCH_TEST(random_traffic)
{
	struct scene s = { .w = w, .n = RANDOM_N };
	uint64_t rnd = test_now_ms() | 1;

	test_note("seed %llu", (unsigned long long)rnd);
	s.a = calloc(s.n, sizeof(*s.a));
	s.t = calloc(s.n, sizeof(*s.t));
	CHECK(s.a && s.t);
	for (size_t i = 0; i < s.n; i++) {
		random_arrival(&s.a[i], &rnd);
		s.a[i].m.seed = i;
	}
	for (size_t i = 0; i < s.n; i++)
		random_taking(&s, &s.t[i], &rnd);
	while (s.settled < s.n)
		random_step(&s, &rnd);
	for (unsigned int i = 0; i < SENDERS; i++)
		tell_finish(&w->from[i]);
	free(s.a);
	free(s.t);
}
