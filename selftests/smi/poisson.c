// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Example: Poisson's equation on a square, by Jacobi's method.
 *
 *	smirun -np 8 poisson [GRID [STEPS]]
 *
 * Two grids lie in regions that are spread over the nodes by rows.  The loop scheduler
 * gives rows to the processes.  A process that is done early takes rows of others, and
 * the distribution adapts from step to step.  All processes add to the residual under
 * replication.  The first process compares the result with a serial solution, bit by bit.
 * A process computes rows again if loads or stores have failed.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smi.h"

static int rank, size, grid;
static const double pi = 3.14159265358979323846;

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

static void *region(int type, size_t bytes, int *id)
{
	smi_region_info_t info;
	void *address;

	check(SMI_Init_reginfo(&info, bytes, 0, 0, SMI_ADPT_DEFAULT, 0, 0, NULL), "info");
	check(SMI_Create_shreg(type, &info, id, &address), "region");
	return address;
}

/* The right side of the equation, whose solution is sin(pi x) sin(pi y). */
static double source(int row, int column)
{
	double h = 1.0 / (grid - 1);

	return 2 * pi * pi * sin(pi * row * h) * sin(pi * column * h) * h * h;
}

/* Compute one row of a step.  Return: the largest change of a value. */
static double relax(const double *from, double *to, int row)
{
	const double *at = from + (size_t)row * (size_t)grid;
	double *out = to + (size_t)row * (size_t)grid, change = 0, d;

	for (int i = 1; i < grid - 1; i++) {
		out[i] = 0.25 * (at[i - grid] + at[i + grid] + at[i - 1] + at[i + 1] +
				 source(row, i));
		d = fabs(out[i] - at[i]);
		change = d > change ? d : change;
	}
	return change;
}

/* Compute rows.  Return: the largest change. */
static double relax_rows(const double *from, double *to, int low, int high)
{
	double change, d;

	do {
		change = 0;
		for (int row = low; row <= high; row++) {
			d = relax(from, to, row);
			change = d > change ? d : change;
		}
	} while (failed());
	return change;
}

/* Compute the rows that the scheduler gives to this process.  Return: the largest change. */
static double sweep(int loop, const double *from, double *to)
{
	double change = 0, d;
	int status, low, high;

	do {
		check(SMI_Get_iterations(loop, &status, &low, &high), "iterations");
		d = relax_rows(from, to, low, high);
		change = d > change ? d : change;
	} while (status != SMI_LOOP_READY);
	return change;
}

static int same_as_serial(const double *result, int steps)
{
	size_t bytes = sizeof(double) * (size_t)grid * (size_t)grid;
	double *a = calloc(1, bytes), *b = calloc(1, bytes), *t;
	int same;

	if (!a || !b)
		SMI_Abort(1);
	for (int i = 0; i < steps; i++) {
		for (int row = 1; row < grid - 1; row++)
			relax(a, b, row);
		t = a;
		a = b;
		b = t;
	}
	do
		same = !memcmp(a, result, bytes);
	while (failed());
	free(a);
	free(b);
	return same;
}

int main(int argc, char **argv)
{
	double *u[2], *changes, start;
	int id, sum, loop, steps, good = 1;
	size_t bytes;

	check(SMI_Init(&argc, &argv), "SMI_Init");
	SMI_Proc_rank(&rank);
	SMI_Proc_size(&size);
	grid = argc > 1 && atoi(argv[1]) > 2 ? atoi(argv[1]) : 200;
	steps = argc > 2 && atoi(argv[2]) > 0 ? atoi(argv[2]) : 50;
	bytes = sizeof(double) * (size_t)grid * (size_t)grid;
	for (int i = 0; i < 2; i++) {
		u[i] = region(SMI_SHM_BLOCKED, bytes, &id);
		do
			memset(u[i], 0, rank ? 0 : bytes);
		while (failed());
	}
	changes = region(SMI_SHM_UNDIVIDED, sizeof(double), &sum);
	check(SMI_Loop_init(&loop, 1, grid - 2, SMI_PART_ADAPTED_BLOCKED), "loop");
	check(SMI_Barrier(), "barrier");
	start = SMI_Wtime();
	for (int i = 0; i < steps; i++) {
		double change = sweep(loop, u[i & 1], u[!(i & 1)]);

		check(SMI_Switch_to_replication(sum, SMI_REP_NOTHING, 0, 0, 0), "replicate");
		*changes = change;
		check(SMI_Switch_to_sharing(sum, SMI_SHR_ADD | SMI_DTYPE_FLOATINGPOINT |
					    SMI_DTYPE_HIGHPRECISION, 1, 0), "share");
	}
	check(SMI_Barrier(), "barrier");
	if (!rank) {
		start = SMI_Wtime() - start;
		good = same_as_serial(u[steps & 1], steps);
		printf("1..1\n%sok 1 - %d steps on %d x %d points by %d processes\n"
		       "# last change at most %g; %.2f ms a step\n", good ? "" : "not ",
		       steps, grid, grid, size, *changes, start * 1e3 / steps);
	}
	check(SMI_Barrier(), "barrier");
	check(SMI_Finalize(), "SMI_Finalize");
	return !good;
}
