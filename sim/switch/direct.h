/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: direct nodes
 *
 * Each of them has the memory of every other in its window.  Before memory is
 * given back to its machine, all others take it out and say so; one that goes
 * counts as having said it.
 */
#ifndef SIM_SWITCH_DIRECT_H
#define SIM_SWITCH_DIRECT_H

#include <stdbool.h>
#include <stdint.h>

struct conn;
struct fabric;
struct frame;
struct frame_exports;
struct invalidation;

struct direct {
	struct invalidation *pending;
};

/* An adapter has attached, or one has gone; it may be a direct one. */
void direct_came(struct fabric *f, struct conn *c);
void direct_gone(struct fabric *f, struct conn *c);

void direct_exports(struct fabric *f, struct conn *c,
		    const struct frame_exports *e);

/* Return false if the adapter asks for too much at once. */
bool direct_invalidate(struct fabric *f, struct conn *c, uint32_t id);
void direct_invalidated(struct fabric *f, struct conn *c,
			const struct frame *answer);
void direct_free(struct fabric *f);

#endif
