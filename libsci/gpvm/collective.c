// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Reductions, gather and scatter over a group. */

#include "libsci/gpvm/group.h"

#include <stdlib.h>
#include <string.h>

/*
 * Collective calls use their own message context, so that receives of the program with any tag do
 * not match their messages.
 */
#define GROUP_CONTEXT	0x7fffc

/* Return the bytes of an item of @type; 0: unknown type. */
static int type_size(int type)
{
	static const unsigned char sizes[] = {
		[PVM_BYTE] = 1, [PVM_SHORT] = sizeof(short), [PVM_INT] = sizeof(int),
		[PVM_FLOAT] = sizeof(float), [PVM_CPLX] = 2 * sizeof(float),
		[PVM_DOUBLE] = sizeof(double), [PVM_DCPLX] = 2 * sizeof(double),
		[PVM_LONG] = sizeof(long), [PVM_USHORT] = sizeof(short),
		[PVM_UINT] = sizeof(int), [PVM_ULONG] = sizeof(long),
	};

	return type < 0 || type > PVM_ULONG ? 0 : sizes[type];
}

/* ---- operators ---- */

#define EACH(ctype, op)								\
	do {									\
		ctype *a = x;							\
		const ctype *b = y;						\
										\
		for (int i = 0; i < *n; i++)					\
			op;							\
	} while (0)

#define TAKE_MAX	(a[i] = b[i] > a[i] ? b[i] : a[i])
#define TAKE_MIN	(a[i] = b[i] < a[i] ? b[i] : a[i])
#define ADD		(a[i] += b[i])
#define MULTIPLY	(a[i] *= b[i])

#define REAL_TYPES(op)								\
	case PVM_BYTE: EACH(signed char, op); break;				\
	case PVM_SHORT: EACH(short, op); break;					\
	case PVM_INT: EACH(int, op); break;					\
	case PVM_LONG: EACH(long, op); break;					\
	case PVM_USHORT: EACH(unsigned short, op); break;			\
	case PVM_UINT: EACH(unsigned int, op); break;				\
	case PVM_ULONG: EACH(unsigned long, op); break;				\
	case PVM_FLOAT: EACH(float, op); break;					\
	case PVM_DOUBLE: EACH(double, op); break

/* LARGER() and SMALLER() keep the element with the larger or smaller absolute value. */
#define LARGER(type)	(a[i] = complex_larger_##type(b[i], a[i]) ? b[i] : a[i])
#define SMALLER(type)	(a[i] = complex_larger_##type(a[i], b[i]) ? b[i] : a[i])

static bool complex_larger_f(_Complex float p, _Complex float q)
{
	float pr = __real__ p, pi = __imag__ p, qr = __real__ q, qi = __imag__ q;

	return pr * pr + pi * pi > qr * qr + qi * qi;
}

static bool complex_larger_d(_Complex double p, _Complex double q)
{
	double pr = __real__ p, pi = __imag__ p, qr = __real__ q, qi = __imag__ q;

	return pr * pr + pi * pi > qr * qr + qi * qi;
}

GROUP_API void PvmMax(int *type, void *x, void *y, int *n, int *info)
{
	*info = PvmOk;
	switch (*type) {
	REAL_TYPES(TAKE_MAX);
	case PVM_CPLX: EACH(_Complex float, LARGER(f)); break;
	case PVM_DCPLX: EACH(_Complex double, LARGER(d)); break;
	default: *info = PvmBadParam; break;
	}
}

GROUP_API void PvmMin(int *type, void *x, void *y, int *n, int *info)
{
	*info = PvmOk;
	switch (*type) {
	REAL_TYPES(TAKE_MIN);
	case PVM_CPLX: EACH(_Complex float, SMALLER(f)); break;
	case PVM_DCPLX: EACH(_Complex double, SMALLER(d)); break;
	default: *info = PvmBadParam; break;
	}
}

GROUP_API void PvmSum(int *type, void *x, void *y, int *n, int *info)
{
	*info = PvmOk;
	switch (*type) {
	REAL_TYPES(ADD);
	case PVM_CPLX: EACH(_Complex float, ADD); break;
	case PVM_DCPLX: EACH(_Complex double, ADD); break;
	default: *info = PvmBadParam; break;
	}
}

GROUP_API void PvmProduct(int *type, void *x, void *y, int *n, int *info)
{
	*info = PvmOk;
	switch (*type) {
	REAL_TYPES(MULTIPLY);
	case PVM_CPLX: EACH(_Complex float, MULTIPLY); break;
	case PVM_DCPLX: EACH(_Complex double, MULTIPLY); break;
	default: *info = PvmBadParam; break;
	}
}

/* ---- calls ---- */

/*
 * struct coll - a collective call
 * @tids, @n: the members, on the root
 * @me: index of this task in @tids, on the root; -1: not the root
 * @root: tid of the root
 */
struct coll {
	enum trace_kind kind;
	int *tids;
	int n;
	int me;
	int root;
	int ctx;
};

static int coll_begin(struct coll *c, enum trace_kind kind, char *group, int type, int count,
		      int tag, int root)
{
	int tid, ret;

	*c = (struct coll){ .kind = kind, .me = -1 };
	pvmgroup_entry(kind, "GN/s MC", group, tag);
	tid = pvm_mytid();
	if (tid < 0)
		return tid;
	if (!type_size(type) || count < 1 || tag < 0 || root < 0)
		return PvmBadParam;
	if (!group || !*group)
		return PvmNullGroup;
	/* @root is an instance, which differs from the index in @tids if a member has left */
	ret = group_tid(group, root);
	if (ret < 0)
		return ret;
	c->root = ret;
	if (tid == c->root) {
		c->n = group_tids(group, &c->tids);
		for (int i = 0; i < c->n; i++)
			if (c->tids[i] == tid)
				c->me = i;
		if (c->n < 0)
			return c->n;
	}
	c->ctx = pvmmyctx;
	pvmmyctx = GROUP_CONTEXT;
	return 0;
}

static int coll_end(struct coll *c, int ret)
{
	if (c->ctx || pvmmyctx == GROUP_CONTEXT)
		pvmmyctx = c->ctx;
	free(c->tids);
	ret = group_result(ret < 0 ? ret : PvmOk);
	pvmgroup_exit(c->kind, "CC", ret);
	return ret;
}

static int coll_send(int tid, int tag, const void *data, int count, int type)
{
	return pvm_psend(tid, tag, (void *)data, count, type);
}

static int coll_recv(int tid, int tag, void *data, int count, int type)
{
	int len, ret = pvm_precv(tid, tag, data, count, type, NULL, NULL, &len);

	return ret < 0 ? ret : len == count * type_size(type) ? 0 : PvmMismatch;
}

GROUP_API int pvm_reduce(void (*func)(int *, void *, void *, int *, int *), void *data,
		       int count, int type, int tag, char *group, int root)
{
	size_t bytes = (size_t)count * (size_t)type_size(type);
	void *other = NULL;
	struct coll c;
	int ret, info = 0;

	ret = coll_begin(&c, TEV_REDUCE, group, type, count, tag, root);
	if (!ret && (!func || (count && !data)))
		ret = PvmBadParam;
	if (!ret && c.me < 0)
		ret = coll_send(c.root, tag, data, count, type);
	else if (!ret && !(other = malloc(bytes ? bytes : 1)))
		ret = PvmNoMem;
	for (int i = 0; !ret && i < c.n; i++) {
		if (i == c.me)
			continue;
		ret = coll_recv(c.tids[i], tag, other, count, type);
		if (!ret)
			func(&type, data, other, &count, &info);
		if (info < 0)
			ret = info;
	}
	free(other);
	return coll_end(&c, ret);
}

GROUP_API int pvm_gather(void *result, void *data, int count, int type, int tag, char *group,
		       int root)
{
	size_t bytes = (size_t)count * (size_t)type_size(type);
	struct coll c;
	int ret = coll_begin(&c, TEV_GATHER, group, type, count, tag, root);

	if (!ret && count && (!data || (c.me >= 0 && !result)))
		ret = PvmBadParam;
	if (!ret && c.me < 0)
		ret = coll_send(c.root, tag, data, count, type);
	for (int i = 0; !ret && i < c.n; i++) {
		char *to = (char *)result + (size_t)i * bytes;

		if (i != c.me)
			ret = coll_recv(c.tids[i], tag, to, count, type);
		else if (bytes)
			memmove(to, data, bytes);
	}
	return coll_end(&c, ret);
}

GROUP_API int pvm_scatter(void *result, void *data, int count, int type, int tag, char *group,
			int root)
{
	size_t bytes = (size_t)count * (size_t)type_size(type);
	struct coll c;
	int ret = coll_begin(&c, TEV_SCATTER, group, type, count, tag, root);

	if (!ret && count && (!result || (c.me >= 0 && !data)))
		ret = PvmBadParam;
	if (!ret && c.me < 0)
		ret = coll_recv(c.root, tag, result, count, type);
	for (int i = 0; !ret && i < c.n; i++) {
		const char *from = (const char *)data + (size_t)i * bytes;

		if (i != c.me)
			ret = coll_send(c.tids[i], tag, from, count, type);
		else if (bytes)
			memmove(result, from, bytes);
	}
	return coll_end(&c, ret);
}
