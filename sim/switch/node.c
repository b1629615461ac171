// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <stdio.h>
#include <stdlib.h>

#include "sim/switch/answer.h"
#include "sim/switch/conn.h"
#include "sim/switch/node.h"
#include "sim/switch/protocol.h"

bool node_id_parse(const char *text, uint16_t *id)
{
	uint64_t value;

	if (!parse_number(text, NODE_ID_MAX, &value) || !node_id_is_valid(value))
		return false;
	*id = (uint16_t)value;
	return true;
}

struct node *node_find(struct fabric *f, uint16_t id)
{
	return node_id_is_valid(id) ? f->node[id / 4] : NULL;
}

struct node *node_new(struct fabric *f, uint16_t id)
{
	struct node *n = calloc(1, sizeof(*n));
	char name[8];

	if (!n)
		return NULL;
	snprintf(name, sizeof(name), "%u", id);
	point_init(&n->point, f, name, true);
	n->fabric = f;
	n->id = id;
	f->node[id / 4] = n;
	return n;
}

struct node *node_join_default(struct fabric *f, uint16_t id)
{
	struct node *n = node_new(f, id);
	struct answer a = { 0 };

	if (n && !topology_join_default(f, n, &a)) {
		f->node[id / 4] = NULL;
		free(n);
		n = NULL;
	}
	answer_free(&a);
	return n;
}

struct node *node_of_point(struct point *pt)
{
	return container_of(pt, struct node, point);
}

bool node_there(const struct node *n)
{
	return n->conn && !n->conn->failing;
}

bool node_link_up(const struct node *n)
{
	const struct station *s = n->station;
	unsigned int i;

	for (i = 0; !n->point.value[KEY_DOWN] && i < s->outs; i++)
		if (!s->out[i]->point.value[KEY_DOWN])
			return true;
	return false;
}

void node_tell_link(struct node *n, bool anyway)
{
	struct frame frame = { .kind = FRAME_LINK, .node = n->id };
	bool up;

	if (!node_there(n))
		return;
	up = node_link_up(n);
	if (up == n->told_up && !anyway)
		return;
	n->told_up = up;
	frame.value = up;
	conn_send(n->conn, &frame, sizeof(frame), -1);
}

void node_kill(struct node *n)
{
	if (!node_there(n))
		return;
	fabric_note(n->fabric, "node %u: killed", n->id);
	conn_fail(n->conn);
}
