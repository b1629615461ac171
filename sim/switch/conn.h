/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: an adapter's connection
 *
 * Frames that an adapter does not read wait in a queue. If the queue is full, packets are lost.
 * Frames that are not packets are never lost: the daemon disconnects an adapter for which very
 * many such frames wait.
 *
 * If the daemon ends the connection of a direct adapter, the adapter may map memory of its peers
 * until it reads the end of file. Until the adapter has closed its end, the connection stays.
 */
#ifndef SIM_SWITCH_CONN_H
#define SIM_SWITCH_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/switch/loop.h"
#include "sim/switch/protocol.h"

struct fabric;
struct node;
struct waiting;

/**
 * struct conn - a connection
 * @node: the node; NULL: the adapter has not attached
 * @failing: the connection ends after the present events
 * @ending: the node has left, but the adapter has not closed its end yet
 * @others: number of frames in @queue that are not packets
 * @memory: direct data path: the descriptor of the node's main memory; else -1
 */
struct conn {
	struct watch watch;
	struct later later;
	struct conn *next;
	struct fabric *fabric;
	struct node *node;
	bool failing, ending;
	struct waiting *queue, **queue_end;
	unsigned int packets, others;
	size_t bytes;			/* of packets */
	int memory;
	struct frame_attach attach;
	bool has_exports;
	struct frame_exports exports;
};

void conn_accept(struct fabric *f, int fd);

/* End a connection after the present events. From now on, its node counts as detached. */
void conn_fail(struct conn *c);

/* Separate the connection from its node. */
void conn_leave(struct conn *c);
void conn_close_all(struct fabric *f);

/* Return whether the adapter has closed its end of the connection. */
bool conn_dead(const struct conn *c);

/* Send a frame that is not a packet, with the descriptor @fd; -1: no descriptor. */
void conn_send(struct conn *c, const void *frame, size_t size, int fd);

/*
 * Drop the frames about a direct node that has left, if its FRAME_PEER still waits in the queue.
 * Return false if the adapter knows the node.
 */
bool conn_withdraw_peer(struct conn *c, uint32_t node);

/* Send a frame with a packet. Return false if the queue is full. */
bool conn_send_packet(struct conn *c, const void *frame, size_t size);

#endif
