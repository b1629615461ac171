// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tasks of this host: sockets, frames and ends. */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libsci/pvm/daemon/daemon.h"

#define READ_SIZE	(64u << 10)
#define OUT_MAX		(256u << 20)	/* limit of bytes queued for a task */

struct list tasks = { &tasks, &tasks };
static struct list ended = { &ended, &ended };	/* freed when no epoll event refers to them */
static struct watch listener;
static unsigned int next_local;
static bool halt_hard;

struct task *task_find(int tid)
{
	for (struct list *l = tasks.next; l != &tasks; l = l->next) {
		struct task *t = container_of(l, struct task, link);

		if (t->tid == tid && tid)
			return t;
	}
	return NULL;
}

/* Return a free task id; 0: all are in use. */
int tid_new(void)
{
	/* the highest id is TID_GROUPS */
	for (unsigned int i = 0; i < TID_LOCAL_MASK - 1; i++) {
		int tid;

		next_local = next_local % (TID_LOCAL_MASK - 1) + 1;
		tid = (int)(TID_OF_HOST(own_host) | next_local);
		if (!task_find(tid))
			return tid;
	}
	return 0;
}

struct task *task_new(void)
{
	struct task *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->sock.fd = t->output.fd = -1;
	list_add_tail(&t->link, &tasks);
	return t;
}

void tasks_free_ended(void)
{
	while (!list_empty(&ended)) {
		struct task *t = container_of(list_pop(&ended), struct task, link);

		free(t->name);
		free(t->in);
		free(t->out);
		free(t->siblings);
		free(t);
	}
}

/* Report the end of a task to its manager and trace sink, once, when its status is known. */
static void task_report_end(struct task *t)
{
	if (!t->shown_tid || t->told || t->tid || (t->child && !t->reaped && !t->left))
		return;
	t->told = true;
	manager_task_gone(t);
	trace_task_ended(t);
}

/*
 * Remove a task that has left the machine or has ended. A child of the daemon stays in the list,
 * without a tid, until its process and its output have ended.
 */
void task_end(struct task *t)
{
	int tid = t->tid;

	watch_del(&t->sock);
	t->enrolled = false;
	if (tid) {
		t->tid = 0;
		if (!t->shown_tid)
			t->shown_tid = tid;
		task_ended(tid);
	}
	/* report the end of the output now: the daemon has output pipes only of its children */
	if (tid && !t->child)
		output_event(t, TO_EOF);
	task_report_end(t);
	if (t->output.fd >= 0 || (t->child && !t->reaped))
		return;
	list_del(&t->link);
	list_add_tail(&t->link, &ended);
}

void task_reaped(pid_t pid, int status, const struct rusage *usage)
{
	struct list *l, *next;

	list_for_each_safe(l, next, &tasks) {
		struct task *t = container_of(l, struct task, link);

		if (!t->child || t->reaped || t->pid != pid)
			continue;
		t->reaped = true;
		t->status = status;
		t->usage = *usage;
		/* an open socket belongs to another process, in which the task continues */
		if (t->sock.fd < 0)
			task_end(t);
	}
}

bool tasks_left(void)
{
	for (struct list *l = tasks.next; l != &tasks; l = l->next) {
		struct task *t = container_of(l, struct task, link);

		if (t->sock.fd >= 0 || (t->child && !t->reaped))
			return true;
	}
	return false;
}

/*
 * Ask the tasks to end; the second call kills the daemon's children. Free the name of the socket at
 * once: this host may be added again while its tasks end.
 */
void tasks_halt(void)
{
	watch_del(&listener);
	for (struct list *l = tasks.next; l != &tasks; l = l->next) {
		struct task *t = container_of(l, struct task, link);

		if (t->pid > 0 && !(t->child && t->reaped))
			kill(t->pid, halt_hard && t->child ? SIGKILL : SIGTERM);
	}
	halt_hard = true;
}

/* ---- sending ---- */

static void task_push(struct task *t)
{
	while (t->out_len) {
		ssize_t n = send(t->sock.fd, t->out, t->out_len,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		t->out_len -= (size_t)n;
		memmove(t->out, t->out + n, t->out_len);
	}
	watch_mod(&t->sock, t->out_len ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static bool out_room(struct task *t, size_t len)
{
	size_t cap = (t->out_len + len) * 2;
	uint8_t *out;

	if (t->out_len + len <= t->out_cap)
		return true;
	if (t->out_len + len > OUT_MAX)
		return false;
	out = realloc(t->out, cap);
	if (!out)
		return false;
	t->out = out;
	t->out_cap = cap;
	return true;
}

void task_send(struct task *t, const struct frame_head *head, const void *body)
{
	if (t->sock.fd < 0)
		return;
	if (!out_room(t, sizeof(*head) + head->len)) {
		/* disconnect: the task could not find the next frame after half a frame */
		say("t%x does not read: it is cut off", (unsigned int)t->tid);
		shutdown(t->sock.fd, SHUT_RDWR);
		return;
	}
	memcpy(t->out + t->out_len, head, sizeof(*head));
	if (head->len)
		memcpy(t->out + t->out_len + sizeof(*head), body, head->len);
	t->out_len += sizeof(*head) + head->len;
	task_push(t);
}

/* ---- receiving ---- */

/* Handle the complete frames in @t->in. Return: false: the bytes are not frames. */
static bool frames_serve(struct task *t)
{
	struct frame_head head;
	struct body b;
	size_t at = 0;
	long n;

	while (t->sock.fd >= 0 &&
	       (n = frame_next(t->in + at, t->in_len - at, &head, &b)) != 0) {
		if (n < 0)
			return false;
		at += (size_t)n;
		serve(&head, &b, t, NULL);
	}
	memmove(t->in, t->in + at, t->in_len - at);
	t->in_len -= at;
	return true;
}

static void task_ready(struct watch *w, uint32_t events)
{
	struct task *t = container_of(w, struct task, sock);
	ssize_t n;

	if (events & EPOLLOUT)
		task_push(t);
	if (t->in_cap - t->in_len < READ_SIZE) {
		size_t cap = t->in_cap * 2 + READ_SIZE;
		uint8_t *in = realloc(t->in, cap);

		if (!in)
			return;
		t->in = in;
		t->in_cap = cap;
	}
	n = recv(w->fd, t->in + t->in_len, t->in_cap - t->in_len, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		t->in_len += (size_t)n;
	if (n <= 0 || !frames_serve(t))
		task_end(t);
}

static void listener_ready(struct watch *w, uint32_t events)
{
	int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), pid;
	struct task *t;

	(void)events;
	if (fd < 0)
		return;
	if (halting || !pvm_same_user(fd, &pid) || !(t = task_new())) {
		close(fd);
		return;
	}
	t->pid = pid;
	if (watch_add(&t->sock, fd, EPOLLIN, task_ready)) {
		watch_del(&t->sock);
		task_end(t);
	}
}

int tasks_init(int listen_fd)
{
	return watch_add(&listener, listen_fd, EPOLLIN, listener_ready);
}
