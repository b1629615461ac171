// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/switch/answer.h"
#include "sim/switch/command.h"
#include "sim/switch/fabric.h"
#include "sim/switch/node.h"
#include "sim/switch/topology.h"
#include "sim/switch/words.h"

#define NAME_MAX_	24u	/* a link's name consists of two */
#define SIDE_MAX	16383u

static bool name_is_valid(struct fabric *f, const char *name, struct answer *a)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
		"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

	if (strspn(name, letters) != strlen(name) ||
	    strlen(name) > NAME_MAX_ || !isalpha((unsigned char)*name))
		return answer_fail(a, "%.40s: a name is a letter and up to 23 letters, digits, - and _",
				   name);
	if (!strcmp(name, "all") || !strcmp(name, "links"))
		return answer_fail(a, "%s: the name is taken", name);
	if (topology_find_ring(f, name) || topology_find_switch(f, name))
		return answer_fail(a, "%s is there already", name);
	return true;
}

static struct station *station_new(struct fabric *f, uint16_t id,
				   struct answer *a)
{
	struct node *n = node_find(f, id);

	if (n) {
		answer_fail(a, "node %u is there already", id);
		return NULL;
	}
	n = node_new(f, id);
	if (!n) {
		answer_fail(a, "out of memory");
		return NULL;
	}
	return topology_station(f, n, n->point.name, a);
}

/* Read a line "ring NAME NODE...". */
static bool ring_read(struct fabric *f, struct words *w, struct answer *a)
{
	struct station *s;
	struct ring *r;
	unsigned int i;
	uint16_t id;

	if (w->count < 3)
		return answer_fail(a, "ring NAME NODE...");
	if (!name_is_valid(f, w->word[1], a))
		return false;
	r = topology_ring(f, w->word[1], a);
	for (i = 2; r && i < w->count; i++) {
		if (!node_id_parse(w->word[i], &id))
			return answer_fail(a, "%.40s: " NODE_ID_RULE,
					   w->word[i]);
		s = station_new(f, id, a);
		if (!s || !topology_join(f, r, s, r->links, a))
			return false;
	}
	return r;
}

static bool ring_has_station(const struct ring *r, const struct station *s)
{
	unsigned int i;

	for (i = 0; i < r->links; i++)
		if (r->link[i]->from == s)
			return true;
	return false;
}

/* Read a line "switch NAME RING RING...". */
static bool switch_read(struct fabric *f, struct words *w, struct answer *a)
{
	struct station *s;
	unsigned int i;

	if (w->count < 4)
		return answer_fail(a, "switch NAME RING RING...");
	if (!name_is_valid(f, w->word[1], a))
		return false;
	s = topology_station(f, NULL, w->word[1], a);
	for (i = 2; s && i < w->count; i++) {
		struct ring *r = topology_find_ring(f, w->word[i]);

		if (!r)
			return answer_fail(a, "no ring %.40s", w->word[i]);
		if (ring_has_station(r, s))
			return answer_fail(a, "ring %s is there twice",
					   r->name);
		if (!topology_join(f, r, s, r->links, a))
			return false;
	}
	return s;
}

struct torus {
	const char *name;
	unsigned int x, y;
	struct station **station;
};

static struct station *torus_at(const struct torus *t, unsigned int x,
				unsigned int y)
{
	return t->station[y * t->x + x];
}

/* Make the ring of row or column number @number of a torus. */
static bool torus_ring(struct fabric *f, const struct torus *t,
		       const char *kind, unsigned int number,
		       struct answer *a)
{
	bool row = !strcmp(kind, "row");
	unsigned int i, n = row ? t->x : t->y;
	char name[64];
	struct ring *r;

	if (n < 2)
		return true;
	snprintf(name, sizeof(name), "%s.%s%u", t->name, kind, number);
	r = topology_ring(f, name, a);
	for (i = 0; r && i < n; i++)
		if (!topology_join(f, r, row ? torus_at(t, i, number) :
					       torus_at(t, number, i), i, a))
			return false;
	return r;
}

static bool torus_rings(struct fabric *f, const struct torus *t,
			struct answer *a)
{
	unsigned int i;

	for (i = 0; i < t->y; i++)
		if (!torus_ring(f, t, "row", i, a))
			return false;
	for (i = 0; i < t->x; i++)
		if (!torus_ring(f, t, "col", i, a))
			return false;
	return true;
}

static bool torus_stations(struct fabric *f, struct torus *t, uint16_t first,
			   struct answer *a)
{
	unsigned int i, n = t->x * t->y;

	for (i = 0; i < n; i++) {
		t->station[i] = station_new(f, (uint16_t)(first + 4 * i), a);
		if (!t->station[i])
			return false;
	}
	return torus_rings(f, t, a);
}

/* Read a line "torus NAME X Y FIRST-NODE". */
static bool torus_read(struct fabric *f, struct words *w, struct answer *a)
{
	struct torus t = { 0 };
	uint64_t x, y;
	uint16_t first;
	bool ok;

	if (w->count != 5)
		return answer_fail(a, "torus NAME X Y FIRST-NODE");
	if (!name_is_valid(f, w->word[1], a))
		return false;
	if (!parse_number(w->word[2], SIDE_MAX, &x) || !x ||
	    !parse_number(w->word[3], SIDE_MAX, &y) || !y || x * y < 2)
		return answer_fail(a, "a torus of %.20s x %.20s nodes",
				   w->word[2], w->word[3]);
	if (!node_id_parse(w->word[4], &first))
		return answer_fail(a, "%.40s: " NODE_ID_RULE, w->word[4]);
	if (first + 4 * (x * y - 1) > NODE_ID_MAX)
		return answer_fail(a, "node ids beyond %u", NODE_ID_MAX);
	t.name = w->word[1];
	t.x = (unsigned int)x;
	t.y = (unsigned int)y;
	t.station = calloc((size_t)(x * y), sizeof(struct station *));
	if (!t.station)
		return answer_fail(a, "out of memory");
	ok = torus_stations(f, &t, first, a);
	free(t.station);
	return ok;
}

static bool shape_read(struct fabric *f, struct words *w, struct answer *a)
{
	if (!strcmp(w->word[0], "ring"))
		return ring_read(f, w, a);
	if (!strcmp(w->word[0], "switch"))
		return switch_read(f, w, a);
	if (!strcmp(w->word[0], "torus"))
		return torus_read(f, w, a);
	if (!strcmp(w->word[0], "link") || !strcmp(w->word[0], "node"))
		return true;
	return answer_fail(a, "%.40s: not ring, switch, torus, link or node",
			   w->word[0]);
}

/* Read a line "link NAME KEY VALUE..." or "node NAME KEY VALUE...", after all links exist. */
static bool settings_read(struct fabric *f, struct words *w, struct answer *a)
{
	bool link = !strcmp(w->word[0], "link");
	const char *word[4] = { "set" };
	struct words pair = { .word = word, .count = 4 };
	unsigned int i;

	if (!link && strcmp(w->word[0], "node"))
		return true;
	if (w->count < 4 || w->count % 2)
		return answer_fail(a, "%s NAME KEY VALUE...", w->word[0]);
	word[1] = w->word[1];
	if (!strcmp(word[1], "all"))
		word[1] = link ? "links" : "all";
	for (i = 2; i < w->count; i += 2) {
		word[2] = w->word[i];
		word[3] = w->word[i + 1];
		if (!command_set(f, &pair, a))
			return false;
	}
	return true;
}

bool topology_read(struct fabric *f, const char *path, struct answer *a)
{
	FILE *file = fopen(path, "re");
	bool ok;

	if (!file)
		return answer_fail(a, "%.200s: %s", path, strerror(errno));
	f->topology.fixed = true;
	ok = words_read_lines(f, file, path, shape_read, a);
	if (ok && !f->topology.rings)
		ok = answer_fail(a, "%.200s: no ring", path);
	if (ok)
		topology_close(f);
	rewind(file);
	ok = ok && words_read_lines(f, file, path, settings_read, a);
	fclose(file);
	if (ok)
		fabric_keep_initial(f);
	return ok;
}
