// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Messages and writes of many short pieces on the net. The fabric copies short pieces, so they must
 * wait for room as long pieces do: all of them together are longer than its log.
 */
#include "libsci/msg/endpoint.h"
#include "selftests/msg/peers.h"

#define PIECE		4096u
#define STEP		(PIECE + 64u)	/* pieces that do not touch */
#define PIECES		SCI_IOV_MAX
#define MESSAGES	6u
#define LEN		((size_t)PIECES * PIECE)

static unsigned char *alloc(size_t len)
{
	unsigned char *p = malloc(len);

	CHECK(p);
	return p;
}

static void cut(struct iovec iov[PIECES], unsigned char *buf)
{
	for (size_t i = 0; i < PIECES; i++)
		iov[i] = (struct iovec){ buf + i * STEP, PIECE };
}

/* ---- messages ---- */

/* Send pieces that the fabric joins to frames, some of them just as long as a frame may be. */
static void send_uneven(struct pair *l)
{
	struct iovec iov[PIECES];
	unsigned char *out = alloc(LEN);
	struct sci_req *req;
	size_t at = 0;

	for (size_t i = 0; i < PIECES; i++) {
		size_t len = i % 5 ? 1 + i % 331 : PIECE - i / 5 % 3;

		iov[i] = (struct iovec){ out + at, len };
		at += len;
	}
	msg_fill(out, at, 1);
	CHECK_EQ(sci_tsend(l->to, 8, 0, &at, sizeof(at)), 0);
	CHECK_EQ(sci_itsendv(l->to, 8, 1, iov, PIECES, 0, &req), 0);
	CHECK_EQ(test_wait(req, NULL), 0);
	free(out);
}

static void receive_uneven(struct pair *l, unsigned char *in)
{
	size_t len;

	CHECK_EQ(sci_trecv(l->ep, l->to, 8, 0, 0, &len, sizeof(len), NULL), 0);
	CHECK_EQ(sci_trecv(l->ep, l->to, 8, 1, 0, in, len, NULL), 0);
	CHECK_BYTES(in, len, 1);
}

static void gather(struct peer *proc, void *arg)
{
	struct sci_req *reqs[MESSAGES];
	struct iovec iov[PIECES];
	unsigned char *out = alloc(PIECES * STEP);
	struct pair l;

	(void)arg;
	test_use_net("unix", 8);
	l = pair_open(proc, 4, 0);
	cut(iov, out);
	for (size_t i = 0; i < PIECES; i++)
		memset(out + i * STEP, (int)i % 251, PIECE);
	for (unsigned int i = 0; i < MESSAGES; i++)
		CHECK_EQ(sci_itsendv(l.to, 7, i, iov, PIECES, 0, &reqs[i]), 0);
	CHECK_EQ(sci_waitall(reqs, MESSAGES, TEST_WAIT_MS, NULL), 0);
	send_uneven(&l);
	pair_close(&l);
	free(out);
}

static void check_message(const unsigned char *in)
{
	for (size_t i = 0; i < LEN; i++)
		CHECK_EQ(in[i], (int)(i / PIECE) % 251);
}

TEST(messages_of_short_pieces)
{
	struct peer *p = peer_spawn(8, gather, NULL);
	unsigned char *in[MESSAGES];
	struct sci_req *reqs[MESSAGES];
	struct pair l;

	test_use_net("unix", 4);
	l = pair_open(p, 8, 0);
	for (unsigned int i = 0; i < MESSAGES; i++) {
		in[i] = alloc(LEN);
		CHECK_EQ(sci_itrecv(l.ep, l.to, 7, i, 0, in[i], LEN, &reqs[i]), 0);
	}
	CHECK_EQ(sci_waitall(reqs, MESSAGES, TEST_WAIT_MS, NULL), 0);
	for (unsigned int i = 0; i < MESSAGES; i++)
		check_message(in[i]);
	receive_uneven(&l, in[0]);
	for (unsigned int i = 0; i < MESSAGES; i++)
		free(in[i]);
	pair_close(&l);
	peer_join(p);
}

/* ---- writes ---- */

static void write_vectors(struct pair *l, const struct sci_key *key, unsigned char *buf)
{
	struct sci_req *reqs[MESSAGES];
	struct iovec iov[PIECES];

	cut(iov, buf);
	for (unsigned int i = 0; i < MESSAGES; i++)
		CHECK_EQ(sci_iwritev(l->to, key, i * LEN, iov, PIECES, &reqs[i]), 0);
	CHECK_EQ(sci_waitall(reqs, MESSAGES, TEST_WAIT_MS, NULL), 0);
}

static void write_blocks(struct pair *l, const struct sci_key *key, unsigned char *buf)
{
	const struct sci_strided s = {
		.buf = buf, .buf_stride = 0, .stride = PIECE, .len = PIECE,
		.n = MESSAGES * PIECES,
	};
	struct sci_req *req;

	CHECK_EQ(sci_iwrite_strided(l->to, key, &s, &req), 0);
	CHECK_EQ(test_wait(req, NULL), 0);
}

static void write_many(struct pair *l, const struct sci_key *key, unsigned char *buf)
{
	const struct iovec iov = { buf, PIECE };
	struct sci_req *reqs[MESSAGES * PIECES];

	for (size_t i = 0; i < MESSAGES * PIECES; i++)
		CHECK_EQ(sci_iwritev(l->to, key, i * PIECE, &iov, 1, &reqs[i]), 0);
	CHECK_EQ(sci_waitall(reqs, MESSAGES * PIECES, TEST_WAIT_MS, NULL), 0);
}

static void (*const writes[])(struct pair *l, const struct sci_key *key, unsigned char *buf) = {
	write_vectors, write_blocks, write_many,
};

static void writer(struct peer *proc, void *arg)
{
	unsigned char *out = alloc(PIECES * STEP);
	struct sci_key key;
	struct pair l;

	(void)arg;
	test_use_net("unix", 8);
	l = pair_open(proc, 4, 0);
	CHECK_EQ(sci_trecv(l.ep, l.to, 9, 0, 0, &key, sizeof(key), NULL), 0);
	for (size_t i = 0; i < sizeof(writes) / sizeof(*writes); i++) {
		memset(out, 1 + (int)i, PIECES * STEP);
		writes[i](&l, &key, out);
		pair_meet(&l);
		/* the other side checks the bytes */
		pair_meet(&l);
	}
	pair_close(&l);
	free(out);
}

TEST(writes_of_short_pieces)
{
	struct peer *p = peer_spawn(8, writer, NULL);
	unsigned char *mine;
	struct sci_key key;
	struct pair l;
	void *addr;

	test_use_net("unix", 4);
	l = pair_open(p, 8, 0);
	CHECK_EQ(sci_buf_alloc(l.ep, MESSAGES * LEN, &addr), 0);
	mine = addr;
	CHECK_EQ(sci_buf_key(l.ep, mine, MESSAGES * LEN, &key), 0);
	CHECK_EQ(sci_tsend(l.to, 9, 0, &key, sizeof(key)), 0);
	for (size_t i = 0; i < sizeof(writes) / sizeof(*writes); i++) {
		pair_meet(&l);
		for (size_t at = 0; at < MESSAGES * LEN; at += PIECE / 4)
			CHECK_EQ(mine[at], 1 + (int)i);
		pair_meet(&l);
	}
	pair_close(&l);
	peer_join(p);
}

/* ---- both ---- */

static void meet(struct peer *proc, void *arg)
{
	struct pair l;

	(void)arg;
	test_use_net("unix", 8);
	l = pair_open(proc, 4, 0);
	pair_meet(&l);
	pair_meet(&l);
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

TEST(a_short_write_finds_room_beside_a_long_message)
{
	struct peer *p = peer_spawn(8, meet, NULL);
	unsigned char *out = alloc(LEN);
	struct pair l;
	int ret;

	test_use_net("unix", 4);
	l = pair_open(p, 8, 0);
	memset(out, 0, LEN);
	pair_meet(&l);
	/* a peer that is stopped acknowledges nothing; there is no target 0 */
	peer_stop(p);
	do {
		ret = l.to->stream->fill(l.to->first.outbox, 0, 0, out, PIECE * 4, out);
	} while (!ret);
	CHECK_EQ(ret, -EAGAIN);
	for (int i = 0; i < 8; i++)
		CHECK_EQ(l.to->stream->fill(l.to->first.outbox, 0, 0, out, PIECE, out), 0);
	l.to->stream->take_back(l.to->fabric, out);
	free(out);
	peer_continue(p);
	pair_meet(&l);
	CHECK_EQ(sci_ep_close(l.ep), 0);
	peer_join(p);
}
