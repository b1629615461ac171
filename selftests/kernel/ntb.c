// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Test the kernel's own NTB clients on ntb_pair.ko: sci_ntb.ko may rely on all that
 * they need. Then test sci_ntb.ko. SCI_MODULES is the folder of sci.ko and sci_ntb.ko,
 * SCI_NTB_CLIENTS that of ntb_tool.ko, ntb_pingpong.ko and ntb_perf.ko.
 */
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sci_test.h"

#define PAIR_DIR		"/../selftests/kernel/ntb_pair"
#define FUNCTION	"05c1:00:0%u.0"
#define TOOL		"/sys/kernel/debug/ntb_tool/" FUNCTION "/"
#define BRIDGE		"/sys/bus/ntb/devices/" FUNCTION
#define PARAMETER(name)	"/sys/module/ntb_pair/parameters/" name
#define CABLE		PARAMETER("cable")

static int insert(const char *folder, const char *below, const char *module,
		  const char *given)
{
	char path[512];
	int fd, ret;

	snprintf(path, sizeof(path), "%s%s/%s.ko", folder, below, module);
	fd = SYS(open(path, O_RDONLY | O_CLOEXEC));
	if (fd < 0)
		return fd;
	ret = SYS(syscall(SYS_finit_module, fd, given, 0));
	close(fd);
	return ret;
}

static int delete(const char *module)
{
	return SYS(syscall(SYS_delete_module, module, O_NONBLOCK));
}

/* Unload the modules that a failed test has left loaded. */
static void tidy(void)
{
	static const char *const module[] = {
		"ntb_pingpong", "ntb_tool", "ntb_perf", "sci_ntb", "ntb_pair"
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(module); i++)
		delete(module[i]);
}

static void load(const char *pair, const char *client, const char *given)
{
	NEED_ROOT();
	if (!getenv("SCI_MODULES") || !getenv("SCI_NTB_CLIENTS"))
		SKIP("SCI_MODULES or SCI_NTB_CLIENTS does not say where modules are");
	tidy();
	OK(insert(getenv("SCI_MODULES"), PAIR_DIR, "ntb_pair", pair));
	OK(insert(getenv("SCI_NTB_CLIENTS"), "", client, given));
}

static void unload(const char *client)
{
	OK(delete(client));
	OK(delete("ntb_pair"));
}

static int write_file(const char *path, const char *text)
{
	int fd = SYS(open(path, O_WRONLY | O_CLOEXEC)), ret;

	if (fd < 0)
		return fd;
	ret = SYS(write(fd, text, strlen(text)));
	close(fd);
	return ret;
}

/* Read a file, append a 0, and return the number of bytes. */
static int read_file(const char *path, char *text, size_t size)
{
	int fd = SYS(open(path, O_RDONLY | O_CLOEXEC)), ret;

	if (fd < 0)
		return fd;
	ret = SYS(read(fd, text, size - 1));
	text[ret < 0 ? 0 : ret] = 0;
	close(fd);
	return ret;
}

static unsigned long long number(const char *path)
{
	char text[128];

	OK(read_file(path, text, sizeof(text)));
	return strtoull(text, NULL, 0);
}

/* Return the path of a file of ntb_tool for bridge @i. */
static const char *tool(unsigned int i, const char *file)
{
	static char path[4][128];
	static unsigned int next;
	char *p = path[next++ % ARRAY_SIZE(path)];

	snprintf(p, sizeof(path[0]), TOOL "%s", i, file);
	return p;
}

static void links_up(void)
{
	for (unsigned int i = 0; i < 2; i++)
		OK(write_file(tool(i, "link"), "Y"));
}

TEST(pingpong_plays)
{
	char path[2][128];

	load("", "ntb_pingpong", "delay_ms=1");
	for (unsigned int i = 0; i < 2; i++) {
		snprintf(path[i], sizeof(path[i]),
			 "/sys/kernel/debug/ntb_pingpong/" FUNCTION "/count", i);
		WAIT_UNTIL(number(path[i]) > 100);
	}
	unload("ntb_pingpong");
}

TEST(pingpong_stops_without_cable_and_goes_on)
{
	char path[128];
	unsigned long long count;

	load("", "ntb_pingpong", "delay_ms=1");
	snprintf(path, sizeof(path), "/sys/kernel/debug/ntb_pingpong/" FUNCTION "/count", 0u);
	for (unsigned int i = 0; i < 10; i++) {
		OK(write_file(CABLE, "N"));
		OK(write_file(CABLE, "Y"));
		count = number(path);
		WAIT_UNTIL(number(path) > count + 3);
	}
	unload("ntb_pingpong");
}

TEST(tool_sees_two_ports)
{
	load("", "ntb_tool", "");
	for (unsigned int i = 0; i < 2; i++) {
		EQ(number(tool(i, "port")), i);
		EQ(number(tool(i, "peer0/port")), 1 - i);
		EQ(number(tool(i, "db_valid_mask")), 0xffff);
	}
	unload("ntb_tool");
}

TEST(tool_writes_scratchpads_of_the_peer)
{
	load("", "ntb_tool", "");
	for (unsigned int i = 0; i < 2; i++) {
		OK(write_file(tool(i, "peer0/spad3"), i ? "0x1234" : "0x5678"));
		OK(write_file(tool(i, "spad5"), i ? "7" : "9"));
	}
	EQ(number(tool(0, "spad3")), 0x1234);
	EQ(number(tool(1, "spad3")), 0x5678);
	EQ(number(tool(0, "peer0/spad5")), 7);
	EQ(number(tool(1, "peer0/spad5")), 9);
	unload("ntb_tool");
}

TEST(tool_rings_doorbells)
{
	load("", "ntb_tool", "");
	links_up();
	OK(write_file(tool(0, "peer_db"), "s 0x21"));
	EQ(number(tool(1, "db")), 0x21);
	EQ(number(tool(0, "db")), 0);
	OK(write_file(tool(1, "db"), "c 0x1"));
	EQ(number(tool(1, "db")), 0x20);
	OK(write_file(tool(1, "db_mask"), "s 0x8000"));
	EQ(number(tool(1, "db_mask")), 0x8000);
	FAILS(write_file(tool(0, "peer_db"), "s 0x10000"), EINVAL);
	unload("ntb_tool");
}

/* Writing db_event blocks until the doorbells are exactly these. */
static void db_waiter(struct peer *self, void *arg)
{
	(void)arg;
	peer_expect(self, "wait");
	OK(write_file(tool(1, "db_event"), "0x4"));
	peer_send(self, "rung");
}

TEST(a_doorbell_wakes_who_waits)
{
	struct peer *p = peer_spawn(db_waiter, NULL);

	load("", "ntb_tool", "");
	links_up();
	peer_send(p, "wait");
	OK(write_file(tool(0, "peer_db"), "s 0x4"));
	peer_expect(p, "rung");
	peer_join(p);
	unload("ntb_tool");
}

TEST(tool_passes_messages)
{
	load("", "ntb_tool", "");
	links_up();
	OK(write_file(tool(0, "peer0/msg1"), "0xabc"));
	EQ(number(tool(1, "msg1")), 0xabc);
	EQ(number(tool(1, "msg_sts")), 1 << 1);
	/* the register is full: the message is refused, as the sender's status shows */
	write_file(tool(0, "peer0/msg1"), "0xdef");
	EQ(number(tool(0, "msg_sts")), 1 << (4 + 1));
	EQ(number(tool(1, "msg1")), 0xabc);
	OK(write_file(tool(1, "msg_sts"), "c 0x2"));
	OK(write_file(tool(0, "msg_sts"), "c 0x20"));
	OK(write_file(tool(0, "peer0/msg1"), "0xdef"));
	EQ(number(tool(1, "msg1")), 0xdef);
	unload("ntb_tool");
}

/* Bridge @from stores through window @w; the peer finds the data in its buffer. */
static void window_passes(unsigned int from, unsigned int w)
{
	char in[32], out[32], text[4096], got[4096];
	int fd;

	snprintf(in, sizeof(in), "peer0/mw%u", w);
	snprintf(out, sizeof(out), "peer0/peer_mw%u", w);
	memset(text, 'a' + from + 2 * w, sizeof(text));
	text[sizeof(text) - 1] = 0;
	OK(write_file(tool(from, out), text));
	fd = OK(SYS(open(tool(1 - from, in), O_RDONLY | O_CLOEXEC)));
	EQ(OK(SYS(read(fd, got, sizeof(got) - 1))), sizeof(got) - 1);
	CHECK(!memcmp(got, text, sizeof(got) - 1));
	close(fd);
}

TEST(windows_lead_to_the_buffers_of_the_peer)
{
	char file[32];

	load("windows=3 size=4", "ntb_tool", "");
	links_up();
	for (unsigned int w = 0; w < 3; w++)
		for (unsigned int i = 0; i < 2; i++) {
			snprintf(file, sizeof(file), "peer0/mw_trans%u", w);
			OK(write_file(tool(i, file), "65536"));
			snprintf(file, sizeof(file), "peer0/peer_mw_trans%u", w);
			OK(write_file(tool(i, file), "0:65536"));
		}
	for (unsigned int w = 0; w < 3; w++)
		for (unsigned int i = 0; i < 2; i++)
			window_passes(i, w);
	/* ntb_tool removes files twice if it is unloaded with windows in place */
	for (unsigned int w = 0; w < 3; w++)
		for (unsigned int i = 0; i < 2; i++) {
			snprintf(file, sizeof(file), "peer0/mw_trans%u", w);
			OK(write_file(tool(i, file), "0"));
			snprintf(file, sizeof(file), "peer0/peer_mw_trans%u", w);
			OK(write_file(tool(i, file), "0:0"));
		}
	unload("ntb_tool");
}

/* Run ntb_perf. @pair selects messages, or scratchpads and doorbells. */
static void perf_runs(const char *pair)
{
	char path[128], text[512];

	load(pair, "ntb_perf", "max_mw_size=1048576 total_order=24 chunk_order=16");
	for (unsigned int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/ntb_perf/" FUNCTION "/run", i);
		OK(write_file(path, "0"));
		OK(read_file(path, text, sizeof(text)));
		if (!strstr(text, "copied 16777216 bytes"))
			FAIL("%s", text);
	}
	unload("ntb_perf");
}

TEST(perf_copies_by_messages)
{
	perf_runs("spads=0 other=1");
}

TEST(perf_copies_by_scratchpads)
{
	perf_runs("msgs=0 other=1");
}

TEST(pair_is_removed_under_its_client)
{
	load("", "ntb_pingpong", "delay_ms=1");
	OK(delete("ntb_pair"));
	OK(insert(getenv("SCI_MODULES"), PAIR_DIR, "ntb_pair", ""));
	unload("ntb_pingpong");
}

/* ---- sci_ntb.ko ---- */

#define LENGTH	(4 * PAGE)

static void load_sci(const char *pair)
{
	char path[512];

	NEED_ROOT();
	snprintf(path, sizeof(path), "%s/sci_ntb.ko",
		 getenv("SCI_MODULES") ? getenv("SCI_MODULES") : "");
	if (access(path, R_OK))
		SKIP("no sci_ntb.ko in SCI_MODULES");
	tidy();
	OK(insert(getenv("SCI_MODULES"), PAIR_DIR, "ntb_pair", pair));
	OK(insert(getenv("SCI_MODULES"), "", "sci_ntb", ""));
}

/* Wait for the last release of closed files. */
static void unload_sci(void)
{
	WAIT_UNTIL(!delete("sci_ntb"));
	OK(delete("ntb_pair"));
}

static bool bridge_has_driver(unsigned int i)
{
	char path[128];

	snprintf(path, sizeof(path), BRIDGE "/driver", i);
	return !access(path, F_OK);
}

/* Return whether there is an adapter of bridge @i whose link is @state, and set its number. */
static bool bridge_link(unsigned int i, const char *state, unsigned int *sci)
{
	char path[128], text[16] = "";
	glob_t found;

	snprintf(path, sizeof(path), BRIDGE "/sci/sci*/link/state", i);
	if (glob(path, 0, NULL, &found))
		return false;
	if (read_file(found.gl_pathv[0], text, sizeof(text)) < 0)
		text[0] = 0;
	sscanf(strstr(found.gl_pathv[0], "/sci/sci"), "/sci/sci%u", sci);
	globfree(&found);
	return !strncmp(text, state, strlen(state));
}

/* Wait until both links are up, and open the adapters. */
static void bridges_open(int fd[2])
{
	unsigned int sci;
	char path[32];

	for (unsigned int i = 0; i < 2; i++) {
		WAIT_UNTIL(bridge_link(i, "up", &sci));
		snprintf(path, sizeof(path), DEV_DIR "/sci%u", sci);
		WAIT_UNTIL(!access(path, R_OK));
		fd[i] = OK(SYS(open(path, O_RDWR | O_CLOEXEC)));
	}
}

/* Data of one node reaches the other node. */
static void data_passes(const int fd[2])
{
	volatile uint32_t *here, *there;
	struct sci_ioc_query q;
	int local, remote;

	for (unsigned int i = 0; i < 2; i++) {
		OK(adapter_query(fd[i], &q));
		local = OK(segment_exported(fd[i], 1, LENGTH));
		here = MAP(local, 0, LENGTH, RW);
		remote = OK(remote_connect(fd[1 - i], q.out_node, 1));
		there = MAP(remote, 0, LENGTH, RW);
		fill(there, LENGTH, i);
		OK(sci_flush(remote));
		CHECK(filled(here, LENGTH, i));
		OK(sci_unmap(there, LENGTH));
		OK(sci_unmap(here, LENGTH));
		close(remote);
		close(local);
	}
}

static void nodes_meet(const char *pair)
{
	int fd[2];

	load_sci(pair);
	bridges_open(fd);
	data_passes(fd);
	close(fd[0]);
	close(fd[1]);
	unload_sci();
}

TEST(nodes_meet_by_scratchpads)
{
	nodes_meet("");
}

TEST(nodes_meet_by_messages)
{
	nodes_meet("spads=0");
}

TEST(nodes_meet_again_when_the_cable_is_back)
{
	unsigned int sci;
	int fd[2];

	load_sci("");
	for (unsigned int n = 0; n < 10; n++) {
		bridges_open(fd);
		data_passes(fd);
		close(fd[0]);
		close(fd[1]);
		OK(write_file(CABLE, "N"));
		for (unsigned int i = 0; i < 2; i++)
			WAIT_UNTIL(bridge_link(i, "down", &sci));
		OK(write_file(CABLE, "Y"));
	}
	unload_sci();
}

/* The fail parameter of ntb_pair. */
#define FAIL_MEMORY	"1"
#define FAIL_ALIGN	"2"
#define FAIL_OPEN	"4"
#define FAIL_CLOSE	"8"

/* Wait until @count more calls have failed. */
static void wait_failures(unsigned int count)
{
	unsigned long long was = number(PARAMETER("failed"));

	WAIT_UNTIL(number(PARAMETER("failed")) >= was + count);
}

/* Windows that cannot be set up are set up later. */
TEST(a_start_that_fails_is_tried_again)
{
	static const char *const fail[] = { FAIL_MEMORY, FAIL_ALIGN, FAIL_OPEN };
	int fd[2];

	load_sci("fail=" FAIL_MEMORY);
	for (unsigned int i = 0; i < ARRAY_SIZE(fail); i++) {
		OK(write_file(PARAMETER("fail"), fail[i]));
		wait_failures(10);
	}
	OK(write_file(PARAMETER("fail"), "0"));
	bridges_open(fd);
	data_passes(fd);
	close(fd[0]);
	close(fd[1]);
	unload_sci();
}

/* The peer can still store into such memory. */
TEST(memory_of_a_window_that_stays_open_is_not_freed)
{
	int fd[2];

	load_sci("windows=2");
	bridges_open(fd);
	close(fd[0]);
	close(fd[1]);
	EQ(number(PARAMETER("taken")), 4);
	OK(write_file(PARAMETER("fail"), FAIL_CLOSE));
	WAIT_UNTIL(!delete("sci_ntb"));
	EQ(number(PARAMETER("failed")), 4);
	EQ(number(PARAMETER("taken")), 4);
	OK(delete("ntb_pair"));
}

/*
 * Read the number of messages often. Return whether few of the reads find another number: nodes
 * that answer each message with a message send in each moment.
 */
static bool messages_are_few(void)
{
	unsigned long long was = number(PARAMETER("messages"));
	unsigned int changes = 0;

	for (unsigned int i = 0; i < 200; i++) {
		unsigned long long now = number(PARAMETER("messages"));

		changes += now != was;
		was = now;
	}
	return changes < 50;
}

TEST(nodes_that_have_met_send_few_messages)
{
	int fd[2];

	load_sci("spads=0");
	bridges_open(fd);
	WAIT_UNTIL(messages_are_few());
	close(fd[0]);
	close(fd[1]);
	unload_sci();
}

TEST(bridges_whose_windows_only_the_peer_opens_get_no_adapter)
{
	load_sci("trans=0");
	for (unsigned int i = 0; i < 2; i++)
		CHECK(!bridge_has_driver(i));
	unload_sci();
}
