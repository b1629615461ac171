/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * Types of the SISCI API.
 *
 * A handle is a number with a pointer type.  The number holds an index into the library's
 * table of objects, a generation and the object's type.  So the library detects stale and
 * invalid handles, and handles of another kind.  Never dereference a handle.
 */
#ifndef _SISCI_TYPES_H
#define _SISCI_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "dis_types.h"
#include "sisci_error.h"

/* Empty macros that document the direction of a parameter. */
#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif
#ifndef IN_OUT
#define IN_OUT
#endif

typedef struct sci_desc *sci_desc_t;
typedef struct sci_local_segment *sci_local_segment_t;
typedef struct sci_remote_segment *sci_remote_segment_t;
typedef struct sci_map *sci_map_t;
typedef struct sci_sequence *sci_sequence_t;
typedef struct sci_dma_queue *sci_dma_queue_t;
typedef struct sci_dma_channel *sci_dma_channel_t;
typedef struct sci_local_interrupt *sci_local_interrupt_t;
typedef struct sci_remote_interrupt *sci_remote_interrupt_t;
typedef struct sci_local_data_interrupt *sci_local_data_interrupt_t;
typedef struct sci_remote_data_interrupt *sci_remote_data_interrupt_t;
typedef struct sci_block_transfer *sci_block_transfer_t;
typedef struct sci_smartio_device *sci_smartio_device_t;
typedef struct sci_device *sci_device_t;

/* An address on an I/O bus. */
typedef uint64_t sci_ioaddr_t;

/* An SCI address (IEEE 1596): 16 bits of node id, and a 48-bit offset in the node's memory. */
typedef struct sci_address {
	unsigned short nodeId;
	unsigned short offsHi;
	unsigned int offsLo;
} sci_address_t;

/* Events of a segment: the reason of a callback, or the result of a wait. */
typedef enum sci_segment_cb_reason {
	SCI_CB_CONNECT		= 1,
	SCI_CB_DISCONNECT	= 2,
	SCI_CB_NOT_OPERATIONAL	= 3,
	SCI_CB_OPERATIONAL	= 4,
	SCI_CB_LOST		= 5
} sci_segment_cb_reason_t;

#define MAX_CB_REASON		SCI_CB_LOST

/* The return value of a callback: CANCEL ends further callbacks for the object. */
typedef enum sci_callback_action {
	SCI_CALLBACK_CANCEL	= 1,
	SCI_CALLBACK_CONTINUE	= 2
} sci_callback_action_t;

typedef enum sci_dma_queue_state {
	SCI_DMAQUEUE_IDLE	= 0,	/* no transfers */
	SCI_DMAQUEUE_GATHER	= 1,	/* transfers enqueued, not posted */
	SCI_DMAQUEUE_POSTED	= 2,	/* transfers posted, not complete */
	SCI_DMAQUEUE_DONE	= 3,
	SCI_DMAQUEUE_ABORTED	= 4,
	SCI_DMAQUEUE_ERROR	= 5
} sci_dma_queue_state_t;

typedef enum sci_sequence_status {
	SCI_SEQ_OK		= 0,	/* no error since the start */
	SCI_SEQ_RETRIABLE	= 1,	/* data was lost: transfer it again */
	SCI_SEQ_NOT_RETRIABLE	= 2,	/* the connection is lost */
	SCI_SEQ_PENDING		= 3	/* the link is down: start again later */
} sci_sequence_status_t;

typedef enum sci_dma_type {
	SCI_DMA_TYPE_DONTCARE	= 1,
	SCI_DMA_TYPE_ADAPTER	= 2,
	SCI_DMA_TYPE_GLOBAL	= 3,
	SCI_DMA_TYPE_SYSTEM	= 4,
	SCI_DMA_TYPE_TRANSPARENT = 5
} sci_dma_type_t;

#define DIS_DMA_MAX_VECLEN	256	/* pieces of one SCIStartDmaTransferVec() */

/* One piece of a vector transfer. The size and the offsets are in bytes. */
typedef struct dis_dma_vec {
	unsigned int size;
	unsigned int local_offset;
	unsigned int remote_offset;
	unsigned int flags;		/* ignored */
} dis_dma_vec_t;

/*
 * Callbacks run on threads of the library: in order for one object, concurrently for different
 * objects. `arg` is the callbackArg of the call that set the callback. A callback may call any
 * function, and may remove its own object. Calls need SCI_FLAG_USE_CALLBACK to set a callback.
 */
typedef sci_callback_action_t (*sci_cb_local_segment_t)(
	void *arg, sci_local_segment_t segment, sci_segment_cb_reason_t reason,
	unsigned int nodeId, unsigned int localAdapterNo, sci_error_t error);
typedef sci_callback_action_t (*sci_cb_remote_segment_t)(
	void *arg, sci_remote_segment_t segment,
	sci_segment_cb_reason_t reason, sci_error_t status);
typedef sci_callback_action_t (*sci_cb_dma_t)(
	void *arg, sci_dma_queue_t queue, sci_error_t status);
typedef sci_callback_action_t (*sci_cb_interrupt_t)(
	void *arg, sci_local_interrupt_t interrupt, sci_error_t status);
typedef sci_callback_action_t (*sci_cb_data_interrupt_t)(
	void *arg, sci_local_data_interrupt_t interrupt, void *data,
	unsigned int length, sci_error_t status);
typedef int (*sci_cb_block_transfer_t)(
	void *arg, sci_block_transfer_t block, sci_error_t status);

#endif
