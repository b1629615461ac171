// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Words of a line arrive in any order: the reader takes no incomplete line, and gets the
 * payload that was sent.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsci/msg/conn/wire.h"
#include "libsci/pio/pio.h"
#include "selftests/harness.h"

#define SLOW	(TEST_ASAN || TEST_TSAN)

enum fill { ZEROS, ONES, RANDOM, FILLS };

static uint64_t random_state = 1;

static uint64_t any(void)
{
	random_state += 0x9e3779b97f4a7c15u;

	uint64_t z = random_state;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* Fill the whole line. Only the first @kind bytes of the message matter. */
static void fill_line(struct msg_line *l, enum fill fill)
{
	if (fill == RANDOM)
		for (unsigned int i = 0; i < LINE_WORDS; i++)
			l->w[i] = any();
	else
		memset(l, fill == ONES ? 0xff : 0, sizeof(*l));
}

struct piece {
	struct msg_line old;		/* contents of the slot from the lap before */
	struct msg_line new;
	struct msg_line payload;
	uint64_t id;
	unsigned int kind;
	unsigned int seq;
};

static struct piece make_piece(enum fill before, enum fill now,
			       unsigned int kind, unsigned int seq, uint64_t id)
{
	struct piece p = { .id = id, .kind = kind, .seq = seq };

	fill_line(&p.old, before);
	line_seal(&p.old, id ^ LINE_ID, (unsigned int)any() & 63, seq);
	fill_line(&p.payload, now);
	p.new = p.payload;
	line_seal(&p.new, id, kind, seq);
	return p;
}

static void check_taken(const struct piece *p, const struct msg_line *slot)
{
	struct msg_line out;

	CHECK(line_peek(slot, p->id));
	CHECK(line_take(slot, p->id, &out));
	CHECK_EQ(line_kind(&out), p->kind);
	CHECK_EQ(line_seq(&out), p->seq & 3);
	CHECK(!memcmp(&out, &p->payload, LINE_PAYLOAD));
	/* a reader of the lap before, or of the next lap, does not take the line */
	CHECK(!line_take(slot, p->id ^ LINE_ID, &out));
}

/* Check all sets of words that may have arrived: each order passes through some of them. */
static void check_subsets(const struct piece *p)
{
	for (unsigned int have = 0; have < 1u << LINE_WORDS; have++) {
		struct msg_line slot = p->old, out;

		for (unsigned int i = 0; i < LINE_WORDS; i++)
			if (have & 1u << i)
				slot.w[i] = p->new.w[i];
		if (have == (1u << LINE_WORDS) - 1)
			check_taken(p, &slot);
		else
			CHECK(!line_take(&slot, p->id, &out));
	}
}

TEST(no_part_of_a_line_is_taken)
{
	for (unsigned int kind = 0; kind <= LINE_TYPED; kind++) {
		for (unsigned int k = 0; k < FILLS * FILLS * 8; k++) {
			struct piece p = make_piece(k % FILLS,
						    k / FILLS % FILLS, kind,
						    k / 9 / 2,
						    k / 9 & 1 ? LINE_ID : 0);

			check_subsets(&p);
		}
	}
}

/* Memory of a new ring is zero: the first lap's identifier is 1. */
TEST(no_part_of_a_first_line_is_taken)
{
	for (unsigned int kind = 0; kind <= LINE_TYPED; kind++) {
		struct piece p = make_piece(ZEROS, RANDOM, kind, 0, LINE_ID);

		memset(&p.old, 0, sizeof(p.old));
		check_subsets(&p);
	}
}

/* Return the @n-th permutation of eight words. */
static void nth_order(unsigned int order[LINE_WORDS], unsigned int n)
{
	for (unsigned int i = 0; i < LINE_WORDS; i++)
		order[i] = i;
	for (unsigned int i = LINE_WORDS; i > 1; i--) {
		unsigned int k = n % i, t = order[k];

		n /= i;
		order[k] = order[i - 1];
		order[i - 1] = t;
	}
}

TEST(words_in_every_order)
{
	for (unsigned int n = 0; n < 40320; n++) {
		struct piece p = make_piece(any() % FILLS, any() % FILLS,
					    n % LINE_TYPED, n / 64,
					    any() & LINE_ID);
		struct msg_line slot = p.old, out;
		unsigned int order[LINE_WORDS];

		nth_order(order, n);
		for (unsigned int i = 0; i < LINE_WORDS; i++) {
			CHECK(!line_take(&slot, p.id, &out));
			slot.w[order[i]] = p.new.w[order[i]];
		}
		check_taken(&p, &slot);
	}
}

/* Pieces of one to four words, which arrive once or several times. */
TEST(pieces_in_random_order)
{
	for (unsigned int n = 0; n < (SLOW ? 2000u : 20000u); n++) {
		struct piece p = make_piece(any() % FILLS, any() % FILLS,
					    n % LINE_TYPED, n / 64,
					    any() & LINE_ID);
		struct msg_line slot = p.old, out;

		while (memcmp(&slot, &p.new, sizeof(slot))) {
			unsigned int at = any() % LINE_WORDS * 8;
			unsigned int len = 8u << any() % 3;

			if (line_take(&slot, p.id, &out))
				CHECK(!memcmp(&out, &p.payload,
					      LINE_PAYLOAD));
			if (len > LINE_BYTES - at)
				len = LINE_BYTES - at;
			memcpy((char *)&slot + at, (char *)&p.new + at, len);
		}
		check_taken(&p, &slot);
	}
}

/* ---- a writer and a reader at the same time ---- */

#define SLOTS	5u
#define LAPS	(SLOW ? 4000u : 40000u)

struct ring {
	struct msg_line slot[SLOTS];
	uint32_t taken;
};

static void payload_of(struct msg_line *l, uint32_t n)
{
	for (unsigned int i = 0; i < LINE_WORDS; i++)
		l->w[i] = (n + 1) * 0x9e3779b97f4a7c15u * (i + 1);
}

static uint64_t lap_id(uint32_t n)
{
	return n / SLOTS & 1 ? 0 : LINE_ID;
}

static void *write_words(void *arg)
{
	struct ring *r = arg;

	for (uint32_t n = 0; n < LAPS; n++) {
		unsigned int order[LINE_WORDS];
		struct msg_line l;

		while (n - sci_load_acquire(&r->taken) >= SLOTS)
			sched_yield();
		payload_of(&l, n);
		line_seal(&l, lap_id(n), n % LINE_TYPED, n);
		nth_order(order, n % 40320);
		/* release pairs with line_take()'s acquire of the last word */
		for (unsigned int i = 0; i < LINE_WORDS; i++)
			sci_store_release(&r->slot[n % SLOTS].w[order[i]],
					  l.w[order[i]]);
	}
	return NULL;
}

TEST(a_reader_beside_the_writer)
{
	static struct ring r;
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, write_words, &r), 0);
	for (uint32_t n = 0; n < LAPS; n++) {
		struct msg_line out, want;

		while (!line_take(&r.slot[n % SLOTS], lap_id(n), &out))
			sched_yield();
		payload_of(&want, n);
		CHECK(!memcmp(&out, &want, LINE_PAYLOAD));
		CHECK_EQ(line_kind(&out), n % LINE_TYPED);
		CHECK_EQ(line_seq(&out), n & 3);
		sci_store_release(&r.taken, n + 1);
	}
	CHECK_EQ(pthread_join(t, NULL), 0);
}

TEST(line_copy_is_memcpy)
{
	for (unsigned int len = 0; len <= LINE_PAYLOAD; len++) {
		unsigned char from[LINE_BYTES], to[LINE_BYTES + 2];

		for (unsigned int i = 0; i < LINE_BYTES; i++)
			from[i] = (unsigned char)any();
		memset(to, 0xa5, sizeof(to));
		line_copy(to + 1, from, len);
		CHECK_EQ(to[0], 0xa5);
		CHECK(!memcmp(to + 1, from, len));
		CHECK_EQ(to[len + 1], 0xa5);
	}
}

/* ---- in one register, if the CPU has one of that size ---- */

struct guarded {
	uint8_t *page;			/* between two inaccessible pages */
	size_t size;
};

static struct guarded guarded_page(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *p = mmap(NULL, 3 * size, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	CHECK_EQ(mprotect(p + size, size, PROT_READ | PROT_WRITE), 0);
	for (size_t i = 0; i < size; i++)
		p[size + i] = (uint8_t)any();
	return (struct guarded){ p + size, size };
}

/* A random head that leaves room for @len bytes. The bytes after its length are 0. */
static struct line_head any_head(size_t len)
{
	static const unsigned int lens[] = { 13, 20, 21, 28, 37 };
	struct line_head h = { .w = { any(), any(), any(), any(), any() } };

	do
		h.len = lens[any() % ARRAY_LEN(lens)];
	while (h.len + len > LINE_BODY);
	memset((uint8_t *)h.w + h.len, 0, sizeof(h.w) - h.len);
	return h;
}

/* Both writers make the same line, and both readers accept it. */
static void check_both(const struct line_ops *words, const uint8_t *buf,
		       size_t len, bool typed, uint64_t id)
{
	struct line_head head = { 0 };
	struct msg_line a = { .w = { 0 } }, b = a, out_a, out_b;
	unsigned int seq = (unsigned int)any() & 3;
	uint64_t last;

	if (typed)
		head = any_head(len);
	last = line_last(typed ? 5 : 0,
			 typed ? LINE_TYPED : (unsigned int)len, seq);
	/* contents from the lap before */
	memset(&a, id ? 0 : 0xff, sizeof(a));
	b = a;
	words->put(&a, &head, buf, len, id, last);
	line_ops.put(&b, &head, buf, len, id, last);
	CHECK(!memcmp(&a, &b, sizeof(a)));
	CHECK(words->get(&b, id, &out_b));
	CHECK(line_ops.get(&a, id, &out_a));
	CHECK(!memcmp(&out_a, &out_b, LINE_PAYLOAD));
	CHECK(!memcmp((uint8_t *)&out_a + head.len, buf, len));
	CHECK_EQ(line_kind(&out_a), typed ? LINE_TYPED : len);
	CHECK_EQ(line_seq(&out_a), seq);
	CHECK(!line_ops.get(&a, id ^ LINE_ID, &out_a));
	for (unsigned int w = 0; w < LINE_WORDS; w++) {
		b = a;
		b.w[w] ^= LINE_ID;
		CHECK(!line_ops.get(&b, id, &out_b));
	}
}

TEST(both_ways_of_writing_agree)
{
	const struct line_ops words = line_ops;
	struct guarded g = guarded_page();

	sci_pio_init(NULL);
	line_init();
	if (line_ops.put == words.put)
		test_note("this CPU has one way only");
	for (unsigned int round = 0; round < (SLOW ? 4 : 40); round++)
		for (size_t len = 0; len <= LINE_PAYLOAD; len++) {
			bool typed = round & 1 && len <= 48;
			uint64_t id = round & 2 ? LINE_ID : 0;

			check_both(&words, g.page, len, typed, id);
			check_both(&words, g.page + g.size - len, len, typed,
				   id);
			check_both(&words, g.page + any() % 64, len, typed, id);
			check_both(&words, g.page + g.size - LINE_BYTES +
						   any() % (LINE_BYTES + 1 - len),
				   len, typed, id);
		}
}
