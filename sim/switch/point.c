// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/switch/action.h"
#include "sim/switch/fabric.h"
#include "sim/switch/node.h"
#include "sim/switch/point.h"

static const char *const names[COUNTERS] = {
	[COUNT_FORWARDED] = "forwarded", [COUNT_BYTES] = "bytes",
	[COUNT_LOST] = "lost", [COUNT_DUPLICATED] = "duplicated",
	[COUNT_REORDERED] = "reordered", [COUNT_CORRUPTED] = "corrupted",
	[COUNT_GARBLED] = "garbled", [COUNT_DAMAGED] = "damaged",
	[COUNT_DELIVERED] = "delivered", [COUNT_NO_NODE] = "no-node",
	[COUNT_OVERFLOW] = "overflow", [COUNT_MALFORMED] = "malformed",
};

const char *counter_name(enum counter c)
{
	return names[c];
}

bool counter_of_nodes_only(enum counter c)
{
	return c >= COUNT_DELIVERED;
}

/* FNV-1a */
static uint64_t point_hash(const char *name)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	return h;
}

/* Mix a number with the finalizer of splitmix64. */
static uint64_t point_mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

uint64_t point_draw(const struct point *pt, unsigned int salt)
{
	uint64_t x = point_mix(pt->fabric->seed ^ pt->hash);

	return point_mix(point_mix(x + pt->came - pt->base) + salt);
}

void point_update(struct point *pt)
{
	unsigned int k;

	pt->plain = !pt->held;
	for (k = 0; k < KEYS; k++)
		if (key_is_fault((enum key)k) && pt->value[k])
			pt->plain = false;
}

void point_init(struct point *pt, struct fabric *f, const char *name,
		bool is_node)
{
	const uint64_t *preset = is_node ? f->node_preset : f->link_preset;

	pt->fabric = f;
	pt->is_node = is_node;
	snprintf(pt->name, sizeof(pt->name), "%s", name);
	pt->hash = point_hash(pt->name);
	pt->action_at = UINT64_MAX;
	memcpy(pt->value, preset, sizeof(pt->value));
	fabric_presets(pt->initial);
	point_update(pt);
}

/* Return the node of a point; NULL: the point is a link of a switch. */
static struct node *point_node(struct point *pt)
{
	return pt->is_node ? node_of_point(pt) :
			     container_of(pt, struct link, point)->from->node;
}

void point_set(struct point *pt, enum key k, uint64_t value)
{
	struct node *n = point_node(pt);

	pt->value[k] = value;
	point_update(pt);
	if (k == KEY_DOWN && n)
		node_tell_link(n, false);
}

void point_reset(struct point *pt)
{
	actions_cancel(pt, KEYS);
	memcpy(pt->value, pt->initial, sizeof(pt->value));
	memset(pt->counter, 0, sizeof(pt->counter));
	pt->came = pt->base = 0;
	point_update(pt);
}
