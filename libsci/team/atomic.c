// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Atomic calls. On shared memory, the CPU executes an atomic instruction. On memory of a far
 * member, that member receives a request and executes the atomic while it makes progress.
 */

#include "libsci/team/team.h"

#include <stdlib.h>

struct atomic_request {
	uint64_t offset;
	uint64_t operand;
	uint64_t compare;
	uint32_t region;		/* index in the list of regions */
	uint8_t op;
	uint8_t size;
	uint16_t reserved;
};

struct atomic_reply {
	uint64_t old;
	int64_t error;
};

/* An outstanding atomic on memory of a far member. */
struct far_atomic {
	struct list link;
	uint64_t tag;
	int rank;			/* world rank */
	int result;			/* -EAGAIN: no answer yet */
	bool waited;			/* a thread waits for the reply */
	uint64_t *old;
};

#define UNDER_WAY_MAX	256		/* limit of atomics in flight without a waiter */

#define APPLY(type)							\
	static uint64_t apply_##type(type *word, unsigned int op, type operand, \
				     type compare)			\
	{								\
		type old = compare;					\
									\
		switch (op) {						\
		case SCI_ATOMIC_SET:					\
			return sci_exchange(word, operand);		\
		case SCI_ATOMIC_ADD:					\
			return sci_fetch_add(word, operand);		\
		case SCI_ATOMIC_AND:					\
			return sci_fetch_and(word, operand);		\
		case SCI_ATOMIC_OR:					\
			return sci_fetch_or(word, operand);		\
		case SCI_ATOMIC_XOR:					\
			return sci_fetch_xor(word, operand);		\
		case SCI_ATOMIC_CAS:					\
			(void)sci_compare_exchange(word, &old, operand); \
			return old;					\
		default:						\
			return sci_load_acquire(word);			\
		}							\
	}

APPLY(uint32_t)
APPLY(uint64_t)

static uint64_t atomic_apply(void *word, unsigned int size, unsigned int op, uint64_t operand,
			     uint64_t compare)
{
	if (size == 4)
		return apply_uint32_t(word, op, (uint32_t)operand, (uint32_t)compare);
	return apply_uint64_t(word, op, operand, compare);
}

static bool atomic_ok(uint64_t at, unsigned int size, unsigned int op)
{
	return (size == 4 || size == 8) && op < SCI_ATOMICS && !(at % size);
}

/* ---- atomics on far members ---- */

static void atomic_serve(void *arg, const struct sci_handled *m)
{
	const struct atomic_request *q = m->data;
	struct atomic_reply reply = { .error = -EFAULT };
	struct team_world *w = arg;
	struct team_region *r = NULL;

	if (m->error || m->len != sizeof(*q))
		return;
	if (q->region < sci_load_acquire(&w->n_regions))
		r = w->regions[q->region];
	if (r && atomic_ok(q->offset, q->size, q->op) && q->offset <= r->len &&
	    r->len - q->offset >= q->size) {
		reply.old = atomic_apply(r->base + q->offset, q->size, q->op, q->operand,
					 q->compare);
		reply.error = 0;
	}
	/* the reply finds room: the requester limits its atomics in flight */
	sci_handler_send(m->peer, TEAM_ATOMIC_REPLY, m->tag, &reply, sizeof(reply));
}

/* Return the outstanding atomic with @tag, or NULL. Context: called with atomics_lock held. */
static struct far_atomic *atomic_find(struct team_world *w, uint64_t tag)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &w->atomics) {
		struct far_atomic *a = container_of(pos, struct far_atomic, link);

		if (a->tag == tag)
			return a;
	}
	return NULL;
}

static void atomic_answered(void *arg, const struct sci_handled *m)
{
	const struct atomic_reply *reply = m->data;
	struct team_world *w = arg;
	struct far_atomic *a;

	if (m->error || m->len != sizeof(*reply))
		return;
	pthread_mutex_lock(&w->atomics_lock);
	a = atomic_find(w, m->tag);
	if (a && a->result == -EAGAIN && sci_peer_data(m->peer) == &w->ranks[a->rank]) {
		if (a->old && !reply->error)
			memcpy(a->old, &reply->old, sizeof(*a->old));
		sci_store_release(&a->result, reply->error ? -EFAULT : 0);
	}
	pthread_mutex_unlock(&w->atomics_lock);
}

int atomics_open(struct team_world *w)
{
	int ret = sci_handler_set(w->ep, TEAM_ATOMIC, atomic_serve, w);

	return ret ? ret : sci_handler_set(w->ep, TEAM_ATOMIC_REPLY, atomic_answered, w);
}

void atomics_close(struct team_world *w)
{
	struct list *l;

	sci_handler_set(w->ep, TEAM_ATOMIC, NULL, NULL);
	sci_handler_set(w->ep, TEAM_ATOMIC_REPLY, NULL, NULL);
	while ((l = list_pop(&w->atomics)))
		free(container_of(l, struct far_atomic, link));
}

static int atomic_wait(struct team_world *w, struct far_atomic *a)
{
	struct team_wait wait;
	int ret;

	team_wait_init(&wait, -1);
	while (sci_load_acquire(&a->result) == -EAGAIN && !world_dead(w, a->rank))
		team_wait_more(w, &wait);
	pthread_mutex_lock(&w->atomics_lock);
	ret = a->result == -EAGAIN ? -ECONNRESET : a->result;
	list_del(&a->link);
	pthread_mutex_unlock(&w->atomics_lock);
	free(a);
	return ret;
}

int atomics_quiet(struct team_world *w)
{
	int ret, first = 0;

	for (;;) {
		struct far_atomic *a = NULL;
		struct list *pos, *n;

		pthread_mutex_lock(&w->atomics_lock);
		list_for_each_safe(pos, n, &w->atomics) {
			a = container_of(pos, struct far_atomic, link);
			if (!a->waited)
				break;
			a = NULL;
		}
		if (a)
			a->waited = true;
		pthread_mutex_unlock(&w->atomics_lock);
		if (!a)
			return first;
		ret = atomic_wait(w, a);
		first = first ? first : ret;
	}
}

/* Send the request. @wait: wait for the reply; otherwise sci_team_quiet() waits for it */
static int far_atomic(struct team_world *w, int rank, const struct atomic_request *q,
		      uint64_t *old, bool wait)
{
	struct far_atomic *a;
	struct sci_peer *peer;
	bool full;
	int ret = world_peer(w, rank, &peer);

	if (ret)
		return ret;
	pthread_mutex_lock(&w->atomics_lock);
	full = !wait && ++w->atomics_free % UNDER_WAY_MAX == 0;
	pthread_mutex_unlock(&w->atomics_lock);
	if (full)
		atomics_quiet(w);
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->rank = rank;
	a->old = old;
	a->result = -EAGAIN;
	a->waited = wait;
	pthread_mutex_lock(&w->atomics_lock);
	a->tag = w->atomic_tag++;
	list_add_tail(&a->link, &w->atomics);
	pthread_mutex_unlock(&w->atomics_lock);
	while ((ret = sci_handler_send(peer, TEAM_ATOMIC, a->tag, q, sizeof(*q))) == -EAGAIN)
		world_poll(w);
	if (ret)
		sci_store_release(&a->result, member_result(ret));
	return wait || ret ? atomic_wait(w, a) : 0;
}

/* ---- calls of the program ---- */

static int team_atomic(struct sci_team *t, void *word, unsigned int size, unsigned int op,
		       uint64_t operand, uint64_t compare, uint64_t *old, int rank,
		       bool wait)
{
	struct atomic_request q = { .operand = operand, .compare = compare,
				    .op = (uint8_t)op, .size = (uint8_t)size };
	const struct sci_key *key;
	uint64_t value;
	void *ptr;
	int ret;

	if (!t || !atomic_ok((size_t)word, size, op))
		return -EINVAL;
	ret = world_usable(t->world);
	ret = ret ? ret : symmetric_at(t, word, size, rank, &ptr, &key, &q.offset);
	if (ret)
		return ret;
	if (!ptr) {
		q.region = region_find(t->world, word, size);
		return far_atomic(t->world, t->members[rank].world, &q, old, wait);
	}
	value = atomic_apply(ptr, size, op, operand, compare);
	if (old)
		*old = value;
	if (op != SCI_ATOMIC_GET)
		world_wake(t->world, t->members[rank].world);
	/* make progress: the program may repeat the call until a far member changes the word */
	if (old && t->world->far)
		world_poll(t->world);
	return 0;
}

int sci_team_atomic(struct sci_team *team, void *word, unsigned int size,
		    enum sci_atomic op, uint64_t operand, uint64_t compare,
		    uint64_t *old, int rank)
{
	return team_atomic(team, word, size, op, operand, compare, old, rank, old);
}

int sci_team_atomic_nbi(struct sci_team *team, void *word, unsigned int size,
			enum sci_atomic op, uint64_t operand, uint64_t compare,
			uint64_t *old, int rank)
{
	return team_atomic(team, word, size, op, operand, compare, old, rank, false);
}
