// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include "libsci/fabric/fabric.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* In the order "auto" tries them. */
static const struct sci_fabric_ops *const fabrics[] = {
	&sci_shm_fabric,
};

#define N_FABRICS (sizeof(fabrics) / sizeof(fabrics[0]))

int sci_fabric_open(struct sci_fabric **out)
{
	const char *spec = getenv("SCI_FABRIC");
	const char *arg;
	size_t i, n;
	int ret = -ENODEV;

	if (!spec || !*spec || !strcmp(spec, "auto")) {
		for (i = 0; i < N_FABRICS && ret == -ENODEV; i++)
			ret = fabrics[i]->open(out, NULL);
		return ret;
	}

	n = strcspn(spec, ":");
	arg = spec[n] ? spec + n + 1 : NULL;
	for (i = 0; i < N_FABRICS; i++)
		if (strlen(fabrics[i]->name) == n &&
		    !strncmp(spec, fabrics[i]->name, n))
			return fabrics[i]->open(out, arg);

	/* a fabric of the plan that this build lacks, or no fabric at all */
	return n == 3 && !strncmp(spec, "dev", n) ? -ENODEV : -EINVAL;
}
