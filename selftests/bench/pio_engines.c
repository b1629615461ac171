// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Compare store engines with memcpy() into cacheable shared memory.
 *
 * usage: pio_engines [ROUNDS [SRC_OFFSET [DST_OFFSET]]]
 *
 * The program is pinned to one CPU. The destination is a MAP_SHARED memfd and the
 * source private memory, both touched beforehand. Consecutive blocks are copied
 * from a window of the source to the same window of the destination. A pair of
 * windows fits the first cache (16 KiB), the second (256 KiB) or none (64 MiB). In
 * the largest window each sample takes the next 4 MiB, or one block if that is
 * more. In each round each candidate takes one short sample, in random order,
 * because a sample inherits dirty lines. A column is the median over all rounds.
 * The ratio is the median of ratios within a round, so that drifts of load and
 * frequency affect both values.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "libsci/pio/pio.h"

#define MAX_ROUNDS	501
#define MAX_CANDIDATES	10
#define BIG		((size_t)64 << 20)
#define CHUNK		((size_t)4 << 20)
#define SAMPLE		((size_t)1 << 20)	/* least number of bytes */

static const size_t windows[] = { 16 << 10, 256 << 10, BIG };

static struct {
	const char *name;
	sci_pio_copy_fn *copy;
	double gbs[MAX_ROUNDS];
} candidates[MAX_CANDIDATES];
static unsigned int nr_candidates;

static char *src, *dst;
static unsigned int rounds = 61;

static void libc_copy(void *d, const void *s, size_t len)
{
	memcpy(d, s, len);
}

static void default_copy(void *d, const void *s, size_t len)
{
	sci_pio_write(d, s, len, SCI_PIO_MAP_CACHED);
}

static void add_candidate(const char *name, sci_pio_copy_fn *copy)
{
	candidates[nr_candidates].name = name;
	candidates[nr_candidates++].copy = copy;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const double *samples)
{
	double sorted[MAX_ROUNDS];

	memcpy(sorted, samples, rounds * sizeof(*samples));
	qsort(sorted, rounds, sizeof(*sorted), compare);
	return sorted[rounds / 2];
}

/* Return GB/s of a candidate over one span of the window, repeated for short spans. */
static double sample(sci_pio_copy_fn *copy, size_t base, size_t span,
		     size_t block)
{
	size_t passes = span < SAMPLE ? SAMPLE / span : 1;
	double start;

	if (span < SAMPLE)	/* an earlier sample has left another window in the cache */
		for (size_t at = 0; at < span; at += block)
			copy(dst + base + at, src + base + at, block);
	start = now();
	for (size_t pass = 0; pass < passes; pass++)
		for (size_t at = 0; at < span; at += block)
			copy(dst + base + at, src + base + at, block);
	return passes * span / (now() - start) / 1e9;
}

static void shuffle(unsigned int *order)
{
	for (unsigned int i = 0; i < nr_candidates; i++) {
		unsigned int j = rand() % (i + 1);

		order[i] = order[j];
		order[j] = i;
	}
}

static void measure(size_t window, size_t block)
{
	size_t span = window < BIG ? window : block > CHUNK ? block : CHUNK;
	unsigned int order[MAX_CANDIDATES];
	size_t base = 0;

	for (unsigned int r = 0; r < rounds; r++) {
		shuffle(order);
		for (unsigned int i = 0; i < nr_candidates; i++) {
			unsigned int c = order[i];

			base = (base + span) % window;
			candidates[c].gbs[r] = sample(candidates[c].copy, base,
						      span, block);
		}
	}
}

static void report(size_t window, size_t block)
{
	double ratio[MAX_ROUNDS];
	unsigned int last = nr_candidates - 1;

	for (unsigned int r = 0; r < rounds; r++)
		ratio[r] = candidates[last].gbs[r] / candidates[0].gbs[r];
	printf("%9zu %7zuK", block, window >> 10);
	for (unsigned int c = 0; c < nr_candidates; c++)
		printf(" %8.2f", median(candidates[c].gbs));
	printf(" %7.3f\n", median(ratio));
	fflush(stdout);
}

static void pin(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static int map_windows(size_t src_offset, size_t dst_offset)
{
	int fd = memfd_create("pio_engines", MFD_CLOEXEC);
	size_t size = BIG + 4096;

	if (fd < 0 || ftruncate(fd, size))
		return -1;
	dst = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	src = mmap(NULL, size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	close(fd);
	if (dst == MAP_FAILED || src == MAP_FAILED)
		return -1;
	memset(src, 1, size);
	memset(dst, 2, size);
	src += src_offset;
	dst += dst_offset;
	return 0;
}

int main(int argc, char **argv)
{
	const struct sci_pio_engine *engine;
	size_t offsets[2] = { 0, 0 };

	if (argc > 1)
		rounds = atoi(argv[1]);
	for (int i = 2; i < argc && i < 4; i++)
		offsets[i - 2] = strtoul(argv[i], NULL, 0) % 4096;
	if (rounds < 1 || rounds > MAX_ROUNDS)
		return 2;
	pin();
	if (map_windows(offsets[0], offsets[1])) {
		perror("pio_engines");
		return 1;
	}

	sci_pio_init(NULL);
	add_candidate("memcpy", libc_copy);
	for (unsigned int i = 0; (engine = sci_pio_engine(i)); i++)
		if (engine->supported())
			add_candidate(engine->name, engine->copy);
	add_candidate("default", default_copy);

	printf("# GB/s into cacheable memory, median of %u rounds; "
	       "source +%zu, destination +%zu; engine %s, "
	       "non-temporal from %zu on\n",
	       rounds, offsets[0], offsets[1], sci_pio_name(),
	       sci_pio_stream_min());
	printf("%9s %8s", "block", "window");
	for (unsigned int c = 0; c < nr_candidates; c++)
		printf(" %8s", candidates[c].name);
	printf(" %7s\n", "ratio");
	for (size_t block = 64; block <= BIG; block *= 2) {
		for (int w = 0; w < 3; w++) {
			if (block > windows[w])
				continue;
			measure(windows[w], block);
			report(windows[w], block);
		}
	}
	return 0;
}
