// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * The threads that make calls to other nodes. A thread ends when no call is waiting.
 *
 * A peer that is stopped, or hostile, does not answer its call for up to a minute. So a call that
 * lasts longer than CALL_SLOW_MS makes room for another thread. While a call waits for this room,
 * progress calls callers_check(), and a sleep of the endpoint is short.
 */

#include "libsci/msg/conn/conn.h"

#include <errno.h>
#include <sched.h>

#include "libsci/base/thread.h"

#define THREADS_MAX	8u		/* threads without those of slow calls */
#define THREADS_ALL_MAX	64u
#define CANCEL_MS	10u

/* Take the next call from the queue; NULL: there is none. Context: t->lock is held. */
static struct msg_call *callers_take(struct msg_callers *t)
{
	struct list *l = list_pop(&t->waiting);
	struct msg_call *c;

	if (!l)
		return NULL;
	c = container_of(l, struct msg_call, waiting);
	c->ret = t->stopped ? -ECANCELED : 0;
	c->begin = msg_now_ms();
	list_add_tail(l, &t->running);
	return c;
}

void callers_done(struct msg_call *c)
{
	pthread_mutex_lock(&c->ep->callers.lock);
	list_del(&c->waiting);
	pthread_mutex_unlock(&c->ep->callers.lock);
}

static void *callers_run(void *arg)
{
	struct sci_ep *ep = arg;
	struct msg_callers *t = &ep->callers;
	struct msg_call *c;

	pthread_mutex_lock(&t->lock);
	while ((c = callers_take(t))) {
		pthread_mutex_unlock(&t->lock);
		call_run(c);
		pthread_mutex_lock(&t->lock);
	}
	t->threads--;
	pthread_cond_signal(&t->ended);
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

static unsigned int calls_count_slow(const struct msg_callers *t)
{
	uint64_t now = msg_now_ms();
	unsigned int n = 0;

	for (const struct list *l = t->running.next; l != &t->running; l = l->next)
		n += now - container_of(l, struct msg_call, waiting)->begin > CALL_SLOW_MS;
	return n;
}

/* Start a thread, if there is room for one. Context: the callers' lock is held. */
static int thread_add(struct sci_ep *ep)
{
	struct msg_callers *t = &ep->callers;
	pthread_t thread;
	int ret;

	if (t->threads >= THREADS_ALL_MAX ||
	    (t->threads >= THREADS_MAX && t->threads - calls_count_slow(t) >= THREADS_MAX))
		return 0;
	ret = sci_thread_start(&thread, callers_run, ep, ep_thread_name(ep, "sci-caller"));
	if (ret)
		return ret;
	pthread_detach(thread);
	t->threads++;
	return 0;
}

/* Note whether a call waits for room. Called with the endpoint's lock held. */
static void callers_note(struct sci_ep *ep, bool waits)
{
	struct msg_callers *t = &ep->callers;

	ep->n_suspect += waits - t->waits;
	t->waits = waits;
}

/* Start a thread if a call waits and there is room now. Called with the endpoint's lock held. */
void callers_check(struct sci_ep *ep)
{
	struct msg_callers *t = &ep->callers;
	bool waits;

	if (!t->waits)
		return;
	pthread_mutex_lock(&t->lock);
	waits = !list_empty(&t->waiting);
	if (waits)
		thread_add(ep);
	pthread_mutex_unlock(&t->lock);
	callers_note(ep, waits);
}

/* Make the call @c on a thread. Called with the endpoint's lock held. */
void callers_make(struct msg_call *c)
{
	struct sci_ep *ep = c->ep;
	struct msg_callers *t = &ep->callers;
	unsigned int before;
	bool waits;
	int ret;

	pthread_mutex_lock(&t->lock);
	list_add_tail(&c->waiting, &t->waiting);
	before = t->threads;
	ret = thread_add(ep);
	/*
	 * if no thread starts, make the call in this thread: blocking is better than no connection
	 */
	c = ret && !t->threads ? callers_take(t) : NULL;
	waits = !c && t->threads == before;
	pthread_mutex_unlock(&t->lock);
	if (waits)
		callers_note(ep, true);
	if (c)
		call_run(c);
	else
		/* with a real-time policy, this thread's next poll would not let the other one begin */
		sched_yield();
}

void callers_init(struct sci_ep *ep)
{
	list_init(&ep->callers.waiting);
	list_init(&ep->callers.running);
	pthread_mutex_init(&ep->callers.lock, NULL);
	sci_cond_init(&ep->callers.ended);
}

/* Cancel all calls and wait for their threads. The endpoint starts no further call. */
void callers_stop(struct sci_ep *ep)
{
	struct msg_callers *t = &ep->callers;
	struct timespec until;
	struct list *l;

	if (ep->net)
		ep->net->ops->rseg.cancel_connect(ep->net, NULL);
	pthread_mutex_lock(&t->lock);
	t->stopped = true;
	while (t->threads) {
		for (l = t->running.next; l != &t->running; l = l->next) {
			struct msg_call *c = container_of(l, struct msg_call, waiting);

			c->fabric->ops->rseg.cancel_connect(c->fabric, call_owner(c));
		}
		/* a call may make its connect only now: cancel it again */
		until = sci_deadline(CANCEL_MS);
		sci_cond_wait(&t->ended, &t->lock, CANCEL_MS, &until);
	}
	pthread_mutex_unlock(&t->lock);
	refusals_end(ep);
}

void callers_fini(struct sci_ep *ep)
{
	pthread_mutex_destroy(&ep->callers.lock);
	pthread_cond_destroy(&ep->callers.ended);
}
