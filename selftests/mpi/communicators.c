// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Communicators: how they are made, that their messages do not mix, groups,
 * intercommunicators, topologies and attributes.
 */
#include "selftests/mpi/check.h"

#define TAG		7

static int comm_rank(MPI_Comm comm)
{
	int r;

	MPI_Comm_rank(comm, &r);
	return r;
}

static int comm_size(MPI_Comm comm)
{
	int n;

	MPI_Comm_size(comm, &n);
	return n;
}

/* Send a message round the ranks of @comm, then call a collective. */
static void works(MPI_Comm comm, int seed)
{
	int n = comm_size(comm), r = comm_rank(comm), sum;
	int out = seed + r, in = -1;
	MPI_Status st;

	MPI_Sendrecv(&out, 1, MPI_INT, (r + 1) % n, TAG, &in, 1, MPI_INT,
		     (r + n - 1) % n, TAG, comm, &st);
	CHECK_EQ(in, seed + (r + n - 1) % n);
	CHECK_EQ(st.MPI_SOURCE, (r + n - 1) % n);
	MPI_Allreduce(&out, &sum, 1, MPI_INT, MPI_SUM, comm);
	CHECK_EQ(sum, n * seed + n * (n - 1) / 2);
}

TEST(dup, 1)
{
	MPI_Comm comm;
	int result;

	MPI_Comm_dup(WORLD, &comm);
	MPI_Comm_compare(WORLD, comm, &result);
	CHECK_EQ(result, MPI_CONGRUENT);
	CHECK_EQ(comm_rank(comm), rank);
	CHECK_EQ(comm_size(comm), ranks);
	works(comm, 100);
	MPI_Comm_free(&comm);
	CHECK(comm == MPI_COMM_NULL);
}

TEST(idup, 1)
{
	MPI_Comm comm[3];
	MPI_Request req[3];

	for (int i = 0; i < 3; i++) {
		MPI_Comm_idup(WORLD, &comm[i], &req[i]);
		works(WORLD, i);
		MPI_Wait(&req[i], MPI_STATUS_IGNORE);
	}
	for (int i = 2; i >= 0; i--) {
		works(comm[i], 10 * i);
		MPI_Comm_free(&comm[i]);
	}
}

/* Split by the rank modulo 3, in reverse order. */
TEST(split, 2)
{
	int colour = rank % 3, n = (ranks - colour + 2) / 3;
	MPI_Comm comm;

	MPI_Comm_split(WORLD, colour, -rank, &comm);
	CHECK_EQ(comm_size(comm), n);
	CHECK_EQ(comm_rank(comm), n - 1 - rank / 3);
	works(comm, colour);
	MPI_Comm_free(&comm);
}

TEST(split_leaves_some_out, 2)
{
	MPI_Comm comm;

	MPI_Comm_split(WORLD, rank ? 1 : MPI_UNDEFINED, 0, &comm);
	CHECK_EQ(comm == MPI_COMM_NULL, rank == 0);
	if (rank) {
		CHECK_EQ(comm_rank(comm), rank - 1);
		works(comm, 5);
		MPI_Comm_free(&comm);
	}
}

/* Split down to communicators of one rank. */
TEST(splits_of_splits, 2)
{
	MPI_Comm comm, half;

	MPI_Comm_dup(WORLD, &comm);
	while (comm_size(comm) > 1) {
		int upper = 2 * comm_rank(comm) >= comm_size(comm);

		MPI_Comm_split(comm, upper, comm_rank(comm), &half);
		works(comm, 1);
		works(half, 2);
		MPI_Comm_free(&comm);
		comm = half;
	}
	works(comm, 3);
	MPI_Comm_free(&comm);
}

static MPI_Group world_part(int first, int last, int step)
{
	int range[1][3] = { { first, last, step } };
	MPI_Group all, part;

	MPI_Comm_group(WORLD, &all);
	MPI_Group_range_incl(all, 1, range, &part);
	MPI_Group_free(&all);
	return part;
}

TEST(create, 2)
{
	MPI_Group even = world_part(0, ranks - 1, 2);
	MPI_Comm comm;

	MPI_Comm_create(WORLD, even, &comm);
	CHECK_EQ(comm == MPI_COMM_NULL, rank % 2);
	if (rank % 2 == 0) {
		CHECK_EQ(comm_rank(comm), rank / 2);
		works(comm, 30);
		MPI_Comm_free(&comm);
	}
	MPI_Group_free(&even);
}

/* Only the members of a group call this; other ranks do so for another group. */
TEST(create_group, 2)
{
	MPI_Group mine = world_part(rank % 2, ranks - 1, 2);
	MPI_Comm comm;

	for (int i = 0; i < 10; i++) {
		MPI_Comm_create_group(WORLD, mine, rank % 2, &comm);
		CHECK_EQ(comm_rank(comm), rank / 2);
		works(comm, 30);
		MPI_Comm_free(&comm);
	}
	MPI_Group_free(&mine);
}

/* ---- groups ---- */

static void check_group(MPI_Group group, const int *world_ranks, int n)
{
	int all[16], theirs[16], size;
	MPI_Group world;

	MPI_Comm_group(WORLD, &world);
	MPI_Group_size(group, &size);
	CHECK_EQ(size, n);
	for (int i = 0; i < n; i++)
		all[i] = i;
	MPI_Group_translate_ranks(group, n, all, world, theirs);
	for (int i = 0; i < n; i++)
		CHECK_EQ(theirs[i], world_ranks[i]);
	MPI_Group_free(&world);
	MPI_Group_free(&group);
}

TEST(group_operations, 4)
{
	MPI_Group a = world_part(0, 2, 1), b = world_part(3, 1, -1), c;
	int result, r;

	MPI_Group_union(a, b, &c);
	check_group(c, (int[]){ 0, 1, 2, 3 }, 4);
	MPI_Group_intersection(a, b, &c);
	check_group(c, (int[]){ 1, 2 }, 2);
	MPI_Group_difference(a, b, &c);
	check_group(c, (int[]){ 0 }, 1);
	MPI_Group_incl(b, 2, (int[]){ 2, 0 }, &c);
	check_group(c, (int[]){ 1, 3 }, 2);
	MPI_Group_excl(b, 1, (int[]){ 1 }, &c);
	check_group(c, (int[]){ 3, 1 }, 2);
	MPI_Group_range_excl(a, 1, (int[][3]){ { 0, 2, 2 } }, &c);
	check_group(c, (int[]){ 1 }, 1);
	MPI_Group_compare(a, b, &result);
	CHECK_EQ(result, MPI_UNEQUAL);
	MPI_Group_free(&a);
	a = world_part(1, 3, 1);
	MPI_Group_compare(a, b, &result);
	CHECK_EQ(result, MPI_SIMILAR);
	MPI_Group_rank(b, &r);
	CHECK_EQ(r, rank > 0 && rank < 4 ? 3 - rank : MPI_UNDEFINED);
	MPI_Group_free(&a);
	MPI_Group_free(&b);
}

/* ---- messages of different communicators ---- */

/* Receive from the last communicator first, by any source and any tag too. */
TEST(one_tag_on_several_communicators, 2)
{
	enum { COMMS = 8 };
	int next = (rank + 1) % ranks, prev = (rank + ranks - 1) % ranks;
	int out[COMMS], in;
	MPI_Comm comm[COMMS];
	MPI_Request req[COMMS];
	MPI_Status st;

	for (int i = 0; i < COMMS; i++)
		MPI_Comm_dup(i ? comm[i - 1] : WORLD, &comm[i]);
	for (int i = 0; i < COMMS; i++) {
		out[i] = 100 * rank + i;
		MPI_Isend(&out[i], 1, MPI_INT, next, TAG, comm[i], &req[i]);
	}
	for (int i = COMMS - 1; i >= 0; i--) {
		if (i % 2)
			MPI_Recv(&in, 1, MPI_INT, prev, TAG, comm[i], &st);
		else
			MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
				 comm[i], &st);
		CHECK_EQ(in, 100 * prev + i);
		CHECK_EQ(st.MPI_SOURCE, prev);
	}
	MPI_Waitall(COMMS, req, MPI_STATUSES_IGNORE);
	for (int i = 0; i < COMMS; i++)
		MPI_Comm_free(&comm[i]);
}

/* A receive of any message on a communicator takes none of another communicator. */
TEST(posted_receives_of_several_communicators, 2)
{
	int next = (rank + 1) % ranks, prev = (rank + ranks - 1) % ranks;
	int out[3], in[3] = { -1, -1, -1 }, there;
	MPI_Comm comm[3];
	MPI_Request req[3];

	for (int i = 0; i < 3; i++) {
		MPI_Comm_dup(WORLD, &comm[i]);
		MPI_Irecv(&in[i], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
			  comm[i], &req[i]);
	}
	for (int i = 2; i >= 0; i--) {
		MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &there,
			   MPI_STATUS_IGNORE);
		CHECK_EQ(there, 0);
		out[i] = 10 * rank + i;
		MPI_Send(&out[i], 1, MPI_INT, next, TAG, comm[i]);
		MPI_Wait(&req[i], MPI_STATUS_IGNORE);
		CHECK_EQ(in[i], 10 * prev + i);
	}
	for (int i = 0; i < 3; i++)
		MPI_Comm_free(&comm[i]);
}

/* Messages of a collective do not match receives on its communicator. */
TEST(collective_beside_any_receive, 2)
{
	int in, next = (rank + 1) % ranks, done;
	MPI_Request req;

	MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &req);
	for (int i = 0; i < 20; i++) {
		int sum = 1;

		MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, WORLD);
		CHECK_EQ(sum, ranks);
		MPI_Barrier(WORLD);
	}
	MPI_Test(&req, &done, MPI_STATUS_IGNORE);
	CHECK_EQ(done, 0);
	MPI_Barrier(WORLD);
	MPI_Send(&rank, 1, MPI_INT, next, TAG, WORLD);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	CHECK_EQ(in, (rank + ranks - 1) % ranks);
}

TEST(many_dups_and_frees, 2)
{
	MPI_Comm comm;

	for (int i = 0; i < 300; i++) {
		MPI_Comm_dup(WORLD, &comm);
		if (i % 10 == 0)
			works(comm, i);
		MPI_Comm_free(&comm);
	}
}

TEST(many_communicators_at_once, 2)
{
	enum { MANY = 200 };
	static MPI_Comm comm[MANY];

	for (int i = 0; i < MANY; i++)
		MPI_Comm_split(WORLD, 0, i % 2 ? rank : -rank, &comm[i]);
	for (int i = MANY - 1; i >= 0; i--)
		works(comm[i], i);
	for (int i = 0; i < MANY; i++)
		MPI_Comm_free(&comm[i]);
}

/* A request outlives MPI_Comm_free(). */
TEST(free_with_messages_under_way, 2)
{
	int next = (rank + 1) % ranks, prev = (rank + ranks - 1) % ranks, in;
	MPI_Request req[2];
	MPI_Comm comm;

	for (int i = 0; i < 20; i++) {
		MPI_Comm_dup(WORLD, &comm);
		MPI_Irecv(&in, 1, MPI_INT, prev, TAG, comm, &req[0]);
		MPI_Isend(&rank, 1, MPI_INT, next, TAG, comm, &req[1]);
		MPI_Comm_free(&comm);
		MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
		CHECK_EQ(in, prev);
	}
}

/* ---- intercommunicators ---- */

/* Connect the even ranks and the odd ranks. */
static MPI_Comm inter_new(MPI_Comm *mine)
{
	MPI_Comm inter;

	MPI_Comm_split(WORLD, rank % 2, rank, mine);
	MPI_Intercomm_create(*mine, 0, WORLD, !(rank % 2), TAG, &inter);
	return inter;
}

static void inter_free(MPI_Comm *inter, MPI_Comm *mine)
{
	MPI_Comm_free(inter);
	MPI_Comm_free(mine);
}

static int remote_size(MPI_Comm inter)
{
	int n;

	MPI_Comm_remote_size(inter, &n);
	return n;
}

/* Each rank of a group sends to each rank of the other group. */
TEST(intercommunicator_messages, 2)
{
	MPI_Comm mine, inter = inter_new(&mine);
	int n = remote_size(inter), is_inter, in;
	MPI_Request req[64];

	CHECK(n <= ARRAY_LEN(req));
	CHECK_EQ(n, rank % 2 ? (ranks + 1) / 2 : ranks / 2);
	MPI_Comm_test_inter(inter, &is_inter);
	CHECK(is_inter);
	for (int r = 0; r < n; r++)
		MPI_Isend(&rank, 1, MPI_INT, r, TAG, inter, &req[r]);
	for (int r = n - 1; r >= 0; r--) {
		MPI_Recv(&in, 1, MPI_INT, r, TAG, inter, MPI_STATUS_IGNORE);
		CHECK_EQ(in, 2 * r + !(rank % 2));
	}
	MPI_Waitall(n, req, MPI_STATUSES_IGNORE);
	inter_free(&inter, &mine);
}

/* Return the sum of the even or odd world ranks. */
static int sum_of_half(int odd)
{
	int sum = 0;

	for (int r = odd; r < ranks; r += 2)
		sum += r;
	return sum;
}

TEST(intercommunicator_collectives, 2)
{
	MPI_Comm mine, inter = inter_new(&mine);
	int sum, value = -1, all[64];

	MPI_Barrier(inter);
	/* each group gets the other group's result */
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter);
	CHECK_EQ(sum, sum_of_half(!(rank % 2)));
	MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, inter);
	for (int r = 0; r < remote_size(inter); r++)
		CHECK_EQ(all[r], 2 * r + !(rank % 2));
	if (rank % 2) {
		MPI_Bcast(&value, 1, MPI_INT, 0, inter);
		CHECK_EQ(value, 77);
	} else {
		value = 77;
		MPI_Bcast(&value, 1, MPI_INT, rank ? MPI_PROC_NULL : MPI_ROOT,
			  inter);
	}
	inter_free(&inter, &mine);
}

TEST(intercommunicator_merge, 2)
{
	MPI_Comm mine, inter = inter_new(&mine), all;

	/* odd ranks come first */
	MPI_Intercomm_merge(inter, !(rank % 2), &all);
	CHECK_EQ(comm_size(all), ranks);
	CHECK_EQ(comm_rank(all), rank / 2 + (rank % 2 ? 0 : ranks / 2));
	works(all, 9);
	MPI_Comm_free(&all);
	inter_free(&inter, &mine);
}

TEST(intercommunicator_dup, 2)
{
	MPI_Comm mine, inter = inter_new(&mine), copy;
	int in = -1;

	for (int i = 0; i < 5; i++) {
		MPI_Comm_dup(inter, &copy);
		CHECK_EQ(remote_size(copy), remote_size(inter));
		if (rank < 2)
			MPI_Sendrecv(&rank, 1, MPI_INT, 0, TAG, &in, 1,
				     MPI_INT, 0, TAG, copy, MPI_STATUS_IGNORE);
		CHECK_EQ(in, rank < 2 ? !rank : -1);
		MPI_Comm_free(&copy);
	}
	inter_free(&inter, &mine);
}

/* ---- topologies ---- */

static void shift_along(MPI_Comm cart, int dim, const int *dims, int periodic)
{
	int at[3], from, to, got = -1, me = comm_rank(cart);

	MPI_Cart_coords(cart, me, 3, at);
	MPI_Cart_shift(cart, dim, 1, &from, &to);
	if (!periodic) {
		CHECK_EQ(from == MPI_PROC_NULL, at[dim] == 0);
		CHECK_EQ(to == MPI_PROC_NULL, at[dim] == dims[dim] - 1);
	}
	MPI_Sendrecv(&me, 1, MPI_INT, to, TAG, &got, 1, MPI_INT, from, TAG,
		     cart, MPI_STATUS_IGNORE);
	if (from == MPI_PROC_NULL) {
		CHECK_EQ(got, -1);
		return;
	}
	at[dim] = (at[dim] + dims[dim] - 1) % dims[dim];
	MPI_Cart_rank(cart, at, &from);
	CHECK_EQ(got, from);
}

TEST(cartesian_shifts, 2)
{
	int dims[3] = { 0, 0, 0 }, periods[3] = { 1, 0, 1 };
	MPI_Comm cart;

	MPI_Dims_create(ranks, 3, dims);
	CHECK_EQ(dims[0] * dims[1] * dims[2], ranks);
	MPI_Cart_create(WORLD, 3, dims, periods, 0, &cart);
	for (int dim = 0; dim < 3; dim++)
		shift_along(cart, dim, dims, periods[dim]);
	MPI_Comm_free(&cart);
}

TEST(cartesian_line_leaves_one_out, 2)
{
	int dims[1] = { ranks - 1 }, periods[1] = { 0 }, from, to;
	MPI_Comm cart;

	MPI_Cart_create(WORLD, 1, dims, periods, 0, &cart);
	CHECK_EQ(cart == MPI_COMM_NULL, rank == ranks - 1);
	if (cart == MPI_COMM_NULL)
		return;
	MPI_Cart_shift(cart, 0, 1, &from, &to);
	CHECK_EQ(from, rank ? rank - 1 : MPI_PROC_NULL);
	CHECK_EQ(to, rank < ranks - 2 ? rank + 1 : MPI_PROC_NULL);
	MPI_Comm_free(&cart);
}

TEST(cartesian_rows, 4)
{
	int dims[2] = { 2, ranks / 2 }, periods[2] = { 0, 0 };
	int keep[2] = { 0, 1 }, at[2];
	MPI_Comm cart, row;

	MPI_Cart_create(WORLD, 2, dims, periods, 0, &cart);
	if (cart == MPI_COMM_NULL)
		return;
	MPI_Cart_coords(cart, comm_rank(cart), 2, at);
	MPI_Cart_sub(cart, keep, &row);
	CHECK_EQ(comm_size(row), ranks / 2);
	CHECK_EQ(comm_rank(row), at[1]);
	works(row, 10 * at[0]);
	MPI_Comm_free(&row);
	MPI_Comm_free(&cart);
}

TEST(neighbours_of_a_ring, 3)
{
	int dims[1] = { ranks }, periods[1] = { 1 }, me, got[2];
	MPI_Comm ring;

	MPI_Cart_create(WORLD, 1, dims, periods, 0, &ring);
	me = comm_rank(ring);
	MPI_Neighbor_allgather(&me, 1, MPI_INT, got, 1, MPI_INT, ring);
	CHECK_EQ(got[0], (me + ranks - 1) % ranks);
	CHECK_EQ(got[1], (me + 1) % ranks);
	MPI_Neighbor_alltoall((int[]){ 10 * me, 10 * me + 1 }, 1, MPI_INT, got,
			      1, MPI_INT, ring);
	CHECK_EQ(got[0], 10 * ((me + ranks - 1) % ranks) + 1);
	CHECK_EQ(got[1], 10 * ((me + 1) % ranks));
	MPI_Comm_free(&ring);
}

/* ---- attributes ---- */

static int copies, deletes;

static int copy_attr(MPI_Comm comm, int key, void *extra, void *in, void *out,
		     int *flag)
{
	(void)comm;
	(void)key;
	CHECK(extra == &copies);
	copies++;
	*(void **)out = (char *)in + 1;
	*flag = 1;
	return MPI_SUCCESS;
}

static int delete_attr(MPI_Comm comm, int key, void *attr, void *extra)
{
	(void)comm;
	(void)key;
	(void)attr;
	CHECK(extra == &copies);
	deletes++;
	return MPI_SUCCESS;
}

static void check_attr(MPI_Comm comm, int key, void *want)
{
	void *got;
	int found;

	MPI_Comm_get_attr(comm, key, &got, &found);
	CHECK_EQ(found, want != NULL);
	if (want)
		CHECK(got == want);
}

TEST(attributes_are_copied_and_deleted, 1)
{
	static char place[4];
	MPI_Comm first, second, third;
	int key;

	copies = deletes = 0;
	MPI_Comm_create_keyval(copy_attr, delete_attr, &key, &copies);
	MPI_Comm_dup(WORLD, &first);
	check_attr(first, key, NULL);
	MPI_Comm_set_attr(first, key, place);
	MPI_Comm_dup(first, &second);
	MPI_Comm_dup(second, &third);
	CHECK_EQ(copies, 2);
	check_attr(first, key, place);
	check_attr(third, key, place + 2);
	/* an attribute that is replaced is deleted */
	MPI_Comm_set_attr(second, key, place);
	CHECK_EQ(deletes, 1);
	MPI_Comm_delete_attr(second, key);
	CHECK_EQ(deletes, 2);
	check_attr(second, key, NULL);
	MPI_Comm_free(&second);
	CHECK_EQ(deletes, 2);
	MPI_Comm_free(&first);
	CHECK_EQ(deletes, 3);
	MPI_Comm_free_keyval(&key);
	MPI_Comm_free(&third);
	CHECK_EQ(deletes, 4);
}

TEST(attributes_that_are_not_copied, 1)
{
	static char place;
	int dup_key, null_key;
	MPI_Comm first, second;

	MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN,
			       &dup_key, NULL);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN,
			       &null_key, NULL);
	MPI_Comm_dup(WORLD, &first);
	MPI_Comm_set_attr(first, dup_key, &place);
	MPI_Comm_set_attr(first, null_key, &place);
	MPI_Comm_dup(first, &second);
	check_attr(second, dup_key, &place);
	check_attr(second, null_key, NULL);
	MPI_Comm_free(&second);
	MPI_Comm_split(first, 0, rank, &second);
	check_attr(second, dup_key, NULL);
	MPI_Comm_free(&second);
	MPI_Comm_free(&first);
	MPI_Comm_free_keyval(&dup_key);
	MPI_Comm_free_keyval(&null_key);
}

TEST_MAIN(MPI_THREAD_SINGLE)
