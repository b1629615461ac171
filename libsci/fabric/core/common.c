// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include "libsci/fabric/core/common.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "libsci/base/host.h"
#include "libsci/fabric/core/fabric.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

int sci_env_node(unsigned int *node)
{
	static const char want[] = "want a node id, a multiple of 4 from 4 to 65532";
	int ret = sci_env_number("SCI_NODE", node, 10, SCI_NODE_STEP,
				 SCI_NODE_MAX, want);

	if (ret || !(*node % SCI_NODE_STEP))
		return ret;
	return sci_env_bad("SCI_NODE", getenv("SCI_NODE"), want);
}

int sci_env_mode(unsigned int *mode)
{
	return sci_env_number("SCI_MODE", mode, 8, 0, 0666,
			      "want the mode of a file in octal, as 0600, 0640 or 0666");
}

int sci_map_fd(int fd, uint64_t off, size_t len, size_t page,
	       unsigned int flags, void **addr)
{
	size_t delta = (size_t)(off & (page - 1));
	size_t length = (len + delta + page - 1) & ~(page - 1);
	int prot = flags & SCI_MAP_READONLY ? PROT_READ :
					      PROT_READ | PROT_WRITE;
	int how = MAP_SHARED;
	char *want = NULL, *p;

	if (flags & SCI_MAP_FIXED) {
		if (((uintptr_t)*addr & (page - 1)) != delta ||
		    (uintptr_t)*addr < page)
			return -EADDRNOTAVAIL;
		want = (char *)*addr - delta;
		how |= MAP_FIXED_NOREPLACE;
	}
	p = mmap(want, length, prot, how, fd, (off_t)(off - delta));
	if (p == MAP_FAILED)
		return errno == EEXIST || (want && errno == EINVAL) ?
		       -EADDRNOTAVAIL : -errno;
	if (want && p != want) {
		/* a kernel that takes the address as a hint */
		munmap(p, length);
		return -EADDRNOTAVAIL;
	}
	*addr = p + delta;
	return 0;
}
