// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Peers of a test. Tokens, data and descriptors pass through a pair of sockets that
 * preserve the borders of messages.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SELFTESTS_KERNEL_KSFT_C
#include "ksft.h"

#define MAX_PEERS	128
#define MESSAGE_MAX	4096
#define EXEC_OPTION	"--peer-on-descriptor="

struct peer {
	pid_t pid;			/* 0 in the peer itself */
	int fd;
};

static struct peer peers[MAX_PEERS];
static unsigned int npeers;

static void hang_up(struct peer *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

struct peer *peer_spawn(void (*fn)(struct peer *self, void *arg), void *arg)
{
	struct peer *p;
	int fds[2];

	CHECK(npeers < MAX_PEERS);
	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
	p = &peers[npeers++];
	*p = (struct peer){ .fd = fds[0] };
	p->pid = ksft_fork();
	if (p->pid == 0) {
		for (unsigned int i = 0; i < npeers; i++)
			hang_up(&peers[i]);
		npeers = 1;
		peers[0] = (struct peer){ .fd = fds[1] };
		fn(&peers[0], arg);
		exit(KSFT_PASS);
	}
	close(fds[1]);
	return p;
}

pid_t peer_pid(struct peer *p)
{
	return p->pid;
}

static size_t receive(struct peer *p, void *data, size_t room, int *fd)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { data, room };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = fd ? sizeof(control) : 0,
	};
	struct pollfd pfd = { .fd = p->fd, .events = POLLIN };
	struct cmsghdr *c;
	ssize_t n;

	CHECK(poll(&pfd, 1, TEST_WAIT_MS) == 1);
	n = recvmsg(p->fd, &msg, MSG_CMSG_CLOEXEC);
	CHECK(n > 0);			/* 0: the other process has ended */
	c = fd ? CMSG_FIRSTHDR(&msg) : NULL;
	if (fd) {
		CHECK(c && c->cmsg_type == SCM_RIGHTS);
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	}
	return n;
}

void peer_put(struct peer *p, const void *data, size_t len)
{
	CHECK(len > 0 && len <= MESSAGE_MAX);
	EQ(send(p->fd, data, len, MSG_NOSIGNAL), len);
}

void peer_get(struct peer *p, void *data, size_t len)
{
	EQ(receive(p, data, len, NULL), len);
}

void peer_send(struct peer *p, const char *token)
{
	peer_put(p, token, strlen(token));
}

void peer_expect(struct peer *p, const char *token)
{
	char text[256];
	size_t n = receive(p, text, sizeof(text) - 1, NULL);

	text[n] = '\0';
	if (strcmp(text, token) != 0)
		FAIL("the peer said \"%s\" and not \"%s\"", text, token);
}

void peer_put_fd(struct peer *p, int fd)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { { 0 } };
	char byte = 'f';
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	EQ(sendmsg(p->fd, &msg, MSG_NOSIGNAL), 1);
}

int peer_get_fd(struct peer *p)
{
	char byte = 0;
	int fd = -1;

	EQ(receive(p, &byte, 1, &fd), 1);
	return fd;
}

void peer_kill(struct peer *p)
{
	int status;

	kill(p->pid, SIGKILL);
	status = ksft_wait(p->pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	hang_up(p);
}

void peer_join(struct peer *p)
{
	int status = ksft_wait(p->pid);

	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	hang_up(p);
}

void peer_exec(struct peer *self)
{
	char option[64];

	OK(SYS(fcntl(self->fd, F_SETFD, 0)));
	snprintf(option, sizeof(option), EXEC_OPTION "%d", self->fd);
	execl("/proc/self/exe", "peer", option, NULL);
	FAIL("exec: %s", strerror(errno));
	abort();
}

/* Answer peer_exec() in the new program; false if peer_exec() has not started it. */
bool peer_exec_main(int argc, char **argv)
{
	char byte[8];
	int fd;

	if (argc != 2 || strncmp(argv[1], EXEC_OPTION, strlen(EXEC_OPTION)))
		return false;
	fd = atoi(argv[1] + strlen(EXEC_OPTION));
	if (send(fd, "hello", 5, MSG_NOSIGNAL) != 5 ||
	    recv(fd, byte, sizeof(byte), 0) != 3)
		_exit(KSFT_FAIL);
	return true;
}

void peer_become(uid_t uid, gid_t gid)
{
	OK(SYS(setgroups(0, NULL)));
	OK(SYS(setresgid(gid, gid, gid)));
	OK(SYS(setresuid(uid, uid, uid)));
	/* a change of user clears this setting */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}
