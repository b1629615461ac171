/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* First steps of tests of the SCI Virtual Memory. */
#ifndef SELFTESTS_SCIVM_H
#define SELFTESTS_SCIVM_H

#include <sci/vm.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "selftests/ranks.h"

#define PAGE	4096u

/* A range of small pages. */
static inline struct sci_vm_range kind(uint32_t policy, uint32_t flags)
{
	return (struct sci_vm_range){
		.size = sizeof(struct sci_vm_range), .policy = policy, .flags = flags,
		.page = PAGE,
	};
}

/* Skip the test if it needs mapped ranges, and the members cannot map each other's memory. */
static inline void needs_mode(uint32_t mode)
{
	if (mode != SCI_VM_MAP)
		return;
	test_needs_shm();
	if (getenv("SCI_TEST_NET"))
		SKIP("sockets connect the members");
}

/* A member of a team, and its memory. */
struct member {
	struct sci_team *team;
	struct sci_vm *vm;
	int rank;
	int size;
};

static inline void member_open(struct member *m, const struct sci_vm_attr *attr)
{
	CHECK_EQ(sci_team_open(&m->team, NULL), 0);
	CHECK_EQ(sci_vm_open(&m->vm, m->team, attr), 0);
	m->rank = sci_team_rank(m->team);
	m->size = sci_team_size(m->team);
}

static inline void member_close(struct member *m)
{
	CHECK_EQ(sci_vm_close(m->vm), 0);
	CHECK_EQ(sci_team_close(m->team), 0);
}

static inline void meet(const struct member *m)
{
	CHECK_EQ(sci_team_barrier(m->team), 0);
}

/* Send rank 0's pointer to all ranks, and return it. */
static inline void *agree_on(const struct member *m, void *p)
{
	CHECK_EQ(sci_team_bcast(m->team, 0, &p, sizeof(p)), 0);
	return p;
}

/* Rank 0 allocates a range for all ranks. */
static inline void *alloc_for_all(const struct member *m, size_t len,
				  const struct sci_vm_range *range)
{
	void *p = NULL;

	if (!m->rank)
		CHECK_EQ(sci_vm_alloc(m->vm, len, range, &p), 0);
	return agree_on(m, p);
}

static inline struct sci_vm_stats stats_of(const struct member *m)
{
	struct sci_vm_stats s = { .size = sizeof(s) };

	CHECK_EQ(sci_vm_stats(m->vm, &s), 0);
	return s;
}

/* Barrier: after it, each member sees all stores that came before it. */
static inline void sync_all(const struct member *m)
{
	struct sci_vm_time mine, all[RANKS_MAX];

	CHECK_EQ(sci_vm_release(m->vm, &mine), 0);
	CHECK_EQ(sci_team_allgather(m->team, &mine, sizeof(mine), all), 0);
	for (int i = 0; i < m->size; i++)
		sci_vm_time_merge(&mine, &all[i]);
	CHECK_EQ(sci_vm_acquire(m->vm, &mine), 0);
}

/* Redirect standard error to a file until errors_end(). Return the descriptor of the file. */
static inline int errors_begin(int *saved)
{
	int fd = memfd_create("errors", 0);

	*saved = dup(2);
	CHECK(fd >= 0 && *saved >= 0);
	CHECK_EQ(dup2(fd, 2), 2);
	return fd;
}

static inline void errors_end(int saved)
{
	CHECK_EQ(dup2(saved, 2), 2);
	close(saved);
}

/* Read @fd from its start. The text is valid until the next call. */
static inline const char *text_of(int fd)
{
	static char buf[20000];
	ssize_t n = pread(fd, buf, sizeof(buf) - 1, 0);

	CHECK(n >= 0);
	buf[n] = '\0';
	return buf;
}

#endif
