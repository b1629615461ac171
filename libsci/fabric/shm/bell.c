// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The triggers of a plain interrupt: messages of its importers. See interrupt.c. */

#include "libsci/fabric/shm/interrupt.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RING_BATCH	16		/* triggers taken in one system call */
/* triggers taken from one importer before the next importer has its turn */
#define RING_MAX	64u
#define RING_ROUNDS	64u

static bool msg_is(const struct shm_msg *msg, size_t len, enum shm_type type)
{
	return len == sizeof(*msg) && msg->magic == SHM_MAGIC && msg->type == type;
}

/*
 * RING_BYE: the importer ended in good order; RING_LOST: it died, or sent an invalid message;
 * RING_MERGE: the connection of the pair's import replaces this one
 */
enum ring_state { RING_OPEN, RING_BYE, RING_LOST, RING_MERGE };

/* Handle a message that is no trigger. */
static enum ring_state ring_message(struct shm_conn *conn, const struct shm_msg *msg, size_t len)
{
	if (msg_is(msg, len, SHM_BYE))
		return RING_BYE;
	if (msg_is(msg, len, SHM_MERGE))
		return RING_MERGE;
	/* after the merge the peer also sends messages about the segment that it owns */
	if (!conn->pair || !conn->pair->merged ||
	    !(msg_is(msg, len, SHM_NOTIFY) || msg_is(msg, len, SHM_CUT)))
		return RING_LOST;
	return shm_rseg_owner_message(conn->pair, msg->type) ? RING_OPEN : RING_BYE;
}

/* Read the triggers of one importer. Set *@rung if there were any. */
static enum ring_state ring_read(struct shm_conn *conn, bool *rung)
{
	struct mmsghdr mm[RING_BATCH];
	struct shm_msg msg[RING_BATCH];
	struct iovec iov[RING_BATCH];
	unsigned int total;
	int n, k;

	memset(mm, 0, sizeof(mm));
	for (k = 0; k < RING_BATCH; k++) {
		iov[k] = (struct iovec) { &msg[k], sizeof(msg[k]) };
		mm[k].msg_hdr.msg_iov = &iov[k];
		mm[k].msg_hdr.msg_iovlen = 1;
	}
	for (total = 0; total < RING_MAX; total += RING_BATCH) {
		/* the kernel reports a reset once, before earlier messages of the importer */
		do {
			n = recvmmsg(conn->fd, mm, RING_BATCH, MSG_DONTWAIT, NULL);
		} while (n < 0 && (errno == EINTR || errno == ECONNRESET));
		if (n < 0)
			return errno == EAGAIN ? RING_OPEN : RING_LOST;
		for (k = 0; k < n; k++) {
			enum ring_state state = RING_OPEN;

			if (msg_is(&msg[k], mm[k].msg_len, SHM_TRIGGER))
				*rung = true;
			else
				state = ring_message(conn, &msg[k], mm[k].msg_len);
			if (state != RING_OPEN)
				return state;
		}
		if (n < RING_BATCH)
			break;
	}
	return RING_OPEN;
}

/* Report a trigger of an importer to the segment, and store it in the eventfd for the waiters. */
void shm_bell_keep(struct shm_conn *conn)
{
	uint64_t one = 1;
	ssize_t n;

	shm_lseg_rang(conn);
	n = write(conn->bell->eventfd, &one, sizeof(one));
	(void)n;	/* if the write fails, the eventfd is full, hence readable */
}

/* Read all messages of an importer, and store its triggers in the eventfd for the waiters. */
static enum ring_state ring_drain(struct shm_conn *conn)
{
	unsigned int rounds = RING_ROUNDS;
	enum ring_state state;
	bool rung = false, more;

	do {
		more = false;
		state = ring_read(conn, &more);
		rung |= more;
	} while (state == RING_OPEN && more && --rounds);
	if (rung)
		shm_bell_keep(conn);
	return state;
}

static void ring_end(struct shm_conn *conn, enum ring_state state)
{
	const struct shm_msg bye = { .type = SHM_BYE };

	if (state == RING_MERGE && shm_pair_merged(conn))
		return;
	/* this process has ended the import of the pair, or the peer has lied */
	if (state == RING_MERGE)
		shm_send(conn->fd, &bye, NULL, 0);
	shm_conn_gone(conn, state != RING_LOST);
}

/* Remove an importer that has ended. Its earlier triggers stay. */
static void ring_handle_hang_up(void *obj)
{
	enum ring_state state = ring_drain(obj);

	ring_end(obj, state == RING_OPEN ? RING_LOST : state);
}

/* Read the messages that an importer has sent before now. Context: svc.lock is held. */
void shm_bell_drain(struct shm_conn *conn)
{
	enum ring_state state = ring_drain(conn);

	if (state != RING_OPEN)
		ring_end(conn, state);
}

/* Let the waiters receive the messages of a socket. */
int shm_bell_add(struct sci_lintr *i, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(i->epfd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

void shm_bell_remove(struct sci_lintr *i, int fd)
{
	epoll_ctl(i->epfd, EPOLL_CTL_DEL, fd, NULL);
}

/* Add an importer to the epoll of the waiters when it connects. Context: svc.lock is held. */
int shm_bell_listen(struct sci_lintr *i, struct shm_conn *conn)
{
	struct sci_service *svc = &i->shm->svc;
	int ret;

	sci_unwatch(svc, conn->fd);
	ret = shm_bell_add(i, conn->fd);
	if (ret)
		return ret;
	conn->bell = i;
	return sci_watch(svc, conn->fd, EPOLLRDHUP, ring_handle_hang_up, conn);
}

void shm_bell_leave(struct shm_conn *conn)
{
	shm_bell_remove(conn->bell, conn->fd);
}

/*
 * Return the importer of a descriptor that was readable before the lock was taken; NULL:
 * the importer has ended meanwhile.
 */
static struct shm_conn *ring_conn(struct sci_lintr *i, int fd)
{
	const struct sci_watch *w = &i->shm->svc.fds[fd];
	struct shm_conn *conn = w->fn == ring_handle_hang_up ? w->obj : NULL;

	return conn && conn->bell == i ? conn : NULL;
}

/* Return the import that receives triggers on a descriptor, or NULL. */
static struct sci_rseg *ring_import(struct sci_lintr *i, int fd)
{
	const struct sci_watch *w = &i->shm->svc.fds[fd];
	struct sci_rseg *r = w->fn == shm_rseg_input ? w->obj : NULL;

	return r && r->pair && r->pair->bell == i ? r : NULL;
}

static bool ring_take(struct sci_lintr *i, const struct epoll_event *ev, int n)
{
	struct sci_rseg *import;
	enum ring_state state;
	struct shm_conn *conn;
	bool rung = false;
	uint64_t count;
	int k;

	for (k = 0; k < n; k++) {
		bool more = false;

		if (ev[k].data.fd == i->eventfd) {
			rung |= read(i->eventfd, &count, sizeof(count)) ==
				sizeof(count);
			continue;
		}
		import = ring_import(i, ev[k].data.fd);
		conn = import ? import->pair : ring_conn(i, ev[k].data.fd);
		state = RING_OPEN;
		if (import)
			more = shm_rseg_read(import);
		else if (conn)
			state = ring_read(conn, &more);
		if (more)
			shm_lseg_rang(conn);
		rung |= more;
		if (state != RING_OPEN)
			ring_end(conn, state);
	}
	return rung;
}

/*
 * Take all triggers, beginning with the events in @ev. Context: svc.lock is held.
 *
 * The service thread may have handled the end of an importer since the events were read. Then its
 * trigger is in the eventfd now: look again if the events had none.
 */
bool shm_bell_take(struct sci_lintr *i, struct epoll_event *ev, int n)
{
	unsigned int rounds = RING_ROUNDS;
	bool rung = ring_take(i, ev, n);

	while ((n == SHM_BELL_EVENTS || (n > 0 && !rung)) && --rounds) {
		n = epoll_wait(i->epfd, ev, SHM_BELL_EVENTS, 0);
		rung |= ring_take(i, ev, n);
	}
	return rung;
}

bool shm_bell_input(struct sci_lintr *i)
{
	struct epoll_event ev[SHM_BELL_EVENTS];
	int n = epoll_wait(i->epfd, ev, SHM_BELL_EVENTS, 0);

	return shm_bell_take(i, ev, n);
}
