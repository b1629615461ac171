// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Functions that this provider does not support. libfabric calls them without a check for NULL. */
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

int sfi_no_setname(fid_t fid, void *addr, size_t len)
{
	(void)fid, (void)addr, (void)len;
	return -FI_ENOSYS;
}

int sfi_no_getpeer(struct fid_ep *ep, void *addr, size_t *len)
{
	(void)ep, (void)addr, (void)len;
	return -FI_ENOSYS;
}

int sfi_no_connect(struct fid_ep *ep, const void *addr, const void *param,
		   size_t len)
{
	(void)ep, (void)addr, (void)param, (void)len;
	return -FI_ENOSYS;
}

int sfi_no_listen(struct fid_pep *pep)
{
	(void)pep;
	return -FI_ENOSYS;
}

int sfi_no_accept(struct fid_ep *ep, const void *param, size_t len)
{
	(void)ep, (void)param, (void)len;
	return -FI_ENOSYS;
}

int sfi_no_reject(struct fid_pep *pep, fid_t handle, const void *param,
		  size_t len)
{
	(void)pep, (void)handle, (void)param, (void)len;
	return -FI_ENOSYS;
}

int sfi_no_shutdown(struct fid_ep *ep, uint64_t flags)
{
	(void)ep, (void)flags;
	return -FI_ENOSYS;
}

int sfi_no_join(struct fid_ep *ep, const void *addr, uint64_t flags,
		struct fid_mc **mc, void *context)
{
	(void)ep, (void)addr, (void)flags, (void)mc, (void)context;
	return -FI_ENOSYS;
}

int sfi_no_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr,
		  struct fid_ep **tx, void *context)
{
	(void)sep, (void)index, (void)attr, (void)tx, (void)context;
	return -FI_ENOSYS;
}

int sfi_no_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr,
		  struct fid_ep **rx, void *context)
{
	(void)sep, (void)index, (void)attr, (void)rx, (void)context;
	return -FI_ENOSYS;
}
