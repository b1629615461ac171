// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Measure whether a segment costs more when there are many: one process creates,
 * prepares and exports 4,000 segments of 4 KiB, connects to them and maps them.
 *
 * usage: many_segments [COUNT]
 *
 * For each step: the median cost of a call among the first 100 and the last 100
 * segments, and the ratio of both.
 */
#define _GNU_SOURCE

#include <dirent.h>
#include <sys/resource.h>

#include "bench.h"

#define MAX_COUNT	100000u
#define EDGE		100u		/* segments compared at each end */
#define SIZE		4096u

static const char *const steps[] = { "create", "prepare", "export", "connect",
				     "map", "unmap", "disconnect", "remove" };
enum { CREATE, PREPARE, EXPORT, CONNECT, MAP, UNMAP, DISCONNECT, REMOVE,
       N_STEPS };

static double *us[N_STEPS];
static sci_local_segment_t *local;
static sci_remote_segment_t *remote;
static sci_map_t *map;

#define TIMED(step, i, call)						\
	do {								\
		uint64_t begin_ = bench_ns();				\
		BENCH_OK(call);						\
		us[step][i] = (double)(bench_ns() - begin_) / 1e3;	\
	} while (0)

static void make(sci_desc_t sd, unsigned int i)
{
	TIMED(CREATE, i, SCICreateSegment(sd, &local[i], i, SIZE, NULL, NULL,
					  0, &err));
	TIMED(PREPARE, i, SCIPrepareSegment(local[i], 0, 0, &err));
	TIMED(EXPORT, i, SCISetSegmentAvailable(local[i], 0, 0, &err));
}

static void take(sci_desc_t sd, unsigned int i)
{
	volatile unsigned int *p;

	TIMED(CONNECT, i, SCIConnectSegment(sd, &remote[i], BENCH_NODE, i, 0,
					    NULL, NULL, 0, 0, &err));
	TIMED(MAP, i, p = SCIMapRemoteSegment(remote[i], &map[i], 0, SIZE,
					      NULL, 0, &err));
	*p = i;
}

static void give_back(unsigned int i)
{
	TIMED(UNMAP, i, SCIUnmapSegment(map[i], 0, &err));
	TIMED(DISCONNECT, i, SCIDisconnectSegment(remote[i], 0, &err));
	TIMED(REMOVE, i, SCIRemoveSegment(local[i], SCI_FLAG_FORCE_REMOVE,
					  &err));
}

static unsigned int open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static void print_limits(const char *when)
{
	struct rlimit r;

	getrlimit(RLIMIT_NOFILE, &r);
	printf("%s: %u descriptors open, limit %llu (hard %llu)\n", when,
	       open_files(), (unsigned long long)r.rlim_cur,
	       (unsigned long long)r.rlim_max);
}

static void print(unsigned int count)
{
	unsigned int s, edge = count / 2 < EDGE ? count / 2 : EDGE;
	double all, first, last, worst = 0;
	unsigned int i, worst_step = 0;

	printf("%-12s %12s %12s %12s %8s\n", "step", "first 100 us",
	       "last 100 us", "all, ms", "ratio");
	for (s = 0; s < N_STEPS; s++) {
		for (all = 0, i = 0; i < count; i++)
			all += us[s][i];
		first = bench_median(us[s], edge);
		last = bench_median(us[s] + count - edge, edge);
		if (last / first > worst) {
			worst = last / first;
			worst_step = s;
		}
		printf("%-12s %12.2f %12.2f %12.1f %8.2f\n", steps[s], first,
		       last, all / 1e3, last / first);
	}
	printf("claim: a segment costs the same when there are %u: measured worst ratio %.2f, of %s\n",
	       count, worst, steps[worst_step]);
}

int main(int argc, char **argv)
{
	unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 0) : 4000;
	sci_desc_t sd;
	unsigned int i;

	if (count < 2 || count > MAX_COUNT)
		bench_die("usage: many_segments [COUNT]");
	bench_begin();
	for (i = 0; i < N_STEPS; i++)
		us[i] = calloc(count, sizeof(**us));
	local = calloc(count, sizeof(sci_local_segment_t));
	remote = calloc(count, sizeof(sci_remote_segment_t));
	map = calloc(count, sizeof(sci_map_t));
	if (!us[N_STEPS - 1] || !local || !remote || !map)
		bench_die("out of memory");

	bench_pin(0);
	sd = bench_open(BENCH_NODE);
	printf("%lu segments of %u bytes in one process\n", count, SIZE);
	print_limits("before");
	for (i = 0; i < count; i++)
		make(sd, i);
	for (i = 0; i < count; i++)
		take(sd, i);
	print_limits("with all");
	for (i = 0; i < count; i++)
		give_back(i);
	print((unsigned int)count);
	SCITerminate();
	return 0;
}
