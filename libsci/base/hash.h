/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * A hash table with keys of 64 bits. The links are members of the elements.
 *
 * Several elements may have the same key: hash_find() returns the element added last.
 * The table grows with its elements and never shrinks.  Its functions take no lock.  A
 * table that is all zeroes is empty.
 */
#ifndef LIBSCI_HASH_H
#define LIBSCI_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "libsci/base/list.h"	/* for container_of() */

struct hash_node {
	struct hash_node *next;
	uint64_t key;
};

struct hash {
	struct hash_node **slots;
	size_t n_slots;			/* a power of two, or 0 */
	size_t n;
};

/**
 * hash_add() - add an element
 *
 * Return: 0; -ENOMEM: the table has no slots yet, and there is no memory for them.  A
 * table that cannot grow becomes slower, which is no error.
 */
int hash_add(struct hash *h, struct hash_node *node, uint64_t key);

/* Remove an element that is in the table. */
void hash_del(struct hash *h, struct hash_node *node);

/* Return: the element with @key that was added last, or NULL. */
struct hash_node *hash_find(const struct hash *h, uint64_t key);

/* Return: the element after @node, in no particular order; the first element if @node is NULL. */
struct hash_node *hash_walk(const struct hash *h, const struct hash_node *node);

void hash_free(struct hash *h);

#endif
