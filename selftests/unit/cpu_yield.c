// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* sci_cpu_yield() reports a process that runs on the same CPU. */
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsci/base/host.h"
#include "selftests/harness.h"

/* Run on one of the CPUs that the process may use. */
static void stay_on_one_cpu(void)
{
	cpu_set_t set;
	int cpu;

	CHECK_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
	for (cpu = 0; !CPU_ISSET(cpu, &set);)
		cpu++;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	CHECK_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
}

TEST(another_process_is_reported)
{
	pid_t parent = getpid(), pid;
	unsigned int taken = 0;

	stay_on_one_cpu();
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == parent)
			sched_yield();
		_exit(0);
	}
	sci_cpu_yield();
	WAIT_UNTIL((taken += sci_cpu_yield()) >= 100, TEST_WAIT_MS);
	CHECK_EQ(kill(pid, SIGKILL), 0);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	/* other programs of the machine may run, but not always */
	WAIT_UNTIL(!sci_cpu_yield(), TEST_WAIT_MS);
}
