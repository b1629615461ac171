// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Measure messages of libsci with the method of peers/measure.h.
 *
 * usage: msg_peers untagged|mt|tagged|zerocopy METRIC SIZE...
 *
 * untagged, tagged and zerocopy use endpoints for one thread, mt an endpoint that any
 * thread may use.  zerocopy sends from and receives into buffers of sci_buf_alloc().
 * With PEER_NET=tcp or PEER_NET=unix each node is a cluster of its own, and nodes reach
 * each other through sockets; with PEER_NET=gateway through the gateway on node 12, which
 * is in both clusters.  With PEER_NET=ways the nodes have a common cluster, which is one of
 * two ways to each other, beside TCP.  With PEER_NET=idle they use the cluster's memory, and
 * a silent process is connected to both by TCP.  alltoall16_s: 16 processes share two CPUs; each starts 15 receives
 * and 15 sends, and waits for all of them.
 */
#define _GNU_SOURCE

#include <sci/msg.h>

#include "libsci/base/barrier.h"
#include "selftests/bench/peers/measure.h"

#define WINDOW		64		/* messages under way in streams */
#define WINDOW_FROM	4096u		/* least length of streamed messages */
#define WINDOW_TO	(512u << 10)	/* and the largest, except over sockets */
#define TIMEOUT		20000		/* in milliseconds */
#define CONTEXT		1u
#define ENDPOINT	1u		/* endpoint id on every node */

static struct sci_ep *ep;
static struct sci_peer *peers[PEER_RANKS];	/* by rank */
static struct sci_peer *other;			/* the other of two ranks */
static bool tagged;
static bool sockets;			/* ranks reach each other through sockets alone */
static struct sci_req *posted;

#define OK(call)							\
	do {								\
		int ret_ = (call);					\
		if (ret_)						\
			peer_die("%s: %s", #call, strerror(-ret_));	\
	} while (0)

static void peer_send(size_t n)
{
	if (tagged)
		OK(sci_tsend(other, CONTEXT, 1, peer_out, n));
	else
		OK(sci_send(other, peer_out, n));
}

static void peer_recv(size_t n)
{
	if (tagged)
		OK(sci_trecv(ep, other, CONTEXT, 1, 0, peer_in, n, NULL));
	else
		OK(sci_recv(ep, other, peer_in, n, NULL));
}

static struct sci_req *start_send(struct sci_peer *to, const void *p, size_t n)
{
	struct sci_req *req;

	if (tagged)
		OK(sci_itsend(to, CONTEXT, 1, p, n, &req));
	else
		OK(sci_isend(to, p, n, &req));
	return req;
}

static struct sci_req *start_recv(struct sci_peer *from, void *p, size_t n)
{
	struct sci_req *req;

	if (tagged)
		OK(sci_itrecv(ep, from, CONTEXT, 1, 0, p, n, &req));
	else
		OK(sci_irecv(ep, from, p, n, &req));
	return req;
}

static void post_receive(size_t n)
{
	posted = start_recv(other, peer_in, n);
}

static void wait_receive(void)
{
	OK(sci_wait(posted, -1, NULL));
}

/*
 * Return whether messages of @n bytes use blocking calls. Long messages in memory do, because the
 * buffers of a window do not fit into a cache. Over sockets, handshakes overlap with messages.
 */
static bool blocks(size_t n)
{
	return n <= WINDOW_FROM || (n >= WINDOW_TO && !sockets);
}

static void peer_stream_out(size_t n, uint64_t count)
{
	struct sci_req *req[WINDOW] = { NULL };
	uint64_t i;

	for (i = 0; blocks(n) && i < count; i++)
		peer_send(n);
	if (blocks(n))
		return;
	for (i = 0; i < count; i++) {
		if (req[i % WINDOW])
			OK(sci_wait(req[i % WINDOW], -1, NULL));
		req[i % WINDOW] = start_send(other, peer_out, n);
	}
	OK(sci_waitall(req, WINDOW, -1, NULL));
}

static void peer_stream_in(size_t n, uint64_t count)
{
	struct sci_req *req[WINDOW] = { NULL };
	uint64_t i;

	for (i = 0; blocks(n) && i < count; i++)
		peer_recv(n);
	if (blocks(n))
		return;
	for (i = 0; i < count; i++) {
		if (req[i % WINDOW])
			OK(sci_wait(req[i % WINDOW], -1, NULL));
		req[i % WINDOW] = start_recv(other, peer_in, n);
	}
	OK(sci_waitall(req, WINDOW, -1, NULL));
}

/* ---- setup and all-to-all ---- */

static unsigned int node_of(int rank)
{
	return 4 * (unsigned int)(rank + 1);
}

static void *buffer(bool exported, size_t n)
{
	void *p;

	if (!exported)
		return peer_alloc(n, MAP_PRIVATE);
	OK(sci_buf_alloc(ep, n, &p));
	return memset(p, 0, n);
}

static void join_own_cluster(int rank)
{
	char text[256];

	snprintf(text, sizeof(text), "%s-%d", getenv("SCI_FABRIC"), rank);
	setenv("SCI_FABRIC", text, 1);
}

/* Listen for TCP, and name all addresses. @first: entries of SCI_NET_PEERS before these */
static void join_tcp(int rank, unsigned int port, const char *first)
{
	char text[256];

	snprintf(text, sizeof(text), "tcp:127.0.0.1:%u+1", port + (unsigned int)rank);
	setenv("SCI_NET", text, 1);
	snprintf(text, sizeof(text), "%s4=127.0.0.1:%u+1,8=127.0.0.1:%u+1", first, port, port + 1);
	setenv("SCI_NET_PEERS", text, 1);
}

/* Set the environment of a rank. @run is a number of this run. */
static void join_net(const char *kind, int rank, unsigned int run)
{
	unsigned int port = 20000 + run % 10000 * 3;
	char text[256];

	if (!strcmp(kind, "ways")) {
		join_tcp(rank, port, "4=sci,8=sci,");
	} else if (!strcmp(kind, "idle")) {
		join_tcp(rank, port, "");
	} else if (!strcmp(kind, "gateway")) {
		join_own_cluster(rank);
		setenv("SCI_NET", "sci", 1);
		setenv("SCI_NET_PEERS", "4=via:12,8=via:12", 1);
	} else if (!strcmp(kind, "tcp")) {
		join_own_cluster(rank);
		join_tcp(rank, port, "");
	} else {
		join_own_cluster(rank);
		snprintf(text, sizeof(text), "unix:@peers-%u-%d+1", run, rank);
		setenv("SCI_NET", text, 1);
		snprintf(text, sizeof(text), "4=unix:@peers-%u-0+1,8=unix:@peers-%u-1+1", run, run);
		setenv("SCI_NET_PEERS", text, 1);
	}
}

/* Join the cluster of this run and connect to all other ranks. */
static void join(int rank, int ranks, unsigned int flags)
{
	char value[16];
	int i;

	snprintf(value, sizeof(value), "%u", node_of(rank));
	setenv("SCI_NODE", value, 1);
	OK(sci_ep_open(&ep, ENDPOINT, flags));
	for (i = 0; i < ranks; i++) {
		struct sci_addr addr = { node_of(i), ENDPOINT };

		if (i != rank)
			OK(sci_connect(ep, &addr, TIMEOUT, &peers[i]));
	}
}

/* Connect to both ranks by TCP, say so, and sleep until rank 0 ends. */
static void idle_neighbour(unsigned int run)
{
	pid_t parent = getpid(), pid = fork();
	char c;

	peer_must(pid >= 0);
	if (pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	peer_must(getppid() == parent);
	join_net("tcp", 2, run);
	join(2, 2, 0);
	for (int i = 0; i < 2; i++)
		OK(sci_send(peers[i], "x", 1));
	sci_recv(ep, peers[0], &c, 1, NULL);
	_exit(0);
}

static struct all {
	volatile unsigned int barriers;
} *all;

/* Wait for all ranks, and make progress meanwhile. */
static void barrier(unsigned int ranks)
{
	unsigned int mine = sci_fetch_add(&all->barriers, 1);
	unsigned int goal = (mine / ranks + 1) * ranks;

	while (sci_load_acquire(&all->barriers) < goal) {
		sci_progress(ep);
		sched_yield();
	}
}

static void exchange(int rank, char *out, char *in, size_t n)
{
	struct sci_req *req[2 * PEER_RANKS];
	size_t k = 0;
	int i, j;

	for (i = 1; i < PEER_RANKS; i++) {
		j = (rank + PEER_RANKS - i) % PEER_RANKS;
		req[k++] = start_recv(peers[j], in + n * (size_t)j, n);
	}
	for (i = 1; i < PEER_RANKS; i++) {
		j = (rank + i) % PEER_RANKS;
		req[k++] = start_send(peers[j], out + n * (size_t)j, n);
	}
	OK(sci_waitall(req, k, -1, NULL));
}

static void alltoall(int rank, bool exported, size_t n)
{
	char *out = buffer(exported, n * PEER_RANKS);
	char *in = buffer(exported, n * PEER_RANKS);
	int count = peer_alltoall_count(n), i;
	double begin;

	memset(out, rank + 1, n * PEER_RANKS);
	exchange(rank, out, in, n);
	for (i = 0; i < PEER_RANKS; i++)
		if (i != rank && in[n * (size_t)i + n - 1] != i + 1)
			peer_die("wrong bytes from %d", i);
	barrier(PEER_RANKS);
	begin = peer_now();
	for (i = 0; i < count; i++)
		exchange(rank, out, in, n);
	barrier(PEER_RANKS);
	if (!rank)
		printf("alltoall16_s %zu %.6g\n", n, peer_now() - begin);
	fflush(stdout);
}

/* Fork all ranks but rank 0, which is the calling process. */
static int spawn_all(void)
{
	pid_t parent = getpid(), pid;
	int i;

	for (i = 1; i < PEER_RANKS; i++) {
		pid = fork();
		peer_must(pid >= 0);
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			peer_must(getppid() == parent);
			peer_pin(i);
			return i;
		}
	}
	peer_pin(0);
	return 0;
}

static int all_to_all(bool exported, unsigned int flags, char **sizes)
{
	int rank, status, left = PEER_RANKS - 1;

	all = peer_alloc(sizeof(*all), MAP_SHARED);
	rank = spawn_all();
	join(rank, PEER_RANKS, flags);
	barrier(PEER_RANKS);
	for (; *sizes; sizes++)
		alltoall(rank, exported, strtoull(*sizes, NULL, 0));
	OK(sci_ep_close(ep));
	while (!rank && left--)
		peer_must(wait(&status) > 0 && !status);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned int flags = SCI_EP_SINGLE_THREAD, run = (unsigned int)getpid();
	const char *net = getenv("PEER_NET");
	char value[64], c = 0;
	bool exported, idle;
	int rank;

	if (argc < 4)
		peer_die("usage: msg_peers untagged|mt|tagged|zerocopy METRIC SIZE...");
	snprintf(value, sizeof(value), "shm:peers-%u", run);
	setenv("SCI_FABRIC", value, 0);
	if (!strcmp(argv[1], "mt"))
		flags = 0;
	tagged = !strcmp(argv[1], "tagged");
	exported = !strcmp(argv[1], "zerocopy");
	if (!strcmp(argv[2], "alltoall16_s"))
		return all_to_all(exported, flags, argv + 3);
	rank = peer_fork();
	idle = net && !strcmp(net, "idle");
	if (idle && !rank)
		idle_neighbour(run);
	if (net)
		join_net(net, rank, run);
	sockets = net && (!strcmp(net, "tcp") || !strcmp(net, "unix"));
	join(rank, 2, flags);
	if (idle)
		OK(sci_recv(ep, NULL, &c, 1, NULL));
	other = peers[!rank];
	peer_post = post_receive;
	peer_wait = wait_receive;
	peer_out = buffer(exported, PEER_MAX);
	peer_in = buffer(exported, PEER_MAX);
	measure(rank, argv[2], argv + 3);
	peer_exchange(rank, &c, &c, 1);		/* wait for the other rank */
	OK(sci_ep_close(ep));
	return peer_join(rank);
}
