// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* SCI_EP_PEER_EVENTS: completions that report new connections and their ends. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <sci/msg.h>

#include "selftests/harness.h"
#include "selftests/msg/peers.h"

static const struct config events = { .flags = SCI_EP_PEER_EVENTS };

static struct sci_completion next(struct sci_ep *ep)
{
	struct sci_completion done = { 0 };

	CHECK_EQ(sci_completions(ep, TEST_WAIT_MS, &done, 1), 1);
	return done;
}

static void no_more(struct sci_ep *ep)
{
	struct sci_completion done;

	for (unsigned int i = 0; i < 100; i++)
		CHECK_EQ(sci_completions(ep, 0, &done, 1), -EAGAIN);
}

static struct sci_peer *came(struct sci_ep *ep)
{
	struct sci_completion done = next(ep);

	CHECK_EQ(done.status.flags, SCI_STATUS_PEER_UP);
	CHECK_EQ(done.status.error, 0);
	CHECK(done.status.peer);
	CHECK(!done.data);
	CHECK_EQ(sci_peer_state(done.status.peer), 0);
	return done.status.peer;
}

static void went(struct sci_ep *ep, struct sci_peer *peer, int error)
{
	struct sci_completion done = next(ep);

	CHECK_EQ(done.status.flags, SCI_STATUS_PEER_DOWN);
	CHECK_EQ(done.status.error, error);
	CHECK(done.status.peer == peer);
	CHECK(done.data == sci_peer_data(peer));
	CHECK_EQ(sci_peer_state(peer), error);
	CHECK_EQ(sci_disconnect(peer), 0);
}

/* ---- a server ---- */

static void guest(struct peer *self, void *arg)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *to = test_ep_connect(ep, 4, TEST_ID);

	CHECK_EQ(sci_send(to, "hello", 6), 0);
	if (arg) {
		peer_send(self, "ready");
		for (;;)
			pause();
	}
	/* leave when told to, after the last message has been received */
	CHECK_EQ(sci_recv(ep, to, NULL, 0, NULL), 0);
	CHECK_EQ(sci_send(to, "bye", 4), 0);
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(guests_come_and_leave)
{
	struct sci_ep *ep;
	struct sci_peer *peer;
	char buf[8];

	for (unsigned int i = 0; i < 3; i++) {
		struct peer *p = peer_spawn(8, guest, NULL);

		ep = test_ep_config(TEST_ID, &events);
		peer = came(ep);
		sci_peer_set_data(peer, &buf);
		no_more(ep);
		CHECK_EQ(sci_send(peer, NULL, 0), 0);
		went(ep, peer, -ENOTCONN);
		no_more(ep);
		CHECK_EQ(sci_ep_close(ep), 0);
		peer_join(p);
	}
}

TEST(messages_outlive_their_sender)
{
	struct peer *p = peer_spawn(8, guest, NULL);
	struct sci_ep *ep = test_ep_config(TEST_ID, &events);
	struct sci_peer *peer = came(ep);
	struct sci_completion done;
	char buf[8];

	CHECK_EQ(sci_send(peer, NULL, 0), 0);
	done = next(ep);
	CHECK_EQ(done.status.flags, SCI_STATUS_PEER_DOWN);
	CHECK_EQ(sci_recv(ep, peer, buf, sizeof(buf), NULL), 0);
	CHECK(!strcmp(buf, "hello"));
	CHECK_EQ(sci_recv(ep, peer, buf, sizeof(buf), NULL), 0);
	CHECK(!strcmp(buf, "bye"));
	CHECK_EQ(sci_recv(ep, peer, buf, sizeof(buf), NULL), -ENOTCONN);
	CHECK_EQ(sci_disconnect(peer), 0);
	CHECK_EQ(sci_ep_close(ep), 0);
	peer_join(p);
}

TEST(a_guest_dies)
{
	struct peer *p = peer_spawn(8, guest, (void *)&events);
	struct sci_ep *ep = test_ep_config(TEST_ID, &events);
	struct sci_peer *peer = came(ep);

	peer_expect(p, "ready");
	peer_kill(p, SIGKILL);
	went(ep, peer, -ECONNRESET);
	no_more(ep);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* The server takes both events after the guest has left. */
TEST(events_in_their_order)
{
	struct peer *p = peer_spawn(8, guest, NULL);
	struct sci_ep *ep = test_ep_config(TEST_ID, &events);
	struct sci_completion done[4];
	struct sci_peer *peer;

	CHECK_EQ(sci_accept(ep, TEST_WAIT_MS, &peer), 0);
	CHECK_EQ(sci_send(peer, NULL, 0), 0);
	WAIT_UNTIL((sci_progress(ep), sci_peer_state(peer) == -ENOTCONN),
		   TEST_WAIT_MS);
	CHECK_EQ(sci_completions(ep, 0, done, 4), 2);
	CHECK_EQ(done[0].status.flags, SCI_STATUS_PEER_UP);
	CHECK(done[0].status.peer == peer);
	CHECK_EQ(done[1].status.flags, SCI_STATUS_PEER_DOWN);
	CHECK(done[1].status.peer == peer);
	CHECK_EQ(sci_disconnect(peer), 0);
	CHECK_EQ(sci_ep_close(ep), 0);
	peer_join(p);
}

/* ---- connections that this side asks for ---- */

TEST(a_connection_that_was_asked_for)
{
	struct sci_ep *server = test_ep_open(TEST_ID, 0);
	struct sci_ep *ep = test_ep_config(2, &events);
	struct sci_addr addr = { 4, TEST_ID };
	struct sci_completion done = { 0 };
	struct sci_peer *peer;

	CHECK_EQ(sci_peer_open(ep, &addr, -1, &peer), 0);
	WAIT_UNTIL((sci_progress(server),
		    sci_completions(ep, 0, &done, 1) == 1), TEST_WAIT_MS);
	CHECK_EQ(done.status.flags, SCI_STATUS_PEER_UP);
	CHECK(done.status.peer == peer);
	CHECK_EQ(sci_ep_close(server), 0);
	went(ep, peer, -ENOTCONN);
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(a_connection_that_never_was)
{
	struct sci_ep *ep = test_ep_config(TEST_ID, &events);
	struct sci_addr nobody = { 4, 77 };
	struct sci_peer *peer;

	CHECK_EQ(sci_peer_open(ep, &nobody, 1, &peer), 0);
	went(ep, peer, -ETIME);
	no_more(ep);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* ---- no events ---- */

TEST(no_event_after_a_disconnect)
{
	struct sci_ep *ep = test_ep_config(TEST_ID, &events);
	struct sci_peer *me = test_ep_connect(ep, 4, TEST_ID);

	/* the disconnect removes the queued event and adds none */
	CHECK_EQ(sci_disconnect(me), 0);
	no_more(ep);
	me = test_ep_connect(ep, 4, TEST_ID);
	CHECK(came(ep) == me);
	CHECK_EQ(sci_disconnect(me), 0);
	no_more(ep);
	/* an endpoint closes with an event in its queue */
	test_ep_connect(ep, 4, TEST_ID);
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(no_event_unless_asked_for)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *me = test_ep_connect(ep, 4, TEST_ID);

	CHECK_EQ(sci_send(me, NULL, 0), 0);
	CHECK_EQ(sci_recv(ep, me, NULL, 0, NULL), 0);
	no_more(ep);
	CHECK_EQ(sci_ep_close(ep), 0);
}
