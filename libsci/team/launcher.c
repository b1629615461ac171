// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* A launcher in the program itself: a thread that serves processes which the program starts. */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsci/base/attr.h"
#include "libsci/base/thread.h"
#include "libsci/team/boot_server.h"
#include "libsci/team/team.h"

#define PAUSE_MS	10		/* between rounds of poll() of single descriptors */

enum ended { RUNS, EXITED, FAILED };

/* A process that the launcher serves. */
struct served {
	struct boot_stream stream;	/* in is -1 after the end of the process */
	int ours, theirs;		/* open until the launcher closes; -1: not made */
	_Atomic int ended;		/* enum ended, by sci_team_launcher_ended() */
	char boot[32];
};

struct sci_team_launcher {
	struct boot_server *server;
	struct sci_team_launcher_attr attr;
	struct pollfd *polled;		/* one for each process, and @stop */
	int stop;			/* eventfd; -1: none */
	bool runs;
	pthread_t thread;
	struct served served[];
};

static void served_end(struct served *s)
{
	boot_stream_free(&s->stream);
	s->stream.in = s->stream.out = -1;
	shutdown(s->ours, SHUT_RDWR);
}

static void served_close(struct served *s)
{
	boot_stream_free(&s->stream);
	if (s->ours >= 0)
		close(s->ours);
	if (s->theirs >= 0)
		close(s->theirs);
	s->ours = s->theirs = -1;
}

static void launcher_send(void *arg, const struct boot_frame *f, const void *payload)
{
	struct sci_team_launcher *l = arg;

	for (uint32_t i = 0; i < l->attr.processes; i++)
		if ((f->rank == i || f->rank == BOOT_ALL) && l->served[i].stream.out >= 0)
			boot_stream_send(&l->served[i].stream, f, payload);
}

/* Handle all frames that @rank has sent. Return 0, or an error that ends the stream. */
static int served_handle_frames(struct sci_team_launcher *l, uint32_t rank)
{
	struct boot_stream *s = &l->served[rank].stream;
	int ret = boot_stream_fill(s);
	const void *payload;
	struct boot_frame f;

	while (!ret) {
		ret = boot_stream_next(s, &f, &payload);
		if (ret)
			break;
		f.rank = rank;
		ret = boot_server_frame(l->server, &f, payload);
		if (ret > 0) {
			if (l->attr.abort)
				l->attr.abort(l->attr.arg, (int)rank, ret & 0xff);
			return -ECONNABORTED;
		}
	}
	return ret == -EAGAIN ? 0 : ret;
}

static void served_handle_input(struct sci_team_launcher *l, uint32_t rank)
{
	struct served *s = &l->served[rank];

	if (!served_handle_frames(l, rank))
		return;
	served_end(s);
	boot_server_ended(l->server, rank, atomic_load(&s->ended) != EXITED);
}

/*
 * Wait for events. The kernel may have no memory to poll many descriptors. Polling one descriptor
 * needs no memory: then poll each one by itself, and pause after a round without events.
 */
static void launcher_poll(struct sci_team_launcher *l, nfds_t n)
{
	int events = 0;

	if (poll(l->polled, n, -1) >= 0 || errno != ENOMEM)
		return;
	for (nfds_t i = 0; i < n; i++)
		if (poll(&l->polled[i], 1, i + 1 < n || events ? 0 : PAUSE_MS) > 0)
			events++;
}

static void *launcher_main(void *arg)
{
	struct sci_team_launcher *l = arg;
	uint32_t n = l->attr.processes;

	for (;;) {
		for (uint32_t i = 0; i < n; i++) {
			struct boot_stream *s = &l->served[i].stream;

			l->polled[i] = (struct pollfd){ .fd = s->in, .events = POLLIN };
			if (boot_stream_queued(s))
				l->polled[i].events |= POLLOUT;
		}
		l->polled[n] = (struct pollfd){ .fd = l->stop, .events = POLLIN };
		launcher_poll(l, n + 1);
		if (l->polled[n].revents)
			return NULL;
		for (uint32_t i = 0; i < n; i++) {
			if (l->polled[i].revents & POLLOUT)
				boot_stream_flush(&l->served[i].stream);
			if (l->polled[i].revents & ~POLLOUT)
				served_handle_input(l, i);
		}
	}
}

/* ---- open and close ---- */

static int served_open(struct served *s)
{
	struct stat st;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		return -errno;
	s->stream.in = s->stream.out = s->ours = fds[0];
	s->theirs = fds[1];
	if (fstat(s->theirs, &st))
		return -errno;
	snprintf(s->boot, sizeof(s->boot), "%d:%llu", s->theirs, (unsigned long long)st.st_ino);
	return 0;
}

static int server_open(struct sci_team_launcher *l)
{
	struct boot_place *places = calloc(l->attr.processes, sizeof(*places));
	int ret;

	if (!places)
		return -ENOMEM;
	for (uint32_t i = 0; l->attr.nodes && i < l->attr.processes; i++)
		places[i].node = l->attr.nodes[i];
	ret = boot_server_create(&l->server, places, l->attr.processes, launcher_send, l);
	free(places);
	return ret;
}

static int launcher_start(struct sci_team_launcher *l)
{
	int ret = server_open(l);

	for (uint32_t i = 0; !ret && i < l->attr.processes; i++)
		ret = served_open(&l->served[i]);
	if (ret)
		return ret;
	l->polled = calloc((size_t)l->attr.processes + 1, sizeof(*l->polled));
	if (!l->polled)
		return -ENOMEM;
	l->stop = eventfd(0, EFD_CLOEXEC);
	if (l->stop < 0)
		return -errno;
	ret = sci_thread_start(&l->thread, launcher_main, l, "sci-launcher");
	l->runs = !ret;
	return ret;
}

int sci_team_launcher_open(struct sci_team_launcher **out,
			   const struct sci_team_launcher_attr *from)
{
	struct sci_team_launcher_attr attr = { 0 };
	struct sci_team_launcher *l;
	int ret = out && from ? attr_copy(&attr, sizeof(attr), from, sizeof(attr)) : -EINVAL;

	if (!ret && (!attr.processes || attr.processes > SCI_BOOT_RANKS_MAX || attr.reserved))
		ret = -EINVAL;
	if (ret)
		return ret;
	l = calloc(1, sizeof(*l) + attr.processes * sizeof(l->served[0]));
	if (!l)
		return -ENOMEM;
	l->attr = attr;
	l->stop = -1;
	for (uint32_t i = 0; i < attr.processes; i++)
		l->served[i].ours = l->served[i].theirs = -1;
	ret = launcher_start(l);
	l->attr.nodes = NULL;		/* the caller's array is valid only during this call */
	if (ret) {
		sci_team_launcher_close(l);
		return ret;
	}
	*out = l;
	return 0;
}

void sci_team_launcher_close(struct sci_team_launcher *l)
{
	const uint64_t one = 1;

	if (!l)
		return;
	if (l->runs) {
		while (write(l->stop, &one, sizeof(one)) < 0)
			;
		pthread_join(l->thread, NULL);
	}
	for (uint32_t i = 0; i < l->attr.processes; i++)
		served_close(&l->served[i]);
	boot_server_destroy(l->server);
	if (l->stop >= 0)
		close(l->stop);
	free(l->polled);
	free(l);
}

/* ---- processes ---- */

static struct served *served_get(struct sci_team_launcher *l, int rank)
{
	return l && rank >= 0 && (uint32_t)rank < l->attr.processes ? &l->served[rank] : NULL;
}

const char *sci_team_launcher_boot(struct sci_team_launcher *l, int rank)
{
	const struct served *s = served_get(l, rank);

	return s ? s->boot : NULL;
}

int sci_team_launcher_fd(struct sci_team_launcher *l, int rank)
{
	const struct served *s = served_get(l, rank);

	return s ? s->theirs : -EINVAL;
}

int sci_team_launcher_child(struct sci_team_launcher *l, int rank)
{
	struct served *s = served_get(l, rank);

	if (!s)
		return -EINVAL;
	for (uint32_t i = 0; i < l->attr.processes; i++) {
		close(l->served[i].ours);
		if (&l->served[i] != s)
			close(l->served[i].theirs);
	}
	close(l->stop);
	return 0;
}

int sci_team_launcher_ended(struct sci_team_launcher *l, int rank, int failed)
{
	struct served *s = served_get(l, rank);
	int runs = RUNS;

	if (!s || !atomic_compare_exchange_strong(&s->ended, &runs, failed ? FAILED : EXITED))
		return -EINVAL;
	/* the launcher's thread reads the last frames of the process, and then end of file */
	shutdown(s->theirs, SHUT_RDWR);
	return 0;
}
