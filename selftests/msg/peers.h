/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: tests of two endpoints
 *
 *	static void echo(struct peer *proc, void *arg)
 *	{
 *		struct pair l = pair_open(proc, 4, 0);
 *
 *		...
 *		pair_close(&l);
 *	}
 *
 *	TEST(something)
 *	{
 *		struct peer *p = peer_spawn(8, echo, NULL);
 *		struct pair l = pair_open(p, 8, 0);
 *
 *		...
 *		pair_close(&l);
 *		peer_join(p);
 *	}
 *
 * An endpoint makes progress only in calls.  Where one side may still need the
 * other, both meet by messages (pair_meet()), not by peer_expect().
 */
#ifndef SELFTESTS_MSG_PEERS_H
#define SELFTESTS_MSG_PEERS_H

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <sci/msg.h>

#include "libsci/fabric/net/net.h"
#include "libsci/msg/endpoint.h"
#include "selftests/harness.h"

#define TEST_ID		1u		/* id of each node's endpoint */
#define MEET_CONTEXT	0x6d656574u	/* for pair_meet() only */

struct pair {
	struct peer *proc;
	struct sci_ep *ep;
	struct sci_peer *to;
};

/* Open an endpoint without single copies: they would replace blocks, which most tests are about. */
static inline struct sci_ep *test_ep_open(uint32_t id, unsigned int flags)
{
	struct sci_ep *ep = NULL;

	CHECK_EQ(sci_ep_open(&ep, id, flags), 0);
	CHECK(ep);
	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_SINGLE_COPY_MIN, UINT64_MAX), 0);
	return ep;
}

/* Return whether messages wait in this process for the end of a row: libsci/fabric/net/row.c. */
static inline bool test_rows_wait(struct sci_ep *ep)
{
	struct net *net = ep->net ? net_of(ep->net) : NULL;
	bool wait;

	if (!net)
		return false;
	pthread_mutex_lock(&net->svc.lock);
	wait = !list_empty(&net->held);
	pthread_mutex_unlock(&net->svc.lock);
	return wait;
}

/* Wait until no message waits in this process: it may die now, and its messages arrive. */
static inline void test_send_rows(struct sci_ep *ep)
{
	WAIT_UNTIL(!test_rows_wait(ep), TEST_WAIT_MS);
}

static inline struct sci_peer *test_ep_connect(struct sci_ep *ep,
					       unsigned int node, uint32_t id)
{
	struct sci_addr addr = { node, id };
	struct sci_peer *to = NULL;

	CHECK_EQ(sci_connect(ep, &addr, TEST_WAIT_MS, &to), 0);
	CHECK(to);
	return to;
}

static inline struct sci_peer *test_ep_accept(struct sci_ep *ep)
{
	struct sci_peer *from = NULL;

	CHECK_EQ(sci_accept(ep, TEST_WAIT_MS, &from), 0);
	CHECK(from);
	return from;
}

static inline uint64_t test_ep_get(struct sci_ep *ep, enum sci_param param)
{
	uint64_t value;

	CHECK_EQ(sci_ep_get(ep, param, &value), 0);
	return value;
}

static inline struct sci_ep_stats test_ep_stats(struct sci_ep *ep)
{
	struct sci_ep_stats stats = { .size = sizeof(stats) };

	CHECK_EQ(sci_ep_stats(ep, &stats), 0);
	return stats;
}

/* Wait for @req, which must complete. Return its error. */
static inline int test_wait(struct sci_req *req, struct sci_status *status)
{
	int ret = sci_wait(req, TEST_WAIT_MS, status);

	CHECK(ret != -ETIMEDOUT);
	return ret;
}

/* Skip the test without shared memory; sci_peer_map() must report that. */
static inline void need_shared_memory(struct pair *l)
{
	struct sci_key key = { .len = 1 };
	void *addr;

	if (sci_ep_traits(l->ep) & SCI_TRAIT_SHARED_MEMORY)
		return;
	CHECK_EQ(sci_peer_map(l->to, &key, 0, &addr), -EOPNOTSUPP);
	SKIP("no shared memory");
}

/* Connect to the endpoint on @node. Node 4 accepts; other nodes connect. */
static inline void pair_join(struct pair *l, unsigned int node)
{
	if (node == 4)
		l->to = test_ep_connect(l->ep, node, TEST_ID);
	else
		l->to = test_ep_accept(l->ep);
}

static inline struct pair pair_open(struct peer *proc, unsigned int node,
				    unsigned int flags)
{
	struct pair l = { .proc = proc, .ep = test_ep_open(TEST_ID, flags) };

	pair_join(&l, node);
	return l;
}

/* Arm @ep after all work and all late doorbells: only new events make its descriptor readable. */
static inline void arm_for_sure(struct sci_ep *ep)
{
	struct pollfd pfd = { .fd = sci_ep_fd(ep), .events = POLLIN };
	int ret;

	do {
		while ((ret = sci_ep_arm(ep)) == -EAGAIN)
			CHECK(sci_progress(ep) >= 0);
		CHECK_EQ(ret, 0);
		ret = poll(&pfd, 1, 0);
		CHECK(ret >= 0);
		if (ret)
			CHECK(sci_progress(ep) >= 0);
	} while (ret);
}

static inline struct sci_completion next_completion(struct pair *l)
{
	struct sci_completion done = { .data = l };

	CHECK_EQ(sci_completions(l->ep, TEST_WAIT_MS, &done, 1), 1);
	return done;
}

/* Flags and parameters of an endpoint. */
struct config {
	unsigned int flags;
	unsigned int n;
	struct {
		enum sci_param param;
		uint64_t value;
	} set[6];
};

static inline struct sci_ep *test_ep_config(uint32_t id,
					    const struct config *c)
{
	struct sci_ep *ep = test_ep_open(id, c->flags);

	for (unsigned int i = 0; i < c->n; i++)
		CHECK_EQ(sci_ep_set(ep, c->set[i].param, c->set[i].value), 0);
	return ep;
}

static inline struct pair pair_config(struct peer *proc, unsigned int node,
				      const struct config *c)
{
	struct pair l = { .proc = proc, .ep = test_ep_config(TEST_ID, c) };

	pair_join(&l, node);
	return l;
}

/* Wait until the other side is here too. Both sides make progress meanwhile. */
static inline void pair_meet(struct pair *l)
{
	struct sci_req *reqs[2];

	CHECK_EQ(sci_itsend(l->to, MEET_CONTEXT, 0, NULL, 0, &reqs[0]), 0);
	CHECK_EQ(sci_itrecv(l->ep, l->to, MEET_CONTEXT, 0, 0, NULL, 0,
			    &reqs[1]), 0);
	CHECK_EQ(sci_waitall(reqs, 2, TEST_WAIT_MS, NULL), 0);
}

/* Meet first, so that neither side loses its peer before it has finished. */
static inline void pair_close(struct pair *l)
{
	pair_meet(l);
	CHECK_EQ(sci_ep_close(l->ep), 0);
}

/* ---- bytes ---- */

/* Return byte @i of the pattern of @seed. A pattern has no period. */
static inline unsigned char msg_byte(size_t i, uint64_t seed)
{
	uint64_t x = (i + seed * 0x9e3779b97f4a7c15ull + 1) *
		     0xbf58476d1ce4e5b9ull;

	return x >> 56 ^ x >> 40;
}

/* Return a random number below @n. *@state must not be 0. */
static inline uint64_t msg_random(uint64_t *state, uint64_t n)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (*state >> 11) % n;
}

/* Fill @buf with bytes @from .. @from + @len - 1 of the pattern. */
static inline void msg_fill_from(void *buf, size_t from, size_t len,
				 uint64_t seed)
{
	unsigned char *c = buf;

	for (size_t i = 0; i < len; i++)
		c[i] = msg_byte(from + i, seed);
}

static inline void msg_fill(void *buf, size_t len, uint64_t seed)
{
	msg_fill_from(buf, 0, len, seed);
}

/* Return the offset of the first byte that differs from the pattern, or -1. */
static inline long long msg_differs(const void *buf, size_t from, size_t len,
				    uint64_t seed)
{
	const unsigned char *c = buf;

	for (size_t i = 0; i < len; i++)
		if (c[i] != msg_byte(from + i, seed))
			return (long long)i;
	return -1;
}

#define CHECK_BYTES(buf, len, seed)					\
	do {								\
		TEST_SITE(bytes_site_, "CHECK_BYTES");			\
		size_t bytes_len_ = (len);				\
		long long bytes_at_ = msg_differs(buf, 0, bytes_len_,	\
						  seed);		\
		if (bytes_at_ >= 0)					\
			test_fail(&bytes_site_, "byte %lld of %zu is "	\
				  "wrong", bytes_at_, bytes_len_);	\
	} while (0)

/* ---- buffers with guard bytes round them ---- */

#define GUARD_BYTES	128u
#define GUARD		0xa5

struct guarded {
	unsigned char *base;
	unsigned char *p;		/* @len bytes, all GUARD at first */
	size_t len;
};

/* Allocate @len bytes, @align (0 .. 63) bytes after a multiple of 64. */
static inline struct guarded guarded_alloc(size_t len, size_t align)
{
	struct guarded g = { .len = len };
	size_t size = (len + 2 * GUARD_BYTES + 63) & ~(size_t)63;

	g.base = aligned_alloc(64, size + 64);
	CHECK(g.base);
	memset(g.base, GUARD, size + 64);
	g.p = g.base + GUARD_BYTES + align;
	return g;
}

/* Return true if only the first @len bytes of @g have been written. */
static inline bool guarded_intact(const struct guarded *g, size_t len)
{
	for (const unsigned char *c = g->base; c < g->p; c++)
		if (*c != GUARD)
			return false;
	for (size_t i = len; i < g->len + GUARD_BYTES - 64; i++)
		if (g->p[i] != GUARD)
			return false;
	return true;
}

static inline void guarded_free(struct guarded *g)
{
	CHECK(guarded_intact(g, g->len));
	free(g->base);
}

#endif
