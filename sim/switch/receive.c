// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <errno.h>
#include <sys/socket.h>

#include "sim/switch/conn.h"
#include "sim/switch/direct.h"
#include "sim/switch/fabric.h"
#include "sim/switch/flight.h"
#include "sim/switch/node.h"
#include "sim/switch/receive.h"

static void receive_packet(struct conn *c, struct flight *p, size_t size)
{
	const struct sim_packet *s = &p->frame.packet;
	const size_t head = sizeof(struct frame);

	if (size < head + PACKET_HEADER || size > sizeof(p->frame) ||
	    s->size != size - head || s->source != c->node->id ||
	    !node_id_is_valid(s->target))
		node_count(c->node, COUNT_MALFORMED);
	else
		flight_begin(c->node, p);
}

static bool receive_exports(struct conn *c, const struct frame_exports *e,
			    size_t size)
{
	if (size != sizeof(*e) || e->head.node != c->node->id)
		return false;
	direct_exports(c->fabric, c, e);
	return true;
}

static bool receive_invalidate(struct conn *c, const struct frame *frame,
			       size_t size)
{
	return size == sizeof(*frame) && frame->node == c->node->id &&
	       direct_invalidate(c->fabric, c, frame->value);
}

static bool receive_invalidated(struct conn *c, const struct frame *frame,
				size_t size)
{
	if (size != sizeof(*frame))
		return false;
	direct_invalidated(c->fabric, c, frame);
	return true;
}

/* Handle @p->frame, a frame of @size bytes that may be cut. Return false if it is invalid. */
static bool conn_receive(struct conn *c, struct flight *p, size_t size)
{
	const void *frame = &p->frame;

	if (size < sizeof(struct frame))
		return false;
	switch (p->frame.head.kind) {
	case FRAME_PACKET:
		receive_packet(c, p, size);
		return true;
	case FRAME_EXPORTS:
		return receive_exports(c, frame, size);
	case FRAME_INVALIDATE:
		return receive_invalidate(c, frame, size);
	case FRAME_INVALIDATED:
		return receive_invalidated(c, frame, size);
	default:
		return false;
	}
}

bool receive_frame(struct conn *c)
{
	struct flight p;	/* not cleared here: flight_begin() clears it */
	ssize_t n;

	n = recv(c->watch.fd, &p.frame, sizeof(p.frame),
		 MSG_DONTWAIT | MSG_TRUNC);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		conn_fail(c);
		return false;
	}
	if (!conn_receive(c, &p, (size_t)n)) {
		fabric_note(c->fabric, "node %u: broke the protocol",
			    c->node->id);
		node_count(c->node, COUNT_MALFORMED);
		conn_fail(c);
	}
	return true;
}
