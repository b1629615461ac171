// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Events of local and remote segments: connections, disconnections and deaths. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sisci_api.h>

#include "selftests/harness.h"

#define SIZE	8192
#define ID	10

static void importer(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();
	sci_remote_segment_t r;

	(void)arg;
	peer_expect(self, "connect");
	r = test_connect(sd, 4, ID);
	peer_send(self, "connected");
	peer_expect(self, "disconnect");
	CHECK_OK(SCIDisconnectSegment(r, 0, &err));
	peer_send(self, "disconnected");
	peer_expect(self, "leave");
}

static void tell(struct peer *p, const char *what, const char *answer)
{
	peer_send(p, what);
	peer_expect(p, answer);
}

/* How the owner ends the segment. It lives on after that. */
struct owner_plan {
	unsigned int unavailable;	/* flags; NOTHING: no such call */
	unsigned int remove;
};

#define NOTHING	0xffffffffu

static void owner(struct peer *self, void *arg)
{
	const struct owner_plan *plan = arg;
	sci_local_segment_t s = test_segment(test_open(), ID, SIZE, 0);
	volatile unsigned char *mem;
	sci_map_t map;

	mem = test_map_local(s, &map);
	peer_send(self, "ready");
	peer_expect(self, "end");
	if (plan->unavailable != NOTHING)
		CHECK_OK(SCISetSegmentUnavailable(s, 0, plan->unavailable,
						  &err));
	if (plan->remove != NOTHING)
		CHECK_OK(SCIRemoveSegment(s, plan->remove, &err));
	peer_send(self, "ended");
	peer_expect(self, "check");
	CHECK(test_filled(mem, SIZE, 1));
	peer_send(self, "checked");
	peer_expect(self, "leave");
}

/* ---- events of local segments, by SCIWaitForLocalSegmentEvent() ---- */

static void expect_local(sci_local_segment_t s, int want, unsigned int node)
{
	unsigned int from = 0, adapter = 77;
	sci_segment_cb_reason_t reason;

	CHECK_OK(reason = SCIWaitForLocalSegmentEvent(s, &from, &adapter,
						      TEST_WAIT_MS, 0, &err));
	CHECK_EQ(reason, want);
	CHECK_EQ(from, node);
	CHECK_EQ(adapter, 0);
}

TEST(local_events_by_wait)
{
	struct peer *p[2];
	sci_local_segment_t s;

	p[0] = peer_spawn(8, importer, NULL);
	p[1] = peer_spawn(12, importer, NULL);
	s = test_segment(test_open(), ID, SIZE, 0);
	CHECK_ERR(SCIWaitForLocalSegmentEvent(s, NULL, NULL, 0, 0, &err),
		  SCI_ERR_TIMEOUT);
	CHECK_ERR(SCIWaitForLocalSegmentEvent(s, NULL, NULL, 5, 0, &err),
		  SCI_ERR_TIMEOUT);
	/* events queue up */
	tell(p[0], "connect", "connected");
	tell(p[1], "connect", "connected");
	tell(p[0], "disconnect", "disconnected");
	expect_local(s, SCI_CB_CONNECT, 8);
	expect_local(s, SCI_CB_CONNECT, 12);
	/* events of two importers have no order: the death comes after this one */
	expect_local(s, SCI_CB_DISCONNECT, 8);
	peer_kill(p[1], SIGKILL);
	expect_local(s, SCI_CB_LOST, 12);
	CHECK_ERR(SCIWaitForLocalSegmentEvent(s, NULL, NULL, 0, 0, &err),
		  SCI_ERR_TIMEOUT);
}

TEST(local_events_of_our_own_connection)
{
	sci_desc_t sd = test_open();
	sci_local_segment_t s = test_segment(sd, ID, SIZE, 0);

	for (int i = 0; i < 10; i++) {
		CHECK_OK(SCIDisconnectSegment(test_connect(sd, 4, ID), 0,
					      &err));
		expect_local(s, SCI_CB_CONNECT, 4);
		expect_local(s, SCI_CB_DISCONNECT, 4);
	}
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
}

TEST(a_wait_begins_before_the_event)
{
	struct peer *p = peer_spawn(8, importer, NULL);
	sci_local_segment_t s = test_segment(test_open(), ID, SIZE, 0);

	peer_send(p, "connect");
	expect_local(s, SCI_CB_CONNECT, 8);
	peer_expect(p, "connected");
	peer_send(p, "disconnect");
	expect_local(s, SCI_CB_DISCONNECT, 8);
}

/* The loop of a benchmark's server. */
TEST(serve_until_the_client_has_gone)
{
	struct peer *p = peer_spawn(8, importer, NULL);
	sci_local_segment_t s = test_segment(test_open(), ID, SIZE, 0);
	sci_segment_cb_reason_t reason;
	unsigned int node, adapter;

	peer_send(p, "connect");
	peer_send(p, "disconnect");
	do {
		CHECK_OK(reason = SCIWaitForLocalSegmentEvent(s, &node,
				&adapter, SCI_INFINITE_TIMEOUT, 0, &err));
	} while (reason == SCI_CB_CONNECT || reason == SCI_CB_OPERATIONAL);
	CHECK_EQ(reason, SCI_CB_DISCONNECT);
	CHECK_OK(SCISetSegmentUnavailable(s, 0, 0, &err));
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
}

TEST(waits_and_callbacks_exclude_each_other)
{
	static struct recorder rec[2];
	sci_desc_t sd = test_open();
	sci_remote_segment_t r;
	sci_local_segment_t s;

	recorder_init(&rec[0]);
	recorder_init(&rec[1]);
	s = test_segment_cb(sd, ID, SIZE, &rec[0]);
	r = test_connect_cb(sd, 4, ID, &rec[1]);
	CHECK_ERR(SCIWaitForLocalSegmentEvent(s, NULL, NULL, 0, 0, &err),
		  SCI_ERR_ILLEGAL_OPERATION);
	CHECK_ERR(SCIWaitForRemoteSegmentEvent(r, NULL, 0, 0, &err),
		  SCI_ERR_ILLEGAL_OPERATION);
	CHECK_ERR(SCIWaitForLocalSegmentEvent(NULL, NULL, NULL, 0, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCIWaitForRemoteSegmentEvent(NULL, NULL, 0, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
}

/* ---- cancelled waits ---- */

static void *wait_local(void *arg)
{
	return (void *)(uintptr_t)
		ERR_OF(SCIWaitForLocalSegmentEvent(arg, NULL, NULL,
						   SCI_INFINITE_TIMEOUT, 0,
						   &err));
}

static void *wait_remote(void *arg)
{
	return (void *)(uintptr_t)
		ERR_OF(SCIWaitForRemoteSegmentEvent(arg, NULL,
						    SCI_INFINITE_TIMEOUT, 0,
						    &err));
}

static void check_cancelled(pthread_t t)
{
	void *code;

	CHECK_EQ(pthread_join(t, &code), 0);
	CHECK_EQ((uintptr_t)code, SCI_ERR_CANCELLED);
}

TEST(remove_cancels_waits)
{
	sci_local_segment_t s = test_segment(test_open(), ID, SIZE, 0);
	pthread_t t[3];

	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, wait_local, s), 0);
	WAIT_UNTIL(others_asleep(), TEST_WAIT_MS);
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
	for (int i = 0; i < 3; i++)
		check_cancelled(t[i]);
}

TEST(disconnect_cancels_waits)
{
	sci_desc_t sd = test_open();
	sci_remote_segment_t r;
	pthread_t t[3];

	test_segment(sd, ID, SIZE, 0);
	r = test_connect(sd, 4, ID);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, wait_remote, r), 0);
	WAIT_UNTIL(others_asleep(), TEST_WAIT_MS);
	CHECK_OK(SCIDisconnectSegment(r, 0, &err));
	for (int i = 0; i < 3; i++)
		check_cancelled(t[i]);
}

/* ---- events of remote segments ---- */

static void expect_remote(sci_remote_segment_t r, int want)
{
	sci_segment_cb_reason_t reason;
	sci_error_t status = TEST_ERR_UNSET;

	CHECK_OK(reason = SCIWaitForRemoteSegmentEvent(r, &status,
						       TEST_WAIT_MS, 0, &err));
	CHECK_EQ(reason, want);
	CHECK(status != TEST_ERR_UNSET);
}

static void expect_no_remote(sci_remote_segment_t r)
{
	CHECK_ERR(SCIWaitForRemoteSegmentEvent(r, NULL, 0, 0, &err),
		  SCI_ERR_TIMEOUT);
}

/* Two connections, one with waits and one with a callback, to an owner with a plan. */
struct watch {
	struct peer *p;
	struct recorder rec;
	sci_desc_t sd;
	sci_remote_segment_t wait, call;
	sci_map_t map;
	volatile unsigned char *mem;
	sci_sequence_t seq;
};

static void watch_open(struct watch *w, const struct owner_plan *plan)
{
	w->p = peer_spawn(8, owner, (void *)(uintptr_t)plan);
	w->sd = test_open();
	peer_expect(w->p, "ready");
	recorder_init(&w->rec);
	w->wait = test_connect(w->sd, 8, ID);
	w->call = test_connect_cb(w->sd, 8, ID, &w->rec);
	w->mem = test_map_remote(w->wait, &w->map);
	CHECK_OK(SCICreateMapSequence(w->map, &w->seq, 0, &err));
	CHECK_EQ(SCIStartSequence(w->seq, 0, NULL), SCI_SEQ_OK);
	expect_no_remote(w->wait);
}

static void watch_expect(struct watch *w, int reason)
{
	expect_remote(w->wait, reason);
	expect_no_remote(w->wait);
	CHECK_EQ(recorder_get(&w->rec, 0).reason, reason);
	CHECK(recorder_get(&w->rec, 0).handle == w->call);
	CHECK_EQ(recorder_count(&w->rec), 1);
}

static void watch_close(struct watch *w)
{
	CHECK_OK(SCIRemoveSequence(w->seq, 0, &err));
	CHECK_OK(SCIUnmapSegment(w->map, 0, &err));
	CHECK_OK(SCIDisconnectSegment(w->wait, 0, &err));
	CHECK_OK(SCIDisconnectSegment(w->call, 0, &err));
	CHECK_OK(SCIClose(w->sd, 0, &err));
	CHECK_EQ(recorder_count(&w->rec), 1);
}

TEST(unavailable_with_notify)
{
	static const struct owner_plan plan = { SCI_FLAG_NOTIFY, NOTHING };
	static struct watch w;

	watch_open(&w, &plan);
	tell(w.p, "end", "ended");
	watch_expect(&w, SCI_CB_DISCONNECT);
	/* the segment still works */
	test_fill(w.mem, SIZE, 1);
	CHECK_EQ(SCICheckSequence(w.seq, 0, NULL), SCI_SEQ_OK);
	tell(w.p, "check", "checked");
	watch_close(&w);
}

TEST(unavailable_by_force)
{
	static const struct owner_plan plan = {
		SCI_FLAG_FORCE_DISCONNECT, NOTHING
	};
	static struct watch w;
	sci_map_t map;

	watch_open(&w, &plan);
	tell(w.p, "end", "ended");
	watch_expect(&w, SCI_CB_DISCONNECT);
	/* accesses have no effect and raise no signal */
	memset((void *)w.mem, 2, SIZE);
	CHECK_EQ(SCICheckSequence(w.seq, 0, NULL), SCI_SEQ_NOT_RETRIABLE);
	CHECK_ERR(SCIMapRemoteSegment(w.wait, &map, 0, SIZE, NULL, 0, &err),
		  SCI_ERR_SEGMENT_NOT_CONNECTED);
	watch_close(&w);
}

TEST(unavailable_quietly)
{
	static const struct owner_plan plan = { 0, NOTHING };
	static struct watch w;

	watch_open(&w, &plan);
	tell(w.p, "end", "ended");
	test_fill(w.mem, SIZE, 1);
	tell(w.p, "check", "checked");
	CHECK_EQ(SCICheckSequence(w.seq, 0, NULL), SCI_SEQ_OK);
	expect_no_remote(w.wait);
	CHECK_EQ(recorder_count(&w.rec), 0);
}

TEST(removed_by_force)
{
	static const struct owner_plan plan = {
		NOTHING, SCI_FLAG_FORCE_REMOVE
	};
	static struct watch w;

	watch_open(&w, &plan);
	tell(w.p, "end", "ended");
	watch_expect(&w, SCI_CB_DISCONNECT);
	memset((void *)w.mem, 2, SIZE);
	CHECK_EQ(SCICheckSequence(w.seq, 0, NULL), SCI_SEQ_NOT_RETRIABLE);
	watch_close(&w);
}

TEST(forced_off_then_removed)
{
	static const struct owner_plan plan = {
		SCI_FLAG_FORCE_DISCONNECT, SCI_FLAG_FORCE_REMOVE
	};
	static struct watch w;

	watch_open(&w, &plan);
	tell(w.p, "end", "ended");
	/* exactly one event */
	watch_expect(&w, SCI_CB_DISCONNECT);
	watch_close(&w);
}

TEST(the_owner_dies)
{
	static const struct owner_plan plan = { NOTHING, NOTHING };
	static struct watch w;

	watch_open(&w, &plan);
	peer_kill(w.p, SIGKILL);
	watch_expect(&w, SCI_CB_LOST);
	memset((void *)w.mem, 2, SIZE);
	CHECK_EQ(SCICheckSequence(w.seq, 0, NULL), SCI_SEQ_NOT_RETRIABLE);
	watch_close(&w);
}

static void own_force(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();
	volatile char *mem;

	(void)arg;
	peer_expect(self, "connect");
	mem = test_map_remote(test_connect(sd, 4, ID), NULL);
	peer_send(self, "connected");
	peer_expect(self, "forced");
	test_poke(mem, 1);
	peer_send(self, "alive");
	peer_expect(self, "leave");
}

TEST(force_disconnect_makes_room_for_remove)
{
	static struct recorder rec;
	struct peer *p = peer_spawn(8, own_force, NULL);
	sci_local_segment_t s;

	recorder_init(&rec);
	s = test_segment_cb(test_open(), ID, SIZE, &rec);
	tell(p, "connect", "connected");
	CHECK_ERR(SCIRemoveSegment(s, 0, &err), SCI_ERR_BUSY);
	CHECK_OK(SCISetSegmentUnavailable(s, 0, SCI_FLAG_FORCE_DISCONNECT,
					  &err));
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
	tell(p, "forced", "alive");
}

/* ---- time to an event ---- */

TEST(a_death_is_known_within_a_second)
{
	static const struct owner_plan plan = { NOTHING, NOTHING };
	static struct recorder import, export;
	struct peer *own = peer_spawn(8, owner, (void *)(uintptr_t)&plan);
	struct peer *imp = peer_spawn(12, importer, NULL);
	sci_desc_t sd = test_open();
	uint64_t killed;

	recorder_init(&import);
	recorder_init(&export);
	peer_expect(own, "ready");
	test_connect_cb(sd, 8, ID, &import);
	test_segment_cb(sd, ID, SIZE, &export);
	tell(imp, "connect", "connected");
	CHECK_EQ(recorder_get(&export, 0).reason, SCI_CB_CONNECT);

	killed = test_now_ms();
	kill(peer_pid(own), SIGKILL);
	kill(peer_pid(imp), SIGKILL);
	CHECK_EQ(recorder_get(&import, 0).reason, SCI_CB_LOST);
	CHECK_EQ(recorder_get(&export, 1).reason, SCI_CB_LOST);
	test_note("%llu ms and %llu ms after SIGKILL",
		  (unsigned long long)recorder_get(&import, 0).when_ms -
		  killed,
		  (unsigned long long)recorder_get(&export, 1).when_ms -
		  killed);
}

/* ---- asynchronous connects ---- */

static sci_remote_segment_t connect_async(sci_desc_t sd, unsigned int id,
					  struct recorder *rec)
{
	sci_remote_segment_t r;

	CHECK_OK(SCIConnectSegment(sd, &r, 8, id, 0, record_remote_segment,
				   rec, SCI_INFINITE_TIMEOUT,
				   SCI_FLAG_ASYNCHRONOUS_CONNECT |
				   SCI_FLAG_USE_CALLBACK, &err));
	return r;
}

TEST(asynchronous_connects)
{
	static const struct owner_plan plan = { NOTHING, NOTHING };
	static struct recorder good, bad;
	struct peer *p = peer_spawn(8, owner, (void *)(uintptr_t)&plan);
	sci_desc_t sd = test_open();
	sci_remote_segment_t r;
	sci_map_t map;

	recorder_init(&good);
	recorder_init(&bad);
	peer_expect(p, "ready");
	r = connect_async(sd, ID, &good);
	CHECK_EQ(recorder_get(&good, 0).reason, SCI_CB_CONNECT);
	CHECK_EQ(recorder_get(&good, 0).status, SCI_ERR_OK);
	CHECK(recorder_get(&good, 0).handle == r);
	CHECK_EQ(SCIGetRemoteSegmentSize(r), SIZE);
	test_fill(test_map_remote(r, &map), SIZE, 1);
	CHECK_OK(SCIUnmapSegment(map, 0, &err));
	CHECK_OK(SCIDisconnectSegment(r, 0, &err));

	r = connect_async(sd, ID + 1, &bad);
	CHECK_EQ(recorder_get(&bad, 0).reason, SCI_CB_CONNECT);
	CHECK_EQ(recorder_get(&bad, 0).status, SCI_ERR_NO_SUCH_SEGMENT);
	CHECK_EQ(SCIGetRemoteSegmentSize(r), 0);
	CHECK_ERR(SCIMapRemoteSegment(r, &map, 0, 1, NULL, 0, &err),
		  SCI_ERR_SEGMENT_NOT_CONNECTED);
	CHECK_OK(SCIDisconnectSegment(r, 0, &err));
	CHECK_OK(SCIClose(sd, 0, &err));
}

TEST(asynchronous_connects_by_wait)
{
	static const struct owner_plan plan = { NOTHING, NOTHING };
	struct peer *p = peer_spawn(8, owner, (void *)(uintptr_t)&plan);
	sci_segment_cb_reason_t reason;
	sci_desc_t sd = test_open();
	sci_remote_segment_t r;
	sci_error_t status;

	peer_expect(p, "ready");
	CHECK_OK(SCIConnectSegment(sd, &r, 8, ID, 0, NULL, NULL,
				   SCI_INFINITE_TIMEOUT,
				   SCI_FLAG_ASYNCHRONOUS_CONNECT, &err));
	CHECK_OK(reason = SCIWaitForRemoteSegmentEvent(r, &status,
						       TEST_WAIT_MS, 0, &err));
	CHECK_EQ(reason, SCI_CB_CONNECT);
	CHECK_EQ(status, SCI_ERR_OK);
	test_map_remote(r, NULL);
}

TEST(asynchronous_connects_are_given_up)
{
	static const struct owner_plan plan = { NOTHING, NOTHING };
	static struct recorder rec;
	struct peer *p = peer_spawn(8, owner, (void *)(uintptr_t)&plan);
	sci_desc_t sd = test_open();

	recorder_init(&rec);
	peer_expect(p, "ready");
	peer_stop(p);
	for (int i = 0; i < 20; i++)
		CHECK_OK(SCIDisconnectSegment(connect_async(sd, ID, &rec), 0,
					      &err));
	connect_async(sd, ID, &rec);
	SCITerminate();
	peer_continue(p);
}

/* ---- calls from callbacks ---- */

static sci_callback_action_t disconnect_me(void *arg, sci_remote_segment_t r,
					   sci_segment_cb_reason_t reason,
					   sci_error_t status)
{
	CHECK_OK(SCIDisconnectSegment(r, 0, &err));
	return record_remote_segment(arg, r, reason, status);
}

TEST(a_callback_may_disconnect_its_segment)
{
	static const struct owner_plan plan = { SCI_FLAG_NOTIFY, NOTHING };
	static struct recorder rec;
	struct peer *p = peer_spawn(8, owner, (void *)(uintptr_t)&plan);
	sci_desc_t sd = test_open();
	sci_remote_segment_t r;

	recorder_init(&rec);
	peer_expect(p, "ready");
	CHECK_OK(SCIConnectSegment(sd, &r, 8, ID, 0, disconnect_me, &rec,
				   SCI_INFINITE_TIMEOUT,
				   SCI_FLAG_USE_CALLBACK, &err));
	tell(p, "end", "ended");
	CHECK_EQ(recorder_get(&rec, 0).reason, SCI_CB_DISCONNECT);
	CHECK_ERR(SCIDisconnectSegment(r, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	WAIT_UNTIL(!ERR_OF(SCIClose(sd, 0, &err)), TEST_WAIT_MS);
}

/* The connection handler of a message layer. */
struct handler {
	sci_desc_t sd;
	struct recorder rec;
};

static sci_callback_action_t handle(void *arg, sci_local_segment_t s,
				    sci_segment_cb_reason_t reason,
				    unsigned int node, unsigned int adapter,
				    sci_error_t error)
{
	struct handler *h = arg;

	if (reason == SCI_CB_CONNECT) {
		sci_remote_segment_t r = test_connect(h->sd, node, ID + 1);

		test_fill(test_map_remote(r, NULL), SIZE, 1);
		test_segment(h->sd, ID + 2, SIZE, 0);
		test_interrupt(h->sd, 1);
		CHECK_OK(SCITriggerDataInterrupt(
			test_connect_data_interrupt(h->sd, node, 1),
			&node, sizeof(node), 0, &err));
	}
	return record_local_segment(&h->rec, s, reason, node, adapter, error);
}

static void client(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();
	sci_local_data_interrupt_t d = test_data_interrupt(sd, 1);
	sci_local_segment_t s = test_segment(sd, ID + 1, SIZE, 0);
	unsigned int node, len = sizeof(node);

	(void)arg;
	peer_expect(self, "connect");
	test_connect(sd, 4, ID);
	CHECK_OK(SCIWaitForDataInterrupt(d, &node, &len, TEST_WAIT_MS, 0,
					 &err));
	CHECK_EQ(node, 8);
	CHECK(test_filled(test_map_local(s, NULL), SIZE, 1));
	CHECK_OK(SCITriggerInterrupt(test_connect_interrupt(sd, 4, 1), 0,
				     &err));
	test_connect(sd, 4, ID + 2);
}

TEST(a_callback_may_connect_map_create_and_trigger)
{
	static struct handler h;
	struct peer *p = peer_spawn(8, client, NULL);
	sci_local_segment_t s;

	recorder_init(&h.rec);
	h.sd = test_open();
	CHECK_OK(SCICreateSegment(h.sd, &s, ID, SIZE, handle, &h,
				  SCI_FLAG_USE_CALLBACK, &err));
	CHECK_OK(SCIPrepareSegment(s, 0, 0, &err));
	CHECK_OK(SCISetSegmentAvailable(s, 0, 0, &err));
	peer_send(p, "connect");
	peer_join(p);
	CHECK_EQ(recorder_get(&h.rec, 0).reason, SCI_CB_CONNECT);
}

TEST(callbacks_end_when_one_answers_cancel)
{
	static struct recorder rec;
	sci_desc_t sd = test_open();
	sci_local_segment_t s;

	recorder_init(&rec);
	rec.action = SCI_CALLBACK_CANCEL;
	s = test_segment_cb(sd, ID, SIZE, &rec);
	CHECK_OK(SCIDisconnectSegment(test_connect(sd, 4, ID), 0, &err));
	recorder_get(&rec, 0);
	CHECK_OK(SCIDisconnectSegment(test_connect(sd, 4, ID), 0, &err));
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
	CHECK_EQ(recorder_count(&rec), 1);
}

static sci_callback_action_t terminate(void *arg, sci_local_segment_t s,
				       sci_segment_cb_reason_t reason,
				       unsigned int node, unsigned int adapter,
				       sci_error_t error)
{
	SCITerminate();		/* ignored */
	return record_local_segment(arg, s, reason, node, adapter, error);
}

TEST(terminate_from_a_callback_is_ignored)
{
	static struct recorder rec;
	sci_desc_t sd = test_open();
	sci_local_segment_t s;

	recorder_init(&rec);
	CHECK_OK(SCICreateSegment(sd, &s, ID, SIZE, terminate, &rec,
				  SCI_FLAG_USE_CALLBACK, &err));
	CHECK_OK(SCIPrepareSegment(s, 0, 0, &err));
	CHECK_OK(SCISetSegmentAvailable(s, 0, 0, &err));
	test_connect(sd, 4, ID);
	recorder_get(&rec, 0);
	CHECK_OK(SCISetSegmentUnavailable(s, 0, 0, &err));
}

TEST(no_callback_after_terminate)
{
	static struct recorder rec;
	struct peer *p = peer_spawn(8, importer, NULL);
	unsigned int n;

	recorder_init(&rec);
	test_segment_cb(test_open(), ID, SIZE, &rec);
	tell(p, "connect", "connected");
	SCITerminate();
	n = recorder_count(&rec);
	peer_kill(p, SIGKILL);
	test_open();
	CHECK_EQ(recorder_count(&rec), n);
}

/* ---- fork ---- */

TEST(a_child_is_no_owner)
{
	static struct recorder rec;
	struct peer *p = peer_spawn(8, importer, NULL);
	sci_desc_t sd, own;
	int status;
	pid_t pid;

	if (TEST_TSAN)
		SKIP("the thread sanitizer forbids it");
	recorder_init(&rec);
	sd = test_open();
	test_segment_cb(sd, ID, SIZE, &rec);
	tell(p, "connect", "connected");
	pid = test_fork();
	if (pid == 0) {
		CHECK_ERR(SCIClose(sd, 0, &err), SCI_ERR_NOT_INITIALIZED);
		CHECK_ERR(SCIOpen(&own, 0, &err), SCI_ERR_NOT_INITIALIZED);
		SCITerminate();
		own = test_open();
		CHECK_OK(SCIDisconnectSegment(test_connect(own, 4, ID), 0,
					      &err));
		SCITerminate();
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	/* the parent only sees events of the child's connection */
	CHECK_EQ(recorder_get(&rec, 1).node, 4);
	CHECK_EQ(recorder_get(&rec, 2).reason, SCI_CB_DISCONNECT);
	tell(p, "disconnect", "disconnected");
	CHECK_EQ(recorder_get(&rec, 3).node, 8);
}

static void forks_and_dies(struct peer *self, void *arg)
{
	(void)arg;
	test_segment(test_open(), ID, SIZE, 0);
	if (test_fork() == 0) {
		/* the child lives longer than its parent, and does nothing */
		peer_send(self, "ready");
		for (;;)
			pause();
	}
	for (;;)
		pause();
}

TEST(a_child_does_not_keep_its_parent_alive)
{
	static struct recorder rec;
	struct peer *p;
	sci_desc_t sd;

	if (TEST_TSAN)
		SKIP("the thread sanitizer forbids it");
	p = peer_spawn(8, forks_and_dies, NULL);
	recorder_init(&rec);
	sd = test_open();
	peer_expect(p, "ready");
	test_connect_cb(sd, 8, ID, &rec);
	peer_kill(p, SIGKILL);
	CHECK_EQ(recorder_get(&rec, 0).reason, SCI_CB_LOST);
	if (test_on_shm())
		CHECK_ERR(SCIProbeNode(sd, 0, 8, 0, &err),
			  SCI_ERR_NO_SUCH_NODEID);
}
