// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Requests: routing, and the requests about tasks. */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>

#include "libsci/pvm/daemon/daemon.h"

/* A request that a task of this host has sent to another host. */
struct pending {
	struct list link;
	uint32_t src;
	uint32_t seq;
	int host;
};

/* A request that waits until task @tid enrols or gets its siblings. */
struct waiter {
	struct list link;
	struct frame_head head;
	int tid;
};

static struct list pendings = { &pendings, &pendings };
static struct list wheres = { &wheres, &wheres };
static struct list siblings = { &siblings, &siblings };
static int contexts;			/* highest number in use so far */
static uint8_t *context_used;		/* by number: 1 if in use */
static int context_room;

/* ---- routes ---- */

static void pending_add(const struct frame_head *head, int host)
{
	struct pending *p = head->seq ? malloc(sizeof(*p)) : NULL;

	if (!p)
		return;
	*p = (struct pending){ .src = head->src, .seq = head->seq, .host = host };
	list_add_tail(&p->link, &pendings);
}

static void pending_done(const struct frame_head *head)
{
	struct list *l, *next;

	list_for_each_safe(l, next, &pendings) {
		struct pending *p = container_of(l, struct pending, link);

		if (p->src != head->dst || p->seq != head->seq)
			continue;
		list_del(&p->link);
		free(p);
		return;
	}
}

void requests_fail(int host)
{
	struct list *l, *next;

	list_for_each_safe(l, next, &pendings) {
		struct pending *p = container_of(l, struct pending, link);
		struct frame_head head = { .src = p->src, .seq = p->seq };

		if (p->host != host)
			continue;
		list_del(&p->link);
		free(p);
		answer(&head, PvmHostFail, NULL);
	}
}

void frame_route(struct frame_head *head, const void *body)
{
	int host = (int)TID_HOST(head->dst);
	struct task *t;

	if (host != own_host) {
		host_send(host, head, body);
		return;
	}
	if (head->op == OP_REPLY)
		pending_done(head);
	t = task_find((int)head->dst);
	if (t)
		task_send(t, head, body);
}

void answer(const struct frame_head *head, int status, struct frame *f)
{
	struct frame own = { 0 };
	struct frame_head *h;

	if (!f)
		frame_begin(f = &own, OP_REPLY, 0);
	h = frame_head(f);
	if (h && head->seq) {
		h->status = status;
		h->seq = head->seq;
		h->src = TID_DAEMON | TID_OF_HOST(own_host);
		h->dst = head->src;
		frame_route(h, h + 1);
	}
	frame_free(f);
}

void put_word(uint8_t *to, uint32_t v)
{
	to[0] = (uint8_t)(v >> 24);
	to[1] = (uint8_t)(v >> 16);
	to[2] = (uint8_t)(v >> 8);
	to[3] = (uint8_t)v;
}

void message_send(int tid, int src, int ctx, int tag, const void *data, size_t len)
{
	message_send_wid(tid, src, ctx, tag, 0, data, len);
}

void message_send_wid(int tid, int src, int ctx, int tag, int wid, const void *data,
		      size_t len)
{
	struct frame f = { 0 };
	struct frame_head *h;

	frame_begin(&f, OP_MSG, (uint32_t)tid);
	frame_i32(&f, ctx);
	frame_i32(&f, tag);
	frame_i32(&f, wid);
	frame_i32(&f, PvmDataDefault);
	frame_bytes(&f, data, len);
	h = frame_head(&f);
	if (h) {
		h->src = (uint32_t)src;
		frame_route(h, h + 1);
	}
	frame_free(&f);
}

/* ---- waiting requests ---- */

static void waiter_add(struct list *to, const struct frame_head *head, int tid)
{
	struct waiter *w = malloc(sizeof(*w));

	if (!w) {
		answer(head, PvmNoMem, NULL);
		return;
	}
	*w = (struct waiter){ .head = *head, .tid = tid };
	list_add_tail(&w->link, to);
}

/* Move the requests about @tid and the requests of @tid from the list @from to the list @to. */
static void waiters_take(struct list *from, int tid, struct list *to)
{
	struct list *l, *next;

	list_for_each_safe(l, next, from) {
		struct waiter *w = container_of(l, struct waiter, link);

		if (!tid_matches(w->tid, tid) && !tid_matches((int)w->head.src, tid))
			continue;
		list_del(&w->link);
		list_add_tail(&w->link, to);
	}
}

static void where_answer(const struct frame_head *head, const struct task *t)
{
	struct frame f = { 0 };

	frame_begin(&f, OP_REPLY, 0);
	frame_i32(&f, t ? (int32_t)t->addr.node : 0);
	frame_i32(&f, t ? (int32_t)t->addr.id : 0);
	answer(head, t ? 0 : PvmNoTask, &f);
}

static void siblings_answer(const struct frame_head *head, const struct task *t)
{
	struct frame f = { 0 };

	frame_begin(&f, OP_REPLY, 0);
	frame_ints(&f, t->siblings, t->nsiblings);
	answer(head, 0, &f);
}

/* Answer the OP_WHERE requests for @t, which has enrolled. */
void where_serve(struct task *t)
{
	struct list mine = { &mine, &mine };

	waiters_take(&wheres, t->tid, &mine);
	while (!list_empty(&mine)) {
		struct waiter *w = container_of(list_pop(&mine), struct waiter, link);

		where_answer(&w->head, t);
		free(w);
	}
}

static void siblings_serve(struct task *t)
{
	struct list mine = { &mine, &mine };

	waiters_take(&siblings, t->tid, &mine);
	while (!list_empty(&mine)) {
		struct waiter *w = container_of(list_pop(&mine), struct waiter, link);

		siblings_answer(&w->head, t);
		free(w);
	}
}

static void siblings_set(struct task *t, const int *tids, int n)
{
	int *copy = t->siblings ? NULL : malloc((size_t)n * sizeof(int));

	if (!copy)
		return;
	memcpy(copy, tids, (size_t)n * sizeof(int));
	t->siblings = copy;
	t->nsiblings = n;
	siblings_serve(t);
}

/* Store the list of the tasks of one spawn, which the parent has sent. */
static void siblings_handle(struct body *b)
{
	const void *v;
	int n = body_ints(b, &v), *tids = n ? malloc((size_t)n * sizeof(int)) : NULL;

	if (!tids)
		return;
	memcpy(tids, v, (size_t)n * sizeof(int));
	for (int i = 0; i < n; i++) {
		struct task *t = task_find(tids[i]);

		if (t)
			siblings_set(t, tids, n);
	}
	free(tids);
}

/*
 * Set the siblings of tasks whose parent died before it sent the list: each task has only itself.
 */
static void siblings_orphaned(int ptid)
{
	struct list *l, *next;

	list_for_each_safe(l, next, &tasks) {
		struct task *t = container_of(l, struct task, link);

		if (t->tid && tid_matches(t->ptid, ptid))
			siblings_set(t, &t->tid, 1);
	}
}

/* Handle the end of a task. Each daemon calls task_ended() for the tasks of all hosts. */
void task_ended(int tid)
{
	struct list mine = { &mine, &mine };

	if (TID_HOST(tid) == (uint32_t)own_host && (uint32_t)tid & TID_LOCAL_MASK) {
		struct frame f = { 0 };

		frame_begin(&f, OP_EXITED, 0);
		frame_i32(&f, tid);
		hosts_broadcast(&f);
	}
	waiters_take(&wheres, tid, &mine);
	waiters_take(&siblings, tid, &mine);
	while (!list_empty(&mine)) {
		struct waiter *w = container_of(list_pop(&mine), struct waiter, link);

		if (!tid_matches((int)w->head.src, tid))
			where_answer(&w->head, NULL);
		free(w);
	}
	tasker_ended(tid);
	hoster_ended(tid);
	manager_ended(tid);
	tracer_ended(tid);
	siblings_orphaned(tid);
	notify_task(tid);
	mbox_task_ended(tid);
	groups_task_ended(tid);
}

/* ---- requests ---- */

/* Return the started task whose PVMEPID is @pid: a child of the daemon, or a task of the tasker. */
static struct task *entry_find_pid(pid_t pid)
{
	for (struct list *l = tasks.next; l != &tasks; l = l->next) {
		struct task *t = container_of(l, struct task, link);

		if (t->tid && !t->enrolled && t->sock.fd < 0 &&
		    (t->cookie ? t->cookie : t->child ? t->pid : 0) == pid)
			return t;
	}
	return NULL;
}

/* Answer OP_ENROL. @traced: the tracer is the sink, so send the tracer's options. */
static void enrol_answer(const struct frame_head *head, const struct task *t, bool traced)
{
	struct frame f = { 0 };
	struct frame_head h = *head;

	frame_begin(&f, OP_REPLY, 0);
	frame_i32(&f, t->tid);
	frame_i32(&f, t->ptid);
	frame_i32(&f, (int32_t)TID_OF_HOST(own_host));
	frame_i32(&f, t->ctx);
	for (int i = 0; i < OPTS; i++)
		frame_i32(&f, t->opt[i]);
	frame_i32(&f, t->manager);
	frame_str(&f, traced ? tracer.mask : "");
	frame_i32(&f, traced ? tracer.bytes : 0);
	frame_i32(&f, traced ? tracer.how : 0);
	h.src = (uint32_t)t->tid;
	answer(&h, 0, &f);
}

static void serve_enrol(const struct frame_head *head, struct body *b, struct task *t)
{
	int version = body_i32(b), pid = body_i32(b);
	struct sci_addr addr;
	bool traced = false;
	struct task *s;

	addr.node = (uint32_t)body_i32(b);
	addr.id = (uint32_t)body_i32(b);
	if (b->bad || version != FRAME_VERSION || t->tid) {
		task_end(t);
		return;
	}
	s = pid > 0 ? entry_find_pid(pid) : NULL;
	if (s) {
		/* a started task already has an entry: move the connection to this entry */
		s->sock = t->sock;
		if (s->cookie)
			s->pid = t->pid;
		s->cookie = 0;
		t->sock.fd = -1;
		watch_mod(&s->sock, EPOLLIN);
		task_end(t);
		t = s;
	} else {
		t->tid = t->shown_tid = tid_new();
		t->manager = manager;
		siblings_set(t, &t->tid, 1);
		traced = tracer_sink(t->opt, OPT_TRACE_TID);
		tracer_sink(t->opt, OPT_OUT_TID);
		if (traced)
			trace_task_new(t, -1, false);
		manager_task_new(t);
	}
	t->addr = addr;
	t->enrolled = true;
	enrol_answer(head, t, traced);
	where_serve(t);
	output_event(t, TO_NEW);
}

static void serve_where(const struct frame_head *head, struct body *b)
{
	int tid = body_i32(b);
	struct task *t = task_find(tid);

	if (t && !t->enrolled)
		waiter_add(&wheres, head, tid);
	else
		where_answer(head, t);
}

static void tasks_list(const struct frame_head *head, struct body *b)
{
	int tid = body_i32(b), n = 0;
	struct frame f = { 0 };

	frame_begin(&f, OP_REPLY, 0);
	for (int pass = 0; pass < 2; pass++) {
		if (pass)
			frame_i32(&f, n);
		for (struct list *l = tasks.next; l != &tasks; l = l->next) {
			struct task *t = container_of(l, struct task, link);

			if (!t->tid || (tid && t->tid != tid))
				continue;
			n++;
			if (!pass)
				continue;
			frame_i32(&f, t->tid);
			frame_i32(&f, t->ptid);
			frame_i32(&f, (t->child ? TASK_FORKED : 0) |
				  (t->enrolled ? TASK_CONNECTED : 0));
			frame_i32(&f, t->pid);
			frame_str(&f, t->name);
		}
	}
	answer(head, 0, &f);
}

static void task_signal(const struct frame_head *head, struct body *b)
{
	struct task *t = task_find(body_i32(b));
	int sig = body_i32(b);

	if (!t)
		answer(head, PvmNoTask, NULL);
	else
		answer(head, t->pid > 0 && !kill(t->pid, sig) ? 0 : PvmNoTask, NULL);
}

static void serve_config(const struct frame_head *head)
{
	struct frame f = { 0 };
	int n = 0;

	for (int i = 1; i <= (int)HOST_MAX; i++)
		n += host_up(hosts[i]);
	frame_begin(&f, OP_REPLY, 0);
	frame_i32(&f, n);
	for (int i = 1; i <= (int)HOST_MAX; i++) {
		if (!host_up(hosts[i]))
			continue;
		frame_i32(&f, (int32_t)TID_OF_HOST(i));
		frame_i32(&f, HOST_SPEED);
		frame_i32(&f, DATA_SIGNATURE);
		frame_str(&f, hosts[i]->name);
		frame_str(&f, hosts[i]->arch);
	}
	answer(head, 0, &f);
}

/* Allocate a context if @ctx is 0, free @ctx otherwise. Return: a context, 0 or an error. */
static int serve_context(int ctx)
{
	int n = (int)((uint32_t)ctx & TID_LOCAL_MASK);

	if (ctx) {
		if (TID_HOST(ctx) != (uint32_t)own_host || n > contexts || !n ||
		    !context_used[n])
			return PvmNotFound;
		context_used[n] = 0;
		return 0;
	}
	for (n = 1; n <= contexts && context_used[n]; n++)
		;
	if (n > (int)TID_LOCAL_MASK - 64)
		return PvmOutOfRes;
	if (n >= context_room) {
		int room = context_room * 2 + 64;
		uint8_t *used = realloc(context_used, (size_t)room);

		if (!used)
			return PvmNoMem;
		context_used = used;
		context_room = room;
	}
	context_used[n] = 1;
	contexts = n > contexts ? n : contexts;
	return (int)(TID_OF_HOST(own_host) | (uint32_t)n);
}

static void clock_answer(const struct frame_head *head)
{
	struct frame f = { 0 };
	struct timeval tv;

	gettimeofday(&tv, NULL);
	frame_begin(&f, OP_REPLY, 0);
	frame_i32(&f, (int32_t)tv.tv_sec);
	frame_i32(&f, (int32_t)tv.tv_usec);
	answer(head, 0, &f);
}

static void serve_setopt(const struct frame_head *head, struct body *b)
{
	struct task *t = task_find((int)head->src);
	int opt = body_i32(b), value = body_i32(b);

	if (!t || b->bad || opt < 0 || opt >= OPTS) {
		answer(head, PvmBadParam, NULL);
		return;
	}
	t->opt[opt] = value;
	answer(head, 0, NULL);
	if (opt == OPT_TRACE_TID)
		trace_task_new(t, 0, true);
}

static void siblings_get(const struct frame_head *head)
{
	struct task *t = task_find((int)head->src);

	if (t && !t->siblings)
		waiter_add(&siblings, head, t->tid);
	else if (t)
		siblings_answer(head, t);
}

static void task_leave(const struct frame_head *head, struct task *t)
{
	answer(head, 0, NULL);
	if (t) {
		t->left = true;
		task_end(t);
	}
}

/* ---- frames between daemons ---- */

static void task_check(struct body *b, int host)
{
	struct frame f = { 0 };
	struct frame_head *h;
	int tid = body_i32(b);

	if (task_find(tid))
		return;
	frame_begin(&f, OP_EXITED, 0);
	frame_i32(&f, tid);
	h = frame_head(&f);
	if (h)
		host_send(host, h, h + 1);
	frame_free(&f);
}

static void serve_daemon(struct frame_head *head, struct body *b, struct sci_peer *from)
{
	int host = (int)TID_HOST(head->src);

	switch (head->op) {
	case OP_HELLO:
		host_hello(head, b, from);
		return;
	case OP_HOSTS:
		hosts_table(b);
		return;
	case OP_HOSTS_KNOWN:
		hosts_known(host, b);
		return;
	case OP_EXITED:
		task_ended(body_i32(b));
		return;
	case OP_LOST:
		host_lost(b);
		return;
	case OP_CHECK:
		task_check(b, host);
		return;
	case OP_NEW_MANAGER:
		manager_set(body_i32(b));
		return;
	case OP_NEW_TRACER:
		tracer_set(b);
		return;
	case OP_BYE:
		daemon_halt();
		return;
	}
}

static void serve_own(struct frame_head *head, struct body *b, struct task *t)
{
	switch (head->op) {
	case OP_ENROL: if (t) serve_enrol(head, b, t); return;
	case OP_EXIT: task_leave(head, t); return;
	case OP_SPAWN: spawn_serve(head, b); return;
	case OP_SIBLINGS: siblings_handle(b); return;
	case OP_GET_SIBLINGS: siblings_get(head); return;
	case OP_WHERE: serve_where(head, b); return;
	case OP_SIGNAL: task_signal(head, b); return;
	case OP_TASKS: tasks_list(head, b); return;
	case OP_CONFIG: serve_config(head); return;
	case OP_PICK: pick_serve(head, b); return;
	case OP_NOTIFY: notify_serve(head, b); return;
	case OP_CONTEXT: answer(head, serve_context(body_i32(b)), NULL); return;
	case OP_PUTINFO: case OP_RECVINFO: case OP_DELINFO: case OP_MBOXES:
	case OP_MBOX_RESET: mbox_serve(head, b); return;
	case OP_ADDHOSTS: hosts_add(head, b); return;
	case OP_DELHOSTS: hosts_delete(head, b); return;
	case OP_HALT: answer(head, 0, NULL); daemon_halt(); return;
	case OP_CLOCK: clock_answer(head); return;
	case OP_SETOPT: serve_setopt(head, b); return;
	case OP_GROUP: group_serve(head, b); return;
	case OP_TASKER: answer(head, t ? tasker_set(t->tid) : PvmBadParam, NULL); return;
	case OP_HOSTER: answer(head, hoster_set((int)head->src), NULL); return;
	case OP_MANAGER: manager_serve(head); return;
	case OP_TRACER: tracer_serve(head, b); return;
	case OP_TRACE: trace_serve(head, b); return;
	case OP_SM: sm_serve(head, b); return;
	default: answer(head, PvmNotImpl, NULL); return;
	}
}

void serve(struct frame_head *head, struct body *b, struct task *t, struct sci_peer *from)
{
	int host = head->dst == TO_OWN ? own_host :
		head->dst == TO_MASTER ? 1 : (int)TID_HOST(head->dst);

	if (t) {
		if (head->op != OP_ENROL && !t->tid)
			return;
		/* tasks may send only requests */
		if (head->op == OP_REPLY || head->op == OP_MSG || head->op >= OP_HELLO)
			return;
		head->src = (uint32_t)t->tid;
	} else if (head->op == OP_REPLY || head->op == OP_MSG) {
		frame_route(head, b->at);
		return;
	} else if (head->op >= OP_HELLO) {
		serve_daemon(head, b, from);
		return;
	}
	if (host == own_host) {
		serve_own(head, b, t);
	} else if (!host_up(hosts[host])) {
		answer(head, PvmNoHost, NULL);
	} else {
		if (head->dst == TO_MASTER)
			head->dst = TID_OF_HOST(1);
		pending_add(head, host);
		host_send(host, head, b->at);
	}
}
