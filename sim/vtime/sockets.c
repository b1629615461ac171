// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: sockets of the library in virtual time
 *
 * The library's net fabric, libsci/fabric/net, runs unchanged. The linker sends its system calls to
 * this file (VTIME_WRAP in the Makefile). While a program of a simulation runs, a socket is an end of
 * a modelled connection. The descriptor is a real socket that is not connected: its number
 * identifies the modelled socket.
 *
 * No thread starts. A waiting program does the work of the net's service thread: it calls the watch
 * functions of the descriptors that are ready. The net's timers never expire, as no wire breaks and
 * a waiting program polls.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

#include "libsci/fabric/core/service.h"
#include "sim/vtime/internal.h"
#include "sim/vtime/tcp.h"

#define SOCKETS		1024u		/* descriptors have smaller numbers */
#define PENDING		8u

struct vt_socket {
	struct vt_node *node;		/* NULL: no modelled socket */
	struct sockaddr_storage addr;	/* of a socket that listens */
	socklen_t len;
	struct vt_tcp *pending[PENDING];
	unsigned int n_pending;
	struct vt_tcp *end;		/* of a connected socket */
};

static struct vt_socket sockets[SOCKETS];

/* Return the modelled socket of a descriptor of the running program; NULL: it has none. */
static struct vt_socket *socket_find(int fd)
{
	return vt_current() && fd >= 0 && (unsigned int)fd < SOCKETS &&
	       sockets[fd].node == vt_current() ? &sockets[fd] : NULL;
}

/* Begin to use a descriptor as a modelled socket. Return NULL and set errno on failure. */
static struct vt_socket *socket_make(int fd, struct vt_tcp *end)
{
	if (fd < 0 || (unsigned int)fd >= SOCKETS) {
		errno = EMFILE;
		return NULL;
	}
	sockets[fd] = (struct vt_socket){ .node = vt_current(), .end = end };
	return &sockets[fd];
}

static struct vt_socket *socket_at(const struct sockaddr *addr, socklen_t len)
{
	for (unsigned int i = 0; i < SOCKETS; i++)
		if (sockets[i].node && sockets[i].len == len &&
		    !memcmp(&sockets[i].addr, addr, len))
			return &sockets[i];
	return NULL;
}

void sockets_forget(const struct vt_sim *s)
{
	for (unsigned int i = 0; i < SOCKETS; i++)
		if (sockets[i].node && sockets[i].node->sim == s)
			sockets[i] = (struct vt_socket){ 0 };
}

/* ---- system calls ---- */

int __real_bind(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_bind(int fd, const struct sockaddr *addr, socklen_t len);
int __real_listen(int fd, int backlog);
int __wrap_listen(int fd, int backlog);
int __real_connect(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len);
int __real_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);
ssize_t __real_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __real_recvmsg(int fd, struct msghdr *m, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags);
int __real_close(int fd);
int __wrap_close(int fd);

int __wrap_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct vt_socket *s;

	if (!vt_current())
		return __real_bind(fd, addr, len);
	errno = EADDRINUSE;
	s = socket_at(addr, len) ? NULL : socket_make(fd, NULL);
	if (!s)
		return -1;
	memcpy(&s->addr, addr, len);
	s->len = len;
	return 0;
}

int __wrap_listen(int fd, int backlog)
{
	return vt_current() ? 0 : __real_listen(fd, backlog);
}

/* Connect at once, as no figure depends on the time of a connect. */
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct vt_socket *to;
	struct vt_tcp *end, *other;

	if (!vt_current())
		return __real_connect(fd, addr, len);
	to = socket_at(addr, len);
	errno = ECONNREFUSED;
	if (!to || to->n_pending == PENDING)
		return -1;
	end = vt_tcp_pair(vt_current(), to->node, &other);
	if (!socket_make(fd, end))
		return -1;
	to->pending[to->n_pending++] = other;
	vt_touch(to->node);
	errno = EINPROGRESS;
	return -1;
}

int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	struct vt_socket *s = socket_find(fd);
	int new;

	if (!s)
		return __real_accept4(fd, addr, len, flags);
	errno = EAGAIN;
	if (!s->n_pending)
		return -1;
	new = socket(s->addr.ss_family, SOCK_STREAM | flags, 0);
	if (!socket_make(new, s->pending[0]))
		return -1;
	memmove(s->pending, s->pending + 1, --s->n_pending * sizeof(*s->pending));
	return new;
}

static ssize_t result(ssize_t n)
{
	if (n >= 0)
		return n;
	errno = (int)-n;
	return -1;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
	struct vt_socket *s = socket_find(fd);

	return s ? result(vt_tcp_send(s->end, m->msg_iov, m->msg_iovlen)) :
		   __real_sendmsg(fd, m, flags);
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags)
{
	struct vt_socket *s = socket_find(fd);

	return s ? result(vt_tcp_recv(s->end, m->msg_iov, m->msg_iovlen)) :
		   __real_recvmsg(fd, m, flags);
}

int __wrap_close(int fd)
{
	struct vt_socket *s = socket_find(fd);

	if (s) {
		if (s->end)
			vt_tcp_close(s->end);
		while (s->n_pending)
			vt_tcp_close(s->pending[--s->n_pending]);
		*s = (struct vt_socket){ 0 };
	}
	return __real_close(fd);
}

/* ---- clocks, threads and waits ---- */

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
int __real_pthread_setname_np(pthread_t thread, const char *name);
int __wrap_pthread_setname_np(pthread_t thread, const char *name);
int __real_pthread_join(pthread_t thread, void **ret);
int __wrap_pthread_join(pthread_t thread, void **ret);
int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  const struct timespec *until);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	uint64_t ns;

	if (!vt_current())
		return __real_clock_gettime(clock, ts);
	ns = vt_clock(vt_current()) / VT_NS;
	*ts = (struct timespec){ (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
	return 0;
}

/* Start no thread: the only thread that the library starts in a simulation is that of a service. */
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg)
{
	if (!vt_current())
		return __real_pthread_create(thread, attr, run, arg);
	*thread = pthread_self();
	vt_current()->service = arg;
	return 0;
}

int __wrap_pthread_setname_np(pthread_t thread, const char *name)
{
	return vt_current() ? 0 : __real_pthread_setname_np(thread, name);
}

int __wrap_pthread_join(pthread_t thread, void **ret)
{
	if (!vt_current())
		return __real_pthread_join(thread, ret);
	vt_current()->service = NULL;
	return 0;
}

static bool socket_is_ready(int fd, uint32_t events)
{
	const struct vt_socket *s = socket_find(fd);

	if (!s || !s->end)
		return s && s->n_pending;
	return (events & EPOLLIN && vt_tcp_readable(s->end)) ||
	       (events & EPOLLOUT && vt_tcp_writable(s->end));
}

/* Call the watch functions. @paused: also those that are paused, because a program polls. */
static bool sockets_serve(struct vt_node *n, bool paused)
{
	struct sci_service *svc = n->service;
	bool any = false;

	if (!svc)
		return false;
	pthread_mutex_lock(&svc->lock);
	for (size_t fd = 0; fd < svc->n_fds; fd++) {
		const struct sci_watch *w = &svc->fds[fd];

		if (!w->fn || (w->paused && !paused) || !socket_is_ready((int)fd, w->events))
			continue;
		any = true;
		w->fn(w->obj);
	}
	pthread_mutex_unlock(&svc->lock);
	return any;
}

bool vt_sockets_serve(struct vt_node *n)
{
	return sockets_serve(n, false);
}

/* Wait for an event, until @until at the latest; see pthread_cond_timedwait(). */
static int program_wait(pthread_mutex_t *lock, uint64_t until)
{
	struct vt_node *n = vt_current();
	uint64_t seen = vt_touches(n);

	pthread_mutex_unlock(lock);
	if (!sockets_serve(n, true))
		vt_wait(n, seen, until);
	pthread_mutex_lock(lock);
	return vt_clock(n) < until ? 0 : ETIMEDOUT;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	return vt_current() ? program_wait(lock, VT_NEVER) : __real_pthread_cond_wait(cond, lock);
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  const struct timespec *until)
{
	return vt_current() ?
		program_wait(lock, ((uint64_t)until->tv_sec * 1000000000 +
				    (uint64_t)until->tv_nsec) * VT_NS) :
		__real_pthread_cond_timedwait(cond, lock, until);
}
