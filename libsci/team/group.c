// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: making teams
 *
 * A team is made in steps. team_new() needs only the list of members. team_hello() allocates
 * the memory that near members will map. Then the members exchange their hellos, and
 * team_map() maps the memory. The members agree whether all have succeeded: if a member fails,
 * it still takes part in these exchanges, and no member gets the team. Otherwise each member
 * calls team_enter().
 */

#include "libsci/team/team.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

void team_free(struct sci_team *t)
{
	if (!t)
		return;
	team_free(t->near);
	if (t->area)
		world_free(t->world, t->area);
	for (int i = 0; t->members && i < t->size; i++)
		if (t->members[i].area && i != t->rank)
			sci_peer_unmap(t->world->ranks[t->members[i].world].peer,
				       t->members[i].area);
	free(t->members);
	free(t->part);
	free(t->node_sizes);
	free(t->shift);
	free(t->leads);
	free(t->sorted);
	free(t->starts);
	free(t->share);
	plan_free(t->plan);
	free(t);
}

/* Number the nodes in the order of their lowest ranks. */
static void nodes_number(struct sci_team *t)
{
	const struct team_rank *ranks = t->world->ranks;

	for (int i = 0; i < t->size; i++) {
		struct team_member *m = &t->members[i];
		int before;

		for (before = 0; before < i; before++)
			if (ranks[t->members[before].world].addr.node ==
			    ranks[m->world].addr.node)
				break;
		m->node = before < i ? t->members[before].node : t->nodes++;
		m->local = t->node_sizes[m->node]++;
	}
}

static uint32_t member_group(const struct sci_team *t, int rank)
{
	return t->world->ranks[t->members[rank].world].group;
}

/* Number the groups of near members, and find their leaders. */
static void groups_number(struct sci_team *t)
{
	for (int i = 0; i < t->size; i++) {
		int g;

		for (g = 0; g < t->groups; g++)
			if (member_group(t, t->leads[g]) == member_group(t, i))
				break;
		if (g == t->groups)
			t->leads[t->groups++] = i;
		t->members[i].group = g;
	}
	t->group = t->members[t->rank].group;
	t->flat = t->groups == 1;
}

static void groups_sort(struct sci_team *t)
{
	int n = 0;

	for (int g = 0; g < t->groups; g++) {
		t->starts[g] = n;
		for (int i = t->leads[g]; i < t->size; i++)
			if (t->members[i].group == g)
				t->sorted[n++] = i;
	}
	t->starts[t->groups] = n;
}

static int near_team_make(struct sci_team *t)
{
	int n = group_size(t, t->group), ret;
	int *near = calloc((size_t)n, sizeof(*near));

	if (!near)
		return -ENOMEM;
	for (int i = 0; i < n; i++)
		near[i] = t->members[t->sorted[t->starts[t->group] + i]].world;
	ret = team_new(t->world, near, n, &t->near);
	free(near);
	return ret;
}

int team_new(struct team_world *w, const int *world_ranks, int n, struct sci_team **out)
{
	struct sci_team *t = calloc(1, sizeof(*t));
	size_t size = (size_t)n;
	int ret = -ENOMEM;

	if (!t)
		return ret;
	t->world = w;
	t->size = n;
	t->rank = -1;
	t->told = n;
	list_init(&t->link);
	list_init(&t->queue);
	t->members = calloc(size, sizeof(*t->members));
	t->node_sizes = calloc(size, sizeof(*t->node_sizes));
	t->shift = calloc(size, sizeof(*t->shift));
	t->leads = calloc(size, sizeof(*t->leads));
	t->sorted = calloc(size, sizeof(*t->sorted));
	t->starts = calloc(size + 1, sizeof(*t->starts));
	if (!t->members || !t->node_sizes || !t->shift || !t->leads || !t->sorted || !t->starts)
		goto err;
	for (int i = 0; i < n; i++) {
		t->members[i].world = world_ranks[i];
		if (world_ranks[i] == w->rank)
			t->rank = i;
	}
	ret = -EINVAL;
	if (t->rank < 0)
		goto err;
	nodes_number(t);
	groups_number(t);
	groups_sort(t);
	ret = flat_open(t);
	if (ret)
		goto err;
	symmetric_view(t);
	if (!t->flat) {
		ret = near_team_make(t);
		ret = ret ? ret : plan_reserve(t);
		if (ret)
			goto err;
	}
	*out = t;
	return 0;
err:
	team_free(t);
	return ret;
}

int team_hello(struct sci_team *t, struct team_hello *mine)
{
	struct sci_team *f = t->flat ? t : t->near;
	void *area;
	int ret;

	memset(mine, 0, sizeof(*mine));
	mine->uid = (uint64_t)t->world->rank << 24 |
		    (sci_fetch_add(&t->world->uids, 1) & 0xffffff);
	if (f->size == 1)
		return 0;
	ret = world_alloc(t->world, flat_area_size(f), &area, &mine->area);
	if (ret)
		return ret;
	memset(area, 0, flat_area_size(f));
	f->area = area;
	f->probe = mine->uid;
	if (t->world->single_copy_min != UINT_MAX)
		mine->probe = (uintptr_t)&f->probe;
	return 0;
}

/* Return whether this process can read the private memory of the @hello's sender. */
static bool member_is_readable(struct sci_team *t, int member, const struct team_hello *hello)
{
	struct sci_peer *peer;
	uint64_t uid;

	return hello->probe && t->world->single_copy_min != UINT_MAX &&
	       !world_peer(t->world, t->members[member].world, &peer) &&
	       !sci_peer_read_private(peer, &uid, hello->probe, sizeof(uid)) &&
	       uid == hello->uid;
}

int team_map(struct sci_team *t, const struct team_hello *all, const struct sci_team *in)
{
	struct sci_team *f = t->flat ? t : t->near;
	bool readable = true;
	int ret = 0;

	t->uid = all[sci_team_translate(t, 0, in)].uid;
	f->members[f->rank].area = f->area;
	for (int i = 1; !ret && i < f->size; i++) {
		int m = (f->rank + i) % f->size;
		int at = sci_team_translate(f, m, in);
		void *area = NULL;

		ret = world_map(f->world, f->members[m].world, &all[at].area, &area);
		if (member_result(ret) == -ECONNRESET) {
			team_break(t, -ECONNRESET);
			ret = 0;
		}
		f->members[m].area = area;
		readable = readable && !ret && member_is_readable(f, m, &all[at]);
	}
	/* the calls that follow the creation of the team order this store */
	if (f->area)
		flat_set_readable(f, readable);
	return ret;
}

int team_hellos_error(const struct team_hello *all, int n)
{
	int ret = 0;

	for (int i = 0; !ret && i < n; i++)
		ret = all[i].error;
	return ret;
}

void team_enter(struct sci_team *t)
{
	struct team_world *w = t->world;

	pthread_mutex_lock(&w->lock);
	pthread_mutex_lock(&w->broken_lock);
	list_add_tail(&t->link, &w->teams);
	pthread_mutex_unlock(&w->broken_lock);
	pthread_mutex_unlock(&w->lock);
}

int team_agree(struct sci_team *t, int error)
{
	int worst = error;
	int ret = sci_team_allreduce(t, &error, &worst, 1,
				     sci_op(SCI_OP_MIN, SCI_TYPE_INT32));

	return ret ? ret : worst;
}

/*
 * Leave a team. Other members may still read this member's area after the barrier, so wait for
 * them. In a broken team the barrier fails, and no member knows which members still read the area:
 * it stays allocated until the endpoint closes. The barrier of another member may have succeeded
 * all the same: it waits for the bye byte of this member.
 */
int team_leave(struct sci_team *t)
{
	struct team_world *w = t->world;
	struct sci_team *f = t->flat ? t : t->near;
	int ret = sci_team_barrier(t);

	if (f->area)
		flat_bye_send(f);
	if (ret)
		f->area = NULL;
	if (f->area)
		flat_bye_wait(f);
	pthread_mutex_lock(&w->lock);
	pthread_mutex_lock(&w->broken_lock);
	list_del(&t->link);
	pthread_mutex_unlock(&w->broken_lock);
	pthread_mutex_unlock(&w->lock);
	team_free(t);
	return 0;
}

/* ---- queries ---- */

int sci_team_rank(const struct sci_team *team)
{
	return team ? team->rank : -EINVAL;
}

int sci_team_size(const struct sci_team *team)
{
	return team ? team->size : -EINVAL;
}

int sci_team_nodes(const struct sci_team *team)
{
	return team ? team->nodes : -EINVAL;
}

int sci_team_node(const struct sci_team *team, int rank)
{
	return team && rank_ok(team, rank) ? team->members[rank].node : -EINVAL;
}

int sci_team_node_size(const struct sci_team *team, int node)
{
	return team && node >= 0 && node < team->nodes ? team->node_sizes[node] : -EINVAL;
}

int sci_team_local_rank(const struct sci_team *team, int rank)
{
	return team && rank_ok(team, rank) ? team->members[rank].local : -EINVAL;
}

int sci_team_translate(const struct sci_team *from, int rank, const struct sci_team *to)
{
	int world;

	if (!from || !to || !rank_ok(from, rank))
		return -EINVAL;
	world = from->members[rank].world;
	if (world < to->size && to->members[world].world == world)
		return world;
	for (int i = 0; i < to->size; i++)
		if (to->members[i].world == world)
			return i;
	return -ENOENT;
}

struct sci_ep *sci_team_ep(const struct sci_team *team)
{
	return team ? team->world->ep : NULL;
}

int sci_team_addr(const struct sci_team *team, int rank, struct sci_addr *addr)
{
	if (!team || !addr || !rank_ok(team, rank))
		return -EINVAL;
	if (world_usable(team->world))
		return -ENOTCONN;
	*addr = team->world->ranks[team->members[rank].world].addr;
	return 0;
}

int sci_team_peer(struct sci_team *team, int rank, struct sci_peer **peer)
{
	if (!team || !peer || !rank_ok(team, rank))
		return -EINVAL;
	if (world_usable(team->world))
		return -ENOTCONN;
	return world_peer(team->world, team->members[rank].world, peer);
}

int sci_team_alive(struct sci_team *team, int rank)
{
	if (!team || !rank_ok(team, rank))
		return -EINVAL;
	if (world_usable(team->world))
		return -ENOTCONN;
	world_poll(team->world);
	return world_dead(team->world, team->members[rank].world);
}

/* ---- split ---- */

struct split_member {
	int32_t colour;
	int32_t key;
	int32_t rank;
};

static int split_order(const void *a, const void *b)
{
	const struct split_member *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->rank < y->rank ? -1 : 1;
}

/* Find the members of one colour, in the order of their new ranks. Return their number. */
static int split_members(const struct sci_team *t, struct split_member *all, int colour,
			 int *world)
{
	int n = 0;

	qsort(all, (size_t)t->size, sizeof(*all), split_order);
	for (int i = 0; i < t->size; i++)
		if (all[i].colour == colour)
			world[n++] = t->members[all[i].rank].world;
	return n;
}

/*
 * If the last step of the creation of @new has failed because a member or a connection has been lost,
 * return true. Other members of @new may have finished that step before: they use the team and its
 * memory, and must get an error. So keep it, as a broken team, until the world team is closed.
 */
static bool new_break(struct sci_team *new, int error)
{
	if (!new || (error != -ECONNRESET && error != -ENOBUFS))
		return false;
	team_enter(new);
	team_break(new, error);
	return true;
}

/*
 * Make the team of @n members of @t. All members of @t take part, even those without a new
 * team, for which @n is 0. @hellos: room for one of each member of @t
 */
static int split_make(struct sci_team *t, const int *world, int n, struct team_hello *hellos,
		      struct sci_team **out)
{
	struct team_hello mine;
	struct sci_team *new = NULL;
	int ret;

	memset(&mine, 0, sizeof(mine));
	mine.error = n ? team_new(t->world, world, n, &new) : 0;
	if (new)
		mine.error = team_hello(new, &mine);
	ret = sci_team_allgather(t, &mine, sizeof(mine), hellos);
	ret = ret ? ret : team_hellos_error(hellos, t->size);
	if (!ret) {
		ret = team_agree(t, new ? team_map(new, hellos, t) : 0);
		if (new_break(new, ret))
			return ret;
	}
	if (ret) {
		team_free(new);
		return ret;
	}
	if (new)
		team_enter(new);
	*out = new;
	return 0;
}

int sci_team_split(struct sci_team *team, int colour, int key, struct sci_team **out)
{
	struct split_member mine = { colour, key, team ? team->rank : 0 }, *all;
	struct team_hello *hellos;
	int *world, n, ret;
	size_t size;

	if (!team || !out)
		return -EINVAL;
	*out = NULL;
	size = (size_t)team->size;
	all = calloc(size, sizeof(*all));
	world = calloc(size, sizeof(*world));
	hellos = calloc(size, sizeof(*hellos));
	ret = team_agree(team, all && world && hellos ? 0 : -ENOMEM);
	ret = ret ? ret : sci_team_allgather(team, &mine, sizeof(mine), all);
	if (!ret) {
		assert(all && world && hellos);	/* else the members agreed on -ENOMEM */
		n = colour < 0 ? 0 : split_members(team, all, colour, world);
		ret = split_make(team, world, n, hellos, out);
	}
	free(all);
	free(world);
	free(hellos);
	return ret;
}

int sci_team_split_node(struct sci_team *team, struct sci_team **out)
{
	if (!team)
		return -EINVAL;
	return sci_team_split(team, team->members[team->rank].node, 0, out);
}

/* ---- create ---- */

/* Return a tag for the new team: the same list of members gives the same tag. */
static uint64_t members_hash(const struct sci_team *t, const int *ranks, int n)
{
	uint64_t h = 0xcbf29ce484222325u ^ t->uid;

	for (int i = 0; i < n; i++)
		h = (h ^ (uint64_t)t->members[ranks[i]].world) * 0x100000001b3u;
	return h;
}

static int rank_wait(struct team_world *w, int rank, struct sci_req *req)
{
	int ret;

	while ((ret = sci_wait(req, 10, NULL)) == -ETIMEDOUT) {
		world_poll(w);
		if (world_dead(w, rank) && !sci_cancel(req))
			sci_wait(req, -1, NULL);
		else
			continue;
		return -ECONNRESET;
	}
	/* -ENOMEM is reserved for calls that have had no effect */
	return ret == -ENOMEM ? -ENOBUFS : ret;
}

/* Make progress before the retry of a transfer without memory. Return an error if @rank is dead. */
static int rank_retry(struct team_world *w, int rank)
{
	world_poll(w);
	return world_dead(w, rank);
}

static int rank_send(struct team_world *w, int rank, uint32_t context, uint64_t tag,
		     const void *buf, size_t len)
{
	struct sci_peer *p;
	struct sci_req *req;
	int ret = world_peer(w, rank, &p);

	while (!ret && (ret = sci_itsend(p, context, tag, buf, len, &req)) == -ENOMEM)
		ret = rank_retry(w, rank);
	return member_result(ret ? ret : rank_wait(w, rank, req));
}

static int rank_recv(struct team_world *w, int rank, uint32_t context, uint64_t tag,
		     void *buf, size_t len)
{
	struct sci_peer *p;
	struct sci_req *req;
	int ret = world_peer(w, rank, &p);

	while (!ret && (ret = sci_itrecv(w->ep, p, context, tag, 0, buf, len, &req)) == -ENOMEM)
		ret = rank_retry(w, rank);
	return member_result(ret ? ret : rank_wait(w, rank, req));
}

/*
 * Open the peers of the exchange, which allocates their memory. Return -EAGAIN if there is no
 * memory: no other member depends on the call yet.
 */
static int create_peers(struct sci_team *t, const int *ranks, int n)
{
	for (int i = 0; i < n; i++) {
		struct sci_peer *p;

		if ((!i || ranks[0] == t->rank) && ranks[i] != t->rank &&
		    world_peer(t->world, t->members[ranks[i]].world, &p) == -ENOMEM)
			return -EAGAIN;
	}
	return 0;
}

/*
 * Exchange hellos through the first member. Return the first error in a hello, or the error of the
 * exchange. @all: receives the hellos; NULL: exchange only errors, or the caller has no memory and
 * its hello has the error. A member needs no memory for the exchange.
 */
static int hellos_create_exchange(struct sci_team *t, const int *ranks, int n, uint64_t tag,
				  struct team_hello mine, struct team_hello *all)
{
	struct team_world *w = t->world;
	int lead = t->members[ranks[0]].world, ret;
	size_t len = sizeof(mine) * (size_t)n;
	struct team_hello theirs;

	if (ranks[0] != t->rank) {
		ret = rank_send(w, lead, TEAM_CTX_CREATE, tag, &mine, sizeof(mine));
		ret = ret ? ret : rank_recv(w, lead, TEAM_CTX_REPLY, tag, all ? all : &mine,
					    all ? len : sizeof(mine));
		return ret ? ret : all ? all[0].error : mine.error;
	}
	for (int i = 1; i < n; i++) {
		ret = rank_recv(w, t->members[ranks[i]].world, TEAM_CTX_CREATE, tag, &theirs,
				sizeof(theirs));
		ret = ret ? ret : theirs.error;
		mine.error = mine.error ? mine.error : ret;
		if (all)
			all[i] = theirs;
	}
	if (all)
		all[0] = mine;
	/* ignore errors: the death of a receiver breaks the team later */
	for (int i = 1; i < n; i++) {
		bool error = mine.error || !all;

		rank_send(w, t->members[ranks[i]].world, TEAM_CTX_REPLY, tag,
			  error ? &mine : all, error ? sizeof(mine) : len);
	}
	return mine.error;
}

static int ranks_check(const struct sci_team *t, const int *ranks, int n)
{
	for (int i = 0; i < n; i++) {
		if (!rank_ok(t, ranks[i]))
			return -EINVAL;
		for (int j = 0; j < i; j++)
			if (ranks[j] == ranks[i])
				return -EINVAL;
	}
	return 0;
}

int sci_team_create(struct sci_team *team, const int *ranks, int n, struct sci_team **out)
{
	struct team_hello mine, *all;
	struct sci_team *new = NULL;
	uint64_t tag;
	int *world, ret;

	if (!team || !ranks || !out || n < 1 || n > team->size || ranks_check(team, ranks, n))
		return -EINVAL;
	ret = world_usable(team->world);
	if (ret)
		return ret;
	*out = NULL;
	ret = create_peers(team, ranks, n);
	if (ret)
		return ret;
	tag = members_hash(team, ranks, n);
	memset(&mine, 0, sizeof(mine));
	world = calloc((size_t)n, sizeof(*world));
	all = calloc((size_t)n, sizeof(*all));
	for (int i = 0; world && i < n; i++)
		world[i] = team->members[ranks[i]].world;
	mine.error = world && all ? team_new(team->world, world, n, &new) : -ENOMEM;
	if (mine.error == -EINVAL)
		ret = -EINVAL;		/* the caller is not in the list */
	if (new)
		mine.error = team_hello(new, &mine);
	ret = ret ? ret : hellos_create_exchange(team, ranks, n, tag, mine, all);
	if (!ret) {
		assert(new && all);	/* else the own hello had an error */
		mine.error = team_map(new, all, new);
		ret = hellos_create_exchange(team, ranks, n, tag, mine, NULL);
		if (new_break(new, ret))
			new = NULL;
	}
	if (ret) {
		team_free(new);
	} else {
		team_enter(new);
		*out = new;
	}
	free(world);
	free(all);
	return ret;
}

void sci_team_abort(struct sci_team *team, int status)
{
	sci_boot_abort(team->world->boot, status);
}
