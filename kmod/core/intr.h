/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: remote interrupts
 *
 * An interrupt number of a node is called a line. Its owners are files (several with
 * SHARE_NUMBER), and its servers are the ends of connections from other nodes. A trigger goes to
 * all owners. Lines with data have numbers of their own.
 */
#ifndef SCI_INTR_H
#define SCI_INTR_H

#include "connection.h"
#include "object.h"
#include "owner.h"

/**
 * struct sci_intr_line - an interrupt number of an adapter; adapter->lock protects it
 * @adapter: the adapter
 * @number: the interrupt number
 * @data: triggers carry bytes
 * @shared: the owners share the number
 * @owner: ids and mode of the first owner, which decide who may trigger the line
 * @owners: list of struct sci_intr
 * @exporter: the servers of the line
 */
struct sci_intr_line {
	struct sci_adapter *adapter;
	u32 number;
	bool data;
	bool shared;
	struct sci_owner owner;
	struct list_head owners;
	struct sci_exporter exporter;
};

static inline struct sci_intr_line *sci_intr_line_of(struct sci_exporter *e)
{
	return container_of(e, struct sci_intr_line, exporter);
}

/**
 * struct sci_intr - an owner of a line
 * @obj: the object of the owner's file
 * @line: the line; NULL: the adapter has been removed
 * @number: number of the line
 * @link: entry in line->owners
 * @flags: enum sci_intr_flags
 * @pending: number of unread triggers; obj.ev_lock protects this and the members below
 * @cancelled: SCI_IOC_INTR_CANCEL was called
 * @data: list of struct sci_intr_data, oldest first
 * @data_bytes: bytes charged for @data
 */
struct sci_intr {
	struct sci_object obj;
	struct sci_intr_line *line;
	u32 number;
	struct list_head link;
	u32 flags;
	u64 pending;
	bool cancelled;
	struct list_head data;
	size_t data_bytes;
};

int sci_intr_create(struct sci_object *obj, void *cmd, struct sci_new_file *nf);
int sci_intr_cancel(struct sci_object *obj, void *cmd, struct sci_new_file *nf);
int sci_intr_connect(struct sci_object *obj, void *cmd,
		     struct sci_new_file *nf);
int sci_intr_trigger(struct sci_object *obj, void *cmd,
		     struct sci_new_file *nf);
/* Store the number of bytes that the next read() returns to @out: ioctl(FIONREAD). */
int sci_intr_fionread(struct sci_object *obj, int __user *out);

/* Operations of servers of SCI_KIND_INTR and SCI_KIND_DATA_INTR. */
extern const struct sci_server_ops sci_intr_server_ops;

/* Handle a trigger from @node for @handle, which may be invalid. */
void sci_intr_triggered(struct sci_adapter *a, u32 node, u32 handle);

/*
 * Handle messages about triggers with data. Context: adapter->lock is held.  An incomplete
 * trigger stays in peer->data_in until its node is lost, or the peer is freed.
 */
void sci_intr_data(struct sci_peer *p, const struct sci_msg_data *msg);
void sci_intr_data_reply(struct sci_peer *p, const struct sci_msg_simple *msg);
void sci_intr_data_forget(struct sci_peer *p);

#endif
