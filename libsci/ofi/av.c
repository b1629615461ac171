// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Address vectors.  An address gets the lowest number that no other address has, in
 * maps as in tables: fi_av(3) lets programs with tables count on that.  An address
 * that is inserted twice has two numbers; messages from it name one of them.
 */
#include "libsci/ofi/ofi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t bucket_of(const struct sfi_av *av, const struct sci_addr *addr)
{
	uint64_t key = (uint64_t)addr->node << 32 | addr->id;

	return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) &
	       (av->n_buckets - 1);
}

/* The bucket that names @addr, or the free one where that would stand. */
static size_t *find(const struct sfi_av *av, const struct sci_addr *addr)
{
	size_t b = bucket_of(av, addr);

	for (;; b = (b + 1) & (av->n_buckets - 1)) {
		size_t n = av->buckets[b];

		if (!n || !memcmp(&av->addrs[n - 1], addr, sizeof(*addr)))
			return &av->buckets[b];
	}
}

/*
 * Empty a bucket.  A later bucket of the same run moves into it if its search would
 * end here otherwise.
 */
static void empty(struct sfi_av *av, size_t *bucket)
{
	size_t mask = av->n_buckets - 1, free = (size_t)(bucket - av->buckets);

	for (size_t b = (free + 1) & mask; av->buckets[b]; b = (b + 1) & mask) {
		size_t home = bucket_of(av, &av->addrs[av->buckets[b] - 1]);

		if (((b - home) & mask) < ((b - free) & mask))
			continue;
		av->buckets[free] = av->buckets[b];
		free = b;
	}
	av->buckets[free] = 0;
}

/* At most half of the buckets are in use. */
static int grow(struct sfi_av *av)
{
	size_t room = av->room ? av->room * 2 : 64;
	struct sci_addr *addrs = realloc(av->addrs, room * sizeof(*addrs));
	size_t *buckets;

	if (!addrs)
		return -FI_ENOMEM;
	av->addrs = addrs;
	buckets = calloc(room * 2, sizeof(*buckets));
	if (!buckets)
		return -FI_ENOMEM;
	free(av->buckets);
	av->buckets = buckets;
	av->n_buckets = room * 2;
	av->room = room;
	for (size_t i = 0; i < av->n; i++) {
		size_t *b = av->addrs[i].id ? find(av, &av->addrs[i]) : NULL;

		if (b && !*b)
			*b = i + 1;
	}
	return 0;
}

/* The lowest number without an address; -FI_ENOMEM. */
static int free_number(struct sfi_av *av, size_t *number)
{
	size_t n = av->lowest;
	int ret = 0;

	while (n < av->n && av->addrs[n].id)
		n++;
	if (n == av->room)
		ret = grow(av);
	if (ret)
		return ret;
	if (n == av->n)
		av->n++;
	av->lowest = n + 1;
	*number = n;
	return 0;
}

static int insert_one(struct sfi_av *av, const struct sci_addr *addr,
		      fi_addr_t *number)
{
	size_t n, *b;
	int ret;

	*number = FI_ADDR_NOTAVAIL;
	if (!addr->id || addr->id > SCI_EP_ID_MAX)
		return -FI_EINVAL;
	ret = free_number(av, &n);
	if (ret)
		return ret;
	b = find(av, addr);
	av->addrs[n] = *addr;
	if (*b)
		av->doubles++;
	else
		*b = n + 1;
	*number = n;
	return 0;
}

static int insert(struct fid_av *fid, const void *addrs, size_t count,
		  fi_addr_t *numbers, uint64_t flags, void *context)
{
	struct sfi_av *av = (struct sfi_av *)fid;
	int *errors = flags & FI_SYNC_ERR ? context : NULL, done = 0;

	if (flags & ~(uint64_t)(FI_MORE | FI_SYNC_ERR) || (!addrs && count))
		return -FI_EINVAL;
	sfi_lock(&av->changes);
	sfi_lock(&av->lock);
	for (size_t i = 0; i < count; i++) {
		struct sci_addr a;
		fi_addr_t n;
		int ret;

		memcpy(&a, (const char *)addrs + i * sizeof(a), sizeof(a));
		ret = insert_one(av, &a, &n);
		if (numbers)
			numbers[i] = n;
		if (errors)
			errors[i] = -ret;
		done += !ret;
	}
	sfi_unlock(&av->lock);
	sfi_unlock(&av->changes);
	return done;
}

static int insertsvc(struct fid_av *fid, const char *node, const char *service,
		     fi_addr_t *number, uint64_t flags, void *context)
{
	struct sci_addr a;
	int ret = node && service ? sfi_address(node, service, &a) : -FI_EINVAL;

	return ret ? ret : insert(fid, &a, 1, number, flags, context);
}

static int no_insertsym(struct fid_av *fid, const char *node, size_t nodes,
			const char *service, size_t services,
			fi_addr_t *numbers, uint64_t flags, void *context)
{
	(void)fid, (void)node, (void)nodes, (void)service, (void)services;
	(void)numbers, (void)flags, (void)context;
	return -FI_ENOSYS;
}

/* Another number of @n's address, + 1; 0: there is none. */
static size_t double_of(const struct sfi_av *av, size_t n)
{
	for (size_t i = 0; av->doubles && i < av->n; i++)
		if (i != n && !memcmp(&av->addrs[i], &av->addrs[n],
				      sizeof(*av->addrs)))
			return i + 1;
	return 0;
}

/* @heir: another number of the address, or FI_ADDR_NOTAVAIL */
static int take_out(struct sfi_av *av, fi_addr_t n, fi_addr_t *heir)
{
	size_t *b, other;

	if (n >= av->n || !av->addrs[n].id)
		return -FI_EINVAL;
	other = double_of(av, n);
	b = find(av, &av->addrs[n]);
	if (other)
		av->doubles--;
	if (*b == n + 1 && other)
		*b = other;
	else if (*b == n + 1)
		empty(av, b);
	av->addrs[n].id = 0;
	if (n < av->lowest)
		av->lowest = n;
	*heir = other ? other - 1 : FI_ADDR_NOTAVAIL;
	return 0;
}

/*
 * A number is not given again before all endpoints have forgotten its peer: both
 * change under @changes, which is taken before an endpoint's lock.
 */
static int av_remove(struct fid_av *fid, fi_addr_t *numbers, size_t count,
		     uint64_t flags)
{
	struct sfi_av *av = (struct sfi_av *)fid;
	fi_addr_t heir = FI_ADDR_NOTAVAIL;
	int ret = 0;

	if (flags || (!numbers && count))
		return -FI_EINVAL;
	sfi_lock(&av->changes);
	for (size_t i = 0; i < count && !ret; i++) {
		sfi_lock(&av->lock);
		ret = take_out(av, numbers[i], &heir);
		sfi_unlock(&av->lock);
		for (struct sfi_ep *ep = av->eps; !ret && ep; ep = ep->next_of_av)
			sfi_ep_forget(ep, numbers[i], heir);
	}
	sfi_unlock(&av->changes);
	return ret;
}

int sfi_av_address(struct sfi_av *av, fi_addr_t n, struct sci_addr *addr)
{
	int ret = -FI_EINVAL;

	sfi_lock(&av->lock);
	if (n < av->n && av->addrs[n].id) {
		*addr = av->addrs[n];
		ret = 0;
	}
	sfi_unlock(&av->lock);
	return ret;
}

fi_addr_t sfi_av_number(struct sfi_av *av, const struct sci_addr *addr)
{
	fi_addr_t n = FI_ADDR_NOTAVAIL;
	size_t *b;

	sfi_lock(&av->lock);
	b = av->n_buckets ? find(av, addr) : NULL;
	if (b && *b)
		n = *b - 1;
	sfi_unlock(&av->lock);
	return n;
}

static int lookup(struct fid_av *fid, fi_addr_t n, void *addr, size_t *len)
{
	struct sci_addr a;
	int ret = sfi_av_address((struct sfi_av *)fid, n, &a);

	if (ret)
		return ret;
	memcpy(addr, &a, *len < sizeof(a) ? *len : sizeof(a));
	*len = sizeof(a);
	return 0;
}

static const char *straddr(struct fid_av *fid, const void *addr, char *buf,
			   size_t *len)
{
	struct sci_addr a;
	int n;

	(void)fid;
	memcpy(&a, addr, sizeof(a));
	n = snprintf(buf, *len, "fi_sci://%u:%u", a.node, a.id);
	*len = (size_t)n + 1;
	return buf;
}

static int no_av_set(struct fid_av *fid, struct fi_av_set_attr *attr,
		     struct fid_av_set **set, void *context)
{
	(void)fid, (void)attr, (void)set, (void)context;
	return -FI_ENOSYS;
}

static struct fi_ops_av av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = insert,
	.insertsvc = insertsvc,
	.insertsym = no_insertsym,
	.remove = av_remove,
	.lookup = lookup,
	.straddr = straddr,
	.av_set = no_av_set,
};

/* ---- endpoints that use it ---- */

void sfi_av_attach(struct sfi_av *av, struct sfi_ep *ep)
{
	sfi_lock(&av->changes);
	ep->av = av;
	ep->next_of_av = av->eps;
	av->eps = ep;
	av->users++;
	sfi_unlock(&av->changes);
}

void sfi_av_detach(struct sfi_av *av, struct sfi_ep *ep)
{
	struct sfi_ep **p;

	sfi_lock(&av->changes);
	for (p = &av->eps; *p != ep; p = &(*p)->next_of_av)
		;
	*p = ep->next_of_av;
	av->users--;
	sfi_unlock(&av->changes);
}

static int av_close(struct fid *fid)
{
	struct sfi_av *av = (struct sfi_av *)fid;

	if (atomic_load(&av->users))
		return -FI_EBUSY;
	av->domain->users--;
	sfi_lock_fini(&av->lock);
	sfi_lock_fini(&av->changes);
	free(av->addrs);
	free(av->buckets);
	free(av);
	return 0;
}

static struct fi_ops av_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = av_close,
	.bind = sfi_no_bind,
	.control = sfi_no_control,
	.ops_open = sfi_no_ops_open,
};

int sfi_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		struct fid_av **out, void *context)
{
	struct sfi_domain *d = (struct sfi_domain *)domain;
	struct sfi_av *av;

	/* nothing is told later, and there is none to be shared by name */
	if (attr && (attr->name || attr->flags || attr->rx_ctx_bits))
		return -FI_ENOSYS;
	av = calloc(1, sizeof(*av));
	if (!av)
		return -FI_ENOMEM;
	av->fid.fid.fclass = FI_CLASS_AV;
	av->fid.fid.context = context;
	av->fid.fid.ops = &av_fid_ops;
	av->fid.ops = &av_ops;
	av->domain = d;
	d->users++;
	sfi_lock_init(&av->lock, d->shared);
	sfi_lock_init(&av->changes, d->shared);
	if (attr && attr->type == FI_AV_UNSPEC)
		attr->type = FI_AV_TABLE;
	*out = &av->fid;
	return 0;
}
