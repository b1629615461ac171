// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The rings of blocks: an endpoint's rings, which peers import, and the imported rings of peers. */

#include "libsci/msg/conn/blocks.h"

/* The limit for the size of a ring, in bytes. */
#define RING_MAX	(64u << 20)

static void blocks_event(void *owner, const struct sci_event *ev)
{
	(void)owner;
	(void)ev;
}

/* Return the size of a ring of at least @want bytes: a power of two, at most RING_MAX. */
uint32_t ring_size(uint32_t want)
{
	uint32_t size = INBOX_BYTES;

	while (size < want && size < RING_MAX)
		size *= 2;
	return size;
}

/* Make a ring for @p and export it. Return 0 or -errno of the fabric. */
int ring_make(struct sci_peer *p, enum msg_ring which, uint32_t size)
{
	struct sci_fabric *f = ring_fabric(p, which);
	const struct sci_fabric_ops *ops = f->ops;
	struct msg_blocks_rx *b = blocks_rx(p, which);
	struct sci_lseg_param param = {
		/* the importer connects again if a rail fails and comes back */
		.size = size, .flags = p->ep->rail ? 0 : SCI_LSEG_ONCE,
		.event = blocks_event, .owner = p,
	};
	void *addr = NULL;
	int ret;

	ret = segment_create(p->ep, f, &param, &b->seg);
	if (ret)
		return ret;
	ret = ops->lseg.map(b->seg, 0, size, 0, &addr);
	if (ret)
		goto err_seg;
	ret = ops->lseg.export(b->seg, which == RING_RAIL ? 0 : p->adapter);
	if (ret)
		goto err_map;
	b->base = addr;
	b->size = size;
	/* this value makes rings_recall() treat the ring as used */
	b->looked = *ring_read(p, which) - 1;
	p->ep->ring_bytes += size;
	p->ep->stats.peer_bytes += size;
	return 0;

err_map:
	ops->unmap(f, addr, size);
err_seg:
	ops->lseg.destroy(b->seg);
	return ret;
}

static bool ring_good_size(uint32_t size)
{
	return size >= INBOX_BYTES && size <= RING_MAX && !(size & (size - 1));
}

/* Import the ring that the peer has made. Return -EAGAIN until its import has ended. */
int ring_import(struct sci_peer *p, const struct line_attached *a)
{
	const struct sci_fabric_ops *ops = ring_fabric(p, a->ring)->ops;
	struct msg_blocks *b = blocks_tx(p, a->ring);
	void *addr = NULL;
	int ret;

	if (!msg_number_is_valid(a->segment) || !ring_good_size(a->size) || b->size)
		return -EPROTO;
	ret = peer_connect_segment(p, a->ring == RING_RAIL ? CALL_RAIL : CALL_SEGMENT,
				   a->segment, &b->seg);
	if (ret)
		return ret;
	ret = ops->rseg.size(b->seg) < a->size ? -EPROTO : 0;
	ret = ret ? ret : ops->rseg.map(b->seg, 0, a->size, 0, &addr);
	if (ret) {
		ops->rseg.disconnect(b->seg);
		return ret;
	}
	b->base = addr;
	b->size = a->size;
	b->status = ring_status(p, a->ring);
	return 0;
}

void ring_free(struct sci_peer *p, enum msg_ring which)
{
	struct sci_fabric *f = ring_fabric(p, which);
	struct msg_blocks_rx *b = blocks_rx(p, which);

	if (!b->size)
		return;
	f->ops->unmap(f, b->base, b->size);
	f->ops->lseg.destroy(b->seg);
	p->ep->ring_bytes -= b->size;
	if (p->state == PEER_UP)
		p->ep->stats.peer_bytes -= b->size;
	b->size = 0;
}

void ring_leave(struct sci_peer *p, enum msg_ring which)
{
	struct sci_fabric *f = ring_fabric(p, which);
	struct msg_blocks *b = blocks_tx(p, which);

	if (!b->size)
		return;
	sci_fault_forget(b->base, b->size);
	f->ops->unmap(f, (void *)b->base, b->size);
	f->ops->rseg.disconnect(b->seg);
	b->size = 0;
}

void rings_free(struct sci_peer *p)
{
	for (unsigned int i = 0; i < peer_rings(p); i++) {
		ring_leave(p, i);
		ring_free(p, i);
	}
}
