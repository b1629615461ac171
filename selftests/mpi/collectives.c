// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Collective operations, blocking and non-blocking, each against a result that
 * every rank computes by itself.
 */
#include "selftests/mpi/check.h"

static const int counts[] = { 0, 1, 3, 1000, 100000 };

enum { FEW = ARRAY_LEN(counts) - 1, ALL };

#define MAX_RANKS	64

struct kind {
	MPI_Datatype type;
	int size;
};

static const struct kind kinds[] = {
	{ MPI_INT, 4 },
	{ MPI_DOUBLE, 8 },
	{ MPI_BYTE, 1 },
};

/* Loop over the first @n counts. */
#define for_each_count(n, count)					\
	for (int c_ = 0, count; c_ < (n) && (count = counts[c_], true); c_++)

static void *filled(int count, const struct kind *k, uint32_t seed)
{
	return buffer_filled((size_t)count * k->size, seed);
}

static void *blank(int count, const struct kind *k)
{
	return buffer_new((size_t)count * k->size);
}

/* ---- barrier ---- */

enum { TAG_BEFORE = 1, TAG_AFTER };

/* The late rank checks that no other rank passes before it has come. */
static void barrier_with_late(int late)
{
	int there;

	if (rank != late) {
		MPI_Send(NULL, 0, MPI_BYTE, late, TAG_BEFORE, WORLD);
		MPI_Barrier(WORLD);
		MPI_Send(NULL, 0, MPI_BYTE, late, TAG_AFTER, WORLD);
		return;
	}
	for (int i = 1; i < ranks; i++)
		MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, TAG_BEFORE, WORLD,
			 MPI_STATUS_IGNORE);
	for (int i = 0; i < 1000; i++) {
		MPI_Iprobe(MPI_ANY_SOURCE, TAG_AFTER, WORLD, &there,
			   MPI_STATUS_IGNORE);
		CHECK_EQ(there, 0);
	}
	MPI_Barrier(WORLD);
	for (int i = 1; i < ranks; i++)
		MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, TAG_AFTER, WORLD,
			 MPI_STATUS_IGNORE);
}

TEST(barrier, 2)
{
	for (int round = 0; round < 3; round++)
		for (int late = 0; late < ranks; late++)
			barrier_with_late(late);
	for (int i = 0; i < 500; i++)
		MPI_Barrier(WORLD);
}

static void ibarrier_with_late(int late)
{
	MPI_Request req;
	int done;

	if (rank == late) {
		for (int i = 1; i < ranks; i++)
			MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, TAG_BEFORE,
				 WORLD, MPI_STATUS_IGNORE);
		MPI_Ibarrier(WORLD, &req);
	} else {
		MPI_Ibarrier(WORLD, &req);
		for (int i = 0; i < 200; i++) {
			MPI_Test(&req, &done, MPI_STATUS_IGNORE);
			CHECK_EQ(done, 0);
		}
		MPI_Send(NULL, 0, MPI_BYTE, late, TAG_BEFORE, WORLD);
	}
	MPI_Wait(&req, MPI_STATUS_IGNORE);
}

TEST(ibarrier, 2)
{
	for (int round = 0; round < 3; round++)
		for (int late = 0; late < ranks; late++)
			ibarrier_with_late(late);
}

/* ---- operations that move data: each rank has its own pattern ---- */

static void bcast(int count, const struct kind *k, int root)
{
	void *buf = rank == root ? filled(count, k, 7 + root) : blank(count, k);

	MPI_Bcast(buf, count, k->type, root, WORLD);
	CHECK_PATTERN(buf, (size_t)count * k->size, 7 + root);
	buffer_free(buf);
}

TEST(bcast, 1)
{
	for (int i = 0; i < ARRAY_LEN(kinds); i++)
		for (int root = 0; root < ranks; root++)
			for_each_count(i ? FEW : ALL, count)
				bcast(count, &kinds[i], root);
}

/* The data is contiguous at the root only. */
TEST(bcast_of_a_vector, 1)
{
	MPI_Datatype vector;
	int buf[6000];

	MPI_Type_vector(1000, 3, 6, MPI_INT, &vector);
	MPI_Type_commit(&vector);
	for (int root = 0; root < ranks; root++) {
		for (int i = 0; i < 6000; i++)
			buf[i] = rank == root ? i : -1;
		if (rank == root)
			MPI_Bcast(buf, 3000, MPI_INT, root, WORLD);
		else
			MPI_Bcast(buf, 1, vector, root, WORLD);
		for (int i = 0; i < 6000 && rank != root; i++)
			CHECK_EQ(buf[i], i % 6 < 3 ? i / 6 * 3 + i % 6 : -1);
	}
	MPI_Type_free(&vector);
}

/* Check each rank's block of @bytes, which has seed @seed + rank. */
static void check_blocks(uint8_t *buf, size_t bytes, uint32_t seed)
{
	for (int r = 0; r < ranks; r++)
		CHECK_PATTERN(buf + r * bytes, bytes, seed + r);
}

static void gather(int count, const struct kind *k, int root, bool in_place)
{
	size_t bytes = (size_t)count * k->size;
	void *out = filled(count, k, 50 + rank);
	uint8_t *in = rank == root ? blank(count * ranks, k) : NULL;

	if (rank == root && in_place) {
		pattern_fill(in + rank * bytes, bytes, 50 + rank);
		MPI_Gather(MPI_IN_PLACE, 0, k->type, in, count, k->type, root,
			   WORLD);
	} else {
		MPI_Gather(out, count, k->type, in, count, k->type, root,
			   WORLD);
	}
	CHECK_PATTERN(out, bytes, 50 + rank);
	buffer_free(out);
	if (!in)
		return;
	check_blocks(in, bytes, 50);
	buffer_free(in);
}

TEST(gather, 1)
{
	for (int i = 0; i < ARRAY_LEN(kinds); i++)
		for (int root = 0; root < ranks; root++)
			for_each_count(i ? FEW : ALL, count)
				gather(count, &kinds[i], root, root % 2);
	for_each_count(FEW, count)
		gather(count, &kinds[0], 0, true);
}

static void scatter(int count, const struct kind *k, int root, bool in_place)
{
	size_t bytes = (size_t)count * k->size;
	uint8_t *out = rank == root ? blank(count * ranks, k) : NULL;
	void *in = blank(count, k);

	for (int r = 0; r < ranks && out; r++)
		pattern_fill(out + r * bytes, bytes, root + 50 * r);
	if (rank == root && in_place) {
		MPI_Scatter(out, count, k->type, MPI_IN_PLACE, 0, k->type,
			    root, WORLD);
		CHECK(is_blank(in, bytes));
	} else {
		MPI_Scatter(out, count, k->type, in, count, k->type, root,
			    WORLD);
		CHECK_PATTERN(in, bytes, root + 50 * rank);
	}
	buffer_free(in);
	if (out)
		buffer_free(out);
}

TEST(scatter, 1)
{
	for (int i = 0; i < ARRAY_LEN(kinds); i++)
		for (int root = 0; root < ranks; root++)
			for_each_count(i ? FEW : ALL, count)
				scatter(count, &kinds[i], root, root % 2);
	for_each_count(FEW, count)
		scatter(count, &kinds[0], 0, true);
}

/* Blocks of different lengths, the last rank's first, with gaps between them. */
struct spread {
	int len[MAX_RANKS], at[MAX_RANKS], all;
};

/* The block of rank r has (r + shift) % 3 * count elements. */
static void spread_init(struct spread *s, int count, int shift)
{
	CHECK(ranks <= MAX_RANKS);
	s->all = 0;
	for (int r = ranks - 1; r >= 0; r--) {
		s->len[r] = (r + shift) % 3 * count;
		s->at[r] = s->all;
		s->all += s->len[r] + 5;
	}
}

/* Fill all blocks. Their seeds differ by @step. */
static void spread_fill(struct spread *s, int *buf, uint32_t seed, int step)
{
	for (int r = 0; r < ranks; r++)
		pattern_fill(buf + s->at[r], 4 * (size_t)s->len[r],
			     seed + r * step);
}

static void spread_check(struct spread *s, int *buf, uint32_t seed, int step)
{
	for (int r = 0; r < ranks; r++) {
		CHECK_PATTERN(buf + s->at[r], 4 * (size_t)s->len[r],
			      seed + r * step);
		CHECK(is_blank(buf + s->at[r] + s->len[r], 20));
	}
}

static void gatherv(int count, int root)
{
	struct spread s;
	int *in, *out;

	spread_init(&s, count, root);
	in = buffer_new(4 * (size_t)s.all);
	out = buffer_filled(4 * (size_t)s.len[rank], 90 + rank);
	MPI_Gatherv(out, s.len[rank], MPI_INT, in, s.len, s.at, MPI_INT, root,
		    WORLD);
	if (rank == root)
		spread_check(&s, in, 90, 1);
	else
		CHECK(is_blank(in, 4 * (size_t)s.all));
	buffer_free(in);
	buffer_free(out);
}

TEST(gatherv, 1)
{
	for (int root = 0; root < ranks; root++)
		for_each_count(ALL, count)
			gatherv(count, root);
}

static void scatterv(int count, int root)
{
	struct spread s;
	int *in, *out;

	spread_init(&s, count, root);
	out = buffer_new(4 * (size_t)s.all);
	in = buffer_new(4 * (size_t)s.len[rank]);
	if (rank == root)
		spread_fill(&s, out, 90, 1);
	MPI_Scatterv(out, s.len, s.at, MPI_INT, in, s.len[rank], MPI_INT, root,
		     WORLD);
	CHECK_PATTERN(in, 4 * (size_t)s.len[rank], 90 + rank);
	buffer_free(in);
	buffer_free(out);
}

TEST(scatterv, 1)
{
	for (int root = 0; root < ranks; root++)
		for_each_count(ALL, count)
			scatterv(count, root);
}

static void allgather(int count, const struct kind *k, bool in_place)
{
	size_t bytes = (size_t)count * k->size;
	void *out = filled(count, k, 20 + rank);
	uint8_t *in = blank(count * ranks, k);

	if (in_place) {
		pattern_fill(in + rank * bytes, bytes, 20 + rank);
		MPI_Allgather(MPI_IN_PLACE, 0, k->type, in, count, k->type,
			      WORLD);
	} else {
		MPI_Allgather(out, count, k->type, in, count, k->type, WORLD);
	}
	check_blocks(in, bytes, 20);
	buffer_free(out);
	buffer_free(in);
}

TEST(allgather, 1)
{
	for (int i = 0; i < 2 * ARRAY_LEN(kinds); i++)
		for_each_count(i < 2 ? ALL : FEW, count)
			allgather(count, &kinds[i / 2], i % 2);
}

static void allgatherv(int count, bool in_place)
{
	struct spread s;
	int *in, *out;

	spread_init(&s, count, 1);
	in = buffer_new(4 * (size_t)s.all);
	out = buffer_filled(4 * (size_t)s.len[rank], 90 + rank);
	if (in_place) {
		pattern_fill(in + s.at[rank], 4 * (size_t)s.len[rank],
			     90 + rank);
		MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INT, in, s.len, s.at,
			       MPI_INT, WORLD);
	} else {
		MPI_Allgatherv(out, s.len[rank], MPI_INT, in, s.len, s.at,
			       MPI_INT, WORLD);
	}
	spread_check(&s, in, 90, 1);
	buffer_free(in);
	buffer_free(out);
}

TEST(allgatherv, 1)
{
	for (int in_place = 0; in_place < 2; in_place++)
		for_each_count(ALL, count)
			allgatherv(count, in_place);
}

/* Return the seed of the block that @from sends to @to. */
static uint32_t seed_of(int from, int to)
{
	return 1000 * from + to;
}

static void alltoall(int count, const struct kind *k, bool in_place)
{
	size_t bytes = (size_t)count * k->size;
	uint8_t *out = blank(count * ranks, k), *in = blank(count * ranks, k);
	uint8_t *from = in_place ? in : out;

	for (int r = 0; r < ranks; r++)
		pattern_fill(from + r * bytes, bytes, seed_of(rank, r));
	MPI_Alltoall(in_place ? MPI_IN_PLACE : out, count, k->type, in, count,
		     k->type, WORLD);
	for (int r = 0; r < ranks; r++)
		CHECK_PATTERN(in + r * bytes, bytes, seed_of(r, rank));
	buffer_free(out);
	buffer_free(in);
}

TEST(alltoall, 1)
{
	for (int i = 0; i < 2 * ARRAY_LEN(kinds); i++)
		for_each_count(i < 2 ? ALL : FEW, count)
			alltoall(count, &kinds[i / 2], i % 2);
}

/* Ranks a and b exchange (a + b) % 3 * count elements. */
static void alltoallv(int count, bool in_place)
{
	struct spread s;
	int *in, *out;

	spread_init(&s, count, rank);
	in = buffer_new(4 * (size_t)s.all);
	out = buffer_new(4 * (size_t)s.all);
	spread_fill(&s, in_place ? in : out, seed_of(rank, 0), 1);
	MPI_Alltoallv(in_place ? MPI_IN_PLACE : out, s.len, s.at, MPI_INT, in,
		      s.len, s.at, MPI_INT, WORLD);
	spread_check(&s, in, seed_of(0, rank), 1000);
	buffer_free(in);
	buffer_free(out);
}

TEST(alltoallv, 1)
{
	for (int in_place = 0; in_place < 2; in_place++)
		for_each_count(ALL, count)
			alltoallv(count, in_place);
}

/* Blocks to odd ranks have gaps at the sender, but not at the receiver. */
static void alltoallw(int count)
{
	MPI_Datatype pairs, out_type[MAX_RANKS], in_type[MAX_RANKS];
	int out_len[MAX_RANKS], in_len[MAX_RANKS], at[MAX_RANKS];
	int *in = buffer_new(16 * (size_t)count * ranks);
	int *out = buffer_new(16 * (size_t)count * ranks);

	MPI_Type_vector(2, 1, 2, MPI_INT, &pairs);
	MPI_Type_create_resized(pairs, 0, 16, &pairs);
	MPI_Type_commit(&pairs);
	for (int r = 0; r < ranks; r++) {
		at[r] = 16 * count * r;
		out_type[r] = r % 2 ? pairs : MPI_INT;
		out_len[r] = r % 2 ? count : 2 * count;
		in_type[r] = MPI_INT;
		in_len[r] = 2 * count;
		for (int i = 0; i < 4 * count; i++)
			out[4 * count * r + i] = i;
	}
	MPI_Alltoallw(out, out_len, at, out_type, in, in_len, at, in_type,
		      WORLD);
	for (int r = 0; r < ranks; r++) {
		int *got = in + 4 * count * r;

		for (int i = 0; i < 2 * count; i++)
			CHECK_EQ(got[i], rank % 2 ? 2 * i : i);
		CHECK(is_blank(got + 2 * count, 8 * (size_t)count));
	}
	MPI_Type_free(&pairs);
	buffer_free(in);
	buffer_free(out);
}

TEST(alltoallw, 1)
{
	for_each_count(FEW, count)
		alltoallw(count);
}

/* Each rank's column becomes a column of the root's matrix. */
TEST(gather_of_columns, 1)
{
	enum { ROWS = 100 };
	MPI_Datatype column, columns;
	int out[ROWS], *in = buffer_new(4 * ROWS * (size_t)ranks);

	MPI_Type_vector(ROWS, 1, ranks, MPI_INT, &column);
	MPI_Type_create_resized(column, 0, 4, &columns);
	MPI_Type_commit(&columns);
	for (int i = 0; i < ROWS; i++)
		out[i] = 1000 * rank + i;
	for (int root = 0; root < ranks; root++)
		MPI_Gather(out, ROWS, MPI_INT, in, 1, columns, root, WORLD);
	for (int i = 0; i < ROWS * ranks; i++)
		CHECK_EQ(in[i], 1000 * (i % ranks) + i / ranks);
	MPI_Type_free(&column);
	MPI_Type_free(&columns);
	buffer_free(in);
}

/* ---- operations that compute ---- */

/* Element @i of rank @r. Sums of these are exact as doubles. */
static int value(int r, int i)
{
	return (r + 1) * 1001 + i * 7 - 3 * r * (i % 5);
}

/* Return the sum over ranks 0 to @end - 1. */
static int sum_of(int end, int i)
{
	int sum = 0;

	for (int r = 0; r < end; r++)
		sum += value(r, i);
	return sum;
}

static int *ints(int r, int count)
{
	int *v = buffer_new(4 * (size_t)count);

	for (int i = 0; i < count; i++)
		v[i] = value(r, i);
	return v;
}

static double *doubles(int r, int count)
{
	double *v = buffer_new(8 * (size_t)count);

	for (int i = 0; i < count; i++)
		v[i] = value(r, i) + 0.5;
	return v;
}

static void check_sums(const int *v, int count, int end)
{
	for (int i = 0; i < count; i++)
		CHECK_EQ(v[i], sum_of(end, i));
}

static void check_double_sums(const double *v, int count, int end)
{
	for (int i = 0; i < count; i++)
		CHECK(v[i] == sum_of(end, i) + 0.5 * end);
}

static void reduce_ints(int count, int root, bool in_place)
{
	int *out = ints(rank, count), *in = ints(rank, count);

	if (in_place && rank == root)
		MPI_Reduce(MPI_IN_PLACE, in, count, MPI_INT, MPI_SUM, root,
			   WORLD);
	else
		MPI_Reduce(out, in, count, MPI_INT, MPI_SUM, root, WORLD);
	if (rank == root)
		check_sums(in, count, ranks);
	else
		for (int i = 0; i < count; i++)
			CHECK_EQ(in[i], value(rank, i));
	buffer_free(out);
	buffer_free(in);
}

static void reduce_doubles(int count, int root)
{
	double *out = doubles(rank, count), *in = buffer_new(8 * (size_t)count);

	MPI_Reduce(out, in, count, MPI_DOUBLE, MPI_SUM, root, WORLD);
	if (rank == root)
		check_double_sums(in, count, ranks);
	buffer_free(out);
	buffer_free(in);
}

TEST(reduce, 1)
{
	for (int root = 0; root < ranks; root++)
		for_each_count(ALL, count) {
			reduce_ints(count, root, false);
			reduce_ints(count, root, true);
			reduce_doubles(count, root);
		}
}

static void allreduce(int count, bool in_place)
{
	int *out = ints(rank, count), *in = ints(rank, count);
	double *d = doubles(rank, count);

	MPI_Allreduce(in_place ? MPI_IN_PLACE : out, in, count, MPI_INT,
		      MPI_SUM, WORLD);
	check_sums(in, count, ranks);
	MPI_Allreduce(MPI_IN_PLACE, d, count, MPI_DOUBLE, MPI_SUM, WORLD);
	check_double_sums(d, count, ranks);
	buffer_free(out);
	buffer_free(in);
	buffer_free(d);
}

TEST(allreduce, 1)
{
	for (int in_place = 0; in_place < 2; in_place++)
		for_each_count(ALL, count)
			allreduce(count, in_place);
}

static void scans(int count, bool in_place)
{
	int *out = ints(rank, count), *in = ints(rank, count);
	double *d = doubles(rank, count);

	MPI_Scan(in_place ? MPI_IN_PLACE : out, in, count, MPI_INT, MPI_SUM,
		 WORLD);
	check_sums(in, count, rank + 1);
	memcpy(in, out, 4 * (size_t)count);
	MPI_Exscan(in_place ? MPI_IN_PLACE : out, in, count, MPI_INT, MPI_SUM,
		   WORLD);
	/* the first rank's result is undefined */
	if (rank)
		check_sums(in, count, rank);
	MPI_Scan(MPI_IN_PLACE, d, count, MPI_DOUBLE, MPI_SUM, WORLD);
	check_double_sums(d, count, rank + 1);
	buffer_free(out);
	buffer_free(in);
	buffer_free(d);
}

TEST(scan_and_exscan, 1)
{
	for (int in_place = 0; in_place < 2; in_place++)
		for_each_count(ALL, count)
			scans(count, in_place);
}

static void check_sums_from(const int *v, int count, int first)
{
	for (int i = 0; i < count; i++)
		CHECK_EQ(v[i], sum_of(ranks, first + i));
}

static void reduce_scatter_block(int count, bool in_place)
{
	int *out = ints(rank, count * ranks), *in = ints(rank, count * ranks);

	MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : out, in, count,
				 MPI_INT, MPI_SUM, WORLD);
	check_sums_from(in, count, count * rank);
	buffer_free(out);
	buffer_free(in);
}

/* The ranks' blocks are in proportions of 0, 1, 2, 0, 1, ... */
static void reduce_scatter(int count, bool in_place)
{
	int len[MAX_RANKS], all = 0, first = 0, *out, *in;

	for (int r = 0; r < ranks; r++) {
		len[r] = r % 3 * count;
		first += r < rank ? len[r] : 0;
		all += len[r];
	}
	out = ints(rank, all);
	in = ints(rank, all);
	MPI_Reduce_scatter(in_place ? MPI_IN_PLACE : out, in, len, MPI_INT,
			   MPI_SUM, WORLD);
	check_sums_from(in, len[rank], first);
	buffer_free(out);
	buffer_free(in);
}

TEST(reduce_scatters, 1)
{
	for (int in_place = 0; in_place < 2; in_place++)
		for_each_count(ALL, count) {
			reduce_scatter_block(count, in_place);
			reduce_scatter(count, in_place);
		}
}

static int expected_of(MPI_Op op, int i)
{
	int x = value(0, i);

	for (int r = 1; r < ranks; r++) {
		int y = value(r, i);

		if (op == MPI_MAX)
			x = x > y ? x : y;
		else if (op == MPI_MIN)
			x = x < y ? x : y;
		else if (op == MPI_PROD)
			x = (int)((unsigned int)x * (unsigned int)y);
		else if (op == MPI_BAND)
			x &= y;
		else if (op == MPI_BOR)
			x |= y;
		else if (op == MPI_BXOR)
			x ^= y;
	}
	return x;
}

TEST(predefined_operations, 1)
{
	MPI_Op ops[] = {
		MPI_MAX, MPI_MIN, MPI_PROD, MPI_BAND, MPI_BOR, MPI_BXOR,
	};
	int *out = ints(rank, 1000), *in = ints(rank, 1000);
	int both[2], yes[2] = { rank != 0, rank == 0 };

	for (int k = 0; k < ARRAY_LEN(ops); k++) {
		/* a product that overflows is defined only without a sign */
		MPI_Allreduce(out, in, 1000, ops[k] == MPI_PROD ?
			      MPI_UNSIGNED : MPI_INT, ops[k], WORLD);
		for (int i = 0; i < 1000; i++)
			CHECK_EQ(in[i], expected_of(ops[k], i));
	}
	MPI_Allreduce(yes, both, 2, MPI_INT, MPI_LAND, WORLD);
	CHECK_EQ(both[0], 0);
	CHECK_EQ(both[1], ranks == 1);
	MPI_Allreduce(yes, both, 2, MPI_INT, MPI_LOR, WORLD);
	CHECK_EQ(both[0], ranks > 1);
	CHECK_EQ(both[1], 1);
	buffer_free(out);
	buffer_free(in);
}

struct place {
	double value;
	int at;
};

/* Two ranks have each extreme; the result is the lower rank. */
static double extreme(int r, int i)
{
	return (r + i) % (ranks > 2 ? ranks - 1 : ranks) * 0.25 - 1;
}

static void locs(int count, MPI_Op op, int sign)
{
	size_t bytes = count * sizeof(struct place);
	struct place *out = buffer_new(bytes), *in = buffer_new(bytes);

	for (int i = 0; i < count; i++) {
		out[i].value = extreme(rank, i);
		out[i].at = rank;
	}
	MPI_Allreduce(out, in, count, MPI_DOUBLE_INT, op, WORLD);
	for (int i = 0; i < count; i++) {
		int at = 0;

		for (int r = 1; r < ranks; r++)
			if (sign * extreme(r, i) > sign * extreme(at, i))
				at = r;
		CHECK_EQ(in[i].at, at);
		CHECK(in[i].value == extreme(at, i));
	}
	buffer_free(out);
	buffer_free(in);
}

TEST(minloc_and_maxloc, 1)
{
	for_each_count(ALL, count) {
		locs(count, MPI_MINLOC, -1);
		locs(count, MPI_MAXLOC, 1);
	}
}

/* ---- an operation that is associative only: products of matrices ---- */

struct matrix {
	uint32_t m[4];
};

static struct matrix product(struct matrix a, struct matrix b)
{
	struct matrix c;

	for (int i = 0; i < 4; i++)
		c.m[i] = a.m[i & 2] * b.m[i & 1] +
			 a.m[(i & 2) + 1] * b.m[(i & 1) + 2];
	return c;
}

static void multiply(void *in, void *inout, int *len, MPI_Datatype *type)
{
	struct matrix *a = in, *b = inout;

	(void)type;
	for (int i = 0; i < *len; i++)
		b[i] = product(a[i], b[i]);
}

static struct matrix matrix_of(int r, int i)
{
	return (struct matrix){ { r + 2, i + 1, 3 * i + r, 2 * r + 5 } };
}

static struct matrix *matrices(int count)
{
	struct matrix *m = buffer_new(count * sizeof(*m));

	for (int i = 0; i < count; i++)
		m[i] = matrix_of(rank, i);
	return m;
}

/* Check products of ranks 0 to @last, from element @first on. */
static void check_products(struct matrix *m, int count, int last, int first)
{
	for (int i = 0; i < count; i++) {
		struct matrix want = matrix_of(0, first + i);

		for (int r = 1; r <= last; r++)
			want = product(want, matrix_of(r, first + i));
		CHECK_BYTES(&m[i], &want, sizeof(want));
	}
}

static void ordered(int count, MPI_Datatype type, MPI_Op op)
{
	struct matrix *out = matrices(count), *in = matrices(count);

	for (int root = 0; root < ranks; root++) {
		MPI_Reduce(out, in, count, type, op, root, WORLD);
		if (rank == root)
			check_products(in, count, ranks - 1, 0);
	}
	MPI_Allreduce(out, in, count, type, op, WORLD);
	check_products(in, count, ranks - 1, 0);
	memcpy(in, out, count * sizeof(*in));
	MPI_Allreduce(MPI_IN_PLACE, in, count, type, op, WORLD);
	check_products(in, count, ranks - 1, 0);
	MPI_Scan(out, in, count, type, op, WORLD);
	check_products(in, count, rank, 0);
	MPI_Exscan(out, in, count, type, op, WORLD);
	if (rank)
		check_products(in, count, rank - 1, 0);
	buffer_free(out);
	buffer_free(in);
}

static void ordered_scatter(int count, MPI_Datatype type, MPI_Op op)
{
	struct matrix *out = matrices(count * ranks);
	struct matrix *in = matrices(count);
	int len[MAX_RANKS];

	MPI_Reduce_scatter_block(out, in, count, type, op, WORLD);
	check_products(in, count, ranks - 1, count * rank);
	for (int r = 0; r < ranks; r++)
		len[r] = count;
	MPI_Reduce_scatter(out, in, len, type, op, WORLD);
	check_products(in, count, ranks - 1, count * rank);
	buffer_free(out);
	buffer_free(in);
}

static void matrix_start(MPI_Datatype *type, MPI_Op *op)
{
	MPI_Type_contiguous(4, MPI_UINT32_T, type);
	MPI_Type_commit(type);
	MPI_Op_create(multiply, 0, op);
}

static void matrix_end(MPI_Datatype *type, MPI_Op *op)
{
	MPI_Op_free(op);
	MPI_Type_free(type);
}

TEST(order_of_a_user_operation, 1)
{
	MPI_Datatype type;
	MPI_Op op;

	matrix_start(&type, &op);
	for_each_count(FEW, count) {
		ordered(count, type, op);
		ordered_scatter(count / 4, type, op);
	}
	ordered(10000, type, op);
	ordered_scatter(4000, type, op);
	matrix_end(&type, &op);
}

/* ---- non-blocking operations that overlap ---- */

/*
 * A batch has each operation once, on data of its own.  Several batches are
 * started before any wait.  Ranks complete them in different orders.
 */
enum { BATCH = 16, BATCHES = 4 };

struct batch {
	MPI_Request req[BATCH];
	int n, count, root;
	MPI_Comm comm;
	/* one block, or a block of each rank */
	int *bcast, *sum, *reduced, *scanned, *exscanned, *mine, *share;
	int *gathered, *scattered, *all, *out, *in, *full, *inv, *outv, *rs;
	int len[MAX_RANKS], at[MAX_RANKS];
	MPI_Datatype types[MAX_RANKS];
	int bytes_at[MAX_RANKS];
	int *inw;
};

static MPI_Request *next_req(struct batch *b)
{
	CHECK(b->n < BATCH);
	return &b->req[b->n++];
}

static void batch_alloc(struct batch *b)
{
	size_t one = 4 * (size_t)b->count, all = one * ranks;
	int **small[] = {
		&b->sum, &b->reduced, &b->scanned, &b->exscanned, &b->share,
		&b->scattered, &b->rs,
	};
	int **large[] = {
		&b->gathered, &b->all, &b->in, &b->out, &b->inv, &b->outv,
		&b->inw,
	};

	for (int i = 0; i < ARRAY_LEN(small); i++)
		*small[i] = buffer_new(one);
	for (int i = 0; i < ARRAY_LEN(large); i++)
		*large[i] = buffer_new(all);
	b->mine = ints(rank, b->count);
	b->full = ints(rank, b->count * ranks);
	b->bcast = ints(rank, b->count);
	for (int r = 0; r < ranks; r++) {
		b->len[r] = b->count;
		b->at[r] = b->count * (ranks - 1 - r);
		b->bytes_at[r] = 4 * b->at[r];
		b->types[r] = MPI_INT;
		pattern_fill(b->out + b->count * r, one, seed_of(rank, r));
		pattern_fill(b->outv + b->at[r], one, seed_of(rank, r));
	}
}

static void start_movers(struct batch *b)
{
	MPI_Comm comm = b->comm;
	int n = b->count;

	MPI_Ibcast(b->bcast, n, MPI_INT, b->root, comm, next_req(b));
	MPI_Igather(b->mine, n, MPI_INT, b->gathered, n, MPI_INT, b->root,
		    comm, next_req(b));
	MPI_Iallgather(b->mine, n, MPI_INT, b->all, n, MPI_INT, comm,
		       next_req(b));
	MPI_Ibarrier(comm, next_req(b));
	MPI_Iscatter(b->out, n, MPI_INT, b->scattered, n, MPI_INT, b->root,
		     comm, next_req(b));
	MPI_Ialltoall(b->out, n, MPI_INT, b->in, n, MPI_INT, comm,
		      next_req(b));
	MPI_Ialltoallv(b->outv, b->len, b->at, MPI_INT, b->inv, b->len, b->at,
		       MPI_INT, comm, next_req(b));
	MPI_Ialltoallw(b->outv, b->len, b->bytes_at, b->types, b->inw, b->len,
		       b->bytes_at, b->types, comm, next_req(b));
}

static void start_reductions(struct batch *b)
{
	MPI_Comm comm = b->comm;
	int n = b->count;

	MPI_Iallreduce(b->mine, b->sum, n, MPI_INT, MPI_SUM, comm,
		       next_req(b));
	MPI_Ireduce(b->mine, b->reduced, n, MPI_INT, MPI_SUM, b->root, comm,
		    next_req(b));
	MPI_Iscan(b->mine, b->scanned, n, MPI_INT, MPI_SUM, comm, next_req(b));
	MPI_Iexscan(b->mine, b->exscanned, n, MPI_INT, MPI_SUM, comm,
		    next_req(b));
	MPI_Ireduce_scatter_block(b->full, b->share, n, MPI_INT, MPI_SUM, comm,
				  next_req(b));
	MPI_Ireduce_scatter(b->full, b->rs, b->len, MPI_INT, MPI_SUM, comm,
			    next_req(b));
}

static void check_movers(struct batch *b)
{
	int n = b->count;
	size_t bytes = 4 * (size_t)n;

	for (int i = 0; i < n; i++) {
		CHECK_EQ(b->bcast[i], value(b->root, i));
		for (int r = 0; r < ranks; r++) {
			CHECK_EQ(b->all[n * r + i], value(r, i));
			if (rank == b->root)
				CHECK_EQ(b->gathered[n * r + i], value(r, i));
		}
	}
	CHECK_PATTERN(b->scattered, bytes, seed_of(b->root, rank));
	for (int r = 0; r < ranks; r++) {
		CHECK_PATTERN(b->in + n * r, bytes, seed_of(r, rank));
		CHECK_PATTERN(b->inv + b->at[r], bytes, seed_of(r, rank));
		CHECK_PATTERN(b->inw + b->at[r], bytes, seed_of(r, rank));
	}
}

static void check_reductions(struct batch *b)
{
	int n = b->count;

	check_sums(b->sum, n, ranks);
	if (rank == b->root)
		check_sums(b->reduced, n, ranks);
	check_sums(b->scanned, n, rank + 1);
	if (rank)
		check_sums(b->exscanned, n, rank);
	check_sums_from(b->share, n, n * rank);
	check_sums_from(b->rs, n, n * rank);
}

static void batch_free(struct batch *b)
{
	int *all[] = {
		b->sum, b->reduced, b->scanned, b->exscanned, b->share,
		b->scattered, b->rs, b->gathered, b->all, b->in, b->out,
		b->inv, b->outv, b->inw, b->mine, b->full, b->bcast,
	};

	for (int i = 0; i < ARRAY_LEN(all); i++)
		buffer_free(all[i]);
}

static void batch_start(struct batch *b, MPI_Comm comm, int count, int root)
{
	memset(b, 0, sizeof(*b));
	b->comm = comm;
	b->count = count;
	b->root = root;
	batch_alloc(b);
	start_movers(b);
	start_reductions(b);
}

static void batch_end(struct batch *b)
{
	check_movers(b);
	check_reductions(b);
	batch_free(b);
}

TEST(non_blocking_one_batch, 1)
{
	struct batch b;

	for (int root = 0; root < ranks; root++)
		for_each_count(FEW, count) {
			batch_start(&b, WORLD, count, root);
			MPI_Waitall(b.n, b.req, MPI_STATUSES_IGNORE);
			batch_end(&b);
		}
}

TEST(non_blocking_large, 1)
{
	struct batch b;

	batch_start(&b, WORLD, 30000, ranks - 1);
	MPI_Waitall(b.n, b.req, MPI_STATUSES_IGNORE);
	batch_end(&b);
}

/* Several batches overlap; each rank waits for them in another order. */
TEST(non_blocking_batches_overlap, 1)
{
	static struct batch b[BATCHES];

	for (int i = 0; i < BATCHES; i++)
		batch_start(&b[i], WORLD, 10 + 700 * i, i % ranks);
	for (int k = 0; k < BATCHES; k++) {
		int i = rank % 2 ? k : BATCHES - 1 - k;

		for (int j = 0; j < b[i].n; j++)
			MPI_Wait(&b[i].req[rank & 2 ? j : b[i].n - 1 - j],
				 MPI_STATUS_IGNORE);
		batch_end(&b[i]);
	}
}

/* Ranks may start operations of two communicators in different orders. */
TEST(non_blocking_on_two_communicators, 2)
{
	static struct batch b[2];
	MPI_Comm comm[2];

	MPI_Comm_dup(WORLD, &comm[0]);
	MPI_Comm_dup(WORLD, &comm[1]);
	for (int k = 0; k < 2; k++) {
		int i = k ^ (rank & 1);

		batch_start(&b[i], comm[i], 500 + 400 * i, i);
	}
	for (int i = 0; i < 2; i++) {
		MPI_Waitall(b[i].n, b[i].req, MPI_STATUSES_IGNORE);
		batch_end(&b[i]);
		MPI_Comm_free(&comm[i]);
	}
}

/* Blocking operations, and messages of any tag, pass a batch that is under way. */
TEST(non_blocking_with_others_between, 2)
{
	int next = (rank + 1) % ranks, prev = (rank + ranks - 1) % ranks;
	struct batch b;
	MPI_Status st;
	int token;

	for (int i = 0; i < 20; i++) {
		batch_start(&b, WORLD, 200, i % ranks);
		MPI_Sendrecv(&i, 1, MPI_INT, next, i, &token, 1, MPI_INT,
			     MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &st);
		CHECK_EQ(st.MPI_SOURCE, prev);
		CHECK_EQ(token, i);
		allreduce(3, false);
		bcast(1000, &kinds[0], i % ranks);
		MPI_Waitall(b.n, b.req, MPI_STATUSES_IGNORE);
		batch_end(&b);
	}
}

TEST(non_blocking_of_v_kinds, 1)
{
	struct spread s;
	int *in, *out, *part;
	MPI_Request req[3];

	for_each_count(FEW, count) {
		spread_init(&s, count, 2);
		in = buffer_new(8 * (size_t)s.all);
		out = buffer_filled(4 * (size_t)s.len[rank], 90 + rank);
		part = buffer_new(4 * (size_t)s.len[rank]);
		MPI_Igatherv(out, s.len[rank], MPI_INT, in, s.len, s.at,
			     MPI_INT, ranks - 1, WORLD, &req[0]);
		MPI_Iallgatherv(out, s.len[rank], MPI_INT, in + s.all, s.len,
				s.at, MPI_INT, WORLD, &req[1]);
		MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
		if (rank == ranks - 1)
			spread_check(&s, in, 90, 1);
		spread_check(&s, in + s.all, 90, 1);
		MPI_Iscatterv(in + s.all, s.len, s.at, MPI_INT, part,
			      s.len[rank], MPI_INT, 0, WORLD, &req[2]);
		MPI_Wait(&req[2], MPI_STATUS_IGNORE);
		CHECK_PATTERN(part, 4 * (size_t)s.len[rank], 90 + rank);
		buffer_free(in);
		buffer_free(out);
		buffer_free(part);
	}
}

TEST(non_blocking_user_operation, 1)
{
	enum { COUNT = 500 };
	struct matrix *out = matrices(COUNT);
	struct matrix *in[3] = {
		matrices(COUNT), matrices(COUNT), matrices(COUNT),
	};
	MPI_Request req[3];
	MPI_Datatype type;
	MPI_Op op;

	matrix_start(&type, &op);
	MPI_Iallreduce(out, in[0], COUNT, type, op, WORLD, &req[0]);
	MPI_Ireduce(out, in[1], COUNT, type, op, ranks - 1, WORLD, &req[1]);
	MPI_Iscan(out, in[2], COUNT, type, op, WORLD, &req[2]);
	MPI_Waitall(3, req, MPI_STATUSES_IGNORE);
	check_products(in[0], COUNT, ranks - 1, 0);
	if (rank == ranks - 1)
		check_products(in[1], COUNT, ranks - 1, 0);
	check_products(in[2], COUNT, rank, 0);
	matrix_end(&type, &op);
	for (int i = 0; i < 3; i++)
		buffer_free(in[i]);
	buffer_free(out);
}

TEST(many_ibcasts_outstanding, 2)
{
	enum { MANY = 200 };
	static MPI_Request req[MANY];
	static int v[MANY][20];

	for (int i = 0; i < MANY; i++) {
		for (int k = 0; k < 20; k++)
			v[i][k] = rank == i % ranks ? value(i, k) : -1;
		MPI_Ibcast(v[i], 20, MPI_INT, i % ranks, WORLD, &req[i]);
	}
	MPI_Waitall(MANY, req, MPI_STATUSES_IGNORE);
	for (int i = 0; i < MANY; i++)
		for (int k = 0; k < 20; k++)
			CHECK_EQ(v[i][k], value(i, k));
}

TEST_MAIN(MPI_THREAD_SINGLE)
