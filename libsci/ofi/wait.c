// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Progress on several endpoints, and sleeping until one of them has work. */
#include "libsci/ofi/ofi.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

uint64_t sfi_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- lists of endpoints ---- */

void sfi_eps_init(struct sfi_eps *e, bool shared)
{
	sfi_lock_init(&e->lock, shared);
}

void sfi_eps_fini(struct sfi_eps *e)
{
	sfi_lock_fini(&e->lock);
	free(e->ep);
}

/* Add @ep, unless it is in the list. Context: @e is locked. */
static int eps_insert(struct sfi_eps *e, struct sfi_ep *ep)
{
	struct sfi_ep **more;

	for (size_t i = 0; i < e->n; i++)
		if (e->ep[i] == ep)
			return 0;
	more = realloc(e->ep, (e->n + 1) * sizeof(struct sfi_ep *));
	if (!more)
		return -FI_ENOMEM;
	e->ep = more;
	e->ep[e->n++] = ep;
	return 0;
}

/* Add @ep to the list of a queue or counter. @w: the wait object of that queue or counter */
int sfi_eps_add(struct sfi_eps *e, const struct sfi_wait *w, struct sfi_ep *ep)
{
	int ret;

	sfi_lock(&e->lock);
	ret = eps_insert(e, ep);
	sfi_unlock(&e->lock);
	if (ret || w->epoll < 0)
		return ret;
	sfi_lock(&ep->lock);
	ep->has_waiter = true;
	sfi_held_post(ep);
	sfi_unlock(&ep->lock);
	return 0;
}

void sfi_eps_remove(struct sfi_eps *e, struct sfi_ep *ep)
{
	sfi_lock(&e->lock);
	for (size_t i = 0; i < e->n; i++) {
		if (e->ep[i] != ep)
			continue;
		e->ep[i] = e->ep[--e->n];
		break;
	}
	sfi_unlock(&e->lock);
}

/* Make progress on the endpoints of a queue or counter, and now and then on all of the domain. */
void sfi_eps_progress(struct sfi_eps *e, struct sfi_domain *d)
{
	bool others;

	if (d->automatic.runs)
		sfi_auto_called(&d->automatic);
	sfi_lock(&e->lock);
	for (size_t i = 0; i < e->n; i++)
		sfi_ep_progress(e->ep[i]);
	others = !e->n || ++e->rounds % SFI_OTHERS == 0;
	sfi_unlock(&e->lock);
	if (others)
		sfi_domain_progress(d);
}

/* ---- all endpoints of a domain ---- */

/* Make progress on all endpoints of @d, unless another thread makes such progress. */
void sfi_domain_progress(struct sfi_domain *d)
{
	if (!sfi_trylock(&d->eps.lock))
		return;
	for (size_t i = 0; i < d->eps.n; i++)
		sfi_ep_progress(d->eps.ep[i]);
	sfi_unlock(&d->eps.lock);
}

static int wait_watch(struct sfi_wait *w, int op, struct sfi_ep *ep)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(w->epoll, op, sci_ep_fd(ep->ep), &ev) ? -errno : 0;
}

/* Add @ep to all wait objects. Context: the list of the domain's endpoints is locked. */
static int ep_watch(struct sfi_domain *d, struct sfi_ep *ep)
{
	struct sfi_wait *w, *done;
	int ret = 0;

	for (w = d->waits; w && !ret; w = w->next)
		ret = wait_watch(w, EPOLL_CTL_ADD, ep);
	for (done = d->waits; ret && done->next != w; done = done->next)
		wait_watch(done, EPOLL_CTL_DEL, ep);
	return ret;
}

/* Add @ep to its domain: all sleeps and all progress of the domain include @ep. */
int sfi_domain_join(struct sfi_ep *ep)
{
	struct sfi_domain *d = ep->domain;
	int ret;

	sfi_lock(&d->eps.lock);
	ret = ep_watch(d, ep);
	if (!ret)
		ret = eps_insert(&d->eps, ep);
	sfi_unlock(&d->eps.lock);
	return ret;
}

void sfi_domain_leave(struct sfi_ep *ep)
{
	struct sfi_domain *d = ep->domain;

	sfi_eps_remove(&d->eps, ep);
	sfi_lock(&d->eps.lock);
	for (struct sfi_wait *w = d->waits; w; w = w->next)
		wait_watch(w, EPOLL_CTL_DEL, ep);
	sfi_unlock(&d->eps.lock);
}

static int ep_watch_all(struct sfi_wait *w, struct sfi_domain *d)
{
	int ret = 0;

	for (size_t i = 0; i < d->eps.n && !ret; i++)
		ret = wait_watch(w, EPOLL_CTL_ADD, d->eps.ep[i]);
	return ret;
}

/* ---- sleep ---- */

int sfi_wait_init(struct sfi_wait *w, enum fi_wait_obj obj)
{
	struct epoll_event ev = { .events = EPOLLIN };

	w->epoll = w->signal = -1;
	w->obj = obj;
	if (obj == FI_WAIT_NONE)
		return 0;
	if (obj != FI_WAIT_UNSPEC && obj != FI_WAIT_FD)
		return -FI_ENOSYS;
	pthread_mutex_init(&w->lock, NULL);
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	w->signal = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->epoll >= 0 && w->signal >= 0 &&
	    !epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->signal, &ev))
		return 0;
	sfi_wait_fini(w);
	return -FI_EMFILE;
}

void sfi_wait_fini(struct sfi_wait *w)
{
	if (w->obj != FI_WAIT_NONE)
		pthread_mutex_destroy(&w->lock);
	if (w->epoll >= 0)
		close(w->epoll);
	if (w->signal >= 0)
		close(w->signal);
}

/* Open the wait object of a queue or counter, which sleeps on all endpoints of the domain. */
int sfi_wait_open(struct sfi_wait *w, enum fi_wait_obj obj, struct sfi_domain *d)
{
	int ret = sfi_wait_init(w, obj);

	if (ret || obj == FI_WAIT_NONE)
		return ret;
	sfi_lock(&d->eps.lock);
	ret = ep_watch_all(w, d);
	if (!ret) {
		w->next = d->waits;
		d->waits = w;
	}
	sfi_unlock(&d->eps.lock);
	if (ret)
		sfi_wait_fini(w);
	return ret;
}

void sfi_wait_close(struct sfi_wait *w, struct sfi_domain *d)
{
	struct sfi_wait **p;

	sfi_lock(&d->eps.lock);
	for (p = &d->waits; *p && *p != w; p = &(*p)->next)
		;
	if (*p)
		*p = w->next;
	sfi_unlock(&d->eps.lock);
	sfi_wait_fini(w);
}

int sfi_wait_fd(struct sfi_wait *w, void *arg)
{
	if (w->obj != FI_WAIT_FD || !arg)
		return -FI_ENODATA;
	*(int *)arg = w->epoll;
	return 0;
}

void sfi_wait_signal(struct sfi_wait *w)
{
	uint64_t one = 1;

	atomic_store(&w->pending, true);
	/* a write fails only if the counter is full, and then the eventfd is readable */
	if (w->signal >= 0 && write(w->signal, &one, sizeof(one)) < 0)
		return;
}

void sfi_wait_clear(struct sfi_wait *w)
{
	uint64_t n;

	atomic_store(&w->pending, false);
	if (w->signal >= 0 && read(w->signal, &n, sizeof(n)) < 0)
		return;
}

/* Wake the threads that sleep in @w, after a new completion. */
void sfi_wait_wake(struct sfi_wait *w)
{
	if (atomic_load(&w->armed) && atomic_exchange(&w->armed, false))
		sfi_wait_signal(w);
}

/*
 * Arm the wait object. The first sleeper clears the signal; a later one must not, because a signal
 * may arrive for a thread that sleeps on the same descriptor: without it, this thread would not wake
 * up. Return false if such a signal is pending.
 */
static bool sleep_begin(struct sfi_wait *w)
{
	bool may;

	pthread_mutex_lock(&w->lock);
	may = !w->sleepers || !atomic_load(&w->pending);
	if (may) {
		if (!w->sleepers++)
			sfi_wait_clear(w);
		atomic_store(&w->armed, true);
	}
	pthread_mutex_unlock(&w->lock);
	if (!may)
		sched_yield();
	return may;
}

/* Undo sfi_wait_arm() without a sleep. */
void sfi_wait_disarm(struct sfi_wait *w)
{
	pthread_mutex_lock(&w->lock);
	w->sleepers--;
	pthread_mutex_unlock(&w->lock);
}

/* Arm all endpoints of @d. Return -FI_EAGAIN if an endpoint has work. Context: d->eps is locked. */
static int eps_arm(struct sfi_domain *d)
{
	int ret = 0;

	for (size_t i = 0; i < d->eps.n && !ret; i++) {
		struct sfi_ep *ep = d->eps.ep[i];

		sfi_lock(&ep->lock);
		sfi_held_post(ep);
		ret = sci_ep_arm(ep->ep) ? -FI_EAGAIN : 0;
		sfi_unlock(&ep->lock);
	}
	return ret;
}

/*
 * Prepare to sleep. After 0, the caller checks its condition once more: any later change ends its
 * sleep.
 *
 * Return: 0, or -FI_EAGAIN after making progress: do not sleep.
 */
int sfi_wait_arm(struct sfi_wait *w, struct sfi_domain *d)
{
	int ret;

	if (w->epoll < 0)
		return -FI_EINVAL;
	if (!sleep_begin(w))
		return -FI_EAGAIN;
	sfi_lock(&d->eps.lock);
	ret = eps_arm(d);
	sfi_unlock(&d->eps.lock);
	if (!ret)
		return 0;
	sfi_wait_disarm(w);
	sfi_domain_progress(d);
	return ret;
}

/* Sleep in a wait object that sfi_wait_arm() has armed, and disarm it. */
int sfi_wait_sleep(struct sfi_wait *w, int timeout)
{
	int ret = sfi_wait_poll(w, timeout);

	sfi_wait_disarm(w);
	return ret;
}

int sfi_wait_poll(struct sfi_wait *w, int timeout)
{
	struct pollfd p = { .fd = w->epoll, .events = POLLIN };

	return poll(&p, 1, timeout) < 0 ? -errno : 0;
}

/* ---- fi_trywait(): the program sleeps itself ---- */

/*
 * Prepare a queue for a sleep of the program. The provider does not know which threads sleep. So
 * the descriptor stays readable while the queue is not empty, also for threads that already sleep.
 */
static int cq_try(struct sfi_cq *cq)
{
	int ret = sfi_wait_arm(&cq->wait, cq->domain);

	if (ret)
		return ret;
	sfi_wait_disarm(&cq->wait);
	if (!sfi_cq_ready(cq))
		return 0;
	sfi_wait_signal(&cq->wait);
	return -FI_EAGAIN;
}

/*
 * Prepare a counter in the same way. sfi_wait_arm() clears the signal. That signal may report a change
 * that the program has not read: a read of another object makes progress, too.
 */
static int cntr_try(struct sfi_cntr *c)
{
	int ret = sfi_wait_arm(&c->wait, c->domain);

	if (ret)
		return ret;
	sfi_wait_disarm(&c->wait);
	if (atomic_load(&c->changes) == atomic_load(&c->seen))
		return 0;
	sfi_wait_signal(&c->wait);
	return -FI_EAGAIN;
}

static int fid_try(struct fid *fid)
{
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		return cq_try((struct sfi_cq *)fid);
	case FI_CLASS_CNTR:
		return cntr_try((struct sfi_cntr *)fid);
	case FI_CLASS_EQ:
		return 0;
	default:
		return -FI_EINVAL;
	}
}

int sfi_trywait(struct fid_fabric *fabric, struct fid **fids, int n)
{
	int ret = 0;

	(void)fabric;
	for (int i = 0; i < n && !ret; i++)
		ret = fid_try(fids[i]);
	return ret;
}
