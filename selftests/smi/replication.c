// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests replication: regions become private copies and are combined again, in all modes. */

#include "selftests/smi/start.h"

#define N	2200

static const int types[] = { SMI_SHM_UNDIVIDED, SMI_SHM_BLOCKED };

static void fill(int *p, int value)
{
	for (int i = 0; i < N; i++)
		p[i] = value + i;
}

/* A load from another machine takes as long as a packet and its answer: load 64 bytes at a time. */
static void check_all(int *p, int value)
{
	int got[N];

	CHECK_SMI(SMI_Memcpy(got, p, sizeof(got), 0));
	for (int i = 0; i < N; i++)
		CHECK_EQ(got[i], value + i);
}

/* Check that the region is shared: one process stores a value, and all read it. */
static void check_shared(int volatile *p)
{
	CHECK_SMI(SMI_Barrier());
	if (rank == size - 1)
		p[N / 2] = 4711;
	CHECK_SMI(SMI_Barrier());
	CHECK_EQ(p[N / 2], 4711);
	CHECK_SMI(SMI_Barrier());
}

static void one_source(int type, int how)
{
	int id, from = size / 2, found = -1;
	int *p = smi_region(type, N * sizeof(int), 0, &id);

	if (!rank)
		fill(p, 7);
	CHECK_SMI(SMI_Barrier());
	CHECK_SMI(SMI_Switch_to_replication(id, SMI_REP_EVERYTHING | how, 0, 0, 0));
	CHECK_SMI(SMI_Switch_to_replication(id, SMI_REP_EVERYTHING | how, 0, 0, 0));
	check_all(p, 7);
	CHECK_SMI(SMI_Adr_to_region(&p[N - 1], &found));
	CHECK_EQ(found, id);
	CHECK_SMI(SMI_Barrier());
	if (!how)
		fill(p, 100 * rank);
	else if (rank == from)
		fill(p, 100 * from);
	CHECK_SMI(SMI_Barrier());
	if (!how)
		check_all(p, 100 * rank);
	CHECK_SMI(SMI_Ensure_consistency(id, SMI_SHR_SINGLE_SOURCE, from, 0));
	check_all(p, 100 * from);
	CHECK_SMI(SMI_Barrier());
	if (size > 1 && !how)
		fill(p, -rank);
	CHECK_SMI(SMI_Switch_to_sharing(id, size > 1 && !how ? SMI_SHR_NOTHING :
					SMI_SHR_SINGLE_SOURCE, from, 0));
	CHECK_SMI(SMI_Switch_to_sharing(id, SMI_SHR_NOTHING, 0, 0));
	check_all(p, 100 * from);
	check_shared(p);
	CHECK_SMI(SMI_Free_shreg(id));
}

/* Each process changes its indices, which are combined by the loop's splitting. */
static void by_loop(int type, int how)
{
	int id, loop, low = 0, high = N - 1, l, h;
	int *p = smi_region(type, N * sizeof(int), 0, &id);

	if (!rank)
		fill(p, 1);
	CHECK_SMI(SMI_Barrier());
	CHECK_SMI(SMI_Loop_split_init(&loop));
	CHECK_SMI(SMI_Loop_index_range(loop, &low, &high, SMI_LOOP_SET_GLOBAL));
	CHECK_SMI(SMI_Determine_loop_splitting(loop, SMI_SPLIT_REGULAR, 0, 0));
	CHECK_SMI(SMI_Loop_index_range(loop, &l, &h, SMI_LOOP_GET_LOCAL));
	CHECK_SMI(SMI_Switch_to_replication(id, SMI_REP_LOCAL_AND_BEYOND | how, sizeof(int),
					    loop, 2));
	for (int i = l > 2 ? l - 2 : 0; i <= h + 2 && i < N; i++)
		CHECK_EQ(p[i], 1 + i);
	CHECK_SMI(SMI_Barrier());
	for (int i = l; i <= h; i++)
		p[i] = 5 + i;
	CHECK_SMI(SMI_Switch_to_sharing(id, SMI_SHR_LOOP_SPLITTING, sizeof(int), loop));
	check_all(p, 5);
	check_shared(p);
	CHECK_SMI(SMI_Free_shreg(id));
}

#define CHECK_SUM(ctype, dtype, region_type)					\
	do {									\
		int id_;							\
		ctype copy_[N];							\
		ctype *p_ = smi_region(region_type, N * sizeof(ctype), 0, &id_); \
										\
		CHECK_SMI(SMI_Switch_to_replication(id_, SMI_REP_NOTHING, 0, 0, 0)); \
		for (int k = 0; k < N; k++)					\
			p_[k] = (ctype)(rank + k % 10);				\
		CHECK_SMI(SMI_Ensure_consistency(id_, SMI_SHR_ADD | (dtype), N, 0)); \
		CHECK_SMI(SMI_Memcpy(copy_, p_, sizeof(copy_), 0));		\
		for (int k = 0; size > 1 && k < N; k++)				\
			CHECK_EQ(copy_[k], size * (size - 1) / 2 + size * (k % 10)); \
		for (int k = 0; k < N; k++)					\
			p_[k] = 1;						\
		CHECK_SMI(SMI_Switch_to_sharing(id_, SMI_SHR_ADD | SMI_SHR_SPARSE | \
						(dtype), N, 0));		\
		CHECK_SMI(SMI_Memcpy(copy_, p_, sizeof(copy_), 0));		\
		for (int k = 0; k < N; k++)					\
			CHECK_EQ(copy_[k], size);					\
		CHECK_SMI(SMI_Free_shreg(id_));					\
	} while (0)

static void every_local(void)
{
	int id, first, l;
	int *p = smi_region(SMI_SHM_BLOCKED, 4096u * (unsigned int)size, 0, &id);

	CHECK_SMI(SMI_Switch_to_replication(id, SMI_REP_EVERYTHING, 0, 0, 0));
	for (int i = 0; i < 1024 * size; i++)
		p[i] = rank;
	CHECK_SMI(SMI_Switch_to_sharing(id, SMI_SHR_EVERY_LOCAL, 0, 0));
	for (int i = 0; i < size; i++) {
		SMI_Proc_to_node(i, &l);
		SMI_First_proc_on_node(l, &first);
		CHECK_EQ(p[1024 * i], size > 1 ? first : 0);
	}
	CHECK_SMI(SMI_Barrier());
	CHECK_SMI(SMI_Free_shreg(id));
}

static void bad_arguments(void)
{
	int id, frag;
	void *part[RANKS_MAX];
	smi_region_info_t info;

	smi_region(SMI_SHM_UNDIVIDED, 4096, 0, &id);
	SMI_Init_reginfo(&info, 4096, 0, 0, SMI_ADPT_DEFAULT, 0, 0, NULL);
	CHECK_SMI(SMI_Create_shreg(SMI_SHM_FRAGMENTED, &info, &frag, part));
	CHECK_EQ(SMI_Switch_to_replication(99, SMI_REP_NOTHING, 0, 0, 0), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Switch_to_replication(0, SMI_REP_NOTHING, 0, 0, 0), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Switch_to_replication(frag, SMI_REP_NOTHING, 0, 0, 0), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Switch_to_replication(id, 0, 0, 0, 0), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Switch_to_replication(id, SMI_REP_NOTHING | SMI_REP_EVERYTHING, 0, 0,
					   0), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Switch_to_sharing(id, SMI_SHR_SINGLE_SOURCE, size, 0), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Switch_to_sharing(id, SMI_SHR_ADD, 10, 0), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Switch_to_sharing(id, SMI_SHR_ADD | SMI_DTYPE_FIXPOINT, 1025, 0),
		 SMI_ERR_PARAM);
	if (size > 1)
		CHECK_EQ(SMI_Switch_to_replication(id, SMI_REP_LOCAL_AND_BEYOND, 4, 77, 0),
			 SMI_ERR_PARAM);
}

/* A region that a process does not map, or maps in part, cannot be replicated in any process. */
static void not_mapped(int type, size_t offset)
{
	smi_region_info_t info;
	void *p;
	int id;

	SMI_Init_reginfo(&info, 8192, rank ? offset : 0, 0, SMI_ADPT_DEFAULT, 0, 0, NULL);
	CHECK_SMI(SMI_Create_shreg(type, &info, &id, &p));
	CHECK_EQ(SMI_Switch_to_replication(id, SMI_REP_NOTHING, 0, 0, 0),
		 size > 1 ? SMI_ERR_NOSEGMENT : SMI_SUCCESS);
	CHECK_SMI(SMI_Switch_to_sharing(id, SMI_SHR_NOTHING, 0, 0));
	CHECK_SMI(SMI_Barrier());
	CHECK_SMI(SMI_Free_shreg(id));
}

static void replication(void)
{
	smi_start();
	for (unsigned int i = 0; i < ARRAY_LEN(types); i++) {
		one_source(types[i], 0);
		one_source(types[i], SMI_REP_ONE_PER_NODE);
		by_loop(types[i], 0);
		by_loop(types[i], SMI_REP_ONE_PER_NODE);
		CHECK_SUM(int, SMI_DTYPE_FIXPOINT, types[i]);
		CHECK_SUM(long, SMI_DTYPE_FIXPOINT | SMI_DTYPE_HIGHPRECISION, types[i]);
		CHECK_SUM(float, SMI_DTYPE_FLOATINGPOINT, types[i]);
		CHECK_SUM(double, SMI_DTYPE_FLOATINGPOINT | SMI_DTYPE_HIGHPRECISION,
			  types[i]);
	}
	every_local();
	not_mapped(SMI_SHM_UNDIVIDED, 4096);
	not_mapped(SMI_SHM_UNDIVIDED | SMI_SHM_NONFIXED | SMI_SHM_DELAYED, 0);
	bad_arguments();
	smi_stop();
}

TEST_SIZES(replication, replication)
