// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Measure collective calls of libsci's teams (built with -DCOLL_TEAM) or of an MPI.
 *
 * usage: LAUNCHER -n RANKS coll METRIC SIZE...
 *
 * METRIC is NAME or NAME/RANKS; NAME is a row of the table below with the suffix
 * "_us". SIZE is the number of bytes of a broadcast or a reduced vector, and of the
 * data between two ranks for other calls. The root changes with each call, so that
 * no rank runs ahead. The first call of each size is checked. A value is the time
 * of one call in a row of calls that ends with a barrier; measure.h has the length
 * of the row. With SYMMETRIC=1 the buffers of a team are in symmetric memory.
 */
#define _GNU_SOURCE
#ifdef COLL_TEAM
#include <sci/team.h>
#elif __has_include(<mpi.h>)
#include <mpi.h>
#define COLL_MPI
#endif
#if defined(COLL_TEAM) || defined(COLL_MPI)

#pragma GCC diagnostic ignored "-Wunused-function"
#include "measure.h"

#define ROOM	(2 * PEER_MAX)

static int rank, ranks;
static char *out, *in;			/* buffers of ROOM bytes */

static void peer_send(size_t n) { (void)n; }
static void peer_recv(size_t n) { (void)n; }
static void peer_stream_out(size_t n, uint64_t count) { (void)n; (void)count; }
static void peer_stream_in(size_t n, uint64_t count) { (void)n; (void)count; }

/* ---- the calls ---- */

#ifdef COLL_TEAM
static struct sci_team *team;

#define SUM_	sci_op(SCI_OP_SUM, SCI_TYPE_INT64)
#define CALL(name, call)							\
	static void name(size_t n, int root)					\
	{									\
		(void)n;							\
		(void)root;							\
		peer_must(!(call));						\
	}
CALL(barrier, sci_team_barrier(team))
CALL(bcast, sci_team_bcast(team, root, rank == root ? out : in, n))
CALL(reduce, sci_team_reduce(team, root, out, in, n / 8, SUM_))
CALL(allreduce, sci_team_allreduce(team, out, in, n / 8, SUM_))
CALL(reduce_scatter, sci_team_reduce_scatter(team, out, in, n / 8, SUM_))
CALL(scan, sci_team_scan(team, out, in, n / 8, SUM_))
CALL(gather, sci_team_gather(team, root, out, n, in))
CALL(allgather, sci_team_allgather(team, out, n, in))
CALL(scatter, sci_team_scatter(team, root, out, in, n))
CALL(alltoall, sci_team_alltoall(team, out, in, n))

static char *buffer(void)
{
	void *p;

	if (!getenv("SYMMETRIC"))
		return peer_alloc(ROOM, MAP_PRIVATE);
	peer_must(!sci_team_alloc(team, ROOM, 4096, &p));
	return memset(p, 0, ROOM);
}

static void start(int *argc, char ***argv)
{
	struct sci_team_attr attr = { .size = sizeof(attr), .symmetric_size = 3 * ROOM };

	(void)argc;
	(void)argv;
	peer_must(!sci_team_open(&team, &attr));
	rank = sci_team_rank(team);
	ranks = sci_team_size(team);
}

static void stop(void)
{
	peer_must(!sci_team_close(team));
}
#else
#define CALL(name, call)							\
	static void name(size_t n, int root)					\
	{									\
		(void)n;							\
		(void)root;							\
		peer_must((call) == MPI_SUCCESS);				\
	}
#define BYTES(buf)	buf, (int)n, MPI_BYTE
#define LONGS	(int)(n / 8), MPI_INT64_T, MPI_SUM
CALL(barrier, MPI_Barrier(MPI_COMM_WORLD))
CALL(bcast, MPI_Bcast(BYTES(rank == root ? out : in), root, MPI_COMM_WORLD))
CALL(reduce, MPI_Reduce(out, in, LONGS, root, MPI_COMM_WORLD))
CALL(allreduce, MPI_Allreduce(out, in, LONGS, MPI_COMM_WORLD))
CALL(reduce_scatter, MPI_Reduce_scatter_block(out, in, LONGS, MPI_COMM_WORLD))
CALL(scan, MPI_Scan(out, in, LONGS, MPI_COMM_WORLD))
CALL(gather, MPI_Gather(BYTES(out), BYTES(in), root, MPI_COMM_WORLD))
CALL(allgather, MPI_Allgather(BYTES(out), BYTES(in), MPI_COMM_WORLD))
CALL(scatter, MPI_Scatter(BYTES(out), BYTES(in), root, MPI_COMM_WORLD))
CALL(alltoall, MPI_Alltoall(BYTES(out), BYTES(in), MPI_COMM_WORLD))

static char *buffer(void)
{
	return peer_alloc(ROOM, MAP_PRIVATE);
}

static void start(int *argc, char ***argv)
{
	peer_must(MPI_Init(argc, argv) == MPI_SUCCESS);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

static void stop(void)
{
	MPI_Finalize();
}
#endif

/* ---- expected results ---- */

/* Return word @i of the data that rank @from sends to rank @to. */
static int64_t sent(int from, int to, size_t i)
{
	return (int64_t)i * (from + 1) + to * 1000003;
}

static int64_t sum(int below, int to, size_t i)
{
	int64_t s = 0;

	for (int r = 0; r < below; r++)
		s += sent(r, to, i);
	return s;
}

enum result { NOTHING, SUM, SUMS, PREFIX, FROM_ROOT, PART, PARTS };

/* Return word @i of part @part of the caller's result; the root is rank 0. */
static int64_t expected(enum result result, int part, size_t i)
{
	switch (result) {
	case SUM:
		return sum(ranks, 0, i);
	case SUMS:
		return sum(ranks, rank, i);
	case PREFIX:
		return sum(rank + 1, 0, i);
	case FROM_ROOT:
		return sent(0, 0, i);
	case PART:
		return sent(0, rank, i);
	default:
		return sent(part, rank, i);
	}
}

static const struct row {
	const char *name;
	void (*call)(size_t n, int root);
	enum result result;
	bool rooted;			/* only the root has a result */
	bool to_each;			/* each rank gets another part */
} rows[] = {
	{ "barrier", barrier, NOTHING, false, false },
	{ "bcast", bcast, FROM_ROOT, false, false },
	{ "reduce", reduce, SUM, true, false },
	{ "allreduce", allreduce, SUM, false, false },
	{ "reduce_scatter", reduce_scatter, SUMS, false, true },
	{ "scan", scan, PREFIX, false, false },
	{ "gather", gather, PARTS, true, false },
	{ "allgather", allgather, PARTS, false, false },
	{ "scatter", scatter, PART, false, true },
	{ "alltoall", alltoall, PARTS, false, true },
};

static void check(const struct row *r, size_t n)
{
	size_t words = n / 8;
	int to = r->to_each ? ranks : 1;
	int parts = r->result == PARTS ? ranks : r->result == NOTHING ? 0 : 1;

	for (int part = 0; part < to; part++)
		for (size_t i = 0; i < words; i++)
			((int64_t *)out)[(size_t)part * words + i] = sent(rank, part, i);
	r->call(n, 0);
	if ((r->rooted && rank) || (r->result == FROM_ROOT && !rank))
		return;
	for (int part = 0; part < parts; part++)
		for (size_t i = 0; i < words; i++) {
			int64_t v = r->result == PARTS && !r->to_each ? sent(part, 0, i) :
				    expected(r->result, part, i);

			if (((int64_t *)in)[(size_t)part * words + i] != v)
				peer_die("%s: wrong word %zu of part %d", r->name, i, part);
		}
}

/* ---- time ---- */

/* Return rank 0's value on all ranks. */
static double share(double v)
{
	memcpy(rank ? in : out, &v, sizeof(v));
	bcast(sizeof(v), 0);
	memcpy(&v, rank ? in : out, sizeof(v));
	return v;
}

/*
 * Probe with ranks 0 and 1; the other ranks leave the CPUs to them. All ranks must
 * call this, and get the same result.
 */
static double probe(void)
{
	static uint64_t turn;
	double us = 0;

	if (!peer_probe)
		return 0;
	turn++;
	barrier(0, 0);
	if (!rank) {
		us = peer_probe_ask();
		sci_store_release(&peer_probe->turn, turn);
	} else if (rank == 1) {
		peer_probe_answer();
	} else {
		while (sci_load_acquire(&peer_probe->turn) < turn)
			usleep(100);
	}
	us = share(us);
	peer_pace = share(peer_pace);
	return us;
}

struct point {
	const struct row *row;
	size_t size;
};

static double point_run(void *arg, uint64_t count)
{
	const struct point *p = arg;
	double begin;

	barrier(0, 0);
	begin = peer_now();
	for (uint64_t i = 0; i < count; i++)
		p->row->call(p->size, (int)(i % (uint64_t)ranks));
	barrier(0, 0);
	return share(peer_now() - begin);
}

/* Clear the probe file, which an earlier program has used. */
static void probe_start(void)
{
	peer_probe_open();
	barrier(0, 0);
	if (!rank && peer_probe)
		memset(peer_probe, 0, sizeof(*peer_probe));
	barrier(0, 0);
}

static const struct row *row_find(const char *metric)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t len = strlen(rows[i].name);

		if (!strncmp(metric, rows[i].name, len) && !strncmp(metric + len, "_us", 3))
			return &rows[i];
	}
	peer_die("no such metric: %s", metric);
}

int main(int argc, char **argv)
{
	const struct row *r;

	start(&argc, &argv);
	if (argc < 3)
		peer_die("usage: LAUNCHER -n RANKS coll METRIC SIZE...");
	peer_pin(rank);
	out = buffer();
	in = buffer();
	r = row_find(argv[1]);
	probe_start();
	for (char **size = argv + 2; *size; size++) {
		size_t n = strtoull(*size, NULL, 0);
		struct peer_sample v[PEER_RUNS];
		struct point p = { r, n };

		peer_must(n % 8 == 0 && n <= ROOM && (n * (size_t)ranks <= ROOM ||
						      (r->result != PARTS && !r->to_each)));
		check(r, n);
		peer_measure(point_run, &p, probe, v);
		for (unsigned int i = 0; !rank && i < PEER_RUNS; i++)
			peer_print(argv[1], n, v[i].seconds * 1e6, &v[i]);
	}
	stop();
	return 0;
}

#endif
