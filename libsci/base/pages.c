// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Replace the pages under memory of the program. */

#include "libsci/base/pages.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

#include "libsci/base/host.h"

/* Copy as memcpy() does, but without the address sanitizer. */
__attribute__((no_sanitize("address")))
static void pages_copy(void *to, const void *from, size_t len)
{
	const volatile uint64_t *f = from;
	uint64_t *t = to;

	for (size_t i = 0; i < len / sizeof(*t); i++)
		t[i] = f[i];
}

/* Replace the memory at @addr by the mapping @p. */
static int pages_replace(void *p, void *addr, size_t len)
{
	int ret;

	pages_copy(p, addr, len);
	if (sci_map_move(p, len, len, addr) != MAP_FAILED)
		return 0;
	ret = -errno;
	munmap(p, len);
	return ret;
}

int sci_pages_adopt(int fd, void *addr, size_t len, unsigned long *inode)
{
	int ret = sci_check_anonymous((uintptr_t)addr, len);
	void *p;

	if (ret)
		return ret;
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	*inode = sci_mapping_inode(p);
	if (!*inode) {
		munmap(p, len);
		return -EIO;
	}
	return pages_replace(p, addr, len);
}

int sci_pages_make_anonymous(void *addr, size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED || pages_replace(p, addr, len) ? -ENOMEM : 0;
}

static void pages_return(void *addr, size_t len)
{
	sci_pages_make_anonymous(addr, len);
}

void sci_pages_return(void *addr, size_t len, unsigned long inode)
{
	/* without /proc, the program has hopefully kept the pages */
	if (sci_each_mapping(addr, len, inode, pages_return))
		pages_return(addr, len);
}
