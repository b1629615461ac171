// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* sci_peer_close(): connections that end without a wait. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <sci/msg.h>

#include "selftests/harness.h"
#include "selftests/msg/peers.h"

#define LOTS	500u			/* messages, more than a ring holds */

static const struct config plain;

/* Two endpoints of this process, which make progress only in calls. */
struct two {
	struct sci_ep *a, *b;
	struct sci_peer *to;		/* connection from a to b */
	struct sci_addr addr;		/* address of b */
};

static struct two two_open(const struct config *c)
{
	struct two t = {
		.a = test_ep_config(1, c), .b = test_ep_config(2, c),
		.addr = { 4, 2 },
	};

	CHECK_EQ(sci_peer_open(t.a, &t.addr, -1, &t.to), 0);
	WAIT_UNTIL((sci_progress(t.a), sci_progress(t.b),
		    !sci_peer_state(t.to)), TEST_WAIT_MS);
	return t;
}

static void two_close(struct two *t)
{
	CHECK_EQ(sci_ep_close(t->a), 0);
	CHECK_EQ(sci_ep_close(t->b), 0);
}

/* Send more messages than a ring holds, so that some must wait. */
static void send_lots(struct two *t)
{
	const struct iovec iov = { &(uint64_t){ 0 }, 8 };
	struct sci_send m = {
		.iov = &iov, .n = 1, .flags = SCI_SEND_COPY | SCI_SEND_TAGGED,
	};

	for (unsigned int i = 0; i < LOTS; i++) {
		m.tag = i;
		CHECK_EQ(sci_isendm(t->to, &m, NULL), 0);
	}
}

/* Receive all messages sent before the close, then see the connection end. */
static void receive_lots(struct two *t, bool ends)
{
	struct sci_status st;
	struct sci_peer *from;
	uint64_t b;

	for (unsigned int i = 0; i < LOTS; i++) {
		WAIT_UNTIL((sci_progress(t->a),
			    !sci_tprobe(t->b, NULL, 0, i, 0, 0, &st)),
			   TEST_WAIT_MS);
		from = st.peer;
		CHECK(from);
		CHECK_EQ(sci_trecv(t->b, from, 0, i, 0, &b, 8, NULL), 0);
	}
	if (!ends)
		return;
	WAIT_UNTIL((sci_progress(t->a), sci_progress(t->b),
		    sci_peer_state(from) == -ENOTCONN), TEST_WAIT_MS);
}

TEST(nothing_to_wait_for)
{
	struct two t = two_open(&plain);
	struct sci_peer *p;

	CHECK_EQ(sci_peer_close(t.to), 0);
	CHECK_EQ(sci_peer_find(t.a, &t.addr, &p), -ENOENT);
	WAIT_UNTIL((sci_progress(t.a), test_ep_stats(t.a).peers == 0),
		   TEST_WAIT_MS);
	two_close(&t);
}

TEST(what_was_sent_arrives)
{
	struct two t = two_open(&plain);

	send_lots(&t);
	CHECK_EQ(sci_peer_close(t.to), 0);
	CHECK_EQ(test_ep_stats(t.a).peers, 1);
	receive_lots(&t, true);
	CHECK_EQ(test_ep_stats(t.a).peers, 0);
	two_close(&t);
}

TEST(what_was_sent_arrives_in_spite_of_losses)
{
	struct two t;

	setenv("SCI_FAULT", "loss=0.05,seed=1", 1);
	t = two_open(&plain);
	send_lots(&t);
	CHECK_EQ(sci_peer_close(t.to), 0);
	receive_lots(&t, true);
	two_close(&t);
}

TEST(a_peer_that_takes_nothing)
{
	struct two t = two_open(&plain);

	send_lots(&t);
	CHECK_EQ(sci_peer_close(t.to), 0);
	CHECK_EQ(test_ep_stats(t.a).peers, 1);
	WAIT_UNTIL((sci_progress(t.a), test_ep_stats(t.a).peers == 0),
		   TEST_WAIT_MS);
	two_close(&t);
}

TEST(the_endpoint_closes_meanwhile)
{
	struct two t = two_open(&plain);

	send_lots(&t);
	CHECK_EQ(sci_peer_close(t.to), 0);
	CHECK_EQ(sci_ep_close(t.a), 0);
	CHECK_EQ(sci_ep_close(t.b), 0);
}

/* ---- a connect after the close ---- */

TEST(a_connect_keeps_the_connection)
{
	struct two t = two_open(&plain);
	struct sci_peer *again, *found;

	send_lots(&t);
	CHECK_EQ(sci_peer_close(t.to), 0);
	CHECK_EQ(sci_peer_open(t.a, &t.addr, -1, &again), 0);
	CHECK(again == t.to);
	receive_lots(&t, false);
	CHECK_EQ(sci_peer_state(again), 0);
	CHECK_EQ(sci_peer_find(t.a, &t.addr, &found), 0);
	CHECK(found == again);
	/* close the connection a second time */
	send_lots(&t);
	CHECK_EQ(sci_peer_close(again), 0);
	receive_lots(&t, true);
	two_close(&t);
}

static void ignored(void *arg, const struct sci_handled *m)
{
	(void)arg;
	(void)m;
}

/* The peer may wait for a reply to the dropped message, so its connection must not stay. */
static void check_dropped(bool finds)
{
	struct two t = two_open(&plain);
	struct sci_peer *back, *again;
	struct sci_req *req;
	struct sci_status st;
	uint64_t b = 0;

	CHECK_EQ(sci_accept(t.b, TEST_WAIT_MS, &back), 0);
	CHECK_EQ(sci_handler_set(t.a, SCI_HANDLER_USER, ignored, NULL), 0);
	send_lots(&t);
	CHECK_EQ(sci_peer_close(t.to), 0);
	CHECK_EQ(sci_handler_send(back, SCI_HANDLER_USER, 0, NULL, 0), 0);
	WAIT_UNTIL((sci_progress(t.a), test_ep_stats(t.a).unhandled == 1), TEST_WAIT_MS);
	if (finds)
		CHECK_EQ(sci_peer_find(t.a, &t.addr, &again), -ENOENT);
	CHECK_EQ(sci_peer_open(t.a, &t.addr, -1, &again), 0);
	WAIT_UNTIL((sci_progress(t.a), sci_progress(t.b),
		    sci_peer_state(back) == -ENOTCONN && !sci_peer_state(again)), TEST_WAIT_MS);
	/* the new connection runs the handler */
	CHECK_EQ(sci_disconnect(back), 0);
	CHECK_EQ(sci_itsend(again, 0, LOTS, &b, 8, &req), 0);
	CHECK_EQ(sci_trecv(t.b, NULL, 0, LOTS, 0, &b, 8, &st), 0);
	CHECK_EQ(test_wait(req, &st), 0);
	CHECK_EQ(sci_peer_find(t.b, &(struct sci_addr){ 4, 1 }, &back), 0);
	CHECK_EQ(sci_handler_send(back, SCI_HANDLER_USER, 0, NULL, 0), 0);
	WAIT_UNTIL((sci_progress(t.a), test_ep_stats(t.a).handled == 1), TEST_WAIT_MS);
	two_close(&t);
}

TEST(an_open_after_a_dropped_message_makes_a_new_connection)
{
	check_dropped(false);
}

TEST(a_connection_that_dropped_a_message_is_not_found)
{
	check_dropped(true);
}

/* ---- what a program sees of a closing peer ---- */

static void handled(void *arg, const struct sci_handled *m)
{
	(void)arg;
	(void)m;
	FAIL("a message of a peer that the program has closed");
}

TEST(nothing_names_it)
{
	static const struct config events = { .flags = SCI_EP_PEER_EVENTS };
	struct two t = two_open(&events);
	struct sci_completion done;
	struct sci_peer *back;
	struct sci_status st;
	struct sci_try_recv r = { 0 };
	struct sci_req *req;
	uint64_t b;

	CHECK_EQ(sci_accept(t.b, TEST_WAIT_MS, &back), 0);
	CHECK_EQ(sci_handler_set(t.a, SCI_HANDLER_USER, handled, NULL), 0);
	WAIT_UNTIL((sci_progress(t.b), sci_completions(t.a, 0, &done, 1) == 1),
		   TEST_WAIT_MS);
	CHECK_EQ(done.status.flags, SCI_STATUS_PEER_UP);
	CHECK_EQ(sci_irecv(t.a, t.to, &b, 8, &req), 0);
	send_lots(&t);
	CHECK_EQ(sci_peer_close(t.to), 0);
	CHECK_EQ(sci_handler_send(back, SCI_HANDLER_USER, 0, NULL, 0), 0);
	for (unsigned int i = 0; i < 3; i++)
		CHECK_EQ(sci_tsend(back, 0, i, &b, 8), 0);
	CHECK_EQ(sci_try_trecvs(t.a, NULL, 0, &r, 1), -EBUSY);
	CHECK_EQ(sci_tprobe(t.a, NULL, 0, 1, 0, TEST_WAIT_MS, &st), 0);
	CHECK(!st.peer);
	CHECK_EQ(sci_trecv(t.a, NULL, 0, 0, 0, &b, 8, &st), 0);
	CHECK(!st.peer);
	CHECK_EQ(test_ep_stats(t.a).unhandled, 1);
	receive_lots(&t, false);
	CHECK_EQ(test_wait(req, &st), -ECANCELED);
	CHECK(!st.peer);
	CHECK_EQ(sci_peer_gone(t.a, &back), -ENOENT);
	CHECK_EQ(sci_completions(t.a, 0, &done, 1), -EAGAIN);
	two_close(&t);
}

static void dies(struct peer *self, void *arg)
{
	struct pair l = pair_open(self, 4, 0);

	(void)arg;
	pair_meet(&l);
	peer_send(self, "ready");
	for (;;)
		pause();
}

TEST(it_dies_meanwhile)
{
	struct peer *p = peer_spawn(8, dies, NULL);
	struct pair l = pair_open(p, 8, 0);
	struct two t = { .a = l.ep, .to = l.to };

	pair_meet(&l);
	peer_expect(p, "ready");
	send_lots(&t);
	CHECK_EQ(sci_peer_close(l.to), 0);
	peer_kill(p, SIGKILL);
	WAIT_UNTIL((sci_progress(l.ep), test_ep_stats(l.ep).peers == 0),
		   TEST_WAIT_MS);
	CHECK_EQ(sci_peer_gone(l.ep, &l.to), -ENOENT);
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

/* ---- two closing connections ---- */

/* Send the messages @from to @to - 1 to @p. */
static void send_some(struct sci_peer *p, unsigned int from, unsigned int to)
{
	for (unsigned int i = from; i < to; i++) {
		const struct iovec iov = { &(uint64_t){ 0 }, 8 };
		const struct sci_send m = {
			.iov = &iov, .n = 1, .tag = i,
			.flags = SCI_SEND_COPY | SCI_SEND_TAGGED,
		};

		CHECK_EQ(sci_isendm(p, &m, NULL), 0);
	}
}

/*
 * In one progress call, the HELLO of a new connection ends the second closing connection, and the
 * first one is flushed.
 */
TEST(one_is_replaced_while_another_ends)
{
	const struct sci_addr home = { 4, 1 }, there = { 4, 3 };
	struct two t = two_open(&plain);
	struct sci_ep *c = test_ep_open(3, 0);
	struct sci_peer *to, *back;
	struct sci_status st;
	struct sci_req *req;

	CHECK_EQ(sci_peer_open(t.a, &there, -1, &to), 0);
	WAIT_UNTIL((sci_progress(t.a), sci_progress(c),
		    !sci_peer_state(to) && !sci_accept(c, 0, &back)), TEST_WAIT_MS);
	send_some(t.to, 0, DATA_LINES + 1);
	send_some(to, 0, LOTS);
	CHECK_EQ(sci_peer_close(t.to), 0);
	CHECK_EQ(sci_peer_close(to), 0);
	/* without a progress call of a, make room for the last message of the first connection */
	WAIT_UNTIL(!sci_tprobe(t.b, NULL, 0, DATA_LINES - 1, 0, 0, &st), TEST_WAIT_MS);
	CHECK_EQ(sci_disconnect(back), 0);
	WAIT_UNTIL(atomic_load(&to->events) & PEER_LEFT, TEST_WAIT_MS);
	CHECK_EQ(sci_iconnect(c, &home, -1, &req), 0);
	WAIT_UNTIL((sci_progress(c), container_of(c->peers.prev, struct sci_peer, link)->asked),
		   TEST_WAIT_MS);
	sci_progress(t.a);
	WAIT_UNTIL((sci_progress(t.a), sci_progress(c), !sci_test(req, &st)), TEST_WAIT_MS);
	CHECK_EQ(test_ep_stats(t.a).peers, 1);
	CHECK_EQ(sci_ep_close(c), 0);
	two_close(&t);
}

/* Messages to an endpoint that opens after the close are delivered. */
TEST(before_there_is_a_connection)
{
	struct sci_ep *a = test_ep_open(1, 0);
	struct two t = { .a = a, .addr = { 4, 2 } };

	CHECK_EQ(sci_peer_open(a, &t.addr, -1, &t.to), 0);
	send_lots(&t);
	CHECK_EQ(sci_peer_close(t.to), 0);
	t.b = test_ep_open(2, 0);
	receive_lots(&t, true);
	two_close(&t);
}

TEST(arguments_that_make_no_sense)
{
	CHECK_EQ(sci_peer_close(NULL), -EINVAL);
}
