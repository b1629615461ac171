/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: tests of two endpoints in one process
 *
 * The test makes the progress of both sides, so it decides their order:
 *
 *	struct couple c = couple_open(NULL);
 *
 *	CHECK_EQ(sci_send(c.to[1], "x", 1), 0);
 *	CHECK_EQ(sci_recv(c.ep[0], c.to[0], &b, 1, NULL), 0);
 *	couple_close(&c);
 */
#ifndef SELFTESTS_MSG_COUPLE_H
#define SELFTESTS_MSG_COUPLE_H

#include <pthread.h>
#include <stdlib.h>

#include "selftests/msg/peers.h"

/* Two endpoints of this process. The link can lose packets if there is a @fault. */
struct couple {
	struct sci_ep *ep[2];
	struct sci_peer *to[2];
};

static inline void *couple_accept(void *ep)
{
	return test_ep_accept(ep);
}

static inline struct couple couple_open(const char *fault)
{
	struct couple c;
	pthread_t thread;
	void *from;

	if (fault)
		setenv("SCI_FAULT", fault, 1);
	for (uint32_t i = 0; i < 2; i++)
		c.ep[i] = test_ep_open(i + 1, 0);
	CHECK_EQ(pthread_create(&thread, NULL, couple_accept, c.ep[1]), 0);
	c.to[0] = test_ep_connect(c.ep[0], 4, 2);
	CHECK_EQ(pthread_join(thread, &from), 0);
	c.to[1] = from;
	return c;
}

/* Wait for a request of one side while both make progress. Return its error. */
static inline int couple_wait(struct couple *c, struct sci_req *req)
{
	uint64_t until = test_now_ms() + TEST_WAIT_MS;
	int ret;

	while ((ret = sci_test(req, NULL)) == -EAGAIN) {
		CHECK(test_now_ms() < until);
		for (unsigned int i = 0; i < 2; i++)
			CHECK(sci_progress(c->ep[i]) >= 0);
	}
	return ret;
}

static inline void couple_close(struct couple *c)
{
	for (unsigned int i = 0; i < 2; i++)
		CHECK_EQ(sci_ep_close(c->ep[i]), 0);
}

#endif
