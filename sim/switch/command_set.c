// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <string.h>

#include "sim/switch/action.h"
#include "sim/switch/answer.h"
#include "sim/switch/command.h"
#include "sim/switch/fabric.h"
#include "sim/switch/node.h"
#include "sim/switch/words.h"

#define PACKETS_MAX	(UINT64_MAX / 4)

/* ---- after and for ---- */

static bool when_parse(const char *first, const char *second,
		       struct when *when)
{
	if (!second) {
		when->unit = WHEN_TIME;
		return parse_time(first, NULL, &when->count);
	}
	if (!strcmp(second, "packets") || !strcmp(second, "packet")) {
		when->unit = WHEN_PACKETS;
		return parse_number(first, PACKETS_MAX, &when->count);
	}
	when->unit = WHEN_TIME;
	return parse_time(first, second, &when->count);
}

static unsigned int word_find(const struct words *w, const char *word)
{
	unsigned int i;

	for (i = 1; i < w->count; i++)
		if (!strcmp(w->word[i], word))
			return i;
	return w->count;
}

/* Remove "@word N [unit]" from the end of @w. */
static bool when_take(struct words *w, const char *word, struct when *when,
		      struct answer *a)
{
	unsigned int i = word_find(w, word), more = w->count - i;

	if (!more)
		return true;
	if (more < 2 || more > 3 ||
	    !when_parse(w->word[i + 1], more == 3 ? w->word[i + 2] : NULL, when))
		return answer_fail(a, "%s what? \"%s 10 packets\", \"%s 10ms\"",
				   word, word, word);
	w->count = i;
	return true;
}

/* Remove "after ..." and "for ..." from the end of @w. */
static bool span_parse(struct words *w, struct span *span, struct answer *a)
{
	*span = (struct span){ 0 };
	return when_take(w, "for", &span->lasts, a) &&
	       when_take(w, "after", &span->after, a);
}

/* ---- points of a name ---- */

typedef bool point_fn(struct point *pt, void *arg);

static bool nodes_each(struct fabric *f, point_fn *fn, void *arg)
{
	unsigned int i;

	for (i = 0; i < NODES; i++)
		if (f->node[i] && !fn(&f->node[i]->point, arg))
			return false;
	return true;
}

static bool links_each(struct link **link, unsigned int n, point_fn *fn,
		       void *arg)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (!fn(&link[i]->point, arg))
			return false;
	return true;
}

/* Call @fn for the point of a node. Without a topology file, add the node if it is new. */
static bool command_set_node(struct fabric *f, uint16_t id, point_fn *fn, void *arg,
			     struct answer *a)
{
	struct node *n = node_find(f, id);

	if (!n && f->topology.fixed)
		return answer_fail(a, "no node %u in the topology", id);
	if (!n)
		n = node_join_default(f, id);
	return n ? fn(&n->point, arg) : answer_fail(a, "out of memory");
}

bool command_points(struct fabric *f, const char *name, point_fn *fn, void *arg,
		    struct answer *a)
{
	struct topology *t = &f->topology;
	struct ring *r;
	struct link *l;
	uint16_t id;

	if (!strcmp(name, "all"))
		return nodes_each(f, fn, arg);
	if (!strcmp(name, "links"))
		return links_each(t->link, t->links, fn, arg);
	if (node_id_parse(name, &id))
		return command_set_node(f, id, fn, arg, a);
	r = topology_find_ring(f, name);
	if (r)
		return links_each(r->link, r->links, fn, arg);
	l = topology_find_link(f, name);
	if (l)
		return fn(&l->point, arg);
	return answer_fail(a, "%.80s: no such node, link or ring", name);
}

/* ---- set ---- */

struct change {
	enum key key;
	uint64_t value;
	struct span span;
	struct answer *answer;
};

static bool point_set_values(struct point *pt, void *arg)
{
	const struct change *c = arg;

	if (key_of_nodes_only(c->key) && !pt->is_node)
		return answer_fail(c->answer, "%s is for nodes",
				   key_name(c->key));
	if (!c->span.after.unit && !c->span.lasts.unit)
		actions_cancel(pt, c->key);
	return action_set(pt, c->key, c->value, &c->span) ||
	       answer_fail(c->answer, "out of memory");
}

static bool setting_change(struct fabric *f, const char *name, struct change *c,
			   struct answer *a)
{
	c->answer = a;
	if (!command_points(f, name, point_set_values, c, a))
		return false;
	if (c->span.after.unit || c->span.lasts.unit)
		return true;
	if (!strcmp(name, "all"))
		f->node_preset[c->key] = c->value;
	if (!strcmp(name, "links"))
		f->link_preset[c->key] = c->value;
	return true;
}

bool command_set(struct fabric *f, struct words *w, struct answer *a)
{
	struct change c = { 0 };
	const char *wrong;

	if (!span_parse(w, &c.span, a))
		return false;
	if (w->count != 4)
		return answer_fail(a, "set NAME KEY VALUE");
	if (!key_find(w->word[2], &c.key))
		return answer_fail(a, "%.40s: nothing to be set", w->word[2]);
	wrong = key_parse(c.key, w->word[3], &c.value);
	if (wrong)
		return answer_fail(a, "%s %.40s: %s", w->word[2], w->word[3],
				   wrong);
	return setting_change(f, w->word[1], &c, a);
}

bool command_link(struct fabric *f, struct words *w, struct answer *a)
{
	struct change c = { .key = KEY_DOWN };

	if (!span_parse(w, &c.span, a))
		return false;
	c.value = !strcmp(w->word[1], "down");
	if (w->count != 3 || (!c.value && strcmp(w->word[1], "up")))
		return answer_fail(a, "link down|up NAME");
	return setting_change(f, w->word[2], &c, a);
}

bool command_kill(struct fabric *f, struct words *w, struct answer *a)
{
	struct node *n;
	struct span span;

	if (!span_parse(w, &span, a))
		return false;
	if (w->count != 2 || span.lasts.unit)
		return answer_fail(a, "kill NODE [after WHEN]");
	n = command_node(f, w->word[1], a);
	if (!n)
		return false;
	return action_kill(&n->point, &span.after) ||
	       answer_fail(a, "out of memory");
}
