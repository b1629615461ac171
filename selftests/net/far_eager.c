// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Messages to far peers leave their handshakes out. A receiver that answers late takes the place of
 * the distance.
 */
#include "libsci/base/host.h"
#include "selftests/net/exchange.h"

#define LONG		(1u << 20)	/* in bytes */
#define RING		(4u << 20)
#define DISTANCE_NS	3000000u	/* longer than two copies of LONG bytes */
#define CONTEXT		5u
#define ORDERS		6u

enum order { RECEIVE_LATE, RECEIVE_EARLY, END };

static unsigned char buf[LONG];

static void receiver(struct peer *proc, void *arg)
{
	uint32_t order = END, n = 0;
	struct sci_req *req;
	struct pair l;

	(void)arg;
	test_use_net("unix", 8);
	l = pair_open(proc, 4, 0);
	for (;; n++) {
		CHECK_EQ(sci_trecv(l.ep, l.to, ORDERS, 0, 0, &order, sizeof(order), NULL), 0);
		if (order == END)
			break;
		CHECK_EQ(sci_itrecv(l.ep, l.to, CONTEXT, 0, 0, buf, LONG, &req), 0);
		if (order == RECEIVE_EARLY)
			pair_meet(&l);
		CHECK_EQ(sci_wait(req, TEST_WAIT_MS, NULL), 0);
		CHECK_BYTES(buf, LONG, n);
		pair_meet(&l);
	}
	pair_close(&l);
}

static void order_send(struct pair *l, uint32_t order)
{
	CHECK_EQ(sci_tsend(l->to, ORDERS, 0, &order, sizeof(order)), 0);
}

static uint64_t rendezvous(struct pair *l)
{
	struct sci_ep_stats st = { .size = sizeof(st) };

	CHECK_EQ(sci_ep_stats(l->ep, &st), 0);
	return st.sent_rendezvous + st.sent_zcopy;
}

/* Send the message number *@n. Return true if it begins with a handshake. */
static bool message_send(struct pair *l, enum order order, unsigned int flags, uint32_t *n)
{
	struct iovec iov = { buf, LONG };
	uint64_t before = rendezvous(l), begin;
	struct sci_req *req;

	msg_fill(buf, LONG, (*n)++);
	if (order == RECEIVE_EARLY) {
		order_send(l, order);
		pair_meet(l);
	}
	CHECK_EQ(sci_itsendv(l->to, CONTEXT, 0, &iov, 1, flags, &req), 0);
	if (order == RECEIVE_LATE) {
		for (begin = sci_now_ns(); sci_now_ns() - begin < DISTANCE_NS;)
			sci_progress(l->ep);
		order_send(l, order);
	}
	CHECK_EQ(sci_wait(req, TEST_WAIT_MS, NULL), 0);
	pair_meet(l);
	return rendezvous(l) > before;
}

/* Send late messages. Return the number of those that begin with a handshake. */
static unsigned int handshakes(struct pair *l, unsigned int messages, uint32_t *n)
{
	unsigned int count = 0;

	while (messages--)
		count += message_send(l, RECEIVE_LATE, 0, n);
	return count;
}

/* The sender knows the distance after 8 handshakes, and gets a ring. */
static void knows_distance(struct pair *l, uint32_t *n)
{
	uint64_t deadline = sci_now_ms() + TEST_WAIT_MS;

	CHECK_EQ(sci_ep_set(l->ep, SCI_PARAM_EAGER_RING, RING), 0);
	CHECK_EQ(sci_ep_set(l->ep, SCI_PARAM_FAR_EAGER_MAX, LONG), 0);
	CHECK_EQ(handshakes(l, 8, n), 8);
	while (message_send(l, RECEIVE_LATE, 0, n))
		CHECK(sci_now_ms() < deadline);
}

TEST(messages_to_a_far_peer_leave_handshakes_out)
{
	struct peer *p = peer_spawn(8, receiver, NULL);
	uint64_t deadline;
	uint32_t n = 0;
	struct pair l;

	test_use_net("unix", 4);
	l = pair_open(p, 8, 0);
	knows_distance(&l, &n);
	/* it measures again and again */
	CHECK_EQ(handshakes(&l, 31, &n), 0);
	CHECK_EQ(handshakes(&l, 33, &n), 1);
	/* a longer message has a handshake */
	CHECK_EQ(sci_peer_set(l.to, SCI_PARAM_FAR_EAGER_MAX, LONG - 1), 0);
	CHECK(message_send(&l, RECEIVE_LATE, 0, &n));
	CHECK_EQ(sci_peer_set(l.to, SCI_PARAM_FAR_EAGER_MAX, LONG), 0);
	CHECK(!message_send(&l, RECEIVE_LATE, 0, &n));
	/* synchronous messages have handshakes, which show that the peer is no longer far */
	deadline = sci_now_ms() + TEST_WAIT_MS;
	do {
		CHECK(sci_now_ms() < deadline);
		CHECK(message_send(&l, RECEIVE_EARLY, SCI_SEND_SYNC, &n));
	} while (!message_send(&l, RECEIVE_LATE, 0, &n));
	order_send(&l, END);
	pair_close(&l);
	peer_join(p);
}

TEST(a_program_wants_handshakes)
{
	struct peer *p = peer_spawn(8, receiver, NULL);
	uint32_t n = 0;
	struct pair l;

	test_use_net("unix", 4);
	l = pair_open(p, 8, 0);
	knows_distance(&l, &n);
	CHECK_EQ(sci_peer_set(l.to, SCI_PARAM_FAR_EAGER_MAX, 0), 0);
	CHECK_EQ(handshakes(&l, 20, &n), 20);
	order_send(&l, END);
	pair_close(&l);
	peer_join(p);
}
