// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Preload library that lets Open MPI 4.1 use libfabric's shm. Open MPI asks for
 * providers with local and remote communication, which shm does not offer. The
 * library removes that request.
 */
#if __has_include(<rdma/fabric.h>)	/* not installed for lint */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>

#include <rdma/fabric.h>

typedef int getinfo(uint32_t version, const char *node, const char *service,
		    uint64_t flags, const struct fi_info *hints,
		    struct fi_info **info);

int fi_getinfo(uint32_t version, const char *node, const char *service,
	       uint64_t flags, const struct fi_info *hints,
	       struct fi_info **info)
{
	getinfo *next = (getinfo *)dlsym(RTLD_NEXT, "fi_getinfo");
	struct fi_info *local = hints ? fi_dupinfo(hints) : NULL;
	int ret;

	if (!next || (hints && !local))
		return -ENOMEM;
	if (local)
		local->caps &= ~(FI_LOCAL_COMM | FI_REMOTE_COMM);
	ret = next(version, node, service, flags, local, info);
	if (local)
		fi_freeinfo(local);
	return ret;
}

#endif
