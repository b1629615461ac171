// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests messages of all modes and sizes, in channels of all kinds. */
#include <pthread.h>

#include <pm2_common.h>

#include "selftests/madeleine/files.h"
#include "selftests/ranks.h"

#define SLOW	(TEST_ASAN || TEST_TSAN)

static p_mad_madeleine_t begin(void)
{
	char *argv[] = { (char *)"test", NULL };
	int argc = 1;

	return mad_init(&argc, argv);
}

/* ---- the program of the paper's figure 2 ---- */

static void figure_2(void *arg)
{
	p_mad_madeleine_t madeleine = begin();
	p_mad_channel_t channel = mad_get_channel(madeleine, "c");
	p_mad_connection_t connection;
	int size = *(int *)arg, remote = 1;
	char *array;

	CHECK_EQ(madeleine->session->process_rank, ranks_rank());
	CHECK_EQ(channel->process_lrank, ranks_rank());
	if (channel->process_lrank == 0) {
		array = malloc((size_t)size);
		test_fill(array, (size_t)size, 2);
		connection = mad_begin_packing(channel, remote);
		mad_pack(connection, &size, sizeof(int), send_CHEAPER, receive_EXPRESS);
		mad_pack(connection, array, (size_t)size, send_CHEAPER, receive_CHEAPER);
		mad_end_packing(connection);
	} else {
		size = 0;
		connection = mad_begin_unpacking(channel);
		CHECK_EQ(connection->remote_rank, 0);
		CHECK_EQ(connection->way, mad_incoming_connection);
		CHECK(connection->channel == channel);
		mad_unpack(connection, &size, sizeof(int), send_CHEAPER, receive_EXPRESS);
		CHECK_EQ(size, *(int *)arg);
		array = malloc((size_t)size);
		mad_unpack(connection, array, (size_t)size, send_CHEAPER, receive_CHEAPER);
		mad_end_unpacking(connection);
		CHECK(test_filled(array, (size_t)size, 2));
	}
	free(array);
	common_exit(NULL);
}

TEST(the_papers_figure_2)
{
	static const int sizes[] = { 1, 500, 512, 513, 5000, 100000, 3 << 20 };

	test_session("channels : { name : c; net : n; hosts : a[0..1]; };");
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		ranks_run_arg(2, 2, figure_2, (void *)&sizes[i], false);
}

/* ---- random messages: both sides draw the same blocks ---- */

struct draw {
	uint64_t state;
};

static unsigned int draw(struct draw *d, unsigned int below)
{
	d->state = d->state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned int)(d->state >> 33) % below;
}

#define BLOCKS_MAX	24u

/* A block. Both sides draw its modes; an EXPRESS integer before the block has its length. */
struct block {
	mad_send_mode_t send;
	mad_receive_mode_t receive;
	unsigned int len;
	unsigned char *buf;
};

static unsigned int draw_length(struct draw *d)
{
	switch (draw(d, 8)) {
	case 0:
		return 0;
	case 1:
		return draw(d, 200000);
	case 2:
		return 505 + draw(d, 16);
	case 3:
		return draw(d, 6000);
	default:
		return draw(d, 100);
	}
}

/*
 * Only the sender draws lengths, and sends each in an EXPRESS integer before the block, so that
 * the next unpack depends on it. Both sides draw the modes.
 */
static void send_message(p_mad_channel_t c, int to, struct draw modes, struct draw *lengths)
{
	p_mad_connection_t k = mad_begin_packing(c, to);
	unsigned int n = draw(&modes, BLOCKS_MAX), seed = draw(&modes, 1000);
	unsigned int lens[BLOCKS_MAX];
	struct block b[BLOCKS_MAX];

	CHECK(k);
	CHECK_EQ(k->remote_rank, to);
	for (unsigned int i = 0; i < n; i++) {
		b[i].send = (mad_send_mode_t)(1 + draw(&modes, 3));
		b[i].receive = (mad_receive_mode_t)(1 + draw(&modes, 2));
		b[i].len = lens[i] = draw_length(lengths);
		b[i].buf = malloc(b[i].len + 1);
		CHECK(b[i].buf);
		/* a send_LATER block gets its bytes after all blocks are packed */
		test_fill(b[i].buf, b[i].len, b[i].send == mad_send_LATER ? 0 : seed + i);
		mad_pack(k, &lens[i], sizeof(lens[i]), mad_send_CHEAPER,
			 mad_receive_EXPRESS);
		mad_pack(k, b[i].buf, b[i].len, b[i].send, b[i].receive);
		if (b[i].send == mad_send_SAFER)
			memset(b[i].buf, 0xee, b[i].len);
	}
	for (unsigned int i = 0; i < n; i++)
		if (b[i].send == mad_send_LATER)
			test_fill(b[i].buf, b[i].len, seed + i);
	mad_end_packing(k);
	for (unsigned int i = 0; i < n; i++) {
		memset(b[i].buf, 0xdd, b[i].len);
		free(b[i].buf);
	}
}

static void take_message(p_mad_connection_t k, struct draw modes)
{
	unsigned int n = draw(&modes, BLOCKS_MAX), seed = draw(&modes, 1000);
	struct block b[BLOCKS_MAX];

	for (unsigned int i = 0; i < n; i++) {
		b[i].send = (mad_send_mode_t)(1 + draw(&modes, 3));
		b[i].receive = (mad_receive_mode_t)(1 + draw(&modes, 2));
		b[i].len = ~0u;
		mad_unpack(k, &b[i].len, sizeof(b[i].len), mad_send_CHEAPER,
			   mad_receive_EXPRESS);
		CHECK(b[i].len < 200000);
		b[i].buf = calloc(1, b[i].len + 1);
		mad_unpack(k, b[i].buf, b[i].len, b[i].send, b[i].receive);
		if (b[i].receive == mad_receive_EXPRESS)
			CHECK(test_filled(b[i].buf, b[i].len, seed + i));
	}
	mad_end_unpacking(k);
	for (unsigned int i = 0; i < n; i++) {
		CHECK(test_filled(b[i].buf, b[i].len, seed + i));
		CHECK_EQ(b[i].buf[b[i].len], 0);
		free(b[i].buf);
	}
}

static struct draw modes_of(int from, int to, int round)
{
	return (struct draw){ (uint64_t)(from * 64 + to) << 32 | (uint64_t)round };
}

/*
 * In each round, another member sends to all others. Receivers take messages from any member,
 * and answer.
 */
static void rounds_in(p_mad_channel_t c, int rounds)
{
	int me = c->process_lrank, n = c->pc->count;
	struct draw lengths = { (uint64_t)me + 77 };

	for (int i = 0; i < rounds; i++) {
		int root = i % n;
		p_mad_connection_t k;

		mad_leonie_barrier();
		if (me != root) {
			if (i & 1)
				while (!(k = mad_message_ready(c)))
					;
			else
				k = mad_begin_unpacking(c);
			CHECK_EQ(k->remote_rank, root);
			take_message(k, modes_of(root, me, i));
			send_message(c, root, modes_of(me, root, i), &lengths);
			continue;
		}
		for (int r = 0; r < n; r++)
			if (r != me)
				send_message(c, r, modes_of(me, r, i), &lengths);
		for (int r = 1; r < n; r++) {
			k = mad_begin_unpacking(c);
			take_message(k, modes_of(k->remote_rank, me, i));
		}
	}
}

static void random_messages(void *arg)
{
	p_mad_madeleine_t m = begin();

	rounds_in(mad_get_channel(m, "c"), *(int *)arg);
	common_exit(NULL);
}

TEST(all_modes_of_two)
{
	int rounds = SLOW ? 30 : 200;

	test_session("channels : { name : c; net : n; hosts : a[0..1]; };");
	ranks_run_arg(2, 2, random_messages, &rounds, false);
}

TEST(all_modes_of_four_on_four_nodes)
{
	int rounds = SLOW ? 12 : 60;

	test_session("channels : { name : c; net : n; hosts : (a, b, d, e); };");
	ranks_run_arg(4, 4, random_messages, &rounds, false);
}

TEST(all_modes_of_nine_on_one_node)
{
	int rounds = SLOW ? 9 : 27;

	test_session("channels : { name : c; net : n; hosts : a[0..8]; };");
	ranks_run_arg(9, 1, random_messages, &rounds, false);
}

/* ---- channels of all kinds ---- */

static void channels(void *arg)
{
	char *args[] = { (char *)"test", (char *)"--mad_leonie", (char *)"host", (char *)"x",
			 (char *)"-d", (char *)"--mad_link", (char *)"5", (char *)"y", NULL };
	p_mad_madeleine_t m;
	p_mad_channel_t all, mux, named, sub;
	p_tbx_slist_t names;
	common_attr_t attr;
	int argc = 8, me = (int)ranks_rank();

	(void)arg;
	common_attr_init(&attr);
	common_init(&argc, args, &attr);
	m = attr.madeleine;
	CHECK(m == mad_get_madeleine());
	CHECK_EQ(argc, 3);
	CHECK(!strcmp(args[1], "x") && !strcmp(args[2], "y") && !args[3]);
	CHECK_EQ(tbx_slist_get_length(m->dir->process_slist), 4);
	names = m->public_channel_slist;
	CHECK_EQ(tbx_slist_get_length(names), 5);
	CHECK(!strcmp(tbx_slist_index_get(names, 0), "alone"));
	CHECK(!strcmp(tbx_slist_index_get(names, 2), "all"));

	/* channels of a virtual channel are private, and only their members know them */
	if (me < 3) {
		p_mad_channel_t left = tbx_htable_get(m->channel_htable, "left");

		CHECK(left && !left->not_private && left->process_lrank == me);
		CHECK(!mad_begin_packing(left, (me + 1) % 3));
		CHECK(!mad_begin_unpacking(left));
		CHECK(!mad_message_ready(left));
	} else {
		CHECK(!tbx_htable_get(m->channel_htable, "left"));
	}
	all = mad_get_channel(m, "all");
	CHECK_EQ(all->type, mad_channel_type_virtual);
	CHECK_EQ(all->max_sub, 0);
	CHECK_EQ(all->pc->count, 4);
	CHECK(!tbx_darray_get(all->out_connection_darray, me));
	CHECK(!mad_begin_packing(all, me));
	CHECK(!mad_begin_packing(all, 4));
	CHECK(!mad_begin_packing(all, -1));
	if (!me) {
		p_mad_connection_t k = tbx_darray_get(all->out_connection_darray, 3);

		CHECK_EQ(k->nature, mad_connection_nature_indirect_virtual);
		k = tbx_darray_get(all->in_connection_darray, 1);
		CHECK_EQ(k->nature, mad_connection_nature_direct_virtual);
		CHECK(k->reverse == tbx_darray_get(all->out_connection_darray, 1));
	}
	rounds_in(all, SLOW ? 4 : 12);

	/* a sub-channel does not get messages of other sub-channels */
	mux = mad_get_channel(m, "mux");
	named = mad_get_channel(m, "named");
	CHECK_EQ(mux->type, mad_channel_type_mux);
	CHECK(mad_get_sub_channel(mux, 0) == mux);
	CHECK(mad_get_sub_channel(named, 1) == named);
	sub = mad_get_sub_channel(named, 200);
	CHECK(sub == mad_get_sub_channel(mux, 200));
	CHECK_EQ(sub->sub, 200);
	if (mux->process_lrank == 0) {
		struct draw d = { 1 };

		send_message(sub, 1, modes_of(0, 1, 200), &d);
		send_message(named, 1, modes_of(0, 1, 1), &d);
		send_message(mux, 1, modes_of(0, 1, 0), &d);
	} else if (mux->process_lrank == 1) {
		take_message(mad_begin_unpacking(mux), modes_of(0, 1, 0));
		take_message(mad_begin_unpacking(named), modes_of(0, 1, 1));
		CHECK(!mad_message_ready(named));
		take_message(mad_begin_unpacking(sub), modes_of(0, 1, 200));
	}
	mad_leonie_barrier();
	common_exit(&attr);
}

TEST(virtual_and_mux_channels)
{
	/* messages of sub-channels are not received in the order in which they are sent */
	setenv("SCI_MSG_EAGER_MAX", "262144", 1);
	test_session("hosts : (a, b, c, d); channels : ({ name : alone; net : e; hosts : (a, d); },"
		     " { name : left; net : n; hosts : (a, b, c); },"
		     " { name : right; net : n; hosts : (c, d); },"
		     " { name : own; net : f; hosts : (a, b, c, d); },"
		     " { name : low; net : n; hosts : (a, b, c, d); });"
		     "vchannels : { name : all; channels : (left, right); };"
		     "xchannels : { name : mux; channels : low; sub_channels : named; };");
	/* the public channels: alone, own, all, mux, named */
	ranks_run_arg(4, 4, channels, NULL, false);
}

static void topologies(void *arg)
{
	p_mad_madeleine_t m = begin();
	p_mad_channel_t full = mad_get_channel(m, "full"), node = mad_get_channel(m, "node");
	int me = full->process_lrank, other = me ^ 1;
	struct draw d = { 3 };

	(void)arg;
	/* each process sends to itself */
	send_message(full, me, modes_of(me, me, 3), &d);
	take_message(mad_begin_unpacking(full), modes_of(me, me, 3));
	/* the topology "node" connects processes of one host */
	CHECK(!mad_begin_packing(node, me));
	CHECK(!mad_begin_packing(node, (me + 2) % 4));
	CHECK(ntbx_topology_table_get(node->dir_channel->ttable, me, other));
	CHECK(!ntbx_topology_table_get(node->dir_channel->ttable, me, (me + 2) % 4));
	send_message(node, other, modes_of(me, other, 4), &d);
	take_message(mad_begin_unpacking(node), modes_of(other, me, 4));
	CHECK(!mad_begin_packing(mad_get_channel(m, "none"), other));
	common_exit(NULL);
}

TEST(topologies_say_who_is_connected)
{
	test_session("channels : ({ name : full; net : f; hosts : (a[0..1], b[0..1]); },"
		     " { name : node; net : k; hosts : (a[0..1], b[0..1]); },"
		     " { name : none; net : e; hosts : (a[0..1], b[0..1]); });");
	/* a message to the own process is sent completely before it is received */
	setenv("SCI_MSG_EAGER_MAX", "100000000", 1);
	ranks_run_arg(4, 2, topologies, NULL, false);
}

/* ---- threads ---- */

#define THREADS		4
#define PER_THREAD	(SLOW ? 10 : 60)

static void *send_some(void *arg)
{
	p_mad_channel_t c = arg;

	for (unsigned int i = 0; i < PER_THREAD; i++) {
		p_mad_connection_t k = mad_begin_packing(c, 1);
		unsigned int len = i * 97;
		char *buf = malloc(len + 1);

		test_fill(buf, len, i);
		mad_pack(k, &i, sizeof(i), mad_send_SAFER, mad_receive_EXPRESS);
		mad_pack(k, buf, len, mad_send_CHEAPER, mad_receive_CHEAPER);
		mad_end_packing(k);
		free(buf);
	}
	return NULL;
}

static void *receive_some(void *arg)
{
	p_mad_channel_t c = arg;

	for (int n = 0; n < PER_THREAD; n++) {
		p_mad_connection_t k = mad_begin_unpacking(c);
		unsigned int i, len;
		char *buf;

		mad_unpack(k, &i, sizeof(i), mad_send_SAFER, mad_receive_EXPRESS);
		len = i * 97;
		buf = malloc(len + 1);
		mad_unpack(k, buf, len, mad_send_CHEAPER, mad_receive_CHEAPER);
		mad_end_unpacking(k);
		CHECK(test_filled(buf, len, i));
		free(buf);
	}
	return NULL;
}

/* All threads use one connection of each of two channels. */
static void many_threads(void *arg)
{
	p_mad_madeleine_t m = begin();
	pthread_t t[2 * THREADS];

	(void)arg;
	for (int i = 0; i < 2 * THREADS; i++) {
		p_mad_channel_t c = mad_get_channel(m, i % 2 ? "c" : "d");

		CHECK_EQ(pthread_create(&t[i], NULL,
					c->process_lrank ? receive_some : send_some, c), 0);
	}
	for (int i = 0; i < 2 * THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	common_exit(NULL);
}

TEST(threads_share_channels)
{
	test_session("channels : ({ name : c; net : n; hosts : a[0..1]; },"
		     " { name : d; net : n; hosts : a[0..1]; });");
	ranks_run_arg(2, 2, many_threads, NULL, false);
}

/* ---- blocks that may get lost ---- */

static void optional_blocks(void *arg)
{
	p_mad_channel_t c = mad_get_channel(begin(), "c");
	char buf[100];

	(void)arg;
	if (!c->process_lrank) {
		p_mad_buffer_slice_parameter_t p = mad_alloc_slice_parameter();
		p_mad_connection_t k = mad_begin_packing(c, 1);

		p->offset = 10;
		p->opcode = mad_op_optional_block;
		p->value = 50;
		test_fill(buf, sizeof(buf), 1);
		mad_pack_ext(k, buf, sizeof(buf), mad_send_CHEAPER, mad_receive_EXPRESS, p,
			     (void *)NULL);
		mad_pack_ext(k, buf, sizeof(buf), mad_send_CHEAPER, mad_receive_CHEAPER,
			     (void *)NULL);
		mad_end_packing(k);
	} else {
		p_mad_connection_t k = mad_begin_unpacking(c);
		char more[100];

		CHECK(!mad_unpack_ext(k, buf, sizeof(buf), mad_send_CHEAPER,
				      mad_receive_EXPRESS));
		CHECK(!mad_unpack_ext(k, more, sizeof(more), mad_send_CHEAPER,
				      mad_receive_CHEAPER));
		CHECK(!mad_end_unpacking_ext(k));
		CHECK(test_filled(buf, sizeof(buf), 1));
		CHECK(test_filled(more, sizeof(more), 1));
		mad_free_parameter_slist(NULL);
	}
	common_exit(NULL);
}

TEST(parameters_of_blocks)
{
	test_session("channels : { name : c; net : n; hosts : a[0..1]; };");
	ranks_run_arg(2, 1, optional_blocks, NULL, false);
}
