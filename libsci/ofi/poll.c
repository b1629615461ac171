// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Poll sets: fi_poll() returns the queues with entries and the counters that have changed. */
#include "libsci/ofi/ofi.h"

#include <stdlib.h>
#include <string.h>

/* A queue or counter of a poll set. @seen: value of a counter when it was last reported */
struct member {
	struct fid *fid;
	uint64_t seen;
};

struct sfi_poll {
	struct fid_poll fid;
	struct sfi_domain *domain;
	struct sfi_lock lock;
	struct member *members;
	size_t n;
};

static bool member_has_events(struct member *m)
{
	struct sfi_cntr *c = (struct sfi_cntr *)m->fid;
	struct sfi_cq *cq = (struct sfi_cq *)m->fid;
	uint64_t now;

	if (m->fid->fclass == FI_CLASS_CQ) {
		sfi_eps_progress(&cq->eps, cq->domain);
		return sfi_cq_ready(cq);
	}
	sfi_eps_progress(&c->eps, c->domain);
	now = atomic_load(&c->value) + atomic_load(&c->errors);
	if (now == m->seen)
		return false;
	m->seen = now;
	return true;
}

static int poll_poll(struct fid_poll *fid, void **contexts, int count)
{
	struct sfi_poll *p = (struct sfi_poll *)fid;
	int n = 0;

	sfi_lock(&p->lock);
	for (size_t i = 0; i < p->n && n < count; i++)
		if (member_has_events(&p->members[i]))
			contexts[n++] = p->members[i].fid->context;
	sfi_unlock(&p->lock);
	return n;
}

static _Atomic unsigned int *member_get_users(struct fid *fid)
{
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		return &((struct sfi_cq *)fid)->users;
	case FI_CLASS_CNTR:
		return &((struct sfi_cntr *)fid)->users;
	default:
		return NULL;
	}
}

static int poll_add(struct fid_poll *fid, struct fid *member, uint64_t flags)
{
	struct sfi_poll *p = (struct sfi_poll *)fid;
	struct member *more;
	int ret = -FI_ENOMEM;

	if (flags || !member_get_users(member))
		return -FI_EINVAL;
	sfi_lock(&p->lock);
	more = realloc(p->members, (p->n + 1) * sizeof(*more));
	if (more) {
		more[p->n++] = (struct member){ .fid = member };
		p->members = more;
		atomic_fetch_add(member_get_users(member), 1);
		ret = 0;
	}
	sfi_unlock(&p->lock);
	return ret;
}

static int poll_del(struct fid_poll *fid, struct fid *member, uint64_t flags)
{
	struct sfi_poll *p = (struct sfi_poll *)fid;
	int ret = -FI_EINVAL;

	if (flags)
		return ret;
	sfi_lock(&p->lock);
	for (size_t i = 0; i < p->n && ret; i++) {
		if (p->members[i].fid != member)
			continue;
		p->members[i] = p->members[--p->n];
		atomic_fetch_sub(member_get_users(member), 1);
		ret = 0;
	}
	sfi_unlock(&p->lock);
	return ret;
}

static struct fi_ops_poll poll_ops = {
	.size = sizeof(struct fi_ops_poll),
	.poll = poll_poll,
	.poll_add = poll_add,
	.poll_del = poll_del,
};

static int poll_close(struct fid *fid)
{
	struct sfi_poll *p = (struct sfi_poll *)fid;

	if (p->n)
		return -FI_EBUSY;
	p->domain->users--;
	sfi_lock_fini(&p->lock);
	free(p->members);
	free(p);
	return 0;
}

static struct fi_ops poll_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = poll_close,
	.bind = sfi_no_bind,
	.control = sfi_no_control,
	.ops_open = sfi_no_ops_open,
};

int sfi_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr,
		  struct fid_poll **out)
{
	struct sfi_domain *d = (struct sfi_domain *)domain;
	struct sfi_poll *p;

	if (attr && attr->flags)
		return -FI_EINVAL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -FI_ENOMEM;
	p->fid.fid.fclass = FI_CLASS_POLL;
	p->fid.fid.ops = &poll_fid_ops;
	p->fid.ops = &poll_ops;
	p->domain = d;
	d->users++;
	sfi_lock_init(&p->lock, d->shared);
	*out = &p->fid;
	return 0;
}
