// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Address vectors. An address gets the lowest free number, for FI_AV_MAP as for FI_AV_TABLE:
 * fi_av(3) lets programs with tables rely on that. An address that is inserted twice has two
 * numbers, and one of them is the source of its messages.
 */
#include "libsci/ofi/ofi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An address and its number. */
struct sfi_av_entry {
	struct hash_node node;		/* by address */
	struct sci_addr addr;
	size_t number;
};

static uint64_t address_key(const struct sci_addr *addr)
{
	return (uint64_t)addr->node << 32 | addr->id;
}

static fi_addr_t address_find_number(const struct sfi_av *av, const struct sci_addr *addr)
{
	struct hash_node *node = hash_find(&av->by_addr, address_key(addr));

	return node ? container_of(node, struct sfi_av_entry, node)->number :
		      FI_ADDR_NOTAVAIL;
}

static int av_grow(struct sfi_av *av)
{
	size_t room = av->room ? av->room * 2 : 64;
	struct sfi_av_entry **entries;

	entries = realloc(av->entries, room * sizeof(struct sfi_av_entry *));
	if (!entries)
		return -FI_ENOMEM;
	av->entries = entries;
	av->room = room;
	return 0;
}

/* Find the lowest free number. Return 0 or -FI_ENOMEM. */
static int number_find_free(struct sfi_av *av, size_t *number)
{
	size_t n = av->lowest;
	int ret;

	while (n < av->n && av->entries[n])
		n++;
	ret = n == av->room ? av_grow(av) : 0;
	if (ret)
		return ret;
	if (n == av->n)
		av->entries[av->n++] = NULL;
	av->lowest = n;
	*number = n;
	return 0;
}

static int address_insert(struct sfi_av *av, const struct sci_addr *addr,
			  fi_addr_t *number)
{
	struct sfi_av_entry *e;
	size_t n;
	int ret;

	*number = FI_ADDR_NOTAVAIL;
	if (!addr->id || addr->id > SCI_EP_ID_MAX)
		return -FI_EINVAL;
	ret = number_find_free(av, &n);
	if (ret)
		return ret;
	e = malloc(sizeof(*e));
	if (!e || hash_add(&av->by_addr, &e->node, address_key(addr))) {
		free(e);
		return -FI_ENOMEM;
	}
	e->addr = *addr;
	e->number = n;
	av->entries[n] = e;
	*number = n;
	return 0;
}

static int av_insert(struct fid_av *fid, const void *addrs, size_t count,
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
		ret = address_insert(av, &a, &n);
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

static int av_insertsvc(struct fid_av *fid, const char *node, const char *service,
			fi_addr_t *number, uint64_t flags, void *context)
{
	struct sci_addr a;
	int ret = node && service ? sfi_address(node, service, &a) : -FI_EINVAL;

	return ret ? ret : av_insert(fid, &a, 1, number, flags, context);
}

static int no_insertsym(struct fid_av *fid, const char *node, size_t nodes,
			const char *service, size_t services,
			fi_addr_t *numbers, uint64_t flags, void *context)
{
	(void)fid, (void)node, (void)nodes, (void)service, (void)services;
	(void)numbers, (void)flags, (void)context;
	return -FI_ENOSYS;
}

/* Remove number @n. @heir: is set to another number of the address, or FI_ADDR_NOTAVAIL */
static int av_number_remove(struct sfi_av *av, fi_addr_t n, fi_addr_t *heir)
{
	struct sfi_av_entry *e = n < av->n ? av->entries[n] : NULL;

	if (!e)
		return -FI_EINVAL;
	hash_del(&av->by_addr, &e->node);
	*heir = address_find_number(av, &e->addr);
	av->entries[n] = NULL;
	if (n < av->lowest)
		av->lowest = n;
	free(e);
	return 0;
}

/*
 * Remove numbers. A number must not be reused before all endpoints have removed its peer. So both
 * changes are made under av->changes, which is taken before an endpoint's lock.
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
		ret = av_number_remove(av, numbers[i], &heir);
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
	if (n < av->n && av->entries[n]) {
		*addr = av->entries[n]->addr;
		ret = 0;
	}
	sfi_unlock(&av->lock);
	return ret;
}

fi_addr_t sfi_av_number(struct sfi_av *av, const struct sci_addr *addr)
{
	fi_addr_t n;

	sfi_lock(&av->lock);
	n = address_find_number(av, addr);
	sfi_unlock(&av->lock);
	return n;
}

static int av_lookup(struct fid_av *fid, fi_addr_t n, void *addr, size_t *len)
{
	struct sci_addr a;
	int ret = sfi_av_address((struct sfi_av *)fid, n, &a);

	if (ret)
		return ret;
	memcpy(addr, &a, *len < sizeof(a) ? *len : sizeof(a));
	*len = sizeof(a);
	return 0;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf,
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
	.insert = av_insert,
	.insertsvc = av_insertsvc,
	.insertsym = no_insertsym,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
	.av_set = no_av_set,
};

/* ---- endpoints that are bound to the vector ---- */

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
	for (size_t i = 0; i < av->n; i++)
		free(av->entries[i]);
	free(av->entries);
	hash_free(&av->by_addr);
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

	/* insertions are synchronous, and address vectors have no shared names */
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
