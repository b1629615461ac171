// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests PVM groups: members, barriers, and collective calls. */

#include "selftests/pvm/machine.h"

#define MEMBERS	5

static char group[] = "team";

/* Run by all members, also by the test. Return: the number of the step that failed, or 0. */
static int member(int size)
{
	int me = pvm_joingroup(group), v[2], root[2 * MEMBERS], mine[2], sum;

	if (me < 0 || pvm_barrier(group, size) || pvm_gsize(group) != size)
		return 1;
	if (pvm_gettid(group, me) != pvm_mytid() || pvm_getinst(group, pvm_mytid()) != me)
		return 2;
	v[0] = me;
	v[1] = 10 * me;
	if (pvm_gather(root, v, 2, PVM_INT, 3, group, 1))
		return 3;
	for (int i = 0; me == 1 && i < 2 * size; i++)
		if (root[i] != (i % 2 ? 10 : 1) * (i / 2))
			return 4;
	if (pvm_scatter(mine, root, 2, PVM_INT, 4, group, 1) || mine[0] != me)
		return 5;
	sum = me + 1;
	if (pvm_reduce(PvmSum, &sum, 1, PVM_INT, 5, group, 0))
		return 6;
	if (me == 0 && sum != size * (size + 1) / 2)
		return 7;
	/* a broadcast reaches all members but the sender */
	if (me == 2) {
		pvm_initsend(PvmDataDefault);
		pvm_pkint(&me, 1, 1);
		if (pvm_bcast(group, 6))
			return 8;
	} else if (pvm_recv(-1, 6) <= 0 || pvm_upkint(&sum, 1, 1) || sum != 2) {
		return 9;
	}
	if (pvm_barrier(group, size) || pvm_lvgroup(group))
		return 10;
	return 0;
}

#define FREEZES	30

/* Make groups static with all members. The parent leaves each group instead. */
static int child_freeze(void)
{
	char name[32];
	int sum;

	for (int i = 0; i < FREEZES; i++) {
		snprintf(name, sizeof(name), "freeze%d", i);
		sum = pvm_joingroup(name);
		message_int(pvm_parent(), 7, sum);
		if (pvm_recv(pvm_parent(), 8) <= 0)
			return 1;
		message_int(pvm_parent(), 9, 0);
		message_int(pvm_parent(), 10, pvm_freezegroup(name, -1));
		pvm_reduce(PvmSum, &sum, 1, PVM_INT, 12, name, 1);
		message_int(pvm_parent(), 13, sum);
	}
	/* the other member counts this one until the machine ends */
	pvm_recv(pvm_parent(), 11);
	return 0;
}

static int child_main(int argc, char **argv)
{
	int failed = 0;

	if (argc > 1 && !strcmp(argv[1], "freeze"))
		return child_freeze();

	if (argc > 1 && !strcmp(argv[1], "sleep")) {
		pvm_joingroup(group);
		pvm_initsend(PvmDataDefault);
		pvm_send(pvm_parent(), 1);
		for (;;)
			pause();
	}
	if (argc > 1 && !strcmp(argv[1], "join")) {
		failed = pvm_joingroup(group);
		pvm_initsend(PvmDataDefault);
		pvm_pkint(&failed, 1, 1);
		pvm_send(pvm_parent(), 4);
		pvm_recv(-1, 5);
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "static")) {
		/* stay a member until a message arrives */
		pvm_joingroup(group);
		pvm_freezegroup(group, 2);
		pvm_recv(-1, 3);
		pvm_lvgroup(group);
		pvm_exit();
		return 0;
	}
	pvm_mytid();
	failed = member(MEMBERS);
	pvm_initsend(PvmDataDefault);
	pvm_pkint(&failed, 1, 1);
	pvm_send(pvm_parent(), 20);
	pvm_exit();
	return 0;
}

TEST(members_work_together)
{
	int tids[MEMBERS - 1], failed;

	machine_begin();
	machine_spawn("member", MEMBERS - 1, tids);
	CHECK_EQ(member(MEMBERS), 0);
	for (int i = 0; i < MEMBERS - 1; i++) {
		CHECK(pvm_recv(tids[i], 20) > 0);
		pvm_upkint(&failed, 1, 1);
		CHECK_EQ(failed, 0);
	}
	machine_end();
}

TEST(members_that_die_leave_their_group)
{
	int tid;

	machine_begin();
	CHECK_EQ(pvm_joingroup(group), 0);
	machine_spawn("sleep", 1, &tid);
	CHECK(pvm_recv(tid, 1) > 0);
	CHECK_EQ(pvm_gsize(group), 2);
	CHECK_EQ(pvm_notify(PvmTaskExit, 2, 1, &tid), 0);
	CHECK_EQ(pvm_kill(tid), 0);
	CHECK(pvm_recv(-1, 2) > 0);
	WAIT_UNTIL(pvm_gsize(group) == 1, TEST_WAIT_MS);
	CHECK_EQ(pvm_barrier(group, -1), 0);
	CHECK_EQ(pvm_getinst(group, tid), PvmNotInGroup);
	machine_end();
}

static int child_join(int tid)
{
	int ret = 0;

	CHECK(pvm_recv(tid, 4) > 0);
	CHECK_EQ(pvm_upkint(&ret, 1, 1), 0);
	return ret;
}

TEST(a_static_group_admits_no_task)
{
	int tid, other;

	machine_begin();
	CHECK_EQ(pvm_joingroup(group), 0);
	machine_spawn("static", 1, &tid);
	CHECK_EQ(pvm_freezegroup(group, 2), 2);
	CHECK_EQ(pvm_freezegroup(group, 2), PvmDupGroup);
	machine_spawn("join", 1, &other);
	CHECK_EQ(child_join(other), PvmNotInGroup);
	/* a barrier ends when a member leaves, and later barriers fail, too */
	pvm_initsend(PvmDataDefault);
	CHECK_EQ(pvm_send(tid, 3), 0);
	CHECK_EQ(pvm_barrier(group, 2), PvmNoGroup);
	CHECK_EQ(pvm_barrier(group, 1), PvmNoGroup);
	/* a new group may have the same name */
	CHECK_EQ(pvm_lvgroup(group), 0);
	CHECK_EQ(pvm_joingroup(group), 0);
	machine_spawn("join", 1, &other);
	CHECK_EQ(child_join(other), 1);
	CHECK_EQ(pvm_freezegroup(group, 1), PvmMismatch);
	pvm_initsend(PvmDataDefault);
	CHECK_EQ(pvm_bcast(group, 5), 0);
	machine_end();
}

/* A process that enrols again is a new task, and no member of the static groups of the old one. */
TEST(static_groups_end_with_their_task)
{
	int tid, other;

	machine_begin();
	CHECK_EQ(pvm_joingroup(group), 0);
	machine_spawn("static", 1, &tid);
	CHECK_EQ(pvm_freezegroup(group, 2), 2);
	CHECK_EQ(pvm_exit(), 0);
	CHECK(pvm_mytid() > 0);
	pvm_initsend(PvmDataDefault);
	CHECK_EQ(pvm_send(tid, 3), 0);
	/* the static group ends with its last member; then there is a new one */
	WAIT_UNTIL(pvm_joingroup(group) == 0, TEST_WAIT_MS);
	machine_spawn("join", 1, &other);
	CHECK_EQ(child_join(other), 1);
	pvm_initsend(PvmDataDefault);
	CHECK_EQ(pvm_bcast(group, 5), 0);
	WAIT_UNTIL(pvm_gsize(group) == 1, TEST_WAIT_MS);
	machine_end();
}

/* The last member leaves a group while the other members wait for it to become static. */
TEST(a_group_becomes_static_when_a_member_leaves)
{
	char name[32];
	int tids[2], instances[2];

	machine_begin();
	for (int i = 0; i < FREEZES; i++) {
		snprintf(name, sizeof(name), "freeze%d", i);
		CHECK_EQ(pvm_joingroup(name), 0);
	}
	machine_spawn("freeze", 2, tids);
	for (int i = 0; i < FREEZES; i++) {
		snprintf(name, sizeof(name), "freeze%d", i);
		for (int k = 0; k < 2; k++)
			instances[k] = reply_int(tids[k], 7);
		for (int k = 0; k < 2; k++)
			message_int(tids[k], 8, 0);
		for (int k = 0; k < 2; k++)
			CHECK(pvm_recv(tids[k], 9) > 0);
		/* meanwhile the requests of the other members arrive, in most rounds */
		for (int k = 0; k < 5; k++)
			CHECK_EQ(pvm_gsize(name), 3);
		CHECK_EQ(pvm_lvgroup(name), 0);
		for (int k = 0; k < 2; k++)
			CHECK_EQ(reply_int(tids[k], 10), 2);
		/* instance 0 is free; instance 1, the root, has the sum of both instances */
		for (int k = 0; k < 2; k++)
			CHECK_EQ(reply_int(tids[k], 13), instances[k] == 1 ? 1 + 2 : 2);
	}
	machine_end();
}

TEST(wrong_arguments_get_errors)
{
	int v = 1;

	machine_begin();
	CHECK_EQ(pvm_joingroup(NULL), PvmNullGroup);
	CHECK_EQ(pvm_joingroup((char *)""), PvmNullGroup);
	CHECK_EQ(pvm_gsize(group), PvmNoGroup);
	CHECK_EQ(pvm_barrier(group, 1), PvmNoGroup);
	CHECK_EQ(pvm_joingroup(group), 0);
	CHECK_EQ(pvm_joingroup(group), PvmDupGroup);
	CHECK_EQ(pvm_gettid(group, 5), PvmNoInst);
	CHECK_EQ(pvm_gettid(group, -5), PvmNoInst);
	CHECK_EQ(pvm_getinst(group, 5), PvmNotInGroup);
	CHECK_EQ(pvm_barrier(group, -7), PvmBadParam);
	CHECK_EQ(pvm_bcast(group, -1), PvmBadParam);
	CHECK_EQ(pvm_reduce(PvmSum, &v, 1, 99, 1, group, 0), PvmBadParam);
	CHECK_EQ(pvm_reduce(NULL, &v, 1, PVM_INT, 1, group, 0), PvmBadParam);
	CHECK_EQ(pvm_gather(&v, NULL, 1, PVM_INT, 1, group, 0), PvmBadParam);
	CHECK_EQ(pvm_scatter(&v, &v, 1, PVM_INT, 1, group, 9), PvmNoInst);
	CHECK_EQ(pvm_lvgroup(group), 0);
	CHECK_EQ(pvm_lvgroup(group), PvmNoGroup);
	machine_end();
}

TEST(operators_know_all_types)
{
	double d[2] = { 1, 5 }, e[2] = { 3, 2 };
	float c[2] = { 1, 2 }, x[2] = { 3, 4 };
	int type = PVM_DOUBLE, n = 2, info = 1;

	PvmMax(&type, d, e, &n, &info);
	CHECK(!info && d[0] == 3 && d[1] == 5);
	PvmMin(&type, d, e, &n, &info);
	CHECK(!info && d[0] == 3 && d[1] == 2);
	type = PVM_CPLX;
	n = 1;
	PvmProduct(&type, c, x, &n, &info);
	CHECK(!info && c[0] == -5 && c[1] == 10);
	PvmMax(&type, x, c, &n, &info);
	CHECK(!info && x[0] == -5);
	type = PVM_STR;
	PvmSum(&type, c, x, &n, &info);
	CHECK_EQ(info, PvmBadParam);
}
