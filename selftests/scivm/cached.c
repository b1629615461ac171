// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Cached pages: copies, diffs, write notices, and the number of messages for each. */

#include "selftests/scivm/scivm.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

static const struct sci_vm_attr cached = {
	.size = sizeof(cached), .mode = SCI_VM_CACHE,
};

/* Return the counts of this member since @before. */
static struct sci_vm_stats spent(const struct member *m, const struct sci_vm_stats *before)
{
	struct sci_vm_stats now = stats_of(m), d = { .size = sizeof(d) };
	const uint64_t *a = (const uint64_t *)before, *b = (const uint64_t *)&now;
	uint64_t *to = (uint64_t *)&d;

	for (size_t i = offsetof(struct sci_vm_stats, faults) / 8; i < sizeof(d) / 8; i++)
		to[i] = b[i] - a[i];
	/* no member sends messages before all members have read their counters */
	meet(m);
	return d;
}

static void count_messages(void)
{
	struct sci_vm_range r = kind(SCI_VM_HOME, 0);
	struct sci_vm_time t = { .n = 0 };
	struct sci_vm_stats a, d;
	volatile uint8_t *p;
	struct member m;

	member_open(&m, &cached);
	p = alloc_for_all(&m, 64 * PAGE, &r);
	meet(&m);
	a = stats_of(&m);
	meet(&m);
	if (m.rank == 1)
		for (int i = 0; i < 10; i++)
			CHECK_EQ(p[i * (int)PAGE], 0);
	meet(&m);
	d = spent(&m, &a);	/* a read fault costs a request and a page */
	CHECK_EQ(d.messages, m.rank < 2 ? 10 : 0);
	CHECK_EQ(d.faults, m.rank == 1 ? 10 : 0);
	CHECK_EQ(d.fetches, m.rank == 1 ? 10 : 0);
	a = stats_of(&m);
	meet(&m);
	if (m.rank == 1)
		for (int i = 0; i < 5; i++)
			p[i * (int)PAGE + 9] = 1;
	meet(&m);
	d = spent(&m, &a);	/* a store to a copy sends no message */
	CHECK_EQ(d.messages, 0);
	CHECK_EQ(d.twins, m.rank == 1 ? 5 : 0);
	a = stats_of(&m);
	meet(&m);
	if (m.rank == 1)
		CHECK_EQ(sci_vm_release(m.vm, &t), 0);
	meet(&m);
	d = spent(&m, &a);	/* a release sends a message per page; the home answers once */
	CHECK_EQ(d.messages, m.rank == 1 ? 5 : m.rank == 0 ? 1 : 0);
	CHECK_EQ(d.diffs, m.rank == 1 ? 5 : 0);
	CHECK_EQ(d.diff_bytes, m.rank == 1 ? 5 : 0);
	a = stats_of(&m);
	meet(&m);
	if (m.rank == 1)
		CHECK_EQ(sci_vm_release(m.vm, &t), 0);
	meet(&m);
	CHECK_EQ(spent(&m, &a).messages, 0);
	CHECK_EQ(sci_team_bcast(m.team, 1, &t, sizeof(t)), 0);
	CHECK_EQ(t.intervals[1], 1);
	a = stats_of(&m);
	meet(&m);
	if (m.rank == 2) {
		CHECK_EQ(p[0] + p[20 * PAGE], 0);	/* two copies, one of them stale */
		CHECK_EQ(sci_vm_acquire(m.vm, &t), 0);
	}
	meet(&m);
	d = spent(&m, &a);	/* an acquire asks the member with news, which answers once */
	CHECK_EQ(d.messages, m.rank == 2 ? 2 + 1 : m.rank == 0 ? 2 : m.rank == 1);
	CHECK_EQ(d.notices, m.rank == 2 ? 5 : 0);
	CHECK_EQ(d.invalidations, m.rank == 2 ? 1 : 0);
	a = stats_of(&m);
	meet(&m);
	if (m.rank == 2) {
		CHECK_EQ(sci_vm_acquire(m.vm, &t), 0);
		CHECK_EQ(p[9], 1);
	}
	meet(&m);
	d = spent(&m, &a);	/* no news, no message; the read fetches a page */
	CHECK_EQ(d.messages, m.rank == 2 || m.rank == 0);
	a = stats_of(&m);
	meet(&m);
	if (m.rank == 3)
		CHECK_EQ(sci_vm_acquire(m.vm, NULL), 0);
	meet(&m);
	CHECK_EQ(spent(&m, &a).messages, m.rank == 3 ? 3 : 1);
	member_close(&m);
}

TEST(each_event_costs_so_many_messages)
{
	ranks_run(4, 4, count_messages);
}

/* Of two pages that a member has stored to, the second has the same bytes as before. */
static void store_the_same(void)
{
	struct sci_vm_range r = kind(SCI_VM_HOME, 0);
	struct sci_vm_stats a, d;
	volatile uint8_t *p;
	struct member m;

	member_open(&m, &cached);
	p = alloc_for_all(&m, 2 * PAGE, &r);
	if (m.rank == 1) {
		p[0] = 1;
		p[PAGE] = 0;
	}
	meet(&m);
	a = stats_of(&m);
	meet(&m);
	if (m.rank == 1)
		CHECK_EQ(sci_vm_release(m.vm, NULL), 0);
	meet(&m);
	d = spent(&m, &a);	/* the home has answered: it has applied the diff */
	CHECK_EQ(d.messages, m.rank < 2 ? 1 : 0);
	CHECK_EQ(d.diffs, m.rank == 1 ? 1 : 0);
	member_close(&m);
}

TEST(a_release_waits_though_the_last_page_has_no_diff)
{
	ranks_run(3, 3, store_the_same);
}

/* A diff that needs several messages, of every second byte. */
static void large_diffs(void)
{
	struct sci_vm_range r = kind(SCI_VM_HOME, 0);
	size_t len = 64 * 1024;
	struct sci_vm_stats s;
	struct member m;
	uint8_t *p;

	r.page = (uint32_t)len;
	member_open(&m, &cached);
	p = alloc_for_all(&m, len, &r);
	if (m.rank)
		for (size_t i = (size_t)m.rank - 1; i < len; i += 2)
			p[i] = (uint8_t)(i % 251 + 1);
	sync_all(&m);
	for (size_t i = 0; i < len; i++)
		CHECK_EQ(p[i], i % 251 + 1);
	s = stats_of(&m);
	CHECK_EQ(s.diff_bytes, m.rank ? len / 2 : 0);
	CHECK_EQ(s.diffs, m.rank ? 1 : 0);
	member_close(&m);
}

TEST(a_diff_of_many_messages)
{
	ranks_run(3, 3, large_diffs);
}

/* A lock passes the time on. Each member sees the stores of all earlier owners. */
static void pass_on(void)
{
	struct sci_vm_range r = kind(SCI_VM_ROUND_ROBIN, 0);
	struct sci_vm_time t = { .n = 0 };
	struct member m;
	uint32_t *p;

	member_open(&m, &cached);
	p = alloc_for_all(&m, 16 * PAGE, &r);
	for (int i = 0; i < 16; i++)
		CHECK_EQ(p[i * (int)PAGE / 4], 0);		/* copies that become stale */
	meet(&m);
	for (int turn = 0; turn < 5 * m.size; turn++) {
		int from = turn % m.size;

		if (m.rank == from) {
			CHECK_EQ(sci_vm_acquire(m.vm, &t), 0);
			for (int i = 0; i < 16; i++)
				CHECK_EQ(p[i * (int)PAGE / 4]++, turn);
			CHECK_EQ(sci_vm_release(m.vm, &t), 0);
		}
		CHECK_EQ(sci_team_bcast(m.team, from, &t, sizeof(t)), 0);
	}
	member_close(&m);
}

TEST(changes_follow_the_lock)
{
	ranks_run(4, 4, pass_on);
}

static void parts(void)
{
	struct sci_vm_range r = kind(SCI_VM_HOME, 0);
	struct member m;
	uint32_t *p;

	member_open(&m, &cached);
	p = alloc_for_all(&m, 4 * PAGE, &r);
	CHECK_EQ(p[0] + p[PAGE / 4], 0);
	meet(&m);
	if (m.rank == 1) {
		p[0] = 1;
		p[PAGE / 4] = 2;
		CHECK_EQ(sci_vm_release_range(m.vm, p, PAGE), 0);
	}
	meet(&m);
	if (!m.rank)
		CHECK_EQ(p[0] * 10 + p[PAGE / 4], 10);
	if (m.rank == 2) {
		CHECK_EQ(sci_vm_acquire_range(m.vm, p + PAGE / 4, PAGE), 0);
		CHECK_EQ(p[0], 0);
		CHECK_EQ(sci_vm_acquire_range(m.vm, p, PAGE), 0);
		CHECK_EQ(p[0], 1);
	}
	meet(&m);
	sync_all(&m);
	CHECK_EQ(p[0] * 10 + p[PAGE / 4], 12);
	CHECK_EQ(sci_vm_release_range(m.vm, p, 0), -EINVAL);
	CHECK_EQ(sci_vm_acquire_range(m.vm, p, SIZE_MAX), -EINVAL);
	CHECK_EQ(sci_vm_acquire(NULL, NULL), -EINVAL);
	CHECK_EQ(sci_vm_release(NULL, NULL), -EINVAL);
	CHECK_EQ(sci_vm_acquire(m.vm, &(struct sci_vm_time){ .n = 4 }), -EINVAL);
	member_close(&m);
}

TEST(a_part_is_released_and_acquired)
{
	ranks_run(3, 3, parts);
}

/*
 * Run a random program on the members and serially, and compare the results. A word has another
 * owner at each step. The owner computes it from words of the step before.
 */
#define WORDS	(24u * PAGE / 4)
#define STEPS	12u
#define PICKS	3000u

static uint32_t next_random(uint32_t *seed)
{
	return *seed = *seed * 1664525 + 1013904223;
}

/* Return the owner of word @i at @step. */
static unsigned int owner_of(uint32_t i, unsigned int step, unsigned int n)
{
	return ((i * 2654435761u + step * 40503u) >> 8) % n;
}

/* One step of a member: change its own words, using any words of the step before. */
static void random_step(uint32_t *to, const uint32_t *from, unsigned int step,
			unsigned int rank, unsigned int n)
{
	uint32_t seed = step * 7919 + 1;

	for (unsigned int k = 0; k < PICKS; k++) {
		uint32_t i = (next_random(&seed) >> 8) % WORDS;
		uint32_t j = (next_random(&seed) >> 8) % WORDS;

		if (owner_of(i, step, n) == rank)
			to[i] = to[i] * 3 + from[j] + k;
	}
}

static void random_program(void)
{
	struct sci_vm_attr attr = cached;
	uint32_t *serial = calloc(2 * WORDS, 4), *at;
	struct sci_vm_range r = kind(SCI_VM_ROUND_ROBIN, 0);
	struct member m;

	attr.windows = 16;		/* far fewer than pages */
	CHECK(serial);
	member_open(&m, &attr);
	at = alloc_for_all(&m, 2 * WORDS * 4, &r);
	for (unsigned int step = 0; step < STEPS; step++) {
		unsigned int to = step % 2 * WORDS, from = WORDS - to;

		random_step(at + to, at + from, step, (unsigned int)m.rank,
			    (unsigned int)m.size);
		for (unsigned int k = 0; k < (unsigned int)m.size; k++)
			random_step(serial + to, serial + from, step, k, (unsigned int)m.size);
		sync_all(&m);
	}
	for (uint32_t i = 0; i < 2 * WORDS; i++)
		CHECK_EQ(at[i], serial[i]);
	if (m.size > 1)
		CHECK(stats_of(&m).drops > 0);
	free(serial);
	member_close(&m);
}

TEST(a_random_program_on_four_nodes)
{
	ranks_run(4, 4, random_program);
}

TEST(a_random_program_of_eight_members)
{
	ranks_run(8, 4, random_program);
}

/*
 * Rank 3 changes the end of a range and the start of the next one. Rank 2 frees the first range:
 * rank 0 has removed it, rank 1 is stopped, and rank 3 removes it last.
 */
static _Atomic pid_t *stopped;

static void free_beside(void)
{
	struct sci_vm_range r = kind(SCI_VM_HOME, 0);
	struct sci_vm_time t = { .n = 0 };
	struct member m;
	uint8_t *p[2];

	member_open(&m, &cached);
	r.home = 3;
	for (int i = 0; i < 2; i++) {
		if (m.rank == 3)
			CHECK_EQ(sci_vm_alloc(m.vm, 4 * PAGE, &r, (void **)&p[i]), 0);
		CHECK_EQ(sci_team_bcast(m.team, 3, &p[i], sizeof(p[i])), 0);
	}
	CHECK_EQ(p[1] - p[0], 4 * PAGE);
	CHECK_EQ(*(volatile uint8_t *)p[1], 0);
	meet(&m);
	if (m.rank == 3) {
		p[0][3 * PAGE] = 1;
		p[1][0] = 2;
		CHECK_EQ(sci_vm_release(m.vm, &t), 0);
	}
	CHECK_EQ(sci_team_bcast(m.team, 3, &t, sizeof(t)), 0);
	if (m.rank == 1) {
		atomic_store(stopped, getpid());
		raise(SIGSTOP);
	} else if (m.rank == 2) {
		WAIT_UNTIL(atomic_load(stopped) && test_process(*stopped).state == 'T',
			   TEST_WAIT_MS);
		CHECK_EQ(sci_vm_free(m.vm, p[0]), 0);
	} else if (m.rank == 0) {
		WAIT_UNTIL(sci_vm_home(m.vm, p[0]) == -EFAULT, TEST_WAIT_MS);
		CHECK_EQ(sci_vm_acquire(m.vm, &t), 0);
		CHECK_EQ(p[1][0], 2);
		CHECK_EQ(kill(*stopped, SIGCONT), 0);
	}
	member_close(&m);
}

TEST(an_acquire_passes_over_a_freed_range)
{
	test_needs_shm();
	if (getenv("SCI_TEST_NET"))
		SKIP("a member that is stopped loses its connections");
	stopped = test_shared(sizeof(*stopped));
	ranks_run(4, 4, free_beside);
}

/*
 * A member frees ranges that it has changed, while another thread of it releases: the homes of
 * these pages may have removed the range already.
 */
#define FREES		1000
#define LARGE		(512 * PAGE)

static atomic_bool frees_over;

static void *release_all_the_time(void *arg)
{
	struct member *m = arg;

	while (!atomic_load(&frees_over)) {
		CHECK_EQ(sci_vm_release(m->vm, NULL), 0);
		sched_yield();
	}
	return NULL;
}

static void free_changed(void)
{
	struct sci_vm_range r = kind(SCI_VM_ROUND_ROBIN, 0);
	struct member m;
	pthread_t t;

	member_open(&m, &cached);
	if (m.rank == 2) {
		CHECK_EQ(pthread_create(&t, NULL, release_all_the_time, &m), 0);
		for (int i = 0; i < FREES; i++) {
			uint8_t *p;

			CHECK_EQ(sci_vm_alloc(m.vm, LARGE, &r, (void **)&p), 0);
			for (unsigned int k = 0; k < 3 * PAGE; k += PAGE)
				p[k] = 1;
			CHECK_EQ(sci_vm_free(m.vm, p), 0);
		}
		atomic_store(&frees_over, true);
		CHECK_EQ(pthread_join(t, NULL), 0);
	}
	member_close(&m);
}

TEST(a_thread_releases_while_another_frees)
{
	ranks_run(3, 3, free_changed);
}

/* Threads of a member change pages while other threads of the member release and acquire. */
#define THREADS	3u
#define ROUNDS	200u

struct changer {
	struct member *m;
	uint32_t *p;
	unsigned int slot;
};

static void *change(void *arg)
{
	struct changer *c = arg;

	for (uint32_t i = 1; i <= ROUNDS; i++) {
		for (unsigned int page = 0; page < 4; page++)
			c->p[page * PAGE / 4 + c->slot] = i;
		if (i % 20 == 0)
			CHECK_EQ(sci_vm_release(c->m->vm, NULL), 0);
		if (i % 30 == 0)
			CHECK_EQ(sci_vm_acquire(c->m->vm, NULL), 0);
	}
	return NULL;
}

static void change_and_release(void)
{
	struct sci_vm_range r = kind(SCI_VM_ROUND_ROBIN, 0);
	struct changer c[THREADS];
	pthread_t t[THREADS];
	struct member m;
	uint32_t *p;

	member_open(&m, &cached);
	p = alloc_for_all(&m, 4 * PAGE, &r);
	for (unsigned int i = 0; i < THREADS; i++) {
		c[i] = (struct changer){ &m, p, (unsigned int)m.rank * THREADS + i };
		CHECK_EQ(pthread_create(&t[i], NULL, change, &c[i]), 0);
	}
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	sync_all(&m);
	for (unsigned int page = 0; page < 4; page++)
		for (unsigned int k = 0; k < THREADS * (unsigned int)m.size; k++)
			CHECK_EQ(p[page * PAGE / 4 + k], ROUNDS);
	member_close(&m);
}

TEST(threads_change_pages_that_others_release)
{
	ranks_run(4, 2, change_and_release);
}

static _Alignas(PAGE) uint32_t variables[3 * PAGE / 4];

static void adopt_variables(void)
{
	struct sci_vm_range r = kind(SCI_VM_ROUND_ROBIN, 0);
	struct member m;

	member_open(&m, &cached);
	for (unsigned int i = 0; i < ARRAY_LEN(variables); i++)
		variables[i] = i + 1000 * (unsigned int)m.rank;
	CHECK_EQ(sci_vm_adopt(m.vm, variables, sizeof(variables), 1, &r), 0);
	for (unsigned int i = 0; i < ARRAY_LEN(variables); i++)
		CHECK_EQ(variables[i], i + 1000);
	sync_all(&m);
	variables[(unsigned int)m.rank * 600] = 77;
	sync_all(&m);
	for (unsigned int i = 0; i < (unsigned int)m.size; i++)
		CHECK_EQ(variables[i * 600], 77);
	r.flags = SCI_VM_EAGER;
	CHECK_EQ(sci_vm_alloc(m.vm, 1, &r, &(void *){ NULL }), -EOPNOTSUPP);
	member_close(&m);
	CHECK_EQ(variables[600], 77);
	CHECK_EQ(variables[601], 1601);
}

TEST(static_variables_are_adopted)
{
	ranks_run(4, 4, adopt_variables);
}

/* A memory has mapped and cached ranges. */
static void both_kinds(void)
{
	struct sci_vm_range r = kind(SCI_VM_ROUND_ROBIN, 0), s = r;
	struct member m;
	uint32_t *p, *q;

	r.mode = SCI_VM_MAP;
	s.mode = SCI_VM_CACHE;
	setenv("SCI_VM", "auto", 1);
	member_open(&m, NULL);
	p = alloc_for_all(&m, 4 * PAGE, &r);
	q = alloc_for_all(&m, 4 * PAGE, &s);
	for (uint32_t i = 0; i < 100; i++) {
		__atomic_fetch_add(&p[PAGE / 4], 1, __ATOMIC_SEQ_CST);
		q[(unsigned int)m.rank] += i;
		q[2 * PAGE / 4 + (unsigned int)m.rank] += i;
	}
	sync_all(&m);
	CHECK_EQ(p[PAGE / 4], 100 * m.size);
	for (int i = 0; i < m.size; i++)
		CHECK_EQ(q[i] + q[2 * PAGE / 4 + (unsigned int)i], 2 * 4950);
	member_close(&m);
}

TEST(mapped_and_cached_ranges_side_by_side)
{
	needs_mode(SCI_VM_MAP);
	ranks_run(4, 4, both_kinds);
}

/*
 * The time of a release and an acquire is in a range of @mode. Its intervals are in a page that
 * the member has not touched yet.
 */
static void keep_time(uint32_t mode)
{
	struct sci_vm_range r = kind(SCI_VM_HOME, 0), data = r;
	struct sci_vm_time *released, *acquired;
	struct member m;
	uint8_t *p, *q;

	r.mode = mode;
	data.mode = SCI_VM_CACHE;
	setenv("SCI_VM", "auto", 1);
	member_open(&m, NULL);
	p = alloc_for_all(&m, 4 * PAGE, &r);
	q = alloc_for_all(&m, PAGE, &data);
	released = (void *)(p + PAGE - sizeof(uint32_t));
	acquired = (void *)(p + 3 * PAGE - sizeof(uint32_t));
	if (!m.rank) {
		q[0] = 7;
		CHECK_EQ(sci_vm_release(m.vm, acquired), 0);
	}
	meet(&m);
	if (m.rank == 1) {
		CHECK_EQ(sci_vm_acquire(m.vm, acquired), 0);
		CHECK_EQ(q[0]++, 7);
		CHECK_EQ(sci_vm_release(m.vm, released), 0);
		CHECK_EQ(released->n, 3);
		CHECK_EQ(released->intervals[0], 1);
		CHECK_EQ(released->intervals[1], 1);
	}
	member_close(&m);
}

static void keep_time_mapped(void)
{
	keep_time(SCI_VM_MAP);
}

static void keep_time_cached(void)
{
	keep_time(SCI_VM_CACHE);
}

TEST(mapped_ranges_have_the_time)
{
	needs_mode(SCI_VM_MAP);
	ranks_run(3, 3, keep_time_mapped);
}

TEST(a_cached_range_has_the_time)
{
	ranks_run(3, 3, keep_time_cached);
}

/* Memory of members that sockets connect cannot be mapped. */
static void members_on_sockets(void)
{
	struct sci_vm_attr map = { .size = sizeof(map), .mode = SCI_VM_MAP };
	struct sci_vm_range r = kind(SCI_VM_ROUND_ROBIN, 0);
	volatile uint32_t *p;
	struct sci_vm *vm;
	struct member m;

	setenv("SCI_VM", "auto", 1);
	member_open(&m, NULL);
	CHECK_EQ(sci_vm_mode(m.vm), SCI_VM_CACHE);
	p = alloc_for_all(&m, 3 * PAGE, &r);
	p[m.rank * (int)PAGE / 4] = 5 + (uint32_t)m.rank;
	sync_all(&m);
	for (int i = 0; i < m.size; i++)
		CHECK_EQ(p[i * (int)PAGE / 4], 5 + i);
	r.mode = SCI_VM_MAP;
	CHECK_EQ(sci_vm_alloc(m.vm, PAGE, &r, &(void *){ NULL }), -EOPNOTSUPP);
	CHECK_EQ(sci_vm_close(m.vm), 0);
	CHECK_EQ(sci_vm_open(&vm, m.team, &map), -EOPNOTSUPP);
	CHECK_EQ(sci_team_close(m.team), 0);
}

TEST(members_on_sockets_have_copies)
{
	test_needs_shm();
	setenv("SCI_TEST_NET", "unix", 1);
	ranks_run(3, 3, members_on_sockets);
}
