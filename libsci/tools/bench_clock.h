/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* A fast clock: the TSC if its rate is constant, else the system's clock. */
#ifndef LIBSCI_TOOLS_BENCH_CLOCK_H
#define LIBSCI_TOOLS_BENCH_CLOCK_H

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "tool.h"

struct bench_clock {
	bool tsc;
	double ns_per_tick;
};

/* Compare the TSC with the system's clock, which takes some time. */
struct bench_clock bench_clock(void);

static inline uint64_t bench_ticks(const struct bench_clock *c)
{
#if defined(__x86_64__)
	unsigned int cpu;

	if (c->tsc)
		return __rdtscp(&cpu);
#else
	(void)c;
#endif
	return tool_now_ns();
}

#endif
