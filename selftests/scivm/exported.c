// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The shared library exports each function of sci/vm.h. Other tests link the static library. */

#include "selftests/harness.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *load(const char *folder, const char *name, int how)
{
	char path[PATH_MAX + 64];
	void *lib;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	lib = dlopen(path, how);
	if (!lib)
		FAIL("%s", dlerror());
	return lib;
}

TEST(all_functions_are_exported)
{
	static const char *const names[] = {
		"sci_vm_open", "sci_vm_close", "sci_vm_base", "sci_vm_length", "sci_vm_mode",
		"sci_vm_alloc", "sci_vm_free", "sci_vm_adopt", "sci_vm_place", "sci_vm_home",
		"sci_vm_touch", "sci_vm_time_size", "sci_vm_time_merge", "sci_vm_release",
		"sci_vm_acquire", "sci_vm_release_range", "sci_vm_acquire_range",
		"sci_vm_stats",
	};
	char folder[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
	void *lib;

	CHECK(n > 0);
	folder[n] = '\0';
	/* remove "/selftests/scivm/exported" */
	for (unsigned int i = 0; i < 3; i++) {
		char *slash = strrchr(folder, '/');

		CHECK(slash);
		*slash = '\0';
	}
	load(folder, "libsci.so.0", RTLD_NOW | RTLD_GLOBAL);
	lib = load(folder, "libsci-vm.so.0", RTLD_NOW);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!dlsym(lib, names[i]))
			FAIL("%s is not exported", names[i]);
	CHECK(!dlsym(lib, "vm_call"));
}
