// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Long messages on the net whose memory the kernel cannot read or write. Such a message cannot
 * arrive: its connection ends, and both sides get an error.
 */
#include <sys/mman.h>

#include "selftests/msg/peers.h"

#define LEN		(1u << 20)

#define LOST		(400u << 10)	/* in a frame, not at its start */
#define LOST_LEN	(64u << 10)

/* Return memory with LOST_LEN bytes of the protection @prot. */
static void *memory(int prot)
{
	char *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	memset(p, 0, LEN);
	CHECK_EQ(mprotect(p + LOST, LOST_LEN, prot), 0);
	return p;
}

struct sides {
	int from;			/* protection of the sender's memory */
	int to;				/* ... of the receiver's memory */
};

static void receiver(struct peer *proc, void *arg)
{
	const struct sides *sides = arg;
	void *in = memory(sides->to);
	struct pair l;

	test_use_net("unix", 8);
	l = pair_open(proc, 4, 0);
	CHECK_EQ(sci_trecv(l.ep, l.to, 1, 0, 0, in, LEN, NULL), -ECONNRESET);
	CHECK_EQ(sci_ep_close(l.ep), 0);
	CHECK_EQ(munmap(in, LEN), 0);
}

static void transfer(struct sides *sides)
{
	struct peer *p = peer_spawn(8, receiver, sides);
	void *out = memory(sides->from);
	struct pair l;

	test_use_net("unix", 4);
	l = pair_open(p, 8, 0);
	CHECK_EQ(sci_tsend(l.to, 1, 0, out, LEN), -ECONNRESET);
	CHECK_EQ(sci_ep_close(l.ep), 0);
	CHECK_EQ(munmap(out, LEN), 0);
	peer_join(p);
}

TEST(a_message_from_memory_that_cannot_be_read)
{
	transfer(&(struct sides){ PROT_NONE, PROT_READ | PROT_WRITE });
}

TEST(a_message_to_memory_that_cannot_be_written)
{
	transfer(&(struct sides){ PROT_READ, PROT_READ });
}
