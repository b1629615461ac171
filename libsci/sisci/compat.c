// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Functions that are not in the SISCI headers. Some programs call them without a declaration.
 */

#include "libsci/sisci/export.h"

#pragma GCC visibility push(default)
int SetSciMemCopyFunction(int number);
int GetSciMemCopyFunction(void);
#pragma GCC visibility pop

/* Choose a copy loop. libsci chooses its loop by SCI_PIO and the CPU, and ignores the number. */
int SetSciMemCopyFunction(int number)
{
	(void)number;
	return 0;
}

int GetSciMemCopyFunction(void)
{
	return 0;
}
