// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Long messages, writes and reads on the net, whose bytes go from memory to memory.
 * Links break, peers leave and die, and hostile peers write to wrong places meanwhile: the fabric
 * reads no memory that the sender has back, and writes to no memory that the receiver has back.
 *
 * A peer that was killed takes a second: the listening end of a link waits for a new connection.
 */
#include <signal.h>

#include "libsci/fabric/net/net.h"
#include "libsci/msg/endpoint.h"
#include "selftests/net/relay.h"

#define LONG		(1500u << 10)
#define ROUNDS		(TEST_TSAN || TEST_ASAN ? 8u : 24u)

static unsigned char *alloc(size_t len)
{
	unsigned char *p = malloc(len);

	CHECK(p);
	return p;
}

/* Let the relay stall when @bytes more have passed. */
static void stall_after(uint64_t bytes)
{
	atomic_store(&relay->stall_at, atomic_load(&relay->bytes) + bytes);
}

static void wait_for_stall(struct sci_ep *ep)
{
	WAIT_UNTIL(sci_progress(ep) >= 0 && atomic_load(&relay->stalled), TEST_WAIT_MS);
}

/* End the stall. The link continues on a new socket, so it sends its last bytes again. */
static void cut_and_continue(void)
{
	unsigned int cuts = atomic_load(&relay->cuts);

	atomic_store(&relay->stall_at, 0);
	atomic_store(&relay->closed, true);
	WAIT_UNTIL(atomic_load(&relay->cuts) > cuts, TEST_WAIT_MS);
	atomic_store(&relay->closed, false);
	atomic_store(&relay->stalled, false);
}

/* ---- links that break ---- */

static void check_all(const unsigned char *buf, int byte)
{
	for (size_t i = 0; i < LONG; i++)
		CHECK_EQ(buf[i], byte);
}

/*
 * Exchange long messages. Change each buffer as soon as its request has completed: the sender's
 * changes must not arrive, and the receiver's must stay.
 */
static void messages(struct pair *l)
{
	unsigned char *out = alloc(LONG), *in[2] = { alloc(LONG), alloc(LONG) };

	memset(in[1], 0xaa, LONG);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		size_t len = LONG - i * 4001;
		struct sci_req *reqs[2];

		msg_fill(out, len, i);
		CHECK_EQ(sci_itrecv(l->ep, l->to, 7, i, 0, in[i % 2], LONG, &reqs[0]), 0);
		CHECK_EQ(sci_itsend(l->to, 7, i, out, len, &reqs[1]), 0);
		CHECK_EQ(sci_wait(reqs[1], TEST_WAIT_MS, NULL), 0);
		memset(out, 0xee, len);
		CHECK_EQ(sci_wait(reqs[0], TEST_WAIT_MS, NULL), 0);
		CHECK_BYTES(in[i % 2], len, i);
		check_all(in[(i + 1) % 2], 0xaa);
		memset(in[i % 2], 0xaa, LONG);
	}
	pair_meet(l);
	check_all(in[0], 0xaa);
	free(out);
	free(in[0]);
	free(in[1]);
}

/* Export memory of @len bytes, send its key, and receive the other side's. */
static unsigned char *export_memory(struct pair *l, size_t len, struct sci_key *theirs)
{
	struct sci_key key;
	void *addr;

	CHECK_EQ(sci_buf_alloc(l->ep, len, &addr), 0);
	CHECK_EQ(sci_buf_key(l->ep, addr, len, &key), 0);
	CHECK_EQ(sci_tsend(l->to, 9, 0, &key, sizeof(key)), 0);
	CHECK_EQ(sci_trecv(l->ep, l->to, 9, 0, 0, theirs, sizeof(*theirs), NULL), 0);
	return addr;
}

/*
 * Write to the other side's memory, change the source after each write, and check the bytes there
 * and those that a read returns.
 */
static void writes(struct pair *l)
{
	unsigned char *out = alloc(LONG), *mine;
	struct sci_key theirs;

	mine = export_memory(l, LONG, &theirs);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		size_t len = LONG - i * 4001;

		msg_fill(out, len, i);
		CHECK_EQ(sci_write(l->to, &theirs, i, out, len - i), 0);
		memset(out, 0xee, len);
		pair_meet(l);
		CHECK_BYTES(mine + i, len - i, i);
		CHECK_EQ(sci_read(l->to, &theirs, i, out, len - i), 0);
		CHECK_BYTES(out, len - i, i);
		pair_meet(l);
		memset(mine, 0xaa, LONG);
		pair_meet(l);
	}
	free(out);
}

static void cut_off(struct peer *proc, void *arg)
{
	struct pair l = { .proc = proc };

	(void)arg;
	be_behind_relay(8, "10");
	l.ep = test_ep_open(TEST_ID, 0);
	l.to = test_ep_connect(l.ep, 4, TEST_ID);
	messages(&l);
	writes(&l);
	pair_close(&l);
}

TEST(links_break_during_long_transfers)
{
	struct pair l;

	relay_start();
	atomic_store(&relay->cut_after, 3000000);
	l.proc = peer_spawn(8, cut_off, NULL);
	be_behind_relay(4, "10");
	l.ep = test_ep_open(TEST_ID, 0);
	l.to = test_ep_accept(l.ep);
	messages(&l);
	writes(&l);
	CHECK(test_ep_stats(l.ep).sent_zcopy >= ROUNDS);
	pair_close(&l);
	test_note("%u connections, %u cut, %llu bytes", atomic_load(&relay->connections),
		  atomic_load(&relay->cuts), (unsigned long long)atomic_load(&relay->bytes));
	CHECK(atomic_load(&relay->cuts) > 2);
	peer_join(l.proc);
}

/* ---- peers that leave ---- */

#define LEAVES		4u

/* Send a message whose receiver leaves, and free its memory at once. The link carries on. */
static void left_alone(struct peer *proc, void *arg)
{
	struct pair l = { .proc = proc };

	(void)arg;
	be_behind_relay(8, "10");
	l.ep = test_ep_open(TEST_ID, 0);
	for (unsigned int i = 0; i < LEAVES; i++) {
		unsigned char *out = alloc(2 * LONG);
		struct sci_req *req;

		l.to = test_ep_connect(l.ep, 4, TEST_ID);
		memset(out, 0xee, 2 * LONG);
		CHECK_EQ(sci_itsend(l.to, 7, i, out, 2 * LONG, &req), 0);
		CHECK_EQ(test_wait(req, NULL), -ENOTCONN);
		free(out);
		CHECK_EQ(sci_disconnect(l.to), 0);
	}
	l.to = test_ep_connect(l.ep, 4, TEST_ID);
	messages(&l);
	pair_close(&l);
}

/* Leave in the middle of a message. Its last bytes must not be stored. */
static void leave(struct sci_ep *ep, unsigned int i, unsigned char *in)
{
	struct sci_peer *from = test_ep_accept(ep);
	struct sci_req *req;

	/* the handshake passes, and a part of the message */
	stall_after(LONG / (1 + i));
	CHECK_EQ(sci_itrecv(ep, from, 7, i, 0, in, 2 * LONG, &req), 0);
	wait_for_stall(ep);
	CHECK_EQ(sci_disconnect(from), 0);
	CHECK_EQ(test_wait(req, NULL), -ECANCELED);
	memset(in, 0xaa, 2 * LONG);
	cut_and_continue();
}

TEST(a_receiver_leaves_during_a_long_message)
{
	unsigned char *in[LEAVES];
	struct pair l;

	relay_start();
	l.proc = peer_spawn(8, left_alone, NULL);
	be_behind_relay(4, "10");
	l.ep = test_ep_open(TEST_ID, 0);
	for (unsigned int i = 0; i < LEAVES; i++) {
		in[i] = alloc(2 * LONG);
		leave(l.ep, i, in[i]);
	}
	l.to = test_ep_accept(l.ep);
	messages(&l);
	for (unsigned int i = 0; i < LEAVES; i++) {
		check_all(in[i], 0xaa);
		check_all(in[i] + LONG, 0xaa);
		free(in[i]);
	}
	pair_close(&l);
	peer_join(l.proc);
}

/* ---- memory that is freed during a read ---- */

static void owner(struct peer *proc, void *arg)
{
	struct pair l = { .proc = proc };
	struct sci_key theirs;
	unsigned char *mine;

	(void)arg;
	be_behind_relay(8, "10");
	l.ep = test_ep_open(TEST_ID, 0);
	l.to = test_ep_connect(l.ep, 4, TEST_ID);
	mine = export_memory(&l, 2 * LONG, &theirs);
	memset(mine, 0xee, 2 * LONG);
	pair_meet(&l);
	peer_expect(proc, "free");
	CHECK_EQ(sci_buf_free(l.ep, mine), 0);
	peer_send(proc, "freed");
	messages(&l);
	pair_close(&l);
}

TEST(memory_is_freed_during_a_read)
{
	unsigned char *in = alloc(2 * LONG);
	struct sci_key theirs;
	struct sci_req *req;
	struct pair l;

	relay_start();
	l.proc = peer_spawn(8, owner, NULL);
	be_behind_relay(4, "10");
	l.ep = test_ep_open(TEST_ID, 0);
	l.to = test_ep_accept(l.ep);
	export_memory(&l, 1, &theirs);
	memset(in, 0xaa, 2 * LONG);
	pair_meet(&l);
	stall_after(LONG / 2);
	CHECK_EQ(sci_ireadv(l.to, &theirs, 0, &(struct iovec){ in, 2 * LONG }, 1, &req), 0);
	wait_for_stall(l.ep);
	peer_send(l.proc, "free");
	peer_expect(l.proc, "freed");
	cut_and_continue();
	CHECK_EQ(test_wait(req, NULL), -ENOENT);
	/* what has arrived was read before, although it was sent again afterwards */
	for (size_t i = 0; i < 2 * LONG; i++)
		CHECK(in[i] == 0xee || in[i] == 0xaa);
	free(in);
	messages(&l);
	pair_close(&l);
	peer_join(l.proc);
}

/* ---- peers that die ---- */

static void transfer_both(struct pair *l, unsigned char *out, unsigned char *in,
			  struct sci_req *reqs[2])
{
	CHECK_EQ(sci_itrecv(l->ep, l->to, 7, 0, 0, in, 2 * LONG, &reqs[0]), 0);
	CHECK_EQ(sci_itsend(l->to, 7, 0, out, 2 * LONG, &reqs[1]), 0);
}

static void killed(struct peer *proc, void *arg)
{
	struct pair l = { .proc = proc };
	struct sci_req *reqs[2];

	(void)arg;
	be_behind_relay(8, "10");
	l.ep = test_ep_open(TEST_ID, 0);
	l.to = test_ep_connect(l.ep, 4, TEST_ID);
	transfer_both(&l, alloc(2 * LONG), alloc(2 * LONG), reqs);
	sci_waitall(reqs, 2, -1, NULL);
	/* until it is killed */
	peer_expect(proc, "end");
}

TEST(a_peer_dies_during_long_messages)
{
	relay_start();
	be_behind_relay(4, "10");
	for (unsigned int i = 1; i < 4; i++) {
		unsigned char *out = alloc(2 * LONG), *in = alloc(2 * LONG);
		struct sci_req *reqs[2];
		struct pair l;

		stall_after(i * LONG / 2);
		l.proc = peer_spawn(8, killed, NULL);
		l.ep = test_ep_open(TEST_ID, 0);
		l.to = test_ep_accept(l.ep);
		transfer_both(&l, out, in, reqs);
		wait_for_stall(l.ep);
		peer_kill(l.proc, SIGKILL);
		atomic_store(&relay->stall_at, 0);
		atomic_store(&relay->stalled, false);
		CHECK_EQ(test_wait(reqs[0], NULL), -ECONNRESET);
		CHECK_EQ(test_wait(reqs[1], NULL), -ECONNRESET);
		free(in);
		free(out);
		CHECK_EQ(sci_ep_close(l.ep), 0);
	}
}

/* ---- hostile peers ---- */

#define ROOM		20000u

struct hostile {
	uint64_t off;
	uint32_t id;
	uint32_t len;			/* 0: the end */
};

/* Write where node 4 says. */
static void writer(struct peer *proc, void *arg)
{
	unsigned char *out = alloc(ROOM);
	struct hostile h;
	struct pair l;

	(void)arg;
	test_use_net("unix", 8);
	l = pair_open(proc, 4, 0);
	memset(out, 0xee, ROOM);
	while (!sci_recv(l.ep, l.to, &h, sizeof(h), NULL) && h.len) {
		CHECK_EQ(l.to->stream->fill(l.to->first.outbox, h.id, h.off, out, h.len, out), 0);
		l.to->stream->take_back(l.to->fabric, out);
		/* the answer arrives after the bytes, if the link still works */
		sci_send(l.to, &h, 1);
	}
	free(out);
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

/* Let node 8 write. Return 0, or the error with which the connection has ended. */
static int let_write(struct pair *l, uint32_t id, uint64_t off, uint32_t len)
{
	const struct hostile h = { .off = off, .id = id, .len = len };
	char c;
	int ret = sci_send(l->to, &h, sizeof(h));

	return ret ? ret : sci_recv(l->ep, l->to, &c, 1, NULL);
}

static void check_range(const unsigned char *buf, size_t from, size_t to, int byte)
{
	for (size_t i = from; i < to; i++)
		CHECK_EQ(buf[i], byte);
}

static struct pair hostile_begin(void)
{
	struct pair l = { .proc = peer_spawn(8, writer, NULL) };

	test_use_net("unix", 4);
	l.ep = test_ep_open(TEST_ID, 0);
	l.to = test_ep_connect(l.ep, 8, TEST_ID);
	return l;
}

TEST(writes_to_targets)
{
	struct pair l = hostile_begin();
	unsigned char *mem = alloc(3 * ROOM);
	struct sci_stream_target t = { .addr = mem + ROOM, .len = ROOM };

	memset(mem, 0xaa, 3 * ROOM);
	CHECK_EQ(l.to->stream->target(l.to->first.outbox, &t), 0);
	/* no target */
	CHECK_EQ(let_write(&l, t.id + 1, 0, ROOM), 0);
	CHECK_EQ(let_write(&l, t.id - 1, 0, 1), 0);
	check_range(mem, 0, 3 * ROOM, 0xaa);
	CHECK_EQ(let_write(&l, t.id, 100, 1), 0);
	CHECK_EQ(let_write(&l, t.id, 1000, ROOM - 1000), 0);
	check_range(mem, 0, ROOM + 100, 0xaa);
	check_range(mem, ROOM + 100, ROOM + 101, 0xee);
	check_range(mem, ROOM + 101, ROOM + 1000, 0xaa);
	check_range(mem, ROOM + 1000, 2 * ROOM, 0xee);
	check_range(mem, 2 * ROOM, 3 * ROOM, 0xaa);
	/* a target that has ended */
	l.to->stream->target_end(l.to->fabric, &t);
	memset(mem, 0xaa, 3 * ROOM);
	CHECK_EQ(let_write(&l, t.id, 0, ROOM), 0);
	CHECK_EQ(let_write(&l, t.id, 0, 1), 0);
	check_range(mem, 0, 3 * ROOM, 0xaa);
	free(mem);
	CHECK_EQ(sci_send(l.to, &(struct hostile){ 0 }, sizeof(struct hostile)), 0);
	CHECK_EQ(sci_ep_close(l.ep), 0);
	peer_join(l.proc);
}

/* Check that a write beyond the end of a target ends the link and changes nothing. */
static void check_refused(uint64_t off, uint32_t len)
{
	struct pair l = hostile_begin();
	unsigned char *mem = alloc(3 * ROOM);
	struct sci_stream_target t = { .addr = mem + ROOM, .len = ROOM };

	memset(mem, 0xaa, 3 * ROOM);
	CHECK_EQ(l.to->stream->target(l.to->first.outbox, &t), 0);
	CHECK_EQ(let_write(&l, t.id, off, len), -ECONNRESET);
	check_range(mem, 0, 3 * ROOM, 0xaa);
	/* the target has ended with the link */
	CHECK(list_empty(&t.link));
	l.to->stream->target_end(l.to->fabric, &t);
	free(mem);
	CHECK_EQ(sci_ep_close(l.ep), 0);
	peer_join(l.proc);
}

TEST(writes_beyond_a_target)
{
	check_refused(ROOM, 1);
	check_refused(1, ROOM);
	check_refused(ROOM - 10, 11);
	check_refused(UINT64_MAX, 1);
	check_refused(UINT64_MAX - 4, ROOM);
	check_refused((uint64_t)1 << 63, 64);
}

/* Node 12 names a target that node 4 has made for node 8. */
static void other_writer(struct peer *proc, void *arg)
{
	unsigned char *out = alloc(ROOM);
	struct pair l = { .proc = proc };
	uint32_t id;

	(void)arg;
	test_use_net("unix", 12);
	l = pair_open(proc, 4, 0);
	memset(out, 0xee, ROOM);
	CHECK_EQ(sci_recv(l.ep, l.to, &id, sizeof(id), NULL), 0);
	for (uint32_t i = 0; i < 8; i++) {
		CHECK_EQ(l.to->stream->fill(l.to->first.outbox, id - 4 + i, 0, out, ROOM, out), 0);
		l.to->stream->take_back(l.to->fabric, out);
	}
	pair_close(&l);
	free(out);
}

TEST(writes_to_the_target_of_another_peer)
{
	struct peer *other = peer_spawn(12, other_writer, NULL);
	struct pair l = hostile_begin(), far = { .proc = other, .ep = l.ep };
	unsigned char *mem = alloc(ROOM);
	struct sci_stream_target t = { .addr = mem, .len = ROOM };

	far.to = test_ep_connect(l.ep, 12, TEST_ID);
	memset(mem, 0xaa, ROOM);
	/* node 8 has connected, too, when it answers; there is no target 0 */
	CHECK_EQ(let_write(&l, 0, 0, 1), 0);
	CHECK_EQ(l.to->stream->target(l.to->first.outbox, &t), 0);
	CHECK_EQ(sci_send(far.to, &t.id, sizeof(t.id)), 0);
	pair_meet(&far);
	check_range(mem, 0, ROOM, 0xaa);
	l.to->stream->target_end(l.to->fabric, &t);
	free(mem);
	CHECK_EQ(sci_send(l.to, &(struct hostile){ 0 }, sizeof(struct hostile)), 0);
	CHECK_EQ(sci_ep_close(l.ep), 0);
	peer_join(other);
	peer_join(l.proc);
}
