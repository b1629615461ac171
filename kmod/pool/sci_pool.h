/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: sci_pool.ko: an adapter over memory that several machines map
 *
 *  main.c	the memory: the BAR of an ivshmem device, or a range of physical memory;
 *		the module
 *  nvdimm.c	the memory: a namespace of an NVDIMM or of persistent CXL memory
 *  cache.c	flushes of the CPU's cache
 *  check.c	a simulated cache, for tests
 *  node.c	a node of the pool: join, expulsion, leave, control packets
 *  ops.c	the operations of an adapter
 *
 * pool.h is the protocol itself, which does not depend on the kernel.  A node that has
 * been expelled removes its adapter, which revokes all maps of the pool through it.  Then
 * the node reports in the pool that it has released everything, and joins again.
 *
 * The module trusts no value that it reads from the pool.  The calls of pool.h check
 * every value; main.c and ops.c get only numbers of chunks from them.
 */
#ifndef SCI_POOL_H
#define SCI_POOL_H

#include <linux/memremap.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "core/adapter.h"
#include "pool.h"

#define POOL_NODES_MAX	16u	/* of one machine */

struct pool_node;
struct task_struct;

/**
 * struct pool_memory - the memory of a pool
 * @map: page structures of the memory
 * @start: physical address
 * @size: bytes
 * @virt: address in the kernel
 * @nodes: nodes of this machine
 */
struct pool_memory {
	struct dev_pagemap map;
	phys_addr_t start;
	u64 size;
	void *virt;
	struct pool_node *nodes[POOL_NODES_MAX];
};

/**
 * struct pool_check - the simulated cache of a node (check.c)
 * @link: entry in the list of all simulated caches
 * @map: page structures of @cache and @clean
 * @cache: as many bytes as the pool has: what the node sees
 * @clean: as many bytes: the lines as they were loaded from memory
 * @memory: the pool itself
 * @size: bytes of the pool
 * @present: a bit per line: the line is in the cache
 */
struct pool_check {
	struct list_head link;
	struct dev_pagemap map;
	u8 *cache;
	u8 *clean;
	u8 *memory;
	u64 size;
	unsigned long *present;
};

/**
 * struct pool_node - a node of the pool
 * @memory: memory of the pool
 * @check: simulated cache; NULL: none
 * @start: physical address of the pool, or of the simulated cache
 * @virt: address of the pool in the kernel, or of the simulated cache
 * @parent: bus device, or NULL
 * @wanted: the node id to ask for; 0: any
 * @doorbells: registers that ring other nodes' doorbells, or NULL
 * @doorbell: see struct pool_slot
 * @lock: protects @pool, except its mail
 * @send_lock: serializes pool_mail_send()
 * @pool: state of the protocol
 * @flushes: the node has called pool_cache_get(): the pool is not coherent, or the memory is no
 *	pool
 * @adapter: NULL: the node has not joined; only @life changes it
 * @exposed: table of struct sci_pages by first chunk
 * @thread: receives packets
 * @bell: wait queue of @thread
 * @rung: the doorbell was rung
 * @beat: heartbeats
 * @life: joins the pool, and leaves it when the node is expelled
 * @wq: runs @beat and @life
 * @stopping: @life does nothing from now on
 * @waiting: the error of the last attempt to join, which is in the log; 0: none
 */
struct pool_node {
	struct pool_memory *memory;
	struct pool_check *check;
	phys_addr_t start;
	void *virt;
	struct device *parent;
	u32 wanted;
	void __iomem *doorbells;
	u32 doorbell;
	struct mutex lock;		/* pool */
	spinlock_t send_lock;		/* outgoing mail */
	struct pool pool;
	bool flushes;
	struct sci_adapter *adapter;
	struct xarray exposed;
	struct task_struct *thread;
	wait_queue_head_t bell;
	bool rung;
	struct delayed_work beat;
	struct delayed_work life;
	struct workqueue_struct *wq;
	bool stopping;
	int waiting;
};

/* ---- main.c ---- */

/* Map the pages of a memory, whose size is a multiple of 2 MiB. */
int pool_memory_map(struct pool_memory *m, phys_addr_t start, u64 bytes);
void pool_memory_unmap(struct pool_memory *m);

/*
 * Start the nodes of a memory. @doorbells, @doorbell: see struct pool_node. Return: 0;
 * -ENODATA: the memory is no pool. The caller calls pool_memory_stop(), also after an error.
 */
int pool_memory_start(struct pool_memory *m, struct device *parent,
		      void __iomem *doorbells, u32 doorbell);
void pool_memory_stop(struct pool_memory *m);

/* ---- nvdimm.c ---- */

#if IS_ENABLED(CONFIG_LIBNVDIMM)
int pool_nvdimm_init(void);
void pool_nvdimm_exit(void);
#else
static inline int pool_nvdimm_init(void)
{
	return 0;
}

static inline void pool_nvdimm_exit(void)
{
}
#endif

/* ---- cache.c ---- */

/*
 * Flush the cache at each access to any pool, until pool_cache_put(). Return: 0; -EOPNOTSUPP:
 * modules of this kernel cannot flush the cache.
 */
int pool_cache_get(void);
void pool_cache_put(void);

/* ---- check.c ---- */

extern unsigned long sci_pool_check;

/*
 * Set .check, .start and .virt of a node with parameter check. @index: number of the node on this
 * machine, from 0. Return: 0, also without the parameter; or an error.
 */
int pool_check_start(struct pool_node *n, unsigned int index);
void pool_check_stop(struct pool_node *n);

/*
 * Write lines back, and drop them. Return false if they are not in a simulated cache. Context:
 * any but interrupts.
 */
bool pool_check_flush(const void *p, size_t length, bool drop);

/* Warn if a line of a simulated cache is not in memory: the memory gets another owner. */
void pool_check_clean(const void *p, u64 length);

/* ---- node.c ---- */

extern unsigned int sci_pool_poll_us;
extern unsigned int sci_pool_poll_max_us;

/*
 * Create a node of a formatted pool, the node @index of this machine. The node joins by itself, at
 * once or when its node id is free. Return: the node, or an ERR_PTR: -ENODATA: the memory is no
 * pool; -EOPNOTSUPP: the pool is not coherent, and this kernel cannot flush the cache.
 */
struct pool_node *pool_node_create(struct pool_memory *memory, struct device *parent,
				   unsigned int index, u32 node,
				   void __iomem *doorbells, u32 doorbell);
void pool_node_destroy(struct pool_node *n);

/* Handle a ring of the doorbell. Context: any. */
void pool_node_rung(struct pool_node *n);

/* ---- ops.c ---- */

extern const struct sci_adapter_ops sci_pool_ops;

static inline u64 pool_now(void)
{
	return ktime_get_boottime_ns();
}

#endif
