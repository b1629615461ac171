/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* The core's part of an adapter.  Drivers use adapter.h. */
#ifndef SCI_ADAPTER_PRIVATE_H
#define SCI_ADAPTER_PRIVATE_H

#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "adapter.h"

struct sci_peer_ops;

/**
 * struct sci_retired - mappings and memory that retire.c gives back
 * @mappings: list of struct sci_mapping
 * @exposures: list of struct sci_exposure
 * @calls: list of struct sci_retired_call, called when older mappings and exposures are gone
 * @count: number of entries that were ever added to the three lists
 */
struct sci_retired {
	struct list_head mappings;
	struct list_head exposures;
	struct list_head calls;
	unsigned int count;
};

/* The counters of an adapter: sysfs counters/, SCI_IOC_COUNTERS. */
enum sci_counter {
	SCI_COUNT_CTRL_SENT,
	SCI_COUNT_CTRL_RECEIVED,
	SCI_COUNT_CTRL_RESENT,
	SCI_COUNT_CTRL_BAD,
	SCI_COUNT_IMPORTS,
	SCI_COUNT_REVOKED,
	SCI_COUNT_ATT_FULL,
	SCI_COUNT_TRIGGERS_SENT,
	SCI_COUNT_TRIGGERS_RECEIVED,
	SCI_COUNT_DMA_BYTES,
	SCI_COUNT_DMA_ERRORS,
	SCI_COUNT_LINK_DOWNS,
	SCI_COUNTERS
};

/**
 * struct sci_adapter - an adapter
 * @desc: the driver's description
 * @dev: /dev/sciN and /sys/class/sci/sciN; holds the adapter's reference count
 * @index: N
 * @dead: the adapter has been removed; checked under sci_adapter_enter()
 * @srcu: callers between sci_adapter_enter() and its exit; each adapter has its own, so a
 *	removal does not wait for callers of other adapters
 * @lock: protects the members below that name no other lock.  Order: mmap_lock, @lock,
 *	sci_domain.lock, sci_peer.lock, locks of the driver.
 * @segments: table of struct sci_segment by id
 * @handles: table of struct sci_connection by the id that other nodes use in messages.
 *	Ids wrap around from @next_handle, so that an old message finds no connection.
 * @holders: struct sci_user by user id
 * @objects: list of all objects with a file
 * @mappings: list of struct sci_mapping, which imports share
 * @barrier_maps: list of struct sci_barrier_map
 * @lent_lock: protects @lent; leaf lock
 * @lent: list of struct sci_lent that the adapter has not got back
 * @intrs, @data_intrs: tables of struct sci_intr_line by number
 * @peers: table of struct sci_peer by node id
 * @peer_ops: operations of the layer above the sessions with @peers
 * @probes: list of struct sci_probe that wait for an answer
 * @next_probe: id of the next probe
 * @retired, @retire_work, @retire_busy: of retire.c: entries to be given back, the work that
 *	gives them back, and whether the work does so now
 * @wq: runs works of peers and @retire_work
 * @status: the page that users map, see sci_adapter_status()
 * @status_page: struct page of @status
 * @error_lock: protects writes to @status->errors and @status->fatal
 * @hw_errors, @hw_fatal: values of these words of @status_page at the last report
 * @counters: enum sci_counter
 * @users: number of open descriptors of the adapter itself
 * @data_bytes: bytes of unread data interrupts
 * @link_changed: time of the last change of the link, ktime
 * @link_down_ns: time that the link was down before @link_changed
 */
struct sci_adapter {
	struct sci_adapter_desc desc;
	struct device dev;
	struct cdev cdev;
	int index;
	bool dead;
	struct srcu_struct srcu;
	struct mutex lock;		/* protects most members */
	struct xarray segments;
	struct xarray handles;
	u32 next_handle;
	struct xarray holders;
	struct list_head objects;
	struct list_head mappings;
	struct list_head barrier_maps;
	struct mutex lent_lock;		/* protects lent */
	struct list_head lent;
	struct xarray intrs;
	struct xarray data_intrs;
	struct xarray peers;
	const struct sci_peer_ops *peer_ops;
	struct list_head probes;
	u32 next_probe;
	struct sci_status_page *status;
	struct page *status_page;
	spinlock_t error_lock;		/* held to write status */
	u32 hw_errors;
	u32 hw_fatal;
	atomic64_t counters[SCI_COUNTERS];
	atomic_t users;
	atomic_long_t data_bytes;
	wait_queue_head_t wait;
	struct dentry *debugfs;
	struct workqueue_struct *wq;
	struct sci_retired retired;
	bool retire_busy;
	struct work_struct retire_work;
	ktime_t link_changed;
	u64 link_down_ns;
	bool link_up;
};

static inline void sci_count(struct sci_adapter *a, enum sci_counter c, u64 n)
{
	atomic64_add(n, &a->counters[c]);
}

/* Return the error count that users see: the kernel's word plus the adapter's. */
static inline u32 sci_adapter_errors(const struct sci_adapter *a)
{
	return READ_ONCE(a->status->errors) +
	       le32_to_cpu(READ_ONCE(a->status->hw_errors));
}

static inline u32 sci_adapter_fatal(const struct sci_adapter *a)
{
	return READ_ONCE(a->status->fatal) +
	       le32_to_cpu(READ_ONCE(a->status->hw_fatal));
}

static inline bool sci_adapter_down(const struct sci_adapter *a)
{
	return READ_ONCE(a->status->down) || READ_ONCE(a->status->hw_down);
}

#endif
