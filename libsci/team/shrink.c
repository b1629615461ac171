// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: shrinking a team to its survivors
 *
 * The survivors must agree on the list of survivors while more members may die. The launcher
 * decides, without knowing it: a value is published or it is not, and if a member dies
 * without publishing a value, the launcher tells all others the same.
 *
 *  1. Each member publishes that it takes part.
 *  2. The first live member publishes the list of participants. All members ask the members
 *     for a list, in the order of ranks, and use the first one that exists.
 *  3. Each member on the list publishes its hello for the new team, and then whether it has
 *     mapped the memory of the others. If a member dies before that, all begin again.
 */

#include "libsci/base/thread.h"
#include "libsci/team/team.h"

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

/* A thread that waits for the launcher while the caller makes progress. */
struct getter {
	struct team_world *w;
	unsigned int rank;
	char name[SCI_BOOT_NAME_MAX + 1];
	void *value;
	size_t len;
	int ret;			/* -EAGAIN: no answer yet */
};

static void *getter_run(void *arg)
{
	struct getter *g = arg;
	int ret;

	pthread_mutex_lock(&g->w->boot_lock);
	ret = sci_boot_get(g->w->boot, g->rank, g->name, g->value, &g->len);
	pthread_mutex_unlock(&g->w->boot_lock);
	sci_store_release(&g->ret, ret);
	return NULL;
}

/*
 * Get a value of a member. Return -ECONNRESET if the member has died without publishing it.
 * Make progress while waiting: members that are not here yet may need it for their calls to
 * fail.
 */
static int value_get(struct sci_team *t, int world_rank, char kind, void *value, size_t len)
{
	struct getter g = { .w = t->world, .rank = (unsigned int)world_rank, .value = value,
			    .len = len, .ret = -EAGAIN };
	struct team_wait wait;
	pthread_t thread;
	int ret;

	value_name(t, kind, g.name);
	ret = sci_thread_start(&thread, getter_run, &g, "sci-team");
	if (ret)
		return ret;
	team_wait_init(&wait, -1);
	while (sci_load_acquire(&g.ret) == -EAGAIN)
		team_wait_more(t->world, &wait);
	pthread_join(thread, NULL);
	return g.ret ? g.ret : g.len == len ? 0 : -EPROTO;
}

/* Make the list of participants: a byte for each member. */
static int make_list(struct sci_team *t, uint8_t *list)
{
	uint8_t here;
	int ret = 0;

	for (int i = 0; i < t->size; i++) {
		ret = value_get(t, t->members[i].world, 'a', &here, 1);
		if (ret && ret != -ECONNRESET)
			return ret;
		list[i] = !ret;
	}
	/* without the launcher, no member takes part */
	return list[t->rank] ? value_put(t, 'l', list, (size_t)t->size) : -ECONNRESET;
}

static int agree_list(struct sci_team *t, uint8_t *list)
{
	int ret = -ECONNRESET;

	for (int i = 0; ret == -ECONNRESET && i <= t->rank; i++)
		ret = i == t->rank ? make_list(t, list) :
		      value_get(t, t->members[i].world, 'l', list, (size_t)t->size);
	return ret;
}

/*
 * Exchange hellos. Return the first error in a hello, or the error of the exchange. @all:
 * room for @n
 */
static int living_exchange(struct sci_team *t, char kind, const int *living, int n,
			   const struct team_hello *mine, struct team_hello *all)
{
	int ret = value_put(t, kind, mine, sizeof(*mine));

	for (int i = 0; !ret && i < n; i++)
		ret = value_get(t, living[i], kind, &all[i], sizeof(*mine));
	return ret ? ret : team_hellos_error(all, n);
}

static int join_living(struct sci_team *t, const int *living, int n, struct team_hello *all,
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

static int shrink_once(struct sci_team *t, uint8_t *list, int *living,
		       struct team_hello *all, struct sci_team **out)
{
	const uint8_t here = 1;
	int n = 0, ret;

	t->shrinks++;
	ret = value_put(t, 'a', &here, 1);
	ret = ret ? -EIO : agree_list(t, list);
	if (ret)
		return ret == -ECONNRESET ? -EIO : ret;
	for (int i = 0; i < t->size; i++)
		if (list[i])
			living[n++] = t->members[i].world;
	if (!list[t->rank])
		return -EIO;
	return join_living(t, living, n, all, out);
}

int sci_team_shrink(struct sci_team *team, struct sci_team **out)
{
	struct team_hello *all;
	uint8_t *list;
	int *living, ret;

	if (!team || !out || (size_t)team->size > SCI_BOOT_VALUE_MAX)
		return -EINVAL;
	ret = world_usable(team->world);
	if (ret)
		return ret;
	list = calloc((size_t)team->size, 1);
	living = calloc((size_t)team->size, sizeof(*living));
	all = calloc((size_t)team->size, sizeof(*all));
	ret = list && living && all ? -ECONNRESET : -ENOMEM;
	team_break(team, -ECONNRESET);
	while (ret == -ECONNRESET)
		ret = shrink_once(team, list, living, all, out);
	free(list);
	free(living);
	free(all);
	return ret == -EIO ? -ECONNRESET : ret;
}
