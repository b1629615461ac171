// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Counters of what has completed. */
#include "libsci/ofi/ofi.h"

#include <sched.h>
#include <stdlib.h>

static uint64_t cntr_read(struct fid_cntr *fid)
{
	struct sfi_cntr *c = (struct sfi_cntr *)fid;

	sfi_eps_progress(&c->eps);
	return atomic_load(&c->value);
}

static uint64_t readerr(struct fid_cntr *fid)
{
	struct sfi_cntr *c = (struct sfi_cntr *)fid;

	sfi_eps_progress(&c->eps);
	return atomic_load(&c->errors);
}

static int add(struct fid_cntr *fid, uint64_t value)
{
	struct sfi_cntr *c = (struct sfi_cntr *)fid;

	atomic_fetch_add(&c->value, value);
	sfi_wait_wake(&c->wait);
	return 0;
}

static int set(struct fid_cntr *fid, uint64_t value)
{
	struct sfi_cntr *c = (struct sfi_cntr *)fid;

	atomic_store(&c->value, value);
	sfi_wait_wake(&c->wait);
	return 0;
}

static int adderr(struct fid_cntr *fid, uint64_t value)
{
	struct sfi_cntr *c = (struct sfi_cntr *)fid;

	atomic_fetch_add(&c->errors, value);
	sfi_wait_wake(&c->wait);
	return 0;
}

static int seterr(struct fid_cntr *fid, uint64_t value)
{
	struct sfi_cntr *c = (struct sfi_cntr *)fid;

	atomic_store(&c->errors, value);
	sfi_wait_wake(&c->wait);
	return 0;
}

/* New errors end it as well.  One that nothing wakes looks all the time. */
static int cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	struct sfi_cntr *c = (struct sfi_cntr *)fid;
	uint64_t until = sfi_now_ms() + (uint64_t)timeout;
	uint64_t errors = atomic_load(&c->errors);
	int ret;

	while (cntr_read(fid) < threshold) {
		uint64_t now = sfi_now_ms();

		if (atomic_load(&c->errors) != errors)
			return -FI_EAVAIL;
		if (timeout >= 0 && now >= until)
			return -FI_ETIMEDOUT;
		if (c->wait.obj == FI_WAIT_NONE) {
			sched_yield();
			continue;
		}
		ret = sfi_wait_arm(&c->wait, &c->eps);
		if (ret || atomic_load(&c->value) >= threshold ||
		    atomic_load(&c->errors) != errors)
			continue;
		ret = sfi_wait_sleep(&c->wait,
				     timeout < 0 ? -1 : (int)(until - now));
		if (ret)
			return ret;
	}
	return 0;
}

static struct fi_ops_cntr cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = cntr_read,
	.readerr = readerr,
	.add = add,
	.set = set,
	.wait = cntr_wait,
	.adderr = adderr,
	.seterr = seterr,
};

/* ---- counters of regions ---- */

/*
 * Peers reach a region through any endpoint of its domain: who reads its counter, or
 * waits for it, makes progress for all of them.
 */
int sfi_cntr_of_region(struct sfi_cntr *c)
{
	struct sfi_domain *d = c->domain;
	int ret = 0;

	sfi_lock(&d->serving);
	if (!c->of_regions) {
		c->of_regions = true;
		c->next_of_domain = d->cntrs;
		d->cntrs = c;
	}
	for (struct sfi_ep *ep = d->eps; ep && !ret; ep = ep->next_of_domain)
		ret = sfi_eps_add(&c->eps, &c->wait, ep);
	sfi_unlock(&d->serving);
	return ret;
}

static void of_region_no_more(struct sfi_cntr *c)
{
	struct sfi_domain *d = c->domain;
	struct sfi_cntr **p;

	sfi_lock(&d->serving);
	for (p = &d->cntrs; *p && *p != c; p = &(*p)->next_of_domain)
		;
	if (*p)
		*p = c->next_of_domain;
	sfi_unlock(&d->serving);
}

int sfi_ep_serves(struct sfi_ep *ep)
{
	struct sfi_domain *d = ep->domain;
	int ret = 0;

	sfi_lock(&d->serving);
	for (struct sfi_cntr *c = d->cntrs; c && !ret; c = c->next_of_domain)
		ret = sfi_eps_add(&c->eps, &c->wait, ep);
	if (!ret) {
		ep->next_of_domain = d->eps;
		d->eps = ep;
	}
	sfi_unlock(&d->serving);
	return ret;
}

void sfi_ep_serves_no_more(struct sfi_ep *ep)
{
	struct sfi_domain *d = ep->domain;
	struct sfi_ep **p;

	sfi_lock(&d->serving);
	for (struct sfi_cntr *c = d->cntrs; c; c = c->next_of_domain)
		sfi_eps_remove(&c->eps, &c->wait, ep);
	for (p = &d->eps; *p && *p != ep; p = &(*p)->next_of_domain)
		;
	if (*p)
		*p = ep->next_of_domain;
	sfi_unlock(&d->serving);
}

/* ---- begin and end ---- */

static int cntr_control(struct fid *fid, int command, void *arg)
{
	struct sfi_cntr *c = (struct sfi_cntr *)fid;

	return command == FI_GETWAIT ? sfi_wait_fd(&c->wait, arg) : -FI_ENOSYS;
}

static int cntr_close(struct fid *fid)
{
	struct sfi_cntr *c = (struct sfi_cntr *)fid;

	if (atomic_load(&c->users))
		return -FI_EBUSY;
	of_region_no_more(c);
	c->domain->users--;
	sfi_wait_fini(&c->wait);
	sfi_eps_fini(&c->eps);
	free(c);
	return 0;
}

static struct fi_ops cntr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cntr_close,
	.bind = sfi_no_bind,
	.control = cntr_control,
	.ops_open = sfi_no_ops_open,
};

int sfi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		  struct fid_cntr **out, void *context)
{
	struct sfi_domain *d = (struct sfi_domain *)domain;
	struct sfi_cntr *c;
	int ret;

	if (attr && (attr->events != FI_CNTR_EVENTS_COMP || attr->wait_set ||
		     attr->flags))
		return -FI_ENOSYS;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -FI_ENOMEM;
	ret = sfi_wait_init(&c->wait, attr ? attr->wait_obj : FI_WAIT_NONE);
	if (ret) {
		free(c);
		return ret;
	}
	c->fid.fid.fclass = FI_CLASS_CNTR;
	c->fid.fid.context = context;
	c->fid.fid.ops = &cntr_fid_ops;
	c->fid.ops = &cntr_ops;
	c->domain = d;
	d->users++;
	sfi_eps_init(&c->eps, d->shared);
	*out = &c->fid;
	return 0;
}
