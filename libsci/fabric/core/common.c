// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include "libsci/fabric/core/common.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "libsci/base/host.h"
#include "libsci/fabric/core/fabric.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

const char sci_want_node[] = "want a node id, a multiple of 4 from 4 to 65532";

const char *sci_place_spec_from(const struct sci_fabric_place *at)
{
	if (!at->spec)
		return "SCI_FABRIC";
	return at->spec_from ? at->spec_from : "fabric";
}

const char *sci_place_node_from(const struct sci_fabric_place *at)
{
	if (!at->node)
		return "SCI_NODE";
	return at->node_from ? at->node_from : "node";
}

int sci_place_node(const struct sci_fabric_place *at, unsigned int *node)
{
	const char *from = sci_place_node_from(at);
	char text[16];
	int ret = 0;

	if (at->node)
		*node = at->node;
	else
		ret = sci_env_number(from, node, 10, SCI_NODE_STEP, SCI_NODE_MAX, sci_want_node);
	if (ret || (!(*node % SCI_NODE_STEP) && *node <= SCI_NODE_MAX))
		return ret;
	snprintf(text, sizeof(text), "%u", *node);
	return sci_env_bad(from, text, sci_want_node);
}

int sci_place_bad(const struct sci_fabric_place *at, const char *want)
{
	return sci_env_bad(sci_place_spec_from(at), at->spec ? at->spec : getenv("SCI_FABRIC"),
			   want);
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
		/* a kernel without MAP_FIXED_NOREPLACE takes the address as a hint */
		munmap(p, length);
		return -EADDRNOTAVAIL;
	}
	*addr = p + delta;
	return 0;
}
