// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Endpoints opened with struct sci_ep_attr instead of environment variables. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sci/msg.h>

#include "selftests/harness.h"
#include "selftests/msg/peers.h"

static struct sci_ep *open_at(const char *fabric, uint32_t node, uint32_t id)
{
	const struct sci_ep_attr attr = {
		.size = sizeof(attr), .fabric = fabric, .node = node, .id = id,
	};
	struct sci_ep *ep = NULL;

	CHECK_EQ(sci_ep_open_attr(&ep, &attr), 0);
	CHECK(ep);
	return ep;
}

static void check_addr(struct sci_ep *ep, uint32_t node, uint32_t id)
{
	struct sci_addr addr;

	CHECK_EQ(sci_ep_addr(ep, &addr), 0);
	CHECK_EQ(addr.node, node);
	CHECK_EQ(addr.id, id);
}

/* Connect @from to @to. One thread makes progress on both, so no call may block. */
static struct sci_peer *join(struct sci_ep *from, struct sci_ep *to)
{
	struct sci_peer *peer;
	struct sci_addr addr;
	int ret;

	CHECK_EQ(sci_ep_addr(to, &addr), 0);
	CHECK_EQ(sci_peer_open(from, &addr, -1, &peer), 0);
	WAIT_UNTIL((sci_progress(from), sci_progress(to),
		    (ret = sci_peer_state(peer)) != -EINPROGRESS), TEST_WAIT_MS);
	CHECK_EQ(ret, 0);
	return peer;
}

static void check_message(struct sci_ep *from, struct sci_ep *to)
{
	struct sci_peer *peer = join(from, to);
	char buf[8] = "";
	int ret;

	CHECK_EQ(sci_send(peer, "hello", 6), 0);
	WAIT_UNTIL((sci_progress(from),
		    (ret = sci_try_recvs(to, NULL, &(struct sci_try_recv){
				.buf = buf, .size = sizeof(buf) }, 1)) == 1),
		   TEST_WAIT_MS);
	CHECK(!strcmp(buf, "hello"));
}

/* Return the name of the test's fabric with another cluster. */
static const char *other_cluster(void)
{
	static char name[40];

	test_needs_shm();
	snprintf(name, sizeof(name), "shm:%.30s-b", test_cluster());
	return name;
}

TEST(nodes_of_one_process)
{
	struct sci_ep *a, *b;

	test_needs_shm();
	a = open_at(NULL, 0, 7);
	b = open_at(NULL, 12, 7);
	check_addr(a, 4, 7);
	check_addr(b, 12, 7);
	check_message(a, b);
	check_message(b, a);
	CHECK_EQ(sci_ep_close(a), 0);
	CHECK_EQ(sci_ep_close(b), 0);
}

TEST(clusters_of_one_process)
{
	const char *other = other_cluster();
	struct sci_ep *a = open_at(NULL, 4, 7), *b = open_at(other, 4, 7);
	struct sci_ep *c = open_at(other, 8, 7);
	struct sci_addr addr = { 8, 7 };
	struct sci_peer *peer;

	/* only the other cluster has this endpoint */
	CHECK_EQ(sci_connect(a, &addr, 0, &peer), -ETIMEDOUT);
	check_message(b, c);
	CHECK_EQ(sci_ep_close(b), 0);
	CHECK_EQ(sci_ep_close(a), 0);
	CHECK_EQ(sci_ep_close(c), 0);
}

TEST(the_environment_does_not_matter)
{
	const char *other = other_cluster();
	struct sci_ep *ep;

	setenv("SCI_FABRIC", "nonsense", 1);
	setenv("SCI_NODE", "nonsense", 1);
	ep = open_at(other, 8, 0);
	CHECK_EQ(sci_ep_close(ep), 0);
	CHECK_EQ(sci_ep_open(&ep, 0, 0), -EINVAL);
}

/* ---- threads ---- */

/* Count the threads of this process that have this name; NULL: all threads. */
static unsigned int threads_called(const char *name)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *e;
	unsigned int n = 0;

	CHECK(dir);
	while ((e = readdir(dir))) {
		char path[300], comm[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm",
			 e->d_name);
		f = fopen(path, "re");
		if (!f)
			continue;
		if (fgets(comm, sizeof(comm), f))
			comm[strcspn(comm, "\n")] = '\0';
		n += !name || !strcmp(comm, name);
		fclose(f);
	}
	closedir(dir);
	return n;
}

#define MANY	16

/* Endpoints with the same settings share a fabric, which has one thread. */
TEST(endpoints_share_a_thread)
{
	unsigned int before = threads_called(NULL), with_one;
	struct sci_ep *ep[MANY], *other;

	leak_check_begin();
	ep[0] = open_at(NULL, 0, 0);
	with_one = threads_called(NULL);
	CHECK(with_one > before);
	for (int i = 1; i < MANY; i++)
		ep[i] = open_at(NULL, 0, 0);
	CHECK_EQ(threads_called(NULL), with_one);
	/* another mode: not the fabric of the others */
	setenv("SCI_MODE", "0640", 1);
	other = open_at(NULL, 0, 0);
	CHECK(threads_called(NULL) > with_one);
	check_message(ep[1], ep[2]);
	check_message(ep[3], other);
	/* the fabric outlives the endpoint that opened it */
	CHECK_EQ(sci_ep_close(ep[0]), 0);
	check_message(ep[1], ep[MANY - 1]);
	check_message(other, ep[4]);
	for (int i = 1; i < MANY; i++)
		CHECK_EQ(sci_ep_close(ep[i]), 0);
	CHECK_EQ(sci_ep_close(other), 0);
	/* a thread that has made its last call may still be about to exit */
	WAIT_UNTIL(threads_called(NULL) == before, TEST_WAIT_MS);
	leak_check_end();
}

TEST(names)
{
	struct sci_ep_attr attr = {
		.size = sizeof(attr), .name = "a rather long name",
	};
	struct sci_ep *ep;

	/* the endpoint starts a thread only where packets get lost */
	setenv("SCI_FAULT", "loss=0.1", 1);
	CHECK_EQ(sci_ep_open_attr(&ep, &attr), 0);
	CHECK(!strcmp(sci_ep_name(ep), "a rather long n"));
	WAIT_UNTIL(threads_called("a rather long n") == 1, TEST_WAIT_MS);
	CHECK_EQ(sci_ep_close(ep), 0);
	ep = test_ep_open(TEST_ID, 0);
	CHECK(!strcmp(sci_ep_name(ep), ""));
	CHECK(!sci_ep_name(NULL));
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* ---- refused attributes ---- */

TEST(attributes_of_another_library)
{
	struct {
		struct sci_ep_attr attr;
		uint64_t later;
	} longer = { .attr.size = sizeof(longer), .attr.id = 3 };
	struct sci_ep *ep;

	CHECK_EQ(sci_ep_open_attr(&ep, &longer.attr), 0);
	CHECK_EQ(sci_ep_close(ep), 0);
	longer.later = 1;
	CHECK_EQ(sci_ep_open_attr(&ep, &longer.attr), -E2BIG);
	/* an earlier version of the structure had no id */
	longer.attr.size = offsetof(struct sci_ep_attr, id);
	CHECK_EQ(sci_ep_open_attr(&ep, &longer.attr), 0);
	CHECK_EQ(sci_ep_close(ep), 0);
	longer.attr.size = 0;
	CHECK_EQ(sci_ep_open_attr(&ep, &longer.attr), -EINVAL);
}

TEST(places_that_do_not_exist)
{
	struct sci_ep_attr attr = { .size = sizeof(attr) }, good = attr;
	struct sci_ep *ep;

	CHECK_EQ(sci_ep_open_attr(NULL, &attr), -EINVAL);
	CHECK_EQ(sci_ep_open_attr(&ep, NULL), -EINVAL);
	attr.node = 5;
	CHECK_EQ(sci_ep_open_attr(&ep, &attr), -EINVAL);
	attr.node = 65536;
	CHECK_EQ(sci_ep_open_attr(&ep, &attr), -EINVAL);
	attr = good;
	attr.adapter = 99;
	CHECK_EQ(sci_ep_open_attr(&ep, &attr), -ENODEV);
	attr = good;
	attr.flags = 1u << 31;
	CHECK_EQ(sci_ep_open_attr(&ep, &attr), -EINVAL);
	attr = good;
	attr.id = SCI_EP_ID_MAX + 1;
	CHECK_EQ(sci_ep_open_attr(&ep, &attr), -EINVAL);
	attr = good;
	attr.fabric = "none";
	CHECK_EQ(sci_ep_open_attr(&ep, &attr), -EINVAL);
	attr.fabric = "shm:a b";
	CHECK_EQ(sci_ep_open_attr(&ep, &attr), -EINVAL);
}
