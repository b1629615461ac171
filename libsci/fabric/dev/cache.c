// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The CPU's cache, for adapters with SCI_CAP_INCOHERENT. */

#include "libsci/fabric/dev/dev.h"

static void cache_write_back(struct sci_link_status *link, const volatile void *addr,
			     size_t len)
{
	(void)link;
	sci_pio_cache_write_back(addr, len);
}

static void cache_fence(struct sci_link_status *link)
{
	(void)link;
	sci_pio_cache_fence();
}

static void cache_refresh(struct sci_link_status *link, const volatile void *addr,
			  size_t len)
{
	(void)link;
	sci_pio_cache_refresh(addr, len);
}

static const struct sci_cache_ops cache_ops = {
	.write_back = cache_write_back,
	.fence = cache_fence,
	.refresh = cache_refresh,
};

int dev_cache_init(struct dev_adapter *a)
{
	if (!(a->caps & SCI_CAP_INCOHERENT))
		return 0;
	if (!sci_pio_cache_init())
		return -EOPNOTSUPP;
	a->link.cache = &cache_ops;
	return 0;
}
