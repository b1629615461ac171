// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: asynchronous copies
 *
 * A handle has a list of DMA transfers. Each transfer has its own queue, so that transfers of both
 * directions can share a handle. The processor makes all other copies before the call returns.
 */
#include "libsci/smi/internal.h"

#include <stdlib.h>

#define DMA_MIN		4096u		/* bytes; shorter DMA needs FORCE_DMA */
#define TRIES		3		/* attempts of a DMA transfer */
#define MAGIC		0x736d6968u

struct transfer {
	struct transfer *next;
	sci_dma_queue_t queue;
	sci_remote_segment_t rseg;
	char *local;
	size_t offset, size;
	bool read;
};

struct smi_memcpy_handle_t_ {
	unsigned int magic;
	smi_memcpy_handle *variable;	/* the caller's handle, set to NULL at the end */
	bool posted;
	struct transfer *transfers;
	int err;
};

static bool handle_is_valid(const struct smi_memcpy_handle_t_ *h)
{
	return h && h->magic == MAGIC;
}

/* ---- transfers ---- */

static int transfer_start(struct transfer *t)
{
	sci_error_t err;

	SCIStartDmaTransferMem(t->queue, t->local, t->rseg, t->size, t->offset, NULL, NULL,
			       t->read ? SCI_FLAG_DMA_READ : 0, &err);
	return smi_error_of(err);
}

/* Wait for a transfer. Return: 0; SMI_ERR_PENDING: with a timeout of 0, not complete. */
static int transfer_wait(struct transfer *t, unsigned int timeout)
{
	sci_dma_queue_state_t state;
	sci_error_t err;

	for (int i = 0; i < TRIES; i++) {
		state = SCIDMAQueueState(t->queue);
		if (state == SCI_DMAQUEUE_POSTED && !timeout)
			return SMI_ERR_PENDING;
		if (state == SCI_DMAQUEUE_POSTED)
			state = SCIWaitForDMAQueue(t->queue, timeout, 0, &err);
		if (state == SCI_DMAQUEUE_DONE)
			return SMI_SUCCESS;
		if (transfer_start(t))
			break;
	}
	return SMI_ERR_TRANSFER;
}

static void transfer_free(struct transfer *t)
{
	sci_error_t err;

	if (SCIDMAQueueState(t->queue) == SCI_DMAQUEUE_POSTED) {
		SCIAbortDMAQueue(t->queue, 0, &err);
		SCIWaitForDMAQueue(t->queue, SCI_INFINITE_TIMEOUT, 0, &err);
	}
	SCIRemoveDMAQueue(t->queue, 0, &err);
	free(t);
}

static int transfer_add(struct smi_memcpy_handle_t_ *h, struct smi_segment *s, void *local,
			size_t offset, size_t size, bool read)
{
	struct transfer *t = calloc(1, sizeof(*t));
	sci_error_t err;

	if (!t)
		return SMI_ERR_NOMEM;
	*t = (struct transfer) { h->transfers, NULL, s->rseg, local, offset, size, read };
	SCICreateDMAQueue(smi.sd, &t->queue, s->adapter, 1, 0, &err);
	if (err) {
		free(t);
		return SMI_ERR_NOMEM;
	}
	h->transfers = t;
	return SMI_SUCCESS;
}

/* ---- handles ---- */

/* Get the handle in *@variable; create one if it is NULL. *@fresh: set if the handle is new. */
static int handle_get(smi_memcpy_handle *variable, bool *fresh)
{
	struct smi_memcpy_handle_t_ *h = *variable;

	*fresh = !h;
	if (h)
		return handle_is_valid(h) && !h->posted ? SMI_SUCCESS : SMI_ERR_PARAM;
	h = calloc(1, sizeof(*h));
	if (!h)
		return SMI_ERR_NOMEM;
	h->magic = MAGIC;
	h->variable = variable;
	*variable = h;
	return SMI_SUCCESS;
}

static void handle_end(struct smi_memcpy_handle_t_ *h)
{
	struct transfer *t;

	while ((t = h->transfers)) {
		h->transfers = t->next;
		transfer_free(t);
	}
	if (*h->variable == h)
		*h->variable = NULL;
	h->magic = 0;
	free(h);
}

SMI_API smi_error_t SMI_Mempost(smi_memcpy_handle h)
{
	SMI_REFUSE(!handle_is_valid(h) || h->posted);
	h->posted = true;
	for (struct transfer *t = h->transfers; t; t = t->next)
		if (transfer_start(t))
			h->err = SMI_ERR_TRANSFER;
	return SMI_SUCCESS;
}

/* Return whether a handle remains valid after handle_test() has returned @err. */
static bool handle_is_kept(int err)
{
	return err == SMI_ERR_PARAM || err == SMI_ERR_NOTPOSTED || err == SMI_ERR_PENDING;
}

static int handle_test(struct smi_memcpy_handle_t_ *h, unsigned int timeout)
{
	int err;

	if (!handle_is_valid(h))
		return SMI_ERR_PARAM;
	if (!h->posted)
		return SMI_ERR_NOTPOSTED;
	for (struct transfer *t = h->transfers; t; t = t->next) {
		err = transfer_wait(t, timeout);
		if (err == SMI_ERR_PENDING)
			return err;
		if (err)
			h->err = err;
	}
	return h->err;
}

/* Wait for all handles, or test them if @timeout is 0. Free all once no handle is pending. */
static int handles_wait(int count, smi_memcpy_handle *handles, smi_error_t *status,
			unsigned int timeout)
{
	int i, err = SMI_SUCCESS;

	SMI_REFUSE(count < 0 || (count && (!handles || !status)));
	for (i = 0; i < count; i++) {
		status[i] = handle_test(handles[i], timeout);
		if (status[i] == SMI_ERR_PENDING)
			err = SMI_ERR_PENDING;
		else if (status[i] && !err)
			err = SMI_ERR_OTHER;
	}
	for (i = 0; i < count && err != SMI_ERR_PENDING; i++)
		if (!handle_is_kept(status[i]))
			handle_end(handles[i]);
	return err;
}

static int handle_wait(smi_memcpy_handle h, unsigned int timeout)
{
	smi_error_t status = SMI_ERR_NOINIT;

	handles_wait(1, &h, &status, timeout);
	return status;
}

SMI_API smi_error_t SMI_Memwait(smi_memcpy_handle h)
{
	return handle_wait(h, SCI_INFINITE_TIMEOUT);
}

SMI_API smi_error_t SMI_Memtest(smi_memcpy_handle h)
{
	return handle_wait(h, 0);
}

SMI_API smi_error_t SMI_MemwaitAll(int count, smi_memcpy_handle *handles,
				   smi_error_t *status)
{
	return handles_wait(count, handles, status, SCI_INFINITE_TIMEOUT);
}

SMI_API smi_error_t SMI_MemtestAll(int count, smi_memcpy_handle *handles,
				   smi_error_t *status)
{
	return handles_wait(count, handles, status, 0);
}

/* ---- Imemcpy ---- */

static bool dma_is_aligned(size_t a, size_t b, size_t size)
{
	int align = 1;

	SMI_Query(SMI_Q_SCI_DMA_OFFSET_ALIGN, SMI_ADPT_DEFAULT, &align);
	return align <= 1 || !((a | b | size) % (size_t)align);
}

/* Return whether a range is shared memory of this node, which DMA can read and write. */
static bool range_is_own_node(const void *addr, size_t size)
{
	struct smi_region *r = smi_region_at(addr, size, true);
	struct smi_segment *s = r ? smi_segment_at(r, addr) : NULL;

	return s && !s->rseg;
}

/* Start a DMA transfer. Return: SMI_ERR_NOTIMPL: the copy cannot use DMA; or another error. */
static int copy_start_dma(struct smi_memcpy_handle_t_ *h, void *dst, void *src, size_t size,
			  int flags)
{
	for (int read = 0; read < 2; read++) {
		char *remote = read ? src : dst, *local = read ? dst : src;
		struct smi_region *r = smi_region_at(remote, size, true);
		struct smi_segment *s = r ? smi_segment_at(r, remote) : NULL;
		size_t offset;

		if (!s || !s->rseg || !range_is_own_node(local, size))
			continue;
		offset = s->skip + (smi_one_segment(r) ? r->offset : 0) +
			 (size_t)(remote - s->addr);
		if (size > s->mapped - (size_t)(remote - s->addr) ||
		    !dma_is_aligned((size_t)local, offset, size) ||
		    (size < DMA_MIN && !(flags & SMI_MEMCPY_FORCE_DMA)))
			continue;
		return transfer_add(h, s, local, offset, size, read);
	}
	return SMI_ERR_NOTIMPL;
}

SMI_API smi_error_t SMI_Imemcpy(void *dst, void *src, size_t size, int flags,
				smi_memcpy_handle *handle)
{
	bool fresh;
	int err;

	SMI_REFUSE(!handle || flags & ~SMI_MEMCPY_FLAGS_ALL);
	err = handle_get(handle, &fresh);
	if (err)
		return err;
	err = size ? copy_start_dma(*handle, dst, src, size, flags) : SMI_SUCCESS;
	if (err == SMI_ERR_NOTIMPL)
		err = SMI_Memcpy(dst, src, size, flags);
	if (err && fresh)
		handle_end(*handle);
	if (!err && !(flags & SMI_MEMCPY_ENQUEUE))
		err = SMI_Mempost(*handle);
	return err;
}

/* ---- put and get ---- */

/*
 * Copy to or from an import. The processor copies if DMA cannot: then the region is mapped, because
 * only an RDMA region of another node is not.
 */
static int access_start(int region, int offset, void *local, size_t size, bool read,
			smi_memcpy_handle *handle)
{
	struct smi_region *r = smi_region_get(region), *own = smi_region_at(local, size, false);
	size_t at = (size_t)offset;
	struct smi_segment *s;
	bool fresh, aligned;
	int err;

	SMI_REFUSE(!handle || !r || !smi_is_import(r) || offset < 0 || at > r->size ||
		   size > r->size - at || !own || own->type != SMI_SHM_LOCAL);
	s = &r->segs[0];
	aligned = dma_is_aligned((size_t)local, at, size);
	if (!aligned && r->type == SMI_SHM_RDMA)
		return SMI_ERR_BADALIGN;
	err = handle_get(handle, &fresh);
	if (err)
		return err;
	if (size && s->rseg && aligned)
		err = transfer_add(*handle, s, local, s->skip + r->offset + at, size, read);
	else if (size)
		err = smi_copy_checked(s, s->addr + at, local, size, 0, read);
	if (err && fresh)
		handle_end(*handle);
	return err ? err : SMI_Mempost(*handle);
}

SMI_API smi_error_t SMI_Iput(int region, int offset, void *src, size_t size,
			     smi_memcpy_handle *handle)
{
	return access_start(region, offset, src, size, false, handle);
}

SMI_API smi_error_t SMI_Iget(void *dst, int region, int offset, size_t size,
			     smi_memcpy_handle *handle)
{
	return access_start(region, offset, dst, size, true, handle);
}

SMI_API smi_error_t SMI_Put(int region, int offset, void *src, size_t size)
{
	smi_memcpy_handle h = NULL;
	int err = SMI_Iput(region, offset, src, size, &h);

	return err ? err : SMI_Memwait(h);
}

SMI_API smi_error_t SMI_Get(void *dst, int region, int offset, size_t size)
{
	smi_memcpy_handle h = NULL;
	int err = SMI_Iget(dst, region, offset, size, &h);

	return err ? err : SMI_Memwait(h);
}
