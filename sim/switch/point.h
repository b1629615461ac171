/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: points
 *
 * A packet passes points: its sender's way out, then each link of its route.  A
 * point has settings, counters and a random generator of its own.  A number that the
 * generator draws depends on the seed, on the point's name, and on the count of
 * packets at the point since the generator began: not on other points.
 */
#ifndef SIM_SWITCH_POINT_H
#define SIM_SWITCH_POINT_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/switch/setting.h"

enum counter {
	COUNT_FORWARDED,	/* packets that left here */
	COUNT_BYTES,		/* ... and their bytes */
	COUNT_LOST,
	COUNT_DUPLICATED,
	COUNT_REORDERED,
	COUNT_CORRUPTED,
	COUNT_GARBLED,
	COUNT_DAMAGED,
	/* counters of nodes only */
	COUNT_DELIVERED,	/* to it */
	COUNT_NO_NODE,		/* packets from it to a node that is not there */
	COUNT_OVERFLOW,		/* lost: too many packets wait for it, or from it */
	COUNT_MALFORMED,	/* frames of it that are invalid */
	COUNTERS,
};

/*
 * sci.ko's control packets (kmod/core/session.h), which are the data of mailbox packets. A
 * control packet of type DATA ends with a message.
 */
#define MESSAGE_AT	16u
#define MESSAGE_SIZE	48u
#define MESSAGE_TYPES	13u	/* 1 and so on */
#define CONTROL_TYPE	1u	/* offset of the type in a control packet */
#define CONTROL_DATA	3u

const char *counter_name(enum counter c);
bool counter_of_nodes_only(enum counter c);

struct fabric;
struct flight;
struct action;

/**
 * struct point - begins struct link; is in struct node
 * @hash: hash of its name
 * @came: packets, since the generator began
 * @plain: no fault is set, and no packet held back: packets just pass
 * @initial: settings at the start of the daemon
 * @actions: list of actions that a packet or a time triggers
 * @action_at: the first packet of these; UINT64_MAX: none
 * @held: packet held back, for @hold_left others
 * @message: the last message that passed: it may be repeated in place of a later one
 */
struct point {
	struct fabric *fabric;
	char name[80];
	bool is_node, plain;
	uint64_t hash, came;
	uint64_t value[KEYS], initial[KEYS];
	uint64_t counter[COUNTERS];
	struct action *actions;
	uint64_t action_at;
	struct flight *held;
	uint64_t hold_left;
	uint8_t message[MESSAGE_SIZE];
};

void point_init(struct point *pt, struct fabric *f, const char *name,
		bool is_node);
void point_set(struct point *pt, enum key k, uint64_t value);
void point_reset(struct point *pt);	/* Restore the settings of the daemon's start. */
void point_update(struct point *pt);	/* call it after a change of @held or @value */

/* Draw a number; each @salt has numbers of its own. */
uint64_t point_draw(const struct point *pt, unsigned int salt);

#endif
