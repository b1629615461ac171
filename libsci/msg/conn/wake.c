// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: waking
 *
 * One thread of an endpoint sleeps on the endpoint's descriptors, other threads sleep on a
 * condition variable: see api/wait.c. This file has the descriptors, and the functions that wake
 * these threads.
 *
 * A sleeping thread and the program's event loop have one eventfd each. Each clears only its own:
 * it would take a wake-up from the other, which does not poll again before it.
 */

#include "libsci/msg/conn/conn.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "libsci/base/cancel.h"
#include "libsci/base/thread.h"

_Atomic uint32_t msg_fork_gen;

/*
 * All endpoints with open descriptors. The child of a fork() closes these descriptors, so
 * an endpoint is opened and added, or removed and closed, under open_lock.
 */
static struct list open_eps = { &open_eps, &open_eps };
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void wake_fork_prepare(void)
{
	pthread_mutex_lock(&open_lock);
}

static void wake_fork_parent(void)
{
	pthread_mutex_unlock(&open_lock);
}

static void fds_close(struct sci_ep *ep)
{
	list_del(&ep->open);
	if (ep->user_fd >= 0) {
		close(ep->user_fd);
		close(ep->user_wake_fd);
		close(ep->timer_fd);
	}
	close(ep->wake_fd);
}

/* Close the descriptors in the child of a fork(), as the fabric's fork handler does. */
static void wake_fork_child(void)
{
	atomic_fetch_add(&msg_fork_gen, 1);
	while (!list_empty(&open_eps))
		fds_close(container_of(open_eps.next, struct sci_ep, open));
	pthread_mutex_unlock(&open_lock);
}

static void wake_fork_install(void)
{
	pthread_atfork(wake_fork_prepare, wake_fork_parent, wake_fork_child);
}

/* Install the fork handlers. Called before an endpoint reads msg_fork_gen. */
void wake_fork_init(void)
{
	pthread_once(&fork_once, wake_fork_install);
}

int wake_init(struct sci_ep *ep)
{
	int ret = ep->ops->lintr.fd(ep->bell);

	if (ret < 0)
		return ret;
	ep->bell_fd = ret;
	ep->user_fd = -1;
	ep->user_wake_fd = -1;
	pthread_mutex_lock(&open_lock);
	ep->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = ep->wake_fd < 0 ? -errno : 0;
	if (!ret)
		list_add_tail(&ep->open, &open_eps);
	pthread_mutex_unlock(&open_lock);
	if (ret)
		return ret;
	pthread_mutex_init(&ep->sleep_lock, NULL);
	sci_cond_init(&ep->sleep_cond);
	return 0;
}

void wake_fini(struct sci_ep *ep)
{
	pthread_mutex_lock(&open_lock);
	fds_close(ep);
	pthread_mutex_unlock(&open_lock);
	pthread_mutex_destroy(&ep->sleep_lock);
	pthread_cond_destroy(&ep->sleep_cond);
}

/* The callers of both functions hold locks: the functions must not be cancellation points. */
static void event_add(int fd)
{
	uint64_t one = 1;
	ssize_t n;

	sci_cancel_hold();
	n = write(fd, &one, sizeof(one));
	sci_cancel_release();
	(void)n;	/* a full counter is readable, which is enough */
}

static void event_drain(int fd)
{
	uint64_t count;
	ssize_t n;

	sci_cancel_hold();
	n = read(fd, &count, sizeof(count));
	sci_cancel_release();
	(void)n;
}

/* Make the program's descriptor readable, if there is one. Context: any thread, any locks. */
static void wake_user(struct sci_ep *ep)
{
	int fd = atomic_load(&ep->user_wake_fd);

	if (fd >= 0)
		event_add(fd);
}

/*
 * Wake the thread that sleeps in poll(), and the program's event loop. Context: any thread, any
 * locks.
 */
void wake_self(struct sci_ep *ep)
{
	event_add(ep->wake_fd);
	wake_user(ep);
}

void wake_drain(struct sci_ep *ep)
{
	event_drain(ep->wake_fd);
}

void wake_drain_user(struct sci_ep *ep)
{
	if (ep->user_fd >= 0)
		event_drain(ep->user_wake_fd);
}

/* Wake all sleeping threads after a completion or another change. */
void wake_waiters(struct sci_ep *ep)
{
	if (ep->sleeping && !ep->woken) {
		ep->woken = true;
		event_add(ep->wake_fd);
	}
	if (ep->waiters) {
		pthread_mutex_lock(&ep->sleep_lock);
		pthread_cond_broadcast(&ep->sleep_cond);
		pthread_mutex_unlock(&ep->sleep_lock);
	}
}

/* Wake threads as wake_waiters() does, and make the descriptor of an armed endpoint readable. */
void wake_all(struct sci_ep *ep)
{
	if (ep->armed) {
		ep->armed = false;
		wake_user(ep);
	}
	msg_changed(ep);
}

/* ---- descriptor for the program's own event loop ---- */

static void fd_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

static int user_fd_make(struct sci_ep *ep)
{
	struct epoll_event in = { .events = EPOLLIN };
	int fd = epoll_create1(EPOLL_CLOEXEC);
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int ret;

	if (fd < 0 || timer < 0 || wake < 0 || epoll_ctl(fd, EPOLL_CTL_ADD, timer, &in) ||
	    epoll_ctl(fd, EPOLL_CTL_ADD, ep->bell_fd, &in) ||
	    epoll_ctl(fd, EPOLL_CTL_ADD, wake, &in)) {
		ret = -errno;
		fd_close(wake);
		fd_close(timer);
		fd_close(fd);
		return ret;
	}
	ep->timer_fd = timer;
	ep->user_fd = fd;
	/* wake_self() may use it from now on, in another thread */
	atomic_store(&ep->user_wake_fd, wake);
	return fd;
}

/* Return ep->user_fd, which the first call makes, or -errno. */
int wake_user_fd(struct sci_ep *ep)
{
	int fd;

	pthread_mutex_lock(&open_lock);
	fd = ep->user_fd >= 0 ? ep->user_fd : user_fd_make(ep);
	pthread_mutex_unlock(&open_lock);
	return fd;
}
