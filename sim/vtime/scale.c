// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * All nodes run the same operation several times. Between two runs all programs wait at a
 * barrier outside of the simulation, without messages. All programs begin a run at the same
 * time, when no packet is on the links any more.
 */
#include "sim/vtime/scale.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim/vtime/collective.h"

#define QUIET		(200 * (uint64_t)VT_US)

/* Round FIRST makes connections, and round SECOND attaches the rings that are still missing. */
enum round { FIRST, SECOND, MEASURED, ROUNDS };

struct pattern {
	const char *name;
	collective_fn fn;
};

static const struct pattern patterns[SCALE_PATTERNS] = {
	[SCALE_BARRIER] = { "barrier", collective_barrier },
	[SCALE_BROADCAST] = { "broadcast", collective_broadcast },
	[SCALE_ALLREDUCE] = { "allreduce", collective_allreduce },
	[SCALE_NEIGHBOURS] = { "neighbours", collective_neighbours },
	[SCALE_ALLTOALL] = { "alltoall", collective_alltoall },
	[SCALE_STAR] = { "star", collective_star },
};

const char *scale_name(enum scale_pattern pattern)
{
	return pattern < SCALE_PATTERNS ? patterns[pattern].name : NULL;
}

/**
 * struct world - data that the programs share
 * @here: number of programs that have reached the barrier
 * @turn: number of barriers that all programs have passed
 * @latest: the latest clock of the programs that have reached the barrier
 * @begin: start of a round, for all programs
 * @end: latest end of the round until now
 */
struct world {
	const struct scale_setup *setup;
	struct scale_result *result;
	struct vt_sim *sim;
	struct vt_teams *teams;
	unsigned int here;
	unsigned int turn;
	uint64_t latest;
	uint64_t begin;
	uint64_t end;
	int error;
	unsigned int failed;		/* the node that found @error */
};

/* ---- results ---- */

static uint64_t host_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long all, resident = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%lu %lu", &all, &resident) != 2)
		resident = 0;
	fclose(f);
	return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t host_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void stat_add(uint64_t *most, uint64_t *all, uint64_t value)
{
	*all += value;
	if (value > *most)
		*most = value;
}

static void stats_add(struct scale_result *r, const struct member *m)
{
	struct sci_ep_stats stats = { .size = sizeof(stats) };

	sci_ep_stats(m->ep, &stats);
	stat_add(&r->peers, &r->all_peers, stats.peers);
	stat_add(&r->receive, &r->all_receive, stats.peer_bytes);
	r->resent += stats.resent_lines + stats.resent_blocks;
	if (vt_att_max(m->node) > r->att)
		r->att = vt_att_max(m->node);
}

static void round_end(struct world *w, enum round round)
{
	struct scale_result *r = w->result;

	if (round == FIRST)
		r->first = w->end - w->begin;
	if (round != MEASURED)
		return;
	r->time = w->end - w->begin;
	vt_network_load(w->sim, &r->load);
	r->host_bytes = host_bytes();
}

/* ---- barrier of all programs ---- */

static void members_wake(struct world *w)
{
	for (unsigned int i = 0; i < w->setup->nodes; i++)
		vt_touch(vt_node(w->sim, i));
}

static void round_begin(void *arg)
{
	vt_network_clear(arg);
}

/* Release the barrier, which all programs have reached. The first barrier ends no round. */
static void barrier_release(struct world *w)
{
	if (w->turn)
		round_end(w, (enum round)(w->turn - 1));
	w->here = 0;
	w->turn++;
	w->begin = w->latest + QUIET;
	w->end = 0;
	vt_at(w->sim, w->begin, round_begin, w->sim);
	members_wake(w);
}

/* Wait at the barrier, and answer peers. All programs leave the barrier at the same time. */
static void barrier_wait(struct world *w, struct member *m)
{
	struct vt_node *n = m->node;
	unsigned int turn = w->turn;

	if (vt_clock(n) > w->latest)
		w->latest = vt_clock(n);
	if (++w->here == m->size)
		barrier_release(w);
	while (w->turn == turn && !w->error) {
		uint64_t seen = vt_touches(n);

		vt_sync(n);
		if (!sci_progress(m->ep) && w->turn == turn && !w->error)
			vt_wait(n, seen, VT_NEVER);
	}
	if (vt_clock(n) < w->begin)
		vt_busy(n, w->begin - vt_clock(n));
	vt_sync(n);
}

/* ---- the program ---- */

static int play_round(struct world *w, struct member *m, enum round round)
{
	int ret;

	m->round = round;
	ret = patterns[w->setup->pattern].fn(m, w->setup->bytes);
	if (ret)
		return ret;
	if (vt_clock(m->node) > w->end)
		w->end = vt_clock(m->node);
	barrier_wait(w, m);
	return w->error;
}

static void scale_play(struct vt_node *n, void *arg)
{
	struct world *w = arg;
	struct member m;
	int ret = member_open(&m, n, w->teams);

	if (!ret)
		barrier_wait(w, &m);
	for (int i = 0; !ret && i < ROUNDS; i++)
		ret = play_round(w, &m, (enum round)i);
	if (!ret) {
		stats_add(w->result, &m);
		barrier_wait(w, &m);
	} else if (!w->error) {
		w->error = ret;
		w->failed = vt_id(n);
		members_wake(w);
	}
	member_close(&m);
}

static bool scale_judge(const struct world *w, bool done)
{
	const struct scale_setup *s = w->setup;

	if (done && !w->error)
		return true;
	fprintf(stderr, "sci-model: %s of %u nodes: ", scale_name(s->pattern),
		s->nodes);
	if (!w->error)
		fprintf(stderr, "it waits for ever\n");
	else
		fprintf(stderr, "node %u: %s\n", w->failed,
			w->error == -EILSEQ ? "a wrong byte has come" :
					      strerror(-w->error));
	return false;
}

bool scale_run(const struct scale_setup *setup, struct scale_result *r)
{
	struct world w = { .setup = setup, .result = r };
	uint64_t before, ns = host_clock_ns();
	bool done;

	memset(r, 0, sizeof(*r));
	/* free memory of an earlier run, which would count for this run */
	malloc_trim(0);
	before = host_bytes();
	w.sim = vt_new(setup->profile, setup->nodes, setup->topology,
		       setup->seed);
	if (!w.sim)
		return false;
	w.teams = members_teams(w.sim);
	if (!w.teams) {
		vt_free(w.sim);
		return false;
	}
	vt_set_loss(w.sim, setup->loss);
	for (unsigned int i = 0; i < setup->nodes; i++)
		vt_start(vt_node(w.sim, i), scale_play, &w);
	done = vt_run(w.sim);
	r->events = vt_events(w.sim);
	r->host_bytes = r->host_bytes > before ? r->host_bytes - before : 0;
	vt_teams_free(w.teams);
	vt_free(w.sim);
	r->host_ns = host_clock_ns() - ns;
	return scale_judge(&w, done);
}
