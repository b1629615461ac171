// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Reads and writes of a peer's memory, while the peer does nothing. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include <sci/msg.h>

#include "selftests/harness.h"
#include "selftests/msg/couple.h"
#include "selftests/msg/descriptors.h"
#include "selftests/msg/peers.h"

#define PAGES	(64u * 4096)

static const size_t lengths[] = {
	0, 1, 3, 8, 15, 16, 63, 64, 65, 500, 4096, 5000, 65536, 100001,
};

static const size_t offsets[] = { 0, 1, 8, 63, 64, 4095, 100000 };

/* ---- the owner of the memory ---- */

struct owned {
	struct pair l;
	unsigned char *buf;
	struct sci_key key;
};

/* Export memory and send its key. */
static struct owned own(struct peer *self)
{
	struct owned o = { .l = pair_open(self, 4, 0) };
	void *buf;

	CHECK_EQ(sci_buf_alloc(o.l.ep, PAGES, &buf), 0);
	o.buf = buf;
	CHECK_EQ(sci_buf_key(o.l.ep, buf, PAGES, &o.key), 0);
	CHECK_EQ(sci_send(o.l.to, &o.key, sizeof(o.key)), 0);
	return o;
}

/* A piece of the memory: [@offset, @offset + @len) has been written with @seed. */
struct piece {
	uint64_t offset, len, seed;
};

static bool written(struct owned *o)
{
	struct sci_status st;
	struct piece w;

	CHECK_EQ(sci_recv(o->l.ep, o->l.to, &w, sizeof(w), &st), 0);
	if (!st.len)
		return false;
	CHECK_BYTES(o->buf + w.offset, w.len, w.seed);
	for (size_t i = 1; i <= 64; i++) {
		CHECK(i > w.offset || !o->buf[w.offset - i]);
		CHECK(w.offset + w.len + i > PAGES ||
		      !o->buf[w.offset + w.len + i - 1]);
	}
	memset(o->buf + w.offset, 0, w.len);
	CHECK_EQ(sci_send(o->l.to, NULL, 0), 0);
	return true;
}

static void owner(struct peer *self, void *arg)
{
	struct owned o;

	if (arg)
		setenv("SCI_FAULT", arg, 1);
	o = own(self);
	while (written(&o))
		;
	CHECK_EQ(sci_buf_free(o.l.ep, o.buf), 0);
	CHECK_EQ(sci_send(o.l.to, NULL, 0), 0);
	pair_close(&o.l);
}

/* ---- the initiator ---- */

static struct sci_key key_of(struct pair *l)
{
	struct sci_key key;

	CHECK_EQ(sci_recv(l->ep, l->to, &key, sizeof(key), NULL), 0);
	CHECK_EQ(key.len, PAGES);
	return key;
}

/* Write a piece and send its description, which must not overtake the bytes. */
static void check_write(struct pair *l, const struct sci_key *key,
			struct piece w)
{
	unsigned char *buf = malloc(w.len + 1);

	CHECK(buf);
	msg_fill(buf, w.len, w.seed);
	CHECK_EQ(sci_write(l->to, key, w.offset, buf, w.len), 0);
	CHECK_EQ(sci_send(l->to, &w, sizeof(w)), 0);
	CHECK_EQ(sci_recv(l->ep, l->to, NULL, 0, NULL), 0);
	free(buf);
}

static void check_read(struct pair *l, const struct sci_key *key,
		       struct piece w)
{
	struct guarded g = guarded_alloc(w.len, w.offset % 64);

	CHECK_EQ(sci_read(l->to, key, w.offset, g.p, w.len), 0);
	CHECK_BYTES(g.p, w.len, w.seed);
	CHECK(guarded_intact(&g, w.len));
	guarded_free(&g);
}

static void end(struct pair *l)
{
	/* the owner frees its memory and answers */
	CHECK_EQ(sci_send(l->to, NULL, 0), 0);
	CHECK_EQ(sci_recv(l->ep, l->to, NULL, 0, NULL), 0);
	pair_close(l);
	peer_join(l->proc);
}

/* ---- no room for imports ---- */

/* Write and read all lengths at all offsets, with @fault on both sides. */
static void all_lengths(const char *fault, bool room)
{
	struct peer *p = peer_spawn(8, owner, (void *)fault);
	struct sci_ep_stats stats;
	struct sci_key key;
	uint64_t n = 0;
	struct pair l;

	if (fault)
		setenv("SCI_FAULT", fault, 1);
	l = pair_open(p, 8, 0);
	key = key_of(&l);
	if (!room)
		descriptors_use_up();
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		for (size_t k = 0; k < ARRAY_LEN(offsets); k++) {
			struct piece w = { offsets[k], lengths[i], n++ };
			unsigned char *buf = malloc(w.len + 1);

			/* write and read the piece before the owner checks and clears it */
			msg_fill(buf, w.len, w.seed);
			CHECK_EQ(sci_write(l.to, &key, w.offset, buf, w.len),
				 0);
			check_read(&l, &key, w);
			free(buf);
			check_write(&l, &key, w);
		}
	}
	stats = test_ep_stats(l.ep);
	CHECK_EQ(stats.writes, 2 * n);
	CHECK_EQ(stats.reads, n);
	CHECK(!fault || (room ? stats.resent_blocks : stats.resent_lines) > 0);
	end(&l);
	descriptors_give_back();
}

TEST(lengths_and_offsets)
{
	all_lengths(NULL, true);
}

TEST(packets_are_lost)
{
	all_lengths("loss=0.05,seed=1", true);
}

TEST(memory_that_cannot_be_imported)
{
	all_lengths(NULL, false);
}

TEST(memory_that_cannot_be_imported_and_packets_are_lost)
{
	all_lengths("loss=0.05,seed=1", false);
}

TEST(words_that_cannot_be_imported)
{
	struct sci_rmw add = { .op = SCI_RMW_ADD, .type = SCI_RMW_UINT64, .operand = 5 };
	struct peer *p = peer_spawn(8, owner, NULL);
	struct pair l = pair_open(p, 8, 0);
	struct sci_key key = key_of(&l);
	uint64_t before, word;

	descriptors_use_up();
	for (uint64_t i = 0; i < 10; i++) {
		CHECK_EQ(sci_rmw(l.to, &key, 64, &add, &before), 0);
		CHECK_EQ(before, 5 * i);
	}
	CHECK_EQ(sci_read(l.to, &key, 64, &word, sizeof(word)), 0);
	CHECK_EQ(word, 50);
	end(&l);
	descriptors_give_back();
}

/* After a call that found no room, a map must not fail for the old reason. */
TEST(memory_is_mapped_when_there_is_room_again)
{
	struct peer *p = peer_spawn(8, owner, NULL);
	struct pair l = pair_open(p, 8, 0);
	struct sci_key key = key_of(&l);
	uint64_t word;
	void *addr;

	need_shared_memory(&l);
	descriptors_use_up();
	CHECK_EQ(sci_peer_map(l.to, &key, TEST_WAIT_MS, &addr), -EMFILE);
	CHECK_EQ(sci_read(l.to, &key, 64, &word, sizeof(word)), 0);
	descriptors_give_back();
	CHECK_EQ(sci_peer_map(l.to, &key, TEST_WAIT_MS, &addr), 0);
	CHECK_EQ(sci_peer_unmap(l.to, addr), 0);
	end(&l);
}

TEST(pieces)
{
	struct peer *p = peer_spawn(8, owner, NULL);
	struct pair l = pair_open(p, 8, 0);
	struct sci_key key = key_of(&l);
	struct piece w = { 77, 1000, 5 };
	unsigned char out[1000], in[1000];
	struct iovec from[] = {
		{ out, 1 }, { out + 1, 0 }, { out + 1, 500 }, { NULL, 0 },
		{ out + 501, 499 },
	};
	struct iovec to[] = { { in, 333 }, { in + 333, 667 } };
	struct sci_req *req;
	struct sci_status st;

	msg_fill(out, sizeof(out), w.seed);
	CHECK_EQ(sci_iwritev(l.to, &key, w.offset, from, ARRAY_LEN(from), &req),
		 0);
	CHECK_EQ(test_wait(req, &st), 0);
	CHECK_EQ(st.len, 1000);
	CHECK(st.peer == l.to);
	CHECK_EQ(sci_ireadv(l.to, &key, w.offset, to, ARRAY_LEN(to), &req), 0);
	CHECK_EQ(test_wait(req, &st), 0);
	CHECK_BYTES(in, sizeof(in), w.seed);
	CHECK_EQ(sci_send(l.to, &w, sizeof(w)), 0);
	CHECK_EQ(sci_recv(l.ep, l.to, NULL, 0, NULL), 0);
	end(&l);
}

/*
 * Writes are done in order, also those that wait for the import of the buffer,
 * which arrives while the library goes through them.
 */
#define MANY	2048u
#define PIECE	(PAGES / MANY)

TEST(many_under_way)
{
	struct peer *p = peer_spawn(8, owner, NULL);
	struct pair l = pair_open(p, 8, 0);
	struct sci_key key = key_of(&l);
	struct piece w = { 0, PAGES, 9 };
	unsigned char *out = malloc(PAGES);
	struct sci_completion done;

	CHECK(out);
	msg_fill(out, PAGES, w.seed);
	for (size_t i = 0; i < MANY; i++) {
		struct iovec iov = { out + i * PIECE, PIECE };
		struct sci_req *req;

		CHECK_EQ(sci_iwritev(l.to, &key, i * PIECE, &iov, 1, &req), 0);
		CHECK_EQ(sci_req_queue(req, iov.iov_base), 0);
	}
	for (size_t i = 0; i < MANY; i++) {
		CHECK_EQ(sci_completions(l.ep, TEST_WAIT_MS, &done, 1), 1);
		CHECK(done.data == out + i * PIECE);
		CHECK_EQ(done.status.error, 0);
	}
	CHECK_EQ(sci_send(l.to, &w, sizeof(w)), 0);
	CHECK_EQ(sci_recv(l.ep, l.to, NULL, 0, NULL), 0);
	free(out);
	end(&l);
}

/* ---- a peer that does nothing ---- */

#define LONG	(8u << 20)

/* Post a receive of a long message in blocks, then make no call until told to. */
static void absent_owner(struct peer *self, void *arg)
{
	struct owned o = own(self);
	unsigned char *buf = malloc(LONG);
	struct sci_req *req;

	(void)arg;
	CHECK(buf);
	CHECK_EQ(sci_irecv(o.l.ep, o.l.to, buf, LONG, &req), 0);
	CHECK_EQ(sci_tsend(o.l.to, 0, 1, NULL, 0), 0);
	/* the sender sends blocks before this message */
	CHECK_EQ(sci_trecv(o.l.ep, o.l.to, 0, 2, 0, NULL, 0, NULL), 0);
	CHECK_EQ(sci_test(req, NULL), -EAGAIN);
	peer_send(self, "away");
	peer_expect(self, "back");
	CHECK_EQ(test_wait(req, NULL), 0);
	CHECK_BYTES(buf, LONG, 3);
	CHECK_BYTES(o.buf, 100, 4);
	free(buf);
	pair_close(&o.l);
}

TEST(blocks_that_find_no_room_are_not_waited_for)
{
	struct peer *p = peer_spawn(8, absent_owner, NULL);
	struct pair l = pair_open(p, 8, 0);
	unsigned char *buf = malloc(LONG), b[100];
	struct sci_key key = key_of(&l);
	struct sci_req *req;

	CHECK(buf);
	msg_fill(buf, LONG, 3);
	msg_fill(b, sizeof(b), 4);
	CHECK_EQ(sci_ep_set(l.ep, SCI_PARAM_SINGLE_COPY_MIN, UINT64_MAX), 0);
	CHECK_EQ(sci_trecv(l.ep, l.to, 0, 1, 0, NULL, 0, NULL), 0);
	CHECK_EQ(sci_isend(l.to, buf, LONG, &req), 0);
	/* the peer asks for blocks; they follow until the ring is full or the peer is away */
	CHECK_EQ(sci_tsend(l.to, 0, 2, NULL, 0), 0);
	peer_expect(p, "away");
	for (int i = 0; i < 1000; i++)
		sci_progress(l.ep);
	CHECK_EQ(sci_test(req, NULL), -EAGAIN);
	CHECK_EQ(sci_write(l.to, &key, 0, b, sizeof(b)), 0);
	memset(b, 0, sizeof(b));
	CHECK_EQ(sci_read(l.to, &key, 0, b, sizeof(b)), 0);
	CHECK_BYTES(b, sizeof(b), 4);
	peer_send(p, "back");
	CHECK_EQ(test_wait(req, NULL), 0);
	free(buf);
	pair_close(&l);
	peer_join(p);
}

/* ---- what is refused ---- */

TEST(arguments_that_make_no_sense)
{
	struct peer *p = peer_spawn(8, owner, NULL);
	struct pair l = pair_open(p, 8, 0);
	struct sci_key key = key_of(&l), other = key;
	struct sci_req *req;
	struct iovec iov = { &other, 8 };
	void *buf;

	CHECK_EQ(sci_iwritev(NULL, &key, 0, &iov, 1, &req), -EINVAL);
	CHECK_EQ(sci_iwritev(l.to, NULL, 0, &iov, 1, &req), -EINVAL);
	CHECK_EQ(sci_iwritev(l.to, &key, 0, NULL, 1, &req), -EINVAL);
	CHECK_EQ(sci_iwritev(l.to, &key, 0, &iov, SCI_IOV_MAX + 1, &req),
		 -EINVAL);
	CHECK_EQ(sci_ireadv(l.to, &key, 0, NULL, 1, &req), -EINVAL);
	CHECK_EQ(sci_write(l.to, &key, PAGES - 7, &other, 8), -ERANGE);
	CHECK_EQ(sci_write(l.to, &key, PAGES + 1, &other, 0), -ERANGE);
	CHECK_EQ(sci_read(l.to, &key, UINT64_MAX, &other, 8), -ERANGE);

	/* keys that no peer has made */
	other.len = UINT64_MAX;
	CHECK_EQ(sci_write(l.to, &other, PAGES - 7, &key, 8), -ERANGE);
	other.offset = 1;
	CHECK_EQ(sci_write(l.to, &other, 0, &key, 8), -EINVAL);
	other = key;
	other.rail = 1;
	CHECK_EQ(sci_write(l.to, &other, 0, &key, 8), -EINVAL);
	other = key;
	other.segment = 1;
	CHECK_EQ(sci_write(l.to, &other, 0, &key, 8), -EPROTO);

	CHECK_EQ(sci_buf_alloc(l.ep, 4096, &buf), 0);
	CHECK_EQ(sci_buf_key(NULL, buf, 1, &other), -EINVAL);
	CHECK_EQ(sci_buf_key(l.ep, NULL, 1, &other), -EINVAL);
	CHECK_EQ(sci_buf_key(l.ep, buf, 0, &other), -EINVAL);
	CHECK_EQ(sci_buf_key(l.ep, buf, 4097, &other), -EINVAL);
	CHECK_EQ(sci_buf_key(l.ep, &key, 1, &other), -EINVAL);
	CHECK_EQ(sci_buf_key(l.ep, (char *)buf + 4000, 96, &other), 0);
	CHECK_EQ(other.len, 96);
	CHECK_EQ(sci_buf_free(l.ep, buf), 0);
	end(&l);
}

/* ---- ends ---- */

TEST(memory_that_was_freed)
{
	struct peer *p = peer_spawn(8, owner, NULL);
	struct pair l = pair_open(p, 8, 0);
	struct sci_key key = key_of(&l);
	char b[8] = "";
	int ret;

	CHECK_EQ(sci_write(l.to, &key, 0, b, 8), 0);
	CHECK_EQ(sci_send(l.to, NULL, 0), 0);
	CHECK_EQ(sci_recv(l.ep, l.to, NULL, 0, NULL), 0);
	/* a thread of the fabric reports the end of the segment */
	WAIT_UNTIL((ret = sci_write(l.to, &key, 0, b, 8)) != 0, TEST_WAIT_MS);
	CHECK_EQ(ret, -ENOENT);
	CHECK_EQ(sci_read(l.to, &key, 0, b, 8), -ENOENT);
	/* the connection stays up */
	CHECK_EQ(sci_peer_state(l.to), 0);
	pair_close(&l);
	peer_join(p);
}

/* Free the first of two pieces of memory when the peer asks for it. */
static void frees_one(struct peer *self, void *arg)
{
	struct owned o = own(self);
	struct sci_key key;
	void *second;

	(void)arg;
	CHECK_EQ(sci_buf_alloc(o.l.ep, PAGES, &second), 0);
	CHECK_EQ(sci_buf_key(o.l.ep, second, PAGES, &key), 0);
	CHECK_EQ(sci_send(o.l.to, &key, sizeof(key)), 0);
	CHECK_EQ(sci_recv(o.l.ep, o.l.to, NULL, 0, NULL), 0);
	CHECK_EQ(sci_buf_free(o.l.ep, o.buf), 0);
	CHECK_EQ(sci_send(o.l.to, NULL, 0), 0);
	pair_close(&o.l);
}

/*
 * The owner copies the bytes in pieces, and reports the error of each piece. The reports belong to
 * one write. Some writes have room for all their pieces at once, others have not.
 */
TEST(memory_that_was_freed_by_an_owner_that_copies)
{
	enum { LARGE = 8 << 20, SMALL = 16384 };
	static const size_t lens[] = { SMALL, 3 * SMALL, PAGES, LARGE };
	static unsigned char bytes[LARGE];
	struct sci_key freed, key;
	struct peer *p;
	struct pair l;

	test_needs_shm();
	setenv("SCI_SHM_CHECK", "1", 1);
	p = peer_spawn(8, frees_one, NULL);
	l = pair_open(p, 8, 0);
	freed = key_of(&l);
	key = key_of(&l);
	freed.len = LARGE;
	CHECK_EQ(sci_send(l.to, NULL, 0), 0);
	CHECK_EQ(sci_recv(l.ep, l.to, NULL, 0, NULL), 0);
	for (unsigned int i = 0; i < 20; i++) {
		CHECK_EQ(sci_write(l.to, &freed, 0, bytes, lens[i % ARRAY_LEN(lens)]), -ENOENT);
		msg_fill(bytes, SMALL, i);
		CHECK_EQ(sci_write(l.to, &key, 0, bytes, SMALL), 0);
		memset(bytes, 0, SMALL);
		CHECK_EQ(sci_read(l.to, &key, 0, bytes, SMALL), 0);
		CHECK_BYTES(bytes, SMALL, i);
	}
	pair_close(&l);
	peer_join(p);
}

static struct sci_key key_make(struct sci_ep *ep, size_t len)
{
	struct sci_key key;
	void *buf;

	CHECK_EQ(sci_buf_alloc(ep, len, &buf), 0);
	CHECK_EQ(sci_buf_key(ep, buf, len, &key), 0);
	return key;
}

/* The write has more pieces than messages may wait for a peer. */
TEST(a_long_write_leaves_room_for_an_answer)
{
	enum { LARGE = 40 << 20 };
	static const struct sci_rmw one = { SCI_RMW_ADD, SCI_RMW_UINT64, 1, 0 };
	static unsigned char bytes[LARGE];
	const struct iovec iov = { bytes, LARGE };
	struct sci_req *write, *add;
	struct sci_key key[2];
	struct couple c;

	test_needs_shm();
	setenv("SCI_SHM_CHECK", "1", 1);
	c = couple_open(NULL);
	key[0] = key_make(c.ep[0], sizeof(uint64_t));
	key[1] = key_make(c.ep[1], LARGE);
	CHECK_EQ(sci_irmw(c.to[1], &key[0], 0, &one, NULL, &add), 0);
	CHECK_EQ(sci_iwritev(c.to[0], &key[1], 0, &iov, 1, &write), 0);
	CHECK(sci_progress(c.ep[0]) >= 0);
	CHECK_EQ(sci_peer_state(c.to[0]), 0);
	CHECK_EQ(couple_wait(&c, write), 0);
	CHECK_EQ(couple_wait(&c, add), 0);
	couple_close(&c);
}

/* Writes without requests, as many as may wait, begin before there is a connection. */
TEST(all_writes_that_may_wait_for_a_connection)
{
	static const struct sci_addr addr = { 4, 2 };
	static unsigned char byte[1] = { 1 };
	const struct iovec iov = { byte, sizeof(byte) };
	struct sci_ep *ep[2];
	struct sci_key key;
	struct sci_peer *to;
	unsigned int n = 0;

	test_needs_shm();
	setenv("SCI_SHM_CHECK", "1", 1);
	ep[0] = test_ep_open(1, 0);
	ep[1] = test_ep_open(2, 0);
	key = key_make(ep[1], SCI_DETACHED_MAX);
	CHECK_EQ(sci_peer_open(ep[0], &addr, -1, &to), 0);
	while (!sci_iwritev(to, &key, n, &iov, 1, NULL))
		n++;
	CHECK_EQ(n, SCI_DETACHED_MAX);
	WAIT_UNTIL((sci_progress(ep[1]), !sci_flush(to, 0)), TEST_WAIT_MS);
	CHECK_EQ(sci_ep_close(ep[0]), 0);
	CHECK_EQ(sci_ep_close(ep[1]), 0);
}

/* The owner's handlers do not give the peer to the program, which needs no disconnect. */
TEST(a_peer_that_the_owner_only_serves)
{
	static const struct sci_rmw one = { SCI_RMW_ADD, SCI_RMW_UINT64, 1, 0 };
	static const struct sci_addr addr = { 4, 1 };
	struct sci_peer *to, *p;
	struct sci_req *req;
	struct sci_key key;
	struct couple c;

	test_needs_shm();
	setenv("SCI_SHM_CHECK", "1", 1);
	for (uint32_t i = 0; i < 2; i++)
		c.ep[i] = test_ep_open(i + 1, 0);
	key = key_make(c.ep[0], sizeof(uint64_t));
	CHECK_EQ(sci_peer_open(c.ep[1], &addr, TEST_WAIT_MS, &to), 0);
	CHECK_EQ(sci_irmw(to, &key, 0, &one, NULL, &req), 0);
	CHECK_EQ(couple_wait(&c, req), 0);
	CHECK_EQ(test_ep_stats(c.ep[0]).handled, 1);
	CHECK_EQ(sci_ep_close(c.ep[1]), 0);
	WAIT_UNTIL(sci_progress(c.ep[0]) >= 0 && !test_ep_stats(c.ep[0]).peers, TEST_WAIT_MS);
	CHECK(sci_progress(c.ep[0]) >= 0);
	CHECK_EQ(sci_peer_gone(c.ep[0], &p), -ENOENT);
	CHECK_EQ(sci_accept(c.ep[0], 0, &p), -ETIMEDOUT);
	CHECK_EQ(sci_ep_close(c.ep[0]), 0);
}

static void check_death(bool used_before)
{
	struct peer *p = peer_spawn(8, owner, NULL);
	struct pair l = pair_open(p, 8, 0);
	struct sci_key key = key_of(&l);
	char b[8] = "";
	int ret;

	if (used_before)
		CHECK_EQ(sci_write(l.to, &key, 0, b, 8), 0);
	peer_kill(p, SIGKILL);
	/* the memory outlives the peer until the death is noticed */
	WAIT_UNTIL((ret = sci_read(l.to, &key, 0, b, 8)) != 0, TEST_WAIT_MS);
	CHECK_EQ(ret, -ECONNRESET);
	CHECK_EQ(sci_write(l.to, &key, 0, b, 8), -ECONNRESET);
	CHECK_EQ(sci_disconnect(l.to), 0);
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

TEST(a_peer_that_died)
{
	check_death(false);
	check_death(true);
}

TEST(to_oneself)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *me = test_ep_connect(ep, 4, TEST_ID);
	unsigned char out[100], *buf;
	struct sci_key key;
	void *mem;

	CHECK_EQ(sci_buf_alloc(ep, 4096, &mem), 0);
	buf = mem;
	CHECK_EQ(sci_buf_key(ep, buf + 10, 100, &key), 0);
	msg_fill(out, 100, 1);
	CHECK_EQ(sci_write(me, &key, 0, out, 100), 0);
	CHECK_BYTES(buf + 10, 100, 1);
	CHECK(!buf[9] && !buf[110]);
	memset(out, 0, 100);
	CHECK_EQ(sci_read(me, &key, 0, out, 100), 0);
	CHECK_BYTES(out, 100, 1);
	CHECK_EQ(sci_buf_free(ep, mem), 0);
	CHECK_EQ(sci_ep_close(ep), 0);
}
