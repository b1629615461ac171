// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The CPU that a rank is bound to. */

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "launch.h"

/* Return how many hyperthreads of the CPU's core have lower numbers. */
static unsigned int cpu_thread(unsigned int cpu)
{
	unsigned int first, last, thread = 0;
	char path[96];
	FILE *f;

	snprintf(path, sizeof(path),
		 "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu);
	f = fopen(path, "re");
	if (!f)
		return 0;
	/* the list has a form such as "0,64" or "0-1" */
	while (fscanf(f, "%u", &first) == 1) {
		int c = getc(f);

		last = first;
		if (c == '-' && fscanf(f, "%u", &last) == 1)
			c = getc(f);
		for (; first <= last && first < cpu; first++)
			thread++;
		if (c != ',')
			break;
	}
	fclose(f);
	return thread;
}

struct cpu {
	unsigned int number, thread;
};

/* Sort the first hyperthreads of all cores before the second hyperthreads. */
static int cpu_order(const void *a, const void *b)
{
	const struct cpu *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

void cpu_bind(unsigned int local)
{
	struct cpu cpus[CPU_SETSIZE];
	unsigned int n = 0;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return;
	for (unsigned int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			cpus[n++] = (struct cpu){ i, cpu_thread(i) };
	if (!n)
		return;
	qsort(cpus, n, sizeof(cpus[0]), cpu_order);
	CPU_ZERO(&set);
	CPU_SET(cpus[local % n].number, &set);
	sched_setaffinity(0, sizeof(set), &set);
}
