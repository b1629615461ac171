// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Sequences and transfers: detection of errors, and repetition after errors. */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <sisci_api.h>

#include "selftests/harness.h"

#define SIZE	((size_t)65536)

/* A map of a segment of node 8 or of this node, and a sequence on the map. */
struct pipe {
	sci_desc_t sd;
	sci_remote_segment_t r;
	sci_map_t map;
	sci_sequence_t seq;
	volatile unsigned char *remote;
	unsigned char *local;		/* the owner's map, if the segment is of this node */
};

static void pipe_to(struct pipe *p, unsigned int node, struct recorder *rec)
{
	if (rec)
		p->r = test_connect_cb(p->sd, node, 1, rec);
	else
		p->r = test_connect(p->sd, node, 1);
	p->remote = test_map_remote(p->r, &p->map);
	CHECK_OK(SCICreateMapSequence(p->map, &p->seq, 0, &err));
}

static void own_pipe(struct pipe *p)
{
	p->sd = test_open();
	p->local = test_map_local(test_segment(p->sd, 1, SIZE, 0), NULL);
	pipe_to(p, 4, NULL);
}

static void owner(struct peer *self, void *arg)
{
	sci_desc_t sd;

	(void)arg;
	unsetenv("SCI_FAULT");
	sd = test_open();
	test_segment(sd, 1, SIZE, 0);
	test_interrupt(sd, 1);
	test_data_interrupt(sd, 1);
	peer_send(self, "ready");
	peer_expect(self, "leave");
}

static sci_sequence_status_t start(sci_sequence_t seq)
{
	sci_sequence_status_t st;

	CHECK_OK(st = SCIStartSequence(seq, 0, &err));
	return st;
}

static sci_sequence_status_t check(sci_sequence_t seq)
{
	sci_sequence_status_t st;

	CHECK_OK(st = SCICheckSequence(seq, 0, &err));
	return st;
}

/* ---- sequences ---- */

TEST(a_sequence_is_started_before_it_is_checked)
{
	sci_sequence_t seq;
	struct pipe p;

	own_pipe(&p);
	CHECK_ERR(SCICheckSequence(p.seq, 0, &err), SCI_ERR_ILLEGAL_OPERATION);
	CHECK_EQ(start(p.seq), SCI_SEQ_OK);
	CHECK_EQ(check(p.seq), SCI_SEQ_OK);
	CHECK_EQ(check(p.seq), SCI_SEQ_OK);
	CHECK_OK(SCIRemoveSequence(p.seq, 0, &err));
	CHECK_ERR(SCIStartSequence(p.seq, 0, &err), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_OK(SCICreateMapSequence(p.map, &seq, SCI_FLAG_FAST_BARRIER,
				      &err));
	CHECK_EQ(start(seq), SCI_SEQ_OK);
}

TEST(flags_of_sequences)
{
	static const unsigned int flags[] = {
		SCI_FLAG_NO_FLUSH, SCI_FLAG_NO_STORE_BARRIER,
		SCI_FLAG_NO_FLUSH | SCI_FLAG_NO_STORE_BARRIER,
		1, 2, 1 | 2	/* numbers as in programs */
	};
	sci_sequence_status_t st;
	sci_sequence_t seq = NULL;
	struct pipe p;

	own_pipe(&p);
	CHECK_EQ(start(p.seq), SCI_SEQ_OK);
	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		SCIFlush(p.seq, SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY);
		SCIStoreBarrier(p.seq, 0);
		CHECK_OK(st = SCICheckSequence(p.seq, flags[i], &err));
		CHECK_EQ(st, SCI_SEQ_OK);
	}
	CHECK_ERR(SCIStartSequence(p.seq, SCI_FLAG_NO_FLUSH, &err),
		  SCI_ERR_ILLEGAL_FLAG);
	CHECK_ERR(SCICheckSequence(p.seq, 0x80000000, &err),
		  SCI_ERR_ILLEGAL_FLAG);
	CHECK_ERR(SCICreateMapSequence(p.map, &seq, 0x80000000, &err),
		  SCI_ERR_ILLEGAL_FLAG);
	CHECK_ERR(SCICreateMapSequence(NULL, &seq, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCICreateMapSequence(p.map, NULL, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK(seq == NULL);
}

TEST(void_calls_take_any_handle)
{
	struct pipe p;

	own_pipe(&p);
	SCIStoreBarrier(NULL, 0);
	SCIFlushReadBuffers(NULL);
	SCIFlushReadBuffers(p.seq);
	CHECK_OK(SCIRemoveSequence(p.seq, 0, &err));
	SCIStoreBarrier(p.seq, 0);
	SCIFlush(p.seq, 0);
	SCIFlushReadBuffers(p.seq);
	SCIFlush((sci_sequence_t)p.map, 0);
}

TEST(several_sequences_of_one_map)
{
	sci_sequence_t seq[5];
	struct pipe p;

	own_pipe(&p);
	for (int i = 0; i < 5; i++) {
		CHECK_OK(SCICreateMapSequence(p.map, &seq[i], 0, &err));
		CHECK_EQ(start(seq[i]), SCI_SEQ_OK);
	}
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(check(seq[i]), SCI_SEQ_OK);
		CHECK_OK(SCIRemoveSequence(seq[i], 0, &err));
	}
}

/* ---- copies without faults ---- */

static const size_t parts[][2] = {	/* offset, size */
	{ 0, 1 }, { 1, 1 }, { 3, 5 }, { 63, 2 }, { 64, 64 }, { 1, 63 },
	{ 1, 64 }, { 7, 1000 }, { 4095, 4098 }, { 100, 50000 },
	{ SIZE - 1, 1 }, { 0, SIZE }
};

TEST(memcpy_of_any_part)
{
	static unsigned char in[SIZE], want[SIZE], out[SIZE];
	struct pipe p;

	own_pipe(&p);
	CHECK_EQ(start(p.seq), SCI_SEQ_OK);
	test_fill(in, SIZE, 1);
	memset(p.local, 0, SIZE);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		size_t off = parts[i][0], n = parts[i][1];

		CHECK_OK(SCIMemCpy(i % 2 ? p.seq : NULL, in + i, p.map, off,
				   n - (n == SIZE) * i,
				   i % 3 ? SCI_FLAG_ERROR_CHECK : 0, &err));
		memcpy(want + off, in + i, n - (n == SIZE) * i);
		SCIStoreBarrier(p.seq, 0);
		CHECK(!memcmp(p.local, want, SIZE));
		memset(out, 0xee, sizeof(out));
		CHECK_OK(SCIMemCpy(NULL, out, p.map, off, n,
				   SCI_FLAG_BLOCK_READ, &err));
		CHECK(!memcmp(out, want + off, n));
		CHECK(n == SIZE || out[n] == 0xee);
	}
	CHECK_EQ(check(p.seq), SCI_SEQ_OK);
}

TEST(memcopy_and_memwrite)
{
	static unsigned char in[SIZE], out[SIZE];
	struct pipe p;

	own_pipe(&p);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		size_t off = parts[i][0], n = parts[i][1];

		test_fill(in, n, i);
		CHECK_OK(SCIMemCopy(in, p.map, off, n, 0, &err));
		SCIStoreBarrier(p.seq, 0);
		CHECK(test_filled(p.local + off, n, i));
		CHECK_OK(SCIMemCopy(out, p.map, off, n, SCI_FLAG_BLOCK_READ |
				    SCI_FLAG_ERROR_CHECK, &err));
		CHECK(test_filled(out, n, i));
		test_fill(in, n, 100 + i);
		CHECK_OK(SCIMemWrite(in, p.remote + off, n, 0, &err));
		SCIStoreBarrier(p.seq, 0);
		CHECK(test_filled(p.local + off, n, 100 + i));
	}
}

TEST(copies_with_wrong_arguments)
{
	static unsigned char mem[SIZE];
	struct pipe p;

	own_pipe(&p);
	memset(p.local, 7, SIZE);
	CHECK_OK(SCIMemCpy(NULL, mem, p.map, 0, 0, 0, &err));
	CHECK_OK(SCIMemCpy(NULL, mem, p.map, SIZE, 0, 0, &err));
	CHECK_ERR(SCIMemCpy(NULL, mem, p.map, 1, SIZE, 0, &err),
		  SCI_ERR_OUT_OF_RANGE);
	CHECK_ERR(SCIMemCpy(NULL, mem, p.map, SIZE, 1, 0, &err),
		  SCI_ERR_OUT_OF_RANGE);
	CHECK_ERR(SCIMemCpy(NULL, mem, p.map, SIZE_MAX, 2, 0, &err),
		  SCI_ERR_OUT_OF_RANGE);
	CHECK_ERR(SCIMemCpy(NULL, mem, p.map, 0, 1, 0x80000000, &err),
		  SCI_ERR_ILLEGAL_FLAG);
	CHECK_ERR(SCIMemCpy(NULL, NULL, p.map, 0, 1, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCIMemCpy(NULL, mem, NULL, 0, 1, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCIMemCpy((sci_sequence_t)p.map, mem, p.map, 0, 1, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCIMemCopy(mem, p.map, 0, SIZE + 1, 0, &err),
		  SCI_ERR_OUT_OF_RANGE);
	for (size_t i = 0; i < SIZE; i++)
		CHECK(p.local[i] == 7);
	CHECK_OK(SCIUnmapSegment(p.map, 0, &err));
	CHECK_ERR(SCIMemCpy(NULL, mem, p.map, 0, 1, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
}

TEST(a_memcpy_to_a_local_map_does_no_harm)
{
	sci_desc_t sd = test_open();
	char *mem, c = 1;
	sci_map_t map;

	mem = test_map_local(test_segment(sd, 1, SIZE, 0), &map);
	if (!ERR_OF(SCIMemCpy(NULL, &c, map, 5, 1, 0, &err)))
		CHECK_EQ(mem[5], 1);
}

TEST(cache_sync)
{
	sci_desc_t sd = test_open();
	char *mem, *heap = malloc(SIZE);
	sci_map_t map;

	mem = test_map_local(test_segment(sd, 1, SIZE, 0), &map);
	memset(mem, 1, SIZE);
	memset(heap, 2, SIZE);
	CHECK_OK(SCICacheSync(map, mem, SIZE, SCI_FLAG_CACHE_FLUSH, &err));
	CHECK_OK(SCICacheSync(map, mem + 5, 100, SCI_FLAG_CACHE_FLUSH |
			      SCI_FLAG_CACHE_INVALIDATE, &err));
	CHECK_OK(SCICacheSync(NULL, heap + 1, SIZE - 1, SCI_FLAG_CACHE_FLUSH |
			      SCI_FLAG_CACHE_INVALIDATE, &err));
	CHECK_EQ(mem[5], 1);
	CHECK_EQ(heap[SIZE - 1], 2);
	CHECK_ERR(SCICacheSync(map, mem + 1, SIZE, SCI_FLAG_CACHE_FLUSH, &err),
		  SCI_ERR_OUT_OF_RANGE);
	CHECK_ERR(SCICacheSync(map, mem, 1, 0x80000000, &err),
		  SCI_ERR_ILLEGAL_FLAG);
	free(heap);
}

/* ---- blocks from map to map ---- */

struct blocks {
	struct pipe p;
	sci_map_t source;
	unsigned char *mem;
};

static void blocks_open(struct blocks *b)
{
	own_pipe(&b->p);
	b->mem = test_map_local(test_segment(b->p.sd, 2, SIZE, 0), &b->source);
}

TEST(blocks)
{
	struct blocks b;

	blocks_open(&b);
	test_fill(b.mem, SIZE, 1);
	CHECK_OK(SCITransferBlock(b.source, 0, b.p.map, 0, SIZE, 0, &err));
	CHECK(test_filled(b.p.local, SIZE, 1));
	CHECK_OK(SCITransferBlock(b.source, 5, b.p.map, 77, 3001, 0, &err));
	CHECK(!memcmp(b.p.local + 77, b.mem + 5, 3001));
	/* in the other direction */
	test_fill(b.p.local, SIZE, 2);
	CHECK_OK(SCITransferBlock(b.p.map, 0, b.source, 0, SIZE, 0, &err));
	CHECK(test_filled(b.mem, SIZE, 2));
	CHECK_ERR(SCITransferBlock(b.source, 1, b.p.map, 0, SIZE, 0, &err),
		  SCI_ERR_OUT_OF_RANGE);
	CHECK_ERR(SCITransferBlock(b.source, 0, b.p.map, 1, SIZE, 0, &err),
		  SCI_ERR_OUT_OF_RANGE);
	CHECK_ERR(SCITransferBlock(NULL, 0, b.p.map, 0, 1, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
}

TEST(blocks_in_the_background)
{
	sci_block_transfer_t t;
	struct blocks b;

	blocks_open(&b);
	for (unsigned int i = 0; i < 20; i++) {
		test_fill(b.mem, SIZE, i);
		CHECK_OK(SCITransferBlockAsync(b.source, 0, b.p.map, 0, SIZE,
					       &t, NULL, NULL, 0, &err));
		CHECK_OK(SCIWaitForBlockTransfer(t, SCI_INFINITE_TIMEOUT, 0,
						 &err));
		CHECK(test_filled(b.p.local, SIZE, i));
		CHECK_ERR(SCIWaitForBlockTransfer(t, 0, 0, &err),
			  SCI_ERR_ILLEGAL_PARAMETER);
	}
}

TEST(blocks_with_a_callback)
{
	static struct recorder rec;
	sci_block_transfer_t t;
	struct blocks b;

	recorder_init(&rec);
	blocks_open(&b);
	test_fill(b.mem, SIZE, 1);
	CHECK_OK(SCITransferBlockAsync(b.source, 0, b.p.map, 0, SIZE, &t,
				       record_block_transfer, &rec,
				       SCI_FLAG_USE_CALLBACK, &err));
	CHECK_EQ(recorder_get(&rec, 0).status, SCI_ERR_OK);
	CHECK(recorder_get(&rec, 0).handle == t);
	CHECK(test_filled(b.p.local, SIZE, 1));
}

TEST(the_library_ends_during_blocks_with_a_callback)
{
	const size_t size = (size_t)64 << 20;
	static struct recorder rec;

	recorder_init(&rec);
	for (unsigned int i = 0; i < 10; i++) {
		sci_desc_t sd = test_open();
		sci_map_t source, dest;
		sci_block_transfer_t t;
		volatile char *there;
		sci_error_t status;

		memset(test_map_local(test_segment(sd, 1, size, 0), &source), 1, size);
		there = (void *)test_map_local(test_segment(sd, 2, size, 0), NULL);
		test_map_remote(test_connect(sd, 4, 2), &dest);
		CHECK_OK(SCITransferBlockAsync(source, 0, dest, 0, size, &t,
					       record_block_transfer, &rec,
					       SCI_FLAG_USE_CALLBACK, &err));
		while (!*there && recorder_count(&rec) == i)
			sched_yield();
		SCITerminate();
		CHECK_EQ(recorder_count(&rec), i + 1);
		status = recorder_get(&rec, i).status;
		CHECK(status == SCI_ERR_OK || status == SCI_ERR_CANCELLED);
	}
}

TEST(abort_of_a_block)
{
	const size_t size = (size_t)1 << 29;
	sci_map_t source, dest;
	sci_block_transfer_t t;
	sci_error_t abort, wait, unmap;
	sci_desc_t sd = test_open();

	test_map_local(test_segment(sd, 1, size, 0), &source);
	test_segment(sd, 2, size, 0);
	test_map_remote(test_connect(sd, 4, 2), &dest);
	CHECK_OK(SCITransferBlockAsync(source, 0, dest, 0, size, &t, NULL,
				       NULL, 0, &err));
	unmap = ERR_OF(SCIUnmapSegment(source, 0, &err));
	abort = ERR_OF(SCIAbortBlockTransfer(t, 0, &err));
	wait = ERR_OF(SCIWaitForBlockTransfer(t, SCI_INFINITE_TIMEOUT, 0,
					      &err));
	if (abort) {	/* the transfer had ended before */
		CHECK_EQ(abort, SCI_ERR_ILLEGAL_OPERATION);
		CHECK_EQ(wait, SCI_ERR_OK);
	} else {
		CHECK_EQ(wait, SCI_ERR_CANCELLED);
		CHECK_EQ(unmap, SCI_ERR_BUSY);
	}
	test_note("abort %#x, wait %#x, unmap %#x", abort, wait, unmap);
	if (unmap)
		CHECK_OK(SCIUnmapSegment(source, 0, &err));
	CHECK_OK(SCIUnmapSegment(dest, 0, &err));
}

/* ---- faults ---- */

static void bad_fault(struct peer *self, void *arg)
{
	(void)self;
	setenv("SCI_FAULT", arg, 1);
	CHECK_ERR(SCIInitialize(0, &err), SCI_ERR_ILLEGAL_PARAMETER);
}

TEST(faults_that_make_no_sense)
{
	static char bad[][16] = {
		"loss", "loss=", "loss=2", "loss=-1", "loss=x", "nonsense=1",
		"linkdown=", "linkdown=1:", "linkdown=a", "seed=-1", "1",
		"loss=0.1;seed=1", "loss=nan"
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		peer_join(peer_spawn(4, bad_fault, bad[i]));
}

typedef sci_error_t copy_fn(struct pipe *p, void *mem, size_t off, size_t n);

/* The loop of programs: repeat until all data have arrived. */
static sci_error_t by_sequence(struct pipe *p, void *mem, size_t off, size_t n)
{
	CHECK_OK(SCIMemCpy(p->seq, mem, p->map, off, n, 0, &err));
	return check(p->seq) == SCI_SEQ_OK ? SCI_ERR_OK :
					     SCI_ERR_TRANSFER_FAILED;
}

static sci_error_t by_checked_memcpy(struct pipe *p, void *mem, size_t off,
				     size_t n)
{
	return ERR_OF(SCIMemCpy(p->seq, mem, p->map, off, n,
				SCI_FLAG_ERROR_CHECK, &err));
}

static sci_error_t by_memcpy_without_sequence(struct pipe *p, void *mem,
					      size_t off, size_t n)
{
	return ERR_OF(SCIMemCpy(NULL, mem, p->map, off, n,
				SCI_FLAG_ERROR_CHECK, &err));
}

static sci_error_t by_memcopy(struct pipe *p, void *mem, size_t off, size_t n)
{
	return ERR_OF(SCIMemCopy(mem, p->map, off, n, 0, &err));
}

static sci_error_t by_memwrite(struct pipe *p, void *mem, size_t off, size_t n)
{
	sci_error_t e = ERR_OF(SCIMemWrite(mem, p->remote + off, n, 0, &err));

	/* SCIMemWrite() checks nothing; the sequence does */
	return !e && SCICheckSequence(p->seq, 0, NULL) != SCI_SEQ_OK ?
	       SCI_ERR_TRANSFER_FAILED : e;
}

static void check_resending(const char *fault, copy_fn *copy)
{
	static unsigned char mem[SIZE], want[SIZE];
	unsigned int repeated = 0;
	struct pipe p;

	setenv("SCI_FAULT", fault, 1);
	own_pipe(&p);
	memset(p.local, 0, SIZE);
	CHECK_EQ(start(p.seq), SCI_SEQ_OK);
	for (unsigned int i = 0; i < 500; i++) {
		size_t off = i * 131 % 40000, n = 1 + i * 37 % 3000;
		sci_error_t e;

		test_fill(mem, n, i);
		memcpy(want + off, mem, n);
		while ((e = copy(&p, mem, off, n)) != SCI_ERR_OK) {
			CHECK_EQ(e, SCI_ERR_TRANSFER_FAILED);
			repeated++;
		}
		CHECK(!memcmp(p.local, want, SIZE));
	}
	test_note("%u transfers repeated", repeated);
	CHECK(repeated > 0);
}

TEST(lost_packets_and_a_sequence)
{
	check_resending("loss=0.01", by_sequence);
}

TEST(lost_packets_and_a_checked_memcpy)
{
	check_resending("loss=0.01,seed=7", by_checked_memcpy);
}

TEST(lost_packets_and_a_memcpy_without_sequence)
{
	check_resending("loss=0.01,seed=8", by_memcpy_without_sequence);
}

TEST(lost_packets_and_memcopy)
{
	check_resending("loss=0.01,seed=9", by_memcopy);
}

TEST(lost_packets_and_memwrite)
{
	check_resending("loss=0.01,seed=10", by_memwrite);
}

TEST(retriable_checks)
{
	check_resending("retriable=0.3", by_sequence);
}

TEST(loss_and_retriable_checks)
{
	check_resending("loss=0.005,retriable=0.1,seed=3", by_sequence);
}

TEST(lost_packets_and_blocks)
{
	unsigned int repeated = 0;
	struct blocks b;
	sci_error_t e;

	setenv("SCI_FAULT", "loss=0.0005", 1);
	blocks_open(&b);
	for (unsigned int i = 0; i < 50; i++) {
		test_fill(b.mem, SIZE, i);
		while ((e = ERR_OF(SCITransferBlock(b.source, 0, b.p.map, 0,
						    SIZE, 0, &err)))) {
			CHECK_EQ(e, SCI_ERR_TRANSFER_FAILED);
			repeated++;
		}
		CHECK(test_filled(b.p.local, SIZE, i));
	}
	CHECK(repeated > 0);
}

TEST(everything_is_lost)
{
	static unsigned char mem[SIZE];
	struct pipe p;

	setenv("SCI_FAULT", "loss=1", 1);
	own_pipe(&p);
	memset(p.local, 7, SIZE);
	CHECK_EQ(start(p.seq), SCI_SEQ_OK);
	for (int i = 0; i < 10; i++) {
		CHECK_OK(SCIMemCpy(p.seq, mem, p.map, 0, SIZE, 0, &err));
		CHECK_EQ(check(p.seq), SCI_SEQ_RETRIABLE);
	}
	for (size_t i = 0; i < SIZE; i++)
		CHECK(p.local[i] == 7);
	/* injected faults affect neither plain stores nor reads */
	p.remote[0] = 1;
	SCIStoreBarrier(p.seq, 0);
	CHECK_EQ(p.local[0], 1);
	CHECK_OK(SCIMemCpy(NULL, mem, p.map, 0, SIZE, SCI_FLAG_BLOCK_READ,
			   &err));
	CHECK_EQ(mem[1], 7);
	/* nothing was stored since: an error is reported once */
	CHECK_EQ(start(p.seq), SCI_SEQ_OK);
	CHECK_EQ(check(p.seq), SCI_SEQ_OK);
}

TEST(a_fatal_error_stays)
{
	struct pipe p;
	char c = 1;

	setenv("SCI_FAULT", "fatal=1", 1);
	own_pipe(&p);
	CHECK_EQ(start(p.seq), SCI_SEQ_OK);
	CHECK_EQ(check(p.seq), SCI_SEQ_NOT_RETRIABLE);
	for (int i = 0; i < 10; i++) {
		CHECK_EQ(SCICheckSequence(p.seq, 0, NULL),
			 SCI_SEQ_NOT_RETRIABLE);
		CHECK_EQ(SCIStartSequence(p.seq, 0, NULL),
			 SCI_SEQ_NOT_RETRIABLE);
	}
	CHECK_ERR(SCIMemCpy(p.seq, &c, p.map, 0, 1, SCI_FLAG_ERROR_CHECK,
			    &err), SCI_ERR_TRANSFER_FAILED);
	CHECK_OK(SCIRemoveSequence(p.seq, 0, &err));
	CHECK_OK(SCIUnmapSegment(p.map, 0, &err));
	CHECK_OK(SCIDisconnectSegment(p.r, 0, &err));
	/* the error does not affect another connection */
	pipe_to(&p, 4, NULL);
	CHECK_EQ(start(p.seq), SCI_SEQ_OK);
}

static void draw(struct peer *self, void *arg)
{
	unsigned char drawn[200];
	struct pipe p;

	setenv("SCI_FAULT", arg, 1);
	own_pipe(&p);
	CHECK_EQ(start(p.seq), SCI_SEQ_OK);
	for (size_t i = 0; i < sizeof(drawn); i++)
		drawn[i] = check(p.seq);
	peer_put(self, drawn, sizeof(drawn));
}

TEST(a_seed_makes_a_run_repeatable)
{
	static char faults[][32] = {
		"retriable=0.5", "retriable=0.5,seed=1", "retriable=0.5,seed=2"
	};
	unsigned char drawn[3][200];

	for (int i = 0; i < 3; i++) {
		struct peer *p = peer_spawn(4, draw, faults[i]);

		peer_get(p, drawn[i], sizeof(drawn[i]));
		peer_join(p);
	}
	CHECK(!memcmp(drawn[0], drawn[1], 200));
	CHECK(memcmp(drawn[0], drawn[2], 200));
}

/* ---- the link ---- */

static unsigned int link_operational(void)
{
	unsigned int up = 77;
	sci_query_adapter_t q = {
		.subcommand = SCI_Q_ADAPTER_LINK_OPERATIONAL, .data = &up,
	};

	CHECK_OK(SCIQuery(SCI_Q_ADAPTER, &q, 0, &err));
	return up;
}

TEST(nothing_connects_while_the_link_is_down)
{
	struct peer *p = peer_spawn(8, owner, NULL);
	sci_remote_data_interrupt_t d;
	sci_remote_interrupt_t i;
	sci_remote_segment_t r;
	sci_desc_t sd;

	peer_expect(p, "ready");
	setenv("SCI_FAULT", "linkdown=0", 1);
	sd = test_open();
	CHECK_EQ(link_operational(), 0);
	CHECK_ERR(SCIConnectSegment(sd, &r, 8, 1, 0, NULL, NULL,
				    SCI_INFINITE_TIMEOUT, 0, &err),
		  SCI_ERR_NO_LINK_ACCESS);
	CHECK_ERR(SCIConnectInterrupt(sd, &i, 8, 0, 1, SCI_INFINITE_TIMEOUT, 0,
				      &err), SCI_ERR_NO_LINK_ACCESS);
	CHECK_ERR(SCIConnectDataInterrupt(sd, &d, 8, 0, 1,
					  SCI_INFINITE_TIMEOUT, 0, &err),
		  SCI_ERR_NO_LINK_ACCESS);
	CHECK_ERR(SCIProbeNode(sd, 0, 8, 0, &err), SCI_ERR_NO_LINK_ACCESS);
	/* the local node needs no link */
	CHECK_EQ(SCIProbeNode(sd, 0, 4, 0, NULL), 1);
}

TEST(connect_again_when_the_link_is_up)
{
	struct peer *p = peer_spawn(8, owner, NULL);
	sci_remote_segment_t r;
	unsigned int refused = 0;
	sci_error_t e;
	sci_desc_t sd;

	peer_expect(p, "ready");
	setenv("SCI_FAULT", "linkdown=0:300", 1);
	sd = test_open();
	do {
		e = ERR_OF(SCIConnectSegment(sd, &r, 8, 1, 0, NULL, NULL, 0, 0,
					     &err));
		refused += e == SCI_ERR_NO_LINK_ACCESS;
		test_pause();
	} while (e == SCI_ERR_NO_LINK_ACCESS);
	CHECK_EQ(e, SCI_ERR_OK);
	CHECK(refused > 0);
}

TEST(a_sequence_is_pending_while_the_link_is_down)
{
	struct peer *peer = peer_spawn(8, owner, NULL);
	sci_sequence_status_t st;
	struct pipe p;

	peer_expect(peer, "ready");
	setenv("SCI_FAULT", "linkdown=1000:500", 1);
	p.sd = test_open();
	pipe_to(&p, 8, NULL);
	CHECK_EQ(start(p.seq), SCI_SEQ_OK);
	CHECK_EQ(check(p.seq), SCI_SEQ_OK);
	WAIT_UNTIL((st = check(p.seq)) != SCI_SEQ_OK, TEST_WAIT_MS);
	CHECK_EQ(st, SCI_SEQ_PENDING);
	WAIT_UNTIL((st = check(p.seq)) != SCI_SEQ_PENDING, TEST_WAIT_MS);
	/* stores during the outage may be lost */
	CHECK_EQ(st, SCI_SEQ_RETRIABLE);
	CHECK_EQ(start(p.seq), SCI_SEQ_OK);
	CHECK_EQ(check(p.seq), SCI_SEQ_OK);
}

TEST(transfers_fail_while_the_link_is_down)
{
	static unsigned char mem[SIZE];
	struct peer *peer = peer_spawn(8, owner, NULL);
	sci_error_t e;
	struct pipe p;

	peer_expect(peer, "ready");
	setenv("SCI_FAULT", "linkdown=1000:500", 1);
	p.sd = test_open();
	pipe_to(&p, 8, NULL);
	WAIT_UNTIL((e = by_memcpy_without_sequence(&p, mem, 0, SIZE)) !=
		   SCI_ERR_OK, TEST_WAIT_MS);
	CHECK_EQ(e, SCI_ERR_TRANSFER_FAILED);
	test_fill(mem, SIZE, 1);
	WAIT_UNTIL(!by_memcpy_without_sequence(&p, mem, 0, SIZE),
		   TEST_WAIT_MS);
	CHECK(test_filled(p.remote, SIZE, 1));
}

TEST(triggers_fail_while_the_link_is_down)
{
	struct peer *p = peer_spawn(8, owner, NULL);
	sci_remote_data_interrupt_t d;
	sci_remote_interrupt_t i;
	sci_error_t e;
	sci_desc_t sd;
	char c = 1;

	peer_expect(p, "ready");
	setenv("SCI_FAULT", "linkdown=1000:500", 1);
	sd = test_open();
	i = test_connect_interrupt(sd, 8, 1);
	d = test_connect_data_interrupt(sd, 8, 1);
	CHECK_OK(SCITriggerDataInterrupt(d, &c, 1, 0, &err));
	WAIT_UNTIL((e = ERR_OF(SCITriggerInterrupt(i, 0, &err))) !=
		   SCI_ERR_OK, TEST_WAIT_MS);
	CHECK_EQ(e, SCI_ERR_NO_LINK_ACCESS);
	CHECK_ERR(SCITriggerDataInterrupt(d, &c, 1, 0, &err),
		  SCI_ERR_NO_LINK_ACCESS);
	WAIT_UNTIL(!ERR_OF(SCITriggerInterrupt(i, 0, &err)), TEST_WAIT_MS);
	CHECK_OK(SCITriggerDataInterrupt(d, &c, 1, 0, &err));
}

TEST(the_link_is_called_back)
{
	static const int reasons[] = {
		SCI_CB_NOT_OPERATIONAL, SCI_CB_OPERATIONAL,
		SCI_CB_NOT_OPERATIONAL, SCI_CB_OPERATIONAL
	};
	static struct recorder rec[2];
	struct peer *peer = peer_spawn(8, owner, NULL);
	struct pipe p[2];

	peer_expect(peer, "ready");
	setenv("SCI_FAULT", "linkdown=1000:200,linkdown=1500:200", 1);
	p[0].sd = test_open();
	for (unsigned int k = 0; k < 2; k++) {
		p[k].sd = p[0].sd;
		recorder_init(&rec[k]);
		pipe_to(&p[k], 8, &rec[k]);
	}
	for (unsigned int i = 0; i < 4; i++)
		for (unsigned int k = 0; k < 2; k++) {
			struct record r = recorder_get(&rec[k], i);

			CHECK_EQ(r.reason, reasons[i]);
			CHECK(r.handle == p[k].r);
		}
	CHECK_EQ(link_operational(), 1);
	CHECK_EQ(start(p[0].seq), SCI_SEQ_OK);
	CHECK_EQ(check(p[0].seq), SCI_SEQ_OK);
}

TEST(the_link_is_an_event_to_wait_for)
{
	struct peer *peer = peer_spawn(8, owner, NULL);
	sci_segment_cb_reason_t reason;
	struct pipe p;

	peer_expect(peer, "ready");
	setenv("SCI_FAULT", "linkdown=1000:200", 1);
	p.sd = test_open();
	pipe_to(&p, 8, NULL);
	CHECK_OK(reason = SCIWaitForRemoteSegmentEvent(p.r, NULL, TEST_WAIT_MS,
						       0, &err));
	CHECK_EQ(reason, SCI_CB_NOT_OPERATIONAL);
	CHECK_OK(reason = SCIWaitForRemoteSegmentEvent(p.r, NULL, TEST_WAIT_MS,
						       0, &err));
	CHECK_EQ(reason, SCI_CB_OPERATIONAL);
}

/* ---- death of the owner ---- */

TEST(transfers_to_a_dead_owner_fail)
{
	static unsigned char mem[SIZE];
	struct peer *peer = peer_spawn(8, owner, NULL);
	struct pipe p;

	peer_expect(peer, "ready");
	p.sd = test_open();
	pipe_to(&p, 8, NULL);
	CHECK_EQ(start(p.seq), SCI_SEQ_OK);
	peer_kill(peer, SIGKILL);
	WAIT_UNTIL(by_memcpy_without_sequence(&p, mem, 0, SIZE) ==
		   SCI_ERR_TRANSFER_FAILED, TEST_WAIT_MS);
	CHECK_ERR(SCIMemCopy(mem, p.map, 0, SIZE, 0, &err),
		  SCI_ERR_TRANSFER_FAILED);
	/* stores without a check do no harm */
	p.remote[0] = 1;
	CHECK_EQ(SCICheckSequence(p.seq, 0, NULL), SCI_SEQ_NOT_RETRIABLE);
	CHECK_OK(SCIRemoveSequence(p.seq, 0, &err));
	CHECK_OK(SCIUnmapSegment(p.map, 0, &err));
	CHECK_OK(SCIDisconnectSegment(p.r, 0, &err));
	CHECK_OK(SCIClose(p.sd, 0, &err));
}

TEST(blocks_from_a_dead_owner_fail)
{
	struct peer *peer = peer_spawn(8, owner, NULL);
	sci_block_transfer_t t;
	sci_map_t dest;
	struct pipe p;

	peer_expect(peer, "ready");
	p.sd = test_open();
	pipe_to(&p, 8, NULL);
	test_map_local(test_segment(p.sd, 2, SIZE, 0), &dest);
	CHECK_OK(SCITransferBlock(p.map, 0, dest, 0, SIZE, 0, &err));
	peer_kill(peer, SIGKILL);
	WAIT_UNTIL(start(p.seq) == SCI_SEQ_NOT_RETRIABLE, TEST_WAIT_MS);
	CHECK_ERR(SCITransferBlock(p.map, 0, dest, 0, SIZE, 0, &err), SCI_ERR_TRANSFER_FAILED);
	CHECK_OK(SCITransferBlockAsync(p.map, 0, dest, 0, SIZE, &t, NULL, NULL, 0, &err));
	CHECK_ERR(SCIWaitForBlockTransfer(t, SCI_INFINITE_TIMEOUT, 0, &err),
		  SCI_ERR_TRANSFER_FAILED);
}
