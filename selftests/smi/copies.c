// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests copies between all kinds of memory, blocking and not, and checks of transfers. */

#include <stdlib.h>
#include <string.h>

#include "libsci/fabric/core/fault.h"
#include "selftests/smi/start.h"

#define BYTES	(64u << 10)

/* Copy @len bytes to an odd address in @place, and back. */
static void through(unsigned char *place, size_t len, int flags)
{
	/* @len may be 0 */
	unsigned char *from = malloc(len + 1), *to = malloc(len + 1);

	CHECK(from && to);
	test_fill(from, len, (unsigned int)len);
	memset(to, 0, len);
	CHECK_SMI(SMI_Memcpy(place + 3, from, len, flags));
	CHECK_SMI(SMI_Memcpy(to, place + 3, len, flags));
	CHECK(!memcmp(from, to, len));
	free(from);
	free(to);
}

static void copies(void)
{
	static const size_t sizes[] = { 0, 1, 7, 64, 1000, 4096, 10001 };
	unsigned char *fixed, *part[RANKS_MAX], *mine;
	smi_region_info_t info;
	int id, frag;

	smi_start();
	fixed = smi_region(SMI_SHM_BLOCKED, BYTES * (unsigned int)size, 0, &id);
	SMI_Init_reginfo(&info, BYTES * (unsigned int)size, 0, 0, SMI_ADPT_DEFAULT, 0, 0,
			 NULL);
	CHECK_SMI(SMI_Create_shreg(SMI_SHM_FRAGMENTED, &info, &frag, (void **)part));
	for (unsigned int i = 0; i < ARRAY_LEN(sizes); i++) {
		/* another process's memory in each round, so that all kinds are tested */
		int at = (rank + (int)i) % size;

		through(fixed + BYTES * (unsigned int)at, sizes[i], 0);
		through(fixed + BYTES * (unsigned int)at, sizes[i], SMI_MEMCPY_FAST);
		through(part[at], sizes[i], 0);
		CHECK_SMI(SMI_Check_transfer(SMI_CHECK_FULL));
		CHECK_SMI(SMI_Check_transfer(SMI_CHECK_PROBE | SMI_CHECK_FAST));
		CHECK_SMI(SMI_Check_transfer_proc(at, 0));
		CHECK_SMI(SMI_Check_transfer_addr(part[at], 0));
		CHECK_SMI(SMI_Barrier());
	}
	/* over the border between two processes' memory */
	if (rank)
		through(fixed + BYTES * (unsigned int)rank - 500, 1000, 0);
	CHECK_SMI(SMI_Barrier());
	mine = part[rank];
	CHECK_EQ(SMI_Memcpy(mine, fixed, 1, 32), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Memcpy(mine, fixed, 1, SMI_MEMCPY_LP_RS | SMI_MEMCPY_LS_RS),
		 SMI_ERR_PARAM);
	CHECK_EQ(SMI_Check_transfer_proc(size, 0), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Check_transfer_addr(&info, 0), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Check_transfer(8), SMI_ERR_PARAM);
	CHECK_SMI(SMI_Flush_read(SMI_FLUSH_ALL));
	CHECK_SMI(SMI_Flush_write(size - 1));
	CHECK_EQ(SMI_Flush_write(size), SMI_ERR_PARAM);
	smi_stop();
}

TEST_SIZES(copies, copies)

/* One packet in ten is lost, so a copy of a thousand packets never arrives at once. */
static void lossy(void)
{
	unsigned char *place;
	int id;

	smi_start();
	place = smi_region(SMI_SHM_BLOCKED, BYTES * (unsigned int)size, 0, &id);
	through(place + BYTES * (unsigned int)!rank, BYTES - 64, 0);
	CHECK(sci_fault_counts.lost > 0);
	CHECK_SMI(SMI_Barrier());
	smi_stop();
}

TEST(copies_with_loss)
{
	setenv("SCI_FAULT", "loss=0.1,seed=1", 1);
	ranks_run(2, 2, lossy);
}

static int errors_counted(void)
{
	int n;

	CHECK_SMI(SMI_Query(SMI_Q_SCI_ERRORS, 0, &n));
	return n;
}

static void *transfer_check(void *arg)
{
	*(int *)arg = SMI_Check_transfer(SMI_CHECK_FULL);
	return NULL;
}

/* While one thread waits for the link, another thread asks for a region. */
static void without_link(void)
{
	int id, before, checked = SMI_SUCCESS;
	pthread_t thread;
	void *place;

	smi_start();
	place = smi_region(SMI_SHM_BLOCKED, BYTES, 0, &id);
	if (!rank) {
		/* the service reads the times of the link at least once a second */
		CHECK_EQ(sci_fault_init("linkdown=0,linkdown=1000000000"), 0);
		WAIT_UNTIL(SMI_Check_transfer(SMI_CHECK_PROBE), TEST_WAIT_MS);
		before = errors_counted();
		CHECK_EQ(pthread_create(&thread, NULL, transfer_check, &checked), 0);
		WAIT_UNTIL(errors_counted() > before, TEST_WAIT_MS);
		CHECK_SMI(SMI_Adr_to_region(place, &id));
		CHECK_EQ(SMI_Check_transfer(SMI_CHECK_PROBE), SMI_ERR_TRANSFER);
		CHECK_EQ(sci_fault_init("linkdown=1000000000"), 0);
		CHECK_EQ(pthread_join(thread, NULL), 0);
		CHECK_EQ(checked, SMI_ERR_TRANSFER);
		CHECK_SMI(SMI_Check_transfer(SMI_CHECK_FULL));
	}
	CHECK_SMI(SMI_Barrier());
	smi_stop();
}

TEST(a_check_that_waits_for_the_link_stops_no_other_thread)
{
	if (TEST_TSAN)
		SKIP("the test changes the injected faults, which other threads read");
	setenv("SCI_FAULT", "linkdown=1000000000", 1);
	ranks_run(2, 2, without_link);
}

/* The first check finds the connection lost. */
static void without_connection(void)
{
	unsigned char *place, bytes[100] = { 0 };
	int id, before;

	smi_start();
	place = smi_region(SMI_SHM_BLOCKED, BYTES * 2, 0, &id);
	if (!rank) {
		before = errors_counted();
		CHECK_EQ(sci_fault_init("fatal=1"), 0);
		CHECK_EQ(SMI_Memcpy(place + BYTES, bytes, sizeof(bytes), 0), SMI_ERR_TRANSFER);
		CHECK_EQ(errors_counted(), before + 1);
		CHECK_EQ(sci_fault_init(NULL), 0);
	}
	CHECK_SMI(SMI_Barrier());
	smi_stop();
}

TEST(a_copy_over_a_lost_connection_is_not_repeated)
{
	if (TEST_TSAN)
		SKIP("the test changes the injected faults, which other threads read");
	ranks_run(2, 2, without_connection);
}

/* Copy without blocking: handles return to NULL and are used again, and copies are queued. */
static void beside(void)
{
	unsigned char *part[RANKS_MAX], *here, *back;
	smi_memcpy_handle h = NULL, many[4] = { NULL };
	smi_error_t status[4];
	smi_region_info_t info;
	int id, own, peer, err;

	smi_start();
	peer = (rank + 1) % size;
	SMI_Init_reginfo(&info, BYTES * (unsigned int)size, 0, 0, SMI_ADPT_DEFAULT, 0, 0,
			 NULL);
	CHECK_SMI(SMI_Create_shreg(SMI_SHM_FRAGMENTED, &info, &id, (void **)part));
	here = smi_region(SMI_SHM_LOCAL, BYTES, rank, &own);
	back = malloc(BYTES);
	CHECK(back);
	for (int i = 0; i < 5; i++) {
		test_fill(here, BYTES, (unsigned int)(rank * 10 + i));
		CHECK_SMI(SMI_Imemcpy(part[peer], here, BYTES, 0, &h));
		CHECK(h);
		CHECK_SMI(SMI_Memwait(h));
		CHECK(!h);
		CHECK_SMI(SMI_Imemcpy(back, part[peer], BYTES, 0, &h));
		while ((err = SMI_Memtest(h)) == SMI_ERR_PENDING)
			test_pause();
		CHECK_SMI(err);
		CHECK(!h);
		CHECK(!memcmp(here, back, BYTES));
	}
	CHECK_SMI(SMI_Imemcpy(part[peer], here, 8192, SMI_MEMCPY_ENQUEUE, &h));
	CHECK_EQ(SMI_Memwait(h), SMI_ERR_NOTPOSTED);
	CHECK_EQ(SMI_Memtest(h), SMI_ERR_NOTPOSTED);
	CHECK_SMI(SMI_Imemcpy(part[peer] + 8192, here, 64,
			      SMI_MEMCPY_ENQUEUE | SMI_MEMCPY_FORCE_DMA, &h));
	CHECK_SMI(SMI_Imemcpy(back, here, 100, SMI_MEMCPY_ENQUEUE, &h));
	CHECK_SMI(SMI_Imemcpy(part[peer] + 16384, here, 8192, 0, &h));
	CHECK_EQ(SMI_Imemcpy(back, here, 100, 0, &h), SMI_ERR_PARAM);
	CHECK_SMI(SMI_Memwait(h));
	CHECK(!memcmp(part[peer], here, 8192));
	CHECK(!memcmp(part[peer] + 8192, here, 64));
	CHECK(!memcmp(part[peer] + 16384, here, 8192));
	CHECK(!memcmp(back, here, 100));
	/* SMI_Mempost() starts a queued copy */
	CHECK_SMI(SMI_Imemcpy(part[peer], here, 4096, SMI_MEMCPY_ENQUEUE, &h));
	CHECK_SMI(SMI_Mempost(h));
	CHECK_SMI(SMI_Memwait(h));
	CHECK_EQ(SMI_Mempost(h), SMI_ERR_PARAM);
	for (int i = 0; i < 4; i++)
		CHECK_SMI(SMI_Imemcpy(part[peer] + i * 8192, here + i * 8192, 8192, 0,
				      &many[i]));
	CHECK_SMI(SMI_MemwaitAll(4, many, status));
	CHECK(!memcmp(part[peer], here, 32768));
	for (int i = 0; i < 4; i++) {
		CHECK_SMI(status[i]);
		CHECK(!many[i]);
	}
	/* SMI_MemtestAll() returns success when no copy is pending */
	for (int i = 0; i < 20; i++) {
		CHECK_SMI(SMI_Imemcpy(part[peer], here, 4096, 0, &many[0]));
		CHECK_SMI(SMI_Imemcpy(part[peer] + 4096, here + 4096, BYTES - 4096, 0, &many[1]));
		while ((err = SMI_MemtestAll(2, many, status)) == SMI_ERR_PENDING)
			test_pause();
		CHECK_SMI(err);
		CHECK(!many[0] && !many[1]);
	}
	CHECK(!memcmp(part[peer], here, BYTES));
	CHECK_EQ(SMI_MemtestAll(1, many, status), SMI_ERR_OTHER);
	CHECK_EQ(status[0], SMI_ERR_PARAM);
	CHECK_SMI(SMI_Barrier());
	free(back);
	smi_stop();
}

TEST_SIZES(beside, beside)
