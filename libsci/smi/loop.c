// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: the loop scheduler
 *
 * Each process has a share of the iterations: a word in its symmetric memory. The upper half is
 * the first iteration left, the lower half is the end. The process takes chunks from the front.
 * Other processes take chunks from the back when their own share is empty. All use compare and
 * swap. Iterations are counted from 0; in the cyclic mode each process counts its own.
 */
#include "libsci/smi/internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define HELP_MAX	16		/* default number of processes to help */
#define SPEED_NS	20000000u	/* nanoseconds of a speed measurement */

struct loop {
	bool used;
	bool running;
	int low, mode;
	uint64_t n;			/* iterations */
	uint64_t first, end;		/* this process's share */
	double k;
	uint64_t min[2], max[2];	/* limits of a chunk's size: own share, other share */
	int help;
	int adapt;
	uint64_t done;			/* iterations of this process in the run */
	uint64_t spent;			/* nanoseconds in the run, of a timed loop */
};

static struct loop loops[SMI_LOOPS_MAX];

/* Weights of the processes: the sums of the lower ranks and of all, and this process's weight. */
struct weights {
	double before, own, sum;
};

static double *speeds;			/* per process, after SMI_Evaluate_speed() */

/* The timed loop that is running, and the time of its start. */
static struct loop *timing;
static uint64_t timing_start;

static struct loop *loop_get(int id)
{
	return id >= 0 && id < SMI_LOOPS_MAX && loops[id].used ? &loops[id] : NULL;
}

void smi_loops_pause(void)
{
	if (!timing)
		return;
	timing->spent = sci_now_ns() - timing_start;
	timing = NULL;
}

/* ---- shares ---- */

static uint64_t share_pack(uint64_t first, uint64_t end)
{
	return first << 32 | end;
}

static uint64_t share_get_rest(uint64_t share)
{
	uint64_t first = share >> 32, end = share & UINT32_MAX;

	return first < end ? end - first : 0;
}

static int share_op(int id, enum sci_atomic op, uint64_t value, uint64_t compare,
		    uint64_t *old, int proc)
{
	return smi_error_of_team(sci_team_atomic(smi.team, &smi_shared->share[id], 8, op,
						 value, compare, old, proc));
}

static uint64_t chunk_size(const struct loop *l, uint64_t rest, bool other)
{
	uint64_t n = (uint64_t)((double)rest / l->k);

	n = n > l->max[other] ? l->max[other] : n;
	n = n < l->min[other] ? l->min[other] : n;
	return n < rest ? n : rest;
}

/* Take a chunk of @proc's share: iterations [*first, *end). Both are 0 if the share is empty. */
static int share_take(int id, int proc, uint64_t *first, uint64_t *end)
{
	struct loop *l = &loops[id];
	bool other = proc != smi.rank;
	uint64_t share, seen, left, n;
	int err = share_op(id, SCI_ATOMIC_GET, 0, 0, &share, proc);

	*first = *end = 0;
	while (!err && share_get_rest(share)) {
		n = chunk_size(l, share_get_rest(share), other);
		if (other) {
			*end = share & UINT32_MAX;
			*first = *end - n;
			left = share_pack(share >> 32, *first);
		} else {
			*first = share >> 32;
			*end = *first + n;
			left = share_pack(*end, share & UINT32_MAX);
		}
		err = share_op(id, SCI_ATOMIC_CAS, left, share, &seen, proc);
		if (!err && seen == share)
			return SMI_SUCCESS;
		share = seen;
		*first = *end = 0;
	}
	return err;
}

/* Return the process with most iterations left among those that this process helps; -1: none. */
static int share_find_largest(int id)
{
	struct loop *l = &loops[id];
	int i, reach = l->help, best = -1, proc;
	uint64_t share, most = 0;

	if (reach == SMI_HELP_ONLY_SMP || reach > smi.size - 1)
		reach = smi.size - 1;
	for (i = 1; i <= reach; i++) {
		proc = (smi.rank + i) % smi.size;
		if ((l->help == SMI_HELP_ONLY_SMP && smi_node_of(proc) != smi.node) ||
		    share_op(id, SCI_ATOMIC_GET, 0, 0, &share, proc))
			continue;
		if (share_get_rest(share) > most) {
			most = share_get_rest(share);
			best = proc;
		}
	}
	return best;
}

/* ---- distribution ---- */

static void weights_add(struct weights *w, int proc, double weight)
{
	if (proc < smi.rank)
		w->before += weight;
	else if (proc == smi.rank)
		w->own = weight;
	w->sum += weight;
}

/* Set this process's share in proportion to its weight. Neighbours compute the same borders. */
static void share_set(struct loop *l, const struct weights *w)
{
	double n = (double)l->n;

	l->first = (uint64_t)(n * (w->before / w->sum) + 0.5);
	l->end = smi.rank == smi.size - 1 ? l->n :
		 (uint64_t)(n * ((w->before + w->own) / w->sum) + 0.5);
}

/* Result of a process in the last run, exchanged at the start of a run. */
struct outcome {
	uint64_t done, spent;
};

/* Set the initial share in proportion to the results of the last run. */
static void share_shift(struct loop *l, const struct outcome *all)
{
	struct weights w = { 0 };
	bool known = true;

	for (int i = 0; i < smi.size; i++) {
		uint64_t spent = l->mode == SMI_PART_TIMED_BLOCKED ? all[i].spent : 1;

		known &= all[i].done && spent;
		/* a process that was too late for any iteration gets a share again */
		weights_add(&w, i, all[i].done ? (double)all[i].done /
						 (double)(spent ? spent : 1) : 1);
	}
	if (known || l->mode == SMI_PART_ADAPTED_BLOCKED)
		share_set(l, &w);
}

/* Make chunks smaller if other processes took part of this process's share, else larger. */
static void loop_adapt_k(struct loop *l)
{
	bool smaller = l->done < l->end - l->first;

	if (l->adapt == SMI_ADAPT_LINEAR)
		l->k += smaller ? 1 : -1;
	else if (l->adapt != SMI_NO_ADAPT)
		l->k *= smaller ? 2 : 0.5;
	if (l->k < 1)
		l->k = 1;
}

/* Start a run.  Collective.  No process takes iterations before all shares are set. */
static int run_start(int id)
{
	struct loop *l = &loops[id];
	const struct outcome *all = smi.board;
	struct outcome mine;
	uint64_t share, first, end;
	int i, err;

	smi_loops_pause();
	mine = (struct outcome) { l->done, l->spent };
	err = smi_exchange(&mine, sizeof(mine));
	if (err)
		return err;
	for (share = 0, i = 0; i < smi.size; i++)
		share += all[i].done;
	if (share)
		loop_adapt_k(l);
	if (share && l->mode >= SMI_PART_ADAPTED_BLOCKED)
		share_shift(l, all);
	first = l->mode == SMI_PART_CYCLIC ? 0 : l->first;
	end = l->mode == SMI_PART_CYCLIC ?
	      (l->n + (uint64_t)(smi.size - 1 - smi.rank)) / (uint64_t)smi.size : l->end;
	err = share_op(id, SCI_ATOMIC_SET, share_pack(first, end), 0, &share, smi.rank);
	l->done = l->spent = 0;
	l->running = !err;
	return err ? err : smi_error_of_team(sci_team_barrier(smi.team));
}

/* ---- calls ---- */

SMI_API smi_error_t SMI_Loop_init(int *id, int low, int high, int mode)
{
	int64_t n = (int64_t)high - low + 1;
	struct loop *l;
	int i;

	SMI_REFUSE(!id || mode < SMI_PART_BLOCKED || mode > SMI_PART_TIMED_BLOCKED ||
		   n > INT_MAX);
	for (i = 0; i < SMI_LOOPS_MAX && loops[i].used; i++)
		;
	if (i == SMI_LOOPS_MAX)
		return SMI_ERR_NOMEM;
	l = &loops[i];
	*l = (struct loop) {
		.low = low, .n = n > 0 ? (uint64_t)n : 0, .mode = mode, .k = smi.size,
		.min = { 1, 1 }, .max = { UINT32_MAX, UINT32_MAX }, .help = HELP_MAX,
		.adapt = SMI_NO_ADAPT, .used = true,
	};
	share_set(l, &(struct weights){ smi.rank, 1, smi.size });
	*id = i;
	return smi_agree(smi.team, SMI_SUCCESS);
}

SMI_API smi_error_t SMI_Loop_free(int id)
{
	struct loop *l = loop_get(id);
	int err;

	SMI_REFUSE(!l);
	smi_loops_pause();
	err = smi_agree(smi.team, SMI_SUCCESS);
	l->used = false;
	return err;
}

/* Convert iterations [@first, @end) of @proc's share to indices of the program's loop. */
static void chunk_store_bounds(const struct loop *l, int proc, uint64_t first, uint64_t end,
			       int *low, int *high)
{
	int64_t step = l->mode == SMI_PART_CYCLIC ? smi.size : 1;
	int64_t base = l->mode == SMI_PART_CYCLIC ? (int64_t)l->low + proc : l->low;

	*low = (int)(base + (int64_t)first * step);
	*high = (int)(base + ((int64_t)end - 1) * step);
}

static void run_timed(struct loop *l, int *low, int *high)
{
	l->done = l->end - l->first;
	if (l->done)
		chunk_store_bounds(l, smi.rank, l->first, l->end, low, high);
	timing = l;
	timing_start = sci_now_ns();
}

SMI_API smi_error_t SMI_Get_iterations(int id, int *status, int *low, int *high)
{
	uint64_t first, end;
	struct loop *l = loop_get(id);
	int proc, err;

	SMI_REFUSE(!l || !status || !low || !high);
	err = l->running ? SMI_SUCCESS : run_start(id);
	if (err)
		return err;
	*status = SMI_LOOP_READY;
	*low = 1;
	*high = 0;
	proc = l->mode == SMI_PART_TIMED_BLOCKED ? -1 : smi.rank;
	for (; proc >= 0; proc = share_find_largest(id)) {
		err = share_take(id, proc, &first, &end);
		if (err)
			return err;
		if (first == end)
			continue;
		l->done += end - first;
		*status = proc == smi.rank ? SMI_LOOP_LOCAL : SMI_LOOP_REMOTE;
		chunk_store_bounds(l, proc, first, end, low, high);
		return SMI_SUCCESS;
	}
	if (l->mode == SMI_PART_TIMED_BLOCKED)
		run_timed(l, low, high);
	l->running = false;
	return SMI_SUCCESS;
}

SMI_API smi_error_t SMI_Set_loop_param(int id, double k, int min_local, int min_remote,
				       int max_local, int max_remote)
{
	struct loop *l = loop_get(id);

	SMI_REFUSE(!l || min_local < 0 || min_remote < 0 || max_local < 0 || max_remote < 0);
	if (k >= 1)
		l->k = k;
	if (min_local)
		l->min[0] = (uint64_t)min_local;
	if (min_remote)
		l->min[1] = (uint64_t)min_remote;
	if (max_local)
		l->max[0] = (uint64_t)max_local;
	if (max_remote)
		l->max[1] = (uint64_t)max_remote;
	return SMI_SUCCESS;
}

SMI_API smi_error_t SMI_Set_loop_help_param(int id, int max_dist)
{
	struct loop *l = loop_get(id);

	SMI_REFUSE(!l || max_dist < SMI_HELP_ONLY_SMP);
	l->help = max_dist;
	return SMI_SUCCESS;
}

SMI_API smi_error_t SMI_Loop_k_adaption_mode(int id, int mode, int max_dist)
{
	struct loop *l = loop_get(id);

	SMI_REFUSE(!l || mode < SMI_NO_ADAPT || mode > SMI_ADAPT_OPT || max_dist < 0);
	l->adapt = mode;
	return SMI_SUCCESS;
}

/* Return the steps of a fixed computation that this processor does per nanosecond. */
static double speed_measure(void)
{
	uint64_t start = sci_now_ns(), steps = 0;
	volatile double x = 1;

	do {
		for (int i = 0; i < 1000; i++)
			x = x * 1.000001 + 0.5;
		steps += 1000;
	} while (sci_now_ns() - start < SPEED_NS);
	return (double)steps / (double)(sci_now_ns() - start);
}

SMI_API smi_error_t SMI_Evaluate_speed(double *n_values)
{
	double mine, slowest;
	int i, err;

	SMI_REFUSE(!n_values);
	if (!speeds)
		speeds = calloc((size_t)smi.size, sizeof(*speeds));
	err = smi_agree(smi.team, speeds ? SMI_SUCCESS : SMI_ERR_NOMEM);
	if (err)
		return err;
	mine = speed_measure();
	err = smi_exchange(&mine, sizeof(mine));
	memcpy(speeds, smi.board, (size_t)smi.size * sizeof(*speeds));
	for (slowest = speeds[0], i = 1; i < smi.size; i++)
		slowest = speeds[i] < slowest ? speeds[i] : slowest;
	for (i = 0; !err && i < smi.size; i++)
		n_values[i] = speeds[i] /= slowest;
	return err;
}

SMI_API smi_error_t SMI_Use_evaluated_speed(int id)
{
	struct weights w = { 0 };
	struct loop *l = loop_get(id);

	SMI_REFUSE(!l || !speeds);
	for (int i = 0; i < smi.size; i++)
		weights_add(&w, i, speeds[i]);
	share_set(l, &w);
	return SMI_SUCCESS;
}
