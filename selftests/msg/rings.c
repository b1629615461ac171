// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Rings of blocks are lent: all rings of an endpoint together have a limit, unused rings
 * come back, and messages arrive whole while rings come and go.
 *
 *	test process	node 4, one endpoint with little memory for rings
 *	clients		node 8, one process with many endpoints
 *
 * An endpoint with many peers begins a block at the start of an empty ring. All of this ring
 * is free then, not only its end.
 */
#include "libsci/msg/conn/conn.h"
#include "selftests/msg/couple.h"
#include "selftests/msg/descriptors.h"
#include "selftests/msg/traffic.h"

#define CLIENTS		20u
#define MESSAGES	(TRAFFIC_SLOW > 1 ? 200u : 400u)
#define LEN_MAX		300000u		/* a rendezvous */
#define RINGS_MAX	(32u << 10)
#define RING_LEAST	8192u		/* libsci/msg/proto/rings.c */
#define CONTEXT		7u
#define STOP		UINT64_MAX	/* the tag of the last message */
#define LONG		(1u << 20)

static size_t length(uint64_t n)
{
	static const size_t lens[] = { 40, 1500, 9000, 50000, 262144, LEN_MAX };

	return lens[mix64(n) % ARRAY_LEN(lens)];
}

/* Wait for both requests. All endpoints make progress meanwhile. */
static void wait_both(struct sci_ep **ep, struct sci_req *reqs[2])
{
	struct sci_status st;
	unsigned int left = 2;

	while (left) {
		for (unsigned int i = 0; i < CLIENTS; i++)
			test_progress(ep[i]);
		for (unsigned int i = 0; i < 2; i++) {
			int ret = reqs[i] ? sci_test(reqs[i], &st) : -EAGAIN;

			if (ret == -EAGAIN)
				continue;
			CHECK_EQ(ret, 0);
			reqs[i] = NULL;
			left--;
		}
	}
}

static void clients(struct peer *self, void *arg)
{
	static unsigned char out[LEN_MAX], in[LEN_MAX];
	struct sci_peer *to[CLIENTS];
	struct sci_ep *ep[CLIENTS];
	uint64_t state = 1;

	(void)self;
	(void)arg;
	for (unsigned int i = 0; i < CLIENTS; i++) {
		ep[i] = test_ep_open(i + 1, 0);
		to[i] = test_ep_connect(ep[i], 4, TEST_ID);
		CHECK_EQ(sci_ep_set(ep[i], SCI_PARAM_ATTACH_AFTER, 0), 0);
	}
	for (uint64_t n = 0; n < MESSAGES; n++) {
		/* few clients are busy at a time, and not always the same */
		unsigned int i = (unsigned int)(draw(&state, 4) + n / 10) % CLIENTS;
		struct sci_req *reqs[2] = { NULL };
		size_t len = length(n);

		msg_fill(out, len, n);
		CHECK_EQ(sci_itrecv(ep[i], to[i], CONTEXT, n, 0, in, len, &reqs[0]), 0);
		CHECK_EQ(sci_itsend(to[i], CONTEXT, n, out, len, &reqs[1]), 0);
		wait_both(ep, reqs);
		CHECK_BYTES(in, len, ~n);
	}
	CHECK_EQ(sci_tsend(to[0], CONTEXT, STOP, NULL, 0), 0);
	for (unsigned int i = 0; i < CLIENTS; i++)
		CHECK_EQ(sci_ep_close(ep[i]), 0);
}

/* Count the rings that have gone since the last call. */
static unsigned int rings_gone(struct sci_ep *ep)
{
	static bool had[CLIENTS][MSG_RINGS];
	unsigned int gone = 0;
	struct list *pos, *n;

	list_for_each_safe(pos, n, &ep->peers) {
		struct sci_peer *p = container_of(pos, struct sci_peer, link);
		bool *ring = had[p->addr.id - 1];

		for (unsigned int i = 0; i < peer_rings(p); i++) {
			bool has = blocks_rx(p, i)->size;

			gone += ring[i] && !has;
			ring[i] = has;
		}
	}
	return gone;
}

TEST(all_rings_together_have_a_limit_and_unused_ones_come_back)
{
	static unsigned char in[LEN_MAX], out[LEN_MAX];
	struct peer *proc = peer_spawn(8, clients, NULL);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	unsigned int returned = 0;
	uint64_t most = 0;
	struct sci_status st;

	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_RINGS_MAX, RINGS_MAX), 0);
	for (;;) {
		CHECK_EQ(sci_trecv(ep, NULL, CONTEXT, 0, UINT64_MAX, in, LEN_MAX, &st), 0);
		if (st.tag == STOP)
			break;
		CHECK_EQ(st.len, length(st.tag));
		CHECK_BYTES(in, st.len, st.tag);
		msg_fill(out, st.len, ~st.tag);
		CHECK_EQ(sci_tsend(st.peer, CONTEXT, st.tag, out, st.len), 0);
		most = ep->ring_bytes > most ? ep->ring_bytes : most;
		returned += rings_gone(ep);
	}
	test_note("at most %llu bytes of rings, %u rings came back",
		  (unsigned long long)most, returned);
	/* each client may have two small rings beyond the limit */
	CHECK(most <= RINGS_MAX + 2 * CLIENTS * RING_LEAST);
	CHECK(most > RINGS_MAX / 4);
	CHECK(returned);
	CHECK_EQ(sci_ep_close(ep), 0);
	peer_join(proc);
}

/* ---- blocks at the start of an empty ring ---- */

#define BUSY_PEERS	3u		/* more than FEW_PEERS: libsci/msg/conn/blocks.h */
#define LONG_LEN	(128u << 10)	/* several blocks */
#define BLOCK_LEN	(7u << 10)	/* one block */

/* The sender is ep[0]; its messages go to ep[1]. All endpoints belong to the test process. */
struct star {
	struct sci_ep *ep[BUSY_PEERS + 1];
	struct sci_peer *to;
};

static void star_progress(const struct star *s)
{
	for (unsigned int i = 0; i <= BUSY_PEERS; i++)
		test_progress(s->ep[i]);
}

static struct star star_open(void)
{
	static const struct config c = {
		.n = 5, .set = { { SCI_PARAM_ATTACH_AFTER, 0 },
				 { SCI_PARAM_LINES_MAX, 64 },
				 { SCI_PARAM_EAGER_MAX, LONG_LEN },
				 { SCI_PARAM_EAGER_BLOCK, BLOCK_LEN },
				 { SCI_PARAM_EAGER_RING, 512 << 10 } }
	};
	struct star s;

	for (unsigned int i = 0; i <= BUSY_PEERS; i++)
		s.ep[i] = test_ep_config(TEST_ID + i, &c);
	for (unsigned int i = BUSY_PEERS; i; i--) {
		const struct sci_addr addr = { 4, TEST_ID + i };

		CHECK_EQ(sci_peer_open(s.ep[0], &addr, -1, &s.to), 0);
		WAIT_UNTIL((star_progress(&s), !sci_peer_state(s.to)), TEST_WAIT_MS);
	}
	return s;
}

static void star_recv(const struct star *s, uint64_t tag, size_t len)
{
	static unsigned char in[LONG_LEN];
	struct sci_status st;
	struct sci_req *req;

	CHECK_EQ(sci_itrecv(s->ep[1], NULL, CONTEXT, tag, 0, in, len, &req), 0);
	WAIT_UNTIL((star_progress(s), !sci_test(req, &st)), TEST_WAIT_MS);
	CHECK_EQ(st.len, len);
	CHECK_BYTES(in, len, tag);
}

/* Send a message, unless it would wait. */
static int star_send(const struct star *s, uint64_t tag, size_t len)
{
	static unsigned char out[LONG_LEN];
	const struct iovec iov = { out, len };
	const struct sci_send send = {
		.iov = &iov, .n = 1, .tag = tag, .context = CONTEXT,
		.flags = SCI_SEND_TAGGED | SCI_SEND_COPY | SCI_SEND_AT_ONCE,
	};

	msg_fill(out, len, tag);
	return sci_isendm(s->to, &send, NULL);
}

/* The receiver reads each message before the next is sent, so the ring is empty each time. */
static uint64_t star_exchange(const struct star *s, uint64_t tag)
{
	static const size_t lens[] = { BLOCK_LEN, LONG_LEN, BLOCK_LEN, BLOCK_LEN, BLOCK_LEN };

	for (unsigned int i = 0; i < ARRAY_LEN(lens); i++, tag++) {
		WAIT_UNTIL((star_progress(s), !star_send(s, tag, lens[i])), TEST_WAIT_MS);
		star_recv(s, tag, lens[i]);
	}
	return tag;
}

TEST(a_ring_that_starts_again_has_room_for_many_blocks)
{
	struct star s = star_open();

	for (uint64_t tag = 1, end; tag < 400; tag = end) {
		tag = star_exchange(&s, tag);
		for (end = tag; !star_send(&s, end, BLOCK_LEN); end++)
			CHECK(end - tag < DATA_LINES);
		/* credits for half of the lines may be late */
		CHECK(end - tag >= DATA_LINES / 2);
		for (; tag < end; tag++)
			star_recv(&s, tag, BLOCK_LEN);
	}
	for (unsigned int i = 0; i <= BUSY_PEERS; i++)
		CHECK_EQ(sci_ep_close(s.ep[i]), 0);
}

/* ---- rings of a peer that leaves ---- */

/*
 * The peer leaves before the other side has imported the ring that it was waiting for. Behind the
 * line with this ring are the blocks of a message.
 */
TEST(a_ring_that_comes_too_late_loses_no_message)
{
	enum { LEN = 300000 };
	static unsigned char in[LEN], out[LEN], eager[3000];
	struct couple c = couple_open(NULL);
	struct sci_req *received, *sent, *failed;

	msg_fill(out, LEN, 1);
	CHECK_EQ(sci_irecv(c.ep[0], c.to[0], in, LEN, &received), 0);
	CHECK_EQ(sci_isend(c.to[1], out, LEN, &sent), 0);
	CHECK(sci_progress(c.ep[0]) >= 0);
	CHECK_EQ(sci_isend(c.to[0], eager, sizeof(eager), &failed), 0);
	CHECK_EQ(test_wait(sent, NULL), 0);
	CHECK_EQ(sci_ep_close(c.ep[1]), 0);
	CHECK_EQ(test_wait(received, NULL), 0);
	CHECK_BYTES(in, LEN, 1);
	CHECK_EQ(test_wait(failed, NULL), -ENOTCONN);
	CHECK_EQ(sci_ep_close(c.ep[0]), 0);
}

/* The peer reads no answers, asks for a ring, sends a message in lines, and leaves. */
TEST(a_request_for_a_ring_that_cannot_be_answered_loses_no_message)
{
	static unsigned char in[CTL_LINES + 2][LONG], out[LONG];
	struct sci_req *received[CTL_LINES + 2], *sent;
	struct couple c = couple_open(NULL);
	unsigned char small[100];

	for (unsigned int i = 0; i < ARRAY_LEN(received); i++) {
		CHECK_EQ(sci_itrecv(c.ep[0], c.to[0], 1, i, 0, in[i], LONG, &received[i]), 0);
		CHECK_EQ(sci_itsend(c.to[1], 1, i, out, LONG, &sent), 0);
	}
	WAIT_UNTIL(sci_progress(c.ep[0]) >= 0 && !list_empty(&c.to[0]->ctlq), TEST_WAIT_MS);
	CHECK_EQ(sci_ep_set(c.ep[1], SCI_PARAM_ATTACH_AFTER, 0), 0);
	msg_fill(small, sizeof(small), 1);
	CHECK_EQ(sci_tsend(c.to[1], 2, 0, small, sizeof(small)), 0);
	CHECK(c.to[1]->waiting_attach);
	CHECK_EQ(sci_disconnect(c.to[1]), 0);
	memset(small, 0, sizeof(small));
	CHECK_EQ(sci_trecv(c.ep[0], c.to[0], 2, 0, 0, small, sizeof(small), NULL), 0);
	CHECK_BYTES(small, sizeof(small), 1);
	for (unsigned int i = 0; i < ARRAY_LEN(received); i++)
		CHECK_EQ(test_wait(received[i], NULL), -ENOTCONN);
	couple_close(&c);
}

/* ---- descriptors ---- */

/* Send and receive a long message: each side lends the other a ring. */
static void swap_long(struct pair *l)
{
	static unsigned char in[LONG], out[LONG];
	struct sci_req *req;

	CHECK_EQ(sci_irecv(l->ep, l->to, in, sizeof(in), &req), 0);
	CHECK_EQ(sci_send(l->to, out, sizeof(out)), 0);
	CHECK_EQ(test_wait(req, NULL), 0);
}

static void swaps_long(struct peer *proc, void *arg)
{
	struct pair l = pair_open(proc, 4, 0);

	(void)arg;
	pair_meet(&l);
	swap_long(&l);
	pair_meet(&l);
	pair_close(&l);
}

/* One importer connects to a ring. Then the ring keeps the connection, but no name and no memfd. */
TEST(a_ring_takes_one_descriptor_on_each_side)
{
	struct peer *proc = peer_spawn(8, swaps_long, NULL);
	struct pair l = pair_open(proc, 8, 0);
	unsigned int fds;

	if (!l.ep->ops->ring)
		SKIP("descriptors of this fabric are another matter");
	pair_meet(&l);
	fds = count_fds();
	swap_long(&l);
	pair_meet(&l);
	/* its own ring and the peer's */
	WAIT_UNTIL(count_fds() <= fds + 2, TEST_WAIT_MS);
	pair_close(&l);
	peer_join(proc);
}

static void takes_three(struct peer *proc, void *arg)
{
	struct pair l = pair_open(proc, 4, 0);
	static unsigned char in[LONG];

	(void)arg;
	for (unsigned int i = 0; i < 2; i++)
		CHECK(sci_recv(l.ep, l.to, in, sizeof(in), NULL) < 0);
	CHECK_EQ(sci_peer_state(l.to), 0);
	CHECK_EQ(sci_recv(l.ep, l.to, in, sizeof(in), NULL), 0);
	CHECK_BYTES(in, LONG, 1);
	pair_close(&l);
}

/* The messages need the transfer ring. The sender cannot import the first two that it is lent. */
TEST(a_ring_is_imported_when_there_is_room_again)
{
	struct peer *proc = peer_spawn(8, takes_three, NULL);
	struct pair l = pair_open(proc, 8, 0);
	static unsigned char out[LONG];

	if (!l.ep->ops->ring)
		SKIP("descriptors of this fabric are another matter");
	msg_fill(out, LONG, 1);
	descriptors_use_up();
	for (unsigned int i = 0; i < 2; i++)
		CHECK_EQ(sci_send(l.to, out, LONG), -EMFILE);
	descriptors_give_back();
	CHECK_EQ(sci_send(l.to, out, LONG), 0);
	pair_close(&l);
	peer_join(proc);
}
