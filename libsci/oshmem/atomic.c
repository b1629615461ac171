// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The atomic component. */

#include "libsci/oshmem/oshmem.h"

#include <oshmem/mca/atomic/base/base.h>

/* Change a word, and store its old value, of @size bytes, at @old. */
static int word_change(void *word, void *old, enum sci_atomic op, uint64_t operand, uint64_t compare,
		       size_t size, int pe)
{
	uint64_t value;
	int ret = sci_team_atomic(oshmem_team, word, (unsigned int)size, op, operand, compare,
				  &value, pe);

	if (!ret && size == sizeof(uint32_t))
		*(uint32_t *)old = (uint32_t)value;
	else if (!ret)
		*(uint64_t *)old = value;
	return oshmem_result(ret);
}

#define ATOMIC_OP(name, op)								\
	static int atomic_##name(shmem_ctx_t ctx, void *word, uint64_t value,		\
				 size_t size, int pe)					\
	{										\
		(void)ctx;								\
		return oshmem_result(sci_team_atomic(oshmem_team, word,			\
						     (unsigned int)size, op, value, 0,	\
						     NULL, pe));			\
	}

#define ATOMIC_FETCH(name, op)								\
	static int atomic_##name(shmem_ctx_t ctx, void *word, void *old,		\
				 uint64_t value, size_t size, int pe)			\
	{										\
		(void)ctx;								\
		return word_change(word, old, op, value, 0, size, pe);			\
	}

ATOMIC_OP(add, SCI_ATOMIC_ADD)
ATOMIC_OP(and, SCI_ATOMIC_AND)
ATOMIC_OP(or, SCI_ATOMIC_OR)
ATOMIC_OP(xor, SCI_ATOMIC_XOR)
ATOMIC_FETCH(fetch_add, SCI_ATOMIC_ADD)
ATOMIC_FETCH(fetch_and, SCI_ATOMIC_AND)
ATOMIC_FETCH(fetch_or, SCI_ATOMIC_OR)
ATOMIC_FETCH(fetch_xor, SCI_ATOMIC_XOR)
ATOMIC_FETCH(swap, SCI_ATOMIC_SET)

static int atomic_compare_swap(shmem_ctx_t ctx, void *word, uint64_t *old, uint64_t compare,
			       uint64_t value, size_t size, int pe)
{
	(void)ctx;
	return word_change(word, old, SCI_ATOMIC_CAS, value, compare, size, pe);
}

static int atomic_startup(bool progress_threads, bool threads)
{
	(void)progress_threads;
	(void)threads;
	return OSHMEM_SUCCESS;
}

static int atomic_finalize(void)
{
	return OSHMEM_SUCCESS;
}

static mca_atomic_base_module_t *atomic_query(int *priority)
{
	mca_atomic_base_module_t *module = oshmem_team ? OBJ_NEW(mca_atomic_base_module_t) : NULL;

	*priority = OSHMEM_PRIORITY;
	if (!module)
		return NULL;
	module->atomic_add = atomic_add;
	module->atomic_and = atomic_and;
	module->atomic_or = atomic_or;
	module->atomic_xor = atomic_xor;
	module->atomic_fadd = atomic_fetch_add;
	module->atomic_fand = atomic_fetch_and;
	module->atomic_for = atomic_fetch_or;
	module->atomic_fxor = atomic_fetch_xor;
	module->atomic_swap = atomic_swap;
	module->atomic_cswap = atomic_compare_swap;
	return module;
}

__attribute__((visibility("default")))
mca_atomic_base_component_t mca_atomic_sci_component = {
	.atomic_version = {
		MCA_ATOMIC_BASE_VERSION_2_0_0,
		.mca_component_name = "sci",
		MCA_BASE_MAKE_VERSION(component, OSHMEM_MAJOR_VERSION, OSHMEM_MINOR_VERSION,
				      OSHMEM_RELEASE_VERSION),
	},
	.atomic_startup = atomic_startup,
	.atomic_finalize = atomic_finalize,
	.atomic_query = atomic_query,
};
