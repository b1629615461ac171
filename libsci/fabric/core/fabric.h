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
 *    SISCI codes), never touches errno on purpose, leaves nothing behind when
 *    it fails;
 *  - may be called from any thread, but the caller never calls an operation on
 *    an object while another thread destroys that object;
 *  - does not call back into the caller, except through sci_event_fn, which
 *    runs on a thread of the fabric's, with fabric locks held: it may queue and
 *    wake, it must not block and must not call the fabric;
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
	SCI_EVENT_CONNECT,		/* a peer connected, or this side did */
	/* the connection ended in good order, or its owner asks for its end */
	SCI_EVENT_DISCONNECT,
	SCI_EVENT_LOST,			/* the peer died */
	SCI_EVENT_NOT_OPERATIONAL,	/* the link went down ... */
	SCI_EVENT_OPERATIONAL,		/* ... and came back */
	SCI_EVENT_INTERRUPT,		/* a data interrupt arrived: fetch it by lintr_wait */
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
	const char *device;		/* its file in /dev; NULL: none */
	uint64_t serial;
	bool link_up;
	size_t att_page_size;
	unsigned int att_entries;
	unsigned int att_available;
	unsigned int streams;		/* write stream buffers ... */
	size_t stream_size;		/* ... and their size */
	size_t dma_mtu;
	size_t dma_size_align;
	size_t dma_offset_align;
	size_t min_dma_size;		/* below it stores are faster */
	size_t min_block_size;
	unsigned int mcast_groups;
	/* the process takes part in the wake barrier, and can call it */
	bool wake_barrier;
	bool register_copies;		/* registered memory gets new pages: a copy */
	unsigned int bdf;		/* bus << 8 | devfn; 0: no bus */
	uint64_t link_up_ms;		/* since the link came up */
	uint64_t link_down_ms;		/* in total */
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
	bool remote;			/* of another machine */
};

enum {
	SCI_LSEG_PRIVATE	= 1 << 0,	/* no id: no peer can connect */
	SCI_LSEG_EMPTY		= 1 << 1,	/* memory comes later */
	SCI_LSEG_AUTO_ID	= 1 << 2,	/* the fabric takes a free id at or above .id */
	SCI_LSEG_BROADCAST	= 1 << 3,	/* member of group .id */
	SCI_LSEG_UNICAST	= 1 << 4,	/* ... and reachable on its own */
	/* one importer connects; the fabric may refuse others, and later maps of the owner */
	SCI_LSEG_ONCE		= 1 << 5,
};

struct sci_lseg_param {
	uint32_t id;
	uint64_t size;			/* > 0 */
	unsigned int flags;		/* SCI_LSEG_* */
	sci_event_fn event;		/* must not be NULL */
	void *owner;
	/* ops->ring triggers it, if there is one: a plain interrupt that outlives the segment */
	struct sci_lintr *bell;
};

enum sci_unexport {
	SCI_UNEXPORT_QUIET,		/* no new importer may connect */
	SCI_UNEXPORT_NOTIFY,		/* as QUIET, and tell the present importers */
	SCI_UNEXPORT_FORCE,		/* as QUIET, and cut off the present importers */
};

struct sci_rseg_param {
	unsigned int adapter;
	unsigned int node;		/* or SCI_NODE_GROUP */
	uint32_t id;
	uint32_t port;			/* a data interrupt of its owner's; 0: not known */
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
 * @errors, so every transfer under way at that time is sent again.  The kernel writes @errors
 * and @down.  An adapter that counts by itself writes @hw_errors and @hw_down, little-endian;
 * else they are 0.
 */
struct sci_link_words {
	uint32_t errors;		/* packets lost: send again */
	uint32_t down;			/* != 0: link not operational */
	uint32_t reserved[14];
	uint32_t hw_errors;		/* lost packets, as errors */
	uint32_t hw_down;		/* link not operational, as down */
};

struct sci_link_status;

/**
 * struct sci_cache_ops - the caches of a fabric that does not keep them coherent
 * @write_back:	Start to write the lines of [@addr, @addr + @len) back to memory.
 * @fence:	Return when memory has all lines whose write-back was started.
 * @refresh:	Write the lines back and drop them, before this returns: the next load
 *		sees memory, and memory has what was stored.
 *
 * Ranges are of maps, of own and of remote segments.  A line of 64 bytes is written
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
	enum sci_pio_map map;		/* how stores to its maps are to be made */
	/* counters of the adapter, read only; NULL: the adapter loses nothing */
	const struct sci_link_words *adapter;
	/*
	 * A store to this word, of any value, empties the stream buffers. NULL: lines leave by
	 * themselves. A line in a buffer of 128 bytes waits for a second line.
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
 * The first and the last line also hold bytes outside of the range: write back the newest of them.
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

/* The status of one import; lives as long as the import. */
struct sci_rseg_status {
	_Atomic uint32_t gone;		/* != 0: connection lost */
	struct sci_link_status *link;
};

enum {
	SCI_INTR_FIXED		= 1 << 0,	/* the caller chooses the number */
	SCI_INTR_SHARED		= 1 << 1,	/* it may have several owners */
	SCI_INTR_COUNTING	= 1 << 2,	/* triggers are not merged */
	SCI_INTR_DATA		= 1 << 3,	/* triggers carry bytes */
};

struct sci_lintr_param {
	unsigned int adapter;
	/* SCI_INTR_FIXED: the number wanted; on return the number */
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
};

/* One piece of a DMA transfer, always between a local and a remote segment. */
struct sci_dma_piece {
	uint64_t local;
	uint64_t remote;
	uint64_t len;
};

struct sci_fabric;
struct sci_lseg;			/* exported side of a segment */
struct sci_rseg;			/* imported side */
struct sci_lintr;
struct sci_rintr;

/*
 * The operations are in groups.  A fabric has the groups query, lseg, rseg, lintr
 * and rintr whole.  It may leave out the groups local and copy: callers use
 * sci_lseg_attach(), sci_peer_read() and the other functions below, which return
 * -EOPNOTSUPP then.  It may leave out wake_barrier if no process takes part:
 * callers read sci_adapter_info.wake_barrier before a call.
 */

/**
 * struct sci_query_ops - adapters, nodes and segments
 * @adapter:	Describe an adapter. -ENODEV: there is no such adapter.
 * @link:	Return the link status of an adapter, which must exist. The
 *		status lives as long as the fabric.
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
 *		the id.
 * @export:	Let importers connect through an adapter from now on.
 * @unexport:	Let no new importer connect; see enum sci_unexport.
 * @importers:	Return how many importers are connected.
 * @destroy:	Free the id and the memory at once. Connected importers are cut
 *		off and told. Maps of this process stay valid until they are
 *		unmapped.
 * @id:		Return the id; constant after create and attach.
 * @size:	Return the size; constant after create, attach and register.
 * @map:	Map [@off, @off + @len), which the caller has checked against
 *		the size. @off may be any. With SCI_MAP_FIXED *@addr is the
 *		address wanted. -EADDRNOTAVAIL: that address is taken or
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
 *		-ENOENT: there is none; -EACCES: it is not shared, or not
 *		permitted.
 * @reg:	Make [@addr, @addr + @len) the memory of an EMPTY segment.
 *		-EFAULT: not private anonymous writable memory of the caller;
 *		-EINVAL: not page aligned; -EOPNOTSUPP: the fabric cannot.
 * @share:	Let processes of the same node attach.
 */
struct sci_local_ops {
	int (*attach)(struct sci_fabric *f, const struct sci_lseg_param *p,
		      struct sci_lseg **out);
	int (*reg)(struct sci_lseg *s, void *addr, size_t len);
	int (*share)(struct sci_lseg *s);
};

/**
 * struct sci_rseg_ops - imported segments
 * @connect:	Connect to a segment. The peer has time to refuse, however short the timeout.
 *		The call returns at once if there is nothing to connect to. -ENOENT: no such
 *		segment, or not exported, also if no process runs on the node yet;
 *		-EHOSTUNREACH: the fabric has no such node; -EACCES: the segment's mode forbids
 *		it; -ETIMEDOUT; -ENETDOWN; -ECANCELED: by cancel_connect. While the call waits,
 *		*@out points at the future import: a child that is forked meanwhile finds its
 *		memory there.
 * @cancel_connect: End a connect that waits for its peer; @owner is the
 *		parameter's. NULL ends all of them, and all later ones at once.
 * @disconnect:	Disconnect. Maps must be gone.
 * @size:	Return the size; constant while connected.
 * @readonly:	Return whether only reading is allowed; constant while
 *		connected.
 * @status:	Return the status words; they live as long as the import.
 * @map:	Map as lseg.map does. -EACCES: a writable map of a read-only
 *		import; -ENOTCONN: the connection is gone.
 * @store_barrier: Return when all stores through maps of @r (NULL: of all
 *		imports) have arrived. Call it through sci_remote_barrier(),
 *		which knows of injected faults.
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
 *		-EMSGSIZE: the message is longer than the room, *@len says how
 *		long, and it stays queued. An owner with an event function gets
 *		one event for each data interrupt and fetches it with timeout 0,
 *		not in the up-call; messages that it does not fetch hold the
 *		senders back.
 * @fd:		Return a descriptor that polls readable while a trigger waits
 *		for wait (which takes it with timeout 0, or returns -ETIMEDOUT)
 *		and after cancel. It belongs to the fabric, is only to be polled
 *		and is valid until destroy. Another waiting thread may take the
 *		trigger first. -EOPNOTSUPP: a data interrupt, or one with an
 *		event function.
 * @cancel:	End all present and later waits.
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
 *		and *@out meanwhile, as those of rseg.connect.
 * @trigger:	Trigger it. After 0 the owner will see it, even in a wait that begins later.
 *		-ENOTCONN: its owner is gone; -ENOBUFS: too much data is queued at the owner,
 *		nothing was sent; -EMSGSIZE.
 * @disconnect:	Disconnect.
 */
struct sci_rintr_ops {
	int (*connect)(struct sci_fabric *f, const struct sci_rintr_param *p,
		       struct sci_rintr **out);
	int (*trigger)(struct sci_rintr *i, const void *data, size_t len);
	void (*disconnect)(struct sci_rintr *i);
};

/**
 * struct sci_copy_ops - copies that the fabric makes
 * @dma:	Copy one piece now, on the calling thread, which is a DMA
 *		worker; with @pull from the remote side. -EIO: data was lost.
 * @peer_read:	Copy @len bytes from address @src in the private memory of the
 *		process that exports @r to @dst. -EOPNOTSUPP: fabric, kernel or
 *		permissions do not allow it, or @r is a broadcast group;
 *		-EFAULT: no such memory there (a part of @dst may be written);
 *		-ENOTCONN: the process or the connection is gone.
 */
struct sci_copy_ops {
	int (*dma)(struct sci_lseg *s, struct sci_rseg *r,
		   const struct sci_dma_piece *piece, bool pull);
	int (*peer_read)(struct sci_rseg *r, void *dst, uint64_t src, size_t len);
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

/**
 * struct sci_stream_ops - imports that are not memory
 * @below:	Also use @below to reach gateways and to be reached by them. It stays open
 *		longer. Call it after the first lintr.create.
 * @news:	Call @fn on the fabric's thread when bytes arrive and no thread of the program
 *		polls.
 * @poll:	Handle the bytes that have arrived. Return true if there were any.
 * @rest:	No thread polls any more: the fabric's own thread handles arriving bytes.
 * @put:	Write @len bytes at @addr of the map of @r, after all earlier ones.
 *		-EAGAIN: no room now, nothing was written; never for
 *		SCI_STREAM_LINE bytes or less.
 * @flush:	Send what has been put.
 * @mark:	Send all that has been put so far, and return a number for it. The peer
 *		acknowledges it.
 * @arrived:	Return 0 if the peer has acknowledged @mark; -EAGAIN: not yet; -ENOTCONN.
 * @get:	Ask for @g->len bytes, SCI_STREAM_GET at most, at @off of the segment.
 *		-EAGAIN: too many reads are under way; -ENOTCONN.
 * @get_cancel:	Forget @g, done or not.
 */
#define SCI_STREAM_LINE	4096u
#define SCI_STREAM_GET	(256u << 10)

struct sci_stream_ops {
	int (*below)(struct sci_fabric *f, struct sci_fabric *below, unsigned int adapter);
	void (*news)(struct sci_fabric *f, void (*fn)(void *owner), void *owner);
	bool (*poll)(struct sci_fabric *f);
	void (*rest)(struct sci_fabric *f);
	int (*put)(struct sci_rseg *r, volatile void *addr, const void *src, size_t len);
	void (*flush)(struct sci_rseg *r);
	uint64_t (*mark)(struct sci_rseg *r);
	int (*arrived)(struct sci_rseg *r, uint64_t mark);
	int (*get)(struct sci_rseg *r, uint64_t off, struct sci_stream_get *g);
	void (*get_cancel)(struct sci_fabric *f, struct sci_stream_get *g);
};

/**
 * struct sci_fabric_place - where to join
 * @spec: as SCI_FABRIC; NULL: its value
 * @node: 0: the value of SCI_NODE
 * @peers: as SCI_NET_PEERS; NULL: its value
 */
struct sci_fabric_place {
	const char *spec;
	unsigned int node;
	const char *peers;
};

/**
 * struct sci_fabric_ops - a fabric
 * @name:	The first word of SCI_FABRIC that selects it.
 * @virtual_nodes: Nodes are numbers that processes of this machine choose, not adapters.
 * @present:	Return whether this machine has the fabric: "auto" takes the first fabric that
 *		is present.
 * @open:	Join at @at; @arg is the text after "NAME:" of its fabric, or
 *		NULL. -EINVAL: bad @arg, node or environment; -ENODEV: no
 *		adapter belongs to the node.
 * @close:	Leave. Every object has been destroyed before.
 * @stream:	The operations of a fabric whose imports are no memory; else NULL.
 * @unmap:	Undo lseg.map or rseg.map.
 * @ring:	Trigger the bell of an imported segment, see struct sci_lseg_param. Without a
 *		bell nothing happens. Returns as rintr.trigger does. NULL: the fabric has no
 *		bells of segments.
 * @wake_barrier: Do the slow half of an asymmetric fence. A receiver announces
 *		in a sender's memory that it is going to sleep, calls this, and
 *		looks once more. A sender stores a message and then loads the
 *		announcement; the compiler keeps that order, and no fence does.
 *		On return, for every process that takes part (its
 *		sci_adapter_info.wake_barrier): each of its stores to segments
 *		that came, in program order, before a load of the announcement
 *		which did not see it, is visible to the caller. If either process does not take
 *		part, both need sci_full_barrier() in that place. -EOPNOTSUPP: this process does
 *		not take part.
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
	struct sci_copy_ops copy;
	const struct sci_stream_ops *stream;

	void (*unmap)(struct sci_fabric *f, void *addr, size_t len);
	int (*ring)(struct sci_rseg *r);
	int (*wake_barrier)(struct sci_fabric *f);
};

/* The structure of each fabric begins with a struct sci_fabric. */
struct sci_fabric {
	const struct sci_fabric_ops *ops;
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

static inline int sci_lseg_share(struct sci_fabric *f, struct sci_lseg *s)
{
	return f->ops->local.share ? f->ops->local.share(s) : -EOPNOTSUPP;
}

static inline int sci_dma_copy(struct sci_fabric *f, struct sci_lseg *s,
			       struct sci_rseg *r, const struct sci_dma_piece *piece,
			       bool pull)
{
	return f->ops->copy.dma ? f->ops->copy.dma(s, r, piece, pull) : -EOPNOTSUPP;
}

static inline int sci_peer_read(struct sci_fabric *f, struct sci_rseg *r, void *dst,
				uint64_t src, size_t len)
{
	return f->ops->copy.peer_read ? f->ops->copy.peer_read(r, dst, src, len) :
					-EOPNOTSUPP;
}

extern const struct sci_fabric_ops sci_dev_fabric;
extern const struct sci_fabric_ops sci_shm_fabric;
/* SCI_FABRIC cannot select the net fabric. Its @arg is as SCI_NET. */
extern const struct sci_fabric_ops sci_net_fabric;

/* Return the fabric that @spec selects, as SCI_FABRIC; NULL: none, or automatic choice. */
const struct sci_fabric_ops *sci_fabric_find(const char *spec);

/**
 * sci_gateway_open() - relay for processes that cannot reach each other
 * @fabrics: as SCI_FABRIC, @n of them: the clusters to join
 * @node: node of this process, the same on all adapters
 * @net: as SCI_NET
 *
 * The environment says the rest. Close it with its close operation. It runs on threads of its
 * own. -ENOSPC: too many fabrics; -EEXIST: the node has a gateway.
 */
int sci_gateway_open(struct sci_fabric **out, const char *const *fabrics, unsigned int n,
		     unsigned int node, const char *net);

/**
 * sci_fabric_open() - join the fabric the environment asks for
 * @out: the fabric
 *
 * SCI_FABRIC is "auto" (default), "dev", "dev:DEVICE,...", "shm" or
 * "shm:CLUSTER"; -ENODEV: this machine lacks the fabric; -EINVAL: another word.
 *
 * The first open fabric of a process reads SCI_PIO and SCI_FAULT for all of them. -EINVAL, with
 * a message: also for an invalid SCI_FAULT.
 */
int sci_fabric_open(struct sci_fabric **out);

/* Open a fabric as @at says; the environment says the rest. */
int sci_fabric_open_at(struct sci_fabric **out, const struct sci_fabric_place *at);

void sci_fabric_close(struct sci_fabric *f);

#endif
