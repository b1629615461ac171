// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include <errno.h>

#include "libsci/team/boot_private.h"

int boot_pmix_open(struct sci_boot **boot)
{
	(void)boot;
	return -ENOENT;
}
