/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: objects
 *
 * Every object with a file descriptor begins with a struct sci_object. It is made in three
 * steps, so that no process sees it before it is complete. First it is allocated and set up.
 * Then sci_object_file() makes its file, whose release destroys it. At last the ioctl
 * dispatcher installs the descriptor.
 *
 * The file's release destroys the object. Removal of the adapter kills it earlier: it then
 * gives back its resources of the adapter, and the rest is freed with the file.
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
 * @kill: gives back the object's resources of the adapter.  Called once, at removal of the
 *	adapter or before @free, with adapter->lock held.  May be NULL.
 * @free: frees the object, at the file's release.  No locks held.
 * @show: adds lines to /proc/PID/fdinfo.  No locks held.
 * @mmap: maps the object; NULL: it has no maps. Called by sci_object_mmap(), under
 *	sci_adapter_enter().
 * @read: NULL: reads events
 * @ready: returns whether there is something to read besides events; NULL: no. Called with
 *	ev_lock held.
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
 * struct sci_object - base of every object with a file
 * @kind: enum sci_object_kind
 * @ops: operations of this kind of object
 * @adapter: reference to the adapter
 * @link: entry in adapter->objects
 * @died: the exit of a process closed the last descriptor, and not close(); valid when the
 *	file is released
 * @memcg: control group of the creator, which is charged for events
 * @wait: wait queue of readers
 * @ev_lock: protects the members below, and the members of each kind that readers wait for
 * @events: list of struct sci_event, oldest first
 * @n_events: number of @events
 * @overflow: events after @events were dropped
 */
struct sci_object {
	enum sci_object_kind kind;
	const struct sci_object_ops *ops;
	struct sci_adapter *adapter;
	struct list_head link;
	bool died;
	struct mem_cgroup *memcg;
	wait_queue_head_t wait;
	spinlock_t ev_lock;		/* protects the members below */
	struct list_head events;
	unsigned int n_events;
	bool overflow;
};

static inline bool sci_object_died(const struct sci_object *obj)
{
	return READ_ONCE(obj->died);
}

/* Initialize an object, and take a reference to its adapter. */
void sci_object_init(struct sci_object *obj, enum sci_object_kind kind,
		     const struct sci_object_ops *ops, struct sci_adapter *a);
/* Free the object's events and its reference to the adapter. */
void sci_object_fini(struct sci_object *obj);

/**
 * struct sci_new_file - a file that an ioctl has made and not yet installed
 * @fd: reserved descriptor
 * @file: the file; NULL: the ioctl has made none
 */
struct sci_new_file {
	int fd;
	struct file *file;
};

/**
 * sci_object_file() - give an object its file
 *
 * After success the file owns the object, and the file's release destroys it. After an error the
 * caller still owns the object.
 */
int sci_object_file(struct sci_object *obj, struct sci_new_file *nf);

struct sci_object *sci_object_of(struct file *file, enum sci_object_kind kind);

/* Queue an event and wake readers. Context: process context. */
void sci_object_event(struct sci_object *obj, enum sci_ev_type type, u32 node,
		      int status, u64 cookie);
void sci_object_wake(struct sci_object *obj);

/* Make @file the file of an object. */
void sci_object_attach(struct sci_object *obj, struct file *file);

/*
 * Create a file without a descriptor, with an address space of its own.  @fops as
 * of sci_vma_set_backing().  Return: the file, or an ERR_PTR.
 */
struct file *sci_file_create(const char *name, const struct file_operations *fops);

/**
 * sci_vma_set_backing() - give a map a file and address space of its own
 * @fops: .owner is the module; .release gets the file, whose private_data is @priv
 * @priv: data of the map's kind
 *
 * Maps must not keep the object alive: a forked child that inherits them would
 * keep a dead parent's segments exported. So a file without a descriptor backs each map. Maps
 * that are never revoked need no address space of their own, and no such call. After an error
 * the caller still owns @priv.
 */
int sci_vma_set_backing(struct vm_area_struct *vma, const char *name,
			const struct file_operations *fops, void *priv);

/**
 * sci_vma_mprotect() - mprotect() of a map that may have private pages
 *
 * This is for vm_operations_struct.mprotect. An area has one set of attributes, and mprotect()
 * gives them to all its present pages. A private page would become uncached like its area: see
 * import.c. So the call removes all pages, and each is faulted in again with the attributes
 * that it needs.
 */
int sci_vma_mprotect(struct vm_area_struct *vma, unsigned long start,
		     unsigned long end, unsigned long flags);

extern const struct file_operations sci_object_fops;

typedef long (*sci_ioctl_fn)(struct file *file, unsigned int cmd,
			     unsigned long arg);

/*
 * Set the ioctl function of all objects: the dispatcher, which is a layer above this file,
 * knows the kinds.
 */
void sci_object_set_ioctl(sci_ioctl_fn ioctl);

/*
 * Pin the file system of objects' files, for an adapter that users can open. Context: no locks
 * are held.
 */
int sci_object_fs_pin(void);
void sci_object_fs_unpin(void);

#endif
