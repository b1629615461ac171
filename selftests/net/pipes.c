// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Pipes (libsci/fabric/net/pipe.h) between two nodes, both of this process. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/base/host.h"
#include "libsci/fabric/net/pipe.h"
#include "selftests/harness.h"

struct end {
	struct sci_fabric *fabric;
	unsigned int node;
	struct sci_pipe pipe;
	_Atomic unsigned int events;
};

static void event(void *owner, const struct sci_event *ev)
{
	(void)ev;
	atomic_fetch_add(&((struct end *)owner)->events, 1);
}

static void end_open(struct end *e, unsigned int node)
{
	const struct sci_fabric_place at = { .node = node };

	e->node = node;
	CHECK_EQ(sci_fabric_open_at(&e->fabric, &at), 0);
	CHECK_EQ(sci_pipe_begin(&e->pipe, e->fabric, 0, event, e), 0);
}

static void end_connect(struct end *e, const struct end *to)
{
	CHECK_EQ(sci_pipe_connect(&e->pipe, to->node, sci_pipe_number(&to->pipe), TEST_WAIT_MS,
				  event, e), 0);
}

static void ends_open(struct end *a, struct end *b)
{
	end_open(a, 4);
	end_open(b, 8);
	end_connect(a, b);
	end_connect(b, a);
}

static void end_close(struct end *e)
{
	sci_pipe_end(&e->pipe);
	sci_fabric_close(e->fabric);
}

static unsigned char bytes[SCI_PIPE_RING];

/* Send until the ring is full, and ask for no wake-up. Return the number of bytes. */
static size_t fill(struct end *e)
{
	const struct iovec iov = { bytes, sizeof(bytes) / 3 };
	size_t sum = 0;
	ssize_t n;

	while ((n = sci_pipe_send(&e->pipe, &iov, 1, false)) > 0)
		sum += (size_t)n;
	CHECK_EQ(n, -EAGAIN);
	return sum;
}

/* Receive everything, and ask for no wake-up. */
static size_t drain(struct end *e)
{
	const struct iovec iov = { bytes, sizeof(bytes) };
	size_t sum = 0;
	ssize_t n;

	while ((n = sci_pipe_recv(&e->pipe, &iov, 1, false)) > 0)
		sum += (size_t)n;
	CHECK_EQ(n, -EAGAIN);
	return sum;
}

/*
 * A side that polls asks for no wake-ups. Before it sleeps it arms the pipe,
 * which must report earlier work of the other side: no wake-up comes for it.
 */
TEST(arming_shows_what_came_before)
{
	static struct end a, b;

	ends_open(&a, &b);
	CHECK(!sci_pipe_arm(&a.pipe));
	CHECK_EQ(fill(&b), SCI_PIPE_RING);
	CHECK(sci_pipe_arm(&a.pipe));
	CHECK(!sci_pipe_arm(&b.pipe));
	CHECK_EQ(drain(&a), SCI_PIPE_RING);
	CHECK(!sci_pipe_arm(&a.pipe));

	CHECK_EQ(fill(&b), SCI_PIPE_RING);
	CHECK_EQ(drain(&a), SCI_PIPE_RING);
	CHECK(sci_pipe_arm(&b.pipe));
	/* the send has used the new room: arming does not report it again */
	CHECK_EQ(sci_pipe_send(&b.pipe, &(struct iovec){ bytes, 1 }, 1, false), 1);
	CHECK(!sci_pipe_arm(&b.pipe));
	end_close(&a);
	end_close(&b);
}

/* Send @len bytes of @src, half of them directly in the ring, where that is possible. */
static void put_bytes(struct end *e, const unsigned char *src, size_t len)
{
	struct iovec iov = { (void *)(uintptr_t)src, len };
	void *room;
	ssize_t n = sci_pipe_room(&e->pipe, &room, false);

	CHECK(n > 0 || n == -EOPNOTSUPP);
	if (n > 0) {
		n = n < (ssize_t)(len / 2) ? n : (ssize_t)(len / 2);
		memcpy(room, src, (size_t)n);
		sci_pipe_put(&e->pipe, (size_t)n);
		iov = (struct iovec){ (void *)(uintptr_t)(src + n), len - (size_t)n };
	}
	CHECK_EQ(sci_pipe_send(&e->pipe, &iov, 1, false), (ssize_t)iov.iov_len);
}

/* Receive @len bytes, by a copy or in the ring. */
static void take_bytes(struct end *e, const unsigned char *want, size_t len, bool copy)
{
	static unsigned char in[SCI_PIPE_RING];

	for (size_t n; len; len -= n, want += n) {
		const struct iovec iov = { in, len };
		const void *data = in;
		ssize_t got = copy ? sci_pipe_recv(&e->pipe, &iov, 1, false) :
				     sci_pipe_peek(&e->pipe, &data, false);

		CHECK(got > 0 && (size_t)got <= len);
		n = (size_t)got;
		CHECK(!memcmp(data, want, n));
		if (!copy)
			sci_pipe_take(&e->pipe, n);
	}
}

TEST(bytes_go_around_the_ring)
{
	static struct end a, b;

	ends_open(&a, &b);
	for (unsigned int i = 0; i < 40; i++) {
		size_t len = 1 + i * 4099 % (SCI_PIPE_RING / 2);

		test_fill(bytes, len, i);
		put_bytes(&a, bytes, len);
		take_bytes(&b, bytes, len, i & 1);
	}
	end_close(&a);
	end_close(&b);
}

/* A long block arrives although some of its packets are lost each time. */
TEST(long_blocks_over_a_link_that_loses_packets)
{
	static struct end a, b;
	uint64_t limit = sci_now_ms() + TEST_WAIT_MS;
	size_t received = 0;

	setenv("SCI_FAULT", "loss=0.02,seed=1", 1);
	ends_open(&a, &b);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 7 / 3);
	for (size_t sent = 0; sent < sizeof(bytes);) {
		const struct iovec iov = { bytes + sent, sizeof(bytes) - sent };
		ssize_t n = sci_pipe_send(&a.pipe, &iov, 1, false);

		CHECK(n > 0 || n == -EAGAIN);
		sent += n > 0 ? (size_t)n : 0;
		CHECK(sci_now_ms() < limit);
	}
	while (received < sizeof(bytes)) {
		static unsigned char in[SCI_PIPE_RING];
		const struct iovec iov = { in, sizeof(in) };
		ssize_t n = sci_pipe_recv(&b.pipe, &iov, 1, false);

		/* the word that counts the bytes may be lost, too */
		sci_pipe_repeat(&a.pipe);
		CHECK(n > 0 || n == -EAGAIN);
		if (n > 0) {
			CHECK(!memcmp(in, bytes + received, (size_t)n));
			received += (size_t)n;
		}
		CHECK(sci_now_ms() < limit);
	}
	end_close(&a);
	end_close(&b);
}

TEST(armed_sides_are_woken)
{
	static struct end a, b;

	ends_open(&a, &b);
	CHECK_EQ(fill(&b), SCI_PIPE_RING);
	atomic_store(&b.events, 0);
	CHECK(!sci_pipe_arm(&b.pipe));
	CHECK_EQ(drain(&a), SCI_PIPE_RING);
	WAIT_UNTIL(atomic_load(&b.events) > 0, TEST_WAIT_MS);

	atomic_store(&a.events, 0);
	CHECK(!sci_pipe_arm(&a.pipe));
	CHECK_EQ(fill(&b), SCI_PIPE_RING);
	WAIT_UNTIL(atomic_load(&a.events) > 0, TEST_WAIT_MS);
	end_close(&a);
	end_close(&b);
}
