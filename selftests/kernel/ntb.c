// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Test the kernel's own NTB clients on ntb_pair.ko: sci_ntb.ko may rely on all that
 * they need. SCI_MODULES is the folder of sci.ko, SCI_NTB_CLIENTS that of
 * ntb_tool.ko, ntb_pingpong.ko and ntb_perf.ko.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sci_test.h"

#define PAIR_DIR		"/../selftests/kernel/ntb_pair"
#define FUNCTION	"05c1:00:0%u.0"
#define TOOL		"/sys/kernel/debug/ntb_tool/" FUNCTION "/"
#define CABLE		"/sys/module/ntb_pair/parameters/cable"

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
		"ntb_pingpong", "ntb_tool", "ntb_perf", "ntb_pair"
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
