// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Fabrics and domains. */
#include "libsci/ofi/onesided.h"

#include <stdlib.h>

/* ---- domains ---- */

static int domain_close(struct fid *fid)
{
	struct sfi_domain *d = (struct sfi_domain *)fid;

	if (atomic_load(&d->users))
		return -FI_EBUSY;
	sfi_auto_stop(d);
	d->fabric->users--;
	sfi_lock_fini(&d->lock);
	sfi_lock_fini(&d->exports);
	sfi_eps_fini(&d->eps);
	hash_free(&d->regions);
	free(d);
	return 0;
}

static int no_endpoint(struct fid_domain *domain, struct fi_info *info,
		       struct fid_ep **ep, void *context)
{
	(void)domain, (void)info, (void)ep, (void)context;
	return -FI_ENOSYS;
}

static int no_stx(struct fid_domain *domain, struct fi_tx_attr *attr,
		  struct fid_stx **stx, void *context)
{
	(void)domain, (void)attr, (void)stx, (void)context;
	return -FI_ENOSYS;
}

static int no_srx(struct fid_domain *domain, struct fi_rx_attr *attr,
		  struct fid_ep **ep, void *context)
{
	(void)domain, (void)attr, (void)ep, (void)context;
	return -FI_ENOSYS;
}

static int no_collective(struct fid_domain *domain, enum fi_collective_op coll,
			 struct fi_collective_attr *attr, uint64_t flags)
{
	(void)domain, (void)coll, (void)attr, (void)flags;
	return -FI_ENOSYS;
}

static int domain_endpoint2(struct fid_domain *domain, struct fi_info *info,
			    struct fid_ep **ep, uint64_t flags, void *context)
{
	return flags ? -FI_EINVAL : sfi_ep_open(domain, info, ep, context);
}

static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = sfi_av_open,
	.cq_open = sfi_cq_open,
	.endpoint = sfi_ep_open,
	.scalable_ep = no_endpoint,
	.cntr_open = sfi_cntr_open,
	.poll_open = sfi_poll_open,
	.stx_ctx = no_stx,
	.srx_ctx = no_srx,
	.query_atomic = sfi_query_atomic,
	.query_collective = no_collective,
	.endpoint2 = domain_endpoint2,
};

static struct fi_ops domain_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = domain_close,
	.bind = sfi_no_bind,
	.control = sfi_no_control,
	.ops_open = sfi_no_ops_open,
};

int sfi_domain_open(struct fid_fabric *fabric, struct fi_info *info,
		    struct fid_domain **domain, void *context)
{
	struct sfi_domain *d;
	bool automatic;
	int ret = 0;

	if (!info || !info->domain_attr)
		return -FI_EINVAL;
	automatic = info->domain_attr->data_progress == FI_PROGRESS_AUTO;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -FI_ENOMEM;
	d->fid.fid.fclass = FI_CLASS_DOMAIN;
	d->fid.fid.context = context;
	d->fid.fid.ops = &domain_fid_ops;
	d->fid.ops = &domain_ops;
	d->fid.mr = &sfi_mr_ops;
	d->fabric = (struct sfi_fabric *)fabric;
	d->fabric->users++;
	d->shared = automatic ||
		    info->domain_attr->threading != FI_THREAD_DOMAIN;
	d->own_keys = info->domain_attr->mr_mode &
		      (SFI_MR_BASIC | FI_MR_PROV_KEY);
	d->by_address = info->domain_attr->mr_mode &
			(SFI_MR_BASIC | FI_MR_VIRT_ADDR);
	sfi_lock_init(&d->exports, d->shared);
	sfi_lock_init(&d->lock, d->shared);
	sfi_eps_init(&d->eps, d->shared);
	if (automatic)
		ret = sfi_auto_start(d);
	if (ret) {
		domain_close(&d->fid.fid);
		return ret;
	}
	*domain = &d->fid;
	return 0;
}

/* ---- fabrics ---- */

static int fabric_close(struct fid *fid)
{
	struct sfi_fabric *f = (struct sfi_fabric *)fid;

	if (atomic_load(&f->users))
		return -FI_EBUSY;
	free(f);
	return 0;
}

static int no_passive_ep(struct fid_fabric *fabric, struct fi_info *info,
			 struct fid_pep **pep, void *context)
{
	(void)fabric, (void)info, (void)pep, (void)context;
	return -FI_ENOSYS;
}

static int no_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
			struct fid_wait **set)
{
	(void)fabric, (void)attr, (void)set;
	return -FI_ENOSYS;
}

static int fabric_domain2(struct fid_fabric *fabric, struct fi_info *info,
			  struct fid_domain **domain, uint64_t flags, void *context)
{
	return flags ? -FI_EINVAL :
		       sfi_domain_open(fabric, info, domain, context);
}

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = sfi_domain_open,
	.passive_ep = no_passive_ep,
	.eq_open = sfi_eq_open,
	.wait_open = no_wait_open,
	.trywait = sfi_trywait,
	.domain2 = fabric_domain2,
};

static struct fi_ops fabric_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = fabric_close,
	.bind = sfi_no_bind,
	.control = sfi_no_control,
	.ops_open = sfi_no_ops_open,
};

int sfi_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		    void *context)
{
	struct sfi_fabric *f = calloc(1, sizeof(*f));

	(void)attr;
	if (!f)
		return -FI_ENOMEM;
	f->fid.fid.fclass = FI_CLASS_FABRIC;
	f->fid.fid.context = context;
	f->fid.fid.ops = &fabric_fid_ops;
	f->fid.ops = &fabric_ops;
	*fabric = &f->fid;
	return 0;
}
