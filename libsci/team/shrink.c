// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: who lives
 *
 * The living must agree on who they are, while more of them may die.  The launcher
 * decides, without knowing it: a value has been published or it has not, and of a
 * member that has died without publishing it all are told the same.
 *
 *  1. Each member publishes that it takes part.
 *  2. The first member that can publishes who does; all look at the members in their
 *     order, and take the first list there is.
 *  3. Each one on the list publishes what it takes to join the new team.  If one dies
 *     before it has done so, all begin again.
 */

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

/* -ECONNRESET: the member has died and not published it. */
static int value_get(struct sci_team *t, int world_rank, char kind, void *value, size_t len)
{
	char name[SCI_BOOT_NAME_MAX + 1];
	size_t got = len;
	int ret;

	value_name(t, kind, name);
	pthread_mutex_lock(&t->world->boot_lock);
	ret = sci_boot_get(t->world->boot, (unsigned int)world_rank, name, value, &got);
	pthread_mutex_unlock(&t->world->boot_lock);
	return ret ? ret : got == len ? 0 : -EPROTO;
}

/* The list of those who take part: a byte for each. */
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
	/* the launcher itself may be gone, then nobody takes part */
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

static int join_living(struct sci_team *t, const int *living, int n, struct sci_team **out)
{
	struct team_hello mine, *all = calloc((size_t)n, sizeof(*all));
	struct sci_team *new = NULL;
	int ret = all ? team_new(t->world, living, n, &new) : -ENOMEM;

	memset(&mine, 0, sizeof(mine));
	mine.error = ret ? ret : team_hello(new, &mine);
	ret = value_put(t, 'h', &mine, sizeof(mine));
	for (int i = 0; !ret && all && i < n; i++)
		ret = value_get(t, living[i], 'h', &all[i], sizeof(mine));
	if (ret || !new) {
		team_free(new);
		free(all);
		return ret ? ret : mine.error;
	}
	new->all = t->all;
	ret = team_join(new, all);
	free(all);
	*out = new;
	return ret == -ECONNRESET ? -EIO : ret;
}

static int shrink_once(struct sci_team *t, uint8_t *list, int *living,
		       struct sci_team **out)
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
	return join_living(t, living, n, out);
}

int sci_team_shrink(struct sci_team *team, struct sci_team **out)
{
	uint8_t *list;
	int *living, ret;

	if (!team || !out || (size_t)team->size > SCI_BOOT_VALUE_MAX)
		return -EINVAL;
	ret = world_usable(team->world);
	if (ret)
		return ret;
	list = calloc((size_t)team->size, 1);
	living = calloc((size_t)team->size, sizeof(*living));
	ret = list && living ? -ECONNRESET : -ENOMEM;
	while (ret == -ECONNRESET)
		ret = shrink_once(team, list, living, out);
	free(list);
	free(living);
	return ret == -EIO ? -ECONNRESET : ret;
}
