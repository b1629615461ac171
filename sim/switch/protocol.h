/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: frames between an adapter and the fabric daemon
 *
 * A Unix socket of type SOCK_SEQPACKET; each message is a frame.  Numbers are in
 * the machine's byte order: both ends are on one host.  An adapter connects,
 * sends FRAME_ATTACH and gets FRAME_ATTACHED and FRAME_LINK, or FRAME_REFUSED and
 * end of file.  When the connection ends the node is gone.
 *
 * Refused: EEXIST: there is a node of that id; EINVAL: id, memory, or something
 * reserved that is not 0; EPROTONOSUPPORT: version; EPROTO: no FRAME_ATTACH;
 * ENODEV: the topology does not have the node; ENOMEM.
 *
 * A packet whose sizes are wrong, or that is not from the adapter's own node, is
 * dropped.  Any other invalid frame ends the connection.
 */
#ifndef SIM_SWITCH_PROTOCOL_H
#define SIM_SWITCH_PROTOCOL_H

#include <stdint.h>

#include "sim/adapter/packet.h"

#define FABRIC_VERSION	1u
#define FABRIC_RANGES	4u	/* limit for the pieces of a machine's main memory */

enum frame_kind {
	FRAME_PACKET = 1,	/* both ways: a struct sim_packet follows */
	FRAME_NO_NODE,		/* to an adapter: its request could not be delivered */
	FRAME_ATTACH,		/* from an adapter: struct frame_attach */
	FRAME_ATTACHED,		/* to an adapter: it is attached */
	FRAME_REFUSED,		/* to an adapter: it was refused; value is an errno */
	FRAME_LINK,		/* to an adapter: value 1: link up, 0: down */
	/*
	 * Direct windows. The daemon tells each direct node of every other one (FRAME_PEER,
	 * FRAME_PEER_GONE). An adapter sends the place of its export table after each change.
	 */
	FRAME_PEER,		/* to an adapter: struct frame_attach of node */
	FRAME_PEER_GONE,	/* to an adapter: forget node and its memory */
	FRAME_EXPORTS,		/* both ways: struct frame_exports, node's table */
	FRAME_INVALIDATE,	/* both ways: value is an export id of node */
	FRAME_INVALIDATED,	/* answer to it, with its node and value; the
				 * daemon's: all have answered */
};

/**
 * struct frame - head of every frame
 * @kind: enum frame_kind
 * @node: the node it is about; by default the adapter's own
 * @value: number whose meaning depends on the kind, else 0
 */
struct frame {
	uint32_t kind;
	uint32_t node;
	uint32_t value;
	uint32_t reserved;
};

/**
 * struct frame_attach - an adapter introduces itself
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
