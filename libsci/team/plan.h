/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: plans
 *
 * A collective call of members that do not all share memory executes a plan: a list of steps in
 * rounds. All messages of a round are in flight together. The next round begins when all of them
 * have completed. Copies and folds are executed at the beginning of their round, in order, before
 * its messages start. A call of the near team also has its own round.
 *
 * A plan is built, with all memory that it needs, before its first message. So a member without
 * memory returns -ENOMEM before other members depend on it, and can repeat the call. Each team has
 * a plan for blocking calls. team_new() reserves its memory, so that the library can always
 * exchange errors and hellos.
 */
#ifndef LIBSCI_TEAM_PLAN_H
#define LIBSCI_TEAM_PLAN_H

#include "libsci/team/team.h"

enum plan_kind { PLAN_SEND, PLAN_RECV, PLAN_COPY, PLAN_FOLD, PLAN_NEAR };

struct plan_step {
	enum plan_kind kind;
	unsigned int round;
	int rank;
	const uint8_t *from;
	uint8_t *to;
	size_t len;
	struct sci_coll *near;
	struct sci_peer *peer;
	struct sci_req *req;
};

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
	struct plan_tmp tmp[3];
	struct sci_coll near[2];	/* calls of the near team */
	unsigned int nears;
};

/* plan_send() to plan_near() add a step. They store an error in plan->error. */
void plan_send(struct plan *p, int rank, const void *buf, size_t len);
void plan_recv(struct plan *p, int rank, void *buf, size_t len);
void plan_copy(struct plan *p, void *to, const void *from, size_t len);
void plan_fold(struct plan *p, void *inout, const void *in, size_t len);
struct sci_coll *plan_near(struct plan *p, struct sci_team *near, enum coll_kind kind,
			   int root);
void plan_round(struct plan *p);
uint8_t *plan_tmp(struct plan *p, int i, size_t len);

/* Add the steps of @c to @p. */
void plan_build(struct sci_coll *c, struct plan *p);

#endif
