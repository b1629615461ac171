/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the daemon
 *
 *	main		options, the loop
 *	  listen	sockets that clients connect to
 *	  conn		an adapter's socket, and the frames that wait for it
 *	    attach	the first frame of an adapter
 *	    receive	further frames of an adapter
 *	  node		nodes, and the state of their links
 *	  flight	a packet in flight
 *	    point	a place that a packet passes: settings, counters, generator
 *	    fault	faults of packets at a point
 *	    topology	the next place of a packet
 *	  action	settings that begin or end later
 *	  direct	memory of direct nodes, and the windows that map it
 *	  control	the control socket
 *	    command	the commands; command_set, command_show: most commands
 *	    garbage	the command "garbage"
 *	  ctl		the client of the control socket
 */
#ifndef SIM_SWITCH_FABRIC_H
#define SIM_SWITCH_FABRIC_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/switch/direct.h"
#include "sim/switch/listen.h"
#include "sim/switch/loop.h"
#include "sim/switch/setting.h"
#include "sim/switch/topology.h"

#define NODE_ID_MAX	65532u
#define NODES		(NODE_ID_MAX / 4 + 1)

struct conn;
struct control;

struct signals {
	struct watch watch;
	struct loop *loop;
};

/**
 * struct fabric - the state of the daemon
 * @node: nodes by id / 4; a node stays when its adapter detaches
 * @node_preset: settings of nodes that attach later; @link_preset: settings of later links
 * @ready, @ready_end: packets that move after the present packet
 * @garbage: state of the random generator of the command "garbage"
 */
struct fabric {
	struct loop loop;
	struct signals signals;
	struct listener adapters, controls;
	uint64_t seed;
	bool verbose;
	struct topology topology;
	struct node *node[NODES];
	uint64_t node_preset[KEYS], link_preset[KEYS];
	uint64_t node_initial[KEYS], link_initial[KEYS];
	struct conn *conns;
	struct control *clients;
	struct flight *ready, **ready_end;
	struct direct direct;
	uint64_t garbage, garbage_epoch;
};

/* Store the default settings in @value. */
void fabric_presets(uint64_t value[KEYS]);

int fabric_open(struct fabric *f);
void fabric_close(struct fabric *f);

/* Record the present settings, which `reset` will restore. */
void fabric_keep_initial(struct fabric *f);
void fabric_reset(struct fabric *f);
void fabric_seed(struct fabric *f, uint64_t seed);	/* Restart all generators. */

/* Call @fn for each link, and each known node. */
void fabric_each_point(struct fabric *f, bool nodes, bool links,
		       void (*fn)(struct point *pt));

__attribute__((format(printf, 1, 2)))
void fabric_warn(const char *fmt, ...);

/* Log a line, if the daemon is verbose. */
__attribute__((format(printf, 2, 3)))
void fabric_note(const struct fabric *f, const char *fmt, ...);

#endif
