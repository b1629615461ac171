// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Groups of tasks. The first daemon keeps the members. A call asks the daemon for the members, but
 * for those of a static group only once. Messages go directly from task to task.
 */

#include "libsci/gpvm/group.h"

#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "libsci/pvm/frame.h"

/* The timeout of Debian's tools for a group server. This library does not use it. */
GROUP_API struct timeval *pvmgs_tmout;

/*
 * struct fixed - a static group, whose members do not change
 * @tid: id of this task when it made the group static. After pvm_exit() this process can become
 *	another task, which is no member.
 * @tids, @n: members by instance; 0: no member
 */
struct fixed {
	struct fixed *next;
	char *name;
	int tid;
	int *tids;
	int n;
};

static struct fixed *fixed_groups;

static void fixed_free(struct fixed **at)
{
	struct fixed *g = *at;

	*at = g->next;
	free(g->name);
	free(g->tids);
	free(g);
}

/* Return the place of a static group in the list. Free the groups of earlier tasks before it. */
static struct fixed **fixed_place(const char *name)
{
	struct fixed **at = &fixed_groups;

	while (*at && ((*at)->tid != pvmmytid || strcmp((*at)->name, name)))
		if ((*at)->tid != pvmmytid)
			fixed_free(at);
		else
			at = &(*at)->next;
	return at;
}

/* Send a request to the daemon, and record the end of the call, with the result as field @out. */
static int group_ask(enum trace_kind kind, enum group_op op, const char *name, int x,
		     const char *out)
{
	int ret = group_result(pvmgroupop(op, name, x, NULL));

	pvmgroup_exit(kind, out, ret);
	return ret;
}

GROUP_API int pvm_joingroup(char *group)
{
	pvmgroup_entry(TEV_JOINGROUP, "GN/s", group);
	return group_ask(TEV_JOINGROUP, GROUP_JOIN, group, 0, "CC");
}

static void fixed_forget(const char *name)
{
	struct fixed **at = fixed_place(name);

	if (*at)
		fixed_free(at);
}

GROUP_API int pvm_lvgroup(char *group)
{
	pvmgroup_entry(TEV_LVGROUP, "GN/s", group);
	if (group)
		fixed_forget(group);
	return group_ask(TEV_LVGROUP, GROUP_LEAVE, group, 0, "CC");
}

GROUP_API int pvm_getinst(char *group, int tid)
{
	pvmgroup_entry(TEV_GETINST, "GN/s GT", group, tid);
	return group_ask(TEV_GETINST, GROUP_INST, group, tid, "GI");
}

GROUP_API int pvm_gettid(char *group, int instance)
{
	pvmgroup_entry(TEV_GETTID, "GN/s GI", group, instance);
	return group_ask(TEV_GETTID, GROUP_TID, group, instance, "GT");
}

GROUP_API int pvm_gsize(char *group)
{
	pvmgroup_entry(TEV_GSIZE, "GN/s", group);
	return group_ask(TEV_GSIZE, GROUP_SIZE, group, 0, "GS");
}

GROUP_API int pvm_barrier(char *group, int count)
{
	pvmgroup_entry(TEV_BARRIER, "GN/s GBC", group, count);
	return group_ask(TEV_BARRIER, GROUP_BARRIER, group, count, "CC");
}

/* Return the id of the server of groups, for which the first daemon answers. */
GROUP_API int gs_getgstid(void);

GROUP_API int gs_getgstid(void)
{
	return TID_GROUPS;
}

/* Copy the members of @from to the front of @to, which may be @from. Return: their number. */
static int members_copy(int *to, const int *from, int n)
{
	int m = 0;

	for (int i = 0; i < n; i++)
		if (from[i])
			to[m++] = from[i];
	return m;
}

int group_tids(const char *group, int **tids)
{
	struct fixed *g = group ? *fixed_place(group) : NULL;
	int n;

	if (g) {
		*tids = malloc(((size_t)g->n + 1) * sizeof(int));
		return *tids ? members_copy(*tids, g->tids, g->n) : PvmNoMem;
	}
	*tids = NULL;
	n = pvmgroupop(GROUP_TIDS, group, 0, tids);
	return n < 0 ? n : members_copy(*tids, *tids, n);
}

int group_tid(const char *group, int instance)
{
	struct fixed *g = *fixed_place(group);

	if (g)
		return instance >= 0 && instance < g->n && g->tids[instance] ?
			g->tids[instance] : PvmNoInst;
	return pvmgroupop(GROUP_TID, group, instance, NULL);
}

GROUP_API int pvm_freezegroup(char *group, int size)
{
	struct fixed *g;
	int ret = pvmgroupop(GROUP_FREEZE, group, size, NULL), members = 0;

	if (ret < 0)
		return group_result(ret);
	g = calloc(1, sizeof(*g));
	if (!g || !(g->name = strdup(group))) {
		free(g);
		return group_result(PvmNoMem);
	}
	ret = pvmgroupop(GROUP_TIDS, group, 0, &g->tids);
	if (ret < 0) {
		free(g->name);
		free(g);
		return group_result(ret);
	}
	g->n = ret;
	g->tid = pvmmytid;
	g->next = fixed_groups;
	fixed_groups = g;
	for (int i = 0; i < g->n; i++)
		members += g->tids[i] != 0;
	return members;
}

GROUP_API int pvm_bcast(char *group, int tag)
{
	int *tids = NULL, n, ret;

	pvmgroup_entry(TEV_BCAST, "GN/s MC", group, tag);
	n = group_tids(group, &tids);
	ret = n < 0 ? n : tag < 0 ? PvmBadParam : 0;
	if (!ret && n == 1 && tids[0] == pvm_mytid())
		ret = PvmNoInst;	/* the group has no other member */
	for (int i = 0; i < n; i++)
		if (tids[i] == pvm_mytid())
			tids[i--] = tids[--n];
	if (!ret)
		ret = pvm_mcast(tids, n, tag);
	pvmgroup_exit(TEV_BCAST, "CC MDL/v", ret, ret < 0 ? 0 : n, tids);
	free(tids);
	return group_result(ret);
}
