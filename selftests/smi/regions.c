// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests regions that processes create together: all types, their addresses, their end. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "selftests/smi/start.h"

#define BYTES	(256u << 10)

/* Each process marks its stripe, and checks all stripes. */
static void check_shared(volatile int *p, size_t bytes)
{
	size_t stripe = bytes / sizeof(int) / (size_t)size;

	p[stripe * (size_t)rank] = 1000 + rank;
	p[stripe * (size_t)(rank + 1) - 1] = 2000 + rank;
	CHECK_SMI(SMI_Barrier());
	for (int i = 0; i < size; i++) {
		CHECK_EQ(p[stripe * (size_t)i], 1000 + i);
		CHECK_EQ(p[stripe * (size_t)(i + 1) - 1], 2000 + i);
	}
	CHECK_SMI(SMI_Barrier());
}

/* The first process stores the address in the region, and all processes compare. */
static void check_address(void *volatile *p)
{
	if (rank == 0)
		*p = (void *)p;
	CHECK_SMI(SMI_Barrier());
	CHECK(*p == (void *)p);
	CHECK_SMI(SMI_Barrier());
}

static void check_gone(void *p, int id)
{
	int other;

	CHECK_EQ(SMI_Adr_to_region(p, &other), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Free_shreg(id), SMI_ERR_PARAM);
}

static void check_undivided(int owner)
{
	smi_rlayout_t *l;
	size_t bytes = 0;
	int id, found = -1, who = -1;
	void *p = smi_region(SMI_SHM_UNDIVIDED, BYTES + 1, owner, &id), *at = NULL;

	CHECK(id >= nodes);
	check_address(p);
	check_shared(p, BYTES);
	CHECK_SMI(SMI_Adr_to_region((char *)p + BYTES, &found));
	CHECK_EQ(found, id);
	CHECK_EQ(SMI_Range_to_region(p, 2 * BYTES, &found), SMI_ERR_PARAM);
	CHECK_SMI(SMI_Query(SMI_Q_SMI_REGION_SIZE, id, &bytes));
	CHECK(bytes > BYTES && bytes % 4096 == 0);
	CHECK_SMI(SMI_Query(SMI_Q_SMI_REGION_OWNER, id, &who));
	CHECK_EQ(who, owner);
	CHECK_SMI(SMI_Query(SMI_Q_SMI_REGION_ADDRESS, id, &at));
	CHECK(at == p);
	CHECK_SMI(SMI_Region_layout(id, &l));
	CHECK_EQ(l->nsegments, 1);
	CHECK_EQ(l->seg_size[0], bytes);
	CHECK(l->adr == p && l->seg_adr[0] == p);
	SMI_Proc_to_node(owner, &who);
	CHECK_EQ(l->seg_machine[0], who);
	free(l->seg_size);
	free(l->seg_adr);
	free(l->seg_machine);
	free(l);
	CHECK_SMI(SMI_Free_shreg(id));
	check_gone(p, id);
}

static void undivided(void)
{
	smi_start();
	check_undivided(0);
	check_undivided(size - 1);
	CHECK_EQ(SMI_Free_shreg(0), SMI_ERR_NOSEGMENT);
	smi_stop();
}

TEST_SIZES(undivided, undivided)

static void blocked(void)
{
	smi_rlayout_t *l;
	size_t sum = 0;
	int id;
	void *p;

	smi_start();
	p = smi_region(SMI_SHM_BLOCKED, BYTES, 0, &id);
	check_address(p);
	check_shared(p, BYTES);
	CHECK_SMI(SMI_Region_layout(id, &l));
	CHECK_EQ(l->nsegments, nodes);
	for (int i = 0; i < nodes; i++) {
		CHECK(l->seg_adr[i] == (char *)p + sum);
		CHECK(l->seg_size[i] >= 4096);
		CHECK_EQ(l->seg_machine[i], i);
		sum += l->seg_size[i];
	}
	CHECK_EQ(sum, BYTES);
	free(l->seg_size);
	free(l->seg_adr);
	free(l->seg_machine);
	free(l);
	CHECK_SMI(SMI_Free_shreg(id));
	check_gone(p, id);
	/* each node has at least a page */
	p = smi_region(SMI_SHM_BLOCKED, 1, 0, &id);
	check_address(p);
	CHECK_SMI(SMI_Free_shreg(id));
	smi_stop();
}

TEST_SIZES(blocked, blocked)

static void customized(void)
{
	int owners[] = { 0, 0, 0, 0 }, id;
	size_t sizes[] = { 4096, 100, 3 * 4096, 4097 };
	smi_region_info_t info;
	smi_rlayout_t *l;
	void *p;

	smi_start();
	owners[1] = size - 1;
	owners[2] = size / 2;
	memset(&info, 0x5a, sizeof(info));
	info.size = 7 * 4096;
	info.adapter = SMI_ADPT_DEFAULT;
	info.nbr_sgmts = 4;
	info.sgmt_owner = owners;
	info.sgmt_size = sizes;
	CHECK_SMI(SMI_Create_shreg(SMI_SHM_CUSTOMIZED, &info, &id, &p));
	CHECK_EQ(info.size, 7 * 4096);
	check_address(p);
	check_shared(p, 7 * 4096);
	CHECK_SMI(SMI_Region_layout(id, &l));
	CHECK_EQ(l->nsegments, 4);
	CHECK(l->seg_adr[3] == (char *)p + 5 * 4096);
	free(l->seg_size);
	free(l->seg_adr);
	free(l->seg_machine);
	free(l);
	CHECK_SMI(SMI_Free_shreg(id));
	/* the call fails in all processes if one has a wrong argument */
	owners[1] = rank == size - 1 ? size : 0;
	CHECK_EQ(SMI_Create_shreg(SMI_SHM_CUSTOMIZED, &info, &id, &p), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Create_shreg(SMI_SHM_CYCLIC, &info, &id, &p), SMI_ERR_NOTIMPL);
	smi_stop();
}

TEST_SIZES(customized, customized)

static void smp(void)
{
	int id, first, local;
	int volatile *p;

	smi_start();
	p = smi_region(SMI_SHM_SMP, BYTES, 0, &id);
	SMI_First_proc_on_node(node, &first);
	SMI_Local_proc_size(&local);
	p[SPREAD(rank)] = rank + 1;
	CHECK_SMI(SMI_Barrier());
	for (int i = 0; i < size; i++)
		CHECK_EQ(p[SPREAD(i)], i >= first && i < first + local ? i + 1 : 0);
	CHECK_SMI(SMI_Barrier());
	CHECK_SMI(SMI_Free_shreg(id));
	smi_stop();
}

TEST_SIZES(smp, smp)

static void fragmented(void)
{
	smi_region_info_t info;
	int volatile *part[RANKS_MAX];
	size_t bytes = 0;
	void *own = NULL;
	int id, sgmt = -1;

	smi_start();
	SMI_Init_reginfo(&info, 4096u * (unsigned int)size, 0, 0, SMI_ADPT_DEFAULT, 0, 0,
			 NULL);
	CHECK_SMI(SMI_Create_shreg(SMI_SHM_FRAGMENTED, &info, &id, (void **)part));
	for (int i = 0; i < size; i++)
		part[i][SPREAD(rank)] = 100 * i + rank;
	CHECK_SMI(SMI_Barrier());
	for (int i = 0; i < size; i++)
		CHECK_EQ(part[rank][SPREAD(i)], 100 * rank + i);
	CHECK_SMI(SMI_Query(SMI_Q_SMI_REGION_SIZE, id, &bytes));
	CHECK_EQ(bytes, 4096);
	CHECK_SMI(SMI_Query(SMI_Q_SMI_REGION_ADDRESS, id, &own));
	CHECK(own == (void *)(uintptr_t)part[rank]);
	CHECK_SMI(SMI_Query(SMI_Q_SMI_REGION_SGMT_ID, id, &sgmt));
	CHECK(sgmt > 0);
	CHECK_SMI(SMI_Barrier());
	CHECK_SMI(SMI_Free_shreg(id));
	smi_stop();
}

TEST_SIZES(fragmented, fragmented)

static void delayed(void)
{
	smi_region_info_t info;
	int volatile *p = NULL;
	int id, owner, connected = -1;

	smi_start();
	owner = size - 1;
	SMI_Init_reginfo(&info, BYTES, 0, owner, SMI_ADPT_DEFAULT, 0, 0, NULL);
	CHECK_EQ(SMI_Create_shreg(SMI_SHM_UNDIVIDED | SMI_SHM_DELAYED, &info, &id,
				  (void **)&p), SMI_ERR_PARAM);
	CHECK_SMI(SMI_Create_shreg(SMI_SHM_UNDIVIDED | SMI_SHM_DELAYED | SMI_SHM_NONFIXED,
				   &info, &id, (void **)&p));
	CHECK_SMI(SMI_Query(SMI_Q_SMI_REGION_CONNECTED, id, &connected));
	CHECK_EQ(connected, rank == owner);
	CHECK_EQ(p != NULL, rank == owner);
	CHECK_SMI(SMI_Connect_shreg(id, (void **)&p));
	CHECK_SMI(SMI_Connect_shreg(id, (void **)&p));
	check_shared(p, BYTES);
	CHECK_SMI(SMI_Free_shreg(id));
	CHECK_EQ(SMI_Connect_shreg(id, (void **)&p), SMI_ERR_PARAM);
	smi_stop();
}

TEST_SIZES(delayed, delayed)

/* The first and the last process create regions; the others go on to the next call. */
static void pair(void)
{
	smi_region_info_t info = { .size = BYTES, .adapter = SMI_ADPT_DEFAULT };
	int volatile *p;
	int id, own;

	smi_start();
	info.owner = size - 1;
	info.partner = 0;
	if (rank > 0 && rank < size - 1)
		CHECK_EQ(SMI_Create_shreg(SMI_SHM_PT2PT, &info, &id, (void **)&p),
			 SMI_ERR_PARAM);
	for (int i = 0; size > 1 && (!rank || rank == size - 1) && i < 3; i++) {
		int other = size - 1 - rank, seen;
		void *mine, *theirs;

		CHECK_SMI(SMI_Create_shreg(SMI_SHM_PT2PT, &info, &id, (void **)&p));
		p[SPREAD(!rank)] = 7 + rank;
		mine = (void *)(uintptr_t)p;
		CHECK_SMI(SMI_Flush_write(other));
		CHECK_SMI(SMI_Sendrecv(&mine, &theirs, sizeof(mine), other));
		CHECK_SMI(SMI_Flush_read(other));
		CHECK(mine == theirs);
		seen = p[SPREAD(!!rank)];
		CHECK_EQ(seen, 7 + other);
		CHECK_SMI(SMI_Free_shreg(id));
	}
	p = smi_region(SMI_SHM_UNDIVIDED, BYTES, 0, &own);
	check_shared(p, BYTES);
	CHECK_SMI(SMI_Free_shreg(own));
	smi_stop();
}

TEST_SIZES(pair, pair)

/* ---- one address for all ---- */

#define TAKEN_BYTES	(64u << 20)

/* Map the addresses from @start on, unless something is mapped there already. */
static void take(uintptr_t start)
{
	CHECK(mmap((void *)start, TAKEN_BYTES, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
		   0) == (void *)start || errno == EEXIST);
}

/* Several processes use addresses that other processes would propose. */
static void crowded(void)
{
	static const uintptr_t taken[] = { 0x4000000000, 0x7000000000, 0x200000000000 };
	int id;
	void *p;

	smi_start();
	for (unsigned int i = 0; i < ARRAY_LEN(taken); i++)
		if (rank == (int)i + 1)
			take(taken[i]);
	for (int i = 0; i < 4; i++) {
		p = smi_region(SMI_SHM_BLOCKED, BYTES, 0, &id);
		for (unsigned int k = 0; k < ARRAY_LEN(taken); k++)
			CHECK((uintptr_t)p + BYTES <= taken[k] ||
			      (uintptr_t)p >= taken[k] + TAKEN_BYTES);
		check_address(p);
		check_shared(p, BYTES);
		CHECK_SMI(SMI_Free_shreg(id));
	}
	smi_stop();
}

TEST(an_address_that_one_process_uses_is_not_taken)
{
	ranks_run(8, 4, crowded);
}

/* One process lacks address space: all processes get the error, and can go on. */
static void no_room(void)
{
	struct rlimit all, little;
	smi_region_info_t info;
	int id;
	void *p;

	smi_start();
	getrlimit(RLIMIT_AS, &all);
	little = all;
	little.rlim_cur = 1u << 20;
	SMI_Init_reginfo(&info, 32u << 20, 0, 0, SMI_ADPT_DEFAULT, 0, 0, NULL);
	if (rank == size - 1)
		setrlimit(RLIMIT_AS, &little);
	CHECK_EQ(SMI_Create_shreg(SMI_SHM_UNDIVIDED, &info, &id, &p), SMI_ERR_MAPFAILED);
	setrlimit(RLIMIT_AS, &all);
	p = smi_region(SMI_SHM_UNDIVIDED, BYTES, 0, &id);
	check_address(p);
	CHECK_SMI(SMI_Free_shreg(id));
	smi_stop();
}

TEST(a_process_without_room_fails_all_and_they_go_on)
{
	if (TEST_ASAN || TEST_TSAN)
		SKIP("the sanitizer needs address space");
	ranks_run(3, 1, no_room);
}

/* ---- too much ---- */

/* Sizes that overflow when they are rounded up to pages, or nearly do. */
static void too_large_to_round(size_t bytes)
{
	static const int types[] = { SMI_SHM_BLOCKED, SMI_SHM_UNDIVIDED, SMI_SHM_FRAGMENTED,
				     SMI_SHM_SMP, SMI_SHM_LOCAL,
				     SMI_SHM_LOCAL | SMI_SHM_PRIVATE };
	size_t sizes[] = { 4096, bytes };
	int owners[] = { 0, 1 }, id;
	smi_region_info_t info;
	void *p[RANKS_MAX];

	for (unsigned int i = 0; i < ARRAY_LEN(types); i++) {
		int owner = (types[i] & 1023) == SMI_SHM_LOCAL ? rank : 0;

		SMI_Init_reginfo(&info, bytes, 0, owner, SMI_ADPT_DEFAULT, 0, 0, NULL);
		CHECK_EQ(SMI_Create_shreg(types[i], &info, &id, p), SMI_ERR_NOMEM);
	}
	info.nbr_sgmts = 2;
	info.sgmt_owner = owners;
	info.sgmt_size = sizes;
	CHECK_EQ(SMI_Create_shreg(SMI_SHM_CUSTOMIZED, &info, &id, p), SMI_ERR_NOMEM);
}

static void too_large(void)
{
	smi_region_info_t info;
	size_t bytes = 0;
	int id, err;
	void *p;

	smi_start();
	for (int i = 0; i < 3; i++) {
		SMI_Init_reginfo(&info, (size_t)1 << 44, 0, i % size, SMI_ADPT_DEFAULT, 0,
				 0, NULL);
		err = SMI_Create_shreg(SMI_SHM_UNDIVIDED, &info, &id, &p);
		CHECK(err == SMI_ERR_NOMEM || err == SMI_ERR_NOSEGMENT);
	}
	too_large_to_round((size_t)-8);
	too_large_to_round((size_t)-2 * 4096);
	SMI_Init_reginfo(&info, (size_t)1 << 44, 0, 0, SMI_ADPT_DEFAULT, 0, 0, NULL);
	CHECK_EQ(SMI_Create_shreg(SMI_SHM_BLOCKED | SMI_SHM_SHRINKABLE, &info, &id, &p),
		 SMI_ERR_NOTIMPL);
	p = smi_region(SMI_SHM_UNDIVIDED | SMI_SHM_SHRINKABLE, 8192, 0, &id);
	CHECK_SMI(SMI_Query(SMI_Q_SMI_REGION_SIZE, id, &bytes));
	CHECK_EQ(bytes, 8192);
	CHECK_SMI(SMI_Free_shreg(id));
	smi_stop();
}

TEST(a_region_too_large_fails_in_all_processes)
{
	ranks_run(2, 2, too_large);
}

static void many(void)
{
	int id[64], again;

	smi_start();
	for (int i = 0; i < 64; i++)
		smi_region(SMI_SHM_UNDIVIDED, 4096, i % size, &id[i]);
	for (int i = 0; i < 64; i += 2)
		CHECK_SMI(SMI_Free_shreg(id[i]));
	smi_region(SMI_SHM_UNDIVIDED, 4096, 0, &again);
	CHECK_EQ(again, id[0]);
	/* SMI_Finalize() frees the other regions */
	smi_stop();
}

TEST(many_regions_and_ids_that_are_used_again)
{
	ranks_run(4, 2, many);
}

/* Processes other than the owner may map a part of the segment. */
static void part(void)
{
	smi_region_info_t info;
	int volatile *p;
	size_t offset = 0;
	int id;

	smi_start();
	SMI_Init_reginfo(&info, rank ? 4096 : 3 * 4096, rank ? 4096 : 0, 0,
			 SMI_ADPT_DEFAULT, 0, 0, NULL);
	CHECK_SMI(SMI_Create_shreg(SMI_SHM_UNDIVIDED, &info, &id, (void **)&p));
	if (!rank)
		p[1024] = 4711;
	CHECK_SMI(SMI_Barrier());
	CHECK_EQ(p[rank ? 0 : 1024], 4711);
	CHECK_SMI(SMI_Query(SMI_Q_SMI_REGION_OFFSET, id, &offset));
	CHECK_EQ(offset, rank ? 4096 : 0);
	CHECK_EQ(SMI_Init_shregMMU(id), SMI_ERR_NOSEGMENT);
	CHECK_SMI(SMI_Barrier());
	CHECK_SMI(SMI_Free_shreg(id));
	smi_stop();
}

/* Only adapter 0 exists: a call fails in all processes if one names another adapter. */
static void adapters(void)
{
	smi_region_info_t info;
	int id, n = -1;
	void *p;

	smi_start();
	CHECK_EQ(SMI_Set_adapter(2), SMI_ERR_NODEVICE);
	CHECK_EQ(SMI_Set_adapter(7), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Set_adapter(SMI_ADPT_CYCLIC), SMI_ERR_NOTIMPL);
	CHECK_SMI(SMI_Set_adapter(0));
	CHECK_SMI(SMI_Init_reginfo(&info, 4096, 0, 0, rank == 1 ? 2 : 0, 0, 0, NULL));
	CHECK_EQ(SMI_Create_shreg(SMI_SHM_UNDIVIDED, &info, &id, &p), SMI_ERR_NODEVICE);
	CHECK_EQ(SMI_Create_shreg(SMI_SHM_LOCAL, &info, &id, &p),
		 rank == 0 ? SMI_SUCCESS : rank == 1 ? SMI_ERR_NODEVICE : SMI_ERR_PARAM);
	if (rank == 0)
		CHECK_SMI(SMI_Free_shreg(id));
	CHECK_SMI(SMI_Init_reginfo(&info, 4096, 0, 0, 0, 0, 0, NULL));
	CHECK_SMI(SMI_Create_shreg(SMI_SHM_UNDIVIDED, &info, &id, &p));
	CHECK_SMI(SMI_Query(SMI_Q_SMI_REGION_ADPTNBR, id, &n));
	CHECK_EQ(n, 0);
	CHECK_EQ(SMI_Set_adapter(0), SMI_ERR_BUSY);
	CHECK_SMI(SMI_Free_shreg(id));
	smi_stop();
}

TEST(adapters_are_those_that_a_region_names)
{
	ranks_run(16, 4, adapters);
}

TEST(others_map_a_part_of_a_segment)
{
	ranks_run(16, 1, part);
}
