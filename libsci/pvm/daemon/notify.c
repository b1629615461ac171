// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Notifications: each daemon keeps the requests of the tasks of its host. */

#include <stdlib.h>

#include "libsci/pvm/daemon/daemon.h"

/*
 * struct interest - a task's request for notification of an event
 * @what: PvmTaskExit, PvmHostDelete or PvmHostAdd
 * @tid: a task or host; for PvmHostAdd the number of notifications left, -1: no limit
 */
struct interest {
	struct list link;
	int task;
	int what;
	int ctx;
	int tag;
	int tid;
};

static struct list interests = { &interests, &interests };

static void interest_free(struct interest *i)
{
	list_del(&i->link);
	free(i);
}

/* Send @n tids to the task that has requested @i. @count: send @n first. */
static void interest_send(const struct interest *i, const int *tids, int n, bool count)
{
	uint8_t *body = malloc(((size_t)n + 1) * 4), *at = body;

	if (!body)
		return;
	if (count) {
		put_word(at, (uint32_t)n);
		at += 4;
	}
	for (int j = 0; j < n; j++, at += 4)
		put_word(at, (uint32_t)tids[j]);
	message_send(i->task, (int)TID_DAEMON, i->ctx, i->tag, body, (size_t)(at - body));
	free(body);
}

static void event_notify(int what, int tid)
{
	struct list *l, *next;

	list_for_each_safe(l, next, &interests) {
		struct interest *i = container_of(l, struct interest, link);

		if (i->what != what || i->tid != tid)
			continue;
		interest_send(i, &tid, 1, false);
		interest_free(i);
	}
}

void notify_task(int tid)
{
	struct list *l, *next;

	list_for_each_safe(l, next, &interests) {
		struct interest *i = container_of(l, struct interest, link);

		if (tid_matches(i->task, tid))
			interest_free(i);
	}
	list_for_each_safe(l, next, &interests) {
		struct interest *i = container_of(l, struct interest, link);

		if (i->what != PvmTaskExit || !tid_matches(i->tid, tid))
			continue;
		interest_send(i, &i->tid, 1, false);
		interest_free(i);
	}
}

void notify_host_gone(int host)
{
	event_notify(PvmHostDelete, (int)TID_OF_HOST(host));
}

void notify_hosts_new(const int *tids, int n)
{
	struct list *l, *next;

	list_for_each_safe(l, next, &interests) {
		struct interest *i = container_of(l, struct interest, link);

		if (i->what != PvmHostAdd)
			continue;
		interest_send(i, tids, n, true);
		if (i->tid > 0 && !--i->tid)
			interest_free(i);
	}
}

/* Return true if the event has already happened. Otherwise, for the end of a task, ask its host. */
static bool event_has_happened(int what, int tid)
{
	int host = (int)TID_HOST(tid);
	struct frame f = { 0 };

	if (!host_up(hosts[host]))
		return true;
	if (what != PvmTaskExit)
		return false;
	if (host == own_host)
		return !task_find(tid);
	frame_begin(&f, OP_CHECK, 0);
	frame_i32(&f, tid);
	host_tell(host, &f);
	return false;
}

static int interest_add(const struct interest *want)
{
	struct interest *i = malloc(sizeof(*i));

	if (!i)
		return PvmNoMem;
	*i = *want;
	list_add_tail(&i->link, &interests);
	if (i->what != PvmHostAdd && event_has_happened(i->what, i->tid))
		event_notify(i->what, i->tid);
	return 0;
}

/* Cancel requests: send their notifications at once. */
static void interest_cancel(const struct interest *want)
{
	struct list *l, *next;

	list_for_each_safe(l, next, &interests) {
		struct interest *i = container_of(l, struct interest, link);

		if (i->task != want->task || i->what != want->what ||
		    i->tag != want->tag || i->ctx != want->ctx)
			continue;
		if (i->what == PvmHostAdd) {
			interest_send(i, NULL, 0, true);
			interest_free(i);
		} else if (i->tid == want->tid) {
			interest_send(i, &i->tid, 1, false);
			interest_free(i);
		}
	}
}

void notify_serve(const struct frame_head *head, struct body *b)
{
	struct interest want = { .task = (int)head->src, .what = body_i32(b) };
	bool cancel = want.what & PvmNotifyCancel;
	const void *v;
	int count, n, ret = 0;

	want.what &= ~PvmNotifyCancel;
	want.ctx = body_i32(b);
	want.tag = body_i32(b);
	count = body_i32(b);
	n = body_ints(b, &v);
	if (b->bad) {
		answer(head, PvmBadParam, NULL);
		return;
	}
	/* send the answer before any notification */
	answer(head, 0, NULL);
	if (want.what == PvmHostAdd) {
		struct list *l, *next;

		if (cancel) {
			interest_cancel(&want);
			return;
		}
		list_for_each_safe(l, next, &interests) {
			struct interest *i = container_of(l, struct interest, link);

			if (i->what == PvmHostAdd && i->task == want.task &&
			    i->tag == want.tag && i->ctx == want.ctx)
				interest_free(i);
		}
		want.tid = count;
		if (count)
			ret = interest_add(&want);
		n = 0;
	}
	for (int i = 0; i < n && !ret; i++) {
		want.tid = ints_at(v, i);
		if (want.what == PvmHostDelete)
			want.tid = (int)TID_OF_HOST(TID_HOST(want.tid));
		if (cancel)
			interest_cancel(&want);
		else
			ret = interest_add(&want);
	}
}
