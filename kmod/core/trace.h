/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * Tracepoints on every change of state: events/sci/ of tracefs.
 *
 * Each tracepoint names the adapter and its node id; @peer is the other node.  @what is a
 * word of at most SCI_TRACE_WORD - 1 characters.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM sci

#if !defined(SCI_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define SCI_TRACE_H

#include <linux/string.h>
#include <linux/tracepoint.h>

#include "adapter_private.h"

#define SCI_TRACE_WORD		16

/* The adapter's states: "register", "unregister", "link up", "link down". */
TRACE_EVENT(sci_adapter_state,
	TP_PROTO(const struct sci_adapter *a, const char *what),
	TP_ARGS(a, what),
	TP_STRUCT__entry(
		__field(int, adapter)
		__field(u32, node)
		__array(char, what, SCI_TRACE_WORD)
	),
	TP_fast_assign(
		__entry->adapter = a->index;
		__entry->node = a->desc.node;
		strscpy(__entry->what, what, SCI_TRACE_WORD);
	),
	TP_printk("sci%d node=%u %s",
		  __entry->adapter, __entry->node, __entry->what)
);

/* A segment's states: "create", "register", "share", "export", "unexport", "remove". */
TRACE_EVENT(sci_segment_state,
	TP_PROTO(const struct sci_adapter *a, u32 id, u64 length,
		 const char *what),
	TP_ARGS(a, id, length, what),
	TP_STRUCT__entry(
		__field(int, adapter)
		__field(u32, node)
		__field(u32, id)
		__field(u64, length)
		__array(char, what, SCI_TRACE_WORD)
	),
	TP_fast_assign(
		__entry->adapter = a->index;
		__entry->node = a->desc.node;
		__entry->id = id;
		__entry->length = length;
		strscpy(__entry->what, what, SCI_TRACE_WORD);
	),
	TP_printk("sci%d node=%u id=%#x length=%llu %s",
		  __entry->adapter, __entry->node, __entry->id,
		  __entry->length, __entry->what)
);

/*
 * The importer's states: "connecting", "connected", "refused", "lost",
 * "timeout", "disconnect", "notify"; @error is 0 or -errno.
 */
TRACE_EVENT(sci_import_state,
	TP_PROTO(const struct sci_adapter *a, u32 peer, u32 id,
		 const char *what, int error),
	TP_ARGS(a, peer, id, what, error),
	TP_STRUCT__entry(
		__field(int, adapter)
		__field(u32, node)
		__field(u32, peer)
		__field(u32, id)
		__field(int, error)
		__array(char, what, SCI_TRACE_WORD)
	),
	TP_fast_assign(
		__entry->adapter = a->index;
		__entry->node = a->desc.node;
		__entry->peer = peer;
		__entry->id = id;
		__entry->error = error;
		strscpy(__entry->what, what, SCI_TRACE_WORD);
	),
	TP_printk("sci%d node=%u peer=%u id=%#x %s error=%d",
		  __entry->adapter, __entry->node, __entry->peer, __entry->id,
		  __entry->what, __entry->error)
);

/* The exporter's states of @peer as an importer of segment @id: "connect", "disconnect", "lost". */
TRACE_EVENT(sci_importer_state,
	TP_PROTO(const struct sci_adapter *a, u32 peer, u32 id,
		 const char *what),
	TP_ARGS(a, peer, id, what),
	TP_STRUCT__entry(
		__field(int, adapter)
		__field(u32, node)
		__field(u32, peer)
		__field(u32, id)
		__array(char, what, SCI_TRACE_WORD)
	),
	TP_fast_assign(
		__entry->adapter = a->index;
		__entry->node = a->desc.node;
		__entry->peer = peer;
		__entry->id = id;
		strscpy(__entry->what, what, SCI_TRACE_WORD);
	),
	TP_printk("sci%d node=%u peer=%u id=%#x %s",
		  __entry->adapter, __entry->node, __entry->peer, __entry->id,
		  __entry->what)
);

/* An import maps memory. @shared: it uses a mapping that exists already. */
TRACE_EVENT(sci_map,
	TP_PROTO(const struct sci_adapter *a, u32 peer, u32 id, u64 offset,
		 u64 length, bool shared),
	TP_ARGS(a, peer, id, offset, length, shared),
	TP_STRUCT__entry(
		__field(int, adapter)
		__field(u32, node)
		__field(u32, peer)
		__field(u32, id)
		__field(u64, offset)
		__field(u64, length)
		__field(bool, shared)
	),
	TP_fast_assign(
		__entry->adapter = a->index;
		__entry->node = a->desc.node;
		__entry->peer = peer;
		__entry->id = id;
		__entry->offset = offset;
		__entry->length = length;
		__entry->shared = shared;
	),
	TP_printk("sci%d node=%u peer=%u id=%#x offset=%#llx length=%#llx%s",
		  __entry->adapter, __entry->node, __entry->peer, __entry->id,
		  __entry->offset, __entry->length,
		  __entry->shared ? " shared" : "")
);

/* A mapping is removed: its last map has ended. */
TRACE_EVENT(sci_unmap,
	TP_PROTO(const struct sci_adapter *a, u32 peer, u64 offset,
		 u64 length),
	TP_ARGS(a, peer, offset, length),
	TP_STRUCT__entry(
		__field(int, adapter)
		__field(u32, node)
		__field(u32, peer)
		__field(u64, offset)
		__field(u64, length)
	),
	TP_fast_assign(
		__entry->adapter = a->index;
		__entry->node = a->desc.node;
		__entry->peer = peer;
		__entry->offset = offset;
		__entry->length = length;
	),
	TP_printk("sci%d node=%u peer=%u offset=%#llx length=%#llx",
		  __entry->adapter, __entry->node, __entry->peer,
		  __entry->offset, __entry->length)
);

/* All @maps maps of an import show private pages from now on. */
TRACE_EVENT(sci_revoke,
	TP_PROTO(const struct sci_adapter *a, u32 peer, u32 id,
		 unsigned int maps),
	TP_ARGS(a, peer, id, maps),
	TP_STRUCT__entry(
		__field(int, adapter)
		__field(u32, node)
		__field(u32, peer)
		__field(u32, id)
		__field(unsigned int, maps)
	),
	TP_fast_assign(
		__entry->adapter = a->index;
		__entry->node = a->desc.node;
		__entry->peer = peer;
		__entry->id = id;
		__entry->maps = maps;
	),
	TP_printk("sci%d node=%u peer=%u id=%#x maps=%u",
		  __entry->adapter, __entry->node, __entry->peer, __entry->id,
		  __entry->maps)
);

/* The ATT has no room for a map of @peer's memory, which needs @wanted entries. */
TRACE_EVENT(sci_att_full,
	TP_PROTO(const struct sci_adapter *a, u32 peer, u64 wanted,
		 u32 largest_free, u32 used),
	TP_ARGS(a, peer, wanted, largest_free, used),
	TP_STRUCT__entry(
		__field(int, adapter)
		__field(u32, node)
		__field(u32, peer)
		__field(u64, wanted)
		__field(u32, largest_free)
		__field(u32, used)
	),
	TP_fast_assign(
		__entry->adapter = a->index;
		__entry->node = a->desc.node;
		__entry->peer = peer;
		__entry->wanted = wanted;
		__entry->largest_free = largest_free;
		__entry->used = used;
	),
	TP_printk("sci%d node=%u peer=%u wanted=%llu largest_free=%u used=%u",
		  __entry->adapter, __entry->node, __entry->peer,
		  __entry->wanted, __entry->largest_free, __entry->used)
);

/* A local interrupt's states: "create", "cancel", "remove"; sci_trigger traces its triggers. */
TRACE_EVENT(sci_intr_state,
	TP_PROTO(const struct sci_adapter *a, u32 number, bool data,
		 const char *what),
	TP_ARGS(a, number, data, what),
	TP_STRUCT__entry(
		__field(int, adapter)
		__field(u32, node)
		__field(u32, number)
		__field(bool, data)
		__array(char, what, SCI_TRACE_WORD)
	),
	TP_fast_assign(
		__entry->adapter = a->index;
		__entry->node = a->desc.node;
		__entry->number = number;
		__entry->data = data;
		strscpy(__entry->what, what, SCI_TRACE_WORD);
	),
	TP_printk("sci%d node=%u %snumber=%u %s",
		  __entry->adapter, __entry->node,
		  __entry->data ? "data " : "", __entry->number,
		  __entry->what)
);

/*
 * A trigger: the sender traces that it was accepted, and the owner that it arrived. @handle is
 * the owner's name of the connection at both ends; @length: bytes of data, or 0.
 */
TRACE_EVENT(sci_trigger,
	TP_PROTO(const struct sci_adapter *a, u32 peer, u32 handle,
		 u32 length, bool sent),
	TP_ARGS(a, peer, handle, length, sent),
	TP_STRUCT__entry(
		__field(int, adapter)
		__field(u32, node)
		__field(u32, peer)
		__field(u32, handle)
		__field(u32, length)
		__field(bool, sent)
	),
	TP_fast_assign(
		__entry->adapter = a->index;
		__entry->node = a->desc.node;
		__entry->peer = peer;
		__entry->handle = handle;
		__entry->length = length;
		__entry->sent = sent;
	),
	TP_printk("sci%d node=%u %s %u handle=%#x length=%u",
		  __entry->adapter, __entry->node,
		  __entry->sent ? "to" : "from", __entry->peer,
		  __entry->handle, __entry->length)
);

/* A DMA transfer has ended. @what: "push" or "pull"; @error: 0 or -errno. */
TRACE_EVENT(sci_dma,
	TP_PROTO(const struct sci_adapter *a, const char *what, u64 bytes,
		 int error),
	TP_ARGS(a, what, bytes, error),
	TP_STRUCT__entry(
		__field(int, adapter)
		__field(u32, node)
		__field(u64, bytes)
		__field(int, error)
		__array(char, what, SCI_TRACE_WORD)
	),
	TP_fast_assign(
		__entry->adapter = a->index;
		__entry->node = a->desc.node;
		__entry->bytes = bytes;
		__entry->error = error;
		strscpy(__entry->what, what, SCI_TRACE_WORD);
	),
	TP_printk("sci%d node=%u %s bytes=%llu error=%d",
		  __entry->adapter, __entry->node, __entry->what,
		  __entry->bytes, __entry->error)
);

/* A session changes its state. @from, @to: names of the old and the new state. */
TRACE_EVENT(sci_peer_state,
	TP_PROTO(const struct sci_adapter *a, u32 peer, const char *from,
		 const char *to),
	TP_ARGS(a, peer, from, to),
	TP_STRUCT__entry(
		__field(int, adapter)
		__field(u32, node)
		__field(u32, peer)
		__array(char, from, SCI_TRACE_WORD)
		__array(char, to, SCI_TRACE_WORD)
	),
	TP_fast_assign(
		__entry->adapter = a->index;
		__entry->node = a->desc.node;
		__entry->peer = peer;
		strscpy(__entry->from, from, SCI_TRACE_WORD);
		strscpy(__entry->to, to, SCI_TRACE_WORD);
	),
	TP_printk("sci%d node=%u peer=%u %s -> %s",
		  __entry->adapter, __entry->node, __entry->peer,
		  __entry->from, __entry->to)
);

/* A control packet. @type and @seq: fields of its struct sci_packet. */
TRACE_EVENT(sci_packet,
	TP_PROTO(const struct sci_adapter *a, u32 peer, bool sent, u8 type,
		 u32 seq),
	TP_ARGS(a, peer, sent, type, seq),
	TP_STRUCT__entry(
		__field(int, adapter)
		__field(u32, node)
		__field(u32, peer)
		__field(u32, seq)
		__field(u8, type)
		__field(bool, sent)
	),
	TP_fast_assign(
		__entry->adapter = a->index;
		__entry->node = a->desc.node;
		__entry->peer = peer;
		__entry->seq = seq;
		__entry->type = type;
		__entry->sent = sent;
	),
	TP_printk("sci%d node=%u %s %u type=%u seq=%u",
		  __entry->adapter, __entry->node,
		  __entry->sent ? "to" : "from", __entry->peer, __entry->type,
		  __entry->seq)
);

/* Stores may have been lost. */
TRACE_EVENT(sci_error,
	TP_PROTO(const struct sci_adapter *a, bool fatal),
	TP_ARGS(a, fatal),
	TP_STRUCT__entry(
		__field(int, adapter)
		__field(u32, node)
		__field(bool, fatal)
	),
	TP_fast_assign(
		__entry->adapter = a->index;
		__entry->node = a->desc.node;
		__entry->fatal = fatal;
	),
	TP_printk("sci%d node=%u %s", __entry->adapter, __entry->node,
		  __entry->fatal ? "fatal" : "retriable")
);

#endif

/* The kernel includes this part of the header again: it must be outside of the include guard. */
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
