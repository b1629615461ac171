// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Every function of sisci_api.h gets one wrong argument at a time. The call must return the
 * right code, write no result, and leave nothing behind.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sisci_api.h>

#include "selftests/harness.h"

#define SIZE	8192u

enum kind {
	DESC, LSEG, RSEG, MAP, SEQ, DMA, LINTR, RINTR, LDINTR, RDINTR, BLOCK,
	KINDS
};

#define BIT(kind)	(1u << (kind))
#define OUTS		3
#define OUT_ROOM	1024
#define SENTINEL	0xa5

/* Check that a call fails with one of two codes. */
#define CHECK_EITHER(call, one, other)					\
	do {								\
		sci_error_t code_ = ERR_OF(call);			\
									\
		if (code_ != (one))					\
			CHECK_EQ(code_, other);				\
	} while (0)

/* Arguments of a call. All of them are right unless a test changes one. */
struct args {
	void *h[KINDS];
	void *out[OUTS];		/* results */
	unsigned int adapter;
	unsigned int node;
	unsigned int flags;
	sci_error_t *err;
	uintptr_t ret;
};

struct function {
	const char *name;
	void (*call)(struct args *a);
	unsigned int flags;		/* flags that the function accepts */
	unsigned int handles;		/* kinds of handles that it takes */
	unsigned int may_be_null;	/* ... kinds for which NULL is legal */
	unsigned int outs;		/* number of results */
	unsigned int may_skip;		/* results that may be NULL, as bits */
	bool adapter;
	bool node;
	bool stub;			/* NOT_IMPLEMENTED if all arguments are right */
	bool has_ret;
	uintptr_t failed;		/* return value of a failed call */
};

/* Memory for calls that would read and write it, but fail before. */
static char memory[2 * SIZE];
static char name_text[] = "node8";
static char device_text[] = "device";
static dis_dma_vec_t vec[2] = { { 64, 0, 0, 0 }, { 64, 64, 64, 0 } };

static sci_callback_action_t on_lseg(void *arg, sci_local_segment_t s,
				     sci_segment_cb_reason_t reason,
				     unsigned int node, unsigned int adapter,
				     sci_error_t error)
{
	(void)arg, (void)s, (void)reason, (void)node, (void)adapter;
	(void)error;
	return SCI_CALLBACK_CONTINUE;
}

static sci_callback_action_t on_rseg(void *arg, sci_remote_segment_t r,
				     sci_segment_cb_reason_t reason,
				     sci_error_t status)
{
	(void)arg, (void)r, (void)reason, (void)status;
	return SCI_CALLBACK_CONTINUE;
}

static sci_callback_action_t on_dma(void *arg, sci_dma_queue_t q,
				    sci_error_t status)
{
	(void)arg, (void)q, (void)status;
	return SCI_CALLBACK_CONTINUE;
}

static sci_callback_action_t on_intr(void *arg, sci_local_interrupt_t i,
				     sci_error_t status)
{
	(void)arg, (void)i, (void)status;
	return SCI_CALLBACK_CONTINUE;
}

static sci_callback_action_t on_data(void *arg, sci_local_data_interrupt_t i,
				     void *data, unsigned int length,
				     sci_error_t status)
{
	(void)arg, (void)i, (void)data, (void)length, (void)status;
	return SCI_CALLBACK_CONTINUE;
}

static int on_block(void *arg, sci_block_transfer_t b, sci_error_t status)
{
	(void)arg, (void)b, (void)status;
	return 0;
}

/* ---- the calls ---- */

#define CALL(name, ...)							\
	static void call_##name(struct args *a)				\
	{								\
		name(__VA_ARGS__, a->err);				\
	}
#define RCALL(name, ...)						\
	static void call_##name(struct args *a)				\
	{								\
		a->ret = (uintptr_t)name(__VA_ARGS__, a->err);		\
	}
#define H(kind)	(a->h[kind])

CALL(SCIOpen, a->out[0], a->flags)
CALL(SCIClose, H(DESC), a->flags)
CALL(SCICreateSegment, H(DESC), a->out[0], 77, SIZE, on_lseg, NULL, a->flags)
CALL(SCIPrepareSegment, H(LSEG), a->adapter, a->flags)
CALL(SCISetSegmentAvailable, H(LSEG), a->adapter, a->flags)
CALL(SCISetSegmentUnavailable, H(LSEG), a->adapter, a->flags)
CALL(SCIRemoveSegment, H(LSEG), a->flags)
RCALL(SCIMapLocalSegment, H(LSEG), a->out[0], 0, SIZE, NULL, a->flags)
CALL(SCIShareSegment, H(LSEG), a->flags)
CALL(SCIAttachLocalSegment, H(DESC), a->out[0], 10, a->out[1], on_lseg, NULL,
     a->flags)
CALL(SCIRegisterSegmentMemory, memory, SIZE, H(LSEG), a->flags)
CALL(SCIAttachPhysicalMemory, 4096, NULL, 0, SIZE, H(LSEG), a->flags)
RCALL(SCIWaitForLocalSegmentEvent, H(LSEG), a->out[0], a->out[1], 0, a->flags)
CALL(SCIConnectSegment, H(DESC), a->out[0], a->node, 10, a->adapter, on_rseg,
     NULL, 0, a->flags)
CALL(SCIDisconnectSegment, H(RSEG), a->flags)
RCALL(SCIMapRemoteSegment, H(RSEG), a->out[0], 0, SIZE, NULL, a->flags)
CALL(SCIUnmapSegment, H(MAP), a->flags)
RCALL(SCIWaitForRemoteSegmentEvent, H(RSEG), a->out[0], 0, a->flags)
CALL(SCICreateMapSequence, H(MAP), a->out[0], a->flags)
CALL(SCIRemoveSequence, H(SEQ), a->flags)
RCALL(SCIStartSequence, H(SEQ), a->flags)
RCALL(SCICheckSequence, H(SEQ), a->flags)
CALL(SCIMemCpy, H(SEQ), memory, H(MAP), 0, 64, a->flags)
CALL(SCIMemCopy, memory, H(MAP), 0, 64, a->flags)
CALL(SCIMemWrite, memory, memory + SIZE, 64, a->flags)
CALL(SCITransferBlock, H(MAP), 0, H(MAP), SIZE / 2, 64, a->flags)
CALL(SCITransferBlockAsync, H(MAP), 0, H(MAP), SIZE / 2, 64, a->out[0],
     on_block, NULL, a->flags)
CALL(SCIWaitForBlockTransfer, H(BLOCK), 0, a->flags)
CALL(SCIAbortBlockTransfer, H(BLOCK), a->flags)
CALL(SCICacheSync, H(MAP), memory, 0, a->flags)
CALL(SCICreateDMAQueue, H(DESC), a->out[0], a->adapter, 4, a->flags)
CALL(SCIRemoveDMAQueue, H(DMA), a->flags)
RCALL(SCIEnqueueDMATransfer, H(DMA), H(LSEG), H(RSEG), 0, 0, 64, a->flags)
CALL(SCIPostDMAQueue, H(DMA), on_dma, NULL, a->flags)
CALL(SCIResetDMAQueue, H(DMA), a->flags)
CALL(SCIAbortDMAQueue, H(DMA), a->flags)
RCALL(SCIWaitForDMAQueue, H(DMA), 0, a->flags)
CALL(SCIStartDmaTransfer, H(DMA), H(LSEG), H(RSEG), 0, 64, 0, on_dma, NULL,
     a->flags)
CALL(SCIStartDmaTransferVec, H(DMA), H(LSEG), H(RSEG), 2, vec, on_dma, NULL,
     a->flags)
CALL(SCIStartDmaTransferMem, H(DMA), memory, H(RSEG), 64, 0, on_dma, NULL,
     a->flags)
CALL(SCICreateInterrupt, H(DESC), a->out[0], a->adapter, a->out[1], on_intr,
     NULL, a->flags)
CALL(SCIRemoveInterrupt, H(LINTR), a->flags)
CALL(SCIWaitForInterrupt, H(LINTR), 0, a->flags)
CALL(SCIConnectInterrupt, H(DESC), a->out[0], a->node, a->adapter, 10, 0,
     a->flags)
CALL(SCIDisconnectInterrupt, H(RINTR), a->flags)
CALL(SCITriggerInterrupt, H(RINTR), a->flags)
CALL(SCICreateDataInterrupt, H(DESC), a->out[0], a->adapter, a->out[1],
     on_data, NULL, a->flags)
CALL(SCIRemoveDataInterrupt, H(LDINTR), a->flags)
CALL(SCIWaitForDataInterrupt, H(LDINTR), memory, a->out[0], 0, a->flags)
CALL(SCIConnectDataInterrupt, H(DESC), a->out[0], a->node, a->adapter, 10, 0,
     a->flags)
CALL(SCIDisconnectDataInterrupt, H(RDINTR), a->flags)
CALL(SCITriggerDataInterrupt, H(RDINTR), memory, 64, a->flags)
RCALL(SCIProbeNode, H(DESC), a->adapter, a->node, a->flags)
CALL(SCIGetLocalNodeId, a->adapter, a->out[0], a->flags)
CALL(SCIGetNodeIdByAdapterName, name_text, a->out[0], a->out[1], a->flags)
CALL(SCIGetNodeInfoByAdapterName, name_text, a->out[0], a->out[1], a->out[2],
     a->flags)

/* queries: the structure is on the stack, the result in a->out[0] */
static void call_query_vendor(struct args *a)
{
	sci_query_string_t q = { a->out[0], OUT_ROOM };

	SCIQuery(SCI_Q_VENDORID, &q, a->flags, a->err);
}

static void call_query_adapter(struct args *a)
{
	sci_query_adapter_t q = {
		.localAdapterNo = a->adapter, .data = a->out[0],
		.subcommand = SCI_Q_ADAPTER_NODEID,
	};

	SCIQuery(SCI_Q_ADAPTER, &q, a->flags, a->err);
}

static void call_query_system(struct args *a)
{
	sci_query_system_t q = {
		.subcommand = SCI_Q_SYSTEM_CPU_CACHE_LINE_SIZE,
		.data = a->out[0],
	};

	SCIQuery(SCI_Q_SYSTEM, &q, a->flags, a->err);
}

static void call_query_local_segment(struct args *a)
{
	sci_query_local_segment_t q = {
		.segment = a->h[LSEG],
		.subcommand = SCI_Q_LOCAL_SEGMENT_IOADDR,
	};

	SCIQuery(SCI_Q_LOCAL_SEGMENT, &q, a->flags, a->err);
}

static void call_query_remote_segment(struct args *a)
{
	sci_query_remote_segment_t q = {
		.segment = a->h[RSEG],
		.subcommand = SCI_Q_REMOTE_SEGMENT_IOADDR,
	};

	SCIQuery(SCI_Q_REMOTE_SEGMENT, &q, a->flags, a->err);
}

static void call_query_map(struct args *a)
{
	sci_query_map_t q = {
		.map = a->h[MAP], .data = a->out[0],
		.subcommand = SCI_Q_MAP_MAPPED_TO_LOCAL_TARGET,
	};

	SCIQuery(SCI_Q_MAP, &q, a->flags, a->err);
}

static void call_query_dma(struct args *a)
{
	sci_query_dma_t q = {
		.localAdapterNo = a->adapter, .data = a->out[0],
		.subcommand = SCI_Q_DMA_CAPABILITIES,
	};

	SCIQuery(SCI_Q_DMA, &q, a->flags, a->err);
}

/* functions that no fabric implements */
static const sci_address_t address = { 8, 0, 0 };

CALL(SCIConnectSCISpace, H(DESC), a->adapter, a->out[0], address, SIZE,
     a->flags)
CALL(SCIphDmaEnqueue, H(DMA), 64, 0, a->node, 0, 0, a->flags)
RCALL(SCIphDmaStart, H(DMA), on_dma, NULL, a->flags)
CALL(SCIRegisterInterruptFlag, a->adapter, a->out[0], H(LSEG), 0, on_intr,
     NULL, a->flags)
CALL(SCIEnableConditionalInterrupt, H(LINTR), a->flags)
CALL(SCIDisableConditionalInterrupt, H(LINTR), a->flags)
CALL(SCIGetConditionalInterruptTrigCounter, H(LINTR), a->out[0], a->flags)
CALL(SCICreateNamedInterrupt, H(DESC), a->out[0], a->adapter, name_text,
     on_intr, NULL, a->flags)
RCALL(SCIGetCSRRegister, H(DESC), a->adapter, a->node, 0, a->flags)
CALL(SCISetCSRRegister, H(DESC), a->adapter, a->node, 0, 0, a->flags)
RCALL(SCIGetLocalCSR, H(DESC), a->adapter, 0, a->flags)
CALL(SCISetLocalCSR, H(DESC), a->adapter, 0, 0, a->flags)
CALL(SCIRegisterPCIeRequester, H(DESC), a->adapter, 0, 0, a->flags)
CALL(SCIUnregisterPCIeRequester, H(DESC), a->adapter, 0, 0, a->flags)
CALL(SCIRequestDMAChannel, H(DESC), a->out[0], SCI_DMA_TYPE_SYSTEM,
     a->adapter, a->flags)
CALL(SCIBorrowDevice, H(DESC), a->out[0], 1, a->flags)
CALL(SCIGetDeviceList, H(DESC), a->out[0], a->out[1], NULL, a->flags)
CALL(SCIGetFabricDeviceId, H(DESC), device_text, a->out[0], a->flags)

#define F(f, ...)	{ .name = #f, .call = call_##f, __VA_ARGS__ }
#define HANDLES(mask)	.handles = (mask)
#define RETURNS(value)	.has_ret = true, .failed = (uintptr_t)(value)

#define ENGINES		(SCI_FLAG_DMA_GLOBAL | SCI_FLAG_DMA_SYSDMA |	\
			 SCI_FLAG_DMA_ADAPTER)
#define START_FLAGS	(ENGINES | SCI_FLAG_DMA_READ |			\
			 SCI_FLAG_DMA_WAIT | SCI_FLAG_USE_CALLBACK |	\
			 SCI_FLAG_BROADCAST)
/* a call that changes a segment's state accepts the flags of the other ones */
#define STATE_FLAGS	(SCI_FLAG_DMA_SOURCE_ONLY | SCI_FLAG_DMA_GLOBAL | \
			 SCI_FLAG_BROADCAST | SCI_FLAG_NOTIFY |		\
			 SCI_FLAG_FORCE_DISCONNECT | SCI_FLAG_FORCE_REMOVE)
/* the header has no flags for functions that are not implemented */
#define STUB(...)	.stub = true, .flags = 0x3fffffff, __VA_ARGS__

static const struct function functions[] = {
	F(SCIOpen, .flags = SCI_FLAG_THREAD_SAFE, .outs = 1),
	F(SCIClose, HANDLES(BIT(DESC))),
	F(SCICreateSegment, HANDLES(BIT(DESC)), .outs = 1,
	  .flags = SCI_FLAG_USE_CALLBACK | SCI_FLAG_EMPTY | SCI_FLAG_PRIVATE |
		   SCI_FLAG_AUTO_ID | SCI_FLAG_BROADCAST |
		   SCI_FLAG_ALLOW_UNICAST | SCI_FLAG_DMA_GLOBAL),
	F(SCIPrepareSegment, HANDLES(BIT(LSEG)), .adapter = true,
	  .flags = STATE_FLAGS),
	F(SCISetSegmentAvailable, HANDLES(BIT(LSEG)), .adapter = true,
	  .flags = STATE_FLAGS),
	F(SCISetSegmentUnavailable, HANDLES(BIT(LSEG)), .adapter = true,
	  .flags = STATE_FLAGS),
	F(SCIRemoveSegment, HANDLES(BIT(LSEG)), .flags = STATE_FLAGS),
	F(SCIMapLocalSegment, HANDLES(BIT(LSEG)), .outs = 1, RETURNS(NULL),
	  .flags = SCI_FLAG_FIXED_MAP_ADDR | SCI_FLAG_READONLY_MAP),
	F(SCIShareSegment, HANDLES(BIT(LSEG)), .flags = STATE_FLAGS),
	F(SCIAttachLocalSegment, HANDLES(BIT(DESC)), .outs = 2, .may_skip = 2,
	  .flags = SCI_FLAG_USE_CALLBACK | SCI_FLAG_BROADCAST),
	F(SCIRegisterSegmentMemory, HANDLES(BIT(LSEG)),
	  .flags = SCI_FLAG_LOCK_USER_MEM),
	F(SCIAttachPhysicalMemory, HANDLES(BIT(LSEG)),
	  .flags = SCI_FLAG_CUDA_BUFFER),
	F(SCIWaitForLocalSegmentEvent, HANDLES(BIT(LSEG)), .outs = 2,
	  .may_skip = 3, RETURNS(0)),
	F(SCIConnectSegment, HANDLES(BIT(DESC)), .outs = 1, .adapter = true,
	  .node = true,
	  .flags = SCI_FLAG_USE_CALLBACK | SCI_FLAG_BROADCAST |
		   SCI_FLAG_ASYNCHRONOUS_CONNECT | SCI_FLAG_DMA_GLOBAL),
	F(SCIDisconnectSegment, HANDLES(BIT(RSEG))),
	F(SCIMapRemoteSegment, HANDLES(BIT(RSEG)), .outs = 1, RETURNS(NULL),
	  .flags = SCI_FLAG_FIXED_MAP_ADDR | SCI_FLAG_READONLY_MAP |
		   SCI_FLAG_BROADCAST | SCI_FLAG_LOCK_OPERATION |
		   SCI_FLAG_READ_PREFETCH_AGGR_HOLD_MAP |
		   SCI_FLAG_READ_PREFETCH_NO_HOLD_MAP | SCI_FLAG_DMOVE_MAP |
		   SCI_FLAG_WRITES_DISABLE_GATHER_MAP |
		   SCI_FLAG_DISABLE_128_BYTES_PACKETS |
		   SCI_FLAG_WRITE_BACK_CACHE_MAP |
		   SCI_FLAG_NO_MEMORY_LOOPBACK_MAP | SCI_FLAG_IO_MAP_IOSPACE |
		   SCI_FLAG_CONDITIONAL_INTERRUPT_MAP |
		   SCI_FLAG_UNCONDITIONAL_DATA_INTERRUPT_MAP),
	F(SCIUnmapSegment, HANDLES(BIT(MAP))),
	F(SCIWaitForRemoteSegmentEvent, HANDLES(BIT(RSEG)), .outs = 1,
	  .may_skip = 1, RETURNS(0)),
	F(SCICreateMapSequence, HANDLES(BIT(MAP)), .outs = 1,
	  .flags = SCI_FLAG_FAST_BARRIER),
	F(SCIRemoveSequence, HANDLES(BIT(SEQ))),
	F(SCIStartSequence, HANDLES(BIT(SEQ)),
	  RETURNS(SCI_SEQ_NOT_RETRIABLE)),
	F(SCICheckSequence, HANDLES(BIT(SEQ)), RETURNS(SCI_SEQ_NOT_RETRIABLE),
	  .flags = SCI_FLAG_NO_FLUSH | SCI_FLAG_NO_STORE_BARRIER),
	F(SCIMemCpy, HANDLES(BIT(SEQ) | BIT(MAP)), .may_be_null = BIT(SEQ),
	  .flags = SCI_FLAG_BLOCK_READ | SCI_FLAG_ERROR_CHECK),
	F(SCIMemCopy, HANDLES(BIT(MAP)),
	  .flags = SCI_FLAG_BLOCK_READ | SCI_FLAG_ERROR_CHECK),
	F(SCIMemWrite, HANDLES(0)),
	F(SCITransferBlock, HANDLES(BIT(MAP))),
	F(SCITransferBlockAsync, HANDLES(BIT(MAP)), .outs = 1,
	  .flags = SCI_FLAG_BLOCK_READ | SCI_FLAG_USE_CALLBACK),
	F(SCIWaitForBlockTransfer, HANDLES(BIT(BLOCK))),
	F(SCIAbortBlockTransfer, HANDLES(BIT(BLOCK))),
	F(SCICacheSync, HANDLES(BIT(MAP)), .may_be_null = BIT(MAP),
	  .flags = SCI_FLAG_CACHE_FLUSH | SCI_FLAG_CACHE_INVALIDATE),
	F(SCICreateDMAQueue, HANDLES(BIT(DESC)), .outs = 1, .adapter = true,
	  .flags = ENGINES | SCI_FLAG_DMA_PHDMA),
	F(SCIRemoveDMAQueue, HANDLES(BIT(DMA))),
	F(SCIEnqueueDMATransfer, HANDLES(BIT(DMA) | BIT(LSEG) | BIT(RSEG)),
	  .flags = ENGINES | SCI_FLAG_DMA_READ | SCI_FLAG_DMA_POST |
		   SCI_FLAG_DMA_WAIT | SCI_FLAG_DMA_RESET),
	F(SCIPostDMAQueue, HANDLES(BIT(DMA)),
	  .flags = SCI_FLAG_USE_CALLBACK),
	F(SCIResetDMAQueue, HANDLES(BIT(DMA))),
	F(SCIAbortDMAQueue, HANDLES(BIT(DMA))),
	F(SCIWaitForDMAQueue, HANDLES(BIT(DMA))),
	F(SCIStartDmaTransfer, HANDLES(BIT(DMA) | BIT(LSEG) | BIT(RSEG)),
	  .flags = START_FLAGS),
	F(SCIStartDmaTransferVec, HANDLES(BIT(DMA) | BIT(LSEG) | BIT(RSEG)),
	  .flags = START_FLAGS),
	F(SCIStartDmaTransferMem, HANDLES(BIT(DMA) | BIT(RSEG)),
	  .flags = START_FLAGS),
	F(SCICreateInterrupt, HANDLES(BIT(DESC)), .outs = 2, .adapter = true,
	  .flags = SCI_FLAG_USE_CALLBACK | SCI_FLAG_FIXED_INTNO |
		   SCI_FLAG_SHARED_INT | SCI_FLAG_COUNTING_INT),
	F(SCIRemoveInterrupt, HANDLES(BIT(LINTR))),
	F(SCIWaitForInterrupt, HANDLES(BIT(LINTR))),
	F(SCIConnectInterrupt, HANDLES(BIT(DESC)), .outs = 1, .adapter = true,
	  .node = true, .flags = SCI_FLAG_COUNTING_INT),
	F(SCIDisconnectInterrupt, HANDLES(BIT(RINTR))),
	F(SCITriggerInterrupt, HANDLES(BIT(RINTR))),
	F(SCICreateDataInterrupt, HANDLES(BIT(DESC)), .outs = 2,
	  .adapter = true,
	  .flags = SCI_FLAG_USE_CALLBACK | SCI_FLAG_FIXED_INTNO),
	F(SCIRemoveDataInterrupt, HANDLES(BIT(LDINTR))),
	F(SCIWaitForDataInterrupt, HANDLES(BIT(LDINTR)), .outs = 1),
	/* the documents say "as SCIConnectInterrupt()", which leaves its flag open */
	F(SCIConnectDataInterrupt, HANDLES(BIT(DESC)), .outs = 1,
	  .adapter = true, .node = true, .flags = SCI_FLAG_COUNTING_INT),
	F(SCIDisconnectDataInterrupt, HANDLES(BIT(RDINTR))),
	F(SCITriggerDataInterrupt, HANDLES(BIT(RDINTR))),
	F(SCIProbeNode, HANDLES(BIT(DESC)), .adapter = true, .node = true,
	  RETURNS(0)),
	F(SCIGetLocalNodeId, .outs = 1, .adapter = true),
	F(SCIGetNodeIdByAdapterName, .outs = 2, .may_skip = 2),
	F(SCIGetNodeInfoByAdapterName, .outs = 3, .may_skip = 4),
	F(query_vendor, .outs = 1),
	F(query_adapter, .outs = 1, .adapter = true),
	F(query_system, .outs = 1),
	F(query_local_segment, HANDLES(BIT(LSEG))),
	F(query_remote_segment, HANDLES(BIT(RSEG))),
	F(query_map, HANDLES(BIT(MAP)), .outs = 1),
	F(query_dma, .outs = 1, .adapter = true, .flags = ENGINES),

	F(SCIConnectSCISpace, STUB(HANDLES(BIT(DESC)), .outs = 1,
				   .adapter = true)),
	F(SCIphDmaEnqueue, STUB(HANDLES(BIT(DMA)), .node = true)),
	F(SCIphDmaStart, STUB(HANDLES(BIT(DMA)))),
	F(SCIRegisterInterruptFlag, STUB(HANDLES(BIT(LSEG)), .outs = 1,
					 .adapter = true)),
	F(SCIEnableConditionalInterrupt, STUB(HANDLES(BIT(LINTR)))),
	F(SCIDisableConditionalInterrupt, STUB(HANDLES(BIT(LINTR)))),
	F(SCIGetConditionalInterruptTrigCounter, STUB(HANDLES(BIT(LINTR)),
						      .outs = 1)),
	F(SCICreateNamedInterrupt, STUB(HANDLES(BIT(DESC)), .outs = 1,
					.adapter = true)),
	F(SCIGetCSRRegister, STUB(HANDLES(BIT(DESC)), .adapter = true,
				  .node = true, RETURNS(0))),
	F(SCISetCSRRegister, STUB(HANDLES(BIT(DESC)), .adapter = true,
				  .node = true)),
	F(SCIGetLocalCSR, STUB(HANDLES(BIT(DESC)), .adapter = true,
			       RETURNS(0))),
	F(SCISetLocalCSR, STUB(HANDLES(BIT(DESC)), .adapter = true)),
	F(SCIRegisterPCIeRequester, STUB(HANDLES(BIT(DESC)),
					 .adapter = true)),
	F(SCIUnregisterPCIeRequester, STUB(HANDLES(BIT(DESC)),
					   .adapter = true)),
	F(SCIRequestDMAChannel, STUB(HANDLES(BIT(DESC)), .outs = 1,
				     .adapter = true)),
	F(SCIBorrowDevice, STUB(HANDLES(BIT(DESC)), .outs = 1)),
	F(SCIGetDeviceList, STUB(HANDLES(BIT(DESC)), .outs = 2)),
	F(SCIGetFabricDeviceId, STUB(HANDLES(BIT(DESC)), .outs = 1)),
};

#define for_each_function(f)						\
	for (const struct function *f = functions;			\
	     f < functions + ARRAY_LEN(functions); f++)

/* ---- a handle of each kind ---- */

static void *first_of(const void *out)
{
	void *h;

	memcpy(&h, out, sizeof(h));
	return h;
}

/* Create an object of each kind, with ids and numbers from @id on. */
static void make_world(void *h[KINDS], unsigned int id)
{
	sci_block_transfer_t block;
	sci_sequence_t seq;
	sci_dma_queue_t q;
	sci_map_t map;

	h[DESC] = test_open();
	h[LSEG] = test_segment(h[DESC], id, SIZE, 0);
	h[RSEG] = test_connect(h[DESC], 4, id);
	test_map_remote(h[RSEG], &map);
	h[MAP] = map;
	CHECK_OK(SCICreateMapSequence(map, &seq, 0, &err));
	h[SEQ] = seq;
	CHECK_OK(SCICreateDMAQueue(h[DESC], &q, 0, 4, 0, &err));
	h[DMA] = q;
	h[LINTR] = test_interrupt(h[DESC], id);
	h[RINTR] = test_connect_interrupt(h[DESC], 4, id);
	h[LDINTR] = test_data_interrupt(h[DESC], id);
	h[RDINTR] = test_connect_data_interrupt(h[DESC], 4, id);
	CHECK_OK(SCITransferBlockAsync(map, 0, map, SIZE / 2, 64, &block, NULL,
				       NULL, 0, &err));
	h[BLOCK] = block;
}

static void remove_world(void *h[KINDS])
{
	CHECK_OK(SCIWaitForBlockTransfer(h[BLOCK], SCI_INFINITE_TIMEOUT, 0,
					 &err));
	CHECK_OK(SCIDisconnectDataInterrupt(h[RDINTR], 0, &err));
	CHECK_OK(SCIRemoveDataInterrupt(h[LDINTR], 0, &err));
	CHECK_OK(SCIDisconnectInterrupt(h[RINTR], 0, &err));
	CHECK_OK(SCIRemoveInterrupt(h[LINTR], 0, &err));
	CHECK_OK(SCIRemoveDMAQueue(h[DMA], 0, &err));
	CHECK_OK(SCIRemoveSequence(h[SEQ], 0, &err));
	CHECK_OK(SCIUnmapSegment(h[MAP], 0, &err));
	CHECK_OK(SCIDisconnectSegment(h[RSEG], 0, &err));
	CHECK_OK(SCIRemoveSegment(h[LSEG], 0, &err));
	CHECK_OK(SCIClose(h[DESC], 0, &err));
}

static unsigned char results[OUTS][OUT_ROOM];

static void set_results(const struct function *f, struct args *a)
{
	memset(results, SENTINEL, sizeof(results));
	for (unsigned int i = 0; i < OUTS; i++)
		a->out[i] = i < f->outs ? results[i] : NULL;
}

static struct args right_args(const struct function *f, void *const h[KINDS])
{
	struct args a = { .node = 4 };

	if (h)
		memcpy(a.h, h, sizeof(a.h));
	set_results(f, &a);
	return a;
}

static void check_results_untouched(const struct function *f, const char *what)
{
	static unsigned char want[OUT_ROOM];

	memset(want, SENTINEL, sizeof(want));
	for (unsigned int i = 0; i < f->outs; i++)
		if (memcmp(results[i], want, OUT_ROOM))
			FAIL("%s, %s: it failed and wrote result %u", f->name,
			     what, i);
}

/* Check that the call fails with @want, and fails without a place for the code, too. */
static void check_fails(const struct function *f, struct args *a,
			sci_error_t want, const char *what)
{
	sci_error_t err = TEST_ERR_UNSET;

	a->err = &err;
	f->call(a);
	if (err != want)
		FAIL("%s, %s: expected %s, got %s (%#x)", f->name, what,
		     SCIGetErrorString(want), SCIGetErrorString(err), err);
	if (f->has_ret && a->ret != f->failed)
		FAIL("%s, %s: it returned %#lx", f->name, what,
		     (unsigned long)a->ret);
	check_results_untouched(f, what);
	a->err = NULL;
	f->call(a);
	check_results_untouched(f, what);
}

/* ---- without SCIInitialize() ---- */

static void check_values_without(void)
{
	static char local;
	const void *const bad[] = {
		NULL, &local, (void *)(uintptr_t)0xdeadbeef
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		void *h = (void *)(uintptr_t)bad[i];

		CHECK_EQ(SCIGetLocalSegmentId(h), 0);
		CHECK_EQ(SCIGetLocalSegmentSize(h), 0);
		CHECK_EQ(SCIGetRemoteSegmentId(h), 0);
		CHECK_EQ(SCIGetRemoteSegmentSize(h), 0);
		CHECK_EQ(SCIGetRemoteSegmentNodeId(h), 0);
		CHECK_EQ(SCIDMAQueueState(h), SCI_DMAQUEUE_ERROR);
		SCIStoreBarrier(h, 0);
		SCIStoreBarrier(h, ~0u);
		SCIFlushReadBuffers(h);
		SCIFlush(h, 0);
		SCIFlush(h, ~0u);
	}
	for (unsigned int i = 0; i < 70; i++) {
		CHECK(SCIGetErrorString((sci_error_t)(0x40000900 + i)));
		CHECK(SCIGetAdapterTypeString((dis_virt_adapter_t)i));
		CHECK(SCIGetAdapterFamilyString((dis_virt_adapter_t)i));
	}
	CHECK(SCIGetErrorString((sci_error_t)-1) != NULL);
	CHECK(SCIGetAdapterTypeString((dis_virt_adapter_t)-1) != NULL);
	CHECK(SCIGetAdapterFamilyString((dis_virt_adapter_t)-1) != NULL);
}

static void check_not_initialized(void *const h[KINDS])
{
	for_each_function(f) {
		struct args a = right_args(f, h);

		check_fails(f, &a, SCI_ERR_NOT_INITIALIZED, "no library");
	}
	check_values_without();
}

TEST(before_initialize)
{
	void *garbage[KINDS];

	leak_check_begin();
	check_not_initialized(NULL);
	for (int i = 0; i < KINDS; i++)
		garbage[i] = (void *)(uintptr_t)(0xdeadbeef + i);
	check_not_initialized(garbage);
	leak_check_end();
}

TEST(after_terminate)
{
	void *h[KINDS];

	make_world(h, 10);
	SCITerminate();
	leak_check_begin();
	check_not_initialized(h);
	leak_check_end();
}

TEST(in_a_child)
{
	void *h[KINDS];
	int status;
	pid_t pid;

	make_world(h, 10);
	pid = test_fork();
	CHECK(pid >= 0);
	if (!pid) {
		check_not_initialized(h);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	remove_world(h);
}

/* Handles from before SCITerminate() are invalid after the next SCIInitialize(). */
TEST(handles_do_not_outlive_a_terminate)
{
	void *old[KINDS], *h[KINDS];

	make_world(old, 10);
	SCITerminate();
	make_world(h, 10);
	leak_check_begin();
	for_each_function(f) {
		for (int kind = 0; kind < KINDS; kind++) {
			struct args a = right_args(f, h);

			if (!(f->handles & BIT(kind)))
				continue;
			a.h[kind] = old[kind];
			check_fails(f, &a, SCI_ERR_ILLEGAL_PARAMETER,
				    "old handle");
		}
	}
	leak_check_end();
	remove_world(h);
}

/* ---- flags ---- */

TEST(unknown_flags)
{
	void *h[KINDS];

	for (unsigned int bit = 0; bit < 32; bit++)
		CHECK_ERR(SCIInitialize(1u << bit, &err),
			  SCI_ERR_ILLEGAL_FLAG);
	SCIInitialize(1, NULL);
	make_world(h, 10);
	CHECK_ERR(SCIInitialize(1, &err), SCI_ERR_ILLEGAL_FLAG);
	for_each_function(f) {
		leak_check_begin();
		for (unsigned int bit = 0; bit < 32; bit++) {
			struct args a = right_args(f, h);
			char what[32];

			if (f->flags & 1u << bit)
				continue;
			snprintf(what, sizeof(what), "flag %#x", 1u << bit);
			a.flags = 1u << bit;
			check_fails(f, &a, SCI_ERR_ILLEGAL_FLAG, what);
			/* also together with the flags that the function accepts */
			if (!f->stub) {
				a.flags |= f->flags;
				check_fails(f, &a, SCI_ERR_ILLEGAL_FLAG, what);
			}
		}
		leak_check_end();
	}
	remove_world(h);
}

TEST(flags_for_what_the_fabric_lacks)
{
	static const unsigned int lacks[] = {
		SCI_FLAG_CONDITIONAL_INTERRUPT_MAP,
		SCI_FLAG_UNCONDITIONAL_DATA_INTERRUPT_MAP
	};
	sci_dma_queue_t q = NULL;
	sci_map_t map = NULL;
	void *h[KINDS];

	make_world(h, 10);
	leak_check_begin();
	for (size_t i = 0; i < ARRAY_LEN(lacks); i++)
		CHECK_ERR(SCIMapRemoteSegment(h[RSEG], &map, 0, SIZE, NULL,
					      lacks[i], &err),
			  SCI_ERR_FLAG_NOT_IMPLEMENTED);
	CHECK(!map);
	CHECK_EITHER(SCICreateDMAQueue(h[DESC], &q, 0, 4, SCI_FLAG_DMA_PHDMA,
				       &err),
		     SCI_ERR_FLAG_NOT_IMPLEMENTED, SCI_ERR_NOT_SUPPORTED);
	CHECK(!q);
	leak_check_end();
}

/* ---- handles ---- */

static void check_handle(const struct function *f, void *const h[KINDS],
			 int kind, void *wrong, const char *what)
{
	struct args a = right_args(f, h);

	a.h[kind] = wrong;
	check_fails(f, &a, SCI_ERR_ILLEGAL_PARAMETER, what);
}

static void check_bad_handles(const struct function *f, void *const h[KINDS],
			      void *const stale[KINDS], int kind)
{
	uintptr_t good = (uintptr_t)h[kind];
	char local;

	if (!(f->may_be_null & BIT(kind)))
		check_handle(f, h, kind, NULL, "NULL handle");
	check_handle(f, h, kind, (void *)(uintptr_t)0xdeadbeef, "0xdeadbeef");
	check_handle(f, h, kind, (void *)(uintptr_t)1, "handle 1");
	check_handle(f, h, kind, (void *)UINTPTR_MAX, "handle -1");
	check_handle(f, h, kind, &local, "address of a variable");
	check_handle(f, h, kind, stale[kind], "removed handle");
	for (unsigned int bit = 0; bit < 64; bit++) {
		uintptr_t near = good ^ (uintptr_t)1 << bit;
		bool other = false;

		for (int i = 0; i < KINDS; i++)
			other |= near == (uintptr_t)h[i];
		if (!other)
			check_handle(f, h, kind, (void *)near, "one bit off");
	}
	for (int i = 0; i < KINDS; i++)
		if (i != kind)
			check_handle(f, h, kind, h[i], "another kind");
}

TEST(bad_handles)
{
	void *stale[KINDS], *h[KINDS];

	make_world(stale, 10);
	remove_world(stale);
	make_world(h, 10);
	for_each_function(f) {
		leak_check_begin();
		for (int kind = 0; kind < KINDS; kind++)
			if (f->handles & BIT(kind))
				check_bad_handles(f, h, stale, kind);
		leak_check_end();
	}
	check_values_without();
	/* the calls above have changed nothing */
	remove_world(h);
}

/* Bad handles are composed of bits from the handles of two objects. */
TEST(bad_handles_of_two_halves)
{
	void *h[KINDS];

	make_world(h, 10);
	for_each_function(f) {
		for (int kind = 0; kind < KINDS; kind++)
			for (int other = 0; other < KINDS; other++)
				for (unsigned int at = 0; at < 64; at += 4) {
					uintptr_t mask = (uintptr_t)15 << at;
					uintptr_t bad = (uintptr_t)h[other];

					bad ^= (bad ^ (uintptr_t)h[kind]) &
					       mask;
					if (!(f->handles & BIT(kind)) ||
					    bad == (uintptr_t)h[kind])
						continue;
					check_handle(f, h, kind, (void *)bad,
						     "two halves");
				}
	}
	remove_world(h);
}

TEST(getters_with_bad_handles)
{
	void *stale[KINDS], *h[KINDS];

	make_world(stale, 10);
	remove_world(stale);
	make_world(h, 10);
	for (int i = 0; i < 2 * KINDS; i++) {
		void *bad = i < KINDS ? h[i] : stale[i - KINDS];

		if (i != LSEG) {
			CHECK_EQ(SCIGetLocalSegmentId(bad), 0);
			CHECK_EQ(SCIGetLocalSegmentSize(bad), 0);
		}
		if (i != RSEG) {
			CHECK_EQ(SCIGetRemoteSegmentId(bad), 0);
			CHECK_EQ(SCIGetRemoteSegmentSize(bad), 0);
			CHECK_EQ(SCIGetRemoteSegmentNodeId(bad), 0);
		}
		if (i != DMA)
			CHECK_EQ(SCIDMAQueueState(bad), SCI_DMAQUEUE_ERROR);
		SCIStoreBarrier(bad, 0);
		SCIFlushReadBuffers(bad);
		SCIFlush(bad, 0);
	}
	CHECK_EQ(SCIGetLocalSegmentId(h[LSEG]), 10);
	CHECK_EQ(SCIGetRemoteSegmentNodeId(h[RSEG]), 4);
}

/* No such object exists. NULL is an illegal parameter, other values may be unimplemented. */
TEST(devices_and_channels_that_cannot_be)
{
	sci_smartio_device_t dev = (void *)(uintptr_t)0xdeadbeef;
	sci_dma_channel_t ch = (void *)(uintptr_t)0xdeadbeef;
	sci_device_t device = (void *)(uintptr_t)0xdeadbeef;
	sci_remote_segment_t r = NULL;
	sci_ioaddr_t io = 1;
	void *h[KINDS];

	make_world(h, 10);
	leak_check_begin();
#define EACH(null_call, call)						\
	do {								\
		CHECK_ERR(null_call, SCI_ERR_ILLEGAL_PARAMETER);	\
		CHECK_EITHER(call, SCI_ERR_ILLEGAL_PARAMETER,		\
			     SCI_ERR_NOT_IMPLEMENTED);			\
	} while (0)
	EACH(SCIReturnDMAChannel(NULL, &err), SCIReturnDMAChannel(ch, &err));
	EACH(SCIAssignDMAChannel(NULL, h[DMA], 0, &err),
	     SCIAssignDMAChannel(ch, h[DMA], 0, &err));
	EACH(SCIReturnDevice(NULL, 0, &err), SCIReturnDevice(dev, 0, &err));
	EACH(SCIReleaseExclusiveBorrow(NULL, 0, &err),
	     SCIReleaseExclusiveBorrow(dev, 0, &err));
	EACH(SCIConnectDeviceSegment(NULL, &r, 1, 0, NULL, NULL, 0, &err),
	     SCIConnectDeviceSegment(dev, &r, 1, 0, NULL, NULL, 0, &err));
	EACH(SCIConnectDeviceSegmentPath(NULL, &r, 1, 0, 0, NULL, NULL, 0,
					 &err),
	     SCIConnectDeviceSegmentPath(dev, &r, 1, 0, 0, NULL, NULL, 0,
					 &err));
	EACH(SCICreateDeviceSegment(NULL, 1, SIZE, 0, 0, 0, &err),
	     SCICreateDeviceSegment(dev, 1, SIZE, 0, 0, 0, &err));
	EACH(SCIMapLocalSegmentForDevice(h[LSEG], 0, NULL, &io, 0, &err),
	     SCIMapLocalSegmentForDevice(h[LSEG], 0, dev, &io, 0, &err));
	EACH(SCIUnmapLocalSegmentForDevice(h[LSEG], 0, NULL, 0, &err),
	     SCIUnmapLocalSegmentForDevice(h[LSEG], 0, dev, 0, &err));
	EACH(SCIMapRemoteSegmentForDevice(h[RSEG], NULL, &io, 0, &err),
	     SCIMapRemoteSegmentForDevice(h[RSEG], dev, &io, 0, &err));
	EACH(SCIUnmapRemoteSegmentForDevice(h[RSEG], NULL, 0, &err),
	     SCIUnmapRemoteSegmentForDevice(h[RSEG], dev, 0, &err));
	EACH(SCIConnectDeviceMemory(NULL, &r, 0, 8, 0, &err),
	     SCIConnectDeviceMemory(device, &r, 0, 8, 0, &err));
	CHECK(!r && io == 1);
	leak_check_end();
	SCITerminate();
	CHECK_ERR(SCIReturnDMAChannel(ch, &err), SCI_ERR_NOT_INITIALIZED);
	CHECK_ERR(SCIReturnDevice(dev, 0, &err), SCI_ERR_NOT_INITIALIZED);
	CHECK_ERR(SCIConnectDeviceMemory(device, &r, 0, 8, 0, &err),
		  SCI_ERR_NOT_INITIALIZED);
}

TEST(stubs_answer_not_implemented)
{
	void *h[KINDS];

	make_world(h, 10);
	leak_check_begin();
	for_each_function(f) {
		struct args a = right_args(f, h);

		if (f->stub)
			check_fails(f, &a, SCI_ERR_NOT_IMPLEMENTED,
				    "all right");
	}
	leak_check_end();
	remove_world(h);
}

/* ---- outputs, adapters, nodes ---- */

TEST(null_outputs)
{
	void *h[KINDS];

	make_world(h, 10);
	for_each_function(f) {
		leak_check_begin();
		for (unsigned int i = 0; i < f->outs; i++) {
			struct args a = right_args(f, h);

			if (f->may_skip & 1u << i)
				continue;
			a.out[i] = NULL;
			check_fails(f, &a, SCI_ERR_ILLEGAL_PARAMETER,
				    "NULL output");
		}
		leak_check_end();
	}
	CHECK_ERR(SCIQuery(SCI_Q_VENDORID, NULL, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCIQuery(SCI_Q_ADAPTER, NULL, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	remove_world(h);
}

TEST(adapter_numbers)
{
	static const unsigned int illegal[] = {
		16, 17, 31, 32, 33, 64, 0x80000000, 0xffffffff
	};
	void *h[KINDS];

	make_world(h, 10);
	for_each_function(f) {
		struct args a = right_args(f, h);

		if (!f->adapter)
			continue;
		leak_check_begin();
		for (a.adapter = 1; a.adapter < 16; a.adapter++)
			check_fails(f, &a, SCI_ERR_NO_SUCH_ADAPTERNO,
				    "adapter without a card");
		for (size_t i = 0; i < ARRAY_LEN(illegal); i++) {
			a.adapter = illegal[i];
			check_fails(f, &a, SCI_ERR_ILLEGAL_ADAPTERNO,
				    "impossible adapter");
		}
		leak_check_end();
	}
	remove_world(h);
}

TEST(node_ids)
{
	static const unsigned int illegal[] = {
		0, 1, 2, 3, 5, 7, 65533, 65534, 65535, 65536 + 4, 0x80000004,
		~0u - 5, ~0u
	};
	static const unsigned int absent[] = { 68, 1024, 65532 };
	void *h[KINDS];

	make_world(h, 10);
	for_each_function(f) {
		struct args a = right_args(f, h);

		if (!f->node)
			continue;
		leak_check_begin();
		for (size_t i = 0; i < ARRAY_LEN(illegal); i++) {
			a.node = illegal[i];
			check_fails(f, &a, SCI_ERR_ILLEGAL_NODEID,
				    "impossible node");
		}
		for (size_t i = 0; !f->stub && i < ARRAY_LEN(absent); i++) {
			a.node = absent[i];
			check_fails(f, &a, SCI_ERR_NO_SUCH_NODEID,
				    "node beyond the cluster");
		}
		leak_check_end();
	}
	/* only connections to broadcast segments accept the node id of the group */
	for_each_function(f) {
		struct args a = right_args(f, h);

		if (!f->node)
			continue;
		a.node = DIS_BROADCAST_NODEID_GROUP_ALL;
		check_fails(f, &a, SCI_ERR_ILLEGAL_NODEID, "group");
	}
	remove_world(h);
}

TEST(callback_flag_without_a_callback)
{
	const unsigned int cb = SCI_FLAG_USE_CALLBACK;
	sci_local_data_interrupt_t ld = NULL;
	sci_local_interrupt_t li = NULL;
	sci_block_transfer_t b = NULL;
	sci_remote_segment_t r = NULL;
	sci_local_segment_t s = NULL;
	unsigned int number = 5;
	void *h[KINDS];

	make_world(h, 10);
	leak_check_begin();
	CHECK_ERR(SCICreateSegment(h[DESC], &s, 77, SIZE, NULL, NULL, cb,
				   &err), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCIAttachLocalSegment(h[DESC], &s, 10, NULL, NULL, NULL, cb,
					&err), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCIConnectSegment(h[DESC], &r, 4, 10, 0, NULL, NULL, 0, cb,
				    &err), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCITransferBlockAsync(h[MAP], 0, h[MAP], 64, 64, &b, NULL,
					NULL, cb, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCIPostDMAQueue(h[DMA], NULL, NULL, cb, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCIStartDmaTransfer(h[DMA], h[LSEG], h[RSEG], 0, 64, 0, NULL,
				      NULL, cb, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCICreateInterrupt(h[DESC], &li, 0, &number, NULL, NULL, cb,
				     &err), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCICreateDataInterrupt(h[DESC], &ld, 0, &number, NULL, NULL,
					 cb, &err), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK(!s && !r && !b && !li && !ld && number == 5);
	leak_check_end();
	remove_world(h);
}

/* ---- sizes and offsets ---- */

TEST(sizes_of_segments)
{
	static const unsigned int kinds[] = {
		0, SCI_FLAG_PRIVATE, SCI_FLAG_AUTO_ID, SCI_FLAG_BROADCAST
	};
	static const size_t large[] = {
		SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 4095, SIZE_MAX / 2,
		SIZE_MAX / 2 + 1, (size_t)1 << 62, (size_t)1 << 50
	};
	sci_desc_t sd = test_open();
	sci_local_segment_t s = NULL;

	test_segment(sd, 1, 1, 0);	/* starts the service thread, which stays */
	leak_check_begin();
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
		CHECK_ERR(SCICreateSegment(sd, &s, 7, 0, NULL, NULL, kinds[k],
					   &err), SCI_ERR_SIZE_ALIGNMENT);
		for (size_t i = 0; i < ARRAY_LEN(large); i++)
			CHECK_ERR(SCICreateSegment(sd, &s, 7, large[i], NULL,
						   NULL, kinds[k], &err),
				  SCI_ERR_NOSPC);
	}
	CHECK(!s);
	leak_check_end();
	test_segment(sd, 7, SIZE, 0);
}

struct range {
	size_t offset, size;
};

static const struct range outside[] = {
	{ SIZE, 1 }, { SIZE - 1, 2 }, { 0, SIZE + 1 }, { SIZE + 1, 1 },
	{ SIZE_MAX, 1 }, { SIZE_MAX, 2 }, { 1, SIZE_MAX }, { 2, SIZE_MAX },
	{ 64, SIZE_MAX - 63 }, { SIZE_MAX - 63, 64 }, { SIZE_MAX - 63, 128 },
	{ SIZE_MAX / 2, SIZE_MAX / 2 + 2 }, { 4096, SIZE_MAX - 4095 },
	{ (size_t)1 << 32, 64 }, { 0, ((size_t)1 << 32) + 64 },
};

TEST(ranges_of_maps)
{
	sci_map_t map = NULL;
	void *h[KINDS];

	make_world(h, 10);
	leak_check_begin();
	for (size_t i = 0; i < ARRAY_LEN(outside); i++) {
		const struct range *o = &outside[i];

		CHECK_ERR(SCIMapLocalSegment(h[LSEG], &map, o->offset, o->size,
					     NULL, 0, &err),
			  SCI_ERR_OUT_OF_RANGE);
		CHECK_ERR(SCIMapRemoteSegment(h[RSEG], &map, o->offset,
					      o->size, NULL, 0, &err),
			  SCI_ERR_OUT_OF_RANGE);
	}
	for (size_t off = 0; off <= SIZE; off += 64) {
		CHECK_ERR(SCIMapLocalSegment(h[LSEG], &map, off, 0, NULL, 0,
					     &err), SCI_ERR_SIZE_ALIGNMENT);
		CHECK_ERR(SCIMapRemoteSegment(h[RSEG], &map, off, 0, NULL, 0,
					      &err), SCI_ERR_SIZE_ALIGNMENT);
	}
	CHECK(!map);
	leak_check_end();
	remove_world(h);
}

TEST(ranges_of_copies)
{
	sci_block_transfer_t block = NULL;
	void *h[KINDS];

	make_world(h, 10);
	leak_check_begin();
	for (size_t i = 0; i < ARRAY_LEN(outside); i++) {
		const struct range *o = &outside[i];
		void *m = h[MAP];

		CHECK_ERR(SCIMemCpy(NULL, memory, m, o->offset, o->size, 0,
				    &err), SCI_ERR_OUT_OF_RANGE);
		CHECK_ERR(SCIMemCpy(NULL, memory, m, o->offset, o->size,
				    SCI_FLAG_BLOCK_READ, &err),
			  SCI_ERR_OUT_OF_RANGE);
		CHECK_ERR(SCIMemCopy(memory, m, o->offset, o->size, 0, &err),
			  SCI_ERR_OUT_OF_RANGE);
		CHECK_ERR(SCITransferBlock(m, o->offset, m, 0, o->size, 0,
					   &err), SCI_ERR_OUT_OF_RANGE);
		CHECK_ERR(SCITransferBlock(m, 0, m, o->offset, o->size, 0,
					   &err), SCI_ERR_OUT_OF_RANGE);
		CHECK_ERR(SCITransferBlockAsync(m, o->offset, m, 0, o->size,
						&block, NULL, NULL, 0, &err),
			  SCI_ERR_OUT_OF_RANGE);
		CHECK_ERR(SCITransferBlockAsync(m, 0, m, o->offset, o->size,
						&block, NULL, NULL, 0, &err),
			  SCI_ERR_OUT_OF_RANGE);
	}
	CHECK(!block);
	CHECK_OK(SCIMemCpy(NULL, memory, h[MAP], SIZE, 0, 0, &err));
	CHECK_OK(SCIMemCpy(NULL, NULL, h[MAP], 0, 0, 0, &err));
	CHECK_ERR(SCIMemCpy(NULL, memory, h[MAP], SIZE + 1, 0, 0, &err),
		  SCI_ERR_OUT_OF_RANGE);
	CHECK_ERR(SCIMemCpy(NULL, NULL, h[MAP], 0, 64, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCIMemWrite(NULL, memory, 64, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCIMemWrite(memory, NULL, 64, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_OK(SCITransferBlock(h[MAP], 0, h[MAP], 64, 0, 0, &err));
	leak_check_end();
	remove_world(h);
}

TEST(ranges_of_cache_operations)
{
	void *h[KINDS];
	sci_map_t map;
	char *p;

	make_world(h, 10);
	p = test_map_local(h[LSEG], &map);
	CHECK_OK(SCICacheSync(map, p, SIZE, SCI_FLAG_CACHE_FLUSH, &err));
	CHECK_OK(SCICacheSync(NULL, memory, SIZE, SCI_FLAG_CACHE_FLUSH, &err));
	for (size_t i = 0; i < ARRAY_LEN(outside); i++)
		CHECK_ERR(SCICacheSync(map, (char *)((uintptr_t)p +
						     outside[i].offset),
				       outside[i].size, SCI_FLAG_CACHE_FLUSH,
				       &err), SCI_ERR_OUT_OF_RANGE);
	CHECK_ERR(SCICacheSync(map, p - 1, 1, SCI_FLAG_CACHE_FLUSH, &err),
		  SCI_ERR_OUT_OF_RANGE);
	CHECK_ERR(SCICacheSync(NULL, NULL, 1, SCI_FLAG_CACHE_FLUSH, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
}

static void check_dma(void *const h[KINDS], size_t local, size_t remote,
		      size_t size, sci_error_t want)
{
	dis_dma_vec_t v = {
		.size = (unsigned int)size,
		.local_offset = (unsigned int)local,
		.remote_offset = (unsigned int)remote,
	};

	CHECK_ERR(SCIStartDmaTransfer(h[DMA], h[LSEG], h[RSEG], local, size,
				      remote, NULL, NULL, 0, &err), want);
	if (!local)
		CHECK_ERR(SCIStartDmaTransferMem(h[DMA], memory, h[RSEG], size,
						 remote, NULL, NULL, 0, &err),
			  remote > SIZE || size > SIZE - remote || !size ?
			  want : SCI_ERR_OUT_OF_RANGE);
	CHECK_EQ(SCIDMAQueueState(h[DMA]), SCI_DMAQUEUE_IDLE);
	if (v.size != size || v.local_offset != local ||
	    v.remote_offset != remote)
		return;
	CHECK_ERR(SCIStartDmaTransferVec(h[DMA], h[LSEG], h[RSEG], 1, &v, NULL,
					 NULL, 0, &err), want);
	CHECK_ERR(SCIEnqueueDMATransfer(h[DMA], h[LSEG], h[RSEG], v.local_offset,
					v.remote_offset, v.size, 0, &err),
		  want);
	CHECK_EQ(SCIDMAQueueState(h[DMA]), SCI_DMAQUEUE_IDLE);
}

TEST(ranges_of_dma)
{
	void *h[KINDS];

	make_world(h, 10);
	leak_check_begin();
	for (size_t i = 0; i < ARRAY_LEN(outside); i++) {
		check_dma(h, 0, outside[i].offset, outside[i].size,
			  SCI_ERR_OUT_OF_RANGE);
		if (outside[i].offset)
			check_dma(h, outside[i].offset, 0, outside[i].size,
				  SCI_ERR_OUT_OF_RANGE);
	}
	check_dma(h, 0xffffffff, 0, 2, SCI_ERR_OUT_OF_RANGE);
	check_dma(h, 0, 0xffffffff, 2, SCI_ERR_OUT_OF_RANGE);
	check_dma(h, 4096, 0, 0xfffff000, SCI_ERR_OUT_OF_RANGE);
	check_dma(h, 0, 0, 0, SCI_ERR_SIZE_ALIGNMENT);
	leak_check_end();
	remove_world(h);
}

TEST(lengths_of_dma_vectors)
{
	static dis_dma_vec_t many[DIS_DMA_MAX_VECLEN + 1];
	static const size_t lengths[] = {
		DIS_DMA_MAX_VECLEN + 1, (size_t)1 << 32, ((size_t)1 << 32) + 1, SIZE_MAX
	};
	void *h[KINDS];

	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		many[i].size = 4;
	make_world(h, 10);
	leak_check_begin();
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
		CHECK_ERR(SCIStartDmaTransferVec(h[DMA], h[LSEG], h[RSEG],
						 lengths[i], many, NULL, NULL,
						 0, &err),
			  SCI_ERR_MAX_ENTRIES);
	CHECK(ERR_OF(SCIStartDmaTransferVec(h[DMA], h[LSEG], h[RSEG], 0, many,
					    NULL, NULL, 0, &err)));
	CHECK_ERR(SCIStartDmaTransferVec(h[DMA], h[LSEG], h[RSEG], 1, NULL,
					 NULL, NULL, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_EQ(SCIDMAQueueState(h[DMA]), SCI_DMAQUEUE_IDLE);
	leak_check_end();
	remove_world(h);
}

TEST(lengths_of_dma_queues)
{
	static const unsigned int bad[] = { 0, (1u << 20) + 1, ~0u };
	sci_desc_t sd = test_open();
	sci_dma_queue_t q = NULL;

	leak_check_begin();
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_ERR(SCICreateDMAQueue(sd, &q, 0, bad[i], 0, &err),
			  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK(!q);
	leak_check_end();
	CHECK_OK(SCICreateDMAQueue(sd, &q, 0, 1u << 20, 0, &err));
}

TEST(lengths_of_data_interrupts)
{
	static const unsigned int bad[] = { 65537, 1u << 31, ~0u };
	static char big[65537];
	unsigned int len = 0;
	void *h[KINDS];

	make_world(h, 10);
	leak_check_begin();
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_ERR(SCITriggerDataInterrupt(h[RDINTR], big, bad[i], 0,
						  &err), SCI_ERR_OUT_OF_RANGE);
	CHECK_ERR(SCITriggerDataInterrupt(h[RDINTR], NULL, 1, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	len = 1;
	CHECK_ERR(SCIWaitForDataInterrupt(h[LDINTR], NULL, &len, 0, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCIWaitForDataInterrupt(h[LDINTR], big, NULL, 0, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCIWaitForDataInterrupt(h[LDINTR], big, &len, 0, 0, &err),
		  SCI_ERR_TIMEOUT);
	CHECK_EQ(len, 1);
	leak_check_end();
	CHECK_OK(SCITriggerDataInterrupt(h[RDINTR], NULL, 0, 0, &err));
	CHECK_OK(SCITriggerDataInterrupt(h[RDINTR], big, 65536, 0, &err));
	CHECK_OK(SCIWaitForDataInterrupt(h[LDINTR], big, &len, TEST_WAIT_MS, 0,
					 &err));
	CHECK_EQ(len, 0);
	len = 65535;
	CHECK_ERR(SCIWaitForDataInterrupt(h[LDINTR], big, &len, TEST_WAIT_MS,
					  0, &err), SCI_ERR_NOSPC);
	CHECK_EQ(len, 65536);
	CHECK_OK(SCIWaitForDataInterrupt(h[LDINTR], big, &len, 0, 0, &err));
	CHECK_EQ(len, 65536);
	remove_world(h);
}

/* ---- addresses ---- */

static void check_fixed(void *const h[KINDS], void *addr, size_t off,
			sci_error_t one, sci_error_t other)
{
	const unsigned int fixed = SCI_FLAG_FIXED_MAP_ADDR;
	sci_map_t map = NULL;

	CHECK_EITHER(SCIMapLocalSegment(h[LSEG], &map, off, SIZE - off, addr,
					fixed, &err), one, other);
	CHECK_EITHER(SCIMapRemoteSegment(h[RSEG], &map, off, SIZE - off, addr,
					 fixed, &err), one, other);
	CHECK(!map);
}

TEST(fixed_addresses)
{
	const sci_error_t addr = SCI_ERR_ILLEGAL_ADDRESS;
	const sci_error_t align = SCI_ERR_OFFSET_ALIGNMENT;
	char *gap = mmap(NULL, 4 * SIZE, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *page, local = 1;
	void *h[KINDS];

	CHECK(gap != MAP_FAILED);
	make_world(h, 10);
	page = test_map_local(h[LSEG], NULL);
	leak_check_begin();
	check_fixed(h, NULL, 0, addr, addr);
	check_fixed(h, page, 0, addr, addr);
	check_fixed(h, page, 4096, addr, addr);
	check_fixed(h, page + 64, 0, align, align);
	check_fixed(h, page, 64, align, align);
	check_fixed(h, (void *)((uintptr_t)&local & ~(uintptr_t)4095), 0, addr,
		    addr);
	check_fixed(h, (void *)((uintptr_t)memory & ~(uintptr_t)4095), 0, addr,
		    addr);
	check_fixed(h, gap, 0, addr, addr);
	check_fixed(h, gap + 64, 64, addr, addr);
	check_fixed(h, (void *)(uintptr_t)64, 64, addr, addr);
	/* above the process's addresses, and past the end of all addresses */
	for (int i = 1; i < 4 && !TEST_TSAN; i++)
		check_fixed(h, (void *)(0 - (uintptr_t)4096 * i), 0, addr,
			    SCI_ERR_NOSPC);
	leak_check_end();
	CHECK_EQ(local, 1);
	/* one page in the way is enough */
	CHECK_EQ(munmap(gap, SIZE / 2), 0);
	check_fixed(h, gap, 0, addr, addr);
	CHECK_EQ(mprotect(gap + SIZE / 2, 4096, PROT_READ), 0);
	CHECK_EQ(gap[SIZE / 2], 0);
	/* without the flag, the address is ignored */
	CHECK_OK(SCIMapLocalSegment(h[LSEG], (sci_map_t[]){ NULL }, 0, SIZE,
				    (void *)UINTPTR_MAX, 0, &err));
}

static sci_local_segment_t empty_segment(sci_desc_t sd, size_t size)
{
	sci_local_segment_t s;

	CHECK_OK(SCICreateSegment(sd, &s, 0, size, NULL, NULL,
				  SCI_FLAG_EMPTY | SCI_FLAG_AUTO_ID, &err));
	return s;
}

static void check_register(sci_local_segment_t s, void *addr, size_t size,
			   sci_error_t want)
{
	for (unsigned int lock = 0; lock < 2; lock++)
		CHECK_EITHER(SCIRegisterSegmentMemory(addr, size, s,
			     lock ? SCI_FLAG_LOCK_USER_MEM : 0, &err), want,
			     lock ? SCI_ERR_NOSPC : want);
}

TEST(memory_to_register)
{
	sci_desc_t sd = test_open();
	sci_local_segment_t s = empty_segment(sd, SIZE);
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char *shared = test_shared(SIZE);
	char *mine = mmap(NULL, 2 * SIZE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *ro = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);
	char *file = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd,
			  0);
	char stack;

	CHECK(mine != MAP_FAILED && ro != MAP_FAILED && file != MAP_FAILED);
	leak_check_begin();
	check_register(s, mine, 0, SCI_ERR_SIZE_ALIGNMENT);
	check_register(s, mine, SIZE - 1, SCI_ERR_SIZE_ALIGNMENT);
	check_register(s, mine, SIZE / 2, SCI_ERR_OUT_OF_RANGE);
	check_register(s, mine, 2 * SIZE, SCI_ERR_OUT_OF_RANGE);
	check_register(s, mine, SIZE_MAX - 4095, SCI_ERR_OUT_OF_RANGE);
	check_register(s, mine + 64, SIZE, SCI_ERR_ILLEGAL_ADDRESS);
	check_register(s, NULL, SIZE, SCI_ERR_ILLEGAL_ADDRESS);
	check_register(s, ro, SIZE, SCI_ERR_ILLEGAL_ADDRESS);
	check_register(s, file, SIZE, SCI_ERR_ILLEGAL_ADDRESS);
	check_register(s, shared, SIZE, SCI_ERR_ILLEGAL_ADDRESS);
	check_register(s, (void *)((uintptr_t)&stack & ~(uintptr_t)4095), SIZE,
		       SCI_ERR_ILLEGAL_ADDRESS);
	CHECK_EQ(munmap(mine + SIZE / 2, SIZE / 2), 0);
	check_register(s, mine, SIZE, SCI_ERR_ILLEGAL_ADDRESS);
	check_register(s, (void *)(uintptr_t)4096, SIZE,
		       SCI_ERR_ILLEGAL_ADDRESS);
	leak_check_end();
	CHECK_OK(SCIRegisterSegmentMemory(mine + SIZE, SIZE, s, 0, &err));
	CHECK_ERR(SCIRegisterSegmentMemory(mine + SIZE, SIZE, s, 0, &err),
		  SCI_ERR_ILLEGAL_OPERATION);
	/* on shm it has become shared memory; on other fabrics it is only pinned */
	if (test_on_shm())
		check_register(empty_segment(sd, SIZE), mine + SIZE, SIZE,
			       SCI_ERR_ILLEGAL_ADDRESS);
	close(fd);
}

/* The end of the range wraps around to a small address. */
TEST(memory_to_register_that_wraps)
{
	sci_desc_t sd = test_open();

	for (size_t size = 4096; size <= 4 * 4096; size += 4096)
		check_register(empty_segment(sd, size),
			       (void *)(UINTPTR_MAX - 4095), size,
			       SCI_ERR_ILLEGAL_ADDRESS);
}

TEST(memory_to_register_of_impossible_size)
{
	static const size_t sizes[] = {
		(size_t)1 << 46, (size_t)1 << 50, (size_t)1 << 62,
		SIZE_MAX - 4095
	};
	sci_desc_t sd = test_open();
	char *mine = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		sci_local_segment_t s = NULL;
		sci_error_t e;

		e = ERR_OF(SCICreateSegment(sd, &s, 9, sizes[i], NULL, NULL,
					    SCI_FLAG_EMPTY, &err));
		if (e) {
			CHECK_EQ(e, SCI_ERR_NOSPC);
			continue;
		}
		CHECK_EITHER(SCIRegisterSegmentMemory(mine, sizes[i], s, 0,
						      &err), SCI_ERR_NOSPC,
			     SCI_ERR_ILLEGAL_ADDRESS);
		CHECK_OK(SCIRemoveSegment(s, 0, &err));
	}
}

/* ---- queries and names ---- */

TEST(commands_that_do_not_exist)
{
	static const unsigned int bad[] = {
		0, 11, 12, 100, 140, 200, 300, 1000, 0x7fffffff, ~0u
	};
	static union {
		sci_query_adapter_t adapter;
		sci_query_system_t system;
		sci_query_local_segment_t lseg;
		sci_query_remote_segment_t rseg;
		sci_query_map_t map;
		sci_query_dma_t dma;
		char room[4096];
	} q;
	unsigned int value = 1;
	void *h[KINDS];

	make_world(h, 10);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		memset(&q, 0, sizeof(q));
		CHECK_ERR(SCIQuery(bad[i], &q, 0, &err),
			  SCI_ERR_ILLEGAL_QUERY);
		q.adapter = (sci_query_adapter_t){ 0, 0, bad[i], &value };
		CHECK_ERR(SCIQuery(SCI_Q_ADAPTER, &q, 0, &err),
			  SCI_ERR_ILLEGAL_QUERY);
		q.system = (sci_query_system_t){ bad[i], &value };
		CHECK_ERR(SCIQuery(SCI_Q_SYSTEM, &q, 0, &err),
			  SCI_ERR_ILLEGAL_QUERY);
		q.lseg.segment = h[LSEG];
		q.lseg.subcommand = bad[i] == 300 ? 304 : bad[i];
		CHECK_ERR(SCIQuery(SCI_Q_LOCAL_SEGMENT, &q, 0, &err),
			  SCI_ERR_ILLEGAL_QUERY);
		q.rseg.segment = h[RSEG];
		q.rseg.subcommand = bad[i];
		CHECK_ERR(SCIQuery(SCI_Q_REMOTE_SEGMENT, &q, 0, &err),
			  SCI_ERR_ILLEGAL_QUERY);
		q.map = (sci_query_map_t){ h[MAP], bad[i], &value };
		CHECK_ERR(SCIQuery(SCI_Q_MAP, &q, 0, &err),
			  SCI_ERR_ILLEGAL_QUERY);
		q.dma = (sci_query_dma_t){ 0, bad[i], &value };
		CHECK_ERR(SCIQuery(SCI_Q_DMA, &q, 0, &err),
			  SCI_ERR_ILLEGAL_QUERY);
	}
	CHECK_EQ(value, 1);
}

TEST(strings_without_room)
{
	char text[8] = "unhurt";
	sci_query_string_t q = { text, 0 };

	test_open();
	for (q.length = 0; q.length < 7; q.length++)
		CHECK_ERR(SCIQuery(SCI_Q_VENDORID, &q, 0, &err),
			  SCI_ERR_NOSPC);
	CHECK(!strcmp(text, "unhurt"));
	q.length = 7;
	CHECK_OK(SCIQuery(SCI_Q_VENDORID, &q, 0, &err));
	CHECK(!strcmp(text, "libsci"));
}

TEST(names_that_are_none)
{
	static char names[][24] = {
		"", " ", "node", "node0", "node3", "node65536", "node-4",
		"node4x", "node99999999999999999", "node 4", "no\nde4"
	};
	dis_nodeId_list_t list;
	unsigned int adapters[DIS_MAX_NSCIS];

	memset(list, SENTINEL, sizeof(list));
	memset(adapters, SENTINEL, sizeof(adapters));
	setenv("SCI_DISHOSTS", "/nonexistent", 1);
	test_open();
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		CHECK_ERR(SCIGetNodeIdByAdapterName(names[i], &list, NULL, 0,
						    &err),
			  SCI_ERR_NO_SUCH_NODEID);
		CHECK_ERR(SCIGetNodeInfoByAdapterName(names[i], adapters, &list,
						      NULL, 0, &err),
			  SCI_ERR_NO_SUCH_NODEID);
	}
	CHECK_ERR(SCIGetNodeIdByAdapterName(NULL, &list, NULL, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_EQ(list[0], 0xa5a5a5a5);
	CHECK_EQ(adapters[0], 0xa5a5a5a5);
}

/* ---- NULL for the code of a successful call ---- */

TEST(nobody_wants_to_know)
{
	unsigned int number = 5, len = 0, node;
	unsigned char out[64];
	void *h[KINDS];
	sci_map_t map;
	char *p;

	SCIInitialize(0, NULL);
	SCIOpen((void *)out, 0, NULL);
	h[DESC] = first_of(out);
	SCICreateSegment(h[DESC], (void *)out, 10, SIZE, NULL, NULL, 0, NULL);
	h[LSEG] = first_of(out);
	SCIPrepareSegment(h[LSEG], 0, 0, NULL);
	SCISetSegmentAvailable(h[LSEG], 0, 0, NULL);
	SCIShareSegment(h[LSEG], 0, NULL);
	SCIConnectSegment(h[DESC], (void *)out, 4, 10, 0, NULL, NULL, 0, 0,
			  NULL);
	h[RSEG] = first_of(out);
	CHECK_EQ(SCIWaitForLocalSegmentEvent(h[LSEG], NULL, NULL, TEST_WAIT_MS,
					     0, NULL), SCI_CB_CONNECT);
	p = SCIMapLocalSegment(h[LSEG], &map, 0, SIZE, NULL, 0, NULL);
	CHECK(p != NULL);
	CHECK(SCIMapRemoteSegment(h[RSEG], (void *)out, 0, SIZE, NULL, 0,
				  NULL) != NULL);
	h[MAP] = first_of(out);
	SCIMemCpy(NULL, memory, h[MAP], 0, 64, 0, NULL);
	SCICreateMapSequence(h[MAP], (void *)out, 0, NULL);
	h[SEQ] = first_of(out);
	CHECK_EQ(SCIStartSequence(h[SEQ], 0, NULL), SCI_SEQ_OK);
	CHECK_EQ(SCICheckSequence(h[SEQ], 0, NULL), SCI_SEQ_OK);
	SCIRemoveSequence(h[SEQ], 0, NULL);
	SCICreateInterrupt(h[DESC], (void *)out, 0, &number, NULL, NULL,
			   SCI_FLAG_FIXED_INTNO, NULL);
	h[LINTR] = first_of(out);
	SCIConnectInterrupt(h[DESC], (void *)out, 4, 0, 5, 0, 0, NULL);
	h[RINTR] = first_of(out);
	SCITriggerInterrupt(h[RINTR], 0, NULL);
	CHECK_OK(SCIWaitForInterrupt(h[LINTR], 0, 0, &err));
	SCIWaitForInterrupt(h[LINTR], 0, 0, NULL);
	SCICreateDataInterrupt(h[DESC], (void *)out, 0, &number, NULL, NULL,
			       SCI_FLAG_FIXED_INTNO, NULL);
	h[LDINTR] = first_of(out);
	SCIConnectDataInterrupt(h[DESC], (void *)out, 4, 0, 5, 0, 0, NULL);
	h[RDINTR] = first_of(out);
	SCITriggerDataInterrupt(h[RDINTR], NULL, 0, 0, NULL);
	SCIWaitForDataInterrupt(h[LDINTR], NULL, &len, TEST_WAIT_MS, 0, NULL);
	CHECK_EQ(SCIProbeNode(h[DESC], 0, 4, 0, NULL), 1);
	SCIGetLocalNodeId(0, &node, 0, NULL);
	CHECK_EQ(node, 4);
	SCIUnmapSegment(h[MAP], 0, NULL);
	SCIUnmapSegment(map, 0, NULL);
	SCIDisconnectInterrupt(h[RINTR], 0, NULL);
	SCIDisconnectDataInterrupt(h[RDINTR], 0, NULL);
	SCIRemoveInterrupt(h[LINTR], 0, NULL);
	SCIRemoveDataInterrupt(h[LDINTR], 0, NULL);
	SCIDisconnectSegment(h[RSEG], 0, NULL);
	SCIRemoveSegment(h[LSEG], 0, NULL);
	CHECK_OK(SCIClose(h[DESC], 0, &err));
}
