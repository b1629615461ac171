/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* A process with many endpoints that are peers of one endpoint on node 4, and send when asked. */
#ifndef SELFTESTS_MSG_CROWD_H
#define SELFTESTS_MSG_CROWD_H

#include <stdatomic.h>

#include "selftests/msg/peers.h"

#define CROWD		40u

struct crowd {
	_Atomic unsigned int asked;	/* messages wanted so far */
};

/* Connect all endpoints, and send @calls numbers, each from the next endpoint. */
static inline void crowd_call(struct peer *proc, struct crowd *shared, unsigned int calls)
{
	struct sci_ep *ep[CROWD];
	struct sci_peer *to[CROWD];

	for (uint32_t i = 0; i < CROWD; i++) {
		ep[i] = test_ep_open(1 + i, 0);
		to[i] = test_ep_connect(ep[i], 4, TEST_ID);
	}
	for (unsigned int n = 0; n < calls; n++) {
		WAIT_UNTIL(atomic_load(&shared->asked) > n, TEST_WAIT_MS);
		CHECK_EQ(sci_send(to[n % CROWD], &n, sizeof(n)), 0);
	}
	peer_expect(proc, "leave");
	for (uint32_t i = 0; i < CROWD; i++)
		CHECK_EQ(sci_ep_close(ep[i]), 0);
}

/* Accept the endpoints of the other process: @from gets them in the order of their ids. */
static inline void crowd_accept(struct sci_ep *ep, struct sci_peer *from[CROWD])
{
	for (unsigned int i = 0; i < CROWD; i++) {
		struct sci_peer *peer = test_ep_accept(ep);
		struct sci_addr addr;

		CHECK_EQ(sci_peer_addr(peer, &addr), 0);
		CHECK(addr.id >= 1 && addr.id <= CROWD);
		from[addr.id - 1] = peer;
	}
}

#endif
