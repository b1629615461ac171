// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Probes, and messages that are matched in one call and received in another. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <sci/msg.h>

#include "selftests/harness.h"
#include "selftests/msg/peers.h"
#include "selftests/msg/servant.h"

/* A length of each protocol: short, lines, eager, rendezvous or single copy. */
static const size_t lengths[] = { 20, 300, 3000, 100000 };

#define BY_BLOCKS							\
	.n = 2, .set = { { SCI_PARAM_EAGER_MAX, 4096 },			\
			 { SCI_PARAM_SINGLE_COPY_MIN, UINT64_MAX } }
#define BY_SINGLE_COPY							\
	.n = 2, .set = { { SCI_PARAM_EAGER_MAX, 4096 },			\
			 { SCI_PARAM_SINGLE_COPY_MIN, 5000 } }

static void run(const struct config *c, void (*fn)(struct pair *l))
{
	struct peer *p = peer_spawn(8, servant, (void *)(uintptr_t)c);
	struct pair l = pair_config(p, 8, c);

	fn(&l);
	tell_leave(&l);
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

/* Define a test of rendezvous in blocks and a test of single copies. */
#define MATCH_TEST(name)						\
static void name(struct pair *l);					\
TEST(name)								\
{									\
	static const struct config c = { BY_BLOCKS };			\
									\
	run(&c, name);							\
}									\
TEST(name##_single_copy)						\
{									\
	static const struct config c = { BY_SINGLE_COPY };		\
									\
	run(&c, name);							\
}									\
static void name(struct pair *l)

/* ---- probes ---- */

MATCH_TEST(probes_leave_the_message)
{
	static unsigned char buf[100000];
	struct sci_status st;

	CHECK_EQ(sci_probe(l->ep, NULL, 0, &st), -EAGAIN);
	CHECK_EQ(sci_probe(l->ep, l->to, 2, NULL), -ETIMEDOUT);
	CHECK_EQ(sci_tprobe(l->ep, NULL, 1, 5, 0, 0, NULL), -EAGAIN);
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		size_t len = lengths[i];

		tell_send(l, &(struct work){ .tagged = 1, .context = 1,
					     .tag = 5, .len = len });
		for (int j = 0; j < 3; j++) {
			CHECK_EQ(sci_tprobe(l->ep, j == 1 ? NULL : l->to, 1,
					    4, 1, TEST_WAIT_MS, &st), 0);
			CHECK(st.peer == l->to);
			CHECK_EQ(st.len, len);
			CHECK_EQ(st.tag, 5);
			CHECK_EQ(st.context, 1);
			CHECK_EQ(st.error, 0);
		}
		/* only a probe with the right context and tag finds the message */
		CHECK_EQ(sci_tprobe(l->ep, l->to, 1, 5, 0, 0, NULL), 0);
		CHECK_EQ(sci_tprobe(l->ep, NULL, 2, 5, 0, 0, NULL), -EAGAIN);
		CHECK_EQ(sci_tprobe(l->ep, NULL, 1, 4, 0, 0, NULL), -EAGAIN);
		CHECK_EQ(sci_probe(l->ep, NULL, 0, NULL), -EAGAIN);
		CHECK_EQ(sci_trecv(l->ep, NULL, 1, 5, 0, buf, len, NULL), 0);
		CHECK_BYTES(buf, len, 0);
		CHECK_EQ(sci_tprobe(l->ep, NULL, 1, 5, 0, 0, NULL), -EAGAIN);
	}
}

/* A receive that waits for a message takes it before any probe sees it. */
MATCH_TEST(probes_do_not_see_what_was_asked_for)
{
	unsigned char buf[20];
	struct sci_status st;
	struct sci_req *req;

	CHECK_EQ(sci_irecv(l->ep, NULL, buf, sizeof(buf), &req), 0);
	tell_send(l, &(struct work){ .len = 20, .seed = 1 });
	tell_send(l, &(struct work){ .len = 10, .seed = 2 });
	CHECK_EQ(sci_probe(l->ep, NULL, TEST_WAIT_MS, &st), 0);
	CHECK_EQ(st.len, 10);
	CHECK_EQ(test_wait(req, &st), 0);
	CHECK_EQ(st.len, 20);
	CHECK_EQ(sci_recv(l->ep, NULL, buf, 10, NULL), 0);
	CHECK_BYTES(buf, 10, 2);
}

/* ---- matching apart from copying ---- */

static struct sci_msg *match(struct pair *l, uint64_t tag, size_t len)
{
	struct sci_status st;
	struct sci_msg *msg = NULL;

	if (tag)
		CHECK_EQ(sci_tmatch(l->ep, NULL, 1, tag, 0, TEST_WAIT_MS,
				    &msg, &st), 0);
	else
		CHECK_EQ(sci_match(l->ep, l->to, TEST_WAIT_MS, &msg, &st), 0);
	CHECK(msg);
	CHECK(st.peer == l->to);
	CHECK_EQ(st.len, len);
	CHECK_EQ(st.tag, tag);
	CHECK_EQ(st.error, 0);
	return msg;
}

static void send_two(struct pair *l, uint64_t tag, size_t len)
{
	struct work m = {
		.tagged = tag != 0, .context = 1, .tag = tag, .len = len,
	};

	m.seed = 1;
	tell_send(l, &m);
	m.seed = 2;
	tell_send(l, &m);
}

/* Match a message: another receive gets the message behind it. */
static void match_recv(struct pair *l, uint64_t tag, size_t len)
{
	struct guarded g = guarded_alloc(len, 7), h = guarded_alloc(len, 0);
	struct iovec iov[3] = {
		{ g.p, len / 3 }, { NULL, 0 },
		{ g.p + len / 3, len - len / 3 },
	};
	struct sci_status st;
	struct sci_req *req;
	struct sci_msg *msg;

	send_two(l, tag, len);
	msg = match(l, tag, len);
	if (tag)
		CHECK_EQ(sci_trecv(l->ep, NULL, 1, tag, 0, h.p, len, NULL), 0);
	else
		CHECK_EQ(sci_recv(l->ep, NULL, h.p, len, NULL), 0);
	CHECK_BYTES(h.p, len, 2);
	CHECK_EQ(sci_tprobe(l->ep, NULL, 1, tag, 0, 0, NULL), -EAGAIN);
	CHECK_EQ(sci_probe(l->ep, NULL, 0, NULL), -EAGAIN);
	CHECK_EQ(sci_msg_recv(msg, iov, 3, &req), 0);
	memset(iov, 0xff, sizeof(iov));
	CHECK_EQ(test_wait(req, &st), 0);
	CHECK(st.peer == l->to);
	CHECK_EQ(st.len, len);
	CHECK_EQ(st.tag, tag);
	CHECK_BYTES(g.p, len, 1);
	guarded_free(&g);
	guarded_free(&h);
	tell_finish(l);
}

MATCH_TEST(match_then_receive)
{
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		match_recv(l, 0, lengths[i]);
		match_recv(l, 9, lengths[i]);
	}
	match_recv(l, 0, 0);
}

static void match_copy(struct pair *l, uint64_t tag, size_t len)
{
	struct guarded g = guarded_alloc(len, 1), h = guarded_alloc(len, 0);
	size_t step = len / 7 + 1, from = len;
	struct sci_msg *msg;

	send_two(l, tag, len);
	msg = match(l, tag, len);
	/* copy from the end to the start, then all at once */
	while (from) {
		size_t n = from < step ? from : step;

		from -= n;
		CHECK_EQ(sci_msg_copy(msg, from, g.p + from, n), 0);
	}
	CHECK_BYTES(g.p, len, 1);
	CHECK_EQ(sci_msg_copy(msg, 0, h.p, len), 0);
	CHECK_BYTES(h.p, len, 1);
	CHECK_EQ(sci_msg_copy(msg, len, NULL, 0), 0);
	CHECK_EQ(sci_msg_copy(msg, len, h.p, 1), -ERANGE);
	CHECK_EQ(sci_msg_copy(msg, 1, h.p, len), -ERANGE);
	CHECK_EQ(sci_msg_copy(msg, SIZE_MAX, h.p, 1), -ERANGE);
	CHECK_EQ(sci_msg_copy(msg, 1, h.p, SIZE_MAX), -ERANGE);
	sci_msg_free(msg);
	/* freeing a message that was not read completes its send */
	sci_msg_free(match(l, tag, len));
	tell_finish(l);
	guarded_free(&g);
	guarded_free(&h);
}

MATCH_TEST(match_then_copy_parts)
{
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		match_copy(l, 0, lengths[i]);
		match_copy(l, 9, lengths[i]);
	}
}

/* A message that was copied in part is received whole. */
MATCH_TEST(match_copy_then_receive)
{

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		struct guarded g = guarded_alloc(lengths[i], 3);
		struct iovec iov = { g.p, g.len };
		unsigned char part[5];
		struct sci_req *req;
		struct sci_msg *msg;

		send_two(l, 9, g.len);
		msg = match(l, 9, g.len);
		CHECK_EQ(sci_msg_copy(msg, 10, part, sizeof(part)), 0);
		CHECK_EQ(msg_differs(part, 10, sizeof(part), 1), -1);
		CHECK_EQ(sci_msg_recv(msg, &iov, 1, &req), 0);
		CHECK_EQ(test_wait(req, NULL), 0);
		CHECK_BYTES(g.p, g.len, 1);
		sci_msg_free(match(l, 9, g.len));
		guarded_free(&g);
		tell_finish(l);
	}
}

/* Borrow two messages of each length at a time: their bytes stay in place. */
MATCH_TEST(match_then_borrow)
{
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		const void *data[2], *again;
		struct sci_msg *msg[2];

		send_two(l, 9, lengths[i]);
		for (unsigned int k = 0; k < 2; k++) {
			msg[k] = match(l, 9, lengths[i]);
			CHECK_EQ(sci_msg_data(msg[k], &data[k]), 0);
		}
		CHECK(data[0] != data[1]);
		CHECK_BYTES(data[0], lengths[i], 1);
		CHECK_BYTES(data[1], lengths[i], 2);
		CHECK_EQ(sci_msg_data(msg[0], &again), 0);
		CHECK(again == data[0]);
		sci_msg_free(msg[1]);
		CHECK_BYTES(data[0], lengths[i], 1);
		sci_msg_free(msg[0]);
		tell_finish(l);
	}
}

TEST(borrowed_bytes_outlive_the_connection)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *me = test_ep_connect(ep, 4, TEST_ID);
	unsigned char buf[1000];
	struct sci_status st;
	struct sci_msg *msg;
	const void *data;

	msg_fill(buf, sizeof(buf), 3);
	CHECK_EQ(sci_send(me, buf, sizeof(buf)), 0);
	CHECK_EQ(sci_match(ep, NULL, TEST_WAIT_MS, &msg, &st), 0);
	CHECK_EQ(st.len, sizeof(buf));
	CHECK_EQ(sci_msg_data(NULL, &data), -EINVAL);
	CHECK_EQ(sci_msg_data(msg, NULL), -EINVAL);
	CHECK_EQ(sci_msg_data(msg, &data), 0);
	CHECK_EQ(sci_disconnect(me), 0);
	CHECK_BYTES(data, sizeof(buf), 3);
	sci_msg_free(msg);
	CHECK_EQ(sci_ep_close(ep), 0);
}

static bool no_memory;

#if !TEST_ASAN && !TEST_TSAN
void *__libc_calloc(size_t n, size_t size);

void *calloc(size_t n, size_t size)
{
	return no_memory ? NULL : __libc_calloc(n, size);
}
#endif

/* The sender of a freed message learns of it also if there is no memory for a request. */
TEST(a_message_is_freed_without_memory)
{
	static const struct config c = { BY_BLOCKS };
	struct pair l;
	struct sci_req *req;
	struct sci_msg *msg;

	if (TEST_ASAN || TEST_TSAN)
		SKIP("the sanitizers have a calloc() of their own");
	l = pair_config(peer_spawn(8, servant, (void *)(uintptr_t)&c), 8, &c);
	tell_send(&l, &(struct work){ .len = 100000, .seed = 1 });
	CHECK_EQ(sci_match(l.ep, l.to, TEST_WAIT_MS, &msg, NULL), 0);
	while (l.ep->pool)
		CHECK_EQ(sci_itrecv(l.ep, NULL, 1, 1, 0, NULL, 0, &req), 0);
	no_memory = true;
	sci_msg_free(msg);
	no_memory = false;
	tell_finish(&l);
	tell_leave(&l);
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

MATCH_TEST(nothing_to_match)
{
	struct sci_msg *msg;

	CHECK_EQ(sci_match(l->ep, NULL, 0, &msg, NULL), -EAGAIN);
	CHECK_EQ(sci_match(l->ep, NULL, 2, &msg, NULL), -ETIMEDOUT);
	CHECK_EQ(sci_tmatch(l->ep, NULL, 1, 5, 0, 0, &msg, NULL), -EAGAIN);
	CHECK_EQ(sci_tmatch(l->ep, l->to, 1, 5, 0, 2, &msg, NULL),
		 -ETIMEDOUT);
}

/* Match many messages, then receive them in another order. */
MATCH_TEST(matched_messages_in_any_order)
{
	enum { N = 12 };
	struct sci_msg *msg[N];

	for (uint64_t i = 0; i < N; i++)
		tell_send(l, &(struct work){ .len = lengths[i % 4],
					     .seed = i });
	for (uint64_t i = 0; i < N; i++)
		msg[i] = match(l, 0, lengths[i % 4]);
	for (uint64_t i = N; i-- > 0;) {
		struct guarded g = guarded_alloc(lengths[i % 4], i);
		struct iovec iov = { g.p, g.len };
		struct sci_req *req;

		CHECK_EQ(sci_msg_recv(msg[i], &iov, 1, &req), 0);
		CHECK_EQ(test_wait(req, NULL), 0);
		CHECK_BYTES(g.p, g.len, i);
		guarded_free(&g);
	}
}

/* The sender of a matched message dies. Messages of other peers are not affected. */
TEST(matched_messages_of_the_dead)
{
	static const struct config c = { BY_BLOCKS };
	struct peer *p[2] = {
		peer_spawn(8, servant, (void *)(uintptr_t)&c),
		peer_spawn(12, servant, (void *)(uintptr_t)&c),
	};
	struct sci_ep *ep = test_ep_config(TEST_ID, &c);
	struct sci_peer *first = test_ep_accept(ep);
	struct pair l[2] = { { .ep = ep }, { .ep = ep } };
	struct sci_addr addr;
	struct sci_msg *msg;
	unsigned char b;

	CHECK_EQ(sci_peer_addr(first, &addr), 0);
	l[addr.node == 12].to = first;
	l[addr.node != 12].to = test_ep_accept(ep);
	l[0].proc = p[0];
	l[1].proc = p[1];
	tell_send(&l[0], &(struct work){ .len = 100000 });
	msg = match(&l[0], 0, 100000);
	tell_pause(&l[0]);
	peer_kill(p[0], SIGKILL);
	CHECK_EQ(sci_msg_copy(msg, 0, &b, 1), -ECONNRESET);
	CHECK_EQ(sci_msg_copy(msg, 1, &b, 1), -ECONNRESET);
	sci_msg_free(msg);
	CHECK_EQ(test_ep_stats(ep).unexpected_bytes, 0);
	match_recv(&l[1], 9, 3000);
	tell_leave(&l[1]);
	CHECK_EQ(sci_ep_close(ep), 0);
}

MATCH_TEST(messages_too_long_blocking)
{

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		struct guarded g = guarded_alloc(lengths[i] / 2, 1);
		struct iovec iov[2] = { { g.p, 1 }, { g.p + 1, g.len - 1 } };
		struct sci_status st;
		struct sci_req *req;

		send_two(l, 0, lengths[i]);
		CHECK_EQ(sci_recv(l->ep, NULL, g.p, g.len, &st), -EMSGSIZE);
		CHECK_EQ(st.len, lengths[i]);
		CHECK_EQ(st.error, -EMSGSIZE);
		CHECK_BYTES(g.p, g.len, 1);
		CHECK_EQ(sci_msg_recv(match(l, 0, lengths[i]), iov, 2, &req),
			 0);
		CHECK_EQ(test_wait(req, &st), -EMSGSIZE);
		CHECK_EQ(st.len, lengths[i]);
		CHECK_BYTES(g.p, g.len, 2);
		guarded_free(&g);
		tell_finish(l);
	}
}

/* ---- two threads and one message ---- */

static void *copies_it(void *arg)
{
	static unsigned char buf[100000];

	CHECK_EQ(sci_msg_copy(arg, 0, buf, sizeof(buf)), 0);
	CHECK_BYTES(buf, sizeof(buf), 1);
	return NULL;
}

/* One thread asks for the bytes, and the other thread may take the last of them. */
MATCH_TEST(two_threads_copy_one_message)
{
	static unsigned char buf[100000];

	for (unsigned int i = 0; i < (TEST_TSAN ? 20 : 100); i++) {
		struct sci_msg *msg;
		pthread_t thread;

		tell_send(l, &(struct work){ .tagged = 1, .context = 1,
					     .tag = 9, .len = sizeof(buf),
					     .seed = 1 });
		msg = match(l, 9, sizeof(buf));
		CHECK_EQ(pthread_create(&thread, NULL, copies_it, msg), 0);
		CHECK_EQ(sci_msg_copy(msg, 0, buf, sizeof(buf)), 0);
		CHECK_BYTES(buf, sizeof(buf), 1);
		CHECK_EQ(pthread_join(thread, NULL), 0);
		sci_msg_free(msg);
		tell_finish(l);
	}
}
