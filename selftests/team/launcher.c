// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* A program starts processes by itself and makes a team of them with sci_team_launcher_open(). */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sci/team.h>

#include "selftests/harness.h"

#define N	3

/* ---- poll() of the launcher's thread ---- */

static _Atomic bool poll_fails;		/* as without memory, in the launcher's thread */

/*
 * fork() waits until the launcher's thread is in poll(). A child of a process whose other thread
 * allocates memory may wait forever for a lock of gcc's address sanitizer. The launcher's thread
 * owns @in_poll whenever it is not in poll().
 */
static sem_t in_poll;

static void in_poll_take(void)
{
	while (sem_wait(&in_poll))
		;
}

static void in_poll_give(void)
{
	sem_post(&in_poll);
}

__attribute__((constructor)) static void in_poll_init(void)
{
	sem_init(&in_poll, 0, 1);
	pthread_atfork(in_poll_take, in_poll_give, in_poll_give);
}

int poll(struct pollfd *p, nfds_t n, int timeout)
{
	static _Thread_local bool is_launcher;
	const struct timespec ts = { timeout / 1000, timeout % 1000 * 1000000L };
	int ret, err;

	/* only a launcher polls several descriptors in this program */
	if (n > 1)
		is_launcher = true;
	if (n > 1 && atomic_load(&poll_fails)) {
		errno = ENOMEM;
		return -1;
	}
	if (is_launcher)
		in_poll_give();
	ret = ppoll(p, n, timeout < 0 ? NULL : &ts, NULL);
	err = errno;
	if (is_launcher)
		in_poll_take();
	errno = err;
	return ret;
}

/* ---- processes ---- */

static struct sci_team_launcher *launcher;
static _Atomic int aborted;		/* 1000 * rank + status of an abort; negative: none */

static void on_abort(void *arg, int rank, int status)
{
	atomic_store((_Atomic int *)arg, 1000 * rank + status);
}

/* No process forks after it has closed its launcher. */
static void launcher_open(const struct sci_team_launcher_attr *attr)
{
	in_poll_take();
	CHECK_EQ(sci_team_launcher_open(&launcher, attr), 0);
}

static void launcher_start(void)
{
	static const uint32_t nodes[N] = { 4, 8, 8 };
	const struct sci_team_launcher_attr attr = {
		.size = sizeof(attr), .processes = N, .nodes = nodes, .abort = on_abort,
		.arg = &aborted,
	};

	test_needs_one_machine();
	launcher_open(&attr);
}

/* In a child: open the team as process @rank. */
static int join(int rank, struct sci_team **team)
{
	const struct sci_team_attr attr = {
		.size = sizeof(attr), .symmetric_size = 65536,
		.boot = sci_team_launcher_boot(launcher, rank),
	};

	CHECK_EQ(sci_team_launcher_child(launcher, rank), 0);
	return sci_team_open(team, &attr);
}

static struct peer *member_spawn(int rank, void (*fn)(struct peer *, void *))
{
	return peer_spawn(rank ? 8 : 4, fn, (void *)(long)rank);
}

static void member(struct peer *self, void *arg)
{
	struct sci_team *team;

	(void)self;
	CHECK_EQ(join((int)(long)arg, &team), 0);
	CHECK_EQ(sci_team_rank(team), (int)(long)arg);
	CHECK_EQ(sci_team_size(team), N);
	CHECK_EQ(sci_team_nodes(team), 2);
	CHECK_EQ(sci_team_node_size(team, 1), 2);
	CHECK_EQ(sci_team_barrier(team), 0);
	CHECK_EQ(sci_team_close(team), 0);
}

TEST(children_are_a_team)
{
	struct peer *p[N];

	launcher_start();
	for (int i = 0; i < N; i++)
		p[i] = member_spawn(i, member);
	for (int i = 0; i < N; i++) {
		peer_join(p[i]);
		CHECK_EQ(sci_team_launcher_ended(launcher, i, 0), 0);
	}
	sci_team_launcher_close(launcher);
}

TEST(a_launcher_serves_processes_though_the_kernel_has_no_memory_to_poll)
{
	struct peer *p[N];

	atomic_store(&poll_fails, true);
	launcher_start();
	for (int i = 0; i < N; i++)
		p[i] = member_spawn(i, member);
	for (int i = 0; i < N; i++)
		peer_join(p[i]);
	sci_team_launcher_close(launcher);
}

/* The launcher itself is the last process of the team. */
TEST(the_launcher_is_a_member)
{
	struct sci_team_attr attr = { .size = sizeof(attr), .symmetric_size = 65536 };
	struct sci_team *team;
	struct peer *p[N];

	launcher_start();
	for (int i = 1; i < N; i++)
		p[i] = member_spawn(i, member);
	attr.boot = sci_team_launcher_boot(launcher, 0);
	CHECK_EQ(sci_team_open(&team, &attr), 0);
	CHECK_EQ(sci_team_barrier(team), 0);
	CHECK_EQ(sci_team_close(team), 0);
	for (int i = 1; i < N; i++)
		peer_join(p[i]);
	sci_team_launcher_close(launcher);
}

/* ---- processes that end ---- */

static void ends_early(struct peer *self, void *arg)
{
	(void)self;
	CHECK_EQ(sci_team_launcher_child(launcher, (int)(long)arg), 0);
}

static void opens_alone(struct peer *self, void *arg)
{
	struct sci_team *team;

	(void)self;
	CHECK_EQ(join((int)(long)arg, &team), -ECONNRESET);
}

TEST(a_process_ends_before_it_opens)
{
	struct peer *p[N];

	launcher_start();
	p[0] = member_spawn(0, opens_alone);
	p[1] = member_spawn(1, opens_alone);
	p[2] = member_spawn(2, ends_early);
	peer_join(p[2]);
	CHECK_EQ(sci_team_launcher_ended(launcher, 2, 1), 0);
	CHECK_EQ(sci_team_launcher_ended(launcher, 2, 1), -EINVAL);
	peer_join(p[0]);
	peer_join(p[1]);
	sci_team_launcher_close(launcher);
}

/* Process 1 reads the report of the death before the answer to its HELLO. */
TEST(a_process_opens_after_another_one_has_died)
{
	launcher_start();
	peer_join(member_spawn(2, ends_early));
	CHECK_EQ(sci_team_launcher_ended(launcher, 2, 1), 0);
	peer_join(member_spawn(0, opens_alone));
	peer_join(member_spawn(1, opens_alone));
	sci_team_launcher_close(launcher);
}

static void survivor(struct peer *self, void *arg)
{
	struct sci_team *team;

	CHECK_EQ(join((int)(long)arg, &team), 0);
	peer_send(self, "open");
	CHECK_EQ(sci_team_barrier(team), -ECONNRESET);
	sci_team_close(team);
}

static void victim(struct peer *self, void *arg)
{
	struct sci_team *team;

	CHECK_EQ(join((int)(long)arg, &team), 0);
	peer_send(self, "open");
	pause();
}

TEST(a_process_is_killed)
{
	struct peer *p[N];

	launcher_start();
	for (int i = 0; i < N; i++)
		p[i] = member_spawn(i, i == 1 ? victim : survivor);
	for (int i = 0; i < N; i++)
		peer_expect(p[i], "open");
	peer_kill(p[1], SIGKILL);
	CHECK_EQ(sci_team_launcher_ended(launcher, 1, 1), 0);
	peer_join(p[0]);
	peer_join(p[2]);
	sci_team_launcher_close(launcher);
}

static void aborts(struct peer *self, void *arg)
{
	struct sci_team *team;

	CHECK_EQ(join((int)(long)arg, &team), 0);
	peer_send(self, "open");
	peer_expect(self, "abort");
	sci_team_abort(team, 0);
}

TEST(a_process_aborts)
{
	struct peer *p[N];

	launcher_start();
	atomic_store(&aborted, -1);
	for (int i = 0; i < N; i++)
		p[i] = member_spawn(i, i == 2 ? aborts : victim);
	for (int i = 0; i < N; i++)
		peer_expect(p[i], "open");
	peer_send(p[2], "abort");
	peer_join(p[2]);
	/* the abort frame has arrived before the end of the process */
	sci_team_launcher_ended(launcher, 2, 1);
	WAIT_UNTIL(atomic_load(&aborted) >= 0, TEST_WAIT_MS);
	CHECK_EQ(atomic_load(&aborted), 2000);
	peer_kill(p[0], SIGKILL);
	peer_kill(p[1], SIGKILL);
	sci_team_launcher_close(launcher);
}

/* ---- death of the launcher ---- */

static int told[2];			/* a pipe: each process writes a byte on success */

/* Kill the launcher, which is the parent, and wait for its end. */
static void launcher_kill(pid_t parent)
{
	kill(parent, SIGKILL);
	WAIT_UNTIL(getppid() != parent, TEST_WAIT_MS);
}

/* Processes that have opened the team continue without the launcher. */
static void goes_on(int rank, pid_t parent)
{
	struct sci_team *team;

	CHECK_EQ(join(rank, &team), 0);
	CHECK_EQ(sci_team_barrier(team), 0);
	if (!rank)
		launcher_kill(parent);
	CHECK_EQ(sci_team_barrier(team), 0);
	CHECK_EQ(sci_team_close(team), 0);
}

/* A process that waits for other processes gets an error: these cannot join any more. */
static void waits_in_vain(int rank, pid_t parent)
{
	struct sci_team *team;

	if (rank == N - 1) {		/* the launcher has started all processes */
		CHECK_EQ(sci_team_launcher_child(launcher, rank), 0);
		launcher_kill(parent);
	} else {
		CHECK_EQ(join(rank, &team), -ECONNRESET);
	}
}

static void launcher_peer(struct peer *self, void *arg)
{
	void (*member_main)(int, pid_t) = arg;
	pid_t parent = getpid();

	(void)self;
	launcher_start();
	for (int i = 0; i < N; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid) {
			member_main(i, parent);
			CHECK_EQ(write(told[1], "", 1), 1);
			_exit(0);
		}
	}
	pause();
}

static void launcher_dies(void (*member_main)(int, pid_t))
{
	struct peer *p;
	char byte;
	int n = 0;

	CHECK_EQ(pipe(told), 0);
	p = peer_spawn(4, launcher_peer, member_main);
	close(told[1]);
	while (read(told[0], &byte, 1) == 1)
		n++;
	CHECK_EQ(n, N);
	close(told[0]);
	peer_kill(p, SIGKILL);
}

TEST(members_go_on_without_the_launcher)
{
	launcher_dies(goes_on);
}

TEST(who_waits_is_told_that_the_launcher_died)
{
	launcher_dies(waits_in_vain);
}

/* ---- another program ---- */

/* The main function of this program when a test starts it as another program. */
__attribute__((constructor)) static void program_main(void)
{
	struct sci_team *team;
	int ret;

	if (!getenv("LAUNCHER_TEST_PROGRAM"))
		return;
	ret = sci_team_open(&team, NULL);
	ret = ret ? ret : sci_team_barrier(team);
	_exit(ret || sci_team_rank(team) != 1 || sci_team_close(team));
}

TEST(a_program_finds_the_launcher_in_its_environment)
{
	const struct sci_team_launcher_attr two = { .size = sizeof(two), .processes = 2 };
	struct sci_team_attr attr = { .size = sizeof(attr) };
	struct sci_team *team;
	int status;
	pid_t pid;

	test_needs_one_machine();
	launcher_open(&two);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		setenv("SCI_BOOT", sci_team_launcher_boot(launcher, 1), 1);
		setenv("LAUNCHER_TEST_PROGRAM", "1", 1);
		fcntl(sci_team_launcher_fd(launcher, 1), F_SETFD, 0);
		execl("/proc/self/exe", "launcher", (char *)NULL);
		_exit(127);
	}
	attr.boot = sci_team_launcher_boot(launcher, 0);
	CHECK_EQ(sci_team_open(&team, &attr), 0);
	CHECK_EQ(sci_team_barrier(team), 0);
	CHECK_EQ(sci_team_close(team), 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	sci_team_launcher_close(launcher);
}

/* ---- arguments ---- */

TEST(arguments_out_of_range)
{
	struct sci_team_launcher_attr attr = { .size = sizeof(attr), .processes = 1 };

	CHECK_EQ(sci_team_launcher_open(NULL, &attr), -EINVAL);
	CHECK_EQ(sci_team_launcher_open(&launcher, NULL), -EINVAL);
	attr.processes = 0;
	CHECK_EQ(sci_team_launcher_open(&launcher, &attr), -EINVAL);
	attr.processes = 65537;
	CHECK_EQ(sci_team_launcher_open(&launcher, &attr), -EINVAL);
	attr.processes = 1;
	attr.reserved = 1;
	CHECK_EQ(sci_team_launcher_open(&launcher, &attr), -EINVAL);
	attr.reserved = 0;
	CHECK_EQ(sci_team_launcher_open(&launcher, &attr), 0);
	for (int rank = -1; rank < 2; rank += 2) {
		CHECK(!sci_team_launcher_boot(launcher, rank));
		CHECK_EQ(sci_team_launcher_fd(launcher, rank), -EINVAL);
		CHECK_EQ(sci_team_launcher_child(launcher, rank), -EINVAL);
		CHECK_EQ(sci_team_launcher_ended(launcher, rank, 0), -EINVAL);
	}
	sci_team_launcher_close(launcher);
	sci_team_launcher_close(NULL);
}

TEST(attributes_of_other_versions)
{
	struct {
		struct sci_team_attr attr;
		uint64_t more;
	} longer = { .attr.size = sizeof(longer), .attr.symmetric_size = 65536 };
	struct sci_team *team;

	CHECK_EQ(sci_team_open(&team, &longer.attr), 0);
	CHECK_EQ(sci_team_close(team), 0);
	longer.more = 1;
	CHECK_EQ(sci_team_open(&team, &longer.attr), -E2BIG);
	/* the first version of the struct had no member boot */
	longer.attr.size = offsetof(struct sci_team_attr, boot);
	longer.attr.boot = "junk";
	CHECK_EQ(sci_team_open(&team, &longer.attr), 0);
	CHECK_EQ(sci_team_close(team), 0);
	longer.attr.size--;
	CHECK_EQ(sci_team_open(&team, &longer.attr), -EINVAL);
	longer.attr.size = sizeof(longer.attr);
	CHECK_EQ(sci_team_open(&team, &longer.attr), -ENOENT);
}
