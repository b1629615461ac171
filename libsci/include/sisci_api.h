/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * The SISCI API: shared memory between nodes, at user level.
 *
 * The header has both generations of the interface: programs written for 1.10
 * and for 2.x compile with it, as C89 and later and as C++.
 *
 * Rules that hold for every function
 *
 *  - `error` receives SCI_ERR_OK or an error code.  It may be NULL.
 *  - A call that fails has no effect.  It does not write output parameters other
 *    than `error`, unless its description says so.
 *  - Before SCIInitialize(), after SCITerminate() and in a child after fork()
 *    every call fails with SCI_ERR_NOT_INITIALIZED.
 *  - A handle that is NULL, stale, invalid or of another kind gives
 *    SCI_ERR_ILLEGAL_PARAMETER; so does a NULL output pointer.
 *  - A flag that the function does not have gives SCI_ERR_ILLEGAL_FLAG.  A flag
 *    for a feature that this fabric lacks gives SCI_ERR_FLAG_NOT_IMPLEMENTED.
 *  - adapter: 0..15, else SCI_ERR_ILLEGAL_ADAPTERNO; a number without an adapter
 *    gives SCI_ERR_NO_SUCH_ADAPTERNO.
 *  - node: a multiple of 4 from 4 to 65532, else SCI_ERR_ILLEGAL_NODEID; a node
 *    that the fabric does not have gives SCI_ERR_NO_SUCH_NODEID.  SCI_LOCAL_HOST
 *    is the caller's own node.
 *  - Sizes and offsets are in bytes; a range that is not inside its segment or
 *    map gives SCI_ERR_OUT_OF_RANGE.
 *  - Timeouts are in milliseconds; SCI_INFINITE_TIMEOUT waits for ever.
 *  - Memory, address space or descriptors exhausted: SCI_ERR_NOSPC.  Other
 *    errors of the operating system: SCI_ERR_SYSTEM with errno.
 *  - Any function may be called from any thread, and from callbacks.  The
 *    removal of an object ends waits of other threads for the object with
 *    SCI_ERR_CANCELLED.  A signal handler that removes the object for which its
 *    own thread waits gets SCI_ERR_BUSY.  As with munmap(), no thread may store
 *    through a map while another thread unmaps it.
 *  - SCIWaitForInterrupt(), SCIWaitForDataInterrupt(),
 *    SCIWaitForLocalSegmentEvent() and SCIWaitForRemoteSegmentEvent() are
 *    cancellation points, also for pthread_cancel() of the asynchronous kind.
 *    Other calls that take a lock or wait end before the thread is cancelled.
 *  - The creator owns an object and frees it with the matching Remove,
 *    Disconnect, Unmap or Close; SCITerminate() and the death of the process
 *    free all objects.
 *
 * "Errors:" in a function's comment lists the codes special to it, without SCI_ERR_;
 * "none special" means that it has only the codes of these rules.
 */
#ifndef _SISCI_API_H
#define _SISCI_API_H

#include "sisci_types.h"
#include "sisci_error.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Flags. Values are this library's own, except for those of SCICheckSequence(): programs pass these
 * as the numbers 1 and 2. Flags for the same function differ. Flags of maps share bits with flags
 * of segments, flags of interrupts and cache operations with flags of transfers, and flags of
 * SCICheckSequence() with flags of several kinds of objects.
 */

/* flags for several kinds of objects */
#define SCI_FLAG_USE_CALLBACK			0x00000001u
#define SCI_FLAG_BROADCAST			0x00000002u
#define SCI_FLAG_THREAD_SAFE			0x00000004u

/* segments */
#define SCI_FLAG_EMPTY				0x00000008u
#define SCI_FLAG_PRIVATE			0x00000010u
#define SCI_FLAG_ALLOW_UNICAST			0x00000020u
#define SCI_FLAG_AUTO_ID			0x00000040u
#define SCI_FLAG_ASYNCHRONOUS_CONNECT		0x00000080u
#define SCI_FLAG_FORCE_DISCONNECT		0x00000100u
#define SCI_FLAG_NOTIFY				0x00000200u
#define SCI_FLAG_DMA_SOURCE_ONLY		0x00000400u
#define SCI_FLAG_FORCE_REMOVE			0x00000800u
#define SCI_FLAG_CUDA_BUFFER			0x00001000u
#define SCI_FLAG_LOCK_USER_MEM			0x00002000u
#define SCI_FLAG_EXCLUSIVE			0x00004000u
#define SCI_FLAG_SHARED				0x00008000u

/* maps */
#define SCI_FLAG_FIXED_MAP_ADDR			0x00000008u
#define SCI_FLAG_READONLY_MAP			0x00000010u
#define SCI_FLAG_LOCK_OPERATION			0x00000020u
#define SCI_FLAG_READ_PREFETCH_AGGR_HOLD_MAP	0x00000040u
#define SCI_FLAG_READ_PREFETCH_NO_HOLD_MAP	0x00000080u
#define SCI_FLAG_IO_MAP_IOSPACE			0x00000100u
#define SCI_FLAG_DMOVE_MAP			0x00000200u
#define SCI_FLAG_WRITES_DISABLE_GATHER_MAP	0x00000400u
#define SCI_FLAG_DISABLE_128_BYTES_PACKETS	0x00000800u
#define SCI_FLAG_CONDITIONAL_INTERRUPT_MAP	0x00001000u
#define SCI_FLAG_UNCONDITIONAL_DATA_INTERRUPT_MAP 0x00002000u
#define SCI_FLAG_WRITE_BACK_CACHE_MAP		0x00004000u
#define SCI_FLAG_NO_MEMORY_LOOPBACK_MAP		0x00008000u

/* transfers, sequences, barriers */
#define SCI_FLAG_BLOCK_READ			0x00010000u
#define SCI_FLAG_ERROR_CHECK			0x00020000u
#define SCI_FLAG_FAST_BARRIER			0x00100000u
#define SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY		0x00200000u

/* SCICheckSequence() */
#define SCI_FLAG_NO_FLUSH			0x00000001u
#define SCI_FLAG_NO_STORE_BARRIER		0x00000002u

/* interrupts */
#define SCI_FLAG_FIXED_INTNO			0x00010000u
#define SCI_FLAG_SHARED_INT			0x00020000u
#define SCI_FLAG_COUNTING_INT			0x00040000u
#define SCI_FLAG_CONDITIONAL_INTERRUPT		0x00080000u

/* flags of SCICacheSync() and of PCIe requesters */
#define SCI_FLAG_CACHE_FLUSH			0x00010000u
#define SCI_FLAG_CACHE_INVALIDATE		0x00020000u
#define SCI_FLAG_PCIE_REQUESTER_GLOBAL		0x00040000u

/* DMA */
#define SCI_FLAG_DMA_READ			0x00400000u
#define SCI_FLAG_DMA_POST			0x00800000u
#define SCI_FLAG_DMA_WAIT			0x01000000u
#define SCI_FLAG_DMA_RESET			0x02000000u
#define SCI_FLAG_DMA_PHDMA			0x04000000u
#define SCI_FLAG_DMA_GLOBAL			0x08000000u
#define SCI_FLAG_DMA_SYSDMA			0x10000000u
#define SCI_FLAG_DMA_ADAPTER			0x20000000u

/* old spelling of SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY */
#define FLUSH_CPU_BUFFERS_ONLY			SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY

#define SCI_INFINITE_TIMEOUT			0xffffffffu
#define SCI_LOCAL_HOST				0xfffffffeu
#define DIS_BROADCAST_NODEID_GROUP_ALL		0x00010000u

/* ---- the library ---- */

/**
 * SCIInitialize() - initialize the library and join the fabric
 * @flags: 0
 *
 * The environment selects the fabric and the node (libsci(7)). A second call does nothing.
 * Errors: ILLEGAL_PARAMETER: a variable of the environment is invalid (a line on standard error
 * names the variable); NO_SUCH_ADAPTERNO: the selected fabric is not on this machine.
 */
void SCIInitialize(unsigned int flags, sci_error_t *error);

/**
 * SCITerminate() - leave the fabric and release all resources
 *
 * All handles become invalid, the library removes all maps, and connected peers
 * get an event.  In a callback, and in a signal handler that interrupted a call of
 * this library, the call does nothing: the exit of the process releases the resources.
 */
void SCITerminate(void);

/**
 * SCIOpen() - open a virtual device, to which other objects belong
 * @sd: the device
 * @flags: SCI_FLAG_THREAD_SAFE, without effect: devices are always thread-safe
 * Errors: none special.
 */
void SCIOpen(sci_desc_t *sd, unsigned int flags, sci_error_t *error);

/**
 * SCIClose() - close a virtual device
 * @flags: 0
 * Errors: BUSY: objects made with @sd still exist.  The call disconnects a remote
 * segment that is not mapped and whose owner has removed it or died.
 */
void SCIClose(sci_desc_t sd, unsigned int flags, sci_error_t *error);

/* ---- local segments ---- */

/*
 * SCIPrepareSegment(), SCISetSegmentAvailable(), SCISetSegmentUnavailable(),
 * SCIShareSegment() and SCIRemoveSegment() accept each other's flags.  A flag
 * has an effect only in the call whose description names it.
 */

/**
 * SCICreateSegment() - allocate memory that other nodes may use
 * @segmentId: any 32-bit number that is not in use on this node
 * @size: bytes, at least 1; the call reserves memory for all of them
 * @callback, @callbackArg: with SCI_FLAG_USE_CALLBACK: called when peers connect or disconnect
 * @flags: USE_CALLBACK; EMPTY: memory comes from SCIRegisterSegmentMemory(); PRIVATE: never
 *	exported, has no id; AUTO_ID: a free id at or above @segmentId; BROADCAST: member of group
 *	@segmentId, whose segments hold the same data on every node; ALLOW_UNICAST: peers can
 *	also connect to this member of a group alone; DMA_GLOBAL: a hint
 * Errors: SEGMENTID_USED: the id is in use on this node, or by a group of another size.
 * SIZE_ALIGNMENT: @size is 0.  NOSPC: this machine does not have so much memory.  ACCESS: the
 * mode of the group's first member excludes this user.  ILLEGAL_FLAG: BROADCAST with PRIVATE.
 * FLAG_NOT_IMPLEMENTED: BROADCAST with EMPTY.
 */
void SCICreateSegment(sci_desc_t sd, sci_local_segment_t *segment,
		      unsigned int segmentId, size_t size,
		      sci_cb_local_segment_t callback, void *callbackArg,
		      unsigned int flags, sci_error_t *error);

/**
 * SCIPrepareSegment() - make a segment reachable by an adapter
 * @flags: DMA_SOURCE_ONLY: only local DMA uses the segment; DMA_GLOBAL, BROADCAST: hints
 * Errors: ILLEGAL_OPERATION: an EMPTY segment without memory.
 */
void SCIPrepareSegment(sci_local_segment_t segment,
		       unsigned int localAdapterNo, unsigned int flags,
		       sci_error_t *error);

/**
 * SCISetSegmentAvailable() - let other nodes connect to a segment
 * @flags: no flags of its own
 * Errors: SEGMENT_NOT_PREPARED: the segment is not prepared for this adapter.
 * ILLEGAL_OPERATION: the segment is PRIVATE, attached, or prepared as DMA_SOURCE_ONLY.
 */
void SCISetSegmentAvailable(sci_local_segment_t segment,
			    unsigned int localAdapterNo, unsigned int flags,
			    sci_error_t *error);

/**
 * SCISetSegmentUnavailable() - refuse further connections to a segment
 * @flags: NOTIFY: connected peers get SCI_CB_DISCONNECT and may go on using the
 *	segment; FORCE_DISCONNECT: connected peers get SCI_CB_DISCONNECT and lose the connection
 * Errors: ILLEGAL_OPERATION: the segment is not available on this adapter.
 */
void SCISetSegmentUnavailable(sci_local_segment_t segment,
			      unsigned int localAdapterNo, unsigned int flags,
			      sci_error_t *error);

/**
 * SCIRemoveSegment() - free a segment
 * @flags: FORCE_REMOVE: free the segment also while peers are connected or maps exist; peers
 *	get SCI_CB_DISCONNECT, maps of this process stay until they are unmapped
 * Errors: BUSY: maps, connected peers or a DMA queue use the segment. Connected peers do not cause
 * BUSY in a callback, because a callback cannot wait for peers, and after
 * SCISetSegmentUnavailable() with NOTIFY or FORCE_DISCONNECT. Then peers get SCI_CB_DISCONNECT,
 * their maps can be accessed until they unmap them, and the id is free.
 */
void SCIRemoveSegment(sci_local_segment_t segment, unsigned int flags,
		      sci_error_t *error);

/**
 * SCIMapLocalSegment() - map a local segment into the process
 * @offset, @size: the part, at any offset
 * @addr: the address, with FIXED_MAP_ADDR; otherwise ignored
 * @flags: FIXED_MAP_ADDR, READONLY_MAP
 * Return: the address of byte @offset, or NULL.
 * Errors: SIZE_ALIGNMENT: @size is 0.  ILLEGAL_ADDRESS: @addr is in use or NULL.
 * OFFSET_ALIGNMENT: @addr and @offset differ modulo the page size.
 * ILLEGAL_OPERATION: an EMPTY segment without memory.
 */
void *SCIMapLocalSegment(sci_local_segment_t segment, sci_map_t *map,
			 size_t offset, size_t size, void *addr,
			 unsigned int flags, sci_error_t *error);

/**
 * SCIShareSegment() - let other processes of this node attach a segment
 * @flags: no flags of its own
 * Errors: ILLEGAL_OPERATION: the segment is PRIVATE or attached.
 */
void SCIShareSegment(sci_local_segment_t segment, unsigned int flags,
		     sci_error_t *error);

/**
 * SCIAttachLocalSegment() - use a segment that another process of this node created and shared
 * @size: receives the segment's size; may be NULL
 * @flags: USE_CALLBACK; BROADCAST: a hint
 *
 * The handle is for maps and DMA sources.  The id belongs to the creator.  When the
 * creator dies (SCI_CB_LOST) or removes the segment (SCI_CB_DISCONNECT), the memory
 * stays until this handle is removed.
 * Errors: NO_SUCH_SEGMENT: no such id on this node.  ACCESS: the segment is not shared,
 * or belongs to another user.
 */
void SCIAttachLocalSegment(sci_desc_t sd, sci_local_segment_t *segment,
			   unsigned int segmentId, size_t *size,
			   sci_cb_local_segment_t callback, void *callbackArg,
			   unsigned int flags, sci_error_t *error);

/**
 * SCIRegisterSegmentMemory() - make the caller's own pages an EMPTY segment
 * @address, @size: whole pages of private anonymous writable memory, @size as
 *	in SCICreateSegment(). No other thread may store to the pages during the call.
 * @flags: LOCK_USER_MEM: also lock the pages in memory
 *
 * The pages become shared memory at the same address and keep their contents.  When
 * the segment is removed, they become private again.
 *
 * A PRIVATE segment takes any readable and writable memory, whole pages or not. DMA transfers and
 * maps use this memory in place. The program must not free it before the segment is removed.
 * Errors: ILLEGAL_OPERATION: not EMPTY, or registered already. SIZE_ALIGNMENT: @size is not whole
 * pages. ILLEGAL_ADDRESS: @address does not begin a page, or its memory is unmapped, a file, shared
 * memory or a stack. OUT_OF_RANGE: @size differs from the segment's.
 */
void SCIRegisterSegmentMemory(void *address, size_t size,
			      sci_local_segment_t segment, unsigned int flags,
			      sci_error_t *error);

/**
 * SCIAttachPhysicalMemory() - make physical or device memory an EMPTY segment
 * @flags: CUDA_BUFFER
 * Errors: ACCESS: the caller is not privileged.  NOT_SUPPORTED: the fabric cannot use
 * physical addresses.
 */
void SCIAttachPhysicalMemory(sci_ioaddr_t ioaddress, void *address,
			     unsigned int busNo, size_t size,
			     sci_local_segment_t segment, unsigned int flags,
			     sci_error_t *error);

/**
 * SCIWaitForLocalSegmentEvent() - wait until a peer connects or disconnects
 * @sourcenodeId, @localAdapterNo: receive the peer's node and the adapter; may be NULL
 * @timeout: 0 does not wait
 * @flags: 0
 * Return: the reason, or 0 on error.
 * Errors: TIMEOUT.  CANCELLED: the segment was removed.  ILLEGAL_OPERATION: the segment
 * has a callback, which gets the events.
 */
sci_segment_cb_reason_t
SCIWaitForLocalSegmentEvent(sci_local_segment_t segment,
			    unsigned int *sourcenodeId,
			    unsigned int *localAdapterNo,
			    unsigned int timeout, unsigned int flags,
			    sci_error_t *error);

/** SCIGetLocalSegmentId() - get the id of a segment. Return: the id; 0: a bad handle. */
unsigned int SCIGetLocalSegmentId(sci_local_segment_t segment);

/** SCIGetLocalSegmentSize() - get the size of a segment. Return: bytes; 0: a bad handle. */
size_t SCIGetLocalSegmentSize(sci_local_segment_t segment);

/* ---- remote segments ---- */

/**
 * SCIConnectSegment() - connect to a segment of another node, or of the own node
 * @nodeId: the node, SCI_LOCAL_HOST, or DIS_BROADCAST_NODEID_GROUP_ALL with SCI_FLAG_BROADCAST
 * @callback, @callbackArg: with SCI_FLAG_USE_CALLBACK: called when the segment is
 *	removed, or the link goes down or up
 * @timeout: how long the other node may take to answer, but not below 1 s; 0 is a default of 5 s
 * @flags: USE_CALLBACK; BROADCAST; ASYNCHRONOUS_CONNECT: return at once; the event
 *	SCI_CB_CONNECT reports the result as its status; DMA_GLOBAL: a hint
 *
 * The call fails at once if the segment does not exist: programs repeat the call.  If a
 * program repeats it without a pause, the library adds a pause of up to 1 ms per call.
 * Errors: NO_SUCH_SEGMENT: no such id, or not available.  CONNECTION_REFUSED: the segment's
 * mode excludes this user.  TIMEOUT.  NO_LINK_ACCESS: the local link is down.
 */
void SCIConnectSegment(sci_desc_t sd, sci_remote_segment_t *segment,
		       unsigned int nodeId, unsigned int segmentId,
		       unsigned int localAdapterNo,
		       sci_cb_remote_segment_t callback, void *callbackArg,
		       unsigned int timeout, unsigned int flags,
		       sci_error_t *error);

/**
 * SCIDisconnectSegment() - end a connection to a segment
 * @flags: 0
 * Errors: BUSY: the segment is mapped, or a DMA queue uses it.
 */
void SCIDisconnectSegment(sci_remote_segment_t segment, unsigned int flags,
			  sci_error_t *error);

/**
 * SCIMapRemoteSegment() - map a remote segment into the process
 * @offset, @size, @addr: as in SCIMapLocalSegment()
 * @flags: FIXED_MAP_ADDR, READONLY_MAP, BROADCAST; hints: LOCK_OPERATION,
 *	READ_PREFETCH_AGGR_HOLD_MAP, READ_PREFETCH_NO_HOLD_MAP, DMOVE_MAP,
 *	WRITES_DISABLE_GATHER_MAP, DISABLE_128_BYTES_PACKETS, IO_MAP_IOSPACE,
 *	WRITE_BACK_CACHE_MAP, NO_MEMORY_LOOPBACK_MAP; not implemented:
 *	CONDITIONAL_INTERRUPT_MAP, UNCONDITIONAL_DATA_INTERRUPT_MAP
 * Return: the address of byte @offset, or NULL.  The other node sees a plain store to
 * this memory without any call.
 * Errors: SEGMENT_NOT_CONNECTED.  ACCESS: writable map of a segment that is read-only
 * to this user.  Other errors are those of SCIMapLocalSegment().
 */
volatile void *SCIMapRemoteSegment(sci_remote_segment_t segment,
				   sci_map_t *map, size_t offset, size_t size,
				   void *addr, unsigned int flags,
				   sci_error_t *error);

/**
 * SCIUnmapSegment() - remove a map of a local or a remote segment
 * @flags: 0
 *
 * A sequence of the map does not prevent this; the program still has to remove the sequence.
 * Errors: BUSY: a block transfer uses the map.
 */
void SCIUnmapSegment(sci_map_t map, unsigned int flags, sci_error_t *error);

/** SCIGetRemoteSegmentSize() - get a segment's size. Return: bytes; 0: not a connected handle. */
size_t SCIGetRemoteSegmentSize(sci_remote_segment_t segment);

/**
 * SCIGetRemoteSegmentId() - get the id of a remote segment
 * Return: the id, also of a disconnected segment until the next connect; 0: a bad handle.
 */
unsigned int SCIGetRemoteSegmentId(sci_remote_segment_t segment);

/** SCIGetRemoteSegmentNodeId() - get the owner's node. Return: its id; 0: a bad handle. */
unsigned int SCIGetRemoteSegmentNodeId(sci_remote_segment_t segment);

/**
 * SCIWaitForRemoteSegmentEvent() - wait for an event of a remote segment
 * @status: receives the event's status; may be NULL
 * @timeout: 0 does not wait
 * @flags: 0
 * Return: the reason, or 0 on error.
 * Errors: TIMEOUT.  CANCELLED: disconnected by another thread.  ILLEGAL_OPERATION: the
 * segment has a callback, which gets the events.
 */
sci_segment_cb_reason_t
SCIWaitForRemoteSegmentEvent(sci_remote_segment_t segment,
			     sci_error_t *status, unsigned int timeout,
			     unsigned int flags, sci_error_t *error);

/* ---- sequences, barriers, transfers ---- */

/**
 * SCICreateMapSequence() - create a sequence, which checks the stores through a map
 * @flags: FAST_BARRIER: a hint
 * Errors: none special.
 */
void SCICreateMapSequence(sci_map_t map, sci_sequence_t *sequence,
			  unsigned int flags, sci_error_t *error);

/** SCIRemoveSequence() - free a sequence; @flags: 0. Errors: none special. */
void SCIRemoveSequence(sci_sequence_t sequence, unsigned int flags,
		       sci_error_t *error);

/**
 * SCIStartSequence() - begin a transfer
 * @flags: 0
 * Return: SCI_SEQ_OK; SCI_SEQ_PENDING: the link is down, start again later;
 * SCI_SEQ_NOT_RETRIABLE: the connection is lost, or @error is set.
 */
sci_sequence_status_t SCIStartSequence(sci_sequence_t sequence,
				       unsigned int flags,
				       sci_error_t *error);

/**
 * SCICheckSequence() - check that all stores since the start have arrived
 * @flags: NO_FLUSH, NO_STORE_BARRIER: the caller has flushed, or issued a barrier, itself
 * Return: SCI_SEQ_OK; SCI_SEQ_RETRIABLE: data was lost, transfer it again;
 * SCI_SEQ_NOT_RETRIABLE: the connection is lost, or @error is set; SCI_SEQ_PENDING:
 * the link is down.  A call that returns OK or RETRIABLE also starts the next transfer.
 * Errors: ILLEGAL_OPERATION: the sequence was never started.
 */
sci_sequence_status_t SCICheckSequence(sci_sequence_t sequence,
				       unsigned int flags,
				       sci_error_t *error);

/** SCIStoreBarrier() - wait until all stores have arrived; @flags: 0 */
void SCIStoreBarrier(sci_sequence_t sequence, unsigned int flags);

/** SCIFlushReadBuffers() - drop remote data that was prefetched for reads */
void SCIFlushReadBuffers(sci_sequence_t sequence);

/**
 * SCIFlush() - send the bytes in the write buffers of the CPU
 * @sequence: may be NULL
 * @flags: FLUSH_CPU_BUFFERS_ONLY
 */
void SCIFlush(sci_sequence_t sequence, unsigned int flags);

/**
 * SCIMemCpy() - copy to a remote map, or from it
 * @sequence: a sequence of a map of the same segment; may be NULL
 * @memAddr: memory of the caller
 * @flags: BLOCK_READ: copy from the map to @memAddr; ERROR_CHECK: check that all bytes arrived
 *
 * A @size of 0 is allowed.  Errors: TRANSFER_FAILED: with ERROR_CHECK, data was lost (copy
 * again) or the connection has ended.  ACCESS: a write to a READONLY_MAP.
 */
void SCIMemCpy(sci_sequence_t sequence, void *memAddr, sci_map_t remoteMap,
	       size_t remoteOffset, size_t size, unsigned int flags,
	       sci_error_t *error);

/**
 * SCIMemCopy() - copy as SCIMemCpy(), without a sequence, and check that all bytes arrived
 * Errors: as SCIMemCpy() with ERROR_CHECK.
 */
void SCIMemCopy(void *memAddr, sci_map_t remoteMap, size_t remoteOffset,
		size_t size, unsigned int flags, sci_error_t *error);

/**
 * SCIMemWrite() - copy to an address inside a remote map
 * @flags: 0
 *
 * This call is the fastest copy, because it needs no handle.  The bytes arrive before later
 * stores.  SCICheckSequence() checks that they have arrived.
 * Errors: none special.
 */
void SCIMemWrite(void *memAddr, volatile void *remoteAddr, size_t size,
		 unsigned int flags, sci_error_t *error);

/**
 * SCITransferBlock() - copy from one map to another
 * @flags: 0
 * Errors: TRANSFER_FAILED as in SCIMemCpy().
 */
void SCITransferBlock(sci_map_t sourceMap, size_t sourceOffset,
		      sci_map_t destinationMap, size_t destinationOffset,
		      size_t size, unsigned int flags, sci_error_t *error);

/**
 * SCITransferBlockAsync() - run SCITransferBlock() in the background
 * @block: the transfer, for SCIWaitForBlockTransfer(), which frees it, or SCIAbortBlockTransfer()
 * @flags: BLOCK_READ: a hint; USE_CALLBACK
 * Errors: as SCITransferBlock(); the wait or the callback reports TRANSFER_FAILED.
 */
void SCITransferBlockAsync(sci_map_t sourceMap, size_t sourceOffset,
			   sci_map_t destinationMap, size_t destinationOffset,
			   size_t size, sci_block_transfer_t *block,
			   sci_cb_block_transfer_t callback, void *callbackArg,
			   unsigned int flags, sci_error_t *error);

/**
 * SCIWaitForBlockTransfer() - wait for the end of a transfer
 * @flags: 0
 *
 * The call frees @block when the transfer has ended, with or without an error.
 * Errors: TIMEOUT; TRANSFER_FAILED; CANCELLED: aborted; ILLEGAL_OPERATION: @block has a callback.
 */
void SCIWaitForBlockTransfer(sci_block_transfer_t block, unsigned int timeout,
			     unsigned int flags, sci_error_t *error);

/**
 * SCIAbortBlockTransfer() - stop a transfer
 * @flags: 0
 *
 * The wait or the callback then reports CANCELLED.
 * Errors: ILLEGAL_OPERATION: the transfer has ended.
 */
void SCIAbortBlockTransfer(sci_block_transfer_t block, unsigned int flags,
			   sci_error_t *error);

/**
 * SCICacheSync() - write back or drop cached lines of a map
 * @map: NULL: any memory of the caller
 * @addr, @length: the bytes; inside @map, if @map is not NULL
 * @flags: CACHE_FLUSH, CACHE_INVALIDATE (implies a write-back here)
 * Errors: none special.
 */
void SCICacheSync(sci_map_t map, void *addr, size_t length,
		  unsigned int flags, sci_error_t *error);

/* ---- DMA ---- */

/**
 * SCICreateDMAQueue() - create a queue of transfers that run in the background
 * @maxEntries: transfers in one post, 1 to 1048576, else ILLEGAL_PARAMETER
 * @flags: DMA_GLOBAL, DMA_SYSDMA, DMA_ADAPTER: hints for an engine; DMA_PHDMA: not implemented
 * Errors: none special.
 */
void SCICreateDMAQueue(sci_desc_t sd, sci_dma_queue_t *queue,
		       unsigned int localAdapterNo, unsigned int maxEntries,
		       unsigned int flags, sci_error_t *error);

/** SCIRemoveDMAQueue() - free a queue; @flags: 0. Errors: ILLEGAL_OPERATION: @queue is POSTED. */
void SCIRemoveDMAQueue(sci_dma_queue_t queue, unsigned int flags,
		       sci_error_t *error);

/**
 * SCIEnqueueDMATransfer() - add a transfer from the local to the remote segment to a queue
 * @flags: DMA_READ: from remote to local; DMA_POST: post at once; DMA_WAIT: post and wait
 *	for the end; DMA_RESET: then reset; DMA_GLOBAL, DMA_SYSDMA, DMA_ADAPTER: hints
 * Return: the queue's state.  All transfers of one post have the same direction.
 * Errors: ILLEGAL_OPERATION: the queue is neither IDLE nor GATHER, or has another
 * direction.  MAX_ENTRIES.  OUT_OF_RANGE.  SIZE_ALIGNMENT: @size is 0 or misaligned.
 * SEGMENT_NOT_PREPARED, SEGMENT_NOT_CONNECTED: for the queue's adapter.
 */
sci_dma_queue_state_t
SCIEnqueueDMATransfer(sci_dma_queue_t queue, sci_local_segment_t localSegment,
		      sci_remote_segment_t remoteSegment,
		      unsigned int localOffset, unsigned int remoteOffset,
		      unsigned int size, unsigned int flags,
		      sci_error_t *error);

/**
 * SCIPostDMAQueue() - start the enqueued transfers
 * @callback, @callbackArg: with SCI_FLAG_USE_CALLBACK: called at the end of all transfers
 * @flags: USE_CALLBACK
 * Errors: ILLEGAL_OPERATION: the queue's state is not GATHER.
 */
void SCIPostDMAQueue(sci_dma_queue_t queue, sci_cb_dma_t callback,
		     void *callbackArg, unsigned int flags,
		     sci_error_t *error);

/** SCIResetDMAQueue() - make @queue IDLE; @flags: 0. Errors: ILLEGAL_OPERATION: it is POSTED. */
void SCIResetDMAQueue(sci_dma_queue_t queue, unsigned int flags,
		      sci_error_t *error);

/**
 * SCIAbortDMAQueue() - stop a POSTED queue, which becomes ABORTED
 * @flags: 0
 *
 * Bytes that were copied stay copied. A queue that is not POSTED does not change.
 * Errors: none special.
 */
void SCIAbortDMAQueue(sci_dma_queue_t queue, unsigned int flags,
		      sci_error_t *error);

/** SCIDMAQueueState() - get the state of a queue. Return: the state; ERROR: a bad handle. */
sci_dma_queue_state_t SCIDMAQueueState(sci_dma_queue_t queue);

/**
 * SCIWaitForDMAQueue() - wait until a queue is no longer POSTED
 * @flags: 0
 * Return: the state.  Errors: TIMEOUT.  ILLEGAL_OPERATION: the state is IDLE or GATHER,
 * or the post has a callback.  CANCELLED: another thread removes the queue.
 */
sci_dma_queue_state_t SCIWaitForDMAQueue(sci_dma_queue_t queue,
					 unsigned int timeout,
					 unsigned int flags,
					 sci_error_t *error);

/**
 * SCIStartDmaTransfer() - enqueue and post one transfer
 * @flags: DMA_READ, DMA_WAIT, USE_CALLBACK, BROADCAST, DMA_GLOBAL, DMA_SYSDMA, DMA_ADAPTER
 *
 * The queue must be IDLE, DONE, ABORTED or ERROR.  Errors: TRANSFER_FAILED: with
 * DMA_WAIT.  ILLEGAL_FLAG: BROADCAST to a segment that was connected without
 * BROADCAST.  Other codes as SCIEnqueueDMATransfer().
 */
void SCIStartDmaTransfer(sci_dma_queue_t queue,
			 sci_local_segment_t localSegment,
			 sci_remote_segment_t remoteSegment,
			 size_t localOffset, size_t size, size_t remoteOffset,
			 sci_cb_dma_t callback, void *callbackArg,
			 unsigned int flags, sci_error_t *error);

/**
 * SCIStartDmaTransferVec() - start a DMA transfer of several pieces
 * @vecLength: 1 to DIS_DMA_MAX_VECLEN; a vector is one entry of the queue
 * Errors: MAX_ENTRIES: the queue is full.  Other codes as SCIStartDmaTransfer().
 */
void SCIStartDmaTransferVec(sci_dma_queue_t queue,
			    sci_local_segment_t localSegment,
			    sci_remote_segment_t remoteSegment,
			    size_t vecLength, dis_dma_vec_t *disDmaVec,
			    sci_cb_dma_t callback, void *callbackArg,
			    unsigned int flags, sci_error_t *error);

/**
 * SCIStartDmaTransferMem() - start one transfer from or to plain memory
 *
 * @localAddress must stay valid until the transfer ends.  Other arguments and errors are
 * those of SCIStartDmaTransfer().
 */
void SCIStartDmaTransferMem(sci_dma_queue_t queue, void *localAddress,
			    sci_remote_segment_t remoteSegment, size_t size,
			    size_t remoteOffset, sci_cb_dma_t callback,
			    void *callbackArg, unsigned int flags,
			    sci_error_t *error);

/* ---- interrupts ---- */

/**
 * SCICreateInterrupt() - create an interrupt, which other nodes can trigger
 * @interruptNo: receives the number; with FIXED_INTNO it holds the wanted number, any 32 bits
 * @flags: USE_CALLBACK; FIXED_INTNO; SHARED_INT: other interrupts on this node may
 *	have the same number, and a trigger reaches all of them; COUNTING_INT: every
 *	trigger counts, otherwise triggers merge until a wait or a callback takes them
 * Errors: INTNO_USED.
 */
void SCICreateInterrupt(sci_desc_t sd, sci_local_interrupt_t *interrupt,
			unsigned int localAdapterNo, unsigned int *interruptNo,
			sci_cb_interrupt_t callback, void *callbackArg,
			unsigned int flags, sci_error_t *error);

/** SCIRemoveInterrupt() - free an interrupt, cancel waits; @flags: 0. Errors: none special. */
void SCIRemoveInterrupt(sci_local_interrupt_t interrupt, unsigned int flags,
			sci_error_t *error);

/**
 * SCIWaitForInterrupt() - wait for a trigger, or take an earlier trigger
 * @timeout: 0 does not wait
 * @flags: 0
 * Errors: TIMEOUT.  CANCELLED.  ILLEGAL_OPERATION: the interrupt has a callback.
 */
void SCIWaitForInterrupt(sci_local_interrupt_t interrupt,
			 unsigned int timeout, unsigned int flags,
			 sci_error_t *error);

/**
 * SCIConnectInterrupt() - connect to another node's interrupt
 * @timeout: as in SCIConnectSegment()
 * @flags: COUNTING_INT: a hint
 * Errors: NO_SUCH_INTNO. CONNECTION_REFUSED: the mode of the interrupt excludes this user. TIMEOUT.
 */
void SCIConnectInterrupt(sci_desc_t sd, sci_remote_interrupt_t *interrupt,
			 unsigned int nodeId, unsigned int localAdapterNo,
			 unsigned int interruptNo, unsigned int timeout,
			 unsigned int flags, sci_error_t *error);

/** SCIDisconnectInterrupt() - disconnect an interrupt; @flags: 0. Errors: none special. */
void SCIDisconnectInterrupt(sci_remote_interrupt_t interrupt,
			    unsigned int flags, sci_error_t *error);

/**
 * SCITriggerInterrupt() - trigger an interrupt of another node
 * @flags: 0
 * Errors: NOT_CONNECTED: the owner has removed the interrupt or died.  NO_LINK_ACCESS.
 */
void SCITriggerInterrupt(sci_remote_interrupt_t interrupt,
			 unsigned int flags, sci_error_t *error);

/**
 * SCICreateDataInterrupt() - create an interrupt with messages of up to 64 KiB
 *
 * @flags: USE_CALLBACK, FIXED_INTNO
 *
 * Messages queue up. Messages of one sender keep their order and their lengths.
 * Errors: INTNO_USED.
 */
void SCICreateDataInterrupt(sci_desc_t sd,
			    sci_local_data_interrupt_t *interrupt,
			    unsigned int localAdapterNo,
			    unsigned int *interruptNo,
			    sci_cb_data_interrupt_t callback,
			    void *callbackArg, unsigned int flags,
			    sci_error_t *error);

/** SCIRemoveDataInterrupt() - free @interrupt, cancel waits; @flags: 0. Errors: none special. */
void SCIRemoveDataInterrupt(sci_local_data_interrupt_t interrupt,
			    unsigned int flags, sci_error_t *error);

/**
 * SCIWaitForDataInterrupt() - wait for a message
 * @data: receives the message
 * @length: in: size of @data; out: bytes received
 * @timeout: 0 does not wait
 * @flags: 0
 * Errors: NOSPC: @data is too small; *@length is the message's length, the message stays queued.
 * TIMEOUT.  CANCELLED.  ILLEGAL_OPERATION: the interrupt has a callback.
 */
void SCIWaitForDataInterrupt(sci_local_data_interrupt_t interrupt, void *data,
			     unsigned int *length, unsigned int timeout,
			     unsigned int flags, sci_error_t *error);

/** SCIConnectDataInterrupt() - connect to a data interrupt. Errors: as SCIConnectInterrupt(). */
void SCIConnectDataInterrupt(sci_desc_t sd,
			     sci_remote_data_interrupt_t *interrupt,
			     unsigned int nodeId, unsigned int localAdapterNo,
			     unsigned int interruptNo, unsigned int timeout,
			     unsigned int flags, sci_error_t *error);

/**
 * SCIDisconnectDataInterrupt() - disconnect; @flags: 0; messages that were sent still arrive
 * Errors: none special.
 */
void SCIDisconnectDataInterrupt(sci_remote_data_interrupt_t interrupt,
				unsigned int flags, sci_error_t *error);

/**
 * SCITriggerDataInterrupt() - send a message
 * @length: 0 to 65536 bytes, else OUT_OF_RANGE
 * @flags: 0
 * Errors: NOT_CONNECTED: the owner has removed the interrupt or died.  NOSPC: the owner's
 * queue is full, and the message was not sent.  NO_LINK_ACCESS.
 */
void SCITriggerDataInterrupt(sci_remote_data_interrupt_t interrupt,
			     void *data, unsigned int length,
			     unsigned int flags, sci_error_t *error);

/* ---- queries ---- */

enum {
	/* commands of SCIQuery(), and the structure of each command */
	SCI_Q_VENDORID = 1,		/* sci_query_string_t */
	SCI_Q_API = 2,			/* sci_query_string_t */
	SCI_Q_ADAPTER = 3,		/* sci_query_adapter_t */
	SCI_Q_SYSTEM = 4,		/* sci_query_system_t */
	SCI_Q_LOCAL_SEGMENT = 5,	/* sci_query_local_segment_t */
	SCI_Q_REMOTE_SEGMENT = 6,	/* sci_query_remote_segment_t */
	SCI_Q_MAP = 7,			/* sci_query_map_t */
	SCI_Q_DMA = 8,			/* sci_query_dma_t */
	SCI_Q_DEVICE = 9,		/* not implemented */
	SCI_Q_SISCI_DRIVER_VERSION = 10, /* sci_query_string_t */

	/* subcommands of SCI_Q_ADAPTER; data is an unsigned int unless a comment says otherwise */
	SCI_Q_ADAPTER_DMA_SIZE_ALIGNMENT = 101,
	SCI_Q_ADAPTER_DMA_OFFSET_ALIGNMENT,
	SCI_Q_ADAPTER_DMA_MTU,
	SCI_Q_ADAPTER_SUGGESTED_MIN_DMA_SIZE,
	SCI_Q_ADAPTER_SUGGESTED_MIN_BLOCK_SIZE,
	SCI_Q_ADAPTER_NODEID,
	SCI_Q_ADAPTER_SERIAL_NUMBER,
	SCI_Q_ADAPTER_CARD_TYPE,	/* a dis_adapter_type_t */
	SCI_Q_ADAPTER_NUMBER_OF_STREAMS,
	SCI_Q_ADAPTER_STREAM_BUFFER_SIZE,
	SCI_Q_ADAPTER_CONFIGURED,
	SCI_Q_ADAPTER_LINK_OPERATIONAL,
	SCI_Q_ADAPTER_HW_LINK_STATUS_IS_OK,
	SCI_Q_ADAPTER_NUMBER,		/* how many adapters there are */
	SCI_Q_ADAPTER_INSTANCE_NUMBER,
	SCI_Q_ADAPTER_FIRMWARE_OK,
	SCI_Q_ADAPTER_CONNECTED_TO_SWITCH,
	SCI_Q_ADAPTER_LOCAL_SWITCH_TYPE,
	SCI_Q_ADAPTER_LOCAL_SWITCH_PORT_NUMBER,
	SCI_Q_ADAPTER_CONNECTED_TO_EXPECTED_SWITCH_PORT,
	SCI_Q_ADAPTER_ATT_PAGE_SIZE,
	SCI_Q_ADAPTER_ATT_NUMBER_OF_ENTRIES,
	SCI_Q_ADAPTER_ATT_AVAILABLE_ENTRIES,
	SCI_Q_ADAPTER_PHYS_MEM_NODEID,
	SCI_Q_ADAPTER_PHYS_MBX_NODEID,
	SCI_Q_ADAPTER_PHYS_LINK_PORT_NODEID,
	SCI_Q_ADAPTER_SCI_LINK_FREQUENCY, /* MHz; 0: does not apply */
	SCI_Q_ADAPTER_B_LINK_FREQUENCY,
	SCI_Q_ADAPTER_IO_BUS_FREQUENCY,
	SCI_Q_ADAPTER_BDF,
	SCI_Q_ADAPTER_MCAST_MAX_GROUPS,
	SCI_Q_ADAPTER_NUMBER_OF_LINKS,
	SCI_Q_ADAPTER_LINK_WIDTH,	/* lanes; 0: does not apply */
	SCI_Q_ADAPTER_LINK_SPEED,
	SCI_Q_ADAPTER_LINK_UPTIME,	/* seconds */
	SCI_Q_ADAPTER_LINK_DOWNTIME,
	SCI_Q_ADAPTER_LINK_CABLE_INSERTED,
	SCI_Q_ADAPTER_LINK_ENABLED,
	SCI_Q_ADAPTER_LINK_PARTNER_PORT_NO,

	/* subcommands of SCI_Q_SYSTEM; data is an unsigned int */
	SCI_Q_SYSTEM_HOSTBRIDGE = 201,
	SCI_Q_SYSTEM_WRITE_POSTING_ENABLED,
	SCI_Q_SYSTEM_WRITE_COMBINING_ENABLED,
	SCI_Q_SYSTEM_CPU_CACHE_LINE_SIZE,

	/* subcommands of SCI_Q_LOCAL_SEGMENT and SCI_Q_REMOTE_SEGMENT; the result is data.ioaddr */
	SCI_Q_LOCAL_SEGMENT_IOADDR = 301,
	SCI_Q_LOCAL_SEGMENT_PHYS_ADDR,
	SCI_Q_LOCAL_SEGMENT_VIRTUAL_KERNEL_ADDR,
	SCI_Q_REMOTE_SEGMENT_IOADDR = 401,

	/* subcommands of SCI_Q_MAP; data is an unsigned int, or a sci_ioaddr_t (_IOADDR,
	 * _PHYS_ADDR) */
	SCI_Q_MAP_MAPPED_TO_LOCAL_TARGET = 501,
	SCI_Q_MAP_QUERY_REMOTE_MAPPED_TO_LOCAL_TARGET,
	SCI_Q_MAP_IOADDR,
	SCI_Q_MAP_PHYS_ADDR,

	/* subcommands of SCI_Q_DMA; data is an unsigned int, or a sci_dma_capabilities_t */
	SCI_Q_DMA_AVAILABLE = 601,
	SCI_Q_DMA_CAPABILITIES,

	SCI_Q_DEVICE_INFO = 701
};
#define SCI_Q_MAP_REMOTE_MAPPED_TO_LOCAL_TARGET \
	SCI_Q_MAP_QUERY_REMOTE_MAPPED_TO_LOCAL_TARGET
#define SCI_Q_QUERY_REMOTE_MAPPED_TO_LOCAL_TARGET \
	SCI_Q_MAP_QUERY_REMOTE_MAPPED_TO_LOCAL_TARGET

typedef struct sci_query_string {
	char *str;			/* receives the string and a 0 */
	unsigned int length;		/* bytes of memory at @str */
} sci_query_string_t;

typedef struct sci_query_adapter {
	unsigned int localAdapterNo;
	unsigned int portNo;
	unsigned int subcommand;
	void *data;
} sci_query_adapter_t;

typedef struct sci_query_system {
	unsigned int subcommand;
	void *data;
} sci_query_system_t;

typedef struct sci_query_local_segment {
	sci_local_segment_t segment;
	unsigned int subcommand;
	union {
		sci_ioaddr_t ioaddr;
	} data;
} sci_query_local_segment_t;

typedef struct sci_query_remote_segment {
	sci_remote_segment_t segment;
	unsigned int subcommand;
	union {
		sci_ioaddr_t ioaddr;
	} data;
} sci_query_remote_segment_t;

typedef struct sci_query_map {
	sci_map_t map;
	unsigned int subcommand;
	void *data;
} sci_query_map_t;

typedef struct sci_query_dma {
	unsigned int localAdapterNo;
	unsigned int subcommand;
	void *data;
} sci_query_dma_t;

typedef struct sci_dma_capabilities {
	unsigned int num_channels;
	unsigned int max_transfer_size;
	unsigned int max_vector_length;
	unsigned int support_mem2io;
	unsigned int support_io2mem;
	unsigned int support_io2io;
	unsigned int min_align_bytes;
	unsigned int suggested_align_bytes;
} sci_dma_capabilities_t;

/**
 * SCIQuery() - get a property of the library, an adapter, a segment or a map
 * @command: SCI_Q_*
 * @data: the structure of this command
 * @flags: 0; SCI_Q_DMA: DMA_ADAPTER, DMA_GLOBAL, DMA_SYSDMA
 * Errors: ILLEGAL_QUERY: unknown command or subcommand.  NOSPC: the string is longer than
 * @data allows.  NOT_SUPPORTED: the fabric has no such property (bus addresses on shm).
 */
void SCIQuery(unsigned int command, void *data, unsigned int flags,
	      sci_error_t *error);

/**
 * SCIProbeNode() - test whether a node answers
 * @flags: 0
 * Return: 1; 0: the node does not answer.  Errors: NO_SUCH_NODEID, NO_LINK_ACCESS.
 */
int SCIProbeNode(sci_desc_t sd, unsigned int localAdapterNo,
		 unsigned int nodeId, unsigned int flags, sci_error_t *error);

/** SCIGetLocalNodeId() - get the node id of an adapter; @flags: 0. Errors: none special. */
void SCIGetLocalNodeId(unsigned int adapterNo, unsigned int *nodeId,
		       unsigned int flags, sci_error_t *error);

/**
 * SCIGetNodeIdByAdapterName() - get the node ids of a name
 * @adaptername: a name of the dishosts file (/etc/dis/dishosts.conf, or the file
 *	that SCI_DISHOSTS names); or "node8": node 8
 * @nodeIdlist: receives the ids, then a 0
 * @type: receives the adapter's type; may be NULL
 * @flags: 0
 * Errors: NO_SUCH_NODEID: no such name.
 */
void SCIGetNodeIdByAdapterName(char *adaptername,
			       dis_nodeId_list_t *nodeIdlist,
			       dis_virt_adapter_t *type, unsigned int flags,
			       sci_error_t *error);

/**
 * SCIGetNodeInfoByAdapterName() - get the node ids of a name, and the local adapters to them
 * Errors: as SCIGetNodeIdByAdapterName().
 */
void SCIGetNodeInfoByAdapterName(char *adaptername, unsigned int *adapterNo,
				 dis_nodeId_list_t *nodeIdlist,
				 dis_virt_adapter_t *type, unsigned int flags,
				 sci_error_t *error);

/** SCIGetErrorString() - describe a code. Return: its name and meaning; never NULL. */
const char *SCIGetErrorString(sci_error_t code);

/** SCIGetAdapterTypeString() - describe an adapter type. Return: its name; never NULL. */
const char *SCIGetAdapterTypeString(dis_virt_adapter_t type);

/** SCIGetAdapterFamilyString() - describe a type's family. Return: the family; never NULL. */
const char *SCIGetAdapterFamilyString(dis_virt_adapter_t type);

/* ---- not on this fabric ---- */

/*
 * Each function checks its arguments, then fails. Return: 0, or the state of the queue.
 * Errors: NOT_IMPLEMENTED.
 */
void SCIConnectSCISpace(sci_desc_t sd, unsigned int localAdapterNo,
			sci_remote_segment_t *segment, sci_address_t address,
			size_t size, unsigned int flags, sci_error_t *error);
void SCIphDmaEnqueue(sci_dma_queue_t queue, unsigned int size,
		     sci_ioaddr_t localBusAddress, unsigned int remoteNodeId,
		     unsigned int remoteHighAddress,
		     unsigned int remoteLowAddress, unsigned int flags,
		     sci_error_t *error);
sci_dma_queue_state_t SCIphDmaStart(sci_dma_queue_t queue,
				    sci_cb_dma_t callback, void *callbackArg,
				    unsigned int flags, sci_error_t *error);
void SCIRegisterInterruptFlag(unsigned int localAdapterNo,
			      sci_local_interrupt_t *interrupt,
			      sci_local_segment_t segment, unsigned int offset,
			      sci_cb_interrupt_t callback, void *callbackArg,
			      unsigned int flags, sci_error_t *error);
void SCIEnableConditionalInterrupt(sci_local_interrupt_t interrupt,
				   unsigned int flags, sci_error_t *error);
void SCIDisableConditionalInterrupt(sci_local_interrupt_t interrupt,
				    unsigned int flags, sci_error_t *error);
void SCIGetConditionalInterruptTrigCounter(sci_local_interrupt_t interrupt,
					   unsigned int *interruptTrigCounter,
					   unsigned int flags,
					   sci_error_t *error);
void SCICreateNamedInterrupt(sci_desc_t sd, sci_local_interrupt_t *interrupt,
			     unsigned int localAdapterNo, const char *name,
			     sci_cb_interrupt_t callback, void *callbackArg,
			     unsigned int flags, sci_error_t *error);
unsigned int SCIGetCSRRegister(sci_desc_t sd, unsigned int localAdapterNo,
			       unsigned int SCINodeId, unsigned int CSROffset,
			       unsigned int flags, sci_error_t *error);
void SCISetCSRRegister(sci_desc_t sd, unsigned int localAdapterNo,
		       unsigned int SCINodeId, unsigned int CSROffset,
		       unsigned int CSRValue, unsigned int flags,
		       sci_error_t *error);
unsigned int SCIGetLocalCSR(sci_desc_t sd, unsigned int localAdapterNo,
			    unsigned int CSROffset, unsigned int flags,
			    sci_error_t *error);
void SCISetLocalCSR(sci_desc_t sd, unsigned int localAdapterNo,
		    unsigned int CSROffset, unsigned int CSRValue,
		    unsigned int flags, sci_error_t *error);
void SCIRegisterPCIeRequester(sci_desc_t sd, unsigned int localAdapterNo,
			      unsigned int bus, unsigned int devfn,
			      unsigned int flags, sci_error_t *error);
void SCIUnregisterPCIeRequester(sci_desc_t sd, unsigned int localAdapterNo,
				unsigned int bus, unsigned int devfn,
				unsigned int flags, sci_error_t *error);
void SCIRequestDMAChannel(sci_desc_t sd, sci_dma_channel_t *channel,
			  sci_dma_type_t type, unsigned int localAdapterNo,
			  unsigned int flags, sci_error_t *error);
void SCIReturnDMAChannel(sci_dma_channel_t channel, sci_error_t *error);
void SCIAssignDMAChannel(sci_dma_channel_t channel, sci_dma_queue_t queue,
			 unsigned int flags, sci_error_t *error);

/* functions for device lending (SmartIO), which needs special hardware */
void SCIBorrowDevice(sci_desc_t sd, sci_smartio_device_t *device,
		     uint64_t fdid, unsigned int flags, sci_error_t *error);
void SCIReturnDevice(sci_smartio_device_t device, unsigned int flags,
		     sci_error_t *error);
void SCIReleaseExclusiveBorrow(sci_smartio_device_t device,
			       unsigned int flags, sci_error_t *error);
void SCIConnectDeviceSegment(sci_smartio_device_t device,
			     sci_remote_segment_t *segment,
			     unsigned int segmentId, unsigned int memType,
			     sci_cb_remote_segment_t callback,
			     void *callbackArg, unsigned int flags,
			     sci_error_t *error);
void SCIConnectDeviceSegmentPath(sci_smartio_device_t device,
				 sci_remote_segment_t *segment,
				 unsigned int segmentId, unsigned int memType,
				 unsigned int localAdapterNo,
				 sci_cb_remote_segment_t callback,
				 void *callbackArg, unsigned int flags,
				 sci_error_t *error);
void SCICreateDeviceSegment(sci_smartio_device_t device,
			    unsigned int segmentId, uint64_t size,
			    unsigned int memType, unsigned int accessHints,
			    unsigned int flags, sci_error_t *error);
void SCIMapLocalSegmentForDevice(sci_local_segment_t segment,
				 unsigned int localAdapterNo,
				 sci_smartio_device_t device,
				 sci_ioaddr_t *ioaddr, unsigned int flags,
				 sci_error_t *error);
void SCIUnmapLocalSegmentForDevice(sci_local_segment_t segment,
				   unsigned int localAdapterNo,
				   sci_smartio_device_t device,
				   unsigned int flags, sci_error_t *error);
void SCIMapRemoteSegmentForDevice(sci_remote_segment_t segment,
				  sci_smartio_device_t device,
				  sci_ioaddr_t *ioaddr, unsigned int flags,
				  sci_error_t *error);
void SCIUnmapRemoteSegmentForDevice(sci_remote_segment_t segment,
				    sci_smartio_device_t device,
				    unsigned int flags, sci_error_t *error);
void SCIGetDeviceList(sci_desc_t sd, uint64_t *list, size_t *count,
		      const void *filter, unsigned int flags,
		      sci_error_t *error);
void SCIGetFabricDeviceId(sci_desc_t sd, const char *name, uint64_t *fdid,
			  unsigned int flags, sci_error_t *error);
void SCIConnectDeviceMemory(sci_device_t device,
			    sci_remote_segment_t *segment,
			    unsigned int localAdapterNo, unsigned int nodeId,
			    unsigned int flags, sci_error_t *error);

#ifdef __cplusplus
}
#endif

#endif
