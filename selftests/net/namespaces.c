// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Two hosts with a cable between them: network namespaces and a pair of virtual
 * interfaces.  The cable is pulled and plugged in again; it loses, delays and reorders packets.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "selftests/msg/peers.h"

#define CABLE_MAX	60000u		/* bytes of a message */

/* ---- hosts ---- */

/* Run @command without output. The commands need iproute2. */
static int run(const char *command)
{
	char text[512];

	/* the ip of a busybox, also of its shell, moves no interface into a namespace */
	snprintf(text, sizeof(text),
		 "PATH=/usr/sbin:/usr/bin:$PATH exec bash -c '%s' >/dev/null 2>&1", command);
	/* NOLINTNEXTLINE(cert-env33-c,concurrency-mt-unsafe): no user's words */
	return system(text);
}

static void run_all(const char *commands)
{
	CHECK_EQ(run(commands), 0);
}

/* Call this before a peer is spawned, which must have the same user namespace. */
static void become_a_host(void)
{
	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		SKIP("no network namespaces here");
	if (run("ip link set lo up"))
		SKIP("no iproute2");
}

static void be_on_cable(unsigned int node, const char *retry)
{
	char text[64];

	test_use_net("tcp", node);
	snprintf(text, sizeof(text), "tcp:10.9.8.0/24:%u+1", 17000 + node);
	setenv("SCI_NET", text, 1);
	setenv("SCI_NET_PEERS", "4=10.9.8.4:17004+1,8=10.9.8.8:17008+1", 1);
	setenv("SCI_NET_RETRY", retry, 1);
}

static const char *retry_time;

static struct pair far_host(struct peer *proc)
{
	struct pair l = { .proc = proc };

	CHECK_EQ(unshare(CLONE_NEWNET), 0);
	peer_send(proc, "unplugged");
	peer_expect(proc, "plugged");
	run_all("ip link set lo up && ip addr add 10.9.8.8/24 dev far && ip link set far up");
	be_on_cable(8, retry_time);
	l.ep = test_ep_open(TEST_ID, 0);
	l.to = test_ep_connect(l.ep, 4, TEST_ID);
	return l;
}

static struct pair near_host(void (*far)(struct peer *proc, void *arg), const char *retry)
{
	struct pair l = { 0 };
	char text[128];

	become_a_host();
	retry_time = retry;
	l.proc = peer_spawn(8, far, NULL);
	peer_expect(l.proc, "unplugged");
	snprintf(text, sizeof(text), "ip link add near type veth peer name far netns %d",
		 (int)peer_pid(l.proc));
	if (run(text))
		SKIP("no virtual interfaces here");
	run_all("ip addr add 10.9.8.4/24 dev near && ip link set near up");
	be_on_cable(4, retry);
	peer_send(l.proc, "plugged");
	l.ep = test_ep_open(TEST_ID, 0);
	l.to = test_ep_accept(l.ep);
	return l;
}

/* ---- traffic ---- */

/* Return whether the kernel has bytes of this process that it tries in vain to send. */
static bool kernel_tries(void)
{
	for (int fd = 0; fd < 256; fd++) {
		struct tcp_info info = { 0 };
		socklen_t len = sizeof(info);

		if (!getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) &&
		    (info.tcpi_retransmits || info.tcpi_probes))
			return true;
	}
	return false;
}

/* Plug the cable in when the kernel notices that it was pulled. The address of the link stays. */
static void plug(struct pair *l)
{
	WAIT_UNTIL((sci_progress(l->ep), kernel_tries()), TEST_WAIT_MS);
	run_all("ip link set near up");
}

/* Exchange messages. With @pulled, the cable is pulled until the kernel has tried in vain to send. */
static void traffic(struct pair *l, unsigned int first, unsigned int n, bool pulled)
{
	static unsigned char out[CABLE_MAX], in[CABLE_MAX];

	for (unsigned int i = first; i < first + n; i++) {
		uint64_t state = i + 1;
		size_t len = msg_random(&state, CABLE_MAX);
		struct sci_req *reqs[2];
		struct sci_status st[2];

		msg_fill(out, len, i);
		CHECK_EQ(sci_itsend(l->to, 7, i, out, len, &reqs[0]), 0);
		CHECK_EQ(sci_itrecv(l->ep, l->to, 7, i, 0, in, CABLE_MAX, &reqs[1]), 0);
		if (pulled && i == first)
			plug(l);
		CHECK_EQ(sci_waitall(reqs, 2, TEST_WAIT_MS, st), 0);
		CHECK_EQ(st[1].len, len);
		CHECK_BYTES(in, len, i);
	}
}

#define ROUND	100u

static void healed(struct peer *proc, void *arg)
{
	struct pair l = far_host(proc);

	(void)arg;
	traffic(&l, 0, 3 * ROUND, false);
	pair_close(&l);
}

TEST(a_cable_that_is_pulled_and_plugged_in)
{
	struct pair l = near_host(healed, "60");

	traffic(&l, 0, ROUND, false);
	run_all("ip link set near down");
	traffic(&l, ROUND, ROUND, true);
	if (run("tc qdisc add dev near root netem delay 2ms 1ms loss 2% duplicate 1% reorder 20%")) {
		/* set where the kernel has netem */
		CHECK(!getenv("SCI_TEST_NETEM"));
		test_note("no netem in this kernel");
	}
	traffic(&l, 2 * ROUND, ROUND, false);
	pair_close(&l);
	peer_join(l.proc);
}

static void parted(struct peer *proc, void *arg)
{
	struct pair l = far_host(proc);
	char c;

	(void)arg;
	traffic(&l, 0, 10, false);
	CHECK_EQ(sci_recv(l.ep, l.to, &c, 1, NULL), -ECONNRESET);
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

TEST(a_cable_that_is_pulled_for_good)
{
	struct pair l = near_host(parted, "1");
	char c;

	traffic(&l, 0, 10, false);
	run_all("ip link set near down");
	CHECK_EQ(sci_recv(l.ep, l.to, &c, 1, NULL), -ECONNRESET);
	CHECK_EQ(sci_ep_close(l.ep), 0);
	peer_join(l.proc);
}
