// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The access of a fault, from the context that the kernel passes to a signal handler. */
#include "libsci/vm/internal.h"

#include <signal.h>
#include <ucontext.h>

#if defined(__x86_64__)

#define PF_WRITE	(1 << 1)
#define PF_INSTR	(1 << 4)

/* Return the access of a SIGSEGV with the context @context. Safe in a signal handler. */
enum vm_access vm_access_of(const void *context)
{
	const ucontext_t *u = context;
	long long error = u->uc_mcontext.gregs[REG_ERR];

	return error & PF_INSTR ? VM_ACCESS_FETCH :
	       error & PF_WRITE ? VM_ACCESS_STORE : VM_ACCESS_LOAD;
}

#elif defined(__aarch64__)

#include <asm/sigcontext.h>

#define ESR_CLASS(esr)	((esr) >> 26 & 0x3f)
#define ESR_FETCH	0x20		/* class: instruction abort from a lower level */
#define ESR_DATA	0x24		/* class: data abort from a lower level */
#define ESR_WRITE	(1 << 6)
#define ESR_CACHE	(1 << 8)	/* cache maintenance, which also sets ESR_WRITE */

static enum vm_access access_of_esr(uint64_t esr)
{
	if (ESR_CLASS(esr) == ESR_FETCH)
		return VM_ACCESS_FETCH;
	if (ESR_CLASS(esr) != ESR_DATA)
		return VM_ACCESS_UNKNOWN;
	return esr & ESR_WRITE && !(esr & ESR_CACHE) ? VM_ACCESS_STORE : VM_ACCESS_LOAD;
}

/*
 * Return the access of a SIGSEGV with the context @context. Linux adds a record of the syndrome
 * register; qemu-user may not. Safe in a signal handler.
 */
enum vm_access vm_access_of(const void *context)
{
	const ucontext_t *u = context;
	const uint8_t *at = u->uc_mcontext.__reserved;
	const uint8_t *end = at + sizeof(u->uc_mcontext.__reserved);
	struct esr_context record;

	while ((size_t)(end - at) >= sizeof(record)) {
		memcpy(&record, at, sizeof(record));
		if (record.head.magic == ESR_MAGIC)
			return access_of_esr(record.esr);
		if (!record.head.magic || record.head.size < sizeof(record.head) ||
		    record.head.size > (size_t)(end - at))
			break;
		at += record.head.size;
	}
	return VM_ACCESS_UNKNOWN;
}

#else

enum vm_access vm_access_of(const void *context)
{
	(void)context;
	return VM_ACCESS_UNKNOWN;
}

#endif
