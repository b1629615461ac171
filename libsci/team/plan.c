// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include "libsci/team/plan.h"

#include <assert.h>
#include <stdlib.h>

static struct plan_step *step_add(struct plan *p, enum plan_kind kind)
{
	struct plan_step *s;

	if (p->n == p->room) {
		size_t room = p->room ? 2 * p->room : 16;

		s = realloc(p->steps, room * sizeof(*s));
		if (!s) {
			p->error = -ENOMEM;
			return NULL;
		}
		p->steps = s;
		p->room = room;
	}
	s = &p->steps[p->n++];
	*s = (struct plan_step){ .kind = kind, .round = p->round };
	return s;
}

void plan_send(struct plan *p, int rank, const void *buf, size_t len)
{
	struct plan_step *s = step_add(p, PLAN_SEND);

	if (!s)
		return;
	s->rank = rank;
	s->from = buf;
	s->len = len;
}

void plan_recv(struct plan *p, int rank, void *buf, size_t len)
{
	struct plan_step *s = step_add(p, PLAN_RECV);

	if (!s)
		return;
	s->rank = rank;
	s->to = buf;
	s->len = len;
}

void plan_send_later(struct plan *p, int rank, const void *buf, const size_t *len)
{
	plan_send(p, rank, buf, 0);
	if (!p->error)
		p->steps[p->n - 1].len_at = len;
}

void plan_recv_later(struct plan *p, int rank, void *buf, const size_t *len)
{
	plan_recv(p, rank, buf, 0);
	if (!p->error)
		p->steps[p->n - 1].len_at = len;
}

static void local_step(struct plan *p, enum plan_kind kind, void *to, const void *from,
		       size_t len)
{
	struct plan_step *s = len && to != from ? step_add(p, kind) : NULL;

	if (!s)
		return;
	s->from = from;
	s->to = to;
	s->len = len;
}

void plan_copy(struct plan *p, void *to, const void *from, size_t len)
{
	local_step(p, PLAN_COPY, to, from, len);
}

void plan_fold(struct plan *p, void *inout, const void *in, size_t len)
{
	local_step(p, PLAN_FOLD, inout, in, len);
}

void plan_call(struct plan *p, void (*call)(struct sci_coll *c))
{
	struct plan_step *s = step_add(p, PLAN_CALL);

	if (s)
		s->call = call;
}

void plan_round(struct plan *p)
{
	p->round++;
}

struct sci_coll *plan_near(struct plan *p, struct sci_team *near, enum coll_kind kind,
			   int root)
{
	struct sci_coll *c = &p->near[p->nears];
	struct plan_step *s;

	assert(p->nears < PLAN_NEARS);
	plan_round(p);
	s = step_add(p, PLAN_NEAR);
	plan_round(p);
	if (!s)
		return NULL;
	p->nears++;
	memset(c, 0, sizeof(*c));
	c->team = near;
	c->kind = kind;
	c->root = root;
	s->near = c;
	return c;
}

uint8_t *plan_tmp(struct plan *p, int i, size_t len)
{
	struct plan_tmp *t = &p->tmp[i];

	if (t->kept && len <= t->kept_len)
		return t->kept;
	t->more = malloc(len ? len : 1);
	if (!t->more)
		p->error = -ENOMEM;
	return t->more;
}

/* ---- memory ---- */

/* Remove all steps of the plan. Keep the array of steps and the reserved memory. */
static void plan_clear(struct plan *p)
{
	for (int i = 0; i < PLAN_TMPS; i++) {
		free(p->tmp[i].more);
		p->tmp[i].more = NULL;
	}
	p->n = p->at = p->next = 0;
	p->phase = PLAN_LOCAL;
	p->round = p->nears = 0;
	p->error = 0;
}

void plan_free(struct plan *p)
{
	if (!p)
		return;
	plan_clear(p);
	for (int i = 0; i < PLAN_TMPS; i++)
		free(p->tmp[i].kept);
	free(p->steps);
	free(p);
}

/* Open the peers of all messages, so that their memory is allocated before the first message. */
static int plan_peers(struct sci_coll *c, struct plan *p)
{
	struct sci_team *t = c->team;

	for (size_t i = 0; i < p->n; i++) {
		struct plan_step *s = &p->steps[i];

		/* message_start() reports other errors */
		if ((s->kind == PLAN_SEND || s->kind == PLAN_RECV) &&
		    world_peer(t->world, t->members[s->rank].world, &s->peer) == -ENOMEM)
			return -ENOMEM;
	}
	return 0;
}

static int plan_fill(struct sci_coll *c, struct plan *p)
{
	plan_build(c, p);
	return p->error ? p->error : plan_peers(c, p);
}

int plan_prepare(struct sci_coll *c, bool blocking)
{
	struct plan *p = blocking ? c->team->plan : calloc(1, sizeof(*p));
	int ret;

	if (!p)
		return -ENOMEM;
	ret = plan_fill(c, p);
	if (!ret)
		c->plan = p;
	else if (blocking)
		plan_clear(p);
	else
		plan_free(p);
	return ret;
}

/* Reserve the memory that a call of this kind, with @len bytes of each member, needs. */
static int plan_keep(struct sci_team *t, enum coll_kind kind, size_t len)
{
	static const struct sci_op bytes = { .size = 1 };
	static uint8_t place[2];	/* not accessed: the steps are not executed */
	struct sci_coll c = {
		.team = t, .kind = kind, .op = &bytes, .n = len, .len = len,
		.src = &place[0], .dst = &place[1],
	};
	struct plan *p = t->plan;
	int ret = plan_fill(&c, p);

	for (int i = 0; i < PLAN_TMPS; i++) {
		struct plan_tmp *tmp = &p->tmp[i];

		if (!tmp->more)
			continue;
		free(tmp->kept);
		tmp->kept = tmp->more;
		tmp->kept_len = kind == COLL_ALLGATHER ? len * (size_t)t->size : len;
		tmp->more = NULL;
	}
	plan_clear(p);
	return ret;
}

int plan_reserve(struct sci_team *t)
{
	int ret;

	t->plan = calloc(1, sizeof(*t->plan));
	if (!t->plan)
		return -ENOMEM;
	ret = plan_keep(t, COLL_BARRIER, 0);
	ret = ret ? ret : plan_keep(t, COLL_ALLREDUCE, TEAM_KEPT_REDUCE);
	return ret ? ret : plan_keep(t, COLL_ALLGATHER, TEAM_KEPT_GATHER);
}

/* ---- execution ---- */

static int message_start(struct sci_coll *c, struct plan_step *s)
{
	struct team_world *w = c->team->world;
	int ret = s->peer ? 0 : world_peer(w, c->team->members[s->rank].world, &s->peer);

	if (ret)
		return ret;
	if (s->len_at) {
		s->len = *s->len_at;
		if (!s->len)
			return 0;
	}
	if (s->kind == PLAN_SEND)
		return sci_itsend(s->peer, TEAM_CTX_COLL, c->plan->tag, s->from, s->len,
				  &s->req);
	return sci_itrecv(w->ep, s->peer, TEAM_CTX_COLL, c->plan->tag, 0, s->to, s->len,
			  &s->req);
}

static bool plan_in_round(const struct plan *p, size_t i)
{
	return i < p->n && p->steps[i].round == p->steps[p->at].round;
}

/* Start a step if it belongs to the current phase. */
static int step_start(struct sci_coll *c, struct plan_step *s)
{
	enum plan_phase phase = c->plan->phase;

	switch (s->kind) {
	case PLAN_COPY:
		if (phase == PLAN_LOCAL)
			memcpy(s->to, s->from, s->len);
		return 0;
	case PLAN_FOLD:
		if (phase == PLAN_LOCAL)
			c->op->fn(s->to, s->from, s->len / c->op->size, c->op->arg);
		return 0;
	case PLAN_CALL:
		if (phase == PLAN_LOCAL)
			s->call(c);
		return 0;
	case PLAN_NEAR:
		return phase == PLAN_LOCAL ? flat_start(s->near) : 0;
	case PLAN_RECV:
		return phase == PLAN_RECEIVES ? message_start(c, s) : 0;
	default:
		return phase == PLAN_SENDS ? message_start(c, s) : 0;
	}
}

/*
 * Start the steps of the round. Receives start before sends, to avoid unexpected messages. If there
 * is no memory for the request of a message, return -EAGAIN: the next call continues with this
 * message, when other requests have completed.
 */
static int round_start(struct sci_coll *c)
{
	struct plan *p = c->plan;
	int ret;

	for (; p->phase < PLAN_STARTED; p->phase++) {
		for (; plan_in_round(p, p->next); p->next++) {
			ret = step_start(c, &p->steps[p->next]);
			if (ret)
				return ret == -ENOMEM ? -EAGAIN : member_result(ret);
		}
		p->next = p->at;
	}
	return 0;
}

/* Return 0 when the messages of the round, or the near team's call, have completed. */
static int round_test(struct sci_coll *c)
{
	struct plan *p = c->plan;
	bool busy = false;
	int ret;

	c->wait.word = NULL;
	for (size_t i = p->at; plan_in_round(p, i); i++) {
		struct plan_step *s = &p->steps[i];
		struct sci_status status;

		if (s->kind == PLAN_NEAR) {
			ret = flat_step(s->near);
			c->wait.word = s->near->wait.word;
			c->wait.waiters = s->near->wait.waiters;
			c->wait.seen = s->near->wait.seen;
			c->at = s->near->at;
			if (ret)
				return ret;
		}
		if (!s->req)
			continue;
		ret = sci_test(s->req, &status);
		if (ret == -EAGAIN) {
			busy = true;
			continue;
		}
		s->req = NULL;
		c->at++;
		if (!ret && s->kind == PLAN_RECV && status.len != s->len)
			ret = -EMSGSIZE;	/* the members have passed different lengths */
		/* -ENOMEM is reserved for calls that have had no effect */
		if (ret)
			return ret == -ENOMEM ? -ENOBUFS : member_result(ret);
	}
	return busy ? -EAGAIN : 0;
}

static int plan_step(struct sci_coll *c)
{
	struct plan *p = c->plan;
	int ret = 0;

	while (p->at < p->n) {
		unsigned int round = p->steps[p->at].round;

		ret = round_start(c);
		if (!ret || ret == -EAGAIN) {
			int look = round_test(c);

			ret = look ? look : ret;
		}
		if (ret)
			return ret;
		while (p->at < p->n && p->steps[p->at].round == round)
			p->at++;
		p->next = p->at;
		p->phase = PLAN_LOCAL;
		c->k++;
	}
	return 0;
}

void plan_end(struct sci_coll *c)
{
	struct plan *p = c->plan;

	for (size_t i = 0; i < p->n; i++) {
		struct plan_step *s = &p->steps[i];

		/* cancel the request: the program may reuse the buffer after the call */
		if (s->req)
			sci_cancel(s->req);
		while (s->req && sci_wait(s->req, 1, NULL) == -ETIMEDOUT)
			world_poll(c->team->world);
	}
	c->plan = NULL;
	if (p == c->team->plan)
		plan_clear(p);
	else
		plan_free(p);
}

void plan_start(struct sci_coll *c)
{
	c->step = plan_step;
	c->plan->tag = c->team->uid << 24 | (c->team->seq++ & 0xffffff);
}
