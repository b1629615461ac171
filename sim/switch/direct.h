/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: direct nodes
 *
 * Each direct node can map the memory of every other direct node in its window. Before a machine
 * frees exported memory, all other nodes unmap this memory and confirm the invalidation. If a node
 * closes its end of the connection, this counts as a confirmation.
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

/* Report a direct adapter that has attached or detached to all other direct adapters. */
void direct_came(struct fabric *f, struct conn *c);
void direct_gone(struct fabric *f, struct conn *c);

/* Count the end of @c as an answer to all invalidations: its adapter maps no memory any more. */
void direct_unmapped(struct fabric *f, const struct conn *c);

void direct_exports(struct fabric *f, struct conn *c,
		    const struct frame_exports *e);

/*
 * Begin to invalidate an export at all peers. Return false if the adapter has too many
 * invalidations that are not complete, or without memory.
 */
bool direct_invalidate(struct fabric *f, struct conn *c, uint32_t id);
void direct_invalidated(struct fabric *f, struct conn *c,
			const struct frame *answer);
void direct_free(struct fabric *f);

#endif
