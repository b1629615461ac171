// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Cached pages of a process that is out of memory, or has as many mappings as the kernel allows: no
 * change is lost, and calls succeed when there is memory again. And a memory that cannot be opened.
 */

#include "selftests/scivm/scivm.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define WINDOWS	16u

static const struct sci_vm_attr cached = {
	.size = sizeof(cached), .mode = SCI_VM_CACHE, .windows = WINDOWS,
};

/* ---- the kernel and the allocator ---- */

static _Atomic int refused = -1;	/* mprotect() fails with this protection; -1: none */

/* Replace the function of libc. */
int mprotect(void *addr, size_t len, int prot)
{
	if (prot == atomic_load(&refused)) {
		errno = ENOMEM;
		return -1;
	}
	return (int)syscall(SYS_mprotect, addr, len, prot);
}

static _Thread_local bool no_memory;	/* malloc() fails in this thread */

#if !TEST_ASAN && !TEST_TSAN
void *__libc_malloc(size_t len);

void *malloc(size_t len)
{
	if (!no_memory)
		return __libc_malloc(len);
	errno = ENOMEM;
	return NULL;
}
#endif

/* ---- tests ---- */

/*
 * Members 0 and 1 have changed different words of a page of member 0, and member 0 has released.
 * Member 1 took its copy before member 0 wrote.
 */
static volatile uint32_t *both_change(struct member *m)
{
	struct sci_vm_range r = kind(SCI_VM_HOME, 0);
	volatile uint32_t *p;

	member_open(m, &cached);
	p = alloc_for_all(m, 64 * PAGE, &r);
	if (m->rank)
		p[1] = 11;
	meet(m);
	if (!m->rank) {
		p[0] = 10;
		CHECK_EQ(sci_vm_release(m->vm, NULL), 0);
	}
	meet(m);
	return p;
}

static void changes_check(const struct member *m, const volatile uint32_t *p)
{
	if (m->rank) {
		CHECK_EQ(sci_vm_release(m->vm, NULL), 0);
		CHECK_EQ(sci_vm_acquire(m->vm, NULL), 0);
	}
	meet(m);
	CHECK_EQ(p[0], 10);
	CHECK_EQ(p[1], 11);
}

static void acquire_without(void *arg)
{
	struct member m;
	volatile uint32_t *p = both_change(&m);

	if (m.rank) {
		atomic_store(&refused, *(int *)arg);
		CHECK_EQ(sci_vm_acquire(m.vm, NULL), -ENOMEM);
		CHECK_EQ(stats_of(&m).invalidations, 0);
		atomic_store(&refused, -1);
		CHECK_EQ(p[1], 11);
		CHECK_EQ(sci_vm_acquire(m.vm, NULL), 0);
		CHECK_EQ(p[0], 10);
	}
	changes_check(&m, p);
	member_close(&m);
}

TEST(an_acquire_that_cannot_collect_changes_keeps_them)
{
	ranks_run_arg(2, 2, acquire_without, &(int){ PROT_READ }, false);
}

TEST(an_acquire_that_cannot_drop_a_copy_is_repeated)
{
	ranks_run_arg(2, 2, acquire_without, &(int){ PROT_NONE }, false);
}

static void send_without_memory(void *arg)
{
	bool acquire = *(bool *)arg;
	struct member m;
	volatile uint32_t *p = both_change(&m);

	if (m.rank) {
		no_memory = true;
		CHECK_EQ(acquire ? sci_vm_acquire_range(m.vm, (void *)(uintptr_t)p, PAGE) :
			 sci_vm_release(m.vm, NULL), -ENOMEM);
		no_memory = false;
		CHECK_EQ(p[1], 11);
		p[2] = 12;
	}
	changes_check(&m, p);
	if (!m.rank)
		CHECK_EQ(p[2], 12);
	member_close(&m);
}

TEST(a_release_without_memory_keeps_changes)
{
	if (TEST_ASAN || TEST_TSAN)
		SKIP("the sanitizer replaces malloc()");
	ranks_run_arg(2, 2, send_without_memory, &(bool){ false }, false);
}

TEST(an_acquire_without_memory_keeps_changes)
{
	if (TEST_ASAN || TEST_TSAN)
		SKIP("the sanitizer replaces malloc()");
	ranks_run_arg(2, 2, send_without_memory, &(bool){ true }, false);
}

/* Touch page @i. Return: as sci_vm_touch() does. */
static int touch(const struct member *m, const volatile uint32_t *p, uint32_t i,
		 enum sci_vm_access access)
{
	return sci_vm_touch(m->vm, (void *)(uintptr_t)&p[i * PAGE / 4], 1, access);
}

static void touch_without(void)
{
	struct member m;
	volatile uint32_t *p = both_change(&m);

	if (m.rank) {
		for (uint32_t i = 1; i < WINDOWS; i++)
			CHECK_EQ(touch(&m, p, i, SCI_VM_READ), 0);
		/* no copy can be shut */
		atomic_store(&refused, PROT_NONE);
		CHECK_EQ(touch(&m, p, WINDOWS, SCI_VM_READ), -ENOMEM);
		/* no copy can become readable, so the window of a dropped copy is free again */
		atomic_store(&refused, PROT_READ);
		for (uint32_t i = 0; i < 3; i++)
			CHECK_EQ(touch(&m, p, WINDOWS, SCI_VM_READ), -ENOMEM);
		CHECK_EQ(stats_of(&m).windows, WINDOWS - 1);
		CHECK_EQ(stats_of(&m).drops, 1);
		/* no copy can become writable */
		atomic_store(&refused, -1);
		CHECK_EQ(touch(&m, p, 20, SCI_VM_READ), 0);
		atomic_store(&refused, PROT_READ | PROT_WRITE);
		for (uint32_t i = 0; i < 3; i++)
			CHECK_EQ(touch(&m, p, 20, SCI_VM_WRITE), -ENOMEM);
		CHECK_EQ(stats_of(&m).twins, 1);
		atomic_store(&refused, -1);
		for (uint32_t i = 0; i < 40; i++)
			CHECK_EQ(touch(&m, p, i, SCI_VM_READ), 0);
	}
	changes_check(&m, p);
	member_close(&m);
}

TEST(a_touch_at_the_limit_of_mappings)
{
	ranks_run(2, 2, touch_without);
}

#define FILES	100u

/* Open a memory with no descriptor left, then with one, and so on until it opens. */
static void open_without_descriptors(void)
{
	rlim_t limit = count_fds() + FILES;
	unsigned int n, left = 0;
	struct sci_team *team;
	int taken[2 * FILES];
	struct sci_vm *vm;
	int ret;

	CHECK_EQ(sci_team_open(&team, NULL), 0);
	/* the library raises the soft limit */
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ limit, limit }), 0);
	do {
		for (n = 0; (taken[n] = fcntl(0, F_DUPFD_CLOEXEC, 0)) >= 0; n++)
			CHECK(n < ARRAY_LEN(taken) - 1);
		CHECK(left < n);
		for (unsigned int i = 0; i < left; i++)
			close(taken[--n]);
		ret = sci_vm_open(&vm, team, &cached);
		while (n)
			close(taken[--n]);
		CHECK(!ret == !!vm);
		left++;
	} while (ret);
	CHECK(left > 1);
	CHECK_EQ(sci_vm_close(vm), 0);
	CHECK_EQ(sci_team_close(team), 0);
}

TEST(an_open_without_descriptors)
{
	ranks_run(1, 1, open_without_descriptors);
}
