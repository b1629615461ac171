// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* A link that breaks after the last byte of a write: only the handshake acknowledges the bytes. */

#include "libsci/fabric/net/net.h"
#include "selftests/net/relay.h"

#define LEN		(50u << 10)

/* Node 4 makes no calls during the write: its thread of the net reads the bytes. */
static void owner(struct peer *proc, void *arg)
{
	struct pair l = { .proc = proc };
	struct sci_key key;
	void *addr;

	(void)arg;
	be_behind_relay(4, "600");
	l.ep = test_ep_open(TEST_ID, 0);
	peer_send(proc, "open");
	l.to = test_ep_accept(l.ep);
	CHECK_EQ(sci_buf_alloc(l.ep, LEN, &addr), 0);
	CHECK_EQ(sci_buf_key(l.ep, addr, LEN, &key), 0);
	CHECK_EQ(sci_tsend(l.to, 9, 0, &key, sizeof(key)), 0);
	peer_expect(proc, "written");
	pair_meet(&l);
	CHECK_BYTES(addr, LEN, 1);
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

/* Cut the connection while the owner is stopped, when its socket has all bytes of the write. */
static void write_and_cut(struct pair *l, const struct sci_key *key, const unsigned char *out)
{
	const struct iovec iov = { (void *)out, LEN };
	unsigned int before = atomic_load(&relay->connections);
	struct sci_req *req;
	uint64_t bytes;

	peer_stop(l->proc);
	bytes = atomic_load(&relay->bytes);
	CHECK_EQ(sci_iwritev(l->to, key, 0, &iov, 1, &req), 0);
	/* a frame with the bytes, and one with the mark */
	WAIT_UNTIL(atomic_load(&relay->bytes) >= bytes + LEN + 2 * sizeof(struct net_frame),
		   TEST_WAIT_MS);
	atomic_store(&relay->closed, true);
	WAIT_UNTIL(atomic_load(&relay->cuts), TEST_WAIT_MS);
	atomic_store(&relay->closed, false);
	WAIT_UNTIL(atomic_load(&relay->connections) > before, TEST_WAIT_MS);
	peer_continue(l->proc);
	CHECK_EQ(test_wait(req, NULL), 0);
}

TEST(a_link_breaks_after_the_last_byte)
{
	unsigned char out[LEN];
	struct sci_key key;
	struct pair l;

	msg_fill(out, LEN, 1);
	relay_start();
	l.proc = peer_spawn(4, owner, NULL);
	test_be_node(8);
	be_behind_relay(8, "600");
	peer_expect(l.proc, "open");
	l.ep = test_ep_open(TEST_ID, 0);
	l.to = test_ep_connect(l.ep, 4, TEST_ID);
	CHECK_EQ(sci_trecv(l.ep, l.to, 9, 0, 0, &key, sizeof(key), NULL), 0);
	/* import the memory now: the owner cannot answer while it is stopped */
	CHECK_EQ(sci_write(l.to, &key, 0, out, 1), 0);
	write_and_cut(&l, &key, out);
	peer_send(l.proc, "written");
	pair_meet(&l);
	CHECK_EQ(sci_ep_close(l.ep), 0);
	peer_join(l.proc);
}
