// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: teams in virtual time
 *
 * The collective calls are the library's own: libsci/team/coll.c, plan.c, trees.c, leaders.c and
 * op.c. This file makes a team of all nodes without start-up, and replaces the functions of these
 * modules:
 *
 *	libsci/team/world.c	a process of a job: its endpoint and its peers. No process dies
 *	libsci/team/group.c	making teams: each node has one member, which is its own leader
 *	libsci/team/wait.c	a wait polls the endpoint, and runs the simulation
 *	libsci/team/flat.c	calls through shared memory: a near team has one member
 */
#include "sim/vtime/team.h"

#include <stdlib.h>

#include "libsci/msg/endpoint.h"
#include "libsci/msg/conn/conn.h"
#include "libsci/msg/api/api.h"
#include "libsci/team/plan.h"
#include "libsci/team/team.h"

/* The same for all members: rank, node, group and position are one number. */
struct vt_teams {
	int n;
	struct team_rank *ranks;
	struct team_member *members;
	int *numbers;			/* 0 to @n */
};

/* The team of one member, with its world and its near team. */
struct vt_team {
	struct sci_team all;		/* first: vt_team_leave() gets its address */
	struct sci_team near;
	struct team_world world;
	unsigned int completions;	/* of the endpoint, when the last wait ended */
};

struct vt_teams *vt_teams_new(struct vt_sim *s, uint32_t id)
{
	unsigned int n = vt_nodes(s);
	struct vt_teams *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->n = (int)n;
	t->ranks = calloc(n, sizeof(*t->ranks));
	t->members = calloc(n, sizeof(*t->members));
	t->numbers = calloc(n + 1, sizeof(*t->numbers));
	if (!t->ranks || !t->members || !t->numbers) {
		vt_teams_free(t);
		return NULL;
	}
	for (unsigned int i = 0; i < n; i++) {
		int number = (int)i;

		t->ranks[i].addr = (struct sci_addr){ .node = vt_id(vt_node(s, i)), .id = id };
		t->ranks[i].group = i;
		t->members[i] = (struct team_member){
			.world = number, .node = number, .group = number,
		};
		t->numbers[i] = number;
	}
	t->numbers[n] = (int)n;
	return t;
}

void vt_teams_free(struct vt_teams *t)
{
	if (!t)
		return;
	free(t->ranks);
	free(t->members);
	free(t->numbers);
	free(t);
}

static void team_fill(struct sci_team *t, struct team_world *w, const struct vt_teams *of)
{
	t->world = w;
	t->members = of->members;
	t->sorted = t->starts = t->leads = of->numbers;
	list_init(&t->link);
	list_init(&t->queue);
}

struct sci_team *vt_team_join(const struct vt_teams *of, struct sci_ep *ep, unsigned int rank)
{
	struct vt_team *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->world = (struct team_world){
		.ep = ep, .rank = (int)rank, .size = of->n, .ranks = of->ranks, .far = true,
	};
	pthread_mutex_init(&t->world.lock, NULL);
	list_init(&t->world.teams);
	team_fill(&t->all, &t->world, of);
	team_fill(&t->near, &t->world, of);
	t->all.rank = t->all.group = (int)rank;
	t->all.size = t->all.nodes = t->all.groups = of->n;
	t->all.near = &t->near;
	t->near.size = t->near.nodes = t->near.groups = 1;
	t->near.flat = true;
	t->all.plan = calloc(1, sizeof(*t->all.plan));
	if (!t->all.plan) {
		free(t);
		return NULL;
	}
	return &t->all;
}

void vt_team_leave(struct sci_team *team)
{
	struct vt_team *t;

	if (!team)
		return;
	t = container_of(team, struct vt_team, all);
	plan_free(team->plan);
	pthread_mutex_destroy(&t->world.lock);
	free(t);
}

/* ---- libsci/team/world.c ---- */

_Atomic uint32_t team_fork_gen;

/* Get the connection with @rank, which may have connected first. */
int world_peer(struct team_world *w, int rank, struct sci_peer **peer)
{
	return sci_peer_open(w->ep, &w->ranks[rank].addr, -1, peer);
}

void world_poll(struct team_world *w)
{
	sci_progress(w->ep);
}

/* ---- libsci/team/group.c ---- */

int team_check(struct sci_team *t)
{
	return t->error;
}

void team_break(struct sci_team *t, int error)
{
	t->error = error;
}

int sci_team_translate(const struct sci_team *from, int rank, const struct sci_team *to)
{
	(void)to;
	return rank == from->rank ? 0 : -1;
}

/* ---- libsci/team/wait.c ---- */

void team_wait_init(struct team_wait *t, int timeout)
{
	(void)timeout;
	*t = (struct team_wait){ .deadline_ms = UINT64_MAX };
}

static int requests_completed(void *arg)
{
	const struct vt_team *t = arg;

	return t->world.ep->completions == t->completions ? -EAGAIN : 0;
}

/* Wait until a request completes. If one has completed since the last wait, return at once. */
int team_wait_more(struct team_world *w, struct team_wait *wait)
{
	struct vt_team *t = container_of(w, struct vt_team, world);
	int ret = msg_wait(w->ep, requests_completed, t, -1);

	(void)wait;
	t->completions = w->ep->completions;
	return ret;
}

/* ---- libsci/team/flat.c ---- */

static int alone_step(struct sci_coll *c)
{
	(void)c;
	return 0;
}

/* The result of a team with one member is the member's own data. */
int flat_start(struct sci_coll *c)
{
	size_t len = c->op ? c->n * c->op->size : c->len;

	if (len && c->src != c->dst && c->kind != COLL_EXSCAN)
		memcpy(c->dst, c->src, len);
	c->step = alone_step;
	return 0;
}

int flat_step(struct sci_coll *c)
{
	return alone_step(c);
}
