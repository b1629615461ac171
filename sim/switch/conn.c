// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sim/switch/attach.h"
#include "sim/switch/conn.h"
#include "sim/switch/direct.h"
#include "sim/switch/fabric.h"
#include "sim/switch/node.h"
#include "sim/switch/receive.h"

/* frames handled before other connections have their turn */
#define BATCH		32
#define OTHERS_MAX	65536u		/* waiting frames that are not packets */
#define UNREAD_MAX	4096		/* frames */

struct waiting {
	struct waiting *next;
	size_t size;
	int fd;
	bool packet;
	unsigned char frame[];
};

/* ---- sending ---- */

static ssize_t frame_send_now(const struct conn *c, const void *frame, size_t size,
			      int fd)
{
	struct iovec iov = { .iov_base = (void *)frame, .iov_len = size };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { { 0 } };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};

	if (fd < 0)
		return send(c->watch.fd, frame, size,
			    MSG_DONTWAIT | MSG_NOSIGNAL);
	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	return sendmsg(c->watch.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void frames_count_waiting(struct conn *c, const struct waiting *w, int sign)
{
	if (w->packet) {
		c->packets += (unsigned int)sign;
		c->bytes += sign > 0 ? w->size : -w->size;
	} else {
		c->others += (unsigned int)sign;
	}
}

static bool conn_has_room(const struct conn *c, size_t size, bool packet)
{
	const uint64_t *value;

	if (!packet)
		return c->others < OTHERS_MAX;
	value = c->node->point.value;
	return c->packets < value[KEY_QUEUE_PACKETS] &&
	       c->bytes + size <= value[KEY_QUEUE_BYTES];
}

static bool frame_enqueue(struct conn *c, const void *frame, size_t size, int fd,
			  bool packet)
{
	struct waiting *w;

	if (!conn_has_room(c, size, packet))
		return false;
	w = malloc(sizeof(*w) + size);
	if (!w)
		return false;
	*w = (struct waiting){ .size = size, .fd = -1, .packet = packet };
	memcpy(w->frame, frame, size);
	if (fd >= 0)
		w->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (w->fd < 0 && fd >= 0) {
		free(w);
		return false;
	}
	if (!c->queue)
		loop_change(&c->fabric->loop, &c->watch, EPOLLIN | EPOLLOUT);
	*c->queue_end = w;
	c->queue_end = &w->next;
	frames_count_waiting(c, w, 1);
	return true;
}

/* Remove the frame at @place from the queue. */
static void frame_remove(struct conn *c, struct waiting **place)
{
	struct waiting *w = *place;

	*place = w->next;
	if (!w->next)
		c->queue_end = place;
	frames_count_waiting(c, w, -1);
	if (w->fd >= 0)
		close(w->fd);
	free(w);
}

bool conn_withdraw_peer(struct conn *c, uint32_t node)
{
	struct waiting **place = &c->queue;
	bool found = false;
	struct frame head;

	while (*place) {
		memcpy(&head, (*place)->frame, sizeof(head));
		if (head.kind == FRAME_PEER && head.node == node)
			found = true;
		if (found && head.node == node &&
		    (head.kind == FRAME_PEER || head.kind == FRAME_EXPORTS))
			frame_remove(c, place);
		else
			place = &(*place)->next;
	}
	return found;
}

/* Send a frame, or add it to the queue. Return false if the queue is full. */
static bool frame_send_or_keep(struct conn *c, const void *frame, size_t size,
			       int fd, bool packet)
{
	if (c->failing)
		return true;
	if (!c->queue) {
		if (frame_send_now(c, frame, size, fd) >= 0)
			return true;
		if (errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM) {
			conn_fail(c);
			return true;
		}
	}
	return frame_enqueue(c, frame, size, fd, packet);
}

void conn_send(struct conn *c, const void *frame, size_t size, int fd)
{
	if (frame_send_or_keep(c, frame, size, fd, false))
		return;
	fabric_warn("node %u: too many frames wait for it: disconnected",
		    c->attach.head.node);
	conn_fail(c);
}

bool conn_send_packet(struct conn *c, const void *frame, size_t size)
{
	return frame_send_or_keep(c, frame, size, -1, true);
}

static void conn_flush(struct conn *c)
{
	while (c->queue && !c->failing) {
		const struct waiting *w = c->queue;

		if (frame_send_now(c, w->frame, w->size, w->fd) < 0) {
			if (errno != EAGAIN)
				conn_fail(c);
			return;
		}
		frame_remove(c, &c->queue);
	}
	if (!c->queue)
		loop_change(&c->fabric->loop, &c->watch, EPOLLIN);
}

/* ---- end and begin ---- */

bool conn_dead(const struct conn *c)
{
	struct pollfd p = { .fd = c->watch.fd };

	return poll(&p, 1, 0) == 1 && p.revents & (POLLHUP | POLLERR);
}

/* Read remaining frames before the close, or the adapter would get ECONNRESET, not our frames. */
static void unread_forget(struct conn *c)
{
	char byte;
	int i;

	for (i = 0; i < UNREAD_MAX; i++)
		if (recv(c->watch.fd, &byte, 1, MSG_DONTWAIT) <= 0)
			return;
}

static void conn_unlink(struct conn *c)
{
	struct conn **p = &c->fabric->conns;

	while (*p != c)
		p = &(*p)->next;
	*p = c->next;
}

void conn_leave(struct conn *c)
{
	struct node *n = c->node;

	if (!n)
		return;
	fabric_note(c->fabric, "node %u: gone", n->id);
	direct_gone(c->fabric, c);
	n->conn = NULL;
	c->node = NULL;
	c->ending = true;
}

static void queue_empty(struct conn *c)
{
	while (c->queue)
		frame_remove(c, &c->queue);
}

static void conn_end(struct conn *c)
{
	struct fabric *f = c->fabric;

	direct_unmapped(f, c);
	conn_leave(c);
	conn_unlink(c);
	queue_empty(c);
	loop_unwatch(&f->loop, &c->watch);
	unread_forget(c);
	close(c->watch.fd);
	if (c->memory >= 0)
		close(c->memory);
	free(c);
	listener_resume(&f->loop, &f->adapters);
	listener_resume(&f->loop, &f->controls);
}

/* Let the adapter read the end of file. conn_ready() ends the connection when the adapter does. */
static void conn_begin_end(struct conn *c)
{
	conn_leave(c);
	queue_empty(c);
	shutdown(c->watch.fd, SHUT_WR);
	loop_change(&c->fabric->loop, &c->watch, EPOLLIN);
}

static void conn_end_later(struct later *later)
{
	struct conn *c = container_of(later, struct conn, later);

	if ((c->node || c->ending) && c->attach.direct && !conn_dead(c))
		conn_begin_end(c);
	else
		conn_end(c);
}

void conn_fail(struct conn *c)
{
	c->failing = true;
	loop_later(&c->fabric->loop, &c->later);
}

void conn_close_all(struct fabric *f)
{
	struct conn *c;

	for (c = f->conns; c; c = c->next)
		c->failing = true;	/* no frame about the end of another */
	while (f->conns)
		conn_end(f->conns);
}

static void conn_ready(struct watch *w, uint32_t events)
{
	struct conn *c = container_of(w, struct conn, watch);
	int i;

	if (c->ending) {
		unread_forget(c);
		if (conn_dead(c))
			conn_fail(c);
		return;
	}
	if (events & EPOLLOUT)
		conn_flush(c);
	for (i = 0; i < BATCH && !c->failing; i++)
		if (!(c->node ? receive_frame(c) : attach_frame(c)))
			return;
}

void conn_accept(struct fabric *f, int fd)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c) {
		close(fd);
		return;
	}
	c->watch = (struct watch){.fd = fd, .ready = conn_ready};
	c->later.run = conn_end_later;
	c->fabric = f;
	c->queue_end = &c->queue;
	c->memory = -1;
	c->next = f->conns;
	f->conns = c;
	if (loop_watch(&f->loop, &c->watch, EPOLLIN))
		conn_fail(c);
}
