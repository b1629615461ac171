/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Copies from one map to another, whole or in parts. */
#ifndef LIBSCI_TRANSFER_H
#define LIBSCI_TRANSFER_H

#include "libsci/sisci/object.h"

struct sci_transfer {
	struct sci_map_obj *src;
	struct sci_map_obj *dst;
	size_t src_off;
	size_t dst_off;
	size_t size;
};

/* Take references to both maps. Error: ILLEGAL_PARAMETER. */
sci_error_t sci_transfer_get(struct sci_transfer *t, sci_map_t src,
			     sci_map_t dst);
void sci_transfer_put(struct sci_transfer *t);

/* Check range and access. Errors: OUT_OF_RANGE, ACCESS. */
sci_error_t sci_transfer_check(const struct sci_transfer *t);

/* Return: true if parts must be copied from the last to the first, since the ranges overlap. */
bool sci_transfer_backwards(const struct sci_transfer *t);

/* Copy bytes [@from, @to) of the transfer. Error: TRANSFER_FAILED. */
sci_error_t sci_transfer_run(const struct sci_transfer *t, size_t from,
			     size_t to);

#endif
