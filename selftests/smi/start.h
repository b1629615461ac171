/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Functions with which most tests of SMI begin and end. */
#ifndef SELFTESTS_SMI_START_H
#define SELFTESTS_SMI_START_H

#include <stdlib.h>

#include "selftests/ranks.h"
#include "smi.h"

static int rank, size, node, nodes;

#define CHECK_SMI(call)	CHECK_EQ(call, SMI_SUCCESS)

/* The index of integer @i of an array in which no two integers share a line of the cache. */
#define SPREAD(i)	((i) * (64 / (int)sizeof(int)))

/* Skip the test if SMI_Init() has refused sockets. */
static inline void smi_skip_sockets(int err)
{
	const char *net = getenv("SCI_TEST_NET");

	if (err == SMI_ERR_NODEVICE && net && *net)
		SKIP("SMI does not use sockets");
}

static inline void smi_start(void)
{
	int err = SMI_Init(NULL, NULL);

	smi_skip_sockets(err);
	CHECK_SMI(err);
	CHECK_SMI(SMI_Proc_rank(&rank));
	CHECK_SMI(SMI_Proc_size(&size));
	CHECK_SMI(SMI_Node_rank(&node));
	CHECK_SMI(SMI_Node_size(&nodes));
}

static inline void smi_stop(void)
{
	CHECK_SMI(SMI_Finalize());
}

/* Create a region of @bytes, owned by @owner. */
static inline void *smi_region(int type, size_t bytes, int owner, int *id)
{
	smi_region_info_t info;
	void *p;

	CHECK_SMI(SMI_Init_reginfo(&info, bytes, 0, owner, SMI_ADPT_DEFAULT, 0, 0, NULL));
	CHECK_SMI(SMI_Create_shreg(type, &info, id, &p));
	return p;
}

/* Define a test with one process, and with 2, 4, 8 and 16 on one node and on several. */
#define TEST_SIZES(name, fn)						\
	TEST(name##_1) { ranks_run(1, 1, fn); }				\
	TEST(name##_2) { ranks_run(2, 1, fn); }				\
	TEST(name##_2_on_2) { ranks_run(2, 2, fn); }			\
	TEST(name##_4) { ranks_run(4, 1, fn); }				\
	TEST(name##_4_on_4) { ranks_run(4, 4, fn); }			\
	TEST(name##_8) { ranks_run(8, 1, fn); }				\
	TEST(name##_8_on_4) { ranks_run(8, 4, fn); }			\
	TEST(name##_16) { ranks_run(16, 1, fn); }			\
	TEST(name##_16_on_4) { ranks_run(16, 4, fn); }

#endif
