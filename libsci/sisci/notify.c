// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include "libsci/sisci/notify.h"

#include "libsci/base/cancel.h"
#include "libsci/base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define MAX_THREADS	1024
#define MAX_NOTES	1024		/* events that may be queued for one object */

/* ---- the pool ---- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct sci_job *first;
	struct sci_job **last;
	unsigned int queued;
	unsigned int idle;
	unsigned int n_threads;
	pthread_t threads[MAX_THREADS];
	bool stop;
} pool = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.work = PTHREAD_COND_INITIALIZER,
	.last = &pool.first,
};

static _Thread_local bool pool_thread;

bool sci_pool_thread(void)
{
	return pool_thread;
}

static struct sci_job *pool_next(void)
{
	struct sci_job *job;

	pool.idle++;
	while (!pool.first && !pool.stop)
		pthread_cond_wait(&pool.work, &pool.lock);
	pool.idle--;
	job = pool.first;
	if (job) {
		pool.first = job->next;
		if (!pool.first)
			pool.last = &pool.first;
		pool.queued--;
	}
	return job;
}

static void *pool_run(void *arg)
{
	struct sci_job *job;

	pool_thread = true;
	pthread_mutex_lock(&pool.lock);
	while ((job = pool_next())) {
		pthread_mutex_unlock(&pool.lock);
		job->run(job);
		pthread_mutex_lock(&pool.lock);
	}
	pthread_mutex_unlock(&pool.lock);
	return arg;
}

static int pool_grow(void)
{
	pthread_t *t = &pool.threads[pool.n_threads];
	int ret;

	ret = sci_thread_start(t, pool_run, NULL, "sci-callback");
	if (!ret)
		pool.n_threads++;
	return ret;
}

/* Start the first thread of the pool. Return: 0 or -errno. */
static int pool_start(void)
{
	int ret = 0;

	pthread_mutex_lock(&pool.lock);
	if (!pool.n_threads && !pool.stop)
		ret = pool_grow();
	pthread_mutex_unlock(&pool.lock);
	return ret;
}

static int pool_add(struct sci_job *job)
{
	int ret = 0;

	/*
	 * Stopping threads finish the queue first, including jobs that one of them adds. Jobs of
	 * other threads might come too late: refuse them.
	 */
	if (pool.stop && !pool_thread)
		return -ESHUTDOWN;
	if (!pool.stop && pool.queued >= pool.idle &&
	    pool.n_threads < MAX_THREADS)
		ret = pool_grow();
	/* If the pool has threads, one of them takes the job later. */
	if (!pool.n_threads)
		return ret;
	job->next = NULL;
	*pool.last = job;
	pool.last = &job->next;
	pool.queued++;
	pthread_cond_signal(&pool.work);
	return 0;
}

int sci_pool_submit(struct sci_job *job)
{
	int ret;

	pthread_mutex_lock(&pool.lock);
	ret = pool_add(job);
	pthread_mutex_unlock(&pool.lock);
	return ret;
}

void sci_pool_stop(void)
{
	unsigned int i, n;

	pthread_mutex_lock(&pool.lock);
	pool.stop = true;
	n = pool.n_threads;
	pthread_cond_broadcast(&pool.work);
	pthread_mutex_unlock(&pool.lock);
	for (i = 0; i < n; i++)
		pthread_join(pool.threads[i], NULL);
	pool.n_threads = 0;
	pool.stop = false;
}

void sci_pool_fork(void)
{
	pthread_mutex_init(&pool.lock, NULL);
	pthread_cond_init(&pool.work, NULL);
	pool.first = NULL;
	pool.last = &pool.first;
	pool.queued = 0;
	pool.idle = 0;
	pool.n_threads = 0;
	pool.stop = false;
	/* After a fork() in a callback, the child's main thread is a copy of a pool thread. */
	pool_thread = false;
}

/* ---- notifiers ---- */

struct item {
	struct item *next;
	struct sci_note note;
};

struct sci_notifier {
	struct sci_job job;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct sci_listener to;
	struct item *first;
	struct item *last;
	unsigned int n;
	unsigned int refs;		/* references of the object and of the pool */
	/* the notifier is queued in the pool, or a thread runs it */
	bool busy;
	bool running;			/* the callback runs */
	pthread_t runner;		/* the thread that runs the callback */
	bool dead;
};

static void event_drop_first(struct sci_notifier *n)
{
	struct item *item = n->first;

	n->first = item->next;
	if (!n->first)
		n->last = NULL;
	n->n--;
	free(item);
}

/* Unlock the notifier and drop a reference. Free the notifier with its last reference. */
static void notifier_unlock_unref(struct sci_notifier *n)
{
	bool last = !--n->refs;

	pthread_cond_broadcast(&n->changed);
	pthread_mutex_unlock(&n->lock);
	if (!last)
		return;
	while (n->first)
		event_drop_first(n);
	pthread_cond_destroy(&n->changed);
	pthread_mutex_destroy(&n->lock);
	free(n);
}

/* Deliver one event, then queue the notifier behind the other jobs of the pool. */
static void notifier_run(struct sci_job *job)
{
	struct sci_notifier *n = (struct sci_notifier *)(void *)job;
	struct sci_listener to;
	struct sci_note note;
	bool go_on;

	pthread_mutex_lock(&n->lock);
	if (n->first && !n->dead) {
		note = n->first->note;
		if (n->first->note.count > 1) {
			note.count = 1;
			n->first->note.count--;
		} else {
			event_drop_first(n);
		}
		to = n->to;
		n->running = true;
		n->runner = pthread_self();
		pthread_mutex_unlock(&n->lock);
		go_on = to.deliver(&to, &note);
		pthread_mutex_lock(&n->lock);
		n->running = false;
		pthread_cond_broadcast(&n->changed);
		if (!go_on)
			n->dead = true;
		if (n->first && !n->dead) {
			pthread_mutex_unlock(&n->lock);
			sci_pool_submit(&n->job);
			return;
		}
	}
	n->busy = false;
	notifier_unlock_unref(n);
}

struct sci_notifier *sci_notifier_new(const struct sci_listener *to)
{
	struct sci_notifier *n;

	/* start a pool thread now: a later failure would lose the callback */
	if (to->cb && pool_start())
		return NULL;
	n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	n->job.run = notifier_run;
	n->to = *to;
	n->refs = 1;
	pthread_mutex_init(&n->lock, NULL);
	sci_cond_init(&n->changed);
	return n;
}

static void notify_schedule(struct sci_notifier *n)
{
	if (n->busy || !n->to.cb)
		return;
	n->busy = true;
	n->refs++;
	if (sci_pool_submit(&n->job)) {
		/* the pool is stopping in SCITerminate(): drop the callback */
		n->busy = false;
		n->refs--;
	}
}

void sci_notify(struct sci_notifier *n, const struct sci_note *note,
		enum sci_merge merge)
{
	struct item *item;

	pthread_mutex_lock(&n->lock);
	if (n->dead)
		goto out;
	if (merge && n->last && n->last->note.reason == note->reason) {
		if (merge == SCI_MERGE_COUNT)
			n->last->note.count += note->count;
		goto wake;
	}
	item = malloc(sizeof(*item));
	if (!item)
		goto out;
	/*
	 * Limit the memory: a peer may connect and disconnect for ever. Drop the oldest event. An
	 * event with a callback of its own comes from a call of the program: keep all of these.
	 */
	if (n->n >= MAX_NOTES && !note->cb)
		event_drop_first(n);
	item->note = *note;
	item->next = NULL;
	if (n->last)
		n->last->next = item;
	else
		n->first = item;
	n->last = item;
	n->n++;
wake:
	notify_schedule(n);
	pthread_cond_signal(&n->changed);
out:
	pthread_mutex_unlock(&n->lock);
}

sci_error_t sci_notifier_wait(struct sci_notifier *n, struct sci_note *note,
			      unsigned int timeout)
{
	const struct timespec deadline = sci_deadline(timeout);
	sci_error_t err = SCI_ERR_OK;
	int ret = 0;

	if (n->to.cb)
		return SCI_ERR_ILLEGAL_OPERATION;
	pthread_mutex_lock(&n->lock);
	while (!n->first && !n->dead && !ret)
		ret = sci_cond_wait_cancelable(&n->changed, &n->lock,
					       timeout, &deadline);
	if (n->dead) {
		err = SCI_ERR_CANCELLED;
	} else if (n->first) {
		*note = n->first->note;
		event_drop_first(n);
	} else {
		err = SCI_ERR_TIMEOUT;
	}
	pthread_mutex_unlock(&n->lock);
	return err;
}

void sci_notifier_cancel(struct sci_notifier *n)
{
	pthread_mutex_lock(&n->lock);
	n->dead = true;
	while (n->first)
		event_drop_first(n);
	pthread_cond_broadcast(&n->changed);
	pthread_mutex_unlock(&n->lock);
}

void sci_notifier_quiesce(struct sci_notifier *n)
{
	if (!n)
		return;
	pthread_mutex_lock(&n->lock);
	while (n->running && !pthread_equal(n->runner, pthread_self()))
		pthread_cond_wait(&n->changed, &n->lock);
	pthread_mutex_unlock(&n->lock);
}

void sci_notifier_free(struct sci_notifier *n)
{
	if (!n)
		return;
	sci_notifier_cancel(n);
	sci_notifier_quiesce(n);
	pthread_mutex_lock(&n->lock);
	notifier_unlock_unref(n);
}
