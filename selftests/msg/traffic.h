/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: traffic, checked byte by byte
 *
 * A flow is one direction of one stream between two endpoints: all untagged
 * messages of the pair, or those of one context.  Length, tag and bytes of its
 * n-th message follow from (seed, source, destination, stream, n), so both ends
 * know them.  The receiver checks every byte, the order, and that each message
 * comes once.
 *
 *	struct traffic t = { .ep = ep };
 *
 *	traffic_flow(&t, (struct flow){ .peer = to, .source = 4, .dest = 8,
 *					.sends = true, .ways = WAY_ALL,
 *					.limit = 100 });
 *	traffic_run(&t);
 *
 * A flow has up to FLOW_WINDOW requests under way.  traffic_step() waits for a
 * request of any flow, checks it, and posts the next one.
 */
#ifndef SELFTESTS_MSG_TRAFFIC_H
#define SELFTESTS_MSG_TRAFFIC_H

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "selftests/msg/peers.h"

/* Tests do less under the sanitizers, which make everything slower. */
#define TRAFFIC_SLOW	(TEST_TSAN ? 8u : TEST_ASAN ? 4u : 1u)

/* A peer's death is reported within a second, later on a busy machine. */
#define NOTICE_MS	(TEST_TSAN || TEST_ASAN ? 10000u : 5000u)

/* ---- random numbers ---- */

static inline uint64_t mix64(uint64_t z)
{
	z += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* Return a random number from 0 to @n - 1. */
static inline uint64_t draw(uint64_t *state, uint64_t n)
{
	*state += 0x9e3779b97f4a7c15u;
	return mix64(*state) % n;
}

/* SCI_TEST_SEED repeats the choices of a run that printed this seed. */
static inline uint64_t traffic_seed(void)
{
	const char *s = getenv("SCI_TEST_SEED");

	return s ? strtoull(s, NULL, 0) :
		   mix64(test_now_ms() ^ (uint64_t)getpid() << 40);
}

/* ---- ways a message can go ---- */

enum way {
	WAY_SHORT,
	WAY_LINES,
	WAY_EAGER,
	WAY_RENDEZVOUS,
	WAY_ZCOPY,
	WAY_SINGLE_COPY,
	WAYS
};

#define WAY_ALL		((1u << WAYS) - 1)
#define WAY_EAGER_MAX	8192u		/* set by traffic_params() */
#define WAY_LONG_MAX	(TRAFFIC_SLOW > 1 ? 80000u : 200000u)

struct way_lengths {
	const char *name;
	size_t min, max;
};

static inline struct way_lengths way_lengths(enum way way)
{
	static const struct way_lengths lengths[WAYS] = {
		[WAY_SHORT] = { "short", 0, SCI_TAGGED_SHORT_MAX },
		[WAY_LINES] = { "lines", SCI_SHORT_MAX + 1, 1000 },
		[WAY_EAGER] = { "eager", SCI_SHORT_MAX + 1, WAY_EAGER_MAX },
		[WAY_RENDEZVOUS] = {
			"rendezvous", WAY_EAGER_MAX + 1, WAY_LONG_MAX
		},
		[WAY_ZCOPY] = {
			"zero-copy", WAY_EAGER_MAX + 1, WAY_LONG_MAX
		},
		[WAY_SINGLE_COPY] = {
			"single copy", WAY_EAGER_MAX + 1, WAY_LONG_MAX
		},
	};

	return lengths[way];
}

/* Set parameters so that each of @ways uses the protocol that it is named after. */
static inline void traffic_params(struct sci_ep *ep, unsigned int ways)
{
	const struct {
		enum sci_param param;
		uint64_t value;
	} set[] = {
		{ SCI_PARAM_LINES_MAX, SCI_SHORT_MAX },
		{ SCI_PARAM_EAGER_MAX, WAY_EAGER_MAX },
		{ SCI_PARAM_EAGER_RING, 65536 },
		{ SCI_PARAM_BLOCK, 8192 },
		{ SCI_PARAM_XFER_RING, 65536 },
		{ SCI_PARAM_ZCOPY_MIN, WAY_EAGER_MAX + 1 },
		{ SCI_PARAM_SINGLE_COPY_MIN, ways & 1u << WAY_SINGLE_COPY ?
		  WAY_EAGER_MAX + 1 : UINT64_MAX },
		{ SCI_PARAM_ATTACH_AFTER, ways & 1u << WAY_LINES ?
		  ways == 1u << WAY_LINES ? UINT64_MAX : 10000 : 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(set); i++)
		CHECK_EQ(sci_ep_set(ep, set[i].param, set[i].value), 0);
}

/* ---- one message ---- */

#define FLOW_WINDOW	4u
#define GUARD_TAIL	64u

/*
 * struct flow - one direction of one stream
 * @stream: 0: untagged, else tagged in context @stream - 1
 * @ways: bits of enum way, from which lengths are drawn
 * @may_die: -ECONNRESET ends the flow instead of failing the test
 *
 * The caller sets the members above @next. The other members are private.
 */
struct flow {
	struct sci_peer *peer;
	uint64_t seed;
	uint32_t source, dest;
	uint32_t stream;
	unsigned int ways;
	uint64_t limit;
	bool sends;
	bool may_die;

	uint64_t next;			/* number of the next message to post */
	uint64_t done;
	uint64_t bytes;
	int error;			/* why the flow has ended */
	struct flow_slot {
		unsigned char *mem;
		void *exported;		/* kept until flow_free() */
		uint64_t seq;
		size_t len;
		size_t size;		/* of the buffer */
		struct sci_req *req;
	} slot[FLOW_WINDOW];
};

struct plan {
	uint64_t key;
	enum way way;
	size_t len;
	uint64_t tag;
};

static inline enum way plan_way(unsigned int ways, uint64_t *state)
{
	unsigned int n = (unsigned int)draw(state, __builtin_popcount(ways));

	for (unsigned int w = 0; w < WAYS; w++)
		if (ways & 1u << w && !n--)
			return w;
	FAIL("no way");
}

/* Favour the ends of the range and lengths beside multiples of 64 and 4096. */
static inline size_t plan_length(struct way_lengths l, uint64_t *state)
{
	size_t span = l.max - l.min + 1, unit, len;

	switch (draw(state, 8)) {
	case 0:
		return l.min;
	case 1:
		return l.max;
	case 2:
	case 3:
		unit = draw(state, 2) ? 64 : 4096;
		len = l.min + draw(state, span);
		len = len / unit * unit + draw(state, 3) - 1;
		return len >= l.min && len <= l.max ? len : l.min;
	default:
		return l.min + draw(state, span);
	}
}

static inline struct plan flow_plan(const struct flow *f, uint64_t seq)
{
	uint64_t state;
	struct plan p;

	p.key = mix64(f->seed ^ mix64((uint64_t)f->source << 32 | f->dest));
	p.key = mix64(p.key ^ mix64((uint64_t)f->stream << 40 ^ seq));
	state = p.key;
	p.way = plan_way(f->ways, &state);
	p.len = plan_length(way_lengths(p.way), &state);
	p.tag = draw(&state, UINT64_MAX);
	return p;
}

/* The first word of a message names it; the other words depend on its key. */
static inline uint64_t message_name(const struct flow *f, uint64_t seq)
{
	return (uint64_t)f->source << 48 | (uint64_t)f->stream << 40 | seq;
}

static inline void message_write(void *buf, size_t len, uint64_t name,
				 uint64_t key)
{
	unsigned char *c = buf;

	for (size_t off = 0; off < len; off += 8) {
		uint64_t word = off ? mix64(key + off) : name;

		memcpy(c + off, &word, len - off < 8 ? len - off : 8);
	}
}

/* Return the offset of the first word that differs, or -1. */
static inline long long message_differs(const void *buf, size_t len,
					uint64_t name, uint64_t key)
{
	const unsigned char *c = buf;

	for (size_t off = 0; off < len; off += 8) {
		uint64_t word = off ? mix64(key + off) : name;

		if (memcmp(c + off, &word, len - off < 8 ? len - off : 8))
			return (long long)off;
	}
	return -1;
}

/* ---- flows ---- */

#define TRAFFIC_FLOWS	64u

struct traffic {
	struct sci_ep *ep;
	unsigned int n;
	unsigned int turn;		/* rotates the flow that traffic_step() starts with */
	struct flow flow[TRAFFIC_FLOWS];
};

/* Allocate @size bytes in @s, exported if the way is zero-copy. */
static inline unsigned char *slot_memory(struct sci_ep *ep,
					 struct flow_slot *s,
					 const struct plan *p, size_t size)
{
	if (p->way != WAY_ZCOPY)
		return s->mem = malloc(size ? size : 1);
	if (!s->exported)
		CHECK_EQ(sci_buf_alloc(ep, WAY_LONG_MAX + 256 + GUARD_TAIL,
				       &s->exported), 0);
	/* at any alignment */
	return s->mem = (unsigned char *)s->exported + p->key % 192;
}

static inline void slot_release(struct flow_slot *s)
{
	unsigned char *exported = s->exported;

	if (!exported || s->mem < exported ||
	    s->mem > exported + WAY_LONG_MAX + 256)
		free(s->mem);
	s->mem = NULL;
}

/* Cut @buf into three pieces, which may be empty. */
static inline size_t cut(struct iovec *iov, void *buf, size_t len,
			 uint64_t key)
{
	size_t a = len ? key % (len + 1) : 0;
	size_t b = len > a ? (key >> 20) % (len - a + 1) : 0;

	iov[0] = (struct iovec){ buf, a };
	iov[1] = (struct iovec){ (char *)buf + a, b };
	iov[2] = (struct iovec){ (char *)buf + a + b, len - a - b };
	return 3;
}

static inline int flow_send(struct flow *f, struct flow_slot *s,
			    const struct plan *p)
{
	unsigned int flags = p->key >> 50 & 7 ? 0 : SCI_SEND_SYNC;
	struct iovec iov[3];
	size_t n;

	if (p->key >> 56 & 3 && !flags) {
		if (!f->stream)
			return sci_isend(f->peer, s->mem, p->len, &s->req);
		return sci_itsend(f->peer, f->stream - 1, p->tag, s->mem,
				  p->len, &s->req);
	}
	n = cut(iov, s->mem, p->len, p->key);
	if (!f->stream)
		return sci_isendv(f->peer, iov, n, flags, &s->req);
	return sci_itsendv(f->peer, f->stream - 1, p->tag, iov, n, flags,
			   &s->req);
}

static inline int flow_recv(struct sci_ep *ep, struct flow *f,
			    struct flow_slot *s, const struct plan *p)
{
	/* both the exact tag and any tag match the next message of the context */
	uint64_t ignore = p->key >> 52 & 1 ? ~0ull : 0;
	struct iovec iov[3];
	size_t n;

	if (p->key >> 53 & 3) {
		if (!f->stream)
			return sci_irecv(ep, f->peer, s->mem, s->size,
					 &s->req);
		return sci_itrecv(ep, f->peer, f->stream - 1, p->tag, ignore,
				  s->mem, s->size, &s->req);
	}
	n = cut(iov, s->mem, s->size, p->key);
	if (!f->stream)
		return sci_irecvv(ep, f->peer, iov, n, &s->req);
	return sci_itrecvv(ep, f->peer, f->stream - 1, p->tag, ignore, iov, n,
			   &s->req);
}

static inline void flow_end(struct flow *f, int error)
{
	if (error != -ECONNRESET || !f->may_die)
		FAIL("message %#llx (%s) %s: %s", (unsigned long long)
		     message_name(f, f->done),
		     way_lengths(flow_plan(f, f->done).way).name,
		     f->sends ? "to be sent" : "to be received",
		     strerror(-error));
	f->error = error;
}

static inline void flow_post(struct sci_ep *ep, struct flow *f,
			     struct flow_slot *s)
{
	struct plan p = flow_plan(f, f->next);
	int ret;

	s->seq = f->next++;
	s->len = p.len;
	s->size = p.len + (f->sends ? 0 : p.key >> 48 & (GUARD_TAIL - 1));
	slot_memory(ep, s, &p, s->size);
	if (f->sends) {
		message_write(s->mem, s->len, message_name(f, s->seq), p.key);
		ret = flow_send(f, s, &p);
	} else {
		memset(s->mem, GUARD, s->size);
		ret = flow_recv(ep, f, s, &p);
	}
	if (!ret)
		return;
	s->req = NULL;
	slot_release(s);
	flow_end(f, ret);
}

/* Fail unless @s holds the message of @p, unchanged. */
static inline void flow_check(const struct flow *f, const struct flow_slot *s,
			      const struct plan *p, const struct sci_status *st)
{
	uint64_t name = message_name(f, s->seq), first = 0;
	long long at;

	if (st->len != p->len)
		FAIL("message %#llx (%s): %zu bytes long, not %zu",
		     (unsigned long long)name, way_lengths(p->way).name,
		     st->len, p->len);
	if (f->stream) {
		CHECK_EQ(st->tag, p->tag);
		CHECK_EQ(st->context, f->stream - 1);
	}
	at = message_differs(s->mem, p->len, name, p->key);
	if (at < 0)
		return;
	memcpy(&first, s->mem, p->len < 8 ? p->len : 8);
	FAIL("message %#llx of %zu bytes (%s): wrong at %lld; it begins as "
	     "%#llx", (unsigned long long)name, p->len,
	     way_lengths(p->way).name, at, (unsigned long long)first);
}

/*
 * Return true if this receive got a later message of a dead peer. Messages that
 * had not arrived whole when the peer died are missing.
 */
static inline bool flow_skipped(const struct flow *f, struct flow_slot *s,
				const struct sci_status *st)
{
	if (!f->may_die || !sci_peer_state(f->peer))
		return false;
	if (st->error)
		return st->error == -EMSGSIZE;
	for (uint64_t seq = s->seq + 1; seq < s->seq + 64; seq++) {
		struct plan p = flow_plan(f, seq);

		if (p.len == st->len && (!f->stream || p.tag == st->tag) &&
		    message_differs(s->mem, p.len, message_name(f, seq),
				    p.key) < 0) {
			s->len = p.len;
			return true;
		}
	}
	return false;
}

static inline void flow_got(struct flow *f, struct flow_slot *s,
			    const struct sci_status *st)
{
	struct plan p = flow_plan(f, s->seq);

	CHECK(st->peer == f->peer);
	if (!flow_skipped(f, s, st))
		flow_check(f, s, &p, st);
	for (size_t i = s->len; i < s->size; i++)
		CHECK_EQ(s->mem[i], GUARD);
}

static inline void flow_complete(struct flow *f, struct flow_slot *s,
				 const struct sci_status *st)
{
	if (st->error && !f->sends && flow_skipped(f, s, st)) {
		/* the buffer was for a lost message */
	} else if (st->error == -EMSGSIZE) {
		FAIL("message %#llx: %zu bytes came, %zu were due",
		     (unsigned long long)message_name(f, s->seq), st->len,
		     s->len);
	} else if (st->error) {
		flow_end(f, st->error);
	} else {
		if (!f->sends)
			flow_got(f, s, st);
		f->done++;
		f->bytes += s->len;
	}
	slot_release(s);
}

static inline void flow_fill(struct sci_ep *ep, struct flow *f)
{
	for (unsigned int i = 0; i < FLOW_WINDOW; i++) {
		if (f->error || f->next >= f->limit)
			return;
		if (!f->slot[i].req)
			flow_post(ep, f, &f->slot[i]);
	}
}

static inline bool flow_idle(const struct flow *f)
{
	for (unsigned int i = 0; i < FLOW_WINDOW; i++)
		if (f->slot[i].req)
			return false;
	return true;
}

/* Call this before the peer is disconnected, when no request is under way. */
static inline void flow_free(struct sci_ep *ep, struct flow *f)
{
	CHECK(flow_idle(f));
	for (unsigned int i = 0; i < FLOW_WINDOW; i++) {
		if (f->slot[i].exported)
			CHECK_EQ(sci_buf_free(ep, f->slot[i].exported), 0);
		f->slot[i].exported = NULL;
	}
}

/* ---- all flows ---- */

static inline struct flow *traffic_flow(struct traffic *t, struct flow f)
{
	CHECK(t->n < TRAFFIC_FLOWS);
	t->flow[t->n] = f;
	return &t->flow[t->n++];
}

static inline bool traffic_idle(const struct traffic *t)
{
	for (unsigned int i = 0; i < t->n; i++)
		if (!flow_idle(&t->flow[i]))
			return false;
	return true;
}

/*
 * traffic_step() - wait for a request, check it, post the next
 *
 * Return: false if no request completed in time, or none is under way.
 */
static inline bool traffic_step(struct traffic *t, int timeout)
{
	struct sci_req *req[TRAFFIC_FLOWS * FLOW_WINDOW];
	struct flow_slot *slot[TRAFFIC_FLOWS * FLOW_WINDOW];
	struct flow *flow[TRAFFIC_FLOWS * FLOW_WINDOW];
	struct sci_status st = { .error = 1 };
	size_t n = 0, index = SIZE_MAX;
	int ret;

	t->turn++;
	for (unsigned int k = 0; k < t->n; k++) {
		struct flow *f = &t->flow[(k + t->turn) % t->n];

		flow_fill(t->ep, f);
		for (unsigned int i = 0; i < FLOW_WINDOW; i++) {
			if (!f->slot[i].req)
				continue;
			flow[n] = f;
			slot[n] = &f->slot[i];
			req[n++] = f->slot[i].req;
		}
	}
	if (!n)
		return false;
	ret = sci_waitany(req, n, timeout, &index, &st);
	if (ret == -ETIMEDOUT || (ret == -EAGAIN && !timeout))
		return false;
	CHECK(index < n);
	CHECK(!req[index]);
	CHECK_EQ(ret, st.error);
	slot[index]->req = NULL;
	flow_complete(flow[index], slot[index], &st);
	return true;
}

/* Run until every flow has reached its limit or has ended. */
static inline void traffic_run(struct traffic *t)
{
	while (traffic_step(t, TEST_WAIT_MS))
		;
	for (unsigned int i = 0; i < t->n; i++) {
		struct flow *f = &t->flow[i];

		if (f->error || f->done == f->limit)
			continue;
		FAIL("hangs: %s %#llx of %llu, stream %u", f->sends ?
		     "sending" : "receiving", (unsigned long long)
		     message_name(f, f->done), (unsigned long long)f->limit,
		     f->stream);
	}
}

static inline void traffic_free(struct traffic *t)
{
	for (unsigned int i = 0; i < t->n; i++)
		flow_free(t->ep, &t->flow[i]);
	t->n = 0;
}

static inline uint64_t traffic_done(const struct traffic *t)
{
	uint64_t done = 0;

	for (unsigned int i = 0; i < t->n; i++)
		done += t->flow[i].done;
	return done;
}

/* ---- meeting ---- */

/* Make progress until @cond: peers may need this endpoint meanwhile. */
#define PROGRESS_UNTIL(ep, cond, ms)					\
	WAIT_UNTIL((test_progress(ep), (cond)), ms)

static inline void test_progress(struct sci_ep *ep)
{
	int ret = sci_progress(ep);

	if (ret < 0)
		FAIL("sci_progress: %s", strerror(-ret));
}

/* A barrier of @n processes in shared memory. Waiting processes make progress. */
struct meeting {
	_Atomic unsigned int here;
};

static inline void meet(struct sci_ep *ep, struct meeting *m, unsigned int n)
{
	unsigned int mine = atomic_fetch_add(&m->here, 1);
	unsigned int all = (mine / n + 1) * n;

	PROGRESS_UNTIL(ep, atomic_load(&m->here) >= all, 2 * TEST_WAIT_MS);
}

#endif
