// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/switch/answer.h"
#include "sim/switch/fabric.h"
#include "sim/switch/node.h"
#include "sim/switch/topology.h"

#define NONE	UINT32_MAX

static bool topology_append(void *array, unsigned int *n, void *item)
{
	void **old = *(void ***)array, **new;

	new = realloc(old, (*n + 1) * sizeof(*new));
	if (!new)
		return false;
	new[(*n)++] = item;
	*(void ***)array = new;
	return true;
}

struct station *topology_station(struct fabric *f, struct node *node,
				 const char *name, struct answer *a)
{
	struct topology *t = &f->topology;
	struct station *s = calloc(1, sizeof(*s));

	if (!s || !topology_append(&t->station, &t->stations, s)) {
		free(s);
		answer_fail(a, "out of memory");
		return NULL;
	}
	s->index = t->stations - 1;
	s->node = node;
	snprintf(s->name, sizeof(s->name), "%s", name);
	if (node)
		node->station = s;
	return s;
}

struct ring *topology_ring(struct fabric *f, const char *name, struct answer *a)
{
	struct topology *t = &f->topology;
	struct ring *r = calloc(1, sizeof(*r));

	if (!r || !topology_append(&t->ring, &t->rings, r)) {
		free(r);
		answer_fail(a, "out of memory");
		return NULL;
	}
	snprintf(r->name, sizeof(r->name), "%s", name);
	return r;
}

bool topology_join(struct fabric *f, struct ring *r, struct station *s,
		   unsigned int place, struct answer *a)
{
	struct topology *t = &f->topology;
	struct link *l = calloc(1, sizeof(*l));
	char name[sizeof(l->point.name)];
	unsigned int i;

	if (!l || !topology_append(&t->link, &t->links, l)) {
		free(l);
		return answer_fail(a, "out of memory");
	}
	snprintf(name, sizeof(name), "%s:%s", r->name, s->name);
	point_init(&l->point, f, name, false);
	l->index = t->links - 1;
	l->from = l->to = l->before = s;
	if (!topology_append(&r->link, &r->links, l))
		goto no_ring;
	if (!topology_append(&s->out, &s->outs, l))
		goto no_station;
	for (i = r->links - 1; i > place; i--) {
		r->link[i] = r->link[i - 1];
		r->link[i - 1] = l;
	}
	return true;
no_station:
	r->links--;
no_ring:
	t->links--;
	free(l);
	return answer_fail(a, "out of memory");
}

static void ways_forget(struct station *s)
{
	free(s->next);
	s->next = NULL;
}

void topology_close(struct fabric *f)
{
	struct topology *t = &f->topology;
	unsigned int i, k;

	for (i = 0; i < t->stations; i++)
		ways_forget(t->station[i]);
	for (k = 0; k < t->rings; k++) {
		const struct ring *r = t->ring[k];

		for (i = 0; i < r->links; i++) {
			struct link *next = r->link[(i + 1) % r->links];

			r->link[i]->to = next->from;
			next->before = r->link[i]->from;
		}
	}
}

/* Remove the newest station, which has no links. */
static void station_remove(struct topology *t)
{
	struct station *s = t->station[--t->stations];

	s->node->station = NULL;
	free(s->out);
	free(s);
}

bool topology_join_default(struct fabric *f, struct node *n, struct answer *a)
{
	struct topology *t = &f->topology;
	struct station *s;
	struct ring *r;
	unsigned int i;

	r = t->rings ? t->ring[0] : topology_ring(f, "ring", a);
	if (!r)
		return false;
	s = topology_station(f, n, n->point.name, a);
	if (!s)
		return false;
	for (i = 0; i < r->links && r->link[i]->from->node->id < n->id; i++)
		;
	if (!topology_join(f, r, s, i, a)) {
		station_remove(t);
		return false;
	}
	topology_close(f);
	return true;
}

/* ---- finding ---- */

struct ring *topology_find_ring(struct fabric *f, const char *name)
{
	struct topology *t = &f->topology;
	unsigned int i;

	for (i = 0; i < t->rings; i++)
		if (!strcmp(t->ring[i]->name, name))
			return t->ring[i];
	return NULL;
}

struct link *topology_find_link(struct fabric *f, const char *name)
{
	struct topology *t = &f->topology;
	unsigned int i;

	for (i = 0; i < t->links; i++)
		if (!strcmp(t->link[i]->point.name, name))
			return t->link[i];
	return NULL;
}

struct station *topology_find_switch(struct fabric *f, const char *name)
{
	struct topology *t = &f->topology;
	unsigned int i;

	for (i = 0; i < t->stations; i++)
		if (!t->station[i]->node && !strcmp(t->station[i]->name, name))
			return t->station[i];
	return NULL;
}

/* ---- routes ---- */

/* Compute the distance of each station to @target, breadth first, against the links. */
static void topology_measure(const struct station *target, uint32_t *far,
			     const struct station **queue)
{
	unsigned int head = 0, tail = 0, i;

	far[target->index] = 0;
	queue[tail++] = target;
	while (head < tail) {
		const struct station *s = queue[head++];

		for (i = 0; i < s->outs; i++) {
			const struct station *from = s->out[i]->before;

			if (far[from->index] != NONE)
				continue;
			far[from->index] = far[s->index] + 1;
			queue[tail++] = from;
		}
	}
}

static uint32_t link_find_nearer(const struct station *s, const uint32_t *far)
{
	unsigned int i;

	for (i = 0; far[s->index] != NONE && i < s->outs; i++)
		if (far[s->out[i]->to->index] + 1 == far[s->index])
			return s->out[i]->index;
	return NONE;
}

static void ways_find(const struct topology *t, struct station *target)
{
	uint32_t *far = malloc(t->stations * sizeof(*far));
	uint32_t *next = malloc(t->stations * sizeof(*next));
	const struct station **queue = malloc(t->stations * sizeof(*queue));
	unsigned int i;

	if (far && next && queue) {
		memset(far, 0xff, t->stations * sizeof(*far));
		topology_measure(target, far, queue);
		for (i = 0; i < t->stations; i++)
			next[i] = link_find_nearer(t->station[i], far);
		target->next = next;
		next = NULL;
	}
	free(far);
	free(next);
	free(queue);
}

struct link *topology_next(struct fabric *f, const struct station *at,
			   struct station *target)
{
	struct topology *t = &f->topology;
	uint32_t next;

	if (!target->next)
		ways_find(t, target);
	if (!target->next)
		return NULL;
	next = target->next[at->index];
	return next == NONE ? NULL : t->link[next];
}

void topology_free(struct fabric *f)
{
	struct topology *t = &f->topology;
	unsigned int i;

	for (i = 0; i < t->links; i++)
		free(t->link[i]);
	for (i = 0; i < t->rings; i++) {
		free(t->ring[i]->link);
		free(t->ring[i]);
	}
	for (i = 0; i < t->stations; i++) {
		ways_forget(t->station[i]);
		free(t->station[i]->out);
		free(t->station[i]);
	}
	free(t->station);
	free(t->ring);
	free(t->link);
}
