// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test broadcast groups: segments that receive the same stores. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sci_test.h"

#define GROUP	9u
#define LENGTH	(2 * PAGE)

struct member {
	int adapter, fd;
	volatile uint32_t *p;
};

static void begin(void)
{
	NEED_ADAPTERS(2);
	NEED_CAP(SCI_CAP_BROADCAST);
}

static int join(int adapter, size_t length, __u32 flags)
{
	return segment_create_as(adapter, GROUP, length, 0600,
				 SCI_SEGMENT_BROADCAST | flags);
}

static struct member member(unsigned int i, __u32 flags)
{
	struct member m = { .adapter = OK(adapter_open(i)) };

	m.fd = OK(join(m.adapter, LENGTH, flags));
	m.p = MAP(m.fd, 0, LENGTH, RW);
	OK(segment_export(m.fd));
	return m;
}

static int connect_group(int adapter)
{
	return remote_connect(adapter, SCI_IOC_NODE_GROUP, GROUP);
}

TEST(all_members_see_a_store)
{
	struct member m[3];
	volatile uint32_t *all;
	unsigned int n;
	int remote;

	begin();
	n = adapters() > 3 ? 3 : 2;
	for (unsigned int i = 0; i < n; i++)
		m[i] = member(i, 0);
	remote = OK(connect_group(m[0].adapter));
	all = MAP(remote, 0, LENGTH, RW);
	all[5] = 0x1111;
	all[LENGTH / 4 - 1] = 0x2222;
	OK(sci_flush(remote));
	for (unsigned int i = 0; i < n; i++) {
		WAIT_UNTIL(m[i].p[5] == 0x1111);
		WAIT_UNTIL(m[i].p[LENGTH / 4 - 1] == 0x2222);
	}
}

TEST(a_group_has_one_size)
{
	struct member m;
	int other;

	begin();
	m = member(0, 0);
	other = OK(adapter_open(1));
	FAILS(join(other, LENGTH + PAGE, 0), EMSGSIZE);
	close(OK(join(other, LENGTH, 0)));
	OK(sci_unmap(m.p, LENGTH));
	close(m.fd);
	WAIT_UNTIL(!sysfs_exists(0, "segment%u", GROUP));
	/* a group without members is forgotten, and its size with it */
	close(OK(join(other, LENGTH + PAGE, 0)));
}

TEST(a_group_without_members)
{
	begin();
	FAILS_EITHER(connect_group(OK(adapter_open(0))), ENOENT, EHOSTUNREACH);
}

TEST(a_member_is_connected_to_only_if_it_wants)
{
	struct member m, n;
	volatile uint32_t *p;
	int remote;

	begin();
	m = member(0, 0);
	n = member(1, SCI_SEGMENT_UNICAST);
	FAILS(remote_connect(n.adapter, adapter_node(0), GROUP), ENOENT);
	remote = OK(remote_connect(m.adapter, adapter_node(1), GROUP));
	p = MAP(remote, 0, LENGTH, RW);
	p[0] = 7;
	OK(sci_flush(remote));
	EQ(n.p[0], 7);
}

TEST(members_come_and_go)
{
	volatile uint32_t *all;
	struct member m, n;
	int remote;

	begin();
	m = member(0, 0);
	remote = OK(connect_group(m.adapter));
	all = MAP(remote, 0, LENGTH, RW);
	for (unsigned int i = 1; i <= 5; i++) {
		n = member(1, 0);
		all[0] = i;
		OK(sci_flush(remote));
		WAIT_UNTIL(m.p[0] == i);
		OK(sci_unmap(n.p, LENGTH));
		close(n.fd);
		close(n.adapter);
	}
}

static void join_and_die(struct peer *self, void *arg)
{
	(void)arg;
	peer_expect(self, "join");
	member(1, 0);
	peer_send(self, "joined");
	peer_expect(self, "nothing");
}

TEST(a_member_that_dies_does_not_stop_the_others)
{
	volatile uint32_t *all;
	struct member m;
	struct peer *p;
	int remote;

	begin();
	p = peer_spawn(join_and_die, NULL);
	m = member(0, 0);
	peer_send(p, "join");
	peer_expect(p, "joined");
	remote = OK(connect_group(m.adapter));
	all = MAP(remote, 0, LENGTH, RW);
	peer_kill(p);
	all[1] = 3;
	OK(sci_flush(remote));
	WAIT_UNTIL(m.p[1] == 3);
}

TEST(a_removed_segment_is_no_member)
{
	struct member m;

	begin();
	m = member(0, 0);
	OK(segment_remove(m.fd));
	/* the memory of the removed segment is not the memory of the new group */
	m.p[0] = 5;
	close(OK(join(m.adapter, LENGTH + PAGE, 0)));
	EQ(m.p[0], 5);
}

/* The owner of the new group has not admitted the importer. */
TEST(a_group_that_begins_anew_is_another)
{
	struct sci_ioc_remote_info info;
	volatile uint32_t *all;
	struct member m, n;
	int remote;

	begin();
	NEED_KNOB(KNOB_LOSS);
	m = member(1, 0);
	n.adapter = OK(adapter_open(0));
	remote = OK(connect_group(n.adapter));
	all = MAP(remote, 0, PAGE, RW);
	/* with all packets lost the importer is not told that the group has ended */
	OK(knob_set(1, KNOB_LOSS, 1000000));
	OK(sci_unmap(m.p, LENGTH));
	close(m.fd);
	WAIT_UNTIL(!sysfs_exists(1, "segment%u", GROUP));
	n = member(0, 0);
	FAILS(sci_map(remote, 0, PAGE, RW), ENOTCONN);
	/* the old import is lost, and does not become one of the new group */
	OK(knob_set(1, KNOB_LOSS, 0));
	EV(remote, SCI_EV_LOST);
	OK(remote_info(remote, &info));
	EQ(info.out_state, SCI_REMOTE_GONE);
	all[0] = 1;
	EQ(n.p[0], 0);
}

/* A map must not reach a member that grants less than the map's access. */
TEST(a_member_that_grants_less_is_none)
{
	volatile uint32_t *all;
	int adapter, first, other, remote;

	begin();
	NEED_ROOT();
	adapter = OK(adapter_open(0));
	first = OK(segment_create_as(adapter, GROUP, LENGTH, 0666,
				     SCI_SEGMENT_BROADCAST));
	OK(segment_export(first));
	other = OK(segment_create_as(OK(adapter_open(1)), GROUP, LENGTH, 0644,
				     SCI_SEGMENT_BROADCAST));
	peer_become(1234, 1234);
	remote = OK(connect_group(adapter));
	all = MAP(remote, 0, PAGE, RW);
	OK(segment_export(other));
	OK(segment_unexport(first, SCI_UNEXPORT_HOW_FORCE));
	EV_SOON(remote, SCI_EV_LOST);
	all[0] = 1;
	all = MAP(other, 0, PAGE, RW);
	EQ(all[0], 0);
	remote = OK(connect_group(adapter));
	FAILS(sci_map(remote, 0, PAGE, RW), EACCES);
}
