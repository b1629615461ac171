// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * What an adapter can do at most, and what its counters say of the protocols; node
 * 8 is another machine.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "selftests/cluster/endure.h"
#include "selftests/msg/peers.h"
#include "selftests/remote.h"

#define LARGE		(32u << 20)
#define SEGMENTS	6u		/* of that size, more than a window holds */
#define N		200u

static uint64_t counter(const char *name)
{
	char path[128];
	unsigned long long n;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/sci/sci0/adapter/%s", name);
	file = fopen(path, "re");
	if (!file)
		SKIP("adapters of this kind count nothing");
	CHECK_EQ(fscanf(file, "%llu", &n), 1);
	fclose(file);
	return n;
}

struct counters {
	uint64_t writes_16, writes_64, writes_128, reads, flushes;
	uint64_t retries;
};

static struct counters counters_now(void)
{
	return (struct counters){
		.writes_16 = counter("writes_16"),
		.writes_64 = counter("writes_64"),
		.writes_128 = counter("writes_128"),
		.reads = counter("reads"),
		.flushes = counter("flushes"),
		.retries = counter("retries"),
	};
}

static struct counters counters_since(const struct counters *c)
{
	struct counters now = counters_now();

	return (struct counters){
		now.writes_16 - c->writes_16, now.writes_64 - c->writes_64,
		now.writes_128 - c->writes_128, now.reads - c->reads,
		now.flushes - c->flushes, now.retries - c->retries,
	};
}

static void counters_print(const char *what, const struct counters *c)
{
	test_note("%s: %llu of 16, %llu of 64 bytes, %llu reads, %llu flushes, "
		  "%llu repeated", what, (unsigned long long)c->writes_16,
		  (unsigned long long)c->writes_64,
		  (unsigned long long)c->reads, (unsigned long long)c->flushes,
		  (unsigned long long)c->retries);
}

/* The direct data path has no packets. */
static void needs_packets(void)
{
	const char *s = getenv("CLUSTER_DATA_PATH");

	if (!remote_machines())
		SKIP("SCI_TEST_PEERS is not set");
	if (s && !strcmp(s, "direct"))
		SKIP("the direct data path has no packets");
}

/* ---- messages ---- */

struct sizes {
	uint64_t len;
	unsigned int n;
};

/* Nobody sleeps: to wake one costs more. */
static const struct config awake = {
	.n = 1, .set = { { SCI_PARAM_SPIN_US, 10000000 } },
};

static void takes(struct peer *self, void *arg)
{
	const struct sizes *z = arg;
	struct pair l = pair_config(self, 4, &awake);
	unsigned char *buf = malloc(z->len);

	for (unsigned int i = 0; i <= z->n; i++) {
		CHECK_EQ(sci_recv(l.ep, l.to, buf, z->len, NULL), 0);
		CHECK_BYTES(buf, z->len, i);
		if (!i)
			peer_send(self, "first");
	}
	free(buf);
	pair_meet(&l);
	pair_close(&l);
}

/* What @n messages of @len bytes cost this adapter. */
static struct counters cost_of(uint64_t len, unsigned int n)
{
	struct sizes z = { len, n };
	struct peer *p = peer_spawn(8, takes, &z);
	struct pair l = pair_config(p, 8, &awake);
	unsigned char *buf = malloc(len);
	struct counters c;

	/* the first of all may cost more: rings are attached */
	msg_fill(buf, len, 0);
	CHECK_EQ(sci_send(l.to, buf, len), 0);
	peer_expect(p, "first");
	c = counters_now();
	for (unsigned int i = 1; i <= n; i++) {
		msg_fill(buf, len, i);
		CHECK_EQ(sci_send(l.to, buf, len), 0);
	}
	c = counters_since(&c);
	pair_meet(&l);
	pair_close(&l);
	peer_join(p);
	free(buf);
	return c;
}

TEST(a_short_message_is_one_packet)
{
	struct counters c;

	needs_packets();
	c = cost_of(SCI_SHORT_MAX, N);
	counters_print("200 short messages", &c);
	CHECK_EQ(c.writes_64, N);
	CHECK_EQ(c.writes_16, 0);
	CHECK_EQ(c.reads, 0);
	CHECK_EQ(c.flushes, 0);
}

TEST(an_eager_message_is_its_lines_and_little_more)
{
	struct counters c;

	needs_packets();
	c = cost_of(4096, N);
	counters_print("200 messages of 4096 bytes", &c);
	CHECK(c.writes_64 >= 64 * N);
	/* head, tail, and what goes with them: at most four each */
	CHECK(c.writes_64 + c.writes_16 <= (64 + 4) * N);
	CHECK_EQ(c.reads, 0);
}

TEST(a_long_message_is_its_lines_and_little_more)
{
	struct counters c;

	needs_packets();
	c = cost_of(262144, 20);
	counters_print("20 messages of 262144 bytes", &c);
	/* a line that waits for its rest for too long goes in pieces */
	CHECK(c.writes_64 * 64 + c.writes_16 * 16 >= 262144 * 20);
	CHECK(c.writes_64 + c.writes_16 / 4 <= 4096 * 20 * 11 / 10);
	CHECK_EQ(c.reads, 0);
}

/* ---- limits ---- */

static void owns_much(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();
	unsigned char *p;

	p = test_map_local(test_segment(sd, 9, LARGE, 0), NULL);
	for (unsigned int i = 1; i < (uintptr_t)arg; i++)
		test_segment(sd, 20 + i, LARGE, 0);
	peer_send(self, "ready");
	peer_expect(self, "look");
	for (unsigned int i = 0; i < 64; i++)
		CHECK_EQ(p[i * 4096], i + 1);
	peer_send(self, "seen");
	peer_expect(self, "leave");
}

TEST(the_translation_table_is_used_up_and_free_again)
{
	struct peer *p;
	sci_remote_segment_t r[SEGMENTS];
	sci_map_t map[SEGMENTS];
	volatile unsigned char *mem = NULL, *first = NULL;
	unsigned int n, last = 0;
	sci_desc_t sd;
	sci_error_t e;

	if (!remote_machines())
		SKIP("SCI_TEST_PEERS is not set");
	p = peer_spawn(8, owns_much, (void *)(uintptr_t)SEGMENTS);
	sd = test_open();
	peer_expect(p, "ready");
	for (unsigned int round = 0; round < 3; round++) {
		for (n = 0; n < ARRAY_LEN(r); n++) {
			r[n] = test_connect(sd, 8, n ? 20 + n : 9);
			e = ERR_OF(mem = SCIMapRemoteSegment(r[n], &map[n], 0,
							     LARGE, NULL, 0,
							     &err));
			if (e != SCI_ERR_OK)
				break;
			first = n ? first : mem;
		}
		if (n == ARRAY_LEN(r))
			SKIP("the window has room for all");
		CHECK(n > 1);
		CHECK(!round || n == last);
		last = n;
		test_note("%u maps of 32 MiB, then %s", n,
			  SCIGetErrorString(e));
		/* those that there are work on */
		for (unsigned int i = 0; i < 64; i++)
			first[i * 4096] = (unsigned char)(i + 1);
		CHECK_OK(SCIDisconnectSegment(r[n], 0, &err));
		if (round < 2)
			while (n--) {
				CHECK_OK(SCIUnmapSegment(map[n], 0, &err));
				CHECK_OK(SCIDisconnectSegment(r[n], 0, &err));
			}
	}
	peer_send(p, "look");
	peer_expect(p, "seen");
	peer_send(p, "leave");
	peer_join(p);
}

/* Nothing but whole pieces from the start, and nothing behind them. */
TEST(dma_is_aborted_half_way)
{
	unsigned int aborted = 0, done = 0;
	sci_dma_queue_state_t state;
	sci_remote_segment_t r;
	sci_local_segment_t s;
	sci_dma_queue_t q;
	unsigned char *mem;
	struct peer *p;
	sci_desc_t sd;

	if (!remote_machines())
		SKIP("SCI_TEST_PEERS is not set");
	p = peer_spawn(8, owns_much, NULL);
	sd = test_open();
	peer_expect(p, "ready");
	s = test_segment(sd, 10, LARGE, 0);
	mem = test_map_local(s, NULL);
	r = test_connect(sd, 8, 9);
	CHECK_OK(SCICreateDMAQueue(sd, &q, 0, 16, 0, &err));
	for (unsigned int i = 0; i < 20; i++) {
		test_fill(mem, 65536, i);
		CHECK_OK(SCIStartDmaTransfer(q, s, r, 0, LARGE, 0, NULL, NULL,
					     0, &err));
		usleep(i * 1000);
		CHECK_OK(SCIAbortDMAQueue(q, 0, &err));
		CHECK_OK(state = SCIWaitForDMAQueue(q, TEST_WAIT_MS, 0, &err));
		aborted += state == SCI_DMAQUEUE_ABORTED;
		done += state == SCI_DMAQUEUE_DONE;
		CHECK_OK(SCIResetDMAQueue(q, 0, &err));
	}
	CHECK_EQ(aborted + done, 20);
	CHECK(aborted > 0);
	test_note("%u of 20 transfers of 32 MiB aborted", aborted);
	/* and it works on */
	for (unsigned int i = 0; i < 64; i++)
		mem[i * 4096] = (unsigned char)(i + 1);
	CHECK_OK(SCIStartDmaTransfer(q, s, r, 0, 64 * 4096, 0, NULL, NULL, 0,
				     &err));
	CHECK_OK(state = SCIWaitForDMAQueue(q, TEST_WAIT_MS, 0, &err));
	CHECK_EQ(state, SCI_DMAQUEUE_DONE);
	peer_send(p, "look");
	peer_expect(p, "seen");
	peer_send(p, "leave");
	peer_join(p);
}
