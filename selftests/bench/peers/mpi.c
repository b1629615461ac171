// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Measure Open MPI or MPICH; mpirun and the environment have the settings.
 *
 * usage: mpirun -np 2 mpi send|recv|isend METRIC SIZE...
 *        mpirun -np 2 mpi send barrier_us|allreduce_us SIZE...
 *        mpirun -np 16 mpi p2p|coll alltoall16_s SIZE...
 *        mpirun -np 4 mpi window {win,mem}_{fop,gacc,lock}_us SIZE...
 *
 * Streams of "send" are blocking sends, those of "isend" non-blocking sends in groups, of
 * which two are under way.  The receives of both are posted in such groups.  "recv" uses
 * blocking sends and blocking receives.  barrier_us and allreduce_us (SIZE bytes of long
 * words) are the time of one call in a row of calls.
 *
 * "window" is one-sided communication with passive targets: with windows that MPI allocates
 * (win) or over memory of the program (mem).  All ranks access the windows of the others, in
 * turn.  The value is the time of a rank per access:
 *
 *	fop	MPI_Fetch_and_op() and flush, under a shared lock of all ranks
 *	gacc	MPI_Get_accumulate() of SIZE bytes of long words, and flush
 *	lock	exclusive lock, put of SIZE bytes, unlock
 */
#if __has_include(<mpi.h>)	/* not installed for lint */
#define _GNU_SOURCE

#include <mpi.h>

#include "measure.h"

#define GROUP	32

static int rank, other;
static bool blocking, waiting;
static MPI_Request posted;

static void peer_send(size_t n)
{
	MPI_Send(peer_out, (int)n, MPI_BYTE, other, 1, MPI_COMM_WORLD);
}

static void peer_recv(size_t n)
{
	MPI_Recv(peer_in, (int)n, MPI_BYTE, other, 1, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
}

static void post_receive(size_t n)
{
	MPI_Irecv(peer_in, (int)n, MPI_BYTE, other, 1, MPI_COMM_WORLD, &posted);
}

static void wait_receive(void)
{
	MPI_Wait(&posted, MPI_STATUS_IGNORE);
}

/* Start the next group of the remaining @count messages and return its size. */
static int start(MPI_Request *group, size_t n, uint64_t *count)
{
	int k = *count < GROUP ? (int)*count : GROUP, i;

	for (i = 0; i < k; i++)
		if (rank)
			MPI_Irecv(peer_in, (int)n, MPI_BYTE, other, 1,
				  MPI_COMM_WORLD, &group[i]);
		else
			MPI_Isend(peer_out, (int)n, MPI_BYTE, other, 1,
				  MPI_COMM_WORLD, &group[i]);
	*count -= (uint64_t)k;
	return k;
}

static void stream(size_t n, uint64_t count)
{
	MPI_Request group[2][GROUP];
	int k[2], turn;

	k[0] = start(group[0], n, &count);
	k[1] = start(group[1], n, &count);
	for (turn = 0; k[turn]; turn = !turn) {
		MPI_Waitall(k[turn], group[turn], MPI_STATUSES_IGNORE);
		k[turn] = start(group[turn], n, &count);
	}
}

static void peer_stream_out(size_t n, uint64_t count)
{
	uint64_t i;

	if (!blocking) {
		stream(n, count);
		return;
	}
	for (i = 0; i < count; i++)
		peer_send(n);
}

static void peer_stream_in(size_t n, uint64_t count)
{
	uint64_t i;

	if (!waiting) {
		stream(n, count);
		return;
	}
	for (i = 0; i < count; i++)
		peer_recv(n);
}

/* ---- barrier and allreduce ---- */

/* Repeat an allreduce of @n bytes, or a barrier for 0. */
static void together(size_t n, uint64_t count)
{
	uint64_t i;

	for (i = 0; !n && i < count; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	for (i = 0; n && i < count; i++)
		MPI_Allreduce(peer_out, peer_in, (int)(n / sizeof(long)),
			      MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
}

static void check_sums(size_t n)
{
	long *out = (long *)peer_out, *in = (long *)peer_in;
	size_t i, k = n / sizeof(long);

	for (i = 0; i < k; i++)
		out[i] = (long)i * (rank + 1);
	together(n, 1);
	for (i = 0; i < k; i++)
		if (in[i] != (long)i * 3)
			peer_die("wrong sum %zu of %zu", i, k);
}

static double together_run(void *arg, uint64_t count)
{
	size_t n = *(size_t *)arg;
	double begin;

	peer_tell(PEER_STREAM, n, count);
	begin = peer_now();
	together(n, count);
	return peer_now() - begin;
}

static void together_obey(void)
{
	struct peer_order o;

	for (;;) {
		peer_recv(sizeof(o));
		memcpy(&o, peer_in, sizeof(o));
		peer_send(0);
		if (o.what == PEER_END)
			return;
		if (o.what == PEER_PROBE)
			peer_probe_answer();
		else if (o.what == PEER_CHECK)
			check_sums(o.size);
		else
			together(o.size, o.count);
	}
}

static void measure_together(const char *metric, char **sizes)
{
	struct peer_sample v[PEER_RUNS];
	unsigned int i;
	size_t n;

	peer_probe_open();
	if (rank) {
		together_obey();
		return;
	}
	for (; *sizes; sizes++) {
		n = strtoull(*sizes, NULL, 0);
		peer_must(n <= PEER_MAX && n % sizeof(long) == 0);
		peer_tell(PEER_CHECK, n, 1);
		check_sums(n);
		peer_measure(together_run, &n, peer_probe_run, v);
		for (i = 0; i < PEER_RUNS; i++)
			peer_print(metric, n, v[i].seconds * 1e6, &v[i]);
	}
	peer_tell(PEER_END, 0, 0);
}

/* ---- all-to-all ---- */

static void exchange_p2p(char *out, char *in, int n, int ranks)
{
	MPI_Request r[2 * PEER_RANKS];
	int i, k = 0, to, from;

	for (i = 1; i < ranks; i++) {
		from = (rank + ranks - i) % ranks;
		MPI_Irecv(in + from * n, n, MPI_BYTE, from, 1, MPI_COMM_WORLD,
			  &r[k++]);
	}
	for (i = 1; i < ranks; i++) {
		to = (rank + i) % ranks;
		MPI_Isend(out + to * n, n, MPI_BYTE, to, 1, MPI_COMM_WORLD,
			  &r[k++]);
	}
	MPI_Waitall(k, r, MPI_STATUSES_IGNORE);
}

static void exchange(bool coll, char *out, char *in, int n, int ranks)
{
	if (coll)
		MPI_Alltoall(out, n, MPI_BYTE, in, n, MPI_BYTE, MPI_COMM_WORLD);
	else
		exchange_p2p(out, in, n, ranks);
}

static void alltoall(bool coll, size_t n, int ranks)
{
	size_t all = n * (size_t)ranks;
	char *out = peer_alloc(all, MAP_PRIVATE);
	char *in = peer_alloc(all, MAP_PRIVATE);
	int count = peer_alltoall_count(n), i;
	double begin;

	memset(out, rank + 1, all);
	exchange(coll, out, in, (int)n, ranks);
	for (i = 0; i < ranks; i++)
		if (i != rank && in[n * (size_t)i + n - 1] != i + 1)
			peer_die("wrong bytes from %d", i);
	MPI_Barrier(MPI_COMM_WORLD);
	begin = peer_now();
	for (i = 0; i < count; i++)
		exchange(coll, out, in, (int)n, ranks);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank)
		printf("alltoall16_s %zu %.6g\n", n, peer_now() - begin);
	fflush(stdout);
	munmap(out, all);
	munmap(in, all);
}

/* ---- windows ---- */

#define WINDOW	4096		/* bytes of a rank */

static MPI_Win window;
static long *words;		/* the window's memory */
static int ranks;

static void access_fop(int target, int n)
{
	long one = 1, old;

	(void)n;
	MPI_Fetch_and_op(&one, &old, MPI_LONG, target, 0, MPI_SUM, window);
	MPI_Win_flush(target, window);
}

static void access_gacc(int target, int n)
{
	static const long ones[WINDOW / sizeof(long)] = { [0 ... WINDOW / sizeof(long) - 1] = 1 };
	long old[WINDOW / sizeof(long)];
	int k = n / (int)sizeof(long);

	MPI_Get_accumulate(ones, k, MPI_LONG, old, k, MPI_LONG, target, 0, k, MPI_LONG,
			   MPI_SUM, window);
	MPI_Win_flush(target, window);
}

static void access_lock(int target, int n)
{
	static const char bytes[WINDOW];

	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window);
	MPI_Put(bytes, n, MPI_BYTE, target, 0, n, MPI_BYTE, window);
	MPI_Win_unlock(target, window);
}

/* Return the seconds of @count accesses of all ranks. Rank 0 decides @count. */
static double window_run(void (*fn)(int target, int n), bool locked, int n, uint64_t *count)
{
	double begin;
	uint64_t i;

	MPI_Bcast(count, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	memset(words, 0, WINDOW);
	MPI_Barrier(MPI_COMM_WORLD);
	begin = peer_now();
	if (!locked)
		MPI_Win_lock_all(0, window);
	for (i = 0; i < *count; i++)
		fn((rank + 1 + (int)(i % (uint64_t)(ranks - 1))) % ranks, n);
	if (!locked)
		MPI_Win_unlock_all(window);
	MPI_Barrier(MPI_COMM_WORLD);
	return peer_now() - begin;
}

/* Check that no addition is lost. In each round of ranks - 1 accesses, each window gets as many. */
static void window_check(const char *metric, uint64_t count)
{
	if (!strstr(metric, "_lock_") && words[0] != (long)count)
		peer_die("%s: %ld of %lu additions", metric, words[0], (unsigned long)count);
}

static void windows(const char *metric, size_t n)
{
	void (*fn)(int, int) = strstr(metric, "_fop_") ? access_fop :
			       strstr(metric, "_gacc_") ? access_gacc : access_lock;
	uint64_t each = (uint64_t)ranks - 1, count = each, runs = 0;
	const char *ms = getenv("PEER_MS");
	double goal = (ms ? atof(ms) : 30) / 1000, t;

	peer_must(n <= WINDOW && n >= sizeof(long));
	if (strncmp(metric, "mem_", 4)) {
		MPI_Win_allocate(WINDOW, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &words, &window);
	} else {
		words = peer_alloc(WINDOW, MAP_PRIVATE);
		MPI_Win_create(words, WINDOW, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	}
	do {
		t = window_run(fn, fn == access_lock, (int)n, &count);
		if (!count)
			break;
		window_check(metric, count);
		if (runs)
			printf("%s %zu %.6g\n", metric, n, t * 1e6 / (double)count);
		if (rank || (!runs && t < goal / 2))
			count *= 2;
		else if (!runs++)
			count = ((uint64_t)((double)count * goal / t) / each + 1) * each;
		else if (runs > PEER_RUNS)
			count = 0;
	} while (true);
	fflush(stdout);
	MPI_Win_free(&window);
	if (!strncmp(metric, "mem_", 4))
		munmap(words, WINDOW);
}

int main(int argc, char **argv)
{
	int i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc < 4 || ranks < 2)
		peer_die("usage: mpirun ... mpi send|recv|isend|p2p|coll METRIC SIZE...");
	peer_pin(rank);
	other = !rank;
	peer_post = post_receive;
	peer_wait = wait_receive;
	waiting = !strcmp(argv[1], "recv");
	blocking = waiting || !strcmp(argv[1], "send");
	if (!strcmp(argv[1], "window")) {
		for (i = 3; i < argc; i++)
			windows(argv[2], strtoull(argv[i], NULL, 0));
	} else if (!strcmp(argv[2], "alltoall16_s")) {
		for (i = 3; i < argc; i++)
			alltoall(!strcmp(argv[1], "coll"),
				 strtoull(argv[i], NULL, 0), ranks);
	} else {
		peer_out = peer_alloc(PEER_MAX, MAP_PRIVATE);
		peer_in = peer_alloc(PEER_MAX, MAP_PRIVATE);
		if (!strcmp(argv[2], "barrier_us") ||
		    !strcmp(argv[2], "allreduce_us"))
			measure_together(argv[2], argv + 3);
		else
			measure(rank, argv[2], argv + 3);
	}
	MPI_Finalize();
	return 0;
}

#endif
