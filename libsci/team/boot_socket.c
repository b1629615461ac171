// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The rank's end of the socket to its launcher. boot_wire.h describes the protocol. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "libsci/team/boot_private.h"
#include "libsci/team/boot_wire.h"

#define WELCOME_MAX	(sizeof(struct boot_frame) + sizeof(struct boot_welcome) + \
			 SCI_BOOT_RANKS_MAX * sizeof(uint32_t))

struct boot_socket {
	struct sci_boot boot;
	struct boot_stream stream;
	int fd_flags;			/* flags of the descriptor before open */
	bool joined;			/* the launcher counts this rank */
	bool gone;			/* the launcher has ended */
	bool incomplete;		/* a rank has left or died: no gather can complete */
	bool waiting;			/* socket_get() reads the frames */
	unsigned int *dead;		/* deaths; [first_dead] is the first unreported one */
	unsigned int first_dead, ndead;
};

static struct boot_socket *to_socket(const struct sci_boot *boot)
{
	return (struct boot_socket *)boot;
}

/*
 * Find the socket that @value names as FD:INODE, as SCI_BOOT does. A program that the rank starts
 * inherits this variable but not the descriptor: its descriptor FD may be another file.
 */
static int socket_find(const char *value, int *fd)
{
	unsigned long long inode;
	struct stat st;
	char end;

	if (!value || sscanf(value, "%d:%llu%c", fd, &inode, &end) != 2)
		return -ENOENT;
	if (fstat(*fd, &st) || !S_ISSOCK(st.st_mode) || st.st_ino != inode)
		return -ENOENT;
	return 0;
}

/* ---- frames ---- */

static int socket_set_gone(struct boot_socket *s)
{
	s->gone = true;
	return -ECONNRESET;
}

static int socket_send(struct boot_socket *s, enum boot_type type, int arg,
		       const void *payload, size_t len)
{
	const struct boot_frame f = { type, s->boot.info.rank, arg, (uint32_t)len };
	int ret;

	if (s->gone)
		return -ECONNRESET;
	ret = boot_stream_send(&s->stream, &f, payload);
	while (!ret && boot_stream_queued(&s->stream)) {
		ret = boot_wait(&s->boot, s->stream.in, POLLOUT);
		if (!ret)
			ret = boot_stream_flush(&s->stream);
	}
	return ret == -ECONNRESET ? socket_set_gone(s) : ret;
}

/* Record the death of @rank. Each rank dies once, so the array has room. */
static int dead_add(struct boot_socket *s, unsigned int rank)
{
	if (!s->dead)
		return 0;		/* BOOT_WELCOME has not come; it repeats all deaths so far */
	if (s->ndead == s->boot.info.size)
		return -EPROTO;
	s->dead[s->ndead++] = rank;
	s->incomplete = true;
	return 0;
}

/* Return the next frame that is not a DIED or LEFT, or -EAGAIN. Record these notices. */
static int socket_next(struct boot_socket *s, struct boot_frame *f, const void **payload)
{
	int ret;

	while (!(ret = boot_stream_next(&s->stream, f, payload))) {
		if (f->type == BOOT_DIED)
			ret = dead_add(s, (unsigned int)f->arg);
		else if (f->type == BOOT_LEFT)
			s->incomplete = true;
		else
			return 0;
		if (ret)
			return ret;
	}
	return ret == -EPROTO ? socket_set_gone(s) : ret;
}

/* Read the bytes that have arrived. Return -EAGAIN if there are none. */
static int socket_fill(struct boot_socket *s)
{
	int ret = s->gone ? -ECONNRESET : boot_stream_fill(&s->stream);

	return ret == -ECONNRESET ? socket_set_gone(s) : ret;
}

/*
 * Wait for a frame of @type. With @gather, return -ECONNRESET as soon as a gather can no longer
 * complete. Skip frames of other types: they answer an earlier program with this socket.
 */
static int socket_wait(struct boot_socket *s, enum boot_type type, bool gather,
		       struct boot_frame *f, const void **payload)
{
	int ret;

	for (;;) {
		ret = socket_next(s, f, payload);
		if (!ret && f->type == type)
			return 0;
		if (!ret)
			continue;
		if (ret != -EAGAIN)
			return ret;
		if (gather && s->incomplete)
			return -ECONNRESET;
		ret = socket_fill(s);
		if (ret == -EAGAIN)
			ret = boot_wait(&s->boot, s->stream.in, POLLIN);
		if (ret)
			return ret;
	}
}

/* ---- struct boot_ops ---- */

static int socket_gather(struct sci_boot *boot, const void *mine, void *all, size_t len)
{
	struct boot_socket *s = to_socket(boot);
	struct boot_frame f;
	const void *payload;
	int ret;

	if (s->incomplete)
		return -ECONNRESET;
	ret = socket_send(s, BOOT_GATHER, 0, mine, len);
	if (!ret)
		ret = socket_wait(s, BOOT_GATHERED, true, &f, &payload);
	if (ret)
		return ret;
	if (f.arg)
		return f.arg;
	if (f.len != len * boot->info.size)
		return -EPROTO;
	if (len)
		memcpy(all, payload, f.len);
	return 0;
}

static int socket_publish(struct sci_boot *boot, const char *name, const void *value,
			  size_t len)
{
	char payload[SCI_BOOT_NAME_MAX + 1 + SCI_BOOT_VALUE_MAX];
	size_t n = strlen(name) + 1;

	memcpy(payload, name, n);
	if (len)
		memcpy(payload + n, value, len);
	return socket_send(to_socket(boot), BOOT_PUBLISH, 0, payload, n + len);
}

static int socket_get(struct sci_boot *boot, unsigned int rank, const char *name,
		      void *value, size_t *len)
{
	struct boot_socket *s = to_socket(boot);
	struct boot_frame f;
	const void *payload;
	size_t room = *len;
	int ret;

	s->waiting = true;
	ret = socket_send(s, BOOT_GET, (int)rank, name, strlen(name) + 1);
	if (!ret)
		ret = socket_wait(s, BOOT_VALUE, false, &f, &payload);
	s->waiting = false;
	if (ret)
		return ret;
	if (f.arg)
		return f.arg;
	*len = f.len;
	if (f.len > room)
		return -EMSGSIZE;
	if (f.len)
		memcpy(value, payload, f.len);
	return 0;
}

static int socket_fd(const struct sci_boot *boot)
{
	return to_socket(boot)->stream.in;
}

static int socket_died(struct sci_boot *boot, unsigned int *rank)
{
	struct boot_socket *s = to_socket(boot);
	struct boot_frame f;
	const void *payload;
	int ret;

	while (s->first_dead == s->ndead) {
		/* this call would drop the value */
		if (s->waiting)
			return -EAGAIN;
		ret = socket_next(s, &f, &payload);
		if (ret == -EAGAIN && s->first_dead == s->ndead)
			ret = socket_fill(s);
		if (ret && ret != -EAGAIN)
			return ret;
		if (ret == -EAGAIN && s->first_dead == s->ndead)
			return ret;
	}
	*rank = s->dead[s->first_dead++];
	return 0;
}

static bool socket_complete(const struct sci_boot *boot)
{
	return !to_socket(boot)->incomplete;
}

static void socket_abort(struct sci_boot *boot, int status)
{
	/* send status 0 as 256, which the launcher reduces to 0: argument 0 is not valid */
	socket_send(to_socket(boot), BOOT_ABORT, status & 0xff ? status & 0xff : 256, NULL,
		    0);
}

/* Leave the job, but keep the descriptor open: the next sci_boot_open() uses it again. */
static void socket_close(struct sci_boot *boot, bool forked)
{
	struct boot_socket *s = to_socket(boot);

	if (!forked) {
		if (s->joined)
			socket_send(s, BOOT_BYE, 0, NULL, 0);
		fcntl(s->stream.in, F_SETFD, s->fd_flags);
	}
	boot_stream_free(&s->stream);
	free(s->dead);
	free(boot->nodes);
	free(s);
}

static const struct boot_ops socket_ops = {
	.gather = socket_gather,
	.publish = socket_publish,
	.get = socket_get,
	.fd = socket_fd,
	.died = socket_died,
	.complete = socket_complete,
	.abort = socket_abort,
	.close = socket_close,
};

/*
 * Allocate the memory for values and notices in advance: other ranks wait for values. A read begins
 * with less than one frame in the buffer.
 */
static int socket_reserve(struct boot_socket *s)
{
	const size_t most = sizeof(struct boot_frame) + SCI_BOOT_NAME_MAX + 1 + SCI_BOOT_VALUE_MAX;
	int ret = boot_bytes_reserve(&s->stream.output, most);

	ret = ret ? ret : boot_bytes_reserve(&s->stream.input, most + BOOT_READ_SIZE);
	s->dead = malloc(s->boot.info.size * sizeof(*s->dead));
	return s->dead ? ret : -ENOMEM;
}

static int socket_welcome(struct boot_socket *s)
{
	struct sci_boot_info *info = &s->boot.info;
	const struct boot_welcome *w;
	struct boot_frame f;
	const void *payload;
	int ret;

	/* no WELCOME stays unread for lack of memory: the next join would take it for its own */
	ret = boot_bytes_reserve(&s->stream.input, WELCOME_MAX + BOOT_READ_SIZE);
	if (!ret)
		ret = socket_send(s, BOOT_HELLO, BOOT_VERSION, NULL, 0);
	if (!ret)
		ret = socket_wait(s, BOOT_WELCOME, false, &f, &payload);
	if (ret)
		return ret;
	w = payload;
	s->joined = !f.arg;
	if (f.arg || f.len < sizeof(*w) || w->size > SCI_BOOT_RANKS_MAX ||
	    f.len != sizeof(*w) + w->size * sizeof(w->nodes[0]) || w->rank >= w->size)
		return -EPROTO;
	info->rank = w->rank;
	info->size = w->size;
	info->local_rank = w->local_rank;
	info->local_size = w->local_size;
	info->job = w->job;
	memcpy(info->key, w->key, sizeof(info->key));
	s->boot.nodes = malloc(w->size * sizeof(w->nodes[0]));
	if (!s->boot.nodes)
		return -ENOMEM;
	memcpy(s->boot.nodes, w->nodes, w->size * sizeof(w->nodes[0]));
	ret = socket_reserve(s);
	if (ret)
		return ret;
	/* earlier notices were for an earlier program with this socket */
	s->incomplete = false;
	s->first_dead = s->ndead = 0;
	return 0;
}

int boot_socket_open(struct sci_boot **boot, const char *value)
{
	struct boot_socket *s;
	int fd, ret;

	ret = socket_find(value, &fd);
	if (ret)
		return ret;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->boot.ops = &socket_ops;
	s->stream.in = s->stream.out = fd;
	s->fd_flags = fcntl(fd, F_GETFD);
	/* programs that this process starts must not act as the rank */
	fcntl(fd, F_SETFD, s->fd_flags | FD_CLOEXEC);
	ret = socket_welcome(s);
	if (ret) {
		socket_close(&s->boot, false);
		return ret;
	}
	*boot = &s->boot;
	return 0;
}
