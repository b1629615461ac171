// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Caches that are not coherent: a store arrives when SISCI guarantees it, and not before. Node
 * 8 owns the segment, node 4 imports it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sisci_api.h>

#include "selftests/harness.h"

#define SIZE	((size_t)65536)
#define LINE	64
#define AT	(SIZE / 2)

struct view {
	sci_desc_t sd;
	sci_map_t map;
	sci_sequence_t seq;
	volatile unsigned char *mem;
};

/* A way to make stores arrive, or to load stores that have arrived. */
typedef void (*step_fn)(struct view *v);

static void with_sequence(struct view *v)
{
	CHECK_OK(SCICreateMapSequence(v->map, &v->seq, 0, &err));
}

static void owner_view(struct view *v)
{
	v->sd = test_open();
	v->mem = test_map_local(test_segment(v->sd, 1, SIZE, 0), &v->map);
	with_sequence(v);
}

static void importer_view(struct view *v)
{
	v->sd = test_open();
	v->mem = test_map_remote(test_connect(v->sd, 8, 1), &v->map);
	with_sequence(v);
}

/* Node 8 stores 1 for node 4 to load; then it flushes by @arg. */
static void storing_owner(struct peer *self, void *arg)
{
	step_fn flush = *(step_fn *)arg;
	struct view v;

	owner_view(&v);
	peer_send(self, "ready");
	peer_expect(self, "connected");
	v.mem[AT] = 1;
	peer_send(self, "stored");
	peer_expect(self, "looked");
	flush(&v);
	peer_send(self, "flushed");
	peer_expect(self, "leave");
}

/* Node 8 loads a store of node 4 without a refresh, and with a refresh by @arg. */
static void loading_owner(struct peer *self, void *arg)
{
	step_fn refresh = *(step_fn *)arg;
	struct view v;

	owner_view(&v);
	peer_send(self, "ready");
	peer_expect(self, "flushed");
	CHECK_EQ(v.mem[AT], 0);
	refresh(&v);
	CHECK_EQ(v.mem[AT], 1);
	CHECK_EQ(v.mem[AT + LINE - 1], 2);
	peer_send(self, "seen");
	peer_expect(self, "leave");
}

/* Return whether the machine has adapters with a simulated cache: parameter check of sci_pool. */
static bool on_checked_pool(void)
{
	char text[32] = "";
	FILE *f;

	if (strcmp(getenv("SCI_FABRIC"), "dev"))
		return false;
	f = fopen("/sys/module/sci_pool/parameters/check", "re");
	if (!f)
		return false;
	CHECK(fgets(text, sizeof(text), f));
	fclose(f);
	return strtoul(text, NULL, 0);
}

static void needs_caches(void)
{
	if (!test_on_shm() && !on_checked_pool())
		SKIP("the caches of this fabric are coherent");
	setenv("SCI_SHM_CHECK", "1", 1);
}

static void needs_checked_pool(void)
{
	if (!on_checked_pool())
		SKIP("only with the parameter check of sci_pool");
}

static struct peer *spawn_owner(struct view *v, void (*fn)(struct peer *self, void *arg),
				step_fn step)
{
	static step_fn arg;
	struct peer *p;

	needs_caches();
	arg = step;
	p = peer_spawn(8, fn, &arg);
	peer_expect(p, "ready");
	importer_view(v);
	return p;
}

static void end_owner(struct peer *p)
{
	peer_send(p, "leave");
	peer_join(p);
}

static void store_barrier(struct view *v)
{
	v->mem[AT] = 2;
	SCIStoreBarrier(v->seq, 0);
}

static void check_sequence(struct view *v)
{
	CHECK_EQ(SCIStartSequence(v->seq, 0, NULL), SCI_SEQ_OK);
	v->mem[AT] = 2;
	CHECK_EQ(SCICheckSequence(v->seq, 0, NULL), SCI_SEQ_OK);
}

static void start_sequence(struct view *v)
{
	CHECK_EQ(SCIStartSequence(v->seq, 0, NULL), SCI_SEQ_OK);
}

static void flush_read_buffers(struct view *v)
{
	SCIFlushReadBuffers(v->seq);
}

static void cache_sync(struct view *v)
{
	CHECK_OK(SCICacheSync(v->map, (void *)(v->mem + AT), LINE,
			      SCI_FLAG_CACHE_FLUSH | SCI_FLAG_CACHE_INVALIDATE, &err));
}

static void store_and_sync(struct view *v)
{
	v->mem[AT] = 2;
	cache_sync(v);
}

/* The store barrier of a sequence on another map also waits for these stores. */
static void barrier_elsewhere(struct view *v)
{
	sci_sequence_t seq;
	sci_map_t map;

	test_map_local(test_segment(v->sd, 4, SIZE, 0), &map);
	CHECK_OK(SCICreateMapSequence(map, &seq, 0, &err));
	SCIStoreBarrier(seq, 0);
}

static void copy_to_local(struct view *v)
{
	char two[LINE];

	memset(two, 2, sizeof(two));
	CHECK_OK(SCIMemCpy(v->seq, two, v->map, AT, LINE, 0, &err));
	barrier_elsewhere(v);
}

static void unmap_with_sequence(struct view *v)
{
	v->mem[AT] = 2;
	CHECK_OK(SCIUnmapSegment(v->map, 0, &err));
	barrier_elsewhere(v);
}

static void block_read(struct view *v)
{
	char got[LINE];

	CHECK_OK(SCIMemCpy(v->seq, got, v->map, AT, LINE, SCI_FLAG_BLOCK_READ, &err));
}

static void transfer_from(struct view *v)
{
	sci_map_t to;

	test_map_local(test_segment(v->sd, 3, SIZE, 0), &to);
	CHECK_OK(SCITransferBlock(v->map, AT, to, 0, LINE, 0, &err));
}

static void transfer_within(struct view *v)
{
	CHECK_OK(SCITransferBlock(v->map, AT, v->map, 0, LINE, 0, &err));
}

static void check_flush(step_fn flush)
{
	struct view v;
	struct peer *p = spawn_owner(&v, storing_owner, flush);

	peer_send(p, "connected");
	peer_expect(p, "stored");
	SCIFlushReadBuffers(v.seq);
	CHECK_EQ(v.mem[AT], 0);
	peer_send(p, "looked");
	peer_expect(p, "flushed");
	CHECK_EQ(v.mem[AT], 0);
	SCIFlushReadBuffers(v.seq);
	CHECK_EQ(v.mem[AT], 2);
	end_owner(p);
}

TEST(a_store_arrives_at_a_store_barrier) { check_flush(store_barrier); }
TEST(a_store_arrives_when_its_sequence_is_checked) { check_flush(check_sequence); }
TEST(a_store_arrives_at_a_cache_sync) { check_flush(store_and_sync); }
TEST(a_copy_to_a_local_segment_arrives) { check_flush(copy_to_local); }
TEST(a_store_arrives_when_its_map_ends) { check_flush(unmap_with_sequence); }

static void check_refresh(step_fn refresh)
{
	struct view v;
	struct peer *p = spawn_owner(&v, loading_owner, refresh);

	v.mem[AT] = 1;
	v.mem[AT + LINE - 1] = 2;
	SCIStoreBarrier(v.seq, 0);
	peer_send(p, "flushed");
	peer_expect(p, "seen");
	end_owner(p);
}

TEST(a_load_after_a_flush_of_read_buffers) { check_refresh(flush_read_buffers); }
TEST(a_load_after_the_start_of_a_sequence) { check_refresh(start_sequence); }
TEST(a_load_after_a_cache_sync) { check_refresh(cache_sync); }
TEST(a_block_read) { check_refresh(block_read); }
TEST(a_transfer_from_a_segment) { check_refresh(transfer_from); }
TEST(a_transfer_within_a_segment) { check_refresh(transfer_within); }

/* ---- lines to which two nodes store in turns ---- */

/*
 * Node 4 copies to one half of a line, the second half if @arg is set, after node 8 has stored
 * to the other half. In the next line the roles are reversed.
 */
static void neighbour(struct peer *self, void *arg)
{
	size_t off = *(size_t *)arg ? LINE / 2 : 0, at = LINE / 2 - off;
	char seven[LINE / 2];
	struct view v;

	owner_view(&v);
	peer_send(self, "ready");
	peer_expect(self, "connected");
	v.mem[AT + at] = 3;
	SCIStoreBarrier(v.seq, 0);
	peer_send(self, "stored");
	peer_expect(self, "copied");
	SCIFlushReadBuffers(v.seq);
	CHECK_EQ(v.mem[AT + at], 3);
	CHECK_EQ(v.mem[AT + off], 7);
	peer_send(self, "seen");
	peer_expect(self, "stored");
	memset(seven, 7, sizeof(seven));
	CHECK_OK(SCIMemCpy(v.seq, seven, v.map, AT + LINE + off, LINE / 2, 0, &err));
	SCIStoreBarrier(v.seq, 0);
	peer_send(self, "copied");
	peer_expect(self, "leave");
}

static void check_neighbour(size_t half)
{
	size_t off = half ? LINE / 2 : 0, at = LINE / 2 - off;
	char seven[LINE / 2];
	struct view v;
	struct peer *p;

	needs_caches();
	memset(seven, 7, sizeof(seven));
	p = peer_spawn(8, neighbour, &half);
	peer_expect(p, "ready");
	importer_view(&v);
	peer_send(p, "connected");
	peer_expect(p, "stored");
	CHECK_OK(SCIMemCpy(v.seq, seven, v.map, AT + off, LINE / 2, SCI_FLAG_ERROR_CHECK,
			   &err));
	peer_send(p, "copied");
	peer_expect(p, "seen");
	v.mem[AT + LINE + at] = 3;
	SCIStoreBarrier(v.seq, 0);
	peer_send(p, "stored");
	peer_expect(p, "copied");
	SCIFlushReadBuffers(v.seq);
	CHECK_EQ(v.mem[AT + LINE + at], 3);
	CHECK_EQ(v.mem[AT + LINE + off], 7);
	end_owner(p);
}

TEST(a_copy_keeps_the_rest_of_its_last_line) { check_neighbour(0); }
TEST(a_copy_keeps_the_rest_of_its_first_line) { check_neighbour(1); }

/* ---- DMA ---- */

static void dma_owner(struct peer *self, void *arg)
{
	struct view v;

	(void)arg;
	owner_view(&v);
	peer_send(self, "ready");
	peer_expect(self, "pushed");
	SCIFlushReadBuffers(v.seq);
	CHECK_EQ(v.mem[AT], 1);
	v.mem[AT] = 2;
	SCIStoreBarrier(v.seq, 0);
	peer_send(self, "stored");
	peer_expect(self, "leave");
}

static void check_dma(bool plain)
{
	static unsigned char memory[SIZE];
	sci_remote_segment_t r;
	sci_local_segment_t s;
	sci_dma_queue_t q;
	struct peer *p;
	unsigned char *mem = memory;
	struct view v;

	needs_caches();
	p = peer_spawn(8, dma_owner, NULL);
	peer_expect(p, "ready");
	v.sd = test_open();
	r = test_connect(v.sd, 8, 1);
	if (plain) {
		CHECK_OK(SCICreateSegment(v.sd, &s, 0, SIZE, NULL, NULL,
					  SCI_FLAG_PRIVATE | SCI_FLAG_EMPTY, &err));
		CHECK_OK(SCIRegisterSegmentMemory(mem, SIZE, s, 0, &err));
		CHECK_OK(SCIPrepareSegment(s, 0, SCI_FLAG_DMA_SOURCE_ONLY, &err));
	} else {
		s = test_segment(v.sd, 5, SIZE, 0);
		mem = test_map_local(s, NULL);
	}
	CHECK_OK(SCICreateDMAQueue(v.sd, &q, 0, 16, 0, &err));
	mem[AT] = 1;
	CHECK_OK(SCIStartDmaTransfer(q, s, r, 0, SIZE, 0, NULL, NULL, SCI_FLAG_DMA_WAIT,
				     &err));
	peer_send(p, "pushed");
	peer_expect(p, "stored");
	CHECK_OK(SCIStartDmaTransfer(q, s, r, 0, SIZE, 0, NULL, NULL,
				     SCI_FLAG_DMA_WAIT | SCI_FLAG_DMA_READ, &err));
	CHECK_EQ(*(volatile unsigned char *)&mem[AT], 2);
	end_owner(p);
}

TEST(dma_of_a_segment_arrives_and_sees_what_has) { check_dma(false); }

TEST(dma_of_plain_memory_arrives_and_sees_what_has) { check_dma(true); }

/* Node 8 stores to the first half of a line, and node 4 copies to the second half. */
static void dma_neighbour(struct peer *self, void *arg)
{
	struct view v;

	(void)arg;
	owner_view(&v);
	peer_send(self, "ready");
	peer_expect(self, "mapped");
	v.mem[AT] = 3;
	SCIStoreBarrier(v.seq, 0);
	peer_send(self, "stored");
	peer_expect(self, "copied");
	SCIFlushReadBuffers(v.seq);
	CHECK_EQ(v.mem[AT], 3);
	CHECK_EQ(v.mem[AT + LINE / 2], 7);
	peer_send(self, "seen");
	peer_expect(self, "leave");
}

TEST(dma_keeps_the_rest_of_its_lines)
{
	sci_local_segment_t s;
	sci_dma_queue_t q;
	struct peer *p;
	struct view v;

	needs_checked_pool();
	p = peer_spawn(8, dma_neighbour, NULL);
	peer_expect(p, "ready");
	importer_view(&v);
	peer_send(p, "mapped");
	peer_expect(p, "stored");
	s = test_segment(v.sd, 5, SIZE, 0);
	memset(test_map_local(s, NULL), 7, SIZE);
	CHECK_OK(SCICreateDMAQueue(v.sd, &q, 0, 16, 0, &err));
	CHECK_OK(SCIStartDmaTransfer(q, s, test_connect(v.sd, 8, 1), 0, LINE / 2,
				     AT + LINE / 2, NULL, NULL, SCI_FLAG_DMA_WAIT, &err));
	peer_send(p, "copied");
	peer_expect(p, "seen");
	end_owner(p);
}

/* ---- the kernel's flushes, when memory changes hands ---- */

/* Node 8 stores 1 before the export, without a flush. */
static void early_owner(struct peer *self, void *arg)
{
	sci_local_segment_t s;
	struct view v;

	(void)arg;
	v.sd = test_open();
	CHECK_OK(SCICreateSegment(v.sd, &s, 1, SIZE, NULL, NULL, 0, &err));
	v.mem = test_map_local(s, &v.map);
	v.mem[AT] = 1;
	CHECK_OK(SCIPrepareSegment(s, 0, 0, &err));
	CHECK_OK(SCISetSegmentAvailable(s, 0, 0, &err));
	peer_send(self, "ready");
	peer_expect(self, "leave");
}

TEST(a_new_segment_has_zeros_and_what_was_stored_before)
{
	struct peer *p;
	struct view v;
	size_t i;

	needs_checked_pool();
	p = peer_spawn(8, early_owner, NULL);
	peer_expect(p, "ready");
	importer_view(&v);
	for (i = 0; i < SIZE; i++)
		CHECK_EQ(v.mem[i], i == AT);
	end_owner(p);
}

TEST(a_new_map_sees_what_has_arrived)
{
	step_fn flush = store_barrier;
	struct peer *p;
	struct view v;

	needs_checked_pool();
	p = peer_spawn(8, storing_owner, &flush);
	peer_expect(p, "ready");
	importer_view(&v);
	CHECK_EQ(v.mem[AT], 0);
	CHECK_OK(SCIRemoveSequence(v.seq, 0, &err));
	CHECK_OK(SCIUnmapSegment(v.map, 0, &err));
	peer_send(p, "connected");
	peer_expect(p, "stored");
	peer_send(p, "looked");
	peer_expect(p, "flushed");
	v.mem = test_map_remote(test_connect(v.sd, 8, 1), &v.map);
	CHECK_EQ(v.mem[AT], 2);
	end_owner(p);
}

/* Node 8 stores to the segment of node 4 and is killed. */
static void dying_importer(struct peer *self, void *arg)
{
	volatile unsigned char *mem;

	(void)arg;
	mem = test_map_remote(test_connect(test_open(), 4, 1), NULL);
	mem[AT] = 2;
	peer_send(self, "stored");
	peer_expect(self, "leave");
}

TEST(a_store_arrives_when_its_process_is_killed)
{
	struct peer *p;
	struct view v;

	needs_checked_pool();
	owner_view(&v);
	p = peer_spawn(8, dying_importer, NULL);
	peer_expect(p, "stored");
	SCIFlushReadBuffers(v.seq);
	CHECK_EQ(v.mem[AT], 0);
	peer_kill(p, SIGKILL);
	SCIFlushReadBuffers(v.seq);
	CHECK_EQ(v.mem[AT], 2);
}

#define BIG	((size_t)8 << 20)	/* several entries of the address table */
#define FAR_AT	(BIG / 4 * 3)

/* Node 8 maps a part of the segment of node 4, stores to it and is killed. */
static void dying_part_importer(struct peer *self, void *arg)
{
	volatile unsigned char *mem;
	sci_map_t map;

	(void)arg;
	CHECK_OK(mem = SCIMapRemoteSegment(test_connect(test_open(), 4, 2), &map, FAR_AT, SIZE,
					   NULL, 0, &err));
	mem[AT] = 2;
	peer_send(self, "stored");
	peer_expect(self, "leave");
}

TEST(a_store_to_a_mapped_part_arrives_when_its_process_is_killed)
{
	volatile unsigned char *mem;
	sci_sequence_t seq;
	struct peer *p;
	sci_map_t map;

	needs_checked_pool();
	mem = test_map_local(test_segment(test_open(), 2, BIG, 0), &map);
	CHECK_OK(SCICreateMapSequence(map, &seq, 0, &err));
	p = peer_spawn(8, dying_part_importer, NULL);
	peer_expect(p, "stored");
	SCIFlushReadBuffers(seq);
	CHECK_EQ(mem[FAR_AT + AT], 0);
	peer_kill(p, SIGKILL);
	SCIFlushReadBuffers(seq);
	CHECK_EQ(mem[FAR_AT + AT], 2);
}
