// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Fifteen behaviours, on every fabric, on which programs written for SISCI rely. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sisci_api.h>

#include "selftests/harness.h"
#include "selftests/remote.h"

#define SIZE	8192

static const unsigned int timeouts[] = { 0, 1, 1000, SCI_INFINITE_TIMEOUT };

/* ---- 1. connecting to objects that do not exist ---- */

static void check_no_segment(sci_desc_t sd, unsigned int node, unsigned int id,
			     sci_error_t want)
{
	sci_remote_segment_t r = NULL;

	for (size_t i = 0; i < ARRAY_LEN(timeouts); i++)
		CHECK_ERR(SCIConnectSegment(sd, &r, node, id, 0, NULL, NULL,
					    timeouts[i], 0, &err), want);
	CHECK(r == NULL);
}

static void check_no_interrupt(sci_desc_t sd, unsigned int node,
			       unsigned int number, sci_error_t want)
{
	sci_remote_interrupt_t i = NULL;
	sci_remote_data_interrupt_t d = NULL;

	for (size_t k = 0; k < ARRAY_LEN(timeouts); k++) {
		CHECK_ERR(SCIConnectInterrupt(sd, &i, node, 0, number,
					      timeouts[k], 0, &err), want);
		CHECK_ERR(SCIConnectDataInterrupt(sd, &d, node, 0, number,
						  timeouts[k], 0, &err), want);
	}
	CHECK(i == NULL && d == NULL);
}

static void idle_node(struct peer *self, void *arg)
{
	(void)arg;
	test_open();
	peer_send(self, "here");
	peer_expect(self, "leave");
}

TEST(behaviour_01_connect_to_missing_returns_at_once)
{
	struct peer *p = peer_spawn(8, idle_node, NULL);
	/* a node with a process, nodes without one, the local node by both names */
	const unsigned int nodes[] = { 8, 12, 64, 4, SCI_LOCAL_HOST };
	sci_desc_t sd = test_open();

	peer_expect(p, "here");
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
		/* without a machine there is no such node */
		if (remote_machines() && (nodes[i] == 12 || nodes[i] == 64))
			continue;
		check_no_segment(sd, nodes[i], 7, SCI_ERR_NO_SUCH_SEGMENT);
		check_no_interrupt(sd, nodes[i], 7, SCI_ERR_NO_SUCH_INTNO);
	}
	peer_send(p, "leave");
	peer_join(p);
}

TEST(behaviour_01_connect_in_a_loop)
{
	sci_desc_t sd = test_open();
	sci_remote_segment_t r;

	for (int i = 0; i < 2000; i++)
		CHECK_ERR(SCIConnectSegment(sd, &r, 8, 1, 0, NULL, NULL,
					    SCI_INFINITE_TIMEOUT, 0, &err),
			  SCI_ERR_NO_SUCH_SEGMENT);
}

TEST(behaviour_01_connect_to_a_node_that_cannot_be)
{
	const unsigned int illegal[] = { 0, 1, 3, 5, 65535, 65536 + 4,
					 0x80000000 };
	sci_desc_t sd = test_open();

	check_no_segment(sd, 68, 7, SCI_ERR_NO_SUCH_NODEID);
	check_no_segment(sd, 65532, 7, SCI_ERR_NO_SUCH_NODEID);
	check_no_interrupt(sd, 68, 7, SCI_ERR_NO_SUCH_NODEID);
	for (size_t i = 0; i < ARRAY_LEN(illegal); i++) {
		check_no_segment(sd, illegal[i], 7, SCI_ERR_ILLEGAL_NODEID);
		check_no_interrupt(sd, illegal[i], 7, SCI_ERR_ILLEGAL_NODEID);
	}
}

TEST(behaviour_01_size_of_the_cluster)
{
	sci_desc_t sd;

	test_needs_shm();
	setenv("SCI_NODES", "2", 1);
	sd = test_open();
	check_no_segment(sd, 8, 7, SCI_ERR_NO_SUCH_SEGMENT);
	check_no_segment(sd, 12, 7, SCI_ERR_NO_SUCH_NODEID);
}

static void late_owner(struct peer *self, void *arg)
{
	sci_local_segment_t s;
	sci_desc_t sd;

	(void)arg;
	peer_expect(self, "init");
	sd = test_open();
	peer_send(self, "done");
	peer_expect(self, "create");
	CHECK_OK(SCICreateSegment(sd, &s, 7, SIZE, NULL, NULL, 0, &err));
	peer_send(self, "done");
	peer_expect(self, "prepare");
	CHECK_OK(SCIPrepareSegment(s, 0, 0, &err));
	peer_send(self, "done");
	peer_expect(self, "available");
	CHECK_OK(SCISetSegmentAvailable(s, 0, 0, &err));
	peer_send(self, "done");
	peer_expect(self, "unavailable");
	CHECK_OK(SCISetSegmentUnavailable(s, 0, 0, &err));
	peer_send(self, "done");
	peer_expect(self, "remove");
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
	peer_send(self, "done");
}

TEST(behaviour_01_a_segment_exists_while_it_is_available)
{
	static const char *const steps[] = {
		"init", "create", "prepare", "available", "unavailable",
		"remove"
	};
	struct peer *p = peer_spawn(8, late_owner, NULL);
	sci_desc_t sd = test_open();

	check_no_segment(sd, 8, 7, SCI_ERR_NO_SUCH_SEGMENT);
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		sci_remote_segment_t r;

		peer_send(p, steps[i]);
		peer_expect(p, "done");
		if (strcmp(steps[i], "available")) {
			check_no_segment(sd, 8, 7, SCI_ERR_NO_SUCH_SEGMENT);
			continue;
		}
		CHECK_OK(SCIConnectSegment(sd, &r, 8, 7, 0, NULL, NULL, 0, 0,
					   &err));
		CHECK_OK(SCIDisconnectSegment(r, 0, &err));
	}
	peer_join(p);
}

static void connect_early(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();

	(void)arg;
	peer_send(self, "trying");
	test_connect(sd, 4, 7);
	test_connect_interrupt(sd, 4, 7);
	test_connect_data_interrupt(sd, 4, 7);
}

TEST(behaviour_01_the_client_may_be_first)
{
	struct peer *p = peer_spawn(8, connect_early, NULL);
	sci_desc_t sd;

	peer_expect(p, "trying");
	sd = test_open();
	test_segment(sd, 7, SIZE, 0);
	test_interrupt(sd, 7);
	test_data_interrupt(sd, 7);
	peer_join(p);
}

TEST(behaviour_01_plain_and_data_interrupts_are_two_spaces)
{
	sci_desc_t sd = test_open();
	sci_remote_data_interrupt_t d;
	sci_remote_interrupt_t i;

	test_interrupt(sd, 1);
	test_data_interrupt(sd, 2);
	CHECK_ERR(SCIConnectDataInterrupt(sd, &d, 4, 0, 1, 0, 0, &err),
		  SCI_ERR_NO_SUCH_INTNO);
	CHECK_ERR(SCIConnectInterrupt(sd, &i, 4, 0, 2, 0, 0, &err),
		  SCI_ERR_NO_SUCH_INTNO);
	test_interrupt(sd, 2);
	test_data_interrupt(sd, 1);
}

/* ---- 2. nothing remains ---- */

/* Create an object of each kind and use it. */
static void use_everything(sci_desc_t sd)
{
	static char hello[] = "hello";
	sci_local_segment_t s = test_segment(sd, 20, SIZE, 0);
	sci_remote_segment_t r = test_connect(sd, 4, 10);
	sci_remote_segment_t own = test_connect(sd, SCI_LOCAL_HOST, 20);
	sci_sequence_t seq;
	sci_dma_queue_t q;
	sci_map_t map;

	if (test_has_broadcast())
		test_segment(sd, 21, SIZE, SCI_FLAG_BROADCAST);
	test_map_local(s, NULL);
	test_map_remote(own, NULL);
	memset((void *)test_map_remote(r, &map), 1, SIZE);
	CHECK_OK(SCICreateMapSequence(map, &seq, 0, &err));
	SCIStartSequence(seq, 0, NULL);
	CHECK_OK(SCICreateDMAQueue(sd, &q, 0, 4, 0, &err));
	CHECK_OK(SCIStartDmaTransfer(q, s, r, 0, SIZE, 0, NULL, NULL,
				     SCI_FLAG_DMA_WAIT, &err));
	test_interrupt(sd, 22);
	test_data_interrupt(sd, 22);
	CHECK_OK(SCITriggerInterrupt(test_connect_interrupt(sd, 4, 11), 0,
				     &err));
	CHECK_OK(SCITriggerDataInterrupt(test_connect_data_interrupt(sd, 4, 11),
					 hello, 5, 0, &err));
}

static void user_of_everything(struct peer *self, void *arg)
{
	(void)arg;
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	signal(SIGABRT, SIG_DFL);
	signal(SIGFPE, SIG_DFL);
	peer_expect(self, "go");
	use_everything(test_open());
	peer_send(self, "ready");
	peer_expect(self, "end");
}

static void give_everything(sci_desc_t sd, struct recorder *r)
{
	recorder_init(r);
	test_segment_cb(sd, 10, SIZE, r);
	test_interrupt(sd, 11);
	test_data_interrupt(sd, 11);
}

static void terminator(struct peer *self, void *arg)
{
	(void)arg;
	peer_expect(self, "go");
	for (int i = 0; i < 3; i++) {
		leak_check_begin();
		use_everything(test_open());
		SCITerminate();
		leak_check_end();
		peer_send(self, "terminated");
	}
}

TEST(behaviour_02_terminate_releases_everything)
{
	static struct recorder rec;
	struct peer *p = peer_spawn(8, terminator, NULL);

	give_everything(test_open(), &rec);
	peer_send(p, "go");
	for (int i = 0; i < 3; i++)
		peer_expect(p, "terminated");
	peer_join(p);
	for (unsigned int i = 0; i < 6; i++) {
		CHECK_EQ(recorder_get(&rec, i).node, 8);
		CHECK_EQ(recorder_get(&rec, i).reason,
			 i % 2 ? SCI_CB_DISCONNECT : SCI_CB_CONNECT);
	}
}

static void check_gone_by(void (*end)(struct peer *p))
{
	static struct recorder rec, import;
	struct peer *p = peer_spawn(8, user_of_everything, NULL);
	struct peer *next = peer_spawn(8, user_of_everything, NULL);
	sci_desc_t sd = test_open();
	volatile char *mem;

	recorder_init(&import);
	give_everything(sd, &rec);
	peer_send(p, "go");
	peer_expect(p, "ready");
	mem = test_map_remote(test_connect_cb(sd, 8, 20, &import), NULL);
	end(p);

	/* the peer gets events, and its accesses to the memory do no harm */
	CHECK_EQ(recorder_get(&rec, 0).reason, SCI_CB_CONNECT);
	CHECK_EQ(recorder_get(&rec, 1).reason, SCI_CB_LOST);
	CHECK_EQ(recorder_get(&import, 0).reason, SCI_CB_LOST);
	memset((void *)mem, 2, SIZE);
	check_no_segment(sd, 8, 20, SCI_ERR_NO_SUCH_SEGMENT);
	check_no_interrupt(sd, 8, 22, SCI_ERR_NO_SUCH_INTNO);

	/* another process can take the ids and numbers */
	peer_send(next, "go");
	peer_expect(next, "ready");
}

static void end_by_kill(struct peer *p)
{
	peer_kill(p, SIGKILL);
}

static void end_by_segv(struct peer *p)
{
	peer_kill(p, SIGSEGV);
}

static void end_by_abort(struct peer *p)
{
	peer_kill(p, SIGABRT);
}

static void end_by_term(struct peer *p)
{
	peer_kill(p, SIGTERM);
}

static void end_by_int(struct peer *p)
{
	peer_kill(p, SIGINT);
}

TEST(behaviour_02_death_by_sigkill)
{
	check_gone_by(end_by_kill);
}

TEST(behaviour_02_death_by_sigsegv)
{
	check_gone_by(end_by_segv);
}

TEST(behaviour_02_death_by_sigabrt)
{
	check_gone_by(end_by_abort);
}

TEST(behaviour_02_death_by_sigterm)
{
	check_gone_by(end_by_term);
}

TEST(behaviour_02_death_by_sigint)
{
	check_gone_by(end_by_int);
}

static void exit_with_everything(struct peer *self, void *arg)
{
	(void)arg;
	peer_expect(self, "go");
	use_everything(test_open());
	exit(0);
}

TEST(behaviour_02_exit_without_terminate)
{
	static struct recorder rec;
	struct peer *p[2];
	sci_desc_t sd;
	int reason;

	for (int i = 0; i < 2; i++)
		p[i] = peer_spawn(8, exit_with_everything, NULL);
	sd = test_open();
	give_everything(sd, &rec);
	for (unsigned int i = 0; i < 2; i++) {
		peer_send(p[i], "go");
		peer_join(p[i]);
		CHECK_EQ(recorder_get(&rec, 2 * i).reason, SCI_CB_CONNECT);
		reason = recorder_get(&rec, 2 * i + 1).reason;
		CHECK(reason == SCI_CB_LOST || reason == SCI_CB_DISCONNECT);
	}
}

TEST(behaviour_02_terminate_twice_and_before_initialize)
{
	sci_desc_t sd;

	SCITerminate();
	CHECK_ERR(SCIOpen(&sd, 0, &err), SCI_ERR_NOT_INITIALIZED);
	sd = test_open();
	CHECK_OK(SCIInitialize(0, &err));
	SCITerminate();
	SCITerminate();
	CHECK_ERR(SCIClose(sd, 0, &err), SCI_ERR_NOT_INITIALIZED);
	sd = test_open();
	CHECK_OK(SCIClose(sd, 0, &err));
}

/* ---- 3. peers get events ---- */

static void importer(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();
	sci_remote_segment_t r;

	(void)arg;
	peer_expect(self, "connect");
	r = test_connect(sd, 4, 10);
	peer_send(self, "connected");
	peer_expect(self, "disconnect");
	CHECK_OK(SCIDisconnectSegment(r, 0, &err));
	peer_send(self, "disconnected");
	peer_expect(self, "leave");
}

TEST(behaviour_03_the_owner_hears_of_each_peer)
{
	static const unsigned int nodes[] = { 8, 12, 8, 4 };
	static struct recorder rec;
	struct peer *p[4];
	sci_local_segment_t s;
	struct record r;

	for (int i = 0; i < 4; i++)
		p[i] = peer_spawn(nodes[i], importer, NULL);
	recorder_init(&rec);
	s = test_segment_cb(test_open(), 10, SIZE, &rec);
	for (unsigned int i = 0; i < 4; i++) {
		peer_send(p[i], "connect");
		peer_expect(p[i], "connected");
		r = recorder_get(&rec, i);
		CHECK_EQ(r.reason, SCI_CB_CONNECT);
		CHECK_EQ(r.node, nodes[i]);
		CHECK_EQ(r.adapter, 0);
		CHECK_EQ(r.status, SCI_ERR_OK);
		CHECK(r.handle == s);
		CHECK(!pthread_equal(r.thread, pthread_self()));
	}
	for (unsigned int i = 4; i-- > 0; ) {
		peer_send(p[i], "disconnect");
		peer_expect(p[i], "disconnected");
		r = recorder_get(&rec, 7 - i);
		CHECK_EQ(r.reason, SCI_CB_DISCONNECT);
		CHECK_EQ(r.node, nodes[i]);
	}
	CHECK_EQ(recorder_count(&rec), 8);
	CHECK_EQ(rec.overlaps, 0);
}

TEST(behaviour_03_the_owner_hears_of_a_death)
{
	static struct recorder rec;
	struct peer *p = peer_spawn(8, importer, NULL);

	recorder_init(&rec);
	test_segment_cb(test_open(), 10, SIZE, &rec);
	peer_send(p, "connect");
	peer_expect(p, "connected");
	peer_kill(p, SIGKILL);
	CHECK_EQ(recorder_get(&rec, 0).reason, SCI_CB_CONNECT);
	CHECK_EQ(recorder_get(&rec, 1).reason, SCI_CB_LOST);
	CHECK_EQ(recorder_get(&rec, 1).node, 8);
}

/* Ways in which the owner ends a segment that has an importer. */
enum ending { REMOVE, NOTIFY, FORCE, DIE, TERMINATE };

static void owner(struct peer *self, void *arg)
{
	enum ending how = *(enum ending *)arg;
	sci_local_segment_t s = test_segment(test_open(), 10, SIZE, 0);

	peer_send(self, "ready");
	peer_expect(self, "end");
	switch (how) {
	case REMOVE:
		CHECK_OK(SCIRemoveSegment(s, SCI_FLAG_FORCE_REMOVE, &err));
		break;
	case NOTIFY:
		CHECK_OK(SCISetSegmentUnavailable(s, 0, SCI_FLAG_NOTIFY, &err));
		break;
	case FORCE:
		CHECK_OK(SCISetSegmentUnavailable(s, 0,
						  SCI_FLAG_FORCE_DISCONNECT,
						  &err));
		break;
	case DIE:
		raise(SIGKILL);
		break;
	case TERMINATE:
		SCITerminate();
		break;
	}
	peer_expect(self, "leave");
}

static void check_ending(enum ending how, sci_segment_cb_reason_t reason)
{
	static struct recorder rec;
	struct peer *p = peer_spawn(8, owner, &how);
	sci_desc_t sd = test_open();
	sci_remote_segment_t r;
	struct record record;

	recorder_init(&rec);
	peer_expect(p, "ready");
	r = test_connect_cb(sd, 8, 10, &rec);
	test_map_remote(r, NULL);
	peer_send(p, "end");
	record = recorder_get(&rec, 0);
	CHECK_EQ(record.reason, reason);
	CHECK(record.handle == r);
	CHECK(!pthread_equal(record.thread, pthread_self()));
	check_no_segment(sd, 8, 10, SCI_ERR_NO_SUCH_SEGMENT);
}

TEST(behaviour_03_the_segment_is_removed)
{
	check_ending(REMOVE, SCI_CB_DISCONNECT);
}

TEST(behaviour_03_the_segment_is_made_unavailable_with_notify)
{
	check_ending(NOTIFY, SCI_CB_DISCONNECT);
}

TEST(behaviour_03_the_segment_is_made_unavailable_by_force)
{
	check_ending(FORCE, SCI_CB_DISCONNECT);
}

TEST(behaviour_03_the_owner_dies)
{
	check_ending(DIE, SCI_CB_LOST);
}

TEST(behaviour_03_the_owner_terminates)
{
	check_ending(TERMINATE, SCI_CB_DISCONNECT);
}

/* ---- 4. removal of segments in use ---- */

TEST(behaviour_04_remove_is_busy_while_mapped)
{
	sci_desc_t sd = test_open();
	sci_local_segment_t s = test_segment(sd, 10, SIZE, 0);
	sci_map_t map[2];

	test_map_local(s, &map[0]);
	test_map_local(s, &map[1]);
	for (int i = 0; i < 2; i++) {
		CHECK_ERR(SCIRemoveSegment(s, 0, &err), SCI_ERR_BUSY);
		CHECK_OK(SCIUnmapSegment(map[i], 0, &err));
	}
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
	CHECK_ERR(SCIRemoveSegment(s, 0, &err), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_OK(SCIClose(sd, 0, &err));
}

TEST(behaviour_04_remove_is_busy_while_connected)
{
	struct peer *p = peer_spawn(8, importer, NULL);
	sci_local_segment_t s = test_segment(test_open(), 10, SIZE, 0);

	peer_send(p, "connect");
	peer_expect(p, "connected");
	for (int i = 0; i < 100; i++)
		CHECK_ERR(SCIRemoveSegment(s, 0, &err), SCI_ERR_BUSY);
	CHECK_OK(SCISetSegmentUnavailable(s, 0, 0, &err));
	CHECK_ERR(SCIRemoveSegment(s, 0, &err), SCI_ERR_BUSY);
	peer_send(p, "disconnect");
	peer_expect(p, "disconnected");
	/* a disconnect has taken effect when the call returns */
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
}

TEST(behaviour_04_disconnect_counts_when_it_returns)
{
	sci_desc_t sd = test_open();

	for (unsigned int i = 0; i < 300; i++) {
		sci_local_segment_t s = test_segment(sd, i, SIZE, 0);
		sci_remote_segment_t r = test_connect(sd, 4, i);

		CHECK_ERR(SCIRemoveSegment(s, 0, &err), SCI_ERR_BUSY);
		CHECK_OK(SCIDisconnectSegment(r, 0, &err));
		CHECK_OK(SCIRemoveSegment(s, 0, &err));
	}
}

TEST(behaviour_04_remove_after_the_peer_died)
{
	struct peer *p = peer_spawn(8, importer, NULL);
	sci_local_segment_t s = test_segment(test_open(), 10, SIZE, 0);

	peer_send(p, "connect");
	peer_expect(p, "connected");
	peer_kill(p, SIGKILL);
	/* programs repeat the call while it returns BUSY */
	WAIT_UNTIL(ERR_OF(SCIRemoveSegment(s, 0, &err)) != SCI_ERR_BUSY, TEST_WAIT_MS);
	CHECK_ERR(SCIRemoveSegment(s, 0, &err), SCI_ERR_ILLEGAL_PARAMETER);
}

static void stubborn(struct peer *self, void *arg)
{
	static struct recorder rec;
	sci_desc_t sd = test_open();
	sci_remote_segment_t r;
	volatile char *mem;
	sci_map_t map;

	(void)arg;
	recorder_init(&rec);
	peer_expect(self, "connect");
	r = test_connect_cb(sd, 4, 10, &rec);
	mem = test_map_remote(r, &map);
	peer_send(self, "connected");
	CHECK_EQ(recorder_get(&rec, 0).reason, SCI_CB_DISCONNECT);
	mem[0] = 1;
	CHECK_OK(SCIUnmapSegment(map, 0, &err));
	CHECK_OK(SCIDisconnectSegment(r, 0, &err));
	peer_send(self, "left");
}

TEST(behaviour_04_force_remove)
{
	struct peer *p = peer_spawn(8, stubborn, NULL);
	sci_desc_t sd = test_open();
	sci_local_segment_t s = test_segment(sd, 10, SIZE, 0);
	sci_map_t map;
	char *mem = test_map_local(s, &map);

	peer_send(p, "connect");
	peer_expect(p, "connected");
	CHECK_ERR(SCIRemoveSegment(s, 0, &err), SCI_ERR_BUSY);
	CHECK_OK(SCIRemoveSegment(s, SCI_FLAG_FORCE_REMOVE, &err));
	peer_expect(p, "left");
	peer_join(p);
	/* a local map stays until it is unmapped; the id is free at once */
	test_fill(mem, SIZE, 1);
	CHECK(test_filled(mem, SIZE, 1));
	test_segment(sd, 10, SIZE, 0);
	CHECK_OK(SCIUnmapSegment(map, 0, &err));
}

/* The peer disconnects when it gets the event. Then the segment can be removed. */
static void check_unavailable(unsigned int flags)
{
	struct peer *p = peer_spawn(8, stubborn, NULL);
	sci_local_segment_t s = test_segment(test_open(), 10, SIZE, 0);

	peer_send(p, "connect");
	peer_expect(p, "connected");
	CHECK_OK(SCISetSegmentUnavailable(s, 0, flags, &err));
	peer_expect(p, "left");
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
	peer_join(p);
}

TEST(behaviour_04_notify_tells_peers_first)
{
	check_unavailable(SCI_FLAG_NOTIFY);
}

TEST(behaviour_04_force_disconnect_tells_peers_first)
{
	check_unavailable(SCI_FLAG_FORCE_DISCONNECT);
}

/* The peer gets the event, but stays connected. */
static void unmoved(struct peer *self, void *arg)
{
	static struct recorder rec;
	sci_desc_t sd = test_open();
	sci_remote_segment_t r, again;
	volatile char *mem;
	sci_map_t map;

	(void)arg;
	recorder_init(&rec);
	peer_expect(self, "connect");
	r = test_connect_cb(sd, 4, 10, &rec);
	mem = test_map_remote(r, &map);
	peer_send(self, "connected");
	CHECK_EQ(recorder_get(&rec, 0).reason, SCI_CB_DISCONNECT);
	peer_send(self, "told");
	peer_expect(self, "removed");
	CHECK_ERR(SCIConnectSegment(sd, &again, 4, 10, 0, NULL, NULL, 0, 0,
				    &err), SCI_ERR_NO_SUCH_SEGMENT);
	/* the map still exists, wherever the stores go */
	for (unsigned int i = 0; i < SIZE; i++)
		mem[i] = (char)i;
	(void)mem[SIZE / 2];
	CHECK_OK(SCIUnmapSegment(map, 0, &err));
	CHECK_OK(SCIDisconnectSegment(r, 0, &err));
	CHECK_OK(SCIClose(sd, 0, &err));
}

static void check_remove_after(unsigned int flags)
{
	struct peer *p = peer_spawn(8, unmoved, NULL);
	sci_desc_t sd = test_open();
	sci_local_segment_t s = test_segment(sd, 10, SIZE, 0);
	sci_map_t map;

	test_map_local(s, &map);
	peer_send(p, "connect");
	peer_expect(p, "connected");
	CHECK_OK(SCISetSegmentUnavailable(s, 0, flags, &err));
	peer_expect(p, "told");
	/* a local map still makes the segment busy */
	CHECK_ERR(SCIRemoveSegment(s, 0, &err), SCI_ERR_BUSY);
	CHECK_OK(SCIUnmapSegment(map, 0, &err));
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
	peer_send(p, "removed");
	peer_join(p);
	CHECK_OK(SCIRemoveSegment(test_segment(sd, 10, SIZE, 0), 0, &err));
	CHECK_OK(SCIClose(sd, 0, &err));
}

TEST(behaviour_04_remove_after_notify)
{
	check_remove_after(SCI_FLAG_NOTIFY);
}

TEST(behaviour_04_remove_after_force_disconnect)
{
	check_remove_after(SCI_FLAG_FORCE_DISCONNECT);
}

TEST(behaviour_04_a_segment_made_available_again_waits_for_its_peers)
{
	struct peer *p = peer_spawn(8, importer, NULL);
	sci_local_segment_t s = test_segment(test_open(), 10, SIZE, 0);

	peer_send(p, "connect");
	peer_expect(p, "connected");
	CHECK_OK(SCISetSegmentUnavailable(s, 0, SCI_FLAG_NOTIFY, &err));
	CHECK_OK(SCISetSegmentAvailable(s, 0, 0, &err));
	CHECK_ERR(SCIRemoveSegment(s, 0, &err), SCI_ERR_BUSY);
	peer_send(p, "disconnect");
	peer_expect(p, "disconnected");
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
}

/* ---- 5. orders of calls that are permitted ---- */

TEST(behaviour_05_unmap_with_a_sequence)
{
	sci_desc_t sd = test_open();
	sci_local_segment_t s = test_segment(sd, 10, SIZE, 0);
	sci_remote_segment_t r = test_connect(sd, 4, 10);
	sci_sequence_t seq;
	sci_map_t map;

	test_map_remote(r, &map);
	CHECK_OK(SCICreateMapSequence(map, &seq, 0, &err));
	CHECK_EQ(SCIStartSequence(seq, 0, NULL), SCI_SEQ_OK);
	CHECK_OK(SCIUnmapSegment(map, 0, &err));
	SCIStoreBarrier(seq, 0);
	SCIFlush(seq, 0);
	CHECK_OK(SCIRemoveSequence(seq, 0, &err));
	CHECK_OK(SCIDisconnectSegment(r, 0, &err));
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
	CHECK_OK(SCIClose(sd, 0, &err));
}

TEST(behaviour_05_flush_of_nothing)
{
	sci_desc_t sd = test_open();

	SCIFlush(NULL, 0);
	SCIFlush(NULL, SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY);
	CHECK_OK(SCIClose(sd, 0, &err));
}

TEST(behaviour_05_memcpy_without_a_sequence)
{
	static unsigned char in[SIZE], out[SIZE];
	sci_desc_t sd = test_open();
	char *mem = test_map_local(test_segment(sd, 10, SIZE, 0), NULL);
	sci_map_t map;

	test_map_remote(test_connect(sd, 4, 10), &map);
	test_fill(in, SIZE, 5);
	CHECK_OK(SCIMemCpy(NULL, in, map, 0, SIZE, 0, &err));
	CHECK(test_filled(mem, SIZE, 5));
	CHECK_OK(SCIMemCpy(NULL, out, map, 0, SIZE, SCI_FLAG_BLOCK_READ,
			   &err));
	CHECK(test_filled(out, SIZE, 5));
	test_fill(in, SIZE, 6);
	CHECK_OK(SCIMemCpy(NULL, in, map, 0, SIZE, SCI_FLAG_ERROR_CHECK,
			   &err));
	CHECK(test_filled(mem, SIZE, 6));
}

/* ---- 6. interrupts are latched ---- */

static void triggerer(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();
	sci_remote_data_interrupt_t d;
	sci_remote_interrupt_t i;
	char text[40];

	(void)arg;
	peer_expect(self, "trigger");
	i = test_connect_interrupt(sd, 4, 10);
	d = test_connect_data_interrupt(sd, 4, 10);
	CHECK_OK(SCITriggerInterrupt(i, 0, &err));
	for (unsigned int k = 0; k < sizeof(text); k++) {
		memset(text, 'a' + (int)k % 26, sizeof(text));
		CHECK_OK(SCITriggerDataInterrupt(d, text, k, 0, &err));
	}
	CHECK_OK(SCIDisconnectInterrupt(i, 0, &err));
	CHECK_OK(SCIDisconnectDataInterrupt(d, 0, &err));
	peer_send(self, "triggered");
}

static void check_messages(sci_local_data_interrupt_t d)
{
	char text[64], want[64];
	unsigned int len;

	for (unsigned int k = 0; k < 40; k++) {
		memset(text, 0, sizeof(text));
		memset(want, 0, sizeof(want));
		memset(want, 'a' + (int)k % 26, k);
		len = sizeof(text);
		CHECK_OK(SCIWaitForDataInterrupt(d, text, &len, 5000, 0, &err));
		CHECK_EQ(len, k);
		CHECK(!memcmp(text, want, sizeof(text)));
	}
	len = sizeof(text);
	CHECK_ERR(SCIWaitForDataInterrupt(d, text, &len, 0, 0, &err),
		  SCI_ERR_TIMEOUT);
}

TEST(behaviour_06_a_trigger_before_the_wait_is_latched)
{
	struct peer *p = peer_spawn(8, triggerer, NULL);
	sci_desc_t sd = test_open();
	sci_local_interrupt_t i = test_interrupt(sd, 10);
	sci_local_data_interrupt_t d = test_data_interrupt(sd, 10);

	peer_send(p, "trigger");
	peer_expect(p, "triggered");
	peer_join(p);
	/* the sender has triggered, disconnected and exited */
	CHECK_OK(SCIWaitForInterrupt(i, 0, 0, &err));
	CHECK_ERR(SCIWaitForInterrupt(i, 0, 0, &err), SCI_ERR_TIMEOUT);
	check_messages(d);
}

TEST(behaviour_06_a_wait_before_the_trigger)
{
	struct peer *p = peer_spawn(8, triggerer, NULL);
	sci_desc_t sd = test_open();
	sci_local_interrupt_t i = test_interrupt(sd, 10);
	sci_local_data_interrupt_t d = test_data_interrupt(sd, 10);

	CHECK_ERR(SCIWaitForInterrupt(i, 1, 0, &err), SCI_ERR_TIMEOUT);
	peer_send(p, "trigger");
	CHECK_OK(SCIWaitForInterrupt(i, SCI_INFINITE_TIMEOUT, 0, &err));
	check_messages(d);
	peer_join(p);
}

/* ---- 7. ids are any number ---- */

static const unsigned int numbers[] = {
	0, 1, 2, 4, 42, 0x10000, 0xba000000, 0x7fffffff, 0x80000000, 0xfffffffe,
	0xffffffff
};

TEST(behaviour_07_segment_ids_are_any_number)
{
	sci_desc_t sd = test_open();

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		sci_local_segment_t s = test_segment(sd, numbers[i], SIZE, 0);
		sci_remote_segment_t r = test_connect(sd, 4, numbers[i]);

		CHECK_EQ(SCIGetLocalSegmentId(s), numbers[i]);
		CHECK_EQ(SCIGetRemoteSegmentId(r), numbers[i]);
		CHECK_EQ(SCIGetRemoteSegmentNodeId(r), 4);
		*(unsigned int *)test_map_local(s, NULL) = numbers[i];
	}
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		sci_remote_segment_t r = test_connect(sd, 4, numbers[i]);
		volatile unsigned int *mem = test_map_remote(r, NULL);

		CHECK_EQ(*mem, numbers[i]);
	}
}

TEST(behaviour_07_interrupt_numbers_are_any_number)
{
	sci_local_interrupt_t i[ARRAY_LEN(numbers)];
	sci_desc_t sd = test_open();

	for (size_t k = 0; k < ARRAY_LEN(numbers); k++) {
		i[k] = test_interrupt(sd, numbers[k]);
		test_data_interrupt(sd, numbers[k]);
	}
	for (size_t k = 0; k < ARRAY_LEN(numbers); k++) {
		sci_remote_interrupt_t r =
			test_connect_interrupt(sd, 4, numbers[k]);

		CHECK_OK(SCITriggerInterrupt(r, 0, &err));
		for (size_t m = 0; m < ARRAY_LEN(numbers); m++)
			CHECK_ERR(SCIWaitForInterrupt(i[m], m == k ? 5000 : 0,
						      0, &err),
				  m == k ? SCI_ERR_OK : SCI_ERR_TIMEOUT);
	}
}

static void check_auto_id(sci_desc_t sd, unsigned int wish, unsigned int want)
{
	sci_local_segment_t s;

	CHECK_OK(SCICreateSegment(sd, &s, wish, SIZE, NULL, NULL,
				  SCI_FLAG_AUTO_ID, &err));
	CHECK_EQ(SCIGetLocalSegmentId(s), want);
}

TEST(behaviour_07_auto_id_is_at_or_above_the_wish)
{
	sci_desc_t sd = test_open();
	sci_local_segment_t s;

	test_segment(sd, 1026, SIZE, 0);
	check_auto_id(sd, 1024, 1024);
	check_auto_id(sd, 1024, 1025);
	check_auto_id(sd, 1024, 1027);
	check_auto_id(sd, 123, 123);
	for (unsigned int i = 0; i < 50; i++)
		check_auto_id(sd, 0, i);
	CHECK_OK(SCICreateSegment(sd, &s, 0, SIZE, NULL, NULL,
				  SCI_FLAG_DMA_GLOBAL | SCI_FLAG_AUTO_ID,
				  &err));
	CHECK_EQ(SCIGetLocalSegmentId(s), 50);
}

/* ---- 8. a store reaches all members of a group ---- */

static void member(struct peer *self, void *arg)
{
	volatile unsigned int *mem;
	sci_local_segment_t s;

	(void)arg;
	s = test_segment(test_open(), 10, SIZE, SCI_FLAG_BROADCAST);
	mem = test_map_local(s, NULL);
	peer_send(self, "member");
	WAIT_UNTIL(mem[0] == 0x1234, TEST_WAIT_MS);
	WAIT_UNTIL(mem[SIZE / 4 - 1] == 0x5678, TEST_WAIT_MS);
	peer_send(self, "seen");
	peer_expect(self, "leave");
}

static sci_remote_segment_t connect_group(sci_desc_t sd, unsigned int id)
{
	sci_remote_segment_t r;

	CHECK_OK(SCIConnectSegment(sd, &r, DIS_BROADCAST_NODEID_GROUP_ALL, id,
				   0, NULL, NULL, SCI_INFINITE_TIMEOUT,
				   SCI_FLAG_BROADCAST, &err));
	return r;
}

TEST(behaviour_08_one_store_reaches_all_members)
{
	struct peer *p[3];
	volatile unsigned int *mem;
	sci_map_t map;
	sci_desc_t sd;

	for (unsigned int i = 0; i < 3; i++)
		p[i] = peer_spawn(8 + 4 * i, member, NULL);
	sd = test_open();
	for (int i = 0; i < 3; i++)
		peer_expect(p[i], "member");
	CHECK_OK(mem = SCIMapRemoteSegment(connect_group(sd, 10), &map, 0,
					   SIZE, NULL, SCI_FLAG_BROADCAST,
					   &err));
	mem[0] = 0x1234;
	mem[SIZE / 4 - 1] = 0x5678;
	SCIFlush(NULL, 0);
	for (int i = 0; i < 3; i++)
		peer_expect(p[i], "seen");
}

/* ---- 9. DMA ---- */

struct dma {
	sci_desc_t sd;
	sci_local_segment_t s;
	sci_remote_segment_t r;
	sci_dma_queue_t q;
	char *local;
	char *remote;
};

static void dma_open(struct dma *d, unsigned int flags)
{
	sci_local_segment_t target;

	d->sd = test_open();
	d->s = test_segment(d->sd, 1, SIZE, 0);
	target = test_segment(d->sd, 2, SIZE, 0);
	d->r = test_connect(d->sd, 4, 2);
	d->local = test_map_local(d->s, NULL);
	d->remote = test_map_local(target, NULL);
	CHECK_OK(SCICreateDMAQueue(d->sd, &d->q, 0, 16, flags, &err));
	CHECK_EQ(SCIDMAQueueState(d->q), SCI_DMAQUEUE_IDLE);
}

static void start_and_wait(struct dma *d, unsigned int flags)
{
	CHECK_OK(SCIStartDmaTransfer(d->q, d->s, d->r, 0, SIZE, 0, NULL, NULL,
				     flags, &err));
	CHECK_OK(SCIWaitForDMAQueue(d->q, SCI_INFINITE_TIMEOUT, 0, &err));
	CHECK_EQ(SCIDMAQueueState(d->q), SCI_DMAQUEUE_DONE);
}

TEST(behaviour_09_a_2x_queue_starts_again_after_done)
{
	static const unsigned int engines[] = {
		0, SCI_FLAG_DMA_GLOBAL, SCI_FLAG_DMA_SYSDMA,
		SCI_FLAG_DMA_ADAPTER
	};
	struct dma d;

	dma_open(&d, SCI_FLAG_DMA_GLOBAL);
	for (unsigned int i = 0; i < ARRAY_LEN(engines); i++) {
		test_fill(d.local, SIZE, i);
		start_and_wait(&d, engines[i]);
		CHECK(test_filled(d.remote, SIZE, i));
		/* and in the other direction */
		test_fill(d.remote, SIZE, i + 100);
		start_and_wait(&d, engines[i] | SCI_FLAG_DMA_READ);
		CHECK(test_filled(d.local, SIZE, i + 100));
	}
}

TEST(behaviour_09_a_110_queue_is_reset_first)
{
	sci_dma_queue_state_t state;
	struct dma d;

	dma_open(&d, 0);
	for (unsigned int i = 0; i < 5; i++) {
		test_fill(d.local, SIZE, i);
		CHECK_OK(state = SCIEnqueueDMATransfer(d.q, d.s, d.r, 0, 0,
						       SIZE / 2, 0, &err));
		CHECK_EQ(state, SCI_DMAQUEUE_GATHER);
		CHECK_OK(state = SCIEnqueueDMATransfer(d.q, d.s, d.r, SIZE / 2,
						       SIZE / 2, SIZE / 2, 0,
						       &err));
		CHECK_OK(SCIPostDMAQueue(d.q, NULL, NULL, 0, &err));
		CHECK_OK(state = SCIWaitForDMAQueue(d.q, SCI_INFINITE_TIMEOUT,
						    0, &err));
		CHECK_EQ(state, SCI_DMAQUEUE_DONE);
		CHECK(test_filled(d.remote, SIZE, i));
		CHECK_ERR(SCIEnqueueDMATransfer(d.q, d.s, d.r, 0, 0, SIZE, 0,
						&err),
			  SCI_ERR_ILLEGAL_OPERATION);
		CHECK_OK(SCIResetDMAQueue(d.q, 0, &err));
		CHECK_EQ(SCIDMAQueueState(d.q), SCI_DMAQUEUE_IDLE);
	}
}

/* ---- 10. sequences ---- */

static sci_sequence_t sequence_to(sci_desc_t sd, unsigned int node,
				  unsigned int id)
{
	sci_sequence_t seq;
	sci_map_t map;

	test_map_remote(test_connect(sd, node, id), &map);
	CHECK_OK(SCICreateMapSequence(map, &seq, 0, &err));
	return seq;
}

TEST(behaviour_10_ok_where_no_error_happened)
{
	sci_desc_t sd = test_open();
	sci_sequence_status_t st;
	sci_sequence_t seq;

	test_segment(sd, 10, SIZE, 0);
	seq = sequence_to(sd, 4, 10);
	CHECK_OK(st = SCIStartSequence(seq, 0, &err));
	CHECK_EQ(st, SCI_SEQ_OK);
	for (int i = 0; i < 100000; i++) {
		CHECK_OK(st = SCICheckSequence(seq, 0, &err));
		CHECK_EQ(st, SCI_SEQ_OK);
	}
}

TEST(behaviour_10_retriable_where_it_must_be_repeated)
{
	sci_sequence_status_t st;
	sci_sequence_t seq;
	sci_desc_t sd;

	setenv("SCI_FAULT", "retriable=1", 1);
	sd = test_open();
	test_segment(sd, 10, SIZE, 0);
	seq = sequence_to(sd, 4, 10);
	CHECK_OK(st = SCIStartSequence(seq, 0, &err));
	CHECK_EQ(st, SCI_SEQ_OK);
	CHECK_OK(st = SCICheckSequence(seq, 0, &err));
	CHECK_EQ(st, SCI_SEQ_RETRIABLE);
}

TEST(behaviour_10_not_retriable_where_the_connection_is_lost)
{
	enum ending how = DIE;
	struct peer *p = peer_spawn(8, owner, &how);
	sci_desc_t sd = test_open();
	sci_sequence_t seq;

	peer_expect(p, "ready");
	seq = sequence_to(sd, 8, 10);
	CHECK_EQ(SCIStartSequence(seq, 0, NULL), SCI_SEQ_OK);
	CHECK_EQ(SCICheckSequence(seq, 0, NULL), SCI_SEQ_OK);
	peer_kill(p, SIGKILL);
	/* the last check before the loss is detected may find transfer errors */
	WAIT_UNTIL(SCICheckSequence(seq, 0, NULL) == SCI_SEQ_NOT_RETRIABLE,
		   TEST_WAIT_MS);
	CHECK_EQ(SCIStartSequence(seq, 0, NULL), SCI_SEQ_NOT_RETRIABLE);
	CHECK_OK(SCIRemoveSequence(seq, 0, &err));
}

TEST(behaviour_10_pending_becomes_ok)
{
	sci_sequence_status_t st;
	sci_sequence_t seq;
	sci_desc_t sd;

	setenv("SCI_FAULT", "linkdown=500:500", 1);
	sd = test_open();
	test_segment(sd, 10, SIZE, 0);
	seq = sequence_to(sd, 4, 10);
	WAIT_UNTIL(SCIStartSequence(seq, 0, NULL) == SCI_SEQ_PENDING,
		   TEST_WAIT_MS);
	/* PENDING is a status and not an error code */
	do {
		CHECK_OK(st = SCIStartSequence(seq, 0, &err));
		test_pause();
	} while (st == SCI_SEQ_PENDING);
	CHECK_EQ(st, SCI_SEQ_OK);
	CHECK_EQ(SCICheckSequence(seq, 0, NULL), SCI_SEQ_OK);
}

/* ---- 11. probing ---- */

TEST(behaviour_11_probe_of_a_node_that_does_not_answer)
{
	struct peer *p = peer_spawn(8, idle_node, NULL);
	sci_desc_t sd = test_open();
	int answers;

	peer_expect(p, "here");
	CHECK_OK(answers = SCIProbeNode(sd, 0, 4, 0, &err));
	CHECK_EQ(answers, 1);
	CHECK_OK(answers = SCIProbeNode(sd, 0, SCI_LOCAL_HOST, 0, &err));
	CHECK_EQ(answers, 1);
	CHECK_OK(answers = SCIProbeNode(sd, 0, 8, 0, &err));
	CHECK_EQ(answers, 1);
	CHECK_ERR(answers = SCIProbeNode(sd, 0, 68, 0, &err),
		  SCI_ERR_NO_SUCH_NODEID);
	CHECK_EQ(answers, 0);
	CHECK_ERR(answers = SCIProbeNode(sd, 0, 7, 0, &err),
		  SCI_ERR_ILLEGAL_NODEID);
	CHECK_EQ(answers, 0);
	/* on other fabrics the kernel answers for a node without processes */
	if (!test_on_shm())
		return;
	CHECK_ERR(answers = SCIProbeNode(sd, 0, 12, 0, &err),
		  SCI_ERR_NO_SUCH_NODEID);
	CHECK_EQ(answers, 0);
	peer_kill(p, SIGKILL);
	CHECK_ERR(answers = SCIProbeNode(sd, 0, 8, 0, &err),
		  SCI_ERR_NO_SUCH_NODEID);
	CHECK_EQ(answers, 0);
}

/* ---- 12. a store needs no further call ---- */

#define ROUNDS	2000

/* Answer each number in the own segment by the same number in the other one. */
static void pong(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();
	volatile unsigned int *in, *out;

	(void)arg;
	in = test_map_local(test_segment(sd, 10, SIZE, 0), NULL);
	out = test_map_remote(test_connect(sd, 4, 10), NULL);
	peer_send(self, "ready");
	for (unsigned int i = 1; i <= ROUNDS; i++) {
		WAIT_UNTIL(in[i % 1000] == i, TEST_WAIT_MS);
		out[i % 1000] = i;
	}
}

TEST(behaviour_12_a_store_is_seen_without_a_call)
{
	struct peer *p = peer_spawn(8, pong, NULL);
	sci_desc_t sd = test_open();
	volatile unsigned int *in, *out;

	in = test_map_local(test_segment(sd, 10, SIZE, 0), NULL);
	out = test_map_remote(test_connect(sd, 8, 10), NULL);
	peer_expect(p, "ready");
	for (unsigned int i = 1; i <= ROUNDS; i++) {
		out[i % 1000] = i;
		WAIT_UNTIL(in[i % 1000] == i, TEST_WAIT_MS);
	}
	peer_join(p);
}

/* ---- 13. nodes ---- */

static void check_node(struct peer *self, void *arg)
{
	unsigned int by_call = 0, by_query = 0;
	sci_query_adapter_t q = {
		.localAdapterNo = 0, .subcommand = SCI_Q_ADAPTER_NODEID,
		.data = &by_query,
	};

	(void)self;
	test_open();
	CHECK_OK(SCIGetLocalNodeId(0, &by_call, 0, &err));
	CHECK_OK(SCIQuery(SCI_Q_ADAPTER, &q, 0, &err));
	CHECK_EQ(by_call, *(unsigned int *)arg);
	CHECK_EQ(by_query, *(unsigned int *)arg);
}

TEST(behaviour_13_node_ids)
{
	static unsigned int nodes[] = { 4, 8, 12, 64, 252, 65532 };

	test_needs_shm();
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
		peer_join(peer_spawn(nodes[i], check_node, &nodes[i]));
}

static void bad_node(struct peer *self, void *arg)
{
	(void)self;
	setenv("SCI_NODE", arg, 1);
	CHECK_ERR(SCIInitialize(0, &err), SCI_ERR_ILLEGAL_PARAMETER);
}

TEST(behaviour_13_node_ids_that_make_no_sense)
{
	static char ids[][8] = { "0", "3", "6", "65536", "-4", "four" };

	test_needs_shm();
	for (size_t i = 0; i < ARRAY_LEN(ids); i++)
		peer_join(peer_spawn(4, bad_node, ids[i]));
}

static void neighbour(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();
	sci_local_segment_t s;
	unsigned char *mem;
	size_t size = 0;

	(void)arg;
	peer_expect(self, "try");
	CHECK_ERR(SCICreateSegment(sd, &s, 10, SIZE, NULL, NULL, 0, &err),
		  SCI_ERR_SEGMENTID_USED);
	CHECK_OK(SCIAttachLocalSegment(sd, &s, 10, &size, NULL, NULL, 0,
				       &err));
	CHECK_EQ(size, SIZE);
	mem = test_map_local(s, NULL);
	CHECK(test_filled(mem, SIZE, 1));
	test_fill(mem, SIZE, 2);
	peer_send(self, "done");
}

static void stranger(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();
	sci_local_segment_t s;

	(void)arg;
	peer_expect(self, "try");
	test_segment(sd, 10, SIZE, 0);
	CHECK_OK(SCICreateSegment(sd, &s, 11, SIZE, NULL, NULL, 0, &err));
	peer_send(self, "done");
	peer_expect(self, "leave");
}

TEST(behaviour_13_one_space_of_segment_ids_per_node)
{
	struct peer *same = peer_spawn(4, neighbour, NULL);
	struct peer *other = peer_spawn(8, stranger, NULL);
	sci_desc_t sd = test_open();
	sci_local_segment_t s = test_segment(sd, 10, SIZE, 0);
	unsigned char *mem = test_map_local(s, NULL);
	sci_local_segment_t again;

	test_fill(mem, SIZE, 1);
	CHECK_OK(SCIShareSegment(s, 0, &err));
	CHECK_ERR(SCICreateSegment(sd, &again, 10, SIZE, NULL, NULL, 0, &err),
		  SCI_ERR_SEGMENTID_USED);
	peer_send(same, "try");
	peer_send(other, "try");
	peer_expect(same, "done");
	CHECK(test_filled(mem, SIZE, 2));
	peer_expect(other, "done");
	CHECK(SCIGetRemoteSegmentNodeId(test_connect(sd, 8, 10)) == 8);
}

TEST(behaviour_13_connecting_to_ones_own_node)
{
	const unsigned int names[] = { 4, SCI_LOCAL_HOST };
	sci_desc_t sd = test_open();
	sci_local_segment_t s = test_segment(sd, 10, SIZE, 0);
	unsigned char *mem = test_map_local(s, NULL);

	for (unsigned int i = 0; i < 2; i++) {
		sci_remote_segment_t r = test_connect(sd, names[i], 10);

		CHECK_EQ(SCIGetRemoteSegmentNodeId(r), 4);
		CHECK_EQ(SCIGetRemoteSegmentSize(r), SIZE);
		test_fill(test_map_remote(r, NULL), SIZE, i);
		CHECK(test_filled(mem, SIZE, i));
	}
}

/* ---- 14. names of nodes ---- */

static void check_name(char *name, unsigned int n, const unsigned int *ids)
{
	dis_nodeId_list_t list;
	dis_virt_adapter_t type;

	memset(list, 0xff, sizeof(list));
	CHECK_OK(SCIGetNodeIdByAdapterName(name, &list, &type, 0, &err));
	for (unsigned int i = 0; i < n; i++)
		CHECK_EQ(list[i], ids[i]);
	CHECK_EQ(list[n], 0);
}

TEST(behaviour_14_names_come_from_the_dishosts_file)
{
	static char unknown[] = "nobody", alice[] = "alice", bob[] = "bob_0",
		    node8[] = "node8";
	dis_virt_adapter_t type;
	dis_nodeId_list_t list;

	test_env_file("SCI_DISHOSTS", "# a comment\n"
		      "DISHOSTVERSION 2\n"
		      "HOSTNAME: alice\n"
		      "ADAPTER: alice 4\n"
		      "\n"
		      "HOSTNAME:  bob\n"
		      "ADAPTER:  bob_0  8 12\t16\n");
	test_open();
	check_name(alice, 1, (const unsigned int[]){ 4 });
	check_name(bob, 3, (const unsigned int[]){ 8, 12, 16 });
	check_name(node8, 1, (const unsigned int[]){ 8 });
	CHECK_ERR(SCIGetNodeIdByAdapterName(unknown, &list, &type, 0, &err),
		  SCI_ERR_NO_SUCH_NODEID);
}

/* ---- 15. adapter numbers ---- */

static void check_adapter(sci_desc_t sd, unsigned int adapter,
			  sci_error_t want)
{
	unsigned int node, number = 1;
	sci_local_data_interrupt_t d;
	sci_remote_data_interrupt_t rd;
	sci_remote_interrupt_t ri;
	sci_remote_segment_t r;
	sci_local_interrupt_t i;
	sci_local_segment_t s;
	sci_dma_queue_t q;
	sci_query_adapter_t query = {
		.localAdapterNo = adapter, .subcommand = SCI_Q_ADAPTER_NODEID,
		.data = &node,
	};

	CHECK_OK(SCICreateSegment(sd, &s, 5, SIZE, NULL, NULL, 0, &err));
	CHECK_ERR(SCIPrepareSegment(s, adapter, 0, &err), want);
	CHECK_OK(SCIPrepareSegment(s, 0, 0, &err));
	CHECK_ERR(SCISetSegmentAvailable(s, adapter, 0, &err), want);
	CHECK_ERR(SCISetSegmentUnavailable(s, adapter, 0, &err), want);
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
	CHECK_ERR(SCIConnectSegment(sd, &r, 4, 1, adapter, NULL, NULL, 0, 0,
				    &err), want);
	CHECK_ERR(SCICreateInterrupt(sd, &i, adapter, &number, NULL, NULL,
				     SCI_FLAG_FIXED_INTNO, &err), want);
	CHECK_ERR(SCIConnectInterrupt(sd, &ri, 4, adapter, 1, 0, 0, &err),
		  want);
	CHECK_ERR(SCICreateDataInterrupt(sd, &d, adapter, &number, NULL, NULL,
					 SCI_FLAG_FIXED_INTNO, &err), want);
	CHECK_ERR(SCIConnectDataInterrupt(sd, &rd, 4, adapter, 1, 0, 0, &err),
		  want);
	CHECK_ERR(SCICreateDMAQueue(sd, &q, adapter, 1, 0, &err), want);
	CHECK_ERR(SCIProbeNode(sd, adapter, 4, 0, &err), want);
	CHECK_ERR(SCIGetLocalNodeId(adapter, &node, 0, &err), want);
	CHECK_ERR(SCIQuery(SCI_Q_ADAPTER, &query, 0, &err), want);
}

TEST(behaviour_15_adapter_numbers)
{
	sci_desc_t sd = test_open();
	unsigned int node = 0;

	CHECK_OK(SCIGetLocalNodeId(0, &node, 0, &err));
	CHECK_EQ(node, 4);
	for (unsigned int i = 1; i < 16; i++)
		check_adapter(sd, i, SCI_ERR_NO_SUCH_ADAPTERNO);
	check_adapter(sd, 16, SCI_ERR_ILLEGAL_ADAPTERNO);
	check_adapter(sd, 255, SCI_ERR_ILLEGAL_ADAPTERNO);
	check_adapter(sd, 0xffffffff, SCI_ERR_ILLEGAL_ADAPTERNO);
}
