// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Tests frames between daemons when malloc() fails. The program includes the daemon's source
 * file, so that its allocations can fail.
 */

#include <stdlib.h>

#include "selftests/harness.h"

static int fail_from, fail_to;		/* allocations that fail, counted from 1 */
static int allocations;

static void *short_malloc(size_t size)
{
	allocations++;
	return allocations >= fail_from && allocations < fail_to ? NULL : malloc(size);
}

#define malloc short_malloc
#include "libsci/pvm/daemon/link.c"	/* NOLINT(bugprone-suspicious-include) */
#undef malloc

#define BODY	(3u * SCI_HANDLER_MAX)
#define PEER	((struct sci_peer *)&peer)

struct host *hosts[HOST_MAX + 1];
int own_host = 1;
struct sci_ep *endpoint;
static char peer;
static struct frame_head served, answered, routed;
static int n_served, n_answered, n_routed;
static uint8_t served_sum;

void host_heard(struct sci_peer *p)
{
	(void)p;
}

bool peer_known(struct sci_peer *p)
{
	return p == PEER;
}

void hoster_peer_gone(struct sci_peer *p)
{
	(void)p;
}

void say(const char *fmt, ...)
{
	(void)fmt;
}

void serve(struct frame_head *head, struct body *b, struct task *t, struct sci_peer *from)
{
	CHECK(!t && from == PEER);
	CHECK_EQ(b->left, head->len);
	served = *head;
	served_sum = 0;
	for (size_t i = 0; i < b->left; i++)
		served_sum ^= b->at[i];
	n_served++;
}

void answer(const struct frame_head *head, int status, struct frame *f)
{
	CHECK(!f);
	answered = *head;
	answered.status = status;
	n_answered++;
}

void frame_route(struct frame_head *head, const void *body)
{
	CHECK(!body);
	routed = *head;
	n_routed++;
}

/* Pass a frame to the daemon's handler in pieces, as the library does. */
static void frame_comes(uint16_t op, uint32_t seq, uint8_t fill)
{
	static uint8_t data[sizeof(struct frame_head) + BODY];
	struct frame_head head = { .len = BODY, .op = op, .seq = seq, .status = PvmOk };
	size_t n;

	memset(data, fill, sizeof(data));
	memcpy(data, &head, sizeof(head));
	data[sizeof(data) - 1] = (uint8_t)seq;
	for (size_t at = 0; at < sizeof(data); at += n) {
		struct sci_handled m = { .peer = PEER, .data = data + at };

		n = sizeof(data) - at < SCI_HANDLER_MAX ? sizeof(data) - at : SCI_HANDLER_MAX;
		m.tag = PIECE_TAG(at, sizeof(data));
		m.len = n;
		piece_handle(NULL, &m);
	}
	arrivals_serve();
}

/* Make allocations @from to @to - 1 fail; the next allocation has number 1. */
static void memory_short(int from, int to)
{
	fail_from = allocations + from;
	fail_to = allocations + to;
}

static void frame_expect(uint32_t seq, uint8_t fill)
{
	int before = n_served;

	frame_comes(OP_CONFIG, seq, fill);
	CHECK_EQ(n_served, before + 1);
	CHECK_EQ(served.seq, seq);
	CHECK_EQ(served_sum, (uint8_t)(fill ^ seq));
	CHECK(list_empty(&arriving));
}

TEST(a_frame_without_memory_is_refused)
{
	frame_expect(1, 7);
	memory_short(1, 2);
	frame_comes(OP_PUTINFO, 2, 7);
	CHECK_EQ(n_answered, 1);
	CHECK_EQ(answered.seq, 2);
	CHECK_EQ(answered.status, PvmNoMem);
	frame_expect(3, 9);
}

TEST(a_reply_without_memory_becomes_an_error)
{
	memory_short(1, 2);
	frame_comes(OP_REPLY, 4, 7);
	CHECK_EQ(n_routed, 1);
	CHECK_EQ(routed.seq, 4);
	CHECK_EQ(routed.len, 0);
	CHECK_EQ(routed.status, PvmNoMem);
	frame_expect(5, 9);
}

/* A later piece begins no frame, even if there is memory again. */
TEST(pieces_without_their_first_begin_no_frame)
{
	memory_short(1, 3);
	frame_comes(OP_PUTINFO, 6, 7);
	CHECK_EQ(n_answered + n_served + n_routed, 0);
	CHECK(list_empty(&arriving));
	frame_expect(7, 9);
}
