// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * After the death of a rank, MPI calls of the other ranks fail.
 *
 * usage: mpirun --enable-recovery -np 3 rank_dies receive|send|rendezvous
 *
 * Rank 1 meets all ranks and kills itself. The other ranks receive from it, or send
 * to it, until that fails; then they meet each other, and print "told".
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORLD	MPI_COMM_WORLD
#define DEAD	1
#define LONG	(8 << 20)

static int rank, ranks;

static void must(int ret, const char *what)
{
	if (ret == MPI_SUCCESS)
		return;
	fprintf(stderr, "rank %d: %s failed\n", rank, what);
	exit(1);
}

/* Exchange a message with every rank. */
static void meet(void)
{
	for (int i = 0; i < ranks; i++) {
		int in = -1;

		must(MPI_Sendrecv(&rank, 1, MPI_INT, i, 0, &in, 1, MPI_INT, i, 0,
				  WORLD, MPI_STATUS_IGNORE), "meeting");
		if (in != i)
			must(MPI_ERR_OTHER, "meeting the right one");
	}
}

/* Receive from or send to the dead rank until that fails. Some sends may succeed. */
static int talk_to_the_dead(const char *how)
{
	char *buf = calloc(1, LONG);
	int ret;

	if (!buf)
		return MPI_SUCCESS;
	do {
		if (!strcmp(how, "receive"))
			ret = MPI_Recv(buf, 1, MPI_CHAR, DEAD, 1, WORLD,
				       MPI_STATUS_IGNORE);
		else
			ret = MPI_Send(buf, strcmp(how, "send") ? LONG : 1,
				       MPI_CHAR, DEAD, 2, WORLD);
	} while (ret == MPI_SUCCESS);
	free(buf);
	return ret;
}

int main(int argc, char **argv)
{
	int ret, other;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(WORLD, &rank);
	MPI_Comm_size(WORLD, &ranks);
	MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
	if (argc != 2 || ranks < 3)
		must(MPI_ERR_ARG, "usage");
	meet();
	if (rank == DEAD)
		kill(getpid(), SIGKILL);
	ret = talk_to_the_dead(argv[1]);
	/* the ranks that are left: 0, 2, 3, ... */
	for (other = 0; other < ranks; other++) {
		int in = -1;

		if (other == DEAD)
			continue;
		must(MPI_Sendrecv(&rank, 1, MPI_INT, other, 3, &in, 1, MPI_INT,
				  other, 3, WORLD, MPI_STATUS_IGNORE),
		     "talking to the living");
	}
	if (ret != MPI_SUCCESS)
		printf("told\n");
	fflush(stdout);
	/* MPI_Finalize() would wait for the dead rank */
	_exit(ret == MPI_SUCCESS);
}
