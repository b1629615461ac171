// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Loop splitting: each process has one range of indices, which it may shift. */

#include "libsci/smi/internal.h"

struct split {
	bool used;
	int glow, ghigh;		/* range of all processes */
	int low, high;			/* range of this process */
	uint64_t started, spent;	/* nanoseconds */
};

static struct split splits[SMI_LOOPS_MAX];

static struct split *split_get(int id)
{
	return id >= 0 && id < SMI_LOOPS_MAX && splits[id].used ? &splits[id] : NULL;
}

int smi_split_range(int id, bool total, int *low, int *high)
{
	struct split *s = split_get(id);

	if (!s)
		return SMI_ERR_PARAM;
	*low = total ? s->glow : s->low;
	*high = total ? s->ghigh : s->high;
	return SMI_SUCCESS;
}

SMI_API smi_error_t SMI_Loop_split_init(int *id)
{
	int i;

	SMI_REFUSE(!id);
	for (i = 0; i < SMI_LOOPS_MAX && splits[i].used; i++)
		;
	if (i == SMI_LOOPS_MAX)
		return SMI_ERR_NOMEM;
	splits[i] = (struct split) { .used = true, .ghigh = -1, .high = -1 };
	*id = i;
	return SMI_SUCCESS;
}

SMI_API smi_error_t SMI_Loop_index_range(int id, int *lower, int *upper, int mode)
{
	struct split *s = split_get(id);

	SMI_REFUSE(!s || !lower || !upper);
	switch (mode) {
	case SMI_LOOP_SET_GLOBAL:
		s->glow = *lower;
		s->ghigh = *upper;
		return SMI_SUCCESS;
	case SMI_LOOP_SET_LOCAL:
		s->low = *lower;
		s->high = *upper;
		return SMI_SUCCESS;
	case SMI_LOOP_GET_GLOBAL:
	case SMI_LOOP_GET_LOCAL:
		return smi_split_range(id, mode == SMI_LOOP_GET_GLOBAL, lower, upper);
	default:
		return SMI_ERR_PARAM;
	}
}

/* Set part @i of @n of a range. The last part also has the remainder. */
static void split_regular(struct split *s, int low, int high, int i, int n)
{
	int share = high < low ? 0 : (int)(((int64_t)high - low + 1) / n);

	s->low = low + i * share;
	s->high = i == n - 1 ? high : s->low + share - 1;
	if (s->low > s->high) {
		s->low = 0;
		s->high = -1;
	}
}

/* Set this process's part of the indices of elements that begin in a segment of its node. */
static int split_owner(struct split *s, int64_t size, struct smi_region *r)
{
	int64_t low = 0, high = -1;

	if (size <= 0 || !r)
		return SMI_ERR_PARAM;
	for (int i = 0; i < r->nsegs; i++) {
		const struct smi_segment *g = &r->segs[i];
		int64_t from = ((int64_t)g->offset + size - 1) / size;
		int64_t to = ((int64_t)(g->offset + g->size) + size - 1) / size - 1;

		if (smi_node_of(g->owner) != smi.node || from > to)
			continue;
		if (high < low)
			low = from;
		else if (from != high + 1)
			break;
		high = to;
	}
	low = low < s->glow ? s->glow : low;
	high = high > s->ghigh ? s->ghigh : high;
	split_regular(s, (int)low, high < low ? (int)low - 1 : (int)high,
		      sci_team_local_rank(smi.team, smi.rank),
		      sci_team_node_size(smi.team, smi.node));
	return SMI_SUCCESS;
}

SMI_API smi_error_t SMI_Determine_loop_splitting(int id, int mode, int p1, int p2)
{
	struct split *s = split_get(id);

	SMI_REFUSE(!s);
	if (mode == SMI_SPLIT_OWNER)
		return split_owner(s, p1, smi_region_get(p2));
	if (mode != SMI_SPLIT_REGULAR)
		return SMI_ERR_PARAM;
	split_regular(s, s->glow, s->ghigh, smi.rank, smi.size);
	return SMI_SUCCESS;
}

SMI_API smi_error_t SMI_Loop_time_start(int id)
{
	struct split *s = split_get(id);

	SMI_REFUSE(!s);
	s->started = sci_now_ns();
	return SMI_SUCCESS;
}

SMI_API smi_error_t SMI_Loop_time_stop(int id)
{
	struct split *s = split_get(id);

	SMI_REFUSE(!s || !s->started);
	s->spent = sci_now_ns() - s->started;
	s->started = 0;
	return SMI_SUCCESS;
}

/* Set shares in proportion to the measured speeds, so that all processes take the same time. */
SMI_API smi_error_t SMI_Loop_balance_index_range(int id)
{
	const double *all = smi.board;
	double mine = 0, sum = 0, before = 0;
	struct split *s = split_get(id);
	bool measured = true;
	int64_t n;
	int i, err;

	SMI_REFUSE(!s);
	n = (int64_t)s->ghigh - s->glow + 1;
	if (s->spent && s->high >= s->low)
		mine = ((double)s->high - s->low + 1) / (double)s->spent;
	err = smi_exchange(&mine, sizeof(mine));
	for (i = 0; i < smi.size; i++) {
		measured &= all[i] > 0;
		before += i < smi.rank ? all[i] : 0;
		sum += all[i];
	}
	if (!err && measured && n > 0) {
		s->low = s->glow + (int)((double)n * (before / sum));
		s->high = s->glow + (int)((double)n * ((before + mine) / sum)) - 1;
		if (smi.rank == smi.size - 1)
			s->high = s->ghigh;
		s->spent = 0;
	}
	return err;
}
