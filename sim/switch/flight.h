/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: packets on their way
 *
 * A packet moves all the way at once, from point to point. The delays of its way add up, and it
 * waits for their sum at the end. A packet that a point holds back, so that others overtake it,
 * moves on from there later.
 */
#ifndef SIM_SWITCH_FLIGHT_H
#define SIM_SWITCH_FLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/switch/loop.h"
#include "sim/switch/protocol.h"

struct fabric;
struct node;
struct point;
struct station;

/**
 * struct flight - a packet
 * @next: entry in the list of packets that are ready to go on
 * @source, @target: nodes; @target is NULL if there is no such node
 * @at: the packet's present point; @left: it has passed the point of its source
 * @holder: the point that holds it back
 * @delay: delay until now, in ns
 * @size: size of the frame
 * @response, @corrupted: known before corruption changes the packet
 */
struct flight {
	struct timer timer;
	struct flight *next;
	struct node *source, *target;
	struct station *at;
	struct point *holder;
	uint64_t delay;
	uint32_t size;
	bool left, response, corrupted;
	struct frame_packet frame;
};

/* Send @p->frame, which has been checked, on its way. @p belongs to the caller. */
void flight_begin(struct node *source, struct flight *p);

/* Send a copy from the same place, after the present packet. Return false if there is no room. */
bool flight_copy(const struct flight *p);

/* Hold the packet back at @pt. Return false if there is no room. */
bool flight_hold(struct point *pt, const struct flight *p);

/* Release the packet that @pt holds back, after the present one. */
void flight_release(struct point *pt);

/* Free all packets when the daemon ends. */
void flight_free_all(struct fabric *f);

#endif
