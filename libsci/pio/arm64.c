// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The store engine of AArch64. All AArch64 CPUs have the NEON vector unit. */
#if defined(__aarch64__)

#include "engine.h"

#define W	16
#define V	sci_v16
#define TARGET
#define NAME(x)	neon_##x
#include "copy.h"

static bool neon_supported(void)
{
	return true;
}

const struct sci_pio_engine sci_pio_neon = {
	.name = "neon",
	.width = 16,
	.supported = neon_supported,
	.put_lines = neon_lines,
	.get_lines = neon_lines,
	.copy = neon_copy,
};

#else
typedef int sci_pio_no_arm64;	/* ISO C wants a declaration in each file */
#endif
