// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* The CPU's cache, for pools on memory where the caches of machines are not coherent. */

#include <linux/libnvdimm.h>

#include "sci_pool.h"

DEFINE_STATIC_KEY_FALSE(pool_incoherent);

void pool_cache_flush(const void *p, size_t n)
{
	/* on some CPUs the second call drops lines without writing them back */
	arch_wb_cache_pmem((void *)p, n);
	arch_invalidate_pmem((void *)p, n);
}

int pool_cache_get(void)
{
	if (!IS_ENABLED(CONFIG_ARCH_HAS_PMEM_API))
		return -EOPNOTSUPP;
	static_branch_inc(&pool_incoherent);
	return 0;
}

void pool_cache_put(void)
{
	static_branch_dec(&pool_incoherent);
}
