// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test DMA transfers: copies, refused arguments, completions, aborts, lost objects. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sci_test.h"

#define LENGTH	(16 * PAGE)
#define LARGE	(4ul << 20)
#define MANY	32u
#define CROWD	8192u

/* A queue between the private segment @local, mapped at @mine, and @pair.remote. */
struct engine {
	struct pair pair;
	struct sci_ioc_query q;
	int queue, local;
	volatile uint32_t *mine;
	size_t length;
};

static struct engine engine_of(size_t length, __u32 pieces)
{
	struct engine e = { .length = length };

	NEED_CAP(SCI_CAP_DMA);
	e.pair = PAIR(length);
	OK(adapter_query(e.pair.importer, &e.q));
	e.local = OK(segment_private(e.pair.importer, length));
	e.mine = MAP(e.local, 0, length, RW);
	e.queue = OK(dma_create(e.pair.importer, pieces));
	return e;
}

/* Return an engine for the largest transfers, so that they take a while. */
static struct engine slow_engine(__u32 pieces)
{
	int fd = OK(adapter_open(0));
	struct sci_ioc_query q;

	OK(adapter_query(fd, &q));
	close(fd);
	return engine_of(q.out_dma_max < LARGE ? q.out_dma_max & ~(PAGE - 1) :
						 LARGE, pieces);
}

static int move(struct engine *e, __u32 flags, __u64 local, __u64 remote,
		__u64 length)
{
	struct sci_dma_vec vec = { local, remote, length };

	return dma_submit(e->queue, flags, e->local, e->pair.remote, &vec, 1,
			  0);
}

static int push(struct engine *e, __u64 local, __u64 remote, __u64 length)
{
	return move(e, SCI_DMA_WAIT, local, remote, length);
}

/* Submit the same large transfer until the queue is full or @max times. */
static unsigned int submit_many(struct engine *e, __u32 flags, unsigned int max)
{
	struct sci_dma_vec vec = { 0, 0, e->length };
	unsigned int n;
	int ret = 0;

	for (n = 0; n < max; n++) {
		ret = dma_submit(e->queue, flags, e->local, e->pair.remote,
				 &vec, 1, n);
		if (ret < 0)
			break;
	}
	if (ret < 0)
		EQ(ret, -EAGAIN);
	return n;
}

/* ---- copies ---- */

TEST(push_and_pull)
{
	struct engine e = engine_of(LENGTH, 4);

	fill(e.mine, LENGTH, 1);
	OK(move(&e, SCI_DMA_WAIT, 0, 0, LENGTH));
	CHECK(filled(e.pair.here, LENGTH, 1));
	fill(e.pair.here, LENGTH, 2);
	OK(move(&e, SCI_DMA_WAIT | SCI_DMA_PULL, 0, 0, LENGTH));
	CHECK(filled(e.mine, LENGTH, 2));
	NO_EV(e.queue);
}

TEST(only_what_was_asked_for_moves)
{
	struct engine e = engine_of(LENGTH, 4);
	size_t align = e.q.out_dma_align, piece = 64 * align;

	fill(e.mine, LENGTH, 1);
	OK(push(&e, PAGE, 2 * PAGE, piece));
	CHECK(all_zero(e.pair.here, 2 * PAGE));
	CHECK(all_zero((char *)e.pair.here + 2 * PAGE + piece,
		       LENGTH - 2 * PAGE - piece));
	for (size_t i = 0; i < piece / 4; i++)
		EQ(e.pair.here[2 * PAGE / 4 + i], e.mine[PAGE / 4 + i]);
}

TEST(pieces_across_pages)
{
	struct engine e = engine_of(LENGTH, 64);
	size_t align = e.q.out_dma_align;
	struct sci_dma_vec vec[8];

	if (align > 512)
		SKIP("alignment of %zu", align);
	fill(e.mine, LENGTH, 3);
	/* pieces in reverse order, each across a page border */
	for (unsigned int i = 0; i < 8; i++)
		vec[i] = (struct sci_dma_vec){
			.local = i * PAGE + PAGE - 512,
			.remote = (7 - i) * PAGE + PAGE - 512,
			.length = 1024,
		};
	OK(dma_submit(e.queue, SCI_DMA_WAIT, e.local, e.pair.remote, vec, 8,
		      0));
	for (unsigned int i = 0; i < 8; i++)
		for (unsigned int w = 0; w < 256; w++)
			EQ(WORD(e.pair.here, vec[i].remote / 4 + w),
			   e.mine[vec[i].local / 4 + w]);
}

TEST(the_smallest_transfer)
{
	struct engine e = engine_of(LENGTH, 4);
	size_t align = e.q.out_dma_align;

	fill(e.mine, LENGTH, 4);
	OK(push(&e, 0, LENGTH - align, align));
	CHECK(all_zero(e.pair.here, LENGTH - align));
	OK(push(&e, LENGTH - align, 0, align));
}

TEST(within_a_node)
{
	struct engine e = engine_of(LENGTH, 4);
	int own, remote;

	own = OK(segment_exported(e.pair.importer, 100, LENGTH));
	remote = OK(remote_connect(e.pair.importer, adapter_node(0), 100));
	fill(e.mine, LENGTH, 5);
	OK(dma_move(e.queue, SCI_DMA_WAIT, e.local, remote, LENGTH));
	CHECK(filled(MAP(own, 0, LENGTH, RW), LENGTH, 5));
	/* a transfer from a segment to itself */
	OK(dma_move(e.queue, SCI_DMA_WAIT, own, remote, PAGE));
}

TEST(attached_segments_move_too)
{
	struct engine e = engine_of(LENGTH, 4);
	int own, mate;

	own = OK(segment_create(e.pair.importer, 100, LENGTH));
	OK(segment_share(own));
	mate = OK(segment_attach(e.pair.importer, 100));
	fill(MAP(own, 0, LENGTH, RW), LENGTH, 6);
	OK(dma_move(e.queue, SCI_DMA_WAIT, mate, e.pair.remote, LENGTH));
	CHECK(filled(e.pair.here, LENGTH, 6));
}

/* ---- completions ---- */

TEST(an_event_tells_the_end)
{
	struct engine e = engine_of(LENGTH, 16);
	struct sci_dma_vec vec = { 0, 0, LENGTH };

	fill(e.mine, LENGTH, 1);
	for (__u64 i = 1; i <= 8; i++) {
		struct sci_ev_record ev;

		OK(dma_submit(e.queue, 0, e.local, e.pair.remote, &vec, 1,
			      i << 40 | 5));
		ev = EV(e.queue, SCI_EV_DMA);
		EQ(ev.status, 0);
		EQ(ev.cookie, i << 40 | 5);
	}
	CHECK(filled(e.pair.here, LENGTH, 1));
	NO_EV(e.queue);
}

TEST(transfers_end_in_order)
{
	struct engine e = engine_of(LENGTH, 16);

	EQ(submit_many(&e, 0, 16), 16);
	for (__u64 i = 0; i < 16; i++)
		EQ(EV(e.queue, SCI_EV_DMA).cookie, i);
}

/* A later transfer may read what an earlier transfer wrote. */
TEST(transfers_are_done_in_order)
{
	struct engine e = engine_of(LENGTH, 64);

	for (uint32_t round = 1; round <= 20; round++) {
		e.mine[0] = round;
		OK(move(&e, 0, 0, PAGE, PAGE));
		OK(move(&e, SCI_DMA_PULL, 2 * PAGE, PAGE, PAGE));
		OK(move(&e, SCI_DMA_WAIT, 2 * PAGE, 3 * PAGE, PAGE));
		EQ(e.pair.here[3 * PAGE / 4], round);
		EV(e.queue, SCI_EV_DMA);
		EV(e.queue, SCI_EV_DMA);
	}
}

TEST(queues_are_independent)
{
	struct engine e = engine_of(LENGTH, 4);
	int other = OK(dma_create(e.pair.importer, 4));

	OK(dma_move(other, 0, e.local, e.pair.remote, LENGTH));
	EV(other, SCI_EV_DMA);
	NO_EV(e.queue);
	close(other);
	OK(push(&e, 0, 0, LENGTH));
}

/* ---- refused arguments ---- */

TEST(ranges_beyond_the_end)
{
	const __u64 top = ~0ull & ~4095ull;
	struct engine e = engine_of(LENGTH, 4);

	FAILS(push(&e, 0, 0, 0), EINVAL);
	FAILS(push(&e, 0, 0, LENGTH + PAGE), EINVAL);
	FAILS(push(&e, PAGE, 0, LENGTH), EINVAL);
	FAILS(push(&e, 0, PAGE, LENGTH), EINVAL);
	FAILS(push(&e, LENGTH, 0, PAGE), EINVAL);
	FAILS(push(&e, 0, LENGTH, PAGE), EINVAL);
	/* sums that overflow */
	FAILS(push(&e, top, 0, 2 * PAGE), EINVAL);
	FAILS(push(&e, 0, top, 2 * PAGE), EINVAL);
	FAILS(push(&e, PAGE, PAGE, top), EINVAL);
	FAILS(push(&e, 0, 0, top), EINVAL);
	FAILS(push(&e, 1ull << 63, 1ull << 63, 1ull << 63), EINVAL);
	NO_EV(e.queue);
}

TEST(what_is_not_aligned)
{
	struct engine e = engine_of(LENGTH, 4);
	size_t align = e.q.out_dma_align;

	if (align < 2)
		SKIP("any alignment will do");
	FAILS(push(&e, align / 2, 0, align), EINVAL);
	FAILS(push(&e, 0, align / 2, align), EINVAL);
	FAILS(push(&e, 0, 0, align / 2), EINVAL);
	FAILS(push(&e, 0, 0, align + 1), EINVAL);
}

TEST(what_is_longer_than_allowed)
{
	struct engine e = engine_of(LENGTH, 4);
	struct engine large;
	__u64 length = (__u64)e.q.out_dma_max + PAGE;

	if (length > 128ull << 20)
		SKIP("up to %u bytes are allowed", e.q.out_dma_max);
	large = engine_of(length, 4);
	FAILS(push(&large, 0, 0, length), EINVAL);
	OK(push(&large, 0, 0, e.q.out_dma_max));
}

/* One invalid piece refuses the whole transfer. */
TEST(all_pieces_are_judged_first)
{
	struct engine e = engine_of(LENGTH, 16);
	struct sci_dma_vec vec[] = {
		{ 0, 0, PAGE }, { PAGE, PAGE, PAGE }, { LENGTH, 0, PAGE },
	};

	fill(e.mine, LENGTH, 1);
	FAILS(dma_submit(e.queue, SCI_DMA_WAIT, e.local, e.pair.remote, vec,
			 ARRAY_SIZE(vec), 0), EINVAL);
	CHECK(all_zero(e.pair.here, LENGTH));
}

TEST(arrays_of_pieces)
{
	struct engine e = engine_of(LENGTH, 65536);
	struct sci_dma_vec *vec = user_memory(2 * PAGE);
	const unsigned int fit = PAGE / sizeof(*vec);

	OK(sci_unmap((char *)vec + PAGE, PAGE));
	for (unsigned int i = 0; i < fit; i++)
		vec[i] = (struct sci_dma_vec){ 0, 0, e.q.out_dma_align };
	FAILS(dma_submit(e.queue, SCI_DMA_WAIT, e.local, e.pair.remote, vec, 0,
			 0), EINVAL);
	FAILS(dma_submit(e.queue, SCI_DMA_WAIT, e.local, e.pair.remote, NULL,
			 1, 0), EFAULT);
	FAILS(dma_submit(e.queue, SCI_DMA_WAIT, e.local, e.pair.remote, vec,
			 fit + 1, 0), EFAULT);
	FAILS_SOMEHOW(dma_submit(e.queue, SCI_DMA_WAIT, e.local, e.pair.remote,
				 vec, 0xffffffff, 0));
	FAILS_SOMEHOW(dma_submit(e.queue, SCI_DMA_WAIT, e.local, e.pair.remote,
				 vec, 0x0aaaaaab, 0));
	OK(dma_submit(e.queue, SCI_DMA_WAIT, e.local, e.pair.remote, vec, fit,
		      0));
}

TEST(sizes_of_queues)
{
	int fd;

	NEED_CAP(SCI_CAP_DMA);
	fd = OK(adapter_open(0));
	FAILS(dma_create(fd, 0), EINVAL);
	FAILS(dma_create(fd, 65537), EINVAL);
	FAILS(dma_create(fd, 0xffffffff), EINVAL);
	OK(dma_create(fd, 1));
	OK(dma_create(fd, 65536));
}

TEST(more_pieces_than_the_queue_has)
{
	struct engine e = engine_of(LENGTH, 2);
	struct sci_dma_vec vec[3] = {
		{ 0, 0, PAGE }, { 0, 0, PAGE }, { 0, 0, PAGE },
	};

	FAILS_EITHER(dma_submit(e.queue, 0, e.local, e.pair.remote, vec, 3, 0),
		     EAGAIN, EINVAL);
	OK(dma_submit(e.queue, SCI_DMA_WAIT, e.local, e.pair.remote, vec, 2,
		      0));
}

TEST(descriptors_of_the_wrong_kind)
{
	struct engine e = engine_of(LENGTH, 4);
	struct pair *p = &e.pair;
	int other, zero = OK(SYS(open("/dev/zero", O_RDWR | O_CLOEXEC)));

	FAILS(dma_move(e.queue, 0, -1, p->remote, PAGE), EBADF);
	FAILS(dma_move(e.queue, 0, e.local, 12345, PAGE), EBADF);
	FAILS(dma_move(e.queue, 0, zero, p->remote, PAGE), EINVAL);
	FAILS(dma_move(e.queue, 0, e.local, zero, PAGE), EINVAL);
	FAILS(dma_move(e.queue, 0, p->remote, e.local, PAGE), EINVAL);
	FAILS(dma_move(e.queue, 0, e.local, e.local, PAGE), EINVAL);
	FAILS(dma_move(e.queue, 0, e.queue, p->remote, PAGE), EINVAL);
	if (p->near == p->far)
		return;
	FAILS(dma_move(e.queue, 0, p->local, p->remote, PAGE), EINVAL);
	other = OK(remote_connect(p->exporter, p->node, p->id));
	FAILS(dma_move(e.queue, 0, e.local, other, PAGE), EINVAL);
}

TEST(segments_that_are_not_ready)
{
	struct engine e = engine_of(LENGTH, 4);
	struct pair *p = &e.pair;
	int empty, gone;

	NEED_CAP(SCI_CAP_REGISTER);
	empty = OK(segment_create_as(p->importer, 0, LENGTH, 0600,
				     SCI_SEGMENT_PRIVATE | SCI_SEGMENT_EMPTY));
	FAILS_SOMEHOW(dma_move(e.queue, 0, empty, p->remote, PAGE));
	gone = OK(remote_connect_as(p->importer, p->node, p->id + 1,
				    SCI_CONNECT_ASYNC, TEST_WAIT_MS));
	EV(gone, SCI_EV_CONNECT);
	FAILS(dma_move(e.queue, 0, e.local, gone, PAGE), ENOTCONN);
	OK(segment_unexport(p->local, SCI_UNEXPORT_HOW_FORCE));
	FAILS(dma_move(e.queue, 0, e.local, p->remote, PAGE), ENOTCONN);
}

/* ---- transfers under way ---- */

static unsigned int take_events(int queue, unsigned int n, int allowed)
{
	unsigned int failed = 0;

	for (__u64 i = 0; i < n; i++) {
		struct sci_ev_record ev = EV(queue, SCI_EV_DMA);

		EQ(ev.cookie, i);
		if (ev.status)
			EQ(ev.status, -allowed);
		failed += !!ev.status;
	}
	return failed;
}

TEST(a_full_queue_is_EAGAIN)
{
	struct engine e = slow_engine(4);
	unsigned int n = submit_many(&e, 0, 4 * MANY);

	ksft_note("%u transfers were accepted", n);
	CHECK(n >= 4);
	EQ(take_events(e.queue, n, 0), 0);
	EQ(submit_many(&e, 0, 4), 4);
	EQ(take_events(e.queue, 4, 0), 0);
}

TEST(abort_ends_what_is_queued)
{
	struct engine e = slow_engine(MANY);
	unsigned int n, failed;

	fill(e.mine, e.length, 1);
	n = submit_many(&e, 0, MANY);
	OK(dma_abort(e.queue));
	/* after the abort no transfer stores any more */
	fill(e.pair.here, e.length, 2);
	failed = take_events(e.queue, n, ECANCELED);
	ksft_note("%u of %u were ended", failed, n);
	CHECK(filled(e.pair.here, e.length, 2));
	NO_EV(e.queue);
	/* the queue is still usable */
	OK(push(&e, 0, 0, e.length));
	CHECK(filled(e.pair.here, e.length, 1));
}

TEST(abort_of_nothing)
{
	struct engine e = engine_of(LENGTH, 4);

	OK(dma_abort(e.queue));
	OK(dma_abort(e.queue));
	OK(push(&e, 0, 0, LENGTH));
	NO_EV(e.queue);
}

static struct engine busy;

static void *wait_for_transfers(void *arg)
{
	for (unsigned int i = 0; i < 50; i++) {
		int ret = push(&busy, 0, 0, busy.length);

		if (ret)
			EQ(ret, -ECANCELED);
	}
	return arg;
}

TEST(abort_wakes_who_waits)
{
	pthread_t thread;

	busy = slow_engine(4);
	EQ(pthread_create(&thread, NULL, wait_for_transfers, NULL), 0);
	for (unsigned int i = 0; i < 50; i++)
		OK(dma_abort(busy.queue));
	EQ(pthread_join(thread, NULL), 0);
}

TEST(the_remote_segment_goes)
{
	struct engine e = slow_engine(MANY);
	unsigned int n;

	fill(e.mine, e.length, 1);
	n = submit_many(&e, 0, MANY);
	OK(segment_unexport(e.pair.local, SCI_UNEXPORT_HOW_FORCE));
	/* after the unexport no transfer stores any more */
	fill(e.pair.here, e.length, 2);
	take_events(e.queue, n, ENOTCONN);
	CHECK(filled(e.pair.here, e.length, 2));
	EV(e.pair.remote, SCI_EV_LOST);
}

TEST(the_local_segment_goes)
{
	struct engine e = slow_engine(MANY);
	unsigned int n = submit_many(&e, 0, MANY);

	OK(segment_remove(e.local));
	take_events(e.queue, n, ENOTCONN);
	FAILS(push(&e, 0, 0, PAGE), ENOTCONN);
}

TEST(all_descriptors_go)
{
	struct engine e = slow_engine(MANY);
	unsigned int n;

	fill(e.mine, e.length, 1);
	n = submit_many(&e, 0, MANY);
	/* until the transfers are done, the queue holds both segments */
	OK(sci_unmap(e.pair.there, e.length));
	close(e.pair.remote);
	OK(sci_unmap(e.mine, e.length));
	close(e.local);
	close(e.pair.importer);
	EQ(take_events(e.queue, n, 0), 0);
	CHECK(filled(e.pair.here, e.length, 1));
}

TEST(the_queue_goes)
{
	struct engine e = slow_engine(MANY);

	fill(e.mine, e.length, 1);
	submit_many(&e, 0, MANY);
	close(e.queue);
	/* after the close no transfer stores any more */
	fill(e.pair.here, e.length, 2);
	/* each transfer holds the remote segment until it ends: wait for the last one */
	OK(sci_unmap(e.pair.there, e.length));
	close(e.pair.remote);
	EV(e.pair.local, SCI_EV_DISCONNECT);
	CHECK(filled(e.pair.here, e.length, 2));
}

static void move_until_killed(struct peer *self, void *arg)
{
	__u32 flags = (__u32)(uintptr_t)arg;
	struct engine e;

	peer_expect(self, "begin");
	e = slow_engine(MANY);
	submit_many(&e, flags & SCI_DMA_PULL, 1);
	peer_send(self, "moving");
	for (;;) {
		struct sci_ev_record ev;

		submit_many(&e, flags, MANY);
		while (readable(e.queue, 0))
			OK(ev_next(e.queue, &ev));
	}
}

TEST(whoever_moves_is_killed)
{
	struct peer *peer[4];

	NEED_CAP(SCI_CAP_DMA);
	for (uintptr_t i = 0; i < ARRAY_SIZE(peer); i++)
		peer[i] = peer_spawn(move_until_killed, (void *)i);
	for (unsigned int i = 0; i < ARRAY_SIZE(peer); i++) {
		struct counts was = counts_of(0);

		peer_send(peer[i], "begin");
		peer_expect(peer[i], "moving");
		peer_kill(peer[i]);
		COUNTS_BACK(0, &was);
	}
}

static void import_until_killed(struct peer *self, void *arg)
{
	struct engine e = { .length = LARGE };

	(void)arg;
	peer_expect(self, "import");
	e.pair = PEER_GET(self, struct pair);
	PAIR_IMPORT(&e.pair);
	e.local = OK(segment_private(e.pair.importer, LARGE));
	e.queue = OK(dma_create(e.pair.importer, MANY));
	submit_many(&e, 0, MANY);
	peer_send(self, "moving");
	for (;;)
		submit_many(&e, 0, MANY);
}

/*
 * The queue holds the import until the transfer under way is over. So the exporter
 * gets SCI_EV_LOST after the process has ended.
 */
TEST(an_importer_that_is_killed_while_it_moves_is_lost)
{
	struct peer *peer = peer_spawn(import_until_killed, NULL);
	struct pair p;

	NEED_CAP(SCI_CAP_DMA);
	p = PAIR_EXPORT(LARGE);
	peer_send(peer, "import");
	PEER_PUT(peer, p);
	peer_expect(peer, "moving");
	peer_kill(peer);
	EV(p.local, SCI_EV_CONNECT);
	EV(p.local, SCI_EV_LOST);
}

/* Move data from an exported segment of this process to a segment of the parent. */
static void export_and_move(struct peer *self, void *arg)
{
	struct engine e = { .length = LARGE };
	struct sci_ioc_segment_info info;

	(void)arg;
	peer_expect(self, "import");
	e.pair = PEER_GET(self, struct pair);
	PAIR_IMPORT(&e.pair);
	e.local = OK(segment_create_as(e.pair.importer, 1, LARGE, SEGMENT_MODE,
				       SCI_SEGMENT_AUTO_ID));
	OK(segment_export(e.local));
	OK(segment_info(e.local, &info));
	e.queue = OK(dma_create(e.pair.importer, MANY));
	PEER_PUT(self, info.out_id);
	peer_expect(self, "move");
	submit_many(&e, 0, MANY);
	peer_send(self, "moving");
	for (;;)
		submit_many(&e, 0, MANY);
}

/* The queue holds the exported segment until the transfer under way is over. */
TEST(an_exporter_that_is_killed_while_it_moves_is_lost)
{
	struct peer *peer = peer_spawn(export_and_move, NULL);
	struct sci_ev_record ev;
	struct pair p;
	__u32 id;
	int fd;

	NEED_CAP(SCI_CAP_DMA);
	p = PAIR_EXPORT(LARGE);
	peer_send(peer, "import");
	PEER_PUT(peer, p);
	id = PEER_GET(peer, __u32);
	fd = OK(remote_connect(p.exporter, adapter_node(p.near), id));
	peer_send(peer, "move");
	peer_expect(peer, "moving");
	peer_kill(peer);
	ev = EV(fd, SCI_EV_LOST);
	EQ(ev.status, -ECONNRESET);
	EQ(ev.node, adapter_node(p.near));
	EV(p.local, SCI_EV_CONNECT);
	EV(p.local, SCI_EV_LOST);
}

static void submit_until_killed(struct peer *self, void *arg)
{
	struct engine *e = arg;

	submit_many(e, 0, CROWD);
	peer_send(self, "submitting");
	for (;;)
		submit_many(e, 0, CROWD);
}

/*
 * The queue of the card never runs empty: peers submit as fast as they can, and to
 * end their transfers takes a while.
 */
TEST(an_abort_waits_only_for_what_it_aborts)
{
	struct engine e = slow_engine(CROWD);
	struct peer *peer[3];

	for (unsigned int i = 0; i < ARRAY_SIZE(peer); i++) {
		peer[i] = peer_spawn(submit_until_killed, &e);
		peer_expect(peer[i], "submitting");
	}
	for (unsigned int i = 0; i < 3; i++) {
		submit_many(&e, 0, CROWD);
		OK(dma_abort(e.queue));
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(peer); i++)
		peer_kill(peer[i]);
}

static void export_until_killed(struct peer *self, void *arg)
{
	struct pair p;

	(void)arg;
	peer_expect(self, "export");
	p = PAIR_EXPORT(LARGE);
	PEER_PUT(self, p);
	peer_expect(self, "nothing");
}

TEST(the_exporter_is_killed)
{
	struct peer *peer = peer_spawn(export_until_killed, NULL);
	struct engine e = { .length = LARGE };
	unsigned int n;

	NEED_CAP(SCI_CAP_DMA);
	peer_send(peer, "export");
	e.pair = PEER_GET(peer, struct pair);
	PAIR_IMPORT(&e.pair);
	OK(adapter_query(e.pair.importer, &e.q));
	if (e.length > e.q.out_dma_max)
		e.length = e.q.out_dma_max & ~(PAGE - 1);
	e.local = OK(segment_private(e.pair.importer, LARGE));
	e.queue = OK(dma_create(e.pair.importer, MANY));
	n = submit_many(&e, SCI_DMA_PULL, MANY);
	peer_kill(peer);
	take_events(e.queue, n, ENOTCONN);
	EV(e.pair.remote, SCI_EV_LOST);
}
