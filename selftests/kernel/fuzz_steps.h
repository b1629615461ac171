/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* What a thread of the fuzzer does: one step after the other, at random. */
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

/* One thread, as the supervisors see it. */
struct fuzz_worker {
	_Atomic uint64_t calls;
	_Atomic unsigned int op;
	_Atomic pid_t pid;
};

/* Seen by all processes. */
struct fuzz_tally {
	uint64_t wanted;		/* calls, in all */
	unsigned int threads;		/* of each process */
	bool failures;			/* the kernel's memory runs out */
	_Atomic uint64_t calls, bus_errors;
	_Atomic uint32_t seen[FUZZ_OPS_MAX][FUZZ_ERRNO_MAX];
	struct fuzz_worker worker[FUZZ_WORKERS_MAX];
};

/* Ops are ioctls and other steps; how many, and their names. */
unsigned int fuzz_ops(void);
const char *fuzz_op_name(unsigned int op);

/* The life of a process, until enough calls were made. */
__attribute__((noreturn))
void fuzz_process(struct fuzz_tally *tally, unsigned int process,
		  uint64_t seed);

#endif
