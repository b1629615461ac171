// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Tests a profiling library: it defines functions of OpenSHMEM itself, and calls the
 * library's functions by their second names, pshmem_*.
 */

#include <sci-shmem/pshmem.h>

#include "selftests/ranks.h"

static int stores, barriers, profile_level;
static long word;

void shmem_long_p(long *dest, long value, int pe)
{
	stores++;
	pshmem_long_p(dest, value, pe);
}

void shmem_barrier_all(void)
{
	barriers++;
	pshmem_barrier_all();
}

void shmem_pcontrol(int level, ...)
{
	profile_level = level;
	pshmem_pcontrol(level, "more", 1.5);
}

static void pe_main(void)
{
	int me;

	shmem_init();
	me = shmem_my_pe();
	/* the empty view makes the calls that shmem.h inlines use the library, too */
	CHECK_EQ(shmem_view_->ranks, 0);
	shmem_pcontrol(2, stores);
	CHECK_EQ(profile_level, 2);
	shmem_long_p(&word, 7 + me, !me);
	shmem_barrier_all();
	CHECK_EQ(word, 8 - me);
	CHECK_EQ(shmem_long_g(&word, !me), 7 + me);
	CHECK_EQ(pshmem_long_g(&word, !me), 7 + me);
	pshmem_ctx_quiet(SHMEM_CTX_DEFAULT);
	CHECK_EQ(stores, 1);
	CHECK_EQ(barriers, 1);
	shmem_finalize();
}

TEST(a_profiling_library)
{
	ranks_run(2, 1, pe_main);
}
