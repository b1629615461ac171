// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The log of a link, beside an array with all bytes of the stream. */
#include "libsci/fabric/net/net.h"
#include "selftests/msg/peers.h"

#define STREAM		(8u << 20)
#define WINDOW		(400u << 10)	/* unacknowledged bytes */
#define OWNERS		4u

struct model {
	struct net_log log;
	uint8_t *stream;		/* all bytes that were written */
	uint8_t *lent[OWNERS];		/* memory of each owner, as long as the stream */
	uint64_t lent_to[OWNERS];	/* end of the owner's last loan; 0: it has none */
	uint64_t state;
};

static size_t next_len(struct model *m)
{
	size_t len = 1 + msg_random(&m->state, msg_random(&m->state, 3) ? 200 : 60000);

	return len < STREAM - m->log.written ? len : STREAM - (size_t)m->log.written;
}

static void add(struct model *m)
{
	size_t len = next_len(m);

	CHECK_EQ(net_log_add(&m->log, m->stream + m->log.written, len), 0);
}

static void lend(struct model *m)
{
	unsigned int owner = (unsigned int)msg_random(&m->state, OWNERS);
	uint64_t at = m->log.written;
	size_t len = next_len(m);

	if (!net_log_may_lend(&m->log))
		return;
	memcpy(m->lent[owner] + at, m->stream + at, len);
	CHECK_EQ(net_log_lend(&m->log, &m->lent[owner], m->lent[owner] + at, len), 0);
	m->lent_to[owner] = m->log.written;
}

/* Take the memory of an owner back, or find that its loans have ended, and change all its bytes. */
static void take_back(struct model *m)
{
	unsigned int owner = (unsigned int)msg_random(&m->state, OWNERS);

	if (m->log.acked < m->lent_to[owner])
		CHECK_EQ(net_log_take_back(&m->log, &m->lent[owner]), 0);
	memset(m->lent[owner], 0xee, (size_t)m->log.written);
	m->lent_to[owner] = 0;
}

/* Check the pieces that would be sent next. @max: send so many bytes at most */
static void send_some(struct model *m, size_t max)
{
	struct iovec iov[NET_PIECES];
	size_t n = net_log_unsent(&m->log, iov);

	CHECK(n || m->log.sent == m->log.written);
	for (size_t i = 0; i < n && max; i++) {
		size_t len = iov[i].iov_len < max ? iov[i].iov_len : max;

		CHECK(len);
		CHECK(!memcmp(iov[i].iov_base, m->stream + m->log.sent, len));
		m->log.sent += len;
		max -= len;
	}
}

/* Acknowledge some bytes. Then a new socket continues from there, or the old one goes on. */
static void acknowledge(struct model *m)
{
	uint64_t most = m->log.sent - m->log.acked;
	uint64_t at = m->log.acked + msg_random(&m->state, most + 1);

	CHECK(net_log_acked(&m->log, at));
	CHECK(!net_log_acked(&m->log, m->log.written + 1));
	if (msg_random(&m->state, 4) == 0)
		m->log.sent = at;
}

static void step(struct model *m)
{
	bool room = m->log.written - m->log.acked < WINDOW && m->log.written < STREAM;

	switch (msg_random(&m->state, 8)) {
	case 0:
		take_back(m);
		break;
	case 1:
	case 2:
		acknowledge(m);
		break;
	case 3:
	case 4:
		send_some(m, msg_random(&m->state, 100000));
		break;
	case 5:
		if (room)
			lend(m);
		break;
	default:
		if (room)
			add(m);
	}
}

TEST(bytes_in_the_ring_and_lent_bytes)
{
	struct model m = { .state = 4242 };

	m.stream = malloc(STREAM);
	CHECK(m.stream);
	msg_fill(m.stream, STREAM, 5);
	for (unsigned int i = 0; i < OWNERS; i++) {
		m.lent[i] = malloc(STREAM);
		CHECK(m.lent[i]);
	}
	while (m.log.written < STREAM)
		step(&m);
	while (m.log.sent < STREAM)
		send_some(&m, STREAM);
	CHECK(net_log_acked(&m.log, STREAM));
	CHECK(net_log_may_lend(&m.log));
	/* copies of loans that are not acknowledged are freed */
	CHECK_EQ(net_log_lend(&m.log, &m, m.stream, 10000), 0);
	CHECK_EQ(net_log_take_back(&m.log, &m), 0);
	net_log_free(&m.log);
	for (unsigned int i = 0; i < OWNERS; i++)
		free(m.lent[i]);
	free(m.stream);
}

/* The number of loans has a limit; an acknowledgement makes room. */
TEST(too_many_loans)
{
	struct net_log log = { 0 };
	static const char byte;
	unsigned int n = 0;

	for (; net_log_may_lend(&log); n++)
		CHECK_EQ(net_log_lend(&log, &log, &byte, 1), 0);
	CHECK_EQ(n, NET_EXTENTS);
	CHECK(net_log_acked(&log, 1));
	CHECK(net_log_may_lend(&log));
	net_log_free(&log);
}

/* A link that lends nothing needs no memory for extents. */
TEST(extents_are_allocated_by_the_first_loan)
{
	struct net_log log = { 0 };
	static const char byte;

	CHECK_EQ(net_log_add(&log, &byte, 1), 0);
	CHECK(net_log_may_lend(&log));
	CHECK(net_log_acked(&log, 1));
	CHECK(!log.extents);
	CHECK_EQ(net_log_lend(&log, &log, &byte, 1), 0);
	CHECK(log.extents);
	net_log_free(&log);
}
