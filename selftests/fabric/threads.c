// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Several threads make calls at the same time. The tests show that no call crashes, hangs or
 * leaks, and that the thread sanitizer reports nothing.
 */
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sisci_api.h>

#include "selftests/harness.h"

#define SIZE	8192
#define THREADS	6
#define ROUNDS	100

static sci_desc_t sd;			/* the device of the current test */

struct thread {
	pthread_t id;
	unsigned int number;
	void *arg;
};

static void start_all(struct thread *t, unsigned int n, void *(*fn)(void *),
		      void *arg)
{
	for (unsigned int i = 0; i < n; i++) {
		t[i].number = i;
		t[i].arg = arg;
		CHECK_EQ(pthread_create(&t[i].id, NULL, fn, &t[i]), 0);
	}
}

static void join_all(struct thread *t, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		CHECK_EQ(pthread_join(t[i].id, NULL), 0);
}

static void run_all(void *(*fn)(void *), void *arg)
{
	struct thread t[THREADS];

	start_all(t, THREADS, fn, arg);
	join_all(t, THREADS);
}

/* ---- segments ---- */

static void use_segment(unsigned int id)
{
	sci_local_segment_t s = test_segment(sd, id, SIZE, 0);
	sci_remote_segment_t r = test_connect(sd, 4, id);
	volatile unsigned int *here, *there;
	sci_map_t lmap, rmap;

	here = test_map_local(s, &lmap);
	there = test_map_remote(r, &rmap);
	there[7] = id;
	CHECK_EQ(here[7], id);
	CHECK_ERR(SCIRemoveSegment(s, 0, &err), SCI_ERR_BUSY);
	CHECK_OK(SCIUnmapSegment(rmap, 0, &err));
	CHECK_OK(SCIUnmapSegment(lmap, 0, &err));
	CHECK_OK(SCIDisconnectSegment(r, 0, &err));
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
}

static void *use_segments(void *arg)
{
	struct thread *t = arg;

	for (unsigned int i = 0; i < ROUNDS; i++)
		use_segment(t->number << 16 | i);
	return NULL;
}

TEST(threads_with_segments_of_their_own)
{
	sd = test_open();
	run_all(use_segments, NULL);
	CHECK_OK(SCIClose(sd, 0, &err));
}

static void *fight_for_id(void *arg)
{
	_Atomic int *owners = ((struct thread *)arg)->arg;
	unsigned int mine = 0;

	while (mine < 20) {
		sci_local_segment_t s;
		sci_error_t e;

		e = ERR_OF(SCICreateSegment(sd, &s, 1, SIZE, NULL, NULL, 0,
					    &err));
		if (e == SCI_ERR_SEGMENTID_USED)
			continue;
		CHECK_EQ(e, SCI_ERR_OK);
		CHECK_EQ(atomic_fetch_add(owners, 1), 0);
		mine++;
		atomic_fetch_sub(owners, 1);
		CHECK_OK(SCIRemoveSegment(s, 0, &err));
	}
	return NULL;
}

TEST(an_id_has_one_owner)
{
	_Atomic int owners = 0;

	sd = test_open();
	run_all(fight_for_id, &owners);
}

static void *take_ids(void *arg)
{
	struct thread *t = arg;
	unsigned int *ids = (unsigned int *)t->arg + t->number * ROUNDS;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		sci_local_segment_t s;

		CHECK_OK(SCICreateSegment(sd, &s, 0, SIZE, NULL, NULL,
					  SCI_FLAG_AUTO_ID, &err));
		ids[i] = SCIGetLocalSegmentId(s);
	}
	return NULL;
}

TEST(automatic_ids_are_given_once)
{
	static unsigned int ids[THREADS * ROUNDS];
	static bool seen[THREADS * ROUNDS];

	sd = test_open();
	run_all(take_ids, ids);
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		CHECK(ids[i] < ARRAY_LEN(seen));
		CHECK(!seen[ids[i]]);
		seen[ids[i]] = true;
	}
}

/* Importers connect while the segment is created and removed in a loop. */
struct door {
	_Atomic bool stop;
	_Atomic unsigned int visits;
};

static void *visit(void *arg)
{
	struct door *door = ((struct thread *)arg)->arg;

	while (!atomic_load(&door->stop)) {
		volatile char *mem;
		sci_remote_segment_t r;
		sci_map_t map;
		sci_error_t e;

		e = ERR_OF(SCIConnectSegment(sd, &r, 4, 1, 0, NULL, NULL,
					     SCI_INFINITE_TIMEOUT, 0, &err));
		if (e == SCI_ERR_NO_SUCH_SEGMENT)
			continue;
		CHECK_EQ(e, SCI_ERR_OK);
		e = ERR_OF(mem = SCIMapRemoteSegment(r, &map, 0, SIZE, NULL, 0,
						     &err));
		if (!e) {
			test_poke(mem, 1);
			CHECK_OK(SCIUnmapSegment(map, 0, &err));
			atomic_fetch_add(&door->visits, 1);
		} else {
			CHECK_EQ(e, SCI_ERR_SEGMENT_NOT_CONNECTED);
		}
		CHECK_OK(SCIDisconnectSegment(r, 0, &err));
	}
	return NULL;
}

TEST(visitors_of_a_segment_that_comes_and_goes)
{
	static struct door door;
	struct thread t[3];

	sd = test_open();
	start_all(t, 3, visit, &door);
	for (unsigned int i = 0; i < 200; i++) {
		unsigned int seen = atomic_load(&door.visits);
		sci_local_segment_t s = test_segment(sd, 1, SIZE, 0);

		WAIT_UNTIL(atomic_load(&door.visits) != seen, TEST_WAIT_MS);
		CHECK_OK(SCIRemoveSegment(s, SCI_FLAG_FORCE_REMOVE, &err));
	}
	atomic_store(&door.stop, true);
	join_all(t, 3);
	CHECK_OK(SCIClose(sd, 0, &err));
}

static void *use_own_map(void *arg)
{
	sci_remote_segment_t r = ((struct thread *)arg)->arg;
	unsigned int number = ((struct thread *)arg)->number;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		volatile unsigned char *p;
		sci_map_t map;

		CHECK_OK(p = SCIMapRemoteSegment(r, &map, number * 1000 + 1,
						 1000, NULL, 0, &err));
		test_fill(p, 1000, i);
		CHECK(test_filled(p, 1000, i));
		CHECK_OK(SCIUnmapSegment(map, 0, &err));
	}
	return NULL;
}

TEST(threads_map_one_connection)
{
	sd = test_open();
	test_segment(sd, 1, SIZE, 0);
	run_all(use_own_map, test_connect(sd, 4, 1));
}

/* ---- nodes ---- */

static void stay(struct peer *self, void *arg)
{
	(void)arg;
	test_open();
	peer_send(self, "here");
	peer_expect(self, "go");
}

/*
 * Names come and go: each segment has one, and so has each connection. One of 8 connections is
 * replaced at a time, so that the list of names is long.
 */
static void *use_names(void *arg)
{
	struct thread *t = arg;
	sci_remote_segment_t r[8] = { 0 };
	unsigned int i = 0;

	while (!atomic_load((atomic_bool *)t->arg)) {
		unsigned int k = i++ % ARRAY_LEN(r);

		if (r[k])
			CHECK_OK(SCIDisconnectSegment(r[k], 0, &err));
		r[k] = test_connect(sd, 4, 1);
		use_segment(100 + i % 1000 + 1000 * t->number);
	}
	return NULL;
}

TEST(a_node_is_there_amid_names_that_come_and_go)
{
	struct peer *p = peer_spawn(8, stay, NULL);
	atomic_bool stop = false;
	struct thread t[2];

	sd = test_open();
	for (unsigned int i = 1; i < 64; i++)
		test_segment(sd, i, SIZE, 0);
	peer_expect(p, "here");
	start_all(t, 2, use_names, &stop);
	/* other fabrics do not list names: they ask the node */
	for (int i = 0; i < (test_on_shm() ? 3000 : 100); i++)
		CHECK_EQ(SCIProbeNode(sd, 0, 8, 0, NULL), 1);
	atomic_store(&stop, true);
	join_all(t, 2);
	peer_send(p, "go");
	peer_join(p);
}

/* ---- transfers ---- */

static void *copy_with_sequence(void *arg)
{
	sci_map_t map = ((struct thread *)arg)->arg;
	unsigned int number = ((struct thread *)arg)->number;
	unsigned char in[1000], out[1000];
	sci_sequence_t seq;

	CHECK_OK(SCICreateMapSequence(map, &seq, 0, &err));
	CHECK_EQ(SCIStartSequence(seq, 0, NULL), SCI_SEQ_OK);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		test_fill(in, 1000, number * ROUNDS + i);
		CHECK_OK(SCIMemCpy(seq, in, map, number * 1000, 1000,
				   SCI_FLAG_ERROR_CHECK, &err));
		CHECK_EQ(SCICheckSequence(seq, 0, NULL), SCI_SEQ_OK);
		CHECK_OK(SCIMemCpy(NULL, out, map, number * 1000, 1000,
				   SCI_FLAG_BLOCK_READ, &err));
		CHECK(!memcmp(in, out, 1000));
		SCIFlush(seq, 0);
	}
	CHECK_OK(SCIRemoveSequence(seq, 0, &err));
	return NULL;
}

TEST(threads_copy_through_one_map)
{
	sci_map_t map;

	sd = test_open();
	test_segment(sd, 1, SIZE, 0);
	test_map_remote(test_connect(sd, 4, 1), &map);
	run_all(copy_with_sequence, map);
}

TEST(threads_copy_and_lose_packets)
{
	sci_map_t map;

	setenv("SCI_FAULT", "retriable=0", 1);
	sd = test_open();
	test_segment(sd, 1, SIZE, 0);
	test_map_remote(test_connect(sd, 4, 1), &map);
	run_all(copy_with_sequence, map);
}

struct dma_ends {
	sci_local_segment_t s;
	sci_remote_segment_t r;
	unsigned char *local;
	unsigned char *remote;
};

static void *use_dma(void *arg)
{
	unsigned int number = ((struct thread *)arg)->number;
	struct dma_ends *d = ((struct thread *)arg)->arg;
	size_t off = number * 1000;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		static const unsigned int how[] = { 0, SCI_FLAG_DMA_WAIT };
		sci_dma_queue_t q;

		test_fill(d->local + off, 1000, i);
		CHECK_OK(SCICreateDMAQueue(sd, &q, 0, 1, 0, &err));
		CHECK_OK(SCIStartDmaTransfer(q, d->s, d->r, off, 1000, off,
					     NULL, NULL, how[i % 2], &err));
		CHECK_OK(SCIWaitForDMAQueue(q, SCI_INFINITE_TIMEOUT, 0, &err));
		CHECK(test_filled(d->remote + off, 1000, i));
		CHECK_OK(SCIRemoveDMAQueue(q, 0, &err));
	}
	return NULL;
}

TEST(threads_with_dma_queues)
{
	struct dma_ends d;
	sci_local_segment_t target;

	sd = test_open();
	d.s = test_segment(sd, 1, SIZE, 0);
	target = test_segment(sd, 2, SIZE, 0);
	d.r = test_connect(sd, 4, 2);
	d.local = test_map_local(d.s, NULL);
	d.remote = test_map_local(target, NULL);
	run_all(use_dma, &d);
}

/* ---- interrupts ---- */

static void *trigger_many(void *arg)
{
	sci_remote_interrupt_t r = ((struct thread *)arg)->arg;

	for (unsigned int i = 0; i < ROUNDS; i++)
		CHECK_OK(SCITriggerInterrupt(r, 0, &err));
	return NULL;
}

TEST(threads_trigger_one_interrupt)
{
	sci_local_interrupt_t i;
	unsigned int number = 1;

	sd = test_open();
	CHECK_OK(SCICreateInterrupt(sd, &i, 0, &number, NULL, NULL,
				    SCI_FLAG_FIXED_INTNO |
				    SCI_FLAG_COUNTING_INT, &err));
	run_all(trigger_many, test_connect_interrupt(sd, 4, 1));
	for (unsigned int k = 0; k < THREADS * ROUNDS; k++)
		CHECK_OK(SCIWaitForInterrupt(i, TEST_WAIT_MS, 0, &err));
	CHECK_ERR(SCIWaitForInterrupt(i, 0, 0, &err), SCI_ERR_TIMEOUT);
}

struct waiters {
	sci_local_interrupt_t i;
	_Atomic unsigned int got;
};

static void *wait_until_removed(void *arg)
{
	struct waiters *w = ((struct thread *)arg)->arg;
	sci_error_t e;

	while (!(e = ERR_OF(SCIWaitForInterrupt(w->i, SCI_INFINITE_TIMEOUT, 0,
						&err))))
		atomic_fetch_add(&w->got, 1);
	CHECK(e == SCI_ERR_CANCELLED || e == SCI_ERR_ILLEGAL_PARAMETER);
	return NULL;
}

TEST(threads_wait_for_one_interrupt)
{
	static struct waiters w;
	sci_remote_interrupt_t r;
	struct thread t[THREADS];
	unsigned int number = 1;

	sd = test_open();
	CHECK_OK(SCICreateInterrupt(sd, &w.i, 0, &number, NULL, NULL,
				    SCI_FLAG_FIXED_INTNO |
				    SCI_FLAG_COUNTING_INT, &err));
	r = test_connect_interrupt(sd, 4, 1);
	start_all(t, THREADS, wait_until_removed, &w);
	for (int k = 0; k < 1000; k++)
		CHECK_OK(SCITriggerInterrupt(r, 0, &err));
	/* each trigger ends one wait */
	WAIT_UNTIL(atomic_load(&w.got) == 1000, TEST_WAIT_MS);
	CHECK_OK(SCIRemoveInterrupt(w.i, 0, &err));
	join_all(t, THREADS);
	CHECK_EQ(atomic_load(&w.got), 1000);
}

struct note {
	unsigned int sender;
	unsigned int number;
};

static void *send_notes(void *arg)
{
	sci_remote_data_interrupt_t d = ((struct thread *)arg)->arg;
	struct note n = { .sender = ((struct thread *)arg)->number };

	for (; n.number < ROUNDS; n.number++) {
		sci_error_t e;

		WAIT_UNTIL((e = ERR_OF(SCITriggerDataInterrupt(d, &n,
							       sizeof(n), 0,
							       &err))) !=
			   SCI_ERR_NOSPC, TEST_WAIT_MS);
		CHECK_EQ(e, SCI_ERR_OK);
	}
	return NULL;
}

TEST(threads_send_messages)
{
	unsigned int next[THREADS] = { 0 };
	sci_local_data_interrupt_t d;

	sd = test_open();
	d = test_data_interrupt(sd, 1);
	run_all(send_notes, test_connect_data_interrupt(sd, 4, 1));
	for (unsigned int k = 0; k < THREADS * ROUNDS; k++) {
		struct note n;
		unsigned int len = sizeof(n);

		CHECK_OK(SCIWaitForDataInterrupt(d, &n, &len, TEST_WAIT_MS, 0,
						 &err));
		CHECK_EQ(len, sizeof(n));
		CHECK(n.sender < THREADS);
		CHECK_EQ(n.number, next[n.sender]++);
	}
}

/* ---- callbacks ---- */

static void *use_callbacks(void *arg)
{
	unsigned int number = ((struct thread *)arg)->number;
	struct recorder *rec = (struct recorder *)((struct thread *)arg)->arg +
			       number;
	sci_local_segment_t s;

	recorder_init(rec);
	s = test_segment_cb(sd, number, SIZE, rec);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		CHECK_OK(SCIDisconnectSegment(test_connect(sd, 4, number), 0,
					      &err));
	}
	CHECK(recorder_wait(rec, 2 * ROUNDS, TEST_WAIT_MS));
	for (unsigned int i = 0; i < 2 * ROUNDS; i++)
		CHECK_EQ(recorder_get(rec, i).reason,
			 i % 2 ? SCI_CB_DISCONNECT : SCI_CB_CONNECT);
	CHECK_EQ(rec->overlaps, 0);
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
	return NULL;
}

TEST(callbacks_of_several_objects)
{
	static struct recorder rec[THREADS];

	sd = test_open();
	run_all(use_callbacks, rec);
}

/* No callback runs or begins after the removal has returned. */
struct mortal {
	_Atomic bool gone;
	_Atomic unsigned int calls;
};

static sci_callback_action_t check_alive(void *arg, sci_local_interrupt_t i,
					 sci_error_t status)
{
	struct mortal *m = arg;

	(void)i;
	(void)status;
	CHECK(!atomic_load(&m->gone));
	test_pause();
	CHECK(!atomic_load(&m->gone));
	atomic_fetch_add(&m->calls, 1);
	return SCI_CALLBACK_CONTINUE;
}

static void *trigger_until_gone(void *arg)
{
	sci_remote_interrupt_t r = ((struct thread *)arg)->arg;
	sci_error_t e;

	do {
		e = ERR_OF(SCITriggerInterrupt(r, 0, &err));
	} while (!e);
	CHECK_EQ(e, SCI_ERR_NOT_CONNECTED);
	return NULL;
}

TEST(remove_waits_for_the_callback)
{
	sd = test_open();
	for (unsigned int k = 0; k < 30; k++) {
		struct mortal m = { false, 0 };
		unsigned int number = 1;
		sci_local_interrupt_t i;
		sci_remote_interrupt_t r;
		struct thread t[2];

		CHECK_OK(SCICreateInterrupt(sd, &i, 0, &number, check_alive,
					    &m, SCI_FLAG_FIXED_INTNO |
					    SCI_FLAG_USE_CALLBACK, &err));
		r = test_connect_interrupt(sd, 4, 1);
		start_all(t, 2, trigger_until_gone, r);
		WAIT_UNTIL(atomic_load(&m.calls) > 2, TEST_WAIT_MS);
		CHECK_OK(SCIRemoveInterrupt(i, 0, &err));
		atomic_store(&m.gone, true);
		join_all(t, 2);
		CHECK_OK(SCIDisconnectInterrupt(r, 0, &err));
	}
}

/* ---- several threads and one handle ---- */

struct stale {
	_Atomic(sci_local_segment_t) s;
	_Atomic bool stop;
};

static void *use_stale(void *arg)
{
	struct stale *st = ((struct thread *)arg)->arg;

	while (!atomic_load(&st->stop)) {
		sci_local_segment_t s = atomic_load(&st->s);
		sci_map_t map;
		sci_error_t e;

		e = ERR_OF(SCIMapLocalSegment(s, &map, 0, SIZE, NULL, 0,
					      &err));
		if (e != SCI_ERR_ILLEGAL_PARAMETER) {
			CHECK_EQ(e, SCI_ERR_OK);
			CHECK_OK(SCIUnmapSegment(map, 0, &err));
		}
		SCIGetLocalSegmentSize(s);
		SCIGetLocalSegmentId(s);
	}
	return NULL;
}

TEST(handles_go_stale_under_other_threads)
{
	static struct stale st;
	struct thread t[3];

	sd = test_open();
	start_all(t, 3, use_stale, &st);
	for (unsigned int i = 0; i < 200; i++) {
		sci_local_segment_t s = test_segment(sd, 1, SIZE, 0);

		atomic_store(&st.s, s);
		/* a thread nearly always has the segment mapped */
		CHECK_OK(SCIRemoveSegment(s, SCI_FLAG_FORCE_REMOVE, &err));
	}
	atomic_store(&st.stop, true);
	join_all(t, 3);
	CHECK_OK(SCIClose(sd, 0, &err));
}

static void *remove_it(void *arg)
{
	struct thread *t = arg;
	sci_error_t e = ERR_OF(SCIRemoveSegment(t->arg, 0, &err));

	t->arg = (void *)(uintptr_t)e;
	return NULL;
}

TEST(one_of_several_removes_succeeds)
{
	sd = test_open();
	for (unsigned int i = 0; i < 100; i++) {
		struct thread t[4];
		unsigned int removed = 0;

		start_all(t, 4, remove_it, test_segment(sd, 1, SIZE, 0));
		join_all(t, 4);
		for (int k = 0; k < 4; k++) {
			uintptr_t e = (uintptr_t)t[k].arg;

			removed += e == SCI_ERR_OK;
			CHECK(e == SCI_ERR_OK || e == SCI_ERR_BUSY ||
			      e == SCI_ERR_ILLEGAL_PARAMETER);
		}
		CHECK_EQ(removed, 1);
	}
}

/* ---- initialize and terminate ---- */

static void *initialize(void *arg)
{
	sci_desc_t own;

	(void)arg;
	CHECK_OK(SCIInitialize(0, &err));
	CHECK_OK(SCIOpen(&own, 0, &err));
	CHECK_OK(SCIClose(own, 0, &err));
	return NULL;
}

TEST(threads_initialize_at_once)
{
	for (int i = 0; i < 20; i++) {
		run_all(initialize, NULL);
		SCITerminate();
	}
}

/* An object for each kind of wait. */
struct waits {
	sci_local_interrupt_t i;
	sci_local_data_interrupt_t d;
	sci_local_segment_t s;
	sci_remote_segment_t r;
};

static void *wait_for_end(void *arg)
{
	const struct waits *w = ((struct thread *)arg)->arg;
	unsigned int len = 4;
	char data[4];
	sci_error_t e = SCI_ERR_OK;

	switch (((struct thread *)arg)->number) {
	case 0:
		e = ERR_OF(SCIWaitForInterrupt(w->i, SCI_INFINITE_TIMEOUT, 0,
					       &err));
		break;
	case 1:
		e = ERR_OF(SCIWaitForDataInterrupt(w->d, data, &len,
						   SCI_INFINITE_TIMEOUT, 0,
						   &err));
		break;
	case 2:
		/* the connection of this process */
		CHECK_OK(SCIWaitForLocalSegmentEvent(w->s, NULL, NULL,
						     SCI_INFINITE_TIMEOUT, 0,
						     &err));
		e = ERR_OF(SCIWaitForLocalSegmentEvent(w->s, NULL, NULL,
						       SCI_INFINITE_TIMEOUT,
						       0, &err));
		break;
	case 3:
		e = ERR_OF(SCIWaitForRemoteSegmentEvent(w->r, NULL,
							SCI_INFINITE_TIMEOUT,
							0, &err));
		break;
	}
	/* a wait for a segment may get the event of the other segment's end */
	if (e)
		CHECK(e == SCI_ERR_CANCELLED || e == SCI_ERR_NOT_INITIALIZED);
	else
		CHECK(((struct thread *)arg)->number >= 2);
	return NULL;
}

TEST(terminate_with_waiters)
{
	struct thread t[4];
	struct waits w;

	for (int k = 0; k < 10; k++) {
		sd = test_open();
		w.i = test_interrupt(sd, 1);
		w.d = test_data_interrupt(sd, 1);
		w.s = test_segment(sd, 1, SIZE, 0);
		w.r = test_connect(sd, 4, 1);
		start_all(t, 4, wait_for_end, &w);
		WAIT_UNTIL(others_asleep(), TEST_WAIT_MS);
		SCITerminate();
		join_all(t, 4);
	}
}

/* Make calls until SCITerminate(). Any code is right, but no crash. */
static void *until_terminated(void *arg)
{
	unsigned int id = ((struct thread *)arg)->number;
	sci_error_t e;

	do {
		sci_local_segment_t s;
		sci_remote_segment_t r;
		sci_dma_queue_t q;
		sci_map_t map;

		e = ERR_OF(SCICreateSegment(sd, &s, id, SIZE, NULL, NULL, 0,
					    &err));
		if (e)
			break;
		SCIPrepareSegment(s, 0, 0, NULL);
		SCISetSegmentAvailable(s, 0, 0, NULL);
		e = ERR_OF(SCIConnectSegment(sd, &r, 4, id, 0, NULL, NULL, 0,
					     0, &err));
		if (e)
			break;
		SCIMapRemoteSegment(r, &map, 0, SIZE, NULL, 0, NULL);
		if (!ERR_OF(SCICreateDMAQueue(sd, &q, 0, 1, 0, &err))) {
			SCIStartDmaTransfer(q, s, r, 0, SIZE, 0, NULL, NULL, 0,
					    NULL);
			SCIWaitForDMAQueue(q, SCI_INFINITE_TIMEOUT, 0, NULL);
			SCIRemoveDMAQueue(q, 0, NULL);
		}
		SCIUnmapSegment(map, 0, NULL);
		SCIDisconnectSegment(r, 0, NULL);
		/* on a busy machine the owner may get the disconnection late */
		while (ERR_OF(SCIRemoveSegment(s, 0, &err)) == SCI_ERR_BUSY)
			test_pause();
	} while (1);
	CHECK(e == SCI_ERR_NOT_INITIALIZED || e == SCI_ERR_ILLEGAL_PARAMETER ||
	      e == SCI_ERR_CANCELLED || e == SCI_ERR_NO_SUCH_SEGMENT);
	return NULL;
}

TEST(terminate_while_others_work)
{
	struct thread t[THREADS];

	leak_check_begin();
	for (int i = 0; i < 20; i++) {
		sd = test_open();
		start_all(t, THREADS, until_terminated, NULL);
		for (int k = 0; k < 20; k++)
			test_pause();
		SCITerminate();
		join_all(t, THREADS);
	}
	leak_check_end();
}

/* ---- signals and cancellation ---- */

static void check_blocked(const char *tid)
{
	char path[300], line[256];
	unsigned long long blocked = 0;
	FILE *f;

	if (atoi(tid) == getpid())
		return;
	snprintf(path, sizeof(path), "/proc/self/task/%s/status", tid);
	f = fopen(path, "re");
	if (!f)
		return;
	while (fgets(line, sizeof(line), f))
		sscanf(line, "SigBlk: %llx", &blocked);
	fclose(f);
	CHECK(blocked >> (SIGALRM - 1) & 1);
	CHECK(blocked >> (SIGINT - 1) & 1);
	CHECK(blocked >> (SIGUSR1 - 1) & 1);
}

TEST(threads_of_the_library_block_signals)
{
	static struct recorder rec[2];
	sci_local_segment_t s;
	sci_remote_segment_t r;
	sci_dma_queue_t q;
	struct dirent *e;
	DIR *dir;

	if (TEST_TSAN)
		SKIP("the thread sanitizer has threads of its own");
	recorder_init(&rec[0]);
	recorder_init(&rec[1]);
	sd = test_open();
	s = test_segment_cb(sd, 1, SIZE, &rec[0]);
	r = test_connect(sd, 4, 1);
	CHECK_OK(SCICreateDMAQueue(sd, &q, 0, 1, 0, &err));
	CHECK_OK(SCIStartDmaTransfer(q, s, r, 0, SIZE, 0, record_dma, &rec[1],
				     SCI_FLAG_USE_CALLBACK, &err));
	recorder_get(&rec[0], 0);
	recorder_get(&rec[1], 0);
	CHECK(count_tasks() > 1);
	dir = opendir("/proc/self/task");
	while ((e = readdir(dir)))
		if (e->d_name[0] != '.')
			check_blocked(e->d_name);
	closedir(dir);
}

struct flusher {
	sci_sequence_t seq;
	_Atomic bool running;
};

static void *flush_for_ever(void *arg)
{
	struct flusher *f = arg;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (;;) {
		SCIFlush(f->seq, 0);
		atomic_store(&f->running, true);
	}
	return NULL;
}

TEST(a_thread_in_flush_can_be_cancelled)
{
	sci_remote_segment_t r;
	struct flusher f;
	sci_map_t map;

	if (TEST_TSAN || TEST_ASAN)
		SKIP("sanitizers cannot cancel threads at any point");
	sd = test_open();
	test_segment(sd, 1, SIZE, 0);
	for (int i = 0; i < 100; i++) {
		pthread_t t;

		r = test_connect(sd, 4, 1);
		test_map_remote(r, &map);
		CHECK_OK(SCICreateMapSequence(map, &f.seq, 0, &err));
		atomic_init(&f.running, false);
		CHECK_EQ(pthread_create(&t, NULL, flush_for_ever, &f), 0);
		WAIT_UNTIL(atomic_load(&f.running), TEST_WAIT_MS);
		CHECK_EQ(pthread_cancel(t), 0);
		CHECK_EQ(pthread_join(t, NULL), 0);
		CHECK_OK(SCIRemoveSequence(f.seq, 0, &err));
		CHECK_OK(SCIUnmapSegment(map, 0, &err));
		CHECK_OK(SCIDisconnectSegment(r, 0, &err));
	}
}

/* ---- cancellation of threads in waits ---- */

enum waited { PLAIN, SHARED, DATA, LOCAL, REMOTE, WAITED };

/* An object to wait for, and an object that ends the wait. */
struct waitable {
	enum waited kind;
	int type;			/* PTHREAD_CANCEL_DEFERRED or _ASYNCHRONOUS */
	sci_local_interrupt_t i;
	sci_remote_interrupt_t ri;
	sci_local_data_interrupt_t d;
	sci_remote_data_interrupt_t rd;
	sci_local_segment_t s;
	sci_remote_segment_t r;
};

static void waitable_make(struct waitable *w, enum waited kind)
{
	unsigned int number = 1;

	*w = (struct waitable) { .kind = kind };
	switch (kind) {
	case PLAIN:
	case SHARED:
		CHECK_OK(SCICreateInterrupt(sd, &w->i, 0, &number, NULL, NULL,
					    SCI_FLAG_FIXED_INTNO |
					    (kind == SHARED ?
					     SCI_FLAG_SHARED_INT : 0), &err));
		w->ri = test_connect_interrupt(sd, 4, 1);
		break;
	case DATA:
		w->d = test_data_interrupt(sd, 1);
		w->rd = test_connect_data_interrupt(sd, 4, 1);
		break;
	default:
		w->s = test_segment(sd, 1, SIZE, 0);
		if (kind == REMOTE)
			w->r = test_connect(sd, 4, 1);
		break;
	}
}

static sci_error_t waitable_wait(struct waitable *w, unsigned int ms)
{
	unsigned int len = 0;

	switch (w->kind) {
	case PLAIN:
	case SHARED:
		return ERR_OF(SCIWaitForInterrupt(w->i, ms, 0, &err));
	case DATA:
		return ERR_OF(SCIWaitForDataInterrupt(w->d, NULL, &len, ms, 0,
						      &err));
	case LOCAL:
		return ERR_OF(SCIWaitForLocalSegmentEvent(w->s, NULL, NULL,
							  ms, 0, &err));
	default:
		return ERR_OF(SCIWaitForRemoteSegmentEvent(w->r, NULL, ms, 0,
							   &err));
	}
}

/* Cause an event that may be repeated for this kind. */
static void waitable_wake(struct waitable *w)
{
	switch (w->kind) {
	case PLAIN:
	case SHARED:
		CHECK_OK(SCITriggerInterrupt(w->ri, 0, &err));
		break;
	case DATA:
		CHECK_OK(SCITriggerDataInterrupt(w->rd, NULL, 0, 0, &err));
		break;
	case LOCAL:
		CHECK_OK(SCIDisconnectSegment(test_connect(sd, 4, 1), 0,
					      &err));
		break;
	default:
		CHECK_OK(SCISetSegmentUnavailable(w->s, 0, SCI_FLAG_NOTIFY,
						  &err));
		CHECK_OK(SCISetSegmentAvailable(w->s, 0, 0, &err));
		break;
	}
}

static sci_error_t waitable_remove(struct waitable *w)
{
	switch (w->kind) {
	case PLAIN:
	case SHARED:
		return ERR_OF(SCIRemoveInterrupt(w->i, 0, &err));
	case DATA:
		return ERR_OF(SCIRemoveDataInterrupt(w->d, 0, &err));
	case LOCAL:
		return ERR_OF(SCIRemoveSegment(w->s, 0, &err));
	default:
		return ERR_OF(SCIDisconnectSegment(w->r, 0, &err));
	}
}

/* Remove the objects that end the wait. */
static void waitable_end(struct waitable *w)
{
	if (w->ri)
		CHECK_OK(SCIDisconnectInterrupt(w->ri, 0, &err));
	if (w->rd)
		CHECK_OK(SCIDisconnectDataInterrupt(w->rd, 0, &err));
	if (w->kind == REMOTE)
		CHECK_OK(SCIRemoveSegment(w->s, 0, &err));
}

static void *wait_for_ever(void *arg)
{
	struct waitable *w = arg;

	pthread_setcanceltype(w->type, NULL);
	for (;;)
		waitable_wait(w, SCI_INFINITE_TIMEOUT);
	return NULL;
}

/* Cancel a thread: with @asleep in its wait, otherwise at any point. */
static void cancel_waiter(struct waitable *w, bool asleep)
{
	void *result;
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, wait_for_ever, w), 0);
	if (asleep)
		WAIT_UNTIL(others_asleep(), TEST_WAIT_MS);
	CHECK_EQ(pthread_cancel(t), 0);
	CHECK_EQ(pthread_join(t, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
}

/* The address sanitizer's view of a stack does not survive unwinding. */
static void needs_unwinding(void)
{
	if (TEST_ASAN)
		SKIP("the address sanitizer cannot cancel threads");
}

static void check_cancelled_waits(int type)
{
	sd = test_open();
	for (enum waited kind = PLAIN; kind < WAITED; kind++) {
		struct waitable w;

		waitable_make(&w, kind);
		w.type = type;
		for (int i = 0; i < 20; i++)
			cancel_waiter(&w, i % 2);
		/* the next wait works as if the cancelled ones had not existed */
		waitable_wake(&w);
		CHECK_EQ(waitable_wait(&w, TEST_WAIT_MS), SCI_ERR_OK);
		CHECK_EQ(waitable_remove(&w), SCI_ERR_OK);
		waitable_end(&w);
	}
	CHECK_OK(SCIClose(sd, 0, &err));
	SCITerminate();
}

TEST(waits_can_be_cancelled)
{
	needs_unwinding();
	check_cancelled_waits(PTHREAD_CANCEL_DEFERRED);
}

TEST(waits_can_be_cancelled_at_any_time)
{
	if (TEST_TSAN || TEST_ASAN)
		SKIP("sanitizers cannot cancel threads at any point");
	check_cancelled_waits(PTHREAD_CANCEL_ASYNCHRONOUS);
}

static void *wait_once(void *arg)
{
	CHECK_EQ(waitable_wait(arg, SCI_INFINITE_TIMEOUT), SCI_ERR_OK);
	return NULL;
}

TEST(a_cancelled_wait_takes_nothing_from_others)
{
	needs_unwinding();
	sd = test_open();
	for (enum waited kind = PLAIN; kind < WAITED; kind++) {
		struct waitable w;
		pthread_t t;

		waitable_make(&w, kind);
		CHECK_EQ(pthread_create(&t, NULL, wait_once, &w), 0);
		for (int i = 0; i < 10; i++)
			cancel_waiter(&w, i % 2);
		waitable_wake(&w);
		CHECK_EQ(pthread_join(t, NULL), 0);
		CHECK_EQ(waitable_remove(&w), SCI_ERR_OK);
		waitable_end(&w);
	}
}

/* ---- waits that a signal handler ends ---- */

#define SIGNALS	100u
#define LOOKS	1000u

static struct waitable handled;
static _Atomic bool handled_removed;
static _Atomic unsigned int handled_busy, handled_signals;

static void remove_what_we_wait_for(int sig)
{
	sci_error_t e = waitable_remove(&handled);

	(void)sig;
	if (e == SCI_ERR_BUSY)
		atomic_fetch_add(&handled_busy, 1);
	else if (!e)
		atomic_store(&handled_removed, true);
	atomic_fetch_add(&handled_signals, 1);
}

static void *send_signals(void *arg)
{
	pthread_t to = *(pthread_t *)arg;

	for (unsigned int i = 0; i < SIGNALS; i++) {
		/* each second signal is for a thread that sleeps in its wait */
		for (unsigned int k = 0; i % 2 && k < LOOKS && !others_asleep(); k++)
			sched_yield();
		pthread_kill(to, SIGUSR1);
		while (atomic_load(&handled_signals) == i)
			sched_yield();
	}
	return NULL;
}

/* The signal arrives during the wait, or shortly before or after it. */
static void check_handler(enum waited kind, const sigset_t *set)
{
	pthread_t self = pthread_self(), t;

	atomic_store(&handled_signals, 0);
	atomic_store(&handled_busy, 0);
	atomic_store(&handled_removed, false);
	waitable_make(&handled, kind);
	CHECK_EQ(pthread_create(&t, NULL, send_signals, &self), 0);
	while (atomic_load(&handled_signals) < SIGNALS) {
		pthread_sigmask(SIG_UNBLOCK, set, NULL);
		waitable_wait(&handled, 2);
		pthread_sigmask(SIG_BLOCK, set, NULL);
		if (atomic_exchange(&handled_removed, false)) {
			waitable_end(&handled);
			waitable_make(&handled, kind);
		}
	}
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK(atomic_load(&handled_busy) > 0);
	CHECK_EQ(waitable_remove(&handled), SCI_ERR_OK);
	waitable_end(&handled);
}

TEST(a_handler_cannot_remove_what_its_thread_waits_for)
{
	struct sigaction sa = { .sa_handler = remove_what_we_wait_for };
	sigset_t set;

	if (TEST_TSAN)
		SKIP("the thread sanitizer defers signals");
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	sd = test_open();
	for (enum waited kind = PLAIN; kind < WAITED; kind++)
		check_handler(kind, &set);
	CHECK_OK(SCIClose(sd, 0, &err));
}
