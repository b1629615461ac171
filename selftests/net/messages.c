// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Messages of nodes that only sockets connect, over each kind of socket, and of an
 * endpoint that has peers in its cluster and beyond.  All the tests of selftests/msg run
 * over the net, too, with SCI_TEST_NET: see scripts/check.
 */
#include "libsci/msg/endpoint.h"
#include "selftests/msg/peers.h"

#define LEN_MAX		(3u << 20)

static const size_t lengths[] = {
	0, 1, 8, 62, 63, 64, 300, 4095, 4096, 4097, 65536, 65537, 300000, LEN_MAX,
};

/* Each length there and back; the other side does the same. */
static void exchange(struct sci_ep *ep, struct sci_peer *to, uint64_t seed)
{
	unsigned char *out = malloc(LEN_MAX), *in = malloc(LEN_MAX);

	CHECK(out && in);
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		struct sci_req *reqs[2];
		struct sci_status st[2];

		msg_fill(out, lengths[i], seed + i);
		CHECK_EQ(sci_itsend(to, 7, i, out, lengths[i], &reqs[0]), 0);
		CHECK_EQ(sci_itrecv(ep, to, 7, i, 0, in, LEN_MAX, &reqs[1]), 0);
		CHECK_EQ(sci_waitall(reqs, 2, TEST_WAIT_MS, st), 0);
		CHECK_EQ(st[1].len, lengths[i]);
		CHECK_BYTES(in, lengths[i], seed + i);
	}
	free(out);
	free(in);
}

/* Into exported memory of the peer, and out of it; both sides at once. */
static void exchange_memory(struct pair *l)
{
	struct sci_key key, theirs;
	unsigned char *mine, *copy = malloc(LEN_MAX);
	const struct sci_rmw add = {
		.op = SCI_RMW_ADD, .type = SCI_RMW_UINT64, .operand = 5,
	};
	void *addr = NULL, *p;
	uint64_t before = 1;

	CHECK(copy);
	CHECK_EQ(sci_buf_alloc(l->ep, LEN_MAX + 4096, &addr), 0);
	mine = addr;
	CHECK_EQ(sci_buf_key(l->ep, mine, LEN_MAX + 4096, &key), 0);
	CHECK_EQ(sci_tsend(l->to, 9, 0, &key, sizeof(key)), 0);
	CHECK_EQ(sci_trecv(l->ep, l->to, 9, 0, 0, &theirs, sizeof(theirs), NULL), 0);
	msg_fill(copy, LEN_MAX, 77);
	CHECK_EQ(sci_write(l->to, &theirs, 8, copy, LEN_MAX - 3), 0);
	memset(copy, 0, LEN_MAX);
	CHECK_EQ(sci_read(l->to, &theirs, 8, copy, LEN_MAX - 3), 0);
	CHECK_BYTES(copy, LEN_MAX - 3, 77);
	CHECK_EQ(sci_rmw(l->to, &theirs, 0, &add, &before), 0);
	CHECK_EQ(before, 0);
	pair_meet(l);
	CHECK_BYTES(mine + 8, LEN_MAX - 3, 77);
	CHECK_EQ(*(uint64_t *)(void *)mine, 5);
	CHECK_EQ(sci_peer_map(l->to, &theirs, 0, &p), -EOPNOTSUPP);
	CHECK_EQ(sci_read(l->to, &theirs, LEN_MAX, copy, 4097), -ERANGE);
	free(copy);
}

static const char *kind;

static void far_side(struct peer *proc, void *arg)
{
	struct pair l;

	(void)arg;
	test_use_net(kind, 8);
	l = pair_open(proc, 4, 0);
	exchange(l.ep, l.to, 1);
	exchange_memory(&l);
	pair_close(&l);
}

static void run_pair(const char *with)
{
	struct peer *p;
	struct pair l;

	kind = with;
	p = peer_spawn(8, far_side, NULL);
	test_use_net(kind, 4);
	l = pair_open(p, 8, 0);
	exchange(l.ep, l.to, 1);
	exchange_memory(&l);
	pair_close(&l);
	peer_join(p);
}

TEST(over_unix_sockets)
{
	run_pair("unix");
}

TEST(over_tcp)
{
	run_pair("tcp");
}

TEST(over_tcp6)
{
	run_pair("tcp6");
}

/* ---- one endpoint on both ---- */

static void beyond(struct peer *proc, void *arg)
{
	struct pair l;

	(void)arg;
	test_use_net("unix", 12);
	l = pair_open(proc, 4, 0);
	exchange(l.ep, l.to, 3);
	pair_close(&l);
}

static void beside(struct peer *proc, void *arg)
{
	struct pair l;

	(void)arg;
	l = pair_open(proc, 4, 0);
	exchange(l.ep, l.to, 2);
	pair_close(&l);
}

TEST(an_endpoint_with_peers_on_both)
{
	struct peer *b = peer_spawn(8, beside, NULL);
	struct peer *c = peer_spawn(12, beyond, NULL);
	struct pair near = { .proc = b }, far = { .proc = c };

	test_use_net("unix", 4);
	test_use_cluster("");
	near.ep = far.ep = test_ep_open(TEST_ID, 0);
	/* of the peers that SCI_NET_PEERS names one is here */
	WAIT_UNTIL(!near.ep->ops->query.probe(near.ep->fabric, 0, 8), TEST_WAIT_MS);
	near.to = test_ep_connect(near.ep, 8, TEST_ID);
	far.to = test_ep_connect(far.ep, 12, TEST_ID);
	CHECK(!near.to->stream);
	CHECK(far.to->stream);
	exchange(near.ep, near.to, 2);
	exchange(far.ep, far.to, 3);
	pair_meet(&near);
	pair_meet(&far);
	CHECK_EQ(sci_ep_close(near.ep), 0);
	peer_join(b);
	peer_join(c);
}

/* Endpoints of one node are different processes to the net: each has its own segments. */
static void several(struct peer *proc, void *arg)
{
	struct sci_ep *ep[3];
	struct pair l = { .proc = proc };

	(void)arg;
	test_use_net("unix", 8);
	for (uint32_t i = 0; i < ARRAY_LEN(ep); i++)
		ep[i] = test_ep_open(10 + i, 0);
	for (uint32_t i = 0; i < ARRAY_LEN(ep); i++) {
		l.ep = ep[i];
		l.to = test_ep_connect(ep[i], 4, TEST_ID);
		exchange(l.ep, l.to, i);
	}
	for (uint32_t i = 0; i < ARRAY_LEN(ep); i++)
		CHECK_EQ(sci_ep_close(ep[i]), 0);
}

TEST(endpoints_of_one_node)
{
	struct peer *p = peer_spawn(8, several, NULL);
	struct sci_ep *ep;

	test_use_net("unix", 4);
	ep = test_ep_open(TEST_ID, 0);
	for (uint32_t i = 0; i < 3; i++) {
		struct sci_peer *from = test_ep_accept(ep);
		struct sci_addr addr;

		CHECK_EQ(sci_peer_addr(from, &addr), 0);
		CHECK_EQ(addr.id, 10 + i);
		exchange(ep, from, i);
	}
	CHECK_EQ(sci_ep_close(ep), 0);
	peer_join(p);
}
