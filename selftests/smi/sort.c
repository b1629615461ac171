// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Example: a parallel sort by regular sampling.
 *
 *	smirun -np 8 sort [COUNT]
 *
 * The numbers lie in a region that is spread over the nodes.  Each process sorts the
 * part that loop splitting gives to it, and samples it.  The samples divide the range of
 * values among the processes.  Each process then merges its values from all parts into a
 * second region.  The first process compares the result with a serial sort.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smi.h"

static int rank, size;

/* Results of all processes, in one region, by rank. */
struct board {
	int *samples;			/* [process][process] */
	int *starts;			/* [process][bucket]: first index in its part */
	int *low, *high;		/* part of each process */
};

static void check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "process %d: %s: SMI error %d\n", rank, what, err);
	SMI_Abort(1);
}

static void *region(int type, size_t bytes)
{
	smi_region_info_t info;
	void *address;
	int id;

	check(SMI_Init_reginfo(&info, bytes, 0, 0, SMI_ADPT_DEFAULT, 0, 0, NULL), "info");
	check(SMI_Create_shreg(type, &info, &id, &address), "region");
	return address;
}

static int compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

static unsigned int number(unsigned int i)
{
	i = (i ^ 61) ^ (i >> 16);
	i *= 9;
	i ^= i >> 4;
	i *= 0x27d4eb2d;
	return (i ^ (i >> 15)) >> 1;
}

/* Sort the part of this process, and sample it at equal distances. */
static void sort_part(int *data, struct board *b)
{
	int low = b->low[rank], n = b->high[rank] - low + 1;

	for (int i = low; i < low + n; i++)
		data[i] = (int)number((unsigned int)i);
	if (n > 0)
		qsort(data + low, (size_t)n, sizeof(*data), compare);
	for (int i = 0; i < size; i++)
		b->samples[rank * size + i] = n > 0 ?
			data[low + (int)((long)i * n / size)] : 0;
}

/* Find where each bucket begins in the part of this process. All use the same borders. */
static void divide(const int *data, struct board *b)
{
	int *all = malloc(sizeof(int) * (size_t)size * (size_t)size);
	int at = b->low[rank];

	if (!all) {
		SMI_Abort(1);
		return;
	}
	memcpy(all, b->samples, sizeof(int) * (size_t)size * (size_t)size);
	qsort(all, (size_t)size * (size_t)size, sizeof(*all), compare);
	for (int bucket = 0; bucket < size; bucket++) {
		while (bucket && at <= b->high[rank] && data[at] < all[bucket * size])
			at++;
		b->starts[rank * size + bucket] = at;
	}
	free(all);
}

static int bucket_end(const struct board *b, int part, int bucket)
{
	return bucket == size - 1 ? b->high[part] + 1 : b->starts[part * size + bucket + 1];
}

/* Merge this process's bucket of all parts into its place in the result. */
static void merge(const int *data, int *sorted, const struct board *b)
{
	int *next = malloc(sizeof(int) * (size_t)size), to = 0, best;

	if (!next)
		SMI_Abort(1);
	for (int part = 0; part < size; part++) {
		next[part] = b->starts[part * size + rank];
		to += next[part] - b->low[part];
	}
	for (;; to++) {
		best = -1;
		for (int part = 0; part < size; part++)
			if (next[part] < bucket_end(b, part, rank) &&
			    (best < 0 || data[next[part]] < data[next[best]]))
				best = part;
		if (best < 0)
			break;
		sorted[to] = data[next[best]++];
	}
	free(next);
}

static int same_as_serial(const int *sorted, int count)
{
	int *serial = malloc(sizeof(int) * (size_t)count), same;

	if (!serial)
		SMI_Abort(1);
	for (int i = 0; i < count; i++)
		serial[i] = (int)number((unsigned int)i);
	qsort(serial, (size_t)count, sizeof(*serial), compare);
	same = !memcmp(serial, sorted, sizeof(int) * (size_t)count);
	free(serial);
	return same;
}

int main(int argc, char **argv)
{
	int count, loop, low = 0, high, good = 1;
	int *data, *sorted;
	struct board b;
	double start;

	check(SMI_Init(&argc, &argv), "SMI_Init");
	SMI_Proc_rank(&rank);
	SMI_Proc_size(&size);
	count = argc > 1 ? atoi(argv[1]) : 1000000;
	if (count < 1)
		count = 1;
	high = count - 1;
	data = region(SMI_SHM_BLOCKED, sizeof(int) * (size_t)count);
	sorted = region(SMI_SHM_BLOCKED, sizeof(int) * (size_t)count);
	b.samples = region(SMI_SHM_UNDIVIDED, sizeof(int) * (size_t)(2 * size + 2) *
			   (size_t)size);
	b.starts = b.samples + size * size;
	b.low = b.starts + size * size;
	b.high = b.low + size;

	check(SMI_Loop_split_init(&loop), "loop");
	check(SMI_Loop_index_range(loop, &low, &high, SMI_LOOP_SET_GLOBAL), "loop");
	check(SMI_Determine_loop_splitting(loop, SMI_SPLIT_REGULAR, 0, 0), "loop");
	SMI_Loop_index_range(loop, &low, &high, SMI_LOOP_GET_LOCAL);
	b.low[rank] = low;
	b.high[rank] = high;
	check(SMI_Barrier(), "barrier");
	start = SMI_Wtime();
	sort_part(data, &b);
	check(SMI_Barrier(), "barrier");
	divide(data, &b);
	check(SMI_Barrier(), "barrier");
	merge(data, sorted, &b);
	check(SMI_Barrier(), "barrier");
	if (!rank) {
		start = SMI_Wtime() - start;
		good = same_as_serial(sorted, count);
		printf("1..1\n%sok 1 - %d numbers sorted by %d processes\n# %.1f ms\n",
		       good ? "" : "not ", count, size, start * 1e3);
	}
	check(SMI_Finalize(), "SMI_Finalize");
	return !good;
}
