// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include "bench_clock.h"

#if defined(__x86_64__)

#include <cpuid.h>

#define COMPARE_NS	20000000u
#define RDTSCP		(1u << 27)	/* bit of edx of leaf 0x80000001 */
#define INVARIANT	(1u << 8)	/* bit of edx of leaf 0x80000007 */

/* Return whether the CPU has a counter of constant rate on all CPUs. */
static bool cpu_has_tsc(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid(0x80000001, &a, &b, &c, &d) && d & RDTSCP &&
	       __get_cpuid(0x80000007, &a, &b, &c, &d) && d & INVARIANT;
}

/* Read both clocks several times. Return the pair that took the least time. */
static void clocks_read(const struct bench_clock *c, uint64_t *ticks,
			uint64_t *ns)
{
	uint64_t before, after, now, least = UINT64_MAX;
	int i;

	for (i = 0; i < 50; i++) {
		before = bench_ticks(c);
		now = tool_now_ns();
		after = bench_ticks(c);
		if (after - before >= least)
			continue;
		least = after - before;
		*ticks = before + least / 2;
		*ns = now;
	}
}

struct bench_clock bench_clock(void)
{
	struct bench_clock c = { .tsc = cpu_has_tsc(), .ns_per_tick = 1 };
	uint64_t t0 = 0, t1 = 0, n0 = 0, n1 = 0;

	if (!c.tsc)
		return c;
	clocks_read(&c, &t0, &n0);
	while (tool_now_ns() < n0 + COMPARE_NS)
		;
	clocks_read(&c, &t1, &n1);
	if (t1 <= t0)
		return (struct bench_clock){ .tsc = false, .ns_per_tick = 1 };
	c.ns_per_tick = (double)(n1 - n0) / (double)(t1 - t0);
	return c;
}

#else

struct bench_clock bench_clock(void)
{
	return (struct bench_clock){ .tsc = false, .ns_per_tick = 1 };
}

#endif
