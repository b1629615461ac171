// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: the keeper
 *
 * Who has sent a message may not call again for long, and what has been sent
 * has to arrive all the same: where stores can get lost, a thread of the
 * endpoint's looks after them. It sleeps while nothing is dirty. Then it looks
 * every SCI_PARAM_CHECK_MS; if no thread has made progress since the last time,
 * it does what check_writes() does. It never handles what has come: that stays
 * with the program's threads.
 */

#include "libsci/msg/endpoint.h"

#include <errno.h>

#include "libsci/base/thread.h"

#define CALM_TICKS	20u		/* with nothing dirty, until it sleeps */

/* Something is dirty. Called with the endpoint's lock held. */
void keeper_wake(struct sci_ep *ep)
{
	struct msg_keeper *k = &ep->keeper;

	if (!k->runs || k->awake)
		return;
	pthread_mutex_lock(&k->lock);
	k->awake = true;
	pthread_cond_signal(&k->cond);
	pthread_mutex_unlock(&k->lock);
}

/* Sleeps until there may be something; false: for ever. */
static bool wait_for_work(struct msg_keeper *k)
{
	bool stop;

	pthread_mutex_lock(&k->lock);
	while (!k->awake && !k->stop)
		pthread_cond_wait(&k->cond, &k->lock);
	stop = k->stop;
	pthread_mutex_unlock(&k->lock);
	return !stop;
}

static bool wait_a_tick(struct msg_keeper *k, uint32_t ms)
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

/* Locked. */
static void look_after(struct sci_ep *ep)
{
	struct msg_keeper *k = &ep->keeper;

	if (list_empty(&ep->dirty)) {
		if (++k->calm < CALM_TICKS)
			return;
		pthread_mutex_lock(&k->lock);
		k->awake = false;
		pthread_mutex_unlock(&k->lock);
	} else if (ep->turns == k->turns) {
		check_writes(ep);
	}
	k->calm = 0;
	k->turns = ep->turns;
}

static void *keep(void *arg)
{
	struct sci_ep *ep = arg;
	struct msg_keeper *k = &ep->keeper;

	while (wait_for_work(k)) {
		uint32_t ms;

		msg_lock(&ep->lock);
		ms = (uint32_t)ep->params[SCI_PARAM_CHECK_MS];
		msg_unlock(&ep->lock);
		if (!wait_a_tick(k, ms))
			break;
		msg_lock(&ep->lock);
		look_after(ep);
		msg_unlock(&ep->lock);
	}
	return NULL;
}

int keeper_start(struct sci_ep *ep)
{
	struct msg_keeper *k = &ep->keeper;
	int ret;

	if (!ep->lossy)
		return 0;
	/* the program's one thread is no longer the only one */
	ep->lock.none = false;
	pthread_mutex_init(&k->lock, NULL);
	sci_cond_init(&k->cond);
	ret = sci_thread_start(&k->thread, keep, ep,
			       ep_thread_name(ep, "sci-keeper"));
	k->runs = !ret;
	if (ret) {
		pthread_mutex_destroy(&k->lock);
		pthread_cond_destroy(&k->cond);
	}
	return ret;
}

/* Unlocked. */
void keeper_stop(struct sci_ep *ep)
{
	struct msg_keeper *k = &ep->keeper;

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
