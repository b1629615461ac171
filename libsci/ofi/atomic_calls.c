// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The calls of fi_atomic(3). Counts are in values in this file, and in bytes in other files. */
#include "libsci/ofi/onesided.h"

#include <errno.h>

/* The arguments of all forms of atomic calls. */
struct atomic {
	enum sfi_verb verb;
	enum fi_datatype type;
	enum fi_op op;
	const struct fi_ioc *out, *compare, *in;
	size_t n_out, n_compare, n_in;
	const struct fi_rma_ioc *places;
	size_t n_places;
	fi_addr_t peer;
	uint64_t data;
	uint64_t flags;
	void *context;
	bool untold;
};

/* Convert a vector of values to bytes. Return -FI_EINVAL for too many pieces or values. */
static int ioc_to_bytes(const struct fi_ioc *ioc, size_t n, size_t size,
			struct iovec *iov)
{
	if (n > SFI_IOV_MAX)
		return -FI_EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (ioc[i].count > SFI_ATOMIC_MAX / size)
			return -FI_EINVAL;
		iov[i].iov_base = ioc[i].addr;
		iov[i].iov_len = ioc[i].count * size;
	}
	return 0;
}

static int atomic_places(const struct atomic *c, size_t size, struct sfi_place *p)
{
	size_t total = 0;

	if (c->n_places > SFI_RMA_IOV_MAX)
		return -FI_EINVAL;
	for (size_t i = 0; i < c->n_places; i++) {
		if (c->places[i].count > SFI_ATOMIC_MAX / size)
			return -FI_EINVAL;
		p[i].addr = c->places[i].addr;
		p[i].key = c->places[i].key;
		p[i].len = c->places[i].count * size;
		total += p[i].len;
	}
	return total > SFI_ATOMIC_MAX ? -FI_EINVAL : 0;
}

static ssize_t atomic_call(struct fid_ep *fid, const struct atomic *c)
{
	struct iovec out[SFI_IOV_MAX], compare[SFI_IOV_MAX], in[SFI_IOV_MAX];
	struct sfi_place places[SFI_RMA_IOV_MAX];
	size_t size = sfi_atomic_size(c->type);
	/* an atomic read has no operands, whatever the call passes */
	size_t n_out = c->op == FI_ATOMIC_READ ? 0 : c->n_out;
	const struct sfi_ask a = {
		.verb = c->verb, .out = out, .n_out = n_out, .compare = compare,
		.n_compare = c->n_compare, .in = in, .n_in = c->n_in,
		.places = places, .n_places = c->n_places, .peer = c->peer,
		.data = c->data, .flags = c->flags, .context = c->context,
		.type = c->type, .op = c->op, .untold = c->untold,
	};

	if (!sfi_atomic_valid(c->verb, c->type, c->op))
		return -FI_EOPNOTSUPP;
	if (ioc_to_bytes(c->out, n_out, size, out) ||
	    ioc_to_bytes(c->compare, c->n_compare, size, compare) ||
	    ioc_to_bytes(c->in, c->n_in, size, in) || atomic_places(c, size, places))
		return -FI_EINVAL;
	return sfi_ask((struct sfi_ep *)fid, &a);
}

static uint64_t ep_default_flags(const struct fid_ep *fid)
{
	return ((const struct sfi_ep *)fid)->tx.op_flags;
}

static size_t ioc_count_values(const struct fi_ioc *ioc, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += ioc[i].count;
	return count;
}

/* ---- fi_atomic() ---- */

static ssize_t atomic_writev(struct fid_ep *fid, const struct fi_ioc *iov,
			     void **desc, size_t n, fi_addr_t dest, uint64_t addr,
			     uint64_t key, enum fi_datatype type, enum fi_op op,
			     void *context)
{
	const struct fi_rma_ioc place = {
		.addr = addr, .key = key, .count = ioc_count_values(iov, n),
	};
	const struct atomic c = {
		.verb = SFI_ATOMIC, .type = type, .op = op, .out = iov,
		.n_out = n, .places = &place, .n_places = 1, .peer = dest,
		.flags = ep_default_flags(fid), .context = context,
	};

	(void)desc;
	return atomic_call(fid, &c);
}

static ssize_t atomic_write(struct fid_ep *fid, const void *buf, size_t count,
			    void *desc, fi_addr_t dest, uint64_t addr,
			    uint64_t key, enum fi_datatype type, enum fi_op op,
			    void *context)
{
	const struct fi_ioc iov = { .addr = (void *)buf, .count = count };

	return atomic_writev(fid, &iov, &desc, 1, dest, addr, key, type, op,
			     context);
}

static ssize_t atomic_inject(struct fid_ep *fid, const void *buf, size_t count,
			     fi_addr_t dest, uint64_t addr, uint64_t key,
			     enum fi_datatype type, enum fi_op op)
{
	const struct fi_ioc iov = { .addr = (void *)buf, .count = count };
	const struct fi_rma_ioc place = {
		.addr = addr, .key = key, .count = count,
	};
	const struct atomic c = {
		.verb = SFI_ATOMIC, .type = type, .op = op, .out = &iov,
		.n_out = 1, .places = &place, .n_places = 1, .peer = dest,
		.flags = FI_INJECT, .untold = true,
	};

	return atomic_call(fid, &c);
}

/* Return the arguments of a call that takes a struct fi_msg_atomic. */
static struct atomic args_of_message(enum sfi_verb verb, const struct fi_msg_atomic *m,
				     uint64_t flags)
{
	return (struct atomic){
		.verb = verb, .type = m->datatype, .op = m->op,
		.out = m->msg_iov, .n_out = m->iov_count, .places = m->rma_iov,
		.n_places = m->rma_iov_count, .peer = m->addr, .data = m->data,
		.flags = flags, .context = m->context,
	};
}

static ssize_t atomic_writemsg(struct fid_ep *fid, const struct fi_msg_atomic *m,
			       uint64_t flags)
{
	const struct atomic c = args_of_message(SFI_ATOMIC, m, flags);

	return atomic_call(fid, &c);
}

/* ---- fi_fetch_atomic() ---- */

static ssize_t atomic_fetchv(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
			     size_t n, struct fi_ioc *result, void **result_desc,
			     size_t n_result, fi_addr_t dest, uint64_t addr,
			     uint64_t key, enum fi_datatype type, enum fi_op op,
			     void *context)
{
	const struct fi_rma_ioc place = {
		.addr = addr, .key = key, .count = ioc_count_values(result, n_result),
	};
	const struct atomic c = {
		.verb = SFI_FETCH, .type = type, .op = op, .out = iov,
		.n_out = n, .in = result, .n_in = n_result, .places = &place,
		.n_places = 1, .peer = dest, .flags = ep_default_flags(fid),
		.context = context,
	};

	(void)desc, (void)result_desc;
	return atomic_call(fid, &c);
}

static ssize_t atomic_fetch(struct fid_ep *fid, const void *buf, size_t count,
			    void *desc, void *result, void *result_desc, fi_addr_t dest,
			    uint64_t addr, uint64_t key, enum fi_datatype type,
			    enum fi_op op, void *context)
{
	const struct fi_ioc iov = { .addr = (void *)buf, .count = count };
	struct fi_ioc back = { .addr = result, .count = count };

	return atomic_fetchv(fid, &iov, &desc, 1, &back, &result_desc, 1, dest, addr,
			     key, type, op, context);
}

static ssize_t atomic_fetchmsg(struct fid_ep *fid, const struct fi_msg_atomic *m,
			       struct fi_ioc *result, void **result_desc,
			       size_t n_result, uint64_t flags)
{
	struct atomic c = args_of_message(SFI_FETCH, m, flags);

	(void)result_desc;
	c.in = result;
	c.n_in = n_result;
	return atomic_call(fid, &c);
}

/* ---- fi_compare_atomic() ---- */

static ssize_t atomic_comparev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
			       size_t n, const struct fi_ioc *compare,
			       void **compare_desc, size_t n_compare,
			       struct fi_ioc *result, void **result_desc,
			       size_t n_result, fi_addr_t dest, uint64_t addr,
			       uint64_t key, enum fi_datatype type, enum fi_op op,
			       void *context)
{
	const struct fi_rma_ioc place = {
		.addr = addr, .key = key, .count = ioc_count_values(iov, n),
	};
	const struct atomic c = {
		.verb = SFI_COMPARE, .type = type, .op = op, .out = iov,
		.n_out = n, .compare = compare, .n_compare = n_compare,
		.in = result, .n_in = n_result, .places = &place, .n_places = 1,
		.peer = dest, .flags = ep_default_flags(fid), .context = context,
	};

	(void)desc, (void)compare_desc, (void)result_desc;
	return atomic_call(fid, &c);
}

static ssize_t atomic_compare(struct fid_ep *fid, const void *buf, size_t count,
			      void *desc, const void *compare, void *compare_desc,
			      void *result, void *result_desc, fi_addr_t dest,
			      uint64_t addr, uint64_t key, enum fi_datatype type,
			      enum fi_op op, void *context)
{
	const struct fi_ioc iov = { .addr = (void *)buf, .count = count };
	const struct fi_ioc with = { .addr = (void *)compare, .count = count };
	struct fi_ioc back = { .addr = result, .count = count };

	return atomic_comparev(fid, &iov, &desc, 1, &with, &compare_desc, 1, &back,
			       &result_desc, 1, dest, addr, key, type, op, context);
}

static ssize_t atomic_comparemsg(struct fid_ep *fid, const struct fi_msg_atomic *m,
				 const struct fi_ioc *compare, void **compare_desc,
				 size_t n_compare, struct fi_ioc *result,
				 void **result_desc, size_t n_result, uint64_t flags)
{
	struct atomic c = args_of_message(SFI_COMPARE, m, flags);

	(void)compare_desc, (void)result_desc;
	c.compare = compare;
	c.n_compare = n_compare;
	c.in = result;
	c.n_in = n_result;
	return atomic_call(fid, &c);
}

/* ---- queries ---- */

static int atomic_is_valid(enum sfi_verb verb, enum fi_datatype type, enum fi_op op,
			   size_t *count)
{
	if (!count)
		return -FI_EINVAL;
	if (!sfi_atomic_valid(verb, type, op))
		return -FI_EOPNOTSUPP;
	*count = SFI_ATOMIC_MAX / sfi_atomic_size(type);
	return 0;
}

static int write_valid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op,
		       size_t *count)
{
	(void)ep;
	return atomic_is_valid(SFI_ATOMIC, type, op, count);
}

static int fetch_valid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op,
		       size_t *count)
{
	(void)ep;
	return atomic_is_valid(SFI_FETCH, type, op, count);
}

static int compare_valid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op,
			 size_t *count)
{
	(void)ep;
	return atomic_is_valid(SFI_COMPARE, type, op, count);
}

int sfi_query_atomic(struct fid_domain *domain, enum fi_datatype type,
		     enum fi_op op, struct fi_atomic_attr *attr, uint64_t flags)
{
	enum sfi_verb verb = flags & FI_COMPARE_ATOMIC ? SFI_COMPARE :
			     flags & FI_FETCH_ATOMIC   ? SFI_FETCH :
							 SFI_ATOMIC;

	(void)domain;
	if (!attr ||
	    flags & ~(uint64_t)(FI_COMPARE_ATOMIC | FI_FETCH_ATOMIC))
		return -FI_EINVAL;
	attr->size = sfi_atomic_size(type);
	return atomic_is_valid(verb, type, op, &attr->count);
}

struct fi_ops_atomic sfi_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = atomic_write,
	.writev = atomic_writev,
	.writemsg = atomic_writemsg,
	.inject = atomic_inject,
	.readwrite = atomic_fetch,
	.readwritev = atomic_fetchv,
	.readwritemsg = atomic_fetchmsg,
	.compwrite = atomic_compare,
	.compwritev = atomic_comparev,
	.compwritemsg = atomic_comparemsg,
	.writevalid = write_valid,
	.readwritevalid = fetch_valid,
	.compwritevalid = compare_valid,
};
