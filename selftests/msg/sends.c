// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* sci_isendm(): immediates, copies, and sends without a request. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "selftests/harness.h"
#include "selftests/msg/traffic.h"

#define CONTEXT		7u
#define TAG		UINT64_C(0x1122334455667788)
#define LEN_MAX		(1u << 20)

/* Lengths around the limits of all protocols. */
static const size_t lengths[] = {
	0, 1, 8, 39, 40, 41, 42, 47, 48, 49, 61, 62, 63, 64, 100, 500, 5000,
	20000, 70000, LEN_MAX,
};

/* Flags; each length is sent with each of them. */
static const uint32_t ways[] = {
	0, SCI_SEND_SYNC, SCI_SEND_COPY, SCI_SEND_COPY | SCI_SEND_SYNC,
};

static uint64_t imm_of(size_t i)
{
	return UINT64_C(0xfeedface00000000) + i;
}

static void send_one(struct sci_peer *to, uint32_t flags, size_t i,
		     struct sci_req **req)
{
	static unsigned char buf[LEN_MAX + 1];
	bool whole = (i ^ flags / SCI_SEND_COPY) & 1;
	size_t len = lengths[i], first = whole ? len : len / 3;
	struct iovec iov[2] = {
		{ buf, first }, { buf + first, len - first },
	};
	struct sci_send send = {
		.iov = iov, .n = whole ? 1 : 2, .tag = TAG + i, .context = CONTEXT,
		.imm = imm_of(i), .flags = flags,
	};

	msg_fill(buf, len, i);
	CHECK_EQ(sci_isendm(to, &send, req), 0);
	if (flags & SCI_SEND_COPY)
		memset(buf, 0xee, len);
}

static void send_all(struct sci_peer *to, uint32_t more)
{
	for (size_t w = 0; w < ARRAY_LEN(ways); w++) {
		for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
			struct sci_req *req;

			send_one(to, ways[w] | more, i, &req);
			CHECK_EQ(test_wait(req, NULL), 0);
		}
	}
}

static void check_status(const struct sci_status *st, struct sci_peer *from,
			 uint32_t flags, size_t i)
{
	bool tagged = flags & SCI_SEND_TAGGED, imm = flags & SCI_SEND_IMM;

	CHECK_EQ(st->error, 0);
	CHECK(st->peer == from);
	CHECK_EQ(st->len, lengths[i]);
	CHECK_EQ(st->tag, tagged ? TAG + i : 0);
	CHECK_EQ(st->context, tagged ? CONTEXT : 0);
	CHECK_EQ(st->flags, imm ? SCI_STATUS_IMM : 0);
	CHECK_EQ(st->imm, imm ? imm_of(i) : 0);
}

enum { POSTED, BLOCKING, PROBED, MATCHED, ENDS };

static struct sci_req *post(struct pair *l, bool tagged, size_t i, void *buf)
{
	struct sci_req *req;

	if (tagged)
		CHECK_EQ(sci_itrecv(l->ep, l->to, CONTEXT, TAG + i, 0, buf,
				    LEN_MAX, &req), 0);
	else
		CHECK_EQ(sci_irecv(l->ep, l->to, buf, LEN_MAX, &req), 0);
	return req;
}

static void take(struct pair *l, uint32_t flags, unsigned int how, size_t i)
{
	static unsigned char buf[LEN_MAX];
	bool tagged = flags & SCI_SEND_TAGGED;
	const struct iovec iov = { buf, sizeof(buf) };
	struct sci_status st, seen;
	struct sci_req *req;
	struct sci_msg *msg;

	switch (how) {
	case BLOCKING:
		if (tagged)
			CHECK_EQ(sci_trecv(l->ep, l->to, CONTEXT, TAG + i, 0,
					   buf, LEN_MAX, &st), 0);
		else
			CHECK_EQ(sci_recv(l->ep, l->to, buf, LEN_MAX, &st), 0);
		break;
	case PROBED:
		if (tagged)
			CHECK_EQ(sci_tprobe(l->ep, l->to, CONTEXT, TAG + i, 0,
					    TEST_WAIT_MS, &seen), 0);
		else
			CHECK_EQ(sci_probe(l->ep, l->to, TEST_WAIT_MS, &seen),
				 0);
		check_status(&seen, l->to, flags, i);
		/* fallthrough */
	case POSTED:
		req = post(l, tagged, i, buf);
		CHECK_EQ(test_wait(req, &st), 0);
		break;
	default:
		if (tagged)
			CHECK_EQ(sci_tmatch(l->ep, NULL, CONTEXT, TAG + i, 0,
					    TEST_WAIT_MS, &msg, &seen), 0);
		else
			CHECK_EQ(sci_match(l->ep, NULL, TEST_WAIT_MS, &msg,
					   &seen), 0);
		check_status(&seen, l->to, flags, i);
		CHECK_EQ(sci_msg_recv(msg, &iov, 1, &req), 0);
		CHECK_EQ(test_wait(req, &st), 0);
	}
	check_status(&st, l->to, flags, i);
	CHECK_BYTES(buf, lengths[i], i);
}

static void takes(struct peer *self, void *arg)
{
	uint32_t flags = *(uint32_t *)arg;
	struct pair l = pair_open(self, 4, 0);

	for (unsigned int how = 0; how < ENDS; how++)
		for (size_t w = 0; w < ARRAY_LEN(ways); w++)
			for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
				take(&l, flags, how, i);
	pair_close(&l);
}

static void check_flags(uint32_t flags)
{
	struct peer *p = peer_spawn(8, takes, &flags);
	struct pair l = pair_open(p, 8, 0);

	for (unsigned int how = 0; how < ENDS; how++)
		send_all(l.to, flags);
	pair_close(&l);
	peer_join(p);
}

TEST(tagged_with_an_immediate)
{
	check_flags(SCI_SEND_TAGGED | SCI_SEND_IMM);
}

TEST(untagged_with_an_immediate)
{
	check_flags(SCI_SEND_IMM);
}

TEST(copies_without_an_immediate)
{
	check_flags(SCI_SEND_TAGGED);
	check_flags(0);
}

static struct sci_ep_stats stats_after(struct sci_ep *ep, struct sci_peer *me,
				       size_t len, uint32_t flags)
{
	static char buf[100];
	const struct iovec iov = { buf, len };
	const struct sci_send send = { .iov = &iov, .n = 1, .flags = flags };

	CHECK_EQ(sci_isendm(me, &send, NULL), 0);
	CHECK_EQ(sci_recv(ep, me, buf, sizeof(buf), NULL), 0);
	return test_ep_stats(ep);
}

TEST(short_ones_take_one_line)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *me = test_ep_connect(ep, 4, TEST_ID);
	uint32_t copy = SCI_SEND_COPY, imm = copy | SCI_SEND_IMM;

	CHECK_EQ(stats_after(ep, me, SCI_SHORT_MAX, copy).sent_short, 1);
	CHECK_EQ(stats_after(ep, me, SCI_SHORT_MAX + 1, copy).sent_short, 1);
	CHECK_EQ(stats_after(ep, me, SCI_IMM_SHORT_MAX, imm).sent_short, 2);
	CHECK_EQ(stats_after(ep, me, SCI_IMM_SHORT_MAX + 1, imm).sent_short, 2);
	CHECK_EQ(stats_after(ep, me, 0, imm).sent_short, 3);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* ---- sends without a request ---- */

#define FORGOTTEN	test_calls(TRAFFIC_SLOW > 1 ? 300 : 2000)

/* Receive more messages than any ring holds, after all have been sent. */
static void takes_forgotten(struct peer *self, void *arg)
{
	struct pair l = pair_open(self, 4, 0);
	static unsigned char buf[LEN_MAX];
	struct sci_status st;

	(void)arg;
	peer_expect(self, "sent");
	for (unsigned int i = 0; i < FORGOTTEN; i++) {
		size_t k = i % (ARRAY_LEN(lengths) - 2);

		CHECK_EQ(sci_recv(l.ep, l.to, buf, sizeof(buf), &st), 0);
		CHECK_EQ(st.len, lengths[k]);
		CHECK_BYTES(buf, st.len, k);
		CHECK_EQ(st.flags, i & 1 ? SCI_STATUS_IMM : 0);
		CHECK_EQ(st.imm, i & 1 ? imm_of(k) : 0);
	}
	CHECK_EQ(sci_disconnect(l.to), 0);
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

/* Sends without a request arrive, though the program closes its endpoint. */
TEST(forgotten_sends_arrive)
{
	struct peer *p = peer_spawn(8, takes_forgotten, NULL);
	struct pair l = pair_open(p, 8, 0);

	for (unsigned int i = 0; i < FORGOTTEN; i++)
		send_one(l.to, SCI_SEND_COPY | (i & 1 ? SCI_SEND_IMM : 0),
			 i % (ARRAY_LEN(lengths) - 2), NULL);
	peer_send(p, "sent");
	CHECK_EQ(sci_ep_close(l.ep), 0);
	peer_join(p);
}

static void takes_one_late(struct peer *self, void *arg)
{
	struct sci_ep *ep;
	uint32_t word = 0;

	(void)arg;
	peer_expect(self, "closing");
	ep = test_ep_open(TEST_ID, 0);
	CHECK_EQ(sci_recv(ep, NULL, &word, sizeof(word), NULL), 0);
	CHECK_EQ(word, 4711);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* Sends without a request arrive even at an endpoint that opens later. */
TEST(forgotten_sends_arrive_late)
{
	static const struct sci_addr addr = { 8, TEST_ID };
	struct peer *p = peer_spawn(8, takes_one_late, NULL);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	uint32_t word = 4711;
	const struct iovec iov = { &word, sizeof(word) };
	const struct sci_send send = {
		.iov = &iov, .n = 1, .flags = SCI_SEND_COPY,
	};
	struct sci_peer *to;

	CHECK_EQ(sci_peer_open(ep, &addr, -1, &to), 0);
	CHECK_EQ(sci_isendm(to, &send, NULL), 0);
	word = 0;
	peer_send(p, "closing");
	CHECK_EQ(sci_ep_close(ep), 0);
	peer_join(p);
}

/* The other endpoint never opens: closing gives up and leaks nothing. */
TEST(forgotten_sends_to_nobody)
{
	static const struct sci_addr addr = { 4, 99 };
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	uint32_t word = 4711;
	const struct iovec iov = { &word, sizeof(word) };
	const struct sci_send send = {
		.iov = &iov, .n = 1, .flags = SCI_SEND_COPY,
	};
	struct sci_peer *to;

	CHECK_EQ(sci_peer_open(ep, &addr, 20, &to), 0);
	CHECK_EQ(sci_isendm(to, &send, NULL), 0);
	WAIT_UNTIL((sci_progress(ep), sci_peer_state(to)) == -ETIME,
		   TEST_WAIT_MS);
	CHECK_EQ(sci_isendm(to, &send, NULL), -ETIME);
	CHECK_EQ(sci_disconnect(to), 0);
	CHECK_EQ(sci_peer_open(ep, &addr, -1, &to), 0);
	CHECK_EQ(sci_isendm(to, &send, NULL), 0);
	CHECK_EQ(sci_ep_close(ep), 0);
}

#define NOBODIES	50u

/* Closing gives up all connects at once: one by one they would take too long. */
TEST(forgotten_sends_to_many_that_are_not_there)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	uint32_t word = 4711;
	const struct iovec iov = { &word, sizeof(word) };
	const struct sci_send send = {
		.iov = &iov, .n = 1, .flags = SCI_SEND_COPY,
	};

	for (uint32_t i = 0; i < NOBODIES; i++) {
		struct sci_addr addr = { 4, 100 + i };
		struct sci_peer *to;

		CHECK_EQ(sci_peer_open(ep, &addr, -1, &to), 0);
		CHECK_EQ(sci_isendm(to, &send, NULL), 0);
	}
	CHECK_EQ(sci_ep_close(ep), 0);
}

static void stands_still(struct peer *self, void *arg)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);

	(void)arg;
	peer_expect(self, "go");
	for (uint32_t i = 0; i < SCI_DETACHED_MAX + 1; i++) {
		uint32_t word = UINT32_MAX;

		CHECK_EQ(sci_recv(ep, NULL, &word, sizeof(word), NULL), 0);
		CHECK_EQ(word, i);
	}
	peer_send(self, "all");
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* Sends without a request have a limit; they go on when there is room. */
TEST(forgotten_sends_to_one_that_takes_none)
{
	static const struct sci_addr addr = { 8, TEST_ID };
	struct peer *p = peer_spawn(8, stands_still, NULL);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	uint32_t word = 0;
	const struct iovec iov = { &word, sizeof(word) };
	const struct sci_send send = {
		.iov = &iov, .n = 1, .flags = SCI_SEND_COPY,
	};
	struct sci_peer *to;

	CHECK_EQ(sci_peer_open(ep, &addr, -1, &to), 0);
	for (word = 0; word < SCI_DETACHED_MAX; word++)
		CHECK_EQ(sci_isendm(to, &send, NULL), 0);
	CHECK_EQ(sci_isendm(to, &send, NULL), -EAGAIN);
	sci_progress(ep);
	CHECK_EQ(sci_isendm(to, &send, NULL), -EAGAIN);
	peer_send(p, "go");
	WAIT_UNTIL((sci_progress(ep), !sci_isendm(to, &send, NULL)),
		   TEST_WAIT_MS);
	WAIT_UNTIL((sci_progress(ep), sci_peer_state(to)) == -ENOTCONN,
		   TEST_WAIT_MS);
	peer_expect(p, "all");
	CHECK_EQ(sci_ep_close(ep), 0);
	peer_join(p);
}

/* A cancelled send takes its immediate along: no other message gets it. */
TEST(cancelled_with_its_immediate)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *me = test_ep_connect(ep, 4, TEST_ID);
	static char buf[100];
	const struct iovec iov = { buf, sizeof(buf) };
	const struct sci_send send = {
		.iov = &iov, .n = 1, .flags = SCI_SEND_IMM, .imm = 5,
	};
	unsigned int cancelled = 0, n = 0;
	struct sci_req *req[200];
	struct sci_status st;

	/* without progress all but the first few sends wait */
	for (; n < ARRAY_LEN(req); n++)
		CHECK_EQ(sci_isendm(me, &send, &req[n]), 0);
	for (unsigned int i = 0; i < n; i++)
		cancelled += !sci_cancel(req[i]);
	CHECK(cancelled);
	CHECK(cancelled < n);
	for (unsigned int i = cancelled; i < n; i++) {
		CHECK_EQ(sci_recv(ep, me, buf, sizeof(buf), &st), 0);
		CHECK_EQ(st.imm, 5);
	}
	CHECK_EQ(sci_send(me, buf, 100), 0);
	CHECK_EQ(sci_recv(ep, me, buf, sizeof(buf), &st), 0);
	CHECK_EQ(st.flags, 0);
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(arguments_that_make_no_sense)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *me = test_ep_connect(ep, 4, TEST_ID);
	const struct iovec iov = { NULL, 5 };
	struct sci_send send = { .flags = SCI_SEND_COPY };
	struct sci_req *req;

	CHECK_EQ(sci_isendm(NULL, &send, &req), -EINVAL);
	CHECK_EQ(sci_isendm(me, NULL, &req), -EINVAL);
	send.flags = 1u << 31;
	CHECK_EQ(sci_isendm(me, &send, &req), -EINVAL);
	/* without a request nothing reports when the buffer is free */
	send.flags = 0;
	CHECK_EQ(sci_isendm(me, &send, NULL), -EINVAL);
	send.n = 1;
	CHECK_EQ(sci_isendm(me, &send, &req), -EINVAL);
	send.iov = &iov;
	CHECK_EQ(sci_isendm(me, &send, &req), -EINVAL);
	send = (struct sci_send){
		.context = UINT32_MAX, .flags = SCI_SEND_TAGGED,
	};
	CHECK_EQ(sci_isendm(me, &send, &req), -EINVAL);
	CHECK_EQ(sci_ep_close(ep), 0);
}
