// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: one address in all processes
 *
 * Address space randomization moves a program, its heap, its stack and the area of mmap(), but
 * these stay in a few known parts of the address space. Between these parts are ranges that are
 * nearly always free. One process proposes the next free place of such a range, and the other
 * processes try to map there. If the place is not free in all processes, a process makes the next
 * proposal. The last proposals are addresses that the kernel of a process chooses.
 */
#include "libsci/smi/internal.h"

#include <stdint.h>
#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define ALIGNMENT	(2u << 20)	/* allows huge pages */
#define TRIES		4		/* proposals per range */

#if UINTPTR_MAX > 0xffffffff
/* the first two ranges fit 39-bit addresses and the thread sanitizer */
static _Atomic uintptr_t next[] = { 0x4000000000, 0x7000000000, 0x200000000000 };
#else
static _Atomic uintptr_t next[] = { 0x60000000, 0x90000000 };
#endif

#define RANGES		((int)(sizeof(next) / sizeof(next[0])))

/*
 * Return a free address for @size bytes: @base, or NULL if it is not free. If @base is NULL, or the
 * kernel has no MAP_FIXED_NOREPLACE, the kernel chooses the address.
 */
static char *address_find(char *base, size_t size)
{
	void *p = mmap(base, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
		       (base ? MAP_FIXED_NOREPLACE : 0), -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	munmap(p, size);
	return p;
}

char *smi_address_propose(int attempt, size_t size)
{
	size_t step = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	_Atomic uintptr_t *range;
	char *base;

	if (attempt >= RANGES * TRIES)
		return address_find(NULL, size);
	range = &next[attempt / TRIES];
	for (int i = 0; i < 64; i++) {
		base = (char *)atomic_fetch_add(range, step);
		if (address_find(base, size) == base)
			return base;
	}
	return NULL;
}

int smi_address_attempts(int size)
{
	return RANGES * TRIES + size;
}
