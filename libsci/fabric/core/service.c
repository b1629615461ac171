// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include "libsci/fabric/core/service.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "libsci/fabric/core/fault.h"
#include "libsci/base/host.h"
#include "libsci/base/thread.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

#define EVENTS_AT_ONCE	16
#define FORK_SETTLES_MS	1000
#define STARVED_PAUSE_NS 5000000
#define YIELD_NS	5000u
#define CROWDED_NS	200000u		/* a longer yield shows a crowded CPU */
#define EXIT_LOCK_S	1		/* the thread that calls exit() may hold the lock */

/* The services of all open fabrics, for the handlers of fork() and exit(). */
static struct list services = { &services, &services };
static pthread_mutex_t services_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t services_once = PTHREAD_ONCE_INIT;

static struct sci_service *service_of(struct list *pos)
{
	return container_of(pos, struct sci_service, all);
}

/* ---- descriptors ---- */

int sci_fd_prepare(struct sci_service *svc, int fd)
{
	size_t n = svc->n_fds ? svc->n_fds : 64;
	struct sci_watch *fds;

	while (n <= (size_t)fd)
		n *= 2;
	if (n == svc->n_fds)
		return 0;
	fds = realloc(svc->fds, n * sizeof(*fds));
	if (!fds)
		return -ENOMEM;
	memset(fds + svc->n_fds, 0, (n - svc->n_fds) * sizeof(*fds));
	svc->fds = fds;
	svc->n_fds = n;
	return 0;
}

int sci_fd_track(struct sci_service *svc, int fd)
{
	int ret = sci_fd_prepare(svc, fd);

	if (ret)
		close(fd);
	else
		svc->fds[fd].open = true;
	return ret;
}

void sci_unwatch(struct sci_service *svc, int fd)
{
	struct sci_watch *w = &svc->fds[fd];

	if (!w->fn)
		return;
	/* close() would leave the epoll entry if another process has the file open, too */
	epoll_ctl(svc->epfd, EPOLL_CTL_DEL, fd, NULL);
	w->fn = NULL;
	w->gen++;
}

/* Without @events: epoll always reports a hang-up, and EPOLLONESHOT limits it to one report. */
static void event_set(const struct sci_watch *w, int fd, uint32_t events,
		      struct epoll_event *ev)
{
	ev->events = events ? events : EPOLLONESHOT;
	ev->data.u64 = (uint64_t)w->gen << 32 | (uint32_t)fd;
}

void sci_watch_events(struct sci_service *svc, int fd, uint32_t events)
{
	struct sci_watch *w = &svc->fds[fd];
	struct epoll_event ev;

	if (!w->fn || w->events == events)
		return;
	w->events = events;
	if (w->paused)
		return;
	event_set(w, fd, events, &ev);
	epoll_ctl(svc->epfd, EPOLL_CTL_MOD, fd, &ev);
}

void sci_watch_pause(struct sci_service *svc, int fd, bool pause)
{
	struct sci_watch *w = &svc->fds[fd];
	struct epoll_event ev;

	if (!w->fn || w->paused == pause)
		return;
	event_set(w, fd, pause ? 0 : w->events, &ev);
	epoll_ctl(svc->epfd, EPOLL_CTL_MOD, fd, &ev);
	w->paused = pause;
}

void sci_fd_untrack(struct sci_service *svc, int fd)
{
	sci_unwatch(svc, fd);
	svc->fds[fd].open = false;
}

void sci_fd_close(struct sci_service *svc, int fd)
{
	if (fd < 0)
		return;
	sci_fd_untrack(svc, fd);
	close(fd);
}

void sci_fd_pass_rights(int fd, bool pass)
{
	int value = pass;

	setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &value, sizeof(value));
}

static void fds_close(struct sci_service *svc)
{
	size_t fd;

	for (fd = 0; fd < svc->n_fds; fd++)
		if (svc->fds[fd].open)
			close((int)fd);
}

/* ---- the link ---- */

static void link_update(struct sci_service *svc)
{
	uint64_t now = sci_now_ms(), next;
	bool down = sci_fault_link(now - svc->begin_ms, &next);

	if (down == svc->link_down)
		return;
	if (!down)
		svc->down_ms += now - svc->changed_ms;
	svc->changed_ms = now;
	svc->link_down = down;
	svc->ops->link(svc, down);
}

/* Return the timeout of epoll_wait() until the link's next injected change; -1: none. */
static int link_timeout(struct sci_service *svc)
{
	uint64_t now = sci_now_ms() - svc->begin_ms, next;

	sci_fault_link(now, &next);
	if (next == UINT64_MAX)
		return -1;
	return next - now > 1000 ? 1000 : (int)(next - now);
}

void sci_service_link_times(struct sci_service *svc, uint64_t *up_ms,
			    uint64_t *down_ms)
{
	uint64_t since = sci_now_ms() - svc->changed_ms;

	*up_ms = svc->link_down ? 0 : since;
	*down_ms = svc->down_ms + (svc->link_down ? since : 0);
}

/* ---- the thread ---- */

static void events_serve(struct sci_service *svc, const struct epoll_event *ev,
			 int n)
{
	for (; n > 0; n--, ev++) {
		uint32_t fd = (uint32_t)ev->data.u64;
		uint32_t gen = (uint32_t)(ev->data.u64 >> 32);
		struct sci_watch *w = &svc->fds[fd];

		if (w->fn && w->gen == gen && !w->paused)
			w->fn(w->obj);
	}
}

/*
 * Yield the CPU, at most every YIELD_NS. Another polling thread on this CPU takes the CPU for
 * idle if its yield returns sooner, and then yields less often. @yielded: the time of this
 * thread's last yield. Return true if the yield took longer than CROWDED_NS: the CPU is crowded.
 */
static bool cpu_yield(uint64_t *yielded)
{
	uint64_t begin = sci_now_ns();

	if (begin - *yielded < YIELD_NS)
		return false;
	sched_yield();
	*yielded = sci_now_ns();
	return *yielded - begin > CROWDED_NS;
}

static void *service_run(void *arg)
{
	/* a descriptor that could not be served stays ready: pause before the next epoll_wait() */
	const struct timespec pause = { .tv_nsec = STARVED_PAUSE_NS };
	struct epoll_event ev[EVENTS_AT_ONCE];
	struct sci_service *svc = arg;
	bool stop, starved, poll = false, crowded = false;
	uint64_t yielded = 0;
	int n;

	do {
		n = epoll_wait(svc->epfd, ev, EVENTS_AT_ONCE,
			       poll ? 0 : link_timeout(svc));
		pthread_mutex_lock(&svc->lock);
		stop = svc->stop;
		svc->starved = false;
		if (!stop) {
			events_serve(svc, ev, n);
			link_update(svc);
			poll = svc->ops->poll && svc->ops->poll(svc, crowded);
			svc->polls += poll;
		}
		starved = svc->starved;
		pthread_mutex_unlock(&svc->lock);
		if (starved)
			nanosleep(&pause, NULL);
		crowded = !starved && poll && cpu_yield(&yielded);
	} while (!stop);
	return NULL;
}

static int service_start(struct sci_service *svc)
{
	int ret;

	if (svc->serving)
		return 0;
	ret = sci_thread_start(&svc->thread, service_run, svc, "sci-service");
	svc->serving = !ret;
	return ret;
}

int sci_watch(struct sci_service *svc, int fd, uint32_t events,
	      sci_watch_fn fn, void *obj)
{
	struct sci_watch *w = &svc->fds[fd];
	struct epoll_event ev;
	int ret;

	ret = service_start(svc);
	if (ret)
		return ret;
	event_set(w, fd, events, &ev);
	if (epoll_ctl(svc->epfd, EPOLL_CTL_ADD, fd, &ev))
		return -errno;
	w->events = events;
	w->paused = false;
	w->fn = fn;
	w->obj = obj;
	return 0;
}

/* ---- fork ---- */

static void service_fork_prepare(void)
{
	struct list *pos, *n;

	pthread_mutex_lock(&services_lock);
	list_for_each_safe(pos, n, &services) {
		pthread_rwlock_wrlock(&service_of(pos)->gate);
		pthread_mutex_lock(&service_of(pos)->lock);
	}
}

static void service_fork_parent(void)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &services) {
		service_of(pos)->forked_ms = sci_now_ms();
		pthread_mutex_unlock(&service_of(pos)->lock);
		pthread_rwlock_unlock(&service_of(pos)->gate);
	}
	pthread_mutex_unlock(&services_lock);
}

/*
 * Close the parent's descriptors in the child of a fork: the child owns none of the parent's
 * objects. Maps stay. The structures are not freed, because another thread of the parent may
 * have been changing them.
 */
static void service_fork_child(void)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &services) {
		struct sci_service *svc = service_of(pos);

		fds_close(svc);
		if (svc->ops->forked)
			svc->ops->forked(svc);
		list_del(pos);
		pthread_mutex_unlock(&svc->lock);
		/* the held lock contains the parent's thread ID, so it cannot be unlocked */
		pthread_rwlock_init(&svc->gate, NULL);
	}
	pthread_mutex_unlock(&services_lock);
}

/* ---- exit ---- */

/* Let fabrics that are still open at the end of the program send what waits. */
static void services_exit(void)
{
	struct timespec limit;
	struct list *pos, *n;

	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += EXIT_LOCK_S;
	if (pthread_mutex_timedlock(&services_lock, &limit))
		return;
	list_for_each_safe(pos, n, &services) {
		struct sci_service *svc = service_of(pos);

		if (!svc->ops->exiting || pthread_mutex_timedlock(&svc->lock, &limit))
			continue;
		svc->ops->exiting(svc);
		pthread_mutex_unlock(&svc->lock);
	}
	pthread_mutex_unlock(&services_lock);
}

static void services_init(void)
{
	pthread_atfork(service_fork_prepare, service_fork_parent, service_fork_child);
	atexit(services_exit);
}

bool sci_forked_lately(struct sci_service *svc)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	bool lately;

	pthread_mutex_lock(&svc->lock);
	lately = svc->forked_ms &&
		 sci_now_ms() - svc->forked_ms < FORK_SETTLES_MS;
	pthread_mutex_unlock(&svc->lock);
	if (lately)
		nanosleep(&ms, NULL);
	return lately;
}

/* ---- open and close ---- */

static int events_init(struct sci_service *svc)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int ret;

	svc->epfd = epoll_create1(EPOLL_CLOEXEC);
	ret = svc->epfd < 0 ? -errno : sci_fd_track(svc, svc->epfd);
	if (ret)
		return ret;
	svc->wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = svc->wakefd < 0 ? -errno : sci_fd_track(svc, svc->wakefd);
	if (ret)
		return ret;
	/* the wake-up descriptor has no watch function: it only ends epoll_wait() */
	ev.data.u64 = (uint64_t)UINT32_MAX << 32 | (uint32_t)svc->wakefd;
	return epoll_ctl(svc->epfd, EPOLL_CTL_ADD, svc->wakefd, &ev) ? -errno :
								       0;
}

/* Make a lock that prefers writers: new readers must not delay fork(), the writer. */
static void gate_init(pthread_rwlock_t *gate)
{
	pthread_rwlockattr_t attr;

	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr,
				PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(gate, &attr);
	pthread_rwlockattr_destroy(&attr);
}

int sci_service_open(struct sci_service *svc,
		     const struct sci_service_ops *ops)
{
	pthread_once(&services_once, services_init);
	svc->ops = ops;
	svc->begin_ms = sci_now_ms();
	svc->changed_ms = svc->begin_ms;
	gate_init(&svc->gate);
	pthread_mutex_init(&svc->lock, NULL);

	pthread_mutex_lock(&services_lock);
	list_add_tail(&svc->all, ops->above ? services.next : &services);
	pthread_mutex_lock(&svc->lock);
	sci_fd_room(SCI_FD_ROOM_MAX);
	return events_init(svc);
}

int sci_service_opened(struct sci_service *svc, int ret)
{
	if (!ret) {
		link_update(svc);
		/* injected changes of the link need the service thread */
		if (link_timeout(svc) >= 0)
			ret = service_start(svc);
	}
	pthread_mutex_unlock(&svc->lock);
	pthread_mutex_unlock(&services_lock);
	return ret;
}

void sci_service_stop(struct sci_service *svc)
{
	uint64_t one = 1;

	pthread_mutex_lock(&svc->lock);
	svc->stop = true;
	pthread_mutex_unlock(&svc->lock);
	if (!svc->serving)
		return;
	while (write(svc->wakefd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	pthread_join(svc->thread, NULL);
}

void sci_service_close(struct sci_service *svc)
{
	pthread_mutex_lock(&services_lock);
	pthread_mutex_lock(&svc->lock);
	list_del(&svc->all);
	fds_close(svc);
	pthread_mutex_unlock(&svc->lock);
	pthread_mutex_unlock(&services_lock);
	pthread_mutex_destroy(&svc->lock);
	pthread_rwlock_destroy(&svc->gate);
	free(svc->fds);
}
