/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: remote segments and their maps
 *
 * A map of a remote segment is page frames of the adapter's window (or of the
 * exporter's memory), inserted on first touch.  When the connection is lost,
 * page tables are emptied and later touches find a private page: no signal,
 * but the error count has gone up before.
 *
 * A map's revoke semaphore orders the two: page faults look and insert under it
 * for reading; a thread that revokes takes it for writing to mark that, and empties the
 * page tables after that.
 */
#ifndef SCI_IMPORT_H
#define SCI_IMPORT_H

#include "connection.h"
#include "object.h"

/**
 * struct sci_import - a remote segment
 * @client: the connection and the file
 * @length: bytes
 * @base: address in the exposed memory of its node
 * @access: 4 read, 2 write
 * @maps: struct sci_import_map that are not revoked, under adapter->lock
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
/* Check transfers. Adapters have this ioctl, too. */
int sci_import_check(struct sci_object *obj, void *cmd,
		     struct sci_new_file *nf);
int sci_import_flush(struct sci_object *obj, void *cmd,
		     struct sci_new_file *nf);

static inline struct sci_import *sci_import_of(struct sci_object *obj)
{
	return container_of(obj, struct sci_import, client.obj);
}

/*
 * Find whose exposed memory the import leads to now. -ENOTCONN. Caller holds
 * adapter->lock.
 */
int sci_import_locate(struct sci_import *im, u32 *node, u64 *base);

/*
 * Tell all imports from other nodes that the link went down or came up. Caller holds
 * adapter->lock.
 */
void sci_imports_tell(struct sci_adapter *a, enum sci_ev_type type);

/**
 * sci_mapping_get() - make a piece of a node's memory accessible
 * @id: segment, for traces
 *
 * Shares a mapping that covers it, else asks the adapter.  adapter->lock held.
 * Returns an ERR_PTR: -ENOSPC: no room in the ATT; -ENOTCONN: the exporter has
 * taken it away; -ENOMEM.
 */
struct sci_mapping *sci_mapping_get(struct sci_adapter *a, u32 node, u32 id,
				    u64 base, u64 offset, u64 length);
void sci_mapping_put(struct sci_mapping *m);

#endif
