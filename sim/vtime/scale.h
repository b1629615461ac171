/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* The measurement of a collective operation of many nodes. */
#ifndef SIM_VTIME_SCALE_H
#define SIM_VTIME_SCALE_H

#include "sim/vtime/network.h"
#include "sim/vtime/vtime.h"

enum scale_pattern {
	SCALE_BARRIER,
	SCALE_BROADCAST,
	SCALE_ALLREDUCE,
	SCALE_NEIGHBOURS,
	SCALE_ALLTOALL,
	SCALE_STAR,
	SCALE_PATTERNS
};

/* Return the pattern's name on the command line; NULL: no such pattern. */
const char *scale_name(enum scale_pattern pattern);

/**
 * struct scale_setup - the setup of a run
 * @topology: see network.c; NULL: one ring
 * @bytes: length of a message, see collective.h
 * @loss: number of lost packets in a million
 */
struct scale_setup {
	const struct vt_profile *profile;
	const char *topology;
	enum scale_pattern pattern;
	unsigned int nodes;
	size_t bytes;
	uint64_t seed;
	uint32_t loss;
};

/**
 * struct scale_result - the result of a run
 * @first: picoseconds of the first run, which makes the connections
 * @time: picoseconds of a run with all connections and rings, on the slowest node
 * @load: load of the links during @time
 * @peers: largest number of peers of a node; @all_peers: sum over all nodes
 * @receive: largest number of bytes of a node's memory that peers may write to;
 *	@all_receive: sum over all nodes
 * @att: largest number of entries in use in an adapter's table
 * @resent: lines and blocks that were written again
 * @events: number of events of the simulation
 * @host_bytes: memory of this process that the run has taken
 * @host_ns: time that the run has taken
 */
struct scale_result {
	uint64_t first;
	uint64_t time;
	struct vt_network_load load;
	uint64_t peers, all_peers;
	uint64_t receive, all_receive;
	uint32_t att;
	uint64_t resent;
	uint64_t events;
	uint64_t host_bytes;
	uint64_t host_ns;
};

/* Run the model. Return false, after printing an error, if the run failed or data was wrong. */
bool scale_run(const struct scale_setup *setup, struct scale_result *r);

#endif
