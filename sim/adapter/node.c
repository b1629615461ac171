// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * The nodes with which this node exchanges packets, at most 16383. The model keeps the state of
 * a node for ever, because a packet of the node may still be in flight.
 */
#include <stdlib.h>

#include "sim/adapter/model.h"

#define NODE(node)	((node) >> 2 & (NODES_FAN - 1))
#define NODES(node)	((node) >> 9)

/* Return the node, which must be valid; NULL: out of memory. */
struct node *node_get(struct sim_adapter *a, uint16_t node)
{
	struct nodes **ps = &a->nodes[NODES(node)];
	struct node *p;

	if (!*ps)
		*ps = calloc(1, sizeof(**ps));
	if (!*ps)
		return NULL;
	p = (*ps)->node[NODE(node)];
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->next = 1;
	link_init(&p->outstanding);
	(*ps)->node[NODE(node)] = p;
	return p;
}

/* Return the floor: no request to the node with a lower number is outstanding. */
uint32_t node_floor(const struct node *p)
{
	if (link_empty(&p->outstanding))
		return p->next;
	return LINK_OF(p->outstanding.next, struct transaction,
		       node_link)->packet.number;
}

/*
 * Return whether a request may be sent to the node. A request that was given up may still be in
 * the fabric; a later request waits until its floor tells the target to ignore the earlier one.
 */
bool node_ready(struct node *p)
{
	uint32_t floor = node_floor(p);

	if (p->held && (int32_t)(floor - p->gave_up) > 0)
		p->held = false;
	return !p->held && p->next - floor < PACKET_WINDOW;
}

static void node_each(struct sim_adapter *a, void (*fn)(struct node *p))
{
	for (unsigned int i = 0; i < NODES_FAN; i++)
		for (unsigned int j = 0; a->nodes[i] && j < NODES_FAN; j++)
			if (a->nodes[i]->node[j])
				fn(a->nodes[i]->node[j]);
}

static void node_renumber(struct node *p)
{
	p->next = 1;
	p->held = false;
	link_init(&p->outstanding);
}

static void node_discard(struct node *p)
{
	free(p->values);
	free(p);
}

/* Begin an epoch: number requests from 1. The state of received requests does not change. */
void node_restart(struct sim_adapter *a)
{
	node_each(a, node_renumber);
}

void node_free(struct sim_adapter *a)
{
	node_each(a, node_discard);
	for (unsigned int i = 0; i < NODES_FAN; i++)
		free(a->nodes[i]);
}
