// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Messages between two ranks: the ways to send, receive, complete and probe.
 * MPI_LONG=1 in the environment adds a size of 64 MiB.
 */
#include "selftests/mpi/check.h"

enum {
	TAG = 7,
	TAG_TOKEN,	/* messages without data, which say "go on" */
};

static const int sizes[] = {
	0, 1, 7, 8, 40, 48, 62, 63, 64, 65, 1000, 4096, 8192, 65536,
	1 << 20,
	1 << 24,	/* this and the next only between ranks 0 and 1 */
	1 << 26,	/* if MPI_LONG */
};

static const int mixed[] = { 0, 1, 63, 64, 65, 3000, 20, 70000, 8, 9000 };

static int nr_sizes(void)
{
	int is_long = getenv("MPI_LONG") && atoi(getenv("MPI_LONG"));

	/* only rank 0 needs the variable */
	MPI_Bcast(&is_long, 1, MPI_INT, 0, WORLD);
	return ARRAY_LEN(sizes) - (rank > 1 ? 2 : !is_long);
}

/* Return the partner: ranks 0 and 1, 2 and 3, ...; an odd last rank has none. */
static int partner(void)
{
	int peer = rank ^ 1;

	return peer < ranks ? peer : MPI_PROC_NULL;
}

/* Return true if Open MPI uses its cm component. mpirun passes the choice on. */
static bool pml_is_cm(void)
{
	const char *pml = getenv("OMPI_MCA_pml");

	return pml && !strcmp(pml, "cm");
}

static void token_send(int peer)
{
	MPI_Send(NULL, 0, MPI_BYTE, peer, TAG_TOKEN, WORLD);
}

static void token_recv(int peer)
{
	MPI_Recv(NULL, 0, MPI_BYTE, peer, TAG_TOKEN, WORLD, MPI_STATUS_IGNORE);
}

static void check_status(MPI_Status *st, int source, int tag, int size)
{
	int count;

	MPI_Get_count(st, MPI_BYTE, &count);
	CHECK_EQ(st->MPI_SOURCE, source);
	CHECK_EQ(st->MPI_TAG, tag);
	CHECK_EQ(count, size);
}

static void send_filled(int size, int peer, int tag, uint32_t seed)
{
	void *buf = buffer_filled(size, seed);

	MPI_Send(buf, size, MPI_BYTE, peer, tag, WORLD);
	buffer_free(buf);
}

static void recv_filled(int size, int peer, int tag, uint32_t seed)
{
	void *buf = buffer_new(size);
	MPI_Status st;

	MPI_Recv(buf, size, MPI_BYTE, peer, tag, WORLD, &st);
	check_status(&st, peer, tag, size);
	CHECK_PATTERN(buf, size, seed);
	buffer_free(buf);
}

/* ---- modes ---- */

struct mode {
	int (*send)(const void *, int, MPI_Datatype, int, int, MPI_Comm);
	int (*isend)(const void *, int, MPI_Datatype, int, int, MPI_Comm,
		     MPI_Request *);
	int (*init)(const void *, int, MPI_Datatype, int, int, MPI_Comm,
		    MPI_Request *);
};

static const struct mode modes[] = {
	{ MPI_Send, MPI_Isend, MPI_Send_init },
	{ MPI_Ssend, MPI_Issend, MPI_Ssend_init },
	{ MPI_Bsend, MPI_Ibsend, MPI_Bsend_init },
	{ MPI_Rsend, MPI_Irsend, MPI_Rsend_init },
};

static void *attach(int size, int messages)
{
	int len = messages * (size + MPI_BSEND_OVERHEAD);
	void *space = malloc(len);

	CHECK(space);
	MPI_Buffer_attach(space, len);
	return space;
}

static void detach(void *space)
{
	void *was;
	int len;

	MPI_Buffer_detach(&was, &len);
	CHECK(was == space);
	free(space);
}

static void give(const struct mode *m, int size, int peer, uint32_t seed)
{
	void *buf = buffer_filled(size, seed);
	void *space = NULL;

	if (m->send == MPI_Bsend)
		space = attach(size, 1);
	if (m->send == MPI_Rsend)
		token_recv(peer);
	m->send(buf, size, MPI_BYTE, peer, TAG, WORLD);
	/* The send has ended: the buffer may change. */
	memset(buf, 0, size);
	if (space)
		detach(space);
	buffer_free(buf);
}

static void take(const struct mode *m, int size, int peer, uint32_t seed)
{
	void *buf = buffer_new(size);
	MPI_Request req;
	MPI_Status st;

	if (m->send == MPI_Rsend) {
		MPI_Irecv(buf, size, MPI_BYTE, peer, TAG, WORLD, &req);
		token_send(peer);
		MPI_Wait(&req, &st);
	} else {
		MPI_Recv(buf, size, MPI_BYTE, peer, TAG, WORLD, &st);
	}
	check_status(&st, peer, TAG, size);
	CHECK_PATTERN(buf, size, seed);
	buffer_free(buf);
}

static void blocking(const struct mode *m)
{
	int n = nr_sizes(), peer = partner();

	for (int i = 0; i < n && peer != MPI_PROC_NULL; i++)
		for (int turn = 0; turn < 2; turn++) {
			if ((rank & 1) == turn)
				give(m, sizes[i], peer, rank + 10 * i);
			else
				take(m, sizes[i], peer, peer + 10 * i);
		}
}

static void both_ways(const struct mode *m, int size, int peer)
{
	void *out = buffer_filled(size, rank + size);
	void *in = buffer_new(size);
	void *space = NULL;
	MPI_Request req[2];
	MPI_Status st[2];

	MPI_Irecv(in, size, MPI_BYTE, peer, TAG, WORLD, &req[0]);
	if (m->isend == MPI_Ibsend)
		space = attach(size, 1);
	if (m->isend == MPI_Irsend) {
		token_send(peer);
		token_recv(peer);
	}
	m->isend(out, size, MPI_BYTE, peer, TAG, WORLD, &req[1]);
	MPI_Waitall(2, req, st);
	memset(out, 0, size);
	check_status(&st[0], peer, TAG, size);
	CHECK_PATTERN(in, size, peer + size);
	if (space)
		detach(space);
	buffer_free(out);
	buffer_free(in);
}

static void non_blocking(const struct mode *m)
{
	int n = nr_sizes(), peer = partner();

	for (int i = 0; i < n && peer != MPI_PROC_NULL; i++)
		both_ways(m, sizes[i], peer);
}

TEST(standard_send, 2)
{
	blocking(&modes[0]);
}

TEST(synchronous_send, 2)
{
	blocking(&modes[1]);
}

TEST(buffered_send, 2)
{
	blocking(&modes[2]);
}

TEST(ready_send, 2)
{
	blocking(&modes[3]);
}

TEST(standard_isend, 2)
{
	non_blocking(&modes[0]);
}

TEST(synchronous_isend, 2)
{
	non_blocking(&modes[1]);
}

TEST(buffered_isend, 2)
{
	non_blocking(&modes[2]);
}

TEST(ready_isend, 2)
{
	non_blocking(&modes[3]);
}

/* The message is here before the receive. */
TEST(receive_after_arrival, 2)
{
	int n = nr_sizes(), peer = partner();

	for (int i = 0; i < n && peer != MPI_PROC_NULL; i++) {
		void *buf = buffer_filled(sizes[i], rank + i);
		MPI_Request req;

		MPI_Isend(buf, sizes[i], MPI_BYTE, peer, TAG, WORLD, &req);
		token_send(peer);
		token_recv(peer);
		recv_filled(sizes[i], peer, TAG, peer + i);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		buffer_free(buf);
	}
}

TEST(synchronous_send_waits_for_its_receive, 2)
{
	int peer = partner(), done;
	MPI_Request req;

	if (peer == MPI_PROC_NULL)
		return;
	if (rank & 1) {
		token_recv(peer);
		recv_filled(0, peer, TAG, 0);
		return;
	}
	MPI_Issend(NULL, 0, MPI_BYTE, peer, TAG, WORLD, &req);
	for (int i = 0; i < 1000; i++) {
		MPI_Test(&req, &done, MPI_STATUS_IGNORE);
		CHECK_EQ(done, 0);
	}
	token_send(peer);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
}

/* No receive is posted for these messages when they are sent. */
TEST(buffered_sends_return_at_once, 2)
{
	enum { MESSAGES = 50, SIZE = 20000 };
	int peer = partner();
	void *buf, *space;

	if (peer == MPI_PROC_NULL)
		return;
	buf = buffer_new(SIZE);
	space = attach(SIZE, MESSAGES);
	for (int i = 0; i < MESSAGES; i++) {
		pattern_fill(buf, SIZE, rank + 2 * i);
		MPI_Bsend(buf, SIZE, MPI_BYTE, peer, TAG, WORLD);
	}
	for (int i = 0; i < MESSAGES; i++)
		recv_filled(SIZE, peer, TAG, peer + 2 * i);
	detach(space);
	buffer_free(buf);
}

/* ---- matching ---- */

TEST(any_source_and_any_tag, 2)
{
	int seen[16] = { 0 }, tag;
	uint8_t buf[100];
	MPI_Status st;

	if (ranks > ARRAY_LEN(seen))
		SKIP("too many ranks");
	if (rank) {
		send_filled(10 + rank, 0, TAG + rank, rank);
		return;
	}
	for (int i = 1; i < ranks; i++) {
		MPI_Recv(buf, sizeof(buf), MPI_BYTE, MPI_ANY_SOURCE,
			 MPI_ANY_TAG, WORLD, &st);
		CHECK(st.MPI_SOURCE > 0 && st.MPI_SOURCE < ranks);
		tag = TAG + st.MPI_SOURCE;
		check_status(&st, st.MPI_SOURCE, tag, 10 + st.MPI_SOURCE);
		CHECK_PATTERN(buf, 10 + st.MPI_SOURCE, st.MPI_SOURCE);
		CHECK_EQ(seen[st.MPI_SOURCE]++, 0);
	}
}

TEST(any_source_of_one_tag, 2)
{
	uint8_t buf[100];
	MPI_Status st;

	if (rank) {
		send_filled(20, 0, 1, rank);
		send_filled(30, 0, 2, rank);
		return;
	}
	/* receive the first tag last */
	for (int tag = 2; tag; tag--)
		for (int i = 1; i < ranks; i++) {
			MPI_Recv(buf, sizeof(buf), MPI_BYTE, MPI_ANY_SOURCE,
				 tag, WORLD, &st);
			check_status(&st, st.MPI_SOURCE, tag, 10 + 10 * tag);
			CHECK_PATTERN(buf, 10 + 10 * tag, st.MPI_SOURCE);
		}
}

TEST(one_source_of_any_tag, 2)
{
	uint8_t buf[100];
	MPI_Status st;

	if (rank) {
		send_filled(20, 0, 2 * rank, rank);
		send_filled(30, 0, 1, rank);
		return;
	}
	for (int source = ranks - 1; source; source--) {
		MPI_Recv(buf, sizeof(buf), MPI_BYTE, source, MPI_ANY_TAG,
			 WORLD, &st);
		check_status(&st, source, 2 * source, 20);
		CHECK_PATTERN(buf, 20, source);
		MPI_Recv(buf, sizeof(buf), MPI_BYTE, source, MPI_ANY_TAG,
			 WORLD, &st);
		check_status(&st, source, 1, 30);
		CHECK_PATTERN(buf, 30, source);
	}
}

/* The largest tag is a tag like any other. */
TEST(extreme_tags, 2)
{
	int peer = partner(), *upper, found;

	if (peer == MPI_PROC_NULL)
		return;
	MPI_Comm_get_attr(WORLD, MPI_TAG_UB, &upper, &found);
	CHECK(found);
	CHECK(*upper >= 32767);
	send_filled(5, peer, *upper, rank);
	send_filled(6, peer, *upper - 1, rank);
	send_filled(7, peer, 0, rank);
	recv_filled(7, peer, 0, peer);
	recv_filled(6, peer, *upper - 1, peer);
	recv_filled(5, peer, *upper, peer);
}

/* ---- order ---- */

#define IN_ORDER	300

static int mixed_size(int i)
{
	return mixed[i % ARRAY_LEN(mixed)];
}

struct burst {
	MPI_Request req[IN_ORDER];
	MPI_Status st[IN_ORDER];
	void *buf[IN_ORDER];
};

static struct burst in_burst, out_burst;

/* The tag of a message is TAG, or with @tags one of two in turn. */
static int burst_tag(int i, bool tags)
{
	return TAG + 10 * (tags && i % 2);
}

static void burst_recv(int peer, bool tags)
{
	int largest = 70000;

	for (int i = 0; i < IN_ORDER; i++) {
		in_burst.buf[i] = buffer_new(largest);
		MPI_Irecv(in_burst.buf[i], largest, MPI_BYTE, peer,
			  tags ? MPI_ANY_TAG : TAG, WORLD, &in_burst.req[i]);
	}
}

static void burst_send(int peer, bool tags)
{
	for (int i = 0; i < IN_ORDER; i++) {
		out_burst.buf[i] = buffer_filled(mixed_size(i), rank + 9 * i);
		MPI_Isend(out_burst.buf[i], mixed_size(i), MPI_BYTE, peer,
			  burst_tag(i, tags), WORLD, &out_burst.req[i]);
	}
}

static void burst_check(int peer, bool tags)
{
	MPI_Waitall(IN_ORDER, in_burst.req, in_burst.st);
	for (int i = 0; i < IN_ORDER; i++) {
		check_status(&in_burst.st[i], peer, burst_tag(i, tags),
			     mixed_size(i));
		CHECK_PATTERN(in_burst.buf[i], mixed_size(i), peer + 9 * i);
		buffer_free(in_burst.buf[i]);
	}
}

static void burst_sent(void)
{
	MPI_Waitall(IN_ORDER, out_burst.req, MPI_STATUSES_IGNORE);
	for (int i = 0; i < IN_ORDER; i++)
		buffer_free(out_burst.buf[i]);
}

static void in_order(bool posted_before, bool tags)
{
	int peer = partner();

	if (peer == MPI_PROC_NULL)
		return;
	/*
	 * A receive of any tag would take the token, so the odd rank sends it
	 * after all messages.
	 */
	if (rank & 1) {
		if (posted_before)
			token_recv(peer);
		burst_send(peer, tags);
		if (!posted_before)
			token_send(peer);
		burst_sent();
		return;
	}
	if (!posted_before)
		token_recv(peer);
	burst_recv(peer, tags);
	if (posted_before)
		token_send(peer);
	burst_check(peer, tags);
}

TEST(order_of_receives_posted_before, 2)
{
	in_order(true, false);
}

TEST(order_of_receives_posted_after, 2)
{
	in_order(false, false);
}

TEST(order_of_any_tag_posted_before, 2)
{
	in_order(true, true);
}

TEST(order_of_any_tag_posted_after, 2)
{
	in_order(false, true);
}

/* Order holds within a tag, in whatever order the tags are received. */
TEST(order_within_each_of_two_tags, 2)
{
	int peer = partner();

	if (peer == MPI_PROC_NULL)
		return;
	if (rank & 1) {
		burst_send(peer, true);
		burst_sent();
		return;
	}
	for (int odd = 1; odd >= 0; odd--)
		for (int i = odd; i < IN_ORDER; i += 2)
			recv_filled(mixed_size(i), peer, burst_tag(i, true),
				    peer + 9 * i);
}

/* ---- exchanges ---- */

TEST(sendrecv_round_a_ring, 2)
{
	int next = (rank + 1) % ranks, prev = (rank + ranks - 1) % ranks;
	MPI_Status st;

	for (int i = 0; i < ARRAY_LEN(sizes) - 1; i++) {
		/* the lengths differ in the two directions */
		int out_len = sizes[i] + next, in_len = sizes[i] + rank;
		void *out = buffer_filled(out_len, rank + i);
		void *in = buffer_new(in_len);

		MPI_Sendrecv(out, out_len, MPI_BYTE, next, TAG + i, in, in_len,
			     MPI_BYTE, prev, TAG + i, WORLD, &st);
		check_status(&st, prev, TAG + i, in_len);
		CHECK_PATTERN(in, in_len, prev + i);
		buffer_free(out);
		buffer_free(in);
	}
}

TEST(sendrecv_replace_round_a_ring, 2)
{
	int next = (rank + 1) % ranks, prev = (rank + ranks - 1) % ranks;
	static const int lens[] = { 0, 1, 64, 65, 10000, 1 << 20 };
	MPI_Status st;

	for (int i = 0; i < ARRAY_LEN(lens); i++) {
		void *buf = buffer_filled(lens[i], rank + i);

		MPI_Sendrecv_replace(buf, lens[i], MPI_BYTE, next, TAG, prev,
				     TAG, WORLD, &st);
		check_status(&st, prev, TAG, lens[i]);
		CHECK_PATTERN(buf, lens[i], prev + i);
		buffer_free(buf);
	}
}

static void self_exchange(int size)
{
	void *out = buffer_filled(size, rank), *in = buffer_new(size);
	MPI_Request req;
	MPI_Status st;

	MPI_Isend(out, size, MPI_BYTE, rank, TAG, WORLD, &req);
	MPI_Recv(in, size, MPI_BYTE, rank, TAG, WORLD, &st);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	check_status(&st, rank, TAG, size);
	CHECK_PATTERN(in, size, rank);
	memset(in, 0, size);
	MPI_Irecv(in, size, MPI_BYTE, MPI_ANY_SOURCE, TAG, WORLD, &req);
	MPI_Send(out, size, MPI_BYTE, rank, TAG, WORLD);
	MPI_Wait(&req, &st);
	check_status(&st, rank, TAG, size);
	CHECK_PATTERN(in, size, rank);
	buffer_free(out);
	buffer_free(in);
}

TEST(send_to_self, 1)
{
	static const int lens[] = { 0, 1, 64, 65, 10000, 1 << 20 };

	for (int i = 0; i < ARRAY_LEN(lens); i++)
		self_exchange(lens[i]);
}

TEST(proc_null, 1)
{
	MPI_Request req[2];
	MPI_Status st;
	int byte = 5, there;

	MPI_Send(&byte, 4, MPI_BYTE, MPI_PROC_NULL, TAG, WORLD);
	MPI_Ssend(&byte, 4, MPI_BYTE, MPI_PROC_NULL, TAG, WORLD);
	MPI_Recv(&byte, 4, MPI_BYTE, MPI_PROC_NULL, TAG, WORLD, &st);
	check_status(&st, MPI_PROC_NULL, MPI_ANY_TAG, 0);
	MPI_Probe(MPI_PROC_NULL, TAG, WORLD, &st);
	check_status(&st, MPI_PROC_NULL, MPI_ANY_TAG, 0);
	MPI_Iprobe(MPI_PROC_NULL, TAG, WORLD, &there, &st);
	CHECK(there);
	MPI_Irecv(&byte, 4, MPI_BYTE, MPI_PROC_NULL, TAG, WORLD, &req[0]);
	MPI_Isend(&byte, 4, MPI_BYTE, MPI_PROC_NULL, TAG, WORLD, &req[1]);
	MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
	MPI_Sendrecv(&byte, 4, MPI_BYTE, MPI_PROC_NULL, TAG, &byte, 4,
		     MPI_BYTE, MPI_PROC_NULL, TAG, WORLD, &st);
	check_status(&st, MPI_PROC_NULL, MPI_ANY_TAG, 0);
	CHECK_EQ(byte, 5);
}

/* ---- completion ---- */

#define EACH		8
#define MOST		(EACH * 16)

/* Return the number of completed requests, or -1 if none are left. */
typedef int (*completer)(int n, MPI_Request *req, int *at, MPI_Status *st);

static int by_waitany(int n, MPI_Request *req, int *at, MPI_Status *st)
{
	MPI_Waitany(n, req, at, st);
	return *at == MPI_UNDEFINED ? -1 : 1;
}

static int by_testany(int n, MPI_Request *req, int *at, MPI_Status *st)
{
	int done;

	MPI_Testany(n, req, at, &done, st);
	if (!done)
		return 0;
	return *at == MPI_UNDEFINED ? -1 : 1;
}

static int by_waitsome(int n, MPI_Request *req, int *at, MPI_Status *st)
{
	int done;

	MPI_Waitsome(n, req, &done, at, st);
	return done == MPI_UNDEFINED ? -1 : done;
}

static int by_testsome(int n, MPI_Request *req, int *at, MPI_Status *st)
{
	int done;

	MPI_Testsome(n, req, &done, at, st);
	return done == MPI_UNDEFINED ? -1 : done;
}

static int from_all(MPI_Request *req, void **buf)
{
	int n = 0;

	for (int source = 0; source < ranks; source++)
		for (int i = 0; i < EACH; i++, n++) {
			buf[n] = buffer_new(mixed_size(source + i));
			MPI_Irecv(buf[n], mixed_size(source + i), MPI_BYTE,
				  source, TAG + i, WORLD, &req[n]);
		}
	return n;
}

/* Send to all ranks, in another order than that of the receives. */
static int to_all(MPI_Request *req, void **buf)
{
	int n = 0;

	for (int dest = ranks - 1; dest >= 0; dest--)
		for (int i = EACH - 1; i >= 0; i--, n++) {
			int size = mixed_size(rank + i);

			buf[n] = buffer_filled(size, rank + 100 * i);
			MPI_Isend(buf[n], size, MPI_BYTE, dest, TAG + i, WORLD,
				  &req[n]);
		}
	return n;
}

static void all_sent(int n, MPI_Request *req, void **buf)
{
	MPI_Waitall(n, req, MPI_STATUSES_IGNORE);
	for (int i = 0; i < n; i++)
		buffer_free(buf[i]);
}

static void check_one(int at, MPI_Status *st, MPI_Request req, void *buf)
{
	int source = at / EACH, i = at % EACH;

	CHECK(req == MPI_REQUEST_NULL);
	check_status(st, source, TAG + i, mixed_size(source + i));
	CHECK_PATTERN(buf, mixed_size(source + i), source + 100 * i);
	buffer_free(buf);
}

static void completes_all(completer complete)
{
	static MPI_Request in[MOST], out[MOST];
	static void *in_buf[MOST], *out_buf[MOST];
	static MPI_Status st[MOST];
	int at[MOST], n, sent, done, seen = 0;

	if (ranks * EACH > MOST)
		SKIP("too many ranks");
	n = from_all(in, in_buf);
	sent = to_all(out, out_buf);
	while ((done = complete(n, in, at, st)) >= 0) {
		seen += done;
		for (int i = 0; i < done; i++)
			check_one(at[i], &st[i], in[at[i]], in_buf[at[i]]);
	}
	CHECK_EQ(seen, n);
	all_sent(sent, out, out_buf);
}

TEST(waitany, 1)
{
	completes_all(by_waitany);
}

TEST(waitsome, 1)
{
	completes_all(by_waitsome);
}

TEST(testany, 1)
{
	completes_all(by_testany);
}

TEST(testsome, 1)
{
	completes_all(by_testsome);
}

TEST(testall, 1)
{
	static MPI_Request in[MOST], out[MOST];
	static void *in_buf[MOST], *out_buf[MOST];
	static MPI_Status st[MOST];
	int n, sent, done;

	if (ranks * EACH > MOST)
		SKIP("too many ranks");
	n = from_all(in, in_buf);
	MPI_Testall(n, in, &done, st);
	/* at least the messages of this rank to itself are not sent yet */
	CHECK_EQ(done, 0);
	sent = to_all(out, out_buf);
	do
		MPI_Testall(n, in, &done, st);
	while (!done);
	for (int i = 0; i < n; i++)
		check_one(i, &st[i], in[i], in_buf[i]);
	all_sent(sent, out, out_buf);
}

/* ---- persistent requests ---- */

static void persistent_round(MPI_Request *req, bool ready, int peer)
{
	if (ready) {
		MPI_Start(&req[0]);
		token_send(peer);
		token_recv(peer);
		MPI_Start(&req[1]);
	} else {
		MPI_Startall(2, req);
	}
}

static void persistent_rounds(const struct mode *m, int rounds, int size,
			      int peer)
{
	void *out = buffer_new(size), *in = buffer_new(size);
	void *space = m->send == MPI_Bsend ? attach(size, 1) : NULL;
	MPI_Request req[2];
	MPI_Status st[2];

	MPI_Recv_init(in, size, MPI_BYTE, peer, TAG, WORLD, &req[0]);
	m->init(out, size, MPI_BYTE, peer, TAG, WORLD, &req[1]);
	for (int round = 0; round < rounds; round++) {
		pattern_fill(out, size, rank + round);
		persistent_round(req, m->send == MPI_Rsend, peer);
		MPI_Waitall(2, req, st);
		CHECK(req[0] != MPI_REQUEST_NULL);
		CHECK(req[1] != MPI_REQUEST_NULL);
		check_status(&st[0], peer, TAG, size);
		CHECK_PATTERN(in, size, peer + round);
	}
	MPI_Request_free(&req[0]);
	MPI_Request_free(&req[1]);
	if (space)
		detach(space);
	buffer_free(out);
	buffer_free(in);
}

static void persistent(const struct mode *m, int rounds)
{
	static const int lens[] = { 0, 8, 64, 65, 20000, 300000 };
	int peer = partner();

	for (int i = 0; i < ARRAY_LEN(lens) && peer != MPI_PROC_NULL; i++)
		persistent_rounds(m, rounds, lens[i], peer);
}

TEST(persistent_standard, 2)
{
	persistent(&modes[0], 5);
}

TEST(persistent_synchronous, 2)
{
	persistent(&modes[1], 5);
}

/* Open MPI 4.1 would send the data of the first start with each start. */
TEST(persistent_buffered, 2)
{
	persistent(&modes[2], 1);
}

TEST(persistent_ready, 2)
{
	persistent(&modes[3], 5);
}

/* Start many requests at once; some of the requests in the wait are not active. */
TEST(many_persistent_requests, 2)
{
	enum { MANY = 64, SIZE = 200 };
	int peer = partner();
	static uint8_t in[MANY][SIZE], out[MANY][SIZE];
	static MPI_Request req[2 * MANY];

	for (int i = 0; i < MANY; i++) {
		MPI_Recv_init(in[i], SIZE, MPI_BYTE, peer, i, WORLD, &req[i]);
		MPI_Send_init(out[i], SIZE, MPI_BYTE, peer, i, WORLD,
			      &req[MANY + i]);
	}
	MPI_Waitall(2 * MANY, req, MPI_STATUSES_IGNORE);
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < MANY; i++)
			pattern_fill(out[i], SIZE, rank + i + round);
		MPI_Startall(2 * MANY, req);
		MPI_Waitall(2 * MANY, req, MPI_STATUSES_IGNORE);
		for (int i = 0; i < MANY && peer != MPI_PROC_NULL; i++)
			CHECK_PATTERN(in[i], SIZE, peer + i + round);
	}
	for (int i = 0; i < 2 * MANY; i++)
		MPI_Request_free(&req[i]);
}

/* ---- probes ---- */

static void probe_one(int size, int peer, bool blocks)
{
	int there = blocks;
	MPI_Status st;

	if (blocks)
		MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &st);
	while (!there)
		MPI_Iprobe(peer, TAG, WORLD, &there, &st);
	check_status(&st, peer, TAG, size);
	/* the message is still there */
	MPI_Iprobe(peer, MPI_ANY_TAG, WORLD, &there, &st);
	CHECK(there);
	check_status(&st, peer, TAG, size);
	recv_filled(size, peer, TAG, peer + size);
}

TEST(probe_and_iprobe, 2)
{
	int n = nr_sizes(), peer = partner(), there;

	for (int i = 0; i < 2 * n && peer != MPI_PROC_NULL; i++) {
		int size = sizes[i / 2];

		if (rank & 1) {
			send_filled(size, peer, TAG, rank + size);
			token_recv(peer);
			continue;
		}
		MPI_Iprobe(peer, TAG + 1, WORLD, &there, MPI_STATUS_IGNORE);
		CHECK_EQ(there, 0);
		probe_one(size, peer, i % 2);
		token_send(peer);
	}
}

/* A message that was matched by a probe matches no other receive. */
static void mprobe_one(int size, int peer, bool blocks)
{
	void *buf = buffer_new(size);
	int there = blocks;
	MPI_Message msg;
	MPI_Request req;
	MPI_Status st;

	if (blocks)
		MPI_Mprobe(MPI_ANY_SOURCE, TAG, WORLD, &msg, &st);
	while (!there)
		MPI_Improbe(peer, MPI_ANY_TAG, WORLD, &there, &msg, &st);
	check_status(&st, peer, TAG, size);
	recv_filled(size / 2, peer, TAG, 5);
	if (blocks) {
		MPI_Mrecv(buf, size, MPI_BYTE, &msg, &st);
	} else {
		MPI_Imrecv(buf, size, MPI_BYTE, &msg, &req);
		MPI_Wait(&req, &st);
	}
	CHECK(msg == MPI_MESSAGE_NULL);
	check_status(&st, peer, TAG, size);
	CHECK_PATTERN(buf, size, peer + size);
	buffer_free(buf);
}

static void mprobe_sizes(bool blocks)
{
	int n = nr_sizes(), peer = partner();
	void *first, *second;
	MPI_Request req[2];

	for (int i = 0; i < n && peer != MPI_PROC_NULL; i++) {
		if (!(rank & 1)) {
			mprobe_one(sizes[i], peer, blocks);
			continue;
		}
		first = buffer_filled(sizes[i], rank + sizes[i]);
		second = buffer_filled(sizes[i] / 2, 5);
		MPI_Isend(first, sizes[i], MPI_BYTE, peer, TAG, WORLD, &req[0]);
		MPI_Isend(second, sizes[i] / 2, MPI_BYTE, peer, TAG, WORLD,
			  &req[1]);
		MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
		buffer_free(first);
		buffer_free(second);
	}
}

TEST(mprobe_and_mrecv, 2)
{
	mprobe_sizes(true);
}

TEST(improbe_and_imrecv, 2)
{
	mprobe_sizes(false);
}

TEST(mprobe_of_a_synchronous_send, 2)
{
	int peer = partner(), value = 0;
	MPI_Message msg;

	if (pml_is_cm())
		SKIP("Open MPI's ofi never tells the sender of such a receive");
	if (peer == MPI_PROC_NULL)
		return;
	if (rank & 1) {
		MPI_Ssend(&rank, 1, MPI_INT, peer, TAG, WORLD);
		return;
	}
	MPI_Mprobe(peer, TAG, WORLD, &msg, MPI_STATUS_IGNORE);
	MPI_Mrecv(&value, 1, MPI_INT, &msg, MPI_STATUS_IGNORE);
	CHECK_EQ(value, peer);
}

TEST(improbe_of_nothing, 1)
{
	MPI_Message msg;
	MPI_Status st;
	int there;

	for (int i = 0; i < 100; i++) {
		MPI_Improbe(MPI_ANY_SOURCE, TAG, WORLD, &there, &msg, &st);
		CHECK_EQ(there, 0);
	}
	MPI_Mprobe(MPI_PROC_NULL, TAG, WORLD, &msg, &st);
	CHECK(msg == MPI_MESSAGE_NO_PROC);
	MPI_Mrecv(NULL, 0, MPI_BYTE, &msg, &st);
	check_status(&st, MPI_PROC_NULL, MPI_ANY_TAG, 0);
	CHECK(msg == MPI_MESSAGE_NULL);
}

/* All messages are matched by probes, then received in reverse order. */
TEST(many_matched_messages, 2)
{
	enum { MANY = 50 };
	MPI_Message msg[MANY];
	int peer = partner();
	MPI_Status st;

	if (peer == MPI_PROC_NULL)
		return;
	if (rank & 1) {
		burst_send(peer, false);
		burst_sent();
		return;
	}
	for (int i = 0; i < MANY; i++) {
		MPI_Mprobe(peer, TAG, WORLD, &msg[i], &st);
		check_status(&st, peer, TAG, mixed_size(i));
	}
	for (int i = MANY - 1; i >= 0; i--) {
		void *buf = buffer_new(mixed_size(i));

		MPI_Mrecv(buf, mixed_size(i), MPI_BYTE, &msg[i], &st);
		check_status(&st, peer, TAG, mixed_size(i));
		CHECK_PATTERN(buf, mixed_size(i), peer + 9 * i);
		buffer_free(buf);
	}
	for (int i = MANY; i < IN_ORDER; i++)
		recv_filled(mixed_size(i), peer, TAG, peer + 9 * i);
}

/* ---- cancel, truncation ---- */

static void cancel_one(int size, int peer, int source)
{
	void *buf = buffer_filled(size, rank);
	MPI_Request req;
	MPI_Status st;
	int cancelled;

	MPI_Irecv(buf, size, MPI_BYTE, source, TAG, WORLD, &req);
	MPI_Cancel(&req);
	MPI_Wait(&req, &st);
	MPI_Test_cancelled(&st, &cancelled);
	CHECK(cancelled);
	token_send(peer);
	token_recv(peer);
	/* the cancelled receive does not store this message */
	MPI_Isend(buf, size, MPI_BYTE, peer, TAG, WORLD, &req);
	recv_filled(size, peer, TAG, peer);
	MPI_Wait(&req, &st);
	CHECK_PATTERN(buf, size, rank);
	buffer_free(buf);
}

TEST(cancel_of_receives, 2)
{
	static const int lens[] = { 0, 64, 100000 };
	int peer = partner();

	for (int i = 0; i < 30 && peer != MPI_PROC_NULL; i++)
		cancel_one(lens[i % ARRAY_LEN(lens)], peer,
			   i % 2 ? peer : MPI_ANY_SOURCE);
}

/* Either the receive is cancelled, or it has the message. */
TEST(cancel_against_arrival, 2)
{
	enum { SIZE = 3000 };
	int peer = partner(), cancelled;
	MPI_Request req;
	MPI_Status st;

	for (int i = 0; i < 50 && peer != MPI_PROC_NULL; i++) {
		void *in = buffer_new(SIZE);

		if (rank & 1) {
			token_recv(peer);
			send_filled(SIZE, peer, TAG, i);
			buffer_free(in);
			continue;
		}
		MPI_Irecv(in, SIZE, MPI_BYTE, peer, TAG, WORLD, &req);
		token_send(peer);
		MPI_Cancel(&req);
		MPI_Wait(&req, &st);
		MPI_Test_cancelled(&st, &cancelled);
		if (cancelled) {
			CHECK(is_blank(in, SIZE));
			recv_filled(SIZE, peer, TAG, i);
		} else {
			check_status(&st, peer, TAG, SIZE);
			CHECK_PATTERN(in, SIZE, i);
		}
		buffer_free(in);
	}
}

static void truncate_one(MPI_Comm comm, int sent, int room, bool early)
{
	int peer = partner(), code, class;
	MPI_Request req = MPI_REQUEST_NULL;
	void *buf;

	if (rank & 1) {
		token_recv(peer);
		buf = buffer_filled(sent, 3);
		MPI_Isend(buf, sent, MPI_BYTE, peer, TAG, comm, &req);
		if (!early)
			token_send(peer);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		buffer_free(buf);
		return;
	}
	/* the guard of the buffer detects stores beyond its end */
	buf = buffer_new(room);
	if (early)
		MPI_Irecv(buf, room, MPI_BYTE, peer, TAG, comm, &req);
	token_send(peer);
	if (early) {
		code = MPI_Wait(&req, MPI_STATUS_IGNORE);
	} else {
		token_recv(peer);
		code = MPI_Recv(buf, room, MPI_BYTE, peer, TAG, comm,
				MPI_STATUS_IGNORE);
	}
	MPI_Error_class(code, &class);
	CHECK_EQ(class, MPI_ERR_TRUNCATE);
	buffer_free(buf);
}

static void truncate_each(const int *sent, int n)
{
	int peer = partner();
	MPI_Comm comm;

	MPI_Comm_dup(WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	for (int i = 0; i < 2 * n && peer != MPI_PROC_NULL; i++) {
		int size = sent[i / 2];

		truncate_one(comm, size, size - 1, i % 2);
		truncate_one(comm, size, size / 2, i % 2);
		truncate_one(comm, size, 0, i % 2);
		/* the next message is not affected */
		if (rank & 1)
			send_filled(size, peer, TAG, i);
		else
			recv_filled(size, peer, TAG, i);
	}
	MPI_Comm_free(&comm);
}

TEST(truncation_of_short_messages, 2)
{
	static const int sent[] = { 1, 8, 41, 64, 65, 1000 };

	truncate_each(sent, ARRAY_LEN(sent));
}

TEST(truncation_of_long_messages, 2)
{
	static const int sent[] = { 5000, 9000, 70000, 1 << 20 };

	if (!pml_is_cm())
		SKIP("Open MPI's vader stores beyond the receive's end");
	truncate_each(sent, ARRAY_LEN(sent));
}

/* ---- many messages ---- */

#define OUTSTANDING	4000

static int small_size(int i)
{
	return i % 65;
}

static void post_recvs(int peer, MPI_Request *req, uint8_t (*in)[64])
{
	for (int i = 0; i < OUTSTANDING; i++)
		MPI_Irecv(in[i], 64, MPI_BYTE, peer, i, WORLD, &req[i]);
}

static void post_sends(int peer, MPI_Request *req, uint8_t (*out)[64])
{
	for (int k = 0; k < OUTSTANDING; k++) {
		/* 7 and 4000 have no common factor: each number comes once */
		int i = 7 * k % OUTSTANDING;

		pattern_fill(out[i], small_size(i), rank + i);
		MPI_Isend(out[i], small_size(i), MPI_BYTE, peer, i, WORLD,
			  &req[i]);
	}
}

static void outstanding(bool receives_first)
{
	static uint8_t in[OUTSTANDING][64], out[OUTSTANDING][64];
	static MPI_Request req[2 * OUTSTANDING];
	static MPI_Status st[2 * OUTSTANDING];
	int peer = partner();

	if (peer == MPI_PROC_NULL)
		return;
	if (receives_first)
		post_recvs(peer, req, in);
	post_sends(peer, req + OUTSTANDING, out);
	if (!receives_first)
		post_recvs(peer, req, in);
	MPI_Waitall(2 * OUTSTANDING, req, st);
	for (int i = 0; i < OUTSTANDING; i++) {
		check_status(&st[i], peer, i, small_size(i));
		CHECK_PATTERN(in[i], small_size(i), peer + i);
	}
}

TEST(thousands_of_receives_outstanding, 2)
{
	outstanding(true);
}

TEST(thousands_of_sends_outstanding, 2)
{
	outstanding(false);
}

static void large_at_once(int n, int size)
{
	static MPI_Request req[128];
	static void *buf[128];
	int peer = partner();

	for (int i = 0; i < n && peer != MPI_PROC_NULL; i++) {
		buf[i] = buffer_new(size);
		MPI_Irecv(buf[i], size, MPI_BYTE, peer, i, WORLD, &req[i]);
	}
	for (int i = n - 1; i >= 0 && peer != MPI_PROC_NULL; i--) {
		buf[n + i] = buffer_filled(size, rank + i);
		MPI_Isend(buf[n + i], size, MPI_BYTE, peer, i, WORLD,
			  &req[n + i]);
	}
	for (int i = 0; i < 2 * n && peer != MPI_PROC_NULL; i++) {
		MPI_Wait(&req[i], MPI_STATUS_IGNORE);
		if (i < n)
			CHECK_PATTERN(buf[i], size, peer + i);
		buffer_free(buf[i]);
	}
}

TEST(large_messages_outstanding, 2)
{
	large_at_once(64, 100000);
	large_at_once(16, 1 << 20);
}

/* Messages of each source are in order, whatever comes between them. */
TEST(many_to_one, 2)
{
	enum { MESSAGES = 200 };
	int next[16] = { 0 };
	MPI_Status st;
	void *buf;

	if (ranks > ARRAY_LEN(next))
		SKIP("too many ranks");
	for (int i = 0; i < MESSAGES && rank; i++)
		send_filled(mixed_size(i + rank), 0, TAG, rank + i);
	buf = buffer_new(70000);
	for (int i = 0; i < MESSAGES * (ranks - 1) && !rank; i++) {
		int nr, size;

		MPI_Recv(buf, 70000, MPI_BYTE, MPI_ANY_SOURCE, TAG, WORLD,
			 &st);
		nr = next[st.MPI_SOURCE]++;
		size = mixed_size(nr + st.MPI_SOURCE);
		check_status(&st, st.MPI_SOURCE, TAG, size);
		CHECK_PATTERN(buf, size, st.MPI_SOURCE + nr);
	}
	buffer_free(buf);
}

TEST(one_to_many, 2)
{
	enum { MESSAGES = 200 };

	for (int i = 0; i < MESSAGES; i++) {
		for (int to = 1; to < ranks && !rank; to++)
			send_filled(mixed_size(i + to), to, TAG, to + i);
		if (rank)
			recv_filled(mixed_size(i + rank), 0, TAG, rank + i);
	}
}

/* A ping-pong in which each answer depends on the question. */
TEST(ping_pong, 2)
{
	int peer = partner(), value = 0;

	for (int i = 0; i < 2000 && peer != MPI_PROC_NULL; i++) {
		if ((rank ^ i) & 1) {
			MPI_Recv(&value, 1, MPI_INT, peer, TAG, WORLD,
				 MPI_STATUS_IGNORE);
			CHECK_EQ(value, i);
		} else {
			value = i;
			MPI_Send(&value, 1, MPI_INT, peer, TAG, WORLD);
		}
	}
}

TEST_MAIN(MPI_THREAD_SINGLE)
