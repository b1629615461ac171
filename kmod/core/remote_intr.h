/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Remote interrupts: interrupts of other nodes that this node triggers. */
#ifndef SCI_REMOTE_INTR_H
#define SCI_REMOTE_INTR_H

#include "connection.h"

/**
 * struct sci_remote_intr - a connected interrupt
 * @client: the connection and the file
 * @data: triggers carry bytes
 * @handle: the owner's handle of the connection, for traces after its end, too
 * @reply: answer to the data in flight: 0 or -errno; 1: no answer yet
 * @cookie: number of the data in flight; a late reply to a killed sender has another number
 */
struct sci_remote_intr {
	struct sci_client client;
	bool data;
	u32 handle;
	int reply;
	u16 cookie;
};

static inline struct sci_remote_intr *sci_remote_intr_of(struct sci_object *obj)
{
	return container_of(obj, struct sci_remote_intr, client.obj);
}

#endif
