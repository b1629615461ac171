// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests regions of one process that other processes import; put and get; region callbacks. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "selftests/smi/start.h"

#define BYTES	(64u << 10)
#define IMPORTS	64

static int import(int type, int owner, int sgmt, size_t bytes, size_t offset, int *id,
		  void *address)
{
	smi_region_info_t info;

	SMI_Init_reginfo(&info, bytes, offset, owner, SMI_ADPT_DEFAULT, SMI_ADPT_DEFAULT,
			 sgmt, NULL);
	return SMI_Create_shreg(type, &info, id, address);
}

/* Send the id of a segment to the next process. Return: the id from the previous process. */
static int pass(int id)
{
	int sgmt = -1, got = -1, next = (rank + 1) % size, last = (rank + size - 1) % size;

	CHECK_SMI(SMI_Query(SMI_Q_SMI_REGION_SGMT_ID, id, &sgmt));
	CHECK(sgmt > 0);
	CHECK_SMI(SMI_Flush_write(next));
	CHECK_SMI(SMI_Isend(&sgmt, sizeof(sgmt), next));
	CHECK_SMI(SMI_Recv(&got, sizeof(got), last));
	CHECK_SMI(SMI_Send_wait(next));
	CHECK_SMI(SMI_Flush_read(last));
	return got;
}

/* Check the node and the number of the segment of region @id, which process @owner has. */
static void locator_check(int id, int owner, int sgmt)
{
	smi_sgmt_locator_t at;
	int n;

	CHECK_SMI(SMI_Get_region_locator(id, &at));
	CHECK_SMI(SMI_Proc_to_node(owner, &n));
	CHECK_EQ(at.sci_id, 4 * (n + 1));
	CHECK_EQ(at.segment_id, sgmt);
}

static void remote(void)
{
	int id, imp, again, sgmt, last;
	unsigned char *mine, *theirs, *part;
	size_t bytes = 0;

	smi_start();
	last = (rank + size - 1) % size;
	mine = smi_region(SMI_SHM_LOCAL, BYTES, rank, &id);
	test_fill(mine, BYTES, (unsigned int)rank);
	sgmt = pass(id);
	CHECK_EQ(import(SMI_SHM_REMOTE, rank, sgmt, 0, 0, &imp, &theirs), SMI_ERR_PARAM);
	CHECK_EQ(import(SMI_SHM_REMOTE, last, 0, 0, 0, &imp, &theirs), SMI_ERR_PARAM);
	CHECK_EQ(import(SMI_SHM_REMOTE, last, 12345, 0, 0, &imp, &theirs),
		 SMI_ERR_NOSEGMENT);
	CHECK_EQ(import(SMI_SHM_REMOTE, last, sgmt, BYTES + 4096, 0, &imp, &theirs),
		 SMI_ERR_PARAM);
	for (int i = 0; i < 3; i++) {
		CHECK_SMI(import(SMI_SHM_REMOTE, last, sgmt, 0, 0, &imp, &theirs));
		CHECK_SMI(import(SMI_SHM_REMOTE, last, sgmt, 4096, 8192, &again, &part));
		CHECK_SMI(SMI_Query(SMI_Q_SMI_REGION_SIZE, imp, &bytes));
		CHECK_EQ(bytes, BYTES);
		locator_check(imp, last, sgmt);
		CHECK(test_filled(theirs, BYTES, (unsigned int)last));
		CHECK(!memcmp(part, theirs + 8192, 4096));
		CHECK_SMI(SMI_Free_shreg(imp));
		CHECK_SMI(SMI_Free_shreg(again));
	}
	CHECK_EQ(SMI_Get_region_locator(id, NULL), SMI_ERR_PARAM);
	CHECK_SMI(import(SMI_SHM_REMOTE, last, sgmt, 0, 0, &imp, &theirs));
	CHECK_SMI(SMI_Barrier());
	/* if the owner frees its region first, the importer may still use it */
	CHECK_EQ(SMI_Free_shreg(id), SMI_ERR_BUSY);
	CHECK_EQ(SMI_Free_shreg(id), SMI_ERR_PARAM);
	CHECK_SMI(SMI_Barrier());
	CHECK(test_filled(theirs, BYTES, (unsigned int)last));
	CHECK_EQ(import(SMI_SHM_REMOTE, last, sgmt, 0, 0, &again, &part),
		 SMI_ERR_NOSEGMENT);
	CHECK_SMI(SMI_Free_shreg(imp));
	smi_stop();
}

TEST(remote_2) { ranks_run(2, 1, remote); }
TEST(remote_2_on_2) { ranks_run(2, 2, remote); }
TEST(remote_8_on_4) { ranks_run(8, 4, remote); }
TEST(remote_16_on_4) { ranks_run(16, 4, remote); }

/* On adapters with a DMA alignment, transfers with odd bounds are refused. */
static void alignment_check(int imp, unsigned char *buf)
{
	int align = 1;

	CHECK_SMI(SMI_Query(SMI_Q_SCI_DMA_OFFSET_ALIGN, SMI_ADPT_DEFAULT, &align));
	if (align <= 1)
		return;
	CHECK_EQ(SMI_Put(imp, 1, buf, (size_t)align), SMI_ERR_BADALIGN);
	CHECK_EQ(SMI_Get(buf + 1, imp, 0, (size_t)align), SMI_ERR_BADALIGN);
	CHECK_EQ(SMI_Get(buf, imp, 0, 1), SMI_ERR_BADALIGN);
}

/* Put into an RDMA region and get from it, blocking and not. */
static void rdma(void)
{
	smi_memcpy_handle h = NULL, none = NULL;
	unsigned char *mine, *buf, other[64];
	static unsigned char whole[BYTES];
	void *address = &h;
	int id, local, imp, sgmt, last, next;

	smi_start();
	last = (rank + size - 1) % size;
	next = (rank + 1) % size;
	mine = smi_region(SMI_SHM_LOCAL, BYTES, rank, &id);
	buf = smi_region(SMI_SHM_LOCAL, BYTES, rank, &local);
	sgmt = pass(id);
	CHECK_SMI(import(SMI_SHM_RDMA, last, sgmt, 0, 0, &imp, &address));
	CHECK(!address);
	test_fill(buf, BYTES, (unsigned int)(10 + rank));
	CHECK_SMI(SMI_Put(imp, 0, buf, BYTES));
	CHECK_SMI(SMI_Barrier());
	CHECK(test_filled(mine, BYTES, (unsigned int)(10 + next)));
	memset(buf, 0, BYTES);
	CHECK_SMI(SMI_Iget(buf, imp, 0, BYTES, &h));
	CHECK(h);
	CHECK_SMI(SMI_Memwait(h));
	CHECK(!h);
	CHECK(test_filled(buf, BYTES, (unsigned int)(10 + rank)));
	memcpy(whole, buf, BYTES);
	memset(buf, 0, BYTES);
	CHECK_SMI(SMI_Get(buf + 8192, imp, 4096, 12288));
	CHECK(!memcmp(buf + 8192, whole + 4096, 12288));
	CHECK_EQ(buf[8191], 0);
	CHECK_EQ(buf[20480], 0);
	CHECK_SMI(SMI_Barrier());
	memset(buf, 77, 4096);
	CHECK_SMI(SMI_Iput(imp, 4096, buf, 4096, &h));
	while (SMI_Memtest(h) == SMI_ERR_PENDING)
		test_pause();
	CHECK(!h);
	CHECK_SMI(SMI_Barrier());
	CHECK_EQ(mine[4096], 77);
	CHECK_EQ(mine[8191], 77);
	/* wrong arguments are refused */
	CHECK_EQ(SMI_Put(imp, 0, other, sizeof(other)), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Put(imp, -1, buf, 1), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Put(imp, 4096, buf, BYTES), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Put(id, 0, buf, 64), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Get(other, imp, 0, sizeof(other)), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Get(buf, imp, 4096, BYTES), SMI_ERR_PARAM);
	alignment_check(imp, buf);
	CHECK_EQ(SMI_Memwait(none), SMI_ERR_PARAM);
	CHECK_SMI(SMI_Free_shreg(imp));
	CHECK_SMI(SMI_Barrier());
	CHECK_SMI(SMI_Free_shreg(local));
	CHECK_SMI(SMI_Free_shreg(id));
	smi_stop();
}

TEST(rdma_2) { ranks_run(2, 1, rdma); }
TEST(rdma_2_on_2) { ranks_run(2, 2, rdma); }
TEST(rdma_8_on_4) { ranks_run(8, 4, rdma); }

/* Memory that the program allocated is exported at its address. */
static void registered(void)
{
	smi_region_info_t info;
	unsigned char *memory, *theirs;
	void *p = NULL;
	int id, imp, sgmt, last;
	size_t len = 102400;

	smi_start();
	last = (rank + size - 1) % size;
	SMI_Init_reginfo(&info, len, 0, rank, SMI_ADPT_DEFAULT, 0, 0, NULL);
	CHECK_EQ(SMI_Create_shreg(SMI_SHM_LOCAL | SMI_SHM_REGISTER, &info, &id, &p),
		 SMI_ERR_BADADR);
	memory = aligned_alloc(4096, len);
	CHECK(memory);
	/* memory must begin at a page, since the page's other bytes may be private */
	info.size = len - 4096;
	p = memory + 16;
	if (!getenv("SCI_TEST_FABRIC"))
		CHECK_EQ(SMI_Create_shreg(SMI_SHM_LOCAL | SMI_SHM_REGISTER, &info, &id, &p),
			 SMI_ERR_BADADR);
	info.size = len;
	test_fill(memory, len, (unsigned int)rank);
	p = memory;
	CHECK_SMI(SMI_Create_shreg(SMI_SHM_LOCAL | SMI_SHM_REGISTER, &info, &id, &p));
	CHECK(p == memory);
	CHECK_EQ(info.size, len);
	sgmt = pass(id);
	CHECK_SMI(import(SMI_SHM_REMOTE, last, sgmt, len, 0, &imp, &theirs));
	CHECK(test_filled(theirs, len, (unsigned int)last));
	CHECK_SMI(SMI_Barrier());
	theirs[len - 1] = 42;
	theirs[0] = 43;
	CHECK_SMI(SMI_Barrier());
	CHECK_EQ(memory[len - 1], 42);
	CHECK_EQ(memory[0], 43);
	CHECK_SMI(SMI_Put(imp, 16, memory + 16, 64));
	CHECK_SMI(SMI_Free_shreg(imp));
	CHECK_SMI(SMI_Barrier());
	CHECK_SMI(SMI_Free_shreg(id));
	CHECK_EQ(memory[len - 1], 42);
	free(memory);
	smi_stop();
}

TEST(registered_2) { ranks_run(2, 1, registered); }
TEST(registered_4_on_4) { ranks_run(4, 4, registered); }

static void private_region(void)
{
	smi_region_info_t info;
	unsigned char *mine, *buf = NULL;
	void *none;
	int id, local, imp, err;

	smi_start();
	SMI_Init_reginfo(&info, BYTES, 0, rank, SMI_ADPT_DEFAULT, 0, 0, NULL);
	err = SMI_Create_shreg(SMI_SHM_LOCAL | SMI_SHM_PRIVATE, &info, &local,
			       (void **)&buf);
	if (nodes == 1) {
		CHECK_EQ(err, SMI_ERR_NODEVICE);
		smi_stop();
		return;
	}
	CHECK_SMI(err);
	mine = smi_region(SMI_SHM_LOCAL, BYTES, rank, &id);
	CHECK_SMI(import(SMI_SHM_RDMA, (rank + size - 1) % size, pass(id), 0, 0, &imp,
			 &none));
	memset(buf, rank + 1, BYTES);
	CHECK_SMI(SMI_Put(imp, 0, buf, BYTES));
	CHECK_SMI(SMI_Barrier());
	CHECK_EQ(mine[BYTES - 1], (rank + 1) % size + 1);
	CHECK_SMI(SMI_Free_shreg(imp));
	CHECK_SMI(SMI_Barrier());
	CHECK_SMI(SMI_Free_shreg(id));
	CHECK_SMI(SMI_Free_shreg(local));
	smi_stop();
}

TEST(private_2) { ranks_run(2, 1, private_region); }
TEST(private_2_on_2) { ranks_run(2, 2, private_region); }

/* ---- callbacks ---- */

static _Atomic int connects, disconnects;

static int count_peers(int id, int reason)
{
	(void)id;
	if (reason == SMI_CB_REASON_CONNECT)
		connects++;
	else
		disconnects++;
	return SMI_CB_ACTION_NOTHING;
}

static int let_go(int id, int reason)
{
	(void)id;
	CHECK_EQ(reason, SMI_CB_REASON_DISCONNECT);
	disconnects++;
	return SMI_CB_ACTION_FREEREG;
}

static int wrong_function(int id, int reason)
{
	FAIL("the replaced function gets reason %d of region %d", reason, id);
}

static void called_back(void)
{
	smi_region_info_t info;
	int id, imp = -1, found, sgmt;
	void *p, *q = NULL;

	smi_start();
	if (rank == 0) {
		SMI_Init_reginfo(&info, BYTES, 0, 0, SMI_ADPT_DEFAULT, 0, 0, wrong_function);
		CHECK_SMI(SMI_Create_shreg(SMI_SHM_LOCAL | SMI_SHM_CALLBACK, &info, &id,
					   &p));
		CHECK_SMI(SMI_Set_region_callback(id, count_peers));
		CHECK_SMI(SMI_Query(SMI_Q_SMI_REGION_SGMT_ID, id, &sgmt));
		for (int i = 1; i < size; i++)
			CHECK_SMI(SMI_Send(&sgmt, sizeof(sgmt), i));
		WAIT_UNTIL(connects == size - 1, TEST_WAIT_MS);
		WAIT_UNTIL(disconnects == 1, TEST_WAIT_MS);
		CHECK_EQ(SMI_Free_shreg(id), SMI_ERR_BUSY);
	} else {
		CHECK_SMI(SMI_Recv(&sgmt, sizeof(sgmt), 0));
		SMI_Init_reginfo(&info, 0, 0, 0, SMI_ADPT_DEFAULT, 0, sgmt,
				 rank == 2 ? NULL : let_go);
		CHECK_SMI(SMI_Create_shreg(SMI_SHM_REMOTE | SMI_SHM_CALLBACK, &info, &imp,
					   &q));
		if (rank == 1)
			CHECK_SMI(SMI_Free_shreg(imp));
		/* a region without a callback is freed, too */
		WAIT_UNTIL(SMI_Adr_to_region(q, &found) == SMI_ERR_PARAM, TEST_WAIT_MS);
		CHECK_EQ(disconnects, rank > 2);
	}
	smi_stop();
}

TEST(callbacks_4) { ranks_run(4, 1, called_back); }
TEST(callbacks_4_on_4) { ranks_run(4, 4, called_back); }

/* The owner frees a region with many imports, which are freed while the processes end. */
static void freed_at_the_end(void)
{
	smi_region_info_t info;
	int id, imp, sgmt;
	void *p;

	smi_start();
	if (rank == 0) {
		p = smi_region(SMI_SHM_LOCAL, BYTES, 0, &id);
		CHECK_EQ(SMI_Set_region_callback(id, count_peers), SMI_ERR_PARAM);
		CHECK_SMI(SMI_Query(SMI_Q_SMI_REGION_SGMT_ID, id, &sgmt));
		CHECK_SMI(SMI_Send(&sgmt, sizeof(sgmt), 1));
		CHECK_SMI(SMI_Barrier());
		CHECK_EQ(SMI_Free_shreg(id), SMI_ERR_BUSY);
	} else {
		CHECK_SMI(SMI_Recv(&sgmt, sizeof(sgmt), 0));
		SMI_Init_reginfo(&info, 0, 0, 0, SMI_ADPT_DEFAULT, 0, sgmt, let_go);
		for (int i = 0; i < IMPORTS; i++)
			CHECK_SMI(SMI_Create_shreg(SMI_SHM_REMOTE | SMI_SHM_CALLBACK,
						   &info, &imp, &p));
		CHECK_SMI(SMI_Barrier());
		WAIT_UNTIL(disconnects, TEST_WAIT_MS);
	}
	smi_stop();
}

TEST(callbacks_run_while_the_processes_end) { ranks_run(2, 2, freed_at_the_end); }

static _Atomic int step;

/* Wait until the program has freed the region and created another one. */
static int return_late(int id, int reason)
{
	(void)id;
	(void)reason;
	step = 1;
	WAIT_UNTIL(step == 2, TEST_WAIT_MS);
	return SMI_CB_ACTION_FREEREG;
}

/* The region after an import that is freed during its callback has the same id. */
static void freed_during_callback(void)
{
	int id[2], imp[2], sgmt, other, found;
	smi_region_info_t info;
	void *p;

	smi_start();
	for (int i = 0; i < 2; i++) {
		if (rank == 0) {
			smi_region(SMI_SHM_LOCAL, BYTES, 0, &id[i]);
			CHECK_SMI(SMI_Query(SMI_Q_SMI_REGION_SGMT_ID, id[i], &sgmt));
			CHECK_SMI(SMI_Send(&sgmt, sizeof(sgmt), 1));
		} else {
			CHECK_SMI(SMI_Recv(&sgmt, sizeof(sgmt), 0));
			SMI_Init_reginfo(&info, 0, 0, 0, SMI_ADPT_DEFAULT, 0, sgmt,
					 i ? count_peers : return_late);
			CHECK_SMI(SMI_Create_shreg(SMI_SHM_REMOTE | SMI_SHM_CALLBACK, &info,
						   &imp[i], &p));
		}
	}
	CHECK_SMI(SMI_Barrier());
	if (rank == 0) {
		CHECK_EQ(SMI_Free_shreg(id[0]), SMI_ERR_BUSY);
		CHECK_EQ(SMI_Free_shreg(id[1]), SMI_ERR_BUSY);
	} else {
		WAIT_UNTIL(step == 1, TEST_WAIT_MS);
		CHECK_SMI(SMI_Free_shreg(imp[0]));
		p = smi_region(SMI_SHM_LOCAL, BYTES, 1, &other);
		CHECK_EQ(other, imp[0]);
		step = 2;
		/* the second callback runs after the first one */
		WAIT_UNTIL(disconnects == 1, TEST_WAIT_MS);
		CHECK_SMI(SMI_Adr_to_region(p, &found));
		CHECK_EQ(found, other);
		CHECK_SMI(SMI_Free_shreg(other));
		CHECK_SMI(SMI_Free_shreg(imp[1]));
	}
	smi_stop();
}

TEST(a_callback_of_a_freed_import_spares_the_next_region)
{
	ranks_run(2, 2, freed_during_callback);
}

/* ---- threads ---- */

/* The callback of an import and the program free it at the same time. */
static void freed_twice(void)
{
	int id, imp, sgmt;
	void *p;

	smi_start();
	for (int i = 0; i < 300; i++) {
		if (rank == 0) {
			p = smi_region(SMI_SHM_LOCAL, 4096, 0, &id);
			CHECK_SMI(SMI_Query(SMI_Q_SMI_REGION_SGMT_ID, id, &sgmt));
			CHECK_SMI(SMI_Send(&sgmt, sizeof(sgmt), 1));
			CHECK_SMI(SMI_Barrier());
			CHECK_EQ(SMI_Free_shreg(id), SMI_ERR_BUSY);
			CHECK_SMI(SMI_Send(&sgmt, sizeof(sgmt), 1));
		} else {
			int err;

			CHECK_SMI(SMI_Recv(&sgmt, sizeof(sgmt), 0));
			CHECK_SMI(import(SMI_SHM_REMOTE | SMI_SHM_CALLBACK, 0, sgmt, 0, 0, &imp,
					 &p));
			CHECK_SMI(SMI_Barrier());
			CHECK_SMI(SMI_Recv(&sgmt, sizeof(sgmt), 0));
			err = SMI_Free_shreg(imp);
			CHECK(!err || err == SMI_ERR_PARAM);
		}
		CHECK_SMI(SMI_Barrier());
	}
	smi_stop();
}

TEST(an_import_is_freed_by_its_callback_and_the_program) { ranks_run(2, 2, freed_twice); }

static void *import_and_free(void *arg)
{
	int sgmt = *(int *)arg, imp;
	unsigned char *p;

	for (int i = 0; i < 20; i++) {
		CHECK_SMI(import(SMI_SHM_REMOTE, !rank, sgmt, 0, 0, &imp, &p));
		CHECK_EQ(p[1], !rank);
		CHECK_SMI(SMI_Free_shreg(imp));
	}
	return NULL;
}

/* Three threads of each of two processes import a region of the other process. */
static void threads_import(void)
{
	pthread_t t[3];
	unsigned char *mine;
	int id, sgmt, theirs;

	mine = smi_region(SMI_SHM_LOCAL, BYTES, rank, &id);
	mine[1] = (unsigned char)rank;
	CHECK_SMI(SMI_Query(SMI_Q_SMI_REGION_SGMT_ID, id, &sgmt));
	CHECK_SMI(SMI_Flush_write(!rank));
	CHECK_SMI(SMI_Sendrecv(&sgmt, &theirs, sizeof(sgmt), !rank));
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, import_and_free, &theirs), 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_SMI(SMI_Barrier());
	CHECK_SMI(SMI_Free_shreg(id));
}

static void threads(void)
{
	smi_start();
	threads_import();
	smi_stop();
}

TEST(threads_import_and_free_at_once) { ranks_run(2, 2, threads); }

static _Atomic bool flooding;

static void *signals_send(void *arg)
{
	while (atomic_load(&flooding))
		CHECK_SMI(SMI_Signal_send(!rank));
	return arg;
}

/* Signals keep the queues of both processes full while their library threads answer imports. */
static void imports_amid_signals(void)
{
	pthread_t t[4];

	smi_start();
	atomic_store(&flooding, true);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, signals_send, NULL), 0);
	threads_import();
	atomic_store(&flooding, false);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	smi_stop();
}

TEST(imports_while_signals_fill_the_queues) { ranks_run(2, 2, imports_amid_signals); }
