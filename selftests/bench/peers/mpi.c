// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * MPI, for both Open MPI and MPICH; settings are those of mpirun and of the
 * environment.
 *
 * usage: mpirun -np 2 mpi send|recv|isend METRIC SIZE...
 *        mpirun -np 16 mpi p2p|coll alltoall16_s SIZE...
 *
 * send: streams are blocking sends; isend: non-blocking ones in groups, of which
 * two are under way.  Receives of streams are posted in such groups; recv:
 * blocking ones for blocking sends.
 */
#if __has_include(<mpi.h>)	/* lint goes without */
#define _GNU_SOURCE

#include <mpi.h>

#include "measure.h"

#define GROUP	32

static int rank, other;
static bool blocking, waiting;

static void peer_send(size_t n)
{
	MPI_Send(peer_out, (int)n, MPI_BYTE, other, 1, MPI_COMM_WORLD);
}

static void peer_recv(size_t n)
{
	MPI_Recv(peer_in, (int)n, MPI_BYTE, other, 1, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
}

/* Starts the next group of what is left of @count; its size. */
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

/* ---- all to all ---- */

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

int main(int argc, char **argv)
{
	int ranks, i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc < 4 || ranks < 2)
		peer_die("usage: mpirun ... mpi send|recv|isend|p2p|coll METRIC SIZE...");
	peer_pin(rank);
	other = !rank;
	waiting = !strcmp(argv[1], "recv");
	blocking = waiting || !strcmp(argv[1], "send");
	if (!strcmp(argv[2], "alltoall16_s")) {
		for (i = 3; i < argc; i++)
			alltoall(!strcmp(argv[1], "coll"),
				 strtoull(argv[i], NULL, 0), ranks);
	} else {
		peer_out = peer_alloc(PEER_MAX, MAP_PRIVATE);
		peer_in = peer_alloc(PEER_MAX, MAP_PRIVATE);
		measure(rank, argv[2], argv + 3);
	}
	MPI_Finalize();
	return 0;
}

#endif
