// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Trace records of the daemon: a task has begun, a task has ended. */

#include <sys/time.h>

#include "libsci/pvm/daemon/daemon.h"
#include "libsci/pvm/daemon/text.h"

/* Numbers from PVM's pvmtev.h. */
enum { MARK_IDS = -3, MARK_IDS_END = -4, MARK_DESC = -5, MARK_DESC_END = -6,
	MARK_RECORD = -7, MARK_RECORD_END = -8 };
enum { TYPE_INT = 6, TYPE_STRING = 12 };
enum { NEWTASK, ENDTASK, SPNTASK, KINDS };
#define KIND_FIRST	75
enum { TID = 88, PT = 89, TF = 91, TN = 92, TST = 98, TUS = 99, TUU = 100, TSS = 101,
	TSU = 102, TS = 106, TU = 107 };

#define D(id)	id
static const char *const dids[] = {
#include "libsci/pvm/dids.h"
};
#undef D

static int sink;			/* tid of the last record's receiver */
static bool described[KINDS];		/* kinds whose descriptor @sink has */

static void sink_set(const struct task *t)
{
	struct text x = { 0 };

	if (t->opt[OPT_TRACE_TID] == sink)
		return;
	sink = t->opt[OPT_TRACE_TID];
	for (int i = 0; i < KINDS; i++)
		described[i] = false;
	text_word(&x, (uint32_t)MARK_IDS);
	for (uint32_t i = 0; i < sizeof(dids) / sizeof(dids[0]); i++) {
		text_word(&x, i);
		text_str(&x, dids[i], NULL);
		text_str(&x, dids[i], NULL);
	}
	text_word(&x, (uint32_t)MARK_IDS_END);
	text_send(&x, sink, t->opt[OPT_TRACE_CTX], t->opt[OPT_TRACE_TAG], 0);
}

static void field_head(struct text *x, int kind, int did, int type)
{
	if (described[kind])
		return;
	text_word(x, (uint32_t)did);
	text_word(x, (uint32_t)type);
}

static void field_int(struct text *x, int kind, int did, int v)
{
	field_head(x, kind, did, TYPE_INT);
	text_word(x, (uint32_t)v);
}

static void event_begin(struct text *x, int kind, const char *name, const struct task *t)
{
	struct timeval now;

	sink_set(t);
	gettimeofday(&now, NULL);
	text_word(x, (uint32_t)(described[kind] ? MARK_RECORD : MARK_DESC));
	text_word(x, (uint32_t)(KIND_FIRST + kind));
	if (!described[kind])
		text_str(x, name, NULL);
	field_int(x, kind, TS, (int)now.tv_sec);
	field_int(x, kind, TU, (int)now.tv_usec);
	field_int(x, kind, TID, t->shown_tid ? t->shown_tid : t->tid);
}

static void event_end(struct text *x, int kind, const struct task *t)
{
	text_word(x, (uint32_t)(described[kind] ? MARK_RECORD_END : MARK_DESC_END));
	described[kind] = true;
	text_send(x, sink, t->opt[OPT_TRACE_CTX], t->opt[OPT_TRACE_TAG], 0);
}

void trace_task_new(const struct task *t, int flags, bool spawned)
{
	struct text x = { 0 };

	if (!tid_is_task(t->opt[OPT_TRACE_TID]))
		return;
	event_begin(&x, NEWTASK, "newtask", t);
	field_int(&x, NEWTASK, PT, flags < 0 ? -1 : t->ptid);
	field_int(&x, NEWTASK, TF, flags);
	field_head(&x, NEWTASK, TN, TYPE_STRING);
	text_str(&x, t->name ? t->name : "-", NULL);
	event_end(&x, NEWTASK, t);
	if (!spawned)
		return;
	event_begin(&x, SPNTASK, "spntask", t);
	field_int(&x, SPNTASK, PT, t->ptid);
	event_end(&x, SPNTASK, t);
}

void trace_task_ended(const struct task *t)
{
	struct text x = { 0 };

	if (!tid_is_task(t->opt[OPT_TRACE_TID]))
		return;
	event_begin(&x, ENDTASK, "endtask", t);
	field_int(&x, ENDTASK, TST, t->status);
	field_int(&x, ENDTASK, TUS, (int)t->usage.ru_utime.tv_sec);
	field_int(&x, ENDTASK, TUU, (int)t->usage.ru_utime.tv_usec);
	field_int(&x, ENDTASK, TSS, (int)t->usage.ru_stime.tv_sec);
	field_int(&x, ENDTASK, TSU, (int)t->usage.ru_stime.tv_usec);
	event_end(&x, ENDTASK, t);
}

void trace_serve(const struct frame_head *head, struct body *b)
{
	int to = body_i32(b), ctx = body_i32(b), tag = body_i32(b);
	size_t len;
	const void *data = body_bytes(b, &len);

	if (!b->bad && tid_is_task(to))
		message_send(to, (int)head->src, ctx, tag, data, len);
}
