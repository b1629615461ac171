/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: a relay between two nodes
 *
 * A process forwards the bytes between node 8 and node 4. It cuts connections, stalls them, and
 * closes them all, as the test wants.
 */
#ifndef SELFTESTS_NET_RELAY_H
#define SELFTESTS_NET_RELAY_H

#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "selftests/msg/peers.h"

/* Behaviour of the relay, shared with its process. */
struct relay {
	uint16_t port;			/* port of the relay */
	uint16_t target;		/* port of node 4 */
	_Atomic unsigned int cut_after;	/* bytes, on average; 0: never */
	_Atomic bool stalled;		/* bytes wait, and connections stay open */
	_Atomic uint64_t stall_at;	/* stall when so many bytes have passed; 0: never */
	_Atomic bool closed;		/* all connections are cut */
	_Atomic unsigned int cuts;
	_Atomic unsigned int connections;
	_Atomic uint64_t bytes;
};

#define PAIRS_MAX	32

struct relay_pair {
	int fd[2];
	uint64_t left;			/* bytes until the cut */
};

static inline int tcp_socket(uint16_t *port)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(*port),
	};
	socklen_t len = sizeof(a);
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
	CHECK_EQ(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	*port = ntohs(a.sin_port);
	return fd;
}

static inline int tcp_connect(uint16_t port)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(port),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	if (!connect(fd, (struct sockaddr *)&a, sizeof(a)))
		return fd;
	close(fd);
	return -1;
}

/* Cut a connection, every other time with a reset, which loses bytes under way. */
static inline void relay_cut(struct relay *r, struct relay_pair *p)
{
	const struct linger hard = { .l_onoff = 1 };

	for (int i = 0; i < 2; i++) {
		if (atomic_load(&r->cuts) % 2)
			setsockopt(p->fd[i], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
		close(p->fd[i]);
		p->fd[i] = -1;
	}
	atomic_fetch_add(&r->cuts, 1);
}

static inline void relay_limit(struct relay *r, struct relay_pair *p, uint64_t *state)
{
	unsigned int after = atomic_load(&r->cut_after);

	p->left = after ? 1 + msg_random(state, 2 * after) : UINT64_MAX;
}

static inline void relay_move(struct relay *r, struct relay_pair *p, int from)
{
	char buf[4096];
	size_t room = p->left < sizeof(buf) ? (size_t)p->left : sizeof(buf);
	ssize_t n = recv(p->fd[from], buf, room, MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n > 0 && send(p->fd[!from], buf, (size_t)n, MSG_NOSIGNAL) == n) {
		uint64_t stall_at = atomic_load(&r->stall_at);

		if (atomic_fetch_add(&r->bytes, (uint64_t)n) + (uint64_t)n >= stall_at && stall_at)
			atomic_store(&r->stalled, true);
		p->left -= (uint64_t)n;
		if (p->left)
			return;
	}
	relay_cut(r, p);
}

static inline void relay_accept(struct relay *r, int listener, struct relay_pair *p,
			 uint64_t *state)
{
	p->fd[0] = accept(listener, NULL, NULL);
	if (p->fd[0] < 0)
		return;
	p->fd[1] = tcp_connect(r->target);
	if (p->fd[1] < 0) {
		close(p->fd[0]);
		p->fd[0] = -1;
		return;
	}
	atomic_fetch_add(&r->connections, 1);
	relay_limit(r, p, state);
}

__attribute__((noreturn))
static inline void relay_run(struct relay *r, int listener)
{
	struct relay_pair pairs[PAIRS_MAX];
	uint64_t state = 4711;

	memset(pairs, 0xff, sizeof(pairs));
	for (;;) {
		struct pollfd fds[2 * PAIRS_MAX + 1];
		int free_pair = -1;

		for (int i = 0; i < PAIRS_MAX; i++) {
			if (pairs[i].fd[0] < 0)
				free_pair = i;
			else if (atomic_load(&r->closed))
				relay_cut(r, &pairs[i]);
			for (int k = 0; k < 2; k++)
				fds[2 * i + k] = (struct pollfd){ pairs[i].fd[k], POLLIN, 0 };
		}
		fds[2 * PAIRS_MAX] = (struct pollfd){ listener, POLLIN, 0 };
		if (atomic_load(&r->stalled)) {
			poll(NULL, 0, 5);
			continue;
		}
		poll(fds, 2 * PAIRS_MAX + 1, 5);
		for (int i = 0; i < 2 * PAIRS_MAX; i++)
			if (fds[i].revents && pairs[i / 2].fd[0] >= 0)
				relay_move(r, &pairs[i / 2], i % 2);
		if (fds[2 * PAIRS_MAX].revents && free_pair >= 0)
			relay_accept(r, listener, &pairs[free_pair], &state);
	}
}

static struct relay *relay;
static pid_t relay_pid;

/* Start the relay, before the first call of the library. */
static inline void relay_start(void)
{
	int listener, spare;

	relay = test_shared(sizeof(*relay));
	spare = tcp_socket(&relay->target);
	listener = tcp_socket(&relay->port);
	CHECK_EQ(listen(listener, 64), 0);
	relay_pid = fork();
	CHECK(relay_pid >= 0);
	if (!relay_pid) {
		close(spare);
		relay_run(relay, listener);
	}
	close(listener);
	close(spare);
}

/* Node 4 listens behind the relay; node 8 does not listen. */
static inline void be_behind_relay(unsigned int node, const char *retry)
{
	char text[64];

	test_use_net("tcp", node);
	snprintf(text, sizeof(text), "tcp:127.0.0.1:%u+1", relay->target);
	setenv("SCI_NET", node == 4 ? text : "tcp", 1);
	snprintf(text, sizeof(text), "4=127.0.0.1:%u+1", relay->port);
	setenv("SCI_NET_PEERS", text, 1);
	setenv("SCI_NET_RETRY", retry, 1);
}

#endif
