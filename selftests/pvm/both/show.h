/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Prints results of calls. Ids of tasks, buffers and contexts may differ: they print as "id". */
#ifndef SELFTESTS_PVM_BOTH_SHOW_H
#define SELFTESTS_PVM_BOTH_SHOW_H

#include <stdio.h>

static inline void show(const char *what, long value)
{
	if (value > 1000000 || (value >= 0x40000 && value < 0x200000))
		printf("%s: id\n", what);
	else
		printf("%s: %ld\n", what, value);
}

#define SHOW(call)	show(#call, (long)(call))

#endif
