// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Test DECK's post and retrieve in virtual time beside the figures of the DECK/SCI
 * paper.
 *
 * The objects of libsci/deck run on the model of the paper's machine, profile B.
 * This file replaces start-up and the search for mail boxes, which need threads.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/deck/internal.h"
#include "selftests/harness.h"
#include "sim/vtime/vtime.h"

#define PORT_ID		1u
#define CONNECT_MS	10000
#define WARM_UP		48u		/* rounds until all rings are attached */
#define WARM_UP_LONG	2u
#define ROUNDS		24u		/* a lap of the ring; it sends its position once */
#define LONG		16384u

/* ---- replacement of world.c, find.c and service.c ---- */

static struct deck_world worlds[2];

struct deck_world *deck_world(void)
{
	return vt_current() ? &worlds[vt_index(vt_current())] : NULL;
}

int deck_mbox_reach(struct deck_mbox *box, struct sci_peer **to)
{
	(void)box;
	(void)to;
	return -ENOTCONN;
}

void deck_connects_end(struct deck_world *w, const struct deck_mbox *box)
{
	(void)w;
	(void)box;
}

static void world_init(struct deck_world *w, int rank, size_t limit)
{
	*w = (struct deck_world){
		.rank = rank, .size = 2, .limit = limit,
	};
	pthread_mutex_init(&w->lock, NULL);
	list_init(&w->boxes);
	list_init(&w->found);
	list_init(&w->chunks);
	list_init(&w->kept);
}

/* ---- ping-pong between two nodes ---- */

struct result {
	double us;			/* half a round trip */
	double packets;			/* of 64 bytes, for one message */
	double pieces;			/* packets of 16 bytes, for one message */
	double reads;
	double barriers;
};

struct pingpong {
	size_t length;			/* of messages, also at creation */
	size_t limit;			/* DECK_MSG_BUF_LIMIT */
	uint64_t begin;
	uint64_t counts[SCI_PCI_COUNTERS_COUNT];
	struct sci_addr addr[2];	/* addresses of the mail boxes */
	struct result result;
	bool differs;
	int error;
};

struct side {
	struct deck_world *w;
	struct deck_mbox *box;		/* the mail box of this node */
	struct deck_mbox other;
	struct deck_msg *msg;
	uint8_t *seen;
};

static unsigned int rounds_before(const struct pingpong *pp)
{
	return pp->length > LONG ? WARM_UP_LONG : WARM_UP;
}

static uint64_t counted(struct vt_node *n, enum sci_pci_counter c)
{
	struct vt_sim *s = vt_sim_of(n);

	return sim_counter(vt_adapter(vt_node(s, 0)), c) +
	       sim_counter(vt_adapter(vt_node(s, 1)), c);
}

static void measure_begin(struct vt_node *n, struct pingpong *pp)
{
	vt_sync(n);
	pp->begin = vt_clock(n);
	for (int c = 0; c < SCI_PCI_COUNTERS_COUNT; c++)
		pp->counts[c] = counted(n, (enum sci_pci_counter)c);
}

static double since(struct vt_node *n, const struct pingpong *pp, enum sci_pci_counter c)
{
	return (double)(counted(n, c) - pp->counts[c]) / (2 * ROUNDS);
}

static void measure_end(struct vt_node *n, struct pingpong *pp)
{
	vt_sync(n);
	pp->result = (struct result){
		.us = (double)(vt_clock(n) - pp->begin) / (2.0 * ROUNDS * VT_US),
		.packets = since(n, pp, SCI_PCI_CNT_WRITES_64),
		.pieces = since(n, pp, SCI_PCI_CNT_WRITES_16),
		.reads = since(n, pp, SCI_PCI_CNT_READS),
		.barriers = since(n, pp, SCI_PCI_CNT_BARRIERS),
	};
}

/* Connect the ports, then the mail boxes, which exist when the ports are connected. */
static int connect_sides(struct vt_node *n, struct pingpong *pp, struct side *s)
{
	const struct sci_addr port = { .node = 8, .id = PORT_ID };
	unsigned int me = vt_index(n);
	struct sci_peer *peer, *to = NULL;
	int ret;

	pp->addr[me] = s->box->addr;
	ret = me ? sci_accept(s->w->port, CONNECT_MS, &peer) :
		   sci_connect(s->w->port, &port, CONNECT_MS, &peer);
	for (unsigned int k = 0; !ret && k < 2; k++)
		if (k == me)
			ret = sci_connect(s->w->port, &pp->addr[!me], CONNECT_MS, &to);
		else
			ret = sci_accept(s->box->ep, CONNECT_MS, &peer);
	if (!ret)
		deck_peer_set_rank(peer, (int)!me);
	atomic_init(&s->other.to, to);
	return ret;
}

static int side_open(struct vt_node *n, struct pingpong *pp, struct side *s)
{
	int ret;

	s->w = deck_world();
	world_init(s->w, (int)vt_index(n), pp->limit);
	ret = sci_ep_open(&s->w->port, PORT_ID, 0);
	ret = ret ? ret : deck_mbox_open(s->w, "box", &s->box);
	ret = ret ? ret : connect_sides(n, pp, s);
	ret = ret ? ret : deck_msg_create(&s->msg, pp->length);
	s->seen = malloc(pp->length + 1);
	return ret ? ret : s->seen ? 0 : -ENOMEM;
}

static void side_close(struct side *s)
{
	struct sci_peer *to = atomic_load(&s->other.to);

	deck_msg_destroy(s->msg);
	if (to)
		sci_disconnect(to);
	if (s->box)
		deck_mbox_close(s->w, s->box);
	if (s->w->port) {
		deck_bufs_free(s->w);
		sci_ep_close(s->w->port);
	}
	free(s->seen);
}

static void fill(struct pingpong *pp, struct side *s, unsigned int round)
{
	uint8_t *p = deck_msg_address(s->msg);

	deck_msg_clear(s->msg);
	memset(p, (int)(round * 7 + 1), pp->length);
	if (pp->length)
		p[pp->length - 1] = (uint8_t)(round * 13);
	deck_msg_set_length(s->msg, pp->length);
}

/* Check the bytes, length and source of a message that fill() has made. */
static bool good(const struct pingpong *pp, struct side *s, unsigned int round, int from)
{
	if (deck_msg_length(s->msg) != pp->length || deck_msg_source(s->msg) != from ||
	    deck_msg_unpack(s->msg, s->seen, pp->length))
		return false;
	for (size_t i = 0; i + 1 < pp->length; i++)
		if (s->seen[i] != (uint8_t)(round * 7 + 1))
			return false;
	return !pp->length || s->seen[pp->length - 1] == (uint8_t)(round * 13);
}

/* Do one round: node 0 posts first, node 1 retrieves first. */
static int play_round(struct side *s, unsigned int me)
{
	int ret = me ? deck_mbox_retrv(s->box, s->msg) : deck_mbox_post(&s->other, s->msg);

	if (ret)
		return ret;
	return me ? deck_mbox_post(&s->other, s->msg) : deck_mbox_retrv(s->box, s->msg);
}

static void play(struct vt_node *n, void *arg)
{
	struct pingpong *pp = arg;
	unsigned int me = vt_index(n), before = rounds_before(pp);
	struct side s = { 0 };
	int ret = side_open(n, pp, &s);

	if (!ret && !me)
		fill(pp, &s, 0);
	for (unsigned int i = 0; !ret && i < before + ROUNDS; i++) {
		if (i == before && !me)
			measure_begin(n, pp);
		ret = play_round(&s, me);
	}
	if (!ret && !me) {
		measure_end(n, pp);
		pp->differs |= !good(pp, &s, 0, 1);
		fill(pp, &s, 1);
	}
	/* one more round, with other data; both nodes stay until the counts are read */
	if (!ret)
		ret = play_round(&s, me);
	if (!ret && !me)
		pp->differs |= !good(pp, &s, 1, 1);
	if (ret)
		pp->error = ret;
	side_close(&s);
}

static struct result pingpong_limited(size_t length, size_t limit)
{
	struct pingpong pp = { .length = length, .limit = limit };
	struct vt_profile p;
	struct vt_sim *s;

	CHECK(vt_profile_read(&p, "sim/profiles/b.profile"));
	s = vt_new(&p, 2, NULL, 1);
	CHECK(s != NULL);
	for (unsigned int i = 0; i < 2; i++)
		vt_start(vt_node(s, i), play, &pp);
	CHECK(vt_run(s));
	vt_free(s);
	CHECK_EQ(pp.error, 0);
	CHECK(!pp.differs);
	return pp.result;
}

static struct result pingpong(size_t length)
{
	return pingpong_limited(length, DECK_MSG_BUF_LIMIT);
}

/* ---- figures of the paper ---- */

TEST(a_line_is_below_4_us)
{
	for (size_t n = 0; n <= SCI_SHORT_MAX; n++) {
		struct result r = pingpong(n);

		if (!n || n == SCI_SHORT_MAX)
			test_note("%zu bytes: %.2f us, %.3f packets (paper: 4.66 us)",
				  n, r.us, r.packets);
		CHECK(r.us < 3.95);
		/* the line, and the ring's position once in 24 lines */
		CHECK_EQ(r.packets * 2 * ROUNDS, 2 * ROUNDS + 2);
		CHECK_EQ(r.pieces * 2 * ROUNDS, 0);
		CHECK_EQ(r.reads * 2 * ROUNDS, 0);
		CHECK_EQ(r.barriers * 2 * ROUNDS, 0);
	}
}

TEST(two_lines_are_below_5_us)
{
	struct result r = pingpong(64);

	test_note("64 bytes: %.2f us, %.3f packets (paper: 8.56 us)", r.us, r.packets);
	CHECK(r.us < 5.0);
	CHECK_EQ(r.packets * 2 * ROUNDS, 4 * ROUNDS + 4);
	CHECK_EQ(r.reads * 2 * ROUNDS, 0);
	CHECK_EQ(r.barriers * 2 * ROUNDS, 0);
}

/* The bandwidth of the wire is 87.71 MB/s; the paper measured 84.12 MB/s. */
TEST(zero_copy_has_the_speed_of_the_wire)
{
	struct result r = pingpong(1 << 20);
	double rate = (1 << 20) / r.us;

	test_note("1 MiB: %.2f MB/s, %.2f packets (paper: 84.12 MB/s)", rate, r.packets);
	CHECK(rate >= 0.998 * 87.71);
	/* request, address, end; positions of their rings; each byte of data once */
	CHECK_EQ(r.packets * 2 * ROUNDS, 2 * ROUNDS * ((1 << 20) / 64 + 3) + 20);
	CHECK_EQ(r.reads * 2 * ROUNDS, 0);
}

/* The size at creation decides whether a message is sent without a copy. */
TEST(the_size_at_creation_decides)
{
	const size_t n = 65536;
	struct result direct = pingpong_limited(n, n);
	struct result copied = pingpong_limited(n, n + 1);

	test_note("%zu bytes: %.2f us without a copy, %.2f us with", n, direct.us, copied.us);
	CHECK(direct.packets <= (double)n / 64 + 4);
	CHECK(copied.packets > (double)n / 64 + 4);
	CHECK(direct.us < copied.us);
}

/* Print the results around the sizes at which the protocol changes. */
TEST(protocols_change)
{
	static const size_t sizes[] = { 62, 63, 64, 256, 1024, 2048, 4096, 6144, 6208,
					8192, 16384 };

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct result e = pingpong(sizes[i]);

		test_note("%5zu bytes: %7.2f us, %6.2f MB/s, %7.3f packets, %.2f barriers",
			  sizes[i], e.us, (double)sizes[i] / e.us, e.packets, e.barriers);
		/* each byte goes once, and not faster than the wire (MB/s) */
		CHECK(e.packets * 64 + e.pieces * 16 >= (double)sizes[i]);
		CHECK((double)sizes[i] / e.us < 87.71);
	}
}
