// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Acquire and release. */
#include "libsci/vm/internal.h"

size_t sci_vm_time_size(const struct sci_vm *vm)
{
	size_t n = vm && vm->size < (int)SCI_VM_TIME_MAX ? (size_t)vm->size : SCI_VM_TIME_MAX;

	return offsetof(struct sci_vm_time, intervals) + n * sizeof(uint32_t);
}

void sci_vm_time_merge(struct sci_vm_time *into, const struct sci_vm_time *other)
{
	for (uint32_t i = 0; i < other->n && i < SCI_VM_TIME_MAX; i++) {
		if (i >= into->n)
			into->intervals[into->n++] = 0;
		if (into->intervals[i] < other->intervals[i])
			into->intervals[i] = other->intervals[i];
	}
}

int sci_vm_release(struct sci_vm *vm, struct sci_vm_time *time)
{
	if (!vm)
		return -EINVAL;
	VM_COUNT(vm, releases, 1);
	if (time)
		memset(time, 0, sci_vm_time_size(vm));
	return vm_usable(vm);
}

int sci_vm_acquire(struct sci_vm *vm, const struct sci_vm_time *time)
{
	if (!vm || (time && time->n > (uint32_t)vm->size))
		return -EINVAL;
	VM_COUNT(vm, acquires, 1);
	return vm_usable(vm);
}

int sci_vm_release_range(struct sci_vm *vm, const void *addr, size_t len)
{
	return (uintptr_t)addr + len < len ? -EINVAL : sci_vm_release(vm, NULL);
}

int sci_vm_acquire_range(struct sci_vm *vm, const void *addr, size_t len)
{
	return (uintptr_t)addr + len < len ? -EINVAL : sci_vm_acquire(vm, NULL);
}
