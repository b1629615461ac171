/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the interface between the core and adapter drivers
 *
 * A driver describes its adapter in a struct sci_adapter_desc, and registers the struct
 * sci_adapter that sci_adapter_alloc() makes of it.  From then on the core calls the
 * driver through struct sci_adapter_ops, and the driver calls the functions at the end of
 * this file.  A struct sci_adapter belongs to the core: drivers do not access it.  The
 * operations name exposed memory and mappings, never table entries.  So the interface
 * suits both a card with a table of 8192 entries and a bridge with three large windows.
 *
 * Contract for every operation:
 *  - process context, may sleep, unless it says otherwise;
 *  - returns 0 or -errno; a call that fails has changed nothing;
 *  - is not called before sci_adapter_register() nor after
 *    sci_adapter_unregister() has returned;
 *  - does not call back into the core for the same adapter, except where it
 *    says so.
 */
#ifndef SCI_ADAPTER_H
#define SCI_ADAPTER_H

#include <linux/list.h>
#include <linux/types.h>
#include <uapi/linux/sci.h>

#define SCI_PACKET_SIZE		64	/* bytes of a control packet */

struct attribute_group;
struct dentry;
struct device;
struct module;
struct page;
struct sci_adapter;
struct sci_domain;
struct sci_pages;
struct sci_user;

/**
 * struct sci_mapping - a piece of another node's exposed memory made accessible
 * @adapter: the adapter that maps the memory
 * @node: node that exposes the memory
 * @base: result of that node's sci_adapter_ops.expose()
 * @offset: first byte, a multiple of the adapter's att_page_size
 * @length: bytes, a multiple of the adapter's att_page_size; the last page may
 *	reach beyond the exposed memory's end
 * @priv: data of the driver
 * @link: entry in sci_adapter.mappings, or in sci_adapter.retired.mappings
 * @users: number of maps of imports that share the mapping
 * @charged: the user who is charged for the entries of the mapping
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
	struct sci_user *charged;
};

/**
 * struct sci_dma_piece - one copy for sci_adapter_ops.dma_copy()
 * @pages: memory of the local segment
 * @local: offset in @pages
 * @node: node that exposes the remote memory
 * @base: result of @node's sci_adapter_ops.expose()
 * @remote: offset in the remote memory
 * @length: bytes, at most sci_adapter_desc.dma_max
 * @pull: copy from remote to local memory
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
 * struct sci_adapter_ops - operations of an adapter
 *
 * @owner:	the driver's module.
 * @send:	sends SCI_PACKET_SIZE bytes to @node's mailbox, where sci_adapter_receive() gets
 *		them. Packets may be lost, doubled or overtake each other, but are never torn.
 *		-EHOSTUNREACH: no such node exists; after another error the packet counts
 *		as lost. Called under locks of the core, never from interrupts.
 * @expose:	lets other nodes reach @pages under the name *@base. -ENOSPC: there is no room.
 * @hide:	undoes expose(); on return no other node can reach the pages any
 *		more, except through mappings that hold a reference of their own
 *		(sci_pages_get()).
 * @map:	makes the memory that @m describes accessible through mapping_pfn().
 *		-ENOSPC: the table is full, nothing was mapped; -ENOMEM.
 *		-ENOENT: @m->node exposes no such base (only where that is known).
 * @unmap:	undoes map(); no process has it mapped any more.  Called without locks
 *	of the core, and one at a time with @hide: may wait for the hardware.
 * @mapping_pfn: page frame of byte @offset of the exposed memory, which @m
 *		covers; page aligned.  Beyond that memory: -EFAULT.  Must not sleep
 *		for long: called from page faults.
 * @flush:	returns when all stores that this CPU made through mappings have
 *		arrived or are counted, by sci_adapter_error() or the adapter's
 *		own words of the status page.  NULL: stores need no flush.
 * @trigger:	remote interrupt: calls sci_adapter_interrupt(@handle) at @node.
 *		NULL: the core sends a control packet instead.  Ordered behind
 *		flushed stores.  No lock is held: may call into the core for this
 *		or another adapter.
 * @alloc:	takes @count consecutive pages of the adapter's own memory for a segment.
 *		Their contents may be any bytes.  -ENOMEM: there is no room.
 *		NULL: segments are memory of the machine.  With @alloc, @expose gets no
 *		other pages, so SCI_CAP_REGISTER is not allowed.
 * @free:	takes the pages back: no process of this machine has them mapped, and they are
 *		not exposed. Only with @alloc.
 * @cache:	with SCI_CAP_CHECKED: writes @length bytes from @offset of a page back to the memory
 *		that the machines share, in whole lines. @drop: the next loads read that memory.
 *		@pfn is from @mapping_pfn or @alloc, and stays valid during the call. Must not
 *		sleep.
 * @dma_copy:	copies one piece.  -EIO: packets were lost; -ENOTCONN: the node exposes
 *		no such memory.  NULL: no DMA.
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
	int (*alloc)(struct sci_adapter *a, unsigned long count,
		     struct page **first);
	void (*free)(struct sci_adapter *a, struct page *first,
		     unsigned long count);
	void (*cache)(struct sci_adapter *a, unsigned long pfn,
		      unsigned int offset, unsigned int length, bool drop);
	int (*dma_copy)(struct sci_adapter *a, const struct sci_dma_piece *p);
};

struct sci_att;

/**
 * struct sci_adapter_desc - description of an adapter
 * @ops: operations of the driver
 * @type: name of the driver, a short word
 * @node: node id
 * @caps: enum sci_cap
 * @serial: serial number, 0: none
 * @att_page_size: bytes that an entry of the address translation table maps
 * @att: address translation table, or NULL
 * @streams: number of stream buffers
 * @stream_size: bytes of a stream buffer
 * @dma_max: bytes of the largest piece of a DMA transfer
 * @dma_align: alignment of offsets and lengths of DMA transfers
 * @exports: number of segments that can be exposed at a time, 0: no limit
 * @mcast_groups: number of broadcast groups that the adapter can join
 * @bdf: PCI bus, device and function, 0: not a PCI device
 * @pci_domain: PCI domain
 * @max_segment: bytes of the largest segment
 * @barrier_pfn: page frame of SCI_MMAP_BARRIER; users may access the whole page
 * @domain: adapters of this machine that share broadcast groups, or NULL
 * @groups: files in sysfs besides the core's, or NULL
 * @priv: data of the driver
 *
 * @att, @domain and @groups must stay valid until sci_adapter_unregister() has returned.
 */
struct sci_adapter_desc {
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
	u32 exports;
	u32 mcast_groups;
	u32 bdf;
	u32 pci_domain;
	u64 max_segment;
	unsigned long barrier_pfn;
	struct sci_domain *domain;
	const struct attribute_group **groups;
	void *priv;
};

/* ---- for drivers ---- */

/**
 * sci_adapter_alloc() - allocate an adapter
 * @parent: bus device, or NULL
 * @desc: description of the adapter; copied
 *
 * Free it by sci_adapter_put(). Return: the adapter, or NULL if there is no memory.
 */
struct sci_adapter *sci_adapter_alloc(struct device *parent,
				      const struct sci_adapter_desc *desc);
void sci_adapter_get(struct sci_adapter *a);
void sci_adapter_put(struct sci_adapter *a);

/**
 * sci_adapter_register() - let users open an adapter
 *
 * The core may call operations before this function returns.  The link counts as down
 * until sci_adapter_set_link().
 *
 * Return: 0; -EINVAL: a required operation is missing; or another error.
 */
int sci_adapter_register(struct sci_adapter *a);

/**
 * sci_adapter_unregister() - remove an adapter, even if it is in use
 *
 * The call ends every object: maps of memory of the adapter and of other nodes show private
 * pages, and waits end with -ENODEV.
 */
void sci_adapter_unregister(struct sci_adapter *a);

/**
 * sci_adapter_receive() - receive a control packet from @node
 *
 * @packet has SCI_PACKET_SIZE bytes, which may be hostile. Context: process context; one call
 *	at a time per adapter.
 */
void sci_adapter_receive(struct sci_adapter *a, u32 node, const void *packet);

/**
 * sci_adapter_returned() - report that a control packet came back: @node does not exist
 *
 * Drivers do not report lost packets. Context: process context.
 */
void sci_adapter_returned(struct sci_adapter *a, u32 node);

/**
 * sci_adapter_lost() - report that @node has begun a new life
 *
 * This call is for adapters that detect a new life before its first control packet arrives. It
 * ends all connections with the node, also while the link is down. The mappings are given back
 * soon after. Context: process context, no locks of the core held.
 */
void sci_adapter_lost(struct sci_adapter *a, u32 node);

/**
 * sci_adapter_interrupt() - report a remote interrupt from @node
 *
 * @handle is the argument of sci_adapter_ops.trigger(), and may be hostile. Context: process
 * context.
 */
void sci_adapter_interrupt(struct sci_adapter *a, u32 node, u32 handle);

/**
 * sci_adapter_error() - report that stores may have been lost
 * @fatal: sending again is of no use
 *
 * Context: any.
 */
void sci_adapter_error(struct sci_adapter *a, bool fatal);

/**
 * sci_adapter_hw_error() - report that the adapter may have counted errors by itself
 *
 * The errors are in the adapter's words of the status page. They are traced, and not counted
 * again. A call may stand for many errors, or for none. Context: process context; one call at a
 * time per adapter.
 */
void sci_adapter_hw_error(struct sci_adapter *a);

/**
 * sci_adapter_set_link() - report that the link is up or down
 *
 * Context: process context, no locks of the core held.
 */
void sci_adapter_set_link(struct sci_adapter *a, bool up);

/* Return the description that the driver gave to sci_adapter_alloc(). */
const struct sci_adapter_desc *sci_adapter_desc(const struct sci_adapter *a);

static inline void *sci_adapter_priv(const struct sci_adapter *a)
{
	return sci_adapter_desc(a)->priv;
}

/* Return the name sciN, for messages. */
const char *sci_adapter_name(const struct sci_adapter *a);

/* Return the adapter of a device of class sci, for files of sci_adapter_desc.groups. */
struct sci_adapter *sci_adapter_of_device(struct device *dev);

/*
 * Return the page that users map at SCI_MMAP_STATUS. Only the adapter writes the hw_ words,
 * until it is unregistered.
 */
struct sci_status_page *sci_adapter_status(const struct sci_adapter *a);

/*
 * Return the adapter's folder in debugfs, for the driver's own files. Context: the adapter is
 * registered.
 */
struct dentry *sci_adapter_debugfs(const struct sci_adapter *a);

#endif
