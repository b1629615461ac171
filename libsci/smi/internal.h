/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: how SMI is built
 *
 * A team (sci/team.h) implements start-up, ranks, barriers and locks.  Regions consist of
 * SISCI segments.  A process maps a segment of its own node as local memory and a
 * segment of another node as remote memory.
 *
 *	team.c		the team, and exchanges among its processes
 *	channel.c	control messages between processes, handled by a thread
 *	segment.c	a segment: create, open, map, check transfers, flush the cache
 *	address.c	an address range that is free in several processes
 *	region.c	regions, their table, and code for all types
 *	create.c	regions that several processes create together
 *	import.c	regions of one process: LOCAL, REMOTE, RDMA
 *
 * Locks: smi.lock covers the table of regions, the handles and the state that
 * control messages change; smi.change is signalled when such state changes. No thread holds
 * smi.lock across a call that waits for another process, or in a callback.
 */
#ifndef LIBSCI_SMI_INTERNAL_H
#define LIBSCI_SMI_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "smi.h"
#include "sci/team.h"
#include "sisci_api.h"
#include "libsci/base/barrier.h"
#include "libsci/base/host.h"
#include "libsci/base/list.h"

#define SMI_API		__attribute__((visibility("default")))

#define SMI_PROCS_MAX	1024		/* processes of a program */
#define SMI_MESSAGE_MAX	120		/* longest message of SMI_Send(), in bytes */

/* ---- the program ---- */

struct smi {
	_Atomic bool up;
	_Atomic bool ending;		/* in SMI_Finalize(): peers may leave */
	_Atomic int dead;		/* 1 + rank of a process that died, or 0 */
	int rank, size;
	int node, nodes;
	int *first;			/* lowest process of each node; [nodes]: size */
	unsigned int *sci_node;		/* SCI node id of each node */
	size_t page;
	unsigned int adapter;		/* adapter of regions that name no other */
	unsigned int first_adapter;	/* initial value: SMI_USE_ADAPTER, or 0 */
	struct sci_team *team;
	struct sci_team *all;		/* @team's processes in the launcher's order */
	sci_desc_t sd;
	sci_sequence_t seq;		/* of a remote map; NULL: no remote map, or coherent */
	bool stale;			/* the caches of nodes are not coherent */
	pthread_mutex_t lock;
	pthread_cond_t change;
	struct smi_region **regions;
	int nregions;
	struct smi_proc *procs;		/* [size]: waits of SMI_SIGNAL_ANY */
	void *board;			/* of smi_exchange(): SMI_BOARD bytes per process */
	_Atomic int errors;		/* failed transfer checks since the start */
};

extern struct smi smi;

static inline int smi_check_up(void)
{
	return atomic_load_explicit(&smi.up, memory_order_acquire) ?
	       SMI_SUCCESS : SMI_ERR_NOINIT;
}

static inline bool smi_rank_ok(int rank)
{
	return rank >= 0 && rank < smi.size;
}

static inline int smi_node_of(int proc)
{
	return sci_team_node(smi.team, proc);
}

/*
 * SMI_REFUSE() - check a call's arguments
 * @bad: true if the arguments are invalid; evaluated only while SMI is up
 *
 * Return from the calling function with SMI_ERR_NOINIT or SMI_ERR_PARAM.
 */
#define SMI_REFUSE(bad)							\
	do {								\
		if (smi_check_up())					\
			return SMI_ERR_NOINIT;				\
		if (bad)						\
			return SMI_ERR_PARAM;				\
	} while (0)

#define SMI_ENTER()	SMI_REFUSE(false)

/* ---- team.c ---- */

int smi_team_start(void);
void smi_team_end(void);
/* Convert the return value of a team call to an SMI code. */
int smi_error_of_team(int ret);

/*
 * Exchange up to SMI_BOARD bytes of each process. Collective. smi.board receives them by rank,
 * and the next exchange overwrites it. The exchange needs no memory, so it cannot fail in one
 * process alone.
 */
#define SMI_BOARD	16u

int smi_exchange(const void *mine, size_t len);

/*
 * Agree on an error.  Collective over @team: all members return the highest of their
 * codes, SMI_SUCCESS if all succeeded.
 */
int smi_agree(struct sci_team *team, int err);

/* ---- channel.c ---- */

enum smi_msg_type {
	SMI_MSG_SIGNAL,			/* a: SMI_SIGNAL_ANY or 0 */
	SMI_MSG_DATA,			/* SMI_Send() */
	SMI_MSG_TAKEN,			/* a message of SMI_Send() was received */
	SMI_MSG_IMPORTED,		/* a: error; b: request; c, d: size, skip */
	SMI_MSG_GONE,			/* a: segment */
	SMI_MSG_LOCKED = SMI_MSG_GONE,	/* up to here: handled under smi.lock, signal smi.change */
	SMI_MSG_IMPORT,			/* a: segment; b: the importer's request */
	SMI_MSG_RELEASE,		/* a: segment; b: the importer's request */
	SMI_MSG_ABORT,			/* a: exit code */
	SMI_MSG_BEAT,
	SMI_MSG_TYPES
};

struct smi_msg {
	uint32_t type;
	int32_t from;
	int32_t a, b;
	uint64_t c, d;
	uint32_t len;
	uint32_t pad;
	unsigned char data[SMI_MESSAGE_MAX];
};

/* The state that this process keeps for one process of the program. */
struct smi_proc {
	int pid;
	uint64_t next_test;		/* time of smi_wait_change()'s next test for its death */
	/* signal.c: signals that have arrived, and the threads that wait for them */
	unsigned int for_any;		/* sent with SMI_SIGNAL_ANY */
	unsigned int direct;
	bool awaited;
	/* message.c: */
	bool full;			/* @message awaits SMI_Recv() */
	bool sent;			/* a message to the process awaits SMI_Send_wait() */
	bool taken;			/* the process has received the message of @sent */
	struct smi_msg message;
};

int smi_channel_open(void);
void smi_channel_close(void);
int smi_channel_send(int rank, struct smi_msg *m);
/*
 * Send a message, unless the receiver's queue is full: then return false. An adapter may wait for a
 * silent node.
 */
bool smi_channel_try(int rank, struct smi_msg *m);
/*
 * Send a message; if the receiver's queue is full, let another thread do so until
 * smi_channel_close(). Without memory for that thread, wait.
 */
void smi_channel_answer(int rank, struct smi_msg *m);
/*
 * Wait for smi.change. @rank: the process that the caller waits for; -1: any process. Context:
 * smi.lock is held. Return: 0; SMI_ERR_OTHER: the process has died.
 */
int smi_wait_change(int rank);
/* Run a region's callback in the callback thread, after earlier jobs. Context: smi.lock is held. */
void smi_callback_queue(int id, int reason);
/*
 * Drop the callbacks of a region that wait to run. A callback that runs loses its region: its id
 * becomes -1, because the next region may get the same id. Context: smi.lock is held.
 */
void smi_callbacks_forget(int id);
/* Run all pending callbacks, then refuse new ones. */
void smi_callbacks_stop(void);

/* ---- segment.c ---- */

struct smi_segment {
	int owner;			/* process */
	unsigned int sci_id;		/* on the owner's node */
	size_t size;			/* bytes that the region uses */
	size_t skip;			/* bytes of the SISCI segment before the used part */
	size_t offset;			/* of the used part, in the region */
	unsigned int adapter;		/* this process's adapter number */
	char *addr;			/* mapped address, or NULL */
	size_t mapped;			/* bytes mapped at @addr */
	char *plain;			/* memory of this process alone, or NULL */
	sci_local_segment_t lseg;	/* created or attached on this node */
	sci_remote_segment_t rseg;
	sci_map_t map;
	sci_sequence_t seq;		/* of a remote map */
};

int smi_error_of(sci_error_t err);
int smi_segment_create(struct smi_segment *s, size_t size, bool shrink);
int smi_segment_open(struct smi_segment *s);
int smi_segment_map(struct smi_segment *s, size_t offset, size_t size,
		    void *fixed);
void smi_segment_unmap(struct smi_segment *s);
void smi_segment_close(struct smi_segment *s);
/*
 * Check once, without waiting, that all stores since the last check have arrived. Return:
 * SMI_SUCCESS; SMI_ERR_TRANSFER: stores got lost; SMI_ERR_PENDING: the link is down;
 * SMI_ERR_OTHER: the connection is lost. Context: @s->seq is set, and stays.
 */
int smi_segment_look(struct smi_segment *s, int flags);
/*
 * Call @look until it does not return SMI_ERR_PENDING; with @probe, once. If the link stays down
 * for long, end the program. Return: as @look; SMI_ERR_TRANSFER: stores may have got lost.
 * Context: without smi.lock
 */
int smi_link_wait(int (*look)(void *arg), void *arg, bool probe);
/*
 * Check, as smi_segment_look() does, but wait while the link is down. Context: without smi.lock;
 * no thread unmaps the segment.
 */
int smi_segment_check(struct smi_segment *s, int flags);
/*
 * Where caches are not coherent, write back those lines of [@addr, @addr + @len) in @s that this
 * process has changed, and drop all lines there. @addr: NULL: do nothing
 */
void smi_segment_sync(struct smi_segment *s, void *addr, size_t len);
/* Wait until all stores that have left the cache have arrived. */
void smi_stores_arrive(void);
/* Wait until all earlier stores to regions have arrived. Context: without smi.lock */
void smi_store_barrier(void);
/* Later loads of regions see all stores that have arrived. Context: without smi.lock */
void smi_load_barrier(void);

/* ---- address.c ---- */

/* Propose an address that is free in this process. Return NULL if there is no further proposal. */
char *smi_address_propose(int attempt, size_t size);
int smi_address_attempts(int size);

/* ---- region.c, create.c, import.c ---- */

struct smi_pool;

struct smi_region {
	int id;
	int type;
	int flags;
	size_t size;
	size_t offset;			/* of the mapped part: UNDIVIDED, imports */
	int owner;			/* if the region has one segment */
	unsigned int adapter;		/* this process's adapter number */
	bool no_adapter;		/* @adapter is not used */
	struct sci_team *team;		/* creators of the region: smi.team, or a pair */
	bool internal;
	bool connected;
	char *base;			/* NULL: not mapped, or not in one piece */
	int nsegs;
	struct smi_segment *segs;
	smi_region_callback_t cb;
	/* for LOCAL: */
	int *importers;			/* number of imports by process */
	struct list freed;		/* in a list of freed regions that still have importers */
	/* for the allocator: */
	struct smi_pool *pool;		/* in the region's memory */
	int pool_lock;			/* number of a lock; -1: smi.lock */
	/* for replication: */
	int replicated;			/* the mode of replication, or 0 */
	struct smi_region *per_node;	/* the node's copy, with SMI_REP_ONE_PER_NODE */
};

struct smi_region *smi_region_new(int type);
/* Allocate @n segments, which use the region's adapter. */
int smi_region_alloc_segments(struct smi_region *r, int n);
int smi_region_publish(struct smi_region *r);
void smi_region_drop(struct smi_region *r);
struct smi_region *smi_region_get(int id);
/* Return the region with this id, or NULL. Context: smi.lock is held. */
struct smi_region *smi_region_find(int id);
/* Take a region out of the table, so that no other thread frees it. Context: smi.lock is held. */
void smi_region_take(struct smi_region *r);
struct smi_region *smi_region_at(const void *addr, size_t len, bool internal);
struct smi_segment *smi_segment_at(struct smi_region *r, const void *addr);
int smi_region_map(struct smi_region *r, char *base);
void smi_region_unmap(struct smi_region *r);
/* Map the segments at an address that is free in all processes of the region's team. */
int smi_region_place(struct smi_region *r);
/* Close the team of a region, unless it is the team of all processes. */
void smi_pair_close(struct sci_team *team);
/* Create a region together. @err: an error of this process; the creation then fails everywhere. */
int smi_create_common(struct smi_region *r, smi_region_info_t *info, void **address, int err);
int smi_free_common(struct smi_region *r);
/* Create a region of all processes for the library's own use. */
int smi_create_internal(int type, smi_region_info_t *info, struct smi_region **out);
int smi_create_local(struct smi_region *r, smi_region_info_t *info, void **address);
int smi_create_import(struct smi_region *r, smi_region_info_t *info, int *id, void **address);
/* Report to the owner of a collective region that this process has mapped the region. */
void smi_tell_owner(struct smi_region *r);
/* Free a region. @id is read with smi.lock. */
int smi_region_free(const int *id);
int smi_free_local(const int *id);
int smi_free_import(struct smi_region *r);
void smi_regions_end(void);
void smi_imports_end(void);
/*
 * Run the callback of a region without smi.lock, and do what it returns. @id becomes -1 when another
 * thread frees the region. Context: with smi.lock
 */
void smi_region_call_back(const int *id, int reason);
void smi_import_handle_answer(const struct smi_msg *m);
void smi_import_handle_gone(const struct smi_msg *m);
void smi_export_handle_import(const struct smi_msg *m);
void smi_export_handle_release(const struct smi_msg *m);

/* Return true if the region has exactly one segment, and so an owner. */
static inline bool smi_one_segment(const struct smi_region *r)
{
	return r->type == SMI_SHM_UNDIVIDED || r->type == SMI_SHM_PT2PT ||
	       r->type >= SMI_SHM_LOCAL;
}

static inline bool smi_is_import(const struct smi_region *r)
{
	return r->type == SMI_SHM_REMOTE || r->type == SMI_SHM_RDMA;
}

/* Return true if all processes create and free the region together. */
static inline bool smi_is_collective(const struct smi_region *r)
{
	return r->type < SMI_SHM_LOCAL && r->type != SMI_SHM_PT2PT;
}

/* Return true if no object may have @n bytes: smi_round() of such a size could overflow. */
static inline bool smi_too_large(size_t n)
{
	return n > PTRDIFF_MAX;
}

static inline size_t smi_round(size_t n)
{
	return (n + smi.page - 1) / smi.page * smi.page;
}

/* ---- pool.c: a buddy allocator in shared memory; the caller holds a lock ---- */

#define SMI_POOL_UNIT	128u

bool smi_pool_init(struct smi_pool *p, size_t size);
bool smi_pool_ok(const struct smi_pool *p, size_t size);
void *smi_pool_alloc(struct smi_pool *p, size_t size);
int smi_pool_free(struct smi_pool *p, void *block);

/* ---- alloc.c ---- */

int smi_nodemem_start(void);

/* ---- sync.c ---- */

#define SMI_LOCKS_MAX	1024
#define SMI_PCS_MAX	256
#define SMI_LOOPS_MAX	64

/* The symmetric memory of a process, from sci_team_alloc(). */
struct smi_shared {
	struct {
		_Alignas(64) uint64_t word;
	} lock[SMI_LOCKS_MAX];
	_Alignas(64) uint64_t share[SMI_LOOPS_MAX]; /* loop.c: iterations left */
	_Alignas(64) _Atomic uint32_t cells[];	/* a row of beats, then rows of counters */
};

extern struct smi_shared *smi_shared;

int smi_sync_start(void);
/* Make a lock. Collective. Return: its number, the same in all processes; -1: no lock is free. */
int smi_lock_new(int proc, bool mutex);
void smi_lock_free(int lock);
int smi_lock_take(int lock, int timeout);
int smi_lock_give(int lock);
/*
 * Store @value into this process's column of a row of cells of @proc. Return: 0; 1: the value has
 * arrived after sci_team_quiet(); or an error of sci_team_put().
 */
int smi_cell_put(unsigned int row, uint32_t value, int proc);
_Atomic uint32_t *smi_cell(unsigned int row, int proc);

/* ---- copy.c ---- */

/* Load @size bytes at @shared, in one segment, or store them there, until all have arrived. */
int smi_copy_checked(struct smi_segment *s, void *shared, void *other, size_t size,
		     int flags, bool load);

/* ---- signal.c, message.c ---- */

void smi_signals_end(void);
void smi_signal_receive(const struct smi_msg *m);
void smi_message_handle_data(const struct smi_msg *m);
void smi_message_handle_taken(const struct smi_msg *m);

/* ---- loop.c, split.c ---- */

/* Stop the clock of a timed loop: the program begins to wait. */
void smi_loops_pause(void);
/* Get this process's range of the split loop @id; with @total, the whole range. */
int smi_split_range(int id, bool total, int *low, int *high);

/* ---- time.c, watchdog.c ---- */

/* Redirect stdout and stderr of this process to the files in SMI_STDOUT and SMI_STDERR. */
int smi_output_redirect(void);
int smi_watchdog_start(void);
void smi_watchdog_stop(void);
void smi_abort_handle(const struct smi_msg *m);
/* Count a message of process @from as its beat, where beats are messages. */
void smi_beat_count(int from);

/* ---- query.c ---- */

bool smi_adapter_valid(unsigned int adapter);

/* ---- args.c ---- */

/* Arguments of SMI's launcher, except ranks. */
struct smi_args {
	bool no_watchdog;
	bool no_signals;
	bool verbose;
	const char *pidfile;
};

extern struct smi_args smi_args;

int smi_args_strip(int *argc, char ***argv);

#endif
