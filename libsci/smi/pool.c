// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: a buddy allocator in shared memory
 *
 * A block has a power of two of units, from one unit up. A byte per unit says whether a free block,
 * a used block or no block begins at the unit. Links are offsets, because processes may map the
 * memory at different addresses. The allocator's own data are at the start of the memory and count
 * as used.
 */
#include "libsci/smi/internal.h"

#include <string.h>

#define ORDERS		48
#define MAGIC		0x736d6970u
#define USED		0x80u
#define FREE		0x40u
#define ORDER_MASK	0x3fu

struct block {				/* a free block */
	uint64_t next, prev;		/* units, or NONE */
};

#define NONE		UINT64_MAX

struct smi_pool {
	uint32_t magic;
	uint32_t order;			/* of the whole memory */
	uint64_t first;			/* units of the allocator's own data */
	uint64_t heads[ORDERS];
	uint8_t state[];		/* per unit */
};

static struct block *block_at(struct smi_pool *p, uint64_t unit)
{
	return (struct block *)(void *)((char *)p + unit * SMI_POOL_UNIT);
}

static void block_push(struct smi_pool *p, uint64_t unit, unsigned int order)
{
	uint64_t head = p->heads[order];

	*block_at(p, unit) = (struct block) { .next = head, .prev = NONE };
	if (head != NONE)
		block_at(p, head)->prev = unit;
	p->heads[order] = unit;
	p->state[unit] = (uint8_t)(FREE | order);
}

static void block_remove(struct smi_pool *p, uint64_t unit, unsigned int order)
{
	struct block b = *block_at(p, unit);

	if (b.prev == NONE)
		p->heads[order] = b.next;
	else
		block_at(p, b.prev)->next = b.next;
	if (b.next != NONE)
		block_at(p, b.next)->prev = b.prev;
	p->state[unit] = 0;
}

bool smi_pool_init(struct smi_pool *p, size_t size)
{
	uint64_t units = size / SMI_POOL_UNIT, at;
	unsigned int order;

	if (!units)
		return false;
	order = 63u - (unsigned int)__builtin_clzll(units);
	units = UINT64_C(1) << order;
	at = (sizeof(*p) + units + SMI_POOL_UNIT - 1) / SMI_POOL_UNIT;
	if (order >= ORDERS || at >= units)
		return false;
	memset(p->state, 0, units);
	memset(p->heads, 0xff, sizeof(p->heads));
	p->order = order;
	p->first = at;
	while (at < units) {
		order = (unsigned int)__builtin_ctzll(at);
		block_push(p, at, order);
		at += UINT64_C(1) << order;
	}
	p->magic = MAGIC;
	return true;
}

bool smi_pool_ok(const struct smi_pool *p, size_t size)
{
	return p->magic == MAGIC && p->order < ORDERS &&
	       (size_t)SMI_POOL_UNIT << p->order <= size;
}

void *smi_pool_alloc(struct smi_pool *p, size_t size)
{
	uint64_t units = (size + SMI_POOL_UNIT - 1) / SMI_POOL_UNIT, unit;
	unsigned int order = 0, have;

	if (size > (size_t)SMI_POOL_UNIT << p->order)
		return NULL;
	if (units > 1)
		order = 64u - (unsigned int)__builtin_clzll(units - 1);
	for (have = order; have < p->order && p->heads[have] == NONE; have++)
		;
	if (p->heads[have] == NONE)
		return NULL;
	unit = p->heads[have];
	block_remove(p, unit, have);
	while (have > order) {
		have--;
		block_push(p, unit + (UINT64_C(1) << have), have);
	}
	p->state[unit] = (uint8_t)(USED | order);
	return block_at(p, unit);
}

int smi_pool_free(struct smi_pool *p, void *block)
{
	size_t offset = (size_t)((char *)block - (char *)p);
	uint64_t unit = offset / SMI_POOL_UNIT, buddy;
	unsigned int order;

	if (offset % SMI_POOL_UNIT || unit < p->first || unit >> p->order ||
	    !(p->state[unit] & USED))
		return SMI_ERR_PARAM;
	order = p->state[unit] & ORDER_MASK;
	p->state[unit] = 0;
	for (; order < p->order; order++) {
		buddy = unit ^ (UINT64_C(1) << order);
		if (p->state[buddy] != (FREE | order))
			break;
		block_remove(p, buddy, order);
		unit &= buddy;
	}
	block_push(p, unit, order);
	return SMI_SUCCESS;
}
