/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: what an adapter driver is to the core
 *
 * A driver fills in a struct sci_adapter (allocated by sci_adapter_alloc()),
 * registers it, and from then on is called through struct sci_adapter_ops; it
 * calls the core by the functions at the end of this file.  The operations
 * speak of exposed memory and of mappings, never of table entries, so that a
 * table of 8192 pages and a bridge with three large windows both fit.
 *
 * Contract for every operation:
 *  - process context, may sleep, unless it says otherwise;
 *  - returns 0 or -errno and has changed nothing when it fails;
 *  - is not called before sci_adapter_register() nor after
 *    sci_adapter_unregister() has returned;
 *  - does not call back into the core for the same adapter, except where it
 *    says so.
 */
#ifndef SCI_ADAPTER_H
#define SCI_ADAPTER_H

#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <uapi/linux/sci.h>

#define SCI_PACKET_SIZE		64	/* bytes of a control packet */

struct sci_adapter;
struct sci_domain;
struct sci_peer_ops;
struct sci_pages;

/**
 * struct sci_retired - what retire.c gives back
 * @mappings: struct sci_mapping
 * @exposures: struct sci_exposure
 * @calls: struct sci_retired_call, called after the others were given back
 * @count: how many there ever were of all three
 */
struct sci_retired {
	struct list_head mappings;
	struct list_head exposures;
	struct list_head calls;
	unsigned int count;
};

/**
 * struct sci_mapping - a piece of another node's exposed memory made accessible
 * @adapter: through which
 * @node: whose memory
 * @base: what that node's sci_adapter_ops.expose() answered
 * @offset: first byte, a multiple of the adapter's att_page_size
 * @length: bytes, a multiple of the adapter's att_page_size; the last page may
 *	reach beyond the exposed memory's end
 * @priv: the driver's
 * @link: in sci_adapter.mappings, or .retired
 * @users: imports that share it
 */
struct sci_mapping {
	struct sci_adapter *adapter;
	u32 node;
	u64 base;
	u64 offset;
	u64 length;
	void *priv;
	struct list_head link;
	unsigned int users;
};

/**
 * struct sci_dma_piece - one copy for sci_adapter_ops.dma_copy()
 * @pages: memory of the local segment
 * @local: offset in it
 * @node: whose memory the other side is
 * @base: what that node's expose() answered
 * @remote: offset in it
 * @length: bytes, at most sci_adapter.dma_max
 * @pull: from remote to local
 */
struct sci_dma_piece {
	struct sci_pages *pages;
	u64 local;
	u32 node;
	u64 base;
	u64 remote;
	u32 length;
	bool pull;
};

/**
 * struct sci_adapter_ops - what an adapter can do
 *
 * @owner:	the driver's module.
 * @send:	sends SCI_PACKET_SIZE bytes to @node's mailbox; they arrive there
 *		through sci_adapter_receive(), perhaps: packets may be lost,
 *		doubled or overtake each other, but are never torn.
 *		-EHOSTUNREACH: there can be no such node; anything else counts
 *		as lost.  Called under locks of the core, never from interrupts.
 * @expose:	lets other nodes reach @pages; *@base is what they have to name.
 *		-ENOSPC: no room for another one.
 * @hide:	undoes expose(); on return no other node can reach the pages any
 *		more, except through mappings that hold a reference of their own
 *		(sci_pages_get()).
 * @map:	makes what @m describes accessible through mapping_pfn().
 *		-ENOSPC: the table is full, nothing was mapped; -ENOMEM.
 *		-ENOENT: @m->node exposes no such base (only where that is known).
 * @unmap:	undoes map(); nobody has it mapped any more.  Called without locks
 *	of the core, and one at a time with @hide: may wait for the hardware.
 * @mapping_pfn: page frame of byte @offset of the exposed memory, which @m
 *		covers; page aligned.  Beyond that memory: -EFAULT.  Must not sleep
 *		for long: called from page faults.
 * @flush:	returns when all stores this CPU made through mappings have
 *		arrived or are counted, by sci_adapter_error() or the adapter's
 *		own words of the status page.  NULL: maps are memory.
 * @trigger:	remote interrupt: calls sci_adapter_interrupt(@handle) at @node.
 *		NULL: the core sends a control packet instead.  Ordered behind
 *		flushed stores.  No lock is held: may call into the core for this
 *		or another adapter.
 * @dma_copy:	copies one piece.  -EIO: packets lost; -ENOTCONN: no such
 *		memory there.  NULL: no DMA.
 */
struct sci_adapter_ops {
	struct module *owner;
	int (*send)(struct sci_adapter *a, u32 node, const void *packet);
	int (*expose)(struct sci_adapter *a, struct sci_pages *pages,
		      u64 *base);
	void (*hide)(struct sci_adapter *a, u64 base);
	int (*map)(struct sci_adapter *a, struct sci_mapping *m);
	void (*unmap)(struct sci_adapter *a, struct sci_mapping *m);
	int (*mapping_pfn)(struct sci_adapter *a, struct sci_mapping *m,
			   u64 offset, unsigned long *pfn);
	void (*flush)(struct sci_adapter *a);
	int (*trigger)(struct sci_adapter *a, u32 node, u32 handle);
	int (*dma_copy)(struct sci_adapter *a, const struct sci_dma_piece *p);
};

/* What is counted per adapter: sysfs counters/, SCI_IOC_COUNTERS. */
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

struct sci_att;

/**
 * struct sci_adapter - an adapter
 * @ops, @type, @node, @caps, @serial, @att_page_size, @att, @streams,
 * @stream_size, @dma_max, @dma_align, @mcast_groups, @bdf, @pci_domain,
 * @max_segment, @barrier_pfn, @domain, @priv: the driver's, set before
 *	sci_adapter_register() and constant then; so are @dev.groups.  @type is a
 *	short word.  @caps as in enum sci_cap.  @att may be NULL where the
 *	adapter has no table.  @barrier_pfn: the page of SCI_MMAP_BARRIER, which
 *	has nothing else.  @domain: adapters of this machine that share broadcast
 *	groups, or NULL.
 *
 * The rest is the core's:
 * @dev: /dev/sciN and /sys/class/sci/sciN; holds the adapter's reference count
 * @index: N
 * @dead: has been removed; checked under sci_adapter_enter()
 * @srcu: who is inside; its own, so that removal waits for no other's callers
 * @lock: everything below it that says nothing else.  Order: mmap_lock, @lock,
 *	sci_domain.lock, sci_peer.lock, locks of the driver.
 * @segments: by id
 * @handles: what other nodes name in messages: struct sci_connection; ids go
 *	round, from @next_handle, so that an old message hits nobody
 * @objects: everything that has a file
 * @mappings: shared by imports
 * @barrier_maps: struct sci_barrier_map
 * @intrs, @data_intrs: struct sci_intr_line by number
 * @peers: by node id
 * @peer_ops: what stands on the sessions with them
 * @probes, @next_probe: of callers who wait for an answer
 * @retired, @retire_busy, @retire_work: retire.c's: what is to be given back, and
 *	whether something is being given back
 * @wq: works of peers, and @retire_work
 * @status: the page users map.  The driver may have the adapter itself write its
 *	hw_ words, until it is unregistered; no one else does.
 * @status_page: its page
 * @error_lock: writers of @status->errors and ->fatal
 * @hw_errors, @hw_fatal: what those of @status were when we were last told
 * @counters: enum sci_counter
 * @users: open descriptors of the adapter itself
 * @data_bytes: of data interrupts that nobody has read
 * @link_changed: when the link went up or down, ktime
 * @link_down_ns: how long it was down before that
 */
struct sci_adapter {
	const struct sci_adapter_ops *ops;
	const char *type;
	u32 node;
	u32 caps;
	u64 serial;
	u32 att_page_size;
	struct sci_att *att;
	u32 streams;
	u32 stream_size;
	u32 dma_max;
	u32 dma_align;
	u32 mcast_groups;
	u32 bdf;
	u32 pci_domain;
	u64 max_segment;
	unsigned long barrier_pfn;
	struct sci_domain *domain;
	void *priv;

	struct device dev;
	struct cdev cdev;
	int index;
	bool dead;
	struct srcu_struct srcu;
	struct mutex lock;		/* see above */
	struct xarray segments;
	struct xarray handles;
	u32 next_handle;
	struct list_head objects;
	struct list_head mappings;
	struct list_head barrier_maps;
	struct xarray intrs;
	struct xarray data_intrs;
	struct xarray peers;
	const struct sci_peer_ops *peer_ops;
	struct list_head probes;
	u32 next_probe;
	struct sci_status_page *status;
	struct page *status_page;
	spinlock_t error_lock;		/* see above */
	u32 hw_errors;
	u32 hw_fatal;
	atomic64_t counters[SCI_COUNTERS];
	atomic_t users;
	atomic_long_t data_bytes;
	wait_queue_head_t wait;
	struct kobject *peers_kobj;
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

/* What users see: the kernel's words and the adapter's. */
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

/* ---- for drivers ---- */

/**
 * sci_adapter_alloc() - allocate one
 * @parent: bus device, or NULL
 *
 * Returns NULL when out of memory.  Freed by sci_adapter_put().
 */
struct sci_adapter *sci_adapter_alloc(struct device *parent);
void sci_adapter_get(struct sci_adapter *a);
void sci_adapter_put(struct sci_adapter *a);

/**
 * sci_adapter_register() - make it known to users
 *
 * Operations may be called before this returns.  The link counts as down until
 * sci_adapter_set_link().  -EINVAL: the driver left something out.
 */
int sci_adapter_register(struct sci_adapter *a);

/**
 * sci_adapter_unregister() - take it away, whatever is in use
 *
 * Ends every object: maps show private pages, waits end with -ENODEV.
 */
void sci_adapter_unregister(struct sci_adapter *a);

/**
 * sci_adapter_receive() - a control packet came from @node
 *
 * Process context; one call at a time per adapter.  @packet is
 * SCI_PACKET_SIZE bytes, hostile until checked.
 */
void sci_adapter_receive(struct sci_adapter *a, u32 node, const void *packet);

/**
 * sci_adapter_returned() - a control packet to @node came back: it is not there
 *
 * Process context.  Packets that are just lost are not told of.
 */
void sci_adapter_returned(struct sci_adapter *a, u32 node);

/**
 * sci_adapter_interrupt() - a remote interrupt came from @node
 *
 * Process context.  @handle as given to sci_adapter_ops.trigger(), hostile.
 */
void sci_adapter_interrupt(struct sci_adapter *a, u32 node, u32 handle);

/**
 * sci_adapter_error() - stores may have been lost
 * @fatal: sending again is of no use
 *
 * Any context.
 */
void sci_adapter_error(struct sci_adapter *a, bool fatal);

/**
 * sci_adapter_hw_error() - the adapter may have counted errors by itself
 *
 * In its words of the status page: they are not counted again, but traced.  One
 * call may stand for many, or none.  Process context; one call at a time per
 * adapter.
 */
void sci_adapter_hw_error(struct sci_adapter *a);

/**
 * sci_adapter_set_link() - the link is up or down now
 *
 * Process context, no locks of the core held.
 */
void sci_adapter_set_link(struct sci_adapter *a, bool up);

/* The debugfs folder of the adapter, for the driver's own files. */
static inline struct dentry *sci_adapter_debugfs(struct sci_adapter *a)
{
	return a->debugfs;
}

static inline void *sci_adapter_priv(struct sci_adapter *a)
{
	return a->priv;
}

#endif
