/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: direct nodes
 *
 * Each direct node has the memory of every other one in its window. Before a machine frees
 * memory, all other nodes remove it from their windows and confirm that. A node that leaves
 * counts as confirmed.
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

/* Handle an adapter that has attached or has left; it may be a direct one. */
void direct_came(struct fabric *f, struct conn *c);
void direct_gone(struct fabric *f, struct conn *c);

void direct_exports(struct fabric *f, struct conn *c,
		    const struct frame_exports *e);

/*
 * Begin to invalidate an export at all peers. Return false if the adapter asks for too much at
 * once.
 */
bool direct_invalidate(struct fabric *f, struct conn *c, uint32_t id);
void direct_invalidated(struct fabric *f, struct conn *c,
			const struct frame *answer);
void direct_free(struct fabric *f);

#endif
