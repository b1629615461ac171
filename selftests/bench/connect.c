// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Time connect, map, unmap and disconnect of a segment of another process.
 *
 * usage: connect [ROUNDS]
 *
 * "touch" is the first store to each page of a new map.  A map of 64 MiB has 16384 page
 * faults unless the library prepares the pages.
 */
#define _GNU_SOURCE

#include "bench.h"

#define MAX_ROUNDS	10000u
#define PAGE		4096u

static const size_t sizes[] = { 4 << 10, 1 << 20, 64 << 20 };
static const char *const steps[] = { "connect", "map", "touch", "unmap",
				     "disconnect" };

#define N_SIZES	(sizeof(sizes) / sizeof(sizes[0]))
#define N_STEPS	(sizeof(steps) / sizeof(steps[0]))

static double us[N_STEPS][MAX_ROUNDS];

static void export_all(void *arg)
{
	sci_desc_t sd;
	unsigned int i;

	(void)arg;
	bench_pin(1);
	sd = bench_open(BENCH_PEER);
	for (i = 0; i < N_SIZES; i++)
		bench_export(sd, i + 1, sizes[i]);
	for (;;)
		pause();
}

static void one_round(sci_desc_t sd, unsigned int id, size_t size,
		      unsigned int round)
{
	uint64_t t[N_STEPS + 1];
	sci_remote_segment_t r;
	volatile char *p;
	sci_map_t map;
	size_t off;
	unsigned int i;

	t[0] = bench_ns();
	BENCH_OK(SCIConnectSegment(sd, &r, BENCH_PEER, id, 0, NULL, NULL, 0, 0,
				   &err));
	t[1] = bench_ns();
	BENCH_OK(p = SCIMapRemoteSegment(r, &map, 0, size, NULL, 0, &err));
	t[2] = bench_ns();
	for (off = 0; off < size; off += PAGE)
		p[off] = 1;
	t[3] = bench_ns();
	BENCH_OK(SCIUnmapSegment(map, 0, &err));
	t[4] = bench_ns();
	BENCH_OK(SCIDisconnectSegment(r, 0, &err));
	t[5] = bench_ns();
	for (i = 0; i < N_STEPS; i++)
		us[i][round] = (double)(t[i + 1] - t[i]) / 1e3;
}

static void print(size_t size, unsigned int rounds)
{
	char text[24];
	unsigned int i;

	for (i = 0; i < N_STEPS; i++) {
		bench_sort(us[i], rounds);
		printf("%8s  %-10s %10.1f %10.1f %10.1f\n",
		       i ? "" : bench_size(size, text), steps[i], us[i][0],
		       bench_quantile(us[i], rounds, 0.5),
		       bench_quantile(us[i], rounds, 0.99));
	}
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 200;
	sci_remote_segment_t r;
	sci_desc_t sd;
	unsigned int i, n;
	pid_t peer;

	if (!rounds || rounds > MAX_ROUNDS)
		bench_die("usage: connect [ROUNDS]");
	bench_begin();
	peer = bench_spawn(export_all, NULL);
	bench_pin(0);
	sd = bench_open(BENCH_NODE);
	r = bench_connect(sd, BENCH_PEER, N_SIZES);	/* the last one: all exist */
	BENCH_OK(SCIDisconnectSegment(r, 0, &err));

	printf("connection to a segment of another process, us, %lu rounds\n",
	       rounds);
	printf("%8s  %-10s %10s %10s %10s\n", "segment", "", "min", "median",
	       "p99");
	for (i = 0; i < N_SIZES; i++) {
		for (n = 0; n < rounds; n++)
			one_round(sd, i + 1, sizes[i], n);
		print(sizes[i], (unsigned int)rounds);
	}
	bench_stop(peer);
	SCITerminate();
	return 0;
}
