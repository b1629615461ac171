// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Memory regions, which requests of peers name by a key. Local buffers need no region. */
#include "libsci/ofi/onesided.h"

#include <stdlib.h>

static struct sfi_mr *mr_by_key(struct sfi_domain *d, uint64_t key)
{
	struct hash_node *node = hash_find(&d->regions, key);

	return node ? container_of(node, struct sfi_mr, node) : NULL;
}

/**
 * sfi_mr_find() - find the memory that a request of a peer names
 * @access: FI_REMOTE_READ, FI_REMOTE_WRITE, or both
 *
 * Context: the domain is locked.
 * Return: 0; -FI_ENOKEY; -FI_EACCES; -ERANGE: part of the place is outside the region.
 */
int sfi_mr_find(struct sfi_domain *d, const struct sfi_place *p, uint64_t access,
		struct sfi_mr **out, void **at)
{
	struct sfi_mr *mr = mr_by_key(d, p->key);
	uint64_t offset = p->addr;

	if (!mr || mr->closing)
		return -FI_ENOKEY;
	if (access & ~mr->access)
		return -FI_EACCES;
	if (d->by_address)
		offset -= (uintptr_t)mr->base;
	if (offset > mr->len || p->len > mr->len - offset)
		return -ERANGE;
	*out = mr;
	*at = mr->base + offset;
	return 0;
}

/* ---- export ---- */

/*
 * Make @ep the exporter of its domain if there is no exporter yet. The exporter exports regions of
 * whole pages with remote read and write access as segments. If registration replaces the pages by
 * copies, stores of other threads during the registration are lost: then the exporter is off unless
 * the parameter "direct" is set.
 */
void sfi_mr_exporter(struct sfi_ep *ep)
{
	struct sfi_domain *d = ep->domain;
	int wanted = !(ep->traits & SCI_TRAIT_REGISTER_COPIES);

	fi_param_get_bool(&sfi_provider, "direct", &wanted);
	/* FI_RMA_EVENT needs a target that handles each transfer */
	if (!wanted || !d->own_keys || d->by_address ||
	    ep->caps & FI_RMA_EVENT || !(ep->caps & FI_RMA) ||
	    !(ep->caps & SFI_SERVES))
		return;
	sfi_lock(&d->exports);
	if (!d->exporter)
		d->exporter = ep;
	sfi_unlock(&d->exports);
}

/* Remove the exporter @ep, which is closing with its segments: peers get errors for their keys. */
void sfi_mr_no_exporter(struct sfi_ep *ep)
{
	struct sfi_domain *d = ep->domain;
	struct hash_node *node = NULL;

	sfi_lock(&d->exports);
	if (d->exporter == ep) {
		d->exporter = NULL;
		while ((node = hash_walk(&d->regions, node)))
			container_of(node, struct sfi_mr, node)->exported = false;
	}
	sfi_unlock(&d->exports);
}

/*
 * Export a region if possible. Return the bits for its key, or 0. Context: d->exports is locked, and
 * d->lock is not: a handler takes d->lock inside of the message layer.
 */
static uint64_t export_bits(struct sfi_mr *mr)
{
	struct sfi_ep *ep = mr->domain->exporter;
	struct sci_key key;

	if (!ep || (mr->access & SFI_SERVES) != SFI_SERVES ||
	    sci_buf_register(ep->ep, mr->base, mr->len))
		return 0;
	if (sci_buf_key(ep->ep, mr->base, mr->len, &key) || key.offset) {
		sci_buf_unregister(ep->ep, mr->base, mr->len);
		return 0;
	}
	mr->exported = true;
	return SFI_KEY_EXPORTED | (uint64_t)key.segment << 31;
}

static int mr_unexport(struct sfi_mr *mr)
{
	if (!mr->exported)
		return 0;
	return sci_buf_unregister(mr->domain->exporter->ep, mr->base, mr->len);
}

/* ---- open and close ---- */

static int mr_insert(struct sfi_mr *mr, uint64_t wanted)
{
	struct sfi_domain *d = mr->domain;
	int ret;

	sfi_lock(&d->exports);
	mr->fid.key = wanted;
	if (d->own_keys)
		mr->fid.key = (d->next_key++ & SFI_KEY_COUNT) | export_bits(mr);
	sfi_lock(&d->lock);
	ret = mr_by_key(d, mr->fid.key) ? -FI_ENOKEY :
				     hash_add(&d->regions, &mr->node, mr->fid.key);
	sfi_unlock(&d->lock);
	if (ret && mr_unexport(mr))
		ret = -FI_EBUSY;
	sfi_unlock(&d->exports);
	return ret;
}

static int mr_remove(struct sfi_mr *mr)
{
	struct sfi_domain *d = mr->domain;
	int ret;

	sfi_lock(&d->exports);
	sfi_lock(&d->lock);
	ret = mr->users ? -FI_EBUSY : 0;
	mr->closing = !ret;
	sfi_unlock(&d->lock);
	ret = ret ? ret : mr_unexport(mr);
	sfi_lock(&d->lock);
	mr->closing = false;
	if (!ret)
		hash_del(&d->regions, &mr->node);
	sfi_unlock(&d->lock);
	sfi_unlock(&d->exports);
	return ret;
}

/* Close a region. Return -FI_EBUSY while a transfer uses the region. */
static int mr_close(struct fid *fid)
{
	struct sfi_mr *mr = (struct sfi_mr *)fid;
	int ret = mr_remove(mr);

	if (ret)
		return ret;
	if (mr->writes)
		mr->writes->users--;
	if (mr->reads)
		mr->reads->users--;
	mr->domain->users--;
	free(mr);
	return 0;
}

static int mr_bind_cntr(struct sfi_mr *mr, struct sfi_cntr *c, uint64_t flags)
{
	if (!flags || flags & ~(uint64_t)SFI_SERVES)
		return -FI_EBADFLAGS;
	if ((flags & FI_REMOTE_WRITE && mr->writes) ||
	    (flags & FI_REMOTE_READ && mr->reads))
		return -FI_EINVAL;
	if (flags & FI_REMOTE_WRITE) {
		mr->writes = c;
		c->users++;
	}
	if (flags & FI_REMOTE_READ) {
		mr->reads = c;
		c->users++;
	}
	return 0;
}

static int mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct sfi_mr *mr = (struct sfi_mr *)fid;
	int ret;

	/* a region belongs to all endpoints of the domain */
	if (bfid->fclass == FI_CLASS_EP)
		return 0;
	if (bfid->fclass != FI_CLASS_CNTR)
		return -FI_EINVAL;
	sfi_lock(&mr->domain->lock);
	ret = mr_bind_cntr(mr, (struct sfi_cntr *)bfid, flags);
	sfi_unlock(&mr->domain->lock);
	return ret;
}

static int mr_control(struct fid *fid, int command, void *arg)
{
	(void)fid, (void)arg;
	return command == FI_ENABLE ? 0 : -FI_ENOSYS;
}

static struct fi_ops mr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = mr_close,
	.bind = mr_bind,
	.control = mr_control,
	.ops_open = sfi_no_ops_open,
};

static int mr_regattr(struct fid *domain, const struct fi_mr_attr *a,
		      uint64_t flags, struct fid_mr **out)
{
	struct sfi_domain *d = (struct sfi_domain *)domain;
	struct sfi_mr *mr;
	int ret;

	if (domain->fclass != FI_CLASS_DOMAIN || !a->mr_iov ||
	    flags & ~(uint64_t)FI_RMA_EVENT || a->offset ||
	    a->access & ~(uint64_t)(FI_SEND | FI_RECV | SFI_ASKS | SFI_SERVES))
		return -FI_EINVAL;
	if (a->iov_count != 1)
		return -FI_EOPNOTSUPP;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -FI_ENOMEM;
	mr->fid.fid.fclass = FI_CLASS_MR;
	mr->fid.fid.context = a->context;
	mr->fid.fid.ops = &mr_fid_ops;
	mr->domain = d;
	mr->base = a->mr_iov->iov_base;
	mr->len = a->mr_iov->iov_len;
	mr->access = a->access;
	ret = mr_insert(mr, a->requested_key);
	if (ret) {
		free(mr);
		return ret;
	}
	d->users++;
	*out = &mr->fid;
	return 0;
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t n,
		   uint64_t access, uint64_t offset, uint64_t key,
		   uint64_t flags, struct fid_mr **mr, void *context)
{
	const struct fi_mr_attr a = {
		.mr_iov = iov, .iov_count = n, .access = access,
		.offset = offset, .requested_key = key, .context = context,
	};

	return mr_regattr(fid, &a, flags, mr);
}

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access,
		  uint64_t offset, uint64_t key, uint64_t flags,
		  struct fid_mr **mr, void *context)
{
	const struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return mr_regv(fid, &iov, 1, access, offset, key, flags, mr, context);
}

struct fi_ops_mr sfi_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};
