/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Functions with a stack of their own, between which a thread switches. */
#ifndef SIM_VTIME_FIBER_H
#define SIM_VTIME_FIBER_H

#include <stdbool.h>
#include <stddef.h>
#include <ucontext.h>

/* A fiber. All zero: the thread itself, or no fiber. */
struct fiber {
	ucontext_t context;
	void (*fn)(void *arg);
	void *arg;
	const void *stack;
	size_t size;
	struct fiber *before;		/* the fiber that has switched to this one */
	void *frames;			/* frames of the address sanitizer */
	void *tsan;			/* the thread sanitizer's name of the fiber */
};

/* Make @f ready to begin @fn(@arg). Return false if there is no memory; errno has the reason. */
bool fiber_new(struct fiber *f, size_t size, void (*fn)(void *arg), void *arg);

/* Switch from @from, which runs, to @to. Return when another fiber switches back. */
void fiber_switch(struct fiber *from, struct fiber *to);

/* Switch from @from to @to, and never return. */
void fiber_end(struct fiber *from, struct fiber *to);

void fiber_free(struct fiber *f);

#endif
