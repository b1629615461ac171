// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Atomics.  Near: an instruction of the CPU.  Far: a request to the owner, which does
 * it when it makes progress.
 */

#include "libsci/team/team.h"

#include <stdlib.h>

struct atomic_request {
	uint64_t offset;
	uint64_t operand;
	uint64_t compare;
	uint32_t region;		/* its place in the list of regions */
	uint8_t op;
	uint8_t size;
	uint16_t reserved;
};

struct atomic_reply {
	uint64_t old;
	int64_t error;
};

/* An atomic under way to a far member. */
struct team_atomics {
	uint64_t next;			/* tag of the next request */
};

#define TEAM_CTX_ATOMIC_REPLY	(SCI_TEAM_CONTEXT + 3)

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

static uint64_t apply(void *word, unsigned int size, unsigned int op, uint64_t operand,
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

/* ---- far ---- */

int atomics_open(struct team_world *w)
{
	w->atomics = calloc(1, sizeof(*w->atomics));
	return w->atomics ? 0 : -ENOMEM;
}

void atomics_close(struct team_world *w)
{
	free(w->atomics);
}

static struct team_region *region_at(struct team_world *w, uint32_t index)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &w->regions)
		if (!index--)
			return container_of(pos, struct team_region, link);
	return NULL;
}

static uint32_t region_index(const struct team_world *w, const struct team_region *r)
{
	const struct list *pos;
	uint32_t i = 0;

	for (pos = w->regions.next; pos != &r->link; pos = pos->next)
		i++;
	return i;
}

static void serve(struct team_world *w, const struct atomic_request *q,
		  struct atomic_reply *reply)
{
	struct team_region *r = region_at(w, q->region);

	reply->error = -EFAULT;
	if (!r || !atomic_ok(q->offset, q->size, q->op) || q->offset > r->len ||
	    r->len - q->offset < q->size)
		return;
	reply->old = apply(r->base + q->offset, q->size, q->op, q->operand, q->compare);
	reply->error = 0;
}

/* Does what peers have asked for. */
bool atomics_poll(struct team_world *w)
{
	bool any = false;
	struct sci_status status;
	struct sci_msg *msg;

	while (!sci_tmatch(w->ep, NULL, TEAM_CTX_ATOMIC, 0, UINT64_MAX, 0, &msg, &status)) {
		struct atomic_request q;
		struct atomic_reply reply = { 0 };
		struct iovec iov = { &reply, sizeof(reply) };
		struct sci_send send = {
			.iov = &iov, .n = 1, .tag = status.tag,
			.context = TEAM_CTX_ATOMIC_REPLY,
			.flags = SCI_SEND_TAGGED | SCI_SEND_COPY,
		};

		if (status.len == sizeof(q) && !sci_msg_copy(msg, 0, &q, sizeof(q)))
			serve(w, &q, &reply);
		else
			reply.error = -EPROTO;
		sci_msg_free(msg);
		/* no room: the peer's receive ends with the peer, as ours would */
		while (status.peer && sci_isendm(status.peer, &send, NULL) == -EAGAIN)
			sci_progress(w->ep);
		any = true;
	}
	return any;
}

static int reply_wait(struct team_world *w, int rank, struct sci_req *req)
{
	struct team_wait wait;
	int ret;

	team_wait_init(&wait, -1);
	while ((ret = sci_test(req, NULL)) == -EAGAIN) {
		team_wait_more(w, &wait);
		if (!world_dead(w, rank) || sci_cancel(req))
			continue;
		sci_wait(req, -1, NULL);
		return -ECONNRESET;
	}
	return ret == -ENOTCONN ? -ECONNRESET : ret;
}

static int far_atomic(struct team_world *w, int rank, const struct atomic_request *q,
		      uint64_t *old)
{
	uint64_t tag = sci_fetch_add(&w->atomics->next, 1);
	struct atomic_reply reply;
	struct sci_peer *peer;
	struct sci_req *recv, *send;
	int ret = world_peer(w, rank, &peer);

	ret = ret ? ret : sci_itrecv(w->ep, peer, TEAM_CTX_ATOMIC_REPLY, tag, 0, &reply,
				     sizeof(reply), &recv);
	if (ret)
		return ret;
	ret = sci_itsend(peer, TEAM_CTX_ATOMIC, tag, q, sizeof(*q), &send);
	if (ret) {
		sci_cancel(recv);
		sci_wait(recv, -1, NULL);
		return ret;
	}
	ret = reply_wait(w, rank, send);
	if (ret) {
		sci_cancel(recv);
		sci_wait(recv, -1, NULL);
		return ret;
	}
	ret = reply_wait(w, rank, recv);
	if (ret)
		return ret;
	if (old)
		*old = reply.old;
	return (int)reply.error;
}

/* ---- calls ---- */

int sci_team_atomic(struct sci_team *team, void *word, unsigned int size,
		    enum sci_atomic op, uint64_t operand, uint64_t compare,
		    uint64_t *old, int rank)
{
	struct atomic_request q = { .operand = operand, .compare = compare,
				    .op = (uint8_t)op, .size = (uint8_t)size };
	const struct sci_key *key;
	uint64_t value;
	void *ptr;
	int ret;

	if (!team || !atomic_ok((size_t)word, size, op))
		return -EINVAL;
	ret = world_usable(team->world);
	ret = ret ? ret : symmetric_at(team, word, size, rank, &ptr, &key, &q.offset);
	if (ret)
		return ret;
	if (!ptr) {
		q.region = region_index(team->world, region_find(team->world, word, size));
		return far_atomic(team->world, team->members[rank].world, &q, old);
	}
	value = apply(ptr, size, op, operand, compare);
	if (old)
		*old = value;
	if (op != SCI_ATOMIC_GET)
		world_wake(team->world, team->members[rank].world);
	return 0;
}

int sci_team_atomic_nbi(struct sci_team *team, void *word, unsigned int size,
			enum sci_atomic op, uint64_t operand, uint64_t compare,
			uint64_t *old, int rank)
{
	return sci_team_atomic(team, word, size, op, operand, compare, old, rank);
}
