// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The access of a fault, from contexts as the kernel makes them. */
#include "selftests/harness.h"

#include <string.h>
#include <ucontext.h>

#include "libsci/vm/internal.h"

static ucontext_t context;

#if defined(__x86_64__)

TEST(the_error_code_has_the_access)
{
	long long *error = &context.uc_mcontext.gregs[REG_ERR];

	for (*error = 4; *error < 6; ++*error)
		CHECK_EQ(vm_access_of(&context), VM_ACCESS_LOAD);
	for (*error = 6; *error < 8; ++*error)
		CHECK_EQ(vm_access_of(&context), VM_ACCESS_STORE);
	*error = 0x15;
	CHECK_EQ(vm_access_of(&context), VM_ACCESS_FETCH);
}

#elif defined(__aarch64__)

#include <asm/sigcontext.h>

/* Return the access of a context with a record of the floating-point registers and of @esr. */
static enum vm_access access_of(uint64_t esr)
{
	uint8_t *at = context.uc_mcontext.__reserved;
	struct fpsimd_context fp = { .head = { FPSIMD_MAGIC, sizeof(fp) } };
	struct esr_context record = { .head = { ESR_MAGIC, sizeof(record) }, .esr = esr };

	memcpy(at, &fp, sizeof(fp));
	memcpy(at + sizeof(fp), &record, sizeof(record));
	return vm_access_of(&context);
}

TEST(the_syndrome_record_has_the_access)
{
	CHECK_EQ(access_of(0x92000007), VM_ACCESS_LOAD);
	CHECK_EQ(access_of(0x92000047), VM_ACCESS_STORE);
	CHECK_EQ(access_of(0x92000147), VM_ACCESS_LOAD);	/* cache maintenance */
	CHECK_EQ(access_of(0x82000007), VM_ACCESS_FETCH);
	CHECK_EQ(access_of(0x56000000), VM_ACCESS_UNKNOWN);	/* a system call */
}

TEST(a_context_without_the_record_has_no_access)
{
	struct _aarch64_ctx long_one = { 1, 8192 };

	CHECK_EQ(vm_access_of(&context), VM_ACCESS_UNKNOWN);
	memcpy(context.uc_mcontext.__reserved, &long_one, sizeof(long_one));
	CHECK_EQ(vm_access_of(&context), VM_ACCESS_UNKNOWN);
}

#endif
