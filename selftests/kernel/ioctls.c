// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <string.h>

#include "ioctls.h"

#define ON(kind)	(1u << KIND_##kind)

#define CALL(word, type, on, known, made, ...)				\
	{								\
		.name = #word, .cmd = SCI_IOC_##word,			\
		.size = sizeof(struct type), .kinds = on,		\
		.flags = known, .makes = made,				\
		.field = {						\
			FIELD(type, size, V_SIZE),			\
			FIELD(type, flags, V_FLAGS), __VA_ARGS__	\
		},							\
	}

#define FIELD(type, name, value)					\
	{ offsetof(struct type, name),					\
	  sizeof(((struct type *)0)->name), value }

/* All fields from @first to the end of the structure are results. */
#define OUTS(type, first)						\
	{ offsetof(struct type, first),					\
	  sizeof(struct type) - offsetof(struct type, first), V_OUT }

#define SIMPLE(word, type, on)						\
	{								\
		.name = #word, .cmd = SCI_IOC_##word,			\
		.size = sizeof(struct type), .kinds = on,		\
		.makes = KINDS,						\
		.field = {						\
			FIELD(type, size, V_SIZE),			\
			FIELD(type, flags, V_FLAGS),			\
		},							\
	}

#define SEGMENT_FLAGS							\
	(SCI_SEGMENT_AUTO_ID | SCI_SEGMENT_PRIVATE |			\
	 SCI_SEGMENT_EMPTY | SCI_SEGMENT_BROADCAST | SCI_SEGMENT_UNICAST)
#define INTR_FLAGS							\
	(SCI_INTR_FIXED_NUMBER | SCI_INTR_SHARE_NUMBER |		\
	 SCI_INTR_COUNT | SCI_INTR_WITH_DATA)

const struct sci_call sci_calls[] = {
	CALL(QUERY, sci_ioc_query, ON(ADAPTER), 0, KINDS,
	     OUTS(sci_ioc_query, out_abi)),
	CALL(PROBE, sci_ioc_probe, ON(ADAPTER), 0, KINDS,
	     FIELD(sci_ioc_probe, node, V_NODE),
	     FIELD(sci_ioc_probe, timeout_ms, V_TIMEOUT)),
	CALL(COUNTERS, sci_ioc_counters, ON(ADAPTER), 0, KINDS,
	     OUTS(sci_ioc_counters, out_errors)),
	CALL(SEGMENT_CREATE, sci_ioc_segment_create, ON(ADAPTER),
	     SEGMENT_FLAGS, KIND_LOCAL,
	     FIELD(sci_ioc_segment_create, id, V_ID),
	     FIELD(sci_ioc_segment_create, mode, V_MODE),
	     FIELD(sci_ioc_segment_create, numa_node, V_NUMA),
	     FIELD(sci_ioc_segment_create, reserved, V_RESERVED),
	     FIELD(sci_ioc_segment_create, length, V_LENGTH),
	     FIELD(sci_ioc_segment_create, out_fd, V_OUT_FD),
	     FIELD(sci_ioc_segment_create, out_id, V_OUT)),
	CALL(SEGMENT_ATTACH, sci_ioc_segment_attach, ON(ADAPTER), 0,
	     KIND_LOCAL,
	     FIELD(sci_ioc_segment_attach, id, V_ID),
	     FIELD(sci_ioc_segment_attach, out_fd, V_OUT_FD),
	     FIELD(sci_ioc_segment_attach, out_length, V_OUT)),
	CALL(CONNECT, sci_ioc_connect, ON(ADAPTER), SCI_CONNECT_ASYNC,
	     KIND_REMOTE,
	     FIELD(sci_ioc_connect, node, V_NODE),
	     FIELD(sci_ioc_connect, id, V_ID),
	     FIELD(sci_ioc_connect, timeout_ms, V_TIMEOUT),
	     FIELD(sci_ioc_connect, out_fd, V_OUT_FD),
	     FIELD(sci_ioc_connect, out_length, V_OUT)),
	CALL(INTR_CREATE, sci_ioc_intr_create, ON(ADAPTER), INTR_FLAGS,
	     KIND_INTR,
	     FIELD(sci_ioc_intr_create, number, V_NUMBER),
	     FIELD(sci_ioc_intr_create, out_fd, V_OUT_FD),
	     FIELD(sci_ioc_intr_create, out_number, V_OUT),
	     FIELD(sci_ioc_intr_create, mode, V_MODE)),
	CALL(INTR_CONNECT, sci_ioc_intr_connect, ON(ADAPTER),
	     SCI_CONNECT_ASYNC | SCI_CONNECT_DATA, KIND_RINTR,
	     FIELD(sci_ioc_intr_connect, node, V_NODE),
	     FIELD(sci_ioc_intr_connect, number, V_NUMBER),
	     FIELD(sci_ioc_intr_connect, timeout_ms, V_TIMEOUT),
	     FIELD(sci_ioc_intr_connect, out_fd, V_OUT_FD)),
	CALL(DMA_CREATE, sci_ioc_dma_create, ON(ADAPTER), 0, KIND_DMA,
	     FIELD(sci_ioc_dma_create, max_pieces, V_PIECES),
	     FIELD(sci_ioc_dma_create, out_fd, V_OUT_FD)),
	CALL(CACHE, sci_ioc_cache, ON(ADAPTER), SCI_CACHE_DROP, KINDS,
	     FIELD(sci_ioc_cache, addr, V_ADDR),
	     FIELD(sci_ioc_cache, length, V_LENGTH)),
	CALL(CHECK, sci_ioc_check, ON(ADAPTER) | ON(REMOTE), 0, KINDS,
	     FIELD(sci_ioc_check, errors, V_COUNT),
	     FIELD(sci_ioc_check, fatal, V_COUNT),
	     OUTS(sci_ioc_check, out_errors)),
	SIMPLE(FLUSH, sci_ioc_flush, ON(ADAPTER) | ON(REMOTE)),
	CALL(SEGMENT_REGISTER, sci_ioc_segment_register, ON(LOCAL), 0, KINDS,
	     FIELD(sci_ioc_segment_register, addr, V_ADDR),
	     FIELD(sci_ioc_segment_register, length, V_LENGTH)),
	SIMPLE(SEGMENT_SHARE, sci_ioc_segment_share, ON(LOCAL)),
	SIMPLE(SEGMENT_EXPORT, sci_ioc_segment_export, ON(LOCAL)),
	CALL(SEGMENT_UNEXPORT, sci_ioc_segment_unexport, ON(LOCAL), 0, KINDS,
	     FIELD(sci_ioc_segment_unexport, how, V_HOW),
	     FIELD(sci_ioc_segment_unexport, reserved, V_RESERVED)),
	SIMPLE(SEGMENT_REMOVE, sci_ioc_segment_remove, ON(LOCAL)),
	CALL(SEGMENT_INFO, sci_ioc_segment_info, ON(LOCAL), 0, KINDS,
	     OUTS(sci_ioc_segment_info, out_id)),
	CALL(SEGMENT_GET_DMABUF, sci_ioc_segment_get_dmabuf, ON(LOCAL), 0, KINDS,
	     FIELD(sci_ioc_segment_get_dmabuf, out_fd, V_OUT_FD),
	     FIELD(sci_ioc_segment_get_dmabuf, out_reserved, V_OUT)),
	CALL(SEGMENT_REGISTER_DMABUF, sci_ioc_segment_register_dmabuf, ON(LOCAL),
	     0, KINDS,
	     FIELD(sci_ioc_segment_register_dmabuf, fd, V_DMABUF),
	     FIELD(sci_ioc_segment_register_dmabuf, reserved, V_RESERVED),
	     FIELD(sci_ioc_segment_register_dmabuf, offset, V_DMABUF_OFFSET)),
	CALL(REMOTE_INFO, sci_ioc_remote_info, ON(REMOTE), 0, KINDS,
	     OUTS(sci_ioc_remote_info, out_state)),
	SIMPLE(INTR_CANCEL, sci_ioc_intr_cancel, ON(INTR)),
	CALL(INTR_TRIGGER, sci_ioc_intr_trigger, ON(RINTR), 0, KINDS,
	     FIELD(sci_ioc_intr_trigger, data, V_DATA),
	     FIELD(sci_ioc_intr_trigger, length, V_DATA_LENGTH),
	     FIELD(sci_ioc_intr_trigger, reserved, V_RESERVED)),
	CALL(DMA_SUBMIT, sci_ioc_dma_submit, ON(DMA),
	     SCI_DMA_PULL | SCI_DMA_WAIT, KINDS,
	     FIELD(sci_ioc_dma_submit, local_fd, V_LOCAL_FD),
	     FIELD(sci_ioc_dma_submit, remote_fd, V_REMOTE_FD),
	     FIELD(sci_ioc_dma_submit, vecs, V_VECS),
	     FIELD(sci_ioc_dma_submit, nr_vecs, V_NR_VECS),
	     FIELD(sci_ioc_dma_submit, reserved, V_RESERVED),
	     FIELD(sci_ioc_dma_submit, cookie, V_COOKIE)),
	SIMPLE(DMA_ABORT, sci_ioc_dma_abort, ON(DMA)),
};

const unsigned int sci_ncalls = ARRAY_SIZE(sci_calls);

const struct sci_field *call_field(const struct sci_call *c,
				   enum sci_value value)
{
	for (unsigned int i = 0; i < CALL_FIELDS_MAX; i++)
		if (c->field[i].value == value)
			return value == V_END ? NULL : &c->field[i];
	return NULL;
}

void field_set(void *arg, const struct sci_field *f, __u64 value)
{
	__u32 word = (__u32)value;

	if (f->size == sizeof(value))
		memcpy((char *)arg + f->offset, &value, sizeof(value));
	else if (f->size == sizeof(word))
		memcpy((char *)arg + f->offset, &word, sizeof(word));
	else
		memset((char *)arg + f->offset, (int)value, f->size);
}

__u64 field_get(const void *arg, const struct sci_field *f)
{
	__u64 value;
	__u32 word;

	if (f->size == sizeof(value)) {
		memcpy(&value, (const char *)arg + f->offset, sizeof(value));
		return value;
	}
	memcpy(&word, (const char *)arg + f->offset, sizeof(word));
	return word;
}
