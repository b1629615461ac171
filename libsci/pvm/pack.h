/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Data types of messages. */
#ifndef LIBSCI_PVM_PACK_H
#define LIBSCI_PVM_PACK_H

#include <stdbool.h>
#include <stddef.h>

/* Return the bytes of an item of @type, such as PVM_INT; 0: no such type. */
int pv_type_size(int type);

/* Pack into the send buffer, or unpack from the receive buffer. Return: 0 or a PVM error. */
int pv_pack(int type, const void *items, int n, int stride);
int pv_unpack(int type, void *items, int n, int stride);
int pv_pack_str(const char *s);

/* Unpack a string of at most @max bytes including its zero; -1: of any length. */
int pv_unpack_str(char *s, long max);

#endif
