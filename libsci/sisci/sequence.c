// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * A sequence reports whether all stores since its start were delivered. The adapter counts lost
 * packets, and a sequence stores the count at its start (SCI-MPICH paper, section on error
 * detection; DECK paper).
 */

#include "libsci/base/barrier.h"
#include "libsci/fabric/core/fault.h"
#include "libsci/sisci/object.h"

/* Status for maps of this process's own memory, in which no store is lost. */
static struct sci_link_status local_link;
static struct sci_rseg_status local_status = { .link = &local_link };

/* Status for imports that have been disconnected. */
static struct sci_rseg_status gone_status = { .gone = 1,
					      .link = &local_link };

/* This lock covers the lists of sequences. The data path never takes it. */
static pthread_mutex_t seq_lock = PTHREAD_MUTEX_INITIALIZER;

/* Sequences in a fabric without coherent caches: their calls write back and refresh lines. */
static struct list stale_seqs = { &stale_seqs, &stale_seqs };

static void sequence_write_back(struct sci_seq_obj *q)
{
	char *addr = atomic_load_explicit(&q->addr, memory_order_acquire);

	if (addr)
		sci_link_write_back(sci_lib.link, addr, q->size);
}

static void sequence_refresh(struct sci_seq_obj *q)
{
	char *addr = atomic_load_explicit(&q->addr, memory_order_acquire);

	if (addr)
		sci_link_refresh(sci_lib.link, addr, q->size);
}

void sci_seq_unmapped(struct sci_map_obj *map)
{
	struct list *pos, *n;

	pthread_mutex_lock(&seq_lock);
	list_for_each_safe(pos, n, &stale_seqs) {
		struct sci_seq_obj *q = container_of(pos, struct sci_seq_obj, stale);

		if (q->map != map)
			continue;
		/* write the lines back: the stores must arrive, as they would without a cache */
		sequence_write_back(q);
		atomic_store(&q->addr, NULL);
		q->map = NULL;
	}
	pthread_mutex_unlock(&seq_lock);
}

void sci_seq_fork(void)
{
	list_init(&stale_seqs);
	pthread_mutex_init(&seq_lock, NULL);
}

void sci_seq_orphan(struct sci_rseg_obj *r)
{
	struct list *pos, *n;

	pthread_mutex_lock(&seq_lock);
	list_for_each_safe(pos, n, &r->sequences) {
		struct sci_seq_obj *q = container_of(pos, struct sci_seq_obj,
						     link);

		atomic_store(&q->status, &gone_status);
		q->rseg = NULL;
		list_del(&q->link);
	}
	pthread_mutex_unlock(&seq_lock);
}

static sci_error_t sequence_create(sci_map_t map, sci_sequence_t *sequence)
{
	struct sci_seq_obj *q;
	struct sci_map_obj *m;
	sci_error_t err;

	if (!sequence)
		return SCI_ERR_ILLEGAL_PARAMETER;
	m = sci_get(map, SCI_TYPE_MAP);
	if (!m)
		return SCI_ERR_ILLEGAL_PARAMETER;
	err = sci_new(SCI_TYPE_SEQUENCE, sizeof(*q), NULL, &q);
	if (!err) {
		list_init(&q->link);
		list_init(&q->stale);
		q->rseg = m->rseg;
		atomic_store(&q->status, m->status ? m->status :
						     &local_status);
		if (q->rseg) {
			pthread_mutex_lock(&seq_lock);
			list_add_tail(&q->link, &q->rseg->sequences);
			pthread_mutex_unlock(&seq_lock);
		}
		if (sci_lib.link->cache) {
			q->map = m;
			q->size = m->size;
			atomic_store(&q->addr, m->addr);
			pthread_mutex_lock(&seq_lock);
			list_add_tail(&q->stale, &stale_seqs);
			pthread_mutex_unlock(&seq_lock);
		}
		*sequence = sci_handle(q);
		sci_publish(q);
	}
	sci_put(m);
	return err;
}

void SCICreateMapSequence(sci_map_t map, sci_sequence_t *sequence,
			  unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, SCI_FLAG_FAST_BARRIER, sequence_create(map, sequence));
}
SISCI_EXPORT(SCICreateMapSequence);

void sci_seq_destroy(void *obj)
{
	struct sci_seq_obj *q = obj;

	sci_close_obj(q, true);
	sci_retire(q);
	sci_drain(q);
	pthread_mutex_lock(&seq_lock);
	list_del(&q->link);
	list_del(&q->stale);
	pthread_mutex_unlock(&seq_lock);
	sci_release(q);
}

static sci_error_t sequence_remove(sci_sequence_t sequence)
{
	struct sci_seq_obj *q = sci_get(sequence, SCI_TYPE_SEQUENCE);
	sci_error_t err;

	if (!q)
		return SCI_ERR_ILLEGAL_PARAMETER;
	err = sci_close_obj(q, false);
	if (!err)
		sci_seq_destroy(q);
	sci_put(q);
	return err;
}

void SCIRemoveSequence(sci_sequence_t sequence, unsigned int flags,
		       sci_error_t *error)
{
	SCI_CALL(error, flags, 0, sequence_remove(sequence));
}
SISCI_EXPORT(SCIRemoveSequence);

/* ---- the data path ---- */

static sci_error_t sequence_look_up(sci_sequence_t sequence, unsigned int flags,
				    unsigned int known, struct sci_seq_obj **q)
{
	if (!sci_up())
		return SCI_ERR_NOT_INITIALIZED;
	if (flags & ~known)
		return SCI_ERR_ILLEGAL_FLAG;
	*q = sci_peek(sequence, SCI_TYPE_SEQUENCE);
	return *q ? SCI_ERR_OK : SCI_ERR_ILLEGAL_PARAMETER;
}

static void sequence_set_error(sci_error_t *error, sci_error_t err)
{
	if (error)
		*error = err;
}

sci_sequence_status_t SCIStartSequence(sci_sequence_t sequence,
				       unsigned int flags, sci_error_t *error)
{
	struct sci_rseg_status *st;
	struct sci_seq_obj *q;
	sci_error_t err = sequence_look_up(sequence, flags, 0, &q);

	sequence_set_error(error, err);
	if (err)
		return SCI_SEQ_NOT_RETRIABLE;
	st = atomic_load_explicit(&q->status, memory_order_acquire);
	if (atomic_load_explicit(&st->gone, memory_order_acquire))
		return SCI_SEQ_NOT_RETRIABLE;
	if (sci_link_down(st->link))
		return SCI_SEQ_PENDING;
	atomic_store_explicit(&q->errors, sci_link_errors(st->link),
			      memory_order_relaxed);
	sequence_refresh(q);
	atomic_store_explicit(&q->started, true, memory_order_release);
	return SCI_SEQ_OK;
}
SISCI_EXPORT(SCIStartSequence);

static sci_sequence_status_t sequence_check(struct sci_seq_obj *q)
{
	struct sci_rseg_status *st = atomic_load_explicit(&q->status,
							  memory_order_acquire);
	uint32_t errors;

	sci_remote_check(st);
	errors = sci_link_errors(st->link);
	if (atomic_load_explicit(&st->gone, memory_order_acquire))
		return SCI_SEQ_NOT_RETRIABLE;
	if (sci_link_down(st->link))
		return SCI_SEQ_PENDING;
	if (atomic_exchange_explicit(&q->errors, errors,
				     memory_order_relaxed) != errors)
		return SCI_SEQ_RETRIABLE;
	return SCI_SEQ_OK;
}

sci_sequence_status_t SCICheckSequence(sci_sequence_t sequence,
				       unsigned int flags, sci_error_t *error)
{
	struct sci_seq_obj *q;
	sci_error_t err;

	err = sequence_look_up(sequence, flags,
			       SCI_FLAG_NO_FLUSH | SCI_FLAG_NO_STORE_BARRIER, &q);
	if (!err && !atomic_load_explicit(&q->started, memory_order_acquire))
		err = SCI_ERR_ILLEGAL_OPERATION;
	sequence_set_error(error, err);
	if (err)
		return SCI_SEQ_NOT_RETRIABLE;
	if (!(flags & SCI_FLAG_NO_STORE_BARRIER)) {
		sequence_write_back(q);
		sci_remote_barrier(sci_lib.fabric, NULL);
	}
	return sequence_check(q);
}
SISCI_EXPORT(SCICheckSequence);

void SCIStoreBarrier(sci_sequence_t sequence, unsigned int flags)
{
	struct sci_seq_obj *q;

	if (sequence_look_up(sequence, flags, 0, &q))
		return;
	sequence_write_back(q);
	sci_remote_barrier(sci_lib.fabric, NULL);
}
SISCI_EXPORT(SCIStoreBarrier);

void SCIFlushReadBuffers(sci_sequence_t sequence)
{
	struct sci_seq_obj *q;

	if (sequence_look_up(sequence, 0, 0, &q))
		return;
	sequence_refresh(q);
	sci_load_barrier();
}
SISCI_EXPORT(SCIFlushReadBuffers);

/* SCIFlush() takes no lock and no memory: programs cancel threads inside it. */
void SCIFlush(sci_sequence_t sequence, unsigned int flags)
{
	struct sci_seq_obj *q;

	if (flags & ~SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY || !sci_up())
		return;
	if (!sequence || !sequence_look_up(sequence, 0, 0, &q))
		sci_store_barrier();
}
SISCI_EXPORT(SCIFlush);
