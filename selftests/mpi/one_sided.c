// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Windows: puts, gets and atomic operations, with each kind of synchronisation.
 * Every test runs on memory of MPI and on memory of its own.
 */
#include "selftests/mpi/check.h"

struct window {
	MPI_Win win;
	void *mem;
	bool ours;
	size_t bytes;
};

static void window_new(struct window *w, size_t bytes, int unit, bool ours)
{
	w->ours = ours;
	w->bytes = bytes;
	if (ours) {
		w->mem = buffer_new(bytes);
		MPI_Win_create(w->mem, bytes, unit, MPI_INFO_NULL, WORLD,
			       &w->win);
	} else {
		MPI_Win_allocate(bytes, unit, MPI_INFO_NULL, WORLD, &w->mem,
				 &w->win);
	}
	memset(w->mem, 0, bytes);
	/* no rank stores into the window before it is clear */
	MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
}

static void window_free(struct window *w)
{
	MPI_Win_free(&w->win);
	if (w->ours)
		buffer_free(w->mem);
}

/* Define a test that runs on a window of @bytes of each kind. */
#define WINDOW_TEST(name, ranks_needed, bytes, unit)			\
	static void name(struct window *w);				\
	TEST(name, ranks_needed)					\
	{								\
		struct window w;					\
									\
		for (int ours = 0; ours < 2; ours++) {			\
			window_new(&w, bytes, unit, ours);		\
			name(&w);					\
			window_free(&w);				\
		}							\
	}								\
	static void name(struct window *w)

static const int sizes[] = { 0, 1, 8, 63, 64, 65, 1000, 8192, 100000, 1 << 20 };

#define LARGEST		(1 << 20)

/* ---- fence ---- */

/* Every rank has a slot in each window. */
WINDOW_TEST(put_and_fence, 2, (size_t)ranks * LARGEST, 1)
{
	uint8_t *mem = w->mem;

	for (int i = 0; i < ARRAY_LEN(sizes); i++) {
		void *out = buffer_filled(sizes[i], rank + 10 * i);

		MPI_Win_fence(0, w->win);
		for (int r = 0; r < ranks; r++)
			MPI_Put(out, sizes[i], MPI_BYTE, r,
				(MPI_Aint)rank * LARGEST, sizes[i], MPI_BYTE,
				w->win);
		MPI_Win_fence(0, w->win);
		for (int r = 0; r < ranks; r++)
			CHECK_PATTERN(mem + (size_t)r * LARGEST, sizes[i],
				      r + 10 * i);
		buffer_free(out);
	}
}

WINDOW_TEST(get_and_fence, 2, LARGEST, 1)
{
	pattern_fill(w->mem, w->bytes, rank + 3);
	MPI_Win_fence(MPI_MODE_NOPRECEDE, w->win);
	for (int i = 0; i < ARRAY_LEN(sizes); i++)
		for (int r = 0; r < ranks; r++) {
			void *in = buffer_new(sizes[i]);

			MPI_Get(in, sizes[i], MPI_BYTE, r, 0, sizes[i],
				MPI_BYTE, w->win);
			MPI_Win_fence(0, w->win);
			CHECK_PATTERN(in, sizes[i], r + 3);
			buffer_free(in);
		}
	MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
}

/* Many small puts in one epoch do not disturb their neighbours. */
WINDOW_TEST(many_puts_in_an_epoch, 2, 4000 * sizeof(int), sizeof(int))
{
	int next = (rank + 1) % ranks, prev = (rank + ranks - 1) % ranks;
	static int out[4000];
	int *mem = w->mem;

	for (int i = 0; i < 4000; i++)
		out[i] = 10000 * rank + i;
	MPI_Win_fence(0, w->win);
	for (int i = 0; i < 4000; i++) {
		int at = 7 * i % 4000;

		MPI_Put(&out[at], 1, MPI_INT, next, at, 1, MPI_INT, w->win);
	}
	MPI_Win_fence(0, w->win);
	for (int i = 0; i < 4000; i++)
		CHECK_EQ(mem[i], 10000 * prev + i);
}

/* Put to elements with gaps, and get from them. */
WINDOW_TEST(put_and_get_of_a_vector, 2, 600 * sizeof(int), sizeof(int))
{
	int next = (rank + 1) % ranks, prev = (rank + ranks - 1) % ranks;
	int out[200], in[200], *mem = w->mem;
	MPI_Datatype vector;

	MPI_Type_vector(100, 2, 6, MPI_INT, &vector);
	MPI_Type_commit(&vector);
	for (int i = 0; i < 200; i++) {
		out[i] = 1000 * rank + i;
		in[i] = -1;
	}
	MPI_Win_fence(0, w->win);
	MPI_Put(out, 200, MPI_INT, next, 1, 1, vector, w->win);
	MPI_Win_fence(0, w->win);
	for (int i = 0; i < 600; i++) {
		int j = (i + 5) % 6;

		CHECK_EQ(mem[i], j < 2 ? 1000 * prev + i / 6 * 2 + j : 0);
	}
	MPI_Get(in, 200, MPI_INT, next, 1, 1, vector, w->win);
	MPI_Win_fence(0, w->win);
	CHECK_BYTES(in, out, sizeof(in));
	MPI_Type_free(&vector);
}

static void add_to_all(struct window *w, int count)
{
	int *ints = buffer_new(4 * (size_t)count), *mem = w->mem;

	for (int i = 0; i < count; i++)
		ints[i] = (rank + 1) * (i + 1);
	memset(mem, 0, w->bytes);
	MPI_Win_fence(0, w->win);
	for (int r = 0; r < ranks; r++)
		MPI_Accumulate(ints, count, MPI_INT, r, 0, count, MPI_INT,
			       MPI_SUM, w->win);
	MPI_Win_fence(0, w->win);
	for (int i = 0; i < count; i++)
		CHECK_EQ(mem[i], ranks * (ranks + 1) / 2 * (i + 1));
	buffer_free(ints);
}

/* All ranks add to the same elements. */
WINDOW_TEST(accumulate_sum, 2, 50000 * sizeof(int), sizeof(int))
{
	static const int counts[] = { 1, 3, 1000, 50000 };

	for (int i = 0; i < ARRAY_LEN(counts); i++)
		add_to_all(w, counts[i]);
}

WINDOW_TEST(accumulate_of_doubles, 2, 1000 * sizeof(double), sizeof(double))
{
	double out[1000], *mem = w->mem;

	for (int i = 0; i < 1000; i++) {
		out[i] = rank + 0.5 * i;
		mem[i] = i % 2;
	}
	MPI_Win_fence(0, w->win);
	MPI_Accumulate(out, 1000, MPI_DOUBLE, 0, 0, 1000, MPI_DOUBLE, MPI_SUM,
		       w->win);
	MPI_Win_fence(0, w->win);
	for (int i = 0; i < 1000 && !rank; i++)
		CHECK(mem[i] == i % 2 + 0.5 * i * ranks +
		      0.5 * ranks * (ranks - 1));
	MPI_Win_fence(0, w->win);
	MPI_Accumulate(out, 1000, MPI_DOUBLE, ranks - 1, 0, 1000, MPI_DOUBLE,
		       MPI_MAX, w->win);
	MPI_Win_fence(0, w->win);
	for (int i = 1; i < 1000 && rank && rank == ranks - 1; i++)
		CHECK(mem[i] == ranks - 1 + 0.5 * i);
}

/* The last rank to replace is not known, but each element is from one rank. */
WINDOW_TEST(accumulate_replace, 2, 1000 * sizeof(int), sizeof(int))
{
	int out[1000], *mem = w->mem, next = (rank + 1) % ranks;

	for (int i = 0; i < 1000; i++)
		out[i] = 1000 * rank + i;
	MPI_Win_fence(0, w->win);
	MPI_Accumulate(out, 1000, MPI_INT, 0, 0, 1000, MPI_INT, MPI_REPLACE,
		       w->win);
	MPI_Win_fence(0, w->win);
	for (int i = 0; i < 1000 && !rank; i++) {
		CHECK_EQ(mem[i] % 1000, i);
		CHECK(mem[i] / 1000 >= 0 && mem[i] / 1000 < ranks);
	}
	MPI_Win_fence(0, w->win);
	MPI_Accumulate(out, 1000, MPI_INT, next, 0, 1000, MPI_INT, MPI_REPLACE,
		       w->win);
	MPI_Win_fence(0, w->win);
	for (int i = 0; i < 1000; i++)
		CHECK_EQ(mem[i], (rank + ranks - 1) % ranks * 1000 + i);
}

WINDOW_TEST(proc_null, 1, 64, 1)
{
	uint8_t byte = 7;

	MPI_Win_fence(0, w->win);
	MPI_Put(&byte, 1, MPI_BYTE, MPI_PROC_NULL, 0, 1, MPI_BYTE, w->win);
	MPI_Get(&byte, 1, MPI_BYTE, MPI_PROC_NULL, 0, 1, MPI_BYTE, w->win);
	MPI_Accumulate(&byte, 1, MPI_BYTE, MPI_PROC_NULL, 0, 1, MPI_BYTE,
		       MPI_SUM, w->win);
	MPI_Win_fence(0, w->win);
	CHECK_EQ(byte, 7);
}

/* Unit and size of a window are those of the target; rank 0 has no memory. */
TEST(windows_that_differ, 2)
{
	size_t bytes = rank ? (size_t)(rank + 1) * 100 : 0;
	uint8_t *mem = buffer_new(bytes), byte = 40 + rank;
	int next = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
	MPI_Win win;

	MPI_Win_create(mem, bytes, rank + 1, MPI_INFO_NULL, WORLD, &win);
	MPI_Win_fence(0, win);
	MPI_Put(&byte, 1, MPI_BYTE, next, 99, 1, MPI_BYTE, win);
	MPI_Win_fence(0, win);
	if (rank) {
		CHECK_EQ(mem[99 * (rank + 1)], 40 + rank - 1);
		CHECK(is_blank(mem, 99 * (rank + 1)));
	}
	MPI_Win_free(&win);
	buffer_free(mem);
}

/* ---- post, start, complete, wait ---- */

static MPI_Group one_rank(int r)
{
	MPI_Group all, one;

	MPI_Comm_group(WORLD, &all);
	MPI_Group_incl(all, 1, &r, &one);
	MPI_Group_free(&all);
	return one;
}

static void await_accesses(MPI_Win win, bool polls)
{
	int done = 0;

	if (!polls)
		MPI_Win_wait(win);
	while (polls && !done)
		MPI_Win_test(win, &done);
}

WINDOW_TEST(post_start_complete_wait, 2, 20000, 1)
{
	int next = (rank + 1) % ranks, prev = (rank + ranks - 1) % ranks;
	MPI_Group to = one_rank(next), from = one_rank(prev);
	void *out = buffer_new(w->bytes);

	for (int i = 0; i < 20; i++) {
		pattern_fill(out, w->bytes, rank + i);
		MPI_Win_post(from, 0, w->win);
		MPI_Win_start(to, 0, w->win);
		MPI_Put(out, (int)w->bytes, MPI_BYTE, next, 0, (int)w->bytes,
			MPI_BYTE, w->win);
		MPI_Win_complete(w->win);
		await_accesses(w->win, i % 2);
		CHECK_PATTERN(w->mem, w->bytes, prev + i);
	}
	MPI_Group_free(&to);
	MPI_Group_free(&from);
	buffer_free(out);
}

/* Rank 0 exposes its window; each other rank gets its element and puts another one. */
WINDOW_TEST(post_to_all_others, 2, 64 * sizeof(int), sizeof(int))
{
	MPI_Group all, zero = one_rank(0), others;
	int *mem = w->mem, got, left = -rank;

	MPI_Comm_group(WORLD, &all);
	MPI_Group_difference(all, zero, &others);
	for (int i = 0; i < 10; i++) {
		if (!rank) {
			for (int r = 1; r < ranks; r++)
				mem[r] = 100 * r + i;
			MPI_Win_post(others, 0, w->win);
			MPI_Win_wait(w->win);
			for (int r = 1; r < ranks; r++)
				CHECK_EQ(mem[32 + r], -r);
			continue;
		}
		MPI_Win_start(zero, 0, w->win);
		MPI_Get(&got, 1, MPI_INT, 0, rank, 1, MPI_INT, w->win);
		MPI_Put(&left, 1, MPI_INT, 0, 32 + rank, 1, MPI_INT, w->win);
		MPI_Win_complete(w->win);
		CHECK_EQ(got, 100 * rank + i);
	}
	MPI_Group_free(&all);
	MPI_Group_free(&zero);
	MPI_Group_free(&others);
}

/* ---- locks ---- */

/* Read, add one, write: only the lock keeps other ranks out. */
WINDOW_TEST(exclusive_lock, 2, sizeof(int), sizeof(int))
{
	enum { TIMES = 50 };
	int value;

	for (int i = 0; i < TIMES; i++) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w->win);
		MPI_Get(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, w->win);
		MPI_Win_flush(0, w->win);
		value++;
		MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, w->win);
		MPI_Win_unlock(0, w->win);
	}
	MPI_Barrier(WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w->win);
	MPI_Get(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, w->win);
	MPI_Win_unlock(0, w->win);
	CHECK_EQ(value, TIMES * ranks);
}

WINDOW_TEST(shared_lock, 2, (size_t)ranks * 70000, 1)
{
	static const int lens[] = { 1, 64, 65, 5000, 70000 };
	uint8_t *mem = w->mem;

	for (int i = 0; i < ARRAY_LEN(lens); i++) {
		void *out = buffer_filled(lens[i], rank + i);
		void *in = buffer_new(lens[i]);

		for (int r = 0; r < ranks; r++) {
			MPI_Win_lock(MPI_LOCK_SHARED, r, 0, w->win);
			MPI_Put(out, lens[i], MPI_BYTE, r, rank * 70000,
				lens[i], MPI_BYTE, w->win);
			MPI_Win_unlock(r, w->win);
			MPI_Win_lock(MPI_LOCK_SHARED, r, 0, w->win);
			MPI_Get(in, lens[i], MPI_BYTE, r, rank * 70000,
				lens[i], MPI_BYTE, w->win);
			MPI_Win_unlock(r, w->win);
			CHECK_PATTERN(in, lens[i], rank + i);
		}
		MPI_Barrier(WORLD);
		MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, w->win);
		for (int r = 0; r < ranks; r++)
			CHECK_PATTERN(mem + r * 70000, lens[i], r + i);
		MPI_Win_unlock(rank, w->win);
		MPI_Barrier(WORLD);
		buffer_free(out);
		buffer_free(in);
	}
}

WINDOW_TEST(lock_all_and_flush, 2, 64 * sizeof(int), sizeof(int))
{
	int *mem = w->mem, out, in[64];

	MPI_Win_lock_all(0, w->win);
	for (int i = 0; i < 30; i++) {
		out = 1000 * rank + i;
		for (int r = 0; r < ranks; r++)
			MPI_Put(&out, 1, MPI_INT, r, rank, 1, MPI_INT, w->win);
		MPI_Win_flush_all(w->win);
		MPI_Barrier(WORLD);
		MPI_Win_sync(w->win);
		for (int r = 0; r < ranks; r++)
			CHECK_EQ(mem[r], 1000 * r + i);
		for (int r = 0; r < ranks; r++) {
			MPI_Get(in, ranks, MPI_INT, r, 0, ranks, MPI_INT,
				w->win);
			MPI_Win_flush(r, w->win);
			CHECK_EQ(in[(rank + i) % ranks],
				 (rank + i) % ranks * 1000 + i);
		}
		MPI_Barrier(WORLD);
	}
	MPI_Win_unlock_all(w->win);
}

/* After MPI_Win_flush_local() the buffer may change before the bytes arrive. */
WINDOW_TEST(flush_local, 2, 20 * 5000, 1)
{
	int next = (rank + 1) % ranks, prev = (rank + ranks - 1) % ranks;
	void *out = buffer_new(5000);
	uint8_t *mem = w->mem;

	MPI_Win_lock(MPI_LOCK_SHARED, next, 0, w->win);
	for (int i = 0; i < 20; i++) {
		pattern_fill(out, 5000, rank + 4 * i);
		MPI_Put(out, 5000, MPI_BYTE, next, 5000 * i, 5000, MPI_BYTE,
			w->win);
		if (i % 2)
			MPI_Win_flush_local(next, w->win);
		else
			MPI_Win_flush_local_all(w->win);
	}
	MPI_Win_unlock(next, w->win);
	MPI_Barrier(WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, w->win);
	for (int i = 0; i < 20; i++)
		CHECK_PATTERN(mem + 5000 * i, 5000, prev + 4 * i);
	MPI_Win_unlock(rank, w->win);
	buffer_free(out);
}

WINDOW_TEST(operations_with_requests, 2, 3 * 1000 * sizeof(int), sizeof(int))
{
	int next = (rank + 1) % ranks, out[1000], in[1000], old[1000];
	MPI_Request req[2];

	for (int i = 0; i < 1000; i++)
		out[i] = 1000 * rank + i;
	MPI_Win_lock_all(0, w->win);
	MPI_Rput(out, 1000, MPI_INT, next, 0, 1000, MPI_INT, w->win, &req[0]);
	MPI_Raccumulate(out, 1000, MPI_INT, next, 1000, 1000, MPI_INT, MPI_SUM,
			w->win, &req[1]);
	MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
	MPI_Win_flush(next, w->win);
	MPI_Rget(in, 1000, MPI_INT, next, 0, 1000, MPI_INT, w->win, &req[0]);
	MPI_Rget_accumulate(out, 1000, MPI_INT, old, 1000, MPI_INT, next, 1000,
			    1000, MPI_INT, MPI_SUM, w->win, &req[1]);
	MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
	CHECK_BYTES(in, out, sizeof(in));
	CHECK_BYTES(old, out, sizeof(old));
	MPI_Win_flush(next, w->win);
	MPI_Get(in, 1000, MPI_INT, next, 1000, 1000, MPI_INT, w->win);
	MPI_Win_unlock_all(w->win);
	for (int i = 0; i < 1000; i++)
		CHECK_EQ(in[i], 2 * out[i]);
}

/* ---- atomic operations ---- */

/* Check that each rank took @each tickets, which all differ. */
static void check_tickets(const int *mine, int each)
{
	int *all = buffer_new(4 * (size_t)each * ranks);
	uint8_t *seen = calloc(each, ranks);

	CHECK(seen);
	MPI_Gather(mine, each, MPI_INT, all, each, MPI_INT, 0, WORLD);
	for (int i = 0; i < each * ranks && !rank; i++) {
		CHECK(all[i] >= 0 && all[i] < each * ranks);
		CHECK_EQ(seen[all[i]]++, 0);
	}
	free(seen);
	buffer_free(all);
}

WINDOW_TEST(fetch_and_op, 2, 2 * sizeof(int), sizeof(int))
{
	enum { EACH = 100 };
	int ticket[EACH], one = 1, end = 0, none = 0;

	for (int i = 0; i < EACH; i++) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w->win);
		MPI_Fetch_and_op(&one, &ticket[i], MPI_INT, 0, 1, MPI_SUM,
				 w->win);
		MPI_Win_unlock(0, w->win);
		CHECK(!i || ticket[i] > ticket[i - 1]);
	}
	check_tickets(ticket, EACH);
	MPI_Barrier(WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w->win);
	MPI_Fetch_and_op(&none, &end, MPI_INT, 0, 1, MPI_NO_OP, w->win);
	MPI_Win_unlock(0, w->win);
	CHECK_EQ(end, EACH * ranks);
}

/* Ranks replace a value: each value is returned once, or stays at the end. */
WINDOW_TEST(fetch_and_replace, 2, sizeof(long), sizeof(long))
{
	long mine = rank + 1, old, sum, end;

	MPI_Win_lock_all(0, w->win);
	MPI_Fetch_and_op(&mine, &old, MPI_LONG, 0, 0, MPI_REPLACE, w->win);
	MPI_Win_flush(0, w->win);
	MPI_Barrier(WORLD);
	MPI_Fetch_and_op(NULL, &end, MPI_LONG, 0, 0, MPI_NO_OP, w->win);
	MPI_Win_unlock_all(w->win);
	MPI_Allreduce(&old, &sum, 1, MPI_LONG, MPI_SUM, WORLD);
	CHECK_EQ(sum + end, ranks * (ranks + 1) / 2);
}

WINDOW_TEST(get_accumulate, 2, 100 * sizeof(int), sizeof(int))
{
	enum { EACH = 50 };
	int one[100], old[100], ticket[EACH];

	for (int i = 0; i < 100; i++)
		one[i] = 1;
	MPI_Win_lock_all(0, w->win);
	for (int i = 0; i < EACH; i++) {
		MPI_Get_accumulate(one, 100, MPI_INT, old, 100, MPI_INT,
				   ranks - 1, 0, 100, MPI_INT, MPI_SUM,
				   w->win);
		MPI_Win_flush(ranks - 1, w->win);
		ticket[i] = old[99];
	}
	MPI_Barrier(WORLD);
	MPI_Get_accumulate(NULL, 0, MPI_INT, old, 100, MPI_INT, ranks - 1, 0,
			   100, MPI_INT, MPI_NO_OP, w->win);
	MPI_Win_unlock_all(w->win);
	check_tickets(ticket, EACH);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(old[i], EACH * ranks);
}

/* One rank wins each place, and all ranks see the winner. */
WINDOW_TEST(compare_and_swap, 2, 50 * sizeof(int), sizeof(int))
{
	int empty = 0, mine = rank + 1, old, won[50], winners[50], in[50];

	MPI_Win_lock_all(0, w->win);
	for (int i = 0; i < 50; i++) {
		MPI_Compare_and_swap(&mine, &empty, &old, MPI_INT, 0, i,
				     w->win);
		MPI_Win_flush(0, w->win);
		won[i] = old ? 0 : mine;
	}
	MPI_Barrier(WORLD);
	MPI_Get(in, 50, MPI_INT, 0, 0, 50, MPI_INT, w->win);
	MPI_Win_unlock_all(w->win);
	/* two winners of a place would make the sum larger */
	MPI_Allreduce(won, winners, 50, MPI_INT, MPI_SUM, WORLD);
	CHECK_BYTES(in, winners, sizeof(in));
}

/* A lock made of compare and swap protects a plain counter. */
WINDOW_TEST(lock_of_compare_and_swap, 2, 2 * sizeof(int), sizeof(int))
{
	enum { TIMES = 10 };
	int open = 0, held = 1, old, value;

	MPI_Win_lock_all(0, w->win);
	for (int i = 0; i < TIMES; i++) {
		do {
			MPI_Compare_and_swap(&held, &open, &old, MPI_INT, 0, 0,
					     w->win);
			MPI_Win_flush(0, w->win);
		} while (old);
		MPI_Get(&value, 1, MPI_INT, 0, 1, 1, MPI_INT, w->win);
		MPI_Win_flush(0, w->win);
		value++;
		MPI_Put(&value, 1, MPI_INT, 0, 1, 1, MPI_INT, w->win);
		MPI_Win_flush(0, w->win);
		MPI_Fetch_and_op(&open, &old, MPI_INT, 0, 0, MPI_REPLACE,
				 w->win);
		MPI_Win_flush(0, w->win);
	}
	MPI_Barrier(WORLD);
	MPI_Get(&value, 1, MPI_INT, 0, 1, 1, MPI_INT, w->win);
	MPI_Win_unlock_all(w->win);
	CHECK_EQ(value, TIMES * ranks);
}

/* Accumulates to one element from one rank are done in order. */
WINDOW_TEST(order_of_accumulates, 2, 64 * sizeof(int), sizeof(int))
{
	enum { LAST = 200 };
	int *mem = w->mem, value[LAST];

	MPI_Win_fence(0, w->win);
	for (int i = 0; i < LAST; i++) {
		value[i] = 1000 * rank + i;
		MPI_Accumulate(&value[i], 1, MPI_INT, 0, rank, 1, MPI_INT,
			       MPI_REPLACE, w->win);
	}
	MPI_Win_fence(0, w->win);
	for (int r = 0; r < ranks && !rank; r++)
		CHECK_EQ(mem[r], 1000 * r + LAST - 1);
}

TEST(several_windows, 2)
{
	int next = (rank + 1) % ranks, prev = (rank + ranks - 1) % ranks;
	struct window w[6];
	int out[6];

	for (int i = 0; i < 6; i++)
		window_new(&w[i], 100, sizeof(int), i % 2);
	for (int i = 0; i < 6; i++) {
		MPI_Win_fence(0, w[i].win);
		out[i] = 10 * rank + i;
		MPI_Put(&out[i], 1, MPI_INT, next, i, 1, MPI_INT, w[i].win);
	}
	for (int i = 5; i >= 0; i--) {
		MPI_Win_fence(0, w[i].win);
		CHECK_EQ(((int *)w[i].mem)[i], 10 * prev + i);
	}
	for (int i = 0; i < 6; i++)
		window_free(&w[i]);
}

TEST(many_windows_in_turn, 2)
{
	struct window w;

	for (int i = 0; i < 20; i++) {
		window_new(&w, 4096, 1, i % 2);
		MPI_Win_fence(0, w.win);
		MPI_Put(&i, 1, MPI_INT, (rank + 1) % ranks, 4092, 1, MPI_INT,
			w.win);
		MPI_Win_fence(0, w.win);
		CHECK_BYTES((char *)w.mem + 4092, &i, sizeof(i));
		window_free(&w);
	}
}

/* Send messages within an epoch. */
WINDOW_TEST(messages_within_an_epoch, 2, 1000, 1)
{
	int next = (rank + 1) % ranks, prev = (rank + ranks - 1) % ranks, in;
	void *out = buffer_filled(1000, rank);

	for (int i = 0; i < 10; i++) {
		MPI_Win_fence(0, w->win);
		MPI_Put(out, 1000, MPI_BYTE, next, 0, 1000, MPI_BYTE, w->win);
		MPI_Sendrecv(&rank, 1, MPI_INT, next, 5, &in, 1, MPI_INT,
			     MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD,
			     MPI_STATUS_IGNORE);
		CHECK_EQ(in, prev);
		MPI_Win_fence(0, w->win);
		CHECK_PATTERN(w->mem, 1000, prev);
	}
	buffer_free(out);
}

TEST_MAIN(MPI_THREAD_SINGLE)
