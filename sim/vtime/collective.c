// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include "sim/vtime/collective.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/vtime/network.h"

#define ENDPOINT	1u
#define CHAIN_SEGMENT	7168u	/* bytes, as in libsci/team/trees.c */
#define PATIENCE_MS	10000	/* longer than any operation that works */

int member_open(struct member *m, struct vt_node *n)
{
	*m = (struct member){
		.node = n, .rank = vt_index(n), .size = vt_nodes(vt_sim_of(n)),
	};
	return sci_ep_open(&m->ep, ENDPOINT, SCI_EP_SINGLE_THREAD);
}

void member_close(struct member *m)
{
	if (m->ep)
		sci_ep_close(m->ep);
	free(m->buf);
	m->ep = NULL;
	m->buf = NULL;
}

static bool coll_buffer(struct member *m, size_t bytes)
{
	if (m->room < bytes || !m->buf) {
		free(m->buf);
		m->room = bytes ? bytes : 1;
		m->buf = malloc(m->room);
	}
	return m->buf;
}

/* ---- contents of messages ---- */

static uint32_t block_seed(const struct member *m, unsigned int from,
			   unsigned int to)
{
	uint32_t x = m->round * 0x9e3779b1u ^ from * 0x85ebca6bu ^
		     to * 0xc2b2ae35u;

	x ^= x >> 15;
	return x * 0x2c1b3c6du;
}

/* Return byte @i of a block: 8 bits of a number that grows by an odd constant with each byte. */
static uint8_t block_byte(uint32_t seed, size_t i)
{
	return (uint8_t)((seed + (uint32_t)i * 0x01000193u) >> 24);
}

static void block_fill(const struct member *m, unsigned int from,
		       unsigned int to, uint8_t *p, size_t len)
{
	uint32_t seed = block_seed(m, from, to);

	for (size_t i = 0; i < len; i++)
		p[i] = block_byte(seed, i);
}

static int block_check(const struct member *m, unsigned int from,
		       unsigned int to, const uint8_t *p, size_t len)
{
	uint32_t seed = block_seed(m, from, to);

	for (size_t i = 0; i < len; i++)
		if (p[i] != block_byte(seed, i))
			return -EILSEQ;
	return 0;
}

/* ---- to and from peers ---- */

/* Get the connection with @rank, which may have connected first. Return 0 or an errno. */
static int peer_get(struct member *m, unsigned int rank, struct sci_peer **p)
{
	const struct sci_addr addr = {
		.node = vt_id(vt_node(vt_sim_of(m->node), rank)),
		.id = ENDPOINT,
	};

	return sci_connect(m->ep, &addr, PATIENCE_MS, p);
}

static unsigned int rank_get(struct sci_peer *p)
{
	struct sci_addr addr = { 0 };

	sci_peer_addr(p, &addr);
	return addr.node / 4 - 1;
}

static int coll_finish(struct sci_req *req, size_t len)
{
	struct sci_status status;
	int ret = sci_wait(req, PATIENCE_MS, &status);

	return !ret && status.len != len ? -EMSGSIZE : ret;
}

static int member_send(struct member *m, unsigned int rank, const void *buf,
		       size_t len)
{
	struct sci_peer *p;
	struct sci_req *req;
	int ret = peer_get(m, rank, &p);

	ret = ret ? ret : sci_isend(p, buf, len, &req);
	return ret ? ret : coll_finish(req, len);
}

static int member_receive(struct member *m, unsigned int rank, void *buf,
			  size_t len)
{
	struct sci_peer *p;
	struct sci_req *req;
	int ret = peer_get(m, rank, &p);

	ret = ret ? ret : sci_irecv(m->ep, p, buf, len, &req);
	return ret ? ret : coll_finish(req, len);
}

/* Send to rank @to and receive from rank @from at the same time. */
static int coll_exchange(struct member *m, unsigned int to, const void *out,
			 unsigned int from, void *in, size_t len)
{
	struct sci_peer *target, *source;
	struct sci_req *receive, *send;
	int ret, sent;

	ret = peer_get(m, to, &target);
	ret = ret ? ret : peer_get(m, from, &source);
	ret = ret ? ret : sci_irecv(m->ep, source, in, len, &receive);
	if (ret)
		return ret;
	sent = sci_isend(target, out, len, &send);
	sent = sent ? sent : coll_finish(send, len);
	ret = coll_finish(receive, len);
	return sent ? sent : ret;
}

/* Send the own block for rank @to, and receive and check the block of rank @from. */
static int blocks_exchange(struct member *m, unsigned int to, uint8_t *out,
			   unsigned int from, uint8_t *in, size_t len)
{
	int ret;

	block_fill(m, m->rank, to, out, len);
	ret = coll_exchange(m, to, out, from, in, len);
	return ret ? ret : block_check(m, from, m->rank, in, len);
}

/* ---- operations ---- */

int collective_barrier(struct member *m, size_t bytes)
{
	int ret = coll_buffer(m, 16) ? 0 : -ENOMEM;

	(void)bytes;
	for (unsigned int k = 1; !ret && k < m->size; k *= 2)
		ret = blocks_exchange(m, (m->rank + k) % m->size, m->buf,
				      (m->rank + m->size - k) % m->size,
				      m->buf + 8, 8);
	return ret;
}

int collective_broadcast(struct member *m, size_t bytes)
{
	unsigned int k = 1;
	int ret = 0;

	if (!coll_buffer(m, bytes))
		return -ENOMEM;
	while (k < m->size && !(m->rank & k))
		k *= 2;
	if (m->rank)
		ret = member_receive(m, m->rank - k, m->buf, bytes);
	else
		block_fill(m, 0, 0, m->buf, bytes);
	while (!ret && (k /= 2))
		if (m->rank + k < m->size)
			ret = member_send(m, m->rank + k, m->buf, bytes);
	return ret ? ret : block_check(m, 0, 0, m->buf, bytes);
}

static size_t segment_len(size_t bytes, size_t at)
{
	return bytes - at < CHAIN_SEGMENT ? bytes - at : CHAIN_SEGMENT;
}

/* Receive the segment at @at, and send the segment before it. */
static int chain_round(struct member *m, struct sci_peer *from, struct sci_peer *to, size_t at,
		       size_t bytes)
{
	size_t before = at - CHAIN_SEGMENT;
	struct sci_req *reqs[2];
	unsigned int n = 0;
	int ret = 0;

	if (from && (at < bytes || !at))
		ret = sci_irecv(m->ep, from, m->buf + at, segment_len(bytes, at), &reqs[n++]);
	if (!ret && to && at)
		ret = sci_isend(to, m->buf + before, segment_len(bytes, before), &reqs[n++]);
	return ret ? ret : sci_waitall(reqs, n, PATIENCE_MS, NULL);
}

int collective_chain(struct member *m, size_t bytes)
{
	struct sci_peer *from = NULL, *to = NULL;
	size_t segments = bytes ? (bytes - 1) / CHAIN_SEGMENT + 1 : 1;
	int ret = 0;

	if (!coll_buffer(m, bytes))
		return -ENOMEM;
	if (m->rank)
		ret = peer_get(m, m->rank - 1, &from);
	else
		block_fill(m, 0, 0, m->buf, bytes);
	if (!ret && m->rank + 1 < m->size)
		ret = peer_get(m, m->rank + 1, &to);
	for (size_t i = 0; !ret && i <= segments; i++)
		ret = chain_round(m, from, to, i * CHAIN_SEGMENT, bytes);
	return ret ? ret : block_check(m, 0, 0, m->buf, bytes);
}

static void bytes_add(const struct member *m, uint8_t *sum, const uint8_t *p, size_t len)
{
	const struct vt_profile *profile = vt_profile_of(m->node);

	for (size_t i = 0; i < len; i++)
		sum[i] = (uint8_t)(sum[i] + p[i]);
	vt_busy(m->node, profile->copy_setup + vt_transfer(len, profile->copy_rate));
}

static int sum_check(const struct member *m, const uint8_t *sum, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		uint8_t want = 0;

		for (unsigned int r = 0; r < m->size; r++)
			want = (uint8_t)(want + block_byte(block_seed(m, r, 0), i));
		if (sum[i] != want)
			return -EILSEQ;
	}
	return 0;
}

/* Add up the bytes of the first @n ranks; @n is a power of two. */
static int allreduce_rounds(struct member *m, unsigned int n, uint8_t *sum, uint8_t *in,
			    size_t bytes)
{
	int ret = 0;

	for (unsigned int k = 1; !ret && k < n; k *= 2) {
		ret = coll_exchange(m, m->rank ^ k, sum, m->rank ^ k, in, bytes);
		bytes_add(m, sum, in, bytes);
	}
	return ret;
}

int collective_allreduce(struct member *m, size_t bytes)
{
	unsigned int n = 1, extra;
	uint8_t *sum, *in;
	int ret = 0;

	if (!coll_buffer(m, 2 * bytes))
		return -ENOMEM;
	sum = m->buf;
	in = m->buf + bytes;
	while (n <= m->size / 2)
		n *= 2;
	extra = m->size - n;
	block_fill(m, m->rank, 0, sum, bytes);
	if (m->rank >= n) {
		ret = member_send(m, m->rank - n, sum, bytes);
		ret = ret ? ret : member_receive(m, m->rank - n, sum, bytes);
		return ret ? ret : sum_check(m, sum, bytes);
	}
	if (m->rank < extra) {
		ret = member_receive(m, m->rank + n, in, bytes);
		bytes_add(m, sum, in, bytes);
	}
	ret = ret ? ret : allreduce_rounds(m, n, sum, in, bytes);
	if (!ret && m->rank < extra)
		ret = member_send(m, m->rank + n, sum, bytes);
	return ret ? ret : sum_check(m, sum, bytes);
}

static int coll_exchange_all(struct member *m, const unsigned int *ranks,
			     unsigned int n, size_t bytes)
{
	struct sci_req *reqs[8] = { NULL };
	struct sci_peer *peers[4];
	uint8_t *buf = m->buf;
	int ret = 0;

	for (unsigned int i = 0; !ret && i < n; i++)
		ret = peer_get(m, ranks[i], &peers[i]);
	for (unsigned int i = 0; !ret && i < n; i++)
		ret = sci_irecv(m->ep, peers[i], buf + (4 + i) * bytes, bytes,
				&reqs[i]);
	for (unsigned int i = 0; !ret && i < n; i++) {
		block_fill(m, m->rank, ranks[i], buf + i * bytes, bytes);
		ret = sci_isend(peers[i], buf + i * bytes, bytes, &reqs[n + i]);
	}
	ret = ret ? ret : sci_waitall(reqs, 2 * (size_t)n, PATIENCE_MS, NULL);
	for (unsigned int i = 0; !ret && i < n; i++)
		ret = block_check(m, ranks[i], m->rank, buf + (4 + i) * bytes,
				  bytes);
	return ret;
}

int collective_neighbours(struct member *m, size_t bytes)
{
	unsigned int ranks[4], n;

	if (!coll_buffer(m, 8 * bytes))
		return -ENOMEM;
	n = vt_network_neighbours(vt_sim_of(m->node), m->rank, ranks);
	return coll_exchange_all(m, ranks, n, bytes);
}

/* Make an all-to-all. If the number of ranks is a power of two, ranks exchange in pairs. */
int collective_alltoall(struct member *m, size_t bytes)
{
	bool pairs = !(m->size & (m->size - 1));
	int ret = coll_buffer(m, 2 * bytes) ? 0 : -ENOMEM;

	for (unsigned int k = 1; !ret && k < m->size; k++) {
		unsigned int to = (m->rank + k) % m->size;
		unsigned int from = (m->rank + m->size - k) % m->size;

		if (pairs)
			to = from = m->rank ^ k;
		ret = blocks_exchange(m, to, m->buf, from, m->buf + bytes,
				      bytes);
	}
	return ret;
}

/* ---- Bruck ---- */

/*
 * At the start, block i of a rank is for the rank that is i higher. The round of bit k sends the
 * blocks whose index i has this bit to the rank that is k higher. After all rounds each block is
 * at its target, where block i is from the rank that is i lower.
 */
struct bruck {
	uint8_t *blocks;
	uint8_t *out, *in;
	size_t bytes;
};

/* Copy the blocks whose index has bit @k to @packed or back. Return the number of bytes. */
static size_t bruck_move(const struct member *m, const struct bruck *b,
			 unsigned int k, uint8_t *packed, bool pack)
{
	const struct vt_profile *p = vt_profile_of(m->node);
	size_t len = 0;

	for (unsigned int i = k; i < m->size; i += 2 * k) {
		unsigned int run = i + k < m->size ? k : m->size - i;
		uint8_t *blocks = b->blocks + i * b->bytes;

		if (pack)
			memcpy(packed + len, blocks, run * b->bytes);
		else
			memcpy(blocks, packed + len, run * b->bytes);
		len += run * b->bytes;
	}
	vt_busy(m->node, p->copy_setup + vt_transfer(len, p->copy_rate));
	return len;
}

static int bruck_rounds(struct member *m, const struct bruck *b)
{
	int ret = 0;

	for (unsigned int k = 1; !ret && k < m->size; k *= 2) {
		size_t len = bruck_move(m, b, k, b->out, true);

		ret = coll_exchange(m, (m->rank + k) % m->size, b->out,
				    (m->rank + m->size - k) % m->size, b->in, len);
		bruck_move(m, b, k, b->in, false);
	}
	return ret;
}

int collective_bruck(struct member *m, size_t bytes)
{
	size_t all = m->size * bytes;
	struct bruck b;
	int ret;

	if (!coll_buffer(m, 3 * all))
		return -ENOMEM;
	b = (struct bruck){ m->buf, m->buf + all, m->buf + 2 * all, bytes };
	for (unsigned int i = 0; i < m->size; i++)
		block_fill(m, m->rank, (m->rank + i) % m->size,
			   b.blocks + i * bytes, bytes);
	ret = bruck_rounds(m, &b);
	for (unsigned int i = 0; !ret && i < m->size; i++)
		ret = block_check(m, (m->rank + m->size - i) % m->size,
				  m->rank, b.blocks + i * bytes, bytes);
	return ret;
}

/* ---- star ---- */

static int member_answer(struct member *m, size_t bytes)
{
	struct sci_status status;
	struct sci_req *req;
	unsigned int rank;
	int ret = sci_irecv(m->ep, NULL, m->buf, bytes, &req);

	ret = ret ? ret : sci_wait(req, PATIENCE_MS, &status);
	if (ret || status.len != bytes)
		return ret ? ret : -EMSGSIZE;
	rank = rank_get(status.peer);
	ret = block_check(m, rank, 0, m->buf, bytes);
	block_fill(m, 0, rank, m->buf, bytes);
	ret = ret ? ret : sci_isend(status.peer, m->buf, bytes, &req);
	return ret ? ret : coll_finish(req, bytes);
}

int collective_star(struct member *m, size_t bytes)
{
	int ret = coll_buffer(m, 2 * bytes) ? 0 : -ENOMEM;

	for (unsigned int i = 1; !ret && !m->rank && i < m->size; i++)
		ret = member_answer(m, bytes);
	if (!m->rank || ret)
		return ret;
	block_fill(m, m->rank, 0, m->buf, bytes);
	ret = member_send(m, 0, m->buf, bytes);
	ret = ret ? ret : member_receive(m, 0, m->buf + bytes, bytes);
	return ret ? ret : block_check(m, 0, m->rank, m->buf + bytes, bytes);
}
