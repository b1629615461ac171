/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Load of the links.  network.c describes the topologies. */
#ifndef SIM_VTIME_NETWORK_H
#define SIM_VTIME_NETWORK_H

#include "sim/vtime/vtime.h"

/**
 * struct vt_network_load - the load of the links
 * @links: number of links
 * @busiest: busy time of the busiest link, in picoseconds
 * @mean: mean busy time of all links
 * @packets: number of packets sent; @bytes: their lengths with headers, counted once each
 */
struct vt_network_load {
	unsigned int links;
	uint64_t busiest;
	uint64_t mean;
	uint64_t packets;
	uint64_t bytes;
};

void vt_network_load(const struct vt_sim *s, struct vt_network_load *load);

void vt_network_clear(struct vt_sim *s);

/*
 * Get the neighbours of a node: the nodes before and after it, on a torus in its row and
 * in its column.  Each neighbour appears once.  Return their number.
 */
unsigned int vt_network_neighbours(const struct vt_sim *s, unsigned int node,
				   unsigned int out[4]);

#endif
