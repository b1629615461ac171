// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <stdlib.h>

#include "sim/switch/action.h"
#include "sim/switch/fabric.h"
#include "sim/switch/loop.h"
#include "sim/switch/node.h"

/*
 * A later change of a setting. @key is KEYS: disconnect the node. @undo: the action ends a change
 * with a duration, and @value is the value before the change.
 */
struct action {
	struct action *next;
	struct point *point;
	struct timer timer;
	uint64_t at;		/* number of the packet; UINT64_MAX: @timer runs the action */
	enum key key;
	uint64_t value;
	struct when lasts;
	bool undo;
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
	if (!lasts->unit)
		return true;
	if (!action_set(pt, k, old, &undo))
		return false;
	pt->actions->undo = true;	/* the list has the newest action first */
	return true;
}

/* Return the oldest of the undo actions of @a's key that are newer than @a, or NULL. */
static struct action *action_find_newer_undo(const struct action *a)
{
	struct action *newer, *found = NULL;

	for (newer = a->point->actions; newer != a; newer = newer->next)
		if (newer->undo && newer->key == a->key)
			found = newer;
	return found;
}

/*
 * Run an action. If a newer change with a duration is in force, it goes on, and restores at its end
 * the value that this action would restore.
 */
static void action_run(struct action **place)
{
	struct action *newer = (*place)->undo ? action_find_newer_undo(*place) : NULL;
	struct action *a = action_take(place);

	if (newer)
		newer->value = a->value;
	else if (!action_apply(a->point, a->key, a->value, &a->lasts))
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
