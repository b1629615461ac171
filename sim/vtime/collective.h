/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: collective operations
 *
 * The operations send messages of the library, as a program does. A member connects to a peer
 * before the first message. All members call the same operation with the same number of bytes. Each
 * member compares the received bytes with the expected ones, and returns -EILSEQ if a byte
 * differs.
 */
#ifndef SIM_VTIME_COLLECTIVE_H
#define SIM_VTIME_COLLECTIVE_H

#include <sci/msg.h>

#include "sim/vtime/vtime.h"

/**
 * struct member - a member of the operations
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

/* Open the endpoint of a member without connections. */
int member_open(struct member *m, struct vt_node *n);
void member_close(struct member *m);

typedef int (*collective_fn)(struct member *m, size_t bytes);

/* Make a barrier by dissemination: log2 n rounds of 8 bytes. */
int collective_barrier(struct member *m, size_t bytes);

/* Broadcast from rank 0 along a binomial tree. */
int collective_broadcast(struct member *m, size_t bytes);

/* Broadcast from rank 0 along a chain of all ranks, in segments, as a team does with long data. */
int collective_chain(struct member *m, size_t bytes);

/*
 * Compute the sum of @bytes of all ranks, byte by byte, on all ranks. Recursive doubling takes
 * log2 n rounds of exchanges between pairs. Ranks beyond a power of two send their bytes to
 * another rank before these rounds, and receive the sum after these rounds.
 */
int collective_allreduce(struct member *m, size_t bytes);

/* Exchange @bytes with each neighbour: see vt_network_neighbours(). */
int collective_neighbours(struct member *m, size_t bytes);

/* Send @bytes from each rank to each other rank, in n - 1 rounds between pairs. */
int collective_alltoall(struct member *m, size_t bytes);

/* Make an all-to-all by Bruck's algorithm: log2 n rounds, each with half of the data. */
int collective_bruck(struct member *m, size_t bytes);

/* Send @bytes from each rank to rank 0, which answers in the order of arrival. */
int collective_star(struct member *m, size_t bytes);

#endif
