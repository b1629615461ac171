// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: shrinking a team to its survivors
 *
 * The survivors must agree on the list of survivors while more members may die. Values that members
 * publish through the launcher decide: the launcher gives all members the same answer, either the
 * value or the death of a member that has not published it.
 *
 *  1. Each member publishes whether it takes part: a member without memory does not.
 *  2. The first live participant publishes the list of participants. Each participant gets the
 *     lists of all lower ranks, in ascending order, and uses the first list that exists.
 *  3. Each member on the list publishes its hello for the new team, and then whether it has mapped
 *     the memory of the other members. If a member dies before that, all members on the list begin
 *     again. Members that are not on the list do not take part again: they may have exited.
 *
 * A separate thread executes these steps, because it blocks on the launcher. Meanwhile the calling
 * thread makes progress: members that have not called sci_team_shrink() yet may need the progress
 * for their collective calls to fail.
 */

#include "libsci/base/thread.h"
#include "libsci/team/team.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static void value_name(const struct sci_team *t, char kind, char name[SCI_BOOT_NAME_MAX + 1])
{
	snprintf(name, SCI_BOOT_NAME_MAX + 1, "team-%c-%llx-%u", kind,
		 (unsigned long long)t->uid, t->shrinks);
}

static int value_put(struct sci_team *t, char kind, const void *value, size_t len)
{
	char name[SCI_BOOT_NAME_MAX + 1];
	int ret;

	value_name(t, kind, name);
	pthread_mutex_lock(&t->world->boot_lock);
	ret = sci_boot_publish(t->world->boot, name, value, len);
	pthread_mutex_unlock(&t->world->boot_lock);
	return ret;
}

/* Get a value of a member. Return -ECONNRESET if the member has died without publishing it. */
static int value_get(struct sci_team *t, int world_rank, char kind, void *value, size_t len)
{
	char name[SCI_BOOT_NAME_MAX + 1];
	struct team_world *w = t->world;
	size_t got = len;
	int ret;

	value_name(t, kind, name);
	pthread_mutex_lock(&w->boot_lock);
	/* the other threads must see deaths meanwhile */
	sci_boot_idle(w->boot, world_take_deaths, w);
	ret = sci_boot_get(w->boot, (unsigned int)world_rank, name, value, &got);
	sci_boot_idle(w->boot, NULL, NULL);
	pthread_mutex_unlock(&w->boot_lock);
	return ret ? ret : got == len ? 0 : -EPROTO;
}

/* Set *@part to whether member @i takes part. All members get the same answer. */
static int part_get(struct sci_team *t, int i, uint8_t *part)
{
	int ret = value_get(t, t->members[i].world, 'a', part, 1);

	if (ret == -ECONNRESET)
		*part = 0;
	return ret == -ECONNRESET ? 0 : ret;
}

/* Make the list of participants, and publish it. */
static int list_make(struct sci_team *t)
{
	int ret = 0;

	for (int i = 0; !ret && i < t->size; i++)
		if (t->part[i])
			ret = part_get(t, i, &t->part[i]);
	if (ret)
		return ret;
	/* after the exit of the launcher, the list is empty: it lacks even this member */
	return t->part[t->rank] ? value_put(t, 'l', t->part, (size_t)t->size) : -ECONNRESET;
}

static int list_agree(struct sci_team *t)
{
	for (int i = 0; i < t->rank; i++) {
		uint8_t part = 0;
		int ret = t->part[i] ? part_get(t, i, &part) : 0;

		if (!ret && part)
			ret = value_get(t, t->members[i].world, 'l', t->part, (size_t)t->size);
		if ((!ret && part) || (ret && ret != -ECONNRESET))
			return ret;
	}
	return list_make(t);
}

/*
 * Exchange hellos between the @n members in @living, through the launcher. Return the first error
 * in a hello, or the error of the exchange. @all: room for @n hellos
 */
static int living_exchange(struct sci_team *t, char kind, const int *living, int n,
			   const struct team_hello *mine, struct team_hello *all)
{
	int ret = value_put(t, kind, mine, sizeof(*mine));

	for (int i = 0; !ret && i < n; i++)
		ret = value_get(t, living[i], kind, &all[i], sizeof(*mine));
	return ret ? ret : team_hellos_error(all, n);
}

static int living_join(struct sci_team *t, const int *living, int n, struct team_hello *all,
		       struct sci_team **out)
{
	struct team_hello mine;
	struct sci_team *new = NULL;
	int ret;

	memset(&mine, 0, sizeof(mine));
	mine.error = team_new(t->world, living, n, &new);
	if (new)
		mine.error = team_hello(new, &mine);
	ret = living_exchange(t, 'h', living, n, &mine, all);
	if (!ret) {
		assert(new);	/* else the own hello had an error */
		mine.error = team_map(new, all, new);
		ret = living_exchange(t, 'm', living, n, &mine, all);
	}
	if (ret) {
		team_free(new);
		return ret;
	}
	new->all = t->all;
	team_enter(new);
	*out = new;
	return 0;
}

/* A call of sci_team_shrink(): its arguments and its state. */
struct shrink {
	struct sci_team *team, *new;
	int *living;			/* world ranks of the participants */
	struct team_hello *all;		/* of the participants */
	int ret;			/* -EINPROGRESS: the thread runs */
};

static int shrink_attempt(struct shrink *s)
{
	struct sci_team *t = s->team;
	const uint8_t part = 1;
	int n = 0, ret;

	t->shrinks++;
	ret = value_put(t, 'a', &part, 1);
	ret = ret ? -EIO : list_agree(t);
	if (ret)
		return ret == -ECONNRESET ? -EIO : ret;
	for (int i = 0; i < t->size; i++)
		if (t->part[i])
			s->living[n++] = t->members[i].world;
	if (!t->part[t->rank])
		return -EIO;
	return living_join(t, s->living, n, s->all, &s->new);
}

static void *shrink_run(void *arg)
{
	struct shrink *s = arg;
	int ret;

	do
		ret = shrink_attempt(s);
	while (ret == -ECONNRESET);
	sci_store_release(&s->ret, ret == -EIO ? -ECONNRESET : ret);
	return NULL;
}

static int shrink_start(struct shrink *s, pthread_t *thread)
{
	struct sci_team *t = s->team;

	if (!t->part) {
		t->part = malloc((size_t)t->size);
		if (!t->part)
			return -ENOMEM;
		memset(t->part, 1, (size_t)t->size);
	}
	s->living = calloc((size_t)t->size, sizeof(*s->living));
	s->all = calloc((size_t)t->size, sizeof(*s->all));
	return s->living && s->all ? sci_thread_start(thread, shrink_run, s, "sci-team") : -ENOMEM;
}

/* Publish that this process takes no part. The other members shrink the team without it. */
static void part_refuse(struct sci_team *t)
{
	const uint8_t part = 0;

	t->left_out = true;
	t->shrinks++;
	value_put(t, 'a', &part, 1);
}

static void shrink_wait(struct shrink *s, pthread_t thread)
{
	struct team_wait wait;

	team_wait_init(&wait, -1);
	while (sci_load_acquire(&s->ret) == -EINPROGRESS)
		team_wait_more(s->team->world, &wait);
	pthread_join(thread, NULL);
}

int sci_team_shrink(struct sci_team *team, struct sci_team **out)
{
	struct shrink s = { .team = team, .ret = -EINPROGRESS };
	pthread_t thread;
	int ret;

	if (!team || !out || (size_t)team->size > SCI_BOOT_VALUE_MAX)
		return -EINVAL;
	ret = world_usable(team->world);
	if (!ret && team->left_out)
		ret = -ECONNRESET;
	if (ret)
		return ret;
	team_break(team, -ECONNRESET);
	ret = shrink_start(&s, &thread);
	if (ret) {
		part_refuse(team);
	} else {
		shrink_wait(&s, thread);
		ret = s.ret;
	}
	free(s.living);
	free(s.all);
	if (!ret)
		*out = s.new;
	return ret;
}
