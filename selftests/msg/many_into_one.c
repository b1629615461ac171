// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Several messages into one buffer: sci_irecv_many(). */
#include <errno.h>
#include <signal.h>

#include <sci/msg.h>

#include "selftests/harness.h"
#include "selftests/msg/peers.h"
#include "selftests/msg/servant.h"

#define BIG	100000u		/* a rendezvous */
#define ROOM	(2 * BIG)

/* A length of each protocol: empty, short, lines, eager, rendezvous. */
static const size_t lengths[] = { 0, 20, 300, 3000, BIG };

static const struct config blocks = { .n = 2, .set = { BLOCKS } };

static unsigned char buf[ROOM];

static struct sci_req *post_many(struct pair *l, unsigned char *at, size_t size, size_t min)
{
	struct sci_req *req = NULL;

	CHECK_EQ(sci_irecv_many(l->ep, l->to, at, size, min, at, &req), 0);
	CHECK(req);
	return req;
}

static void ask(struct pair *l, uint64_t seed, size_t len)
{
	tell_send(l, &(struct work){ .len = len, .seed = seed });
}

static void no_more(struct pair *l)
{
	struct sci_completion done;

	CHECK_EQ(sci_completions(l->ep, 0, &done, 1), -EAGAIN);
}

/* Check that the next completion is a message of @len bytes at @at, of receive @data. */
static void next_is(struct pair *l, void *data, unsigned char *at, size_t len, uint64_t seed,
		    uint32_t flags)
{
	struct sci_completion done = next_completion(l);

	CHECK(done.data == data);
	CHECK(done.buf == at);
	CHECK_EQ(done.status.error, 0);
	CHECK_EQ(done.status.len, len);
	CHECK_EQ(done.status.flags, flags);
	CHECK(done.status.peer == l->to);
	CHECK_BYTES(at, len, seed);
}

/* Check that receive @data returns its buffer without a message. */
static void next_fails(struct pair *l, void *data, int error)
{
	struct sci_completion done = next_completion(l);

	CHECK(done.data == data);
	CHECK(!done.buf);
	CHECK_EQ(done.status.error, error);
	CHECK_EQ(done.status.flags, SCI_STATUS_RETURNED);
}

/* Receive all lengths. If @unexpected, the messages arrive before the receive is posted. */
static void each_length(bool unexpected)
{
	struct pair l = servant_begin(&blocks);
	unsigned char *at = buf;
	struct sci_req *req = NULL;

	if (!unexpected)
		req = post_many(&l, buf, ROOM, 1);
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
		ask(&l, i, lengths[i]);
	if (unexpected) {
		/* this message is behind all others: when it is here, they are too */
		tell_send(&l, &(struct work){ .tagged = 1, .context = 1 });
		CHECK_EQ(sci_trecv(l.ep, l.to, 1, 0, 0, NULL, 0, NULL), 0);
		req = post_many(&l, buf, ROOM, 1);
	}
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		next_is(&l, buf, at, lengths[i], i, 0);
		at += lengths[i];
	}
	no_more(&l);
	CHECK_EQ(sci_cancel(req), 0);
	CHECK_EQ(sci_cancel(req), -EBUSY);
	next_fails(&l, buf, -ECANCELED);
	servant_end(&l);
}

TEST(messages_of_each_length_follow_each_other)
{
	each_length(false);
	each_length(true);
}

/* All messages are in the ring before the receiver polls it. */
TEST(it_keeps_its_place_before_later_receives)
{
	struct pair l = servant_begin(&blocks);
	unsigned char *later = buf + 1000, *last = buf + 2000;
	struct sci_req *req;

	post_many(&l, buf, 60, 20);
	post_many(&l, later, 40, 30);
	CHECK_EQ(sci_irecv(l.ep, l.to, last, 20, &req), 0);
	CHECK_EQ(sci_req_queue(req, last), 0);
	for (unsigned int i = 0; i < 5; i++)
		ask(&l, i, 20);
	tell_pause(&l);
	for (unsigned int i = 0; i < 3; i++)
		next_is(&l, buf, buf + 20 * i, 20, i, i < 2 ? 0 : SCI_STATUS_RETURNED);
	next_is(&l, later, later, 20, 3, SCI_STATUS_RETURNED);
	CHECK(next_completion(&l).data == last);
	CHECK_BYTES(last, 20, 4);
	no_more(&l);
	peer_send(l.proc, "go on");
	servant_end(&l);
}

/* Begin to receive a long message, whose bytes come only when the servant goes on. */
static struct sci_req *post_and_begin(struct pair *l, size_t size)
{
	struct sci_req *req = post_many(l, buf, size, 1);

	ask(l, 1, BIG);
	ask(l, 2, 20);
	tell_pause(l);
	next_is(l, buf, buf + BIG, 20, 2, 0);
	return req;
}

TEST(the_part_that_completes_last_returns_the_buffer)
{
	struct pair l = servant_begin(&blocks);

	post_and_begin(&l, BIG + 20);
	peer_send(l.proc, "go on");
	next_is(&l, buf, buf, BIG, 1, SCI_STATUS_RETURNED);
	no_more(&l);
	servant_end(&l);
}

TEST(a_cancelled_receive_is_returned_by_the_message_under_way)
{
	struct pair l = servant_begin(&blocks);
	struct sci_req *req = post_and_begin(&l, ROOM);

	CHECK_EQ(sci_cancel(req), 0);
	peer_send(l.proc, "go on");
	next_is(&l, buf, buf, BIG, 1, SCI_STATUS_RETURNED);
	no_more(&l);
	servant_end(&l);
}

TEST(a_message_longer_than_the_rest_ends_it)
{
	struct pair l = servant_begin(&blocks);
	struct sci_completion done;

	post_many(&l, buf, 30, 1);
	ask(&l, 1, 20);
	ask(&l, 2, 3000);
	next_is(&l, buf, buf, 20, 1, 0);
	done = next_completion(&l);
	CHECK(done.data == buf);
	CHECK(done.buf == buf + 20);
	CHECK_EQ(done.status.error, -EMSGSIZE);
	CHECK_EQ(done.status.len, 3000);
	CHECK_EQ(done.status.flags, SCI_STATUS_RETURNED);
	CHECK_BYTES(buf + 20, 10, 2);
	no_more(&l);
	servant_end(&l);
}

TEST(the_end_of_its_peer_returns_it)
{
	struct pair l = servant_begin(&blocks);

	post_many(&l, buf, 100, 1);
	post_many(&l, buf + 100, 100, 1);
	ask(&l, 1, 20);
	next_is(&l, buf, buf, 20, 1, 0);
	peer_kill(l.proc, SIGKILL);
	next_fails(&l, buf, -ECONNRESET);
	next_fails(&l, buf + 100, -ECONNRESET);
	post_many(&l, buf, 100, 1);
	next_fails(&l, buf, -ECONNRESET);
	no_more(&l);
	CHECK_EQ(sci_disconnect(l.to), 0);
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

TEST(close_with_buffers_posted_and_messages_not_taken)
{
	struct pair l = servant_begin(&blocks);

	post_many(&l, buf, 40, 1);
	post_many(&l, buf + 100, 100, 1);
	for (unsigned int i = 0; i < 3; i++)
		ask(&l, i, 20);
	servant_end(&l);
}

TEST(arguments_that_make_no_sense)
{
	struct pair l = servant_begin(&blocks);
	struct sci_req *req;

	CHECK_EQ(sci_irecv_many(NULL, l.to, buf, 20, 1, buf, &req), -EINVAL);
	CHECK_EQ(sci_irecv_many(l.ep, l.to, NULL, 20, 1, buf, &req), -EINVAL);
	CHECK_EQ(sci_irecv_many(l.ep, l.to, buf, 0, 1, buf, &req), -EINVAL);
	CHECK_EQ(sci_irecv_many(l.ep, l.to, buf, 20, 1, buf, NULL), -EINVAL);
	servant_end(&l);
}
