// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Queries. Each command has a function, which handles its subcommands. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "libsci/sisci/export.h"
#include "libsci/sisci/object.h"

#define VERSION		"0.1.0"
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

static unsigned int query_clamp(uint64_t value)
{
	return value < UINT_MAX ? (unsigned int)value : UINT_MAX;
}

/* Store @value in the caller's variable, which may have any alignment. */
static sci_error_t query_answer(void *data, unsigned int value)
{
	if (!data)
		return SCI_ERR_ILLEGAL_PARAMETER;
	memcpy(data, &value, sizeof(value));
	return SCI_ERR_OK;
}

static sci_error_t query_answer_string(const sci_query_string_t *q, const char *text)
{
	size_t size = strlen(text) + 1;

	if (!q->str)
		return SCI_ERR_ILLEGAL_PARAMETER;
	if (q->length < size)
		return SCI_ERR_NOSPC;
	memcpy(q->str, text, size);
	return SCI_ERR_OK;
}

static sci_error_t query_vendor(void *data)
{
	return query_answer_string(data, "libsci");
}

static sci_error_t query_api(void *data)
{
	return query_answer_string(data, "SISCI API 2.0 (libsci " VERSION ")");
}

static sci_error_t query_driver(void *data)
{
	char text[80];

	snprintf(text, sizeof(text), "libsci " VERSION " (%s)",
		 sci_lib.ops->name);
	return query_answer_string(data, text);
}

static unsigned int query_count_adapters(void)
{
	unsigned int i, n = 0;

	for (i = 0; i < SCI_ADAPTER_MAX; i++)
		n += !sci_check_adapter(i);
	return n;
}

static dis_adapter_type_t card_type(const char *name)
{
	int type = DIS_ADAPTER_PCI_SCI;

	while (type && strcmp(SCIGetAdapterTypeString(type), name))
		type--;
	return type;
}

#define FIRST		SCI_Q_ADAPTER_DMA_SIZE_ALIGNMENT
#define AT(name)	[SCI_Q_ADAPTER_##name - FIRST]

static sci_error_t adapter_answer(const sci_query_adapter_t *q,
				  const struct sci_adapter_info *info)
{
	/* 0 also stands for values that this kind of adapter does not have */
	const unsigned int values[] = {
		AT(DMA_SIZE_ALIGNMENT) = query_clamp(info->dma_size_align),
		AT(DMA_OFFSET_ALIGNMENT) = query_clamp(info->dma_offset_align),
		AT(DMA_MTU) = query_clamp(info->dma_mtu),
		AT(SUGGESTED_MIN_DMA_SIZE) = query_clamp(info->min_dma_size),
		AT(SUGGESTED_MIN_BLOCK_SIZE) = query_clamp(info->min_block_size),
		AT(NODEID) = info->node,
		AT(SERIAL_NUMBER) = (unsigned int)info->serial,
		AT(CARD_TYPE) = card_type(info->type),
		AT(NUMBER_OF_STREAMS) = info->streams,
		AT(STREAM_BUFFER_SIZE) = query_clamp(info->stream_size),
		AT(CONFIGURED) = 1,
		AT(LINK_OPERATIONAL) = info->link_up,
		AT(HW_LINK_STATUS_IS_OK) = info->link_up,
		AT(NUMBER) = query_count_adapters(),
		AT(INSTANCE_NUMBER) = q->localAdapterNo,
		AT(FIRMWARE_OK) = 1,
		AT(ATT_PAGE_SIZE) = query_clamp(info->att_page_size),
		AT(ATT_NUMBER_OF_ENTRIES) = info->att_entries,
		AT(ATT_AVAILABLE_ENTRIES) = info->att_available,
		AT(PHYS_MEM_NODEID) = info->node,
		AT(PHYS_MBX_NODEID) = info->node,
		AT(PHYS_LINK_PORT_NODEID) = info->node,
		AT(BDF) = info->bdf,
		AT(MCAST_MAX_GROUPS) = info->mcast_groups,
		AT(NUMBER_OF_LINKS) = 1,
		AT(LINK_UPTIME) = query_clamp(info->link_up_ms / 1000),
		AT(LINK_DOWNTIME) = query_clamp(info->link_down_ms / 1000),
		AT(LINK_CABLE_INSERTED) = 1,
		AT(LINK_ENABLED) = 1,
		AT(LINK_PARTNER_PORT_NO) = 0,	/* the last subcommand of the table */
	};
	unsigned int i = q->subcommand - FIRST;

	if (i >= ARRAY_SIZE(values))
		return SCI_ERR_ILLEGAL_QUERY;
	return query_answer(q->data, values[i]);
}

/* Query an adapter. It has one link: ignore portNo, since programs leave it unset. */
static sci_error_t query_adapter(void *data)
{
	const sci_query_adapter_t *q = data;
	struct sci_adapter_info info;
	sci_error_t err = sci_adapter(q->localAdapterNo, &info);

	return err ? err : adapter_answer(q, &info);
}

static sci_error_t query_system(void *data)
{
	const sci_query_system_t *q = data;

	switch (q->subcommand) {
	case SCI_Q_SYSTEM_HOSTBRIDGE:
		return query_answer(q->data, 0);
	case SCI_Q_SYSTEM_WRITE_POSTING_ENABLED:
	case SCI_Q_SYSTEM_WRITE_COMBINING_ENABLED:
		return query_answer(q->data, 1);
	case SCI_Q_SYSTEM_CPU_CACHE_LINE_SIZE:
		return query_answer(q->data, query_clamp(sci_cache_line()));
	default:
		return SCI_ERR_ILLEGAL_QUERY;
	}
}

/* Answer a query for a bus address: no fabric gives bus addresses to programs. */
static sci_error_t query_refuse_address(const void *handle, enum sci_type type)
{
	void *obj = sci_get(handle, type);

	if (!obj)
		return SCI_ERR_ILLEGAL_PARAMETER;
	sci_put(obj);
	return SCI_ERR_NOT_SUPPORTED;
}

static sci_error_t query_local_segment(void *data)
{
	const sci_query_local_segment_t *q = data;

	switch (q->subcommand) {
	case SCI_Q_LOCAL_SEGMENT_IOADDR:
	case SCI_Q_LOCAL_SEGMENT_PHYS_ADDR:
	case SCI_Q_LOCAL_SEGMENT_VIRTUAL_KERNEL_ADDR:
		return query_refuse_address(q->segment, SCI_TYPE_LSEG);
	default:
		return SCI_ERR_ILLEGAL_QUERY;
	}
}

static sci_error_t query_remote_segment(void *data)
{
	const sci_query_remote_segment_t *q = data;

	if (q->subcommand != SCI_Q_REMOTE_SEGMENT_IOADDR)
		return SCI_ERR_ILLEGAL_QUERY;
	return query_refuse_address(q->segment, SCI_TYPE_RSEG);
}

/* Return true if the map is of a remote segment that is on this node. */
static bool map_loops_back(const struct sci_map_obj *map)
{
	struct sci_adapter_info info;

	return map->rseg && !sci_adapter(map->rseg->adapter, &info) &&
	       map->rseg->node == info.node;
}

static sci_error_t query_target(const sci_query_map_t *q)
{
	struct sci_map_obj *map = sci_get(q->map, SCI_TYPE_MAP);
	bool local;

	if (!map)
		return SCI_ERR_ILLEGAL_PARAMETER;
	local = map_loops_back(map) ||
		(map->lseg &&
		 q->subcommand == SCI_Q_MAP_MAPPED_TO_LOCAL_TARGET);
	sci_put(map);
	return query_answer(q->data, local);
}

static sci_error_t query_map(void *data)
{
	const sci_query_map_t *q = data;

	switch (q->subcommand) {
	case SCI_Q_MAP_MAPPED_TO_LOCAL_TARGET:
	case SCI_Q_MAP_QUERY_REMOTE_MAPPED_TO_LOCAL_TARGET:
		return query_target(q);
	case SCI_Q_MAP_IOADDR:
	case SCI_Q_MAP_PHYS_ADDR:
		if (!q->data)
			return SCI_ERR_ILLEGAL_PARAMETER;
		return query_refuse_address(q->map, SCI_TYPE_MAP);
	default:
		return SCI_ERR_ILLEGAL_QUERY;
	}
}

static sci_error_t dma_capabilities(void *data,
				    const struct sci_adapter_info *info)
{
	const sci_dma_capabilities_t caps = {
		.num_channels = 1,
		.max_transfer_size = query_clamp(info->dma_mtu),
		.max_vector_length = DIS_DMA_MAX_VECLEN,
		.support_mem2io = 1,
		.support_io2mem = 1,
		.min_align_bytes = query_clamp(info->dma_offset_align),
		.suggested_align_bytes = SCI_PIO_LINE,
	};

	if (!data)
		return SCI_ERR_ILLEGAL_PARAMETER;
	memcpy(data, &caps, sizeof(caps));
	return SCI_ERR_OK;
}

/* Answer a query about DMA. A thread of the library copies, whichever engine the flags select. */
static sci_error_t query_dma(void *data)
{
	const sci_query_dma_t *q = data;
	struct sci_adapter_info info;
	sci_error_t err = sci_adapter(q->localAdapterNo, &info);

	if (err)
		return err;
	switch (q->subcommand) {
	case SCI_Q_DMA_AVAILABLE:
		return query_answer(q->data, 1);
	case SCI_Q_DMA_CAPABILITIES:
		return dma_capabilities(q->data, &info);
	default:
		return SCI_ERR_ILLEGAL_QUERY;
	}
}

static sci_error_t query_device(void *data)
{
	(void)data;
	return SCI_ERR_NOT_IMPLEMENTED;
}

static sci_error_t (*const commands[])(void *data) = {
	[SCI_Q_VENDORID] = query_vendor,
	[SCI_Q_API] = query_api,
	[SCI_Q_ADAPTER] = query_adapter,
	[SCI_Q_SYSTEM] = query_system,
	[SCI_Q_LOCAL_SEGMENT] = query_local_segment,
	[SCI_Q_REMOTE_SEGMENT] = query_remote_segment,
	[SCI_Q_MAP] = query_map,
	[SCI_Q_DMA] = query_dma,
	[SCI_Q_DEVICE] = query_device,
	[SCI_Q_SISCI_DRIVER_VERSION] = query_driver,
};

static sci_error_t query_run(unsigned int command, void *data)
{
	if (command >= ARRAY_SIZE(commands) || !commands[command])
		return SCI_ERR_ILLEGAL_QUERY;
	if (!data)
		return SCI_ERR_ILLEGAL_PARAMETER;
	return commands[command](data);
}

void SCIQuery(unsigned int command, void *data, unsigned int flags,
	      sci_error_t *error)
{
	unsigned int known = command != SCI_Q_DMA ? 0 :
		SCI_FLAG_DMA_ADAPTER | SCI_FLAG_DMA_GLOBAL |
		SCI_FLAG_DMA_SYSDMA;

	SCI_CALL(error, flags, known, query_run(command, data));
}
SISCI_EXPORT(SCIQuery);
