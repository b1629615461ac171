// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: the tracer
 *
 * A task may register as the tracer. Tasks that start afterwards, spawned or not, send their trace
 * and their output to the tracer, unless their parent has named another sink. The first daemon
 * registers the tracer and reports it to all daemons.
 */

#include "libsci/pvm/daemon/daemon.h"

struct tracer tracer;

static void tracer_frame(struct frame *f)
{
	frame_begin(f, OP_NEW_TRACER, 0);
	frame_i32(f, tracer.tid);
	for (int i = 0; i < OPTS; i++)
		frame_i32(f, tracer.opt[i]);
	frame_str(f, tracer.mask);
	frame_i32(f, tracer.bytes);
	frame_i32(f, tracer.how);
}

static void tracer_read(struct body *b)
{
	snprintf(tracer.mask, sizeof(tracer.mask), "%s", body_str(b));
	tracer.bytes = body_i32(b);
	tracer.how = body_i32(b);
}

void tracer_serve(const struct frame_head *head, struct body *b)
{
	struct frame f = { 0 };
	int tid = (int)head->src;

	if (tracer.tid && tracer.tid != tid) {
		answer(head, PvmAlready, NULL);
		return;
	}
	if (tracer.tid) {
		tracer = (struct tracer){ 0 };
	} else {
		tracer.tid = tracer.opt[OPT_TRACE_TID] = tracer.opt[OPT_OUT_TID] = tid;
		tracer.opt[OPT_TRACE_CTX] = body_i32(b);
		tracer.opt[OPT_TRACE_TAG] = body_i32(b);
		tracer.opt[OPT_OUT_CTX] = body_i32(b);
		tracer.opt[OPT_OUT_TAG] = body_i32(b);
		tracer_read(b);
		if (b->bad)
			tracer = (struct tracer){ 0 };
	}
	tracer_frame(&f);
	hosts_broadcast(&f);
	answer(head, b->bad ? PvmBadParam : 0, NULL);
}

void tracer_set(struct body *b)
{
	tracer.tid = body_i32(b);
	for (int i = 0; i < OPTS; i++)
		tracer.opt[i] = body_i32(b);
	tracer_read(b);
}

void tracer_tell(int host)
{
	struct frame f = { 0 };

	if (!tracer.tid)
		return;
	tracer_frame(&f);
	host_tell(host, &f);
}

void tracer_ended(int tid)
{
	if (tracer.tid && tid_matches(tracer.tid, tid))
		tracer = (struct tracer){ 0 };
}

bool tracer_sink(int opt[OPTS], enum task_opt tid)
{
	/* a tag of 0 requests no records; context and tag follow the tid in opt[] */
	if (!tracer.tid || opt[tid] || !tracer.opt[tid + 2])
		return false;
	for (int i = 0; i < 3; i++)
		opt[tid + i] = tracer.opt[tid + i];
	return true;
}
