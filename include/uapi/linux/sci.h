/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR BSD-2-Clause */
/* Copyright (C) 2026 The libsci authors */
#ifndef _UAPI_LINUX_SCI_H
#define _UAPI_LINUX_SCI_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * DOC: the contract of /dev/sciN
 *
 * One file descriptor per object.  Opening /dev/sciN gives an adapter; its
 * ioctls create the others: local segments (memory that this node exports), remote
 * segments (memory that it imports), interrupts, remote interrupts and DMA queues.
 * Closing the last descriptor of an object is its end: everything it holds is
 * released, and peers are told.  All descriptors are created close-on-exec.
 * Closing a remote segment or interrupt waits, for at most a second, until its
 * owner has been told, unless the process is exiting.
 *
 * Every ioctl takes a pointer to a structure that begins with its size:
 *
 *  - @size is what the caller was compiled with.  Smaller than the first
 *    version of the structure is EINVAL; larger, up to a page, is fine as long as
 *    what this kernel does not know is zero, else E2BIG.
 *  - Flags this kernel does not know, and reserved fields that are not zero,
 *    are EOPNOTSUPP and EINVAL.
 *  - Fields that begin with out_ are written when the ioctl succeeds; their
 *    values on entry are ignored.
 *  - Sizes and offsets are bytes, timeouts milliseconds.
 *
 * An ioctl that fails has changed nothing.  Besides what each one lists:
 *
 *  - EFAULT: bad user pointer;
 *  - ENOTTY: no such ioctl for this kind of object;
 *  - EBADF: the adapter was opened for reading only, which permits SCI_IOC_QUERY,
 *    SCI_IOC_COUNTERS, SCI_IOC_CHECK, SCI_IOC_FLUSH and a map of its status page;
 *  - ENODEV: the adapter has been removed;
 *  - ENETDOWN: the adapter's link is down;
 *  - EHOSTUNREACH: the other node does not answer, or never can;
 *  - ENOMEM, EMFILE, ENFILE: this machine is out of memory, this process or
 *    machine out of descriptors;
 *  - EINTR: a signal came while waiting.
 *
 * Events: local and remote segments and DMA queues become readable (poll) when
 * something happened; read() returns whole struct sci_ev_record, as many as
 * there are and fit.  Less room than one is EINVAL, nothing to read is EAGAIN
 * with O_NONBLOCK (fcntl), else it waits.
 *
 * mmap: a segment's bytes are at its file offset; both page aligned.  Maps are
 * shared (MAP_SHARED) and not executable.  They do not keep the object open: when
 * its last descriptor is closed, maps of a local segment keep the memory, maps
 * of a remote segment show private pages, and the pages of an adapter stay: its
 * status page at SCI_MMAP_STATUS, its barrier page at SCI_MMAP_BARRIER.
 *
 * Trust:
 *
 *  - Error counts belong to the adapter, as its packets do: struct
 *    sci_status_page, SCI_IOC_CHECK.  An error that one process causes, here or
 *    at another node, is counted for every user of the adapter: they see
 *    SCI_CHECK_RETRIABLE, or SCI_CHECK_NOT_RETRIABLE, for stores that arrived.  A
 *    process causes one by removing a segment that others have mapped, by going
 *    away, or by storing where nothing is mapped.  So users of one adapter can
 *    make each other repeat transfers or give up.  They cannot hide a loss.
 *  - The kernels of a cluster believe each other's user ids, and nothing else.
 */

#define SCI_ABI_VERSION		1
#define SCI_IOC_MAGIC		0xB9

/* Timeouts: wait for ever. */
#define SCI_TIMEOUT_INFINITE	0xffffffffu

/* Node ids are multiples of 4 from 4 to 0xfffc. */
#define SCI_IOC_NODE_STEP	4u
#define SCI_IOC_NODE_MAX	0xfffcu
/* SCI_IOC_CONNECT: the members of a broadcast group. */
#define SCI_IOC_NODE_GROUP	0x10000u

/* Bytes one data interrupt carries at most. */
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
 * @SCI_CAP_MEMORY: imports are memory of this machine: stores arrive in order
 *	and need no flush, loads are cheap, and a membarrier(2) reaches all who
 *	map it.  Without it imports are write-combining maps of a device: write
 *	whole 64-byte lines and SCI_IOC_FLUSH.
 * @SCI_CAP_DMA: SCI_IOC_DMA_CREATE works.
 * @SCI_CAP_BROADCAST: broadcast groups work.
 * @SCI_CAP_REGISTER: SCI_IOC_SEGMENT_REGISTER works.
 * @SCI_CAP_SHARED: with SCI_CAP_MEMORY: other machines map the memory, too, and a
 *	membarrier(2) does not reach them.
 * @SCI_CAP_BARRIER: there is a page at SCI_MMAP_BARRIER: store barriers need no
 *	system call.
 */
enum sci_cap {
	SCI_CAP_MEMORY		= 1 << 0,
	SCI_CAP_DMA		= 1 << 1,
	SCI_CAP_BROADCAST	= 1 << 2,
	SCI_CAP_REGISTER	= 1 << 3,
	SCI_CAP_BARRIER		= 1 << 4,
	SCI_CAP_SHARED		= 1 << 5,
};

/**
 * struct sci_ioc_query - ioctl(SCI_IOC_QUERY), on an adapter
 * @size: sizeof(struct sci_ioc_query)
 * @flags: must be 0
 * @out_abi: SCI_ABI_VERSION of the kernel; grows when something is added
 * @out_caps: enum sci_cap
 * @out_node: node id
 * @out_adapter: N of /dev/sciN
 * @out_type: driver, NUL terminated: "loop", "pci", "pool"
 * @out_serial: serial number of the card, 0 if it has none
 * @out_att_page_size: bytes that one entry of the address translation table maps
 * @out_att_entries: entries of that table
 * @out_att_free: ... not in use
 * @out_streams: write stream buffers
 * @out_stream_size: bytes of one
 * @out_dma_max: largest piece of one DMA transfer
 * @out_dma_align: alignment of offsets and lengths of DMA transfers
 * @out_mcast_groups: broadcast groups it can take part in
 * @out_bdf: PCI bus, device and function (bus << 8 | devfn), 0 if not a PCI device
 * @out_domain: PCI domain, 0 if not a PCI device
 * @out_numa_node: NUMA node where segments are allocated by default, -1: anywhere
 * @out_reserved: 0
 * @out_link_up_ms: time since the link went up, 0 if it is down
 * @out_link_down_ms: total time that the link was down since the driver was loaded
 * @out_max_segment: bytes of the largest segment
 *
 * Errors: only those of every ioctl; it works when the link is down.
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
 * @timeout_ms: how long to wait for it; at least one round trip is allowed
 *
 * Errors: EINVAL: not a node id; EHOSTUNREACH: no such node, or no answer;
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
 * @out_ctrl_received: ... received
 * @out_ctrl_resent: ... sent again because no acknowledgment came
 * @out_ctrl_bad: ... received and thrown away as malformed
 * @out_imports: remote segments connected since the driver was loaded
 * @out_revoked: ... cut off by their exporter, its end, or a lost node
 * @out_att_full: maps refused for want of entries of the ATT
 * @out_triggers_sent: interrupts triggered on other nodes
 * @out_triggers_received: ... by other nodes
 * @out_dma_bytes: bytes moved by DMA
 * @out_dma_errors: DMA transfers that failed
 * @out_link_downs: number of times that the link went down
 *
 * Since the driver was loaded; sysfs has the same in counters/.
 *
 * Errors: only those of every ioctl; it works when the link is down.
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
 * An adapter's file has one page at each of the offsets SCI_MMAP_*.  They are
 * multiples of SCI_MMAP_STEP, which is a multiple of every page size, and fit
 * into an off_t of 32 bits.
 */
#define SCI_MMAP_STEP		0x10000000

/*
 * mmap offset of an adapter's status page: one page, PROT_READ.  EINVAL: longer,
 * private, executable, or no such offset; EACCES: writable.
 */
#define SCI_MMAP_STATUS		(0 * SCI_MMAP_STEP)

/**
 * struct sci_status_page - the start of an adapter's status page
 * @errors: number of transfers that may have been lost.  It rises when a packet of any
 *	process through this adapter was lost, when the link goes down, and when a mapped
 *	import is revoked, always before the map changes.  If the number is the same before
 *	a store and after the flush that follows it, the store has arrived.
 * @down: not 0 while the link is down
 * @fatal: errors after which sending again is of no use
 * @reserved: 0
 * @hw_errors: more of @errors
 * @hw_down: more of @down
 * @hw_fatal: more of @fatal
 * @hw_done: number of the last complete store barrier of struct sci_barrier_page; the words
 *	before it then include all errors that this barrier covers
 * @hw_reserved: 0
 *
 * The kernel writes the first 64 bytes, in this machine's byte order.  The adapter writes
 * the second 64 bytes, which are little-endian, or leaves them 0.  A count is the sum of
 * both words, and may wrap; the link is down if one of both words is not 0.  The words
 * can change at any time.  When the adapter is removed, the page stays mapped and
 * readable, and @down stays not 0.
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
 * EOPNOTSUPP: no SCI_CAP_BARRIER; EINVAL: the map is longer, private or executable.
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
 * @check: a read sends them, too, and returns the number of unanswered packets
 *
 * Store barrier: have the CPU give up its stores (x86: SFENCE), read @barrier,
 * and wait until hw_done of the status page minus the ticket is, as a signed
 * number, not negative.  Every store that was made before has then arrived or
 * been counted.
 *
 * When the adapter is removed the page is a private one that is all ones, which
 * is also what is read of an adapter that has been pulled out, but for machines
 * where that reads as 0.  A ticket that is one of these may be one, or not:
 * SCI_IOC_FLUSH tells.
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
 * @fatal: ... @out_fatal of that call
 * @out_errors: value of struct sci_ioc_counters.out_errors after a flush
 * @out_fatal: value of struct sci_ioc_counters.out_fatal after a flush
 * @out_result: enum sci_check
 * @out_reserved: 0
 *
 * A snapshot is a call whose result is ignored.  It flushes first, so that what
 * was stored before it is judged.  Programs that mapped the status page do the
 * same without a system call.
 *
 * Errors: ENOTCONN: the remote segment is gone.
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
 * Store barrier: returns when every store that this thread made through maps of
 * this remote segment (on an adapter: of all) has arrived at its node or was
 * counted as lost.
 *
 * Errors: ENOTCONN: the remote segment is gone.
 */
struct sci_ioc_flush {
	__u32 size;
	__u32 flags;
};
#define SCI_IOC_FLUSH _IO(SCI_IOC_MAGIC, SCI_IOCNR_FLUSH)

/* ---- events ---- */

/**
 * enum sci_ev_type - struct sci_ev_record.type
 * @SCI_EV_CONNECT: local segment: @node connected.  Remote segment or
 *	interrupt: the connect that was asked for with SCI_CONNECT_ASYNC ended,
 *	@status tells how.
 * @SCI_EV_DISCONNECT: local segment: @node disconnected in good order, or, on
 *	an attached one, its creator removed it.  Remote segment: the exporter
 *	wishes that we disconnect.
 * @SCI_EV_LOST: local segment: an importer at @node died, was killed, or its
 *	node is gone.  Attached segment: its creator died.  Remote segment or
 *	interrupt: the connection is gone for good; maps of it show private
 *	pages from now on.  @status: -ENOTCONN: its owner ended it in good
 *	order; -ECONNRESET: its owner died; -EHOSTUNREACH: its node is gone;
 *	-ENODEV: our adapter was removed.
 * @SCI_EV_LINK_DOWN: remote segment: the link went down
 * @SCI_EV_LINK_UP: ... and came up
 * @SCI_EV_DMA: DMA queue: the transfer @cookie ended, @status tells how
 * @SCI_EV_OVERFLOW: events were lost because no process read them; this takes the
 *	place of the first of those
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
 * @cookie: SCI_EV_DMA: the submitter's; else 0
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
 * @SCI_SEGMENT_EMPTY: no memory yet: SCI_IOC_SEGMENT_REGISTER brings it
 * @SCI_SEGMENT_BROADCAST: the segment is a member of the broadcast group @id: all members
 *	see stores to the group.  Nodes connect to SCI_IOC_NODE_GROUP.
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
 * @mode: who may connect or attach: the rw bits of a file's mode, at most 0666
 * @numa_node: NUMA node of the memory; -1: near the adapter
 * @reserved: must be 0
 * @length: bytes, > 0; memory is charged in whole pages
 * @out_fd: the local segment
 * @out_id: id of the segment
 *
 * Memory comes from the kernel, zeroed, present at once, charged to the caller's
 * user (RLIMIT_MEMLOCK, for all his processes together; no limit with
 * CAP_IPC_LOCK) and to the caller's memory control group.  Owner is the effective
 * user and group of the caller.
 *
 * Errors: EINVAL: a length of 0 or beyond out_max_segment, a mode beyond 0666,
 * no such NUMA node, flags that contradict each other (PRIVATE with AUTO_ID or
 * BROADCAST, EMPTY with BROADCAST, UNICAST without), an id with PRIVATE;
 * EEXIST: the id is in use; ENOSPC: no id is free; EMSGSIZE: the group has
 * another size; EOPNOTSUPP: the adapter has no broadcast; ENOMEM: also
 * RLIMIT_MEMLOCK.
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
 * @out_fd: a local segment with the same memory
 * @out_length: length of the segment in bytes
 *
 * An attached segment can be mapped and used for DMA, but not exported.  An event
 * tells when its creator closes or removes it; its memory stays.
 *
 * Errors: ENOENT: no such segment; EACCES: not shared, or the caller may not
 * both read and write it.
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
 * @length: bytes, whole pages, at most the segment's length rounded up to pages
 *	and at least its length
 *
 * The call gives the caller's memory to a segment that was created EMPTY.  Its
 * pages are pinned until the segment ends and charged to the caller's user
 * (RLIMIT_MEMLOCK).
 *
 * Errors: EINVAL: not aligned, wrong length, not an EMPTY segment; EBUSY: it
 * has memory already; EFAULT: not private writable memory of the caller's;
 * EOPNOTSUPP: no SCI_CAP_REGISTER; ENOMEM: also RLIMIT_MEMLOCK.
 */
struct sci_ioc_segment_register {
	__u32 size;
	__u32 flags;
	__aligned_u64 addr;
	__aligned_u64 length;
};
#define SCI_IOC_SEGMENT_REGISTER _IO(SCI_IOC_MAGIC, SCI_IOCNR_SEGMENT_REGISTER)

/**
 * struct sci_ioc_segment_share - ioctl(SCI_IOC_SEGMENT_SHARE), on a local
 *	segment
 * @size: sizeof(struct sci_ioc_segment_share)
 * @flags: must be 0
 *
 * The call lets other processes of this node attach, as its mode permits.
 *
 * Errors: EINVAL: PRIVATE, or attached; EBUSY: no memory yet; ENOTCONN: it has
 * been removed.
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
 * After the call nodes may connect.  Another call changes nothing.
 *
 * Errors: EINVAL: PRIVATE, or attached; EBUSY: no memory yet; ENOTCONN: it has
 * been removed; ENOSPC: the adapter has no room for another export, or the caller's user
 * has reached the limit of a user (sci.ko: user_percent).
 */
struct sci_ioc_segment_export {
	__u32 size;
	__u32 flags;
};
#define SCI_IOC_SEGMENT_EXPORT _IO(SCI_IOC_MAGIC, SCI_IOCNR_SEGMENT_EXPORT)

/**
 * enum sci_unexport_how - struct sci_ioc_segment_unexport.how
 * @SCI_UNEXPORT_HOW_QUIET: no new importers
 * @SCI_UNEXPORT_HOW_NOTIFY: ... and present importers get SCI_EV_DISCONNECT
 * @SCI_UNEXPORT_HOW_FORCE: ... and present importers get SCI_EV_LOST: their maps
 *	show private pages when this returns, or their node was declared gone or
 *	does not answer, or our link is down.  Importers that are not told lose access
 *	all the same: their stores count as errors there.  We get
 *	SCI_EV_DISCONNECT for each.
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
 * Errors: EINVAL: no such @how; PRIVATE, or attached.
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
 * The call ends a segment that is still mapped: its id is free, importers
 * and attached processes are cut off.  Its local maps stay as they are.
 * Removing it again changes nothing.
 *
 * Errors: EINVAL: attached.
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
 * @out_importers: connected now; of a member of a broadcast group: those that
 *	connected to it on its own
 * @out_mode: rw bits
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
 * mmap of a local segment: EINVAL: beyond its end, private, or executable;
 * EBUSY: no memory yet; ENOTCONN: it has been removed.
 */

/* ---- remote segments ---- */

/**
 * enum sci_connect_flags - struct sci_ioc_connect.flags,
 *	struct sci_ioc_intr_connect.flags
 * @SCI_CONNECT_ASYNC: do not wait: SCI_EV_CONNECT has the result.  Closing the
 *	descriptor before that cancels the connect.
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
 * @timeout_ms: time to wait for the answer; at least one round trip is allowed
 * @out_fd: the remote segment
 * @out_length: length of the segment in bytes (0 with ASYNC: ask SCI_IOC_REMOTE_INFO)
 *
 * The exporter judges by the caller's effective user and group and supplementary
 * groups: all of them on the own node, the first seven on others.  CAP_DAC_OVERRIDE
 * in the initial user namespace overrides every mode, on any node.
 *
 * Errors, also as status of the event: EINVAL: not a node id; ENOENT: no such
 * segment, or not exported; EACCES: its mode forbids even reading;
 * EHOSTUNREACH; ETIMEDOUT; ENETDOWN; EUSERS: too many importers there; EPROTO: the answer
 * made no sense.  Of the call alone: ENOSPC: the caller's user has as many connections
 * as a user may (sci.ko: user_connections).
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
 * @out_node: exporter
 * @out_id: segment
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
 * mmap of a remote segment: EACCES: writable, but access is read-only;
 * ENOTCONN: not connected (any more); EINVAL: beyond its end, private, or
 * executable; ENOSPC: no room in the ATT, or the caller's user has as much of it as a
 * user may (sci.ko: user_percent); nothing was mapped.
 */

/* ---- interrupts ---- */

/**
 * enum sci_intr_flags - struct sci_ioc_intr_create.flags
 * @SCI_INTR_FIXED_NUMBER: take @number and no other
 * @SCI_INTR_SHARE_NUMBER: other owners may have the number, too; a trigger goes to all
 * @SCI_INTR_COUNT: each trigger is read on its own; otherwise one read takes all
 *	earlier triggers
 * @SCI_INTR_WITH_DATA: triggers carry bytes.  Its numbers are their own.
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
 * @out_fd: the interrupt
 * @out_number: number that other nodes connect to
 * @mode: who may connect: the w bits of a file's mode; r bits are ignored.  The mode of
 *	a shared number is that of its first owner.
 *
 * The descriptor polls readable while a trigger waits.  read() takes one: a
 * __u64 that is 1, or, with data, the bytes of one trigger (which may be none).
 * If the buffer is too small for the data, read() fails with EMSGSIZE.  The data stays,
 * and ioctl(FIONREAD) gives its length.
 *
 * Errors: EINVAL: SHARE_NUMBER or COUNT with WITH_DATA, a mode beyond 0666; EEXIST: the number is
 * taken; ENOSPC: none is free.
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
 * @node: node of its owner, may be the own node
 * @number: number of the interrupt
 * @timeout_ms: time to wait for the answer, as in struct sci_ioc_connect
 * @out_fd: the remote interrupt; has events as a remote segment
 *
 * Errors: as SCI_IOC_CONNECT.
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
 * When it returns 0 the owner will see it, unless a node or the link dies.
 * It arrives after what this thread stored before it and flushed.
 *
 * Errors: EINVAL: data for an interrupt without; ENOTCONN: its owner is gone,
 * or not connected yet; EMSGSIZE: too long; ENOBUFS: the owner, or his node, has
 * too much queued, nothing was sent; ETIMEDOUT: his node does not say whether the
 * data has arrived; EHOSTUNREACH: it does not answer; ENETDOWN.
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
 * @out_fd: the DMA queue
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
 * @SCI_DMA_PULL: copy from the remote to the local segment; without it, the other way
 * @SCI_DMA_WAIT: returns when the transfer has ended, with its status; no event
 *	is queued.  A signal that kills aborts it.
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
 * @cookie: comes back in the event
 *
 * Transfers of a queue are done in order.  Both segments are held until then;
 * one that is removed or lost meanwhile ends the transfer with -ENOTCONN.
 *
 * Errors: EBADF: not descriptors; EINVAL: of the wrong kind or another
 * adapter's, ranges beyond a segment's end, not aligned to out_dma_align,
 * longer than out_dma_max; EACCES: the remote segment is read-only; EAGAIN: the
 * queue is full; ENOTCONN: the remote segment is gone; with SCI_DMA_WAIT also
 * EIO: packets were lost; ECANCELED: aborted.
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
 * The call ends all transfers of the queue, with -ECANCELED if they have not completed.  On return
 * none of them touches memory any more.
 *
 * Errors: only those of every ioctl.
 */
struct sci_ioc_dma_abort {
	__u32 size;
	__u32 flags;
};
#define SCI_IOC_DMA_ABORT _IO(SCI_IOC_MAGIC, SCI_IOCNR_DMA_ABORT)

#endif /* _UAPI_LINUX_SCI_H */
