// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: a simulated cache, for tests
 *
 * With the parameter check, each node of this machine has a cache of its own, as large as the
 * pool: the node's kernel and its programs access the cache, and never the pool. Only flushes
 * move a line. So a flush that is missing shows as data that never arrives, or as old data. No line
 * is written back or dropped by itself.
 *
 * As on a CPU, a line is written back as a whole, and only if it has changed since it was loaded;
 * a line that is dropped is written back first. Programs see the cache in their maps, so a line
 * cannot be loaded at the moment of the next access: it is loaded again when it is dropped.
 *
 * The memory of the caches is consecutive and has page structures, like the pool.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bitmap.h>
#include <linux/ioport.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "sci_pool.h"

#define WORDS	(POOL_LINE / sizeof(u64))

unsigned long sci_pool_check;
module_param_named(check, sci_pool_check, ulong, 0444);
MODULE_PARM_DESC(check,
		 "for tests: physical address of memory for simulated caches, which the kernel must not use itself: twice as large as the pool for each of the nodes");

static LIST_HEAD(checks);
static DEFINE_SPINLOCK(checks_lock);	/* the list, and lines of all caches */

/* ---- lines ---- */

static u64 *line_words(u8 *base, u64 line)
{
	return (u64 *)(base + line * POOL_LINE);
}

/*
 * Copy a line that another CPU or machine may store at the same time. The last word is loaded
 * first and stored last: if a copy has a new last word, the other words are new, too.
 */
static void line_read(u64 *to, const u64 *from)
{
	unsigned int i;

	for (i = WORDS; i--;)
		/* pairs with the release stores below, and with those of other CPUs and machines */
		to[i] = smp_load_acquire(&from[i]);
}

static void line_write_back(struct pool_check *c, u64 line)
{
	u64 *memory = line_words(c->memory, line);
	u64 words[WORDS];
	unsigned int i;

	if (!test_bit(line, c->present))
		return;
	line_read(words, line_words(c->cache, line));
	if (!memcmp(words, line_words(c->clean, line), POOL_LINE))
		return;
	for (i = 0; i < WORDS; i++)
		/* pairs with line_read() */
		smp_store_release(&memory[i], words[i]);
	memcpy(line_words(c->clean, line), words, POOL_LINE);
}

/* Load a line from memory. A word that a program stores meanwhile keeps the program's value. */
static void line_load(struct pool_check *c, u64 line)
{
	u64 *cache = line_words(c->cache, line), *clean = line_words(c->clean, line);
	bool present = __test_and_set_bit(line, c->present);
	u64 words[WORDS];
	unsigned int i;

	line_read(words, line_words(c->memory, line));
	for (i = 0; i < WORDS; i++) {
		if (!present)
			/* pairs with line_read(), and with the loads of programs */
			smp_store_release(&cache[i], words[i]);
		else if (words[i] != clean[i])
			cmpxchg(&cache[i], clean[i], words[i]);
		clean[i] = words[i];
	}
}

static struct pool_check *check_find(const void *p)
{
	struct pool_check *c;

	list_for_each_entry(c, &checks, link)
		if ((const u8 *)p >= c->cache && (const u8 *)p < c->cache + c->size)
			return c;
	return NULL;
}

/* Return false if @p is in no simulated cache. */
static bool check_flush_line(const void *p, bool drop)
{
	struct pool_check *c;
	u64 line;

	spin_lock(&checks_lock);
	c = check_find(p);
	if (c) {
		line = ((const u8 *)p - c->cache) / POOL_LINE;
		line_write_back(c, line);
		if (drop)
			line_load(c, line);
	}
	spin_unlock(&checks_lock);
	return c;
}

bool pool_check_flush(const void *p, size_t length, bool drop)
{
	const void *at = PTR_ALIGN_DOWN(p, POOL_LINE);

	for (; at < p + length; at += POOL_LINE)
		if (!check_flush_line(at, drop))
			return false;
	return true;
}

static bool check_line_is_clean(const void *p)
{
	struct pool_check *c;
	bool clean = true;
	u64 line;

	spin_lock(&checks_lock);
	c = check_find(p);
	if (c) {
		line = ((const u8 *)p - c->cache) / POOL_LINE;
		clean = !test_bit(line, c->present) ||
			!memcmp(line_words(c->cache, line), line_words(c->clean, line),
				POOL_LINE);
	}
	spin_unlock(&checks_lock);
	return clean;
}

void pool_check_clean(const void *p, u64 length)
{
	const void *at;

	for (at = p; at < p + length; at += POOL_LINE) {
		if (WARN_ONCE(!check_line_is_clean(at), "a line was not flushed"))
			break;
		cond_resched();
	}
}

/* ---- caches ---- */

static int check_map(struct pool_check *c, phys_addr_t start)
{
	void *virt;

	c->map.type = MEMORY_DEVICE_GENERIC;
	c->map.range.start = start;
	c->map.range.end = start + 2 * c->size - 1;
	c->map.nr_range = 1;
	if (!request_mem_region(start, 2 * c->size, KBUILD_MODNAME))
		return -EBUSY;
	virt = memremap_pages(&c->map, NUMA_NO_NODE);
	if (IS_ERR(virt)) {
		release_mem_region(start, 2 * c->size);
		return PTR_ERR(virt);
	}
	c->cache = virt;
	c->clean = virt + c->size;
	return 0;
}

static void check_unmap(struct pool_check *c)
{
	memunmap_pages(&c->map);
	release_mem_region(c->map.range.start, 2 * c->size);
}

int pool_check_start(struct pool_node *n, unsigned int index)
{
	struct pool_memory *m = n->memory;
	phys_addr_t start = sci_pool_check + index * 2 * m->size;
	struct pool_check *c;
	int ret = -ENOMEM;

	if (!sci_pool_check)
		return 0;
	c = kzalloc(sizeof(*c), GFP_KERNEL);
	if (!c)
		return -ENOMEM;
	c->memory = m->virt;
	c->size = m->size;
	c->present = kvcalloc(BITS_TO_LONGS(m->size / POOL_LINE), sizeof(long), GFP_KERNEL);
	if (!c->present)
		goto err_free;
	ret = check_map(c, start);
	if (ret) {
		pr_err("check: no %#llx bytes of memory at %pa: %pe\n", 2 * m->size, &start,
		       ERR_PTR(ret));
		goto err_present;
	}
	spin_lock(&checks_lock);
	list_add(&c->link, &checks);
	spin_unlock(&checks_lock);
	n->check = c;
	n->start = start;
	n->virt = c->cache;
	return 0;

err_present:
	kvfree(c->present);
err_free:
	kfree(c);
	return ret;
}

void pool_check_stop(struct pool_node *n)
{
	struct pool_check *c = n->check;

	if (!c)
		return;
	spin_lock(&checks_lock);
	list_del(&c->link);
	spin_unlock(&checks_lock);
	check_unmap(c);
	kvfree(c->present);
	kfree(c);
}
