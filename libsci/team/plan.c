// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include "libsci/team/plan.h"

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

void plan_round(struct plan *p)
{
	p->round++;
}

struct sci_coll *plan_near(struct plan *p, struct sci_team *near, enum coll_kind kind,
			   int root)
{
	struct sci_coll *c = calloc(1, sizeof(*c));
	struct plan_step *s;

	plan_round(p);
	s = c ? step_add(p, PLAN_NEAR) : NULL;
	plan_round(p);
	if (!s) {
		free(c);
		p->error = -ENOMEM;
		return NULL;
	}
	c->team = near;
	c->kind = kind;
	c->root = root;
	s->near = c;
	return c;
}

uint8_t *plan_tmp(struct plan *p, int i, size_t len)
{
	p->tmp[i] = malloc(len ? len : 1);
	if (!p->tmp[i])
		p->error = -ENOMEM;
	return p->tmp[i];
}

/* ---- execution ---- */

static int message_start(struct sci_coll *c, struct plan_step *s)
{
	struct team_world *w = c->team->world;
	struct sci_peer *peer;
	int ret = world_peer(w, c->team->members[s->rank].world, &peer);

	if (ret)
		return ret;
	if (s->kind == PLAN_SEND)
		return sci_itsend(peer, TEAM_CTX_COLL, c->plan->tag, s->from, s->len,
				  &s->req);
	return sci_itrecv(w->ep, peer, TEAM_CTX_COLL, c->plan->tag, 0, s->to, s->len,
			  &s->req);
}

static bool plan_in_round(const struct plan *p, size_t i)
{
	return i < p->n && p->steps[i].round == p->steps[p->at].round;
}

static int round_start(struct sci_coll *c)
{
	struct plan *p = c->plan;
	int ret = 0;

	for (size_t i = p->at; plan_in_round(p, i); i++) {
		struct plan_step *s = &p->steps[i];

		if (s->kind == PLAN_COPY)
			memcpy(s->to, s->from, s->len);
		else if (s->kind == PLAN_FOLD)
			c->op->fn(s->to, s->from, s->len / c->op->size, c->op->arg);
		else if (s->kind == PLAN_NEAR)
			ret = flat_start(s->near);
		if (ret)
			return ret;
	}
	/* post the receives first, so that no message is unexpected */
	for (int send = 0; send < 2; send++)
		for (size_t i = p->at; plan_in_round(p, i); i++) {
			struct plan_step *s = &p->steps[i];

			if (s->kind == (send ? PLAN_SEND : PLAN_RECV))
				ret = message_start(c, s);
			if (ret)
				return ret;
		}
	p->started = true;
	return 0;
}

/* Return 0 when the messages of the round, or the near team's call, have completed. */
static int round_look(struct sci_coll *c)
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
		if (ret)
			return member_result(ret);
	}
	return busy ? -EAGAIN : 0;
}

int plan_step(struct sci_coll *c)
{
	struct plan *p = c->plan;
	int ret = 0;

	while (p->at < p->n) {
		unsigned int round = p->steps[p->at].round;

		if (!p->started)
			ret = round_start(c);
		ret = ret ? ret : round_look(c);
		if (ret)
			return ret;
		while (p->at < p->n && p->steps[p->at].round == round)
			p->at++;
		p->started = false;
		c->k++;
	}
	return 0;
}

void plan_free(struct sci_coll *c)
{
	struct plan *p = c->plan;

	for (size_t i = 0; i < p->n; i++) {
		struct plan_step *s = &p->steps[i];

		/* cancel the request: the program may reuse the buffer after the call */
		if (s->req)
			sci_cancel(s->req);
		while (s->req && sci_wait(s->req, 1, NULL) == -ETIMEDOUT)
			world_poll(c->team->world);
		free(s->near);
	}
	for (int i = 0; i < 3; i++)
		free(p->tmp[i]);
	free(p->steps);
	free(p);
	c->plan = NULL;
}

int plan_start(struct sci_coll *c)
{
	struct plan *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	c->step = plan_step;
	c->plan = p;
	p->tag = c->team->uid << 24 | (c->team->seq++ & 0xffffff);
	plan_build(c, p);
	return p->error;
}
