// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <stdlib.h>

#include "sim/switch/action.h"
#include "sim/switch/conn.h"
#include "sim/switch/fabric.h"
#include "sim/switch/fault.h"
#include "sim/switch/flight.h"
#include "sim/switch/node.h"

#define FLYING_MAX	16384u		/* limit of packets of one node */

/* ---- packets that move later ---- */

static struct flight *flight_keep(const struct flight *p)
{
	struct flight *k = NULL;

	if (p->source->flying < FLYING_MAX)
		k = malloc(sizeof(*k));
	if (!k) {
		node_count(p->source, COUNT_OVERFLOW);
		return NULL;
	}
	*k = *p;
	k->timer = (struct timer){ 0 };
	k->next = NULL;
	k->source->flying++;
	return k;
}

static void flight_free(struct flight *p)
{
	timer_cancel(&p->source->fabric->loop, &p->timer);
	p->source->flying--;
	free(p);
}

static void flight_ready(struct flight *p)
{
	struct fabric *f = p->source->fabric;

	*f->ready_end = p;
	f->ready_end = &p->next;
}

bool flight_copy(const struct flight *p)
{
	struct flight *k = flight_keep(p);

	if (k)
		flight_ready(k);
	return k;
}

/* ---- arrival ---- */

static void flight_send_frame(struct node *n, uint32_t kind, struct flight *p)
{
	p->frame.head = (struct frame){ .kind = kind, .node = n->id };
	if (!conn_send_packet(n->conn, &p->frame, p->size))
		node_count(n, COUNT_OVERFLOW);
	else if (kind == FRAME_PACKET)
		node_count(n, COUNT_DELIVERED);
}

/* Answer a request to a node that is not attached. A corrupted request gets no answer. */
static void flight_no_node(struct flight *p)
{
	struct node *n = p->source;

	node_count(n, COUNT_NO_NODE);
	if (!p->response && !p->corrupted && node_there(n) && node_link_up(n))
		flight_send_frame(n, FRAME_NO_NODE, p);
}

static void flight_deliver(struct flight *p)
{
	struct node *n = p->target;

	if (!n || p->at != n->station || !node_there(n))
		flight_no_node(p);
	else if (!node_link_up(n) || (p->response && n->point.value[KEY_STUCK]))
		node_count(n, COUNT_LOST);
	else
		flight_send_frame(n, FRAME_PACKET, p);
}

static void packet_delay_expired(struct timer *t)
{
	struct flight *p = container_of(t, struct flight, timer);

	flight_deliver(p);
	flight_free(p);
}

static void packet_deliver_later(const struct flight *p)
{
	struct flight *k = flight_keep(p);

	if (!k)
		return;
	k->timer.expired = packet_delay_expired;
	if (!timer_set(&p->source->fabric->loop, &k->timer,
		       loop_now() + p->delay))
		return;
	node_count(p->source, COUNT_OVERFLOW);
	flight_free(k);
}

/* ---- route ---- */

/* Return the next link of the route; NULL: the packet has arrived, or there is no route. */
static struct link *link_find_next(struct fabric *f, struct flight *p)
{
	struct link *l;

	if (!p->target || p->at == p->target->station)
		return NULL;
	l = topology_next(f, p->at, p->target->station);
	if (l)
		p->at = l->to;
	return l;
}

static bool flight_pass(struct point *pt, struct flight *p)
{
	if (pt->came >= pt->action_at)
		actions_run(pt);
	if (!pt->plain && !fault_pass(pt, p)) {
		pt->came++;
		return false;
	}
	pt->came++;
	pt->counter[COUNT_FORWARDED]++;
	pt->counter[COUNT_BYTES] += p->frame.packet.size;
	return true;
}

static bool flight_leave(struct flight *p)
{
	if (p->left)
		return true;
	p->left = true;
	return flight_pass(&p->source->point, p);
}

static void flight_travel(struct fabric *f, struct flight *p)
{
	struct link *l;

	if (!flight_leave(p))
		return;
	while ((l = link_find_next(f, p)))
		if (!flight_pass(&l->point, p))
			return;
	if (p->delay)
		packet_deliver_later(p);
	else
		flight_deliver(p);
}

static void flights_run(struct fabric *f)
{
	struct flight *p;

	while ((p = f->ready)) {
		f->ready = p->next;
		if (!f->ready)
			f->ready_end = &f->ready;
		flight_travel(f, p);
		flight_free(p);
	}
}

void flight_begin(struct node *source, struct flight *p)
{
	struct fabric *f = source->fabric;
	const struct sim_packet *s = &p->frame.packet;

	p->timer.place = 0;
	p->next = NULL;
	p->source = source;
	p->target = node_find(f, s->target);
	p->at = source->station;
	p->holder = NULL;
	p->delay = 0;
	p->size = sizeof(struct frame) + s->size;
	p->left = false;
	p->response = s->kind & PACKET_RESPONSE;
	p->corrupted = false;
	flight_travel(f, p);
	flights_run(f);
}

/* ---- packets that a point holds back ---- */

void flight_release(struct point *pt)
{
	struct flight *p = pt->held;

	pt->held = NULL;
	point_update(pt);
	timer_cancel(&pt->fabric->loop, &p->timer);
	/* count the packet when it leaves, and not when it arrived */
	pt->counter[COUNT_FORWARDED]++;
	pt->counter[COUNT_BYTES] += p->frame.packet.size;
	flight_ready(p);
}

static void packet_hold_expired(struct timer *t)
{
	struct point *pt = container_of(t, struct flight, timer)->holder;

	flight_release(pt);
	flights_run(pt->fabric);
}

bool flight_hold(struct point *pt, const struct flight *p)
{
	struct flight *k = flight_keep(p);

	if (!k)
		return false;
	k->holder = pt;
	k->timer.expired = packet_hold_expired;
	if (timer_set(&pt->fabric->loop, &k->timer,
		      loop_now() + pt->value[KEY_HOLD])) {
		flight_free(k);
		return false;
	}
	pt->held = k;
	pt->hold_left = pt->value[KEY_DISTANCE];
	point_update(pt);
	return true;
}

static void point_empty(struct point *pt)
{
	actions_cancel(pt, KEYS);
	if (pt->held)
		flight_free(pt->held);
	pt->held = NULL;
}

void flight_free_all(struct fabric *f)
{
	struct timer *t;

	fabric_each_point(f, true, true, point_empty);
	/* The only timers left are those of delayed packets. */
	while ((t = timer_first(&f->loop)))
		flight_free(container_of(t, struct flight, timer));
}
