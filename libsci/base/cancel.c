// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include "libsci/base/cancel.h"

#include <stdbool.h>

#include "libsci/base/thread.h"

static _Thread_local unsigned int holds;
static _Thread_local int state;		/* the program's cancel state, while holds > 0 */

/*
 * A signal handler may call the library between any two instructions of these functions. It
 * restores @holds, and changes @state only while @holds is 0.
 */
void sci_cancel_hold(void)
{
	int old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	if (!holds++)
		state = old;
}

void sci_cancel_release(void)
{
	int old = state;

	if (!--holds)
		pthread_setcancelstate(old, NULL);
}

struct window {
	bool open;
	int type;
};

static struct window cancel_allow(void)
{
	struct window w = { .open = holds == 1 };

	if (w.open) {
		pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &w.type);
		pthread_setcancelstate(state, NULL);
	}
	return w;
}

static void cancel_forbid(const struct window *w)
{
	if (w->open) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
		pthread_setcanceltype(w->type, NULL);
	}
}

int sci_poll_cancelable(struct pollfd *fds, nfds_t n, int ms)
{
	struct window w = cancel_allow();
	int ret = poll(fds, n, ms);

	cancel_forbid(&w);
	return ret;
}

int sci_epoll_cancelable(int epfd, struct epoll_event *events, int max, int ms)
{
	struct window w = cancel_allow();
	int ret = epoll_wait(epfd, events, max, ms);

	cancel_forbid(&w);
	return ret;
}

struct cond_wait {
	pthread_cond_t *cond;
	pthread_mutex_t *lock;
};

/* The cancelled thread may have taken a wake-up that was meant for any waiter: pass it on. */
static void cond_abandon(void *arg)
{
	const struct cond_wait *c = arg;

	pthread_cond_signal(c->cond);
	pthread_mutex_unlock(c->lock);
}

int sci_cond_wait_cancelable(pthread_cond_t *cond, pthread_mutex_t *lock,
			     uint32_t ms, const struct timespec *deadline)
{
	struct cond_wait c = { cond, lock };
	struct window w;
	int ret;

	pthread_cleanup_push(cond_abandon, &c);
	w = cancel_allow();
	ret = sci_cond_wait(cond, lock, ms, deadline);
	cancel_forbid(&w);
	pthread_cleanup_pop(0);
	return ret;
}
