// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Listening on the first free address of SCI_NET. */

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "libsci/fabric/net/net.h"

#define LOCK_TRIES	100u		/* a millisecond apart */

static void listener_ready(void *obj)
{
	struct net *net = obj;
	int one = 1, fd;

	do {
		fd = accept4(net->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	} while (fd < 0 && errno == EMFILE && !sci_raise_fd_limit());
	if (fd < 0) {
		/* no descriptor is free: the connection waits in the kernel's queue */
		net->svc.starved |= errno == EMFILE || errno == ENFILE || errno == ENOMEM;
		return;
	}
	if (net->listen.sa.ss_family == AF_INET || net->listen.sa.ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	net_accept(net, fd, NULL);
}

/* Return the path of a socket; NULL: the address is not a path. */
static const char *addr_path(const struct net_addr *a)
{
	const struct sockaddr_un *un = (const struct sockaddr_un *)&a->sa;

	return un->sun_family == AF_UNIX && un->sun_path[0] ? un->sun_path : NULL;
}

/* Lock the directory of a path. Return a descriptor, whose close() unlocks it; -1: not locked. */
static int directory_lock(const char *path)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path) + 2];
	int fd;

	snprintf(dir, sizeof(dir), "%s%s", strchr(path, '/') ? "" : "./", path);
	strrchr(dir, '/')[1] = '\0';
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (unsigned int i = 0; fd >= 0 && i < LOCK_TRIES; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return fd;
		nanosleep(&ms, NULL);
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

/*
 * Remove the socket's path if a dead process has left it. Return true if the path is free now: its
 * process may also have removed it.
 */
static bool path_remove_stale(const struct net_addr *a)
{
	int fd = net_socket_open(AF_UNIX), error;

	if (fd < 0)
		return false;
	error = connect(fd, (const struct sockaddr *)&a->sa, a->len) ? errno : 0;
	close(fd);
	if (error == ECONNREFUSED)
		error = unlink(addr_path(a)) ? errno : ENOENT;
	return error == ENOENT;
}

/* Bind a socket. @lock: the lock of the path's directory, or -1 */
static int socket_bind(int fd, const struct net_addr *a, int lock)
{
	const struct sockaddr *sa = (const struct sockaddr *)&a->sa;

	if (!bind(fd, sa, a->len))
		return 0;
	if (errno != EADDRINUSE)
		return -errno;
	if (lock < 0 || !path_remove_stale(a))
		return -EADDRINUSE;
	return bind(fd, sa, a->len) ? -errno : 0;
}

/*
 * Bind a socket, and listen. A path whose socket does not listen yet looks like that of a dead
 * process: remove such a path only under the lock, under which other processes bind and listen.
 */
static int socket_listen(int fd, const struct net_addr *a)
{
	const char *path = addr_path(a);
	int lock = path ? directory_lock(path) : -1;
	int ret = socket_bind(fd, a, lock);

	if (!ret && listen(fd, SOMAXCONN))
		ret = -errno;
	if (lock >= 0)
		close(lock);
	return ret;
}

static int listener_open_at(struct net *net, const struct net_addr *a)
{
	int one = 1, fd = net_socket_open(a->sa.ss_family), ret;

	if (fd < 0)
		return fd;
	if (a->sa.ss_family != AF_UNIX)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	ret = socket_listen(fd, a);
	if (ret)
		close(fd);
	else
		ret = sci_fd_track(&net->svc, fd);
	if (ret)
		return ret;
	net->listen_fd = fd;
	net->listen = *a;
	net->port = net_addr_port(a);
	net->slot = a->slot;
	return sci_watch(&net->svc, fd, EPOLLIN, listener_ready, net);
}

/* Listen on the first free address of SCI_NET. */
int net_listen(struct net *net)
{
	int ret = -EADDRINUSE;
	struct net_addr a;

	for (unsigned int i = 0; ret == -EADDRINUSE &&
				 net_addr_slot(&net->listen, i, &a); i++)
		ret = listener_open_at(net, &a);
	return ret;
}

void net_listen_end(struct net *net)
{
	const char *path = addr_path(&net->listen);

	if (net->listen_fd && path)
		unlink(path);
}
