// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The endpoints of a queue or a counter: progress of all, and sleep until one has some. */
#include "libsci/ofi/ofi.h"

#include <errno.h>
#include <poll.h>
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

/* ---- endpoints ---- */

void sfi_eps_init(struct sfi_eps *e, bool shared)
{
	sfi_lock_init(&e->lock, shared);
}

void sfi_eps_fini(struct sfi_eps *e)
{
	sfi_lock_fini(&e->lock);
	free(e->ep);
}

static int watch(struct sfi_wait *w, int op, struct sfi_ep *ep)
{
	struct epoll_event ev = { .events = EPOLLIN };

	if (w->epoll < 0)
		return 0;
	return epoll_ctl(w->epoll, op, sci_ep_fd(ep->ep), &ev) ? -errno : 0;
}

static int add(struct sfi_eps *e, struct sfi_wait *w, struct sfi_ep *ep)
{
	struct sfi_ep **more;
	int ret;

	for (size_t i = 0; i < e->n; i++)
		if (e->ep[i] == ep)
			return 0;
	more = realloc(e->ep, (e->n + 1) * sizeof(struct sfi_ep *));
	if (!more)
		return -FI_ENOMEM;
	e->ep = more;
	ret = watch(w, EPOLL_CTL_ADD, ep);
	if (ret)
		return ret;
	e->ep[e->n++] = ep;
	if (w->epoll < 0)
		return 0;
	sfi_lock(&ep->lock);
	ep->may_sleep = true;
	sfi_hand_post(ep);
	sfi_unlock(&ep->lock);
	return 0;
}

/* Once, also if it is added again. */
int sfi_eps_add(struct sfi_eps *e, struct sfi_wait *w, struct sfi_ep *ep)
{
	int ret;

	sfi_lock(&e->lock);
	ret = add(e, w, ep);
	sfi_unlock(&e->lock);
	return ret;
}

void sfi_eps_remove(struct sfi_eps *e, struct sfi_wait *w, struct sfi_ep *ep)
{
	sfi_lock(&e->lock);
	for (size_t i = 0; i < e->n; i++) {
		if (e->ep[i] != ep)
			continue;
		watch(w, EPOLL_CTL_DEL, ep);
		e->ep[i] = e->ep[--e->n];
		break;
	}
	sfi_unlock(&e->lock);
}

void sfi_eps_progress(struct sfi_eps *e)
{
	sfi_lock(&e->lock);
	for (size_t i = 0; i < e->n; i++)
		sfi_ep_progress(e->ep[i]);
	sfi_unlock(&e->lock);
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
	if (w->epoll >= 0)
		close(w->epoll);
	if (w->signal >= 0)
		close(w->signal);
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

	/* it can only be full, and then it is readable */
	if (w->signal >= 0 && write(w->signal, &one, sizeof(one)) < 0)
		return;
}

void sfi_wait_clear(struct sfi_wait *w)
{
	uint64_t n;

	if (w->signal >= 0 && read(w->signal, &n, sizeof(n)) < 0)
		return;
}

/* Something has been put where somebody may sleep for it. */
void sfi_wait_wake(struct sfi_wait *w)
{
	if (atomic_load(&w->armed) && atomic_exchange(&w->armed, false))
		sfi_wait_signal(w);
}

/*
 * Before sleep. -FI_EAGAIN: there is progress to be made.  After 0 the caller looks
 * once more at what it waits for: what comes later wakes it.
 */
int sfi_wait_arm(struct sfi_wait *w, struct sfi_eps *e)
{
	int ret = 0;

	if (w->epoll < 0)
		return -FI_EINVAL;
	sfi_wait_clear(w);
	atomic_store(&w->armed, true);
	sfi_lock(&e->lock);
	for (size_t i = 0; i < e->n && !ret; i++) {
		struct sfi_ep *ep = e->ep[i];

		sfi_lock(&ep->lock);
		sfi_hand_post(ep);
		ret = sci_ep_arm(ep->ep) ? -FI_EAGAIN : 0;
		sfi_unlock(&ep->lock);
	}
	sfi_unlock(&e->lock);
	return ret;
}

int sfi_wait_sleep(struct sfi_wait *w, int timeout)
{
	struct pollfd p = { .fd = w->epoll, .events = POLLIN };

	return poll(&p, 1, timeout) < 0 ? -errno : 0;
}

static int arm_one(struct fid *fid)
{
	struct sfi_cq *cq = (struct sfi_cq *)fid;
	struct sfi_cntr *cntr = (struct sfi_cntr *)fid;
	int ret;

	switch (fid->fclass) {
	case FI_CLASS_CQ:
		ret = sfi_wait_arm(&cq->wait, &cq->eps);
		/* it may have been given some by another's progress */
		return !ret && sfi_cq_ready(cq) ? -FI_EAGAIN : ret;
	case FI_CLASS_CNTR:
		return sfi_wait_arm(&cntr->wait, &cntr->eps);
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
		ret = arm_one(fids[i]);
	return ret;
}
