// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Memory registration: for messages there is nothing to be registered, but
 * programs that serve all providers do it. What peers could reach is refused.
 */
#include "libsci/ofi/ofi.h"

#include <stdlib.h>

struct sfi_mr {
	struct fid_mr fid;
	struct sfi_domain *domain;
};

static int mr_close(struct fid *fid)
{
	struct sfi_mr *mr = (struct sfi_mr *)fid;

	mr->domain->users--;
	free(mr);
	return 0;
}

static struct fi_ops mr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = mr_close,
	.bind = sfi_no_bind,
	.control = sfi_no_control,
	.ops_open = sfi_no_ops_open,
};

static int reg(struct fid *domain, uint64_t access, uint64_t flags,
	       struct fid_mr **out, void *context)
{
	struct sfi_domain *d = (struct sfi_domain *)domain;
	struct sfi_mr *mr;

	if (domain->fclass != FI_CLASS_DOMAIN || flags)
		return -FI_EINVAL;
	if (access & ~(uint64_t)(FI_SEND | FI_RECV))
		return -FI_EOPNOTSUPP;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -FI_ENOMEM;
	mr->fid.fid.fclass = FI_CLASS_MR;
	mr->fid.fid.context = context;
	mr->fid.fid.ops = &mr_fid_ops;
	mr->fid.key = FI_KEY_NOTAVAIL;
	mr->domain = d;
	d->users++;
	*out = &mr->fid;
	return 0;
}

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access,
		  uint64_t offset, uint64_t key, uint64_t flags,
		  struct fid_mr **mr, void *context)
{
	(void)buf, (void)len, (void)offset, (void)key;
	return reg(fid, access, flags, mr, context);
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t n,
		   uint64_t access, uint64_t offset, uint64_t key,
		   uint64_t flags, struct fid_mr **mr, void *context)
{
	(void)iov, (void)n, (void)offset, (void)key;
	return reg(fid, access, flags, mr, context);
}

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr,
		      uint64_t flags, struct fid_mr **mr)
{
	return reg(fid, attr->access, flags, mr, attr->context);
}

struct fi_ops_mr sfi_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};
