/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Check that a message from another node has the form that proto.h describes. */
#ifndef SCI_MESSAGE_H
#define SCI_MESSAGE_H

#include <linux/types.h>

/**
 * sci_message_is_sane() - check the form of a message
 * @body: SCI_MESSAGE_SIZE bytes from another node
 *
 * Return: false if the type is unknown, if a reserved field, a field of other types or a byte
 * behind the message is not zero, or if a field has an impossible value. A later version of the
 * protocol can then give those bytes a meaning: no older kernel takes them for something else.
 */
bool sci_message_is_sane(const void *body);

#endif
