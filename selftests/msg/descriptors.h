/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* A process without free descriptors: an import needs one. */
#ifndef SELFTESTS_MSG_DESCRIPTORS_H
#define SELFTESTS_MSG_DESCRIPTORS_H

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "selftests/harness.h"

#define DESCRIPTORS	256u

static int descriptors[DESCRIPTORS];
static unsigned int n_descriptors;

/* Open all descriptors. */
static inline void descriptors_use_up(void)
{
	const struct rlimit few = { DESCRIPTORS, DESCRIPTORS };

	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
	while (n_descriptors < DESCRIPTORS && (descriptors[n_descriptors] = dup(2)) >= 0)
		n_descriptors++;
	CHECK_EQ(errno, EMFILE);
}

/* Sanitizers need descriptors at the end of the process. */
static inline void descriptors_give_back(void)
{
	while (n_descriptors)
		close(descriptors[--n_descriptors]);
}

#endif
