// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libsci/team/boot_server.h"
#include "selftests/ranks.h"
#include "selftests/remote.h"

struct rank {
	struct boot_stream stream;
	pid_t pid;
	int status;			/* as waitpid() returns it */
};

static struct job {
	unsigned int n;
	struct rank ranks[RANKS_MAX];
	void (*fn)(void *arg);
	void (*plain)(void);
	void *arg;
	int aborted;
} job;

static unsigned int my_rank;

/* The processes of the test share this. It is NULL in a rank on another machine. */
static struct deaths {
	_Atomic uint64_t last_ms;	/* time of the last death by ranks_die_in() */
	_Atomic uint64_t longest_ms;	/* longest time from a death to ranks_death_over() */
	_Atomic int aborted;		/* of the last ranks_run_apart() */
} *deaths;

unsigned int ranks_rank(void)
{
	return my_rank;
}

int ranks_aborted(void)
{
	return job.aborted;
}

/* ---- the server ---- */

static void rank_end(struct rank *r)
{
	if (r->stream.in < 0)
		return;
	close(r->stream.in);
	r->stream.in = r->stream.out = -1;
	boot_stream_free(&r->stream);
}

static void server_send(void *arg, const struct boot_frame *f, const void *payload)
{
	struct job *j = arg;

	for (unsigned int i = 0; i < j->n; i++)
		if ((f->rank == i || f->rank == BOOT_ALL) && j->ranks[i].stream.out >= 0)
			boot_stream_send(&j->ranks[i].stream, f, payload);
}

/* Return false if the rank has closed its connection or broken the protocol. */
static bool rank_input(struct job *j, struct boot_server *server, unsigned int i)
{
	struct rank *r = &j->ranks[i];
	const void *payload;
	struct boot_frame f;
	int ret;

	ret = boot_stream_fill(&r->stream);
	while (ret != -ECONNRESET && !(ret = boot_stream_next(&r->stream, &f, &payload))) {
		f.rank = i;
		ret = boot_server_frame(server, &f, payload);
		if (ret > 0)
			j->aborted = ret;
		if (ret < 0)
			return false;
	}
	return ret == -EAGAIN;
}

static void rank_reap(struct job *j, struct boot_server *server, unsigned int i)
{
	struct rank *r = &j->ranks[i];

	rank_end(r);
	CHECK_EQ(waitpid(r->pid, &r->status, 0), r->pid);
	boot_server_ended(server, i, r->status != 0);
}

static unsigned int ranks_poll(struct job *j, struct pollfd *p)
{
	unsigned int open = 0;

	for (unsigned int i = 0; i < j->n; i++) {
		struct boot_stream *s = &j->ranks[i].stream;

		p[i] = (struct pollfd){ .fd = s->in, .events = POLLIN };
		if (boot_stream_queued(s))
			p[i].events |= POLLOUT;
		open += s->in >= 0;
	}
	if (open)
		CHECK(poll(p, j->n, -1) >= 0 || errno == EINTR);
	return open;
}

/* After an abort a rank may end with any exit status. */
static void rank_check(const struct job *j, unsigned int rank, bool may_die)
{
	int status = j->ranks[rank].status;
	int sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	if (sig && !(sig == SIGKILL && (may_die || j->aborted)))
		FAIL("rank %u was ended by signal %d", rank, sig);
	if (WIFEXITED(status) && WEXITSTATUS(status) && !j->aborted)
		exit(WEXITSTATUS(status));	/* the rank has printed the reason, or skips */
}

/* Serve until all ranks have ended. An abort by one rank ends the other ranks. */
static void ranks_serve(struct job *j, struct boot_server *server, bool may_die)
{
	struct pollfd p[RANKS_MAX];

	while (ranks_poll(j, p)) {
		for (unsigned int i = 0; i < j->n; i++) {
			if (p[i].revents & POLLOUT)
				boot_stream_flush(&j->ranks[i].stream);
			if (!(p[i].revents & ~POLLOUT) || rank_input(j, server, i))
				continue;
			rank_reap(j, server, i);
			rank_check(j, i, may_die);
		}
		for (unsigned int i = 0; j->aborted && i < j->n; i++)
			if (j->ranks[i].stream.in >= 0)
				kill(j->ranks[i].pid, SIGKILL);
	}
	if (j->aborted && !may_die)
		FAIL("a rank has aborted the job with status %d", j->aborted);
}

/* ---- the ranks ---- */

/* On another machine a rank has a copy, and the variables of this file have their initial values. */
struct start {
	unsigned int rank;
	int fd;				/* the connection to the server; -1: connect to @server */
	struct sockaddr_in server;
	void (*fn)(void *arg);
	void (*plain)(void);
	void *arg;
};

/* Return a connection from another machine. */
static int rank_connect(const struct start *s)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	CHECK_EQ(connect(fd, (const struct sockaddr *)&s->server, sizeof(s->server)), 0);
	return fd;
}

static void rank_main(struct peer *self, void *arg)
{
	const struct start *s = arg;
	int fd = s->fd;
	char value[48];
	struct stat st;

	(void)self;
	my_rank = s->rank;
	/* the server's ends of this rank's connection and of earlier ones */
	for (unsigned int i = 0; fd >= 0 && i <= my_rank; i++)
		close(job.ranks[i].stream.in);
	if (fd < 0)
		fd = rank_connect(s);
	CHECK_EQ(fstat(fd, &st), 0);
	snprintf(value, sizeof(value), "%d:%llu", fd, (unsigned long long)st.st_ino);
	setenv("SCI_BOOT", value, 1);
	if (s->plain)
		s->plain();
	else
		s->fn(s->arg);
}

/* Return a socket that accepts the connection of a rank on machine @address. */
static int rank_listen(const char *address, struct sockaddr_in *here)
{
	struct sockaddr_in there = { .sin_family = AF_INET, .sin_port = htons(1) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*here);

	/* this machine's address in their network */
	CHECK(fd >= 0 && inet_aton(address, &there.sin_addr));
	CHECK_EQ(connect(fd, (struct sockaddr *)&there, sizeof(there)), 0);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)here, &len), 0);
	close(fd);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0);
	here->sin_port = 0;
	CHECK_EQ(bind(fd, (struct sockaddr *)here, len), 0);
	CHECK_EQ(listen(fd, 1), 0);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)here, &len), 0);
	return fd;
}

static int rank_accept(int listener)
{
	struct pollfd p = { .fd = listener, .events = POLLIN };
	int fd;

	CHECK_EQ(poll(&p, 1, TEST_WAIT_MS), 1);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	CHECK(fd >= 0);
	close(listener);
	return fd;
}

static void rank_spawn(struct job *j, unsigned int i, unsigned int node)
{
	const char *address = node == 4 ? NULL : remote_address(node);
	struct start s = {
		.rank = i, .fd = -1, .fn = j->fn, .plain = j->plain, .arg = j->arg,
	};
	struct rank *r = &j->ranks[i];
	int fds[2] = { -1, -1 }, listener = -1;

	if (address) {
		listener = rank_listen(address, &s.server);
	} else {
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
		s.fd = fds[1];
	}
	*r = (struct rank){ .stream = { .in = fds[0], .out = fds[0] } };
	r->pid = harness_pid(peer_spawn(node, rank_main, &s));
	if (address)
		r->stream.in = r->stream.out = rank_accept(listener);
	else
		close(fds[1]);
}

/* Return @nodes, or the number of machines if each node is a machine. */
static unsigned int nodes_limit(unsigned int nodes)
{
	unsigned int n = 1;

	if (!remote_machines())
		return nodes;
	if (nodes == 1 || remote_variable(job.arg))
		test_needs_one_machine();
	while (n < nodes && remote_address(4 * (n + 1)))
		n++;
	return n;
}

static void deaths_share(void)
{
	if (deaths)
		return;
	deaths = mmap(NULL, sizeof(*deaths), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	CHECK(deaths != MAP_FAILED);
}

static void job_run(unsigned int n, unsigned int nodes, bool may_die)
{
	struct boot_place places[RANKS_MAX];
	struct boot_server *server;

	CHECK(n && n <= RANKS_MAX && nodes && nodes <= n);
	nodes = nodes_limit(nodes);
	job.n = 0;
	job.aborted = 0;
	deaths_share();
	for (unsigned int i = 0; i < n; i++) {
		places[i] = (struct boot_place){ .node = 4 * (1 + i * nodes / n) };
		/* a rank that has started would fail when the test is skipped */
		harness_is_remote(places[i].node);
	}
	for (unsigned int i = 0; i < n; i++) {
		rank_spawn(&job, i, places[i].node);
		job.n++;
	}
	CHECK_EQ(boot_server_create(&server, places, n, server_send, &job), 0);
	ranks_serve(&job, server, may_die);
	boot_server_destroy(server);
}

static void ranks_set(void (*plain)(void), void (*fn)(void *arg), void *arg)
{
	job.plain = plain;
	job.fn = fn;
	job.arg = arg;
}

void ranks_run(unsigned int n, unsigned int nodes, void (*fn)(void))
{
	ranks_set(fn, NULL, NULL);
	job_run(n, nodes, false);
}

void ranks_run_arg(unsigned int n, unsigned int nodes, void (*fn)(void *arg), void *arg,
		   bool may_die)
{
	ranks_set(NULL, fn, arg);
	job_run(n, nodes, may_die);
}

int ranks_run_apart(unsigned int n, unsigned int nodes, void (*fn)(void *arg), void *arg)
{
	int status;
	pid_t pid;

	deaths_share();
	pid = test_fork();
	CHECK(pid >= 0);
	if (!pid) {
		ranks_run_arg(n, nodes, fn, arg, true);
		atomic_store(&deaths->aborted, job.aborted);
		exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	if (status)
		exit(WEXITSTATUS(status));	/* the process has printed the reason */
	return atomic_load(&deaths->aborted);
}

/* Set *@to to @value if @value is more. */
static void raise_to(_Atomic uint64_t *to, uint64_t value)
{
	uint64_t old = atomic_load(to);

	while (old < value && !atomic_compare_exchange_weak(to, &old, value))
		;
}

void ranks_death_over(void)
{
	if (deaths)
		raise_to(&deaths->longest_ms, test_now_ms() - atomic_load(&deaths->last_ms));
}

void ranks_deaths_note(const char *end)
{
	if (deaths)
		test_note("longest time from SIGKILL to %s: %llu ms", end,
			  (unsigned long long)atomic_load(&deaths->longest_ms));
}

void ranks_die_in(unsigned int us)
{
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
	struct itimerspec when = { .it_value = { .tv_nsec = (long)us * 1000 + 1 } };
	timer_t timer;

	if (deaths)
		raise_to(&deaths->last_ms, test_now_ms() + us / 1000);
	CHECK_EQ(timer_create(CLOCK_MONOTONIC, &ev, &timer), 0);
	CHECK_EQ(timer_settime(timer, 0, &when, NULL), 0);
}

static unsigned int count_sockets_of(const char *cluster)
{
	FILE *f = fopen("/proc/net/unix", "re");
	char line[512];
	unsigned int n = 0;

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, cluster) != NULL;
	fclose(f);
	return n;
}

unsigned int ranks_resources_left(void)
{
	return *test_cluster() ? count_sockets_of(test_cluster()) : harness_objects();
}
