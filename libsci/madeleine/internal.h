/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: inside Madeleine
 *
 *	tbx_*.c, ntbx.c	the toolbox
 *	config.c, session.c	files of sessions
 *	world.c			start and end, channels and connections
 *	message.c		blocks to fragments of messages, and back
 *	network.h, net_msg.c	transport of fragments: an endpoint of each network
 *	way.c			links through gateways
 *	gateway.c		forwards fragments; receives on several networks
 */
#ifndef LIBSCI_MADELEINE_INTERNAL_H
#define LIBSCI_MADELEINE_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <sci/msg.h>
#include <sci/team.h>

/* the functions of pm2_common.h are exported, all others are hidden */
#pragma GCC visibility push(default)
#include <pm2_common.h>
#pragma GCC visibility pop

#include "libsci/madeleine/config.h"
#include "libsci/madeleine/network.h"
#include "libsci/madeleine/session.h"

p_ntbx_process_container_t mad_pc_new(void);
void mad_pc_add(p_ntbx_process_container_t pc, p_ntbx_process_t process);
void mad_pc_free(p_ntbx_process_container_t pc);
p_ntbx_topology_table_t mad_topology_new(int size);
void mad_topology_connect(p_ntbx_topology_table_t t, int src, int dst);
void mad_topology_free(p_ntbx_topology_table_t t);

/* ---- gates: one open message at a time ---- */

struct gate {
	pthread_mutex_t lock;
	pthread_cond_t free;
	pthread_t owner;
	bool taken;
};

void mad_gate_init(struct gate *g);
void mad_gate_fini(struct gate *g);
/*
 * Take the gate. Return false if another thread has it and @wait is false. A second take by the
 * same thread is a fatal error.
 */
bool mad_gate_take(struct gate *g, bool wait, const char *what);
void mad_gate_leave(struct gate *g);

/* ---- messages ---- */

/* A block of an open message, or a copy of the block. */
struct mad_block {
	void *buf;
	size_t len;
};

struct mad_blocks {
	struct mad_block *block;
	size_t n, room;
};

struct mad_reqs {
	struct {
		void *req;		/* a request of the network */
		size_t len;
	} *req;
	size_t n, room;
};

/* One direction of a connection. */
struct mad_stream {
	struct mad_link link;
	struct gate gate;		/* only for outgoing streams */
	uint8_t *buf;			/* the fragment being packed or unpacked */
	size_t n;			/* bytes in @buf */
	size_t at;			/* incoming: number of bytes already taken */
	bool begun;			/* outgoing: the first fragment is sent */
	bool holding;			/* outgoing: send further blocks at the end */
	struct mad_blocks held;
	struct mad_blocks later;	/* LATER and CHEAPER blocks: sent last */
	struct mad_blocks copies;	/* freed at the end of the message */
	struct mad_reqs reqs;
};

struct mad_reception {
	struct gate gate;
	struct mad_inbox inbox;
	uint8_t *buf;			/* for the next message's first fragment */
};

void mad_stream_free(struct mad_stream *s);

/* ---- the process ---- */

struct mad_world {
	struct sci_team *team;
	int rank, size;
	const struct mad_net *net;
	void *net_state;
	struct session *session;
	p_mad_madeleine_t m;
	p_tbx_slist_t channels;		/* p_mad_channel_t: channels and sub-channels */
	pthread_mutex_t lock;		/* protects @channels */
};

struct mad_world *mad_world(void);
/* Gather @len bytes of each process, by rank. Collective. */
int mad_world_exchange(struct mad_world *w, const void *mine, size_t len, void *all);

#endif
