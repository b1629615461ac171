/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Nodes. A node is known for ever after it was named, and present while an adapter is attached. */
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
 * @told_up: state of the link that the adapter was told last
 * @flying: list of packets that the node sent and that have not arrived
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

static inline bool node_id_good(uint64_t id)
{
	return id && id % 4 == 0 && id <= NODE_ID_MAX;
}

bool node_id_parse(const char *text, uint16_t *id);

struct node *node_find(struct fabric *f, uint16_t id);	/* return NULL if it is not known */
struct node *node_new(struct fabric *f, uint16_t id);	/* return NULL without memory */

/* Add a node to the default ring, which needs no topology file; NULL: no memory. */
struct node *node_join_default(struct fabric *f, uint16_t id);

struct node *node_of_point(struct point *pt);

/* Return whether an adapter is attached and its connection works. */
bool node_there(const struct node *n);
bool node_link_up(const struct node *n);
/* Tell the node the state of its link, if the state has changed or @anyway is true. */
void node_tell_link(struct node *n, bool anyway);
void node_kill(struct node *n);

static inline void node_count(struct node *n, enum counter c)
{
	n->point.counter[c]++;
}

#endif
