/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: pipes
 *
 * A pipe carries bytes in both directions between two processes of one fabric, like a connected
 * stream socket. Each side exports a segment: a head and a ring. The other side writes to the head
 * and the ring. No process reads remote memory.
 *
 *	written		number of bytes that were put into the ring of this segment
 *	taken		number of bytes that the other side has taken out of its own ring
 *	armed[2]	number of wake-ups that the other side has asked for: when it can
 *			receive bytes, and when it has room to send bytes
 *
 * A side that finds no bytes (or no room) increments armed[] in the other side's head and checks
 * again. A side that has changed written (or taken) reads armed[]. If armed[] differs from the
 * number of wake-ups served, the side triggers the other side's interrupt. Both sides execute a
 * full barrier between the two steps, so at least one of them sees the other's change. Where caches
 * are not coherent, each write is written back before that barrier, and each read refreshes its line.
 *
 * The link's error count shows the loss of packets. Lost bytes are written again before written
 * counts them, and sci_pipe_repeat() repeats the words of the head.
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
	bool direct;			/* plain stores reach the other side: sci_pipe_room() */
	uint64_t silent_ms;		/* time of a write that got no answer; 0: none */
	void (*silence)(struct sci_pipe *p);	/* @silent_ms has changed; or NULL */
	struct sci_lseg *lseg;
	struct sci_rseg *rseg;
	struct sci_lintr *lintr;
	struct sci_rintr *rintr;
	uint32_t segment, interrupt;	/* numbers of this side */
	struct sci_pipe_head *in;	/* the head of our segment */
	struct sci_pipe_head *out;	/* the head of the other side's segment */
	uint64_t sent;			/* bytes put into the other side's ring */
	uint64_t taken;			/* bytes taken out of our ring */
	uint64_t told;			/* value of @taken last written to the other side */
	bool full;			/* the last attempt to send found no room */
	uint64_t armed[2];		/* wake-ups asked for: value in @out */
	uint64_t served[2];		/* wake-ups served: last value in @in */
};

/**
 * sci_pipe_begin() - make this side's segment and interrupt
 * @event: called when the other side triggers a wake-up, or when the connection is lost
 */
int sci_pipe_begin(struct sci_pipe *p, struct sci_fabric *fabric, unsigned int adapter,
		   sci_event_fn event, void *owner);

/* Connect to the other side. Blocks for up to @timeout ms. */
int sci_pipe_connect(struct sci_pipe *p, unsigned int node, uint64_t peer,
		     uint32_t timeout, sci_event_fn event, void *owner);

/* End the pipe. A struct of zeroes is no pipe, and no error. */
void sci_pipe_end(struct sci_pipe *p);

/* Return this side's number, which the other side passes to sci_pipe_connect(). */
uint64_t sci_pipe_number(const struct sci_pipe *p);

/* Write our number to the other side's head. */
void sci_pipe_answer(struct sci_pipe *p);
/* Return the number that the other side has written; 0: none yet. */
uint64_t sci_pipe_answered(struct sci_pipe *p);

/*
 * Send or receive without blocking, like sendmsg() and recvmsg(). Return the number of bytes,
 * -EAGAIN or -ECONNRESET; sci_pipe_recv() returns 0 at the end of the stream. If @arm and the
 * result is -EAGAIN, the event function is called when another call may succeed.
 */
ssize_t sci_pipe_send(struct sci_pipe *p, const struct iovec *iov, size_t n, bool arm);
ssize_t sci_pipe_recv(struct sci_pipe *p, const struct iovec *iov, size_t n, bool arm);

/* Point @data to received bytes, up to the end of the ring. Return as sci_pipe_recv() does. */
ssize_t sci_pipe_peek(struct sci_pipe *p, const void **data, bool arm);
void sci_pipe_take(struct sci_pipe *p, size_t len);

/*
 * Point @room to free bytes in the other side's ring, up to its end. Fill them, and then call
 * sci_pipe_put(). Return their number; -EOPNOTSUPP: the pipe is not direct.
 */
ssize_t sci_pipe_room(struct sci_pipe *p, void **room, bool arm);
void sci_pipe_put(struct sci_pipe *p, size_t len);

/*
 * Ask for wake-ups. Return true if there are bytes to receive now, or if there is room now and the
 * last attempt to send found none: no wake-up comes for these bytes or this room.
 */
bool sci_pipe_arm(struct sci_pipe *p);

/* Write the words of the head again: a packet may have been lost. */
void sci_pipe_repeat(struct sci_pipe *p);

#endif
