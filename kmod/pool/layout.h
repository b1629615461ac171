/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the layout of a pool
 *
 * A pool is memory that several machines map.  It begins with metadata: a header,
 * then tables whose places follow from the header.  The rest are chunks, which
 * segments are made of.  All integers are little-endian.
 *
 *	header		written by the formatter alone, its magic number last
 *	slots		one per node: its generation and its count of heartbeats
 *	bells		one line per node: incremented when there is mail for it
 *	chunks		one entry per chunk: its owner
 *	maps		per node, one word per chunk: the node has mapped the chunk's memory
 *	mail		a ring for each pair of nodes
 *
 * Slot N belongs to node 4 * (N + 1).  A node takes its slot by one compare-and-
 * swap, which makes its node id unique, and counts up the slot's generation, which begins
 * with the low half of the pool's id.  A
 * node whose heartbeats stop for as long as a lease is expelled by any other node:
 * again one compare-and-swap.
 *
 * The owner of a chunk is in the chunk's own word, with the generation of the
 * owner's slot. So the tables never contradict each other, even if a node dies between two
 * stores. When a node has ended, all words of its generation are orphans, and other nodes free
 * them. The first chunk of an allocation is taken first and freed last, and has the length.
 *
 * A node that maps another node's allocation stores its generation into its own
 * map word first, and then reads whether the allocation is still exposed.
 * The owner withdraws the allocation first, and then reads all map words.
 * So the owner does not use a chunk again while another node has it mapped.
 *
 * When a node that hung and was expelled continues, its programs may still store before its
 * kernel checks the slot. Therefore its memory, and memory that it had mapped, is not used for
 * the time of a quarantine, or until that machine reports that it has released everything.
 *
 * A pool may be on memory for which the caches of machines are not coherent (POOL_INCOHERENT).
 * A node then flushes a line before each load, and before and after each store. Compare-and-swap
 * is atomic only within a machine, so each line has one writer at a time:
 *
 *	chunks		each slot has an equal share; its node allocates and frees only there
 *	expelled	a row per slot: the generations of other slots that its node has expelled
 *	bells		the heartbeat; they do not ring: a receiver reads the heads of its rings
 *
 * A node that takes a slot stores a random token before it reads that the slot is free, and has
 * the slot if the token is still there after it has stored the slot's word.  The slot of a node
 * that has not left is free after the quarantine: a node that hangs may until then write an old
 * line back.
 *
 * A machine that maps a pool can store any bytes anywhere in it. So it can destroy the data of
 * all machines. The code prevents any other damage.
 */
#ifndef SCI_POOL_LAYOUT_H
#define SCI_POOL_LAYOUT_H

#include "port.h"

#define POOL_MAGIC		0x6c6f6f5049435331ull	/* "1SCIPool" */
#define POOL_VERSION		1	/* of a pool without flags */
#define POOL_VERSION_FLAGS	2	/* of a pool with flags */

#define POOL_NODE_STEP		4
#define POOL_SLOTS_MAX		64
#define POOL_CHUNK_MIN		4096
#define POOL_CHUNK_MAX		(1u << 24)
#define POOL_CHUNKS_MAX		(1u << 22)
#define POOL_ALIGN		4096		/* of each table */
#define POOL_NAME		32		/* bytes of a host's name */
#define POOL_PACKET		64		/* bytes of a control packet */
#define POOL_MAIL_SLOTS		32		/* packets of one ring */
#define POOL_LINE		64		/* bytes of a cache line */
#define POOL_SHARE_UNIT		16		/* chunks whose words of each table fill lines */

/* pool_header.flags */
#define POOL_INCOHERENT		1u
#define POOL_FLAGS		POOL_INCOHERENT

/**
 * struct pool_header - the first page
 * @magic: POOL_MAGIC; stored last
 * @version: POOL_VERSION or POOL_VERSION_FLAGS
 * @crc: crc32 of the fields from @size on
 * @size: bytes of the whole pool
 * @id: a random number, which each formatting changes
 * @chunk_size: bytes of a chunk, a power of two
 * @chunks: number of chunks
 * @slots: number of slots
 * @lease_ms: silence after which a node is expelled
 * @quarantine_ms: time for which the memory of an expelled node is not used
 * @flags: POOL_FLAGS
 * @data: offset of the first chunk
 */
struct pool_header {
	__le64 magic;
	__le32 version;
	__le32 crc;
	__le64 size;
	__le64 id;
	__le32 chunk_size;
	__le32 chunks;
	__le32 slots;
	__le32 lease_ms;
	__le32 quarantine_ms;
	__le32 flags;
	__le64 data;
};
static_assert(sizeof(struct pool_header) == 64, "64 bytes in the pool");

/**
 * struct pool_slot - a node
 * @word: generation, and POOL_SLOT_ACTIVE; changed by compare-and-swap
 * @beat: heartbeat count, which the node increments several times in each lease
 * @dropped: the last generation whose node has released everything
 * @doorbell: the number of the node's ivshmem device plus 1; 0: the node polls
 * @name: name of the node's host, for messages to users
 * @claim: token of the node that last tried to take the slot, with POOL_INCOHERENT
 */
struct pool_slot {
	__le64 word;
	__le64 beat;
	__le32 dropped;
	__le32 doorbell;
	u8 pad[40];
	u8 name[POOL_NAME];
	__le64 claim;
	u8 pad2[24];
};
static_assert(sizeof(struct pool_slot) == 128, "128 bytes in the pool");

#define POOL_SLOT_ACTIVE	(1ull << 32)

/**
 * struct pool_bell - the bell of a node
 * @count: incremented when there is mail
 * @beat: heartbeat count, with POOL_INCOHERENT
 */
struct pool_bell {
	__le32 count;
	u8 pad[4];
	__le64 beat;
	u8 pad2[48];
};
static_assert(sizeof(struct pool_bell) == 64, "64 bytes in the pool");

/**
 * struct pool_chunk - the owner of a chunk
 * @word: 0: the chunk is free; else the fields of POOL_CHUNK_*; changed by compare-and-swap
 * @serial: serial of the exposed memory; the owner stores it before it exposes the memory
 * @pad: 0
 */
struct pool_chunk {
	__le64 word;
	__le32 serial;
	u8 pad[4];
};
static_assert(sizeof(struct pool_chunk) == 16, "16 bytes in the pool");

/* bits of pool_chunk.word: generation 0-31, slot + 1 32-39, state 40-41, length 42-63 */
#define POOL_CHUNK_SLOT_SHIFT	32
#define POOL_CHUNK_STATE_SHIFT	40
#define POOL_CHUNK_LEN_SHIFT	42
#define POOL_LENGTH_MAX		((1u << 22) - 1)	/* chunks of an allocation */

/**
 * enum pool_chunk_state - state of an allocation's chunk
 * @POOL_MORE: a chunk behind the first one of an allocation
 * @POOL_HELD: the first chunk; other nodes cannot map the allocation
 * @POOL_EXPOSED: the first chunk; other nodes may map the allocation
 * @POOL_FREED: the first chunk; it is free when no node maps it any more
 */
enum pool_chunk_state {
	POOL_MORE,
	POOL_HELD,
	POOL_EXPOSED,
	POOL_FREED,
};

/**
 * struct pool_mail - a packet
 * @crc: checksum of @packet
 * @packet: the packet of the core
 */
struct pool_mail {
	u8 packet[POOL_PACKET];
	__le32 crc;
	u8 pad[60];
};
static_assert(sizeof(struct pool_mail) == 128, "128 bytes in the pool");

/**
 * struct pool_ring - packets from one node to another
 * @head: number of packets that were ever put in; stored by the sender
 * @tail: number of packets that were ever taken out; stored by the receiver
 * @mail: packet N is at N % POOL_MAIL_SLOTS
 */
struct pool_ring {
	__le32 head;
	u8 pad[60];
	__le32 tail;
	u8 pad2[60];
	struct pool_mail mail[POOL_MAIL_SLOTS];
};

#endif
