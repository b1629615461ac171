// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Events in order of time, and programs as coroutines. While a program only computes, its clock
 * runs ahead of the simulation. Before the program reads a word that another node may change,
 * vt_sync() runs the events that are due.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim/vtime/fiber.h"
#include "sim/vtime/internal.h"

#define STACK_BYTES	(128u << 10)
/*
 * The interval at which a waiting program polls while an interrupt is pending: not every poll of
 * the library tests for interrupts.
 */
#define LOOK_PS		(100 * (uint64_t)VT_NS)
#define WINDOW_BYTES	((size_t)VT_ATT_ENTRIES * VT_ATT_PAGE)

/* The simulation whose program runs. Calls of libsci/msg find their node by this variable. */
static struct vt_sim *running;

/* ---- events: a heap ---- */

static bool event_earlier(const struct vt_event *a, const struct vt_event *b)
{
	return a->when != b->when ? a->when < b->when : a->turn < b->turn;
}

static void heap_sift_up(struct vt_event *h, size_t i)
{
	struct vt_event e = h[i];

	while (i && event_earlier(&e, &h[(i - 1) / 2])) {
		h[i] = h[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	h[i] = e;
}

static void heap_sift_down(struct vt_event *h, size_t n)
{
	struct vt_event e = h[0];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < n) {
		if (child + 1 < n && event_earlier(&h[child + 1], &h[child]))
			child++;
		if (!event_earlier(&h[child], &e))
			break;
		h[i] = h[child];
		i = child;
	}
	h[i] = e;
}

static void event_push(struct vt_sim *s, const struct vt_event *e)
{
	if (s->events == s->room) {
		size_t room = s->room ? 2 * s->room : 1024;
		struct vt_event *heap = realloc(s->heap, room * sizeof(*heap));

		if (!heap) {
			fprintf(stderr, "sci-model: out of memory for events\n");
			abort();
		}
		s->heap = heap;
		s->room = room;
	}
	s->heap[s->events] = *e;
	heap_sift_up(s->heap, s->events++);
}

void vt_at(struct vt_sim *s, uint64_t when, vt_event_fn fn, void *arg)
{
	event_push(s, &(struct vt_event){
		.when = when > s->now ? when : s->now, .turn = s->turn++,
		.fn = fn, .arg = arg,
	});
}

static void event_get_next(struct vt_sim *s)
{
	struct vt_event e = s->heap[0];

	s->heap[0] = s->heap[--s->events];
	if (s->events)
		heap_sift_down(s->heap, s->events);
	s->now = e.when;
	s->done++;
	e.fn(e.arg);
}

/* ---- programs ---- */

static void node_leave(struct vt_node *n)
{
	struct vt_sim *s = n->sim;

	s->current = NULL;
	fiber_switch(&n->fiber, &s->main);
}

/* An event: continue the program of a node. */
static void node_resume(void *arg)
{
	struct vt_node *n = arg;
	struct vt_sim *s = n->sim;

	if (n->clock < s->now)
		n->clock = s->now;
	s->current = n;
	fiber_switch(&s->main, &n->fiber);
}

static void program_run(void *arg)
{
	struct vt_node *n = arg;

	n->fn(n, n->arg);
	n->sim->running--;
	n->sim->current = NULL;
	fiber_end(&n->fiber, &n->sim->main);
}

void vt_start(struct vt_node *n, vt_program fn, void *arg)
{
	n->fn = fn;
	n->arg = arg;
	if (!fiber_new(&n->fiber, STACK_BYTES, program_run, n)) {
		perror("sci-model: a program's stack");
		abort();
	}
	n->sim->running++;
	vt_at(n->sim, 0, node_resume, n);
}

bool vt_run(struct vt_sim *s)
{
	struct vt_sim *outer = running;

	running = s;
	while (s->running && s->events && s->heap[0].when <= s->limit)
		event_get_next(s);
	running = outer;
	return !s->running;
}

struct vt_node *vt_current(void)
{
	return running ? running->current : NULL;
}

uint64_t vt_clock(const struct vt_node *n)
{
	return n->clock;
}

void vt_busy(struct vt_node *n, uint64_t ps)
{
	n->clock += ps;
}

static void node_wake(struct vt_node *n)
{
	n->waits = false;
	node_resume(n);
}

static void limit_reached(void *arg);

/*
 * Set an event for the time limit of a wait. If an earlier event of this kind is set, it will
 * set the next event.
 */
static void limit_set(struct vt_node *n)
{
	if (n->until >= n->limit)
		return;
	n->limit = n->until;
	vt_at(n->sim, n->limit, limit_reached, n);
}

static void limit_reached(void *arg)
{
	struct vt_node *n = arg;

	/* limit_set() has set an earlier event in place of this one */
	if (n->sim->now != n->limit)
		return;
	n->limit = VT_NEVER;
	if (!n->waits)
		return;
	if (n->until <= n->sim->now)
		node_wake(n);
	else
		limit_set(n);
}

uint64_t vt_touches(const struct vt_node *n)
{
	return n->touches;
}

void vt_wait(struct vt_node *n, uint64_t seen, uint64_t until)
{
	vt_sync(n);
	if (n->touches != seen || until <= n->clock)
		return;
	if (n->rings && until > n->clock + LOOK_PS)
		until = n->clock + LOOK_PS;
	n->waits = true;
	n->until = until;
	limit_set(n);
	node_leave(n);
}

static void node_touched(void *arg)
{
	struct vt_node *n = arg;

	n->waking = false;
	if (n->waits)
		node_wake(n);
}

static bool event_is_program(vt_event_fn fn)
{
	return fn == node_resume || fn == node_touched || fn == limit_reached;
}

/*
 * Run due events on the present stack, up to an event that needs a program's own stack. A program
 * whose clock is beyond the limit stops here, because vt_run() ends before.
 */
void vt_sync(struct vt_node *n)
{
	struct vt_sim *s = n->sim;
	const struct vt_event on = {
		.when = n->clock, .turn = s->turn++, .fn = node_resume, .arg = n,
	};
	const bool beyond = n->clock > s->limit;

	s->current = NULL;
	while (beyond || (s->events && event_earlier(&s->heap[0], &on))) {
		if (beyond || event_is_program(s->heap[0].fn)) {
			event_push(s, &on);
			node_leave(n);
			break;
		}
		event_get_next(s);
	}
	s->current = n;
	s->now = n->clock;
}

/* Wake the program by an event, because the caller may be inside the model of the adapter. */
void vt_touch(struct vt_node *n)
{
	n->touches++;
	if (!n->waits || n->waking)
		return;
	n->waking = true;
	vt_at(n->sim, n->sim->now, node_touched, n);
}

/* ---- the machine ---- */

uint64_t vt_random(struct vt_sim *s)
{
	uint64_t z = s->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static bool windows_reserve(struct vt_sim *s)
{
	void *p = mmap(NULL, s->nodes * WINDOW_BYTES, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED) {
		perror("sci-model: addresses for the windows");
		return false;
	}
	s->windows = p;
	return true;
}

struct vt_sim *vt_new(const struct vt_profile *profile, unsigned int nodes,
		      const char *topology, uint64_t seed)
{
	struct vt_sim *s;

	if (!nodes || nodes > VT_NODES_MAX) {
		fprintf(stderr, "sci-model: %u nodes: there are 1 to %u\n",
			nodes, VT_NODES_MAX);
		return NULL;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->profile = *profile;
	s->random = seed;
	s->limit = VT_NEVER;
	s->nodes = nodes;
	s->node = calloc(nodes, sizeof(*s->node));
	if (!s->node || !windows_reserve(s))
		goto err;
	s->network = network_new(s, topology);
	if (!s->network)
		goto err;
	for (unsigned int i = 0; i < nodes; i++) {
		s->node[i].window = s->windows + i * WINDOW_BYTES;
		if (!node_init(s, &s->node[i], i))
			goto err;
	}
	return s;

err:
	vt_free(s);
	return NULL;
}

void vt_free(struct vt_sim *s)
{
	sockets_forget(s);
	for (size_t i = 0; i < s->events; i++)
		fabric_drop(s->heap[i].fn, s->heap[i].arg);
	for (unsigned int i = 0; s->node && i < s->nodes; i++) {
		node_fini(&s->node[i]);
		fiber_free(&s->node[i].fiber);
	}
	if (s->network)
		network_free(s->network);
	node_free_packets(s);
	tcp_free(s);
	if (s->windows)
		munmap(s->windows, s->nodes * WINDOW_BYTES);
	free(s->heap);
	free(s->node);
	free(s);
}

struct vt_node *vt_node(struct vt_sim *s, unsigned int i)
{
	assert(i < s->nodes);
	return &s->node[i];
}

unsigned int vt_nodes(const struct vt_sim *s)
{
	return s->nodes;
}

uint64_t vt_now(const struct vt_sim *s)
{
	return s->now;
}

uint64_t vt_events(const struct vt_sim *s)
{
	return s->done;
}
