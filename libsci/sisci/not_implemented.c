// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Functions for hardware that no fabric has. They check their arguments like all other
 * functions, and then return an error.
 */
#include "libsci/sisci/export.h"
#include "libsci/sisci/object.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define NOT_HERE	SCI_ERR_NOT_IMPLEMENTED

static sci_error_t handle_check(const void *handle, enum sci_type type)
{
	void *obj = sci_get(handle, type);

	if (!obj)
		return SCI_ERR_ILLEGAL_PARAMETER;
	sci_put(obj);
	return SCI_ERR_OK;
}

static sci_error_t desc_check(sci_desc_t sd, unsigned int adapter)
{
	return handle_check(sd, SCI_TYPE_DESC) ?: sci_check_adapter(adapter);
}

/* Check that an output pointer, or a handle of a type without objects, is not NULL. */
static sci_error_t pointer_check(const void *p)
{
	return p ? SCI_ERR_OK : SCI_ERR_ILLEGAL_PARAMETER;
}

static sci_error_t dma_type_check(sci_dma_type_t type)
{
	unsigned int n = type;

	return n >= SCI_DMA_TYPE_DONTCARE && n <= SCI_DMA_TYPE_TRANSPARENT ?
		SCI_ERR_OK : SCI_ERR_ILLEGAL_PARAMETER;
}

/* ---- SCI addresses and bus addresses ---- */

void SCIConnectSCISpace(sci_desc_t sd, unsigned int localAdapterNo,
			sci_remote_segment_t *segment, sci_address_t address,
			size_t size, unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, 0, desc_check(sd, localAdapterNo) ?:
		 pointer_check(segment) ?: NOT_HERE);
}
SISCI_EXPORT(SCIConnectSCISpace);

void SCIphDmaEnqueue(sci_dma_queue_t queue, unsigned int size,
		     sci_ioaddr_t localBusAddress, unsigned int remoteNodeId,
		     unsigned int remoteHighAddress,
		     unsigned int remoteLowAddress, unsigned int flags,
		     sci_error_t *error)
{
	SCI_CALL(error, flags, SCI_FLAG_DMA_READ,
		 handle_check(queue, SCI_TYPE_DMA) ?:
		 sci_check_node(&remoteNodeId) ?: NOT_HERE);
}
SISCI_EXPORT(SCIphDmaEnqueue);

sci_dma_queue_state_t SCIphDmaStart(sci_dma_queue_t queue,
				    sci_cb_dma_t callback, void *callbackArg,
				    unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags,
		 SCI_FLAG_DMA_WAIT | SCI_FLAG_DMA_RESET | SCI_FLAG_USE_CALLBACK,
		 handle_check(queue, SCI_TYPE_DMA) ?: NOT_HERE);
	return SCIDMAQueueState(queue);
}
SISCI_EXPORT(SCIphDmaStart);

/* ---- interrupts that a store raises, and with names ---- */

void SCIRegisterInterruptFlag(unsigned int localAdapterNo,
			      sci_local_interrupt_t *interrupt,
			      sci_local_segment_t segment, unsigned int offset,
			      sci_cb_interrupt_t callback, void *callbackArg,
			      unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, SCI_FLAG_CONDITIONAL_INTERRUPT,
		 handle_check(segment, SCI_TYPE_LSEG) ?:
		 sci_check_adapter(localAdapterNo) ?:
		 pointer_check(interrupt) ?: NOT_HERE);
}
SISCI_EXPORT(SCIRegisterInterruptFlag);

void SCIEnableConditionalInterrupt(sci_local_interrupt_t interrupt,
				   unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, 0,
		 handle_check(interrupt, SCI_TYPE_LINTR) ?: NOT_HERE);
}
SISCI_EXPORT(SCIEnableConditionalInterrupt);

void SCIDisableConditionalInterrupt(sci_local_interrupt_t interrupt,
				    unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, 0,
		 handle_check(interrupt, SCI_TYPE_LINTR) ?: NOT_HERE);
}
SISCI_EXPORT(SCIDisableConditionalInterrupt);

void SCIGetConditionalInterruptTrigCounter(sci_local_interrupt_t interrupt,
					   unsigned int *interruptTrigCounter,
					   unsigned int flags,
					   sci_error_t *error)
{
	SCI_CALL(error, flags, 0, handle_check(interrupt, SCI_TYPE_LINTR) ?:
		 pointer_check(interruptTrigCounter) ?: NOT_HERE);
}
SISCI_EXPORT(SCIGetConditionalInterruptTrigCounter);

void SCICreateNamedInterrupt(sci_desc_t sd, sci_local_interrupt_t *interrupt,
			     unsigned int localAdapterNo, const char *name,
			     sci_cb_interrupt_t callback, void *callbackArg,
			     unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags,
		 SCI_FLAG_USE_CALLBACK | SCI_FLAG_FIXED_INTNO |
		 SCI_FLAG_SHARED_INT | SCI_FLAG_COUNTING_INT,
		 desc_check(sd, localAdapterNo) ?: pointer_check(interrupt) ?:
		 pointer_check(name) ?: NOT_HERE);
}
SISCI_EXPORT(SCICreateNamedInterrupt);

/* ---- control and status registers ---- */

unsigned int SCIGetCSRRegister(sci_desc_t sd, unsigned int localAdapterNo,
			       unsigned int SCINodeId, unsigned int CSROffset,
			       unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, 0, desc_check(sd, localAdapterNo) ?:
		 sci_check_node(&SCINodeId) ?: NOT_HERE);
	return 0;
}
SISCI_EXPORT(SCIGetCSRRegister);

void SCISetCSRRegister(sci_desc_t sd, unsigned int localAdapterNo,
		       unsigned int SCINodeId, unsigned int CSROffset,
		       unsigned int CSRValue, unsigned int flags,
		       sci_error_t *error)
{
	SCI_CALL(error, flags, 0, desc_check(sd, localAdapterNo) ?:
		 sci_check_node(&SCINodeId) ?: NOT_HERE);
}
SISCI_EXPORT(SCISetCSRRegister);

unsigned int SCIGetLocalCSR(sci_desc_t sd, unsigned int localAdapterNo,
			    unsigned int CSROffset, unsigned int flags,
			    sci_error_t *error)
{
	SCI_CALL(error, flags, 0, desc_check(sd, localAdapterNo) ?: NOT_HERE);
	return 0;
}
SISCI_EXPORT(SCIGetLocalCSR);

void SCISetLocalCSR(sci_desc_t sd, unsigned int localAdapterNo,
		    unsigned int CSROffset, unsigned int CSRValue,
		    unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, 0, desc_check(sd, localAdapterNo) ?: NOT_HERE);
}
SISCI_EXPORT(SCISetLocalCSR);

/* ---- other devices that use the adapter; DMA channels ---- */

void SCIRegisterPCIeRequester(sci_desc_t sd, unsigned int localAdapterNo,
			      unsigned int bus, unsigned int devfn,
			      unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, SCI_FLAG_PCIE_REQUESTER_GLOBAL,
		 desc_check(sd, localAdapterNo) ?: NOT_HERE);
}
SISCI_EXPORT(SCIRegisterPCIeRequester);

void SCIUnregisterPCIeRequester(sci_desc_t sd, unsigned int localAdapterNo,
				unsigned int bus, unsigned int devfn,
				unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, SCI_FLAG_PCIE_REQUESTER_GLOBAL,
		 desc_check(sd, localAdapterNo) ?: NOT_HERE);
}
SISCI_EXPORT(SCIUnregisterPCIeRequester);

void SCIRequestDMAChannel(sci_desc_t sd, sci_dma_channel_t *channel,
			  sci_dma_type_t type, unsigned int localAdapterNo,
			  unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, 0, desc_check(sd, localAdapterNo) ?:
		 pointer_check(channel) ?: dma_type_check(type) ?: NOT_HERE);
}
SISCI_EXPORT(SCIRequestDMAChannel);

void SCIReturnDMAChannel(sci_dma_channel_t channel, sci_error_t *error)
{
	SCI_CALL(error, 0, 0, pointer_check(channel) ?: NOT_HERE);
}
SISCI_EXPORT(SCIReturnDMAChannel);

void SCIAssignDMAChannel(sci_dma_channel_t channel, sci_dma_queue_t queue,
			 unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, 0, pointer_check(channel) ?:
		 handle_check(queue, SCI_TYPE_DMA) ?: NOT_HERE);
}
SISCI_EXPORT(SCIAssignDMAChannel);

/* ---- device lending (SmartIO) ---- */

void SCIBorrowDevice(sci_desc_t sd, sci_smartio_device_t *device,
		     uint64_t fdid, unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, SCI_FLAG_EXCLUSIVE | SCI_FLAG_SHARED,
		 handle_check(sd, SCI_TYPE_DESC) ?: pointer_check(device) ?:
		 NOT_HERE);
}
SISCI_EXPORT(SCIBorrowDevice);

void SCIReturnDevice(sci_smartio_device_t device, unsigned int flags,
		     sci_error_t *error)
{
	SCI_CALL(error, flags, 0, pointer_check(device) ?: NOT_HERE);
}
SISCI_EXPORT(SCIReturnDevice);

void SCIReleaseExclusiveBorrow(sci_smartio_device_t device,
			       unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, 0, pointer_check(device) ?: NOT_HERE);
}
SISCI_EXPORT(SCIReleaseExclusiveBorrow);

void SCIConnectDeviceSegment(sci_smartio_device_t device,
			     sci_remote_segment_t *segment,
			     unsigned int segmentId, unsigned int memType,
			     sci_cb_remote_segment_t callback,
			     void *callbackArg, unsigned int flags,
			     sci_error_t *error)
{
	SCI_CALL(error, flags, SCI_FLAG_USE_CALLBACK,
		 pointer_check(device) ?: pointer_check(segment) ?: NOT_HERE);
}
SISCI_EXPORT(SCIConnectDeviceSegment);

void SCIConnectDeviceSegmentPath(sci_smartio_device_t device,
				 sci_remote_segment_t *segment,
				 unsigned int segmentId, unsigned int memType,
				 unsigned int localAdapterNo,
				 sci_cb_remote_segment_t callback,
				 void *callbackArg, unsigned int flags,
				 sci_error_t *error)
{
	SCI_CALL(error, flags, SCI_FLAG_USE_CALLBACK,
		 pointer_check(device) ?: sci_check_adapter(localAdapterNo) ?:
		 pointer_check(segment) ?: NOT_HERE);
}
SISCI_EXPORT(SCIConnectDeviceSegmentPath);

void SCICreateDeviceSegment(sci_smartio_device_t device,
			    unsigned int segmentId, uint64_t size,
			    unsigned int memType, unsigned int accessHints,
			    unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, 0, pointer_check(device) ?: NOT_HERE);
}
SISCI_EXPORT(SCICreateDeviceSegment);

void SCIMapLocalSegmentForDevice(sci_local_segment_t segment,
				 unsigned int localAdapterNo,
				 sci_smartio_device_t device,
				 sci_ioaddr_t *ioaddr, unsigned int flags,
				 sci_error_t *error)
{
	SCI_CALL(error, flags, 0, handle_check(segment, SCI_TYPE_LSEG) ?:
		 sci_check_adapter(localAdapterNo) ?: pointer_check(device) ?:
		 pointer_check(ioaddr) ?: NOT_HERE);
}
SISCI_EXPORT(SCIMapLocalSegmentForDevice);

void SCIUnmapLocalSegmentForDevice(sci_local_segment_t segment,
				   unsigned int localAdapterNo,
				   sci_smartio_device_t device,
				   unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, 0, handle_check(segment, SCI_TYPE_LSEG) ?:
		 sci_check_adapter(localAdapterNo) ?: pointer_check(device) ?:
		 NOT_HERE);
}
SISCI_EXPORT(SCIUnmapLocalSegmentForDevice);

void SCIMapRemoteSegmentForDevice(sci_remote_segment_t segment,
				  sci_smartio_device_t device,
				  sci_ioaddr_t *ioaddr, unsigned int flags,
				  sci_error_t *error)
{
	SCI_CALL(error, flags, 0, handle_check(segment, SCI_TYPE_RSEG) ?:
		 pointer_check(device) ?: pointer_check(ioaddr) ?: NOT_HERE);
}
SISCI_EXPORT(SCIMapRemoteSegmentForDevice);

void SCIUnmapRemoteSegmentForDevice(sci_remote_segment_t segment,
				    sci_smartio_device_t device,
				    unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, 0, handle_check(segment, SCI_TYPE_RSEG) ?:
		 pointer_check(device) ?: NOT_HERE);
}
SISCI_EXPORT(SCIUnmapRemoteSegmentForDevice);

void SCIGetDeviceList(sci_desc_t sd, uint64_t *list, size_t *count,
		      const void *filter, unsigned int flags,
		      sci_error_t *error)
{
	SCI_CALL(error, flags, 0, handle_check(sd, SCI_TYPE_DESC) ?:
		 pointer_check(list) ?: pointer_check(count) ?: NOT_HERE);
}
SISCI_EXPORT(SCIGetDeviceList);

void SCIGetFabricDeviceId(sci_desc_t sd, const char *name, uint64_t *fdid,
			  unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, 0, handle_check(sd, SCI_TYPE_DESC) ?:
		 pointer_check(name) ?: pointer_check(fdid) ?: NOT_HERE);
}
SISCI_EXPORT(SCIGetFabricDeviceId);

void SCIConnectDeviceMemory(sci_device_t device,
			    sci_remote_segment_t *segment,
			    unsigned int localAdapterNo, unsigned int nodeId,
			    unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, 0, pointer_check(device) ?:
		 sci_check_adapter(localAdapterNo) ?:
		 sci_check_node(&nodeId) ?: pointer_check(segment) ?: NOT_HERE);
}
SISCI_EXPORT(SCIConnectDeviceMemory);
