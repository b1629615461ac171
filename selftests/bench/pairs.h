/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * Compare two ways to do the same thing. Both are measured in turn, many times and
 * in alternating order, so that a pair of values is from the same state of the
 * machine.
 *
 * The CPUs of a virtual machine may move. So a probe, the ping-pong of a word, runs
 * before each pair. A pair is "near" if its probe took at most 1.4 times the lowest
 * quartile of all probes, else "far". Each placement has medians of its own.
 */
#ifndef SELFTESTS_PAIRS_H
#define SELFTESTS_PAIRS_H

#include "selftests/bench/bench.h"

#define PAIRS		61u
#define PROBE_ROUNDS	500u

struct pairs {
	double a[PAIRS], b[PAIRS], probe[PAIRS];
	unsigned int n;
};

/* Time a ping-pong. Both processes pass the same shared @words, 0 at first. */
static inline double pairs_probe(volatile uint32_t *words, bool first)
{
	volatile uint32_t *own = first ? &words[0] : &words[32];
	volatile uint32_t *other = first ? &words[32] : &words[0];
	uint64_t begin = bench_ns();

	for (unsigned int i = 0; i < PROBE_ROUNDS; i++) {
		uint32_t next = *own + 1;

		if (first)
			*own = next;
		for (unsigned int spins = 0; *other != next; spins++)
			if (spins > 10000)
				sched_yield();
		if (!first)
			*own = next;
	}
	return (double)(bench_ns() - begin) / 2e3 / PROBE_ROUNDS;
}

static inline void pairs_add(struct pairs *p, double probe, double a, double b)
{
	p->probe[p->n] = probe;
	p->a[p->n] = a;
	p->b[p->n++] = b;
}

static inline void pairs_row(const struct pairs *p, const char *name, bool near, double limit)
{
	double a[PAIRS], b[PAIRS], ratio[PAIRS];
	unsigned int n = 0;

	for (unsigned int i = 0; i < p->n; i++) {
		if ((p->probe[i] <= limit) != near)
			continue;
		a[n] = p->a[i];
		b[n] = p->b[i];
		ratio[n] = a[n] / b[n];
		n++;
	}
	if (n)
		printf("%-14s %-4s %5u %12.4f %12.4f %8.3f\n", name, near ? "near" : "far", n,
		       bench_median(a, n), bench_median(b, n), bench_median(ratio, n));
}

static inline void pairs_title(const char *what, const char *a, const char *b)
{
	printf("%-14s %-4s %5s %12s %12s %8s\n", what, "at", "pairs", a, b, "ratio");
}

/* Print a line for each placement that has pairs. */
static inline void pairs_print(const struct pairs *p, const char *name)
{
	double probe[PAIRS], limit;

	memcpy(probe, p->probe, sizeof(probe));
	bench_sort(probe, p->n);
	limit = 1.4 * bench_quantile(probe, p->n, 0.25);
	pairs_row(p, name, true, limit);
	pairs_row(p, name, false, limit);
	fflush(stdout);
}

#endif
