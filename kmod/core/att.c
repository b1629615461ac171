// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/*
 * The table is a sequence of free and used runs, in a tree by place. Adjacent free runs are
 * always merged. Free runs are also in a tree by length.
 */
#include "att.h"

#include <linux/export.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

/**
 * struct att_run - consecutive entries
 * @place: entry in sci_att.runs
 * @length: entry in sci_att.free, if the run is free
 * @first: number of the first entry
 * @count: number of entries, > 0
 * @owner: node that uses the entries
 * @used: the entries are not free
 */
struct att_run {
	struct rb_node place;
	struct rb_node length;
	u32 first;
	u32 count;
	u32 owner;
	bool used;
};

/**
 * struct sci_att - a table
 * @lock: protects all members; no other lock is taken under it
 * @runs: tree of runs, in order of @first
 * @free: tree of the free runs, by @count and then by @first
 * @entries: number of entries of the table
 * @used: number of entries in used runs
 */
struct sci_att {
	struct mutex lock;	/* protects all members */
	struct rb_root runs;
	struct rb_root free;
	u32 entries;
	u32 used;
};

#define place_run(node)		rb_entry_safe(node, struct att_run, place)
#define length_run(node)	rb_entry_safe(node, struct att_run, length)

static bool place_less(struct rb_node *a, const struct rb_node *b)
{
	return place_run(a)->first < place_run(b)->first;
}

static bool length_less(struct rb_node *a, const struct rb_node *b)
{
	const struct att_run *x = length_run(a), *y = length_run(b);

	return x->count != y->count ? x->count < y->count :
				      x->first < y->first;
}

static void run_set_free(struct sci_att *att, struct att_run *run)
{
	run->used = false;
	rb_add(&run->length, &att->free, length_less);
}

struct sci_att *sci_att_create(u32 entries)
{
	struct sci_att *att;
	struct att_run *run;

	if (!entries)
		return NULL;
	att = kzalloc(sizeof(*att), GFP_KERNEL);
	run = kzalloc(sizeof(*run), GFP_KERNEL);
	if (!att || !run) {
		kfree(run);
		kfree(att);
		return NULL;
	}
	mutex_init(&att->lock);
	att->runs = RB_ROOT;
	att->free = RB_ROOT;
	att->entries = entries;
	run->count = entries;
	rb_add(&run->place, &att->runs, place_less);
	run_set_free(att, run);
	return att;
}
EXPORT_SYMBOL_GPL(sci_att_create);

void sci_att_destroy(struct sci_att *att)
{
	struct att_run *run, *next;

	if (!att)
		return;
	WARN_ON(att->used);
	rbtree_postorder_for_each_entry_safe(run, next, &att->runs, place)
		kfree(run);
	mutex_destroy(&att->lock);
	kfree(att);
}
EXPORT_SYMBOL_GPL(sci_att_destroy);

/* Return the shortest free run of at least @count entries; of several, the first. */
static struct att_run *run_best(struct sci_att *att, u32 count)
{
	struct rb_node *node = att->free.rb_node;
	struct att_run *best = NULL;

	while (node) {
		struct att_run *run = length_run(node);

		if (run->count >= count) {
			best = run;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return best;
}

/* Take the head of a free run. @rest becomes the remainder. Return @rest if there is none. */
static struct att_run *run_split(struct sci_att *att, struct att_run *run,
				 u32 count, struct att_run *rest)
{
	rb_erase(&run->length, &att->free);
	if (run->count == count)
		return rest;
	rest->first = run->first + count;
	rest->count = run->count - count;
	run->count = count;
	rb_add(&rest->place, &att->runs, place_less);
	run_set_free(att, rest);
	return NULL;
}

int sci_att_alloc(struct sci_att *att, u32 count, u32 owner, u32 *first)
{
	struct att_run *run, *rest;

	if (!count)
		return -EINVAL;
	rest = kzalloc(sizeof(*rest), GFP_KERNEL);
	if (!rest)
		return -ENOMEM;

	mutex_lock(&att->lock);
	run = run_best(att, count);
	if (run) {
		rest = run_split(att, run, count, rest);
		run->used = true;
		run->owner = owner;
		att->used += count;
		*first = run->first;
	}
	mutex_unlock(&att->lock);

	kfree(rest);
	return run ? 0 : -ENOSPC;
}
EXPORT_SYMBOL_GPL(sci_att_alloc);

static struct att_run *run_find(struct sci_att *att, u32 first)
{
	struct rb_node *node = att->runs.rb_node;

	while (node) {
		struct att_run *run = place_run(node);

		if (run->first == first)
			return run;
		node = first < run->first ? node->rb_left : node->rb_right;
	}
	return NULL;
}

/* Join @run, which is in no tree of free runs, and its right neighbour. */
static void run_absorb(struct sci_att *att, struct att_run *run,
		       struct att_run *right)
{
	rb_erase(&right->place, &att->runs);
	run->count += right->count;
	kfree(right);
}

/* Free a used run, and merge it with its free neighbours. */
static void run_merge(struct sci_att *att, struct att_run *run)
{
	struct att_run *left = place_run(rb_prev(&run->place));
	struct att_run *right = place_run(rb_next(&run->place));

	if (right && !right->used) {
		rb_erase(&right->length, &att->free);
		run_absorb(att, run, right);
	}
	if (left && !left->used) {
		rb_erase(&left->length, &att->free);
		run_absorb(att, left, run);
		run = left;
	}
	run_set_free(att, run);
}

void sci_att_free(struct sci_att *att, u32 first, u32 count)
{
	struct att_run *run;

	mutex_lock(&att->lock);
	run = run_find(att, first);
	if (!WARN_ON(!run || !run->used || run->count != count)) {
		att->used -= count;
		run_merge(att, run);
	}
	mutex_unlock(&att->lock);
}
EXPORT_SYMBOL_GPL(sci_att_free);

u32 sci_att_entries(const struct sci_att *att)
{
	return att->entries;
}

void sci_att_stats(struct sci_att *att, struct sci_att_stats *st)
{
	struct att_run *longest;

	mutex_lock(&att->lock);
	longest = length_run(rb_last(&att->free));
	st->entries = att->entries;
	st->used = att->used;
	st->largest_free = longest ? longest->count : 0;
	mutex_unlock(&att->lock);
}
EXPORT_SYMBOL_GPL(sci_att_stats);

void sci_att_dump(struct sci_att *att, struct seq_file *m)
{
	struct rb_node *node;

	mutex_lock(&att->lock);
	for (node = rb_first(&att->runs); node; node = rb_next(node)) {
		const struct att_run *run = place_run(node);

		if (run->used)
			seq_printf(m, "%u %u %u\n", run->first, run->count,
				   run->owner);
	}
	mutex_unlock(&att->lock);
}
EXPORT_SYMBOL_GPL(sci_att_dump);
