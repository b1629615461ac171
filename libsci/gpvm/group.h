/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Members of groups, for collective calls. */
#ifndef LIBSCI_GPVM_GROUP_H
#define LIBSCI_GPVM_GROUP_H

#include <stdbool.h>

#include "libsci/include/sci-pvm/pvm3.h"
#include "libsci/pvm/groupop.h"

#define GROUP_API	__attribute__((visibility("default")))

static inline int report(const char *call, int code)
{
	return code < 0 ? lpvmerr(call, code) : code;
}

/* The members in the order of their instances: to be freed. Return: how many. */
int group_tids(const char *group, int **tids);

/* The member with this instance, or a PVM error. */
int group_tid(const char *group, int instance);

#endif
