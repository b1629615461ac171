// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Test Madeleine's pack and unpack in virtual time, and compare with the
 * MPICH/Madeleine paper.
 *
 * The objects of libsci/madeleine run on the model of the paper's machine, profile
 * A. This file replaces only start-up.
 */
#include <stdlib.h>
#include <string.h>

#include "selftests/harness.h"
#include "selftests/sim/vtime_world.h"
#include "sim/vtime/tcp.h"

#define WARM_UP		48u
#define WARM_UP_LONG	2u
#define ROUNDS		24u
#define ROUNDS_LONG	2u		/* each packet of a long block takes time of the CPU */
#define LONG		16384u

/* ---- ping-pong ---- */

struct pingpong {
	size_t header;			/* length of an EXPRESS block, or 0 for none */
	size_t body;			/* of a CHEAPER block; EXPRESS without header */
	bool tcp;			/* over TCP */
	uint64_t begin;
	uint64_t counts[SCI_PCI_COUNTERS_COUNT];
	double us;
	double packets;			/* or frames */
	uint64_t frames;
	bool differs;
	int error;
};

static uint64_t counted(struct vt_node *n, enum sci_pci_counter c)
{
	struct vt_sim *s = vt_sim_of(n);

	return sim_counter(vt_adapter(vt_node(s, 0)), c) +
	       sim_counter(vt_adapter(vt_node(s, 1)), c);
}

static mad_receive_mode_t mode_of(const struct pingpong *pp)
{
	return pp->header ? mad_receive_CHEAPER : mad_receive_EXPRESS;
}

static void post(const struct pingpong *pp, struct pair *p, const uint8_t *buf)
{
	p_mad_connection_t k = mad_begin_packing(&p->channel, p->out.remote_rank);

	mad_pack(k, buf, pp->header, mad_send_CHEAPER, mad_receive_EXPRESS);
	mad_pack(k, buf + pp->header, pp->body, mad_send_CHEAPER, mode_of(pp));
	mad_end_packing(k);
}

static void get(const struct pingpong *pp, struct pair *p, uint8_t *buf)
{
	p_mad_connection_t k = mad_begin_unpacking(&p->channel);

	mad_unpack(k, buf, pp->header, mad_send_CHEAPER, mad_receive_EXPRESS);
	mad_unpack(k, buf + pp->header, pp->body, mad_send_CHEAPER, mode_of(pp));
	mad_end_unpacking(k);
}

static void one_round(const struct pingpong *pp, struct pair *p, uint8_t *buf, bool first)
{
	if (first)
		post(pp, p, buf);
	get(pp, p, buf);
	if (!first)
		post(pp, p, buf);
}

/* Let the next endpoint listen as the process of node @n. */
static void tcp_use(struct vt_node *n)
{
	setenv("SCI_NET", vt_index(n) ? "tcp:127.0.0.8" : "tcp:127.0.0.4", 1);
	setenv("SCI_NET_PEERS", "4=tcp:127.0.0.4,8=tcp:127.0.0.8", 1);
	setenv("SCI_NET_KEY", "hex:00112233445566778899aabbccddeeff", 1);
}

static void play(struct vt_node *n, void *arg)
{
	struct pingpong *pp = arg;
	int me = (int)vt_index(n);
	struct mad_world *w = world_open(n, 2);
	bool is_long = pp->body > LONG;
	unsigned int before = is_long ? WARM_UP_LONG : WARM_UP;
	unsigned int rounds = is_long ? ROUNDS_LONG : ROUNDS;
	size_t len = pp->header + pp->body;
	uint8_t *buf = tbx_alloc(1, len);
	struct pair p;
	int ret;

	pair_open(&p, me, !me);
	if (pp->tcp)
		tcp_use(n);
	ret = w->net->open(w);
	ret = ret ? ret : w->net->connect(w, 0, !me);
	for (unsigned int i = 0; !ret && i <= before + rounds; i++) {
		if (!me && (i == before || i == before + rounds)) {
			double messages = 2.0 * rounds;

			vt_sync(n);
			pp->us = (double)(vt_clock(n) - pp->begin) / (messages * VT_US);
			pp->begin = vt_clock(n);
			pp->packets = pp->tcp ? (double)(vt_tcp_frames(vt_sim_of(n)) - pp->frames) /
						messages : (double)(counted(n, SCI_PCI_CNT_WRITES_64) -
					       pp->counts[SCI_PCI_CNT_WRITES_64]) / messages;
			pp->frames = vt_tcp_frames(vt_sim_of(n));
			for (int c = 0; c < SCI_PCI_COUNTERS_COUNT; c++)
				pp->counts[c] = counted(n, (enum sci_pci_counter)c);
		}
		if (!me)
			test_fill(buf, len, i);
		one_round(pp, &p, buf, !me);
		pp->differs |= !test_filled(buf, len, i);
	}
	pp->error = ret;
	if (!ret)
		w->net->close(w);
	pair_close(&p);
	free(buf);
}

static struct pingpong pingpong_over(size_t header, size_t body, bool tcp)
{
	struct pingpong pp = { .header = header, .body = body, .tcp = tcp };
	struct vt_profile p;
	struct vt_sim *s;

	CHECK(vt_profile_read(&p, "sim/profiles/a.profile"));
	worlds_begin();
	s = vt_new(&p, 2, NULL, 1);
	CHECK(s != NULL);
	CHECK(!tcp || vt_ethernet(s));
	for (unsigned int i = 0; i < 2; i++)
		vt_start(vt_node(s, i), play, &pp);
	CHECK(vt_run(s));
	vt_free(s);
	CHECK_EQ(pp.error, 0);
	CHECK(!pp.differs);
	return pp;
}

static struct pingpong pingpong(size_t header, size_t body)
{
	return pingpong_over(header, body, false);
}

/* ---- figures of the paper ---- */

TEST(a_small_pack_is_one_line)
{
	struct pingpong r = pingpong(0, 4);

	test_note("4 bytes: %.2f us, %.3f packets (paper: 4.4 us)", r.us, r.packets);
	CHECK(r.us < 4.4);
	CHECK_EQ(r.packets * 2 * ROUNDS, 2 * ROUNDS + 2);
}

/* ch_mad, which packs a header and a body, takes 20 us for this. */
TEST(a_header_and_a_body_are_gathered)
{
	struct pingpong r = pingpong(16, 4), longer = pingpong(16, 64);

	test_note("16 + 4 bytes: %.2f us, %.3f packets (paper: 20 us)", r.us, r.packets);
	test_note("16 + 64 bytes: %.2f us, %.3f packets", longer.us, longer.packets);
	CHECK(r.us < 5.5);
	CHECK_EQ(r.packets * 2 * ROUNDS, 2 * ROUNDS + 2);
	CHECK(longer.us < 5.5);
}

TEST(long_blocks)
{
	struct pingpong r = pingpong(0, 8 << 20);

	test_note("8 MiB: %.2f MB/s (wire: 76.30)", (8 << 20) / r.us);
	CHECK((8 << 20) / r.us > 76);
}

/* ---- over TCP ---- */

TEST(a_small_pack_over_tcp_is_one_frame)
{
	struct pingpong r = pingpong_over(0, 4, true);

	test_note("4 bytes: %.2f us, %.3f frames (paper: 121 us)", r.us, r.packets);
	CHECK(r.us < 148.7);
	CHECK(r.packets >= 1 && r.packets < 1.1);
}

/* ch_mad, which sends a frame for the header and a frame for the body, takes 148.7 us for this. */
TEST(a_header_and_a_body_are_one_frame)
{
	struct pingpong r = pingpong_over(16, 4, true);

	test_note("16 + 4 bytes: %.2f us, %.3f frames (paper: 148.7 us)", r.us, r.packets);
	CHECK(r.us < 148.7);
	CHECK(r.packets >= 1 && r.packets < 1.1);
}

TEST(long_blocks_over_tcp)
{
	struct pingpong r = pingpong_over(0, 8 << 20, true);

	test_note("8 MiB: %.2f MB/s (paper: 11.74, wire: 11.77)", (8 << 20) / r.us);
	CHECK((8 << 20) / r.us > 11.65);
}
