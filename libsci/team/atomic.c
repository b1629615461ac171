// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Atomic calls. On shared memory, the CPU executes an atomic instruction. The endpoint changes words
 * of far members.
 */

#include "libsci/team/team.h"

#define APPLY(type)							\
	static uint64_t apply_##type(type *word, unsigned int op, type operand, \
				     type compare)			\
	{								\
		type old = compare;					\
									\
		switch (op) {						\
		case SCI_ATOMIC_SET:					\
			return sci_exchange(word, operand);		\
		case SCI_ATOMIC_ADD:					\
			return sci_fetch_add(word, operand);		\
		case SCI_ATOMIC_AND:					\
			return sci_fetch_and(word, operand);		\
		case SCI_ATOMIC_OR:					\
			return sci_fetch_or(word, operand);		\
		case SCI_ATOMIC_XOR:					\
			return sci_fetch_xor(word, operand);		\
		case SCI_ATOMIC_CAS:					\
			(void)sci_compare_exchange(word, &old, operand); \
			return old;					\
		default:						\
			return sci_load_acquire(word);			\
		}							\
	}

APPLY(uint32_t)
APPLY(uint64_t)

static uint64_t atomic_apply(void *word, unsigned int size, unsigned int op, uint64_t operand,
			     uint64_t compare)
{
	if (size == 4)
		return apply_uint32_t(word, op, (uint32_t)operand, (uint32_t)compare);
	return apply_uint64_t(word, op, operand, compare);
}

static const enum sci_rmw_op far_ops[SCI_ATOMICS] = {
	[SCI_ATOMIC_GET] = SCI_RMW_READ,
	[SCI_ATOMIC_SET] = SCI_RMW_SWAP,
	[SCI_ATOMIC_ADD] = SCI_RMW_ADD,
	[SCI_ATOMIC_AND] = SCI_RMW_AND,
	[SCI_ATOMIC_OR] = SCI_RMW_OR,
	[SCI_ATOMIC_XOR] = SCI_RMW_XOR,
	[SCI_ATOMIC_CAS] = SCI_RMW_COMPARE_SWAP,
};

struct sci_rmw far_rmw(enum sci_atomic op, unsigned int size, uint64_t operand,
		       uint64_t compare)
{
	return (struct sci_rmw){
		.op = far_ops[op], .type = size == 4 ? SCI_RMW_UINT32 : SCI_RMW_UINT64,
		.operand = operand, .compare = compare,
	};
}

static int team_atomic(struct sci_team *t, void *word, unsigned int size, unsigned int op,
		       uint64_t operand, uint64_t compare, uint64_t *old, int rank,
		       bool wait)
{
	const struct sci_key *key = NULL;
	uint64_t value, offset = 0;
	struct sci_rmw rmw;
	void *ptr;
	int ret;

	if (!t || (size != 4 && size != 8) || op >= SCI_ATOMICS || (size_t)word % size)
		return -EINVAL;
	ret = world_usable(t->world);
	ret = ret ? ret : symmetric_at(t, word, size, rank, &ptr, &key, &offset);
	if (ret)
		return ret;
	if (!ptr) {
		rmw = far_rmw(op, size, operand, compare);
		return far_atomic(t, rank, key, offset, &rmw, old, wait);
	}
	value = atomic_apply(ptr, size, op, operand, compare);
	if (old)
		*old = value;
	if (op != SCI_ATOMIC_GET)
		world_wake(t->world, t->members[rank].world);
	/* make progress: the program may repeat the call until a far member changes the word */
	if (old && t->world->far)
		world_poll(t->world);
	return 0;
}

int sci_team_atomic(struct sci_team *team, void *word, unsigned int size,
		    enum sci_atomic op, uint64_t operand, uint64_t compare,
		    uint64_t *old, int rank)
{
	return team_atomic(team, word, size, op, operand, compare, old, rank, old);
}

int sci_team_atomic_nbi(struct sci_team *team, void *word, unsigned int size,
			enum sci_atomic op, uint64_t operand, uint64_t compare,
			uint64_t *old, int rank)
{
	return team_atomic(team, word, size, op, operand, compare, old, rank, false);
}
