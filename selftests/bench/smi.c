// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Compare SMI's barrier with that of its team, and SMI's regions with private
 * memory.
 *
 * usage: sci run -n 2 [--nodes N] smi
 *
 * The ways of a pair run in turn (pairs.h): a barrier; and loads and stores of 256
 * KiB of a region on this node, of a region on another node, and of private memory,
 * while the other process waits. All times are in microseconds.
 */
#include "libsci/smi/internal.h"

#include <sys/mman.h>

#include "selftests/bench/pairs.h"

#define BARRIERS	1000u
#define BYTES		(256u << 10)

#define OK(call)							\
	do {								\
		int ret_ = (call);					\
		if (ret_)						\
			bench_die("%s: code %d", #call, ret_);		\
	} while (0)

static int rank;

static double measure_barriers(bool team)
{
	uint64_t begin;

	OK(sci_team_barrier(smi.team));
	begin = bench_ns();
	for (unsigned int i = 0; i < BARRIERS; i++) {
		if (team)
			OK(sci_team_barrier(smi.team));
		else
			OK(SMI_Barrier());
	}
	return (double)(bench_ns() - begin) / 1e3 / BARRIERS;
}

static void *region(int owner)
{
	smi_region_info_t info;
	void *p;
	int id;

	OK(SMI_Init_reginfo(&info, BYTES, 0, owner, SMI_ADPT_DEFAULT, 0, 0, NULL));
	OK(SMI_Create_shreg(SMI_SHM_UNDIVIDED, &info, &id, &p));
	return p;
}

static double measure_loads(const uint64_t *p)
{
	uint64_t begin = bench_ns(), sum = 0;

	for (unsigned int i = 0; i < BYTES / sizeof(*p); i++)
		sum += *(volatile const uint64_t *)&p[i];
	if (sum == 1)
		puts("");
	return (double)(bench_ns() - begin) / 1e3;
}

static double measure_stores(uint64_t *p)
{
	uint64_t begin = bench_ns();

	for (unsigned int i = 0; i < BYTES / sizeof(*p); i++)
		*(volatile uint64_t *)&p[i] = i;
	return (double)(bench_ns() - begin) / 1e3;
}

/* Return the least of 8 times: another process may have had the CPU. */
static double least(uint64_t *p, bool store)
{
	double best = 1e9;

	for (int i = 0; i < 8; i++) {
		double t = store ? measure_stores(p) : measure_loads(p);

		best = t < best ? t : best;
	}
	return best;
}

static void compare_memory(uint32_t *words, uint64_t *shared, uint64_t *plain, bool store,
			   const char *name)
{
	struct pairs p = { .n = 0 };

	for (unsigned int i = 0; i < PAIRS; i++) {
		double at = pairs_probe(words, !rank);

		if (!rank) {
			double a = least(shared, store);

			pairs_add(&p, at, a, least(plain, store));
		}
	}
	if (!rank)
		pairs_print(&p, name);
}

int main(int argc, char **argv)
{
	struct pairs p = { .n = 0 };
	uint32_t *words;
	uint64_t *own, *other, *plain;
	int size;

	sched_getaffinity(0, sizeof(bench_cpus), &bench_cpus);
	OK(SMI_Init(&argc, &argv));
	OK(SMI_Proc_rank(&rank));
	OK(SMI_Proc_size(&size));
	if (size != 2)
		bench_die("smi: start two processes: sci run -n 2 smi");
	bench_pin(rank);
	words = region(0);
	own = region(0);
	other = region(1);
	plain = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (plain == MAP_FAILED)
		bench_die("smi: no memory");
	measure_barriers(false);
	for (unsigned int i = 0; i < PAIRS; i++) {
		double at = pairs_probe(words, !rank);
		double first = measure_barriers(i % 2), second = measure_barriers(!(i % 2));

		pairs_add(&p, at, i % 2 ? second : first, i % 2 ? first : second);
	}
	if (!rank) {
		pairs_title("", "smi us", "plain us");
		pairs_print(&p, "barrier");
	}
	compare_memory(words, own, plain, false, "loads, own");
	compare_memory(words, own, plain, true, "stores, own");
	compare_memory(words, other, plain, false, "loads, other");
	compare_memory(words, other, plain, true, "stores, other");
	OK(SMI_Finalize());
	return 0;
}
