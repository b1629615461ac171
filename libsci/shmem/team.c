// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Teams and contexts. */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "libsci/shmem/internal.h"

/*
 * This lock protects the lists of contexts and of teams. Several threads may make contexts, but only
 * one thread makes teams.
 */
static pthread_mutex_t contexts = PTHREAD_MUTEX_INITIALIZER;

/* ---- teams ---- */

/* Return whether the program has made the team @handle. */
static bool team_exists(shmem_team_t handle)
{
	struct shmem_team_ *t;

	pthread_mutex_lock(&contexts);
	t = shmem.teams;
	while (t && t != handle)
		t = t->next;
	pthread_mutex_unlock(&contexts);
	return t;
}

struct shmem_team_ *team_of(shmem_team_t handle)
{
	shmem_running("team");
	if (handle == SHMEM_TEAM_WORLD)
		return &shmem.world;
	if (handle == SHMEM_TEAM_SHARED)
		return &shmem.shared;
	if (unlikely(shmem.debug) && handle != SHMEM_TEAM_INVALID && !team_exists(handle))
		shmem_die("team", "%p is no team, or has been destroyed", (void *)handle);
	return handle;
}

/* Fill in @t for the team @team. Return 0 or -errno. */
static int team_fill(struct shmem_team_ *t, struct sci_team *team)
{
	int n = sci_team_size(team);

	t->team = team;
	t->my_pe = sci_team_rank(team);
	t->n_pes = n;
	t->world = malloc((size_t)n * sizeof(*t->world));
	if (!t->world)
		return -ENOMEM;
	for (int i = 0; i < n; i++)
		t->world[i] = sci_team_translate(team, i, shmem.team);
	return 0;
}

/* Return the start of the heap, from the view that sci/team.h publishes. */
static const void *heap_start(void)
{
	return (const void *)((const struct sci_team_view *)(const void *)shmem.team)->base;
}

int teams_init(void)
{
	struct sci_team *shared;
	int colour = 0, err;

	shmem.world = (struct shmem_team_){
		.team = shmem.team, .my_pe = shmem.my_pe, .n_pes = shmem.n_pes,
	};
	/* the colour is the first PE whose memory this PE reaches */
	while (colour < shmem.my_pe && !sci_team_ptr(shmem.team, heap_start(), colour))
		colour++;
	err = sci_team_split(shmem.team, colour, shmem.my_pe, &shared);
	if (err)
		return err;
	shmem.shared = (struct shmem_team_){ .team = NULL };
	return team_fill(&shmem.shared, shared);
}

static void team_free(struct shmem_team_ *t)
{
	while (t->contexts) {
		struct shmem_ctx_ *ctx = t->contexts;

		t->contexts = ctx->next;
		free(ctx);
	}
	free(t->world);
	if (t->team != shmem.team)
		sci_team_close(t->team);
}

void teams_exit(void)
{
	while (shmem.teams) {
		struct shmem_team_ *t = shmem.teams;

		shmem.teams = t->next;
		team_free(t);
		free(t);
	}
	active_sets_exit();
	team_free(&shmem.shared);
	team_free(&shmem.world);
}

EXPORT int shmem_team_my_pe(shmem_team_t team)
{
	struct shmem_team_ *t = team_of(team);

	return t ? t->my_pe : -1;
}

EXPORT int shmem_team_n_pes(shmem_team_t team)
{
	struct shmem_team_ *t = team_of(team);

	return t ? t->n_pes : -1;
}

EXPORT int shmem_team_get_config(shmem_team_t team, long config_mask,
				 shmem_team_config_t *config)
{
	struct shmem_team_ *t = team_of(team);

	if (!t || config_mask & ~SHMEM_TEAM_NUM_CONTEXTS)
		return -1;
	if (config_mask & SHMEM_TEAM_NUM_CONTEXTS)
		config->num_contexts = t->config.num_contexts;
	return 0;
}

EXPORT int shmem_team_translate_pe(shmem_team_t src_team, int src_pe,
				   shmem_team_t dest_team)
{
	struct shmem_team_ *src = team_of(src_team), *dest = team_of(dest_team);
	int pe;

	if (!src || !dest || src_pe < 0 || src_pe >= src->n_pes)
		return -1;
	pe = sci_team_translate(src->team, src_pe, dest->team);
	return pe < 0 ? -1 : pe;
}

/*
 * Split @parent: a collective call. PEs with the same colour form a team. PEs with a negative
 * colour get SHMEM_TEAM_INVALID. Return 0, or -1 on all PEs.
 */
static int team_split(struct shmem_team_ *parent, int colour, int key,
		      const shmem_team_config_t *config, long mask, shmem_team_t *new_team)
{
	struct shmem_team_ *t = colour < 0 ? NULL : calloc(1, sizeof(*t));
	struct sci_team *team;

	*new_team = SHMEM_TEAM_INVALID;
	if (colour >= 0 && !t)
		shmem_die("shmem_team_split", "out of memory");
	shmem_ok("shmem_team_split", sci_team_split(parent->team, colour, key, &team));
	if (!t)
		return 0;
	shmem_ok("shmem_team_split", team_fill(t, team));
	if (mask & SHMEM_TEAM_NUM_CONTEXTS)
		t->config = *config;
	pthread_mutex_lock(&contexts);
	t->next = shmem.teams;
	shmem.teams = t;
	pthread_mutex_unlock(&contexts);
	*new_team = t;
	return 0;
}

static bool config_is_valid(const shmem_team_config_t *config, long mask)
{
	return !(mask & ~SHMEM_TEAM_NUM_CONTEXTS) &&
	       (!mask || (config && config->num_contexts >= 0));
}

EXPORT int shmem_team_split_strided(shmem_team_t parent, int start, int stride, int size,
				    const shmem_team_config_t *config, long config_mask,
				    shmem_team_t *new_team)
{
	struct shmem_team_ *t = team_of(parent);
	long last = start + (long)stride * (size - 1L), from;
	int key = -1;

	*new_team = SHMEM_TEAM_INVALID;
	if (!t)
		return -1;
	if (size < 1 || start < 0 || start >= t->n_pes || last < 0 || last >= t->n_pes ||
	    (!stride && size > 1) || !config_is_valid(config, config_mask))
		return -1;
	from = (long)t->my_pe - start;
	if (!stride)
		key = from ? -1 : 0;
	else if (from % stride == 0 && from / stride >= 0 && from / stride < size)
		key = (int)(from / stride);
	return team_split(t, key < 0 ? -1 : 0, key, config, config_mask, new_team);
}

EXPORT int shmem_team_split_2d(shmem_team_t parent, int xrange,
			       const shmem_team_config_t *xaxis_config, long xaxis_mask,
			       shmem_team_t *xaxis_team,
			       const shmem_team_config_t *yaxis_config, long yaxis_mask,
			       shmem_team_t *yaxis_team)
{
	struct shmem_team_ *t = team_of(parent);
	int x, y;

	*xaxis_team = SHMEM_TEAM_INVALID;
	*yaxis_team = SHMEM_TEAM_INVALID;
	if (!t || xrange < 1 || !config_is_valid(xaxis_config, xaxis_mask) ||
	    !config_is_valid(yaxis_config, yaxis_mask))
		return -1;
	if (xrange > t->n_pes)
		xrange = t->n_pes;
	x = t->my_pe % xrange;
	y = t->my_pe / xrange;
	team_split(t, y, x, xaxis_config, xaxis_mask, xaxis_team);
	return team_split(t, x, y, yaxis_config, yaxis_mask, yaxis_team);
}

EXPORT void shmem_team_destroy(shmem_team_t team)
{
	struct shmem_team_ *t = team_of(team), **link = &shmem.teams;
	bool found;

	if (!t || t == &shmem.world || t == &shmem.shared)
		return;
	pthread_mutex_lock(&contexts);
	while (*link && *link != t)
		link = &(*link)->next;
	found = *link;
	if (found)
		*link = t->next;
	pthread_mutex_unlock(&contexts);
	if (!found)
		shmem_die(__func__, "%p is no team, or has been destroyed", (void *)team);
	/* complete the transfers of the team's contexts */
	shmem_quiet();
	team_free(t);
	free(t);
}

/* ---- contexts ---- */

static bool team_has(const struct shmem_team_ *t, shmem_ctx_t ctx)
{
	struct shmem_ctx_ *c = t->contexts;

	while (c && c != ctx)
		c = c->next;
	return c;
}

static bool ctx_exists(shmem_ctx_t ctx)
{
	bool found;

	pthread_mutex_lock(&contexts);
	found = team_has(&shmem.world, ctx) || team_has(&shmem.shared, ctx);
	for (struct shmem_team_ *t = shmem.teams; t && !found; t = t->next)
		found = team_has(t, ctx);
	pthread_mutex_unlock(&contexts);
	return found;
}

/*
 * Return the world rank of a context's PE. A context only selects a numbering of PEs: quiet
 * completes the transfers of all contexts. Any thread may use any context, as SHMEM_THREAD_MULTIPLE
 * permits.
 */
int ctx_pe_slow(const char *call, shmem_ctx_t ctx, int pe)
{
	struct shmem_team_ *t;

	if (ctx == SHMEM_CTX_INVALID)
		shmem_die(call, "SHMEM_CTX_INVALID");
	if (unlikely(shmem.debug) && !ctx_exists(ctx))
		shmem_die(call, "%p is no context, or has been destroyed", (void *)ctx);
	t = ctx->team;
	if (!t->world)
		return pe;
	if (unlikely(pe < 0 || pe >= t->n_pes))
		shmem_die(call, "there is no PE %d in the context's team: 0 to %d", pe,
			  t->n_pes - 1);
	return t->world[pe];
}

EXPORT int shmem_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t *ctx)
{
	struct shmem_team_ *t = team_of(team);
	struct shmem_ctx_ *c;

	*ctx = SHMEM_CTX_INVALID;
	if (!t || options & ~(SHMEM_CTX_SERIALIZED | SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE))
		return -1;
	c = malloc(sizeof(*c));
	if (!c)
		return -1;
	*c = (struct shmem_ctx_){ .team = t, .handle = team, .options = options };
	pthread_mutex_lock(&contexts);
	c->next = t->contexts;
	t->contexts = c;
	pthread_mutex_unlock(&contexts);
	*ctx = c;
	return 0;
}

EXPORT int shmem_ctx_create(long options, shmem_ctx_t *ctx)
{
	return shmem_team_create_ctx(SHMEM_TEAM_WORLD, options, ctx);
}

EXPORT void shmem_ctx_destroy(shmem_ctx_t ctx)
{
	struct shmem_ctx_ **link;

	if (ctx == SHMEM_CTX_INVALID)
		return;
	if (ctx == SHMEM_CTX_DEFAULT)
		shmem_die(__func__, "SHMEM_CTX_DEFAULT cannot be destroyed");
	shmem_ctx_quiet(ctx);
	pthread_mutex_lock(&contexts);
	link = &ctx->team->contexts;
	while (*link != ctx)
		link = &(*link)->next;
	*link = ctx->next;
	pthread_mutex_unlock(&contexts);
	free(ctx);
}

EXPORT int shmem_ctx_get_team(shmem_ctx_t ctx, shmem_team_t *team)
{
	*team = ctx == SHMEM_CTX_INVALID ? SHMEM_TEAM_INVALID :
		ctx == SHMEM_CTX_DEFAULT ? SHMEM_TEAM_WORLD : ctx->handle;
	return ctx == SHMEM_CTX_INVALID ? -1 : 0;
}
