// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Derived datatypes.  Each test describes a type a second time, as its own list
 * of blocks of bytes, and compares it with what MPI sends, receives and packs.
 * Bytes between blocks must not change.
 */
#include "selftests/mpi/check.h"

#define TAG		7
#define MAX_BLOCKS	256

struct layout {
	MPI_Datatype type;
	MPI_Datatype base;	/* type of all elements, or none */
	long extent;
	int blocks;
	struct {
		long at, len;
	} block[MAX_BLOCKS];
};

static void layout_add(struct layout *l, long at, long len)
{
	CHECK(l->blocks < MAX_BLOCKS);
	l->block[l->blocks].at = at;
	l->block[l->blocks++].len = len;
}

static long layout_bytes(const struct layout *l)
{
	long sum = 0;

	for (int i = 0; i < l->blocks; i++)
		sum += l->block[i].len;
	return sum;
}

/* Return how many bytes elements need before their address. */
static long layout_before(const struct layout *l)
{
	long least = 0;

	for (int i = 0; i < l->blocks; i++)
		if (l->block[i].at < least)
			least = l->block[i].at;
	return -least;
}

static long layout_after(const struct layout *l, int count)
{
	long most = 0;

	for (int i = 0; i < l->blocks; i++)
		if (l->block[i].at + l->block[i].len > most)
			most = l->block[i].at + l->block[i].len;
	return most + (count ? count - 1 : 0) * l->extent;
}

/* Loop over the blocks of @count elements, in the order of the type. */
#define for_each_block(l, count, k, i)					\
	for (int k = 0; k < (count); k++)				\
		for (int i = 0; i < (l)->blocks; i++)

static void layout_copy(const struct layout *l, int count, uint8_t *to,
			const uint8_t *from)
{
	for_each_block(l, count, k, i) {
		long at = k * l->extent + l->block[i].at;

		memcpy(to + at, from + at, l->block[i].len);
	}
}

static void layout_pack(const struct layout *l, int count, uint8_t *packed,
			const uint8_t *from)
{
	for_each_block(l, count, k, i) {
		memcpy(packed, from + k * l->extent + l->block[i].at,
		       l->block[i].len);
		packed += l->block[i].len;
	}
}

/* ---- one type, sent round a ring of ranks ---- */

struct run {
	const struct layout *l;
	int count, next, prev;
	long len;
	/* bytes to send, bytes of the previous rank, and the expected result */
	uint8_t *out, *theirs, *want;
	long origin;
};

static void run_start(struct run *r, const struct layout *l, int count)
{
	r->l = l;
	r->count = count;
	r->next = (rank + 1) % ranks;
	r->prev = (rank + ranks - 1) % ranks;
	r->origin = layout_before(l);
	r->len = r->origin + layout_after(l, count);
	r->out = buffer_filled(r->len, rank + 3);
	r->theirs = buffer_filled(r->len, r->prev + 3);
	r->want = buffer_new(r->len);
	layout_copy(l, count, r->want + r->origin, r->theirs + r->origin);
}

static void run_end(struct run *r)
{
	buffer_free(r->out);
	buffer_free(r->theirs);
	buffer_free(r->want);
}

static void run_typed(struct run *r)
{
	uint8_t *in = buffer_new(r->len);
	MPI_Status st;
	int count;

	MPI_Sendrecv(r->out + r->origin, r->count, r->l->type, r->next, TAG,
		     in + r->origin, r->count, r->l->type, r->prev, TAG, WORLD,
		     &st);
	MPI_Get_count(&st, r->l->type, &count);
	CHECK_EQ(count, layout_bytes(r->l) ? r->count : 0);
	CHECK_BYTES(in, r->want, r->len);
	buffer_free(in);
}

/* One side uses the type, the other side the same elements without gaps. */
static void run_contiguous(struct run *r)
{
	long bytes = layout_bytes(r->l) * r->count;
	uint8_t *packed = buffer_new(bytes), *want = buffer_new(bytes);
	uint8_t *in = buffer_new(r->len);
	int size, n;

	MPI_Type_size(r->l->base, &size);
	n = (int)(bytes / size);
	layout_pack(r->l, r->count, want, r->theirs + r->origin);
	MPI_Sendrecv(r->out + r->origin, r->count, r->l->type, r->next, TAG,
		     packed, n, r->l->base, r->prev, TAG, WORLD,
		     MPI_STATUS_IGNORE);
	CHECK_BYTES(packed, want, bytes);
	layout_pack(r->l, r->count, packed, r->out + r->origin);
	MPI_Sendrecv(packed, n, r->l->base, r->next, TAG, in + r->origin,
		     r->count, r->l->type, r->prev, TAG, WORLD,
		     MPI_STATUS_IGNORE);
	CHECK_BYTES(in, r->want, r->len);
	buffer_free(packed);
	buffer_free(want);
	buffer_free(in);
}

/* Pack, send and unpack; then send as the type, and unpack. */
static void run_packed(struct run *r)
{
	uint8_t *mine, *theirs, *in;
	int room, at = 0;

	MPI_Pack_size(r->count, r->l->type, WORLD, &room);
	CHECK(room >= layout_bytes(r->l) * r->count);
	mine = buffer_new(room);
	MPI_Pack(r->out + r->origin, r->count, r->l->type, mine, room, &at,
		 WORLD);
	CHECK(at <= room);
	for (int typed = 0; typed < 2; typed++) {
		theirs = buffer_new(room);
		in = buffer_new(r->len);
		MPI_Sendrecv(typed ? r->out + r->origin : mine,
			     typed ? r->count : at,
			     typed ? r->l->type : MPI_PACKED, r->next, TAG,
			     theirs, room, MPI_PACKED, r->prev, TAG, WORLD,
			     MPI_STATUS_IGNORE);
		at = 0;
		MPI_Unpack(theirs, room, &at, in + r->origin, r->count,
			   r->l->type, WORLD);
		CHECK_BYTES(in, r->want, r->len);
		buffer_free(theirs);
		buffer_free(in);
	}
	buffer_free(mine);
}

static void check_layout(struct layout *l)
{
	static const int counts[] = { 0, 1, 3, 50, 3000 };
	MPI_Aint lower, extent;
	struct run r;
	int size;

	MPI_Type_commit(&l->type);
	MPI_Type_size(l->type, &size);
	CHECK_EQ(size, layout_bytes(l));
	MPI_Type_get_extent(l->type, &lower, &extent);
	CHECK_EQ(extent, l->extent);
	for (int i = 0; i < ARRAY_LEN(counts); i++) {
		run_start(&r, l, counts[i]);
		run_typed(&r);
		if (l->base != MPI_DATATYPE_NULL)
			run_contiguous(&r);
		run_packed(&r);
		run_end(&r);
	}
	MPI_Type_free(&l->type);
}

/* ---- the constructors ---- */

TEST(contiguous, 1)
{
	struct layout l = { .base = MPI_DOUBLE, .extent = 40 };

	MPI_Type_contiguous(5, MPI_DOUBLE, &l.type);
	layout_add(&l, 0, 40);
	check_layout(&l);
}

TEST(no_elements, 1)
{
	struct layout l = { .base = MPI_INT };

	MPI_Type_contiguous(0, MPI_INT, &l.type);
	check_layout(&l);
}

/* The gap after the last block is not part of the extent. */
TEST(vector, 1)
{
	struct layout l = { .base = MPI_INT, .extent = 4 * (6 * 5 + 3) };

	MPI_Type_vector(7, 3, 5, MPI_INT, &l.type);
	for (int i = 0; i < 7; i++)
		layout_add(&l, 4 * 5 * i, 4 * 3);
	check_layout(&l);
}

TEST(vector_of_bytes, 1)
{
	struct layout l = { .base = MPI_CHAR, .extent = 99 * 3 + 1 };

	MPI_Type_vector(100, 1, 3, MPI_CHAR, &l.type);
	for (int i = 0; i < 100; i++)
		layout_add(&l, 3 * i, 1);
	check_layout(&l);
}

TEST(vector_backwards, 1)
{
	struct layout l = { .base = MPI_INT, .extent = 4 * (3 * 4 + 2) };

	MPI_Type_vector(4, 2, -4, MPI_INT, &l.type);
	for (int i = 0; i < 4; i++)
		layout_add(&l, -16 * i, 8);
	check_layout(&l);
}

TEST(hvector, 1)
{
	struct layout l = { .base = MPI_SHORT, .extent = 6 * 13 + 6 };

	/* the stride is no multiple of the element */
	MPI_Type_create_hvector(7, 3, 13, MPI_SHORT, &l.type);
	for (int i = 0; i < 7; i++)
		layout_add(&l, 13 * i, 6);
	check_layout(&l);
}

static const int lens[] = { 2, 0, 1, 5, 3 };
static const int places[] = { 20, 3, 0, 9, 4 };

TEST(indexed, 1)
{
	struct layout l = { .base = MPI_INT, .extent = 4 * 22 };

	/* the blocks are not in the order of memory */
	MPI_Type_indexed(5, lens, places, MPI_INT, &l.type);
	for (int i = 0; i < 5; i++)
		layout_add(&l, 4 * places[i], 4 * lens[i]);
	check_layout(&l);
}

TEST(hindexed, 1)
{
	struct layout l = { .base = MPI_CHAR, .extent = 22 };
	MPI_Aint at[5];

	for (int i = 0; i < 5; i++)
		at[i] = places[i];
	MPI_Type_create_hindexed(5, lens, at, MPI_CHAR, &l.type);
	for (int i = 0; i < 5; i++)
		layout_add(&l, places[i], lens[i]);
	check_layout(&l);
}

TEST(indexed_block, 1)
{
	struct layout l = { .base = MPI_DOUBLE, .extent = 8 * 13 };
	static const int at[] = { 11, 0, 5, 2 };

	MPI_Type_create_indexed_block(4, 2, at, MPI_DOUBLE, &l.type);
	for (int i = 0; i < 4; i++)
		layout_add(&l, 8 * at[i], 16);
	check_layout(&l);
}

struct mixture {
	char c[3];
	double d;
	int i[2];
	short s;
};

static MPI_Datatype mixture_type(void)
{
	static const int n[] = { 3, 1, 2, 1 };
	static const MPI_Aint at[] = {
		offsetof(struct mixture, c), offsetof(struct mixture, d),
		offsetof(struct mixture, i), offsetof(struct mixture, s),
	};
	MPI_Datatype of[] = { MPI_CHAR, MPI_DOUBLE, MPI_INT, MPI_SHORT };
	MPI_Datatype type;

	MPI_Type_create_struct(4, n, at, of, &type);
	return type;
}

static void mixture_blocks(struct layout *l, long at)
{
	layout_add(l, at + offsetof(struct mixture, c), 3);
	layout_add(l, at + offsetof(struct mixture, d), 8);
	layout_add(l, at + offsetof(struct mixture, i), 8);
	layout_add(l, at + offsetof(struct mixture, s), 2);
}

TEST(structure, 1)
{
	struct layout l = {
		.type = mixture_type(),
		.base = MPI_DATATYPE_NULL,
		.extent = sizeof(struct mixture),
	};

	mixture_blocks(&l, 0);
	check_layout(&l);
}

/* Element (z, y, x) of an array of 4 by 5 by 6 integers. */
static long cell(int z, int y, int x)
{
	return 4 * (x + 6 * (y + 5 * z));
}

TEST(subarray_in_c_order, 1)
{
	static const int size[] = { 4, 5, 6 }, part[] = { 2, 3, 4 };
	static const int start[] = { 1, 2, 1 };
	struct layout l = { .base = MPI_INT, .extent = 4 * 4 * 5 * 6 };

	MPI_Type_create_subarray(3, size, part, start, MPI_ORDER_C, MPI_INT,
				 &l.type);
	for (int z = 1; z < 3; z++)
		for (int y = 2; y < 5; y++)
			layout_add(&l, cell(z, y, 1), 4 * 4);
	check_layout(&l);
}

TEST(subarray_in_fortran_order, 1)
{
	static const int size[] = { 6, 5, 4 }, part[] = { 1, 5, 3 };
	static const int start[] = { 5, 0, 0 };
	struct layout l = { .base = MPI_INT, .extent = 4 * 4 * 5 * 6 };

	MPI_Type_create_subarray(3, size, part, start, MPI_ORDER_FORTRAN,
				 MPI_INT, &l.type);
	for (int z = 0; z < 3; z++)
		for (int y = 0; y < 5; y++)
			layout_add(&l, cell(z, y, 5), 4);
	check_layout(&l);
}

/* An element is a column of a matrix of 10 by 6; the next element is the next column. */
TEST(resized_to_less, 1)
{
	struct layout l = { .base = MPI_INT, .extent = 4 };
	MPI_Datatype column, columns;

	MPI_Type_vector(10, 1, 6, MPI_INT, &column);
	MPI_Type_create_resized(column, 0, 4, &columns);
	MPI_Type_contiguous(6, columns, &l.type);
	/* six columns are the matrix transposed */
	l.extent = 6 * 4;
	for (int x = 0; x < 6; x++)
		for (int y = 0; y < 10; y++)
			layout_add(&l, 4 * (6 * y + x), 4);
	MPI_Type_create_resized(l.type, 0, 4 * 60, &column);
	MPI_Type_free(&l.type);
	l.type = column;
	l.extent = 4 * 60;
	MPI_Type_free(&columns);
	check_layout(&l);
}

TEST(resized_to_more, 1)
{
	struct layout l = { .base = MPI_DOUBLE, .extent = 44 };
	MPI_Datatype pair;

	MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
	MPI_Type_create_resized(pair, -8, 44, &l.type);
	MPI_Type_free(&pair);
	layout_add(&l, 0, 16);
	check_layout(&l);
}

/* ---- nested ---- */

TEST(vector_of_structures, 1)
{
	struct layout l = { .base = MPI_DATATYPE_NULL };
	MPI_Datatype one = mixture_type();

	MPI_Type_vector(4, 2, 3, one, &l.type);
	MPI_Type_free(&one);
	l.extent = 11 * sizeof(struct mixture);
	for (int i = 0; i < 4; i++) {
		mixture_blocks(&l, 3 * i * sizeof(struct mixture));
		mixture_blocks(&l, (3 * i + 1) * sizeof(struct mixture));
	}
	check_layout(&l);
}

TEST(structure_of_vectors, 1)
{
	struct layout l = { .base = MPI_DATATYPE_NULL, .extent = 200 };
	static const int n[] = { 1, 2 };
	static const MPI_Aint at[] = { 100, 0 };
	MPI_Datatype of[2], both;

	MPI_Type_vector(3, 1, 2, MPI_INT, &of[0]);
	MPI_Type_vector(2, 1, 3, MPI_DOUBLE, &of[1]);
	MPI_Type_create_struct(2, n, at, of, &both);
	MPI_Type_create_resized(both, 0, 200, &l.type);
	for (int i = 0; i < 3; i++)
		layout_add(&l, 100 + 8 * i, 4);
	for (int i = 0; i < 2; i++) {
		layout_add(&l, 32 * i, 8);
		layout_add(&l, 32 * i + 24, 8);
	}
	MPI_Type_free(&both);
	MPI_Type_free(&of[0]);
	MPI_Type_free(&of[1]);
	check_layout(&l);
}

TEST(three_deep, 1)
{
	struct layout l = { .base = MPI_INT };
	MPI_Datatype row, plane;
	static const int at[] = { 5, 0 };

	MPI_Type_vector(3, 1, 2, MPI_INT, &row);		/* 20 bytes */
	MPI_Type_create_hvector(4, 1, 28, row, &plane);		/* 104 */
	MPI_Type_create_indexed_block(2, 1, at, plane, &l.type);
	l.extent = 6 * 104;
	for (int i = 0; i < 2; i++)
		for (int y = 0; y < 4; y++)
			for (int x = 0; x < 3; x++)
				layout_add(&l, 104 * at[i] + 28 * y + 8 * x, 4);
	MPI_Type_free(&row);
	MPI_Type_free(&plane);
	check_layout(&l);
}

TEST(duplicate_outlives_its_original, 1)
{
	struct layout l = { .base = MPI_INT, .extent = 4 * 7 };
	MPI_Datatype first;

	MPI_Type_vector(3, 1, 3, MPI_INT, &first);
	MPI_Type_commit(&first);
	MPI_Type_dup(first, &l.type);
	MPI_Type_free(&first);
	for (int i = 0; i < 3; i++)
		layout_add(&l, 12 * i, 4);
	check_layout(&l);
}

/* ---- other uses of types ---- */

/* The sender's type has other gaps than the receiver's. */
TEST(different_types_of_one_signature, 1)
{
	static const int n[] = { 3, 3 }, at[] = { 40, 10 };
	int next = (rank + 1) % ranks, prev = (rank + ranks - 1) % ranks;
	MPI_Datatype vector, indexed;
	int out[50], in[50], want[50];

	MPI_Type_vector(6, 1, 2, MPI_INT, &vector);
	MPI_Type_indexed(2, n, at, MPI_INT, &indexed);
	MPI_Type_commit(&vector);
	MPI_Type_commit(&indexed);
	for (int i = 0; i < 50; i++) {
		out[i] = 1000 * rank + i;
		in[i] = want[i] = -1;
	}
	for (int i = 0; i < 6; i++)
		want[i < 3 ? 40 + i : 10 + i - 3] = 1000 * prev + 2 * i;
	MPI_Sendrecv(out, 1, vector, next, TAG, in, 1, indexed, prev, TAG,
		     WORLD, MPI_STATUS_IGNORE);
	CHECK_BYTES(in, want, sizeof(in));
	MPI_Type_free(&vector);
	MPI_Type_free(&indexed);
}

struct pair {
	int i;
	double d;
};

static MPI_Datatype pair_type(void)
{
	static const int n[] = { 1, 1 };
	static const MPI_Aint at[] = {
		offsetof(struct pair, i), offsetof(struct pair, d),
	};
	MPI_Datatype of[] = { MPI_INT, MPI_DOUBLE };
	MPI_Datatype type;

	MPI_Type_create_struct(2, n, at, of, &type);
	MPI_Type_commit(&type);
	return type;
}

/* A message of @basic elements ends within a pair if @basic is odd. */
static void partial_receive(int basic, int room)
{
	int next = (rank + 1) % ranks, prev = (rank + ranks - 1) % ranks;
	struct pair *out = buffer_filled(room * sizeof(*out), rank);
	struct pair *in = buffer_new(room * sizeof(*in));
	MPI_Datatype pair = pair_type();
	struct pair *theirs = buffer_filled(room * sizeof(*in), prev);
	uint8_t packed[1000];
	MPI_Status st;
	int at = 0, count;

	MPI_Pack(out, basic / 2, pair, packed, sizeof(packed), &at, WORLD);
	if (basic % 2)
		MPI_Pack(&out[basic / 2].i, 1, MPI_INT, packed, sizeof(packed),
			 &at, WORLD);
	MPI_Sendrecv(packed, at, MPI_PACKED, next, TAG, in, room, pair, prev,
		     TAG, WORLD, &st);
	MPI_Get_elements(&st, pair, &count);
	CHECK_EQ(count, basic);
	MPI_Get_count(&st, pair, &count);
	CHECK_EQ(count, basic % 2 ? MPI_UNDEFINED : basic / 2);
	for (int i = 0; i < room; i++) {
		if (i < (basic + 1) / 2)
			CHECK_BYTES(&in[i].i, &theirs[i].i, 4);
		else
			CHECK(is_blank(&in[i].i, 4));
		if (i < basic / 2)
			CHECK_BYTES(&in[i].d, &theirs[i].d, 8);
		else
			CHECK(is_blank(&in[i].d, 8));
	}
	MPI_Type_free(&pair);
	buffer_free(out);
	buffer_free(in);
	buffer_free(theirs);
}

TEST(elements_of_a_partial_receive, 1)
{
	for (int basic = 0; basic <= 20; basic++)
		partial_receive(basic, 10);
}

TEST(pack_and_unpack_of_several, 1)
{
	int next = (rank + 1) % ranks, prev = (rank + ranks - 1) % ranks;
	uint8_t packed[300], theirs[300];
	struct pair p[2] = { { rank, 0.5 }, { -rank, 1e300 } }, q[2];
	MPI_Datatype pair = pair_type();
	int at = 0, n = rank + 100;
	double d[3];
	char text[6];

	MPI_Pack(&n, 1, MPI_INT, packed, sizeof(packed), &at, WORLD);
	MPI_Pack("hello", 6, MPI_CHAR, packed, sizeof(packed), &at, WORLD);
	MPI_Pack(p, 2, pair, packed, sizeof(packed), &at, WORLD);
	MPI_Pack((double[]){ 1, rank, 3 }, 3, MPI_DOUBLE, packed,
		 sizeof(packed), &at, WORLD);
	MPI_Sendrecv(packed, at, MPI_PACKED, next, TAG, theirs,
		     sizeof(theirs), MPI_PACKED, prev, TAG, WORLD,
		     MPI_STATUS_IGNORE);
	at = 0;
	MPI_Unpack(theirs, sizeof(theirs), &at, &n, 1, MPI_INT, WORLD);
	MPI_Unpack(theirs, sizeof(theirs), &at, text, 6, MPI_CHAR, WORLD);
	MPI_Unpack(theirs, sizeof(theirs), &at, q, 2, pair, WORLD);
	MPI_Unpack(theirs, sizeof(theirs), &at, d, 3, MPI_DOUBLE, WORLD);
	CHECK_EQ(n, prev + 100);
	CHECK(!strcmp(text, "hello"));
	CHECK(q[0].i == prev && q[0].d == 0.5);
	CHECK(q[1].i == -prev && q[1].d == 1e300);
	CHECK(d[0] == 1 && d[1] == prev && d[2] == 3);
	MPI_Type_free(&pair);
}

/* A matrix is sent by rows and received by columns. */
TEST(large_transpose, 2)
{
	enum { N = 500 };
	int next = (rank + 1) % ranks, prev = (rank + ranks - 1) % ranks;
	double *out = buffer_new(8 * N * N), *in = buffer_new(8 * N * N);
	MPI_Datatype column, columns;

	for (int i = 0; i < N * N; i++)
		out[i] = rank * 1e6 + i;
	MPI_Type_vector(N, 1, N, MPI_DOUBLE, &column);
	MPI_Type_create_resized(column, 0, 8, &columns);
	MPI_Type_commit(&columns);
	MPI_Sendrecv(out, N * N, MPI_DOUBLE, next, TAG, in, N, columns, prev,
		     TAG, WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < N * N; i++)
		CHECK_EQ(in[i % N * N + i / N], prev * 1e6 + i);
	MPI_Type_free(&column);
	MPI_Type_free(&columns);
	buffer_free(out);
	buffer_free(in);
}

/* Send from and receive into one matrix at once, each with gaps for the other. */
TEST(halves_of_one_buffer, 2)
{
	enum { N = 20000 };
	int peer = rank ^ 1;
	MPI_Datatype odd;
	MPI_Request req[2];
	int *both = buffer_new(8 * N);

	if (peer >= ranks)
		peer = rank;
	for (int i = 0; i < N; i++) {
		both[2 * i] = 100000 * rank + i;
		both[2 * i + 1] = -1;
	}
	MPI_Type_vector(N, 1, 2, MPI_INT, &odd);
	MPI_Type_commit(&odd);
	MPI_Irecv(both + 1, 1, odd, peer, TAG, WORLD, &req[0]);
	MPI_Isend(both, 1, odd, peer, TAG, WORLD, &req[1]);
	MPI_Type_free(&odd);
	MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
	for (int i = 0; i < N; i++) {
		CHECK_EQ(both[2 * i], 100000 * rank + i);
		CHECK_EQ(both[2 * i + 1], 100000 * peer + i);
	}
	buffer_free(both);
}

TEST_MAIN(MPI_THREAD_SINGLE)
