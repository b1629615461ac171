/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Data interrupts: the bytes, under way and waiting to be read. */
#ifndef SCI_INTR_DATA_H
#define SCI_INTR_DATA_H

#include "intr.h"

/* Free the data that the owner has not read. */
void sci_intr_data_drop(struct sci_intr *i);

/* Read the data of a trigger. -EAGAIN: there is none; -EMSGSIZE, -ECANCELED, -EFAULT. */
ssize_t sci_intr_data_read(struct sci_intr *i, char __user *buf, size_t len);

/**
 * sci_intr_data_send() - send bytes to a connected data interrupt
 * @c: the client; its file is held by the caller
 *
 * Calls sci_adapter_enter().  Returns when the owner has them.  One at a time per
 * peer.  -ENOBUFS: the owner has too much queued; -ETIMEDOUT: his node does not
 * say whether he has them; -ENOTCONN, -EINTR, -ENODEV, -EFAULT, -ENOMEM.
 */
int sci_intr_data_send(struct sci_client *c, const void __user *data, u32 len);

#endif
