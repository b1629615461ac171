/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the files of the core
 *
 * Each file calls only the files above it.  scripts/check-modules compares this
 * table with the object files.
 *
 * Files that need no other file of the core:
 *  trace.c		tracepoints
 *  att.c		allocator for entries of an address translation table
 *  pages.c		memory of segments: allocated or pinned, charged, and mapped
 *  owner.c		owner and mode, as of a file; a process's credentials
 *  message.c		checks the form of messages from other nodes
 *  session.c		messages to another node, delivered once and in order
 *
 * Adapters, files, other nodes:
 *  user.c		limits of the objects that one user holds
 *  retire.c		mappings and memory, given back without adapter->lock
 *  adapter.c		adapters: allocation, callers inside, error counts, link times
 *  object.c		objects that have a file: events, poll, maps
 *  lent.c		memory that an adapter lends to segments
 *  dmabuf.c		dma-bufs of segments, and segments of dma-bufs
 *  mapping.c		pieces of another node's memory, shared by imports
 *  barrier.c		the page for store barriers without a system call
 *  peer.c		another node: a session with locks, timers and packets
 *  group.c		broadcast groups
 *  connection.c	both ends of a connection, and its messages
 *
 * Kinds of objects:
 *  segment.c		local segments
 *  import.c		remote segments
 *  dma.c		DMA queues
 *  intr_data.c		the bytes of data interrupts
 *  intr.c		interrupts of this node
 *  remote_intr.c	interrupts of other nodes
 *  probe.c		tests whether a node answers
 *
 * Entry points:
 *  proto.c		messages from other nodes
 *  cache.c		flushes of a simulated cache, for programs
 *  ioctl.c		ioctls: one table
 *  chardev.c		/dev/sciN
 *  sysfs.c		/sys/class/sci/sciN
 *  debugfs.c		/sys/kernel/debug/sci/sciN
 *  register.c		drivers: registration, removal, reports; the module
 */
#ifndef SCI_CORE_H
#define SCI_CORE_H

#include "adapter_private.h"

#define SCI_ADAPTERS_MAX	256

struct sci_peer_ops;

/*
 * Enter and leave an adapter. In between it is alive, and its operations may be called. Removal
 * waits for all callers that are inside. A caller that sleeps for long inside must also wake up
 * when sci_adapter_is_dead(). It must not access a process's memory: a page fault may take for
 * ever.
 */
int sci_adapter_enter(struct sci_adapter *a, int *idx);
void sci_adapter_exit(struct sci_adapter *a, int idx);

static inline bool sci_adapter_is_dead(struct sci_adapter *a)
{
	return READ_ONCE(a->dead);
}

/* adapter.c */
/* Give the adapter the lowest free number. */
int sci_adapter_number(struct sci_adapter *a);
/* Return how long the link has been up, and down in total, for link/ and SCI_IOC_QUERY. */
u64 sci_adapter_link_up_ms(struct sci_adapter *a);
u64 sci_adapter_link_down_ms(struct sci_adapter *a);

/* chardev.c */
extern const struct file_operations sci_chardev_fops;

/* barrier.c */
int sci_barrier_mmap(struct sci_adapter *a, struct vm_area_struct *vma);
/* Make all maps of the barrier page show private pages. Context: adapter->lock is held. */
void sci_barrier_revoke(struct sci_adapter *a);

/* proto.c */
extern const struct sci_peer_ops sci_proto_peer_ops;

/* ioctl.c */
long sci_ioctl(struct file *file, unsigned int cmd, unsigned long arg);

/* sysfs.c */
extern const struct attribute_group *sci_adapter_groups[];

/* debugfs.c */
void sci_debugfs_init(void);
void sci_debugfs_exit(void);
void sci_debugfs_add(struct sci_adapter *a);
void sci_debugfs_remove(struct sci_adapter *a);

#endif
