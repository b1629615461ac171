// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Completion counters. */
#include "libsci/ofi/ofi.h"

#include <sched.h>
#include <stdlib.h>

void sfi_cntr_change(struct sfi_cntr *c)
{
	atomic_fetch_add(&c->changes, 1);
	sfi_wait_wake(&c->wait);
}

/* Make progress and read a value of the counter. */
static uint64_t cntr_look(struct sfi_cntr *c, const _Atomic uint64_t *value)
{
	sfi_eps_progress(&c->eps, c->domain);
	/* a change that comes before the value is read has not been seen: at most one call too many */
	atomic_store(&c->seen, atomic_load(&c->changes));
	return atomic_load(value);
}

static uint64_t cntr_read(struct fid_cntr *fid)
{
	struct sfi_cntr *c = (struct sfi_cntr *)fid;

	return cntr_look(c, &c->value);
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
	struct sfi_cntr *c = (struct sfi_cntr *)fid;

	return cntr_look(c, &c->errors);
}

static int cntr_add(struct fid_cntr *fid, uint64_t value)
{
	struct sfi_cntr *c = (struct sfi_cntr *)fid;

	atomic_fetch_add(&c->value, value);
	sfi_cntr_change(c);
	return 0;
}

static int cntr_set(struct fid_cntr *fid, uint64_t value)
{
	struct sfi_cntr *c = (struct sfi_cntr *)fid;

	atomic_store(&c->value, value);
	sfi_cntr_change(c);
	return 0;
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	struct sfi_cntr *c = (struct sfi_cntr *)fid;

	atomic_fetch_add(&c->errors, value);
	sfi_cntr_change(c);
	return 0;
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	struct sfi_cntr *c = (struct sfi_cntr *)fid;

	atomic_store(&c->errors, value);
	sfi_cntr_change(c);
	return 0;
}

/* Sleep until the counter may have changed, for up to @ms milliseconds; -1: no limit. */
static int cntr_sleep(struct sfi_cntr *c, uint64_t threshold, uint64_t errors,
		      int ms)
{
	if (c->wait.obj == FI_WAIT_NONE) {
		sched_yield();
		return 0;
	}
	if (sfi_wait_arm(&c->wait, c->domain))
		return 0;
	if (atomic_load(&c->value) < threshold &&
	    atomic_load(&c->errors) == errors)
		return sfi_wait_sleep(&c->wait, ms);
	sfi_wait_disarm(&c->wait);
	return 0;
}

/* Wait for the threshold, or for an error. Poll if the counter has FI_WAIT_NONE. */
static int cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	struct sfi_cntr *c = (struct sfi_cntr *)fid;
	uint64_t until = sfi_now_ms() + (uint64_t)timeout;
	uint64_t errors = atomic_load(&c->errors);

	while (cntr_read(fid) < threshold) {
		uint64_t now = sfi_now_ms();
		int ret;

		if (atomic_load(&c->errors) != errors)
			return -FI_EAVAIL;
		if (timeout >= 0 && now >= until)
			return -FI_ETIMEDOUT;
		ret = cntr_sleep(c, threshold, errors,
				 timeout < 0 ? -1 : (int)(until - now));
		if (ret)
			return ret;
	}
	return 0;
}

static struct fi_ops_cntr cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = cntr_read,
	.readerr = cntr_readerr,
	.add = cntr_add,
	.set = cntr_set,
	.wait = cntr_wait,
	.adderr = cntr_adderr,
	.seterr = cntr_seterr,
};

/* ---- open and close ---- */

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
	sfi_wait_close(&c->wait, c->domain);
	c->domain->users--;
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
	ret = sfi_wait_open(&c->wait, attr ? attr->wait_obj : FI_WAIT_NONE, d);
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
