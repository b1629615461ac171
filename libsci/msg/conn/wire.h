/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the protocol between endpoints
 *
 * Each side of a connection has an inbox: one page in the receiver's memory. Only the peer
 * writes to an inbox, and no process reads it remotely:
 *
 *	line 0		 status: the peer's read positions in its inbox and rings, and
 *			 whether the peer sleeps (struct msg_status)
 *	lines 1 .. 15	 control ring: answers about transfers that have begun; the
 *			 receiver can always handle them at once
 *	lines 16 .. 63	 data ring: messages, in order
 *
 * Control lines have a separate ring, so a transfer can end even if unexpected messages block the
 * data ring.
 *
 * A busy connection attaches two more segments, also in the receiver's memory: the eager ring when
 * its sender asks for it, and the transfer ring when the receiver first accepts a rendezvous in
 * blocks. Both rings contain whole blocks that are padded to 64 bytes and never split: a block that
 * does not fit before the end of the ring is at the start. A line announces a block by the
 * position of its end.
 *
 * Between two endpoints that have two rails, the receiver of a rendezvous also lends a ring on
 * the second rail, and each side has a second inbox there. Lines use one rail at a time: reroute.c.
 *
 * The owner of a ring sends LINE_RECALL to recall its memory. A sender whose ring is empty drops
 * its import and answers with LINE_DETACH. After this line, the ring does not exist. A sender that
 * uses the ring does not answer. A sender that cannot import the transfer ring returns it with
 * LINE_DETACH, without a recall. Positions in a ring that is attached again continue from the end
 * of the former ring. LINE_RECALL and LINE_DETACH use the data ring, so LINE_DETACH arrives before
 * each later request for a ring and each later RTS.
 *
 * Two HELLOs make a connection. A HELLO is a data interrupt that names the inbox for the other
 * side. Then each side imports the inbox of the other side.
 *
 * All integers are little-endian and packed. The receiver checks all contents of the lines that it
 * takes off a ring.
 */
#ifndef LIBSCI_MSG_WIRE_H
#define LIBSCI_MSG_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsci/msg/conn/line.h"

#define MSG_VERSION	11u
#define MSG_MAGIC	0x4d494353u	/* "SCIM" */
/* First number of the segments and interrupts of this layer. */
#define MSG_NUMBERS	0x4d000000u
#define MSG_NUMBERS_MASK	0xffffffu

/*
 * Return whether @id can be a segment of this layer. A peer names the segments that this endpoint
 * imports: the peer must not make the endpoint map, and write to, segments of other programs.
 */
static inline bool msg_number_is_valid(uint32_t id)
{
	return (id & ~MSG_NUMBERS_MASK) == MSG_NUMBERS;
}

#define INBOX_BYTES	4096u
#define INBOX_CTL	1u
#define INBOX_DATA	16u
#define CTL_LINES	(INBOX_DATA - INBOX_CTL)
#define DATA_LINES	(INBOX_BYTES / LINE_BYTES - INBOX_DATA)

#define MSG_UNTAGGED	UINT32_MAX	/* the context of untagged messages */
#define MSG_HANDLERS	0xffffff80u	/* first context of handlers: MSG_HANDLERS + id */

struct msg_inbox {
	struct msg_line status;
	struct msg_line ctl[CTL_LINES];
	struct msg_line data[DATA_LINES];
};

_Static_assert(sizeof(struct msg_inbox) == INBOX_BYTES, "one page");

/*
 * Line 0 of an inbox. Only the peer writes to it. Each field only grows (mod 2^32) and is written
 * as a whole, so an old or torn status only contains older values.
 */
struct msg_status {
	uint32_t data;			/* lines taken off the data ring */
	uint32_t ctl;			/* lines taken off the control ring */
	uint32_t eager;			/* bytes taken off the eager ring */
	uint32_t xfer;			/* bytes taken off the transfer ring */
	uint32_t sleeps;		/* announced sleeps: one ring of the bell for each */
	uint32_t rung;			/* the receiver's last sleep that the sender rang for */
	uint32_t rail;			/* bytes taken off the ring of the second rail */
	uint32_t reserved;		/* 0, as the rest of the line */
};

_Static_assert(sizeof(struct msg_status) == LINE_BYTES / 2, "fits a line");

enum msg_hello_type {
	HELLO_CONNECT = 1,
	HELLO_REFUSE,
	HELLO_REROUTE,			/* reroute.c */
};

enum {
	HELLO_WAKE_BARRIER = 1 << 0,	/* senders to this endpoint need no fence */
	HELLO_CRC = 1 << 1,		/* the sender's blocks have checksums */
	HELLO_WRITE_EVENTS = 1 << 2,	/* the sender takes events of writes */
};

struct msg_hello {
	uint32_t magic;
	uint16_t version;
	uint16_t type;
	uint32_t node;			/* the sender's address */
	uint32_t id;
	uint64_t nonce;			/* identifies the sending endpoint until it closes */
	uint64_t to;			/* nonce of the answered endpoint; 0: no answer */
	uint32_t inbox;			/* segment made for the receiver */
	uint32_t flags;
	int32_t status;			/* HELLO_REFUSE: -errno */
	uint32_t yours;			/* the receiver's inbox if it is imported; or 0 */
	uint32_t rail;			/* the sender's node on its second rail; 0: it has none */
	uint32_t rail_inbox;		/* segment made for the receiver on that rail; 0: none */
	/* HELLO_REROUTE */
	uint32_t turn;			/* number of the reroute; odd: to the second rail */
	uint32_t data;			/* lines that the sender has taken off its data ring */
	uint32_t ctl;			/* and off its control ring */
	uint32_t answer;		/* != 0: the sender needs no answer */
};

_Static_assert(sizeof(struct msg_hello) == 72, "on the wire");

/* Types of lines: below LINE_ATTACHED on the data ring, the other types on the control ring. */
enum msg_line_type {
	LINE_SHORT,			/* has no type */
	LINE_TAGGED,
	LINE_CHAIN,			/* the rest follows in short lines */
	LINE_EAGER,
	LINE_MORE,			/* eager: a block after the first */
	LINE_RTS,			/* a rendezvous: request to send */
	LINE_ATTACH,			/* a request to attach rings of these sizes */
	LINE_TAGGED_IMM,		/* or untagged: the context is MSG_UNTAGGED */
	LINE_CHAIN_IMM,
	LINE_RECALL,			/* asks the receiver to detach the ring that it fills */
	LINE_DETACH,			/* the sender has detached the ring that it filled */
	LINE_ATTACHED = 16,
	LINE_CTS,			/* rendezvous: clear to send */
	LINE_BLOCK,			/* a block is in a ring of rendezvous blocks */
	LINE_FIN,			/* a transfer has ended */
};

#define LINE_BODY	61u		/* bytes before the type */

struct line_tagged {
	uint64_t tag;
	uint32_t context;
	uint8_t len;
	uint8_t data[48];
} __attribute__((packed));

struct line_tagged_imm {
	uint64_t tag;
	uint32_t context;
	uint8_t len;
	uint64_t imm;
	uint8_t data[40];
} __attribute__((packed));

#define CHAIN_HEAD	41u		/* bytes in the first line */

struct line_chain {
	uint64_t len;
	uint64_t tag;
	uint32_t context;
	uint8_t data[CHAIN_HEAD];
} __attribute__((packed));

#define CHAIN_IMM_HEAD	33u

struct line_chain_imm {
	uint64_t len;
	uint64_t tag;
	uint32_t context;
	uint64_t imm;
	uint8_t data[CHAIN_IMM_HEAD];
} __attribute__((packed));

struct line_eager {
	uint64_t tag;
	uint32_t context;
	uint32_t len;
	uint32_t first;			/* length of the first block */
	uint32_t end;			/* of the first block, in bytes since the start */
	uint32_t crc;
	uint64_t imm;
	uint8_t has_imm;
} __attribute__((packed));

struct line_more {
	uint32_t len;
	uint32_t end;
	uint32_t crc;
} __attribute__((packed));

enum {
	RTS_CRC = 1 << 0,
	RTS_PRIVATE = 1 << 1,
	RTS_EXPORTED = 1 << 2,
	RTS_IMM = 1 << 3,
	RTS_SYNC = 1 << 4,		/* send a FIN after the last block, too */
};

struct line_rts {
	uint64_t len;
	uint64_t tag;
	uint32_t context;
	uint32_t id;			/* request of the sender, for CTS and FIN */
	uint64_t addr;			/* RTS_PRIVATE: address in the sender's process */
	uint64_t offset;		/* RTS_EXPORTED: offset in this segment */
	uint32_t segment;
	uint8_t flags;
	uint64_t imm;			/* RTS_IMM */
} __attribute__((packed));

struct line_attach {
	uint32_t size;			/* wanted size of the eager ring */
} __attribute__((packed));

enum msg_ring {
	RING_EAGER,
	RING_XFER,
	RING_RAIL,			/* as RING_XFER, on the second rail: rail.c */
	MSG_RINGS
};

struct line_attached {
	uint32_t segment;
	uint32_t size;
	int32_t status;
	uint8_t ring;			/* enum msg_ring */
} __attribute__((packed));

/* LINE_RECALL, LINE_DETACH */
struct line_ring {
	uint8_t ring;			/* enum msg_ring */
} __attribute__((packed));

enum { CTS_BLOCKS = 1, CTS_ZCOPY, CTS_TARGET };

#define ERRNO_MAX	4095		/* the highest errno that a peer may send */

/* Return whether a peer may send this status: 0 or -errno. */
static inline bool status_is_valid(int32_t status)
{
	return status <= 0 && status >= -ERRNO_MAX;
}

struct line_cts {
	uint32_t id;			/* request of the sender */
	uint32_t to;			/* request of the receiver, for BLOCK and FIN */
	uint64_t len;			/* bytes that the receiver wants */
	uint64_t offset;		/* CTS_ZCOPY: offset in this segment */
	uint32_t segment;		/* CTS_TARGET: id of a target of the net */
	uint32_t rail_segment;		/* CTS_ZCOPY: id on the second rail, or 0 */
	uint8_t mode;
} __attribute__((packed));

struct line_block {
	uint32_t to;
	uint32_t len;
	uint32_t end;
	uint32_t crc;
	uint64_t offset;		/* offset in the message */
	uint8_t ring;			/* RING_XFER or RING_RAIL */
} __attribute__((packed));

enum { FIN_NOTHING, FIN_EXPORTED, FIN_PRIVATE };	/* how the receiver read */

struct line_fin {
	uint32_t id;
	int32_t status;
	uint8_t how;			/* FIN_* */
	uint8_t receiver;		/* @id is a request of the receiver */
} __attribute__((packed));

/* ---- messages to handlers of this layer ---- */

enum {
	HANDLER_ATOMIC,			/* the tag of the first five is a request's id */
	HANDLER_ATOMIC_REPLY,
	HANDLER_WRITE,
	HANDLER_READ,
	HANDLER_COPY_REPLY,
	HANDLER_WRITE_EVENT,		/* the tag is the immediate */
	HANDLER_EVENTS_TAKEN,		/* no bytes; the tag is a number of events */
};

/*
 * A piece of a transfer: blocks. The bytes of a write follow the request; those of a read, the
 * reply.
 */
struct copy_request {
	uint64_t offset;		/* offset of the first block in segment @segment */
	uint64_t stride;		/* distance of two blocks, which wraps */
	uint32_t segment;
	uint32_t block;			/* bytes of a block */
	uint32_t len : 31;		/* bytes of all blocks */
	uint32_t last : 1;		/* last piece of a write: always send a reply */
	uint32_t reserved;
};

_Static_assert(sizeof(struct copy_request) == 32, "on the wire");

/*
 * In the tag of the last piece of a write. The tag of a reply is the tag of its piece. The owner also
 * replies to each other piece that fails, but the write ends with the reply to its last piece.
 */
#define COPY_LAST	((uint64_t)1 << 32)

struct copy_reply {
	int32_t status;			/* 0 or -errno */
	uint32_t reserved;
};

struct atomic_request {
	uint64_t offset;		/* offset of the word in segment @segment */
	uint64_t operand;
	uint64_t compare;
	uint32_t segment;
	uint8_t op;			/* enum sci_rmw_op */
	uint8_t type;			/* enum sci_rmw_type */
	uint8_t reserved[2];
};

_Static_assert(sizeof(struct atomic_request) == 32, "one line");

struct atomic_reply {
	uint64_t before;
	int32_t status;
	uint32_t reserved;
};

_Static_assert(sizeof(struct atomic_reply) == 16, "one line");

struct write_event {
	uint64_t len;			/* length of the write */
};

/* The layout of a typed line in struct msg_line. */
struct msg_typed {
	union {
		struct line_tagged tagged;
		struct line_tagged_imm tagged_imm;
		struct line_chain chain;
		struct line_chain_imm chain_imm;
		struct line_eager eager;
		struct line_more more;
		struct line_rts rts;
		struct line_attach attach;
		struct line_attached attached;
		struct line_ring ring;
		struct line_cts cts;
		struct line_block block;
		struct line_fin fin;
		uint8_t body[LINE_BODY];
	};
	uint8_t type;
	uint8_t tail[2];
} __attribute__((packed));

_Static_assert(sizeof(struct msg_typed) == LINE_BYTES, "fits a line");
_Static_assert(offsetof(struct msg_typed, type) == LINE_BODY, "before tail");

#endif
