// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: blocks and fragments
 *
 * A message travels as fragments. Both sides compute from the lengths and modes of the blocks which
 * fragment contains which blocks, so fragments need no header:
 *
 * - Blocks of up to SMALL_MAX bytes are gathered in a fragment of up to GATHER_MAX bytes. The
 *   sender sends this fragment when it is full, before a larger block, and at the end. The first
 *   fragment is always a gathered fragment, which may be empty, so the receiver has a place for it
 *   before it knows the message.
 * - A larger block is a separate fragment. The receiver receives it into its final place.
 * - Blocks that are LATER and CHEAPER follow all other blocks.
 *
 * So a message of one small block is one line, and so is a message of a short header and a short
 * body. After a block that is LATER and EXPRESS, the sender holds all further blocks back until the
 * end of the message, in order.
 */
#include <errno.h>
#include <stdarg.h>

#include "libsci/madeleine/internal.h"

#define SMALL_MAX	512u
#define GATHER_MAX	4096u

/* ---- failures ---- */

static void link_check(long ret, const char *what, const struct mad_link *l)
{
	if (ret < 0 && l->way)
		tbx_failuref("%s process %d by way of process %d: %s", what, l->rank,
			     l->way->via, strerror((int)-ret));
	if (ret < 0)
		tbx_failuref("%s process %d: %s", what, l->rank, strerror((int)-ret));
}

static void modes_check(mad_send_mode_t send, mad_receive_mode_t receive)
{
	if (send < mad_send_SAFER || send > mad_send_CHEAPER ||
	    receive < mad_receive_EXPRESS || receive > mad_receive_CHEAPER)
		tbx_failuref("send mode %d and receive mode %d: there are no such modes",
			     (int)send, (int)receive);
}

static bool block_is_last(mad_send_mode_t send, mad_receive_mode_t receive)
{
	return send == mad_send_LATER && receive == mad_receive_CHEAPER;
}

/* ---- gates ---- */

void mad_gate_init(struct gate *g)
{
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->free, NULL);
}

void mad_gate_fini(struct gate *g)
{
	pthread_cond_destroy(&g->free);
	pthread_mutex_destroy(&g->lock);
}

bool mad_gate_take(struct gate *g, bool wait, const char *what)
{
	bool mine;

	pthread_mutex_lock(&g->lock);
	if (g->taken && wait && pthread_equal(g->owner, pthread_self()))
		tbx_failuref("this thread has %s open already", what);
	while (g->taken && wait)
		pthread_cond_wait(&g->free, &g->lock);
	mine = !g->taken;
	if (mine) {
		g->taken = true;
		g->owner = pthread_self();
	}
	pthread_mutex_unlock(&g->lock);
	return mine;
}

void mad_gate_leave(struct gate *g)
{
	pthread_mutex_lock(&g->lock);
	g->taken = false;
	pthread_cond_signal(&g->free);
	pthread_mutex_unlock(&g->lock);
}

/* ---- lists of a message ---- */

static void blocks_add(struct mad_blocks *b, void *buf, size_t len)
{
	if (b->n == b->room) {
		b->room = 2 * b->room + 8;
		b->block = tbx_realloc(b->block, b->room * sizeof(*b->block));
	}
	b->block[b->n++] = (struct mad_block){ buf, len };
}

/* Add a request. @len: length of the message to receive; SIZE_MAX: the request is a send. */
static void **reqs_add(struct mad_reqs *r, size_t len)
{
	if (r->n == r->room) {
		r->room = 2 * r->room + 8;
		r->req = tbx_realloc(r->req, r->room * sizeof(*r->req));
	}
	r->req[r->n].len = len;
	return &r->req[r->n++].req;
}

void mad_stream_free(struct mad_stream *s)
{
	mad_gate_fini(&s->gate);
	free(s->buf);
	free(s->held.block);
	free(s->later.block);
	free(s->copies.block);
	free(s->reqs.req);
	if (s->link.way)
		free(s->link.way->reqs);
	free(s->link.way);
	free(s);
}

/* ---- packing ---- */

static void fragment_send(struct mad_world *w, struct mad_stream *s)
{
	link_check(w->net->send(w, &s->link, s->buf, s->n), "cannot send to", &s->link);
	s->n = 0;
	s->begun = true;
}

static void small_put(struct mad_world *w, struct mad_stream *s, const void *buf, size_t len)
{
	if (s->n + len > GATHER_MAX)
		fragment_send(w, s);
	memcpy(s->buf + s->n, buf, len);
	s->n += len;
}

/* Send a large block from @buf, which the program must not change until the end of the message. */
static void large_put(struct mad_world *w, struct mad_stream *s, const void *buf, size_t len)
{
	if (s->n || !s->begun)
		fragment_send(w, s);
	link_check(w->net->isend(w, &s->link, buf, len, reqs_add(&s->reqs, SIZE_MAX)),
		   "cannot send to", &s->link);
}

static void stream_put(struct mad_world *w, struct mad_stream *s, const void *buf, size_t len)
{
	if (len <= SMALL_MAX)
		small_put(w, s, buf, len);
	else
		large_put(w, s, buf, len);
}

static void *block_copy(const void *buf, size_t len)
{
	return memcpy(tbx_alloc(1, len), buf, len);
}

p_mad_connection_t mad_begin_packing(p_mad_channel_t channel, ntbx_process_lrank_t to)
{
	p_mad_connection_t c;

	if (!channel->not_private || to < 0)
		return NULL;
	c = tbx_darray_get(channel->out_connection_darray, to);
	if (!c)
		return NULL;
	mad_gate_take(&c->stream->gate, true, "a message to this process");
	if (!c->stream->buf)
		c->stream->buf = tbx_alloc(1, GATHER_MAX);
	c->stream->n = 0;
	c->stream->begun = false;
	c->stream->holding = false;
	return c;
}

void mad_pack(p_mad_connection_t connection, const void *buf, size_t len,
	      mad_send_mode_t send, mad_receive_mode_t receive)
{
	struct mad_stream *s = connection->stream;
	struct mad_world *w = mad_world();

	modes_check(send, receive);
	if (!len)
		return;
	if (block_is_last(send, receive)) {
		blocks_add(&s->later, (void *)buf, len);
		return;
	}
	s->holding |= send == mad_send_LATER;
	if (send == mad_send_SAFER && (s->holding || len > SMALL_MAX)) {
		buf = block_copy(buf, len);
		blocks_add(&s->copies, (void *)buf, len);
	}
	if (s->holding)
		blocks_add(&s->held, (void *)buf, len);
	else
		stream_put(w, s, buf, len);
}

void mad_pack_ext(p_mad_connection_t connection, const void *buf, size_t len,
		  mad_send_mode_t send, mad_receive_mode_t receive, ...)
{
	p_mad_buffer_slice_parameter_t p;
	va_list args;

	va_start(args, receive);
	while ((p = va_arg(args, p_mad_buffer_slice_parameter_t))) {
		if (p->offset > len || p->length > len - p->offset)
			tbx_failuref("bytes %zu to %zu of a block of %zu bytes", p->offset,
				     p->offset + p->length, len);
		mad_free_slice_parameter(p);
	}
	va_end(args);
	mad_pack(connection, buf, len, send, receive);
}

static void requests_end(struct mad_world *w, struct mad_stream *s, const char *what)
{
	for (size_t i = 0; i < s->reqs.n; i++)
		link_check(w->net->wait(w, s->reqs.req[i].req, s->reqs.req[i].len), what, &s->link);
	s->reqs.n = 0;
}

void mad_end_packing(p_mad_connection_t connection)
{
	struct mad_stream *s = connection->stream;
	struct mad_world *w = mad_world();
	size_t i;

	for (i = 0; i < s->held.n; i++)
		stream_put(w, s, s->held.block[i].buf, s->held.block[i].len);
	for (i = 0; i < s->later.n; i++)
		stream_put(w, s, s->later.block[i].buf, s->later.block[i].len);
	if (s->n || !s->begun)
		fragment_send(w, s);
	link_check(w->net->flush(w, &s->link), "cannot send to", &s->link);
	requests_end(w, s, "cannot send to");
	for (i = 0; i < s->copies.n; i++)
		free(s->copies.block[i].buf);
	s->held.n = 0;
	s->later.n = 0;
	s->copies.n = 0;
	mad_gate_leave(&s->gate);
}

/* ---- unpacking ---- */

static void small_take(struct mad_world *w, struct mad_stream *s, void *buf, size_t len)
{
	if (s->at == s->n) {
		long n = w->net->recv(w, &s->link, s->buf, GATHER_MAX);

		link_check(n, "cannot receive from", &s->link);
		s->n = (size_t)n;
		s->at = 0;
	}
	if (len > s->n - s->at)
		tbx_failuref("unpack %zu bytes, but process %d has packed other blocks", len,
			     s->link.rank);
	memcpy(buf, s->buf + s->at, len);
	s->at += len;
}

static void large_take(struct mad_world *w, struct mad_stream *s, void *buf, size_t len,
		       bool now)
{
	void *req;

	if (s->at != s->n)
		tbx_failuref("unpack %zu bytes, but process %d has packed other blocks", len,
			     s->link.rank);
	link_check(w->net->irecv(w, &s->link, buf, len, &req), "cannot receive from", &s->link);
	if (now)
		link_check(w->net->wait(w, req, len), "cannot receive from", &s->link);
	else
		*reqs_add(&s->reqs, len) = req;
}

static void stream_take(struct mad_world *w, struct mad_stream *s, void *buf, size_t len,
			bool now)
{
	if (len <= SMALL_MAX)
		small_take(w, s, buf, len);
	else
		large_take(w, s, buf, len, now);
}

static p_mad_connection_t unpacking_begin(p_mad_channel_t channel, bool wait)
{
	struct mad_world *w = mad_world();
	struct mad_reception *r = channel->reception;
	p_mad_connection_t c;
	int rank = -1, local;
	uint8_t *buf;
	long n;

	if (!channel->not_private ||
	    !mad_gate_take(&r->gate, wait, "a reception of this channel"))
		return NULL;
	if (!r->buf)
		r->buf = tbx_alloc(1, GATHER_MAX);
	n = w->net->first(w, &r->inbox, r->buf, GATHER_MAX, wait, &rank);
	if (n == -EAGAIN) {
		mad_gate_leave(&r->gate);
		return NULL;
	}
	if (n < 0 && rank >= 0)
		tbx_failuref("cannot receive in channel %s: process %d is gone: %s",
			     channel->name, rank, strerror((int)-n));
	if (n < 0)
		tbx_failuref("cannot receive in channel %s: %s", channel->name,
			     strerror((int)-n));
	local = ntbx_pc_global_to_local(channel->pc, rank);
	c = local < 0 ? NULL : tbx_darray_get(channel->in_connection_darray, local);
	if (!c)
		tbx_failuref("process %d is not connected in channel %s", rank, channel->name);
	buf = c->stream->buf;
	c->stream->buf = r->buf;
	r->buf = buf;
	c->stream->n = (size_t)n;
	c->stream->at = 0;
	return c;
}

p_mad_connection_t mad_begin_unpacking(p_mad_channel_t channel)
{
	return unpacking_begin(channel, true);
}

p_mad_connection_t mad_message_ready(p_mad_channel_t channel)
{
	return unpacking_begin(channel, false);
}

void mad_unpack(p_mad_connection_t connection, void *buf, size_t len, mad_send_mode_t send,
		mad_receive_mode_t receive)
{
	struct mad_stream *s = connection->stream;

	modes_check(send, receive);
	if (!len)
		return;
	if (block_is_last(send, receive))
		blocks_add(&s->later, buf, len);
	else
		stream_take(mad_world(), s, buf, len, receive == mad_receive_EXPRESS);
}

void mad_end_unpacking(p_mad_connection_t connection)
{
	struct mad_stream *s = connection->stream;
	struct mad_world *w = mad_world();

	for (size_t i = 0; i < s->later.n; i++)
		stream_take(w, s, s->later.block[i].buf, s->later.block[i].len, false);
	s->later.n = 0;
	if (s->at != s->n)
		tbx_failuref("process %d has packed more than was unpacked", s->link.rank);
	requests_end(w, s, "cannot receive from");
	mad_gate_leave(&connection->channel->reception->gate);
}

/* ---- blocks that the network may lose: this library loses none ---- */

p_tbx_slist_t mad_unpack_ext(p_mad_connection_t connection, void *buf, size_t len,
			     mad_send_mode_t send, mad_receive_mode_t receive)
{
	mad_unpack(connection, buf, len, send, receive);
	return NULL;
}

p_tbx_slist_t mad_end_unpacking_ext(p_mad_connection_t connection)
{
	mad_end_unpacking(connection);
	return NULL;
}

p_mad_buffer_slice_parameter_t mad_alloc_slice_parameter(void)
{
	return tbx_alloc(1, sizeof(mad_buffer_slice_parameter_t));
}

void mad_free_slice_parameter(p_mad_buffer_slice_parameter_t p)
{
	free(p);
}

void mad_free_parameter_slist(p_tbx_slist_t l)
{
	if (!l)
		return;
	while (!tbx_slist_is_nil(l))
		mad_free_slice_parameter(tbx_slist_extract(l));
	tbx_slist_free(l);
}
