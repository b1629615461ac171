// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Measure the cost of a page of SCI Virtual Memory, for each kind of fault.
 *
 * usage: sci run -n 2 --nodes 2 scivm
 *
 * Rank 0 touches pages of 4096 bytes, and rank 1 waits.  The first row is a page of private
 * memory, which the kernel alone provides.  The columns are the median of ROUNDS rounds, in
 * microseconds per page, and the messages that both ranks send for a page.
 */
#include <sci/team.h>
#include <sci/vm.h>

#include <sys/mman.h>

#include "selftests/bench/bench.h"

#define PAGE	4096u
#define PAGES	128u
#define ROUNDS	15u

#define OK(call)							\
	do {								\
		int ret_ = (call);					\
		if (ret_)						\
			bench_die("%s: code %d", #call, ret_);		\
	} while (0)

static struct sci_team *team;
static struct sci_vm *vm;
static int rank;
static volatile uint8_t *pages;

static uint64_t messages(void)
{
	struct sci_vm_stats s = { .size = sizeof(s) };
	uint64_t mine, all[2];

	OK(sci_vm_stats(vm, &s));
	mine = s.messages;
	OK(sci_team_allgather(team, &mine, sizeof(mine), all));
	return all[0] + all[1];
}

/* ---- measured calls ---- */

static void read_all(void)
{
	for (unsigned int i = 0; i < PAGES; i++)
		(void)pages[i * PAGE];
}

static void write_words(void)
{
	for (unsigned int i = 0; i < PAGES; i++)
		*(volatile uint64_t *)(pages + i * PAGE) += 1;
}

static void write_pages(void)
{
	for (unsigned int i = 0; i < PAGES * PAGE / 8; i++)
		((volatile uint64_t *)pages)[i] += 1;
}

static void release(void)
{
	OK(sci_vm_release(vm, NULL));
}

static void acquire(void)
{
	OK(sci_vm_acquire(vm, NULL));
}

static void nothing(void)
{
}

/* Change all pages in the other rank, so that rank 0 has something to acquire. */
static void change_and_release(void)
{
	write_words();
	release();
}

static const struct row {
	const char *name;
	uint32_t mode;			/* 0: private memory */
	int home;
	void (*before)(void);		/* called by rank 0 */
	void (*other)(void);		/* then called by rank 1 */
	void (*fn)(void);		/* measured, on rank 0 */
} rows[] = {
	{ "private memory, store", 0, 0, nothing, nothing, write_words },
	{ "mapped, own page", SCI_VM_MAP, 0, nothing, nothing, write_words },
	{ "mapped, page of another node, new", SCI_VM_MAP, 1, nothing, nothing, write_words },
	{ "mapped, page of another node, in use", SCI_VM_MAP, 1, nothing, write_words,
	  write_words },
	{ "cached, own page, load", SCI_VM_CACHE, 0, nothing, nothing, read_all },
	{ "cached, own page, store after load", SCI_VM_CACHE, 0, read_all, nothing, write_words },
	{ "cached, fetch: load", SCI_VM_CACHE, 1, nothing, nothing, read_all },
	{ "cached, twin: store after load", SCI_VM_CACHE, 1, read_all, nothing, write_words },
	{ "cached, release, 1 byte changed", SCI_VM_CACHE, 1, write_words, nothing, release },
	{ "cached, release, all words changed", SCI_VM_CACHE, 1, write_pages, nothing, release },
	{ "cached, acquire, page invalidated", SCI_VM_CACHE, 1, read_all, change_and_release,
	  acquire },
};

static void pages_alloc(const struct row *r)
{
	struct sci_vm_range a = {
		.size = sizeof(a), .policy = SCI_VM_HOME, .home = r->home, .mode = r->mode,
		.page = PAGE,
	};
	void *p = NULL;

	if (!r->mode) {
		p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			bench_die("scivm: no memory");
		madvise(p, PAGES * PAGE, MADV_NOHUGEPAGE);
	} else {
		if (!rank)
			OK(sci_vm_alloc(vm, PAGES * PAGE, &a, &p));
		OK(sci_team_bcast(team, 0, &p, sizeof(p)));
	}
	pages = p;
}

static void pages_free(const struct row *r)
{
	void *p = (void *)(uintptr_t)pages;

	OK(sci_team_barrier(team));
	if (!r->mode)
		munmap(p, PAGES * PAGE);
	else if (!rank)
		OK(sci_vm_free(vm, p));
	OK(sci_team_barrier(team));
}

static void row_run(const struct row *r)
{
	double us[ROUNDS];
	uint64_t sent = 0;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		uint64_t begin, count;

		pages_alloc(r);
		if (!rank)
			r->before();
		OK(sci_team_barrier(team));
		if (rank)
			r->other();
		count = messages();
		begin = bench_ns();
		if (!rank)
			r->fn();
		us[i] = (double)(bench_ns() - begin) / 1e3 / PAGES;
		OK(sci_team_barrier(team));
		sent = messages() - count;
		pages_free(r);
	}
	if (!rank)
		printf("%-40s %8.2f %9.2f\n", r->name, bench_median(us, ROUNDS),
		       (double)sent / PAGES);
}

int main(void)
{
	struct sci_vm_attr attr = { .size = sizeof(attr) };

	OK(sci_team_open(&team, NULL));
	rank = sci_team_rank(team);
	if (sci_team_size(team) != 2)
		bench_die("scivm: start two processes: sci run -n 2 --nodes 2 scivm");
	sched_getaffinity(0, sizeof(bench_cpus), &bench_cpus);
	OK(sci_vm_open(&vm, team, &attr));
	if (!rank)
		printf("%-40s %8s %9s\n", "page of 4096 bytes", "us/page", "messages");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		row_run(&rows[i]);
	OK(sci_vm_close(vm));
	OK(sci_team_close(team));
	return 0;
}
