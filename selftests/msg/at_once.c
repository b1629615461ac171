// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Sends and receives that need no request: SCI_SEND_AT_ONCE, sci_try_*(). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "selftests/harness.h"
#include "selftests/msg/traffic.h"

#define CONTEXT		7u
#define TAG		UINT64_C(0x1122334455667788)
#define NOW		(SCI_SEND_COPY | SCI_SEND_AT_ONCE)
#define LEN_MAX		100000u

/* A longer message is a rendezvous. */
#define EAGER_MAX	65536u

/* An endpoint that is connected to itself. */
struct self {
	struct sci_ep *ep;
	struct sci_peer *me;
};

static struct self self_open(void)
{
	struct self s = { .ep = test_ep_open(TEST_ID, 0) };

	CHECK_EQ(sci_ep_set(s.ep, SCI_PARAM_EAGER_MAX, EAGER_MAX), 0);
	s.me = test_ep_connect(s.ep, 4, TEST_ID);
	return s;
}

static void self_close(struct self *s)
{
	CHECK_EQ(sci_disconnect(s->me), 0);
	CHECK_EQ(sci_ep_close(s->ep), 0);
}

/* Where lines may get lost, only progress takes lines from the ring. */
static bool is_memory(const struct self *s)
{
	return !strcmp(sci_ep_fabric(s->ep), "shm") && !getenv("SCI_FAULT");
}

static int send_now(struct sci_peer *to, uint32_t flags, uint64_t tag,
		    size_t len, struct sci_req **req)
{
	static unsigned char buf[LEN_MAX];
	const struct iovec iov = { buf, len };
	const struct sci_send send = {
		.iov = &iov, .n = 1, .tag = tag, .context = CONTEXT, .imm = ~tag,
		.flags = flags,
	};
	int ret;

	msg_fill(buf, len, tag);
	ret = sci_isendm(to, &send, req);
	if (flags & SCI_SEND_COPY)
		memset(buf, 0xee, len);
	return ret;
}

/* ---- receives ---- */

static int try_recv(struct self *s, struct sci_peer *from, void *buf, size_t len,
		    struct sci_status *st)
{
	struct sci_try_recv t = { .buf = buf, .size = len };
	int ret = sci_try_recvs(s->ep, from, &t, 1);

	if (st)
		*st = t.status;
	return ret;
}

static int try_trecv(struct self *s, struct sci_peer *from, uint32_t context,
		     uint64_t tag, uint64_t ignore, void *buf, size_t len,
		     struct sci_status *st)
{
	struct sci_try_recv t = {
		.buf = buf, .size = len, .tag = tag, .ignore = ignore,
	};
	int ret = sci_try_trecvs(s->ep, from, context, &t, 1);

	if (st)
		*st = t.status;
	return ret;
}

static void check_try(struct self *s, struct sci_peer *from, uint32_t flags,
		      size_t len)
{
	static unsigned char buf[LEN_MAX];
	bool tagged = flags & SCI_SEND_TAGGED, imm = flags & SCI_SEND_IMM;
	struct sci_status st;
	int ret;

	CHECK_EQ(send_now(s->me, NOW | flags, TAG, len, NULL), 0);
	if (tagged)
		ret = try_trecv(s, from, CONTEXT, TAG ^ 0xff, 0xff, buf, len, &st);
	else
		ret = try_recv(s, from, buf, len, &st);
	CHECK_EQ(ret, 1);
	CHECK(st.peer == s->me);
	CHECK_EQ(st.error, 0);
	CHECK_EQ(st.len, len);
	CHECK_EQ(st.tag, tagged ? TAG : 0);
	CHECK_EQ(st.context, tagged ? CONTEXT : 0);
	CHECK_EQ(st.flags, imm ? SCI_STATUS_IMM : 0);
	CHECK_EQ(st.imm, imm ? ~TAG : 0);
	CHECK_BYTES(buf, len, TAG);
}

TEST(what_is_here_is_taken_at_once)
{
	static const size_t lengths[] = { 0, 1, 8, 41, 48, 62, 63, 900, 5000 };
	static const uint32_t kinds[] = {
		0, SCI_SEND_TAGGED, SCI_SEND_IMM, SCI_SEND_TAGGED | SCI_SEND_IMM,
	};
	static unsigned char buf[LEN_MAX];
	struct self s = self_open();

	if (!is_memory(&s))
		SKIP("this fabric takes lines by progress alone");
	/* the first long message creates the ring for longer messages */
	CHECK_EQ(send_now(s.me, SCI_SEND_COPY, 0, 8000, NULL), 0);
	CHECK_EQ(sci_recv(s.ep, s.me, buf, sizeof(buf), NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
		for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
			check_try(&s, s.me, kinds[k], lengths[i]);
			check_try(&s, NULL, kinds[k], lengths[i]);
		}
	CHECK_EQ(test_ep_stats(s.ep).unexpected, 0);
	self_close(&s);
}

/* An ordinary receive must take these messages: sci_try_*() return -EBUSY. */
TEST(what_has_to_be_received_otherwise)
{
	struct self s = self_open();
	unsigned char buf[8] = { 0 };
	struct sci_req *req;

	if (!is_memory(&s))
		SKIP("this fabric takes lines by progress alone");
	CHECK_EQ(try_recv(&s, s.me, buf, 8, NULL), -EAGAIN);
	CHECK_EQ(try_recv(&s, NULL, buf, 8, NULL), -EAGAIN);
	CHECK_EQ(send_now(s.me, NOW | SCI_SEND_TAGGED, TAG, 8, NULL), 0);
	/* the message is tagged, has another tag, or is longer than the buffer */
	CHECK_EQ(try_recv(&s, s.me, buf, 8, NULL), -EBUSY);
	CHECK_EQ(try_trecv(&s, s.me, CONTEXT + 1, TAG, 0, buf, 8, NULL),
		 -EBUSY);
	CHECK_EQ(try_trecv(&s, s.me, CONTEXT, TAG + 1, 0, buf, 8, NULL),
		 -EBUSY);
	CHECK_EQ(try_trecv(&s, s.me, CONTEXT, TAG, 0, buf, 7, NULL), -EBUSY);
	/* the probe has moved the message to the unexpected queue */
	CHECK_EQ(sci_tprobe(s.ep, NULL, CONTEXT, TAG, 0, 0, NULL), 0);
	CHECK_EQ(test_ep_stats(s.ep).unexpected, 1);
	CHECK_EQ(try_trecv(&s, s.me, CONTEXT, TAG, 0, buf, 8, NULL), -EBUSY);
	CHECK_EQ(sci_trecv(s.ep, s.me, CONTEXT, TAG, 0, buf, 8, NULL), 0);
	CHECK_BYTES(buf, 8, TAG);
	/* an earlier receive matches the message */
	CHECK_EQ(sci_itrecv(s.ep, NULL, CONTEXT, TAG, 0, buf, 8, &req), 0);
	CHECK_EQ(send_now(s.me, NOW | SCI_SEND_TAGGED, TAG, 8, NULL), 0);
	CHECK_EQ(try_trecv(&s, s.me, CONTEXT, TAG, 0, buf, 8, NULL), -EBUSY);
	CHECK_EQ(test_wait(req, NULL), 0);
	CHECK_EQ(try_trecv(&s, s.me, CONTEXT, TAG, 0, buf, 8, NULL), -EAGAIN);
	self_close(&s);
}

#define MANY	12

/* Receive all messages that have arrived, in order, by one call. */
static void check_many(struct self *s, struct sci_peer *from, uint32_t flags)
{
	static const size_t lengths[MANY] = {
		0, 8, 40, 41, 48, 49, 62, 64, 500, 5000, 1, 8000,
	};
	static unsigned char buf[MANY + 1][LEN_MAX];
	bool tagged = flags & SCI_SEND_TAGGED;
	struct sci_try_recv t[MANY + 1] = { 0 };
	int i, ret;

	for (i = 0; i < MANY; i++)
		CHECK_EQ(send_now(s->me, NOW | flags, TAG + (uint64_t)i, lengths[i],
				  NULL), 0);
	for (i = 0; i <= MANY; i++)
		t[i] = (struct sci_try_recv){
			.buf = buf[i], .size = LEN_MAX, .tag = TAG + (uint64_t)i,
		};
	ret = tagged ? sci_try_trecvs(s->ep, from, CONTEXT, t, MANY + 1) :
		       sci_try_recvs(s->ep, from, t, MANY + 1);
	CHECK_EQ(ret, MANY);
	for (i = 0; i < MANY; i++) {
		const struct sci_status *st = &t[i].status;

		CHECK(st->peer == s->me && !st->error);
		CHECK_EQ(st->len, lengths[i]);
		CHECK_EQ(st->tag, tagged ? TAG + (uint64_t)i : 0);
		CHECK_EQ(st->imm, flags & SCI_SEND_IMM ? ~(TAG + (uint64_t)i) : 0);
		CHECK_BYTES(buf[i], lengths[i], TAG + (uint64_t)i);
	}
}

/* The message is in the unexpected queue, and no peer could send another one. */
TEST(a_message_of_a_peer_that_has_left_is_to_be_received_otherwise)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_ep *other = test_ep_open(TEST_ID + 1, 0);
	struct sci_addr addr = { 4, TEST_ID };
	struct sci_try_recv t = { .buf = NULL };
	struct sci_status st = { .peer = NULL };
	struct sci_req *req;
	char word[8] = "";

	t.buf = word;
	t.size = sizeof(word);
	CHECK_EQ(sci_iconnect(other, &addr, TEST_WAIT_MS, &req), 0);
	PROGRESS_UNTIL(ep, sci_test(req, &st) != -EAGAIN, TEST_WAIT_MS);
	CHECK_EQ(st.error, 0);
	CHECK_EQ(sci_send(st.peer, word, sizeof(word)), 0);
	PROGRESS_UNTIL(ep, test_ep_stats(ep).unexpected, TEST_WAIT_MS);
	CHECK_EQ(sci_ep_close(other), 0);
	PROGRESS_UNTIL(ep, !test_ep_stats(ep).peers, TEST_WAIT_MS);
	CHECK_EQ(sci_try_recvs(ep, NULL, &t, 1), -EBUSY);
	CHECK_EQ(sci_recv(ep, NULL, word, sizeof(word), NULL), 0);
	CHECK_EQ(sci_try_recvs(ep, NULL, &t, 1), -EAGAIN);
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(many_are_taken_at_once)
{
	static unsigned char buf[LEN_MAX];
	struct self s = self_open();
	struct sci_try_recv t[3] = {
		{ .buf = buf, .size = 8, .tag = 1 },
		{ .buf = buf, .size = 7, .tag = 2 },
		{ .buf = buf, .size = 8, .tag = 2 },
	};

	if (!is_memory(&s))
		SKIP("this fabric takes lines by progress alone");
	CHECK_EQ(send_now(s.me, SCI_SEND_COPY, 0, 8000, NULL), 0);
	CHECK_EQ(sci_recv(s.ep, s.me, buf, sizeof(buf), NULL), 0);
	for (int round = 0; round < 20; round++) {
		check_many(&s, s.me, 0);
		check_many(&s, s.me, SCI_SEND_TAGGED | SCI_SEND_IMM);
		check_many(&s, NULL, SCI_SEND_TAGGED);
		check_many(&s, NULL, SCI_SEND_IMM);
	}
	/* a message that does not fit stays in the ring, with all messages after it */
	for (uint64_t tag = 1; tag < 3; tag++)
		CHECK_EQ(send_now(s.me, NOW | SCI_SEND_TAGGED, tag, 8, NULL), 0);
	CHECK_EQ(sci_try_trecvs(s.ep, s.me, CONTEXT, t, 3), 1);
	CHECK_EQ(sci_try_trecvs(s.ep, s.me, CONTEXT, t + 1, 2), -EBUSY);
	CHECK_EQ(sci_try_trecvs(s.ep, s.me, CONTEXT, t + 2, 1), 1);
	CHECK_BYTES(buf, 8, 2);
	CHECK_EQ(test_ep_stats(s.ep).unexpected, 0);
	self_close(&s);
}

/* Only progress takes such lines, because it must detect losses. */
TEST(lines_that_can_get_lost_are_not_taken_at_once)
{
	struct self s;
	struct sci_try_recv t[1];
	char buf[100] = { 0 };

	setenv("SCI_FAULT", "seed=1", 1);
	s = self_open();
	t[0] = (struct sci_try_recv){ .buf = buf, .size = sizeof(buf) };
	CHECK_EQ(sci_try_recvs(s.ep, s.me, t, 1), -EBUSY);
	CHECK_EQ(sci_send(s.me, buf, 8), 0);
	CHECK_EQ(sci_try_recvs(s.ep, s.me, t, 1), -EBUSY);
	CHECK_EQ(sci_try_send(s.me, buf, SCI_SHORT_MAX + 1), -EAGAIN);
	CHECK_EQ(sci_recv(s.ep, s.me, buf, 8, NULL), 0);
	self_close(&s);
}

TEST(bad_receives)
{
	struct self s = self_open(), other;
	char buf[8] = { 0 };
	struct sci_try_recv t[2] = {
		{ .buf = buf, .size = 8 }, { .buf = NULL, .size = 8 },
	};

	other.ep = test_ep_open(TEST_ID + 1, 0);
	other.me = test_ep_connect(other.ep, 4, TEST_ID + 1);
	CHECK_EQ(sci_try_recvs(NULL, s.me, t, 1), -EINVAL);
	CHECK_EQ(sci_try_recvs(s.ep, other.me, t, 1), -EINVAL);
	CHECK_EQ(sci_try_recvs(s.ep, s.me, NULL, 1), -EINVAL);
	CHECK_EQ(sci_try_recvs(s.ep, s.me, t, 0), -EINVAL);
	CHECK_EQ(sci_try_recvs(s.ep, s.me, t, -1), -EINVAL);
	CHECK_EQ(sci_try_trecvs(s.ep, s.me, SCI_CONTEXT_MAX + 1, t, 1), -EINVAL);
	if (is_memory(&s)) {
		CHECK_EQ(sci_try_recvs(s.ep, s.me, t + 1, 1), -EINVAL);
		/* only the second buffer is bad: the first message is received */
		CHECK_EQ(sci_send(s.me, buf, 8), 0);
		CHECK_EQ(sci_send(s.me, buf, 8), 0);
		CHECK_EQ(sci_try_recvs(s.ep, s.me, t, 2), 1);
	}
	self_close(&other);
	self_close(&s);
}

/* ---- unexpected messages ---- */

/* A message without a receive moves to the unexpected queue after a while. */
TEST(messages_stay_in_the_ring_for_a_while)
{
	struct self s = self_open();
	unsigned char buf[8];
	unsigned int looks = 0;

	CHECK_EQ(send_now(s.me, NOW, TAG, 8, NULL), 0);
	CHECK_EQ(sci_progress(s.ep) < 0, 0);
	CHECK_EQ(test_ep_stats(s.ep).unexpected, 0);
	while (!test_ep_stats(s.ep).unexpected) {
		sci_progress(s.ep);
		CHECK(looks++ < 1000000);
	}
	CHECK_EQ(sci_recv(s.ep, s.me, buf, 8, NULL), 0);
	CHECK_BYTES(buf, 8, TAG);
	/* but at once if a message behind it is received */
	CHECK_EQ(send_now(s.me, NOW, TAG, 8, NULL), 0);
	CHECK_EQ(send_now(s.me, NOW | SCI_SEND_TAGGED, TAG, 8, NULL), 0);
	CHECK_EQ(sci_trecv(s.ep, s.me, CONTEXT, TAG, 0, buf, 8, NULL), 0);
	CHECK_EQ(test_ep_stats(s.ep).unexpected, 1);
	CHECK_EQ(sci_recv(s.ep, s.me, buf, 8, NULL), 0);
	self_close(&s);
}

/* ---- sends ---- */

/* A send that completes at once needs no request; a send that waits has one. */
TEST(no_request_for_what_has_gone)
{
	static unsigned char buf[LEN_MAX];
	static const size_t lengths[] = { 0, 8, 41, 42, 49, 200, 1000 };
	struct self s = self_open();
	struct sci_req *req = NULL;
	uint64_t sent = 0;

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		CHECK_EQ(send_now(s.me, NOW, i, lengths[i], &req), 0);
		CHECK(!req);
		CHECK_EQ(sci_recv(s.ep, s.me, buf, sizeof(buf), NULL), 0);
		CHECK_BYTES(buf, lengths[i], i);
	}
	/* a rendezvous waits for its receive, and so does a synchronous send */
	CHECK_EQ(send_now(s.me, NOW, 1, LEN_MAX, &req), 0);
	CHECK(req);
	CHECK_EQ(sci_recv(s.ep, s.me, buf, sizeof(buf), NULL), 0);
	CHECK_EQ(test_wait(req, NULL), 0);
	CHECK_BYTES(buf, LEN_MAX, 1);
	CHECK_EQ(send_now(s.me, NOW | SCI_SEND_SYNC, 2, 8, &req), 0);
	CHECK(req);
	CHECK_EQ(sci_recv(s.ep, s.me, buf, sizeof(buf), NULL), 0);
	CHECK_EQ(test_wait(req, NULL), 0);
	/* sends complete at once until the ring is full */
	do {
		CHECK_EQ(send_now(s.me, NOW, ++sent, 8, &req), 0);
		CHECK(sent < 1000);
	} while (!req);
	for (uint64_t i = 1; i <= sent; i++) {
		CHECK_EQ(sci_recv(s.ep, s.me, buf, 8, NULL), 0);
		CHECK_BYTES(buf, 8, i);
	}
	CHECK_EQ(test_wait(req, NULL), 0);
	self_close(&s);
}

static void fill_and_empty(struct self *s, size_t len)
{
	static unsigned char buf[LEN_MAX];
	uint64_t sent = 0;

	while (!send_now(s->me, NOW, sent, len, NULL)) {
		sent++;
		CHECK(sent < 1000);
	}
	CHECK_EQ(send_now(s->me, NOW, sent, len, NULL), -EAGAIN);
	test_note("%zu bytes: %llu until it is full", len,
		  (unsigned long long)sent);
	CHECK(sent);
	for (uint64_t i = 0; i < sent; i++) {
		struct sci_status st;

		CHECK_EQ(sci_recv(s->ep, s->me, buf, sizeof(buf), &st), 0);
		CHECK_EQ(st.len, len);
		CHECK_BYTES(buf, len, i);
	}
	WAIT_UNTIL((sci_progress(s->ep), !send_now(s->me, NOW, sent, len, NULL)),
		   TEST_WAIT_MS);
	CHECK_EQ(sci_recv(s->ep, s->me, buf, sizeof(buf), NULL), 0);
	CHECK_BYTES(buf, len, sent);
}

/* A send without room returns -EAGAIN: in lines, chains, blocks and rendezvous. */
TEST(who_finds_no_room_is_told)
{
	static const size_t lengths[] = {
		8, 62, 63, 300, 5000, 8000, 20000, 60000, 70000,
	};
	struct self s = self_open();

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
		fill_and_empty(&s, lengths[i]);
	/* chains that are longer than the ring */
	CHECK_EQ(sci_ep_set(s.ep, SCI_PARAM_LINES_MAX, 8192), 0);
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
		fill_and_empty(&s, lengths[i]);
	self_close(&s);
}

static int try_send(struct self *s, bool tagged, const uint64_t *imm,
		    const void *buf, size_t len)
{
	return tagged ? sci_try_tsend(s->me, CONTEXT, TAG, imm, buf, len) :
			sci_try_send(s->me, buf, len);
}

static void check_sent(struct self *s, size_t len, bool tagged,
		       const uint64_t *imm)
{
	static unsigned char buf[LEN_MAX];
	struct sci_status st;

	msg_fill(buf, len, len);
	CHECK_EQ(try_send(s, tagged, imm, buf, len), 0);
	memset(buf, 0, sizeof(buf));
	if (tagged)
		CHECK_EQ(sci_trecv(s->ep, s->me, CONTEXT, TAG, 0, buf, sizeof(buf),
				   &st), 0);
	else
		CHECK_EQ(sci_recv(s->ep, s->me, buf, sizeof(buf), &st), 0);
	CHECK_EQ(st.len, len);
	CHECK_BYTES(buf, len, len);
	CHECK_EQ(st.flags & SCI_STATUS_IMM, imm ? SCI_STATUS_IMM : 0);
	CHECK(!imm || st.imm == *imm);
}

TEST(lines_that_go_at_once)
{
	const uint64_t imm = 0xfedcba9876543210;
	struct self s = self_open();
	char buf[SCI_SHORT_MAX + 1] = { 0 };
	size_t len;
	int sent;

	/* where lines may get lost, the first send allocates memory for copies */
	CHECK_EQ(sci_send(s.me, buf, 0), 0);
	CHECK_EQ(sci_recv(s.ep, s.me, buf, 0, NULL), 0);
	for (len = 0; len <= SCI_SHORT_MAX; len++)
		check_sent(&s, len, false, NULL);
	for (len = 0; len <= SCI_TAGGED_SHORT_MAX; len++)
		check_sent(&s, len, true, NULL);
	for (len = 0; len <= SCI_IMM_SHORT_MAX; len++)
		check_sent(&s, len, true, &imm);
	CHECK_EQ(sci_try_send(NULL, buf, 1), -EINVAL);
	CHECK_EQ(sci_try_send(s.me, NULL, 1), -EINVAL);
	CHECK_EQ(sci_try_tsend(s.me, SCI_CONTEXT_MAX + 1, 0, NULL, buf, 1), -EINVAL);
	for (sent = 0; !sci_try_send(s.me, buf, 8); sent++)
		CHECK(sent < 1000);
	CHECK_EQ(sci_try_send(s.me, buf, 8), -EAGAIN);
	while (sent--)
		CHECK_EQ(sci_recv(s.ep, s.me, buf, 8, NULL), 0);
	self_close(&s);
}

/* A message is sent whole or not at all. */
TEST(longer_messages_that_go_at_once)
{
	const uint64_t imm = 0xfedcba9876543210;
	static unsigned char buf[LEN_MAX];
	uint64_t lines_max;
	struct self s = self_open();
	void *exported;
	int sent;

	CHECK_EQ(sci_ep_get(s.ep, SCI_PARAM_LINES_MAX, &lines_max), 0);
	/* more than lines_max bytes need the eager ring, which does not exist yet */
	if (!is_memory(&s))
		SKIP("this fabric may have to check what is longer than a line");
	CHECK_EQ(sci_try_send(s.me, buf, lines_max + 1), -EAGAIN);
	CHECK_EQ(send_now(s.me, SCI_SEND_COPY, 0, 8000, NULL), 0);
	CHECK_EQ(sci_recv(s.ep, s.me, buf, sizeof(buf), NULL), 0);
	for (size_t len = 0; len < 600; len++) {
		check_sent(&s, len, false, NULL);
		check_sent(&s, len, true, NULL);
		check_sent(&s, len, true, &imm);
	}
	check_sent(&s, 8000, true, &imm);
	/* rendezvous and zero-copy messages, and a full ring, are refused */
	CHECK_EQ(sci_ep_set(s.ep, SCI_PARAM_EAGER_MAX, 4000), 0);
	CHECK_EQ(sci_try_send(s.me, buf, 4001), -EAGAIN);
	check_sent(&s, 4000, true, NULL);
	CHECK_EQ(sci_ep_set(s.ep, SCI_PARAM_ZCOPY_MIN, 2000), 0);
	CHECK_EQ(sci_buf_alloc(s.ep, 4096, &exported), 0);
	CHECK_EQ(sci_try_send(s.me, exported, 2000), -EAGAIN);
	check_sent(&s, 1999, true, NULL);
	CHECK_EQ(sci_buf_free(s.ep, exported), 0);
	for (sent = 0; !sci_try_send(s.me, buf, 1000); sent++)
		CHECK(sent < 1000);
	CHECK(sent > 0);
	while (sent--)
		CHECK_EQ(sci_recv(s.ep, s.me, buf, 1000, NULL), 0);
	self_close(&s);
}

TEST(who_is_gone_is_no_lack_of_room)
{
	static const struct sci_addr nobody = { 4, 99 };
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *to;

	CHECK_EQ(sci_peer_open(ep, &nobody, 20, &to), 0);
	/* the first message waits for the connection */
	CHECK_EQ(send_now(to, NOW, 1, 8, NULL), 0);
	CHECK_EQ(send_now(to, NOW, 2, 8, NULL), -EAGAIN);
	WAIT_UNTIL((sci_progress(ep), sci_peer_state(to)) == -ETIME,
		   TEST_WAIT_MS);
	CHECK_EQ(send_now(to, NOW, 3, 8, NULL), -ETIME);
	CHECK_EQ(sci_ep_close(ep), 0);
}
