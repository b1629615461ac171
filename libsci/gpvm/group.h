/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Members of groups, for collective calls. */
#ifndef LIBSCI_GPVM_GROUP_H
#define LIBSCI_GPVM_GROUP_H

#include <stdbool.h>

#include "libsci/include/sci-pvm/pvm3.h"
#include "libsci/pvm/groupop.h"
#include "libsci/pvm/trace.h"

#define GROUP_API	__attribute__((visibility("default")))

/* Return @code, and set pvm_errno for an error. Calls of groups print no errors. */
static inline int group_result(int code)
{
	if (code < 0)
		pvm_errno = code;
	return code;
}

/*
 * Get the members in the order of their instances, without gaps. The caller frees the array.
 * Return: the number of members.
 */
int group_tids(const char *group, int **tids);

/* Return the member with this instance, or a PVM error. */
int group_tid(const char *group, int instance);

#endif
