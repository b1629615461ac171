// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * A server and clients that connect, send a message and die or leave: the server
 * keeps nothing of them.
 *
 *	test process	does not use the library; starts the clients
 *	  server	node 4
 *	  clients	node 8; each process has many endpoints, each of which
 *			is a client, and does not wait for the server's disconnect
 *
 * SCI_TEST_CLIENTS is the number of clients.
 */
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "selftests/msg/traffic.h"

#define PARTY		50u		/* clients of a process */
#define PARTIES		(TRAFFIC_SLOW > 1 ? 4u : 8u)
#define WARM_UP		2u		/* parties before anything is counted */
#define SHORT_LEN	32u
#define EAGER_LEN	16384u
#define LONG_LEN	300000u

/*
 * Bytes that the server keeps for a client which it has not disconnected: the connection's structure,
 * and what the allocator adds.
 */
#define KEPT_BYTES	1088u
/* Bytes that an allocator keeps for itself. */
#define SLACK_BYTES	65536u

static unsigned int parties(void)
{
	const char *clients = getenv("SCI_TEST_CLIENTS");

	return clients ? ((unsigned int)atoi(clients) + PARTY - 1) / PARTY +
			 WARM_UP : PARTIES;
}

/* ---- clients ---- */

/* Start a process that dies with this one. */
static pid_t client_start(unsigned int node, void (*fn)(unsigned int n),
			  unsigned int n)
{
	pid_t parent = getpid(), pid = fork();
	char text[16];

	CHECK(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	snprintf(text, sizeof(text), "%u", node);
	setenv("SCI_NODE", text, 1);
	fn(n);
	_exit(0);
}

static size_t length_of(unsigned int client)
{
	return client % 10 == 0 ? LONG_LEN : client % 10 == 5 ? EAGER_LEN :
								SHORT_LEN;
}

/* The clients of every other party close their endpoints before they die. */
static void party(unsigned int n)
{
	static unsigned char buf[LONG_LEN];
	struct sci_ep *ep[PARTY];

	for (unsigned int i = 0; i < PARTY; i++) {
		size_t len = length_of(i);
		struct sci_peer *to;

		ep[i] = test_ep_open(i + 1, 0);
		CHECK_EQ(sci_ep_set(ep[i], SCI_PARAM_ATTACH_AFTER, 0), 0);
		to = test_ep_connect(ep[i], 4, TEST_ID);
		msg_fill(buf, len, i);
		CHECK_EQ(sci_send(to, buf, len), 0);
	}
	for (unsigned int i = 0; n % 2 && i < PARTY; i++)
		CHECK_EQ(sci_ep_close(ep[i]), 0);
	kill(getpid(), SIGKILL);
}

/* ---- the server ---- */

struct server {
	struct sci_ep *ep;
	bool lets_go;			/* disconnects clients that are gone */
	struct sci_peer *known[PARTY];
	unsigned int n_known;
	unsigned int fds, maps;
	size_t bytes;
};

static void take_message(struct server *s)
{
	static unsigned char buf[LONG_LEN];
	struct sci_status st;
	struct sci_addr from;
	struct sci_req *req;

	CHECK_EQ(sci_irecv(s->ep, NULL, buf, sizeof(buf), &req), 0);
	CHECK_EQ(test_wait(req, &st), 0);
	CHECK_EQ(sci_peer_addr(st.peer, &from), 0);
	CHECK_EQ(st.len, length_of(from.id - 1));
	CHECK_BYTES(buf, st.len, from.id - 1);
	s->known[s->n_known++] = st.peer;
}

/* Disconnect all clients that are gone; sci_peer_gone() names each of them once. */
static void let_go(struct server *s)
{
	struct sci_peer *p;
	unsigned int n;

	for (n = 0; !sci_peer_gone(s->ep, &p); n++) {
		unsigned int i = 0;

		while (i < PARTY && s->known[i] != p)
			i++;
		CHECK(i < PARTY);
		s->known[i] = NULL;
		CHECK(sci_peer_state(p) < 0);
		CHECK_EQ(sci_disconnect(p), 0);
	}
	CHECK_EQ(n, PARTY);
}

static void serve_party(struct server *s)
{
	s->n_known = 0;
	while (s->n_known < PARTY)
		take_message(s);
	PROGRESS_UNTIL(s->ep, !test_ep_stats(s->ep).peers, TEST_WAIT_MS);
	CHECK_EQ(test_ep_stats(s->ep).peer_bytes, 0);
	test_progress(s->ep);
	if (s->lets_go)
		let_go(s);
}

static void count(struct server *s)
{
	s->fds = count_fds();
	s->maps = count_shared_maps();
	s->bytes = mallinfo2().uordblks;
}

static void check_flat(struct server *s, unsigned int clients)
{
	struct server now;
	size_t more;

	/* a thread of the library ends connections */
	WAIT_UNTIL(count_fds() <= s->fds, TEST_WAIT_MS);
	count(&now);
	CHECK_EQ(now.maps, s->maps);
	more = now.bytes > s->bytes ? now.bytes - s->bytes : 0;
	test_note("%u clients: %u descriptors, %u shared maps, %zu bytes more",
		  clients, now.fds, now.maps, more);
	if (!(TEST_ASAN || TEST_TSAN))
		CHECK(more <= SLACK_BYTES +
			      (s->lets_go ? 0 : clients * KEPT_BYTES));
}

static void server(struct peer *self, void *arg)
{
	struct server s = { .lets_go = *(bool *)arg };
	unsigned int n = parties();

	s.ep = test_ep_open(TEST_ID, 0);
	peer_send(self, "open");
	for (unsigned int i = 0; i < n; i++) {
		if (i == WARM_UP)
			count(&s);
		serve_party(&s);
		peer_send(self, "next");
	}
	check_flat(&s, (n - WARM_UP) * PARTY);
	CHECK_EQ(sci_ep_close(s.ep), 0);
}

static void raise_limit(void)
{
	struct rlimit lim;

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &lim), 0);
	lim.rlim_cur = lim.rlim_max;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &lim), 0);
	if (lim.rlim_cur < 20 * PARTY)
		SKIP("too few descriptors");
}

static void clients_come_and_go(bool server_lets_go)
{
	struct peer *p;

	raise_limit();
	p = peer_spawn(4, server, &server_lets_go);
	peer_expect(p, "open");
	for (unsigned int i = 0; i < parties(); i++) {
		int status;
		pid_t pid = client_start(8, party, i);

		peer_expect(p, "next");
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
	peer_join(p);
}

TEST(clients_come_and_go)
{
	clients_come_and_go(true);
}

TEST(clients_come_and_go_and_the_server_lets_go_of_none)
{
	clients_come_and_go(false);
}

/* ---- a client that connects again before the server notices its end ---- */

#define LIVES		20u

static struct lives {
	_Atomic unsigned int asked;	/* lives that have begun to connect */
	_Atomic unsigned int connected;
	_Atomic unsigned int idle;	/* lives after which the server pauses */
} *lives;

static void one_life(unsigned int n)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_addr addr = { 4, TEST_ID };
	struct sci_req *req;

	CHECK_EQ(sci_iconnect(ep, &addr, TEST_WAIT_MS, &req), 0);
	atomic_store(&lives->asked, n + 1);
	CHECK_EQ(sci_wait(req, TEST_WAIT_MS, NULL), 0);
	atomic_store(&lives->connected, n + 1);
	pause();
}

static void forgetful_server(struct peer *self, void *arg)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	unsigned int fds = count_fds();

	(void)arg;
	peer_send(self, "open");
	for (unsigned int n = 0; n < LIVES; n++) {
		WAIT_UNTIL(atomic_load(&lives->asked) > n, TEST_WAIT_MS);
		PROGRESS_UNTIL(ep, atomic_load(&lives->connected) > n,
			       TEST_WAIT_MS);
		atomic_store(&lives->idle, n + 1);
	}
	peer_expect(self, "all gone");
	PROGRESS_UNTIL(ep, !test_ep_stats(ep).peers && count_fds() <= fds,
		       TEST_WAIT_MS);
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(a_client_that_comes_again_before_its_end_is_heard)
{
	struct peer *p;

	lives = test_shared(sizeof(*lives));
	p = peer_spawn(4, forgetful_server, NULL);
	peer_expect(p, "open");
	for (unsigned int n = 0; n < LIVES; n++) {
		pid_t pid = client_start(8, one_life, n);

		WAIT_UNTIL(atomic_load(&lives->idle) > n, 2 * TEST_WAIT_MS);
		CHECK_EQ(kill(pid, SIGKILL), 0);
		CHECK_EQ(waitpid(pid, NULL, 0), pid);
	}
	peer_send(p, "all gone");
	peer_join(p);
}
