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
 * second region.  The first process compares the result with a serial sort.  A process repeats
 * a step if loads or stores of it have failed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smi.h"

static int rank, size;
static int low, high;			/* the part of this process */

/* Results of all processes, in one region, by rank. */
struct board {
	int *samples;			/* [process][process] */
	int *starts;			/* [process][bucket and end]: first index in its part */
};

static void check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "process %d: %s: SMI error %d\n", rank, what, err);
	SMI_Abort(1);
}

/* Return whether loads or stores since the last call have failed. */
static int failed(void)
{
	int err = SMI_Check_transfer(0);

	if (err != SMI_ERR_TRANSFER)
		check(err, "transfer");
	return err;
}

static void *allocate(size_t n)
{
	void *p = calloc(n, sizeof(int));

	if (!p)
		SMI_Abort(1);
	return p;
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
static void sort_part(int *data, const struct board *b)
{
	int n = high - low + 1;

	for (int i = low; i < low + n; i++)
		data[i] = (int)number((unsigned int)i);
	if (n > 0)
		qsort(data + low, (size_t)n, sizeof(*data), compare);
	for (int i = 0; i < size; i++)
		b->samples[rank * size + i] = n > 0 ?
			data[low + (int)((long)i * n / size)] : 0;
}

/* Find where each bucket begins in the part of this process. All use the same borders. */
static void divide(const int *data, const struct board *b)
{
	int *all = allocate((size_t)size * (size_t)size), at = low;
	int *starts = b->starts + rank * (size + 1);

	memcpy(all, b->samples, sizeof(int) * (size_t)size * (size_t)size);
	qsort(all, (size_t)size * (size_t)size, sizeof(*all), compare);
	for (int bucket = 0; bucket < size; bucket++) {
		while (bucket && at <= high && data[at] < all[bucket * size])
			at++;
		starts[bucket] = at;
	}
	starts[size] = high + 1;
	free(all);
}

/* Merge this process's bucket of all parts into its place in the result. */
static void merge(const int *data, int *sorted, const int *starts)
{
	int *next = allocate((size_t)size), to = 0, best;

	for (int part = 0; part < size; part++) {
		next[part] = starts[part * (size + 1) + rank];
		to += next[part] - starts[part * (size + 1)];
	}
	for (;; to++) {
		best = -1;
		for (int part = 0; part < size; part++)
			if (next[part] < starts[part * (size + 1) + rank + 1] &&
			    (best < 0 || data[next[part]] < data[next[best]]))
				best = part;
		if (best < 0)
			break;
		sorted[to] = data[next[best]++];
	}
	free(next);
}

static void sort(int *data, int *sorted, const struct board *b)
{
	size_t n = (size_t)size * (size_t)(size + 1);
	int *starts = allocate(n);

	do
		sort_part(data, b);
	while (failed());
	check(SMI_Barrier(), "barrier");
	do
		divide(data, b);
	while (failed());
	check(SMI_Barrier(), "barrier");
	/* an index that is not checked must not be used */
	do
		memcpy(starts, b->starts, sizeof(int) * n);
	while (failed());
	do
		merge(data, sorted, starts);
	while (failed());
	check(SMI_Barrier(), "barrier");
	free(starts);
}

static int same_as_serial(const int *sorted, int count)
{
	int *serial = allocate((size_t)count), same;

	for (int i = 0; i < count; i++)
		serial[i] = (int)number((unsigned int)i);
	qsort(serial, (size_t)count, sizeof(*serial), compare);
	do
		same = !memcmp(serial, sorted, sizeof(int) * (size_t)count);
	while (failed());
	free(serial);
	return same;
}

int main(int argc, char **argv)
{
	int count, loop, good = 1;
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
	b.samples = region(SMI_SHM_UNDIVIDED, sizeof(int) * (size_t)(2 * size + 1) *
			   (size_t)size);
	b.starts = b.samples + size * size;

	check(SMI_Loop_split_init(&loop), "loop");
	check(SMI_Loop_index_range(loop, &low, &high, SMI_LOOP_SET_GLOBAL), "loop");
	check(SMI_Determine_loop_splitting(loop, SMI_SPLIT_REGULAR, 0, 0), "loop");
	SMI_Loop_index_range(loop, &low, &high, SMI_LOOP_GET_LOCAL);
	check(SMI_Barrier(), "barrier");
	start = SMI_Wtime();
	sort(data, sorted, &b);
	if (!rank) {
		start = SMI_Wtime() - start;
		good = same_as_serial(sorted, count);
		printf("1..1\n%sok 1 - %d numbers sorted by %d processes\n# %.1f ms\n",
		       good ? "" : "not ", count, size, start * 1e3);
	}
	check(SMI_Finalize(), "SMI_Finalize");
	return !good;
}
