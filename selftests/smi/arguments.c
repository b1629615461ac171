// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Calls every public function with random arguments: numbers that are too large or too small,
 * ids of no object, NULL.  All processes make the same calls, as collective calls require.
 * Each call must return, with an error code or success, and SMI_Finalize() must succeed.
 */
#include <limits.h>
#include <string.h>

#include "selftests/random.h"
#include "selftests/smi/start.h"

#define CALLS	3000

static char scratch[8192];
static size_t length;			/* of scratch */
static smi_memcpy_handle handle;
static smi_signal_handle signal_handle;

/* Return a random id, rank, mode or offset. */
static int I(void)
{
	static const int some[] = {
		0, 0, 1, 1, 2, 3, 4, 5, 8, 63, 64, 99, 1023, 1024, 4096, -1, -2, 1 << 30,
		(1 << 30) | 1, INT_MAX, INT_MIN,
	};

	return some[random_below(ARRAY_LEN(some))];
}

/* Return a wrong rank or count, for calls that would wait for a process with a right one. */
static int bad(void)
{
	static const int some[] = { -1, -5, 4711, INT_MAX, INT_MIN };

	return some[random_below(ARRAY_LEN(some))];
}

static void *P(void)
{
	return random_below(4) ? scratch : NULL;
}

static size_t Z(void)
{
	static const size_t some[] = { 0, 1, 128, 4096, 100000, SIZE_MAX / 2, SIZE_MAX };

	return some[random_below(ARRAY_LEN(some))];
}

/* Return a size that fits into scratch. */
static size_t small(void)
{
	return random_below(3) * 60;
}

/* Return the address of a region, an address outside of regions, or NULL. */
static void *address(void)
{
	void *p = NULL;

	SMI_Query(SMI_Q_SMI_REGION_ADDRESS, (int)random_below(8), &p);
	return random_below(2) ? p : P();
}

static int create(void)
{
	static const int flags[] = {
		0, SMI_SHM_NONFIXED, SMI_SHM_DELAYED, SMI_SHM_DELAYED | SMI_SHM_NONFIXED,
		SMI_SHM_PRIVATE, SMI_SHM_INTERN, SMI_SHM_SHRINKABLE, SMI_SHM_CALLBACK, 1 << 20,
	};
	static void *addresses[RANKS_MAX];
	int owners[2] = { I(), I() }, type = (int)random_below(12), id;
	size_t sizes[2] = { Z(), 4096 };
	smi_region_info_t info = {
		.size = Z(), .owner = I(), .offset = Z(), .sgmt_id = I(), .partner = bad(),
		.nbr_sgmts = (int)random_below(4) - 1, .adapter = I(), .rmt_adapter = I(),
		.sgmt_owner = random_below(3) ? owners : NULL,
		.sgmt_size = random_below(3) ? sizes : NULL,
	};

	if (info.nbr_sgmts > 2)
		info.nbr_sgmts = INT_MAX;
	/* an import from this process, or from no process */
	if (type == SMI_SHM_REMOTE || type == SMI_SHM_RDMA)
		info.owner = random_below(2) ? rank : bad();
	if (type == SMI_SHM_LOCAL)
		info.owner = random_below(2) ? rank : bad();
	return SMI_Create_shreg(type | flags[random_below(ARRAY_LEN(flags))], &info, &id,
				addresses);
}

static int lock_and_unlock(void)
{
	int id = I(), got = 0, err = random_below(2) ? SMI_Mutex_lock(id) :
						       SMI_Mutex_trylock(id, &got);

	return err ? err : SMI_Mutex_unlock(id);
}

static int iterations(void)
{
	int id = I(), status, low, high, err;

	do
		err = SMI_Get_iterations(id, &status, &low, &high);
	while (!err && status != SMI_LOOP_READY);
	return err;
}

static int layout(void)
{
	smi_rlayout_t *l = NULL;
	int err = SMI_Region_layout(I(), random_below(4) ? &l : NULL);

	CHECK(err || l);
	if (!err) {
		free(l->seg_adr);
		free(l->seg_size);
		free(l->seg_machine);
		free(l);
	}
	return err;
}

static int copy_later(void)
{
	int err = SMI_Imemcpy(P(), P(), small(), I() & ~SMI_MEMCPY_ENQUEUE, &handle);

	return err || !handle ? err : SMI_Memwait(handle);
}

static int node_memory(void)
{
	return SMI_Nodemem_free(SMI_Nodemem_alloc(Z()));
}

static int of_node(void)
{
	return SMI_Nodemem_address(I()) ? SMI_SUCCESS : SMI_ERR_PARAM;
}

#define ALL(X)								\
	X(SMI_Proc_rank(P())) X(SMI_Proc_size(P())) X(SMI_Node_rank(P()))	\
	X(SMI_Node_size(P())) X(SMI_Local_proc_rank(P()))			\
	X(SMI_Local_proc_size(P())) X(SMI_Max_local_proc_size(P()))		\
	X(SMI_Proc_to_node(I(), P())) X(SMI_First_proc_on_node(I(), P()))	\
	X(SMI_Get_node_name(P(), random_below(3) ? &length : NULL))		\
	X(SMI_Page_size(P())) X(create()) X(create()) X(create())		\
	X(SMI_Create_shreg(I(), NULL, NULL, NULL))				\
	X(SMI_Init_reginfo(P(), Z(), Z(), I(), I(), I(), I(), NULL))		\
	X(SMI_Connect_shreg(I(), P())) X(SMI_Free_shreg(I())) X(SMI_Free_shreg(I())) \
	X(SMI_Set_adapter(I())) X(SMI_Set_region_callback(I(), NULL))		\
	X(SMI_Adr_to_region(address(), P()))					\
	X(SMI_Range_to_region(address(), Z(), P())) X(layout())			\
	X(SMI_Get_region_locator(I(), P())) X(SMI_Init_shregMMU(I()))		\
	X(SMI_Imalloc(Z(), I(), P())) X(SMI_Cmalloc(Z(), I(), P()))		\
	X(SMI_Ifree(P())) X(SMI_Cfree(P())) X(node_memory())			\
	X(SMI_Nodemem_free(P())) X(of_node())					\
	X(SMI_Memcpy(P(), P(), small(), I())) X(copy_later())			\
	X(SMI_Imemcpy(P(), P(), small(), I(), NULL)) X(SMI_Mempost(NULL))	\
	X(SMI_Memwait(NULL)) X(SMI_Memtest(NULL))				\
	X(SMI_MemwaitAll(bad() % 2 - 1, P(), P())) X(SMI_MemtestAll(1, NULL, P()))	\
	X(SMI_Put(I(), I(), P(), small())) X(SMI_Get(P(), I(), I(), small()))	\
	X(SMI_Iput(I(), I(), P(), small(), NULL))				\
	X(SMI_Iget(P(), I(), I(), small(), NULL))				\
	X(SMI_Check_transfer(I())) X(SMI_Check_transfer_addr(address(), I()))	\
	X(SMI_Check_transfer_proc(I(), I())) X(SMI_Flush_read(I()))		\
	X(SMI_Flush_write(I())) X(SMI_BARRIER(I()))				\
	X(SMI_BARRIER_INIT(P(), I(), I())) X(SMI_BARRIER_DESTROY(I()))		\
	X(SMI_MUTEX_INIT(P(), I(), I())) X(SMI_Mutex_destroy(I()))		\
	X(lock_and_unlock()) X(SMI_Mutex_unlock(I())) X(SMI_Mutex_trylock(I(), NULL)) \
	X(SMI_Location_of_mutex(I(), P())) X(SMI_Init_PC(P())) X(SMI_Reset_PC(I())) \
	X(SMI_Increment_PC(I(), I())) X(SMI_Get_PC(I(), I(), P()))		\
	X(SMI_Wait_individual_PC(I(), I(), -(int)random_below(3)))		\
	X(SMI_Wait_individual_set_PC(I(), P(), bad() % 2, -(int)random_below(3)))	\
	X(SMI_Wait_collective_PC(I(), -(int)random_below(3)))			\
	X(SMI_Signal_send(I())) X(SMI_Signal_wait(bad()))			\
	X(SMI_Signal_setCallBack(bad(), NULL, P(), &signal_handle))		\
	X(SMI_Signal_joinCallBack(&signal_handle)) X(SMI_Signal_joinCallBack(NULL)) \
	X(SMI_Send(P(), I(), bad())) X(SMI_Isend(P(), bad(), I()))		\
	X(SMI_Send_wait(I())) X(SMI_Recv(P(), bad(), I())) X(SMI_Recv(P(), I(), bad())) \
	X(SMI_Sendrecv(P(), P(), I(), bad()))					\
	X(SMI_Switch_to_replication(I(), I(), I(), I(), I()))			\
	X(SMI_Switch_to_sharing(I(), I(), I(), I()))				\
	X(SMI_Ensure_consistency(I(), I(), I(), I()))				\
	X(SMI_Loop_init(P(), I(), I(), I())) X(SMI_Loop_free(I())) X(iterations()) \
	X(SMI_Get_iterations(I(), NULL, NULL, NULL))				\
	X(SMI_Set_loop_param(I(), random_below(4), I(), I(), bad(), bad()))	\
	X(SMI_Set_loop_help_param(I(), I())) X(SMI_Loop_k_adaption_mode(I(), I(), I())) \
	X(SMI_Evaluate_speed(NULL)) X(SMI_Use_evaluated_speed(I()))		\
	X(SMI_Loop_split_init(P())) X(SMI_Loop_index_range(I(), P(), P(), I()))	\
	X(SMI_Determine_loop_splitting(I(), I(), I(), I()))			\
	X(SMI_Loop_time_start(I())) X(SMI_Loop_time_stop(I()))			\
	X(SMI_Loop_balance_index_range(I())) X(SMI_Get_timer(P(), P()))		\
	X(SMI_Get_timespan(P(), P())) X(SMI_Debug(I())) X(SMI_Debug_time(I()))	\
	X(SMI_Redirect_IO(SMI_IO_FILE, NULL, SMI_IO_FILE, NULL, SMI_IO_FILE, NULL)) \
	X(SMI_Watchdog(-2 - (int)random_below(9))) X(SMI_Watchdog_callback(NULL)) \
	X(SMI_Query((smi_query_t)(100 + random_below(220)), I(), P()))

#define ONE(call) + 1
#define CASE(call) case __COUNTER__ - BASE: err = call; what = #call; break;

enum { KINDS = 0 ALL(ONE) };

static void fuzz(void)
{
	const char *what = "";
	int err;

	smi_start();
	random_seed(0);
	for (int i = 0; i < CALLS; i++) {
		/* results of earlier calls differ between processes */
		memset(scratch, 0, sizeof(scratch));
		length = random_below(2) ? 0 : sizeof(scratch);
		err = -1;
		enum { BASE = __COUNTER__ + 1 };
		switch (random_below(KINDS)) {
		ALL(CASE)
		}
		if (err < 0 || (err > SMI_ERR_BUSY && err < 1000))
			FAIL("call %d, %s returns %d", i, what, err);
	}
	smi_stop();
}

TEST(arguments_at_random_of_1) { ranks_run(1, 1, fuzz); }
TEST(arguments_at_random_of_4_on_1) { ranks_run(4, 1, fuzz); }
TEST(arguments_at_random_of_4_on_4) { ranks_run(4, 4, fuzz); }
