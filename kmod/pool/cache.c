// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/*
 * The CPU's cache, for pools on memory where the caches of machines are not coherent.
 *
 * A flush must write a line back and drop it in one step. Another CPU of this machine may store
 * into the line at the same time: arch_invalidate_pmem() of arm64 would drop that store.
 */

#include <asm/cacheflush.h>
#ifdef CONFIG_ARM64
#include <asm/cputype.h>
#endif

#include "sci_pool.h"

DEFINE_STATIC_KEY_FALSE(pool_incoherent);

#if defined(CONFIG_X86)

#define CACHE_CAN_FLUSH	true

static void cache_flush(const void *p, size_t n)
{
	clflush_cache_range((void *)p, n);
}

#elif defined(CONFIG_ARM64)

#define CACHE_CAN_FLUSH	true

static void cache_flush(const void *p, size_t n)
{
	unsigned long line = 4ul << (read_cpuid_cachetype() >> 16 & 0xf);
	unsigned long at = (unsigned long)p & ~(line - 1);

	dsb(sy);
	for (; at < (unsigned long)p + n; at += line)
		asm volatile("dc civac, %0" : : "r" (at) : "memory");
	dsb(sy);
}

#else

#define CACHE_CAN_FLUSH	false

static void cache_flush(const void *p, size_t n)
{
}

#endif

void pool_cache_flush(const void *p, size_t n)
{
	if (!sci_pool_check || !pool_check_flush(p, n, true))
		cache_flush(p, n);
}

int pool_cache_get(void)
{
	if (!CACHE_CAN_FLUSH)
		return -EOPNOTSUPP;
	static_branch_inc(&pool_incoherent);
	return 0;
}

void pool_cache_put(void)
{
	static_branch_dec(&pool_incoherent);
}
