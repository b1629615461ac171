// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Several threads of every rank are in MPI at once, each with its own messages,
 * tags or communicator.
 */
#include <pthread.h>

#include "selftests/mpi/check.h"

#define THREADS		4

struct worker {
	pthread_t thread;
	void (*fn)(struct worker *w);
	int nr;
	MPI_Comm comm;
	int peer;
};

static bool is_multiple(void)
{
	int level;

	MPI_Query_thread(&level);
	return level == MPI_THREAD_MULTIPLE;
}

#define NEEDS_MULTIPLE()						\
	do {								\
		if (!is_multiple())					\
			SKIP("MPI gives less than MPI_THREAD_MULTIPLE");\
	} while (0)

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	w->fn(w);
	return NULL;
}

/* An odd last rank is its own partner. */
static int partner(void)
{
	int peer = rank ^ 1;

	return peer < ranks ? peer : rank;
}

static void worker_start(struct worker *w, void (*fn)(struct worker *), int nr,
			 MPI_Comm comm)
{
	w->fn = fn;
	w->nr = nr;
	w->comm = comm;
	w->peer = partner();
	CHECK_EQ(pthread_create(&w->thread, NULL, worker_main, w), 0);
}

static void worker_join(struct worker *w)
{
	CHECK_EQ(pthread_join(w->thread, NULL), 0);
}

/* Run @fn in all threads, on one communicator. */
static void together(void (*fn)(struct worker *), MPI_Comm comm)
{
	struct worker w[THREADS];

	for (int i = 0; i < THREADS; i++)
		worker_start(&w[i], fn, i, comm);
	for (int i = 0; i < THREADS; i++)
		worker_join(&w[i]);
}

/* Run @fn in all threads, each on its own communicator. */
static void apart(void (*fn)(struct worker *))
{
	MPI_Comm comm[THREADS];
	struct worker w[THREADS];

	for (int i = 0; i < THREADS; i++)
		MPI_Comm_dup(WORLD, &comm[i]);
	for (int i = 0; i < THREADS; i++)
		worker_start(&w[i], fn, i, comm[i]);
	for (int i = 0; i < THREADS; i++) {
		worker_join(&w[i]);
		MPI_Comm_free(&comm[i]);
	}
}

/* ---- work of the threads ---- */

static const int sizes[] = { 0, 1, 64, 65, 1000, 10000, 100000 };

static uint32_t seed_of(int r, int thread, int round)
{
	return 100000 * r + 1000 * thread + round;
}

/* The lower rank asks, the higher rank answers; a rank alone does both. */
static void ping_pong_tagged(struct worker *w, int tag, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		int size = sizes[(i + w->nr) % ARRAY_LEN(sizes)], count;
		void *out = buffer_filled(size, seed_of(rank, w->nr, i));
		void *in = buffer_new(size);
		MPI_Request req;
		MPI_Status st;

		if (rank > w->peer)
			MPI_Recv(in, size, MPI_BYTE, w->peer, tag, w->comm,
				 &st);
		MPI_Isend(out, size, MPI_BYTE, w->peer, tag, w->comm, &req);
		if (rank <= w->peer)
			MPI_Recv(in, size, MPI_BYTE, w->peer, tag, w->comm,
				 &st);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		MPI_Get_count(&st, MPI_BYTE, &count);
		CHECK_EQ(count, size);
		CHECK_EQ(st.MPI_TAG, tag);
		CHECK_PATTERN(in, size, seed_of(w->peer, w->nr, i));
		buffer_free(out);
		buffer_free(in);
	}
}

static void ping_pong_own_tag(struct worker *w)
{
	ping_pong_tagged(w, 10 + w->nr, 150);
}

static void ping_pong_same_tag(struct worker *w)
{
	ping_pong_tagged(w, 10, 150);
}

static void blocking_ping_pong(struct worker *w)
{
	int value = 0;

	for (int i = 0; i < 40 && w->peer != rank; i++) {
		if ((rank ^ i) & 1) {
			MPI_Recv(&value, 1, MPI_INT, w->peer, w->nr, w->comm,
				 MPI_STATUS_IGNORE);
			CHECK_EQ(value, i);
		} else {
			value = i;
			MPI_Ssend(&value, 1, MPI_INT, w->peer, w->nr, w->comm);
		}
	}
}

static void collectives(struct worker *w)
{
	for (int i = 0; i < 60; i++) {
		int root = i % ranks, sum = rank + w->nr, all[64];
		double values[500];

		MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, w->comm);
		CHECK_EQ(sum, ranks * (ranks - 1) / 2 + ranks * w->nr);
		for (int k = 0; k < 500; k++)
			values[k] = rank == root ? i + k * w->nr : -1;
		MPI_Bcast(values, 500, MPI_DOUBLE, root, w->comm);
		for (int k = 0; k < 500; k++)
			CHECK_EQ(values[k], i + k * w->nr);
		sum = 10 * rank + w->nr;
		MPI_Allgather(&sum, 1, MPI_INT, all, 1, MPI_INT, w->comm);
		for (int r = 0; r < ranks; r++)
			CHECK_EQ(all[r], 10 * r + w->nr);
		MPI_Barrier(w->comm);
	}
}

/* Many requests are outstanding in every thread; any of its calls completes them. */
static void bursts(struct worker *w)
{
	enum { MANY = 100 };
	MPI_Request req[2 * MANY];
	int out[MANY], in[MANY], left, at;

	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < MANY; i++)
			MPI_Irecv(&in[i], 1, MPI_INT, w->peer,
				  w->nr * MANY + i, w->comm, &req[i]);
		for (int i = MANY - 1; i >= 0; i--) {
			out[i] = (int)seed_of(rank, w->nr, round * MANY + i);
			MPI_Isend(&out[i], 1, MPI_INT, w->peer,
				  w->nr * MANY + i, w->comm, &req[MANY + i]);
		}
		for (left = 2 * MANY; left > MANY; left--)
			MPI_Waitany(2 * MANY, req, &at, MPI_STATUS_IGNORE);
		MPI_Waitall(2 * MANY, req, MPI_STATUSES_IGNORE);
		for (int i = 0; i < MANY; i++)
			CHECK_EQ(in[i], seed_of(w->peer, w->nr,
						round * MANY + i));
	}
}

/* ---- tests ---- */

/*
 * Open MPI sets up a process of another node at the first message to it, but
 * not from two threads at once: the threads below find all processes set up.
 */
TEST(all_ranks_have_met, 2)
{
	for (int i = 1; i < ranks; i++) {
		int to = (rank + i) % ranks, from = (rank + ranks - i) % ranks;
		int word = -1;

		CHECK_EQ(MPI_Sendrecv(&rank, 1, MPI_INT, to, 0, &word, 1,
				      MPI_INT, from, 0, MPI_COMM_WORLD,
				      MPI_STATUS_IGNORE), MPI_SUCCESS);
		CHECK_EQ(word, from);
	}
}

TEST(own_tags, 2)
{
	NEEDS_MULTIPLE();
	together(ping_pong_own_tag, WORLD);
}

TEST(own_communicators, 2)
{
	NEEDS_MULTIPLE();
	apart(ping_pong_same_tag);
}

TEST(blocking_on_one_communicator, 2)
{
	NEEDS_MULTIPLE();
	together(blocking_ping_pong, WORLD);
}

TEST(many_outstanding, 2)
{
	NEEDS_MULTIPLE();
	together(bursts, WORLD);
}

TEST(collectives_of_each_thread, 2)
{
	NEEDS_MULTIPLE();
	apart(collectives);
}

/* One thread calls collectives, the others send messages, on two communicators. */
TEST(collectives_beside_messages, 2)
{
	struct worker w[THREADS];
	MPI_Comm comm;

	NEEDS_MULTIPLE();
	MPI_Comm_dup(WORLD, &comm);
	worker_start(&w[0], collectives, 0, comm);
	worker_start(&w[1], ping_pong_own_tag, 1, WORLD);
	worker_start(&w[2], blocking_ping_pong, 2, comm);
	worker_start(&w[3], bursts, 3, WORLD);
	for (int i = 0; i < THREADS; i++)
		worker_join(&w[i]);
	MPI_Comm_free(&comm);
}

/* ---- receives that compete ---- */

enum { TAG_WORK = 100, TAG_END, ITEMS = 200, GIVERS = 15, LONGEST = 50 };

static int taken[GIVERS * ITEMS], nr_taken;

static int item_len(int nr)
{
	return 1 + nr % LONGEST;
}

/* Count an item, which comes once.  The thread with the last item tells the others. */
static bool took_last(struct worker *w, const int *item, int len)
{
	int nr = item[0];

	CHECK(nr >= 0 && nr < (ranks - 1) * ITEMS);
	CHECK_EQ(len, item_len(nr));
	for (int i = 0; i < len; i++)
		CHECK_EQ(item[i], nr + i);
	CHECK_EQ(__atomic_fetch_add(&taken[nr], 1, __ATOMIC_RELAXED), 0);
	if (__atomic_add_fetch(&nr_taken, 1, __ATOMIC_RELAXED) <
	    (ranks - 1) * ITEMS)
		return false;
	for (int i = 0; i < THREADS - 1; i++)
		MPI_Send(NULL, 0, MPI_INT, rank, TAG_END, w->comm);
	return true;
}

/* After a plain probe another thread may take the message, but not after a match. */
static void take_matched(struct worker *w)
{
	int item[LONGEST], len;
	MPI_Message msg;
	MPI_Status st;

	do {
		MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, w->comm, &msg, &st);
		MPI_Get_count(&st, MPI_INT, &len);
		CHECK(len <= LONGEST);
		MPI_Mrecv(item, len, MPI_INT, &msg, &st);
	} while (st.MPI_TAG != TAG_END && !took_last(w, item, len));
}

static void take_any(struct worker *w)
{
	int item[LONGEST], len;
	MPI_Status st;

	do {
		MPI_Recv(item, LONGEST, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
			 w->comm, &st);
		MPI_Get_count(&st, MPI_INT, &len);
	} while (st.MPI_TAG != TAG_END && !took_last(w, item, len));
}

static void give_items(MPI_Comm comm)
{
	int item[LONGEST];

	for (int k = 0; k < ITEMS; k++) {
		int nr = (rank - 1) * ITEMS + k;

		for (int i = 0; i < LONGEST; i++)
			item[i] = nr + i;
		MPI_Send(item, item_len(nr), MPI_INT, 0, TAG_WORK, comm);
	}
}

/* All but rank 0 send items, which rank 0's threads take. */
static void compete(void (*take)(struct worker *))
{
	MPI_Comm comm;

	if (ranks - 1 > GIVERS)
		SKIP("too many ranks");
	MPI_Comm_dup(WORLD, &comm);
	memset(taken, 0, sizeof(taken));
	nr_taken = 0;
	if (rank)
		give_items(comm);
	else
		together(take, comm);
	MPI_Comm_free(&comm);
}

TEST(matched_probes_compete, 2)
{
	NEEDS_MULTIPLE();
	compete(take_matched);
}

TEST(receives_compete, 2)
{
	NEEDS_MULTIPLE();
	compete(take_any);
}

/* ---- communicators made by several threads ---- */

static void dups(struct worker *w)
{
	MPI_Comm comm;

	for (int i = 0; i < 20; i++) {
		int sum = 1;

		MPI_Comm_dup(w->comm, &comm);
		MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm);
		CHECK_EQ(sum, ranks);
		MPI_Comm_free(&comm);
	}
}

TEST(dups_of_each_thread, 2)
{
	NEEDS_MULTIPLE();
	apart(dups);
}

/* The main thread waits in MPI for messages of another thread of its rank. */
static void send_to_main(struct worker *w)
{
	for (int i = 0; i < 30; i++)
		MPI_Ssend(&i, 1, MPI_INT, rank, 50 + w->nr, WORLD);
}

TEST(threads_of_one_rank, 1)
{
	struct worker w;
	int value;

	NEEDS_MULTIPLE();
	worker_start(&w, send_to_main, 1, WORLD);
	for (int i = 0; i < 30; i++) {
		MPI_Recv(&value, 1, MPI_INT, rank, 51, WORLD,
			 MPI_STATUS_IGNORE);
		CHECK_EQ(value, i);
	}
	worker_join(&w);
}

TEST_MAIN(MPI_THREAD_MULTIPLE)
