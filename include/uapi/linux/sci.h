/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR BSD-2-Clause */
/* Copyright (C) 2026 The libsci authors */
#ifndef _UAPI_LINUX_SCI_H
#define _UAPI_LINUX_SCI_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * DOC: the contract of /dev/sciN
 *
 * One file descriptor per object.  Opening /dev/sciN gives an adapter.  Its ioctls
 * create the other objects: local segments (memory that this node exports), remote
 * segments (memory that this node imports), interrupts, remote interrupts and DMA queues.
 * Closing the last descriptor of an object ends the object: the kernel releases its
 * resources and notifies its peers.  All descriptors are created close-on-exec.
 * close() of a remote segment or remote interrupt waits up to a second until the owner
 * has acknowledged the disconnect, unless the process is exiting.
 *
 * Every ioctl takes a pointer to a structure that begins with its size:
 *
 *  - @size is the size that the caller was compiled with.  A size below that of the first
 *    version of the structure is EINVAL.  A size above this kernel's is E2BIG if it exceeds
 *    a page, or if a byte that this kernel does not know is not zero.
 *  - Flags that this kernel does not know are EOPNOTSUPP.  Reserved fields that are not
 *    zero are EINVAL.
 *  - Fields that begin with out_ are written when the ioctl succeeds; their
 *    values on entry are ignored.
 *  - Sizes and offsets are in bytes, timeouts in milliseconds.
 *
 * An ioctl that fails has changed nothing, but bytes of a trigger or of a DMA transfer may
 * have arrived.  Every ioctl can also fail with:
 *
 *  - EFAULT: bad user pointer;
 *  - ENOTTY: no such ioctl for this kind of object;
 *  - EBADF: the adapter was opened for reading only, which permits SCI_IOC_QUERY,
 *    SCI_IOC_COUNTERS, SCI_IOC_CHECK, SCI_IOC_FLUSH and maps of its status and barrier pages;
 *  - ENODEV: the adapter has been removed;
 *  - ENETDOWN: the adapter's link is down;
 *  - EHOSTUNREACH: the other node does not answer or does not exist;
 *  - ENOMEM, EMFILE, ENFILE: this machine is out of memory, this process or
 *    machine out of descriptors;
 *  - EINTR: a signal interrupted the wait.
 *
 * Events: poll() reports a local segment, remote segment, remote interrupt or DMA queue
 * readable when events are queued.  read() returns as many whole struct sci_ev_record as
 * are queued and fit.  A buffer smaller than one record is EINVAL.  Without events read()
 * waits, or fails with EAGAIN if O_NONBLOCK is set (fcntl).
 *
 * mmap: the file offset is the offset in the segment, page aligned.  Maps are shared
 * (MAP_SHARED) and not executable.  They do not keep the object open.  After the last
 * descriptor is closed, maps of a local segment keep the memory, maps of a remote
 * segment show private pages, and maps of an adapter's pages stay: its status page at
 * SCI_MMAP_STATUS, its barrier page at SCI_MMAP_BARRIER.
 *
 * Trust:
 *
 *  - Error counts belong to the adapter, as its packets do: struct sci_status_page,
 *    SCI_IOC_CHECK.  An error that one process causes, at this or another node, is
 *    counted for every user of the adapter: SCI_IOC_CHECK reports SCI_CHECK_RETRIABLE or
 *    SCI_CHECK_NOT_RETRIABLE for stores that arrived.  A process causes an error if it
 *    removes a segment that another process has mapped, exits, or stores to an unmapped
 *    page of the adapter.  So users of one adapter can make each other repeat transfers
 *    or give up.  They cannot hide a loss.
 *  - The kernels of a cluster trust each other's user ids, and nothing else.
 */

#define SCI_ABI_VERSION		1
#define SCI_IOC_MAGIC		0xB9

/* Timeouts: wait for ever. */
#define SCI_TIMEOUT_INFINITE	0xffffffffu

/* Node ids are multiples of 4 from 4 to 0xfffc. */
#define SCI_IOC_NODE_STEP	4u
#define SCI_IOC_NODE_MAX	0xfffcu
/* SCI_IOC_CONNECT: connect to a broadcast group instead of a node. */
#define SCI_IOC_NODE_GROUP	0x10000u

/* The most bytes that one data interrupt carries. */
#define SCI_IOC_INTR_DATA_MAX	65536u

enum {
	/* ioctls of an adapter */
	SCI_IOCNR_QUERY = 0x00,
	SCI_IOCNR_PROBE,
	SCI_IOCNR_COUNTERS,
	SCI_IOCNR_SEGMENT_CREATE,
	SCI_IOCNR_SEGMENT_ATTACH,
	SCI_IOCNR_CONNECT,
	SCI_IOCNR_INTR_CREATE,
	SCI_IOCNR_INTR_CONNECT,
	SCI_IOCNR_DMA_CREATE,
	SCI_IOCNR_CACHE,

	/* ioctls of an adapter or a remote segment */
	SCI_IOCNR_CHECK = 0x20,
	SCI_IOCNR_FLUSH,

	/* ioctls of a local segment */
	SCI_IOCNR_SEGMENT_REGISTER = 0x40,
	SCI_IOCNR_SEGMENT_SHARE,
	SCI_IOCNR_SEGMENT_EXPORT,
	SCI_IOCNR_SEGMENT_UNEXPORT,
	SCI_IOCNR_SEGMENT_REMOVE,
	SCI_IOCNR_SEGMENT_INFO,
	SCI_IOCNR_SEGMENT_GET_DMABUF,
	SCI_IOCNR_SEGMENT_REGISTER_DMABUF,

	/* ioctls of a remote segment */
	SCI_IOCNR_REMOTE_INFO = 0x60,

	/* ioctls of an interrupt */
	SCI_IOCNR_INTR_CANCEL = 0x80,

	/* ioctls of a remote interrupt */
	SCI_IOCNR_INTR_TRIGGER = 0x90,

	/* ioctls of a DMA queue */
	SCI_IOCNR_DMA_SUBMIT = 0xA0,
	SCI_IOCNR_DMA_ABORT,
};

/* ---- adapter ---- */

/**
 * enum sci_cap - struct sci_ioc_query.out_caps
 *
 * @SCI_CAP_MEMORY: imports are ordinary memory: stores arrive in order and need no
 *	flush, loads are cheap, and a membarrier(2) reaches all processes that map it.
 *	Without this bit imports are write-combining maps of a device: write whole
 *	64-byte lines, then call SCI_IOC_FLUSH.
 * @SCI_CAP_DMA: SCI_IOC_DMA_CREATE works.
 * @SCI_CAP_BROADCAST: broadcast groups work.
 * @SCI_CAP_REGISTER: SCI_IOC_SEGMENT_REGISTER and SCI_IOC_SEGMENT_REGISTER_DMABUF work.
 * @SCI_CAP_SHARED: with SCI_CAP_MEMORY: other machines map the memory, too, and a
 *	membarrier(2) does not reach them.
 * @SCI_CAP_BARRIER: the adapter has a page at SCI_MMAP_BARRIER: store barriers need
 *	no system call.
 * @SCI_CAP_INCOHERENT: with SCI_CAP_SHARED: the caches of the machines are not coherent. After
 *	stores to segments and imports write their lines back; before loads drop the lines.
 * @SCI_CAP_CHECKED: with SCI_CAP_INCOHERENT: for tests, the kernel simulates the cache. Use
 *	SCI_IOC_CACHE in place of the CPU's instructions.
 */
enum sci_cap {
	SCI_CAP_MEMORY		= 1 << 0,
	SCI_CAP_DMA		= 1 << 1,
	SCI_CAP_BROADCAST	= 1 << 2,
	SCI_CAP_REGISTER	= 1 << 3,
	SCI_CAP_BARRIER		= 1 << 4,
	SCI_CAP_SHARED		= 1 << 5,
	SCI_CAP_INCOHERENT	= 1 << 6,
	SCI_CAP_CHECKED		= 1 << 7,
};

/**
 * struct sci_ioc_query - ioctl(SCI_IOC_QUERY), on an adapter
 * @size: sizeof(struct sci_ioc_query)
 * @flags: must be 0
 * @out_abi: SCI_ABI_VERSION of the kernel; a larger number has additions only
 * @out_caps: enum sci_cap
 * @out_node: node id
 * @out_adapter: N of /dev/sciN
 * @out_type: driver, NUL terminated: "loop", "pci", "pool", "ntb"
 * @out_serial: serial number of the card, 0 if it has none
 * @out_att_page_size: bytes that one entry of the address translation table maps
 * @out_att_entries: number of entries of the address translation table
 * @out_att_free: number of free entries of the address translation table
 * @out_streams: number of write stream buffers
 * @out_stream_size: bytes of a write stream buffer
 * @out_dma_max: largest piece of one DMA transfer
 * @out_dma_align: alignment of offsets and lengths of DMA transfers
 * @out_mcast_groups: number of broadcast groups that the adapter can join
 * @out_bdf: PCI bus, device and function (bus << 8 | devfn), 0 if not a PCI device
 * @out_domain: PCI domain, 0 if not a PCI device
 * @out_numa_node: NUMA node where segments are allocated by default, -1: anywhere
 * @out_reserved: 0
 * @out_link_up_ms: time since the link went up, 0 if it is down
 * @out_link_down_ms: total time that the link was down since /dev/sciN was created
 * @out_max_segment: bytes of the largest segment
 *
 * Errors: only those of every ioctl.  The ioctl also works while the link is down.
 */
struct sci_ioc_query {
	__u32 size;
	__u32 flags;
	__u32 out_abi;
	__u32 out_caps;
	__u32 out_node;
	__u32 out_adapter;
	__u8 out_type[16];
	__aligned_u64 out_serial;
	__u32 out_att_page_size;
	__u32 out_att_entries;
	__u32 out_att_free;
	__u32 out_streams;
	__u32 out_stream_size;
	__u32 out_dma_max;
	__u32 out_dma_align;
	__u32 out_mcast_groups;
	__u32 out_bdf;
	__u32 out_domain;
	__s32 out_numa_node;
	__u32 out_reserved;
	__aligned_u64 out_link_up_ms;
	__aligned_u64 out_link_down_ms;
	__aligned_u64 out_max_segment;
};
#define SCI_IOC_QUERY _IO(SCI_IOC_MAGIC, SCI_IOCNR_QUERY)

/**
 * struct sci_ioc_probe - ioctl(SCI_IOC_PROBE), on an adapter
 * @size: sizeof(struct sci_ioc_probe)
 * @flags: must be 0
 * @node: the node that must answer; may be the own node
 * @timeout_ms: limit of the wait; the kernel waits long enough for a round trip at least
 *
 * Errors: EINVAL: not a node id; EHOSTUNREACH: no such node, or no answer; ENOBUFS: many
 * messages wait for the node, which has taken none for @timeout_ms or the module's dead_ms;
 * ENETDOWN; EINTR.
 */
struct sci_ioc_probe {
	__u32 size;
	__u32 flags;
	__u32 node;
	__u32 timeout_ms;
};
#define SCI_IOC_PROBE _IO(SCI_IOC_MAGIC, SCI_IOCNR_PROBE)

/**
 * struct sci_ioc_counters - ioctl(SCI_IOC_COUNTERS), on an adapter
 * @size: sizeof(struct sci_ioc_counters)
 * @flags: must be 0
 * @out_errors: errors + hw_errors of struct sci_status_page
 * @out_fatal: fatal + hw_fatal of struct sci_status_page
 * @out_ctrl_sent: control packets sent to other nodes
 * @out_ctrl_received: control packets received
 * @out_ctrl_resent: control packets sent again because no acknowledgment came
 * @out_ctrl_bad: control packets received and dropped as malformed
 * @out_imports: remote segments and interrupts connected
 * @out_revoked: remote segments and interrupts lost: cut off by the owner, or at its end
 * @out_att_full: maps refused because the address translation table had no room
 * @out_triggers_sent: triggers sent through remote interrupts
 * @out_triggers_received: triggers received for interrupts of this node
 * @out_dma_bytes: bytes copied by DMA
 * @out_dma_errors: DMA transfers that failed or were aborted
 * @out_link_downs: number of times that the link went down
 *
 * The values count from the creation of /dev/sciN; sysfs has them in counters/.
 *
 * Errors: only those of every ioctl.  The ioctl also works while the link is down.
 */
struct sci_ioc_counters {
	__u32 size;
	__u32 flags;
	__aligned_u64 out_errors;
	__aligned_u64 out_fatal;
	__aligned_u64 out_ctrl_sent;
	__aligned_u64 out_ctrl_received;
	__aligned_u64 out_ctrl_resent;
	__aligned_u64 out_ctrl_bad;
	__aligned_u64 out_imports;
	__aligned_u64 out_revoked;
	__aligned_u64 out_att_full;
	__aligned_u64 out_triggers_sent;
	__aligned_u64 out_triggers_received;
	__aligned_u64 out_dma_bytes;
	__aligned_u64 out_dma_errors;
	__aligned_u64 out_link_downs;
};
#define SCI_IOC_COUNTERS _IO(SCI_IOC_MAGIC, SCI_IOCNR_COUNTERS)

/*
 * An adapter's file has one page at each of the offsets SCI_MMAP_*.  The offsets are
 * multiples of SCI_MMAP_STEP, which is a multiple of every page size, and fit
 * into an off_t of 32 bits.
 */
#define SCI_MMAP_STEP		0x10000000

/*
 * mmap offset of an adapter's status page: one page, PROT_READ.  EINVAL: the map is longer,
 * private or executable, or has another offset; EACCES: the map is writable.
 */
#define SCI_MMAP_STATUS		(0 * SCI_MMAP_STEP)

/**
 * struct sci_status_page - the start of an adapter's status page
 * @errors: number of transfers that may have been lost.  It rises when a packet of any
 *	process through this adapter was lost, when the link goes down, and when a mapped
 *	import is revoked, always before the map changes.  If the number is the same before
 *	a store and after the flush that follows it, the store has arrived.
 * @down: not 0 while the link is down
 * @fatal: number of errors after which sending again is of no use
 * @reserved: 0
 * @hw_errors: the adapter's part of @errors
 * @hw_down: the adapter's part of @down
 * @hw_fatal: the adapter's part of @fatal
 * @hw_done: number of the last complete store barrier of struct sci_barrier_page; the
 *	other hw_ words then include all errors that this barrier covers
 * @hw_reserved: 0
 *
 * The kernel writes the first 64 bytes, in this machine's byte order.  The adapter writes
 * the second 64 bytes, which are little-endian, or leaves them 0.  A count is the sum of
 * its two words, and may wrap.  The link is down if @down or @hw_down is not 0.  The words
 * can change at any time.  When the adapter is removed, the page stays mapped and
 * readable, and @down is not 0.
 */
struct sci_status_page {
	__u32 errors;
	__u32 down;
	__u32 fatal;
	__u32 reserved[13];
	__le32 hw_errors;
	__le32 hw_down;
	__le32 hw_fatal;
	__le32 hw_done;
	__le32 hw_reserved[12];
};

/*
 * mmap offset of an adapter's barrier page: one page, with PROT_READ, PROT_WRITE or
 * both.  Accesses go to the adapter itself: 4 bytes each, aligned, little-endian.
 * EINVAL: the map is longer, private or executable; EOPNOTSUPP: no SCI_CAP_BARRIER.
 */
#define SCI_MMAP_BARRIER	(1 * SCI_MMAP_STEP)

/**
 * struct sci_barrier_page - the start of an adapter's barrier page
 * @errors: value of hw_errors of the status page, which costs less to read
 * @down: value of hw_down
 * @fatal: value of hw_fatal
 * @done: value of hw_done
 * @barrier: a read begins a store barrier and returns its ticket
 * @flush: a write of any value sends the bytes that the adapter still gathers
 * @check: a read does what @flush does, and returns the number of unanswered packets
 *
 * Store barrier: drain the CPU's write-combining buffers (x86: SFENCE), read @barrier,
 * and wait until hw_done of the status page minus the ticket is not negative, as a
 * signed number.  Every earlier store has then arrived or is in an error count.
 *
 * After the adapter's removal the map shows a private page of all ones.  Reads from an
 * adapter that was pulled out also return all ones, or 0 on some machines.  A ticket with
 * one of these values may also be valid: call SCI_IOC_FLUSH in that case.
 */
struct sci_barrier_page {
	__le32 errors;
	__le32 down;
	__le32 fatal;
	__le32 done;
	__le32 barrier;
	__le32 flush;
	__le32 check;
};

/**
 * enum sci_check - struct sci_ioc_check.out_result
 * @SCI_CHECK_OK: nothing was lost since the snapshot
 * @SCI_CHECK_RETRIABLE: stores may have been lost: send them again
 * @SCI_CHECK_NOT_RETRIABLE: stores may have been lost, and it is of no use to send them again
 * @SCI_CHECK_PENDING: the link is down
 */
enum sci_check {
	SCI_CHECK_OK,
	SCI_CHECK_RETRIABLE,
	SCI_CHECK_NOT_RETRIABLE,
	SCI_CHECK_PENDING,
};

/**
 * struct sci_ioc_check - ioctl(SCI_IOC_CHECK), on an adapter or remote segment
 * @size: sizeof(struct sci_ioc_check)
 * @flags: must be 0
 * @errors: the snapshot to compare with: @out_errors of an earlier call
 * @fatal: the snapshot to compare with: @out_fatal of the same earlier call
 * @out_errors: value of struct sci_ioc_counters.out_errors after a flush
 * @out_fatal: value of struct sci_ioc_counters.out_fatal after a flush
 * @out_result: enum sci_check
 * @out_reserved: 0
 *
 * To take a snapshot, make a call and ignore @out_result.  The ioctl flushes first, so
 * that the result covers all earlier stores.  A program that maps the status page can
 * do the same without a system call.
 *
 * Errors: ENOTCONN: the remote segment is not connected.
 */
struct sci_ioc_check {
	__u32 size;
	__u32 flags;
	__u32 errors;
	__u32 fatal;
	__u32 out_errors;
	__u32 out_fatal;
	__u32 out_result;
	__u32 out_reserved;
};
#define SCI_IOC_CHECK _IO(SCI_IOC_MAGIC, SCI_IOCNR_CHECK)

/**
 * struct sci_ioc_flush - ioctl(SCI_IOC_FLUSH), on an adapter or remote segment
 * @size: sizeof(struct sci_ioc_flush)
 * @flags: must be 0
 *
 * Store barrier: the ioctl returns when every store that this thread made through maps
 * of this remote segment (on an adapter: of all its remote segments) has arrived at its
 * node or was counted as lost.
 *
 * Errors: ENOTCONN: the remote segment is not connected.
 */
struct sci_ioc_flush {
	__u32 size;
	__u32 flags;
};
#define SCI_IOC_FLUSH _IO(SCI_IOC_MAGIC, SCI_IOCNR_FLUSH)

/**
 * enum sci_cache_flags - struct sci_ioc_cache.flags
 * @SCI_CACHE_DROP: also drop the lines, so that the next loads read memory
 */
enum sci_cache_flags {
	SCI_CACHE_DROP		= 1 << 0,
};

/**
 * struct sci_ioc_cache - ioctl(SCI_IOC_CACHE), on an adapter with SCI_CAP_CHECKED
 * @size: sizeof(struct sci_ioc_cache)
 * @flags: enum sci_cache_flags
 * @addr: address in this process
 * @length: bytes
 *
 * Write the lines of a range back to the memory that the machines share. The range is in maps
 * of local or remote segments of this adapter. Pages that a map shows in place of lost memory
 * are skipped.
 *
 * Errors: EOPNOTSUPP: the adapter has no simulated cache; EFAULT: the range is not mapped, or
 * not from this adapter; EINTR: a signal ends the process: the lines before that place have been
 * written back.
 */
struct sci_ioc_cache {
	__u32 size;
	__u32 flags;
	__aligned_u64 addr;
	__aligned_u64 length;
};
#define SCI_IOC_CACHE _IO(SCI_IOC_MAGIC, SCI_IOCNR_CACHE)

/* ---- events ---- */

/**
 * enum sci_ev_type - struct sci_ev_record.type
 * @SCI_EV_CONNECT: local segment: an importer at @node connected.  Remote segment or
 *	interrupt: a connect with SCI_CONNECT_ASYNC ended with @status.
 * @SCI_EV_DISCONNECT: local segment: an importer at @node disconnected in good order.
 *	Attached segment: its creator removed or closed it.  Remote segment: the
 *	exporter asks its importers to disconnect.
 * @SCI_EV_LOST: local segment: an importer at @node died, or the node failed.
 *	Attached segment: its creator died.  Remote segment or interrupt: the
 *	connection has ended for good, and its maps show private pages.  @status:
 *	-ENOTCONN: its owner ended it in good order; -ECONNRESET: its owner died;
 *	-EHOSTUNREACH: its node failed; -ENODEV: the adapter was removed.
 * @SCI_EV_LINK_DOWN: remote segment: the link went down
 * @SCI_EV_LINK_UP: remote segment: the link came up
 * @SCI_EV_DMA: DMA queue: the transfer with @cookie ended with @status
 * @SCI_EV_OVERFLOW: later events were dropped: the queue was full, or the kernel out of
 *	memory
 */
enum sci_ev_type {
	SCI_EV_CONNECT = 1,
	SCI_EV_DISCONNECT,
	SCI_EV_LOST,
	SCI_EV_LINK_DOWN,
	SCI_EV_LINK_UP,
	SCI_EV_DMA,
	SCI_EV_OVERFLOW,
};

/**
 * struct sci_ev_record - an event that read() of a segment or a DMA queue returns
 * @type: enum sci_ev_type
 * @node: the other node's id, 0 if there is none
 * @status: 0 or -errno
 * @reserved: 0
 * @cookie: SCI_EV_DMA: the cookie of the transfer; else 0
 */
struct sci_ev_record {
	__u32 type;
	__u32 node;
	__s32 status;
	__u32 reserved;
	__aligned_u64 cookie;
};

/* ---- local segments ---- */

/**
 * enum sci_segment_flags - struct sci_ioc_segment_create.flags
 * @SCI_SEGMENT_AUTO_ID: take a free id, the first at or above @id
 * @SCI_SEGMENT_PRIVATE: no id, can't be exported, shared or attached
 * @SCI_SEGMENT_EMPTY: the segment has no memory until SCI_IOC_SEGMENT_REGISTER or
 *	SCI_IOC_SEGMENT_REGISTER_DMABUF
 * @SCI_SEGMENT_BROADCAST: the segment is a member of the broadcast group @id: stores to
 *	the group reach all members.  Nodes connect to SCI_IOC_NODE_GROUP.
 * @SCI_SEGMENT_UNICAST: nodes can also connect to this member of the group alone
 */
enum sci_segment_flags {
	SCI_SEGMENT_AUTO_ID	= 1 << 0,
	SCI_SEGMENT_PRIVATE	= 1 << 1,
	SCI_SEGMENT_EMPTY	= 1 << 2,
	SCI_SEGMENT_BROADCAST	= 1 << 3,
	SCI_SEGMENT_UNICAST	= 1 << 4,
};

/**
 * struct sci_ioc_segment_create - ioctl(SCI_IOC_SEGMENT_CREATE), on an adapter
 * @size: sizeof(struct sci_ioc_segment_create)
 * @flags: enum sci_segment_flags
 * @id: name of the segment on this node; 0 with SCI_SEGMENT_PRIVATE
 * @mode: permission to connect or attach: the rw bits of a file's mode, at most 0666
 * @numa_node: NUMA node of the memory; -1: near the adapter
 * @reserved: must be 0
 * @length: bytes, > 0; memory is charged in whole pages
 * @out_fd: descriptor of the local segment
 * @out_id: id of the segment
 *
 * The memory is zeroed and present at once.  It is charged to the caller's user
 * (RLIMIT_MEMLOCK, for all processes of the user together; no limit with CAP_IPC_LOCK).
 * Memory of the machine is also charged to the caller's memory control group.  The owner
 * is the effective user and group of the caller.
 *
 * Errors: EINVAL: a length of 0 or beyond out_max_segment, a mode beyond 0666,
 * no such NUMA node, flags that contradict each other (PRIVATE with AUTO_ID or
 * BROADCAST, EMPTY with BROADCAST, UNICAST without BROADCAST), an id with PRIVATE;
 * EEXIST: the id is in use; ENOSPC: no id is free; EMSGSIZE: the group has another
 * length; EACCES: the group's mode forbids to join; EOPNOTSUPP: the adapter has no
 * SCI_CAP_BROADCAST, or no SCI_CAP_REGISTER for EMPTY; ENOMEM: also RLIMIT_MEMLOCK.
 */
struct sci_ioc_segment_create {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 mode;
	__s32 numa_node;
	__u32 reserved;
	__aligned_u64 length;
	__s32 out_fd;
	__u32 out_id;
};
#define SCI_IOC_SEGMENT_CREATE _IO(SCI_IOC_MAGIC, SCI_IOCNR_SEGMENT_CREATE)

/**
 * struct sci_ioc_segment_attach - ioctl(SCI_IOC_SEGMENT_ATTACH), on an adapter
 * @size: sizeof(struct sci_ioc_segment_attach)
 * @flags: must be 0
 * @id: id of a segment of this node that SCI_IOC_SEGMENT_SHARE has shared
 * @out_fd: descriptor of a local segment with the same memory
 * @out_length: length of the segment in bytes
 *
 * An attached segment can be mapped and used for DMA, but not exported.  An event
 * reports that its creator has closed or removed the segment.  The memory stays.
 *
 * Errors: ENOENT: no such segment; EACCES: the segment is not shared, or the caller
 * may not both read and write it.
 */
struct sci_ioc_segment_attach {
	__u32 size;
	__u32 flags;
	__u32 id;
	__s32 out_fd;
	__aligned_u64 out_length;
};
#define SCI_IOC_SEGMENT_ATTACH _IO(SCI_IOC_MAGIC, SCI_IOCNR_SEGMENT_ATTACH)

/**
 * struct sci_ioc_segment_register - ioctl(SCI_IOC_SEGMENT_REGISTER), on a local
 *	segment
 * @size: sizeof(struct sci_ioc_segment_register)
 * @flags: must be 0
 * @addr: memory of the caller, page aligned
 * @length: bytes: the length of the segment, rounded up to whole pages
 *
 * The call gives the caller's memory to a segment that was created EMPTY.  The
 * pages are pinned until the segment and its maps end, and charged to the caller's
 * user (RLIMIT_MEMLOCK).  The memory is private, or a shared map of a file in memory:
 * of memfd_create(2), tmpfs or hugetlbfs.  If such a file is truncated, the segment
 * keeps the pages, and the file gets others.
 *
 * Errors: EINVAL: @addr is not aligned, @length is wrong, the segment was not created
 * EMPTY; EBUSY: the segment has memory already; EFAULT: not writable memory of the
 * caller, or a shared map of another file; ENOTCONN: the segment has been removed;
 * ENOMEM: also RLIMIT_MEMLOCK.
 */
struct sci_ioc_segment_register {
	__u32 size;
	__u32 flags;
	__aligned_u64 addr;
	__aligned_u64 length;
};
#define SCI_IOC_SEGMENT_REGISTER _IO(SCI_IOC_MAGIC, SCI_IOCNR_SEGMENT_REGISTER)

/**
 * struct sci_ioc_segment_register_dmabuf - ioctl(SCI_IOC_SEGMENT_REGISTER_DMABUF), on a
 *	local segment
 * @size: sizeof(struct sci_ioc_segment_register_dmabuf)
 * @flags: must be 0
 * @fd: descriptor of a dma-buf, open for reading and writing; may be closed afterwards
 * @reserved: must be 0
 * @offset: first byte of the segment in the dma-buf, page aligned
 *
 * The call gives memory of a dma-buf to a segment that was created EMPTY.  The segment has
 * whole pages of the dma-buf.  The exporter of the dma-buf must be able to map it for the
 * kernel, as pages of the machine's memory; memory of devices is not possible.  The
 * pages stay where they are until the segment and its maps end, and are charged to the
 * caller's user (RLIMIT_MEMLOCK).  The end of the segment does not change the dma-buf.
 *
 * Loads and stores of this and of other nodes are cached accesses of a CPU.  A program
 * calls DMA_BUF_IOCTL_SYNC between these accesses and accesses of other devices, and
 * waits for fences of the dma-buf itself.  libsci has no function for this ioctl.
 *
 * Errors: EBADF: @fd is no descriptor; EINVAL: @fd is no dma-buf, @offset is not aligned,
 * the segment's last page is beyond the end of the dma-buf, the segment was not created
 * EMPTY; EACCES: @fd does not permit to read and write; EOPNOTSUPP: the memory is not
 * made of such pages, or the kernel has no dma-bufs; EBUSY: the segment has memory already;
 * ENOTCONN: the segment has been removed; ENOMEM: also RLIMIT_MEMLOCK; or an error of the
 * exporter of the dma-buf.
 */
struct sci_ioc_segment_register_dmabuf {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 reserved;
	__aligned_u64 offset;
};
#define SCI_IOC_SEGMENT_REGISTER_DMABUF \
	_IO(SCI_IOC_MAGIC, SCI_IOCNR_SEGMENT_REGISTER_DMABUF)

/**
 * struct sci_ioc_segment_get_dmabuf - ioctl(SCI_IOC_SEGMENT_GET_DMABUF), on a local segment
 * @size: sizeof(struct sci_ioc_segment_get_dmabuf)
 * @flags: must be 0
 * @out_fd: descriptor of a dma-buf with the segment's memory
 * @out_reserved: 0
 *
 * The dma-buf permits drivers and programs to read and write the segment's memory, in
 * whole pages.  Its maps are shared (MAP_SHARED) and not executable.  It is like a map of
 * the segment: it keeps the memory and the charge for it, but not the segment or the
 * adapter, and removal of both does not change it.  Each call creates another dma-buf.
 *
 * The dma-buf has no fences for stores of other nodes: a program waits for the stores by
 * other means before it starts a device.  libsci has no function for this ioctl.
 *
 * Errors: EBUSY: the segment has no memory yet; ENOTCONN: it has been removed;
 * EOPNOTSUPP: the memory belongs to the adapter or to another dma-buf, or the kernel has
 * no dma-bufs.
 */
struct sci_ioc_segment_get_dmabuf {
	__u32 size;
	__u32 flags;
	__s32 out_fd;
	__u32 out_reserved;
};
#define SCI_IOC_SEGMENT_GET_DMABUF _IO(SCI_IOC_MAGIC, SCI_IOCNR_SEGMENT_GET_DMABUF)

/**
 * struct sci_ioc_segment_share - ioctl(SCI_IOC_SEGMENT_SHARE), on a local
 *	segment
 * @size: sizeof(struct sci_ioc_segment_share)
 * @flags: must be 0
 *
 * The call lets other processes of this node attach the segment, as its mode permits.
 *
 * Errors: EINVAL: the segment is PRIVATE or attached; EBUSY: the segment has no memory
 * yet; ENOTCONN: the segment has been removed.
 */
struct sci_ioc_segment_share {
	__u32 size;
	__u32 flags;
};
#define SCI_IOC_SEGMENT_SHARE _IO(SCI_IOC_MAGIC, SCI_IOCNR_SEGMENT_SHARE)

/**
 * struct sci_ioc_segment_export - ioctl(SCI_IOC_SEGMENT_EXPORT), on a local
 *	segment
 * @size: sizeof(struct sci_ioc_segment_export)
 * @flags: must be 0
 *
 * The call lets nodes connect to the segment.  Another call changes nothing.
 *
 * Errors: EINVAL: the segment is PRIVATE or attached; EBUSY: the segment has no memory
 * yet; ENOTCONN: the segment has been removed; ENOSPC: the adapter has no room for another
 * export, or the caller's user has reached the limit of a user (sci.ko: user_percent).
 */
struct sci_ioc_segment_export {
	__u32 size;
	__u32 flags;
};
#define SCI_IOC_SEGMENT_EXPORT _IO(SCI_IOC_MAGIC, SCI_IOCNR_SEGMENT_EXPORT)

/**
 * enum sci_unexport_how - struct sci_ioc_segment_unexport.how
 * @SCI_UNEXPORT_HOW_QUIET: accept no new importers
 * @SCI_UNEXPORT_HOW_NOTIFY: also send SCI_EV_DISCONNECT to the present importers
 * @SCI_UNEXPORT_HOW_FORCE: accept no new importers, and cut the present importers off:
 *	they get SCI_EV_LOST, and the owner gets SCI_EV_DISCONNECT for each of them.
 *	When the ioctl returns, their maps show private pages, unless the link is down
 *	or their node does not answer.  Then their stores count as errors at their
 *	node.
 */
enum sci_unexport_how {
	SCI_UNEXPORT_HOW_QUIET,
	SCI_UNEXPORT_HOW_NOTIFY,
	SCI_UNEXPORT_HOW_FORCE,
};

/**
 * struct sci_ioc_segment_unexport - ioctl(SCI_IOC_SEGMENT_UNEXPORT), on a local
 *	segment
 * @size: sizeof(struct sci_ioc_segment_unexport)
 * @flags: must be 0
 * @how: enum sci_unexport_how
 * @reserved: must be 0
 *
 * Errors: EINVAL: no such @how; the segment is PRIVATE or attached.
 */
struct sci_ioc_segment_unexport {
	__u32 size;
	__u32 flags;
	__u32 how;
	__u32 reserved;
};
#define SCI_IOC_SEGMENT_UNEXPORT _IO(SCI_IOC_MAGIC, SCI_IOCNR_SEGMENT_UNEXPORT)

/**
 * struct sci_ioc_segment_remove - ioctl(SCI_IOC_SEGMENT_REMOVE), on a local
 *	segment
 * @size: sizeof(struct sci_ioc_segment_remove)
 * @flags: must be 0
 *
 * The call ends a segment that may still be mapped: its id becomes free, importers are
 * cut off, and attached segments get SCI_EV_DISCONNECT.  Local maps stay as they are.
 * Another call changes nothing.
 *
 * Errors: EINVAL: the segment is attached.
 */
struct sci_ioc_segment_remove {
	__u32 size;
	__u32 flags;
};
#define SCI_IOC_SEGMENT_REMOVE _IO(SCI_IOC_MAGIC, SCI_IOCNR_SEGMENT_REMOVE)

/**
 * enum sci_segment_state - struct sci_ioc_segment_info.out_state
 * @SCI_SEGMENT_STATE_SHARED: SCI_IOC_SEGMENT_SHARE was called
 * @SCI_SEGMENT_STATE_EXPORTED: nodes may connect
 * @SCI_SEGMENT_STATE_ATTACHED: this descriptor is of an attached segment
 * @SCI_SEGMENT_STATE_REMOVED: the segment has been removed
 */
enum sci_segment_state {
	SCI_SEGMENT_STATE_SHARED	= 1 << 0,
	SCI_SEGMENT_STATE_EXPORTED	= 1 << 1,
	SCI_SEGMENT_STATE_ATTACHED	= 1 << 2,
	SCI_SEGMENT_STATE_REMOVED	= 1 << 3,
};

/**
 * struct sci_ioc_segment_info - ioctl(SCI_IOC_SEGMENT_INFO), on a local segment
 * @size: sizeof(struct sci_ioc_segment_info)
 * @flags: must be 0
 * @out_id: id, 0 if PRIVATE
 * @out_state: enum sci_segment_state
 * @out_importers: number of connected importers, without importers of the segment's
 *	broadcast group
 * @out_mode: rw bits of a file's mode
 * @out_length: bytes
 *
 * Errors: only those of every ioctl.
 */
struct sci_ioc_segment_info {
	__u32 size;
	__u32 flags;
	__u32 out_id;
	__u32 out_state;
	__u32 out_importers;
	__u32 out_mode;
	__aligned_u64 out_length;
};
#define SCI_IOC_SEGMENT_INFO _IO(SCI_IOC_MAGIC, SCI_IOCNR_SEGMENT_INFO)

/*
 * mmap() of a local segment: EINVAL: the map is private, executable, or goes beyond the
 * segment's end; EBUSY: the segment has no memory yet; ENOTCONN: it has been removed.
 */

/* ---- remote segments ---- */

/**
 * enum sci_connect_flags - struct sci_ioc_connect.flags,
 *	struct sci_ioc_intr_connect.flags
 * @SCI_CONNECT_ASYNC: do not wait: SCI_EV_CONNECT has the result.  Closing the
 *	descriptor before the event cancels the connect.
 * @SCI_CONNECT_DATA: interrupts only: connect to the data interrupt of this number
 */
enum sci_connect_flags {
	SCI_CONNECT_ASYNC	= 1 << 0,
	SCI_CONNECT_DATA	= 1 << 1,
};

/**
 * struct sci_ioc_connect - ioctl(SCI_IOC_CONNECT), on an adapter
 * @size: sizeof(struct sci_ioc_connect)
 * @flags: SCI_CONNECT_ASYNC or 0
 * @node: node of the exporter, may be the own node; or SCI_IOC_NODE_GROUP
 * @id: id of the segment or of the group
 * @timeout_ms: limit of the wait; the kernel waits long enough for a round trip at least
 * @out_fd: descriptor of the remote segment
 * @out_length: length of the segment in bytes (0 with ASYNC: ask SCI_IOC_REMOTE_INFO)
 *
 * The exporter checks the caller's effective user and group and supplementary groups:
 * all of these groups on the own node, the first seven on other nodes.  CAP_DAC_OVERRIDE
 * in the initial user namespace overrides every mode, on any node.
 *
 * Errors, also as status of the event: EINVAL: not a node id; ENOENT: no such segment, or
 * not exported; EACCES: the segment's mode forbids even reading; EHOSTUNREACH; ETIMEDOUT;
 * ENETDOWN; EUSERS: the segment or its node has too many importers; EPROTO: the answer is
 * invalid.  Only the call fails with ENOSPC: the caller's user has as many connections
 * as a user may (sci.ko: user_connections); ENOBUFS: many messages wait for the node,
 * which has taken none for @timeout_ms or the module's dead_ms; ASYNC does not wait for that.
 */
struct sci_ioc_connect {
	__u32 size;
	__u32 flags;
	__u32 node;
	__u32 id;
	__u32 timeout_ms;
	__s32 out_fd;
	__aligned_u64 out_length;
};
#define SCI_IOC_CONNECT _IO(SCI_IOC_MAGIC, SCI_IOCNR_CONNECT)

/**
 * enum sci_remote_state - struct sci_ioc_remote_info.out_state
 * @SCI_REMOTE_CONNECTING: no answer yet
 * @SCI_REMOTE_CONNECTED: the segment is connected
 * @SCI_REMOTE_GONE: the connection was refused or lost; out_status has the reason
 */
enum sci_remote_state {
	SCI_REMOTE_CONNECTING,
	SCI_REMOTE_CONNECTED,
	SCI_REMOTE_GONE,
};

/**
 * struct sci_ioc_remote_info - ioctl(SCI_IOC_REMOTE_INFO), on a remote segment
 * @size: sizeof(struct sci_ioc_remote_info)
 * @flags: must be 0
 * @out_state: enum sci_remote_state
 * @out_status: 0, or -errno: why the connect failed or the connection was lost
 * @out_node: node of the exporter, or SCI_IOC_NODE_GROUP
 * @out_id: id of the segment or of the group
 * @out_access: 4 may read, 2 may write, as in a file's mode
 * @out_reserved: 0
 * @out_length: bytes
 *
 * Errors: only those of every ioctl.
 */
struct sci_ioc_remote_info {
	__u32 size;
	__u32 flags;
	__u32 out_state;
	__s32 out_status;
	__u32 out_node;
	__u32 out_id;
	__u32 out_access;
	__u32 out_reserved;
	__aligned_u64 out_length;
};
#define SCI_IOC_REMOTE_INFO _IO(SCI_IOC_MAGIC, SCI_IOCNR_REMOTE_INFO)

/*
 * mmap() of a remote segment: EACCES: the map is writable, but access is read-only;
 * ENOTCONN: the segment is not connected; EINVAL: the map is private, executable, or goes
 * beyond the segment's end; ENOSPC: no room in the address translation table, or the
 * caller's user has as many entries as a user may (sci.ko: user_percent).
 */

/* ---- interrupts ---- */

/**
 * enum sci_intr_flags - struct sci_ioc_intr_create.flags
 * @SCI_INTR_FIXED_NUMBER: take @number and no other
 * @SCI_INTR_SHARE_NUMBER: other owners may have the number, too; all get each trigger
 * @SCI_INTR_COUNT: each read() takes one trigger; without this flag one read() takes all
 *	earlier triggers
 * @SCI_INTR_WITH_DATA: triggers carry bytes.  Data interrupts have their own numbers.
 */
enum sci_intr_flags {
	SCI_INTR_FIXED_NUMBER	= 1 << 0,
	SCI_INTR_SHARE_NUMBER	= 1 << 1,
	SCI_INTR_COUNT		= 1 << 2,
	SCI_INTR_WITH_DATA	= 1 << 3,
};

/**
 * struct sci_ioc_intr_create - ioctl(SCI_IOC_INTR_CREATE), on an adapter
 * @size: sizeof(struct sci_ioc_intr_create)
 * @flags: enum sci_intr_flags
 * @number: with SCI_INTR_FIXED_NUMBER: the wanted number; else ignored
 * @out_fd: descriptor of the interrupt
 * @out_number: number that other nodes connect to
 * @mode: permission to connect: the w bits of a file's mode; r bits are ignored.  The mode
 *	of a shared number is that of its first owner.
 *
 * poll() reports the descriptor readable while a trigger is unread.  read() returns a
 * __u64 that is 1, or, with data, the bytes of one trigger (which may be none).
 * If the buffer is too small for the data, read() fails with EMSGSIZE.  The data stays,
 * and ioctl(FIONREAD) gives its length.
 *
 * Errors: EINVAL: SHARE_NUMBER or COUNT with WITH_DATA, a mode beyond 0666; EEXIST: the
 * number is taken; ENOSPC: no number is free.
 */
struct sci_ioc_intr_create {
	__u32 size;
	__u32 flags;
	__u32 number;
	__s32 out_fd;
	__u32 out_number;
	__u32 mode;
};
#define SCI_IOC_INTR_CREATE _IO(SCI_IOC_MAGIC, SCI_IOCNR_INTR_CREATE)

/**
 * struct sci_ioc_intr_cancel - ioctl(SCI_IOC_INTR_CANCEL), on an interrupt
 * @size: sizeof(struct sci_ioc_intr_cancel)
 * @flags: must be 0
 *
 * The call ends all present and later reads with ECANCELED, and poll() reports readable.
 *
 * Errors: only those of every ioctl.
 */
struct sci_ioc_intr_cancel {
	__u32 size;
	__u32 flags;
};
#define SCI_IOC_INTR_CANCEL _IO(SCI_IOC_MAGIC, SCI_IOCNR_INTR_CANCEL)

/**
 * struct sci_ioc_intr_connect - ioctl(SCI_IOC_INTR_CONNECT), on an adapter
 * @size: sizeof(struct sci_ioc_intr_connect)
 * @flags: enum sci_connect_flags
 * @node: node of the interrupt's owner, may be the own node
 * @number: number of the interrupt
 * @timeout_ms: limit of the wait, as in struct sci_ioc_connect
 * @out_fd: descriptor of the remote interrupt; it has the events of a remote segment
 *
 * Errors: the same as for SCI_IOC_CONNECT.
 */
struct sci_ioc_intr_connect {
	__u32 size;
	__u32 flags;
	__u32 node;
	__u32 number;
	__u32 timeout_ms;
	__s32 out_fd;
};
#define SCI_IOC_INTR_CONNECT _IO(SCI_IOC_MAGIC, SCI_IOCNR_INTR_CONNECT)

/**
 * struct sci_ioc_intr_trigger - ioctl(SCI_IOC_INTR_TRIGGER), on a remote
 *	interrupt
 * @size: sizeof(struct sci_ioc_intr_trigger)
 * @flags: must be 0
 * @data: bytes to send, with SCI_CONNECT_DATA; else 0
 * @length: number of bytes, may be 0; at most SCI_IOC_INTR_DATA_MAX
 * @reserved: must be 0
 *
 * After a return of 0 the owner receives the trigger, unless a node or the link fails.
 * The trigger arrives after all earlier stores of this thread that were flushed.
 *
 * Errors: EINVAL: data for an interrupt without data; ENOTCONN: the interrupt is not
 * connected; EMSGSIZE: too long; ENOBUFS: the owner has too much unread data, or its node
 * has taken no earlier trigger for the module's dead_ms, and the trigger was not delivered;
 * ETIMEDOUT: the owner's node does not report whether the data has arrived; EHOSTUNREACH:
 * the owner's node does not answer; ENETDOWN.
 */
struct sci_ioc_intr_trigger {
	__u32 size;
	__u32 flags;
	__aligned_u64 data;
	__u32 length;
	__u32 reserved;
};
#define SCI_IOC_INTR_TRIGGER _IO(SCI_IOC_MAGIC, SCI_IOCNR_INTR_TRIGGER)

/* ---- DMA ---- */

/**
 * struct sci_ioc_dma_create - ioctl(SCI_IOC_DMA_CREATE), on an adapter
 * @size: sizeof(struct sci_ioc_dma_create)
 * @flags: must be 0
 * @max_pieces: most pieces of all transfers queued at a time, 1 to 65536
 * @out_fd: descriptor of the DMA queue
 *
 * Errors: EINVAL: @max_pieces; EOPNOTSUPP: the adapter has no DMA.
 */
struct sci_ioc_dma_create {
	__u32 size;
	__u32 flags;
	__u32 max_pieces;
	__s32 out_fd;
};
#define SCI_IOC_DMA_CREATE _IO(SCI_IOC_MAGIC, SCI_IOCNR_DMA_CREATE)

/**
 * struct sci_dma_vec - one piece of a transfer
 * @local: offset in the local segment
 * @remote: offset in the remote segment
 * @length: bytes, > 0
 */
struct sci_dma_vec {
	__aligned_u64 local;
	__aligned_u64 remote;
	__aligned_u64 length;
};

/**
 * enum sci_dma_flags - struct sci_ioc_dma_submit.flags
 * @SCI_DMA_PULL: copy from the remote to the local segment, not from local to remote
 * @SCI_DMA_WAIT: return the status of the transfer when it has ended, and queue no
 *	event.  A fatal signal aborts the transfer.
 */
enum sci_dma_flags {
	SCI_DMA_PULL	= 1 << 0,
	SCI_DMA_WAIT	= 1 << 1,
};

/**
 * struct sci_ioc_dma_submit - ioctl(SCI_IOC_DMA_SUBMIT), on a DMA queue
 * @size: sizeof(struct sci_ioc_dma_submit)
 * @flags: enum sci_dma_flags
 * @local_fd: a local segment of the same adapter
 * @remote_fd: a remote segment of the same adapter, connected
 * @vecs: array of struct sci_dma_vec
 * @nr_vecs: number of entries, > 0
 * @reserved: must be 0
 * @cookie: value of @cookie in the event
 *
 * Transfers of a queue are done in order.  A transfer holds both segments until it ends.
 * If a segment is removed or lost meanwhile, the transfer ends with -ENOTCONN.
 *
 * Errors: EBADF: not descriptors; EINVAL: a descriptor of the wrong kind or of another
 * adapter, a range beyond a segment's end, not aligned to out_dma_align or longer than
 * out_dma_max; EACCES: the remote segment is read-only; EAGAIN: the queue is full;
 * ENOTCONN: a segment was removed, has no memory or is not connected; with SCI_DMA_WAIT
 * also EIO: packets were lost; ECANCELED: aborted.
 */
struct sci_ioc_dma_submit {
	__u32 size;
	__u32 flags;
	__s32 local_fd;
	__s32 remote_fd;
	__aligned_u64 vecs;
	__u32 nr_vecs;
	__u32 reserved;
	__aligned_u64 cookie;
};
#define SCI_IOC_DMA_SUBMIT _IO(SCI_IOC_MAGIC, SCI_IOCNR_DMA_SUBMIT)

/**
 * struct sci_ioc_dma_abort - ioctl(SCI_IOC_DMA_ABORT), on a DMA queue
 * @size: sizeof(struct sci_ioc_dma_abort)
 * @flags: must be 0
 *
 * The call ends all transfers of the queue, with -ECANCELED if they have not completed.
 * On return none of the transfers accesses memory any more.
 *
 * Errors: only those of every ioctl.
 */
struct sci_ioc_dma_abort {
	__u32 size;
	__u32 flags;
};
#define SCI_IOC_DMA_ABORT _IO(SCI_IOC_MAGIC, SCI_IOCNR_DMA_ABORT)

#endif /* _UAPI_LINUX_SCI_H */
