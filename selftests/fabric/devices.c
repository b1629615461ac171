// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * The dev fabric without adapters: its error codes, and its reading of sysfs. With adapters,
 * the other tests run on it.
 */
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <sisci_api.h>

#include "libsci/fabric/dev/dev.h"
#include "selftests/harness.h"

/* ---- files that are no devices ---- */

static sci_error_t initialize(const char *fabric)
{
	setenv("SCI_FABRIC", fabric, 1);
	return ERR_OF(SCIInitialize(0, &err));
}

TEST(a_device_that_is_not_there)
{
	CHECK_EQ(initialize("dev:/dev/nonesuch"), SCI_ERR_NO_SUCH_ADAPTERNO);
	CHECK_EQ(initialize("dev:/dev/null,/dev/nonesuch"),
		 SCI_ERR_NO_SUCH_ADAPTERNO);
}

TEST(a_file_that_is_no_device)
{
	unsigned int fds = count_fds();

	CHECK_EQ(initialize("dev:/dev/null"), SCI_ERR_NO_SUCH_ADAPTERNO);
	CHECK_EQ(initialize("dev:/proc/self/exe"), SCI_ERR_SYSTEM);
	CHECK_EQ(count_fds(), fds);
}

TEST(a_node_that_no_device_has)
{
	setenv("SCI_NODE", "65532", 1);
	CHECK_EQ(initialize("dev"), SCI_ERR_NO_SUCH_ADAPTERNO);
}

TEST(environment_of_the_dev_fabric)
{
	static const char *const bad[][2] = {
		{ "SCI_NODE", "5" }, { "SCI_NODE", "65536" },
		{ "SCI_NODE", "x" }, { "SCI_MODE", "0777" },
		{ "SCI_MODE", "9" }, { "SCI_MEMBARRIER", "2" },
	};

	setenv("SCI_FABRIC", "dev", 1);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		setenv(bad[i][0], bad[i][1], 1);
		CHECK_ERR(SCIInitialize(0, &err), SCI_ERR_ILLEGAL_PARAMETER);
		unsetenv(bad[i][0]);
	}
}

/* ---- sysfs ---- */

static char sysfs[64];

static int remove_entry(const char *path, const struct stat *st, int type,
			struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void remove_sysfs(void)
{
	nftw(sysfs, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void make_sysfs(void)
{
	snprintf(sysfs, sizeof(sysfs), "%s/sysfsXXXXXX", P_tmpdir);
	CHECK(mkdtemp(sysfs) != NULL);
	atexit(remove_sysfs);
	setenv("SCI_SYSFS", sysfs, 1);
}

static void put_folder(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", sysfs, name);
	CHECK(!mkdir(path, 0700) || errno == EEXIST);
}

static void put_file(const char *where, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	put_folder(where);
	snprintf(path, sizeof(path), "%s/%s/%s", sysfs, where, name);
	f = fopen(path, "we");
	CHECK(f != NULL);
	CHECK(fputs(text, f) >= 0);
	CHECK_EQ(fclose(f), 0);
}

static void put_adapter(const char *name, const char *node, const char *users)
{
	put_file(name, "node_id", node);
	put_file(name, "users", users);
}

static void put_segment(const char *where, const char *size, const char *mode,
			const char *exported, const char *broadcast)
{
	put_file(where, "size", size);
	put_file(where, "mode", mode);
	put_file(where, "exported", exported);
	put_file(where, "broadcast", broadcast);
	put_file(where, "owner", "1000\n");
	put_file(where, "importers", "3\n");
	put_file(where, "pid", "77\n");
}

struct found {
	struct sci_node_info nodes[8];
	unsigned int n_nodes;
	struct sci_segment_info segments[8];
	unsigned int n_segments;
	int stop;			/* return value of the functions below */
};

static int found_node(void *arg, const struct sci_node_info *n)
{
	struct found *f = arg;

	CHECK(f->n_nodes < ARRAY_LEN(f->nodes));
	f->nodes[f->n_nodes++] = *n;
	return f->stop;
}

static int found_segment(void *arg, const struct sci_segment_info *s)
{
	struct found *f = arg;

	CHECK(f->n_segments < ARRAY_LEN(f->segments));
	f->segments[f->n_segments++] = *s;
	return f->stop;
}

/* A fabric that can only list nodes and segments. */
static struct sci_fabric *lister(unsigned int node)
{
	static struct dev dev;

	dev.base.ops = &sci_dev_fabric;
	dev.adapters[0].node = node;
	dev.n_adapters = 1;
	return &dev.base;
}

TEST(nodes_are_those_of_sysfs)
{
	struct sci_fabric *f = lister(8);
	struct found found = { 0 };

	make_sysfs();
	put_adapter("sci10", "4\n", "2\n");
	put_adapter("sci2", "12\n", "1\n");
	put_adapter("sci0", "8\n", "1\n");
	put_adapter("sci3", "12\n", "4\n");
	put_adapter("sci4", "16\n", "0\n");
	put_folder("version");
	CHECK_EQ(f->ops->query.nodes(f, found_node, &found), 0);
	CHECK_EQ(found.n_nodes, 3);
	CHECK_EQ(found.nodes[0].node, 4);
	CHECK_EQ(found.nodes[0].processes, 2);
	CHECK(!found.nodes[0].local);
	CHECK_EQ(found.nodes[1].node, 8);
	CHECK(found.nodes[1].local);
	CHECK_EQ(found.nodes[2].node, 12);
	CHECK_EQ(found.nodes[2].processes, 5);
	found = (struct found){ .stop = 17 };
	CHECK_EQ(f->ops->query.nodes(f, found_node, &found), 17);
	CHECK_EQ(found.n_nodes, 1);
}

TEST(segments_are_those_of_sysfs)
{
	struct sci_fabric *f = lister(8);
	struct found found = { 0 };
	const struct sci_segment_info *s = found.segments;

	make_sysfs();
	put_adapter("sci1", "4\n", "1\n");
	put_adapter("sci0", "8\n", "1\n");
	put_segment("sci0/segment4294967295", "8192\n", "0640\n", "1\n",
		    "0\n");
	put_segment("sci0/segment9", "1\n", "0600\n", "0\n", "1\n");
	put_segment("sci1/segment10", "4096\n", "0666\n", "0\n", "0\n");
	put_folder("sci1/segment11");	/* a segment that is being removed */
	put_folder("sci1/segments");
	CHECK_EQ(f->ops->query.segments(f, found_segment, &found), 0);
	CHECK_EQ(found.n_segments, 3);
	CHECK_EQ(s[0].node, 4);
	CHECK_EQ(s[0].id, 10);
	CHECK_EQ(s[0].size, 4096);
	CHECK_EQ(s[0].mode, 0666);
	CHECK(!s[0].available && !s[0].broadcast);
	CHECK_EQ(s[1].id, 9);
	CHECK(!s[1].available && s[1].broadcast);
	CHECK_EQ(s[2].id, UINT32_MAX);
	CHECK_EQ(s[2].size, 8192);
	CHECK_EQ(s[2].mode, 0640);
	CHECK_EQ(s[2].uid, 1000);
	CHECK_EQ(s[2].pid, 77);
	CHECK_EQ(s[2].importers, 3);
	CHECK(s[2].available && !s[2].broadcast);
}

TEST(no_sysfs_no_nodes)
{
	struct sci_fabric *f = lister(4);
	struct found found = { 0 };

	make_sysfs();
	CHECK_EQ(f->ops->query.nodes(f, found_node, &found), 0);
	CHECK_EQ(f->ops->query.segments(f, found_segment, &found), 0);
	setenv("SCI_SYSFS", "/nonesuch", 1);
	CHECK_EQ(f->ops->query.nodes(f, found_node, &found), 0);
	CHECK_EQ(found.n_nodes + found.n_segments, 0);
}

/* ---- connects ---- */

static struct dev room_dev;
static unsigned int connects, connects_full, connects_cancel;

/* The first connects find many messages waiting for the node. Then the node has no segment. */
static int connect_in_vain(void)
{
	connects++;
	if (connects == connects_cancel)
		dev_cancel_connect(&room_dev.base, &room_dev);
	errno = connects <= connects_full ? ENOBUFS : ENOENT;
	return -1;
}

/* Take the place of libc's function. */
int ioctl(int fd, unsigned long cmd, ...)
{
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	if (cmd == SCI_IOC_CONNECT)
		return connect_in_vain();
	return (int)syscall(SYS_ioctl, fd, cmd, arg);
}

static int connect_for(uint32_t timeout, unsigned int full, unsigned int cancel)
{
	struct sci_ioc_connect arg = { .size = sizeof(arg), .flags = SCI_CONNECT_ASYNC };
	int fd;

	connects = 0;
	connects_full = full;
	connects_cancel = cancel;
	return dev_connect(&room_dev, &room_dev, timeout, -1, SCI_IOC_CONNECT, &arg, &arg.out_fd,
			   &fd);
}

TEST(a_connect_waits_for_room)
{
	static const struct sci_service_ops none;
	struct sci_service *svc = &room_dev.svc;

	room_dev.base.ops = &sci_dev_fabric;
	list_init(&room_dev.calls);
	CHECK_EQ(sci_service_opened(svc, sci_service_open(svc, &none)), 0);
	CHECK_EQ(connect_for(TEST_WAIT_MS, 3, 0), -ENOENT);
	CHECK_EQ(connects, 4);
	CHECK_EQ(connect_for(UINT32_MAX, UINT_MAX, 3), -ECANCELED);
	CHECK_EQ(connects, 3);
	CHECK_EQ(connect_for(0, UINT_MAX, 0), -ENOBUFS);
	sci_service_stop(svc);
	sci_service_close(svc);
}
