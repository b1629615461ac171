// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* SCI_EP_WRITE_EVENTS: completions that report the writes of peers. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libsci/msg/proto/proto.h"
#include "selftests/harness.h"
#include "selftests/msg/peers.h"

#define PAGES	(16u * 4096)
#define ROUNDS	30u
#define MORE	10u		/* events beyond SCI_WRITE_EVENTS_MAX */

static const struct config events = { .flags = SCI_EP_WRITE_EVENTS };
static const struct config plain;

static size_t round_len(unsigned int i)
{
	return i * i * i % 20000;
}

static uint64_t round_imm(unsigned int i)
{
	return i * 0x9e3779b97f4a7c15ull;
}

static unsigned char *own(struct pair *l)
{
	struct sci_key key;
	void *buf;

	CHECK_EQ(sci_buf_alloc(l->ep, PAGES, &buf), 0);
	CHECK_EQ(sci_buf_key(l->ep, buf, PAGES, &key), 0);
	CHECK_EQ(sci_send(l->to, &key, sizeof(key)), 0);
	return buf;
}

static struct sci_key key_of(struct pair *l)
{
	struct sci_key key;

	CHECK_EQ(sci_recv(l->ep, l->to, &key, sizeof(key), NULL), 0);
	return key;
}

static void check_event(const struct sci_completion *done, struct sci_peer *from, size_t len,
			uint64_t imm)
{
	CHECK_EQ(done->status.flags, SCI_STATUS_WRITTEN | SCI_STATUS_IMM);
	CHECK_EQ(done->status.error, 0);
	CHECK_EQ(done->status.len, len);
	CHECK_EQ(done->status.imm, imm);
	CHECK(done->status.peer == from);
	CHECK(done->data == sci_peer_data(from));
	CHECK(!done->buf);
}

static void no_event(struct sci_ep *ep)
{
	struct sci_completion done;

	for (unsigned int i = 0; i < 100; i++)
		CHECK_EQ(sci_completions(ep, 0, &done, 1), -EAGAIN);
}

/* ---- bytes, then an event ---- */

static void target(struct peer *self, void *arg)
{
	struct pair l;
	unsigned char *buf;

	if (arg)
		setenv("SCI_FAULT", arg, 1);
	l = pair_config(self, 4, &events);
	sci_peer_set_data(l.to, &l);
	buf = own(&l);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct sci_completion done = next_completion(&l);

		check_event(&done, l.to, round_len(i), round_imm(i));
		CHECK_BYTES(buf + i, round_len(i), i);
		CHECK_EQ(sci_send(l.to, NULL, 0), 0);
	}
	pair_close(&l);
}

static void round_write(struct pair *l, const struct sci_key *key, unsigned int i)
{
	static unsigned char buf[20000];
	struct iovec iov = { buf, round_len(i) };
	struct sci_req *req;

	msg_fill(buf, iov.iov_len, i);
	if (i % 3 == 0) {
		CHECK_EQ(sci_write_imm(l->to, key, i, buf, iov.iov_len, round_imm(i)), 0);
	} else if (i % 3 == 1) {
		CHECK_EQ(sci_iwrite_imm(l->to, key, i, &iov, 1, round_imm(i), &req), 0);
		CHECK_EQ(test_wait(req, NULL), 0);
	} else {
		CHECK_EQ(sci_iwrite_imm(l->to, key, i, &iov, 1, round_imm(i), NULL), 0);
		CHECK_EQ(sci_flush(l->to, TEST_WAIT_MS), 0);
	}
}

static void check_rounds(const char *fault, bool room)
{
	const struct rlimit few = { 64, 64 };
	struct peer *p = peer_spawn(8, target, (void *)fault);
	int used[64], n = 0;
	struct sci_key key;
	struct pair l;

	if (fault)
		setenv("SCI_FAULT", fault, 1);
	l = pair_config(p, 8, &plain);
	key = key_of(&l);
	/* an import needs a descriptor */
	if (!room)
		CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
	while (!room && (used[n] = dup(2)) >= 0)
		n++;
	for (unsigned int i = 0; i < ROUNDS; i++) {
		round_write(&l, &key, i);
		CHECK_EQ(sci_recv(l.ep, l.to, NULL, 0, NULL), 0);
	}
	CHECK_EQ(test_ep_stats(l.ep).writes, ROUNDS);
	while (n)
		close(used[--n]);
	pair_close(&l);
	peer_join(p);
}

TEST(bytes_come_before_their_event)
{
	check_rounds(NULL, true);
}

TEST(packets_are_lost)
{
	check_rounds("loss=0.05,seed=1", true);
}

TEST(memory_that_cannot_be_imported)
{
	check_rounds(NULL, false);
}

/* ---- messages and events ---- */

static void orderly_target(struct peer *self, void *arg)
{
	struct pair l = pair_config(self, 4, &events);
	struct sci_completion done;

	(void)arg;
	own(&l);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(sci_recv(l.ep, l.to, NULL, 0, NULL), 0);
		CHECK_EQ(sci_completions(l.ep, 0, &done, 1), 1);
		check_event(&done, l.to, 8, i);
	}
	pair_close(&l);
}

TEST(events_come_before_later_messages)
{
	struct peer *p = peer_spawn(8, orderly_target, NULL);
	struct pair l = pair_config(p, 8, &plain);
	struct sci_key key = key_of(&l);
	uint64_t word = 1;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(sci_write_imm(l.to, &key, 0, &word, sizeof(word), i), 0);
		CHECK_EQ(sci_send(l.to, NULL, 0), 0);
	}
	pair_close(&l);
	peer_join(p);
}

/* ---- a target that takes no events ---- */

static void lazy_target(struct peer *self, void *arg)
{
	struct pair l = pair_config(self, 4, &events);
	struct sci_completion done[SCI_WRITE_EVENTS_MAX + MORE];
	int n = 0, ret;

	(void)arg;
	own(&l);
	pair_meet(&l);
	CHECK_EQ(sci_recv(l.ep, l.to, NULL, 0, NULL), 0);
	while (n < (int)ARRAY_LEN(done)) {
		/* at first the queue is full */
		ret = sci_completions(l.ep, TEST_WAIT_MS, done + n, SCI_WRITE_EVENTS_MAX + 1);
		CHECK(ret > 0);
		CHECK(n || ret == SCI_WRITE_EVENTS_MAX);
		n += ret;
	}
	for (n = 0; n < (int)ARRAY_LEN(done); n++)
		check_event(&done[n], l.to, 0, (uint64_t)n);
	no_event(l.ep);
	pair_close(&l);
}

TEST(a_full_queue_delays_writes)
{
	struct peer *p = peer_spawn(8, lazy_target, NULL);
	struct pair l = pair_config(p, 8, &plain);
	struct sci_key key = key_of(&l);
	struct sci_req *req[MORE];
	unsigned int i;

	for (i = 0; i < SCI_WRITE_EVENTS_MAX; i++)
		CHECK_EQ(sci_write_imm(l.to, &key, 0, NULL, 0, i), 0);
	for (; i < SCI_WRITE_EVENTS_MAX + MORE; i++)
		CHECK_EQ(sci_iwrite_imm(l.to, &key, 0, NULL, 0, i,
					&req[i - SCI_WRITE_EVENTS_MAX]), 0);
	pair_meet(&l);
	for (i = 0; i < MORE; i++)
		CHECK_EQ(sci_test(req[i], NULL), -EAGAIN);
	/* now the target takes its events */
	CHECK_EQ(sci_send(l.to, NULL, 0), 0);
	CHECK_EQ(sci_waitall(req, MORE, TEST_WAIT_MS, NULL), 0);
	pair_close(&l);
	peer_join(p);
}

static void target_without_events(struct peer *self, void *arg)
{
	struct pair l = pair_config(self, 4, &plain);
	unsigned char *buf = own(&l);

	(void)arg;
	pair_meet(&l);
	for (unsigned int i = 0; i < PAGES; i++)
		CHECK(!buf[i]);
	no_event(l.ep);
	pair_close(&l);
}

TEST(a_peer_without_events)
{
	struct peer *p = peer_spawn(8, target_without_events, NULL);
	struct pair l = pair_config(p, 8, &plain);
	struct sci_key key = key_of(&l);

	CHECK_EQ(sci_write_imm(l.to, &key, 0, "bytes", 5, 1), -EOPNOTSUPP);
	CHECK_EQ(sci_write_imm(l.to, &key, PAGES - 4, "bytes", 5, 1), -ERANGE);
	CHECK_EQ(sci_write_imm(l.to, NULL, 0, "bytes", 5, 1), -EINVAL);
	pair_meet(&l);
	pair_close(&l);
	peer_join(p);
}

/* ---- ends ---- */

static void writer(struct peer *self, void *arg)
{
	struct pair l = pair_config(self, 4, &plain);
	struct sci_key key = key_of(&l);

	for (unsigned int i = 0; i < 3; i++)
		CHECK_EQ(sci_write_imm(l.to, &key, 0, NULL, 0, i), 0);
	CHECK_EQ(sci_send(l.to, NULL, 0), 0);
	while (arg)
		pause();
	CHECK_EQ(sci_recv(l.ep, l.to, NULL, 0, NULL), -ENOTCONN);
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

TEST(events_outlive_their_sender)
{
	struct peer *p = peer_spawn(8, writer, (void *)&events);
	struct pair l = pair_config(p, 8, &events);
	struct sci_completion done;

	own(&l);
	CHECK_EQ(sci_recv(l.ep, l.to, NULL, 0, NULL), 0);
	peer_kill(p, SIGKILL);
	WAIT_UNTIL((sci_progress(l.ep), sci_peer_state(l.to) == -ECONNRESET), TEST_WAIT_MS);
	for (unsigned int i = 0; i < 3; i++) {
		CHECK_EQ(sci_completions(l.ep, 0, &done, 1), 1);
		check_event(&done, l.to, 0, i);
	}
	no_event(l.ep);
	CHECK_EQ(sci_disconnect(l.to), 0);
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

TEST(a_disconnect_drops_events)
{
	struct peer *p = peer_spawn(8, writer, NULL);
	struct pair l = pair_config(p, 8, &events);
	struct sci_completion done;

	own(&l);
	CHECK_EQ(sci_recv(l.ep, l.to, NULL, 0, NULL), 0);
	CHECK_EQ(sci_completions(l.ep, 0, &done, 1), 1);
	check_event(&done, l.to, 0, 0);
	CHECK_EQ(sci_disconnect(l.to), 0);
	no_event(l.ep);
	CHECK_EQ(sci_ep_close(l.ep), 0);
	peer_join(p);
}

TEST(to_oneself)
{
	struct sci_ep *ep = test_ep_config(TEST_ID, &events);
	struct sci_peer *me = test_ep_connect(ep, 4, TEST_ID);
	struct sci_completion done;
	struct sci_key key;
	void *buf;

	CHECK_EQ(sci_buf_alloc(ep, 4096, &buf), 0);
	CHECK_EQ(sci_buf_key(ep, buf, 4096, &key), 0);
	CHECK_EQ(sci_write_imm(me, &key, 0, "hello", 6, UINT64_MAX), 0);
	CHECK_EQ(sci_completions(ep, TEST_WAIT_MS, &done, 1), 1);
	check_event(&done, me, 6, UINT64_MAX);
	CHECK(!strcmp(buf, "hello"));
	/* an endpoint closes with an event in its queue */
	CHECK_EQ(sci_write_imm(me, &key, 0, NULL, 0, 1), 0);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* ---- peers that break the protocol ---- */

struct lie {
	unsigned int handler;
	uint64_t tag;
	size_t len;
	unsigned int times;
	const struct config *config;	/* of the victim */
};

static void liar(struct peer *self, void *arg)
{
	struct pair l = pair_config(self, 4, &plain);
	const struct lie *lie = arg;
	uint64_t bytes[2] = { 0 };
	struct iovec iov = { bytes, lie->len };
	struct sci_completion done;

	pair_meet(&l);
	for (unsigned int i = 0; i < lie->times; i++)
		CHECK_EQ(handler_send(l.to, lie->handler, lie->tag, &iov, 1), 0);
	while (sci_peer_state(l.to) != -ENOTCONN)
		sci_completions(l.ep, 1, &done, 1);
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

static void check_lie(struct lie lie)
{
	struct peer *p = peer_spawn(8, liar, &lie);
	struct pair l = pair_config(p, 8, lie.config);

	pair_meet(&l);
	WAIT_UNTIL((sci_progress(l.ep), sci_peer_state(l.to) == -EPROTO), TEST_WAIT_MS);
	CHECK_EQ(sci_ep_close(l.ep), 0);
	peer_join(p);
}

TEST(an_event_that_was_not_asked_for)
{
	check_lie((struct lie){ HANDLER_WRITE_EVENT, 0, 8, 1, &plain });
}

TEST(an_event_without_a_length)
{
	check_lie((struct lie){ HANDLER_WRITE_EVENT, 0, 7, 1, &events });
}

TEST(too_many_events)
{
	check_lie((struct lie){ HANDLER_WRITE_EVENT, 0, 8, SCI_WRITE_EVENTS_MAX + 1, &events });
}

TEST(events_returned_that_were_not_sent)
{
	check_lie((struct lie){ HANDLER_EVENTS_TAKEN, 1, 0, 1, &events });
}

/* ---- memory that ends when the bytes have arrived ---- */

static void freeing_owner(struct peer *self, void *arg)
{
	struct pair l = pair_open(self, 4, 0);
	unsigned char *buf = own(&l);

	(void)arg;
	peer_expect(self, "free");
	CHECK_EQ(sci_buf_free(l.ep, buf), 0);
	pair_meet(&l);
	pair_close(&l);
}

static struct {
	const struct sci_stream_ops *ops;	/* of the net */
	struct sci_fabric *fabric;
	struct peer *owner;
	unsigned int looks;
} net;

/*
 * The first call looks twice. Let the owner free the memory while a later call looks.
 */
static int arrived_and_gone(struct sci_rseg *r, uint64_t mark)
{
	if (net.looks++ < 2)
		return -EAGAIN;
	if (net.looks == 3)
		peer_send(net.owner, "free");
	WAIT_UNTIL(atomic_load(&net.fabric->ops->rseg.status(r)->gone), TEST_WAIT_MS);
	return net.ops->arrived(r, mark);
}

/* On the net the owner frees its memory while the writer looks whether the bytes have arrived. */
TEST(memory_that_is_freed_after_a_write)
{
	struct peer *p = peer_spawn(8, freeing_owner, NULL);
	struct pair l = pair_open(p, 8, 0);
	struct sci_key key = key_of(&l);
	struct sci_stream_ops late;
	unsigned char byte = 1;
	struct iovec iov = { &byte, 1 };
	struct sci_req *req;

	net.ops = l.to->stream;
	net.fabric = l.to->fabric;
	net.owner = p;
	if (net.ops) {
		late = *net.ops;
		late.arrived = arrived_and_gone;
		l.to->stream = &late;
	}
	CHECK_EQ(sci_iwritev(l.to, &key, 0, &iov, 1, &req), 0);
	CHECK_EQ(test_wait(req, NULL), net.ops ? -ENOENT : 0);
	if (!net.ops)
		peer_send(p, "free");
	l.to->stream = net.ops;
	pair_meet(&l);
	pair_close(&l);
	peer_join(p);
}
