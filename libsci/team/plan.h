/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: plans
 *
 * A collective call of members that do not all share memory executes a plan: a list of steps in
 * rounds. All messages of a round are in flight together. The next round begins when all of them
 * have completed. Copies, folds and functions are executed at the beginning of their round, in order,
 * before its messages start. A call of the near team also has its own round.
 *
 * A plan is built, with all memory that it needs, before its first message. So a member without
 * memory returns -ENOMEM before other members depend on it, and can repeat the call. Each team has
 * a plan for blocking calls. team_new() reserves its memory, so that the library can always
 * exchange errors and hellos.
 */
#ifndef LIBSCI_TEAM_PLAN_H
#define LIBSCI_TEAM_PLAN_H

#include "libsci/team/team.h"

enum plan_kind { PLAN_SEND, PLAN_RECV, PLAN_COPY, PLAN_FOLD, PLAN_CALL, PLAN_NEAR };

struct plan_step {
	enum plan_kind kind;
	unsigned int round;
	int rank;
	const uint8_t *from;
	uint8_t *to;
	size_t len;
	const size_t *len_at;		/* NULL, or the length when the message starts */
	void (*call)(struct sci_coll *c);
	struct sci_coll *near;
	struct sci_peer *peer;
	struct sci_req *req;
};

#define PLAN_TMPS	4
#define PLAN_NEARS	3

/* Memory for a partial result. A short result uses @kept, which is kept for the next call. */
struct plan_tmp {
	uint8_t *kept;
	size_t kept_len;
	uint8_t *more;			/* for this call alone; NULL: the call uses @kept */
};

/* The phases in which the steps of a round start. */
enum plan_phase { PLAN_LOCAL, PLAN_RECEIVES, PLAN_SENDS, PLAN_STARTED };

struct plan {
	struct plan_step *steps;
	size_t n;
	size_t room;
	size_t at;			/* first step of the current round */
	size_t next;			/* first step that the phase has not started */
	enum plan_phase phase;
	unsigned int round;		/* new steps belong to this round */
	int error;			/* error of a step that could not be added */
	uint64_t tag;
	struct plan_tmp tmp[PLAN_TMPS];
	struct sci_coll near[PLAN_NEARS];	/* calls of the near team */
	unsigned int nears;
	void *state;			/* of functions in the plan, in a plan_tmp() */
};

/* plan_send() to plan_near() add a step. They store an error in plan->error. */
void plan_send(struct plan *p, int rank, const void *buf, size_t len);
void plan_recv(struct plan *p, int rank, void *buf, size_t len);
/* The length is read from @len when the message starts. Length 0: there is no message. */
void plan_send_later(struct plan *p, int rank, const void *buf, const size_t *len);
void plan_recv_later(struct plan *p, int rank, void *buf, const size_t *len);
void plan_copy(struct plan *p, void *to, const void *from, size_t len);
void plan_fold(struct plan *p, void *inout, const void *in, size_t len);
void plan_call(struct plan *p, void (*call)(struct sci_coll *c));
struct sci_coll *plan_near(struct plan *p, struct sci_team *near, enum coll_kind kind,
			   int root);
void plan_round(struct plan *p);
uint8_t *plan_tmp(struct plan *p, int i, size_t len);

/* Add the steps of @c to @p. */
void plan_build(struct sci_coll *c, struct plan *p);

static inline size_t part_len(const struct sci_coll *c, int rank)
{
	return c->lens ? c->lens[rank] : c->len;
}

static inline size_t part_at(const struct sci_coll *c, int rank)
{
	return c->lens ? coll_offset(c->lens, c->offsets, rank) : (size_t)rank * c->len;
}

/* Return whether the ranks of each group are consecutive. All members get the same answer. */
static inline bool groups_in_order(const struct sci_team *t)
{
	for (int i = 0; i < t->size; i++)
		if (t->sorted[i] != i)
			return false;
	return true;
}

/**
 * struct scatter - the parts of a scatter
 * @src: in the root: all parts
 * @dst: the caller's part, of @len bytes
 * @lens: NULL if all parts have @len bytes; else the lengths of all parts, in units of @unit bytes
 * @offsets: in @src, in bytes; NULL: the parts follow one another
 * @known: all members know @lens; else only the root does
 */
struct scatter {
	int root;
	const uint8_t *src;
	uint8_t *dst;
	size_t len, unit;
	const size_t *lens, *offsets;
	bool known;
};

#define PAIRS		8		/* pairs of an exchange in flight together */

/* leaders.c */
void plan_gather(struct sci_coll *c, struct plan *p);
void plan_scatter(struct sci_coll *c, struct plan *p, const struct scatter *s);
/* Scatter @data, the parts of the caller's group in its leader, through shared memory. */
void plan_near_scatter(struct sci_coll *c, struct plan *p, const struct scatter *s,
		       const uint8_t *data);
void plan_alltoall(struct sci_coll *c, struct plan *p);

#endif
