// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Handling of received frames. The other side has the session's key, but it may still send invalid
 * frames: check every field here. -EPROTO ends the link.
 */

#include <errno.h>
#include <string.h>

#include "libsci/fabric/net/net.h"

#define LINE		64u		/* a receiver polls a line's last word */

/* Store bytes: each word by one store, and the last word of a line after its other words. */
static void frame_store(uint8_t *dst, const uint8_t *src, size_t len)
{
	uint64_t w;

	if ((uintptr_t)dst % sizeof(w) || len % sizeof(w)) {
		memcpy(dst, src, len);
		return;
	}
	for (; len > sizeof(w); len -= sizeof(w)) {
		memcpy(&w, src, sizeof(w));
		if ((uintptr_t)dst % LINE == LINE - sizeof(w))
			sci_store_release((uint64_t *)(void *)dst, w);
		else
			sci_store_relaxed((uint64_t *)(void *)dst, w);
		dst += sizeof(w);
		src += sizeof(w);
	}
	memcpy(&w, src, sizeof(w));
	sci_store_release((uint64_t *)(void *)dst, w);
}

/*
 * Find the memory for the bytes of a PUT or a FILL. Return -ENOENT if the segment or the target has
 * ended, or is not for this link: the caller then drops the bytes.
 */
static int frame_memory(struct net_link *l, const struct net_frame *f, uint8_t **to)
{
	const struct sci_stream_target *t;
	const struct net_importer *i;
	uint8_t *addr = NULL;
	uint64_t size = 0;

	if (f->type == NET_FILL) {
		t = net_target_find(l, f->object);
		addr = t ? t->addr : NULL;
		size = t ? t->len : 0;
	} else {
		i = net_importer_find(l, f->object);
		addr = i ? i->seg->addr : NULL;
		size = i ? i->seg->size : 0;
	}
	if (!addr)
		return -ENOENT;
	if (f->offset > size || size - f->offset < f->len)
		return -EPROTO;
	*to = addr + f->offset;
	return 0;
}

static int frame_handle_fill(struct net_link *l, const struct net_frame *f, const uint8_t *data)
{
	uint8_t *to;
	int ret = frame_memory(l, f, &to);

	if (!ret)
		memcpy(to, data, f->len);
	return ret == -ENOENT ? 0 : ret;
}

static int frame_handle_put(struct net_link *l, const struct net_frame *f, const uint8_t *data)
{
	const struct net_importer *i = net_importer_find(l, f->object);
	uint8_t *to;
	int ret = frame_memory(l, f, &to);

	if (!ret && f->len)
		frame_store(to, data, f->len);
	if (!ret && i->seg->rings)
		net_lseg_rang(i->seg, l->node);
	return ret == -ENOENT ? 0 : ret;
}

static int frame_handle_data(struct net_link *l, const struct net_frame *f, const uint8_t *data)
{
	struct sci_stream_get *g = net_get_find(l, f->request);

	/* the read was cancelled */
	if (!g)
		return 0;
	if (f->len && f->len != g->len)
		return -EPROTO;
	if (f->len)
		memcpy(g->dst, data, f->len);
	net_get_end(g, f->len ? 0 : f->object == ERANGE ? -ERANGE : -ENOENT);
	return 0;
}

static void frame_answer(struct net_link *l, const struct net_frame *f, int error, uint64_t size)
{
	struct net_frame a = {
		.type = NET_ANSWER, .object = (uint32_t)-error, .request = f->request,
		.offset = size,
	};

	net_link_send(l, &a, NULL);
}

static int frame_handle(struct net_link *l, const struct net_frame *f, const uint8_t *data)
{
	struct net_importer *i;
	uint64_t size = 0;
	int ret;

	switch (f->type) {
	case NET_ACK:
		return f->len ? -EPROTO : 0;
	case NET_PUT:
		return frame_handle_put(l, f, data);
	case NET_FILL:
		return frame_handle_fill(l, f, data);
	case NET_CONNECT_SEG:
		ret = net_importer_add(l, f->object, &size);
		frame_answer(l, f, ret, size);
		return 0;
	case NET_ANSWER:
		net_answered(l, f);
		return 0;
	case NET_LEAVE:
		i = net_importer_find(l, f->object);
		if (i)
			net_importer_end(i, SCI_EVENT_DISCONNECT);
		return 0;
	case NET_GONE:
		net_segment_gone(l, f->object);
		return 0;
	case NET_TRIGGER:
		if (f->len > NET_TRIGGER_MAX)
			return -EPROTO;
		net_triggered(l->net, f, data);
		return 0;
	case NET_GET:
		return net_get_asked(l, f, data);
	case NET_DATA:
		return frame_handle_data(l, f, data);
	case NET_BYE:
		l->bye = true;
		return 0;
	default:
		return -EPROTO;
	}
}

/* ---- long PUT, FILL and DATA frames: the bytes go to their target as they arrive ---- */

static int big_begin(struct net_link *l, const struct net_frame *f)
{
	uint8_t *to;

	if (f->len > NET_BIG ||
	    (f->type != NET_PUT && f->type != NET_FILL && f->type != NET_DATA))
		return -EPROTO;
	if (f->type != NET_DATA && frame_memory(l, f, &to) == -EPROTO)
		return -EPROTO;
	if (f->type == NET_DATA) {
		struct sci_stream_get *g = net_get_find(l, f->request);

		if (g && g->len != f->len)
			return -EPROTO;
	}
	l->big = *f;
	l->big_done = 0;
	l->in_big = true;
	return 0;
}

/* Return how many bytes of a long frame are missing. *@to: their target; NULL: drop them. */
size_t net_big_target(struct net_link *l, uint8_t **to)
{
	const struct net_frame *f = &l->big;
	uint8_t *start = NULL;

	if (f->type != NET_DATA) {
		frame_memory(l, f, &start);
	} else {
		struct sci_stream_get *g = net_get_find(l, f->request);

		start = g ? g->dst : NULL;
	}
	*to = start ? start + l->big_done : NULL;
	return f->len - l->big_done;
}

void net_big_came(struct net_link *l, size_t len)
{
	struct sci_stream_get *g;

	l->big_done += (uint32_t)len;
	if (l->big_done < l->big.len)
		return;
	l->in_big = false;
	g = l->big.type == NET_DATA ? net_get_find(l, l->big.request) : NULL;
	if (g)
		net_get_end(g, 0);
}

static size_t big_take(struct net_link *l, const uint8_t *in, size_t len)
{
	uint8_t *to;
	size_t n = net_big_target(l, &to);

	n = n < len ? n : len;
	if (to)
		memcpy(to, in, n);
	net_big_came(l, n);
	return n;
}

/* ---- all frames ---- */

/* Handle a frame. Return its length, 0 if it is incomplete, or -EPROTO. */
static int64_t frame_take(struct net_link *l, const uint8_t *in, size_t len)
{
	struct net_frame f;
	int ret;

	if (len < sizeof(f))
		return 0;
	memcpy(&f, in, sizeof(f));
	if (f.reserved || f.flags & ~(unsigned int)NET_ACK_NOW ||
	    !net_log_acked(&l->log, f.ack))
		return -EPROTO;
	if (f.len > NET_SMALL) {
		ret = big_begin(l, &f);
		l->ack_now |= !ret && f.flags & NET_ACK_NOW;
		return ret ? ret : (int64_t)sizeof(f);
	}
	if (len - sizeof(f) < f.len)
		return 0;
	ret = frame_handle(l, &f, in + sizeof(f));
	l->ack_now |= f.flags & NET_ACK_NOW;
	return ret ? ret : (int64_t)(sizeof(f) + f.len);
}

/* Handle all frames in @in, and keep the start of an incomplete frame. */
int net_frames_take(struct net_link *l, const uint8_t *in, size_t len)
{
	while (len) {
		int64_t n = l->in_big ? (int64_t)big_take(l, in, len) :
					frame_take(l, in, len);

		if (n < 0)
			return (int)n;
		if (!n) {
			memcpy(l->part, in, len);
			l->part_len = len;
			return 0;
		}
		in += n;
		len -= (size_t)n;
	}
	return 0;
}
