// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test the control socket of sci-switch, and its client `sci-switch ctl`. */
#include <sys/stat.h>
#include <time.h>

#include "selftests/sim/switch.h"

TEST(commands_answer)
{
	int fd;

	daemon_start(NULL);
	fd = adapter(8);
	control("");
	control("   # nothing");
	control("nodes");
	CHECK(!strcmp(said, "8 up packets waiting 0\nok\n"));
	control("links");
	CHECK(!strcmp(said, "ring:8 to 8 up\nok\n"));
	control("counters");
	SAID("8 forwarded 0 bytes 0 lost 0 duplicated 0 reordered 0 corrupted 0"
	     " garbled 0 damaged 0 delivered 0 no-node 0 overflow 0 malformed 0\n");
	SAID("\nring:8 forwarded 0 bytes 0 lost 0 duplicated 0 reordered 0"
	     " corrupted 0 garbled 0 damaged 0\n");
	control("counters ring");
	CHECK(!strncmp(said, "ring:8 ", 7));
	control("get 8 queue-packets");
	CHECK(!strcmp(said, "queue-packets 4096\nok\n"));
	control("\tset 8  delay 1500us # a comment");
	control("get 8 delay");
	CHECK(!strcmp(said, "delay 1500us\nok\n"));
	control("get ring:8");
	CHECK(!strcmp(said, "loss 0\nduplicate 0\nreorder 0\ndistance 1\n"
			    "hold 10ms\ncorrupt 0\ngarble 0\ndamage 0\ndelay 0\n"
			    "jitter 0\n"
			    "stuck 0\ndown 0\nok\n"));
	control("help");
	SAID("kill NODE [after WHEN]\n");
	close(fd);
	daemon_stop();
}

TEST(commands_that_are_wrong)
{
	static const struct {
		const char *command, *why;
	} bad[] = {
		{ "node", "node: no such command" },
		{ "nodes 4", "usage: nodes" },
		{ "set 4 loss", "usage: set NAME KEY VALUE" },
		{ "set 4 loss 1 2", "set NAME KEY VALUE" },
		{ "set 3 loss 1", "3: no such node, link or ring" },
		{ "set x loss 1", "x: no such node, link or ring" },
		{ "set ring:20 loss 1", "ring:20: no such" },
		{ "set 8 lose 1", "lose: nothing to be set" },
		{ "set 8 loss -1", "loss -1: parts per million" },
		{ "set 8 loss 1.5", "parts per million" },
		{ "set 8 loss 1000001", "parts per million" },
		{ "set 8 delay 5", "a time is a number and" },
		{ "set 8 delay us", "a time is" },
		{ "set 8 queue-packets 99999999", "too large" },
		{ "set links queue-packets 1", "is for nodes" },
		{ "set 8 down 2", "0 or 1" },
		{ "set 8 loss 1 after", "after what?" },
		{ "set 8 loss 1 after 5", "after what?" },
		{ "set 8 loss 1 after 5 frames", "after what?" },
		{ "set 8 loss 1 for x packets", "for what?" },
		{ "set 8 loss 1 for 5 packets after 3 packets", "for what?" },
		{ "set 8 loss 1 after 5 packets for", "for what?" },
		{ "link", "usage: link" },
		{ "link sideways 8", "link down|up NAME" },
		{ "link up 8 9", "link down|up NAME" },
		{ "link down 9", "9: no such" },
		{ "kill 9", "9: a node id is" },
		{ "kill 12", "node 12 is not attached" },
		{ "kill x", "x: a node id is" },
		{ "kill 8 for 5ms", "kill NODE [after WHEN]" },
		{ "seed x", "x: not a number" },
		{ "seed 99999999999999999999", "not a number" },
		{ "counters 12", "12: no such node" },
		{ "counters x", "x: no such node" },
		{ "get 12", "12: no such node" },
		{ "get 8 lose", "lose: nothing" },
		{ "route 8", "usage: route" },
		{ "garbage 12 1", "node 12 is not attached" },
		{ "garbage 8 x", "x: up to" },
		{ "garbage 8 1 8", "node 8 exists" },
		{ "garbage 8 1 7", "7: a node id" },
		{ "script /nowhere/at/all", "No such file" },
	};
	unsigned int i;
	int fd;

	daemon_start(NULL);
	fd = adapter(8);
	for (i = 0; i < ARRAY_LEN(bad); i++)
		control_fails(bad[i].command, bad[i].why);
	control("get 8");		/* failed commands have set nothing */
	SAID("loss 0\n");
	SAID("queue-packets 4096\n");
	fence(fd, 8);
	daemon_stop();
}

/* Settings for all nodes also apply to nodes that attach later. */
TEST(settings_of_those_that_come)
{
	int fd;

	daemon_start(NULL);
	control("set all loss 10");
	control("set links delay 5us");
	control("set 12 loss 20");
	fd = adapter(8);
	control("get 8 loss");
	SAID("loss 10\n");
	control("get ring:8 delay");
	SAID("delay 5us\n");
	control("get 12 loss");
	SAID("loss 20\n");
	control("reset");
	control("get 8 loss");
	SAID("loss 0\n");
	close(adapter(16));
	control("get 16 loss");
	SAID("loss 0\n");
	close(fd);
	daemon_stop();
}

TEST(reset_clears_counters)
{
	int fd;

	daemon_start(NULL);
	fd = adapter(8);
	send_request(fd, 8, 8, 1);
	expect_packet(fd, 1);
	CHECK_EQ(counter("8", "delivered"), 1);
	control("reset");
	CHECK_EQ(counter("8", "delivered"), 0);
	daemon_stop();
}

/* ---- scripts ---- */

static void script_fails(const char *text, const char *why)
{
	char command[256];

	write_file("script", text);
	snprintf(command, sizeof(command), "script %s", in_dir("script"));
	control_fails(command, why);
}

TEST(scripts)
{
	char command[256];
	int fd;

	daemon_start(NULL);
	fd = adapter(8);
	write_file("script", "# what is to happen\n"
			     "set 8 loss 5\n"
			     "\n"
			     "  link down ring:8 after 100 packets # later\n"
			     "nodes");
	snprintf(command, sizeof(command), "script %s", in_dir("script"));
	control(command);
	SAID("8 up packets");
	control("get 8 loss");
	SAID("loss 5\n");
	script_fails("set 8 loss 6\nset 8 loss x\nset 8 loss 7\n",
		     "script:2: loss x: parts");
	control("get 8 loss");		/* line 1 took effect, line 3 did not */
	SAID("loss 6\n");
	script_fails("\n\nfrob\n", "script:3: frob: no such command");
	script_fails("script x\n", "script:1: a script in a script");
	control("nodes");		/* no script is named in errors any more */
	control_fails("frob", "error: frob: no such command");
	close(fd);
	daemon_stop();
}

/* ---- connections ---- */

static void send_text(int fd, const char *text)
{
	CHECK_EQ(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

TEST(commands_come_as_they_like)
{
	const char *slow = "nodes\n";
	int fd;

	daemon_start(NULL);
	fd = unix_socket("control", SOCK_STREAM);
	for (; *slow; slow++)
		CHECK_EQ(send(fd, slow, 1, 0), 1);
	read_answer(fd);
	CHECK(!strcmp(said, "ok\n"));
	/* many commands in one write, then the end of the connection */
	send_text(fd, "set 8 loss 1\nget 8 loss\nfrob\nset 8 loss 2\n"
		      "get 8 loss\nnodes");
	CHECK_EQ(shutdown(fd, SHUT_WR), 0);
	read_all(fd, said, sizeof(said));
	CHECK(!strcmp(said, "ok\nloss 1\nok\nerror: frob: no such command\n"
			    "ok\nloss 2\nok\n"));
	daemon_stop();
}

TEST(a_line_that_is_too_long)
{
	static char line[8192];
	int fd;

	daemon_start(NULL);
	fd = unix_socket("control", SOCK_STREAM);
	memset(line, 'x', sizeof(line) - 1);
	send(fd, line, sizeof(line) - 1, MSG_NOSIGNAL);
	read_answer(fd);
	SAID("error: the line is too long");
	close(fd);
	control("nodes");
	daemon_stop();
}

TEST(bytes_that_are_no_text)
{
	unsigned int i, k;
	int fd;

	daemon_start(NULL);
	for (i = 0; i < 100; i++) {
		unsigned char noise[256];

		for (k = 0; k < sizeof(noise); k++)
			noise[k] = (unsigned char)(k * 167 + i * 59);
		noise[255] = '\n';
		fd = unix_socket("control", SOCK_STREAM);
		CHECK_EQ(send(fd, noise, sizeof(noise), 0), sizeof(noise));
		read_answer(fd);
		close(fd);
	}
	control("nodes");
	daemon_stop();
}

/* A client sends commands and does not read answers. Only that client waits. */
TEST(a_client_that_does_not_read)
{
	int client, fd, size = 0;
	socklen_t len = sizeof(size);
	ssize_t n;

	daemon_start("torus t 20 20 4\n");
	fd = adapter(4);
	client = unix_socket("control", SOCK_STREAM);
	CHECK_EQ(getsockopt(client, SOL_SOCKET, SO_SNDBUF, &size, &len), 0);
	do
		n = send(client, "counters\n", 9, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n == 9);
	CHECK_EQ(errno, EAGAIN);
	control("nodes");
	send_request(fd, 4, 4, 1);
	expect_packet(fd, 1);
	close(client);
	control("nodes");
	daemon_stop();
}

/* ---- garbage ---- */

/* Return the time of the clock of which epochs are made. The clock cannot be set back. */
static uint64_t boot_time(void)
{
	struct timespec ts;

	CHECK_EQ(clock_gettime(CLOCK_BOOTTIME, &ts), 0);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

TEST(garbage)
{
	unsigned int good = 0, mailboxes = 0, i;
	struct frame_packet f;
	uint64_t epoch = 0;
	int fd;

	daemon_start(NULL);
	fd = adapter(8);
	control("garbage 8 100");
	control("garbage 8 20 12");
	for (i = 0; i < 120; i++) {
		size_t n = recv_frame(fd, &f, sizeof(f));

		CHECK(n <= sizeof(f));
		CHECK_EQ(f.head.kind, FRAME_PACKET);
		CHECK_EQ(f.packet.source, i < 100 ? 65532 : 12);
		CHECK_EQ(f.packet.target, 8);
		if (f.packet.size != n - sizeof(f.head))
			continue;
		CHECK(packet_good(&f.packet));
		good++;
		if (f.packet.kind != PACKET_MAILBOX ||
		    f.packet.size != PACKET_HEADER + DATA_SIZE ||
		    f.packet.floor != f.packet.number)
			continue;
		mailboxes++;
		CHECK(f.packet.epoch > epoch);
		epoch = f.packet.epoch;
	}
	CHECK(nothing(fd));
	CHECK(good > 60);
	CHECK(mailboxes > 30);
	CHECK(epoch < boot_time() + 120);
	control("garbage 8 100000");	/* more than fits into the queue */
	CHECK(counter("8", "overflow") > 0);
	close(fd);
	daemon_stop();
}

/* Receive @n packets. Clear epochs and check sums, which differ each time. */
static void read_garbage(int fd, struct frame_packet *f, unsigned int n)
{
	memset(f, 0, n * sizeof(*f));
	for (; n--; f++) {
		CHECK(recv_frame(fd, f, sizeof(*f)) > sizeof(f->head));
		f->packet.epoch = f->packet.crc = 0;
	}
}

TEST(a_reset_restarts_the_garbage)
{
	static struct frame_packet f[2][20];
	int fd;

	daemon_start(NULL);
	fd = adapter(8);
	for (unsigned int i = 0; i < 2; i++) {
		control("garbage 8 20 100");
		control("reset");
		read_garbage(fd, f[i], 20);
	}
	CHECK(!memcmp(f[0], f[1], sizeof(f[0])));
	close(fd);
	daemon_stop();
}

/* A node that is detached for a while attaches again with the same epoch and numbers. */
TEST(garbage_of_a_node_that_may_come_again)
{
	int fd;

	daemon_start("ring r 4 8 12");
	fd = adapter(4);
	close(adapter(8));
	WAIT_UNTIL((control("nodes"), strstr(said, "8 gone")), TEST_WAIT_MS);
	control_fails("garbage 4 1 8", "node 8 exists");
	control_fails("garbage 4 1 12", "node 12 exists");	/* it may attach later */
	control("garbage 4 1 16");
	close(fd);
	daemon_stop();
}

/* ---- the client ---- */

static int ctl(const char *command)
{
	char words[512];

	snprintf(words, sizeof(words), "ctl %s %s", in_dir("control"), command);
	return program(words);
}

TEST(the_client)
{
	struct { const char *command; const char *error; } bad[] = {
		{ "frob", "frob: no such command" },
		{ "kill 12", "node 12 is not attached" },
	};
	unsigned int i;
	int fd;

	daemon_start(NULL);
	fd = adapter(8);
	CHECK_EQ(ctl("nodes"), 0);
	CHECK(!strcmp(said, "8 up packets waiting 0\n"));
	CHECK_EQ(ctl("set 8 loss 5 after 3 packets"), 0);
	CHECK(!strcmp(said, ""));
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK_EQ(ctl(bad[i].command), 1);
		check_errors(bad[i].error);
		CHECK(!strcmp(said, ""));
	}
	CHECK_EQ(ctl("kill 8"), 0);
	expect_end(fd);
	daemon_stop();
}

/* A FIFO without a writer and a folder are refused; the daemon answers the next command. */
TEST(a_script_is_a_regular_file)
{
	char command[256];
	int fd;

	daemon_start(NULL);
	fd = adapter(8);
	CHECK_EQ(mkfifo(in_dir("script"), 0600), 0);
	snprintf(command, sizeof(command), "script %s", in_dir("script"));
	control_fails(command, "script: not a regular file");
	control_fails("script /", "/: not a regular file");
	control("nodes");
	SAID("8 up packets");
	close(fd);
	daemon_stop();
}

/* The client resolves paths in its own folder; the daemon has another one. */
TEST(the_client_names_scripts_whole)
{
	daemon_start(NULL);
	write_file("script", "set 8 loss 5\n");
	CHECK_EQ(chdir(in_dir(".")), 0);
	CHECK_EQ(ctl("script script"), 0);
	control("get 8 loss");
	SAID("loss 5\n");
	CHECK_EQ(ctl("script none"), 1);
	check_errors("none: No such file");
	CHECK_EQ(chdir("/"), 0);
	daemon_stop();
}

TEST(the_client_without_a_daemon)
{
	CHECK_EQ(ctl("nodes"), 2);
	check_errors("control: No such file");
	CHECK_EQ(program("ctl"), 2);
	check_errors("usage: ");
	CHECK_EQ(program("ctl x"), 2);
	remove_dir();
}
