/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Public structs that may grow in later versions. Their first member is their size, a size_t. */
#ifndef LIBSCI_ATTR_H
#define LIBSCI_ATTR_H

#include <errno.h>
#include <stddef.h>
#include <string.h>

/**
 * attr_copy() - copy a struct of the caller
 * @to: our struct of @size bytes, which are 0
 * @from: the caller's struct: longer in newer programs, shorter in older ones
 * @least: size of the first version of the struct
 *
 * Return: 0; -EINVAL: @from is shorter than @least; -E2BIG: bytes beyond our struct are not 0.
 */
static inline int attr_copy(void *to, size_t size, const void *from, size_t least)
{
	const char *tail = from;
	size_t theirs;

	memcpy(&theirs, from, sizeof(theirs));
	if (theirs < least)
		return -EINVAL;
	for (size_t i = size; i < theirs; i++)
		if (tail[i])
			return -E2BIG;
	memcpy(to, from, theirs < size ? theirs : size);
	return 0;
}

#endif
