// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sim/switch/answer.h"
#include "sim/switch/command.h"
#include "sim/switch/control.h"
#include "sim/switch/fabric.h"

#define LINE_MAX_	4096u

/**
 * struct control - a client of the control socket
 * @in, @used: bytes of the client that are not executed yet
 * @out, @sent: an answer, and the number of its bytes that have been sent; the daemon executes
 *	the next command after the last byte
 * @ended: the client sends no more commands
 */
struct control {
	struct watch watch;
	struct later later;
	struct control *next;
	struct fabric *fabric;
	char in[LINE_MAX_];
	size_t used;
	struct answer out;
	size_t sent;
	bool ended, failing;
};

static void control_end(struct later *later)
{
	struct control *c = container_of(later, struct control, later);
	struct control **p = &c->fabric->clients;
	struct fabric *f = c->fabric;

	while (*p != c)
		p = &(*p)->next;
	*p = c->next;
	loop_unwatch(&f->loop, &c->watch);
	close(c->watch.fd);
	answer_free(&c->out);
	free(c);
	listener_resume(&f->loop, &f->adapters);
	listener_resume(&f->loop, &f->controls);
}

static void control_fail(struct control *c)
{
	c->failing = true;
	loop_later(&c->fabric->loop, &c->later);
}

/* Send the answer. Return whether all its bytes have been sent. */
static bool control_flush(struct control *c)
{
	while (c->sent < c->out.length) {
		ssize_t n = send(c->watch.fd, c->out.text + c->sent,
				 c->out.length - c->sent,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0) {
			if (errno != EAGAIN)
				control_fail(c);
			return false;
		}
		c->sent += (size_t)n;
	}
	c->sent = c->out.length = 0;
	return true;
}

static void control_run(struct control *c, const char *line)
{
	struct answer *a = &c->out;

	if (command_run(c->fabric, line, a))
		answer_add(a, "ok\n");
	else
		answer_add(a, "error: %s\n", a->error);
	a->error[0] = '\0';
}

/* Execute the next line of a client. Return false if there is no whole line. */
static bool control_run_line(struct control *c)
{
	char *end_of_line = memchr(c->in, '\n', c->used);
	size_t n;

	if (!end_of_line)
		return false;
	*end_of_line++ = '\0';
	control_run(c, c->in);
	n = (size_t)(end_of_line - c->in);
	c->used -= n;
	memmove(c->in, end_of_line, c->used);
	return true;
}

static void control_receive(struct control *c)
{
	ssize_t n = recv(c->watch.fd, c->in + c->used, sizeof(c->in) - c->used,
			 MSG_DONTWAIT);

	if (n > 0)
		c->used += (size_t)n;
	else if (n == 0)
		c->ended = true;
	else if (errno != EAGAIN)
		control_fail(c);
}

static void control_ready(struct watch *w, uint32_t events)
{
	struct control *c = container_of(w, struct control, watch);
	bool idle = control_flush(c);

	if (idle && events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		control_receive(c);
	while (idle && !c->failing && control_run_line(c))
		idle = control_flush(c);
	if (idle && c->used == sizeof(c->in)) {
		answer_add(&c->out, "error: the line is too long\n");
		c->ended = true;
		idle = control_flush(c);
	}
	if (idle && c->ended)
		control_fail(c);
	if (!c->failing)
		loop_change(&c->fabric->loop, w, idle ? EPOLLIN : EPOLLOUT);
}

void control_accept(struct fabric *f, int fd)
{
	struct control *c = calloc(1, sizeof(*c));

	if (!c) {
		close(fd);
		return;
	}
	c->watch = (struct watch){.fd = fd, .ready = control_ready};
	c->later.run = control_end;
	c->fabric = f;
	c->next = f->clients;
	f->clients = c;
	if (loop_watch(&f->loop, &c->watch, EPOLLIN))
		control_fail(c);
}

void control_close_all(struct fabric *f)
{
	struct control *c;

	for (c = f->clients; c; c = c->next)
		control_fail(c);
}
