// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: the retransmission thread
 *
 * A program may send a message and then not call the library for a long time. The message must
 * arrive all the same. Where stores can be lost, the endpoint has a thread that repeats lost
 * stores. The thread sleeps while no peer is dirty. Otherwise it wakes up every SCI_PARAM_CHECK_MS
 * milliseconds, and if no thread of the program has made progress since its last check, it calls
 * check_writes(). Only threads of the program receive messages.
 */

#include "libsci/msg/conn/conn.h"

#include <errno.h>

#include "libsci/base/thread.h"

#define IDLE_TICKS	20u		/* ticks without a dirty peer before the thread sleeps */

/* Wake the thread: a peer is dirty. Called with the endpoint's lock held. */
void retransmit_wake(struct sci_ep *ep)
{
	struct msg_retransmit *k = &ep->retransmit;

	if (!k->runs || k->awake)
		return;
	pthread_mutex_lock(&k->lock);
	k->awake = true;
	pthread_cond_signal(&k->cond);
	pthread_mutex_unlock(&k->lock);
}

/* Sleep until a peer is dirty. Return false if the thread must end. */
static bool retransmit_wait_work(struct msg_retransmit *k)
{
	bool stop;

	pthread_mutex_lock(&k->lock);
	while (!k->awake && !k->stop)
		pthread_cond_wait(&k->cond, &k->lock);
	stop = k->stop;
	pthread_mutex_unlock(&k->lock);
	return !stop;
}

static bool retransmit_wait_tick(struct msg_retransmit *k, uint32_t ms)
{
	struct timespec until = sci_deadline(ms);
	bool stop;

	pthread_mutex_lock(&k->lock);
	while (!k->stop &&
	       !sci_cond_wait(&k->cond, &k->lock, ms, &until))
		;
	stop = k->stop;
	pthread_mutex_unlock(&k->lock);
	return !stop;
}

/* Check for lost stores, or end the ticks without dirty peers. Context: the endpoint is locked. */
static void retransmit_tick(struct sci_ep *ep)
{
	struct msg_retransmit *k = &ep->retransmit;

	if (list_empty(&ep->dirty)) {
		if (++k->idle_ticks < IDLE_TICKS)
			return;
		pthread_mutex_lock(&k->lock);
		k->awake = false;
		pthread_mutex_unlock(&k->lock);
	} else if (ep->turns == k->turns) {
		check_writes(ep);
	}
	k->idle_ticks = 0;
	k->turns = ep->turns;
}

static void *retransmit_main(void *arg)
{
	struct sci_ep *ep = arg;
	struct msg_retransmit *k = &ep->retransmit;

	while (retransmit_wait_work(k)) {
		uint32_t ms;

		msg_lock(&ep->lock);
		ms = (uint32_t)ep->params.value[SCI_PARAM_CHECK_MS];
		msg_unlock(&ep->lock);
		if (!retransmit_wait_tick(k, ms))
			break;
		msg_lock(&ep->lock);
		retransmit_tick(ep);
		msg_unlock(&ep->lock);
	}
	return NULL;
}

int retransmit_start(struct sci_ep *ep)
{
	struct msg_retransmit *k = &ep->retransmit;
	int ret;

	if (!ep->lossy)
		return 0;
	/* a second thread uses the endpoint from now on */
	ep->lock.none = false;
	pthread_mutex_init(&k->lock, NULL);
	sci_cond_init(&k->cond);
	ret = sci_thread_start(&k->thread, retransmit_main, ep,
			       ep_thread_name(ep, "sci-resend"));
	k->runs = !ret;
	if (ret) {
		pthread_mutex_destroy(&k->lock);
		pthread_cond_destroy(&k->cond);
	}
	return ret;
}

/* Stop the thread. Called without the endpoint's lock. */
void retransmit_stop(struct sci_ep *ep)
{
	struct msg_retransmit *k = &ep->retransmit;

	if (!k->runs)
		return;
	pthread_mutex_lock(&k->lock);
	k->stop = true;
	pthread_cond_signal(&k->cond);
	pthread_mutex_unlock(&k->lock);
	pthread_join(k->thread, NULL);
	k->runs = false;
	pthread_mutex_destroy(&k->lock);
	pthread_cond_destroy(&k->cond);
}
