/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: collective operations
 *
 * Barrier, broadcast, allreduce and all-to-all are the calls of the library's teams. The other
 * operations send messages of the library, as a program does: a member connects to a peer before
 * the first message. All members call the same operation with the same number of bytes. Each
 * member compares the received bytes with the expected ones, and returns -EILSEQ if a byte
 * differs.
 */
#ifndef SIM_VTIME_COLLECTIVE_H
#define SIM_VTIME_COLLECTIVE_H

#include <sci/msg.h>

#include "sim/vtime/team.h"
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
	struct sci_team *team;
	unsigned int rank;
	unsigned int size;
	unsigned int round;
	uint8_t *buf;
	size_t room;
};

/* Make the tables for member_open(); free them by vt_teams_free(). NULL: no memory */
struct vt_teams *members_teams(struct vt_sim *s);

/* Open the endpoint and the team of a member, without connections. Call member_close() always. */
int member_open(struct member *m, struct vt_node *n, const struct vt_teams *teams);
void member_close(struct member *m);

typedef int (*collective_fn)(struct member *m, size_t bytes);

/* Call sci_team_barrier(). */
int collective_barrier(struct member *m, size_t bytes);

/* Broadcast from rank 0 by sci_team_bcast(). */
int collective_broadcast(struct member *m, size_t bytes);

/* Compute the sum of @bytes of all ranks, byte by byte, on all ranks, by sci_team_allreduce(). */
int collective_allreduce(struct member *m, size_t bytes);

/* Exchange @bytes with each neighbour: see vt_network_neighbours(). */
int collective_neighbours(struct member *m, size_t bytes);

/* Send @bytes from each rank to each other rank, by sci_team_alltoall(). */
int collective_alltoall(struct member *m, size_t bytes);

/* Send @bytes from each rank to rank 0, which answers in the order of arrival. */
int collective_star(struct member *m, size_t bytes);

#endif
