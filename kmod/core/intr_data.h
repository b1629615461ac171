/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* The bytes of data interrupts: in flight, and waiting to be read. */
#ifndef SCI_INTR_DATA_H
#define SCI_INTR_DATA_H

#include "intr.h"

/* Free the data that the owner has not read. */
void sci_intr_data_drop(struct sci_intr *i);

/*
 * Read the data of a trigger. Return: the number of bytes; -EAGAIN: there is no trigger;
 * -EMSGSIZE, -ECANCELED, -EFAULT.
 */
ssize_t sci_intr_data_read(struct sci_intr *i, char __user *buf, size_t len);

/**
 * sci_intr_data_send() - send bytes to a connected data interrupt
 * @c: the client, whose file the caller holds
 *
 * The call returns when the owner has the bytes. It calls sci_adapter_enter(). Calls for one peer
 * wait for each other. Return: 0; -ENOBUFS: the owner has too much queued; -ETIMEDOUT: the
 * owner's node has not confirmed the arrival; -ENOTCONN, -EINTR, -ENODEV, -EFAULT, -ENOMEM.
 */
int sci_intr_data_send(struct sci_client *c, const void __user *data, u32 len);

#endif
