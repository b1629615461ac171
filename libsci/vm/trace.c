// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* SCI_VM_TRACE: a line for each event of a page. */
#include "libsci/vm/internal.h"

#include <stdlib.h>
#include <time.h>

/**
 * vm_trace_open() - begin a trace if SCI_VM_TRACE names a file
 *
 * Its name gets the rank appended. -errno of the file.
 */
int vm_trace_open(struct sci_vm *vm)
{
	const char *name = getenv("SCI_VM_TRACE");
	char path[4096];

	if (!name || !*name)
		return 0;
	snprintf(path, sizeof(path), "%s.%d", name, vm->rank);
	vm->trace = fopen(path, "we");
	return vm->trace ? 0 : -errno;
}

void vm_trace_close(struct sci_vm *vm)
{
	if (vm->trace)
		fclose(vm->trace);
}

/* "seconds event address home"; with vm->lock. */
void vm_trace(struct sci_vm *vm, const char *event, const void *addr, int home)
{
	struct timespec ts;

	if (!vm->trace)
		return;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	fprintf(vm->trace, "%ld.%09ld %s %p %d\n", (long)ts.tv_sec, ts.tv_nsec, event, addr,
		home);
}
