// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Exported and registered buffers, and which messages to them are zero-copy. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <sci/msg.h>

#include "selftests/harness.h"
#include "selftests/msg/peers.h"
#include "selftests/msg/servant.h"
#include "selftests/remote.h"

#define SLOW	(TEST_ASAN || TEST_TSAN)
#define CONTEXT	1u
#define TAG	5u
#define PAGE	4096u
#define MIN	8192u		/* shortest zero-copy message */
#define EDGE	64u		/* guard bytes on either side */

#define PARAMS								\
	.n = 3, .set = { { SCI_PARAM_EAGER_MAX, 2000 },			\
			 { SCI_PARAM_SINGLE_COPY_MIN, UINT64_MAX },	\
			 { SCI_PARAM_ZCOPY_MIN, MIN } }

static const struct config plain = { PARAMS };
static const struct config checked = { .flags = SCI_EP_CRC, PARAMS };

static unsigned char *buf_alloc(struct sci_ep *ep, size_t len)
{
	void *buf = NULL;

	CHECK_EQ(sci_buf_alloc(ep, len, &buf), 0);
	CHECK(buf);
	return buf;
}

static unsigned char *pages_map(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static struct work message(size_t len, uint64_t seed)
{
	return (struct work){ .tagged = 1, .context = CONTEXT, .tag = TAG,
			      .len = len, .seed = seed };
}

/* ---- receives into buffers ---- */

static void edges_set(unsigned char *p, size_t len)
{
	memset(p - EDGE, GUARD, EDGE);
	memset(p, 0, len);
	memset(p + len, GUARD, EDGE);
}

static void edges_check(const unsigned char *p, size_t len)
{
	for (size_t i = 0; i < EDGE; i++) {
		CHECK(p[i - EDGE] == GUARD);
		CHECK(p[len + i] == GUARD);
	}
}

/*
 * Receive a message of @len bytes into @room bytes at @p. The EDGE bytes before
 * and after them are guard bytes. Return the number of zero-copy sends.
 */
static unsigned int receive(struct pair *l, unsigned char *p, size_t len,
			    size_t room, bool posted)
{
	uint64_t before = tell_stats(l).sent_zcopy;
	struct work m = message(len, len + room);
	size_t part = len < room ? len : room;
	struct sci_req *req;
	struct sci_status st;

	edges_set(p, room);
	if (!posted) {
		tell_send(l, &m);
		CHECK_EQ(sci_tprobe(l->ep, l->to, CONTEXT, TAG, 0,
				    TEST_WAIT_MS, NULL), 0);
	}
	CHECK_EQ(sci_itrecv(l->ep, posted ? NULL : l->to, CONTEXT, TAG, 0, p,
			    room, &req), 0);
	if (posted)
		tell_send(l, &m);
	CHECK_EQ(test_wait(req, &st), len > room ? -EMSGSIZE : 0);
	CHECK_EQ(st.len, len);
	CHECK_BYTES(p, part, m.seed);
	for (size_t i = part; i < room; i++)
		CHECK(p[i] == 0);
	edges_check(p, room);
	tell_finish(l);
	return tell_stats(l).sent_zcopy - before;
}

static void send_from(struct pair *l, unsigned char *p, size_t len)
{
	struct work m = message(len, len);
	struct sci_req *req;

	msg_fill(p, len, len);
	CHECK_EQ(sci_itsend(l->to, CONTEXT, TAG, p, len, &req), 0);
	tell_recv(l, &m);
	CHECK_EQ(test_wait(req, NULL), 0);
	tell_finish(l);
	CHECK_BYTES(p, len, len);
}

/* ---- buffers of the library ---- */

static void check_fresh(const unsigned char *p, size_t len)
{
	CHECK_EQ((uintptr_t)p % PAGE, 0);
	for (size_t i = 0; i < len; i++)
		CHECK(p[i] == 0);
}

TEST(buffers_are_pages_of_zeroes)
{
	static const size_t len[] = {
		1, 4095, 4096, 4097, 100000, 5 << 20, (33 << 20) + 1,
	};
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	unsigned char *p[ARRAY_LEN(len)];

	for (size_t i = 0; i < ARRAY_LEN(len); i++) {
		p[i] = buf_alloc(ep, len[i]);
		check_fresh(p[i], SLOW && i > 4 ? PAGE : len[i]);
		p[i][0] = p[i][len[i] - 1] = 1;
	}
	/* memory of a freed buffer is zeroed again */
	for (size_t i = 0; i < 5; i++) {
		memset(p[i], 0xff, len[i]);
		CHECK_EQ(sci_buf_free(ep, p[i]), 0);
		p[i] = buf_alloc(ep, len[i]);
		check_fresh(p[i], len[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(len); i++)
		CHECK_EQ(sci_buf_free(ep, p[i]), 0);
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(what_is_no_buffer)
{
	struct sci_ep *ep = test_ep_open(1, 0), *other = test_ep_open(2, 0);
	unsigned char *p = buf_alloc(ep, 2 * PAGE);
	void *none;

	CHECK_EQ(sci_buf_alloc(NULL, 1, &none), -EINVAL);
	CHECK_EQ(sci_buf_alloc(ep, 0, &none), -EINVAL);
	CHECK_EQ(sci_buf_alloc(ep, 1, NULL), -EINVAL);
	CHECK(sci_buf_alloc(ep, SIZE_MAX, &none) < 0);
	CHECK(sci_buf_alloc(ep, SIZE_MAX / 2, &none) < 0);
	CHECK_EQ(sci_buf_free(NULL, p), -EINVAL);
	CHECK_EQ(sci_buf_free(ep, NULL), -EINVAL);
	CHECK_EQ(sci_buf_free(ep, &none), -EINVAL);
	CHECK_EQ(sci_buf_free(ep, p + 1), -EINVAL);
	CHECK_EQ(sci_buf_free(ep, p + PAGE), -EINVAL);
	CHECK_EQ(sci_buf_free(other, p), -EINVAL);
	CHECK_EQ(sci_buf_free(ep, p), 0);
	CHECK_EQ(sci_buf_free(ep, p), -EINVAL);
	CHECK_EQ(sci_ep_close(ep), 0);
	CHECK_EQ(sci_ep_close(other), 0);
}

TEST(close_takes_the_buffers)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);

	buf_alloc(ep, 1 << 20);
	CHECK_EQ(sci_ep_close(ep), 0);
	leak_check_begin();
	for (int i = 0; i < 10; i++) {
		ep = test_ep_open(TEST_ID, 0);
		for (int k = 1; k <= 10; k++)
			buf_alloc(ep, k * 300000);
		CHECK_EQ(sci_ep_close(ep), 0);
	}
	leak_check_end();
}

/* ---- zero-copy ---- */

static void zero_copy_receives(const struct config *c)
{
	static const size_t len[] = {
		MIN, MIN + 1, 20001, 65536, 1 << 20, (5 << 20) + 3,
	};
	static const size_t at[] = { EDGE, 65, 4095, 4096, 70007 };
	size_t size = 70007 + (5 << 20) + 3 + EDGE;
	struct pair l = servant_begin(c);
	unsigned char *p = buf_alloc(l.ep, size);

	for (size_t i = 0; i < ARRAY_LEN(len); i++)
		for (size_t k = 0; k < (i < 4 ? ARRAY_LEN(at) : 2); k++)
			CHECK_EQ(receive(&l, p + at[k], len[i], len[i],
					 (i + k) & 1), 1);
	/* the message ends EDGE bytes before the end of the buffer */
	CHECK_EQ(receive(&l, p + size - EDGE - 9999, 9999, 9999, true), 1);
	CHECK_EQ(sci_buf_free(l.ep, p), 0);
	servant_end(&l);
}

TEST(zero_copy_receives)
{
	zero_copy_receives(&plain);
}

TEST(zero_copy_receives_checked)
{
	zero_copy_receives(&checked);
}

/* Shorter messages arrive in buffers as they do in any memory. */
TEST(others_into_buffers)
{
	static const size_t len[] = { 0, 1, 62, 300, 2000, 2001, MIN - 1 };
	struct pair l = servant_begin(&plain);
	unsigned char *p = buf_alloc(l.ep, 5 * PAGE);

	for (size_t i = 0; i < ARRAY_LEN(len); i++)
		for (int posted = 0; posted < 2; posted++)
			CHECK_EQ(receive(&l, p + EDGE + i, len[i], len[i],
					 posted), 0);
	servant_end(&l);
}

/* The buffer may be longer than the message, or shorter. */
TEST(zero_copy_receives_of_other_lengths)
{
	struct pair l = servant_begin(&plain);
	unsigned char *p = buf_alloc(l.ep, 1 << 20);

	for (int posted = 0; posted < 2; posted++) {
		receive(&l, p + 100, 30000, 40001, posted);
		receive(&l, p + 101, 40000, 30001, posted);
		receive(&l, p + 101, 300000, 100, posted);
		receive(&l, p + 101, 300000, 1, posted);
		receive(&l, p + 101, 300000, 0, posted);
	}
	servant_end(&l);
}

TEST(zero_copy_sends)
{
	static const size_t len[] = {
		0, 1, 62, 300, 2000, 2001, MIN - 1, MIN, MIN + 1, 100001,
		(5 << 20) + 3,
	};
	struct pair l;
	unsigned char *p;

	if (remote_machines())
		SKIP("memory of other machines is slow to read");
	l = servant_begin(&plain);
	p = buf_alloc(l.ep, 6 << 20);
	for (size_t i = 0; i < ARRAY_LEN(len); i++) {
		uint64_t before = test_ep_stats(l.ep).sent_zcopy;

		send_from(&l, p + i * 7, len[i]);
		CHECK_EQ(test_ep_stats(l.ep).sent_zcopy - before,
			 len[i] >= MIN);
	}
	servant_end(&l);
}

/* ZCOPY_MIN may be any length; UINT64_MAX disables zero-copy messages. */
TEST(zero_copy_from_any_length_on)
{
	static const uint64_t min[] = { 0, 100, 30000, UINT64_MAX };

	for (size_t i = 0; i < ARRAY_LEN(min); i++) {
		const struct config c = { .n = 2, .set = {
			{ SCI_PARAM_EAGER_MAX, 0 },
			{ SCI_PARAM_ZCOPY_MIN, min[i] } } };
		struct pair l = servant_begin(&c);
		unsigned char *p = buf_alloc(l.ep, 10 * PAGE);

		/* a message that fits a line is never zero-copy */
		for (size_t len = 65; len < 40000; len = len * 3 + 1)
			CHECK_EQ(receive(&l, p + EDGE, len, len, len & 1),
				 len >= min[i]);
		servant_end(&l);
	}
}

TEST(buffers_of_more_than_4_mib)
{
	const size_t size = 13 << 20, len = 9 << 20;
	struct pair l = servant_begin(&plain);
	unsigned char *p = buf_alloc(l.ep, size);

	/* messages over the whole buffer, and across each multiple of 4 MiB */
	CHECK_EQ(receive(&l, p + EDGE, len, len, true), 1);
	CHECK_EQ(receive(&l, p + size - EDGE - len, len, len, false), 1);
	for (size_t at = 4 << 20; at < size; at += 4 << 20)
		CHECK_EQ(receive(&l, p + at - 5000, 10000, 10000, true), 1);
	send_from(&l, p + (4 << 20) - 1, len);
	CHECK_EQ(sci_buf_free(l.ep, p), 0);
	servant_end(&l);
}

TEST(many_small_buffers)
{
	enum { N = SLOW ? 60 : 400 };
	struct pair l = servant_begin(&plain);
	static unsigned char *p[N];
	uint64_t before;

	for (unsigned int i = 0; i < N; i++)
		p[i] = buf_alloc(l.ep, 3 * PAGE);
	before = tell_stats(&l).sent_zcopy;
	/* free every other buffer, and allocate it again */
	for (unsigned int i = 0; i < N; i += 2)
		CHECK_EQ(sci_buf_free(l.ep, p[i]), 0);
	for (unsigned int i = 0; i < N; i += 2)
		p[i] = buf_alloc(l.ep, 3 * PAGE);
	for (unsigned int i = 0; i < N; i++) {
		struct work m = message(MIN + i, i);

		tell_send(&l, &m);
		CHECK_EQ(sci_trecv(l.ep, l.to, CONTEXT, TAG, 0, p[i], MIN + i,
				   NULL), 0);
	}
	for (unsigned int i = 0; i < N; i++) {
		unsigned int k = i * 7 % N;

		CHECK_BYTES(p[k], MIN + k, k);
		CHECK_EQ(sci_buf_free(l.ep, p[k]), 0);
	}
	tell_finish(&l);
	CHECK_EQ(tell_stats(&l).sent_zcopy - before, N);
	servant_end(&l);
}

/* Each round allocates a buffer of another length in the place of the last one. */
TEST(buffers_come_and_go)
{
	struct pair l = servant_begin(&plain);

	for (unsigned int i = 0; i < (SLOW ? 20 : 100); i++) {
		size_t len = MIN + i % 5 * 10000;
		unsigned char *p = buf_alloc(l.ep, len + 2 * EDGE);

		CHECK_EQ(receive(&l, p + EDGE, len, len, i & 1), 1);
		send_from(&l, p, len);
		CHECK_EQ(sci_buf_free(l.ep, p), 0);
	}
	servant_end(&l);
}

/*
 * Another process of this node has a segment with the next id, so the fabric
 * takes the id after it.  A later segment gets another id: a peer that has not
 * yet noticed the end of the first segment would take the second one for it.
 */
TEST(segment_ids_are_not_used_again)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	sci_desc_t sd = test_open();
	struct sci_key key[3];

	for (unsigned int i = 0; i < ARRAY_LEN(key); i++) {
		unsigned char *p = buf_alloc(ep, PAGE);

		CHECK_EQ(sci_buf_key(ep, p, PAGE, &key[i]), 0);
		CHECK_EQ(sci_buf_free(ep, p), 0);
		if (!i)
			test_segment(sd, key[0].segment + 1, PAGE, 0);
	}
	CHECK_EQ(key[1].segment, key[0].segment + 2);
	CHECK(key[2].segment != key[1].segment);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* Peers unmap freed buffers. Here the endpoint is its own peer. */
TEST(freed_buffers_are_let_go)
{
	struct sci_ep *ep = test_ep_config(TEST_ID, &plain);
	struct sci_peer *me = test_ep_connect(ep, 4, TEST_ID);
	unsigned int maps = count_shared_maps();

	for (unsigned int i = 0; i < 60; i++) {
		unsigned char *p = buf_alloc(ep, 2 * PAGE + MIN);
		struct sci_req *req[2];

		CHECK_EQ(sci_irecv(ep, me, p, MIN, &req[0]), 0);
		CHECK_EQ(sci_isend(me, p + MIN, MIN, &req[1]), 0);
		CHECK_EQ(sci_waitall(req, 2, TEST_WAIT_MS, NULL), 0);
		CHECK_EQ(sci_buf_free(ep, p), 0);
	}
	/* the endpoint may unmap the last buffers a moment later */
	WAIT_UNTIL((sci_progress(ep), count_shared_maps() <= maps), TEST_WAIT_MS);
	CHECK_EQ(test_ep_stats(ep).sent_zcopy, 60);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* Many receives are posted into one buffer, side by side, from any source. */
TEST(many_messages_into_one_buffer)
{
	enum { N = SLOW ? 30 : 100, EACH = 20011 };
	struct pair l = servant_begin(&plain);
	unsigned char *p = buf_alloc(l.ep, N * EACH);
	struct sci_req *req[N];

	for (unsigned int i = 0; i < N; i++)
		CHECK_EQ(sci_irecv(l.ep, NULL, p + i * EACH, EACH, &req[i]),
			 0);
	for (unsigned int i = 0; i < N; i++)
		tell_send(&l, &(struct work){ .len = EACH - i % 3,
					      .seed = i });
	CHECK_EQ(sci_waitall(req, N, TEST_WAIT_MS, NULL), 0);
	for (unsigned int i = 0; i < N; i++) {
		CHECK_BYTES(p + i * EACH, EACH - i % 3, i);
		for (unsigned int k = EACH - i % 3; k < EACH; k++)
			CHECK(p[i * EACH + k] == 0);
	}
	servant_end(&l);
}

TEST(pieces_of_buffers)
{
	struct pair l = servant_begin(&plain);
	unsigned char *p = buf_alloc(l.ep, 100000);
	unsigned char *q = buf_alloc(l.ep, 100000);
	unsigned char *own = malloc(100000);
	struct iovec iov[4] = {
		{ p + 3, 30000 }, { own, 20001 }, { NULL, 0 }, { q, 9999 },
	};
	struct work m = message(60000, 3);
	struct sci_req *req;

	for (int posted = 0; posted < 2; posted++) {
		memset(own, 0, 100000);
		if (!posted)
			tell_send(&l, &m);
		CHECK_EQ(sci_itrecvv(l.ep, l.to, CONTEXT, TAG, 0, iov, 4,
				     &req), 0);
		if (posted)
			tell_send(&l, &m);
		CHECK_EQ(test_wait(req, NULL), 0);
		CHECK_BYTES(p + 3, 30000, 3);
		CHECK_EQ(msg_differs(own, 30000, 20001, 3), -1);
		CHECK_EQ(msg_differs(q, 50001, 9999, 3), -1);
		CHECK_EQ(own[20001] | q[9999] | p[2] | p[30003], 0);
		/* send the message back from the same pieces */
		CHECK_EQ(sci_itsendv(l.to, CONTEXT, TAG, iov, 4, 0, &req), 0);
		tell_recv(&l, &m);
		CHECK_EQ(test_wait(req, NULL), 0);
		tell_finish(&l);
	}
	free(own);
	servant_end(&l);
}

/* ---- both sides ---- */

static void both_ways(struct pair *l, unsigned int node)
{
	static const size_t len[] = { MIN - 1, MIN, 70001, 1 << 20 };
	unsigned char *in = buf_alloc(l->ep, 2 << 20);
	unsigned char *out = buf_alloc(l->ep, 2 << 20);

	for (unsigned int i = 0; i < (SLOW ? 16 : 60); i++) {
		size_t n = len[i % ARRAY_LEN(len)];
		struct sci_req *req[2];

		msg_fill(out + i, n, 2 * i + (node == 4));
		CHECK_EQ(sci_irecv(l->ep, NULL, in + 9 * i, n, &req[0]), 0);
		CHECK_EQ(sci_isend(l->to, out + i, n, &req[1]), 0);
		CHECK_EQ(sci_waitall(req, 2, TEST_WAIT_MS, NULL), 0);
		CHECK_BYTES(in + 9 * i, n, 2 * i + (node == 8));
	}
	pair_meet(l);
	CHECK_EQ(sci_buf_free(l->ep, in), 0);
	CHECK_EQ(sci_buf_free(l->ep, out), 0);
	pair_close(l);
}

static void other_way(struct peer *self, void *arg)
{
	struct pair l = pair_config(self, 4, arg);

	both_ways(&l, 4);
}

TEST(from_buffer_to_buffer_both_ways)
{
	struct peer *p = peer_spawn(8, other_way, (void *)(uintptr_t)&plain);
	struct pair l = pair_config(p, 8, &plain);

	both_ways(&l, 8);
	peer_join(p);
}

TEST(from_buffer_to_buffer_of_itself)
{
	struct sci_ep *ep = test_ep_config(TEST_ID, &plain);
	struct sci_peer *me = test_ep_connect(ep, 4, TEST_ID);
	unsigned char *p = buf_alloc(ep, 1 << 20);
	struct sci_req *req[2];

	for (size_t len = MIN; len < 1 << 19; len *= 3) {
		msg_fill(p, len, len);
		CHECK_EQ(sci_irecv(ep, me, p + (1 << 19), len, &req[0]), 0);
		CHECK_EQ(sci_isend(me, p, len, &req[1]), 0);
		CHECK_EQ(sci_waitall(req, 2, TEST_WAIT_MS, NULL), 0);
		CHECK_BYTES(p + (1 << 19), len, len);
	}
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* A buffer of another endpoint is ordinary memory: no receive is zero-copy. */
TEST(buffers_of_another_endpoint)
{
	struct pair l = servant_begin(&plain);
	struct sci_ep *other = test_ep_config(TEST_ID + 1, &plain);
	unsigned char *p = buf_alloc(other, 1 << 20);

	for (int posted = 0; posted < 2; posted++)
		CHECK_EQ(receive(&l, p + 100, 50000, 50000, posted), 0);
	send_from(&l, p, 50000);
	CHECK_EQ(sci_ep_close(other), 0);
	servant_end(&l);
}

/* Receives into a buffer that is shared with this endpoint are zero-copy. */
TEST(shared_buffers)
{
	struct pair l = servant_begin(&plain);
	struct sci_ep *other = test_ep_config(TEST_ID + 1, &plain);
	unsigned char *p = buf_alloc(other, 1 << 20), *q;

	CHECK_EQ(sci_buf_share(l.ep, other, p + PAGE), -EINVAL);
	CHECK_EQ(sci_buf_share(other, other, p), -EINVAL);
	CHECK_EQ(sci_buf_share(l.ep, other, p), 0);
	CHECK_EQ(sci_buf_share(l.ep, other, p), -EEXIST);
	for (int posted = 0; posted < 2; posted++)
		CHECK_EQ(receive(&l, p + 100, 50000, 50000, posted), 1);
	send_from(&l, p, 50000);
	/* a buffer that the endpoint allocates afterwards is another segment */
	q = buf_alloc(l.ep, 1 << 16);
	CHECK_EQ(receive(&l, q + 100, 50000, 50000, true), 1);
	CHECK_EQ(sci_buf_free(l.ep, p), 0);
	CHECK_EQ(receive(&l, p + 100, 50000, 50000, true), 0);
	CHECK_EQ(sci_buf_share(l.ep, other, p), 0);
	CHECK_EQ(receive(&l, p + 100, 50000, 50000, true), 1);
	/* closing an endpoint ends its shares */
	servant_end(&l);
	CHECK_EQ(sci_buf_free(other, p), 0);
	CHECK_EQ(sci_ep_close(other), 0);
}

TEST(buffers_in_use_are_not_freed)
{
	struct pair l = servant_begin(&plain);
	unsigned char *p = buf_alloc(l.ep, 5 * PAGE), *q;
	struct sci_req *in, *out;

	CHECK_EQ(sci_irecv(l.ep, l.to, p + PAGE, 3 * PAGE, &in), 0);
	CHECK_EQ(sci_buf_free(l.ep, p), -EBUSY);
	/* other buffers can be freed */
	q = buf_alloc(l.ep, PAGE);
	CHECK_EQ(sci_buf_free(l.ep, q), 0);
	tell_send(&l, &(struct work){ .len = 3 * PAGE, .seed = 1 });
	CHECK_EQ(test_wait(in, NULL), 0);
	CHECK_BYTES(p + PAGE, 3 * PAGE, 1);
	CHECK_EQ(sci_irecv(l.ep, l.to, p, 1, &in), 0);
	CHECK_EQ(sci_buf_free(l.ep, p), -EBUSY);
	CHECK_EQ(sci_cancel(in), 0);
	CHECK_EQ(test_wait(in, NULL), -ECANCELED);
	/* no receive matches this message yet */
	msg_fill(p, 4 * PAGE, 2);
	CHECK_EQ(sci_isend(l.to, p, 4 * PAGE, &out), 0);
	CHECK_EQ(sci_buf_free(l.ep, p), -EBUSY);
	tell_recv(&l, &(struct work){ .len = 4 * PAGE, .seed = 2 });
	CHECK_EQ(test_wait(out, NULL), 0);
	CHECK_EQ(sci_buf_free(l.ep, p), 0);
	servant_end(&l);
}

/* ---- memory of the program's own ---- */

TEST(registered_memory)
{
	const size_t size = 32 * PAGE;
	unsigned char *p = pages_map(size);
	struct pair l = servant_begin(&plain);

	msg_fill(p, size, 1);
	CHECK_EQ(sci_buf_register(l.ep, p, size), 0);
	CHECK_BYTES(p, size, 1);
	for (int posted = 0; posted < 2; posted++) {
		CHECK_EQ(receive(&l, p + 100, MIN, MIN, posted), 1);
		CHECK_EQ(receive(&l, p + 100, 100000, 100000, posted), 1);
		CHECK_EQ(receive(&l, p + 99, 1000, 1000, posted), 0);
		CHECK_EQ(receive(&l, p + 99, 90000, 80000, posted), 1);
	}
	send_from(&l, p + 77, 70000);
	CHECK_EQ(sci_buf_free(l.ep, p), -EINVAL);
	msg_fill(p, size, 2);
	CHECK_EQ(sci_buf_unregister(l.ep, p, size), 0);
	/* the memory keeps its bytes */
	CHECK_BYTES(p, size, 2);
	CHECK_EQ(receive(&l, p + 100, 100000, 100000, true), 0);
	CHECK_EQ(munmap(p, size), 0);
	servant_end(&l);
}

TEST(registrations_are_counted)
{
	const size_t size = 16 * PAGE;
	unsigned char *p = pages_map(size);
	struct pair l = servant_begin(&plain);

	for (int i = 0; i < 3; i++)
		CHECK_EQ(sci_buf_register(l.ep, p, size), 0);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(receive(&l, p + 64, MIN, MIN, i & 1), 1);
		CHECK_EQ(sci_buf_unregister(l.ep, p, size), 0);
	}
	CHECK_EQ(receive(&l, p + 64, MIN, MIN, true), 0);
	CHECK(sci_buf_unregister(l.ep, p, size) < 0);
	CHECK_EQ(sci_buf_register(l.ep, p, size), 0);
	CHECK_EQ(receive(&l, p + 64, MIN, MIN, true), 1);
	/* closing the endpoint unregisters the memory */
	servant_end(&l);
	memset(p, 1, size);
	CHECK_EQ(munmap(p, size), 0);
}

TEST(registrations_that_are_refused)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	unsigned char *p = pages_map(16 * PAGE), *hole = pages_map(2 * PAGE);
	unsigned char *shared = test_shared(PAGE);

	CHECK_EQ(munmap(hole + PAGE, PAGE), 0);
	CHECK_EQ(sci_buf_register(ep, p + 4 * PAGE, 4 * PAGE), 0);
	CHECK_EQ(sci_buf_register(NULL, p, PAGE), -EINVAL);
	CHECK_EQ(sci_buf_register(ep, NULL, PAGE), -EINVAL);
	CHECK_EQ(sci_buf_register(ep, p, 0), -EINVAL);
	CHECK_EQ(sci_buf_register(ep, p + 1, PAGE), -EINVAL);
	CHECK_EQ(sci_buf_register(ep, p, PAGE + 1), -EINVAL);
	CHECK_EQ(sci_buf_register(ep, p, 5 * PAGE), -EEXIST);
	CHECK_EQ(sci_buf_register(ep, p, 16 * PAGE), -EEXIST);
	CHECK_EQ(sci_buf_register(ep, p + 5 * PAGE, PAGE), -EEXIST);
	CHECK_EQ(sci_buf_register(ep, p + 7 * PAGE, 2 * PAGE), -EEXIST);
	CHECK_EQ(sci_buf_register(ep, shared, PAGE), -EFAULT);
	CHECK_EQ(sci_buf_register(ep, hole, 2 * PAGE), -EFAULT);
	CHECK(sci_buf_unregister(ep, p, PAGE) < 0);
	CHECK(sci_buf_unregister(ep, p + 4 * PAGE, PAGE) < 0);
	/* ranges beside a registered one are accepted */
	CHECK_EQ(sci_buf_register(ep, p, 4 * PAGE), 0);
	CHECK_EQ(sci_buf_register(ep, p + 8 * PAGE, 8 * PAGE), 0);
	CHECK_EQ(sci_buf_unregister(ep, p + 4 * PAGE, 4 * PAGE), 0);
	CHECK_EQ(sci_buf_unregister(ep, p, 4 * PAGE), 0);
	CHECK_EQ(sci_buf_unregister(ep, p + 8 * PAGE, 8 * PAGE), 0);
	CHECK_EQ(sci_ep_close(ep), 0);
	munmap(p, 16 * PAGE);
	munmap(hole, PAGE);
}

/* Replace pages of registered memory by others, as free() and malloc() may do. */
static void pages_replace(unsigned char *p, size_t len)
{
	CHECK_EQ(munmap(p, len), 0);
	CHECK(mmap(p, len, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p);
}

TEST(registered_pages_that_were_replaced)
{
	const size_t size = 16 * PAGE;
	unsigned char *p = pages_map(size);
	struct pair l = servant_begin(&plain);
	struct sci_key before, after;

	if (!(sci_ep_traits(l.ep) & SCI_TRAIT_REGISTER_COPIES)) {
		servant_end(&l);
		SKIP("the fabric does not know of replaced pages");
	}
	CHECK_EQ(sci_buf_register(l.ep, p, size), 0);
	CHECK_EQ(sci_buf_key(l.ep, p, size, &before), 0);
	/* all pages, then some of them, then none */
	for (unsigned int n = 0; n < 3; n++) {
		if (n < 2)
			pages_replace(p + n * 4 * PAGE, size - n * 8 * PAGE);
		msg_fill(p, size, n + 1);
		CHECK_EQ(sci_buf_register(l.ep, p, size), 0);
		CHECK_BYTES(p, size, n + 1);
		CHECK_EQ(receive(&l, p + EDGE, size - 2 * EDGE, size - 2 * EDGE, n & 1), 1);
	}
	CHECK_EQ(sci_buf_key(l.ep, p, size, &after), 0);
	CHECK_EQ(before.segment, after.segment);
	/* memory that cannot be registered is not a registration */
	CHECK_EQ(munmap(p + PAGE, PAGE), 0);
	CHECK_EQ(sci_buf_register(l.ep, p, size), -EFAULT);
	/* the other pages are still those that peers use */
	CHECK_EQ(receive(&l, p + 2 * PAGE + EDGE, size - 2 * PAGE - 2 * EDGE,
			 size - 2 * PAGE - 2 * EDGE, false), 1);
	for (unsigned int n = 0; n < 4; n++)
		CHECK_EQ(sci_buf_unregister(l.ep, p, size), 0);
	CHECK(sci_buf_unregister(l.ep, p, size) < 0);
	CHECK_EQ(munmap(p, size), 0);
	servant_end(&l);
}

/* Each receive covers registered and ordinary pages. */
TEST(receives_half_in_registered_memory)
{
	unsigned char *p = pages_map(16 * PAGE);
	struct pair l = servant_begin(&plain);

	CHECK_EQ(sci_buf_register(l.ep, p + 4 * PAGE, 8 * PAGE), 0);
	for (int posted = 0; posted < 2; posted++) {
		receive(&l, p + 9 * PAGE + 5, 5 * PAGE, 5 * PAGE, posted);
		receive(&l, p + PAGE + 5, 9 * PAGE, 9 * PAGE, posted);
		receive(&l, p + EDGE, 15 * PAGE, 15 * PAGE, posted);
	}
	servant_end(&l);
	munmap(p, 16 * PAGE);
}
