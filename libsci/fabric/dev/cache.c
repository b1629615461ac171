// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The CPU's cache, for adapters with SCI_CAP_INCOHERENT, and the kernel's simulation of it. */

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

/* ---- SCI_CAP_CHECKED ---- */

static void kernel_flush(struct sci_link_status *link, const volatile void *addr, size_t len,
			 unsigned int flags)
{
	struct sci_ioc_cache arg = {
		.size = sizeof(arg), .flags = flags, .addr = (uintptr_t)addr, .length = len,
	};

	dev_ioctl(container_of(link, struct dev_adapter, link)->fd, SCI_IOC_CACHE, &arg);
}

static void kernel_write_back(struct sci_link_status *link, const volatile void *addr,
			      size_t len)
{
	kernel_flush(link, addr, len, 0);
}

/* The kernel has written the lines back already. */
static void kernel_fence(struct sci_link_status *link)
{
	(void)link;
}

static void kernel_refresh(struct sci_link_status *link, const volatile void *addr,
			   size_t len)
{
	kernel_flush(link, addr, len, SCI_CACHE_DROP);
}

static const struct sci_cache_ops kernel_ops = {
	.write_back = kernel_write_back,
	.fence = kernel_fence,
	.refresh = kernel_refresh,
};

int dev_cache_init(struct dev_adapter *a)
{
	if (!(a->caps & SCI_CAP_INCOHERENT))
		return 0;
	if (a->caps & SCI_CAP_CHECKED) {
		a->link.cache = &kernel_ops;
		return 0;
	}
	if (!sci_pio_cache_init())
		return -EOPNOTSUPP;
	a->link.cache = &cache_ops;
	return 0;
}
