// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* SMI_Init(), SMI_Finalize(), and functions that programs call without a prototype. */

#include "libsci/smi/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsci/base/thread.h"

/* smi.lock is also valid before SMI_Init() and after SMI_Finalize(). */
struct smi smi = { .lock = PTHREAD_MUTEX_INITIALIZER };

/*
 * Variables that programs read: this process's rank, the number of processes, the launcher's rank.
 */
SMI_API int _smi_my_proc_rank, _smi_nbr_procs, _smi_mpi_rank, _smi_mcDMAReadEnabled;

static int device_open(void)
{
	const char *adapter = getenv("SMI_USE_ADAPTER");
	sci_error_t err;

	SCIInitialize(0, &err);
	if (!err)
		SCIOpen(&smi.sd, 0, &err);
	if (err)
		return SMI_ERR_NODEVICE;
	smi.adapter = smi.first_adapter = adapter ? (unsigned int)strtoul(adapter, NULL, 10) : 0;
	return SMI_SUCCESS;
}

static int pidfile_write(void)
{
	FILE *f;

	if (!smi_args.pidfile)
		return SMI_SUCCESS;
	f = fopen(smi_args.pidfile, "we");
	if (!f)
		return SMI_ERR_OTHER;
	fprintf(f, "%d\n", (int)getpid());
	return fclose(f) ? SMI_ERR_OTHER : SMI_SUCCESS;
}

/* Start the library: first the team, then control messages, then shared memory. */
static int library_start(void)
{
	int err = smi_team_start();

	err = err ? err : smi_agree(smi.team, device_open());
	err = err ? err : smi_sync_start();
	err = err ? err : smi_agree(smi.team, smi_channel_open());
	err = err ? err : smi_nodemem_start();
	err = err ? err : smi_agree(smi.team, pidfile_write());
	err = err ? err : smi_agree(smi.team, smi_output_redirect());
	return err ? err : smi_agree(smi.team, smi_watchdog_start());
}

static void library_end(void)
{
	sci_error_t err;

	smi_signals_end();
	smi_channel_close();
	smi_imports_end();
	smi_regions_end();
	if (smi.sd)
		SCIClose(smi.sd, 0, &err);
	smi_team_end();
	pthread_cond_destroy(&smi.change);
}

SMI_API smi_error_t SMI_Init(int *argc, char ***argv)
{
	static _Atomic bool ended;
	int err;

	if (!smi_check_up())
		return SMI_SUCCESS;
	if (atomic_exchange(&ended, true))
		return SMI_ERR_OTHER;
	if (smi_args_strip(argc, argv))
		exit(1);
	sci_cond_init(&smi.change);
	err = library_start();
	if (!err) {
		_smi_my_proc_rank = smi.rank;
		_smi_nbr_procs = smi.size;
		_smi_mpi_rank = sci_team_rank(smi.all);
		atomic_store_explicit(&smi.up, true, memory_order_release);
		SMI_Query(SMI_Q_SMI_DMA_AVAILABLE, 0, &_smi_mcDMAReadEnabled);
		if (smi_args.verbose)
			fprintf(stderr, "smi: process %d of %d, on node %d of %d, pid %d\n",
				smi.rank, smi.size, smi.node, smi.nodes, (int)getpid());
		return SMI_SUCCESS;
	}
	fprintf(stderr, "smi: SMI_Init() failed with code %d\n", err);
	atomic_store(&smi.ending, true);
	smi_watchdog_stop();
	smi_callbacks_stop();
	library_end();
	return err;
}

/*
 * End SMI. After the first barrier, peers may disconnect without an error. Callbacks end before the
 * second barrier, because they may ask other processes' library threads.
 */
SMI_API smi_error_t SMI_Finalize(void)
{
	int err;

	SMI_ENTER();
	err = SMI_Barrier();
	atomic_store(&smi.ending, true);
	smi_watchdog_stop();
	smi_callbacks_stop();
	if (!err)
		err = SMI_Barrier();
	atomic_store(&smi.up, false);
	library_end();
	fflush(stdout);
	fflush(stderr);
	return err;
}

/* ---- functions without a prototype ---- */

void _smi_range_store_barrier(volatile void *adr, unsigned int len, int proc);
void _smi_range_load_barrier(volatile void *adr, unsigned int len, int proc);
int _smi_ll_bcast(int *buf, int ints, int root, int me);
void _smi_mmx_memcpy(void *dst, void *src, int len);
SMI_API void _smi_wc_memcpy(void *dst, void *src, int len)
	__attribute__((alias("_smi_mmx_memcpy")));
smi_error_t SMI_Init_direct(void *args);

SMI_API void _smi_range_store_barrier(volatile void *adr, unsigned int len, int proc)
{
	(void)adr;
	(void)len;
	SMI_Flush_write(proc);
}

SMI_API void _smi_range_load_barrier(volatile void *adr, unsigned int len, int proc)
{
	(void)adr;
	(void)len;
	SMI_Flush_read(proc);
}

SMI_API int _smi_ll_bcast(int *buf, int ints, int root, int me)
{
	(void)me;
	SMI_REFUSE(!buf || ints < 0 || !smi_rank_ok(root));
	return smi_error_of_team(sci_team_bcast(smi.team, root, buf,
						(size_t)ints * sizeof(*buf)));
}

SMI_API void _smi_mmx_memcpy(void *dst, void *src, int len)
{
	if (len > 0)
		SMI_Memcpy(dst, src, (size_t)len, SMI_MEMCPY_FAST);
}

/* Initialize SMI. Ignore @args of the original launcher: the team's launcher passes its own. */
SMI_API smi_error_t SMI_Init_direct(void *args)
{
	(void)args;
	return SMI_Init(NULL, NULL);
}
