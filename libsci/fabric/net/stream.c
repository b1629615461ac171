// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Writes to imports, and reads from them. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/fabric/net/net.h"

_Static_assert(SCI_STREAM_LINE == NET_SMALL, "short frames always find room");
_Static_assert(SCI_STREAM_GET <= NET_BIG, "a read is one frame");

static uint64_t stream_in_flight(const struct net_link *l)
{
	return l->log.written - l->log.acked;
}

/* ---- writes ---- */

/* Append the bytes of @f to the last frame, if it has not been sent. Return false otherwise. */
static bool stream_copy_more(struct net_link *l, const struct net_frame *f, const void *src)
{
	struct net_frame *last = &l->copied;

	if (l->copied_end != l->log.written || l->copied_at < l->log.sent ||
	    last->type != f->type || last->object != f->object ||
	    last->offset + last->len != f->offset || last->len + f->len > NET_SMALL)
		return false;
	l->failed |= net_log_add(&l->log, src, f->len) != 0;
	last->len += f->len;
	net_log_change(&l->log, l->copied_at, last, sizeof(*last));
	l->copied_end = l->log.written;
	return true;
}

/* Send the frame @f, whose bytes are copied. */
static void stream_copy(struct net_link *l, struct net_frame *f, const void *src)
{
	if (stream_copy_more(l, f, src))
		return;
	l->copied_at = l->log.written;
	net_link_send(l, f, src);
	l->copied = *f;
	l->copied_end = f->len < NET_SMALL ? l->log.written : 0;
}

/* Return 0 if there is room for @len bytes. A short write need not wait behind a long message. */
static int stream_room(struct net_link *l, size_t len)
{
	size_t most = len <= NET_SMALL ? 2 * NET_WINDOW : NET_WINDOW;

	if (!l)
		return -ENOTCONN;
	if (stream_in_flight(l) + len <= most)
		return 0;
	/* let threads that wait for room read the link, too */
	l->fresh = true;
	l->net->fresh = true;
	return -EAGAIN;
}

static int stream_put_locked(struct sci_rseg *r, uint64_t off, const void *src, size_t len)
{
	struct net_link *l = r->of;
	struct net_frame f = {
		.type = NET_PUT, .len = (uint32_t)len, .object = r->id, .offset = off,
	};
	int ret = l && len <= NET_SMALL ? 0 : stream_room(l, len);

	if (!ret)
		stream_copy(l, &f, src);
	return ret;
}

static int stream_put(struct sci_rseg *r, volatile void *addr, const void *src,
		      size_t len)
{
	uint64_t off = (uint64_t)((volatile uint8_t *)addr - r->addr);
	int ret;

	pthread_mutex_lock(&r->net->svc.lock);
	ret = stream_put_locked(r, off, src, len);
	pthread_mutex_unlock(&r->net->svc.lock);
	return ret;
}

/* Send the frame @f, whose bytes @owner lends. Short frames are copied. */
static int stream_lend_frame(struct sci_rseg *r, struct net_frame *f, const void *src,
			     const void *owner)
{
	struct net_link *l;
	int ret;

	pthread_mutex_lock(&r->net->svc.lock);
	l = r->of;
	ret = stream_room(l, f->len);
	if (!ret && f->len <= NET_SMALL)
		stream_copy(l, f, src);
	else if (!ret && net_log_may_lend(&l->log))
		net_link_lend(l, f, src, owner);
	else if (!ret)
		ret = -EAGAIN;
	pthread_mutex_unlock(&r->net->svc.lock);
	return ret;
}

static int stream_fill(struct sci_rseg *r, uint32_t id, uint64_t off, const void *src, size_t len,
		       const void *owner)
{
	struct net_frame f = {
		.type = NET_FILL, .len = (uint32_t)len, .object = id, .offset = off,
	};

	return stream_lend_frame(r, &f, src, owner);
}

static int stream_lend(struct sci_rseg *r, volatile void *addr, const void *src, size_t len,
		       const void *owner)
{
	struct net_frame f = {
		.type = NET_PUT, .len = (uint32_t)len, .object = r->id,
		.offset = (uint64_t)((volatile uint8_t *)addr - r->addr),
	};

	return stream_lend_frame(r, &f, src, owner);
}

static void stream_take_back(struct sci_fabric *f, const void *owner)
{
	struct net *net = net_of(f);

	pthread_mutex_lock(&net->svc.lock);
	net_links_take_back(net, owner);
	pthread_mutex_unlock(&net->svc.lock);
}

static void stream_flush(struct sci_rseg *r)
{
	pthread_mutex_lock(&r->net->svc.lock);
	if (r->of)
		net_link_flush(r->of);
	pthread_mutex_unlock(&r->net->svc.lock);
}

static bool stream_push(struct sci_rseg *r)
{
	bool held;

	pthread_mutex_lock(&r->net->svc.lock);
	held = r->of && net_link_push(r->of);
	pthread_mutex_unlock(&r->net->svc.lock);
	return held;
}

static uint64_t stream_mark(struct sci_rseg *r)
{
	struct net_frame f = { .type = NET_ACK, .flags = NET_ACK_NOW };
	uint64_t mark = UINT64_MAX;

	pthread_mutex_lock(&r->net->svc.lock);
	if (r->of) {
		net_link_send(r->of, &f, NULL);
		mark = r->of->log.written;
	}
	pthread_mutex_unlock(&r->net->svc.lock);
	return mark;
}

static int stream_arrived(struct sci_rseg *r, uint64_t mark)
{
	uint64_t acked;
	int ret;

	pthread_mutex_lock(&r->net->svc.lock);
	acked = r->of ? r->of->log.acked : r->acked;
	ret = acked >= mark ? 0 : r->of ? -EAGAIN : -ENOTCONN;
	pthread_mutex_unlock(&r->net->svc.lock);
	return ret;
}

/* ---- targets: memory that the other side fills ---- */

struct sci_stream_target *net_target_find(struct net_link *l, uint32_t id)
{
	struct sci_stream_target *t, *n;

	list_for_each_entry_safe(t, n, &l->targets, link)
		if (t->id == id)
			return t;
	return NULL;
}

void net_targets_end(struct net_link *l)
{
	while (list_pop(&l->targets))
		;
}

static int stream_target(struct sci_rseg *r, struct sci_stream_target *t)
{
	int ret = -ENOTCONN;

	list_init(&t->link);
	pthread_mutex_lock(&r->net->svc.lock);
	if (r->of) {
		t->id = ++r->net->next_target;
		list_add_tail(&t->link, &r->of->targets);
		ret = 0;
	}
	pthread_mutex_unlock(&r->net->svc.lock);
	return ret;
}

static void stream_target_end(struct sci_fabric *f, struct sci_stream_target *t)
{
	pthread_mutex_lock(&net_of(f)->svc.lock);
	list_del(&t->link);
	pthread_mutex_unlock(&net_of(f)->svc.lock);
}

/* ---- reads ---- */

struct sci_stream_get *net_get_find(struct net_link *l, uint32_t id)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &l->gets) {
		struct sci_stream_get *g = container_of(pos, struct sci_stream_get, link);

		if (g->id == id)
			return g;
	}
	return NULL;
}

void net_get_end(struct sci_stream_get *g, int error)
{
	list_del(&g->link);
	g->ret = error;
	atomic_store_explicit(&g->done, true, memory_order_release);
}

void net_gets_end(struct net_link *l)
{
	while (!list_empty(&l->gets))
		net_get_end(container_of(l->gets.next, struct sci_stream_get, link),
			    -ENOTCONN);
}

static int stream_get_locked(struct sci_rseg *r, uint64_t off, struct sci_stream_get *g)
{
	struct net_link *l = r->of;
	struct net_frame f = { .type = NET_GET, .object = r->id, .offset = off };
	const uint32_t len = (uint32_t)g->len;
	struct list *pos, *n;
	unsigned int count = 0;

	if (!l)
		return -ENOTCONN;
	list_for_each_safe(pos, n, &l->gets)
		count++;
	if (count >= NET_GETS)
		return -EAGAIN;
	g->id = ++r->net->next_question;
	atomic_store(&g->done, false);
	f.request = g->id;
	f.len = sizeof(len);
	list_add_tail(&g->link, &l->gets);
	net_link_send(l, &f, &len);
	net_link_flush(l);
	return 0;
}

static int stream_get(struct sci_rseg *r, uint64_t off, struct sci_stream_get *g)
{
	int ret;

	pthread_mutex_lock(&r->net->svc.lock);
	ret = stream_get_locked(r, off, g);
	pthread_mutex_unlock(&r->net->svc.lock);
	return ret;
}

static void stream_get_cancel(struct sci_fabric *f, struct sci_stream_get *g)
{
	pthread_mutex_lock(&net_of(f)->svc.lock);
	list_del(&g->link);
	pthread_mutex_unlock(&net_of(f)->svc.lock);
}

/* ---- reads by the other side ---- */

int net_get_asked(struct net_link *l, const struct net_frame *f, const uint8_t *data)
{
	struct net_served *s;

	/* the limit includes reads that the other side has cancelled */
	if (f->len != sizeof(s->len) || l->n_serving >= 4 * NET_GETS)
		return -EPROTO;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -EPROTO;
	s->segment = f->object;
	s->request = f->request;
	s->offset = f->offset;
	memcpy(&s->len, data, sizeof(s->len));
	if (!s->len || s->len > NET_GET_MAX) {
		free(s);
		return -EPROTO;
	}
	l->n_serving++;
	list_add_tail(&s->link, &l->serving);
	return 0;
}

static void read_serve_one(struct net_link *l, const struct net_served *s)
{
	struct net_frame f = { .type = NET_DATA, .request = s->request };
	struct net_importer *i = net_importer_find(l, s->segment);

	if (!i || !i->seg->addr)
		f.object = ENOENT;
	else if (s->offset > i->seg->size || i->seg->size - s->offset < s->len)
		f.object = ERANGE;
	else
		f.len = s->len;
	if (f.len > NET_SMALL && net_log_may_lend(&l->log))
		net_link_lend(l, &f, i->seg->addr + s->offset, i->seg);
	else
		net_link_send(l, &f, f.len ? i->seg->addr + s->offset : NULL);
}

/* Answer reads of the other side while the log has room. */
void net_serve(struct net_link *l)
{
	while (!list_empty(&l->serving) && stream_in_flight(l) < NET_WINDOW) {
		struct list *item = list_pop(&l->serving);
		struct net_served *s = container_of(item, struct net_served, link);

		l->n_serving--;
		read_serve_one(l, s);
		free(s);
	}
}

static void stream_set_notify(struct sci_fabric *f, void (*fn)(void *owner), void *owner)
{
	struct net *net = net_of(f);

	pthread_mutex_lock(&net->svc.lock);
	net->news = fn;
	net->news_owner = owner;
	pthread_mutex_unlock(&net->svc.lock);
}

/* Return true if a route to @node is the fabric below. @node 0: any node, or a gateway */
static bool routes_use_below(struct net *net, unsigned int node)
{
	struct list *pos, *n;
	bool use = false;

	list_for_each_safe(pos, n, &net->routes) {
		const struct net_route *r = container_of(pos, struct net_route, link);

		use |= node ? r->node == node && r->addr.below : r->addr.via || r->addr.below;
	}
	return use;
}

static bool stream_covers(struct sci_fabric *f, unsigned int node)
{
	return routes_use_below(net_of(f), node);
}

static int stream_below(struct sci_fabric *f, struct sci_fabric *below, unsigned int adapter)
{
	struct net *net = net_of(f);
	int ret = 0;

	pthread_mutex_lock(&net->svc.lock);
	if (routes_use_below(net, 0))
		ret = net_under_add(net, below, adapter, net_port(net) + NET_PIPE_PORT, false);
	pthread_mutex_unlock(&net->svc.lock);
	return ret;
}

const struct sci_stream_ops net_stream_ops = {
	.below = stream_below,
	.covers = stream_covers,
	.news = stream_set_notify,
	.poll = net_poll,
	.rest = net_rest,
	.put = stream_put,
	.target = stream_target,
	.target_end = stream_target_end,
	.fill = stream_fill,
	.lend = stream_lend,
	.take_back = stream_take_back,
	.flush = stream_flush,
	.push = stream_push,
	.mark = stream_mark,
	.arrived = stream_arrived,
	.get = stream_get,
	.get_cancel = stream_get_cancel,
};
