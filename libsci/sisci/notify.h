/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: events
 *
 * A notifier queues the events of one object, for a callback or for waiters.
 * Callbacks run on pool threads: those of one object one at a time and in
 * order, those of different objects at once, so that one that blocks holds
 * nobody else up.  The pool grows as long as all its threads are busy.
 */
#ifndef LIBSCI_NOTIFY_H
#define LIBSCI_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "libsci/sisci/export.h"

/* Work for a pool thread. */
struct sci_job {
	struct sci_job *next;
	void (*run)(struct sci_job *job);
};

/* -errno: no thread to run it. */
int sci_pool_submit(struct sci_job *job);

/* Wait for the threads to finish and end them. */
void sci_pool_stop(void);

/* In a child: the parent's threads are not there. */
void sci_pool_fork(void);

/* Is this one of them? */
bool sci_pool_thread(void);

struct sci_note {
	int reason;			/* sci_segment_cb_reason_t, or 0 */
	sci_error_t status;
	unsigned int node;
	unsigned int adapter;
	unsigned int count;		/* how often, if merged */
};

/* A callback of the user: @cb has a type that @deliver knows. */
struct sci_listener {
	/* false: no more of them */
	bool (*deliver)(const struct sci_listener *to,
			const struct sci_note *note);
	void (*cb)(void);		/* NULL: nobody, waiters fetch */
	void *arg;
	void *handle;
	void *priv;
};

struct sci_notifier;

struct sci_notifier *sci_notifier_new(const struct sci_listener *to);

/* How to queue an event if the last one in the queue has the same reason. */
enum sci_merge {
	SCI_MERGE_NO,			/* queue another */
	SCI_MERGE_COUNT,		/* raise its count */
	SCI_MERGE_ONCE,			/* nothing: one stands for all */
};

/* Queue an event.  Never blocks. */
void sci_notify(struct sci_notifier *n, const struct sci_note *note,
		enum sci_merge merge);

/*
 * Wait for an event; a cancellation point.  ILLEGAL_OPERATION: a callback gets them; TIMEOUT;
 * CANCELLED.
 */
sci_error_t sci_notifier_wait(struct sci_notifier *n, struct sci_note *note,
			      unsigned int timeout);

/* No more events: waits end, queued events are dropped. */
void sci_notifier_cancel(struct sci_notifier *n);

/* Wait for a callback that runs, unless it is us; after a cancel.  May be NULL */
void sci_notifier_quiesce(struct sci_notifier *n);

/* Cancel, quiesce, and free; may be NULL */
void sci_notifier_free(struct sci_notifier *n);

#endif
