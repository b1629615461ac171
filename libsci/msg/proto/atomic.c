// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: atomics
 *
 * Every atomic is one locked instruction of a CPU that has the word in coherent memory. Where
 * imports are coherent memory, the caller's CPU executes the instruction. Elsewhere the owner's CPU
 * executes it, in a message handler. So the atomics of all peers, and of the owner's threads, are
 * atomic to one another.
 */

#include "libsci/msg/proto/proto.h"

#include <errno.h>

/* ---- arithmetic ---- */

static bool type_is_float(enum sci_rmw_type type)
{
	return type == SCI_RMW_FLOAT || type == SCI_RMW_DOUBLE;
}

/* Return the size of the word in bytes: 4 or 8. */
size_t atomic_size(const struct sci_rmw *a)
{
	return a->type == SCI_RMW_INT32 || a->type == SCI_RMW_UINT32 ||
	       a->type == SCI_RMW_FLOAT ? 4 : 8;
}

bool atomic_valid(const struct sci_rmw *a)
{
	if ((unsigned int)a->type > SCI_RMW_DOUBLE ||
	    (unsigned int)a->op > SCI_RMW_MAX)
		return false;
	return !type_is_float(a->type) ||
	       (a->op != SCI_RMW_AND && a->op != SCI_RMW_OR &&
		a->op != SCI_RMW_XOR);
}

/* The operations for one type. Sums of signed integers wrap, like unsigned sums. */
#define COMPUTE(name, type, sum_type)					\
	static uint64_t compute_##name(enum sci_rmw_op op,		\
				       uint64_t old, uint64_t operand)	\
	{								\
		uint64_t bits = 0;					\
		type t, o;						\
									\
		memcpy(&t, &old, sizeof(t));				\
		memcpy(&o, &operand, sizeof(o));			\
		if (op == SCI_RMW_ADD)				\
			t = (type)((sum_type)t + (sum_type)o);		\
		else if (op == SCI_RMW_MIN ? o < t : o > t)		\
			t = o;						\
		memcpy(&bits, &t, sizeof(t));				\
		return bits;						\
	}

COMPUTE(int32, int32_t, uint32_t)
COMPUTE(uint32, uint32_t, uint32_t)
COMPUTE(int64, int64_t, uint64_t)
COMPUTE(uint64, uint64_t, uint64_t)
COMPUTE(float, float, float)
COMPUTE(double, double, double)

static uint64_t value_compute(const struct sci_rmw *a, uint64_t old)
{
	switch (a->type) {
	case SCI_RMW_INT32:
		return compute_int32(a->op, old, a->operand);
	case SCI_RMW_UINT32:
		return compute_uint32(a->op, old, a->operand);
	case SCI_RMW_INT64:
		return compute_int64(a->op, old, a->operand);
	case SCI_RMW_UINT64:
		return compute_uint64(a->op, old, a->operand);
	case SCI_RMW_FLOAT:
		return compute_float(a->op, old, a->operand);
	default:
		return compute_double(a->op, old, a->operand);
	}
}

/* A value of 4 bytes is in the lower half of @old, of @operand and of the result. */
static uint64_t rmw_compute(const struct sci_rmw *a, uint64_t old)
{
	switch (a->op) {
	case SCI_RMW_READ:
		return old;
	case SCI_RMW_SWAP:
		return a->operand;
	case SCI_RMW_COMPARE_SWAP:
		return old == a->compare ? a->operand : old;
	case SCI_RMW_AND:
		return old & a->operand;
	case SCI_RMW_OR:
		return old | a->operand;
	case SCI_RMW_XOR:
		return old ^ a->operand;
	default:
		return value_compute(a, old);
	}
}

static uint64_t word_apply_32(uint32_t *word, const struct sci_rmw *a)
{
	struct sci_rmw low = *a;
	uint32_t old, new;

	low.operand = (uint32_t)a->operand;
	low.compare = (uint32_t)a->compare;
	if (a->op == SCI_RMW_ADD && !type_is_float(a->type))
		return sci_fetch_add(word, (uint32_t)a->operand);
	old = sci_load_acquire(word);
	do {
		new = (uint32_t)rmw_compute(&low, old);
	} while (new != old && !sci_compare_exchange(word, &old, new));
	return old;
}

static uint64_t word_apply_64(uint64_t *word, const struct sci_rmw *a)
{
	uint64_t old, new;

	if (a->op == SCI_RMW_ADD && !type_is_float(a->type))
		return sci_fetch_add(word, a->operand);
	old = sci_load_acquire(word);
	do {
		new = rmw_compute(a, old);
	} while (new != old && !sci_compare_exchange(word, &old, new));
	return old;
}

/* Apply @a, which is valid, to the aligned @word. Return the old value. */
uint64_t atomic_apply(void *word, const struct sci_rmw *a)
{
	return atomic_size(a) == 4 ? word_apply_32(word, a) : word_apply_64(word, a);
}

/* Store the former value @old for the program. Values between endpoints are little-endian. */
void atomic_result(void *before, const struct sci_rmw *a, uint64_t old)
{
	if (before)
		memcpy(before, &old, atomic_size(a));
}

int sci_rmw_apply(void *word, const struct sci_rmw *a, void *before)
{
	if (!word || !a || !atomic_valid(a) || (uintptr_t)word % atomic_size(a))
		return -EINVAL;
	atomic_result(before, a, atomic_apply(word, a));
	return 0;
}

/* ---- atomics that the owner executes for a peer ---- */

int atomic_ask(struct sci_peer *p, uint32_t id, uint32_t segment, uint64_t offset,
	       const struct sci_rmw *a)
{
	const struct atomic_request r = {
		.offset = offset, .operand = a->operand, .compare = a->compare,
		.segment = segment, .op = (uint8_t)a->op, .type = (uint8_t)a->type,
	};
	const struct iovec iov = { .iov_base = (void *)&r, .iov_len = sizeof(r) };

	return handler_send(p, HANDLER_ATOMIC, id, &iov, 1);
}

static int atomic_serve(struct sci_ep *ep, const struct atomic_request *r, uint64_t *before)
{
	const struct sci_rmw a = {
		.op = r->op, .type = r->type, .operand = r->operand,
		.compare = r->compare,
	};
	struct msg_buf *b = buf_by_segment(ep, r->segment);

	if (!b)
		return -ENOENT;
	if (!atomic_valid(&a) || r->offset % atomic_size(&a))
		return -EINVAL;
	if (r->offset > b->len || b->len - r->offset < atomic_size(&a))
		return -ERANGE;
	*before = atomic_apply(b->addr + r->offset, &a);
	return 0;
}

static void atomic_handle_request(void *arg, const struct sci_handled *m)
{
	struct atomic_reply reply = { 0 };
	const struct iovec iov = { .iov_base = &reply, .iov_len = sizeof(reply) };
	struct sci_ep *ep = arg;
	struct atomic_request r;

	if (m->error || m->len != sizeof(r)) {
		reply.status = m->error ? m->error : -EPROTO;
	} else {
		handled_copy(&r, m->data, sizeof(r));
		reply.status = atomic_serve(ep, &r, &reply.before);
	}
	handler_answer(m->peer, HANDLER_ATOMIC_REPLY, m->tag, &iov, 1);
}

static void atomic_handle_reply(void *arg, const struct sci_handled *m)
{
	struct atomic_reply r = { .status = m->error ? m->error : -EPROTO };

	(void)arg;
	if (!m->error && m->len == sizeof(r))
		handled_copy(&r, m->data, sizeof(r));
	onesided_answer(m->peer, m->tag, r.status > 0 ? -EPROTO : r.status, r.before);
}

void atomics_init(struct sci_ep *ep)
{
	ep->handlers[HANDLER_ATOMIC] = (struct msg_handler){ atomic_handle_request, ep };
	ep->handlers[HANDLER_ATOMIC_REPLY] = (struct msg_handler){ atomic_handle_reply, ep };
}
