// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Habits of SISCI programs that the specification does not cover. */

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "selftests/harness.h"

#define SIZE	8192

/* ---- a segment that is removed on request ---- */

static void importer(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();
	sci_remote_segment_t r = test_connect(sd, 4, 1);
	sci_remote_data_interrupt_t order;
	sci_map_t map;
	char byte = 0;

	(void)arg;
	*(volatile int *)test_map_remote(r, &map) = 42;
	peer_expect(self, "order");
	CHECK_OK(SCIConnectDataInterrupt(sd, &order, 4, 0, 1, 0, 0, &err));
	CHECK_OK(SCITriggerDataInterrupt(order, &byte, 1, 0, &err));
	CHECK_EQ(SCIWaitForRemoteSegmentEvent(r, NULL, TEST_WAIT_MS, 0, NULL),
		 SCI_CB_DISCONNECT);
	/* the map stays until it is unmapped, and the close before that fails */
	CHECK_ERR(SCIClose(sd, 0, &err), SCI_ERR_BUSY);
	CHECK_OK(SCIUnmapSegment(map, 0, &err));
	CHECK_OK(SCIDisconnectDataInterrupt(order, 0, &err));
	/* the owner has gone, so its connection does not keep the device busy */
	CHECK_OK(SCIClose(sd, 0, &err));
	CHECK_ERR(SCIDisconnectSegment(r, 0, &err), SCI_ERR_ILLEGAL_PARAMETER);
	SCITerminate();
	peer_send(self, "closed");
}

struct ordered {
	sci_local_segment_t s;
	_Atomic sci_error_t outcome;
};

static sci_callback_action_t remove_on_order(void *arg,
					     sci_local_data_interrupt_t i,
					     void *data, unsigned int len,
					     sci_error_t status)
{
	struct ordered *o = arg;
	sci_error_t e;

	(void)i;
	(void)data;
	(void)len;
	(void)status;
	SCIRemoveSegment(o->s, 0, &e);
	o->outcome = e;
	return SCI_CALLBACK_CONTINUE;
}

TEST(a_callback_removes_a_segment_that_is_in_use)
{
	struct peer *p = peer_spawn(8, importer, NULL);
	struct ordered o = { .outcome = SCI_ERR_TIMEOUT };
	sci_local_data_interrupt_t i;
	unsigned int number = 1;
	volatile int *mine;
	sci_map_t map;
	sci_desc_t sd;

	sd = test_open();
	CHECK_OK(SCICreateSegment(sd, &o.s, 1, SIZE, NULL, NULL, 0, &err));
	CHECK_OK(mine = SCIMapLocalSegment(o.s, &map, 0, SIZE, NULL, 0, &err));
	CHECK_OK(SCIPrepareSegment(o.s, 0, 0, &err));
	CHECK_OK(SCISetSegmentAvailable(o.s, 0, 0, &err));
	WAIT_UNTIL(*mine == 42, TEST_WAIT_MS);
	/* outside of a callback, the importer makes the segment busy */
	CHECK_OK(SCIUnmapSegment(map, 0, &err));
	CHECK_ERR(SCIRemoveSegment(o.s, 0, &err), SCI_ERR_BUSY);
	CHECK_OK(SCICreateDataInterrupt(sd, &i, 0, &number, remove_on_order,
					&o, SCI_FLAG_USE_CALLBACK |
					SCI_FLAG_FIXED_INTNO, &err));
	peer_send(p, "order");
	peer_expect(p, "closed");
	/* the peer gets the event before the call has returned */
	WAIT_UNTIL(o.outcome != SCI_ERR_TIMEOUT, TEST_WAIT_MS);
	CHECK_EQ(o.outcome, SCI_ERR_OK);
	peer_join(p);
}

TEST(close_is_busy_while_a_connection_lives)
{
	sci_desc_t sd = test_open(), other;
	sci_remote_segment_t r;

	test_segment(sd, 1, SIZE, 0);
	CHECK_OK(SCIOpen(&other, 0, &err));
	r = test_connect(other, 4, 1);
	CHECK_ERR(SCIClose(other, 0, &err), SCI_ERR_BUSY);
	CHECK_OK(SCIDisconnectSegment(r, 0, &err));
	CHECK_OK(SCIClose(other, 0, &err));
}

/* ---- removing an interrupt is no trigger ---- */

static _Atomic unsigned int calls;

static sci_callback_action_t count(void *arg, sci_local_interrupt_t i,
				   sci_error_t status)
{
	(void)arg;
	(void)i;
	(void)status;
	calls++;
	return SCI_CALLBACK_CONTINUE;
}

TEST(removing_an_interrupt_calls_nobody)
{
	unsigned int flags = SCI_FLAG_USE_CALLBACK | SCI_FLAG_FIXED_INTNO;
	sci_desc_t sd = test_open();

	for (unsigned int k = 0; k < 300; k++) {
		unsigned int shared = k % 2 ? SCI_FLAG_SHARED_INT : 0;
		sci_local_interrupt_t a, b;
		unsigned int number = 7;

		CHECK_OK(SCICreateInterrupt(sd, &a, 0, &number, count, NULL,
					    flags | shared, &err));
		if (shared)
			CHECK_OK(SCICreateInterrupt(sd, &b, 0, &number, count,
						    NULL, flags | shared,
						    &err));
		CHECK_OK(SCIRemoveInterrupt(a, 0, &err));
		if (shared)
			CHECK_OK(SCIRemoveInterrupt(b, 0, &err));
	}
	SCITerminate();
	CHECK_EQ(calls, 0);
}

/* ---- SCITerminate() from a signal handler ---- */

static void terminate(int sig)
{
	(void)sig;
	/* NOLINTNEXTLINE(bugprone-signal-handler,cert-sig30-c): they do it */
	SCITerminate();
	_exit(0);
}

static void waiter(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();
	sci_remote_segment_t r;

	signal(SIGINT, terminate);
	peer_send(self, "ready");
	if (arg)
		for (;;)
			SCIConnectSegment(sd, &r, 4, 99, 0, NULL, NULL,
					  SCI_INFINITE_TIMEOUT, 0, NULL);
	SCIWaitForInterrupt(test_interrupt(sd, 1), SCI_INFINITE_TIMEOUT, 0,
			    NULL);
	CHECK(!"woken");
}

TEST(terminate_in_a_signal_handler)
{
	for (int k = 0; k < 20; k++) {
		struct peer *p = peer_spawn(8, waiter,
					    k % 2 ? &calls : NULL);

		peer_expect(p, "ready");
		for (int n = 0; n < k; n++)
			test_pause();
		CHECK_EQ(kill(peer_pid(p), SIGINT), 0);
		peer_join(p);
	}
}

/* ---- a local variable of a callback, read after the callback ---- */

struct order {
	_Atomic(unsigned int *) left;	/* points to a local variable of the callback */
};

static __attribute__((noinline)) void leave(struct order *o)
{
	volatile unsigned int local[16];

	for (unsigned int i = 0; i < 16; i++)
		local[i] = 0x5eed + i;
	o->left = (unsigned int *)(uintptr_t)local;
}

static sci_callback_action_t take_order(void *arg,
					sci_local_data_interrupt_t i,
					void *data, unsigned int len,
					sci_error_t status)
{
	(void)i;
	(void)data;
	(void)len;
	(void)status;
	leave(arg);
	return SCI_CALLBACK_CONTINUE;
}

TEST(what_a_callback_leaves_on_its_stack_stays_a_while)
{
	sci_local_data_interrupt_t i;
	sci_remote_data_interrupt_t r;
	struct order o = { NULL };
	unsigned int number;
	char byte = 1;
	sci_desc_t sd;

	if (TEST_ASAN || TEST_TSAN)
		SKIP("sanitizers watch the stack");
	sd = test_open();
	CHECK_OK(SCICreateDataInterrupt(sd, &i, 0, &number, take_order, &o,
					SCI_FLAG_USE_CALLBACK, &err));
	CHECK_OK(SCIConnectDataInterrupt(sd, &r, 4, 0, number, 0, 0, &err));
	CHECK_OK(SCITriggerDataInterrupt(r, &byte, 1, 0, &err));
	WAIT_UNTIL(o.left != NULL, TEST_WAIT_MS);
	/* wait until the library has finished after the callback */
	WAIT_UNTIL(others_asleep(), TEST_WAIT_MS);
	for (unsigned int k = 0; k < 16; k++)
		CHECK_EQ(((volatile unsigned int *)o.left)[k], 0x5eed + k);
}

/* ---- vectors longer than the queue ---- */

TEST(a_vector_is_one_entry_of_a_queue)
{
	static dis_dma_vec_t vec[DIS_DMA_MAX_VECLEN];
	sci_desc_t sd = test_open();
	sci_local_segment_t s = test_segment(sd, 1, SIZE, 0);
	sci_remote_segment_t r = test_connect(sd, 4, 1);
	sci_dma_queue_t q;

	for (unsigned int i = 0; i < DIS_DMA_MAX_VECLEN; i++)
		vec[i] = (dis_dma_vec_t){ .size = 8, .local_offset = 8 * i,
					  .remote_offset = 4096 + 8 * i,
					  .flags = 0xdeadbeef };
	CHECK_OK(SCICreateDMAQueue(sd, &q, 0, 1, 0, &err));
	CHECK_OK(SCIStartDmaTransferVec(q, s, r, DIS_DMA_MAX_VECLEN, vec, NULL,
					NULL, SCI_FLAG_DMA_WAIT, &err));
	CHECK_EQ(SCIDMAQueueState(q), SCI_DMAQUEUE_DONE);
	CHECK_OK(SCIRemoveDMAQueue(q, 0, &err));
}
