// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Names of codes. All are constants, so these calls work before SCIInitialize(). */
#include <stddef.h>

#include "libsci/sisci/export.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define ERR(name, text)	{ SCI_ERR_##name, "SCI_ERR_" #name ": " text }

static const struct {
	sci_error_t code;
	const char *text;
} errors[] = {
	ERR(OK, "success"),
	ERR(BUSY, "still in use"),
	ERR(FLAG_NOT_IMPLEMENTED, "flag not implemented"),
	ERR(ILLEGAL_FLAG, "flag not known to this function"),
	ERR(NOSPC, "out of memory, descriptors or room"),
	ERR(API_NOSPC, "out of resources of the library"),
	ERR(HW_NOSPC, "out of resources of the adapter"),
	ERR(NOT_IMPLEMENTED, "function not implemented"),
	ERR(ILLEGAL_ADAPTERNO, "adapter number outside the legal range"),
	ERR(NO_SUCH_ADAPTERNO, "no adapter has this number"),
	ERR(TIMEOUT, "timed out"),
	ERR(OUT_OF_RANGE, "range exceeds the segment, the map or a limit"),
	ERR(NO_SUCH_SEGMENT, "no such segment, or not available"),
	ERR(ILLEGAL_NODEID, "not a legal node id"),
	ERR(CONNECTION_REFUSED, "connection refused"),
	ERR(SEGMENT_NOT_CONNECTED, "segment not connected"),
	ERR(SIZE_ALIGNMENT, "size is 0 or misaligned"),
	ERR(OFFSET_ALIGNMENT, "offset is misaligned"),
	ERR(ILLEGAL_PARAMETER, "bad handle, pointer or value"),
	ERR(MAX_ENTRIES, "too many entries"),
	ERR(SEGMENT_NOT_PREPARED, "segment not prepared for the adapter"),
	ERR(ILLEGAL_ADDRESS, "address cannot be used"),
	ERR(ILLEGAL_OPERATION, "not possible in the present state"),
	ERR(ILLEGAL_QUERY, "unknown query"),
	ERR(SEGMENTID_USED, "segment id in use"),
	ERR(SYSTEM, "refused by the operating system, see errno"),
	ERR(CANCELLED, "cancelled"),
	ERR(NOT_CONNECTED, "not connected"),
	ERR(NOT_AVAILABLE, "not available"),
	ERR(INCONSISTENT_VERSIONS, "versions do not fit together"),
	ERR(COND_INT_RACE_PROBLEM, "interrupt came while being enabled"),
	ERR(OVERFLOW, "counter overflow"),
	ERR(NOT_INITIALIZED, "library not initialized"),
	ERR(ACCESS, "permission denied"),
	ERR(NOT_SUPPORTED, "not supported by this fabric"),
	ERR(DEPRECATED, "function deprecated"),
	ERR(EWOULD_BLOCK, "would block"),
	ERR(SEMAPHORE_COUNT_EXCEEDED, "semaphore count exceeded"),
	ERR(IRQL_ILLEGAL, "not allowed in an interrupt"),
	ERR(REMOTE_BUSY, "busy at the remote node"),
	ERR(LOCAL_BUSY, "busy at the local node"),
	ERR(ALL_BUSY, "busy at all nodes"),
	ERR(NO_SUCH_INTNO, "no interrupt has this number"),
	ERR(INTNO_USED, "interrupt number in use"),
	ERR(NO_SUCH_NODEID, "no such node"),
	ERR(NODE_NOT_RESPONDING, "node does not respond"),
	ERR(NO_REMOTE_LINK_ACCESS, "link of the remote node is down"),
	ERR(NO_LINK_ACCESS, "link is down"),
	ERR(TRANSFER_FAILED, "data was lost"),
};

const char *SCIGetErrorString(sci_error_t code)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(errors); i++)
		if (errors[i].code == code)
			return errors[i].text;
	return "unknown error code";
}
SISCI_EXPORT(SCIGetErrorString);

/* Names of adapter types, as in sci_adapter_info.type. */
static const struct {
	const char *name;
	const char *family;
} adapters[] = {
	[DIS_ADAPTER_UNKNOWN] = { "unknown", "unknown" },
	[DIS_ADAPTER_SHM] = { "shm", "shared memory" },
	[DIS_ADAPTER_LOOP] = { "loop", "loopback" },
	[DIS_ADAPTER_PCI_SCI] = { "pci", "PCI-SCI" },
};

static size_t adapter_index(dis_virt_adapter_t type)
{
	/* callers pass any number that a query returned */
	size_t i = (unsigned int)type;

	return i < ARRAY_SIZE(adapters) ? i : DIS_ADAPTER_UNKNOWN;
}

const char *SCIGetAdapterTypeString(dis_virt_adapter_t type)
{
	return adapters[adapter_index(type)].name;
}
SISCI_EXPORT(SCIGetAdapterTypeString);

const char *SCIGetAdapterFamilyString(dis_virt_adapter_t type)
{
	return adapters[adapter_index(type)].family;
}
SISCI_EXPORT(SCIGetAdapterFamilyString);
