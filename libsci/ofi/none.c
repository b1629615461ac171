// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* libfabric calls whatever stands in a table: what is not there has to say so. */
#include "libsci/ofi/ofi.h"

int sfi_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	(void)fid, (void)bfid, (void)flags;
	return -FI_ENOSYS;
}

int sfi_no_control(struct fid *fid, int command, void *arg)
{
	(void)fid, (void)command, (void)arg;
	return -FI_ENOSYS;
}

int sfi_no_ops_open(struct fid *fid, const char *name, uint64_t flags,
		    void **ops, void *context)
{
	(void)fid, (void)name, (void)flags, (void)ops, (void)context;
	return -FI_ENOSYS;
}

/* ---- one-sided transfers ---- */

static ssize_t no_read(struct fid_ep *ep, void *buf, size_t len, void *desc,
		       fi_addr_t src, uint64_t addr, uint64_t key, void *context)
{
	(void)ep, (void)buf, (void)len, (void)desc, (void)src, (void)addr;
	(void)key, (void)context;
	return -FI_ENOSYS;
}

static ssize_t no_readv(struct fid_ep *ep, const struct iovec *iov, void **desc,
			size_t n, fi_addr_t src, uint64_t addr, uint64_t key,
			void *context)
{
	(void)ep, (void)iov, (void)desc, (void)n, (void)src, (void)addr;
	(void)key, (void)context;
	return -FI_ENOSYS;
}

static ssize_t no_rma_msg(struct fid_ep *ep, const struct fi_msg_rma *msg,
			  uint64_t flags)
{
	(void)ep, (void)msg, (void)flags;
	return -FI_ENOSYS;
}

static ssize_t no_write(struct fid_ep *ep, const void *buf, size_t len,
			void *desc, fi_addr_t dest, uint64_t addr, uint64_t key,
			void *context)
{
	(void)ep, (void)buf, (void)len, (void)desc, (void)dest, (void)addr;
	(void)key, (void)context;
	return -FI_ENOSYS;
}

static ssize_t no_inject(struct fid_ep *ep, const void *buf, size_t len,
			 fi_addr_t dest, uint64_t addr, uint64_t key)
{
	(void)ep, (void)buf, (void)len, (void)dest, (void)addr, (void)key;
	return -FI_ENOSYS;
}

static ssize_t no_writedata(struct fid_ep *ep, const void *buf, size_t len,
			    void *desc, uint64_t data, fi_addr_t dest,
			    uint64_t addr, uint64_t key, void *context)
{
	(void)ep, (void)buf, (void)len, (void)desc, (void)data, (void)dest;
	(void)addr, (void)key, (void)context;
	return -FI_ENOSYS;
}

static ssize_t no_injectdata(struct fid_ep *ep, const void *buf, size_t len,
			     uint64_t data, fi_addr_t dest, uint64_t addr,
			     uint64_t key)
{
	(void)ep, (void)buf, (void)len, (void)data, (void)dest, (void)addr;
	(void)key;
	return -FI_ENOSYS;
}

struct fi_ops_rma sfi_no_rma = {
	.size = sizeof(struct fi_ops_rma),
	.read = no_read,
	.readv = no_readv,
	.readmsg = no_rma_msg,
	.write = no_write,
	.writev = no_readv,
	.writemsg = no_rma_msg,
	.inject = no_inject,
	.writedata = no_writedata,
	.injectdata = no_injectdata,
};
