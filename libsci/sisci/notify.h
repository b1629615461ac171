/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: events
 *
 * A notifier queues the events of one object, for a callback or for waiters.
 * Callbacks run on pool threads. Callbacks of one object run one at a time and in order. Callbacks
 * of different objects run at the same time, so a callback that blocks delays no other object. The
 * pool grows while all its threads are busy.
 */
#ifndef LIBSCI_NOTIFY_H
#define LIBSCI_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "libsci/sisci/export.h"

struct sci_job {
	struct sci_job *next;
	void (*run)(struct sci_job *job);
};

/* Queue a job for a pool thread. Return: 0; -errno: the pool has no thread, or is stopping. */
int sci_pool_submit(struct sci_job *job);

/* End the threads of the pool after they have run all queued jobs, and wait for their end. */
void sci_pool_stop(void);

/* Reset the pool in the child of a fork, which has none of the pool's threads. */
void sci_pool_fork(void);

bool sci_pool_thread(void);

struct sci_note {
	int reason;			/* sci_segment_cb_reason_t; 0 for other objects */
	sci_error_t status;
	unsigned int node;
	unsigned int adapter;
	unsigned int count;		/* number of events that were merged into this one */
	void (*cb)(void);		/* NULL, or a callback for this event alone */
	void *arg;
};

/* A callback of the program. @deliver calls @cb after a cast to its real type. */
struct sci_listener {
	/* delivers one event; if it returns false, no further callback runs */
	bool (*deliver)(const struct sci_listener *to,
			const struct sci_note *note);
	void (*cb)(void);		/* NULL: waiters take the events */
	void *arg;
	void *handle;
	void *priv;
};

struct sci_notifier;

struct sci_notifier *sci_notifier_new(const struct sci_listener *to);

/* How to queue an event if the last event in the queue has the same reason. */
enum sci_merge {
	SCI_MERGE_NO,			/* queue the event */
	SCI_MERGE_COUNT,		/* add to the last event's count */
	SCI_MERGE_ONCE,			/* drop the event */
};

/* Queue an event, without blocking. */
void sci_notify(struct sci_notifier *n, const struct sci_note *note,
		enum sci_merge merge);

/*
 * Wait for an event. This is a cancellation point. Errors: ILLEGAL_OPERATION (a callback
 * gets the events), TIMEOUT, CANCELLED.
 */
sci_error_t sci_notifier_wait(struct sci_notifier *n, struct sci_note *note,
			      unsigned int timeout);

/* End all waits, drop queued events, and accept no more events. */
void sci_notifier_cancel(struct sci_notifier *n);

/*
 * Wait until a running callback has returned, unless the caller is the callback. Call it after
 * sci_notifier_cancel(). @n may be NULL.
 */
void sci_notifier_quiesce(struct sci_notifier *n);

/* Cancel and quiesce the notifier, and free it. @n may be NULL. */
void sci_notifier_free(struct sci_notifier *n);

#endif
