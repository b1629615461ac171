/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: components of Open MPI's SHMEM
 *
 *	spml.c		start, end, puts and gets
 *	sshmem.c	memory for the symmetric heap
 *	atomic.c	atomics
 *
 * Open MPI loads a component mca_FRAMEWORK_sci.so for each of the three frameworks. The three
 * files are names of one shared object. If the user selects the spml component, the other two
 * components offer themselves too. Open MPI's heap is one block of the heap of the team. The
 * static variables of the program are registered with the team. Open MPI names memory of another
 * PE by the address of the caller's own part, as the team does, so that the memory keys which
 * Open MPI exchanges remain unused.
 */
#ifndef LIBSCI_OSHMEM_H
#define LIBSCI_OSHMEM_H

#include <oshmem_config.h>

#include <oshmem/mca/spml/base/base.h>

#include <sci/team.h>

#define OSHMEM_PRIORITY		100	/* Open MPI's largest: above components for any network */

/* The team of all PEs. NULL: the spml component is not selected. */
extern struct sci_team *oshmem_team;

static inline int oshmem_result(int ret)
{
	return ret ? OSHMEM_ERROR : OSHMEM_SUCCESS;
}

#endif
