// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests the buddy allocator by itself, and in regions. */

#include <stdlib.h>
#include <string.h>

#include "libsci/smi/internal.h"
#include "selftests/smi/start.h"

#define POOL	(64u << 10)
#define BLOCKS	200
#define REGION	(128u << 10)

struct held {
	unsigned char *p;
	size_t size;
};

static unsigned int dice(unsigned int *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 16;
}

/* Allocate and free blocks of random sizes, and check that they do not overlap. */
static void pool_exercise(struct smi_pool *p, unsigned int seed)
{
	struct held held[BLOCKS] = { { NULL, 0 } };

	for (int i = 0; i < 20000; i++) {
		struct held *h = &held[dice(&seed) % BLOCKS];

		if (h->p) {
			CHECK(test_filled(h->p, h->size, (unsigned int)(h - held)));
			CHECK_EQ(smi_pool_free(p, h->p), SMI_SUCCESS);
			CHECK_EQ(smi_pool_free(p, h->p), SMI_ERR_PARAM);
			h->p = NULL;
			continue;
		}
		h->size = dice(&seed) % (dice(&seed) % 8 ? 600 : 9000) + 1;
		h->p = smi_pool_alloc(p, h->size);
		if (!h->p)
			continue;
		CHECK_EQ((size_t)(h->p - (unsigned char *)p) % SMI_POOL_UNIT, 0);
		test_fill(h->p, h->size, (unsigned int)(h - held));
	}
	for (int i = 0; i < BLOCKS; i++)
		if (held[i].p)
			CHECK_EQ(smi_pool_free(p, held[i].p), SMI_SUCCESS);
}

TEST(blocks_do_not_overlap_and_come_back)
{
	struct smi_pool *p = aligned_alloc(4096, POOL);
	void *half;

	CHECK(p && smi_pool_init(p, POOL + 100));
	CHECK(smi_pool_ok(p, POOL));
	CHECK(!smi_pool_ok(p, POOL - 1));
	half = smi_pool_alloc(p, POOL / 2);
	CHECK(half == (char *)p + POOL / 2);
	CHECK(!smi_pool_alloc(p, POOL / 2));
	CHECK(!smi_pool_alloc(p, (size_t)1 << 60));
	CHECK(!smi_pool_alloc(p, SIZE_MAX));
	CHECK_EQ(smi_pool_free(p, half), SMI_SUCCESS);
	for (unsigned int seed = 1; seed < 4; seed++) {
		pool_exercise(p, seed);
		half = smi_pool_alloc(p, POOL / 2);
		CHECK(half);
		CHECK_EQ(smi_pool_free(p, half), SMI_SUCCESS);
	}
	/* addresses that are no blocks */
	CHECK_EQ(smi_pool_free(p, p), SMI_ERR_PARAM);
	CHECK_EQ(smi_pool_free(p, (char *)half + 1), SMI_ERR_PARAM);
	CHECK_EQ(smi_pool_free(p, (char *)p + POOL), SMI_ERR_PARAM);
	CHECK(!smi_pool_init(p, 100));
	free(p);
}

/* ---- in regions ---- */

struct item {
	struct item *next;
	int from, number;
};

#define ITEMS	20

/* Return the size of an item, so that all items together need more than half of the memory. */
static size_t item_size(void)
{
	size_t n = 128;

	while (n * 2 * (size_t)(ITEMS * size) <= REGION * 3 / 4)
		n *= 2;
	return n;
}

/* All processes build a list of blocks under a mutex. Any process frees a block. */
static void list_in_region(int type)
{
	struct item **head, *it;
	int id, mutex, count[RANKS_MAX] = { 0 }, *board;
	void *p;

	smi_region(type, REGION, size - 1, &id);
	CHECK_EQ(SMI_Imalloc(8, id, &p), SMI_ERR_PARAM);
	CHECK_SMI(SMI_Init_shregMMU(id));
	CHECK_EQ(SMI_Init_shregMMU(id), SMI_ERR_PARAM);
	CHECK_SMI(SMI_Mutex_init(&mutex));
	CHECK_SMI(SMI_Cmalloc(sizeof(*head), id, (void **)&head));
	if (!rank)
		*head = NULL;
	CHECK_SMI(SMI_Barrier());
	for (int i = 0; i < ITEMS; i++) {
		CHECK_SMI(SMI_Imalloc(item_size(), id, (void **)&it));
		CHECK_EQ((uintptr_t)it % 128, 0);
		it->from = rank;
		it->number = i;
		CHECK_SMI(SMI_Mutex_lock(mutex));
		it->next = *head;
		*head = it;
		CHECK_SMI(SMI_Mutex_unlock(mutex));
	}
	CHECK_SMI(SMI_Barrier());
	for (it = *head; it; it = it->next)
		count[it->from] += it->number + 1;
	for (int i = 0; i < size; i++)
		CHECK_EQ(count[i], ITEMS * (ITEMS + 1) / 2);
	CHECK_SMI(SMI_Barrier());
	/* all processes free items, also those that other processes allocated */
	for (;;) {
		CHECK_SMI(SMI_Mutex_lock(mutex));
		it = *head;
		if (it)
			*head = it->next;
		CHECK_SMI(SMI_Mutex_unlock(mutex));
		if (!it)
			break;
		CHECK_SMI(SMI_Ifree(it));
	}
	CHECK_SMI(SMI_Cfree(head));
	/* a store before the free must not arrive after the links that SMI_Cfree() stores there */
	CHECK_SMI(SMI_Cmalloc(REGION / 2, id, (void **)&board));
	if (rank == size - 1)
		*board = 1;
	CHECK_SMI(SMI_Cfree(board));
	CHECK_SMI(SMI_Barrier());
	CHECK_EQ(SMI_Ifree(&id), SMI_ERR_PARAM);
	/* all memory is one block again */
	CHECK_SMI(SMI_Cmalloc(64u << 10, id, &p));
	CHECK_EQ(SMI_Cmalloc(64u << 10, id, &p), SMI_ERR_NOMEM);
	CHECK_SMI(SMI_Mutex_destroy(mutex));
	CHECK_SMI(SMI_Free_shreg(id));
}

static void list(void)
{
	smi_start();
	list_in_region(SMI_SHM_UNDIVIDED);
	list_in_region(SMI_SHM_BLOCKED);
	smi_stop();
}

TEST_SIZES(list, list)

/* Each region with an allocator has a lock until it is freed. */
static void many_regions(void)
{
	int id;

	smi_start();
	for (int i = 0; i < 1100; i++) {
		smi_region(SMI_SHM_UNDIVIDED | SMI_SHM_NONFIXED, 4096, 0, &id);
		CHECK_SMI(SMI_Init_shregMMU(id));
		CHECK_SMI(SMI_Free_shreg(id));
	}
	smi_stop();
}

TEST(any_number_of_regions_had_an_allocator) { ranks_run(2, 1, many_regions); }

static void local(void)
{
	void *p, *region;
	int id;

	smi_start();
	region = smi_region(SMI_SHM_LOCAL, 16384, rank, &id);
	CHECK_SMI(SMI_Init_shregMMU(id));
	CHECK_SMI(SMI_Imalloc(8192, id, &p));
	CHECK((char *)p >= (char *)region && (char *)p < (char *)region + 16384);
	CHECK_EQ(SMI_Imalloc(8192, id, &p), SMI_ERR_NOMEM);
	CHECK_EQ(SMI_Cmalloc(8, id, &p), SMI_ERR_OTHER);
	CHECK_SMI(SMI_Free_shreg(id));
	smi_stop();
}

TEST(a_local_region_has_an_allocator_of_its_owner)
{
	ranks_run(2, 1, local);
}

/* An SMP region has an allocator on each node: no block is one for all processes. */
static void smp(void)
{
	void *p;
	int id;

	smi_start();
	smi_region(SMI_SHM_SMP, 16384, 0, &id);
	CHECK_SMI(SMI_Init_shregMMU(id));
	CHECK_SMI(SMI_Imalloc(64, id, &p));
	CHECK_EQ(SMI_Cfree(p), SMI_ERR_OTHER);
	CHECK_SMI(SMI_Ifree(p));
	CHECK_EQ(SMI_Cmalloc(64, id, &p), SMI_ERR_OTHER);
	CHECK_SMI(SMI_Free_shreg(id));
	smi_stop();
}

TEST(an_smp_region_has_an_allocator_of_each_node)
{
	ranks_run(2, 2, smp);
}

/* Processes allocate memory of their node. Other nodes access it by its offset. */
static void node_memory(void)
{
	char *mine, *base;
	long offset, all[RANKS_MAX];
	int id, *slots;

	smi_start();
	CHECK(!SMI_Nodemem_address(nodes));
	CHECK(!SMI_Nodemem_alloc(2u << 20));
	mine = SMI_Nodemem_alloc(100);
	CHECK(mine);
	test_fill(mine, 100, (unsigned int)rank);
	base = SMI_Nodemem_address(node);
	offset = mine - base;
	slots = smi_region(SMI_SHM_UNDIVIDED, 4096, 0, &id);
	slots[SPREAD(rank)] = (int)offset;
	CHECK_SMI(SMI_Barrier());
	for (int i = 0; i < size; i++) {
		int where;

		all[i] = slots[SPREAD(i)];
		SMI_Proc_to_node(i, &where);
		base = SMI_Nodemem_address(where);
		CHECK(test_filled(base + all[i], 100, (unsigned int)i));
	}
	CHECK_SMI(SMI_Barrier());
	CHECK_EQ(SMI_Adr_to_region(mine, &id), SMI_ERR_PARAM);
	CHECK_SMI(SMI_Nodemem_free(mine));
	CHECK_EQ(SMI_Nodemem_free(&id), SMI_ERR_PARAM);
	smi_stop();
}

TEST_SIZES(node_memory, node_memory)
