/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: frames between an adapter and the fabric daemon
 *
 * Adapters connect to a Unix socket of type SOCK_SEQPACKET; each message is a frame. Numbers are
 * in the machine's byte order, because adapters and daemon are on one host. An adapter connects,
 * sends FRAME_ATTACH and receives FRAME_ATTACHED and FRAME_LINK, or FRAME_REFUSED and
 * end of file. The end of the connection detaches the node.
 *
 * Errors in FRAME_REFUSED: EEXIST: the node is attached already; EINVAL: invalid id or memory, or
 * a reserved field that is not 0; EPROTONOSUPPORT: version; EPROTO: no FRAME_ATTACH;
 * ENODEV: the topology does not have the node; ENOMEM: out of memory.
 *
 * The daemon drops a packet with wrong sizes, or whose source is not the adapter's own node. Any
 * other invalid frame ends the connection.
 */
#ifndef SIM_SWITCH_PROTOCOL_H
#define SIM_SWITCH_PROTOCOL_H

#include <stdint.h>

#include "sim/adapter/packet.h"

#define FABRIC_VERSION	1u
#define FABRIC_RANGES	4u	/* limit for the pieces of a machine's main memory */

enum frame_kind {
	FRAME_PACKET = 1,	/* both ways: a struct sim_packet follows */
	FRAME_NO_NODE,		/* to an adapter: its request, which was not delivered */
	FRAME_ATTACH,		/* from an adapter: struct frame_attach */
	FRAME_ATTACHED,		/* to an adapter: it is attached */
	FRAME_REFUSED,		/* to an adapter: it was refused; value is an errno */
	FRAME_LINK,		/* to an adapter: value 1: link up, 0: down */
	/*
	 * Direct windows. The daemon reports each direct node to all other direct nodes
	 * (FRAME_PEER, FRAME_PEER_GONE). An adapter sends the place of its export table after
	 * each change.
	 */
	FRAME_PEER,		/* to an adapter: struct frame_attach of node */
	FRAME_PEER_GONE,	/* to an adapter: unmap the memory of node */
	FRAME_EXPORTS,		/* both ways: struct frame_exports, node's table */
	FRAME_INVALIDATE,	/* both ways: value is an export id of node */
	FRAME_INVALIDATED,	/* answer with the same node and value; from the daemon: all
				 * adapters have answered or closed their connection */
};

/**
 * struct frame - head of every frame
 * @kind: enum frame_kind
 * @node: the node that the frame is about; by default the adapter's own node
 * @value: number whose meaning depends on the kind, else 0
 */
struct frame {
	uint32_t kind;
	uint32_t node;
	uint32_t value;
	uint32_t reserved;
};

/**
 * struct frame_attach - the first frame of an adapter
 * @version: FABRIC_VERSION
 * @direct: the frame carries a descriptor of the adapter's main memory (SCM_RIGHTS)
 * @ranges: number of used entries of @range
 * @range: main memory: bus address, bytes, offset in the descriptor
 */
struct frame_attach {
	struct frame head;
	uint32_t version;
	uint32_t direct;
	uint32_t ranges;
	uint32_t reserved;
	struct {
		uint64_t address;
		uint64_t size;
		uint64_t offset;
	} range[FABRIC_RANGES];
};

struct frame_exports {
	struct frame head;
	uint64_t base;
	uint32_t entries;
	uint32_t reserved;
};

struct frame_packet {
	struct frame head;
	struct sim_packet packet;	/* as long as its size field says */
};

#endif
