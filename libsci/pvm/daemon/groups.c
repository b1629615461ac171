// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Groups of tasks, on the master. An instance number is an index of the group's table. */

#include <stdlib.h>
#include <string.h>

#include "libsci/pvm/daemon/daemon.h"
#include "libsci/pvm/daemon/text.h"
#include "libsci/pvm/groupop.h"

/* A member that waits in a barrier, or for a group to become static. */
struct member_wait {
	struct list link;
	struct frame_head head;
	bool freeze;
};

/*
 * struct group
 * @tids: members by instance; 0: no member
 * @room: number of elements of @tids
 * @size: number of members
 * @frozen: the group is static: no task may join, and members may keep their copy of @tids
 * @broken: a member of the static group has left, so that all barriers fail
 * @need: number of tasks that the barrier waits for; 0: no barrier is under way
 * @freeze_need: number of tasks that pvm_freezegroup() waits for
 */
struct group {
	struct list link;
	char *name;
	int *tids;
	int room;
	int size;
	bool frozen;
	bool broken;
	int need, arrived;
	int freeze_need, freeze_arrived;
	struct list waits;
};

static struct list groups = { &groups, &groups };

static struct group *group_find(const char *name)
{
	for (struct list *l = groups.next; l != &groups; l = l->next) {
		struct group *g = container_of(l, struct group, link);

		if (!strcmp(g->name, name))
			return g;
	}
	return NULL;
}

static struct group *group_new(const char *name)
{
	struct group *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->name = strdup(name);
	if (!g->name) {
		free(g);
		return NULL;
	}
	list_init(&g->waits);
	list_add_tail(&g->link, &groups);
	return g;
}

/* Answer all members that wait for the barrier, or with @freeze, for the group to become static. */
static void waits_end(struct group *g, bool freeze, int status)
{
	struct list *l, *next;

	list_for_each_safe(l, next, &g->waits) {
		struct member_wait *w = container_of(l, struct member_wait, link);

		if (w->freeze != freeze)
			continue;
		list_del(&w->link);
		answer(&w->head, status, NULL);
		free(w);
	}
	if (freeze)
		g->freeze_need = g->freeze_arrived = 0;
	else
		g->need = g->arrived = 0;
}

static void group_free(struct group *g)
{
	waits_end(g, false, PvmNoGroup);
	waits_end(g, true, PvmNoGroup);
	list_del(&g->link);
	free(g->name);
	free(g->tids);
	free(g);
}

static int member_find_instance(const struct group *g, int tid)
{
	for (int i = 0; tid && i < g->room; i++)
		if (g->tids[i] == tid)
			return i;
	return PvmNotInGroup;
}

/* End the barrier if enough members have arrived. A @need of -1 means all members. */
static void barrier_check(struct group *g)
{
	int need = g->need < 0 ? g->size : g->need;

	if (g->arrived && g->arrived >= need)
		waits_end(g, false, 0);
}

/* Make the group static if enough members ask for it. A @freeze_need of -1 means all members. */
static void freeze_check(struct group *g)
{
	int need = g->freeze_need < 0 ? g->size : g->freeze_need;

	if (g->freeze_arrived && g->freeze_arrived >= need) {
		g->frozen = true;
		waits_end(g, true, 0);
	}
}

static int group_join(const char *name, int tid)
{
	struct group *g = group_find(name);
	int i;

	if (!g && !(g = group_new(name)))
		return PvmNoMem;
	if (member_find_instance(g, tid) >= 0)
		return PvmDupGroup;
	if (g->frozen)
		return PvmNotInGroup;
	for (i = 0; i < g->room && g->tids[i]; i++)
		;
	if (i == g->room) {
		int room = g->room ? g->room * 2 : 8;
		int *tids = realloc(g->tids, (size_t)room * sizeof(int));

		if (!tids)
			return PvmNoMem;
		memset(tids + g->room, 0, (size_t)(room - g->room) * sizeof(int));
		g->tids = tids;
		g->room = room;
	}
	g->tids[i] = tid;
	g->size++;
	return i;
}

static void member_remove(struct group *g, int inst)
{
	g->tids[inst] = 0;
	if (!--g->size) {
		group_free(g);
	} else if (g->frozen) {
		g->broken = true;
		waits_end(g, false, PvmNoGroup);
	} else {
		barrier_check(g);
		freeze_check(g);
	}
}

static int group_leave(struct group *g, int tid)
{
	int inst = member_find_instance(g, tid);

	if (inst < 0)
		return inst;
	member_remove(g, inst);
	return 0;
}

static int wait_add(struct group *g, const struct frame_head *head, bool freeze)
{
	struct member_wait *w = malloc(sizeof(*w));

	if (!w)
		return PvmNoMem;
	*w = (struct member_wait){ .head = *head, .freeze = freeze };
	list_add_tail(&w->link, &g->waits);
	return 0;
}

/* Enter the barrier. Return: 0: the request is answered at the end of the barrier; or an error. */
static int group_barrier(struct group *g, const struct frame_head *head, int count)
{
	int ret;

	if (member_find_instance(g, (int)head->src) < 0)
		return PvmNotInGroup;
	if (g->broken)
		return PvmNoGroup;
	if (count < -1 || !count)
		return PvmBadParam;
	if (g->arrived && g->need != count)
		return PvmMismatch;
	ret = wait_add(g, head, false);
	if (ret)
		return ret;
	g->need = count;
	g->arrived++;
	barrier_check(g);
	return 0;
}

/*
 * Make the group static when @count members have called pvm_freezegroup(); -1: all members. Return:
 * 0: the request is answered when the group is static; or an error.
 */
static int group_freeze(struct group *g, const struct frame_head *head, int count)
{
	int ret;

	if (member_find_instance(g, (int)head->src) < 0)
		return PvmNotInGroup;
	if (g->frozen)
		return PvmDupGroup;
	if ((count != -1 && count < g->size) || (g->freeze_arrived && g->freeze_need != count))
		return PvmMismatch;
	ret = wait_add(g, head, true);
	if (ret)
		return ret;
	g->freeze_need = count;
	g->freeze_arrived++;
	freeze_check(g);
	return 0;
}

static void tids_answer(const struct frame_head *head, const struct group *g)
{
	struct frame f = { 0 };

	frame_begin(&f, OP_REPLY, 0);
	frame_ints(&f, g->tids, g->room);
	answer(head, 0, &f);
}

static int inst_tid(const struct group *g, int inst)
{
	return inst >= 0 && inst < g->room && g->tids[inst] ? g->tids[inst] : PvmNoInst;
}

void group_serve(const struct frame_head *head, struct body *b)
{
	int op = body_i32(b), x, ret;
	const char *name = body_str(b);
	struct group *g;

	x = body_i32(b);
	if (b->bad || !*name) {
		answer(head, b->bad ? PvmBadParam : PvmNullGroup, NULL);
		return;
	}
	g = group_find(name);
	if (op != GROUP_JOIN && !g) {
		answer(head, PvmNoGroup, NULL);
		return;
	}
	switch (op) {
	case GROUP_JOIN: ret = group_join(name, (int)head->src); break;
	case GROUP_LEAVE: ret = group_leave(g, (int)head->src); break;
	case GROUP_INST: ret = member_find_instance(g, x); break;
	case GROUP_TID: ret = inst_tid(g, x); break;
	case GROUP_SIZE: ret = g->size; break;
	case GROUP_TIDS: tids_answer(head, g); return;
	case GROUP_BARRIER:
		ret = group_barrier(g, head, x);
		if (!ret)
			return;
		break;
	case GROUP_FREEZE:
		ret = group_freeze(g, head, x);
		if (!ret)
			return;
		break;
	default: ret = PvmBadParam; break;
	}
	answer(head, ret, NULL);
}

void groups_tell(int tid, int ctx, int wid)
{
	struct text x = { 0 };
	uint32_t n = 0;

	for (struct list *l = groups.next; l != &groups; l = l->next)
		n++;
	text_word(&x, n);
	for (struct list *l = groups.next; l != &groups; l = l->next) {
		const struct group *g = container_of(l, struct group, link);

		text_word(&x, (uint32_t)strlen(g->name));
		text_str(&x, g->name, NULL);
		text_word(&x, (uint32_t)g->size);
		text_word(&x, (uint32_t)g->room);
		text_word(&x, g->need ? (uint32_t)g->need : (uint32_t)-1);
		text_word(&x, (uint32_t)g->arrived);
		for (int i = 0; i < g->room; i++)
			text_word(&x, g->tids[i] ? (uint32_t)g->tids[i] : (uint32_t)-1);
	}
	message_send_wid(tid, TID_GROUPS, ctx, GROUP_STATUS, wid, x.data, x.len);
	free(x.data);
}

static void waits_forget(struct group *g, int tid)
{
	struct list *l, *next;

	list_for_each_safe(l, next, &g->waits) {
		struct member_wait *w = container_of(l, struct member_wait, link);

		if (!tid_matches((int)w->head.src, tid))
			continue;
		if (w->freeze)
			g->freeze_arrived--;
		else
			g->arrived--;
		list_del(&w->link);
		free(w);
	}
}

void groups_task_ended(int tid)
{
	struct list *l, *next;

	list_for_each_safe(l, next, &groups) {
		struct group *g = container_of(l, struct group, link);
		int left = g->size;

		waits_forget(g, tid);
		for (int i = 0; left; i++) {
			if (!g->tids[i])
				continue;
			left--;
			if (tid_matches(g->tids[i], tid))
				member_remove(g, i);	/* the removal of the last member frees @g */
		}
	}
}
