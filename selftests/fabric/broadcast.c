// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Broadcast groups: a store reaches several nodes. */
#include <signal.h>
#include <string.h>

#include <sisci_api.h>

#include "selftests/harness.h"

#define SIZE	((size_t)65536)
#define GROUP	10

static sci_error_t connect_group(sci_desc_t sd, unsigned int id,
				 sci_remote_segment_t *r)
{
	return ERR_OF(SCIConnectSegment(sd, r, DIS_BROADCAST_NODEID_GROUP_ALL,
					id, 0, NULL, NULL,
					SCI_INFINITE_TIMEOUT,
					SCI_FLAG_BROADCAST, &err));
}

static volatile unsigned char *map_group(sci_remote_segment_t r, sci_map_t *map)
{
	volatile unsigned char *p;

	CHECK_OK(p = SCIMapRemoteSegment(r, map, 0,
					 SCIGetRemoteSegmentSize(r), NULL,
					 SCI_FLAG_BROADCAST, &err));
	return p;
}

/* Join the group, and confirm each pattern that arrives. */
static void member(struct peer *self, void *arg)
{
	unsigned int flags = arg ? *(unsigned int *)arg : 0;
	sci_desc_t sd = test_open();
	sci_local_segment_t s;
	unsigned char *mem;
	unsigned int seed;

	peer_expect(self, "join");
	s = test_segment(sd, GROUP, SIZE, SCI_FLAG_BROADCAST | flags);
	mem = test_map_local(s, NULL);
	peer_send(self, "joined");
	for (;;) {
		PEER_GET(self, seed);
		if (!seed)
			break;
		WAIT_UNTIL(test_filled(mem, SIZE, seed), TEST_WAIT_MS);
		peer_send(self, "seen");
	}
	SCITerminate();
	peer_send(self, "left");
}

static void join(struct peer *p)
{
	peer_send(p, "join");
	peer_expect(p, "joined");
}

static void sees(struct peer *p, unsigned int seed)
{
	PEER_PUT(p, seed);
	if (seed)
		peer_expect(p, "seen");
	else
		peer_expect(p, "left");
}

/* At each step, a process that is no member connects, writes and disconnects. */
TEST(members_join_one_after_another)
{
	struct peer *p[3];
	sci_desc_t sd;

	for (unsigned int i = 0; i < 3; i++)
		p[i] = peer_spawn(8 + 4 * i, member, NULL);
	sd = test_open();
	for (unsigned int n = 1; n <= 3; n++) {
		sci_remote_segment_t r;
		sci_map_t map;

		join(p[n - 1]);
		CHECK_EQ(connect_group(sd, GROUP, &r), SCI_ERR_OK);
		CHECK_EQ(SCIGetRemoteSegmentSize(r), SIZE);
		CHECK_EQ(SCIGetRemoteSegmentId(r), GROUP);
		test_fill(map_group(r, &map), SIZE, n);
		for (unsigned int i = 0; i < n; i++)
			sees(p[i], n);
		CHECK_OK(SCIUnmapSegment(map, 0, &err));
		CHECK_OK(SCIDisconnectSegment(r, 0, &err));
	}
	for (int i = 0; i < 3; i++)
		sees(p[i], 0);
}

TEST(who_joins_later_has_it_too)
{
	struct peer *p[2];
	sci_remote_segment_t r;
	sci_map_t map;
	sci_desc_t sd;

	for (unsigned int i = 0; i < 2; i++)
		p[i] = peer_spawn(8 + 4 * i, member, NULL);
	sd = test_open();
	join(p[0]);
	CHECK_EQ(connect_group(sd, GROUP, &r), SCI_ERR_OK);
	test_fill(map_group(r, &map), SIZE, 1);
	sees(p[0], 1);
	/* the connection stays the same */
	join(p[1]);
	test_fill(map_group(r, &map), SIZE, 2);
	sees(p[0], 2);
	sees(p[1], 2);
}

TEST(a_member_may_write_to_its_own_group)
{
	struct peer *p = peer_spawn(8, member, NULL);
	sci_desc_t sd = test_open();
	sci_remote_segment_t r;
	unsigned char *mem;
	sci_map_t map;

	mem = test_map_local(test_segment(sd, GROUP, SIZE, SCI_FLAG_BROADCAST),
			     NULL);
	join(p);
	CHECK_EQ(connect_group(sd, GROUP, &r), SCI_ERR_OK);
	test_fill(map_group(r, &map), SIZE, 1);
	sees(p, 1);
	CHECK(test_filled(mem, SIZE, 1));
}

/* The steps of a demonstration program for reflective memory. */
static void reflective(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();
	sci_local_segment_t s;
	sci_remote_segment_t r;
	volatile unsigned int *in, *out;
	sci_sequence_t seq;
	sci_map_t lmap, rmap;
	unsigned int rank = *(unsigned int *)arg;

	CHECK_OK(SCICreateSegment(sd, &s, 0, SIZE, NULL, NULL,
				  SCI_FLAG_BROADCAST, &err));
	CHECK_OK(SCIPrepareSegment(s, 0, SCI_FLAG_BROADCAST, &err));
	in = test_map_local(s, &lmap);
	CHECK_OK(SCISetSegmentAvailable(s, 0, 0, &err));
	WAIT_UNTIL(connect_group(sd, 0, &r) == SCI_ERR_OK, TEST_WAIT_MS);
	out = (volatile unsigned int *)map_group(r, &rmap);
	CHECK_OK(SCICreateMapSequence(rmap, &seq, 0, &err));
	peer_send(self, "ready");
	peer_expect(self, "go");

	for (unsigned int i = 1; i <= 200; i++) {
		out[16 * rank] = i;
		SCIFlush(seq, 0);
		for (unsigned int k = 0; k < 3; k++)
			WAIT_UNTIL(in[16 * k] >= i, TEST_WAIT_MS);
	}
	peer_send(self, "done");
	peer_expect(self, "end");

	CHECK_OK(SCIRemoveSequence(seq, 0, &err));
	CHECK_OK(SCIUnmapSegment(lmap, 0, &err));
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
	CHECK_OK(SCIUnmapSegment(rmap, 0, &err));
	CHECK_OK(SCIDisconnectSegment(r, 0, &err));
	CHECK_OK(SCIClose(sd, 0, &err));
}

TEST(reflective_memory)
{
	static const char *const steps[] = { "ready", "go", "done", "end" };
	static unsigned int ranks[] = { 0, 1, 2 };
	struct peer *p[3];

	for (unsigned int i = 0; i < 3; i++)
		p[i] = peer_spawn(4 + 4 * i, reflective, &ranks[i]);
	for (int step = 0; step < 4; step += 2) {
		for (int i = 0; i < 3; i++)
			peer_expect(p[i], steps[step]);
		for (int i = 0; i < 3; i++)
			peer_send(p[i], steps[step + 1]);
	}
	for (int i = 0; i < 3; i++)
		peer_join(p[i]);
}

TEST(a_member_is_no_connection)
{
	struct peer *p = peer_spawn(8, member, NULL);
	sci_desc_t sd = test_open();
	sci_local_segment_t s = test_segment(sd, GROUP, SIZE,
					     SCI_FLAG_BROADCAST);
	sci_remote_segment_t r;
	sci_map_t map;

	join(p);
	CHECK_EQ(connect_group(sd, GROUP, &r), SCI_ERR_OK);
	map_group(r, &map);
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
	test_fill(map_group(r, &map), SIZE, 1);
	sees(p, 1);
}

TEST(a_member_leaves_and_the_others_stay)
{
	sci_remote_segment_t r;
	struct peer *p[3];
	sci_map_t map;
	sci_desc_t sd;

	for (unsigned int i = 0; i < 3; i++)
		p[i] = peer_spawn(8 + 4 * i, member, NULL);
	sd = test_open();
	for (int i = 0; i < 3; i++)
		join(p[i]);
	CHECK_EQ(connect_group(sd, GROUP, &r), SCI_ERR_OK);
	test_fill(map_group(r, &map), SIZE, 1);
	for (int i = 0; i < 3; i++)
		sees(p[i], 1);
	sees(p[0], 0);
	test_fill(map_group(r, &map), SIZE, 2);
	sees(p[1], 2);
	sees(p[2], 2);
	peer_kill(p[1], SIGKILL);
	test_fill(map_group(r, &map), SIZE, 3);
	sees(p[2], 3);
	/* a new connection finds the remaining member */
	CHECK_EQ(connect_group(sd, GROUP, &r), SCI_ERR_OK);
	test_fill(map_group(r, &map), SIZE, 4);
	sees(p[2], 4);
}

TEST(the_last_member_leaves)
{
	struct peer *p[2];
	sci_remote_segment_t r;
	sci_map_t map;
	sci_desc_t sd;

	for (unsigned int i = 0; i < 2; i++)
		p[i] = peer_spawn(8 + 4 * i, member, NULL);
	sd = test_open();
	join(p[0]);
	CHECK_EQ(connect_group(sd, GROUP, &r), SCI_ERR_OK);
	test_fill(map_group(r, &map), SIZE, 1);
	sees(p[0], 1);
	peer_kill(p[0], SIGKILL);
	CHECK_EQ(connect_group(sd, GROUP, &r), SCI_ERR_NO_SUCH_SEGMENT);
	/* a new group with the same id begins */
	join(p[1]);
	CHECK_EQ(connect_group(sd, GROUP, &r), SCI_ERR_OK);
	test_fill(map_group(r, &map), SIZE, 2);
	sees(p[1], 2);
}

static void importer(struct peer *self, void *arg)
{
	static struct recorder rec;
	sci_desc_t sd = test_open();
	sci_remote_segment_t r;

	(void)arg;
	recorder_init(&rec);
	peer_expect(self, "connect");
	CHECK_OK(SCIConnectSegment(sd, &r, DIS_BROADCAST_NODEID_GROUP_ALL, GROUP, 0,
				   record_remote_segment, &rec, SCI_INFINITE_TIMEOUT,
				   SCI_FLAG_BROADCAST | SCI_FLAG_USE_CALLBACK, &err));
	peer_send(self, "connected");
	for (unsigned int k = 0; recorder_get(&rec, k).reason != SCI_CB_LOST; k++)
		;
	peer_send(self, "lost");
}

/* The importer handles the end of the last member only after the new group has begun. */
TEST(an_import_does_not_move_to_a_new_group)
{
	struct peer *i = peer_spawn(4, importer, NULL);
	struct peer *p[2];

	test_needs_shm();
	for (unsigned int k = 0; k < 2; k++)
		p[k] = peer_spawn(8 + 4 * k, member, NULL);
	join(p[0]);
	peer_send(i, "connect");
	peer_expect(i, "connected");
	peer_stop(i);
	peer_kill(p[0], SIGKILL);
	join(p[1]);
	peer_continue(i);
	peer_expect(i, "lost");
}

TEST(no_group_to_connect_to)
{
	sci_desc_t sd = test_open();
	sci_remote_segment_t r = NULL;
	sci_local_segment_t s;

	CHECK_EQ(connect_group(sd, GROUP, &r), SCI_ERR_NO_SUCH_SEGMENT);
	/* an ordinary segment is no group, and neither is an unavailable one */
	test_segment(sd, GROUP, SIZE, 0);
	CHECK_EQ(connect_group(sd, GROUP, &r), SCI_ERR_NO_SUCH_SEGMENT);
	CHECK_OK(SCICreateSegment(sd, &s, GROUP + 1, SIZE, NULL, NULL,
				  SCI_FLAG_BROADCAST, &err));
	CHECK_EQ(connect_group(sd, GROUP + 1, &r), SCI_ERR_NO_SUCH_SEGMENT);
	CHECK_OK(SCIPrepareSegment(s, 0, 0, &err));
	CHECK_OK(SCISetSegmentAvailable(s, 0, 0, &err));
	CHECK_EQ(connect_group(sd, GROUP + 1, &r), SCI_ERR_OK);
	CHECK_OK(SCIDisconnectSegment(r, 0, &err));
	CHECK_OK(SCISetSegmentUnavailable(s, 0, 0, &err));
	CHECK_EQ(connect_group(sd, GROUP + 1, &r), SCI_ERR_NO_SUCH_SEGMENT);
	CHECK(ERR_OF(SCIConnectSegment(sd, &r, DIS_BROADCAST_NODEID_GROUP_ALL,
				       GROUP, 0, NULL, NULL, 0, 0, &err)) !=
	      SCI_ERR_OK);
}

TEST(members_are_of_one_size)
{
	struct peer *p = peer_spawn(8, member, NULL);
	sci_desc_t sd = test_open();
	sci_local_segment_t s;

	join(p);
	CHECK_ERR(SCICreateSegment(sd, &s, GROUP, SIZE + 4096, NULL, NULL,
				   SCI_FLAG_BROADCAST, &err),
		  SCI_ERR_SEGMENTID_USED);
	CHECK_ERR(SCICreateSegment(sd, &s, GROUP, 1, NULL, NULL,
				   SCI_FLAG_BROADCAST, &err),
		  SCI_ERR_SEGMENTID_USED);
	CHECK_OK(SCICreateSegment(sd, &s, GROUP, SIZE, NULL, NULL,
				  SCI_FLAG_BROADCAST, &err));
	/* a node has at most one member */
	CHECK_ERR(SCICreateSegment(sd, &s, GROUP, SIZE, NULL, NULL,
				   SCI_FLAG_BROADCAST, &err),
		  SCI_ERR_SEGMENTID_USED);
	CHECK_ERR(SCICreateSegment(sd, &s, GROUP, SIZE, NULL, NULL, 0, &err),
		  SCI_ERR_SEGMENTID_USED);
}

TEST(unicast_to_a_member)
{
	static unsigned int allow = SCI_FLAG_ALLOW_UNICAST;
	struct peer *yes = peer_spawn(8, member, &allow);
	struct peer *no = peer_spawn(12, member, NULL);
	sci_desc_t sd = test_open();
	sci_remote_segment_t r;

	join(yes);
	join(no);
	CHECK_OK(SCIDisconnectSegment(test_connect(sd, 8, GROUP), 0, &err));
	CHECK_ERR(SCIConnectSegment(sd, &r, 12, GROUP, 0, NULL, NULL, 0, 0,
				    &err), SCI_ERR_NO_SUCH_SEGMENT);
	CHECK_EQ(connect_group(sd, GROUP, &r), SCI_ERR_OK);
}

TEST(ids_of_groups)
{
	static const unsigned int ids[] = { 0, 1, 0x80000000, 0xffffffff };
	volatile unsigned char *mem[4];
	unsigned char *local[4];
	sci_desc_t sd = test_open();

	for (unsigned int i = 0; i < 4; i++) {
		sci_remote_segment_t r;
		sci_map_t map;

		local[i] = test_map_local(test_segment(sd, ids[i], SIZE,
						       SCI_FLAG_BROADCAST),
					  NULL);
		CHECK_EQ(connect_group(sd, ids[i], &r), SCI_ERR_OK);
		mem[i] = map_group(r, &map);
	}
	for (unsigned int i = 0; i < 4; i++)
		test_fill(mem[i], SIZE, i);
	for (unsigned int i = 0; i < 4; i++)
		CHECK(test_filled(local[i], SIZE, i));
}

static void auto_member(struct peer *self, void *arg)
{
	unsigned int flags = SCI_FLAG_BROADCAST | SCI_FLAG_DMA_GLOBAL |
			     SCI_FLAG_AUTO_ID;
	sci_desc_t sd = test_open();
	sci_local_segment_t s;
	unsigned int id;

	(void)arg;
	CHECK_OK(SCICreateSegment(sd, &s, 0, SIZE, NULL, NULL, flags, &err));
	id = SCIGetLocalSegmentId(s);
	PEER_PUT(self, id);
	peer_expect(self, "leave");
}

TEST(automatic_ids_are_free_on_each_node)
{
	struct peer *p[2];
	unsigned int id;

	for (unsigned int i = 0; i < 2; i++)
		p[i] = peer_spawn(8 + 4 * i, auto_member, NULL);
	for (int i = 0; i < 2; i++) {
		PEER_GET(p[i], id);
		CHECK_EQ(id, 0);
	}
}

TEST(copies_sequences_and_dma)
{
	static unsigned char buf[SIZE];
	struct peer *p[2];
	sci_remote_segment_t r;
	sci_local_segment_t s;
	sci_dma_queue_t q;
	sci_sequence_t seq;
	sci_map_t map;
	sci_desc_t sd;

	for (unsigned int i = 0; i < 2; i++)
		p[i] = peer_spawn(8 + 4 * i, member, NULL);
	sd = test_open();
	join(p[0]);
	join(p[1]);
	CHECK_EQ(connect_group(sd, GROUP, &r), SCI_ERR_OK);
	map_group(r, &map);
	CHECK_OK(SCICreateMapSequence(map, &seq, 0, &err));
	CHECK_EQ(SCIStartSequence(seq, 0, NULL), SCI_SEQ_OK);
	test_fill(buf, SIZE, 1);
	CHECK_OK(SCIMemCpy(seq, buf, map, 0, SIZE, SCI_FLAG_ERROR_CHECK,
			   &err));
	CHECK_EQ(SCICheckSequence(seq, 0, NULL), SCI_SEQ_OK);
	sees(p[0], 1);
	sees(p[1], 1);

	CHECK_OK(SCICreateSegment(sd, &s, 1, SIZE, NULL, NULL, 0, &err));
	CHECK_OK(SCIPrepareSegment(s, 0, SCI_FLAG_DMA_SOURCE_ONLY, &err));
	test_fill(test_map_local(s, NULL), SIZE, 2);
	CHECK_OK(SCICreateDMAQueue(sd, &q, 0, 1, SCI_FLAG_DMA_GLOBAL, &err));
	CHECK_OK(SCIStartDmaTransfer(q, s, r, 0, SIZE, 0, NULL, NULL,
				     SCI_FLAG_BROADCAST | SCI_FLAG_DMA_GLOBAL,
				     &err));
	CHECK_OK(SCIWaitForDMAQueue(q, SCI_INFINITE_TIMEOUT, 0, &err));
	sees(p[0], 2);
	sees(p[1], 2);
}

TEST(nothing_leaks_in_a_loop)
{
	sci_desc_t sd = test_open();

	for (int i = 0; i < 100; i++) {
		sci_local_segment_t s = test_segment(sd, GROUP, SIZE,
						     SCI_FLAG_BROADCAST);
		sci_remote_segment_t r;
		sci_map_t map;

		CHECK_EQ(connect_group(sd, GROUP, &r), SCI_ERR_OK);
		map_group(r, &map);
		CHECK_OK(SCIRemoveSegment(s, 0, &err));
		CHECK_OK(SCIUnmapSegment(map, 0, &err));
		CHECK_OK(SCIDisconnectSegment(r, 0, &err));
		if (i == 0)
			leak_check_begin();
	}
	leak_check_end();
	CHECK_OK(SCIClose(sd, 0, &err));
}
