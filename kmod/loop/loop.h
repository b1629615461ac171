/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Declarations that the files of sci_loop share. */
#ifndef SCI_LOOP_H
#define SCI_LOOP_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/prandom.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "core/adapter.h"
#include "core/session.h"

struct dentry;
struct loop_packet;

/**
 * struct loop_patch - a change to the next message of one type
 * @type: enum sci_message_type; 0: there is no change to make
 * @offset: offset of the first byte that changes
 * @size: number of bytes
 * @value: the new bytes, little-endian
 */
struct loop_patch {
	u8 type;
	u8 offset;
	u8 size;
	__le64 value;
};

/**
 * struct loop_fault - the faults of a node, which debugfs fault/ sets
 * @lock: protects @rnd, @seed, @patch, @last and @damaged; leaf lock
 * @rnd: decides on faults
 * @seed: start value of @rnd
 * @loss: number of lost packets in a million packets from this node
 * @duplicate: number of duplicated packets in a million
 * @reorder: number of reordered packets in a million
 * @dma_errors: number of failing copies in a million
 * @damage: number of damaged messages in a million messages from this node
 * @damaged: number of messages that were damaged or patched
 * @patch: change for the next message of one type
 * @last: the message sent last
 * @withhold: enum sci_message_type of messages that are not sent, 0: none
 * @hold_unmap: unmap() of this node's adapter waits
 * @unmaps_held: number of calls of unmap() that wait
 * @unmap_wait: wait queue of @unmaps_held, until @hold_unmap is false
 * @dir: debugfs fault/
 */
struct loop_fault {
	spinlock_t lock;		/* protects rnd, seed, damaged, patch, last */
	struct rnd_state rnd;
	u64 seed;
	u32 loss;
	u32 duplicate;
	u32 reorder;
	u32 dma_errors;
	u32 damage;
	u32 damaged;
	struct loop_patch patch;
	u8 last[SCI_MESSAGE_SIZE];
	u32 withhold;
	bool hold_unmap;
	atomic_t unmaps_held;
	wait_queue_head_t unmap_wait;
	struct dentry *dir;
};

/**
 * struct loop_node - a node
 * @adapter: the core's adapter
 * @link_lock: held while @link changes and the change is reported to the core
 * @link: the link is up
 * @inbox_lock: protects @inbox, @inbox_count and @held; leaf lock
 * @inbox: packets to this node, oldest first
 * @inbox_count: number of packets in @inbox
 * @held: packet that the next packet overtakes
 * @work: passes packets to the core
 * @exposed_lock: protects @exposed; held for reading while pages are copied
 * @exposed: table of struct sci_pages by base
 * @fault: the faults of this node
 */
struct loop_node {
	struct sci_adapter *adapter;
	struct mutex link_lock;		/* held to change the link */
	bool link;

	spinlock_t inbox_lock;		/* protects inbox, inbox_count, held */
	struct list_head inbox;
	unsigned int inbox_count;
	struct loop_packet *held;
	struct work_struct work;

	struct rw_semaphore exposed_lock;
	struct xarray exposed;

	struct loop_fault fault;
};

static inline bool loop_link_up(const struct loop_node *n)
{
	return READ_ONCE(n->link);
}

/* loop.c */
void loop_set_link(struct loop_node *n, bool up);

/* fault.c */

/* Initialize @n->fault without faults. @seed decides when faults occur that are set later. */
void loop_fault_init(struct loop_node *n, u64 seed);

/* Add and remove the files of debugfs fault/. Context: the adapter is registered. */
void loop_fault_add(struct loop_node *n);
void loop_fault_remove(struct loop_node *n);

/* Return true @ppm times in a million. */
bool loop_chance(struct loop_node *n, const u32 *ppm);

/* Damage the message in @packet that @from sends, if a fault of @from is due. */
void loop_damage(struct loop_node *from, struct sci_packet *packet);

/* Return whether @from withholds messages of the type of the one in @packet. */
bool loop_withholds(struct loop_node *from, const struct sci_packet *packet);

/*
 * Wait while unmaps are held back. The wait simulates an adapter that waits for packets to a
 * silent node.
 */
void loop_unmap_hold(struct loop_node *n);

#endif
