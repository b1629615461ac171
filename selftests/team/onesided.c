// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* One-sided calls: symmetric memory, put and get, atomics, waits for words, locks. */

#include <sci/team.h>

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsci/base/barrier.h"
#include "selftests/ranks.h"

#define FENCED	(1u << 20)	/* bytes of a put before a fence: more than a heap has */

static struct sci_team *team;
static int me, members;

static void open_team(const char *memory, const char *size)
{
	setenv("SCI_TEAM_MEMORY", memory, 1);
	setenv("SCI_SYMMETRIC_SIZE", size, 1);
	CHECK_EQ(sci_team_open(&team, NULL), 0);
	me = sci_team_rank(team);
	members = sci_team_size(team);
}

static void close_team(void)
{
	CHECK_EQ(sci_team_close(team), 0);
}

static void *allocate(size_t len)
{
	void *p;

	CHECK_EQ(sci_team_alloc(team, len, 0, &p), 0);
	memset(p, 0, len);
	CHECK_EQ(sci_team_barrier(team), 0);
	return p;
}

/* Run @fn with shared memory between all members, within nodes, and between no members. */
static void everywhere(void (*fn)(void *arg))
{
	ranks_run_arg(4, 2, fn, (void *)"all", false);
	ranks_run_arg(4, 2, fn, (void *)"node", false);
	ranks_run_arg(3, 1, fn, (void *)"none", false);
}

/* ---- symmetric memory ---- */

static void check_offsets(void *p)
{
	uint64_t at, all[RANKS_MAX];

	at = (uint64_t)((size_t)p - ((struct sci_team_view *)(void *)team)->base);
	CHECK_EQ(sci_team_allgather(team, &at, sizeof(at), all), 0);
	for (int i = 0; i < members; i++)
		CHECK_EQ(all[i], at);
}

static void memory(void *arg)
{
	void *p[20], *big;

	open_team(arg, "256K");
	for (unsigned int i = 0; i < 20; i++) {
		CHECK_EQ(sci_team_alloc(team, 100 * i + 1, 1u << (i % 13), &p[i]), 0);
		CHECK_EQ((size_t)p[i] % (1u << (i % 13)), 0);
		CHECK_EQ(sci_team_alloc_size(team, p[i]), 100 * i + 1);
		check_offsets(p[i]);
	}
	for (unsigned int i = 0; i < 20; i += 3) {
		CHECK_EQ(sci_team_free(team, p[i]), 0);
		CHECK_EQ(sci_team_free(team, p[i]), -EINVAL);
	}
	for (unsigned int i = 0; i < 20; i += 3) {
		CHECK_EQ(sci_team_alloc(team, 50 * i + 1, 0, &p[i]), 0);
		check_offsets(p[i]);
	}
	/* the heap is full: the block is in another piece, at other distances between members */
	CHECK_EQ(sci_team_alloc(team, 1u << 20, 4096, &big), 0);
	memset(big, me + 1, 1u << 20);
	CHECK_EQ(sci_team_barrier(team), 0);
	for (int i = 0; i < members; i++) {
		uint8_t last, *near = sci_team_ptr(team, (uint8_t *)big + (1u << 20) - 1, i);

		CHECK_EQ(sci_team_get(team, &last, (uint8_t *)big + (1u << 20) - 1, 1, i), 0);
		CHECK_EQ(last, i + 1);
		if (near)
			CHECK_EQ(*near, i + 1);
		if (!strcmp(arg, "all") || i == me)
			CHECK(near);
	}
	CHECK_EQ(sci_team_free(team, big), 0);
	/* alignments above a page are the same on all members, too */
	for (size_t align = 8192; align <= 4u << 20; align *= 2) {
		CHECK_EQ(sci_team_alloc(team, 5000, align, &big), 0);
		CHECK_EQ((size_t)big % align, 0);
		memset(big, me + 1, 5000);
		CHECK_EQ(sci_team_barrier(team), 0);
		for (int i = 0; i < members; i++) {
			uint8_t last;

			CHECK_EQ(sci_team_get(team, &last, (uint8_t *)big + 4999, 1, i), 0);
			CHECK_EQ(last, i + 1);
		}
		CHECK_EQ(sci_team_free(team, big), 0);
	}
	CHECK_EQ(sci_team_alloc(team, 8, SCI_TEAM_ALIGN_MAX * 2, &big), -EINVAL);
	CHECK_EQ(sci_team_alloc(team, 8, 8192 + 4096, &big), -EINVAL);
	CHECK_EQ(sci_team_alloc(team, SIZE_MAX - 100, 8192, &big) < 0, true);
	/* a size on which members differ, and a size that no member has, fail on all members */
	CHECK_EQ(sci_team_alloc(team, 64 + (size_t)me, 0, &big), -EINVAL);
	CHECK_EQ(sci_team_alloc(team, (size_t)1 << 50, 0, &big) < 0, true);
	CHECK(!sci_team_ptr(team, &big, me));
	CHECK_EQ(sci_team_put(team, &big, p, 8, 0), -EFAULT);
	CHECK_EQ(sci_team_put(team, p[1], p, 8, members), -EINVAL);
	p[0] = allocate(64);
	check_offsets(p[0]);
	close_team();
}

TEST(offsets_are_the_same_on_all_members)
{
	everywhere(memory);
}

static uint8_t data[4 * 4096] __attribute__((aligned(4096))) = { 42, 43 };

static void registered(void *arg)
{
	uint8_t got[3];

	open_team(arg, "64K");
	data[2] = (uint8_t)(me + 1);
	CHECK_EQ(sci_team_register(team, data, sizeof(data)), 0);
	CHECK_EQ(data[0], 42);
	CHECK_EQ(data[2], me + 1);
	for (int i = 0; i < members; i++) {
		CHECK_EQ(sci_team_get(team, got, data, 3, i), 0);
		CHECK_EQ(got[0], 42);
		CHECK_EQ(got[2], i + 1);
	}
	CHECK_EQ(sci_team_register(team, data + 1, 4096), -EINVAL);
	close_team();
}

TEST(data_of_the_program_becomes_symmetric)
{
	everywhere(registered);
}

/* ---- put and get ---- */

static void copies(void *arg)
{
	size_t sizes[] = { 1, 2, 4, 8, 63, 4096, 100000 }, at = 0;
	uint8_t *mem, *buf = malloc(100000), *got = malloc(100000);
	uint16_t grid[40], back[40];
	int next;

	open_team(arg, "4M");
	next = (me + 1) % members;
	mem = allocate(300000);
	for (unsigned int i = 0; i < ARRAY_LEN(sizes); i++) {
		test_fill(buf, sizes[i], (unsigned int)me + i);
		if (i % 2)
			CHECK_EQ(sci_team_put(team, mem + at, buf, sizes[i], next), 0);
		else
			CHECK_EQ(sci_team_put_nbi(team, mem + at, buf, sizes[i], next), 0);
		CHECK_EQ(sci_team_quiet(team), 0);
		CHECK_EQ(sci_team_get(team, got, mem + at, sizes[i], next), 0);
		CHECK(test_filled(got, sizes[i], (unsigned int)me + i));
		memset(got, 0, sizes[i]);
		CHECK_EQ(sci_team_get_nbi(team, got, mem + at, sizes[i], next), 0);
		CHECK_EQ(sci_team_quiet(team), 0);
		CHECK(test_filled(got, sizes[i], (unsigned int)me + i));
		at += sizes[i];
	}
	CHECK_EQ(sci_team_barrier(team), 0);
	at = 0;
	for (unsigned int i = 0; i < ARRAY_LEN(sizes); i++) {
		CHECK(test_filled(mem + at, sizes[i],
				  (unsigned int)((me - 1 + members) % members) + i));
		at += sizes[i];
	}
	for (unsigned int i = 0; i < 40; i++)
		grid[i] = (uint16_t)(i + 100u * (unsigned int)me);
	memset(back, 0, sizeof(back));
	mem += 200000;
	/* every second element goes to every third one */
	CHECK_EQ(sci_team_put_strided(team, mem, 6, grid, 4, 2, 20, next), 0);
	CHECK_EQ(sci_team_quiet(team), 0);
	CHECK_EQ(sci_team_get_strided(team, back + 19, -2, mem, 6, 2, 20, next), 0);
	for (unsigned int i = 0; i < 20; i++)
		CHECK_EQ(back[19 - i], grid[2 * i]);
	/* the same backwards, then elements beyond the memory: none is copied */
	CHECK_EQ(sci_team_get_strided(team, back, 2, mem + 19 * 6, -6, 2, 20, next), 0);
	for (unsigned int i = 0; i < 20; i++)
		CHECK_EQ(back[i], grid[2 * (19 - i)]);
	CHECK_EQ(sci_team_put_strided(team, mem, 6, grid, 4, 0, 20, next), 0);
	CHECK_EQ(sci_team_put_strided(team, mem, 6, NULL, 4, 2, 0, next), 0);
	CHECK_EQ(sci_team_get_strided(team, back, 0, mem, PTRDIFF_MAX / 4, 1, 3, next), -EFAULT);
	CHECK_EQ(sci_team_get_strided(team, back, 0, mem, PTRDIFF_MIN, 1, 2, next), -EFAULT);
	CHECK_EQ(sci_team_get_strided(team, back, 0, mem, PTRDIFF_MAX, 1, 3, next), -EFAULT);
	CHECK_EQ(sci_team_get_strided(team, back, 2, mem, 2, SIZE_MAX / 2, 3, next), -EFAULT);
	CHECK_EQ(sci_team_put_strided(team, NULL, 2, back, 2, 2, 3, next), -EFAULT);
	free(buf);
	free(got);
	close_team();
}

TEST(put_and_get)
{
	everywhere(copies);
}

/*
 * A flag that is put after a fence arrives after the data. The data of each round goes to new memory.
 * A far member imports new memory first, and meanwhile the flag could overtake the data.
 */
static void fences(void *arg)
{
	uint64_t *flag, round = 0;
	uint8_t *buf = malloc(FENCED);
	int next, before;

	open_team(arg, "64K");
	next = (me + 1) % members;
	before = (me - 1 + members) % members;
	flag = allocate(sizeof(*flag));
	CHECK_EQ(sci_team_put(team, flag, &round, sizeof(round), next), 0);
	for (round = 1; round <= 5; round++) {
		uint8_t *box = allocate(FENCED);

		test_fill(buf, FENCED, (unsigned int)round * 10 + (unsigned int)me);
		CHECK_EQ(sci_team_put_nbi(team, box, buf, FENCED, next), 0);
		CHECK_EQ(sci_team_fence(team), 0);
		CHECK_EQ(sci_team_put_nbi(team, flag, &round, sizeof(round), next), 0);
		CHECK_EQ(sci_team_wait_until(team, flag, sizeof(*flag), SCI_CMP_EQ, round, -1), 0);
		CHECK(test_filled(box, FENCED, (unsigned int)round * 10 + (unsigned int)before));
		CHECK_EQ(sci_team_barrier(team), 0);
	}
	CHECK_EQ(sci_team_fence(NULL), -EINVAL);
	free(buf);
	close_team();
}

TEST(a_fence_orders_puts)
{
	everywhere(fences);
}

/* ---- signals and words ---- */

/* Both calls give the same pointers to @block. */
static void check_pointers(void *block)
{
	for (int i = 0; i < members; i++)
		CHECK(sci_team_ptr_any(team, block, i) == sci_team_ptr(team, block, i));
	CHECK(sci_team_ptr_any(team, block, me) == block);
	CHECK(!sci_team_ptr_any(team, block, members));
	CHECK(!sci_team_ptr_any(team, block, -1));
	CHECK(!sci_team_ptr_any(team, &block, me));
}

static void signals(void *arg)
{
	uint64_t *signal, *sum, indices_seen = 0, value;
	size_t index, found, indices[8];
	uint8_t *box, mine[512];
	int skip[8] = { 0 };
	struct sci_words w;
	int next, before, ret;

	open_team(arg, "64K");
	next = (me + 1) % members;
	before = (me - 1 + members) % members;
	box = allocate(512);
	check_pointers(box);
	signal = allocate(8 * 8);
	sum = allocate(8);
	for (unsigned int round = 1; round <= 200; round++) {
		test_fill(mine, 512, round * 10 + (unsigned int)me);
		CHECK_EQ(sci_team_put_signal(team, box, mine, 512, signal, round,
					     SCI_SIGNAL_SET, next), 0);
		CHECK_EQ(sci_team_wait_until(team, signal, 8, SCI_CMP_GE, round, -1), 0);
		CHECK(test_filled(box, 512, round * 10 + (unsigned int)before));
		CHECK_EQ(sci_team_put_signal_nbi(team, box, mine, 0, sum, 1, SCI_SIGNAL_ADD,
						 before), 0);
		CHECK_EQ(sci_team_wait_until(team, sum, 8, SCI_CMP_EQ, round, -1), 0);
	}
	CHECK_EQ(sci_team_barrier(team), 0);
	memset(signal, 0, 64);
	CHECK_EQ(sci_team_barrier(team), 0);

	w = (struct sci_words){ .words = signal, .n = 8, .skip = skip, .size = 8,
				.cmp = SCI_CMP_NE };
	CHECK_EQ(sci_team_wait_any(team, &w, 0, &index), -EAGAIN);
	CHECK_EQ(sci_team_wait_any(team, &w, 10, &index), -ETIMEDOUT);
	CHECK_EQ(sci_team_wait_all(team, &w, 0), -EAGAIN);
	CHECK_EQ(sci_team_barrier(team), 0);
	for (uint64_t i = 0; i < 8; i++) {
		value = 100 + i;
		CHECK_EQ(sci_team_put(team, &signal[7 - i], &value, 8, next), 0);
	}
	for (unsigned int i = 0; i < 4; i++) {
		CHECK_EQ(sci_team_wait_any(team, &w, -1, &index), 0);
		CHECK_EQ(skip[index], 0);
		skip[index] = 1;
		indices_seen |= 1u << index;
	}
	while ((ret = sci_team_wait_some(team, &w, -1, indices, &found)) == 0)
		for (size_t i = 0; i < found; i++) {
			CHECK_EQ(skip[indices[i]], 0);
			skip[indices[i]] = 1;
			indices_seen |= 1u << indices[i];
		}
	CHECK_EQ(ret, -ENOENT);
	CHECK_EQ(sci_team_wait_any(team, &w, -1, &index), -ENOENT);
	CHECK_EQ(indices_seen, 255);
	CHECK_EQ(sci_team_wait_all(team, &w, 0), 0);
	w.cmp = 99;
	CHECK_EQ(sci_team_wait_all(team, &w, 0), -EINVAL);
	close_team();
}

TEST(signals_and_words)
{
	everywhere(signals);
}

TEST(comparisons_know_signs_and_sizes)
{
	int16_t s = -3;
	uint32_t u = 0xfffffff0u;
	int64_t l = -1;

	CHECK_EQ(sci_team_open(&team, NULL), 0);
	CHECK_EQ(sci_team_wait_until(team, &s, 2, SCI_CMP_LT, 2, 0), 0);
	CHECK_EQ(sci_team_wait_until(team, &s, 2, SCI_CMP_LT | SCI_CMP_UNSIGNED, 2, 0), -EAGAIN);
	CHECK_EQ(sci_team_wait_until(team, &u, 4, SCI_CMP_GT, 0, 0), -EAGAIN);
	CHECK_EQ(sci_team_wait_until(team, &u, 4, SCI_CMP_GT | SCI_CMP_UNSIGNED, 0, 0), 0);
	CHECK_EQ(sci_team_wait_until(team, &l, 8, SCI_CMP_LE, (uint64_t)-1, 0), 0);
	CHECK_EQ(sci_team_wait_until(team, &l, 8, SCI_CMP_EQ, UINT64_MAX, 0), 0);
	CHECK_EQ(sci_team_wait_until(team, &l, 3, SCI_CMP_EQ, 0, 0), -EINVAL);
	close_team();
}

/* ---- atomics ---- */

static void atomics(void *arg)
{
	uint64_t *w, old = 0, all[RANKS_MAX], sum = 0, seen[100];
	uint32_t *half;
	int n;

	open_team(arg, "64K");
	n = members;
	w = allocate(64);
	half = (uint32_t *)(w + 4);
	for (int i = 0; i < 300; i++)
		CHECK_EQ(sci_team_atomic(team, &w[0], 8, SCI_ATOMIC_ADD, 3, 0,
					 i % 2 ? &old : NULL, i % n), 0);
	for (int i = 0; i < 100; i++) {
		seen[i] = 1000;
		CHECK_EQ(sci_team_atomic_nbi(team, half, 4, SCI_ATOMIC_ADD, 1, 0, &seen[i], 0), 0);
	}
	CHECK_EQ(sci_team_quiet(team), 0);
	for (int i = 1; i < 100; i++)
		CHECK(seen[i] > seen[i - 1] && seen[i] < 100u * (unsigned int)n);
	/* the member that finds 0 stores its number */
	old = 1;
	CHECK_EQ(sci_team_atomic(team, &w[1], 8, SCI_ATOMIC_CAS, (uint64_t)me + 1, 0, &old, 1), 0);
	old = old ? 0 : (uint64_t)me + 1;
	CHECK_EQ(sci_team_atomic(team, &w[2], 8, SCI_ATOMIC_OR, 1u << me, 0, NULL, 0), 0);
	CHECK_EQ(sci_team_atomic(team, &w[3], 8, SCI_ATOMIC_XOR, 3u << me, 0, NULL, 0), 0);
	CHECK_EQ(sci_team_quiet(team), 0);
	CHECK_EQ(sci_team_allgather(team, &old, 8, all), 0);
	CHECK_EQ(sci_team_barrier(team), 0);
	for (int i = 0; i < n; i++)
		sum += all[i];
	CHECK_EQ(sci_team_atomic(team, &w[1], 8, SCI_ATOMIC_GET, 0, 0, &old, 1), 0);
	CHECK_EQ(sum, old);
	CHECK(old);
	/* of 0 to 299, the numbers with the remainder @me by @n */
	CHECK_EQ(w[0], 3 * n * ((299 - me) / n + 1));
	if (!me) {
		CHECK_EQ(*half, 100 * n);
		CHECK_EQ(half[1], 0);
		CHECK_EQ(w[2], (1u << n) - 1);
		CHECK_EQ(w[3], 1u | 1u << n);
	}
	CHECK_EQ(sci_team_barrier(team), 0);
	CHECK_EQ(sci_team_atomic(team, &w[2], 8, SCI_ATOMIC_AND, ~(uint64_t)(1u << me), 0,
				 NULL, 0), 0);
	CHECK_EQ(sci_team_atomic(team, &w[3], 8, SCI_ATOMIC_SET, (uint64_t)me, 0, &old, me), 0);
	CHECK_EQ(sci_team_quiet(team), 0);
	CHECK_EQ(sci_team_barrier(team), 0);
	CHECK_EQ(w[3], me);
	if (!me)
		CHECK_EQ(w[2], 0);
	CHECK_EQ(sci_team_atomic(team, (char *)w + 1, 8, SCI_ATOMIC_ADD, 1, 0, NULL, 0), -EINVAL);
	CHECK_EQ(sci_team_atomic(team, w, 2, SCI_ATOMIC_ADD, 1, 0, NULL, 0), -EINVAL);
	close_team();
}

TEST(atomics_lose_nothing)
{
	everywhere(atomics);
}

/* ---- locks ---- */

static void locks(void *arg)
{
	uint64_t *lock, *count, v;

	open_team(arg, "64K");
	lock = allocate(8);
	count = allocate(8);
	for (int i = 0; i < 100; i++) {
		CHECK_EQ(sci_team_lock(team, lock, -1), 0);
		CHECK_EQ(sci_team_get(team, &v, count, 8, 0), 0);
		v++;
		CHECK_EQ(sci_team_put(team, count, &v, 8, 0), 0);
		CHECK_EQ(sci_team_unlock(team, lock), 0);
	}
	CHECK_EQ(sci_team_barrier(team), 0);
	CHECK_EQ(sci_team_get(team, &v, count, 8, 0), 0);
	CHECK_EQ(v, 100 * members);
	CHECK_EQ(sci_team_unlock(team, lock), -EPERM);
	CHECK_EQ(sci_team_barrier(team), 0);
	if (me == 1)
		CHECK_EQ(sci_team_lock(team, lock, 0), 0);
	CHECK_EQ(sci_team_barrier(team), 0);
	/* members that give up leave no ticket for which others would wait */
	if (me != 1) {
		CHECK_EQ(sci_team_lock(team, lock, 0), -EAGAIN);
		CHECK_EQ(sci_team_lock(team, lock, 20), -ETIMEDOUT);
	}
	CHECK_EQ(sci_team_barrier(team), 0);
	if (me == 1)
		CHECK_EQ(sci_team_unlock(team, lock), 0);
	CHECK_EQ(sci_team_lock(team, lock, -1), 0);
	CHECK_EQ(sci_team_unlock(team, lock), 0);
	close_team();
}

TEST(locks_exclude)
{
	everywhere(locks);
}

/* Return the sum over all members. */
static uint64_t sum_of(uint64_t value)
{
	uint64_t sum;

	CHECK_EQ(sci_team_allreduce(team, &value, &sum, 1, sci_op(SCI_OP_SUM, SCI_TYPE_UINT64)), 0);
	return sum;
}

/*
 * Return the number of messages to handlers so far, of all members. An atomic counts as two: request
 * and answer.
 */
static uint64_t lock_messages(void)
{
	struct sci_ep_stats stats = { .size = sizeof(stats) };

	CHECK_EQ(sci_team_barrier(team), 0);
	CHECK_EQ(sci_ep_stats(sci_team_ep(team), &stats), 0);
	return sum_of(2 * stats.atomics + stats.handled);
}

/* Release the lock when all other members wait for it. */
static void unlock_late(uint64_t *lock)
{
	uint16_t before = (uint16_t)(sci_load_acquire(lock) >> 32);

	while ((uint16_t)((sci_load_acquire(lock) >> 48) - before) != members)
		CHECK_EQ(sci_team_progress(team), 0);
	for (int i = 0; i < 1000; i++) {
		sched_yield();
		CHECK_EQ(sci_team_progress(team), 0);
	}
	CHECK_EQ(sci_team_unlock(team, lock), 0);
}

/* A member that waits for a lock in far memory sends nothing while it waits. */
static void locks_cost(void *arg)
{
	uint64_t *lock, before, far;
	const int tries = 20;

	open_team(arg, "64K");
	lock = allocate(8);
	far = sum_of(!sci_team_ptr(team, lock, 0));
	if (!me)
		CHECK_EQ(sci_team_lock(team, lock, -1), 0);
	before = lock_messages();
	for (int i = 0; me && i < tries; i++)
		CHECK_EQ(sci_team_lock(team, lock, 0), -EAGAIN);
	CHECK_EQ(lock_messages() - before, 2 * far * tries);
	before = lock_messages();
	if (me) {
		CHECK_EQ(sci_team_lock(team, lock, -1), 0);
		CHECK_EQ(sci_team_unlock(team, lock), 0);
	} else {
		unlock_late(lock);
	}
	CHECK_EQ(lock_messages() - before, 4 * far);
	close_team();
}

TEST(a_lock_costs_four_messages_however_long_the_wait)
{
	everywhere(locks_cost);
	ranks_run_arg(8, 2, locks_cost, (void *)"node", false);
}

static _Atomic int *stage;		/* shared by all processes */

/* There is no room for the request of a member until rank 0 makes progress, after the time limit. */
static void lock_without_room(void *arg)
{
	struct sci_peer *peer;
	uint64_t *lock;
	int ret = 0;

	open_team(arg, "64K");
	lock = allocate(8);
	if (me) {
		CHECK_EQ(sci_team_peer(team, 0, &peer), 0);
		WAIT_UNTIL(atomic_load(stage), TEST_WAIT_MS);
		while (!ret)
			ret = sci_handler_send(peer, SCI_HANDLER_USER, 0, NULL, 0);
		CHECK_EQ(ret, -EAGAIN);
		CHECK_EQ(sci_team_lock(team, lock, 1), -ETIMEDOUT);
		atomic_store(stage, 2);
	} else {
		atomic_store(stage, 1);
		WAIT_UNTIL(atomic_load(stage) == 2, TEST_WAIT_MS);
	}
	CHECK_EQ(sci_team_lock(team, lock, -1), 0);
	CHECK_EQ(sci_team_unlock(team, lock), 0);
	close_team();
}

TEST(a_lock_times_out_before_its_request_is_sent)
{
	stage = test_shared(sizeof(*stage));
	ranks_run_arg(2, 1, lock_without_room, (void *)"none", false);
}

/* Open the team, and return a lock that rank 0 holds. */
static uint64_t *lock_of_rank_0(void *arg)
{
	uint64_t *lock;

	open_team(arg, "64K");
	lock = allocate(8);
	if (!me)
		CHECK_EQ(sci_team_lock(team, lock, -1), 0);
	CHECK_EQ(sci_team_barrier(team), 0);
	return lock;
}

/* The connection of a member that waits ends. Rank 0 is alive, but there will be no answer. */
static void lock_without_connection(void *arg)
{
	struct sci_peer *peer;
	uint64_t *lock;

	lock = lock_of_rank_0(arg);
	if (me) {
		CHECK_EQ(sci_team_lock(team, lock, -1), -ECONNRESET);
		atomic_store(stage, 1);
		CHECK_EQ(sci_team_close(team), 0);
		return;
	}
	WAIT_UNTIL((sci_team_progress(team), sci_load_acquire(lock) >> 48 == 2), TEST_WAIT_MS);
	CHECK_EQ(sci_team_peer(team, 1, &peer), 0);
	CHECK_EQ(sci_disconnect(peer), 0);
	/* the team cannot be used any more */
	WAIT_UNTIL(atomic_load(stage), TEST_WAIT_MS);
	raise(SIGKILL);
}

TEST(the_end_of_the_connection_ends_the_wait_for_a_lock)
{
	stage = test_shared(sizeof(*stage));
	ranks_run_arg(2, 1, lock_without_connection, (void *)"none", true);
}

/* Send rank 0 requests to take a lock, as lock_far.c does, and wait for none of the answers. */
static void requests_send(struct sci_peer *peer, uint64_t *lock, int n)
{
	const struct {
		uint64_t offset;
		uint32_t region, rank, op;
		int32_t result;
	} request = {
		.offset = (size_t)lock - ((struct sci_team_view *)(void *)team)->base,
		.rank = (uint32_t)me, .op = 1,
	};

	for (int i = 0; i < n;) {
		int ret = sci_handler_send(peer, SCI_HANDLER_USER - 1, UINT64_MAX - (uint64_t)i,
					   &request, sizeof(request));

		if (ret == -EAGAIN)
			ret = sci_team_progress(team);
		else
			i++;
		CHECK_EQ(ret, 0);
	}
}

/* The connection of a member ends before it gets the lock: other members can take the lock. */
static void lock_for_nobody(void *arg)
{
	struct sci_peer *peer;
	uint64_t *lock;

	lock = lock_of_rank_0(arg);
	CHECK_EQ(sci_team_peer(team, !me, &peer), 0);
	if (me) {
		requests_send(peer, lock, 1);
		CHECK_EQ(sci_disconnect(peer), 0);
		/* the team cannot be used any more */
		WAIT_UNTIL(atomic_load(stage), TEST_WAIT_MS);
		raise(SIGKILL);
	}
	WAIT_UNTIL((sci_team_progress(team), sci_load_acquire(lock) >> 48 == 2 &&
		    sci_peer_state(peer)), TEST_WAIT_MS);
	CHECK_EQ(sci_team_unlock(team, lock), 0);
	CHECK_EQ(sci_team_lock(team, lock, TEST_WAIT_MS), 0);
	CHECK_EQ(sci_team_unlock(team, lock), 0);
	atomic_store(stage, 1);
	CHECK_EQ(sci_team_close(team), 0);
}

TEST(a_member_without_a_connection_does_not_keep_a_lock)
{
	stage = test_shared(sizeof(*stage));
	ranks_run_arg(2, 1, lock_for_nobody, (void *)"none", true);
}

/* A member sends more requests than there are tickets. */
static void locks_flood(void *arg)
{
	struct sci_peer *peer;
	uint64_t *lock;

	lock = lock_of_rank_0(arg);
	CHECK_EQ(sci_team_peer(team, !me, &peer), 0);
	if (me)
		requests_send(peer, lock, 0x9000);
	CHECK_EQ(sci_team_barrier(team), 0);
	if (!me)
		CHECK_EQ(sci_load_acquire(lock) >> 48, 0x8000);
	close_team();
}

TEST(waiting_requests_for_locks_are_limited)
{
	if (TEST_TSAN)
		SKIP("one thread, for which the thread sanitizer takes long");
	ranks_run_arg(2, 1, locks_flood, (void *)"none", false);
}

/* ---- messages through the team's endpoint ---- */

static void messages(void *arg)
{
	struct sci_peer *peer;
	struct sci_addr addr, own;
	struct sci_req *req;
	int v = -1;

	open_team(arg, "64K");
	CHECK_EQ(sci_team_addr(team, me, &addr), 0);
	CHECK_EQ(sci_ep_addr(sci_team_ep(team), &own), 0);
	CHECK_EQ(own.id, addr.id);
	CHECK_EQ(sci_team_addr(team, members, &addr), -EINVAL);
	CHECK_EQ(sci_team_addr(team, -1, &addr), -EINVAL);
	CHECK_EQ(sci_team_peer(team, (me + 1) % members, &peer), 0);
	CHECK_EQ(sci_itsend(peer, 7, 1, &me, sizeof(me), &req), 0);
	CHECK_EQ(sci_trecv(sci_team_ep(team), NULL, 7, 1, 0, &v, sizeof(v), NULL), 0);
	CHECK_EQ(v, (me - 1 + members) % members);
	CHECK_EQ(sci_wait(req, -1, NULL), 0);
	CHECK_EQ(sci_team_barrier(team), 0);
	close_team();
}

TEST(messages_between_members)
{
	everywhere(messages);
}

TEST(a_child_has_no_team)
{
	struct sci_addr addr;
	void *block;
	uint64_t v;
	pid_t pid;
	int status;

	CHECK_EQ(sci_team_open(&team, NULL), 0);
	CHECK_EQ(sci_team_alloc(team, 8, 0, &block), 0);
	pid = test_fork();
	if (!pid)
		_exit(sci_team_barrier(team) != -ENOTCONN ||
		      sci_team_put(team, &v, &v, 8, 0) != -ENOTCONN ||
		      sci_team_fence(team) != -ENOTCONN ||
		      sci_team_quiet(team) != -ENOTCONN ||
		      sci_team_free(team, block) != -ENOTCONN ||
		      sci_team_addr(team, 0, &addr) != -ENOTCONN);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(sci_team_open(&team, NULL), -EALREADY);
	close_team();
	CHECK_EQ(sci_team_open(&team, NULL), 0);
	close_team();
}
