/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: fabrics
 *
 * A fabric moves segments and interrupts between nodes.  The layers above call it
 * through struct sci_fabric_ops and never ask which fabric they run on.
 *
 * Contract for every operation:
 *  - returns 0 or -errno (the table in libsci/sisci/error.c turns these into
 *    SISCI codes), does not report errors in errno, and releases all that it
 *    has allocated when it fails;
 *  - may be called from any thread, but the caller never calls an operation on
 *    an object while another thread destroys that object;
 *  - does not call back into the caller, except through sci_event_fn, which
 *    runs on a thread of the fabric, with fabric locks held: that function may
 *    queue and wake, but must not block and must not call the fabric;
 *  - once a destroy or disconnect operation has returned, no further event
 *    arrives for that object.
 *
 * Sizes and offsets are bytes, timeouts are milliseconds.
 */
#ifndef LIBSCI_FABRIC_H
#define LIBSCI_FABRIC_H

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsci/base/barrier.h"
#include "libsci/base/list.h"
#include "libsci/pio/pio.h"

#define SCI_TIMEOUT_NONE	UINT32_MAX	/* wait for ever */
#define SCI_NODE_STEP		4u		/* node ids: 4, 8, 12 ... */
#define SCI_NODE_MAX		0xfffcu		/* 16 bits in an SCI address */
#define SCI_NODE_GROUP		0x10000u	/* all members of a broadcast group */
#define SCI_ADAPTER_MAX		16u		/* adapters 0..15 are legal numbers */
#define SCI_DATA_INTR_MAX	65536u		/* bytes in one data interrupt */

enum sci_event_type {
	SCI_EVENT_CONNECT,		/* a peer or this process has connected */
	/* the connection was closed, or the segment's owner asks importers to disconnect */
	SCI_EVENT_DISCONNECT,
	SCI_EVENT_LOST,			/* the peer died */
	SCI_EVENT_NOT_OPERATIONAL,	/* the link went down */
	SCI_EVENT_OPERATIONAL,		/* the link came up again */
	SCI_EVENT_INTERRUPT,		/* a data interrupt arrived: fetch it with lintr.wait */
	/* the importer has triggered the segment's bell, or its bytes have arrived over the net */
	SCI_EVENT_RANG,
};

struct sci_event {
	enum sci_event_type type;
	unsigned int node;		/* node of the peer */
	unsigned int adapter;		/* adapter of this process */
	int status;			/* 0 or -errno (asynchronous connects) */
};

typedef void (*sci_event_fn)(void *owner, const struct sci_event *ev);

struct sci_adapter_info {
	unsigned int node;
	const char *type;		/* "shm", "loop", "pci" */
	const char *device;		/* file in /dev; NULL: none */
	uint64_t serial;
	bool link_up;
	size_t att_page_size;
	unsigned int att_entries;
	unsigned int att_available;
	unsigned int streams;		/* number of write stream buffers */
	size_t stream_size;		/* bytes of a write stream buffer */
	size_t dma_mtu;
	size_t dma_size_align;
	size_t dma_offset_align;
	size_t min_dma_size;		/* shorter blocks: stores are faster */
	size_t min_block_size;
	unsigned int mcast_groups;
	/* the process takes part in wake barriers, and can call wake_barrier */
	bool wake_barrier;
	bool register_copies;		/* registering copies memory to new pages */
	unsigned int bdf;		/* bus << 8 | devfn; 0: no bus */
	uint64_t link_up_ms;		/* since the link came up */
	uint64_t link_down_ms;		/* total time that the link was down */
};

/* A segment of a node and its users: for `sci segments` and `sci nodes`. */
struct sci_segment_info {
	unsigned int node;
	uint32_t id;
	uint64_t size;
	unsigned int mode;		/* rw bits as in a file's mode */
	unsigned int uid;
	int pid;
	unsigned int importers;
	bool available;
	bool broadcast;
};

struct sci_node_info {
	unsigned int node;
	unsigned int processes;		/* 0: unknown */
	bool local;			/* the caller's own node */
	bool remote;			/* the node is on another machine */
};

enum {
	SCI_LSEG_PRIVATE	= 1 << 0,	/* no id: no peer can connect */
	SCI_LSEG_EMPTY		= 1 << 1,	/* no memory before local.reg */
	SCI_LSEG_AUTO_ID	= 1 << 2,	/* the fabric takes a free id at or above .id */
	SCI_LSEG_BROADCAST	= 1 << 3,	/* member of group .id */
	SCI_LSEG_UNICAST	= 1 << 4,	/* a member that also accepts unicast */
	/* one importer connects; the fabric may refuse others, and later maps of the owner */
	SCI_LSEG_ONCE		= 1 << 5,
	/* beside EMPTY: the memory comes from local.twin, so an adapter need not allocate any */
	SCI_LSEG_TWIN		= 1 << 6,
};

struct sci_lseg_param {
	uint32_t id;
	uint64_t size;			/* > 0 */
	unsigned int flags;		/* SCI_LSEG_* */
	sci_event_fn event;		/* must not be NULL */
	void *owner;
	/*
	 * NULL, or the plain interrupt that ops->ring triggers; it must outlive the segment. Before
	 * the interrupt is reported, the segment's owner gets SCI_EVENT_RANG.
	 */
	struct sci_lintr *bell;
};

enum sci_unexport {
	SCI_UNEXPORT_QUIET,		/* no new importer may connect */
	SCI_UNEXPORT_NOTIFY,		/* as QUIET, and ask importers to disconnect */
	SCI_UNEXPORT_FORCE,		/* as QUIET, and disconnect importers */
};

struct sci_rseg_param {
	unsigned int adapter;
	unsigned int node;		/* or SCI_NODE_GROUP */
	uint32_t id;
	uint32_t port;			/* data interrupt of the owner; 0: unknown */
	uint32_t timeout;
	sci_event_fn event;		/* must not be NULL */
	void *owner;
};

enum {
	SCI_MAP_READONLY	= 1 << 0,
	SCI_MAP_FIXED		= 1 << 1,	/* at .addr, as MAP_FIXED_NOREPLACE */
};

/*
 * The state of a link. sci_link_errors() and sci_link_down() read it without a system call, to
 * check a transfer.  Each adapter has one such structure. A lost packet of any sender raises
 * @errors, so every transfer in progress at that time is sent again.  The kernel writes @errors
 * and @down.  An adapter that counts by itself writes @hw_errors and @hw_down, little-endian;
 * otherwise @hw_errors and @hw_down are 0.
 */
struct sci_link_words {
	uint32_t errors;		/* number of lost packets */
	uint32_t down;			/* != 0: link not operational */
	uint32_t reserved[14];
	uint32_t hw_errors;		/* lost packets, counted by the adapter */
	uint32_t hw_down;		/* != 0: link not operational */
};

struct sci_link_status;

/**
 * struct sci_cache_ops - the caches of a fabric that does not keep them coherent
 * @write_back:	Start to write the lines of [@addr, @addr + @len) back to memory.
 * @fence:	Return when memory has all lines whose write-back was started.
 * @refresh:	Write the lines back and drop them. On return memory has all earlier
 *		stores, and the next load reads memory.
 *
 * Ranges are in maps of local and of remote segments.  A line of 64 bytes is written
 * back as a whole: two nodes must not store to one line at the same time.
 */
struct sci_cache_ops {
	void (*write_back)(struct sci_link_status *link, const volatile void *addr,
			   size_t len);
	void (*fence)(struct sci_link_status *link);
	void (*refresh)(struct sci_link_status *link, const volatile void *addr,
			size_t len);
};

struct sci_link_status {
	_Atomic uint32_t errors;	/* injected errors, see fault.h */
	_Atomic uint32_t down;
	enum sci_pio_map map;		/* kind of memory of the link's maps */
	/* counters of the adapter, read only; NULL: the adapter loses no packets */
	const struct sci_link_words *adapter;
	/*
	 * A store of any value to this word empties the stream buffers: a line in a buffer of
	 * 128 bytes waits for a second line. NULL: the adapter sends each line at once.
	 */
	volatile uint32_t *flush;
	const struct sci_cache_ops *cache;	/* NULL: caches are coherent */
};

static inline void sci_link_write_back(struct sci_link_status *link,
				       const volatile void *addr, size_t len)
{
	if (__builtin_expect(link->cache != NULL, 0))
		link->cache->write_back(link, addr, len);
}

/* Refresh the cache before a load of bytes that another node has stored. */
static inline void sci_link_refresh(struct sci_link_status *link,
				    const volatile void *addr, size_t len)
{
	if (__builtin_expect(link->cache != NULL, 0))
		link->cache->refresh(link, addr, len);
}

/*
 * Refresh the first and the last line before a store, if a part of them is outside of the range:
 * a later write-back must not overwrite the bytes outside with old values.
 */
static inline void sci_link_refresh_ends(struct sci_link_status *link,
					 const volatile void *addr, size_t len)
{
	uintptr_t first = (uintptr_t)addr, end = first + len;

	if (__builtin_expect(link->cache != NULL, 0) && len) {
		if (first % SCI_PIO_LINE)
			link->cache->refresh(link, addr, 1);
		if (end % SCI_PIO_LINE)
			link->cache->refresh(link, (const volatile char *)addr + len - 1, 1);
	}
}

static inline void sci_link_flush(struct sci_link_status *link)
{
	if (__builtin_expect(link->cache != NULL, 0))
		link->cache->fence(link);
	if (!link->flush)
		return;
	sci_pio_barrier();
	*link->flush = 0;
}

static inline void sci_link_write(struct sci_link_status *link, volatile void *dst,
				  const void *src, size_t len)
{
	sci_link_refresh_ends(link, dst, len);
	sci_pio_write(dst, src, len, link->map);
	sci_link_write_back(link, dst, len);
}

static inline void sci_link_line(struct sci_link_status *link, volatile void *dst,
				 const void *src)
{
	sci_pio_line(dst, src, link->map);
	sci_link_write_back(link, dst, SCI_PIO_LINE);
}

static inline uint32_t sci_link_errors(struct sci_link_status *link)
{
	uint32_t n = atomic_load_explicit(&link->errors, memory_order_acquire);

	if (!link->adapter)
		return n;
	return n + sci_load_acquire(&link->adapter->errors) +
	       le32toh(sci_load_acquire(&link->adapter->hw_errors));
}

static inline bool sci_link_down(struct sci_link_status *link)
{
	return atomic_load_explicit(&link->down, memory_order_acquire) ||
	       (link->adapter && (sci_load_acquire(&link->adapter->down) ||
				  sci_load_acquire(&link->adapter->hw_down)));
}

/* The status of one import. It is valid as long as the import. */
struct sci_rseg_status {
	_Atomic uint32_t gone;		/* != 0: connection lost */
	struct sci_link_status *link;
};

enum {
	SCI_INTR_FIXED		= 1 << 0,	/* the caller chooses the number */
	SCI_INTR_SHARED		= 1 << 1,	/* the number may have several owners */
	SCI_INTR_COUNTING	= 1 << 2,	/* triggers are not merged */
	SCI_INTR_DATA		= 1 << 3,	/* triggers carry bytes */
};

struct sci_lintr_param {
	unsigned int adapter;
	/* in, with SCI_INTR_FIXED: the number wanted; out: the number of the interrupt */
	uint32_t number;
	unsigned int flags;		/* SCI_INTR_* */
	sci_event_fn event;		/* NULL: the owner waits instead */
	void *owner;
};

struct sci_rintr_param {
	unsigned int adapter;
	unsigned int node;
	uint32_t number;
	uint32_t timeout;
	bool data;
	const void *owner;		/* for cancel_connect; NULL: only all connects end */
};

/* One piece of a DMA transfer, always between a local and a remote segment. */
struct sci_dma_piece {
	uint64_t local;
	uint64_t remote;
	uint64_t len;
};

struct sci_fabric;
struct sci_lseg;			/* a segment that this process exports */
struct sci_rseg;			/* a segment that this process imports */
struct sci_lintr;
struct sci_rintr;

/*
 * The operations are in groups.  A fabric has all operations of the groups query,
 * lseg, rseg, lintr and rintr.  The group local, and dma and peer_read, may be NULL:
 * callers use sci_lseg_attach(), sci_peer_read() and similar functions, which then
 * return -EOPNOTSUPP.  wake_barrier may be NULL if no process takes part: callers
 * read sci_adapter_info.wake_barrier before a call.
 */

/**
 * struct sci_query_ops - adapters, nodes and segments
 * @adapter:	Describe an adapter. -ENODEV: there is no such adapter.
 * @link:	Return the link status of an adapter, which must exist. The
 *		status is valid as long as the fabric.
 * @probe:	Return 0 if the node answers. -EHOSTUNREACH: there is no such
 *		node; -ENETDOWN: the adapter's link is down.
 * @nodes:	Call @fn for each node, in ascending order. A value other than 0
 *		from @fn ends the walk and is returned.
 * @segments:	Call @fn in the same way for each segment that the caller may
 *		see.
 */
struct sci_query_ops {
	int (*adapter)(struct sci_fabric *f, unsigned int adapter,
		       struct sci_adapter_info *info);
	struct sci_link_status *(*link)(struct sci_fabric *f, unsigned int adapter);
	int (*probe)(struct sci_fabric *f, unsigned int adapter, unsigned int node);
	int (*nodes)(struct sci_fabric *f,
		     int (*fn)(void *arg, const struct sci_node_info *n), void *arg);
	int (*segments)(struct sci_fabric *f,
			int (*fn)(void *arg, const struct sci_segment_info *s),
			void *arg);
};

/**
 * struct sci_lseg_ops - segments of this process
 * @create:	Create a segment; allocate and reserve its memory unless @p says
 *		EMPTY. -EEXIST: the id is taken; -ENOSPC: no memory or no
 *		descriptors; -EMSGSIZE: a broadcast group of another size has
 *		the id; -EOPNOTSUPP: the fabric has no broadcast groups.
 * @export:	Let importers connect through an adapter from now on.
 * @unexport:	Let no new importer connect; see enum sci_unexport.
 * @importers:	Return how many importers are connected.
 * @destroy:	Free the id and the memory at once. Connected importers are
 *		disconnected and get an event. Maps of this process stay valid
 *		until they are unmapped.
 * @id:		Return the id; constant after create and attach.
 * @size:	Return the size; constant after create, attach and register.
 * @map:	Map [@off, @off + @len), which the caller has checked against
 *		the size. @off may have any alignment. With SCI_MAP_FIXED *@addr
 *		is the address wanted. -EADDRNOTAVAIL: that address is taken or
 *		misaligned.
 */
struct sci_lseg_ops {
	int (*create)(struct sci_fabric *f, const struct sci_lseg_param *p,
		      struct sci_lseg **out);
	int (*export)(struct sci_lseg *s, unsigned int adapter);
	int (*unexport)(struct sci_lseg *s, enum sci_unexport how);
	unsigned int (*importers)(struct sci_lseg *s);
	void (*destroy)(struct sci_lseg *s);
	uint32_t (*id)(struct sci_lseg *s);
	uint64_t (*size)(struct sci_lseg *s);
	int (*map)(struct sci_lseg *s, uint64_t off, size_t len, unsigned int flags,
		   void **addr);
};

/**
 * struct sci_local_ops - segments shared within a node, and memory of programs
 * @attach:	Join a segment that another process of this node shares.
 *		-ENOENT: no such segment; -EACCES: the segment is not shared,
 *		or the caller has no permission.
 * @reg:	Make [@addr, @addr + @len) the memory of an EMPTY segment.
 *		-EFAULT: not private anonymous writable memory of the caller;
 *		-EINVAL: not page aligned, or not the segment's size; -EOPNOTSUPP: not in this fabric.
 * @share:	Let processes of the same node attach.
 * @twin:	Make the memory of @of the memory of the EMPTY segment @s, too. This process has
 *		created @of, which has the size of @s, in another instance of this fabric, and
 *		destroys @s first. -EOPNOTSUPP: the memory cannot belong to two adapters.
 */
struct sci_local_ops {
	int (*attach)(struct sci_fabric *f, const struct sci_lseg_param *p,
		      struct sci_lseg **out);
	int (*reg)(struct sci_lseg *s, void *addr, size_t len);
	int (*share)(struct sci_lseg *s);
	int (*twin)(struct sci_lseg *s, struct sci_lseg *of);
};

/**
 * struct sci_rseg_ops - imported segments
 * @connect:	Connect to a segment. Even a short timeout leaves the peer time to refuse.
 *		The call returns at once if the segment does not exist. -ENOENT: no such
 *		segment, or not exported, also if no process runs on the node yet;
 *		-EHOSTUNREACH: the fabric has no such node; -EACCES: the segment's mode forbids
 *		access; -ETIMEDOUT; -ENETDOWN; -ECANCELED: by cancel_connect. While the call
 *		waits, *@out points at the future import: a child that is forked meanwhile finds
 *		the memory of the import there.
 * @cancel_connect: End the connects, of segments and interrupts, whose parameter has
 *		this @owner. NULL: end all connects, and end later connects at once.
 * @disconnect:	Disconnect. The caller has unmapped all maps before.
 * @size:	Return the size; constant while connected.
 * @readonly:	Return true if only reading is allowed; constant while
 *		connected.
 * @status:	Return the status words, which are valid as long as the import.
 * @map:	Map as lseg.map does. -EACCES: a writable map of a read-only
 *		import; -ENOTCONN: the connection is lost.
 * @store_barrier: Return when all stores through maps of @r (NULL: of all
 *		imports) have arrived. Call it through sci_remote_barrier(),
 *		which applies injected faults.
 */
struct sci_rseg_ops {
	int (*connect)(struct sci_fabric *f, const struct sci_rseg_param *p,
		       struct sci_rseg **out);
	void (*cancel_connect)(struct sci_fabric *f, const void *owner);
	void (*disconnect)(struct sci_rseg *r);
	uint64_t (*size)(struct sci_rseg *r);
	bool (*readonly)(struct sci_rseg *r);
	struct sci_rseg_status *(*status)(struct sci_rseg *r);
	int (*map)(struct sci_rseg *r, uint64_t off, size_t len, unsigned int flags,
		   void **addr);
	void (*store_barrier)(struct sci_fabric *f, struct sci_rseg *r);
};

/**
 * struct sci_lintr_ops - interrupts of this process
 * @create:	Create an interrupt. -EEXIST: the number is taken.
 * @wait:	Wait for a trigger. -ETIMEDOUT; -ECANCELED: after cancel. Data
 *		interrupts: @len is the room on entry and the bytes on return;
 *		-EMSGSIZE: the message is longer than the room: *@len is its
 *		length, and it stays queued. An owner with an event function gets
 *		one event for each data interrupt and fetches the message with
 *		timeout 0, but not inside the event function. Messages that the
 *		owner does not fetch hold the senders back.
 * @fd:		Return a descriptor that polls readable while a trigger is
 *		pending, and after cancel. wait with timeout 0 takes the trigger,
 *		or returns -ETIMEDOUT if another thread has taken it. The
 *		descriptor belongs to the fabric, may only be polled, and is
 *		valid until destroy. -EOPNOTSUPP: a data interrupt, or an
 *		interrupt with an event function.
 * @cancel:	End all waits, and end later waits at once.
 * @destroy:	Free the number.
 */
struct sci_lintr_ops {
	int (*create)(struct sci_fabric *f, struct sci_lintr_param *p,
		      struct sci_lintr **out);
	int (*wait)(struct sci_lintr *i, void *data, size_t *len, uint32_t timeout);
	int (*fd)(struct sci_lintr *i);
	void (*cancel)(struct sci_lintr *i);
	void (*destroy)(struct sci_lintr *i);
};

/**
 * struct sci_rintr_ops - interrupts of other processes
 * @connect:	Connect to an interrupt. -ENOENT: no such number; other errors,
 *		and *@out during the call, as those of rseg.connect.
 * @trigger:	Trigger the interrupt. After 0 the owner receives the trigger, even in a wait
 *		that begins later. -ENOTCONN: the owner has died or destroyed the interrupt;
 *		-ENOBUFS: too much data is queued at the owner, nothing was sent; -EMSGSIZE.
 * @disconnect:	Disconnect.
 */
struct sci_rintr_ops {
	int (*connect)(struct sci_fabric *f, const struct sci_rintr_param *p,
		       struct sci_rintr **out);
	int (*trigger)(struct sci_rintr *i, const void *data, size_t len);
	void (*disconnect)(struct sci_rintr *i);
};

/* A read of bytes of an import. It belongs to the fabric until @done is set. */
struct sci_stream_get {
	struct list link;
	void *dst;
	size_t len;
	uint32_t id;
	int ret;			/* 0 or -errno */
	_Atomic bool done;
};

/* Memory that a peer fills. It belongs to the fabric from target() to target_end(). */
struct sci_stream_target {
	struct list link;
	uint8_t *addr;
	size_t len;
	uint32_t id;
};

/**
 * struct sci_stream_ops - imports that are not memory
 * @below:	Also use fabric @below to reach gateways and nodes, and to be reached by them.
 *		@below must stay open longer than @f. Call this after the first lintr.create.
 * @covers:	Return true if one of the ways to @node is the fabric below.
 * @news:	Call @fn on the fabric's thread when bytes arrive and no thread of the program
 *		polls, and when a new socket continues a broken stream.
 * @poll:	Handle the bytes that have arrived. Return true if any had arrived.
 * @rest:	Let the fabric's own thread handle arriving bytes, as no other thread polls.
 * @put:	Write @len bytes at @addr of the map of @r, after the bytes of earlier puts.
 *		-EAGAIN: no room now, nothing was written; never for
 *		SCI_STREAM_LINE bytes or less.
 * @target:	Let the exporter of @r write to @t->addr, @t->len bytes, and to no other memory:
 *		sets @t->id for @fill. -ENOTCONN.
 * @target_end:	Stop all writes to @t: when the call returns, no thread writes. The bytes that
 *		arrive later are dropped.
 * @fill:	Lend @len bytes at @src to the fabric, which writes them at @off of the target @id that
 *		the exporter of @r has made. Order and errors as for @put, but -EAGAIN also for
 *		few bytes.
 * @lend:	Lend bytes as @fill does, for the segment of @r, at @addr of its map.
 * @take_back:	End all loans of @owner: later changes of the bytes change nothing that the peer
 *		receives. Without this call a loan ends when the peer has acknowledged a later mark.
 * @flush:	Send all bytes that have been put or lent.
 * @push:	Send as @flush does, or hold the bytes back for the bytes of the next messages, if this
 *		message follows another one closely. Return true if bytes are held back: the next
 *		call of @poll, @rest or @flush sends them, or a timer after 100 microseconds.
 * @mark:	Return a number for all bytes that have been put or lent. The peer acknowledges the
 *		number after these bytes. @flush sends it.
 * @arrived:	Return 0 if the peer has acknowledged @mark; -EAGAIN: not yet; -ENOTCONN: not before
 *		the import ended.
 * @get:	Request @g->len bytes, SCI_STREAM_GET at most, at @off of the segment.
 *		-EAGAIN: too many reads are in progress; -ENOTCONN.
 * @get_cancel:	Cancel @g, whether it is done or not.
 */
#define SCI_STREAM_LINE	4096u
#define SCI_STREAM_GET	(256u << 10)

struct sci_stream_ops {
	int (*below)(struct sci_fabric *f, struct sci_fabric *below, unsigned int adapter);
	bool (*covers)(struct sci_fabric *f, unsigned int node);
	void (*news)(struct sci_fabric *f, void (*fn)(void *owner), void *owner);
	bool (*poll)(struct sci_fabric *f);
	void (*rest)(struct sci_fabric *f);
	int (*put)(struct sci_rseg *r, volatile void *addr, const void *src, size_t len);
	int (*target)(struct sci_rseg *r, struct sci_stream_target *t);
	void (*target_end)(struct sci_fabric *f, struct sci_stream_target *t);
	int (*fill)(struct sci_rseg *r, uint32_t id, uint64_t off, const void *src, size_t len,
		    const void *owner);
	int (*lend)(struct sci_rseg *r, volatile void *addr, const void *src, size_t len,
		    const void *owner);
	void (*take_back)(struct sci_fabric *f, const void *owner);
	void (*flush)(struct sci_rseg *r);
	bool (*push)(struct sci_rseg *r);
	uint64_t (*mark)(struct sci_rseg *r);
	int (*arrived)(struct sci_rseg *r, uint64_t mark);
	int (*get)(struct sci_rseg *r, uint64_t off, struct sci_stream_get *g);
	void (*get_cancel)(struct sci_fabric *f, struct sci_stream_get *g);
};

/**
 * struct sci_fabric_place - fabric and node that a process joins
 * @spec: a value of SCI_FABRIC; NULL: the value in the environment
 * @node: node ID; 0: the value of SCI_NODE in the environment
 * @peers: a value of SCI_NET_PEERS; NULL: the value in the environment
 * @spec_from: variable or attribute that has @spec, for messages; NULL: "fabric"
 * @node_from: variable or attribute that has @node, for messages; NULL: "node"
 */
struct sci_fabric_place {
	const char *spec;
	unsigned int node;
	const char *peers;
	const char *spec_from;
	const char *node_from;
};

/**
 * struct sci_fabric_ops - a fabric
 * @name:	The first word of SCI_FABRIC that selects it.
 * @virtual_nodes: Nodes are numbers that processes of this machine choose, not adapters.
 * @present:	Return true if this machine has the fabric: "auto" takes the first fabric that
 *		is present.
 * @open:	Join the fabric at @at; @arg is the text after "NAME:" in
 *		SCI_FABRIC, or NULL. -EINVAL: bad @arg, node or environment;
 *		-ENODEV: no adapter belongs to the node.
 * @close:	Leave the fabric. The caller has destroyed every object before.
 * @stream:	The operations of a fabric whose imports are not memory; else NULL.
 * @unmap:	Undo lseg.map or rseg.map.
 * @renew:	Make [@addr, @addr + @len), for which @local.reg was called, the memory of the segment
 *		again if the program has replaced some of these pages. Importers keep the segment,
 *		but a store of theirs during the call may be lost. Errors as @local.reg; -EFAULT changes
 *		no page, after another error the pages are not of the segment. NULL: the fabric
 *		does not know of such changes.
 * @dma:	Copy one piece now, on the calling thread, which is a DMA worker; with @pull
 *		from the remote segment. -EIO: data was lost. NULL: the fabric has no DMA.
 * @peer_read:	Copy @len bytes from address @src in the private memory of the process that exports
 *		@r to @dst. -EOPNOTSUPP: the kernel or permissions do not allow it, or @r is a
 *		broadcast group; -EFAULT: that process has no such memory (a part of @dst may be
 *		written); -ENOTCONN: it has died, or the connection is lost. NULL: the fabric
 *		cannot.
 * @ring:	Trigger the bell of an imported segment, see struct sci_lseg_param. Without a
 *		bell nothing happens. Returns as rintr.trigger does. NULL: the fabric has no
 *		bells of segments.
 * @pair:	Declare that the only importer of @s, a SCI_LSEG_ONCE segment with a bell, is the
 *		exporter of @r. After the peer has made the same call, the two may share
 *		descriptors. From then on they end together: when one is destroyed,
 *		disconnected or lost, the other is disconnected or lost, too, and a request to
 *		disconnect may arrive only when the peer waits for its bell. The call never
 *		waits. -EINVAL: there is no such importer now, or it may be another process;
 *		nothing has changed. NULL: the fabric has nothing to share.
 * @wake_barrier: Do the slow half of an asymmetric fence. A receiver announces
 *		in a sender's memory that it is going to sleep, calls this, and
 *		checks for messages again. A sender stores a message and then loads
 *		the announcement; the compiler keeps that order, without a fence.
 *		After wake_barrier, this holds for every process that takes part (its
 *		sci_adapter_info.wake_barrier): if its load did not see the
 *		announcement, then the caller sees all stores to segments that precede
 *		the load in program order. If either process does not take part, both need
 *		sci_full_barrier() in that place. -EOPNOTSUPP: this process does not take part.
 */
struct sci_fabric_ops {
	const char *name;
	bool virtual_nodes;
	bool (*present)(void);
	int (*open)(struct sci_fabric **out, const struct sci_fabric_place *at,
		    const char *arg);
	void (*close)(struct sci_fabric *f);

	struct sci_query_ops query;
	struct sci_lseg_ops lseg;
	struct sci_local_ops local;
	struct sci_rseg_ops rseg;
	struct sci_lintr_ops lintr;
	struct sci_rintr_ops rintr;
	const struct sci_stream_ops *stream;

	void (*unmap)(struct sci_fabric *f, void *addr, size_t len);
	int (*renew)(struct sci_lseg *s, void *addr, size_t len);
	int (*dma)(struct sci_lseg *s, struct sci_rseg *r, const struct sci_dma_piece *piece,
		   bool pull);
	int (*peer_read)(struct sci_rseg *r, void *dst, uint64_t src, size_t len);
	int (*ring)(struct sci_rseg *r);
	int (*pair)(struct sci_lseg *s, struct sci_rseg *r);
	int (*wake_barrier)(struct sci_fabric *f);
};

/**
 * struct sci_fabric - an open fabric; the structure of each fabric begins with one
 * @ops: its operations
 * @users: calls of sci_fabric_share() that share it, 0: it is not shared
 * @settings: the settings with which it was opened, if it is shared
 * @shared: link in the list of shared fabrics
 * @forks: forks that led to the process that has opened it
 */
struct sci_fabric {
	const struct sci_fabric_ops *ops;
	unsigned int users;
	char *settings;
	struct list shared;
	unsigned int forks;
};

/* ---- operations that a fabric may lack: -EOPNOTSUPP ---- */

static inline int sci_lseg_attach(struct sci_fabric *f, const struct sci_lseg_param *p,
				  struct sci_lseg **out)
{
	return f->ops->local.attach ? f->ops->local.attach(f, p, out) : -EOPNOTSUPP;
}

static inline int sci_lseg_register(struct sci_fabric *f, struct sci_lseg *s, void *addr,
				    size_t len)
{
	return f->ops->local.reg ? f->ops->local.reg(s, addr, len) : -EOPNOTSUPP;
}

static inline int sci_lseg_renew(struct sci_fabric *f, struct sci_lseg *s, void *addr,
				 size_t len)
{
	return f->ops->renew ? f->ops->renew(s, addr, len) : 0;
}

static inline int sci_lseg_share(struct sci_fabric *f, struct sci_lseg *s)
{
	return f->ops->local.share ? f->ops->local.share(s) : -EOPNOTSUPP;
}

static inline int sci_lseg_twin(struct sci_fabric *f, struct sci_lseg *s, struct sci_lseg *of)
{
	return f->ops->local.twin ? f->ops->local.twin(s, of) : -EOPNOTSUPP;
}

static inline int sci_dma_copy(struct sci_fabric *f, struct sci_lseg *s,
			       struct sci_rseg *r, const struct sci_dma_piece *piece,
			       bool pull)
{
	return f->ops->dma ? f->ops->dma(s, r, piece, pull) : -EOPNOTSUPP;
}

static inline int sci_pair(struct sci_fabric *f, struct sci_lseg *s, struct sci_rseg *r)
{
	return f->ops->pair ? f->ops->pair(s, r) : -EOPNOTSUPP;
}

static inline int sci_peer_read(struct sci_fabric *f, struct sci_rseg *r, void *dst,
				uint64_t src, size_t len)
{
	return f->ops->peer_read ? f->ops->peer_read(r, dst, src, len) : -EOPNOTSUPP;
}

extern const struct sci_fabric_ops sci_dev_fabric;
extern const struct sci_fabric_ops sci_shm_fabric;
/* The net fabric. SCI_FABRIC cannot select it. The @arg of its open is a value of SCI_NET. */
extern const struct sci_fabric_ops sci_net_fabric;

/* Return the fabric that @spec, a value of SCI_FABRIC, names; NULL: @spec names no fabric. */
const struct sci_fabric_ops *sci_fabric_find(const char *spec);

#define SCI_GATEWAY_FABRICS	16u	/* limit of the fabrics of a gateway */

/**
 * sci_gateway_open() - relay for processes that cannot reach each other
 * @fabrics: @n values of SCI_FABRIC: the clusters to join
 * @node: node of this process, the same on all adapters
 * @net: a value of SCI_NET
 *
 * Other settings are from the environment. The gateway runs on its own threads until its close
 * operation. -ENOSPC: @n exceeds SCI_GATEWAY_FABRICS; -EEXIST: the node has a gateway already.
 */
int sci_gateway_open(struct sci_fabric **out, const char *const *fabrics, unsigned int n,
		     unsigned int node, const char *net);

/**
 * sci_fabric_open() - join the fabric that the environment selects
 * @out: the fabric
 *
 * SCI_FABRIC is "auto" (default), "dev", "dev:DEVICE,...", "shm" or
 * "shm:CLUSTER"; -ENODEV: this machine lacks the fabric; -EINVAL: another value.
 *
 * The first open fabric of a process reads SCI_PIO and SCI_FAULT for all of them. -EINVAL, with
 * a message: also for an invalid SCI_FAULT.
 */
int sci_fabric_open(struct sci_fabric **out);

/* Open the fabric at @at; settings that are not in @at are from the environment. */
int sci_fabric_open_at(struct sci_fabric **out, const struct sci_fabric_place *at);

/*
 * As sci_fabric_open_at(), but all calls of a process with the same settings get the same fabric,
 * so that it has one thread and one set of descriptors for all of them.
 */
int sci_fabric_share(struct sci_fabric **out, const struct sci_fabric_place *at);

/* Close a fabric; a shared one when its last user closes it. */
void sci_fabric_close(struct sci_fabric *f);

#endif
