/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: remote segments and their maps
 *
 * A map of a remote segment is page frames of the adapter's window (or of the
 * exporter's memory), inserted on first touch.  When the connection is lost,
 * the error count rises first.  Then page tables are emptied, and later accesses
 * reach a private page: the program gets no signal.
 *
 * A map's revoke semaphore orders page faults and revocations. A page fault holds it for reading
 * while it reads the state and inserts pages. A thread that revokes takes it for writing to mark
 * the map, and then empties the page tables.
 */
#ifndef SCI_IMPORT_H
#define SCI_IMPORT_H

#include "connection.h"
#include "object.h"

/**
 * struct sci_import - a remote segment
 * @client: the connection and the file
 * @length: bytes
 * @base: result of sci_adapter_ops.expose() at the exporter's node
 * @access: bits of the granted access: 4 read, 2 write
 * @maps: list of struct sci_import_map that are not revoked, under adapter->lock
 */
struct sci_import {
	struct sci_client client;
	u64 length;
	u64 base;
	u8 access;
	struct list_head maps;
};

int sci_import_connect(struct sci_object *obj, void *cmd,
		       struct sci_new_file *nf);
int sci_import_info(struct sci_object *obj, void *cmd,
		    struct sci_new_file *nf);
/* Check the transfers of an import, for SCI_IOC_CHECK. Adapters have this ioctl, too. */
int sci_import_check(struct sci_object *obj, void *cmd,
		     struct sci_new_file *nf);
int sci_import_flush(struct sci_object *obj, void *cmd,
		     struct sci_new_file *nf);

static inline struct sci_import *sci_import_of(struct sci_object *obj)
{
	return container_of(obj, struct sci_import, client.obj);
}

/*
 * Find the node and the exposed memory that the import leads to. Context: adapter->lock is
 * held. Return: 0 or -ENOTCONN.
 */
int sci_import_locate(struct sci_import *im, u32 *node, u64 *base);

/*
 * Flush the lines of @length bytes at @addr, within a page, if @vma is a map of an import of @a.
 * Return: 0, also if the map is revoked; -EFAULT: it is another map.
 */
int sci_import_cache(struct sci_adapter *a, struct vm_area_struct *vma,
		     unsigned long addr, unsigned int length, bool drop);

/*
 * Queue an event for all imports from other nodes: the link went down or came up. Context:
 * adapter->lock is held.
 */
void sci_imports_tell(struct sci_adapter *a, enum sci_ev_type type);

/**
 * sci_mapping_get() - make a piece of a node's memory accessible
 * @id: id of the segment, for traces
 *
 * Share a mapping that covers the piece, or ask the adapter for one. Context: adapter->lock is
 * held. Return: the mapping, or an ERR_PTR: -ENOSPC: no room in the ATT; -ENOTCONN: the
 * exporter does not expose the memory any more; -ENOMEM.
 */
struct sci_mapping *sci_mapping_get(struct sci_adapter *a, u32 node, u32 id,
				    u64 base, u64 offset, u64 length);
void sci_mapping_put(struct sci_mapping *m);

/* Count and trace a map of a piece of a node's memory that failed with -ENOSPC for good. */
void sci_mapping_report_full(struct sci_adapter *a, u32 node, u64 offset, u64 length);

#endif
