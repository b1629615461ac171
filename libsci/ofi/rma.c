// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Reads and writes of peers' memory: fi_rma(3). */
#include "libsci/ofi/onesided.h"

static ssize_t read_flags(struct sfi_ep *ep, const struct iovec *iov, size_t n,
			  fi_addr_t src, const struct sfi_place *places,
			  size_t n_places, uint64_t flags, void *context)
{
	const struct sfi_ask a = {
		.verb = SFI_READ, .in = iov, .n_in = n, .peer = src,
		.places = places, .n_places = n_places, .flags = flags,
		.context = context,
	};

	return sfi_ask(ep, &a);
}

static ssize_t rma_readv_one(struct fid_ep *fid, const struct iovec *iov, void **desc,
			     size_t n, fi_addr_t src, uint64_t addr, uint64_t key,
			     void *context)
{
	struct sfi_ep *ep = (struct sfi_ep *)fid;
	const struct sfi_place p = {
		.addr = addr, .key = key, .len = sfi_length(iov, n),
	};

	(void)desc;
	return read_flags(ep, iov, n, src, &p, 1, ep->tx.op_flags, context);
}

static ssize_t rma_read(struct fid_ep *fid, void *buf, size_t len, void *desc,
			fi_addr_t src, uint64_t addr, uint64_t key, void *context)
{
	const struct iovec iov = { .iov_base = buf, .iov_len = len };

	return rma_readv_one(fid, &iov, &desc, 1, src, addr, key, context);
}

/* Copy the places in the target's memory. Return -FI_EINVAL if there are too many. */
static int rma_places(const struct fi_msg_rma *m, struct sfi_place *p)
{
	if (m->rma_iov_count > SFI_RMA_IOV_MAX)
		return -FI_EINVAL;
	for (size_t i = 0; i < m->rma_iov_count; i++)
		p[i] = (struct sfi_place){
			.addr = m->rma_iov[i].addr, .key = m->rma_iov[i].key,
			.len = m->rma_iov[i].len,
		};
	return 0;
}

static ssize_t rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *m,
			   uint64_t flags)
{
	struct sfi_place p[SFI_RMA_IOV_MAX];
	int ret = rma_places(m, p);

	return ret ? ret : read_flags((struct sfi_ep *)fid, m->msg_iov,
				      m->iov_count, m->addr, p,
				      m->rma_iov_count, flags, m->context);
}

/* ---- writes ---- */

static ssize_t rma_write_one(struct fid_ep *fid, const struct iovec *iov, size_t n,
			     uint64_t data, fi_addr_t dest, uint64_t addr,
			     uint64_t key, uint64_t flags, void *context, bool untold)
{
	const struct sfi_place p = {
		.addr = addr, .key = key, .len = sfi_length(iov, n),
	};
	const struct sfi_ask a = {
		.verb = SFI_WRITE, .out = iov, .n_out = n, .peer = dest,
		.places = &p, .n_places = 1, .data = data, .flags = flags,
		.context = context, .untold = untold,
	};

	return sfi_ask((struct sfi_ep *)fid, &a);
}

static ssize_t rma_write_iov(struct fid_ep *fid, const struct iovec *iov, void **desc,
			     size_t n, fi_addr_t dest, uint64_t addr, uint64_t key,
			     void *context)
{
	struct sfi_ep *ep = (struct sfi_ep *)fid;

	(void)desc;
	return rma_write_one(fid, iov, n, 0, dest, addr, key, ep->tx.op_flags,
			     context, false);
}

static ssize_t rma_write_buf(struct fid_ep *fid, const void *buf, size_t len,
			     void *desc, fi_addr_t dest, uint64_t addr, uint64_t key,
			     void *context)
{
	const struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return rma_write_iov(fid, &iov, &desc, 1, dest, addr, key, context);
}

static ssize_t rma_writedata(struct fid_ep *fid, const void *buf, size_t len,
			     void *desc, uint64_t data, fi_addr_t dest, uint64_t addr,
			     uint64_t key, void *context)
{
	const struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct sfi_ep *ep = (struct sfi_ep *)fid;

	(void)desc;
	return rma_write_one(fid, &iov, 1, data, dest, addr, key,
			     ep->tx.op_flags | FI_REMOTE_CQ_DATA, context, false);
}

static ssize_t rma_inject(struct fid_ep *fid, const void *buf, size_t len,
			  fi_addr_t dest, uint64_t addr, uint64_t key)
{
	const struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return rma_write_one(fid, &iov, 1, 0, dest, addr, key, FI_INJECT, NULL, true);
}

static ssize_t rma_injectdata(struct fid_ep *fid, const void *buf, size_t len,
			      uint64_t data, fi_addr_t dest, uint64_t addr,
			      uint64_t key)
{
	const struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return rma_write_one(fid, &iov, 1, data, dest, addr, key,
			     FI_INJECT | FI_REMOTE_CQ_DATA, NULL, true);
}

static ssize_t rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *m,
			    uint64_t flags)
{
	struct sfi_place p[SFI_RMA_IOV_MAX];
	const struct sfi_ask a = {
		.verb = SFI_WRITE, .out = m->msg_iov, .n_out = m->iov_count,
		.peer = m->addr, .places = p, .n_places = m->rma_iov_count,
		.data = m->data, .flags = flags, .context = m->context,
	};
	int ret = rma_places(m, p);

	return ret ? ret : sfi_ask((struct sfi_ep *)fid, &a);
}

struct fi_ops_rma sfi_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = rma_read,
	.readv = rma_readv_one,
	.readmsg = rma_readmsg,
	.write = rma_write_buf,
	.writev = rma_write_iov,
	.writemsg = rma_writemsg,
	.inject = rma_inject,
	.writedata = rma_writedata,
	.injectdata = rma_injectdata,
};
