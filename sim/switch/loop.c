// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "sim/switch/loop.h"

#define EVENTS	64

uint64_t loop_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* ---- timers: a heap ---- */

static bool timer_before(const struct timer *a, const struct timer *b)
{
	return a->due != b->due ? a->due < b->due : a->order < b->order;
}

static void heap_put(struct loop *l, size_t place, struct timer *t)
{
	l->heap[place - 1] = t;
	t->place = place;
}

static struct timer *heap_at(struct loop *l, size_t place)
{
	return l->heap[place - 1];
}

static void timers_sift_up(struct loop *l, struct timer *t)
{
	size_t place = t->place;

	while (place > 1 && timer_before(t, heap_at(l, place / 2))) {
		heap_put(l, place, heap_at(l, place / 2));
		place /= 2;
	}
	heap_put(l, place, t);
}

static void timers_sift_down(struct loop *l, struct timer *t)
{
	size_t place = t->place, child;

	while ((child = 2 * place) <= l->timers) {
		if (child < l->timers && timer_before(heap_at(l, child + 1), heap_at(l, child)))
			child++;
		if (!timer_before(heap_at(l, child), t))
			break;
		heap_put(l, place, heap_at(l, child));
		place = child;
	}
	heap_put(l, place, t);
}

static int heap_reserve(struct loop *l)
{
	size_t room = l->room ? 2 * l->room : 64;
	struct timer **heap;

	if (l->timers < l->room)
		return 0;
	heap = realloc(l->heap, room * sizeof(*heap));
	if (!heap)
		return -ENOMEM;
	l->heap = heap;
	l->room = room;
	return 0;
}

int timer_set(struct loop *l, struct timer *t, uint64_t due)
{
	int ret;

	timer_cancel(l, t);
	ret = heap_reserve(l);
	if (ret)
		return ret;
	t->due = due ? due : 1;
	t->order = l->order++;
	heap_put(l, ++l->timers, t);
	timers_sift_up(l, t);
	return 0;
}

void timer_cancel(struct loop *l, struct timer *t)
{
	struct timer *last;
	size_t place = t->place;

	if (!place)
		return;
	t->place = 0;
	last = heap_at(l, l->timers--);
	if (last == t)
		return;
	heap_put(l, place, last);
	timers_sift_up(l, last);
	timers_sift_down(l, last);
}

struct timer *timer_first(struct loop *l)
{
	return l->timers ? heap_at(l, 1) : NULL;
}

static void clock_arm(struct loop *l)
{
	uint64_t due = l->timers ? heap_at(l, 1)->due : 0;
	struct itimerspec when = { 0 };

	if (due == l->armed)
		return;
	when.it_value.tv_sec = (time_t)(due / NSEC_PER_SEC);
	when.it_value.tv_nsec = (long)(due % NSEC_PER_SEC);
	timerfd_settime(l->clock.fd, TFD_TIMER_ABSTIME, &when, NULL);
	l->armed = due;
}

static void clock_ready(struct watch *w, uint32_t events)
{
	struct loop *l = container_of(w, struct loop, clock);
	uint64_t now = loop_now(), times;
	struct timer *t;

	(void)events;
	if (read(w->fd, &times, sizeof(times)) < 0)
		return;		/* the clock has been set to another time */
	l->armed = 0;
	while (l->timers && (t = heap_at(l, 1))->due <= now) {
		timer_cancel(l, t);
		t->expired(t);
	}
}

/* ---- descriptors ---- */

int loop_watch(struct loop *l, struct watch *w, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = w };

	return epoll_ctl(l->epoll, EPOLL_CTL_ADD, w->fd, &e) ? -errno : 0;
}

void loop_change(struct loop *l, struct watch *w, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = w };

	epoll_ctl(l->epoll, EPOLL_CTL_MOD, w->fd, &e);
}

void loop_unwatch(struct loop *l, struct watch *w)
{
	epoll_ctl(l->epoll, EPOLL_CTL_DEL, w->fd, NULL);
}

void loop_later(struct loop *l, struct later *later)
{
	if (later->queued)
		return;
	later->queued = true;
	later->next = l->later;
	l->later = later;
}

void loop_run_later(struct loop *l)
{
	struct later *later;

	while ((later = l->later)) {
		l->later = later->next;
		later->queued = false;
		later->run(later);
	}
}

int loop_run(struct loop *l)
{
	struct epoll_event event[EVENTS];
	int i, n;

	while (!l->stop) {
		clock_arm(l);
		n = epoll_wait(l->epoll, event, EVENTS, -1);
		if (n < 0 && errno != EINTR)
			return -errno;
		for (i = 0; i < n; i++) {
			struct watch *w = event[i].data.ptr;

			w->ready(w, event[i].events);
		}
		loop_run_later(l);
	}
	return 0;
}

int loop_open(struct loop *l)
{
	int ret;

	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll < 0)
		return -errno;
	l->clock.ready = clock_ready;
	l->clock.fd = timerfd_create(CLOCK_MONOTONIC,
				     TFD_CLOEXEC | TFD_NONBLOCK);
	ret = l->clock.fd < 0 ? -errno : loop_watch(l, &l->clock, EPOLLIN);
	return ret;
}

void loop_close(struct loop *l)
{
	if (l->clock.fd >= 0)
		close(l->clock.fd);
	if (l->epoll >= 0)
		close(l->epoll);
	free(l->heap);
}
