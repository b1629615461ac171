// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DMA transfers. A queue of the kernel does its transfers in order. Each transfer has a queue for
 * itself, so that threads do not wait for each other. Queues are kept for later transfers.
 */

#include "libsci/fabric/dev/dev.h"

#include <errno.h>

#include "libsci/fabric/core/fault.h"

/* ---- queues ---- */

static int queue_take(struct dev *dev, struct dev_adapter *a, int *fd)
{
	struct sci_ioc_dma_create arg = {
		.size = sizeof(arg), .max_pieces = 1,
	};

	*fd = -1;
	pthread_mutex_lock(&dev->svc.lock);
	if (a->n_idle)
		*fd = a->idle[--a->n_idle];
	pthread_mutex_unlock(&dev->svc.lock);
	return *fd >= 0 ? 0 : dev_make(dev, a->fd, SCI_IOC_DMA_CREATE, &arg,
				       &arg.out_fd, fd);
}

static void queue_give_back(struct dev *dev, struct dev_adapter *a, int fd)
{
	pthread_mutex_lock(&dev->svc.lock);
	if (a->n_idle < DEV_IDLE_QUEUES) {
		a->idle[a->n_idle++] = fd;
		fd = -1;
	}
	pthread_mutex_unlock(&dev->svc.lock);
	dev_drop(dev, fd);
}

/* Transfer a piece on a queue that no other thread uses meanwhile. */
static int dma_transfer(int fd, struct sci_lseg *s, struct sci_rseg *r,
			const struct sci_dma_piece *piece, bool pull)
{
	const uint64_t max = r->adapter->dma_max;
	struct sci_dma_vec vec = {
		.local = piece->local, .remote = piece->remote,
	};
	struct sci_ioc_dma_submit arg = {
		.size = sizeof(arg),
		.flags = SCI_DMA_WAIT |
			 (pull ? (unsigned int)SCI_DMA_PULL : 0),
		.local_fd = s->fd, .remote_fd = r->fd,
		.vecs = (uintptr_t)&vec, .nr_vecs = 1,
	};
	uint64_t left = piece->len;
	int ret = 0;

	for (; left && !ret; left -= vec.length) {
		vec.length = left < max ? left : max;
		ret = dev_ioctl(fd, SCI_IOC_DMA_SUBMIT, &arg);
		vec.local += vec.length;
		vec.remote += vec.length;
	}
	return ret;
}

static int dma_copy_by_adapter(struct sci_lseg *s, struct sci_rseg *r,
			       const struct sci_dma_piece *piece, bool pull)
{
	int fd, ret;

	ret = queue_take(r->dev, r->adapter, &fd);
	if (ret)
		return ret;
	ret = dma_transfer(fd, s, r, piece, pull);
	queue_give_back(r->dev, r->adapter, fd);
	return ret;
}

/* ---- transfers without a queue ---- */

static int dma_copy(struct sci_rseg *r, void *local, void *remote, size_t len,
		    bool pull)
{
	struct sci_link_status *link = r->status.link;
	uint32_t errors = sci_link_errors(link);

	if (pull) {
		sci_link_refresh(link, remote, len);
		sci_pio_read(local, remote, len, link->map);
	} else {
		sci_remote_write(remote, local, len, link);
	}
	/*
	 * Deliver packets that a fault holds back: they must not arrive after the end of the
	 * transfer.
	 */
	sci_fault_forget(remote, len);
	dev_store_barrier(&r->dev->base, r);
	return sci_link_errors(link) == errors ? 0 : -EIO;
}

static int dma_copy_by_cpu(struct sci_lseg *s, struct sci_rseg *r,
			   const struct sci_dma_piece *piece, bool pull)
{
	size_t len = (size_t)piece->len;
	void *local, *remote;
	int ret;

	ret = dev_lseg_map(s, piece->local, len, 0, &local);
	if (ret)
		return ret;
	ret = dev_rseg_map(r, piece->remote, len,
			   pull ? SCI_MAP_READONLY : 0, &remote);
	if (!ret) {
		ret = dma_copy(r, local, remote, len, pull);
		dev_unmap(&r->dev->base, remote, len);
	}
	dev_unmap(&r->dev->base, local, len);
	return ret;
}

/*
 * Return true if the adapter can do the transfer. An adapter cannot inject faults, and cannot
 * reach segments of other adapters.
 */
static bool dma_is_possible(const struct sci_lseg *s, const struct sci_rseg *r)
{
	return r->adapter->caps & SCI_CAP_DMA && r->adapter->dma_max &&
	       r->adapter == dev_adapter(s->dev, 0) &&
	       !atomic_load(&sci_fault_enabled);
}

int dev_dma_copy(struct sci_lseg *s, struct sci_rseg *r,
		 const struct sci_dma_piece *piece, bool pull)
{
	if (atomic_load(&r->status.gone))
		return -ENOTCONN;
	if (!pull && r->readonly)
		return -EACCES;
	return dma_is_possible(s, r) ? dma_copy_by_adapter(s, r, piece, pull) :
				   dma_copy_by_cpu(s, r, piece, pull);
}
