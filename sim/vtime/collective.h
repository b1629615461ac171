/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: what many nodes do together
 *
 * Collective operations as a program would have them: messages of the library's
 * to peers that are connected when they are first needed.  All members call the
 * same one, with the same number of bytes.  Each compares the bytes that it receives
 * with the expected ones: a byte that differs is -EILSEQ.
 */
#ifndef SIM_VTIME_COLLECTIVE_H
#define SIM_VTIME_COLLECTIVE_H

#include <sci/msg.h>

#include "sim/vtime/vtime.h"

/**
 * struct member - a node that takes part
 * @rank: 0 to @size - 1
 * @round: number of the round; the bytes differ in each round
 * @buf: buffer of all operations; freed after the endpoint, because requests of a failed
 *	operation may use it
 */
struct member {
	struct vt_node *node;
	struct sci_ep *ep;
	unsigned int rank;
	unsigned int size;
	unsigned int round;
	uint8_t *buf;
	size_t room;
};

/* Open the endpoint, and make no connection. */
int member_open(struct member *m, struct vt_node *n);
void member_close(struct member *m);

typedef int (*collective_fn)(struct member *m, size_t bytes);

/* Make a barrier by dissemination: log2 n rounds of 8 bytes. */
int collective_barrier(struct member *m, size_t bytes);

/* Broadcast from rank 0 along a binomial tree. */
int collective_broadcast(struct member *m, size_t bytes);

/*
 * Give all ranks the sum of @bytes of each rank, byte by byte. Recursive doubling: log2 n rounds
 * of exchanges between pairs. Ranks beyond a power of two give their bytes to another
 * rank before these rounds, and get the sum after them.
 */
int collective_allreduce(struct member *m, size_t bytes);

/* Exchange @bytes with each neighbour: see vt_network_neighbours(). */
int collective_neighbours(struct member *m, size_t bytes);

/* @bytes from each to each, in n - 1 rounds between pairs. */
int collective_alltoall(struct member *m, size_t bytes);

/* Make an all-to-all by Bruck's algorithm: log2 n rounds, each with half of the data. */
int collective_bruck(struct member *m, size_t bytes);

/* @bytes from each to rank 0, which answers them in the order they come. */
int collective_star(struct member *m, size_t bytes);

#endif
