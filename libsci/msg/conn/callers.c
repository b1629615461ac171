// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The threads that make calls to other nodes. A thread ends when no call is waiting. */

#include "libsci/msg/conn/conn.h"

#include "libsci/base/thread.h"

#define THREADS_MAX	8u

static void *callers_run(void *arg)
{
	struct sci_ep *ep = arg;
	struct msg_callers *t = &ep->callers;
	struct list *l;

	pthread_mutex_lock(&t->lock);
	while ((l = list_pop(&t->waiting))) {
		pthread_mutex_unlock(&t->lock);
		call_run(container_of(l, struct msg_call, waiting));
		pthread_mutex_lock(&t->lock);
	}
	t->threads--;
	pthread_cond_signal(&t->ended);
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

/* Make the call @c on a thread. Called with the endpoint's lock held. */
void callers_make(struct msg_call *c)
{
	struct msg_callers *t = &c->ep->callers;
	pthread_t thread;
	struct list *l;
	int ret = 0;

	pthread_mutex_lock(&t->lock);
	list_add_tail(&c->waiting, &t->waiting);
	if (t->threads < THREADS_MAX) {
		ret = sci_thread_start(&thread, callers_run, c->ep,
				       ep_thread_name(c->ep, "sci-caller"));
		if (!ret)
			pthread_detach(thread);
		t->threads += !ret;
	}
	/*
	 * if no thread starts, make the call in this thread: blocking is better than no connection
	 */
	l = ret && !t->threads ? list_pop(&t->waiting) : NULL;
	pthread_mutex_unlock(&t->lock);
	if (l)
		call_run(container_of(l, struct msg_call, waiting));
}

void callers_init(struct sci_ep *ep)
{
	list_init(&ep->callers.waiting);
	pthread_mutex_init(&ep->callers.lock, NULL);
	pthread_cond_init(&ep->callers.ended, NULL);
}

/* Cancel all calls and wait for their threads. The endpoint starts no further call. */
void callers_stop(struct sci_ep *ep)
{
	struct msg_callers *t = &ep->callers;

	ep->ops->rseg.cancel_connect(ep->fabric, NULL);
	if (ep->net)
		ep->net->ops->rseg.cancel_connect(ep->net, NULL);
	pthread_mutex_lock(&t->lock);
	while (t->threads)
		pthread_cond_wait(&t->ended, &t->lock);
	pthread_mutex_unlock(&t->lock);
	refusals_end(ep);
}

void callers_fini(struct sci_ep *ep)
{
	pthread_mutex_destroy(&ep->callers.lock);
	pthread_cond_destroy(&ep->callers.ended);
}
