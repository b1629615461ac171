// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * The memory of one process ends during a collective call: at its first allocation, at its
 * second one, and so on, until the call succeeds. The call must return the same in all members.
 */

#include <sci/team.h>

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsci/team/boot.h"
#include "selftests/ranks.h"

/* ---- the allocator ---- */

static _Atomic int allocations = -1;	/* number that may still succeed; negative: all */
static _Atomic bool refused;		/* an allocation has failed */

#if !TEST_ASAN && !TEST_TSAN

void *__libc_malloc(size_t len);
void *__libc_calloc(size_t n, size_t len);
void *__libc_realloc(void *p, size_t len);

static bool memory_ends(void)
{
	int n = atomic_load(&allocations);

	while (n > 0 && !atomic_compare_exchange_weak(&allocations, &n, n - 1))
		;
	if (n)
		return false;
	atomic_store(&refused, true);
	errno = ENOMEM;
	return true;
}

void *malloc(size_t len)
{
	return memory_ends() ? NULL : __libc_malloc(len);
}

void *calloc(size_t n, size_t len)
{
	return memory_ends() ? NULL : __libc_calloc(n, len);
}

void *realloc(void *p, size_t len)
{
	return memory_ends() ? NULL : __libc_realloc(p, len);
}

#endif

/* ---- the calls ---- */

#define HEAP	(64u << 10)

static struct sci_team *all;
static int rank, size;

static void open_all(void)
{
	const struct sci_team_attr attr = { .size = sizeof(attr), .symmetric_size = HEAP };

	CHECK_EQ(sci_team_open(&all, &attr), 0);
	rank = sci_team_rank(all);
	size = sci_team_size(all);
}

/*
 * Set if a connection has ended for lack of memory; shared by all processes. NULL: the members need
 * no connections.
 */
static _Atomic bool *broken;

static bool connection_is_lost(int ret)
{
	if (!broken || (ret != -ENOBUFS && ret != -ECONNRESET))
		return false;
	atomic_store(broken, true);
	return true;
}

/* Called before each call of exhaust(), with memory. */
static void (*prepare)(void);

/*
 * Repeat @call with more memory, until all members succeed and no allocation of the last member
 * fails. @undo: releases the result of a successful call. Return false if a connection has ended:
 * then the members may get different errors.
 */
static bool exhaust(int (*call)(void), void (*undo)(void))
{
	struct outcome {
		int ret, refused;
	} mine, them[RANKS_MAX];
	int ret;

	for (int n = 0; n < 1000; n++) {
		if (prepare)
			prepare();
		atomic_store(&refused, false);
		if (rank == size - 1)
			atomic_store(&allocations, n);
		mine.ret = call();
		atomic_store(&allocations, -1);
		if (mine.ret == -EAGAIN && rank == size - 1)
			mine.ret = call();	/* the other members wait for this one */
		mine.refused = atomic_load(&refused);
		ret = sci_team_allgather(all, &mine, sizeof(mine), them);
		if (connection_is_lost(ret))
			return false;
		CHECK_EQ(ret, 0);
		for (int i = 0; i < size; i++)
			if (connection_is_lost(them[i].ret))
				return false;
		for (int i = 0; i < size; i++)
			CHECK_EQ(mine.ret, them[i].ret);
		if (!mine.ret)
			undo();
		if (!mine.ret && !them[size - 1].refused)
			return true;
		if (mine.ret && mine.ret != -ENOSPC)
			CHECK_EQ(mine.ret, -ENOMEM);
	}
	FAIL("the call never succeeds");
	return false;
}

static struct sci_team *made, *parent;
static void *block;

static int create(void)
{
	int ranks[RANKS_MAX];

	for (int i = 0; i < size; i++)
		ranks[i] = size - 1 - i;
	return sci_team_create(all, ranks, size, &made);
}

static int split(void)
{
	return sci_team_split(all, rank & 1, -rank, &made);
}

static int split_parent(void)
{
	return sci_team_split(parent, 0, 0, &made);
}

/* The member without memory gets no team. */
static int split_without(void)
{
	return sci_team_split(all, rank == size - 1 ? -1 : 0, 0, &made);
}

static void leave(void)
{
	if (!made)
		return;
	CHECK_EQ(sci_team_barrier(made), 0);
	CHECK_EQ(sci_team_close(made), 0);
	made = NULL;
}

static int allocate(void)
{
	return sci_team_alloc(all, 1000, 0, &block);
}

/* Allocate more than the heap has. */
static int extend(void)
{
	return sci_team_alloc(all, 2 * HEAP, 0, &block);
}

static void give_back(void)
{
	CHECK_EQ(sci_team_free(all, block), 0);
}

/* ---- collective calls through messages ---- */

#define LONG	(96u << 10)		/* more than the team's buffers and than one segment */

static size_t part;			/* bytes of each member */
static uint8_t *in, *out;		/* parts of all members */

static int barrier(void)
{
	return sci_team_barrier(all);
}

static int bcast(void)
{
	return sci_team_bcast(all, 1, rank == 1 ? in : out, part);
}

static int allreduce(void)
{
	return sci_team_allreduce(all, in, out, part / 4, sci_op(SCI_OP_MAX, SCI_TYPE_UINT32));
}

static int reduce(void)
{
	return sci_team_reduce(all, 1, in, out, part / 4, sci_op(SCI_OP_MAX, SCI_TYPE_UINT32));
}

static int scatter_sums(void)
{
	return sci_team_reduce_scatter(all, in, out, part / 4,
				       sci_op(SCI_OP_MAX, SCI_TYPE_UINT32));
}

static int scan(void)
{
	return sci_team_scan(all, in, out, part / 4, sci_op(SCI_OP_MAX, SCI_TYPE_UINT32));
}

static int gather(void)
{
	return sci_team_gather(all, 1, in, part, out);
}

static int scatter(void)
{
	return sci_team_scatter(all, 1, in, out, part);
}

static int allgather(void)
{
	return sci_team_allgather(all, in, part, out);
}

static int alltoall(void)
{
	return sci_team_alltoall(all, in, out, part);
}

/* The non-blocking form of barrier(). */
static int ibarrier(void)
{
	struct sci_coll *c;
	int ret = sci_team_ibarrier(all, &c);

	return ret ? ret : sci_coll_wait(c, -1);
}

static int iallreduce(void)
{
	struct sci_coll *c;
	int ret = sci_team_iallreduce(all, in, out, part / 4,
				      sci_op(SCI_OP_MAX, SCI_TYPE_UINT32), &c);

	return ret ? ret : sci_coll_wait(c, -1);
}

/* Return whether the end of memory has broken the team: then every member gets an error. */
static bool team_is_broken(int ret)
{
	if (!ret)
		return false;
	if (ret != -ENOBUFS)
		CHECK_EQ(ret, -ECONNRESET);
	atomic_store(broken, true);
	return true;
}

/*
 * The memory of a member ends in @call. If the member gets -ENOMEM, it calls again. The other
 * members wait for it and get the result of one call. Return false if the team is broken.
 */
static bool repeat(int (*call)(void))
{
	int32_t missed, most;
	int n = 0;

	do {
		int ret;

		CHECK(n < 1000);
		memset(out, 0, part * (size_t)size);
		atomic_store(&refused, false);
		if (rank == size - 1)
			atomic_store(&allocations, n++);
		ret = call();
		atomic_store(&allocations, -1);
		if (ret == -ENOMEM && rank == size - 1)
			ret = call();
		missed = atomic_load(&refused);
		if (!ret)
			ret = sci_team_allreduce(all, &missed, &most, 1,
						 sci_op(SCI_OP_MAX, SCI_TYPE_INT32));
		if (team_is_broken(ret))
			return false;
	} while (most);
	return true;
}

static void repeats(void)
{
	static int (*const calls[])(void) = {
		barrier, bcast, allreduce, reduce, scatter_sums, scan, gather, scatter,
		allgather, alltoall, ibarrier, iallreduce,
	};

	setenv("SCI_TEAM_MEMORY", "node", 1);
	open_all();
	in = malloc(LONG * (size_t)size);
	out = malloc(LONG * (size_t)size);
	CHECK(in && out);
	memset(in, rank + 1, LONG * (size_t)size);
	for (part = 8; part <= LONG; part *= 16)
		for (unsigned int i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
			if (!repeat(calls[i]))
				return;
			if (calls[i] == allreduce || calls[i] == iallreduce)
				CHECK_EQ(out[part - 1], size);
			if (calls[i] == bcast && rank != 1)
				CHECK_EQ(out[part - 1], 2);
			if (calls[i] == allgather || calls[i] == alltoall)
				CHECK_EQ(out[part * (size_t)size - 1], size);
		}
	free(in);
	free(out);
	CHECK_EQ(sci_team_close(all), 0);
}

/* ---- a connection that fails for lack of memory ---- */

/* Return whether a call has failed for lack of memory, or because of the connection's end. */
static bool is_broken(int ret)
{
	return ret == -ENOBUFS || ret == -ECONNRESET;
}

/* Open the connection to @to, with less memory than that needs. */
static void connection_lose(int to)
{
	struct sci_peer *peer;
	int ret = -ENOMEM;

	for (int n = 0; ret == -ENOMEM; n++) {
		CHECK(n < 1000);
		atomic_store(&allocations, n);
		ret = sci_team_peer(all, to, &peer);
		atomic_store(&allocations, -1);
	}
	CHECK_EQ(ret, 0);
	WAIT_UNTIL((sci_team_progress(all), sci_peer_state(peer) == -ENOMEM), TEST_WAIT_MS);
}

/* Ranks 1 and 3 are the only ones without a connection before the scan. */
static void connection_fails(void)
{
	static uint8_t bytes[8 * RANKS_MAX];
	int ret;

	setenv("SCI_TEAM_MEMORY", "node", 1);
	open_all();
	in = out = bytes;
	part = 8;
	CHECK_EQ(barrier(), 0);
	if (rank == 3)
		connection_lose(1);
	/* rank 1 may have told of the end of the connection already */
	ret = barrier();
	CHECK(!ret || is_broken(ret));
	/* it may succeed: rank 1 may send its message on a new connection */
	scan();
	CHECK(is_broken(barrier()));
	CHECK_EQ(sci_team_close(all), 0);
}

static _Atomic int *left;		/* number of ranks that have left the job; shared */

/* Ranks 0 and 1 lose their connections to rank 3. It closes the broken team after them. */
static void rank_closes_last(void)
{
	static uint8_t bytes[8 * RANKS_MAX];

	setenv("SCI_TEAM_MEMORY", "node", 1);
	open_all();
	in = out = bytes;
	part = 8;
	CHECK_EQ(barrier(), 0);
	if (rank < 2)
		connection_lose(3);
	CHECK_EQ(barrier(), 0);
	scan();
	CHECK(is_broken(barrier()));
	if (rank == 3)
		WAIT_UNTIL(atomic_load(left) == 2, TEST_WAIT_MS);
	CHECK_EQ(sci_team_close(all), 0);
	if (rank < 2)
		atomic_fetch_add(left, 1);
}

/* ---- shrinking ---- */

/*
 * A member without memory for the first steps is left out: the other members get a team without
 * it. If its memory ends later, no member gets a team, and all can call again.
 */
static void shrink_once(int n, bool *again)
{
	struct {
		int ret, size;
	} mine, them[RANKS_MAX];
	struct sci_team *shrunk = NULL;

	CHECK_EQ(create(), 0);
	if (rank == size - 1)
		atomic_store(&allocations, n);
	mine.ret = sci_team_shrink(made, &shrunk);
	atomic_store(&allocations, -1);
	mine.size = mine.ret ? 0 : sci_team_size(shrunk);
	CHECK_EQ(sci_team_allgather(all, &mine, sizeof(mine), them), 0);
	for (int i = 0; i < size - 1; i++) {
		CHECK_EQ(them[i].ret, them[0].ret);
		CHECK_EQ(them[i].size, them[0].ret ? 0 : size - (them[size - 1].ret != 0));
	}
	if (them[0].ret) {
		CHECK(them[size - 1].ret);
		CHECK_EQ(sci_team_shrink(made, &shrunk), 0);
		CHECK_EQ(sci_team_size(shrunk), size);
	}
	if (shrunk) {
		CHECK_EQ(sci_team_barrier(shrunk), 0);
		CHECK_EQ(sci_team_close(shrunk), 0);
	} else {
		CHECK_EQ(sci_team_shrink(made, &shrunk), -ECONNRESET);
	}
	CHECK_EQ(sci_team_close(made), 0);
	made = NULL;
	mine.ret = atomic_exchange(&refused, false);
	CHECK_EQ(sci_team_allgather(all, &mine, sizeof(mine), them), 0);
	*again = them[size - 1].ret;
}

static void shrinks(void)
{
	bool again = true;

	open_all();
	for (int n = 0; again; n++) {
		CHECK(n < 1000);
		shrink_once(n, &again);
	}
	CHECK_EQ(sci_team_close(all), 0);
}

/* Count the mappings of shared memory. */
static int maps_count(void)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), count = 0;
	char text[4096];
	ssize_t n;

	CHECK(fd >= 0);
	while ((n = read(fd, text, sizeof(text))) > 0)
		for (ssize_t i = 0; i + 2 < n; i++)
			count += !memcmp(text + i, "-s ", 3);
	close(fd);
	return count;
}

static void calls(void)
{
	int maps;

	open_all();
	if (!exhaust(create, leave) || !exhaust(split, leave) || !exhaust(split_without, leave) ||
	    !exhaust(allocate, give_back))
		return;
	maps = maps_count();
	if (!exhaust(extend, give_back))
		return;
	/* two for each member's part of one extension: calls that have failed leave none */
	WAIT_UNTIL((sci_team_progress(all), maps_count() < maps + 2 * size), TEST_WAIT_MS);
	CHECK_EQ(sci_team_close(all), 0);
}

/* Make a new team: its calls have not allocated anything yet. */
static void parent_renew(void)
{
	if (parent)
		CHECK_EQ(sci_team_close(parent), 0);
	CHECK_EQ(sci_team_split(all, 0, 0, &parent), 0);
}

static void splits_of_new(void)
{
	setenv("SCI_TEAM_MEMORY", "node", 1);
	open_all();
	prepare = parent_renew;
	if (!exhaust(split_parent, leave))
		return;
	CHECK_EQ(sci_team_close(parent), 0);
	CHECK_EQ(sci_team_close(all), 0);
}

/* Members of different nodes exchange messages. */
static void calls_far(void)
{
	setenv("SCI_TEAM_MEMORY", "node", 1);
	calls();
}

static void shrinks_far(void)
{
	setenv("SCI_TEAM_MEMORY", "node", 1);
	shrinks();
}

/* ---- opening ---- */

/* Results of sci_team_open() in shared memory: there is no team that could exchange them. */
static struct opening {
	pthread_barrier_t all;
	int ret[RANKS_MAX];
	bool refused;
} *opening;

/* Return whether no allocation of the process without memory has failed. */
static bool open_once(int n)
{
	const struct sci_team_attr attr = { .size = sizeof(attr), .symmetric_size = HEAP };
	bool enough;

	if (rank == size - 1)
		atomic_store(&allocations, n);
	opening->ret[rank] = sci_team_open(&all, &attr);
	atomic_store(&allocations, -1);
	if (rank == size - 1)
		opening->refused = atomic_exchange(&refused, false);
	pthread_barrier_wait(&opening->all);
	for (int i = 0; i < size; i++)
		if (!opening->ret[i] != !opening->ret[rank])
			FAIL("%d allocations: process %d returns %d, process %d returns %d",
			     n, i, opening->ret[i], rank, opening->ret[rank]);
	enough = !opening->refused;
	if (!opening->ret[rank]) {
		CHECK_EQ(sci_team_barrier(all), 0);
		CHECK_EQ(sci_team_close(all), 0);
	}
	pthread_barrier_wait(&opening->all);
	return enough;
}

/* Count the allocations of joining: the launcher cannot miss a process that has not joined. */
static int allocations_to_join(void)
{
	struct sci_boot *boot;
	int n;

	atomic_store(&allocations, 1000);
	CHECK_EQ(sci_boot_open(&boot, NULL), 0);
	n = 1000 - atomic_exchange(&allocations, -1);
	pthread_barrier_wait(&opening->all);
	sci_boot_close(boot);
	pthread_barrier_wait(&opening->all);
	return n;
}

static void opens(void)
{
	int n;

	rank = (int)ranks_rank();
	n = allocations_to_join();
	while (!open_once(n))
		CHECK(++n < 1000);
	CHECK_EQ(opening->ret[rank], 0);
}

static void open_without_memory(unsigned int n, unsigned int nodes)
{
	pthread_barrierattr_t shared;

	if (TEST_ASAN || TEST_TSAN)
		SKIP("the sanitizer has an allocator of its own");
	size = (int)n;
	opening = test_shared(sizeof(*opening));
	pthread_barrierattr_init(&shared);
	pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	CHECK_EQ(pthread_barrier_init(&opening->all, &shared, n), 0);
	ranks_run(n, nodes, opens);
}

TEST(opening_fails_in_all_processes_of_2) { open_without_memory(2, 1); }
TEST(opening_fails_in_all_processes_of_4_on_2) { open_without_memory(4, 2); }

/*
 * The last rank tries to join with more and more memory. An attempt that fails after the launcher has
 * counted it makes the others leave, and join again. No rank counts as dead.
 */
static void joins(void)
{
	struct sci_boot *boot;
	unsigned int dead;
	int n = 0, ret;

	rank = (int)ranks_rank();
	do {
		do {
			if (rank == size - 1)
				atomic_store(&allocations, n++);
			ret = sci_boot_open(&boot, NULL);
			atomic_store(&allocations, -1);
		} while (ret == -ENOMEM);
		CHECK_EQ(ret, 0);
		ret = sci_boot_barrier(boot);
		CHECK_EQ(sci_boot_died(boot, &dead), -EAGAIN);
		sci_boot_close(boot);
	} while (ret == -ECONNRESET);
	CHECK_EQ(ret, 0);
}

TEST(a_rank_without_memory_joins_later)
{
	if (TEST_ASAN || TEST_TSAN)
		SKIP("the sanitizer has an allocator of its own");
	size = 3;
	ranks_run(3, 1, joins);
}

/* Rank 1 dies while rank 2 has no memory and waits for a value of rank 1. */
static void learns(void *arg)
{
	struct sci_boot *boot;
	unsigned int dead;
	char value;
	size_t len = 1;

	(void)arg;
	CHECK_EQ(sci_boot_open(&boot, NULL), 0);
	CHECK_EQ(sci_boot_barrier(boot), 0);
	if (ranks_rank() == 1)
		ranks_die_in(0);
	atomic_store(&allocations, ranks_rank() == 2 ? 0 : -1);
	CHECK_EQ(sci_boot_get(boot, 1, "none", &value, &len), -ECONNRESET);
	CHECK_EQ(sci_boot_died(boot, &dead), 0);
	CHECK_EQ(dead, 1);
	CHECK_EQ(sci_boot_publish(boot, "some", "x", 1), 0);
	CHECK_EQ(sci_boot_get(boot, ranks_rank(), "some", &value, &len), 0);
	atomic_store(&allocations, -1);
	sci_boot_close(boot);
}

TEST(a_death_is_learned_without_memory)
{
	if (TEST_ASAN || TEST_TSAN)
		SKIP("the sanitizer has an allocator of its own");
	ranks_run_arg(3, 1, learns, NULL, true);
}

static void memory_of_one(unsigned int n, unsigned int nodes, void (*fn)(void))
{
	if (TEST_ASAN || TEST_TSAN)
		SKIP("the sanitizer has an allocator of its own");
	ranks_run(n, nodes, fn);
}

/*
 * A process that is seldom scheduled also needs memory for messages that wait, and without that
 * memory the team breaks. In this case, try again.
 */
static void without_breaking(unsigned int n, unsigned int nodes, void (*fn)(void))
{
	broken = test_shared(sizeof(*broken));
	for (int tries = 0; tries < 20; tries++) {
		atomic_store(broken, false);
		memory_of_one(n, nodes, fn);
		if (!atomic_load(broken))
			return;
	}
	FAIL("the team of %u processes breaks each time", n);
}

TEST(calls_fail_in_all_members_of_2) { memory_of_one(2, 1, calls); }
TEST(calls_fail_in_all_members_of_5_on_2) { memory_of_one(5, 2, calls); }
TEST(calls_fail_in_all_members_of_16_on_4) { memory_of_one(16, 4, calls); }
TEST(shrinking_goes_on_without_a_member_of_2) { memory_of_one(2, 1, shrinks); }
TEST(shrinking_goes_on_without_a_member_of_5_on_2) { memory_of_one(5, 2, shrinks); }
TEST(far_calls_fail_in_all_members_of_5_on_2) { without_breaking(5, 2, calls_far); }
TEST(far_calls_fail_in_all_members_of_6_on_3) { without_breaking(6, 3, calls_far); }
TEST(far_shrinking_goes_on_without_a_member_of_5_on_2) { memory_of_one(5, 2, shrinks_far); }
TEST(splits_of_new_teams_fail_in_all_members_of_17_on_9) { without_breaking(17, 9, splits_of_new); }
TEST(collective_calls_are_repeated_by_3_on_3) { without_breaking(3, 3, repeats); }
TEST(collective_calls_are_repeated_by_4_on_2) { without_breaking(4, 2, repeats); }
TEST(a_broken_team_closes_without_members_that_have_left)
{
	left = test_shared(sizeof(*left));
	memory_of_one(4, 2, rank_closes_last);
}
TEST(a_connection_without_memory_breaks_the_team) { memory_of_one(4, 2, connection_fails); }
