// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <stdlib.h>

#include "sim/switch/action.h"
#include "sim/switch/fabric.h"
#include "sim/switch/loop.h"
#include "sim/switch/node.h"

/* A later change of a setting. @key is KEYS: disconnect the node. */
struct action {
	struct action *next;
	struct point *point;
	struct timer timer;
	uint64_t at;		/* number of the packet; UINT64_MAX: @timer runs the action */
	enum key key;
	uint64_t value;
	struct when lasts;
};

static void action_find_first(struct point *pt)
{
	const struct action *a;

	pt->action_at = UINT64_MAX;
	for (a = pt->actions; a; a = a->next)
		if (a->at < pt->action_at)
			pt->action_at = a->at;
}

static struct action *action_take(struct action **place)
{
	struct action *a = *place;

	*place = a->next;
	timer_cancel(&a->point->fabric->loop, &a->timer);
	action_find_first(a->point);
	return a;
}

/* Set a value, and schedule the action that restores the former value after @lasts. */
static bool action_apply(struct point *pt, enum key k, uint64_t value,
			 const struct when *lasts)
{
	struct span undo = { .after = *lasts };
	uint64_t old;

	if (k == KEYS) {
		node_kill(node_of_point(pt));
		return true;
	}
	old = pt->value[k];
	point_set(pt, k, value);
	return !lasts->unit || action_set(pt, k, old, &undo);
}

static void action_run(struct action **place)
{
	struct action *a = action_take(place);

	if (!action_apply(a->point, a->key, a->value, &a->lasts))
		fabric_warn("%s: out of memory: it stays as it is",
			    a->point->name);
	free(a);
}

static void action_expired(struct timer *t)
{
	const struct action *a = container_of(t, struct action, timer);
	struct action **place = &a->point->actions;

	while (*place != a)
		place = &(*place)->next;
	action_run(place);
}

static bool action_schedule(struct point *pt, enum key k, uint64_t value,
			    const struct span *span)
{
	struct loop *l = &pt->fabric->loop;
	struct action *a = calloc(1, sizeof(*a));

	if (!a)
		return false;
	a->point = pt;
	a->timer.expired = action_expired;
	a->at = UINT64_MAX;
	a->key = k;
	a->value = value;
	a->lasts = span->lasts;
	if (span->after.unit == WHEN_PACKETS)
		a->at = pt->came + span->after.count;
	else if (timer_set(l, &a->timer, loop_now() + span->after.count)) {
		free(a);
		return false;
	}
	a->next = pt->actions;
	pt->actions = a;
	action_find_first(pt);
	return true;
}

bool action_set(struct point *pt, enum key k, uint64_t value,
		const struct span *span)
{
	if (span->after.unit)
		return action_schedule(pt, k, value, span);
	return action_apply(pt, k, value, &span->lasts);
}

bool action_kill(struct point *pt, const struct when *after)
{
	struct span span = { .after = *after };

	return action_set(pt, KEYS, 0, &span);
}

void actions_cancel(struct point *pt, enum key k)
{
	struct action **place = &pt->actions;

	while (*place) {
		if (k == KEYS || (*place)->key == k)
			free(action_take(place));
		else
			place = &(*place)->next;
	}
}

/* Find the oldest action that is due; the list has the newest one first. */
static struct action **action_find_due(struct point *pt)
{
	struct action **place, **due = NULL;

	for (place = &pt->actions; *place; place = &(*place)->next)
		if ((*place)->at <= pt->came &&
		    (!due || (*place)->at <= (*due)->at))
			due = place;
	return due;
}

void actions_run(struct point *pt)
{
	struct action **due;

	while ((due = action_find_due(pt)))
		action_run(due);
}
