// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* DMA: the queues of SISCI 1.10 and the transfers of SISCI 2.x. */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <sisci_api.h>

#include "selftests/harness.h"
#include "selftests/remote.h"

#define SIZE	((size_t)65536)

/* A local segment, a remote segment of node 8 or of this node, and a queue. */
struct dma {
	sci_desc_t sd;
	sci_local_segment_t s;
	sci_remote_segment_t r;
	sci_dma_queue_t q;
	unsigned char *local;
	volatile unsigned char *remote;	/* a map of the remote segment */
	sci_sequence_t seq;		/* a sequence of the map */
};

static void dma_open(struct dma *d, unsigned int node, size_t size)
{
	sci_map_t map;

	d->s = test_segment(d->sd, 1, size, 0);
	d->r = test_connect(d->sd, node, 2);
	d->local = test_map_local(d->s, NULL);
	d->remote = test_map_remote(d->r, &map);
	CHECK_OK(SCICreateMapSequence(map, &d->seq, 0, &err));
	CHECK_OK(SCICreateDMAQueue(d->sd, &d->q, 0, 16, 0, &err));
}

static void own_dma_open(struct dma *d, size_t size)
{
	d->sd = test_open();
	test_segment(d->sd, 2, size, 0);
	dma_open(d, 4, size);
}

/* Fill the remote segment by stores, and wait for them: transfers do not wait for stores. */
static void fill_remote(struct dma *d, unsigned int seed)
{
	test_fill(d->remote, SIZE, seed);
	SCIStoreBarrier(d->seq, 0);
}

/* Check the remote segment. It is copied in words, because each read is a round trip. */
static bool remote_filled(const struct dma *d, unsigned int seed)
{
	static uint64_t copy[SIZE / sizeof(uint64_t)];
	const volatile uint64_t *from = (const volatile uint64_t *)d->remote;

	for (size_t i = 0; i < ARRAY_LEN(copy); i++)
		copy[i] = from[i];
	return test_filled(copy, SIZE, seed);
}

static void wait_for(sci_dma_queue_t q, sci_dma_queue_state_t want)
{
	sci_dma_queue_state_t state;

	CHECK_OK(state = SCIWaitForDMAQueue(q, SCI_INFINITE_TIMEOUT, 0, &err));
	CHECK_EQ(state, want);
	CHECK_EQ(SCIDMAQueueState(q), want);
}

static void start(struct dma *d, unsigned int flags)
{
	CHECK_OK(SCIStartDmaTransfer(d->q, d->s, d->r, 0, SIZE, 0, NULL, NULL,
				     flags, &err));
}

static void target(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();

	(void)arg;
	test_segment(sd, 2, SIZE, 0);
	peer_send(self, "ready");
	peer_expect(self, "leave");
}

TEST(queues)
{
	static const unsigned int engines[] = {
		0, SCI_FLAG_DMA_GLOBAL, SCI_FLAG_DMA_SYSDMA,
		SCI_FLAG_DMA_ADAPTER
	};
	static const unsigned int entries[] = { 1, 2, 256, 1 << 20 };
	sci_desc_t sd = test_open();
	sci_dma_queue_t q;

	for (size_t i = 0; i < ARRAY_LEN(engines); i++) {
		CHECK_OK(SCICreateDMAQueue(sd, &q, 0, entries[i], engines[i],
					   &err));
		CHECK_EQ(SCIDMAQueueState(q), SCI_DMAQUEUE_IDLE);
		CHECK_ERR(SCIWaitForDMAQueue(q, 0, 0, &err),
			  SCI_ERR_ILLEGAL_OPERATION);
		CHECK_ERR(SCIPostDMAQueue(q, NULL, NULL, 0, &err),
			  SCI_ERR_ILLEGAL_OPERATION);
		CHECK_OK(SCIResetDMAQueue(q, 0, &err));
		CHECK_OK(SCIAbortDMAQueue(q, 0, &err));
		CHECK_EQ(SCIDMAQueueState(q), SCI_DMAQUEUE_IDLE);
		CHECK_ERR(SCIClose(sd, 0, &err), SCI_ERR_BUSY);
		CHECK_OK(SCIRemoveDMAQueue(q, 0, &err));
		CHECK_EQ(SCIDMAQueueState(q), SCI_DMAQUEUE_ERROR);
	}
	CHECK_OK(SCIClose(sd, 0, &err));
}

TEST(queues_that_cannot_be)
{
	sci_desc_t sd = test_open();
	sci_dma_queue_t q = NULL;

	CHECK_ERR(SCICreateDMAQueue(sd, &q, 0, 0, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCICreateDMAQueue(sd, &q, 0, (1 << 20) + 1, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCICreateDMAQueue(sd, NULL, 0, 1, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCICreateDMAQueue(sd, &q, 0, 1, SCI_FLAG_DMA_READ, &err),
		  SCI_ERR_ILLEGAL_FLAG);
	CHECK(ERR_OF(SCICreateDMAQueue(sd, &q, 0, 1, SCI_FLAG_DMA_PHDMA,
				       &err)) != SCI_ERR_OK);
	CHECK(q == NULL);
	CHECK_OK(SCIClose(sd, 0, &err));
}

/* ---- transfers of SISCI 2.x ---- */

TEST(transfers_to_and_from_another_node)
{
	struct peer *p = peer_spawn(8, target, NULL);
	struct dma d = { .sd = test_open() };

	peer_expect(p, "ready");
	dma_open(&d, 8, SIZE);
	for (unsigned int i = 0; i < (remote_machines() ? 3 : 20); i++) {
		test_fill(d.local, SIZE, i);
		start(&d, 0);
		wait_for(d.q, SCI_DMAQUEUE_DONE);
		/* a second wait returns the same state */
		wait_for(d.q, SCI_DMAQUEUE_DONE);
		CHECK(remote_filled(&d, i));
		fill_remote(&d, 1000 + i);
		start(&d, SCI_FLAG_DMA_READ | SCI_FLAG_DMA_WAIT);
		CHECK_EQ(SCIDMAQueueState(d.q), SCI_DMAQUEUE_DONE);
		CHECK(test_filled(d.local, SIZE, 1000 + i));
	}
}

TEST(parts_at_any_byte)
{
	static const size_t part[][3] = {	/* local, remote, size */
		{ 0, 0, 1 }, { 1, 0, 1 }, { 0, 1, 3 }, { 17, 4097, 4096 },
		{ 4095, 63, 130 }, { 100, 101, 60000 }, { SIZE - 1, 0, 1 },
		{ 0, SIZE - 1, 1 }, { 1, 1, SIZE - 1 }
	};
	static unsigned char want[SIZE];
	struct dma d;

	own_dma_open(&d, SIZE);
	test_fill(d.local, SIZE, 1);
	fill_remote(&d, 2);
	test_fill(want, SIZE, 2);
	for (size_t i = 0; i < ARRAY_LEN(part); i++) {
		size_t lo = part[i][0], ro = part[i][1], n = part[i][2];

		CHECK_OK(SCIStartDmaTransfer(d.q, d.s, d.r, lo, n, ro, NULL,
					     NULL, SCI_FLAG_DMA_WAIT, &err));
		memcpy(want + ro, d.local + lo, n);
		CHECK(!memcmp((void *)d.remote, want, SIZE));
	}
	fill_remote(&d, 3);
	memcpy(want, d.local, SIZE);
	for (size_t i = 0; i < ARRAY_LEN(part); i++) {
		size_t lo = part[i][0], ro = part[i][1], n = part[i][2];

		CHECK_OK(SCIStartDmaTransfer(d.q, d.s, d.r, lo, n, ro, NULL,
					     NULL, SCI_FLAG_DMA_WAIT |
					     SCI_FLAG_DMA_READ, &err));
		memcpy(want + lo, (void *)(d.remote + ro), n);
		CHECK(!memcmp(d.local, want, SIZE));
	}
}

TEST(sources_of_every_kind)
{
	void *pages = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static const unsigned int create[] = {
		SCI_FLAG_PRIVATE, 0, SCI_FLAG_EMPTY
	};
	static const unsigned int prepare[] = {
		0, SCI_FLAG_DMA_SOURCE_ONLY, 0
	};
	struct dma d;

	own_dma_open(&d, SIZE);
	for (unsigned int i = 0; i < ARRAY_LEN(create); i++) {
		CHECK_OK(SCICreateSegment(d.sd, &d.s, 10 + i, SIZE, NULL, NULL,
					  create[i], &err));
		if (create[i] == SCI_FLAG_EMPTY)
			CHECK_OK(SCIRegisterSegmentMemory(pages, SIZE, d.s, 0,
							  &err));
		CHECK_OK(SCIPrepareSegment(d.s, 0, prepare[i], &err));
		test_fill(test_map_local(d.s, NULL), SIZE, i);
		start(&d, SCI_FLAG_DMA_WAIT);
		CHECK(test_filled(d.remote, SIZE, i));
	}
}

/* A PRIVATE segment accepts memory that cannot be shared with other processes. */
static void check_plain_source(struct dma *d, unsigned char *mem, size_t size)
{
	unsigned char *again;
	sci_map_t map;

	CHECK_OK(SCICreateSegment(d->sd, &d->s, 0, size, NULL, NULL,
				  SCI_FLAG_PRIVATE | SCI_FLAG_EMPTY, &err));
	CHECK_ERR(SCIRegisterSegmentMemory(mem, size - 1, d->s, 0, &err),
		  SCI_ERR_OUT_OF_RANGE);
	CHECK_OK(SCIRegisterSegmentMemory(mem, size, d->s, 0, &err));
	CHECK_ERR(SCIRegisterSegmentMemory(mem, size, d->s, 0, &err),
		  SCI_ERR_ILLEGAL_OPERATION);
	CHECK_OK(SCIPrepareSegment(d->s, 0, SCI_FLAG_DMA_SOURCE_ONLY, &err));
	test_fill(mem, size, 1);
	CHECK_OK(SCIStartDmaTransfer(d->q, d->s, d->r, 0, size, 0, NULL, NULL,
				     SCI_FLAG_DMA_WAIT, &err));
	CHECK(test_filled(d->remote, size, 1));
	CHECK_ERR(SCIStartDmaTransfer(d->q, d->s, d->r, 1, size, 0, NULL,
				      NULL, SCI_FLAG_DMA_WAIT, &err),
		  SCI_ERR_OUT_OF_RANGE);
	/* transfer a part of the segment back */
	memset(mem, 0, size);
	CHECK_OK(SCIStartDmaTransfer(d->q, d->s, d->r, 8, size - 8, 8, NULL,
				     NULL, SCI_FLAG_DMA_WAIT |
				     SCI_FLAG_DMA_READ, &err));
	CHECK(!memcmp(mem + 8, (const void *)(uintptr_t)(d->remote + 8),
		      size - 8));
	CHECK_EQ(mem[7], 0);
	again = test_map_local(d->s, &map);
	CHECK(again == mem);
	CHECK_ERR(SCIRemoveSegment(d->s, 0, &err), SCI_ERR_BUSY);
	CHECK_OK(SCIUnmapSegment(map, 0, &err));
	CHECK_OK(SCIRemoveSegment(d->s, 0, &err));
	/* the memory is still the program's */
	test_fill(mem, size, 2);
	CHECK(test_filled(mem, size, 2));
}

TEST(sources_that_are_no_whole_pages)
{
	static unsigned char of_the_program[5000];
	unsigned char on_the_stack[3000];
	unsigned char *heap = malloc(SIZE);
	struct dma d;

	CHECK(heap != NULL);
	own_dma_open(&d, SIZE);
	check_plain_source(&d, heap + 1, 1000);
	check_plain_source(&d, heap + 3, SIZE - 3);
	check_plain_source(&d, of_the_program, sizeof(of_the_program));
	check_plain_source(&d, on_the_stack, sizeof(on_the_stack));
	free(heap);
	CHECK_OK(SCICreateSegment(d.sd, &d.s, 0, 100, NULL, NULL,
				  SCI_FLAG_PRIVATE | SCI_FLAG_EMPTY, &err));
	CHECK_ERR(SCIRegisterSegmentMemory((void *)(uintptr_t)8, 100, d.s, 0,
					   &err), SCI_ERR_ILLEGAL_ADDRESS);
	CHECK_ERR(SCIRegisterSegmentMemory(NULL, 100, d.s, 0, &err),
		  SCI_ERR_ILLEGAL_ADDRESS);
}

TEST(a_source_never_mapped)
{
	struct dma d;

	own_dma_open(&d, SIZE);
	fill_remote(&d, 1);
	CHECK_OK(SCICreateSegment(d.sd, &d.s, 10, SIZE, NULL, NULL, 0, &err));
	CHECK_OK(SCIPrepareSegment(d.s, 0, 0, &err));
	start(&d, SCI_FLAG_DMA_READ | SCI_FLAG_DMA_WAIT);
	CHECK(test_filled(test_map_local(d.s, NULL), SIZE, 1));
}

static void sharer(struct peer *self, void *arg)
{
	sci_local_segment_t s = test_segment(test_open(), 9, SIZE, 0);

	(void)arg;
	test_fill(test_map_local(s, NULL), SIZE, 9);
	CHECK_OK(SCIShareSegment(s, 0, &err));
	peer_send(self, "ready");
	peer_expect(self, "leave");
}

TEST(an_attached_source)
{
	struct peer *p = peer_spawn(4, sharer, NULL);
	struct dma d;

	peer_expect(p, "ready");
	own_dma_open(&d, SIZE);
	CHECK_OK(SCIAttachLocalSegment(d.sd, &d.s, 9, NULL, NULL, NULL, 0,
				       &err));
	SCIPrepareSegment(d.s, 0, 0, NULL);	/* some programs make this call */
	start(&d, SCI_FLAG_DMA_WAIT);
	CHECK(test_filled(d.remote, SIZE, 9));
}

TEST(plain_memory)
{
	static unsigned char mem[SIZE];
	struct dma d;

	own_dma_open(&d, SIZE);
	test_fill(mem, SIZE, 4);
	CHECK_OK(SCIStartDmaTransferMem(d.q, mem + 1, d.r, 1000, 5, NULL, NULL,
					SCI_FLAG_DMA_WAIT, &err));
	CHECK(!memcmp((void *)(d.remote + 5), mem + 1, 1000));
	fill_remote(&d, 5);
	CHECK_OK(SCIStartDmaTransferMem(d.q, mem, d.r, SIZE, 0, NULL, NULL,
					SCI_FLAG_DMA_READ, &err));
	wait_for(d.q, SCI_DMAQUEUE_DONE);
	CHECK(test_filled(mem, SIZE, 5));
	CHECK_ERR(SCIStartDmaTransferMem(d.q, NULL, d.r, SIZE, 0, NULL, NULL,
					 SCI_FLAG_DMA_WAIT, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCIStartDmaTransferMem(d.q, mem, d.r, SIZE, 1, NULL, NULL,
					 SCI_FLAG_DMA_WAIT, &err),
		  SCI_ERR_OUT_OF_RANGE);
}

TEST(ranges_and_arguments_that_are_wrong)
{
	static const size_t bad[][3] = {	/* local, remote, size */
		{ 0, 0, SIZE + 1 }, { 1, 0, SIZE }, { 0, 1, SIZE },
		{ SIZE, 0, 1 }, { 0, SIZE, 1 }, { SIZE_MAX, 0, 2 },
		{ 0, SIZE_MAX, 2 }, { 1, 0, SIZE_MAX }
	};
	sci_local_segment_t raw;
	struct dma d;

	own_dma_open(&d, SIZE);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_ERR(SCIStartDmaTransfer(d.q, d.s, d.r, bad[i][0],
					      bad[i][2], bad[i][1], NULL, NULL,
					      0, &err), SCI_ERR_OUT_OF_RANGE);
	CHECK_ERR(SCIStartDmaTransfer(d.q, d.s, d.r, 0, 0, 0, NULL, NULL, 0,
				      &err), SCI_ERR_SIZE_ALIGNMENT);
	CHECK_ERR(SCIStartDmaTransfer(d.q, NULL, d.r, 0, 1, 0, NULL, NULL, 0,
				      &err), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCIStartDmaTransfer(d.q, d.s, NULL, 0, 1, 0, NULL, NULL, 0,
				      &err), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCIStartDmaTransfer(NULL, d.s, d.r, 0, 1, 0, NULL, NULL, 0,
				      &err), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCIStartDmaTransfer(d.q, d.s, d.r, 0, 1, 0, NULL, NULL,
				      0x80000000, &err), SCI_ERR_ILLEGAL_FLAG);
	CHECK_OK(SCICreateSegment(d.sd, &raw, 10, SIZE, NULL, NULL, 0, &err));
	CHECK_ERR(SCIStartDmaTransfer(d.q, raw, d.r, 0, 1, 0, NULL, NULL, 0,
				      &err), SCI_ERR_SEGMENT_NOT_PREPARED);
	CHECK_EQ(SCIDMAQueueState(d.q), SCI_DMAQUEUE_IDLE);
	start(&d, SCI_FLAG_DMA_WAIT);
}

TEST(a_transfer_to_a_group_needs_a_connection_to_one)
{
	struct dma d;

	own_dma_open(&d, SIZE);
	CHECK_ERR(SCIStartDmaTransfer(d.q, d.s, d.r, 0, SIZE, 0, NULL, NULL,
				      SCI_FLAG_BROADCAST, &err),
		  SCI_ERR_ILLEGAL_FLAG);
	CHECK_EQ(SCIDMAQueueState(d.q), SCI_DMAQUEUE_IDLE);
	start(&d, SCI_FLAG_DMA_WAIT);
}

TEST(one_gibibyte)
{
	/* the thread sanitizer's shadow is four times as large */
	const size_t size = (size_t)1 << (TEST_TSAN ? 27 : 30);
	sci_dma_queue_state_t state;
	struct dma d;

	own_dma_open(&d, size);
	for (size_t i = 0; i < size; i += 4096)
		*(size_t *)(d.local + i) = i ^ 0x5555;
	CHECK_OK(SCIStartDmaTransfer(d.q, d.s, d.r, 0, size, 0, NULL, NULL, 0,
				     &err));
	do {
		CHECK_OK(state = SCIWaitForDMAQueue(d.q, SCI_INFINITE_TIMEOUT,
						    0, &err));
	} while (state == SCI_DMAQUEUE_POSTED);
	CHECK_EQ(state, SCI_DMAQUEUE_DONE);
	for (size_t i = 0; i < size; i += 4096)
		CHECK(*(volatile size_t *)(d.remote + i) == (i ^ 0x5555));
}

/* ---- vectors ---- */

/* Make @n pieces that reverse the order of blocks. */
static void make_vector(dis_dma_vec_t *v, unsigned int n)
{
	unsigned int size = SIZE / DIS_DMA_MAX_VECLEN;

	memset(v, 0xaa, n * sizeof(*v));	/* flags are ignored */
	for (unsigned int i = 0; i < n; i++) {
		v[i].size = size;
		v[i].local_offset = i * size;
		v[i].remote_offset = (n - 1 - i) * size;
	}
}

TEST(vectors)
{
	static const unsigned int lengths[] = { 1, 2, 16, DIS_DMA_MAX_VECLEN };
	unsigned int size = SIZE / DIS_DMA_MAX_VECLEN;
	dis_dma_vec_t v[DIS_DMA_MAX_VECLEN];
	struct dma d;

	own_dma_open(&d, SIZE);
	CHECK_OK(SCICreateDMAQueue(d.sd, &d.q, 0, DIS_DMA_MAX_VECLEN, 0,
				   &err));
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		unsigned int n = lengths[i];

		test_fill(d.local, SIZE, i);
		make_vector(v, n);
		CHECK_OK(SCIStartDmaTransferVec(d.q, d.s, d.r, n, v, NULL,
						NULL, SCI_FLAG_DMA_WAIT |
						SCI_FLAG_DMA_GLOBAL, &err));
		CHECK_EQ(SCIDMAQueueState(d.q), SCI_DMAQUEUE_DONE);
		for (unsigned int k = 0; k < n; k++)
			CHECK(!memcmp(d.local + k * size,
				      (void *)(d.remote + (n - 1 - k) * size),
				      size));
	}
}

TEST(a_vector_to_be_read)
{
	dis_dma_vec_t v[16];
	struct dma d;

	own_dma_open(&d, SIZE);
	fill_remote(&d, 1);
	make_vector(v, 16);
	CHECK_OK(SCIStartDmaTransferVec(d.q, d.s, d.r, 16, v, NULL, NULL,
					SCI_FLAG_DMA_READ, &err));
	memset(v, 0xff, sizeof(v));	/* the library has copied the vector */
	wait_for(d.q, SCI_DMAQUEUE_DONE);
	make_vector(v, 16);
	for (int k = 0; k < 16; k++)
		CHECK(!memcmp(d.local + v[k].local_offset,
			      (void *)(d.remote + v[k].remote_offset),
			      v[k].size));
}

TEST(vectors_that_are_wrong)
{
	dis_dma_vec_t v[DIS_DMA_MAX_VECLEN + 1];
	struct dma d;

	own_dma_open(&d, SIZE);
	memset(v, 0, sizeof(v));
	make_vector(v, 17);
	CHECK_ERR(SCIStartDmaTransferVec(d.q, d.s, d.r,
					 DIS_DMA_MAX_VECLEN + 1, v, NULL, NULL,
					 0, &err), SCI_ERR_MAX_ENTRIES);
	CHECK(ERR_OF(SCIStartDmaTransferVec(d.q, d.s, d.r, 0, v, NULL, NULL, 0,
					    &err)) != SCI_ERR_OK);
	CHECK_ERR(SCIStartDmaTransferVec(d.q, d.s, d.r, 1, NULL, NULL, NULL, 0,
					 &err), SCI_ERR_ILLEGAL_PARAMETER);
	v[5].remote_offset = SIZE;
	memset((void *)d.remote, 0, SIZE);
	SCIStoreBarrier(d.seq, 0);
	memset(d.local, 1, SIZE);
	CHECK_ERR(SCIStartDmaTransferVec(d.q, d.s, d.r, 16, v, NULL, NULL,
					 SCI_FLAG_DMA_WAIT, &err),
		  SCI_ERR_OUT_OF_RANGE);
	/* nothing has been transferred */
	for (size_t i = 0; i < SIZE; i++)
		CHECK(!d.remote[i]);
}

/* ---- callbacks ---- */

static void start_cb(struct dma *d, sci_cb_dma_t cb, void *arg)
{
	CHECK_OK(SCIStartDmaTransfer(d->q, d->s, d->r, 0, SIZE, 0, cb, arg,
				     SCI_FLAG_USE_CALLBACK, &err));
}

TEST(a_transfer_is_called_back)
{
	static struct recorder rec;
	struct dma d;

	recorder_init(&rec);
	own_dma_open(&d, SIZE);
	for (unsigned int i = 0; i < 10; i++) {
		struct record r;

		test_fill(d.local, SIZE, i);
		start_cb(&d, record_dma, &rec);
		r = recorder_get(&rec, i);
		CHECK(r.handle == d.q);
		CHECK_EQ(r.status, SCI_ERR_OK);
		CHECK(!pthread_equal(r.thread, pthread_self()));
		CHECK(test_filled(d.remote, SIZE, i));
		CHECK_EQ(SCIDMAQueueState(d.q), SCI_DMAQUEUE_DONE);
	}
	CHECK_EQ(recorder_count(&rec), 10);
}

TEST(a_queue_with_a_callback_cannot_be_waited_for)
{
	static struct recorder rec;
	struct dma d;

	recorder_init(&rec);
	own_dma_open(&d, SIZE);
	start_cb(&d, record_dma, &rec);
	CHECK_ERR(SCIWaitForDMAQueue(d.q, 0, 0, &err),
		  SCI_ERR_ILLEGAL_OPERATION);
	recorder_get(&rec, 0);
	/* the next transfer has no callback */
	start(&d, 0);
	wait_for(d.q, SCI_DMAQUEUE_DONE);
	CHECK_EQ(recorder_count(&rec), 1);
}

/* The callback of a transfer starts the next transfer. */
struct chain {
	struct dma d;
	struct recorder rec;
	unsigned int left;
};

static sci_callback_action_t next_of_chain(void *arg, sci_dma_queue_t q,
					   sci_error_t status)
{
	struct chain *c = arg;

	CHECK_EQ(status, SCI_ERR_OK);
	if (--c->left)
		start_cb(&c->d, next_of_chain, c);
	else
		record_dma(&c->rec, q, status);
	return SCI_CALLBACK_CONTINUE;
}

TEST(a_callback_may_start_the_next_transfer)
{
	static struct chain c = { .left = 200 };

	recorder_init(&c.rec);
	own_dma_open(&c.d, SIZE);
	start_cb(&c.d, next_of_chain, &c);
	recorder_get(&c.rec, 0);
	CHECK_EQ(c.left, 0);
}

static sci_callback_action_t count_call(void *arg, sci_dma_queue_t q, sci_error_t status)
{
	(void)q;
	CHECK_EQ(status, SCI_ERR_OK);
	atomic_fetch_add((_Atomic unsigned int *)arg, 1);
	return SCI_CALLBACK_CONTINUE;
}

TEST(each_transfer_is_called_back_even_if_the_next_one_starts_before)
{
	static _Atomic unsigned int calls;
	struct dma d;

	own_dma_open(&d, SIZE);
	for (unsigned int i = 0; i < 10000; i++) {
		CHECK_OK(SCIStartDmaTransfer(d.q, d.s, d.r, 0, 64, 0, count_call,
					     (void *)&calls, SCI_FLAG_USE_CALLBACK, &err));
		while (SCIDMAQueueState(d.q) == SCI_DMAQUEUE_POSTED)
			sched_yield();
	}
	WAIT_UNTIL(atomic_load(&calls) == 10000, TEST_WAIT_MS);
	CHECK_OK(SCIRemoveDMAQueue(d.q, 0, &err));
	CHECK_EQ(atomic_load(&calls), 10000);
}

static sci_callback_action_t remove_queue(void *arg, sci_dma_queue_t q,
					  sci_error_t status)
{
	CHECK_OK(SCIRemoveDMAQueue(q, 0, &err));
	return record_dma(arg, q, status);
}

TEST(a_callback_may_remove_its_queue)
{
	static struct recorder rec;
	struct dma d;

	recorder_init(&rec);
	own_dma_open(&d, SIZE);
	start_cb(&d, remove_queue, &rec);
	recorder_get(&rec, 0);
	CHECK_EQ(SCIDMAQueueState(d.q), SCI_DMAQUEUE_ERROR);
}

/* ---- queues of SISCI 1.10 ---- */

static sci_dma_queue_state_t enqueue(struct dma *d, unsigned int off,
				     unsigned int size, unsigned int flags)
{
	sci_dma_queue_state_t state;

	CHECK_OK(state = SCIEnqueueDMATransfer(d->q, d->s, d->r, off, off,
					       size, flags, &err));
	return state;
}

TEST(enqueue_post_wait_reset)
{
	struct dma d;

	own_dma_open(&d, SIZE);
	for (unsigned int i = 0; i < 10; i++) {
		test_fill(d.local, SIZE, i);
		for (unsigned int k = 0; k < 16; k++)
			CHECK_EQ(enqueue(&d, k * 4096, 4096, 0),
				 SCI_DMAQUEUE_GATHER);
		CHECK_ERR(SCIEnqueueDMATransfer(d.q, d.s, d.r, 0, 0, 1, 0,
						&err), SCI_ERR_MAX_ENTRIES);
		CHECK_ERR(SCIWaitForDMAQueue(d.q, 0, 0, &err),
			  SCI_ERR_ILLEGAL_OPERATION);
		CHECK_OK(SCIPostDMAQueue(d.q, NULL, NULL, 0, &err));
		wait_for(d.q, SCI_DMAQUEUE_DONE);
		CHECK(test_filled(d.remote, SIZE, i));
		CHECK_ERR(SCIPostDMAQueue(d.q, NULL, NULL, 0, &err),
			  SCI_ERR_ILLEGAL_OPERATION);
		CHECK_OK(SCIResetDMAQueue(d.q, 0, &err));
		CHECK_EQ(SCIDMAQueueState(d.q), SCI_DMAQUEUE_IDLE);
	}
}

TEST(a_gathering_queue_can_be_reset)
{
	struct dma d;

	own_dma_open(&d, SIZE);
	memset(d.local, 1, SIZE);
	memset((void *)d.remote, 0, SIZE);
	SCIStoreBarrier(d.seq, 0);
	enqueue(&d, 0, 4096, 0);
	CHECK_OK(SCIAbortDMAQueue(d.q, 0, &err));
	CHECK_EQ(SCIDMAQueueState(d.q), SCI_DMAQUEUE_GATHER);
	CHECK_OK(SCIResetDMAQueue(d.q, 0, &err));
	CHECK_EQ(SCIDMAQueueState(d.q), SCI_DMAQUEUE_IDLE);
	enqueue(&d, 4096, 4096, 0);
	CHECK_OK(SCIPostDMAQueue(d.q, NULL, NULL, 0, &err));
	wait_for(d.q, SCI_DMAQUEUE_DONE);
	CHECK_EQ(d.remote[0], 0);
	CHECK_EQ(d.remote[4096], 1);
}

TEST(all_of_one_post_go_the_same_way)
{
	struct dma d;

	own_dma_open(&d, SIZE);
	fill_remote(&d, 1);
	enqueue(&d, 0, 4096, SCI_FLAG_DMA_READ);
	CHECK_ERR(SCIEnqueueDMATransfer(d.q, d.s, d.r, 0, 0, 4096, 0, &err),
		  SCI_ERR_ILLEGAL_OPERATION);
	enqueue(&d, 4096, SIZE - 4096, SCI_FLAG_DMA_READ);
	CHECK_OK(SCIPostDMAQueue(d.q, NULL, NULL, 0, &err));
	wait_for(d.q, SCI_DMAQUEUE_DONE);
	CHECK(test_filled(d.local, SIZE, 1));
}

TEST(enqueue_with_post_wait_and_reset)
{
	struct dma d;

	own_dma_open(&d, SIZE);
	test_fill(d.local, SIZE, 1);
	enqueue(&d, 0, 4096, 0);
	enqueue(&d, 4096, SIZE - 4096, SCI_FLAG_DMA_POST);
	wait_for(d.q, SCI_DMAQUEUE_DONE);
	CHECK(test_filled(d.remote, SIZE, 1));
	CHECK_OK(SCIResetDMAQueue(d.q, 0, &err));

	test_fill(d.local, SIZE, 2);
	CHECK_EQ(enqueue(&d, 0, SIZE, SCI_FLAG_DMA_POST | SCI_FLAG_DMA_WAIT),
		 SCI_DMAQUEUE_DONE);
	CHECK(test_filled(d.remote, SIZE, 2));
	CHECK_OK(SCIResetDMAQueue(d.q, 0, &err));

	for (unsigned int i = 3; i < 10; i++) {
		test_fill(d.local, SIZE, i);
		CHECK_EQ(enqueue(&d, 0, SIZE, SCI_FLAG_DMA_POST |
				 SCI_FLAG_DMA_WAIT | SCI_FLAG_DMA_RESET),
			 SCI_DMAQUEUE_IDLE);
		CHECK(test_filled(d.remote, SIZE, i));
	}
}

TEST(a_post_is_called_back)
{
	static struct recorder rec;
	struct dma d;

	recorder_init(&rec);
	own_dma_open(&d, SIZE);
	for (unsigned int i = 0; i < 5; i++) {
		test_fill(d.local, SIZE, i);
		enqueue(&d, 0, 4096, 0);
		enqueue(&d, 4096, SIZE - 4096, 0);
		CHECK_OK(SCIPostDMAQueue(d.q, record_dma, &rec,
					 SCI_FLAG_USE_CALLBACK, &err));
		CHECK_EQ(recorder_get(&rec, i).status, SCI_ERR_OK);
		CHECK(test_filled(d.remote, SIZE, i));
		CHECK_OK(SCIResetDMAQueue(d.q, 0, &err));
	}
	/* one callback per post */
	CHECK_EQ(recorder_count(&rec), 5);
}

TEST(enqueue_checks_its_arguments)
{
	static const unsigned int bad[][3] = {
		{ 0, 0, SIZE + 1 }, { 1, 0, SIZE }, { 0, 1, SIZE },
		{ 0xffffffff, 0, 2 }, { 0, 0xffffffff, 2 },
		{ 1, 0, 0xffffffff }
	};
	sci_local_segment_t raw;
	struct dma d;

	own_dma_open(&d, SIZE);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_ERR(SCIEnqueueDMATransfer(d.q, d.s, d.r, bad[i][0],
						bad[i][1], bad[i][2], 0,
						&err), SCI_ERR_OUT_OF_RANGE);
	CHECK_ERR(SCIEnqueueDMATransfer(d.q, d.s, d.r, 0, 0, 0, 0, &err),
		  SCI_ERR_SIZE_ALIGNMENT);
	CHECK_OK(SCICreateSegment(d.sd, &raw, 10, SIZE, NULL, NULL, 0, &err));
	CHECK_ERR(SCIEnqueueDMATransfer(d.q, raw, d.r, 0, 0, 1, 0, &err),
		  SCI_ERR_SEGMENT_NOT_PREPARED);
	CHECK_EQ(SCIDMAQueueState(d.q), SCI_DMAQUEUE_IDLE);
}

/* ---- queues and segments in use ---- */

TEST(segments_of_a_queue_are_busy)
{
	sci_local_segment_t s;
	sci_remote_segment_t r;
	struct dma d;

	own_dma_open(&d, SIZE);
	CHECK_OK(SCICreateSegment(d.sd, &s, 10, SIZE, NULL, NULL, 0, &err));
	CHECK_OK(SCIPrepareSegment(s, 0, 0, &err));
	r = test_connect(d.sd, 4, 2);
	CHECK_OK(SCIEnqueueDMATransfer(d.q, s, r, 0, 0, SIZE, 0, &err));
	CHECK_ERR(SCIRemoveSegment(s, 0, &err), SCI_ERR_BUSY);
	CHECK_ERR(SCIDisconnectSegment(r, 0, &err), SCI_ERR_BUSY);
	CHECK_OK(SCIResetDMAQueue(d.q, 0, &err));
	CHECK_OK(SCIDisconnectSegment(r, 0, &err));
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
}

TEST(segments_of_a_done_transfer_are_free)
{
	struct dma d = { .sd = test_open() };
	sci_local_segment_t target;

	target = test_segment(d.sd, 2, SIZE, 0);
	d.s = test_segment(d.sd, 1, SIZE, 0);
	d.r = test_connect(d.sd, 4, 2);
	CHECK_OK(SCICreateDMAQueue(d.sd, &d.q, 0, 1, 0, &err));
	start(&d, 0);
	wait_for(d.q, SCI_DMAQUEUE_DONE);
	CHECK_OK(SCIDisconnectSegment(d.r, 0, &err));
	CHECK_OK(SCIRemoveSegment(d.s, 0, &err));
	CHECK_OK(SCIRemoveSegment(target, 0, &err));
	CHECK_OK(SCIRemoveDMAQueue(d.q, 0, &err));
	CHECK_OK(SCIClose(d.sd, 0, &err));
}

/* Large enough that the transfer is nearly always running at the next call. */
#define LARGE	((size_t)1 << (TEST_TSAN ? 26 : 29))

static void start_large(struct dma *d, unsigned int flags, void *arg)
{
	own_dma_open(d, LARGE);
	d->local[LARGE - 1] = 1;
	CHECK_OK(SCIStartDmaTransfer(d->q, d->s, d->r, 0, LARGE, 0, record_dma,
				     arg, flags, &err));
}

/* Return whether the transfer has written its last byte. */
__attribute__((no_sanitize("thread")))
static bool landed(const struct dma *d)
{
	return d->remote[LARGE - 1] != 0;
}

static void check_running(const struct dma *d, sci_error_t got, sci_error_t want)
{
	if (got != want && landed(d))
		SKIP("the transfer was too fast");
	CHECK_EQ(got, want);
}

TEST(a_posted_queue_is_busy)
{
	struct dma d;

	start_large(&d, 0, NULL);
	check_running(&d, ERR_OF(SCIResetDMAQueue(d.q, 0, &err)), SCI_ERR_ILLEGAL_OPERATION);
	check_running(&d, ERR_OF(SCIStartDmaTransfer(d.q, d.s, d.r, 0, 1, 0, NULL, NULL, 0,
						     &err)), SCI_ERR_ILLEGAL_OPERATION);
	check_running(&d, ERR_OF(SCIRemoveDMAQueue(d.q, 0, &err)), SCI_ERR_ILLEGAL_OPERATION);
	check_running(&d, ERR_OF(SCIWaitForDMAQueue(d.q, 0, 0, &err)), SCI_ERR_TIMEOUT);
	wait_for(d.q, SCI_DMAQUEUE_DONE);
	CHECK(landed(&d));
	CHECK_OK(SCIRemoveDMAQueue(d.q, 0, &err));
}

TEST(abort_of_a_posted_queue)
{
	sci_dma_queue_state_t state;
	struct dma d;

	start_large(&d, 0, NULL);
	CHECK_OK(SCIAbortDMAQueue(d.q, 0, &err));
	CHECK_OK(state = SCIWaitForDMAQueue(d.q, SCI_INFINITE_TIMEOUT, 0,
					    &err));
	CHECK(state == SCI_DMAQUEUE_ABORTED || state == SCI_DMAQUEUE_DONE);
	test_note("state %d", state);
	/* the queue can be used again */
	test_fill(d.local, SIZE, 1);
	start(&d, SCI_FLAG_DMA_WAIT);
	CHECK_EQ(SCIDMAQueueState(d.q), SCI_DMAQUEUE_DONE);
	CHECK(test_filled(d.remote, SIZE, 1));
	CHECK_OK(SCIResetDMAQueue(d.q, 0, &err));
}

TEST(abort_of_a_queue_with_a_callback)
{
	static struct recorder rec;
	struct record r;
	struct dma d;

	recorder_init(&rec);
	start_large(&d, SCI_FLAG_USE_CALLBACK, &rec);
	CHECK_OK(SCIAbortDMAQueue(d.q, 0, &err));
	r = recorder_get(&rec, 0);
	CHECK(r.status == SCI_ERR_CANCELLED || r.status == SCI_ERR_OK);
	CHECK_EQ(SCIDMAQueueState(d.q), r.status ? SCI_DMAQUEUE_ABORTED :
						   SCI_DMAQUEUE_DONE);
}

TEST(abort_of_a_queue_that_is_not_posted)
{
	struct dma d;

	own_dma_open(&d, SIZE);
	for (unsigned int i = 0; i < 10; i++) {
		CHECK_OK(SCIAbortDMAQueue(d.q, 0, &err));
		CHECK_EQ(SCIDMAQueueState(d.q), i ? SCI_DMAQUEUE_DONE :
						    SCI_DMAQUEUE_IDLE);
		test_fill(d.local, SIZE, i);
		start(&d, i % 2 ? SCI_FLAG_DMA_WAIT : 0);
		wait_for(d.q, SCI_DMAQUEUE_DONE);
		CHECK(test_filled(d.remote, SIZE, i));
	}
}

TEST(terminate_during_a_transfer)
{
	static struct recorder rec;
	struct dma d;

	recorder_init(&rec);
	leak_check_begin();
	start_large(&d, SCI_FLAG_USE_CALLBACK, &rec);
	SCITerminate();
	leak_check_end();
}

/* ---- errors during a transfer ---- */

TEST(the_target_is_gone)
{
	struct peer *p = peer_spawn(8, target, NULL);
	struct dma d = { .sd = test_open() };
	sci_error_t e;

	peer_expect(p, "ready");
	dma_open(&d, 8, SIZE);
	start(&d, SCI_FLAG_DMA_WAIT);
	peer_kill(p, SIGKILL);
	WAIT_UNTIL((e = ERR_OF(SCIStartDmaTransfer(d.q, d.s, d.r, 0, SIZE, 0,
						   NULL, NULL,
						   SCI_FLAG_DMA_WAIT, &err)))
		   != SCI_ERR_OK, TEST_WAIT_MS);
	CHECK(e == SCI_ERR_TRANSFER_FAILED ||
	      e == SCI_ERR_SEGMENT_NOT_CONNECTED);
	CHECK_OK(SCIResetDMAQueue(d.q, 0, &err));
}

TEST(all_packets_are_lost)
{
	static struct recorder rec;
	struct dma d;

	recorder_init(&rec);
	setenv("SCI_FAULT", "loss=1", 1);
	own_dma_open(&d, SIZE);
	CHECK_ERR(SCIStartDmaTransfer(d.q, d.s, d.r, 0, SIZE, 0, NULL, NULL,
				      SCI_FLAG_DMA_WAIT, &err),
		  SCI_ERR_TRANSFER_FAILED);
	CHECK_EQ(SCIDMAQueueState(d.q), SCI_DMAQUEUE_ERROR);
	start(&d, 0);
	wait_for(d.q, SCI_DMAQUEUE_ERROR);
	start_cb(&d, record_dma, &rec);
	CHECK_EQ(recorder_get(&rec, 0).status, SCI_ERR_TRANSFER_FAILED);
	CHECK_EQ(SCIDMAQueueState(d.q), SCI_DMAQUEUE_ERROR);
	CHECK_OK(SCIResetDMAQueue(d.q, 0, &err));
	CHECK_EQ(SCIDMAQueueState(d.q), SCI_DMAQUEUE_IDLE);
}

TEST(some_packets_are_lost)
{
	unsigned int failed = 0;
	struct dma d;

	setenv("SCI_FAULT", "loss=0.0005", 1);
	own_dma_open(&d, SIZE);
	for (unsigned int i = 0; i < 50; i++) {
		test_fill(d.local, SIZE, i);
		while (ERR_OF(SCIStartDmaTransfer(d.q, d.s, d.r, 0, SIZE, 0,
						  NULL, NULL,
						  SCI_FLAG_DMA_WAIT, &err)))
			failed++;
		CHECK(test_filled(d.remote, SIZE, i));
	}
	test_note("%u transfers repeated", failed);
	CHECK(failed > 0);
}

/* ---- several queues ---- */

TEST(queues_side_by_side)
{
	sci_dma_queue_t q[8];
	struct dma d;

	own_dma_open(&d, SIZE);
	for (int i = 0; i < 8; i++)
		CHECK_OK(SCICreateDMAQueue(d.sd, &q[i], 0, 4, 0, &err));
	for (unsigned int round = 0; round < 20; round++) {
		test_fill(d.local, SIZE, round);
		for (size_t i = 0; i < 8; i++)
			CHECK_OK(SCIStartDmaTransfer(q[i], d.s, d.r,
						     i * SIZE / 8, SIZE / 8,
						     i * SIZE / 8, NULL, NULL,
						     0, &err));
		for (int i = 0; i < 8; i++)
			wait_for(q[i], SCI_DMAQUEUE_DONE);
		CHECK(test_filled(d.remote, SIZE, round));
	}
}

TEST(nothing_leaks_in_a_loop)
{
	sci_dma_queue_t q;
	struct dma d;

	own_dma_open(&d, SIZE);
	start(&d, SCI_FLAG_DMA_WAIT);
	leak_check_begin();
	for (int i = 0; i < 200; i++) {
		CHECK_OK(SCICreateDMAQueue(d.sd, &q, 0, 4, 0, &err));
		CHECK_OK(SCIStartDmaTransfer(q, d.s, d.r, 0, SIZE, 0, NULL,
					     NULL, SCI_FLAG_DMA_WAIT, &err));
		CHECK_OK(SCIRemoveDMAQueue(q, 0, &err));
	}
	leak_check_end();
}
