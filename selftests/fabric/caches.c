// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Memory whose caches are not coherent: a store arrives where SISCI says that it does,
 * and not before.  Node 8 owns the segment, node 4 imports it.
 */
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

/* A way to make stores arrive, or to load what has arrived. */
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

/* Node 8 stores 1, and has node 4 look; then it stores 2 and flushes by @arg. */
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
	v.mem[AT] = 2;
	flush(&v);
	peer_send(self, "flushed");
	peer_expect(self, "leave");
}

/* Node 8 looks at what node 4 has stored, without a refresh and with one by @arg. */
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

static struct peer *spawn_owner(struct view *v, void (*fn)(struct peer *self, void *arg),
				step_fn step)
{
	static step_fn arg;
	struct peer *p;

	if (!test_on_shm())
		SKIP("only this fabric has caches that are not coherent");
	setenv("SCI_SHM_CHECK", "1", 1);
	arg = step;
	p = peer_spawn(8, fn, &arg);
	peer_expect(p, "ready");
	importer_view(v);
	return p;
}

static void leave(struct peer *p)
{
	peer_send(p, "leave");
	peer_join(p);
}

static void store_barrier(struct view *v)
{
	SCIStoreBarrier(v->seq, 0);
}

static void check_sequence(struct view *v)
{
	CHECK_EQ(SCIStartSequence(v->seq, 0, NULL), SCI_SEQ_OK);
	v->mem[AT] = v->mem[AT];
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

static const struct {
	const char *name;
	step_fn fn;
} flushes[] = {
	{ "SCIStoreBarrier", store_barrier }, { "SCICheckSequence", check_sequence },
	{ "SCICacheSync", cache_sync },
}, refreshes[] = {
	{ "SCIFlushReadBuffers", flush_read_buffers }, { "SCIStartSequence", start_sequence },
	{ "SCICacheSync", cache_sync }, { "a block read", block_read },
	{ "SCITransferBlock", transfer_from },
	{ "SCITransferBlock within a segment", transfer_within },
};

#define N(a)	(sizeof(a) / sizeof((a)[0]))

TEST(a_store_of_the_owner_arrives_with_a_flush)
{
	struct view v;
	unsigned int i;

	for (i = 0; i < N(flushes); i++) {
		struct peer *p = spawn_owner(&v, storing_owner, flushes[i].fn);

		test_note("%s", flushes[i].name);
		peer_send(p, "connected");
		peer_expect(p, "stored");
		SCIFlushReadBuffers(v.seq);
		CHECK_EQ(v.mem[AT], 0);
		peer_send(p, "looked");
		peer_expect(p, "flushed");
		CHECK_EQ(v.mem[AT], 0);
		SCIFlushReadBuffers(v.seq);
		CHECK_EQ(v.mem[AT], 2);
		leave(p);
		SCIClose(v.sd, 0, NULL);
		SCITerminate();
	}
}

TEST(a_load_of_the_owner_sees_what_it_asks_for)
{
	struct view v;
	unsigned int i;

	for (i = 0; i < N(refreshes); i++) {
		struct peer *p = spawn_owner(&v, loading_owner, refreshes[i].fn);

		test_note("%s", refreshes[i].name);
		v.mem[AT] = 1;
		v.mem[AT + LINE - 1] = 2;
		SCIStoreBarrier(v.seq, 0);
		peer_send(p, "flushed");
		peer_expect(p, "seen");
		leave(p);
		SCIClose(v.sd, 0, NULL);
		SCITerminate();
	}
}
