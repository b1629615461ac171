// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Atomics, writes with a signal, and flushes: with coherent imports, and as if
 * imports were not coherent, where the owner of a word executes the atomics.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/msg/endpoint.h"
#include "selftests/harness.h"
#include "selftests/msg/peers.h"

#define SLOW	(TEST_ASAN || TEST_TSAN)
#define PAGES	(16u * 4096)
#define ADDERS	3u
#define ADDS	test_calls(SLOW ? 500 : 5000)

/* ---- endpoints ---- */

/* Connect to @node. With @asks, the owner of the memory executes all atomics. */
static struct pair pair_of(struct peer *proc, unsigned int node, bool asks)
{
	struct pair l = pair_open(proc, node, 0);

	if (asks)
		l.to->may_read = false;
	return l;
}

static void own(struct pair *l, void **buf)
{
	struct sci_key key;

	CHECK_EQ(sci_buf_alloc(l->ep, PAGES, buf), 0);
	CHECK_EQ(sci_buf_key(l->ep, *buf, PAGES, &key), 0);
	CHECK_EQ(sci_send(l->to, &key, sizeof(key)), 0);
}

static struct sci_key key_of(struct pair *l)
{
	struct sci_key key;

	CHECK_EQ(sci_recv(l->ep, l->to, &key, sizeof(key), NULL), 0);
	return key;
}

static void owner(struct peer *self, void *arg)
{
	struct pair l;
	void *mem;

	if (arg)
		setenv("SCI_FAULT", arg, 1);
	l = pair_open(self, 4, 0);
	own(&l, &mem);
	pair_close(&l);
}

/* ---- results ---- */

#define I32(x)	((uint64_t)(uint32_t)(int32_t)(x))
#define I64(x)	((uint64_t)(int64_t)(x))

static uint64_t f32(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, 4);
	return bits;
}

static uint64_t f64(double x)
{
	uint64_t bits;

	memcpy(&bits, &x, 8);
	return bits;
}

struct step {
	enum sci_rmw_op op;
	enum sci_rmw_type type;
	uint64_t operand, compare, after;
};

#define STEP(o, t, ...)	{ SCI_RMW_##o, SCI_RMW_##t, __VA_ARGS__ }

/* Steps on one word, which is 0 at first and after each change of type. */
static const struct step steps[] = {
	STEP(ADD, INT32, I32(5), 0, I32(5)),
	STEP(ADD, INT32, I32(-7), 0, I32(-2)),
	STEP(READ, INT32, 99, 99, I32(-2)),
	STEP(MAX, INT32, I32(-3), 0, I32(-2)),
	STEP(MIN, INT32, I32(-3), 0, I32(-3)),
	STEP(MAX, INT32, I32(4), 0, I32(4)),
	STEP(SWAP, INT32, I32(INT32_MAX), 0, I32(INT32_MAX)),
	STEP(ADD, INT32, I32(1), 0, I32(INT32_MIN)),
	STEP(COMPARE_SWAP, INT32, I32(8), I32(1), I32(INT32_MIN)),
	/* the upper halves are ignored */
	STEP(COMPARE_SWAP, INT32, 0x100000008, 0x180000000, I32(8)),
	STEP(OR, UINT32, 0xf0, 0, 0xf0),
	STEP(AND, UINT32, 0x3c, 0, 0x30),
	STEP(XOR, UINT32, 0xffffffff, 0, 0xffffffcf),
	STEP(MIN, UINT32, 1, 0, 1),
	STEP(MAX, UINT32, 0x80000000, 0, 0x80000000),
	STEP(ADD, UINT32, 0x80000001, 0, 1),
	STEP(ADD, INT64, I64(-5), 0, I64(-5)),
	STEP(MIN, INT64, I64(3), 0, I64(-5)),
	STEP(MAX, INT64, I64(3), 0, 3),
	STEP(SWAP, INT64, I64(INT64_MAX), 0, I64(INT64_MAX)),
	STEP(ADD, INT64, 1, 0, I64(INT64_MIN)),
	STEP(OR, UINT64, 0xf00000000f, 0, 0xf00000000f),
	STEP(AND, UINT64, 0xc00000000c, 0, 0xc00000000c),
	STEP(XOR, UINT64, UINT64_MAX, 0, ~0xc00000000cull),
	STEP(COMPARE_SWAP, UINT64, 7, 0xc00000000c, ~0xc00000000cull),
	STEP(COMPARE_SWAP, UINT64, 7, ~0xc00000000cull, 7),
	STEP(MAX, UINT64, UINT64_MAX, 0, UINT64_MAX),
	STEP(MIN, UINT64, 9, 0, 9),
	STEP(READ, UINT64, 0, 0, 9),
};

static unsigned int size_of(enum sci_rmw_type type)
{
	return type == SCI_RMW_INT32 || type == SCI_RMW_UINT32 ||
	       type == SCI_RMW_FLOAT ? 4 : 8;
}

/* The place of a word: in a peer's memory, or in this process (@own). */
struct place {
	struct pair *l;
	struct sci_key key;
	uint64_t offset;
	unsigned char *own;
};

static void apply(const struct place *at, const struct sci_rmw *a, void *before)
{
	if (at->own)
		CHECK_EQ(sci_rmw_apply(at->own + at->offset, a, before), 0);
	else
		CHECK_EQ(sci_rmw(at->l->to, &at->key, at->offset, a, before),
			 0);
}

static uint64_t value_at(const struct place *at, enum sci_rmw_type type)
{
	const struct sci_rmw read = { .op = SCI_RMW_READ, .type = type };
	uint64_t value = 0;

	apply(at, &read, &value);
	return value;
}

static void check_step(const struct place *at, const struct step *s, uint64_t was)
{
	const struct sci_rmw a = { s->op, s->type, s->operand, s->compare };
	unsigned int size = size_of(s->type);
	unsigned char before[16];

	memset(before, 0xa5, sizeof(before));
	apply(at, &a, before);
	CHECK(!memcmp(before, &was, size));
	for (unsigned int i = size; i < sizeof(before); i++)
		CHECK_EQ(before[i], 0xa5);
	CHECK_EQ(value_at(at, s->type), s->after);
}

static void check_steps(struct place at)
{
	const struct sci_rmw zero = { SCI_RMW_SWAP, SCI_RMW_UINT64, 0, 0 };
	uint64_t was = 0;

	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		if (i && steps[i].type != steps[i - 1].type) {
			was = 0;
			apply(&at, &zero, NULL);
		}
		check_step(&at, &steps[i], was);
		was = steps[i].after;
	}
}

static void check_reals(struct place at)
{
	const struct step reals[] = {
		STEP(SWAP, FLOAT, f32(1.5f), 0, f32(1.5f)),
		STEP(ADD, FLOAT, f32(2.25f), 0, f32(3.75f)),
		STEP(MIN, FLOAT, f32(-1), 0, f32(-1)),
		STEP(MAX, FLOAT, f32(8), 0, f32(8)),
		STEP(COMPARE_SWAP, FLOAT, f32(9), f32(8), f32(9)),
		STEP(READ, FLOAT, 0, 0, f32(9)),
		STEP(SWAP, DOUBLE, f64(1e300), 0, f64(1e300)),
		STEP(ADD, DOUBLE, f64(1e300), 0, f64(2e300)),
		STEP(MIN, DOUBLE, f64(-4), 0, f64(-4)),
		STEP(MAX, DOUBLE, f64(-5), 0, f64(-4)),
		STEP(COMPARE_SWAP, DOUBLE, f64(1), f64(-5), f64(-4)),
	};
	uint64_t was = 0;

	for (size_t i = 0; i < ARRAY_LEN(reals); i++) {
		if (i && reals[i].type != reals[i - 1].type) {
			const struct sci_rmw zero = { .op = SCI_RMW_SWAP,
				.type = SCI_RMW_UINT64 };

			apply(&at, &zero, NULL);
			was = 0;
		}
		check_step(&at, &reals[i], was);
		was = reals[i].after;
	}
}

static void check_results(bool asks)
{
	struct peer *p = peer_spawn(8, owner, NULL);
	struct pair l = pair_of(p, 8, asks);
	struct place at = { .l = &l, .key = key_of(&l) };

	check_steps(at);
	at.offset = 64;
	check_reals(at);
	/* a four-byte atomic on the upper half of an eight-byte word */
	at.offset = 132;
	check_step(&at, &(struct step)STEP(ADD, UINT32, UINT32_MAX, 0, UINT32_MAX), 0);
	at.offset = 128;
	CHECK_EQ(value_at(&at, SCI_RMW_UINT64), (uint64_t)UINT32_MAX << 32);
	at.offset = PAGES - 8;
	check_step(&at, &(struct step)STEP(ADD, UINT64, 3, 0, 3), 0);
	CHECK(test_ep_stats(l.ep).atomics > 2 * ARRAY_LEN(steps));
	CHECK_EQ(!!test_ep_stats(l.ep).handled, asks);
	pair_close(&l);
	peer_join(p);
}

TEST(results)
{
	check_results(false);
}

TEST(results_by_the_owner)
{
	check_results(true);
}

TEST(results_in_memory_of_ones_own)
{
	static _Alignas(8) unsigned char mem[128];
	struct place at = { .own = mem };

	check_steps(at);
	at.offset = 64;
	check_reals(at);
}

/* ---- many at once ---- */

struct job {
	struct sci_key key;
	bool asks;
};

static const struct sci_rmw one = { SCI_RMW_ADD, SCI_RMW_UINT64, 1, 0 };
static const struct sci_rmw one_real = {
	SCI_RMW_ADD, SCI_RMW_DOUBLE, 0x3ff0000000000000, 0
};

/* Add 1 to word 3 by a read and a write, under a lock in word 2. */
static void locked_add(struct sci_peer *to, const struct sci_key *key)
{
	const struct sci_rmw take = { SCI_RMW_COMPARE_SWAP,
		SCI_RMW_UINT64, 1, 0 };
	const struct sci_rmw give = { SCI_RMW_SWAP, SCI_RMW_UINT64, 0, 0 };
	uint64_t held, value;

	do {
		CHECK_EQ(sci_rmw(to, key, 16, &take, &held), 0);
	} while (held);
	CHECK_EQ(sci_read(to, key, 24, &value, 8), 0);
	value++;
	CHECK_EQ(sci_write(to, key, 24, &value, 8), 0);
	CHECK_EQ(sci_rmw(to, key, 16, &give, NULL), 0);
}

static void add_some(struct sci_peer *to, const struct sci_key *key)
{
	struct sci_ep *ep = sci_peer_ep(to);
	struct sci_req *req;
	int ret;

	for (unsigned int i = 0; i < ADDS; i++) {
		/* an atomic without a request, then one with a request */
		while ((ret = sci_irmw(to, key, 0, &one, NULL, NULL)) == -EAGAIN)
			sci_progress(ep);
		CHECK_EQ(ret, 0);
		if (i % 8)
			continue;
		CHECK_EQ(sci_irmw(to, key, 8, &one_real, NULL, &req), 0);
		CHECK_EQ(test_wait(req, NULL), 0);
		locked_add(to, key);
	}
	CHECK_EQ(sci_flush(to, TEST_WAIT_MS), 0);
}

static void adder(struct peer *self, void *arg)
{
	struct pair l = pair_of(self, 4, arg);
	struct sci_key key = key_of(&l);

	add_some(l.to, &key);
	pair_close(&l);
}

struct alone {
	uint64_t *word;
};

static void *add_here(void *arg)
{
	struct alone *a = arg;

	for (unsigned int i = 0; i < ADDS; i++)
		CHECK_EQ(sci_rmw_apply(a->word, &one, NULL), 0);
	return NULL;
}

static void check_many(bool asks)
{
	struct peer *p[ADDERS];
	struct sci_peer *from[ADDERS];
	struct alone here;
	struct sci_key key;
	struct sci_ep *ep;
	pthread_t thread;
	uint64_t *word;
	void *mem;

	for (unsigned int i = 0; i < ADDERS; i++)
		p[i] = peer_spawn(8 + 4 * i, adder, asks ? (void *)&one : NULL);
	ep = test_ep_open(TEST_ID, 0);
	CHECK_EQ(sci_buf_alloc(ep, PAGES, &mem), 0);
	CHECK_EQ(sci_buf_key(ep, mem, PAGES, &key), 0);
	word = mem;
	here.word = word;
	for (unsigned int i = 0; i < ADDERS; i++)
		from[i] = test_ep_accept(ep);
	CHECK_EQ(pthread_create(&thread, NULL, add_here, &here), 0);
	for (unsigned int i = 0; i < ADDERS; i++)
		CHECK_EQ(sci_send(from[i], &key, sizeof(key)), 0);
	for (unsigned int i = 0; i < ADDERS; i++) {
		struct pair l = { .ep = ep, .to = from[i] };

		pair_meet(&l);
	}
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(word[0], (ADDERS + 1) * ADDS);
	CHECK_EQ(word[1], f64((double)(uint64_t)(ADDERS * ((ADDS + 7) / 8))));
	CHECK_EQ(word[2], 0);
	CHECK_EQ(word[3], ADDERS * ((ADDS + 7) / 8));
	CHECK_EQ(sci_ep_close(ep), 0);
	for (unsigned int i = 0; i < ADDERS; i++)
		peer_join(p[i]);
}

TEST(many_at_once)
{
	check_many(false);
}

TEST(many_at_once_by_the_owner)
{
	check_many(true);
}

/* More requests than the owner answers at a time, while nothing takes the answers. */
TEST(more_than_there_is_room_for)
{
	struct peer *p = peer_spawn(8, owner, NULL);
	struct pair l = pair_of(p, 8, true);
	struct sci_key key = key_of(&l);
	unsigned int n = (SLOW ? 2 : 4) * SCI_DETACHED_MAX;
	struct sci_req **reqs = calloc(n, sizeof(struct sci_req *));
	uint64_t *before = calloc(n, 8);
	uint64_t sum = 0;

	CHECK(reqs && before);
	for (unsigned int i = 0; i < n; i++)
		CHECK_EQ(sci_irmw(l.to, &key, 0, &one, &before[i], &reqs[i]), 0);
	CHECK_EQ(sci_waitall(reqs, n, TEST_WAIT_MS, NULL), 0);
	for (unsigned int i = 0; i < n; i++)
		sum += before[i];
	/* each value occurs once */
	CHECK_EQ(sum, (uint64_t)n * (n - 1) / 2);
	free(reqs);
	free(before);
	pair_close(&l);
	peer_join(p);
}

/* ---- writes with a signal ---- */

#define BLOCKS_SENT	(SLOW ? 50u : 300u)
#define WORD_AT		(PAGES - 8)

struct rounds {
	const char *fault;
	bool asks;
};

static size_t block_len(unsigned int i)
{
	return i * 37 % 9000 + 1;
}

/* Wait for the word alone: then the bytes must have arrived. */
static void signalled(struct peer *self, void *arg)
{
	const struct rounds *r = arg;
	struct pair l;
	unsigned char *buf;
	uint64_t *word;
	void *mem;

	if (r->fault)
		setenv("SCI_FAULT", r->fault, 1);
	l = pair_open(self, 4, 0);
	own(&l, &mem);
	buf = mem;
	word = (uint64_t *)(buf + WORD_AT);
	for (unsigned int i = 0; i < BLOCKS_SENT; i++) {
		WAIT_UNTIL((sci_progress(l.ep), sci_load_acquire(word) == i + 1),
			   TEST_WAIT_MS);
		CHECK_BYTES(buf, block_len(i), i);
		CHECK_EQ(sci_send(l.to, NULL, 0), 0);
	}
	pair_close(&l);
}

static void check_signals(const struct rounds *r)
{
	struct peer *p = peer_spawn(8, signalled, (void *)r);
	unsigned char buf[10000];
	struct sci_write_signal s;
	struct pair l;
	struct sci_key key;

	if (r->fault)
		setenv("SCI_FAULT", r->fault, 1);
	l = pair_of(p, 8, r->asks);
	key = key_of(&l);
	s = (struct sci_write_signal){ .key = key, .offset = WORD_AT, .rmw = one };
	for (unsigned int i = 0; i < BLOCKS_SENT; i++) {
		struct iovec iov = { buf, block_len(i) };
		struct sci_req *req = NULL;

		msg_fill(buf, iov.iov_len, i);
		/* add 1 or store the number, with a request or without */
		if (i % 3 == 2)
			s.rmw = (struct sci_rmw){ SCI_RMW_SWAP,
				SCI_RMW_UINT64, i + 1, 0 };
		else
			s.rmw = one;
		CHECK_EQ(sci_iwrite_signal(l.to, &key, 0, &iov, 1, &s,
					   i & 1 ? NULL : &req), 0);
		if (req)
			CHECK_EQ(test_wait(req, NULL), 0);
		CHECK_EQ(sci_recv(l.ep, l.to, NULL, 0, NULL), 0);
		CHECK_EQ(sci_flush(l.to, TEST_WAIT_MS), 0);
	}
	CHECK_EQ(test_ep_stats(l.ep).writes, BLOCKS_SENT);
	CHECK_EQ(test_ep_stats(l.ep).atomics, BLOCKS_SENT);
	pair_close(&l);
	peer_join(p);
}

TEST(signals)
{
	check_signals(&(struct rounds){ NULL, false });
}

TEST(signals_by_the_owner)
{
	check_signals(&(struct rounds){ NULL, true });
}

TEST(signals_and_losses)
{
	check_signals(&(struct rounds){ "loss=0.05,reorder=0.1,seed=2", false });
	check_signals(&(struct rounds){ "loss=0.05,reorder=0.1,seed=3", true });
}

/* ---- flushes ---- */

static void check_written(struct peer *self, void *arg)
{
	struct pair l = pair_open(self, 4, 0);
	void *mem;

	(void)arg;
	own(&l, &mem);
	/* the sender has flushed: all bytes are here */
	CHECK_EQ(sci_recv(l.ep, l.to, NULL, 0, NULL), 0);
	CHECK_BYTES((unsigned char *)mem, PAGES, 5);
	CHECK_EQ(sci_buf_free(l.ep, mem), 0);
	CHECK_EQ(sci_send(l.to, NULL, 0), 0);
	pair_close(&l);
}

static int write_and_flush(struct sci_peer *to, const struct sci_key *key,
			   const struct iovec *iov)
{
	CHECK_EQ(sci_iwritev(to, key, 0, iov, 1, NULL), 0);
	return sci_flush(to, TEST_WAIT_MS);
}

TEST(flush)
{
	struct peer *p = peer_spawn(8, check_written, NULL);
	struct pair l = pair_of(p, 8, false);
	struct sci_key key = key_of(&l);
	unsigned char *buf = malloc(PAGES);
	struct iovec iov;
	int ret;

	CHECK(buf);
	msg_fill(buf, PAGES, 5);
	CHECK_EQ(sci_flush(l.to, 0), 0);
	for (unsigned int i = 0; i < PAGES / 64; i++) {
		iov = (struct iovec){ buf + i * 64, 64 };
		CHECK_EQ(sci_iwritev(l.to, &key, i * 64, &iov, 1, NULL), 0);
	}
	CHECK_EQ(sci_flush(l.to, TEST_WAIT_MS), 0);
	memset(buf, 0, PAGES);
	iov = (struct iovec){ buf, PAGES };
	CHECK_EQ(sci_ireadv(l.to, &key, 0, &iov, 1, NULL), 0);
	CHECK_EQ(sci_flush(l.to, TEST_WAIT_MS), 0);
	CHECK_BYTES(buf, PAGES, 5);
	CHECK_EQ(sci_send(l.to, NULL, 0), 0);
	CHECK_EQ(sci_recv(l.ep, l.to, NULL, 0, NULL), 0);
	/* the owner has freed the memory: one flush reports it */
	iov = (struct iovec){ buf, 64 };
	WAIT_UNTIL((ret = write_and_flush(l.to, &key, &iov)) != 0, TEST_WAIT_MS);
	CHECK_EQ(ret, -ENOENT);
	CHECK_EQ(sci_flush(l.to, TEST_WAIT_MS), 0);
	free(buf);
	pair_close(&l);
	peer_join(p);
}

TEST(flush_without_a_connection)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	const struct sci_addr nobody = { 4, 99 };
	struct sci_key key = { .segment = 0x4d000001, .len = 64 };
	struct sci_peer *to;
	char buf[8] = "";
	struct iovec iov = { buf, 8 };

	CHECK_EQ(sci_peer_open(ep, &nobody, -1, &to), 0);
	for (unsigned int i = 0; i < SCI_DETACHED_MAX; i++)
		CHECK_EQ(i & 1 ? sci_iwritev(to, &key, 0, &iov, 1, NULL) :
				 sci_irmw(to, &key, 0, &one, NULL, NULL), 0);
	CHECK_EQ(sci_irmw(to, &key, 0, &one, NULL, NULL), -EAGAIN);
	CHECK_EQ(sci_flush(to, 1), -ETIMEDOUT);
	CHECK_EQ(sci_disconnect(to), 0);

	CHECK_EQ(sci_peer_open(ep, &nobody, 50, &to), 0);
	CHECK_EQ(sci_irmw(to, &key, 0, &one, NULL, NULL), 0);
	CHECK_EQ(sci_flush(to, TEST_WAIT_MS), -ETIME);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* ---- ends, and what is refused ---- */

static void absent(struct peer *self, void *arg)
{
	struct pair l = pair_open(self, 4, 0);
	void *mem;

	(void)arg;
	own(&l, &mem);
	pair_meet(&l);
	peer_send(self, "away");
	for (;;)
		pause();
}

TEST(an_owner_that_dies)
{
	struct peer *p = peer_spawn(8, absent, NULL);
	struct pair l = pair_of(p, 8, true);
	struct sci_key key = key_of(&l);
	struct sci_req *req;

	pair_meet(&l);
	peer_expect(p, "away");
	CHECK_EQ(sci_irmw(l.to, &key, 0, &one, NULL, &req), 0);
	CHECK_EQ(sci_irmw(l.to, &key, 0, &one, NULL, NULL), 0);
	CHECK_EQ(sci_wait(req, 20, NULL), -ETIMEDOUT);
	CHECK_EQ(sci_cancel(req), -EBUSY);
	CHECK_EQ(sci_flush(l.to, 0), -ETIMEDOUT);
	peer_kill(p, SIGKILL);
	CHECK_EQ(test_wait(req, NULL), -ECONNRESET);
	CHECK_EQ(sci_flush(l.to, TEST_WAIT_MS), -ECONNRESET);
	CHECK_EQ(sci_rmw(l.to, &key, 0, &one, NULL), -ECONNRESET);
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

/* The owner refuses bad requests, also if the initiator does not check them. */
static void check_refused(bool asks)
{
	struct peer *p = peer_spawn(8, owner, NULL);
	struct pair l = pair_of(p, 8, asks);
	struct sci_key key = key_of(&l), other = key;
	struct sci_rmw bad = one;
	struct sci_write_signal s = { .key = key, .rmw = one };
	struct iovec iov = { &other, 8 };
	struct sci_req *req;

	CHECK_EQ(sci_rmw(NULL, &key, 0, &one, NULL), -EINVAL);
	CHECK_EQ(sci_rmw(l.to, NULL, 0, &one, NULL), -EINVAL);
	CHECK_EQ(sci_rmw(l.to, &key, 0, NULL, NULL), -EINVAL);
	CHECK_EQ(sci_rmw(l.to, &key, 4, &one, NULL), -EINVAL);
	CHECK_EQ(sci_rmw(l.to, &key, PAGES, &one, NULL), -ERANGE);
	CHECK_EQ(sci_rmw(l.to, &key, UINT64_MAX - 7, &one, NULL), -ERANGE);
	bad.op = SCI_RMW_MAX + 1;
	CHECK_EQ(sci_rmw(l.to, &key, 0, &bad, NULL), -EINVAL);
	bad = one;
	bad.type = SCI_RMW_DOUBLE + 1;
	CHECK_EQ(sci_rmw(l.to, &key, 0, &bad, NULL), -EINVAL);
	CHECK_EQ(sci_rmw_apply(&bad, &bad, NULL), -EINVAL);
	bad = (struct sci_rmw){ SCI_RMW_AND, SCI_RMW_DOUBLE, 0, 0 };
	CHECK_EQ(sci_rmw(l.to, &key, 0, &bad, NULL), -EINVAL);
	/* a key that is longer than its segment */
	other.len = UINT64_MAX;
	CHECK_EQ(sci_rmw(l.to, &other, PAGES, &one, NULL), -ERANGE);
	other = key;
	other.segment = 0x4d000000 + (key.segment + 12345) % 0x1000000;
	CHECK_EQ(sci_rmw(l.to, &other, 0, &one, NULL), -ENOENT);
	CHECK_EQ(sci_iwrite_signal(l.to, &key, 0, &iov, 1, NULL, &req), -EINVAL);
	s.offset = 3;
	CHECK_EQ(sci_iwrite_signal(l.to, &key, 0, &iov, 1, &s, &req), -EINVAL);
	s.offset = PAGES;
	CHECK_EQ(sci_iwrite_signal(l.to, &key, 0, &iov, 1, &s, &req), -ERANGE);
	s.offset = 0;
	CHECK_EQ(sci_iwrite_signal(l.to, &key, PAGES, &iov, 1, &s, &req), -ERANGE);
	CHECK_EQ(sci_flush(NULL, 0), -EINVAL);
	CHECK_EQ(sci_peer_state(l.to), 0);
	pair_close(&l);
	peer_join(p);
}

TEST(what_is_refused)
{
	check_refused(false);
	check_refused(true);
}
