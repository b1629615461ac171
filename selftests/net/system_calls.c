// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * The number of system calls for messages: those that follow each other closely share calls, and one
 * call reads all bytes of a socket.
 */

#include "libsci/fabric/net/net.h"
#include "libsci/msg/endpoint.h"
#include "selftests/msg/peers.h"

#define MESSAGES	480u
#define FEW		3u
#define LONG		1000u		/* in bytes */
#define SECONDS_NS		UINT32_MAX

/* Let messages count as a row, and let them wait, however slow this machine is. */
static void row_limits(struct sci_ep *ep, uint32_t row_ns, uint32_t row_wait_ns)
{
	struct net *net = net_of(ep->net);

	pthread_mutex_lock(&net->svc.lock);
	net->row_ns = row_ns;
	net->row_wait_ns = row_wait_ns;
	pthread_mutex_unlock(&net->svc.lock);
}

struct calls {
	uint64_t sends, receives;
};

static struct calls calls_made(struct sci_ep *ep)
{
	struct net *net = net_of(ep->net);
	struct calls c;

	pthread_mutex_lock(&net->svc.lock);
	c = (struct calls){ net->sends, net->receives };
	pthread_mutex_unlock(&net->svc.lock);
	return c;
}

static void messages_send(struct pair *l, size_t len, unsigned int count)
{
	unsigned char out[LONG];

	for (unsigned int i = 0; i < count; i++) {
		msg_fill(out, len, i);
		CHECK_EQ(sci_send(l->to, out, len), 0);
	}
}

static void messages_receive(struct pair *l, size_t len, unsigned int count)
{
	unsigned char in[LONG];
	struct sci_status st;

	for (unsigned int i = 0; i < count; i++) {
		CHECK_EQ(sci_recv(l->ep, l->to, in, LONG, &st), 0);
		CHECK_EQ(st.len, len);
		CHECK_BYTES(in, len, i);
	}
}

static void receiver(struct peer *proc, void *arg)
{
	struct pair l;

	(void)arg;
	test_use_net("tcp", 8);
	l = pair_open(proc, 4, 0);
	messages_receive(&l, LONG, MESSAGES);
	pair_meet(&l);
	messages_receive(&l, 8, MESSAGES);
	messages_receive(&l, LONG, MESSAGES);
	pair_close(&l);
}

/*
 * Send messages in a row, and count system calls. The receiver returns credits after 12 lines. In
 * the worst case, each return ends one row, and starts another.
 */
static void row_send(struct pair *l, size_t len)
{
	uint64_t before = calls_made(l->ep).sends;

	messages_send(l, len, MESSAGES);
	CHECK(calls_made(l->ep).sends - before <= MESSAGES / 4);
}

TEST(messages_in_a_row_share_system_calls)
{
	struct peer *p = peer_spawn(8, receiver, NULL);
	struct pair l;

	test_use_net("tcp", 4);
	l = pair_open(p, 8, 0);
	/* long messages have several lines until the receiver has lent its ring */
	messages_send(&l, LONG, MESSAGES);
	pair_meet(&l);
	row_limits(l.ep, SECONDS_NS, 999999999);
	row_send(&l, 8);
	row_send(&l, LONG);
	pair_close(&l);
	peer_join(p);
}

/* ---- a program that makes no calls after a row ---- */

/* Use a net without the regular frames that show that a process lives. */
static void use_silent_net(unsigned int node)
{
	setenv("SCI_NET_RETRY", "600", 1);
	test_use_net("unix", node);
}

static void listener(struct peer *proc, void *arg)
{
	struct pair l;

	(void)arg;
	use_silent_net(8);
	l = pair_open(proc, 4, 0);
	messages_receive(&l, 8, FEW);
	peer_send(proc, "received");
	pair_close(&l);
}

TEST(the_last_messages_leave_without_a_call)
{
	struct peer *p = peer_spawn(8, listener, NULL);
	struct pair l;

	use_silent_net(4);
	l = pair_open(p, 8, 0);
	row_limits(l.ep, SECONDS_NS, 1000000);
	/* the receiver returns no credits for these lines: no frame makes them leave */
	messages_send(&l, 8, FEW);
	peer_expect(p, "received");
	pair_close(&l);
	peer_join(p);
}

static void leaver(struct peer *proc, void *arg)
{
	struct pair l;

	test_use_net(arg, 8);
	l = pair_open(proc, 4, 0);
	row_limits(l.ep, SECONDS_NS, 999999999);
	peer_expect(proc, "opened");
	messages_send(&l, 8, FEW);
	/* the process ends without sci_ep_close() */
}

static void last_messages_at_exit(const char *net)
{
	struct peer *p = peer_spawn(8, leaver, (void *)net);
	struct pair l;

	test_use_net(net, 4);
	l = pair_open(p, 8, 0);
	peer_send(p, "opened");
	messages_receive(&l, 8, FEW);
	peer_join(p);
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

TEST(the_last_messages_leave_at_exit)
{
	last_messages_at_exit("unix");
	last_messages_at_exit("tcp");
}

/* ---- reading ---- */

#define WRITES		20u

/* Each write arrives alone, and the thread of the net reads it: this thread makes no calls. */
static void owner(struct peer *proc, void *arg)
{
	struct pair l;
	struct sci_key key;
	uint64_t before;
	void *addr;

	(void)arg;
	use_silent_net(8);
	l = pair_open(proc, 4, 0);
	CHECK_EQ(sci_buf_alloc(l.ep, WRITES, &addr), 0);
	CHECK_EQ(sci_buf_key(l.ep, addr, WRITES, &key), 0);
	CHECK_EQ(sci_tsend(l.to, 9, 0, &key, sizeof(key)), 0);
	peer_expect(proc, "imported");
	before = calls_made(l.ep).receives;
	peer_send(proc, "write");
	peer_expect(proc, "written");
	CHECK(calls_made(l.ep).receives - before <= WRITES + WRITES / 2);
	pair_close(&l);
}

TEST(a_short_frame_takes_one_read)
{
	struct peer *p = peer_spawn(8, owner, NULL);
	struct sci_key key;
	struct pair l;

	use_silent_net(4);
	l = pair_open(p, 8, 0);
	CHECK_EQ(sci_trecv(l.ep, l.to, 9, 0, 0, &key, sizeof(key), NULL), 0);
	CHECK_EQ(sci_write(l.to, &key, 0, "", 1), 0);
	peer_send(p, "imported");
	peer_expect(p, "write");
	for (unsigned int i = 0; i < WRITES; i++)
		CHECK_EQ(sci_write(l.to, &key, i, "", 1), 0);
	peer_send(p, "written");
	pair_close(&l);
	peer_join(p);
}
