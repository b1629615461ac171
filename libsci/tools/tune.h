/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: comparing parameters
 *
 * A setup has a value for every parameter. Runs of messages compare setups by their time. Each
 * round measures every setup once, each over a new connection. The result is the median, over
 * all rounds, of the ratio of two setups' times in the same round. So the result does not depend
 * on changes of the machine's speed, or on a disturbed round.
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
	uint64_t count;			/* number of messages; 0: not calibrated yet */
};

struct tune {
	struct bench_link link;
	unsigned int rounds;
	double seconds;			/* duration of a run */
	struct setup chosen;
	size_t room;			/* bytes of the largest message */

	/* tune_works() and tune_compare() set the members below */
	unsigned int n_works, n_setups;
	struct work work[TUNE_WORKS];
	double *log_t;			/* indexed by round, setup, work */
};

/* Set the works: ping-pongs and streams of @from, @from * @step ... @to bytes. */
void tune_works(struct tune *t, size_t from, size_t to, size_t step);

/* Compare @n setups. Return: 0, or TOOL_FAILED after a message. */
int tune_compare(struct tune *t, const struct setup *setups, unsigned int n);

/* Return the median over the rounds of log(time of setup @a / time of @b) for work @w. */
double tune_work_ratio(const struct tune *t, unsigned int a, unsigned int b,
		       unsigned int w);

/* The ratio of two setups' times for all works together: median and upper quartile. */
struct tune_ratio {
	double median, upper;
};

struct tune_ratio tune_ratio(const struct tune *t, unsigned int a,
			     unsigned int b);

/* Test whether receivers on both sides can read the sender's memory. */
int tune_single_copy_works(struct tune *t, bool *works);

#endif
