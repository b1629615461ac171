/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * Helpers of the benchmarks. Each benchmark is a program of two processes: node 4,
 * which measures, and a forked node 8. Unless SCI_FABRIC is set, both join a
 * cluster of their own in shared memory.
 */
#ifndef SELFTESTS_BENCH_H
#define SELFTESTS_BENCH_H

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libsci/base/barrier.h"
#include "sisci_api.h"

#define BENCH_NODE	4u
#define BENCH_PEER	8u

#define bench_die(...)							\
	do {								\
		fprintf(stderr, __VA_ARGS__);				\
		fputc('\n', stderr);					\
		exit(1);						\
	} while (0)

/* @call must use &err. An error ends the program. */
#define BENCH_OK(call)							\
	do {								\
		sci_error_t err;					\
		call;							\
		if (err != SCI_ERR_OK)					\
			bench_die("%s:%d: %s: %s", __FILE__, __LINE__,	\
				  #call, SCIGetErrorString(err));	\
	} while (0)

static inline uint64_t bench_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static cpu_set_t bench_cpus;		/* CPUs that the program may use */

/* Pin this process to the @n-th of these CPUs. Return false if there is only one. */
static inline bool bench_pin(int n)
{
	cpu_set_t set;
	int cpu;

	if (CPU_COUNT(&bench_cpus) < 2)
		return false;
	n %= CPU_COUNT(&bench_cpus);
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &bench_cpus) && n-- == 0)
			break;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return !sched_setaffinity(0, sizeof(set), &set);
}

static inline int bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static inline void bench_sort(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), bench_compare);
}

/* Return a quantile of sorted values. */
static inline double bench_quantile(const double *v, size_t n, double q)
{
	return v[(size_t)(q * (double)(n - 1) + 0.5)];
}

/* Sort values and return the median. */
static inline double bench_median(double *v, size_t n)
{
	bench_sort(v, n);
	return bench_quantile(v, n, 0.5);
}

/* Return the share of sorted values that are at least @limit. */
static inline double bench_share_above(const double *v, size_t n, double limit)
{
	size_t i = n;

	while (i && v[i - 1] >= limit)
		i--;
	return (double)(n - i) / (double)n;
}

/* Select the cluster that all processes of this program join. Call this first. */
static inline void bench_begin(void)
{
	char value[64];

	sched_getaffinity(0, sizeof(bench_cpus), &bench_cpus);
	snprintf(value, sizeof(value), "shm:bench-%d", (int)getpid());
	setenv("SCI_FABRIC", value, 0);
}

static inline sci_desc_t bench_open(unsigned int node)
{
	char value[16];
	sci_desc_t sd;

	snprintf(value, sizeof(value), "%u", node);
	setenv("SCI_NODE", value, 1);
	BENCH_OK(SCIInitialize(0, &err));
	BENCH_OK(SCIOpen(&sd, 0, &err));
	return sd;
}

/* Run @fn in a process of its own that dies with this one. */
static inline pid_t bench_spawn(void (*fn)(void *arg), void *arg)
{
	pid_t parent = getpid();
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		bench_die("cannot fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	fn(arg);
	exit(0);
}

static inline void bench_stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Export a zeroed segment and map it. */
static inline void *bench_export(sci_desc_t sd, unsigned int id, size_t size)
{
	sci_local_segment_t s;
	sci_map_t map;
	void *p;

	BENCH_OK(SCICreateSegment(sd, &s, id, size, NULL, NULL, 0, &err));
	BENCH_OK(p = SCIMapLocalSegment(s, &map, 0, size, NULL, 0, &err));
	memset(p, 0, size);
	BENCH_OK(SCIPrepareSegment(s, 0, 0, &err));
	BENCH_OK(SCISetSegmentAvailable(s, 0, 0, &err));
	return p;
}

/* Connect to a segment; wait until the peer has exported it. */
static inline sci_remote_segment_t bench_connect(sci_desc_t sd,
						 unsigned int node,
						 unsigned int id)
{
	uint64_t end = bench_ns() + 20000000000ull;
	sci_remote_segment_t r;
	sci_error_t err;

	for (;;) {
		SCIConnectSegment(sd, &r, node, id, 0, NULL, NULL, 0, 0, &err);
		if (err == SCI_ERR_OK)
			return r;
		if ((err != SCI_ERR_NO_SUCH_SEGMENT &&
		     err != SCI_ERR_NO_SUCH_NODEID) || bench_ns() > end)
			bench_die("connect to segment %u of node %u: %s", id,
				  node, SCIGetErrorString(err));
		sched_yield();
	}
}

static inline volatile void *bench_map(sci_remote_segment_t r, sci_map_t *map)
{
	volatile void *p;

	BENCH_OK(p = SCIMapRemoteSegment(r, map, 0,
					 SCIGetRemoteSegmentSize(r), NULL, 0,
					 &err));
	return p;
}

/* Format a size as "64 B" or "16 KiB". */
static inline const char *bench_size(size_t n, char buf[24])
{
	if (n >= 1 << 20)
		snprintf(buf, 24, "%zu MiB", n >> 20);
	else if (n >= 1 << 10)
		snprintf(buf, 24, "%zu KiB", n >> 10);
	else
		snprintf(buf, 24, "%zu B", n);
	return buf;
}

/* Pause in a polling loop. With only one CPU, yield it. */
static inline void bench_relax(bool pinned)
{
	if (pinned)
		sci_cpu_relax();
	else
		sched_yield();
}

#endif
