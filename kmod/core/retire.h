/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: mappings and memory that are given back without adapter->lock
 *
 * An adapter may need seconds to take back a mapping or exposed memory: it waits
 * for packets to a node that does not answer.  No thread may wait for
 * adapter->lock that long, least of all the thread that answers other nodes. So a mapping that
 * is not needed any more only goes to a list under the lock, and a work calls the adapter.
 */
#ifndef SCI_RETIRE_H
#define SCI_RETIRE_H

#include "adapter_private.h"

/**
 * struct sci_exposure - memory that other nodes can reach
 * @link: entry in sci_adapter.retired
 * @base: result of sci_adapter_ops.expose()
 * @charged: the user who is charged for it, until it is retired
 */
struct sci_exposure {
	struct list_head link;
	u64 base;
	struct sci_user *charged;
};

/**
 * struct sci_retired_call - a call that waits until older retired entries are given back
 * @link: entry in sci_adapter.retired
 * @fn: called with adapter->lock held; may free the call
 */
struct sci_retired_call {
	struct list_head link;
	void (*fn)(struct sci_retired_call *call);
};

void sci_retire_init(struct sci_adapter *a);

/* The functions below are called with adapter->lock held. */

/* Retire a mapping that is in no list and that no process has mapped. */
void sci_retire_mapping(struct sci_mapping *m);
/* Retire an exposure: other nodes must not reach the memory any more. */
void sci_retire_exposure(struct sci_adapter *a, struct sci_exposure *x);

/* Return a number that changes whenever an entry is retired. */
unsigned int sci_retire_count(struct sci_adapter *a);
/* Return whether the adapter still has to take back a retired entry. */
bool sci_retire_pending(struct sci_adapter *a);
/* Make a call when the adapter has taken back all entries that were retired before. */
void sci_retire_call(struct sci_adapter *a, struct sci_retired_call *call);

/**
 * sci_retire_flush() - wait until the adapter has taken back all retired entries
 *
 * The call does nothing in a kernel thread, which must not block for long. It waits for all
 * retired entries, so call it only if that is needed.
 *
 * Context: no locks of the core are held; mmap_lock may be.
 */
void sci_retire_flush(struct sci_adapter *a);

#endif
