// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Mapped pages: all members see the same bytes at the same addresses. */

#include "selftests/scivm/scivm.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void homes(void)
{
	struct sci_vm_range rr = kind(SCI_VM_ROUND_ROBIN, 0), block = kind(SCI_VM_BLOCK, 0);
	struct sci_vm_range first = kind(SCI_VM_FIRST_TOUCH, 0);
	struct member m;
	uint8_t *p, *q, *f;

	member_open(&m, NULL);
	p = alloc_for_all(&m, 8 * PAGE, &rr);
	q = alloc_for_all(&m, 8 * PAGE, &block);
	f = alloc_for_all(&m, 8 * PAGE, &first);
	for (int i = 0; i < 8; i++) {
		CHECK_EQ(sci_vm_home(m.vm, p + i * PAGE), i % 4);
		CHECK_EQ(sci_vm_home(m.vm, q + i * PAGE + 5), i / 2);
		CHECK_EQ(sci_vm_home(m.vm, f + i * PAGE), -ENOENT);
	}
	meet(&m);
	if (m.rank == 2)
		CHECK_EQ(sci_vm_place(m.vm, f + PAGE + 7, PAGE, 3), 0);
	meet(&m);
	f[(m.rank + 4) * (int)PAGE] = 1;
	meet(&m);
	CHECK_EQ(sci_vm_home(m.vm, f), -ENOENT);
	CHECK_EQ(sci_vm_home(m.vm, f + PAGE), 3);
	CHECK_EQ(sci_vm_home(m.vm, f + 2 * PAGE), 3);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(sci_vm_home(m.vm, f + (i + 4) * (int)PAGE), i);
	/* placing a page again at the same home succeeds */
	CHECK_EQ(sci_vm_place(m.vm, f + PAGE, 2 * PAGE, 3), 0);
	CHECK_EQ(sci_vm_place(m.vm, f + 4 * PAGE, 1, 1), -EBUSY);
	CHECK_EQ(sci_vm_place(m.vm, p, PAGE, 1), -EINVAL);
	CHECK_EQ(sci_vm_place(m.vm, f, 9 * PAGE, 1), -EINVAL);
	CHECK_EQ(sci_vm_place(m.vm, f, PAGE, 4), -EINVAL);
	CHECK_EQ(sci_vm_home(m.vm, &m), -EFAULT);
	CHECK_EQ(sci_vm_home(m.vm, f + 8 * PAGE), -EFAULT);
	member_close(&m);
}

TEST(pages_live_where_the_policy_says)
{
	ranks_run(4, 4, homes);
}

/* The messages of a fault are exact: to the directory and back, to the home and back. */
static void count_messages(void)
{
	struct sci_vm_range rr = kind(SCI_VM_ROUND_ROBIN, 0);
	struct sci_vm_range first = kind(SCI_VM_FIRST_TOUCH, 0);
	struct sci_vm_stats a, b;
	struct member m;
	volatile uint8_t *p, *f;

	member_open(&m, NULL);
	meet(&m);
	a = stats_of(&m);
	meet(&m);
	p = alloc_for_all(&m, 4 * PAGE, &rr);
	meet(&m);
	b = stats_of(&m);
	meet(&m);
	CHECK_EQ(b.messages - a.messages, m.rank ? 1 : 3);
	a = b;
	if (!m.rank)
		p[PAGE] = 1;
	meet(&m);
	b = stats_of(&m);
	meet(&m);
	CHECK_EQ(b.messages - a.messages, m.rank < 2);
	CHECK_EQ(b.faults - a.faults, !m.rank);
	CHECK_EQ(b.maps - a.maps, !m.rank);
	a = b;
	if (!m.rank)
		p[PAGE + 1] = p[PAGE] + p[1];
	meet(&m);
	b = stats_of(&m);
	meet(&m);
	CHECK_EQ(b.messages, a.messages);
	CHECK_EQ(b.maps, a.maps);
	f = alloc_for_all(&m, 4 * PAGE, &first);
	meet(&m);
	a = stats_of(&m);
	meet(&m);
	if (m.rank == 3)		/* the directory is rank 2 */
		f[2 * PAGE] = 1;
	meet(&m);
	if (m.rank == 1)
		CHECK_EQ(f[2 * PAGE], 1);
	meet(&m);
	b = stats_of(&m);
	meet(&m);
	CHECK_EQ(b.messages - a.messages, m.rank ? 2 : 0);
	member_close(&m);
}

TEST(a_touch_costs_two_messages_and_later_ones_none)
{
	test_needs_shm();
	ranks_run(4, 4, count_messages);
}

static void use_windows(void)
{
	struct sci_vm_attr attr = { .size = sizeof(attr), .windows = 16 };
	struct sci_vm_range r = kind(SCI_VM_HOME, 0);
	size_t pages = 64;
	struct sci_vm_stats s;
	struct member m;
	uint32_t *p;

	member_open(&m, &attr);
	p = alloc_for_all(&m, pages * PAGE, &r);
	for (unsigned int round = 0; m.rank && round < 5; round++)
		for (size_t i = 0; i < pages; i++)
			p[i * PAGE / 4 + (unsigned int)m.rank] += (uint32_t)i + round;
	meet(&m);
	for (size_t i = 0; i < pages; i++)
		for (int k = 1; k < m.size; k++)
			CHECK_EQ(p[i * PAGE / 4 + (unsigned int)k], 5 * i + 10);
	s = stats_of(&m);
	CHECK_EQ(s.windows, m.rank ? 16 : 0);
	CHECK_EQ(s.maps, s.drops + s.windows);
	if (m.rank) {
		CHECK(s.drops >= 5 * pages - 16);
		CHECK_EQ(sci_vm_touch(m.vm, p, 17 * PAGE, SCI_VM_READ), -ENOSPC);
	}
	meet(&m);
	/* a page that is used all the time keeps its window */
	if (m.rank == 1) {
		s = stats_of(&m);
		for (size_t i = 1; i < pages; i++)
			p[i * PAGE / 4 + 1] += p[1];
		CHECK(stats_of(&m).maps - s.maps <= pages);
	}
	member_close(&m);
}

TEST(a_working_set_larger_than_the_windows)
{
	test_needs_shm();
	ranks_run(3, 3, use_windows);
}

/* Threads fault at the same time while the clock's hand drops pages. */
struct stirrer {
	struct member *m;
	uint32_t *p;
	unsigned int slot;
};

#define STIR_PAGES	40u
#define STIR_ROUNDS	300u

static void *stir(void *arg)
{
	struct stirrer *s = arg;
	uint32_t seed = s->slot + 1;

	for (unsigned int i = 0; i < STIR_ROUNDS; i++) {
		seed = seed * 1664525 + 1013904223;
		s->p[(seed >> 8) % STIR_PAGES * PAGE / 4 + s->slot] += 1;
	}
	return NULL;
}

static void stir_threads(void)
{
	struct sci_vm_attr attr = { .size = sizeof(attr), .windows = 16 };
	struct sci_vm_range r = kind(SCI_VM_ROUND_ROBIN, 0);
	struct stirrer s[3];
	pthread_t t[3];
	uint64_t sum = 0;
	struct member m;
	uint32_t *p;

	member_open(&m, &attr);
	p = alloc_for_all(&m, STIR_PAGES * PAGE, &r);
	for (unsigned int i = 0; i < 3; i++) {
		s[i] = (struct stirrer){ &m, p, (unsigned int)m.rank * 3 + i };
		CHECK_EQ(pthread_create(&t[i], NULL, stir, &s[i]), 0);
	}
	for (unsigned int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	meet(&m);
	for (unsigned int i = 0; i < STIR_PAGES; i++)
		for (unsigned int k = 0; k < 3u * (unsigned int)m.size; k++)
			sum += p[i * PAGE / 4 + k];
	CHECK_EQ(sum, 3 * STIR_ROUNDS * (unsigned int)m.size);
	member_close(&m);
}

TEST(threads_fault_while_pages_are_dropped)
{
	test_needs_shm();
	ranks_run(4, 2, stir_threads);
}

static long futex(_Atomic uint32_t *word, int op, uint32_t value)
{
	return syscall(SYS_futex, word, op, value, NULL, NULL, 0);
}

static void count_and_sleep(void)
{
	struct member m;
	_Atomic uint32_t *p;

	member_open(&m, NULL);
	p = alloc_for_all(&m, PAGE, NULL);
	for (unsigned int i = 0; i < 10000; i++)
		atomic_fetch_add(&p[0], 1);
	meet(&m);
	CHECK_EQ(p[0], 10000 * m.size);
	/* members take turns in storing the word, and wake the other members by futex */
	for (uint32_t turn = 0; turn < 50 * (uint32_t)m.size; turn++) {
		uint32_t now;

		if (turn % (uint32_t)m.size == (uint32_t)m.rank) {
			atomic_store(&p[1], turn + 1);
			futex(&p[1], FUTEX_WAKE, INT32_MAX);
			continue;
		}
		while ((now = atomic_load(&p[1])) <= turn)
			futex(&p[1], FUTEX_WAIT, now);
	}
	member_close(&m);
}

TEST(atomics_and_futexes_work_across_members)
{
	test_needs_shm();
	ranks_run(4, 4, count_and_sleep);
}

static void call_the_kernel(void)
{
	struct sci_vm_range eager = kind(SCI_VM_ROUND_ROBIN, SCI_VM_EAGER);
	struct member m;
	int fd[2];
	char *p, *q;

	member_open(&m, NULL);
	p = alloc_for_all(&m, 4 * PAGE, NULL);
	q = alloc_for_all(&m, 4 * PAGE, &eager);
	CHECK_EQ(pipe(fd), 0);
	if (!m.rank) {
		CHECK_EQ(write(fd[1], p, 100), -1);
		CHECK_EQ(errno, EFAULT);
		CHECK_EQ(sci_vm_touch(m.vm, p + PAGE - 50, 100, SCI_VM_READ), 0);
		CHECK_EQ(write(fd[1], p + PAGE - 50, 100), 100);
		CHECK_EQ(read(fd[0], q + PAGE - 50, 100), 100);
	}
	CHECK_EQ(write(fd[1], q + PAGE, 2 * PAGE), 2 * PAGE);
	CHECK_EQ(stats_of(&m).maps, 0);
	/* addresses outside of ranges are skipped */
	CHECK_EQ(sci_vm_touch(m.vm, &m, sizeof(m), SCI_VM_WRITE), 0);
	member_close(&m);
}

TEST(system_calls_work_on_pages_that_were_touched)
{
	test_needs_shm();
	ranks_run(4, 4, call_the_kernel);
}

/* Static variables become common, although their addresses are outside of the memory. */
static _Alignas(PAGE) uint32_t variables[4 * PAGE / 4];
static uint32_t other_variable = 5;

static void adopt_variables(void)
{
	struct sci_vm_range r = kind(SCI_VM_HOME, 0), e = kind(SCI_VM_BLOCK, SCI_VM_EAGER);
	struct member m;

	member_open(&m, NULL);
	r.home = -1;
	for (unsigned int i = 0; i < ARRAY_LEN(variables); i++)
		variables[i] = i + 1000 * (unsigned int)m.rank;
	CHECK_EQ(sci_vm_adopt(m.vm, variables, 2 * PAGE, 1, &r), 0);
	CHECK_EQ(sci_vm_adopt(m.vm, variables + 2 * PAGE / 4, 2 * PAGE, 2, &e), 0);
	for (unsigned int i = 0; i < ARRAY_LEN(variables); i++)
		CHECK_EQ(variables[i], i + (i < 2 * PAGE / 4 ? 1000 : 2000));
	CHECK_EQ(sci_vm_home(m.vm, variables), 1);
	meet(&m);
	variables[m.rank] = 77;
	variables[3 * PAGE / 4 + (unsigned int)m.rank] = 78;
	meet(&m);
	for (int i = 0; i < m.size; i++) {
		CHECK_EQ(variables[i], 77);
		CHECK_EQ(variables[3 * PAGE / 4 + (unsigned int)i], 78);
	}
	CHECK_EQ(other_variable, 5);
	CHECK_EQ(sci_vm_adopt(m.vm, variables, PAGE, 0, &r), -EEXIST);
	CHECK_EQ(sci_vm_adopt(m.vm, (char *)variables + 8, PAGE, 0, &r), -EINVAL);
	CHECK_EQ(sci_vm_adopt(m.vm, (void *)(uintptr_t)PAGE, PAGE, 0, &r), -EFAULT);
	CHECK_EQ(sci_vm_free(m.vm, variables), -EINVAL);
	member_close(&m);
	/* the variables are private again, with the values that all members have stored */
	CHECK_EQ(variables[0], 77);
	variables[0] = (uint32_t)ranks_rank();
	CHECK_EQ(variables[0], ranks_rank());
}

TEST(static_variables_are_adopted)
{
	test_needs_shm();
	ranks_run(4, 4, adopt_variables);
}

#define ADOPTED_MAX	64u

static _Alignas(PAGE) uint8_t pages[(ADOPTED_MAX + 1) * PAGE];

static void adopt_too_many(void)
{
	struct sci_vm_range r = kind(SCI_VM_HOME, 0);
	uint8_t *last = pages + ADOPTED_MAX * PAGE;
	struct member m;

	member_open(&m, NULL);
	for (unsigned int i = 0; i < ADOPTED_MAX; i++)
		CHECK_EQ(sci_vm_adopt(m.vm, pages + i * PAGE, PAGE, 0, &r), 0);
	CHECK_EQ(sci_vm_adopt(m.vm, last, PAGE, 0, &r), -ENOSPC);
	/* the memory that was not adopted is still private */
	*last = (uint8_t)(m.rank + 1);
	pages[m.rank] = (uint8_t)(m.rank + 1);
	meet(&m);
	CHECK_EQ(*last, m.rank + 1);
	for (int i = 0; i < m.size; i++)
		CHECK_EQ(pages[i], i + 1);
	meet(&m);
	member_close(&m);
}

TEST(the_number_of_adopted_ranges_is_limited)
{
	test_needs_shm();
	ranks_run(2, 2, adopt_too_many);
}

/* Each member allocates a range, passes it on, and frees its neighbour's range. */
static void allocate_everywhere(void)
{
	struct member m;
	uint8_t *all[8];

	member_open(&m, NULL);
	for (unsigned int round = 0; round < 10; round++) {
		struct sci_vm_range r = kind(round % 4, round / 4 % 2 ? SCI_VM_EAGER : 0);
		size_t len = (1 + (size_t)m.rank + round) * PAGE;
		uint8_t *mine, *next;
		void *p;

		CHECK_EQ(sci_vm_alloc(m.vm, len, &r, &p), 0);
		mine = p;
		for (size_t i = 0; i < len; i += 512)
			CHECK_EQ(mine[i], 0);
		memset(mine, m.rank + 1, len);
		CHECK_EQ(sci_team_allgather(m.team, &mine, sizeof(mine), all), 0);
		next = all[(m.rank + 1) % m.size];
		CHECK_EQ(next[PAGE - 1], (m.rank + 1) % m.size + 1);
		meet(&m);
		CHECK_EQ(sci_vm_free(m.vm, next), 0);
		meet(&m);
		CHECK_EQ(sci_vm_home(m.vm, mine), -EFAULT);
	}
	CHECK_EQ(stats_of(&m).homed, 0);
	member_close(&m);
}

TEST(any_member_allocates_and_frees)
{
	test_needs_shm();
	ranks_run(4, 2, allocate_everywhere);
}

/* A fault outside of ranges reaches the program's handler. */
static char *stray_page;

static void repair(int sig)
{
	(void)sig;
	mprotect(stray_page, PAGE, PROT_READ | PROT_WRITE);
}

static void fault_elsewhere(void)
{
	struct sigaction sa = { .sa_handler = repair };
	struct member m;
	int status;
	pid_t pid;
	char *p;

	stray_page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigaction(SIGSEGV, &sa, NULL);
	member_open(&m, NULL);
	stray_page[0] = 1;
	p = alloc_for_all(&m, PAGE, NULL);
	meet(&m);
	p[m.rank] = 1;
	/* a child shares the pages that are mapped, and can map no others */
	pid = fork();
	if (!pid) {
		p[8 + m.rank] = 2;
		_exit(sci_vm_touch(m.vm, p, 1, SCI_VM_READ) == -ENOTCONN ? 7 : 1);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	CHECK_EQ(p[8 + m.rank], 2);
	member_close(&m);
	CHECK(!sigaction(SIGSEGV, NULL, &sa) && sa.sa_handler == repair);
}

TEST(other_faults_are_the_programs)
{
	ranks_run(2, 2, fault_elsewhere);
}

/* A program of a later version passes longer structs. */
static void structs_of_a_later_version(void)
{
	struct {
		struct sci_vm_attr attr;
		uint64_t more;
	} a = { .attr.size = sizeof(a), .attr.length = 64ull << 20 };
	struct {
		struct sci_vm_range range;
		uint64_t more;
	} r = { .range = kind(SCI_VM_ROUND_ROBIN, 0) };
	struct member m;
	void *p;

	CHECK_EQ(sci_team_open(&m.team, NULL), 0);
	a.more = 1;
	CHECK_EQ(sci_vm_open(&m.vm, m.team, &a.attr), -E2BIG);
	a.more = 0;
	CHECK_EQ(sci_vm_open(&m.vm, m.team, &a.attr), 0);
	r.range.size = sizeof(r);
	CHECK_EQ(sci_vm_alloc(m.vm, 1, &r.range, &p), 0);
	r.more = 1;
	CHECK_EQ(sci_vm_alloc(m.vm, 1, &r.range, &p), -E2BIG);
	member_close(&m);
}

TEST(longer_structs)
{
	ranks_run(2, 2, structs_of_a_later_version);
}

static void bad_arguments(void)
{
	struct sci_vm_attr attr = { .size = 8 };
	struct sci_vm_range r = kind(SCI_VM_ROUND_ROBIN, 0);
	struct sci_vm_stats s = { .size = 1 };
	struct sci_vm *vm;
	struct member m;
	void *p;

	CHECK_EQ(sci_vm_open(&vm, NULL, NULL), -EINVAL);
	CHECK_EQ(sci_vm_close(NULL), 0);
	CHECK_EQ(sci_team_open(&m.team, NULL), 0);
	m.rank = sci_team_rank(m.team);
	CHECK_EQ(sci_vm_open(NULL, m.team, NULL), -EINVAL);
	CHECK_EQ(sci_vm_open(&vm, m.team, &attr), -EINVAL);
	attr = (struct sci_vm_attr){ .size = sizeof(attr), .page = 4097 };
	CHECK_EQ(sci_vm_open(&vm, m.team, &attr), -EINVAL);
	attr = (struct sci_vm_attr){ .size = sizeof(attr), .length = 4096 };
	CHECK_EQ(sci_vm_open(&vm, m.team, &attr), -EINVAL);
	/* the members pass different attributes */
	attr = (struct sci_vm_attr){ .size = sizeof(attr), .page = m.rank ? 4096 : 8192 };
	CHECK_EQ(sci_vm_open(&vm, m.team, &attr), -EINVAL);
	attr = (struct sci_vm_attr){ .size = m.rank ? sizeof(attr) : 1 };
	CHECK_EQ(sci_vm_open(&vm, m.team, &attr), -EINVAL);
	attr = (struct sci_vm_attr){ .size = sizeof(attr) };
	/* the address range is in use */
	attr.length = 32ul << 20;
	p = mmap(NULL, 2 * attr.length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	attr.base = (void *)(((uintptr_t)p + (2ul << 20)) & ~((2ul << 20) - 1));
	CHECK_EQ(sci_team_bcast(m.team, 0, &attr.base, sizeof(attr.base)), 0);
	CHECK_EQ(sci_vm_open(&vm, m.team, &attr), -ENOMEM);
	attr = (struct sci_vm_attr){ .size = sizeof(attr), .length = 64ull << 20 };
	CHECK_EQ(sci_vm_open(&m.vm, m.team, &attr), 0);
	CHECK_EQ(sci_vm_length(m.vm), 64u << 20);
	CHECK_EQ(sci_vm_alloc(m.vm, 0, NULL, &p), -EINVAL);
	CHECK_EQ(sci_vm_alloc(m.vm, SIZE_MAX, NULL, &p), -EINVAL);
	CHECK_EQ(sci_vm_alloc(m.vm, SIZE_MAX / 2, NULL, &p), -ENOSPC);
	CHECK_EQ(sci_vm_alloc(m.vm, 33ul << 20, NULL, &p), -ENOSPC);
	CHECK_EQ(sci_vm_alloc(m.vm, 32ul << 20, NULL, &p), 0);
	CHECK_EQ(sci_vm_alloc(m.vm, 1, NULL, &p), -ENOSPC);
	CHECK_EQ(sci_vm_free(m.vm, (char *)p + 4096), -EINVAL);
	CHECK_EQ(sci_vm_free(m.vm, p), 0);
	CHECK_EQ(sci_vm_free(m.vm, p), -EINVAL);
	CHECK_EQ(sci_vm_alloc(m.vm, 1, NULL, NULL), -EINVAL);
	CHECK_EQ(sci_vm_alloc(NULL, 1, NULL, &p), -EINVAL);
	r.home = 1;
	CHECK_EQ(sci_vm_alloc(m.vm, 1, &r, &p), -EINVAL);
	r = kind(SCI_VM_HOME, 0);
	r.home = 2;
	CHECK_EQ(sci_vm_alloc(m.vm, 1, &r, &p), -EINVAL);
	r = kind(9, 0);
	CHECK_EQ(sci_vm_alloc(m.vm, 1, &r, &p), -EINVAL);
	r = kind(0, 8);
	CHECK_EQ(sci_vm_alloc(m.vm, 1, &r, &p), -EINVAL);
	CHECK_EQ(sci_vm_stats(m.vm, &s), -EINVAL);
	CHECK_EQ(sci_vm_touch(m.vm, (void *)1, SIZE_MAX, SCI_VM_READ), -EINVAL);
	member_close(&m);
}

TEST(arguments_are_checked)
{
	ranks_run(2, 2, bad_arguments);
}

/* Return true if a thread of this process has that name. */
static bool thread_named(const char *name)
{
	DIR *d = opendir("/proc/self/task");
	const struct dirent *e;
	bool found = false;

	CHECK(d);
	while ((e = readdir(d))) {
		char path[300], line[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		f = fopen(path, "re");
		if (!f)
			continue;	/* "..", or a thread that has ended */
		if (fgets(line, sizeof(line), f))
			line[strcspn(line, "\n")] = '\0';
		fclose(f);
		found = found || !strcmp(line, name);
	}
	closedir(d);
	return found;
}

static void threads_of_a_memory(void)
{
	struct member m;

	member_open(&m, NULL);
	CHECK(thread_named("sci-vm-server"));
	CHECK(thread_named("sci-vm-faults"));
	member_close(&m);
}

TEST(the_threads_of_a_memory_have_names)
{
	ranks_run(1, 1, threads_of_a_memory);
}

/* The program was built with fewer counters, or with more, than the library has. */
static void stats_of_any_size(void)
{
	struct {
		struct sci_vm_stats s;
		uint64_t later;
	} wide = { .s = { .size = sizeof(wide) }, .later = 7 };
	struct sci_vm_stats narrow = { .size = offsetof(struct sci_vm_stats, maps), .maps = 7 };
	struct member m;
	volatile uint8_t *p;

	member_open(&m, NULL);
	p = alloc_for_all(&m, PAGE, NULL);
	p[0] = 1;
	CHECK_EQ(sci_vm_stats(m.vm, &narrow), 0);
	CHECK_EQ(narrow.size, offsetof(struct sci_vm_stats, maps));
	CHECK_EQ(narrow.faults, 1);
	CHECK_EQ(narrow.maps, 7);
	CHECK_EQ(sci_vm_stats(m.vm, &wide.s), 0);
	CHECK_EQ(wide.s.size, sizeof(wide.s));
	CHECK_EQ(wide.s.faults, 1);
	CHECK_EQ(wide.later, 7);
	member_close(&m);
}

TEST(counters_fit_programs_built_with_another_library)
{
	ranks_run(1, 1, stats_of_any_size);
}
