/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: allocator of address translation table entries
 *
 * An adapter reaches other nodes' memory through a window of so many pages,
 * each translated by one entry of a table (ATT).  A mapping needs consecutive
 * entries.  Drivers that have such a table call this from their map() and
 * unmap(); it keeps the books, the driver writes the entries.
 */
#ifndef SCI_ATT_H
#define SCI_ATT_H

#include <linux/types.h>

struct sci_att;

/**
 * struct sci_att_stats - for sysfs att/
 * @entries: number of entries of the table
 * @used: allocated
 * @largest_free: longest run of free ones
 */
struct sci_att_stats {
	u32 entries;
	u32 used;
	u32 largest_free;
};

/* Return a new allocator, or NULL when out of memory or if @entries is 0. */
struct sci_att *sci_att_create(u32 entries);

/* Destroy the allocator. All entries must have been freed. @att may be NULL. */
void sci_att_destroy(struct sci_att *att);

/**
 * sci_att_alloc() - take consecutive entries
 * @att: table
 * @count: number of entries
 * @owner: node that uses them, for dumps
 * @first: the first of them
 *
 * Best fit, so that long runs stay whole, and the lowest of those that fit
 * equally.  Any thread; may sleep.
 *
 * Returns 0; -ENOSPC: no run is that long; -EINVAL: @count is 0; -ENOMEM.
 */
int sci_att_alloc(struct sci_att *att, u32 count, u32 owner, u32 *first);

/**
 * sci_att_free() - give them back
 * @att: table
 * @first: result of sci_att_alloc()
 * @count: number of entries of that allocation; another value is a bug and frees nothing
 *
 * Needs no memory.  Any thread; may sleep.
 */
void sci_att_free(struct sci_att *att, u32 first, u32 count);
/* Return the number of entries of the table. */
u32 sci_att_entries(const struct sci_att *att);

void sci_att_stats(struct sci_att *att, struct sci_att_stats *st);

struct seq_file;

/* For debugfs: print a line for each allocation: first entry, count, owner. */
void sci_att_dump(struct sci_att *att, struct seq_file *m);

#endif
