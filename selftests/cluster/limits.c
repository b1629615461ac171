// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Test the limits of an adapter, and the packets that its counters show for each
 * protocol. Node 8 is another machine.
 */
#include <stdio.h>
#include <string.h>

#include "selftests/cluster/endure.h"
#include "selftests/msg/peers.h"
#include "selftests/remote.h"

#define LARGE		(32u << 20)
#define SEGMENTS	6u		/* of LARGE bytes, more than a window maps */
#define N		200u
#define TAKES		10u		/* repetitions of a measurement */

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

enum { WRITES_64, WRITES_16, WRITES_128, READS, FLUSHES, GATHER_TIMEOUTS, COUNTERS };

struct counters {
	uint64_t n[COUNTERS];
};

static struct counters counters_now(void)
{
	static const char *const names[COUNTERS] = {
		[WRITES_64] = "writes_64", [WRITES_16] = "writes_16",
		[WRITES_128] = "writes_128", [READS] = "reads",
		[FLUSHES] = "flushes", [GATHER_TIMEOUTS] = "gather_timeouts",
	};
	struct counters c;

	for (unsigned int i = 0; i < COUNTERS; i++)
		c.n[i] = counter(names[i]);
	return c;
}

static struct counters counters_since(const struct counters *before)
{
	struct counters now = counters_now();

	for (unsigned int i = 0; i < COUNTERS; i++)
		now.n[i] -= before->n[i];
	return now;
}

static unsigned int stream_size(void)
{
	unsigned int value = 0;
	sci_query_adapter_t q = {
		.subcommand = SCI_Q_ADAPTER_STREAM_BUFFER_SIZE, .data = &value,
	};

	test_open();
	CHECK_OK(SCIQuery(SCI_Q_ADAPTER, &q, 0, &err));
	return value;
}

/*
 * Skip without countable packets. The direct data path has none. With stream
 * buffers of 128 bytes the timing of the host decides whether two lines share a
 * packet; with buffers of a line each line is a packet.
 */
static void needs_packets(void)
{
	const char *s = getenv("CLUSTER_DATA_PATH");

	if (!remote_machines())
		SKIP("SCI_TEST_PEERS is not set");
	if (s && !strcmp(s, "direct"))
		SKIP("the direct data path has no packets");
	if (stream_size() != 64)
		SKIP("stream buffers of %u bytes", stream_size());
}

/* ---- messages ---- */

struct sizes {
	uint64_t len;
	unsigned int n;
	bool zcopy;			/* the receives use exported memory */
	bool blocks;			/* eager blocks instead of lines */
};

/* No thread sleeps or retransmits: both would cost further packets. */
#define AWAKE \
	{ SCI_PARAM_SPIN_US, 60000000 }, { SCI_PARAM_CHECK_MS, 60000 }, \
	{ SCI_PARAM_ATTACH_AFTER, 0 }

static const struct config awake = { .n = 3, .set = { AWAKE } };
static const struct config in_blocks = {
	.n = 4, .set = { AWAKE, { SCI_PARAM_LINES_MAX, 0 } },
};

static const struct config *config_of(const struct sizes *z)
{
	return z->blocks ? &in_blocks : &awake;
}

/* Send in pieces that do not end with a line: the library still sends whole lines. */
static void send_in_pieces(struct sci_peer *to, unsigned char *buf, uint64_t len)
{
	struct iovec iov[3] = {
		{ buf, len / 3 }, { buf + len / 3, 1 },
	};
	struct sci_req *req;

	iov[2].iov_base = buf + iov[0].iov_len + iov[1].iov_len;
	iov[2].iov_len = len - iov[0].iov_len - iov[1].iov_len;
	CHECK_EQ(sci_isendv(to, iov, 3, 0, &req), 0);
	CHECK_EQ(test_wait(req, NULL), 0);
}

static uint64_t sent_in_blocks(const struct pair *l)
{
	return test_ep_stats(l->ep).sent_eager;
}

/*
 * Send messages until the rings are attached. Before that, messages in blocks go in lines, and
 * the first message may cost further packets. receive_first() receives them.
 */
static void send_first(struct pair *l, const struct sizes *z, unsigned char *buf)
{
	bool attached;

	msg_fill(buf, z->len, 0);
	do {
		CHECK_EQ(sci_send(l->to, buf, z->len), 0);
		attached = !z->blocks || sent_in_blocks(l);
		CHECK_EQ(sci_send(l->to, &attached, sizeof(attached)), 0);
		pair_meet(l);
	} while (!attached);
}

static void receive_first(struct pair *l, const struct sizes *z, void *buf)
{
	bool attached;

	do {
		CHECK_EQ(sci_recv(l->ep, l->to, buf, z->len, NULL), 0);
		CHECK_BYTES(buf, z->len, 0);
		CHECK_EQ(sci_recv(l->ep, l->to, &attached, sizeof(attached), NULL), 0);
		pair_meet(l);
	} while (!attached);
}

static void takes(struct peer *self, void *arg)
{
	const struct sizes *z = arg;
	struct pair l = pair_config(self, 4, config_of(z));
	void *buf = malloc(z->len);

	if (z->zcopy) {
		free(buf);
		CHECK_EQ(sci_buf_alloc(l.ep, z->len, &buf), 0);
	}
	receive_first(&l, z, buf);
	for (unsigned int i = 1; i <= TAKES * z->n; i++) {
		CHECK_EQ(sci_recv(l.ep, l.to, buf, z->len, NULL), 0);
		CHECK_BYTES(buf, z->len, i);
		if (i % z->n == 0)
			pair_meet(&l);
	}
	CHECK_EQ(z->zcopy ? sci_buf_free(l.ep, buf) : (free(buf), 0), 0);
	pair_close(&l);
}

/*
 * Return the counters of this adapter for @n messages. If the host takes the CPU
 * away between two stores of a line, the line becomes several packets, which
 * GATHER_TIMEOUTS counts. Such a measurement is repeated.
 */
static struct counters cost_of(struct sizes z, bool pieces)
{
	struct peer *p = peer_spawn(8, takes, &z);
	struct pair l = pair_config(p, 8, config_of(&z));
	unsigned char *buf = malloc(z.len);
	struct counters c, best = { 0 };
	unsigned int i = 1, take;
	uint64_t blocks;

	send_first(&l, &z, buf);
	blocks = sent_in_blocks(&l);
	for (take = 0; take < TAKES; take++) {
		c = counters_now();
		for (unsigned int k = 0; k < z.n; k++) {
			msg_fill(buf, z.len, i++);
			if (pieces)
				send_in_pieces(l.to, buf, z.len);
			else
				CHECK_EQ(sci_send(l.to, buf, z.len), 0);
		}
		c = counters_since(&c);
		if (!take || c.n[GATHER_TIMEOUTS] < best.n[GATHER_TIMEOUTS])
			best = c;
		pair_meet(&l);
	}
	test_note("%u of %llu bytes: %llu of 64, %llu of 16 bytes, %llu reads, "
		  "%llu flushes, %llu in pieces", z.n,
		  (unsigned long long)z.len,
		  (unsigned long long)best.n[WRITES_64],
		  (unsigned long long)best.n[WRITES_16],
		  (unsigned long long)best.n[READS],
		  (unsigned long long)best.n[FLUSHES],
		  (unsigned long long)best.n[GATHER_TIMEOUTS]);
	CHECK_EQ(sent_in_blocks(&l) - blocks, z.blocks ? TAKES * z.n : 0);
	pair_close(&l);
	peer_join(p);
	free(buf);
	if (best.n[GATHER_TIMEOUTS])
		SKIP("this host takes the CPU away too often");
	CHECK_EQ(best.n[READS], 0);
	CHECK_EQ(best.n[WRITES_128], 0);
	return best;
}

/* The cost in "COST" of sci_msg(3). */
TEST(a_short_message_is_one_packet)
{
	static const uint64_t sizes[] = { 0, 1, 48, SCI_SHORT_MAX };
	struct counters c;

	needs_packets();
	for (unsigned int i = 0; i < ARRAY_LEN(sizes); i++) {
		c = cost_of((struct sizes){ sizes[i], N, .zcopy = false }, false);
		CHECK_EQ(c.n[WRITES_64], N);
		CHECK_EQ(c.n[WRITES_16], 0);
		CHECK_EQ(c.n[FLUSHES], 0);
	}
}

static uint64_t lines_of(uint64_t len)
{
	return (len + 63) / 64;
}

/* The first line has 41 bytes of the message, each other line 62. */
TEST(a_message_in_lines_is_these_and_no_flush)
{
	static const uint64_t sizes[] = { 63, 103, 104, 1000, 4096, 8192 };
	struct counters c;

	needs_packets();
	for (unsigned int i = 0; i < ARRAY_LEN(sizes); i++) {
		c = cost_of((struct sizes){ sizes[i], N / 4, .zcopy = false },
			    i & 1);
		CHECK_EQ(c.n[WRITES_64],
			 N / 4 * (1 + (sizes[i] - 41 + 61) / 62));
		CHECK_EQ(c.n[WRITES_16], 0);
		CHECK_EQ(c.n[FLUSHES], 0);
	}
}

TEST(an_eager_message_is_its_lines_and_one)
{
	static const uint64_t sizes[] = { 63, 64, 65, 1000, 4096, 8192 };
	struct counters c;

	needs_packets();
	for (unsigned int i = 0; i < ARRAY_LEN(sizes); i++) {
		c = cost_of((struct sizes){ sizes[i], N / 4, .blocks = true },
			    i & 1);
		CHECK_EQ(c.n[WRITES_64], N / 4 * (lines_of(sizes[i]) + 1));
		CHECK_EQ(c.n[WRITES_16], 0);
	}
}

#define LONG	20u

/* One status returns the credits of five CTS. */
TEST(a_zero_copy_message_is_its_lines_and_two)
{
	static const uint64_t sizes[] = { 65536, 65536 + 48 };
	struct counters c;

	needs_packets();
	for (unsigned int i = 0; i < ARRAY_LEN(sizes); i++) {
		c = cost_of((struct sizes){ sizes[i], LONG, .zcopy = true }, false);
		CHECK_EQ(c.n[WRITES_64], LONG * (sizes[i] / 64 + 2) + LONG / 5);
		/* no store goes behind the buffer */
		CHECK_EQ(c.n[WRITES_16], LONG * (sizes[i] % 64 / 16));
	}
}

TEST(a_rendezvous_is_its_lines_one_for_each_block_and_one)
{
	struct counters c;

	needs_packets();
	c = cost_of((struct sizes){ 65536 + 1, LONG, .zcopy = false }, false);
	CHECK_EQ(c.n[WRITES_64], LONG * (lines_of(65537) + 9 + 1) + LONG / 5);
	CHECK_EQ(c.n[WRITES_16], 0);
}

/* ---- limits ---- */

static void owns_much(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();
	unsigned char *p;

	(void)arg;
	p = test_map_local(test_segment(sd, 9, LARGE, 0), NULL);
	for (unsigned int i = 1; i < SEGMENTS; i++)
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
	p = peer_spawn(8, owns_much, NULL);
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
		/* the other maps still work */
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

/* ---- aborted transfers ---- */

#define MOVED		(8u << 20)	/* bytes of a transfer */
#define MARK		1024u		/* distance of two marks in bytes */
#define MARKS		(MOVED / MARK)
#define ROUNDS		20u		/* aborted transfers; ROUNDS + 1 is not aborted */

/* A mark has its place and the round of its transfer. */
static void marks_set(volatile unsigned int *words, unsigned int round)
{
	for (unsigned int i = 0; i < MARKS; i++)
		words[i * MARK / 4] = i << 5 | round;
}

/*
 * Return how many marks after the first one are of transfer @round. Each other mark must be of
 * an earlier transfer, or 0.
 */
static unsigned int marks_stored(const volatile unsigned int *words, unsigned int round)
{
	unsigned int n = 0;

	for (unsigned int i = 1; i < MARKS; i++) {
		unsigned int mark = words[i * MARK / 4];

		CHECK(!mark || mark >> 5 == i);
		CHECK((mark & 31) <= round);
		n += (mark & 31) == round;
	}
	return n;
}

static void receives_transfers(struct peer *self, void *arg)
{
	volatile unsigned int *words;
	unsigned int stored;

	(void)arg;
	words = test_map_local(test_segment(test_open(), 9, MOVED, 0), NULL);
	peer_send(self, "ready");
	for (unsigned int round = 1; round <= ROUNDS + 1; round++) {
		unsigned int at = (round - 1) * (MARKS / ROUNDS);

		if (round % 2) {
			WAIT_UNTIL((words[at * MARK / 4] & 31) == round, TEST_WAIT_MS);
			peer_send(self, "mark");
		}
		peer_expect(self, "ended");
		stored = marks_stored(words, round);
		PEER_PUT(self, stored);
		/* a transfer that has ended stores no more */
		peer_expect(self, "next ended");
		CHECK_EQ(marks_stored(words, round), stored);
		peer_send(self, "checked");
	}
}

static sci_dma_queue_state_t transfer_end(sci_dma_queue_t q)
{
	sci_dma_queue_state_t state;

	CHECK_OK(state = SCIWaitForDMAQueue(q, TEST_WAIT_MS, 0, &err));
	CHECK_OK(SCIResetDMAQueue(q, 0, &err));
	return state;
}

/*
 * Abort transfers: in even rounds at once, in odd rounds when a mark has arrived, which is a
 * later one each time. At least one transfer must not complete.
 */
TEST(dma_is_aborted_half_way)
{
	unsigned int aborted = 0, stored;
	sci_dma_queue_state_t state;
	sci_remote_segment_t r;
	sci_local_segment_t s;
	sci_dma_queue_t q;
	unsigned int *mem;
	struct peer *p;
	sci_desc_t sd;

	if (!remote_machines())
		SKIP("SCI_TEST_PEERS is not set");
	p = peer_spawn(8, receives_transfers, NULL);
	sd = test_open();
	peer_expect(p, "ready");
	s = test_segment(sd, 10, MOVED, 0);
	mem = test_map_local(s, NULL);
	r = test_connect(sd, 8, 9);
	CHECK_OK(SCICreateDMAQueue(sd, &q, 0, 16, 0, &err));
	for (unsigned int round = 1; round <= ROUNDS + 1; round++) {
		marks_set(mem, round);
		CHECK_OK(SCIStartDmaTransfer(q, s, r, 0, MOVED, 0, NULL, NULL,
					     0, &err));
		if (round % 2)
			peer_expect(p, "mark");
		if (round <= ROUNDS)
			CHECK_OK(SCIAbortDMAQueue(q, 0, &err));
		state = transfer_end(q);
		peer_send(p, "ended");
		PEER_GET(p, stored);
		if (state == SCI_DMAQUEUE_ABORTED && round <= ROUNDS)
			aborted++;
		else
			CHECK_EQ(state, SCI_DMAQUEUE_DONE);
		if (state == SCI_DMAQUEUE_DONE)
			CHECK_EQ(stored, MARKS - 1);
		/* the queue still works */
		CHECK_OK(SCIStartDmaTransfer(q, s, r, 0, MARK, 0, NULL, NULL, 0,
					     &err));
		CHECK_EQ(transfer_end(q), SCI_DMAQUEUE_DONE);
		peer_send(p, "next ended");
		peer_expect(p, "checked");
	}
	test_note("%u of %u transfers of 8 MiB aborted", aborted, ROUNDS);
	CHECK(aborted > 0);
	peer_join(p);
}
