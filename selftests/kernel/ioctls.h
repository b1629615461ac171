/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* A table of all ioctls and their fields, for tests that treat all ioctls alike. */
#ifndef SELFTESTS_KERNEL_IOCTLS_H
#define SELFTESTS_KERNEL_IOCTLS_H

#include "sci_test.h"

#define CALL_SIZE_MAX	256
#define CALL_FIELDS_MAX	12

/* The meaning of a field; it determines which values are worth trying. */
enum sci_value {
	V_END, V_SIZE, V_FLAGS, V_RESERVED, V_OUT, V_OUT_FD, V_COUNT,
	V_ID, V_NODE, V_TIMEOUT, V_MODE, V_NUMA, V_LENGTH, V_ADDR, V_HOW,
	V_NUMBER, V_DATA, V_DATA_LENGTH, V_PIECES, V_LOCAL_FD, V_REMOTE_FD,
	V_VECS, V_NR_VECS, V_COOKIE, V_DMABUF, V_DMABUF_OFFSET,
};

struct sci_field {
	unsigned short offset, size;
	enum sci_value value;
};

struct sci_call {
	const char *name;
	unsigned long cmd;
	unsigned int size;		/* of the structure */
	unsigned int kinds;		/* of descriptors: bits of enum sci_kind */
	__u32 flags;			/* all flags that exist */
	enum sci_kind makes;		/* kind of out_fd; KINDS: none, or a dma-buf */
	struct sci_field field[CALL_FIELDS_MAX];
};

extern const struct sci_call sci_calls[];
extern const unsigned int sci_ncalls;

/* Return the first field of this meaning, or NULL. */
const struct sci_field *call_field(const struct sci_call *c,
				   enum sci_value value);

void field_set(void *arg, const struct sci_field *f, __u64 value);
__u64 field_get(const void *arg, const struct sci_field *f);

#endif
