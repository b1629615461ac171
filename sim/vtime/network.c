// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: the network
 *
 *	ring		one ring of all nodes
 *	rings:K		rings of K nodes and a port of one switch each
 *	torus:XxY	X rings of Y nodes and Y rings of X nodes: every node is on two rings
 *	torus		torus:XxY with X and Y as near to each other as possible
 *
 * A link connects one station of a ring with the next one, in one direction. Packets use a link
 * one after the other. A packet enters the next link when its head has arrived (virtual
 * cut-through). So a route costs a hop for each link, and the packet's length once. On a torus
 * packets take the row first, then the column. The queues of links are unlimited, and the model
 * has no SCI echoes (8 bytes, on the rest of the ring).
 *
 * The model computes the whole route of a packet at its start. On each link the packet reserves
 * the first free time that is long enough. So a packet that arrives at a link later does not
 * delay a packet that arrives there sooner.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/vtime/internal.h"
#include "sim/vtime/network.h"

/* Answers to stores may start before the event that makes them, by at most this time. */
#define PAST		(5 * (uint64_t)VT_US)

/* A reservation of a link for one packet, or for packets one directly after the other. */
struct span {
	uint64_t from, to;
};

struct link {
	struct span *span;	/* in order: from @first up to @end */
	unsigned int first, end, room;
	uint64_t busy;		/* in total, ps */
};

/* The network. Each node has a link in its row (or only ring), and on a torus in its column. */
struct vt_network {
	struct vt_sim *sim;
	unsigned int size;	/* stations of a row */
	unsigned int columns;	/* 0: no torus */
	bool switched;		/* the last station of a row is a port */
	struct link *row, *column;
	unsigned int links;
	uint64_t packets, bytes;
};

/* Return the largest factor of @nodes that is at most its square root. */
static unsigned int torus_square(unsigned int nodes)
{
	unsigned int best = 1;

	for (unsigned int x = 2; x <= nodes / x; x++)
		if (!(nodes % x))
			best = x;
	return best;
}

static bool network_parse(struct vt_network *net, const char *text)
{
	unsigned int x, y, nodes = net->sim->nodes;
	char end;

	if (!text || !strcmp(text, "ring")) {
		net->size = nodes;
		return true;
	}
	if (sscanf(text, "rings:%u%c", &x, &end) == 1 && x && x <= nodes) {
		net->size = x + 1;
		net->switched = true;
		return true;
	}
	if (!strcmp(text, "torus")) {
		net->columns = torus_square(nodes);
		net->size = nodes / net->columns;
		return true;
	}
	if (sscanf(text, "torus:%ux%u%c", &x, &y, &end) == 2 && x && y &&
	    (uint64_t)x * y == nodes) {
		net->size = x;
		net->columns = y;
		return true;
	}
	fprintf(stderr, "sci-model: %s: no topology of %u nodes\n", text, nodes);
	return false;
}

struct vt_network *network_new(struct vt_sim *s, const char *topology)
{
	struct vt_network *net = calloc(1, sizeof(*net));
	unsigned int rows;

	if (!net)
		return NULL;
	net->sim = s;
	if (!network_parse(net, topology)) {
		free(net);
		return NULL;
	}
	rows = net->switched ? (s->nodes + net->size - 2) / (net->size - 1) :
			       s->nodes / net->size;
	net->links = rows * net->size;
	net->row = calloc(net->links, sizeof(*net->row));
	if (net->columns)
		net->column = calloc(s->nodes, sizeof(*net->column));
	if (!net->row || (net->columns && !net->column)) {
		network_free(net);
		return NULL;
	}
	return net;
}

static void links_free(struct link *l, unsigned int n)
{
	for (unsigned int i = 0; l && i < n; i++)
		free(l[i].span);
	free(l);
}

void network_free(struct vt_network *net)
{
	links_free(net->row, net->links);
	links_free(net->column, net->sim->nodes);
	free(net);
}

/* ---- packets ---- */

static void spans_drop_past(struct link *l, uint64_t now)
{
	while (l->first < l->end && l->span[l->first].to + PAST <= now)
		l->first++;
	if (l->first == l->end)
		l->first = l->end = 0;
	if (l->first <= l->room / 2)
		return;
	memmove(l->span, l->span + l->first,
		(l->end - l->first) * sizeof(*l->span));
	l->end -= l->first;
	l->first = 0;
}

static void spans_grow(struct link *l)
{
	l->room = l->room ? 2 * l->room : 4;
	l->span = realloc(l->span, l->room * sizeof(*l->span));
	if (!l->span) {
		fprintf(stderr, "sci-model: out of memory for links\n");
		abort();
	}
}

/* Insert a reservation before @i: move the reservations of the shorter side. */
static void span_insert(struct link *l, unsigned int i, struct span s)
{
	if (l->first && i - l->first <= l->end - i) {
		memmove(l->span + l->first - 1, l->span + l->first,
			(i - l->first) * sizeof(s));
		l->first--;
		l->span[i - 1] = s;
		return;
	}
	if (l->end == l->room)
		spans_grow(l);
	memmove(l->span + i + 1, l->span + i, (l->end - i) * sizeof(s));
	l->span[i] = s;
	l->end++;
}

static void span_delete(struct link *l, unsigned int i)
{
	l->end--;
	memmove(l->span + i, l->span + i + 1, (l->end - i) * sizeof(*l->span));
}

/* Return the first reservation that ends after @when. */
static unsigned int span_after(const struct link *l, uint64_t when)
{
	unsigned int low = l->first, high = l->end;

	while (low < high) {
		unsigned int i = (low + high) / 2;

		if (l->span[i].to > when)
			high = i;
		else
			low = i + 1;
	}
	return low;
}

/* Reserve the first free time of @length from @when on. Return the start of the reservation. */
static uint64_t link_reserve(struct link *l, uint64_t when, uint64_t length)
{
	unsigned int i = span_after(l, when);
	bool joins;

	for (; i < l->end && l->span[i].from < when + length; i++)
		when = l->span[i].to;
	joins = i < l->end && l->span[i].from == when + length;
	if (i == l->first || l->span[i - 1].to != when) {
		if (joins)
			l->span[i].from = when;
		else
			span_insert(l, i, (struct span){ when, when + length });
		return when;
	}
	l->span[i - 1].to += length;
	if (joins) {
		l->span[i - 1].to = l->span[i].to;
		span_delete(l, i);
	}
	return when;
}

/* A packet in flight. */
struct way {
	uint64_t now;
	uint64_t when;		/* its head */
	uint64_t length;
	uint64_t hop;
};

static void link_cross(struct link *l, struct way *w)
{
	spans_drop_past(l, w->now);
	w->when = link_reserve(l, w->when, w->length) + w->hop;
	l->busy += w->length;
}

/* Move a packet from station @from to @to of a ring of @size stations with links @step apart. */
static void way_go_round(struct link *ring, unsigned int size, unsigned int step,
			 unsigned int from, unsigned int to, struct way *w)
{
	for (; from != to; from = (from + 1) % size)
		link_cross(&ring[(size_t)from * step], w);
}

static void way_cross_switch(struct vt_network *net, unsigned int from,
			     unsigned int to, struct way *w)
{
	unsigned int k = net->size - 1;
	struct link *ring = &net->row[(size_t)(from / k) * net->size];

	if (from / k == to / k) {
		way_go_round(ring, net->size, 1, from % k, to % k, w);
		return;
	}
	way_go_round(ring, net->size, 1, from % k, k, w);
	ring = &net->row[(size_t)(to / k) * net->size];
	way_go_round(ring, net->size, 1, k, to % k, w);
}

/**
 * network_pass() - move a packet through the network
 * @when: time at which the packet leaves @from
 * @bytes: length of the packet, with its header
 *
 * Return: the time at which the whole packet has arrived.
 */
uint64_t network_pass(struct vt_network *net, unsigned int from,
		      unsigned int to, uint64_t when, uint64_t bytes)
{
	const struct vt_profile *p = &net->sim->profile;
	struct way w = {
		.now = net->sim->now, .when = when,
		.length = vt_transfer(bytes, p->link_rate), .hop = p->link_hop,
	};
	unsigned int x = net->size;

	net->packets++;
	net->bytes += bytes;
	if (net->switched) {
		way_cross_switch(net, from, to, &w);
	} else {
		way_go_round(&net->row[from / x * (size_t)x], x, 1, from % x,
			     to % x, &w);
		if (net->columns)
			way_go_round(&net->column[to % x], net->columns, x,
				     from / x, to / x, &w);
	}
	return w.when + w.length;
}

static struct link *link_get(const struct vt_network *net, unsigned int i)
{
	return i < net->links ? &net->row[i] : &net->column[i - net->links];
}

static unsigned int network_count_links(const struct vt_network *net)
{
	return net->links + (net->columns ? net->sim->nodes : 0);
}

void vt_network_load(const struct vt_sim *s, struct vt_network_load *load)
{
	const struct vt_network *net = s->network;
	uint64_t sum = 0;

	memset(load, 0, sizeof(*load));
	load->links = network_count_links(net);
	for (unsigned int i = 0; i < load->links; i++) {
		uint64_t busy = link_get(net, i)->busy;

		sum += busy;
		load->busiest = busy > load->busiest ? busy : load->busiest;
	}
	load->mean = load->links ? sum / load->links : 0;
	load->packets = net->packets;
	load->bytes = net->bytes;
}

void vt_network_clear(struct vt_sim *s)
{
	struct vt_network *net = s->network;

	for (unsigned int i = 0; i < network_count_links(net); i++)
		link_get(net, i)->busy = 0;
	net->packets = 0;
	net->bytes = 0;
}

static unsigned int neighbour_add(unsigned int *out, unsigned int n,
				  unsigned int self, unsigned int node)
{
	for (unsigned int i = 0; i < n; i++)
		if (out[i] == node)
			return n;
	if (node != self)
		out[n++] = node;
	return n;
}

unsigned int vt_network_neighbours(const struct vt_sim *s, unsigned int node,
				   unsigned int out[4])
{
	const struct vt_network *net = s->network;
	unsigned int x = net->size, all = s->nodes, row = node / x * x, n = 0;

	if (!net->columns) {
		n = neighbour_add(out, n, node, (node + 1) % all);
		return neighbour_add(out, n, node, (node + all - 1) % all);
	}
	n = neighbour_add(out, n, node, row + (node % x + 1) % x);
	n = neighbour_add(out, n, node, row + (node % x + x - 1) % x);
	n = neighbour_add(out, n, node, (node + x) % all);
	return neighbour_add(out, n, node, (node + all - x) % all);
}
