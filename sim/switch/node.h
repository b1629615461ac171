/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Nodes. A node exists from its first use on, and is attached while its adapter is connected. */
#ifndef SIM_SWITCH_NODE_H
#define SIM_SWITCH_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/switch/fabric.h"
#include "sim/switch/point.h"

#define NODE_ID_RULE	"a node id is a multiple of 4 from 4 to 65532"

/**
 * struct node - a node of the fabric
 * @conn: connection of its adapter; NULL: no adapter is attached
 * @told_up: state of the link in the last report to the adapter
 * @flying: number of packets of the node that are delayed or held back
 */
struct node {
	struct point point;
	struct fabric *fabric;
	struct station *station;
	struct conn *conn;
	uint16_t id;
	bool told_up;
	unsigned int flying;
};

static inline bool node_id_is_valid(uint64_t id)
{
	return id && id % 4 == 0 && id <= NODE_ID_MAX;
}

bool node_id_parse(const char *text, uint16_t *id);

struct node *node_find(struct fabric *f, uint16_t id);	/* return NULL if it does not exist */
struct node *node_new(struct fabric *f, uint16_t id);	/* return NULL without memory */

/* Add a node to the ring of a daemon without topology file. Return NULL without memory. */
struct node *node_join_default(struct fabric *f, uint16_t id);

struct node *node_of_point(struct point *pt);

/* Return whether an adapter is attached and its connection works. */
bool node_there(const struct node *n);
bool node_link_up(const struct node *n);
/* Report the state of its link to the adapter, if the state has changed or @anyway is true. */
void node_tell_link(struct node *n, bool anyway);
void node_kill(struct node *n);

static inline void node_count(struct node *n, enum counter c)
{
	n->point.counter[c]++;
}

#endif
