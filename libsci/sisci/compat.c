// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Names that are not of the API, but that programs call all the same (without
 * a declaration: there never was one).
 */

#include "libsci/sisci/export.h"

#pragma GCC visibility push(default)
int SetSciMemCopyFunction(int number);
int GetSciMemCopyFunction(void);
#pragma GCC visibility pop

/* Which copy loop to use; here that is SCI_PIO's business, and any will do. */
int SetSciMemCopyFunction(int number)
{
	(void)number;
	return 0;
}

int GetSciMemCopyFunction(void)
{
	return 0;
}
