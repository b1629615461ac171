/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: allocator of address translation table entries
 *
 * An adapter reaches other nodes' memory through a window of pages. An entry of a table (ATT)
 * translates each page, and a mapping needs consecutive entries. Drivers with such a table call
 * this allocator from their map() and unmap(). It chooses the entries, and the driver writes
 * them.
 */
#ifndef SCI_ATT_H
#define SCI_ATT_H

#include <linux/types.h>

struct sci_att;

/**
 * struct sci_att_stats - statistics of a table, for sysfs att/
 * @entries: number of entries of the table
 * @used: number of allocated entries
 * @largest_free: length of the longest free run
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
 * @owner: node that uses the entries, for dumps
 * @first: receives the number of the first entry
 *
 * The call takes the shortest run that is long enough, so that long runs stay whole. Of several
 * such runs, it takes the lowest.
 *
 * Context: any thread; may sleep.
 *
 * Return: 0; -ENOSPC: no run is long enough; -EINVAL: @count is 0; -ENOMEM.
 */
int sci_att_alloc(struct sci_att *att, u32 count, u32 owner, u32 *first);

/**
 * sci_att_free() - free entries
 * @att: table
 * @first: result of sci_att_alloc()
 * @count: number of entries of that allocation; another value is a bug and frees nothing
 *
 * The call needs no memory. Context: any thread; may sleep.
 */
void sci_att_free(struct sci_att *att, u32 first, u32 count);
/* Return the number of entries of the table. */
u32 sci_att_entries(const struct sci_att *att);

void sci_att_stats(struct sci_att *att, struct sci_att_stats *st);

struct seq_file;

/* Print a line for each allocation, for debugfs: first entry, count, owner. */
void sci_att_dump(struct sci_att *att, struct seq_file *m);

#endif
