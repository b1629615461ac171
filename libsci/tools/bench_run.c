// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * The two ends of a run of messages.
 *
 * As in other benchmarks, each direction has one buffer, which no other thread touches. A
 * stream has WINDOW messages in flight. For messages up to BLOCKING_MAX bytes the sender
 * just calls sci_send(), which returns when the message is in the peer's ring.
 */
#include <errno.h>

#include "bench.h"
#include "bench_clock.h"

#define WINDOW		64u
#define BLOCKING_MAX	4096u
#define CONTEXT		1u
#define TAG		7u
#define FIRST_COUNT	4u
#define GIVE_UP_MS	2000

static inline int bench_send(struct bench_link *l, size_t n)
{
	if (l->tagged)
		return sci_tsend(l->peer, CONTEXT, TAG, l->out, n);
	return sci_send(l->peer, l->out, n);
}

static inline int bench_recv(struct bench_link *l, size_t n)
{
	if (l->tagged)
		return sci_trecv(l->ep, l->peer, CONTEXT, TAG, 0, l->in, n,
				 NULL);
	return sci_recv(l->ep, l->peer, l->in, n, NULL);
}

static int send_start(struct bench_link *l, size_t n, struct sci_req **req)
{
	if (l->tagged)
		return sci_itsend(l->peer, CONTEXT, TAG, l->out, n, req);
	return sci_isend(l->peer, l->out, n, req);
}

static int recv_start(struct bench_link *l, size_t n, struct sci_req **req)
{
	if (l->tagged)
		return sci_itrecv(l->ep, l->peer, CONTEXT, TAG, 0, l->in, n,
				  req);
	return sci_irecv(l->ep, l->peer, l->in, n, req);
}

/* ---- windows of requests ---- */

struct window {
	int (*start)(struct bench_link *l, size_t n, struct sci_req **req);
	struct sci_req *req[WINDOW];
};

/* Start message @i, after the earlier message in its place of the window has completed. */
static int window_next(struct window *w, struct bench_link *l, size_t n,
		       uint64_t i)
{
	struct sci_req **req = &w->req[i % WINDOW];
	int ret = *req ? sci_wait(*req, -1, NULL) : 0;

	*req = NULL;
	return ret ? ret : w->start(l, n, req);
}

/* Wait for the messages in flight; after an error @ret, only for GIVE_UP_MS. */
static int window_end(struct window *w, int ret)
{
	int end = sci_waitall(w->req, WINDOW, ret ? GIVE_UP_MS : -1, NULL);

	return ret ? ret : end;
}

/* ---- runs ---- */

static int ping_pong_run(struct bench_link *l, size_t n, uint64_t count)
{
	int ret = 0;

	while (count-- && !ret) {
		ret = bench_send(l, n);
		ret = ret ? ret : bench_recv(l, n);
	}
	return ret;
}

static int pong_run(struct bench_link *l, size_t n, uint64_t count)
{
	int ret = 0;

	while (count-- && !ret) {
		ret = bench_recv(l, n);
		ret = ret ? ret : bench_send(l, n);
	}
	return ret;
}

static int stream_out(struct bench_link *l, size_t n, uint64_t count)
{
	struct window w = { .start = send_start };
	uint64_t i;
	int ret = 0;

	if (n <= BLOCKING_MAX) {
		while (count-- && !ret)
			ret = bench_send(l, n);
		return ret;
	}
	for (i = 0; i < count && !ret; i++)
		ret = window_next(&w, l, n, i);
	return window_end(&w, ret);
}

static int stream_in(struct bench_link *l, size_t n, uint64_t count)
{
	struct window w = { .start = recv_start };
	uint64_t i;
	int ret = 0;

	for (i = 0; i < count && !ret; i++)
		ret = window_next(&w, l, n, i);
	return window_end(&w, ret);
}

static int stream_both_ways(struct bench_link *l, size_t n, uint64_t count)
{
	struct window out = { .start = send_start };
	struct window in = { .start = recv_start };
	uint64_t i;
	int ret = 0;

	for (i = 0; i < count && !ret; i++) {
		ret = window_next(&in, l, n, i);
		ret = ret ? ret : window_next(&out, l, n, i);
	}
	ret = window_end(&out, ret);
	return window_end(&in, ret);
}

int bench_serve_run(struct bench_link *l, const struct bench_order *o)
{
	int ret;

	if (!l->out || o->size > l->room)
		return bench_answer(l, -EINVAL, 0, 0);
	ret = bench_answer(l, 0, 0, 0);
	if (ret)
		return ret;
	if (o->param == BENCH_PING)
		ret = pong_run(l, o->size, o->count);
	else if (o->param == BENCH_STREAM)
		ret = stream_in(l, o->size, o->count);
	else
		ret = stream_both_ways(l, o->size, o->count);
	return ret ? ret : bench_answer(l, 0, 0, 0);
}

static int run_begin(struct bench_link *l, enum bench_kind kind, size_t size,
		     uint64_t count)
{
	struct bench_order o = { .op = BENCH_RUN, .param = (uint16_t)kind,
				 .size = size, .count = count };

	return bench_ask(l, o, NULL);
}

int bench_run(struct bench_link *l, enum bench_kind kind, size_t size,
	      uint64_t count, double *seconds)
{
	struct bench_answer a;
	uint64_t begin, end;
	int ret;

	ret = run_begin(l, kind, size, count);
	begin = tool_now_ns();
	if (!ret && kind == BENCH_PING)
		ret = ping_pong_run(l, size, count);
	else if (!ret && kind == BENCH_STREAM)
		ret = stream_out(l, size, count);
	else if (!ret)
		ret = stream_both_ways(l, size, count);
	end = tool_now_ns();
	ret = ret ? ret : bench_await_answer(l, -1, &a);
	if (kind == BENCH_STREAM)
		end = tool_now_ns();
	*seconds = (double)(end - begin) * 1e-9;
	return ret ? bench_error(ret, "measuring") : TOOL_OK;
}

int bench_calibrate(struct bench_link *l, enum bench_kind kind, size_t size,
		    double seconds, uint64_t min, uint64_t *count)
{
	uint64_t n = FIRST_COUNT;
	double t;

	for (;;) {
		if (bench_run(l, kind, size, n, &t))
			return TOOL_FAILED;
		if (t >= seconds / 4)
			break;
		n *= t < seconds / 32 ? 8 : 2;
	}
	*count = (uint64_t)((double)n * seconds / t);
	*count = *count < min ? min : *count;
	return TOOL_OK;
}

int bench_run_each(struct bench_link *l, size_t size, uint64_t count,
		   double *ns, bool *tsc)
{
	struct bench_clock c = bench_clock();
	struct bench_answer a;
	uint64_t i, now, last;
	int ret = run_begin(l, BENCH_PING, size, count);

	*tsc = c.tsc;
	for (i = 0; i < count && !ret; i++) {
		last = bench_ticks(&c);
		ret = bench_send(l, size);
		ret = ret ? ret : bench_recv(l, size);
		now = bench_ticks(&c);
		ns[i] = (double)(now - last) * c.ns_per_tick / 2;
	}
	ret = ret ? ret : bench_await_answer(l, -1, &a);
	return ret ? bench_error(ret, "measuring") : TOOL_OK;
}
