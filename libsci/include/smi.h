/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: SMI, shared memory interface
 *
 * Regions of shared memory for the processes of one program on one or several nodes. All processes
 * create a region together, or one process creates it alone. A region has the same address in all
 * processes unless a flag permits otherwise. SMI also has allocators, synchronization, copies, loop
 * scheduling and small messages. smi(3) is the overview.
 *
 * Rules for all functions
 *  - A function returns a general code, or a code that its "Return:" names. General codes:
 *    SMI_SUCCESS; SMI_ERR_NOINIT: the call is before SMI_Init() or after SMI_Finalize();
 *    SMI_ERR_PARAM: an argument is NULL or out of range; SMI_ERR_OTHER, of calls that wait:
 *    a process has died; 2000 + errno: a system call failed; 1000 + a code: a message
 *    between processes failed.
 *  - "Collective": all processes call the function, in the same order, one thread
 *    of each at a time. Any thread may call the other functions.
 *  - Sizes and offsets are in bytes. Processes and nodes have ranks from 0. Processes
 *    of one node have consecutive ranks.
 *  - When a process dies, the watchdog ends the other processes (SMI_Watchdog()).
 *    Without the watchdog, calls that wait for the dead process return SMI_ERR_OTHER.
 */
#ifndef _SMI_H_
#define _SMI_H_

#include <stddef.h>
#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int smi_error_t;

#define SMI_SUCCESS		0
#define SMI_ERR_OTHER		1
#define SMI_ERR_NOINIT		2
#define SMI_ERR_PARAM		3
#define SMI_ERR_BADADR		4
#define SMI_ERR_MAPFAILED	5
#define SMI_ERR_NODEVICE	6
#define SMI_ERR_NOSEGMENT	7
#define SMI_ERR_NOMEM		8
#define SMI_ERR_NOTIMPL		9
#define SMI_ERR_TRANSFER	10	/* data was lost: transfer it again */
#define SMI_ERR_PENDING		11	/* not complete, or in use */
#define SMI_ERR_NOTPOSTED	12
#define SMI_ERR_BADALIGN	13
#define SMI_ERR_BUSY		14

/* ---- start, end, ranks ---- */

/**
 * SMI_Init() - join the program; collective
 * @argc, @argv: arguments of main(); may be NULL
 *
 * The call removes a launcher's arguments, up to and including "--", and sets optind to 1. A
 * second call before SMI_Finalize() does nothing.
 * Return: SMI_ERR_NODEVICE: there is no adapter, or only sockets reach a process;
 * SMI_ERR_OTHER: SMI_Finalize() has been called, or an earlier SMI_Init() has failed;
 * SMI_ERR_NOMEM.
 */
smi_error_t SMI_Init(int *argc, char ***argv);

/**
 * SMI_Finalize() - wait for all processes, then release all resources; collective.
 * Return: a general code.
 */
smi_error_t SMI_Finalize(void);

/** SMI_Abort() - end all processes with exit code @code; does not return */
void SMI_Abort(int code) __attribute__((noreturn));

/** SMI_Proc_rank() - get the rank of this process. Return: a general code. */
smi_error_t SMI_Proc_rank(int *rank);
/** SMI_Proc_size() - get the number of processes. Return: a general code. */
smi_error_t SMI_Proc_size(int *size);
/** SMI_Node_rank() - get the rank of this process's node. Return: a general code. */
smi_error_t SMI_Node_rank(int *rank);
/** SMI_Node_size() - get the number of nodes. Return: a general code. */
smi_error_t SMI_Node_size(int *size);
/** SMI_Local_proc_rank() - get this process's rank on its node. Return: a general code. */
smi_error_t SMI_Local_proc_rank(int *rank);
/** SMI_Local_proc_size() - get the number of processes on this node. Return: a general code. */
smi_error_t SMI_Local_proc_size(int *size);
/**
 * SMI_Max_local_proc_size() - get the number of processes on the fullest node.
 * Return: a general code.
 */
smi_error_t SMI_Max_local_proc_size(int *size);
/** SMI_Proc_to_node() - get the node of a process. Return: SMI_ERR_PARAM: no such process. */
smi_error_t SMI_Proc_to_node(int proc, int *node);
/**
 * SMI_First_proc_on_node() - get the lowest rank on a node.
 * Return: SMI_ERR_PARAM: there is no such node.
 */
smi_error_t SMI_First_proc_on_node(int node, int *proc);

/**
 * SMI_Get_node_name() - get the host's name; also before SMI_Init()
 * @len: in: size of @name in bytes; out: length of the string
 * Return: SMI_ERR_OTHER: the name does not fit.
 */
smi_error_t SMI_Get_node_name(char *name, size_t *len);

/** SMI_Page_size() - get the common multiple of all nodes' page sizes. Return: a general code. */
smi_error_t SMI_Page_size(int *size);

/* ---- regions ---- */

/* types of regions */
#define SMI_SHM_UNDIVIDED	0	/* one segment, on the owner's node */
#define SMI_SHM_BLOCKED		1	/* a consecutive share on each node */
#define SMI_SHM_CYCLIC		2	/* not implemented */
#define SMI_SHM_CUSTOMIZED	3	/* consecutive segments of given owners */
#define SMI_SHM_SMP		4	/* one segment per node, for its processes */
#define SMI_SHM_PT2PT		5	/* one segment, for owner and partner alone */
#define SMI_SHM_FRAGMENTED	6	/* one segment per process, at separate addresses */
#define SMI_SHM_LOCAL		7	/* exported by one process */
#define SMI_SHM_REMOTE		8	/* import of a LOCAL segment */
#define SMI_SHM_RDMA		9	/* import that is not mapped: put and get */

/* flags of regions, ORed to a type */
#define SMI_SHM_DELAYED		(1 << 10) /* SMI_Connect_shreg() maps it in non-owners */
#define SMI_SHM_NONFIXED	(1 << 11) /* addresses may differ */
#define SMI_SHM_REGISTER	(1 << 12) /* export the memory at *address */
#define SMI_SHM_PRIVATE		(1 << 13) /* cannot be imported */
#define SMI_SHM_INTERN		(1 << 14) /* no adapter */
#define SMI_SHM_SHRINKABLE	(1 << 15) /* may be smaller if memory is short */
#define SMI_SHM_CALLBACK	(1 << 16) /* cb_fcn runs when peers connect or disconnect */

#define SMI_ADPT_DEFAULT	0xf0
#define SMI_ADPT_CYCLIC		0xf1
#define SMI_ADPT_IMPEXP		0xf2
#define SMI_ADPT_SMP		0xf3
#define SMI_ADPT_BIDIRECTIONAL	0xf4
#define SMI_ADPT_INVALID	(-1)

#define SMI_CB_REASON_CONNECT		1
#define SMI_CB_REASON_DISCONNECT	2
#define SMI_CB_ACTION_NOTHING		1
#define SMI_CB_ACTION_FREEREG		2	/* free the region, no more calls */
#define SMI_CB_ACTION_TERMINATE		4	/* no more calls */

typedef int (*smi_region_callback_t)(int region_id, int cb_reason);

typedef struct smi_sgmt_locator_t_ {
	int sci_id;
	int segment_id;
} smi_sgmt_locator_t;

/* A region to be created. The library reads the members that the region's type needs. */
typedef struct smi_region_info_t_ {
	size_t size;
	int owner;
	size_t offset;
	int sgmt_id;
	int partner;
	int nbr_sgmts;
	int *sgmt_owner;
	size_t *sgmt_size;
	int adapter;
	int rmt_adapter;
	int shrinkable;
	smi_region_callback_t cb_fcn;
} smi_region_info_t;

/* The addresses of a region and of its segments. Arrays have one entry per segment. */
typedef struct smi_rlayout_t_ {
	size_t nsegments;
	size_t size;
	char *adr;
	size_t *seg_size;
	char **seg_adr;
	int *seg_machine;		/* node ranks */
} smi_rlayout_t;

/**
 * SMI_Init_reginfo() - clear @info and set its members to the other arguments.
 * Return: SMI_ERR_PARAM: @owner is no process.
 */
smi_error_t SMI_Init_reginfo(smi_region_info_t *info, size_t size,
			     size_t offset, int owner, int loc_adpt,
			     int rmt_adpt, int sgmt_id,
			     smi_region_callback_t cb_fcn);

/**
 * SMI_Create_shreg() - create a region
 * @type: a type and flags
 * @info: the region's properties. The call rounds @info->size up to whole pages.
 * @id: receives the region's id
 * @address: receives the region's address; FRAGMENTED: an array with one entry per process;
 *	REGISTER: the memory to export
 *
 * The call is collective, except for LOCAL, REMOTE and RDMA (this process alone) and PT2PT
 * (owner and partner). A collective creation fails in all processes alike.
 * Return: SMI_ERR_NOSEGMENT, SMI_ERR_NOMEM: there is not enough memory, or no such segment;
 * SMI_ERR_MAPFAILED: no address is free in all processes, or the address space is full;
 * SMI_ERR_NOTIMPL: type CYCLIC, or a flag that this type does not have; SMI_ERR_BADADR:
 * REGISTER of NULL, or of a part of a page on a fabric that copies; SMI_ERR_NODEVICE: @info
 * names an adapter 0, 1 or 2 that does not exist, or PRIVATE when all processes share a node.
 */
smi_error_t SMI_Create_shreg(int type, smi_region_info_t *info, int *id,
			     void **address);

/**
 * SMI_Connect_shreg() - map a region that was created with DELAYED.
 * Return: as SMI_Create_shreg(); SMI_ERR_PARAM: the region has several segments.
 */
smi_error_t SMI_Connect_shreg(int id, void **address);

/**
 * SMI_Free_shreg() - free a region; collective if its creation was collective
 * Return: SMI_ERR_NOSEGMENT: the region is internal; SMI_ERR_BUSY: a peer still imports this
 * LOCAL segment. The library removes the segment when the peer frees its import.
 */
smi_error_t SMI_Free_shreg(int id);

/**
 * SMI_Set_adapter() - set the adapter of later regions
 * @adapter: 0, 1 or 2: the adapter's number; SMI_ADPT_DEFAULT, _IMPEXP, _SMP: the adapter
 *	that SMI_USE_ADAPTER in the environment names
 * Return: SMI_ERR_BUSY: a region exists; SMI_ERR_NODEVICE: there is no such adapter;
 * SMI_ERR_NOTIMPL: _CYCLIC or _BIDIRECTIONAL.
 */
smi_error_t SMI_Set_adapter(int adapter);
/**
 * SMI_Set_region_callback() - replace the function of a CALLBACK region.
 * Return: SMI_ERR_PARAM: the region has no flag CALLBACK.
 */
smi_error_t SMI_Set_region_callback(int id, smi_region_callback_t cb_fcn);

/** SMI_Adr_to_region() - get the region of an address. Return: SMI_ERR_PARAM: no region. */
smi_error_t SMI_Adr_to_region(void *adr, int *id);
/** SMI_Range_to_region() - get the region of a range. Return: SMI_ERR_PARAM: no region. */
smi_error_t SMI_Range_to_region(void *adr, size_t len, int *id);

/**
 * SMI_Region_layout() - describe a region; the caller frees the struct and its arrays.
 * Return: SMI_ERR_NOMEM.
 */
smi_error_t SMI_Region_layout(int id, smi_rlayout_t **layout);
/**
 * SMI_Get_region_locator() - get node and number of a region's first segment.
 * Return: a general code.
 */
smi_error_t SMI_Get_region_locator(int id, smi_sgmt_locator_t *locator);

/* ---- allocators ---- */

/**
 * SMI_Init_shregMMU() - set up a region's allocator; collective if its creation was collective
 * Return: SMI_ERR_NOSEGMENT: a process has not mapped the region from its beginning on;
 * SMI_ERR_NOMEM: the region is too small, or no lock is free for it.
 */
smi_error_t SMI_Init_shregMMU(int region_id);

/**
 * SMI_Imalloc() - allocate a block from a region with an allocator
 *
 * Blocks have powers of two bytes, at least 128. Return: SMI_ERR_NOMEM: no block is free.
 */
smi_error_t SMI_Imalloc(size_t size, int region_id, void **adr);
/**
 * SMI_Cmalloc() - allocate one block for all processes; collective.
 * Return: as SMI_Imalloc(); SMI_ERR_OTHER: the region is not collective, or it is an SMP region
 * of several nodes, where each node has an allocator.
 */
smi_error_t SMI_Cmalloc(size_t size, int region_id, void **adr);
/**
 * SMI_Ifree() - free a block of SMI_Imalloc() or SMI_Cmalloc().
 * Return: SMI_ERR_PARAM: no block begins at @adr.
 */
smi_error_t SMI_Ifree(void *adr);
/**
 * SMI_Cfree() - free one block for all processes; collective.
 * Return: as SMI_Ifree(); SMI_ERR_OTHER: as SMI_Cmalloc().
 */
smi_error_t SMI_Cfree(void *adr);

/** SMI_Nodemem_alloc() - allocate memory of this node. Return: its address, or NULL. */
void *SMI_Nodemem_alloc(size_t size);
/** SMI_Nodemem_free() - free memory of SMI_Nodemem_alloc(). Return: as SMI_Ifree(). */
smi_error_t SMI_Nodemem_free(void *adr);
/** SMI_Nodemem_address() - get the memory of @node. Return: its local address, or NULL. */
void *SMI_Nodemem_address(int node);

/* ---- copies and transfer checks ---- */

#define SMI_MEMCPY_NOBARRIER	1	/* no store barrier */
#define SMI_MEMCPY_NOVERIFY	2	/* no check */
#define SMI_MEMCPY_FAST		3
#define SMI_MEMCPY_ENQUEUE	4	/* SMI_Imemcpy(): start later */
#define SMI_MEMCPY_FORCE_DMA	8
#define SMI_MEMCPY_ALIGN	16	/* the copy may write up to a stream buffer's end */
#define SMI_MEMCPY_FLAGS_ALL	0x1f9f
#define SMI_MEMCPY_MTFLAGS_ALL	0x1f80

/* Kinds of copies, source_destination: LP is local private, LS local shared, RS remote shared. */
#define SMI_MEMCPY_LP_LP	128
#define SMI_MEMCPY_LS_LP	128
#define SMI_MEMCPY_LS_LS	128
#define SMI_MEMCPY_LP_LS	256
#define SMI_MEMCPY_LP_RS	512
#define SMI_MEMCPY_RS_RS	512
#define SMI_MEMCPY_RS_LP	1024
#define SMI_MEMCPY_LS_RS	2048
#define SMI_MEMCPY_RS_LS	4096

typedef struct smi_memcpy_handle_t_ smi_memcpy_handle_t;
typedef smi_memcpy_handle_t *smi_memcpy_handle;

/**
 * SMI_Memcpy() - copy memory
 *
 * A copy to or from remote memory ends with a barrier and a check. The library repeats the
 * copy if packets got lost.
 * Return: SMI_ERR_BADADR: an address is NULL; SMI_ERR_TRANSFER: the repetitions failed, too.
 */
smi_error_t SMI_Memcpy(void *dst, void *src, size_t size, int flags);

/**
 * SMI_Imemcpy() - start a copy
 * @handle: if *@handle is NULL, it is set to a new handle. Else the copy joins the copies
 *	that the handle has queued, and starts them unless ENQUEUE is given.
 *
 * SMI_Memwait(), or a SMI_Memtest() that does not return SMI_ERR_PENDING, frees the handle and sets
 * the variable at @handle to NULL. The variable must exist until then. A copy between shared memory
 * of this node and of another node runs in the background if it has 4 KiB or more, or FORCE_DMA.
 * Return: SMI_ERR_NOMEM; or a code of SMI_Memcpy().
 */
smi_error_t SMI_Imemcpy(void *dst, void *src, size_t size, int flags,
			smi_memcpy_handle *handle);
/**
 * SMI_Mempost() - start the copies that a handle has queued.
 * Return: SMI_ERR_PARAM: the copies have been started.
 */
smi_error_t SMI_Mempost(smi_memcpy_handle handle);
/**
 * SMI_Memwait(), SMI_Memtest() - wait for the copies of a handle, or test them
 *
 * The library repeats a copy if packets got lost.
 * Return: SMI_ERR_NOTPOSTED: the copies are queued but not started; SMI_ERR_TRANSFER: the
 * repetitions failed, too; SMI_ERR_PENDING, of SMI_Memtest(): a copy is not complete.
 */
smi_error_t SMI_Memwait(smi_memcpy_handle handle);
smi_error_t SMI_Memtest(smi_memcpy_handle handle);
/**
 * SMI_MemwaitAll(), SMI_MemtestAll() - call SMI_Memwait() or SMI_Memtest() for @count handles
 * @status: receives the code of each handle
 * Return: SMI_ERR_PENDING: a copy is not complete; SMI_ERR_OTHER: a copy has failed.
 */
smi_error_t SMI_MemwaitAll(int count, smi_memcpy_handle *handles,
			   smi_error_t *status);
smi_error_t SMI_MemtestAll(int count, smi_memcpy_handle *handles,
			   smi_error_t *status);

/**
 * SMI_Put(), SMI_Get() - copy from a LOCAL region of this process to an imported region, or back
 * @region: a REMOTE or RDMA region
 * Return: SMI_ERR_BADALIGN: an address or the size violates the DMA alignment, and the
 * region is not mapped; SMI_ERR_TRANSFER: data was lost.
 */
smi_error_t SMI_Put(int region, int offset, void *src, size_t size);
smi_error_t SMI_Get(void *dst, int region, int offset, size_t size);
/**
 * SMI_Iput(), SMI_Iget() - start SMI_Put() or SMI_Get(); @handle as for SMI_Imemcpy().
 * Return: as SMI_Put(); SMI_ERR_NOMEM.
 */
smi_error_t SMI_Iput(int region, int offset, void *src, size_t size,
		     smi_memcpy_handle *handle);
smi_error_t SMI_Iget(void *dst, int region, int offset, size_t size,
		     smi_memcpy_handle *handle);

#define SMI_CHECK_FULL		0
#define SMI_CHECK_NOFLUSH	1
#define SMI_CHECK_NOBARRIER	2
#define SMI_CHECK_FAST		3
#define SMI_CHECK_PROBE		4	/* do not wait for a broken link */

/**
 * SMI_Check_transfer() - check that all stores since the last check have arrived.
 * Return: SMI_ERR_TRANSFER: stores of this process got lost.
 */
smi_error_t SMI_Check_transfer(int flags);
/**
 * SMI_Check_transfer_addr() - check stores to the node that has the memory at @adr.
 * Return: as SMI_Check_transfer().
 */
smi_error_t SMI_Check_transfer_addr(void *adr, int flags);
/**
 * SMI_Check_transfer_proc() - check stores to the node of process @proc.
 * Return: as SMI_Check_transfer().
 */
smi_error_t SMI_Check_transfer_proc(int proc, int flags);

#define SMI_FLUSH_ALL		(-1)
/** SMI_Flush_read() - issue a load barrier towards a process's node. Return: a general code. */
smi_error_t SMI_Flush_read(int proc);
/** SMI_Flush_write() - issue a store barrier towards a process's node. Return: a general code. */
smi_error_t SMI_Flush_write(int proc);

/* ---- barriers, mutexes, progress counters ---- */

#define PROGRESS_COUNTER_BARRIER	0
#define SCHULZ_BARRIER			1
#define L_MUTEX				0
#define BL_MUTEX			1
#define SCH_MUTEX			2
#define NOCONSISTENCY			(1 << 30) /* ORed to an id: no barrier */
#define SMI_OWNPC			(-1)

#define SMI_Barrier()		SMI_BARRIER(0)
#define SMI_Mutex_init(id)	SMI_MUTEX_INIT((id), BL_MUTEX, -1)
#define SMI_Mutex_init_with_locality(id, rank) \
	SMI_MUTEX_INIT((id), BL_MUTEX, (rank))

/** SMI_BARRIER() - wait for all processes and their earlier stores. Return: a general code. */
smi_error_t SMI_BARRIER(int id);
/**
 * SMI_BARRIER_INIT() - create another barrier; collective. @algorithm has no effect.
 * Return: SMI_ERR_NOMEM: the program has too many barriers.
 */
smi_error_t SMI_BARRIER_INIT(int *id, int algorithm, int active);
/**
 * SMI_BARRIER_DESTROY() - destroy a barrier of SMI_BARRIER_INIT(); collective.
 * Return: a general code.
 */
smi_error_t SMI_BARRIER_DESTROY(int id);

/**
 * SMI_MUTEX_INIT() - create a mutex between processes; collective
 * @algorithm: L_MUTEX, BL_MUTEX or SCH_MUTEX; all have the same effect
 * @proc: a process on the node that holds the mutex's data; -1: any node
 * Return: SMI_ERR_NOMEM: the program has too many mutexes.
 */
smi_error_t SMI_MUTEX_INIT(int *id, int algorithm, int proc);
/** SMI_Mutex_destroy() - destroy a mutex; collective. Return: a general code. */
smi_error_t SMI_Mutex_destroy(int id);
/**
 * SMI_Mutex_lock() - lock a mutex
 *
 * The mutex is recursive only in a program of one process.
 * Return: SMI_ERR_OTHER: the process that held the mutex has died; the call has not locked it.
 */
smi_error_t SMI_Mutex_lock(int id);
/**
 * SMI_Mutex_trylock() - try to lock a mutex; *@got: 1 if this call has locked it, else 0.
 * Return: as SMI_Mutex_lock().
 */
smi_error_t SMI_Mutex_trylock(int id, int *got);
/** SMI_Mutex_unlock() - unlock a mutex. Return: SMI_ERR_PARAM: this process has not locked it. */
smi_error_t SMI_Mutex_unlock(int id);
/** SMI_Location_of_mutex() - get the @proc of SMI_MUTEX_INIT(). Return: a general code. */
smi_error_t SMI_Location_of_mutex(int id, int *proc);

/**
 * SMI_Init_PC() - create a progress counter; collective
 *
 * A counter is one integer per process, 0 at first. Return: SMI_ERR_NOMEM: too many counters.
 */
smi_error_t SMI_Init_PC(int *id);
/** SMI_Reset_PC() - set a counter of all processes to 0; collective. Return: a general code. */
smi_error_t SMI_Reset_PC(int id);
/**
 * SMI_Increment_PC() - issue a store barrier, then add @val to this process's counter.
 * Return: SMI_ERR_PARAM: @val is negative, or the counter would overflow.
 */
smi_error_t SMI_Increment_PC(int id, int val);
/** SMI_Get_PC() - get the counter of @proc, as this process sees it. Return: a general code. */
smi_error_t SMI_Get_PC(int id, int proc, int *val);
/**
 * SMI_Wait_individual_PC() - wait until the counter of @proc reaches @val
 * @val: a value; SMI_OWNPC: the value of this process's counter
 * Return: SMI_ERR_PARAM: @proc is this process.
 */
smi_error_t SMI_Wait_individual_PC(int id, int proc, int val);
/** SMI_Wait_individual_set_PC() - wait until all @ranks reach @val. Return: a general code. */
smi_error_t SMI_Wait_individual_set_PC(int id, int *ranks, int count, int val);
/**
 * SMI_Wait_collective_PC() - wait until the counters of all processes reach @val
 * @val: a value; SMI_OWNPC: the value of this process's counter
 * Return: SMI_ERR_PARAM: the counter of this process is below @val.
 */
smi_error_t SMI_Wait_collective_PC(int id, int val);

/* ---- signals and small messages ---- */

#define SMI_SIGNAL_ANY		0x40000000
#define SMI_SIGNAL_BCAST	0x3fffffff

typedef struct smi_signal_handle_t_ {
	pthread_t ptThread;
	int iProcRank;
	void (*callback_fcn)(void *);
	void *callback_arg;
} smi_signal_handle_t;
typedef smi_signal_handle_t *smi_signal_handle;

/**
 * SMI_Signal_send() - send a signal
 * @rank: a process, or SMI_SIGNAL_BCAST for all other processes. With SMI_SIGNAL_ANY ORed to
 *	@rank, the signal ends only waits for any sender.
 *
 * The receiver keeps a signal until it calls SMI_Signal_wait().
 * Return: SMI_ERR_NOTIMPL: the program was started without signals.
 */
smi_error_t SMI_Signal_send(int rank);
/**
 * SMI_Signal_wait() - sleep until a signal arrives. @rank: its sender; SMI_SIGNAL_ANY: any sender.
 * Return: SMI_ERR_PENDING: another thread or a callback waits for the same signal; SMI_ERR_OTHER:
 * @rank has died; with SMI_SIGNAL_ANY: any process has died.
 */
smi_error_t SMI_Signal_wait(int rank);
/**
 * SMI_Signal_setCallBack() - start a thread that calls @fcn(@arg) when a signal of @rank arrives.
 * Return: as SMI_Signal_wait(); SMI_ERR_NOTIMPL; SMI_ERR_NOMEM.
 */
smi_error_t SMI_Signal_setCallBack(int rank, void (*fcn)(void *), void *arg,
				   smi_signal_handle *handle);
/** SMI_Signal_joinCallBack() - join a callback's thread, clear *@handle. Return: a general code. */
smi_error_t SMI_Signal_joinCallBack(smi_signal_handle *handle);

/** SMI_Send() - send up to 120 bytes; wait until @dest has received. Return: as SMI_Isend(). */
smi_error_t SMI_Send(void *buf, int count, int dest);
/**
 * SMI_Isend() - begin to send a message. The program may reuse @buf when the call returns.
 * Return: SMI_ERR_PENDING: the program has not waited for an earlier message to @dest.
 */
smi_error_t SMI_Isend(void *buf, int count, int dest);
/**
 * SMI_Send_wait() - wait until @dest has received the message of SMI_Isend().
 * Return: SMI_ERR_NOTPOSTED: there is no such message.
 */
smi_error_t SMI_Send_wait(int dest);
/** SMI_Recv() - receive a message. Return: SMI_ERR_PARAM: its length is not @count. */
smi_error_t SMI_Recv(void *buf, int count, int src);
/**
 * SMI_Sendrecv() - call SMI_Isend(), SMI_Recv() and SMI_Send_wait().
 * Return: as SMI_Isend() and SMI_Recv().
 */
smi_error_t SMI_Sendrecv(void *sendbuf, void *recvbuf, int count, int peer);

/* ---- replication and sharing; collective ---- */

#define SMI_SHR_SINGLE_SOURCE	1
#define SMI_SHR_LOOP_SPLITTING	2
#define SMI_SHR_ADD		4
#define SMI_SHR_NOTHING		8
#define SMI_SHR_EVERY_LOCAL	64
#define SMI_SHR_SPARSE		256
#define SMI_SHR_BAND		512
#define SMI_REP_NOTHING		8
#define SMI_REP_EVERYTHING	16
#define SMI_REP_LOCAL_AND_BEYOND 32
#define SMI_REP_ONE_PER_NODE	1024
#define SMI_DTYPE_FIXPOINT	2048
#define SMI_DTYPE_FLOATINGPOINT	4096
#define SMI_DTYPE_HIGHPRECISION	8192

/**
 * SMI_Switch_to_replication() - make a region private memory of each process
 * @mode: REP_EVERYTHING: copy all bytes; REP_NOTHING: the contents are undefined;
 *	REP_LOCAL_AND_BEYOND: copy this process's range of split loop @p2, whose elements have
 *	@p1 bytes, and @p3 elements on both sides. With REP_ONE_PER_NODE each node has one copy.
 * Return: SMI_ERR_NOSEGMENT: a process has not mapped the region from its beginning on;
 * SMI_ERR_NOMEM.
 */
smi_error_t SMI_Switch_to_replication(int id, int mode, int p1, int p2, int p3);
/**
 * SMI_Switch_to_sharing() - combine the copies and share the region again
 * @mode: SHR_NOTHING: keep the old shared data; SHR_SINGLE_SOURCE: take the copy of
 *	process @p1; SHR_LOOP_SPLITTING: take each process's range of split loop @p2, whose
 *	elements have @p1 bytes; SHR_EVERY_LOCAL: take from each node the bytes in its memory;
 *	SHR_ADD with an SMI_DTYPE_: store the sums of @p1 elements
 * Return: SMI_ERR_MAPFAILED: the address space has no room for the shared memory.
 */
smi_error_t SMI_Switch_to_sharing(int id, int mode, int p1, int p2);
/**
 * SMI_Ensure_consistency() - combine the copies; each process gets the result as its copy.
 * Return: as SMI_Switch_to_sharing().
 */
smi_error_t SMI_Ensure_consistency(int id, int mode, int p1, int p2);

/* ---- loops ---- */

#define SMI_SPLIT_REGULAR	0
#define SMI_SPLIT_OWNER		1
#define SMI_LOOP_SET_GLOBAL	0
#define SMI_LOOP_GET_GLOBAL	1
#define SMI_LOOP_SET_LOCAL	2
#define SMI_LOOP_GET_LOCAL	3

#define SMI_PART_BLOCKED	1
#define SMI_PART_CYCLIC		2
#define SMI_PART_ADAPTED_BLOCKED 3
#define SMI_PART_TIMED_BLOCKED	4
#define SMI_LOOP_READY		0
#define SMI_LOOP_LOCAL		1
#define SMI_LOOP_REMOTE		2
#define SMI_NO_ADAPT		1
#define SMI_ADAPT_EXPO		2
#define SMI_ADAPT_LINEAR	3
#define SMI_ADAPT_OPT		4
#define SMI_HELP_ONLY_SMP	(-1)
#define SMI_NO_CHANGE		0

/**
 * SMI_Loop_init() - schedule the iterations from @low to @high; collective.
 * Return: SMI_ERR_NOMEM: the program has too many loops.
 */
smi_error_t SMI_Loop_init(int *id, int low, int high, int mode);
/** SMI_Loop_free() - end a loop; collective. Return: a general code. */
smi_error_t SMI_Loop_free(int id);

/**
 * SMI_Get_iterations() - get the next chunk of iterations
 * @status: LOCAL: a chunk of this process's share; REMOTE: a chunk of another share; READY: no
 *	chunk is left (*@low > *@high), or in mode TIMED_BLOCKED the only chunk
 *
 * The call after READY begins a new run of the loop. The first call of a run is collective.
 * Return: a general code.
 */
smi_error_t SMI_Get_iterations(int id, int *status, int *low, int *high);
/**
 * SMI_Set_loop_param() - set the size of chunks
 * @k: a chunk has 1/@k of the iterations that are left; below 1: no change
 * @min_local, @min_remote, @max_local, @max_remote: limits for chunks of this process's share and
 *	of other shares; 0: no change
 * Return: a general code.
 */
smi_error_t SMI_Set_loop_param(int id, double k, int min_local, int min_remote,
			       int max_local, int max_remote);
/**
 * SMI_Set_loop_help_param() - set how many neighbours a process helps
 * @max_dist: the number of neighbours (default 16); SMI_HELP_ONLY_SMP: neighbours on this node
 * Return: a general code.
 */
smi_error_t SMI_Set_loop_help_param(int id, int max_dist);
/** SMI_Loop_k_adaption_mode() - set how each run changes chunk sizes. Return: a general code. */
smi_error_t SMI_Loop_k_adaption_mode(int id, int mode, int max_dist);
/**
 * SMI_Evaluate_speed() - measure the relative speeds of all processes; collective.
 * Return: SMI_ERR_NOMEM.
 */
smi_error_t SMI_Evaluate_speed(double *n_values);
/**
 * SMI_Use_evaluated_speed() - distribute a loop by the measured speeds; collective.
 * Return: SMI_ERR_PARAM: SMI_Evaluate_speed() has not run.
 */
smi_error_t SMI_Use_evaluated_speed(int id);

/**
 * SMI_Loop_split_init() - create a range of indices of which each process has a part.
 * Return: SMI_ERR_NOMEM: the program has too many ranges.
 */
smi_error_t SMI_Loop_split_init(int *id);
/**
 * SMI_Loop_index_range() - set or get the whole range, or this process's part, as @mode says.
 * Return: a general code.
 */
smi_error_t SMI_Loop_index_range(int id, int *lower, int *upper, int mode);
/**
 * SMI_Determine_loop_splitting() - set this process's part of a range
 * @mode: REGULAR: parts are equal, and the last process also gets the remainder; OWNER: each node
 *	gets the indices of the elements of region @p2 in its memory, divided among its processes;
 *	an element has @p1 bytes
 * Return: a general code.
 */
smi_error_t SMI_Determine_loop_splitting(int id, int mode, int p1, int p2);
/** SMI_Loop_time_start() - start the timer of this process's part. Return: a general code. */
smi_error_t SMI_Loop_time_start(int id);
/**
 * SMI_Loop_time_stop() - stop the timer; SMI_Loop_balance_index_range() uses the time.
 * Return: SMI_ERR_PARAM: the timer does not run.
 */
smi_error_t SMI_Loop_time_stop(int id);
/**
 * SMI_Loop_balance_index_range() - resize the parts by the measured times; collective.
 * Return: a general code.
 */
smi_error_t SMI_Loop_balance_index_range(int id);

/* ---- time, output, watchdog ---- */

/** SMI_Wtime() - get the time. Return: seconds. */
double SMI_Wtime(void);
/** SMI_Wticks() - get the time. Return: nanoseconds. */
long SMI_Wticks(void);
/** SMI_Get_ticks() - store the time in nanoseconds as 8 bytes */
void SMI_Get_ticks(void *u64);
/** SMI_Get_timer() - get the time of day in seconds and microseconds. Return: a general code. */
smi_error_t SMI_Get_timer(int *s, int *us);
/**
 * SMI_Get_timespan() - get the time since the last SMI_Get_timespan() or SMI_Get_timer().
 * Return: a general code.
 */
smi_error_t SMI_Get_timespan(int *s, int *us);

#define SMI_IO_ASIS	0
#define SMI_IO_FILE	1
/**
 * SMI_Redirect_IO() - write stderr and stdout to files NAME.RANK, read stdin from file NAME
 * @err, @out, @in: SMI_IO_FILE: redirect the stream; SMI_IO_ASIS: do not redirect it
 *
 * A second call does nothing.
 * Return: a general code.
 */
smi_error_t SMI_Redirect_IO(int err, void *errname, int out, void *outname,
			    int in, void *inname);
/** SMI_Debug() - do nothing: the library has no trace output. Return: a general code. */
smi_error_t SMI_Debug(int on);
/** SMI_Debug_time() - do nothing: the library has no trace output. Return: a general code. */
smi_error_t SMI_Debug_time(int on);

#define SMI_WATCHDOG_DISABLE	0
#define SMI_WATCHDOG_OFF	(-1)
/**
 * SMI_Watchdog() - set how long a process may be silent before it counts as dead
 * @seconds: the time (default 10); SMI_WATCHDOG_DISABLE: for ever; SMI_WATCHDOG_OFF: end the
 *	watchdog's thread, in a collective call
 * Return: a general code.
 */
smi_error_t SMI_Watchdog(int seconds);
/**
 * SMI_Watchdog_callback() - set a function that processes run when they end abnormally.
 * Return: a general code.
 */
smi_error_t SMI_Watchdog_callback(void (*fcn)(void));

/* ---- queries ---- */

typedef enum {
	SMI_Q_SCI_STREAMBUFSIZE		= 101,
	SMI_Q_SCI_NBRSTREAMBUFS		= 102,
	SMI_Q_SCI_NBRADAPTERS		= 103,
	SMI_Q_SCI_ADAPTERTYPE		= 104,
	SMI_Q_SCI_DEFADAPTER		= 105,
	SMI_Q_SCI_VALIDADAPTER		= 106,
	SMI_Q_SCI_ID			= 107,
	SMI_Q_SCI_PROC_ID		= 108,
	SMI_Q_SCI_CONNECTION_STATE	= 109,
	SMI_Q_SCI_ERRORS		= 110,
	SMI_Q_SCI_API_VERSION		= 111,
	SMI_Q_SCI_PACKETSIZE		= 112,
	SMI_Q_SCI_DMA_SIZE_ALIGN	= 113,
	SMI_Q_SCI_DMA_OFFSET_ALIGN	= 114,
	SMI_Q_SCI_DMA_MINSIZE		= 115,
	SMI_Q_SCI_DMA_MAXSIZE		= 116,
	SMI_Q_SCI_NBR_PHYS_DIMS		= 117,
	SMI_Q_SCI_PHYS_DIM_EXTENT	= 118,
	SMI_Q_SCI_SCI_TOPOLOGY_TYPE	= 119,
	SMI_Q_SCI_SCIIDS_VALID		= 120,
	SMI_Q_SCI_SYSTEM_TYPE		= 121,

	SMI_Q_SMI_INITIALIZED		= 201,
	SMI_Q_SMI_REGION_CONNECTED	= 202,
	SMI_Q_SMI_REGION_SGMT_ID	= 203,
	SMI_Q_SMI_SIGNALS_AVAILABLE	= 204,
	SMI_Q_SMI_DMA_AVAILABLE		= 205,
	SMI_Q_SMI_REGION_ADPTNBR	= 206,
	SMI_Q_SMI_REGION_ADDRESS	= 207,	/* void * */
	SMI_Q_SMI_REGION_SIZE		= 208,	/* size_t */
	SMI_Q_SMI_REGION_OWNER		= 209,
	SMI_Q_SMI_REGION_OFFSET		= 210,	/* size_t */
	SMI_Q_SMI_NBR_APP_DIMS		= 211,
	SMI_Q_SMI_APP_DIM_EXTENT	= 212,
	SMI_Q_SMI_APP_DIM_OFFSET	= 213,

	SMI_Q_SYS_NBRCPUS		= 301,
	SMI_Q_SYS_CPUFREQ		= 302,
	SMI_Q_SYS_PAGESIZE		= 303,
	SMI_Q_SYS_WRITECOMBINING	= 304,
	SMI_Q_SYS_PID			= 305,
	SMI_Q_SYS_TICK_DURATION		= 306,	/* picoseconds */
	SMI_Q_SYS_CPU_CACHELINELEN	= 307
} smi_query_t;

#define SMI_SCI_TOPOLOGY_UNKNOWN	0
#define SMI_SCI_TOPOLOGY_SWITCH		1
#define SMI_SCI_TOPOLOGY_TORUS		2
#define SMI_SCI_TOPOLOGY_SMP		3
#define SMI_SCI_NONE			0
#define SMI_SCI_DOLPHIN			1
#define SMI_SCI_SCALI			2
#define SMI_SCI_UNKNOWN			256
#define SMI_WC_ENABLED			1
#define SMI_WC_DISABLED			0
#define SMI_WC_UNKNOWN			(-1)

/**
 * SMI_Query() - get a property of the library, a region, an adapter or the system
 * @arg: a region's id, a process or an adapter, as the query needs
 * @result: receives an int, or the type in the comment at @query's declaration
 * Return: SMI_ERR_PARAM: there is no such query or @arg; SMI_ERR_OTHER: the property is unknown.
 */
smi_error_t SMI_Query(smi_query_t query, int arg, void *result);

/** print_region() - print this process's regions on standard output */
void print_region(void);

#ifdef __cplusplus
}
#endif

#endif
