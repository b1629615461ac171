// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Imported interrupts, and triggers of them. See interrupt.c. */

#include "libsci/fabric/shm/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct sci_rintr {
	struct shm *shm;
	unsigned int node;
	uint32_t number;
	bool data;
	bool shared;
	unsigned int rejoining;		/* attempts made to find another owner */
	int conn;
	int eventfd;
	_Atomic bool gone;
};

/* Check that the peer's descriptor is an eventfd, and let a full one refuse a trigger. */
static int eventfd_check(int fd)
{
	static const char want[] = "anon_inode:[eventfd]";
	char path[32], is[sizeof(want)];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (readlink(path, is, sizeof(is)) != sizeof(want) - 1 ||
	    memcmp(is, want, sizeof(want) - 1))
		return -EPROTO;
	return fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK) ? -errno : 0;
}

static void rintr_input(void *obj);

static void rintr_name(struct sci_rintr *i, char *name)
{
	shm_name(i->shm, name, i->data ? SHM_DATA_INTR : SHM_INTR, i->node,
		 i->number);
}

/*
 * Connect to another owner of a shared number, after the owner that answered the connect has
 * ended. Context: the service thread. rintr_input() receives the answer.
 */
static bool shm_intr_rejoin(struct sci_rintr *i)
{
	const struct shm_msg msg = { .type = SHM_CONNECT,
				     .node = i->shm->node };
	struct shm *shm = i->shm;
	char name[SHM_NAME_MAX];
	int sock;

	if (!i->shared || i->rejoining == SHM_REJOINS)
		return false;
	rintr_name(i, name);
	if (shm_dial_locked(shm, name, &sock))
		return false;
	if (!shm_owner_admit(shm, sock) || shm_send(sock, &msg, NULL, 0) ||
	    sci_watch(&shm->svc, sock, EPOLLIN, rintr_input, i)) {
		sci_fd_close(&shm->svc, sock);
		return false;
	}
	i->conn = sock;
	i->rejoining++;
	return true;
}

static void rintr_input(void *obj)
{
	struct sci_rintr *i = obj;
	struct shm *shm = i->shm;
	struct shm_msg msg;
	int fd = -1, n_fds = 1, ret;

	ret = shm_recv(shm, i->conn, &msg, &fd, &n_fds);
	if (ret == -EAGAIN)
		return;
	if (!ret && i->rejoining && msg.type == SHM_REPLY && !msg.status &&
	    n_fds == 1 && !eventfd_check(fd)) {
		/* Replace the eventfd in one step. It changes only if all owners are new. */
		dup3(fd, i->eventfd, O_CLOEXEC);
		sci_fd_close(&shm->svc, fd);
		i->rejoining = 0;
		return;
	}
	if (n_fds == 1)
		sci_fd_close(&shm->svc, fd);
	/* Any other message ends the connection: owners send only SHM_BYE. */
	sci_unwatch(&shm->svc, i->conn);
	if (i->shared) {
		sci_fd_close(&shm->svc, i->conn);
		i->conn = -1;
	}
	if (!shm_intr_rejoin(i))
		atomic_store(&i->gone, true);
}

int shm_rintr_connect(struct sci_fabric *f, const struct sci_rintr_param *p,
		      struct sci_rintr **out)
{
	struct shm *shm = container_of(f, struct shm, base);
	struct shm_msg msg = { .type = SHM_CONNECT };
	char name[SHM_NAME_MAX];
	int n_fds = 1, ret;
	struct sci_rintr *i;
	bool messages;

	if (sci_link_down(&shm->link) && p->node != shm->node)
		return -ENETDOWN;
	i = calloc(1, sizeof(*i));
	if (!i)
		return -ENOMEM;
	i->shm = shm;
	i->node = p->node;
	i->number = p->number;
	i->data = p->data;
	i->conn = -1;
	i->eventfd = -1;
	*out = i;
	rintr_name(i, name);
	ret = shm_call(shm, name, &msg, &i->eventfd, &n_fds,
		       shm_deadline(p->timeout), p->owner, &i->conn);
	messages = p->data || msg.flags & SHM_F_RINGS;
	if (!ret)
		ret = n_fds != !messages ? -EPROTO :
		      messages ? 0 : eventfd_check(i->eventfd);
	if (!ret) {
		i->shared = !messages && msg.flags & SHM_F_SHARED;
		pthread_mutex_lock(&shm->svc.lock);
		ret = sci_watch(&shm->svc, i->conn, EPOLLIN, rintr_input, i);
		pthread_mutex_unlock(&shm->svc.lock);
	}
	if (ret) {
		*out = NULL;
		shm_rintr_disconnect(i);
		return ret == -ENOENT && !shm_node_exists(shm, p->node) ?
		       -EHOSTUNREACH : ret;
	}
	return 0;
}

static int intr_send_data(struct sci_rintr *i, const void *data, size_t len)
{
	struct shm_msg head = { .magic = SHM_MAGIC, .type = SHM_DATA,
				.node = i->shm->node };
	struct iovec iov[2] = {
		{ &head, sizeof(head) },
		{ (void *)(uintptr_t)data, len },
	};
	struct msghdr mh = { .msg_iov = iov, .msg_iovlen = 2 };

	if (len > SCI_DATA_INTR_MAX)
		return -EMSGSIZE;
	if (atomic_load(&i->gone))
		return -ENOTCONN;
	for (;;) {
		if (sendmsg(i->conn, &mh, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
			return 0;
		if (errno == EAGAIN)
			return -ENOBUFS;
		if (errno != EINTR)
			return errno == EPIPE || errno == ECONNRESET ?
			       -ENOTCONN : -errno;
	}
}

int shm_trigger_send(struct shm *shm, int sock)
{
	const struct shm_msg msg = { .type = SHM_TRIGGER, .node = shm->node };
	int ret = shm_send(sock, &msg, NULL, 0);

	/* EAGAIN: the socket is full of triggers, and the owner will receive one of them */
	return ret == -EAGAIN ? 0 : ret == -EPIPE ? -ENOTCONN : ret;
}

/*
 * Return whether the eventfd takes a trigger without blocking. Its owner shares the file flags, and
 * may clear O_NONBLOCK after eventfd_check().
 */
static bool eventfd_has_room(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };
	int ret;

	do {
		ret = poll(&pfd, 1, 0);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 || pfd.revents & (POLLOUT | POLLNVAL);
}

int shm_rintr_trigger(struct sci_rintr *i, const void *data, size_t len)
{
	uint64_t one = 1;

	if (sci_link_down(&i->shm->link) && i->node != i->shm->node)
		return -ENETDOWN;
	if (i->data)
		return intr_send_data(i, data, len);
	if (atomic_load(&i->gone))
		return -ENOTCONN;
	if (i->eventfd < 0)
		return shm_trigger_send(i->shm, i->conn);
	/* a full eventfd has latched 2^64 - 2 triggers, and one more makes no difference */
	while (eventfd_has_room(i->eventfd) && write(i->eventfd, &one, sizeof(one)) < 0) {
		if (errno != EINTR)
			return errno == EAGAIN ? 0 : -errno;
	}
	return 0;
}

void shm_rintr_disconnect(struct sci_rintr *i)
{
	const struct shm_msg bye = { .type = SHM_BYE };
	struct shm *shm = i->shm;

	pthread_mutex_lock(&shm->svc.lock);
	if (i->conn >= 0)
		shm_send(i->conn, &bye, NULL, 0);
	sci_fd_close(&shm->svc, i->conn);
	sci_fd_close(&shm->svc, i->eventfd);
	pthread_mutex_unlock(&shm->svc.lock);
	free(i);
}
