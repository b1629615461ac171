/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: pipes
 *
 * A pipe carries bytes in both directions between two processes of one fabric, as a
 * connected stream socket does.  Each side exports a segment: a head, which the other
 * side writes, and a ring, into which the other side writes its bytes.  Nobody reads
 * remote memory.
 *
 *	written		bytes that have been put into the ring of this segment
 *	taken		bytes that the other side has taken out of its own ring
 *	armed[2]	counts the wake-ups that the other side has asked for: when there
 *			are bytes for it, and when there is room for bytes of its own
 *
 * A side that finds no bytes (no room) raises armed[] in the other side's head and looks
 * again.  A side that has changed written (taken) looks at armed[] and triggers the
 * interrupt of the other side if the count differs from the one it has served.  A full
 * barrier stands between the two steps on both sides, so one of the two sees the other.
 *
 * A loss of packets is found by the link's error count: bytes are written again before
 * they are counted, and the words of the head are repeated by sci_pipe_repeat().
 */
#ifndef LIBSCI_PIPE_H
#define LIBSCI_PIPE_H

#include <sys/types.h>
#include <sys/uio.h>

#include "libsci/fabric/core/fabric.h"

#define SCI_PIPE_RING	(256u << 10)

enum { SCI_PIPE_DATA, SCI_PIPE_ROOM };

struct sci_pipe_head {
	_Alignas(64) uint64_t written;
	_Alignas(64) uint64_t taken;
	_Alignas(64) uint64_t armed[2];
	_Alignas(64) uint64_t peer;	/* segment << 32 | interrupt of the other side */
	_Alignas(64) uint8_t ring[];
};

struct sci_pipe {
	struct sci_fabric *fabric;
	unsigned int adapter;
	struct sci_link_status *link;
	bool lossy;
	struct sci_lseg *lseg;
	struct sci_rseg *rseg;
	struct sci_lintr *lintr;
	struct sci_rintr *rintr;
	uint32_t segment, interrupt;	/* ours */
	struct sci_pipe_head *in;	/* of our segment */
	struct sci_pipe_head *out;	/* of the other side's */
	uint64_t sent;			/* bytes put into its ring */
	uint64_t taken;			/* bytes taken out of ours */
	uint64_t told;			/* ... of which the other side knows */
	uint64_t armed[2];		/* as in @out */
	uint64_t served[2];		/* of those in @in */
};

/**
 * sci_pipe_begin() - make this side's segment and interrupt
 * @event: called when the other side has done something, or is gone
 */
int sci_pipe_begin(struct sci_pipe *p, struct sci_fabric *fabric, unsigned int adapter,
		   sci_event_fn event, void *owner);

/* Connect to the other side's; blocks for @timeout ms at most. */
int sci_pipe_connect(struct sci_pipe *p, unsigned int node, uint64_t peer,
		     uint32_t timeout, sci_event_fn event, void *owner);

/* Undo both; sci_pipe_end() of a pipe of zeros does nothing. */
void sci_pipe_end(struct sci_pipe *p);

/* This side's number, for sci_pipe_connect() of the other side. */
uint64_t sci_pipe_number(const struct sci_pipe *p);

/* Tell the other side our number, in its head. */
void sci_pipe_answer(struct sci_pipe *p);
/* The number that the other side has told us; 0: none yet. */
uint64_t sci_pipe_answered(const struct sci_pipe *p);

/*
 * As sendmsg() and recvmsg() of a socket that does not block: bytes, -EAGAIN or
 * -ECONNRESET; sci_pipe_recv() returns 0 at the end.  With @arm the event function is
 * called when -EAGAIN would be over.
 */
ssize_t sci_pipe_send(struct sci_pipe *p, const struct iovec *iov, size_t n, bool arm);
ssize_t sci_pipe_recv(struct sci_pipe *p, const struct iovec *iov, size_t n, bool arm);

/* Bytes in place, up to the end of the ring; *@len 0: as sci_pipe_recv(). */
ssize_t sci_pipe_peek(struct sci_pipe *p, const void **data, bool arm);
void sci_pipe_take(struct sci_pipe *p, size_t len);

/*
 * Room in place, up to the end of the ring, to be filled by any means and then counted.
 * -EOPNOTSUPP: the ring is not memory of this host.
 */
ssize_t sci_pipe_room(struct sci_pipe *p, void **room, bool arm);
void sci_pipe_put(struct sci_pipe *p, size_t len);

/* Ask for wake-ups without a send or a recv in vain.  True: there is something now. */
bool sci_pipe_arm(struct sci_pipe *p);

/* Write the words of the head once more: a packet may have been lost. */
void sci_pipe_repeat(struct sci_pipe *p);

#endif
