// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Messages of every length, protocol and alignment arrive unchanged. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <sci/msg.h>

#include "selftests/harness.h"
#include "selftests/msg/peers.h"
#include "selftests/remote.h"

#define SLOW		(TEST_ASAN || TEST_TSAN || remote_machines())
/* Races are the same at each length and place: the thread sanitizer runs a third. */
#define STEP		(TEST_TSAN ? 3u : 1u)
#define CONTEXT		3u
#define MARGIN		64u		/* guard bytes on either side */
#define LEN_MAX		((SLOW ? 600u << 10 : 3u << 20) + 5)
/* An emulated adapter takes a second for a megabyte. */
#define FAR_LEN_MAX	((64u << 10) + 1)
#define ONE_SIDED	(1u << 31)	/* the flags are for node 4 alone */
#define CUT_MAX		SCI_IOV_MAX

/* ---- two sides that do the same ---- */

struct lane {
	struct pair l;
	unsigned int node;		/* node of this side */
	uint64_t seq;			/* the same on both sides */
	unsigned char *src, *dst;
};

struct job {
	struct config c;
	void (*run)(struct lane *t);
};

static void side(struct peer *proc, unsigned int node, const struct job *j)
{
	struct lane t = { .node = node == 4 ? 8 : 4 };
	struct config c = j->c;

	if (c.flags & ONE_SIDED)
		c.flags = node == 4 ? 0 : c.flags & ~ONE_SIDED;
	t.src = malloc(LEN_MAX + 2 * MARGIN + 64);
	t.dst = malloc(LEN_MAX + 2 * MARGIN + 64);
	CHECK(t.src && t.dst);
	t.l = pair_config(proc, node, &c);
	j->run(&t);
	pair_close(&t.l);
	free(t.src);
	free(t.dst);
}

static void far_side(struct peer *proc, void *arg)
{
	side(proc, 4, arg);
}

static void run_job(const struct job *j)
{
	struct peer *p = peer_spawn(8, far_side, (void *)(uintptr_t)j);

	side(p, 8, j);
	peer_join(p);
}

static uint64_t seed_of(struct lane *t, unsigned int node)
{
	return t->seq * 2 + (node == 4);
}

static unsigned int other_of(struct lane *t)
{
	return t->node == 4 ? 8 : 4;
}

/* Return a place of this alignment, filled with the bytes to send. */
static unsigned char *source(struct lane *t, size_t len, size_t align)
{
	unsigned char *p = t->src + (-(uintptr_t)t->src & 63) + align;

	msg_fill(p, len, seed_of(t, t->node));
	return p;
}

/* Return a place between guard bytes; it does not have the bytes that will arrive. */
static unsigned char *target(struct lane *t, size_t len, size_t align)
{
	unsigned char *p = t->dst + (-(uintptr_t)t->dst & 63) + MARGIN + align;

	memset(p - MARGIN, GUARD, MARGIN);
	memset(p + len, GUARD, MARGIN);
	return p;
}

static void check_target(struct lane *t, const unsigned char *p, size_t len)
{
	CHECK_BYTES(p, len, seed_of(t, other_of(t)));
	for (size_t i = 1; i <= MARGIN; i++)
		CHECK(p[-(ptrdiff_t)i] == GUARD);
	for (size_t i = 0; i < MARGIN; i++)
		CHECK(p[len + i] == GUARD);
}

static void check_status(struct lane *t, const struct sci_status *st,
			 size_t len, bool tagged)
{
	CHECK(st->peer == t->l.to);
	CHECK_EQ(st->len, len);
	CHECK_EQ(st->error, 0);
	CHECK_EQ(st->tag, tagged ? t->seq : 0);
	CHECK_EQ(st->context, tagged ? CONTEXT : 0);
}

/* ---- one message, in all modes ---- */

enum mode {
	TAGGED = 1,
	SEND_NB = 2,
	RECV_NB = 4,
	FROM_ANY = 8,
	MODES = 16,
};

static void put(struct lane *t, const void *p, size_t len, unsigned int mode)
{
	struct sci_req *req = NULL;
	struct sci_status st;
	int ret;

	switch (mode & (TAGGED | SEND_NB)) {
	case 0:
		CHECK_EQ(sci_send(t->l.to, p, len), 0);
		return;
	case TAGGED:
		CHECK_EQ(sci_tsend(t->l.to, CONTEXT, t->seq, p, len), 0);
		return;
	case SEND_NB:
		ret = sci_isend(t->l.to, p, len, &req);
		break;
	default:
		ret = sci_itsend(t->l.to, CONTEXT, t->seq, p, len, &req);
		break;
	}
	CHECK_EQ(ret, 0);
	CHECK_EQ(test_wait(req, &st), 0);
	check_status(t, &st, len, mode & TAGGED);
}

static void get(struct lane *t, void *p, size_t len, unsigned int mode)
{
	struct sci_peer *from = mode & FROM_ANY ? NULL : t->l.to;
	struct sci_req *req = NULL;
	struct sci_status st;
	int ret;

	switch (mode & (TAGGED | RECV_NB)) {
	case 0:
		ret = sci_recv(t->l.ep, from, p, len, &st);
		break;
	case TAGGED:
		ret = sci_trecv(t->l.ep, from, CONTEXT, t->seq, 0, p, len,
				&st);
		break;
	case RECV_NB:
		CHECK_EQ(sci_irecv(t->l.ep, from, p, len, &req), 0);
		ret = test_wait(req, &st);
		break;
	default:
		CHECK_EQ(sci_itrecv(t->l.ep, from, CONTEXT, t->seq, 0, p, len,
				    &req), 0);
		ret = test_wait(req, &st);
		break;
	}
	CHECK_EQ(ret, 0);
	check_status(t, &st, len, mode & TAGGED);
}

static void send_one(struct lane *t, size_t len, unsigned int mode,
		     size_t align)
{
	unsigned char *p = source(t, len, align);

	put(t, p, len, mode);
	/* a send does not change its buffer */
	if (mode & SEND_NB)
		CHECK_BYTES(p, len, seed_of(t, t->node));
}

static void recv_one(struct lane *t, size_t len, unsigned int mode,
		     size_t align)
{
	unsigned char *p = target(t, len, align);

	get(t, p, len, mode);
	check_target(t, p, len);
}

/* Send a message there and back. */
static void trip(struct lane *t, size_t len, unsigned int mode,
		 size_t src_align, size_t dst_align)
{
	t->seq++;
	if (t->node == 4)
		send_one(t, len, mode, src_align);
	recv_one(t, len, mode, dst_align);
	if (t->node != 4)
		send_one(t, len, mode, src_align);
}

/* Both sides send at once. If @posted, each side receives before it sends. */
static void cross(struct lane *t, size_t len, bool posted)
{
	struct sci_req *in = NULL, *out = NULL;
	unsigned char *from, *to;
	struct sci_status st;

	t->seq++;
	from = source(t, len, 1);
	to = target(t, len, 0);
	if (posted)
		CHECK_EQ(sci_irecv(t->l.ep, t->l.to, to, len, &in), 0);
	CHECK_EQ(sci_isend(t->l.to, from, len, &out), 0);
	if (posted)
		CHECK_EQ(test_wait(in, &st), 0);
	else
		CHECK_EQ(sci_recv(t->l.ep, t->l.to, to, len, &st), 0);
	check_status(t, &st, len, false);
	check_target(t, to, len);
	CHECK_EQ(test_wait(out, NULL), 0);
}

/* ---- every length ---- */

struct lengths {
	unsigned int n;
	size_t len[192];
};

static void add_round(struct lengths *s, uint64_t len)
{
	if (len < 1 || len >= LEN_MAX)
		return;
	CHECK(s->n + 3 <= ARRAY_LEN(s->len));
	for (uint64_t i = len - 1; i <= len + 1; i++)
		s->len[s->n++] = i;
}

static void find_lengths(struct sci_ep *ep, struct lengths *s)
{
	static const unsigned char small[] = {
		0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 49, 61, 62, 63,
		64, 65, 127, 128, 129, 191, 192, 193,
	};
	static const enum sci_param bounds[] = {
		SCI_PARAM_EAGER_MAX, SCI_PARAM_EAGER_RING, SCI_PARAM_BLOCK,
		SCI_PARAM_XFER_RING, SCI_PARAM_SINGLE_COPY_MIN,
		SCI_PARAM_LINES_MAX,
	};

	s->n = 0;
	for (size_t i = 0; i < ARRAY_LEN(small); i++)
		s->len[s->n++] = small[i];
	for (size_t len = 256; len <= 256 << 10; len *= 2)
		add_round(s, len);
	for (size_t i = 0; i < ARRAY_LEN(bounds); i++) {
		add_round(s, test_ep_get(ep, bounds[i]));
		add_round(s, test_ep_get(ep, bounds[i]) / 2);
	}
	s->len[s->n++] = LEN_MAX;
}

static void every_length(struct lane *t)
{
	static struct lengths s;

	find_lengths(t->l.ep, &s);
	for (unsigned int i = 0; i < s.n; i += STEP) {
		bool few = s.len[i] > 4096 || SLOW;

		if (remote_machines() && s.len[i] > FAR_LEN_MAX)
			continue;
		/* long messages in three of the modes, other ones each time */
		for (unsigned int m = i % MODES, k = 0; k < (few ? 3 : MODES);
		     m = (m + 5) % MODES, k++)
			trip(t, s.len[i], m, i % 64, m * 4 + 1);
		cross(t, s.len[i], i % 2);
		if (!SLOW)
			cross(t, s.len[i], !(i % 2));
	}
}

#define EVERY_LENGTH(name, ...)						\
TEST(every_length_##name)						\
{									\
	static const struct job j = { { __VA_ARGS__ }, every_length };	\
									\
	run_job(&j);							\
}

#define SET1(p, v)	.n = 1, .set = { { SCI_PARAM_##p, v } }
#define SET2(p, v, q, w)						\
	.n = 2, .set = { { SCI_PARAM_##p, v }, { SCI_PARAM_##q, w } }

EVERY_LENGTH(by_default, SET1(SINGLE_COPY_MIN, SINGLE_COPY_DEFAULT))
EVERY_LENGTH(single_thread, .flags = SCI_EP_SINGLE_THREAD)
EVERY_LENGTH(checked, .flags = SCI_EP_CRC)
EVERY_LENGTH(checked_in_blocks, .flags = SCI_EP_CRC,
	     SET2(EAGER_MAX, 1000, SINGLE_COPY_MIN, UINT64_MAX))
EVERY_LENGTH(checked_on_one_side, .flags = SCI_EP_CRC | ONE_SIDED,
	     SET1(EAGER_MAX, 3000))
EVERY_LENGTH(hardly_eager, SET2(EAGER_MAX, 0, SINGLE_COPY_MIN, UINT64_MAX))
EVERY_LENGTH(all_eager, SET2(EAGER_MAX, UINT64_MAX, ATTACH_AFTER, 0))
EVERY_LENGTH(attach_at_once,
	     SET2(ATTACH_AFTER, 0, SINGLE_COPY_MIN, UINT64_MAX))
EVERY_LENGTH(attach_never,
	     SET2(ATTACH_AFTER, UINT64_MAX, SINGLE_COPY_MIN, UINT64_MAX))
EVERY_LENGTH(no_lines, SET2(LINES_MAX, 0, ATTACH_AFTER, 0))
EVERY_LENGTH(all_lines, SET2(LINES_MAX, UINT64_MAX, EAGER_MAX, UINT64_MAX))
EVERY_LENGTH(single_copy, SET2(SINGLE_COPY_MIN, 1, EAGER_MAX, 64))
EVERY_LENGTH(in_small_rings, .n = 5, .set = {
	{ SCI_PARAM_EAGER_RING, 1 }, { SCI_PARAM_XFER_RING, 1 },
	{ SCI_PARAM_BLOCK, 64 }, { SCI_PARAM_ATTACH_AFTER, 0 },
	{ SCI_PARAM_SINGLE_COPY_MIN, UINT64_MAX } })
EVERY_LENGTH(in_tiny_blocks, .n = 4, .set = {
	{ SCI_PARAM_BLOCK, 64 }, { SCI_PARAM_EAGER_MAX, 100 },
	{ SCI_PARAM_ATTACH_AFTER, 0 },
	{ SCI_PARAM_SINGLE_COPY_MIN, UINT64_MAX } })
EVERY_LENGTH(in_huge_blocks, .n = 4, .set = {
	{ SCI_PARAM_BLOCK, UINT64_MAX }, { SCI_PARAM_XFER_RING, 8 << 20 },
	{ SCI_PARAM_EAGER_RING, 4 << 20 },
	{ SCI_PARAM_SINGLE_COPY_MIN, UINT64_MAX } })
EVERY_LENGTH(without_spinning, SET1(SPIN_US, 0))

/* ---- every alignment ---- */

static void every_alignment(struct lane *t)
{
	size_t eager = test_ep_get(t->l.ep, SCI_PARAM_EAGER_MAX);
	const size_t len[] = {
		1, 8, 61, 62, 200, 3000, eager, eager + 1, 70001,
	};
	unsigned int step = SLOW ? 9 : 1;

	for (size_t i = 0; i < ARRAY_LEN(len); i++)
		for (unsigned int a = 0; a < 64; a += STEP)
			trip(t, len[i], a % MODES, a, (a * 13 + 5) % 64);
	/* all pairs of alignments, where lines begin and end */
	for (unsigned int a = 0; a < 64; a += step)
		for (unsigned int b = 0; b < 64; b++)
			trip(t, 150, TAGGED * (b & 1), a, b);
}

TEST(every_alignment)
{
	static const struct job j = { { .n = 0 }, every_alignment };

	run_job(&j);
}

TEST(every_alignment_without_single_copies)
{
	static const struct job j = {
		{ SET2(SINGLE_COPY_MIN, UINT64_MAX, ATTACH_AFTER, 0) },
		every_alignment
	};

	run_job(&j);
}

/* ---- thousands of messages in order ---- */

#define STREAM		(SLOW ? 300u : 4000u)
#define STREAM_MAX	(remote_machines() ? FAR_LEN_MAX : 256u << 10)
#define WINDOW		16u

struct item {
	size_t len, from;
	bool tagged;
};

static struct item next_item(uint64_t *rnd)
{
	const size_t most[8] = {
		48, 62, 62, 200, 1000, 4096, 40000, STREAM_MAX,
	};
	struct item m;

	m.len = msg_random(rnd, most[msg_random(rnd, 8)] + 1);
	m.from = msg_random(rnd, LEN_MAX - m.len);
	m.tagged = !msg_random(rnd, 3);
	return m;
}

struct flight {
	struct item m;
	struct sci_req *in, *out;
	unsigned char *dst;
};

static void stream_post(struct lane *t, struct flight *f, unsigned int i,
			uint64_t *mine, uint64_t *theirs)
{
	struct item m = next_item(mine);

	f->m = next_item(theirs);
	if (f->m.tagged)
		CHECK_EQ(sci_itrecv(t->l.ep, NULL, CONTEXT, i, 0, f->dst,
				    STREAM_MAX, &f->in), 0);
	else
		CHECK_EQ(sci_irecv(t->l.ep, t->l.to, f->dst, STREAM_MAX,
				   &f->in), 0);
	if (m.tagged)
		CHECK_EQ(sci_itsend(t->l.to, CONTEXT, i, t->src + m.from,
				    m.len, &f->out), 0);
	else
		CHECK_EQ(sci_isend(t->l.to, t->src + m.from, m.len, &f->out),
			 0);
}

static void stream_take(struct lane *t, struct flight *f)
{
	struct sci_status st;

	CHECK_EQ(test_wait(f->in, &st), 0);
	CHECK(st.peer == t->l.to);
	CHECK_EQ(st.len, f->m.len);
	CHECK_EQ(msg_differs(f->dst, f->m.from, f->m.len, 1), -1);
	CHECK_EQ(test_wait(f->out, NULL), 0);
}

static void stream(struct lane *t)
{
	uint64_t mine = t->node, theirs = other_of(t);
	static struct flight f[WINDOW];

	/* each message is cut from another place, which tells messages apart */
	msg_fill(t->src, LEN_MAX, 1);
	for (unsigned int i = 0; i < WINDOW; i++) {
		f[i].dst = malloc(STREAM_MAX);
		CHECK(f[i].dst);
	}
	for (unsigned int i = 0; i < STREAM + WINDOW; i++) {
		if (i >= WINDOW)
			stream_take(t, &f[i % WINDOW]);
		if (i < STREAM)
			stream_post(t, &f[i % WINDOW], i, &mine, &theirs);
	}
	for (unsigned int i = 0; i < WINDOW; i++)
		free(f[i].dst);
}

#define STREAM_TEST(name, ...)						\
TEST(stream_##name)							\
{									\
	static const struct job j = { { __VA_ARGS__ }, stream };	\
									\
	run_job(&j);							\
}

STREAM_TEST(by_default, SET1(SINGLE_COPY_MIN, SINGLE_COPY_DEFAULT))
STREAM_TEST(checked, .flags = SCI_EP_CRC)
STREAM_TEST(of_one_thread, .flags = SCI_EP_SINGLE_THREAD,
	    SET1(SINGLE_COPY_MIN, UINT64_MAX))
STREAM_TEST(attached_at_once,
	    SET2(ATTACH_AFTER, 0, SINGLE_COPY_MIN, UINT64_MAX))
STREAM_TEST(in_small_rings, .n = 4, .set = {
	{ SCI_PARAM_EAGER_RING, 1 }, { SCI_PARAM_XFER_RING, 1 },
	{ SCI_PARAM_ATTACH_AFTER, 0 },
	{ SCI_PARAM_SINGLE_COPY_MIN, UINT64_MAX } })
STREAM_TEST(with_little_room, .n = 2, .set = {
	{ SCI_PARAM_UNEXPECTED_MAX, 1000 }, { SCI_PARAM_SPIN_US, 0 } })

/* Where packets can be lost, a rendezvous chooses its blocks in another way. */
TEST(stream_in_small_rings_on_a_lossy_link)
{
	static const struct job j = {
		{ .n = 5, .set = {
			{ SCI_PARAM_EAGER_MAX, 8 << 10 },
			{ SCI_PARAM_EAGER_RING, 1 }, { SCI_PARAM_XFER_RING, 1 },
			{ SCI_PARAM_ATTACH_AFTER, 0 },
			{ SCI_PARAM_SINGLE_COPY_MIN, UINT64_MAX } } },
		stream
	};

	setenv("SCI_FAULT", "loss=0.001", 1);
	run_job(&j);
}

/* Send only short messages, as fast as they go, blocking on both sides. */
static void burst(struct lane *t)
{
	unsigned int n = SLOW ? 2000 : 30000;
	unsigned char buf[SCI_SHORT_MAX];
	struct sci_status st;

	for (unsigned int i = 0; i < n; i++) {
		size_t len = i % (SCI_SHORT_MAX + 1);

		if (t->node == 4) {
			msg_fill(buf, len, i);
			CHECK_EQ(sci_send(t->l.to, buf, len), 0);
			continue;
		}
		CHECK_EQ(sci_recv(t->l.ep, NULL, buf, sizeof(buf), &st), 0);
		CHECK_EQ(st.len, len);
		CHECK_BYTES(buf, len, i);
	}
}

TEST(a_burst_of_short_messages)
{
	static const struct job j = { { .n = 0 }, burst };

	run_job(&j);
}

/* Both sides send more than any ring holds before they receive. */
static void both_send_first(struct lane *t)
{
	enum { N = 200, LEN = 4000 };

	t->seq++;
	for (unsigned int i = 0; i < N; i++) {
		msg_fill(t->src, LEN, seed_of(t, t->node) + 2 * i);
		CHECK_EQ(sci_send(t->l.to, t->src, LEN), 0);
	}
	for (unsigned int i = 0; i < N; i++) {
		CHECK_EQ(sci_recv(t->l.ep, t->l.to, t->dst, LEN, NULL), 0);
		CHECK_BYTES(t->dst, LEN, seed_of(t, other_of(t)) + 2 * i);
	}
}

TEST(both_sides_send_eagerly_and_then_receive)
{
	static const struct job j = {
		{ .n = 3, .set = { { SCI_PARAM_EAGER_MAX, 8192 },
				   { SCI_PARAM_EAGER_RING, 16384 },
				   { SCI_PARAM_UNEXPECTED_MAX, 4 << 20 } } },
		both_send_first
	};

	run_job(&j);
}

/* ---- all places of a ring ---- */

#define ROUND_MAX	24u

/*
 * Send messages of all lengths, one way and then the other, one or many before
 * the peer answers: their blocks begin everywhere in the ring.  Each message
 * has bytes of its own, and the earlier bytes of the target are gone.
 */
static void one_way(struct lane *t, bool sends, size_t len, unsigned int n)
{
	struct sci_req *req[ROUND_MAX];
	unsigned char *p = sends ? source(t, len * n, t->seq % 3 ? 0 : t->seq % 64) :
				   target(t, len * n, t->seq % 5);
	unsigned int i;

	if (!sends)
		memset(p, GUARD, len * n);
	for (i = 0; i < n; i++)
		if (sends)
			CHECK_EQ(sci_isend(t->l.to, p + i * len, len, &req[i]), 0);
		else
			CHECK_EQ(sci_irecv(t->l.ep, t->l.to, p + i * len, len,
					   &req[i]), 0);
	for (i = 0; i < n; i++)
		CHECK_EQ(test_wait(req[i], NULL), 0);
	if (!sends)
		check_target(t, p, len * n);
}

static void all_places(struct lane *t)
{
	size_t ring = test_ep_get(t->l.ep, SCI_PARAM_EAGER_RING), len;
	size_t room = remote_machines() ? FAR_LEN_MAX : LEN_MAX;
	unsigned int rounds = SLOW ? 60 : 600, i, n;
	uint64_t rnd = 5;	/* the same on both sides */

	ring = ring < room ? ring : room;
	for (i = 0; i < rounds; i++) {
		len = ring >> msg_random(&rnd, 12);
		len -= msg_random(&rnd, 2) * msg_random(&rnd, len);
		n = 1 + (unsigned int)msg_random(&rnd, ROUND_MAX);
		n = len * n > room ? (unsigned int)(room / len) : n;
		t->seq++;
		one_way(t, (t->node == 4) == (msg_random(&rnd, 3) == 0), len, n);
	}
}

#define ALL_PLACES(name, ring, block)					\
TEST(all_places_##name)							\
{									\
	static const struct job j = { { .n = 5, .set = {		\
		{ SCI_PARAM_EAGER_MAX, block },				\
		{ SCI_PARAM_EAGER_BLOCK, block },			\
		{ SCI_PARAM_BLOCK, block },				\
		{ SCI_PARAM_EAGER_RING, ring },				\
		{ SCI_PARAM_XFER_RING, ring } } }, all_places };	\
									\
	run_job(&j);							\
}

ALL_PLACES(in_small_blocks, 64 << 10, 4096)
ALL_PLACES(in_short_rings, 16 << 10, UINT64_MAX)
ALL_PLACES(in_rings_with_gaps, 64 << 10, UINT64_MAX)
ALL_PLACES(in_quarters_of_a_ring, 512 << 10, UINT64_MAX)

/* ---- in pieces ---- */

struct pieces {
	size_t n;
	struct iovec iov[CUT_MAX];
	struct iovec kept[CUT_MAX];
};

/* Cut @len bytes into @n pieces with gaps between them; some pieces are empty. */
static void cut(struct pieces *s, unsigned char *p, size_t n, size_t len,
		uint64_t *rnd)
{
	s->n = n;
	for (size_t i = 0; i < n; i++) {
		size_t piece = msg_random(rnd, 2 * len / (n - i) + 1);

		if (!msg_random(rnd, 4))
			piece = 0;
		if (i == n - 1 || piece > len)
			piece = len;
		s->iov[i] = (struct iovec){ p, piece };
		p += piece + msg_random(rnd, 4);
		len -= piece;
	}
	memcpy(s->kept, s->iov, sizeof(s->iov));
}

static void pieces_fill(const struct pieces *s, uint64_t seed)
{
	size_t from = 0;

	for (size_t i = 0; i < s->n; i++) {
		msg_fill_from(s->kept[i].iov_base, from, s->kept[i].iov_len,
			      seed);
		from += s->kept[i].iov_len;
	}
}

/* The first @len bytes have arrived, gaps and the rest are untouched. */
static void pieces_check(const struct pieces *s, const unsigned char *area,
			 size_t size, size_t len, uint64_t seed)
{
	const unsigned char *p = area;
	size_t from = 0;

	for (size_t i = 0; i < s->n; i++) {
		size_t piece = s->kept[i].iov_len;

		if (piece > len - from)
			piece = len - from;
		if (!piece)
			continue;
		for (; p < (unsigned char *)s->kept[i].iov_base; p++)
			CHECK(*p == GUARD);
		CHECK_EQ(msg_differs(p, from, piece, seed), -1);
		p += piece;
		from += piece;
	}
	CHECK_EQ(from, len);
	for (; p < area + size; p++)
		CHECK(*p == GUARD);
}

static void piece_trip(struct lane *t, size_t len, uint64_t *rnd)
{
	size_t n = msg_random(rnd, 16) ? 1 + msg_random(rnd, 20) : CUT_MAX;
	size_t room = len + msg_random(rnd, 100), size = room + 4 * CUT_MAX;
	struct sci_req *in, *out;
	static struct pieces from, to;
	struct sci_status st;
	bool tagged = msg_random(rnd, 2);

	t->seq++;
	cut(&from, t->src, n, len, rnd);
	pieces_fill(&from, seed_of(t, t->node));
	memset(t->dst, GUARD, size);
	cut(&to, t->dst, 1 + msg_random(rnd, 20), room, rnd);
	if (tagged) {
		CHECK_EQ(sci_itrecvv(t->l.ep, NULL, CONTEXT, t->seq, 0,
				     to.iov, to.n, &in), 0);
		CHECK_EQ(sci_itsendv(t->l.to, CONTEXT, t->seq, from.iov,
				     from.n, 0, &out), 0);
	} else {
		CHECK_EQ(sci_irecvv(t->l.ep, NULL, to.iov, to.n, &in), 0);
		CHECK_EQ(sci_isendv(t->l.to, from.iov, from.n, 0, &out), 0);
	}
	/* the calls have copied the vectors */
	memset(from.iov, 0xff, sizeof(from.iov));
	memset(to.iov, 0xff, sizeof(to.iov));
	CHECK_EQ(test_wait(in, &st), 0);
	check_status(t, &st, len, tagged);
	pieces_check(&to, t->dst, size, len, seed_of(t, other_of(t)));
	CHECK_EQ(test_wait(out, NULL), 0);
}

static void in_pieces(struct lane *t)
{
	static const size_t len[] = {
		0, 1, 5, 48, 49, 62, 63, 200, 1000, 5000, 20000, 100000,
		300001,
	};
	unsigned int rounds = SLOW ? 4 : 20;
	uint64_t rnd = 99;	/* both sides cut in the same way */

	for (unsigned int i = 0; i < rounds; i++)
		for (size_t j = 0; j < ARRAY_LEN(len); j++)
			piece_trip(t, len[j], &rnd);
}

#define PIECES_TEST(name, ...)						\
TEST(pieces_##name)							\
{									\
	static const struct job j = { { __VA_ARGS__ }, in_pieces };	\
									\
	run_job(&j);							\
}

PIECES_TEST(by_default, SET1(SINGLE_COPY_MIN, SINGLE_COPY_DEFAULT))
PIECES_TEST(checked, .flags = SCI_EP_CRC, SET1(SINGLE_COPY_MIN, UINT64_MAX))
PIECES_TEST(in_blocks, .n = 4, .set = {
	{ SCI_PARAM_BLOCK, 64 }, { SCI_PARAM_EAGER_MAX, 2000 },
	{ SCI_PARAM_ATTACH_AFTER, 0 },
	{ SCI_PARAM_SINGLE_COPY_MIN, UINT64_MAX } })
PIECES_TEST(single_copy, SET2(SINGLE_COPY_MIN, 1, EAGER_MAX, 100))

static void no_pieces(struct lane *t)
{
	struct iovec none[2] = { { NULL, 0 }, { NULL, 0 } };
	struct sci_req *req[4];
	struct sci_status st[4];

	CHECK_EQ(sci_irecvv(t->l.ep, t->l.to, NULL, 0, &req[0]), 0);
	CHECK_EQ(sci_irecvv(t->l.ep, t->l.to, none, 2, &req[1]), 0);
	CHECK_EQ(sci_isendv(t->l.to, none, 2, 0, &req[2]), 0);
	CHECK_EQ(sci_isendv(t->l.to, NULL, 0, 0, &req[3]), 0);
	CHECK_EQ(sci_waitall(req, 4, TEST_WAIT_MS, st), 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(st[i].len, 0);
}

TEST(no_pieces_at_all)
{
	static const struct job j = { { .n = 0 }, no_pieces };

	run_job(&j);
}

/* ---- single copies ---- */

#define SINGLE_MIN	20000u		/* shorter than the longest eager message */

static void receive_two(struct peer *proc, void *arg)
{
	struct pair l = pair_open(proc, 4, 0);
	unsigned char buf[SINGLE_MIN];

	(void)arg;
	CHECK_EQ(sci_ep_set(l.ep, SCI_PARAM_SINGLE_COPY_MIN, SINGLE_MIN), 0);
	pair_meet(&l);
	for (size_t i = 0; i < 3; i++) {
		CHECK_EQ(sci_recv(l.ep, l.to, buf, sizeof(buf), NULL), 0);
		CHECK_BYTES(buf, SINGLE_MIN - (i == 1), 1);
	}
	pair_meet(&l);
	pair_close(&l);
}

TEST(a_single_copy_needs_no_longer_message_than_asked_for)
{
	struct peer *p = peer_spawn(8, receive_two, NULL);
	struct pair l = pair_open(p, 8, 0);
	struct sci_ep_stats stats = { .size = sizeof(stats) };
	unsigned char buf[SINGLE_MIN];
	const struct iovec v = { buf, sizeof(buf) };
	struct sci_req *req;
	bool possible;

	CHECK_EQ(sci_ep_set(l.ep, SCI_PARAM_SINGLE_COPY_MIN, SINGLE_MIN), 0);
	pair_meet(&l);
	possible = sci_peer_read_private(l.to, buf, (uintptr_t)buf, 1) != -EOPNOTSUPP;
	msg_fill(buf, sizeof(buf), 1);
	CHECK_EQ(sci_send(l.to, buf, SINGLE_MIN), 0);
	CHECK_EQ(sci_send(l.to, buf, SINGLE_MIN - 1), 0);
	/* the sender forbids single copies, the receiver allows them */
	CHECK_EQ(sci_ep_set(l.ep, SCI_PARAM_SINGLE_COPY_MIN, UINT64_MAX), 0);
	CHECK_EQ(sci_isendv(l.to, &v, 1, SCI_SEND_SYNC, &req), 0);
	CHECK_EQ(test_wait(req, NULL), 0);
	pair_meet(&l);
	CHECK_EQ(sci_ep_stats(l.ep, &stats), 0);
	CHECK_EQ(stats.sent_single_copy, possible);
	pair_close(&l);
	peer_join(p);
}

/*
 * Send @len bytes in @n pieces to this process itself. Only an eager message completes before it is
 * received.
 */
static void send_eager(struct sci_ep *ep, struct sci_peer *to, size_t len, size_t n,
		       uint32_t flags)
{
	unsigned char *buf = malloc(len), *got = malloc(len);
	const struct iovec iov[2] = { { buf, len / n }, { buf + len / n, len - len / n } };
	const struct sci_send send = { .iov = iov, .n = n, .flags = flags };
	uint64_t before = test_ep_stats(ep).sent_eager;
	struct sci_req *req;

	CHECK(buf && got);
	msg_fill(buf, len, 6);
	CHECK_EQ(sci_isendm(to, &send, &req), 0);
	CHECK_EQ(test_wait(req, NULL), 0);
	CHECK_EQ(test_ep_stats(ep).sent_eager, before + 1);
	CHECK_EQ(sci_recv(ep, to, got, len, NULL), 0);
	CHECK_BYTES(got, len, 6);
	free(buf);
	free(got);
}

TEST(messages_stay_eager_that_cannot_be_single_copies)
{
	struct sci_peer *to;
	struct sci_ep *ep;

	test_needs_shm();
	ep = test_ep_open(TEST_ID, 0);
	to = test_ep_connect(ep, 4, TEST_ID);
	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_ATTACH_AFTER, 0), 0);
	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_EAGER_RING, 4u << 20), 0);
	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_EAGER_MAX, 1u << 20), 0);
	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_SINGLE_COPY_MIN, SINGLE_MIN), 0);
	send_eager(ep, to, SINGLE_MIN - 1, 1, 0);
	send_eager(ep, to, SINGLE_MIN, 2, 0);
	send_eager(ep, to, SINGLE_MIN, 1, SCI_SEND_COPY);
	/* the default replaces no eager message */
	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_SINGLE_COPY_MIN, SINGLE_COPY_DEFAULT), 0);
	send_eager(ep, to, SINGLE_MIN, 1, 0);
	send_eager(ep, to, SINGLE_COPY_DEFAULT, 1, 0);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* ---- with little memory ---- */

#define LONG		(1u << 20)
#define LITTLE		(100u << 10)	/* limit of a file, such as a transfer ring */

static void receive_with_little(struct peer *proc, void *arg)
{
	const struct rlimit limit = { LITTLE, LITTLE };
	struct pair l = pair_open(proc, 4, 0);
	unsigned char *buf = malloc(LONG);

	(void)arg;
	CHECK(buf);
	signal(SIGXFSZ, SIG_IGN);
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
	CHECK_EQ(sci_trecv(l.ep, l.to, 1, 1, 0, buf, LONG, NULL), 0);
	CHECK_BYTES(buf, LONG, 3);
	free(buf);
	pair_close(&l);
}

TEST(a_transfer_ring_as_large_as_memory_allows)
{
	struct peer *p = peer_spawn(8, receive_with_little, NULL);
	struct pair l = pair_open(p, 8, 0);
	unsigned char *buf = malloc(LONG);

	CHECK(buf);
	msg_fill(buf, LONG, 3);
	CHECK_EQ(sci_tsend(l.to, 1, 1, buf, LONG), 0);
	free(buf);
	pair_close(&l);
	peer_join(p);
}
