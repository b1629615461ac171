// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <stdlib.h>

#include "sim/switch/conn.h"
#include "sim/switch/direct.h"
#include "sim/switch/fabric.h"
#include "sim/switch/node.h"

#define PENDING_MAX	64u	/* of one node */

/*
 * An invalidation that is not complete. If its owner detaches, it stays until the last answer:
 * otherwise this answer would complete a newer invalidation of the same export id.
 * @owner: NULL: it has detached
 * @awaited: connections that have not answered
 */
struct invalidation {
	struct invalidation *next;
	struct conn *owner;
	uint32_t node;
	uint32_t id;
	unsigned int waits;
	const struct conn *awaited[];
};

/* Return the first connection from @from on that has a direct node and is not @c, or NULL. */
static struct conn *conn_next_other(struct conn *from, const struct conn *c)
{
	while (from && (from == c || !from->node || from->failing ||
			!from->attach.direct))
		from = from->next;
	return from;
}

#define for_each_other(o, f, c)						\
	for ((o) = conn_next_other((f)->conns, c); (o); (o) = conn_next_other((o)->next, c))

static void peer_send(struct conn *to, const struct conn *about)
{
	struct frame_attach frame = about->attach;

	frame.head.kind = FRAME_PEER;
	conn_send(to, &frame, sizeof(frame), about->memory);
	if (about->has_exports)
		conn_send(to, &about->exports, sizeof(about->exports), -1);
}

void direct_came(struct fabric *f, struct conn *c)
{
	struct conn *o;

	if (!c->attach.direct)
		return;
	for_each_other(o, f, c) {
		peer_send(c, o);
		peer_send(o, c);
	}
}

void direct_exports(struct fabric *f, struct conn *c,
		    const struct frame_exports *e)
{
	struct conn *o;

	if (!c->attach.direct)
		return;
	c->exports = *e;
	c->has_exports = true;
	for_each_other(o, f, c)
		conn_send(o, e, sizeof(*e), -1);
}

/* ---- invalidation ---- */

static void invalidation_complete(struct invalidation *v)
{
	struct frame done = {
		.kind = FRAME_INVALIDATED, .node = v->node, .value = v->id,
	};

	if (v->owner)
		conn_send(v->owner, &done, sizeof(done), -1);
}

static void invalidation_forget(struct invalidation **p)
{
	struct invalidation *v = *p;

	*p = v->next;
	free(v);
}

/* Record the answer of @c. Return false if @v does not wait for an answer of @c. */
static bool invalidation_answered(struct invalidation *v, const struct conn *c)
{
	unsigned int i;

	for (i = 0; i < v->waits; i++) {
		if (v->awaited[i] != c)
			continue;
		v->awaited[i] = v->awaited[--v->waits];
		return true;
	}
	return false;
}

/* Return the first connection from @from on whose adapter may map memory of @c, or NULL. */
static struct conn *conn_next_mapper(struct conn *from, const struct conn *c)
{
	while (from && (from == c || !from->attach.direct ||
			!(from->node || from->ending)))
		from = from->next;
	return from;
}

#define for_each_mapper(o, f, c)					\
	for ((o) = conn_next_mapper((f)->conns, c); (o); (o) = conn_next_mapper((o)->next, c))

static unsigned int conn_count_mappers(struct fabric *f, const struct conn *c)
{
	unsigned int n = 0;
	struct conn *o;

	for_each_mapper(o, f, c)
		n++;
	return n;
}

static unsigned int conn_count_pending(const struct fabric *f, const struct conn *c)
{
	const struct invalidation *v;
	unsigned int n = 0;

	for (v = f->direct.pending; v; v = v->next)
		n += v->owner == c;
	return n;
}

static void invalidation_send(struct fabric *f, struct invalidation *v)
{
	struct frame frame = {
		.kind = FRAME_INVALIDATE, .node = v->node, .value = v->id,
	};
	struct conn *o;

	for_each_mapper(o, f, v->owner) {
		v->awaited[v->waits++] = o;
		conn_send(o, &frame, sizeof(frame), -1);
	}
}

bool direct_invalidate(struct fabric *f, struct conn *c, uint32_t id)
{
	struct invalidation *v, **end = &f->direct.pending;

	if (conn_count_pending(f, c) >= PENDING_MAX)
		return false;
	v = calloc(1, sizeof(*v) +
		      conn_count_mappers(f, c) * sizeof(struct conn *));
	if (!v)
		return false;
	v->owner = c;
	v->node = c->node->id;
	v->id = id;
	invalidation_send(f, v);
	if (!v->waits) {
		invalidation_complete(v);
		free(v);
		return true;
	}
	while (*end)
		end = &(*end)->next;
	*end = v;
	return true;
}

void direct_invalidated(struct fabric *f, struct conn *c,
			const struct frame *answer)
{
	struct invalidation **p = &f->direct.pending, *v;

	/* @answer is for the oldest invalidation of the export */
	for (; (v = *p); p = &v->next) {
		if (v->node != answer->node || v->id != answer->value ||
		    !invalidation_answered(v, c))
			continue;
		if (!v->waits) {
			invalidation_complete(v);
			invalidation_forget(p);
		}
		return;
	}
}

static void invalidations_disown(struct fabric *f, const struct conn *c)
{
	struct invalidation *v;

	for (v = f->direct.pending; v; v = v->next)
		if (v->owner == c)
			v->owner = NULL;
}

void direct_gone(struct fabric *f, struct conn *c)
{
	struct frame frame = { .kind = FRAME_PEER_GONE, .node = c->node->id };
	struct conn *o;

	invalidations_disown(f, c);
	if (!c->attach.direct)
		return;
	for_each_other(o, f, c)
		if (!conn_withdraw_peer(o, c->node->id))
			conn_send(o, &frame, sizeof(frame), -1);
}

void direct_unmapped(struct fabric *f, const struct conn *c)
{
	struct invalidation **p = &f->direct.pending, *v;

	while ((v = *p)) {
		if (invalidation_answered(v, c) && !v->waits) {
			invalidation_complete(v);
			invalidation_forget(p);
		} else {
			p = &v->next;
		}
	}
}

void direct_free(struct fabric *f)
{
	while (f->direct.pending)
		invalidation_forget(&f->direct.pending);
}
