/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the event loop
 *
 * The loop has descriptors, timers, and work that runs after all events of one epoll_wait().
 * Until this work runs, a watch must exist, with its descriptor open.
 */
#ifndef SIM_SWITCH_LOOP_H
#define SIM_SWITCH_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define container_of(ptr, type, member)					\
	((type *)((char *)(ptr) - offsetof(type, member)))

#define NSEC_PER_SEC	UINT64_C(1000000000)

struct watch {
	int fd;
	void (*ready)(struct watch *w, uint32_t events);
};

/** struct timer - a timer; a timer with all members but @expired 0 is not set */
struct timer {
	void (*expired)(struct timer *t);
	uint64_t due;		/* ns of CLOCK_MONOTONIC */
	uint64_t order;		/* order of timers that are due at the same time */
	size_t place;		/* place in the heap, from 1; 0: not set */
};

struct later {
	void (*run)(struct later *l);
	struct later *next;
	bool queued;
};

struct loop {
	int epoll;
	struct watch clock;	/* the timerfd */
	uint64_t armed;		/* time that the timer descriptor is set to; 0: not set */
	struct timer **heap;
	size_t timers, room;
	uint64_t order;
	struct later *later;
	bool stop;
};

/* The functions below return 0 or -errno. */
int loop_open(struct loop *l);
void loop_close(struct loop *l);
int loop_run(struct loop *l);		/* run until stop is set */

int loop_watch(struct loop *l, struct watch *w, uint32_t events);
void loop_change(struct loop *l, struct watch *w, uint32_t events);
void loop_unwatch(struct loop *l, struct watch *w);

void loop_later(struct loop *l, struct later *later);
void loop_run_later(struct loop *l);

uint64_t loop_now(void);
int timer_set(struct loop *l, struct timer *t, uint64_t due);
void timer_cancel(struct loop *l, struct timer *t);
struct timer *timer_first(struct loop *l);	/* return the next timer, or NULL */

#endif
