// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Strided reads and writes of a peer's memory. */
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libsci/msg/proto/proto.h"
#include "selftests/harness.h"
#include "selftests/msg/peers.h"

#define SIZE	(96u * 4096)

static const struct layout {
	size_t len, n;
	ptrdiff_t buf_stride;
	int64_t stride;
} layouts[] = {
	{ 1, 1, 0, INT64_MIN },
	{ 8, 1000, 8, 24 },
	{ 8, 1000, 40, 8 },
	{ 8, 1000, 8, -24 },
	{ 8, 1000, -16, 8 },
	{ 4, 5000, -12, -12 },
	{ 1, 3000, 1, 2 },
	{ 63, 40, 65, 66 },
	{ 100, 9, 100, 100 },
	{ 4000, 20, 4096, 5000 },
	{ 5000, 7, 5001, 6000 },	/* one block for each message to the owner */
	{ 20000, 4, -20001, 30000 },	/* several messages for each block */
	{ 70000, 3, 70000, -80000 },	/* several steps for each block */
	{ 8, 10, 0, 8 },		/* the same bytes for all blocks */
	{ 8, 0, 8, 8 },
	{ 0, 8, 8, 8 },
};

/* ---- the owner of the memory ---- */

static void owner(struct peer *self, void *arg)
{
	struct sci_key key;
	struct pair l;
	void *buf;

	if (arg)
		setenv("SCI_FAULT", arg, 1);
	l = pair_open(self, 4, 0);
	CHECK_EQ(sci_buf_alloc(l.ep, SIZE, &buf), 0);
	CHECK_EQ(sci_buf_key(l.ep, buf, SIZE, &key), 0);
	CHECK_EQ(sci_send(l.to, &key, sizeof(key)), 0);
	pair_close(&l);
}

/* ---- the initiator ---- */

struct side {
	struct pair l;
	struct sci_key key;
	unsigned char *buf, *image, *got;	/* local memory; the expected memory of the peer */
};

static struct side side_open(const char *fault)
{
	struct peer *p = peer_spawn(8, owner, (void *)fault);
	struct side s;

	if (fault)
		setenv("SCI_FAULT", fault, 1);
	s.l = pair_open(p, 8, 0);
	CHECK_EQ(sci_recv(s.l.ep, s.l.to, &s.key, sizeof(s.key), NULL), 0);
	s.buf = malloc(SIZE);
	s.image = calloc(1, SIZE);
	s.got = malloc(SIZE);
	CHECK(s.buf && s.image && s.got);
	return s;
}

static void side_close(struct side *s)
{
	free(s->buf);
	free(s->image);
	free(s->got);
	pair_close(&s->l);
	peer_join(s->l.proc);
}

/* Return blocks that are somewhere in the middle of both memories. */
static struct sci_strided strided_of(struct side *s, const struct layout *a, unsigned int i)
{
	struct sci_strided st = {
		.buf = s->buf + 11 * i, .buf_stride = a->buf_stride, .offset = 7 * i,
		.stride = a->stride, .len = a->len, .n = a->n,
	};

	if (a->n > 1 && a->buf_stride < 0)
		st.buf = (unsigned char *)st.buf - (ptrdiff_t)(a->n - 1) * a->buf_stride;
	if (a->n > 1 && a->stride < 0)
		st.offset -= (a->n - 1) * (uint64_t)a->stride;
	return st;
}

/* Do to @s->image what a write does to the peer's memory, or to @local what a read does. */
static void model(struct side *s, const struct sci_strided *st, unsigned char *local, bool write)
{
	for (size_t i = 0; i < st->n; i++) {
		unsigned char *here = local + ((unsigned char *)st->buf - s->buf) +
				      (ptrdiff_t)i * st->buf_stride;
		unsigned char *there = s->image + st->offset + i * (uint64_t)st->stride;

		memcpy(write ? there : here, write ? here : there, st->len);
	}
}

static void check_layout(struct side *s, const struct layout *a, unsigned int i)
{
	struct sci_strided st = strided_of(s, a, i);
	struct sci_req *req = NULL;
	struct sci_status status;

	msg_fill(s->buf, SIZE, i);
	CHECK_EQ(sci_iwrite_strided(s->l.to, &s->key, &st, i % 2 ? &req : NULL), 0);
	if (req)
		CHECK_EQ(test_wait(req, &status), 0);
	CHECK(!req || status.len == a->len * a->n);
	CHECK_EQ(sci_flush(s->l.to, TEST_WAIT_MS), 0);
	CHECK_BYTES(s->buf, SIZE, i);
	model(s, &st, s->buf, true);
	CHECK_EQ(sci_read(s->l.to, &s->key, 0, s->got, SIZE), 0);
	CHECK(!memcmp(s->got, s->image, SIZE));

	/* a read with other distances */
	msg_fill(s->buf, SIZE, i + 1000);
	msg_fill(s->got, SIZE, i + 1000);
	st.offset += 3;
	model(s, &st, s->got, false);
	CHECK_EQ(sci_iread_strided(s->l.to, &s->key, &st, &req), 0);
	CHECK_EQ(test_wait(req, NULL), 0);
	CHECK(!memcmp(s->got, s->buf, SIZE));
}

static void check_layouts(const char *fault, bool room)
{
	const struct rlimit few = { 64, 64 };
	struct side s = side_open(fault);
	int used[64], n = 0;

	/* an import needs a descriptor */
	if (!room)
		CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
	while (!room && (used[n] = dup(2)) >= 0)
		n++;
	for (unsigned int i = 0; i < ARRAY_LEN(layouts); i++)
		check_layout(&s, &layouts[i], i);
	while (n)
		close(used[--n]);
	side_close(&s);
}

TEST(layouts_in_memory)
{
	check_layouts(NULL, true);
}

TEST(packets_are_lost)
{
	check_layouts("loss=0.02,seed=1", true);
}

TEST(memory_that_cannot_be_imported)
{
	check_layouts(NULL, false);
}

TEST(memory_that_cannot_be_imported_and_packets_are_lost)
{
	check_layouts("loss=0.02,seed=1", false);
}

/* Transfers that wait together for the import of the memory. */
TEST(many_under_way)
{
	struct side s = side_open(NULL);
	struct sci_strided st = { .buf = s.buf, .buf_stride = 2, .stride = 16, .len = 2, .n = 500 };

	msg_fill(s.buf, SIZE, 1);
	for (unsigned int i = 0; i < 8; i++) {
		CHECK_EQ(sci_iwrite_strided(s.l.to, &s.key, &st, NULL), 0);
		model(&s, &st, s.buf, true);
		st.offset += 2;
		st.buf = (char *)st.buf + 1000;
	}
	CHECK_EQ(sci_flush(s.l.to, TEST_WAIT_MS), 0);
	CHECK_EQ(sci_read(s.l.to, &s.key, 0, s.got, SIZE), 0);
	CHECK(!memcmp(s.got, s.image, SIZE));
	CHECK_EQ(test_ep_stats(s.l.ep).writes, 8);
	side_close(&s);
}

/* ---- limits ---- */

static int try_write(struct side *s, struct sci_strided st)
{
	int ret = sci_iwrite_strided(s->l.to, &s->key, &st, NULL);

	return ret ? ret : sci_flush(s->l.to, TEST_WAIT_MS);
}

TEST(blocks_beyond_the_memory)
{
	struct side s = side_open(NULL);
	const struct sci_strided good = {
		.buf = s.buf, .buf_stride = 8, .offset = 8, .stride = 16, .len = 8, .n = 4,
	};
	struct sci_strided st = good;

	memset(s.buf, 0, SIZE);
	st.offset = SIZE - 56;
	CHECK_EQ(try_write(&s, st), 0);
	st.offset++;
	CHECK_EQ(try_write(&s, st), -ERANGE);
	st.stride = -16;
	st.offset = 48;
	CHECK_EQ(try_write(&s, st), 0);
	st.offset--;
	CHECK_EQ(try_write(&s, st), -ERANGE);
	st.offset = SIZE - 7;
	CHECK_EQ(try_write(&s, st), -ERANGE);
	/* sums and products that overflow */
	st = good;
	st.stride = INT64_MAX;
	CHECK_EQ(try_write(&s, st), -ERANGE);
	st.stride = INT64_MIN;
	CHECK_EQ(try_write(&s, st), -ERANGE);
	st.stride = (int64_t)1 << 62;
	CHECK_EQ(try_write(&s, st), -ERANGE);
	st.n = 2;
	st.stride = -8;
	st.offset = UINT64_MAX - 4;
	CHECK_EQ(try_write(&s, st), -ERANGE);
	st = good;
	st.buf_stride = PTRDIFF_MAX;
	CHECK_EQ(try_write(&s, st), -EINVAL);
	st.buf_stride = PTRDIFF_MIN;
	CHECK_EQ(try_write(&s, st), -EINVAL);
	st = good;
	st.n = SIZE_MAX / 8 + 2;
	CHECK_EQ(try_write(&s, st), -EINVAL);
	st.n = SIZE_MAX / 16 + 2;
	CHECK_EQ(try_write(&s, st), -EINVAL);
	st = good;
	st.buf = NULL;
	CHECK_EQ(try_write(&s, st), -EINVAL);
	CHECK_EQ(sci_iwrite_strided(NULL, &s.key, &good, NULL), -EINVAL);
	CHECK_EQ(sci_iread_strided(s.l.to, NULL, &good, NULL), -EINVAL);
	CHECK_EQ(sci_iread_strided(s.l.to, &s.key, NULL, NULL), -EINVAL);
	/* a key that lies: the segment is shorter */
	s.key.len = UINT64_MAX;
	st = good;
	st.offset = SIZE - 55;
	CHECK_EQ(try_write(&s, st), -ERANGE);
	st.stride = (int64_t)SIZE;
	CHECK_EQ(try_write(&s, st), -ERANGE);
	side_close(&s);
}

/* ---- a peer that breaks the protocol ---- */

static int answer;

static void take_answer(void *arg, const struct sci_handled *m)
{
	const struct copy_reply *r = m->data;

	(void)arg;
	CHECK_EQ(m->tag, 77);
	CHECK_EQ(m->len, sizeof(*r));
	answer = r->status;
}

static int lie(struct side *s, struct copy_request r)
{
	char bytes[64] = "";
	struct iovec iov[2] = { { &r, sizeof(r) }, { bytes, r.len } };

	r.segment = s->key.segment;
	r.last = 1;
	for (unsigned int i = 0; i < 2; i++) {
		int last = answer;

		answer = 1;
		CHECK_EQ(handler_send(s->l.to, i ? HANDLER_WRITE : HANDLER_READ, 77, iov, i + 1), 0);
		WAIT_UNTIL((sci_progress(s->l.ep), answer <= 0), TEST_WAIT_MS);
		CHECK(!i || answer == last);
	}
	return answer;
}

TEST(requests_to_the_owner_that_lie)
{
	struct side s = side_open(NULL);

	s.l.ep->handlers[HANDLER_COPY_REPLY] = (struct msg_handler){ take_answer, NULL };
	CHECK_EQ(lie(&s, (struct copy_request){ .block = 0, .len = 8 }), -EPROTO);
	CHECK_EQ(lie(&s, (struct copy_request){ .block = 8, .len = 0 }), -EPROTO);
	CHECK_EQ(lie(&s, (struct copy_request){ .block = 16, .len = 8 }), -EPROTO);
	CHECK_EQ(lie(&s, (struct copy_request){ .block = 3, .len = 8 }), -EPROTO);
	CHECK_EQ(lie(&s, (struct copy_request){ .block = 8, .len = 16, .stride = SIZE - 8 + 1 }),
		 -ERANGE);
	CHECK_EQ(lie(&s, (struct copy_request){ .block = 8, .len = 16, .stride = -8ull,
						.offset = 7 }), -ERANGE);
	CHECK_EQ(lie(&s, (struct copy_request){ .block = 8, .len = 24, .stride = 1ull << 63 }),
		 -ERANGE);
	CHECK_EQ(lie(&s, (struct copy_request){ .block = 1, .len = 64,
						.stride = UINT64_MAX / 63 + 1 }), -ERANGE);
	CHECK_EQ(lie(&s, (struct copy_request){ .block = 8, .len = 8, .offset = UINT64_MAX }),
		 -ERANGE);
	side_close(&s);
}
