// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/switch/conn.h"
#include "sim/switch/control.h"
#include "sim/switch/fabric.h"
#include "sim/switch/flight.h"
#include "sim/switch/node.h"

__attribute__((format(printf, 1, 0))) static void fabric_say(const char *fmt, va_list ap)
{
	fputs("sci-switch: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

void fabric_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fabric_say(fmt, ap);
	va_end(ap);
}

void fabric_note(const struct fabric *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (f->verbose)
		fabric_say(fmt, ap);
	va_end(ap);
}

void fabric_presets(uint64_t value[KEYS])
{
	unsigned int k;

	for (k = 0; k < KEYS; k++)
		value[k] = key_default((enum key)k);
}

int fabric_open(struct fabric *f)
{
	fabric_presets(f->node_preset);
	fabric_presets(f->link_preset);
	fabric_presets(f->node_initial);
	fabric_presets(f->link_initial);
	f->ready_end = &f->ready;
	f->loop.clock.fd = f->loop.epoll = f->signals.watch.fd = -1;
	listener_init(&f->adapters);
	listener_init(&f->controls);
	return loop_open(&f->loop);
}

void fabric_each_point(struct fabric *f, bool nodes, bool links,
		       void (*fn)(struct point *pt))
{
	unsigned int i;

	for (i = 0; nodes && i < NODES; i++)
		if (f->node[i])
			fn(&f->node[i]->point);
	for (i = 0; links && i < f->topology.links; i++)
		fn(&f->topology.link[i]->point);
}

static void point_keep_initial(struct point *pt)
{
	memcpy(pt->initial, pt->value, sizeof(pt->initial));
}

void fabric_keep_initial(struct fabric *f)
{
	fabric_each_point(f, true, true, point_keep_initial);
	memcpy(f->node_initial, f->node_preset, sizeof(f->node_initial));
	memcpy(f->link_initial, f->link_preset, sizeof(f->link_initial));
}

static void links_notify(struct fabric *f)
{
	unsigned int i;

	for (i = 0; i < NODES; i++)
		if (f->node[i])
			node_tell_link(f->node[i], false);
}

void fabric_reset(struct fabric *f)
{
	memcpy(f->node_preset, f->node_initial, sizeof(f->node_preset));
	memcpy(f->link_preset, f->link_initial, sizeof(f->link_preset));
	f->garbage = 0;
	fabric_each_point(f, true, true, point_reset);
	links_notify(f);
}

static void point_restart(struct point *pt)
{
	pt->base = pt->came;	/* pending actions count on */
}

void fabric_seed(struct fabric *f, uint64_t seed)
{
	f->seed = seed;
	f->garbage = 0;
	fabric_each_point(f, true, true, point_restart);
}

void fabric_close(struct fabric *f)
{
	unsigned int i;

	listener_close(&f->adapters);
	listener_close(&f->controls);
	control_close_all(f);
	loop_run_later(&f->loop);
	conn_close_all(f);
	direct_free(f);
	flight_free_all(f);
	for (i = 0; i < NODES; i++)
		free(f->node[i]);
	topology_free(f);
	if (f->signals.watch.fd >= 0)
		close(f->signals.watch.fd);
	loop_close(&f->loop);
}
