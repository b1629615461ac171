// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test how sci-switch starts, ends, is killed, and starts again. */
#include <sys/resource.h>

#include "selftests/sim/switch.h"

static void mode_is(const char *name, unsigned int mode)
{
	struct stat st;

	CHECK_EQ(lstat(in_dir(name), &st), 0);
	CHECK_EQ(st.st_mode & 07777, mode);
}

TEST(sockets_are_the_owners)
{
	umask(0);
	daemon_start(NULL);
	mode_is("fabric", 0600);
	mode_is("control", 0600);
	mode_is("fabric.lock", 0600);
	daemon_stop();
}

static void ends_by(int sig)
{
	int a, b, c;

	daemon_start(NULL);
	a = adapter(4);
	b = adapter(8);
	c = unix_socket("fabric", SOCK_SEQPACKET);
	control("set links delay 3600s");
	control("set 8 reorder 1000000 after 1 packet");
	control("set 4 loss 1000000 after 3600s");
	send_request(a, 4, 8, 1);
	send_request(b, 8, 4, 1);
	send_request(b, 8, 4, 2);
	fence(a, 4);
	fence(b, 8);
	CHECK_EQ(kill(daemon_pid, sig), 0);
	expect_end(a);
	expect_end(b);
	expect_end(c);
	CHECK_EQ(program_status(daemon_pid), 0);
	close(control_fd);
	unlink(in_dir("errors"));
	CHECK_EQ(count_files(), 0);
	remove_dir();
}

TEST(signals_end_it_well)
{
	ends_by(SIGTERM);
	ends_by(SIGINT);
}

TEST(a_killed_daemon_is_replaced)
{
	unsigned int i;
	int a, b;

	for (i = 0; i < 10; i++) {
		daemon_start(NULL);
		a = adapter(4);
		b = adapter(8);
		send_request(a, 4, 8, i);
		expect_packet(b, i);
		CHECK_EQ(kill(daemon_pid, SIGKILL), 0);
		CHECK_EQ(program_status(daemon_pid), -SIGKILL);
		expect_end(a);
		expect_end(b);
		close(control_fd);
		CHECK(count_files() >= 4);
	}
	daemon_start(NULL);
	daemon_stop();
}

static int start_again(const char *control_name)
{
	char words[256];

	snprintf(words, sizeof(words), "-c %s %s", in_dir(control_name),
		 in_dir("fabric"));
	return program(words);
}

TEST(a_live_daemon_is_not_replaced)
{
	int fd;

	daemon_start(NULL);
	fd = adapter(4);
	CHECK_EQ(start_again("control2"), 1);
	check_errors("fabric: another daemon has it");
	CHECK_EQ(start_again("control"), 1);
	check_errors("control: another daemon has it");
	fence(fd, 4);
	control("nodes");
	SAID("4 up");
	CHECK_EQ(access(in_dir("control2"), F_OK), -1);
	daemon_stop();
}

/* Return how often the daemon has had no descriptor for a connection. */
static unsigned int count_refusals(void)
{
	char errors[4096];
	const char *at = errors;
	unsigned int n = 0;

	read_file("errors", errors, sizeof(errors));
	while ((at = strstr(at, "no more descriptors"))) {
		at++;
		n++;
	}
	return n;
}

/* Both sockets work again after the adapters have taken all descriptors. */
TEST(descriptors_run_out)
{
	enum { FILES = 20 };
	int fd[FILES], client, i;

	daemon_start(NULL);
	control("nodes");
	CHECK_EQ(prlimit(daemon_pid, RLIMIT_NOFILE, &(struct rlimit){ FILES, FILES }, NULL), 0);
	for (i = 0; i < FILES; i++)
		fd[i] = unix_socket("fabric", SOCK_SEQPACKET);
	WAIT_UNTIL(count_refusals() == 1, TEST_WAIT_MS);
	client = unix_socket("control", SOCK_STREAM);
	WAIT_UNTIL(count_refusals() == 2, TEST_WAIT_MS);
	for (i = 0; i < FILES; i++)
		close(fd[i]);
	close(adapter(4));
	CHECK_EQ(send(client, "nodes\n", 6, MSG_NOSIGNAL), 6);
	read_answer(client);
	close(client);
	daemon_stop();
}

/* Of many daemons that start at once in place of a killed one, one succeeds. */
TEST(one_of_many_starts)
{
	enum { N = 8 };
	int out[N], n, i, ready = 0;
	char sock[128], text[16];
	const char *argv[] = { "sci-switch", sock, NULL };
	pid_t pid[N];

	daemon_start(NULL);
	CHECK_EQ(kill(daemon_pid, SIGKILL), 0);
	program_status(daemon_pid);
	close(control_fd);
	snprintf(sock, sizeof(sock), "%s", in_dir("fabric"));
	for (i = 0; i < N; i++)
		pid[i] = program_start(argv, &out[i]);
	for (i = 0; i < N; i++) {
		n = (int)read(out[i], text, sizeof(text));
		ready += n == 6;
		if (n == 6)
			daemon_pid = pid[i];
		else
			CHECK_EQ(program_status(pid[i]), 1);
		close(out[i]);
	}
	CHECK_EQ(ready, 1);
	close(adapter(4));
	CHECK_EQ(kill(daemon_pid, SIGTERM), 0);
	CHECK_EQ(program_status(daemon_pid), 0);
	remove_dir();
}

/* A socket on which a program listens that does not hold the lock. */
TEST(sockets_of_others)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", in_dir("fabric"));
	CHECK_EQ(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	CHECK_EQ(listen(fd, 1), 0);
	CHECK_EQ(start_again("control"), 1);
	check_errors("fabric: another program listens there");
	CHECK_EQ(access(in_dir("fabric"), F_OK), 0);
	CHECK_EQ(access(in_dir("fabric.lock"), F_OK), -1);
	close(fd);
	unlink(in_dir("fabric"));
	write_file("fabric", "mine");
	CHECK_EQ(start_again("control"), 1);
	check_errors("fabric: there is something else");
	CHECK_EQ(access(in_dir("fabric"), F_OK), 0);
	remove_dir();
}

TEST(names_that_are_no_socket)
{
	char words[512];

	CHECK_EQ(program("/nowhere/at/all/fabric"), 1);
	check_errors("/nowhere/at/all/fabric.lock: No such file");
	snprintf(words, sizeof(words), "/tmp/%0200d", 1);
	CHECK_EQ(program(words), 1);
	check_errors("not a name for a socket");
	remove_dir();
}

TEST(options_that_are_wrong)
{
	static const char *const bad[] = {
		"", "-x a", "a b", "-s x a", "-s -1 a", "-t", "-c a",
		"-s 99999999999999999999 a",
	};
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK_EQ(program(bad[i]), i ? 2 : 1);
		CHECK_EQ(said[0], 0);
	}
	check_errors("usage: sci-switch [-t TOPOLOGY-FILE]");
	remove_dir();
}

TEST(it_cannot_say_that_it_is_ready)
{
	const char *argv[] = { "sci-switch", in_dir("fabric"), NULL };
	int fds[2];

	CHECK_EQ(program_status(program_start_on(argv, open("/dev/full",
						O_WRONLY | O_CLOEXEC))), 1);
	check_errors("standard output: No space left");
	CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
	close(fds[0]);
	CHECK_EQ(program_status(program_start_on(argv, fds[1])), 1);
	check_errors("standard output: Broken pipe");
	unlink(in_dir("errors"));
	CHECK_EQ(count_files(), 0);
	remove_dir();
}
