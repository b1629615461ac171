// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* A member dies: the other members get its node and an error, and no call hangs. */

#include "selftests/scivm/scivm.h"

#include <fcntl.h>
#include <signal.h>

#define VICTIM	2

static uint32_t mode;

static void died(void *arg, int rank)
{
	__atomic_fetch_add((uint32_t *)arg, 1u << rank, __ATOMIC_SEQ_CST);
}

static void survive(void *arg)
{
	uint32_t dead = 0;
	struct sci_vm_attr attr = {
		.size = sizeof(attr), .mode = mode, .death = died, .arg = &dead,
	};
	struct sci_vm_range r = kind(SCI_VM_ROUND_ROBIN, 0);
	struct sci_team *living;
	volatile uint32_t *p;
	struct sci_vm_stats s;
	int fd, saved, ret;
	struct member m;
	void *q;

	(void)arg;
	member_open(&m, &attr);
	p = alloc_for_all(&m, 12 * PAGE, &r);
	if (m.rank == VICTIM)
		p[VICTIM * PAGE / 4] = 7;
	sync_all(&m);
	CHECK_EQ(p[VICTIM * PAGE / 4], 7);
	p[VICTIM * PAGE / 4 + 1 + (uint32_t)m.rank] = 8;
	fd = errors_begin(&saved);
	meet(&m);
	if (m.rank == VICTIM)
		raise(SIGKILL);
	WAIT_UNTIL(__atomic_load_n(&dead, __ATOMIC_SEQ_CST), TEST_WAIT_MS);
	errors_end(saved);
	CHECK(strstr(text_of(fd), "node 12 (rank 2 of 4) has died"));
	close(fd);
	CHECK_EQ(dead, 1u << VICTIM);
	/* a page that is present stays; an absent page of the same home is lost */
	CHECK_EQ(p[VICTIM * PAGE / 4], 7);
	CHECK_EQ(p[(VICTIM + 4) * PAGE / 4], 0);
	p[(VICTIM + 4) * PAGE / 4] = 3;
	CHECK_EQ(p[(VICTIM + 4) * PAGE / 4], 3);
	s = stats_of(&m);
	CHECK_EQ(s.lost, 1);
	CHECK_EQ(sci_vm_touch(m.vm, (void *)(uintptr_t)p, 12 * PAGE, SCI_VM_READ),
		 -ECONNRESET);
	/* pages of living homes still work */
	p[5 * PAGE / 4 + (uint32_t)m.rank] = 9;
	ret = sci_vm_release(m.vm, NULL);
	CHECK_EQ(ret, mode == SCI_VM_CACHE ? -ECONNRESET : 0);
	CHECK_EQ(sci_vm_release(m.vm, NULL), 0);
	CHECK_EQ(sci_vm_acquire(m.vm, NULL), mode == SCI_VM_CACHE ? -ECONNRESET : 0);
	CHECK_EQ(sci_vm_alloc(m.vm, PAGE, &r, &q), -ECONNRESET);
	CHECK_EQ(sci_team_shrink(m.team, &living), 0);
	CHECK_EQ(sci_team_barrier(living), 0);
	if (!m.rank)
		CHECK_EQ(sci_vm_free(m.vm, (void *)(uintptr_t)p), 0);
	CHECK_EQ(sci_vm_close(m.vm), -ECONNRESET);
	CHECK_EQ(sci_team_close(m.team), 0);
}

static void run(uint32_t with, unsigned int nodes)
{
	needs_mode(with);
	mode = with;
	ranks_run_arg(4, nodes, survive, NULL, true);
}

TEST(a_home_of_mapped_pages_dies) { run(SCI_VM_MAP, 4); }
TEST(a_home_of_cached_pages_dies) { run(SCI_VM_CACHE, 4); }

/* The directory of a page dies before the page has a home: the page is lost. */
static void directory_dies(void *arg)
{
	struct sci_vm_attr attr = { .size = sizeof(attr), .mode = mode };
	struct sci_vm_range r = kind(SCI_VM_FIRST_TOUCH, 0);
	struct member m;
	uint32_t *p;
	int fd, saved;

	(void)arg;
	fd = errors_begin(&saved);
	member_open(&m, &attr);
	p = alloc_for_all(&m, 12 * PAGE, &r);
	meet(&m);
	if (m.rank == VICTIM)
		raise(SIGKILL);
	WAIT_UNTIL(sci_team_alive(m.team, VICTIM) == -ECONNRESET, TEST_WAIT_MS);
	CHECK_EQ(p[VICTIM * PAGE / 4], 0);
	p[VICTIM * PAGE / 4] = 3;
	CHECK_EQ(p[VICTIM * PAGE / 4], 3);
	CHECK_EQ(stats_of(&m).lost, 1);
	p[0] = 1;
	sci_vm_close(m.vm);
	CHECK_EQ(sci_team_close(m.team), 0);
	errors_end(saved);
	close(fd);
}

static void lose_directory(uint32_t with)
{
	needs_mode(with);
	mode = with;
	ranks_run_arg(4, 4, directory_dies, NULL, true);
}

TEST(a_directory_of_mapped_pages_dies) { lose_directory(SCI_VM_MAP); }
TEST(a_directory_of_cached_pages_dies) { lose_directory(SCI_VM_CACHE); }

/* A window is needed after the home of a changed copy has died: the next release reports the loss. */
static void lose_changes(void *arg)
{
	struct sci_vm_attr attr = { .size = sizeof(attr), .mode = SCI_VM_CACHE, .windows = 16 };
	struct sci_vm_range r = kind(SCI_VM_ROUND_ROBIN, 0);
	struct sci_team *living;
	volatile uint32_t *p;
	struct member m;
	int fd, saved;

	(void)arg;
	fd = errors_begin(&saved);
	member_open(&m, &attr);
	p = alloc_for_all(&m, 200 * PAGE, &r);
	p[VICTIM * PAGE / 4 + (uint32_t)m.rank] = 8;
	meet(&m);
	if (m.rank == VICTIM)
		raise(SIGKILL);
	WAIT_UNTIL(sci_team_alive(m.team, VICTIM) == -ECONNRESET, TEST_WAIT_MS);
	for (uint32_t i = 0; i < 200; i++)
		if (i % 4 != VICTIM)
			CHECK_EQ(p[i * PAGE / 4], 0);
	CHECK(stats_of(&m).drops > 0);
	CHECK_EQ(sci_vm_release(m.vm, NULL), -ECONNRESET);
	CHECK_EQ(sci_vm_release(m.vm, NULL), 0);
	/* no survivor closes before all survivors have read its pages */
	CHECK_EQ(sci_team_shrink(m.team, &living), 0);
	CHECK_EQ(sci_team_barrier(living), 0);
	sci_vm_close(m.vm);
	CHECK_EQ(sci_team_close(m.team), 0);
	errors_end(saved);
	close(fd);
}

TEST(changes_for_a_dead_home_are_reported_lost)
{
	ranks_run_arg(4, 4, lose_changes, NULL, true);
}

/* A member dies at any time between faults, releases and acquires. The other members end. */
static void die_at_random(void *arg)
{
	struct sci_vm_attr attr = { .size = sizeof(attr), .mode = mode, .windows = 16 };
	struct sci_vm_range r = kind(SCI_VM_ROUND_ROBIN, 0);
	uint32_t seed = *(uint32_t *)arg;
	volatile uint32_t *p;
	struct member m;
	int fd, saved;

	fd = errors_begin(&saved);
	member_open(&m, &attr);
	p = alloc_for_all(&m, 40 * PAGE, &r);
	meet(&m);
	if (m.rank == VICTIM) {
		struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
		struct itimerspec when = { .it_value = { .tv_nsec = seed % 20000000 + 1 } };
		timer_t timer;

		CHECK_EQ(timer_create(CLOCK_MONOTONIC, &ev, &timer), 0);
		CHECK_EQ(timer_settime(timer, 0, &when, NULL), 0);
	}
	for (;;) {
		int ret;

		for (unsigned int i = 0; i < 30; i++) {
			seed = seed * 1664525 + 1013904223;
			p[(seed >> 8) % 40 * PAGE / 4 + (uint32_t)m.rank] += 1;
		}
		ret = sci_vm_release(m.vm, NULL);
		ret = ret ? ret : sci_vm_acquire(m.vm, NULL);
		ret = ret ? ret : sci_team_alive(m.team, VICTIM);
		if (ret) {
			CHECK_EQ(ret, -ECONNRESET);
			break;
		}
	}
	sci_vm_close(m.vm);
	CHECK_EQ(sci_team_close(m.team), 0);
	errors_end(saved);
	close(fd);
}

static void die_often(uint32_t with)
{
	needs_mode(with);
	mode = with;
	for (uint32_t i = 0; i < test_calls(8); i++) {
		uint32_t seed = 977 * i * i + 12345 * i;

		ranks_run_arg(4, 4, die_at_random, &seed, true);
	}
}

TEST(a_member_of_mapped_pages_dies_anywhere) { die_often(SCI_VM_MAP); }
TEST(a_member_of_cached_pages_dies_anywhere) { die_often(SCI_VM_CACHE); }
