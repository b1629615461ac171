// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Store blocks into another machine's memory while the fabric has faults, and check
 * them there:
 *
 *	CLUSTER_PEER=4 SCI_TEST_NODE=8 stores owner
 *	CLUSTER_PEER=8 SCI_TEST_NODE=4 stores writer
 *
 * The writer publishes a block when SCICheckSequence() has confirmed it. The owner
 * checks every byte of published blocks, and keeps their number in its own memory,
 * where the writer reads it. Copies, plain stores and DMA take turns. If the
 * connection is lost and CLUSTER_MAY_LOSE is set, the writer makes another one and
 * continues after the owner's last block.
 */
#include <string.h>
#include <unistd.h>

#include <sisci_api.h>

#include "selftests/cluster/endure.h"

#define SLOTS		8u
#define BLOCK		16384u
#define END		(1ull << 40)	/* published with the last block */
#define ONES		(~0ull)		/* value of a failed load */

struct control {
	volatile uint64_t published;	/* written by the writer */
	unsigned char rest[56];
	volatile uint64_t checked;	/* written by the owner */
};

#define SIZE		(4096u + SLOTS * BLOCK)

static unsigned char *slot_of(void *p, uint64_t n)
{
	return (unsigned char *)p + 4096 + n % SLOTS * BLOCK;
}

static unsigned int block_size(uint64_t n)
{
	return (unsigned int)(1 + n * 2654435761u % BLOCK);
}

/* ---- the owner ---- */

TEST(owner)
{
	uint64_t until = test_now_ms() + endure_seconds() * 1000ull +
			 RECOVERY_MS, n = 0, last, bytes = 0;
	unsigned int peer = number_of("CLUSTER_PEER", 4);
	sci_desc_t sd = test_open();
	struct control *c;
	sci_sequence_t seq;
	sci_map_t map;
	void *p;

	p = test_map_local(test_segment(sd, peer, SIZE, 0), &map);
	CHECK_OK(SCICreateMapSequence(map, &seq, 0, &err));
	c = p;
	do {
		if (test_now_ms() > until)
			FAIL("not told to end, at block %llu",
			     (unsigned long long)n);
		SCIFlushReadBuffers(seq);
		last = c->published;
		for (; n < (last & (END - 1)); c->checked = n) {
			n++;
			if (!test_filled(slot_of(p, n), block_size(n),
					 (unsigned int)n))
				FAIL("block %llu of %llu is not what was stored",
				     (unsigned long long)n,
				     (unsigned long long)last);
			bytes += block_size(n);
		}
		SCIStoreBarrier(seq, 0);
		test_pause();
	} while (!(last & END));
	c->checked = n | END;
	SCIStoreBarrier(seq, 0);
	test_note("verified %llu blocks %llu bytes", (unsigned long long)n,
		  (unsigned long long)bytes);
	/* wait until the writer has read the result */
	WAIT_UNTIL((SCIFlushReadBuffers(seq), c->published == ONES - 1), RECOVERY_MS);
}

/* ---- the writer ---- */

struct writer {
	unsigned int peer;
	sci_desc_t sd;
	sci_local_segment_t own;
	unsigned char *memory;
	sci_dma_queue_t queue;
	sci_remote_segment_t r;
	sci_map_t map;
	sci_sequence_t seq;
	volatile struct control *c;
	uint64_t next;
	uint64_t repeated, connections;
	uint64_t until;
};

static void writer_connect(struct writer *w)
{
	uint64_t until = test_now_ms() + RECOVERY_MS;
	sci_error_t e;

	if (w->connections++ && !may_lose_connections())
		FAIL("the connection is lost, after %llu blocks",
		     (unsigned long long)w->next);
	for (;;) {
		e = ERR_OF(SCIConnectSegment(w->sd, &w->r, w->peer,
					     number_of("SCI_TEST_NODE", 4), 0,
					     NULL, NULL, 2000, 0, &err));
		if (e != SCI_ERR_OK) {
			if (test_now_ms() > until)
				FAIL("no connection: %s", SCIGetErrorString(e));
			usleep(20000);
			continue;
		}
		w->c = NULL;
		e = ERR_OF(w->c = SCIMapRemoteSegment(w->r, &w->map, 0, SIZE,
						      NULL, 0, &err));
		if (e == SCI_ERR_OK)
			e = ERR_OF(SCICreateMapSequence(w->map, &w->seq, 0,
							&err));
		if (e == SCI_ERR_OK)
			return;
		if (w->c)
			SCIUnmapSegment(w->map, 0, &e);
		SCIDisconnectSegment(w->r, 0, &e);
	}
}

static void writer_disconnect(struct writer *w)
{
	CHECK_OK(SCIRemoveSequence(w->seq, 0, &err));
	CHECK_OK(SCIUnmapSegment(w->map, 0, &err));
	CHECK_OK(SCIDisconnectSegment(w->r, 0, &err));
}

enum outcome { ARRIVED, AGAIN, LOST };

static enum outcome outcome_of(sci_sequence_status_t st)
{
	return st == SCI_SEQ_OK ? ARRIVED :
	       st == SCI_SEQ_NOT_RETRIABLE ? LOST : AGAIN;
}

static enum outcome begin(struct writer *w)
{
	uint64_t until = test_now_ms() + RECOVERY_MS;
	sci_sequence_status_t st = SCI_SEQ_OK;

	do {
		CHECK_OK(st = SCIStartSequence(w->seq, 0, &err));
		if (st != SCI_SEQ_PENDING)
			return outcome_of(st);
		usleep(1000);
	} while (test_now_ms() < until);
	return LOST;
}

static enum outcome check(struct writer *w)
{
	sci_sequence_status_t st;

	CHECK_OK(st = SCICheckSequence(w->seq, 0, &err));
	return outcome_of(st);
}

static enum outcome by_dma(struct writer *w, size_t to, unsigned int size)
{
	sci_dma_queue_state_t state;
	sci_error_t e;

	e = ERR_OF(SCIStartDmaTransfer(w->queue, w->own, w->r, 0, size, to,
				       NULL, NULL, 0, &err));
	if (e != SCI_ERR_OK)
		return AGAIN;
	state = SCIWaitForDMAQueue(w->queue, RECOVERY_MS, 0, &e);
	CHECK_OK(SCIResetDMAQueue(w->queue, 0, &err));
	if (state == SCI_DMAQUEUE_DONE)
		return ARRIVED;
	CHECK_EQ(state, SCI_DMAQUEUE_ERROR);
	return AGAIN;
}

static enum outcome put_block(struct writer *w, uint64_t n)
{
	unsigned int size = block_size(n), way = (unsigned int)(n % 3);
	volatile unsigned char *to = slot_of((void *)(uintptr_t)w->c, n);
	size_t at = 4096 + n % SLOTS * BLOCK;
	enum outcome o = begin(w);
	sci_error_t e;

	if (o != ARRIVED)
		return o;
	test_fill(w->memory, size, (unsigned int)n);
	switch (way) {
	case 0:
		e = ERR_OF(SCIMemCpy(w->seq, w->memory, w->map, at, size, 0,
				     &err));
		if (e != SCI_ERR_OK)
			return check(w) == LOST ? LOST : AGAIN;
		break;
	case 1:
		for (unsigned int i = 0; i < size; i++)
			to[i] = w->memory[i];
		break;
	default:
		o = by_dma(w, at, size);
		return o == AGAIN && check(w) == LOST ? LOST : o;
	}
	return check(w);
}

static enum outcome publish(struct writer *w, uint64_t value)
{
	enum outcome o = begin(w);

	if (o != ARRIVED)
		return o;
	w->c->published = value;
	return check(w);
}

/* Read the number of checked blocks, or ONES if a check fails. */
static uint64_t checked(struct writer *w, enum outcome *o)
{
	uint64_t n;

	*o = begin(w);
	if (*o != ARRIVED)
		return ONES;
	n = w->c->checked;
	*o = check(w);
	return *o == ARRIVED ? n : ONES;
}

/* Wait until a slot is free for block @n. */
static enum outcome room(struct writer *w, uint64_t n)
{
	uint64_t until = test_now_ms() + RECOVERY_MS, done;
	enum outcome o;

	do {
		done = checked(w, &o);
		if (o == LOST)
			return LOST;
		if (o == ARRIVED && n <= done + SLOTS)
			return ARRIVED;
		test_pause();
	} while (test_now_ms() < until);
	FAIL("the owner does not come on: %llu, at %llu",
	     (unsigned long long)done, (unsigned long long)n);
}

static enum outcome insist(struct writer *w, uint64_t n, uint64_t value)
{
	enum outcome o;

	while ((o = n ? put_block(w, n) : publish(w, value)) == AGAIN)
		w->repeated++;
	return o;
}

static enum outcome session(struct writer *w)
{
	enum outcome o;
	uint64_t n;

	/* a new owner has checked no block */
	while ((n = checked(w, &o)) == ONES)
		if (o == LOST)
			return LOST;
	w->next = n & (END - 1);
	/* send at least one block, even if connecting took the whole time */
	while (test_now_ms() < w->until || !w->next) {
		n = w->next + 1;
		if (room(w, n) == LOST || insist(w, n, 0) == LOST ||
		    insist(w, 0, n) == LOST)
			return LOST;
		w->next = n;
	}
	if (insist(w, 0, w->next | END) == LOST)
		return LOST;
	do {
		n = checked(w, &o);
		if (o == LOST)
			return LOST;
	} while (n != (w->next | END));
	/* the owner exits as soon as it reads this, so the result does not matter */
	insist(w, 0, ONES - 1);
	return ARRIVED;
}

TEST(writer)
{
	struct writer w = {
		.peer = number_of("CLUSTER_PEER", 8), .sd = test_open(),
		.until = test_now_ms() + endure_seconds() * 1000ull,
	};

	w.own = test_segment(w.sd, 100 + number_of("SCI_TEST_NODE", 4), BLOCK, 0);
	w.memory = test_map_local(w.own, NULL);
	CHECK_OK(SCICreateDMAQueue(w.sd, &w.queue, 0, 16, 0, &err));
	do {
		if (w.connections)
			writer_disconnect(&w);
		writer_connect(&w);
	} while (session(&w) == LOST);
	test_note("stored %llu blocks, %llu times once more; %llu connections",
		  (unsigned long long)w.next, (unsigned long long)w.repeated,
		  (unsigned long long)w.connections);
	CHECK(w.next > 0);
}
