/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: objects
 *
 * Whatever has a file descriptor begins with a struct sci_object.  It is made
 * in three steps, so that nothing is visible before it is complete: allocate
 * and set up; sci_object_file(), from where on releasing the file destroys it;
 * and the descriptor is installed last, by the ioctl dispatcher.
 *
 * The file's release destroys the object.  Removal of the adapter kills it
 * earlier: what it holds of the adapter is given back, the rest goes with the
 * file.
 */
#ifndef SCI_OBJECT_H
#define SCI_OBJECT_H

#include <linux/fs.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "adapter_private.h"

enum sci_object_kind {
	SCI_OBJECT_ADAPTER	= 1 << 0,
	SCI_OBJECT_SEGMENT	= 1 << 1,
	SCI_OBJECT_IMPORT	= 1 << 2,
	SCI_OBJECT_INTR		= 1 << 3,
	SCI_OBJECT_REMOTE_INTR	= 1 << 4,
	SCI_OBJECT_DMA		= 1 << 5,
};

struct seq_file;
struct sci_object;

/**
 * struct sci_object_ops - kinds of objects
 * @name: name of the file, in /proc/PID/fd
 * @kill: the adapter is removed: let go of it.  Called once, at removal or
 *	before @free, with adapter->lock held.  May be NULL.
 * @free: the file is gone; frees the memory.  No locks held.
 * @show: adds lines to /proc/PID/fdinfo.  No locks held.
 * @mmap: NULL: can't.  Called by sci_object_mmap(), under sci_adapter_enter().
 * @read: NULL: reads events
 * @ready: something besides events to read; NULL: no.  Called with ev_lock.
 */
struct sci_object_ops {
	const char *name;
	void (*kill)(struct sci_object *obj);
	void (*free)(struct sci_object *obj);
	void (*show)(struct sci_object *obj, struct seq_file *m);
	int (*mmap)(struct sci_object *obj, struct vm_area_struct *vma);
	ssize_t (*read)(struct file *file, char __user *buf, size_t len);
	bool (*ready)(struct sci_object *obj);
};

/**
 * struct sci_object - base of everything that has a file
 * @kind: enum sci_object_kind
 * @ops: operations of its kind
 * @adapter: which it belongs to; a reference
 * @link: entry in adapter->objects
 * @died: the end of a process closed the last descriptor, and not close(); valid when the
 *	file is released
 * @memcg: control group of the creator, which is charged for events
 * @wait: readers
 * @ev_lock: the rest, and what a kind's own readers wait for
 * @events: struct sci_event, oldest first
 * @n_events: number of events
 * @overflow: some were dropped since
 */
struct sci_object {
	enum sci_object_kind kind;
	const struct sci_object_ops *ops;
	struct sci_adapter *adapter;
	struct list_head link;
	bool died;
	struct mem_cgroup *memcg;
	wait_queue_head_t wait;
	spinlock_t ev_lock;		/* what follows */
	struct list_head events;
	unsigned int n_events;
	bool overflow;
};

static inline bool sci_object_died(const struct sci_object *obj)
{
	return READ_ONCE(obj->died);
}

/*
 * Initialize an object and count it as a user of its adapter. sci_object_fini() undoes
 * it.
 */
void sci_object_init(struct sci_object *obj, enum sci_object_kind kind,
		     const struct sci_object_ops *ops, struct sci_adapter *a);
/* End an object that never got a file. */
void sci_object_fini(struct sci_object *obj);

/**
 * struct sci_new_file - a file on its way to the user
 * @fd: reserved descriptor
 * @file: NULL: there is none
 */
struct sci_new_file {
	int fd;
	struct file *file;
};

/**
 * sci_object_file() - give an object its file
 *
 * Takes the object over: when it succeeds the file's release destroys it; when
 * it fails the caller still owns it.
 */
int sci_object_file(struct sci_object *obj, struct sci_new_file *nf);

struct sci_object *sci_object_of(struct file *file, enum sci_object_kind kind);

/* Queue an event and wake readers. Process context. */
void sci_object_event(struct sci_object *obj, enum sci_ev_type type, u32 node,
		      int status, u64 cookie);
void sci_object_wake(struct sci_object *obj);

/* Make a file of /dev/sciN the file of an object. */
void sci_object_attach(struct sci_object *obj, struct file *file);

/*
 * Create a file without a descriptor, with an address space of its own.  @fops as
 * of sci_vma_set_backing().  Returns an ERR_PTR.
 */
struct file *sci_file_create(const char *name, const struct file_operations *fops);

/**
 * sci_vma_set_backing() - give a map a file and address space of its own
 * @fops: .owner is the module; .release gets the file, whose private_data is
 * @priv: data of the map's kind
 *
 * Maps must not keep the object alive: a forked child that inherits them would
 * keep a dead parent's segments exported.  So each is backed by a file that
 * nobody has a descriptor of.  This is for maps that are revoked; others need no
 * address space.  On failure @priv is still the caller's.
 */
int sci_vma_set_backing(struct vm_area_struct *vma, const char *name,
			const struct file_operations *fops, void *priv);

/**
 * sci_vma_mprotect() - mprotect() of a map that may have private pages
 *
 * For vm_operations_struct.mprotect.  An area has one set of attributes, and
 * mprotect() gives them to all pages of it that are present.  A private page
 * would become uncached, as its area is: see import.c.  So no page is present;
 * each is faulted in anew, with the attributes that it needs.
 */
int sci_vma_mprotect(struct vm_area_struct *vma, unsigned long start,
		     unsigned long end, unsigned long flags);

extern const struct file_operations sci_object_fops;

typedef long (*sci_ioctl_fn)(struct file *file, unsigned int cmd,
			     unsigned long arg);

/*
 * Set the ioctl function of all objects: the dispatcher knows the kinds, and stands
 * above this file.
 */
void sci_object_set_ioctl(sci_ioctl_fn ioctl);

/*
 * Pin the file system of objects' files, for an adapter that users can open. Call
 * without locks.
 */
int sci_object_fs_pin(void);
void sci_object_fs_unpin(void);

#endif
