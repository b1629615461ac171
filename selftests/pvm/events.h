/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * Trace messages. The numbers are those of PVM's pvmtev.h, which our headers do not have. The
 * programs in both/ include this file, too, and also run under Debian's PVM.
 */
#ifndef SELFTESTS_PVM_EVENTS_H
#define SELFTESTS_PVM_EVENTS_H

#include <limits.h>
#include <string.h>

#include <pvm3.h>

#define MASK_SIZE	36
#define EVENTS		109

enum { HALT = 16, RECV = 45, RECVF = 46, SEND = 47, NEWTASK = 75, ENDTASK = 76, TIMING = 106,
	PROFILING = 107 };
enum { ENTRY = 0x4000, EXIT = 0x8000 };
/* Marks of the parts of a message. */
enum { BUFFER = -1, BUFFER_END = -2, IDS = -3, IDS_END = -4, DESC = -5, DESC_END = -6,
	RECORD = -7, RECORD_END = -8 };

int pvm_settmask(int who, char *mask);
int pvm_gettmask(int who, char *mask);

/* Make a mask of the events in a list that ends with a negative number. */
static inline void mask_make(char mask[MASK_SIZE], const int *events)
{
	memset(mask, '@', MASK_SIZE - 1);
	mask[MASK_SIZE - 1] = 0;
	for (; *events >= 0; events++)
		mask[*events / 4] |= 1 << *events % 4;
}

static inline void mask_make_full(char mask[MASK_SIZE])
{
	memset(mask, '@' | 15, MASK_SIZE - 1);
	mask[MASK_SIZE - 1] = 0;
}

/* Return the next number of the message, or INT_MIN at its end. */
static inline int unpack_int(void)
{
	int v;

	return pvm_upkint(&v, 1, 1) ? INT_MIN : v;
}

/*
 * Unpack the time and the task of an event. A DESC also has the id and the type of each field.
 * Return: the task.
 */
static inline int unpack_origin(int mark)
{
	int v = 0;

	for (int i = mark == DESC ? 9 : 3; i; i--)
		v = unpack_int();
	return v;
}

#endif
