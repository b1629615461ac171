// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include "sim/vtime/collective.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/vtime/network.h"

#define ENDPOINT	1u
#define PATIENCE_MS	10000	/* longer than any operation that works */

struct vt_teams *members_teams(struct vt_sim *s)
{
	return vt_teams_new(s, ENDPOINT);
}

int member_open(struct member *m, struct vt_node *n, const struct vt_teams *teams)
{
	int ret;

	*m = (struct member){
		.node = n, .rank = vt_index(n), .size = vt_nodes(vt_sim_of(n)),
	};
	ret = sci_ep_open(&m->ep, ENDPOINT, SCI_EP_SINGLE_THREAD);
	if (ret)
		return ret;
	m->team = vt_team_join(teams, m->ep, m->rank);
	return m->team ? 0 : -ENOMEM;
}

void member_close(struct member *m)
{
	if (m->ep)
		sci_ep_close(m->ep);
	vt_team_leave(m->team);
	free(m->buf);
	m->ep = NULL;
	m->team = NULL;
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

/* ---- operations ---- */

int collective_barrier(struct member *m, size_t bytes)
{
	(void)bytes;
	return sci_team_barrier(m->team);
}

int collective_broadcast(struct member *m, size_t bytes)
{
	int ret;

	if (!coll_buffer(m, bytes))
		return -ENOMEM;
	if (!m->rank)
		block_fill(m, 0, 0, m->buf, bytes);
	ret = sci_team_bcast(m->team, 0, m->buf, bytes);
	return ret ? ret : block_check(m, 0, 0, m->buf, bytes);
}

static void bytes_add(void *inout, const void *in, size_t len, void *arg)
{
	const struct member *m = arg;
	const struct vt_profile *profile = vt_profile_of(m->node);
	uint8_t *sum = inout;
	const uint8_t *p = in;

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

int collective_allreduce(struct member *m, size_t bytes)
{
	const struct sci_op sum = { .fn = bytes_add, .size = 1, .arg = m };
	int ret;

	if (!coll_buffer(m, 2 * bytes))
		return -ENOMEM;
	block_fill(m, m->rank, 0, m->buf, bytes);
	ret = sci_team_allreduce(m->team, m->buf, m->buf + bytes, bytes, &sum);
	return ret ? ret : sum_check(m, m->buf + bytes, bytes);
}

int collective_alltoall(struct member *m, size_t bytes)
{
	uint8_t *in;
	int ret;

	if (!coll_buffer(m, 2 * m->size * bytes))
		return -ENOMEM;
	in = m->buf + m->size * bytes;
	for (unsigned int r = 0; r < m->size; r++)
		block_fill(m, m->rank, r, m->buf + r * bytes, bytes);
	ret = sci_team_alltoall(m->team, m->buf, in, bytes);
	for (unsigned int r = 0; !ret && r < m->size; r++)
		ret = block_check(m, r, m->rank, in + r * bytes, bytes);
	return ret;
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
