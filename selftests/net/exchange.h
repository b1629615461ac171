/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Messages of all lengths, and one-sided calls, between two endpoints. */
#ifndef SELFTESTS_NET_EXCHANGE_H
#define SELFTESTS_NET_EXCHANGE_H

#include "selftests/msg/peers.h"

#define LEN_MAX		(3u << 20)

static const size_t lengths[] = {
	0, 1, 8, 62, 63, 64, 300, 4095, 4096, 4097, 65536, 65537, 300000, LEN_MAX,
};

/* Exchange a message of each length with the other side, which does the same. */
static inline void exchange(struct sci_ep *ep, struct sci_peer *to, uint64_t seed)
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

/* Write, read and change exported memory of the peer; both sides do so at once. */
static inline void exchange_memory(struct pair *l)
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

#endif
