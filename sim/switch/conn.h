/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: an adapter's connection
 *
 * Frames that an adapter does not read wait in a queue. If the queue is full, packets are lost.
 * Other frames are kept, but an adapter with very many waiting frames is disconnected.
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
 * @memory: direct data path: the descriptor of the node's main memory; else -1
 */
struct conn {
	struct watch watch;
	struct later later;
	struct conn *next;
	struct fabric *fabric;
	struct node *node;
	bool failing;
	struct waiting *queue, **queue_end;
	unsigned int packets, others;
	size_t bytes;			/* of packets */
	int memory;
	struct frame_attach attach;
	bool has_exports;
	struct frame_exports exports;
};

void conn_accept(struct fabric *f, int fd);

/* Let a connection end soon; from now on it counts as gone. */
void conn_fail(struct conn *c);

/* Separate the connection from its node. */
void conn_leave(struct conn *c);
void conn_close_all(struct fabric *f);

/* Return whether the other end has gone. */
bool conn_dead(const struct conn *c);

/* Send a frame that is not a packet, with a descriptor or -1. */
void conn_send(struct conn *c, const void *frame, size_t size, int fd);

/* Send a frame with a packet. Return false if there was no room. */
bool conn_send_packet(struct conn *c, const void *frame, size_t size);

#endif
