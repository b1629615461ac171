// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* `sci pool serve`: its protocol, as QEMU's ivshmem-doorbell speaks it, and its refusals. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "selftests/harness.h"

#define SIZE		(4u << 20)
#define ROUNDS_MAX	100000

static char tool[PATH_MAX], file[256], path[256];

struct server {
	pid_t pid;
	int out;			/* its standard output and standard error */
};

static void paths_make(void)
{
	const char *tmp = getenv("TMPDIR");
	ssize_t n = readlink("/proc/self/exe", tool, sizeof(tool) - 8);

	CHECK(n > 0);
	tool[n] = '\0';
	for (int i = 0; i < 3; i++)
		*strrchr(tool, '/') = '\0';
	strcat(tool, "/sci");
	snprintf(file, sizeof(file), "%.90s/pool.%d", tmp ? tmp : "/tmp", getpid());
	snprintf(path, sizeof(path), "%.90s/serve.%d", tmp ? tmp : "/tmp", getpid());
}

/* Run `sci pool WORDS...` */
static struct server tool_start(const char *const *words)
{
	const char *argv[12] = { tool, "pool" };
	struct server s;
	int fds[2];

	for (int i = 0; words[i]; i++)
		argv[2 + i] = words[i];
	CHECK_EQ(pipe(fds), 0);
	s.pid = fork();
	if (!s.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fds[1], 1);
		dup2(fds[1], 2);
		close(fds[0]);
		close(fds[1]);
		execv(tool, (char **)argv);
		_exit(127);
	}
	close(fds[1]);
	s.out = fds[0];
	return s;
}

/* Read the output up to @text, and return whether it came. */
static bool output_has(struct server *s, const char *text)
{
	char buf[2048] = "";
	size_t n = 0;

	while (n < sizeof(buf) - 1 && !strstr(buf, text) && read(s->out, buf + n, 1) == 1)
		n++;
	if (!strstr(buf, text))
		test_note("%s", buf);
	return strstr(buf, text);
}

/* Wait for the end of the tool, and return its exit status. */
static int tool_end(struct server *s)
{
	int status = 0;

	CHECK_EQ(waitpid(s->pid, &status, 0), s->pid);
	close(s->out);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int tool_run(const char *const *words, const char *text)
{
	struct server s = tool_start(words);

	CHECK(output_has(&s, text));
	return tool_end(&s);
}

#define WORDS(...) ((const char *const []){ __VA_ARGS__, NULL })

static struct server server_start(void)
{
	struct server s;

	paths_make();
	CHECK_EQ(tool_run(WORDS("format", "--size", "4M", file), "chunks"), 0);
	s = tool_start(WORDS("serve", "--socket", path, file));
	CHECK(output_has(&s, "is served on"));
	return s;
}

static void server_stop(struct server *s)
{
	CHECK_EQ(kill(s->pid, SIGTERM), 0);
	CHECK_EQ(tool_end(s), 0);
	CHECK(access(path, F_OK) && errno == ENOENT);
	unlink(file);
}

static int client_connect(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(addr.sun_path, path, strlen(path));
	CHECK_EQ(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

/* Receive a number and, if *@fd is 1, a descriptor. Return false at the end of the connection. */
static bool message_receive(int sock, int64_t *number, int *fd)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	uint64_t word;
	struct iovec iov = { &word, sizeof(word) };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;
	ssize_t n = recvmsg(sock, &m, MSG_WAITALL | MSG_CMSG_CLOEXEC);

	if (n <= 0)
		return false;
	CHECK_EQ(n, (ssize_t)sizeof(word));
	*number = (int64_t)le64toh(word);
	c = CMSG_FIRSTHDR(&m);
	*fd = -1;
	if (c)
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	return true;
}

static void expect_number(int sock, int64_t number)
{
	int64_t got;
	int fd;

	CHECK(message_receive(sock, &got, &fd));
	CHECK_EQ(got, number);
	CHECK_EQ(fd, -1);
}

static int expect_fd(int sock, int64_t number)
{
	int64_t got;
	int fd;

	CHECK(message_receive(sock, &got, &fd));
	CHECK_EQ(got, number);
	CHECK(fd >= 0);
	return fd;
}

/* Connect, and take the messages to a client with number @n. Return the socket. */
static int client_open(int n, int *memory)
{
	int sock = client_connect();

	expect_number(sock, 0);
	expect_number(sock, n);
	*memory = expect_fd(sock, -1);
	return sock;
}

static bool bell_rings(int bell)
{
	struct pollfd p = { .fd = bell, .events = POLLIN };
	uint64_t count;

	return poll(&p, 1, 0) == 1 && read(bell, &count, sizeof(count)) == sizeof(count);
}

static void bell_ring(int bell)
{
	uint64_t one = 1;

	CHECK_EQ(write(bell, &one, sizeof(one)), (ssize_t)sizeof(one));
}

TEST(clients_ring_each_other)
{
	struct server s = server_start();
	int memory, sock[3], bell[3][3];
	struct stat a, b;

	sock[0] = client_open(0, &memory);
	bell[0][0] = expect_fd(sock[0], 0);
	CHECK_EQ(fstat(memory, &a), 0);
	CHECK_EQ(stat(file, &b), 0);
	CHECK_EQ(a.st_ino, b.st_ino);
	CHECK_EQ(b.st_size, (off_t)SIZE);
	close(memory);
	for (int i = 1; i < 3; i++) {
		sock[i] = client_open(i, &memory);
		close(memory);
		for (int j = 0; j <= i; j++)
			bell[i][j] = expect_fd(sock[i], j);
		for (int j = 0; j < i; j++)
			bell[j][i] = expect_fd(sock[j], i);
	}
	for (int from = 0; from < 3; from++)
		for (int to = 0; to < 3; to++) {
			bell_ring(bell[from][to]);
			for (int i = 0; i < 3; i++)
				CHECK_EQ(bell_rings(bell[i][i]), i == to);
		}

	/* the others learn that a client has gone, and the next client has its number */
	close(sock[1]);
	expect_number(sock[0], 1);
	expect_number(sock[2], 1);
	sock[1] = client_open(1, &memory);
	expect_fd(sock[1], 0);
	expect_fd(sock[1], 2);
	expect_fd(sock[1], 1);
	expect_fd(sock[0], 1);
	expect_fd(sock[2], 1);
	server_stop(&s);
}

TEST(a_client_that_sends_is_disconnected)
{
	struct server s = server_start();
	int64_t number;
	int memory, fd, good = client_open(0, &memory), bad;

	expect_fd(good, 0);
	bad = client_open(1, &memory);
	expect_fd(bad, 0);
	expect_fd(bad, 1);
	expect_fd(good, 1);
	CHECK_EQ(write(bad, "x", 1), 1);
	CHECK(!message_receive(bad, &number, &fd));
	expect_number(good, 1);
	server_stop(&s);
}

/* A virtual machine that is stopped reads nothing. */
TEST(a_client_that_does_not_read_holds_nobody_up)
{
	struct server s = server_start();
	int memory, fd, good = client_open(0, &memory), next, n;
	int64_t number = 0;

	close(expect_fd(good, 0));
	client_connect();
	close(expect_fd(good, 1));
	for (n = 0; n < ROUNDS_MAX && number != 1; n++) {
		next = client_connect();
		CHECK(message_receive(good, &number, &fd));
		if (fd < 0)
			break;
		close(fd);
		close(next);
		CHECK(message_receive(good, &number, &fd));
		CHECK_EQ(fd, -1);
	}
	test_note("disconnected after %d other clients", n);
	CHECK_EQ(number, 1);
	server_stop(&s);
}

TEST(all_clients_of_a_pool_are_served_and_no_more)
{
	struct server s = server_start();
	int64_t number;
	int sock[64], memory, fd;

	for (int i = 0; i < 64; i++) {
		sock[i] = client_open(i, &memory);
		close(memory);
		for (int j = 0; j <= i; j++)
			close(expect_fd(sock[i], j));
		for (int j = 0; j < i; j++)
			close(expect_fd(sock[j], i));
	}
	CHECK(!message_receive(client_connect(), &number, &fd));
	close(sock[7]);
	for (int j = 0; j < 64; j++)
		if (j != 7)
			expect_number(sock[j], 7);
	sock[7] = client_open(7, &memory);
	server_stop(&s);
}

TEST(only_the_owner_connects)
{
	struct server s = server_start();
	struct stat st;

	CHECK_EQ(stat(path, &st), 0);
	CHECK_EQ(st.st_mode & 0777, 0600);
	server_stop(&s);
}

TEST(the_socket_of_a_server_that_was_killed_is_replaced)
{
	struct server s = server_start();

	CHECK_EQ(kill(s.pid, SIGKILL), 0);
	CHECK_EQ(tool_end(&s), -SIGKILL);
	CHECK_EQ(access(path, F_OK), 0);
	s = tool_start(WORDS("serve", "--socket", path, file));
	CHECK(output_has(&s, "is served on"));

	/* but not the socket of a server that runs */
	CHECK_EQ(tool_run(WORDS("serve", "--socket", path, file), "in use"), 1);
	close(client_connect());
	server_stop(&s);
}

TEST(what_cannot_be_served_is_refused)
{
	char name[200];

	paths_make();
	CHECK_EQ(tool_run(WORDS("serve", file), "--socket"), 2);
	CHECK_EQ(tool_run(WORDS("serve", "--socket", path, file), "No such file"), 1);
	CHECK_EQ(tool_run(WORDS("format", "--size", "4160K", file), "chunks"), 0);
	CHECK_EQ(tool_run(WORDS("serve", "--socket", path, file), "power of two"), 1);
	CHECK_EQ(truncate(file, 0), 0);
	CHECK_EQ(truncate(file, SIZE), 0);
	CHECK_EQ(tool_run(WORDS("serve", "--socket", path, file), "not formatted"), 1);
	CHECK_EQ(tool_run(WORDS("format", file), "chunks"), 0);
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	CHECK_EQ(tool_run(WORDS("serve", "--socket", name, file), "at most 107 bytes"), 1);
	/* a file that is no socket stays */
	CHECK_EQ(tool_run(WORDS("serve", "--socket", file, file), "in use"), 1);
	CHECK_EQ(access(file, F_OK), 0);
	unlink(file);
}
