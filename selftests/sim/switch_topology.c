// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test topology files of sci-switch and the routes of packets. */
#include "selftests/sim/switch.h"

/* Return the number of links between two nodes, from the answer of `route`. */
static unsigned int hops(unsigned int from, unsigned int to)
{
	unsigned int n = 0;
	char command[64];
	const char *at;

	snprintf(command, sizeof(command), "route %u %u", from, to);
	control(command);
	for (at = said; (at = strchr(at, '\n')); at++)
		n++;
	return n - 1;			/* without the line "ok" */
}

static void route_is(const char *pair, const char *links)
{
	char command[64], want[512];

	snprintf(command, sizeof(command), "route %s", pair);
	snprintf(want, sizeof(want), "%sok\n", links);
	control(command);
	if (strcmp(said, want))
		test_note("%s", said);
	CHECK(!strcmp(said, want));
}

TEST(rings_go_in_the_order_of_the_file)
{
	daemon_start("# nodes as they are cabled\n"
		     "ring a 8 4 12   # in this order\n"
		     "\n"
		     "\tring b 16\n");
	route_is("8 4", "a:8\n");
	route_is("4 8", "a:4\na:12\n");
	route_is("12 4", "a:12\na:8\n");
	route_is("4 4", "");
	control_fails("route 4 16", "no way from 4 to 16");
	control_fails("route 4 20", "no such node");
	daemon_stop();
}

TEST(nodes_that_no_way_leads_to)
{
	struct frame_packet f;
	int a, b;

	daemon_start("ring a 4 8\nring b 12 16\n");
	a = adapter(4);
	b = adapter(12);
	send_request(a, 4, 12, 1);
	CHECK_EQ(recv_frame(a, &f, sizeof(f)), 128);
	CHECK_EQ(f.head.kind, FRAME_NO_NODE);
	fence(b, 12);
	CHECK(nothing(b));
	daemon_stop();
}

TEST(switches_join_rings)
{
	int a, b;

	daemon_start("ring a 4 8\n"
		     "ring b 12 16\n"
		     "ring c 20\n"
		     "switch s a b\n"
		     "switch t b c\n");
	route_is("4 12", "a:4\na:8\nb:s\nb:t\n");
	daemon_stop();
	daemon_start("ring a 4 8\n"
		     "ring b 12 16\n"
		     "ring c 20\n"
		     "switch t b c\n"
		     "switch s a b\n");
	/* the order of ring b is 12, 16, t, s */
	route_is("4 12", "a:4\na:8\nb:s\n");
	route_is("12 4", "b:12\nb:16\nb:t\na:s\n");
	route_is("8 20", "a:8\nb:s\nb:12\nb:16\nc:t\n");
	route_is("20 8", "c:20\nb:t\na:s\na:4\n");
	a = adapter(4);
	b = adapter(20);
	send_request(a, 4, 20, 1);
	expect_packet(b, 1);
	send_response(b, 20, 4, 2);
	expect_packet(a, 2);
	CHECK_EQ(counter("b:s", "forwarded"), 1);
	CHECK_EQ(counter("b:t", "forwarded"), 1);
	CHECK_EQ(counter("b:16", "forwarded"), 1);
	CHECK_EQ(counter("a:s", "forwarded"), 1);
	CHECK_EQ(counter("a:8", "forwarded"), 1);
	CHECK_EQ(counter("c:t", "bytes"), 112);
	daemon_stop();
}

/* A route follows the row first, then the column, each in one direction. */
TEST(hops_of_a_torus)
{
	enum { X = 5, Y = 3 };
	unsigned int from, to;

	daemon_start("torus t 5 3 100\n");
	for (from = 0; from < X * Y; from++) {
		for (to = 0; to < X * Y; to++) {
			unsigned int x = (to % X + X - from % X) % X;
			unsigned int y = (to / X + Y - from / X) % Y;

			CHECK_EQ(hops(100 + 4 * from, 100 + 4 * to), x + y);
		}
	}
	/* from (1, 0) to (4, 2): along row 0, then down column 4 */
	route_is("104 156", "t.row0:104\nt.row0:108\nt.row0:112\n"
			    "t.col4:116\nt.col4:136\n");
	/* from (4, 2) to (0, 0), with a wrap-around in both */
	route_is("156 100", "t.row2:156\nt.col0:140\n");
	daemon_stop();
}

TEST(tori_of_one_row)
{
	daemon_start("torus t 4 1 4\ntorus u 1 3 100\n");
	CHECK_EQ(hops(4, 16), 3);
	CHECK_EQ(hops(16, 4), 1);
	CHECK_EQ(hops(108, 104), 2);
	control("links");
	CHECK(!strstr(said, "t.col"));
	CHECK(!strstr(said, "u.row"));
	daemon_stop();
}

TEST(packets_in_a_torus)
{
	unsigned int from, to;
	int fd[16];

	daemon_start("torus t 4 4 4\n");
	for (from = 0; from < 16; from++)
		fd[from] = adapter((uint16_t)(4 * from + 4));
	for (from = 0; from < 16; from++) {
		for (to = 0; to < 16; to++) {
			send_request(fd[from], (uint16_t)(4 * from + 4),
				     (uint16_t)(4 * to + 4), 16 * from + to);
			expect_packet(fd[to], 16 * from + to);
		}
	}
	/*
	 * 256 packets need 1.5 links of each dimension on average, and there are 16
	 * links of each: 24 packets on a link.
	 */
	control("counters t.row2:36");
	SAID("forwarded 24 ");
	control("counters t.col1:24");
	SAID("forwarded 24 ");
	/* a node with one of its two links down is not cut off */
	control("link down t.row0:4");
	fence(fd[0], 4);
	send_request(fd[0], 4, 8, 1);
	send_request(fd[0], 4, 20, 2);
	expect_packet(fd[4], 2);
	CHECK(nothing(fd[1]));
	CHECK_EQ(counter("t.row0:4", "lost"), 1);
	control("link down t.col0:4");
	expect_frame(fd[0], FRAME_LINK, 4, 0);
	daemon_stop();
}

TEST(a_torus_behind_a_switch)
{
	daemon_start("torus t 3 3 100\n"
		     "ring a 4\n"
		     "switch s a t.row1\n");
	route_is("4 112", "a:4\nt.row1:s\n");
	route_is("100 4", "t.row0:100\nt.row0:104\nt.col2:108\nt.row1:120\na:s\n");
	daemon_stop();
}

TEST(a_large_torus)
{
	daemon_start("torus t 127 129 4\n");
	CHECK_EQ(hops(4, 65532), 126 + 128);
	CHECK_EQ(hops(65532, 4), 2);
	daemon_stop();
}

TEST(settings_in_the_file)
{
	daemon_start("link all delay 500ns\n"
		     "link a loss 10\n"
		     "ring a 4 8\n"
		     "ring b 12\n"
		     "link a:8 jitter 1us corrupt 3\n"
		     "node 4 duplicate 77 queue-packets 5\n"
		     "node all hold 2ms\n"
		     "switch s a b\n");
	control("get a:4");
	SAID("loss 10\n");
	SAID("delay 500ns\n");
	SAID("corrupt 0\n");
	control("get a:8");
	SAID("jitter 1us\n");
	SAID("corrupt 3\n");
	control("get b:s delay");
	SAID("delay 500ns\nok\n");
	control("get b:s loss");
	SAID("loss 0\nok\n");
	control("get 4");
	SAID("duplicate 77\n");
	SAID("queue-packets 5\n");
	SAID("hold 2ms\n");
	/* reset returns to the settings of the file */
	control("set links loss 0");
	control("set links delay 1s");
	control("set 4 duplicate 0");
	control("reset");
	control("get a:4");
	SAID("loss 10\n");
	SAID("delay 500ns\n");
	control("get 4 duplicate");
	SAID("duplicate 77\n");
	daemon_stop();
}

/* ---- errors in topology files ---- */

/* Check that the daemon does not start, and that its error message contains @error. */
static void wrong(const char *text, const char *error)
{
	char words[256];

	write_file("topology", text);
	snprintf(words, sizeof(words), "-t %s %s", in_dir("topology"),
		 in_dir("fabric"));
	CHECK_EQ(program(words), 1);
	CHECK_EQ(said[0], 0);
	check_errors(error);
}

TEST(errors_name_file_and_line)
{
	static const struct {
		const char *text, *error;
	} bad[] = {
		{ "", "topology: no ring" },
		{ "# nothing\n\n", "topology: no ring" },
		{ "circle a 4\n", "topology:1: circle: not ring" },
		{ "ring a 4\n\nrung b 8\n", "topology:3: rung" },
		{ "ring\n", "topology:1: ring NAME NODE" },
		{ "ring a\n", "topology:1: ring NAME NODE" },
		{ "ring a 4 5\n", "topology:1: 5: a node id is a multiple" },
		{ "ring a 0\n", "topology:1: 0: a node id" },
		{ "ring a 65536\n", "topology:1: 65536: a node id" },
		{ "ring a 4x\n", "topology:1: 4x: a node id" },
		{ "ring a -4\n", "topology:1: -4: a node id" },
		{ "ring a 99999999999999999999\n", "topology:1: 9999" },
		{ "ring a 4 8 4\n", "topology:1: node 4 is there already" },
		{ "ring a 4\nring b 4\n", "topology:2: node 4 is there" },
		{ "ring a 4\nring a 8\n", "topology:2: a is there already" },
		{ "ring 4 8\n", "topology:1: 4: a name is" },
		{ "ring a.b 8\n", "topology:1: a.b: a name is" },
		{ "ring a:b 8\n", "topology:1: a:b: a name is" },
		{ "ring abcdefghijklmnopqrstuvwxy 8\n", "topology:1: abc" },
		{ "ring all 8\n", "topology:1: all: the name is taken" },
		{ "ring links 8\n", "topology:1: links: the name is taken" },
		{ "switch s a b\n", "topology:1: no ring a" },
		{ "ring a 4\nswitch s a\n", "topology:2: switch NAME RING" },
		{ "ring a 4\nswitch s a a\n", "topology:2: ring a is there" },
		{ "ring a 4\nswitch a a a\n", "topology:2: a is there" },
		{ "ring a 4\nring b 8\nswitch s a b\nring s 12\n",
		  "topology:4: s is there" },
		{ "torus t 4 4\n", "topology:1: torus NAME X Y FIRST" },
		{ "torus t 4 4 4 4\n", "topology:1: torus NAME X Y FIRST" },
		{ "torus t 0 4 4\n", "topology:1: a torus of 0 x 4" },
		{ "torus t 4 0 4\n", "topology:1: a torus of 4 x 0" },
		{ "torus t 1 1 4\n", "topology:1: a torus of 1 x 1" },
		{ "torus t 4 x 4\n", "topology:1: a torus of 4 x x" },
		{ "torus t 4 4 3\n", "topology:1: 3: a node id" },
		{ "torus t 128 128 4\n", "topology:1: node ids beyond 65532" },
		{ "torus t 4 4 65500\n", "topology:1: node ids beyond" },
		{ "ring a 8\ntorus t 2 2 4\n", "topology:2: node 8 is there" },
		{ "ring a 4\nlink a\n", "topology:2: link NAME KEY VALUE" },
		{ "ring a 4\nlink a loss\n", "topology:2: link NAME KEY" },
		{ "ring a 4\nlink a loss 1 delay\n", "topology:2: link NAME" },
		{ "ring a 4\nlink b loss 1\n", "topology:2: b: no such" },
		{ "ring a 4\nlink a:8 loss 1\n", "topology:2: a:8: no such" },
		{ "ring a 4\nlink a lost 1\n", "topology:2: lost: nothing" },
		{ "ring a 4\nlink a loss 1000001\n",
		  "topology:2: loss 1000001: parts per million" },
		{ "ring a 4\nlink a delay 5\n", "topology:2: delay 5: a time" },
		{ "ring a 4\nlink a delay 5m\n", "topology:2: delay 5m: a" },
		{ "ring a 4\nlink a delay 2h\n", "topology:2: delay 2h: a" },
		{ "ring a 4\nlink a delay 3601s\n", "topology:2: delay 36" },
		{ "ring a 4\nlink a distance 0\n", "topology:2: distance 0:" },
		{ "ring a 4\nlink a stuck 2\n", "topology:2: stuck 2: it is" },
		{ "ring a 4\nlink a queue-packets 2\n",
		  "topology:2: queue-packets is for nodes" },
		{ "ring a 4\nnode 8 loss 2\n", "topology:2: no node 8" },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(bad); i++)
		wrong(bad[i].text, bad[i].error);
	unlink(in_dir("topology"));
	unlink(in_dir("errors"));
	CHECK_EQ(count_files(), 0);
	remove_dir();
}

TEST(files_that_cannot_be_read)
{
	char words[256];

	snprintf(words, sizeof(words), "-t %s %s", in_dir("none"),
		 in_dir("fabric"));
	CHECK_EQ(program(words), 1);
	check_errors("none: No such file");
	snprintf(words, sizeof(words), "-t %s %s", in_dir("."),
		 in_dir("fabric"));
	CHECK_EQ(program(words), 1);
	remove_dir();
}
