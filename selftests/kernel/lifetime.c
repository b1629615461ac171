// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Test processes that end at any point: the kernel then holds no more objects than
 * before. --rounds=N sets the number of rounds (30), --seed=N the seed.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sci_test.h"

#define LENGTH	(4 * PAGE)

static struct counts was[64];

static void begin(void)
{
	for (unsigned int i = 0; i < adapters(); i++)
		was[i] = counts_of(i);
}

static void end(void)
{
	for (unsigned int i = 0; i < adapters(); i++)
		COUNTS_BACK(i, &was[i]);
}

static unsigned int rounds(void)
{
	unsigned int n = (unsigned int)ksft_option("rounds", 30);

	ksft_set_limit(60 + 4 * n);
	return n;
}

static uint64_t seed(void)
{
	uint64_t s = ksft_option("seed", ksft_now_ms());

	ksft_note("--seed=%llu", (unsigned long long)s);
	return s;
}

/* Kill a process after @us microseconds. */
static void kill_after(pid_t pid, unsigned int us)
{
	struct timespec ts = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&ts, NULL);
	kill(pid, SIGKILL);
}

/* Return the duration of everything(), so that kills hit each part of it. */
static unsigned int microseconds_of_everything(void)
{
	uint64_t begun = ksft_now_ms();

	everything(1, 3);
	return (unsigned int)(ksft_now_ms() - begun + 1) * 1000 / 3;
}

static void do_everything(uint64_t s)
{
	for (;;)
		everything(s++, 100);
}

static void killed_at_random(void (*fn)(uint64_t seed))
{
	unsigned int n = rounds(), us = microseconds_of_everything();
	uint64_t s = seed();

	begin();
	for (unsigned int i = 0; i < n; i++) {
		pid_t pid = ksft_fork();
		int status;

		if (pid == 0)
			fn(ksft_random(&s));
		kill_after(pid, ksft_below(&s, 2 * us));
		status = ksft_wait(pid);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		end();
	}
}

/* ---- kills ---- */

TEST(all_that_is_done_is_undone)
{
	begin();
	everything(seed(), 10);
	end();
}

TEST(a_process_is_killed_anywhere)
{
	killed_at_random(do_everything);
}

static void *do_everything_here(void *arg)
{
	do_everything((uintptr_t)arg);
	return NULL;
}

static void do_everything_in_threads(uint64_t s)
{
	pthread_t thread[3];

	for (unsigned int i = 0; i < ARRAY_SIZE(thread); i++)
		EQ(pthread_create(&thread[i], NULL, do_everything_here,
				  (void *)(uintptr_t)(s + i)), 0);
	do_everything(s + 100);
}

TEST(threads_are_killed_anywhere)
{
	killed_at_random(do_everything_in_threads);
}

static void fork_and_do_everything(uint64_t s)
{
	for (;;) {
		struct world w = WORLD();
		pid_t pid = ksft_fork();

		if (pid == 0) {
			everything(s, 1);
			_exit(0);
		}
		everything(s++, 1);
		world_close(&w);
		EQ(ksft_wait(pid), 0);
	}
}

TEST(children_are_killed_with_their_parents)
{
	killed_at_random(fork_and_do_everything);
}

/* ---- descriptors in other processes ---- */

TEST(a_child_holds_what_its_parent_had)
{
	struct pair p;
	int fds[2];
	pid_t pid;
	char byte;

	begin();
	OK(SYS(pipe2(fds, O_CLOEXEC)));
	pid = ksft_fork();
	if (pid == 0) {
		pid_t child;

		p = PAIR(LENGTH);
		child = fork();
		if (child == 0) {
			/* the grandchild outlives its parent and uses the objects */
			close(fds[1]);
			if (read(fds[0], &byte, 1) < 0)
				_exit(1);
			p.there[0] = 5;
			_exit(sci_flush(p.remote) || p.here[0] != 5);
		}
		_exit(child < 0);
	}
	EQ(ksft_wait(pid), 0);
	CHECK(counts_of(0).users > was[0].users);
	close(fds[1]);
	end();
}

/* The kernel releases descriptors in a message that no process will read. */
TEST(descriptors_on_their_way_to_nobody)
{
	begin();
	for (unsigned int i = 0; i < 10; i++) {
		pid_t pid = ksft_fork();

		if (pid == 0) {
			struct peer *p = peer_spawn(
				(void (*)(struct peer *, void *))(void *)pause,
				NULL);
			struct world w = WORLD();

			for (unsigned int k = 0; k < KINDS; k++)
				if (w.fd[k] >= 0)
					peer_put_fd(p, w.fd[k]);
			peer_put_fd(p, w.pair.local);
			_exit(0);
		}
		EQ(ksft_wait(pid), 0);
	}
	end();
}

/* A socket in its own receive queue: only the garbage collector frees it. */
TEST(descriptors_in_a_cycle)
{
	begin();
	for (unsigned int i = 0; i < 5; i++) {
		struct world w = WORLD();
		union {
			char room[CMSG_SPACE(3 * sizeof(int))];
			struct cmsghdr align;
		} control = { { 0 } };
		struct iovec iov = { (void *)"f", 1 };
		struct msghdr msg = {
			.msg_iov = &iov, .msg_iovlen = 1,
			.msg_control = control.room,
			.msg_controllen = sizeof(control),
		};
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		int s[2], fd[3];

		OK(SYS(socketpair(AF_UNIX, SOCK_DGRAM, 0, s)));
		fd[0] = s[1];
		fd[1] = w.fd[KIND_REMOTE];
		fd[2] = w.fd[KIND_LOCAL];
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), fd, sizeof(fd));
		EQ(SYS(sendmsg(s[0], &msg, 0)), 1);
		close(s[0]);
		close(s[1]);
		world_close(&w);
	}
	/* close() of a socket triggers the garbage collector */
	for (unsigned int i = 0; i < adapters(); i++)
		WAIT_UNTIL((close(socket(AF_UNIX, SOCK_DGRAM, 0)),
			    counts_of(i).users == was[i].users));
	end();
}

TEST(descriptors_that_are_watched)
{
	struct world w;
	int ep;

	begin();
	w = WORLD();
	ep = OK(SYS(epoll_create1(EPOLL_CLOEXEC)));
	for (unsigned int k = 0; k < KINDS; k++) {
		struct epoll_event event = { .events = EPOLLIN };

		if (w.fd[k] >= 0 && k != KIND_ADAPTER)
			OK(SYS(epoll_ctl(ep, EPOLL_CTL_ADD, w.fd[k],
					 &event)));
	}
	world_close(&w);
	end();
	close(ep);
}

TEST(copies_of_descriptors)
{
	struct world w;
	int copy[KINDS];

	begin();
	w = WORLD();
	for (unsigned int k = 0; k < KINDS; k++)
		copy[k] = w.fd[k] < 0 ? -1 :
			  OK(SYS(fcntl(w.fd[k], F_DUPFD_CLOEXEC, 0)));
	world_close(&w);
	for (unsigned int k = 0; k < KINDS; k++)
		close(copy[k]);
	end();
}

/* ---- orders in which objects end ---- */

static void shuffle(int *fd, unsigned int n, uint64_t *s)
{
	for (unsigned int i = n - 1; i > 0; i--) {
		unsigned int j = ksft_below(s, i + 1);
		int t = fd[i];

		fd[i] = fd[j];
		fd[j] = t;
	}
}

TEST(descriptors_are_closed_in_any_order)
{
	unsigned int n = rounds();
	uint64_t s = seed();

	begin();
	for (unsigned int i = 0; i < n; i++) {
		struct world w = WORLD();
		int fd[KINDS + 2];

		memcpy(fd, w.fd, sizeof(w.fd));
		fd[KINDS] = w.pair.local;
		fd[KINDS + 1] = w.pair.exporter;
		if (ksft_below(&s, 2))
			OK(sci_unmap(w.pair.there, w.pair.length));
		else
			OK(sci_unmap(w.pair.here, w.pair.length));
		shuffle(fd, ARRAY_SIZE(fd), &s);
		for (unsigned int k = 0; k < ARRAY_SIZE(fd); k++)
			close(fd[k]);
		munmap((void *)w.pair.there, w.pair.length);
		munmap((void *)w.pair.here, w.pair.length);
	}
	end();
}

TEST(both_ends_end_at_once)
{
	unsigned int n = rounds();

	begin();
	for (unsigned int i = 0; i < n; i++) {
		pid_t pid[2];

		for (unsigned int k = 0; k < 2; k++) {
			pid[k] = ksft_fork();
			if (pid[k] == 0)
				do_everything(i * 2 + k);
		}
		kill_after(pid[0], 2000 + i * 100);
		kill(pid[1], SIGKILL);
		ksft_wait(pid[0]);
		ksft_wait(pid[1]);
		end();
	}
}
