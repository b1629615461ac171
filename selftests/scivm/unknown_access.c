// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * The tests of cached pages, as on a CPU that does not report whether an access is a load or a
 * store. The function below replaces the one of the library.
 */
/* NOLINTNEXTLINE(bugprone-suspicious-include): the same tests */
#include "selftests/scivm/cached.c"

#include "libsci/vm/internal.h"

enum vm_access vm_access_of(const void *context)
{
	(void)context;
	return VM_ACCESS_UNKNOWN;
}
