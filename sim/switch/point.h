/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: points
 *
 * A packet passes points: the output of its sender, then each link of its route. A point has
 * settings, counters and a random generator of its own. A number of the generator depends on the
 * seed, on the point's name, and on the count of packets at the point since the start of the
 * generator. The number does not depend on other points.
 */
#ifndef SIM_SWITCH_POINT_H
#define SIM_SWITCH_POINT_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/switch/setting.h"

enum counter {
	COUNT_FORWARDED,	/* packets that have left the point */
	COUNT_BYTES,		/* bytes of the forwarded packets */
	COUNT_LOST,
	COUNT_DUPLICATED,
	COUNT_REORDERED,
	COUNT_CORRUPTED,
	COUNT_GARBLED,
	COUNT_DAMAGED,
	/* counters of nodes only */
	COUNT_DELIVERED,	/* packets to the node */
	COUNT_NO_NODE,		/* packets of the node to a node that is not attached */
	COUNT_OVERFLOW,		/* lost: too many packets to or from the node wait */
	COUNT_MALFORMED,	/* invalid frames of the node */
	COUNTERS,
};

/*
 * Layout of sci.ko's control packets (kmod/core/session.h), which are the data of mailbox
 * packets. A control packet of type DATA ends with a message.
 */
#define MESSAGE_AT	16u
#define MESSAGE_SIZE	48u
#define MESSAGE_TYPES	13u	/* types of messages are 1 to 13 */
#define CONTROL_TYPE	1u	/* offset of the type in a control packet */
#define CONTROL_DATA	3u

const char *counter_name(enum counter c);
bool counter_of_nodes_only(enum counter c);

struct fabric;
struct flight;
struct action;

/**
 * struct point - a point; the first member of struct link and of struct node
 * @hash: hash of @name
 * @came: number of packets since the start of the daemon or the last reset
 * @base: value of @came at the start of the generator
 * @plain: no fault is set, and no packet is held back
 * @initial: settings at the start of the daemon
 * @actions: list of actions that a packet or a time triggers
 * @action_at: number of the first packet that triggers an action; UINT64_MAX: none
 * @held: packet that is held back until @hold_left other packets have passed
 * @message: the previous message, which may replace the next one
 */
struct point {
	struct fabric *fabric;
	char name[80];
	bool is_node, plain;
	uint64_t hash, came, base;
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
