/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: rings
 *
 * A ring is a cycle of links, each from one station to the next; packets travel in
 * this direction only. A station is a node or a switch, and may be on several
 * rings: at a station packets change from one ring to another. Packets take a shortest route. If
 * there are several, each station selects the link of the ring that was declared first. A torus
 * declares its rows before its columns, so its packets use dimension order.
 *
 * Without a file there is one ring, named "ring", of all nodes that ever
 * attached, by their ids.
 */
#ifndef SIM_SWITCH_TOPOLOGY_H
#define SIM_SWITCH_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/switch/point.h"

struct answer;
struct node;
struct station;

/**
 * struct link - a link of a ring, between two stations
 * @before: the station where the previous link of the ring begins, which leads to @from
 */
struct link {
	struct point point;
	struct station *from, *to, *before;
	unsigned int index;		/* place in struct topology */
};

/**
 * struct station - a node or a switch
 * @node: NULL: a switch
 * @next: for each station, the index of its first link on the route to this station,
 *	UINT32_MAX without a route; NULL before the first use
 */
struct station {
	char name[40];
	struct node *node;
	unsigned int index;
	struct link **out;
	unsigned int outs;
	uint32_t *next;
};

struct ring {
	char name[40];
	struct link **link;		/* the links in the ring's order */
	unsigned int links;
};

struct topology {
	bool fixed;			/* the rings are from a file */
	struct station **station;
	struct ring **ring;
	struct link **link;
	unsigned int stations, rings, links;
};

/*
 * After an error, the functions below store a text in @a and return false or NULL, and the topology
 * is unchanged, but may have a ring without links.
 */
struct station *topology_station(struct fabric *f, struct node *node,
				 const char *name, struct answer *a);
struct ring *topology_ring(struct fabric *f, const char *name,
			   struct answer *a);

/* Insert @s into the ring before link number @place; @r->links: at the end. */
bool topology_join(struct fabric *f, struct ring *r, struct station *s,
		   unsigned int place, struct answer *a);

/* Close the rings after links were added, and discard the routes. */
void topology_close(struct fabric *f);

/* Add a node to the ring that exists without a file. */
bool topology_join_default(struct fabric *f, struct node *n, struct answer *a);

struct ring *topology_find_ring(struct fabric *f, const char *name);
struct link *topology_find_link(struct fabric *f, const char *name);
struct station *topology_find_switch(struct fabric *f, const char *name);

/* Return the next link of the route; NULL: there is no route, or no memory. */
struct link *topology_next(struct fabric *f, const struct station *at,
			   struct station *target);

void topology_free(struct fabric *f);

/* Read a file; sci-switch(1) describes its lines. */
bool topology_read(struct fabric *f, const char *path, struct answer *a);

#endif
