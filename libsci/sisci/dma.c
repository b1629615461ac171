// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DMA queues of both generations: 1.10 (enqueue, post, wait, reset) and 2.x (start).
 * Each queue has a thread of its own, which the first post starts. obj.lock covers the
 * thread and the queue's state.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/fabric/core/fault.h"
#include "libsci/base/thread.h"
#include "libsci/sisci/object.h"

#define MAX_ENTRIES	(1u << 20)
#define PIECE		(256u << 10)	/* bytes between two checks of the abort flag */
#define ENGINES		(SCI_FLAG_DMA_GLOBAL | SCI_FLAG_DMA_SYSDMA |	\
			 SCI_FLAG_DMA_ADAPTER)

struct entry {
	struct sci_lseg_obj *lseg;	/* NULL: the local side is plain memory */
	char *mem;			/* plain memory; NULL: memory of the fabric */
	struct sci_rseg_obj *rseg;
	struct sci_dma_piece piece;
};

struct sci_dma_obj {
	struct sci_obj obj;
	unsigned int adapter;
	unsigned int max_entries;
	sci_dma_queue_state_t state;
	bool pull;			/* direction of all entries */
	struct entry *entries;
	unsigned int n_entries;
	sci_cb_dma_t cb;		/* callback of the current post, or NULL */
	void *arg;
	struct sci_notifier *events;	/* made by the first post with a callback */
	_Atomic bool abort;
	bool cancelled;			/* new waits end at once */
	bool stop;
	bool running;			/* the queue's thread exists */
	pthread_t thread;
	pthread_cond_t changed;
};

/* ---- the worker ---- */

static int dma_copy_mem(const struct entry *e, struct sci_rseg *r,
			const struct sci_dma_piece *p, bool pull)
{
	struct sci_rseg_status *st = sci_lib.ops->rseg.status(r);
	uint32_t errors = sci_link_errors(st->link);
	void *remote = NULL;
	int ret;

	ret = sci_lib.ops->rseg.map(r, p->remote, p->len,
				    pull ? SCI_MAP_READONLY : 0, &remote);
	if (ret)
		return ret;
	if (pull) {
		sci_link_refresh(st->link, remote, p->len);
		sci_pio_read(e->mem + p->local, remote, p->len, st->link->map);
	} else {
		sci_remote_write(remote, e->mem + p->local, p->len, st->link);
	}
	sci_fault_forget(remote, p->len);
	sci_lib.ops->rseg.store_barrier(sci_lib.fabric, r);
	sci_lib.ops->unmap(sci_lib.fabric, remote, p->len);
	return sci_link_errors(st->link) == errors ? 0 : -EIO;
}

static int entry_copy(struct sci_dma_obj *q, const struct entry *e)
{
	struct sci_lseg *local = e->lseg ? e->lseg->seg : NULL;
	struct sci_dma_piece p = e->piece;
	uint64_t left = e->piece.len;
	int ret = 0;

	while (left && !ret) {
		if (atomic_load(&q->abort))
			return -ECANCELED;
		p.len = left < PIECE ? left : PIECE;
		ret = e->mem ? dma_copy_mem(e, e->rseg->seg, &p, q->pull) :
			       sci_dma_copy(sci_lib.fabric, local, e->rseg->seg,
					    &p, q->pull);
		p.local += p.len;
		p.remote += p.len;
		left -= p.len;
	}
	return ret;
}

/*
 * A segment may be removed by force while its entry waits in a queue. The entry's
 * references keep the segment during the copy.
 */
static int entry_run(struct sci_dma_obj *q, const struct entry *e)
{
	struct sci_lseg_obj *s = NULL;
	struct sci_rseg_obj *r;
	int ret = -ENOTCONN;

	if (e->lseg) {
		s = sci_get(sci_handle(e->lseg), SCI_TYPE_LSEG);
		if (!s)
			return ret;
	}
	r = sci_get(sci_handle(e->rseg), SCI_TYPE_RSEG);
	if (r) {
		ret = entry_copy(q, e);
		sci_put(r);
	}
	if (s)
		sci_put(s);
	return ret;
}

static void entry_drop(struct sci_dma_obj *q)
{
	struct entry *e = &q->entries[--q->n_entries];

	if (e->lseg)
		sci_unuse(e->lseg);
	sci_unuse(e->rseg);
}

static void entries_drop(struct sci_dma_obj *q)
{
	while (q->n_entries)
		entry_drop(q);
}

static void dma_complete(struct sci_dma_obj *q, int ret)
{
	struct sci_note note = {
		.count = 1, .cb = (void (*)(void))q->cb, .arg = q->arg,
	};

	/* Release the segments before a waiter or callback is notified of the end. */
	entries_drop(q);
	if (!ret) {
		q->state = SCI_DMAQUEUE_DONE;
	} else if (ret == -ECANCELED) {
		q->state = SCI_DMAQUEUE_ABORTED;
		note.status = SCI_ERR_CANCELLED;
	} else {
		q->state = SCI_DMAQUEUE_ERROR;
		note.status = SCI_ERR_TRANSFER_FAILED;
	}
	pthread_cond_broadcast(&q->changed);
	if (q->cb)
		sci_notify(q->events, &note, SCI_MERGE_NO);
}

static void *dma_worker(void *arg)
{
	struct sci_dma_obj *q = arg;
	unsigned int i;
	int ret;

	pthread_mutex_lock(&q->obj.lock);
	while (!q->stop) {
		if (q->state != SCI_DMAQUEUE_POSTED) {
			pthread_cond_wait(&q->changed, &q->obj.lock);
			continue;
		}
		pthread_mutex_unlock(&q->obj.lock);
		for (i = 0, ret = 0; i < q->n_entries && !ret; i++)
			ret = entry_run(q, &q->entries[i]);
		pthread_mutex_lock(&q->obj.lock);
		dma_complete(q, ret);
	}
	pthread_mutex_unlock(&q->obj.lock);
	return NULL;
}

static sci_error_t worker_start(struct sci_dma_obj *q)
{
	if (!q->running)
		q->running = !sci_thread_start(&q->thread, dma_worker, q,
					       "sci-dma");
	return q->running ? SCI_ERR_OK : SCI_ERR_NOSPC;
}

/* ---- create and remove ---- */

static sci_error_t dma_create(sci_desc_t sd, sci_dma_queue_t *queue, unsigned int adapter,
			      unsigned int max_entries, unsigned int flags)
{
	struct sci_desc_obj *d;
	struct sci_dma_obj *q;
	sci_error_t err;

	if (flags & SCI_FLAG_DMA_PHDMA)
		return SCI_ERR_FLAG_NOT_IMPLEMENTED;
	if (!queue || !max_entries || max_entries > MAX_ENTRIES)
		return SCI_ERR_ILLEGAL_PARAMETER;
	d = sci_get(sd, SCI_TYPE_DESC);
	if (!d)
		return SCI_ERR_ILLEGAL_PARAMETER;
	err = sci_check_adapter(adapter);
	err = err ? err : sci_new(SCI_TYPE_DMA, sizeof(*q), &d->obj, &q);
	sci_put(d);
	if (err)
		return err;
	/* for the caller a vector is one entry, here it is up to DIS_DMA_MAX_VECLEN entries */
	q->entries = calloc(max_entries > DIS_DMA_MAX_VECLEN ? max_entries :
			    DIS_DMA_MAX_VECLEN, sizeof(*q->entries));
	if (!q->entries) {
		sci_release(q);
		return SCI_ERR_NOSPC;
	}
	q->adapter = adapter;
	q->max_entries = max_entries;
	sci_cond_init(&q->changed);
	*queue = sci_handle(q);
	sci_publish(q);
	return SCI_ERR_OK;
}

void SCICreateDMAQueue(sci_desc_t sd, sci_dma_queue_t *queue,
		       unsigned int localAdapterNo, unsigned int maxEntries,
		       unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, ENGINES | SCI_FLAG_DMA_PHDMA,
		 dma_create(sd, queue, localAdapterNo, maxEntries, flags));
}
SISCI_EXPORT(SCICreateDMAQueue);

void sci_dma_cancel(void *obj)
{
	struct sci_dma_obj *q = obj;

	atomic_store(&q->abort, true);
	pthread_mutex_lock(&q->obj.lock);
	q->cancelled = true;
	pthread_cond_broadcast(&q->changed);
	pthread_mutex_unlock(&q->obj.lock);
}

void sci_dma_destroy(void *obj)
{
	struct sci_dma_obj *q = obj;

	sci_close_obj(q, true);
	sci_retire(q);
	sci_dma_cancel(q);
	sci_drain(q);
	pthread_mutex_lock(&q->obj.lock);
	q->stop = true;
	pthread_cond_broadcast(&q->changed);
	pthread_mutex_unlock(&q->obj.lock);
	if (q->running)
		pthread_join(q->thread, NULL);
	sci_notifier_free(q->events);
	entries_drop(q);
	free(q->entries);
	pthread_cond_destroy(&q->changed);
	sci_release(q);
}

static bool dma_posted(struct sci_dma_obj *q)
{
	bool yes;

	pthread_mutex_lock(&q->obj.lock);
	yes = q->state == SCI_DMAQUEUE_POSTED;
	pthread_mutex_unlock(&q->obj.lock);
	return yes;
}

static sci_error_t dma_queue_remove(sci_dma_queue_t queue)
{
	struct sci_dma_obj *q = sci_get(queue, SCI_TYPE_DMA);
	sci_error_t err;

	if (!q)
		return SCI_ERR_ILLEGAL_PARAMETER;
	err = dma_posted(q) ? SCI_ERR_ILLEGAL_OPERATION : sci_close_obj(q, false);
	if (!err)
		sci_dma_destroy(q);
	sci_put(q);
	return err;
}

void SCIRemoveDMAQueue(sci_dma_queue_t queue, unsigned int flags,
		       sci_error_t *error)
{
	SCI_CALL(error, flags, 0, dma_queue_remove(queue));
}
SISCI_EXPORT(SCIRemoveDMAQueue);

/* ---- filling a queue; under obj.lock ---- */

struct request {
	sci_local_segment_t local;	/* NULL: @mem */
	char *mem;
	sci_remote_segment_t remote;
	const struct sci_dma_piece *pieces;
	unsigned int n;
	sci_cb_dma_t cb;
	void *arg;
	unsigned int flags;
};

static bool dma_fits(uint64_t off, uint64_t len, uint64_t size)
{
	return off <= size && len <= size - off;
}

static sci_error_t dma_check_piece(const struct sci_dma_piece *p, uint64_t local,
				   uint64_t remote,
				   const struct sci_adapter_info *info)
{
	if (!p->len || p->len % info->dma_size_align)
		return SCI_ERR_SIZE_ALIGNMENT;
	if (p->local % info->dma_offset_align ||
	    p->remote % info->dma_offset_align)
		return SCI_ERR_OFFSET_ALIGNMENT;
	return p->len <= info->dma_mtu && dma_fits(p->local, p->len, local) &&
	       dma_fits(p->remote, p->len, remote) ? SCI_ERR_OK :
						 SCI_ERR_OUT_OF_RANGE;
}

static sci_error_t dma_check_segments(struct sci_dma_obj *q,
				      struct sci_lseg_obj *s,
				      struct sci_rseg_obj *r, bool pull)
{
	sci_error_t err = SCI_ERR_OK;

	if (s) {
		pthread_mutex_lock(&s->obj.lock);
		if (!(s->prepared & 1u << q->adapter))
			err = SCI_ERR_SEGMENT_NOT_PREPARED;
		pthread_mutex_unlock(&s->obj.lock);
	}
	pthread_mutex_lock(&r->obj.lock);
	if (!err && (!r->seg || r->adapter != q->adapter ||
		     atomic_load(&sci_lib.ops->rseg.status(r->seg)->gone)))
		err = SCI_ERR_SEGMENT_NOT_CONNECTED;
	if (!err && !pull && sci_lib.ops->rseg.readonly(r->seg))
		err = SCI_ERR_ACCESS;
	pthread_mutex_unlock(&r->obj.lock);
	return err;
}

static sci_error_t dma_add_entry(struct sci_dma_obj *q, struct sci_lseg_obj *s,
				 struct sci_rseg_obj *r, const struct request *req,
				 const struct sci_dma_piece *piece)
{
	struct entry *e = &q->entries[q->n_entries];

	if (s && !sci_use(s))
		return SCI_ERR_ILLEGAL_PARAMETER;
	if (!sci_use(r)) {
		if (s)
			sci_unuse(s);
		return SCI_ERR_ILLEGAL_PARAMETER;
	}
	e->lseg = s;
	e->rseg = r;
	e->mem = s ? s->mem : req->mem;
	e->piece = *piece;
	q->n_entries++;
	return SCI_ERR_OK;
}

static sci_error_t dma_add_pieces(struct sci_dma_obj *q, struct sci_lseg_obj *s,
				  struct sci_rseg_obj *r,
				  const struct request *req)
{
	bool pull = req->flags & SCI_FLAG_DMA_READ;
	struct sci_adapter_info info;
	uint64_t local, remote;
	sci_error_t err;
	unsigned int i;

	/* a broadcast needs the segments of a group, and not one segment */
	if (req->flags & SCI_FLAG_BROADCAST && !r->broadcast)
		return SCI_ERR_ILLEGAL_FLAG;
	err = dma_check_segments(q, s, r, pull);
	err = err ? err : sci_adapter(q->adapter, &info);
	if (err)
		return err;
	local = s ? sci_lib.ops->lseg.size(s->seg) : UINT64_MAX;
	remote = sci_lib.ops->rseg.size(r->seg);
	for (i = 0; i < req->n && !err; i++)
		err = dma_check_piece(&req->pieces[i], local, remote, &info);
	for (i = 0; i < req->n && !err; i++)
		err = dma_add_entry(q, s, r, req, &req->pieces[i]);
	if (!err)
		q->pull = pull;
	return err;
}

static sci_error_t dma_fill(struct sci_dma_obj *q, const struct request *req)
{
	struct sci_lseg_obj *s = NULL;
	struct sci_rseg_obj *r;
	sci_error_t err;

	if (req->local || !req->mem) {
		s = sci_get(req->local, SCI_TYPE_LSEG);
		if (!s)
			return SCI_ERR_ILLEGAL_PARAMETER;
	}
	r = sci_get(req->remote, SCI_TYPE_RSEG);
	err = r ? dma_add_pieces(q, s, r, req) : SCI_ERR_ILLEGAL_PARAMETER;
	if (r)
		sci_put(r);
	if (s)
		sci_put(s);
	return err;
}

static bool dma_deliver(const struct sci_listener *to, const struct sci_note *note)
{
	sci_cb_dma_t cb = (sci_cb_dma_t)note->cb;

	cb(note->arg, to->handle, note->status);
	/* each post has one callback, so the result does not matter */
	return true;
}

static sci_error_t dma_post(struct sci_dma_obj *q, sci_cb_dma_t cb, void *arg,
			    unsigned int flags)
{
	const struct sci_listener to = {
		.deliver = dma_deliver,
		.cb = (void (*)(void))cb,
		.handle = sci_handle(q),
	};
	sci_error_t err = worker_start(q);

	if (err)
		return err;
	if (flags & SCI_FLAG_USE_CALLBACK && !q->events) {
		q->events = sci_notifier_new(&to);
		if (!q->events)
			return SCI_ERR_API_NOSPC;
	}
	q->cb = flags & SCI_FLAG_USE_CALLBACK ? cb : NULL;
	q->arg = arg;
	atomic_store(&q->abort, q->cancelled);
	q->state = SCI_DMAQUEUE_POSTED;
	pthread_cond_broadcast(&q->changed);
	return SCI_ERR_OK;
}

static sci_error_t dma_wait_done(struct sci_dma_obj *q, unsigned int timeout)
{
	const struct timespec deadline = sci_deadline(timeout);
	int ret = 0;

	while (q->state == SCI_DMAQUEUE_POSTED && !q->cancelled && !ret)
		ret = sci_cond_wait(&q->changed, &q->obj.lock, timeout,
				    &deadline);
	if (q->cancelled)
		return SCI_ERR_CANCELLED;
	return q->state == SCI_DMAQUEUE_POSTED ? SCI_ERR_TIMEOUT : SCI_ERR_OK;
}

static sci_error_t dma_outcome(const struct sci_dma_obj *q)
{
	switch (q->state) {
	case SCI_DMAQUEUE_ERROR:
		return SCI_ERR_TRANSFER_FAILED;
	case SCI_DMAQUEUE_ABORTED:
		return SCI_ERR_CANCELLED;
	default:
		return SCI_ERR_OK;
	}
}

static sci_error_t dma_reset(struct sci_dma_obj *q)
{
	if (q->state == SCI_DMAQUEUE_POSTED)
		return SCI_ERR_ILLEGAL_OPERATION;
	entries_drop(q);
	q->state = SCI_DMAQUEUE_IDLE;
	return SCI_ERR_OK;
}

/* ---- 1.10 ---- */

#define ENQUEUE_FLAGS	(ENGINES | SCI_FLAG_DMA_READ | SCI_FLAG_DMA_POST | \
			 SCI_FLAG_DMA_WAIT | SCI_FLAG_DMA_RESET)

static sci_error_t dma_enqueue(struct sci_dma_obj *q, const struct request *req)
{
	bool pull = req->flags & SCI_FLAG_DMA_READ;
	sci_dma_queue_state_t before = q->state;
	sci_error_t err;

	if (q->state != SCI_DMAQUEUE_IDLE &&
	    (q->state != SCI_DMAQUEUE_GATHER || q->pull != pull))
		return SCI_ERR_ILLEGAL_OPERATION;
	if (q->n_entries == q->max_entries)
		return SCI_ERR_MAX_ENTRIES;
	err = dma_fill(q, req);
	if (err)
		return err;
	q->state = SCI_DMAQUEUE_GATHER;
	/* WAIT and RESET imply POST, because both are errors before a post */
	if (req->flags & (SCI_FLAG_DMA_POST | SCI_FLAG_DMA_WAIT |
			  SCI_FLAG_DMA_RESET))
		err = dma_post(q, NULL, NULL, 0);
	if (err) {
		entry_drop(q);
		q->state = before;
		return err;
	}
	if (req->flags & (SCI_FLAG_DMA_WAIT | SCI_FLAG_DMA_RESET)) {
		err = dma_wait_done(q, SCI_INFINITE_TIMEOUT);
		err = err ? err : dma_outcome(q);
	}
	if (req->flags & SCI_FLAG_DMA_RESET &&
	    q->state != SCI_DMAQUEUE_GATHER)
		dma_reset(q);
	return err;
}

static sci_error_t queue_append_request(sci_dma_queue_t queue, const struct request *req,
					 sci_dma_queue_state_t *state)
{
	struct sci_dma_obj *q = sci_get(queue, SCI_TYPE_DMA);
	sci_error_t err;

	if (!q)
		return SCI_ERR_ILLEGAL_PARAMETER;
	pthread_mutex_lock(&q->obj.lock);
	err = dma_enqueue(q, req);
	*state = q->state;
	pthread_mutex_unlock(&q->obj.lock);
	sci_put(q);
	return err;
}

sci_dma_queue_state_t
SCIEnqueueDMATransfer(sci_dma_queue_t queue, sci_local_segment_t localSegment,
		      sci_remote_segment_t remoteSegment,
		      unsigned int localOffset, unsigned int remoteOffset,
		      unsigned int size, unsigned int flags,
		      sci_error_t *error)
{
	const struct sci_dma_piece piece = { localOffset, remoteOffset, size };
	const struct request req = {
		.local = localSegment, .remote = remoteSegment,
		.pieces = &piece, .n = 1, .flags = flags,
	};
	sci_dma_queue_state_t state = SCI_DMAQUEUE_ERROR;

	SCI_CALL(error, flags, ENQUEUE_FLAGS,
		 queue_append_request(queue, &req, &state));
	return state;
}
SISCI_EXPORT(SCIEnqueueDMATransfer);

static sci_error_t dma_queue_post(sci_dma_queue_t queue, sci_cb_dma_t cb, void *arg,
				  unsigned int flags)
{
	struct sci_dma_obj *q;
	sci_error_t err;

	if (flags & SCI_FLAG_USE_CALLBACK && !cb)
		return SCI_ERR_ILLEGAL_PARAMETER;
	q = sci_get(queue, SCI_TYPE_DMA);
	if (!q)
		return SCI_ERR_ILLEGAL_PARAMETER;
	pthread_mutex_lock(&q->obj.lock);
	err = q->state == SCI_DMAQUEUE_GATHER ?
	      dma_post(q, cb, arg, flags) : SCI_ERR_ILLEGAL_OPERATION;
	pthread_mutex_unlock(&q->obj.lock);
	sci_put(q);
	return err;
}

void SCIPostDMAQueue(sci_dma_queue_t queue, sci_cb_dma_t callback,
		     void *callbackArg, unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, SCI_FLAG_USE_CALLBACK,
		 dma_queue_post(queue, callback, callbackArg, flags));
}
SISCI_EXPORT(SCIPostDMAQueue);

static sci_error_t dma_queue_reset(sci_dma_queue_t queue)
{
	struct sci_dma_obj *q = sci_get(queue, SCI_TYPE_DMA);
	sci_error_t err;

	if (!q)
		return SCI_ERR_ILLEGAL_PARAMETER;
	pthread_mutex_lock(&q->obj.lock);
	err = dma_reset(q);
	pthread_mutex_unlock(&q->obj.lock);
	sci_put(q);
	return err;
}

void SCIResetDMAQueue(sci_dma_queue_t queue, unsigned int flags,
		      sci_error_t *error)
{
	SCI_CALL(error, flags, 0, dma_queue_reset(queue));
}
SISCI_EXPORT(SCIResetDMAQueue);

static sci_error_t dma_queue_abort(sci_dma_queue_t queue)
{
	struct sci_dma_obj *q = sci_get(queue, SCI_TYPE_DMA);

	if (!q)
		return SCI_ERR_ILLEGAL_PARAMETER;
	pthread_mutex_lock(&q->obj.lock);
	if (q->state == SCI_DMAQUEUE_POSTED) {
		atomic_store(&q->abort, true);
		dma_wait_done(q, SCI_INFINITE_TIMEOUT);
	}
	pthread_mutex_unlock(&q->obj.lock);
	sci_put(q);
	return SCI_ERR_OK;
}

void SCIAbortDMAQueue(sci_dma_queue_t queue, unsigned int flags,
		      sci_error_t *error)
{
	SCI_CALL(error, flags, 0, dma_queue_abort(queue));
}
SISCI_EXPORT(SCIAbortDMAQueue);

static sci_error_t dma_queue_state(sci_dma_queue_t queue,
				   sci_dma_queue_state_t *state)
{
	struct sci_dma_obj *q = sci_get(queue, SCI_TYPE_DMA);

	if (!q)
		return SCI_ERR_ILLEGAL_PARAMETER;
	pthread_mutex_lock(&q->obj.lock);
	*state = q->state;
	pthread_mutex_unlock(&q->obj.lock);
	sci_put(q);
	return SCI_ERR_OK;
}

sci_dma_queue_state_t SCIDMAQueueState(sci_dma_queue_t queue)
{
	sci_dma_queue_state_t state = SCI_DMAQUEUE_ERROR;
	sci_error_t err;

	SCI_RUN(err, 0, 0, dma_queue_state(queue, &state));
	return state;
}
SISCI_EXPORT(SCIDMAQueueState);

static sci_error_t dma_queue_wait(sci_dma_queue_t queue, unsigned int timeout,
				  sci_dma_queue_state_t *state)
{
	struct sci_dma_obj *q = sci_get(queue, SCI_TYPE_DMA);
	sci_error_t err;

	if (!q)
		return SCI_ERR_ILLEGAL_PARAMETER;
	pthread_mutex_lock(&q->obj.lock);
	if (q->state == SCI_DMAQUEUE_IDLE || q->state == SCI_DMAQUEUE_GATHER ||
	    q->cb)
		err = SCI_ERR_ILLEGAL_OPERATION;
	else
		err = dma_wait_done(q, timeout);
	*state = q->state;
	pthread_mutex_unlock(&q->obj.lock);
	sci_put(q);
	return err;
}

sci_dma_queue_state_t SCIWaitForDMAQueue(sci_dma_queue_t queue,
					 unsigned int timeout,
					 unsigned int flags,
					 sci_error_t *error)
{
	sci_dma_queue_state_t state = SCI_DMAQUEUE_ERROR;

	SCI_CALL(error, flags, 0, dma_queue_wait(queue, timeout, &state));
	return state;
}
SISCI_EXPORT(SCIWaitForDMAQueue);

/* ---- 2.x ---- */

#define START_FLAGS	(ENGINES | SCI_FLAG_DMA_READ | SCI_FLAG_DMA_WAIT | \
			 SCI_FLAG_USE_CALLBACK | SCI_FLAG_BROADCAST)

static sci_error_t dma_start(struct sci_dma_obj *q, const struct request *req)
{
	sci_dma_queue_state_t before = q->state;
	sci_error_t err;

	if (before == SCI_DMAQUEUE_POSTED || before == SCI_DMAQUEUE_GATHER)
		return SCI_ERR_ILLEGAL_OPERATION;
	err = dma_fill(q, req);
	err = err ? err : dma_post(q, req->cb, req->arg, req->flags);
	if (err) {
		entries_drop(q);
		return err;
	}
	if (!(req->flags & SCI_FLAG_DMA_WAIT))
		return SCI_ERR_OK;
	err = dma_wait_done(q, SCI_INFINITE_TIMEOUT);
	return err ? err : dma_outcome(q);
}

static sci_error_t dma_start_request(sci_dma_queue_t queue, const struct request *req)
{
	struct sci_dma_obj *q;
	sci_error_t err;

	if (req->flags & SCI_FLAG_USE_CALLBACK && !req->cb)
		return SCI_ERR_ILLEGAL_PARAMETER;
	q = sci_get(queue, SCI_TYPE_DMA);
	if (!q)
		return SCI_ERR_ILLEGAL_PARAMETER;
	pthread_mutex_lock(&q->obj.lock);
	err = dma_start(q, req);
	pthread_mutex_unlock(&q->obj.lock);
	sci_put(q);
	return err;
}

void SCIStartDmaTransfer(sci_dma_queue_t queue,
			 sci_local_segment_t localSegment,
			 sci_remote_segment_t remoteSegment,
			 size_t localOffset, size_t size, size_t remoteOffset,
			 sci_cb_dma_t callback, void *callbackArg,
			 unsigned int flags, sci_error_t *error)
{
	const struct sci_dma_piece piece = { localOffset, remoteOffset, size };
	const struct request req = {
		.local = localSegment, .remote = remoteSegment,
		.pieces = &piece, .n = 1, .cb = callback, .arg = callbackArg,
		.flags = flags,
	};

	SCI_CALL(error, flags, START_FLAGS, dma_start_request(queue, &req));
}
SISCI_EXPORT(SCIStartDmaTransfer);

static sci_error_t dma_start_vec(sci_dma_queue_t queue, struct request *req,
				 const dis_dma_vec_t *vec, size_t n)
{
	struct sci_dma_piece pieces[DIS_DMA_MAX_VECLEN];
	sci_error_t err;
	size_t i;

	if (!vec || !n)
		return SCI_ERR_ILLEGAL_PARAMETER;
	if (n > DIS_DMA_MAX_VECLEN)
		return SCI_ERR_MAX_ENTRIES;
	for (i = 0; i < n; i++)
		pieces[i] = (struct sci_dma_piece) {
			.local = vec[i].local_offset,
			.remote = vec[i].remote_offset, .len = vec[i].size,
		};
	req->pieces = pieces;
	req->n = (unsigned int)n;
	err = dma_start_request(queue, req);
	req->pieces = NULL;
	return err;
}

void SCIStartDmaTransferVec(sci_dma_queue_t queue,
			    sci_local_segment_t localSegment,
			    sci_remote_segment_t remoteSegment,
			    size_t vecLength, dis_dma_vec_t *disDmaVec,
			    sci_cb_dma_t callback, void *callbackArg,
			    unsigned int flags, sci_error_t *error)
{
	struct request req = {
		.local = localSegment, .remote = remoteSegment,
		.cb = callback, .arg = callbackArg, .flags = flags,
	};

	SCI_CALL(error, flags, START_FLAGS,
		 dma_start_vec(queue, &req, disDmaVec, vecLength));
}
SISCI_EXPORT(SCIStartDmaTransferVec);

void SCIStartDmaTransferMem(sci_dma_queue_t queue, void *localAddress,
			    sci_remote_segment_t remoteSegment, size_t size,
			    size_t remoteOffset, sci_cb_dma_t callback,
			    void *callbackArg, unsigned int flags,
			    sci_error_t *error)
{
	const struct sci_dma_piece piece = { 0, remoteOffset, size };
	const struct request req = {
		.mem = localAddress, .remote = remoteSegment,
		.pieces = &piece, .n = 1, .cb = callback, .arg = callbackArg,
		.flags = flags,
	};

	SCI_CALL(error, flags, START_FLAGS, dma_start_request(queue, &req));
}
SISCI_EXPORT(SCIStartDmaTransferMem);
