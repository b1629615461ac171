/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: actions that are due later
 *
 * A setting may change after a number of packets at its point, or after a time. After a further
 * number of packets or time, the setting may get its former value again.
 */
#ifndef SIM_SWITCH_ACTION_H
#define SIM_SWITCH_ACTION_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/switch/point.h"

enum when_unit { WHEN_NEVER, WHEN_PACKETS, WHEN_TIME };

struct when {
	enum when_unit unit;	/* WHEN_NEVER: no time was given */
	uint64_t count;		/* packets, or ns */
};

struct span {
	struct when after, lasts;
};

/* Set @k of @pt, now or later. Return false without memory. */
bool action_set(struct point *pt, enum key k, uint64_t value,
		const struct span *span);

/* Disconnect the point's node, now or later. Return false without memory. */
bool action_kill(struct point *pt, const struct when *after);

/* Cancel later actions on @k; KEYS: all actions. */
void actions_cancel(struct point *pt, enum key k);

/* Run the actions that are due at packet number @pt->came. */
void actions_run(struct point *pt);

#endif
