// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The sshmem component: memory for the symmetric heap. */

#include "libsci/oshmem/oshmem.h"

#include <oshmem/mca/sshmem/base/base.h>

/*
 * Open MPI finds an aligned block by its address, so the heaps of all PEs have the same address
 * modulo this alignment. Blocks of a larger alignment would have different places in them.
 */
#define SSHMEM_ALIGN	(2u << 20)

static int sshmem_init(void)
{
	return OSHMEM_SUCCESS;
}

/* Context: all PEs make the same calls in the same order. */
static int sshmem_create(map_segment_t *segment, const char *name, size_t size, long hint)
{
	void *addr;

	(void)name;
	if (hint)
		return OSHMEM_ERR_NOT_IMPLEMENTED;
	shmem_ds_reset(segment);
	if (sci_team_alloc(oshmem_team, size, SSHMEM_ALIGN, &addr))
		return OSHMEM_ERR_OUT_OF_RESOURCE;
	segment->super.va_base = addr;
	segment->super.va_end = (char *)addr + size;
	segment->seg_size = size;
	return OSHMEM_SUCCESS;
}

/* Open MPI attaches only segments of components that have an identifier for each segment. */
static void *sshmem_attach(map_segment_t *segment, sshmem_mkey_t *key)
{
	(void)segment;
	(void)key;
	return NULL;
}

/* The end of the team frees the memory. */
static int sshmem_detach(map_segment_t *segment, sshmem_mkey_t *key)
{
	(void)key;
	shmem_ds_reset(segment);
	return OSHMEM_SUCCESS;
}

static int sshmem_unlink(map_segment_t *segment)
{
	(void)segment;
	return OSHMEM_SUCCESS;
}

static mca_sshmem_base_module_t sshmem_module = {
	.module_init = sshmem_init,
	.segment_create = sshmem_create,
	.segment_attach = sshmem_attach,
	.segment_detach = sshmem_detach,
	.unlink = sshmem_unlink,
	.module_finalize = sshmem_init,
};

static int sshmem_query(mca_base_module_t **module, int *priority, const char *hint)
{
	(void)hint;
	*module = oshmem_team ? (mca_base_module_t *)&sshmem_module : NULL;
	*priority = OSHMEM_PRIORITY;
	return oshmem_team ? OSHMEM_SUCCESS : OSHMEM_ERR_NOT_AVAILABLE;
}

__attribute__((visibility("default")))
mca_sshmem_base_component_t mca_sshmem_sci_component = {
	.base_version = {
		MCA_SSHMEM_BASE_VERSION_2_0_0,
		.mca_component_name = "sci",
		MCA_BASE_MAKE_VERSION(component, OSHMEM_MAJOR_VERSION, OSHMEM_MINOR_VERSION,
				      OSHMEM_RELEASE_VERSION),
	},
	.runtime_query = sshmem_query,
};
