/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: comparing parameters
 *
 * A setup has a value for every parameter. Runs of messages compare setups by their time. Each
 * round visits every setup once, over a new connection each time. The result is the median,
 * over all rounds, of the ratio of two setups in the same round. So a change of the machine's
 * speed, or a disturbed round, decides nothing.
 */
#ifndef LIBSCI_TOOLS_TUNE_H
#define LIBSCI_TOOLS_TUNE_H

#include "bench.h"

#define TUNE_WORKS	32u
#define TUNE_SETUPS	16u

struct setup {
	uint64_t value[SCI_PARAMS];
};

struct work {
	enum bench_kind kind;
	size_t size;
	uint64_t count;			/* number of messages; 0: to be determined */
};

struct tune {
	struct bench_link link;
	unsigned int rounds;
	double seconds;			/* of a run */
	struct setup chosen;
	size_t room;			/* bytes of the largest work */

	/* the last call of tune_compare() has set these members */
	unsigned int n_works, n_setups;
	struct work work[TUNE_WORKS];
	double *log_t;			/* indexed by round, setup, work */
};

/* Make the works: ping-pongs and streams of @from, @from * @step ... @to bytes. */
void tune_works(struct tune *t, size_t from, size_t to, size_t step);

/* Compare setups. Return: 0, or print a message and return TOOL_FAILED. */
int tune_compare(struct tune *t, const struct setup *setups, unsigned int n);

/* Return the median over the rounds of log(time of setup @a / time of @b) for work @w. */
double tune_work_ratio(const struct tune *t, unsigned int a, unsigned int b,
		       unsigned int w);

/* The ratio of all works together: median and upper quartile. */
struct tune_ratio {
	double median, upper;
};

struct tune_ratio tune_ratio(const struct tune *t, unsigned int a,
			     unsigned int b);

/* Test whether receivers on both sides can read the sender's memory. */
int tune_single_copy_works(struct tune *t, bool *works);

#endif
