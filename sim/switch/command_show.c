// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <inttypes.h>
#include <string.h>

#include "sim/switch/answer.h"
#include "sim/switch/command.h"
#include "sim/switch/conn.h"
#include "sim/switch/fabric.h"
#include "sim/switch/node.h"
#include "sim/switch/words.h"

static void node_show(const struct node *n, struct answer *a)
{
	const char *link = node_link_up(n) ? "up" : "down";

	if (node_there(n))
		answer_add(a, "%u %s %s waiting %u\n", n->id, link,
			   n->conn->attach.direct ? "direct" : "packets",
			   n->conn->packets);
	else
		answer_add(a, "%u gone\n", n->id);
}

bool command_nodes(struct fabric *f, struct words *w, struct answer *a)
{
	unsigned int i;

	(void)w;
	for (i = 0; i < NODES; i++)
		if (f->node[i])
			node_show(f->node[i], a);
	return true;
}

bool command_links(struct fabric *f, struct words *w, struct answer *a)
{
	const struct topology *t = &f->topology;
	unsigned int i;

	(void)w;
	for (i = 0; i < t->links; i++) {
		const struct link *l = t->link[i];

		answer_add(a, "%s to %s %s\n", l->point.name, l->to->name,
			   l->point.value[KEY_DOWN] ? "down" : "up");
	}
	return true;
}

static struct node *node_get_known(struct fabric *f, const char *name,
				   struct answer *a)
{
	struct node *n = NULL;
	uint16_t id;

	if (node_id_parse(name, &id))
		n = node_find(f, id);
	if (!n)
		answer_fail(a, "%.40s: no such node", name);
	return n;
}

bool command_route(struct fabric *f, struct words *w, struct answer *a)
{
	struct node *from = node_get_known(f, w->word[1], a);
	struct node *to = node_get_known(f, w->word[2], a);
	struct station *at;

	if (!from || !to)
		return false;
	for (at = from->station; at != to->station;) {
		const struct link *l = topology_next(f, at, to->station);

		if (!l)
			return answer_fail(a, "no way from %u to %u", from->id,
					   to->id);
		answer_add(a, "%s\n", l->point.name);
		at = l->to;
	}
	return true;
}

static bool counters_show(struct point *pt, void *arg)
{
	struct answer *a = arg;
	unsigned int c;

	answer_add(a, "%s", pt->name);
	for (c = 0; c < COUNTERS; c++)
		if (pt->is_node || !counter_of_nodes_only((enum counter)c))
			answer_add(a, " %s %" PRIu64,
				   counter_name((enum counter)c),
				   pt->counter[c]);
	answer_add(a, "\n");
	return true;
}

bool command_counters(struct fabric *f, struct words *w, struct answer *a)
{
	if (w->count == 2 && !topology_find_ring(f, w->word[1]) &&
	    !topology_find_link(f, w->word[1]) &&
	    strcmp(w->word[1], "all") && strcmp(w->word[1], "links") &&
	    !node_get_known(f, w->word[1], a))
		return false;
	if (w->count == 2)
		return command_points(f, w->word[1], counters_show, a, a);
	return command_points(f, "all", counters_show, a, a) &&
	       command_points(f, "links", counters_show, a, a);
}

bool command_get(struct fabric *f, struct words *w, struct answer *a)
{
	struct link *l = topology_find_link(f, w->word[1]);
	struct node *n = l ? NULL : node_get_known(f, w->word[1], a);
	const struct point *pt = l ? &l->point : n ? &n->point : NULL;
	enum key only = KEYS;
	unsigned int k;

	if (!pt)
		return false;
	if (w->count == 3 && !key_find(w->word[2], &only))
		return answer_fail(a, "%.40s: nothing to be set", w->word[2]);
	for (k = 0; k < KEYS; k++) {
		if ((only != KEYS && k != only) ||
		    (!pt->is_node && key_of_nodes_only((enum key)k)))
			continue;
		key_print(a, (enum key)k, pt->value[k]);
		answer_add(a, "\n");
	}
	return true;
}
