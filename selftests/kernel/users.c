// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test the limits on what one user can hold of an adapter. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sci_test.h"

#define CONNECTIONS	"/sys/module/sci/parameters/user_connections"
#define PERCENT		"/sys/module/sci/parameters/user_percent"

#define USER		1000
#define OTHER_USER	1001
#define FEW		4u
#define EXPORTS_MAX	4096u		/* slots of the largest card */

static int importer, exporter;
static __u32 node;

/* Set a parameter of sci.ko and return the earlier value. */
static long long set(const char *parameter, long long value)
{
	long long was = OK(read_number(parameter));
	char text[32];

	snprintf(text, sizeof(text), "%lld", value);
	OK(write_text(parameter, text));
	return was;
}

static void begin(void)
{
	unsigned int far = adapters() > 1 ? 1 : 0;

	NEED_ROOT();
	importer = OK(adapter_open(0));
	exporter = OK(adapter_open(far));
	node = adapter_node(far);
}

/* Change the effective user; the real and saved user stay root. */
static void act_as(uid_t uid)
{
	OK(SYS(seteuid(0)));
	OK(SYS(seteuid(uid)));
}

static int segment_for_all(__u32 id, size_t length)
{
	int fd = OK(segment_create_as(exporter, id, length, 0666, 0));

	OK(segment_export(fd));
	return fd;
}

/* ---- connections ---- */

TEST(connections_of_a_user)
{
	int held[FEW + 1], other, root;
	long long was;

	begin();
	was = set(CONNECTIONS, FEW);
	segment_for_all(1, PAGE);
	act_as(USER);
	for (unsigned int i = 0; i < FEW; i++)
		held[i] = OK(remote_connect(importer, node, 1));
	for (unsigned int i = 0; i < 3; i++)
		FAILS(remote_connect(importer, node, 1), ENOSPC);
	/* failed connects hold nothing; each user has a limit of its own */
	act_as(OTHER_USER);
	other = OK(remote_connect(importer, node, 1));
	act_as(0);
	root = OK(remote_connect(importer, node, 1));
	close(held[0]);
	act_as(USER);
	held[0] = OK(remote_connect(importer, node, 1));
	FAILS(remote_connect(importer, node, 1), ENOSPC);
	for (unsigned int i = 0; i < FEW; i++)
		close(held[i]);
	for (unsigned int i = 0; i < FEW; i++)
		held[i] = OK(remote_connect(importer, node, 1));
	act_as(0);
	for (unsigned int i = 0; i < FEW; i++)
		close(held[i]);
	close(other);
	close(root);
	set(CONNECTIONS, was);
}

TEST(interrupts_are_connections_too)
{
	__u32 number = 0;
	int intr, held[FEW];
	long long was;

	begin();
	was = set(CONNECTIONS, FEW);
	intr = OK(intr_create_as(exporter, 0, &number, 0666));
	segment_for_all(1, PAGE);
	act_as(USER);
	for (unsigned int i = 0; i < FEW; i++)
		held[i] = OK(i % 2 ? remote_connect(importer, node, 1) :
				     intr_connect(importer, node, number, 0));
	FAILS(remote_connect(importer, node, 1), ENOSPC);
	FAILS(intr_connect(importer, node, number, 0), ENOSPC);
	close(held[0]);
	held[0] = OK(intr_connect(importer, node, number, 0));
	act_as(0);
	for (unsigned int i = 0; i < FEW; i++)
		close(held[i]);
	close(intr);
	set(CONNECTIONS, was);
}

TEST(what_is_lost_counts_until_it_is_closed)
{
	int local, held[FEW];
	long long was;

	begin();
	was = set(CONNECTIONS, FEW);
	local = segment_for_all(1, PAGE);
	act_as(USER);
	for (unsigned int i = 0; i < FEW; i++)
		held[i] = OK(remote_connect(importer, node, 1));
	act_as(0);
	OK(segment_unexport(local, SCI_UNEXPORT_HOW_FORCE));
	for (unsigned int i = 0; i < FEW; i++)
		EV(held[i], SCI_EV_LOST);
	OK(segment_export(local));
	act_as(USER);
	FAILS(remote_connect(importer, node, 1), ENOSPC);
	close(held[0]);
	held[0] = OK(remote_connect(importer, node, 1));
	act_as(0);
	set(CONNECTIONS, was);
}

/* ---- messages ---- */

/* Connect to a node that takes no connects until the call fails. Return the number of connects. */
static unsigned int fill_queue(void)
{
	unsigned int n;
	int fd;

	NEED_KNOB(KNOB_WITHHOLD);
	begin();
	segment_for_all(1, PAGE);
	/* the node answers heartbeats of this connection, and so is not taken for dead */
	OK(remote_connect(importer, node, 1));
	OK(knob_set(0, KNOB_WITHHOLD, MESSAGE_CONNECT));
	for (n = 0; n < 10000; n++) {
		fd = remote_connect_as(importer, node, 1, SCI_CONNECT_ASYNC, SCI_TIMEOUT_INFINITE);
		if (fd < 0)
			break;
		close(fd);
	}
	EQ(fd, -ENOBUFS);
	return n;
}

static void empty_queue(void)
{
	OK(knob_set(0, KNOB_WITHHOLD, 0));
	close(OK(remote_connect(importer, node, 1)));
}

/* Connects of users to a node that takes none of them do not fill memory. */
TEST(few_connects_wait_for_a_node)
{
	CHECK(fill_queue() > 100);
	FAILS(adapter_probe(importer, node), ENOBUFS);
	empty_queue();
}

/* If the calls waited, they would take longer than the test may. */
TEST(an_asynchronous_connect_does_not_wait_for_room)
{
	fill_queue();
	for (unsigned int i = 0; i < 1000; i++)
		EQ(remote_connect_as(importer, node, 1, SCI_CONNECT_ASYNC, SCI_TIMEOUT_INFINITE),
		   -ENOBUFS);
	empty_queue();
}

static _Atomic bool interrupted;

static void on_signal(int sig)
{
	(void)sig;
}

static void *connect_interrupted(void *arg)
{
	FAILS(remote_connect_as(importer, node, 1, 0, SCI_TIMEOUT_INFINITE), EINTR);
	atomic_store(&interrupted, true);
	return arg;
}

static void *probe_interrupted(void *arg)
{
	struct sci_ioc_probe c = {
		.size = sizeof(c), .node = node, .timeout_ms = SCI_TIMEOUT_INFINITE,
	};

	FAILS(SYS(ioctl(importer, SCI_IOC_PROBE, &c)), EINTR);
	atomic_store(&interrupted, true);
	return arg;
}

TEST(a_signal_ends_the_wait_for_room)
{
	void *(*const calls[])(void *) = { connect_interrupted, probe_interrupted };
	struct sigaction action = { .sa_handler = on_signal };
	pthread_t thread;

	fill_queue();
	OK(SYS(sigaction(SIGUSR1, &action, NULL)));
	for (unsigned int i = 0; i < 2; i++) {
		atomic_store(&interrupted, false);
		EQ(pthread_create(&thread, NULL, calls[i], NULL), 0);
		/* a signal before the call has no effect: repeat until one ends the call */
		WAIT_UNTIL((pthread_kill(thread, SIGUSR1), atomic_load(&interrupted)));
		EQ(pthread_join(thread, NULL), 0);
	}
	empty_queue();
}

/* ---- entries of the address translation table ---- */

/* Return the bytes that one percent of the table maps; @entry: bytes of one entry. */
static size_t table_percent(size_t *entry)
{
	struct sci_ioc_query q;

	OK(adapter_query(importer, &q));
	*entry = q.out_att_page_size;
	if (q.out_att_entries < 100)
		SKIP("a table of %u entries", q.out_att_entries);
	return q.out_att_entries / 100 * *entry;
}

TEST(entries_of_a_user)
{
	int remote[2], local[2];
	size_t length, entry;
	long long was, used;
	void *mine, *other;

	begin();
	length = table_percent(&entry);
	was = set(PERCENT, 1);
	used = sysfs_number(0, "att/used");
	for (unsigned int i = 0; i < 2; i++) {
		local[i] = segment_for_all(i, length + entry);
		remote[i] = OK(remote_connect(importer, node, i));
	}
	act_as(USER);
	FAILS(sci_map(remote[0], 0, length + entry, RW), ENOSPC);
	mine = (void *)MAP(remote[0], 0, length, RW);
	WORD(mine, 0) = 1;
	/* a second map of mapped pages takes no entries; a map of other pages does */
	OK(sci_unmap(MAP(remote[0], 0, entry, RW), entry));
	FAILS(sci_map(remote[1], 0, entry, RW), ENOSPC);
	act_as(OTHER_USER);
	other = (void *)MAP(remote[1], 0, length, RW);
	WORD(other, 0) = 2;
	act_as(0);
	OK(sci_unmap(MAP(remote[1], 0, length + entry, RW), length + entry));
	OK(sci_unmap(mine, length));
	act_as(USER);
	mine = (void *)MAP(remote[0], 0, length, RW);
	act_as(0);
	OK(sci_unmap(mine, length));
	OK(sci_unmap(other, length));
	EQ(sysfs_number(0, "att/used"), used);
	for (unsigned int i = 0; i < 2; i++) {
		close(remote[i]);
		close(local[i]);
	}
	set(PERCENT, was);
}

/* ---- slots of exported segments ---- */

/* Export as many segments as this user can. Return their number and descriptors. */
static unsigned int export_all(int fd[EXPORTS_MAX], __u32 first)
{
	unsigned int n;
	int ret;

	for (n = 0; n < EXPORTS_MAX / 16; n++) {
		fd[n] = OK(segment_create(exporter, first + n, PAGE));
		ret = segment_export(fd[n]);
		if (ret) {
			EQ(ret, -ENOSPC);
			close(fd[n]);
			break;
		}
	}
	return n;
}

/* Only cards have a limited number of slots. */
static bool is_card(unsigned int i)
{
	char path[128], driver[256] = "";

	snprintf(path, sizeof(path), SYSFS_DIR "/sci%u/device/driver", adapter_index(i));
	return readlink(path, driver, sizeof(driver) - 1) > 0 && strstr(driver, "/sci_pci");
}

TEST(exports_of_a_user)
{
	static int mine[EXPORTS_MAX], others[EXPORTS_MAX];
	unsigned int n, m;
	long long was;

	begin();
	was = set(PERCENT, 1);
	act_as(USER);
	n = export_all(mine, 1);
	act_as(OTHER_USER);
	m = n < EXPORTS_MAX / 16 ? export_all(others, 100000) : 0;
	act_as(0);
	set(PERCENT, was);
	if (n == EXPORTS_MAX / 16) {
		CHECK(!is_card(adapters() > 1 ? 1 : 0));
		SKIP("this adapter has slots for all");
	}
	ksft_note("%u exports", n);
	CHECK(n >= 1);
	EQ(m, n);
	/* an export that ends leaves room for another one */
	set(PERCENT, 1);
	OK(segment_unexport(mine[0], SCI_UNEXPORT_HOW_FORCE));
	act_as(USER);
	OK(segment_export(mine[0]));
	act_as(0);
	set(PERCENT, was);
	for (unsigned int i = 0; i < n; i++) {
		close(mine[i]);
		close(others[i]);
	}
}
