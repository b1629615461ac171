/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: packets in flight
 *
 * A packet moves through all points of its route at once. At the end of the route, the packet
 * waits for the sum of the delays of the points. A packet that a point holds back, so that other
 * packets overtake it, continues its route later.
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
 * @next: next packet in the list fabric.ready
 * @source, @target: nodes; @target is NULL if the node does not exist
 * @at: the packet's present station; @left: the packet has passed the point of its source
 * @holder: the point that holds the packet back
 * @delay: delay until now, in ns
 * @size: size of the frame
 * @response: the packet is a response, as its sender has sent it
 * @corrupted: a point has corrupted the packet
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

/* Move the valid packet @p->frame along its route. The caller owns @p. */
void flight_begin(struct node *source, struct flight *p);

/* Move a copy of @p from the same point, after the present packet. Return false without room. */
bool flight_copy(const struct flight *p);

/* Hold a copy of @p back at @pt. Return false without room. */
bool flight_hold(struct point *pt, const struct flight *p);

/* Release the packet that @pt holds back; the released packet moves after the present packet. */
void flight_release(struct point *pt);

/* Free all packets when the daemon ends. */
void flight_free_all(struct fabric *f);

#endif
