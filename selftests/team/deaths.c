// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Members die at any point: the other members get an error and continue without them.
 * SCI_KILLS is the number of deaths at a random time (KILLS).
 */

#include <sci/team.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsci/msg/proto/proto.h"
#include "libsci/team/flat.h"
#include "selftests/ranks.h"

#define KILLS	190u	/* deaths of all calls of kills() */

struct setting {
	unsigned int n;
	unsigned int nodes;
	const char *memory;
	unsigned int seed;
	unsigned int victims;
};

static struct sci_team *open_team(const struct setting *s)
{
	struct sci_team *t;

	setenv("SCI_TEAM_MEMORY", s->memory, 1);
	setenv("SCI_SYMMETRIC_SIZE", "64K", 1);
	CHECK_EQ(sci_team_open(&t, NULL), 0);
	return t;
}

/* Make a call; @i selects its kind, and a short or a long form. */
static int call(struct sci_team *t, unsigned int i, void *buf, void *to)
{
	const struct sci_op *op = sci_op(SCI_OP_SUM, SCI_TYPE_INT32);
	size_t n = i % 2 ? 100000 : 5;
	int root = (int)(i / 8 % (unsigned int)sci_team_size(t));

	switch (i % 8) {
	case 0:
		return sci_team_barrier(t);
	case 1:
		return sci_team_bcast(t, root, buf, 4 * n);
	case 2:
		return sci_team_allreduce(t, buf, to, n, op);
	case 3:
		return sci_team_reduce(t, root, buf, to, n, op);
	case 4:
		return sci_team_allgather(t, buf, n / 16, to);
	case 5:
		return sci_team_alltoall(t, buf, to, n / 16);
	case 6:
		return sci_team_scatter(t, root, buf, to, n / 16);
	default:
		return sci_team_scan(t, buf, to, n, op);
	}
}

/* Make calls until one fails, and shrink the team, until no call fails any more. */
static void survive(void *arg)
{
	const struct setting *s = arg;
	struct sci_team *t = open_team(s), *all = t, *next;
	unsigned int me = (unsigned int)sci_team_rank(t), living = s->n - s->victims;
	void *buf = calloc(1, 400000), *to = calloc(1, 400000);
	unsigned int ok = 0;
	uint64_t *w;
	void *p;

	CHECK(buf && to);
	/* the result does not count: a member may die before all members have returned */
	sci_team_barrier(t);
	/* the seed selects the victims */
	if ((me + s->seed) % s->n < s->victims)
		ranks_die_in(2000 + (s->seed * 7919 + me * 104729) % 30000);
	for (unsigned int i = 0; ok < 50 || sci_team_size(t) > (int)living; i++) {
		int ret = call(t, i, buf, to);

		if (!ret) {
			ok++;
			continue;
		}
		CHECK_EQ(ret, -ECONNRESET);
		CHECK_EQ(call(t, i, buf, to), -ECONNRESET);
		CHECK_EQ(sci_team_shrink(t, &next), 0);
		CHECK(sci_team_size(next) >= (int)living);
		if (sci_team_size(next) == (int)living)
			ranks_death_over();
		if (t != all)
			CHECK_EQ(sci_team_close(t), 0);
		t = next;
		ok = 0;
		/* members have left their loops at different calls */
		i = 0;
	}
	CHECK_EQ(sci_team_size(t), living);
	/* the living members can allocate symmetric memory */
	CHECK_EQ(sci_team_alloc(t, 64, 0, &p), 0);
	w = p;
	*w = 0;
	CHECK_EQ(sci_team_barrier(t), 0);
	CHECK_EQ(sci_team_atomic(t, w, 8, SCI_ATOMIC_ADD, 1, 0, NULL, 0), 0);
	CHECK_EQ(sci_team_quiet(t), 0);
	CHECK_EQ(sci_team_barrier(t), 0);
	if (!sci_team_rank(t))
		CHECK_EQ(*w, living);
	CHECK_EQ(sci_team_barrier(t), 0);
	free(buf);
	free(to);
	CHECK_EQ(sci_team_close(all), 0);
}

/* Run @fn @times times. SCI_KILLS scales @times. */
static void kills(void (*fn)(void *arg), unsigned int n, unsigned int nodes, const char *memory,
		  unsigned int victims, unsigned int times)
{
	struct setting s = { n, nodes, memory, 0, victims };
	const char *all = getenv("SCI_KILLS");

	times = all ? (times * (unsigned int)atoi(all) + KILLS - 1) / KILLS : times;
	for (unsigned int i = 0; i < test_calls(times); i++) {
		s.seed = i * 3 + n;
		ranks_run_apart(n, nodes, fn, &s);
	}
}

static void shrinks(unsigned int n, unsigned int nodes, const char *memory,
		    unsigned int victims, unsigned int times)
{
	kills(survive, n, nodes, memory, victims, times);
	ranks_deaths_note("the shrunk team");
}

TEST(near_members_die)
{
	shrinks(4, 1, "all", 1, 12);
}

TEST(members_that_read_private_memory_die)
{
	setenv("SCI_TEAM_SINGLE_COPY_MIN", "1", 1);
	shrinks(2, 1, "all", 1, 6);
	shrinks(4, 1, "all", 1, 6);
}

TEST(several_near_members_die)
{
	shrinks(8, 1, "all", 3, 6);
}

TEST(far_members_die)
{
	shrinks(4, 1, "none", 1, 12);
}

TEST(several_far_members_die)
{
	shrinks(5, 1, "none", 3, 10);
}

TEST(members_of_nodes_die)
{
	shrinks(8, 4, "node", 1, 6);
}

TEST(most_members_of_nodes_die)
{
	shrinks(6, 2, "node", 4, 10);
}

/* A member dies in sci_team_open() or later. The calls of the others return 0 or -ECONNRESET. */
static void die_in_open(void *arg)
{
	const struct setting *s = arg;
	struct sci_team *t;
	int ret;

	setenv("SCI_TEAM_MEMORY", s->memory, 1);
	setenv("SCI_SYMMETRIC_SIZE", "64K", 1);
	if (ranks_rank() == s->seed / 3 % s->n)
		ranks_die_in(s->seed * 7919 % (TEST_ASAN || TEST_TSAN ? 60000 : 12000));
	ret = sci_team_open(&t, NULL);
	if (ret) {
		CHECK_EQ(ret, -ECONNRESET);
		ranks_death_over();
		return;
	}
	while (!(ret = sci_team_barrier(t)))
		;
	CHECK_EQ(ret, -ECONNRESET);
	ranks_death_over();
	CHECK_EQ(sci_team_close(t), 0);
}

static void opens(unsigned int n, unsigned int nodes, const char *memory)
{
	kills(die_in_open, n, nodes, memory, 1, 20);
	ranks_deaths_note("the errors of all members");
}

TEST(near_members_die_in_open)
{
	opens(4, 1, "all");
}

TEST(far_members_die_in_open)
{
	opens(4, 1, "none");
}

TEST(members_of_nodes_die_in_open)
{
	opens(6, 3, "node");
}

/* Member @seed dies while the chain of a long broadcast from rank 2 runs. */
static void die_in_chain(void *arg)
{
	const struct setting *s = arg;
	struct sci_team *t = open_team(s);
	const size_t len = 400000;
	struct sci_coll *coll;
	void *buf = calloc(1, len);
	int ret = 0;

	CHECK(buf);
	if (sci_team_rank(t) == (int)s->seed) {
		CHECK_EQ(sci_team_bcast(t, 2, buf, len), 0);
		CHECK_EQ(sci_team_ibcast(t, 2, buf, len, &coll), 0);
		raise(SIGKILL);
	}
	/* the root need not wait for the victim: it returns 0 until the launcher reports the death */
	while (!ret)
		ret = sci_team_bcast(t, 2, buf, len);
	CHECK_EQ(ret, -ECONNRESET);
	free(buf);
	CHECK_EQ(sci_team_close(t), 0);
}

TEST(a_member_of_a_chain_dies)
{
	/* the root, the members after it and in the middle, and the last one */
	static const unsigned int victims[] = { 2, 3, 6, 1 };

	for (size_t i = 0; i < ARRAY_LEN(victims); i++) {
		struct setting s = { 8, 8, "none", victims[i], 1 };

		ranks_run_arg(8, 8, die_in_chain, &s, true);
	}
}

/* ---- a member that is alive, but does not answer ---- */

static _Atomic pid_t *silent;		/* shared; the process of rank 1 */

static bool process_is_stopped(pid_t pid)
{
	char path[32], line[256] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	CHECK(f && fgets(line, sizeof(line), f));
	fclose(f);
	return strstr(line, ") T ");
}

/*
 * The connections of rank 1 end, and the launcher reports no death. Ranks 4 and 6 have no connection
 * to rank 1: the barrier of sci_team_open() makes none. Rank 4 waits for rank 0, and 6 for 4.
 */
static void members_of_a_silent_one(void *arg)
{
	const struct sci_op *op = sci_op(SCI_OP_SUM, SCI_TYPE_INT32);
	static int from[4096], to[4096];
	unsigned int rank = ranks_rank();
	struct sci_team *t;
	int ret;

	test_use_net("unix", 4 * (rank + 1));
	setenv("SCI_NET_RETRY", "1", 1);
	t = open_team(arg);
	if (rank == 1) {
		atomic_store(silent, getpid());
		raise(SIGSTOP);
	}
	WAIT_UNTIL(atomic_load(silent), TEST_WAIT_MS);
	if (!rank)
		WAIT_UNTIL(process_is_stopped(atomic_load(silent)), TEST_WAIT_MS);
	ret = sci_team_reduce(t, 0, from, to, ARRAY_LEN(from), op);
	CHECK(ret == -ECONNRESET || (rank && !ret));
	CHECK_EQ(sci_team_bcast(t, 0, from, sizeof(from)), -ECONNRESET);
	if (!rank)
		CHECK_EQ(kill(atomic_load(silent), SIGCONT), 0);
	CHECK_EQ(sci_team_close(t), 0);
}

TEST(the_end_of_a_connection_ends_the_calls_of_all_members)
{
	struct setting s = { 8, 8, "none", 0, 0 };

	silent = test_shared(sizeof(*silent));
	ranks_run_arg(8, 8, members_of_a_silent_one, &s, false);
}

/* A member dies while the other members wait for a word that no member changes. */
static void wait_in_vain(void *arg)
{
	struct sci_team *t = open_team(arg);
	uint64_t *w;
	void *p;

	CHECK_EQ(sci_team_alloc(t, 8, 0, &p), 0);
	w = p;
	*w = 0;
	/* the result does not count: rank 1 may die before all members have returned */
	sci_team_barrier(t);
	if (sci_team_rank(t) == 1)
		raise(SIGKILL);
	CHECK_EQ(sci_team_wait_until(t, w, 8, SCI_CMP_NE, 0, -1), -ECONNRESET);
	CHECK_EQ(sci_team_alive(t, 1), -ECONNRESET);
	CHECK_EQ(sci_team_alive(t, 0), 0);
	CHECK_EQ(sci_team_close(t), 0);
}

TEST(a_wait_ends_when_a_member_dies)
{
	struct setting s = { 3, 1, "all", 0, 0 };

	ranks_run_arg(3, 1, wait_in_vain, &s, true);
	s.memory = "none";
	ranks_run_arg(3, 1, wait_in_vain, &s, true);
}

/* Allocate a lock, which member 1 takes. */
static uint64_t *lock_of_member_1(struct sci_team *t)
{
	uint64_t *lock;
	void *p;

	CHECK_EQ(sci_team_alloc(t, 8, 0, &p), 0);
	lock = p;
	*lock = 0;
	CHECK_EQ(sci_team_barrier(t), 0);
	if (sci_team_rank(t) == 1)
		CHECK_EQ(sci_team_lock(t, lock, -1), 0);
	return lock;
}

/* A member dies with the lock, and another one while it waits for the lock. */
static void die_locked(void *arg)
{
	struct sci_team *t = open_team(arg);
	uint64_t *lock = lock_of_member_1(t);
	int me = sci_team_rank(t), ret;

	CHECK_EQ(sci_team_barrier(t), 0);
	if (me == 1) {
		/* wait until all other members have asked for the lock */
		uint64_t v = 0;

		while ((uint16_t)(v >> 48) != 4)
			CHECK_EQ(sci_team_atomic(t, lock, 8, SCI_ATOMIC_GET, 0, 0, &v, 0), 0);
		raise(SIGKILL);
	}
	if (me == 2)
		ranks_die_in(50000);
	ret = sci_team_lock(t, lock, -1);
	if (ret != -EOWNERDEAD)
		CHECK_EQ(ret, 0);
	/* the next owner dies, too: the owner after it gets -EOWNERDEAD again */
	if (me == 2)
		raise(SIGKILL);
	CHECK_EQ(sci_team_unlock(t, lock), 0);
	CHECK_EQ(sci_team_close(t), 0);
}

/* A member that polls the lock gets it from a dead owner, too. */
static void die_locked_try(void *arg)
{
	struct sci_team *t = open_team(arg);
	uint64_t *lock;
	void *p;
	int ret;

	CHECK_EQ(sci_team_alloc(t, 8, 0, &p), 0);
	lock = p;
	*lock = 0;
	CHECK_EQ(sci_team_barrier(t), 0);
	if (sci_team_rank(t) == 1)
		CHECK_EQ(sci_team_lock(t, lock, 0), 0);
	CHECK_EQ(sci_team_barrier(t), 0);
	if (sci_team_rank(t) == 1)
		raise(SIGKILL);
	while ((ret = sci_team_lock(t, lock, 0)) == -EAGAIN)
		sci_team_progress(t);
	CHECK_EQ(ret, -EOWNERDEAD);
	CHECK_EQ(sci_team_unlock(t, lock), 0);
	CHECK_EQ(sci_team_lock(t, lock, 0), 0);
	CHECK_EQ(sci_team_unlock(t, lock), 0);
	CHECK_EQ(sci_team_close(t), 0);
}

TEST(a_try_gets_the_lock_of_a_dead_owner)
{
	struct setting s = { 2, 1, "all", 0, 0 };

	ranks_run_arg(2, 1, die_locked_try, &s, true);
	s.memory = "none";
	ranks_run_arg(2, 1, die_locked_try, &s, true);
}

TEST(a_lock_outlives_its_owner)
{
	struct setting s = { 4, 1, "all", 0, 0 };

	ranks_run_arg(4, 1, die_locked, &s, true);
	s.memory = "none";
	ranks_run_arg(4, 1, die_locked, &s, true);
}

/* ---- a lock whose far member loses its connection ---- */

#define MEET		1u		/* contexts of messages */
#define SHRINK		2u

static void tell_rank(struct sci_team *t, int rank, uint32_t context)
{
	struct sci_peer *p;

	CHECK_EQ(sci_team_peer(t, rank, &p), 0);
	CHECK_EQ(sci_tsend(p, context, 0, NULL, 0), 0);
}

static void await_rank(struct sci_team *t, uint32_t context)
{
	CHECK_EQ(sci_trecv(sci_team_ep(t), NULL, context, 0, 0, NULL, 0, NULL), 0);
}

/* End the connection to @p as if the memory had ended. Context: the endpoint is locked. */
static void connection_end(struct sci_peer *p)
{
	peer_down(p, -ENOMEM);
}

/*
 * Rank 1 has the lock, and rank 2 waits for it. The connection of rank 2 ends, and rank 1 dies. Rank
 * 0 cannot give the lock to rank 2: the next member that takes it learns that its owner has died.
 */
static void lose_waiter(void *arg)
{
	struct sci_team *t = open_team(arg);
	struct team_world *w = t->world;
	struct sci_peer *waiter;
	uint64_t *lock;
	void *p;

	CHECK_EQ(sci_team_alloc(t, 8, 0, &p), 0);
	lock = p;
	*lock = 0;
	CHECK_EQ(sci_team_barrier(t), 0);
	switch (sci_team_rank(t)) {
	case 0:
		WAIT_UNTIL((sci_team_progress(t), w->n_lock_requests), TEST_WAIT_MS);
		CHECK_EQ(sci_team_peer(t, 2, &waiter), 0);
		msg_lock(&w->ep->lock);
		connection_end(waiter);
		msg_unlock(&w->ep->lock);
		tell_rank(t, 1, SHRINK);
		WAIT_UNTIL((sci_team_progress(t), !w->n_lock_requests), TEST_WAIT_MS);
		CHECK_EQ(sci_team_lock(t, lock, 0), -EOWNERDEAD);
		CHECK_EQ(sci_team_unlock(t, lock), 0);
		break;
	case 1:
		CHECK_EQ(sci_team_lock(t, lock, -1), 0);
		tell_rank(t, 2, MEET);
		await_rank(t, SHRINK);
		raise(SIGKILL);
		break;
	default:
		await_rank(t, MEET);
		CHECK_EQ(sci_team_lock(t, lock, -1), -ECONNRESET);
	}
	CHECK_EQ(sci_team_close(t), 0);
}

TEST(a_lost_waiter_does_not_hide_that_the_owner_is_dead)
{
	struct setting s = { 3, 1, "none", 0, 0 };

	ranks_run_arg(3, 1, lose_waiter, &s, true);
}

/* ---- locks beside other deaths ---- */

static _Atomic pid_t *pids;		/* shared: of ranks that are ready */

/* Let rank @rank execute the atomics of this process, as with other fabrics. */
static void atomics_ask(struct sci_team *t, int rank)
{
	struct sci_peer *p;

	CHECK_EQ(sci_team_peer(t, rank, &p), 0);
	msg_lock(&p->ep->lock);
	p->may_read = false;
	msg_unlock(&p->ep->lock);
}

/*
 * Rank 1 has the lock, and its atomic on rank 2 cannot complete: rank 2 makes no calls, and dies. Rank
 * 0 gets the lock all the same.
 */
static void die_beside_lock(void *arg)
{
	struct sci_team *t = open_team(arg);
	int me = sci_team_rank(t);
	uint64_t *words;
	void *p;

	CHECK_EQ(sci_team_alloc(t, 16, 0, &p), 0);
	words = p;
	words[0] = words[1] = 0;
	CHECK_EQ(sci_team_barrier(t), 0);
	if (me == 1)
		CHECK_EQ(sci_team_lock(t, words, -1), 0);
	atomic_store(&pids[me], getpid());
	switch (me) {
	case 0:
		WAIT_UNTIL((sci_team_progress(t), atomic_load(&pids[1])), TEST_WAIT_MS);
		CHECK_EQ(sci_team_lock(t, words, TEST_WAIT_MS), 0);
		break;
	case 1:
		WAIT_UNTIL(atomic_load(&pids[0]) && atomic_load(&pids[2]), TEST_WAIT_MS);
		atomics_ask(t, 2);
		CHECK_EQ(sci_team_atomic_nbi(t, words + 1, 8, SCI_ATOMIC_ADD, 1, 0, NULL, 2), 0);
		CHECK_EQ(kill(atomic_load(&pids[2]), SIGKILL), 0);
		CHECK_EQ(sci_team_unlock(t, words), -ECONNRESET);
		break;
	default:
		for (;;)
			pause();
	}
	CHECK_EQ(sci_team_close(t), 0);
}

TEST(an_unlock_after_a_failed_transfer_releases_the_lock)
{
	struct setting s = { 3, 1, "none", 0, 0 };

	pids = test_shared(3 * sizeof(*pids));
	ranks_run_arg(3, 1, die_beside_lock, &s, true);
}

/* Rank 0 dies, which has the word of the lock. */
static void die_with_the_word(void *arg)
{
	struct sci_team *t = open_team(arg);
	uint64_t *lock = lock_of_member_1(t), *word;
	int me = sci_team_rank(t);

	atomic_store(&pids[me], getpid());
	if (!me) {
		WAIT_UNTIL((sci_team_progress(t),
			    atomic_load(&pids[1]) && atomic_load(&pids[2])), TEST_WAIT_MS);
		raise(SIGKILL);
	}
	WAIT_UNTIL(sci_team_alive(t, 0) == -ECONNRESET, TEST_WAIT_MS);
	/* other fabrics do this */
	word = sci_team_ptr(t, lock, 0);
	if (word)
		*word = 0;
	if (me == 1)
		CHECK_EQ(sci_team_unlock(t, lock), -ECONNRESET);
	CHECK_EQ(sci_team_lock(t, lock, 0), -ECONNRESET);
	CHECK_EQ(sci_team_lock(t, lock, -1), -ECONNRESET);
	CHECK_EQ(sci_team_close(t), 0);
}

TEST(a_lock_is_lost_with_rank_0)
{
	struct setting s = { 3, 1, "all", 0, 0 };

	pids = test_shared(3 * sizeof(*pids));
	ranks_run_arg(3, 1, die_with_the_word, &s, true);
	s.memory = "none";
	memset((void *)pids, 0, 3 * sizeof(*pids));
	ranks_run_arg(3, 1, die_with_the_word, &s, true);
}

/* ---- deaths while a thread shrinks a team ---- */

static void *shrink_all(void *arg)
{
	struct sci_team *next;

	CHECK_EQ(sci_team_shrink(arg, &next), 0);
	CHECK_EQ(sci_team_size(next), 2);
	return NULL;
}

/*
 * Rank 0 shrinks the team in a thread, which waits for rank 1. Its other thread sees the death of rank
 * 2 all the same, to which it has no connection. Then it tells rank 1 to shrink the team, too.
 */
static void die_beside_shrink(void *arg)
{
	struct sci_team *t = open_team(arg);
	pthread_t thread;

	switch (sci_team_rank(t)) {
	case 0:
		CHECK_EQ(pthread_create(&thread, NULL, shrink_all, t), 0);
		WAIT_UNTIL(others_asleep(), TEST_WAIT_MS);
		tell_rank(t, 1, MEET);
		WAIT_UNTIL(sci_team_alive(t, 2) == -ECONNRESET, TEST_WAIT_MS);
		tell_rank(t, 1, SHRINK);
		CHECK_EQ(pthread_join(thread, NULL), 0);
		break;
	case 1:
		await_rank(t, MEET);
		tell_rank(t, 2, MEET);
		await_rank(t, SHRINK);
		shrink_all(t);
		break;
	default:
		await_rank(t, MEET);
		raise(SIGKILL);
	}
	CHECK_EQ(sci_team_close(t), 0);
}

TEST(a_death_is_seen_while_another_thread_shrinks_the_team)
{
	struct setting s = { 3, 1, "all", 0, 0 };

	ranks_run_arg(3, 1, die_beside_shrink, &s, true);
	s.memory = "none";
	ranks_run_arg(3, 1, die_beside_shrink, &s, true);
}

#define SHRINKS	300

/* The members publish values in each shrink, and the launcher keeps them. */
static void shrink_often(void *arg)
{
	struct sci_team *t = open_team(arg), *sub, *next;

	for (int i = 0; i < SHRINKS; i++) {
		CHECK_EQ(sci_team_split(t, 0, 0, &sub), 0);
		CHECK_EQ(sci_team_shrink(sub, &next), 0);
		CHECK_EQ(sci_team_size(next), 2);
		CHECK_EQ(sci_team_close(next), 0);
		CHECK_EQ(sci_team_close(sub), 0);
	}
	CHECK_EQ(sci_team_close(t), 0);
}

TEST(teams_shrink_often)
{
	/* a broken team keeps its shared memory */
	struct setting s = { 2, 1, "none", 0, 0 };

	ranks_run_arg(2, 1, shrink_often, &s, false);
}

/* ---- a death in the last step of a split ---- */

/*
 * Rank 1 is stopped in a split that ranks 0 and 2 have finished. Then rank 2 dies, and rank 1 does
 * not see its last data any more.
 */
struct splits {
	_Atomic pid_t pid[3];
	_Atomic unsigned int count[3];	/* splits that have returned */
	_Atomic unsigned int failed;	/* splits of rank 1 that have failed */
};

static struct splits *splits;

static bool others_are_ahead(void)
{
	unsigned int k = atomic_load(&splits->count[1]) + 1;

	return atomic_load(&splits->count[0]) == k && atomic_load(&splits->count[2]) == k;
}

/* Stop rank 1 again and again, until it is the only one that has not finished a split. */
static void *stop_and_kill(void *arg)
{
	struct sci_team *t = arg;
	pid_t pid = atomic_load(&splits->pid[1]);

	for (;;) {
		CHECK_EQ(kill(pid, SIGSTOP), 0);
		WAIT_UNTIL(process_is_stopped(pid), TEST_WAIT_MS);
		if (HAPPENS(others_are_ahead(), 5))
			break;
		CHECK_EQ(kill(pid, SIGCONT), 0);
		test_pause();
	}
	CHECK_EQ(kill(atomic_load(&splits->pid[2]), SIGKILL), 0);
	WAIT_UNTIL(sci_team_alive(t, 2) == -ECONNRESET, TEST_WAIT_MS);
	/* other fabrics do this; without coherent caches there is no area */
	if (t->area)
		memset(t->members[2].area, 0, flat_area_size(t));
	CHECK_EQ(kill(pid, SIGCONT), 0);
	return NULL;
}

static void split_until_death(void *arg)
{
	struct sci_team *t = open_team(arg), *half;
	int me = sci_team_rank(t), ret = 0;
	struct sci_coll *coll;
	pthread_t thread;

	atomic_store(&splits->pid[me], getpid());
	CHECK_EQ(sci_team_barrier(t), 0);
	if (!me)
		CHECK_EQ(pthread_create(&thread, NULL, stop_and_kill, t), 0);
	while (!ret) {
		ret = sci_team_split(t, me / 2, 0, &half);
		if (ret)
			break;
		atomic_fetch_add(&splits->count[me], 1);
		CHECK_EQ(sci_team_ibarrier(half, &coll), 0);
		ret = sci_coll_wait(coll, TEST_WAIT_MS);
		if (!ret)
			CHECK_EQ(sci_team_close(half), 0);
	}
	CHECK_EQ(ret, -ECONNRESET);
	if (!me)
		CHECK_EQ(pthread_join(thread, NULL), 0);
	if (me == 1 && atomic_load(&splits->count[1]) < atomic_load(&splits->count[0]))
		atomic_fetch_add(&splits->failed, 1);
	CHECK_EQ(sci_team_close(t), 0);
}

TEST(a_member_dies_before_all_have_finished_a_split)
{
	struct setting s = { 3, 1, "all", 0, 0 };

	for (unsigned int i = 0; i < 20; i++) {
		splits = test_shared(sizeof(*splits));
		ranks_run_apart(3, 1, split_until_death, &s);
		if (atomic_load(&splits->failed))
			return;
	}
	if (getenv("SCI_KILLS"))
		FAIL("rank 1 has finished each split");
	SKIP("rank 1 has finished each split");
}

/* ---- a death while a team is closed ---- */

/* Shared memory. */
struct closes {
	_Atomic unsigned int ready;	/* members that have made the team */
	_Atomic bool closed;		/* rank 1 has closed it */
};

static struct closes *closes;

/*
 * Ranks 1 and 2 are in the barrier of sci_team_close() when rank 2 dies: the barrier of rank 1 fails.
 * That of rank 0, which enters it later, succeeds.
 */
static void die_in_close(void *arg)
{
	struct sci_team *t = open_team(arg), *sub;
	struct sci_coll *coll;
	uint32_t epoch;

	CHECK_EQ(sci_team_split(t, 0, 0, &sub), 0);
	atomic_fetch_add(&closes->ready, 1);
	switch (sci_team_rank(t)) {
	case 0:
		WAIT_UNTIL(atomic_load(&closes->closed), TEST_WAIT_MS);
		break;
	case 2:
		WAIT_UNTIL(atomic_load(&closes->ready) == 3, TEST_WAIT_MS);
		epoch = sub->epoch;
		CHECK_EQ(sci_team_ibarrier(sub, &coll), 0);
		/* without coherent caches there is no area */
		if (sub->area)
			WAIT_UNTIL(sci_load_acquire(&slot_of(sub, 1, epoch)->epoch) == epoch,
				   TEST_WAIT_MS);
		raise(SIGKILL);
	}
	CHECK_EQ(sci_team_close(sub), 0);
	atomic_store(&closes->closed, true);
	CHECK_EQ(sci_team_close(t), 0);
}

TEST(a_member_dies_while_a_team_is_closed)
{
	struct setting s = { 3, 1, "all", 0, 0 };

	closes = test_shared(sizeof(*closes));
	ranks_run_arg(3, 1, die_in_close, &s, true);
}

/* ---- a connection that ends in the last step of a create ---- */

static _Atomic bool create_failed;	/* in this process */

/* Return the receive of an error from the first member in sci_team_create(), or NULL. */
static struct sci_req *last_reply(struct sci_ep *ep)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &ep->match.recvs.order) {
		struct sci_match_recv *r = container_of(pos, struct sci_match_recv, order);
		struct sci_req *req = container_of(r, struct sci_req, match);

		if (r->context == TEAM_CTX_REPLY && req->len == sizeof(struct team_hello))
			return req;
	}
	return NULL;
}

/* Rank 0 is slow. Rank 1 waits for its last reply: end the connection. */
static void *create_disturb(void *arg)
{
	struct sci_team *t = arg;
	struct sci_ep *ep = sci_team_ep(t);
	struct sci_req *req = NULL;

	while (!req && !atomic_load(&create_failed)) {
		msg_lock(&ep->lock);
		if (!sci_team_rank(t))
			test_pause();
		else if ((req = last_reply(ep)))
			connection_end(req->peer);
		msg_unlock(&ep->lock);
		test_pause();
	}
	return NULL;
}

static void create_until_loss(void *arg)
{
	struct sci_team *t = open_team(arg), *new = NULL;
	const int ranks[] = { 0, 1 };
	struct sci_coll *coll;
	pthread_t thread;
	int ret;

	CHECK_EQ(pthread_create(&thread, NULL, create_disturb, t), 0);
	do {
		ret = sci_team_create(t, ranks, 2, &new);
		if (ret)
			break;
		CHECK_EQ(sci_team_ibarrier(new, &coll), 0);
		ret = sci_coll_wait(coll, TEST_WAIT_MS);
		if (!ret)
			CHECK_EQ(sci_team_close(new), 0);
	} while (!ret);
	atomic_store(&create_failed, true);
	CHECK_EQ(ret, -ENOBUFS);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(sci_team_close(t), 0);
}

TEST(a_connection_ends_before_all_have_created_a_team)
{
	struct setting s = { 2, 1, "all", 0, 0 };

	ranks_run_arg(2, 1, create_until_loss, &s, false);
}

/* ---- errors that members send when all of them have an error ---- */

static void break_twice(void *arg)
{
	struct sci_team *t = open_team(arg), *new;
	struct sci_ep *ep = sci_team_ep(t);
	const int ranks[] = { 0, 1 };

	CHECK_EQ(sci_team_create(t, ranks, 2, &new), 0);
	if (sci_team_rank(t))
		sci_store_relaxed(&new->error, -ENOBUFS);
	CHECK_EQ(sci_team_barrier(t), 0);
	if (!sci_team_rank(t)) {
		team_break(new, -ENOBUFS);
		tell_rank(t, 1, MEET);
		await_rank(t, MEET);
	} else {
		await_rank(t, MEET);
		WAIT_UNTIL((sci_team_progress(t), !ep->match.unexpected), TEST_WAIT_MS);
		tell_rank(t, 0, MEET);
	}
	CHECK_EQ(sci_team_close(t), 0);
}

TEST(an_error_of_a_broken_team_does_not_stay_in_the_queue)
{
	struct setting s = { 2, 1, "all", 0, 0 };

	ranks_run_arg(2, 1, break_twice, &s, false);
}
