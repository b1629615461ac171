// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include <math.h>
#include <stdlib.h>

#include "tune.h"

#define MIN_COUNT	4u
#define TRIPS		8u

static double *measure_at(const struct tune *t, unsigned int round, unsigned int setup,
			  unsigned int work)
{
	return &t->log_t[((size_t)round * t->n_setups + setup) * t->n_works +
			 work];
}

static void work_add(struct tune *t, enum bench_kind kind, size_t size)
{
	if (t->n_works < TUNE_WORKS)
		t->work[t->n_works++] = (struct work){ kind, size, 0 };
}

void tune_works(struct tune *t, size_t from, size_t to, size_t step)
{
	size_t size;

	t->n_works = 0;
	t->room = to;
	for (size = from; size <= to; size *= step) {
		work_add(t, BENCH_PING, size);
		work_add(t, BENCH_STREAM, size);
	}
}

/* Make a new connection with the parameters of @s on both sides. */
static int measure_enter(struct tune *t, const struct setup *s)
{
	int i;

	if (bench_link_again(&t->link) || bench_room(&t->link, t->room))
		return TOOL_FAILED;
	for (i = 0; i < SCI_PARAMS; i++)
		if (bench_set(&t->link, i, s->value[i]))
			return TOOL_FAILED;
	return TOOL_OK;
}

static int work_run(struct tune *t, struct work *w, double *log_t)
{
	double s;

	if (!w->count && bench_calibrate(&t->link, w->kind, w->size,
					 t->seconds, MIN_COUNT, &w->count))
		return TOOL_FAILED;
	if (bench_run(&t->link, w->kind, w->size, w->count / 4 + 2, &s) ||
	    bench_run(&t->link, w->kind, w->size, w->count, &s))
		return TOOL_FAILED;
	*log_t = log(s / (double)w->count);
	return TOOL_OK;
}

static int round_measure(struct tune *t, const struct setup *setups,
			 unsigned int round)
{
	unsigned int i, k, w;

	for (i = 0; i < t->n_setups; i++) {
		k = (i + round) % t->n_setups;
		if (measure_enter(t, &setups[k]))
			return TOOL_FAILED;
		for (w = 0; w < t->n_works; w++)
			if (work_run(t, &t->work[w], measure_at(t, round, k, w)))
				return TOOL_FAILED;
	}
	return TOOL_OK;
}

int tune_compare(struct tune *t, const struct setup *setups, unsigned int n)
{
	unsigned int round;

	free(t->log_t);
	t->n_setups = n;
	t->log_t = calloc((size_t)t->rounds * n * t->n_works + 1,
			  sizeof(*t->log_t));
	if (!t->log_t)
		return tool_error("out of memory");
	for (round = 0; round < t->rounds; round++)
		if (round_measure(t, setups, round))
			return TOOL_FAILED;
	return TOOL_OK;
}

double tune_work_ratio(const struct tune *t, unsigned int a, unsigned int b,
		       unsigned int w)
{
	double v[BENCH_ROUNDS];
	unsigned int r;

	for (r = 0; r < t->rounds; r++)
		v[r] = *measure_at(t, r, a, w) - *measure_at(t, r, b, w);
	bench_sort(v, t->rounds);
	return bench_quantile(v, t->rounds, 0.5);
}

struct tune_ratio tune_ratio(const struct tune *t, unsigned int a,
			     unsigned int b)
{
	double v[BENCH_ROUNDS];
	unsigned int r, w;

	for (r = 0; r < t->rounds; r++) {
		v[r] = 0;
		for (w = 0; w < t->n_works; w++)
			v[r] += (*measure_at(t, r, a, w) - *measure_at(t, r, b, w)) /
				t->n_works;
	}
	bench_sort(v, t->rounds);
	return (struct tune_ratio){
		exp(bench_quantile(v, t->rounds, 0.5)),
		exp(bench_quantile(v, t->rounds, 0.75)),
	};
}

int tune_single_copy_works(struct tune *t, bool *works)
{
	struct setup s = t->chosen;
	struct sci_ep_stats before, after;
	double seconds;

	s.value[SCI_PARAM_SINGLE_COPY_MIN] = 1;
	t->room = 65536;
	if (measure_enter(t, &s) || bench_count(&t->link, &before) ||
	    bench_run(&t->link, BENCH_PING, t->room, TRIPS, &seconds) ||
	    bench_count(&t->link, &after))
		return TOOL_FAILED;
	*works = after.sent_single_copy - before.sent_single_copy == 2 * TRIPS;
	return TOOL_OK;
}
