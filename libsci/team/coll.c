// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: collective calls
 *
 * A call is a struct sci_coll with a step function, which advances the call as far as possible. A
 * blocking call is on the caller's stack, and the caller steps it until it completes. A
 * non-blocking call is in its team's queue. Progress steps the first call of each queue; the other
 * calls wait. All members of a team make its calls in the same order, so the first call of the
 * queue is the same on all members.
 */

#include "libsci/team/team.h"

#include <assert.h>
#include <stdlib.h>

static int coll_start(struct sci_coll *c)
{
	int ret = team_check(c->team);

	if (ret)
		return ret;
	if (c->team->flat)
		return flat_start(c);
	plan_start(c);
	return 0;
}

/* Execute a step. A failed call breaks its team: all its collective calls fail. */
static int coll_step(struct sci_coll *c)
{
	struct sci_team *t = c->team;
	int ret = c->step ? 0 : coll_start(c);

	if (!ret) {
		assert(c->step);	/* coll_start() has set the step function */
		ret = c->step(c);
		/* step once more: the data of a dead member may have arrived before its death */
		if (ret == -EAGAIN && team_check(t)) {
			ret = c->step(c);
			ret = ret == -EAGAIN ? t->error : ret;
		}
	}
	if (ret == -EAGAIN)
		return ret;
	if (ret)
		team_break(t, ret);
	if (c->plan)
		plan_end(c);
	return ret;
}

/* Step the first call; after a completion, step the next call. Context: world->lock is held. */
static void queue_step(struct sci_team *t)
{
	while (!list_empty(&t->queue)) {
		struct sci_coll *c = container_of(t->queue.next, struct sci_coll, link);
		int ret = coll_step(c);

		if (ret == -EAGAIN)
			return;
		list_del(&c->link);
		sci_store_relaxed(&t->world->queued, t->world->queued - 1);
		sci_store_release(&t->queued, t->queued - 1);
		sci_store_release(&c->result, ret);
	}
}

void colls_poll(struct team_world *w)
{
	struct list *pos, *n;

	if (pthread_mutex_trylock(&w->lock))
		return;
	list_for_each_safe(pos, n, &w->teams)
		queue_step(container_of(pos, struct sci_team, link));
	pthread_mutex_unlock(&w->lock);
}

static void coll_queue(struct sci_coll *c)
{
	struct team_world *w = c->team->world;

	pthread_mutex_lock(&w->lock);
	c->result = -EAGAIN;
	list_add_tail(&c->link, &c->team->queue);
	sci_store_relaxed(&w->queued, w->queued + 1);
	sci_store_release(&c->team->queued, c->team->queued + 1);
	queue_step(c->team);
	pthread_mutex_unlock(&w->lock);
}

static int coll_wait(struct sci_coll *c, int timeout)
{
	struct sci_team *t = c->team;
	struct team_wait wait;
	int ret;

	team_wait_init(&wait, timeout);
	while ((ret = sci_load_acquire(&c->result)) == -EAGAIN) {
		pthread_mutex_lock(&t->world->lock);
		queue_step(t);
		wait.word = NULL;
		if (!list_empty(&t->queue)) {
			struct sci_coll *first = container_of(t->queue.next,
							      struct sci_coll, link);

			wait.word = first->wait.word;
			wait.waiters = first->wait.waiters;
			wait.seen = first->wait.seen;
		}
		pthread_mutex_unlock(&t->world->lock);
		ret = sci_load_acquire(&c->result);
		if (ret != -EAGAIN)
			break;
		ret = timeout ? team_wait_more(t->world, &wait) : -EAGAIN;
		if (ret)
			return ret;
	}
	return ret;
}

/* Step the call until it completes. Context: no other thread steps it. */
static int coll_run(struct sci_coll *c)
{
	struct sci_team *t = c->team;
	uint64_t k = 0;
	int at = 0, ret = t->flat ? 0 : plan_prepare(c, true);

	if (ret)
		return ret;
	if (sci_load_acquire(&t->queued)) {
		coll_queue(c);
		return coll_wait(c, -1);
	}
	c->wait.deadline_ms = UINT64_MAX;
	while ((ret = coll_step(c)) == -EAGAIN) {
		if (c->k != k || c->at != at)
			c->wait.spins = c->wait.since_us = 0;
		k = c->k;
		at = c->at;
		team_wait_more(t->world, &c->wait);
	}
	return ret;
}

static int coll_launch(const struct sci_coll *args, struct sci_coll **out)
{
	struct sci_coll *c;
	int ret;

	if (!out)
		return -EINVAL;
	c = malloc(sizeof(*c));
	if (!c)
		return -ENOMEM;
	*c = *args;
	ret = c->team->flat ? 0 : plan_prepare(c, false);
	if (ret) {
		free(c);
		return ret;
	}
	coll_queue(c);
	*out = c;
	return 0;
}

int sci_coll_wait(struct sci_coll *coll, int timeout)
{
	int ret;

	if (!coll)
		return -EINVAL;
	if (world_usable(coll->team->world))
		return -ENOTCONN;
	if (!timeout)
		world_poll(coll->team->world);
	ret = coll_wait(coll, timeout);
	if (ret != -EAGAIN && ret != -ETIMEDOUT)
		free(coll);
	return ret;
}

int sci_team_progress(struct sci_team *team)
{
	if (!team)
		return -EINVAL;
	if (world_usable(team->world))
		return -ENOTCONN;
	world_poll(team->world);
	return 0;
}

/* ---- arguments ---- */

static int coll_init(struct sci_coll *c, struct sci_team *t, enum coll_kind kind, int root)
{
	memset(c, 0, sizeof(*c));
	if (!t || !rank_ok(t, root))
		return -EINVAL;
	c->team = t;
	c->kind = kind;
	c->root = root;
	return world_usable(t->world);
}

static int buffers_set(struct sci_coll *c, const void *src, void *dst, size_t len)
{
	c->src = src;
	c->dst = dst;
	c->len = len;
	return (len && (!src || !dst)) || len > SIZE_MAX / 2 / (size_t)c->team->size ?
	       -EINVAL : 0;
}

static int op_set(struct sci_coll *c, const void *src, void *dst, size_t n,
		  const struct sci_op *op)
{
	if (!op || !op->fn || !op->size || op->size > TEAM_ELEMENT_MAX || n > SIZE_MAX / 2 / op->size)
		return -EINVAL;
	c->op = op;
	c->n = n;
	return buffers_set(c, src, dst, n * op->size);
}

static int barrier_set(struct sci_coll *c, struct sci_team *t)
{
	return coll_init(c, t, COLL_BARRIER, 0);
}

static int bcast_set(struct sci_coll *c, struct sci_team *t, int root, void *buf,
		     size_t len)
{
	int ret = coll_init(c, t, COLL_BCAST, root);

	return ret ? ret : buffers_set(c, buf, buf, len);
}

static int reduce_set(struct sci_coll *c, struct sci_team *t, int root, const void *src,
		      void *dst, size_t n, const struct sci_op *op)
{
	int ret = coll_init(c, t, COLL_REDUCE, root);

	/* only the root uses @dst */
	if (!ret && t->rank != root)
		dst = (void *)src;
	return ret ? ret : op_set(c, src, dst, n, op);
}

static int allreduce_set(struct sci_coll *c, struct sci_team *t, const void *src,
			 void *dst, size_t n, const struct sci_op *op)
{
	int ret = coll_init(c, t, COLL_ALLREDUCE, 0);

	return ret ? ret : op_set(c, src, dst, n, op);
}

/* Set the arguments. The caller's part begins at byte c->longest of the result. */
static int reduce_scatterv_set(struct sci_coll *c, struct sci_team *t, const void *src,
			       void *dst, const size_t *counts, const struct sci_op *op)
{
	int ret = coll_init(c, t, COLL_REDUCE_SCATTER, 0);
	size_t n = 0;

	if (ret || !counts || !op)
		return ret ? ret : -EINVAL;
	for (int i = 0; i < t->size; i++) {
		if (i == t->rank)
			c->longest = n * op->size;
		n += counts[i];
	}
	ret = op_set(c, src, (void *)src, n, op);
	c->lens = counts;
	c->dst = dst;
	c->len = counts[t->rank] * op->size;
	return ret || (c->len && !dst) ? -EINVAL : 0;
}

static int reduce_scatter_set(struct sci_coll *c, struct sci_team *t, const void *src,
			      void *dst, size_t n, const struct sci_op *op)
{
	int ret = coll_init(c, t, COLL_REDUCE_SCATTER, 0);

	if (ret || !op || n > SIZE_MAX / (size_t)t->size)
		return ret ? ret : -EINVAL;
	ret = op_set(c, src, (void *)src, n * (size_t)t->size, op);
	c->dst = dst;
	c->len = n * op->size;
	c->longest = c->len * (size_t)t->rank;
	return ret || (n && !dst) ? -EINVAL : 0;
}

static int scan_set(struct sci_coll *c, struct sci_team *t, const void *src, void *dst,
		    size_t n, const struct sci_op *op)
{
	int ret = coll_init(c, t, COLL_SCAN, 0);

	return ret ? ret : op_set(c, src, dst, n, op);
}

static int exscan_set(struct sci_coll *c, struct sci_team *t, const void *src, void *dst,
		      size_t n, const struct sci_op *op)
{
	int ret = coll_init(c, t, COLL_EXSCAN, 0);

	if (!ret && !t->rank && !dst)
		dst = (void *)src;
	return ret ? ret : op_set(c, src, dst, n, op);
}

static int gather_set(struct sci_coll *c, struct sci_team *t, int root, const void *src,
		      size_t len, void *dst)
{
	int ret = coll_init(c, t, COLL_GATHER, root);

	if (!ret && t->rank != root)
		dst = (void *)src;
	return ret ? ret : buffers_set(c, src, dst, len);
}

static int gatherv_set(struct sci_coll *c, struct sci_team *t, int root, const void *src,
		       size_t len, void *dst, const size_t *lens, const size_t *offsets)
{
	int ret = coll_init(c, t, COLL_GATHERV, root);

	if (ret)
		return ret;
	if (t->rank != root)
		return buffers_set(c, src, (void *)src, len);
	c->lens = lens;
	c->offsets = offsets;
	if (!lens || lens[t->rank] != len)
		return -EINVAL;
	return buffers_set(c, src, dst, len);
}

static int allgather_set(struct sci_coll *c, struct sci_team *t, const void *src,
			 size_t len, void *dst)
{
	int ret = coll_init(c, t, COLL_ALLGATHER, 0);

	return ret ? ret : buffers_set(c, src, dst, len);
}

static int allgatherv_set(struct sci_coll *c, struct sci_team *t, const void *src,
			  void *dst, const size_t *lens, const size_t *offsets)
{
	int ret = coll_init(c, t, COLL_ALLGATHER, 0);

	if (ret || !lens)
		return ret ? ret : -EINVAL;
	c->lens = lens;
	c->offsets = offsets;
	return buffers_set(c, src, dst, lens[t->rank]);
}

static int scatter_set(struct sci_coll *c, struct sci_team *t, int root, const void *src,
		       void *dst, size_t len)
{
	int ret = coll_init(c, t, COLL_SCATTER, root);

	if (!ret && t->rank != root)
		src = dst;
	return ret ? ret : buffers_set(c, src, dst, len);
}

static int scatterv_set(struct sci_coll *c, struct sci_team *t, int root, const void *src,
			const size_t *lens, const size_t *offsets, void *dst, size_t len)
{
	int ret = coll_init(c, t, COLL_SCATTERV, root);

	if (ret)
		return ret;
	if (t->rank != root)
		return buffers_set(c, dst, dst, len);
	c->lens = lens;
	c->offsets = offsets;
	if (!lens || lens[t->rank] != len)
		return -EINVAL;
	return buffers_set(c, src, dst, len);
}

static int alltoall_set(struct sci_coll *c, struct sci_team *t, const void *src,
			void *dst, size_t len)
{
	int ret = coll_init(c, t, COLL_ALLTOALL, 0);

	return ret ? ret : buffers_set(c, src, dst, len);
}

static int alltoallv_set(struct sci_coll *c, struct sci_team *t, const void *src,
			 const size_t *src_lens, const size_t *src_offsets, void *dst,
			 const size_t *dst_lens, const size_t *dst_offsets)
{
	int ret = coll_init(c, t, COLL_ALLTOALLV, 0);

	if (ret || !src_lens || !dst_lens || src_lens[t->rank] != dst_lens[t->rank])
		return ret ? ret : -EINVAL;
	c->src = src;
	c->dst = dst;
	c->src_lens = src_lens;
	c->src_offsets = src_offsets;
	c->lens = dst_lens;
	c->offsets = dst_offsets;
	return 0;
}

/* ---- calls of the program ---- */

#define LIST(...)	__VA_ARGS__

/* Define a blocking call and its non-blocking form. */
#define CALLS(name, params, args)					\
	int sci_team_##name(params)					\
	{								\
		struct sci_coll c;					\
		int ret = name##_set(&c, args);				\
									\
		return ret ? ret : coll_run(&c);			\
	}								\
	int sci_team_i##name(params, struct sci_coll **coll)		\
	{								\
		struct sci_coll c;					\
		int ret = name##_set(&c, args);				\
									\
		return ret ? ret : coll_launch(&c, coll);		\
	}

CALLS(barrier, struct sci_team *team, team)
CALLS(bcast, LIST(struct sci_team *team, int root, void *buf, size_t len),
      LIST(team, root, buf, len))
CALLS(reduce, LIST(struct sci_team *team, int root, const void *src, void *dst, size_t n,
		   const struct sci_op *op), LIST(team, root, src, dst, n, op))
CALLS(allreduce, LIST(struct sci_team *team, const void *src, void *dst, size_t n,
		      const struct sci_op *op), LIST(team, src, dst, n, op))
CALLS(reduce_scatter, LIST(struct sci_team *team, const void *src, void *dst, size_t n,
			   const struct sci_op *op), LIST(team, src, dst, n, op))
CALLS(reduce_scatterv, LIST(struct sci_team *team, const void *src, void *dst,
			    const size_t *counts, const struct sci_op *op),
      LIST(team, src, dst, counts, op))
CALLS(scan, LIST(struct sci_team *team, const void *src, void *dst, size_t n,
		 const struct sci_op *op), LIST(team, src, dst, n, op))
CALLS(exscan, LIST(struct sci_team *team, const void *src, void *dst, size_t n,
		   const struct sci_op *op), LIST(team, src, dst, n, op))
CALLS(gather, LIST(struct sci_team *team, int root, const void *src, size_t len, void *dst),
      LIST(team, root, src, len, dst))
CALLS(gatherv, LIST(struct sci_team *team, int root, const void *src, size_t len, void *dst,
		    const size_t *lens, const size_t *offsets),
      LIST(team, root, src, len, dst, lens, offsets))
CALLS(allgather, LIST(struct sci_team *team, const void *src, size_t len, void *dst),
      LIST(team, src, len, dst))
CALLS(allgatherv, LIST(struct sci_team *team, const void *src, void *dst,
		       const size_t *lens, const size_t *offsets),
      LIST(team, src, dst, lens, offsets))
CALLS(scatter, LIST(struct sci_team *team, int root, const void *src, void *dst, size_t len),
      LIST(team, root, src, dst, len))
CALLS(scatterv, LIST(struct sci_team *team, int root, const void *src, const size_t *lens,
		     const size_t *offsets, void *dst, size_t len),
      LIST(team, root, src, lens, offsets, dst, len))
CALLS(alltoall, LIST(struct sci_team *team, const void *src, void *dst, size_t len),
      LIST(team, src, dst, len))
CALLS(alltoallv, LIST(struct sci_team *team, const void *src, const size_t *src_lens,
		      const size_t *src_offsets, void *dst, const size_t *dst_lens,
		      const size_t *dst_offsets),
      LIST(team, src, src_lens, src_offsets, dst, dst_lens, dst_offsets))
