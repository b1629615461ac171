// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Rings and buffers that cannot be imported at once, as the link is down or the
 * other side does not answer in time: what was to go through them goes later.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include <sci/msg.h>

#include "selftests/harness.h"
#include "selftests/msg/peers.h"
#include "selftests/msg/unanswered.h"

#define MESSAGES	20u

/* ---- messages that need an import ---- */

struct way {
	struct config config;
	size_t len;
	bool exported;			/* the receiver's buffer */
	size_t counted;			/* where in sci_ep_stats */
};

static void takes(struct peer *self, void *arg)
{
	const struct way *w = arg;
	struct pair l = pair_config(self, 4, &w->config);
	void *buf = NULL;

	if (w->exported)
		CHECK_EQ(sci_buf_alloc(l.ep, w->len, &buf), 0);
	else
		buf = calloc(1, w->len);
	CHECK(buf);
	for (unsigned int i = 0; i < MESSAGES; i++) {
		struct sci_status status;

		CHECK_EQ(sci_recv(l.ep, l.to, buf, w->len, &status), 0);
		CHECK_EQ(status.len, w->len);
		CHECK_BYTES(buf, w->len, i);
	}
	pair_close(&l);
	if (!w->exported)
		free(buf);
}

static void send_all(struct pair *l, const struct way *w)
{
	unsigned char *buf = malloc(w->len);

	CHECK(buf);
	for (unsigned int i = 0; i < MESSAGES; i++) {
		struct sci_req *req;

		msg_fill(buf, w->len, i);
		CHECK_EQ(sci_isend(l->to, buf, w->len, &req), 0);
		CHECK_EQ(test_wait(req, NULL), 0);
	}
	free(buf);
}

static void check_late(struct way *w, int error, unsigned int times)
{
	struct peer *p = peer_spawn(8, takes, w);
	struct pair l = pair_config(p, 8, &w->config);
	struct sci_ep_stats stats;

	unanswered_begin(l.ep, UNANSWERED_SEGMENTS, times, error);
	/* who sleeps meanwhile comes back to it, too */
	CHECK_EQ(sci_ep_set(l.ep, SCI_PARAM_SPIN_US, 0), 0);
	send_all(&l, w);
	CHECK_EQ(unanswered.left, 0);
	unanswered_end(l.ep);
	stats = test_ep_stats(l.ep);
	CHECK(*(const uint64_t *)((const char *)&stats + w->counted));
	pair_close(&l);
	peer_join(p);
}

static void check_way(struct way *w)
{
	check_late(w, -ETIMEDOUT, 1);
	check_late(w, -ETIMEDOUT, 5);
	check_late(w, -ENETDOWN, 100);
}

TEST(an_eager_ring_that_is_imported_late)
{
	struct way w = {
		.config = { .n = 2, .set = {
			{ SCI_PARAM_LINES_MAX, 0 },
			{ SCI_PARAM_ATTACH_AFTER, 0 },
		} },
		.len = 4096,
		.counted = offsetof(struct sci_ep_stats, sent_eager),
	};

	check_way(&w);
}

TEST(a_transfer_ring_that_is_imported_late)
{
	struct way w = {
		.config = { .n = 2, .set = {
			{ SCI_PARAM_EAGER_MAX, 4096 },
			{ SCI_PARAM_SINGLE_COPY_MIN, UINT64_MAX },
		} },
		.len = 100000,
		.counted = offsetof(struct sci_ep_stats, sent_rendezvous),
	};

	check_way(&w);
}

TEST(a_buffer_that_is_imported_late)
{
	struct way w = {
		.config = { .n = 3, .set = {
			{ SCI_PARAM_EAGER_MAX, 4096 },
			{ SCI_PARAM_ZCOPY_MIN, 8192 },
			{ SCI_PARAM_SINGLE_COPY_MIN, UINT64_MAX },
		} },
		.len = 100000,
		.exported = true,
		.counted = offsetof(struct sci_ep_stats, sent_zcopy),
	};

	check_way(&w);
}
