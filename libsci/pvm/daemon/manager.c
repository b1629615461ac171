// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: the resource manager
 *
 * A task may register as the resource manager. Tasks that enrol afterwards send it their requests
 * to spawn, to add hosts and so on. The manager sends SM_ messages to daemons, which start tasks
 * and hosts. Daemons report the end of tasks and hosts to the manager. When the manager ends, its
 * tasks send their requests to their daemons again.
 */

#include <string.h>

#include "libsci/pvm/daemon/daemon.h"
#include "libsci/pvm/daemon/text.h"

int manager;

void manager_set(int tid)
{
	manager = tid_is_task(tid) ? tid : 0;
}

static void manager_frame(struct frame *f, int to, int tid)
{
	frame_begin(f, OP_NEW_MANAGER, (uint32_t)to);
	frame_i32(f, tid);
}

void manager_tell(int host)
{
	struct frame f = { 0 };

	if (!manager)
		return;
	manager_frame(&f, 0, manager);
	host_tell(host, &f);
}

void manager_serve(const struct frame_head *head)
{
	struct frame f = { 0 }, news = { 0 };

	frame_begin(&f, OP_REPLY, 0);
	frame_i32(&f, manager);
	frame_i32(&f, (int32_t)TID_OF_HOST(1));
	frame_str(&f, hosts[1]->name);
	frame_str(&f, hosts[1]->arch);
	frame_i32(&f, HOST_SPEED);
	frame_i32(&f, DATA_SIGNATURE);
	manager_set((int)head->src);
	manager_frame(&news, 0, manager);
	hosts_broadcast(&news);
	answer(head, 0, &f);
}

void manager_ended(int tid)
{
	if (manager && tid_matches(manager, tid))
		manager = 0;
	for (struct list *l = tasks.next; l != &tasks; l = l->next) {
		struct task *t = container_of(l, struct task, link);
		struct frame f = { 0 };
		struct frame_head *h;

		if (!t->manager || !tid_matches(t->manager, tid))
			continue;
		t->manager = 0;
		manager_frame(&f, t->tid, 0);
		h = frame_head(&f);
		if (h)
			task_send(t, h, h + 1);
		frame_free(&f);
	}
}

/* Report a new task to its manager. As in PVM, the message has the form of a reply. */
void manager_task_new(const struct task *t)
{
	struct text x = { 0 };

	if (!t->manager)
		return;
	text_word(&x, 1);
	text_word(&x, (uint32_t)t->tid);
	text_send(&x, t->manager, 0, SM_EXECACK, 0);
}

void manager_task_gone(const struct task *t)
{
	struct text x = { 0 };

	if (!t->manager)
		return;
	text_word(&x, (uint32_t)t->shown_tid);
	text_word(&x, (uint32_t)t->status);
	text_word(&x, (uint32_t)t->usage.ru_utime.tv_sec);
	text_word(&x, (uint32_t)t->usage.ru_utime.tv_usec);
	text_word(&x, (uint32_t)t->usage.ru_stime.tv_sec);
	text_word(&x, (uint32_t)t->usage.ru_stime.tv_usec);
	text_send(&x, t->manager, 0, SM_TASKX, 0);
}

void manager_host_gone(int host)
{
	struct text x = { 0 };

	if (own_host != 1 || !manager)
		return;
	text_word(&x, TID_DAEMON | TID_OF_HOST(host));
	text_send(&x, manager, 0, SM_HOSTX, 0);
}

void sm_serve(const struct frame_head *head, struct body *b)
{
	int ctx = body_i32(b), tag = body_i32(b), wid = body_i32(b), src = (int)head->src;
	size_t len;
	struct body x = { .at = body_bytes(b, &len) };

	if (b->bad)
		return;
	x.left = len;
	if (tag == GROUP_STATUS && own_host == 1)
		groups_tell(src, ctx, wid);
	else if (tag == SM_TASKX && src == tasker)
		tasker_told(&x);
	else if (tag == SM_STHOSTACK && src == hoster)
		hoster_told(wid, &x);
	else if (tag == SM_EXEC && src == manager)
		exec_serve(src, ctx, wid, &x);
	else if (tag == SM_ADD && src == manager && own_host == 1)
		hosts_add_managed(head, ctx, wid, &x);
	else if (tag == SM_HANDOFF && src == manager)
		manager_set(text_read_word(&x));
	else
		say("t%x has sent message %x, which is not its task", (unsigned int)src,
		    (unsigned int)tag);
}
