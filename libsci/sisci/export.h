/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * The library exports each function by its name, and by two other names.
 * Programs built against other SISCI installations import these, because the
 * sisci_api.h there renames SCIOpen and the other functions.
 */
#ifndef LIBSCI_EXPORT_H
#define LIBSCI_EXPORT_H

/*
 * clang takes a visibility only before the definition, so the header's
 * declarations come with it; include this file, not the header itself.
 */
#pragma GCC visibility push(default)
#include "libsci/include/sisci_api.h"
#pragma GCC visibility pop

#define SISCI_EXPORT(name)						\
	extern __typeof__(name) _SISCI_PUBLIC_FUNC_ST_##name		\
		__attribute__((alias(#name), visibility("default")));	\
	extern __typeof__(name) _SISCI_PUBLIC_FUNC_MT_##name		\
		__attribute__((alias(#name), visibility("default")))

#endif
