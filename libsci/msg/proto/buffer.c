// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Memory that the program exports. Each buffer is a segment. Sends and receives look up
 * their buffers by address, so registering a buffer once is enough.
 */

#include "libsci/msg/proto/proto.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct msg_buf *buf_find(struct sci_ep *ep, const void *addr, size_t len)
{
	const uint8_t *a = addr;
	struct list *pos, *n;

	list_for_each_safe(pos, n, &ep->bufs) {
		struct msg_buf *b = container_of(pos, struct msg_buf, link);

		if (a >= b->addr && len <= b->len &&
		    (size_t)(a - b->addr) <= b->len - len)
			return b;
	}
	return NULL;
}

struct msg_buf *buf_by_segment(struct sci_ep *ep, uint32_t id)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &ep->bufs) {
		struct msg_buf *b = container_of(pos, struct msg_buf, link);

		if (ep->ops->lseg.id(b->seg) == id)
			return b;
	}
	return NULL;
}

static bool buf_touches(const struct msg_buf *b, const struct sci_req *req)
{
	for (size_t i = 0; i < req->iovs; i++) {
		const uint8_t *a = req->iov[i].iov_base;

		if (req->iov[i].iov_len && a < b->addr + b->len &&
		    b->addr < a + req->iov[i].iov_len)
			return true;
	}
	return false;
}

static bool queue_touches(const struct msg_buf *b, struct list *queue)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, queue)
		if (buf_touches(b, container_of(pos, struct sci_req, link)))
			return true;
	return false;
}

/* Return the receive of @p's incomplete message, also of an unexpected message. */
static const struct sci_req *chain_target(const struct sci_peer *p)
{
	if (p->chain_msg)
		return p->chain_msg->req;
	return p->chain_req;
}

/* Return whether a request uses @b. This search of all queues saves a reference count in sends. */
static bool buf_in_use(struct sci_ep *ep, const struct msg_buf *b)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &ep->match.recvs.order) {
		struct sci_match_recv *r = container_of(pos,
							struct sci_match_recv,
							order);

		if (buf_touches(b, container_of(r, struct sci_req, match)))
			return true;
	}
	list_for_each_safe(pos, n, &ep->peers) {
		struct sci_peer *p = container_of(pos, struct sci_peer, link);
		const struct sci_req *chain = chain_target(p);

		if (queue_touches(b, &p->sendq) ||
		    queue_touches(b, &p->sending) ||
		    queue_touches(b, &p->moving) ||
		    queue_touches(b, &p->onesided) ||
		    queue_touches(b, &p->arriving) ||
		    queue_touches(b, &p->receiving) ||
		    (chain && buf_touches(b, chain)))
			return true;
	}
	return false;
}

static void buf_event(void *owner, const struct sci_event *ev)
{
	(void)owner;
	(void)ev;
}

static int buf_segment(struct sci_ep *ep, struct msg_buf *b, unsigned int flags)
{
	struct sci_lseg_param param = {
		.flags = flags, .size = b->len, .event = buf_event, .owner = b,
	};

	return segment_create(ep, ep->fabric, &param, &b->seg);
}

/* Remove the other segments of a buffer, before its memory is freed. */
static void buf_segments_end(struct sci_ep *ep, struct msg_buf *b)
{
	if (b->net_seg)
		ep->net->ops->lseg.destroy(b->net_seg);
	if (b->rail_seg && !b->shared)
		ep->rail->ops->lseg.destroy(b->rail_seg);
	b->net_seg = NULL;
	b->rail_seg = NULL;
}

/*
 * Export the memory of a buffer on the second rail, too. If that is impossible, peers use the first
 * rail only.
 */
static void rail_buf_add(struct sci_ep *ep, struct msg_buf *b)
{
	struct sci_lseg_param param = {
		.flags = SCI_LSEG_EMPTY | SCI_LSEG_TWIN, .size = b->len, .event = buf_event,
		.owner = b,
	};
	struct sci_fabric *f = ep->rail;

	if (!f || segment_create(ep, f, &param, &b->rail_seg))
		return;
	if (sci_lseg_twin(f, b->rail_seg, b->seg) || f->ops->lseg.export(b->rail_seg, 0)) {
		f->ops->lseg.destroy(b->rail_seg);
		b->rail_seg = NULL;
	}
}

/* Export the memory of a buffer on the net, too: peers on both fabrics may use it. */
static int net_buf_add(struct sci_ep *ep, struct msg_buf *b)
{
	struct sci_lseg_param param = {
		.id = ep->ops->lseg.id(b->seg), .size = b->len,
		.flags = SCI_LSEG_EMPTY, .event = buf_event, .owner = b,
	};
	int ret;

	b->net_seg = NULL;
	if (!ep->net)
		return 0;
	ret = ep->net->ops->lseg.create(ep->net, &param, &b->net_seg);
	if (ret)
		return ret;
	ret = sci_lseg_register(ep->net, b->net_seg, b->addr, b->len);
	ret = ret ? ret : ep->net->ops->lseg.export(b->net_seg, 0);
	if (ret) {
		ep->net->ops->lseg.destroy(b->net_seg);
		b->net_seg = NULL;
	}
	return ret;
}

static void buf_free(struct sci_ep *ep, struct msg_buf *b)
{
	list_del(&b->link);
	buf_segments_end(ep, b);
	if (!b->shared) {
		if (!b->count)
			ep->ops->unmap(ep->fabric, b->addr, b->len);
		ep->ops->lseg.destroy(b->seg);
	}
	free(b);
}

void bufs_free(struct sci_ep *ep)
{
	struct list *l;

	while ((l = list_pop(&ep->bufs)))
		buf_free(ep, container_of(l, struct msg_buf, link));
}

static int buf_alloc(struct sci_ep *ep, size_t len, void **out)
{
	struct msg_buf *b = calloc(1, sizeof(*b));
	void *addr = NULL;
	int ret;

	if (!b)
		return -ENOMEM;
	b->len = len;
	ret = buf_segment(ep, b, 0);
	if (ret)
		goto err_free;
	ret = ep->ops->lseg.map(b->seg, 0, len, 0, &addr);
	if (ret)
		goto err_seg;
	ret = ep->ops->lseg.export(b->seg, ep->adapter);
	if (ret)
		goto err_map;
	b->addr = addr;
	ret = net_buf_add(ep, b);
	if (ret)
		goto err_map;
	rail_buf_add(ep, b);
	list_add_tail(&b->link, &ep->bufs);
	*out = addr;
	return 0;

err_map:
	ep->ops->unmap(ep->fabric, addr, len);
err_seg:
	ep->ops->lseg.destroy(b->seg);
err_free:
	free(b);
	return ret;
}

int sci_buf_alloc(struct sci_ep *ep, size_t len, void **buf)
{
	int ret;

	if (!ep || !len || !buf)
		return -EINVAL;
	if (!ep_lock(ep))
		return -ENOTCONN;
	ret = buf_alloc(ep, len, buf);
	msg_unlock(&ep->lock);
	return ret;
}

int sci_buf_free(struct sci_ep *ep, void *buf)
{
	struct msg_buf *b;
	int ret = 0;

	if (!ep || !buf)
		return -EINVAL;
	if (!ep_lock(ep))
		return -ENOTCONN;
	b = buf_find(ep, buf, 1);
	if (!b || b->addr != buf || b->count)
		ret = -EINVAL;
	else if (buf_in_use(ep, b))
		ret = -EBUSY;
	else
		buf_free(ep, b);
	msg_unlock(&ep->lock);
	return ret;
}

/* ---- buffers of other endpoints ---- */

static bool buf_overlaps(struct sci_ep *ep, const uint8_t *addr, size_t len)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &ep->bufs) {
		struct msg_buf *b = container_of(pos, struct msg_buf, link);

		if (addr < b->addr + b->len && b->addr < addr + len)
			return true;
	}
	return false;
}

static int buf_describe(struct sci_ep *owner, const void *addr, struct msg_buf *out)
{
	struct msg_buf *b;
	int ret = -EINVAL;

	msg_lock(&owner->lock);
	b = buf_find(owner, addr, 1);
	if (b && b->addr == addr && !b->count && !b->shared) {
		*out = (struct msg_buf){
			.seg = b->seg, .addr = b->addr, .len = b->len, .shared = true,
			.rail_seg = b->rail_seg,
		};
		ret = 0;
	}
	msg_unlock(&owner->lock);
	return ret;
}

/*
 * Peers identify segments by id and keep their imports. So the endpoint must never give
 * the id of the shared segment to a segment of its own.
 */
static int buf_share(struct sci_ep *ep, const struct msg_buf *from)
{
	uint32_t id = ep->ops->lseg.id(from->seg), rail = buf_rail(ep, from);
	uint32_t next = (id > rail ? id : rail) + 1 - MSG_NUMBERS;
	struct msg_buf *b;
	int ret;

	if (buf_overlaps(ep, from->addr, from->len))
		return -EEXIST;
	b = malloc(sizeof(*b));
	if (!b)
		return -ENOMEM;
	*b = *from;
	ret = net_buf_add(ep, b);
	if (ret) {
		free(b);
		return ret;
	}
	if (next > ep->next_segment)
		ep->next_segment = next;
	list_add_tail(&b->link, &ep->bufs);
	return 0;
}

int sci_buf_share(struct sci_ep *ep, struct sci_ep *owner, void *buf)
{
	struct msg_buf b;
	int ret;

	if (!ep || !owner || !buf || ep == owner)
		return -EINVAL;
	if (!msg_usable(ep) || !msg_usable(owner))
		return -ENOTCONN;
	ret = buf_describe(owner, buf, &b);
	if (ret)
		return ret;
	if (ep->rail != owner->rail)
		b.rail_seg = NULL;
	msg_lock(&ep->lock);
	ret = buf_share(ep, &b);
	msg_unlock(&ep->lock);
	return ret;
}

/* ---- memory that the program allocated ---- */

static int buf_register(struct sci_ep *ep, uint8_t *addr, size_t len)
{
	struct msg_buf *b = buf_find(ep, addr, len);
	int ret;

	if (b && b->addr == addr && b->len == len && b->count) {
		ret = sci_lseg_renew(ep->fabric, b->seg, addr, len);
		b->count += !ret;
		return ret;
	}
	if (buf_overlaps(ep, addr, len))
		return -EEXIST;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->addr = addr;
	b->len = len;
	b->count = 1;
	ret = buf_segment(ep, b, SCI_LSEG_EMPTY);
	if (ret)
		goto err_free;
	ret = sci_lseg_register(ep->fabric, b->seg, addr, len);
	ret = ret ? ret : ep->ops->lseg.export(b->seg, ep->adapter);
	ret = ret ? ret : net_buf_add(ep, b);
	if (ret)
		goto err_seg;
	rail_buf_add(ep, b);
	list_add_tail(&b->link, &ep->bufs);
	return 0;

err_seg:
	ep->ops->lseg.destroy(b->seg);
err_free:
	free(b);
	return ret;
}

static bool pages_are_whole(const void *addr, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return len && !(((uintptr_t)addr | len) & (page - 1)) &&
	       (uintptr_t)addr + len > (uintptr_t)addr;
}

int sci_buf_register(struct sci_ep *ep, void *addr, size_t len)
{
	int ret;

	if (!ep || !addr || !pages_are_whole(addr, len))
		return -EINVAL;
	if (!ep_lock(ep))
		return -ENOTCONN;
	ret = buf_register(ep, addr, len);
	msg_unlock(&ep->lock);
	return ret;
}

int sci_buf_unregister(struct sci_ep *ep, void *addr, size_t len)
{
	struct msg_buf *b;
	int ret = 0;

	if (!ep || !addr)
		return -EINVAL;
	if (!ep_lock(ep))
		return -ENOTCONN;
	b = buf_find(ep, addr, len);
	if (!b || b->addr != addr || b->len != len || !b->count)
		ret = -EINVAL;
	else if (b->count == 1 && buf_in_use(ep, b))
		ret = -EBUSY;
	else if (b->count == 1)
		buf_free(ep, b);
	else
		b->count--;
	msg_unlock(&ep->lock);
	return ret;
}
