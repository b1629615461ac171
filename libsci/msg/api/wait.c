// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: waiting
 *
 * A waiting thread polls. At first it polls without a pause, later it yields the CPU between polls.
 * If another process has run since the thread's last yield, there are more processes than CPUs: then
 * waiting threads yield at once until no other process has run between some yields. After SCI_PARAM_SPIN_US of its own CPU
 * time the thread sleeps. The CPU time of other processes does not count, up to a limit, because
 * the wait may depend on their work. One thread of an endpoint sleeps on the endpoint's
 * descriptors. Other threads sleep on a condition variable, until the first thread wakes up or a
 * request has completed.
 *
 * A thread that is cancelled while it waits would leave ep->sleeping or the lock behind, so the
 * wait holds cancellation off.
 */

#include "libsci/msg/api/api.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/timerfd.h>
#include <time.h>

#include "libsci/base/cancel.h"
#include "libsci/base/host.h"
#include "libsci/base/thread.h"

#define ROUNDS		32u		/* progress calls between two readings of the clock */
#define CROWDED_ROUNDS	2u		/* the same when other processes need the CPU */
#define BUSY_SPIN_US	100u		/* time that a wait polls without yielding */
#define CROWDED		16u		/* yields and receives until the CPU counts as free */
#define SPIN_FACTOR	20u		/* limit of a spin, in SCI_PARAM_SPIN_US */
#define SUSPECT_POLL_MS	100		/* longest sleep while a peer's inbox is missing */
#define LOST_POLL_MS	5		/* longest sleep while stores may be lost */

/* ---- sleep: called with the endpoint's lock held, and returns with it ---- */

/* Return in how many ms there is work that no doorbell reports; INT_MAX: never. */
static int wait_next_due(struct sci_ep *ep)
{
	int due = dials_due(ep), most = ep->n_suspect ? SUSPECT_POLL_MS : INT_MAX;

	/* stores that were lost are repeated */
	if (ep->lossy && !list_empty(&ep->busy))
		most = LOST_POLL_MS;
	return due < most ? due : most;
}

/* Limit a sleep: retransmission and retries are not reported by a doorbell. */
static int sleep_limit(struct sci_ep *ep, int ms)
{
	int most = wait_next_due(ep);

	if (ep->retry || (ep->lossy && !list_empty(&ep->dirty)))
		most = LOST_POLL_MS < most ? LOST_POLL_MS : most;
	return most < INT_MAX && (ms < 0 || ms > most) ? most : ms;
}

static void sleep_on_fds(struct sci_ep *ep, int ms)
{
	struct pollfd fds[] = {
		{ .fd = ep->bell_fd, .events = POLLIN },
		{ .fd = ep->wake_fd, .events = POLLIN },
	};

	if (!msg_announce_sleep(ep))
		return;
	ms = sleep_limit(ep, ms);
	ep->stats.sleeps++;
	ep->sleeping = true;
	ep->woken = false;
	msg_unlock(&ep->lock);
	poll(fds, 2, ms);
	msg_lock(&ep->lock);
	ep->sleeping = false;
	if (fds[1].revents)
		wake_drain(ep);
	msg_woken(ep);
	if (ep->waiters)
		wake_waiters(ep);
}

/* Sleep on the condition variable: another thread sleeps on the descriptors. */
static void sleep_beside(struct sci_ep *ep, int ms)
{
	struct timespec until = sci_deadline(ms < 0 ? 0 : (uint32_t)ms);
	unsigned int seen = ep->completions;

	ep->waiters++;
	pthread_mutex_lock(&ep->sleep_lock);
	msg_unlock(&ep->lock);
	/* a thread that changes ep->completions takes sleep_lock afterwards, to wake this thread */
	if (sci_load_relaxed(&ep->completions) == seen)
		sci_cond_wait(&ep->sleep_cond, &ep->sleep_lock,
			      ms < 0 ? UINT32_MAX : (uint32_t)ms, &until);
	pthread_mutex_unlock(&ep->sleep_lock);
	msg_lock(&ep->lock);
	ep->waiters--;
}

static void sleep_some(struct sci_ep *ep, int ms)
{
	if (ep->sleeping)
		sleep_beside(ep, sleep_limit(ep, ms));
	else
		sleep_on_fds(ep, ms);
}

/* ---- waits ---- */

struct wait {
	struct sci_ep *ep;
	int (*fn)(void *arg);
	void *arg;
	bool often;
	unsigned int seen;		/* ep->completions at the last call of @fn */
};

static int wait_rounds(struct wait *w)
{
	struct sci_ep *ep = w->ep;
	unsigned int n = ep->crowded ? CROWDED_ROUNDS : ROUNDS;

	for (unsigned int i = 0; i < n; i++) {
		/* the peer may run on a sibling thread of this core */
		if (!msg_progress(ep))
			sci_cpu_relax();
		if (ep->completions != w->seen) {
			int ret = w->fn(w->arg);

			w->seen = ep->completions;
			if (ret != -EAGAIN)
				return ret;
		}
	}
	return w->often ? w->fn(w->arg) : -EAGAIN;
}

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/*
 * Let other threads of this endpoint run, and later other processes. Return how long they
 * ran, in microseconds.
 */
static uint64_t cpu_yield(struct sci_ep *ep, uint64_t now, uint64_t waited)
{
	bool taken;

	if (!ep->crowded && waited < BUSY_SPIN_US) {
		msg_unlock(&ep->lock);
		sci_cpu_relax();
		msg_lock(&ep->lock);
		return 0;
	}
	msg_unlock(&ep->lock);
	taken = sci_cpu_yield();
	msg_lock(&ep->lock);
	if (taken)
		ep->crowded = CROWDED;
	else if (ep->crowded)
		ep->crowded--;
	return now_us() - now;
}

static int deadline_ms_left(uint64_t until_us, uint64_t now, uint32_t at_most)
{
	uint64_t ms;

	if (until_us == UINT64_MAX)
		return at_most ? (int)at_most : -1;
	ms = (until_us - now + 999) / 1000;
	if (at_most && ms > at_most)
		ms = at_most;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

/* Poll, yield and sleep. Context: cancellation is held off. */
static int wait_long(struct wait *w, int timeout, uint32_t often_ms)
{
	struct sci_ep *ep = w->ep;
	uint64_t begin = now_us(), now, away = 0, spin;
	uint64_t until = timeout < 0 ? UINT64_MAX : begin + (uint64_t)timeout * 1000;
	int ret;

	for (;;) {
		ret = wait_rounds(w);
		if (ret != -EAGAIN)
			return ret;
		now = now_us();
		if (now >= until)
			return -ETIMEDOUT;
		spin = ep->params.value[SCI_PARAM_SPIN_US];
		if (now - begin < spin + away && now - begin < spin * SPIN_FACTOR)
			away += cpu_yield(ep, now, now - begin);
		else
			sleep_some(ep, deadline_ms_left(until, now, often_ms));
		if (ep->completions != w->seen) {
			w->seen = ep->completions;
			ret = w->fn(w->arg);
			if (ret != -EAGAIN)
				return ret;
		}
	}
}

int msg_wait_often(struct sci_ep *ep, int (*fn)(void *arg), void *arg,
		   int timeout, uint32_t often_ms)
{
	struct wait w = { .ep = ep, .fn = fn, .arg = arg, .often = often_ms };
	int ret;

	w.seen = ep->completions;
	ret = fn(arg);
	if (ret == -EAGAIN)
		ret = wait_rounds(&w);
	if (ret != -EAGAIN)
		return ret;
	sci_cancel_hold();
	ret = wait_long(&w, timeout, often_ms);
	sci_cancel_release();
	return ret;
}

int msg_wait(struct sci_ep *ep, int (*fn)(void *arg), void *arg, int timeout)
{
	return msg_wait_often(ep, fn, arg, timeout, 0);
}

/* ---- descriptor for the program's own event loop ---- */

/* Set the timer for work that no doorbell reports. This also clears its descriptor. */
static void wait_set_timer(struct sci_ep *ep)
{
	struct itimerspec at = { 0 };
	int due = wait_next_due(ep);

	if (ep->user_fd < 0 || (due == INT_MAX && !ep->timer_set))
		return;
	ep->timer_set = due < INT_MAX;
	if (ep->timer_set) {
		due = due ? due : 1;
		at.it_value.tv_sec = due / 1000;
		at.it_value.tv_nsec = due % 1000 * 1000000L;
	}
	timerfd_settime(ep->timer_fd, 0, &at, NULL);
}

int sci_ep_fd(struct sci_ep *ep)
{
	int fd;

	if (!ep)
		return -EINVAL;
	if (!ep_lock(ep))
		return -ENOTCONN;
	fd = wake_user_fd(ep);
	msg_unlock(&ep->lock);
	return fd;
}

int sci_ep_arm(struct sci_ep *ep)
{
	int ret;

	if (!ep)
		return -EINVAL;
	if (!ep_lock(ep))
		return -ENOTCONN;
	wake_drain_user(ep);
	wait_set_timer(ep);
	msg_woken(ep);
	ret = msg_announce_sleep(ep) && list_empty(&ep->dirty) &&
			      list_empty(&ep->completed) && !ep->retry ?
		      0 : -EAGAIN;
	ep->armed = !ret;
	msg_unlock(&ep->lock);
	return ret;
}
