// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Asynchronous transfers from map to map, on pool threads. */

#include "libsci/base/thread.h"
#include "libsci/sisci/transfer.h"

#define PIECE	(256u << 10)		/* bytes between two checks of the abort flag */

struct sci_block_obj {
	struct sci_obj obj;
	struct sci_job job;
	struct sci_transfer t;
	sci_cb_block_transfer_t cb;	/* NULL: a caller waits for the outcome */
	void *arg;
	_Atomic bool abort;
	bool done;			/* this and the following fields are under obj.lock */
	bool cancelled;			/* new waits end at once */
	sci_error_t status;
	pthread_cond_t changed;
};

static sci_error_t block_run_pieces(struct sci_block_obj *b)
{
	bool backwards = sci_transfer_backwards(&b->t);
	size_t done = 0, n, from;
	sci_error_t err = SCI_ERR_OK;

	while (done < b->t.size && !err) {
		if (atomic_load(&b->abort))
			return SCI_ERR_CANCELLED;
		n = b->t.size - done < PIECE ? b->t.size - done : PIECE;
		from = backwards ? b->t.size - done - n : done;
		err = sci_transfer_run(&b->t, from, from + n);
		done += n;
	}
	return err;
}

static void transfer_finish(struct sci_block_obj *b, sci_error_t status)
{
	/* A removal of a map may be waiting for this transfer: release the maps first. */
	sci_unuse(b->t.src);
	sci_unuse(b->t.dst);
	pthread_mutex_lock(&b->obj.lock);
	b->status = status;
	b->done = true;
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->obj.lock);
}

static void block_free(struct sci_block_obj *b)
{
	sci_retire(b);
	sci_drain(b);
	pthread_cond_destroy(&b->changed);
	sci_release(b);
}

/* Run a transfer on a pool thread, and its callback. Then remove a transfer with a callback. */
static void block_run(struct sci_job *job)
{
	struct sci_block_obj *b = container_of(job, struct sci_block_obj, job);
	sci_cb_block_transfer_t cb = b->cb;
	sci_error_t status = block_run_pieces(b);

	transfer_finish(b, status);
	if (cb) {
		cb(b->arg, sci_handle(b), status);
		if (!sci_close_obj(b, true))
			block_free(b);
	}
	sci_put(b);
}

static sci_error_t block_start(struct sci_block_obj *b)
{
	sci_error_t err = sci_transfer_check(&b->t);

	if (err)
		return err;
	if (!sci_use(b->t.src))
		return SCI_ERR_ILLEGAL_PARAMETER;
	if (!sci_use(b->t.dst)) {
		sci_unuse(b->t.src);
		return SCI_ERR_ILLEGAL_PARAMETER;
	}
	sci_publish(b);
	/* the job holds a reference of its own */
	sci_get(sci_handle(b), SCI_TYPE_BLOCK);
	b->job.run = block_run;
	return SCI_ERR_OK;
}

static sci_error_t block_transfer_start(sci_map_t src, sci_map_t dst,
					sci_block_transfer_t *block,
					const struct sci_block_obj *want)
{
	struct sci_block_obj *b;
	sci_error_t err;

	if (!block)
		return SCI_ERR_ILLEGAL_PARAMETER;
	err = sci_new(SCI_TYPE_BLOCK, sizeof(*b), NULL, &b);
	if (err)
		return err;
	b->t = want->t;
	b->cb = want->cb;
	b->arg = want->arg;
	sci_cond_init(&b->changed);
	err = sci_transfer_get(&b->t, src, dst);
	if (!err) {
		struct sci_transfer t = b->t;

		err = block_start(b);
		if (!err) {
			*block = sci_handle(b);
			/* if the pool has no thread, this thread copies */
			if (sci_pool_submit(&b->job))
				block_run(&b->job);
		}
		sci_transfer_put(&t);
	}
	if (err) {
		pthread_cond_destroy(&b->changed);
		sci_release(b);
	}
	return err;
}

void SCITransferBlockAsync(sci_map_t sourceMap, size_t sourceOffset,
			   sci_map_t destinationMap, size_t destinationOffset,
			   size_t size, sci_block_transfer_t *block,
			   sci_cb_block_transfer_t callback, void *callbackArg,
			   unsigned int flags, sci_error_t *error)
{
	const struct sci_block_obj want = {
		.t = { .src_off = sourceOffset, .dst_off = destinationOffset,
		       .size = size },
		.cb = flags & SCI_FLAG_USE_CALLBACK ? callback : NULL,
		.arg = callbackArg,
	};

	SCI_CALL(error, flags, SCI_FLAG_BLOCK_READ | SCI_FLAG_USE_CALLBACK,
		 flags & SCI_FLAG_USE_CALLBACK && !callback ?
		 SCI_ERR_ILLEGAL_PARAMETER :
		 block_transfer_start(sourceMap, destinationMap, block, &want));
}
SISCI_EXPORT(SCITransferBlockAsync);

void sci_block_cancel(void *obj)
{
	struct sci_block_obj *b = obj;

	atomic_store(&b->abort, true);
	pthread_mutex_lock(&b->obj.lock);
	b->cancelled = true;
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->obj.lock);
}

void sci_block_destroy(void *obj)
{
	struct sci_block_obj *b = obj;

	/* A transfer with a callback removes itself. Wait until it does not use its maps any more. */
	if (b->cb) {
		pthread_mutex_lock(&b->obj.lock);
		while (!b->done)
			pthread_cond_wait(&b->changed, &b->obj.lock);
		pthread_mutex_unlock(&b->obj.lock);
	} else if (!sci_close_obj(b, true)) {
		block_free(b);
	}
}

static void block_wait_done(struct sci_block_obj *b, unsigned int timeout)
{
	const struct timespec deadline = sci_deadline(timeout);
	int ret = 0;

	while (!b->done && !b->cancelled && !ret)
		ret = sci_cond_wait(&b->changed, &b->obj.lock, timeout,
				    &deadline);
}

static sci_error_t block_wait(struct sci_block_obj *b, unsigned int timeout)
{
	sci_error_t err;

	if (b->cb)
		return SCI_ERR_ILLEGAL_OPERATION;
	pthread_mutex_lock(&b->obj.lock);
	block_wait_done(b, timeout);
	if (b->done)
		err = b->status;
	else
		err = b->cancelled ? SCI_ERR_CANCELLED : SCI_ERR_TIMEOUT;
	pthread_mutex_unlock(&b->obj.lock);
	/* One of several waiters removes the transfer; each gets the outcome. */
	if (err != SCI_ERR_TIMEOUT && b->done && !sci_close_obj(b, true))
		block_free(b);
	return err;
}

static sci_error_t block_wait_transfer(sci_block_transfer_t block,
				       unsigned int timeout)
{
	struct sci_block_obj *b = sci_get(block, SCI_TYPE_BLOCK);
	sci_error_t err;

	if (!b)
		return SCI_ERR_ILLEGAL_PARAMETER;
	err = block_wait(b, timeout);
	sci_put(b);
	return err;
}

void SCIWaitForBlockTransfer(sci_block_transfer_t block, unsigned int timeout,
			     unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, 0, block_wait_transfer(block, timeout));
}
SISCI_EXPORT(SCIWaitForBlockTransfer);

static sci_error_t block_transfer_abort(sci_block_transfer_t block)
{
	struct sci_block_obj *b = sci_get(block, SCI_TYPE_BLOCK);
	bool done;

	if (!b)
		return SCI_ERR_ILLEGAL_PARAMETER;
	pthread_mutex_lock(&b->obj.lock);
	done = b->done;
	if (!done)
		atomic_store(&b->abort, true);
	pthread_mutex_unlock(&b->obj.lock);
	sci_put(b);
	return done ? SCI_ERR_ILLEGAL_OPERATION : SCI_ERR_OK;
}

void SCIAbortBlockTransfer(sci_block_transfer_t block, unsigned int flags,
			   sci_error_t *error)
{
	SCI_CALL(error, flags, 0, block_transfer_abort(block));
}
SISCI_EXPORT(SCIAbortBlockTransfer);
