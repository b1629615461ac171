/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Settings of the two kinds of traffic that run while the fabric has faults. */
#ifndef SELFTESTS_CLUSTER_ENDURE_H
#define SELFTESTS_CLUSTER_ENDURE_H

#include <stdio.h>
#include <stdlib.h>

#include "selftests/harness.h"

static inline unsigned int number_of(const char *name, unsigned int otherwise)
{
	const char *s = getenv(name);

	return s && *s ? (unsigned int)strtoul(s, NULL, 0) : otherwise;
}

/* Duration of the traffic in seconds. Recovery and end may take longer. */
static inline unsigned int endure_seconds(void)
{
	return number_of("CLUSTER_SECONDS", 5);
}

/* Time for a machine to boot. A debug kernel takes longer. */
#define RECOVERY_MS	(60000u * number_of("CLUSTER_SLOW", 1))

__attribute__((constructor)) static void endure_limit(void)
{
	char limit[16];

	snprintf(limit, sizeof(limit), "%u",
		 endure_seconds() + 2 * RECOVERY_MS / 1000);
	setenv("SCI_TEST_TIMEOUT", limit, 0);
}

/* Return whether a connection may end. Otherwise its end is a failure. */
static inline bool may_lose_connections(void)
{
	return number_of("CLUSTER_MAY_LOSE", 0);
}

#endif
