/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Random steps of the fuzzer's threads. */
#ifndef SELFTESTS_KERNEL_FUZZ_STEPS_H
#define SELFTESTS_KERNEL_FUZZ_STEPS_H

#include <stdatomic.h>

#include "ioctls.h"

#define FUZZ_PROCESSES_MAX	16u
#define FUZZ_THREADS_MAX	16u
#define FUZZ_WORKERS_MAX	(FUZZ_PROCESSES_MAX * FUZZ_THREADS_MAX)
#define FUZZ_OPS_MAX		64u
#define FUZZ_ERRNO_MAX		134u
#define FUZZ_TICK_MS		20

/* The state of one thread, for the supervisors. */
struct fuzz_worker {
	_Atomic uint64_t calls;
	_Atomic unsigned int op;
	_Atomic pid_t pid;
};

/* The state of the test, shared by all processes. */
struct fuzz_tally {
	uint64_t wanted;		/* number of calls to make */
	unsigned int threads;		/* of each process */
	bool failures;			/* inject failures of allocations */
	_Atomic uint64_t calls, bus_errors;
	_Atomic uint32_t seen[FUZZ_OPS_MAX][FUZZ_ERRNO_MAX];
	struct fuzz_worker worker[FUZZ_WORKERS_MAX];
};

/* Number and names of the operations: all ioctls, then the other steps. */
unsigned int fuzz_ops(void);
const char *fuzz_op_name(unsigned int op);

/* Run the threads of a process until all processes together have made enough calls. */
__attribute__((noreturn))
void fuzz_process(struct fuzz_tally *tally, unsigned int process,
		  uint64_t seed);

#endif
